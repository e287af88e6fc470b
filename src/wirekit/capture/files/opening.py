"""Opens capture files: plain, compressed, or from a pipe; recognises their format."""

from __future__ import annotations

import io
import os
import stat
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import BufferedReader
from typing import IO, Any

from wirekit.capture.files.blocks import PcapngWalk
from wirekit.capture.files.content import Content, FileContent, PipedContent, RangedContent, copying, cut_short
from wirekit.capture.files.items import Interface, Packet, Place
from wirekit.capture.files.unpacking import CHUNK, LONGEST_MAGIC, Packing, Unpacking, packing_of
from wirekit.capture.files.walking import LEAD, WINDOW, PcapWalk, Walk, of_record
from wirekit.decoding import decode
from wirekit.errors import Damaged, Limit, Short, WireError, Wrong
from wirekit.registry import registry
from wirekit.schemas.net import pcap
from wirekit.storage import is_remote, open_binary
from wirekit.wire import Limits

JOINED = "another capture begins at byte {}: `mergecap` joins captures, `cat` does not; or name each file"
CUT = "the file ends in the middle of this record"
_HEAD = 64  # bytes; enough to recognise a capture
_FOREIGN_HEAD = 512  # bytes; enough to recognise another format
_LONGEST_HEAD = 1024  # bytes; enough of a compressed capture for its first ones
_RATIO_FLOOR = 16 << 20  # bytes; the decompression ratio of less content is not limited
_MANY = 16 * 1024  # bytes of records whose decoding takes longer than generating code for it


class Capture:
    """An open capture file; a context manager.

    Attributes:
        path: the path that the caller gave.
        format: ``pcap`` or ``pcapng``.
        first: the place of the first record.
        damage: the error that ended the last walk before the end of the file, with its absolute offset; or None.
        walked: absolute offset where the last walk ended: the end of the file, or a truncated or damaged record.
        skipped: number of packets that ``segments`` skipped, by reason.
        limits: limits on the sizes that a record announces.
    """

    def __init__(
        self, path: str, content: Content, limits: Limits, stopped: Callable[[], bool] = lambda: False
    ) -> None:
        """Use ``open_capture`` or ``piped_capture``.

        Args:
            path: the name of the file.
            content: its bytes; closed with the capture.
            limits: limits on the sizes that a record announces.
            stopped: see ``piped_capture``.
        """
        self.path = path
        self.limits = limits
        self.damage: WireError | None = None
        self.walked = 0
        self.skipped: Counter[str] = Counter()
        self._content, self._stopped = content, stopped
        self.format, self.first = self._recognise()

    @property
    def size(self) -> int:
        """Size of the decompressed capture in bytes; of a pipe that has not ended, a number above any size."""
        return self._content.size

    @property
    def piped(self) -> bool:
        """Whether the capture is read from a pipe, once and in order."""
        return isinstance(self._content, PipedContent)

    @property
    def incomplete(self) -> bool:
        """Whether the capture was compressed, and only its beginning could be decompressed."""
        return self._content.error is not None

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Capture {self.path}: {self.format}, {self.size} bytes>"

    def close(self) -> None:
        """Closes the file; packets taken from it stay valid."""
        self._content.close()

    def read(self, offset: int, size: int) -> bytes:
        """The bytes at an absolute offset, fewer if the file ends."""
        return self._content.read(offset, size, size)

    def load(self, offset: int, size: int) -> memoryview:
        """Like ``read``; a large result is a view of memory of its own."""
        return self._content.load(offset, size)

    def available(self, offset: int, least: int, most: int) -> bytes:
        """Bytes at an absolute offset: at least this many unless the file ends; of a pipe, only arrived bytes.

        The bytes before them are discarded.
        """
        self.forget(offset)
        return self._content.read(offset, least, most)

    def forget(self, offset: int) -> None:
        """Frees memory: bytes of a pipe before an offset are lost; those of a file can be read again."""
        self._content.forget(offset)

    def reaches(self, offset: int) -> bool:
        """Whether the file has bytes at an absolute offset."""
        return offset < self.size and bool(self._content.read(offset, 1, 1))

    def keep(self) -> None:
        """Prepares for reading all bytes of the file more than once; a pipe cannot be prepared."""
        self._content.keep()

    def _recognise(self) -> tuple[str, Place]:
        head = self.read(0, _HEAD)
        header = decode(head, "net.pcap.header", limits=self.limits)
        if header.error is None:
            magic, fields = header.value.magic_number, header.value.header
            nanoseconds = magic in (pcap.BIG_NANOSECONDS, pcap.LITTLE_NANOSECONDS)
            interface = Interface(int(fields.link.type), fields.snap_length, exponent=9 if nanoseconds else 6)
            order = "be" if magic in (pcap.BIG_MICROSECONDS, pcap.BIG_NANOSECONDS) else "le"
            return "pcap", Place(header.consumed, order=order, interfaces=(interface,))
        section = decode(head, "net.pcapng.start", limits=self.limits)
        if section.error is None and section.value.byte_order is not None:
            return "pcapng", Place(0)
        unpacking = self._content.error
        if not head and unpacking is None:
            header.error.hint = "the file is empty"
        for error in (header.error, section.error):
            if isinstance(error, Short) or (error is not None and error.offset):
                raise unpacking or error  # it is cut, or only its first bytes are right
        if unpacking is not None:
            raise unpacking
        beginning = registry.beginning(self.read(0, _FOREIGN_HEAD))
        begins = f"bytes that begin with {head[:4].hex(' ')}" if beginning is None else beginning.title
        other = Wrong("a pcap or pcapng file", begins, offset=0)
        other.hint = "" if beginning is None else beginning.advice
        raise other

    def items(self, start: int | Place = 0, end: int | None = None) -> Iterator[Packet | Damaged]:
        """The packets whose records begin in [start, end), and the skipped parts, in the order of the file.

        The file can be split at any byte offsets: the parts together give each packet once.

        Args:
            start: a place, or an absolute offset. It is reached by a walk from the start of the file, because the
                records before it matter (interfaces, the number of packets).
            end: absolute offset; None for the end of the file.
        """
        place, begin = (start, start.offset) if isinstance(start, Place) else (self.first, start)
        walk = self._walk(place, self.size if end is None else end)
        for item in walk.items():
            if walk.offset >= begin:
                yield item

    def packets(self, start: int | Place = 0, end: int | None = None) -> Iterator[Packet]:
        """The packets among the items."""
        return (item for item in self.items(start, end) if isinstance(item, Packet))

    def places(self, every: int) -> Iterator[Place]:
        """Places to split the file: its first packet, and the first packet in each further ``every`` bytes."""
        due = 0
        walk = self._walk(self.first, self.size)
        for item in walk.items():
            if isinstance(item, Packet) and walk.offset >= due:
                yield walk.place
                due = walk.offset - walk.offset % every + every

    def _walk(self, place: Place, end: int) -> Walk:
        return (PcapWalk if self.format == "pcap" else PcapngWalk)(self, place, end)

    def window(self, offset: int, list_key: str, record_key: str) -> tuple[list[Any], WireError | None]:
        """The records from an offset on, at least one unless there is an error, and the error that ended them.

        Args:
            offset: absolute, of a record, before the end of the file.
            list_key: key of the layout that reads whole records and does not read an incomplete last one.
            record_key: key of the layout of one record, for the error of an incomplete one.
        """
        least, most = 1, WINDOW
        while True:
            data = self.available(offset, least, most)
            engine = "rows" if len(data) > _MANY else None
            decoded = decode(data, list_key, offset=offset, limits=self.limits, engine=engine)
            if decoded.error is not None:
                # The last value is the decoded part of the damaged record.
                return (decoded.value or [])[:-1], of_record(decoded.error, record_key)
            if decoded.value:
                return decoded.value, None
            if not self.reaches(offset + len(data)):
                alone = decode(data, record_key, offset=offset, limits=self.limits)
                return ([], alone.error) if alone.error is not None else ([alone.value], None)
            if len(data) >= WINDOW:  # a long record: decoded again with more of its bytes
                least = most = 4 * len(data)
            else:
                least = len(data) + 1

    def ended(self, offset: int, error: WireError | None) -> None:
        """Stores where a walk ended and why; an incomplete file is reported before any other error."""
        self.walked = offset
        unpacking = self._content.error
        if self._stopped():
            unpacking, error = None, None if isinstance(error, Short) else error
        if error is not None and not error.hint and not self.piped:
            # A file header reads as a record without data, so the error is in the bytes after it.
            places = (at for at in (offset, offset - LEAD) if at > 0 and is_capture(self.read(at, _HEAD)))
            error.hint = next((JOINED.format(at) for at in places), "")
        if isinstance(error, Short) and not error.hint:
            error.hint = CUT
        self.damage = unpacking or error


def is_capture(data: bytes) -> bool:
    """Whether bytes begin like a pcap or pcapng file, or like a compressed one.

    64 bytes are enough; of most compressed files 1024, and of bzip2 the first block.
    """
    packing = packing_of(data)
    if packing is not None:
        try:
            data = next(packing.chunks(io.BytesIO(data)), b"")
        except Unpacking:
            return False
    if decode(data[:_HEAD], "net.pcap.header").error is None:
        return True
    start = decode(data[:_HEAD], "net.pcapng.start")
    return start.error is None and start.value.byte_order is not None


def is_packed(path: str | os.PathLike[str]) -> bool:
    """Whether a file is compressed as a whole."""
    with open_binary(path) as source:
        return packing_of(source.peek(LONGEST_MAGIC)[:LONGEST_MAGIC]) is not None


def content_size(path: str | os.PathLike[str], most: int) -> int:
    """The bytes of a file, of a compressed one after decompression; counting ends at ``most`` or at damage.

    Raises:
        OSError: the file cannot be read.
    """
    with open_binary(path) as source:
        packing = packing_of(source.peek(LONGEST_MAGIC)[:LONGEST_MAGIC])
        if packing is None:
            return min(source.seek(0, os.SEEK_END), most)
        size = 0
        with suppress(Unpacking):
            for chunk in packing.chunks(source):
                size += len(chunk)
                if size >= most:
                    break
        return min(size, most)


def check_capture(path: str | os.PathLike[str]) -> None:
    """Raises the errors of ``open_capture`` for a file that is not a capture; a compressed one is not copied."""
    with open_binary(path) as source:
        if is_capture(source.read(_LONGEST_HEAD)):
            return
    open_capture(path).close()


def open_capture(path: str | os.PathLike[str], *, limits: Limits | None = None, name: str = "") -> Capture:
    """Opens a pcap or pcapng file, compressed by gzip, zstd, xz, bzip2 or lz4, or not.

    A compressed file, and one that is not regular (a pipe), is copied to a temporary file first; offsets are those of
    the capture itself, decompressed. An object of an object store is read by ranges, and copied if it will
    be read twice (``Capture.keep``).

    Args:
        path: the file, or the URI of an object.
        limits: ``frame`` bounds the size that a record may announce, ``decompressed`` the size of the temporary copy,
            both in bytes; ``ratio`` bounds the size of a copy of more than 16 MiB, per byte of a compressed file. By
            default those of the protocol ``net``.
        name: the name of the file in errors; by default its path.

    Raises:
        Wrong: the file is neither pcap nor pcapng; the text names it.
        Short: the file ends within its header.
        Limit: a copy grows beyond its limit.
        OSError: the file cannot be read.
    """
    limits = limits or registry.protocol("net").limits
    source = open_binary(path)  # closed with the capture
    file: IO[bytes] = source
    try:
        packing = packing_of(source.peek(LONGEST_MAGIC)[:LONGEST_MAGIC])
        unpacking = None
        if is_remote(path) and not packing:
            return Capture(name or os.fspath(path), RangedContent(source), limits)
        if packing or not stat.S_ISREG(os.fstat(source.fileno()).st_mode):
            with copying():
                file, unpacking = _copied(source, packing, limits)
        return Capture(name or os.fspath(path), FileContent(file, unpacking), limits)
    except BaseException:
        file.close()
        source.close()
        raise


def piped_capture(
    source: BufferedReader,
    name: str,
    *,
    limits: Limits | None = None,
    waiting: Callable[[], object] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Capture:
    """Opens a capture that is read from a pipe: its items once and in order, without a copy of the bytes.

    Args:
        source: a pipe, at the beginning of the capture, which may be compressed; closed with the capture.
        name: the name of the pipe in errors.
        limits: ``frame`` bounds the size that a record may announce; by default those of the protocol ``net``.
        waiting: called before each wait for more bytes.
        stopped: whether the pipe has ended because its reader wanted no more; then an incomplete last record is no
            damage.

    Raises:
        Wrong, Short: as for ``open_capture``.
    """
    content = PipedContent(source, packing_of(source.peek(LONGEST_MAGIC)[:LONGEST_MAGIC]), waiting)
    try:
        return Capture(name, content, limits or registry.protocol("net").limits, stopped)
    except BaseException:
        source.close()
        raise


def _copied(source: IO[bytes], packing: Packing | None, limits: Limits) -> tuple[IO[bytes], WireError | None]:
    """A temporary file with the decompressed content, and the error if the content is incomplete."""
    target = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the capture
    size = 0
    ended: WireError | None = None
    try:
        for chunk in packing.chunks(source) if packing else iter(lambda: source.read(CHUNK), b""):
            size += len(chunk)
            if size > limits.decompressed:
                raise Limit("decompressed", limits.decompressed, size, protocol="net", offset=size)
            if size > _RATIO_FLOOR and packing and source.seekable() and size > limits.ratio * source.tell():
                ratio = -(-size // source.tell())  # rounded up, as it exceeds the limit
                raise Limit("decompression_ratio", limits.ratio, ratio, protocol="net", offset=size)
            target.write(chunk)
    except Unpacking as error:
        ended = cut_short(packing, error, size)
    except BaseException:
        target.close()
        raise
    source.close()
    target.flush()
    return target, ended
