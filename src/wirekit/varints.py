"""Integers in groups of 7 bits, the least significant first, in three forms: LEB128, zigzag and signed LEB128.

Every byte but the last has its highest bit set. A number may be written in more bytes than it needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

GROUP = 7
MORE = 0x80
SHORT, LONG = -1, -2
"""Instead of the position after a number: the limit cuts it, or it exceeds its maximum of bytes or bits."""
UNSIGNED, ZIGZAG, SLEB = "varint", "zigzag", "sleb"


@dataclass(frozen=True, slots=True)
class VarintForm:
    """The encoding of a variable-length number.

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
