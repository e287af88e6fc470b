"""What columns must give, found record by record with the reference engine."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pyarrow as pa

import wirekit
from tests.compiler.cells import differences
from wirekit.compiler.columns import scan
from wirekit.compiler.columns.header_variants import selected_by_header
from wirekit.compiler.columns.plan import start
from wirekit.compiler.columns.programs import Program, led_program, program
from wirekit.compiler.columns.reference import of_nested
from wirekit.compiler.columns.run import as_array
from wirekit.compiler.columns.scanning import LIBRARIES
from wirekit.engine import Params
from wirekit.errors import Limit, Misuse, Short, WireError
from wirekit.values import Record
from wirekit.wire import Array, Repeat, Sized
from wirekit.wire.composite import RecordsToEnd, Struct
from wirekit.wire.compressed import is_damage
from wirekit.wire.stream import Allowance, Limits, Reader, Scope, Session

EMPTY = "expected a record of at least one byte, found an empty one"
ENDING = ("short", "wrong", "limit")
VALUE, CHECKS = "$value", "$checks"


class Error(NamedTuple):
    """A row of the errors, in the order in which records are walked over."""

    depth: int
    offset: int
    length: int
    kind: str
    path: str
    at: int
    reason: str
    limit: str | None
    wrapper: int | None
    at_depth: int


@dataclass
class Expected:
    """What columns must give: rows by column, the errors of records, where the records end, how many are good."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    errors: list[Error] = field(default_factory=list)
    consumed: int = 0
    good: int = 0


@dataclass(frozen=True)
class Walk:
    """The records of a list.

    Attributes:
        columns_program: what the columns engine knows of the schema.
        key: of the schema.
        several: the list's node, None for one record after the other.
        element: the node of a record.
        scope: what is read around it.
        allowance: what the bytes may ask for.
        count: how many records there should be, -1 for as many as there are.
        depth: how many times the bytes were decompressed.
        wrapper: where the record begins that holds them, at depth 0.
    """

    columns_program: Program
    key: str
    several: Any
    element: Any
    scope: Scope
    allowance: Allowance
    count: int = -1
    depth: int = 0
    wrapper: int | None = None

    @property
    def holder_path(self) -> str:
        """The path of the field that may hold more records."""
        kernel = self.columns_program.program
        holder = kernel.packing or kernel.contents
        return kernel.columns[holder.column].path if holder is not None else ""

    def records(self, data: bytes, begin: int, end: int) -> Expected:
        """Walks over records, and on behind a bad one whose length tells where it ends."""
        stop = isinstance(self.several, RecordsToEnd) and self.several.short_tail == "stop"
        until = self.several.until if isinstance(self.several, RecordsToEnd) else b""
        first = int(self.several.except_first) if until else 0
        position, number, records = begin, 0, Expected()
        while number < self.count or (self.count < 0 and position < end):
            if until and number >= first and data.startswith(until, position):
                break
            number += 1
            session = Session(self.key, self.allowance.limits, contain=True)
            session.allowance = self.allowance
            reader = Reader(session, data, position, end, depth=self.depth)
            reader.nested, reader.leave = self.depth, 0 if stop else -1
            try:
                value = self.element._parse(reader, self.scope, "")
                if session.contained:
                    raise session.contained[0].error
            except WireError as raised:
                error = session.contained[0].error if session.contained else raised
                if stop and isinstance(error, Short) and error.bounded == 0:
                    break
                after = self.after(data, position, end)
                records.errors.append(self.failed(error, position, end if after is None else after))
                if after is None:
                    break
                position = after
                continue
            if reader.position == position and self.count < 0:
                records.errors.append(self.error(position, end, "wrong", "", position, EMPTY))
                break
            self.good(records, value, session, position, reader.position)
            position = reader.position
        records.consumed = position
        return records

    def error(self, begin: int, end: int, kind: str, path: str, at: int, reason: str, deeper: int = 0) -> Error:
        inside = self.depth + deeper
        return Error(self.depth, begin, end - begin, kind, path, at, reason, None, self.wrapper, inside)

    def failed(self, error: WireError, begin: int, end: int) -> Error:
        assert error.offset is not None
        deeper = error.path.count(f"{self.holder_path}.content") if self.holder_path else 0
        limit = error.limit if isinstance(error, Limit) else None
        failed = self.error(begin, end, error.kind, error.path, error.offset, error.reason, deeper)
        return failed._replace(limit=limit)

    def good(self, records: Expected, value: Any, session: Session, begin: int, end: int) -> None:
        """Adds the row of a record, or what it holds."""
        records.good += 1
        kernel, path = self.columns_program.program, self.holder_path
        unopened = self.unopened(session, begin, end)
        records.errors += unopened
        contents = [data for data, place in session.sources if path and place == f"{path}.content"]
        if contents and kernel.packing is not None:
            wrapper = begin if self.wrapper is None else self.wrapper
            below = expected(kernel.packing.key, contents[0], self.again(), self.depth + 1, wrapper)
            if below.good or not unopened:
                records.rows += below.rows
                records.errors += below.errors
                return
            contents = []  # no record is decompressed before the damage
        records.rows.append(row(value, session, begin, end, self.depth))
        if contents and isinstance(at(value, [*path.split("."), "content"]), list):
            records.errors += self.errors_inside(contents[0], path, begin)

    def unopened(self, session: Session, begin: int, end: int) -> list[Error]:
        """The errors of a record whose content does not decompress, or is no message."""
        path, errors = self.holder_path, []
        for check in session.checks:
            damaged = is_damage(check) or (check.kind == "layout" and check.status == "bad")
            if path and damaged and check.path in (path, f"{path}.content"):
                deeper = check.source > 0
                errors.append(self.error(begin, end, check.kind, check.path, check.offset, check.note, deeper))
        return errors

    def errors_inside(self, data: bytes, path: str, wrapper: int) -> list[Error]:
        """The errors of records of another layout that a record holds compressed."""
        assert self.columns_program.contents is not None
        element = of_nested(self.columns_program.contents.plan, self.allowance).node
        scope = Scope.root(Params())
        walk = Walk(self.columns_program.contents, self.key, None, element, scope, self.again(), -1, 1, wrapper)
        return [error._replace(path=f"{path}.{error.path}") for error in walk.records(data, 0, len(data)).errors]

    def again(self) -> Allowance:
        """For what was decompressed, and counted, with the record around it."""
        return Allowance(self.allowance.limits, self.allowance.total)

    def after(self, data: bytes, position: int, end: int) -> int | None:
        """Where the next record begins, as the length of this one tells; None where it does not, or beyond the end."""
        element = self.element.settled(self.scope)
        reader = Reader(Session(self.key, self.allowance.limits), data, position, end)
        if isinstance(element, Sized):
            try:
                behind = int(element.length.read(reader, "") + reader.position)
            except WireError:
                return None
            return behind if reader.position <= behind <= end else None
        if not isinstance(element, Struct):
            return None
        scope, around = self.scope.inner(), list[tuple[int, int, int]]()  # the last member that a length covers
        lengths = [(at, *facts) for at, facts in element.lengths.items() if facts[0].bounds]
        lengths.sort(key=lambda each: -each[3])  # of those that begin at one member, the outer one first
        for index, (name, node) in enumerate(element.members):
            for place, length, first, last in lengths:
                number = scope[element.members[place][0]] if place < index else None
                if number is not None and index == first and last == len(element.members) - 1:
                    if length.zero_is_rest and number == 0:
                        return end
                    behind = int(reader.position + number - length.add)
                    return behind if behind <= end else end if length.clip else None
                if number is not None and index == first <= last and not (length.zero_is_rest and number == 0):
                    stop = int(reader.position + number - length.add)
                    if stop > reader.limit and not length.clip:
                        return None
                    stop = min(stop, reader.limit)
                    around.append((last, stop, reader.limit))
                    reader.limit = stop
            try:
                inside = node.settled(scope)
                if isinstance(inside, Sized) and index == len(element.members) - 1 and not around:
                    behind = int(inside.length.read(reader, "") + reader.position)
                    return behind if reader.position <= behind <= end else None
                scope[name] = node._parse(reader, scope, "")
            except WireError:
                return None
            while around and around[-1][0] == index:  # bytes left over in a length are a gap
                _, reader.position, reader.limit = around.pop()
        return None


def list_of(key: str) -> tuple[list[Any], Any, Any]:
    """The fields in front of the list of records of a schema, the list's node if there is one, the record's node."""
    node, plan = wirekit.registry[key].node, program(key).plan
    if plan.least is not None and not plan.path:
        several: Any = node.settled(Scope.root(Params()))
        return [], several, several.element
    if not isinstance(node, Struct):
        return [], None, node
    for index, (name, member) in enumerate(node.members):
        several = member.settled(Scope.root(Params())) if name == plan.path else None
        if isinstance(several, (RecordsToEnd, Array, Repeat)):
            return node.members[:index], several, several.element
    return [], None, node


def expected(key: str, data: bytes, allowance: Allowance, depth: int = 0, wrapper: int | None = None) -> Expected:
    """What columns must give of a buffer."""
    limits = allowance.limits
    schema = wirekit.registry[key]
    scope = Scope.root(Params())
    if selected_by_header(schema.layout):
        try:
            columnar, place, ahead = led_program(key, as_array(data), limits)
        except wirekit.WireError:
            return Expected()
        several = schema.node.members[-1][1].settled(ahead.scope)
        walk = Walk(columnar, key, several, several.element, ahead.scope, allowance)
    else:
        columnar = program(key)
        place = start(columnar.plan, memoryview(data), 0, len(data), limits.frame)
        _, several, element = list_of(key)
        scope = scope.inner() if columnar.plan.path else scope
        walk = Walk(columnar, key, several, element, scope, allowance, place.count, depth, wrapper)
    records = walk.records(data, place.start, place.end)
    if walk.columns_program.plan.is_bounded and not records.errors:
        records.consumed = place.end
    return records


def at(value: Any, path: list[str]) -> Any:
    """The value at a path."""
    for name in path:
        value = value._get(name) if isinstance(value, Record) else None
    return value


def row(value: Any, session: Session, begin: int, end: int, depth: int) -> dict[str, Any]:
    cells = {"@offset": begin, "@length": end - begin, "@depth": depth, VALUE: value, CHECKS: session.checks}
    if not any(check.kind == "decompression" for check in session.checks):
        cells["@gap"] = sum(gap.length for gap in session.gaps if gap.source == 0)
    return cells


def plain(key: str) -> bool:
    """Whether each record is a row of its fields.

    With messages a row may be a part of a record: these have tests of their own
    (``tests/compiler/test_columns_messages.py``).
    """
    try:
        columns_program = program(key)
    except Misuse:
        return False
    return not columns_program.program.messages and columns_program.program.contents is None


def columns_open(key: str) -> bool:
    """Whether the records of a schema hold others of another layout."""
    return not selected_by_header(wirekit.registry[key].layout) and program(key).contents is not None


def closed(batch: pa.RecordBatch, error: Error) -> bool:
    """Whether an error is a limit that only what columns leave closed exceeds: compressed data in lists."""
    left_out = json.loads(batch.schema.metadata.get(b"wirekit.left_out", b"[]"))
    path = re.sub(r"\[\d+\]", "", error.path)
    return error.kind == "limit" and any(f"{path}.content" == name or path.startswith(f"{name}.") for name in left_out)


def compare(key: str, data: bytes, limits: Limits | None = None) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Columns against the walk over the records, and their first error against that of the schema as a whole."""
    if limits is None:  # what is left for values is about the same then; columns count their libraries, too
        limits = wirekit.registry[key].limits
        limits = replace(limits, memory=limits.memory + LIBRARIES)
    batch, errors = scan(key, data, limits=limits)
    batch.validate(full=True)
    errors.validate(full=True)
    want = expected(key, data, Allowance(limits, len(data)))
    scanned = [Error(**error) for error in errors.to_pylist()]
    assert int(batch.schema.metadata[b"wirekit.errors"]) == len(scanned)
    if any(closed(batch, error) for error in want.errors):
        return batch, errors
    front = compare_errors(key, data, limits, scanned, want)
    for error in scanned:
        own = error.at_depth == error.depth
        assert not own or error.offset <= error.at <= error.offset + error.length
    if not front:
        ends = {want.consumed}
        if columns_open(key):  # of a record that only what it holds makes an error, the end is known
            ends |= {error.offset + error.length for error in want.errors if error.offset == want.consumed}
        assert int(batch.schema.metadata[b"wirekit.consumed"]) in ends
    if plain(key):
        compare_rows(key, batch, want.rows)
    else:
        assert list(dict.fromkeys(batch["@offset"].to_pylist() if batch.num_columns else [])) == [
            each["@offset"] for each in want.rows
        ]
    for each in batch.schema:
        assert each.nullable or batch[each.name].null_count == 0
    return batch, errors


def compare_errors(key: str, data: bytes, limits: Limits, scanned: list[Error], want: Expected) -> list[Error]:
    """All errors of records, and at most one of what stands in front of them, which it gives.

    The reference engine ends with its first error, which must be the first one of columns.
    """
    counted, should = Counter(scanned), Counter(want.errors)
    assert not should - counted, (should - counted, counted - should)
    front = list((counted - should).elements())
    assert len(front) <= 1, (should, front)
    first = wirekit.decode(data, key, limits=limits, engine="reference").error
    ending = sorted(error for error in want.errors if not error.depth and error.kind in ENDING)
    mine = next(iter([*ending, *front]), None)
    if front and first is not None and (front[0].path, front[0].at) == (first.path, first.offset):
        mine = front[0]  # a count that does not fit; the elements that are there are read all the same
    schema = wirekit.registry[key]
    listed = selected_by_header(schema.layout) or list_of(key)[1] is not None
    if not listed:
        assert not front
        alone = [error for error in ending if error.offset == 0 and (error.path or error.reason != EMPTY)]
        mine, first = next(iter(alone), None), first if data else None
    assert (mine is None) == (first is None), (mine, first)
    if mine is not None and first is not None:
        path = re.sub(r"^\w*\[\d+\]\.?", "", first.path) if listed and mine not in front else first.path
        assert (mine.kind, mine.path, mine.at, mine.reason) == (first.kind, path, first.offset, first.reason)
    return front


def compare_rows(key: str, batch: pa.RecordBatch, rows: list[dict[str, Any]]) -> None:
    """Columns against the values of records, field by field."""
    assert batch.num_rows == len(rows)
    for cells, should in zip(batch.to_pylist(), rows, strict=True):
        scanned = {name: cell for name, cell in should.items() if name in cells}
        assert {name: cells[name] for name in scanned} == scanned
        assert not differences(key, cells, should[VALUE], should[CHECKS])
