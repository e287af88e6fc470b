"""Protobuf messages in the usual form are read by code of their own, which gives what the reader of all forms gives."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

import wirekit
from wirekit.compiler.rows.messages import REASONS, read_message
from wirekit.compiler.rows.state import State
from wirekit.errors import WireError
from wirekit.proto.PulsarApi_pb2 import BaseCommand
from wirekit.schemas.pulsar.frame import COMMAND
from wirekit.strategies import frames
from wirekit.values import Record
from wirekit.wire.protobuf import parse_message
from wirekit.wire.stream import Limits, Reader, Session

LIMITS = Limits()
PING = bytes.fromhex("0812920100")


def compared(data: bytes) -> bool:
    """Whether the message is in the usual form; both readers then give the same, spans too, and charge the same."""
    message, state = COMMAND.message, State("pulsar", {}, LIMITS, len(data))
    session = Session("pulsar", LIMITS, size=len(data))
    try:
        expected = parse_message(message, Reader(session, data))
    except WireError:
        expected = None
    try:
        record = read_message(message, data, 0, len(data), state, "")
    except REASONS:
        assert expected is None or session.checks or _is_unusual(expected) or not _is_canonical(expected, data)
        return False
    assert record == expected
    assert not session.checks
    assert state.room == session.allowance.room
    session, tracing = Session("pulsar", LIMITS, size=len(data), trace=True), State("pulsar", {}, LIMITS, len(data))
    parse_message(message, Reader(session, data, origin=1000))
    tracing.trace(1000)
    assert read_message(message, data, 0, len(data), tracing, "") == record
    assert tracing.spans == session.spans
    return True


def _is_unusual(value: Any) -> bool:
    """Whether there are ``$`` entries in it, or floats, of which NaN has many forms."""
    if isinstance(value, Record):
        return bool(value._extra) or any(_is_unusual(each) for _, each in value.items())
    return any(map(_is_unusual, value)) if isinstance(value, list) else isinstance(value, float)


def _is_canonical(record: Record, data: bytes) -> bool:
    from wirekit.wire.protobuf import build_message
    from wirekit.wire.stream import Writer

    return bytes(build_message(COMMAND.message, record, Writer("pulsar", LIMITS))) == data


@given(frames("pulsar.command"), st.data())
def test_whole_and_damaged_commands(whole: bytes, drawn: st.DataObject) -> None:
    compared(whole)
    data = bytearray(whole)
    place = drawn.draw(st.integers(0, max(len(data) - 1, 0)))
    data[place : place + 1] = drawn.draw(st.binary(max_size=3))
    compared(bytes(data))


@pytest.mark.parametrize(
    ("form", "usual"),
    [
        ("0812920100", True),  # PING
        ("081292010090a10f01", False),  # and a field that nobody knows
        ("9201000812", False),  # the other way round
        ("08929200920100", False),  # a type of three bytes where one would do
        ("0812", False),  # no ping
        ("08129201", False),  # cut before the length
        ("0812920105", False),  # a length that leads beyond the end
        ("08120812920100", False),  # twice
        ("0870920100", False),  # a type that nobody knows
        ("080422070a03ff41411001", False),  # text that is no UTF-8
        ("0806320f080110ffffffffffffffffff011805", True),  # a number of 64 bits
        ("08063210080110ffffffffffffffffff021805", False),  # one of more
        ("081ad2010b0800210000000000000000", False),  # a floating-point number
        ("080212060a0010006000", False),  # a field that nobody knows, in a nested message
    ],
)
def test_forms(form: str, usual: bool) -> None:
    assert compared(bytes.fromhex(form)) is usual


@pytest.mark.parametrize(
    ("tag", "error"),
    [
        ("f8ffffff0f", None),
        ("8080808010", "expected a field number of 1 to 536870911, found 536870912"),
        ("00", "expected a field number of 1 to 536870911, found 0"),
    ],
)
def test_field_numbers_are_those_that_protobuf_and_the_json_form_accept(tag: str, error: str | None) -> None:
    data = PING + bytes.fromhex(tag) + b"\x05"
    decoded = wirekit.decode(data, "pulsar.command")
    if error is None:
        assert wirekit.encode("pulsar.command", wirekit.to_json(decoded.value)) == data
        assert BaseCommand.FromString(data).type == BaseCommand.PING
    else:
        assert error in str(decoded.error)
        with pytest.raises(DecodeError):
            BaseCommand.FromString(data)


def test_absent_fields_are_none_and_take_no_room() -> None:
    command = wirekit.decode(bytes.fromhex("0000000900000005") + PING, "pulsar.frame").value.command
    assert command.send is None
    assert "send" in command
    assert list(vars(command)) == ["type", "ping"]
    assert pickle.loads(pickle.dumps(command)) == command
    command.send = None
    with pytest.raises(AttributeError, match="no field 'sent'"):
        command.sent = 1
