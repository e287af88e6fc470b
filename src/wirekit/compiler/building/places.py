"""Names the place of a value in a batch: row, column, and the indexes of list elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements of a list, in place of rows.

    Attributes:
        outer: the rows, or elements, with the lists.
        offsets: the start of the elements of each list, and the end of the last one.
    """

    outer: Rows
    offsets: NDArray[Any]


Rows: TypeAlias = "int | NDArray[Any] | Elements"
"""The number of the first of consecutive rows, or those of all; or the elements of their lists."""


def row_of(rows: Rows, at: int) -> int:
    """The number of the row that contains a value."""
    if isinstance(rows, Elements):
        return row_of(rows.outer, _list_of(rows, at))
    return rows + at if isinstance(rows, int) else int(rows[at])


def place(rows: Rows, at: int, path: str) -> str:
    """A value's row, its column, and the indexes that lead to it from there.

    >>> place(5, 2, "name"), place(Elements(5, np.array([0, 2, 2, 4])), 3, "name")
    ('row 7: name', 'row 7: name[1]')
    """
    inside = f"{path}{_indexes(rows, at)}"
    return f"row {row_of(rows, at)}{': ' if inside else ''}{inside}"


def _indexes(rows: Rows, at: int) -> str:
    if not isinstance(rows, Elements):
        return ""
    around = _list_of(rows, at)
    return f"{_indexes(rows.outer, around)}[{at - int(rows.offsets[around])}]"


def _list_of(rows: Elements, at: int) -> int:
    """The number of the list that contains an element."""
    return int(np.searchsorted(rows.offsets, at, side="right")) - 1
