"""Lists inside a record: a loop in the kernel, and arrays with an element an element.

The elements of all rows stand one after the other, in arrays of their own; ``lo<number>`` has where those of each row
end, or of each element of the list around it, so that lists nest. Nothing is kept of a record that turns out to be
bad: how many elements there are is taken from these offsets when the next record begins.

A count is compared with the bytes that are left before any element is read, as many as fit at the least size of an
element, at least one byte each. So arrays grow with what was read, never with a number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wirekit.compiler import ir
from wirekit.compiler.columns.contents import Contained
from wirekit.compiler.columns.expressions import LONGEST, Scope, Value
from wirekit.compiler.columns.kernel import FULL_LIST, Repeated
from wirekit.compiler.columns.plan import unfit
from wirekit.compiler.columns.writer import index_of


@dataclass(slots=True)
class Lists(Contained):
    """One column a field of a list's elements."""

    def several(self, node: ir.Several, path: str, e: str, scope: Scope) -> Value:
        """A list."""
        outer = self.around
        count, present = self.counted(node, path, e, scope)
        group = self.repeated(path, nullable=bool(present) or self.maybe)
        self.entered.append(group)
        if group.nullable:
            self.put(f"lv{group.number}[{index_of(outer)}] = {present or 1}")
        turn = self.fresh("k")
        start, gap = self.fresh("r"), self.fresh("r")
        self.put(f"{turn} = np.int64(0)")
        self.put(f"while {turn} < {count}:" if count else f"while p < {e}:")
        self.depth += 1
        if node.until:
            tests = [f"b[p + {at}] == {byte}" for at, byte in enumerate(node.until)]
            self.put(f"if {turn} > 0 and {e} - p >= {len(node.until)} and {' and '.join(tests)}:")
            self.put("    break")
        self.put(f"if lq{group.number} >= room[{group.number}]:")
        self.put(f"    full = {FULL_LIST + group.number}")
        self.put("    break")
        self.put(f"lj{group.number} = np.uint64(lq{group.number})")
        self.put(f"{start} = p")
        if node.stop:
            self.gaps = True
            self.put(f"{gap} = gap0")
        self.element_of(node, group, path, e, scope)
        if not count and not ir.minimum(node.element):
            self.fail(f"p == {start}", path, "wrong", "expected a record of at least one byte, found an empty one")
        self.put(f"lq{group.number} += 1")
        self.put(f"{turn} += 1")
        self.depth -= 1
        if node.stop:  # the limit cuts the last element, which is left alone
            self.put("if reason < 0:")
            self.depth += 1
            self.put(f"p, gap0, reason = {start}, {gap}, np.int64(0)")
            self.later(lambda: self.begun(group))
            self.depth -= 1
        self.put("if full or reason != 0:")
        self.put("    break")
        if node.announced is not None:
            verdict = self.column(f"{path}.ok", "flag", "uint8")
            self.store(verdict, f"{self.expression(node.announced, scope, path)[0]} == {turn}")
        return Value(unfit="a list", length="" if present else turn, high=LONGEST)

    def counted(self, node: ir.Several, path: str, e: str, scope: Scope) -> tuple[str, str]:
        """(how many elements there are, "" for as many as fit; what tells whether there is a list, "" for always)."""
        if node.count is None:
            return "", ""
        present, low = "", 0
        if isinstance(node.count, ir.Number):
            if node.count.size == 8 and not node.count.signed:
                raise unfit(self.key, path, node, "a count of 64 bits without sign")
            count, low = self.raw(node.count, path, e), node.count.low
            if node.null is not None and node.count.signed:
                present = self.fresh("h")
                self.put(f"{present} = np.int64({count} > {min(node.null, -1)})")
                self.put(f"{count} = {count} if {present} else np.int64(0)")
                low = min(node.null, -1) + 1
        else:
            count = self.fresh("n")
            amount, low, _ = self.amount(node.count, scope, path)
            self.put(f"{count} = np.int64({amount})")
        if low < 0:
            self.fail(f"{count} < 0", path, "wrong", "expected a count of at least 0")
        least = max(ir.minimum(node.element), 1)
        room = f"({e} - p) // {least}" if least > 1 else f"{e} - p"
        self.fail(f"{count} > {room}", path, "short", "needs more bytes than there are", cut=e == self.cutting)
        return count, present

    def repeated(self, path: str, *, nullable: bool) -> Repeated:
        """A new list, or that of an alternative, which stands at the same path."""
        for column in self.merging:
            group = column.within
            while group is not None:
                if group.path == path and group.outer is self.around:
                    return group
                group = group.outer
        if any(group.path == path and group.outer is self.around for group in self.lists):
            raise unfit(self.key, path, "a second list of that name")
        group = Repeated(len(self.lists), path, self.around, nullable)
        self.lists.append(group)
        return group

    def element_of(self, node: ir.Several, group: Repeated, path: str, e: str, scope: Scope) -> None:
        """Reads one element, and adds what it holds to the columns."""
        outer, entered, loose, cutting = self.around, self.entered, self.loose, self.cutting
        lines, self.lines = self.lines, []
        defaults, self.defaults = self.defaults, []
        merging, self.merging = self.merging, [each for each in self.columns if _inside(each.within, group)]
        stored, self.stored = self.stored, []
        self.around, self.entered, self.loose = group, [], []
        if node.stop:
            self.cutting = e
        self.node(node.element, path, e, scope)
        inside, self.lines = self.lines, lines
        unset, self.defaults = self.defaults, defaults
        if self.maybe:
            for line in unset:
                self.put(line)
            self.later(lambda: self.nothing(group))
        self.lines += inside
        self.later(lambda: self.added(group))
        self.uses.add("copy")
        self.merging, self.stored = merging, stored
        self.around, self.entered, self.loose, self.cutting = outer, entered, loose, cutting

    def nothing(self, group: Repeated) -> Iterator[str]:
        """Null in all columns of a list that alternatives share: each of them writes only its own."""
        copied = {id(each.column) for each in self.copies}
        for column in self.columns:
            if column.within is group and id(column) not in copied:
                yield f"c{column.slot}[lj{group.number}] = 0"
                yield f"v{column.slot}[lj{group.number}] = 0"
        for each in self.copies:
            if each.column.within is group:
                yield f"{each.start}, {each.length}, {each.present} = np.int64(0), np.int64(0), np.int64(0)"
        for inner in self.lists:
            if inner.outer is group:
                yield f"lv{inner.number}[lj{group.number}] = 0"

    def added(self, group: Repeated | None) -> Iterator[str]:
        """An element is good, or a record (None): its byte strings are copied, its lists end here."""
        at = index_of(group)
        for each in self.copies:
            if each.column.within is group and group is not None:
                slot = each.column.slot
                yield f"if {each.length} > d{slot}.size - w{slot}:"
                yield "    full = 2"
                yield "    break"
                if each.column.nullable:
                    yield f"v{slot}[{at}] = {each.present}"
                yield f"copy(d{slot}, w{slot}, b, {each.start}, {each.length})"
                yield f"w{slot} += {each.length}"
                yield f"o{slot}[{at} + np.uint64(1)] = w{slot}"
        for inner in self.lists:
            if inner.outer is group:
                yield f"lo{inner.number}[{at} + np.uint64(1)] = lq{inner.number}"

    def begun(self, group: Repeated | None = None) -> Iterator[str]:
        """At the beginning of a record: the elements behind those of the last good one are forgotten."""
        for inner in self.lists:
            if inner.outer is group:
                yield from self.rewound(inner)

    def rewound(self, group: Repeated) -> Iterator[str]:
        at = "i" if group.outer is None else f"lq{group.outer.number}"
        yield f"lq{group.number} = np.int64(lo{group.number}[{at}])"
        for column in self.columns:
            if column.within is group and column.kind in ("bytes", "text"):
                yield f"w{column.slot} = np.int64(o{column.slot}[lq{group.number}])"
        yield from self.begun(group)


def _inside(group: Repeated | None, other: Repeated) -> bool:
    while group is not None and group is not other:
        group = group.outer
    return group is other
