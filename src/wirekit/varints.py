"""Integers of variable size.

LEB128, zigzag, signed LEB128 and VLQ have groups of 7 bits: every byte but the last has its highest bit set. In the
other forms the first byte gives the size. A number may be written in more bytes than it needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

GROUP = 7
MORE = 0x80
SHORT, LONG = -1, -2
"""Instead of the position after a number: the limit cuts it, or it exceeds its maximum of bytes or bits."""
UNSIGNED, ZIGZAG, SLEB, VLQ = "varint", "zigzag", "sleb", "vlq"
QUIC, BER, LENENC, COMPACT_SIZE = "quic", "ber", "lenenc", "compact_size"
BY_FIRST_BYTE = {
    QUIC: ((0x00, 0x3F, 1), (0x40, 0x7F, 2), (0x80, 0xBF, 4), (0xC0, 0xFF, 8)),
    BER: ((0x00, 0x7F, 1), *((0x80 + more, 0x80 + more, 1 + more) for more in range(1, 9))),
    LENENC: ((0x00, 0xFA, 1), (0xFC, 0xFC, 3), (0xFD, 0xFD, 4), (0xFE, 0xFE, 9)),
    COMPACT_SIZE: ((0x00, 0xFC, 1), (0xFD, 0xFD, 3), (0xFE, 0xFE, 5), (0xFF, 0xFF, 9)),
}
"""(least first byte, greatest first byte, size of the number in bytes) in the forms whose first byte tells the size.

The difference between the first byte and the least one gives the highest bits of the number.
"""
LITTLE = (LENENC, COMPACT_SIZE)
"""The forms whose bytes after the first begin with the least significant one."""


@dataclass(frozen=True, slots=True)
class VarintForm:
    """The encoding of a variable-length number in groups of 7 bits, the least significant first.

    Attributes:
        kind: ``UNSIGNED``, as in protobuf; ``ZIGZAG``: 0, 1, 2, 3 stand for 0, -1, 1, -2, as in Kafka; ``SLEB``: two's
            complement, of which the highest bit of the last group is the sign, as in DWARF and WebAssembly.
        bits: the size of the number, the sign included.
        groups: the most bytes that it takes.

    >>> form = VarintForm(SLEB, 32, 5)
    >>> form.write(-123456).hex(), form.read(bytes.fromhex("c0bb78"), 0, 3), form.size(-123456)
    ('c0bb78', (-123456, 3), 3)
    """

    kind: str
    bits: int
    groups: int

    def __str__(self) -> str:
        return f"{self.kind} of {self.bits} bits in {self.groups} bytes"

    def read(self, data: Sequence[int], start: int, limit: int) -> tuple[int, int]:
        """(number, position after it or ``SHORT`` or ``LONG``).

        >>> VarintForm(UNSIGNED, 32, 5).read(b"\\xac\\x02", 0, 2), VarintForm(UNSIGNED, 32, 5).read(b"\\xac", 0, 1)
        ((300, 2), (44, -1))
        """
        number = shift = 0
        for at in range(start, min(start + self.groups, limit)):
            byte = data[at]
            number |= (byte & ~MORE) << shift
            shift += GROUP
            if byte < MORE:
                if self.kind == SLEB:
                    number -= (number >> shift - 1) << shift
                    return number, at + 1 if -1 <= number >> self.bits - 1 <= 0 else LONG
                end = at + 1 if number >> self.bits == 0 else LONG
                return (number >> 1 ^ -(number & 1) if self.kind == ZIGZAG else number), end
        return number, LONG if limit - start >= self.groups else SHORT

    def write(self, number: int, width: int = 1) -> bytes:
        """The bytes of a number: as few as it needs, but at least ``width``.

        >>> VarintForm(UNSIGNED, 32, 5).write(300).hex(), VarintForm(ZIGZAG, 32, 5).write(-2, 2).hex()
        ('ac02', '8300')
        """
        if width == 1 and self.kind != SLEB:
            number, data = number if self.kind == UNSIGNED else self._raw(number), bytearray()
            while number >= MORE:
                data.append(number & ~MORE & 0xFF | MORE)
                number >>= GROUP
            data.append(number)
            return bytes(data)
        width, number = max(width, self.size(number)), self._raw(number)
        groups = [number >> GROUP * at & ~MORE & 0xFF | MORE for at in range(width)]
        groups[-1] &= ~MORE
        return bytes(groups)

    def size(self, number: int) -> int:
        """Bytes that a number needs."""
        if self.kind == SLEB:
            return (number if number >= 0 else ~number).bit_length() // GROUP + 1
        return max(1, -(-self._raw(number).bit_length() // GROUP))

    def _raw(self, number: int) -> int:
        """The number in the groups, as two's complement if negative."""
        return number if self.kind != ZIGZAG else number << 1 if number >= 0 else -(number << 1) - 1


class VlqForm(VarintForm):
    """The encoding of an unsigned number in groups of 7 bits, the most significant first, as in MIDI files.

    >>> form = VlqForm(VLQ, 32, 5)
    >>> form.write(300).hex(), form.read(bytes.fromhex("822c"), 0, 2)
    ('822c', (300, 2))
    """

    __slots__ = ()

    def read(self, data: Sequence[int], start: int, limit: int) -> tuple[int, int]:
        number = 0
        for at in range(start, min(start + self.groups, limit)):
            number = number << GROUP | data[at] & ~MORE
            if data[at] < MORE:
                return number, at + 1 if number >> self.bits == 0 else LONG
        return number, LONG if limit - start >= self.groups else SHORT

    def write(self, number: int, width: int = 1) -> bytes:
        data = bytearray(VarintForm.write(self, number, width)[::-1])
        data[0] |= MORE
        data[-1] &= ~MORE
        return bytes(data)


class FirstByteForm(VarintForm):
    """The encoding of an unsigned number whose first byte tells its size; ``kind`` is one of ``BY_FIRST_BYTE``.

    >>> form = FirstByteForm(QUIC, 62, 8)
    >>> form.write(15293).hex(), form.read(bytes.fromhex("7bbd"), 0, 2), form.write(37, 2).hex()
    ('7bbd', (15293, 2), '4025')
    """

    __slots__ = ()

    @property
    def heads(self) -> tuple[tuple[int, int, int], ...]:
        """See ``BY_FIRST_BYTE``."""
        return BY_FIRST_BYTE[self.kind]

    @property
    def little(self) -> bool:
        """Whether the bytes after the first begin with the least significant one."""
        return self.kind in LITTLE

    def read(self, data: Sequence[int], start: int, limit: int) -> tuple[int, int]:
        if start >= limit:
            return 0, SHORT
        first = data[start]
        low, size = next(((low, size) for low, high, size in self.heads if low <= first <= high), (0, 0))
        end = start + size
        if end > limit or not size:
            return 0, SHORT if size else LONG
        rest = int.from_bytes(bytes(data[start + 1 : end]), "little" if self.little else "big")
        number = first - low << 8 * (size - 1) | rest
        return number, end if number >> self.bits == 0 else LONG

    def write(self, number: int, width: int = 1) -> bytes:
        least = max(width, self.size(number))
        low, size = next((low, size) for low, _, size in self.heads if size >= least)
        if self.little and size > 1:
            return bytes([low]) + number.to_bytes(size - 1, "little")
        return (number + (low << 8 * (size - 1))).to_bytes(size, "big")

    def size(self, number: int) -> int:
        sizes = ((size, high - low + 1 << 8 * (size - 1)) for low, high, size in self.heads)
        return next(size for size, end in sizes if number < end)


def varint_form(kind: str, bits: int, groups: int) -> VarintForm:
    """The form of a kind."""
    form = FirstByteForm if kind in BY_FIRST_BYTE else VlqForm if kind == VLQ else VarintForm
    return form(kind, bits, groups)
