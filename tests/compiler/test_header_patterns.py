"""The pattern of a layout's first numbers matches wherever a frame begins, and excludes most of other places."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wirekit
from tests.own import declared, own
from wirekit.compiler.heading import heading
from wirekit.conversation import Conversation, Frame
from wirekit.fitting import overruns
from wirekit.registry import Layout, Protocol
from wirekit.values import SymbolTable
from wirekit.wire import Bytes, Checked, Length, Node, Struct, Symbols, int64, uint8, uint16, uint32, varint32, zigzag64

KINDS = SymbolTable("kind", {1: "GET", 2: "PUT"})
MOST = 1 << 20


def framed(size: Node) -> Node:
    """A frame with its length in front and a checksum behind."""
    return Struct(
        "size" / Length(size, ("kind", "body"), add=4, frame=True),
        "kind" / Symbols(uint8, KINDS, closed=True),
        "number" / uint16,
        "body" / Bytes(varint32),
        "crc" / Checked(uint32, "crc32", ("kind", "body")),
    )


@pytest.mark.parametrize("size", [uint16, varint32])
@given(kind=st.sampled_from([1, 2]), number=st.integers(0, 0xFFFF), body=st.binary(max_size=300))
def test_every_frame_matches(size: Node, kind: int, number: int, body: bytes) -> None:
    with own(framed(size)) as key:
        data = wirekit.encode(key, {"kind": kind, "number": number, "body": body})
        assert heading(key, MOST).pattern.match(data)


@given(st.integers(-(1 << 63), (1 << 63) - 1), st.integers())
def test_a_varint_with_a_sign_may_be_anything(number: int, other: int) -> None:
    with own(Struct("a" / zigzag64, "b" / int64)) as key:
        data = wirekit.encode(key, {"a": number, "b": other % (1 << 62)})
        assert heading(key, MOST).pattern.match(data)


def test_a_varint_of_more_bytes_than_needed_matches() -> None:
    with own(framed(varint32)) as key:
        data = wirekit.encode(key, {"kind": 1, "number": 7, "body": b"abc"})
        assert heading(key, MOST).pattern.match(bytes([data[0] | 0x80, 0x80, 0x00]) + data[1:])


@given(st.binary(max_size=40), st.integers(0, 50), st.integers(0, 50))
def test_a_frame_with_a_length_beyond_its_end_overruns_as_the_engine_has_it(body: bytes, whole: int, part: int) -> None:
    parts = "part" / Length(uint16, of="name"), "name" / Bytes(None), "rest" / Bytes(None)
    with own(Struct("size" / Length(uint32, frame=True), *parts)) as key:
        data = whole.to_bytes(4, "big") + part.to_bytes(2, "big") + body
        assert heading(key, MOST).overruns(data) == overruns(data, key)


def test_a_length_below_the_least_and_an_unknown_kind_do_not_match() -> None:
    with own(framed(varint32)) as key:
        pattern = heading(key, MOST).pattern
        assert not pattern.match(bytes([7, 1]) + bytes(20))  # kind, number, an empty body and the checksum are 8 bytes
        assert pattern.match(bytes([8, 1]) + bytes(20))
        assert not pattern.match(bytes([8, 3]) + bytes(20))


def test_frames_with_a_varint_length_decode_after_a_damaged_one() -> None:
    layouts = {"request": Layout(framed(varint32)), "answer": Layout(framed(varint32))}
    with declared(Protocol("varintly", "Framed by varints", layouts, client="request", server="answer")):
        values = [{"kind": 1, "number": number, "body": b"v" * 200} for number in range(5)]
        frames = [wirekit.encode("varintly.request", value) for value in values]
        damaged = bytes([frames[0][0], frames[0][1], 9]) + frames[0][3:]
        conversation = Conversation("varintly", started=False)
        events = conversation.receive("client", b"".join([damaged, *frames[1:]])) + conversation.close()
        assert [event.value.number for event in events if isinstance(event, Frame)] == [1, 2, 3, 4]
