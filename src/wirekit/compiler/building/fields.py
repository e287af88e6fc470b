"""The fields of a record in the kernel that builds: numbers, bit fields, constants, byte strings.

Their columns are those that the scanning kernel of the same layout fills. What has no column there cannot be built.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wirekit.compiler import ir
from wirekit.compiler.building.choices import Choices
from wirekit.compiler.building.expressions import Scope, Value, expression, index_of, none_of, reader
from wirekit.compiler.building.inputs import MISSING, NULLS
from wirekit.compiler.building.kernel import INDENT, Reason, unfit
from wirekit.compiler.building.tables import Built
from wirekit.compiler.expressions import Expression, Field, Literal
from wirekit.program.columns import Column, Repeated
from wirekit.program.facts import bit_column, is_wide, named_dtype
from wirekit.program.values import LONGEST
from wirekit.values import SymbolTable

ABSENT = "there is no such column, and no default"
NULL = "is null, which the layout has not"


@dataclass(slots=True)
class Fields(Choices):
    """One method a kind of field; ``default`` is code for what stands for a column that is not there, or None.

    Attributes:
        columns: all that the scanning kernel has, by path.
        read: those that are read, by slot.
        most: bytes that a record, or an element, takes at most, without byte strings, messages and lists.
        walked: (number, path) of the messages that are written.
        opened: the path of the field that holds records, or "".
        maybe: whether what is written now stands behind a condition.
        always: slots of columns that every record reads.
        watched: (slot, path) of what only some records read: the others must not have a value.
        computed: slots of the columns of lengths and checksums.
        constants: slots of those of constants.
        around: the list that what is written now is an element of.
    """

    key: str
    columns: dict[str, Column]
    lines: list[str] = field(default_factory=list)
    depth: int = INDENT
    names: int = 0
    reasons: list[Reason] = field(default_factory=list)
    uses: set[str] = field(default_factory=set)
    read: dict[int, Column] = field(default_factory=dict)
    most: int = 0
    messages: list[Built] = field(default_factory=list)
    walked: list[tuple[int, str]] = field(default_factory=list)
    opened: str = ""
    maybe: bool = False
    always: set[int] = field(default_factory=set)
    watched: dict[int, str] = field(default_factory=dict)
    computed: set[int] = field(default_factory=set)
    constants: set[int] = field(default_factory=set)
    around: Repeated | None = None

    def put(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def fresh(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def fail(self, condition: str, path: str, text: str) -> None:
        """Ends the building if the condition holds."""
        self.put(f"if {condition}:")
        self.put(f"    reason = -{self.reason(path, text)}")
        self.put("    break")

    def reason(self, path: str, text: str) -> int:
        """The number of a reason."""
        reason = Reason(path, text, self.around)
        if reason not in self.reasons:
            self.reasons.append(reason)
        return self.reasons.index(reason) + 1

    def column(self, path: str, kind: str = "", dtype: str = "", table: SymbolTable | None = None) -> Column:
        """A column of that name; from here on its arrays are arguments.

        Args:
            kind, dtype, table: what it holds, where alternatives may have columns of one path: it may be wider.
        """
        column = self.known(path, kind, dtype, table)
        assert column is not None, path
        return self.reading(column)

    def known(self, path: str, kind: str = "", dtype: str = "", table: SymbolTable | None = None) -> Column | None:
        """The column of that name, as ``column``, or None; nothing is read of it."""
        several = (each for name, each in self.columns.items() if name == path or _is_other(name, path))
        fitting = (each for each in several if each.within is self.around)
        return next((each for each in fitting if not kind or _holds(each, kind, dtype, table)), None)

    def reading(self, column: Column) -> Column:
        """Notes that a column is read."""
        self.read[column.slot] = column
        if not self.maybe:
            self.always.add(column.slot)
        elif not column.path.endswith(".ok"):
            self.watched[column.slot] = column.path
            self.put(f"seen[{column.slot}] = {'row' if column.within is None else self.at(column)}")
        return column

    def at(self, column: Column) -> str:
        """The variable for where the value of a column stands that is written now."""
        return index_of(column.within)

    def bad(self, verdict: Column) -> str:
        """The condition that a verdict says so."""
        return f"{self.there(verdict)} and c{verdict.slot}[{self.at(verdict)}] == 0"

    def numbers(self, number: ir.Number, path: str) -> Column:
        """The column of a number."""
        return self.column(path, "number", _dtype(number))

    def there(self, column: Column) -> str:
        """The condition that the column has a value in this row."""
        return self.call("there", column)

    def call(self, function: str, column: Column, *more: str) -> str:
        """A call of a function of ``kernels.values``."""
        self.uses.add(function)
        told = f"given, np.int64({column.slot}), v{column.slot}, {self.at(column)}"
        return f"{function}({', '.join([told, *more])})"

    def null(self, column: Column) -> str:
        """The condition that the column is there and has no value in this row."""
        return f"given[{column.slot}] == {NULLS} and v{column.slot}[{self.at(column)}] == 0"

    def room(self, size: str) -> None:
        """Ends the building for now if so many bytes have no room."""
        self.put(f"room -= {size}")
        self.put("if room < 0:")
        self.put("    reason = np.int64(1)")
        self.put("    break")

    def expression(self, tree: Any, scope: Scope, path: str) -> tuple[str, int, int]:
        return expression(self.key, tree, scope, path)

    def amount(self, tree: Expression, scope: Scope, path: str) -> tuple[str, int, int]:
        """The same for a size or a number of elements; a field that is not there is wrong."""
        if isinstance(tree, Field):
            found = scope.value(self.key, tree, path)
            if found.present and not found.unfit:
                self.fail(f"not {found.present}", path, f"expected a value for {tree}, found none")
                return found.code, found.low, found.high
        return self.expression(tree, scope, path)

    def value(self, column: Column, default: str | None) -> str:
        """The variable with the number of this row, or the default where there is no such column."""
        slot, variable = column.slot, self.fresh("n")
        kind = "uint64" if column.dtype == "uint64" else column.dtype if column.dtype[0] == "f" else "int64"
        if default is None:
            self.required(column)
        else:
            self.put(f"{variable} = np.{kind}({default})")
            self.put(f"if given[{slot}] != {MISSING}:")
            self.depth += 1
            self.fail(self.null(column), column.path, NULL)
        self.put(f"{variable} = np.{kind}(c{slot}[{self.at(column)}])")
        self.depth -= default is not None
        return variable

    def required(self, column: Column) -> None:
        """Refuses a value that is not there."""
        lack, missing, null = self.fresh("t"), self.reason(column.path, ABSENT), self.reason(column.path, NULL)
        self.put(f"{lack} = {self.call('lacks', column)}")
        self.put(f"if {lack} != 0:")
        self.put(f"    reason = np.int64(-{missing} if {lack} == 1 else -{null})")
        self.put("    break")

    def number(self, number: ir.Number, value: str) -> None:
        """Writes a number that is known to fit."""
        function = f"put_{reader(number)}"
        self.uses.add(function)
        self.put(f"{function}(o, p, {value})")
        self.put(f"p += {number.size}")
        self.most += number.size

    def default(self, node: ir.Optional, scope: Scope, path: str) -> Any:
        """What stands for a column that is not there."""
        if isinstance(node.default, Literal):
            return node.default.value
        return self.expression(node.default, scope, path)[0]

    def plain(self, node: ir.Number | ir.Boolean | ir.Named | ir.BitFields, path: str, default: Any) -> Value:
        """A number, whatever it means."""
        match node:
            case ir.Number():
                column = self.numbers(node, path)
                value = self.value(column, _literal(default))
                if not (node.real or is_wide(node)) and int(column.dtype.lstrip("uint")) > 8 * node.size:
                    self.within(node, value, column.path)
                self.number(node, value)
                return known(node, value)
            case ir.Boolean(number=ir.Number(real=False) as number):
                value = self.value(self.column(path, "flag", "uint8"), _literal(default))
                self.number(number, value)
                return Value(value, 0, 1)
            case ir.Named(number=ir.Number(real=False) as number):
                return self.named(node, number, path, default)
            case ir.BitFields(number=ir.Number(real=False) as number):
                return self.bits(node, number, path, default)
        raise unfit(self.key, path, node)

    def within(self, number: ir.Number, value: str, path: str) -> None:
        """Refuses a value that the number cannot hold."""
        text = f"expected a number in {number.low}..{number.high}"
        self.fail(f"{value} < {number.low} or {value} > {number.high}", path, text)

    def named(self, node: ir.Named, number: ir.Number, path: str, default: Any) -> Value:
        column = self.column(path, "number", named_dtype(8 * number.size + (not number.signed)), node.table)
        value = self.value(column, _literal(default))
        if node.closed:
            text = f"expected one of {node.table.name}: {', '.join(str(symbol) for symbol in node.table)}"
            self.fail(none_of(value, node.table), path, text)
        elif not is_wide(number):
            self.within(number, value, path)
        self.number(number, value)
        return known(number, value)

    def bits(self, node: ir.BitFields, number: ir.Number, path: str, default: Any) -> Value:
        names = [f"{path}.{bit.name}" if path else bit.name for bit in node.fields]
        columns = [self.column(name, *bit_column(bit)) for name, bit in zip(names, node.fields, strict=True)]
        kind = "uint64" if is_wide(number) else "int64"
        known = dict(default) if isinstance(default, Mapping) else {}
        if isinstance(default, int):
            known = {bit.name: default >> bit.shift & (1 << bit.width) - 1 for bit in node.fields}
        some = ""
        if any(known.values()):  # they hold when nothing is told about the field at all
            some = self.fresh("h")
            self.put(f"{some} = {' or '.join(f'given[{column.slot}] != {MISSING}' for column in columns)}")
        whole, inside = self.fresh("n"), {}
        self.put(f"{whole} = np.{kind}(0)")
        for bit, column in zip(node.fields, columns, strict=True):
            number_of = known.get(bit.name, 0)
            value = self.value(column, f"0 if {some} else {int(number_of)}" if number_of else "0")
            text = f"expected a number in 0..{(1 << bit.width) - 1}"
            self.fail(f"{value} < 0 or {value} > {(1 << bit.width) - 1}", column.path, text)
            self.put(f"{whole} |= np.{kind}({value}) << np.{kind}({bit.shift})")
            inside[bit.name] = Value(value, 0, (1 << bit.width) - 1)
        self.number(number, whole)
        return Value(inside=inside)

    def constant(self, node: ir.Constant, path: str, scope: Scope) -> Value:
        """What always holds one value has it, unless the batch says that it was another one."""
        number = node.node
        while isinstance(number, (ir.Named, ir.Boolean, ir.Optional)):
            number = number.node if isinstance(number, ir.Optional) else number.number
        if not isinstance(number, ir.Number) or number.real:
            raise unfit(self.key, path, node, "of a field that is no plain number")
        if (column := self.known(path)) is not None:
            self.constants.add(self.reading(column).slot)
        value = self.fresh("n")
        self.put(f"{value} = {self.expression(node.value, scope, path)[0]}")
        if not node.fatal:
            self.kept(path, value)
        self.number(number, value)
        return known(number, value)

    def kept(self, path: str, value: str, number: ir.Number | None = None) -> None:
        """A number that was read and found bad stays as it was.

        Args:
            number: of a length or checksum, as alternatives may have several of one path.
        """
        verdict = self.known(f"{path}.ok")
        if verdict is not None:
            told = self.reading(verdict)
            stored = self.column(path) if number is None else self.numbers(number, path)
            kind = "uint" if stored.dtype == "uint64" else "int"
            self.put(f"if {self.bad(told)} and {self.there(stored)}:")
            self.depth += 1
            self.put(f"{value} = np.{kind}64(c{stored.slot}[{self.at(stored)}])")
            if number is not None and not is_wide(number) and stored.dtype != _dtype(number):
                self.within(number, value, stored.path)
            self.depth -= 1

    def blob(self, node: ir.Blob, path: str, scope: Scope, *, null: bool = False) -> Value:
        """Bytes or text; ``null`` when that means none, too."""
        column = self.column(path, "text" if node.text else "bytes")
        slot, start, length = column.slot, self.fresh("s"), self.fresh("l")
        nullable = isinstance(node.length, ir.Number) and node.null is not None
        by_number = isinstance(node.length, ir.Number)
        none_is_empty = not by_number and not node.text
        if not nullable and not none_is_empty and not null:
            self.required(column)
        elif not nullable:
            if not none_is_empty:
                self.fail(f"given[{slot}] == {MISSING}", path, ABSENT)
            if not null:
                self.fail(self.null(column), path, NULL)
        if node.text:
            self.decoded(column.path)
        self.put(f"{start}, {length} = {self.call('piece', column, f'o{slot}', f'd{slot}')}")
        self.fail(f"{length} < 0", path, "its offsets point outside of its data")
        if isinstance(node.length, ir.Number):
            if not is_wide(node.length):
                text = f"expected at most {node.length.high} bytes"
                self.fail(f"{length} > {node.length.high}", path, text)
            self.prefix(node, node.length, column, length, nullable)
        elif node.length is not None:
            self.sized(node, column, start, length, scope)
        self.uses.add("copy")
        self.put(f"copy(o, p, d{slot}, {start}, {length})")
        self.put(f"p += {length}")
        if not node.explained:
            self.put(f"gap0 += {length}")
        return Value(f"np.int64({length})", 0, LONGEST, length=length, unfit="a byte string")

    def prefix(self, node: ir.Blob, number: ir.Number, column: Column, length: str, nullable: bool) -> None:
        told = length
        if nullable and node.null != 0:
            told = self.fresh("t")
            self.put(f"{told} = {length} if {self.there(column)} else np.int64({node.null})")
        self.number(number, told)

    def sized(self, node: ir.Blob, column: Column, start: str, length: str, scope: Scope) -> None:
        """A byte string whose length an expression tells: zeros where there is no such column."""
        assert node.length is not None
        assert not isinstance(node.length, ir.Number)
        wanted, low, _ = self.amount(node.length, scope, column.path)
        size = self.fresh("t")
        self.put(f"{size} = np.int64({wanted})")
        if low < 0:
            self.fail(f"{size} < 0", column.path, "its length would be less than 0")
        if not node.filler:
            missing = "" if node.text else f"given[{column.slot}] != {MISSING} and "
            self.fail(f"{missing}{length} != {size}", column.path, "its length is not what the layout says")
        self.uses.add("zeros")
        self.put(f"if {length} != {size}:")
        self.depth += 1
        self.room(size)
        self.put(f"zeros(o, p, {size})")
        self.put(f"p += {size}")
        self.put(f"{length} = np.int64(0)")
        self.depth -= 1

    def decoded(self, path: str) -> None:
        """Of a text that was not UTF-8 the bytes are not known any more."""
        verdict = self.known(f"{path}.ok")
        if verdict is not None:
            told = self.reading(verdict)
            text = f"was no UTF-8, so its bytes are lost; without the column {told.path} it is written as it stands"
            self.fail(self.bad(told), path, text)


def _dtype(number: ir.Number) -> str:
    return f"{'float' if number.real else 'int' if number.signed else 'uint'}{8 * number.size}"


def _is_other(name: str, path: str) -> bool:
    """Whether a column is that of an alternative that holds another type than the one of that path."""
    return name.startswith(f"{path}:") and "." not in name[len(path) :]


def _holds(column: Column, kind: str, dtype: str, table: SymbolTable | None) -> bool:
    """Whether a column holds such values, or wider ones."""
    if (column.kind, column.table) != (kind, table):
        return False
    if column.dtype == dtype or kind != "number":
        return True
    has, wants = column.dtype.rstrip("0123456789"), dtype.rstrip("0123456789")
    bits, wanted = int(column.dtype[len(has) :]), int(dtype[len(wants) :])
    return "float" not in (has, wants) and (has, wants) != ("uint", "int") and bits >= wanted + (has != wants)


def _literal(default: Any) -> str | None:
    """A default as code."""
    if isinstance(default, int):
        return str(int(default))
    return default if isinstance(default, str) else repr(default) if isinstance(default, float) else None


def known(number: ir.Number, value: str) -> Value:
    """What expressions can read of a number."""
    if number.real or is_wide(number):
        return Value(value, unfit="a float" if number.real else "an unsigned number of 64 bits")
    return Value(value, number.low, number.high)
