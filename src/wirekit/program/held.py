"""Protobuf messages in a record, and fields that hold records, compressed or not, as other fields say."""

from __future__ import annotations

from dataclasses import dataclass

from wirekit.compiler import ir
from wirekit.compiler.expressions import Expression
from wirekit.program.columns import CONTENTS, Contents
from wirekit.program.facts import holds_records
from wirekit.program.messages import Place as Slot
from wirekit.program.messages import Tables, slot_at, tables
from wirekit.program.shared import Sharing
from wirekit.program.steps import Body, Copy, Emit, Let, Slice, Step, Switch, Test, Walk
from wirekit.program.unfit import unfit
from wirekit.program.values import LONGEST, Picked, Scope, Value

WIDTHS = {"int32": (-(1 << 31), (1 << 31) - 1), "enum": (-(1 << 31), (1 << 31) - 1), "bool": (0, 1)}
WIDTHS |= {"sint32": WIDTHS["int32"], "uint32": (0, (1 << 32) - 1), "int64": (-(1 << 63), (1 << 63) - 1)}
WIDTHS |= {"sint64": WIDTHS["int64"]}


@dataclass(slots=True)
class Held(Sharing):
    """Messages, and the lists that a record holds.

    Attributes:
        opaque: register for whether a field's bytes are not the plain content.
    """

    opaque: int = 0

    def protobuf(self, node: ir.Protobuf, path: str, limit: int) -> Value:
        """A message up to the limit."""
        number = len(self.messages)
        message = tables(self.key, node, path, len(self.columns))
        self.messages.append(message)
        first = len(self.reasons)
        self.reasons += message.reasons()
        there, good = self.fresh(), self.fresh()
        self.walked.append((number, there))
        self.put(Walk(number, limit, there, good, first))
        self.gaps = True
        self.put(Emit(self.verdict(path) if path else self.column("ok", "flag", "uint8"), good))
        return Value(inside=_fields(message, number, 1))

    def content(self, node: ir.Either | ir.Choice, path: str, limit: int, scope: Scope) -> Value:
        """A field that takes all bytes to the limit: bytes, records, or either of them compressed."""
        if self.contents is not None or self.packing is not None:
            raise unfit(self.key, path, node, "a second field that holds records")
        nothing = {"codec": 0, "listed": 0, "count": -1, "size": -1}
        self.told = {name: self.fresh(nothing[name]) for name in CONTENTS}
        self.opaque = self.fresh()
        if not self.maybe:
            self.clear([*((register, nothing[name]) for name, register in self.told.items()), (self.opaque, 0)])
        start, length = self.fresh(), self.fresh()
        self.put(Slice(start, length, limit))
        column = self.column(path, "bytes")
        self.put(Copy(column, start, length))
        self.contents = Contents(column.slot)
        self.branch(node, path, scope, self.contents)
        return Value(unfit="a field that holds records", length=length)

    def branch(self, node: ir.Node, path: str, scope: Scope, contents: Contents) -> None:
        """Finds out what the bytes are."""
        match node:
            case ir.Blob(length=None, part=part):
                if part:
                    self.put(Let(self.opaque, "=", self.constant(1)))
            case ir.Fallback(node=ir.Protobuf(message=message)):
                contents.messages.append(message)
                self.put(Let(self.told["listed"], "=", self.constant(1 + len(contents.messages))))
            case ir.Several(count=None, until=b"", stop=False, element=element):
                if contents.element is not None and contents.element is not element:
                    raise unfit(self.key, path, node, "records of two layouts")
                contents.element = element
                self.put(Let(self.told["listed"], "=", self.constant(1)))
                if node.announced is not None:
                    self.put(Let(self.told["count"], "=", self.amount(node.announced, scope, path)[0]))
            case ir.Either() | ir.Choice():
                nodes, join = self.alternatives(node, scope, path)
                bodies: list[Body] = []
                for inner in nodes:
                    if inner is None:
                        raise unfit(self.key, path, node)
                    with self.block() as body:
                        self.branch(inner, path, scope, contents)
                    bodies.append(body)
                step = join(bodies)
                assert step is not None
                self.put(step)
            case ir.Packed(blob=ir.Blob(length=None)):
                names = tuple(dict.fromkeys(name for _, name in node.codecs))
                if contents.codecs not in ((), names):
                    raise unfit(self.key, path, node, "compressed in two ways")
                contents.codecs = names
                codec = self.told["codec"]
                self.put(Let(self.opaque, "=", self.constant(1)))
                self.put(self.codec_of(node, codec, names, scope, path))
                with self.block() as body:
                    if node.size is not None:
                        self.put(Let(self.told["size"], "=", self.or_none(node.size, scope, path)))
                    self.branch(node.node, path, scope, contents)
                self.put(Test("!=", codec, self.constant(0), body))
            case _:
                raise unfit(self.key, path, node)

    def codec_of(self, node: ir.Packed, to: int, names: tuple[str, ...], scope: Scope, path: str) -> Step:
        """The step that sets a register to the number of the codec plus one."""
        on = [self.selector(tree, scope, path) for tree in node.on]
        rows: dict[str, list[tuple[int | None, ...]]] = {}
        for values, name in node.codecs:
            rows.setdefault(name, []).append(self.values(node, values, path))
        cases: list[tuple[list[tuple[int | None, ...]], Body]] = []
        for name, listed in rows.items():
            cases.append((listed, [Let(to, "=", self.constant(names.index(name) + 1))]))
        return Switch(on, cases, [])

    def or_none(self, tree: Expression, scope: Scope, path: str) -> int:
        """The register with a number, -1 where it is not there."""
        value = scope.value(self.key, tree, path)
        register = self.operand(value.place)
        if not value.present:
            return register
        either = self.let("=", self.constant(-1))
        self.put(Test("!=", self.all_of(value.present), self.constant(0), [Let(either, "=", register)]))
        return either

    def verify_told(self, node: ir.Structure, rule: ir.Told, path: str, values: list[Value]) -> None:
        """The verdict on a size that a message tells of a member that is there as it stands."""
        if rule.what != "size":
            return
        name, of = (f"{path}.{node.members[at].name}" if path else node.members[at].name for at in (rule.at, rule.of))
        message, length = values[rule.at].inside, values[rule.of].length
        if message is None or length is None or values[rule.at].present:
            raise unfit(self.key, of, node.members[rule.of].node, "whose size a message tells")
        field = message[rule.field]
        wrong = self.let("!=", self.operand(field.place), self.operand(length))
        if field.present:
            wrong = self.let("and", wrong, self.all_of(field.present))
        if self.contents is not None and self.columns[self.contents.column].path == of:
            wrong = self.let("and", wrong, self.let("==", self.opaque, self.constant(0)))
        verdict = next(column for column in reversed(self.columns) if column.path == f"{name}.ok")
        zero = self.constant(0)
        self.put(Test("!=", wrong, zero, [Emit(verdict, zero)]))


def is_content(node: ir.Node) -> bool:
    """Whether a node is a field that holds records."""
    return isinstance(node, (ir.Either, ir.Choice)) and holds_records(node)


def _fields(message: Tables, number: int, first: int, end: int | None = None) -> dict[str, Value]:
    """What expressions can read of a message."""
    inside = {}
    slot, end = first, len(message.places) if end is None else end
    while slot < end:
        place = message.places[slot]
        inside[place.path.rpartition(".")[2]] = _value(message, number, slot, place)
        slot = place.end
    return inside


def _value(message: Tables, number: int, slot: int, place: Slot) -> Value:
    each = place.field
    assert each is not None
    at = slot_at(slot)
    if each.repeated:
        return Value(length=Picked(number, at, "count"), high=LONGEST, unfit="a list")
    if each.message is not None:
        return Value(inside=_fields(message, number, slot + 1, place.end))
    if each.kind not in WIDTHS:
        return Value(unfit=f"a field of type {each.kind}")
    low, high = WIDTHS[each.kind]
    return Value(Picked(number, at, "value"), low, high, present=(Picked(number, at, "there"),))
