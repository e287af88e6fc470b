"""zstd: RFC 8878."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirekit.compression.output import KIB, MIB, Buffer, Codec, Output
from wirekit.compression.reading import integer, take
from wirekit.errors import Limit, Wrong

if TYPE_CHECKING:
    import zstandard

_ZSTD_MAGIC = 0xFD2F_B528
_ZSTD_SKIPPABLE = 0x184D_2A50
_ZSTD_BLOCK = 128 * KIB
_ZSTD_WINDOW = 8 * MIB
"""The window that RFC 8878 asks every decoder to support. Frames that state their size need no window."""


def _zstd_decompress(data: memoryview, output: Output) -> None:
    import zstandard

    engine = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    at = 0
    while True:
        magic = integer(data, at, 4)
        if magic == _ZSTD_MAGIC:
            at = _zstd_frame(engine, data, at, output)
        elif magic & ~0xF == _ZSTD_SKIPPABLE:
            size = integer(data, at + 4, 4)
            at += 8 + len(take(data, at + 8, size))
        else:
            raise Wrong("the magic 28b52ffd of a zstd frame", data[at : at + 4].hex(), offset=at)
        if at == len(data):
            return


def _zstd_frame(engine: zstandard.ZstdDecompressor, data: memoryview, start: int, output: Output) -> int:
    """Decompresses one frame; returns its end. The block headers give the end and the maximal size of the output."""
    import zstandard

    head = data[start : start + 18]
    try:
        parameters = zstandard.get_frame_parameters(head)
        at = start + zstandard.frame_header_size(head)
    except zstandard.ZstdError as error:
        raise Wrong("a valid zstd frame header", str(error), offset=start) from None
    most, last = 0, False
    block_most = min(parameters.window_size, _ZSTD_BLOCK)
    while not last:
        block = integer(data, at, 3)
        last, kind, size = bool(block & 1), block >> 1 & 3, block >> 3
        if kind == 3:
            raise Wrong("a raw, run-length or compressed zstd block", "the reserved kind 3", offset=at)
        most += block_most if kind == 2 else min(size, block_most)
        at += 3 + len(take(data, at + 3, 1 if kind == 1 else size))
    at += len(take(data, at, 4 if parameters.has_checksum else 0))

    try:
        if parameters.content_size != zstandard.CONTENTSIZE_UNKNOWN:
            output.announce(parameters.content_size, most)
            output.add(engine.decompress(data[start:at]))
        else:
            if parameters.window_size > _ZSTD_WINDOW:
                raise Limit("zstd_window", _ZSTD_WINDOW, parameters.window_size, offset=start)
            with engine.stream_reader(data[start:at]) as reader:
                while piece := reader.read(min(output.room(), most + 1)):
                    output.add(piece)
    except zstandard.ZstdError as error:
        raise Wrong("a valid zstd frame", str(error), offset=start) from None
    return at


def _zstd_compress(data: Buffer) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor(level=3).compress(data)


CODECS = (Codec("zstd", _zstd_decompress, _zstd_compress, "RFC 8878, any number of frames"),)
