"""What speaks for a protocol, and for a side, in bytes that are not all sound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from random import Random
from typing import Any

import pytest

import wirekit
from tests.own import declared
from wirekit.conversation import Conversation, best_fit, joined, recognition
from wirekit.conversation.joined import Prospects, recognise_inside, recognise_joined
from wirekit.conversation.recognition import _first_frames, _fit, _swapped, frame_fits, recognise
from wirekit.decoding import clean_contexts
from wirekit.registry import Layout, Protocol, registry
from wirekit.strategies import Turn, bulk_mutations, conversation
from wirekit.wire import Bytes, Checked, Const, Length, Struct, int32, uint8, uint16le, uint32, varint32

MESSAGE = {"offset": 1, "message": {"magic": 0, "value": None}}
TOPIC = {"topic": "", "data": [{"partition": 0, "record_set": {"messages": [MESSAGE]}}]}
PRODUCE = wirekit.encode(
    "kafka.produce.request.v0",
    {"correlation_id": 1, "client_id": "", "body": {"acks": 1, "timeout": 1, "topic_data": [TOPIC]}},
)
COMMITTED = {"partition": 0, "offset": 5, "timestamp": 1, "metadata": ""}
OFFSET_COMMIT = wirekit.encode(
    "kafka.offset_commit.request.v0.beta",
    {
        "correlation_id": 0,
        "client_id": "c",
        "body": {"group_id": "g", "topics": [{"topic": "t", "partitions": [COMMITTED]}]},
    },
)
CRC = slice(-14, -10)
PING = {"command": {"type": "PING", "ping": {}}}
PONG = {"command": {"type": "PONG", "pong": {}}}
MEBIBYTE = 1 << 20


@pytest.mark.parametrize("guess", [True, False])
@pytest.mark.parametrize("swapped", [True, False])
def test_who_asks_is_the_client_whatever_was_guessed(swapped: bool, guess: bool) -> None:
    turns = conversation("joyqueue", seed=3, length=4).turns
    client, server = (b"".join(turn.data for turn in turns if turn.side == side) for side in ("client", "server"))
    sides = (server, client) if swapped else (client, server)
    assert _swapped(registry.protocol("joyqueue"), *sides, guess) == swapped


@pytest.mark.parametrize("key", ["kafka.request", "pulsar.frame", "jmq4.frame", "joyqueue.frame"])
def test_a_frame_fits_alike_the_first_time_and_later(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without generated code, which is made when it pays, as with it."""
    protocol = registry.protocol(key)
    fits = 0
    for mutation in islice(bulk_mutations(key, seed=3), 600):
        for data in (mutation.original, mutation.data):
            monkeypatch.setattr(recognition, "_asked_times", Counter())
            first = _fit(protocol, _first_frames(protocol, data, "client"), "client", False)
            monkeypatch.setattr(recognition, "_asked_times", Counter({key: recognition.FEW_TIMES + 1}))
            later = _fit(protocol, _first_frames(protocol, data, "client"), "client", False)
            assert first == later, data.hex()
            fits += any(first)
    assert fits > 100


def test_of_as_many_frames_those_with_the_most_bytes_are_recognised() -> None:
    """A few bytes of a long frame may be a short frame of another protocol."""
    short, long = Struct("size" / Length(uint8), "kind" / uint8), Struct("size" / Length(uint16le), "text" / Bytes())
    protocols = [
        Protocol(name, name, {"frame": Layout(node)}, "frame", "frame", ("frame",))
        for name, node in (("short", short), ("long", long))
    ]
    frame = b"\x01\x00a"
    for order in (protocols, protocols[::-1]):
        with ExitStack() as stack:
            for protocol in order:
                stack.enter_context(declared(protocol))
            assert recognise(frame, b"").protocol == recognise(b"", frame).protocol == "long"


def test_frames_that_cannot_change_the_answer_are_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[bytes] = []
    real = recognition.layouts_fit

    def counted(protocol: Protocol, frame: bytes, *, light: bool = False) -> tuple[bool, bool]:
        tried.append(frame)
        return real(protocol, frame, light=light)

    monkeypatch.setattr(recognition, "layouts_fit", counted)
    assert recognise(PRODUCE, b"", rivals=False).protocol == "kafka"
    assert tried == [PRODUCE]


def test_a_client_id_that_is_no_text_speaks_for_its_protocol_in_part() -> None:
    header = bytes.fromhex("0003 0000 00000007 0012") + b"\xff" * 18
    frame = (len(header) + 4).to_bytes(4, "big") + header + bytes(4)
    assert frame_fits(registry.protocol("kafka"), "client", frame, False) == (False, True)


def test_a_short_frame_with_a_wrong_checksum_speaks_for_its_protocol_in_part() -> None:
    assert len(PRODUCE) == 64
    damaged = bytearray(PRODUCE)
    damaged[CRC] = b"\1\2\3\4"
    kafka = registry.protocol("kafka")
    assert frame_fits(kafka, "client", PRODUCE, True) == (True, False)
    assert frame_fits(kafka, "client", bytes(damaged), True) == (False, True)


def test_a_variant_of_a_layout_speaks_for_its_protocol_in_part() -> None:
    """Magic 1 in front of the layout of magic 0, which brokers of 0.9 read."""
    value = {"correlation_id": 1, "client_id": "", "body": {"acks": 1, "timeout": 1, "topic_data": []}}
    message = {"offset": 0, "message": {"magic": 1, "value": "6f6e65"}}
    partition = {"partition": 0, "record_set": {"messages": [message]}}
    value["body"]["topic_data"] = [{"topic": "t", "data": [partition]}]
    frame = wirekit.encode("kafka.produce.request.v0.untimed", value)
    assert not wirekit.decode(frame, "kafka.request").clean
    assert frame_fits(registry.protocol("kafka"), "client", frame, True) == (False, True)
    recognised = recognise(frame, b"", sides_known=True)
    assert (recognised.protocol, recognised.certain) == ("kafka", True)


def test_a_damaged_frame_speaks_for_its_protocol_from_12_bytes_on() -> None:
    """A frame of a length, a wrong checksum and a text."""
    layout = Struct("size" / Length(int32, "text"), "sum" / Checked(uint32, "crc32c", "text"), "text" / Bytes(None))
    whole = Protocol("damaged", "A test's own", {"frame": Layout(layout)}, "frame", "frame", recognised_by=("frame",))
    with declared(whole) as protocol:
        for size, speaks in ((11, False), (12, True)):
            frame = bytearray(wirekit.encode("damaged.frame", {"text": b"x" * (size - 8)}))
            assert len(frame) == size
            assert frame_fits(protocol, "client", bytes(frame), True) == (True, False)
            frame[4] ^= 1
            assert frame_fits(protocol, "client", bytes(frame), True) == (False, speaks)


def test_the_best_fit_of_damaged_frames() -> None:
    """A frame with a wrong checksum, one that is cut, and one with bytes that no field explains."""
    damaged = bytearray(PRODUCE)
    damaged[CRC] = b"\1\2\3\4"
    assert best_fit(bytes(damaged)) == best_fit(PRODUCE[:40]) == best_fit(PRODUCE + b"\1") == "kafka"
    assert best_fit(b"GET / HTTP/1.1\r\n") == ""


def test_the_credit_for_searching_is_bounded() -> None:
    start = bytes.fromhex("00030d40000000050812920100")  # of a Pulsar frame of 200,000 bytes
    following = Conversation("pulsar")
    list(following.receive("client", start + bytes(100_000)))
    assert following._directions["client"].credit == MEBIBYTE


def test_bytes_that_were_followed_elsewhere_give_as_much_credit_as_those_followed_here() -> None:
    ping = bytes.fromhex("00000009000000050812920100")
    here, elsewhere = Conversation("pulsar"), Conversation("pulsar")
    here.receive("client", ping)
    elsewhere.skip("client", len(ping))
    assert here._directions["client"].credit == elsewhere._directions["client"].credit < MEBIBYTE


def test_bytes_with_too_many_places_for_a_frame_are_always_worth_an_attempt() -> None:
    """Their search is cut short, so it cannot say that an attempt would be in vain."""
    prospects, heads = Prospects(), {"client": bytearray(), "server": bytearray()}
    for _ in range(8):
        heads["client"] += b"\0\0\0\x20" * 100  # a length at each fourth byte
        assert prospects.grown(heads)
    few = {"client": bytearray(8), "server": bytearray()}
    assert not Prospects().grown(few)


def test_only_short_frames_are_remembered() -> None:
    for sought in joined.sought_frames():
        sought.short.clear()
        for size in (20, recognition.LARGEST_HEAD, recognition.LARGEST_HEAD + 1, 5000):
            sought.fits(bytes(size))
        assert {len(frame) for frame in sought.short} == {20, 64}


def test_one_frame_tells_who_the_client_is() -> None:
    joyqueue = registry.protocol("joyqueue")
    turns = conversation("joyqueue", seed=3, length=4).turns
    request = next(turn.data for turn in turns if turn.side == "client")
    assert [_swapped(joyqueue, b"", request, guess) for guess in (False, True)] == [True, True]
    assert [_swapped(joyqueue, request, b"", guess) for guess in (False, True)] == [False, False]
    assert [_swapped(joyqueue, b"", b"", guess) for guess in (False, True)] == [False, True]


def test_a_connection_joined_inside_a_frame_is_recognised_by_the_next_one() -> None:
    rest_and_frame = PRODUCE[20:] + PRODUCE
    for client, server in ((rest_and_frame, b""), (b"", rest_and_frame)):
        assert not recognise(client, server).protocol
        inside = recognise_inside(client, server)
        assert inside is not None
        assert (inside.protocol, inside.swapped) == ("kafka", bool(server))
    assert recognise_inside(b"GET / HTTP/1.1" * 9, b"") is None


def test_the_reason_counts_the_frames_of_both_sides() -> None:
    ping, pong = wirekit.encode("pulsar.frame", PING), wirekit.encode("pulsar.frame", PONG)
    assert recognise(ping, b"").reason == "1 frame decodes cleanly as pulsar"
    assert recognise(ping * 2, pong * 2).reason == "4 frames decode cleanly as pulsar"


def test_the_reason_says_why_another_protocol_of_the_same_beginning_does_not_fit() -> None:
    turns = conversation("jmq4", seed=3, length=4).turns
    client = b"".join(turn.data for turn in turns if turn.side == "client")
    assert recognise(client, b"").reason.endswith("; joyqueue does not fit (length: bytes that no field explains)")
    assert ";" not in recognise(client, b"", rivals=False).reason


def test_a_whole_frame_begins_where_it_is_whole() -> None:
    ping = wirekit.encode("pulsar.frame", PING)
    begins = [Conversation("pulsar").begins_whole("client", data) for data in (ping[:-1], ping, ping + ping[:3])]
    assert begins == [False, True, True]


def pieces(turns: Iterable[Turn], random: Random) -> Iterator[tuple[str, bytes]]:
    """What both sides send after a moment in the first turn, some of it damaged."""
    for number, turn in enumerate(turns):
        data = bytearray(turn.data[:400])
        if number == 0:
            del data[: random.randrange(len(data))]
        if data and random.random() < 0.3:
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
        while data:
            size = random.choice((1, 4, 15, 60, 200))
            yield turn.side, bytes(data[:size])
            del data[:size]


@pytest.mark.parametrize("protocol", ["kafka", "pulsar", "joyqueue", "jmq4"])
def test_no_attempt_is_spared_that_would_recognise_a_connection(protocol: str) -> None:
    """Joined anywhere, damaged or not, in small pieces."""
    spared = 0
    for seed in range(6):
        random = Random(f"{protocol} {seed}")
        turns = conversation(protocol, seed=seed, length=6).turns
        prospects, heads = Prospects(), {"client": bytearray(), "server": bytearray()}
        for side, piece in pieces(turns, random):
            heads[side] += piece
            both = bytes(heads["client"]), bytes(heads["server"])
            known = recognise(*both, settled=False).protocol or recognise_inside(*both)
            if not prospects.grown(heads):
                spared += 1
                assert not known
            elif known:
                break
    assert spared > 10


@pytest.mark.parametrize(
    ("key", "frame"),
    [
        (
            "kafka.request",
            "0000001600120000000000010008 72646b61666b6121 00000000",
        ),  # librdkafka 0.9: four bytes too many
        ("kafka.request", "00000010001200030000000100 03636c69000000"),  # ApiVersions v3, not declared
        ("kafka.offset_commit.request.v0.beta", OFFSET_COMMIT.hex()),
        ("kafka.response", "000000100001000c00000000000000000000000100000000"),
    ],
)
def test_a_frame_is_decoded_by_the_layout_that_it_is_recognised_by(key: str, frame: str) -> None:
    data = bytes.fromhex(frame)
    assert wirekit.decode(data, "kafka").schema == key
    assert wirekit.decode(data + PRODUCE, "kafka").schema == key
    assert next(wirekit.frames("kafka", data)).schema == key


@pytest.mark.parametrize("left", [b"x", b"four", b"more bytes than the request has in front of them"])
def test_a_request_with_bytes_left_over_is_that_request_and_a_response_is_none(left: bytes) -> None:
    """But what is a clean response of some API and version is one, and produce has to name a client and a topic."""
    dialogue = registry.protocol("kafka").follow()
    sent = [turn for seed in range(6) for turn in conversation("kafka", seed=seed, length=8).turns]
    shown = 0
    for turn in sent:
        data = (len(turn.data) - 4 + len(left)).to_bytes(4, "big") + turn.data[4:] + left
        request, answered = wirekit.decode(turn.data, "kafka"), wirekit.decode(data, "kafka")
        if turn.side == "server" and request.schema == "kafka.response":
            assert answered.schema == "kafka.response"
        proven = turn.side == "client" and request.clean and dialogue.sender(request) == "client"
        shown += proven and not clean_contexts(data, "kafka.response")
        if proven and not clean_contexts(data, "kafka.response"):
            assert answered.schema == "kafka.request"
            assert [gap.length for gap in answered.gaps] == [len(left)]
            assert answered.value.body == request.value.body
    assert shown > len(sent) / 4


def test_the_request_of_a_client_without_name_with_a_byte_left_over_is_shown() -> None:
    decoded = wirekit.decode(bytes.fromhex("0000000b 0010 0000 00000007 0000 78"), "kafka")
    assert decoded.schema == "kafka.request"
    assert decoded.value.api_key.symbol == "list_groups"
    assert [(gap.path, gap.offset, gap.length) for gap in decoded.gaps] == [("size", 14, 1)]


READS_LIKE_PRODUCE = (
    bytes.fromhex("0000001a 00000000 00000001 0006") + b"t-none" + bytes.fromhex("00000001 00000000 0000")
)
"""A response to OffsetCommit with correlation id 0, and also a produce request of version 0 of the client t-none."""


def test_a_response_that_reads_like_a_request_waits_for_the_other_side() -> None:
    request = wirekit.encode("kafka.list_groups.request.v0", {"correlation_id": 1, "client_id": "me", "body": {}})
    assert recognise_joined(b"", READS_LIKE_PRODUCE, settled=False).protocol == ""
    both = recognise_joined(request, READS_LIKE_PRODUCE, settled=False)
    assert (both.protocol, both.swapped) == ("kafka", False)
    alone = recognise_joined(b"", READS_LIKE_PRODUCE, settled=True)
    assert (alone.protocol, alone.swapped) == ("kafka", True)


def test_bytes_inside_a_frame_of_one_side_wait_for_the_other_side() -> None:
    request = wirekit.encode("kafka.list_groups.request.v0", {"correlation_id": 1, "client_id": "me", "body": {}})
    inside = b"\xff" * 7 + READS_LIKE_PRODUCE
    assert recognise_joined(b"", inside, settled=False).protocol == ""
    both = recognise_joined(request, inside, settled=False)
    assert (both.protocol, both.swapped) == ("kafka", False)
    assert recognise_joined(b"", inside, settled=True).protocol == "kafka"


def test_a_length_that_is_a_varint_may_be_wrong_in_the_bytes_of_others() -> None:
    nodes = {
        "varied": Struct("size" / Length(varint32, frame=True), "body" / Bytes(int32)),
        "marked": Struct(
            "magic" / Const(Bytes(5), b"\xff" * 5), "size" / Length(int32, frame=True), "body" / Bytes(int32)
        ),
    }
    with ExitStack() as stack:
        for name, node in nodes.items():
            sides: Any = {"client": "frame", "server": "frame", "recognised_by": ("frame",)}
            stack.enter_context(declared(Protocol(name, "", {"frame": Layout(node)}, **sides)))
        for name in nodes:
            frame = wirekit.encode(f"{name}.frame", {"body": b"abc"})
            assert recognise(frame * 2, b"").protocol == name
