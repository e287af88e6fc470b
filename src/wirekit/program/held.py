"""Protobuf messages in a record, and fields with nested records whose codec other fields select."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wirekit.compiler import ir
from wirekit.program.branches import Branches
from wirekit.program.columns import BYTES, CONTENTS, Contents
from wirekit.program.messages import Tables, slot_at, tables
from wirekit.program.steps import Copy, Emit, Slice, Test, Walk
from wirekit.program.unfit import unfit
from wirekit.program.values import HIGHEST, LONGEST, OpenStructure, Picked, Scope, Value, inside
from wirekit.wire.message_fields import Derived
from wirekit.wire.protobuf import VARINT


@dataclass(slots=True)
class Held(Branches):
    """Reads messages, and fields with nested records."""

    def visit_Protobuf(self, node: ir.Protobuf, path: str, scope: Scope) -> Value:
        if self.around is not None:
            raise unfit(self.key, path, node)
        number = len(self.messages)
        message = tables(self.key, node, path, len(self.columns))
        self.messages.append(message)
        first = len(self.reasons)
        self.reasons += message.reasons()
        present, good = self.fresh(), self.fresh()
        self.walked.append((number, present))
        self.put(Walk(number, self.limit, present, good, first))
        self.gaps = True
        self.put(Emit(self.verdict(path), good))
        return Value(inside=message_values(message, number, slot_at))

    def content(self, node: ir.Alternatives, path: str, scope: Scope) -> Value:
        """Reads a field up to the limit: bytes, records, or either of them compressed."""
        if self.contents is not None or self.packing is not None:
            raise unfit(self.key, path, node, "a second field that holds records")
        nothing = {"codec": 0, "listed": 0, "count": -1, "size": -1}
        self.content_registers = {name: self.fresh(nothing[name]) for name in CONTENTS}
        self.opaque = self.fresh()
        if not self.maybe:
            cleared = [(register, nothing[name]) for name, register in self.content_registers.items()]
            self.clear([*cleared, (self.opaque, 0)])
        start, length = self.fresh(), self.fresh()
        self.put(Slice(start, length, self.limit))
        column = self.column(path, BYTES)
        self.put(Copy(column, start, length))
        self.contents = Contents(column.slot)
        self.branch(node, path, scope, self.contents)
        return Value(unfit="a field that holds records", length=length)

    def verify_derived(self, state: OpenStructure, rule: Derived) -> None:
        """Emits the verdict on a size in a message, for a member that is present and not compressed."""
        if rule.quantity != "size":
            return
        name, of = state.name(rule.at), state.name(rule.of)
        message, length = state.value(rule.at).inside, state.value(rule.of).length
        if message is None or length is None or state.value(rule.at).present:
            raise unfit(self.key, of, state.node.members[rule.of].node, "whose size a message holds")
        field = message[rule.field]
        wrong = self.let("!=", self.operand(field.place), self.operand(length))
        if field.present:
            wrong = self.let("and", wrong, self.all_of(field.present))
        if self.contents is not None and self.columns[self.contents.column].path == of:
            wrong = self.let("and", wrong, self.let("==", self.opaque, self.constant(0)))
        verdict = next(column for column in reversed(self.columns) if column.path == inside(name, "ok"))
        zero = self.constant(0)
        self.put(Test("!=", wrong, zero, [Emit(verdict, zero)]))


def message_values(
    message: Tables, number: int, at: Callable[[int], int], outer: int = 0, *, required: bool = False
) -> dict[str, Value]:
    """The values that expressions can read from a message, or from the message in the slot ``outer``.

    Args:
        at: the place from which a slot's value is read.
        required: whether required fields of the message are always present.
    """
    inside = {}
    slot = outer + 1
    while slot < message.places[outer].end:
        place = message.places[slot]
        each = place.field
        assert each is not None
        if each.repeated:
            value = Value(length=Picked(number, at(slot), "count"), high=LONGEST, unfit="a list")
        elif each.message is not None:
            value = Value(inside=message_values(message, number, at, slot))
        elif each.wire_type != VARINT or each.high > HIGHEST:
            value = Value(unfit=f"a field of type {each.kind}")
        else:
            present = () if required and each.required else (Picked(number, at(slot), "present"),)
            value = Value(Picked(number, at(slot), "value"), each.low, each.high, present=present)
        inside[place.path.rpartition(".")[2]] = value
        slot = place.end
    return inside
