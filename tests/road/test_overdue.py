"""Connections on which a response was lost: columns follow them while objects keep the request."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("numba")

import wirekit
from tests.capture.second_parser import packets, write
from tests.road.law import assert_same, by_columns
from tests.road.test_pairing import capture as connection
from wirekit.conversation import following, requests
from wirekit.conversation.following import LEAST_OVERDUE_BYTES, LEAST_OVERDUE_US
from wirekit.pipeline import calls as counting
from wirekit.road import index, tracking

CALLS = 400
EVERY_US = 1_000
"""The time between two packets."""
LOST = 30
"""The call whose response is lost."""


class Exchange(NamedTuple):
    """A request and its response."""

    request: bytes
    response: bytes


def send(number: int) -> Exchange:
    """A message to a Pulsar broker, and its receipt."""
    ids = {"producer_id": 1, "sequence_id": number}
    metadata = {"producer_name": "p", "sequence_id": number, "publish_time": 1}
    command = {"type": "SEND", "send": ids}
    receipt = {"type": "SEND_RECEIPT", "send_receipt": {**ids, "message_id": {"ledgerId": 1, "entryId": number}}}
    return Exchange(
        wirekit.encode(
            "pulsar.frame",
            {"command": command, "entry": {"magic_number": 0x0E01, "metadata": metadata, "payload": bytes(600)}},
        ),
        wirekit.encode("pulsar.frame", {"command": receipt}),
    )


def heartbeat(number: int) -> Exchange:
    """A heartbeat to a JoyQueue broker, and its answer."""

    def frame(direction: str, kind: str, **fields: Any) -> bytes:
        identity = {"direction": direction, "qos_level": "RECEIVE"}
        head = {"version": 4, "identity": identity, "request_id": number, "type": kind, "send_time": 0}
        return wirekit.encode("joyqueue.frame", {**head, **fields})

    return Exchange(
        frame("REQUEST", "HEARTBEAT", payload={}), frame("RESPONSE", "BOOLEAN_ACK", status="SUCCESS", payload={})
    )


CONNECT = Exchange(
    wirekit.encode("pulsar.frame", {"command": {"type": "CONNECT", "connect": {"client_version": "c"}}}),
    wirekit.encode("pulsar.frame", {"command": {"type": "CONNECTED", "connected": {"server_version": "s"}}}),
)
PROTOCOLS = {"pulsar": send, "joyqueue": heartbeat}


def exchanges(protocol: str) -> list[Exchange]:
    """The calls of a connection."""
    return [*([CONNECT] if protocol == "pulsar" else []), *map(PROTOCOLS[protocol], range(1, CALLS))]


def capture(path: Path, calls: list[Exchange], late: int | None = None) -> Path:
    """A connection whose response to call ``LOST`` was not captured; ``late``: the call after which it comes again."""

    pieces = [(side, data) for call in calls for side, data in enumerate(call)]
    lost = 2 * LOST + 1
    if late is not None:
        pieces.insert(2 * late, (1, calls[LOST].response))
    sent = [each._replace(time_us=number * EVERY_US) for number, each in enumerate(packets(connection(path, *pieces)))]
    del sent[2 + lost]
    return write(path, sent)


def calls_of(path: Path) -> list[dict[str, Any]]:
    """The table ``calls`` of a capture."""
    rows: list[dict[str, Any]] = (
        wirekit.read([path], table="calls", columns=["outcome", "latency_us"]).read_all().to_pylist()
    )
    return rows


def waited(calls: list[Exchange]) -> int:
    """The number of packets after which the lost response is overdue, by time or by bytes."""
    return min(LEAST_OVERDUE_US // EVERY_US, 2 * (LEAST_OVERDUE_BYTES // len(calls[LOST].request)))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_columns_follow_again_after_a_lost_response(
    protocol: str, tmp_path: Path, received: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = exchanges(protocol)
    path = capture(tmp_path / "copy.pcap", calls)
    by_columns(path, window=1 << 26)
    assert abs(len(received) - waited(calls)) < 10
    rows = assert_same(path, windows=(1 << 26, 100_000))
    assert rows["gaps"].total() == 1
    assert [call["outcome"] for call in calls_of(path)].count("unanswered") == 1
    received.clear()
    monkeypatch.setattr(following, "MOST_OVERDUE", 0)
    by_columns(path, window=1 << 26)
    assert len(received) > CALLS


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("late", [LOST + 10, LOST + 200])
def test_a_late_response_answers_its_request(protocol: str, late: int, tmp_path: Path) -> None:
    path = capture(tmp_path / "copy.pcap", exchanges(protocol), late)
    assert_same(path, windows=(1 << 26, 100_000))
    calls = calls_of(path)
    assert {call["outcome"] for call in calls} == {"answered"}
    assert max(call["latency_us"] for call in calls) > 2 * (late - LOST - 1) * EVERY_US


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_number_that_is_used_again_replaces_the_overdue_request(
    protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = exchanges(protocol)
    calls[LOST + 150] = calls[LOST]
    path = capture(tmp_path / "copy.pcap", calls, late=LOST + 200)
    assert_same(path, windows=(1 << 26, 20_000))
    with_carried = index._with_carried
    monkeypatch.setattr(
        index,
        "_with_carried",
        lambda streams, frames, begun, odd: with_carried(streams, frames, begun.only(begun.final >= 0), odd),
    )
    with pytest.raises(AssertionError):
        assert_same(path, windows=(20_000,))


def test_the_wait_grows_with_responses_out_of_order() -> None:
    conversation = wirekit.Conversation("pulsar")
    waiting = LEAST_OVERDUE_US

    def call(number: int, request_us: int, answered: int) -> None:
        exchange = send(number)
        conversation.receive("client", exchange.request, time_us=request_us)
        conversation.receive("server", exchange.response, time_us=answered)

    def overdue(now: int) -> bool:
        call(number=now, request_us=now, answered=now)
        return conversation.quiet

    conversation.receive("client", CONNECT.request, time_us=0)
    conversation.receive("server", CONNECT.response, time_us=0)
    assert conversation.quiet
    late = send(1)
    conversation.receive("client", late.request, time_us=0)
    assert not conversation.quiet
    assert not overdue(waiting)
    assert overdue(waiting + 1)
    conversation.receive("server", late.response, time_us=waiting + 2)
    assert conversation.quiet
    conversation.receive("client", send(2).request, time_us=waiting + 3)
    assert not overdue(3 * waiting + 3)
    assert overdue(3 * waiting + 8)


def test_objects_follow_a_connection_while_too_many_calls_are_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest call ends if too many are incomplete, also those whose number was used again."""
    for module in (counting, requests, index):
        monkeypatch.setattr(module, "MOST_WAITING", 60)
    for module in (following, tracking, index):
        monkeypatch.setattr(module, "MOST_OVERDUE", 40)
    late, again, *others = map(heartbeat, range(CALLS))
    pieces = [(0, late.request)]
    for each in others[:52]:
        pieces += [(0, again.request), (0, each.request), (1, each.response)]
    for each in others[52:300]:
        pieces += [(0, each.request), (1, each.response)]
    burst = others[300:310]
    pieces += [*((0, each.request) for each in burst), *((1, each.response) for each in burst)]
    for each in others[310:]:
        pieces += [(0, each.request), (1, each.response)]
    path = connection(tmp_path / "copy.pcap", *pieces, (1, late.response))
    write(path, [each._replace(time_us=number * EVERY_US) for number, each in enumerate(packets(path))])
    assert_same(path, windows=(5_000, 20_000))
    assert "repeated" in {call["outcome"] for call in calls_of(path)}
