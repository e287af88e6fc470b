"""Finds the ways to damage given bytes, by a walk over the decoded value along its layout."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

from wirekit import decoding, encoding, engine
from wirekit.compiler import ir
from wirekit.compiler.expressions import Expression
from wirekit.compiler.values import evaluated, look_up
from wirekit.compression import compress
from wirekit.errors import WirekitError
from wirekit.registry import registry
from wirekit.strategies.nodes import BOMB_CODECS, kinds_of, without_name, wrong_sizes
from wirekit.strategies.packing import pack
from wirekit.values import Record, field_of, pairs
from wirekit.wire.stream import Scope, join_path

_Change = Callable[[], bytes | None]


Recipe = tuple[str, str, _Change]
BOMB = 32 * 1024 * 1024
"""Bytes that the data of a bomb grows to."""


def recipes_of(
    key: str, data: bytes, context: dict[str, Any], decoded: engine.Decoded | None = None
) -> Iterator[Recipe]:
    """The mutations of bytes and of the value they decode to: (kind, path, function that applies it)."""
    decoded = decoded or decoding.decode(data, key, context=context)
    if decoded.error is not None:
        return
    data = data[: decoded.consumed]
    yield from Damage(key, data, decoded, context).recipes()


class Damage:
    """Walks over a decoded value along its layout, and lists the possible damage to each field."""

    def __init__(self, key: str, data: bytes, decoded: engine.Decoded, context: dict[str, Any]) -> None:
        self.key = key
        self.data = data
        self.value = decoded.value
        self.context = context
        self.places: dict[str, tuple[int, int]] = {"": (0, len(data))}
        self.messages: dict[str, list[int]] = {}
        self.sources = [source for source, _ in decoded.sources]
        self.inner: dict[str, tuple[int, int, int]] = {}
        self.compressed: tuple[tuple[str | int, ...], str] | None = None
        self.ends = set()
        for span in decoded.spans:
            if span.source and span.bit_start is None:
                self.inner[span.path] = span.source, span.start, span.end
            elif span.bit_start is None:
                self.places[span.path] = span.start, span.end
                self.ends |= {span.start, span.end}
                if span.kind == "tag":
                    self.messages.setdefault(_outside(_outside(span.path)), []).append(span.start)

    def recipes(self) -> Iterator[Recipe]:
        """(kind, path, function that creates the bytes)."""
        yield from self._visit(registry[self.key].layout, self.value, (), Scope.root(engine.Params(self.context)))
        for end in sorted(self.ends | {len(self.data) - 1}):
            if 0 <= end < len(self.data):
                path = next((path for path, place in self.places.items() if place[1] == end), "")
                yield "truncated", path, partial(_upto_byte, self.data, end)
        yield "trailing bytes", "", lambda: self.data + b"\x00\xff\x00"

    def _visit(self, node: ir.Node, value: Any, steps: tuple[str | int, ...], scope: Any) -> Iterator[Recipe]:
        if value is None:
            return
        match node:
            case ir.Structure(members=members):
                inner = scope.inner()
                inner.update(dict(pairs(value)))
                yield from self._structure(node, value, steps)
                for member in members:
                    yield from self._visit(member.node, field_of(value, member.name), (*steps, member.name), inner)
            case ir.Several(element=element):
                if isinstance(node.count, ir.Number):
                    yield from self._sizes("count", node.count, len(value), steps)
                for index, item in enumerate(value):
                    yield from self._visit(element, item, (*steps, index), scope)
            case ir.Blob(length=ir.Number() as number, text=text, coding=coding):
                data = value.encode(errors="surrogateescape") if text else value
                yield from self._sizes("length", number, len(data if coding is None else coding.encode(value)), steps)
            case ir.Bounded(length=number, node=inner):
                place = self.places.get(join_path(list(steps)))
                if place is not None:
                    yield from self._sizes("length", number, place[1] - place[0], steps)
                yield from self._visit(inner, value, steps, scope)
            case ir.Choice() | ir.Either():
                yield from self._visit_chosen(node, value, steps, scope)
            case ir.Packed(blob=blob, node=inner):
                if isinstance(value, Record):
                    yield from self._visit(blob, value.compressed, steps, scope)
                    codec, outside = self._codec(node, scope), self.compressed
                    self.compressed = None if codec is None else (steps, codec)
                    if codec in BOMB_CODECS and outside is None:
                        yield "bomb", join_path(list(steps)), partial(self._bombed, steps, codec)
                    yield from self._visit(inner, value.content, (*steps, "content"), scope)
                    self.compressed = outside
                else:
                    yield from self._visit(blob, value, steps, scope)
            case ir.Reference(key=key):
                yield from self._visit(registry[key].layout, value, steps, scope)
            case ir.Fallback(node=inner):
                if not isinstance(value, bytes | str):
                    yield from self._visit(inner, value, steps, scope)
            case ir.Number(groups=groups):
                if "endless varint" in kinds_of(node):
                    yield "endless varint", join_path(list(steps)), lambda: self._endless(steps, groups)
            case ir.Named(table=table, number=number, closed=closed):
                unknown = without_name(table, number.low, number.high)
                if unknown is not None and closed:
                    yield self._replaced("unknown symbol", number, unknown, steps)
                elif unknown is not None:
                    yield self._unknown(number, unknown, steps)
            case ir.BitFields(fields=fields):
                for field in fields:
                    yield from self._bit_field(field, value, (*steps, field.name))
            case ir.Constant(node=inner):
                yield from self._constant(inner, value, steps)
            case ir.Protobuf():
                yield from self._protobuf(steps)
            case ir.Conditional(node=inner) | ir.Optional(node=inner):
                yield from self._visit(inner, value, steps, scope)

    def _codec(self, node: ir.Packed, scope: Any) -> str | None:
        results = self._values(node.on, scope)
        return next((codec for values, codec in node.codecs if values == results), None)

    def _visit_chosen(self, node: ir.Choice | ir.Either, value: Any, steps: tuple[str | int, ...], scope: Any) -> Any:
        results = self._values((node.condition,) if isinstance(node, ir.Either) else node.on, scope)
        if results is None:
            return
        if isinstance(node, ir.Either):
            chosen: ir.Node | None = node.then if results[0] else node.otherwise
        else:
            chosen = node.case(results) or node.otherwise
        if chosen is not None:
            yield from self._visit(chosen, value, steps, scope)

    def _values(self, trees: tuple[Expression, ...], scope: Any) -> tuple[Any, ...] | None:
        """The values of expressions; None if one of them is not known."""
        return evaluated(trees, partial(look_up, scope), self.context)

    def _structure(self, node: ir.Structure, value: Any, steps: tuple[str | int, ...]) -> Iterator[Recipe]:
        for measure in node.measures:
            member = node.members[measure.at]
            number, stored = ir.bare(member.node), field_of(value, member.name)
            if stored is None or not isinstance(number, ir.Number):
                continue
            for size, wrong in wrong_sizes(number, stored):
                yield self._set_and_keep(f"length {size}", steps, member.name, wrong)
            if measure.bounds and measure.last > measure.at:
                yield self._trailing(steps, member.name)
        for checked in node.sums:
            member = node.members[checked.at]
            stored = field_of(value, member.name)
            if stored is not None:
                changed = bytes([stored[0] ^ 1]) + stored[1:] if isinstance(stored, bytes) else stored ^ 1
                yield self._set_and_keep("checksum", steps, member.name, changed)

    def _bit_field(self, field: ir.BitField, value: Any, steps: tuple[str | int, ...]) -> Iterator[Recipe]:
        if field.name.startswith("reserved") and not value[field.name]:
            yield self._set("reserved bit", steps, 1)
        if field.table is not None:
            unknown = without_name(field.table, 0, field.most)
            if unknown is not None:
                yield self._set("unknown symbol", steps, unknown)

    def _constant(self, node: ir.Node, value: Any, steps: tuple[str | int, ...]) -> Iterator[Recipe]:
        if isinstance(value, int) and steps and isinstance(steps[-1], str):
            yield self._set_and_keep("constant", steps[:-1], steps[-1], value ^ 1)
        else:
            yield "constant", join_path(list(steps)), lambda: self._flipped(steps)

    def _flipped(self, steps: tuple[str | int, ...]) -> bytes | None:
        place = self.places.get(join_path(list(steps)))
        if place is None or place[0] == place[1]:
            return None
        last = place[1] - 1
        return self.data[:last] + bytes([self.data[last] ^ 1]) + self.data[last + 1 :]

    def _sizes(self, prefix: str, number: ir.Number, size: int, steps: tuple[str | int, ...]) -> Iterator[Recipe]:
        """Damage to a length or count prefix, which is only in the bytes."""
        for name, wrong in wrong_sizes(number, size):
            yield self._replaced(f"{prefix} {name}", number, wrong, steps, f"${prefix}")

    def _replaced(self, name: str, number: ir.Number, wrong: int, steps: tuple[str | int, ...], *part: str) -> Recipe:
        path, compressed = join_path([*steps, *part]), self.compressed

        def change() -> bytes | None:
            data = pack(number, wrong)
            if data is None:
                return None
            if compressed is not None:
                return None if number.groups else self._repacked(path, data, *compressed)
            place = self.places.get(path)
            if place is None or (number.groups and len(data) > place[1] - place[0]):
                return None
            if number.form is not None:  # of the same length, so that nothing else is wrong
                data = number.form.write(wrong, place[1] - place[0])
            return _over(self.data, place[0], data)

        return name, join_path(list(steps)), change

    def _unknown(self, number: ir.Number, unknown: int, steps: tuple[str | int, ...]) -> Recipe:
        """A number without a name; written into the bytes if it selects a layout, as no value can contain it."""
        name, path, by_value = self._set("unknown symbol", steps, unknown)
        in_bytes = self._replaced(name, number, unknown, steps)[2]
        return name, path, lambda: by_value() or in_bytes()

    def _repacked(self, path: str, data: bytes, steps: tuple[str | int, ...], codec: str) -> bytes | None:
        """The bytes with a number replaced inside compressed data, which is compressed again."""
        place = self.inner.get(path)
        if place is None:
            return None
        compressed = compress(codec, _over(self.sources[place[0] - 1], place[1], data))
        return self._encoded(lambda value: _with_item(value, steps, compressed))

    def _set(self, name: str, steps: tuple[str | int, ...], wrong: Any) -> Recipe:
        return name, join_path(list(steps)), lambda: self._encoded(lambda value: _with_item(value, steps, wrong))

    def _bombed(self, steps: tuple[str | int, ...], codec: str) -> bytes | None:
        """The bytes with compressed data replaced by data that decompresses to far more."""
        return self._encoded(lambda value: _with_item(value, steps, _bomb(codec)))

    def _set_and_keep(self, name: str, steps: tuple[str | int, ...], member: str, wrong: Any) -> Recipe:
        def change(value: Any) -> Any:
            record = _at(value, steps)
            record[member] = wrong
            Record.keep(record, member)
            return value

        return name, join_path([*steps, member]), lambda: self._encoded(change)

    def _trailing(self, steps: tuple[str | int, ...], member: str) -> Recipe:
        def change(value: Any) -> Any:
            trailing = _at(value, steps)._beside().setdefault("trailing", {})
            trailing[member] = trailing.get(member, b"") + b"\x00\xff\x00"
            return value

        return "trailing bytes", join_path([*steps, member]), lambda: self._encoded(change)

    def _encoded(self, change: Callable[[Any], Any]) -> bytes | None:
        """The bytes of a changed copy of the value; None if the encoder refuses it."""
        try:
            return encoding.encode(self.key, change(copy.deepcopy(self.value)), context=self.context)
        except WirekitError:
            return None

    def _endless(self, steps: tuple[str | int, ...], groups: int) -> bytes | None:
        """The bytes with a varint extended beyond its maximal size."""
        place = self.places.get(join_path(list(steps)))
        return None if place is None else _over(self.data, place[0], b"\xff" * groups)[: max(len(self.data), place[1])]

    def _protobuf(self, steps: tuple[str | int, ...]) -> Iterator[Recipe]:
        path = join_path(list(steps))
        place, starts = self.places.get(path), self.messages.get(path)
        if place is None or not starts:
            return
        begin, end = max(starts), place[1]
        if begin < end:
            yield "endless varint", path, lambda: self.data[:begin] + b"\xff" * (end - begin) + self.data[end:]


def _upto_byte(data: bytes, end: int) -> bytes:
    return data[:end]


def _over(data: bytes, start: int, piece: bytes) -> bytes:
    """Bytes with a part replaced."""
    return data[:start] + piece + data[start + len(piece) :]


@cache
def _bomb(codec: str) -> bytes:
    return compress(codec, bytes(BOMB))


def _with_item(value: Any, steps: tuple[str | int, ...], item: Any) -> Any:
    """A value with the value at a place replaced."""
    if not steps:
        return item
    _at(value, steps[:-1])[steps[-1]] = item
    return value


def _at(value: Any, steps: tuple[str | int, ...]) -> Any:
    for step in steps:
        value = value[step]
    return value


def _outside(path: str) -> str:
    """The path of the message that holds a field: ``command.type`` and ``command.keys[2]`` → ``command``."""
    return path.rpartition(".")[0]
