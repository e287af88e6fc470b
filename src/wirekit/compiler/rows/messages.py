"""Decoding code for protobuf messages in canonical form: fields in order, shortest varints, none unknown or missing.

``wirekit.wire.protobuf`` reads all other messages.
"""

from __future__ import annotations

import functools
import struct
from typing import Any, NamedTuple

from wirekit.compiler.rows.state import Site, State, joined, span
from wirekit.compiler.source import Unusual
from wirekit.errors import WireError
from wirekit.values import Record
from wirekit.varints import ZIGZAG
from wirekit.wire.costs import BYTES, EXTRAS, VERDICT
from wirekit.wire.protobuf import (
    DEEPEST,
    LARGEST,
    LAST_BYTE,
    VARINT,
    Field,
    Message,
    blank,
    encoded_number,
    number_of,
    parse_message,
    refused,
    set_extra,
)
from wirekit.wire.stream import Reader, Session

REASONS = (Unusual, IndexError, UnicodeDecodeError, struct.error)
"""The exceptions of ``read_message`` for a message in another form."""
LONGEST_VARINT = 63
"""The most bits of a varint before its last byte."""


class Refused(Unusual):
    """Readers refuse the message, it ends too early or exceeds the memory limit: reading it in any form fails."""


class _Known(NamedTuple):
    """A field by its tag.

    Attributes:
        plain: a number below this is the value of its varint.
        fixed: the function that reads a number of fixed size; None for other fields.
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
    """The fields by the tag of their unpacked form; without floats, because NaN has many forms."""
    field_by_tag = {}
    for number, field in message.fields.items():
        if field.kind in ("double", "float"):
            continue
        plain = 0 if field.kind == "bool" or field.sign == ZIGZAG else field.high + 1
        fixed = struct.Struct(field.fixed) if field.fixed else None
        varint, text = field.wire_type == VARINT, field.kind == "string"
        field_by_tag[number << 3 | field.wire_type] = _Known(number, field.name, field, plain, fixed, varint, text)
    return field_by_tag


def message(state: State, kind: Message, b: bytes, p: int, e: int, q: str) -> Record:
    """The message in b[p:e] in any form; Unusual if it is not valid."""
    spans = state.spans
    room, charged, spans_before = state.room, state.charged, len(spans or ())
    try:
        return read_message(kind, b, p, e, state, q)
    except REASONS as reason:
        if reason.__class__ is not Unusual and b.__class__ is bytes:  # not the first bytes of a longer input
            raise Unusual from None
        state.room, state.charged = room, charged
        if spans is not None:
            del spans[spans_before:]
    session = Session(state.protocol, state.limits)
    session.allowance, session.spans = state, spans
    session.path += [q] if q else []
    try:
        record = parse_message(kind, Reader(session, b, p, e, origin=state.origin, source=state.source))
    except WireError:
        raise Unusual from None
    if session.checks:
        raise Unusual
    state.charged += len(spans or ()) - spans_before
    return record


def read_message(message: Message, b: bytes, p: int, e: int, state: State, q: str, depth: int = 0) -> Record:
    """The message in b[p:e], nested in ``depth`` messages; the state receives the spans if it records them.

    Raises:
        Unusual, IndexError, UnicodeDecodeError, struct.error: it is not in canonical form, or not valid.
    """
    fields = _fields(message)
    record, contents = blank(message)
    cost, last, begin, where = message.cost, 0, p, ""
    tracing, inner = state.spans is not None, q and q + "."
    while p < e:
        first = p
        tag = b[p]
        p += 1
        if tag >= LAST_BYTE:
            tag, p = _varint(b, p - 1)
        declared = fields.get(tag)
        if declared is None:
            raise Unusual
        number, name, field, plain, fixed, varint, text = declared
        if number <= last and (number < last or not field.repeated):
            raise Unusual
        last = number
        cost += BYTES
        if cost > state.room:
            raise Refused
        start = p
        if tracing:
            where = f"{inner}{name}[{len(contents[name])}]" if field.repeated else inner + name
            _add_span(state, where + ".$tag", first, p, "tag")
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
                if tracing:
                    _add_span(state, where + ".$length", start, p, "length")
                start = p
                p += value
                if p > e:
                    raise Refused
                if field.message is not None:
                    if depth == DEEPEST:
                        raise Unusual
                    value = read_message(field.message, b, start, p, state, where, depth + 1)
                else:
                    value = b[start:p]
                    if text:
                        value = value.decode()
        if tracing:
            if field.message is None:
                _add_span(state, where, start, p, "number" if fixed or varint else "text" if text else "bytes")
            state.charge_spans(where)
        if field.repeated:
            contents[name].append(value)
        else:
            contents[name] = value
    if p != e:
        raise Refused
    if (message.required or message.selector) and any(refused(message, contents.get)):
        if depth or state.gaps is None:
            raise Refused
        _report(message, record, state, q, begin)
    if cost > state.room:
        raise Refused
    state.room -= cost
    if tracing:
        _add_span(state, q, begin, e, "record")
    return record


def _report(message: Message, record: Record, state: State, q: str, begin: int) -> None:
    """The verdicts on the values that readers refuse in the message at a path."""
    keep = []
    for name, requirement, stored in refused(message, record._get):
        site = Site(name, "required", "bad", True, f"readers expect {requirement}")
        state.checks.append((site, q, (stored, None), begin, state.source))
        state.charge(VERDICT + len(joined(q, name)) + len(site.note))
        keep.append(name)
    state.bad = True
    state.charge(EXTRAS)
    set_extra(record, {"keep": keep})


def _add_span(state: State, path: str, start: int, end: int, kind: str) -> None:
    """Records a span."""
    assert state.spans is not None
    state.spans.append(span((path, start + state.origin, end + state.origin, state.source, None, None, kind)))


def _varint(b: bytes, p: int) -> tuple[int, int]:
    """(value, position after it) of a varint of several bytes."""
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
