"""Building code for structures: lengths and checksums are written after the fields that they cover."""

from __future__ import annotations

from collections.abc import Iterable

from wirekit.checksums import checksum
from wirekit.compiler import ir
from wirekit.compiler.expressions import Expression, Literal
from wirekit.compiler.ir import bare
from wirekit.compiler.references import is_padded
from wirekit.compiler.rows.build_code import Building, Piece, Place, distance
from wirekit.compiler.source import Generator, Scope, field_of, of_roles, put_derived
from wirekit.wire.blobs import POSITION
from wirekit.wire.derived import innermost_first


class Structures(Generator):
    """Generates code that builds structures; ``x`` is the variable with the value."""

    evaluated = staticmethod(of_roles("condition", "default", "length", "count", "value"))

    def _node(self, code: Building, node: ir.Node, x: str, scope: Scope | None) -> None:
        """Generates the code of a node of any kind."""
        raise NotImplementedError

    def _structure(self, code: Building, node: ir.Structure, x: str, scope: Scope | None) -> None:
        self._begin(code, node, x)
        inner = Scope({member.name: self._source(x, member.name) for member in node.members}, scope)
        used = self._members_read(node, self.evaluated)
        rules: list[ir.Measure | ir.Sum] = [*node.measures, *node.sums]
        apart = {measure.at: measure for measure in node.measures if ir.varying(bare(node.members[measure.at].node))}
        alone = all(_stands_alone(node, measure, rules) for measure in apart.values())
        if not alone or any(_sizes_inside(node, measure) for measure in node.measures):
            code.add_line("raise Unusual")
            return
        buffers: list[tuple[ir.Measure, str]] = []
        begin_at, end_at = node.extents(node.measures)
        starts: dict[int, Place] = {}
        ends: dict[int, Place] = {}
        pieces: dict[int, tuple[Place, Piece]] = {}
        begin = code.here() if any(is_padded(member.node) for member in node.members) else None
        for index, member in enumerate(node.members):
            if begin is not None and is_padded(member.node):
                inner.variables[POSITION] = f"({distance(begin, code.here(), 0)})"
            if index in begin_at:
                starts[index] = code.here()
            if index in apart:
                self._leave_out(code, member, x)
                inner.variables[member.name] = "0"
                buffers.append((apart[index], code.begin_apart()))
            elif index in node.computed:
                summed = any(total.at == index for total in node.sums)
                self._leave_out(code, member, x)
                pieces[index] = self._derived(code, member, x, inner, summed)
            else:
                value = self._read(code, member, x, inner, member.name in used)
                self._node(code, member.node, value, inner)
            while buffers and buffers[-1][0].last == index:
                measure, outer = buffers.pop()
                prefix = bare(node.members[measure.at].node)
                assert isinstance(prefix, ir.Number)
                size = inner.variables[node.members[measure.at].name] = code.end_apart(outer, prefix, measure.add)
                self._bounded_below(code, node, measure, size)
            if index in end_at:
                ends[index] = code.here()
            for measure in node.measures:
                if measure.is_limit and measure.last == index and measure.at not in apart:
                    self._limit(code, [member.node for member in node.members[measure.first : index + 1]])
                name = node.members[measure.at].name
                if measure.last == index and measure.at < index and name in used and measure.at not in apart:
                    number = code.let("n", distance(starts[measure.first], ends[index], measure.add))
                    inner.variables[name] = number
        for measure in node.measures:
            if measure.at in apart:
                continue
            place, piece = pieces[measure.at]
            size = distance(starts[measure.first], ends[measure.last], measure.add)
            self._bounded_below(code, node, measure, size, piece.when)
            code.patch(place, piece, size)
        for total in innermost_first(node.sums):
            self._sum(code, node, total, starts[total.first], ends[total.last], *pieces[total.at])
        for derived in node.derived:
            message, value = (inner.variables[node.members[at].name] for at in (derived.at, derived.of))
            extent = distance(starts[derived.of], ends[derived.of], 0) if derived.quantity == "size" else ""
            put_derived(code, derived, message, value, extent, "S.plain not in (None, {})")
        self._end(code, x)

    @staticmethod
    def _limit(code: Building, covered: Iterable[ir.Node]) -> None:
        """The end of bytes that a length counts, in the same buffer: fields may be absent before it, and lists end."""
        inside = [inner for node in covered for _, inner in ir.walk(node)]
        if any(isinstance(each, ir.WhenNext | ir.Reference) or getattr(each, "until", b"") for each in inside):
            code.add_line(f"S.end_limit(o, {code.here()})")

    # The value of a structure is a record without other entries here.

    def _begin(self, code: Building, node: ir.Structure, x: str) -> None:
        kind = self._constant(node.record, "R")
        code.add_line(f"if {x}.__class__ is not {kind} or {x}._extra: raise Unusual")

    def _end(self, code: Building, x: str) -> None:
        pass

    def _leave_out(self, code: Building, member: ir.Member, x: str) -> None:
        """A field whose value is not read, because it follows from others."""

    @staticmethod
    def _source(x: str, name: str) -> str:
        """Reads a field; AttributeError or KeyError if it is not set."""
        return field_of(x, name)

    @staticmethod
    def _read_or_none(x: str, name: str) -> str:
        """Reads a field; None if it is not set."""
        return f"getattr({x}, {name!r}, None)"

    def _derived(self, code: Building, member: ir.Member, x: str, scope: Scope, summed: bool) -> tuple[Place, Piece]:
        """Zeros for a length or checksum: their place, and the piece to patch."""
        conditions = []
        node = member.node
        while not isinstance(node, (ir.Number, ir.Blob)):
            match node:
                case ir.When():
                    conditions.append(self._expression(node.condition, scope))
                case ir.WhenNext():
                    conditions.append(f"{self._read_or_none(x, member.name)} is not None")
                case _:  # a length or checksum without a value has no other wrapper
                    code.add_line("raise Unusual")
                    break
            node = node.node
        number = bare(member.node)
        size, little = ir.minimum(number), isinstance(number, ir.Number) and number.little
        letter = number.code if isinstance(number, ir.Number) else f"{size}s"
        if summed and isinstance(number, ir.Number):
            letter = letter.upper()  # its bits, without regard to the sign
        scope.variables[member.name] = "0"
        if not conditions:
            place = code.here()
            return place, code.add(letter, size, None, little=little)
        code.settle()
        present = code.let("h", " and ".join(conditions))
        place = code.here()
        code.add_line(f"if {present}: o += bytes({size})")
        code.end = None
        scope.variables[member.name] = f"(0 if {present} else None)"
        return place, Piece(letter, size, little, None, present)

    @staticmethod
    def _bounded_below(code: Building, node: ir.Structure, measure: ir.Measure, size: str, when: str = "") -> None:
        """Raises ``Unusual`` for a length below its minimum, if the fields that it covers can be so short."""
        if not measure.bounds or node.least_of(measure) >= measure.least:
            return
        small = f"0 != {size} < {measure.least}" if measure.zero_is_rest else f"{size} < {measure.least}"
        code.add_line(f"if {f'{when} and ' if when else ''}{small}: raise Unusual")

    def _sum(
        self, code: Building, node: ir.Structure, total: ir.Sum, start: Place, end: Place, place: Place, piece: Piece
    ) -> None:
        if total.content:
            start = start.moved(ir.length_in_front(node.members[total.first].node))
        last = code.here() == end
        code.settle()
        algorithm, digest = checksum(total.algorithm), isinstance(bare(node.members[total.at].node), ir.Blob)
        function = self._constant(algorithm.digest if digest else algorithm.function, "sum")
        value = f"{function}(o[{start}:{'' if last else end}])"
        if not piece.when:
            number = code.let("n", value)
            value = number
        code.patch(place, piece, value)

    def _read(self, code: Building, member: ir.Member, x: str, scope: Scope, used: bool) -> str:
        """Reads a field into a variable, or its default if it is not set; a constant only if an expression uses it."""
        inner = member.node.node if isinstance(member.node, ir.Optional) else member.node
        if isinstance(inner, ir.Constant) and not used:
            self._leave_out(code, member, x)
            return ""
        value = code.fresh("v")
        self._take(code, member, x, value, self._default(member.node, scope))
        constant = bare(member.node)
        if isinstance(constant, ir.Constant):
            other = f"{value} is not None and {value} != {self._expression(constant.value, scope)}"
            code.add_line(f"if {other}: raise Unusual")
        scope.variables[member.name] = value
        return value

    def _take(self, code: Building, member: ir.Member, x: str, value: str, default: str | None) -> None:
        source = self._source(x, member.name)
        if default is None:
            code.add_line(f"{value} = {source}")
        elif isinstance(member.node, (ir.Optional, ir.BitFields)):  # fields that a value may leave out
            code.add_line(f"{value} = getattr({x}, {member.name!r}, missing)")
            code.add_line(f"if {value} is missing: {value} = {default}")
        else:
            code.add_line(f"try: {value} = {source}")
            code.add_line(f"except (AttributeError, KeyError): {value} = {default}")
        bits = bare(member.node)
        if isinstance(bits, ir.BitFields):
            code.add_line(
                f"if {value}.__class__ is int: {value} = {self._constant(bits.record_of, 'record_of')}({value})"
            )

    def _default(self, node: ir.Node, scope: Scope | None) -> str | None:
        """The default of a field that is not set; None if it must be set, or if the reference engine decides."""
        match node:
            case ir.Optional(default=default) if not isinstance(default, Literal):
                return self._expression(default, scope)
            case ir.Constant():
                return self._expression(node.value, scope)
            case ir.When():
                value = self._default(node.node, scope) or "missing()"
                return f"{value} if {self._expression(node.condition, scope)} else None"
            case ir.Fallback(node=inner) | ir.Packed(blob=inner):
                return self._default(inner, scope)
            case ir.Several(count=None):
                return "[]"
            case ir.Blob(length=None, text=False, coding=None):
                return "b''"
            case ir.Blob(text=False, null=None, coding=None, length=length) if (
                not isinstance(length, ir.Number) and length is not None
            ):
                return f"S.zeros({self._expression(length, scope)})"
        return super()._default(node, scope)


def _sizes_inside(node: ir.Structure, measure: ir.Measure) -> bool:
    """Whether a size or count is computed from a length before the length is known."""
    covered, length = node.members[measure.at : measure.last + 1], (0, node.members[measure.at].name)
    return any(length in ir.read_outside(member.node, _sizes) for member in covered)


def _sizes(node: ir.Node) -> list[Expression]:
    return [tree for role, tree in ir.expressions(node) if role in ("length", "count")]


def _stands_alone(node: ir.Structure, measure: ir.Measure, rules: list[ir.Measure | ir.Sum]) -> bool:
    """Whether the fields that a varint measures can be written to a buffer of their own."""
    if measure.first != measure.at + 1 or not isinstance(node.members[measure.at].node, ir.Number):
        return False
    if not measure.bounds:  # bytes that follow in another buffer may tell whether a field is present
        return False
    for rule in rules:
        outside = not measure.at <= rule.at <= measure.last
        around = rule.first <= measure.at and measure.last <= rule.last
        apart = rule.last < measure.at or rule.first > measure.last
        if rule is not measure and not (outside and (around or apart)):
            return False
    return True
