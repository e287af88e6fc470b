"""A layout in words: one line per field, for ``wirekit schemas KEY`` and the documentation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from wirekit.errors import WirekitError
from wirekit.values import SymbolTable, to_json
from wirekit.wire.arguments import expression_text
from wirekit.wire.blobs import Address, Bytes, Delimited, Padding
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
    bare,
)
from wirekit.wire.compressed import Compressed
from wirekit.wire.derived import Checked, Const, Default, Length
from wirekit.wire.encrypted import Encrypted
from wirekit.wire.message import Protobuf
from wirekit.wire.message_fields import DerivedFrom
from wirekit.wire.node import NOTHING, Node
from wirekit.wire.numbers import Bits, Duration, Flag, Integer, Symbols
from wirekit.wire.stream import Scope

PROTOBUF_FIELDS_INSIDE = 40
MOST_HEX = 16  # bytes that are shown
LINES_REPEATED = 12
"""The most lines of a structure that is described in each place; a longer one is described in the first."""


@dataclass(frozen=True, slots=True)
class FieldLine:
    """One line of a layout.

    Attributes:
        depth: the number of enclosing fields.
        name: the name of the field, or the value that selects a case.
        type: the form of its bytes.
        note: a remark.
        presence: ``required`` or ``default 0`` for a value to build; "" if it is computed or may be left out.
        table: the symbols of its values.
        node: the node of the field.
    """

    depth: int
    name: str
    type: str
    note: str = ""
    presence: str = ""
    table: SymbolTable | None = None
    node: Node | None = None


def describe(node: Node) -> list[FieldLine]:
    """The lines of a layout, from top to bottom.

    >>> from wirekit.wire import Length, String, Struct, int16, int32
    >>> [(line.name, line.type) for line in describe(Struct("size" / Length(int32), "name" / String(int16)))]
    [('size', 'int32, size of all fields after it'), ('name', 'string, length int16')]
    """
    return list(_lines(node, 0, set()))


def _lines(node: Node, depth: int, described: set[int]) -> Iterator[FieldLine]:
    """The lines of a node; ``described`` has the ids of the long structures in earlier lines."""
    if isinstance(node, Struct):
        for name, member in node.members:
            line = FieldLine(
                depth, name, type_of(member), node.docs_of.get(name) or "", presence(member), _table(member), member
            )
            yield _noted(line, node, [name])
            for line in _inside(member, depth + 1, described, node):
                yield _noted(line, node, [name, line.name]) if line.depth == depth + 1 else line
    else:
        yield from _inside(node, depth, described)


def _noted(line: FieldLine, node: Struct, names: list[str]) -> FieldLine:
    """A line with the values that peers refuse added to its note."""
    refused = [str(each) for each in node.refused if each.names == names]
    return replace(line, note="; ".join(filter(None, [line.note, *refused]))) if refused else line


def _inside(node: Node, depth: int, described: set[int], around: Struct | None = None) -> Iterator[FieldLine]:
    """The lines of what is in a node; ``around`` is the structure of which it is a field."""
    if isinstance(node, Struct):
        if id(node) in described:
            yield FieldLine(depth, "…", f"{type_of(node)} as above")
            return
        lines = list(_lines(node, depth, described))
        if len(lines) > LINES_REPEATED:
            described.add(id(node))
        yield from lines
    elif isinstance(node, Bits):
        for name, bit, shift in node.fields:
            end = shift + bit.width - 1
            place = f"bit {shift}" if bit.width == 1 else f"bits {shift}-{end}"
            table = "" if bit.table is None else ": " + ", ".join(str(symbol) for symbol in bit.table)
            yield FieldLine(depth, name, place + table, node.docs_of.get(name) or "")
    elif isinstance(node, Switch):
        for values, names, case in _cases(node, around):
            yield FieldLine(depth, f"{values}:", type_of(case), names)
            yield from _inside(case, depth + 1, described)
    elif isinstance(node, Compressed):
        yield FieldLine(depth, "content:", type_of(node.content))
        yield from _inside(node.content, depth + 1, described)
    elif isinstance(node, Protobuf):
        yield from _protobuf(node.message, depth, node.derived)
    elif not isinstance(node, Ref):
        for _, part in node.parts():
            yield from _inside(part, depth, described, around)


def _cases(node: Switch, around: Struct | None) -> list[tuple[str, str, Node]]:
    """(values, their symbols, layout) of the cases in order; those that share a layout together."""
    on = _expressions(node.on)
    table = next((_table(member) for name, member in around.members if name == on), None) if around else None
    symbol_by_text = {str(int(each)): each.symbol for each in table or () if each.symbol}
    shared: dict[int, tuple[list[str], Node]] = {}
    for value, case in node.parts():
        shared.setdefault(id(case), ([], case))[0].append(value)
    return [
        (", ".join(values), ", ".join(symbol_by_text[each] for each in values if each in symbol_by_text), case)
        for values, case in shared.values()
    ]


def _protobuf(message: Any, depth: int, derived: Mapping[str, DerivedFrom]) -> Iterator[FieldLine]:
    if depth and len(message.fields) > PROTOBUF_FIELDS_INSIDE:
        yield FieldLine(depth, "…", f"{len(message.fields)} fields")
        return
    for field in message.fields.values():
        label = "repeated " if field.repeated else "required " if field.required else ""
        kind = field.message.name.rpartition(".")[2] if field.message is not None else field.kind
        if field.table is not None:
            kind = field.table.name.rpartition(".")[2]
        note = f"{derived[field.name].quantity} of {derived[field.name].of}" if field.name in derived else ""
        yield FieldLine(depth, field.name, f"{label}{kind} = {field.number}", note, "", field.table)


def presence(node: Node) -> str:
    """Whether a value to build must have the field: ``required``, its default (``default 0``), or "" for neither.

    >>> from wirekit.wire import Default, Length, int32
    >>> presence(int32), presence(Default(int32, 64)), presence(Length(int32))
    ('required', 'default 64', '')
    """
    field = bare(node)
    if isinstance(field, (Length, Checked, Const)):
        return ""
    while isinstance(node, If):
        node = node.inner
    if isinstance(node, Switch):
        return "required" if {presence(case) for _, case in node.parts()} == {"required"} else ""
    try:
        value = node.default(Scope.root({}))
    except WirekitError:  # it depends on another field
        return ""
    if value is NOTHING:
        return "required"
    return f"default {to_json(value)}" if isinstance(node, Default) and isinstance(value, (int, str, bytes)) else ""


def _table(node: Node) -> SymbolTable | None:
    """The symbols of a field, or of the elements of a list."""
    if isinstance(node, Symbols):
        return node.table
    if isinstance(node, Struct) or len(node.parts()) != 1:
        return None
    return _table(node.parts()[0][1])


def tables(lines: list[FieldLine]) -> list[SymbolTable]:
    """The symbol tables of a layout's fields, each once."""
    return list({id(line.table): line.table for line in lines if line.table is not None}.values())


def type_of(node: Any) -> str:
    """A node's type in words, without the nodes inside it."""
    match node:
        case Duration():
            return f"{node!r}, duration in {node.counts}"
        case Integer():
            return repr(node) if node.unit is None else f"{node!r}, time in {node.unit}"
        case Flag():
            return f"boolean ({type_of(node.inner)})"
        case Symbols():
            return f"{type_of(node.inner)}, symbols: {node.table.name}{', no other value' if node.closed else ''}"
        case Bits():
            return f"{type_of(node.inner)}, bit fields"
        case Address():
            return f"{node.family} address, {node.length} bytes"
        case Encrypted():
            return "cipher text to the end"
        case Padding(to=int(multiple)):
            return f"padding to a multiple of {multiple}"
        case Padding():
            return f"padding × {expression_text(node.length)}"
        case Bytes():
            return _string(node)
        case Delimited():
            return f"{'decimal number' if node.number else 'text'} up to {node.end.decode()!r}"
        case Struct():
            return node.record.__name__ if node.record.__name__ != "Record" else "struct"
        case Array():
            return f"array of {type_of(node.element)}, count {node.count!r}{_null(node)}"
        case Repeat():
            return f"{expression_text(node.count)} × {type_of(node.element)}"
        case RecordsToEnd():
            tail = "; an incomplete last element is not read" if node.short_tail == "stop" else ""
            later = ", after the first," if node.except_first else ""
            marker = f" or{later} the bytes {_hex(node.until)}" if node.until else ""
            return f"{type_of(node.element)} until the end{marker}{tail}"
        case If():
            return f"{type_of(node.inner)}, if {expression_text(node.condition)}"
        case IfNext():
            return f"{type_of(node.inner)}, if the next bytes are {_hex(node.magic)}"
        case IfMore():
            return f"{type_of(node.inner)}, if bytes are left"
        case IfThenElse():
            return f"by {expression_text(node.condition)}"
        case Switch():
            return f"by {_expressions(node.on)}"
        case OrBytes():
            return f"{type_of(node.inner)}, or plain bytes if they do not fit"
        case Lookahead():
            return f"{type_of(node.inner)} {node.at} bytes ahead (not consumed)"
        case Sized():
            return f"{type_of(node.inner)}, size {node.length!r}{_null(node)}"
        case Ref():
            return f"→ {node.key}"
        case Compressed():
            return f"{type_of(node.inner)}, compressed by {_expressions(node.codec)}"
        case Length():
            add = f" + {node.add}" if node.add else ""
            more = " or more" if node.exceeds else ""
            return f"{type_of(node.inner)}, size of {_of(node.of)}{add}{more}"
        case Checked():
            content = " (content only)" if node.content else ""
            return f"{type_of(node.inner)}, {node.algorithm} of {_of(node.covers)}{content}"
        case Const(value=value, inner=inner):
            if node.hexadecimal and isinstance(value, int) and isinstance(inner, Integer):
                return f"{type_of(inner)} = 0x{value & inner.mask:0{2 * inner.length}x}"
            return f"{type_of(inner)} = {expression_text(value) if callable(value) else value}"
        case Default():
            return type_of(node.inner)
        case Protobuf():
            return f"protobuf {node.message.name}"
    return type(node).__name__


def _hex(data: bytes) -> str:
    return data.hex() if len(data) <= MOST_HEX else f"{data[:MOST_HEX].hex()}… ({len(data)} bytes)"


def _string(node: Bytes) -> str:
    kind = "string" if node.text else "bytes" if node.explained else "bytes of unknown meaning"
    if node.coding is not None:
        kind = f"{node.coding.name} {kind}"
    if node.length is None:
        return f"{kind} to the end"
    if node.prefix is None:
        return f"{kind} × {expression_text(node.length)}"
    return f"{kind}, length {node.prefix!r}{_null(node)}"


def _null(node: Bytes | Array | Sized) -> str:
    return "" if node.null is None else f", {node.null} is null"


def _of(of: str | tuple[str, str] | None) -> str:
    if of is None:
        return "all fields after it"
    return of if isinstance(of, str) else f"{of[0]} to {of[1]}"


def _expressions(on: Any) -> str:
    return ", ".join(map(expression_text, on if isinstance(on, tuple) else (on,)))
