"""Names that frames of connections declare for a key, such as the topic of a consumer id."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wirekit.tables.conversion import fitted
from wirekit.tables.records import MOST_NAMES
from wirekit.tables.scopes import Frames, Values


class NamesByKey:
    """The names of keys on connections; a name is valid from the frame that declares it.

    Attributes:
        crowded: the connections with more than ``MOST_NAMES`` keys.

    Args:
        connection: the connection of each frame.
        pieces: (frames, keys, columns) of the declarations.
    """

    def __init__(self, connection: NDArray[Any], pieces: list[tuple[NDArray[Any], Values, dict[str, Values]]]) -> None:
        self._text = any(pa.types.is_string(keys.array.type) for _, keys, _ in pieces)
        frames = np.concatenate([frames for frames, _, _ in pieces])
        keys = pa.concat_arrays([self._key(keys) for _, keys, _ in pieces])
        self._coded = keys.unique() if self._text else None
        self._unsigned = any(each.array.type == pa.uint64() for _, each, _ in pieces)
        there = np.asarray(keys.is_valid())
        numbers = self._numbers(keys)
        self._known = np.unique(numbers)
        self._count = connection.size
        places = self._places(connection[frames], np.searchsorted(self._known, numbers), frames)
        order = np.argsort(places, kind="stable")
        order = order[there[order]]
        self._given = places[order]
        first = np.diff(self._given // self._count, prepend=-1) != 0
        begins = np.flatnonzero(first)
        begin = begins[np.cumsum(first) - 1]
        connections, counts = np.unique(connection[frames[order[begins]]], return_counts=True)
        self.crowded = connections[counts > MOST_NAMES]
        self._columns = {}
        for name in sorted({name for _, _, columns in pieces for name in columns}):
            values = pa.concat_arrays(
                [
                    fitted(columns[name], "string") if name in columns else pa.nulls(each.size, pa.string())
                    for each, _, columns in pieces
                ]
            ).take(pa.array(order))
            last = np.where(np.asarray(values.is_valid()), np.arange(order.size), -1)
            last = np.maximum.accumulate(last)
            self._columns[name] = values, np.where(last >= begin, last, -1)

    def last(self, flows: NDArray[Any], reported: NDArray[Any]) -> Iterator[tuple[int, Any, dict[str, Any]]]:
        """(connection, key, columns) of the names on some connections after their last frame in ``reported``."""
        group, frame = np.divmod(self._given, self._count)
        here = np.flatnonzero(reported[frame] & np.isin(group // self._known.size, flows))
        here = here[np.append(np.diff(group[here]) != 0, True)] if here.size else here
        connection, key = np.divmod(group[here], self._known.size)
        numbers = self._known[key]
        keys = (numbers.view(np.uint64) if self._unsigned else numbers).tolist()
        if self._coded is not None:
            keys = self._coded.take(pa.array(keys, pa.int64())).to_pylist()
        columns = {}
        for name, (values, of_row) in self._columns.items():
            rows = of_row[here]
            columns[name] = values.take(pa.array(rows, mask=rows < 0)).to_pylist()
        for row, flow in enumerate(connection.tolist()):
            there = {name: values[row] for name, values in columns.items() if values[row] is not None}
            yield flow, keys[row], there

    def _places(self, connection: NDArray[Any], key: NDArray[Any], frames: NDArray[Any]) -> NDArray[Any]:
        """Numbers that order frames by connection, key and arrival."""
        return (connection * self._known.size + key) * self._count + frames

    def _key(self, keys: Values) -> pa.Array:
        return fitted(keys, "string" if self._text else "bigint")

    def _numbers(self, keys: pa.Array) -> NDArray[Any]:
        """Keys as numbers, -1 for a text that is not among the declared keys."""
        if self._coded is not None:
            codes = pc.index_in(keys, value_set=self._coded)
            return np.asarray(codes.fill_null(-1)).astype(np.int64)
        return np.asarray(keys.fill_null(0))

    def column(self, frames: Frames, connections: NDArray[Any], keys: Values, column: str) -> Values:
        """The names of keys at the time of each frame; null if no frame declared them."""
        if column not in self._columns or not self._known.size:
            return Values(pa.nulls(frames.numbers.size))
        array = self._key(keys)
        numbers = self._numbers(array)
        key = np.minimum(np.searchsorted(self._known, numbers), self._known.size - 1)
        places = self._places(connections, key, frames.numbers)
        place = np.searchsorted(self._given, places, side="right") - 1
        has_name = np.asarray(array.is_valid()) & (self._known[key] == numbers) & (place >= 0)
        has_name[has_name] &= self._given[place[has_name]] // self._count == places[has_name] // self._count
        values, last = self._columns[column]
        rows = np.full(frames.numbers.size, -1, np.int64)
        rows[has_name] = last[place[has_name]]
        return Values(frames.repeats.repeated(values, rows, rows < 0))
