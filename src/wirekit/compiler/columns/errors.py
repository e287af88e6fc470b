"""Rows for records that did not decode, with the errors of the reference engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wirekit.compiler.columns.reference import Reference, of_schema
from wirekit.compiler.columns.run import Level
from wirekit.errors import Limit, WireError
from wirekit.program.maker import Program
from wirekit.values import Check

ERRORS = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("length", pa.int64(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("at", pa.int64(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("limit", pa.string()),
        pa.field("depth", pa.int32(), nullable=False),
        pa.field("wrapper", pa.int64()),
        pa.field("at_depth", pa.int32(), nullable=False),
    ]
)
NO_ERRORS = pa.RecordBatch.from_pylist([], schema=ERRORS)
CHUNK = 1 << 16  # errors that are Python objects at a time


class Details(NamedTuple):
    """The columns of an error that describe it; ``limit`` is the name of the limit that is exceeded, if known."""

    kind: str
    path: str
    at: int
    reason: str
    limit: str | None = None


@dataclass(slots=True)
class LevelErrors:
    """The errors of a level.

    Attributes:
        program: the program that scanned the level.
        reference: supplies the errors.
        depth: how many times the data of the level was decompressed.
        parts: errors of records, with the number of the range of each.
        more: the same, one by one.
        lead_errors: errors in the fields before the records, by the number of the range.
    """

    program: Program
    reference: Reference
    level: Level
    depth: int = 0
    parts: list[tuple[pa.RecordBatch, NDArray[Any]]] = field(default_factory=list)
    more: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    lead_errors: dict[int, dict[str, Any]] = field(default_factory=dict)

    @property
    def holder(self) -> str:
        """The field whose bytes are, or contain compressed, further records."""
        holder = self.program.packing or self.program.contents
        assert holder is not None
        return self.program.columns[holder.column].path

    def refused(self) -> Self:
        """Adds the errors of the refused records, which can be all of them, and those of the fields before them."""
        level = self.level
        self.lead_errors = dict(self._in_front())
        which = (np.searchsorted(level.arrays["failed"], np.arange(level.errors), side="right") - 1).tolist()
        for start in range(0, level.errors, CHUNK):
            numbers = range(start, min(start + CHUNK, level.errors))
            self.parts.append(_batch_of([self._refused(number, which[number]) for number in numbers]))
        return self

    def _refused(self, number: int, which: int) -> tuple[int, dict[str, Any]]:
        level, arrays, begin = self.level, self.level.arrays, int(self.level.begins[which])
        start, length = int(arrays["error_offset"][number]), int(arrays["error_length"][number])
        error, _ = self._read(start, int(level.ranges.ends[which]), begin)
        reason = self.program.reasons[int(arrays["error_reason"][number]) - 1]
        at = int(arrays["error_at"][number]) - begin
        details = Details(reason.kind, reason.path, at, reason.text) if error is None else details_of(error, at)
        at_depth = self.depth
        if self.program.packing or self.program.contents:  # a record that is cut may be decompressed too
            at_depth += details.path.count(f"{self.holder}.content")
        return self._row((which, start - begin, length), details, at_depth)

    def _read(self, start: int, end: int, begin: int) -> tuple[WireError | None, list[Check]]:
        """The errors that the reference engine finds in a record."""
        return self.reference.read(self.level.buffer.data, start, end, origin=-begin, depth=self.depth)

    def _in_front(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """The errors in the fields before the records, with the number of the range.

        A length beyond the data is reported as it is: the reference engine would read all records first.
        """
        ranges = self.level.ranges
        for index, (name, kind, place, length, words) in ranges.wrong.items():
            begin = int(self.level.begins[index])
            details = Details(kind, name, place - begin, words)
            if ranges.starts[index] == ranges.ends[index]:
                data, end = self.level.buffer.data, place + length
                error, _ = of_schema(self.reference).read(data, begin, end, origin=-begin, depth=self.depth)
                details = details if error is None else details_of(error, place - begin)
            yield self._row((index, place - begin, length), details)

    def unopened(self, row: int, fallback: WireError | Details) -> None:
        """Adds the error for the content of a record that seemed good.

        Args:
            fallback: the error to add if the reference engine finds none.
        """
        if isinstance(fallback, WireError):
            error_details = details_of(fallback, 0)
            fallback = (
                error_details if error_details.limit is not None else error_details._replace(kind="decompression")
            )
        which, offset, _ = record = record_of(self.level, row)
        begin, path = int(self.level.begins[which]), self.holder
        error, checks = self._read(begin + offset, int(self.level.ranges.ends[which]), begin)
        details, at_depth = fallback._replace(path=path, at=offset), self.depth
        bad = (check for check in checks if check.kind in ("decompression", "layout") and check.status == "bad")
        if error is not None:
            details = details_of(error, offset)
            at_depth += details.path.count(f"{path}.content")
        elif check := next((check for check in bad if check.path in (path, f"{path}.content")), None):
            details = Details(check.kind, check.path, check.offset, check.note)
            at_depth += int(check.source > 0)
        self.add(record, details, at_depth)

    def too_much(self, row: int) -> None:
        """Adds the error for a record whose content exceeds the memory limit."""
        record = record_of(self.level, row)
        exceeded = details_of(self.reference.allowance.exceeded(), record[1])
        self.add(record, exceeded._replace(path=self.holder))

    def add(self, record: tuple[int, int, int], details: Details, at_depth: int | None = None) -> None:
        """Adds an error of a record.

        Args:
            record: as ``record_of`` returns it.
            at_depth: how many times the data with the error was decompressed; by default ``depth``.
        """
        self.more.append(self._row(record, details, at_depth))

    def _row(
        self, record: tuple[int, int, int], details: Details, at_depth: int | None = None
    ) -> tuple[int, dict[str, Any]]:
        which, *extent = record
        wrapper = int(self.level.roots[which]) if self.depth else None
        row = *extent, *details, self.depth, wrapper, self.depth if at_depth is None else at_depth
        return which, dict(zip(ERRORS.names, row, strict=True))

    def table(self) -> tuple[pa.RecordBatch, NDArray[Any]]:
        """The errors of records, and the number of the range of each."""
        parts = [*self.parts, _batch_of(self.more)] if self.more or not self.parts else self.parts
        if len(parts) > 1:
            parts = [(pa.concat_batches([rows for rows, _ in parts]), np.concatenate([which for _, which in parts]))]
        self.parts, self.more = parts, []
        return parts[0]

    def forget(self, refused: NDArray[Any]) -> None:
        """Drops the errors of some ranges."""
        rows, which = self.table()
        self.parts = [(rows.filter(pa.array(~refused[which])), which[~refused[which]])]
        self.lead_errors = {which: row for which, row in self.lead_errors.items() if not refused[which]}

    def batches(self) -> list[pa.RecordBatch]:
        """All rows, in batches."""
        if not (self.parts or self.more or self.lead_errors):
            return []
        of_lead = pa.RecordBatch.from_pylist(list(self.lead_errors.values()), schema=ERRORS)
        return [self.table()[0], of_lead]


def error_batch(offset: int, length: int, details: Details) -> pa.RecordBatch:
    """One error in bytes that are not in compressed data."""
    row = offset, length, *details, 0, None, 0
    return pa.RecordBatch.from_pylist([dict(zip(ERRORS.names, row, strict=True))], schema=ERRORS)


def errors_of(levels: Iterable[LevelErrors]) -> pa.RecordBatch:
    """The errors of some levels."""
    parts = [part for errors in levels for part in errors.batches()]
    return pa.concat_batches(parts) if parts else NO_ERRORS


def _batch_of(rows: list[tuple[int, dict[str, Any]]]) -> tuple[pa.RecordBatch, NDArray[Any]]:
    which = np.array([which for which, _ in rows], np.int64)
    return pa.RecordBatch.from_pylist([row for _, row in rows], schema=ERRORS), which


def record_of(level: Level, row: int) -> tuple[int, int, int]:
    """(number of the range, offset from its begin, length) of the record of a row."""
    which = int(np.searchsorted(level.arrays["first"], row, side="right")) - 1
    return which, int(level.arrays["offset"][row] - level.begins[which]), int(level.arrays["length"][row])


def path_inside(content: str, level: Level, which: int, error: dict[str, Any]) -> str:
    """The path of an error of a nested record, from the record that contains its range."""
    first = level.arrays["first"]
    begin, end = first[which], first[which + 1] if which + 1 < first.size else level.rows
    index = np.searchsorted(level.arrays["offset"][begin:end], error["offset"] + level.begins[which])
    return f"{content}[{index}]{'.' if error['path'] else ''}{error['path']}"


def details_of(error: WireError, at: int) -> Details:
    """The details of an error; ``at`` is its offset if it has none."""
    limit = error.limit if isinstance(error, Limit) else None
    return Details(error.kind, error.path, at if error.offset is None else error.offset, error.reason, limit)
