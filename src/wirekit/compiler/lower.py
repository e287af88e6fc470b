"""Lowers a construct graph to the layout IR. An unknown node is an error that names it and its path."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import fields
from typing import Any, cast

from wirekit.checksums import checksum
from wirekit.compiler import ir
from wirekit.compiler.expressions import Expression, Literal, expression
from wirekit.errors import Misuse
from wirekit.wire import blobs, composite, compressed, derived, encrypted, message, numbers

Lowerer = Callable[[Any, str], ir.Node]

# Layouts share parts, so the graph is lowered part by part and shared again: a tree of it would be thousands of times
# as large. The source is kept with its IR so that its id stays its own.
_Lowered = dict[int, tuple[Any, ir.Node]]
_parts: ContextVar[_Lowered | None] = ContextVar("_parts", default=None)
_placed: ContextVar[set[int]] = ContextVar("_placed")
"""Ids of the lengths and checksums that are members of a struct."""
_LENGTH_FACTS = [field.name for field in fields(ir.Measure)][3:]


def lower(source: Any, path: str = "") -> ir.Node:
    """The IR of a layout.

    Args:
        source: a node of ``wirekit.wire``.
        path: its path, for the error.

    Raises:
        Misuse: an unknown kind of node, a lambda, or an operator that cannot be compiled; the text has the path.

    >>> from wirekit.wire import Length, String, Struct, int16
    >>> print(ir.dump(lower(Struct("size" / Length(int16), "name" / String(int16)))))
    Structure name=Record measures=[Measure(at=0 first=1 last=1)]
      size: Number code=h size=2 signed=True
      name: Blob text=True
        length: Number code=h size=2 signed=True
    """
    parts = _parts.get()
    if parts is None:
        token, placed = _parts.set({}), _placed.set(set())
        try:
            return lower(source, path)
        finally:
            _parts.reset(token)
            _placed.reset(placed)
    if id(source) not in parts:
        parts[id(source)] = source, _lower(source, path)
    return parts[id(source)][1]


def _lower(source: Any, path: str) -> ir.Node:
    for kind in type(source).__mro__:
        lowerer = _LOWERERS.get(kind)
        if lowerer is not None:
            return lowerer(source, path)
    raise Misuse(f"{path or 'the layout'}: a {type(source).__name__} cannot be compiled; write it with wirekit.wire")


def _expression(source: Any, path: str) -> Expression:
    try:
        return expression(source)
    except Misuse as error:
        raise Misuse(f"{path or 'the layout'}: {error}") from None


def _number(source: numbers.Integer, path: str) -> ir.Number:
    return cast(ir.Number, lower(source, path))


def _integer(source: numbers.Integer, path: str) -> ir.Node:
    little = source.fmtstr[0] == "<" and source.length > 1 and source.form is None
    return ir.Number(source.fmtstr[1], source.length, source.signed, source.real, little, source.unit, source.form)


def _bits(source: numbers.Bits, path: str) -> ir.Node:
    fields = tuple(ir.BitField(name, bit.width, shift, bit.table) for name, bit, shift in source.fields)
    return ir.BitFields(_number(source.inner, path), fields)


def _bytes(source: blobs.Bytes, path: str) -> ir.Node:
    length: ir.Number | Expression | None = None
    if source.prefix is not None:
        length = _number(source.prefix, path)
    elif source.length is not None:
        length = _expression(source.length, path)
    filler = isinstance(source, blobs.Padding)
    text = source.text and source.coding is None
    return ir.Blob(length, source.null, text, source.explained, filler, source.part, coding=source.coding)


def _bit(source: numbers.Bit, path: str) -> ir.Node:
    raise Misuse(f"{path or 'the layout'}: a Bit must be a field of Bits")


def _struct(source: composite.Struct, path: str) -> ir.Node:
    computed = [composite.bare(member) for _, member in source.members]
    _placed.get().update(id(node) for node in computed if isinstance(node, (derived.Length, derived.Checked)))
    members = tuple(ir.Member(name, lower(member, ir.inner_path(path, name))) for name, member in source.members)
    measures = tuple(
        ir.Measure(at, first, last, *(getattr(length, fact) for fact in _LENGTH_FACTS))
        for at, (length, first, last) in source.lengths.items()
    )
    for at, checked, _, _ in source.checked:
        try:
            checksum(checked.algorithm)
        except Misuse as error:
            raise Misuse(f"{ir.inner_path(path, source.members[at][0])}: {error}") from None
    sums = tuple(
        ir.Sum(at, first, last, checked.algorithm, checked.content) for at, checked, first, last in source.checked
    )
    refusals = tuple(_expression(each.when, ir.inner_path(path, each.field)) for each in source.refused)
    return ir.Structure(source.record.__name__, members, measures, sums, tuple(source.derived_fields), refusals)


def _list(source: composite.Array | composite.Repeat | composite.RecordsToEnd, path: str, **facts: Any) -> ir.Node:
    """A list of any kind; ``facts`` are the fields of ``ir.Several`` besides its elements."""
    element = lower(source.element, f"{path}[]")
    return ir.Several(element, least=ir.minimum(element), **facts)


def _records(source: composite.RecordsToEnd, path: str) -> ir.Node:
    announced = None if source.count is None else _expression(source.count, path)
    stop, until, except_first = source.short_tail == "stop", source.until, source.except_first
    return _list(source, path, stop=stop, until=until, except_first=except_first, announced=announced)


def _switch(source: composite.Switch, path: str) -> ir.Node:
    on = source.on if isinstance(source.on, tuple) else (source.on,)
    cases = tuple(
        (value if isinstance(source.on, tuple) else (value,), lower(case, path)) for value, case in source.cases.items()
    )
    otherwise = None if source.otherwise is None else lower(source.otherwise, path)
    return ir.Choice(tuple(_expression(part, path) for part in on), cases, otherwise)


def _default(source: derived.Default, path: str) -> ir.Node:
    value = _expression(source.value, path) if callable(source.value) else Literal(source.value)
    return ir.Optional(lower(source.inner, path), value)


def _inner(source: derived.Length | derived.Checked, path: str) -> ir.Node:
    """The number of a length or checksum; the struct with it as a member stores the covered fields."""
    if id(source) not in _placed.get():
        kind = "length" if isinstance(source, derived.Length) else "checksum"
        raise Misuse(
            f"{path or 'the layout'}: a {kind} must be a field of a struct; only If, IfMore or Default may wrap it"
        )
    return lower(source.inner, path)


def _compressed(source: compressed.Compressed, path: str) -> ir.Node:
    on = source.codec if isinstance(source.codec, tuple) else (source.codec,)
    single = on is not source.codec
    codecs = tuple(((value,) if single else value, name) for value, name in source.codecs.items())
    size = None if source.size is None else _expression(source.size, path)
    blob = lower(source.inner, path)
    if not isinstance(blob, ir.Blob) or blob.coding is not None:
        raise Misuse(f"{path}: compressed data must be a byte string, not a {type(source.inner).__name__}")
    content = lower(source.content, ir.inner_path(path, "content"))
    return ir.Packed(blob, tuple(_expression(part, path) for part in on), codecs, content, size, source.streamed)


def _encrypted(source: encrypted.Encrypted, path: str) -> ir.Node:
    lower(source.content, ir.inner_path(path, "content"))
    return ir.Blob(None, None, False, True, False, part=True, sealed=True)


_LOWERERS: dict[type, Lowerer] = {
    numbers.Integer: _integer,
    numbers.Flag: lambda node, path: ir.Boolean(_number(node.inner, path)),
    numbers.Symbols: lambda node, path: ir.Named(_number(node.inner, path), node.table, node.closed),
    numbers.Bits: _bits,
    numbers.Bit: _bit,
    blobs.Bytes: _bytes,
    blobs.Delimited: lambda node, path: ir.Delimited(node.end, node.number, node.lines),
    composite.Struct: _struct,
    composite.Array: lambda node, path: _list(node, path, count=_number(node.count, path), null=node.null),
    composite.Repeat: lambda node, path: _list(node, path, count=_expression(node.count, path)),
    composite.RecordsToEnd: _records,
    composite.If: lambda node, path: ir.When(lower(node.inner, path), _expression(node.condition, path)),
    composite.IfThenElse: lambda node, path: ir.Either(
        _expression(node.condition, path), lower(node.then, path), lower(node.otherwise, path)
    ),
    composite.Switch: _switch,
    composite.IfNext: lambda node, path: ir.WhenNext(lower(node.inner, path), node.magic),
    composite.IfMore: lambda node, path: ir.WhenNext(lower(node.inner, path), b""),
    composite.OrBytes: lambda node, path: ir.Fallback(lower(node.inner, path)),
    composite.Lookahead: lambda node, path: ir.Ahead(lower(node.inner, path), node.at),
    composite.Sized: lambda node, path: ir.Bounded(lower(node.inner, path), _number(node.length, path), node.null),
    composite.Ref: lambda node, path: ir.Reference(node.key),
    derived.Const: lambda node, path: ir.Constant(lower(node.inner, path), _expression(node.value, path), node.fatal),
    derived.Default: _default,
    derived.Length: _inner,
    derived.Checked: _inner,
    compressed.Compressed: _compressed,
    encrypted.Encrypted: _encrypted,
    message.Protobuf: lambda node, path: ir.Protobuf(node.message.name, tuple(node.times.items())),
}
