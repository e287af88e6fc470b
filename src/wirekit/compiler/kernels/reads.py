"""Reads and copies bytes for the generated columnar kernels.

Nopython functions over contiguous arrays of uint8. They do not check limits: the generated code compares every range
with the nearest limit before it calls them. With NUMBA_BOUNDSCHECK=1 each index is also compared with its array.
"""

from __future__ import annotations

import sys
from typing import Any, Final

import numpy as np
from numba import types

from wirekit.compiler.kernels.arrays import address, inlined, inner, loader, move, settings


def _number(size: int) -> Any:
    """The function that reads an unsigned number of ``size`` bytes, the least significant one first."""
    dtype: Any = {4: np.uint32, 8: np.uint64}[size]
    load = loader(types.uint64, 8 * size, 1, sys.byteorder != "little")

    @inner
    def checked(buffer: Any, position: int) -> Any:
        value = np.uint64(0)
        for place in range(size):
            value |= np.uint64(buffer[position + place]) << np.uint64(8 * place)
        return value

    @inlined
    def fast(buffer: Any, position: int) -> Any:
        return dtype(load(address(buffer), position))

    return checked if settings.BOUNDSCHECK else fast


uint32_le, uint64_le = _number(4), _number(8)


@inlined
def _copy(target: Any, at: int, source: Any, start: int, length: int) -> None:
    to, begin = address(target) + np.int64(at), address(source) + np.int64(start)
    if length <= 128 and at + 128 <= target.size and start + 128 <= source.size:
        move(to, begin, np.int64(64))  # a constant size needs no call
        if length > 64:
            move(to + 64, begin + 64, np.int64(64))
    else:
        move(to, begin, np.int64(length))


@inner
def _copy_checked(target: Any, at: int, source: Any, start: int, length: int) -> None:
    for index in range(length):
        target[at + index] = source[start + index]


# ``target[at:at + length] = source[start:start + length]``. Up to 128 bytes of the target may be written; those after
# the value must be overwritten later, or never read. NUMBA_BOUNDSCHECK can check only the version with a loop.
copy: Final = _copy_checked if settings.BOUNDSCHECK else _copy


@inner
def begins(buffer: Any, position: int, limit: int, prefix: Any) -> bool:
    """Whether the bytes at a position begin with ``prefix``, before the limit."""
    if limit - position < prefix.size:
        return False
    for index in range(prefix.size):  # noqa: SIM110 - nopython code has no generators
        if buffer[position + index] != prefix[index]:
            return False
    return True


_HIGH_BITS: Final = np.uint64(0x8080808080808080)


@inner
def is_utf8(buffer: Any, start: int, length: int) -> bool:
    """Whether a range is well-formed UTF-8 as Python's decoder defines it: no surrogates, no long forms."""
    position, end = start, start + length
    while position < end:
        if end - position >= 8 and not uint64_le(buffer, position) & _HIGH_BITS:
            position += 8
            continue
        lead = buffer[position]
        position += 1
        if lead < 0x80:
            continue
        if lead < 0xC2 or lead > 0xF4:
            return False
        more = 1 if lead < 0xE0 else 2 if lead < 0xF0 else 3
        if end - position < more:
            return False
        second = buffer[position]
        low = 0xA0 if lead == 0xE0 else 0x90 if lead == 0xF0 else 0x80
        high = 0x9F if lead == 0xED else 0x8F if lead == 0xF4 else 0xBF
        if second < low or second > high:
            return False
        for index in range(1, more):
            if buffer[position + index] & 0xC0 != 0x80:
                return False
        position += more
    return True


@inner
def internet(buffer: Any, start: int, end: int, hole: int) -> Any:
    """The checksum of RFC 1071 of a range, with zeros for the two bytes at ``hole`` if it is not negative."""
    total = np.uint64(0)
    for position in range(start, end):
        if hole >= 0 and (position == hole or position == hole + 1):
            continue
        value = np.uint64(buffer[position])
        total += value if (position - start) & 1 else value << np.uint64(8)
        total = (total & np.uint64(0xFFFF)) + (total >> np.uint64(16))
    total = (total & np.uint64(0xFFFF)) + (total >> np.uint64(16))
    return np.int64(np.uint64(0xFFFF) - total)
