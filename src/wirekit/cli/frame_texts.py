"""The texts that the frames of a window declare, such as their topics, by columns."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wirekit.road.assembly import Assembly
from wirekit.tables.facts import TABLES


class Texts:
    """A declared column of the calls of a window's frames; empty text counts as none.

    Attributes:
        texts: the different values.

    Args:
        assembly: the window.
        column: the name of the column.
        first: for each frame, the first frame of its call.
    """

    def __init__(self, assembly: Assembly, column: str, first: NDArray[np.int64]) -> None:
        self._first = first
        places: dict[str, int] = {}
        self._size = assembly.index.kind.size
        self._rows: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []  # frames, and the number of their text
        for frames, declared in assembly.contents.rows:
            values = declared.columns.get(column) if declared.table in TABLES else None
            if values is None or values.null_count == len(values):
                continue
            coded = values.dictionary_encode()
            numbers = [places.setdefault(text, len(places)) if text else -1 for text in coded.dictionary.to_pylist()]
            number = np.array([*numbers, -1])[np.asarray(coded.indices.fill_null(-1))]
            there = number >= 0
            self._rows.append((frames[there], number[there]))
        self.texts = list(places)

    def having(self, selected: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """For each frame, whether a row of it has one of the selected texts."""
        having = np.zeros(self._size, bool)
        for frames, number in self._rows:
            having[frames[selected[number]]] = True
        return having

    @cached_property
    def first_number(self) -> NDArray[np.int64]:
        """For each frame, the number of its first text, or else of the first frame of its call; -1 for none."""
        first_number = np.full(self._size, -1, np.int64)
        for frames, number in reversed(self._rows):
            first_number[frames[::-1]] = number[::-1]
        return np.where(first_number < 0, first_number[self._first], first_number)

    def in_frames(self, frames: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of the different texts of each frame, or else of the first frame of its call, in any order."""
        none = np.zeros(0, np.int64)
        pairs = np.concatenate([none, *(holders * len(self.texts) + number for holders, number in self._rows)])
        holders, number = np.divmod(np.unique(pairs), max(len(self.texts), 1))
        shown = np.zeros(self._size, np.int64)
        shown[frames] = 1
        without = np.setdiff1d(frames, holders)
        times = shown + np.bincount(self._first[without], minlength=self._size)
        return np.repeat(number, times[holders])
