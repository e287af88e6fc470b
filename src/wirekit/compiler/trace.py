"""The trace engine: Python generated from the IR that says where each field of a decoded value lies.

The rows engine decodes; its generated code gives up on everything that is not in order. What is in order lies where the
layout and the value say, so the code here walks both together, reads hardly a byte again, and gives the spans that the
reference engine gives, in the same order (docs/spans.md). Positions stay sums of constants and sizes as long as they
can, and the spans between two loops or branches are recorded by one call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from wirekit.compiler import ir
from wirekit.compiler.expressions import Expression
from wirekit.compiler.generated import by_key
from wirekit.compiler.source import (
    Code,
    Generator,
    Scope,
    Unusual,
    attribute,
    conditional,
    fixed,
    is_large,
    trees_in,
)
from wirekit.errors import Limit
from wirekit.values import Span
from wirekit.varints import from_zigzag, read_varint, to_zigzag, varint_size
from wirekit.wire.compressed import Opened
from wirekit.wire.costs import SPAN
from wirekit.wire.references import referred
from wirekit.wire.stream import Allowance, Reader, Session

Unit = Callable[..., int]


class NoRoom(Exception):
    """The spans take more memory than there is room for; the reference engine says where."""


class State:
    """What one trace keeps.

    Attributes:
        spans: what was found.
        source: the number of the buffer at work, 0 for the input.
        origin: absolute offset of its first byte.
        sources: decompressed data and their paths, in order.
        opened: how many of them were walked.
        allowance: how much memory there is room for, beside the value.
    """

    __slots__ = ("_charged", "allowance", "opened", "origin", "params", "protocol", "source", "sources", "spans")

    def __init__(
        self,
        protocol: str,
        params: Mapping[str, Any],
        allowance: Allowance,
        origin: int,
        sources: list[tuple[bytes, str]],
    ) -> None:
        self.protocol = protocol
        self.params = params
        self.allowance = allowance
        self._charged = 0
        self.origin = origin
        self.sources = sources
        self.source = 0
        self.opened = 0
        self.spans: list[Span] = []

    def charge(self, path: str, more: int = 0) -> None:
        """Counts the memory of the spans recorded since the last time, at this path, and of those that will be."""
        number = len(self.spans) + more
        self.allowance.room -= (number - self._charged) * (SPAN + len(path))
        self._charged = number
        if self.allowance.room < 0:
            raise NoRoom

    def open(self, unit: Unit, q: str, content: Any, *above: Any) -> None:
        """Traces decompressed data."""
        self.opened += 1
        plain, _ = self.sources[self.opened - 1]
        outer = self.source, self.origin
        self.source, self.origin = self.opened, 0
        unit(self, plain, 0, len(plain), q, content, *above)
        self.source, self.origin = outer

    def message(self, kind: Any, b: bytes, p: int, e: int, q: str) -> None:
        """Traces a protobuf message."""
        from wirekit.compiler.trace_protobuf import trace_message
        from wirekit.wire.protobuf import parse_message

        known = len(self.spans)
        try:
            trace_message(kind, b, p - self.origin, e - self.origin, q, self)
        except Unusual:
            del self.spans[known:]
        else:
            return
        session = Session(self.protocol, self.allowance.limits)
        session.allowance = self.allowance
        session.spans = self.spans
        session.path.append(q)
        reader = Reader(session, b, p - self.origin, e - self.origin, origin=self.origin, source=self.source)
        try:
            parse_message(kind, reader)
        except Limit:
            raise NoRoom from None
        self._charged = len(self.spans)


@dataclass(slots=True)
class Tracing(Code):
    """A function that traces. The position is a variable and what was passed since it was set.

    Attributes:
        at: the variable.
        past: bytes behind it.
        spans: the arguments of spans not yet recorded.
    """

    at: str = "p"
    past: int = 0
    spans: list[str] = field(default_factory=list)

    def place(self, further: int = 0) -> str:
        """The position, or one behind it."""
        past = self.past + further
        return f"{self.at} {'-' if past < 0 else '+'} {abs(past)}" if past else self.at

    def move(self, to: str) -> None:
        """Has the position in a variable of its own from here on."""
        self.at, self.past = to, 0

    def span(self, path: str, start: str, end: str, kind: str, bits: str = "None, None") -> None:
        """A span to be recorded; ``kind`` is an expression."""
        self.spans.append(f'span((f"{path}", {start}, {end}, n, {bits}, {kind}))')

    def flush(self) -> None:
        """Records what is waiting, before a loop or branch."""
        if len(self.spans) == 1:
            self.put(f"add({self.spans[0]})")
        elif self.spans:
            self.put("extend((")
            for each in self.spans:
                self.put(f"    {each},")
            self.put("))")
        self.spans.clear()


@dataclass(frozen=True, slots=True)
class Place:
    """A field's path, and what the paths of its members begin with, as the text of an f-string."""

    path: str
    inner: str

    def member(self, name: str) -> Place:
        """The place of a member."""
        return Place(self.inner + name, f"{self.inner}{name}.")

    def part(self, name: str) -> str:
        """The path of a length or count in front, or a delimiter behind."""
        return f"{self.inner}${name}"


class Writer(Generator):
    """Writes the tracer of one schema: (state, buffer, position, limit, path, value) → position behind the value.

    Args:
        key: the schema's key.
        layout: its IR.
        resolve: gives the unit of another schema by key, when the code runs.
    """

    purpose = "trace"
    arguments = "S, b, p, e, q, v"

    def __init__(self, key: str, layout: ir.Node, resolve: Callable[[str], Unit]) -> None:
        span = functools.partial(tuple.__new__, Span)
        super().__init__(key, layout, {"Opened": Opened, "resolve": resolve, "span": span})

    def _function(self, header: str, node: ir.Node, scope: Scope | None) -> list[str]:
        code = Tracing([header])
        code.put("spans = S.spans")
        code.put("n, add, extend = S.source, spans.append, spans.extend")
        code.put('r = q and q + "."')
        self._node(code, node, scope, Place("{q}", "{r}"), "e", "v")
        code.flush()
        code.put(f"return {code.place()}")
        return code.lines

    @staticmethod
    def _trees(node: ir.Node) -> Iterator[Expression]:
        return trees_in(node, ("condition",))

    # What follows writes the code of one kind of node each. ``v`` is the expression of the node's value.

    def _node(self, code: Tracing, node: ir.Node, scope: Scope | None, place: Place, e: str, v: str) -> None:
        match node:
            case ir.Structure():
                self._structure(code, node, scope, place, e, v)
            case ir.Several():
                self._several(code, node, scope, place, e, v)
            case ir.Blob():
                start, end, kind = self._blob(code, node, place, v)
                code.span(place.path, start, end, kind)
            case ir.Delimited():
                self._delimited(code, node, place, v)
            case ir.Coded():
                value, data, write = code.fresh("v"), code.fresh("v"), self._constant(node.coding.encode, "write")
                code.put(f"{value} = {v}")
                code.put(f"{data} = None if {value} is None else {write}({value})")
                start, end, kind = self._blob(code, node.blob, place, data)
                code.span(place.path, start, end, kind.replace("bytes", "text") if node.coding.text else kind)
            case ir.BitFields():
                self._bits(code, node, place)
            case ir.When():
                self._maybe(code, self._expression(node.condition, scope), node.node, scope, place, e, v)
            case ir.WhenMore():
                self._maybe(code, f"{code.place()} < {e}", node.node, scope, place, e, v)
            case ir.WhenNext():
                size = len(node.magic)
                start, end = f"{code.place()} - S.origin", f"{code.place(size)} - S.origin"
                condition = f"b[{start}:{end}] == {node.magic!r} and {code.place(size)} <= {e}"
                self._maybe(code, condition, node.node, scope, place, e, v)
            case ir.Either():
                self._either(code, node, scope, place, e, v)
            case ir.Choice():
                unit, above = self._chosen(code, node, scope)
                self._elsewhere(code, unit, above, place, e, v)
            case ir.Ahead():
                code.span(place.path, code.place(), code.place(), '"ahead"')
            case ir.Bounded():
                self._bounded(code, node, scope, place, e, v)
            case ir.Reference():
                self._elsewhere(code, f"resolve({node.key!r})", "", place, e, v)
            case ir.Packed():
                self._packed(code, node, scope, place, v)
            case ir.Protobuf():
                self._protobuf(code, node, place, e)
            case ir.Fallback() | ir.Optional() | ir.Constant():
                self._node(code, node.node, scope, place, e, v)
            case _:
                number = next(iter(fixed(node)), ir.varying(node))
                if number is not None:
                    self._number(code, number, place.path, v, "number")

    def _number(self, code: Tracing, number: ir.Number, path: str, v: str, kind: str) -> None:
        """A number of any form, whose value is the expression ``v``; the position is behind it then."""
        start = code.place()
        if number.groups:
            value = f"{self._constant(to_zigzag, 'to_zigzag')}({v})" if number.signed else v
            end = code.fresh("p")
            code.put(f"{end} = {start} + {self._constant(varint_size, 'varint_size')}({value})")
            code.move(end)
        else:
            code.past += number.size
        code.span(path, start, code.place(), f'"{kind}"')

    def _elsewhere(self, code: Tracing, unit: str, above: str, place: Place, e: str, v: str) -> None:
        """A node that has a function of its own."""
        code.flush()
        end = code.fresh("p")
        code.put(f'{end} = {unit}(S, b, {code.place()}, {e}, f"{place.path}", {v}{above})')
        code.move(end)

    def _structure(self, code: Tracing, node: ir.Structure, scope: Scope | None, place: Place, e: str, v: str) -> None:
        record = v
        if not v.isidentifier():
            record = code.fresh("v")
            code.put(f"{record} = {v}")
        names = {member.name: record + attribute(member.name) for member in node.members}
        start, inner = code.place(), Scope(names, scope)
        limits: list[tuple[int, str]] = []  # last member, limit outside
        for index, member in enumerate(node.members):
            for measure in ir.opening(node, index):
                limits.append((measure.last, e))
                e = self._limit(code, node, measure, names[node.members[measure.at].name], e)
            self._node(code, member.node, inner, place.member(member.name), e, names[member.name])
            while limits and limits[-1][0] == index:
                _, e = limits.pop()
        code.span(place.path, start, code.place(), '"record"')

    @staticmethod
    def _limit(code: Tracing, node: ir.Structure, measure: ir.Measure, number: str, e: str) -> str:
        """The variable with the limit that a length sets inside another; one that is absent sets none."""
        limit = code.fresh("e")
        announced = f"{code.place(-measure.add)} + {number}"
        if conditional(node.members[measure.at].node):
            announced = f"{e} if {number} is None else {announced}"
        code.put(f"{limit} = {announced}")
        if measure.zero_is_rest:
            code.put(f"if {number} == 0: {limit} = {e}")
        if measure.clip:
            code.put(f"if {limit} > {e}: {limit} = {e}")
        return limit

    def _several(self, code: Tracing, node: ir.Several, scope: Scope | None, place: Place, e: str, v: str) -> None:
        items = code.fresh("l")
        code.put(f"{items} = {v}")
        nullable = isinstance(node.count, ir.Number) and node.null is not None
        if isinstance(node.count, ir.Number):
            count = f"({node.null} if {items} is None else len({items}))" if nullable else f"len({items})"
            self._number(code, node.count, place.part("count"), count, "count")
        code.flush()
        start, end = code.fresh("s"), code.fresh("p")
        code.put(f"{start} = {end} = {code.place()}")
        code.move(end)
        if nullable:
            code.put(f"if {items} is not None:")
            code.depth += 1
        if isinstance(node.element, (ir.Number, ir.Boolean, ir.Named)) and fixed(node.element):
            self._numbers(code, place, items, end, fixed(node.element)[0].size)
        else:
            self._elements(code, node, scope, place, e, items)
        if nullable:
            code.depth -= 1
        kind = f'"absent" if {items} is None else "list"' if nullable else '"list"'
        code.span(place.path, start, end, kind)

    @staticmethod
    def _numbers(code: Tracing, place: Place, items: str, end: str, size: int) -> None:
        code.put(f'S.charge(f"{place.path}", len({items}))')
        code.put("extend([")
        code.put(f'    span((f"{place.path}[{{i}}]", {end} + i * {size}, {end} + i * {size} + {size}, n, None, None,')
        code.put(f'    "number")) for i in range(len({items}))')
        code.put("])")
        code.put(f"{end} += len({items}) * {size}")

    def _elements(self, code: Tracing, node: ir.Several, scope: Scope | None, place: Place, e: str, items: str) -> None:
        end, index, item = code.at, code.fresh("i"), code.fresh("v")
        path = code.fresh("q")
        code.put(f"for {index}, {item} in enumerate({items}):")
        code.depth += 1
        code.loops += 1
        code.put(f'{path} = f"{place.path}[{{{index}}}]"')
        self._node(code, node.element, scope, Place(f"{{{path}}}", f"{{{path}}}."), e, item)
        code.flush()
        code.put(f"S.charge({path})")
        if code.place() != end:
            code.put(f"{end} = {code.place()}")
        code.loops -= 1
        code.depth -= 1
        code.move(end)

    def _blob(self, code: Tracing, node: ir.Blob, place: Place, v: str) -> tuple[str, str, str]:
        """Traces the length in front; gives the start, end and kind of the bytes, which are passed."""
        if not v.isidentifier():
            value = code.fresh("v")
            code.put(f"{value} = {v}")
            v = value
        kind = "text" if node.text else "filler" if node.filler else "bytes"
        size = f"len({v})"
        if node.text:
            size = f"(len({v}) if {v}.isascii() else len({v}.encode()))"
        nullable = isinstance(node.length, ir.Number) and node.null is not None
        if isinstance(node.length, ir.Number):
            length = f"({size} if {v} is not None else {node.null})" if nullable else size
            self._number(code, node.length, place.part("length"), length, "length")
        start, end = code.place(), code.fresh("p")
        code.put(f"{end} = {start} + {size}" + (f" if {v} is not None else {start}" if nullable else ""))
        shown = f'"{kind}" if {v} is not None else "absent"' if nullable else f'"{kind}"'
        code.move(end)
        return start, end, shown

    @staticmethod
    def _delimited(code: Tracing, node: ir.Delimited, place: Place, v: str) -> None:
        start, end = code.place(), code.fresh("p")
        text = f"str({v})" if node.decimal else f"{v}.encode()"
        code.put(f"{end} = {start} + len({text})")
        code.span(place.path, start, end, '"number"' if node.decimal else '"text"')
        code.move(end)
        code.span(place.part("delimiter"), code.place(), code.place(len(node.end)), '"delimiter"')
        code.past += len(node.end)

    def _bits(self, code: Tracing, node: ir.BitFields, place: Place) -> None:
        (number,) = fixed(node)
        start, end = code.place(), code.place(number.size)
        for bit in node.fields:
            code.span(place.member(bit.name).path, start, end, '"bit"', f"{bit.shift}, {bit.width}")
        code.span(place.path, start, end, '"bits"')
        code.past += number.size

    def _maybe(
        self, code: Tracing, condition: str, node: ir.Node, scope: Scope | None, place: Place, e: str, v: str
    ) -> None:
        code.flush()
        end = code.fresh("p")
        start = code.at, code.past
        code.put(f"if {condition}:")
        self._branch(code, node, scope, place, e, v, end)
        code.at, code.past = start
        code.put("else:")
        code.depth += 1
        code.span(place.path, code.place(), code.place(), '"absent"')
        code.flush()
        code.put(f"{end} = {code.place()}")
        code.depth -= 1
        code.move(end)

    def _either(self, code: Tracing, node: ir.Either, scope: Scope | None, place: Place, e: str, v: str) -> None:
        code.flush()
        end = code.fresh("p")
        start = code.at, code.past
        code.put(f"if {self._expression(node.condition, scope)}:")
        self._branch(code, node.then, scope, place, e, v, end)
        code.at, code.past = start
        code.put("else:")
        self._branch(code, node.otherwise, scope, place, e, v, end)
        code.move(end)

    def _branch(
        self, code: Tracing, node: ir.Node, scope: Scope | None, place: Place, e: str, v: str, end: str
    ) -> None:
        """A node inside a branch, which leaves the position in the variable ``end``."""
        code.depth += 1
        if is_large(node):
            name, above = self._call(node, scope)
            self._elsewhere(code, name, above, place, e, v)
        else:
            self._node(code, node, scope, place, e, v)
        code.flush()
        code.put(f"{end} = {code.place()}")
        code.depth -= 1

    def _bounded(self, code: Tracing, node: ir.Bounded, scope: Scope | None, place: Place, e: str, v: str) -> None:
        size, number, limit = node.length.size, code.fresh("n"), code.fresh("e")
        if node.length.groups:
            read = self._constant(read_varint, "read_varint")
            at = f"b, {code.place()} - S.origin, {e} - S.origin"
            code.put(f"{number}, _ = {read}({at}, {node.length.groups}, {node.length.bits})")
            if node.length.signed:
                code.put(f"{number} = {self._constant(from_zigzag, 'from_zigzag')}({number})")
        else:
            order = "little" if node.length.little else "big"
            stored = f"b[{code.place()} - S.origin:{code.place(size)} - S.origin]"
            code.put(f"{number} = int.from_bytes({stored}, {order!r}, signed={node.length.signed})")
        self._number(code, node.length, place.part("length"), number, "length")
        code.put(f"{limit} = {code.place()} + {number}")
        if node.null is None:
            self._node(code, node.node, scope, place, limit, v)
        else:
            self._maybe(code, f"{number} != {node.null}", node.node, scope, place, limit, v)

    def _packed(self, code: Tracing, node: ir.Packed, scope: Scope | None, place: Place, v: str) -> None:
        value, content, data = code.fresh("v"), code.fresh("c"), code.fresh("v")
        code.put(f"{value} = {v}")
        code.put(f"{content} = {value}.__class__ is Opened")
        code.put(f"{data} = {value}.compressed if {content} else {value}")
        start, end, kind = self._blob(code, node.blob, place, data)
        code.flush()
        code.put(f"if {content}:")
        code.depth += 1
        code.span(place.member("compressed").path, start, end, '"bytes"')
        code.flush()
        name, above = self._call(node.node, scope)
        code.put(f'S.open({name}, f"{place.member("content").path}", {value}.content{above})')
        code.span(place.path, start, end, '"record"')
        code.flush()
        code.depth -= 1
        code.put("else:")
        code.depth += 1
        code.span(place.path, start, end, kind)
        code.flush()
        code.depth -= 1

    def _protobuf(self, code: Tracing, node: ir.Protobuf, place: Place, e: str) -> None:
        kind = self._message(node)
        code.flush()
        code.put(f'S.message({kind}, b, {code.place()}, {e}, f"{place.path}")')
        code.move(e)


@by_key
def unit(key: str) -> Unit:
    """The generated tracer of a schema, made when it is first asked for."""
    return writer(key).compile()


def writer(key: str) -> Writer:
    """The module of a schema, written and not compiled; its ``source`` can be read."""
    return Writer(key, referred(key).layout, unit)
