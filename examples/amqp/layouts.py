"""Frames of AMQP 0-9-1: methods, content headers, bodies, heartbeats. Sources: NOTES.md. Names are the specification's.

Consecutive bits share an octet, the first in the least significant bit; ``flags`` is such an octet.
"""

from __future__ import annotations

from typing import Any

from wirekit.values import SymbolTable
from wirekit.wire import (
    Bit,
    Bits,
    Bytes,
    Const,
    Default,
    Flag,
    If,
    Length,
    Node,
    RecordsToEnd,
    Ref,
    Sized,
    String,
    Struct,
    Switch,
    Symbols,
    Timestamp,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    rest,
    this,
    uint8,
    uint16,
    uint32,
    uint64,
)

SHORT_STRING = String(uint8)
LONG_STRING = Bytes(uint32)
TABLE: Node = Ref("amqp.table")
DECIMAL = Struct("scale" / uint8 * "digits behind the point", "value" / int32, name="Decimal")
VALUE_TYPES = SymbolTable(
    "field_type",
    {
        ord("t"): "BOOLEAN",
        ord("b"): "SHORT_SHORT_INT",
        ord("B"): "SHORT_SHORT_UINT",
        ord("s"): "SHORT_INT",
        ord("u"): "SHORT_UINT",
        ord("I"): "LONG_INT",
        ord("i"): "LONG_UINT",
        ord("l"): "LONG_LONG_INT",
        ord("f"): "FLOAT",
        ord("d"): "DOUBLE",
        ord("D"): "DECIMAL",
        ord("S"): "LONG_STRING",
        ord("x"): "BYTE_ARRAY",
        ord("A"): "ARRAY",
        ord("T"): "TIMESTAMP",
        ord("F"): "TABLE",
        ord("V"): "VOID",
    },
)
VALUE_FORMS: dict[str, Node] = {
    "t": Flag(uint8),
    "b": int8,
    "B": uint8,
    "s": int16,
    "u": uint16,
    "I": int32,
    "i": uint32,
    "l": int64,
    "f": float32,
    "d": float64,
    "D": DECIMAL,
    "S": LONG_STRING,
    "x": LONG_STRING,
    "A": Sized(uint32, RecordsToEnd(Ref("amqp.field"))),
    "T": Timestamp(uint64, unit="s"),
    "F": TABLE,
    "V": Struct(name="Void"),
}
TYPE = "type" / Symbols(uint8, VALUE_TYPES)
VALUE = "value" / Switch(this.type, {ord(letter): form for letter, form in VALUE_FORMS.items()})
FIELD = Struct(TYPE, VALUE, name="Field")
TABLE_OF_FIELDS = Sized(uint32, RecordsToEnd(Struct("name" / SHORT_STRING, TYPE, VALUE, name="Entry")))


def flags(*names: str) -> Any:
    """Bits that share an octet."""
    left = 8 - len(names)
    return "flags" / Bits(uint8, *(name / Bit(1) for name in names), "unused" / Bit(left), order="lsb")


def shorts(*names: str) -> list[Any]:
    """Short strings."""
    return [name / SHORT_STRING for name in names]


RESERVED = "reserved_1" / Default(uint16, 0)
ARGUMENTS = "arguments" / TABLE
CLOSE = ["reply_code" / uint16, "reply_text" / SHORT_STRING, "class_id" / uint16, "method_id" / uint16]
TUNE = ["channel_max" / uint16, "frame_max" / uint32, "heartbeat" / uint16 * "seconds"]
TAG = "delivery_tag" / uint64
COUNT = "message_count" / uint32
ROUTE = shorts("exchange", "routing_key")

CLASSES: dict[tuple[int, str], dict[tuple[int, str], list[Any]]] = {
    (10, "connection"): {
        (10, "start"): [
            "version_major" / uint8,
            "version_minor" / uint8,
            "server_properties" / TABLE,
            "mechanisms" / LONG_STRING,
            "locales" / LONG_STRING,
        ],
        (11, "start-ok"): [
            "client_properties" / TABLE,
            "mechanism" / SHORT_STRING,
            "response" / LONG_STRING,
            "locale" / SHORT_STRING,
        ],
        (20, "secure"): ["challenge" / LONG_STRING],
        (21, "secure-ok"): ["response" / LONG_STRING],
        (30, "tune"): TUNE,
        (31, "tune-ok"): TUNE,
        (40, "open"): [*shorts("virtual_host", "reserved_1"), flags("reserved_2")],
        (41, "open-ok"): shorts("reserved_1"),
        (50, "close"): CLOSE,
        (51, "close-ok"): [],
        (60, "blocked"): shorts("reason"),
        (61, "unblocked"): [],
        (70, "update-secret"): ["new_secret" / LONG_STRING, *shorts("reason")],
        (71, "update-secret-ok"): [],
    },
    (20, "channel"): {
        (10, "open"): shorts("reserved_1"),
        (11, "open-ok"): ["reserved_1" / LONG_STRING],
        (20, "flow"): [flags("active")],
        (21, "flow-ok"): [flags("active")],
        (40, "close"): CLOSE,
        (41, "close-ok"): [],
    },
    (40, "exchange"): {
        (10, "declare"): [
            RESERVED,
            *shorts("exchange", "type"),
            flags("passive", "durable", "auto_delete", "internal", "no_wait"),
            ARGUMENTS,
        ],
        (11, "declare-ok"): [],
        (20, "delete"): [RESERVED, *shorts("exchange"), flags("if_unused", "no_wait")],
        (21, "delete-ok"): [],
        (30, "bind"): [RESERVED, *shorts("destination", "source", "routing_key"), flags("no_wait"), ARGUMENTS],
        (31, "bind-ok"): [],
        (40, "unbind"): [RESERVED, *shorts("destination", "source", "routing_key"), flags("no_wait"), ARGUMENTS],
        (51, "unbind-ok"): [],
    },
    (50, "queue"): {
        (10, "declare"): [
            RESERVED,
            *shorts("queue"),
            flags("passive", "durable", "exclusive", "auto_delete", "no_wait"),
            ARGUMENTS,
        ],
        (11, "declare-ok"): [*shorts("queue"), COUNT, "consumer_count" / uint32],
        (20, "bind"): [RESERVED, *shorts("queue"), *ROUTE, flags("no_wait"), ARGUMENTS],
        (21, "bind-ok"): [],
        (30, "purge"): [RESERVED, *shorts("queue"), flags("no_wait")],
        (31, "purge-ok"): [COUNT],
        (40, "delete"): [RESERVED, *shorts("queue"), flags("if_unused", "if_empty", "no_wait")],
        (41, "delete-ok"): [COUNT],
        (50, "unbind"): [RESERVED, *shorts("queue"), *ROUTE, ARGUMENTS],
        (51, "unbind-ok"): [],
    },
    (60, "basic"): {
        (10, "qos"): ["prefetch_size" / uint32, "prefetch_count" / uint16, flags("global_")],
        (11, "qos-ok"): [],
        (20, "consume"): [
            RESERVED,
            *shorts("queue", "consumer_tag"),
            flags("no_local", "no_ack", "exclusive", "no_wait"),
            ARGUMENTS,
        ],
        (21, "consume-ok"): shorts("consumer_tag"),
        (30, "cancel"): [*shorts("consumer_tag"), flags("no_wait")],
        (31, "cancel-ok"): shorts("consumer_tag"),
        (40, "publish"): [RESERVED, *ROUTE, flags("mandatory", "immediate")],
        (50, "return"): ["reply_code" / uint16, *shorts("reply_text"), *ROUTE],
        (60, "deliver"): [*shorts("consumer_tag"), TAG, flags("redelivered"), *ROUTE],
        (70, "get"): [RESERVED, *shorts("queue"), flags("no_ack")],
        (71, "get-ok"): [TAG, flags("redelivered"), *ROUTE, COUNT],
        (72, "get-empty"): shorts("reserved_1"),
        (80, "ack"): [TAG, flags("multiple")],
        (90, "reject"): [TAG, flags("requeue")],
        (100, "recover-async"): [flags("requeue")],
        (110, "recover"): [flags("requeue")],
        (111, "recover-ok"): [],
        (120, "nack"): [TAG, flags("multiple", "requeue")],
    },
    (85, "confirm"): {(10, "select"): [flags("no_wait")], (11, "select-ok"): []},
    (90, "tx"): {
        (10, "select"): [],
        (11, "select-ok"): [],
        (20, "commit"): [],
        (21, "commit-ok"): [],
        (30, "rollback"): [],
        (31, "rollback-ok"): [],
    },
}
METHODS = SymbolTable(
    "method",
    {
        number << 16 | index: f"{name}.{method}"
        for (number, name), methods in CLASSES.items()
        for index, method in methods
    },
)
METHOD = Struct(
    "method" / Symbols(uint32, METHODS) * "class and method, 16 bits each",
    "arguments"
    / Switch(
        this.method,
        {
            number << 16 | index: Struct(*fields, name=f"{name}-{method}".title().replace("-", ""))
            for (number, name), methods in CLASSES.items()
            for (index, method), fields in methods.items()
        },
    ),
    name="Method",
)

PROPERTIES: list[tuple[str, Node]] = [
    ("content_type", SHORT_STRING),
    ("content_encoding", SHORT_STRING),
    ("headers", TABLE),
    ("delivery_mode", Symbols(uint8, SymbolTable("delivery_mode", {1: "TRANSIENT", 2: "PERSISTENT"}))),
    ("priority", uint8),
    ("correlation_id", SHORT_STRING),
    ("reply_to", SHORT_STRING),
    ("expiration", SHORT_STRING),
    ("message_id", SHORT_STRING),
    ("timestamp", Timestamp(uint64, unit="s")),
    ("type", SHORT_STRING),
    ("user_id", SHORT_STRING),
    ("app_id", SHORT_STRING),
    ("cluster_id", SHORT_STRING),
]
CONTENT_HEADER = Struct(
    "class_id" / uint16,
    "weight" / Default(uint16, 0) * "not used",
    "body_size" / uint64 * "bytes of all body frames that follow",
    "has"
    / Bits(
        uint16,
        *(name / Bit(1) for name, _ in PROPERTIES),
        "unused" / Bit(1),
        "more_flags" / Bit(1),
        order="msb",
    ),
    *(name / If(this.has[name], form) for name, form in PROPERTIES),
    name="ContentHeader",
)

FRAME_TYPES = SymbolTable("frame_type", {1: "METHOD", 2: "HEADER", 3: "BODY", 8: "HEARTBEAT"})
FRAME = Struct(
    "type" / Symbols(uint8, FRAME_TYPES, closed=True),
    "channel" / uint16,
    "size" / Length(uint32, "payload", frame=True),
    "payload" / Switch(this.type, {1: METHOD, 2: CONTENT_HEADER, 3: rest(part=True), 8: Struct(name="Heartbeat")}),
    "end" / Const(uint8, 0xCE, hexadecimal=True),
    name="Frame",
    doc="a frame of any type",
)
PROTOCOL_HEADER = Struct(
    "name" / Const(Bytes(4), b"AMQP"),
    "protocol_id" / Const(uint8, 0),
    "version_major" / uint8,
    "version_minor" / uint8,
    "revision" / uint8,
    name="ProtocolHeader",
    doc="what a client sends before its first frame",
)
