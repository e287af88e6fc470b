"""Conditions and alternatives in a kernel: what may not be there has nullable columns.

Alternatives of a choice share a column where they have a field of the same path and type: what a record holds tells
which it was. Where types differ, the later one is called ``<path>:<type>``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from wirekit.compiler import ir
from wirekit.compiler.columns.choices import Choices
from wirekit.compiler.columns.expressions import Scope, Value
from wirekit.compiler.columns.kernel import Column, Repeated
from wirekit.compiler.columns.loops import ABSENT
from wirekit.compiler.columns.plan import unfit
from wirekit.compiler.columns.writer import Writer, index_of

Arm = tuple[str, Callable[[], Value]]


@dataclass(slots=True)
class Branches(Writer, Choices):
    """The nodes that are there or not, or one of several."""

    def arms(self, arms: list[Arm]) -> list[tuple[str, Value]]:
        """One of several pieces of code, by condition ("" for all other cases); gives (is there, value) of each."""
        outer, merging = self.maybe, self.merging
        lines, self.lines = self.lines, []
        defaults, self.defaults = self.defaults, []
        known, listed = len(self.columns), len(self.lists)
        self.maybe = True
        found = []
        loose, left = self.loose, list(self.loose)
        for at, (condition, work) in enumerate(arms):
            self.merging, self.loose = [*merging, *self.columns[known:]], list(loose)
            self.put(f"{'elif' if at else 'if'} {condition}:" if condition else "else:" if at else "if True:")
            self.depth += 1
            present = self.fresh("h")
            self.put(f"{present} = np.int64(1)")
            value = work()
            self.depth -= 1
            found.append((present, value))
            left += [each for each in self.loose if not any(each is other for other in left)]
        self.loose = left
        inside, self.lines = self.lines, lines
        self.maybe, self.merging = outer, merging
        if outer:
            self.defaults = defaults + self.defaults
        else:
            unset, self.defaults = self.defaults, defaults
            for line in unset:
                self.put(line)
            self.absent(self.columns[known:])
            self.no_lists(self.lists[listed:])
        self.lines += inside
        return found

    def absent(self, columns: list[Column]) -> None:
        """Writes null to columns, except for byte strings, which are written at the end of a record."""
        copied = {id(each.column) for each in self.copies}
        absent = [each for each in self.columns if id(each) not in copied and any(each is other for other in columns)]
        absent = [each for each in absent if each.within is self.around]
        if absent and self.around is None:
            self.put(ABSENT + " ".join(str(each.slot) for each in absent))
        elif absent:
            for column in absent:
                self.put(f"c{column.slot}[{index_of(self.around)}] = 0")
                self.put(f"v{column.slot}[{index_of(self.around)}] = 0")

    def no_lists(self, lists: list[Repeated]) -> None:
        """Writes null for lists."""
        for group in lists:
            if group.outer is self.around:
                self.put(f"lv{group.number}[{index_of(self.around)}] = 0")

    def when(self, condition: str, node: ir.Node, path: str, e: str, scope: Scope) -> Value:
        """A node that a condition makes there."""
        ((present, value),) = self.arms([(condition, lambda: self.node(node, path, e, scope))])
        return maybe(value, present)

    def next(self, node: ir.WhenNext, path: str, e: str, scope: Scope) -> Value:
        """A node that is there when these bytes are next."""
        size = len(node.magic)
        tests = [f"{e} - p >= {size}", *(f"b[p + {at}] == {byte}" for at, byte in enumerate(node.magic))]
        return self.when(" and ".join(tests), node.node, path, e, scope)

    def choice(self, node: ir.Choice | ir.Either, path: str, e: str, scope: Scope) -> Value:
        """One of several nodes."""
        arms: list[Arm] = []
        for condition, inner in self.alternatives(node, scope, path):
            if inner is None:
                arms.append((condition, lambda: self.no_case(node, path)))
            else:
                arms.append((condition, partial(self.node, inner, path, e, scope)))
        found = self.arms(arms)
        if len(found) == 1:
            return maybe(found[0][1], found[0][0])
        return Value(unfit="one of several fields")

    def no_case(self, node: ir.Choice | ir.Either, path: str) -> Value:
        cases = ", ".join(str(value) for values, _ in node.cases for value in values) if hasattr(node, "cases") else ""
        self.fail("True", path, "wrong", f"expected one of {cases}")
        return Value(unfit="nothing")

    def ahead(self, node: ir.Ahead, path: str, e: str, scope: Scope) -> Value:
        """A node that is read and not consumed."""
        size = node.at + ir.minimum(node.node)
        self.fail(f"{e} - p < {size}", path, "short", f"needs {size} bytes, more than there are", cut=e == self.cutting)
        back = self.fresh("r")
        self.put(f"{back} = p")
        self.put(f"p += {node.at}")
        value = self.node(node.node, path, e, scope)
        self.put(f"p = {back}")
        return value

    def bounded(self, node: ir.Bounded, path: str, e: str, scope: Scope) -> Value:
        """A node inside a length of its own."""
        if node.length.size == 8 and not node.length.signed:
            raise unfit(self.key, path, node, "a length of 64 bits without sign")
        size = self.raw(node.length, path, e)
        if node.null is None:
            return self.within(node, size, path, e, scope)
        ((present, value),) = self.arms([(f"{size} > {node.null}", lambda: self.within(node, size, path, e, scope))])
        return maybe(value, present)

    def within(self, node: ir.Bounded, size: str, path: str, e: str, scope: Scope) -> Value:
        self.fail(f"{size} < 0", path, "wrong", "expected a length of at least 0")
        self.fail(f"{size} > {e} - p", path, "short", "needs more bytes than there are", cut=e == self.cutting)
        limit = self.fresh("e")
        self.put(f"{limit} = p + {size}")
        value = self.node(node.node, path, limit, scope)
        self.gaps = True
        self.put(f"gap0 += {limit} - p")
        self.put(f"p = {limit}")
        return value

    def written(self) -> None:
        """Writes what has been put off."""
        raise NotImplementedError

    def rewound(self, group: Repeated) -> Iterator[str]:
        """Forgets the elements of a list that the record at hand has added."""
        raise NotImplementedError

    def raw(self, number: ir.Number, path: str, e: str) -> str:
        """Reads a number that has no column."""
        raise NotImplementedError

    def fallback(self, node: ir.Fallback, path: str, e: str, scope: Scope) -> Value:
        """A node, or the bytes where they do not fit it; ``<path>.ok`` tells which."""

        def work() -> Value:
            begin, gap = self.fresh("r"), self.fresh("r")
            self.gaps = True
            self.put(f"{begin}, {gap} = p, gap0")
            stored, self.stored = self.stored, []
            entered, self.entered = self.entered, []
            messages = len(self.messages)
            self.put("while True:  # once")
            self.depth += 1
            self.node(node.node, path, e, scope)
            self.written()
            self.put("break")
            self.depth -= 1
            if messages < len(self.messages) or self.contents is not None:
                raise unfit(self.key, path, node, "of a message")
            inside, self.stored = self.stored, stored + self.stored
            lists, self.entered = self.entered, entered + self.entered
            if lists:
                self.put("if full:")
                self.put("    break")
            limits = [number for number, reason in enumerate(self.reasons, 1) if reason.kind == "limit"]
            self.put("if " + " or ".join(f"abs(reason) == {number}" for number in limits or [-1]) + ":")
            self.put("    break")
            verdict = self.column(f"{path}.ok", "flag", "uint8")
            self.store(verdict, "reason == 0")
            self.put("if reason != 0:")
            self.depth += 1
            self.put(f"p, gap0, reason = {begin}, {gap}, np.int64(0)")
            self.absent(list(inside))
            self.no_lists(lists)
            for group in lists:
                self.later(partial(self.rewound, group))
            for each in self.copies:
                if any(each.column is column for column in inside):
                    self.put(f"{each.length}, {each.present} = 0, 0")
            merging, self.merging = self.merging, [*self.merging, *inside]
            self.node(ir.Blob(None, None, False, False, False), path, e, scope)
            self.merging = merging
            self.depth -= 1
            return Value(unfit="a field that may not fit")

        if self.maybe:
            return work()
        return self.arms([("", work)])[0][1]


def maybe(value: Value, present: str) -> Value:
    """A value that may not be there."""
    if value.inside is not None:
        inside = {name: maybe(each, present) for name, each in value.inside.items()}
        return Value(inside=inside)
    both = f"({present} and {value.present})" if value.present else present
    return replace(value, present=both)
