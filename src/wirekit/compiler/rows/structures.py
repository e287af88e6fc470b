"""Decoding code for structures: their lengths bound the fields inside, their checksums are verified."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace

from wirekit.checksums import checksum
from wirekit.compiler import ir
from wirekit.compiler.ir import bare
from wirekit.compiler.references import is_padded
from wirekit.compiler.rows.code import Decoding, Place
from wirekit.compiler.rows.numbers import Numbers
from wirekit.compiler.source import Scope, conditional, field_of, put_derived
from wirekit.program.facts import run_of
from wirekit.wire.blobs import POSITION
from wirekit.wire.costs import VERDICT


@dataclass(slots=True)
class Open:
    """A structure that is being read.

    Attributes:
        path: its place, with the limit of the current lengths.
        scope: receives the variables of members.
        values: these variables, in order.
        begin_at, end_at: the members whose beginning or end is needed; ``begins``, ``ends`` have the variables.
        kept_names: the variable with the names of wrong lengths and checksums to keep; "" if all must be right.
        trailing: the variable with the bytes left over inside lengths of a frame, by name of the length, or None; "" if
            there can be none.
        begin: the variable with the position of the structure, if padding counts from there.
    """

    node: ir.Structure
    path: Place
    scope: Scope
    begin_at: set[int]
    end_at: set[int]
    begins: dict[int, str] = field(default_factory=dict)
    ends: dict[int, str] = field(default_factory=dict)
    values: list[str] = field(default_factory=list)
    kept_names: str = ""
    trailing: str = ""
    begin: str = ""

    def number(self, rule: ir.Measure | ir.Sum) -> tuple[str, Place]:
        """The variable of a length or checksum, and its place."""
        return self.values[rule.at], self.path.to(self.node.members[rule.at].name)

    def covered(self, rule: ir.Measure) -> str:
        """The correct value of a length."""
        return f"{self.ends[rule.last]} - {self.begins[rule.first]} + {rule.add}"

    def keep(self, where: Place) -> str:
        """The code that keeps a wrong length, so that it is written unchanged."""
        return f"{self.kept_names} = [*({self.kept_names} or ()), {where.parts[-1]!r}]"


class Structures(Numbers):
    """Generates code that reads structures."""

    def _structure(self, code: Decoding, node: ir.Structure, path: Place) -> str:
        start, scope = code.here(), Scope({}, path.scope)
        path = replace(path, scope=scope)
        begin_at, end_at = node.extents(each for each in node.measures if each.zero_is_rest or not each.is_limit)
        verified = {measure.at for measure in node.measures if not measure.is_limit}
        sums = {total.at for total in node.sums}
        at = Open(node, path, scope, begin_at | verified, end_at | verified | sums)
        if node.sums or any(measure.zero_is_rest or measure.clip or measure.exceeds for measure in node.measures):
            at.kept_names = code.let("k", "None")
        if not path.parts and any(measure.bounds for measure in node.measures):
            at.trailing = code.let("l", "None")
        if any(is_padded(member.node) for member in node.members):
            at.begin = code.let("s", "p")
        self._members(code, at, 0, len(node.members) - 1)
        for measure in node.measures:
            if not measure.bounds and measure.last > measure.at:
                self._agree(code, at, measure)
            elif measure.zero_is_rest:
                number, where = at.number(measure)
                code.add_line(f"if {number} == 0 and {at.covered(measure)}: {at.keep(where)}")
        for total in node.sums:
            self._sum(code, at, total)
        code.add_span(path, start, code.here(), '"record"')
        for derived in node.derived:
            extent = f"{at.ends[derived.of]} - {at.begins[derived.of]}" if derived.quantity == "size" else ""
            put_derived(code, derived, at.values[derived.at], at.values[derived.of], extent, "{} is None")
        for refusal in node.refusals:
            code.add_line(f"if {self._expression(refusal, scope)}: raise Unusual")
        record = self._blank(code, node.record, _extras(at.kept_names, at.trailing))
        for member, value in zip(node.members, at.values, strict=True):
            code.add_line(f"{field_of(record, member.name)} = {value}")
        return record

    def _members(self, code: Decoding, at: Open, index: int, last: int) -> None:
        """Reads the members in a range."""
        while index <= last:
            index = self._next(code, at, index, last, ir.opening(at.node, index))

    def _next(self, code: Decoding, at: Open, index: int, last: int, windows: list[ir.Measure]) -> int:
        """Reads one or more members; returns the next. ``windows`` are the lengths whose bytes begin here."""
        if windows:
            outer, *inner = windows
            with self._window(code, at, outer):
                self._members(code, at, self._next(code, at, index, outer.last, inner), outer.last)
            return outer.last + 1
        node = at.node
        run, _ = run_of(node, index, {last}, alone=at.path.limit == code.leave, at_once=True)
        if run:
            fields = [(at.path.to(member.name), member.node) for member in node.members[index : index + run]]
            for value in self._numbers(code, fields):
                self._add(code, at, value)
            self._positions(code, at, index, run)
        else:
            run, member = 1, node.members[index]
            if index in at.begin_at:
                at.begins[index] = code.let("s", "p")
            if at.begin:
                at.scope.variables[POSITION] = f"(p - {at.begin})"
            self._add(code, at, self._node(code, member.node, at.path.to(member.name)))
            if index in at.end_at:
                at.ends[index] = code.let("f", "p")
        for measure in node.measures:
            if measure.at == index + run - 1 and measure.last < measure.at:
                self._agree(code, at, measure)
        return index + run

    @contextmanager
    def _window(self, code: Decoding, at: Open, measure: ir.Measure) -> Iterator[None]:
        """The bytes that a length bounds; no bound if it is absent, or 0 and that means the rest."""
        (number, where), outside = at.number(measure), at.path
        limit, e = code.fresh("e"), outside.limit
        announced = f"{number} - {measure.add}" if measure.add else number
        bounds = ""
        if measure.zero_is_rest:
            bounds = number
        elif conditional(at.node.members[measure.at].node):
            bounds = f"{number} is not None"
        code.add_line(f"{limit} = p + {announced}" + (f" if {bounds} else {e}" if bounds else ""))
        cut = code.let("s", "None") if measure.clip else ""
        if measure.clip:
            code.add_line(f"if {limit} > {e}: {cut}, {limit} = p, {e}")
        else:
            code.short(f"{limit} > {e}", e)
        at.path = outside.within(limit)
        yield
        at.path = outside
        more = f"if p != {limit}{f' and {bounds}' if bounds else ''}:"
        if at.trailing:
            with code.branch(more):
                name, start = where.parts[-1], code.here()
                code.add_line(f"{at.trailing} = {at.trailing} or {{}}")
                code.add_line(f"{at.trailing}[{name!r}] = S.left_over({where.base}, {name!r}, b, p, {limit})")
                code.move(f"p = {limit}")
                code.add_span(where.to("$trailing"), start, code.here(), '"gap"')
        else:
            code.add_line(f"{more} raise Unusual")
        if measure.clip:
            with code.block(f"if {cut} is not None:"):  # cut by the outer limit
                status, note = "ok" if measure.exceeds else "bad", "cut by the end of the data"
                pair = f"({announced}, {limit} - {cut})"
                self._verdict(code, where, "length", pair, cut, status=status, differs=True, note=note)
                code.add_line(at.keep(where))

    @staticmethod
    def _positions(code: Decoding, at: Open, index: int, run: int) -> None:
        """The starts and ends of the members of a run that are needed; the position is after the run."""
        distance = 0
        variable_at: dict[int, str] = {}

        def place() -> str:
            if distance not in variable_at:
                variable_at[distance] = code.let("s", f"p - {distance}" if distance else "p")
            return variable_at[distance]

        for number in range(index + run - 1, index - 1, -1):
            if number in at.end_at:
                at.ends[number] = place()
            distance += ir.minimum(at.node.members[number].node)
            if number in at.begin_at:
                at.begins[number] = place()

    @staticmethod
    def _add(code: Decoding, at: Open, value: str) -> None:
        """Adds the variable of the next member; a length is verified as soon as it is read."""
        index = len(at.values)
        at.values.append(value)
        at.scope.variables[at.node.members[index].name] = value
        for measure in at.node.measures:
            if measure.at != index or not measure.bounds:
                continue
            tests = [f"{value} < {measure.least}"]
            if measure.zero_is_rest:
                tests = [f"({value} < {measure.least} and {value} != 0)"]
            if measure.frame:
                tests.append(f"{value} > S.frame")
            absent = conditional(at.node.members[index].node)
            refused = " or ".join(tests)
            code.add_line(f"if {f'{value} is not None and ({refused})' if absent else refused}: raise Unusual")

    def _agree(self, code: Decoding, at: Open, measure: ir.Measure) -> None:
        """A length that is only verified."""
        value, where = at.number(measure)
        actual, position = at.covered(measure), at.begins[measure.at]
        with code.block(f"if {value} is not None:"):
            if not measure.exceeds:
                code.add_line(f"if {value} != {actual}: raise Unusual")
                self._verdict(code, where, "length", value, position)
                return
            number = code.let("n", actual)
            with code.block(f"if {value} > {number}:"):
                self._verdict(code, where, "length", f"({value}, {number})", position, differs=True)
                code.add_line(at.keep(where))
            code.add_line(f"elif {value} != {number}: raise Unusual")
            with code.block("else:"):
                self._verdict(code, where, "length", value, position)

    def _sum(self, code: Decoding, at: Open, total: ir.Sum) -> None:
        (value, where), after = at.number(total), at.ends[total.at]
        number, algorithm = bare(at.node.members[total.at].node), checksum(total.algorithm)
        function = self._constant(algorithm.digest if isinstance(number, ir.Blob) else algorithm.function, "sum")
        size, start, end = ir.minimum(number), at.begins[total.first], at.ends[total.last]
        if total.content:
            data = _content(at.node.members[total.first].node, at.values[total.first], start, end)
        else:
            data = f"b[{start}:{end}]"
        if total.first <= total.at <= total.last:
            hole = f"{after} - {size} - {start}"
            data = f"{data}[:{hole}] + bytes({size}) + {data}[{hole} + {size}:]"
        computed = f"{function}({data})"
        if isinstance(number, ir.Number) and number.signed:
            computed = f"({computed} ^ {-number.low}) - {-number.low}"
        actual, position = code.fresh("n"), f"{after} - {size}"
        absent = conditional(at.node.members[total.at].node)
        if absent:
            with code.block(f"if {value} is None:"):
                self._verdict(code, where, total.algorithm, "None", after, status="absent")
        with code.block("else:") if absent else nullcontext():
            code.add_line(f"{actual} = {computed}")
            with code.block(f"if {value} != {actual}:"):
                pair = f"({value}, {actual})"
                self._verdict(code, where, total.algorithm, pair, position, status="bad", differs=True)
                code.add_line(at.keep(where))
                code.add_line(f"S.charge({VERDICT} + len({code.path(where)}))")
            with code.block("else:"):
                self._verdict(code, where, total.algorithm, value, position)


def _content(node: ir.Node, value: str, start: str, end: str) -> str:
    """The bytes of a byte string or text without the length in front."""
    core = bare(node)
    if isinstance(core, ir.Blob) and not core.text:
        return f"({value} or b'')"
    if isinstance(core, ir.Packed):
        return f"(({value}.compressed if {value}.__class__ is Opened else {value}) or b'')"
    return f"b[{start} + {ir.length_in_front(core)}:{end}]"


def _extras(kept_names: str, trailing: str) -> str:
    """The entries of a record besides its fields, as an expression of variables that may be None."""
    keep = f"{kept_names} and {{'keep': {kept_names}}}"
    if not trailing:
        return keep if kept_names else "None"
    entry = f"{trailing} and {{'trailing': {trailing}}}"
    return f"{{**({keep} or {{}}), **({entry} or {{}})}} if {trailing} else {keep}" if kept_names else entry
