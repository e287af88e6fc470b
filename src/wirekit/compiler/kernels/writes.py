"""What the generated kernels that build write bytes with.

Nopython functions over contiguous arrays of uint8: ``put_int32_be(target, position, number)`` and the like. None looks
whether there is room: who calls has reserved it. Of a number only the bytes that the field has are written. With
NUMBA_BOUNDSCHECK=1 each index is compared with its array.

Numba's cache knows nothing of this file. A cached function that calls these must have ``FINGERPRINT`` in the text of
its own.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from typing import Any, Final

import numpy as np
from numba import njit

from wirekit.compiler.kernels.arrays import uint8_on  # type: ignore[attr-defined]
from wirekit.compiler.kernels.reads import reader

_REAL: Final[dict[int, Any]] = {4: np.float32, 8: np.float64}
_RAW: Final[dict[int, Any]] = {4: np.uint32, 8: np.uint64}


def _bytes(size: int, little: bool) -> Any:
    """The function that writes the lowest ``size`` bytes of an unsigned number."""
    up = tuple(np.uint64(8 * place) for place in range(size))
    shifts = up if little else up[::-1]
    if size == 1:

        @njit(nogil=True)
        def write_one(target: Any, position: int, number: Any) -> None:
            target[np.uint64(position)] = np.uint8(number)

        return write_one

    @njit(nogil=True)
    def write(target: Any, position: int, number: Any) -> None:
        at = np.uint64(position)
        for place in range(size):
            target[at + np.uint64(place)] = np.uint8(number >> shifts[place])

    return write


def _number(size: int, little: bool, real: bool) -> Any:
    """The function that writes a number: a float, or any integer of 64 bits."""
    raw = _bytes(size, little)
    if real:
        kind, narrow = _REAL[size], _RAW[size]

        @njit(nogil=True)
        def write_real(target: Any, position: int, number: Any) -> None:
            raw(target, position, np.uint64(kind(number).view(narrow)))

        return write_real

    @njit(nogil=True)
    def write_integer(target: Any, position: int, number: Any) -> None:
        raw(target, position, np.uint64(number))

    return write_integer


for _code in "bBhHlLqQfd":
    for _little in (False, True):
        _size = {"b": 1, "h": 2, "l": 4, "q": 8, "f": 4, "d": 8}[_code.lower()]
        globals()[f"put_{reader(_code, _little)}"] = _number(_size, _little, _code in "fd")


@njit(nogil=True)
def zeros(target: Any, at: int, length: int) -> None:
    """Writes ``length`` zeros."""
    for index in range(at, at + length):
        target[np.uint64(index)] = 0


@njit(nogil=True)
def put_varint(target: Any, position: int, number: Any) -> int:
    """Writes a number without sign as a varint; gives where it ends."""
    while number > np.uint64(0x7F):
        target[np.uint64(position)] = np.uint8(number & np.uint64(0x7F) | np.uint64(0x80))
        number >>= np.uint64(7)
        position += 1
    target[np.uint64(position)] = np.uint8(number)
    return position + 1


@njit(nogil=True)
def varint_size(number: Any) -> int:
    """How many bytes a varint takes."""
    size = 1
    while number > np.uint64(0x7F):
        number >>= np.uint64(7)
        size += 1
    return size


@njit(nogil=True)
def unread(watched: Any, seen: Any, row: int, rows: int) -> Any:
    """The number of the first column that has a value in a row which did not read it; -1 for none.

    ``watched`` has of each column its number, the address of what is valid (0: all is), and its place in ``seen``.
    """
    for at in range(0, watched.size, 3):
        valid = watched[at + 1]
        if seen[watched[at + 2]] != row and (valid == 0 or uint8_on(valid, rows)[row] != 0):
            return np.int64(watched[at])
    return np.int64(-1)


_SOURCE: Final = inspect.getsource(sys.modules[__name__])
FINGERPRINT: Final = hashlib.sha256(_SOURCE.encode()).hexdigest()[:12]
