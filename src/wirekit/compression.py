"""Compression codecs by name: one call in, one call out, never more memory than a limit grants.

Rules of this module:

- The compressed bytes are hostile. A size that they announce is held against the limits, and against what the format
  can yield from so few bytes, before anything of that size is allocated. Without one, decompression goes in steps.
- Every byte of the input belongs to the format: data after the end of a stream is an error, not ignored.
- Damage is ``Wrong`` in the library's words, missing bytes are ``Short`` where the framing says how many are missing
  and ``Wrong`` where it does not, too much is ``Limit``. Nothing else is raised for any bytes.
- The framings around the codecs (xerial blocks, snappy chunks, zstd blocks, zip headers) are taken apart here by hand;
  they are parts of codecs, not of a protocol. Layouts of protocols must not come in here.
- Libraries are imported by the codec that needs them.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from wirekit.errors import Limit, Misuse, Short, WireError, Wrong

if TYPE_CHECKING:
    import zstandard

Buffer = bytes | bytearray | memoryview

KIB = 1024
MIB = 1024 * KIB

_STEP = 256 * KIB
"""Most bytes that a stream is asked for, and given, at once."""


@dataclass(frozen=True, slots=True)
class Decompression:
    """How much one call of ``decompress`` may produce.

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
            raise Misuse(f"{self} makes no sense; pass size >= 0, ratio >= 1 and ratio_floor >= 0")


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
        """How many bytes to ask a stream for next: a step, or one byte more than may still come."""
        ceiling = self._ceiling if self.expected is None else self.expected
        return min(_STEP, ceiling - self.produced + 1)

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


def decompress(
    codec: str,
    data: Buffer,
    *,
    limits: Decompression = DEFAULT,
    size: int | None = None,
    protocol: str = "",
    path: str = "",
    offset: int = 0,
    source: int = 0,
) -> bytes:
    """Decompress all of ``data``.

    Args:
        codec: a name that ``names()`` lists.
        data: the compressed bytes, from the first to the last.
        limits: how many bytes may come out.
        size: how many bytes must come out, if the protocol says so. ``lz4-block`` can't be read without it, ``zlib``
            without a final block ends there, ``none`` does not look at it.
        protocol: schema key, for errors.
        path: field that holds ``data``, for errors.
        offset: absolute offset of ``data[0]`` in ``source``, in bytes, for errors.
        source: 0 for the input itself, n for the n-th piece of decompressed data in it, for errors.

    Raises:
        Wrong: damaged, followed by other bytes, or not of ``size`` bytes.
        Short: cut off inside a part whose length is known.
        Limit: ``decompressed_size`` or ``decompression_ratio`` passed, or a zstd frame asks for a window above 8 MiB.
            ``actual`` is what the data announces, or, where it announces nothing, how far decompression went before it
            was stopped.
        Misuse: no such codec, no ``size`` where it is needed, or ``data`` is not contiguous bytes.

    Example:
        >>> decompress("zlib", bytes.fromhex("789cca48cdc9c907000000ffff"), size=5)  # from Java: no final block
        b'hello'
        >>> decompress("snappy", bytes.fromhex("ffffffff0f00"))
        Traceback (most recent call last):
        wirekit.errors.Limit: the start: 4294967295 exceeds the limit decompressed_size of 268435456, at byte 0 (0x0)
    """
    entry = _find(codec)
    view = _view(data)
    try:
        # Pulsar clients write the size of the whole message into every chunk of it, compressed or not.
        output = Output(len(view), limits, None if codec == "none" else size)
        entry.decompress(view, output)
        return output.result()
    except WireError as error:
        error.protocol, error.path, error.source = protocol, path, source
        error.offset = offset + (error.offset or 0)
        raise


def compress(codec: str, data: Buffer) -> bytes:
    """Compress ``data`` as a writer of the format does. The same input gives the same output.

    The bytes need not equal those of another implementation, which is free to find other matches; the framing does.

    Raises:
        Misuse: no such codec, or more bytes than the format can hold.

    Example:
        >>> compress("kafka-lz4-v0", b"").hex(), compress("kafka-lz4", b"").hex()
        ('04224d1860401a00000000', '04224d1860408200000000')
    """
    return _find(codec).compress(_view(data))


def codec(name: str) -> Codec:
    """The codec called ``name``.

    Raises:
        Misuse: there is none; the text lists those there are.

    Example:
        >>> codec("zlib").description
        'RFC 1950; also without a final block, as Java writes it with SYNC_FLUSH'
    """
    return _find(name)


def names() -> tuple[str, ...]:
    """The known codecs, in the order they were registered."""
    return tuple(_CODECS)


def register(entry: Codec) -> None:
    """Make a codec of another protocol known under its name.

    Raises:
        Misuse: the name is taken.
    """
    if entry.name in _CODECS:
        raise Misuse(f"a codec called {entry.name!r} exists already; choose another name")
    _CODECS[entry.name] = entry


def _find(name: str) -> Codec:
    try:
        return _CODECS[name]
    except KeyError:
        raise Misuse(f"no codec is called {name!r}; known are {', '.join(_CODECS)}") from None


def _view(data: Buffer) -> memoryview:
    try:
        return memoryview(data).cast("B")
    except TypeError:
        raise Misuse(f"{type(data).__name__} is not compressed data; pass bytes or a contiguous memoryview") from None


# What the readers below share.


_View = TypeVar("_View", bytes, memoryview)


def _take(data: _View, start: int, size: int) -> _View:
    """``size`` bytes from ``start``, all of them."""
    end = start + size
    if end > len(data):
        start = min(start, len(data))
        raise Short(end - start, len(data) - start, offset=start)
    return data[start:end]


def _integer(data: memoryview, start: int, size: int) -> int:
    """A little-endian unsigned integer."""
    return int.from_bytes(_take(data, start, size), "little")


def _end(data: memoryview, end: int, what: str) -> None:
    if end != len(data):
        raise Wrong(f"nothing after {what}", f"{len(data) - end} more bytes", offset=end)


class _Stream(Protocol):
    """What ``bz2.BZ2Decompressor`` and its like have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes | None: ...
    def decompress(self, data: Buffer, max_length: int) -> bytes: ...


class _Inflater:
    """``zlib.decompressobj`` as such a stream."""

    def __init__(self, wbits: int) -> None:
        self._inner = zlib.decompressobj(wbits)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: Buffer, max_length: int) -> bytes:
        tail = self._inner.unconsumed_tail
        return self._inner.decompress(tail + data if tail else data, max_length)


def _drain(stream: _Stream, data: memoryview, start: int, output: Output) -> int | None:
    """Decompress one stream from ``start`` on.

    Returns:
        Where it ends in ``data``, or None if ``data`` ends first.
    """
    # The libraries copy what they leave unread, so input is given in slices. They start small because a flood of tiny
    # streams would otherwise copy a large slice for each.
    position, slice_size = start, 4 * KIB
    chunk: Buffer = data[position : position + slice_size]
    while True:
        position += len(chunk)
        room = output.room()
        piece = stream.decompress(chunk, room)
        output.add(piece)
        if stream.eof:
            return position - len(stream.unused_data or b"")
        if len(piece) == room or not stream.needs_input:
            if not piece and not chunk:
                return None
            chunk = b""
            continue
        if position == len(data):
            return None
        slice_size = min(2 * slice_size, _STEP)
        chunk = data[position : position + slice_size]


# gzip, zlib, zip: RFC 1952, RFC 1950 and PKWARE's APPNOTE, all around RFC 1951.


def _inflate(wbits: int, data: memoryview, start: int, output: Output, what: str) -> int | None:
    try:
        return _drain(_Inflater(wbits), data, start, output)
    except zlib.error as error:
        raise Wrong(f"valid {what}", str(error), offset=start) from None


def _gzip_decompress(data: memoryview, output: Output) -> None:
    start = 0
    while True:
        end = _inflate(31, data, start, output, "gzip data")
        if end is None:
            raise Wrong("a complete gzip member", f"its end is missing after {len(data) - start} bytes", offset=start)
        if end == len(data):
            return
        start = end


def _gzip_compress(data: Buffer) -> bytes:
    engine = zlib.compressobj(wbits=31)
    return engine.compress(data) + engine.flush()


_SYNC_FLUSH = b"\x00\x00\xff\xff"
"""The empty stored block that ends what java.util.zip.Deflater.SYNC_FLUSH wrote."""


def _zlib_decompress(data: memoryview, output: Output) -> None:
    _take(data, 0, 2)
    end = _inflate(15, data, 0, output, "zlib data")
    if end is not None:
        _end(data, end, "the zlib stream")
    elif output.expected is None:
        if data[-4:] != _SYNC_FLUSH:
            raise Wrong("a zlib stream with a final block or flushed at its end", f"neither after {len(data)} bytes")
    elif output.produced < output.expected:
        raise Wrong(f"{output.expected} bytes of decompressed data", f"the zlib stream ends after {output.produced}")


def _zlib_compress(data: Buffer) -> bytes:
    return zlib.compress(data)


_ZIP_ENTRY, _ZIP_DESCRIPTOR = b"PK\x03\x04", b"PK\x07\x08"
_ZIP_DIRECTORY, _ZIP_END = b"PK\x01\x02", b"PK\x05\x06"


def _zip_decompress(data: memoryview, output: Output) -> None:
    # Local header, data, data descriptor, directory entry, end record, all there once; java.util.zip.ZipOutputStream
    # writes exactly that for one entry. Offsets are those of APPNOTE 4.3.7, 4.3.9, 4.3.12 and 4.3.16.
    _zip_signature(data, 0, _ZIP_ENTRY, "a zip entry")
    header = _take(data, 0, 30)
    flags, method = _integer(header, 6, 2), _integer(header, 8, 2)
    if flags & 1:
        raise Wrong("a zip entry in clear", "an encrypted one", offset=6)
    described = bool(flags & 8)
    if method != 8 and (method != 0 or described):
        raise Wrong("a deflated or stored zip entry", f"compression method {method}", offset=8)
    start = 30 + _integer(header, 26, 2) + _integer(header, 28, 2)
    _take(data, 30, start - 30)

    if described:
        body = data
    else:
        output.announce(_integer(header, 22, 4))
        body = data[: start + len(_take(data, start, _integer(header, 18, 4)))]
    end: int | None
    if method == 8:
        end = _inflate(-15, body, start, output, "deflated data")
        if end is None:
            raise Wrong("complete deflated data", f"its end is missing after {len(body) - start} bytes", offset=start)
        if not described:
            _end(body, end, "the deflated data")
    else:
        output.add(bytes(body[start:]))
        end = len(body)

    actual = (zlib.crc32(output.result()), end - start, output.produced)
    if described:
        at = end + 4 if data[end : end + 4] == _ZIP_DESCRIPTOR else end
        _zip_compare(data, at, actual)
        end = at + 12
    else:
        _zip_compare(data, 14, actual)
    _zip_signature(data, end, _ZIP_DIRECTORY, "the directory after one zip entry")
    entry = _take(data, end, 46)
    _zip_compare(data, end + 16, actual)
    variable = sum(_integer(entry, at, 2) for at in (28, 30, 32))
    _take(data, end + 46, variable)
    end += 46 + variable
    _zip_signature(data, end, _ZIP_END, "the end record after one zip entry")
    comment = _integer(_take(data, end, 22), 20, 2)
    _take(data, end + 22, comment)
    _end(data, end + 22 + comment, "the zip archive")


def _zip_signature(data: memoryview, at: int, signature: bytes, what: str) -> None:
    found = _take(data, at, 4)
    if found != signature:
        raise Wrong(f"{what}, {signature.hex()}", found.hex(), offset=at)


def _zip_compare(data: memoryview, at: int, actual: tuple[int, int, int]) -> None:
    stored = tuple(_integer(data, at + shift, 4) for shift in (0, 4, 8))
    if stored != actual:
        raise Wrong(f"a zip entry of CRC-32, compressed and plain size {actual}", stored, offset=at)


def _zip_compress(data: Buffer) -> bytes:
    import zipfile

    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as target:
        # Without a date of its own the entry would carry the clock, and no two runs would agree.
        entry = zipfile.ZipInfo("0", (1980, 1, 1, 0, 0, 0))
        entry.compress_type = zipfile.ZIP_DEFLATED
        target.writestr(entry, bytes(data))
    return archive.getvalue()


# snappy: google/snappy format_description.txt and framing_format.txt, and the stream of xerial's snappy-java.


SNAPPY_BEST = 64
"""The best that three bytes of a snappy block can do: they stand for a copy of 64."""


def _snappy_decompress(data: memoryview, output: Output) -> None:
    _snappy_block(data, 0, output)


def _snappy_block(block: memoryview, start: int, output: Output) -> None:
    """One raw block, which stands at ``start`` of the input."""
    import cramjam

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


XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK = 32 * KIB


def xerial_blocks(data: _View) -> Iterator[tuple[int, _View]]:
    """The blocks of snappy-java's stream, each with where it begins.

    Raises:
        Wrong: for another magic, or a negative length.
        Short: for a header or a block that is cut.
    """
    # SnappyInputStream: a header, then blocks behind a big-endian int32 length. A header may come again between blocks,
    # where streams were joined. The two version numbers are not looked at: some writers have them little-endian.
    if data[:8] != XERIAL_MAGIC:
        _take(data, 0, 8)
        raise Wrong(f"the magic {XERIAL_MAGIC.hex()} of snappy-java's stream", data[:8].hex(), offset=0)
    at = len(_take(data, 0, 16))
    while at < len(data):
        if data[at : at + 8] == XERIAL_MAGIC:
            at += len(_take(data, at, 16))
            continue
        block = at + 4
        size = int.from_bytes(_take(data, at, 4), "big", signed=True)
        if size < 0:
            raise Wrong("a block length of 0 or more", size, offset=at)
        at = block + size
        yield block, _take(data, block, size)


def _xerial_decompress(data: memoryview, output: Output) -> None:
    for at, block in xerial_blocks(data):
        _snappy_block(block, at, output)


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
        _snappy_decompress(data, output)


_SNAPPY_STREAM = b"\xff\x06\x00\x00sNaPpY"
_SNAPPY_CHUNK = 64 * KIB


def _snappy_framed_decompress(data: memoryview, output: Output) -> None:
    # Chunks of a type byte and a little-endian length of three bytes; 0 compressed, 1 plain; 2-127 must be understood,
    # 128-254 may be skipped, 255 starts a stream.
    if _take(data, 0, 10) != _SNAPPY_STREAM:
        raise Wrong(f"the stream identifier {_SNAPPY_STREAM.hex()}", data[:10].hex(), offset=0)
    at = 0
    while at < len(data):
        kind, size = data[at], _integer(data, at + 1, 3)
        chunk = _take(data, at + 4, size)
        if kind <= 1:
            output.add(_snappy_chunk(kind, chunk, at + 4))
        elif kind < 0x80:
            raise Wrong("a chunk that this version of the format knows", f"type {kind}", offset=at)
        elif kind == 0xFF and data[at : at + 4 + size] != _SNAPPY_STREAM:
            raise Wrong(f"the stream identifier {_SNAPPY_STREAM.hex()}", data[at : at + 10].hex(), offset=at)
        at += 4 + size


def _snappy_chunk(kind: int, chunk: memoryview, start: int) -> bytes:
    """The plain bytes of a chunk: behind their masked CRC-32C, compressed or not."""
    import crc32c

    if len(chunk) < 4:
        raise Wrong("a chunk of 4 bytes or more", len(chunk), offset=start)
    part = Output(len(chunk), Decompression(_SNAPPY_CHUNK), None)
    try:
        if kind == 0:
            _snappy_block(chunk[4:], start + 4, part)
        else:
            part.add(bytes(chunk[4:]))
    except Limit as error:
        raise Wrong(f"a chunk of at most {_SNAPPY_CHUNK} bytes", f"one of {error.actual}", offset=start) from None
    plain = part.result()
    crc = crc32c.crc32c(plain)
    masked = ((crc >> 15 | crc << 17) + 0xA282_EAD8) & 0xFFFF_FFFF
    stored = _integer(chunk, 0, 4)
    if stored != masked:
        raise Wrong(f"the masked CRC-32C {masked:08x}", f"{stored:08x}", offset=start)
    return plain


def _snappy_framed_compress(data: Buffer) -> bytes:
    import cramjam

    return bytes(cramjam.snappy.compress(data)) or _SNAPPY_STREAM


# LZ4: lz4_Block_format.md and lz4_Frame_format.md of lz4/lz4.

LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_BLOCK_MOST = 0x7E00_0000
LZ4_BEST = 255
"""The best that an LZ4 block can do: a byte that lengthens a match by 255."""


def _lz4_frame(data: memoryview, start: int, output: Output) -> int:
    """One frame, maybe a skippable one. Returns where it ends."""
    import lz4.frame

    if data[start : start + 4] == LZ4_MAGIC and _integer(data, start + 4, 1) & 8:
        output.announce(_integer(data, start + 6, 8), most=LZ4_BEST * (len(data) - start))
    try:
        end = _drain(lz4.frame.LZ4FrameDecompressor(), data, start, output)
    except RuntimeError as error:
        raise Wrong("a valid LZ4 frame", str(error), offset=start) from None
    if end is None:
        raise Wrong("a complete LZ4 frame", f"its end is missing after {len(data) - start} bytes", offset=start)
    return end


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
    if _take(data, 0, 4) != LZ4_MAGIC:
        raise Wrong(f"the magic {LZ4_MAGIC.hex()} of an LZ4 frame", data[:4].hex(), offset=0)
    _end(data, _lz4_frame(data, 0, output), "the LZ4 frame")


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
    """The byte behind the descriptor of an LZ4 frame."""
    import xxhash

    return xxhash.xxh32_intdigest(bytes(descriptor)) >> 8 & 0xFF


def _lz4_block_decompress(data: memoryview, output: Output) -> None:
    import lz4.block

    size = output.expected
    if size is None:
        raise Misuse("an LZ4 block does not say how much it holds; pass size=")
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


# zstd: RFC 8878.

_ZSTD_MAGIC = 0xFD2F_B528
_ZSTD_SKIPPABLE = 0x184D_2A50
_ZSTD_BLOCK = 128 * KIB
_ZSTD_WINDOW = 8 * MIB
"""The window that RFC 8878 asks every decoder to support. Frames that say their size need none of their own."""


def _zstd_decompress(data: memoryview, output: Output) -> None:
    import zstandard

    engine = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    at = 0
    while True:
        magic = _integer(data, at, 4)
        if magic == _ZSTD_MAGIC:
            at = _zstd_frame(engine, data, at, output)
        elif magic & ~0xF == _ZSTD_SKIPPABLE:
            size = _integer(data, at + 4, 4)
            at += 8 + len(_take(data, at + 8, size))
        else:
            raise Wrong("the magic 28b52ffd of a zstd frame", data[at : at + 4].hex(), offset=at)
        if at == len(data):
            return


def _zstd_frame(engine: zstandard.ZstdDecompressor, data: memoryview, start: int, output: Output) -> int:
    """One frame. Returns where it ends, which only its block headers tell; they also tell the most it can yield."""
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
        block = _integer(data, at, 3)
        last, kind, size = bool(block & 1), block >> 1 & 3, block >> 3
        if kind == 3:
            raise Wrong("a raw, run-length or compressed zstd block", "the reserved kind 3", offset=at)
        most += block_most if kind == 2 else min(size, block_most)
        at += 3 + len(_take(data, at + 3, 1 if kind == 1 else size))
    at += len(_take(data, at, 4 if parameters.has_checksum else 0))

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


def _none_decompress(data: memoryview, output: Output) -> None:
    output.add(bytes(data))


def _none_compress(data: Buffer) -> bytes:
    return bytes(data)


_CODECS: dict[str, Codec] = {
    entry.name: entry
    for entry in (
        Codec("none", _none_decompress, _none_compress, "the bytes as they are"),
        Codec("gzip", _gzip_decompress, _gzip_compress, "RFC 1952, any number of members"),
        Codec(
            "zlib",
            _zlib_decompress,
            _zlib_compress,
            "RFC 1950; also without a final block, as Java writes it with SYNC_FLUSH",
        ),
        Codec("zip", _zip_decompress, _zip_compress, "a zip archive of one entry, which is written under the name 0"),
        Codec("snappy", _snappy_decompress, _snappy_compress, "one raw snappy block"),
        Codec("xerial", _xerial_decompress, _xerial_compress, "the stream of snappy-java, written in blocks of 32 KiB"),
        Codec(
            "kafka-snappy",
            _kafka_snappy_decompress,
            _xerial_compress,
            "read: xerial if it has the magic, else a raw block; written: xerial",
        ),
        Codec("snappy-framed", _snappy_framed_decompress, _snappy_framed_compress, "snappy's own framing format"),
        Codec("lz4-frame", _lz4_frame_decompress, _lz4_frame_compress, "LZ4 frames"),
        Codec(
            "kafka-lz4", _kafka_lz4_decompress, _kafka_lz4_compress, "one LZ4 frame, as in Kafka messages of magic 1"
        ),
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
        Codec("zstd", _zstd_decompress, _zstd_compress, "RFC 8878, any number of frames"),
    )
}
