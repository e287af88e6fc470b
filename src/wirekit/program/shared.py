"""Steps for shared structures (see ``program.parts``): stores the start of a structure, and reads it later."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from wirekit.compiler import ir
from wirekit.program.branches import Branches
from wirekit.program.parts import Behind, Deferred, Part
from wirekit.program.steps import Let, Mark, Seek
from wirekit.program.values import Scope, Value


@dataclass(slots=True)
class Sharing(Branches):
    """Reads structures that a record reaches by several paths once.

    Attributes:
        deferred: those met and not read yet. Behind those in ``loose`` nothing was read yet, where they do not take
            all bytes to their limit: the position is not where they end.
    """

    deferred: dict[int, Deferred] = field(default_factory=dict)

    def met(self, part: Part) -> Value:
        """Stores where a part begins."""
        entry = self.deferred.get(id(part.node))
        if entry is None:
            entry = Deferred(part, self.fresh(), self.fresh(), self.fresh())
            self.deferred[id(part.node)] = entry
        self.put(Let(entry.flag, "=", self.constant(1)))
        self.put(Mark(entry.start))
        self.put(Let(entry.limit, "=", self.limit))
        if part.greedy:
            self.put(Seek(self.limit))
        elif not any(entry is each for each in self.loose):
            self.loose.append(entry)
        return Value(unfit="a structure that is reached by several ways")

    def behind(self, node: ir.Node, path: str, scope: Scope) -> Value:
        """Reads bytes after a part, or after no part."""
        known = len(self.columns)
        loose, self.loose = self.loose, []
        flags = loose[0].flag
        for entry in loose[1:]:
            flags = self.let("or", flags, entry.flag)
        self.if_true(flags, lambda: self.node(node, path, scope), "==")
        mark = self.fresh()
        self.put(Let(mark, "=", self.constant(1)))
        self.put(Seek(self.limit))
        for entry in loose:
            entry.after.append(Behind(mark, node, path, self.limit, self.columns[known:]))
        return Value(unfit="bytes behind a structure")

    def written(self) -> None:
        """Reads all deferred parts."""
        while self.deferred:
            entry = min(self.deferred.values(), key=lambda each: each.part.order)
            del self.deferred[id(entry.part.node)]
            self.loose = [each for each in self.loose if each is not entry]
            others, self.loose = self.loose, []
            self.if_true(entry.flag, partial(self.part, entry))
            self.loose = others + self.loose

    def part(self, entry: Deferred) -> Value:
        """Reads a part, and the bytes after it."""
        back = self.fresh()
        self.put(Mark(back))
        self.put(Seek(entry.start))
        with self.before(entry.limit):
            self.structure(entry.part.node, entry.part.name, Scope({}, None))
        if entry.part.greedy:
            self.put(Seek(back))
        for each in entry.after:
            merging, self.merging = self.merging, [*self.merging, *each.columns]
            condition = each.mark
            for inner in self.loose:
                condition = self.let("and", condition, self.let("==", inner.flag, self.constant(0)))
            with self.before(each.limit):
                self.if_true(condition, partial(self.node, each.node, each.path, Scope({}, None)))
            self.merging = merging
            for inner in self.loose:
                inner.after.append(each)
        return Value()
