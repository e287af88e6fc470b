"""Refuses, at registration and with the path, layouts that are invalid for all input."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from itertools import chain, combinations, permutations
from typing import Any, TypeGuard

from wirekit.checksums import checksum
from wirekit.compiler import ir
from wirekit.compiler.expressions import COMPARISONS, Expression, Field, LengthOf, Literal, Operation, operands_of
from wirekit.compiler.ir import bare, fixed
from wirekit.compression import names as codecs
from wirekit.errors import Misuse
from wirekit.values import SymbolTable
from wirekit.wire.compressed import NEED_SIZE

KINDS = {int: "a number", bool: "a number", float: "a number", str: "text", bytes: "bytes"}
"""Kinds of values by the type of a constant; values of two kinds are never equal."""

Resolve = Callable[[str], ir.Node | None]
"""Returns the layout of a key; None if it is not registered yet."""


def check_validity(layout: ir.Node, resolve: Resolve) -> None:
    """Refuses a layout that can read no bytes, or write no value.

    Raises:
        Misuse: the text has the path and a remedy.
    """
    for path, node in ir.walk(layout):
        where = path or "the layout"
        for problem in _problems(node):
            raise Misuse(f"{where}: {problem}")
    _ends(layout, resolve, [])


def _problems(node: ir.Node) -> Iterator[str]:
    match node:
        case ir.Structure():
            yield from _lengths(node)
            yield from _sums(node)
            yield from _unreachable(node)
            yield from _misread(node)
            yield from _comparisons(node)
        case ir.Blob(length=ir.Number() as number, null=null) | ir.Bounded(length=number, null=null):
            yield from _null(number, null, "length")
        case ir.Several(count=ir.Number() as number, null=null):
            yield from _null(number, null, "count")
        case ir.Named(closed=True, table=table, number=ir.Number(low=low, high=high)):
            if not any(low <= symbol <= high for symbol in table):
                yield f"no symbol of {table.name} is in {low}..{high}, and other values are refused"
        case ir.Delimited(end=b""):
            yield "a delimiter must have at least one byte"
        case ir.Ahead(node=inner) if fixed(inner) is None:
            yield "Lookahead needs a node of fixed size: a number, a flag, symbols or bits"
        case ir.Fallback(node=inner):
            string = _string(inner)
            if string:
                yield f"OrBytes needs a layout whose value is never a string, and a value of this one may be {string}"
        case ir.Constant(value=Literal(value=value)):
            yield from _value(node.node, value, "is always")
        case ir.Optional(default=Literal(value=value)):
            yield from _value(node.node, value, "is by default")
        case ir.Packed():
            yield from _codecs(node)


def _lengths(node: ir.Structure) -> Iterator[str]:
    names = [member.name for member in node.members]
    windows = []
    for measure in node.measures:
        name, first, last = names[measure.at], names[measure.first : measure.first + 1], names[measure.last]
        number = bare(node.members[measure.at].node)
        if isinstance(number, ir.Number) and number.real:
            yield f"the length {name} must be an integer"
        elif measure.first > measure.last:
            reason = "no field is after it" if not first else f"{first[0]} is after {last}"
            yield f"the length {name} covers nothing: {reason}"
        elif measure.first <= measure.at <= measure.last:
            yield f"the length {name} covers itself; name the fields after it, and add={ir.minimum(number)}"
        elif measure.last < measure.at and ir.varying(number):
            yield f"the length {name} is after the fields it covers; it must be an integer of fixed size"
        elif measure.is_limit:
            windows.append(measure)
        elif measure.zero_is_rest:
            yield f"the length {name} bounds nothing, so 0 cannot mean the rest; leave out zero_is_rest"
    for index, one in enumerate(windows):
        for other in windows[index + 1 :]:
            left, right = sorted((one, other), key=lambda measure: (measure.first, -measure.last))
            if left.first < right.first <= left.last < right.last:
                yield (
                    f"the lengths {names[left.at]} and {names[right.at]} cross: one ends inside the other; "
                    "with bounds=False one of them is only verified"
                )


def _sums(node: ir.Structure) -> Iterator[str]:
    names = [member.name for member in node.members]
    for total in node.sums:
        name, number = names[total.at], bare(node.members[total.at].node)
        if total.first > total.last:
            yield f"the checksum {name} covers nothing"
        if isinstance(number, ir.Blob):
            bits = checksum(total.algorithm).bits
            if not isinstance(number.length, Literal) or 8 * ir.minimum(number) != bits or number.text or number.filler:
                yield f"the checksum {name} must be an integer, or for {total.algorithm} Bytes({-(-bits // 8)})"
        elif not isinstance(number, ir.Number) or number.real:
            yield f"the checksum {name} must be an integer or bytes"
        elif number.groups:
            yield f"the checksum {name} must be an integer of fixed size"
        elif 8 * number.size < (bits := checksum(total.algorithm).bits):
            yield f"the checksum {name} has {8 * number.size} bits, but {total.algorithm} needs {bits}"
        if total.content and total.first == total.last:
            core = bare(node.members[total.first].node)
            core = core.blob if isinstance(core, ir.Packed) else core
            if not isinstance(core, ir.Blob):
                yield f"the checksum {name} covers the content of {names[total.first]}, which is not a byte string"
            elif isinstance(core.length, ir.Number) and core.length.groups:
                yield f"the checksum {name} covers the content of {names[total.first]}, which has a varint as length"
        elif total.content:
            yield f"the checksum {name} can cover the content of only one field"
    for one, other in combinations(node.sums, 2):
        if one.first <= other.at <= one.last and other.first <= one.at <= other.last:
            yield f"the checksums {names[one.at]} and {names[other.at]} cover each other"


def _unreachable(node: ir.Structure) -> Iterator[str]:
    """The fields after a field that takes all bytes up to their common limit."""
    for at, member in enumerate(node.members):
        if not _takes_all(member.node):
            continue
        last = min(_windows(node, at), default=len(node.members) - 1)
        for later in node.members[at + 1 : last + 1]:
            if ir.minimum(later.node):
                yield (
                    f"{member.name} takes all bytes up to the limit and leaves none for {later.name}; declare a length "
                    f"that covers {member.name} but not {later.name}"
                )
                break


def _misread(node: ir.Structure) -> Iterator[str]:
    """The fields that expressions read in a way that no value of the field allows."""
    members = {member.name: member.node for member in node.members}
    rules = (
        (_lengths_read, "length", "{} reads the length of {}, which is neither bytes nor text nor a list"),
        (_sizes_read, "integer", "{} takes its size or count from {}, which is not an integer; pass one, or use len_"),
    )
    for fields, needed, text in rules:
        for member in node.members:
            for up, name in ir.read_outside(member.node, fields):
                if not up and name in members and needed not in _qualities(members[name]):
                    yield text.format(member.name, name)


def _lengths_read(node: ir.Node) -> list[Expression]:
    """The fields whose lengths an expression reads."""
    trees = (each for _, tree in ir.expressions(node) for each in operands_of(tree))
    return [tree for tree in trees if isinstance(tree, LengthOf) and _is_own(tree.of)]


def _sizes_read(node: ir.Node) -> list[Expression]:
    """The fields whose values are operands of a size or count."""
    match node:
        case ir.Blob(length=tree) | ir.Several(count=tree, announced=None) | ir.Several(announced=tree):
            return [] if tree is None or isinstance(tree, ir.Number) else list(_terms(tree))
    return []


def _terms(tree: Expression) -> Iterator[Expression]:
    if _is_own(tree):
        yield tree
    elif isinstance(tree, Operation) and tree.symbol not in COMPARISONS:
        for operand in tree.operands:
            yield from _terms(operand)


def _qualities(node: ir.Node) -> set[str]:
    """The properties that a value may have: an ``integer``, a ``length``."""
    match node:
        case ir.Number(real=True) | ir.BitFields() | ir.Structure() | ir.Packed() | ir.Protobuf():
            return set()
        case ir.Number() | ir.Interpreted() | ir.Delimited(decimal=True):
            return {"integer"}
        case ir.Blob() | ir.Several() | ir.Delimited():
            return {"length"}
        case ir.Coded(coding=coding) if coding.text:
            return {"length"}
        case ir.Around(node=inner):
            return _qualities(inner) | ({"length"} if isinstance(node, ir.Fallback) else set())
        case ir.Alternatives(nodes=nodes):
            return set[str]().union(*map(_qualities, nodes))
    return {"integer", "length"}


def _comparisons(node: ir.Structure) -> Iterator[str]:
    """The fields that are compared with a constant that they never equal: of another type, or outside their range."""
    members = {member.name: member.node for member in node.members}
    compared = [(each.name, *comparison) for each in node.members for comparison in _compared(each.node)]
    compared += [("refused=", *comparison) for tree in node.refusals for comparison in _operands_compared(tree, 0)]
    for path, (name, *inner), symbol, value in compared:
        if name not in members:
            continue
        actual, kind = _kind(members[name]), KINDS.get(type(value))
        if actual and not inner and kind not in (None, actual):
            by_symbol = kind == "text" and isinstance(_present(members[name]), ir.Named)
            remedy = "; compare it with the number of a symbol" if by_symbol else ""
            yield f"{path} compares {name}, whose value is {actual}, with {kind}{remedy}"
        elif isinstance(value, int) and symbol in ("==", "!="):
            text = ".".join([name, *inner])
            match _possible(members[name], inner):
                case range() as values if value not in values:
                    remedy = "use a number in this range, or another integer for the field"
                    yield f"{path} compares {text}, which is in {values[0]}..{values[-1]}, with {value}; {remedy}"
                case SymbolTable() as table if value not in table:
                    yield f"{path} compares {text} with {value}, which {table.name} does not name"


def _possible(node: ir.Node, inner: list[str]) -> range | SymbolTable | None:
    """The numbers that a field, or one inside it, may be; None if they are unknown."""
    match _present(node):
        case ir.Structure(members=members) if inner:
            return next((_possible(each.node, inner[1:]) for each in members if each.name == inner[0]), None)
        case ir.BitFields(fields=fields) if inner:
            return next((range(bit.most + 1) for bit in fields if bit.name == inner[0]), None)
        case ir.Named(closed=True, table=table):
            return table
        case ir.Named(number=number):
            return _possible(number, inner)
        case ir.Boolean():
            return range(2)
        case ir.Number(real=False, low=low, high=high):
            return range(low, high + 1)
    return None


def _compared(node: ir.Node) -> Iterator[tuple[tuple[str, ...], str, Any]]:
    """(names, comparison, constant) of the fields beside a node that its expressions compare with constants."""
    for up, at in ir.nested(node):
        for _, tree in ir.expressions(at):
            yield from _operands_compared(tree, up)
        if isinstance(at, ir.Choice | ir.Packed):
            cases = at.cases if isinstance(at, ir.Choice) else at.codecs
            for tree, value in chain.from_iterable(zip(at.on, values, strict=True) for values, _ in cases):
                if isinstance(tree, Field) and tree.up == up:
                    yield tree.names, "==", value


def _operands_compared(tree: Expression, up: int) -> Iterator[tuple[tuple[str, ...], str, Any]]:
    """(names, comparison, constant) of the fields of a structure ``up`` levels out that an expression compares."""
    comparisons = (each for each in operands_of(tree) if isinstance(each, Operation) and each.symbol in COMPARISONS)
    for each in comparisons:
        for one, other in permutations(each.operands):
            if isinstance(one, Field) and one.up == up and isinstance(other, Literal):
                yield one.names, each.symbol, other.value


def _is_own(tree: Expression) -> TypeGuard[Field]:
    """Whether an expression is a field, and not one inside a field."""
    return isinstance(tree, Field) and not tree.names[1:]


def _kind(node: ir.Node) -> str | None:
    """The kind of a field's values; None if it may have several."""
    match _present(node):
        case ir.Number() | ir.Boolean() | ir.Named():
            return "a number"
        case ir.Blob(text=text):
            return "text" if text else "bytes"
        case ir.Delimited(decimal=decimal):
            return "a number" if decimal else "text"
    return None


def _present(node: ir.Node) -> ir.Node:
    """The node of a value that is present, without those that only restrict it."""
    while isinstance(node, ir.Qualified | ir.Conditional):
        node = node.node
    return node


def _windows(node: ir.Structure, at: int) -> list[int]:
    """The last members of the lengths that bound a member."""
    return [each.last for each in node.measures if each.is_limit and each.first <= at <= each.last]


def _takes_all(node: ir.Node) -> bool:
    """Whether a value may take all bytes up to the limit."""
    match node:
        case ir.Blob(length=length):
            return length is None
        case ir.Several(count=None, stop=False, until=b""):
            return True
        case ir.Packed(blob=inner):
            return _takes_all(inner)
        case ir.Conditional() | ir.Qualified():
            return _takes_all(node.node)
        case ir.Alternatives(nodes=nodes):
            return any(map(_takes_all, nodes))
        case ir.Structure():
            members = enumerate(node.members)
            return any(_takes_all(each.node) and not _windows(node, at) for at, each in members)
    return False


def _null(number: ir.Number, null: int | None, kind: str) -> Iterator[str]:
    if number.real:
        yield f"a {kind} must be an integer"
    if null is not None and not number.low <= null <= 0:
        yield f"a {kind} that means null must be 0, or negative in a signed integer, not {null}"
    if null == 0 and kind == "count":
        yield "a count of 0 is an empty list, so it cannot mean null"


def _string(node: ir.Node) -> str:
    """The kind of string of a value, in words; "" if it cannot be a string."""
    match node:
        case ir.Blob(text=True):
            return "text"
        case ir.Blob(length=length):
            return "" if length is None else "bytes"  # bytes up to the limit are always written unchanged
        case ir.Delimited(decimal=False) | ir.Coded():
            return "text"
        case ir.Packed(blob=inner) | ir.Around(node=inner):
            return _string(inner)
        case ir.Alternatives(nodes=nodes):
            return next(filter(None, map(_string, nodes)), "")
    return ""


def _value(node: ir.Node, value: Any, how: str) -> Iterator[str]:
    """Whether a value fits a field, if value and field decide it."""
    core, number = _present(node), value
    if isinstance(core, ir.Named) and isinstance(value, str):
        numbers = [int(symbol) for symbol in core.table if symbol.symbol == value]
        number = numbers[0] if numbers else None
        if how == "is always" and numbers:
            yield f"the value is always {value!r}; pass the number {number}"
    if isinstance(core, ir.Named) and core.closed and number not in core.table:
        yield f"the value {how} {value!r}, which {core.table.name} does not name"
    if isinstance(core, ir.Named):
        core = core.number
    match core:
        case ir.Number(real=False) as integer:
            fits = type(number) is int and integer.low <= number <= integer.high
        case ir.Number(size=4) if how == "is always":  # a default is rounded
            fits = isinstance(number, (int, float)) and _is_float32(number)
        case ir.Number() | ir.Boolean():
            fits = isinstance(number, (int, float))
        case ir.Blob(text=text, length=length):
            size = length.value if isinstance(length, Literal) else None
            fits = isinstance(number, str if text else (bytes, bytearray))
            if fits and size is not None:
                fits = len(number.encode(errors="surrogateescape") if text else number) == size
            fits = fits or (number is None and core.null is not None)
        case ir.Several():
            fits = isinstance(number, (list, tuple)) or (number is None and core.null is not None)
        case _:
            fits = True
    if not fits:
        yield f"the value {how} {value!r}, which does not fit the field"


def _is_float32(number: float) -> bool:
    try:
        return bool(struct.unpack("f", struct.pack("f", number))[0] == number)
    except (OverflowError, struct.error):
        return False


def _codecs(node: ir.Packed) -> Iterator[str]:
    for _, codec in node.codecs:
        if codec not in codecs():
            yield f"no codec {codec!r}; choose from {', '.join(codecs())}"
        if codec in NEED_SIZE and node.size is None:
            yield f"{codec} does not store the size after decompression; name the field that has it with size="


def _ends(node: ir.Node, resolve: Resolve, around: list[str]) -> None:
    """Refuses a layout whose every value contains another value of it."""
    for key in _certain(node):
        if key in around:
            raise Misuse(f"every value contains another value without end: {' → '.join([*around, key])}")
        target = resolve(key)
        if target is not None and len(around) < 100:
            _ends(target, resolve, [*around, key])


def _certain(node: ir.Node) -> set[str]:
    """The keys of layouts that every value of a node contains."""
    match node:
        case ir.Reference(key=key):
            return {key}
        case ir.Structure(members=members):
            return set[str]().union(*(_certain(member.node) for member in members))
        case ir.Alternatives(nodes=nodes):
            return set.intersection(*map(_certain, nodes))
        case ir.Bounded(null=None) | ir.Qualified():
            return _certain(node.node)
        case ir.Several(count=Literal(value=int(count))) if count > 0:
            return _certain(node.element)
    return set()
