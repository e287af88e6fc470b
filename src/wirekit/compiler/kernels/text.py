"""Writes numbers, hex and JSON strings into an array of bytes, for the generated writers of text.

Nopython functions; each takes the array and a position, and returns the position after the written text. They do not
check the size of the array: the caller makes sure that the text fits.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from wirekit.compiler.kernels.arrays import inner
from wirekit.compiler.kernels.reads import copy
from wirekit.values import CONTROLS

LONGEST_NUMBER: Final = 20  # characters of an integer of 64 bits
LONGEST_ESCAPE: Final = 6  # characters of a byte in a JSON string

_PAIRS: Final = np.frombuffer("".join(f"{number:02}" for number in range(100)).encode(), np.uint8).copy()
_SHORT_ESCAPES: Final = np.zeros(128, np.uint8)
for _char, _letter in zip('\b\t\n\f\r"\\', 'btnfr"\\', strict=True):
    _SHORT_ESCAPES[ord(_char)] = ord(_letter)
_CONTROLS: Final = np.array(CONTROLS, np.uint32)
_FIRST_OF_CONTROL: Final = np.zeros(256, np.bool_)
for _first, _last in CONTROLS:
    for _code in range(_first, _last + 1):
        _FIRST_OF_CONTROL[chr(_code).encode()[0]] = True

# With unsigned indexes, numba need not check whether an index counts from the end, and it vectorizes loops.
_ONE: Final[Any] = np.uint64(1)
_TWO: Final[Any] = np.uint64(2)
_THREE: Final[Any] = np.uint64(3)
_TEN: Final[Any] = np.uint64(10)
_HUNDRED: Final[Any] = np.uint64(100)
_TEN_THOUSAND: Final[Any] = np.uint64(10**4)
_EIGHT_DIGITS: Final[Any] = np.uint64(10**8)
_FOUR_BITS: Final[Any] = np.uint8(4)
_LOW_BITS: Final[Any] = np.uint8(15)
_NINE: Final[Any] = np.uint8(9)
_DIGIT: Final[Any] = np.uint8(0x30)
_LETTER: Final[Any] = np.uint8(ord("a") - ord("0") - 10)


@inner
def _put_pair(out: Any, place: Any, number: Any) -> None:
    """Two digits."""
    out[place] = _PAIRS[number << _ONE]
    out[place + _ONE] = _PAIRS[(number << _ONE) + _ONE]


@inner
def _put_eight(out: Any, place: Any, number: Any) -> Any:
    """Eight digits, with leading zeros."""
    high = number // _TEN_THOUSAND
    low = number - high * _TEN_THOUSAND
    _put_pair(out, place, high // _HUNDRED)
    _put_pair(out, place + _TWO, high % _HUNDRED)
    _put_pair(out, place + np.uint64(4), low // _HUNDRED)
    _put_pair(out, place + np.uint64(6), low % _HUNDRED)
    return place + np.uint64(8)


@inner
def _put_few(out: Any, place: Any, number: Any) -> Any:
    """Up to eight digits, without leading zeros."""
    digits, bound = np.uint64(1), _TEN
    while number >= bound:
        digits += _ONE
        bound *= _TEN
    end = place + digits
    at = end
    while number >= _HUNDRED:
        hundreds = number // _HUNDRED
        at -= _TWO
        _put_pair(out, at, number - hundreds * _HUNDRED)
        number = hundreds
    if number >= _TEN:
        _put_pair(out, place, number)
    else:
        out[place] = np.uint8(number) + _DIGIT
    return end


@inner
def put_unsigned(out: Any, at: Any, number: Any) -> Any:
    """A number without a sign, as uint64."""
    value, place = np.uint64(number), np.uint64(at)
    if value < _EIGHT_DIGITS:
        return np.int64(_put_few(out, place, value))
    above = value // _EIGHT_DIGITS
    if above < _EIGHT_DIGITS:
        place = _put_few(out, place, above)
    else:
        top = above // _EIGHT_DIGITS
        place = _put_few(out, place, top)
        place = _put_eight(out, place, above - top * _EIGHT_DIGITS)
    return np.int64(_put_eight(out, place, value - above * _EIGHT_DIGITS))


@inner
def put_signed(out: Any, at: Any, number: Any) -> Any:
    """A number with a sign, as int64."""
    if number < 0:
        out[np.uint64(at)] = 0x2D
        return put_unsigned(out, at + 1, np.uint64(0) - np.uint64(number))
    return put_unsigned(out, at, np.uint64(number))


@inner
def put_null(out: Any, at: int) -> Any:
    """``null``."""
    place = np.uint64(at)
    out[place], out[place + _ONE], out[place + _TWO], out[place + _THREE] = 0x6E, 0x75, 0x6C, 0x6C
    return at + 4


@inner
def put_part(out: Any, at: Any, texts: Any, ends: Any, which: int) -> Any:
    """One of several concatenated texts: from ``ends[which]`` to ``ends[which + 1]``."""
    start = ends[np.uint64(which)]
    length = ends[np.uint64(which) + _ONE] - start
    copy(out, at, texts, start, length)
    return at + length


@inner
def put_hex(out: Any, at: Any, data: Any, start: int, length: int) -> Any:
    """Bytes as lower-case hex in quotes."""
    place, begin = np.uint64(at), np.uint64(start)
    out[place] = 0x22
    place += _ONE
    for index in range(np.uint64(length)):
        byte = data[begin + index]
        high, low = byte >> _FOUR_BITS, byte & _LOW_BITS
        out[place + _TWO * index] = high + _DIGIT + _LETTER * np.uint8(high > _NINE)
        out[place + _TWO * index + _ONE] = low + _DIGIT + _LETTER * np.uint8(low > _NINE)
    place += _TWO * np.uint64(length)
    out[place] = 0x22
    return np.int64(place + _ONE)


@inner
def put_text(out: Any, at: Any, data: Any, start: int, length: int) -> Any:
    """UTF-8 as a JSON string: only quotes, backslashes and control characters are escaped, as ``json_text`` does."""
    out[at] = 0x22
    at += 1
    index, end = start, start + length
    while index < end:
        byte = data[index]
        index += 1
        if byte >= 0x20 and byte != 0x22 and byte != 0x5C and byte < 0x7F:  # noqa: PLR1714  # a set is slower here
            out[at] = byte
            at += 1
            continue
        if byte < 0x7F:
            letter = _SHORT_ESCAPES[byte]
            if letter:
                out[at], out[at + 1] = 0x5C, letter
                at += 2
            else:
                at = _put_escape(out, at, byte)
            continue
        size, code = _control(data, index - 1, end)
        if size:
            at = _put_escape(out, at, code)
            index += size - 1
        else:
            out[at] = byte
            at += 1
    out[at] = 0x22
    return at + 1


@inner
def _control(data: Any, at: int, end: int) -> Any:
    """(bytes, code point) of one of ``CONTROLS`` at a position; 0 bytes for another character."""
    byte = np.uint32(data[at])
    if not _FIRST_OF_CONTROL[byte]:
        return 0, np.uint32(0)
    size, code = 1, byte
    if byte >= 0xE0 and at + 3 <= end:
        size = 3
        code = (byte & 15) << 12 | (np.uint32(data[at + 1]) & 63) << 6 | np.uint32(data[at + 2]) & 63
    elif byte >= 0xC0 and at + 2 <= end:
        size, code = 2, (byte & 31) << 6 | np.uint32(data[at + 1]) & 63
    for row in range(_CONTROLS.shape[0]):
        if _CONTROLS[row, 0] <= code <= _CONTROLS[row, 1]:
            return size, np.uint32(code)
    return 0, np.uint32(0)


@inner
def _put_escape(out: Any, at: int, code: Any) -> Any:
    """A character as ``\\u`` and four digits."""
    out[at], out[at + 1] = 0x5C, 0x75
    for place in range(4):
        digit = np.uint8(code >> np.uint32(12 - 4 * place)) & _LOW_BITS
        out[at + 2 + place] = digit + _DIGIT + _LETTER * np.uint8(digit > _NINE)
    return at + LONGEST_ESCAPE
