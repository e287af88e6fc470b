"""Conditions and alternatives in the kernel that builds.

What a record does not read must have no value. Structures that a record reaches by several ways are written
once, as ``program.parts`` reads them once: where one stands, the kernel notes that it was met, and it is written when
all that may lead there is done. What stands behind it, and what is computed of it, comes after that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from wirekit.compiler import ir
from wirekit.compiler.building.expressions import Scope, Value, maybe, reader
from wirekit.compiler.building.fields import Fields
from wirekit.compiler.building.kernel import Reason, unfit, watching
from wirekit.program.columns import Column, Repeated
from wirekit.program.facts import is_wide
from wirekit.program.parts import Part

Told = list[tuple[str, str]]
"""(Condition that something has a value, its path) of what is written under a condition."""
UNREAD = "has a value, where the layout has none"


@dataclass(slots=True)
class Branches(Fields):
    """The nodes that are there or not, or one of several.

    Attributes:
        once: the structures that are written once, by id.
        met_parts: those that were met and are not written yet: the part, and the variable that tells.
        loose: whether something was put off that stands before what would be written now.
        later: what comes when it is written: a variable that tells whether, and the work.
        unset: variables that are False until they are set.
        some: messages that only some records have.
        lists: by number, the column that says where the elements of a list are.
    """

    once: dict[int, Part] = field(default_factory=dict)
    met_parts: dict[int, tuple[Part, str]] = field(default_factory=dict)
    loose: bool = False
    later: list[tuple[str, Callable[[], None]]] = field(default_factory=list)
    unset: list[str] = field(default_factory=list)
    some: set[int] = field(default_factory=set)
    lists: dict[int, Column] = field(default_factory=dict)

    def apart(self, work: Callable[[], Value], *, constants: bool = False) -> tuple[Value, list[str], Told]:
        """What ``work`` writes one level deeper, and of what it reads what has a value only if it is there.

        Args:
            constants: whether a constant is such.
        """
        read, self.read = self.read, {}
        walked, self.walked = self.walked, []
        lines, self.lines = self.lines, []
        outer, self.maybe = self.maybe, True
        self.depth += 1
        value = work()
        self.depth -= 1
        inside, self.lines = self.lines, lines
        here = (each for each in self.read.values() if each.within is self.around)
        within = [each for each in here if not self._verdict(each.slot)]
        tells = [each for each in within if self._tells(each.slot, constants)]
        told = [(self.there(each), each.path) for each in tells or (() if self.walked else within)]
        for number, where in self.walked:
            self.uses.add("filled")
            told.append((f"filled(m{number}, {self.messages[number].root}, row, -1)", where))
        if self.opened and any(each.path == self.opened for each in self.read.values()):
            told.append(("rows0[i] >= 0", self.opened))
        self.read, self.walked, self.maybe = read | self.read, walked + self.walked, outer
        return value, inside or ["    " * (self.depth + 1) + "pass"], told

    def _tells(self, slot: int, constants: bool) -> bool:
        """Whether a value says that a node is there; of nodes with nothing else in them, any value does."""
        return slot not in self.computed and (constants or slot not in self.constants)

    def _verdict(self, slot: int) -> bool:
        return self.read[slot].path.endswith(".ok") or self.read[slot].path == "ok"

    def when(self, condition: str, node: ir.Node, path: str, scope: Scope, *, constants: bool = False) -> Value:
        """What is there only if the condition holds, or without one, if there is a value."""
        value, inside, told = self.apart(lambda: self.node(node, path, scope), constants=constants)
        present = self.fresh("h")
        self.put(f"{present} = {condition or ' or '.join(code for code, _ in told) or 'False'}")
        self.put(f"if {present}:")
        self.lines += inside
        return maybe(value, present)

    def alone(self, node: ir.Constant, path: str, scope: Scope, default: Any) -> Value:
        """A constant that may not be there: its column tells; without one, it is there if it has a default."""
        column, present = self.column(path), self.fresh("h")
        missing = f"given[{column.slot}] == 0"
        self.put(f"{present} = {self.there(column)}{f' or {missing}' if default is not None else ''}")
        self.put(f"if {present}:")
        self.depth += 1
        value = self.constant(node, path, scope)
        self.depth -= 1
        return maybe(value, present)

    # One of several.

    def choice(self, node: ir.Choice | ir.Either, path: str, scope: Scope) -> Value:
        """One of several nodes; those that are not chosen have no values."""
        arms, loose, left = [], self.loose, False
        for condition, inner in self.alternatives(node, scope, path):
            self.loose = loose
            arms.append((condition, *self.apart(partial(self.arm, node, inner, path, scope))))
            left |= self.loose
        self.loose = left
        self.one_of([(condition, inside) for condition, _, inside, _ in arms])
        if len(arms) == 1:
            return arms[0][1]
        return Value(unfit="one of several fields")

    def arm(self, node: ir.Choice | ir.Either, inner: ir.Node | None, path: str, scope: Scope) -> Value:
        if inner is not None:
            return self.node(inner, path, scope)
        cases = ", ".join(str(value) for values, _ in node.cases for value in values) if hasattr(node, "cases") else ""
        self.fail("True", path, f"there is no such case; expected one of {cases}")
        return Value(unfit="nothing")

    def one_of(self, arms: list[tuple[str, list[str]]]) -> None:
        """Alternatives, by condition ("" for all other cases)."""
        for at, (condition, inside) in enumerate(arms):
            self.put(f"{'elif' if at else 'if'} {condition}:" if condition else "else:" if at else "if True:")
            self.lines += inside

    def ahead(self, node: ir.Ahead, path: str, scope: Scope) -> Value:
        """What stands ahead is read, and written where it stands."""
        back = self.fresh("r")
        self.put(f"{back} = p")
        self.put(f"p += {node.at}")
        value = self.node(node.node, path, scope)
        self.put(f"p = {back}")
        self.most += node.at
        return value

    def bounded(self, node: ir.Bounded, path: str, scope: Scope) -> Value:
        """A node behind a length of its own; null, if that may be, when nothing of it has a value."""
        number, begin, size = node.length, self.fresh("a"), self.fresh("n")
        value, inside, told = self.apart(lambda: self.node(node.node, path, scope))
        present = self.fresh("h")
        self.put(f"{begin} = p")
        self.put(f"p += {number.size}")
        self.most += number.size
        self.put(f"{present} = {'True' if node.null is None else ' or '.join(code for code, _ in told) or 'False'}")
        self.put(f"if {present}:")
        self.lines += inside
        self.put(f"{size} = np.int64(p - {begin} - {number.size})")
        if not is_wide(number):
            self.fail(f"{size} > {number.high}", path, f"it takes more than {number.high} bytes")
        if node.null is not None:
            self.put(f"if not {present}:")
            self.put(f"    {size} = np.int64({node.null})")
        self.patched(number, begin, size)
        return maybe(value, present)

    def patched(self, number: ir.Number, place: str, value: str) -> None:
        """Writes a number where room was left for it."""
        function = f"put_{reader(number)}"
        self.uses.add(function)
        self.put(f"{function}(o, {place}, {value})")

    def fallback(self, node: ir.Fallback, path: str, scope: Scope) -> Value:
        """A node, or bytes where they did not fit it, which ``<path>.ok`` tells; without it, the bytes' column."""

        def fitting() -> Value:
            value = self.node(node.node, path, scope)
            self.written()
            return value

        verdict = self.column(f"{path}.ok")
        loose = self.loose
        _, inside, _ = self.apart(fitting)
        _, other, bytes_ = self.apart(lambda: self.blob(ir.Blob(None, None, False, False, False), path, scope))
        self.loose = loose
        missing = "".join(f" or (given[{verdict.slot}] == 0 and {code})" for code, _ in bytes_)
        bad = f"({self.bad(verdict)}){missing}"
        self.one_of([(bad, other), ("", inside)])
        return Value(unfit="a field that may not fit")

    # What is written once.

    def met(self, part: Part) -> Value:
        """Notes that a part stands here."""
        if id(part.node) not in self.met_parts:
            self.met_parts[id(part.node)] = (part, self.flag())
        self.put(f"{self.met_parts[id(part.node)][1]} = True")
        self.loose = True
        return Value(unfit="a structure that is reached by several ways")

    def flag(self) -> str:
        """A variable that is False until it is set."""
        self.unset.append(self.fresh("g"))
        return self.unset[-1]

    def put_off(self, work: Callable[[], None]) -> None:
        """Leaves for later what stands behind a part, if the record comes here."""
        mark = self.flag()
        self.put(f"{mark} = True")
        self.later.append((mark, work))

    def written(self) -> None:
        """Writes all parts that were met, then what stands behind them: the innermost first."""
        groups: list[list[tuple[str, Callable[[], None]]]] = []
        while self.met_parts:
            part, flag = min(self.met_parts.values(), key=lambda each: each[0].order)
            del self.met_parts[id(part.node)]
            groups.append(self.later)
            self.later, self.loose = [], False
            _, inside, _ = self.apart(partial(self.structure, part.node, part.name, Scope({}, None)))
            self.put(f"if {flag}:")
            self.lines += inside
        groups.append(self.later)
        self.later, self.loose = [], False
        for mark, work in (each for group in reversed(groups) for each in group):
            lines, self.lines = self.lines, []
            self.depth += 1
            work()
            self.depth -= 1
            inside, self.lines = self.lines, lines
            if inside:
                self.put(f"if {mark}:")
                self.lines += inside
            if self.loose or self.later:
                raise unfit(self.key, "", "a structure behind another", "both are reached by several ways")

    def unread(self) -> None:
        """What a record has no place for has no value."""
        self.watched = {slot: path for slot, path in self.watched.items() if self._watches(slot)}
        self.lines += self.unread_of(None, "row", "rows")
        for number, path in self.walked:
            if number in self.some:
                self.uses.add("filled")
                filled = f"filled(m{number}, {self.messages[number].root}, row, -1)"
                self.fail(f"seen[{self.stamp(number)}] != row and {filled}", path, UNREAD)
        if self.opened and self.columns[self.opened].slot in self.watched:
            self.fail(f"seen[{self.columns[self.opened].slot}] != row and rows0[i] >= 0", self.opened, UNREAD)

    def _watches(self, slot: int) -> bool:
        return self._tells(slot, constants=False) and slot not in self.always

    def unread_of(self, group: Repeated | None, at: str, size: str) -> list[str]:
        """The lines that look for a value which a record, or an element of a list, has no place for.

        Args:
            at: the variable for which of them it is.
            size: how many there are.
        """
        slots = [slot for slot in self.watched if self.read[slot].within is group]
        if not slots:
            return []
        self.uses.add("unread")
        first = len(self.reasons) + 1
        self.reasons += [Reason(self.watched[slot], UNREAD, group) for slot in slots]
        lines = [
            f"reason = unread({watching(group)}, seen, {at}, {size})",
            "if reason >= 0:",
            f"    reason = -{first} - reason",
            "    break",
            "reason = np.int64(0)",
        ]
        return ["    " * self.depth + line for line in lines]

    def stamp(self, number: int) -> int:
        """Where ``seen`` tells of a message."""
        return len(self.columns) + len(self.lists) + 1 + number

    def node(self, node: ir.Node, path: str, scope: Scope, default: Any = None) -> Value:
        """Writes a node."""
        raise NotImplementedError

    def structure(self, node: ir.Structure, path: str, scope: Scope) -> Value:
        """Writes a structure."""
        raise NotImplementedError
