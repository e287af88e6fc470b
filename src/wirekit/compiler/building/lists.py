"""Lists inside a record in the kernel that builds: a loop over the elements, and a count in front of them.

The elements of all rows stand one after the other, as ``building.unfolding`` has put them; ``lj<number>`` is the one at
hand, and the arrays of a list's own column say where those of each row are, or of each element of the list around it.
What an element does not read must have no value, as with records.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from wirekit.compiler import ir
from wirekit.compiler.building.branches import Branches
from wirekit.compiler.building.expressions import Scope, Value, index_of
from wirekit.compiler.building.fields import NULL
from wirekit.compiler.building.kernel import LIST, unfit
from wirekit.compiler.building.unfolding import levels
from wirekit.compiler.expressions import Field, LengthOf
from wirekit.program.columns import Column, Repeated
from wirekit.program.values import LONGEST

UNREAD = "# unread "
"""What a line begins with that stands for the look for values which an element of a list has no place for."""


@dataclass(slots=True)
class Lists(Branches):
    """One loop a list, or one an alternative that shares it.

    Attributes:
        groups: the lists of the scanning kernel, by number.
        entered: those that are written, by number, with the bytes that an element takes at most.
    """

    groups: dict[int, Repeated] = field(default_factory=dict)
    entered: dict[int, tuple[Repeated, int]] = field(default_factory=dict)

    def listing(self) -> None:
        """Finds the lists of all columns."""
        groups = {each.number: each for column in self.columns.values() for each in levels(column.within)}
        self.groups = dict(sorted(groups.items()))
        for number, group in self.groups.items():
            slot = len(self.columns) + number
            self.lists[number] = Column(group.path, LIST, "", True, None, slot, within=group.outer)

    def several(self, node: ir.Several, path: str, scope: Scope, default: Any) -> Value:
        """A list."""
        group = self.group(path)
        if group is None:
            raise unfit(self.key, path, node, "its elements have no columns, so nothing tells how many there are")
        column = self.reading(self.lists[group.number])
        at, end, count = index_of(group), self.fresh("e"), self.fresh("k")
        nullable = self.may_be_null(node, column, default)
        self.put(f"{at}, {end} = {self.call('elements', column, f'o{column.slot}')}")
        self.put(f"{count} = np.int64({end} - {at})")
        self.counted(node, column, count, scope, nullable=nullable)
        self.put(f"while {at} < {end}:")
        self.depth += 1
        self.element(node, group, path, scope)
        self.put(f"{at} += np.uint64(1)")
        self.depth -= 1
        self.put("if reason != 0:")
        self.put("    break")
        return Value(unfit="a list", length="" if nullable else count, high=LONGEST)

    def group(self, path: str) -> Repeated | None:
        """The list that stands at a path."""
        return next((each for each in self.groups.values() if each.path == path and each.outer is self.around), None)

    def counts_ahead(self, node: ir.Structure, at: int, path: str, scope: Scope) -> None:
        """How many elements a list has whose number is what a member in front of it has by default."""
        member = node.members[at].node
        default = member.default if isinstance(member, ir.Optional) else None
        if not isinstance(default, LengthOf) or not isinstance(default.of, Field) or default.of.up:
            return
        for behind in node.members[at + 1 :]:
            group = self.group(f"{path}.{behind.name}" if path else behind.name)
            if (behind.name,) == default.of.names and isinstance(behind.node, ir.Several) and group is not None:
                own = self.reading(self.lists[group.number])
                begin, end, count = (self.fresh(stem) for stem in "rek")
                self.put(f"{begin}, {end} = {self.call('elements', own, f'o{own.slot}')}")
                self.put(f"{count} = np.int64({end} - {begin})")
                scope.fields[behind.name] = Value(unfit="a list", length=count, high=LONGEST)

    def may_be_null(self, node: ir.Several, column: Column, default: Any) -> bool:
        """Whether a list may be null; one that may not, and one without a default, is refused where it is."""
        if isinstance(node.count, ir.Number) and node.null is not None and node.count.signed:
            return True
        if node.count is not None and default != []:
            self.required(column)
        else:
            self.fail(self.null(column), column.path, NULL)
        return False

    def counted(self, node: ir.Several, column: Column, count: str, scope: Scope, *, nullable: bool) -> None:
        """Writes how many elements there are, or compares that with what the layout says."""
        if node.count is None:
            return
        if isinstance(node.count, ir.Number):
            if node.count.high < LONGEST:
                self.fail(f"{count} > {node.count.high}", column.path, f"expected at most {node.count.high} elements")
            told = count
            if nullable:
                told = self.fresh("t")
                self.put(f"{told} = {count} if {self.there(column)} else np.int64({node.null})")
            self.number(node.count, told)
            return
        wanted, _, _ = self.amount(node.count, scope, column.path)
        self.fail(f"{count} != np.int64({wanted})", column.path, "it has not as many elements as the layout says")

    def element(self, node: ir.Several, group: Repeated, path: str, scope: Scope) -> None:
        """Writes one element."""
        outer, met_parts, later, loose = self.around, self.met_parts, self.later, self.loose
        unset, most, lines = self.unset, self.most, self.lines
        self.around, self.met_parts, self.later, self.loose = group, {}, [], False
        self.unset, self.most, self.lines = [], 0, []
        start = self.mark("r") if node.until or not (node.count or ir.minimum(node.element)) else ""
        self.node(node.element, path, scope)
        if self.loose or self.later or self.met_parts:
            raise unfit(self.key, path, node, "of structures that are reached by several ways")
        if start and node.count is None:
            self.ending(node, group, path, start)
        self.put(f"{UNREAD}{group.number}")
        inside, self.lines = self.lines, lines
        for variable in self.unset:
            self.put(f"{variable} = False")
        self.lines += inside
        _, known = self.entered.get(group.number, (group, 0))
        self.entered[group.number] = group, max(known, self.most)
        self.around, self.met_parts, self.later, self.loose = outer, met_parts, later, loose
        self.unset, self.most = unset, most

    def ending(self, node: ir.Several, group: Repeated, path: str, start: str) -> None:
        """Of a list to the end: an element that would be taken for the end of it."""
        if not ir.minimum(node.element):
            self.fail(f"p == {start}", path, "it takes no bytes, which an element of a list to the end has not")
        if node.until:
            own = self.lists[group.number]
            tests = [f"o[{start} + {at}] == {byte}" for at, byte in enumerate(node.until)]
            later = f"{index_of(group)} != np.uint64(o{own.slot}[{self.at(own)}])"
            text = "it begins with the bytes that end the list"
            self.fail(f"p - {start} >= {len(node.until)} and {later} and {' and '.join(tests)}", path, text)

    def written_lists(self) -> list[str]:
        """All lines; what elements have no place for is known now."""
        found: list[str] = []
        once: dict[int, list[str]] = {}
        depth, self.depth = self.depth, 0
        for line in self.lines:
            code = line.lstrip()
            if not code.startswith(UNREAD):
                found.append(line)
                continue
            number = int(code.removeprefix(UNREAD))
            if number not in once:
                group, own = self.groups[number], self.lists[number].slot
                size = f"o{own}[o{own}.size - 1]"
                once[number] = self.unread_of(group, f"np.int64({index_of(group)})", size)
            indent = line[: len(line) - len(code)]
            found += [indent + each for each in once[number]]
        self.depth = depth
        return found

    def mark(self, stem: str) -> str:
        """A new variable for where the record has come to."""
        raise NotImplementedError
