"""A frame that columns do not read, among many that they do: objects read it, and columns the others."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("numba")

import wirekit
from tests.capture.second_parser import packets, write
from tests.road.law import assert_same, by_columns
from tests.road.test_overdue import CONNECT, Exchange, heartbeat, send
from tests.road.test_pairing import capture as connection
from wirekit.road import reading

CALLS = 300
PLACES = (40, 160)
"""The calls whose frames are irregular."""


def marker(number: int) -> Exchange:
    """A message of a replicated subscription, and its receipt."""
    request, response = send(number)
    value = wirekit.to_json(wirekit.decode(request, "pulsar.frame").value)
    value["entry"]["metadata"]["marker_type"] = 10
    del value["entry"]["checksum"]
    return Exchange(wirekit.encode("pulsar.frame", value), response)


def replicated(number: int, ledger: int = 0) -> Exchange:
    """A message from another cluster, and its receipt, which has the message's position there."""
    request, response = (wirekit.to_json(wirekit.decode(each, "pulsar.frame").value) for each in send(number))
    property_ = {"key": "__MSG_PROP_REPL_SOURCE_POSITION", "value": f"{ledger or number}:7"}
    request["entry"]["metadata"]["properties"] = [property_]
    del request["entry"]["checksum"]
    response["command"]["send_receipt"] |= {"sequence_id": ledger or number, "highest_sequence_id": 7}
    return Exchange(wirekit.encode("pulsar.frame", request), wirekit.encode("pulsar.frame", response))


def unasked(number: int) -> Exchange:
    """A heartbeat, and a response to no request before its own."""
    request, response = heartbeat(number)
    return Exchange(request, heartbeat(100_000 + number).response + response)


def twice(number: int) -> Exchange:
    """A request that is answered twice."""
    request, response = heartbeat(number)
    return Exchange(request, response + response)


IRREGULAR = {
    "marker": (send, marker),
    "replicated": (send, replicated),
    "unasked": (heartbeat, unasked),
    "twice": (heartbeat, twice),
}


@pytest.mark.parametrize("name", IRREGULAR)
def test_columns_read_around_an_irregular_frame(
    name: str, tmp_path: Path, received: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    regular, irregular = IRREGULAR[name]
    calls = [CONNECT] if regular is send else []
    calls += [(irregular if number in PLACES else regular)(number) for number in range(1, CALLS)]
    pieces = [(side, data) for call in calls for side, data in enumerate(call)]
    whole = packets(connection(tmp_path / "copy.pcap", *pieces, port=6650))
    path = write(tmp_path / "copy.pcap", [each._replace(time_us=number * 100) for number, each in enumerate(whole)])
    assert_same(path, windows=(1 << 26, path.stat().st_size // 2))
    received.clear()
    by_columns(path, window=1 << 26)
    assert len(received) < 10 * len(PLACES)
    received.clear()
    monkeypatch.setattr(reading, "MOST_PARTS", 0)
    by_columns(path, window=1 << 26)
    assert len(received) > CALLS


def test_few_frames_are_left_to_objects(tmp_path: Path, received: list[bytes]) -> None:
    calls = [twice(number) if number == 9 else heartbeat(number) for number in range(1, 20)]
    path = connection(tmp_path / "copy.pcap", *[(side, data) for call in calls for side, data in enumerate(call)])
    by_columns(path, window=1 << 26)
    assert len(received) >= 2 * len(calls)


def test_the_receipt_of_a_replicated_message_does_not_answer_the_send_with_its_number(tmp_path: Path) -> None:
    calls = [CONNECT, *map(send, range(1, CALLS))]
    first, second = replicated(CALLS, CALLS + 1), replicated(CALLS + 1, CALLS)
    pieces = [(side, data) for call in calls for side, data in enumerate(call)]
    pieces += [(0, first.request), (0, second.request), (1, second.response), (1, first.response)]
    whole = packets(connection(tmp_path / "copy.pcap", *pieces, port=6650))
    path = write(tmp_path / "copy.pcap", [each._replace(time_us=number * 100) for number, each in enumerate(whole)])
    rows = assert_same(path)
    assert sum("'latency_us': 100," in row for row in rows["calls"]) >= CALLS
    assert sum("'latency_us': 300," in row for row in rows["calls"]) == 1
