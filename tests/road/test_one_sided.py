"""Connections of which the capture has one side only: their requests do not wait for responses without end."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numba")

from tests.road.law import assert_same, by_columns
from tests.road.test_overdue import PROTOCOLS, calls_of, exchanges
from tests.road.test_pairing import capture as connection
from wirekit.conversation import requests
from wirekit.conversation.requests import MOST_UNHEARD_BYTES
from wirekit.road import contents, index

MOST = 20
HEARD = 200
"""The call before which the server sends its first bytes."""


@pytest.fixture(autouse=True)
def _few_requests_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (requests, contents):
        monkeypatch.setattr(module, "MOST_UNHEARD", MOST)
    monkeypatch.setattr(index, "_MOST_WAITING", np.array([index._MOST_WAITING[0], [MOST, MOST_UNHEARD_BYTES]]))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_columns_follow_a_connection_whose_server_is_not_captured(
    protocol: str, tmp_path: Path, received: list[bytes]
) -> None:
    request_frames = [each.request for each in exchanges(protocol)]
    path = connection(tmp_path / "copy.pcap", *((0, request) for request in request_frames))
    assert Counter(call["outcome"] for call in calls_of(path)) == {"unanswered": len(request_frames)}
    received.clear()
    by_columns(path, window=20_000)
    assert len(received) < len(request_frames) // 2
    assert_same(path, windows=(1 << 26, 20_000, 5_000))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("answered", [MOST // 2, HEARD - 10])
def test_requests_before_the_first_bytes_of_the_server_remain_unanswered(
    protocol: str, answered: int, tmp_path: Path
) -> None:
    calls = exchanges(protocol)
    pieces = [(0, each.request) for each in calls[:HEARD]]
    pieces += [(side, data) for each in calls[HEARD:] for side, data in enumerate(each)]
    path = connection(tmp_path / "copy.pcap", *pieces[:HEARD], (1, calls[answered].response), *pieces[HEARD:])
    outcomes = Counter(call["outcome"] for call in calls_of(path))
    assert (outcomes["unanswered"], outcomes["unasked"], outcomes["answered"]) == (HEARD, 1, len(calls) - HEARD)
    assert_same(path, windows=(1 << 26, 100_000, 20_000, 5_000))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_few_requests_wait_for_the_first_bytes_of_the_server(protocol: str, tmp_path: Path) -> None:
    calls = exchanges(protocol)
    pieces = [(0, each.request) for each in calls[:MOST]] + [(1, each.response) for each in calls[:MOST]]
    pieces += [(side, data) for each in calls[MOST:] for side, data in enumerate(each)]
    path = connection(tmp_path / "copy.pcap", *pieces)
    assert Counter(call["outcome"] for call in calls_of(path)) == {"answered": len(calls)}
    assert_same(path, windows=(1 << 26, 20_000, 5_000))
