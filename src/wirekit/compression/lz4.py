"""LZ4: lz4_Block_format.md and lz4_Frame_format.md of lz4/lz4."""

from __future__ import annotations

from collections.abc import Iterator

from wirekit.compression.output import KIB, Buffer, Codec, Output
from wirekit.compression.reading import at_end, drain, integer, take
from wirekit.errors import Misuse, Wrong

LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_BLOCK_MOST = 0x7E00_0000
LZ4_BEST = 255
"""The best that an LZ4 block can do: a byte that lengthens a match by 255."""


def _lz4_frame(data: memoryview, start: int, output: Output) -> int:
    """Decompresses one frame, or skips a skippable one; returns its end."""
    import lz4.frame

    if not output.until_damage and data[start : start + 4] == LZ4_MAGIC and integer(data, start + 4, 1) & 8:
        output.announce(integer(data, start + 6, 8), most=LZ4_BEST * (len(data) - start))
    before, good = output.produced, start
    for size in _SLICES:
        slices = _Slices(start, good, size)
        try:
            end = drain(lz4.frame.LZ4FrameDecompressor(), data, start, output, slices if output.until_damage else None)
            break
        except RuntimeError as error:
            if not output.until_damage or size == _SLICES[-1]:
                raise Wrong("a valid LZ4 frame", str(error), offset=start) from None
        good = slices.begin
        output.shorten(before)
    if end is None:
        raise Wrong("a complete LZ4 frame", f"one cut after {len(data) - start} bytes", offset=start)
    return end


_SLICES = (4 * KIB, 64, 1)
"""The library returns nothing of the slice of input that has damage. If the bytes before it are wanted, the frame is
read again, with smaller slices from there on."""


class _Slices:
    """The sizes of slices of the input from ``start`` on: large ones up to ``good``, then of ``size``.

    Attributes:
        begin: where the last slice begins.
    """

    def __init__(self, start: int, good: int, size: int) -> None:
        self.begin = self._end = start
        self._good = good
        self._size = size

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        self.begin = self._end
        size = min(_SLICES[0], self._good - self.begin) if self.begin < self._good else self._size
        self._end += size
        return size


def _lz4_frame_decompress(data: memoryview, output: Output) -> None:
    end = _lz4_frame(data, 0, output)
    while end < len(data):
        end = _lz4_frame(data, end, output)


def _lz4_frame_compress(data: Buffer) -> bytes:
    import lz4.frame

    compressed: bytes = lz4.frame.compress(data)
    return compressed


def _kafka_lz4_decompress(data: memoryview, output: Output) -> None:
    # KafkaLZ4BlockInputStream reads one frame, and no skippable ones.
    if take(data, 0, 4) != LZ4_MAGIC:
        raise Wrong(f"the magic {LZ4_MAGIC.hex()} of an LZ4 frame", data[:4].hex(), offset=0)
    at_end(data, _lz4_frame(data, 0, output), "the LZ4 frame")


def _kafka_lz4_compress(data: Buffer) -> bytes:
    import lz4.frame

    compressed: bytes = lz4.frame.compress(
        data, block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=False, content_checksum=False, store_size=False
    )
    return compressed


def _kafka_lz4_v0_decompress(data: memoryview, output: Output) -> None:
    # Kafka before 0.10 computed the header checksum over the magic too. Whatever is stored, the right one is put in its
    # place, as Kafka 0.10 ignores it for messages of magic 0.
    if data[:4] == LZ4_MAGIC and len(data) > 4:
        at = 6 + 8 * (data[4] >> 3 & 1) + 4 * (data[4] & 1)
        if at < len(data):
            repaired = bytearray(data)
            repaired[at] = lz4_header_checksum(data[4:at])
            data = memoryview(repaired)
    _kafka_lz4_decompress(data, output)


def _kafka_lz4_v0_compress(data: Buffer) -> bytes:
    frame = bytearray(_kafka_lz4_compress(data))
    frame[6] = lz4_header_checksum(frame[:6])
    return bytes(frame)


def lz4_header_checksum(descriptor: Buffer) -> int:
    """The checksum byte after the descriptor of an LZ4 frame."""
    import xxhash

    return xxhash.xxh32_intdigest(bytes(descriptor)) >> 8 & 0xFF


def _lz4_block_decompress(data: memoryview, output: Output) -> None:
    import lz4.block

    size = output.expected
    if size is None:
        raise Misuse("an LZ4 block does not contain its decompressed size; pass size=")
    output.announce(size, most=min(LZ4_BEST * len(data), _LZ4_BLOCK_MOST))
    try:
        output.add(lz4.block.decompress(data, uncompressed_size=size))
    except lz4.block.LZ4BlockError as error:
        raise Wrong(f"a valid LZ4 block of {size} bytes", str(error)) from None


def _lz4_block_compress(data: Buffer) -> bytes:
    import lz4.block

    if len(data) > _LZ4_BLOCK_MOST:
        raise Misuse(f"an LZ4 block holds {_LZ4_BLOCK_MOST} bytes at most, not {len(data)}; split the data")
    compressed: bytes = lz4.block.compress(data, store_size=False)
    return compressed


CODECS = (
    Codec("lz4-frame", _lz4_frame_decompress, _lz4_frame_compress, "LZ4 frames"),
    Codec("kafka-lz4", _kafka_lz4_decompress, _kafka_lz4_compress, "one LZ4 frame, as in Kafka messages of magic 1"),
    Codec(
        "kafka-lz4-v0",
        _kafka_lz4_v0_decompress,
        _kafka_lz4_v0_compress,
        "one LZ4 frame with a wrong header checksum, as in Kafka messages of magic 0; any checksum is read",
    ),
    Codec(
        "lz4-block",
        _lz4_block_decompress,
        _lz4_block_compress,
        "one LZ4 block without its size, which must be passed",
    ),
)
