"""Generates the program that writes records of a layout from columns, from the IR of one record.

Space is reserved for lengths, counts and checksums, which are written after the fields that they cover. A row that does
not fit the layout ends the program with the number of a refusal.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import partial

from wirekit.compiler import ir
from wirekit.compiler.expressions import Expression
from wirekit.errors import Misuse
from wirekit.program import write_steps as steps
from wirekit.program.calls import Summed
from wirekit.program.columns import CONTENTS, Column, Contents, Repeated
from wirekit.program.facts import column_of, form_of, holds_records, is_wide
from wirekit.program.maker import Program
from wirekit.program.parts import parts
from wirekit.program.passes import without_needless
from wirekit.program.steps import EXTRA, ROW, Body, Call, Let, Refuse, Step, Sum, Test
from wirekit.program.unfit import Unfit, unfit
from wirekit.program.values import OpenStructure, Scope, Value, value_of
from wirekit.program.write_branches import ENDS, LIST, UNREAD, Selected
from wirekit.program.write_messages import Messages
from wirekit.wire.derived import innermost_first
from wirekit.wire.message_fields import Derived

GAPS = "@gap"
CHOSEN = ("codec", "listed", "count", "opaque")
"""Results of the first run on a field that holds records: the number of the codec plus one; 1 for records or more for a
message; 1 if the number of records is announced; whether the bytes are not the plain content."""
HELD = ("rows", "plain")
"""Facts about such a field: the number of records, and the bytes before compression; -1 if unknown."""


@dataclass(eq=False, slots=True)
class WriteProgram(Program):
    """The steps that write a record of a layout, and the columns that they read; ``hidden`` are columns of the run.

    Attributes:
        own: by the number of a list, its own column; ``element``, the register with the index of its element.
        fixed: size in bytes of all numbers outside lists, for a first estimate of the output size.
        stamps: by the slot of a column, a register that is initially -1.
    """

    own: dict[int, Column] = field(default_factory=dict)
    element: dict[int, int] = field(default_factory=dict)
    fixed: int = 0
    stamps: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Open(OpenStructure):
    """A structure that is being written.

    Attributes:
        places: registers with the positions of computed numbers; ``present`` with their presence, ``wrong`` with
            whether a checksum was wrong and is written as it was.
        sparse, selected: how many elements the lists of ``Branches`` with these names have before each member.
        limits: the lengths whose covered fields are written, the innermost first: the fields in ``Branches.selected``
            that they bound.
    """

    places: dict[int, int] = field(default_factory=dict)
    present: dict[int, int] = field(default_factory=dict)
    wrong: dict[int, int] = field(default_factory=dict)
    sparse: dict[int, int] = field(default_factory=dict)
    selected: dict[int, int] = field(default_factory=dict)
    limits: list[tuple[ir.Measure, list[Selected]]] = field(default_factory=list)


@dataclass(slots=True)
class _Writer(Messages):
    """Emits write steps: a method for each kind of node."""

    fixed: int = 0

    def visit_Packed(self, node: ir.Packed, path: str, scope: Scope) -> Value:
        return self.visit_Blob(node.blob, path, scope)

    # A field with nested records: a first run determines which part of it is written.

    def content(self, node: ir.Alternatives, path: str, scope: Scope) -> Value:
        """Writes the bytes of a field that contains records."""
        self.contents_path = path
        self.content_registers = {name: self.register() for name in CONTENTS}
        self.opaque = self.register()
        with self.block() as body:
            self.clear([(register, 0) for register in (*self.content_registers.values(), self.opaque)])
            self.branch(node, path, scope, Contents(0))
            registers = {**self.content_registers, "opaque": self.opaque}
            for name in CHOSEN:
                self.add_step(steps.Note(self.hidden[name], registers[name]))
            self.add_step(steps.End())
        self.if_true(steps.CHOOSING, body)
        plain = ir.Blob(None, None, text=False, explained=True, filler=False)
        return self.visit_Blob(plain, path, scope, null=True)

    def announced(self, tree: Expression, scope: Scope, path: str) -> int:
        """Needs no step: the announced number of elements is computed from the list."""
        return self.constant(1)

    def or_none(self, tree: Expression, scope: Scope, path: str) -> int:
        """Needs no step: the size of the content is computed as well."""
        return self.constant(-1)

    def derive(self, state: _Open, derived: Derived) -> None:
        """Computes a field of a message from members after the message."""
        name, covered_name = state.name(derived.at), state.name(derived.of)
        holder, covered = state.node.members[derived.at].node, state.node.members[derived.of].node
        if not isinstance(holder, ir.Protobuf):
            raise unfit(self.key, name, holder, "it holds the size or count of a later field")
        message = self.message(holder, name)
        place = message.tables.reads((derived.field,))
        if place is None or place.field is None:
            raise unfit(self.key, name, holder, f"it has no {derived.field}")
        slot = message.tables.slots[place.path]
        one, zero = self.constant(1), self.constant(0)
        always = one if place.field.required else zero
        if holds_records(covered):
            value = self.look(self.hidden["rows" if derived.quantity == "count" else "plain"])[0]
            is_given = self.let(">=", value, zero)
            if derived.quantity == "count":
                silent = self.let("==", self.look(self.hidden["count"])[0], zero)
                both = self.let("and", silent, self.value(message, slot)[1])
                is_given, always = self.let("and", is_given, self.let("==", both, zero)), one
            else:
                always = self.let("or", always, self.let("!=", self.look(self.hidden["codec"])[0], zero))
        elif derived.quantity == "size" and isinstance(covered, ir.Blob) and covered.part:
            return
        elif derived.quantity == "size" and isinstance(covered, ir.Blob) and not isinstance(covered.length, ir.Number):
            step = self.bytes(self.column(covered_name))
            step.copy, step.verdict = False, None
            self.add_step(step)
            is_given, value = one, step.length
        else:
            raise unfit(self.key, covered_name, covered, f"a protobuf message holds its {derived.quantity}")
        self.compute(message, slot, is_given, always, value)

    # Structures.

    def structure(self, node: ir.Structure, path: str, scope: Scope) -> Value:
        state = _Open(node, path, Scope({}, scope), set[int]().union(*node.extents(node.measures)))
        self.members(state, 0)
        return Value(inside=state.scope.fields)

    def members(self, state: _Open, first: int) -> None:
        """Writes the members of a structure from one on, and the numbers computed from them."""
        node, inner = state.node, state.scope
        for index, member in enumerate(node.members[first:], first):
            name = state.name(index)
            state.sparse[index], state.selected[index] = len(self.sparse), len(self.selected)
            if index in state.marked:
                state.begins[index] = self.mark()
            for derived in node.derived:
                if derived.at == index:
                    self.derive(state, derived)
            if index in node.computed:
                self.reserve(state, index)
                inner.fields[member.name] = Value(unfit="a number that is computed from later fields")
            else:
                self.lengths_ahead(node, index, state.path, inner)
                inner.fields[member.name] = self.node(member.node, name, inner)
            if self.after_deferred:  # the work after a part is deferred, and done if the record reaches it
                mark = self.flag()
                self.add_step(Let(mark, "=", self.constant(1)))
                self.later.append((mark, partial(self.resume, state, index)))
                return
            self.ended(state, index)
        for measure in node.measures:
            if measure.first < measure.at:
                self.patching(state, measure.at, partial(self.measure, state, measure))
        for total in innermost_first(node.sums):
            self.patching(state, total.at, partial(self.sum, state, total))
        for measure, bounded in state.limits:
            for selected in bounded:
                self.patching(state, measure.at, partial(self.decide, selected, state.ends[measure.last]))

    def resume(self, state: _Open, index: int) -> None:
        """Continues after a member that is written now."""
        self.ended(state, index)
        self.members(state, index + 1)

    def ended(self, state: _Open, index: int) -> None:
        """Handles the end of a member: lengths that end with it are now known to later expressions."""
        if index in state.marked:
            state.ends[index] = self.mark()
        innermost = sorted(state.node.measures, key=lambda measure: (-measure.first, -measure.at))
        for measure in innermost:  # a varint inside may still grow
            if measure.at < measure.first and measure.last == index:
                if measure.is_limit:
                    state.limits.append((measure, self.selected[state.selected[measure.first] :]))
                self.patching(state, measure.at, partial(self.measure, state, measure))

    def reserve(self, state: _Open, index: int) -> None:
        """Reserves space for a length or checksum, or writes a checksum that was wrong."""
        state.places[index] = self.mark()
        member, number = state.node.members[index].node, self.derived(state, index)
        with self.block() as body:
            step = steps.Reserve(self.constant(ir.minimum(number)))
            if any(total.at == index and form_of(total, number) is None for total in state.node.sums):
                self.wrong_sum(state, index, number, step)
            else:
                self.add_step(step)
        node = member.node if isinstance(member, ir.Optional) else member
        if isinstance(node, ir.When):
            condition = self.expression(node.condition, state.scope, state.name(index))[0]
            state.present[index] = condition
            self.if_true(condition, body)
        else:
            self.body += body

    def wrong_sum(self, state: _Open, index: int, number: ir.Number | ir.Blob, reserve: Step) -> None:
        """Writes a checksum from its column if its verdict is false, or else reserves space for it.

        A wrong checksum is not written into reserved space, because a copy of bytes may also overwrite those after it.
        """
        name = state.name(index)
        self.follows(name)
        column, verdict = self.column(name, column_of(number)), self.column(ir.inner_path(name, "ok"))
        wrong = state.wrong[index] = self.let("and", self.bad(verdict), self.has_value(column))
        with self.block() as body:
            self.node(number, name, state.scope)
        self.if_true(wrong, body, [reserve])

    def patching(self, state: _Open, at: int, work: Callable[[], None]) -> None:
        """Writes a length or checksum into its reserved space, if it is present."""
        with self.block() as body:
            work()
        if at in state.present:
            self.if_true(state.present[at], body)
        else:
            self.body += body

    def derived(self, state: _Open, at: int) -> ir.Number | ir.Blob:
        """The number or bytes of a length or checksum."""
        member = state.node.members[at].node
        number = member.node if isinstance(member, ir.Optional) else member
        number = number.node if isinstance(number, ir.When) else number
        if not isinstance(number, ir.Number | ir.Blob):
            raise unfit(self.key, state.name(at), member, "it is a length or checksum that building must compute")
        return number

    def measure(self, state: _Open, measure: ir.Measure) -> None:
        """Writes a length."""
        name, number = state.name(measure.at), self.derived(state, measure.at)
        assert isinstance(number, ir.Number)
        if measure.is_limit:
            self.end_limit(state.sparse[measure.first], state.ends[measure.last])
        size, add = self.register(), self.constant(measure.add)
        self.add_step(Let(size, "-", state.ends[measure.last], state.begins[measure.first]))
        if measure.add:
            self.add_step(Let(size, "+", size, add))
        self.follows(name)
        if measure.exceeds:
            value, present = self.look(self.column(name, column_of(number)))
            self.if_true(present, [Test(">", value, size, [Let(size, "=", value)])])
        if not measure.is_limit or measure.clip:
            self.was(name, size, number)
        if not is_wide(number):
            text = f"the covered fields have more than {number.high} bytes"
            self.fail(">", size, number.high, name, text)
        if measure.zero_is_rest:
            value, present = self.look(self.column(name, column_of(number)))
            zero = self.constant(0)
            self.if_true(present, [Test("==", value, zero, [Let(size, "=", zero)])])
        if measure.bounds and state.node.least_of(measure) < measure.least:
            with self.block() as body:
                self.fail("<", size, measure.least, name, f"it would be less than {measure.least}")
            self.body += [Test("!=", size, self.constant(0), body)] if measure.zero_is_rest else body
        self.patch(number, size, state.places[measure.at], state.sparse[measure.at])
        if measure.at not in state.present:
            state.scope.fields[state.node.members[measure.at].name] = value_of(number, size)

    def sum(self, state: _Open, total: ir.Sum) -> None:
        """Writes a checksum."""
        name, number = state.name(total.at), self.derived(state, total.at)
        self.follows(name)
        form = form_of(total, number)
        start, end = state.begins[total.first], state.ends[total.last]
        if total.content and (size := ir.length_in_front(state.node.members[total.first].node)):
            start = self.let("+", start, self.constant(size))
            self.add_step(Test(">", start, end, [Let(start, "=", end)]))  # the field is absent
        value, place = self.register(), state.places[total.at]
        if form is not None and isinstance(number, ir.Number):
            self.add_step(Sum(value, total.algorithm, start, end, None, None, form))
            self.was(name, value, number)
            self.add_step(steps.Store(number, value, place))
            return
        with self.block() as body:
            self.add_step(Call(value, Summed(total.algorithm, number, writes=True), start, end, place))
            self.fail("==", value, 0, name, f"its {total.algorithm} does not fit")
        wrong = state.wrong.get(total.at, self.constant(0))
        self.add_step(Test("==", wrong, self.constant(0), body))

    def follows(self, name: str) -> None:
        """Marks a number as computed, so that its column is ignored."""
        for path, column in self.paths.items():
            if column.within is self.around and (path == name or path.startswith(f"{name}:")):
                self.computed.add(column.slot)

    # The record.

    def gap(self) -> None:
        """Refuses a row with unexplained bytes, unless they are a field of their own: no column has them."""
        value, present = self.look(self.column(GAPS))
        text = "the record held bytes that no column has; leave out this column to build it without them"
        self.if_true(present, [Refuse("!=", value, EXTRA, self.refusal(GAPS, text))])

    def watch(self) -> None:
        """Refuses values that have no place in a record, or element of a list."""
        unread = steps.Unread(ROW)
        self.add_step(unread)
        for slot, path in self.watched.items():
            if slot in self.always or not self.decides(slot, constants=False):
                continue
            column = self.read[slot]
            self.around = column.within
            step = unread if self.around is None else self.unread[self.around.number]
            step.columns.append((column, self.stamps[slot], self.refusal(path, UNREAD)))
        self.around = None
        for message in self.written_messages:
            if message.flag is not None:
                silent = self.let("==", message.flag, self.constant(0))
                filled = self.let("and", silent, self.has_value(*message.inside[0]))
                self.fail("!=", filled, 0, message.tables.path, UNREAD)
        if self.contents_path and self.paths[self.contents_path].slot in self.stamps:
            stamp = self.stamps[self.paths[self.contents_path].slot]
            unseen = self.let("!=", stamp, self.index(self.paths[self.contents_path]))
            self.fail("!=", self.let("and", unseen, self.holds_records()), 0, self.contents_path, UNREAD)


def _moved(group: Repeated | None, within: str, groups: dict[int, Repeated]) -> Repeated | None:
    """A list and its enclosing lists, for records inside other records."""
    if group is not None and group.number not in groups:
        around = _moved(group.within, within, groups)
        groups[group.number] = replace(group, path=f"{within}.{group.path}", within=around)
    return None if group is None else groups[group.number]


def write(
    key: str,
    element: ir.Node,
    columns: list[Column],
    *,
    gaps: bool,
    within: str = "",
    with_choices: ir.Node | None = None,
    some: bool = False,
    until: bytes = b"",
    except_first: bool = False,
    message_fields: frozenset[str] | None = None,
) -> WriteProgram:
    """Generates the program that writes records of one layout.

    Args:
        key: the schema, for errors.
        element: the layout of one record.
        columns: the columns of the read program.
        gaps: whether the read program counts bytes that no field explains.
        within: the path of the records inside others, or "".
        some: whether a record must have bytes, because no field counts the records.
        until: bytes that end the list of records, with which no record may begin.
        except_first: whether the first record may begin with them.
        with_choices: the layout with all choices, some decided in ``element``; it shows the parts to write once.
        message_fields: the fields of protobuf messages that the batch has; None for all of them.

    Raises:
        Misuse: a node cannot be built; the text names the node and its path.

    >>> from wirekit.compiler.lower import lower
    >>> from wirekit.program.read import read
    >>> from wirekit.wire import Bytes, Struct, int16, int32
    >>> layout = lower(Struct("number" / int32, "name" / Bytes(int16, null=-1)))
    >>> program = write("example", layout, read("example", layout).columns, gaps=False)
    >>> [type(step).__name__ for step in program.steps]
    ['Take', 'Bytes', 'Unread']
    """
    if within:
        moved: dict[int, Repeated] = {}
        columns = [
            replace(column, path=f"{within}.{column.path}", within=_moved(column.within, within, moved))
            for column in columns
        ]
    paths = {column.path: column for column in columns}
    once = parts(element if with_choices is None else with_choices)
    slots = itertools.count(len(columns))
    writer = _Writer(key=key, paths=paths, once=once, slots=slots, message_fields=message_fields)
    if gaps:
        paths[GAPS] = Column(GAPS, "number", "int64", slot=next(writer.slots))
    groups = {each.number: each for column in columns for each in column.lists}
    writer.groups = [groups[number] for number in sorted(groups)]
    for group in writer.groups:
        writer.add_list(group)
    writer.hidden = {name: Column(name, "number", "int64", slot=next(writer.slots)) for name in CHOSEN + HELD}
    writer.record_count = writer.hidden["rows"]
    try:
        if ir.minimum(element) < len(until):
            raise unfit(key, within, element, f"elements may be shorter than {until.hex()}, which ends their list")
        with writer.block() as body:
            start = writer.mark() if some or until else 0
            writer.node(element, within, Scope({}, None))
            writer.finish_parts()
    except Unfit as error:
        raise _unfit(key, error) from None
    writer.clear([(flag, 0) for flag in (*writer.flags, *(register for _, register in writer.sparse))])
    writer.clear([(selected.at, -1) for selected in writer.selected])
    writer.body += body
    if writer.sparse:
        writer.end_limit(0, writer.mark())
    for selected in writer.selected:
        writer.decide(selected, writer.mark())
    if gaps:
        writer.gap()
    writer.watch()
    if some:
        size = writer.let("-", writer.mark(), start)
        writer.fail("==", size, 0, within, "it takes no bytes, so no reader would find it")
    if until:
        begins = writer.begins(start, writer.mark(), until)
        if except_first:
            begins = writer.let("and", begins, writer.let("!=", ROW, writer.constant(0)))
        writer.fail("!=", begins, 0, within, ENDS)
    writer.steps, writer.fixed = without_needless(writer.body), _fixed(writer.body)
    writer.columns = [column for column in writer.read.values() if column.kind != LIST]
    writer.columns += [column for message in writer.messages_of for column in message.columns.values()]
    writer.hidden = writer.hidden if writer.contents_path else {}
    return WriteProgram(**{each.name: getattr(writer, each.name) for each in fields(WriteProgram)})


def _fixed(body: Body) -> int:
    """Size in bytes of all numbers outside lists."""
    size = 0
    for step in body:
        if isinstance(step, steps.Each):
            continue
        number: ir.Number | None = getattr(step, "number", None)
        size += 0 if number is None else number.groups or number.size
        size += sum(_fixed(inner) for inner in step.bodies())
    return size


def _unfit(key: str, error: Unfit) -> Misuse:
    """The error for a layout that cannot be built from columns."""
    why = f" ({error.why})" if error.why else ""
    text = f"{key} is not built from columns: {error.path or 'its layout'} is {error.kind}{why}"
    return Misuse(f"{text}; build it with wirekit.encode")
