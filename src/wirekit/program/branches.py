"""Conditions and branches: fields that may be absent have nullable columns.

Branches of a choice share a column if they have a field of the same path and type; the other fields of a record tell
the branches apart. If the types differ, the later column is named ``<path>:<type>``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial, reduce

from wirekit.compiler import ir
from wirekit.program import steps
from wirekit.program.choices import Choices, Join
from wirekit.program.columns import BYTES, Column, Repeated
from wirekit.program.facts import takes_all
from wirekit.program.maker import SHORT
from wirekit.program.parts import Part
from wirekit.program.unfit import unfit
from wirekit.program.values import Place, Scope, Value

Work = Callable[[], Value]


@dataclass(slots=True)
class Following:
    """Bytes after a part that one of its paths has: read after the part, if ``mark`` says that this path was taken."""

    mark: int
    node: ir.Node
    path: str
    limit: int
    columns: list[Column]


@dataclass(slots=True)
class Deferred:
    """A part that was reached: the registers for its presence, its start, and its limit."""

    part: Part
    flag: int
    start: int
    limit: int
    after: list[Following] = field(default_factory=list)


@dataclass(slots=True)
class Branches(Choices):
    """Reads optional nodes, and choices between nodes; and, once, structures that a record reaches by several paths.

    Attributes:
        deferred: structures that were met and are not read yet.
        unfollowed: the structures among them after which nothing was read yet, and which do not take all bytes to their
            limit; so the position is not at their end.
        ends_record: whether the record ends with the node that is read now.
    """

    deferred: dict[int, Deferred] = field(default_factory=dict)
    unfollowed: list[Deferred] = field(default_factory=list)
    ends_record: bool = False

    def arms(self, works: list[Work], join: Join | None) -> list[tuple[int, Value]]:
        """Emits alternative pieces of work; returns (register for whether it was done, value) of each.

        Args:
            join: None for a single piece of work, which is always done.
        """
        outer, merging = self.maybe, self.merging
        defaults, self.defaults = self.defaults, []
        columns_before = len(self.columns)
        self.maybe = True
        results, bodies = [], []
        unfollowed, of_arms = self.unfollowed, list(self.unfollowed)
        for work in works:
            self.merging, self.unfollowed = [*merging, *self.columns[columns_before:]], list(unfollowed)
            with self.block() as body:
                present = self.let("=", self.constant(1))
                results.append((present, work()))
            bodies.append(body)
            of_arms += [each for each in self.unfollowed if not any(each is other for other in of_arms)]
        self.unfollowed, self.maybe, self.merging = of_arms, outer, merging
        if outer:
            self.defaults = defaults + self.defaults
        else:
            unset, self.defaults = self.defaults, defaults
            self.clear(unset)
        self.body += bodies[0] if join is None else [join(bodies)]
        return results

    def if_true(self, condition: int, work: Work, symbol: str = "!=", than: int = 0) -> tuple[int, Value]:
        """Emits work that is done if a register is not 0, or if its comparison with a number holds."""
        bound = self.constant(than)
        return self.arms([work], lambda bodies: steps.Test(symbol, condition, bound, bodies[0]))[0]

    def when(self, condition: int, node: ir.Node, path: str, scope: Scope) -> Value:
        """Reads a node whose presence a condition decides."""
        present, value = self.if_true(condition, lambda: self.node(node, path, scope))
        return maybe(value, present)

    def visit_When(self, node: ir.When, path: str, scope: Scope) -> Value:
        return self.when(self.expression(node.condition, scope, path)[0], node.node, path, scope)

    def visit_WhenNext(self, node: ir.WhenNext, path: str, scope: Scope) -> Value:
        here, end = self.mark(), self.limit
        present = self.begins(here, end, node.magic) if node.magic else self.let("<", here, end)
        return self.when(present, node.node, path, scope)

    def choice(self, node: ir.Alternatives, path: str, scope: Scope) -> Value:
        """Reads one of several nodes."""

        def work(inner: ir.Node | None) -> Work:
            return partial(self.wrong, node, path) if inner is None else partial(self.node, inner, path, scope)

        nodes, join = self.alternatives(node, scope, path)
        results = self.arms([work(inner) for inner in nodes], join)
        if len(results) == 1:
            return maybe(results[0][1], results[0][0])
        if not any(value.present for _, value in results):
            return Value(unfit="one of several fields")
        each = [self.all_of((present, *value.present)) for present, value in results]
        return Value(unfit="one of several fields", present=(reduce(partial(self.let, "or"), each),))

    def wrong(self, node: ir.Alternatives, path: str) -> Value:
        """Refuses a value that no case has."""
        self.fail("==", self.constant(0), 0, path, self.no_case(node))
        return Value(unfit="nothing")

    def visit_Ahead(self, node: ir.Ahead, path: str, scope: Scope) -> Value:
        self.bound(node.at + ir.minimum(node.node), path)
        back = self.mark()
        if node.at:
            self.add_step(steps.Seek(back, node.at))
        value = self.node(node.node, path, scope)
        self.add_step(steps.Seek(back))
        return value

    def visit_Bounded(self, node: ir.Bounded, path: str, scope: Scope) -> Value:
        self.refuse_wide(node.length, path, node, "length")
        size = self.load(node.length, path).to
        at_end = self.ends_record or not (path or self.maybe)
        record = at_end and self.limit == steps.RANGE and self.around is None
        work = partial(self.within, node, size, path, scope, record=record)
        if node.null is None:
            return work()
        present, value = self.if_true(size, work, ">", node.null)
        return maybe(value, present)

    def within(self, node: ir.Bounded, size: int, path: str, scope: Scope, *, record: bool) -> Value:
        """Reads a node inside the limit of a length, which may be that of the whole record."""
        self.not_negative(size, path)
        inner = self.fresh()
        fault = self.fault(path, "short", SHORT)
        self.add_step(steps.Bound(inner, self.limit, size, 0, fault, zero_is_rest=False, record=record))
        with self.during(limit=inner):
            value = self.node(node.node, path, scope)
        self.gaps = True
        self.add_step(steps.Close(inner))
        return value

    def visit_Fallback(self, node: ir.Fallback, path: str, scope: Scope) -> Value:
        """Reads a node, or bytes that do not fit it; ``<path>.ok`` is true for the node, null if it has no value."""

        def work() -> Value:
            begin, gap, exists = self.fresh(), self.fresh(), self.fresh()
            self.gaps = True
            messages = len(self.messages)
            with self.during(stored=[], entered=[], ends_record=False):
                with self.block() as body:
                    value = self.node(node.node, path, scope)
                    self.finish_parts()
                    self.add_step(steps.Let(exists, "=", self.all_of(value.present)))
                inside, lists = self.stored, self.entered
            if messages < len(self.messages) or self.contents is not None:
                raise unfit(self.key, path, node, "it holds a protobuf message")
            self.stored += inside
            self.entered += lists
            verdict = self.verdict(path)
            with self.block() as fits:
                self.emit(verdict, self.constant(1), exists if value.present else None)
            body += fits
            with self.block() as otherwise, self.during(merging=[*self.merging, *inside]):
                self.add_step(steps.Let(exists, "=", self.constant(1)))
                self.add_step(steps.Emit(verdict, self.constant(0)))
                start, length = self.fresh(), self.fresh()
                self.add_step(steps.Slice(start, length, self.limit))
                self.unexplained(length)
                self.add_step(steps.Copy(self.column(path, BYTES), start, length))
            self.add_step(steps.Try(begin, gap, self.undone(lists, inside), body, otherwise))
            return Value(unfit="a field that may not fit", present=(exists,) if value.present else ())

        if self.maybe:
            return work()
        return self.arms([work], None)[0][1]

    def undone(self, lists: list[Repeated], columns: list[Column] | None = None) -> list[Repeated | Column]:
        """Lists with all lists inside them, outer ones first, and columns."""
        inside: list[Repeated] = []
        for group in self.lists:
            if group in lists or group.within in inside:
                inside.append(group)
        columns_inside = [column for column in self.columns if column.within in inside]
        return [*inside, *columns_inside, *(column for column in columns or () if column not in columns_inside)]

    # Structures that are read once (see ``program.parts``): the start is stored where a path reaches one.

    def reach(self, part: Part) -> Value:
        """Stores where a part begins."""
        entry = self.deferred.get(id(part.node))
        if entry is None:
            entry = Deferred(part, self.fresh(), self.fresh(), self.fresh())
            self.deferred[id(part.node)] = entry
        self.add_step(steps.Let(entry.flag, "=", self.constant(1)))
        self.add_step(steps.Mark(entry.start))
        self.add_step(steps.Let(entry.limit, "=", self.limit))
        if takes_all(part.node):
            self.add_step(steps.Seek(self.limit))
        elif not any(entry is each for each in self.unfollowed):
            self.unfollowed.append(entry)
        return Value(unfit="a structure that is reached by several paths")

    def following(self, node: ir.Node, path: str, scope: Scope) -> Value:
        """Reads bytes after a part, or after no part."""
        columns_before = len(self.columns)
        unfollowed, self.unfollowed = self.unfollowed, []
        flags = unfollowed[0].flag
        for entry in unfollowed[1:]:
            flags = self.let("or", flags, entry.flag)
        self.if_true(flags, lambda: self.node(node, path, scope), "==")
        mark = self.let("=", self.constant(1))
        self.add_step(steps.Seek(self.limit))
        for entry in unfollowed:
            entry.after.append(Following(mark, node, path, self.limit, self.columns[columns_before:]))
        return Value(unfit="bytes after a structure")

    def finish_parts(self) -> None:
        """Reads all deferred parts."""
        while self.deferred:
            entry = min(self.deferred.values(), key=lambda each: each.part.order)
            del self.deferred[id(entry.part.node)]
            self.unfollowed = [each for each in self.unfollowed if each is not entry]
            others, self.unfollowed = self.unfollowed, []
            self.if_true(entry.flag, partial(self.part, entry))
            self.unfollowed = others + self.unfollowed

    def part(self, entry: Deferred) -> Value:
        """Reads a part, and the bytes after it."""
        back = self.mark()
        self.add_step(steps.Seek(entry.start))
        with self.during(limit=entry.limit):
            self.structure(entry.part.node, entry.part.name, Scope({}, None))
        if takes_all(entry.part.node):
            self.add_step(steps.Seek(back))
        for each in entry.after:
            condition = each.mark
            for inner in self.unfollowed:
                condition = self.let("and", condition, self.let("==", inner.flag, self.constant(0)))
            with self.during(limit=each.limit, merging=[*self.merging, *each.columns]):
                self.if_true(condition, partial(self.node, each.node, each.path, Scope({}, None)))
            for inner in self.unfollowed:
                inner.after.append(each)
        return Value()


def maybe(value: Value, present: Place) -> Value:
    """A value that may be absent."""
    if value.inside is not None:
        inside = {name: maybe(each, present) for name, each in value.inside.items()}
        return Value(inside=inside, unfit="a structure", present=(present, *value.present))
    return replace(value, present=(present, *value.present))
