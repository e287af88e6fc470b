"""A fast path for many small compressed pieces: one library call per usual piece, without creating objects.

For a usual piece the result equals that of ``wirekit.compression``. For all others it is None, and the caller
calls ``compression.decompress`` to decode or explain them: damage, exceeded limits, several gzip members, LZ4 frames
with a content size, zstd.

The library calls take no limit. They are used only if the format cannot yield more than the
limit allows (for deflate: not much more).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

from wirekit.checksums import checksum
from wirekit.compression import (
    DEFAULT,
    LZ4_BEST,
    LZ4_MAGIC,
    SNAPPY_BEST,
    XERIAL_MAGIC,
    lz4_header_checksum,
    xerial_blocks,
)
from wirekit.errors import WireError
from wirekit.wire.stream import Allowance, Limits

Quick = Callable[[bytes, int], bytes | None]
"""Returns the content of a piece, if it is usual and not longer than a number of bytes."""


def pieces(
    codec: str, data: memoryview, begins: list[int], ends: list[int], allowance: Allowance
) -> Iterator[bytes | None]:
    """Decompresses many pieces, each when the caller requests it.

    Args:
        codec: a name that ``wirekit.compression.names()`` lists.
        data: the bytes with all pieces.
        begins, ends: the range of each piece in ``data``.
        allowance: the number of bytes that may be decompressed; it is reduced by each piece.

    Returns:
        The content of each piece; None for an unusual piece, which ``allowance.decompress`` must handle.

    >>> from wirekit.compression import compress
    >>> from wirekit.wire.stream import Allowance, Limits
    >>> good = compress("gzip", b"hello")
    >>> data = memoryview(good + b"damaged")
    >>> list(pieces("gzip", data, [0, len(good)], [len(good), len(data)], Allowance(Limits(), len(data))))
    [b'hello', None]
    """
    decompress_piece = opener(codec, allowance.limits)
    for begin, end in zip(begins, ends, strict=True):
        yield decompress_piece(bytes(data[begin:end]), allowance)


def opener(codec: str, limits: Limits) -> Callable[[bytes, Allowance], bytes | None]:
    """The function that decompresses one piece, like ``pieces``; every allowance must have the same limits."""
    maker = _QUICK.get(codec)
    if maker is None:
        return lambda data, allowance: None
    quick, size, ratio, floor = maker(), limits.decompressed, limits.ratio, DEFAULT.ratio_floor

    def decompress_piece(data: bytes, allowance: Allowance) -> bytes | None:
        most = ratio * len(data)
        if not floor <= most <= size:
            most = min(max(most, floor), size)
        piece = quick(data, min(most, allowance.most))
        if piece is not None:
            allowance.take(len(piece))
        return piece

    return decompress_piece


_DEFLATE_BEST = 1032
"""The best that deflate can do: two bits for a match of 258 bytes."""
_GZIP_HEAD = b"\x1f\x8b\x08\x00"
"""A gzip header without optional fields begins so."""
_GUESS = 32
"""The maximum bytes of output per byte of input that are allocated because a trailer announces them."""


@cache
def _gzip() -> Quick:
    inflate, flags, error = _inflater()
    crc32 = checksum("crc32").function

    def gzip(data: bytes, most: int) -> bytes | None:
        if data[:4] != _GZIP_HEAD or _DEFLATE_BEST * len(data) > most + most // 16:
            return None
        size = int.from_bytes(data[-4:], "little")
        try:
            plain = inflate(data, *flags, min(size, _GUESS * len(data)) or 1)
        except error:
            return None
        # The library stops where the first member ends, whose trailer has the CRC-32 and the size of the output. Where
        # these bytes end the data and stand nowhere before, that member is the only one.
        only = len(plain) == size and data.find(crc32(plain).to_bytes(4, "little") + data[-4:]) == len(data) - 8
        return plain if only and size <= most else None

    return gzip


def _inflater() -> tuple[Callable[..., bytes], tuple[int, ...], type[Exception]]:
    """The function that decompresses the first member, its arguments between bytes and size guess, and its error."""
    try:  # twice as fast as zlib where there are thousands of bytes; the extra ``fast`` brings it
        from isal import igzip_lib
    except ImportError:
        import zlib

        return zlib.decompress, (31,), zlib.error
    error: type[Exception] = igzip_lib.IsalError  # type: ignore[assignment]  # its stub calls the class an instance
    return igzip_lib.decompress, (igzip_lib.DECOMP_GZIP, 15), error


@cache
def _snappy() -> Quick:
    import cramjam

    decompress_raw, decompress_raw_len = cramjam.snappy.decompress_raw, cramjam.snappy.decompress_raw_len
    error = cramjam.DecompressionError

    def snappy(data: bytes, most: int) -> bytes | None:
        try:
            size = decompress_raw_len(data)
            if size > most or 3 * size > SNAPPY_BEST * len(data):
                return None
            return bytes(decompress_raw(data))
        except error:
            return None

    return snappy


@cache
def _xerial() -> Quick:
    block = _snappy()

    def xerial(data: bytes, most: int) -> bytes | None:
        plain = []
        try:
            for _, each in xerial_blocks(data):
                piece = block(each, most)
                if piece is None:
                    return None
                most -= len(piece)
                plain.append(piece)
        except WireError:
            return None
        return plain[0] if len(plain) == 1 else b"".join(plain)

    return xerial


@cache
def _kafka_snappy() -> Quick:
    framed, block = _xerial(), _snappy()
    return lambda data, most: framed(data, most) if data[:8] == XERIAL_MAGIC else block(data, most)


_LZ4_HEAD = 7
"""Bytes of the header of an LZ4 frame that announces no size and needs no dictionary."""
_LZ4_MORE = 0b1001
"""The flags of a header that announces a size or needs a dictionary."""


@cache
def _lz4() -> Quick:
    from lz4.frame import decompress

    def lz4(data: bytes, most: int) -> bytes | None:
        if data[:4] != LZ4_MAGIC or len(data) < _LZ4_HEAD or data[4] & _LZ4_MORE or LZ4_BEST * len(data) > most:
            return None
        try:
            plain, end = decompress(data, return_bytes_read=True)
        except RuntimeError:
            return None
        return plain if end == len(data) else None

    return lz4


@cache
def _lz4_v0() -> Quick:
    frame, checksum = _lz4(), cache(lz4_header_checksum)

    def lz4_v0(data: bytes, most: int) -> bytes | None:
        if len(data) < _LZ4_HEAD or data[4] & _LZ4_MORE:
            return None
        return frame(data[:6] + checksum(data[4:6]).to_bytes(1) + data[7:], most)

    return lz4_v0


_QUICK: dict[str, Callable[[], Quick]] = {
    "gzip": _gzip,
    "snappy": _snappy,
    "xerial": _xerial,
    "kafka-snappy": _kafka_snappy,
    "kafka-lz4": _lz4,
    "kafka-lz4-v0": _lz4_v0,
}
