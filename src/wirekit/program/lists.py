"""Lists inside a record: a loop that appends each element to arrays.

The elements of all rows are in arrays, one after the other. ``lo<number>`` has the end of the elements of each row, or
of each element of the list around it, so that lists nest.

Before any element is read, a count is compared with the number of elements that fit into the bytes left, each of the
least size of an element but at least one byte. So arrays grow with the bytes that were read, never with a count.
"""

from __future__ import annotations

from dataclasses import dataclass

from wirekit.compiler import ir
from wirekit.program.branches import Branches
from wirekit.program.columns import Repeated
from wirekit.program.steps import Body, Emit, Loop
from wirekit.program.unfit import unfit
from wirekit.program.values import LONGEST, Scope, Value

EMPTY = "expected a record of at least one byte, found an empty one"


@dataclass(slots=True)
class Lists(Branches):
    """Reads lists; each field of the elements has one column.

    Attributes:
        stop: whether the current list does not read a record, or an element, that the limit ``cutting`` cuts.
    """

    stop: bool = False

    def visit_Several(self, node: ir.Several, path: str, scope: Scope) -> Value:
        count, present = self.counted(node, path, scope)
        group = self.repeated(path, nullable=present is not None or self.maybe)
        self.entered.append(group)
        turn, start = self.fresh(), self.fresh()
        gap = None
        if node.stop:
            self.gaps = True
            gap = self.fresh()
        body = self.element_of(node, group, path, scope)
        empty = None
        if count is None and not ir.minimum(node.element):
            empty = self.fault(path, "wrong", EMPTY)
        undo = [each for each in self.undone([group]) if each is not group] if node.stop else []
        self.put(Loop(group, group.index, turn, count, self.limit, present, node.until, empty, start, gap, undo, body))
        if node.announced is not None:
            verdict = self.verdict(path)
            self.put(Emit(verdict, self.let("==", self.expression(node.announced, scope, path)[0], turn)))
        return Value(unfit="a list", length=turn, high=LONGEST, present=() if present is None else (present,))

    def counted(self, node: ir.Several, path: str, scope: Scope) -> tuple[int | None, int | None]:
        """(register with the number of elements, None for as many as fit; register for the presence of the list)."""
        if node.count is None:
            return None, None
        present = None
        if isinstance(node.count, ir.Number):
            count, present = self.number_in_front(node, node.count, path, "count")
        else:
            amount, low, _ = self.amount(node.count, scope, path)
            count = self.let("=", amount)
            if low < 0:
                self.not_negative(count, path, "count")
        self.fits(count, path, max(node.least, 1))
        return count, present

    def repeated(self, path: str, *, nullable: bool) -> Repeated:
        """A new list, or that of an alternative at the same path."""
        for column in self.merging:
            group = column.within
            while group is not None:
                if group.path == path and group.outer is self.around:
                    return group
                group = group.outer
        if any(group.path == path and group.outer is self.around for group in self.lists):
            raise unfit(self.key, path, "a second list of that name")
        group = Repeated(len(self.lists), path, self.around, nullable, self.maybe, index=self.register())
        self.lists.append(group)
        return group

    def element_of(self, node: ir.Several, group: Repeated, path: str, scope: Scope) -> Body:
        """Reads one element and appends its fields to the columns."""
        merging = [each for each in self.columns if _is_inside(each.within, group)]
        leaving = {"cutting": self.limit, "stop": True} if node.stop else {}
        with self.during(around=group, entered=[], loose=[], defaults=[], merging=merging, stored=[], **leaving):
            with self.block() as inside:
                self.node(node.element, path, scope)
            unset = self.defaults
        with self.block() as body:
            if self.maybe:
                self.clear(unset)
            self.body += inside
        return body


def _is_inside(group: Repeated | None, other: Repeated) -> bool:
    while group is not None and group is not other:
        group = group.outer
    return group is other
