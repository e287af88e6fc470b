"""Integers in groups of 7 bits, the least significant first: LEB128, of which zigzag is the form with sign.

Every byte but the last has its highest bit set. A number may be written in more bytes than it needs.
"""

from __future__ import annotations

from collections.abc import Sequence

GROUP = 7
MORE = 0x80
SHORT, LONG = -1, -2
"""Instead of the position behind a number: the limit cuts it, or it goes on beyond its most bytes or bits."""


def read_varint(data: Sequence[int], start: int, limit: int, groups: int, bits: int) -> tuple[int, int]:
    """(unsigned number, position behind it or ``SHORT`` or ``LONG``) of at most so many bytes, and bits.

    >>> read_varint(b"\\xac\\x02", 0, 2, 5, 32), read_varint(b"\\xac", 0, 1, 5, 32)
    ((300, 2), (44, -1))
    """
    number = shift = 0
    for at in range(start, min(start + groups, limit)):
        byte = data[at]
        number |= (byte & ~MORE) << shift
        shift += GROUP
        if byte < MORE:
            return number, at + 1 if number >> bits == 0 else LONG
    return number, LONG if limit - start >= groups else SHORT


def write_varint(number: int, width: int = 1) -> bytes:
    """The bytes of an unsigned number: as few as it needs, but at least ``width``.

    >>> write_varint(300).hex(), write_varint(3, 2).hex()
    ('ac02', '8300')
    """
    data = bytearray()
    while number >= MORE or len(data) + 1 < width:
        data.append(number & ~MORE & 0xFF | MORE)
        number >>= GROUP
    data.append(number)
    return bytes(data)


def varint_size(number: int) -> int:
    """Bytes that an unsigned number needs."""
    return max(1, -(-number.bit_length() // GROUP))


def to_zigzag(number: int) -> int:
    """A number with sign as one without: 0, -1, 1, -2 are 0, 1, 2, 3."""
    return number << 1 if number >= 0 else -(number << 1) - 1


def from_zigzag(number: int) -> int:
    """The inverse of ``to_zigzag``."""
    return number >> 1 ^ -(number & 1)
