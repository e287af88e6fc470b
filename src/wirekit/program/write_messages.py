"""Protobuf messages in a write program: fields by number, each in its shortest form.

Only fields that the batch has, required fields, and fields that are computed from other parts of the record have steps.
So a message type of hundreds of fields costs only as much as the fields in use.

Source: protobuf encoding guide, https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial, reduce

from wirekit.compiler import ir
from wirekit.program import write_steps as steps
from wirekit.program.columns import Column, Repeated
from wirekit.program.messages import Place, field_column, is_leaf, message_values, tables
from wirekit.program.steps import Let, Mark
from wirekit.program.values import Place as Source
from wirekit.program.values import Scope, Value
from wirekit.program.write_branches import Branches, MessageColumns
from wirekit.varints import UNSIGNED, ZIGZAG, VarintForm
from wirekit.wire.protobuf import BYTES, Field
from wirekit.wire.protobuf import Message as Type

REQUIRED = "is missing, but the message requires it"
NO_ELEMENT = "has a null in a list; a message has no null elements"


def _varint(kind: str) -> ir.Number:
    return ir.Number("Q", 8, signed=False, real=False, little=True, form=VarintForm(kind, 64, 10))


VARINT, SIGNED_VARINT = _varint(UNSIGNED), _varint(ZIGZAG)


@dataclass(slots=True)
class Messages(Branches):
    """Writes protobuf messages.

    Attributes:
        message_fields: the fields of messages that the batch has; None for all.
        messages_of: the messages of a record, by number.
    """

    message_fields: frozenset[str] | None = None
    messages_of: list[MessageColumns] = field(default_factory=list)

    def visit_Protobuf(self, node: ir.Protobuf, path: str, scope: Scope) -> Value:
        """Writes a message. A field with a value in its column is written; a null or a missing column omits it."""
        message = self.message(node, path)
        self.written_messages.append(message)
        if self.maybe:
            if message.flag is None:
                message.flag = self.flag()
            self.add_step(Let(message.flag, "=", self.constant(1)))
        verdict = self.column(ir.inner_path(path, "ok"))
        text = f"it was not complete, or its text was not UTF-8; without the column {verdict.path} the value is written"
        self.fail("!=", self.bad(verdict), 0, path, text)
        self.fields(message, 0, Type.by_full_name[node.message])
        number = self.messages_of.index(message)
        return Value(inside=message_values(message.tables, number, lambda slot: slot, required=True))

    # The columns of a message.

    def message(self, node: ir.Protobuf, path: str) -> MessageColumns:
        """The columns of the message at a path."""
        for each in self.messages_of:
            if each.tables.path == path:
                return each
        message = MessageColumns(tables(self.key, node, path, 0))
        self.messages_of.append(message)
        for slot, place in enumerate(message.tables.places):
            if is_leaf(place, slot) and (self.message_fields is None or place.path in self.message_fields):
                self.add(message, slot, place)
        return message

    def add(self, message: MessageColumns, slot: int, place: Place) -> None:
        """Adds the column of a field, which shows that the messages around it are present."""
        assert place.field is not None
        places, each = message.tables.places, place.field
        owner = slot if each.repeated else place.owner
        is_first = owner >= 0 and owner not in message.lists
        if is_first:
            group = Repeated(1 + max(self.own, default=-1), places[owner].path, None, nullable=True, in_message=True)
            self.add_list(group)
            self.lists.append(group)
            message.lists[owner] = group
        within = message.lists[owner] if owner >= 0 else None
        column = replace(field_column(place), slot=next(self.slots), within=within)
        message.columns[slot] = column
        at = slot
        if within is not None:
            while at != owner:
                message.inside.setdefault(at, []).append(column)
                at = places[at].message
            column = self.own[within.number]
        if within is None or is_first:
            while at:
                message.inside.setdefault(at, []).append(column)
                at = places[at].message
            message.inside[0].append(column)

    def value(self, message: MessageColumns, slot: int) -> tuple[int, int]:
        """Registers with the number of a field, 0 if it is absent, and with its presence."""
        if slot in message.computed:
            return message.computed[slot]
        if slot in message.columns:
            return self.look(message.columns[slot])
        return self.constant(0), self.constant(0)

    def compute(self, message: MessageColumns, slot: int, known: int, always: int, value: int) -> None:
        """Sets a field that is computed from others: if ``known``, when it is present, or ``always``."""
        message.computed.pop(slot, None)
        stored, exists = self.value(message, slot)
        number, present = self.let("=", stored), self.let("=", exists)
        needed = self.let("and", known, self.let("or", always, exists))
        self.if_true(needed, [Let(number, "=", value), Let(present, "=", self.constant(1))])
        message.computed[slot] = number, present

    def operand(self, place: Source) -> int:
        if isinstance(place, int):
            return place
        if isinstance(place, Column):
            return self.has_value(place)
        message = self.messages_of[place.message]
        if place.aspect == "count":
            group = message.lists.get(place.slot)
            return self.constant(0) if group is None else self.count(group)
        value, present = self.value(message, place.slot)
        return present if place.aspect == "present" else value

    # The fields of a message.
    def fields(self, message: MessageColumns, slot: int, kind: Type) -> None:
        """Writes the fields of the message in a slot."""
        places = message.tables.places
        selector = message.tables.slots.get(ir.inner_path(places[slot].path, kind.selector))
        selected = self.value(message, selector)[0] if selector in message.columns else None
        inner = slot + 1
        while inner < places[slot].end:
            each = places[inner].field
            assert each is not None
            if each.repeated:
                self.elements(message, inner, each)
            elif each.message is not None:
                self.nested(message, inner, each, selected)
            else:
                self.single(message, inner, each)
            inner = places[inner].end

    def single(self, message: MessageColumns, slot: int, each: Field) -> None:
        """Writes a field if it has a value."""
        value, present = self.value(message, slot)
        with self.block() as body:
            if slot in message.columns or slot in message.computed:
                self.tagged(message, slot, each, value)
        if each.required:
            self.fail("==", present, 0, message.tables.places[slot].path, REQUIRED)
            self.body += body
        elif body:
            self.if_true(present, body)

    def nested(self, message: MessageColumns, slot: int, each: Field, selected: int | None) -> None:
        """Writes a message if it is required, or selected by another field, or a field of it has a value."""
        facts = [self.constant(1)] if each.required else []
        if slot in message.inside:
            facts.append(self.has_value(*message.inside[slot]))
        if selected is not None:
            facts.append(self.let("==", selected, self.constant(each.number)))
        if facts:
            with self.block() as body:
                self.tagged(message, slot, each, 0)
            self.if_true(reduce(partial(self.let, "or"), facts), body)

    def elements(self, message: MessageColumns, slot: int, each: Field) -> None:
        """Writes a list."""
        group = message.lists.get(slot)
        if group is None:
            return
        at = self.element[group.number]
        end, _ = self.range_of(group, at)
        with self.block() as body:
            value = 0
            if slot in message.columns:
                value, present = self.value(message, slot)
                self.fail("==", present, 0, group.path, NO_ELEMENT)
            self.tagged(message, slot, each, value)
        self.add_step(steps.Each(at, end, body))

    def tagged(self, message: MessageColumns, slot: int, each: Field, value: int) -> None:
        """Writes a value after its tag; ``value`` is the register of a number."""
        self.add_step(steps.Store(VARINT, self.constant(each.number << 3 | each.wire_type)))
        if each.message is not None and slot not in message.columns:
            place, begin, size = self.register(), self.register(), self.register()
            self.add_step(Mark(place))
            self.add_step(steps.Reserve(self.constant(1)))
            self.add_step(Mark(begin))
            self.fields(message, slot, each.message)
            self.add_step(Mark(size))
            self.add_step(Let(size, "-", size, begin))
            self.add_step(steps.Insert(VARINT, size, place, []))
        elif each.message is not None:  # a message without fields
            self.add_step(steps.Store(VARINT, self.constant(0)))
        elif each.wire_type == BYTES:
            step = self.bytes(message.columns[slot])
            step.number = VARINT
            self.add_step(step)
        else:
            self.add_step(steps.Store(_number(each), value))


def _number(each: Field) -> ir.Number:
    """The form in which a number is written."""
    if each.fixed:
        return ir.Number("Q", 4 if each.fixed[1] in "fIi" else 8, signed=False, real=False, little=True)
    return SIGNED_VARINT if each.sign == ZIGZAG else VARINT
