"""Connections of which the capture has one side only: their requests do not wait for responses without end."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numba")

from tests.capture.second_parser import packets, write
from tests.road.law import assert_same, by_columns
from tests.road.test_overdue import PROTOCOLS, calls_of, exchanges
from tests.road.test_pairing import capture as connection
from wirekit.conversation import requests
from wirekit.conversation.requests import LEAST_UNHEARD_US, MOST_UNHEARD_BYTES
from wirekit.road import contents, index

MOST = 20
HEARD = 200
"""The call before which the server sends its first bytes."""


@pytest.fixture(autouse=True)
def _few_requests_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (requests, contents):
        monkeypatch.setattr(module, "MOST_UNHEARD", MOST)
        monkeypatch.setattr(module, "LEAST_UNHEARD_US", 0)
        monkeypatch.setattr(module, "LEAST_UNHEARD_US", 0)
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


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_many_requests_wait_for_a_short_time(protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes of the server are released some milliseconds after the first requests, as there is no handshake."""
    for module in (requests, contents):
        monkeypatch.setattr(module, "LEAST_UNHEARD_US", LEAST_UNHEARD_US)
    calls = exchanges(protocol)
    path = connection(tmp_path / "copy.pcap", *((side, data) for each in calls for side, data in enumerate(each)))
    write(path, packets(path)[2:])
    assert Counter(call["outcome"] for call in calls_of(path)) == {"answered": len(calls)}
    assert_same(path, windows=(1 << 26, 20_000, 5_000))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_oldest_requests_are_dropped_if_too_many_wait_for_a_short_time(
    protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest that waits is never late, so the last requests are answered."""
    calls = exchanges(protocol)
    for module in (requests, contents):
        monkeypatch.setattr(module, "LEAST_UNHEARD_US", 100 * len(calls) // 2)
        monkeypatch.setattr(module, "MOST_WAITING", 2 * MOST)
    pieces = [*((0, each.request) for each in calls), *((1, each.response) for each in calls[-MOST:])]
    path = connection(tmp_path / "copy.pcap", *pieces)
    assert Counter(call["outcome"] for call in calls_of(path)) == {"answered": MOST, "unanswered": len(calls) - MOST}
    assert_same(path, windows=(1 << 26, 20_000, 5_000))
