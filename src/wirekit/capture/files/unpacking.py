"""Capture files that are compressed as a whole: recognises the codec, and yields the content in bounded pieces."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any, NamedTuple

CHUNK = 1024 * 1024
"""The maximum number of bytes of content in a piece."""
DICTIONARY = 256 * 1024 * 1024
"""Bytes of memory that a decompressor of xz may take; ``xz -9`` needs 65 MiB."""
PZSTD = b"\x50\x2a\x4d\x18"
"""The first bytes of a file of ``pzstd``, which writes the size of each frame into a skippable frame before it."""
_PIECE = 64 * 1024  # compressed bytes read at once
_ZSTD_PIECE = 1024  # of zstd, whose decompressor has no bound: a block of 4 bytes yields 128 KiB


class Packing(NamedTuple):
    """A codec for whole files.

    Attributes:
        name: its name in errors.
        ending: the ending of file names.
        magic: the first bytes of such a file, one or several alternatives.
        chunks: yields the content of an open file in pieces, and raises ``Unpacking`` where it is damaged or truncated.
    """

    name: str
    ending: str
    magic: tuple[bytes, ...]
    chunks: Callable[[IO[bytes]], Iterator[bytes]]


class Unpacking(Exception):
    """The content of a compressed file ends early; the text is the message of the codec's library."""


def _gzip(source: IO[bytes]) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=source) as plain:
        try:
            while chunk := plain.read1(CHUNK):
                yield chunk
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise Unpacking(str(error)) from None


def _bz2(source: IO[bytes]) -> Iterator[bytes]:
    return _streams(source, bz2.BZ2Decompressor, OSError)


def _xz(source: IO[bytes]) -> Iterator[bytes]:
    return _streams(source, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, DICTIONARY), lzma.LZMAError, padding=b"\0")


def _lz4(source: IO[bytes]) -> Iterator[bytes]:
    import lz4.frame

    return _streams(source, lz4.frame.LZ4FrameDecompressor, RuntimeError)


def _streams(
    source: IO[bytes], decompressor: Callable[[], Any], failure: type[Exception], padding: bytes = b""
) -> Iterator[bytes]:
    """The content of all compressed streams of a file, which may be followed by padding."""
    data = source.read(_PIECE)
    while data:
        stream = decompressor()
        while not stream.eof:
            if stream.needs_input and not data:
                raise Unpacking("it ends within the compressed data")
            try:
                chunk = stream.decompress(data, CHUNK)
            except failure as error:
                raise Unpacking(str(error)) from None
            data = source.read(_PIECE) if stream.needs_input else b""
            if chunk:
                yield chunk
        data = stream.unused_data or source.read(_PIECE)
        while data and not (data := data.lstrip(padding)):
            data = source.read(_PIECE)


def _zstd(source: IO[bytes]) -> Iterator[bytes]:
    import zstandard

    data = source.read(_ZSTD_PIECE)
    while data:
        stream: Any = zstandard.ZstdDecompressor().decompressobj()
        while not stream.eof:
            if not data:
                raise Unpacking("it ends within the compressed data")
            try:
                chunk = stream.decompress(data)
            except zstandard.ZstdError as error:
                raise Unpacking(str(error)) from None
            data = source.read(_ZSTD_PIECE) if not stream.eof else b""
            if chunk:
                yield chunk
        data = stream.unused_data or source.read(_ZSTD_PIECE)


PACKINGS = (
    Packing("gzip", "gz", (b"\x1f\x8b",), _gzip),
    Packing("zstd", "zst", (b"\x28\xb5\x2f\xfd", PZSTD), _zstd),
    Packing("xz", "xz", (b"\xfd7zXZ\x00",), _xz),
    Packing("bzip2", "bz2", (b"BZh",), _bz2),
    Packing("lz4", "lz4", (b"\x04\x22\x4d\x18",), _lz4),
)
LONGEST_MAGIC = max(len(magic) for packing in PACKINGS for magic in packing.magic)


def packing_of(head: bytes) -> Packing | None:
    """The codec of a file that begins with these bytes; None for other files.

    >>> packing_of(b"BZh91AY").name
    'bzip2'
    """
    return next((packing for packing in PACKINGS if head.startswith(packing.magic)), None)
