"""The layout IR: every schema as a tree of few, explicit, typed nodes that all engines are generated from.

Nothing is implied: sizes are numbers, covered fields are a pair of field indexes, conditions are expression trees. A
node knows its least size in bytes (``minimum``), which bounds counts. ``dump`` prints the tree. See docs/ir.md.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache, wraps
from typing import Any, ClassVar, TypeVar, dataclass_transform

from wirekit.codings import Coding
from wirekit.compiler.expressions import Expression, Literal, fields_of
from wirekit.values import Record, SymbolTable, record_type
from wirekit.varints import SHORT, VarintForm
from wirekit.wire.costs import BYTES, LIST, NUMBER, SLOT, SYMBOL
from wirekit.wire.message_fields import Derived

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
@dataclass(frozen=True)
class Node:
    """A part of a layout; each kind is a frozen dataclass.

    Attributes:
        WORDS: its name in messages, for readers who do not know the IR.
        COST: bytes of memory of a value, see ``wirekit.compiler.costs``; 0 if that depends on the nodes inside.
    """

    WORDS: ClassVar[str]
    COST: ClassVar[int] = 0

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


class Interpreted(Node):
    """The meaning of the number inside."""

    number: Number


class Around(Node):
    """The value is that of the node inside, if it is present."""

    node: Node


class Conditional(Around):
    """The node inside is present or absent."""


class Qualified(Around):
    """The node inside has the bytes; this node restricts the value."""


class Alternatives(Node):
    """One of several nodes."""

    @property
    def nodes(self) -> list[Node]:
        """All nodes."""
        return [node for _, node in parts(self)]


class Number(Node):
    """An integer or float.

    Attributes:
        code: struct's letter; ``i`` or ``I`` for sizes without a letter (3, 5, 6 or 7 bytes).
        size: the size in bytes; for a varint, that of its value.
        signed: whether an integer may be negative; true for floats.
        real: whether this is a float.
        little: whether the least significant byte is the first.
        unit: the unit of a time since the epoch.
        form: the encoding of a varint; None for a number of fixed size.
    """

    WORDS = "a number"
    COST = NUMBER
    code: str
    size: int
    signed: bool
    real: bool
    little: bool
    unit: str | None = None
    form: VarintForm | None = None

    @property
    def groups(self) -> int:
        """The largest size in bytes of a varint; 0 for a number of fixed size."""
        return 0 if self.form is None else self.form.groups

    @property
    def bits(self) -> int:
        """The size of an integer in bits, the sign included."""
        return 8 * self.size if self.form is None else self.form.bits

    @property
    def low(self) -> int:
        """The least value of an integer."""
        return -(1 << self.bits - 1) if self.signed else 0

    @property
    def high(self) -> int:
        """The greatest value of an integer."""
        return (1 << self.bits - int(self.signed)) - 1

    @property
    def least(self) -> int:
        """The smallest size in bytes."""
        return 1 if self.groups else self.size

    def written(self, value: int) -> bytes:
        """The bytes of an integer."""
        if self.form is not None:
            return self.form.write(value)
        return value.to_bytes(self.size, "little" if self.little else "big", signed=self.signed)

    def read(self, data: Any, position: int, limit: int) -> tuple[int, int]:
        """(integer, position after it) of bytes before a limit; the position is ``SHORT`` or ``LONG`` on an error."""
        if self.form is not None:
            return self.form.read(data, position, limit)
        if position + self.size > limit:
            return 0, SHORT
        end = position + self.size
        return int.from_bytes(data[position:end], "little" if self.little else "big", signed=self.signed), end

    @property
    def is_packed(self) -> bool:
        """Whether struct has a letter for it."""
        return not self.groups and self.size in (1, 2, 4, 8)


class Boolean(Interpreted):
    """A number as a flag: 0 is false."""

    WORDS = "a flag"
    COST = SLOT


class Named(Interpreted):
    """A number whose values have names; if ``closed``, other values are wrong."""

    WORDS = "a symbol"
    COST = SYMBOL
    table: SymbolTable
    closed: bool


@dataclass(frozen=True, slots=True)
class BitField:
    """``width`` bits from bit ``shift`` on; bit 0 is the least significant."""

    name: str
    width: int
    shift: int
    table: SymbolTable | None

    @property
    def most(self) -> int:
        """The greatest value."""
        return (1 << self.width) - 1

    def value(self, number: int) -> Any:
        """The value of the field in a number: a symbol, a flag if it is one bit, or a number."""
        bits = number >> self.shift & self.most
        if self.table is not None:
            return self.table(bits)
        return bits == 1 if self.width == 1 else bits


class BitFields(Interpreted):
    """A number split into bit fields, in the order of their declaration."""

    WORDS = "bit fields"
    fields: tuple[BitField, ...]

    @property
    def record(self) -> type[Record]:
        """The class of its values."""
        return record_type("Bits", tuple(bit.name for bit in self.fields))

    def parted(self, value: int | Mapping[str, Any]) -> dict[str, Any]:
        """The numbers of all fields, from the whole number, or from the numbers of some fields; others are 0."""
        if isinstance(value, Mapping):
            return {bit.name: value.get(bit.name, 0) for bit in self.fields}
        return {bit.name: value >> bit.shift & bit.most for bit in self.fields}

    def record_of(self, value: int | Mapping[str, Any]) -> Record:
        """The record with the numbers of the fields."""
        return self.record(**self.parted(value))


class Blob(Node):
    """Bytes, text, or values that are encoded as bytes.

    Attributes:
        length: a number in front, an expression, or None for all bytes up to the limit.
        null: the length that means null, or None.
        text: whether it is UTF-8.
        explained: False if the meaning of the bytes is unknown.
        filler: whether the bytes are padding.
        part: whether the bytes are a piece of a larger value of unknown size.
        sealed: whether the bytes are cipher text, which only the reference engine decrypts, with a key of the caller.
        coding: what the bytes encode: text in another encoding, or values of a user's own functions; else None.
    """

    WORDS = "a byte string"
    COST = BYTES
    length: Number | Expression | None
    null: int | None
    text: bool
    explained: bool
    filler: bool
    part: bool = False
    sealed: bool = False
    coding: Coding | None = None

    @property
    def is_text(self) -> bool:
        """Whether its values are text, in any encoding."""
        return self.text or (self.coding is not None and self.coding.text)


class Delimited(Node):
    """Text, or a decimal integer, with ``end`` after it; if ``lines``, it must not extend beyond its line."""

    WORDS = "text up to a delimiter"
    COST = BYTES
    end: bytes
    decimal: bool
    lines: bool = True


@dataclass(frozen=True, slots=True)
class Measure:
    """Field ``at`` contains the size of fields ``first`` to ``last`` plus ``add``; see ``wirekit.wire.Length``."""

    at: int
    first: int
    last: int
    add: int
    least: int
    zero_is_rest: bool
    clip: bool
    exceeds: bool
    frame: bool
    bounds: bool

    @property
    def is_limit(self) -> bool:
        """Whether the length precedes the covered fields and bounds them; other lengths are only verified."""
        return self.bounds and self.at < self.first


@dataclass(frozen=True, slots=True)
class Sum:
    """Field ``at`` contains a checksum of fields ``first`` to ``last``; with ``content``, without a length in front."""

    at: int
    first: int
    last: int
    algorithm: str
    content: bool


@dataclass(frozen=True, slots=True)
class Member:
    """A named field of a structure."""

    name: str
    node: Node


class Structure(Node):
    """Consecutive fields, with the lengths and checksums among them.

    Attributes:
        name: the name of its record class.
        members: the fields, in order.
        measures, sums, derived: the lengths, the checksums, and the values in protobuf messages that building computes.
        refusals: conditions over the fields for values that peers refuse; such a value fails a check.
    """

    WORDS = "a structure"
    name: str
    members: tuple[Member, ...]
    measures: tuple[Measure, ...]
    sums: tuple[Sum, ...]
    derived: tuple[Derived, ...] = ()
    refusals: tuple[Expression, ...] = ()

    @property
    def record(self) -> type[Record]:
        """The class of its values."""
        return record_type(self.name, tuple(member.name for member in self.members))

    @property
    def computed(self) -> set[int]:
        """The members that are lengths or checksums."""
        return {measure.at for measure in self.measures} | {total.at for total in self.sums}

    def least_of(self, measure: Measure) -> int:
        """The smallest value of a length, by the sizes of the fields that it covers."""
        return sum(minimum(member.node) for member in self.members[measure.first : measure.last + 1]) + measure.add

    def extents(self, measures: Iterable[Measure]) -> tuple[set[int], set[int]]:
        """The members on whose beginning, and those on whose end, lengths, checksums and sizes in messages depend."""
        rules: list[Measure | Sum] = [*measures, *self.sums]
        sizes = {derived.of for derived in self.derived if derived.quantity == "size"}
        return {rule.first for rule in rules} | sizes, {rule.last for rule in rules} | sizes


def opening(node: Structure, index: int) -> list[Measure]:
    """The lengths whose bounded members begin at a member, outermost first: the one that ends last."""
    measures = [each for each in node.measures if each.is_limit and each.first == index]
    return sorted(measures, key=lambda each: (-each.last, each.at))


class Several(Node):
    """Consecutive elements.

    Attributes:
        element: the node of an element.
        count: a number in front, an expression, or None for elements up to the limit.
        null: the count that means null, or None.
        stop: up to the limit: whether an element that the limit cuts belongs to the next field.
        until: up to the limit: bytes that end the list, or none.
        except_first: whether the first element may begin with these bytes.
        announced: up to the limit: the expected number of elements, which is checked, or None.
        least: the smallest size of an element in any context, which bounds the count before elements are read.
    """

    WORDS = "a list"
    COST = LIST
    element: Node
    count: Number | Expression | None = None
    null: int | None = None
    stop: bool = False
    until: bytes = b""
    except_first: bool = False
    announced: Expression | None = None
    least: int = 0


class When(Conditional):
    """Present if an expression is true."""

    WORDS = "a field under a condition"
    condition: Expression


class WhenNext(Conditional):
    """Present if the next bytes are ``magic``; if that is empty, if there are any bytes before the limit."""

    WORDS = "a field whose presence the next bytes decide"
    magic: bytes


class Either(Alternatives):
    """One of two nodes, by an expression."""

    WORDS = "one of two layouts"
    condition: Expression
    then: Node
    otherwise: Node


class Choice(Alternatives):
    """One of several nodes, by the values of expressions; if ``otherwise`` is None, other values are wrong."""

    WORDS = "one of several layouts"
    on: tuple[Expression, ...]
    cases: tuple[tuple[tuple[Any, ...], Node], ...]
    otherwise: Node | None

    def case(self, values: tuple[Any, ...]) -> Node | None:
        """The node of the case for these values; None if there is none."""
        return next((node for case, node in self.cases if case == values), None)


class Ahead(Around):
    """A node read ``at`` bytes ahead, without moving the position."""

    WORDS = "a number further on"
    at: int


class Bounded(Around):
    """A length in front, and a node that cannot read past it."""

    WORDS = "a value of a length of its own"
    length: Number
    null: int | None


class Fallback(Around):
    """A node, or all bytes up to the limit if they do not fit the node."""

    WORDS = "a value or bytes"


class Reference(Node):
    """Another schema, by key; also for recursion. The depth is limited."""

    WORDS = "another schema"
    key: str


class Constant(Qualified):
    """A node with a fixed value; another value is wrong if ``fatal``, otherwise it fails a check."""

    WORDS = "a constant"
    value: Expression
    fatal: bool


class Optional(Qualified):
    """A node that a value may leave out for building, and its default."""

    WORDS = "a field with a default"
    default: Expression


class Packed(Node):
    """Bytes with a compressed node, if the codec's value is one of ``codecs``.

    Attributes:
        blob: the bytes.
        on: expressions that select the codec.
        codecs: (their values, name of the codec) pairs.
        node: the compressed node.
        size: the size after decompression, or None if the format does not have it.
        streamed: whether the bytes decompressed before damage are the content.
    """

    WORDS = "compressed data"
    blob: Blob
    on: tuple[Expression, ...]
    codecs: tuple[tuple[tuple[Any, ...], str], ...]
    node: Node
    size: Expression | None
    streamed: bool = False


class Protobuf(Node):
    """A protobuf message up to the limit, by the full name of its type; (path, unit) of the times in it."""

    WORDS = "a protobuf message"
    message: str
    times: tuple[tuple[str, str], ...] = ()


def parts(node: Node) -> Iterator[tuple[str, Node]]:
    """(role, node) of the nodes directly inside a node."""
    if isinstance(node, Structure):
        yield from ((member.name, member.node) for member in node.members)
    elif isinstance(node, Choice):
        yield from ((",".join(map(str, values)), case) for values, case in node.cases)
        if node.otherwise is not None:
            yield "otherwise", node.otherwise
    else:
        for role in ("number", "element", "blob", "then", "otherwise", "node"):
            inner = getattr(node, role, None)
            if inner is not None:
                yield role, inner
    for role in ("length", "count"):
        inner = getattr(node, role, None)
        if isinstance(inner, Number):
            yield role, inner


def inner_path(path: str, name: str) -> str:
    """The path of a part of a value that has a path itself."""
    return f"{path}.{name}" if path else name


def walk(node: Node) -> Iterator[tuple[str, Node]]:
    """(path, node) of a node and all nodes inside, outer first; a shared node only at its first path."""
    visited: set[int] = set()
    waiting = [("", node)]
    while waiting:
        path, at = waiting.pop()
        if id(at) in visited:
            continue
        visited.add(id(at))
        yield path, at
        waiting += reversed([(inner_path(path, role), inner) for role, inner in parts(at)])


def mapped(
    node: Node, inside: Callable[[str, Node], Node], tree: Callable[[Expression], Expression] = lambda tree: tree
) -> Node:
    """A node with the nodes directly inside, and its own expressions, replaced by the results of functions.

    If nothing changes, the result is the same node. The refusals of a structure are not replaced.
    """

    def other(role: str, value: Any) -> Any:
        if isinstance(value, Expression):
            return tree(value)
        match value:
            case Node():
                return inside(role, value)
            case Member(name=name, node=inner):
                new = inside(name, inner)
                return value if new is inner else Member(name, new)
            case tuple():
                items = tuple(other(role, each) for each in value)
                return value if all(map(operator.is_, items, value)) else items
        return value

    values = {each.name: getattr(node, each.name) for each in fields(node) if each.name != "refusals"}
    changed = {role: new for role, value in values.items() if (new := other(role, value)) is not value}
    return replace(node, **changed) if changed else node


def expressions(node: Node) -> Iterator[tuple[str, Expression]]:
    """(role, expression) of a node's own expressions; without refusals, on which the bytes do not depend."""
    for role in _roles(type(node)):  # type: ignore[arg-type]  # classes can be hashed
        value = getattr(node, role)
        trees = value if isinstance(value, tuple) else (value,)
        yield from ((role, tree) for tree in trees if tree is not None and not isinstance(tree, Number))


@cache
def _roles(kind: type[Node]) -> tuple[str, ...]:
    """The attributes with expressions, by their types."""
    return tuple(each.name for each in fields(kind) if "Expression" in str(each.type) and each.name != "refusals")


def nested(node: Node) -> Iterator[tuple[int, Node]]:
    """(number of structures around it, node) of a node and all nodes inside."""
    visited: set[tuple[int, int]] = set()
    waiting = [(node, 0)]
    while waiting:
        at, around = waiting.pop()
        if (id(at), around) in visited:
            continue
        visited.add((id(at), around))
        yield around, at
        deeper = around + isinstance(at, Structure)
        waiting += [(inner, deeper) for _, inner in parts(at)]


def read_outside(node: Node, trees: Callable[[Node], Iterable[Expression]]) -> tuple[tuple[int, str], ...]:
    """The fields of enclosing structures that the expressions in a node read: (structures further out, name).

    Args:
        trees: returns the expressions of a node; nodes store the results for each such function.
    """
    reads_by_trees: dict[Any, tuple[tuple[int, str], ...]] = vars(node).setdefault("_reads", {})
    if trees not in reads_by_trees:
        read = [(each.up, each.names[0]) for tree in trees(node) for each in fields_of(tree)]
        around = isinstance(node, Structure)
        for _, inner in parts(node):
            read += [(up - around, name) for up, name in read_outside(inner, trees) if up >= around]
        reads_by_trees[trees] = tuple(dict.fromkeys(read))
    return reads_by_trees[trees]


def own_expressions(node: Node) -> list[Expression]:
    """A node's own expressions, without refusals."""
    return [tree for _, tree in expressions(node)]


def reads_outside(node: Node) -> bool:
    """Whether an expression in a node reads a field of an enclosing structure."""
    return bool(read_outside(node, own_expressions))


def remembered(function: Callable[[Node], T]) -> Callable[[Node], T]:
    """Stores the results of a function in the nodes, because layouts share nodes at many paths."""
    name = f"_{function.__module__}.{function.__name__}"

    @wraps(function)
    def recall(node: Node) -> T:
        results: dict[str, T] = vars(node)
        if name not in results:
            results[name] = function(node)
        return results[name]

    return recall


@remembered
def minimum(node: Node) -> int:
    """The smallest size in bytes of a value of a node."""
    match node:
        case Number(least=least):
            return least
        case Interpreted(number=inner):
            return inner.least
        case Blob(length=Number(least=least)):
            return least
        case Blob(length=Literal(value=int(size))):
            return size
        case Delimited(end=end, decimal=decimal):
            return len(end) + decimal
        case Several(count=Number(least=least)) | Bounded(length=Number(least=least)):
            return least
        case Structure(members=members):
            return sum(minimum(member.node) for member in members)
        case Alternatives(nodes=nodes):
            return min(map(minimum, nodes), default=0)
        case Qualified(node=inner) | Packed(blob=inner):
            return minimum(inner)
    return 0


def fixed_size(node: Node) -> int | None:
    """The size in bytes of all values of a node; None if sizes differ."""
    match node:
        case Number(size=size, groups=groups):
            return None if groups else size
        case Interpreted(number=inner):
            return fixed_size(inner)
        case Qualified(node=inner):
            return fixed_size(inner)
        case Blob(length=Literal(value=int(size))):
            return size
        case Several(element=element, count=Literal(value=int(count))):
            each = fixed_size(element)
            return None if each is None else count * each
        case Structure(members=members, measures=measures):
            if any(each.is_limit for each in measures):
                return None  # bytes may be left over in its range
            sizes = [fixed_size(member.node) for member in members]
            return None if None in sizes else sum(size for size in sizes if size is not None)
        case Ahead():
            return 0
    return None


def number_of(node: Node) -> Number | None:
    """The number of a node that is one in any meaning; None for other nodes."""
    node = core(node)
    node = node.number if isinstance(node, Interpreted) else node
    return node if isinstance(node, Number) else None


def fixed(node: Node) -> Number | None:
    """The number of fixed size of a node that is one in any meaning; None for other nodes."""
    number = number_of(node)
    return None if number is None or number.groups else number


def length_in_front(node: Node) -> int:
    """The size of the length before an optional byte string, compressed or not; 0 for none."""
    core = bare(node)
    core = core.blob if isinstance(core, Packed) else core
    return core.length.size if isinstance(core, Blob) and isinstance(core.length, Number) else 0


def bare(node: Node) -> Node:
    """The node under conditions and defaults."""
    while isinstance(node, (When, WhenNext, Optional)):
        node = node.node
    return node


def core(node: Node) -> Node:
    """The node with the bytes, without the nodes that only restrict its value."""
    while isinstance(node, Qualified):
        node = node.node
    return node


def can_be_wrong(node: Node) -> bool:
    """Whether a number can be wrong by itself."""
    match node:
        case Named(closed=closed):
            return closed
        case Constant(fatal=fatal, node=inner):
            return fatal or can_be_wrong(inner)
        case Qualified(node=inner):
            return can_be_wrong(inner)
    return False


def varying(node: Node) -> Number | None:
    """The varint of a node that is one in any meaning; None for other nodes."""
    number = number_of(node)
    return number if number is not None and number.groups else None


def dump(node: Node) -> str:
    """The layout as text, one line per node: role, type, other attributes. A shared node is printed once."""
    return "\n".join(_lines(node, "", 0, set()))


def _lines(node: Node, role: str, depth: int, visited: set[int]) -> Iterator[str]:
    inside = {id(inner) for _, inner in parts(node)}
    shown = []
    for name in (each.name for each in fields(node)):
        value = getattr(node, name)
        hidden = (
            id(value) in inside
            or name in ("members", "cases", "fields", "explained")
            or value in (None, False, b"", ())
        )
        if not hidden:
            shown.append(f"{name}={_text(value)}")
    if isinstance(node, BitFields):
        shown += [f"{field.name}:{field.width}@{field.shift}" for field in node.fields]
    if isinstance(node, Blob) and not node.explained:
        shown.append("unexplained")
    is_repeated = bool(inside) and id(node) in visited
    visited.add(id(node))
    shown += ["(as above)"] if is_repeated else []
    yield f"{'  ' * depth}{role + ': ' if role else ''}{type(node).__name__} {' '.join(shown)}".rstrip()
    for inner_role, inner in () if is_repeated else parts(node):
        yield from _lines(inner, inner_role, depth + 1, visited)


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_text(item) for item in value)}]"
    if isinstance(value, SymbolTable):
        return value.name
    if isinstance(value, (Measure, Sum, Derived)):
        shown = {name: getattr(value, name) for name in type(value).__slots__}
        verified = shown.pop("bounds", True) is False
        parts = [f"{name}={each}" for name, each in shown.items() if each not in (False, 0) or name == "at"]
        parts += ["verified only"] if verified else []
        return f"{type(value).__name__}({' '.join(parts)})"
    return str(value)
