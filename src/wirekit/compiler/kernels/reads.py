"""What the generated columnar kernels read and copy bytes with.

Nopython functions over contiguous arrays of uint8. None looks at limits: the generated code has compared every range
with the nearest one before it calls them. With NUMBA_BOUNDSCHECK=1 each index is compared with its array once more.

Numba's cache knows nothing of this file. A cached function that calls these must have ``FINGERPRINT`` in the text of
its own.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import config, njit, types
from numba.extending import intrinsic as typed_intrinsic

_UNSIGNED: Final[dict[int, Any]] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_SIGNED: Final[dict[int, Any]] = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}
_REAL: Final[dict[int, Any]] = {4: np.float32, 8: np.float64}

# To a type checker an intrinsic takes what its typing function takes; but nobody passes the typing context.
intrinsic: Any = typed_intrinsic
settings: Any = config


def _bytes(size: int, little: bool) -> Any:
    """The function that reads an unsigned number of ``size`` bytes."""
    up = tuple(np.uint64(8 * place) for place in range(size))
    shifts = up if little else up[::-1]
    if size == 1:

        @njit(nogil=True)
        def read_one(buffer: Any, position: int) -> Any:
            return np.uint64(buffer[np.uint64(position)])

        return read_one
    if size == 2:

        @njit(nogil=True)
        def read_two(buffer: Any, position: int) -> Any:
            at = np.uint64(position)
            return np.uint64(buffer[at]) << shifts[0] | np.uint64(buffer[at + np.uint64(1)]) << shifts[1]

        return read_two
    if size == 4:

        @njit(nogil=True)
        def read_four(buffer: Any, position: int) -> Any:
            at = np.uint64(position)
            return (
                np.uint64(buffer[at]) << shifts[0]
                | np.uint64(buffer[at + np.uint64(1)]) << shifts[1]
                | np.uint64(buffer[at + np.uint64(2)]) << shifts[2]
                | np.uint64(buffer[at + np.uint64(3)]) << shifts[3]
            )

        return read_four

    @njit(nogil=True)
    def read_eight(buffer: Any, position: int) -> Any:
        at = np.uint64(position)
        return (
            np.uint64(buffer[at]) << shifts[0]
            | np.uint64(buffer[at + np.uint64(1)]) << shifts[1]
            | np.uint64(buffer[at + np.uint64(2)]) << shifts[2]
            | np.uint64(buffer[at + np.uint64(3)]) << shifts[3]
            | np.uint64(buffer[at + np.uint64(4)]) << shifts[4]
            | np.uint64(buffer[at + np.uint64(5)]) << shifts[5]
            | np.uint64(buffer[at + np.uint64(6)]) << shifts[6]
            | np.uint64(buffer[at + np.uint64(7)]) << shifts[7]
        )

    return read_eight


def _number(size: int, little: bool, signed: bool, real: bool) -> Any:
    """The function that reads a number: a float, an int64, or a uint64 where an int64 cannot hold it.

    One load, where nobody asks for its bytes to be compared with the array: calls of functions take longer to compile.
    """
    return _checked(size, little, signed, real) if settings.BOUNDSCHECK else _loaded(size, little, signed, real)


def _loaded(size: int, little: bool, signed: bool, real: bool) -> Any:
    whole = types.int64 if signed or size < 8 else types.uint64
    given: Any = {4: types.float32, 8: types.float64}[size] if real else whole

    @intrinsic
    def load(typing: Any, buffer: Any, position: Any) -> Any:
        if not isinstance(buffer, types.Array) or buffer.dtype != types.uint8 or buffer.layout != "C":
            return None

        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            place = builder.gep(data, [arguments[1]])
            value = builder.load(builder.bitcast(place, ir.IntType(8 * size).as_pointer()), align=1)
            if size > 1 and little != (sys.byteorder == "little"):
                value = builder.bswap(value)
            if real:
                return builder.bitcast(value, context.get_value_type(given))
            if size == 8:
                return value
            return builder.sext(value, ir.IntType(64)) if signed else builder.zext(value, ir.IntType(64))

        return given(buffer, types.int64), lower

    return load


def _checked(size: int, little: bool, signed: bool, real: bool) -> Any:
    raw, narrow = _bytes(size, little), _UNSIGNED[size]
    if real:
        kind = _REAL[size]

        @njit(nogil=True)
        def read_real(buffer: Any, position: int) -> Any:
            return narrow(raw(buffer, position)).view(kind)

        return read_real
    if size == 8 and not signed:
        return raw
    kind = _SIGNED[size] if signed else narrow

    @njit(nogil=True)
    def read_integer(buffer: Any, position: int) -> Any:
        return np.int64(kind(raw(buffer, position)))

    return read_integer


def reader(code: str, little: bool) -> str:
    """The name in this module of what reads a number of a struct letter: ``int32_be``, ``float64_le``, ``uint8``."""
    size = {"b": 1, "h": 2, "l": 4, "q": 8, "f": 4, "d": 8}[code.lower()]
    kind = "float" if code in "fd" else "int" if code.islower() else "uint"
    return f"{kind}{8 * size}" + ("" if size == 1 else "_le" if little else "_be")


for _code in "bBhHlLqQfd":
    for _little in (False, True):
        _size = {"b": 1, "h": 2, "l": 4, "q": 8, "f": 4, "d": 8}[_code.lower()]
        globals()[reader(_code, _little)] = _number(_size, _little, _code.islower(), _code in "fd")


@intrinsic
def _moved(typing: Any, target: Any, at: Any, source: Any, start: Any, length: Any) -> Any:
    """``memcpy`` between two arrays of bytes."""
    if not all(isinstance(array, types.Array) and array.dtype == types.uint8 for array in (target, source)):
        return None

    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def place(array: int, position: int) -> Any:
            data = context.make_array(signature.args[array])(context, builder, arguments[array]).data
            return builder.gep(data, [arguments[position]])

        to, begin = place(0, 1), place(2, 3)
        kinds = [to.type, begin.type, arguments[4].type]
        move = builder.module.declare_intrinsic("llvm.memcpy", kinds)
        builder.call(move, [to, begin, arguments[4], ir.Constant(ir.IntType(1), 0)])
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64, types.int64), lower


@njit(nogil=True, forceinline=True)
def _copy(target: Any, at: int, source: Any, start: int, length: int) -> None:
    if length <= 128 and at + 128 <= target.size and start + 128 <= source.size:
        _moved(target, at, source, start, 64)  # a size known when it is compiled takes no call
        if length > 64:
            _moved(target, at + 64, source, start + 64, 64)
    else:
        _moved(target, at, source, start, length)


@njit(nogil=True)
def _copy_checked(target: Any, at: int, source: Any, start: int, length: int) -> None:
    for index in range(length):
        target[at + index] = source[start + index]


# ``target[at:at + length] = source[start:start + length]``. Up to 128 bytes of the target may be written; those behind
# the value are to be written later, or never looked at. The loop is what NUMBA_BOUNDSCHECK can check.
copy: Final = _copy_checked if settings.BOUNDSCHECK else _copy


@njit(nogil=True)
def begins(buffer: Any, position: int, limit: int, prefix: Any) -> bool:
    """Whether ``prefix`` stands at a position, and before the limit."""
    if limit - position < prefix.size:
        return False
    for index in range(prefix.size):  # noqa: SIM110 - nopython code has no generators
        if buffer[position + index] != prefix[index]:
            return False
    return True


_word: Final = _bytes(8, True)
_HIGH_BITS: Final = np.uint64(0x8080808080808080)


@njit(nogil=True)
def is_utf8(buffer: Any, start: int, length: int) -> bool:
    """Whether a range is well-formed UTF-8, as Python's decoder has it: no surrogates, no long forms."""
    position, end = start, start + length
    while position < end:
        if end - position >= 8 and not _word(buffer, position) & _HIGH_BITS:
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


@njit(nogil=True)
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


_SOURCE: Final = inspect.getsource(sys.modules[__name__])
FINGERPRINT: Final = hashlib.sha256(_SOURCE.encode()).hexdigest()[:12]
