"""Checksum algorithms by name, for ``Checked`` fields and for anyone who verifies bytes by hand.

An algorithm here is a plain function of all covered bytes. The compiled kernels have their own implementations, which
must agree with these. Which bytes a checksum covers is a matter of the layout and is said in ``schemas/``.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from wirekit.errors import Misuse


def _slows_down(processors: str = "/proc/cpuinfo") -> bool:
    """Whether a call of isal's CRC-32 slows down all that the process does behind it, as on Intel's AVX-512.

    ``benchmarks/process_after_isal.py`` shows it.
    """
    try:
        with open(processors, encoding="ascii", errors="replace") as file:
            told = file.read(4096)  # of the first processor
    except OSError:
        return False
    return "GenuineIntel" in told and "avx512" in told


crc32 = zlib.crc32
if not _slows_down():
    with contextlib.suppress(ImportError):  # the extra ``fast``: several times as fast for small pieces
        from isal.isal_zlib import crc32

Buffer = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class Checksum:
    """One algorithm.

    Attributes:
        name: what layouts call it.
        bits: its width; the stored field may be wider (JMQ4 stores a CRC-32 in 64 bits).
        function: takes the covered bytes, returns the checksum as an unsigned int of ``bits`` bits.
        description: polynomial and conventions in a few words.
    """

    name: str
    bits: int
    function: Callable[[Buffer], int]
    description: str

    def __call__(self, data: Buffer) -> int:
        """The checksum of ``data``."""
        return self.function(data)


PLAIN = 16 * 1024
"""Bytes of CRC-32C, in a process, that do not pay for loading the package: it takes 20 ms, Python 0.13 µs a byte."""
_plain_left = PLAIN
_crc32c_of_package: Callable[[Buffer], int] | None = None


def _crc32c(data: Buffer) -> int:
    global _plain_left, _crc32c_of_package
    if _crc32c_of_package is None:
        if len(data) <= _plain_left:
            _plain_left -= len(data)
            return crc32c_plain(data)
        from crc32c import crc32c

        _crc32c_of_package = crc32c
    return _crc32c_of_package(data)


def crc32c_plain(data: Buffer) -> int:
    """CRC-32C in Python alone: slow, and there at once."""
    table, crc = _table(), 0xFFFFFFFF
    for byte in bytes(data):
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


@cache
def _table() -> list[int]:
    """What each value of a byte adds."""
    table = list(range(256))
    for _ in range(8):
        table = [crc >> 1 ^ (0x82F63B78 if crc & 1 else 0) for crc in table]
    return table


def _internet(data: Buffer) -> int:
    # The ones' complement sum of 16-bit words is the number modulo 65535, except that only zeros sum to zero.
    number = int.from_bytes(data, "big") << 8 * (len(data) % 2)
    return 0xFFFF - (number % 0xFFFF or (0xFFFF if number else 0))


_CHECKSUMS: dict[str, Checksum] = {
    entry.name: entry
    for entry in (
        Checksum("crc32", 32, crc32, "CRC-32 of IEEE 802.3 (reflected 0xedb88320), as in zlib and java.util.zip.CRC32"),
        Checksum(
            "crc32c",
            32,
            _crc32c,
            "CRC-32C, Castagnoli (reflected 0x82f63b78, RFC 3720), initial and final xor of all ones",
        ),
        Checksum("internet", 16, _internet, "ones' complement of the ones' complement sum of 16-bit words (RFC 1071)"),
    )
}


def names() -> tuple[str, ...]:
    """The known algorithms, in the order they were registered."""
    return tuple(_CHECKSUMS)


def checksum(name: str) -> Checksum:
    """The algorithm called ``name``.

    Raises:
        Misuse: there is none; the text lists those there are.

    Example:
        >>> hex(checksum("crc32")(b"123456789")), hex(checksum("crc32c")(b"123456789"))
        ('0xcbf43926', '0xe3069283')
    """
    try:
        return _CHECKSUMS[name]
    except KeyError:
        raise Misuse(f"no checksum is called {name!r}; known are {', '.join(_CHECKSUMS)}") from None


def register(algorithm: Checksum) -> None:
    """Make an algorithm of another protocol known under its name.

    Raises:
        Misuse: the name is taken.
    """
    if algorithm.name in _CHECKSUMS:
        raise Misuse(f"a checksum called {algorithm.name!r} exists already; choose another name")
    _CHECKSUMS[algorithm.name] = algorithm
