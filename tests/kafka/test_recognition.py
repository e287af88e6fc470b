"""Which connections are Kafka's, and who is the client: a handshake decides, else clean frames, else those in part."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import wirekit
from tests.kafka.golden import FIXTURES, PDUS, Pdu, sized
from wirekit.capture.follow import follow
from wirekit.capture.links import Link
from wirekit.capture.tcp import ACK, SYN, Segment
from wirekit.conversation import Conversation, Frame, recognise
from wirekit.conversation.joined import recognise_joined

CASES = [json.loads(line) for line in (FIXTURES / "connections.jsonl").read_text().splitlines()]
IDS = [case["case"] for case in CASES]
CLIENT, SERVER = "10.0.0.1:40000", "10.0.0.2:9092"


def segments(pieces: list[tuple[str, bytes]], *, handshake: bool, snap: int = 1 << 16) -> Iterator[Segment]:
    """A connection whose sides send these bytes, after a handshake or without one; ``snap`` of each were captured."""
    sent = {"client": 1, "server": 1}
    ends = {"client": (CLIENT, SERVER), "server": (SERVER, CLIENT)}
    if handshake:
        yield Segment(0, *ends["client"], 0, 0, SYN, b"", 0, 0, 0)
        yield Segment(1, *ends["server"], 0, 1, SYN | ACK, b"", 0, 0, 0)
    for time, (side, data) in enumerate(pieces, 2):
        other = "server" if side == "client" else "client"
        yield Segment(time, *ends[side], sent[side], sent[other], ACK, data[:snap], 0, 0, len(data))
        sent[side] += len(data)


def read(pieces: list[tuple[str, bytes]], *, handshake: bool, snap: int = 1 << 16) -> tuple[Link, list[Any]]:
    followed = list(follow(segments(pieces, handshake=handshake, snap=snap)))
    return followed[-1][0], [item for _, item in followed if item is not None]


def pieces(case: dict[str, Any]) -> list[tuple[str, bytes]]:
    return [(side, bytes.fromhex(data)) for side, data in case["frames"]]


def answered() -> Iterator[tuple[Pdu, Pdu]]:
    """A captured request of each API version, with its response."""
    responses = {(pdu.release, pdu.line): pdu for pdu in PDUS if pdu.side == "response"}
    both = [pdu for pdu in PDUS if pdu.side == "request" and (pdu.release, pdu.line) in responses]
    for pdu in {pdu.key: pdu for pdu in both}.values():
        yield pdu, responses[pdu.release, pdu.line]


@pytest.mark.parametrize("handshake", [True, False])
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_connections(case: dict[str, Any], handshake: bool) -> None:
    link, items = read(pieces(case), handshake=handshake)
    assert (link.protocol, link.client) == ("kafka", CLIENT)
    assert [item.data for item in items] == [data for _, data in pieces(case)]
    recognised = [
        [f.side, f.description.api, f.description.version, f.description.correlation_id, f.schema, f.reason]
        for f in items
    ]
    assert recognised == case["expected"]


def test_the_side_that_answered_does_not_matter_after_a_handshake() -> None:
    """Responses begin with the correlation id, which read as a request may be any API and version."""
    for request, answer in answered():
        recognised = recognise(request.data, answer.data, sides_known=True)
        assert (recognised.protocol, recognised.swapped) == ("kafka", False), request
        for number in (1, 3 << 16):
            data = answer.data[:4] + number.to_bytes(4, "big") + answer.data[8:]
            assert not recognise(b"", data, sides_known=True).swapped


def test_without_a_handshake_the_bytes_decide() -> None:
    """Where an answer is a clean request as well, who was taken for the client stays it."""
    for request, answer in answered():
        assert not recognise(request.data, answer.data).swapped, request
        ambiguous = bool(recognise(answer.data, b"").protocol)
        assert recognise(answer.data, request.data).swapped is not ambiguous, request


@pytest.mark.parametrize("handshake", [True, False])
def test_wrong_checksums_do_not_hide_the_protocol(handshake: bool) -> None:
    """A captured produce request of each version with all its CRCs wrong, alone on its connection."""
    for pdu in {pdu.key: pdu for pdu in PDUS}.values():
        if pdu.key.startswith("kafka.produce.request"):
            value = wirekit.decode(pdu.data, pdu.key).value
            for topic in value.body.topic_data:
                for partition in topic.data:
                    for entry in partition.record_set.messages:
                        entry.message.crc ^= 0x55
                        entry.message.keep("crc")
            link, items = read([("client", wirekit.encode(pdu.key, value))], handshake=handshake)
            assert link.protocol == "kafka"
            assert [(item.schema, {m.check for m in item.messages}) for item in items] == [(pdu.key, {"bad"})]


def headed(key: int, version: int, client_id: bytes, body: bytes, number: int = 1) -> bytes:
    head = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True) + number.to_bytes(4, "big")
    return sized(head + len(client_id).to_bytes(2, "big") + client_id + body)


@pytest.mark.parametrize("key", [1, 18, 60])
@pytest.mark.parametrize("body", [b"", bytes(4), bytes(range(256))])
def test_a_header_alone_identifies_an_undeclared_request(key: int, body: bytes) -> None:
    for version in (12, 17):
        data = headed(key, version, b"client-1", body)
        assert recognise(data, b"").protocol == recognise(data, b"", sides_known=True).protocol == "kafka"
        link, (frame,) = read([("client", data)], handshake=False)
        assert link.client == CLIENT
        assert (frame.description.version, frame.value.client_id) == (version, "client-1")
        assert wirekit.encode(frame.schema, frame.value) == data


@pytest.mark.parametrize(
    "data",
    [
        headed(18, 3, b"", b"whatever"),
        headed(18, 3, b"\x01\x02", b"whatever"),
        headed(-5, 3, b"client", b"whatever"),
        headed(3, -1, b"client", b"whatever"),
        headed(3, 200, b"client", b"whatever"),
        headed(120, 3, b"client", b"whatever"),
        headed(3, 1, b"client", b"a declared version that does not decode"),
    ],
    ids=["no-client", "odd-client", "negative-api", "negative-version", "far-version", "far-api", "declared"],
)
def test_other_headers_prove_nothing(data: bytes) -> None:
    assert not recognise(data, b"", sides_known=True).protocol


@pytest.mark.parametrize("handshake", [True, False])
@pytest.mark.parametrize(("key", "version"), [(0, 9), (1, 11), (19, 4), (60, 0)])
def test_a_header_alone_identifies_an_undeclared_request_that_is_cut(key: int, version: int, handshake: bool) -> None:
    """As of a whole one, key 0 does so after a handshake only."""
    requests = [("client", headed(key, version, b"client-1", bytes(range(256)), number)) for number in range(3)]
    link, items = read(requests, handshake=handshake, snap=30)
    if key == 0 and not handshake:
        assert link.protocol == ""
        return
    assert (link.protocol, link.client) == ("kafka", CLIENT)
    frames = [item for item in items if isinstance(item, Frame)]
    assert [(frame.description.version, frame.value.client_id) for frame in frames] == [(version, "client-1")] * 3


@pytest.mark.parametrize("client_id", [b"", b"\x01\x02", b"x" * 256])
def test_a_cut_header_of_an_undeclared_request_needs_a_name(client_id: bytes) -> None:
    requests = [("client", headed(1, 11, client_id, bytes(range(256)), number)) for number in range(3)]
    assert not read(requests, handshake=True, snap=30)[0].protocol


ZOOKEEPER = {
    "client": "0000002d00000000000000000000000000007530000000000000000000000010"
    + 17 * "00"
    + "0000001900000001000000030000000c2f62726f6b6572732f69647300"
    + "00000008fffffffe0000000b",
    "server": "0000002bffffffffffffffffffffffff0000000000000004000000030000000f2f62726f6b6572732f746f70696373"
    + "00000054000006be000000000000078c000000000000000000000006",
}


@pytest.mark.parametrize("sender", ZOOKEEPER)
@pytest.mark.parametrize("settled", [True, False])
def test_a_cut_frame_without_the_beginning_of_a_name_proves_nothing(sender: str, settled: bool) -> None:
    """Bytes that ZooKeeper and a broker of 0.10.2.2 sent; inside them, a large Metadata v0 seems to begin."""
    both = {"client": b"", "server": b"", sender: bytes.fromhex(ZOOKEEPER[sender])}
    assert recognise_joined(**both, settled=settled).protocol == ""


@pytest.mark.parametrize("left", [14, 15, 30])
def test_a_cut_frame_with_the_beginning_of_a_name_proves_its_protocol(left: int) -> None:
    request = headed(3, 0, b"ReplicaFetcherThread-0-1", bytes(4))
    assert recognise_joined(request[3:] + request[:left], b"", settled=True).protocol == "kafka"
    longer = headed(3, 0, b"x" * 256, bytes(4))
    assert recognise_joined(longer[3:5] + longer[:left], b"", settled=True).protocol == ""


@pytest.mark.parametrize(
    "inside",
    [
        bytes.fromhex("000000140000000000000007000000000000001700000000"),
        headed(3, 0, b"", bytes(4))[:-1],
        headed(3, 0, b"\x01\x02", bytes(4))[:-1],
    ],
    ids=["produce without topics", "cut without a name", "cut with an odd name"],
)
def test_numbers_inside_other_bytes_prove_nothing(inside: bytes) -> None:
    """Such as those of programs, message catalogues and log segments."""
    assert recognise_joined(b"\x7f" + inside, b"", settled=True).protocol == ""


def test_a_clean_frame_counts_for_more_than_a_partial_match() -> None:
    ping = wirekit.encode("pulsar.frame", {"command": {"type": "PING", "ping": {}}})
    assert recognise(ping, headed(18, 3, b"client", b"")).protocol == "pulsar"


@pytest.mark.parametrize("version", [1, 2, 3, 4])
@pytest.mark.parametrize("code", [0, 35, 42])
def test_api_versions_is_answered_in_v0_only_by_who_refuses_it(version: int, code: int) -> None:
    conversation = Conversation("kafka")
    conversation.receive("client", headed(18, version, b"c", b"\0"))
    body = {"error_code": code, "api_versions": [{"api_key": 18, "min_version": 0, "max_version": 2}]}
    data = wirekit.encode("kafka.api_versions.response.v0", {"correlation_id": 1, "body": body})
    (answer,) = conversation.receive("server", data)
    assert isinstance(answer, Frame)
    assert answer.request is not None
    assert (answer.schema == "kafka.api_versions.response.v0", answer.reason is None) == (code == 35, code == 35)


def test_a_connection_joined_between_wrong_checksums() -> None:
    """The first whole frame is looked for; a wrong CRC does not keep a frame from being one."""
    case = next(pdu for pdu in PDUS if str(pdu) == "0.10.2.2:25-produce.request.v2")
    assert not wirekit.decode(case.data, case.key).clean
    link, (cut, *frames) = read([("client", case.data[-9:] + case.data + case.data)], handshake=False)
    assert link.protocol == "kafka"
    assert cut.data == case.data[-9:]
    assert [frame.schema for frame in frames] == [case.key] * 2
