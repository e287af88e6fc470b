"""The kernel that scans records into columns: nopython source, generated from the IR of one record.

The source is one function, ``scan``. It walks over ranges of a buffer, record after record; each field is compared
with the nearest limit before it is read. A field that does not fit ends the record with the number of a reason. If an
enclosing length of the record still tells where the next one begins, the scan goes on there, else the range is done.
Values of fixed size are written where they are read; byte strings are copied when the whole record is known to be
good. When arrays are full the function returns, the caller makes them larger, and calls again.

Nothing is taken silently for something else: a node that has no column is ``Misuse`` with its path.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wirekit.compiler import ir
from wirekit.compiler.columns.choices import holds_records
from wirekit.compiler.columns.expressions import LONGEST, Scope, Value
from wirekit.compiler.columns.kernel import CONTENTS, Kernel, Packing, assembled
from wirekit.compiler.columns.lists import Lists
from wirekit.compiler.columns.loops import COPIES, ROOM, held
from wirekit.compiler.columns.plan import unfit
from wirekit.compiler.columns.shared import parts
from wirekit.compiler.columns.writer import index_of
from wirekit.values import SymbolTable

CHECKSUMS = ("crc32", "crc32c", "internet")
LONGEST_SOURCE = 3_000  # lines of a kernel; one of more would take minutes to compile
MANY_COPIES = 8  # byte strings of a record from which on they are copied in a loop
NARROW = 32  # bits of a number with names, if it fits


@dataclass(slots=True)
class _Writer(Lists):
    """One method a kind of node. ``path`` is the column's name, ``e`` the variable of the nearest limit; ``limit`` is
    the list's own.
    """

    def element(self, node: ir.Node, whole: ir.Node) -> None:
        self.once = parts(whole)
        self.later(self.begun)
        self.node(node, "", "limit", Scope({}, None))
        self.written()
        if self.packing is not None:
            self.put(f"k0[i] = {self.codec}")
        many = len(self.copies) >= MANY_COPIES and not self.lists
        if many and not self.messages and self.contents is None:
            self.copied_by_loop()
            return
        copies = [each for each in self.copies if each.column.within is None]
        room = [f"{each.length} > d{each.column.slot}.size - w{each.column.slot}" for each in copies]
        if room:
            self.put(f"if {' or '.join(room)}:")
            self.put("    full = 2")
            self.put("    break")
        self.kept()
        if self.contents is not None:
            for name, variable in zip(CONTENTS, self.contents.variables, strict=True):
                self.put(f"{name}[i] = {variable}")
        for each in copies:
            self.copied(each)
        self.later(lambda: self.added(None))

    def copied_by_loop(self) -> None:
        """Keeps in one array where byte strings stand, as each is a variable of its own else, and copies in a loop."""
        self.lines = [*held(self.body(), [(each.start, each.length, each.present) for each in self.copies])]
        slots = " ".join(str(each.column.slot) for each in self.copies)
        self.put(ROOM + slots)
        self.put("    full = 2")
        self.put("    break")
        self.put(COPIES + slots)

    def node(self, node: ir.Node, path: str, e: str, scope: Scope, *, checked: bool = False) -> Value:
        match node:
            case ir.Number():
                return self.number(node, path, e, checked)
            case ir.Boolean(number=ir.Number(real=False) as number):
                self.bound(number.size, path, e, checked)
                variable = self.read(number)
                self.store(self.column(path, "flag", "uint8"), f"{variable} != 0")
                return Value(f"np.int64({variable} != 0)", 0, 1)
            case ir.Named(number=ir.Number(real=False) as number):
                return self.named(node, number, path, e, checked)
            case ir.BitFields(number=ir.Number(real=False) as number):
                return self.bits(node, number, path, e, checked)
            case ir.Optional():
                return self.node(node.node, path, e, scope, checked=checked)
            case ir.Constant():
                return self.constant(node, path, e, scope, checked)
            case ir.Blob():
                return self.blob(node, path, e, scope)
            case ir.Structure() if id(node) in self.once and self.maybe:
                return self.met(self.once[id(node)], e)
            case ir.Structure():
                return self.structure(node, path, e, scope)
            case ir.When():
                return self.when(f"{self.expression(node.condition, scope, path)[0]} != 0", node.node, path, e, scope)
            case ir.WhenMore():
                return self.when(f"p < {e}", node.node, path, e, scope)
            case ir.Packed(node=ir.Reference()):
                return self.packed(node, path, e, scope)
            case ir.Protobuf() if self.around is None:
                return self.protobuf(node, path, e)
            case ir.WhenNext():
                return self.next(node, path, e, scope)
            case ir.Either() | ir.Choice() if holds_records(node) and self.around is None:
                return self.content(node, path, e, scope)
            case ir.Either() | ir.Choice():
                return self.choice(node, path, e, scope)
            case ir.Ahead():
                return self.ahead(node, path, e, scope)
            case ir.Bounded():
                return self.bounded(node, path, e, scope)
            case ir.Fallback():
                return self.fallback(node, path, e, scope)
            case ir.Several():
                return self.several(node, path, e, scope)
        raise unfit(self.key, path, node)

    def bound(self, size: int, path: str, e: str, checked: bool) -> None:
        if not checked:
            text = f"needs {size} byte{'' if size == 1 else 's'}, more than there are"
            self.fail(f"{e} - p < {size}", path, "short", text, cut=e == self.cutting)

    def read(self, number: ir.Number) -> str:
        function = reader(number)
        self.uses.add(function)
        unset = "0.0" if number.real else "np.uint64(0)" if wide(number) else "np.int64(0)"
        variable = self.fresh("n", unset)
        self.put(f"{variable} = {function}(b, p)")
        self.put(f"p += {number.size}")
        return variable

    def raw(self, number: ir.Number, path: str, e: str) -> str:
        self.bound(number.size, path, e, False)
        return self.read(number)

    def number(self, node: ir.Number, path: str, e: str, checked: bool) -> Value:
        self.bound(node.size, path, e, checked)
        variable = self.read(node)
        dtype = f"{'float' if node.real else 'int' if node.signed else 'uint'}{8 * node.size}"
        self.store(self.column(path, "number", dtype, unit=node.unit), variable)
        if node.real or wide(node):
            return Value(variable, unfit="a float" if node.real else "an unsigned number of 64 bits")
        return Value(variable, node.low, node.high)

    def named(self, node: ir.Named, number: ir.Number, path: str, e: str, checked: bool) -> Value:
        self.bound(number.size, path, e, checked)
        variable = self.read(number)
        if node.closed:
            text = f"expected one of {node.table.name}: {', '.join(str(symbol) for symbol in node.table)}"
            self.fail(none_of(variable, node.table), path, "wrong", text)
        dtype = named_dtype(8 * number.size + (not number.signed))
        self.store(self.column(path, "number", dtype, node.table), variable)
        if wide(number):
            return Value(variable, unfit="an unsigned number of 64 bits")
        return Value(variable, number.low, number.high)

    def bits(self, node: ir.BitFields, number: ir.Number, path: str, e: str, checked: bool) -> Value:
        self.bound(number.size, path, e, checked)
        variable = self.read(number)
        inside = {}
        for bit in node.fields:
            value = self.fresh("n")
            if wide(number):
                self.put(
                    f"{value} = np.int64({variable} >> np.uint64({bit.shift}) & np.uint64({(1 << bit.width) - 1}))"
                )
                if bit.width > 2 * NARROW - 1:
                    raise unfit(self.key, f"{path}.{bit.name}", "a bit field of 64 bits")
            else:
                self.put(f"{value} = {variable} >> {bit.shift} & {(1 << bit.width) - 1}")
            name = f"{path}.{bit.name}" if path else bit.name
            column = self.column(name, *bit_column(bit))
            self.store(column, value)
            inside[bit.name] = Value(value, 0, (1 << bit.width) - 1)
        return Value(inside=inside)

    def constant(self, node: ir.Constant, path: str, e: str, scope: Scope, checked: bool) -> Value:
        if not _fixed(node.node):
            raise unfit(self.key, path, node, "of a field that is no number")
        value = self.node(node.node, path, e, scope, checked=checked)
        if value.inside is not None or value.unfit:
            raise unfit(self.key, path, node, "of a field that is no plain number")
        expected = self.expression(node.value, scope, path)[0]
        if node.fatal:
            self.fail(f"{value.code} != {expected}", path, "wrong", f"expected {node.value}")
        else:
            self.store(self.column(f"{path}.ok", "flag", "uint8"), f"{value.code} == {expected}")
        return value

    def blob(self, node: ir.Blob, path: str, e: str, scope: Scope) -> Value:
        start, length, present = self.fresh("s"), self.fresh("l"), ""
        text = "needs more bytes than there are"
        nullable = isinstance(node.length, ir.Number) and node.null is not None
        if node.length is None:
            self.put(f"{start}, {length} = p, {e} - p")
        elif isinstance(node.length, ir.Number):
            if wide(node.length):
                raise unfit(self.key, path, node, "a length of 64 bits without sign")
            self.bound(node.length.size, path, e, False)
            size = self.read(node.length)
            if nullable:
                present = self.fresh("h")
                self.put(f"{present} = np.int64({size} > {node.null})")
                self.put(f"{size} = {size} if {present} else np.int64(0)")
            if node.length.signed and (node.null is None or node.null < -1):
                self.fail(f"{size} < 0", path, "wrong", "expected a length of at least 0")
            self.fail(f"{size} > {e} - p", path, "short", text, cut=e == self.cutting)
            self.put(f"{start}, {length} = p, {size}")
        else:
            size, low, _ = self.amount(node.length, scope, path)
            self.put(f"{length} = {size}")
            if low < 0:
                self.fail(f"{length} < 0", path, "wrong", "expected a length of at least 0")
            self.fail(f"{length} > {e} - p", path, "short", text, cut=e == self.cutting)
            self.put(f"{start} = p")
        self.put(f"p += {length}")
        if not node.explained:
            self.gaps = True
            self.put(f"gap0 += {length}")
        column = self.column(path, "text" if node.text else "bytes")
        if self.maybe and not present:
            present = self.fresh("h")
            self.put(f"{present} = np.int64(1)")
        self.copy(column, start, length, present)
        if node.text:
            self.text(column.path, start, length, present if nullable else "")
        return Value(f"np.int64({length})", 0, LONGEST, length=length, unfit="a byte string")

    def text(self, path: str, start: str, length: str, present: str) -> None:
        """The verdict on a text: null where the text is."""
        self.uses.add("is_utf8")
        column = self.column(f"{path}.ok", "flag", "uint8")
        outer = column.nullable
        column.nullable = outer or bool(present)
        at = index_of(column.within)
        self.put(f"c{column.slot}[{at}] = is_utf8(b, {start}, {length})")
        if column.nullable:
            self.put(f"v{column.slot}[{at}] = {present or 1}")

    def packed(self, node: ir.Packed, path: str, e: str, scope: Scope) -> Value:
        if not isinstance(node.node, ir.Reference):
            raise unfit(self.key, path, node, "what is inside is not a schema of its own")
        if node.size is not None:
            raise unfit(self.key, path, node, "its size is told by another field")
        if self.around is not None:  # it is not opened
            self.left_out.append(f"{path}.content")
            return self.blob(node.blob, path, e, scope)
        if self.packing is not None or self.maybe:
            raise unfit(self.key, path, node, "one a record, without a condition, is what columns can open")
        value = self.blob(node.blob, path, e, scope)
        on = [self.expression(part, scope, path)[0] for part in node.on]
        codecs = tuple(dict.fromkeys(name for _, name in node.codecs))
        self.codec = self.fresh("k")
        self.put(f"{self.codec} = 0")
        if not all(isinstance(value, int) for values, _ in node.codecs for value in values):
            raise unfit(self.key, path, node, "its codecs are not told by numbers")
        last = [int(values[-1]) for values, _ in node.codecs]
        self.put(f"if {min(last)} <= {on[-1]} <= {max(last)}:  # most records hold nothing compressed")
        self.depth += 1
        for values, name in node.codecs:
            tests = [f"{code} == {value}" for code, value in zip(on, values, strict=True)]
            self.put(f"if {' and '.join(tests)}:")
            self.put(f"    {self.codec} = {codecs.index(name) + 1}")
        self.depth -= 1
        if self.copies[-1].present:
            self.put(f"if not {self.copies[-1].present}:")
            self.put(f"    {self.codec} = 0")
        self.packing = Packing(self.copies[-1].column.slot, codecs, node.node.key)
        return value

    def structure(self, node: ir.Structure, path: str, e: str, scope: Scope) -> Value:
        inner = Scope({}, scope)
        top = e == "limit" and not path and not self.maybe and self.around is None
        values: list[Value] = []
        begins: dict[int, str] = {}
        ends: dict[int, str] = {}
        limits: list[tuple[int, str, str, str]] = []
        wanted = {index for index, _ in marks(node)}
        run = 0
        for index, member in enumerate(node.members):
            for measure in node.measures:
                self.usual(node, measure, path)
                if measure.bounds and measure.at < measure.first == index <= measure.last:
                    e = self.opened(node, measure, path, e, values, limits, top)
            name = f"{path}.{member.name}" if path else member.name
            if run == 0:
                run, size = _run(node, index, {last for last, *_ in limits})
                if run:
                    self.bound(size, name, e, False)
            if index in wanted:
                begins[index] = self.mark("a")
            if self.loose and index:
                values.append(self.behind(member.node, name, e, inner))
            else:
                values.append(self.node(member.node, name, e, inner, checked=run > 0))
            inner.fields[member.name] = values[-1]
            run -= run > 0
            if index in wanted:
                ends[index] = self.mark("z")
            self.measured(node, index, name, values[-1])
            while limits and limits[-1][0] == index:
                e = self.closed(limits.pop())
        for measure in node.measures:
            if measure.bounds and measure.first > measure.last:
                self.opened(node, measure, path, e, values, limits, top)
                self.closed(limits.pop())
        for measure in node.measures:
            if agreeing(measure):
                self.agreed(node, measure, path, values, begins, ends)
        for total in node.sums:
            self.sum(node, total, path, values, begins, ends)
        for told in node.told:
            self.told(node, told, path, values)
        return Value(inside=inner.fields)

    def usual(self, node: ir.Structure, measure: ir.Measure, path: str) -> None:
        if measure.bounds and measure.first <= measure.at <= measure.last:
            name = node.members[measure.at].name
            raise unfit(self.key, f"{path}.{name}" if path else name, "a length of a special kind", "it covers itself")

    def mark(self, stem: str) -> str:
        variable = self.fresh(stem)
        self.put(f"{variable} = p")
        return variable

    def measured(self, node: ir.Structure, at: int, name: str, value: Value) -> None:
        """What must hold for a length as soon as it is read."""
        for measure in node.measures:
            if measure.at != at or not measure.bounds:
                continue
            if value.unfit or value.inside is not None:
                raise unfit(self.key, name, value.unfit or "a structure", "as a length")
            if value.low < measure.least:
                text = f"expected a length of at least {measure.least}"
                unless = f"{value.code} != 0 and " if measure.zero_is_rest else ""
                self.fail(f"{unless}{value.code} < {measure.least}", name, "wrong", text)
            if measure.frame:
                self.fail(f"{value.code} > frame", name, "limit", "exceeds the limit frame")

    def opened(
        self,
        node: ir.Structure,
        measure: ir.Measure,
        path: str,
        e: str,
        values: list[Value],
        limits: list[tuple[int, str, str, str]],
        top: bool,
    ) -> str:
        """A length begins to bound; gives the variable of the limit."""
        name = node.members[measure.at].name
        limit, size = self.fresh("e"), values[measure.at].code
        less = f" - {measure.add}" if measure.add else ""
        where = f"{path}.{name}" if path else name
        text = "needs more bytes than there are"
        if measure.zero_is_rest or measure.clip:
            self.clipped(measure, where, f"{size}{less}", size, limit, e)
        if not measure.clip:
            unless = f"{size} != 0 and " if measure.zero_is_rest else ""
            self.fail(f"{unless}{size}{less} > {e} - p", where, "short", text, cut=e == self.cutting)
        if not (measure.zero_is_rest or measure.clip):
            self.put(f"{limit} = p + {size}{less}")
        if top and measure.last == len(node.members) - 1 and measure.first <= measure.last:
            self.put(f"after = {limit}")
        limits.append((measure.last, limit, e, size if measure.zero_is_rest else ""))
        return limit

    def clipped(self, measure: ir.Measure, name: str, covered: str, size: str, limit: str, e: str) -> None:
        """A length that may be 0, for all that is left, or more than there is."""
        self.put(f"{limit} = min(p + {covered}, {e})")
        if measure.zero_is_rest:
            self.put(f"if {size} == 0:")
            self.put(f"    {limit} = {e}")
        if measure.clip:
            fits = f"{covered} <= {e} - p" + (f" or {size} == 0" if measure.zero_is_rest else "")
            verdict = "np.int64(1)" if measure.exceeds else f"np.int64({fits})"
            self.store(self.column(f"{name}.ok", "flag", "uint8"), verdict)

    def closed(self, entry: tuple[int, str, str, str]) -> str:
        """A length's bytes are over; gives the limit around it."""
        _, limit, outer, unless = entry
        self.gaps = True
        if unless:  # 0: there is no limit of its own
            self.put(f"if {unless} != 0:")
            self.put(f"    gap0, p = gap0 + {limit} - p, {limit}")
        else:
            self.put(f"gap0 += {limit} - p")
            self.put(f"p = {limit}")
        return outer

    def agreed(
        self,
        node: ir.Structure,
        measure: ir.Measure,
        path: str,
        values: list[Value],
        begins: dict[int, str],
        ends: dict[int, str],
    ) -> None:
        """A length that is only verified."""
        member = node.members[measure.at]
        name = f"{path}.{member.name}" if path else member.name
        value = values[measure.at]
        if value.unfit or value.inside is not None:
            raise unfit(self.key, name, value.unfit or "a structure", "as a length")
        covered = f"{ends[measure.last]} - {begins[measure.first]}"
        actual = f"{covered} + {measure.add}" if measure.add else covered
        self.verdict(name, value.present, f"{value.code} {'>=' if measure.exceeds else '=='} {actual}")

    def sum(
        self,
        node: ir.Structure,
        total: ir.Sum,
        path: str,
        values: list[Value],
        begins: dict[int, str],
        ends: dict[int, str],
    ) -> None:
        member = node.members[total.at]
        name = f"{path}.{member.name}" if path else member.name
        number = member.node
        while isinstance(number, (ir.When, ir.WhenMore, ir.Optional)):
            number = number.node
        if not isinstance(number, ir.Number) or number.real:
            raise unfit(self.key, name, number, "as a checksum")
        if total.algorithm not in CHECKSUMS:
            raise unfit(self.key, name, f"a checksum {total.algorithm}", f"columns verify {', '.join(CHECKSUMS)}")
        self.uses.add(total.algorithm)
        start, end = begins[total.first], ends[total.last]
        if total.content:
            content = values[total.first]
            if not content.length or total.first != total.last:
                raise unfit(self.key, name, "a checksum of the content of what is no byte string")
            start = f"{end} - {content.length}"
        within = total.first <= total.at <= total.last
        if within and total.algorithm != "internet":
            raise unfit(self.key, name, f"a {total.algorithm} that covers itself")
        hole = f", {begins[total.at] if within else -1}" if total.algorithm == "internet" else ""
        stored = values[total.at].code
        if number.size < 8:
            stored = f"{stored} & {(1 << 8 * number.size) - 1}"
        value = f"np.{'uint' if wide(number) else 'int'}64({total.algorithm}(b, {start}, {end}{hole}))"
        if number.size < 4 and total.algorithm != "internet":
            raise unfit(self.key, name, f"a {total.algorithm} in {number.size} bytes")
        self.verdict(name, values[total.at].present, f"({stored}) == {value}")

    def verdict(self, name: str, present: str, condition: str) -> None:
        """Whether a number is right, where it is there."""

        def verified() -> Value:
            self.store(self.column(f"{name}.ok", "flag", "uint8"), condition)
            return Value()

        if present:
            self.arms([(present, verified)])
        else:
            verified()


def named_dtype(bits: int) -> str:
    """The type of the column of a number that has names, which may need one bit for the sign."""
    return "int32" if bits <= NARROW else "int64" if bits <= 2 * NARROW else "uint64"


def bit_column(bit: ir.BitField) -> tuple[str, str, SymbolTable | None]:
    """(kind, type, names) of the column of a bit field."""
    if bit.table is not None:
        return "number", "int32" if bit.width < NARROW else "int64", bit.table
    if bit.width == 1:
        return "flag", "uint8", None
    return "number", f"uint{next(size for size in (8, 16, 32, 64) if size >= bit.width)}", None


def reader(number: ir.Number) -> str:
    kind = "float" if number.real else "int" if number.signed else "uint"
    return f"{kind}{8 * number.size}" + ("" if number.size == 1 else "_le" if number.little else "_be")


def wide(number: ir.Number) -> bool:
    """Whether an int64 cannot hold it."""
    return number.size == 8 and not number.signed and not number.real


def none_of(variable: str, table: SymbolTable) -> str:
    """The condition that a number has no name."""
    values = sorted(int(symbol) for symbol in table)
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][1] + 1:
            runs[-1][1] = value
        else:
            runs.append([value, value])
    tests = [f"{variable} == {low}" if low == high else f"{low} <= {variable} <= {high}" for low, high in runs]
    return f"not ({' or '.join(tests)})" if tests else "True"


def _fixed(node: ir.Node) -> int:
    """Bytes of a node that always takes as many, 0 for others."""
    match node:
        case ir.Number(size=size):
            return size
        case ir.Boolean(number=inner) | ir.Named(number=inner) | ir.BitFields(number=inner):
            return _fixed(inner)
        case ir.Constant(node=inner) | ir.Optional(node=inner):
            return _fixed(inner)
    return 0


def _refusing(node: ir.Node) -> bool:
    """Whether a number can be wrong by itself."""
    match node:
        case ir.Named(closed=closed):
            return closed
        case ir.Constant(fatal=fatal, node=inner):
            return fatal or _refusing(inner)
        case ir.Optional(node=inner):
            return _refusing(inner)
    return False


def _run(node: ir.Structure, index: int, closing: set[int]) -> tuple[int, int]:
    """How many members from ``index`` on are compared with the limit at once, and their bytes.

    The run ends behind a member that can be wrong by itself, which comes before the end of the bytes, and where a
    limit begins or ends.
    """
    count = size = 0
    for at in range(index, len(node.members)):
        member = node.members[at].node
        begins = count and any(measure.first == at and measure.bounds for measure in node.measures)
        if not _fixed(member) or begins:
            break
        count += 1
        size += _fixed(member)
        if _refusing(member) or at in closing or any(measure.at == at and measure.bounds for measure in node.measures):
            break
    return count, size


def agreeing(measure: ir.Measure) -> bool:
    """Whether a length bounds nothing and is only verified."""
    return measure.last < measure.at or (not measure.bounds and measure.last > measure.at)


def marks(node: ir.Structure) -> Iterator[tuple[int, str]]:
    """Members of which somebody needs to know where they begin or end."""
    for measure in node.measures:
        if agreeing(measure):
            yield measure.first, "begin"
            yield measure.last, "end"
    for total in node.sums:
        yield from ((index, "sum") for index in (total.at, total.first, total.last))


def kernel(key: str, element: ir.Node, whole: ir.Node | None = None) -> Kernel:
    """The kernel for records of one layout.

    Args:
        whole: the layout with all choices, of which some are made in ``element``; it decides what is read once.

    Raises:
        Misuse: when something inside has no column; the text names the node and its path.

    >>> from wirekit.compiler.lower import lower
    >>> from wirekit.wire import Bytes, Struct, int16, int32
    >>> made = kernel("example", lower(Struct("number" / int32, "name" / Bytes(int16, null=-1))))
    >>> [(column.path, column.kind, column.nullable) for column in made.columns]
    [('number', 'number', False), ('name', 'bytes', True)]
    """
    writer = _Writer(key)
    writer.element(element, element if whole is None else whole)
    size = len(writer.body())
    if size > LONGEST_SOURCE:
        why = f"alternatives inside of alternatives make a kernel of {size:,} lines"
        raise unfit(key, "", element, why)
    return assembled(
        writer.columns,
        writer.reasons,
        writer.packing,
        writer.body(),
        writer.uses,
        gaps=writer.gaps,
        may_be_empty=ir.minimum(element) == 0,
        messages=writer.messages,
        contents=writer.contents,
        lists=writer.lists,
        left_out=writer.left_out,
    )
