"""The rows engine: Python generated from the IR that decodes what is in order, one value at a time.

Adjacent fixed fields are one ``struct`` call, positions and limits are local variables, paths are put together only
when somebody asks for a verdict's path. The generated code knows nothing but the way things should be: a bound
exceeded, a check that fails, bytes left over, a number written in an unusual way end it at once (``Unusual``), and
the reference engine decodes the same bytes and says what is wrong with them, with path, offset and all that was read
before. So both engines give the same value, verdicts and errors, and only one of them has to explain.

The source of the generated code has a name of its own (``wirekit explain KEY`` prints it), and shows up in tracebacks.
"""

from __future__ import annotations

import keyword
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from wirekit.checksums import checksum
from wirekit.compiler import ir
from wirekit.compiler.expressions import Expression
from wirekit.compiler.source import (
    Code,
    Generator,
    Scope,
    Unusual,
    assignment,
    bare,
    fixed,
    is_large,
    missing,
    trees_in,
)
from wirekit.errors import Misuse, WireError
from wirekit.values import Check, Record, Symbol, SymbolTable, record_type
from wirekit.wire.compressed import NEED_SIZE, Opened
from wirekit.wire.node import DECIMAL
from wirekit.wire.stream import Limits, Reader, Session, join_path
from wirekit.wire.told import elements

Unit = Callable[..., tuple[Any, int]]
Prefix = tuple[Any, ...]
NULL = -1  # the length that means null nearly everywhere
LARGEST_TABLE = 2  # bytes of a number whose bit fields are remembered


class Cut(Exception):
    """The limit of a list cuts its last element, which is then left to the next field."""


# What generated code raises when a value that it needs is not there or does not fit.
REASONS = (Unusual, TypeError, AttributeError, KeyError, ArithmeticError, UnicodeDecodeError, struct.error)


@dataclass(frozen=True, slots=True)
class Site:
    """What is the same for all verdicts of one place in the layout; ``%d`` in its path stands for an index.

    Attributes:
        number: reads the checked number, where the verdicts of a list's elements are kept together.
        differs: whether what is stored and what is computed are two numbers.
        note: in words, where these do not tell it.
    """

    path: str
    kind: str
    status: str
    number: struct.Struct | None = None
    differs: bool = False
    note: str = ""


class State:
    """What one decode keeps: verdicts not yet spelled out, decompressed data, limits.

    Attributes:
        checks: (site, path's prefix, number, position, source, indexes in the path...) of each verdict; for the
            elements of a list together (site, prefix, ends of the numbers, index of the first, source, indexes...).
        source: the number of the buffer at work, 0 for the input.
        part: the bytes read last that are a piece of something larger.
        bad: whether a verdict that is not good was recorded, if only on what was given up later.
    """

    __slots__ = (
        "bad",
        "checks",
        "depth",
        "frame",
        "limits",
        "nested",
        "params",
        "part",
        "protocol",
        "source",
        "sources",
    )

    def __init__(self, protocol: str, params: Mapping[str, Any], limits: Limits) -> None:
        self.part: bytes | None = None
        self.protocol = protocol
        self.params = params
        self.limits = limits
        self.frame = limits.frame
        self.checks: list[tuple[Any, ...]] = []
        self.sources: list[tuple[bytes, str]] = []
        self.source = 0
        self.bad = False
        self.depth = 0
        self.nested = 0

    @property
    def clean(self) -> bool:
        """Whether all verdicts are good ones."""
        return not self.bad or all(site.status != "bad" for site, *_ in self.checks)

    def verdicts(self, origin: int, data: bytes) -> list[Check]:
        """The verdicts as the other engines give them."""
        found = []
        above: dict[Prefix, str] = {(): ""}
        for site, prefix, number, position, source, *indexes in self.checks:
            outer = above.get(prefix)
            if outer is None:
                outer = above[prefix] = join_path(list(prefix))
            path = outer + site.path if not (outer and site.path) or site.path[0] == "[" else f"{outer}.{site.path}"
            start = 0 if source else origin
            if site.number is None:
                path %= tuple(indexes)
                stored, computed = number if site.differs else (number, number)
                verdict = Check(path, site.kind, stored, computed, site.status, start + position, source, site.note)
                found.append(verdict)
                continue
            buffer = self.sources[source - 1][0] if source else data
            size, read = site.number.size, site.number.unpack_from
            before, after = path.rsplit("%d", 1)
            before, after = before % tuple(indexes), after.replace("%%", "%")
            for index, end in enumerate(number, position):
                (stored,) = read(buffer, end - size)
                path = f"{before}{index}{after}"
                found.append(Check(path, site.kind, stored, stored, site.status, start + end - size, source))
        return found

    def open(
        self, codec: str, data: bytes, size: int | None, sized: bool, unit: Unit, path: Prefix, *above: Any
    ) -> Record:
        """The record of compressed data: the bytes and what is in them."""
        from wirekit.compression import Decompression, decompress

        limits = self.limits
        if self.depth >= limits.depth or (sized and size is None and codec in NEED_SIZE):
            raise Unusual
        bounds = Decompression(size=limits.decompressed, ratio=limits.ratio)
        try:
            plain = decompress(codec, data, limits=bounds, size=size)
        except WireError:
            raise Unusual from None
        path = (*path, "content")
        self.sources.append((plain, join_path(list(path))))
        outer, self.source = self.source, len(self.sources)
        self.depth += 1
        content, end = unit(self, plain, 0, len(plain), path, *above)
        self.depth -= 1
        self.source = outer
        if end != len(plain):
            raise Unusual
        record = Opened()
        record.compressed = data
        record.content = content
        return record

    def refer(self, unit: Unit, b: bytes, p: int, e: int, q: Prefix) -> tuple[Any, int]:
        """A value of another schema, which may be the one at work."""
        if self.nested >= self.limits.depth:
            raise Unusual
        self.nested += 1
        found = unit(self, b, p, e, q)
        self.nested -= 1
        return found

    def message(self, kind: Any, b: bytes, p: int, e: int, q: Prefix) -> Record:
        """A protobuf message in [p, e)."""
        from wirekit.wire.protobuf import parse_message

        session = Session(self.protocol, self.limits)
        session.path.extend(q)
        try:
            record = parse_message(kind, Reader(session, b, p, e))
        except WireError:
            raise Unusual from None
        if session.checks:
            raise Unusual
        return record


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


@dataclass(frozen=True, slots=True)
class Together:
    """The verdicts on the elements of a list, one each, which are kept in one entry.

    Attributes:
        entry: adds it.
        ends: the variable with the positions behind the numbers.
        first: the variable with the index of the first.
        index: the variable with the index of the element at work.
    """

    entry: str
    ends: str
    first: str
    index: str


@dataclass(slots=True)
class Decoding(Code):
    """A function that decodes.

    Attributes:
        leave: the limit at which a list that is being written leaves its last element, "" if none does.
        records: whether the element that is being written may have recorded a verdict or opened data by now.
        rewinds: whether its end can be missing after it did.
        verdicts: whether the function records verdicts at all.
        read: numbers behind the position that a struct call has read already, and the variables that hold them.
        plain: the variable of a symbol → the one of its number, which is compared faster.
        together: the verdicts on the elements of the list that is being written, if they are kept together.
        judged: whether the element that is being written has its verdict by now.
    """

    leave: str = ""
    records: bool = False
    rewinds: bool = False
    verdicts: bool = False
    read: list[tuple[ir.Number, str]] = field(default_factory=list)
    plain: dict[str, str] = field(default_factory=dict)
    together: Together | None = None
    judged: bool = False

    def short(self, condition: str, e: str) -> None:
        """What must not hold, or the bytes end too early."""
        self.rewinds |= e == self.leave and self.records
        self.put(f"if {condition}: raise {'Cut' if e == self.leave else 'Unusual'}")


class Writer(Generator):
    """Writes the decoder of one schema: (state, buffer, position, limit, path's prefix) → (value, position after it).

    Args:
        key: the schema's key.
        layout: its IR.
        resolve: gives the unit of another schema by key, when the code runs.
    """

    purpose = "rows"
    arguments = "S, b, p, e, q"

    def __init__(self, key: str, layout: ir.Node, resolve: Callable[[str], Unit]) -> None:
        self._sites: dict[Site, Site] = {}
        self._splitters: dict[int, str] = {}
        names = {
            "Cut": Cut,
            "Unusual": Unusual,
            "Opened": Opened,
            "Symbol": Symbol,
            "missing": missing,
            "elements": elements,
            "resolve": resolve,
        }
        super().__init__(key, layout, names)

    def _function(self, header: str, node: ir.Node, scope: Scope | None) -> list[str]:
        code = Decoding([header])
        value = self._node(code, node, scope, (), "e")
        code.put(f"return {value}, p")
        if code.verdicts:
            code.lines.insert(1, "    checks, source = S.checks, S.source")
        return code.lines

    @staticmethod
    def _trees(node: ir.Node) -> Iterator[Expression]:
        constant = ("value",) if isinstance(node, ir.Constant) else ()
        return trees_in(node, ("condition", "length", "count", "announced", "size", *constant))

    # What follows writes the code of one kind of node each, and gives the expression of its value. ``path`` holds the
    # parts of the path inside the function: names, and variables that hold an index, written ``{i}``.

    def _node(self, code: Decoding, node: ir.Node, scope: Scope | None, path: Prefix, e: str) -> str:
        if not self._begins(node):
            code.read = []
        match node:
            case ir.Structure():
                return self._structure(code, node, scope, path, e)
            case ir.Several():
                return self._several(code, node, scope, path, e)
            case ir.Blob():
                if node.sealed:
                    self._verdict(code, path, "decryption", "None", "p", status="absent")
                return self._blob(code, node, scope, e)
            case ir.Delimited():
                return self._delimited(code, node, e)
            case ir.When():
                return self._maybe(code, self._expression(node.condition, scope), node.node, scope, path, e)
            case ir.WhenMore():
                return self._maybe(code, f"p < {e}", node.node, scope, path, e)
            case ir.WhenNext():
                size = len(node.magic)
                return self._maybe(
                    code, f"b[p:p + {size}] == {node.magic!r} and p + {size} <= {e}", node.node, scope, path, e
                )
            case ir.Either():
                value = code.fresh("v")
                code.put(f"if {self._expression(node.condition, scope)}:")
                self._branch(code, value, node.then, scope, path, e)
                code.put("else:")
                self._branch(code, value, node.otherwise, scope, path, e)
                return value
            case ir.Choice():
                return self._choice(code, node, scope, path, e)
            case ir.Ahead():
                return self._ahead(code, node, e)
            case ir.Bounded():
                return self._bounded(code, node, scope, path, e)
            case ir.Fallback() | ir.Optional():
                return self._node(code, node.node, scope, path, e)
            case ir.Reference():
                value = code.fresh("v")
                code.records = True
                code.put(f"{value}, p = S.refer(resolve({node.key!r}), b, p, {e}, {_prefix(path)})")
                return value
            case ir.Packed():
                return self._packed(code, node, scope, path, e)
            case ir.Protobuf():
                return self._protobuf(code, node, path, e)
            case ir.Constant() if not fixed(node):
                return self._constant_of(code, node, self._node(code, node.node, scope, path, e), scope, path, "p")
            case _:
                return self._fixed_run(code, [("", node)], scope, path, e)[0]

    def _branch(self, code: Decoding, value: str, node: ir.Node, scope: Scope | None, path: Prefix, e: str) -> None:
        code.depth += 1
        if is_large(node):
            name, above = self._call(node, scope)
            code.records = True
            code.put(f"{value}, p = {name}(S, b, p, {e}, {_prefix(path)}{above})")
        else:
            code.put(f"{value} = {self._node(code, node, scope, path, e)}")
        code.depth -= 1

    def _maybe(self, code: Decoding, condition: str, node: ir.Node, scope: Scope | None, path: Prefix, e: str) -> str:
        value = code.fresh("v")
        code.put(f"if {condition}:")
        self._branch(code, value, node, scope, path, e)
        code.put("else:")
        code.put(f"    {value} = None")
        return value

    def _structure(self, code: Decoding, node: ir.Structure, scope: Scope | None, path: Prefix, e: str) -> str:
        inner = Scope({}, scope)
        values: list[str] = []
        verified = [measure for measure in node.measures if not measure.bounds or measure.last < measure.at]
        begin_at = {measure.first for measure in verified} | {total.first for total in node.sums}
        end_at = {index for measure in verified for index in (measure.at, measure.last)}
        end_at |= {index for total in node.sums for index in (total.at, total.last)}
        sizes = {told.of for told in node.told if told.what == "size"}
        begin_at |= sizes
        end_at |= sizes
        open_ended = [measure for measure in node.measures if measure.zero_is_rest]
        begin_at |= {measure.first for measure in open_ended}
        end_at |= {measure.last for measure in open_ended}
        marks: dict[int, str] = {}
        ends: dict[int, str] = {}
        limits: list[Window] = []
        kept = self._kept(code, node)
        index = 0
        while index < len(node.members):
            for measure in node.measures:
                if measure.first == index and measure.at < index and measure.bounds:
                    limits.append(self._window(code, measure, values[measure.at], e))
                    e = limits[-1].inside
            run = self._run_from(node, index, {limit.measure.last for limit in limits})
            if run:
                members = [(member.name, member.node) for member in node.members[index : index + run]]
                judged = self._judged(node, index, run)
                ahead = self._following(code, node, index + run, limits, e, members if not judged else [])

                def measured(variables: list[str], first: int = index) -> None:
                    for offset, variable in enumerate(variables):
                        self._measured(code, node, first + offset, variable)

                values += self._fixed_run(code, members, inner, path, e, judged, ahead, measured)
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
                ahead = self._following(code, node, index + 1, limits, e, [])
                if isinstance(member.node, ir.When) and fixed(member.node.node) and ahead:
                    value = self._maybe_fixed(code, member.node, inner, (*path, member.name), e, ahead)
                else:
                    value = self._node(code, member.node, inner, (*path, member.name), e)
                values.append(value)
                inner.variables[member.name] = value
                self._measured(code, node, index, value)
                if index in end_at:
                    ends[index] = code.fresh("f")
                    code.put(f"{ends[index]} = p")
                index += 1
            while limits and limits[-1].measure.last == index - 1:
                closed = limits.pop()
                self._closed(code, node, closed, values[closed.measure.at], kept, path)
                e = closed.outside
            for measure in node.measures:
                if measure.at == index - 1 and measure.last < measure.at:
                    self._agree(code, node, measure, values, marks, ends, kept, path)
        for measure in node.measures:
            if not measure.bounds and measure.last > measure.at:
                self._agree(code, node, measure, values, marks, ends, kept, path)
            elif measure.zero_is_rest:
                covered = f"{ends[measure.last]} - {marks[measure.first]} + {measure.add}"
                code.put(f"if {values[measure.at]} == 0 and {covered}:")
                code.put(f"    {_keep(kept, node.members[measure.at].name)}")
        for total in node.sums:
            self._sum(code, node, total, values, marks, ends, path)
        for told in node.told:
            self._told(code, told, values, marks, ends)
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
    def _window(code: Decoding, measure: ir.Measure, number: str, e: str) -> Window:
        """Begins the bytes that a length bounds."""
        window = Window(measure, code.fresh("e"), e, code.fresh("s") if measure.clip else "")
        limit = window.inside
        code.put(f"{limit} = p + {number} - {measure.add}" if measure.add else f"{limit} = p + {number}")
        if measure.zero_is_rest:
            code.put(f"if {number} == 0: {limit} = {e}")
        if measure.clip:
            code.put(f"{window.cut} = None")
            code.put(f"if {limit} > {e}: {window.cut}, {limit} = p, {e}")
        else:
            code.short(f"{limit} > {e}", e)
        return window

    def _closed(self, code: Decoding, node: ir.Structure, window: Window, number: str, kept: str, path: Prefix) -> None:
        """Ends the bytes that a length bounds."""
        measure, limit, cut = window.measure, window.inside, window.cut
        code.put(f"if p != {limit}{f' and {number}' if measure.zero_is_rest else ''}: raise Unusual")
        if measure.clip:
            name = node.members[measure.at].name
            code.put(f"if {cut} is not None:")
            code.depth += 1
            announced = f"{number} - {measure.add}" if measure.add else number
            status = "ok" if measure.exceeds else "bad"
            numbers = f"({announced}, {limit} - {cut})"
            self._verdict(
                code,
                (*path, name),
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
    def _told(code: Decoding, told: ir.Told, values: list[str], marks: dict[int, str], ends: dict[int, str]) -> None:
        """A number that building would change, or that the bytes of its member do not tell, is no matter of rows."""
        message, value, number = values[told.at], values[told.of], code.fresh("n")
        code.put(f"if {message} is not None:")
        code.put(f"    {number} = getattr({message}, {told.field!r})")
        if told.what == "count":
            code.put(f"    if elements({value}) not in (None, {number}): raise Unusual")
            return
        code.put(f"    if {value}.__class__ is Opened:")
        code.put(f"        if {number} is None: raise Unusual")
        extent = f"{ends[told.of]} - {marks[told.of]}"
        code.put(f"    elif {number} not in (None, {extent}) and {value} is not S.part: raise Unusual")

    def _following(
        self,
        code: Decoding,
        node: ir.Structure,
        index: int,
        limits: list[Window],
        e: str,
        run: list[tuple[str, ir.Node]],
    ) -> list[ir.Number]:
        """The numbers that are read next whatever was read before, so that one struct call can read them too."""
        if index >= len(node.members) or (limits and limits[-1].measure.last == index - 1):
            return []
        numbers = self._begins(node.members[index].node)
        opening = [measure for measure in node.measures if measure.first == index and measure.bounds]
        opening = [measure for measure in opening if measure.at < index]
        if e == code.leave and not opening:
            return []
        if opening:
            room = min(measure.least - measure.add for measure in opening)
            if len(opening) > 1 or sum(number.size for number in numbers) > room:
                return []
            plain = run and all(isinstance(member, ir.Number) for _, member in run)
            if e == code.leave and not (plain and opening[0].at == index - 1 and not opening[0].clip):
                return []
        return numbers

    def _begins(self, node: ir.Node) -> list[ir.Number]:
        """The numbers that any value of a node begins with, as they are read together."""
        match node:
            case ir.Blob(length=ir.Number() as number) | ir.Bounded(length=number):
                return [number]
            case ir.Several(count=ir.Number() as number):
                return [number]
            case ir.Structure(members=(first, *_)):
                run = self._run_from(node, 0, set())
                if not run:
                    return self._begins(first.node)
                return [number for member in node.members[:run] for number in fixed(member.node)]
        return fixed(node)

    def _maybe_fixed(
        self,
        code: Decoding,
        node: ir.When,
        scope: Scope | None,
        path: Prefix,
        e: str,
        ahead: list[ir.Number],
    ) -> str:
        """A number that may be there, and what follows it: one struct call each way."""
        value = code.fresh("v")
        code.put(f"if {self._expression(node.condition, scope)}:")
        code.depth += 1
        (number,) = self._fixed_run(code, [("", node.node)], scope, path, e, 0, ahead)
        code.put(f"{value} = {number}")
        read = code.read
        code.depth -= 1
        code.put("else:")
        code.depth += 1
        code.put(f"{value} = None")
        code.read = []
        if read:
            self._unpacked(code, ahead, [variable for _, variable in read], e)
        code.read = read
        code.depth -= 1
        return value

    def _judged(self, node: ir.Structure, index: int, run: int) -> int:
        """Bytes up to the end of the first field of a run that can be wrong by itself, 0 if only the last one can."""
        offset = 0
        for at in range(index, index + run - 1):
            member = node.members[at].node
            offset += sum(number.size for number in fixed(member))
            measured = any(measure.at == at and measure.bounds for measure in node.measures)
            if measured or _refusing(member):
                return offset
        return 0

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

    @staticmethod
    def _run_from(node: ir.Structure, index: int, closing: set[int]) -> int:
        """How many members from ``index`` on can be read by one struct call: no limit begins or ends between them."""
        count = 0
        little: bool | None = None
        for at in range(index, len(node.members)):
            numbers = fixed(node.members[at].node)
            begins = count and any(measure.first == at and measure.bounds for measure in node.measures)
            mixed = any(number.size > 1 and little not in (None, number.little) for number in numbers)
            if not numbers or begins or mixed:
                break
            for number in numbers:
                little = number.little if number.size > 1 else little
            count += 1
            if at in closing or any(at == measure.at and measure.last < at for measure in node.measures):
                break
        return count

    def _measured(self, code: Decoding, node: ir.Structure, at: int, value: str) -> None:
        """What must hold for a length as soon as it is read."""
        for measure in node.measures:
            if measure.at != at or not measure.bounds or measure.last < at:
                continue
            tests = [f"{value} < {measure.least}"]
            if measure.zero_is_rest:
                tests = [f"({value} < {measure.least} and {value} != 0)"]
            if measure.frame:
                tests.append(f"{value} > S.frame")
            code.put(f"if {' or '.join(tests)}: raise Unusual")
            if measure.first > measure.last:
                code.put(f"if {value} != {measure.add}: raise Unusual")

    def _agree(
        self,
        code: Decoding,
        node: ir.Structure,
        measure: ir.Measure,
        values: list[str],
        marks: dict[int, str],
        ends: dict[int, str],
        kept: str,
        path: Prefix,
    ) -> None:
        """A length that is only verified."""
        value, where = values[measure.at], (*path, node.members[measure.at].name)
        actual = f"{ends[measure.last]} - {marks[measure.first]} + {measure.add}"
        position = f"{ends[measure.at]} - {ir.minimum(bare(node.members[measure.at].node))}"
        code.put(f"if {value} is not None:")
        code.depth += 1
        if measure.exceeds:
            number = code.fresh("n")
            code.put(f"{number} = {actual}")
            code.put(f"if {value} > {number}:")
            code.depth += 1
            self._verdict(code, where, "length", f"({value}, {number})", position, differs=True)
            code.put(_keep(kept, where[-1]))
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
        path: Prefix,
    ) -> None:
        value, name = values[total.at], node.members[total.at].name
        number = bare(node.members[total.at].node)
        if not isinstance(number, ir.Number):
            raise Misuse(f"{self.key}: the checksum {name} is no plain number")
        function = self._constant(checksum(total.algorithm).function, "sum")
        start, end = marks[total.first], ends[total.last]
        conditional = bare(node.members[total.at].node) is not node.members[total.at].node
        if conditional:
            after = ends[total.at]
            code.put(f"if {value} is None:")
            self._verdict(code, (*path, name), total.algorithm, "None", after, status="absent", deeper=True)
            code.put("else:")
            code.depth += 1
        if total.content:
            covered = values[total.first]
            packed = isinstance(bare(node.members[total.first].node), ir.Packed)
            covered = f"({covered}.compressed if {covered}.__class__ is Opened else {covered})" if packed else covered
            data = f"({covered} or b'')"
        else:
            data = f"b[{start}:{end}]"
        if total.first <= total.at <= total.last:
            at = f"{ends[total.at]} - {number.size} - {start}"
            data = f"{data}[:{at}] + bytes({number.size}) + {data}[{at} + {number.size}:]"
        computed = f"{function}({data})"
        mask = f" & {(1 << 8 * number.size) - 1}" if number.signed else ""
        code.put(f"if {value}{mask} != {computed}: raise Unusual")
        if code.together is not None:
            code.judged = code.records = True
            code.put(f"{code.together.ends}.append({ends[total.at]})")
        else:
            self._verdict(code, (*path, name), total.algorithm, value, f"{ends[total.at]} - {number.size}")
        if conditional:
            code.depth -= 1

    def _verdict(
        self,
        code: Decoding,
        path: Prefix,
        kind: str,
        value: str,
        position: str,
        *,
        status: str = "ok",
        deeper: bool = False,
        differs: bool = False,
        note: str = "",
    ) -> None:
        name = self._site(Site(_template(path), kind, status, None, differs, note))
        indexes = "".join(f", {part[1:-1]}" for part in path if part.startswith("{"))
        code.records = code.verdicts = True
        indent = "    " if deeper else ""
        code.put(f"{indent}checks.append(({name}, q, {value}, {position}, source{indexes}))")
        if status == "bad":
            code.put(f"{indent}S.bad = True")

    def _site(self, site: Site) -> str:
        return self._constant(self._sites.setdefault(site, site), "K")

    def _together(self, code: Decoding, node: ir.Several, index: str, path: Prefix) -> Together | None:
        """Begins to keep the verdicts on a list's elements together, if each gets one, and of the same kind."""
        places = _verdicts(node.element, {})
        if places is None or len(places) != 1:
            return None
        ((inside, algorithm, number),) = places
        where = (*path, f"{{{index}}}", *inside)
        site = self._site(Site(_template(where), algorithm, "ok", struct.Struct(f"{_order(number)}{number.code}")))
        ends, first = code.fresh("c"), code.fresh("f")
        outer = "".join(f", {part[1:-1]}" for part in path if part.startswith("{"))
        code.put(f"{ends}, {first} = [], 0")
        code.verdicts = True
        entry = f"checks.append(({site}, q, {ends}, {first}, source{outer}))"
        return Together(entry, ends, first, index)

    def _begun(self, code: Decoding, node: ir.Several, index: str, path: Prefix) -> tuple[Together | None, bool]:
        """What held before a list."""
        outer = code.together, code.judged
        code.together, code.judged = self._together(code, node, index, path), False
        return outer

    @staticmethod
    def _ended(code: Decoding, outer: tuple[Together | None, bool]) -> None:
        """Ends a list: what was kept together becomes an entry."""
        if code.together is not None:
            code.put(code.together.entry)
        code.together, code.judged = outer

    def _made(self, code: Decoding, record: type[Record], values: list[str], kept: str = "") -> str:
        """A variable with a record of values in order, or of those of one tuple."""
        made = code.fresh("r")
        code.put(f"{made} = {self._constant(record._blank, 'new')}()")
        code.put(f"{made}._extra = {kept} and {{'keep': {kept}}}" if kept else f"{made}._extra = None")
        if len(values) == 1 and values[0].startswith("*"):
            targets = ", ".join(f"{made}.{name}" for name in record._fields)
            if not any(keyword.iskeyword(name) for name in record._fields):
                code.put(f"{targets}, = {values[0][1:]}")
                return made
            values = [f"{values[0][1:]}[{index}]" for index in range(len(record._fields))]
        for name, value in zip(record._fields, values, strict=True):
            code.put(assignment(made, name, value))
        return made

    def _fixed_run(
        self,
        code: Decoding,
        members: list[tuple[str, ir.Node]],
        scope: Scope | None,
        path: Prefix,
        e: str,
        judged: int = 0,
        ahead: list[ir.Number] | None = None,
        measured: Callable[[list[str]], None] | None = None,
    ) -> list[str]:
        """Members of fixed size, read by one struct call, with the numbers ``ahead`` that follow them.

        ``judged`` bytes from the start, the field that ends there may be wrong; if the limit lies behind it, that
        comes before the end of the bytes.
        """
        numbers = [number for _, node in members for number in fixed(node)]
        size = sum(number.size for number in numbers)
        read, code.read = code.read, []
        if [number for number, _ in read[: len(numbers)]] == numbers:
            variables = [variable for _, variable in read[: len(numbers)]]
            code.read = read[len(numbers) :]
        else:
            variables = [code.fresh("n") for _ in numbers]
            if not ahead or not _one_order([*numbers, *ahead]):
                ahead = []
            if judged and e == code.leave:
                code.put(f"if p + {size} > {e} >= p + {judged}: raise Unusual")
            if ahead and measured is not None and e == code.leave:
                whole = size + sum(number.size for number in ahead)
                code.put(f"if p + {whole} > {e}:")
                code.depth += 1
                self._unpacked(code, numbers, variables, e)
                measured(variables)
                code.put("raise Cut")
                code.depth -= 1
            behind = [code.fresh("n") for _ in ahead]
            self._unpacked(code, [*numbers, *ahead], [*variables, *behind], "" if ahead and e == code.leave else e)
            code.read = list(zip(ahead, behind, strict=True))
        start = "p"
        if any(isinstance(node, ir.Constant) and not node.fatal for _, node in members):
            start = code.fresh("s")
            code.put(f"{start} = p")
        code.put(f"p += {size}")
        values, offset, index = [], 0, 0
        for name, node in members:
            numbers_here = fixed(node)
            place = f"{start} + {offset}" if start != "p" else "p"
            where = (*path, name) if name else path
            values.append(self._meaning(code, node, variables[index], scope, where, place))
            offset += sum(number.size for number in numbers_here)
            index += len(numbers_here)
        return values

    def _unpacked(self, code: Decoding, numbers: list[ir.Number], variables: list[str], e: str) -> None:
        """Reads numbers at the position, if the limit lets; the position stays. A limit of "" is known to let."""
        little = any(number.little for number in numbers)
        layout = struct.Struct(("<" if little else ">") + "".join(number.code for number in numbers))
        name = f"unpack_{'le' if little else 'be'}_{layout.format[1:]}"
        self.names[name] = layout.unpack_from
        if e:
            code.short(f"p + {layout.size} > {e}", e)
        code.put(f"{', '.join(variables)}{',' if len(variables) == 1 else ''} = {name}(b, p)")

    def _meaning(
        self, code: Decoding, node: ir.Node, number: str, scope: Scope | None, path: Prefix, place: str
    ) -> str:
        """The value that a number stands for."""
        match node:
            case ir.Number(real=True):
                code.put(f"if {number} != {number}: raise Unusual")
                return number
            case ir.Number():
                return number
            case ir.Boolean():
                code.put(f"if {number} != 0 and {number} != 1: raise Unusual")
                return f"({number} == 1)"
            case ir.Named(table=table, closed=closed):
                return self._named(code, table, closed, number)
            case ir.BitFields():
                return self._bits(code, node, number)
            case ir.Optional():
                return self._meaning(code, node.node, number, scope, path, place)
            case ir.Constant():
                value = self._meaning(code, node.node, number, scope, path, place)
                return self._constant_of(code, node, value, scope, path, place)
        raise Misuse(f"{self.key}: a {type(node).__name__} is no number")

    def _named(self, code: Decoding, table: SymbolTable, closed: bool, number: str) -> str:
        known = self._constant(table._by_value, "T")
        value = code.fresh("v")
        if closed:
            code.put(f"{value} = {known}[{number}]")
        else:
            code.put(f"{value} = {known}.get({number})")
            code.put(f"if {value} is None: {value} = Symbol({number}, None, '')")
        code.plain[value] = number
        return value

    def _constant_of(
        self, code: Decoding, node: ir.Constant, value: str, scope: Scope | None, path: Prefix, place: str
    ) -> str:
        code.put(f"if {value} != {self._expression(node.value, scope)}: raise Unusual")
        if not node.fatal:
            self._verdict(code, path, "constant", value, place)
        return value

    def _bits(self, code: Decoding, node: ir.BitFields, number: str) -> str:
        record = record_type("Bits", tuple(bit.name for bit in node.fields))
        base = bare(node.number)
        if not isinstance(base, ir.Number):
            raise Misuse(f"{self.key}: bit fields lie in a plain number")
        values = [self._bit(bit, f"(x >> {bit.shift} & {(1 << bit.width) - 1})") for bit in node.fields]
        if id(node) not in self._splitters:
            self._held.append(node)
            self._splitters[id(node)] = f"bits{len(self._splitters)}"
            name = self._splitters[id(node)]
            split = [f"def {name}(x):", f"    x &= {(1 << 8 * base.size) - 1}", f"    return ({', '.join(values)},)"]
            self._functions.append(split)
        name = self._splitters[id(node)]
        if base.size > LARGEST_TABLE:
            return self._made(code, record, [f"*{name}({number})"])
        cache = f"{name}_known"
        self.names.setdefault(cache, {})
        split_value = code.fresh("t")
        code.put(f"try: {split_value} = {cache}[{number}]")
        code.put(f"except KeyError: {split_value} = {cache}[{number}] = {name}({number})")
        return self._made(code, record, [f"*{split_value}"])

    def _bit(self, bit: ir.BitField, number: str) -> str:
        if bit.table is not None:
            return f"{self._constant(bit.table, 'table')}({number})"
        return f"({number} == 1)" if bit.width == 1 else number

    def _blob(self, code: Decoding, node: ir.Blob, scope: Scope | None, e: str) -> str:
        value = code.fresh("v")
        if node.length is None:
            code.put(f"{value} = b[p:{e}]")
            code.put(f"p = {e}")
            if node.part:
                code.put(f"S.part = {value}")
        elif isinstance(node.length, ir.Number):
            # A length read from beyond the limit leads beyond it too, unless it means null.
            late = e != code.leave and not code.read
            (size,) = self._fixed_run(code, [("", node.length)], scope, (), "" if late else e)
            self._prefixed(code, node, value, size, e, late)
            return value
        else:
            size = code.fresh("n")
            code.put(f"{size} = {self._expression(node.length, scope)}")
            code.put(f"if {size}.__class__ is not int or {size} < 0: raise Unusual")
            code.short(f"p + {size} > {e}", e)
            code.put(f"{value} = b[p:p + {size}]")
            code.put(f"p += {size}")
        self._finish_blob(code, node, value)
        return value

    def _prefixed(self, code: Decoding, node: ir.Blob, value: str, size: str, e: str, late: bool) -> None:
        if node.null is not None:
            code.put(f"if {size} {'< 0' if node.null == NULL else f'== {node.null}'}:")
            tests = [f"{size} != {NULL}"] if node.null == NULL else []
            tests += [f"p > {e}"] if late else []
            if tests:
                code.put(f"    if {' or '.join(tests)}: raise Unusual")
            code.put(f"    {value} = None")
            code.put("else:")
            code.depth += 1
        after = code.fresh("p")
        code.put(f"{after} = p + {size}")
        if node.null != NULL:
            code.put(f"if {size} < 0: raise Unusual")
        code.short(f"{after} > {e}", e)
        code.put(f"{value} = b[p:{after}]{'.decode()' if node.text else ''}")
        code.put(f"p = {after}")
        if not node.explained:
            code.put(f"if {value}: raise Unusual")
        if node.null is not None:
            code.depth -= 1

    def _delimited(self, code: Decoding, node: ir.Delimited, e: str) -> str:
        value, after = code.fresh("v"), code.fresh("p")
        code.put(f"{after} = b.find({node.end!r}, p, {e})")
        code.short(f"{after} < 0", e)
        code.put(f"{value} = b[p:{after}]")
        if node.decimal:
            code.put(f"if not {self._constant(DECIMAL.fullmatch, 'decimal')}({value}): raise Unusual")
            code.put(f"{value} = int({value})")
        else:
            code.put(f"if b'\\n' in {value}: raise Unusual")
            code.put(f"{value} = {value}.decode()")
        code.put(f"p = {after} + {len(node.end)}")
        return value

    def _finish_blob(self, code: Decoding, node: ir.Blob, value: str) -> None:
        if not node.explained:
            code.put(f"if {value}: raise Unusual")
        if node.text:
            code.put(f"{value} = {value}.decode()")

    def _several(self, code: Decoding, node: ir.Several, scope: Scope | None, path: Prefix, e: str) -> str:
        items = code.fresh("l")
        if node.count is None:
            self._to_the_end(code, node, items, scope, path, e)
            return items
        if isinstance(node.count, ir.Number):
            (count,) = self._fixed_run(code, [("", node.count)], scope, path, e)
        else:
            count = code.fresh("n")
            code.put(f"{count} = {self._expression(node.count, scope)}")
            code.put(f"if {count}.__class__ is not int: raise Unusual")
        if node.null is not None:
            code.put(f"if {count} == {node.null} and {count} < 0:")
            code.put(f"    {items} = None")
            code.put("else:")
            code.depth += 1
        least = max(ir.minimum(node.element), 1)
        code.put(f"if {count} < 0: raise Unusual")
        code.short(f"{count} * {least} > {e} - p", e)
        if isinstance(node.element, ir.Number) and not node.element.real:
            number = node.element
            form = "<" if number.little else ">"
            unpack = self._constant(struct.unpack_from, "unpack")
            code.put(f"{items} = [*{unpack}(f'{form}{{{count}}}{number.code}', b, p)]")
            code.put(f"p += {count} * {number.size}")
        else:
            index = code.fresh("i")
            outer = self._begun(code, node, index, path)
            code.put(f"{items} = []")
            code.put(f"for {index} in range({count}):")
            self._element(code, node, items, index, scope, path, e)
            self._ended(code, outer)
        if node.null is not None:
            code.depth -= 1
        return items

    def _element(
        self, code: Decoding, node: ir.Several, items: str, index: str, scope: Scope | None, path: Prefix, e: str
    ) -> None:
        code.depth += 1
        code.loops += 1
        value = self._node(code, node.element, scope, (*path, f"{{{index}}}"), e)
        code.loops -= 1
        code.put(f"{items}.append({value})")
        code.rewinds |= e == code.leave and code.records  # by the element before
        code.depth -= 1

    def _to_the_end(
        self, code: Decoding, node: ir.Several, items: str, scope: Scope | None, path: Prefix, e: str
    ) -> None:
        index, start = code.fresh("i"), code.fresh("s")
        outer_list = self._begun(code, node, index, path)
        code.put(f"{items} = []")
        code.put(f"{index} = 0")
        code.put("while True:")  # CPython 3.11 does not count the turns of a loop with a condition, to specialise it
        code.depth += 1
        code.put(f"if p >= {e}: break")
        code.loops += 1
        if node.until:
            code.put(f"if {index} and b[p:p + {len(node.until)}] == {node.until!r}: break")
        code.put(f"{start} = p")
        if node.stop:
            self._may_be_cut(code, node, items, index, start, scope, path, e)
        else:
            outer, code.leave = code.leave, ""
            value = self._node(code, node.element, scope, (*path, f"{{{index}}}"), e)
            code.put(f"{items}.append({value})")
            code.leave = outer
        if not ir.minimum(node.element):
            code.put(f"if p == {start}: raise Unusual")
        code.put(f"{index} += 1")
        code.loops -= 1
        code.depth -= 1
        self._ended(code, outer_list)
        if node.announced is not None:
            number = code.fresh("n")
            code.put(f"{number} = {self._expression(node.announced, scope, plain=False)}")
            code.put(f"if {number} != len({items}): raise Unusual")
            self._verdict(code, path, "count", number, "p")

    def _may_be_cut(
        self,
        code: Decoding,
        node: ir.Several,
        items: str,
        index: str,
        start: str,
        scope: Scope | None,
        path: Prefix,
        e: str,
    ) -> None:
        """An element that the limit may cut: then the position, and what was recorded since, is as before it."""
        outer = code.leave, code.records, code.rewinds
        code.leave, code.records, code.rewinds = e, False, False
        known, opened, line = code.fresh("k"), code.fresh("o"), len(code.lines)
        code.put("try:")
        code.depth += 1
        value = self._node(code, node.element, scope, (*path, f"{{{index}}}"), e)
        code.put(f"{items}.append({value})")
        code.depth -= 1
        code.put("except Cut:")
        code.put(f"    p = {start}")
        if code.rewinds:
            code.lines.insert(line, "    " * code.depth + f"{known}, {opened} = len(S.checks), len(S.sources)")
            if code.together is not None:  # what it opened has ended an entry that holds elements before it
                code.put(f"    if len(S.checks) != {known}: raise Unusual")
                code.put(f"    del {code.together.ends}[{index} - {code.together.first}:]")
            code.put(f"    del S.checks[{known}:], S.sources[{opened}:]")
        code.put("    break")
        recorded = code.records
        code.leave, code.records, code.rewinds = outer
        code.records |= recorded

    def _choice(self, code: Decoding, node: ir.Choice, scope: Scope | None, path: Prefix, e: str) -> str:
        value = code.fresh("v")
        unit, above = self._chosen(code, node, scope)
        code.records = True
        code.put(f"{value}, p = {unit}(S, b, p, {e}, {_prefix(path)}{above})")
        return value

    def _ahead(self, code: Decoding, node: ir.Ahead, e: str) -> str:
        numbers = fixed(node.node)
        if not numbers:
            raise Misuse(f"{self.key}: what is read ahead has a fixed size")
        size = sum(number.size for number in numbers)
        code.short(f"p + {node.at + size} > {e}", e)
        code.put(f"p += {node.at}")
        (value,) = self._fixed_run(code, [("", node.node)], None, (), e)
        code.put(f"p -= {node.at + size}")
        return value

    def _bounded(self, code: Decoding, node: ir.Bounded, scope: Scope | None, path: Prefix, e: str) -> str:
        (size,) = self._fixed_run(code, [("", node.length)], scope, path, e)
        value, limit = code.fresh("v"), code.fresh("e")
        if node.null is not None:
            code.put(f"if {size} == {node.null}:")
            code.put(f"    {value} = None")
            code.put("else:")
            code.depth += 1
        code.put(f"{limit} = p + {size}")
        code.put(f"if {size} < 0: raise Unusual")
        code.short(f"{limit} > {e}", e)
        code.put(f"{value} = {self._node(code, node.node, scope, path, limit)}")
        code.put(f"if p != {limit}: raise Unusual")
        if node.null is not None:
            code.depth -= 1
        return value

    def _packed(self, code: Decoding, node: ir.Packed, scope: Scope | None, path: Prefix, e: str) -> str:
        value, codec = self._blob(code, node.blob, scope, e), code.fresh("c")
        codecs = {(values[0] if len(values) == 1 else values): name for values, name in node.codecs}
        table = self._constant(codecs, "codecs")
        parts = []
        for part in node.on:
            parts.append(code.fresh("c"))
            code.put(f"{parts[-1]} = {self._expression(part, scope)}")
        key = parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
        code.unless_same(parts, lambda: code.put(f"{codec} = {table}.get({key})"))
        code.put(f"if {codec} is not None and {value} is not None:")
        name, above = self._call(node.node, scope)
        code.records = True
        size = "None" if node.size is None else self._expression(node.size, scope)
        arguments = f"{codec}, {value}, {size}, {node.size is not None}, {name}, {_prefix(path)}{above}"
        if code.together is not None:  # the verdicts inside stand between those before and after
            at = f"{code.together.index} + 1" if code.judged else code.together.index
            code.put(f"    {code.together.entry}")
            code.put(f"    {code.together.ends}, {code.together.first} = [], {at}")
        code.put(f"    {value} = S.open({arguments})")
        return value

    def _protobuf(self, code: Decoding, node: ir.Protobuf, path: Prefix, e: str) -> str:
        from wirekit.wire.protobuf import Message

        kind = self._constant(Message._known[node.message], "message")
        value = code.fresh("v")
        code.put(f"{value} = S.message({kind}, b, p, {e}, {_prefix(path)})")
        code.put(f"p = {e}")
        return value


def _keep(kept: str, name: str) -> str:
    """Notes that a length is to be written as it stands."""
    return f"{kept} = [*({kept} or ()), {name!r}]"


def _template(path: Prefix) -> str:
    """The path of a site; ``%d`` stands for an index."""
    parts = ["[%d]" if part.startswith("{") else "." + part.replace("%", "%%") for part in path]
    return "".join(parts).removeprefix(".")


Places = list[tuple[Prefix, str, ir.Number]]


def _verdicts(node: ir.Node, known: dict[int, Places | None]) -> Places | None:
    """(path, algorithm, number) of the checksums whose verdict every value gets; None if it may get others.

    What is inside compressed data does not count: that is a function of its own.
    """
    if id(node) not in known:
        known[id(node)] = _verdicts_of(node, known)
    return known[id(node)]


def _verdicts_of(node: ir.Node, known: dict[int, Places | None]) -> Places | None:
    match node:
        case ir.Structure(measures=measures, sums=sums):
            if any(not measure.bounds or measure.last < measure.at or measure.clip for measure in measures):
                return None
            found: Places = []
            for member in node.members:
                inside = _verdicts(member.node, known)
                if inside is None:
                    return None
                found += [((member.name, *path), algorithm, number) for path, algorithm, number in inside]
            for total in sums:
                number = node.members[total.at].node
                if not isinstance(number, ir.Number):
                    return None
                found.append(((node.members[total.at].name,), total.algorithm, number))
            return found
        case ir.Fallback(node=inner) | ir.Optional(node=inner):
            return _verdicts(inner, known)
        case ir.Packed() | ir.Protobuf():
            return []
        case ir.Reference() | ir.Constant(fatal=False):
            return None
        case ir.Several() if node.announced is not None:
            return None
    silent = all(_verdicts(inner, known) == [] for _, inner in ir.parts(node))
    return [] if silent else None


def _order(number: ir.Number) -> str:
    """struct's letter for the byte order."""
    return "<" if number.little else ">"


def _one_order(numbers: list[ir.Number]) -> bool:
    """Whether numbers have one byte order."""
    return len({number.little for number in numbers if number.size > 1}) < 2  # big and little


def _refusing(node: ir.Node) -> bool:
    """Whether a number can be wrong by itself."""
    match node:
        case ir.Named(closed=closed, number=inner):
            return closed or _refusing(inner)
        case ir.Constant(fatal=fatal):
            return fatal
        case ir.Optional(node=inner) | ir.Boolean(number=inner) | ir.BitFields(number=inner):
            return _refusing(inner)
    return False


def _tuple(path: Prefix) -> str:
    """The parts of a path as a tuple expression; ``{i}`` stands for the variable i."""
    parts = [part[1:-1] if part.startswith("{") else repr(part) for part in path]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _prefix(path: Prefix) -> str:
    return f"(*q, {_tuple(path)[1:]}" if path else "q"


_units: dict[str, Unit] = {}


def unit(key: str) -> Unit:
    """The generated decoder of a schema, made when it is first asked for."""
    found = _units.get(key)
    if found is None:
        found = _units[key] = writer(key).compile()
    return found


def writer(key: str) -> Writer:
    """The module of a schema, written and not compiled; its ``source`` can be read."""
    from wirekit.registry import registry

    return Writer(key, registry[key].layout, unit)
