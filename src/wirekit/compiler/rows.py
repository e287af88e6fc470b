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
import linecache
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from wirekit.checksums import checksum
from wirekit.compiler import ir
from wirekit.compiler.expressions import Context, Expression, Field, LengthOf, Literal, Operation, fields_of
from wirekit.errors import Misuse, WireError
from wirekit.values import Check, Record, Symbol, SymbolTable, record_type
from wirekit.wire.compressed import NEED_SIZE, Opened
from wirekit.wire.stream import Limits, Reader, Session, join_path

Unit = Callable[..., tuple[Any, int]]
Prefix = tuple[Any, ...]
LARGEST_TABLE = 2  # bytes of a number whose bit fields are remembered


class Unusual(Exception):
    """The bytes are not as they should be; the reference engine says how."""


class Cut(Exception):
    """The limit of a list cuts its last element, which is then left to the next field."""


# What generated code raises when a value that it needs is not there or does not fit.
REASONS = (Unusual, TypeError, AttributeError, ZeroDivisionError, OverflowError, UnicodeDecodeError, struct.error)


class State:
    """What one decode keeps: verdicts not yet spelled out, decompressed data, limits.

    Attributes:
        checks: (path's prefix, path, kind, stored, computed, position, source, status) of each verdict.
        source: the number of the buffer at work, 0 for the input.
    """

    __slots__ = ("checks", "depth", "frame", "limits", "nested", "params", "protocol", "source", "sources")

    def __init__(self, protocol: str, params: Mapping[str, Any], limits: Limits) -> None:
        self.protocol = protocol
        self.params = params
        self.limits = limits
        self.frame = limits.frame
        self.checks: list[tuple[Any, ...]] = []
        self.sources: list[tuple[bytes, str]] = []
        self.source = 0
        self.depth = 0
        self.nested = 0

    def verdicts(self, origin: int) -> list[Check]:
        """The verdicts as the other engines give them."""
        found = []
        for prefix, path, kind, stored, computed, position, source, status in self.checks:
            offset = position if source else origin + position
            found.append(Check(join_path([*prefix, *path]), kind, stored, computed, status, offset, source))
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


@dataclass(slots=True)
class _Code:
    """A function that is being written.

    Attributes:
        leave: the limit at which a list that is being written leaves its last element, "" if none does.
    """

    lines: list[str] = field(default_factory=list)
    depth: int = 1
    names: int = 0
    leave: str = ""

    def short(self, condition: str, e: str) -> None:
        """What must not hold, or the bytes end too early."""
        self.put(f"if {condition}: raise {'Cut' if e == self.leave else 'Unusual'}")

    def put(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def fresh(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"


@dataclass(slots=True)
class _Scope:
    """A structure whose fields expressions can read: name → local variable."""

    variables: dict[str, str]
    outer: _Scope | None


class Writer:
    """Writes the module of one schema.

    Args:
        key: the schema's key.
        layout: its IR.
        resolve: gives the unit of another schema by key, when the code runs.
    """

    def __init__(self, key: str, layout: ir.Node, resolve: Callable[[str], Unit]) -> None:
        self.key = key
        self.names: dict[str, Any] = {"Cut": Cut, "Unusual": Unusual, "Symbol": Symbol, "resolve": resolve}
        self._units: dict[int, str] = {}
        self._free: dict[int, list[tuple[int, str]]] = {}
        self._functions: list[list[str]] = []
        self._makers: dict[int, str] = {}
        self._splitters: dict[int, str] = {}
        self._constants: dict[Any, str] = {}
        self._keep: list[Any] = []
        self._tables: list[dict[Any, Any]] = []
        self.root = self._unit(layout)
        self.source = "\n\n\n".join("\n".join(lines) for lines in self._functions) + "\n"

    def compile(self) -> Unit:
        """The unit of the schema: (state, buffer, position, limit, path's prefix) → (value, position after it)."""
        name = f"<wirekit rows {self.key}>"
        linecache.cache[name] = (len(self.source), None, self.source.splitlines(keepends=True), name)
        exec(compile(self.source, name, "exec"), self.names)  # the source is made above, of numbers and names
        for table in self._tables:
            table.update({key: self.names[name] for key, name in table.items()})
        unit: Unit = self.names[self.root]
        return unit

    def _constant(self, value: Any, stem: str) -> str:
        """A name in the module for an object; the same object gets the same name."""
        key = (stem, id(value))
        if key not in self._constants:
            self._keep.append(value)
            name = f"{stem}{len(self._constants)}"
            self._constants[key] = name
            self.names[name] = value
        return self._constants[key]

    def _unit(self, node: ir.Node) -> str:
        """The function of a node; nodes that are shared share it."""
        if id(node) not in self._units:
            self._keep.append(node)
            name = f"unit{len(self._units)}"
            self._units[id(node)] = name
            self._free[id(node)] = sorted(set(_free(node)))
            above = "".join(f", {_above(level, variable)}" for level, variable in self._free[id(node)])
            code = _Code([f"def {name}(S, b, p, e, q{above}):"])
            value = self._node(code, node, self._outside(node), (), "e")
            code.put(f"return {value}, p")
            self._functions.append(code.lines)
        return self._units[id(node)]

    def _outside(self, node: ir.Node) -> _Scope | None:
        """The scopes around a unit: what it reads of them comes as arguments."""
        free = self._free[id(node)]
        scope = None
        for level in range(max((level for level, _ in free), default=-1), -1, -1):
            variables = {variable: _above(level, variable) for at, variable in free if at == level}
            scope = _Scope(variables, scope)
        return scope

    def _call(self, node: ir.Node, scope: _Scope | None) -> tuple[str, str]:
        """(function, further arguments) of a node's unit."""
        name = self._unit(node)
        above = "".join(f", {_variable(scope, level, variable)}" for level, variable in self._free[id(node)])
        return name, above

    def _expression(self, tree: Expression, scope: _Scope | None) -> str:
        match tree:
            case Literal(value=value):
                return repr(value)
            case Context(name=name):
                return f"S.params[{name!r}]"
            case LengthOf(of=of):
                return f"len({self._expression(of, scope)})"
            case Field(up=up, names=(first, *rest)):
                return _variable(scope, up, first) + "".join(_attribute(name) for name in rest)
            case Operation(symbol=symbol, operands=(only,)):
                return f"({symbol}{self._expression(only, scope)})"
            case Operation(symbol=symbol, operands=(left, right)):
                return f"({self._expression(left, scope)} {symbol} {self._expression(right, scope)})"
        raise Misuse(f"{self.key}: {tree} cannot be compiled")

    # What follows writes the code of one kind of node each, and gives the expression of its value. ``path`` holds the
    # parts of the path inside the function: names, and variables that hold an index, written ``{i}``.

    def _node(self, code: _Code, node: ir.Node, scope: _Scope | None, path: Prefix, e: str) -> str:
        match node:
            case ir.Structure():
                return self._structure(code, node, scope, path, e)
            case ir.Several():
                return self._several(code, node, scope, path, e)
            case ir.Blob():
                return self._blob(code, node, scope, e)
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
                code.put(f"{value}, p = S.refer(resolve({node.key!r}), b, p, {e}, {_prefix(path)})")
                return value
            case ir.Packed():
                return self._packed(code, node, scope, path, e)
            case ir.Protobuf():
                return self._protobuf(code, node, path, e)
            case ir.Constant() if not _fixed(node):
                return self._constant_of(code, node, self._node(code, node.node, scope, path, e), scope, path, "p")
            case _:
                return self._fixed_run(code, [("", node)], scope, path, e)[0]

    def _branch(self, code: _Code, value: str, node: ir.Node, scope: _Scope | None, path: Prefix, e: str) -> None:
        code.depth += 1
        if isinstance(node, (ir.Structure, ir.Choice)) and _size(node) > 1:
            name, above = self._call(node, scope)
            code.put(f"{value}, p = {name}(S, b, p, {e}, {_prefix(path)}{above})")
        else:
            code.put(f"{value} = {self._node(code, node, scope, path, e)}")
        code.depth -= 1

    def _maybe(self, code: _Code, condition: str, node: ir.Node, scope: _Scope | None, path: Prefix, e: str) -> str:
        value = code.fresh("v")
        code.put(f"if {condition}:")
        self._branch(code, value, node, scope, path, e)
        code.put("else:")
        code.put(f"    {value} = None")
        return value

    def _structure(self, code: _Code, node: ir.Structure, scope: _Scope | None, path: Prefix, e: str) -> str:
        inner = _Scope({}, scope)
        values: list[str] = []
        verified = [measure for measure in node.measures if not measure.bounds or measure.last < measure.at]
        begin_at = {measure.first for measure in verified} | {total.first for total in node.sums}
        end_at = {index for measure in verified for index in (measure.at, measure.last)}
        end_at |= {index for total in node.sums for index in (total.at, total.last)}
        marks: dict[int, str] = {}
        ends: dict[int, str] = {}
        limits: list[tuple[int, str, str]] = []  # last member, limit inside, limit outside
        index = 0
        while index < len(node.members):
            for measure in node.measures:
                if measure.first == index and measure.at < index and measure.bounds:
                    limit = code.fresh("e")
                    number = values[measure.at]
                    code.put(f"{limit} = p + {number} - {measure.add}" if measure.add else f"{limit} = p + {number}")
                    if measure.clip:
                        code.put(f"if {limit} > {e}: raise Unusual")
                    else:
                        code.short(f"{limit} > {e}", e)
                    limits.append((measure.last, limit, e))
                    e = limit
            run = self._run_from(node, index, {last for last, _, _ in limits})
            if run:
                members = [(member.name, member.node) for member in node.members[index : index + run]]
                values += self._fixed_run(code, members, inner, path, e, self._judged(node, index, run))
                for offset, (name, _) in enumerate(members):
                    inner.variables[name] = values[index + offset]
                    self._measured(code, node, index + offset, values[index + offset])
                self._positions(code, node, index, run, begin_at, end_at, marks, ends)
                index += run
            else:
                member = node.members[index]
                if index in begin_at:
                    marks[index] = code.fresh("s")
                    code.put(f"{marks[index]} = p")
                value = self._node(code, member.node, inner, (*path, member.name), e)
                values.append(value)
                inner.variables[member.name] = value
                self._measured(code, node, index, value)
                if index in end_at:
                    ends[index] = code.fresh("f")
                    code.put(f"{ends[index]} = p")
                index += 1
            while limits and limits[-1][0] == index - 1:
                _, limit, e = limits.pop()
                code.put(f"if p != {limit}: raise Unusual")
            for measure in node.measures:
                if measure.at == index - 1 and measure.last < measure.at:
                    self._agree(code, node, measure, values, marks, ends, path)
        for measure in node.measures:
            if not measure.bounds and measure.last > measure.at:
                self._agree(code, node, measure, values, marks, ends, path)
        for total in node.sums:
            self._sum(code, node, total, values, marks, ends, path)
        maker = self._maker(node)
        return self._made(code, maker, values)

    def _judged(self, node: ir.Structure, index: int, run: int) -> int:
        """Bytes up to the end of the first field of a run that can be wrong by itself, 0 if only the last one can."""
        offset = 0
        for at in range(index, index + run - 1):
            member = node.members[at].node
            offset += sum(number.size for number in _fixed(member))
            measured = any(measure.at == at and measure.bounds for measure in node.measures)
            if measured or _refusing(member):
                return offset
        return 0

    @staticmethod
    def _positions(
        code: _Code,
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
        for at in range(index + run - 1, index - 1, -1):
            if at in end_at:
                ends[at] = code.fresh("f")
                code.put(f"{ends[at]} = p - {left}" if left else f"{ends[at]} = p")
            left += sum(number.size for number in _fixed(node.members[at].node))
            if at in begin_at:
                marks[at] = code.fresh("s")
                code.put(f"{marks[at]} = p - {left}")

    @staticmethod
    def _run_from(node: ir.Structure, index: int, closing: set[int]) -> int:
        """How many members from ``index`` on can be read by one struct call: no limit begins or ends between them."""
        count = 0
        little: bool | None = None
        for at in range(index, len(node.members)):
            numbers = _fixed(node.members[at].node)
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

    def _measured(self, code: _Code, node: ir.Structure, at: int, value: str) -> None:
        """What must hold for a length as soon as it is read."""
        for measure in node.measures:
            if measure.at != at or not measure.bounds or measure.last < at:
                continue
            tests = [f"{value} < {measure.least}"]
            if measure.frame:
                tests.append(f"{value} > S.frame")
            if measure.zero_is_rest:
                tests.append(f"{value} == 0")
            code.put(f"if {' or '.join(tests)}: raise Unusual")
            if measure.first > measure.last:
                code.put(f"if {value} != {measure.add}: raise Unusual")

    def _agree(
        self,
        code: _Code,
        node: ir.Structure,
        measure: ir.Measure,
        values: list[str],
        marks: dict[int, str],
        ends: dict[int, str],
        path: Prefix,
    ) -> None:
        """A length that is only verified."""
        value = values[measure.at]
        actual = f"{ends[measure.last]} - {marks[measure.first]} + {measure.add}"
        code.put(f"if {value} is not None:")
        code.put(f"    if {value} != {actual}: raise Unusual")
        position = f"{ends[measure.at]} - {ir.minimum(_bare(node.members[measure.at].node))}"
        self._verdict(code, (*path, node.members[measure.at].name), "length", value, position, deeper=True)

    def _sum(
        self,
        code: _Code,
        node: ir.Structure,
        total: ir.Sum,
        values: list[str],
        marks: dict[int, str],
        ends: dict[int, str],
        path: Prefix,
    ) -> None:
        value, name = values[total.at], node.members[total.at].name
        number = _bare(node.members[total.at].node)
        if not isinstance(number, ir.Number):
            raise Misuse(f"{self.key}: the checksum {name} is no plain number")
        function = self._constant(checksum(total.algorithm).function, "sum")
        start, end = marks[total.first], ends[total.last]
        conditional = _bare(node.members[total.at].node) is not node.members[total.at].node
        if conditional:
            after = ends[total.at]
            code.put(f"if {value} is None:")
            where = f"{_prefix(())}, {_tuple((*path, name))}"
            code.put(f"    S.checks.append(({where}, {total.algorithm!r}, None, None, {after}, S.source, 'absent'))")
            code.put("else:")
            code.depth += 1
        if total.content:
            covered = values[total.first]
            data = f"({covered} or b'')"
        else:
            data = f"b[{start}:{end}]"
        if total.first <= total.at <= total.last:
            at = f"{ends[total.at]} - {number.size} - {start}"
            data = f"{data}[:{at}] + bytes({number.size}) + {data}[{at} + {number.size}:]"
        computed = f"{function}({data})"
        mask = f" & {(1 << 8 * number.size) - 1}" if number.signed else ""
        code.put(f"if {value}{mask} != {computed}: raise Unusual")
        self._verdict(code, (*path, name), total.algorithm, value, f"{ends[total.at]} - {number.size}")
        if conditional:
            code.depth -= 1

    def _verdict(
        self, code: _Code, path: Prefix, kind: str, value: str, position: str, *, deeper: bool = False
    ) -> None:
        indent = "    " if deeper else ""
        code.put(
            f"{indent}S.checks.append((q, {_tuple(path)}, {kind!r}, {value}, {value}, {position}, S.source, 'ok'))"
        )

    def _maker(self, node: ir.Structure) -> str:
        fields = tuple(member.name for member in node.members)
        return self._make_function(record_type(node.name, fields))

    def _make_function(self, record: type[Record]) -> str:
        """The name of a function that makes a record of values in order."""
        if id(record) not in self._makers:
            kind = self._constant(record, "R")
            maker = f"make_{kind}"
            arguments = ", ".join(f"a{index}" for index in range(len(record._fields)))
            body = [f"def {maker}({arguments}):", f"    r = new({kind})", "    r._extra = None"]
            body += [f"    {_assignment(name, f'a{index}')}" for index, name in enumerate(record._fields)]
            self._functions.append([*body, "    return r"])
            self._makers[id(record)] = maker
            self.names["new"] = object.__new__
        return self._makers[id(record)]

    def _made(self, code: _Code, maker: str, values: list[str]) -> str:
        value = code.fresh("r")
        code.put(f"{value} = {maker}({', '.join(values)})")
        return value

    def _fixed_run(
        self,
        code: _Code,
        members: list[tuple[str, ir.Node]],
        scope: _Scope | None,
        path: Prefix,
        e: str,
        judged: int = 0,
    ) -> list[str]:
        """Members of fixed size, read by one struct call.

        ``judged`` bytes from the start, the field that ends there may be wrong; if the limit lies behind it, that
        comes before the end of the bytes.
        """
        numbers = [number for _, node in members for number in _fixed(node)]
        variables = [code.fresh("n") for _ in numbers]
        little = any(number.little for number in numbers)
        layout = struct.Struct(("<" if little else ">") + "".join(number.code for number in numbers))
        unpack = self._unpack(layout.format)
        if judged and e == code.leave:
            code.put(f"if p + {layout.size} > {e} >= p + {judged}: raise Unusual")
        code.short(f"p + {layout.size} > {e}", e)
        targets = ", ".join(variables) + ("," if len(variables) == 1 else "")
        code.put(f"{targets} = {unpack}(b, p)")
        start = "p"
        if any(isinstance(node, ir.Constant) and not node.fatal for _, node in members):
            start = code.fresh("s")
            code.put(f"{start} = p")
        code.put(f"p += {layout.size}")
        values, offset, index = [], 0, 0
        for name, node in members:
            numbers_here = _fixed(node)
            place = f"{start} + {offset}" if start != "p" else "p"
            where = (*path, name) if name else path
            values.append(self._meaning(code, node, variables[index], scope, where, place))
            offset += sum(number.size for number in numbers_here)
            index += len(numbers_here)
        return values

    def _unpack(self, form: str) -> str:
        name = f"unpack_{'le' if form[0] == '<' else 'be'}_{form[1:]}"
        self.names[name] = struct.Struct(form).unpack_from
        return name

    def _meaning(self, code: _Code, node: ir.Node, number: str, scope: _Scope | None, path: Prefix, place: str) -> str:
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

    def _named(self, code: _Code, table: SymbolTable, closed: bool, number: str) -> str:
        known = self._constant(table._by_value, "T")
        value = code.fresh("v")
        code.put(f"{value} = {known}.get({number})")
        other = "raise Unusual" if closed else f"{value} = Symbol({number}, None, '')"
        code.put(f"if {value} is None: {other}")
        return value

    def _constant_of(
        self, code: _Code, node: ir.Constant, value: str, scope: _Scope | None, path: Prefix, place: str
    ) -> str:
        code.put(f"if {value} != {self._expression(node.value, scope)}: raise Unusual")
        if not node.fatal:
            self._verdict(code, path, "constant", value, place)
        return value

    def _bits(self, code: _Code, node: ir.BitFields, number: str) -> str:
        record = record_type("Bits", tuple(bit.name for bit in node.fields))
        maker = self._make_function(record)
        base = _bare(node.number)
        if not isinstance(base, ir.Number):
            raise Misuse(f"{self.key}: bit fields lie in a plain number")
        values = [self._bit(bit, f"(x >> {bit.shift} & {(1 << bit.width) - 1})") for bit in node.fields]
        if id(node) not in self._splitters:
            self._keep.append(node)
            self._splitters[id(node)] = f"bits{len(self._splitters)}"
            name = self._splitters[id(node)]
            split = [f"def {name}(x):", f"    x &= {(1 << 8 * base.size) - 1}", f"    return ({', '.join(values)},)"]
            self._functions.append(split)
        name = self._splitters[id(node)]
        if base.size > LARGEST_TABLE:
            return self._made(code, maker, [f"*{name}({number})"])
        cache = f"{name}_known"
        self.names.setdefault(cache, {})
        split_value = code.fresh("t")
        code.put(f"{split_value} = {cache}.get({number})")
        code.put(f"if {split_value} is None: {split_value} = {cache}[{number}] = {name}({number})")
        return self._made(code, maker, [f"*{split_value}"])

    def _bit(self, bit: ir.BitField, number: str) -> str:
        if bit.table is not None:
            return f"{self._constant(bit.table, 'table')}({number})"
        return f"({number} == 1)" if bit.width == 1 else number

    def _blob(self, code: _Code, node: ir.Blob, scope: _Scope | None, e: str) -> str:
        value = code.fresh("v")
        if node.length is None:
            code.put(f"{value} = b[p:{e}]")
            code.put(f"p = {e}")
        elif isinstance(node.length, ir.Number):
            (size,) = self._fixed_run(code, [("", node.length)], scope, (), e)
            self._prefixed(code, node, value, size, e)
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

    def _prefixed(self, code: _Code, node: ir.Blob, value: str, size: str, e: str) -> None:
        if node.null is not None:
            code.put(f"if {size} == {node.null}:")
            code.put(f"    {value} = None")
            code.put("else:")
            code.depth += 1
        after = code.fresh("p")
        code.put(f"{after} = p + {size}")
        code.put(f"if {size} < 0: raise Unusual")
        code.short(f"{after} > {e}", e)
        code.put(f"{value} = b[p:{after}]{'.decode()' if node.text else ''}")
        code.put(f"p = {after}")
        if not node.explained:
            code.put(f"if {value}: raise Unusual")
        if node.null is not None:
            code.depth -= 1

    def _finish_blob(self, code: _Code, node: ir.Blob, value: str) -> None:
        if not node.explained:
            code.put(f"if {value}: raise Unusual")
        if node.text:
            code.put(f"{value} = {value}.decode()")

    def _several(self, code: _Code, node: ir.Several, scope: _Scope | None, path: Prefix, e: str) -> str:
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
            code.put(f"{items} = []")
            code.put(f"for {index} in range({count}):")
            self._element(code, node, items, index, scope, path, e)
        if node.null is not None:
            code.depth -= 1
        return items

    def _element(
        self, code: _Code, node: ir.Several, items: str, index: str, scope: _Scope | None, path: Prefix, e: str
    ) -> None:
        code.depth += 1
        value = self._node(code, node.element, scope, (*path, f"{{{index}}}"), e)
        code.put(f"{items}.append({value})")
        code.depth -= 1

    def _to_the_end(
        self, code: _Code, node: ir.Several, items: str, scope: _Scope | None, path: Prefix, e: str
    ) -> None:
        index, start = code.fresh("i"), code.fresh("s")
        code.put(f"{items} = []")
        code.put(f"{index} = 0")
        code.put(f"while p < {e}:")
        code.depth += 1
        if node.until:
            code.put(f"if {index} and b[p:p + {len(node.until)}] == {node.until!r}: break")
        code.put(f"{start} = p")
        outer, code.leave = code.leave, e if node.stop else ""
        known, opened = code.fresh("k"), code.fresh("o")
        if node.stop:
            code.put(f"{known}, {opened} = len(S.checks), len(S.sources)")
            code.put("try:")
            code.depth += 1
        value = self._node(code, node.element, scope, (*path, f"{{{index}}}"), e)
        code.put(f"{items}.append({value})")
        code.leave = outer
        if node.stop:
            code.depth -= 1
            code.put("except Cut:")
            code.put(f"    p = {start}")
            code.put(f"    del S.checks[{known}:], S.sources[{opened}:]")
            code.put("    break")
        code.put(f"if p == {start}: raise Unusual")
        code.put(f"{index} += 1")
        code.depth -= 1
        if node.announced is not None:
            number = code.fresh("n")
            code.put(f"{number} = {self._expression(node.announced, scope)}")
            code.put(f"if {number} != len({items}): raise Unusual")
            self._verdict(code, path, "count", number, "p")

    def _choice(self, code: _Code, node: ir.Choice, scope: _Scope | None, path: Prefix, e: str) -> str:
        value, unit = code.fresh("v"), code.fresh("u")
        on = [self._expression(part, scope) for part in node.on]
        key = on[0] if len(on) == 1 else f"({', '.join(on)})"
        free = sorted({pair for _, case in node.cases for pair in self._needs(case)} | set(self._needs(node.otherwise)))
        cases = {(values[0] if len(values) == 1 else values): self._adapted(case, free) for values, case in node.cases}
        table = self._constant(cases, "cases")
        self._tables.append(cases)
        otherwise = "None" if node.otherwise is None else self._adapted(node.otherwise, free)
        code.put(f"{unit} = {table}.get({key}, {otherwise})")
        code.put(f"if {unit} is None: raise Unusual")
        above = "".join(f", {_variable(scope, level, variable)}" for level, variable in free)
        code.put(f"{value}, p = {unit}(S, b, p, {e}, {_prefix(path)}{above})")
        return value

    def _needs(self, node: ir.Node | None) -> list[tuple[int, str]]:
        if node is None:
            return []
        self._unit(node)
        return self._free[id(node)]

    def _adapted(self, node: ir.Node, free: list[tuple[int, str]]) -> str:
        """A node's unit that takes these further arguments, whichever it needs."""
        name = self._unit(node)
        mine = self._free[id(node)]
        if mine == free:
            return name
        adapted = f"{name}_of{len(self._functions)}"
        taken = "".join(f", {_above(level, variable)}" for level, variable in free)
        given = "".join(f", {_above(level, variable)}" for level, variable in mine)
        self._functions.append([f"def {adapted}(S, b, p, e, q{taken}):", f"    return {name}(S, b, p, e, q{given})"])
        return adapted

    def _ahead(self, code: _Code, node: ir.Ahead, e: str) -> str:
        numbers = _fixed(node.node)
        if not numbers:
            raise Misuse(f"{self.key}: what is read ahead has a fixed size")
        size = sum(number.size for number in numbers)
        code.short(f"p + {node.at + size} > {e}", e)
        code.put(f"p += {node.at}")
        (value,) = self._fixed_run(code, [("", node.node)], None, (), e)
        code.put(f"p -= {node.at + size}")
        return value

    def _bounded(self, code: _Code, node: ir.Bounded, scope: _Scope | None, path: Prefix, e: str) -> str:
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

    def _packed(self, code: _Code, node: ir.Packed, scope: _Scope | None, path: Prefix, e: str) -> str:
        value, codec = self._blob(code, node.blob, scope, e), code.fresh("c")
        on = [self._expression(part, scope) for part in node.on]
        key = on[0] if len(on) == 1 else f"({', '.join(on)})"
        codecs = {(values[0] if len(values) == 1 else values): name for values, name in node.codecs}
        table = self._constant(codecs, "codecs")
        code.put(f"{codec} = {table}.get({key})")
        code.put(f"if {codec} is not None and {value} is not None:")
        name, above = self._call(node.node, scope)
        size = "None" if node.size is None else self._expression(node.size, scope)
        arguments = f"{codec}, {value}, {size}, {node.size is not None}, {name}, {_prefix(path)}{above}"
        code.put(f"    {value} = S.open({arguments})")
        return value

    def _protobuf(self, code: _Code, node: ir.Protobuf, path: Prefix, e: str) -> str:
        from wirekit.wire.protobuf import Message

        kind = self._constant(Message._known[node.message], "message")
        value = code.fresh("v")
        code.put(f"{value} = S.message({kind}, b, p, {e}, {_prefix(path)})")
        code.put(f"p = {e}")
        return value


def _fixed(node: ir.Node) -> list[ir.Number]:
    """The numbers of a node of fixed size that one struct call can read; empty for others."""
    match node:
        case ir.Number():
            return [node]
        case ir.Boolean(number=inner) | ir.Named(number=inner) | ir.BitFields(number=inner):
            return _fixed(inner)
        case ir.Constant(node=inner) | ir.Optional(node=inner):
            return _fixed(inner)
    return []


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


def _bare(node: ir.Node) -> ir.Node:
    """The node under conditions and defaults."""
    while isinstance(node, (ir.When, ir.WhenMore, ir.Optional)):
        node = node.node
    return node


def _size(node: ir.Node) -> int:
    return sum(1 for _ in ir.parts(node))


def _free(node: ir.Node, level: int = 0) -> Iterator[tuple[int, str]]:
    """(how far outside the node, field) of what its expressions read of structures around it."""
    seen: set[tuple[int, int]] = set()
    waiting = [(node, level)]
    while waiting:
        at, inside = waiting.pop()
        if (id(at), inside) in seen:
            continue
        seen.add((id(at), inside))
        for tree in _trees(at):
            for each in fields_of(tree):
                if each.up >= inside:
                    yield each.up - inside, each.names[0]
        deeper = inside + isinstance(at, ir.Structure)
        waiting += [(inner, deeper) for _, inner in ir.parts(at)]


def _trees(node: ir.Node) -> Iterator[Expression]:
    """The expressions of a node that are needed to decode it."""
    kinds = (Literal, Field, Context, LengthOf, Operation)
    names = ("condition", "length", "count", "announced", "size") + (
        ("value",) if isinstance(node, ir.Constant) else ()
    )
    for name in names:
        tree = getattr(node, name, None)
        if isinstance(tree, kinds):
            yield tree
    yield from getattr(node, "on", ())


def _attribute(name: str) -> str:
    return f"[{name!r}]" if keyword.iskeyword(name) else f".{name}"


def _assignment(name: str, value: str) -> str:
    return f"setattr(r, {name!r}, {value})" if keyword.iskeyword(name) else f"r.{name} = {value}"


def _above(level: int, variable: str) -> str:
    return f"up{level}_{variable}"


def _variable(scope: _Scope | None, up: int, name: str) -> str:
    for _ in range(up):
        scope = scope.outer if scope is not None else None
    if scope is None or name not in scope.variables:
        raise Misuse(f"an expression reads {name}, which is not read before it")
    return scope.variables[name]


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
