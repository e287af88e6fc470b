"""The vocabulary that layouts are written in: construct nodes whose parameters the compiler can read.

A layout is a ``Struct`` of ``"name" / node``. Integers are named after width and sign (``int16``, ``uint32le``),
strings and bytes take their length prefix, conditions and sizes are construct's ``this`` expressions. Nodes read from
(buffer, position, limit): nothing inside a length can read past it. The numbers that follow from other fields
(``Length``, ``Checked``) are verdicts when parsed, and computed when built.

>>> from wirekit.wire import Checked, Length, String, Struct, int32, uint32
>>> Frame = Struct("size" / Length(int32), "crc" / Checked(uint32, "crc32"), "text" / String(int32))
"""

from __future__ import annotations

from construct import len_, this

from wirekit.wire.blobs import Address, Bytes, Delimited, Padding, String, rest, unexplained
from wirekit.wire.composite import (
    Array,
    If,
    IfMore,
    IfNext,
    IfThenElse,
    Lookahead,
    OrBytes,
    RecordsToEnd,
    Ref,
    Repeat,
    Sized,
    Struct,
    Switch,
)
from wirekit.wire.compressed import Compressed
from wirekit.wire.derived import Checked, Const, Default, Length
from wirekit.wire.encrypted import Encrypted
from wirekit.wire.message import Protobuf
from wirekit.wire.node import Node, context
from wirekit.wire.numbers import (
    Bit,
    Bits,
    Flag,
    Integer,
    Symbols,
    Timestamp,
    float64,
    int8,
    int16,
    int16le,
    int32,
    int32le,
    int64,
    int64le,
    uint8,
    uint16,
    uint16le,
    uint32,
    uint32le,
    uint64,
    uint64le,
)
from wirekit.wire.refused import Refused, unnamed
from wirekit.wire.stream import Limits
from wirekit.wire.told import CountOf, SizeOf

__all__ = [
    "Array",
    "Bit",
    "Bits",
    "Address",
    "Bytes",
    "Checked",
    "Compressed",
    "Const",
    "CountOf",
    "Default",
    "Delimited",
    "Encrypted",
    "Flag",
    "If",
    "IfMore",
    "IfNext",
    "IfThenElse",
    "Integer",
    "Length",
    "Limits",
    "Lookahead",
    "Node",
    "OrBytes",
    "Padding",
    "Protobuf",
    "RecordsToEnd",
    "Ref",
    "Refused",
    "Repeat",
    "SizeOf",
    "Sized",
    "String",
    "Struct",
    "Switch",
    "Symbols",
    "Timestamp",
    "context",
    "float64",
    "int8",
    "int16",
    "int16le",
    "int32",
    "int32le",
    "int64",
    "int64le",
    "len_",
    "rest",
    "this",
    "uint8",
    "uint16",
    "uint16le",
    "uint32",
    "uint32le",
    "uint64",
    "uint64le",
    "unexplained",
    "unnamed",
]
