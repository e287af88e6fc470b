"""Decoding code for structures: their lengths bound the fields inside, their checksums are verified."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from wirekit.checksums import checksum
from wirekit.compiler import ir
from wirekit.compiler.ir import bare, fixed
from wirekit.compiler.references import is_padded
from wirekit.compiler.rows.code import Decoding, Place
from wirekit.compiler.rows.numbers import Numbers
from wirekit.compiler.source import Scope, conditional, put_derived
from wirekit.program.facts import run_of
from wirekit.wire.blobs import POSITION
from wirekit.wire.costs import VERDICT


@dataclass(frozen=True, slots=True)
class Window:
    """The bytes that a length bounds.

    Attributes:
        inside: the variable with their limit; ``outside`` is the place of the structure with that around them.
        cut: the variable with their begin if the limit around cuts them, None if not; "" if it may not.
    """

    measure: ir.Measure
    inside: str
    outside: Place
    cut: str


@dataclass(slots=True)
class Open:
    """A structure that is being read.

    Attributes:
        path: where it stands, with the limit at hand; its scope takes the variables of members.
        values: those, in order.
        begin_at, end_at: the members of which somebody asks where they begin or end; ``begins``, ``ends``: variables.
        kept: the variable with the names of lengths and sums that are not what they should be; "" if all have to be.
        left: the variable with the bytes left over inside the lengths of a frame; "" where there may be none.
    """

    node: ir.Structure
    path: Place
    begin_at: set[int]
    end_at: set[int]
    begins: dict[int, str] = field(default_factory=dict)
    ends: dict[int, str] = field(default_factory=dict)
    values: list[str] = field(default_factory=list)
    kept: str = ""
    left: str = ""

    def add(self, value: str) -> None:
        """Takes the variable of the next member."""
        assert self.path.scope is not None
        self.path.scope.variables[self.node.members[len(self.values)].name] = value
        self.values.append(value)

    def number(self, rule: ir.Measure | ir.Sum) -> tuple[str, Place]:
        """The variable of a length or checksum, and where it stands."""
        return self.values[rule.at], self.path.to(self.node.members[rule.at].name)

    def covered(self, rule: ir.Measure) -> str:
        """The number that a length should be."""
        return f"{self.ends[rule.last]} - {self.begins[rule.first]} + {rule.add}"

    def keep(self, where: Place) -> str:
        """Notes that a length is to be written as it stands."""
        return f"{self.kept} = [*({self.kept} or ()), {where.parts[-1]!r}]"


class Structures(Numbers):
    """Writes what reads structures."""

    def _structure(self, code: Decoding, node: ir.Structure, path: Place) -> str:
        start, inner = code.here(), Scope({}, path.scope)
        path = replace(path, scope=inner)
        begin_at, end_at = node.extents(each for each in node.measures if each.zero_is_rest or not each.is_limit)
        verified = {measure.at for measure in node.measures if not measure.is_limit}
        sums = {total.at for total in node.sums}
        at = Open(node, path, begin_at | verified, end_at | verified | sums)
        if node.sums or any(measure.zero_is_rest or measure.clip or measure.exceeds for measure in node.measures):
            at.kept = code.fresh("k")
            code.put(f"{at.kept} = None")
        if not path.parts and any(measure.bounds for measure in node.measures):
            at.left = code.fresh("l")
            code.put(f"{at.left} = None")
        limits: list[Window] = []
        index, begin = 0, ""
        if any(is_padded(member.node) for member in node.members):
            begin = code.fresh("s")
            code.put(f"{begin} = p")
        while index < len(node.members):
            for measure in ir.opening(node, index):
                limits.append(self._window(code, at, measure))
                at.path = path.within(limits[-1].inside)
            closing = {limit.measure.last for limit in limits}
            run, _ = run_of(node, index, closing, alone=at.path.limit == code.leave, at_once=True)
            if run:
                members = [(member.name, member.node) for member in node.members[index : index + run]]
                for value in self._fixed_run(code, members, at.path):
                    inner.plain[node.members[len(at.values)].name] = code.plain.get(value, value)
                    at.add(value)
                    self._measured(code, at)
                self._positions(code, at, index, run)
                index += run
            else:
                member = node.members[index]
                if index in at.begin_at:
                    at.begins[index] = code.fresh("s")
                    code.put(f"{at.begins[index]} = p")
                if begin:
                    inner.variables[POSITION] = f"(p - {begin})"
                at.add(self._node(code, member.node, at.path.to(member.name)))
                self._measured(code, at)
                if index in at.end_at:
                    at.ends[index] = code.fresh("f")
                    code.put(f"{at.ends[index]} = p")
                index += 1
            for measure in node.measures:
                if measure.at == index - 1 and measure.last < measure.at:
                    self._agree(code, at, measure)
            while limits and limits[-1].measure.last == index - 1:
                closed = limits.pop()
                self._closed(code, at, closed)
                at.path = closed.outside
        for measure in node.measures:
            if not measure.bounds and measure.last > measure.at:
                self._agree(code, at, measure)
            elif measure.zero_is_rest:
                number, where = at.number(measure)
                code.put(f"if {number} == 0 and {at.covered(measure)}:")
                code.put(f"    {at.keep(where)}")
        for total in node.sums:
            self._sum(code, at, total)
        code.lies(path, start, code.here(), '"record"')
        for derived in node.derived:
            extent = f"{at.ends[derived.of]} - {at.begins[derived.of]}" if derived.what == "size" else ""
            put_derived(code, derived, at.values[derived.at], at.values[derived.of], extent, "{} is None")
        for refusal in node.refusals:
            code.put(f"if {self._expression(refusal, inner)}: raise Unusual")
        return self._made(code, node.record, at.values, at.kept, at.left)

    @staticmethod
    def _window(code: Decoding, at: Open, measure: ir.Measure) -> Window:
        """Begins the bytes that a length bounds, which bounds none where it is absent."""
        number, absent = at.values[measure.at], conditional(at.node.members[measure.at].node)
        e = at.path.limit
        window = Window(measure, code.fresh("e"), at.path, code.fresh("s") if measure.clip else "")
        limit = window.inside
        if absent:
            code.put(f"if {number} is None: {limit} = {e}")
            code.put("else:")
        announced = f"p + {number} - {measure.add}" if measure.add else f"p + {number}"
        code.put(f"{'    ' * absent}{limit} = {announced}")
        if measure.zero_is_rest:
            code.put(f"if {number} == 0: {limit} = {e}")
        if measure.clip:
            code.put(f"{window.cut} = None")
            code.put(f"if {limit} > {e}: {window.cut}, {limit} = p, {e}")
        else:
            code.short(f"{limit} > {e}", e)
        return window

    def _closed(self, code: Decoding, at: Open, window: Window) -> None:
        """Ends the bytes that a length bounds."""
        measure, limit, cut = window.measure, window.inside, window.cut
        number, where = at.number(measure)
        unless = ""
        if measure.zero_is_rest:
            unless = f" and {number}"
        elif conditional(at.node.members[measure.at].node):
            unless = f" and {number} is not None"
        if at.left:
            with code.block(f"if p != {limit}{unless}:"):
                name, start = where.parts[-1], code.here()
                code.put(f"{at.left} = {at.left} or {{}}")
                code.put(f"{at.left}[{name!r}] = S.left_over({where.base}, {name!r}, b, p, {limit})")
                code.move(f"p = {limit}")
                code.lies(where.to("$trailing"), start, code.here(), '"gap"')
        else:
            code.put(f"if p != {limit}{unless}: raise Unusual")
        if measure.clip:
            code.put(f"if {cut} is not None:")
            code.depth += 1
            announced = f"{number} - {measure.add}" if measure.add else number
            status, note = "ok" if measure.exceeds else "bad", "cut by the end of the data"
            pair = f"({announced}, {limit} - {cut})"
            self._verdict(code, where, "length", pair, cut, status=status, differs=True, note=note)
            code.put(at.keep(where))
            code.depth -= 1

    @staticmethod
    def _positions(code: Decoding, at: Open, index: int, run: int) -> None:
        """Where the members of a run begin and end, where somebody asks; the position is behind the run."""
        left = 0
        known: dict[int, str] = {}

        def place() -> str:
            if left not in known:
                known[left] = code.fresh("s")
                code.put(f"{known[left]} = p - {left}" if left else f"{known[left]} = p")
            return known[left]

        for number in range(index + run - 1, index - 1, -1):
            if number in at.end_at:
                at.ends[number] = place()
            left += sum(each.size for each in fixed(at.node.members[number].node))
            if number in at.begin_at:
                at.begins[number] = place()

    @staticmethod
    def _measured(code: Decoding, at: Open) -> None:
        """Verifies a length as soon as it is read: the member that was read last."""
        value, index = at.values[-1], len(at.values) - 1
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
            code.put(f"if {f'{value} is not None and ({refused})' if absent else refused}: raise Unusual")

    def _agree(self, code: Decoding, at: Open, measure: ir.Measure) -> None:
        """A length that is only verified."""
        value, where = at.number(measure)
        actual, position = at.covered(measure), at.begins[measure.at]
        code.put(f"if {value} is not None:")
        code.depth += 1
        if measure.exceeds:
            number = code.fresh("n")
            code.put(f"{number} = {actual}")
            code.put(f"if {value} > {number}:")
            code.depth += 1
            self._verdict(code, where, "length", f"({value}, {number})", position, differs=True)
            code.put(at.keep(where))
            code.depth -= 1
            code.put(f"elif {value} != {number}: raise Unusual")
            code.put("else:")
            self._verdict(code, where, "length", value, position, deeper=True)
        else:
            code.put(f"if {value} != {actual}: raise Unusual")
            self._verdict(code, where, "length", value, position)
        code.depth -= 1

    def _sum(self, code: Decoding, at: Open, total: ir.Sum) -> None:
        (value, where), node = at.number(total), at.node.members[total.at].node
        number, behind = bare(node), at.ends[total.at]
        size, algorithm = ir.minimum(number), checksum(total.algorithm)
        function = self._constant(algorithm.digest if isinstance(number, ir.Blob) else algorithm.function, "sum")
        start, end = at.begins[total.first], at.ends[total.last]
        absent = number is not node
        if absent:
            code.put(f"if {value} is None:")
            self._verdict(code, where, total.algorithm, "None", behind, status="absent", deeper=True)
            code.put("else:")
            code.depth += 1
        if total.content:
            data = _content(at.node.members[total.first].node, at.values[total.first], start, end)
        else:
            data = f"b[{start}:{end}]"
        if total.first <= total.at <= total.last:
            hole = f"{behind} - {size} - {start}"
            data = f"{data}[:{hole}] + bytes({size}) + {data}[{hole} + {size}:]"
        computed = f"{function}({data})"
        if isinstance(number, ir.Number) and number.signed:
            computed = f"({computed} ^ {-number.low}) - {-number.low}"
        actual, position = code.fresh("n"), f"{behind} - {size}"
        code.put(f"{actual} = {computed}")
        code.put(f"if {value} != {actual}:")
        code.depth += 1
        pair = f"({value}, {actual})"
        self._verdict(code, where, total.algorithm, pair, position, status="bad", differs=True)
        code.put(at.keep(where))
        code.put(f"S.charge({VERDICT} + len({code.path(where)}))")
        code.depth -= 1
        code.put("else:")
        self._verdict(code, where, total.algorithm, value, position, deeper=True)
        code.depth -= absent


def _content(node: ir.Node, value: str, start: str, end: str) -> str:
    """The bytes of a byte string or text without the length in front."""
    core = bare(node)
    if isinstance(core, ir.Blob) and not core.text:
        return f"({value} or b'')"
    if isinstance(core, ir.Packed):
        return f"(({value}.compressed if {value}.__class__ is Opened else {value}) or b'')"
    return f"b[{start} + {ir.length_in_front(core)}:{end}]"
