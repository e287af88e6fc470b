"""Conditions, branches and lists in a write program.

Columns of fields that a record lacks must have no value. Structures that a record reaches by several paths are
written once, as ``program.parts`` reads them once: a path that reaches one sets a flag, and the structure is written
after all of these paths. The bytes after it, and the numbers computed from it, are written after that.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from wirekit.compiler import ir
from wirekit.compiler.expressions import Field, LengthOf, operands_of
from wirekit.program.branches import maybe
from wirekit.program.columns import Column, Repeated
from wirekit.program.facts import column_of, holds_bytes, is_wide
from wirekit.program.messages import Tables
from wirekit.program.parts import Part
from wirekit.program.steps import Body, Fault, Let, Mark, Refuse, Seek, Step, Test
from wirekit.program.unfit import unfit
from wirekit.program.values import LONGEST, Place, Scope, Value
from wirekit.program.write_fields import ABSENT, NULL, Fields
from wirekit.program.write_steps import Each, Elements, Insert, Reserve, Store, Unread

LIST = "list"
"""The kind of a column that is not a column of a batch, but has the ranges of the elements of a list."""
UNREAD = "has a value, but the layout has none here"
ENDS = "it begins with the bytes that end the list"
Work = Callable[[], None]


@dataclass(slots=True, eq=False)
class MessageColumns:
    """The columns of a protobuf message that is written.

    Attributes:
        tables: the fields of its type, by slot.
        columns: by slot, the column of a field that the batch has; ``lists`` has the lists.
        inside: by slot, the columns that show the presence of a field or message: it is present if one has a value.
        computed: by slot, registers with the number and the presence of a field that is computed from later members.
        flag: for a message that only some records have, the register for whether it was written.
    """

    tables: Tables
    columns: dict[int, Column] = field(default_factory=dict)
    lists: dict[int, Repeated] = field(default_factory=dict)
    inside: dict[int, list[Column]] = field(default_factory=lambda: {0: []})
    computed: dict[int, tuple[int, int]] = field(default_factory=dict)
    flag: int | None = None


class Selected(NamedTuple):
    """An optional field whose bytes, or those after it, tell a reader whether it is present.

    Attributes:
        path: the path of the field.
        magic: the bytes with which a present field begins; empty if any byte will do.
        at: the register with the position where they are compared at the end of the limit; -1 if there is none.
        present: the register for whether the field is present.
        least: for a list that ``magic`` ends: the number of bytes after it that a reader takes as another element;
            ``present`` is then whether ``magic`` may follow.
    """

    path: str
    magic: bytes
    at: int
    present: int
    least: int = 0


@dataclass(slots=True)
class Branches(Fields):
    """Writes optional nodes, choices, and lists.

    Attributes:
        reached: parts that were reached and are not written yet: the part, and the register for its presence.
        after_deferred: whether a deferred part precedes the current position.
        later: deferred work for the end of a part: a register for whether it is needed, and the work.
        flags: registers that are 0 until a record, or element, sets them; ``marks`` those with positions.
        written_messages: the messages that are written.
        contents_path: the path of the field with nested records, or ""; ``record_count`` is the column of their number.
        or_bytes: slots of the verdicts on fields that may be plain bytes.
        groups: the lists of the read program; ``own`` has a column for each list, with the ranges of its elements.
        slots: the slots of further columns.
        sparse: lists whose elements may take no bytes: path, register with the position up to which decoding expects
            a byte for each element.
        selected: the optional fields so far whose presence the bytes tell.
    """

    reached: dict[int, tuple[Part, int]] = field(default_factory=dict)
    after_deferred: bool = False
    later: list[tuple[int, Work]] = field(default_factory=list)
    flags: list[int] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    written_messages: list[MessageColumns] = field(default_factory=list)
    contents_path: str = ""
    record_count: Column | None = None
    groups: list[Repeated] = field(default_factory=list)
    own: dict[int, Column] = field(default_factory=dict)
    slots: Iterator[int] = field(default_factory=itertools.count)
    unread: dict[int, Unread] = field(default_factory=dict)
    or_bytes: set[int] = field(default_factory=set)
    sparse: list[tuple[str, int]] = field(default_factory=list)
    selected: list[Selected] = field(default_factory=list)

    def apart(self, work: Callable[[], Value], *, constants: bool = False) -> tuple[Value, Body, Callable[[], int]]:
        """Runs ``work`` with a body of its own; returns its value, the body, and the presence of the nodes it read.

        The presence is a function that returns the register for whether one of the nodes has a value.

        Args:
            constants: whether constants count for the presence.
        """
        with self.during(read={}, written_messages=[], maybe=True):
            with self.block() as body:
                value = work()
            read, messages = self.read, self.written_messages
        values = [each for each in read.values() if not each.is_verdict or each.slot in self.or_bytes]
        here = [each for each in values if each.within is self.around]
        deciding = [each for each in here if self.decides(each.slot, constants=constants)]
        records = bool(self.contents_path) and any(each.path == self.contents_path for each in read.values())
        of_messages = [column for message in messages for column in message.inside[0]]
        showing = deciding if deciding or messages else here
        self.read |= read
        self.written_messages += messages
        return value, body, partial(self.any_of, showing + of_messages, records)

    def decides(self, slot: int, *, constants: bool) -> bool:
        """Whether a value shows that a node is present; in nodes without other values, any value does."""
        return slot not in self.computed and (constants or slot not in self.constant_slots)

    def any_of(self, columns: list[Column], records: bool) -> int:
        """The register for whether one of several columns, or of the nested records, has a value."""
        present = self.has_value(*columns)
        return self.let("or", present, self.holds_records()) if records else present

    def holds_records(self) -> int:
        """The register for whether rows have values of nested records."""
        assert self.record_count is not None
        return self.let(">=", self.look(self.record_count)[0], self.constant(0))

    def if_true(self, condition: int, body: Body, otherwise: Body | None = None) -> None:
        """Begins a body that runs if a register is not 0."""
        self.add_step(Test("!=", condition, self.constant(0), body, otherwise or []))

    def visit_When(self, node: ir.When, path: str, scope: Scope, default: Any) -> Value:
        condition = self.expression(node.condition, scope, path)[0]
        value, body, _ = self.apart(partial(self.node, node.node, path, scope, default))
        self.if_true(condition, body)
        return maybe(value, condition)

    def visit_WhenNext(self, node: ir.WhenNext, path: str, scope: Scope, default: Any) -> Value:
        inner, magic = node.node, node.magic
        if magic and isinstance(inner, ir.Constant):
            return self.alone(inner, path, scope, default, magic)
        value, body, presence = self.apart(partial(self.node, inner, path, scope, default), constants=bool(magic))
        present = presence()
        self.select(inner, path, magic, present)
        self.if_true(present, body)
        return maybe(value, present)

    def select(self, node: ir.Node, path: str, magic: bytes, present: int) -> None:
        """Marks the bytes of a field that is absent, or has no fixed beginning, for comparison at the end of their
        limit.

        For a field in a list, the bytes that are written by then are compared before the next such field.
        """
        selected = Selected(path, magic, self.register(), self.register())
        self.selected.append(selected)
        self.marks.append(selected.at)
        while isinstance(node, ir.Structure) and node.members:
            node = node.members[0].node
        place: list[Step] = [Mark(selected.at)]
        if not magic:  # of several in a list, the first one counts
            place = [Test("<", selected.at, self.constant(0), place)]
        elif self.around is not None:
            self.decide(selected, self.mark(), partly=True)
        self.add_step(Let(selected.present, "=", present))
        if magic and not isinstance(node, ir.Constant):
            self.body += place
        else:
            self.if_true(present, [], place)

    def decide(self, selected: Selected, end: int, *, partly: bool = False) -> None:
        """Refuses rows in which the bytes up to the end of a limit contradict the presence of an optional field."""
        path, magic, at, present, least = selected
        with self.block() as body:
            if least:
                ends = self.let("and", present, self.begins(at, end, magic))
                follow = self.let(">=", self.let("-", end, at), self.constant(least))
                self.fail("!=", self.let(">", follow, ends), 0, path, "bytes follow that are read as its next element")
            elif magic:
                after, zero = self.let("+", at, self.constant(len(magic))), self.constant(0)
                begins = self.begins(at, end, magic)
                if_absent = self.refusal(path, f"it is absent, but bytes follow that begin with {magic.hex()}")
                if_present = self.refusal(path, f"it does not begin with {magic.hex()}")
                with self.block() as compared:
                    others: Body = [Refuse("!=", begins, zero, if_absent)]
                    self.if_true(present, [Refuse("==", begins, zero, if_present)], others)
                self.body += [Test("<=", after, end, compared)] if partly else compared
            else:
                self.add_step(Refuse("<", at, end, self.refusal(path, "it is absent, but bytes follow")))
            self.add_step(Let(at, "=", self.constant(-1)))
        self.add_step(Test(">=", at, self.constant(0), body))

    def alone(self, node: ir.Constant, path: str, scope: Scope, default: Any, magic: bytes) -> Value:
        """Writes an optional constant if its column is set; without a column, if it has a default."""
        column = self.constant_column(node, path)
        assert column is not None, path
        present = self.has_value(self.reading(column))
        if default is not None:
            in_batch = self.has_value(column, in_batch=True)
            present = self.let("or", present, self.let("==", in_batch, self.constant(0)))
        with self.block() as body:
            value = self.visit_Constant(node, path, scope)
        self.select(node, path, magic, present)
        self.if_true(present, body)
        return maybe(value, present)

    # One of several.

    def choice(self, node: ir.Alternatives, path: str, scope: Scope) -> Value:
        """Writes one of several nodes; the others must have no values."""
        nodes, join = self.alternatives(node, scope, path)
        after_deferred, any_after_deferred = self.after_deferred, False
        values, bodies = [], []
        for inner in nodes:
            self.after_deferred = after_deferred
            value, body, _ = self.apart(partial(self.arm, node, inner, path, scope))
            values.append(value)
            bodies.append(body)
            any_after_deferred |= self.after_deferred
        self.after_deferred = any_after_deferred
        present = self.one_present(values, bodies)
        self.add_step(join(bodies))
        return values[0] if len(values) == 1 else Value(unfit="one of several fields", present=present)

    def one_present(self, values: list[Value], bodies: list[Body]) -> tuple[Place, ...]:
        """The condition for the presence of one of several values, which their steps set; empty if all are present."""
        if not any(value.present for value in values):
            return ()
        exists = self.register()
        for value, arm in zip(values, bodies, strict=True):
            with self.block() as body:
                self.add_step(Let(exists, "=", self.all_of(value.present)))
            arm.extend(body)
        return (exists,)

    def arm(self, node: ir.Alternatives, inner: ir.Node | None, path: str, scope: Scope) -> Value:
        """Writes one of the alternatives; None refuses other values."""
        if inner is not None:
            return self.node(inner, path, scope)
        self.fail("==", self.constant(0), 0, path, f"no such case; {self.no_case(node)}")
        return Value(unfit="nothing")

    def visit_Ahead(self, node: ir.Ahead, path: str, scope: Scope) -> Value:
        """Writes nothing: the value of a lookahead is written at its own place."""
        back = self.mark()
        self.add_step(Reserve(self.constant(node.at)))
        value = self.node(node.node, path, scope)
        self.add_step(Seek(back))
        return value

    def mark(self) -> int:
        """Stores the position in a register."""
        to = self.register()
        self.marks.append(to)
        self.add_step(Mark(to))
        return to

    def patch(self, number: ir.Number, source: int, place: int, first: int) -> None:
        """Writes a number into reserved space of its minimal size; after it are the lists from ``first`` on."""
        if not number.groups:
            self.add_step(Store(number, source, place))
            return
        # A list before the number stays where it is, even if decoding expects bytes for it up to after the number.
        lists = [register for _, register in self.sparse[first:]]
        self.add_step(Insert(number, source, place, [*self.marks, *lists]))

    def visit_Bounded(self, node: ir.Bounded, path: str, scope: Scope) -> Value:
        """Writes a node after its own length; as null, if that is allowed, when the node has no value."""
        number, sparse, selected = node.length, len(self.sparse), len(self.selected)
        value, body, presence = self.apart(lambda: self.node(node.node, path, scope))
        place = self.mark()
        self.add_step(Reserve(self.constant(number.least)))
        begin = self.mark()
        present = self.constant(1) if node.null is None else presence()
        size = self.register()
        with self.block() as inside:
            self.body += body
            end = self.mark()
            self.end_limit(sparse, end)
            for each in self.selected[selected:]:
                self.decide(each, end)
            self.add_step(Let(size, "-", end, begin))
            if not is_wide(number):
                self.fail(">", size, number.high, path, f"it takes more than {number.high} bytes")
        self.if_true(present, inside, [Let(size, "=", self.constant(node.null or 0))])
        self.patch(number, size, place, sparse)
        return maybe(value, present)

    def visit_Fallback(self, node: ir.Fallback, path: str, scope: Scope) -> Value:
        """Writes a node, or plain bytes if ``<path>.ok`` is false or, without it, their column has a value."""

        def fitting() -> Value:
            value = self.node(node.node, path, scope)
            self.finish_parts()
            return value

        verdict = self.column(ir.inner_path(path, "ok"))
        self.or_bytes.add(verdict.slot)
        after_deferred = self.after_deferred
        value, fitted, _ = self.apart(fitting)
        plain = ir.Blob(None, None, text=False, explained=False, filler=False)
        as_bytes, other, presence = self.apart(lambda: self.visit_Blob(plain, path, scope))
        self.after_deferred = after_deferred
        missing = self.let("==", self.has_value(verdict, in_batch=True), self.constant(0))
        bad = self.let("or", self.bad(verdict), self.let("and", missing, presence()))
        present = self.one_present([value, as_bytes], [fitted, other])
        self.if_true(bad, other, fitted)
        return Value(unfit="a field that may not fit", present=present)

    # Structures that are written once.

    def reach(self, part: Part) -> Value:
        """Handles a part at this position."""
        if id(part.node) not in self.reached:
            self.reached[id(part.node)] = (part, self.flag())
        self.add_step(Let(self.reached[id(part.node)][1], "=", self.constant(1)))
        self.after_deferred = True
        return Value(unfit="a structure that is reached by several paths")

    def flag(self) -> int:
        """A register that is 0 until a step sets it."""
        self.flags.append(self.register())
        return self.flags[-1]

    def finish_parts(self) -> None:
        """Writes all parts that were reached, and then the deferred work after them: the innermost first."""
        groups: list[list[tuple[int, Work]]] = []
        while self.reached:
            part, flag = min(self.reached.values(), key=lambda each: each[0].order)
            del self.reached[id(part.node)]
            groups.append(self.later)
            self.later, self.after_deferred = [], False
            _, body, _ = self.apart(partial(self.structure, part.node, part.name, Scope({}, None)))
            self.if_true(flag, body)
        groups.append(self.later)
        self.later, self.after_deferred = [], False
        for mark, work in (each for group in reversed(groups) for each in group):
            with self.block() as body:
                work()
            if body:
                self.if_true(mark, body)
            if self.after_deferred or self.later:
                raise unfit(self.key, "", "a structure after another", "both are reached by several paths")

    # Lists.

    def visit_Several(self, node: ir.Several, path: str, scope: Scope, default: Any) -> Value:
        group = self.group(path)
        if group is None:
            raise unfit(self.key, path, node, "its elements have no columns, so their number is unknown")
        nullable = isinstance(node.count, ir.Number) and node.null is not None and node.count.signed
        required = not nullable and node.count is not None and default != []
        absent = self.refusal(path, ABSENT) if required else None
        null = None if nullable else self.refusal(path, NULL)
        at = self.element[group.number]
        self.reading(self.own[group.number])
        end, present = self.range_of(group, at, absent, null)
        count = self.let("-", end, at)
        self.counted(node, path, count, present if nullable else None, scope)
        if node.count is not None and not node.least:
            expected, furthest = self.let("+", self.mark(), count), self.register()
            self.sparse.append((path, furthest))
            self.add_step(Test(">", expected, furthest, [Let(furthest, "=", expected)]))
        self.add_step(Each(at, end, self.element_of(node, group, path, scope)))
        least = ir.fixed_size(node.element) or 0 if node.stop else 1
        if node.until and least:
            may_end = self.let("or", count, self.constant(not node.except_first))
            selected = Selected(path, node.until, self.register(), may_end, least)
            self.selected.append(selected)
            self.marks.append(selected.at)
            if self.around is not None:
                self.decide(selected, self.mark())
            self.add_step(Mark(selected.at))
        return Value(unfit="a list", length=count, high=LONGEST, present=(present,) if nullable else ())

    def end_limit(self, first: int, end: int) -> None:
        """Refuses rows with lists, from the ``first`` of ``sparse`` on, with more elements than bytes up to ``end``."""
        for path, register in self.sparse[first:]:
            text = "it has more elements than bytes up to the limit of the list"
            self.add_step(Refuse(">", register, end, self.refusal(path, text)))

    def add_list(self, group: Repeated) -> None:
        """Adds the column and the register of a list."""
        self.own[group.number] = Column(group.path, LIST, slot=next(self.slots), within=group.within)
        self.element[group.number] = self.register()

    def group(self, path: str) -> Repeated | None:
        """The list at a path."""
        return next((each for each in self.groups if each.path == path and each.within is self.around), None)

    def range_of(
        self, group: Repeated, begin: int, absent: Fault | None = None, null: Fault | None = None
    ) -> tuple[int, int]:
        """Gets the range of the elements of a list; returns registers with its end and with the list's presence."""
        column, end, present = self.own[group.number], self.register(), self.register()
        self.add_step(Elements(column, self.index(column), begin, end, present, absent, null))
        return end, present

    def count(self, group: Repeated) -> int:
        """The register with the number of elements of a list."""
        begin = self.register()
        end, _ = self.range_of(group, begin)
        return self.let("-", end, begin)

    def lengths_ahead(self, node: ir.Structure, at: int, path: str, scope: Scope) -> None:
        """The lengths of later lists and byte strings that are in the default of a member."""
        member = node.members[at].node
        names = set()
        for tree in operands_of(member.default) if isinstance(member, ir.Optional) else ():
            if isinstance(tree, LengthOf) and isinstance(tree.of, Field) and not tree.of.up:
                names.add(tree.of.names)
        for later in node.members[at + 1 :] if names else ():
            inner = ir.inner_path(path, later.name)
            group = self.group(inner)
            if (later.name,) not in names:
                continue
            if isinstance(later.node, ir.Several) and group is not None:
                self.reading(self.own[group.number])
                scope.fields[later.name] = Value(unfit="a list", length=self.count(group), high=LONGEST)
            elif isinstance(later.node, ir.Blob) and later.node.null is None and holds_bytes(later.node):
                step = self.bytes(self.column(inner, column_of(later.node)))
                step.copy = False
                self.add_step(step)
                scope.fields[later.name] = Value(unfit="a byte string", length=step.length, high=LONGEST)

    def counted(self, node: ir.Several, path: str, count: int, present: int | None, scope: Scope) -> None:
        """Writes the number of elements, or compares it with the layout."""
        if isinstance(node.count, ir.Number):
            if node.count.high < LONGEST:
                self.fail(">", count, node.count.high, path, f"expected at most {node.count.high} elements")
            usual = Store(node.count, count)
            if present is None:
                self.add_step(usual)
            else:
                self.if_true(present, [usual], [Store(node.count, self.constant(node.null or 0))])
        elif node.count is not None:
            wrong = self.let("!=", count, self.amount(node.count, scope, path)[0])
            self.fail("!=", wrong, 0, path, "its number of elements differs from the one the layout requires")

    def element_of(self, node: ir.Several, group: Repeated, path: str, scope: Scope) -> Body:
        """The steps that write one element."""
        with self.during(around=group, reached={}, later=[], after_deferred=False, flags=[]):
            with self.block() as inside:
                if ir.minimum(node.element) < len(node.until):
                    raise unfit(self.key, path, node, f"elements may be shorter than {node.until.hex()}, which ends it")
                ends = node.count is None and (node.until or not ir.minimum(node.element))
                start = self.mark() if ends else 0
                self.node(node.element, path, scope)
                if self.after_deferred or self.later or self.reached:
                    raise unfit(self.key, path, node, "its structures are reached by several paths")
                if ends:
                    self.ending(node, group, path, start)
                self.add_step(self.unread.setdefault(group.number, Unread(self.element[group.number])))
            with self.block() as body:
                self.clear([(flag, 0) for flag in self.flags])
                self.body += inside
        if group not in self.lists:
            self.lists.append(group)
        return body

    def ending(self, node: ir.Several, group: Repeated, path: str, start: int) -> None:
        """Refuses an element that would end the list on reading."""
        if not ir.minimum(node.element):
            text = "it takes no bytes; an element of a list to the end needs at least one"
            size = self.let("-", self.mark(), start)
            self.fail("==", size, 0, path, text)
        if node.until:
            begins = self.begins(start, self.mark(), node.until)
            if node.except_first:
                first = self.register()
                self.range_of(group, first)
                begins = self.let("and", begins, self.let("!=", self.element[group.number], first))
            self.fail("!=", begins, 0, path, ENDS)
