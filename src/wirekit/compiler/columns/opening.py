"""Unpacks nested records of another layout, compressed or not: a row for each, with the fields of the outer record.

A row without nested records stays as it is. So does a row whose nested records cannot be unpacked: it keeps the bytes,
or the content before the damage if the data is ``streamed``; ``<path>.ok`` is false, and the errors have the reason.
Columns of nested records are named ``<path>.<field>``; ``@index`` is the number of the record in the outer record.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wirekit.compiler.columns.arrow import batch_of
from wirekit.compiler.columns.errors import ERRORS, Details, LevelErrors, path_inside, record_of
from wirekit.compiler.columns.programs import Columnar
from wirekit.compiler.columns.reference import Reference, of_nested
from wirekit.compiler.columns.run import Level, NoRoom, run
from wirekit.errors import Limit, WireError, Wrong
from wirekit.program.messages import chosen
from wirekit.wire.compressed import NEED_SIZE
from wirekit.wire.protobuf import Message, parse_message
from wirekit.wire.stream import Reader, Session

BOTH = ("@offset", "@length", "@gap")  # columns of the scan, which the row has already


class Opening:
    """Unpacks the nested records of the rows of a level.

    Args:
        columnar: the program that scanned the level.
        level: the level.
        batch: its rows.
        reference: supplies the errors, and the allowance for decompressed bytes.
        fields: prefixes of the columns to return, or None for all.
    """

    def __init__(
        self,
        columnar: Columnar,
        level: Level,
        batch: pa.RecordBatch,
        reference: Reference,
        fields: tuple[str, ...] | None,
    ) -> None:
        self.columnar, self.level, self.batch, self.reference, self.fields = columnar, level, batch, reference, fields
        self.limits = reference.allowance.limits
        contents = columnar.program.contents
        assert contents is not None
        self.contents = contents
        self.column = columnar.program.columns[contents.column]
        self.path = self.column.path
        self.errors = LevelErrors(columnar.program, reference, level)
        rows = level.rows
        self.verdict = np.full(rows, -1, np.int8)
        self.refused = np.zeros(rows, bool)
        self.gaps = np.zeros(rows, np.int64)
        self.plain: dict[int, bytes] = {}
        self.lists: dict[int, Any] = {}

    def unpack(self) -> pa.RecordBatch:
        """The rows, each replaced by its nested records if it has any."""
        holding = np.flatnonzero(self.level.arrays["codec"] | self.level.arrays["listed"])
        for row in holding.tolist():
            self._row(row)
        outer, inner = self._messages()
        rows = self.level.rows
        verdicts = pa.array(self.verdict == 1, mask=self.verdict < 0) if holding.size else pa.nulls(rows, pa.bool_())
        content, batch = self._content(), self.batch
        if self.gaps.any() and "@gap" in batch.schema.names:
            gap = batch.schema.get_field_index("@gap")
            batch = batch.set_column(gap, batch.schema.field(gap), pa.array(self.gaps + self.level.arrays["gap"]))
        at = batch.schema.get_field_index(self.path)
        batch = batch.set_column(at, batch.schema.field(at).with_type(content.type), content)
        batch = batch.add_column(at + 1, f"{self.path}.ok", verdicts)
        mask = None
        if self.refused.any():
            mask = ~self.refused[outer]
            outer = outer[mask]
        if (self.lists or mask is not None) and not np.array_equal(outer, np.arange(self.level.rows)):
            batch = batch.take(pa.array(outer))
        for place, (field, array) in enumerate(inner):
            values = array if mask is None else array.filter(pa.array(mask))
            if field.name == "@index":
                batch = batch.append_column(field, values)
            else:
                batch = batch.add_column(at + 2 + place, field, values)
        return batch

    def _row(self, row: int) -> None:
        arrays, slot = self.level.arrays, self.column.slot
        begin, end = int(arrays[f"o{slot}"][row]), int(arrays[f"o{slot}"][row + 1])
        data: Any = arrays[f"d{slot}"].data[begin:end]
        codec = int(arrays["codec"][row])
        if codec:
            content = self._decompressed(row, self.contents.codecs[codec - 1], data)
            if content is None:
                return
            self.plain[row] = data = content
        listed = int(arrays["listed"][row])
        if listed == 1:
            self.lists[row] = data
        elif listed:
            self._message(row, self.contents.messages[listed - 2], bytes(data))

    def _message(self, row: int, name: str, data: bytes) -> None:
        """Verifies that bytes, which stay as they are, are the expected message."""
        session = Session("", self.limits)
        try:
            parse_message(Message.by_full_name[name], Reader(session, data))
        except WireError as error:
            self._failed(row, error)
        if any(check.status == "bad" for check in session.checks):
            self.verdict[row] = 0

    def _decompressed(self, row: int, name: str, data: Any) -> bytes | None:
        size = int(self.level.arrays["size"][row])
        try:
            if self.limits.depth < 1:
                raise Limit("depth", self.limits.depth, 1)
            if size < 0 and name in NEED_SIZE:
                raise Wrong("a size after decompression", "none")
            plain_size = size if size >= 0 else None
            plain, damage = self.reference.allowance.decompress_until_damage(
                name, data, plain_size, keep=self.contents.streamed
            )
        except WireError as error:
            self._failed(row, error)
            return None
        if damage is None:
            self.verdict[row] = 1
            return plain
        self._failed(row, damage)
        return plain or None

    def _failed(self, row: int, error: WireError) -> None:
        """Adds the error of a row that cannot be unpacked; a limit refuses the whole record."""
        self.refused[row] = isinstance(error, Limit)
        self.verdict[row] = 0
        self.errors.unopened(row, error)

    def _content(self) -> pa.Array:
        """The bytes: as they stand, decompressed, or null where there are records instead."""
        content = self.batch.column(self.path)
        if not self.plain and not self.lists:
            return content
        rows = np.arange(self.level.rows)
        pieces = pa.array([data for row, data in self.plain.items() if row not in self.lists], content.type)
        rows[[row for row in self.plain if row not in self.lists]] = self.level.rows + np.arange(len(pieces))
        missing = np.zeros(self.level.rows, bool)
        missing[list(self.lists)] = True
        return pa.concat_arrays([content, pieces]).take(pa.array(rows, mask=missing))

    def _messages(self) -> tuple[NDArray[Any], list[tuple[pa.Field, pa.Array]]]:
        """(the outer row of each row of the result, the columns of the nested records)."""
        inner = self.columnar.contents
        if inner is None:
            return np.arange(self.level.rows), []
        below, parents = self._below(inner)
        batch = batch_of(inner, below)
        batch = batch.select([name for name in batch.schema.names if name not in BOTH])
        fields = [field.with_name(f"{self.path}.{field.name}").with_nullable(True) for field in batch.schema]
        fields.append(pa.field("@index", pa.int32()))
        if not self.lists:
            return np.arange(self.level.rows), [(field, pa.nulls(self.level.rows, field.type)) for field in fields]
        firsts = below.arrays["first"]
        counts = np.diff(np.append(firsts, below.rows))
        self._verdicts(below, parents, counts)
        self._bound(parents, counts)
        if inner.program.gaps:
            np.add.at(self.gaps, np.repeat(parents, counts), below.arrays["gap"][: below.rows])
        if below.errors:
            self._damaged(inner, below, parents)
        each = np.ones(self.level.rows, np.int64)
        each[parents] = np.maximum(counts, 1)
        outer = np.repeat(np.arange(self.level.rows), each)
        places = np.full(len(outer), -1, np.int64)
        before = np.cumsum(each) - each
        ranges = np.repeat(np.arange(len(parents)), counts)
        index = np.arange(below.rows) - firsts[ranges]
        places[before[parents[ranges]] + index] = np.arange(below.rows)
        missing = places < 0
        take = pa.array(places, mask=missing)
        number = np.zeros(len(outer), np.int32)
        number[~missing] = index
        arrays = [*(column.take(take) for column in batch.columns), pa.array(number, mask=missing)]
        return outer, list(zip(fields, arrays, strict=True))

    def _bound(self, parents: NDArray[Any], counts: NDArray[Any]) -> None:
        """Refuses rows whose text, repeated for each of their records, exceeds the memory limit."""
        allowance = self.reference.allowance
        text = np.zeros(self.level.rows, np.int64)
        for name, column in zip(self.batch.schema.names, self.batch.columns, strict=True):
            if name != self.path:
                text += _lengths(column)
        for row, size in zip(parents.tolist(), (text[parents] * np.maximum(counts - 1, 0)).tolist(), strict=True):
            if size > allowance.room:
                self._too_much(row)
            else:
                allowance.room -= size

    def _too_much(self, row: int) -> None:
        """Refuses a row whose content exceeds the memory limit."""
        self.refused[row], self.verdict[row] = True, 0
        self.errors.too_much(row)

    def _below(self, inner: Columnar) -> tuple[Level, NDArray[Any]]:
        """The level of the nested records, and the row of each range; without rows that exceed the memory limit."""
        while True:
            parents = np.array(list(self.lists), np.int64)
            sizes = np.fromiter(map(len, self.lists.values()), np.int64, len(self.lists))
            below = Level.of(b"".join(self.lists.values()), sizes, parents)
            below.roots = self.level.arrays["offset"][parents]
            fields, allowance = inside(self.fields, self.path), self.reference.allowance
            try:
                run(inner, inner.plan, below, self.limits, fields, allowance)
            except NoRoom as error:
                for row in parents[error.range :].tolist():
                    del self.lists[row]
                    self._too_much(row)
            else:
                return below, parents

    def _damaged(self, inner: Columnar, below: Level, parents: NDArray[Any]) -> None:
        """Adds the errors of nested records.

        The first error of a range refuses the outer record too if it is a limit, or if the range was not compressed.
        """
        inner_errors = LevelErrors(inner.program, of_nested(inner.plan, self.reference.allowance), below, 1).refused()
        rows, which = inner_errors.table()
        first = np.unique(which, return_index=True)[1]
        packed = self.level.arrays["codec"][parents[which]] != 0
        ending = first[~packed[first] | np.asarray(pc.equal(rows["kind"], "limit"))[first]]
        for number, error in zip(ending.tolist(), rows.take(pa.array(ending)).to_pylist(), strict=True):
            parent = int(parents[which[number]])
            if packed[number]:
                path = path_inside(f"{self.path}.content", below, int(which[number]), error)
                details = Details("limit", path, error["at"], error["reason"], error["limit"])
                self.errors.add(record_of(self.level, parent), details, 1)
            else:
                self.errors.unopened(parent, Details(error["kind"], "", 0, error["reason"], error["limit"]))
            self.refused[parent] = True
        inner_errors.forget(self.refused[parents])
        rows, which = inner_errors.table()
        paths = pc.binary_join_element_wise(self.path, rows["path"], ".")
        self.errors.parts.append(
            (rows.set_column(rows.schema.get_field_index("path"), ERRORS.field("path"), paths), which)
        )

    def _verdicts(self, below: Level, parents: NDArray[Any], counts: NDArray[Any]) -> None:
        """Sets the verdicts: whether all announced records are there, and all are good."""
        announced = self.level.arrays["count"][parents]
        wrong = np.diff(np.append(below.arrays["failed"], below.errors)) > 0
        good = ((announced < 0) | (announced == counts)) & ~wrong
        self.verdict[parents] = np.where(good & (self.verdict[parents] != 0), 1, 0)


def inside(fields: tuple[str, ...] | None, path: str) -> tuple[str, ...] | None:
    """The prefixes of the requested columns inside a path, relative to it."""
    if fields is None or chosen(path, fields):
        return None
    return tuple(name[len(path) + 1 :] for name in fields if name.startswith(f"{path}."))


def _lengths(column: pa.Array) -> NDArray[np.int64]:
    """The bytes of text in each value of a column; 0 for numbers."""
    kind = column.type
    if pa.types.is_list(kind):
        ends = np.concatenate([[0], np.cumsum(_lengths(column.values))])
        return np.diff(ends[np.asarray(column.offsets)])
    if not (pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
        return np.zeros(len(column), np.int64)
    return np.asarray(pc.binary_length(column).fill_null(0)).astype(np.int64)
