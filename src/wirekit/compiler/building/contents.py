"""Joins rows of nested records to the record that contains them, and compresses them as its fields say.

Consecutive rows belong to one record if ``@index`` ascends and ``@offset``, if it exists, is constant. The fields
before the nested records select their codec, so a first run of the program evaluates these fields.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wirekit.compiler.building.places import Rows
from wirekit.compiler.building.run import run
from wirekit.compiler.columns.programs import Columnar
from wirekit.errors import Misuse
from wirekit.program.write import CHOSEN, WriteProgram

INDEX, OFFSET = "@index", "@offset"
Closed = tuple[pa.RecordBatch, Rows, dict[str, NDArray[Any]]]


def closed(
    key: str, columnar: Columnar, built: WriteProgram, inner: WriteProgram | None, batch: pa.RecordBatch, first: int
) -> Closed:
    """The outer records, one row each, with their content as bytes; their rows; the facts that the program needs.

    Args:
        inner: builds the nested records.
        first: the number of the first row, for errors.

    Raises:
        Misuse: rows do not belong together, or have values for which the layout has no field.
    """
    rows = _Rows(key, columnar, batch, first)
    begins = ends = np.zeros(rows.firsts.size, np.int64)
    data = b""
    if inner is not None and rows.inside.any():
        data, begins, ends = rows.built(inner)
    frames = rows.frames()
    facts: dict[str, NDArray[Any]] = {"rows": rows.counts}
    facts |= {name: np.zeros(frames.num_rows, np.int64) for name in CHOSEN}
    run(key, built, frames, rows.numbers, facts=facts, choosing=True)
    content, plain = rows.content(frames, facts, memoryview(data), begins, ends)
    at = frames.schema.get_field_index(rows.path)
    field = pa.field(rows.path, content.type)
    frames = frames.append_column(field, content) if at < 0 else frames.set_column(at, field, content)
    return frames, rows.numbers, {**facts, "plain": plain}


class _Rows:
    """The rows of a batch, grouped by outer record."""

    def __init__(self, key: str, columnar: Columnar, batch: pa.RecordBatch, first: int) -> None:
        contents = columnar.program.contents
        assert contents is not None
        self.key, self.batch, self.first = key, batch, first
        self.path, self.codecs = columnar.program.columns[contents.column].path, contents.codecs
        self.verdict = f"{self.path}.ok"
        names = batch.schema.names
        self.inner = [name for name in names if name.startswith(f"{self.path}.") and name != self.verdict]
        filled = np.zeros(batch.num_rows, bool)
        for name in self.inner:
            filled |= pc.is_valid(batch[name]).to_numpy(zero_copy_only=False)
        index = np.where(filled, 0, -1) if INDEX not in names else self._integers(INDEX)
        self.inside = index >= 0
        self._fails(filled & ~self.inside, self.inner, f"has a value, but {INDEX} says that the list has no record")
        new = np.ones(batch.num_rows, bool)
        new[1:] = ~(self.inside[1:] & self.inside[:-1] & (index[1:] > index[:-1]))
        if OFFSET in names:
            offset = self._integers(OFFSET)
            new[1:] |= offset[1:] != offset[:-1]
        self.firsts = np.flatnonzero(new)
        self.groups = np.cumsum(new) - 1
        sizes = np.diff(np.append(self.firsts, batch.num_rows))
        self.counts = np.where(self.inside[self.firsts], sizes, -1)
        self.numbers = first + self.firsts

    def _integers(self, name: str) -> NDArray[Any]:
        column = self.batch.column(name)
        if not pa.types.is_integer(column.type) and not pa.types.is_null(column.type):
            raise Misuse(f"{self.key}: the column {name} is {column.type}; give it as int64")
        return column.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)

    def _fails(self, wrong: NDArray[Any], names: list[str], text: str) -> None:
        """Raises the error for the first bad row, and the first of the columns with a value in it."""
        if not wrong.any():
            return
        row = int(np.flatnonzero(wrong)[0])
        name = next((name for name in names if self.batch.column(name)[row].is_valid), names[0])
        raise Misuse(f"{self.key}: row {self.first + row}: {name}: {text}")

    def built(self, inner: WriteProgram) -> tuple[bytes, NDArray[Any], NDArray[Any]]:
        """The bytes of the inner records, and their begin and end for each outer record."""
        batch, rows = self.batch.select(self.inner), np.flatnonzero(self.inside)
        if rows.size != batch.num_rows:
            batch = batch.take(pa.array(rows))
        ends = np.zeros(rows.size, np.int64)
        output, end = run(self.key, inner, batch, self.first + rows, ends=ends)
        counts = np.maximum(self.counts, 0)
        lasts = np.concatenate([[0], ends])[np.cumsum(counts)]
        begins = np.concatenate([[0], lasts[:-1]])
        return output.cut(end), begins, lasts

    def frames(self) -> pa.RecordBatch:
        """The first row of each record without the columns of nested records; the other rows repeat its values."""
        names = [name for name in self.batch.schema.names if name not in self.inner and name != INDEX]
        batch = self.batch.select(names)
        if self.firsts.size == batch.num_rows:
            return batch
        frames = batch.take(pa.array(self.firsts))
        for name in names:
            column, expected = batch.column(name), frames.column(name).take(pa.array(self.groups))
            if not column.equals(expected):
                row = next(
                    row for row in range(len(column)) if not column[row : row + 1].equals(expected[row : row + 1])
                )
                text = f"differs from row {self.first + int(self.firsts[self.groups[row]])} of the same record"
                raise Misuse(f"{self.key}: row {self.first + row}: {name}: {text}")
        return frames

    def content(
        self,
        frames: pa.RecordBatch,
        facts: dict[str, NDArray[Any]],
        data: memoryview,
        begins: NDArray[Any],
        ends: NDArray[Any],
    ) -> tuple[pa.Array, NDArray[Any]]:
        """The bytes of the field, and their number before compression; -1 if it is unknown.

        If the bytes could not be decompressed, they are not compressed again: ``codec`` is 0.
        """
        from wirekit.compression import compress

        column = self._bytes(frames)
        filled = column.is_valid().to_numpy(zero_copy_only=False)
        failed = self._failed(frames)
        codec, listed = facts["codec"], facts["listed"] == 1
        has = self.counts >= 0
        self._refused(has & failed, self.verdict, "its content was damaged, or not of the announced size")
        self._refused(has & filled, self.path, "has bytes, but its records are given as columns")
        self._refused(has & ~listed, INDEX, "the layout has no records here")
        self._refused(listed & ~has & filled & ~failed, self.path, "has bytes, but the layout has records here")
        codec[failed] = 0
        opaque = (facts["opaque"] != 0) & (codec == 0)
        sizes = pc.binary_length(column).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        plain = np.where(has, ends - begins, sizes)
        pieces: list[bytes] = []
        places = np.flatnonzero(has | (codec != 0))
        for at in places.tolist():
            piece = data[int(begins[at]) : int(ends[at])] if has[at] else column[at].as_py() or b""
            name = self.codecs[codec[at] - 1] if codec[at] else None
            pieces.append(bytes(piece) if name is None else compress(name, bytes(piece)))
        if places.size:
            take = np.arange(len(column))
            take[places] = len(column) + np.arange(places.size)
            column = pa.concat_arrays([column, pa.array(pieces, column.type)]).take(pa.array(take))
        return column, np.where(opaque, -1, plain)

    def _bytes(self, frames: pa.RecordBatch) -> pa.Array:
        index = frames.schema.get_field_index(self.path)
        if index < 0:
            return pa.nulls(frames.num_rows, pa.large_binary())
        column = frames.column(index)
        try:
            return column.cast(pa.large_binary())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise Misuse(f"{self.key}: the column {self.path} is {column.type}; give it as binary") from None

    def _failed(self, frames: pa.RecordBatch) -> NDArray[Any]:
        """The rows whose content could not be decoded."""
        index = frames.schema.get_field_index(self.verdict)
        if index < 0:
            return np.zeros(frames.num_rows, bool)
        column = frames.column(index)
        if not pa.types.is_boolean(column.type) and not pa.types.is_null(column.type):
            raise Misuse(f"{self.key}: the column {self.verdict} is {column.type}; give it as bool")
        return ~column.cast(pa.bool_()).fill_null(True).to_numpy(zero_copy_only=False)

    def _refused(self, wrong: NDArray[Any], name: str, text: str) -> None:
        if wrong.any():
            raise Misuse(f"{self.key}: row {int(self.numbers[np.flatnonzero(wrong)[0]])}: {name}: {text}")
