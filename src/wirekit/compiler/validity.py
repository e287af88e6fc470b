"""Refuses, at registration and with the path, layouts that are invalid for all input."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations, permutations
from typing import Any, TypeGuard

from wirekit.checksums import checksum
from wirekit.codings import CodingError, TextCoding
from wirekit.compiler import ir
from wirekit.compiler.expressions import (
    COMPARISONS,
    Expression,
    Field,
    LengthOf,
    Literal,
    Operation,
    bounds,
    fields_of,
    operands_of,
)
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
        if isinstance(node, ir.Reference):
            resolve(node.key)
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
            yield from _expressions(node)
        case ir.Blob(length=ir.Number() as number, null=null) | ir.Bounded(length=number, null=null):
            yield from _null(number, null, "length")
        case ir.Several(count=ir.Number() as number, null=null):
            yield from _null(number, null, "count")
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
        case ir.Named(closed=closed, table=table, number=number):
            yield from _symbols(table, number.low, number.high, closed=closed)
        case ir.BitFields(fields=fields):
            for bit in fields:
                for problem in _symbols(bit.table, 0, bit.most, closed=False) if bit.table is not None else ():
                    yield f"{bit.name}: {problem}"


def _symbols(table: SymbolTable, low: int, high: int, *, closed: bool) -> Iterator[str]:
    """The symbols that a number in low..high never is; a table that other fields share may have some, unless closed."""
    outside = [symbol for symbol in table if not low <= symbol <= high]
    if len(outside) == len(table) and (closed or outside):
        refused = ", and other values are refused" if closed else ""
        yield f"no symbol of {table.name} is in {low}..{high}{refused}; use other numbers, or another integer"
    elif closed and outside:
        which = f"{outside[0].symbol} ({int(outside[0])})"
        yield f"{table.name} names {which}, which is not in {low}..{high}; leave it out, or use another integer"


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
    for pair in combinations(windows, 2):
        left, right = sorted(pair, key=lambda measure: (measure.first, -measure.last))
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
            is_plain = not (number.text or number.filler or number.coding)
            if not isinstance(number.length, Literal) or 8 * ir.minimum(number) != bits or not is_plain:
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
            if not isinstance(core, ir.Blob) or core.coding is not None:
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
        case ir.Blob(coding=None) | ir.Blob(is_text=True) | ir.Several() | ir.Delimited():
            return {"length"}
        case ir.Around(node=inner):
            return _qualities(inner) | ({"length"} if isinstance(node, ir.Fallback) else set())
        case ir.Alternatives(nodes=nodes):
            return set[str]().union(*map(_qualities, nodes))
    return {"integer", "length"}


def _expressions(node: ir.Structure) -> Iterator[str]:
    """The expressions that read, compare or compute with fields in a way that no value allows."""
    members: dict[str, ir.Node | ir.BitField] = {member.name: member.node for member in node.members}
    trees = [(m.name, depth, tree) for m in node.members for depth, inner in ir.nested(m.node) for tree in _own(inner)]
    trees += [("refused=", 0, tree) for refusal in node.refusals for tree in operands_of(refusal)]
    for where, depth, tree in trees:
        if {field.up for field in fields_of(tree)} != {depth}:
            continue
        match tree:
            case Field():
                yield from (f"{where} reads {problem}" for problem in _missing(tree, members))
            case Operation(symbol=symbol, operands=operands) if symbol in COMPARISONS:
                for one, other in permutations(operands):
                    if isinstance(other, Literal):
                        problems = _constant(one, other.value, symbol in ("==", "!="), members)
                        yield from (f"{where} compares {problem}" for problem in problems)
            case Operation(operands=(_, _) as operands):
                for field in (each for each in operands if isinstance(each, Field)):
                    if (kind := _kind(_declared(members, field))) not in (None, "a number"):
                        yield f"{where} computes with {'.'.join(field.names)}, whose value is {kind}"


def _own(node: ir.Node) -> Iterator[Expression]:
    """A node's own expressions, all expressions in them, and the comparisons with the values of its cases."""
    for _, tree in ir.expressions(node):
        yield from operands_of(tree)
    if isinstance(node, ir.Choice | ir.Packed):
        for values, _ in node.cases if isinstance(node, ir.Choice) else node.codecs:
            yield from (Operation("==", (on, Literal(value))) for on, value in zip(node.on, values, strict=True))


def _missing(field: Field, members: Mapping[str, ir.Node | ir.BitField]) -> Iterator[str]:
    """Why no value has a field, if the structure or the bit fields that it names lack it."""
    inside: Mapping[str, ir.Node | ir.BitField] | None = members
    for at, name in enumerate(field.names):
        if inside is None:
            break
        if at and name not in inside:
            has = f"it has {', '.join(inside)}" if inside else "it has no fields"
            yield f"{name!r}, which is not a field of {'.'.join(field.names[:at])}; {has}"
            break
        inside = _inside(inside.get(name))


def _inside(node: ir.Node | ir.BitField | None) -> dict[str, ir.Node | ir.BitField] | None:
    """The fields in a value; None if they are unknown."""
    while isinstance(node, ir.Around):
        node = node.node
    match node:
        case ir.Structure(members=members):
            return {member.name: member.node for member in members}
        case ir.BitFields(fields=bits):
            return {bit.name: bit for bit in bits}
        case ir.BitField() | ir.Number() | ir.Interpreted() | ir.Blob(coding=None) | ir.Delimited() | ir.Several():
            return {}
    return None


def _constant(tree: Expression, value: Any, equal: bool, members: Mapping[str, ir.Node | ir.BitField]) -> Iterator[str]:
    """Why a comparison of an expression with a constant, ``equal`` if it is for equality, always has one result."""
    field = _declared(members, tree) if isinstance(tree, Field) else None
    name = ".".join(tree.names) if isinstance(tree, Field) else str(tree).replace("^", "")
    kind, ends = KINDS.get(type(value)), _range(tree, members)
    actual = "a number" if isinstance(tree, LengthOf | Operation) else _kind(field)
    if kind is not None and actual not in (None, kind):
        remedy = "; compare it with the number of a symbol" if isinstance(field, ir.Named) and kind == "text" else ""
        yield f"{name}, whose value is {actual}, with {kind}{remedy}"
    elif equal and isinstance(value, int) and ends is not None and not ends[0] <= value <= ends[1]:
        remedy = "use a number in this range, or another integer for the field"
        yield f"{name}, which is in {ends[0]}..{ends[1]}, with {value}; {remedy}"
    elif equal and isinstance(value, str) and isinstance(field, ir.Node) and (reason := _unlike(field, value)):
        yield f"{name} with {value!r}, which {reason}"
    elif equal and isinstance(field, ir.Blob) and isinstance(value, str | bytes):
        size = len(value.encode(errors="surrogateescape") if isinstance(value, str) else value)
        if field.coding is None and isinstance(field.length, Literal) and size != field.length.value:
            yield f"{name}, which has {field.length.value} bytes, with {value!r}, which has {size}"
    elif equal and isinstance(field, ir.Named) and field.closed and value is not None and value not in field.table:
        yield f"{name} with {value}, which {field.table.name} does not name"


def _unlike(node: ir.Node, text: str) -> str:
    """Why a field is never a text; "" if it may be."""
    try:
        data = text.encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        return f"has a character that no text has, {text[error.start]!r}"
    match node:
        case ir.Blob(length=ir.Number(high=most), coding=None) if len(data) > most:
            return f"has {len(data)} bytes; its length is at most {most}"
        case ir.Delimited(end=end, lines=lines):
            inside = end if end in data + end[:-1] else b"\n" if lines and b"\n" in data else b""
            return f"contains {inside.decode()!r}, where the text ends" if inside else ""
        case ir.Blob(coding=TextCoding(name=name) as coding) if "\ufffd" not in text:  # bytes that do not decode
            try:
                encoded = coding.encode(text)
                fits = coding.size in (None, len(encoded)) and coding.decode(encoded) == text
            except CodingError:
                fits = False
            return "" if fits else f"no value in {name} is; leave out the padding, and characters that it lacks"
    return ""


def _declared(members: Mapping[str, ir.Node | ir.BitField], field: Field) -> ir.Node | ir.BitField | None:
    """The node of a present field, or the bit field; None if the layout does not have it."""
    inside: Mapping[str, ir.Node | ir.BitField] | None = members
    node: ir.Node | ir.BitField | None = None
    for name in field.names:
        node = (inside or {}).get(name)
        inside = _inside(node)
    return _present(node) if isinstance(node, ir.Node) else node


def _range(tree: Expression, members: Mapping[str, ir.Node | ir.BitField]) -> tuple[int, int] | None:
    """The least and the greatest integer that an expression may be; None if they are unknown."""
    match tree:
        case Literal(value=int(value)):
            return value, value
        case LengthOf():
            return 0, (1 << 63) - 1
        case Field():
            match _declared(members, tree):
                case ir.Number(real=False, low=low, high=high) | ir.Named(number=ir.Number(low=low, high=high)):
                    return low, high
                case ir.Boolean():
                    return 0, 1
                case ir.BitField(most=most):
                    return 0, most
        case Operation(symbol=symbol, operands=(left, right)) if symbol not in COMPARISONS:
            one, other = _range(left, members), _range(right, members)
            return None if one is None or other is None else bounds(symbol, one, other)
    return None


def _is_own(tree: Expression) -> TypeGuard[Field]:
    """Whether an expression is a field, and not one inside a field."""
    return isinstance(tree, Field) and not tree.names[1:]


def _kind(node: ir.Node | ir.BitField | None) -> str | None:
    """The kind of a field's values; None if it may have several."""
    match node:
        case ir.BitField() | ir.Number() | ir.Boolean() | ir.Named():
            return "a number"
        case ir.Blob(is_text=text, coding=coding) if text or coding is None:
            return "text" if text else "bytes"
        case ir.Delimited(decimal=decimal):
            return "a number" if decimal else "text"
        case ir.BitFields():
            return "bit fields"
        case ir.Structure() | ir.Several():
            return node.WORDS
    return None


def _present(node: ir.Node) -> ir.Node:
    """The node of a value that is present, without those that only restrict it."""
    while isinstance(node, ir.Qualified | ir.Conditional | ir.Ahead):
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
        case ir.Blob(text=False, coding=None, length=length):
            return "" if length is None else "bytes"  # bytes up to the limit are always written unchanged
        case ir.Blob() | ir.Delimited(decimal=False):
            return "text"
        case ir.Packed(blob=inner) | ir.Around(node=inner):
            return _string(inner)
        case ir.Alternatives(nodes=nodes):
            return next(filter(None, map(_string, nodes)), "")
    return ""


def _value(node: ir.Node, value: Any, how: str) -> Iterator[str]:
    """Why a value does not fit a field, as far as value and field decide it; ``how`` is the verb before the value."""
    core, number = _present(node), value
    if isinstance(core, ir.Named):
        if isinstance(value, str):
            number = next((int(symbol) for symbol in core.table if symbol.symbol == value), None)
            if how == "is always" and number is not None:
                yield f"the value is always {value!r}; pass the number {number}"
        if core.closed and number not in core.table:
            yield f"the value {how} {value!r}, which {core.table.name} does not name"
        core = core.number
    match core:
        case ir.Number(real=False) as integer:
            fits = type(number) is int and integer.low <= number <= integer.high
        case ir.Number(size=4) if how == "is always":  # a default is rounded
            fits = isinstance(number, (int, float)) and _is_float32(number)
        case ir.Number() | ir.Boolean():
            fits = isinstance(number, (int, float))
        case ir.Blob(text=text, length=length, coding=None):
            size = length.value if isinstance(length, Literal) else None
            fits = isinstance(number, str if text else (bytes, bytearray))
            fits = fits and not (isinstance(number, str) and _unlike(core, number))
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
