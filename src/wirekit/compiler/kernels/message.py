"""What turns the arrays of a block of memory, as a kernel filled them, into the body of an Arrow message.

One block holds the message's head, a template with the numbers left open, and behind it all arrays. ``finish`` packs
bytes that are 0 or 1 to bits, counts nulls, and fills in the numbers. ``wirekit.compiler.columns.block`` makes the
template and the tables.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from typing import Any, Final

import numpy as np
from numba import njit

from wirekit.compiler.kernels.arrays import int32_on, int64_on, uint8_on, uint64_on  # type: ignore[attr-defined]

# Columns of the table of fields: array of the validity, array of bytes to be packed, whether they must be true.
VALID, PACKED, TRUE = 0, 1, 2
NEVER_NULL, ALL_NULL = -1, -2
# Columns of the table of buffers: kind, array, and its width in bytes, or for data the array of its offsets.
KIND, ARRAY, WIDTH = 0, 1, 2
EMPTY, VALUES, BITS, OFFSETS, DATA = 0, 1, 2, 3, 4
# Where the open numbers of the head are, in units of 8 bytes.
ROWS, BODY, NODES, BUFFERS = 0, 1, 2, 3
ZEROS = 4  # the array that is to hold zeros, 4 bytes a row


@njit(nogil=True)
def bits(words: Any, target: Any, count: int) -> Any:
    """Packs bytes that are 0 or 1, least significant bit first, in place; gives how many are 1.

    Args:
        words: the bytes, eight at a time; what is behind the last one may be anything.
        target: the same memory as bytes.
    """
    found = np.uint64(0)
    for index in range((count + 7) // 8):
        word = words[np.uint64(index)]
        if index * 8 + 8 > count:
            word &= (np.uint64(1) << np.uint64(8 * (count - index * 8))) - np.uint64(1)
        found += (word * np.uint64(0x0101010101010101)) >> np.uint64(56)
        target[np.uint64(index)] = np.uint8((word * np.uint64(0x0102040810204080)) >> np.uint64(56))
    return np.int64(found)


@njit(nogil=True)
def _packed(address: int, count: int) -> Any:
    return bits(uint64_on(address, (count + 7) // 8), uint8_on(address, (count + 7) // 8), count)


@njit(nogil=True)
def _all_true(values: int, valid: int, count: int) -> bool:
    """Whether none of the values that are there is 0."""
    told = uint8_on(values, count)
    if valid == 0:
        for index in range(count):  # noqa: SIM110 - nopython code has no generators
            if told[index] == 0:
                return False
        return True
    there = uint8_on(valid, count)
    for index in range(count):  # noqa: SIM110
        if told[index] == 0 and there[index] != 0:
            return False
    return True


@njit(nogil=True)
def finish(base: int, size: int, body: int, rows: int, places: Any, at: Any, fields: Any, buffers: Any) -> bool:
    """Makes a block a message; False when something has to be true that is not.

    Args:
        base, size: address and bytes of the block.
        body: where its body begins.
        rows: how many there are.
        places: where each array is in the block.
        at, fields, buffers: see the top of the module.
    """
    for index in range(fields.shape[0]):
        if fields[index, TRUE]:
            valid = base + places[fields[index, VALID]] if fields[index, VALID] >= 0 else 0
            if not _all_true(base + places[fields[index, PACKED]], valid, rows):
                return False
    zeros = int32_on(base + places[at[ZEROS]], rows)
    for index in range(rows):
        zeros[np.uint64(index)] = 0
    head = int64_on(base, body // 8)
    head[at[ROWS]], head[at[BODY]] = rows, size - body
    for index in range(fields.shape[0]):
        nulls = rows if fields[index, VALID] == ALL_NULL else 0
        if fields[index, VALID] >= 0:
            nulls = rows - _packed(base + places[fields[index, VALID]], rows)
        if fields[index, PACKED] >= 0:
            _packed(base + places[fields[index, PACKED]], rows)
        head[at[NODES] + 2 * index], head[at[NODES] + 2 * index + 1] = rows, nulls
    for index in range(buffers.shape[0]):
        kind, array, width = buffers[index, KIND], buffers[index, ARRAY], buffers[index, WIDTH]
        length: Any = 0
        if kind == VALUES:
            length = rows * width
        elif kind == BITS:
            length = (rows + 7) // 8
        elif kind == OFFSETS:
            length = (rows + 1) * width
        elif kind == DATA:
            length = np.int64(int32_on(base + places[width], rows + 1)[rows])
        head[at[BUFFERS] + 2 * index] = places[array] - body if kind else 0
        head[at[BUFFERS] + 2 * index + 1] = length
    return True


_SOURCE: Final = inspect.getsource(sys.modules[__name__])
FINGERPRINT: Final = hashlib.sha256(_SOURCE.encode()).hexdigest()[:12]
