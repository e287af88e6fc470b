"""State shared by all code that emits steps: the steps, registers, columns, reasons and expressions of a record."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from wirekit.codings import Coding
from wirekit.compiler import ir
from wirekit.compiler.expressions import Expression, Field, LengthOf, Literal, Operation
from wirekit.program import steps
from wirekit.program.columns import Column, Contents, Packing, Reason, Repeated
from wirekit.program.facts import is_wide
from wirekit.program.messages import Tables
from wirekit.program.unfit import unfit
from wirekit.program.values import HIGHEST, LONGEST, LOWEST, Place, Scope, Value, bounds, inside
from wirekit.values import SymbolTable

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
SHORT = "needs more bytes than there are"
TEXT = "a text"
"""Why expressions cannot read text; its length is in characters there, in bytes in a program."""


@dataclass(slots=True)
class Maker:
    """The program of one record, as it grows: a method for each kind of node, called by its name.

    Attributes:
        DEFAULTED: kinds of nodes whose methods take a default.
        key: the schema, for errors.
        body: where steps are put.
        constants: register of each number that is known.
        maybe: whether what is read now stands behind a condition.
        defaults: (register, value) of registers that the condition may leave unset.
        merging: columns that an alternative to what is read now has, and which it may share.
        stored: columns that were written to, for who has to take them back.
        loose: parts that are put off, see ``program.shared``.
        lists: those of the record; ``around`` is the one that what is read now is an element of, and ``entered`` are
            those that begin in it; ``indexes`` has the register of each with the number of its elements.
        limit: register for how far what is read now may reach.
        cutting: the limit that may cut the last record, or element, without an error.
        checked: whether the bytes of the number at work were compared with the limit.
        walked: (number, register for whether it is there) of the messages.
        picked: the registers of fields of messages that were picked where what follows can use them.
        gaps: whether bytes can be left over inside a record.
        left_out: paths that get no column.
    """

    key: str
    body: steps.Body = field(default_factory=list)
    registers: int = steps.FIRST_FREE
    constants: dict[int, int] = field(default_factory=dict)
    columns: list[Column] = field(default_factory=list)
    paths: dict[str, Column] = field(default_factory=dict)
    reasons: list[Reason] = field(default_factory=list)
    numbers: dict[Reason, int] = field(default_factory=dict)
    maybe: bool = False
    defaults: list[tuple[int, int]] = field(default_factory=list)
    merging: list[Column] = field(default_factory=list)
    stored: list[Column] = field(default_factory=list)
    lists: list[Repeated] = field(default_factory=list)
    indexes: list[int] = field(default_factory=list)
    around: Repeated | None = None
    entered: list[Repeated] = field(default_factory=list)
    limit: int = steps.RANGE
    cutting: int = steps.RANGE
    checked: bool = False
    packing: Packing | None = None
    contents: Contents | None = None
    content_registers: dict[str, int] = field(default_factory=dict)
    messages: list[Tables] = field(default_factory=list)
    walked: list[tuple[int, int]] = field(default_factory=list)
    picked: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    gaps: bool = False
    left_out: list[str] = field(default_factory=list)

    DEFAULTED: ClassVar[tuple[type[ir.Node], ...]] = ()

    def node(self, node: ir.Node, path: str, scope: Scope, default: Any = None) -> Value:
        """Reads or writes a node; its columns are called ``path``.

        Args:
            default: what is written where the columns are not given.

        Raises:
            Misuse: for what columns cannot hold.
        """
        visit = getattr(self, f"visit_{type(node).__name__}", None)
        if visit is None:
            raise unfit(self.key, path, node)
        value: Value = visit(node, path, scope, *([default] if isinstance(node, self.DEFAULTED) else []))
        return value

    def put(self, step: steps.Step) -> None:
        """Adds a step."""
        self.body.append(step)

    @contextmanager
    def block(self) -> Iterator[steps.Body]:
        """Steps put within go into a body of their own."""
        outer, self.body = self.body, []
        picked, self.picked = self.picked, dict(self.picked)
        try:
            yield self.body
        finally:
            self.body, self.picked = outer, picked

    def register(self) -> int:
        """A register that nothing sets but steps."""
        self.registers += 1
        return self.registers - 1

    @contextmanager
    def before(self, limit: int) -> Iterator[None]:
        """What is read within ends at another limit."""
        outer, self.limit = self.limit, limit
        yield
        self.limit = outer

    def fresh(self, default: int = 0) -> int:
        """A register; one that a condition may leave unset gets the default first."""
        register = self.register()
        if self.maybe:
            self.defaults.append((register, default))
        return register

    def constant(self, value: int) -> int:
        """The register of a number."""
        if value not in self.constants:
            self.constants[value] = self.register()
        return self.constants[value]

    def let(self, symbol: str, left: int, right: int = 0) -> int:
        """A fresh register with what is computed."""
        to = self.fresh()
        self.put(steps.Let(to, symbol, left, right))
        return to

    def clear(self, defaults: list[tuple[int, int]]) -> None:
        """Sets registers to their defaults."""
        if defaults:
            self.put(steps.Clear(dict(defaults)))

    def fault(self, path: str, kind: str, text: str) -> steps.Fault:
        """The fault for a reason; a short record may be the last one of a list, which the list's limit cuts."""
        reason = Reason(path, kind, text)
        if reason not in self.numbers:
            self.reasons.append(reason)
            self.numbers[reason] = len(self.reasons)
        return steps.Fault(self.numbers[reason], kind == "short" and self.limit == self.cutting)

    def bound(self, size: int, path: str) -> None:
        """So many bytes are needed."""
        self.put(steps.Need(size, self.limit, self.needs(size, path)))

    def needs(self, size: int, path: str) -> steps.Fault:
        """The fault for fewer bytes than that."""
        return self.fault(path, "short", f"needs {size} byte{'' if size == 1 else 's'}, more than there are")

    def load(self, number: ir.Number, path: str) -> steps.Load | steps.Varint:
        """Reads a number; the step has its register, and takes a column."""
        step: steps.Load | steps.Varint
        if number.groups:
            short = self.fault(path, "short", SHORT)
            wrong = self.fault(path, "wrong", f"expected a varint of at most {number.bits} bits")
            step = steps.Varint(number, self.fresh(), self.limit, short, wrong)
        else:
            if not self.checked:
                self.bound(number.size, path)
            step = steps.Load(number, self.fresh())
        self.put(step)
        return step

    def integer(self, node: ir.Interpreted, path: str) -> ir.Number:
        """The number that means something."""
        if not isinstance(node.number, ir.Number) or node.number.real:
            raise unfit(self.key, path, node)
        return node.number

    def fits(self, size: int, path: str, least: int = 1) -> None:
        """So many bytes, or elements of ``least`` bytes, are left."""
        self.put(steps.Fit(size, least, self.limit, self.fault(path, "short", SHORT)))

    def not_negative(self, register: int, path: str, noun: str = "length") -> None:
        """A length or count is at least 0."""
        fault = self.fault(path, "wrong", f"expected a {noun} of at least 0")
        self.put(steps.Refuse("<", register, self.constant(0), fault))

    def column(
        self,
        path: str,
        kind: str,
        dtype: str = "",
        table: SymbolTable | None = None,
        unit: str | None = None,
        coding: Coding | None = None,
    ) -> Column:
        """A new column, or that of an alternative, which has the same path and holds the same."""
        for column in self.merging:
            if column.path != path:
                continue
            same = (column.kind, column.table, column.unit, column.within) == (kind, table, unit, self.around)
            if same and column.coding == coding and _widened(column, dtype):
                self.stored.append(column)
                return column
        if path in self.paths:
            if not any(column.path == path for column in self.merging):
                raise unfit(self.key, path, "a second column of that name")
            return self.column(f"{path}:{dtype or kind}", kind, dtype, table, unit, coding)
        slot = len(self.columns)
        column = Column(path, kind, dtype, self.maybe, table, slot, unit, self.around, self.maybe, coding)
        self.columns.append(column)
        self.paths[path] = column
        self.stored.append(column)
        return column

    def verdict(self, path: str) -> Column:
        """The column of the verdict on a field."""
        return self.column(inside(path, "ok"), "flag", "uint8")

    def emit(self, column: Column, value: int, present: int | None = None) -> None:
        """Adds a value to a column, or null where ``present`` is 0."""
        if present is not None:
            column.nullable = True
        self.put(steps.Emit(column, value, present))

    # Expressions.

    def operand(self, place: Place) -> int:
        """The register of something that can be read."""
        if isinstance(place, int):
            return place
        field = place.message, place.slot
        if field not in self.picked:
            self.picked[field] = self.fresh(), self.fresh()
            self.put(steps.Pick(*field, *self.picked[field]))
        value, there = self.picked[field]
        if place.aspect == "count":
            return self.let("*", value, there)
        return there if place.aspect == "there" else value

    def all_of(self, places: tuple[Place, ...]) -> int:
        """The register for whether all of these hold."""
        register = self.operand(places[0])
        for place in places[1:]:
            register = self.let("and", register, self.operand(place))
        return register

    def expression(self, tree: Expression, scope: Scope, path: str) -> tuple[int, int, int]:
        """The register with an expression, and its bounds.

        Args:
            path: the field that needs it, for the error.

        Raises:
            Misuse: for what may not be there, for arithmetic that can fail or exceed 64 bits.
        """
        match tree:
            case Literal(value=int(value)) if LOWEST <= value <= HIGHEST:
                return self.constant(int(value)), int(value), int(value)
            case LengthOf(of=Field() as of) if (found := scope.value(self.key, of, path)).length is not None and (
                not found.present and found.unfit != TEXT
            ):
                return self.operand(found.length), 0, LONGEST
            case Field():
                read = scope.value(self.key, tree, path)
                if not read.unfit and not read.present and read.inside is None:
                    return self.operand(read.place), read.low, read.high
                why = read.unfit or ("a field that may be absent" if read.present else "a structure")
                raise unfit(self.key, path, f"an expression over {tree}", why)
            case Operation(symbol="==" | "!=" as symbol, operands=(Field() as left, Literal(value=None))):
                present = scope.value(self.key, left, path).present
                there = self.all_of(present) if present else self.constant(1)
                return self.let("==" if symbol == "==" else "!=", there, self.constant(0)), 0, 1
            case Operation(symbol="==", operands=(Field() as left, Literal(value=int(value)))) if (
                field := scope.value(self.key, left, path)
            ).present and not field.unfit:
                same = self.let("==", self.operand(field.place), self.constant(int(value)))
                return self.let("and", same, self.all_of(field.present)), 0, 1
            case Operation(symbol="not ", operands=(only,)):
                return self.let("==", self.expression(only, scope, path)[0], self.constant(0)), 0, 1
            case Operation(symbol=symbol, operands=(only,)):
                register, low, high = self.expression(only, scope, path)
                if symbol == "+":
                    return register, low, high
                self._within((-high, -low), tree, path)
                return self.let("-", self.constant(0), register), -high, -low
            case Operation(symbol=symbol, operands=(left, right)):
                one, other = self.expression(left, scope, path), self.expression(right, scope, path)
                if symbol in COMPARISONS:
                    return self.let(symbol, one[0], other[0]), 0, 1
                both = bounds(symbol, one[1:], other[1:])
                if both is not None:
                    self._within(both, tree, path)
                    return self.let(symbol, one[0], other[0]), *both
        raise unfit(self.key, path, f"an expression, {tree}, that columns cannot compute")

    def _within(self, both: tuple[int, int], tree: Expression, path: str) -> None:
        if both[0] < LOWEST or both[1] > HIGHEST:
            raise unfit(self.key, path, f"an expression, {tree}, that can exceed 64 bits")

    def amount(self, tree: Expression, scope: Scope, path: str) -> tuple[int, int, int]:
        """The same for a size or a number of elements; a field that is not there is wrong."""
        if isinstance(tree, Field):
            value = scope.value(self.key, tree, path)
            if value.present and not value.unfit:
                fault = self.fault(path, "wrong", f"expected a value for {tree}, found none")
                self.put(steps.Refuse("==", self.all_of(value.present), self.constant(0), fault))
                return self.operand(value.place), value.low, value.high
        return self.expression(tree, scope, path)

    def bytes_of(self, node: ir.Constant, path: str) -> bytes:
        """The bytes that a constant byte string or text has."""
        expected = node.value.value if isinstance(node.value, Literal) else None
        expected = expected.encode() if isinstance(expected, str) else expected
        if not isinstance(expected, bytes):
            raise unfit(self.key, path, node, "of a field that is neither a number nor constant bytes")
        return expected

    def narrow(self, number: ir.Number, path: str, node: ir.Node, noun: str) -> None:
        """A length or count must be in the range of registers."""
        if is_wide(number):
            raise unfit(self.key, path, node, f"a {noun} of 64 bits without sign")

    def structure(self, node: ir.Structure, path: str, scope: Scope) -> Value:
        """Reads or writes a structure."""
        raise NotImplementedError


def _widened(column: Column, dtype: str) -> bool:
    """Makes a column of numbers wide enough for others of a type; False where no type is."""
    if column.dtype == dtype:
        return True
    one, other = (name.rstrip("0123456789") for name in (column.dtype, dtype))
    if {one, other} - {"int", "uint"}:
        return False
    bits = [int(name[len(kind) :]) for name, kind in ((column.dtype, one), (dtype, other))]
    if one != other:
        bits = [2 * size if kind == "uint" else size for size, kind in zip(bits, (one, other), strict=True)]
    if max(bits) > 64:
        return False
    column.dtype = f"{one if one == other else 'int'}{max(bits)}"
    return True
