"""State shared by all code that emits steps: the steps, registers, columns, reasons and expressions of a record."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

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
from wirekit.program import steps
from wirekit.program.columns import FLAG, Column, Contents, Reason, Repeated
from wirekit.program.facts import is_wide
from wirekit.program.messages import Tables
from wirekit.program.steps import FIRST_FREE, Body
from wirekit.program.unfit import unfit
from wirekit.program.values import HIGHEST, LONGEST, LOWEST, Place, Scope, Value
from wirekit.wire.blobs import BEGIN, POSITION

SHORT = "needs more bytes than there are"
TEXT = "a text"
"""Why expressions cannot read text; its length is in characters there, in bytes in a program."""


@dataclass(slots=True, eq=False)
class Program:
    """The steps that read a record of a layout, and its columns.

    Attributes:
        steps: the steps that read a record.
        columns: the columns, in the order of the fields.
        reasons: by the number of a fault, less one; the last one is that of an empty record.
        packing: the column with further records of the layout, or None.
        contents: the column with records of another layout, or None.
        gaps: whether bytes can be left over inside a record.
        messages: the protobuf messages of a record.
        lists: the lists inside a record, outer first.
        left_out: paths without a column.
        hidden: columns of the scan itself, by name.
        registers: number of registers; ``constants`` has those of constants, by number.
        may_be_empty: whether a record can have no bytes, which is an error.
    """

    steps: Body = field(default_factory=list)
    columns: list[Column] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)
    packing: Contents | None = None
    contents: Contents | None = None
    gaps: bool = False
    messages: list[Tables] = field(default_factory=list)
    lists: list[Repeated] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    hidden: dict[str, Column] = field(default_factory=dict)
    registers: int = FIRST_FREE
    constants: dict[int, int] = field(default_factory=dict)
    may_be_empty: bool = False


@dataclass(slots=True, eq=False)
class Maker(Program):
    """Builds the program of one record: a method ``visit_<Node>`` for each kind of node.

    Attributes:
        DEFAULTED: kinds of nodes whose methods take a default.
        key: the schema, for errors.
        body: the list that receives steps.
        paths: the columns by path; ``numbers`` has the number of each reason.
        maybe: whether the current node depends on a condition.
        defaults: (register, value) of registers that the condition may leave unset.
        merging: columns of another alternative that the current one may share.
        stored: columns that received values, which a failed attempt must remove.
        around: the list whose element is read now; ``entered`` are the lists that begin in it.
        limit: register of the limit for the current node.
        cutting: the limit at which the last record, or element, may be incomplete without an error.
        checked: whether the bytes of the current number were already compared with the limit.
        content_registers: the registers of ``columns.CONTENTS``, by name.
        walked: (number, register for its presence) of each message.
        picked: registers of fields of messages that later steps can reuse.
    """

    key: str = ""
    body: Body = field(default_factory=list)
    paths: dict[str, Column] = field(default_factory=dict)
    numbers: dict[Reason, int] = field(default_factory=dict)
    maybe: bool = False
    defaults: list[tuple[int, int]] = field(default_factory=list)
    merging: list[Column] = field(default_factory=list)
    stored: list[Column] = field(default_factory=list)
    around: Repeated | None = None
    entered: list[Repeated] = field(default_factory=list)
    limit: int = steps.RANGE
    cutting: int = steps.RANGE
    checked: bool = False
    content_registers: dict[str, int] = field(default_factory=dict)
    walked: list[tuple[int, int]] = field(default_factory=list)
    picked: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

    DEFAULTED: ClassVar[tuple[type[ir.Node], ...]] = ()

    def node(self, node: ir.Node, path: str, scope: Scope, default: Any = None) -> Value:
        """Emits the steps that read or write a node; its columns have the name ``path``.

        Args:
            default: the default to write if the columns are missing.

        Raises:
            Misuse: columns cannot hold the node.
        """
        visit = getattr(self, f"visit_{type(node).__name__}", None)
        if visit is None:
            raise unfit(self.key, path, node)
        value: Value = visit(node, path, scope, *([default] if isinstance(node, self.DEFAULTED) else []))
        return value

    def add_step(self, step: steps.Step) -> None:
        """Adds a step."""
        self.body.append(step)

    @contextmanager
    def block(self) -> Iterator[Body]:
        """A context manager: steps emitted inside go into a body of their own."""
        with self.during(body=[], picked=dict(self.picked)):
            yield self.body

    def register(self) -> int:
        """A new register that only steps set."""
        self.registers += 1
        return self.registers - 1

    @contextmanager
    def during(self, **state: Any) -> Iterator[None]:
        """A context manager: attributes have other values inside."""
        outer = {name: getattr(self, name) for name in state}
        for name, value in state.items():
            setattr(self, name, value)
        try:
            yield
        finally:
            for name, value in outer.items():
                setattr(self, name, value)

    def fresh(self, default: int = 0) -> int:
        """A new register; if a condition may leave it unset, it is first set to the default."""
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
        """A new register with the result of a computation."""
        to = self.fresh()
        self.add_step(steps.Let(to, symbol, left, right))
        return to

    def mark(self) -> int:
        """A new register with the position."""
        register = self.fresh()
        self.add_step(steps.Mark(register))
        return register

    def begins(self, start: int, end: int, value: bytes) -> int:
        """A new register for whether the bytes between two positions begin with a value."""
        to = self.fresh()
        self.add_step(steps.Begins(to, start, end, value))
        return to

    def clear(self, defaults: list[tuple[int, int]]) -> None:
        """Sets registers to their defaults."""
        if defaults:
            self.add_step(steps.Clear(dict(defaults)))

    def fault(self, path: str, kind: str, text: str) -> steps.Fault:
        """The fault for a reason; a short record may be the incomplete last record of a list."""
        reason = Reason(path, kind, text, self.around)
        if reason not in self.numbers:
            self.reasons.append(reason)
            self.numbers[reason] = len(self.reasons)
        return steps.Fault(self.numbers[reason], kind == "short" and self.limit == self.cutting)

    def fail(self, symbol: str, left: int, right: int, path: str, text: str) -> None:
        """Ends the record, or refuses the row, if a comparison with a number holds."""
        self.add_step(steps.Refuse(symbol, left, self.constant(right), self.fault(path, "wrong", text)))

    def bound(self, size: int, path: str) -> None:
        """Requires a number of bytes."""
        self.add_step(steps.Need(size, self.limit, self.needs(size, path)))

    def needs(self, size: int, path: str) -> steps.Fault:
        """The fault if fewer bytes are left."""
        return self.fault(path, "short", f"needs {size} byte{'' if size == 1 else 's'}, more than there are")

    def load(self, number: ir.Number, path: str) -> steps.Load | steps.Varint:
        """Emits the reading of a number; the returned step has its register, and can take a column."""
        step: steps.Load | steps.Varint
        if number.groups:
            short = self.fault(path, "short", SHORT)
            wrong = self.fault(path, "wrong", f"expected a varint of at most {number.bits} bits")
            step = steps.Varint(number, self.fresh(), self.limit, short, wrong)
        else:
            if not self.checked:
                self.bound(number.size, path)
            step = steps.Load(number, self.fresh())
        self.add_step(step)
        return step

    def fits(self, size: int, path: str, least: int = 1) -> None:
        """Requires that a number of bytes, or of elements of ``least`` bytes, is left."""
        self.add_step(steps.Fit(size, least, self.limit, self.fault(path, "short", SHORT)))

    def not_negative(self, register: int, path: str, noun: str = "length") -> None:
        """Requires that a length or count is at least 0."""
        self.fail("<", register, 0, path, f"expected a {noun} of at least 0")

    def number_in_front(
        self, node: ir.Blob | ir.Several, number: ir.Number, path: str, noun: str
    ) -> tuple[int, int | None]:
        """Reads a length or count; returns its register (0 for null), and the register for whether it is not null."""
        self.refuse_wide(number, path, node, noun)
        size, present = self.load(number, path).to, None
        if node.null is not None:
            null = self.constant(node.null)
            present = self.let(">", size, null)
            self.add_step(steps.Test("<=", size, null, [steps.Let(size, "=", self.constant(0))]))
        if number.signed and (node.null is None or node.null < -1):
            self.not_negative(size, path, noun)
        return size, present

    def unexplained(self, size: int) -> None:
        """Counts bytes that no field explains."""
        self.add_step(steps.Let(steps.EXTRA, "+", steps.EXTRA, size))

    def column(self, path: str, like: Column) -> Column:
        """A new column like one without a place, or that of an alternative with the same path and content."""
        for column in self.merging:
            here = column.path == path and column.within is self.around
            if here and column.is_like(like) and _widened(column, like.dtype):
                self.stored.append(column)
                return column
        if path in self.paths:
            if not any(column.path == path for column in self.merging):
                raise unfit(self.key, path, "a second column of that name")
            return self.column(f"{path}:{like.dtype or like.kind}", like)
        column = replace(like, path=path, slot=len(self.columns), nullable=self.maybe, sparse=self.maybe)
        column.within = self.around
        self.columns.append(column)
        self.paths[path] = column
        self.stored.append(column)
        return column

    def verdict(self, path: str) -> Column:
        """The column of the verdict on a field."""
        return self.column(ir.inner_path(path, "ok"), FLAG)

    def emit(self, column: Column, value: int, present: int | None = None) -> None:
        """Appends a value to a column, or null if ``present`` is 0."""
        if present is not None:
            column.nullable = True
        self.add_step(steps.Emit(column, value, present))

    # Expressions.

    def operand(self, place: Place) -> int:
        """The register of a value."""
        if isinstance(place, int):
            return place
        assert not isinstance(place, Column), "only for rows that are built"
        field = place.message, place.slot
        if field not in self.picked:
            self.picked[field] = self.fresh(), self.fresh()
            self.add_step(steps.Pick(*field, *self.picked[field]))
        value, present = self.picked[field]
        if place.aspect == "count":
            return self.let("*", value, present)
        return present if place.aspect == "present" else value

    def all_of(self, places: tuple[Place, ...]) -> int:
        """The register for whether all of these hold."""
        if not places:
            return self.constant(1)
        register = self.operand(places[0])
        for place in places[1:]:
            register = self.let("and", register, self.operand(place))
        return register

    def expression(self, tree: Expression, scope: Scope, path: str) -> tuple[int, int, int]:
        """The register with the value of an expression, and its bounds.

        Args:
            path: the field that needs it, for the error.

        Raises:
            Misuse: a field may be absent, or the arithmetic can fail or exceed 64 bits.
        """
        match tree:
            case Literal(value=int(value)) if LOWEST <= value <= HIGHEST:
                return self.constant(int(value)), int(value), int(value)
            case LengthOf(of=Field() as of) if (field := scope.value(self.key, of, path)).length is not None and (
                field.unfit != TEXT
            ):
                self.require(field, tree, path)
                return self.operand(field.length), 0, LONGEST
            case Field():
                read = scope.value(self.key, tree, path)
                if not read.unfit and not read.present and read.inside is None:
                    return self.operand(read.place), read.low, read.high
                why = read.unfit or ("a field that may be absent" if read.present else "a structure")
                raise unfit(self.key, path, f"an expression over {tree}", why)
            case Operation(symbol="==" | "!=" as symbol, operands=(Field() as left, Literal(value=None))):
                exists = self.all_of(scope.value(self.key, left, path).present)
                return self.let("==" if symbol == "==" else "!=", exists, self.constant(0)), 0, 1
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
        """Like ``expression``, for a size or a number of elements; an absent field is wrong."""
        begin = None if scope.outer is None else scope.outer.fields.get(BEGIN)
        if begin is not None and any(field.names == (POSITION,) for field in fields_of(tree)):
            scope.fields[POSITION] = Value(self.let("-", self.mark(), self.operand(begin.place)), 0, LONGEST)
        if isinstance(tree, Field):
            value = scope.value(self.key, tree, path)
            if value.present and not value.unfit:
                self.require(value, tree, path)
                return self.operand(value.place), value.low, value.high
        return self.expression(tree, scope, path)

    def require(self, value: Value, tree: Expression, path: str) -> None:
        """Refuses records in which a value is absent that an expression needs."""
        if value.present:
            self.fail("==", self.all_of(value.present), 0, path, f"expected a value for {tree}, found none")

    def require_operands(self, tree: Expression, scope: Scope, path: str) -> None:
        """Refuses records in which a value is absent that an expression computes with."""
        for each in operands_of(tree):
            if isinstance(each, Operation) and each.symbol not in COMPARISONS:
                for field in (operand for operand in each.operands if isinstance(operand, Field)):
                    self.require(scope.value(self.key, field, path), tree, path)

    def bytes_of(self, node: ir.Constant, path: str) -> bytes:
        """The bytes of a constant byte string or text."""
        expected = node.value.value if isinstance(node.value, Literal) else None
        expected = expected.encode(errors="surrogateescape") if isinstance(expected, str) else expected
        if not isinstance(expected, bytes):
            raise unfit(self.key, path, node, "its field is neither a number nor constant bytes")
        return expected

    def refuse_wide(self, number: ir.Number, path: str, node: ir.Node, noun: str) -> None:
        """Checks that a length or count is in the range of registers."""
        if is_wide(number):
            raise unfit(self.key, path, node, f"its {noun} is an unsigned number of 64 bits; declare a signed one")

    def structure(self, node: ir.Structure, path: str, scope: Scope) -> Value:
        """Emits the steps for a structure."""
        raise NotImplementedError


def _widened(column: Column, dtype: str) -> bool:
    """Widens a column of numbers for the values of another type; False if no type holds both."""
    if column.dtype == dtype:
        return True
    both = np.promote_types(column.dtype, dtype)
    if both.kind not in "iu":
        return False
    column.dtype = both.name
    return True
