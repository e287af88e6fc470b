"""gzip, zlib, zip: RFC 1952, RFC 1950 and PKWARE's APPNOTE, which all contain RFC 1951 (deflate)."""

from __future__ import annotations

import io
import zlib
from functools import partial

from wirekit.compression.output import Buffer, Codec, Output
from wirekit.compression.reading import at_end, drain, integer, take
from wirekit.errors import Wrong


class _Inflater:
    """``zlib.decompressobj`` with the interface ``Stream``.

    The library returns nothing of the input of a call in which it finds damage. If the bytes before damage are wanted,
    it gets this input in smaller and smaller slices.
    """

    def __init__(self, wbits: int, *, until_damage: bool) -> None:
        self._inner = zlib.decompressobj(wbits)
        self._until_damage = until_damage
        self._unread = b""
        self._slice: int | None = None

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail and not self._unread

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data + self._unread

    def decompress(self, data: Buffer, max_length: int) -> bytes:
        tail = self._inner.unconsumed_tail + self._unread
        unread = tail + data if tail else data
        if not self._until_damage:
            return self._inner.decompress(unread, max_length)
        while True:
            after = self._inner.copy()
            size = len(unread) if self._slice is None else min(self._slice, len(unread))
            try:
                piece = after.decompress(unread[:size], max_length)
            except zlib.error:
                if size <= 1:
                    raise
                self._slice = size // 2
                continue
            self._inner, self._unread = after, bytes(unread[size:])
            if piece or after.eof or not self._unread:
                return piece
            unread = after.unconsumed_tail + self._unread


def _inflate(wbits: int, data: memoryview, start: int, output: Output, name: str) -> int | None:
    try:
        return drain(_Inflater(wbits, until_damage=output.until_damage), data, start, output)
    except zlib.error as error:
        raise Wrong(f"valid {name}", str(error), offset=start) from None


def _gzip_decompress(data: memoryview, output: Output) -> None:
    start = 0
    while True:
        end = _inflate(31, data, start, output, "gzip data")
        if end is None:
            raise Wrong("a complete gzip member", f"one cut after {len(data) - start} bytes", offset=start)
        if end == len(data) or (not data[end] and not bytes(data[end:]).strip(b"\0")):
            return  # zeros after a member are padding, as for gzip(1); java.util.zip.GZIPInputStream stops there, too
        start = end


_SYNC_FLUSH = b"\x00\x00\xff\xff"
"""The empty stored block at the end of output of java.util.zip.Deflater.SYNC_FLUSH."""


def _zlib_decompress(data: memoryview, output: Output) -> None:
    if not data and output.expected == 0:
        return  # Java's Deflater writes no bytes for empty data
    take(data, 0, 2)
    end = _inflate(15, data, 0, output, "zlib data")
    if end is not None:
        at_end(data, end, "the zlib stream")
    elif output.expected is None:
        if data[-4:] != _SYNC_FLUSH:
            raise Wrong("a zlib stream with a final block or flushed at its end", f"neither after {len(data)} bytes")
    elif output.produced < output.expected:
        raise Wrong(f"{output.expected} bytes of decompressed data", f"the zlib stream ends after {output.produced}")


_ZIP_ENTRY, _ZIP_DESCRIPTOR = b"PK\x03\x04", b"PK\x07\x08"
_ZIP_DIRECTORY, _ZIP_END = b"PK\x01\x02", b"PK\x05\x06"


def _zip_decompress(data: memoryview, output: Output) -> None:
    # Local header, data, data descriptor, directory entry, end record, all there once; java.util.zip.ZipOutputStream
    # writes exactly that for one entry. Offsets are those of APPNOTE 4.3.7, 4.3.9, 4.3.12 and 4.3.16.
    _zip_signature(data, 0, _ZIP_ENTRY, "a zip entry")
    header = take(data, 0, 30)
    flags, method = integer(header, 6, 2), integer(header, 8, 2)
    if flags & 1:
        raise Wrong("an unencrypted zip entry", "an encrypted one", offset=6)
    described = bool(flags & 8)
    if method != 8 and (method != 0 or described):
        raise Wrong("a deflated or stored zip entry", f"compression method {method}", offset=8)
    start = 30 + integer(header, 26, 2) + integer(header, 28, 2)
    take(data, 30, start - 30)

    if described:
        body = data
    else:
        output.announce(integer(header, 22, 4))
        body = data[: start + len(take(data, start, integer(header, 18, 4)))]
    end: int | None
    if method == 8:
        end = _inflate(-15, body, start, output, "deflated data")
        if end is None:
            raise Wrong("complete deflated data", f"data cut after {len(body) - start} bytes", offset=start)
        if not described:
            at_end(body, end, "the deflated data")
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
    entry = take(data, end, 46)
    _zip_compare(data, end + 16, actual)
    variable = sum(integer(entry, at, 2) for at in (28, 30, 32))
    take(data, end + 46, variable)
    end += 46 + variable
    _zip_signature(data, end, _ZIP_END, "the end record after one zip entry")
    comment = integer(take(data, end, 22), 20, 2)
    take(data, end + 22, comment)
    at_end(data, end + 22 + comment, "the zip archive")


def _zip_signature(data: memoryview, at: int, signature: bytes, name: str) -> None:
    actual = take(data, at, 4)
    if actual != signature:
        raise Wrong(f"{name}, {signature.hex()}", actual.hex(), offset=at)


def _zip_compare(data: memoryview, at: int, actual: tuple[int, int, int]) -> None:
    stored = tuple(integer(data, at + shift, 4) for shift in (0, 4, 8))
    if stored != actual:
        raise Wrong(f"a zip entry of CRC-32, compressed and plain size {actual}", stored, offset=at)


def _zip_compress(data: Buffer) -> bytes:
    import zipfile

    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as target:
        # Without this date the entry would have the current time, and the output of two runs would differ.
        entry = zipfile.ZipInfo("0", (1980, 1, 1, 0, 0, 0))
        entry.compress_type = zipfile.ZIP_DEFLATED
        target.writestr(entry, bytes(data))
    return archive.getvalue()


CODECS = (
    Codec(
        "gzip", _gzip_decompress, partial(zlib.compress, wbits=31), "RFC 1952, any number of members, zeros after them"
    ),
    Codec(
        "zlib",
        _zlib_decompress,
        zlib.compress,
        "RFC 1950; also without a final block, as Java writes it with SYNC_FLUSH",
    ),
    Codec("zip", _zip_decompress, _zip_compress, "a zip archive of one entry, which is written under the name 0"),
)
