"""Where the fields of a protobuf message lie, of one that is known to decode."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

from wirekit.compiler.source import Unusual
from wirekit.values import Span
from wirekit.wire.protobuf import BYTES, FIXED64, LAST_BYTE, VARINT, Message

if TYPE_CHECKING:
    from wirekit.compiler.trace import State

SIZES = {FIXED64: 8}
span = functools.partial(tuple.__new__, Span)


class _Known(NamedTuple):
    """A field by its tag: ``size`` of its bytes, 0 for a varint, None when a length stands in front."""

    name: str
    repeated: bool
    size: int | None
    kind: str
    message: Message | None


@functools.cache
def _fields(message: Message) -> dict[int, _Known]:
    """The fields by tag, as they are written unless packed."""
    found = {}
    for number, field in message.fields.items():
        size = {VARINT: 0, BYTES: None}.get(field.wire_type, SIZES.get(field.wire_type, 4))
        kind = "number" if size is not None else "text" if field.kind == "string" else "bytes"
        found[number << 3 | field.wire_type] = _Known(field.name, field.repeated, size, kind, field.message)
    return found


def trace_message(message: Message, b: bytes, p: int, e: int, path: str, state: State) -> None:
    """Adds the spans of the message in b[p:e].

    Raises:
        Unusual: for packed numbers, and fields that the descriptor does not know.
        NoRoom: for more spans than there is memory for.
    """
    source, origin, spans = state.source, state.origin, state.spans
    fields, add, inner = _fields(message), spans.append, path and path + "."
    indexes: dict[str, int] = {}
    begin = p + origin
    while p < e:
        start = p
        tag, p = _varint(b, p)
        known = fields.get(tag)
        if known is None:
            raise Unusual
        name, repeated, size, kind, below = known
        where = inner + name
        if repeated:
            index = indexes[name] = indexes.get(name, -1) + 1
            where = f"{where}[{index}]"
        add(span((f"{where}.$tag", start + origin, p + origin, source, None, None, "tag")))
        start = p
        if size is None:
            size, p = _varint(b, p)
            add(span((f"{where}.$length", start + origin, p + origin, source, None, None, "length")))
            start = p
            p += size
        elif size:
            p += size
        else:
            _, p = _varint(b, p)
        if below is None:
            add(span((where, start + origin, p + origin, source, None, None, kind)))
        else:
            trace_message(below, b, start, p, where, state)
        state.charge(where)
    add(span((path, begin, e + origin, source, None, None, "record")))


def _varint(b: bytes, p: int) -> tuple[int, int]:
    """(value, position behind it)."""
    value = b[p]
    p += 1
    if value < LAST_BYTE:
        return value, p
    value &= 0x7F
    shift = 7
    while True:
        byte = b[p]
        p += 1
        value |= (byte & 0x7F) << shift
        if byte < LAST_BYTE:
            return value, p
        shift += 7
