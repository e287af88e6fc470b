"""The frame and its header.

Sources: document, 头信息; JoyQueue transport/codec/JoyQueueHeaderCodec.java:53-90 and DefaultEncoder.java:56-86.
"""

from __future__ import annotations

from typing import Any

from wirekit.schemas.jmq4 import commands
from wirekit.schemas.jmq4.codes import COMMANDS, DIRECTIONS, ERROR_CODES, QOS_LEVELS
from wirekit.schemas.jmq4.message import DOCUMENTED_OPENED_MESSAGE, MESSAGE, OPENED_MESSAGE, message
from wirekit.schemas.jmq4.types import string1, string1_unsigned, string2
from wirekit.wire import (
    Bit,
    Bits,
    Const,
    Default,
    If,
    Length,
    Node,
    Refused,
    String,
    Struct,
    Switch,
    Symbols,
    Timestamp,
    int8,
    int32,
    int64,
    this,
    uint8,
    uint32,
    unexplained,
    unnamed,
)

MAGIC = 0xCAFEBEBE
SHORTEST = 23
"""Bytes of a request without payload."""

IDENTITY = Bits(
    uint8,
    "direction" / Bit(1, DIRECTIONS),
    "qos_level" / Bit(2, QOS_LEVELS) * "a request of ONE_WAY gets no answer",
    "reserved" / Bit(5),
    order="lsb",
)


def header(version: Node) -> tuple[Any, ...]:
    """The fields between length and payload."""
    return (
        "magic" / Const(uint32, MAGIC, hexadecimal=True),
        "version" / version,
        "identity" / Default(IDENTITY, {"direction": 0, "qos_level": 1, "reserved": 0}),
        "request_id" / int32 * "increases; an answer repeats it",
        "type" / Symbols(int8, COMMANDS) * "answers are negative",
        "send_time" / Timestamp(int64) * "milliseconds since the epoch; an answer may repeat the request's",
        "status" / If(this.identity.direction == 1, Symbols(uint8, ERROR_CODES)),
        "error" / If(this.identity.direction == 1, string2) * "text for people",
    )


def frame(version: Node, payloads: dict[int, Node], *refused: Refused) -> Struct:
    """A whole frame.

    Args:
        version: the field of the header version.
        payloads: the payload of each command type; that of an unknown type is kept as a gap.
        refused: the values that peers refuse.
    """
    return Struct(
        "length" / Length(int32, add=4, frame=True, minimum=SHORTEST) * "bytes of the frame, this field included",
        *header(version),
        "payload" / Switch(this.type, payloads, default=unexplained()),
        name="Frame",
        refused=refused,
    )


WITHOUT_CODEC = Refused(
    "type",
    unnamed(this.type, COMMANDS)
    | (this.type == int(COMMANDS["FETCH_ACK_INDEX"]))
    | (this.type == int(COMMANDS["FETCH_ACK_INDEX_ACK"])),
    "JoyQueue throws a CodecException for a command that it does not know, and closes the connection",
    "DefaultDecoder.java:77-80, NettyDecoder.java:50-52",
)


def joyqueue_frame(string: String, record: Struct) -> Struct:
    """The frame that JoyQueue writes, with strings of one-byte length and messages of the given types."""
    by_header = commands.versioned(string, this.version)
    payloads = {**commands.implemented(string, record), **commands.by_version(string, by_header)}
    return frame(int8, payloads, WITHOUT_CODEC)


JOYQUEUE_FRAME = joyqueue_frame(string1, MESSAGE)
DOCUMENTED_VERSION = Const(int8, 2, fatal=False)
JMQ4_FRAME = frame(DOCUMENTED_VERSION, commands.documented())


def joyqueue_frame_opened() -> Struct:
    """JoyQueue's frame with bodies decompressed and batches split."""
    return joyqueue_frame(string1, OPENED_MESSAGE)


def joyqueue_frame_unsigned() -> Struct:
    """JoyQueue's frame with strings of up to 255 bytes after a one-byte length."""
    return joyqueue_frame(string1_unsigned, message(string1_unsigned))


def jmq4_frame_opened() -> Struct:
    """The document's frame with bodies decompressed and batches split."""
    return frame(DOCUMENTED_VERSION, commands.documented(DOCUMENTED_OPENED_MESSAGE))


JOYQUEUE_HEADER = Struct("length" / int32, *header(int8), name="Header")
JMQ4_HEADER = Struct("length" / int32, *header(DOCUMENTED_VERSION), name="Header")
