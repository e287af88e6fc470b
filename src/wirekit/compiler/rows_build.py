"""The building half of the rows engine: Python generated from the IR that writes values which are in order.

Adjacent fixed fields are one ``struct`` call, lengths and checksums are patched when what they cover is there, or
written at once where their number is known already. As in ``rows``, the generated code knows nothing but the way
things should be: a value that does not fit, a field of another type, a record that keeps something in ``extra``, a
mapping end it at once (``Unusual``), and the reference engine builds the same value, or says what is wrong with it.
The value itself is never changed.
"""

from __future__ import annotations

import functools
import keyword
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from wirekit.checksums import checksum
from wirekit.compiler import ir
from wirekit.compiler.expressions import Expression, Literal
from wirekit.compiler.source import Code, Generator, Scope, Unusual, bare, is_large, missing, trees_in
from wirekit.errors import WireError
from wirekit.values import Record, Symbol, SymbolTable, record_type
from wirekit.wire.compressed import Opened
from wirekit.wire.node import DECIMAL
from wirekit.wire.stream import Limits
from wirekit.wire.stream import Writer as Output
from wirekit.wire.told import elements

Unit = Callable[..., None]
PLAIN = (bool, int, float, str, bytes, type(None))

# What generated code raises when a value does not fit. A number too large for its field is an error of struct's.
REASONS = (Unusual, WireError, TypeError, AttributeError, LookupError, ArithmeticError, ValueError, struct.error)


class State:
    """What one encode knows beside the value."""

    __slots__ = ("limits", "params", "part", "plain", "protocol")

    def __init__(self, protocol: str, params: Mapping[str, Any], limits: Limits) -> None:
        self.plain: int | None = None  # bytes that were compressed last
        self.part: Any = None  # the piece of something larger that was written last
        self.protocol = protocol
        self.params = params
        self.limits = limits

    def close(self, codec: str | None, opened: Record, unit: Unit, *above: Any) -> bytes:
        """Compressed data: the bytes as they stand while they hold the content, else the content compressed."""
        from wirekit.compression import Decompression, compress, decompress

        compressed, content = opened.get("compressed"), opened.get("content")
        if opened._extra or not (compressed is None or isinstance(compressed, bytes)):
            raise Unusual
        if compressed is not None and content is None:
            self.plain = None
            return compressed
        if codec is None or content is None:
            raise Unusual
        inner = bytearray()
        unit(self, inner, content, *above)
        plain = bytes(inner)
        self.plain = len(plain)
        if compressed is not None:
            bounds = Decompression(size=self.limits.decompressed, ratio=self.limits.ratio)
            try:
                if decompress(codec, compressed, limits=bounds, size=len(plain)) == plain:
                    return compressed
            except WireError:
                pass  # the bytes hold nothing, so the content is compressed anew
        return compress(codec, plain)

    def message(self, kind: Any, value: Any) -> bytes:
        """A protobuf message."""
        from wirekit.wire.protobuf import build_message

        return build_message(kind, value, Output(self.protocol, self.limits))


# What generated code calls for a value that is not of the usual class. Each takes what the reference engine takes.


def integer(value: Any) -> None:
    """Lets through an integer that is no boolean."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise Unusual


def real(value: Any) -> None:
    """Lets through a number."""
    if not isinstance(value, (int, float)):
        raise Unusual


def flag(value: Any) -> bool:
    """The truth of a boolean or an integer."""
    if not isinstance(value, int):
        raise Unusual
    return bool(value)


def octets(value: Any) -> bytes:
    """The bytes of what holds bytes."""
    if not isinstance(value, (bytes, bytearray)):
        raise Unusual
    return bytes(value)


def sequence(value: Any) -> None:
    """Lets through a list or tuple."""
    if not isinstance(value, (list, tuple)):
        raise Unusual


@dataclass(slots=True, eq=False)
class Piece:
    """Some bytes that the next struct call writes.

    Attributes:
        value: an expression; None for zeros.
        when: the variable that says whether they are there at all; "" if they always are.
    """

    letters: str
    size: int
    little: bool
    value: str | None
    when: str = ""

    @property
    def known(self) -> int | None:
        """The number, where the generator knows it."""
        if self.value is None:
            return 0
        return int(self.value) if self.value.removeprefix("-").isdigit() else None


class Place(NamedTuple):
    """A position in the output: a variable that holds one, and bytes behind it."""

    base: str
    offset: int

    def __str__(self) -> str:
        return f"{self.base} + {self.offset}" if self.offset else self.base

    def moved(self, size: int) -> Place:
        """The position so many bytes further on."""
        return Place(self.base, self.offset + size)


def distance(start: Place, end: Place, add: int) -> str:
    """The bytes between two positions and some more; a plain number where it is known."""
    fixed_part = end.offset - start.offset + add
    if start.base == end.base:
        return str(fixed_part)
    sign = f" {'-' if fixed_part < 0 else '+'} {abs(fixed_part)}" if fixed_part else ""
    return f"{end.base} - {start.base}{sign}"


@dataclass(slots=True)
class Building(Code):
    """A function that appends to the buffer ``o``.

    Attributes:
        names: the module's names, for struct's functions.
        pending: what the next struct call writes.
        base, offset: where the end of the buffer is, without what is pending: bytes behind a variable; "" if unknown.
        patches: numbers to be written over zeros that are in the buffer already.
    """

    module: dict[str, Any] = field(default_factory=dict)
    pending: list[Piece] = field(default_factory=list)
    base: str = ""
    offset: int = 0
    patches: list[tuple[Place, Piece]] = field(default_factory=list)

    def add(self, letters: str, size: int, value: str | None, *, little: bool = False) -> Piece:
        """Has a value written by the next struct call."""
        if size > 1 and any(piece.size > 1 and piece.little != little for piece in self.pending):
            self.flush()
        piece = Piece(letters, size, little, value)
        self.pending.append(piece)
        return piece

    def here(self) -> Place:
        """The position behind all that was written so far."""
        if any(piece.when for piece in self.pending):
            self.flush()
        if not self.base:
            self.base, self.offset = self.fresh("m"), 0
            self.put(f"{self.base} = len(o)")
        return Place(self.base, self.offset + sum(piece.size for piece in self.pending))

    def flush(self) -> None:
        """Writes what is pending."""
        conditions = [piece.when for piece in self.pending if piece.when]
        if conditions:
            self.put(f"if {conditions[0]}:")
            self.put(f"    {self._written(self.pending)}")
            without = [piece for piece in self.pending if not piece.when]
            if without:
                self.put("else:")
                self.put(f"    {self._written(without)}")
            self.base = ""
        elif self.pending:
            self.put(self._written(self.pending))
            self.offset += sum(piece.size for piece in self.pending)
        self.pending = []

    def _written(self, pieces: list[Piece]) -> str:
        layout = _layout(pieces)
        known = [piece.known for piece in pieces]
        data = None if None in known else _packed(layout, pieces, known)
        if data is not None:
            return f"o += {data!r}"
        return f"o += {self._packer(layout, 'pack')}({', '.join(_values(pieces))})"

    def add_if(self, condition: str, write: Callable[[], None], otherwise: str) -> None:
        """Has fixed fields written by the next struct call if a condition holds; only these are pending by it."""
        if any(piece.when for piece in self.pending):
            self.flush()
        held = self.fresh("h")
        self.put(f"{held} = {condition}")
        self.put(f"if {held}:")
        outer, self.pending = self.pending, []
        lines = len(self.lines)
        self.depth += 1
        write()
        if len(self.lines) == lines:
            self.put("pass")
        self.depth -= 1
        self.put(f"elif {otherwise}: raise Unusual")
        pieces, self.pending = self.pending, outer
        for piece in pieces:
            self.add(piece.letters, piece.size, piece.value, little=piece.little).when = held

    def append(self, data: str) -> None:
        """Writes bytes of any length."""
        self.flush()
        self.put(f"o += {data}")
        self.base = ""

    def patch(self, place: Place, piece: Piece, value: str) -> None:
        """Gives a piece that was written as zeros its value."""
        if any(waiting is piece for waiting in self.pending):
            piece.value = value
        else:
            self.patches.append((place, Piece(piece.letters, piece.size, piece.little, value)))

    def settle(self) -> None:
        """Writes all that is pending and patches what has its value by now; neighbours together."""
        self.flush()
        self.patches.sort(key=lambda patch: patch[0])
        while self.patches:
            place, piece = self.patches.pop(0)
            group = [piece]
            end = place.moved(piece.size)
            while self.patches and self.patches[0][0] == end and self.patches[0][1].little == piece.little:
                group.append(self.patches.pop(0)[1])
                end = end.moved(group[-1].size)
            self.put(f"{self._packer(_layout(group), 'patch')}(o, {place}, {', '.join(_values(group))})")

    def call(self, text: str) -> None:
        """Calls something that appends to the buffer."""
        self.settle()
        self.put(text)
        self.base = ""

    def fork(self, *arms: tuple[str, Callable[[], None]]) -> None:
        """Writes the arms of an ``if``, each with what is pending; at the end of each nothing is."""
        if self.patches:
            self.settle()
        pending, base, offset = self.pending, self.base, self.offset
        for head, write in arms:
            self.put(head)
            self.depth += 1
            lines = len(self.lines)
            self.pending, self.base, self.offset = [*pending], base, offset
            write()
            self.settle()
            self.depth -= 1
            if len(self.lines) == lines:
                if head == "else:":
                    self.lines.pop()
                else:
                    self.put("    pass")
        self.pending, self.base = [], ""

    def _packer(self, layout: struct.Struct, kind: str) -> str:
        form = layout.format
        name = f"{kind}_{'le' if form[0] == '<' else 'be'}_{form[1:]}"
        self.module[name] = layout.pack if kind == "pack" else layout.pack_into
        return name


def _layout(pieces: list[Piece]) -> struct.Struct:
    letters = "".join(piece.letters if piece.value is not None else f"{piece.size}x" for piece in pieces)
    return struct.Struct(("<" if any(piece.little for piece in pieces) else ">") + letters)


def _values(pieces: list[Piece]) -> list[str]:
    return [piece.value for piece in pieces if piece.value is not None]


def _packed(layout: struct.Struct, pieces: list[Piece], known: list[int | None]) -> bytes | None:
    """The bytes of numbers that the generator knows; None if one does not fit, which shows when the code runs."""
    try:
        return layout.pack(*(number for piece, number in zip(pieces, known, strict=True) if piece.value is not None))
    except struct.error:
        return None


class Builder(Generator):
    """Writes the encoder of one schema: (state, buffer, value), which appends to the buffer.

    Args:
        key: the schema's key.
        layout: its IR.
        resolve: gives the unit of another schema by key, when the code runs.
    """

    purpose = "build"
    arguments = "S, o, x"

    def __init__(self, key: str, layout: ir.Node, resolve: Callable[[str], Unit]) -> None:
        helpers = (integer, real, flag, octets, sequence, missing)
        names: dict[str, Any] = {"Unusual": Unusual, "Symbol": Symbol, "Opened": Opened, "resolve": resolve}
        names["elements"] = elements
        super().__init__(key, layout, {**names, **{helper.__name__: helper for helper in helpers}})

    def _function(self, header: str, node: ir.Node, scope: Scope | None) -> list[str]:
        code = Building([header], module=self.names)
        self._node(code, node, "x", scope)
        code.settle()
        if len(code.lines) == 1:
            code.put("pass")
        return code.lines

    @staticmethod
    def _trees(node: ir.Node) -> Iterator[Expression]:
        length = ("length",) if isinstance(node, ir.Blob) else ()
        value = ("value",) if isinstance(node, ir.Constant) else ()
        return trees_in(node, ("condition", "default", *length, *value))

    # What follows writes the code of one kind of node each. ``x`` is the variable that holds the value.

    def _node(self, code: Building, node: ir.Node, x: str, scope: Scope | None) -> None:
        match node:
            case ir.Structure():
                self._structure(code, node, x, scope)
            case ir.Number():
                _class(code, x, "float" if node.real else "int", "real" if node.real else "integer")
                _add(code, node, x)
            case ir.Boolean():
                number = code.fresh("n")
                code.put(f"{number} = {x} if {x}.__class__ is bool else flag({x})")
                _add(code, node.number, number)
            case ir.Named():
                if node.closed:
                    code.unless_same([x], lambda: self._closed(code, node.table, x))
                else:
                    _class(code, x, "Symbol", "integer")
                _add(code, node.number, x)
            case ir.BitFields():
                self._bits(code, node, x)
            case ir.Constant():
                self._constant_of(code, node, scope)
            case ir.Optional():
                self._node(code, node.node, x, scope)
            case ir.Blob():
                self._blob(code, node, x, scope)
            case ir.Delimited():
                self._delimited(code, node, x)
            case ir.Several():
                self._several(code, node, x, scope)
            case ir.When() if _is_plain(node.node):
                condition = self._expression(node.condition, scope)
                code.add_if(condition, lambda: self._node(code, node.node, x, scope), f"{x} is not None")
            case ir.When():
                condition = f"if {self._expression(node.condition, scope)}:"
                absent = f"if {x} is not None: raise Unusual"
                code.fork(
                    (condition, lambda: self._branch(code, node.node, x, scope)), ("else:", lambda: code.put(absent))
                )
            case ir.WhenNext() | ir.WhenMore():
                code.fork(
                    (f"if {x} is not None:", lambda: self._branch(code, node.node, x, scope)), ("else:", code.flush)
                )
            case ir.Either():
                code.fork(
                    (
                        f"if {self._expression(node.condition, scope)}:",
                        lambda: self._branch(code, node.then, x, scope),
                    ),
                    ("else:", lambda: self._branch(code, node.otherwise, x, scope)),
                )
            case ir.Fallback():
                code.fork(
                    (f"if {x}.__class__ is bytes:", lambda: code.append(x)),
                    ("else:", lambda: self._branch(code, node.node, x, scope)),
                )
            case ir.Choice():
                unit, above = self._chosen(code, node, scope)
                code.call(f"{unit}(S, o, {x}{above})")
            case ir.Ahead():
                pass  # the field that it looks at writes the bytes
            case ir.Bounded():
                self._nullable(code, node.null, node.length, x, lambda: self._bounded(code, node, x, scope))
            case ir.Reference():
                code.call(f"resolve({node.key!r})(S, o, {x})")
            case ir.Packed():
                self._packed(code, node, x, scope)
            case ir.Protobuf():
                self._protobuf(code, node, x)

    def _branch(self, code: Building, node: ir.Node, x: str, scope: Scope | None) -> None:
        if is_large(node):
            unit, above = self._call(node, scope)
            code.call(f"{unit}(S, o, {x}{above})")
        else:
            self._node(code, node, x, scope)

    @staticmethod
    def _nullable(
        code: Building, null: int | None, number: ir.Number, x: str, write: Callable[[], None], absent: str = ""
    ) -> None:
        """What a length or count in front can say that there is nothing of."""
        if null is None:
            write()
        else:
            code.fork((f"if {absent or x} is None:", lambda: _put(code, number, str(null))), ("else:", write))

    def _structure(self, code: Building, node: ir.Structure, x: str, scope: Scope | None) -> None:
        self._begin(code, node, x)
        inner = Scope({member.name: self._source(x, member.name) for member in node.members}, scope)
        used = {name for member in node.members for up, name in self._read_outside(member.node) if up == 0}
        rules: list[ir.Measure | ir.Sum] = [*node.measures, *node.sums]
        derived, begin_at, end_at = ({getattr(rule, role) for rule in rules} for role in ("at", "first", "last"))
        sizes = {told.of for told in node.told if told.what == "size"}
        begin_at |= sizes
        end_at |= sizes
        starts: dict[int, Place] = {}
        ends: dict[int, Place] = {}
        pieces: dict[int, tuple[Place, Piece, str]] = {}
        for index, member in enumerate(node.members):
            if index in begin_at:
                starts[index] = code.here()
            if index in derived:
                summed = any(total.at == index for total in node.sums)
                self._leave_out(code, member, x)
                pieces[index] = self._derived(code, member, x, inner, summed)
            else:
                value = self._read(code, member, x, inner, member.name in used)
                self._node(code, member.node, value, inner)
            if index in end_at:
                ends[index] = code.here()
            for measure in node.measures:
                name = node.members[measure.at].name
                if measure.last == index and measure.at < index and name in used:
                    number = code.fresh("n")
                    code.put(f"{number} = {distance(starts[measure.first], ends[index], measure.add)}")
                    inner.variables[name] = number
        for measure in node.measures:
            place, piece, present = pieces[measure.at]
            covers = measure.last >= measure.first
            number = distance(starts[measure.first], ends[measure.last], measure.add) if covers else str(measure.add)
            self._fill(code, place, piece, present, number)
        for total in node.sums:
            self._sum(code, node, total, starts[total.first], ends[total.last], pieces[total.at])
        for told in node.told:
            self._told(code, node, told, inner, starts, ends)
        self._end(code, x)

    # What a structure's value is: here a record, and nothing is kept beside its fields.

    def _begin(self, code: Building, node: ir.Structure, x: str) -> None:
        kind = self._constant(record_type(node.name, tuple(member.name for member in node.members)), "R")
        code.put(f"if {x}.__class__ is not {kind} or {x}._extra: raise Unusual")

    def _end(self, code: Building, x: str) -> None:
        pass

    def _leave_out(self, code: Building, member: ir.Member, x: str) -> None:
        """A field whose value is not read, because it follows from others."""

    @staticmethod
    def _source(x: str, name: str) -> str:
        """Reads a field; AttributeError or KeyError if it is not set."""
        return _source(x, name)

    @staticmethod
    def _told(
        code: Building,
        node: ir.Structure,
        told: ir.Told,
        scope: Scope,
        starts: dict[int, Place],
        ends: dict[int, Place],
    ) -> None:
        """A number that does not agree with the value is for the reference engine to compute, or to write as kept."""
        message, value = (scope.variables[node.members[at].name] for at in (told.at, told.of))
        number = code.fresh("n")
        code.put(f"if {message} is not None:")
        code.put(f"    {number} = getattr({message}, {told.field!r})")
        if told.what == "count":
            code.put(f"    if elements({value}) not in (None, {number}): raise Unusual")
            return
        code.put(f"    if {value}.__class__ is Opened:")
        code.put(f"        if S.plain not in (None, {number}): raise Unusual")
        extent = distance(starts[told.of], ends[told.of], 0)
        code.put(f"    elif {number} not in (None, {extent}) and {value} is not S.part: raise Unusual")

    def _derived(
        self, code: Building, member: ir.Member, x: str, scope: Scope, summed: bool
    ) -> tuple[Place, Piece, str]:
        """Zeros for a length or checksum: where they are, how to write them, the variable that says if they are."""
        conditions = []
        node = member.node
        while not isinstance(node, ir.Number):
            match node:
                case ir.When():
                    conditions.append(self._expression(node.condition, scope))
                case ir.WhenMore():
                    conditions.append(f"getattr({x}, {member.name!r}, None) is not None")
                case _:  # nothing else stands around a length or checksum that has no value of its own
                    code.put("raise Unusual")
                    break
            node = node.node
        number = bare(member.node)
        if not isinstance(number, ir.Number):
            number = ir.Number("B", 1, False, False, False)
        letter = _unsigned(number.code) if summed else number.code
        scope.variables[member.name] = "0"
        if not conditions:
            place = code.here()
            return place, code.add(letter, number.size, None, little=number.little), ""
        present = code.fresh("h")
        code.settle()
        code.put(f"{present} = {' and '.join(conditions)}")
        place = code.here()
        code.put(f"if {present}: o += bytes({number.size})")
        code.base = ""
        scope.variables[member.name] = f"(0 if {present} else None)"
        return place, Piece(letter, number.size, number.little, None), present

    @staticmethod
    def _fill(code: Building, place: Place, piece: Piece, present: str, value: str) -> None:
        if present:
            code.settle()
            code.put(f"if {present}:")
            code.depth += 1
        code.patch(place, piece, value)
        if present:
            code.settle()
            code.depth -= 1

    def _sum(
        self,
        code: Building,
        node: ir.Structure,
        total: ir.Sum,
        start: Place,
        end: Place,
        written: tuple[Place, Piece, str],
    ) -> None:
        place, piece, present = written
        covered = bare(node.members[total.first].node)
        if isinstance(covered, ir.Packed):
            covered = covered.blob
        if total.content and isinstance(covered, ir.Blob) and isinstance(covered.length, ir.Number):
            start = start.moved(covered.length.size)
        last = code.here() == end
        code.settle()
        function = self._constant(checksum(total.algorithm).function, "sum")
        value = f"{function}(o[{start}:{'' if last else end}])"
        if not present:
            number = code.fresh("n")
            code.put(f"{number} = {value}")
            value = number
        self._fill(code, place, piece, present, value)

    def _read(self, code: Building, member: ir.Member, x: str, scope: Scope, used: bool) -> str:
        """Reads a field into a variable, or its default where it is not set; a constant only if somebody asks."""
        inner = member.node.node if isinstance(member.node, ir.Optional) else member.node
        if isinstance(inner, ir.Constant) and not used:
            self._leave_out(code, member, x)
            return ""
        value = code.fresh("v")
        self._take(code, member, x, value, self._default(member.node, scope))
        scope.variables[member.name] = value
        return value

    def _take(self, code: Building, member: ir.Member, x: str, value: str, default: str | None) -> None:
        source = self._source(x, member.name)
        if default is None:
            code.put(f"{value} = {source}")
        elif isinstance(member.node, (ir.Optional, ir.BitFields)):  # what builders leave out
            code.put(f"{value} = getattr({x}, {member.name!r}, missing)")
            code.put(f"if {value} is missing: {value} = {default}")
        else:
            code.put(f"try: {value} = {source}")
            code.put(f"except AttributeError: {value} = {default}")
        bits = bare(member.node)
        if isinstance(bits, ir.BitFields):
            code.put(f"if {value}.__class__ is int: {value} = {self._constant(_opener(bits), 'open')}({value})")

    def _default(self, node: ir.Node, scope: Scope) -> str | None:
        """What stands for a field that is not set; None where it has to be set, or the reference engine is asked."""
        match node:
            case ir.Optional():
                return self._literal(node, scope)
            case ir.Constant():
                return self._expression(node.value, scope)
            case ir.When():
                there = self._default(node.node, scope) or "missing()"
                return f"{there} if {self._expression(node.condition, scope)} else None"
            case ir.WhenMore() | ir.WhenNext():
                return "None"
            case ir.Fallback() | ir.Packed():
                return self._default(node.node if isinstance(node, ir.Fallback) else node.blob, scope)
            case ir.BitFields():
                return self._constant(_opened(node, {}), "default")
            case ir.Bounded() | ir.Several() | ir.Blob() if node.null is not None:
                return "None"
            case ir.Several(count=None):
                return "[]"
            case ir.Blob(length=None, text=False):
                return "b''"
            case ir.Blob(text=False) if not isinstance(node.length, ir.Number) and node.length is not None:
                return f"bytes({self._expression(node.length, scope)})"
        return None

    def _literal(self, node: ir.Optional, scope: Scope) -> str | None:
        if not isinstance(node.default, Literal):
            return self._expression(node.default, scope)
        value, bits = node.default.value, bare(node)
        if isinstance(bits, ir.BitFields) and isinstance(value, (int, Mapping)):
            return self._constant(_opener(bits)(value) if isinstance(value, int) else _opened(bits, value), "default")
        return self._expression(node.default, scope) if isinstance(value, PLAIN) else None

    def _constant_of(self, code: Building, node: ir.Constant, scope: Scope | None) -> None:
        number = node.node.number if isinstance(node.node, ir.Named) and not node.node.closed else node.node
        if isinstance(node.value, Literal) and type(node.value.value) is int and isinstance(number, ir.Number):
            _put(code, number, str(node.value.value))
            return
        value = code.fresh("v")
        code.put(f"{value} = {self._expression(node.value, scope)}")
        self._node(code, node.node, value, scope)

    def _closed(self, code: Building, table: SymbolTable, x: str) -> None:
        _class(code, x, "Symbol", "integer")
        code.put(f"if {x} not in {self._constant(table._by_value, 'T')}: raise Unusual")

    def _bits(self, code: Building, node: ir.BitFields, x: str) -> None:
        kind = self._constant(record_type("Bits", tuple(bit.name for bit in node.fields)), "R")
        code.put(f"if {x}.__class__ is not {kind}: raise Unusual")
        values, fits, sum_of = [], [], []
        for bit in node.fields:
            value = code.fresh("b")
            code.put(f"{value} = {_source(x, bit.name)}")
            values.append(value)
            fits.append(f"0 <= {value} < {1 << bit.width}")
            sum_of.append(f"{value} << {bit.shift}" if bit.shift else value)
        number = code.fresh("n")

        def join() -> None:
            code.put(f"if not ({' and '.join(fits)}): raise Unusual")
            code.put(f"{number} = {' | '.join(sum_of) if len(sum_of) > 1 else f'0 | {sum_of[0]}'}")
            code.put(f"if {number}.__class__ is not int: raise Unusual")

        code.unless_same(values, join)
        base = bare(node.number)
        if isinstance(base, ir.Number):
            code.add(_unsigned(base.code), base.size, number, little=base.little)

    def _blob(self, code: Building, node: ir.Blob, x: str, scope: Scope | None) -> None:
        if isinstance(node.length, ir.Number):
            self._prefixed(code, node, node.length, x)
            return
        data = self._bytes(code, node, x)
        match node.length:
            case None:
                code.append(data)
                if node.part:
                    code.put(f"S.part = {x}")
            case Literal(value=int(size)) if not node.filler and size > 0:
                code.put(f"if len({data}) != {size}: raise Unusual")
                code.add(f"{size}s", size, data)
            case length:
                wanted = code.fresh("n")
                code.put(f"{wanted} = {self._expression(length, scope)}")
                code.put(f"if {wanted}.__class__ is not int or {wanted} < 0: raise Unusual")
                if node.filler:
                    code.append(f"{data} if len({data}) == {wanted} else bytes({wanted})")
                else:
                    code.put(f"if len({data}) != {wanted}: raise Unusual")
                    code.append(data)

    def _delimited(self, code: Building, node: ir.Delimited, x: str) -> None:
        data = code.fresh("d")
        if node.decimal:
            code.put(f"if {x}.__class__ is not int: raise Unusual")
            code.put(f"{data} = b'%d' % {x}")
            code.put(f"if not {self._constant(DECIMAL.fullmatch, 'decimal')}({data}): raise Unusual")
        else:
            code.put(f"{data} = {x}.encode()")
            code.put(f"if b'\\n' in {data} or {node.end!r} in {data} + {node.end[:-1]!r}: raise Unusual")
        code.append(f"{data} + {node.end!r}")

    def _prefixed(self, code: Building, node: ir.Blob, number: ir.Number, x: str) -> None:
        if node.null is None:
            data = self._bytes(code, node, x)
            size = f"len({data})"
        else:
            data, size = code.fresh("d"), code.fresh("n")
            code.put(f"if {x} is None: {data}, {size} = b'', {node.null}")
            code.put("else:")
            code.put(f"    {data} = {_octets(node, x)}")
            code.put(f"    {size} = len({data})")
        _put(code, number, size)
        code.append(data)

    @staticmethod
    def _bytes(code: Building, node: ir.Blob, x: str) -> str:
        """The variable with the bytes of a value."""
        data = code.fresh("d")
        code.put(f"{data} = {_octets(node, x)}")
        return data

    def _several(self, code: Building, node: ir.Several, x: str, scope: Scope | None) -> None:
        count = node.count
        if not isinstance(count, ir.Number):
            self._elements(code, node, x, scope)
            return

        def counted() -> None:
            _class(code, x, "list", "sequence")
            _put(code, count, f"len({x})")
            self._elements(code, node, x, scope, known=True)

        self._nullable(code, node.null, count, x, counted)

    def _elements(self, code: Building, node: ir.Several, x: str, scope: Scope | None, *, known: bool = False) -> None:
        if not known:
            _class(code, x, "list", "sequence")
        element = node.element
        if isinstance(element, ir.Number) and not element.real:
            pack, only = self._constant(struct.pack, "pack"), self._constant(frozenset({int}), "only")
            code.put(f"if not {only}.issuperset(map(type, {x})): raise Unusual")
            code.append(f"{pack}(f'{'<' if element.little else '>'}{{len({x})}}{element.code}', *{x})")
            return
        item = code.fresh("x")
        code.call(f"for {item} in {x}:")
        lines = len(code.lines)
        code.depth += 1
        code.loops += 1
        self._node(code, element, item, scope)
        code.settle()
        if len(code.lines) == lines:
            code.put("pass")
        code.loops -= 1
        code.depth -= 1
        code.base = ""

    def _bounded(self, code: Building, node: ir.Bounded, x: str, scope: Scope | None) -> None:
        place = code.here()
        piece = code.add(node.length.code, node.length.size, None, little=node.length.little)
        self._node(code, node.node, x, scope)
        code.patch(place, piece, distance(place.moved(node.length.size), code.here(), 0))

    def _packed(self, code: Building, node: ir.Packed, x: str, scope: Scope | None) -> None:
        codecs = {(values[0] if len(values) == 1 else values): name for values, name in node.codecs}
        table = self._constant(codecs, "codecs")
        data = code.fresh("v")
        unit, above = self._call(node.node, scope)
        code.put(f"{data} = {x}")
        code.put(f"if {x}.__class__ is Opened:")
        code.put(f"    {data} = S.close({table}.get({self._key(node.on, scope)}), {x}, {unit}{above})")
        code.put(f"else: S.part = {x}")
        self._blob(code, node.blob, data, scope)

    def _protobuf(self, code: Building, node: ir.Protobuf, x: str) -> None:
        from wirekit.wire.protobuf import Message

        data = code.fresh("d")
        code.put(f"{data} = S.message({self._constant(Message._known[node.message], 'message')}, {x})")
        code.append(data)


def _source(x: str, name: str) -> str:
    """Reads a field of a record; AttributeError if it is not set."""
    return f"getattr({x}, {name!r})" if keyword.iskeyword(name) else f"{x}.{name}"


def _octets(node: ir.Blob, x: str) -> str:
    return f"{x}.encode()" if node.text else f"{x} if {x}.__class__ is bytes else octets({x})"


def _is_plain(node: ir.Node) -> bool:
    """Whether a node is written by struct alone, in one byte order."""
    match node:
        case ir.Number() | ir.Boolean() | ir.Named() | ir.BitFields():
            return True
        case ir.Optional(node=inner):
            return _is_plain(inner)
    return False


def _class(code: Building, x: str, usual: str, otherwise: str) -> None:
    """A value of another class than the usual one has to be let through."""
    code.put(f"if {x}.__class__ is not {usual}: {otherwise}({x})")


def _add(code: Building, number: ir.Node, value: str) -> None:
    if not isinstance(number, ir.Number):
        code.put("raise Unusual")
        return
    _put(code, number, value)


def _put(code: Building, number: ir.Number, value: str) -> None:
    code.add(number.code, number.size, value, little=number.little)


def _unsigned(letter: str) -> str:
    """struct's letter for bits that are a number already."""
    return letter.upper()


def _opened(node: ir.BitFields, given: Mapping[str, Any]) -> Record:
    """The record of bit fields of which some are given."""
    values = {bit.name: given.get(bit.name, 0) for bit in node.fields}
    return record_type("Bits", tuple(values))(**values)


def _opener(node: ir.BitFields) -> Callable[[int], Record]:
    """A function that gives the record of a number."""

    def opened(number: int) -> Record:
        return _opened(node, {bit.name: number >> bit.shift & (1 << bit.width) - 1 for bit in node.fields})

    return opened


@functools.cache
def unit(key: str) -> Unit:
    """The generated encoder of a schema, made when it is first asked for."""
    return builder(key).compile()


def builder(key: str) -> Builder:
    """The module of a schema, written and not compiled; its ``source`` can be read."""
    from wirekit.registry import registry

    return Builder(key, registry[key].layout, unit)
