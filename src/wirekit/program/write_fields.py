"""Writes the fields of a record: numbers, bit fields, constants, byte strings, text.

Their columns are those that the read program of the same layout fills.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from wirekit.compiler import ir
from wirekit.compiler.expressions import Literal
from wirekit.program import write_steps as steps
from wirekit.program.choices import Choices
from wirekit.program.columns import Column
from wirekit.program.facts import bit_column, column_of, holds_bytes, is_wide, names_of
from wirekit.program.steps import ROW, Body, Fault, Let, OneOf, Test
from wirekit.program.unfit import unfit
from wirekit.program.values import HIGHEST, LONGEST, LOWEST, Scope, Value, value_of
from wirekit.wire.blobs import ZEROS

ABSENT = "the column is missing, and the field has no default"
NULL = "is null, which the layout does not allow"
OUTSIDE = "its offsets point outside its data"


@dataclass(slots=True)
class Fields(Choices):
    """A method for each kind of field; a default is a number, a mapping of bit fields, or a computed ``Value``.

    Attributes:
        paths: the columns of the read program.
        read: columns that are read, by slot.
        always: slots of the columns that every record reads.
        watched: (slot, path) of columns that only some records read; other records must have no value there.
        stamps: by slot, a register with the index of the last value that was read.
        computed: slots of the columns of lengths and checksums; ``constant_slots`` those of constants.
        element: by the number of a list, the register with the index of its element.
    """

    read: dict[int, Column] = field(default_factory=dict)
    always: set[int] = field(default_factory=set)
    watched: dict[int, str] = field(default_factory=dict)
    stamps: dict[int, int] = field(default_factory=dict)
    computed: set[int] = field(default_factory=set)
    constant_slots: set[int] = field(default_factory=set)
    element: dict[int, int] = field(default_factory=dict)

    DEFAULTED = (ir.Number, ir.Interpreted, ir.Delimited, ir.Conditional, ir.Several)

    def fresh(self, default: int = 0) -> int:
        """A new register; if a condition may leave it unset, its readers check that condition first."""
        return self.register()

    def fault(self, path: str, kind: str, text: str) -> Fault:
        return self.refusal(path, text)

    def refusal(self, path: str, text: str) -> Fault:
        """The fault for a refused row."""
        return Choices.fault(self, path, "refused", text)

    # Columns.

    def column(self, path: str, like: Column | None = None) -> Column:
        """The column at a path; it counts as read from now on.

        Args:
            like: a column with such values, if alternatives have columns at one path; the column may be wider.
        """
        column = self.find_column(path, like)
        assert column is not None, path
        return self.reading(column)

    def find_column(self, path: str, like: Column | None = None) -> Column | None:
        """The column at a path, as for ``column``, or None; it does not count as read."""
        candidates = (each for name, each in self.paths.items() if name == path or _is_other(name, path))
        fitting = [each for each in candidates if each.within is self.around]
        fitting = [each for each in fitting if like is None or _holds(each, like)]
        exact = (each for each in fitting if each.path == path or each.dtype == (like.dtype if like else ""))
        return next(exact, next(iter(fitting), None))

    def reading(self, column: Column) -> Column:
        """Marks a column as read."""
        self.read[column.slot] = column
        if not self.maybe:
            self.always.add(column.slot)
        elif not column.is_verdict:
            self.watched[column.slot] = column.path
            if column.slot not in self.stamps:
                self.stamps[column.slot] = self.register()
            self.add_step(Let(self.stamps[column.slot], "=", self.index(column)))
        return column

    def index(self, column: Column) -> int:
        """The register with the index of a column's current value."""
        return ROW if column.within is None else self.element[column.within.number]

    def look(self, column: Column) -> tuple[int, int]:
        """Registers with the value of a column, and whether it has one."""
        value, present = self.register(), self.register()
        self.add_step(steps.Look(column, self.index(column), value, present))
        return value, present

    def has_value(self, *columns: Column, in_batch: bool = False) -> int:
        """The register for whether one of several columns has a value, or is in the batch at all."""
        if not columns:
            return self.constant(0)
        to = self.register()
        self.add_step(steps.AnyOf(to, self.index(columns[0]), in_batch, list(columns)))
        return to

    def bad(self, verdict: Column) -> int:
        """The register for whether a verdict is false."""
        value, present = self.look(verdict)
        return self.let("and", present, self.let("==", value, self.constant(0)))

    # Numbers.

    def default(self, node: ir.Optional, scope: Scope, path: str) -> Any:
        """The default of an optional field, as for ``Fields``."""
        if isinstance(node.default, Literal):
            return node.default.value
        return Value(self.expression(node.default, scope, path)[0])

    def take(self, column: Column, default: Any, **more: Any) -> int:
        """The register with a number of a column, or with the default if the column is missing."""
        to, register = self.register(), None
        if isinstance(default, Value):
            register = self.operand(default.place)
        elif isinstance(default, float):
            register = self.constant(int(np.array(default, column.dtype).view(f"int{column.dtype[5:]}")))
        elif isinstance(default, int):
            register = self.constant(int(default) - (1 << 64 if default > HIGHEST else 0))
        absent, null = self.refusal(column.path, ABSENT), self.refusal(column.path, NULL)
        self.add_step(steps.Take(column, self.index(column), to, register, absent, null, **more))
        return to

    def visit_Optional(self, node: ir.Optional, path: str, scope: Scope) -> Value:
        default = self.default(node, scope, path)
        if isinstance(node.node, ir.Blob) and isinstance(default, str | bytes):
            return self.optional_bytes(node.node, default, path, scope)
        return self.node(node.node, path, scope, default)

    def visit_Number(self, node: ir.Number, path: str, scope: Scope, default: Any) -> Value:
        column = self.column(path, column_of(node))
        if node.real and isinstance(default, Value):
            raise unfit(self.key, path, node, "its default is computed")
        default = float(default) if node.real and default is not None else default
        return value_of(node, self.take(column, default, number=node, **self.narrower(column, node)))

    def visit_Boolean(self, node: ir.Boolean, path: str, scope: Scope, default: Any) -> Value:
        return Value(self.take(self.column(path, column_of(node)), default, number=node.number), 0, 1)

    def bounds(self, column: Column, low: int, high: int) -> dict[str, Any]:
        """The arguments of a step that refuses numbers outside the range of the layout."""
        return {"low": low, "high": high, "wrong": self.refusal(column.path, f"expected a number in {low}..{high}")}

    def narrower(self, column: Column, number: ir.Number) -> dict[str, Any]:
        """The result of ``bounds`` for a number of the layout; empty if its range is that of the column."""
        narrow = not (number.real or is_wide(number)) and 8 * np.dtype(column.dtype).itemsize > number.bits
        return self.bounds(column, number.low, number.high) if narrow else {}

    def visit_Named(self, node: ir.Named, path: str, scope: Scope, default: Any) -> Value:
        number, column = node.number, self.column(path, column_of(node))
        if not node.closed:
            bounds = {} if is_wide(number) else self.bounds(column, number.low, number.high)
            return value_of(number, self.take(column, default, number=number, **bounds))
        text, ranges = names_of(node.table)
        fault = self.refusal(path, text)
        if len(ranges) == 1:
            low, high = ranges[0]
            return value_of(number, self.take(column, default, number=number, low=low, high=high, wrong=fault))
        value = self.take(column, default)
        self.add_step(OneOf(value, fault, ranges))
        self.add_step(steps.Store(number, value))
        return value_of(number, value)

    def visit_BitFields(self, node: ir.BitFields, path: str, scope: Scope, default: Any) -> Value:
        columns = [self.column(ir.inner_path(path, bit.name), bit_column(bit)) for bit in node.fields]
        parted = node.parted(default) if isinstance(default, int | Mapping) else {}
        none = None
        if any(parted.values()):  # the default applies if the batch has none of these columns
            none = self.let("==", self.has_value(*columns, in_batch=True), self.constant(0))
        parts, values = [], {}
        for bit, column in zip(node.fields, columns, strict=True):
            usual: Any = int(parted.get(bit.name, 0))
            if usual and none is not None:
                usual = Value(self.let("*", none, self.constant(usual)))
            value = self.take(column, usual, **self.bounds(column, 0, bit.most))
            parts.append((value, bit.shift))
            values[bit.name] = Value(value, 0, bit.most)
        self.add_step(steps.Join(node.number, parts))
        return Value(inside=values)

    def visit_Constant(self, node: ir.Constant, path: str, scope: Scope) -> Value:
        """Writes a constant; the batch may have no other value for it."""
        number = node.node
        while isinstance(number, (ir.Named, ir.Boolean, ir.Optional)):
            number = number.node if isinstance(number, ir.Optional) else number.number
        if (column := self.constant_column(node, path)) is not None:
            self.constant_slots.add(self.reading(column).slot)
        if isinstance(number, ir.Blob):
            return self.constant_bytes(node, number, path, scope)
        if not isinstance(number, ir.Number) or number.real:
            raise unfit(self.key, path, node, "its field is not a plain number")
        value = self.let("=", self.expression(node.value, scope, path)[0])
        if not node.fatal:
            self.was(path, value, number, column)
        self.add_step(steps.Store(number, value))
        return value_of(number, value)

    def constant_column(self, node: ir.Constant, path: str) -> Column | None:
        """The column of a constant; alternatives may have others at its path."""
        like = column_of(node.node.node if isinstance(node.node, ir.Optional) else node.node)
        return self.find_column(path, like if like.kind else None)

    def constant_bytes(self, node: ir.Constant, blob: ir.Blob, path: str, scope: Scope) -> Value:
        expected = self.bytes_of(node, path)
        length = self.constant(len(expected))
        prefix = [steps.Store(blob.length, length)] if isinstance(blob.length, ir.Number) else []
        usual: Body = [*prefix, steps.Text(expected)]
        if node.fatal:
            self.body += usual
        else:
            with self.block() as other:
                self.visit_Blob(blob, path, scope)
            bad = self.bad(self.column(ir.inner_path(path, "ok")))
            self.add_step(Test("!=", bad, self.constant(0), other, usual))
        return Value(length, 0, LONGEST, length=length, unfit="a byte string")

    def was(self, path: str, value: int, number: ir.Number, stored: Column | None = None) -> None:
        """Keeps a number that was found wrong on reading; ``stored`` is its column if it has a meaning."""
        verdict = self.column(ir.inner_path(path, "ok"))
        stored = stored or self.column(path, column_of(number))
        bounds = self.narrower(stored, number)
        self.add_step(steps.Was(value, verdict, stored, self.index(stored), **bounds))

    # Byte strings.

    def visit_Blob(self, node: ir.Blob, path: str, scope: Scope, *, null: bool = False) -> Value:
        """Writes bytes or text; ``null`` if a null is allowed as well."""
        column = self.column(path, column_of(node))
        prefix = node.length if isinstance(node.length, ir.Number) else None
        step = self.bytes(column)
        if prefix is None or node.null is None:
            step.absent = self.refusal(path, ABSENT) if prefix is not None or column.kind == "text" else None
            step.null = None if null else self.refusal(path, NULL)
        if prefix is not None:
            step.number, step.nothing = prefix, node.null
            if not is_wide(prefix):
                step.most, step.over = prefix.high, self.refusal(path, f"expected at most {prefix.high} bytes")
        self.add_step(step)
        length = step.length
        if prefix is None and node.length is not None:
            step.copy = False
            length = self.sized(node, column, step, scope)
        if not node.explained:
            self.unexplained(length)
        present = () if node.null is None else (column,)
        measured = length if holds_bytes(node) else None
        return Value(length, 0, LONGEST, length=measured, unfit="a byte string", present=present)

    def optional_bytes(self, node: ir.Blob, default: str | bytes, path: str, scope: Scope) -> Value:
        """Writes bytes or text, or the default if the column is missing."""
        data = default if isinstance(default, bytes) else default.encode(errors="surrogateescape")
        if node.coding is not None:
            data = node.coding.encode(default)
        column, length, present = self.column(path, column_of(node)), self.register(), self.register()
        with self.block() as from_column:
            value = self.visit_Blob(node, path, scope)
            self.add_step(Let(length, "=", self.operand(value.place)))
            self.add_step(Let(present, "=", self.has_value(column)))
        with self.block() as missing:
            self.add_step(Let(length, "=", self.constant(len(data))))
            self.add_step(Let(present, "=", self.constant(1)))
            if isinstance(node.length, ir.Number):
                self.add_step(steps.Store(node.length, length))
            elif node.length is not None:
                differs = self.let("!=", length, self.amount(node.length, scope, path)[0])
                self.fail("!=", differs, 0, path, "the size of its default differs from the one the layout requires")
            self.add_step(steps.Text(data))
        self.add_step(Test("!=", self.has_value(column, in_batch=True), self.constant(0), from_column, missing))
        measured = None if value.length is None else length
        return replace(value, place=length, length=measured, present=(present,) if value.present else ())

    def bytes(self, column: Column) -> steps.Bytes:
        """The step that takes the bytes of a column."""
        outside = self.refusal(column.path, OUTSIDE)
        step = steps.Bytes(column, self.index(column), self.register(), self.register(), None, None, outside)
        verdict = self.find_column(ir.inner_path(column.path, "ok")) if column.kind == "text" else None
        if verdict is not None:
            step.verdict = self.reading(verdict)
            encoding = "UTF-8" if column.coding is None else column.coding.name
            text = f"was not {encoding}, so its bytes are lost; without the column {verdict.path} the text is written"
            step.lost = self.refusal(column.path, text)
        return step

    def sized(self, node: ir.Blob, column: Column, step: steps.Bytes, scope: Scope) -> int:
        """Writes a byte string whose length is an expression; zeros without a column."""
        assert node.length is not None
        assert not isinstance(node.length, ir.Number)
        size, low, _ = self.amount(node.length, scope, column.path)
        if low < 0:
            self.fail("<", size, 0, column.path, "its length would be less than 0")
        with self.block() as other:
            if not node.filler:
                in_batch = self.constant(1) if column.kind == "text" else self.has_value(column, in_batch=True)
                self.fail("!=", in_batch, 0, column.path, "its length differs from the one the layout requires")
            self.fail(">", size, ZEROS, column.path, f"it would be more than {ZEROS} zeros")
            self.add_step(steps.Reserve(size))
        self.add_step(Test("!=", step.length, size, other, [steps.CopyBytes(column, step.start, step.length)]))
        return size

    def visit_Delimited(self, node: ir.Delimited, path: str, scope: Scope, default: Any) -> Value:
        if node.decimal:
            value = self.take(self.column(path, column_of(node)), default)
            self.add_step(steps.Digits(value))
            self.add_step(steps.Text(node.end))
            return Value(value, LOWEST, HIGHEST)
        column = self.column(path, column_of(node))
        step = self.bytes(column)
        step.absent, step.null, step.copy = self.refusal(path, ABSENT), self.refusal(path, NULL), False
        self.add_step(step)
        text = f"expected text without {node.end!r}{' in one line' if node.lines else ''}"
        self.add_step(steps.OneLine(column, step.start, step.length, self.refusal(path, text), node.lines, node.end))
        self.add_step(steps.CopyBytes(column, step.start, step.length))
        self.add_step(steps.Text(node.end))
        return Value(unfit="a text")


def _is_other(name: str, path: str) -> bool:
    """Whether a column belongs to an alternative with another type at the same path."""
    return name.startswith(f"{path}:") and "." not in name[len(path) :]


def _holds(column: Column, like: Column) -> bool:
    """Whether a column can hold such values, or wider ones."""
    if not column.is_like(like):
        return False
    if column.dtype == like.dtype or like.kind != "number":
        return True
    return "float" not in column.dtype + like.dtype and np.can_cast(like.dtype, column.dtype)
