"""A small valid value of any layout as a starting point; every call returns the same value, without random choices."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import NoneType
from typing import Any

from wirekit.codings import Coding, is_valid
from wirekit.compiler import ir
from wirekit.compiler.expressions import Expression, Literal, fields_of, operands_of
from wirekit.compiler.expressions import Field as FieldRead
from wirekit.compiler.values import LENGTH, Names, Unknown, evaluate
from wirekit.decoding import check_options, decode
from wirekit.encoding import built_key, encode
from wirekit.engine import Decoded
from wirekit.errors import Misfit, Misuse, WireError, plural
from wirekit.registry import registry
from wirekit.values import Symbol, SymbolTable, to_json
from wirekit.wire.protobuf import BYTES, Field, Message

TEXT = "text"
TIMES = {"s": 1_600_000_000, "ms": 1_600_000_000_000, "us": 1_600_000_000_000_000, "ns": 1_600_000_000_000_000_000}
MOST_ELEMENTS = 256
LARGEST = 1 << 24  # bytes of a field whose size is an expression
SETTLED = range(17)  # for a number that makes a size or count valid
DEEPEST = 4  # layouts that hold themselves


class _Computed(Unknown):
    """An expression reads a number that building computes from later fields."""


@dataclass(frozen=True, slots=True)
class _Omitted:
    """A field that is omitted because building computes it, with the value that expressions read, if known."""

    read: Any = Unknown


def example(key: str, *, context: Mapping[str, Any] | None = None) -> Any:
    """A small valid value in the JSON form, which ``encode`` accepts: lists of one element, zeros, short strings.

    Args:
        key: a schema key, or a protocol's name for a frame of its client stream.
        context: as for ``decode``.

    Raises:
        Misuse: for a key that does not exist, or if no small value is valid; ``wirekit.strategies`` finds larger ones.

    >>> import wirekit
    >>> value = wirekit.example("kafka.heartbeat.request.v0")
    >>> value["body"]
    {'group_id': 'text', 'group_generation_id': 0, 'member_id': 'text'}
    >>> value["body"]["group_id"] = "g"
    >>> wirekit.decode(wirekit.encode("kafka.heartbeat.request.v0", value), "kafka.heartbeat.request.v0").clean
    True
    """
    key = built_key(key)
    check_options("example", context)
    schema = registry[key]
    why = ""
    for optional, empty in ((False, False), (True, False), (False, True)):
        maker = _Maker(dict(context or {}), optional, empty)
        try:
            value = maker.value(schema.layout)
            data = encode(key, b"" if isinstance(value, _Omitted) else value, context=context)
            decoded = decode(data, key, context=context)
        except (WireError, Misfit, Unknown, RecursionError) as error:
            why = why or f": {error}"
            continue
        if decoded.clean and decoded.consumed == len(data):
            return to_json(decoded.value)
        why = why or f" that is valid: {_why_not(decoded)}"
    raise Misuse(f"{key} has no example{why}; wirekit.strategies.values({key!r}) draws values")


def _why_not(decoded: Decoded) -> str:
    """The error or failed check in the bytes of an example."""
    if decoded.error is not None:
        return f"its bytes do not decode: {decoded.error}"
    bad = [f"the {check.kind} check of {check.path} fails" for check in decoded.checks if check.status == "bad"]
    gaps = [f"{gap.path}: {plural(gap.length, 'unexplained byte')}" for gap in decoded.gaps]
    return next(iter([*bad, *gaps]), "it does not use all of its bytes")


class _Maker:
    """Makes the value of a layout.

    Args:
        optional: whether fields that may be left out at the end are present.
        empty: whether lists that end before given bytes are empty.
    """

    def __init__(self, context: dict[str, Any], optional: bool, empty: bool) -> None:
        self._context = context
        self._optional = optional
        self._empty = empty
        self._scopes: list[dict[str, Any]] = []
        self._depth = 0

    def value(self, node: ir.Node) -> Any:
        """A value of a node, or ``_Omitted``."""
        match node:
            case ir.Number(unit=str(unit)):
                return TIMES[unit]
            case ir.Number(real=real):
                return 0.0 if real else 0
            case ir.Boolean():
                return False
            case ir.Named(table=table):
                return _first(table)
            case ir.BitFields(fields=fields):
                return {field.name: 0 if field.table is None else _least(field.table, field.width) for field in fields}
            case ir.Blob(coding=coding):
                data = self._blob(node)
                return data if coding is None or not isinstance(data, bytes) else _coded(coding, data)
            case ir.Delimited(decimal=decimal):
                return 0 if decimal else TEXT
            case ir.Structure():
                return self._structure(node)
            case ir.Several():
                return self._several(node)
            case ir.When(condition=condition, node=inner):
                return self.value(inner) if self._of(condition) else None
            case ir.WhenNext(magic=b"", node=inner) if self._optional:
                return self.value(inner)
            case ir.Conditional():
                return None
            case ir.Either(condition=condition, then=then, otherwise=otherwise):
                return self.value(then if self._of(condition) else otherwise)
            case ir.Choice(on=on, cases=cases, otherwise=default):
                return self.value(self._chosen(on, dict(cases), default))
            case ir.Bounded(node=inner) | ir.Fallback(node=inner):
                return self.value(inner)
            case ir.Reference(key=key):
                return self._reference(key)
            case ir.Optional(node=ir.BitFields() as bits, default=Literal(value=default)):
                return bits.parted(default)
            case ir.Ahead(node=inner):
                return self.value(inner)
            case ir.Optional(default=Literal(value=default)) | ir.Constant(value=Literal(value=default)):
                return _Omitted(default)
            case ir.Packed(blob=blob, on=on, codecs=codecs, node=inner):
                compressed = tuple(map(self._of, on)) in [values for values, _ in codecs]
                return {"content": self.value(inner)} if compressed else self.value(blob)
            case ir.Protobuf(message=message):
                return _message(Message.by_full_name[message])
        return _Omitted()

    def _blob(self, node: ir.Blob) -> Any:
        if node.filler or node.sealed or not node.explained:
            return _omitted_bytes(node)
        if node.length is None or isinstance(node.length, ir.Number):
            return TEXT if node.text else b"" if node.part else TEXT.encode()
        try:
            size = self._size(node.length, LARGEST)
        except _Computed:
            size = len(TEXT)
        return "0" * size if node.text else bytes(size)

    def _size(self, tree: Expression, most: int) -> int:
        """A size or a count; if it is not valid, an earlier number is changed first."""
        with suppress(Unknown):
            return self._within(tree, most)
        for read in fields_of(tree):
            before = self._look(read.up, read.names)
            if type(before) is int:
                constants = [
                    each.value for each in operands_of(tree) if isinstance(each, Literal) and type(each.value) is int
                ]
                for number in (*SETTLED, *constants, before):
                    self._settle(read, number)
                    with suppress(Unknown):
                        return self._within(tree, most)
        return self._within(tree, most)

    def _within(self, tree: Expression, most: int) -> int:
        size = self._of(tree)
        if not isinstance(size, int) or not 0 <= size <= most:
            raise Unknown(f"the size {tree} must be from 0 to {most}, not {size}")
        return size

    def _structure(self, node: ir.Structure) -> dict[str, Any]:
        value: dict[str, Any] = {}
        ends = b""  # the bytes before which the last member ended
        self._scopes.append(value)
        try:
            for index, member in enumerate(node.members):
                inner = member.node
                if ends and isinstance(inner, ir.Blob) and inner.length is None:
                    value[member.name] = _decoded(inner, ends)
                elif index not in node.computed:
                    value[member.name] = self.value(inner)
                else:
                    bare = ir.bare(inner)
                    value[member.name] = _omitted_bytes(bare) if isinstance(bare, ir.Blob) else _Omitted()
                ends = inner.until if isinstance(inner, ir.Several) else b""
        finally:
            self._scopes.pop()
        return {name: item for name, item in value.items() if not isinstance(item, _Omitted)}

    def _chosen(
        self, on: tuple[Expression, ...], cases: dict[tuple[Any, ...], ir.Node], default: ir.Node | None
    ) -> ir.Node:
        """The alternative that earlier fields select; if these are not fixed yet, the first one."""
        try:
            node = cases.get(tuple(map(self._of, on)))
        except Unknown:
            node = None
        if node is None and default is not None and not self._unexplained(default, on):
            return default
        if node is None:
            values, node = next(iter(cases.items()))
            for expression, number in zip(on, values, strict=True):
                self._settle(expression, number)
        return node

    def _unexplained(self, default: ir.Node, on: tuple[Expression, ...]) -> bool:
        """Whether another alternative has more content, and earlier fields can select it."""
        return (
            isinstance(default, ir.Blob) and not default.explained and all(isinstance(each, FieldRead) for each in on)
        )

    def _settle(self, expression: Expression, number: Any) -> None:
        """Sets an earlier field to the value that the alternative after it needs."""
        match expression:
            case FieldRead(up=up, names=(name,)) if up < len(self._scopes):
                self._scopes[-1 - up][name] = number
            case FieldRead(up=up, names=(name, inner)) if isinstance(self._look(up, (name,)), dict):
                self._scopes[-1 - up][name][inner] = number

    def _several(self, node: ir.Several) -> Any:
        expression = node.announced if isinstance(node.count, (ir.Number, NoneType)) else node.count
        try:
            count = 1 if expression is None else self._size(expression, MOST_ELEMENTS)
        except Unknown:
            count = 1  # it is computed from the elements
        if self._empty and node.until:
            count = 0
        elements = [self.value(node.element) for _ in range(count)]
        return [b"" if isinstance(element, _Omitted) else element for element in elements]

    def _reference(self, key: str) -> Any:
        if self._depth >= DEEPEST:
            raise Unknown(f"{key} contains itself")
        self._depth += 1
        try:
            return self.value(registry[key].layout)
        finally:
            self._depth -= 1

    def _of(self, expression: Expression) -> Any:
        try:
            return evaluate(expression, self._look, self._context)
        except _Computed:
            raise
        except Unknown as error:
            raise Unknown(str(error) or f"{expression} has no value") from None

    def _look(self, up: int, names: Names) -> Any:
        if up >= len(self._scopes):
            return None
        value: Any = self._scopes[-1 - up]
        for name in names:
            if name == LENGTH:
                value = len(value or ())
            elif isinstance(value, Mapping):
                value = value.get(name)
            if isinstance(value, _Omitted):
                value = value.read
            if value is Unknown:
                raise _Computed(f"{'.'.join(names)} is computed")
        return value


def _omitted_bytes(node: ir.Blob) -> _Omitted:
    """Bytes that building computes; expressions can read their length if it is fixed."""
    size = ir.fixed_size(node)
    return _Omitted() if size is None or size > LARGEST else _Omitted(bytes(size))


def _decoded(node: ir.Blob, data: bytes) -> Any:
    """The value of the bytes of a field."""
    if node.coding is None:
        return data.decode(errors="surrogateescape") if node.text else data
    if not is_valid(node.coding, data):
        raise Unknown(f"the bytes 0x{data.hex()} have no value")
    return node.coding.decode(data)


def _coded(coding: Coding, data: bytes) -> Any:
    """The value of bytes of this size that have one."""
    for each in (data, *(bytes([byte]) * len(data) for byte in b"\x01 0a")):
        near = coding.nearest(each)
        if is_valid(coding, near):
            return coding.decode(near)
    raise Unknown(f"the bytes 0x{data.hex()} have no value")


def _first(table: SymbolTable) -> Symbol:
    return min(table, key=lambda symbol: (int(symbol) < 0, int(symbol)))


def _least(table: SymbolTable, width: int) -> int:
    return min((int(symbol) for symbol in table if 0 <= int(symbol) < 1 << width), default=0)


def _message(message: Message) -> dict[str, Any]:
    """The required fields of a message, and the one that its selector names."""
    value: dict[str, Any] = {
        field.name: [_scalar(field)] if field.repeated else _scalar(field) for field in message.required
    }
    selected = message.fields.get(value.get(message.selector, 0)) if message.selector else None
    if selected is not None and selected.message is not None:
        value[selected.name] = _message(selected.message)
    return value


def _scalar(field: Field) -> Any:
    if field.message is not None:
        return _message(field.message)
    if field.table is not None:
        return int(_first(field.table))
    if field.kind == "bool":
        return False
    if field.wire_type == BYTES:
        return TEXT if field.kind == "string" else TEXT.encode()
    return 0
