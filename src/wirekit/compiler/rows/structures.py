"""Decoding code for structures: their lengths bound what is inside, their checksums are verified."""

from __future__ import annotations

from dataclasses import dataclass

from wirekit.checksums import checksum
from wirekit.compiler import ir
from wirekit.compiler.ir import bare, fixed
from wirekit.compiler.rows.code import Decoding, Place
from wirekit.compiler.rows.numbers import Numbers
from wirekit.compiler.source import Scope, conditional, put_derived
from wirekit.program.facts import run_of
from wirekit.values import record_type


@dataclass(frozen=True, slots=True)
class Window:
    """The bytes that a length bounds.

    Attributes:
        inside, outside: the variables with their limit, and with that around them.
        cut: the variable with their begin if the limit around cuts them, None if not; "" if it may not.
    """

    measure: ir.Measure
    inside: str
    outside: str
    cut: str


class Structures(Numbers):
    """Writes what reads structures."""

    def _structure(self, code: Decoding, node: ir.Structure, scope: Scope | None, path: Place, e: str) -> str:
        inner, start = Scope({}, scope), code.here()
        values: list[str] = []
        begin_at, end_at = node.extents(each for each in node.measures if each.zero_is_rest or not each.is_limit)
        places = {measure.at for measure in node.measures if not measure.is_limit}
        begin_at |= places
        end_at |= places | {total.at for total in node.sums}
        marks: dict[int, str] = {}
        ends: dict[int, str] = {}
        limits: list[Window] = []
        kept = self._kept(code, node)
        index = 0
        while index < len(node.members):
            for measure in ir.opening(node, index):
                absent = conditional(node.members[measure.at].node)
                limits.append(self._window(code, measure, values[measure.at], e, absent=absent))
                e = limits[-1].inside
            closing = {limit.measure.last for limit in limits}
            run, _ = run_of(node, index, closing, alone=e == code.leave, at_once=True)
            if run:
                members = [(member.name, member.node) for member in node.members[index : index + run]]
                values += self._fixed_run(code, members, inner, path, e)
                for offset, (name, _) in enumerate(members):
                    value = inner.variables[name] = values[index + offset]
                    inner.plain[name] = code.plain.get(value, value)
                    self._measured(code, node, index + offset, values[index + offset])
                self._positions(code, node, index, run, begin_at, end_at, marks, ends)
                index += run
            else:
                member = node.members[index]
                if index in begin_at:
                    marks[index] = code.fresh("s")
                    code.put(f"{marks[index]} = p")
                value = self._node(code, member.node, inner, path.to(member.name), e)
                values.append(value)
                inner.variables[member.name] = value
                self._measured(code, node, index, value)
                if index in end_at:
                    ends[index] = code.fresh("f")
                    code.put(f"{ends[index]} = p")
                index += 1
            for measure in node.measures:
                if measure.at == index - 1 and measure.last < measure.at:
                    self._agree(code, node, measure, values, marks, ends, kept, path)
            while limits and limits[-1].measure.last == index - 1:
                closed = limits.pop()
                self._closed(code, node, closed, values[closed.measure.at], kept, path)
                e = closed.outside
        for measure in node.measures:
            if not measure.bounds and measure.last > measure.at:
                self._agree(code, node, measure, values, marks, ends, kept, path)
            elif measure.zero_is_rest:
                covered = f"{ends[measure.last]} - {marks[measure.first]} + {measure.add}"
                code.put(f"if {values[measure.at]} == 0 and {covered}:")
                code.put(f"    {_keep(kept, node.members[measure.at].name)}")
        for total in node.sums:
            self._sum(code, node, total, values, marks, ends, kept, path)
        code.lies(path, start, code.here(), '"record"')
        for derived in node.derived:
            extent = f"{ends[derived.of]} - {marks[derived.of]}" if derived.what == "size" else ""
            put_derived(code, derived, values[derived.at], values[derived.of], extent, "{} is None")
        for refusal in node.refusals:
            code.put(f"if {self._expression(refusal, inner)}: raise Unusual")
        return self._made(code, record_type(node.name, tuple(member.name for member in node.members)), values, kept)

    @staticmethod
    def _kept(code: Decoding, node: ir.Structure) -> str:
        """The variable with the names of lengths that are not what they should be and may be so; "" if none can."""
        if not any(measure.zero_is_rest or measure.clip or measure.exceeds for measure in node.measures):
            return ""
        kept = code.fresh("k")
        code.put(f"{kept} = None")
        return kept

    @staticmethod
    def _window(code: Decoding, measure: ir.Measure, number: str, e: str, *, absent: bool) -> Window:
        """Begins the bytes that a length bounds, which bounds none where it is absent."""
        window = Window(measure, code.fresh("e"), e, code.fresh("s") if measure.clip else "")
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

    def _closed(self, code: Decoding, node: ir.Structure, window: Window, number: str, kept: str, path: Place) -> None:
        """Ends the bytes that a length bounds."""
        measure, limit, cut = window.measure, window.inside, window.cut
        unless = ""
        if measure.zero_is_rest:
            unless = f" and {number}"
        elif conditional(node.members[measure.at].node):
            unless = f" and {number} is not None"
        code.put(f"if p != {limit}{unless}: raise Unusual")
        if measure.clip:
            name = node.members[measure.at].name
            code.put(f"if {cut} is not None:")
            code.depth += 1
            announced = f"{number} - {measure.add}" if measure.add else number
            status = "ok" if measure.exceeds else "bad"
            numbers = f"({announced}, {limit} - {cut})"
            self._verdict(
                code,
                path.to(name),
                "length",
                numbers,
                cut,
                status=status,
                differs=True,
                note="cut by the end of the data",
            )
            code.put(_keep(kept, name))
            code.depth -= 1

    @staticmethod
    def _positions(
        code: Decoding,
        node: ir.Structure,
        index: int,
        run: int,
        begin_at: set[int],
        end_at: set[int],
        marks: dict[int, str],
        ends: dict[int, str],
    ) -> None:
        """Where the members of a run begin and end, where somebody asks; the position is behind the run."""
        left = 0
        known: dict[int, str] = {}

        def place() -> str:
            if left not in known:
                known[left] = code.fresh("s")
                code.put(f"{known[left]} = p - {left}" if left else f"{known[left]} = p")
            return known[left]

        for at in range(index + run - 1, index - 1, -1):
            if at in end_at:
                ends[at] = place()
            left += sum(number.size for number in fixed(node.members[at].node))
            if at in begin_at:
                marks[at] = place()

    def _measured(self, code: Decoding, node: ir.Structure, at: int, value: str) -> None:
        """Verifies a length as soon as it is read."""
        for measure in node.measures:
            if measure.at != at or not measure.bounds:
                continue
            tests = [f"{value} < {measure.least}"]
            if measure.zero_is_rest:
                tests = [f"({value} < {measure.least} and {value} != 0)"]
            if measure.frame:
                tests.append(f"{value} > S.frame")
            absent = conditional(node.members[at].node)
            refused = " or ".join(tests)
            code.put(f"if {f'{value} is not None and ({refused})' if absent else refused}: raise Unusual")

    def _agree(
        self,
        code: Decoding,
        node: ir.Structure,
        measure: ir.Measure,
        values: list[str],
        marks: dict[int, str],
        ends: dict[int, str],
        kept: str,
        path: Place,
    ) -> None:
        """A length that is only verified."""
        value, where = values[measure.at], path.to(node.members[measure.at].name)
        actual = f"{ends[measure.last]} - {marks[measure.first]} + {measure.add}"
        position = marks[measure.at]
        code.put(f"if {value} is not None:")
        code.depth += 1
        if measure.exceeds:
            number = code.fresh("n")
            code.put(f"{number} = {actual}")
            code.put(f"if {value} > {number}:")
            code.depth += 1
            self._verdict(code, where, "length", f"({value}, {number})", position, differs=True)
            code.put(_keep(kept, where.parts[-1]))
            code.depth -= 1
            code.put(f"elif {value} != {number}: raise Unusual")
            code.put("else:")
            self._verdict(code, where, "length", value, position, deeper=True)
        else:
            code.put(f"if {value} != {actual}: raise Unusual")
            self._verdict(code, where, "length", value, position)
        code.depth -= 1

    def _sum(
        self,
        code: Decoding,
        node: ir.Structure,
        total: ir.Sum,
        values: list[str],
        marks: dict[int, str],
        ends: dict[int, str],
        kept: str,
        path: Place,
    ) -> None:
        value, name = values[total.at], node.members[total.at].name
        number = bare(node.members[total.at].node)
        size, algorithm = ir.minimum(number), checksum(total.algorithm)
        function = self._constant(algorithm.digest if isinstance(number, ir.Blob) else algorithm.function, "sum")
        start, end = marks[total.first], ends[total.last]
        conditional = bare(node.members[total.at].node) is not node.members[total.at].node
        if conditional:
            after = ends[total.at]
            code.put(f"if {value} is None:")
            self._verdict(code, path.to(name), total.algorithm, "None", after, status="absent", deeper=True)
            code.put("else:")
            code.depth += 1
        if total.content:
            data = _content(node.members[total.first].node, values[total.first], start, end)
        else:
            data = f"b[{start}:{end}]"
        if total.first <= total.at <= total.last:
            at = f"{ends[total.at]} - {size} - {start}"
            data = f"{data}[:{at}] + bytes({size}) + {data}[{at} + {size}:]"
        computed = f"{function}({data})"
        mask = f" & {(1 << 8 * size) - 1}" if isinstance(number, ir.Number) and number.signed else ""
        if kept and not mask and code.together is None:
            # Where a length may be wrong, a sum may be too: network cards fill in those of packets that they send.
            actual, position = code.fresh("n"), f"{ends[total.at]} - {size}"
            code.put(f"{actual} = {computed}")
            code.put(f"if {value} != {actual}:")
            code.depth += 1
            pair = f"({value}, {actual})"
            self._verdict(code, path.to(name), total.algorithm, pair, position, status="bad", differs=True)
            code.put(_keep(kept, name))
            code.depth -= 1
            code.put("else:")
            self._verdict(code, path.to(name), total.algorithm, value, position, deeper=True)
            code.depth -= conditional
            return
        code.put(f"if {value}{mask} != {computed}: S.differ()")
        if code.together is not None:
            code.judged = code.records = True
            code.put(f"{code.together.ends}.append({ends[total.at]})")
        else:
            self._verdict(code, path.to(name), total.algorithm, value, f"{ends[total.at]} - {size}")
        if conditional:
            code.depth -= 1


def _content(node: ir.Node, value: str, start: str, end: str) -> str:
    """The bytes of a byte string or text without the length in front."""
    core = bare(node)
    if isinstance(core, ir.Blob) and not core.text:
        return f"({value} or b'')"
    if isinstance(core, ir.Packed):
        return f"(({value}.compressed if {value}.__class__ is Opened else {value}) or b'')"
    return f"b[{start} + {ir.length_in_front(core)}:{end}]"


def _keep(kept: str, name: str) -> str:
    """Notes that a length is to be written as it stands."""
    return f"{kept} = [*({kept} or ()), {name!r}]"
