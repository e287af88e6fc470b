"""The kernel that builds records from columns: nopython source, generated from the IR of one record.

The source is one function, ``build``. It writes record after record; lengths, counts and checksums over the zeros that
were left for them, when what they cover is there. Who calls has reserved room for all byte strings and for all else
that a record can take (``most``). A row that does not fit the layout ends it with the number of a reason.

The columns are those that the scanning kernel of the same layout fills. What has no column there cannot be built here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from wirekit.compiler import ir
from wirekit.compiler.columns_build_protobuf import columns_of, message
from wirekit.compiler.columns_code import CHECKSUMS, agreeing, marks, none_of, reader, wide
from wirekit.compiler.columns_expressions import LONGEST, Scope, Value, expression
from wirekit.compiler.columns_kernel import Column
from wirekit.compiler.columns_plan import in_words
from wirekit.compiler.columns_protobuf import Tables
from wirekit.compiler.expressions import Literal
from wirekit.compiler.source import bare
from wirekit.errors import Misuse

INDENT = 3  # levels inside ``build`` where a record's fields are
MISSING, WHOLE, NULLS = 0, 1, 2  # what ``given`` says of a column: not there, no row is null, some may be
GAPS = "@gap"

HEAD = """\
@njit(nogil=True, cache=True)
def build(table, state):
    \"\"\"Builds rows into o; gives 0 when it is done, 1 when o is full, and the number of a reason less than 0.\"\"\"
{views}
    p, row, rows, room = state[0], state[1], state[2], state[3]
    reason = np.int64(0)
    while row < rows:
        i = np.uint64(row)
        record = p
        while True:  # once; a value that does not fit leaves it early
"""

TAIL = """\
            break
        if reason != 0:
            p = record
            break
        row += 1
    state[0], state[1], state[3] = p, row, room
    return reason
"""


@dataclass(frozen=True, slots=True)
class Builder:
    """The generated function and what its arguments mean.

    Attributes:
        source: the text.
        arrays: (name, dtype) of each array in the table, in order.
        columns: by path.
        reasons: (path, text) by the number that the function gives, less one, as a negative number.
        most: bytes that a record can take at most, without its byte strings.
    """

    source: str
    arrays: list[tuple[str, str]]
    columns: dict[str, Column]
    reasons: list[tuple[str, str]]
    most: int


@dataclass(slots=True)
class _Sums:
    """Where the fields of a structure begin and end, as far as somebody needs it."""

    begins: dict[int, str] = field(default_factory=dict)
    ends: dict[int, str] = field(default_factory=dict)
    places: dict[int, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Writer:
    key: str
    columns: dict[str, Column]
    lines: list[str] = field(default_factory=list)
    depth: int = INDENT
    names: int = 0
    reasons: list[tuple[str, str]] = field(default_factory=list)
    uses: set[str] = field(default_factory=set)
    read: dict[int, Column] = field(default_factory=dict)
    unexplained: list[str] = field(default_factory=list)
    most: int = 0
    messages: dict[str, Tables] = field(default_factory=dict)

    def put(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def fresh(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def fail(self, condition: str, path: str, text: str) -> None:
        """Ends the building if the condition holds."""
        reason = (path, text)
        if reason not in self.reasons:
            self.reasons.append(reason)
        self.put(f"if {condition}:")
        self.put(f"    reason = -{self.reasons.index(reason) + 1}")
        self.put("    break")

    def column(self, path: str) -> Column:
        """A column of that name; from here on its arrays are arguments."""
        column = self.columns[path]
        self.read[column.slot] = column
        return column

    def there(self, column: Column) -> str:
        """The condition that the column has a value in this row."""
        slot = column.slot
        if column.listed:
            return f"(given[{slot}] != {MISSING} and l{slot}[i + np.uint64(1)] > l{slot}[i])"
        return f"(given[{slot}] == {WHOLE} or (given[{slot}] == {NULLS} and v{slot}[i] != 0))"

    def value(self, column: Column, default: str | None) -> str:
        """The variable with the number of this row, or the default where there is no such column."""
        slot, variable = column.slot, self.fresh("n")
        kind = "uint64" if column.dtype == "uint64" else column.dtype if column.dtype[0] == "f" else "int64"
        if default is None:
            self.fail(f"given[{slot}] == {MISSING}", column.path, "there is no such column, and no default")
        else:
            self.put(f"{variable} = np.{kind}({default})")
            self.put(f"if given[{slot}] != {MISSING}:")
            self.depth += 1
        self.fail(f"given[{slot}] == {NULLS} and v{slot}[i] == 0", column.path, "is null, which the layout has not")
        self.put(f"{variable} = np.{kind}(c{slot}[i])")
        self.depth -= default is not None
        return variable

    def number(self, number: ir.Number, value: str) -> None:
        """Writes a number that is known to fit."""
        function = f"put_{reader(number)}"
        self.uses.add(function)
        self.put(f"{function}(o, p, {value})")
        self.put(f"p += {number.size}")
        self.most += number.size

    # One method a kind of node; ``default`` is code for what stands for a column that is not there, or None.

    def node(self, node: ir.Node, path: str, scope: Scope, default: Any = None) -> Value:
        match node:
            case ir.Number():
                value = self.value(self.column(path), _literal(default))
                self.number(node, value)
                return _known(node, value)
            case ir.Boolean(number=ir.Number(real=False) as number):
                value = self.value(self.column(path), _literal(default))
                self.number(number, value)
                return Value(value, 0, 1)
            case ir.Named(number=ir.Number(real=False) as number):
                return self.named(node, number, path, default)
            case ir.BitFields(number=ir.Number(real=False) as number):
                return self.bits(node, number, path, default)
            case ir.Optional():
                if isinstance(node.default, Literal):
                    return self.node(node.node, path, scope, node.default.value)
                return self.node(node.node, path, scope, self.expression(node.default, scope, path)[0])
            case ir.Constant():
                return self.constant(node, path, scope)
            case ir.Blob():
                return self.blob(node, path, scope)
            case ir.Packed():
                return self.blob(node.blob, path, scope)
            case ir.Structure():
                return self.structure(node, path, scope)
            case ir.When():
                return self.when(f"{self.expression(node.condition, scope, path)[0]} != 0", node.node, path, scope)
            case ir.WhenMore():
                return self.when("", node.node, path, scope)
            case ir.Protobuf():
                return message(self, self.messages[path], path)
        raise unfit(self.key, path, node)

    def unfit(self, path: str, kind: str, why: str) -> Misuse:
        """The error for what cannot be built."""
        return unfit(self.key, path, kind, why)

    def named(self, node: ir.Named, number: ir.Number, path: str, default: Any) -> Value:
        column = self.column(path)
        value = self.value(column, _literal(default))
        if node.closed:
            text = f"expected one of {node.table.name}: {', '.join(str(symbol) for symbol in node.table)}"
            self.fail(none_of(value, node.table), path, text)
        elif not wide(number):
            text = f"expected a number in {number.low}..{number.high}"
            self.fail(f"{value} < {number.low} or {value} > {number.high}", path, text)
        self.number(number, value)
        return _known(number, value)

    def bits(self, node: ir.BitFields, number: ir.Number, path: str, default: Any) -> Value:
        columns = [self.column(f"{path}.{bit.name}") for bit in node.fields]
        kind = "uint64" if wide(number) else "int64"
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
        value = self.fresh("n")
        self.put(f"{value} = {self.expression(node.value, scope, path)[0]}")
        if not node.fatal:
            self.kept(path, value)
        self.number(number, value)
        return _known(number, value)

    def kept(self, path: str, value: str) -> None:
        """A number that was read and found bad stays as it was."""
        verdict = self.columns.get(f"{path}.ok")
        if verdict is not None:
            told, stored = self.column(verdict.path), self.column(path)
            bad = f"{self.there(told)} and c{told.slot}[i] == 0"
            self.put(f"if {bad} and {self.there(stored)}:")
            self.put(f"    {value} = np.{'uint' if stored.dtype == 'uint64' else 'int'}64(c{stored.slot}[i])")

    def blob(self, node: ir.Blob, path: str, scope: Scope) -> Value:
        column = self.column(path)
        slot, start, length = column.slot, self.fresh("s"), self.fresh("l")
        nullable = isinstance(node.length, ir.Number) and node.null is not None
        by_number = isinstance(node.length, ir.Number)
        none_is_empty = not by_number and not node.text
        if not nullable:
            if not none_is_empty:
                self.fail(f"given[{slot}] == {MISSING}", path, "there is no such column, and no default")
            self.fail(f"given[{slot}] == {NULLS} and v{slot}[i] == 0", path, "is null, which the layout has not")
        self.put(f"{start} = {length} = np.int64(0)")
        self.put(f"if {self.there(column)}:")
        self.depth += 1
        self.put(f"{start} = o{slot}[i]")
        self.put(f"{length} = o{slot}[i + np.uint64(1)] - {start}")
        out = f"{start} < 0 or {length} < 0 or {length} > d{slot}.size - {start}"
        self.fail(out, path, "its offsets point outside of its data")
        if isinstance(node.length, ir.Number):
            if not wide(node.length):
                text = f"expected at most {node.length.high} bytes"
                self.fail(f"{length} > {node.length.high}", path, text)
            self.depth -= 1
            self.prefix(node, node.length, column, length, nullable)
        else:
            self.depth -= 1
            if node.length is not None:
                self.sized(node, column, start, length, scope)
        if node.text:
            self.decoded(path)
        self.uses.add("copy")
        self.put(f"copy(o, p, d{slot}, {start}, {length})")
        self.put(f"p += {length}")
        if not node.explained:
            self.unexplained.append(length)
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
        wanted, low, _ = self.expression(node.length, scope, column.path)
        size = self.fresh("t")
        self.put(f"{size} = np.int64({wanted})")
        if low < 0:
            self.fail(f"{size} < 0", column.path, "its length would be less than 0")
        if not node.filler:
            missing = "" if node.text else f"given[{column.slot}] != {MISSING} and "
            self.fail(f"{missing}{length} != {size}", column.path, "its length is not what the layout says")
        self.uses.add("zeros")
        self.put(f"if {length} != {size}:")
        self.put(f"    room -= {size}")
        self.put("    if room < 0:")
        self.put("        reason = np.int64(1)")
        self.put("        break")
        self.put(f"    zeros(o, p, {size})")
        self.put(f"    p += {size}")
        self.put(f"    {length} = np.int64(0)")

    def decoded(self, path: str) -> None:
        """Of a text that was not UTF-8 the bytes are not known any more."""
        verdict = self.columns.get(f"{path}.ok")
        if verdict is not None:
            told = self.column(verdict.path)
            text = f"was no UTF-8, so its bytes are lost; without the column {told.path} it is written as it stands"
            self.fail(f"{self.there(told)} and c{told.slot}[i] == 0", path, text)

    def when(self, condition: str, node: ir.Node, path: str, scope: Scope) -> Value:
        """What is there only if the condition holds, or without one, if there is a value."""
        lines, self.lines = self.lines, []
        read, self.read = self.read, {}
        self.depth += 1
        value = self.node(node, path, scope)
        self.depth -= 1
        inside, self.lines = self.lines, lines
        computed = {each.path for each in _computed(self.columns, node, path)}
        told = [each for each in self.read.values() if each.path not in computed]
        self.read = read | self.read
        present = " or ".join(self.there(each) for each in told) or "False"
        self.put(f"if {condition or present}:")
        self.lines += inside
        if condition and told:
            self.put("else:")
            self.depth += 1
            for each in told:
                self.fail(self.there(each), each.path, "has a value, where the layout has none")
            self.depth -= 1
        gone = "a field that may not be there"
        return (
            Value(unfit=gone) if not value.inside else Value(inside={name: Value(unfit=gone) for name in value.inside})
        )

    def structure(self, node: ir.Structure, path: str, scope: Scope) -> Value:
        inner, found = Scope({}, scope), _Sums()
        wanted = {index for index, _ in marks(node)}
        wanted |= {at for measure in node.measures for at in (measure.first, measure.last)}
        derived = _derived(node)
        for index, member in enumerate(node.members):
            name = f"{path}.{member.name}" if path else member.name
            if index in wanted:
                found.begins[index] = self.mark("a")
            if index in derived:
                found.places[index] = self.mark("a")
                number = self.derived(member, name)
                self.put(f"p += {number.size}")
                self.most += number.size
                inner.fields[member.name] = Value(unfit="a number that is computed from what is behind it")
            else:
                inner.fields[member.name] = self.node(member.node, name, inner)
            if index in wanted:
                found.ends[index] = self.mark("z")
        for measure in node.measures:
            self.measure(node, measure, path, found)
        for total in node.sums:
            self.sum(node, total, path, found)
        return Value(inside=inner.fields)

    def mark(self, stem: str) -> str:
        variable = self.fresh(stem)
        self.put(f"{variable} = p")
        return variable

    def derived(self, member: ir.Member, path: str) -> ir.Number:
        """The number of a length or checksum."""
        number = member.node.node if isinstance(member.node, ir.Optional) else member.node
        if not isinstance(number, ir.Number) or number.real:
            raise unfit(self.key, path, member.node, "as a length or checksum to be built")
        return number

    def measure(self, node: ir.Structure, measure: ir.Measure, path: str, found: _Sums) -> None:
        member = node.members[measure.at]
        name = f"{path}.{member.name}" if path else member.name
        number, size = self.derived(member, name), self.fresh("n")
        covered = "0" if measure.first > measure.last else f"{found.ends[measure.last]} - {found.begins[measure.first]}"
        self.put(f"{size} = np.int64({covered} + {measure.add})")
        if measure.exceeds:
            stored = self.column(name)
            self.put(f"if {self.there(stored)} and c{stored.slot}[i] > {size}:")
            self.put(f"    {size} = np.int64(c{stored.slot}[i])")
        if not wide(number):
            self.fail(f"{size} > {number.high}", name, f"what it is the length of has more than {number.high} bytes")
        if measure.bounds and measure.least:
            self.fail(f"{size} < {measure.least}", name, f"it would be less than {measure.least}")
        if agreeing(measure):
            self.kept(name, size)
        self.patched(number, found.places[measure.at], size)

    def patched(self, number: ir.Number, place: str, value: str) -> None:
        function = f"put_{reader(number)}"
        self.uses.add(function)
        self.put(f"{function}(o, {place}, {value})")

    def sum(self, node: ir.Structure, total: ir.Sum, path: str, found: _Sums) -> None:
        member = node.members[total.at]
        name = f"{path}.{member.name}" if path else member.name
        number = self.derived(member, name)
        if total.algorithm not in CHECKSUMS:
            raise unfit(self.key, name, f"a checksum {total.algorithm}", f"columns compute {', '.join(CHECKSUMS)}")
        self.uses.add(total.algorithm)
        start, end = found.begins[total.first], found.ends[total.last]
        covered = bare(node.members[total.first].node)
        if total.content and isinstance(covered, ir.Blob) and isinstance(covered.length, ir.Number):
            start = f"{start} + {covered.length.size}"
        hole = ""
        if total.first <= total.at <= total.last:
            self.uses.add("zeros")
            self.put(f"zeros(o, {found.places[total.at]}, {number.size})")
        if total.algorithm == "internet":
            hole = ", -1"
        value = self.fresh("n")
        self.put(f"{value} = np.{'uint' if wide(number) else 'int'}64({total.algorithm}(o, {start}, {end}{hole}))")
        self.kept(name, value)
        self.patched(number, found.places[total.at], value)

    def expression(self, tree: Any, scope: Scope, path: str) -> tuple[str, int, int]:
        return expression(self.key, tree, scope, path)

    def gaps(self) -> None:
        """Bytes that no field explains are in no column, but for those that are a field of their own."""
        column = self.columns[GAPS]
        total = " + ".join(self.unexplained) or "0"
        self.read[column.slot] = column
        text = "it held bytes that no column has; without this column it is built without them"
        self.fail(f"{self.there(column)} and c{column.slot}[i] != {total}", GAPS, text)


def unfit(key: str, path: str, node: ir.Node | str, why: str = "") -> Misuse:
    """The error for a layout that cannot be built from columns."""
    kind = node if isinstance(node, str) else in_words(node)
    text = f"{key} is not built from columns: {path or 'its layout'} is {kind}{f' ({why})' if why else ''}"
    return Misuse(f"{text}; build it with wirekit.encode")


def _literal(default: Any) -> str | None:
    """A default as code."""
    if isinstance(default, int):
        return str(int(default))
    return default if isinstance(default, str) else repr(default) if isinstance(default, float) else None


def _known(number: ir.Number, value: str) -> Value:
    """What expressions can read of a number."""
    if number.real or wide(number):
        return Value(value, unfit="a float" if number.real else "an unsigned number of 64 bits")
    return Value(value, number.low, number.high)


def _derived(node: ir.Structure) -> set[int]:
    """The indexes of lengths and checksums."""
    return {measure.at for measure in node.measures} | {total.at for total in node.sums}


def _computed(columns: dict[str, Column], node: ir.Node, path: str) -> Iterable[Column]:
    """The columns of what is computed inside a node: lengths, checksums, constants, and all verdicts."""
    yield from (column for name, column in columns.items() if name.endswith(".ok"))
    match node:
        case ir.Optional(node=inner) | ir.When(node=inner) | ir.WhenMore(node=inner):
            yield from _computed(columns, inner, path)
        case ir.Constant() if path in columns:
            yield columns[path]
        case ir.Structure():
            derived = _derived(node)
            for index, member in enumerate(node.members):
                name = f"{path}.{member.name}" if path else member.name
                if index in derived and name in columns:
                    yield columns[name]
                yield from _computed(columns, member.node, name)


def builder(key: str, element: ir.Node, columns: list[Column], messages: list[Tables], *, gaps: bool) -> Builder:
    """The kernel that builds records of one layout.

    Args:
        columns: those of the scanning kernel.
        messages: the protobuf messages that it reads.
        gaps: whether that one counts bytes that no field explains.

    Raises:
        Misuse: when something inside cannot be built; the text names the node and its path.
    """
    known = {column.path: column for column in columns}
    if gaps:
        known[GAPS] = Column(GAPS, "number", "int64", slot=len(columns))
    known |= {column.path: column for column in columns_of(messages, len(columns) + 1)}
    writer = _Writer(key, known, messages={each.path: each for each in messages})
    writer.node(element, "", Scope({}, None))
    if gaps:
        writer.gaps()
    arrays = [("o", "uint8"), ("given", "uint8"), *_arrays(writer.read.values())]
    views = "\n".join(
        f"    {name} = {kind}_at(table, np.int64({2 * index}))" for index, (name, kind) in enumerate(arrays)
    )
    source = _imports(writer.uses, {kind for _, kind in arrays}) + HEAD.format(views=views)
    source += "\n".join(writer.lines) + "\n" + TAIL
    return Builder(source, arrays, {each.path: each for each in writer.read.values()}, writer.reasons, writer.most)


def _arrays(columns: Iterable[Column]) -> list[tuple[str, str]]:
    found = []
    for column in sorted(columns, key=lambda each: each.slot):
        if column.kind in ("bytes", "text"):
            found += [(f"d{column.slot}", "uint8"), (f"o{column.slot}", "int64")]
        else:
            found.append((f"c{column.slot}", column.dtype))
        found.append((f"v{column.slot}", "uint8"))
        found += [(f"l{column.slot}", "int64")] if column.listed else []
    return found


def _imports(uses: set[str], kinds: set[str]) -> str:
    own = {
        "kernels.arrays": {f"{kind}_at" for kind in kinds},
        "kernels.crc": uses & {"crc32", "crc32c"},
        "kernels.reads": uses & {"copy", "internet"},
        "kernels.writes": uses - {"crc32", "crc32c", "copy", "internet"},
    }
    lines = [f"from wirekit.compiler.{name} import {', '.join(sorted(used))}\n" for name, used in own.items() if used]
    return "import numpy as np\nfrom numba import njit\n\n" + "".join(lines) + "\n\n"
