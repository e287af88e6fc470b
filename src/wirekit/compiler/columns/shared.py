"""Structures that a record reaches by several ways, one at a time: written once, after what leads there.

Headers inside of headers are such: whatever stands in front, an inner one is the same. Written out on each way, a
kernel would grow with the number of ways. So where such a structure stands, the kernel only notes where it begins;
it is read when all that may lead there is done. This is right where nothing follows it but bytes up to the limit,
and its expressions read nothing outside of it. Its columns are called by its own name, in lower case.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from wirekit.compiler import ir
from wirekit.compiler.columns.branches import Branches
from wirekit.compiler.columns.expressions import Scope, Value
from wirekit.compiler.columns.kernel import Column
from wirekit.compiler.expressions import Field, LengthOf, Literal, Operation


@dataclass(frozen=True, slots=True)
class Part:
    """A structure that is written once.

    Attributes:
        order: parts that lead to others come first.
        greedy: whether it takes all bytes to the limit.
    """

    node: ir.Structure
    name: str
    order: int
    greedy: bool


@dataclass(slots=True)
class Behind:
    """Bytes behind a part that one of the ways leads to: read after the part, if ``mark`` says that it was this way."""

    mark: str
    node: ir.Node
    path: str
    limit: str
    columns: list[Column]


@dataclass(slots=True)
class Deferred:
    """A part that was met: the variables for whether it is there, where it begins, and its limit."""

    part: Part
    flag: str
    start: str
    limit: str
    after: list[Behind] = field(default_factory=list)


def parts(root: ir.Node) -> dict[int, Part]:
    """The structures of a record that are written once, by the node's id."""
    found = _Search()
    found.visit(root, 0, tail=True, tight=False)
    order: dict[int, ir.Structure] = {}
    found.sorted(root, order)
    chosen = [
        node
        for node in reversed(order.values())
        if len(found.outer.get(id(node), ())) > 1 and id(node) not in found.unfit and _reach(node, {}) < 0
    ]
    names: dict[str, int] = {}
    made = {}
    for number, node in enumerate(chosen):
        name = node.name.lower()
        names[name] = names.get(name, 0) + 1
        shown = name if names[name] == 1 else f"{name}_{names[name]}"
        made[id(node)] = Part(node, shown, number, _greedy(node))
    return made


class _Search:
    """Which structures lead to which, and which of them stand where something else may follow."""

    def __init__(self) -> None:
        self.outer: dict[int, set[int]] = {}
        self.unfit: set[int] = set()
        self._seen: set[tuple[int, int, bool, bool]] = set()

    def visit(self, node: ir.Node, outer: int, *, tail: bool, tight: bool) -> None:
        if (id(node), outer, tail, tight) in self._seen:
            return
        self._seen.add((id(node), outer, tail, tight))
        match node:
            case ir.Structure():
                self.outer.setdefault(id(node), set()).add(outer)
                if not tail or (tight and not _greedy(node)) or not node.name:
                    self.unfit.add(id(node))
                for at, member in enumerate(node.members):
                    bounded = any(each.bounds and each.first <= at <= each.last for each in node.measures)
                    summed = any(each.first <= at <= each.last for each in node.sums)
                    summed |= any(not each.bounds and each.first <= at <= each.last for each in node.measures)
                    last = all(_rest(behind.node) for behind in node.members[at + 1 :])
                    inside = tail and last and not summed
                    self.visit(member.node, id(node), tail=inside, tight=tight or bounded)
            case ir.Fallback(node=inner):
                self.visit(inner, outer, tail=True, tight=False)
            case ir.Choice() | ir.Either() | ir.When() | ir.WhenNext() | ir.WhenMore() | ir.Optional():
                for _, inner in ir.parts(node):
                    self.visit(inner, outer, tail=tail, tight=tight)
            case _:
                for _, inner in ir.parts(node):
                    self.visit(inner, outer, tail=False, tight=tight)

    def sorted(self, node: ir.Node, order: dict[int, ir.Structure]) -> None:
        """Adds structures behind those inside of them."""
        if id(node) in order:
            return
        for _, inner in ir.parts(node):
            self.sorted(inner, order)
        if isinstance(node, ir.Structure):
            order[id(node)] = node


def _rest(node: ir.Node) -> bool:
    return isinstance(node, ir.Blob) and node.length is None and not node.text


def _greedy(node: ir.Node) -> bool:
    """Whether a node always takes all bytes to the limit."""
    match node:
        case ir.Blob(length=None):
            return True
        case ir.Structure(members=members, measures=measures) if members:
            last = len(members) - 1
            return not any(each.bounds and each.last == last for each in measures) and _greedy(members[-1].node)
        case ir.Choice(cases=cases, otherwise=otherwise):
            return all(_greedy(inner) for _, inner in cases) and (otherwise is None or _greedy(otherwise))
        case ir.Either(then=then, otherwise=otherwise):
            return _greedy(then) and _greedy(otherwise)
    return False


def _reach(node: ir.Node, known: dict[int, int]) -> int:
    """How many structures out of a node its expressions reach at most; below 0: they stay inside."""
    if id(node) not in known:
        reach = max((each.up for each in _fields(node)), default=-1)
        reach = max([reach, *(_reach(inner, known) for _, inner in ir.parts(node))])
        known[id(node)] = reach - isinstance(node, ir.Structure)
    return known[id(node)]


def _fields(node: ir.Node) -> Iterator[Field]:
    for name in type(node).__slots__:
        value = getattr(node, name)
        for tree in value if isinstance(value, tuple) else (value,):
            yield from _read(tree)


def _read(tree: object) -> Iterator[Field]:
    match tree:
        case Field():
            yield tree
        case LengthOf(of=inner):
            yield from _read(inner)
        case Operation(operands=operands):
            for operand in operands:
                yield from _read(operand)
        case Literal():
            return


@dataclass(slots=True)
class Sharing(Branches):
    """Structures that are written once.

    Attributes:
        once: those of the record, by id.
        deferred: those met and not written yet. Behind those in ``loose`` nothing was read yet, where they do not take
            all bytes to their limit: ``p`` does not stand where they end.
    """

    once: dict[int, Part] = field(default_factory=dict)
    deferred: dict[int, Deferred] = field(default_factory=dict)

    def met(self, part: Part, e: str) -> Value:
        """Notes where a part begins."""
        entry = self.deferred.get(id(part.node))
        if entry is None:
            entry = Deferred(part, self.fresh("g"), self.fresh("g"), self.fresh("e"))
            self.deferred[id(part.node)] = entry
        self.put(f"{entry.flag}, {entry.start}, {entry.limit} = np.int64(1), p, {e}")
        if part.greedy:
            self.put(f"p = {e}")
        elif not any(entry is each for each in self.loose):
            self.loose.append(entry)
        return Value(unfit="a structure that is reached by several ways")

    def behind(self, node: ir.Node, path: str, e: str, scope: Scope) -> Value:
        """Bytes that stand behind parts, or behind nothing."""
        known = len(self.columns)
        loose, self.loose = self.loose, []
        flags = " or ".join(entry.flag for entry in loose)
        self.arms([(f"not ({flags})", lambda: self.node(node, path, e, scope))])
        mark = self.fresh("g")
        self.put(f"{mark} = np.int64(1)")
        self.put(f"p = {e}")
        for entry in loose:
            entry.after.append(Behind(mark, node, path, e, self.columns[known:]))
        return Value(unfit="bytes behind a structure")

    def written(self) -> None:
        """Writes all parts that were met."""
        while self.deferred:
            entry = min(self.deferred.values(), key=lambda each: each.part.order)
            del self.deferred[id(entry.part.node)]
            self.loose = [each for each in self.loose if each is not entry]
            others, self.loose = self.loose, []
            self.arms([(entry.flag, partial(self.part, entry))])
            self.loose = others + self.loose

    def part(self, entry: Deferred) -> Value:
        back = self.fresh("r")
        self.put(f"{back} = p")
        self.put(f"p = {entry.start}")
        self.structure(entry.part.node, entry.part.name, entry.limit, Scope({}, None))
        if entry.part.greedy:
            self.put(f"p = {back}")
        for each in entry.after:
            flags = "".join(f" and not {inner.flag}" for inner in self.loose)
            merging, self.merging = self.merging, [*self.merging, *each.columns]
            self.arms(
                [
                    (
                        f"{each.mark}{flags}",
                        partial(self.node, each.node, each.path, each.limit, Scope({}, None)),
                    )
                ]
            )
            self.merging = merging
            for inner in self.loose:
                inner.after.append(each)
        return Value()

    def structure(self, node: ir.Structure, path: str, e: str, scope: Scope) -> Value:
        """Reads a structure."""
        raise NotImplementedError
