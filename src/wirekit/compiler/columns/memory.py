"""Allocates arrays from Arrow's pool, which keeps freed memory: new pages would cost as much time as a scan.

Each row is written to twenty or more arrays. Large allocations begin at a page boundary, and arrays that all begin
there evict each other from the processor's cache, which has few places for addresses with the same offset in a page. So
each array begins at another offset.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

PAGE = 4096  # bytes
STEP = 5 * 64  # bytes: five lines of the cache, so that 64 arrays all begin at different lines of a page
SHARED = 1 << 14  # bytes of an allocation that small arrays share; an array of more than an eighth has its own

_turns = itertools.count()


class Pool:
    """Allocates arrays with arbitrary initial elements; the small arrays of a scan share one allocation."""

    def __init__(self) -> None:
        self._block: pa.Buffer | None = None
        self._at = self._room = 0

    def array(self, size: int, dtype: np.dtype[Any]) -> tuple[NDArray[Any], int]:
        """An array, and its address."""
        length = size * dtype.itemsize
        if length > SHARED // 8:
            begin = next(_turns) * STEP % PAGE
            block = pa.allocate_buffer(begin + length)
        else:
            if self._block is None or length > self._room:
                self._block, self._at, self._room = pa.allocate_buffer(SHARED), 0, SHARED
            block, begin = self._block, self._at
            padded = -(-length // 64) * 64
            self._at, self._room = self._at + padded, self._room - padded
        return np.frombuffer(block, dtype, size, begin), block.address + begin


def address(array: NDArray[Any]) -> int:
    """The address of the elements of a contiguous array."""
    return int(pa.py_buffer(array).address)  # several times as fast as the attributes of numpy


def array(size: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array with its own allocation."""
    begin = next(_turns) * STEP % PAGE
    return np.frombuffer(pa.allocate_buffer(begin + size * dtype.itemsize), dtype, size, begin)


def table(columns: int, rows: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """A two-dimensional array with at least a number of rows."""
    rows += (STEP // dtype.itemsize - rows) % (PAGE // dtype.itemsize)
    return array(columns * rows, dtype).reshape(columns, rows)
