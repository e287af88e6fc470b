"""snappy: format_description.txt and framing_format.txt of google/snappy, and the stream of xerial's snappy-java."""

from __future__ import annotations

from collections.abc import Iterator

from wirekit.compression.output import KIB, Buffer, Codec, Decompression, Output
from wirekit.compression.reading import View, integer, take
from wirekit.errors import Limit, Misuse, WireError, Wrong

_SNAPPY_STREAM = b"\xff\x06\x00\x00sNaPpY"
XERIAL_MAGIC = b"\x82SNAPPY\x00"
_STREAMS = {_SNAPPY_STREAM: "a stream of snappy's framing format", XERIAL_MAGIC: "a stream of snappy-java"}
"""Beginnings of streams; none begins a valid block, because its first copy would be from before the data."""
SNAPPY_BEST = 64
"""The most bytes that a tag of three bytes in a snappy block expands to."""


def _snappy_block(block: memoryview, output: Output, start: int = 0) -> None:
    """Decompresses one raw block, which begins at ``start`` of the input."""
    import cramjam

    for beginning, name in _STREAMS.items():
        if block[: len(beginning)] == beginning:
            raise Wrong("one raw snappy block", name, offset=start)
    try:
        announced = cramjam.snappy.decompress_raw_len(block)
        output.announce(announced, most=len(block) * SNAPPY_BEST // 3)
        output.add(bytes(cramjam.snappy.decompress_raw(block)))
    except cramjam.DecompressionError as error:
        raise Wrong("a valid snappy block", str(error), offset=start) from None
    except WireError as error:
        error.offset = start
        raise


def _snappy_compress(data: Buffer) -> bytes:
    import cramjam

    if len(data) > 0xFFFF_FFFF:
        raise Misuse(f"a snappy block holds 4294967295 bytes at most, not {len(data)}; split the data")
    return bytes(cramjam.snappy.compress_raw(data))


_XERIAL_HEADER = XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK = 32 * KIB


def xerial_blocks(data: View) -> Iterator[tuple[int, View]]:
    """The blocks of snappy-java's stream, each with its start.

    Raises:
        Wrong: for another magic, or a negative length.
        Short: for a cut header or block.
    """
    # SnappyInputStream: a header, then blocks after a big-endian int32 length. A header may come again between blocks,
    # where streams were joined. The two version numbers are ignored: some writers have them little-endian.
    if data[:8] != XERIAL_MAGIC:
        take(data, 0, 8)
        raise Wrong(f"the magic {XERIAL_MAGIC.hex()} of snappy-java's stream", data[:8].hex(), offset=0)
    at = len(take(data, 0, 16))
    while at < len(data):
        if data[at : at + 8] == XERIAL_MAGIC:
            at += len(take(data, at, 16))
            continue
        block = at + 4
        size = int.from_bytes(take(data, at, 4), "big", signed=True)
        if size < 0:
            raise Wrong("a block length of 0 or more", size, offset=at)
        at = block + size
        yield block, take(data, block, size)


def _xerial_decompress(data: memoryview, output: Output) -> None:
    for at, block in xerial_blocks(data):
        _snappy_block(block, output, at)


def _xerial_compress(data: Buffer) -> bytes:
    pieces = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK):
        block = _snappy_compress(data[start : start + _XERIAL_BLOCK])
        pieces += [len(block).to_bytes(4, "big"), block]
    return b"".join(pieces)


def _kafka_snappy_decompress(data: memoryview, output: Output) -> None:
    if data[:8] == XERIAL_MAGIC:
        _xerial_decompress(data, output)
    else:
        _snappy_block(data, output)


_SNAPPY_CHUNK = 64 * KIB


def _snappy_framed_decompress(data: memoryview, output: Output) -> None:
    # Chunks of a type byte and a little-endian length of three bytes; 0 compressed, 1 plain; 2-127 must be understood,
    # 128-254 may be skipped, 255 starts a stream.
    if take(data, 0, 10) != _SNAPPY_STREAM:
        raise Wrong(f"the stream identifier {_SNAPPY_STREAM.hex()}", data[:10].hex(), offset=0)
    at = 0
    while at < len(data):
        kind, size = data[at], integer(data, at + 1, 3)
        chunk = take(data, at + 4, size)
        if kind <= 1:
            output.add(_snappy_chunk(kind, chunk, at + 4))
        elif kind < 0x80:
            raise Wrong("a chunk that this version of the format knows", f"type {kind}", offset=at)
        elif kind == 0xFF and data[at : at + 4 + size] != _SNAPPY_STREAM:
            raise Wrong(f"the stream identifier {_SNAPPY_STREAM.hex()}", data[at : at + 10].hex(), offset=at)
        at += 4 + size


def _snappy_chunk(kind: int, chunk: memoryview, start: int) -> bytes:
    """The plain bytes of a chunk, compressed or not, which follow their masked CRC-32C."""
    import crc32c

    if len(chunk) < 4:
        raise Wrong("a chunk of 4 bytes or more", len(chunk), offset=start)
    part = Output(len(chunk), Decompression(_SNAPPY_CHUNK), None)
    try:
        if kind == 0:
            _snappy_block(chunk[4:], part, start + 4)
        else:
            part.add(bytes(chunk[4:]))
    except Limit as error:
        raise Wrong(f"a chunk of at most {_SNAPPY_CHUNK} bytes", f"one of {error.actual}", offset=start) from None
    plain = part.result()
    crc = crc32c.crc32c(plain)
    masked = ((crc >> 15 | crc << 17) + 0xA282_EAD8) & 0xFFFF_FFFF
    stored = integer(chunk, 0, 4)
    if stored != masked:
        raise Wrong(f"the masked CRC-32C {masked:08x}", f"{stored:08x}", offset=start)
    return plain


def _snappy_framed_compress(data: Buffer) -> bytes:
    import cramjam

    return bytes(cramjam.snappy.compress(data)) or _SNAPPY_STREAM


CODECS = (
    Codec("snappy", _snappy_block, _snappy_compress, "one raw snappy block"),
    Codec("xerial", _xerial_decompress, _xerial_compress, "the stream of snappy-java, written in blocks of 32 KiB"),
    Codec(
        "kafka-snappy",
        _kafka_snappy_decompress,
        _xerial_compress,
        "read: xerial if it has the magic, else a raw block; written: xerial",
    ),
    Codec("snappy-framed", _snappy_framed_decompress, _snappy_framed_compress, "snappy's own framing format"),
)
