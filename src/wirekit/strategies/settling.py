"""Sets the fields that select branches, so that they lead to the branches that were drawn."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice, product
from typing import Any

from wirekit.compiler import ir
from wirekit.compiler.expressions import Literal
from wirekit.compiler.values import LENGTH, Names, Unknown, look_up
from wirekit.strategies.drawing import Drawing
from wirekit.strategies.packing import pack, unpack
from wirekit.strategies.plan import COMBINATIONS, Branch, Decision, not_known, outcomes
from wirekit.wire.stream import Scope


class Settling(Drawing):
    """Chooses the values of fields that select branches in a structure, before its members are drawn."""

    def _settled(self, node: ir.Structure, scope: Scope, forced: dict[Names, Any]) -> dict[Names, Any]:
        """Values of selecting fields that lead to the drawn branches, and those forced from outside."""
        plan = self.layout.plan(node)
        pools: dict[Names, list[Any]] = {}
        for names, candidates in plan.candidates.items():
            pools[names] = [forced[names]] if names in forced else candidates
        offsets = self._offsets(node) if self.wants else {}
        places = {id(ir.core(member.node)): offsets[member.name] for member in node.members if member.name in offsets}
        for names, pool in pools.items():
            if names[0] in offsets:
                pools[names] = self._agreeing(node, names, pool, offsets[names[0]])
        if self.aim:
            self._nameless(node, pools)
        touched = {names for names in pools if pools[names] is not plan.candidates[names]}
        self._settle(plan.decisions, pools, touched, scope, places)
        fixed = dict(forced)
        for names, pool in pools.items():
            if names not in touched and not self._left_open(names):
                touched.add(names)
            if names in touched and pool:
                fixed[names] = self.one_of(pool)
        return fixed

    def _nameless(self, node: ir.Structure, pools: dict[Names, list[Any]]) -> None:
        """Keeps only values without a name, if these are requested."""
        for member in node.members:
            core, names = ir.core(member.node), (member.name,)
            if isinstance(core, ir.Named) and names in pools and self.aims(core, "unknown"):
                pools[names] = [value for value in pools[names] if value not in core.table] or pools[names]

    def _left_open(self, names: Names) -> bool:
        """Whether to draw a field that selects nothing here like any other field: half of the time."""
        return names[-1] == LENGTH or self.upto(1) == 0

    def _settle(
        self,
        decisions: list[Decision],
        pools: dict[Names, list[Any]],
        touched: set[Names],
        scope: Scope,
        places: Mapping[int, int],
    ) -> None:
        for decision in decisions:
            table = self._table(decision, pools, touched, scope)
            open_: list[tuple[Branch, list[tuple[Any, ...]]]] = []
            for index, branch in enumerate(decision.branches):
                fitting = table.get(index)
                if fitting:
                    open_.append((branch, fitting))
            if not open_:
                continue
            branch, fitting = self._branch(decision, self._permitted(decision, open_, places))
            if len(decision.variables) == 1:
                (names,) = decision.variables
                pools[names] = [values[0] for values in fitting]
                touched.add(names)
            else:
                for names, value in zip(decision.variables, self.one_of(fitting), strict=True):
                    pools[names] = [value]
                    touched.add(names)
            self._settle(branch.inside, pools, touched, scope, places)

    def _table(
        self, decision: Decision, pools: dict[Names, list[Any]], touched: set[Names], scope: Scope
    ) -> dict[int, list[tuple[Any, ...]]]:
        """{branch: values of the decision's variables that lead to it}, of the values that are left in the pools."""
        if decision.table is None:

            def outside(up: int, names: Names) -> Any:
                if up < decision.depth:
                    raise Unknown
                return look_up(scope, up - decision.depth, names)

            return outcomes(decision, pools, outside, self.context)
        if touched.isdisjoint(decision.variables):
            return decision.table
        by_branch: dict[int, list[tuple[Any, ...]]] = {}
        pools_left = [pools[names] for names in decision.variables]
        for values in islice(product(*pools_left), COMBINATIONS):  # the branches of further ones are unknown
            branch = decision.branch_of.get(values)
            if branch is not None:
                by_branch.setdefault(branch, []).append(values)
        if not by_branch and all(len(pool) == 1 for pool in pools_left):  # a given value that is not a candidate
            return outcomes(decision, pools, lambda up, names: not_known(), self.context)
        return by_branch

    def _permitted(
        self,
        decision: Decision,
        branches: list[tuple[Branch, list[tuple[Any, ...]]]],
        places: Mapping[int, int],
    ) -> list[tuple[Branch, list[tuple[Any, ...]]]]:
        """The branches that depth and required bytes allow; all branches if none is allowed."""
        allowed = branches
        if id(decision.node) in self.layout.lookahead_ends:
            allowed = [item for item in branches if item[0].node is None]
        elif self.shallow or (decision.role == "packed" and self.compression_depth >= self.deepest and not self.diving):
            allowed = [item for item in branches if item[0].node is None or not self.layout.refers(item[0].node)]
            if decision.role == "packed" and self.compression_depth >= self.deepest:
                allowed = [item for item in allowed if item[0].node is None]
        elif self.diving:
            allowed = [item for item in branches if item[0].node is not None and self.layout.refers(item[0].node)]
        if self.wants and decision.role == "choice" and decision.depth == 0:
            place = places.get(id(decision.node))
            if place is not None:
                allowed = [item for item in allowed if item[0].node is None or self._fits(item[0].node, place)]
        return allowed or branches

    def _branch(self, decision: Decision, branches: list[tuple[Branch, Any]]) -> tuple[Branch, Any]:
        """A branch drawn by weight; absent and small ones come first, because shrinking moves there."""
        ordered = sorted(branches, key=lambda item: (item[0].node is not None, item[0].weight))
        if self.leading:
            name = self.layout.names[id(decision.node)]
            aimed = [item for item in ordered if f"{name}={item[0].name}" in self.aim or self.leads(item[0].node)]
            if aimed and not self.chance(8):
                return self.one_of(aimed)
        at = self.upto(sum(branch.weight for branch, _ in ordered) - 1)
        for branch, fitting in ordered:
            if at < branch.weight:
                return branch, fitting
            at -= branch.weight
        raise AssertionError("the weights add up")

    def _offsets(self, node: ir.Structure) -> dict[str, int]:
        """The offsets of members, as long as all sizes before them are fixed."""
        offsets: dict[str, int] = {}
        at = 0
        for member in node.members:
            offsets[member.name] = at
            size = ir.fixed_size(member.node)
            if size is None:
                break
            at += size
        return offsets

    def _agreeing(self, node: ir.Structure, names: Names, pool: list[Any], offset: int) -> list[Any]:
        """The candidates that agree with required bytes, or only the required value."""
        member = next(member for member in node.members if member.name == names[0])
        size = ir.fixed_size(member.node)
        if not size:
            return pool
        blank, filled = self.overlaid(bytes(size), offset), self.overlaid(b"\xff" * size, offset)
        if blank == bytes(size) and filled == b"\xff" * size:
            return pool
        if len(names) == 1:
            agreeing = [value for value in pool if self._agree(member.node, value, offset)]
            return agreeing or ([unpack(member.node, blank)] if blank == filled else pool)
        if blank == filled:
            parts = unpack(member.node, blank)
            return [parts[names[1]]] if isinstance(parts, dict) and len(names) == 2 else pool
        return pool

    def _agree(self, node: ir.Node, value: Any, offset: int) -> bool:
        try:
            data = pack(node, value)
        except (OverflowError, TypeError):
            return False
        return data is None or self.overlaid(data, offset) == data

    def _fits(self, node: ir.Node, offset: int) -> bool:
        """Whether a node that begins here can have the required bytes."""
        match node:
            case ir.Constant(value=Literal(value=int(value))):
                return self._agree(node.node, value, offset)
            case ir.Structure(members=members):
                computed = node.computed
                for index, member in enumerate(members):
                    size = ir.fixed_size(member.node)
                    if index in computed and self.overlaid(bytes(size or 1), offset) != bytes(size or 1):
                        return False
                    if not self._fits(member.node, offset):
                        return False
                    if size is None:
                        return True
                    offset += size
        return True
