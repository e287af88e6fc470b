"""Protobuf messages as writers write them: fields in order, shortest varints, nothing unknown, nothing missing.

Whatever else a message may be is ``Unusual`` here, and for ``wirekit.wire.protobuf`` to read.
"""

from __future__ import annotations

import functools
import struct
from typing import Any, NamedTuple

from wirekit.compiler.source import Unusual
from wirekit.values import Record
from wirekit.wire.costs import BYTES
from wirekit.wire.protobuf import DEEPEST, LARGEST, LAST_BYTE, VARINT, Field, Message, encoded_number, number_of
from wirekit.wire.stream import Allowance

REASONS = (Unusual, IndexError, UnicodeDecodeError, struct.error)
"""What ``read_message`` raises for a message that it does not read."""
LONGEST_VARINT = 63
"""The most bits in front of its last byte."""


set_extra = Record.__dict__["_extra"].__set__
"""``record._extra = ...`` without ``setattr``, which a sparse record has a function for."""


class _Known(NamedTuple):
    """A field by its tag.

    Attributes:
        plain: a number below this is the value that its varint says.
        fixed: how a number of fixed size is read, None for other fields.
    """

    number: int
    name: str
    field: Field
    plain: int
    fixed: struct.Struct | None
    varint: bool
    text: bool


@functools.cache
def _fields(message: Message) -> dict[int, _Known]:
    """The fields by tag, as they are written unless packed; without floats, of which NaN has many forms."""
    known = {}
    for number, field in message.fields.items():
        if field.kind in ("double", "float"):
            continue
        signed = field.kind in ("int32", "int64", "enum")
        plain = 1 << field.bits - signed if signed or field.kind in ("uint32", "uint64") else 0
        fixed = struct.Struct(field.fixed) if field.fixed else None
        varint, text = field.wire_type == VARINT, field.kind == "string"
        known[number << 3 | field.wire_type] = _Known(number, field.name, field, plain, fixed, varint, text)
    return known


def read_message(message: Message, b: bytes, p: int, e: int, allowance: Allowance, depth: int = 0) -> Record:
    """The message in b[p:e], ``depth`` messages inside of others.

    Raises:
        Unusual, IndexError, UnicodeDecodeError, struct.error: it is not written in the usual way, or not in order.
    """
    fields = _fields(message)
    record = message.record._blank()
    set_extra(record, None)
    held = record.__dict__
    for name in message.lists:
        held[name] = []
    cost, last = message.cost, 0
    while p < e:
        tag = b[p]
        p += 1
        if tag >= LAST_BYTE:
            tag, p = _varint(b, p - 1)
        known = fields.get(tag)
        if known is None:
            raise Unusual
        number, name, field, plain, fixed, varint, text = known
        if number <= last and (number < last or not field.repeated):
            raise Unusual
        last = number
        cost += BYTES
        value: Any
        if fixed is not None:
            (value,) = fixed.unpack_from(b, p)
            p += fixed.size
        else:
            value = b[p]
            p += 1
            if value >= LAST_BYTE:
                value, p = _varint(b, p - 1)
            if varint:
                if value >= plain:
                    raw, value = value, number_of(field, value)
                    if encoded_number(field, value) != raw:
                        raise Unusual
                elif field.table is not None:
                    value = field.table(value)
            else:
                start = p
                p += value
                if p > e:
                    raise Unusual
                if field.message is not None:
                    if depth == DEEPEST:
                        raise Unusual
                    value = read_message(field.message, b, start, p, allowance, depth + 1)
                else:
                    value = b[start:p]
                    if text:
                        value = value.decode()
        if field.repeated:
            held[name].append(value)
        else:
            held[name] = value
    if p != e or ((message.required or message.selector) and _is_refused(message, held)):
        raise Unusual
    allowance.room -= cost
    if allowance.room < 0:
        raise Unusual
    return record


def _is_refused(message: Message, held: dict[str, Any]) -> bool:
    """Whether readers refuse a message (see ``wirekit.wire.protobuf.refused``)."""
    for field in message.required:
        value = held.get(field.name)
        if value is None or (field.table is not None and value not in field.table):
            return True
    if not message.selector:
        return False
    value = held.get(message.selector)
    selected = message.fields.get(value) if value is not None else None
    if selected is None:
        return False
    table = message.by_name[message.selector].table
    return (table is None or value in table) and held.get(selected.name) in (None, [])


def _varint(b: bytes, p: int) -> tuple[int, int]:
    """(value, position behind it) of a varint of several bytes."""
    value = b[p] & 0x7F
    p += 1
    shift = 7
    while shift <= LONGEST_VARINT:
        byte = b[p]
        p += 1
        value |= (byte & 0x7F) << shift
        if byte < LAST_BYTE:
            if not byte or value > LARGEST:
                raise Unusual
            return value, p
        shift += 7
    raise Unusual
