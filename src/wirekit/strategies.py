"""Hypothesis strategies of every registered schema: values, frames and damaged bytes, made from the layout IR.

A value is a mapping of plain Python data (int, str, bytes, None, list, mapping): ``encode`` takes it, it shrinks to the
fields that matter, and ``to_json`` makes JSON of it. Lengths and checksums are left out, for they are computed. What
decides is drawn first: a structure looks at all conditions, choices and sizes that read its fields, chooses branches,
and takes values for the fields that lead there; all else follows. What cannot be solved so is built, decoded and
drawn anew when it does not come out the same.

Nothing here knows a protocol, nor writes bytes of its own except into copies of what ``encode`` gave.
"""

from __future__ import annotations

import copy
import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from wirekit import engine
from wirekit.compiler import ir
from wirekit.compiler.expressions import Context, Expression, Field, LengthOf, Literal, Operation
from wirekit.errors import Misuse, WirekitError
from wirekit.registry import registry
from wirekit.values import Record, SymbolTable
from wirekit.wire import derived
from wirekit.wire.protobuf import BYTES, VARINT, Message, refused
from wirekit.wire.protobuf import Field as MessageField
from wirekit.wire.stream import Scope, Writer, join_path

try:
    from hypothesis import reject
    from hypothesis import strategies as st
except ImportError as missing:
    raise ImportError("wirekit.strategies needs hypothesis: pip install 'wirekit[fuzz]'") from missing

__all__ = ["KINDS", "Mutation", "agrees", "branches", "contexts", "frames", "mutations", "damage", "values"]

Draw = Callable[[st.SearchStrategy[Any]], Any]
Names = tuple[str, ...]
"""Where a field lies inside a structure; ``LENGTH`` as the last name means its length."""

LENGTH = "#"
ELEMENTS = 3
"""Elements of a list at most, where nothing asks for more."""
DECIMAL = 10**18  # the largest number that is written in decimal
LARGEST = 256
"""Bytes of a field whose size is an expression, and elements of a list whose count is one."""
PIECES = 400
"""Fields of a value after which lists stay empty and options are left out."""
COMBINATIONS = 5000
MESSAGES = 3
"""How deep protobuf messages lie inside each other, those that are required not counted."""


class _Unknown(Exception):
    """An expression reads what is not known yet."""


# Expressions

_OPERATORS: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    ">>": operator.rshift,
    "<<": operator.lshift,
}
_UNARY: dict[str, Callable[..., Any]] = {"-": operator.neg, "+": operator.pos, "not ": operator.not_}

Look = Callable[[int, Names], Any]


def _evaluate(tree: Expression, look: Look, context: Mapping[str, Any]) -> Any:
    """The value of an expression; ``look`` finds fields.

    Raises:
        _Unknown: when a field is not known, or the value of one makes no sense here.
    """
    try:
        match tree:
            case Literal(value=value):
                return value
            case Context(name=name):
                return context.get(name)
            case Field(up=up, names=names):
                return look(up, names)
            case LengthOf(of=Field(up=up, names=names)):
                return look(up, (*names, LENGTH))
            case LengthOf(of=inner):
                return len(_evaluate(inner, look, context))
            case Operation(symbol=symbol, operands=(only,)):
                return _UNARY[symbol](_evaluate(only, look, context))
            case Operation(symbol=symbol, operands=(left, right)):
                first, second = _evaluate(left, look, context), _evaluate(right, look, context)
                if symbol in ("<<", ">>") and not 0 <= second <= 64:
                    raise _Unknown
                return _OPERATORS[symbol](first, second)
    except (TypeError, ZeroDivisionError, KeyError, AttributeError):
        raise _Unknown from None
    raise _Unknown


def _found(scope: Any, up: int, names: Names) -> Any:
    """A field in a scope; of an optional one that was left out, None."""
    at = scope
    for _ in range(up):
        at = at["_"]
    for index, name in enumerate(names):
        if name == LENGTH:
            return len(at) if at is not None else 0
        if index == 0:
            if name not in at:
                raise _Unknown
            at = at[name]
        else:
            at = at.get(name)
    return at


def _operands(tree: Expression) -> Iterator[Expression]:
    """An expression and all inside it."""
    yield tree
    if isinstance(tree, LengthOf):
        yield from _operands(tree.of)
    elif isinstance(tree, Operation):
        for operand in tree.operands:
            yield from _operands(operand)


def _reads(tree: Expression) -> Iterator[tuple[int, Names]]:
    """The fields that an expression reads; of one whose length is taken, its length."""
    if isinstance(tree, Field):
        yield tree.up, tree.names
    elif isinstance(tree, LengthOf) and isinstance(tree.of, Field):
        yield tree.of.up, (*tree.of.names, LENGTH)
    elif isinstance(tree, LengthOf):
        yield from _reads(tree.of)
    elif isinstance(tree, Operation):
        for operand in tree.operands:
            yield from _reads(operand)


def _expressions(node: ir.Node) -> list[Expression]:
    """The expressions of a node itself that decide what its bytes are."""
    match node:
        case ir.Blob(length=length, filler=False) if length is not None and not isinstance(length, ir.Number):
            return [length]
        case ir.Several(count=count, announced=announced):
            return [tree for tree in (count, announced) if tree is not None and not isinstance(tree, ir.Number)]
        case ir.When(condition=condition) | ir.Either(condition=condition):
            return [condition]
        case ir.Choice(on=on) | ir.Packed(on=on):
            return list(on)
    return []


# Layouts


class _Layout:
    """A schema's IR and what is known about its nodes, those of the schemas that it refers to included.

    Attributes:
        key: the schema's key.
        names: {id of a node: its first path}, for the names of branches.
        sources: {id of a node: the wire node that it was lowered from}, which can build single elements.
        recursive: whether the schema refers to itself on some way.
        beyond: ids of conditions that hold only if something stands behind the value, which no value can say.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        self.root = registry[key].layout
        self.names: dict[int, str] = {}
        self.sources: dict[int, Any] = {}
        self.nodes: list[ir.Node] = []
        self._escapes: dict[int, int] = {}
        self._refers: dict[int, bool] = {}
        self._inside: dict[int, int] = {}
        self._plans: dict[int, _Plan] = {}
        self._symbols: dict[int, list[int]] = {}
        self.beyond: set[int] = set()
        edges: dict[str, set[str]] = {}
        waiting = [key]
        while waiting:
            at = waiting.pop()
            if at in edges:
                continue
            edges[at] = self._add(at, "" if at == key else f"{at}:")
            waiting += edges[at]
        self.recursive = any(at in _reached(edges, at) for at in edges)
        if isinstance(self.root, ir.Structure):
            last = self.root.members[-1].node if self.root.members else None
            if isinstance(last, ir.When) and isinstance(last.node, ir.Ahead):
                self.beyond.add(id(last))

    def _add(self, key: str, prefix: str) -> set[str]:
        schema = registry[key]
        found = set()
        for path, inner in ir.walk(schema.layout):
            self.names.setdefault(id(inner), f"{prefix}{path}")
            self.nodes.append(inner)
            if isinstance(inner, ir.Reference):
                found.add(inner.key)
        _pair(schema.layout, schema.node, self.sources)
        return found

    def refers(self, node: ir.Node) -> bool:
        """Whether a node may hold another schema."""
        known = self._refers.get(id(node))
        if known is None:
            known = any(isinstance(inner, ir.Reference) for _, inner in ir.walk(node))
            self._refers[id(node)] = known
        return known

    def inside(self, node: ir.Node) -> int:
        """How many branches there are in a node, those of schemas that it refers to included."""
        if id(node) not in self._inside:
            self._inside[id(node)] = 0  # for a schema inside itself
            count = 0
            for _, inner in ir.walk(node):
                if isinstance(inner, ir.Choice | ir.Packed):
                    count += len(inner.cases if isinstance(inner, ir.Choice) else inner.codecs)
                elif isinstance(inner, ir.Reference):
                    count += self.inside(registry[inner.key].layout)
            self._inside[id(node)] = count
        return self._inside[id(node)]

    def symbols(self, node: ir.Named) -> list[int]:
        """The values with a name that fit the number."""
        if id(node) not in self._symbols:
            assert isinstance(node.number, ir.Number)
            low, high = node.number.low, node.number.high
            self._symbols[id(node)] = [int(symbol) for symbol in node.table if low <= symbol <= high]
        return self._symbols[id(node)]

    def leading(self, aim: frozenset[str]) -> set[int]:
        """Ids of the nodes that have one of these branches, or from which one can be reached."""
        found: set[int] = set()
        if not aim:
            return found
        grown = True
        while grown:
            before = len(found)
            for node in reversed(self.nodes):
                own = any(f"{self.names[id(node)]}={branch}" in aim for branch in _branch_names(node))
                inner = (
                    [registry[node.key].layout] if isinstance(node, ir.Reference) else [n for _, n in ir.parts(node)]
                )
                if own or any(id(part) in found for part in inner):
                    found.add(id(node))
            grown = len(found) > before
        return found

    def escapes(self, node: ir.Node) -> int:
        """How many structures out of a node its expressions reach; -1 when they read nothing."""
        known = self._escapes.get(id(node))
        if known is None:
            own = [up for tree in _expressions(node) for up, _ in _reads(tree)]
            less = 1 if isinstance(node, ir.Structure) else 0
            known = max([-1, *own, *(self.escapes(inner) - less for _, inner in ir.parts(node))])
            self._escapes[id(node)] = known
        return known

    def plan(self, node: ir.Structure) -> _Plan:
        """What decides in a structure; made once."""
        if id(node) not in self._plans:
            self._plans[id(node)] = _Plan(self, node)
        return self._plans[id(node)]


def _reached(edges: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = list(edges[start])
    while waiting:
        at = waiting.pop()
        if at not in seen:
            seen.add(at)
            waiting += edges[at]
    return seen


@functools.cache
def _layout(key: str) -> _Layout:
    return _Layout(key)


def _pair(lowered: ir.Node, source: Any, sources: dict[int, Any]) -> None:
    """Goes through a layout and its IR side by side."""
    while isinstance(source, derived.Length | derived.Checked):
        source = source.inner
    if id(lowered) in sources:
        return
    sources[id(lowered)] = source
    pairs: list[tuple[ir.Node, Any]] = []
    match lowered:
        case ir.Structure(members=members):
            pairs = [(member.node, node) for member, (_, node) in zip(members, source.members, strict=True)]
        case ir.Choice(cases=cases, otherwise=otherwise):
            pairs = [(case, node) for (_, case), node in zip(cases, source.cases.values(), strict=True)]
            if otherwise is not None:
                pairs.append((otherwise, source.otherwise))
        case ir.Either(then=then, otherwise=other):
            pairs = [(then, source.then), (other, source.otherwise)]
        case ir.Several(element=element):
            pairs = [(element, source.element)]
        case ir.Packed(blob=blob, node=content):
            pairs = [(blob, source.inner), (content, source.content)]
        case _:
            inner = getattr(lowered, "node", None)
            if inner is not None:
                pairs = [(inner, source.inner)]
    for inner, node in pairs:
        _pair(inner, node, sources)


def _fixed(node: ir.Node) -> int | None:
    """The size in bytes of a node that always has the same, else None."""
    match node:
        case ir.Number(size=size):
            return size
        case ir.Boolean(number=inner) | ir.Named(number=inner) | ir.BitFields(number=inner):
            return _fixed(inner)
        case ir.Constant(node=inner) | ir.Optional(node=inner):
            return _fixed(inner)
        case ir.Blob(length=Literal(value=int(size))):
            return size
        case ir.Ahead():
            return 0
        case ir.Structure(members=members):
            sizes = [_fixed(member.node) for member in members]
            return None if None in sizes else sum(size for size in sizes if size is not None)
    return None


def _core(node: ir.Node) -> ir.Node:
    """The node under what only makes it optional or constant."""
    while isinstance(node, ir.Constant | ir.Optional):
        node = node.node
    return node


def _computed(node: ir.Structure) -> set[int]:
    """Indexes of the members that are computed from others."""
    return {measure.at for measure in node.measures} | {checked.at for checked in node.sums}


# Leaves as bytes: only to make what stands ahead and what follows agree


def _pack(node: ir.Node, value: Any) -> bytes | None:
    """The bytes of a number in any of its forms; None for other nodes."""
    match _core(node):
        case ir.Number() as number if not number.real:
            return int(value).to_bytes(number.size, "little" if number.little else "big", signed=int(value) < 0)
        case ir.Boolean(number=number) | ir.Named(number=number):
            return _pack(number, int(value))
        case ir.BitFields(number=number, fields=fields):
            whole = sum(int(value[field.name]) << field.shift for field in fields)
            return whole.to_bytes(_fixed(number) or 0, "little" if getattr(number, "little", False) else "big")
    return None


def _unpack(node: ir.Node, data: bytes) -> Any:
    """The inverse of ``_pack``."""
    match _core(node):
        case ir.Number() as number:
            return int.from_bytes(data, "little" if number.little else "big", signed=number.signed)
        case ir.Boolean(number=number):
            return bool(_unpack(number, data))
        case ir.Named(number=number):
            return _unpack(number, data)
        case ir.BitFields(number=number) as bits:
            return _taken_apart(bits, _unpack(number, data))
    return None


def _taken_apart(node: ir.BitFields, number: int) -> dict[str, Any]:
    bits = {field.name: number >> field.shift & (1 << field.width) - 1 for field in node.fields}
    return {
        field.name: bool(bits[field.name]) if field.width == 1 and field.table is None else bits[field.name]
        for field in node.fields
    }


# What a field may hold


@dataclass(slots=True)
class _Domain:
    """Values of a field that are worth trying, and which others it can hold."""

    values: list[Any]
    low: int = 0
    high: int = -1
    text: bool = False

    def holds(self, value: Any) -> bool:
        """Whether a value of an expression fits the field."""
        if isinstance(value, str):
            return self.text
        return isinstance(value, int) and self.low <= value <= self.high


def _edges(low: int, high: int) -> list[int]:
    """Integers where things change: around 0, the ends."""
    near = [*range(17), -1, -2, low, low + 1, high - 1, high]
    return sorted({value for value in near if low <= value <= high}, key=lambda value: (abs(value), value < 0))


def _domain_of_table(table: SymbolTable, low: int, high: int, *, closed: bool) -> _Domain:
    known = [int(symbol) for symbol in table if low <= symbol <= high]
    if closed:
        return _Domain(known)
    return _Domain([*known, *(value for value in _edges(low, high) if value not in table)], low, high)


def _domain(node: ir.Node, names: Names) -> _Domain | None:
    """What the field at ``names`` inside a node may hold; None when it cannot be chosen."""
    if names == (LENGTH,) and isinstance(_core(node), ir.Blob | ir.Several):
        return _Domain(list(range(ELEMENTS + 1)), 0, LARGEST)
    match node:
        case ir.Structure(members=members):
            for index, member in enumerate(members):
                if names and member.name == names[0]:
                    return None if index in _computed(node) else _domain(member.node, names[1:])
        case ir.BitFields(fields=fields):
            for field in fields:
                if names == (field.name,):
                    return _bits_domain(field)
        case ir.Protobuf(message=message):
            return _message_domain(Message._known[message], names)
        case ir.Reference(key=key):
            return _domain(registry[key].layout, names)
        case ir.Number() if not names and not node.real:
            return _Domain([*_edges(node.low, node.high)], node.low, node.high)
        case ir.Delimited(decimal=True) if not names:
            return _Domain([*_edges(-DECIMAL, DECIMAL)], -DECIMAL, DECIMAL)
        case ir.Named(number=ir.Number() as number) if not names:
            return _domain_of_table(node.table, number.low, number.high, closed=node.closed)
        case ir.Boolean() if not names:
            return _Domain([False, True])
        case ir.Blob(text=True) if not names:
            return _Domain([] if node.null is None else [None], text=True)
        case ir.Constant(value=Literal(value=value)) if not names:
            return _Domain([value])
        case ir.WhenNext(node=inner) | ir.WhenMore(node=inner) if not names:
            domain = _domain(inner, names)
            return None if domain is None else _Domain([*domain.values, None], domain.low, domain.high)
        case ir.Choice() | ir.Either():
            return _domain_of_any([_domain(inner, names) for _, inner in ir.parts(node)])
    within: ir.Node | None = getattr(node, "node", None)
    return None if within is None or isinstance(node, ir.Packed) else _domain(within, names)


def _bits_domain(field: ir.BitField) -> _Domain:
    high = (1 << field.width) - 1
    if field.table is not None:
        return _domain_of_table(field.table, 0, high, closed=False)
    return _Domain([False, True]) if field.width == 1 else _Domain(_edges(0, high), 0, high)


def _domain_of_any(domains: list[_Domain | None]) -> _Domain | None:
    known = [domain for domain in domains if domain is not None]
    if not known:
        return None
    together = list(dict.fromkeys(value for domain in known for value in domain.values))
    return _Domain(together, min(domain.low for domain in known), max(domain.high for domain in known), known[0].text)


def _message_domain(message: Message, names: Names) -> _Domain | None:
    field = message.by_name.get(names[0]) if names else None
    if field is None:
        return None
    if field.repeated:
        return _Domain(list(range(ELEMENTS + 1)), 0, LARGEST) if names[1:] == (LENGTH,) else None
    if names[1:]:
        return _message_domain(field.message, names[1:]) if field.message is not None and field.required else None
    absent = [] if field.required else [None]
    if field.kind == "bool":
        return _Domain([*absent, False, True])
    if field.wire_type == VARINT:
        low, high = _limits(field)
        domain = (
            _Domain(_edges(low, high), low, high)
            if field.table is None
            else _domain_of_table(field.table, low, high, closed=False)
        )
        return _Domain([*absent, *domain.values], low, high)
    return _Domain(list(absent), text=True) if field.kind == "string" else None


def _limits(field: MessageField) -> tuple[int, int]:
    if field.kind.startswith(("uint", "fixed")):
        return 0, (1 << field.bits) - 1
    return -(1 << field.bits - 1), (1 << field.bits - 1) - 1


# Decisions of a structure


@dataclass(slots=True)
class _Branch:
    """One outcome of a decision: the node that it leads to, and the decisions inside it."""

    name: str
    node: ir.Node | None
    inside: list[_Decision]
    weight: int


@dataclass(slots=True)
class _Decision:
    """What fields of a structure decide, in it or further inside."""

    node: ir.Node
    depth: int
    role: str
    on: tuple[Expression, ...]
    branches: list[_Branch]
    variables: tuple[Names, ...]
    alone: bool
    table: dict[int, list[tuple[Any, ...]]] | None = None


def _most_first(decision: _Decision) -> int:
    """What tells more apart is decided first, for it leaves the others a choice rather than the reverse."""
    return -len(decision.branches)


class _Plan:
    """The decisions that fields of a structure make, and the candidates for these fields."""

    def __init__(self, layout: _Layout, node: ir.Structure) -> None:
        self.layout = layout
        self.node = node
        self.candidates: dict[Names, list[Any]] = {}
        self.all: list[_Decision] = []
        self.decisions: list[_Decision] = []
        self._domains: dict[Names, _Domain | None] = {}
        self._made: dict[tuple[int, int], list[_Decision]] = {}
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
                decision.table = _outcomes(decision, self.candidates, lambda up, names: _not_known(), {})

    def _of(self, node: ir.Node, depth: int) -> list[_Decision]:
        if self.layout.escapes(node) < depth or isinstance(node, ir.Reference):
            return []
        known = self._made.get((id(node), depth))
        if known is None:
            known = self._made[id(node), depth] = []
            known += self._made_of(node, depth)
            known.sort(key=_most_first)
        return known

    def _made_of(self, node: ir.Node, depth: int) -> list[_Decision]:
        deeper = depth + 1 if isinstance(node, ir.Structure) else depth
        parts = [(role, inner) for role, inner in ir.parts(node) if not isinstance(inner, ir.Number)]
        trees = _expressions(node)
        variables = tuple(
            dict.fromkeys(names for tree in trees for up, names in _reads(tree) if up == depth and self._domain(names))
        )
        if not variables:
            return [decision for _, inner in parts for decision in self._of(inner, deeper)]
        reads = [up for tree in trees for up, _ in _reads(tree)]
        alone = set(reads) == {depth} and not any(
            isinstance(part, Context) for tree in trees for part in _operands(tree)
        )
        weigh = self.layout.inside
        branches: list[_Branch] = []
        match node:
            case ir.Choice():
                role = "choice"
                for name, inner in parts:
                    weight = 1 + math.isqrt(weigh(inner))
                    branches.append(_Branch(name, inner, self._of(inner, depth), weight))
            case ir.Either(then=then, otherwise=otherwise):
                role = "either"
                for name, way in (("then", then), ("otherwise", otherwise)):
                    branches.append(_Branch(name, way, self._of(way, depth), min(4, 1 + weigh(way))))
            case ir.When(node=inner):
                role = "when"
                branches.append(_Branch("present", inner, self._of(inner, depth), min(4, 2 + weigh(inner))))
                branches.append(_Branch("absent", None, [], 1))
            case ir.Packed(node=inner, codecs=codecs):
                role = "packed"
                for values, name in codecs:
                    label = f"{','.join(map(str, values))} {name}"
                    branches.append(_Branch(label, inner, self._of(inner, depth), 2))
                branches.append(_Branch("as it stands", None, [], 2 + len(codecs)))
            case _:
                role = "size"
                inside = [decision for _, inner in parts for decision in self._of(inner, depth)]
                branches.append(_Branch("", None, inside, 1))
        if role == "size":
            trees = [tree for tree in trees if any(up == depth for up, _ in _reads(tree))]
            made = [_Decision(node, depth, role, (tree,), branches, variables, alone) for tree in trees]
        else:
            made = [_Decision(node, depth, role, tuple(trees), branches, variables, alone)]
        self.all += made
        return made

    def _domain(self, names: Names) -> _Domain | None:
        if names not in self._domains:
            self._domains[names] = _domain(self.node, names)
        return self._domains[names]

    def _collect(self, decision: _Decision) -> None:
        """The literals that a decision compares fields with are candidates, and their neighbours."""
        found: list[Any] = []
        for tree in decision.on:
            found += [part.value for part in _operands(tree) if isinstance(part, Literal)]
        numbers = [near for value in found if isinstance(value, int) for near in (value, value - 1, value + 1)]
        found = [value for value in found if not isinstance(value, int)] + numbers
        if isinstance(decision.node, ir.Choice):
            found += [value for values, _ in decision.node.cases for value in values]
        elif isinstance(decision.node, ir.Packed):
            found += [value for values, _ in decision.node.codecs for value in values]
        for names in decision.variables:
            domain = self._domain(names)
            if domain is not None:
                self.candidates.setdefault(names, []).extend(value for value in found if domain.holds(value))


def _not_known() -> Any:
    raise _Unknown


def _outcome(decision: _Decision, look: Look, context: Mapping[str, Any]) -> int | None:
    """Index of the branch that fields lead to; None when there is none."""
    results = tuple(_evaluate(tree, look, context) for tree in decision.on)
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


def _outcomes(
    decision: _Decision, pools: Mapping[Names, list[Any]], outside: Look, context: Mapping[str, Any]
) -> dict[int, list[tuple[Any, ...]]]:
    """{branch: values of the decision's variables that lead to it}."""
    found: dict[int, list[tuple[Any, ...]]] = {}
    choices = itertools.product(*(pools[names] for names in decision.variables))
    for values in itertools.islice(choices, COMBINATIONS):
        given = dict(zip(decision.variables, values, strict=True))

        def look(up: int, names: Names, given: dict[Names, Any] = given) -> Any:
            return given[names] if up == decision.depth and names in given else outside(up, names)

        try:
            branch = _outcome(decision, look, context)
        except _Unknown:
            continue
        if branch is not None:
            found.setdefault(branch, []).append(values)
    return found


# Drawing


@functools.cache
def _upto(most: int) -> st.SearchStrategy[int]:
    return st.integers(0, most)


@functools.cache
def _integers(low: int, high: int) -> st.SearchStrategy[int]:
    edges = [value for value in dict.fromkeys((0, 1, -1, low, high)) if low <= value <= high]
    return st.sampled_from(edges) | st.integers(low, high)


@functools.cache
def _exactly(size: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=size, max_size=size)


_BYTES = st.sampled_from([b"", b"\0", b"\xff\xff\xff\xff", bytes(13)]) | st.binary(max_size=24)
_TEXT = st.sampled_from(
    ["", "a", "topic-1", "\0", "é", "消息", "\U0001f600", "a\u202eb", "\ufeff", "\n", "' \"\\", "e\u0301"]
) | st.text(max_size=12)
_FLOATS = {"d": st.floats(), "f": st.floats(width=32)}
_MESSAGE_FLOATS = {"d": st.floats(allow_nan=False), "f": st.floats(width=32, allow_nan=False)}
_LEFT_OUT: Any = object()


@dataclass(slots=True)
class _Want:
    """Bytes that must stand at a position of what is made: because they were seen ahead, or end what lies before."""

    start: int
    data: bytes
    must: bool

    @property
    def end(self) -> int:
        return self.start + len(self.data)


@dataclass(frozen=True, slots=True)
class _Wish:
    """What values are asked for: how deep, clean or not, towards which branches, how deep at least."""

    depth: int
    clean: bool = False
    aim: frozenset[str] = frozenset()
    leading: frozenset[int] = frozenset()
    dive: int = 0


class _Maker:
    """Makes one value, from the outside in."""

    def __init__(self, layout: _Layout, draw: Draw, context: Mapping[str, Any], wish: _Wish) -> None:
        self.layout = layout
        self.draw = draw
        self.context = context
        self.deepest = wish.depth
        self.clean = wish.clean
        self.aim = wish.aim
        self.leading = wish.leading
        self.dive = wish.dive
        self.depth = 0
        self.packed = 0
        self.pieces = PIECES
        self.messages = 0
        self.unsure = False
        self.taken: set[str] = set()
        # Where we are: bytes since some origin, what must stand further on, whether the limit has been reached.
        self.at: int | None = 0
        self.wants: list[_Want] = []
        self.full = False
        self.tail: tuple[ir.Several, list[Any], Scope] | None = None

    def whole(self) -> Any:
        """A value of the schema."""
        value = self.make(self.layout.root, Scope.root(engine.Params(self.context)), {})
        if any(want.must for want in self.wants):
            reject()
        return value

    # Small choices

    def upto(self, most: int) -> int:
        return int(self.draw(_upto(most))) if most else 0

    def chance(self, of: int) -> bool:
        """One time out of ``of``; shrinks to False."""
        return self.upto(of - 1) == of - 1

    def one_of(self, items: list[Any]) -> Any:
        return items[self.upto(len(items) - 1)]

    def take(self, node: ir.Node, branch: str) -> None:
        self.taken.add(f"{self.layout.names[id(node)]}={branch}")

    def aims(self, node: ir.Node, branch: str) -> bool:
        """Whether a branch of a node is what is asked for; then it is taken half of the time."""
        return bool(self.aim) and f"{self.layout.names[id(node)]}={branch}" in self.aim and self.upto(1) == 0

    def leads(self, node: ir.Node | None) -> bool:
        """Whether something inside a node is asked for."""
        return id(node) in self.leading

    @property
    def shallow(self) -> bool:
        """Whether nothing more may lie inside itself."""
        return self.depth >= max(self.deepest, self.dive) or self.pieces <= 0

    @property
    def diving(self) -> bool:
        return self.depth < self.dive

    # Position

    def advance(self, size: int | None) -> None:
        if size and self.full:
            self.unsure = True
        if self.at is None:
            return
        if size is None:
            if self.wants:
                self.unsure = self.unsure or any(want.must for want in self.wants)
                self.wants = []
            self.at = None
            return
        self.at += size
        if self.wants:
            self.wants = [want for want in self.wants if want.end > (self.at or 0)]

    def want(self, data: bytes, ahead: int = 0, *, must: bool) -> None:
        if self.at is None:
            self.at = 0
        self.wants.append(_Want(self.at + ahead, data, must))

    def overlaid(self, data: bytes, ahead: int = 0) -> bytes:
        """Bytes that will stand here, with those that are wanted put over them."""
        if not self.wants or self.at is None:
            return data
        at = self.at + ahead
        result = bytearray(data)
        for want in self.wants:
            for index, byte in enumerate(want.data):
                if 0 <= want.start + index - at < len(result):
                    result[want.start + index - at] = byte
        return bytes(result)

    def number(self, node: ir.Node, value: Any) -> Any:
        """A number, changed to what is wanted here; moves on."""
        if self.wants:
            data = _pack(node, value)
            if data is not None:
                value = _unpack(node, self.overlaid(data))
        self.advance(_fixed(node))
        return value

    # Nodes

    def make(self, node: ir.Node, scope: Scope, forced: dict[Names, Any]) -> Any:
        """A value for a node.

        Args:
            node: the node.
            scope: the fields made before.
            forced: values of fields inside the node; ``()`` is the node itself.
        """
        self.pieces -= 1
        match node:
            case ir.Number():
                return self._number(node, forced)
            case ir.Boolean():
                value = bool(forced[()]) if () in forced else self.upto(1) == 1
                return self.number(node, value)
            case ir.Named():
                return self._named(node, forced)
            case ir.BitFields():
                return self._bits(node, forced)
            case ir.Blob():
                return self._blob(node, scope, forced)
            case ir.Delimited():
                return self._delimited(node, forced)
            case ir.Structure():
                return self._structure(node, scope, forced)
            case ir.Several():
                return self._several(node, scope, forced)
            case ir.When(condition=condition, node=inner):
                present = self._decided(condition, scope)
                self.take(node, "present" if present else "absent")
                return self.make(inner, scope, forced) if present else None
            case ir.WhenNext():
                return self._when_next(node, scope, forced)
            case ir.WhenMore():
                return self._when_more(node, scope, forced)
            case ir.Either(condition=condition, then=then, otherwise=otherwise):
                holds = self._decided(condition, scope)
                self.take(node, "then" if holds else "otherwise")
                return self.make(then if holds else otherwise, scope, forced)
            case ir.Choice():
                return self._choice(node, scope, forced)
            case ir.Ahead():
                return self._ahead(node, scope, forced)
            case ir.Bounded():
                return self._bounded(node, scope, forced)
            case ir.Fallback():
                return self._fallback(node, scope, forced)
            case ir.Reference(key=key):
                return self._reference(key, scope, forced)
            case ir.Constant(value=expression):
                return self._constant(node, self._value(expression, scope))
            case ir.Optional(node=inner):
                return self.make(inner, scope, forced)
            case ir.Packed():
                return self._packed(node, scope, forced)
            case ir.Protobuf(message=message):
                sent = self._message(Message._known[message], forced)
                if self.full and sent:
                    self.unsure = True
                self.advance(None)
                self.full = True
                return sent
        raise Misuse(f"a {type(node).__name__} has no strategy")

    def _look(self, scope: Scope) -> Look:
        return lambda up, names: _found(scope, up, names)

    def _value(self, expression: Expression, scope: Scope) -> Any:
        return _evaluate(expression, self._look(scope), self.context)

    def _decided(self, condition: Expression, scope: Scope) -> bool:
        try:
            return bool(self._value(condition, scope))
        except _Unknown:
            self.unsure = True
            return self.upto(1) == 1

    def _number(self, node: ir.Number, forced: dict[Names, Any]) -> Any:
        if () in forced and forced[()] is not None:
            return self.number(node, forced[()])
        if node.real:
            self.advance(node.size)
            return self.draw(_FLOATS[node.code])
        return self.number(node, self.draw(_integers(node.low, node.high)))

    def _named(self, node: ir.Named, forced: dict[Names, Any]) -> Any:
        if () in forced and forced[()] is not None:
            value = forced[()]
        elif not node.closed and (not self.layout.symbols(node) or self.aims(node, "unknown") or self.chance(6)):
            assert isinstance(node.number, ir.Number)
            value = self.draw(_integers(node.number.low, node.number.high))
        else:
            value = self.one_of(self.layout.symbols(node))
        value = self.number(node, value)
        if value not in node.table:
            if node.closed:
                reject()
            self.take(node, "unknown")
        return value

    def _bits(self, node: ir.BitFields, forced: dict[Names, Any]) -> Any:
        if () in forced and isinstance(forced[()], dict):
            return self.number(node, forced[()])
        value: dict[str, Any] = {}
        for field in node.fields:
            if (field.name,) in forced:
                value[field.name] = forced[field.name,]
            elif field.table is not None and not self.chance(6):
                value[field.name] = self.one_of([int(symbol) for symbol in field.table if symbol < 1 << field.width])
            else:
                number = self.draw(_integers(0, (1 << field.width) - 1))
                value[field.name] = bool(number) if field.width == 1 and field.table is None else number
        return self.number(node, value)

    def _constant(self, node: ir.Constant, value: Any) -> Any:
        data = _pack(node.node, value) if isinstance(value, int) else None
        if data is None:
            self.advance(_fixed(node.node))
        else:
            if self.overlaid(data) != data:
                reject()
            self.advance(len(data))
        return value

    # Bytes

    def _blob(self, node: ir.Blob, scope: Scope, forced: dict[Names, Any], *, some: bool = False) -> Any:
        if node.length is None:
            return self._rest(node, scope, some=some)
        if isinstance(node.length, ir.Number):
            return self._prefixed(node, node.length, forced)
        if node.filler:
            self.advance(None)
            return b""
        try:
            size = self._value(node.length, scope)
        except _Unknown:
            self.unsure = True
            size = self.upto(8)
        if not isinstance(size, int) or not 0 <= size <= 64 * LARGEST:
            reject()
        data = self.overlaid(self._content(node, size))
        self.advance(size)
        return data.decode(errors="surrogateescape") if node.text else data

    def _content(self, node: ir.Blob, size: int) -> bytes:
        if node.text:
            return bytes(32 + byte % 95 for byte in self.draw(_exactly(size)))
        return bytes(self.draw(_exactly(size)))

    def _text_or_bytes(self, node: ir.Blob, most: int) -> Any:
        """Drawn content of at most so many bytes."""
        if self.pieces <= 0:
            return "" if node.text else b""
        value = self.draw(_TEXT if node.text else _BYTES)
        size = len(value.encode()) if node.text else len(value)
        return value if size <= most else value[:0]

    def _prefixed(self, node: ir.Blob, number: ir.Number, forced: dict[Names, Any]) -> Any:
        if self.full or self.wants:
            self.unsure = True
        value: Any
        if () in forced:
            value = forced[()]
        elif (LENGTH,) in forced:
            content = self._content(node, forced[LENGTH,])
            value = content.decode() if node.text else content
        elif node.null is not None and (self.aims(node, "null") or self.upto(3) == 0):
            value = None
        elif node.null != 0 and self.aims(node, "empty"):
            value = "" if node.text else b""
        elif self.aims(node, "some"):
            value = "x" if node.text else b"x"
        elif number.high <= 255 and self.chance(16):
            value = number.high * ("x" if node.text else b"x")
        else:
            value = self._text_or_bytes(node, number.high)
        if node.null == 0 and not value:
            value = None  # the wire does not tell them apart
        size = 0 if value is None else len(value.encode() if node.text else value)
        self.take(node, "null" if value is None else "some" if size else "empty")
        self.advance(number.size + size)
        return value

    def _delimited(self, node: ir.Delimited, forced: dict[Names, Any]) -> Any:
        """A number, or a line's text without the delimiter in it."""
        if self.full or self.wants:
            self.unsure = True
        if () in forced:
            value = forced[()]
        elif node.decimal:
            value = self.draw(_integers(-DECIMAL, DECIMAL))
        else:
            value = self.draw(_TEXT).replace("\n", "").replace(node.end.decode(), "")
        self.advance(len(str(value).encode() if node.decimal else value.encode()) + len(node.end))
        return value

    def _rest(self, node: ir.Blob, scope: Scope, *, some: bool = False) -> Any:
        empty: Any = "" if node.text else b""
        tail, self.tail = self.tail, None
        if tail is not None:
            data = self._cut(*tail)
            self.advance(len(data))
            self.full = True
            return data.decode(errors="surrogateescape") if node.text else data
        if self.full or (self.clean and not node.explained):
            if some or any(want.must for want in self.wants):
                self.unsure = True
            self.full = True
            return empty
        value = self._text_or_bytes(node, LARGEST)
        if some and not value:
            value = "x" if node.text else b"x"
        if self.wants and self.at is not None:
            data = value.encode() if node.text else value
            needed = max(want.end for want in self.wants) - self.at
            if data or any(want.must for want in self.wants):
                data = self.overlaid(data + bytes(max(0, needed - len(data))))
            value = data.decode(errors="surrogateescape") if node.text else data
        self.advance(len(value.encode(errors="surrogateescape") if node.text else value))
        self.full = True
        return value

    def _cut(self, node: ir.Several, items: list[Any], scope: Scope) -> bytes:
        """What a list that stops before a cut element may leave: nothing, a cut one, or what ends the list."""
        choice = self.upto(3)
        if choice == 3 and node.until and items:
            return node.until + self.draw(_exactly(self.upto(3)))
        if choice >= 2 and not (self.pieces <= 0 and self.layout.refers(node.element)):
            whole = self._written(node.element, self._apart(node.element, scope), scope)
            if len(whole) > 1:
                self.unsure = True
                return whole[: 1 + self.upto(len(whole) - 2)]
        return b""

    def _apart(self, node: ir.Node, scope: Scope) -> Any:
        """A value that is not part of what is made: position and limit stay."""
        kept = self.at, self.wants, self.full, self.tail, self.dive
        self.at, self.wants, self.full, self.tail, self.dive = 0, [], False, None, 0
        value = self.make(node, scope, {})
        self.at, self.wants, self.full, self.tail, self.dive = kept
        return value

    def _written(self, node: ir.Node, value: Any, scope: Scope) -> bytes:
        """The bytes of a value of a node inside the layout."""
        source = self.layout.sources[id(node)]
        writer = Writer(self.layout.key, registry[self.layout.key].limits)
        try:
            source._build(source.load(value, scope), writer, scope, "")
        except WirekitError:
            reject()
        return bytes(writer.buffer)

    # Structures

    def _structure(self, node: ir.Structure, scope: Scope, forced: dict[Names, Any]) -> dict[str, Any]:
        inner = scope.inner()
        fixed = self._settled(node, inner, forced)
        computed = _computed(node)
        value: dict[str, Any] = {}
        bounds: list[tuple[int, bool]] = []
        for index, member in enumerate(node.members):
            for measure in sorted(node.measures, key=lambda measure: -measure.last):
                if measure.bounds and measure.first == index and measure.last >= index > measure.at:
                    self._enter(node, measure, bounds)
            if index in computed:
                self.unsure = self.unsure or bool(self.wants)
                self._skip(member.node, inner)
            else:
                inside = {names[1:]: item for names, item in fixed.items() if names[0] == member.name}
                made = self._member(member.name, member.node, inner, inside)
                if made is not _LEFT_OUT:
                    value[member.name] = inner[member.name] = made
            while bounds and bounds[-1][0] == index:
                self.full = bounds.pop()[1]
                self.tail = None
                self.wants = [want for want in self.wants if want.must]
        return value

    def _skip(self, node: ir.Node, scope: Scope) -> None:
        """Moves past a field that the encoder computes."""
        while isinstance(node, ir.When | ir.Optional):
            if isinstance(node, ir.When):
                present = self._decided(node.condition, scope)
                self.take(node, "present" if present else "absent")
                if not present:
                    return
            node = node.node
        self.advance(_fixed(node))

    def _enter(self, node: ir.Structure, measure: ir.Measure, bounds: list[tuple[int, bool]]) -> None:
        number = node.members[measure.at].node
        covered = sum(ir.minimum(member.node) for member in node.members[measure.first : measure.last + 1])
        narrow = isinstance(number, ir.Number) and number.high < 1 << 12
        if measure.zero_is_rest or narrow or measure.least > covered + measure.add or self.full:
            self.unsure = True
        bounds.append((measure.last, self.full))
        self.full = False

    def _member(self, name: str, node: ir.Node, scope: Scope, forced: dict[Names, Any]) -> Any:
        """A value for a member, or a sign that it is left out, with its default in the scope."""
        leaves = not forced and not self.full and not self.wants and not self.leads(node)
        if leaves and isinstance(node, ir.Optional) and isinstance(node.default, Literal) and self.chance(4):
            self.advance(_fixed(node.node))
            default, core = node.default.value, _core(node)
            if isinstance(core, ir.BitFields):
                whole = default if isinstance(default, int) else 0
                default = {**_taken_apart(core, whole), **(default if isinstance(default, Mapping) else {})}
            scope[name] = default
            return _LEFT_OUT
        return self.make(node, scope, forced)

    def _settled(self, node: ir.Structure, scope: Scope, forced: dict[Names, Any]) -> dict[Names, Any]:
        """Values of the fields that decide, which lead to branches that were drawn; and those forced from outside."""
        plan = self.layout.plan(node)
        pools: dict[Names, list[Any]] = {}
        for names, candidates in plan.candidates.items():
            pools[names] = [forced[names]] if names in forced else candidates
        offsets = self._offsets(node) if self.wants else {}
        places = {id(_core(member.node)): offsets[member.name] for member in node.members if member.name in offsets}
        for names, pool in pools.items():
            if names[0] in offsets:
                pools[names] = self._wanted(node, names, pool, offsets[names[0]])
        touched = {names for names in pools if pools[names] is not plan.candidates[names]}
        self._settle(plan.decisions, pools, touched, scope, places)
        fixed = dict(forced)
        for names, pool in pools.items():
            if names not in touched and not self._left_open(names):
                touched.add(names)
            if names in touched and pool:
                fixed[names] = self.one_of(pool)
        return fixed

    def _left_open(self, names: Names) -> bool:
        """Whether a field that decides nothing here is drawn like any other: half of the time."""
        return names[-1] == LENGTH or self.upto(1) == 0

    def _settle(
        self,
        decisions: list[_Decision],
        pools: dict[Names, list[Any]],
        touched: set[Names],
        scope: Scope,
        places: Mapping[int, int],
    ) -> None:
        for decision in decisions:
            table = self._table(decision, pools, scope)
            open_: list[tuple[_Branch, list[tuple[Any, ...]]]] = []
            for index, branch in enumerate(decision.branches):
                fitting = table.get(index)
                if fitting:
                    open_.append((branch, fitting))
            if not open_:
                if decision.role != "size":
                    self.unsure = True
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
        self, decision: _Decision, pools: dict[Names, list[Any]], scope: Scope
    ) -> dict[int, list[tuple[Any, ...]]]:
        if decision.table is None:

            def outside(up: int, names: Names) -> Any:
                if up < decision.depth:
                    raise _Unknown
                return _found(scope, up - decision.depth, names)

            return _outcomes(decision, pools, outside, self.context)
        found = {}
        left = [set(pools[names]) for names in decision.variables]
        for branch, fitting in decision.table.items():
            kept = [
                values for values in fitting if all(value in pool for value, pool in zip(values, left, strict=True))
            ]
            if kept:
                found[branch] = kept
        if not found and all(len(pool) == 1 for pool in left):  # a value from outside that is no candidate
            return _outcomes(decision, pools, lambda up, names: _not_known(), self.context)
        return found

    def _permitted(
        self,
        decision: _Decision,
        branches: list[tuple[_Branch, list[tuple[Any, ...]]]],
        places: Mapping[int, int],
    ) -> list[tuple[_Branch, list[tuple[Any, ...]]]]:
        """The branches that depth and wanted bytes allow; all when none does."""
        allowed = branches
        if id(decision.node) in self.layout.beyond:
            allowed = [item for item in branches if item[0].node is None]
        elif self.shallow or (decision.role == "packed" and self.packed >= self.deepest and not self.diving):
            allowed = [item for item in branches if item[0].node is None or not self.layout.refers(item[0].node)]
            if decision.role == "packed" and self.packed >= self.deepest:
                allowed = [item for item in allowed if item[0].node is None]
        elif self.diving:
            allowed = [item for item in branches if item[0].node is not None and self.layout.refers(item[0].node)]
        if self.wants and decision.role == "choice" and decision.depth == 0:
            place = places.get(id(decision.node))
            if place is not None:
                allowed = [item for item in allowed if item[0].node is None or self._fits(item[0].node, place)]
        return allowed or branches

    def _branch(self, decision: _Decision, branches: list[tuple[_Branch, Any]]) -> tuple[_Branch, Any]:
        """One of them by weight; the lightest come first, because that is where shrinking goes."""
        ordered = sorted(branches, key=lambda item: item[0].weight)
        if self.aim:
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
        """Where members begin, as far as the sizes before them are fixed."""
        offsets: dict[str, int] = {}
        at = 0
        for member in node.members:
            offsets[member.name] = at
            size = _fixed(member.node)
            if size is None:
                break
            at += size
        return offsets

    def _wanted(self, node: ir.Structure, names: Names, pool: list[Any], offset: int) -> list[Any]:
        """The candidates that agree with wanted bytes, or just what these say."""
        member = next(member for member in node.members if member.name == names[0])
        size = _fixed(member.node)
        if not size:
            return pool
        blank, filled = self.overlaid(bytes(size), offset), self.overlaid(b"\xff" * size, offset)
        if blank == bytes(size) and filled == b"\xff" * size:
            return pool
        if len(names) == 1:
            kept = [value for value in pool if self._agree(member.node, value, offset)]
            return kept or ([_unpack(member.node, blank)] if blank == filled else pool)
        if blank == filled:
            whole = _unpack(member.node, blank)
            return [whole[names[1]]] if isinstance(whole, dict) and len(names) == 2 else pool
        return pool

    def _agree(self, node: ir.Node, value: Any, offset: int) -> bool:
        try:
            data = _pack(node, value)
        except (OverflowError, TypeError):
            return False
        return data is None or self.overlaid(data, offset) == data

    def _fits(self, node: ir.Node, offset: int) -> bool:
        """Whether a node may hold the wanted bytes when it begins here."""
        match node:
            case ir.Constant(value=Literal(value=int(value))):
                return self._agree(node.node, value, offset)
            case ir.Structure(members=members):
                for member in members:
                    if not self._fits(member.node, offset):
                        return False
                    size = _fixed(member.node)
                    if size is None:
                        return True
                    offset += size
        return True

    # Conditions

    def _when_next(self, node: ir.WhenNext, scope: Scope, forced: dict[Names, Any]) -> Any:
        if () in forced:
            present = forced[()] is not None
        else:
            present = not self.full and (self.leads(node.node) or self.upto(1) == 1)
        self.take(node, "present" if present else "absent")
        if not present:
            self.unsure = True  # what follows may look like it
            return None
        self.want(node.magic, must=True)
        return self.make(node.node, scope, forced)

    def _when_more(self, node: ir.WhenMore, scope: Scope, forced: dict[Names, Any]) -> Any:
        present = not self.full and not (() in forced and forced[()] is None) and self.upto(2) > 0
        if self.clean and isinstance(node.node, ir.Blob) and not node.node.explained:
            present = False
        self.take(node, "present" if present else "absent")
        if not present:
            self.full = True
            return None
        if isinstance(node.node, ir.Blob):
            return self._blob(node.node, scope, forced, some=True)
        if ir.minimum(node.node) == 0:
            self.unsure = True
        return self.make(node.node, scope, forced)

    def _choice(self, node: ir.Choice, scope: Scope, forced: dict[Names, Any]) -> Any:
        try:
            results = tuple(self._value(tree, scope) for tree in node.on)
        except _Unknown:
            self.unsure = True
            name, chosen = self.one_of(list(ir.parts(node)))
        else:
            for values, case in node.cases:
                if values == results:
                    name, chosen = ",".join(map(str, values)), case
                    break
            else:
                if node.otherwise is None:
                    reject()
                name, chosen = "otherwise", node.otherwise
        self.take(node, name)
        return self.make(chosen, scope, forced)

    def _ahead(self, node: ir.Ahead, scope: Scope, forced: dict[Names, Any]) -> Any:
        if self.full:
            self.unsure = True
        kept = self.at, self.wants
        value = self.make(node.node, scope, forced)
        self.at, self.wants = kept
        data = _pack(node.node, value)
        if data is None:
            self.unsure = True
        else:
            self.want(data, node.at, must=True)
        return value

    def _bounded(self, node: ir.Bounded, scope: Scope, forced: dict[Names, Any]) -> Any:
        null = node.null is not None and not self.diving and (self.aims(node, "null") or self.upto(5) == 0)
        null = null and not self.leads(node.node)
        if () in forced:
            null = forced[()] is None
        if self.full or node.length.high < 1 << 12:
            self.unsure = True
        self.advance(node.length.size)
        self.take(node, "null" if null else "present")
        if null:
            return None
        full, self.full = self.full, False
        value = self.make(node.node, scope, forced)
        self.full, self.tail = full, None
        self.wants = [want for want in self.wants if want.must]
        return value

    def _fallback(self, node: ir.Fallback, scope: Scope, forced: dict[Names, Any]) -> Any:
        shape = self._shape(node.node, scope)
        size = ir.minimum(shape) if shape is not None else 0
        apt = not self.clean and not forced and size and not self.full and not self.wants
        if apt and (self.aims(node, "bytes") or (self.chance(6) and not self.leads(node.node))):
            self.take(node, "bytes")
            data = self.draw(_exactly(self.upto(size - 1)))
            self.advance(len(data))
            self.full = True
            return data
        self.take(node, "layout")
        return self.make(node.node, scope, forced)

    def _shape(self, node: ir.Node, scope: Scope) -> ir.Node | None:
        """What a choice comes to here."""
        if not isinstance(node, ir.Choice):
            return node
        try:
            results = tuple(self._value(tree, scope) for tree in node.on)
        except _Unknown:
            return None
        return next((case for values, case in node.cases if values == results), node.otherwise)

    def _reference(self, key: str, scope: Scope, forced: dict[Names, Any]) -> Any:
        if self.depth > max(self.deepest, self.dive):
            reject()
        self.depth += 1
        value = self.make(registry[key].layout, scope, forced)
        self.depth -= 1
        return value

    # Lists

    def _several(self, node: ir.Several, scope: Scope, forced: dict[Names, Any]) -> Any:
        wants = node.count is None and any(want.must for want in self.wants)
        count, exact = self._count(node, scope, forced, least=1 if wants else 0)
        if count is None:
            self.advance(node.count.size if isinstance(node.count, ir.Number) else 0)
            return None
        if isinstance(node.count, ir.Number):
            if self.full or self.wants:
                self.unsure = True
            self.advance(node.count.size)
        items: list[Any] = []
        unmeasured = ir.minimum(node.element) == 0
        if unmeasured and node.count is not None:
            self.unsure = True
        for _ in range(count):
            if self.full and node.count is None:
                self.unsure = self.unsure or exact
                break
            place = self.at, list(self.wants), self.full
            item = self.make(node.element, scope, {})
            if node.count is None and (unmeasured or (node.until and items)):
                data = self._written(node.element, item, scope)
                if not data or (node.until and items and data.startswith(node.until)):
                    self.at, self.wants, self.full = place
                    self.unsure = self.unsure or exact
                    continue
            items.append(item)
        self.take(node, "some" if items else "empty")
        if node.count is None:
            self._end(node, items, scope)
        return items

    def _count(
        self, node: ir.Several, scope: Scope, forced: dict[Names, Any], *, least: int
    ) -> tuple[int | None, bool]:
        """How many elements, None for null; and whether just so many are asked for."""
        if (LENGTH,) in forced:
            return forced[LENGTH,], True
        told = node.announced if node.count is None else node.count
        if told is not None and not isinstance(told, ir.Number):
            try:
                number = self._value(told, scope)
            except _Unknown:
                self.unsure = self.unsure or node.count is not None
            else:
                if not isinstance(number, int) or not 0 <= number <= LARGEST:
                    reject()
                return number, True
        if self.full and node.count is None:
            return 0, False
        refers = self.layout.refers(node.element)
        if (self.diving and refers) or (self.leads(node.element) and self.pieces > 0 and not self.shallow):
            return 1 + (0 if self.diving else self.upto(1)), False
        nullable = node.null is not None and node.null < 0 and not least
        if nullable and (self.aims(node, "null") or self.upto(5) == 0):
            self.take(node, "null")
            return None, False
        if not least and self.aims(node, "empty"):
            return 0, False
        if self.pieces <= 0 or (self.shallow and refers) or self.diving:
            return least, False
        return max(least, (1, 0, 2, ELEMENTS)[self.upto(3)]), False

    def _end(self, node: ir.Several, items: list[Any], scope: Scope) -> None:
        """What may follow a list that goes up to the limit."""
        if node.stop:
            self.tail = node, items, scope
        elif node.until and items:
            if self.wants:
                self.unsure = True
            self.want(node.until, must=False)
        else:
            self.full = True

    # Compressed data and messages

    def _packed(self, node: ir.Packed, scope: Scope, forced: dict[Names, Any]) -> Any:
        try:
            results = tuple(self._value(tree, scope) for tree in node.on)
        except _Unknown:
            self.unsure = True
            results = ()
        codec = next((name for values, name in node.codecs if values == results), None)
        null = node.blob.null is not None and not self.diving and not self.leads(node.node) and self.upto(5) == 0
        if codec is None or null:
            self.take(node, "as it stands")
            return None if codec is not None else self._blob(node.blob, scope, forced)
        if self.packed > max(self.deepest, self.dive):
            reject()
        self.take(node, f"{','.join(map(str, results))} {codec}")
        kept = self.at, self.wants, self.full, self.tail
        self.at, self.wants, self.full, self.tail = 0, [], False, None
        self.packed += 1
        content = self.make(node.node, scope, forced)
        self.packed -= 1
        self.at, self.wants, self.full, self.tail = kept
        self._tell_size(node, content, scope)
        if self.full:
            self.unsure = True
        self.advance(None)
        if node.blob.length is None:
            self.full = True
        return {"content": content}

    def _tell_size(self, node: ir.Packed, content: Any, scope: Scope) -> None:
        """Has the field that tells the size after decompression tell it."""
        if node.size is None:
            return
        size = len(self._written(node.node, content, scope))
        if not isinstance(node.size, Field):
            self.unsure = True
            return
        at: Any = scope
        for _ in range(node.size.up):
            at = at["_"]
        for name in node.size.names[:-1]:
            at = at[name]
        at[node.size.names[-1]] = size

    def _message(self, message: Message, forced: dict[Names, Any]) -> dict[str, Any]:
        value: dict[str, Any] = {}
        lengths = {names[0]: count for names, count in forced.items() if names[1:] == (LENGTH,)}
        given = {names[0]: item for names, item in forced.items() if len(names) == 1}
        chosen = self._chosen(message, given)
        for field in message.fields.values():
            inside = {names[1:]: item for names, item in forced.items() if names[0] == field.name and len(names) > 1}
            if field.repeated:
                count = lengths.get(field.name, 1 + self.upto(1) if field.name in chosen else None)
                if count is not None:
                    value[field.name] = [self._scalar(field, {}) for _ in range(count)]
            elif field.name in given:
                value[field.name] = given[field.name]
            elif field.required or field.name in chosen or inside:
                value[field.name] = self._scalar(field, inside)
        kept = [name for name, _, _ in refused(message, value.get)]
        if kept:
            value["$keep"] = kept
        if self.pieces > 0 and self.chance(10):
            value["$unknown"] = [self._unknown(message) for _ in range(1 + self.upto(1))]
        return value

    def _chosen(self, message: Message, given: dict[str, Any]) -> set[str]:
        """Names of the optional fields to fill in: a few, or the one that a ``type`` names."""
        selector = message.by_name.get("type")
        optional = [field for field in message.fields.values() if not field.required]
        if self.messages >= MESSAGES or self.pieces <= 0:
            optional = [field for field in optional if field.message is None]
        if selector is not None and selector.required and selector.table is not None:
            number = given.setdefault("type", self._scalar(selector, {}))
            name = _squeezed(selector.table(number).symbol or "")
            named = {field.name for field in optional if field.message is not None and _squeezed(field.name) == name}
            if named and not self.chance(4):
                return named
        if not optional or self.pieces <= 0:
            return set()
        return {self.one_of(optional).name for _ in range(self.upto(4))}

    def _scalar(self, field: MessageField, forced: dict[Names, Any]) -> Any:
        self.pieces -= 1
        if field.message is not None:
            self.messages += 1
            value = self._message(field.message, forced)
            self.messages -= 1
            return value
        if field.kind == "bool":
            return self.upto(1) == 1
        if field.fixed and field.fixed[1] in "df":
            return self.draw(_MESSAGE_FLOATS[field.fixed[1]])
        if field.table is not None and not self.chance(8):
            return int(self.one_of(list(field.table)))
        if field.kind == "string":
            return self.draw(_TEXT)
        if field.wire_type == BYTES:
            return self.draw(_BYTES)
        if field.fixed:
            bits = 32 if field.fixed[1] in "Ii" else 64
            return self.draw(_integers(0, (1 << bits) - 1) if field.fixed[1].isupper() else _signed(bits))
        return self.draw(_integers(*_limits(field)))

    def _unknown(self, message: Message) -> dict[str, Any]:
        """A field that the descriptor does not have."""
        number = 1 + max(message.fields, default=0) + self.upto(1000)
        wire_type = self.one_of([0, 2, 1, 5])
        if wire_type == VARINT:
            return {"number": number, "wire_type": wire_type, "value": self.draw(_integers(0, (1 << 64) - 1))}
        data = self.draw(_BYTES if wire_type == BYTES else _exactly(8 if wire_type == 1 else 4))
        return {"number": number, "wire_type": wire_type, "value": data.hex()}


@functools.cache
def _signed(bits: int) -> st.SearchStrategy[int]:
    return _integers(-(1 << bits - 1), (1 << bits - 1) - 1)


def _squeezed(name: str) -> str:
    return name.replace("_", "").lower()


# Strategies


def values(
    key: str,
    *,
    context: Mapping[str, Any] | None = None,
    depth: int = 2,
    clean: bool = False,
    aim: Iterable[str] = (),
    reached: set[str] | None = None,
) -> st.SearchStrategy[Any]:
    """Values that ``encode(key, value, context=context)`` takes, and that come out of ``decode`` again (``agrees``).

    They reach every branch of the layout that the context allows, null, empty and present, the ends of integer ranges,
    numbers without a symbol, unusual text, compressed data with every codec, unknown protobuf fields.

    Args:
        key: a schema key, or a protocol's name for a frame of its client stream.
        context: as for ``encode``; see ``contexts`` for the ones that matter to a layout.
        depth: how often a schema lies inside itself at most, and compressed data in compressed data.
        clean: whether to leave out what decodes with a gap or a bad check: bytes that nobody can explain, and bytes
            that do not fit the layout where the format allows any.
        aim: names of branches (see ``branches``) to go for, where the rest of the value allows it.
        reached: gets the names of the branches that were taken (see ``branches``).

    Raises:
        Misuse: for a key that does not exist.

    >>> from hypothesis import find
    >>> import wirekit
    >>> value = find(values("kafka.offset_index"), lambda value: bool(value["entries"]))
    >>> len(value["entries"]), len(wirekit.encode("kafka.offset_index", value))
    (1, 8)
    """
    layout = _layout(_full(key))
    aimed = frozenset(aim)
    unknown = aimed - set(branches(layout.key))
    if unknown:
        raise Misuse(f"{layout.key} has no branch {', '.join(sorted(unknown))}; wirekit.strategies.branches lists them")
    wish = _Wish(depth, clean, aimed, frozenset(layout.leading(aimed)))
    return _values(layout, dict(context or {}), wish, reached)


def _full(key: str) -> str:
    return key if "." in key else registry.protocol(key).stream("client")


@st.composite
def _values(
    draw: Draw,
    layout: _Layout,
    context: dict[str, Any],
    wish: _Wish,
    reached: set[str] | None = None,
) -> Any:
    maker = _Maker(layout, draw, context, wish)
    value = maker.whole()
    if maker.unsure and not wish.dive and not _comes_out(layout.key, value, context):
        reject()
    if reached is not None:
        reached |= maker.taken
    return value


def _comes_out(key: str, value: Any, context: Mapping[str, Any]) -> bool:
    """Whether a value can be encoded and comes out of decoding again."""
    try:
        data = engine.encode(key, value, context=context)
    except WirekitError:
        return False
    decoded = engine.decode(data, key, context=context)
    whole = decoded.error is None and decoded.consumed == len(data)
    return whole and agrees(value, decoded.value)


def agrees(given: Any, found: Any) -> bool:
    """Whether a decoded value says all that a value to be encoded said.

    What was left out may be anything; ``b""`` stands for bytes that only fill up, too.

    >>> import wirekit
    >>> given = {"correlation_id": 7, "body": {"error_code": 0}}
    >>> data = wirekit.encode("kafka.heartbeat.response.v0", given)
    >>> agrees(given, wirekit.decode(data, "kafka.heartbeat.response.v0").value)
    True
    """
    if isinstance(given, Mapping | Record):
        if not isinstance(found, Mapping | Record):
            return False
        extra = found.extra if isinstance(found, Record) else {}
        return all(
            agrees(item, extra.get(name[1:]) if name.startswith("$") else found.get(name))
            for name, item in given.items()
        )
    if isinstance(given, list):
        if not given and found is None:
            return True
        return isinstance(found, list) and len(given) == len(found) and all(map(agrees, given, found))
    if given == b"":
        return found is None or (isinstance(found, bytes) and not any(found))
    return bool(given == found) or (given != given and found != found)


def frames(
    key: str, *, context: Mapping[str, Any] | None = None, depth: int = 2, clean: bool = False
) -> st.SearchStrategy[bytes]:
    """The bytes of ``values``; the arguments are the same."""
    full, said = _full(key), dict(context or {})
    return values(full, context=said, depth=depth, clean=clean).map(
        lambda value: engine.encode(full, value, context=said)
    )


def contexts(key: str) -> st.SearchStrategy[dict[str, Any]]:
    """What a caller may say about bytes of a schema: each case that its layout tells apart, values between, nothing.

    >>> from hypothesis import find
    >>> find(contexts("kafka.response"), lambda context: context.get("api") == "fetch" and context["version"] > 1)
    {'api': 'fetch', 'version': 2}
    """
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for node in _layout(_full(key)).nodes:
        for tree in _expressions(node):
            for part in _operands(tree):
                if isinstance(part, Operation):
                    for name in [operand.name for operand in part.operands if isinstance(operand, Context)]:
                        near = [item.value for item in part.operands if isinstance(item, Literal)]
                        cases = groups.setdefault((name,), [{}])
                        cases += [{name: value} for item in near if isinstance(item, int) for value in (item, item - 1)]
                elif isinstance(part, Context) and part is tree and not isinstance(node, ir.Choice):
                    groups.setdefault((part.name,), [{}]).append({part.name: 1})
        if isinstance(node, ir.Choice) and any(isinstance(tree, Context) for tree in node.on):
            places = {tree.name: index for index, tree in enumerate(node.on) if isinstance(tree, Context)}
            cases = groups.setdefault(tuple(places), [{}])
            cases += [{name: values[index] for name, index in places.items()} for values, _ in node.cases]
            cases.append({name: _other(values[index] for values, _ in node.cases) for name, index in places.items()})
    distinct = [[case for index, case in enumerate(cases) if case not in cases[:index]] for cases in groups.values()]
    together = st.tuples(*(st.sampled_from(cases) for cases in distinct))
    return together.map(lambda cases: {name: value for case in cases for name, value in case.items()})


def _other(values_: Iterable[Any]) -> Any:
    known = list(values_)
    return max(known) + 1 if all(isinstance(value, int) for value in known) else "?"


def branches(key: str) -> list[str]:
    """The names of all branches of a layout: cases, conditions, codecs, null, empty or some, numbers without a symbol.

    A shared part of a layout has the name of its first place.

    >>> branches("kafka.consumer_offsets.value")[:4]
    ['=0', '=1', '=2', '=otherwise']
    """
    layout = _layout(_full(key))
    constant = {id(inner) for node in layout.nodes if isinstance(node, ir.Constant) for _, inner in ir.walk(node.node)}
    return [
        f"{layout.names[id(node)]}={branch}"
        for node in layout.nodes
        if id(node) not in constant
        for branch in _branch_names(node)
        if not (id(node) in layout.beyond and branch == "present")
    ]


def _branch_names(node: ir.Node) -> list[str]:
    match node:
        case ir.Choice():
            return [name for name, _ in ir.parts(node)]
        case ir.Either():
            return ["then", "otherwise"]
        case ir.When() | ir.WhenNext() | ir.WhenMore():
            return ["present", "absent"]
        case ir.Packed(codecs=codecs):
            return [f"{','.join(map(str, values_))} {name}" for values_, name in codecs] + ["as it stands"]
        case ir.Fallback(node=ir.Choice()):
            return ["layout", "bytes"]
        case ir.Fallback(node=inner):
            return ["layout", "bytes"] if ir.minimum(inner) else ["layout"]
        case ir.Bounded(null=null):
            return ["present"] if null is None else ["present", "null"]
        case ir.Blob(length=ir.Number(), null=null):
            return ["some", "null"] if null == 0 else ["some", "empty"] if null is None else ["some", "empty", "null"]
        case ir.Several(count=ir.Number(), null=null):
            return ["some", "empty"] if null is None or null == 0 else ["some", "empty", "null"]
        case ir.Named(closed=False):
            return ["unknown"]
    return []


# Damage


@dataclass(frozen=True, slots=True)
class Mutation:
    """Bytes with one thing wrong.

    Attributes:
        name: what is wrong, one of ``KINDS``.
        path: the field.
        data: the damaged bytes.
        original: the bytes they were made from; of ``too deep`` a sound value that lies less deep.
    """

    name: str
    path: str
    data: bytes
    original: bytes


_SIZES = ("too small", "too large", "negative", "huge")
KINDS = (
    *(f"length {size}" for size in _SIZES),
    *(f"count {size}" for size in _SIZES),
    "checksum",
    "truncated",
    "reserved bit",
    "unknown symbol",
    "constant",
    "too deep",
    "trailing bytes",
    "endless varint",
)
"""The names of mutations; which of them occur depends on the schema and on the value."""

_Change = Callable[[], bytes | None]
_Recipe = tuple[str, str, _Change]


def mutations(
    key: str,
    *,
    context: Mapping[str, Any] | None = None,
    kinds: Iterable[str] | None = None,
    depth: int = 2,
) -> st.SearchStrategy[Mutation]:
    """Frames with one thing wrong; every kind that a frame offers is as likely as the others.

    A wrong length, checksum, constant, symbol or reserved bit is written by the encoder, so that only this is wrong:
    lengths and checksums around it are right. Where the format leaves no room for that, bytes are replaced.

    Args:
        key: as for ``values``.
        context: as for ``values``.
        kinds: names out of ``KINDS``, by default all. A schema that cannot have any of them gives nothing.
        depth: as for ``values``.

    Raises:
        Misuse: for a key or a kind that does not exist.

    >>> from hypothesis import find
    >>> import wirekit
    >>> wrong = find(mutations("kafka.message", kinds=["checksum"]), lambda mutation: True)
    >>> wrong.name, wrong.path, [check.status for check in wirekit.decode(wrong.data, "kafka.message").checks]
    ('checksum', 'crc', ['bad'])
    """
    wanted = tuple(KINDS if kinds is None else kinds)
    for kind in wanted:
        if kind not in KINDS:
            raise Misuse(f"no mutation {kind!r}; there are {', '.join(KINDS)}")
    return _mutations(_layout(_full(key)), dict(context or {}), wanted, depth)


@st.composite
def _mutations(draw: Draw, layout: _Layout, context: dict[str, Any], wanted: tuple[str, ...], depth: int) -> Mutation:
    key = layout.key
    original = engine.encode(key, draw(_values(layout, context, _Wish(depth))), context=context)
    by_kind: dict[str, list[_Recipe]] = {}
    for recipe in _recipes(key, original, context):
        by_kind.setdefault(recipe[0], []).append(recipe)
    names = [
        name for name in KINDS if name in wanted and (name in by_kind or (name == "too deep" and layout.recursive))
    ]
    if not names:
        reject()
    name = names[draw(_upto(len(names) - 1))]
    if name == "too deep":
        levels = registry[key].limits.depth + 1
        deep = draw(_values(layout, context, _Wish(0, dive=levels)))
        try:
            return Mutation(name, "", engine.encode(key, deep, context=context), original)
        except WirekitError:
            reject()
    recipes = by_kind[name]
    first = draw(_upto(len(recipes) - 1))
    for _, path, change in (*recipes[first:], *recipes[:first]):
        data = change()
        if data is not None and data != original:
            return Mutation(name, path, data, original)
    return reject()


def damage(key: str, data: bytes, *, context: Mapping[str, Any] | None = None) -> Iterator[Mutation]:
    """All mutations of given bytes, one after the other; of those that decode with an error, none.

    >>> import wirekit
    >>> data = wirekit.encode("kafka.sasl_token", {"token": b"ab"})
    >>> [(wrong.name, wrong.data.hex()) for wrong in damage("kafka.sasl_token", data)][:3]
    [('length too small', '000000016162'), ('length too large', '000000036162'), ('length negative', 'ffffffff6162')]
    """
    for name, path, change in _recipes(_full(key), data, dict(context or {})):
        changed = change()
        if changed is not None and changed != data:
            yield Mutation(name, path, changed, data)


def _recipes(key: str, data: bytes, context: dict[str, Any]) -> Iterator[_Recipe]:
    """What can be done to bytes: (kind, path, function that does it)."""
    decoded = engine.decode(data, key, context=context)
    if decoded.error is not None:
        return
    data = data[: decoded.consumed]
    yield from _Damage(key, data, decoded, context).recipes()


class _Damage:
    """Walks a decoded value along its layout and says at each field what can be made wrong."""

    def __init__(self, key: str, data: bytes, decoded: engine.Decoded, context: dict[str, Any]) -> None:
        self.key = key
        self.data = data
        self.value = decoded.value
        self.context = context
        self.places: dict[str, tuple[int, int]] = {"": (0, len(data))}
        self.messages: dict[str, list[int]] = {}
        self.ends = set()
        for span in decoded.spans:
            if span.source == 0 and span.bit_start is None:
                self.places[span.path] = span.start, span.end
                self.ends |= {span.start, span.end}
                if span.kind == "tag":
                    self.messages.setdefault(_outside(_outside(span.path)), []).append(span.start)

    def recipes(self) -> Iterator[_Recipe]:
        """(kind, path, function that makes the bytes)."""
        yield from self._visit(registry[self.key].layout, self.value, (), Scope.root(engine.Params(self.context)))
        for end in sorted(self.ends | {len(self.data) - 1}):
            if 0 <= end < len(self.data):
                path = next((path for path, place in self.places.items() if place[1] == end), "")
                yield "truncated", path, functools.partial(_upto_byte, self.data, end)
        yield "trailing bytes", "", lambda: self.data + b"\x00\xff\x00"

    def _visit(self, node: ir.Node, value: Any, steps: tuple[str | int, ...], scope: Any) -> Iterator[_Recipe]:
        if value is None:
            return
        match node:
            case ir.Structure(members=members):
                inner = scope.inner()
                inner.update(dict(value.items()))
                yield from self._structure(node, value, steps)
                for member in members:
                    yield from self._visit(member.node, value.get(member.name), (*steps, member.name), inner)
            case ir.Several(element=element):
                if isinstance(node.count, ir.Number):
                    yield from self._sizes("count", node.count, len(value), steps)
                for index, item in enumerate(value):
                    yield from self._visit(element, item, (*steps, index), scope)
            case ir.Blob(length=ir.Number() as number, text=text):
                size = len(value.encode(errors="surrogateescape") if text else value)
                yield from self._sizes("length", number, size, steps)
            case ir.Bounded(length=number, node=inner):
                place = self.places.get(join_path(list(steps)))
                if place is not None:
                    yield from self._sizes("length", number, place[1] - place[0], steps)
                yield from self._visit(inner, value, steps, scope)
            case ir.Choice() | ir.Either():
                yield from self._visit_chosen(node, value, steps, scope)
            case ir.Packed(blob=blob, node=inner):
                if isinstance(value, Record):
                    yield from self._visit(blob, value.compressed, steps, scope)
                    yield from self._visit(inner, value.content, (*steps, "content"), scope)
                else:
                    yield from self._visit(blob, value, steps, scope)
            case ir.Reference(key=key):
                yield from self._visit(registry[key].layout, value, steps, scope)
            case ir.Fallback(node=inner):
                if not isinstance(value, bytes | str):
                    yield from self._visit(inner, value, steps, scope)
            case ir.Named(table=table, number=ir.Number() as number, closed=closed):
                unknown = _without_name(table, number.low, number.high)
                if unknown is not None and closed:
                    yield self._replaced("unknown symbol", number, unknown, steps)
                elif unknown is not None:
                    yield self._set("unknown symbol", steps, unknown)
            case ir.BitFields(fields=fields):
                for field in fields:
                    yield from self._bit_field(field, value, (*steps, field.name))
            case ir.Constant(node=inner):
                yield from self._constant(inner, value, steps)
            case ir.Protobuf():
                yield from self._protobuf(steps)
            case ir.When(node=inner) | ir.WhenNext(node=inner) | ir.WhenMore(node=inner) | ir.Optional(node=inner):
                yield from self._visit(inner, value, steps, scope)

    def _visit_chosen(self, node: ir.Choice | ir.Either, value: Any, steps: tuple[str | int, ...], scope: Any) -> Any:
        def look(up: int, names: Names) -> Any:
            return _found(scope, up, names)

        try:
            if isinstance(node, ir.Either):
                chosen: ir.Node | None = node.then if _evaluate(node.condition, look, self.context) else node.otherwise
            else:
                results = tuple(_evaluate(tree, look, self.context) for tree in node.on)
                chosen = next((case for values_, case in node.cases if values_ == results), node.otherwise)
        except _Unknown:
            return
        if chosen is not None:
            yield from self._visit(chosen, value, steps, scope)

    def _structure(self, node: ir.Structure, value: Any, steps: tuple[str | int, ...]) -> Iterator[_Recipe]:
        for measure in node.measures:
            member = node.members[measure.at]
            number, stored = _inside(member.node), value.get(member.name)
            if stored is None or not isinstance(number, ir.Number):
                continue
            for size, wrong in _wrong_sizes(number, stored):
                yield self._kept(f"length {size}", steps, member.name, wrong)
            if measure.bounds and measure.last > measure.at:
                yield self._trailing(steps, member.name)
        for checked in node.sums:
            member = node.members[checked.at]
            stored = value.get(member.name)
            if stored is not None:
                yield self._kept("checksum", steps, member.name, stored ^ 1)

    def _bit_field(self, field: ir.BitField, value: Any, steps: tuple[str | int, ...]) -> Iterator[_Recipe]:
        if field.name.startswith("reserved") and not value[field.name]:
            yield self._set("reserved bit", steps, 1)
        if field.table is not None:
            unknown = _without_name(field.table, 0, (1 << field.width) - 1)
            if unknown is not None:
                yield self._set("unknown symbol", steps, unknown)

    def _constant(self, node: ir.Node, value: Any, steps: tuple[str | int, ...]) -> Iterator[_Recipe]:
        if isinstance(value, int) and steps and isinstance(steps[-1], str):
            yield self._kept("constant", steps[:-1], steps[-1], value ^ 1)
        else:
            yield "constant", join_path(list(steps)), lambda: self._flipped(steps)

    def _flipped(self, steps: tuple[str | int, ...]) -> bytes | None:
        place = self.places.get(join_path(list(steps)))
        if place is None or place[0] == place[1]:
            return None
        last = place[1] - 1
        return self.data[:last] + bytes([self.data[last] ^ 1]) + self.data[last + 1 :]

    def _sizes(self, what: str, number: ir.Number, size: int, steps: tuple[str | int, ...]) -> Iterator[_Recipe]:
        """A length or count in front of something, which only the bytes have."""
        for name, wrong in _wrong_sizes(number, size):
            yield self._replaced(f"{what} {name}", number, wrong, steps, f"${what}")

    def _replaced(self, name: str, number: ir.Number, wrong: int, steps: tuple[str | int, ...], *part: str) -> _Recipe:
        def change() -> bytes | None:
            place = self.places.get(join_path([*steps, *part]))
            packed = _pack(number, wrong)
            if place is None or packed is None:
                return None
            return self.data[: place[0]] + packed + self.data[place[1] :]

        return name, join_path(list(steps)), change

    def _set(self, name: str, steps: tuple[str | int, ...], wrong: Any) -> _Recipe:
        def change(value: Any) -> Any:
            if not steps:
                return wrong
            _at(value, steps[:-1])[steps[-1]] = wrong
            return value

        return name, join_path(list(steps)), lambda: self._encoded(change)

    def _kept(self, name: str, steps: tuple[str | int, ...], member: str, wrong: Any) -> _Recipe:
        def change(value: Any) -> Any:
            record = _at(value, steps)
            record[member] = wrong
            record.keep(member)
            return value

        return name, join_path([*steps, member]), lambda: self._encoded(change)

    def _trailing(self, steps: tuple[str | int, ...], member: str) -> _Recipe:
        def change(value: Any) -> Any:
            trailing = _at(value, steps).extra.setdefault("trailing", {})
            trailing[member] = trailing.get(member, b"") + b"\x00\xff\x00"
            return value

        return "trailing bytes", join_path([*steps, member]), lambda: self._encoded(change)

    def _encoded(self, change: Callable[[Any], Any]) -> bytes | None:
        """The bytes of a changed copy of the value; None when the encoder refuses it."""
        try:
            return engine.encode(self.key, change(copy.deepcopy(self.value)), context=self.context)
        except WirekitError:
            return None

    def _protobuf(self, steps: tuple[str | int, ...]) -> Iterator[_Recipe]:
        path = join_path(list(steps))
        place, starts = self.places.get(path), self.messages.get(path)
        if place is None or not starts:
            return
        begin, end = max(starts), place[1]
        if begin < end:
            yield "endless varint", path, lambda: self.data[:begin] + b"\xff" * (end - begin) + self.data[end:]


def _upto_byte(data: bytes, end: int) -> bytes:
    return data[:end]


def _at(value: Any, steps: tuple[str | int, ...]) -> Any:
    for step in steps:
        value = value[step]
    return value


def _outside(path: str) -> str:
    """The path of the message that holds a field: ``command.type`` and ``command.keys[2]`` → ``command``."""
    return path.rpartition(".")[0]


def _inside(node: ir.Node) -> ir.Node:
    while isinstance(node, ir.When | ir.WhenMore | ir.Optional):
        node = node.node
    return node


def _wrong_sizes(number: ir.Number, right: int) -> Iterator[tuple[str, int]]:
    """(what is wrong, number) for each way in which a length or count can be wrong in its integer."""
    for name, wrong in (
        ("too small", right - 1),
        ("too large", right + 1),
        ("negative", -1),
        ("negative", number.low),
        ("huge", number.high),
    ):
        sensible = (name == "negative") == (wrong < 0) and wrong != right
        if sensible and number.low <= wrong <= number.high:
            yield name, wrong


def _without_name(table: SymbolTable, low: int, high: int) -> int | None:
    """A number that has no symbol, if the integer has room for one."""
    near = itertools.chain(range(min(len(table) + 1, high + 1)), (high, low))
    return next((number for number in near if low <= number <= high and number not in table), None)
