"""What all parts of the kernel's writer share: lines, variables, columns, and how a record ends early."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from wirekit.compiler import ir
from wirekit.compiler.columns.expressions import Scope, Value, expression
from wirekit.compiler.columns.kernel import INDENT, Column, Contents, Packing, Reason, Repeated
from wirekit.compiler.columns.plan import unfit
from wirekit.compiler.columns.protobuf import Tables
from wirekit.compiler.expressions import Expression, Field
from wirekit.values import SymbolTable


@dataclass(slots=True)
class Copy:
    """A byte string to be copied when the record is good: its column, and the variables for where it stands."""

    column: Column
    start: str
    length: str
    present: str


@dataclass(frozen=True, slots=True)
class Later:
    """A place for lines that depend on what comes after them."""

    depth: int
    lines: Callable[[], Iterable[str]]

    def written(self) -> list[str]:
        return ["    " * self.depth + line for line in self.lines()]


def index_of(group: Repeated | None) -> str:
    """The variable for where an element of a list stands in its arrays; None: where the row does."""
    return "i" if group is None else f"lj{group.number}"


@dataclass(slots=True)
class Writer:
    """The source of one record, as it grows.

    Attributes:
        maybe: whether what is written now stands behind a condition.
        merging: columns that an alternative to what is written now has, and which it may share.
        stored: columns that were written to, for who has to take them back.
        loose: what is put off, and tells where ``p`` should stand; see ``columns.shared``.
        lists: those of the record; ``around`` is the one that what is written now is an element of, and ``entered``
            are those that begin in it.
        cutting: the variable of the limit that may cut the last record, or element, without an error.
        left_out: paths that get no column.
    """

    key: str
    lines: list[str | Later] = field(default_factory=list)
    depth: int = INDENT
    names: int = 0
    columns: list[Column] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    defaults: list[str] = field(default_factory=list)
    maybe: bool = False
    merging: list[Column] = field(default_factory=list)
    stored: list[Column] = field(default_factory=list)
    loose: list[Any] = field(default_factory=list)
    packing: Packing | None = None
    codec: str = ""
    contents: Contents | None = None
    messages: list[Tables] = field(default_factory=list)
    walked: list[str] = field(default_factory=list)
    gaps: bool = False
    uses: set[str] = field(default_factory=set)
    lists: list[Repeated] = field(default_factory=list)
    around: Repeated | None = None
    entered: list[Repeated] = field(default_factory=list)
    cutting: str = "limit"
    left_out: list[str] = field(default_factory=list)

    def put(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def later(self, lines: Callable[[], Iterable[str]]) -> None:
        """Lines that are known when the record is."""
        self.lines.append(Later(self.depth, lines))

    def body(self) -> list[str]:
        """All lines."""
        found: list[str] = []
        for line in self.lines:
            found += line.written() if isinstance(line, Later) else [line]
        return found

    def fresh(self, stem: str, value: str = "np.int64(0)") -> str:
        """A new variable; one that a condition may leave unset gets this value first."""
        self.names += 1
        name = f"{stem}{self.names}"
        if self.maybe:
            self.defaults.append(f"{name} = {value}")
        return name

    def fail(self, condition: str, path: str, kind: str, text: str, *, cut: bool = False) -> None:
        """Ends the record if the condition holds; ``cut`` when it is the list's own limit that comes too early."""
        reason = Reason(path, kind, text)
        if reason not in self.reasons:
            self.reasons.append(reason)
        number = self.reasons.index(reason) + 1
        self.put(f"if {condition}:")
        self.put(f"    reason = {'-' if cut else ''}{number}")
        self.put("    break")

    def column(
        self, path: str, kind: str, dtype: str = "", table: SymbolTable | None = None, unit: str | None = None
    ) -> Column:
        """A new column, or that of an alternative, which has the same path and holds the same."""
        for column in self.merging:
            same = column.path == path and column.within is self.around
            same &= (column.kind, column.table, column.unit) == (kind, table, unit)
            if same and _widened(column, dtype):
                self.stored.append(column)
                return column
        if any(column.path == path for column in self.columns):
            if not any(column.path == path for column in self.merging):
                raise unfit(self.key, path, "a second column of that name")
            return self.column(f"{path}:{dtype or kind}", kind, dtype, table, unit)
        column = Column(path, kind, dtype, self.maybe, table, len(self.columns), unit, within=self.around)
        self.columns.append(column)
        self.stored.append(column)
        return column

    def store(self, column: Column, value: str) -> None:
        """Writes a value that is there now; the row is only counted when the record is good."""
        at = index_of(column.within)
        self.put(f"c{column.slot}[{at}] = {value}")
        if column.nullable:
            self.put(f"v{column.slot}[{at}] = 1")

    def copy(self, column: Column, start: str, length: str, present: str) -> None:
        """Has a byte string copied when the record is good."""
        for each in self.copies:
            if each.column is column:
                self.put(f"{each.start}, {each.length}, {each.present} = {start}, {length}, {present or 1}")
                return
        column.nullable = bool(present)
        self.copies.append(Copy(column, start, length, present))

    def copied(self, each: Copy) -> None:
        slot = each.column.slot
        if each.column.nullable:
            self.put(f"v{slot}[i] = {each.present}")
        self.uses.add("copy")
        self.put(f"copy(d{slot}, w{slot}, b, {each.start}, {each.length})")
        self.put(f"w{slot} += {each.length}")
        self.put(f"o{slot}[i + np.uint64(1)] = w{slot}")

    def node(self, node: ir.Node, path: str, e: str, scope: Scope, *, checked: bool = False) -> Value:
        """Reads a node, at ``p`` and before the limit in the variable ``e``, into columns called ``path``."""
        raise NotImplementedError

    def blob(self, node: ir.Blob, path: str, e: str, scope: Scope) -> Value:
        """Reads bytes or text."""
        raise NotImplementedError

    def expression(self, tree: Expression, scope: Scope, path: str) -> tuple[str, int, int]:
        """Code that gives an int64, and its bounds."""
        return expression(self.key, tree, scope, path)

    def amount(self, tree: Expression, scope: Scope, path: str) -> tuple[str, int, int]:
        """The same for a size or a number of elements; a field that is not there is wrong."""
        if isinstance(tree, Field):
            found = scope.value(self.key, tree, path)
            if found.present and not found.unfit:
                self.fail(f"not {found.present}", path, "wrong", f"expected a value for {tree}, found none")
                return found.code, found.low, found.high
        return self.expression(tree, scope, path)


def _widened(column: Column, dtype: str) -> bool:
    """Makes a column of numbers wide enough for others of a type; False where no type is."""
    if column.dtype == dtype:
        return True
    one, other = (dtype_of.rstrip("0123456789") for dtype_of in (column.dtype, dtype))
    if {one, other} - {"int", "uint"}:
        return False
    bits = [int(dtype_of[len(kind) :]) for dtype_of, kind in ((column.dtype, one), (dtype, other))]
    if one != other:
        bits = [2 * size if kind == "uint" else size for size, kind in zip(bits, (one, other), strict=True)]
    if max(bits) > 64:
        return False
    column.dtype = f"{one if one == other else 'int'}{max(bits)}"
    return True
