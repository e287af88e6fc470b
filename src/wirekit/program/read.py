"""Generates the program that reads records of a layout into columns from the IR of one record.

Values are appended to columns where they are read; the values of a record that turns out to be bad are removed. A field
that does not fit ends the record with the number of a reason. If an enclosing length gives the start of the next
record, the scan continues there; otherwise the range ends.

The elements of a list are in arrays, those of all rows one after the other. ``lo<number>`` has the end of the elements
of each row, or of each element of the list around it, so that lists nest. Before any element is read, a count is
compared with the number of elements that fit into the bytes left, each of the least size of an element but at least one
byte. So arrays grow with the bytes that were read, never with a count.

A node that cannot have a column is ``Misuse`` with its path; nothing is replaced silently.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

from wirekit.compiler import ir
from wirekit.program import steps
from wirekit.program.branches import Branches
from wirekit.program.calls import IsValid, Summed
from wirekit.program.columns import BYTES, CONTENTS, Column, Contents, Reason, Repeated
from wirekit.program.facts import bit_column, column_of, form_of, is_wide, names_of, run_of
from wirekit.program.maker import SHORT, TEXT, Program
from wirekit.program.messages import message_values, slot_at, tables
from wirekit.program.parts import parts
from wirekit.program.steps import Body, Loop
from wirekit.program.unfit import unfit
from wirekit.program.values import HIGHEST, LONGEST, LOWEST, OpenStructure, Scope, Value, value_of
from wirekit.wire.message_fields import Derived

EMPTY = "expected a record of at least one byte, found an empty one"


@dataclass(slots=True)
class _Reader(Branches):
    """Emits read steps: a method for each kind of node.

    Attributes:
        closed: whether compressed records of the same layout also stay as stored bytes.
        stop: whether the current list does not read a record, or an element, that the limit ``cutting`` cuts.
    """

    closed: bool = False
    stop: bool = False

    def record(self, node: ir.Node, with_choices: ir.Node) -> dict[str, Column]:
        """Reads a record; returns the columns of the scan."""
        self.once = parts(with_choices)
        self.node(node, "", Scope({}, None))
        self.finish_parts()
        names = ["offset", "length", *["gap"] * self.gaps, *self.content_registers]
        hidden = {name: Column(name, "number", CONTENTS.get(name, "int64"), slot=-1) for name in names}
        for name, register in self.content_registers.items():
            self.add_step(steps.Emit(hidden[name], register))
        if self.walked:
            self.add_step(steps.Keep(self.walked))
        return hidden

    def visit_Optional(self, node: ir.Optional, path: str, scope: Scope) -> Value:
        return self.node(node.node, path, scope)

    # Numbers.

    def visit_Number(self, node: ir.Number, path: str, scope: Scope) -> Value:
        load = self.load(node, path)
        load.column = self.column(path, column_of(node))
        return value_of(node, load.to)

    def visit_Boolean(self, node: ir.Boolean, path: str, scope: Scope) -> Value:
        load = self.load(node.number, path)
        flag = self.let("!=", load.to, self.constant(0))
        self.add_step(steps.Emit(self.column(path, column_of(node)), flag))
        return Value(flag, 0, 1)

    def visit_Named(self, node: ir.Named, path: str, scope: Scope) -> Value:
        load = self.load(node.number, path)
        if node.closed:
            text, ranges = names_of(node.table)
            self.add_step(steps.OneOf(load.to, self.fault(path, "wrong", text), ranges))
        load.column = self.column(path, column_of(node))
        return value_of(node.number, load.to)

    def visit_BitFields(self, node: ir.BitFields, path: str, scope: Scope) -> Value:
        split = steps.Split(self.load(node.number, path).to, [])
        self.add_step(split)
        values = {}
        for bit in node.fields:
            name = ir.inner_path(path, bit.name)
            if is_wide(node.number) and bit.width > 63:
                raise unfit(self.key, name, "a bit field of 64 bits")
            column = self.column(name, bit_column(bit))
            part = self.fresh()
            split.parts.append((bit.shift, bit.most, part, column))
            values[bit.name] = Value(part, 0, bit.most)
        return Value(inside=values)

    def visit_Constant(self, node: ir.Constant, path: str, scope: Scope) -> Value:
        if isinstance(node.node, ir.Blob) and node.node.coding is None:
            return self.constant_bytes(node, node.node, path, scope)
        if ir.number_of(node.node) is None:
            raise unfit(self.key, path, node, "its field is not a number")
        value = self.node(node.node, path, scope)
        if value.inside is not None or value.unfit:
            raise unfit(self.key, path, node, f"of {value.unfit or 'bit fields'}")
        expected, register = self.expression(node.value, scope, path)[0], self.operand(value.place)
        if node.fatal:
            self.add_step(steps.Refuse("!=", register, expected, self.fault(path, "wrong", f"expected {node.value}")))
        else:
            self.add_step(steps.Emit(self.verdict(path), self.let("==", register, expected)))
        return value

    def constant_bytes(self, node: ir.Constant, blob: ir.Blob, path: str, scope: Scope) -> Value:
        expected = self.bytes_of(node, path)
        if blob.null is not None:
            raise unfit(self.key, path, node, "its bytes may be null")
        value, start, _ = self.string(blob, path, scope)
        assert value.length is not None
        length = self.operand(value.length)
        same = self.begins(start, self.let("+", start, length), expected)
        same = self.let("and", same, self.let("==", length, self.constant(len(expected))))
        if node.fatal:
            self.fail("==", same, 0, path, f"expected {node.value}")
        else:
            self.add_step(steps.Emit(self.verdict(path), same))
        return value

    # Byte strings.

    def visit_Blob(self, node: ir.Blob, path: str, scope: Scope) -> Value:
        value, _, _ = self.string(node, path, scope)
        if node.coding is None:
            return value
        return replace(value, length=None, unfit="a text in another encoding" if node.is_text else "a user's value")

    def string(self, node: ir.Blob, path: str, scope: Scope) -> tuple[Value, int, int | None]:
        """(value, register with the start of the bytes, register for their presence if they may be null)."""
        start, length = self.fresh(), self.fresh()
        present: int | None = None
        prefixed: steps.Prefixed | None = None
        if node.length is None:
            self.add_step(steps.Slice(start, length, self.limit))
        elif isinstance(node.length, ir.Number) and not node.length.groups:
            prefixed = self.prefixed(node, node.length, path, start, length)
            present = prefixed.present
            self.add_step(prefixed)
        elif (fixed := ir.fixed_size(node)) is not None and 0 <= fixed <= HIGHEST:
            length, short = self.constant(fixed), self.fault(path, "short", SHORT)
            # Encoders combine these steps with numbers.
            self.body += [steps.Need(fixed, self.limit, short), steps.Mark(start), steps.Skip(fixed)]
        else:
            if isinstance(node.length, ir.Number):
                length, present = self.number_in_front(node, node.length, path, "length")
            else:
                size, low, _ = self.amount(node.length, scope, path)
                self.add_step(steps.Let(length, "=", size))
                if low < 0:
                    self.not_negative(length, path)
            self.fits(length, path)
            self.add_step(steps.Slice(start, length, None))
        if not node.explained:
            self.gaps = True
            self.unexplained(length)
        column = self.column(path, column_of(node))
        if present is not None:
            column.nullable = True
        if prefixed is not None:
            prefixed.column = column
        else:
            self.add_step(steps.Copy(column, start, length, present))
        if node.is_text:
            self.text(column, start, length, present, "utf-8" if node.coding is None else node.coding.name)
        elif node.coding is not None:
            good, end = self.fresh(), self.let("+", start, length)
            self.add_step(steps.Call(good, IsValid(node.coding), start, end, start))
            self.emit(self.verdict(column.path), good, present)
        unfit = TEXT if node.is_text else "a byte string"
        presence = () if present is None else (present,)
        return Value(length, 0, LONGEST, length=length, unfit=unfit, present=presence), start, present

    def prefixed(self, node: ir.Blob, number: ir.Number, path: str, start: int, length: int) -> steps.Prefixed:
        self.refuse_wide(number, path, node, "length")
        negative: steps.Fault | None = None
        need = self.needs(number.size, path)
        if number.signed and (node.null is None or node.null < -1):
            negative = self.fault(path, "wrong", "expected a length of at least 0")
        short = self.fault(path, "short", SHORT)
        present = self.fresh() if node.null is not None else None
        return steps.Prefixed(number, self.limit, node.null, need, negative, short, start, length, present)

    def text(self, column: Column, start: int, length: int, present: int | None, encoding: str = "utf-8") -> None:
        """Emits the verdict on a text; null for a null text."""
        verdict, good = self.verdict(column.path), self.fresh()
        column.verdict = verdict.slot
        self.add_step(steps.IsText(good, start, length, encoding))
        self.emit(verdict, good, present)

    def visit_Delimited(self, node: ir.Delimited, path: str, scope: Scope) -> Value:
        start, length, value = self.fresh(), self.fresh(), self.fresh()
        short = self.fault(path, "short", SHORT)
        line = self.fault(path, "wrong", f"expected {node.end!r} in the line, found none") if node.lines else None
        wrong = self.fault(path, "wrong", "expected an integer in decimal")
        self.add_step(steps.Find(node.decimal, self.limit, start, length, value, short, line, wrong, node.end))
        if node.decimal:
            self.add_step(steps.Emit(self.column(path, column_of(node)), value))
            return Value(value, LOWEST, HIGHEST)
        column = self.column(path, column_of(node))
        self.add_step(steps.Copy(column, start, length))
        self.text(column, start, length, None)
        return Value(length, 0, LONGEST, length=length, unfit=TEXT)

    def visit_Packed(self, node: ir.Packed, path: str, scope: Scope) -> Value:
        """Reads compressed bytes, which are decompressed later or stay as stored."""
        numbers = all(isinstance(each, int) for values, _ in node.codecs for each in values)
        alone = self.around is None and not self.maybe and self.packing is None and self.contents is None
        if self.closed or not (alone and numbers and isinstance(node.node, ir.Reference) and node.size is None):
            self.left_out.append(f"{path}.content")
            stored = self.visit_Blob(node.blob, path, scope)
            for tree in node.on:
                self.require_operands(tree, scope, path)
            return stored
        slot = len(self.columns)
        value, _, present = self.string(node.blob, path, scope)
        on = [self.expression(tree, scope, path)[0] for tree in node.on]
        names = tuple(dict.fromkeys(name for _, name in node.codecs))
        last = [int(values[-1]) for values, _ in node.codecs]
        codec = self.fresh()
        self.clear([(codec, 0)])
        body: Body = [self.codec_of(node, codec, names, scope, path)]
        if present is not None:
            body.append(steps.Test("==", present, self.constant(0), [steps.Let(codec, "=", self.constant(0))]))
        most = steps.Test("<=", on[-1], self.constant(max(last)), body)  # most records hold nothing compressed
        self.add_step(steps.Test(">=", on[-1], self.constant(min(last)), [most]))
        self.packing = Contents(slot, names, node.streamed, node.node.key)
        self.content_registers = {"codec": codec}
        return value

    def visit_Protobuf(self, node: ir.Protobuf, path: str, scope: Scope) -> Value:
        if self.around is not None:
            raise unfit(self.key, path, node)
        number = len(self.messages)
        message = tables(self.key, node, path, len(self.columns))
        self.messages.append(message)
        first = len(self.reasons)
        self.reasons += message.reasons()
        present, good = self.fresh(), self.fresh()
        self.walked.append((number, present))
        self.add_step(steps.Walk(number, self.limit, present, good, first, self.limit == self.cutting))
        self.gaps = True
        self.add_step(steps.Emit(self.verdict(path), good))
        return Value(inside=message_values(message, number, slot_at))

    def content(self, node: ir.Alternatives, path: str, scope: Scope) -> Value:
        """Reads a field up to the limit: bytes, records, or either of them compressed."""
        if self.contents is not None or self.packing is not None:
            raise unfit(self.key, path, node, "a second field that holds records")
        nothing = {"codec": 0, "listed": 0, "count": -1, "size": -1}
        self.content_registers = {name: self.fresh(nothing[name]) for name in CONTENTS}
        self.opaque = self.fresh()
        if not self.maybe:
            cleared = [(register, nothing[name]) for name, register in self.content_registers.items()]
            self.clear([*cleared, (self.opaque, 0)])
        start, length = self.fresh(), self.fresh()
        self.add_step(steps.Slice(start, length, self.limit))
        column = self.column(path, BYTES)
        self.add_step(steps.Copy(column, start, length))
        self.contents = Contents(column.slot)
        self.branch(node, path, scope, self.contents)
        return Value(unfit="a field that holds records", length=length)

    # Lists.

    def visit_Several(self, node: ir.Several, path: str, scope: Scope) -> Value:
        count, present = self.counted(node, path, scope)
        group = self.repeated(path, nullable=present is not None or self.maybe)
        self.entered.append(group)
        turn, start = self.fresh(), self.fresh()
        gap = None
        if node.stop:
            self.gaps = True
            gap = self.fresh()
        body = self.element_of(node, group, path, scope)
        empty = None
        if count is None and not ir.minimum(node.element):
            empty = self.fault(path, "wrong", EMPTY)
        undo = [each for each in self.undone([group]) if each is not group] if node.stop else []
        ends = node.until, node.except_first
        self.add_step(Loop(group, group.index, turn, count, self.limit, present, *ends, empty, start, gap, undo, body))
        if node.announced is not None:
            verdict = self.verdict(path)
            self.add_step(steps.Emit(verdict, self.let("==", self.expression(node.announced, scope, path)[0], turn)))
        return Value(unfit="a list", length=turn, high=LONGEST, present=() if present is None else (present,))

    def counted(self, node: ir.Several, path: str, scope: Scope) -> tuple[int | None, int | None]:
        """(register with the number of elements, None for as many as fit; register for the presence of the list)."""
        if node.count is None:
            return None, None
        present = None
        if isinstance(node.count, ir.Number):
            count, present = self.number_in_front(node, node.count, path, "count")
        else:
            amount, low, _ = self.amount(node.count, scope, path)
            count = self.let("=", amount)
            if low < 0:
                self.not_negative(count, path, "count")
        self.fits(count, path, max(node.least, 1))
        return count, present

    def repeated(self, path: str, *, nullable: bool) -> Repeated:
        """A new list, or that of an alternative at the same path."""
        for group in (each for column in self.merging for each in column.lists):
            if group.path == path and group.within is self.around:
                return group
        if any(group.path == path and group.within is self.around for group in self.lists):
            raise unfit(self.key, path, "a second list of that name")
        group = Repeated(len(self.lists), path, self.around, nullable, self.maybe, index=self.register())
        self.lists.append(group)
        return group

    def element_of(self, node: ir.Several, group: Repeated, path: str, scope: Scope) -> Body:
        """Reads one element and appends its fields to the columns."""
        merging = [*self.merging, *(each for each in self.columns if group in each.lists)]
        leaving = {"cutting": self.limit, "stop": True} if node.stop else {}
        with self.during(around=group, entered=[], unfollowed=[], defaults=[], merging=merging, stored=[], **leaving):
            with self.block() as inside:
                self.node(node.element, path, scope)
            unset = self.defaults
        with self.block() as body:
            if self.maybe:
                self.clear(unset)
            self.body += inside
        return body

    # Structures.

    def structure(self, node: ir.Structure, path: str, scope: Scope) -> Value:
        """Reads a structure."""
        verified = [measure for measure in node.measures if not measure.is_limit]
        marked = set[int]().union(*node.extents(verified), (total.at for total in node.sums))
        state = OpenStructure(node, path, Scope({}, scope), marked)
        top = self.limit == steps.RANGE and not path and not self.maybe and self.around is None
        limits: list[tuple[int, int, int | None]] = []
        run, ends_record = 0, self.ends_record
        for index, member in enumerate(node.members):
            for measure in ir.opening(node, index):
                limits.append(self.bounding(state, measure, top and not limits))
            name = state.name(index)
            if run == 0:
                run, size = run_of(node, index, {last for last, *_ in limits})
                if run:
                    self.bound(size, name)
            if index in marked:
                state.begins[index] = self.mark()
            self.ends_record = top and index == len(node.members) - 1
            if self.unfollowed and index:
                value = self.following(member.node, name, state.scope)
            else:
                self.checked = run > 0
                value = self.node(member.node, name, state.scope)
                self.checked = False
            state.scope.fields[member.name] = value
            run -= run > 0
            if index in marked:
                state.ends[index] = self.mark()
            self.measured(state, index)
            while limits and limits[-1][0] == index:
                _, outer, unless = limits.pop()
                self.gaps = True
                self.add_step(steps.Close(self.limit, unless))
                self.limit = outer
        self.ends_record = ends_record
        for measure in verified:
            self.agreed(state, measure)
        for total in node.sums:
            self.sum(state, total)
        for rule in node.derived:
            self.verify_derived(state, rule)
        return Value(inside=state.scope.fields)

    def length(self, state: OpenStructure, at: int) -> tuple[str, Value, int]:
        """(path, value, register) of a length."""
        name, value = state.name(at), state.value(at)
        if value.unfit or value.inside is not None:
            raise unfit(self.key, name, value.unfit or "a structure", "it is used as a length")
        return name, value, self.operand(value.place)

    def measured(self, state: OpenStructure, at: int) -> None:
        """Verifies a length as soon as it was read."""
        for measure in state.node.measures:
            if measure.at != at or not measure.bounds:
                continue
            name, value, register = self.length(state, at)
            checks: Body = []
            if value.low < measure.least:
                fault = self.fault(name, "wrong", f"expected a length of at least {measure.least}")
                checks.append(steps.Refuse("<", register, self.constant(measure.least), fault))
                if measure.zero_is_rest:
                    checks = [steps.Test("!=", register, self.constant(0), checks)]
            if measure.frame:
                fault = self.fault(name, "limit", "exceeds the limit frame")
                checks.append(steps.Refuse(">", register, steps.FRAME, fault))
            if value.present and checks:
                checks = [steps.Test("!=", self.all_of(value.present), self.constant(0), checks)]
            self.body += checks

    def bounding(self, state: OpenStructure, measure: ir.Measure, top: bool) -> tuple[int, int, int | None]:
        """Begins the limit of a length: (last member inside, registers of the enclosing limit and of the length).

        Args:
            top: whether the structure is the record, and no other length of it bounds this one's bytes.
        """
        where, value = state.name(measure.at), state.value(measure.at)
        if self.stop and self.limit == self.cutting and (measure.clip or measure.zero_is_rest or value.present):
            raise unfit(self.key, where, "a length that may bound nothing", "it is in a list with short_tail='stop'")
        inner, size = self.fresh(), self.operand(value.place)
        record = top and measure.last == len(state.node.members) - 1

        def begin() -> Value:
            fault = None
            if not measure.clip:
                fault = self.fault(where, "short", SHORT)
            elif measure.exceeds:
                self.add_step(steps.Emit(self.verdict(where), self.constant(1)))
            else:
                at = self.mark()
                covered = self.let("-", size, self.constant(measure.add)) if measure.add else size
                fits = self.let("<=", covered, self.let("-", self.limit, at))
                if measure.zero_is_rest:
                    fits = self.let("or", fits, self.let("==", size, self.constant(0)))
                self.add_step(steps.Emit(self.verdict(where), fits))
            self.add_step(steps.Bound(inner, self.limit, size, measure.add, fault, measure.zero_is_rest, record))
            return Value()

        unless = size if measure.zero_is_rest else None
        if value.present:  # a length that is not there bounds nothing
            self.add_step(steps.Let(inner, "=", self.limit))
            unless = size if measure.zero_is_rest else self.all_of(value.present)
        self.verify(value, begin)
        outer, self.limit = self.limit, inner
        return measure.last, outer, unless

    def agreed(self, state: OpenStructure, measure: ir.Measure) -> None:
        """Verifies a length that sets no limit."""
        name, value, register = self.length(state, measure.at)

        def verify() -> Value:
            actual = self.let("-", state.ends[measure.last], state.begins[measure.first])
            if measure.add:
                actual = self.let("+", actual, self.constant(measure.add))
            good = self.let(">=" if measure.exceeds else "==", register, actual)
            self.add_step(steps.Emit(self.verdict(name), good))
            return Value()

        self.verify(value, verify)

    def sum(self, state: OpenStructure, total: ir.Sum) -> None:
        """Verifies a checksum."""
        name = state.name(total.at)
        number = ir.bare(state.node.members[total.at].node)
        form = form_of(total, number)
        within = total.first <= total.at <= total.last
        length = state.value(total.first).length
        stored, size = state.value(total.at), ir.minimum(number)

        def verify() -> Value:
            start, end = state.begins[total.first], state.ends[total.last]
            if total.content:
                assert length is not None, "registration refuses fields other than byte strings"
                start = self.let("-", end, self.operand(length))
            at, good = state.begins[total.at], self.fresh()
            if form is None:
                self.add_step(steps.Call(good, Summed(total.algorithm, number), start, end, at))
            else:
                expected = self.operand(stored.place)
                if stored.low < 0 and size < 8:
                    expected = self.let("&", expected, self.constant((1 << 8 * size) - 1))
                self.add_step(steps.Sum(good, total.algorithm, start, end, at if within else None, expected, form))
            self.add_step(steps.Emit(self.verdict(name), good))
            return Value()

        self.verify(stored, verify)

    def verify_derived(self, state: OpenStructure, rule: Derived) -> None:
        """Emits the verdict on a size in a message, for a member that is present and not compressed."""
        if rule.quantity != "size":
            return
        name, covered = state.name(rule.at), state.name(rule.of)
        message, length = state.value(rule.at).inside, state.value(rule.of).length
        if message is None or length is None or state.value(rule.at).present:
            raise unfit(self.key, covered, state.node.members[rule.of].node, "a protobuf message holds its size")
        field = message[rule.field]
        wrong = self.let("!=", self.operand(field.place), self.operand(length))
        if field.present:
            wrong = self.let("and", wrong, self.all_of(field.present))
        if self.contents is not None and self.columns[self.contents.column].path == covered:
            wrong = self.let("and", wrong, self.let("==", self.opaque, self.constant(0)))
        verdict = next(column for column in reversed(self.columns) if column.path == ir.inner_path(name, "ok"))
        zero = self.constant(0)
        self.add_step(steps.Test("!=", wrong, zero, [steps.Emit(verdict, zero)]))

    def verify(self, value: Value, work: Callable[[], Value]) -> None:
        """Adds the verdict on a number, if the number is present."""
        if value.present:
            self.if_true(self.all_of(value.present), work)
        else:
            work()


def read(
    key: str, element: ir.Node, with_choices: ir.Node | None = None, *, closed: bool = False, stop: bool = False
) -> Program:
    """Generates the program for records of one layout.

    Args:
        key: the schema, for errors.
        element: the layout of one record.
        with_choices: the layout with all choices, some decided in ``element``; it shows the parts to read once.
        closed: whether compressed records of the same layout also stay as stored bytes.
        stop: whether an incomplete last record is not read, without an error.

    Raises:
        Misuse: a node cannot have a column; the text names the node and its path.

    >>> from wirekit.compiler.lower import lower
    >>> from wirekit.wire import Bytes, Struct, int16, int32
    >>> program = read("example", lower(Struct("number" / int32, "name" / Bytes(int16, null=-1))))
    >>> [(column.path, column.kind, column.nullable) for column in program.columns]
    [('number', 'number', False), ('name', 'bytes', True)]
    """
    reader = _Reader(key=key, closed=closed, stop=stop)
    reader.hidden = reader.record(element, element if with_choices is None else with_choices)
    reader.steps, reader.may_be_empty = reader.body, ir.minimum(element) == 0
    reader.reasons.append(Reason("", "wrong", EMPTY))
    return Program(**{each.name: getattr(reader, each.name) for each in fields(Program)})
