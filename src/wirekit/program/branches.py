"""Conditions and branches: fields that may be absent have nullable columns.

Branches of a choice share a column if they have a field of the same path and type; the other fields of a record tell
the branches apart. If the types differ, the later column is named ``<path>:<type>``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from wirekit.compiler import ir
from wirekit.program import steps
from wirekit.program.choices import Choices, Join
from wirekit.program.columns import Column, Repeated
from wirekit.program.maker import SHORT
from wirekit.program.parts import Deferred
from wirekit.program.unfit import unfit
from wirekit.program.values import Place, Scope, Value

Work = Callable[[], Value]


@dataclass(slots=True)
class Branches(Choices):
    """Reads optional nodes, and choices between nodes.

    Attributes:
        loose: parts behind which nothing was read yet, see ``program.shared``.
    """

    loose: list[Deferred] = field(default_factory=list)

    def arms(self, works: list[Work], join: Join) -> list[tuple[int, Value]]:
        """Emits alternative pieces of work; returns (register for whether it was done, value) of each."""
        outer, merging = self.maybe, self.merging
        defaults, self.defaults = self.defaults, []
        known = len(self.columns)
        self.maybe = True
        results, bodies = [], []
        loose, left = self.loose, list(self.loose)
        for work in works:
            self.merging, self.loose = [*merging, *self.columns[known:]], list(loose)
            with self.block() as body:
                present = self.let("=", self.constant(1))
                results.append((present, work()))
            bodies.append(body)
            left += [each for each in self.loose if not any(each is other for other in left)]
        self.loose, self.maybe, self.merging = left, outer, merging
        if outer:
            self.defaults = defaults + self.defaults
        else:
            unset, self.defaults = self.defaults, defaults
            self.clear(unset)
        step = join(bodies)
        if step is not None:
            self.put(step)
        else:
            self.body += bodies[0]
        return results

    def if_true(self, condition: int, work: Work, symbol: str = "!=", than: int = 0) -> tuple[int, Value]:
        """Emits work that is done if a register is not 0, or compares so with a number."""
        bound = self.constant(than)
        return self.arms([work], lambda bodies: steps.Test(symbol, condition, bound, bodies[0]))[0]

    def when(self, condition: int, node: ir.Node, path: str, scope: Scope) -> Value:
        """Reads a node whose presence a condition decides."""
        present, value = self.if_true(condition, lambda: self.node(node, path, scope))
        return maybe(value, present)

    def visit_When(self, node: ir.When, path: str, scope: Scope) -> Value:
        return self.when(self.expression(node.condition, scope, path)[0], node.node, path, scope)

    def visit_WhenNext(self, node: ir.WhenNext, path: str, scope: Scope) -> Value:
        to = self.fresh()
        self.put(steps.Peek(to, self.limit, node.magic))
        return self.when(to, node.node, path, scope)

    def visit_WhenMore(self, node: ir.WhenMore, path: str, scope: Scope) -> Value:
        at = self.fresh()
        self.put(steps.Mark(at))
        return self.when(self.let("<", at, self.limit), node.node, path, scope)

    def choice(self, node: ir.Alternatives, path: str, scope: Scope) -> Value:
        """Reads one of several nodes."""

        def work(inner: ir.Node | None) -> Work:
            return partial(self.wrong, node, path) if inner is None else partial(self.node, inner, path, scope)

        nodes, join = self.alternatives(node, scope, path)
        results = self.arms([work(inner) for inner in nodes], join)
        if len(results) == 1:
            return maybe(results[0][1], results[0][0])
        return Value(unfit="one of several fields")

    def wrong(self, node: ir.Alternatives, path: str) -> Value:
        """Refuses a value that no case has."""
        zero = self.constant(0)
        self.put(steps.Refuse("==", zero, zero, self.fault(path, "wrong", self.no_case(node))))
        return Value(unfit="nothing")

    def visit_Ahead(self, node: ir.Ahead, path: str, scope: Scope) -> Value:
        size = node.at + ir.minimum(node.node)
        self.put(steps.Need(size, self.limit, self.fault(path, "short", f"needs {size} bytes, more than there are")))
        back = self.fresh()
        self.put(steps.Mark(back))
        if node.at:
            self.put(steps.Seek(back, node.at))
        value = self.node(node.node, path, scope)
        self.put(steps.Seek(back))
        return value

    def visit_Bounded(self, node: ir.Bounded, path: str, scope: Scope) -> Value:
        self.narrow(node.length, path, node, "length")
        size = self.load(node.length, path).to
        work = partial(self.within, node, size, path, scope)
        if node.null is None:
            return work()
        present, value = self.if_true(size, work, ">", node.null)
        return maybe(value, present)

    def within(self, node: ir.Bounded, size: int, path: str, scope: Scope) -> Value:
        """Reads a node inside the limit of a length."""
        self.not_negative(size, path)
        inner = self.fresh()
        fault = self.fault(path, "short", SHORT)
        self.put(steps.Bound(inner, self.limit, size, 0, fault, zero_is_rest=False, record=False))
        with self.before(inner):
            value = self.node(node.node, path, scope)
        self.gaps = True
        self.put(steps.Close(inner))
        return value

    def written(self) -> None:
        """Reads the deferred parts."""
        raise NotImplementedError

    def visit_Fallback(self, node: ir.Fallback, path: str, scope: Scope) -> Value:
        """Reads a node, or bytes that do not fit it; ``<path>.ok`` is true for the node."""

        def work() -> Value:
            begin, gap = self.fresh(), self.fresh()
            self.gaps = True
            stored, self.stored = self.stored, []
            entered, self.entered = self.entered, []
            messages = len(self.messages)
            with self.block() as body:
                self.node(node.node, path, scope)
                self.written()
            if messages < len(self.messages) or self.contents is not None:
                raise unfit(self.key, path, node, "of a message")
            inside, self.stored = self.stored, stored + self.stored
            lists, self.entered = self.entered, entered + self.entered
            verdict = self.verdict(path)
            body.append(steps.Emit(verdict, self.constant(1)))
            with self.block() as otherwise:
                self.put(steps.Emit(verdict, self.constant(0)))
                merging, self.merging = self.merging, [*self.merging, *inside]
                start, length = self.fresh(), self.fresh()
                self.put(steps.Slice(start, length, self.limit))
                self.put(steps.Gap(length))
                self.put(steps.Copy(self.column(path, "bytes"), start, length))
                self.merging = merging
            self.put(steps.Try(begin, gap, self.undone(lists, inside), body, otherwise))
            return Value(unfit="a field that may not fit")

        if self.maybe:
            return work()
        return self.arms([work], lambda bodies: None)[0][1]

    def undone(self, lists: list[Repeated], columns: list[Column] | None = None) -> list[Repeated | Column]:
        """Lists with all lists inside them, outer ones first, and columns."""
        inside: list[Repeated] = []
        for group in self.lists:
            if any(group is each for each in lists) or any(group.outer is each for each in inside):
                inside.append(group)
        held = [column for column in self.columns if any(column.within is each for each in inside)]
        return [*inside, *held, *(column for column in columns or () if column not in held)]


def maybe(value: Value, present: Place) -> Value:
    """A value that may be absent."""
    if value.inside is not None:
        inside = {name: maybe(each, present) for name, each in value.inside.items()}
        return Value(inside=inside, unfit="a structure", present=(present, *value.present))
    return replace(value, present=(present, *value.present))
