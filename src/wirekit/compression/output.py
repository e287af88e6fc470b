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
"""The maximum number of bytes that are requested from a stream, or passed to it, at once."""


@dataclass(frozen=True, slots=True)
class Decompression:
    """The limits on the output of one call of ``decompress``.

    Attributes:
        size: the maximal size of the output in bytes.
        ratio: the maximal number of output bytes per input byte.
        ratio_floor: ``ratio`` does not apply to outputs up to this size, because small data may compress very well.
    """

    size: int = 256 * MIB
    ratio: int = 1000
    ratio_floor: int = 64 * KIB

    def __post_init__(self) -> None:
        if self.size < 0 or self.ratio < 1 or self.ratio_floor < 0:
            raise Misuse(f"{self} is invalid; pass size >= 0, ratio >= 1 and ratio_floor >= 0")


DEFAULT = Decompression()


class Output:
    """Collects the output of a codec, and refuses it as soon as it exceeds a limit or the expected size.

    Attributes:
        expected: the final size of the output in bytes; None if it is unknown.
        produced: the number of bytes so far.
        until_damage: whether all bytes before damage are wanted, not only those of whole steps.
    """

    __slots__ = ("_buffer", "_ceiling", "_compressed", "_first", "_limits", "expected", "produced", "until_damage")

    def __init__(
        self, compressed: int, limits: Decompression, expected: int | None, *, until_damage: bool = False
    ) -> None:
        self.expected = expected
        self.until_damage = until_damage
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
        """Checks, before memory is allocated, whether ``size`` more bytes are allowed.

        Args:
            size: the announced number of bytes.
            most: the maximal number of bytes that the format can yield from the input, if known.

        Raises:
            Limit: the size exceeds a limit. A size above ``most`` is damage instead if the bytes before it are wanted.
            Wrong: the size exceeds the expected size, or ``most``.
        """
        is_possible = most is None or size <= most
        if is_possible or not self.until_damage:
            self._check(self.produced + size)
        if not is_possible:
            raise Wrong(f"at most {most} bytes of decompressed data from this input", f"{size} announced")

    def room(self) -> int:
        """The number of bytes to request from a stream next: a step, or one byte more than is still allowed."""
        ceiling = self._ceiling if self.expected is None else self.expected
        return min(STEP, ceiling - self.produced + 1)

    def add(self, piece: bytes) -> None:
        """Adds decompressed bytes; raises the errors of ``announce``."""
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
        """All collected bytes; raises ``Wrong`` if their number is not the expected one."""
        if self.expected is not None and self.produced != self.expected:
            raise Wrong(f"{self.expected} bytes of decompressed data", f"{self.produced}")
        return self.so_far()

    def so_far(self) -> bytes:
        """The bytes collected so far."""
        return self._first if self._buffer is None else self._buffer.getvalue()

    def shorten(self, size: int) -> None:
        """Keeps only the first bytes."""
        self._first, self._buffer = self.so_far()[:size], None
        self.produced = size

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
        name: its name in layouts.
        decompress: decompresses a whole buffer into an ``Output``. It raises only ``wirekit.errors.WireError``, with
            offsets from the start of the buffer.
        compress: compresses bytes as a writer of this format does. The same input gives the same output.
        description: a short description of format and source.
    """

    name: str
    decompress: Callable[[memoryview, Output], None]
    compress: Callable[[Buffer], bytes]
    description: str
