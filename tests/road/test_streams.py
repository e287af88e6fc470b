"""The bytes of a window's streams, and of frames that are carried to it."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba")

from wirekit.road import kernels, packets
from wirekit.road.streams import SIDE, STATE, extended, with_room


def test_bytes_are_appended_without_a_copy_if_there_is_room() -> None:
    stream = with_room(4, 3)
    stream[:] = 1
    once = extended(stream, b"ab")
    twice = extended(once, b"c")
    assert twice.tobytes() == b"\1\1\1\1abc"
    assert np.shares_memory(stream, twice)


@pytest.mark.parametrize("stream", [with_room(4, 1), np.zeros(4, np.uint8), np.zeros(0, np.uint8)])
def test_without_room_all_is_copied(stream: np.ndarray) -> None:
    longer = extended(stream, b"ab")
    assert longer.tobytes() == bytes(stream.size) + b"ab"
    assert not np.shares_memory(stream, longer)


def test_the_kernels_number_the_words_of_a_flow_as_they_are_named() -> None:
    """The kernels are compiled from their text alone, so they have numbers of their own."""
    assert [getattr(kernels, name.upper()) for name in (*STATE, *SIDE)] == [*range(len(STATE)), *range(len(SIDE))]
    assert (len(STATE), len(SIDE), packets.RANKS) == (kernels.OF_FLOW, kernels.OF_SIDE, kernels.RANKS)
