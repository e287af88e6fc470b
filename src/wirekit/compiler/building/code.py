"""The kernel that builds records from columns: nopython source, generated from the IR of one record.

The source is one function, ``build``. It writes record after record; lengths, counts and checksums over the zeros that
were left for them, when what they cover is there. Who calls has reserved room for all byte strings and for all else
that a record can take (``most``), and gives more for messages when the function asks. A row that does not fit the
layout ends it with the number of a reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from wirekit.checksums import checksum
from wirekit.compiler import ir
from wirekit.compiler.building.choices import Chosen
from wirekit.compiler.building.expressions import Scope, Value
from wirekit.compiler.building.fields import known
from wirekit.compiler.building.kernel import CHOSEN, GAPS, INDENT, Builder, Listed, assembled, unfit
from wirekit.compiler.building.lists import Lists
from wirekit.compiler.building.protobuf import message
from wirekit.compiler.building.tables import Built
from wirekit.compiler.expressions import Expression
from wirekit.compiler.source import bare
from wirekit.program.columns import Column, Repeated
from wirekit.program.facts import holds_records, is_verified_only, is_wide, marked
from wirekit.program.messages import tables
from wirekit.program.parts import parts
from wirekit.program.unfit import Unfit
from wirekit.wire.derived import innermost_first
from wirekit.wire.protobuf import Message

LONGEST_SOURCE = 3_000  # lines of a kernel; one of more would take minutes to compile


@dataclass(slots=True)
class _Sums:
    """Where the fields of a structure begin and end, as far as somebody needs it; which may not be there, and when."""

    begins: dict[int, str] = field(default_factory=dict)
    ends: dict[int, str] = field(default_factory=dict)
    places: dict[int, str] = field(default_factory=dict)
    present: dict[int, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Open:
    """A structure that is being written; ``wanted`` are the members whose begin and end somebody needs."""

    node: ir.Structure
    path: str
    scope: Scope
    wanted: set[int]
    found: _Sums = field(default_factory=_Sums)


@dataclass(slots=True)
class _Writer(Lists):
    """One method a kind of node."""

    def node(self, node: ir.Node, path: str, scope: Scope, default: Any = None) -> Value:
        match node:
            case ir.Number() | ir.Boolean() | ir.Named() | ir.BitFields():
                return self.plain(node, path, default)
            case ir.Optional():
                return self.node(node.node, path, scope, self.default(node, scope, path))
            case ir.Constant():
                return self.constant(node, path, scope)
            case ir.Blob():
                return self.blob(node, path, scope)
            case ir.Packed():
                return self.blob(node.blob, path, scope)
            case ir.Structure() if id(node) in self.once and self.maybe:
                return self.met(self.once[id(node)])
            case ir.Structure():
                return self.structure(node, path, scope)
            case ir.When():
                return self.when(f"{self.expression(node.condition, scope, path)[0]} != 0", node.node, path, scope)
            case ir.WhenMore():
                return self.when("", node.node, path, scope)
            case ir.WhenNext(node=ir.Constant() as inner):
                return self.alone(inner, path, scope, default)
            case ir.WhenNext():
                return self.when("", node.node, path, scope, constants=True)
            case ir.Protobuf():
                return self.protobuf(node, path)
            case ir.Either() | ir.Choice() if holds_records(node) and self.around is None:
                return self.content(node, path, scope)
            case ir.Either() | ir.Choice():
                return self.choice(node, path, scope)
            case ir.Ahead():
                return self.ahead(node, path, scope)
            case ir.Bounded():
                return self.bounded(node, path, scope)
            case ir.Fallback():
                return self.fallback(node, path, scope)
            case ir.Several():
                return self.several(node, path, scope, default)
        raise unfit(self.key, path, node)

    def protobuf(self, node: ir.Protobuf, path: str) -> Value:
        number = self.message(node, path)
        self.walked.append((number, path))
        if self.maybe:
            self.some.add(number)
            self.put(f"seen[{self.stamp(number)}] = row")
        return message(self, self.messages[number], number, path)

    def message(self, node: ir.Protobuf, path: str) -> int:
        """The number of the message at a path."""
        for number, built in enumerate(self.messages):
            if built.tables.path == path:
                return number
        self.messages.append(Built(tables(self.key, node, path, 0), Message._known[node.message]))
        return len(self.messages) - 1

    # A field that holds records: what of it is to be written is found out by a first run of the kernel.

    def content(self, node: ir.Either | ir.Choice, path: str, scope: Scope) -> Value:
        codec, listed, count, size, opaque = (self.fresh("k") for _ in range(5))
        self.opened = path
        found = Chosen((), None, (codec, listed, count, size), opaque)
        self.put("if choosing:")
        self.depth += 1
        self.put(f"{codec}, {listed}, {count}, {size}, {opaque} = 0, 0, np.int64(0), np.int64(-1), 0")
        self.branch(node, path, scope, found)
        self.put(f"{', '.join(f'{name}[i]' for name in CHOSEN)} = {codec}, {listed}, {count}, {opaque}")
        self.put("break")
        self.depth -= 1
        return self.blob(ir.Blob(None, None, False, True, False), path, scope, null=True)

    def announced(self, tree: Expression, scope: Scope, path: str) -> str:
        """That a list has as many elements as a field says, is all that matters: the field follows."""
        return "np.int64(1)"

    def tells(self, node: ir.Structure, told: ir.Told, path: str) -> None:
        """A field of a message that follows from what stands behind the message."""
        name, of = (f"{path}.{node.members[at].name}" if path else node.members[at].name for at in (told.at, told.of))
        holder, covered = node.members[told.at].node, node.members[told.of].node
        if not isinstance(holder, ir.Protobuf):
            raise unfit(self.key, name, holder, "which tells of something behind it")
        number = self.message(holder, name)
        built = self.messages[number]
        place = built.tables.reads((told.field,))
        if place is None or place.field is None:
            raise unfit(self.key, name, holder, f"it has no {told.field}")
        slot = built.tables.slots[place.path]
        stored = f"stored(m{number}, {slot}, row)"
        always = str(place.field.required)
        if told.what == "count" and holds_records(covered):
            known, value = "rows0[i] >= 0", "rows0[i]"
            known += f" and (counted0[i] != 0 or not {stored})"
            always = "True"
        elif told.what == "size" and holds_records(covered):
            known, value = "plain0[i] >= 0", "plain0[i]"
            always = f"{always} or codec0[i] != 0"
        elif told.what == "size" and isinstance(covered, ir.Blob) and covered.part:
            return
        elif told.what == "size" and isinstance(covered, ir.Blob) and not isinstance(covered.length, ir.Number):
            column = self.column(of)
            ends = f"o{column.slot}"
            known, value = "", f"({ends}[i + np.uint64(1)] - {ends}[i] if {self.there(column)} else np.int64(0))"
        else:
            raise unfit(self.key, of, covered, f"whose {told.what} a message tells")
        built.told.add(slot)
        self.uses |= {"tells", "untold", "stored"}
        self.put(f"untold(m{number}, {slot})")
        self.put(f"if {known}:" if known else "if True:")
        self.put(f"    tells(m{number}, {slot}, row, {always}, np.int64({value}))")

    # Structures.

    def structure(self, node: ir.Structure, path: str, scope: Scope) -> Value:
        wanted = marked(node)
        wanted |= {at for measure in node.measures for at in (measure.first, measure.last)}
        state = _Open(node, path, Scope({}, scope), wanted)
        self.members(state, 0)
        return Value(inside=state.scope.fields)

    def members(self, state: _Open, first: int) -> None:
        """Writes the members of a structure from one on, and what is computed of them."""
        node, path, found, inner = state.node, state.path, state.found, state.scope
        derived = {measure.at for measure in node.measures} | {total.at for total in node.sums}
        for index, member in enumerate(node.members[first:], first):
            name = f"{path}.{member.name}" if path else member.name
            if index in state.wanted:
                found.begins[index] = self.mark("a")
            for told in node.told:
                if told.at == index:
                    self.tells(node, told, path)
            if index in derived:
                self.left(member, index, name, inner, found)
                inner.fields[member.name] = Value(unfit="a number that is computed from what is behind it")
            else:
                self.counts_ahead(node, index, path, inner)
                inner.fields[member.name] = self.node(member.node, name, inner)
            if self.loose:
                self.put_off(partial(self.behind, state, index))
                return
            self.ended(state, index)
        for measure in node.measures:
            if not _ends_behind(measure):
                self.patching(found, measure.at, partial(self.measure, state, measure))
        for total in innermost_first(node.sums):
            self.patching(found, total.at, partial(self.sum, node, total, path, found))

    def behind(self, state: _Open, index: int) -> None:
        """Goes on behind a member that is written now."""
        self.ended(state, index)
        self.members(state, index + 1)

    def ended(self, state: _Open, index: int) -> None:
        """A member is written; so lengths that end with it are known, to the expressions of those behind it."""
        if index in state.wanted:
            state.found.ends[index] = self.mark("z")
        for measure in state.node.measures:
            if _ends_behind(measure) and measure.last == index:
                self.patching(state.found, measure.at, partial(self.measure, state, measure))

    def mark(self, stem: str) -> str:
        variable = self.fresh(stem)
        self.put(f"{variable} = p")
        return variable

    def left(self, member: ir.Member, index: int, name: str, scope: Scope, found: _Sums) -> None:
        """Leaves room for a length or checksum."""
        found.places[index] = self.mark("a")
        number = self.derived(member, name)
        node = member.node.node if isinstance(member.node, ir.Optional) else member.node
        if isinstance(node, ir.When):
            found.present[index] = self.fresh("h")
            self.put(f"{found.present[index]} = {self.expression(node.condition, scope, name)[0]} != 0")
            self.put(f"p += {number.size} if {found.present[index]} else 0")
        else:
            self.put(f"p += {number.size}")
        self.most += number.size

    def patching(self, found: _Sums, at: int, work: Callable[[], None]) -> None:
        """Writes a length or checksum, if it is there."""
        present = found.present.get(at)
        if not present:
            work()
            return
        self.put(f"if {present}:")
        self.depth += 1
        work()
        self.depth -= 1

    def derived(self, member: ir.Member, path: str) -> ir.Number:
        """The number of a length or checksum."""
        number = member.node.node if isinstance(member.node, ir.Optional) else member.node
        number = number.node if isinstance(number, ir.When) else number
        if not isinstance(number, ir.Number) or number.real:
            raise unfit(self.key, path, member.node, "as a length or checksum to be built")
        return number

    def measure(self, state: _Open, measure: ir.Measure) -> None:
        node, path, found = state.node, state.path, state.found
        member = node.members[measure.at]
        name = f"{path}.{member.name}" if path else member.name
        number, size = self.derived(member, name), self.fresh("n")
        covered = "0" if measure.first > measure.last else f"{found.ends[measure.last]} - {found.begins[measure.first]}"
        self.put(f"{size} = np.int64({covered} + {measure.add})")
        self.follows(name)
        if measure.exceeds:
            stored = self.numbers(number, name)
            self.put(f"if {self.there(stored)} and c{stored.slot}[{self.at(stored)}] > {size}:")
            self.put(f"    {size} = np.int64(c{stored.slot}[{self.at(stored)}])")
        if not is_wide(number):
            self.fail(f"{size} > {number.high}", name, f"what it is the length of has more than {number.high} bytes")
        if measure.bounds and measure.least:
            self.fail(f"{size} < {measure.least}", name, f"it would be less than {measure.least}")
        if measure.zero_is_rest:
            stored = self.numbers(number, name)
            self.put(f"if {self.there(stored)} and c{stored.slot}[{self.at(stored)}] == 0:")
            self.put(f"    {size} = np.int64(0)")
        if is_verified_only(measure) or measure.clip:
            self.kept(name, size, number)
        self.patched(number, found.places[measure.at], size)
        if not found.present.get(measure.at):
            state.scope.fields[member.name] = known(number, size)

    def sum(self, node: ir.Structure, total: ir.Sum, path: str, found: _Sums) -> None:
        member = node.members[total.at]
        name = f"{path}.{member.name}" if path else member.name
        number = self.derived(member, name)
        self.follows(name)
        if not isinstance(checksum(total.algorithm).form, str):
            raise unfit(self.key, name, f"a checksum {total.algorithm}", "columns compute crc32, crc32c and internet")
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
        self.put(f"{value} = np.{'uint' if is_wide(number) else 'int'}64({total.algorithm}(o, {start}, {end}{hole}))")
        self.kept(name, value, number)
        self.patched(number, found.places[total.at], value)

    def follows(self, name: str) -> None:
        """Notes that a number is computed, so that its column tells nothing."""
        for path, column in self.columns.items():
            if column.within is self.around and (path == name or path.startswith(f"{name}:")):
                self.computed.add(column.slot)

    def gaps(self) -> None:
        """Bytes that no field explains are in no column, but for those that are a field of their own."""
        column = self.column(GAPS)
        text = "it held bytes that no column has; without this column it is built without them"
        self.fail(f"{self.there(column)} and c{column.slot}[i] != gap0", GAPS, text)


def _ends_behind(measure: ir.Measure) -> bool:
    """Whether what a length is that of lies behind it."""
    return measure.at < measure.first <= measure.last


def _moved(group: Repeated | None, within: str, groups: dict[int, Repeated]) -> Repeated | None:
    """A list, and those around it, in records that stand in others."""
    if group is not None and group.number not in groups:
        outer = _moved(group.outer, within, groups)
        groups[group.number] = replace(group, path=f"{within}.{group.path}", outer=outer)
    return None if group is None else groups[group.number]


def builder(
    key: str,
    element: ir.Node,
    columns: list[Column],
    *,
    gaps: bool,
    within: str = "",
    whole: ir.Node | None = None,
    some: bool = False,
) -> Builder:
    """The kernel that builds records of one layout.

    Args:
        columns: those of the scanning kernel.
        gaps: whether that one counts bytes that no field explains.
        within: where the records stand in others, or "".
        some: whether a record must take some bytes, as nothing counts them.
        whole: the layout with all choices, of which some are made in ``element``; it decides what is written once.

    Raises:
        Misuse: when something inside cannot be built; the text names the node and its path.
    """
    if within:
        groups: dict[int, Repeated] = {}
        columns = [
            replace(column, path=f"{within}.{column.path}", within=_moved(column.within, within, groups))
            for column in columns
        ]
    for path, node in ir.walk(element):
        if isinstance(node, ir.Number) and not node.is_packed:
            raise unfit(key, path, "a varint" if node.groups else f"an integer of {node.size} bytes")
    known = {column.path: column for column in columns}
    if gaps:
        known[GAPS] = Column(GAPS, "number", "int64", slot=len(columns))
    writer = _Writer(key, known, once=parts(element if whole is None else whole))
    try:
        writer.listing()
        writer.node(element, within, Scope({}, None))
        writer.written()
    except Unfit as error:
        raise unfit(key, error.path, error.kind, error.why) from None
    if gaps:
        writer.gaps()
    if len(writer.lines) > LONGEST_SOURCE:
        why = f"alternatives inside of alternatives make a kernel of {len(writer.lines):,} lines"
        raise unfit(key, "", element, why)
    writer.unread()
    if some:
        writer.fail("p == record", within, "it takes no bytes, and no reader would find it")
    unset = ["    " * INDENT + f"{variable} = False" for variable in writer.unset]
    return assembled(
        writer.read.values(),
        writer.reasons,
        unset + writer.written_lists(),
        writer.uses,
        most=writer.most,
        messages=writer.messages,
        watched=list(writer.watched),
        stamps=writer.stamp(len(writer.messages)),
        opens=bool(writer.opened),
        lists=[Listed(writer.lists[number], group, most) for number, (group, most) in sorted(writer.entered.items())],
    )
