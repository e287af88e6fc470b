"""The output of a codec, and its limits."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass

from wirekit.errors import Limit, Misuse, Wrong

Buffer = bytes | bytearray | memoryview

KIB = 1024
MIB = 1024 * KIB

STEP = 256 * KIB
"""Most bytes that a stream is asked for, and given, at once."""


@dataclass(frozen=True, slots=True)
class Decompression:
    """The limits on the output of one call of ``decompress``.

    Attributes:
        size: most bytes of output.
        ratio: most bytes of output for each byte of input.
        ratio_floor: output of so many bytes or fewer is never held against ``ratio``: small data may shrink a lot.
    """

    size: int = 256 * MIB
    ratio: int = 1000
    ratio_floor: int = 64 * KIB

    def __post_init__(self) -> None:
        if self.size < 0 or self.ratio < 1 or self.ratio_floor < 0:
            raise Misuse(f"{self} is invalid; pass size >= 0, ratio >= 1 and ratio_floor >= 0")


DEFAULT = Decompression()


class Output:
    """Takes what a codec produces, and refuses it as soon as a limit or the expected size is passed.

    Attributes:
        expected: bytes that must come out in the end, or None if the caller does not know.
        produced: bytes that came out so far.
    """

    __slots__ = ("_buffer", "_ceiling", "_compressed", "_first", "_limits", "expected", "produced")

    def __init__(self, compressed: int, limits: Decompression, expected: int | None) -> None:
        self.expected = expected
        self.produced = 0
        self._compressed = max(1, compressed)
        self._limits = limits
        self._ceiling = min(limits.size, max(limits.ratio_floor, limits.ratio * self._compressed))
        self._first = b""
        self._buffer: io.BytesIO | None = None
        if expected is not None:
            if expected < 0:
                raise Wrong("a decompressed size of 0 or more", expected)
            if expected > self._ceiling:
                raise self._limit(expected)

    def announce(self, size: int, most: int | None = None) -> None:
        """Say, before allocating, that the data claims to yield ``size`` bytes more.

        Args:
            size: bytes claimed.
            most: bytes that the format can yield at the very best from the input at hand, if that is known.

        Raises:
            Limit: so much is not allowed.
            Wrong: it is more than the caller expects, or more than the format can yield.
        """
        self._check(self.produced + size)
        if most is not None and size > most:
            raise Wrong(f"at most {most} bytes of decompressed data from this input", f"{size} announced")

    def room(self) -> int:
        """The number of bytes to request from a stream next: a step, or one byte more than is still allowed."""
        ceiling = self._ceiling if self.expected is None else self.expected
        return min(STEP, ceiling - self.produced + 1)

    def add(self, piece: bytes) -> None:
        """Take decompressed bytes. Raises what ``announce`` raises."""
        if not piece:
            return
        total = self.produced + len(piece)
        self._check(total)
        if not self.produced:
            self._first = piece
        else:
            if self._buffer is None:
                self._buffer = io.BytesIO()
                self._buffer.write(self._first)
                self._first = b""
            self._buffer.write(piece)
        self.produced = total

    def result(self) -> bytes:
        """All bytes taken. Raises ``Wrong`` if they are not as many as expected."""
        if self.expected is not None and self.produced != self.expected:
            raise Wrong(f"{self.expected} bytes of decompressed data", f"{self.produced}")
        return self._first if self._buffer is None else self._buffer.getvalue()

    def _check(self, total: int) -> None:
        if total > self._ceiling:
            raise self._limit(total)
        if self.expected is not None and total > self.expected:
            raise Wrong(f"{self.expected} bytes of decompressed data", f"at least {total}")

    def _limit(self, total: int) -> Limit:
        if total > self._limits.size:
            return Limit("decompressed_size", self._limits.size, total)
        return Limit("decompression_ratio", self._limits.ratio, -(-total // self._compressed))


@dataclass(frozen=True, slots=True)
class Codec:
    """One compression format.

    Attributes:
        name: what layouts call it.
        decompress: reads all of a buffer into an ``Output``; for any bytes it raises only ``wirekit.errors.WireError``,
            with offsets that count from the start of the buffer.
        compress: the bytes that a writer of this format would send. The same input gives the same output.
        description: format and source in a few words.
    """

    name: str
    decompress: Callable[[memoryview, Output], None]
    compress: Callable[[Buffer], bytes]
    description: str
