"""The decisions of a structure: which values of its fields lead to which branch, in it or further inside."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wirekit.compiler import ir
from wirekit.compiler.expressions import Context, Expression, Literal, operands_of
from wirekit.compiler.values import Look, Names, Unknown, evaluate, expressions_of, read_by
from wirekit.strategies.domains import ELEMENTS, LARGEST, Domain, domain_of

if TYPE_CHECKING:
    from wirekit.strategies.layout import Layout

COMBINATIONS = 5000


@dataclass(slots=True)
class Branch:
    """One outcome of a decision: the node that it leads to, and the decisions inside it."""

    name: str
    node: ir.Node | None
    inside: list[Decision]
    weight: int


@dataclass(slots=True)
class Decision:
    """A choice that fields of a structure decide, in it or inside its fields.

    Attributes:
        table: {branch: values of the variables that lead to it}, of all candidates, if nothing else decides.
        branch_of: the branch that values of the variables lead to, for all values in ``table``.
    """

    node: ir.Node
    depth: int
    role: str
    on: tuple[Expression, ...]
    branches: list[Branch]
    variables: tuple[Names, ...]
    alone: bool
    table: dict[int, list[tuple[Any, ...]]] | None = None
    branch_of: dict[tuple[Any, ...], int] = field(default_factory=dict)


def _most_first(decision: Decision) -> int:
    """Sort key: decisions with more branches come first, because they leave the others a choice."""
    return -len(decision.branches)


class Plan:
    """The decisions that fields of a structure make, and the candidates for these fields."""

    def __init__(self, layout: Layout, node: ir.Structure) -> None:
        self.layout = layout
        self.node = node
        self.candidates: dict[Names, list[Any]] = {}
        self.all: list[Decision] = []
        self.decisions: list[Decision] = []
        self._domains: dict[Names, Domain | None] = {}
        self._memo: dict[tuple[int, int], list[Decision]] = {}
        for member in node.members:
            self.decisions += self._of(member.node, 0)
        self.decisions.sort(key=_most_first)
        for decision in self.all:
            self._collect(decision)
        for names, domain in self._domains.items():
            if domain is not None:
                self.candidates[names] = list(dict.fromkeys([*domain.values, *self.candidates.get(names, ())]))
        for decision in self.all:
            if decision.alone:
                decision.table = outcomes(decision, self.candidates, lambda up, names: not_known(), {})
                decision.branch_of = {values: at for at, fitting in decision.table.items() for values in fitting}

    def _of(self, node: ir.Node, depth: int) -> list[Decision]:
        if self.layout.escapes(node) < depth or isinstance(node, ir.Reference):
            return []
        decisions = self._memo.get((id(node), depth))
        if decisions is None:
            decisions = self._memo[id(node), depth] = []
            decisions += self._decisions_of(node, depth)
            decisions.sort(key=_most_first)
        return decisions

    def _decisions_of(self, node: ir.Node, depth: int) -> list[Decision]:
        deeper = depth + 1 if isinstance(node, ir.Structure) else depth
        parts = [(role, inner) for role, inner in ir.parts(node) if not isinstance(inner, ir.Number)]
        trees = expressions_of(node)
        variables = tuple(
            dict.fromkeys(names for tree in trees for up, names in read_by(tree) if up == depth and self._domain(names))
        )
        if not variables:
            return [decision for _, inner in parts for decision in self._of(inner, deeper)]
        reads = [up for tree in trees for up, _ in read_by(tree)]
        alone = set(reads) == {depth} and not any(
            isinstance(part, Context) for tree in trees for part in operands_of(tree)
        )
        weigh = self.layout.inside
        branches: list[Branch] = []
        match node:
            case ir.Choice():
                role = "choice"
                for name, inner in ir.parts(node):
                    weight = 1 + math.isqrt(weigh(inner))
                    branches.append(Branch(name, inner, self._of(inner, depth), weight))
            case ir.Either(then=then, otherwise=otherwise):
                role = "either"
                for name, way in (("then", then), ("otherwise", otherwise)):
                    branches.append(Branch(name, way, self._of(way, depth), min(4, 1 + weigh(way))))
            case ir.When(node=inner):
                role = "when"
                branches.append(Branch("present", inner, self._of(inner, depth), min(4, 2 + weigh(inner))))
                branches.append(Branch("absent", None, [], 1))
            case ir.Packed(node=inner, codecs=codecs):
                role = "packed"
                for values, name in codecs:
                    label = f"{','.join(map(str, values))} {name}"
                    branches.append(Branch(label, inner, self._of(inner, depth), 2))
                branches.append(Branch("as it stands", None, [], 2 + len(codecs)))
            case _:
                role = "size"
                inside = [decision for _, inner in parts for decision in self._of(inner, depth)]
                branches.append(Branch("", None, inside, 1))
        if role == "size":
            trees = [tree for tree in trees if any(up == depth for up, _ in read_by(tree))]
            decisions = [Decision(node, depth, role, (tree,), branches, variables, alone) for tree in trees]
        else:
            decisions = [Decision(node, depth, role, tuple(trees), branches, variables, alone)]
        self.all += decisions
        return decisions

    def _domain(self, names: Names) -> Domain | None:
        if names not in self._domains:
            self._domains[names] = domain_of(self.node, names)
        return self._domains[names]

    def _collect(self, decision: Decision) -> None:
        """The literals that a decision compares fields with are candidates, and their neighbours."""
        candidates: list[Any] = []
        for tree in decision.on:
            candidates += [part.value for part in operands_of(tree) if isinstance(part, Literal)]
        numbers = [near for value in candidates if isinstance(value, int) for near in (value, value - 1, value + 1)]
        candidates = [value for value in candidates if not isinstance(value, int)] + numbers
        if isinstance(decision.node, ir.Choice):
            candidates += [value for values, _ in decision.node.cases for value in values]
        elif isinstance(decision.node, ir.Packed):
            candidates += [value for values, _ in decision.node.codecs for value in values]
        for names in decision.variables:
            domain = self._domain(names)
            if domain is not None:
                self.candidates.setdefault(names, []).extend(value for value in candidates if domain.holds(value))


def not_known() -> Any:
    raise Unknown


def _outcome(decision: Decision, look: Look, context: Mapping[str, Any]) -> int | None:
    """Index of the branch that fields lead to; None if they lead to no branch."""
    results = tuple(evaluate(tree, look, context) for tree in decision.on)
    match decision.node:
        case ir.Choice(cases=cases, otherwise=otherwise):
            for index, (values, _) in enumerate(cases):
                if values == results:
                    return index
            return None if otherwise is None else len(cases)
        case ir.Packed(codecs=codecs):
            return next((index for index, (values, _) in enumerate(codecs) if values == results), len(codecs))
        case ir.Either() | ir.When():
            return 0 if results[0] else 1
    most = LARGEST if isinstance(decision.node, ir.Blob) else 2 * ELEMENTS
    return 0 if isinstance(results[0], int) and 0 <= results[0] <= most else None


def outcomes(
    decision: Decision, pools: Mapping[Names, list[Any]], outside: Look, context: Mapping[str, Any]
) -> dict[int, list[tuple[Any, ...]]]:
    """{branch: values of the decision's variables that lead to it}."""
    by_branch: dict[int, list[tuple[Any, ...]]] = {}
    choices = itertools.product(*(pools[names] for names in decision.variables))
    for values in itertools.islice(choices, COMBINATIONS):
        assigned = dict(zip(decision.variables, values, strict=True))

        def look(up: int, names: Names, assigned: dict[Names, Any] = assigned) -> Any:
            return assigned[names] if up == decision.depth and names in assigned else outside(up, names)

        try:
            branch = _outcome(decision, look, context)
        except Unknown:
            continue
        if branch is not None:
            by_branch.setdefault(branch, []).append(values)
    return by_branch
