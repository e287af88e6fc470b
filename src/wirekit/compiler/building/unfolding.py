"""Flattens list columns: the elements of all lists one after the other, and the start of each list.

Columns inside the same list must have lists of the same lengths, so that an element has one index in all of them. This
module checks the lengths, and that offsets stay inside the arrays, before it reads by an offset.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wirekit.compiler.building.from_arrow import ABSENT, NOTHING, Input, input_of, sound, validity
from wirekit.compiler.building.places import Elements, Rows, place
from wirekit.errors import Misuse
from wirekit.program.columns import Column, Repeated


@dataclass(frozen=True, slots=True)
class Lists:
    """The lists of a column.

    Attributes:
        path: the path of the column.
        offsets: the start of the elements of each list, from 0, and the end of the last one.
        valid: whether each list is not null; empty if there are no nulls.
    """

    path: str
    offsets: NDArray[Any]
    valid: NDArray[Any]

    def size(self, at: int) -> str:
        """The number of elements of a list, in words."""
        if self.valid.size and not self.valid[at]:
            return "null"
        count = int(self.offsets[at + 1] - self.offsets[at])
        return f"{count} element{'' if count == 1 else 's'}"


def unfolded(key: str, path: str, array: pa.Array) -> tuple[Lists, pa.Array]:
    """The lists of a column, and the elements of all of them.

    Raises:
        Misuse: the column has a wrong type, or offsets outside its elements.
    """
    kind = array.type
    if pa.types.is_null(kind):
        nothing = np.zeros(len(array), np.uint8)
        return Lists(path, np.zeros(len(array) + 1, np.int64), nothing), pa.nulls(0)
    sound(key, path, array)
    if pa.types.is_fixed_size_list(kind):
        array = array.cast(pa.large_list(kind.value_type))
    elif not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        raise Misuse(f"{key}: the column {path} is {kind}; give it as a list")
    count, values = len(array), array.values
    valid = validity(array) if array.null_count else NOTHING
    if not count:
        return Lists(path, np.zeros(1, np.int64), valid), values.slice(0, 0)
    ends = np.asarray(array.offsets).astype(np.int64, copy=False)
    lengths = np.diff(ends)
    if int(ends[0]) < 0 or int(ends[-1]) > len(values) or bool((lengths < 0).any()):
        raise Misuse(f"{key}: the offsets of the column {path} point outside its elements")
    if valid.size and bool(lengths[valid == 0].any()):  # a null list may have elements
        lengths = np.where(valid != 0, lengths, 0)
        inside = array.flatten()
    else:
        inside = values.slice(int(ends[0]), int(ends[-1] - ends[0]))
    return Lists(path, np.append(0, np.cumsum(lengths)), valid), inside


class Unfolded:
    """The lists of a batch.

    Attributes:
        uneven: the first row in which the columns of a list of messages differ in length, or the number of rows; and
            the error.
    """

    def __init__(self, key: str, batch: pa.RecordBatch, rows: Rows) -> None:
        self.key, self.batch, self.rows = key, batch, rows
        self._lists: dict[int, Lists] = {}
        self.places: dict[int, Elements] = {}
        self.uneven = batch.num_rows, ""

    def column(self, column: Column) -> Input:
        """The arrays of a column; inside lists, the elements of all lists that are not null.

        Raises:
            Misuse: as ``input_of``, or its lists differ in length from those of the others.
        """
        index = self.batch.schema.get_field_index(column.path)
        if index < 0:
            return ABSENT
        array, rows = self.batch.column(index), self.rows
        for group in reversed(column.lists) if column.within is not None else ():
            lists, array = unfolded(self.key, column.path, array)
            self._agree(group, lists, rows)
            rows = self.places[group.number]
        return input_of(self.key, column, array, rows)

    def _agree(self, group: Repeated, lists: Lists, rows: Rows) -> None:
        other = self._lists.setdefault(group.number, lists)
        self.places.setdefault(group.number, Elements(rows, lists.offsets))
        if other is lists:
            return
        one, two = (each.valid if each.valid.size else np.uint8(1) for each in (lists, other))
        wrong = np.diff(lists.offsets) != np.diff(other.offsets)
        if group.in_message:
            self._differ(group, lists, other, np.broadcast_to(one | two, wrong.shape), np.flatnonzero(wrong))
            return
        wrong |= np.not_equal(one, two)
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            text = f"has {lists.size(at)}, where {other.path} has {other.size(at)}"
            raise Misuse(f"{self.key}: {place(rows, at, lists.path)}: {text}")

    def _differ(
        self, group: Repeated, lists: Lists, other: Lists, valid: NDArray[Any], wrong: NDArray[np.intp]
    ) -> None:
        """Merges the lists of two columns of a list of messages, up to the first row in which their lengths differ."""
        offsets = other.offsets
        if wrong.size:
            at = int(wrong[0])
            offsets = np.minimum(offsets, offsets[at])
            if at < self.uneven[0]:
                text = f"differs in length from the other columns of {group.path}"
                self.uneven = at, f"{place(self.rows, at, lists.path)}: {text}"
        self._lists[group.number] = replace(other, offsets=offsets, valid=np.ascontiguousarray(valid))

    def lists(self, number: int) -> Input:
        """The arrays of a list whose columns are converted."""
        lists = self._lists.get(number)
        return ABSENT if lists is None else Input(lists.offsets, lists.valid)
