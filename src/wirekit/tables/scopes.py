"""Frames of one layout and kind as columns: the values at a path, for the frames or for the elements of their lists."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wirekit.tables.declaration import Value
from wirekit.tables.paths import ALL, Step, bound, column_at, parse

MOST_REPEATED = 128 << 20
"""The maximum bytes of text that the rows of a window repeat, such as a topic in the rows of its partitions.

``records`` evaluates the frames with more; its rows need not be in memory at once.
"""
OPENED_AT_ONCE = 64 << 20
"""The maximum of decompressed bytes of messages in memory at once, unless a single frame has more."""
MESSAGE = 256
"""The approximate number of bytes that a message without content takes in columns."""
SHORT = 1 << 16
"""Text that a column repeats counts only if its longest value, in every row, would take more bytes than this."""


class Unfit(Exception):
    """A declared value cannot be evaluated by columns."""


class Crowded(Exception):
    """The messages of the frames have too many decompressed bytes to be in memory at once.

    Attributes:
        rows: the number of frames, from the first one on, whose messages may be in memory at once; at least 1.
    """

    def __init__(self, rows: int) -> None:
        super().__init__(f"{rows} frames have enough messages")
        self.rows = rows


@dataclass(frozen=True, slots=True)
class Values:
    """One value per row.

    Attributes:
        array: the values.
        symbols: {number: name} for numbers with names.
    """

    array: pa.Array
    symbols: Mapping[int, str] = field(default_factory=dict)


@dataclass(slots=True)
class Repeats:
    """The amount of text that the rows of a window may still repeat.

    Attributes:
        bytes_left: bytes of this text.
    """

    bytes_left: int = MOST_REPEATED

    def repeated(self, array: pa.Array, places: NDArray[Any], missing: NDArray[Any] | None = None) -> pa.Array:
        """Values at some places of a column.

        Args:
            array: the column.
            places: the places.
            missing: of ``places``, those that have a null instead.

        Raises:
            Unfit: their text is much longer than that of the column.
        """
        long = len(array) > 0 and array.nbytes * places.size > SHORT
        if long and (pa.types.is_string(array.type) or pa.types.is_binary(array.type)):
            lengths = np.asarray(pc.binary_length(array).fill_null(0)).astype(np.int64)
            if int(lengths.max()) * places.size > SHORT:
                there = places if missing is None else places[~missing]
                more = max(0, int(lengths[there].sum() - lengths.sum()))
                if more > self.bytes_left:
                    raise Unfit(f"{more} bytes of repeated text")
                self.bytes_left -= more
        return array.take(pa.array(places, mask=missing))


@dataclass(slots=True)
class Frames:
    """Frames of one layout and kind.

    Attributes:
        protocol: its name.
        batch: their fields, one row per frame.
        numbers: their numbers among all frames.
        request_values: returns a value, converted to a column type, of the requests that they answer.
        name_values: looks up (names, keys, column) on their connections.
        doubted: receives the rows that must be evaluated one by one.
        repeats: what the rows may repeat, shared by the frames of a window.
    """

    protocol: str
    batch: pa.RecordBatch
    numbers: NDArray[Any]
    request_values: Callable[[Frames, Value, str], Values]
    name_values: Callable[[Frames, str, Values, str], Values]
    doubted: Callable[[Frames, NDArray[Any]], None]
    repeats: Repeats

    def part(self, begin: int, end: int) -> Frames:
        """A range of the frames, by their rows in the batch."""
        return replace(self, batch=self.batch.slice(begin, end - begin), numbers=self.numbers[begin:end])


class Opened:
    """Counts the bytes of messages in frames, which are added in the order of the frames."""

    def __init__(self) -> None:
        self._size, self._first = 0, -1

    def add(self, row: int, size: int) -> None:
        """Adds the decompressed bytes of messages of the frame in a row.

        Raises:
            Crowded: together with those of earlier frames, the bytes are too many.
        """
        self._first = row if self._first < 0 else self._first
        self._size += size
        if self._size > OPENED_AT_ONCE and row > self._first:
            raise Crowded(row)


def refuse_crowds(rows: NDArray[Any]) -> None:
    """Refuses several frames with too many messages to be in memory at once.

    Args:
        rows: the row of each message's frame, in order.

    Raises:
        Crowded: there are too many.
    """
    most = max(OPENED_AT_ONCE // MESSAGE, int(np.searchsorted(rows, rows[:1], side="right").sum()))
    if rows.size > most:
        raise Crowded(int(rows[most]))


class Scope:
    """One row for each frame, or for each element of a list in it.

    Args:
        frames: the frames.
        each: path of the list; empty for the frames themselves.
    """

    def __init__(self, frames: Frames, each: tuple[Step, ...] = ()) -> None:
        self.frames, self.each = frames, each
        self.batch = frames.batch
        self.size = self.batch.num_rows
        owners: list[NDArray[Any]] = []
        for end, step in enumerate(each):
            if step == ALL:
                column = self._below(each[:end])
                offsets = _offsets(_inside(column, len(owners)))
                owners.append(np.repeat(np.arange(offsets.size - 1), np.diff(offsets)))
                self.size = owners[-1].size
        self._owners = owners[-1] if owners else None
        self._known: dict[str, Values] = {}
        self._places: list[NDArray[Any] | None] = [None]
        for owner in reversed(owners):
            inner = self._places[0]
            self._places.insert(0, owner if inner is None else owner[inner])

    @property
    def rows(self) -> NDArray[Any]:
        """For each row, the row of its frame."""
        outer = self._places[0]
        return np.arange(self.size) if outer is None else outer

    @property
    def owners(self) -> NDArray[Any]:
        """For each element of the innermost list, the element or frame that contains the list."""
        return np.arange(self.size) if self._owners is None else self._owners

    def path(self, path: str) -> Values:
        """The column at a path; null if the path leads nowhere.

        Raises:
            Unfit: the path leads to fields inside the elements of a list.
        """
        if path not in self._known:
            self._known[path] = self._at(path)
        return self._known[path]

    def _at(self, path: str) -> Values:
        depth, steps_left = bound(self.each, parse(path))
        number = self.batch.schema.get_field_index(column_at(path))
        if number < 0:
            return Values(pa.nulls(self.size))
        at = self._places[depth]
        column, mask = _inside(self.batch.column(number), depth), None
        if ALL in steps_left and steps_left.index(ALL) != len(steps_left) - 1:
            raise Unfit(f"{path}: more than the elements of a list")
        for step in steps_left:
            if isinstance(step, int) and step != ALL:
                offsets = _offsets(column)
                first = offsets[:-1] if at is None else offsets[:-1][at]
                ends = offsets[1:] if at is None else offsets[1:][at]
                missing = first + step >= ends
                mask = missing if mask is None else mask | missing
                at, column = np.where(mask, 0, first + step), _flat(column)
        if at is not None:
            column = self.frames.repeats.repeated(column, at, mask)
        return Values(column, _symbols(self.batch.schema.field(number).metadata))

    def lists(self, path: str) -> tuple[pa.Array, NDArray[Any], pa.Array]:
        """For a path with one ``[]`` left: the elements, the first index of each row, and whether a row has a list.

        Raises:
            Unfit: the path has another number of ``[]``.
        """
        steps = parse(path)
        depth, steps_left = bound(self.each, steps)
        if steps_left.count(ALL) != 1:
            raise Unfit(f"{path}: not the elements of one list")
        number = self.batch.schema.get_field_index(column_at(path))
        if number < 0:
            return pa.nulls(0), np.zeros(self.size + 1, np.int64), pa.nulls(self.size)
        return self._elements(self.batch.column(number), depth)

    def lengths(self, path: str) -> NDArray[Any]:
        """The number of elements of each list; 0 for an absent list.

        Raises:
            Unfit: the path leads to lists inside of lists.
        """
        steps = parse(path)
        depth, steps_left = bound(self.each, steps)
        if ALL in steps_left:
            raise Unfit(f"{path}: lists of lists")
        return np.diff(self._elements(self._below(steps), depth)[1])

    def _elements(self, column: pa.Array, depth: int) -> tuple[pa.Array, NDArray[Any], pa.Array]:
        column, at = _inside(column, depth), self._places[depth]
        if at is not None:
            column = column.take(pa.array(at))
        return _flat(column), _offsets(column), column.is_valid()

    def _below(self, steps: tuple[Step, ...]) -> pa.Array:
        """A column of the list at a path, or of a field in its elements."""
        prefix = ".".join(step for step in steps if isinstance(step, str))
        for name in self.batch.schema.names:
            if name == prefix or name.startswith(f"{prefix}."):
                column = self.batch.column(name)
                kind, depth = column.type, 0
                while pa.types.is_list(kind) or pa.types.is_large_list(kind):
                    kind, depth = kind.value_type, depth + 1
                if depth > steps.count(ALL):
                    return column
        return pa.nulls(self.batch.num_rows, pa.list_(pa.null()))


def _inside(column: pa.Array, depth: int) -> pa.Array:
    """The elements of a column of lists, or of lists in lists."""
    for _ in range(depth):
        column = _flat(column)
    return column


def _flat(column: pa.Array) -> pa.Array:
    """The elements of all lists, without those outside any list."""
    if pa.types.is_null(column.type):
        return column
    offsets = np.asarray(column.offsets)
    return column.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))


def _offsets(column: pa.Array) -> NDArray[Any]:
    """The index of the first element of each list, and the end of the last list."""
    if pa.types.is_null(column.type):
        return np.zeros(len(column) + 1, np.int64)
    offsets = np.asarray(column.offsets).astype(np.int64)
    return offsets - offsets[0]


def _symbols(metadata: Mapping[bytes, bytes] | None) -> Mapping[int, str]:
    return _named_numbers(metadata[b"wirekit.symbols"]) if metadata and b"wirekit.symbols" in metadata else {}


@lru_cache(1 << 8)
def _named_numbers(text: bytes) -> Mapping[int, str]:
    return {int(number): name for number, name in json.loads(text).items()}
