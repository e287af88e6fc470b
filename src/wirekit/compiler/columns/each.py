"""Decodes a column of byte strings, each a value of one schema, in one scan.

A value is a row if the schema is one record; if it is a list of records, each record is a row. A value that does not
decode has an error text and never affects its neighbours: if hostile bytes exhaust the ``Limits`` of a batch, the batch
is scanned again in halves, down to the value that caused it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wirekit.compiler.columns.arrow import batch_of, merged_levels
from wirekit.compiler.columns.column_names import checked
from wirekit.compiler.columns.compressed_records import compressed_levels
from wirekit.compiler.columns.errors import LevelErrors
from wirekit.compiler.columns.opening import Opening
from wirekit.compiler.columns.plan import Ranges, Start, start
from wirekit.compiler.columns.programs import Columnar, program
from wirekit.compiler.columns.reference import of_records
from wirekit.compiler.columns.run import Level, NoRoom, byte_strings, run
from wirekit.compiler.columns.scanning import LIBRARIES
from wirekit.compiler.contexts import checked as checked_context
from wirekit.errors import plural
from wirekit.registry import registry
from wirekit.wire.stream import SHARED, Allowance, Limits

_VALUE = "@value"
"""The column with the number of the value that a row belongs to, until nested records are unpacked."""


@dataclass(slots=True)
class Values:
    """The contents of consecutive byte strings of a column.

    Attributes:
        batch: the rows of all of them, as ``columns`` returns them; times are integers.
        firsts: ``firsts[i]`` is the first row of the i-th value, ``firsts[-1]`` the number of rows.
        errors: the texts of errors by the number of the value; only for values with errors.
    """

    batch: pa.RecordBatch
    firsts: NDArray[Any]
    errors: dict[int, list[str]] = field(default_factory=dict)

    def doubtful(self, others: Iterable[NDArray[np.bool_]] = ()) -> NDArray[Any]:
        """For each value, whether a verdict in the batch is bad, or ``@gap`` counts bytes that no field explains.

        Args:
            others: further rows of the batch that are in doubt, as masks.
        """
        bad = np.zeros(self.batch.num_rows, bool)
        for each in others:
            bad |= each
        for name, column in zip(self.batch.schema.names, self.batch.columns, strict=True):
            if name == "@gap":
                bad |= np.asarray(column) != 0
            elif name.rpartition(".")[2] == "ok":
                values, rows = column, np.arange(len(column))
                while pa.types.is_list(values.type):
                    rows, values = rows[np.asarray(pc.list_parent_indices(values))], pc.list_flatten(values)
                bad[rows[np.flatnonzero(pc.equal(values, False).fill_null(False))]] = True
        doubtful = np.zeros(self.firsts.size - 1, bool)
        doubtful[np.searchsorted(self.firsts, np.flatnonzero(bad), side="right") - 1] = True
        return doubtful


def is_list(key: str, context: Mapping[str, Any] | None = None) -> bool:
    """Whether a value of a schema is a list of records, not one.

    >>> is_list("kafka.message_set"), is_list("kafka.message")
    (True, False)
    """
    return program(key, context).plan.least is not None


def holds_messages(key: str, context: Mapping[str, Any] | None = None) -> bool:
    """Whether a value may contain several records: it is a list of them, or has nested records."""
    read = program(key, context).program
    return is_list(key, context) or read.packing is not None or read.contents is not None


def scan_each(
    key: str,
    column: pa.Array,
    *,
    fields: Sequence[str] | None = None,
    context: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
    unpack: bool = False,
    wrappers: bool = False,
) -> Iterator[Values]:
    """Scans each byte string of a column as one value of a schema.

    Args:
        key: the key of a schema with columns.
        column: a binary column; a null gives no row and no error.
        fields, context, limits: as for ``wirekit.columns``; the limits are for as many values as are scanned at once.
        unpack: whether nested records replace the record that contains them.
        wrappers: with ``unpack``, whether records with compressed records stay, each before its content.

    Yields:
        ``Values`` of consecutive byte strings, usually of all.

    Raises:
        Misuse: the schema has no columns, or does not have one of ``fields`` or the context.

    >>> import pyarrow as pa, wirekit
    >>> token = wirekit.encode("kafka.sasl_token", {"token": b"abc"})
    >>> (values,) = scan_each("kafka.sasl_token", pa.array([token, None, token[:5], token + b"?"]))
    >>> values.batch["token"].to_pylist(), values.firsts.tolist(), sorted(values.errors)
    ([b'abc'], [0, 1, 1, 1, 1], [2, 3])
    >>> values.errors[3]
    ['kafka.sasl_token: 1 byte left over, at byte 7 (0x7)']
    """
    columnar = program(key, checked_context(key, context))
    paths = checked(key, columnar, fields)
    scan = _Scan(key, columnar, paths, context, limits or registry[key].limits, unpack, wrappers)
    waiting = [column]
    while waiting:
        part = waiting.pop()
        values = scan.values(part)
        if values is None:
            half = len(part) // 2
            waiting += [part.slice(half), part.slice(0, half)]
        else:
            yield values


@dataclass(slots=True)
class _Scan:
    """A scan of the values of a column."""

    key: str
    columnar: Columnar
    fields: tuple[str, ...] | None
    context: Mapping[str, Any] | None
    limits: Limits
    unpack: bool
    wrappers: bool

    def values(self, column: pa.Array) -> Values | None:
        """The contents of the byte strings; None if they exceed the limits and are more than one."""
        columnar, (data, begins, ends, valid) = self.columnar, byte_strings(column)
        allowance = Allowance(self.limits, int((ends - begins).sum()))
        allowance.room -= LIBRARIES
        level = Level(data, self._ranges(data, begins, ends, valid), begins)
        try:
            run(columnar, columnar.plan, level, self.limits, self.fields, allowance)
        except NoRoom:
            return self._beyond(column, allowance)
        reference = of_records(columnar.plan, allowance, self.context)
        errors = [LevelErrors(columnar.program, reference, level).refused()]
        if self.unpack and columnar.program.packing is not None:
            batch = merged_levels(columnar, compressed_levels(columnar, self.fields, errors), self.wrappers)
            numbers = _numbers(batch, begins)
        else:
            batch = batch_of(columnar, level, depth=0).append_column(
                _VALUE, pa.array(level.ranges_of_rows(), pa.int64())
            )
            if self.unpack and columnar.program.contents is not None:
                opening = Opening(columnar, level, batch, reference, self.fields)
                batch = opening.unpack()
                errors.append(opening.errors)
            numbers = batch[_VALUE].to_numpy()
            batch = batch.drop_columns([_VALUE])
        texts, exceeded = self._errors(errors, begins)
        if exceeded and len(column) > 1:
            return None
        self._left_over(texts, level, ends, valid)
        if texts and not self.unpack:  # a value is good as a whole, or not at all
            good = ~np.isin(numbers, np.array([*texts]))
            batch, numbers = batch.filter(pa.array(good)), numbers[good]
        firsts = np.searchsorted(numbers, np.arange(begins.size + 1))
        return Values(batch, firsts, texts)

    def _ranges(self, data: NDArray[Any], begins: NDArray[Any], ends: NDArray[Any], valid: NDArray[Any]) -> Ranges:
        plan = self.columnar.plan
        if plan.lead:
            places = zip(begins.tolist(), ends.tolist(), valid.tolist(), strict=True)
            frame, view = self.limits.frame, data.data
            return Ranges.of(
                [start(plan, view, begin, end, frame) if is_valid else Start(begin, begin, 0)
                 for begin, end, is_valid in places]
            )  # fmt: skip
        count = -1 if is_list(self.key, self.context) else 1
        return Ranges(begins, ends, np.where(valid, count, 0).astype(np.int64))

    def _beyond(self, column: pa.Array, allowance: Allowance) -> Values | None:
        """The error of a single value that exceeds the memory limit; None if there are several values."""
        if len(column) > 1:
            return None
        (empty,) = scan_each(self.key, column.slice(0, 0), context=self.context, unpack=self.unpack)
        reason = f"{self.key}: {allowance.exceeded().reason}, at byte 0 (0x0)"
        return Values(empty.batch, np.zeros(2, np.int64), {0: [reason]})

    def _errors(self, levels: list[LevelErrors], begins: NDArray[Any]) -> tuple[dict[int, list[str]], bool]:
        """The error texts of each value, and whether one is a limit that all values share."""
        texts: dict[int, list[str]] = {}
        exceeded, are_records = False, is_list(self.key, self.context)
        for each in levels:
            rows, which = each.table()
            pairs = [*zip(rows.to_pylist(), which.tolist(), strict=True)] if rows.num_rows else []
            for row, number in [*((row, number) for number, row in each.lead_errors.items()), *pairs]:
                value, path = number, row["path"]
                if row["wrapper"] is not None:
                    value = int(np.searchsorted(begins, row["wrapper"], side="right")) - 1
                elif are_records and number not in each.lead_errors:
                    path = f"{self._element(each.level, number, row['offset'])}{'.' if path else ''}{path}"
                where = f"{self.key}: {path}" if path else self.key
                inside = " of decompressed data" if row["at_depth"] else ""
                text = f"{where}: {row['reason']}, at byte {row['at']} (0x{row['at']:x}){inside}"
                texts.setdefault(value, []).append(text)
                exceeded |= row["limit"] in SHARED
        return texts, exceeded

    def _element(self, level: Level, value: int, offset: int) -> str:
        """The path of the record at an offset in a value; records that do not decode count as well."""
        number, start = 0, int(level.begins[value]) + offset
        for first, starts, count in (("first", "offset", level.rows), ("failed", "error_offset", level.errors)):
            before = int(np.searchsorted(level.arrays[starts][:count], start))
            number += max(before - int(level.arrays[first][value]), 0)  # the value before may end in an error there
        return f"{self.columnar.plan.path}[{number}]"

    def _left_over(self, texts: dict[int, list[str]], level: Level, ends: NDArray[Any], valid: NDArray[Any]) -> None:
        """Adds an error for each value, otherwise good, that has bytes after its records."""
        if self.columnar.plan.tail:
            return
        stopped = level.ranges.ends if self.columnar.plan.is_bounded else level.arrays["stopped"]
        for number in np.flatnonzero(valid & (stopped < ends)).tolist():
            if number not in texts:
                at, size = int(stopped[number] - level.begins[number]), int(ends[number] - stopped[number])
                texts[number] = [left_over(self.key, size, at)]


def left_over(key: str, count: int, at: int) -> str:
    """The error text for bytes after a value.

    Args:
        at: the offset of the first of them.
    """
    return f"{key}: {plural(count, 'byte')} left over, at byte {at} (0x{at:x})"


def _numbers(batch: pa.RecordBatch, begins: NDArray[Any]) -> NDArray[Any]:
    """The number of the value of each row, from the offsets of records or of their wrappers."""
    offset, wrapper = batch["@offset"].to_numpy(), batch["@wrapper"]
    if wrapper.null_count < len(wrapper):
        outer = wrapper.fill_null(-1).to_numpy()
        offset = np.where(outer < 0, offset, outer)
    return np.searchsorted(begins, offset, side="right") - 1
