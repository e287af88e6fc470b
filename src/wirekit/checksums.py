"""Checksum algorithms by name, for ``Checked`` fields and for direct use.

The algorithms are those of this module, the CRCs of ``wirekit.crc``, and those that ``register`` adds: a CRC by its
parameters (``crc``), or any function of bytes. An algorithm here is a plain function of all covered bytes. The compiled
kernels have their own implementations, which must agree with these. The layout in ``schemas/`` declares which bytes a
checksum covers.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from wirekit.crc import CATALOGUE, Crc
from wirekit.errors import Misuse, raised


def _slows_down(processors: str = "/proc/cpuinfo") -> bool:
    """Whether a call of isal's CRC-32 slows down the rest of the process, as on Intel processors with AVX-512.

    ``benchmarks/process_after_isal.py`` shows it.
    """
    try:
        with open(processors, encoding="ascii", errors="replace") as file:
            text = file.read(4096)  # of the first processor
    except OSError:
        return False
    return "GenuineIntel" in text and "avx512" in text


crc32 = zlib.crc32
if not _slows_down():
    with contextlib.suppress(ImportError):  # the extra ``fast``: several times as fast for small pieces
        from isal.isal_zlib import crc32

Buffer = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class Checksum:
    """One algorithm.

    Attributes:
        name: its name in layouts.
        bits: its width; the stored field may be wider (JMQ4 stores a CRC-32 in 64 bits).
        function: takes the covered bytes, returns the checksum as an unsigned int of ``bits`` bits.
        description: polynomial and conventions in a few words.
        form: its parameters, if columns have compiled code for it; otherwise None.
    """

    name: str
    bits: int
    function: Callable[[Buffer], int]
    description: str
    form: Form | None = None

    def __call__(self, data: Buffer) -> int:
        """The checksum of ``data``."""
        return self.function(data)

    def digest(self, data: Buffer) -> bytes:
        """The checksum of ``data`` as bytes, the most significant first."""
        return self.function(data).to_bytes((self.bits + 7) // 8, "big")


@dataclass(frozen=True, slots=True)
class TwoSums:
    """A sum of words and a sum of these sums, as in Adler and Fletcher.

    Attributes:
        size: bytes of a word, the least significant first; an incomplete last word is padded with zeros.
        modulus: the modulus of both sums.
        first: the initial value of the first sum.
    """

    size: int
    modulus: int
    first: int = 0

    @property
    def bits(self) -> int:
        """Bits of each sum."""
        return 8 if self.modulus < 1 << 8 else 16

    def __call__(self, data: Buffer) -> int:
        """The checksum of bytes."""
        one, two = self.first, 0
        for at in range(0, len(data), self.size):
            one = (one + int.from_bytes(data[at : at + self.size], "little")) % self.modulus
            two = (two + one) % self.modulus
        return two << self.bits | one


Form = Crc | TwoSums | str
"""The form of a checksum: a CRC, two sums, or the name of a checksum with code of its own."""


PLAIN = 16 * 1024
"""Bytes of CRC-32C in a process for which loading the package (20 ms) does not pay; Python takes 0.13 µs a byte."""
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


crc32c_plain = CATALOGUE["crc-32/iscsi"][0]
"""CRC-32C in Python: slow, but available without an import."""


def _internet(data: Buffer) -> int:
    # The ones' complement sum of 16-bit words is the number modulo 65535, except that only zeros sum to zero.
    number = int.from_bytes(data, "big") << 8 * (len(data) % 2)
    return 0xFFFF - (number % 0xFFFF or (0xFFFF if number else 0))


def _digest(name: str, data: Buffer) -> int:
    return int.from_bytes(hashlib.new(name, data, usedforsecurity=False).digest(), "big")


def _xxh32(data: Buffer) -> int:
    from xxhash import xxh32_intdigest

    return xxh32_intdigest(bytes(data))


def _xxh64(data: Buffer) -> int:
    from xxhash import xxh64_intdigest

    return xxh64_intdigest(bytes(data))


_CHECKSUMS: dict[str, Checksum] = {
    entry.name: entry
    for entry in (
        Checksum(
            "crc32",
            32,
            crc32,
            "CRC-32 of IEEE 802.3 (reflected 0xedb88320), as in zlib and java.util.zip.CRC32",
            "crc32",
        ),
        Checksum(
            "crc32c",
            32,
            _crc32c,
            "CRC-32C, Castagnoli (reflected 0x82f63b78, RFC 3720), initial and final xor of all ones",
            "crc32c",
        ),
        Checksum(
            "internet",
            16,
            _internet,
            "ones' complement of the ones' complement sum of 16-bit words (RFC 1071)",
            "internet",
        ),
        Checksum("adler32", 32, zlib.adler32, "Adler-32 (RFC 1950)", TwoSums(1, 65521, 1)),
        Checksum("fletcher16", 16, TwoSums(1, 255), "Fletcher-16: sums of bytes modulo 255", TwoSums(1, 255)),
        Checksum(
            "fletcher32",
            32,
            TwoSums(2, 65535),
            "Fletcher-32: sums of little-endian words modulo 65535",
            TwoSums(2, 65535),
        ),
        *(
            Checksum(name, bits, partial(_digest, name), f"digest of {bits} bits, {source}")
            for name, bits, source in (
                ("md5", 128, "RFC 1321"),
                ("sha1", 160, "FIPS 180-4"),
                ("sha256", 256, "FIPS 180-4"),
            )
        ),
        Checksum("xxh32", 32, _xxh32, "XXH32 with seed 0"),
        Checksum("xxh64", 64, _xxh64, "XXH64 with seed 0"),
    )
}


def names() -> tuple[str, ...]:
    """The known algorithms: first those in the order they were registered, then the catalogue of CRCs."""
    return (*_CHECKSUMS, *(name for name in CATALOGUE if name not in _CHECKSUMS))


def checksum(name: str) -> Checksum:
    """The algorithm with a name.

    Raises:
        Misuse: there is no such algorithm; the text lists the known ones.

    >>> hex(checksum("crc32")(b"123456789")), hex(checksum("crc-16/modbus")(b"123456789"))
    ('0xcbf43926', '0x4b37')
    """
    if name in _CHECKSUMS:
        return _CHECKSUMS[name]
    if name in CATALOGUE:
        return crc(name, CATALOGUE[name][0])
    near = difflib.get_close_matches(name.lower(), names(), 5) or ["crc32", "crc32c", "internet"]
    raise Misuse(f"no checksum {name!r}; {len(names())} are known, among them {', '.join(near)}")


def crc(name: str, parameters: Crc) -> Checksum:
    """A CRC with given parameters, of any width; ``register`` makes it available to layouts.

    Raises:
        Misuse: a parameter does not fit the width.

    >>> from wirekit.crc import Crc
    >>> hex(crc("crc-16/notes", Crc(16, 0x1021, init=0x1234))(b"123456789"))
    '0xedeb'
    """
    if parameters.width < 1 or max(parameters.poly, parameters.init, parameters.xorout) >> parameters.width:
        raise Misuse(f"the parameters of {name} must fit its {parameters.width} bits")
    description = f"CRC of {parameters.width} bits, polynomial 0x{parameters.poly:x}"
    return Checksum(name, parameters.width, parameters, description, parameters if parameters.width <= 64 else None)


def register(algorithm: Checksum) -> None:
    """Registers an algorithm, so that layouts can use its name.

    Raises:
        Misuse: the name is taken or not printable, or the function raises or returns anything but an unsigned
            integer of ``bits`` bits. Decoding and encoding raise it, too, if the function does so for some bytes.

    >>> register(Checksum("first", 32, lambda data: bytes(data[:4]), "the first 4 bytes"))
    Traceback (most recent call last):
    wirekit.errors.Misuse: the function of first must return an unsigned integer of 32 bits, not b'1234'
    """
    if not isinstance(algorithm, Checksum):
        raise Misuse(f"register takes a wirekit.checksums.Checksum, or crc(name, parameters), not {algorithm!r}")
    name: object = algorithm.name
    bits: object = algorithm.bits
    if not isinstance(name, str) or not name or not name.isprintable():
        raise Misuse(f"the name of a checksum must be printable text, not {name!r}")
    if not isinstance(bits, int) or bits < 1:
        raise Misuse(f"the bits of {name} must be a number of at least 1, not {bits!r}")
    verified = replace(algorithm, function=partial(_verified, algorithm))
    verified(b"123456789")
    if algorithm.name in names():
        raise Misuse(f"a checksum called {algorithm.name!r} already exists; choose another name")
    _CHECKSUMS[algorithm.name] = verified


def _verified(algorithm: Checksum, data: Buffer) -> int:
    """The result of a user's function.

    Raises:
        Misuse: the function raises, or does not return an unsigned integer of the width of the algorithm.
    """
    try:
        value: object = algorithm.function(data)
    except Exception as error:
        raise Misuse(f"the function of {algorithm.name} must take any bytes, but raised {raised(error)}") from error
    if type(value) is not int or not 0 <= value < 1 << algorithm.bits:
        raise Misuse(
            f"the function of {algorithm.name} must return an unsigned integer of {algorithm.bits} bits, not {value!r}"
        )
    return value
