"""Opens capture files: plain, compressed, or from a pipe; recognises their format."""

from __future__ import annotations

import io
import os
import stat
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from io import BufferedReader
from typing import IO, Any

from wirekit.capture.files.blocks import PcapngWalk
from wirekit.capture.files.content import Content, FileContent, PipedContent, RangedContent, cut_short
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
_HEAD = 64  # bytes; enough to recognise a format
_LONGEST_HEAD = 1024  # bytes; enough of a compressed capture for its first ones
_MANY = 16 * 1024  # bytes of records whose decoding takes longer than generating code for it


class Capture:
    """An open capture file; a context manager.

    Attributes:
        path: as it was given.
        format: ``pcap`` or ``pcapng``.
        first: the place of the first record.
        damage: what ended the last walk before the end of the file, with its absolute offset; None if nothing did.
        walked: absolute offset that the last walk came to: the end, or the record that is cut or damaged.
        skipped: packets that ``segments`` has passed over, by reason.
    """

    def __init__(self, path: str, content: Content, limits: Limits) -> None:
        """Use ``open_capture`` or ``piped_capture``.

        Args:
            path: what the file is called.
            content: its bytes; let go of with the capture.
            limits: what a record may announce.
        """
        self.path = path
        self.limits = limits
        self.damage: WireError | None = None
        self.walked = 0
        self.skipped: Counter[str] = Counter()
        self._content = content
        self.format, self.first = self._recognise()

    @property
    def size(self) -> int:
        """Bytes of the capture, decompressed; of a pipe that has not ended, more than any capture has."""
        return self._content.size

    @property
    def piped(self) -> bool:
        """Whether it is read as it comes, once and in order."""
        return isinstance(self._content, PipedContent)

    @property
    def incomplete(self) -> bool:
        """Whether it was compressed, and only its beginning could be decompressed."""
        return self._content.error is not None

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Capture {self.path}: {self.format}, {self.size} bytes>"

    def close(self) -> None:
        """Lets go of the file; packets taken from it stay valid."""
        self._content.close()

    def read(self, offset: int, size: int) -> bytes:
        """The bytes at an absolute offset, fewer where the file ends."""
        return self._content.read(offset, size, size)

    def load(self, offset: int, size: int) -> memoryview:
        """The same; many bytes are in memory of their own, as a view of it."""
        return self._content.load(offset, size)

    def available(self, offset: int, least: int, most: int) -> bytes:
        """Bytes at an absolute offset: at least so many unless the file ends, of a pipe no more than have come.

        What stands in front of them is forgotten.
        """
        self.forget(offset)
        return self._content.read(offset, least, most)

    def forget(self, offset: int) -> None:
        """Gives memory back: a pipe's bytes in front of an offset are lost, those of a file can be read again."""
        self._content.forget(offset)

    def reaches(self, offset: int) -> bool:
        """Whether the file goes on at an absolute offset."""
        return offset < self.size and bool(self._content.read(offset, 1, 1))

    def keep(self) -> None:
        """Prepares for all bytes of the file to be read more than once: not of a pipe."""
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
        raise unpacking or Wrong("a pcap or pcapng file", f"bytes that begin with {head[:4].hex(' ')}", offset=0)

    def items(self, start: int | Place = 0, end: int | None = None) -> Iterator[Packet | Damaged]:
        """The packets whose records begin in [start, end), and what was passed over, in the order of the file.

        Any byte offsets split a file into parts that together give each packet once.

        Args:
            start: a place; or an absolute offset, which is walked to from the beginning of the file, because what
                stands before it matters (interfaces, the number of packets).
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

    def window(self, offset: int, several: str, single: str) -> tuple[list[Any], WireError | None]:
        """The records from an offset on, at least one unless there is an error, and the error that ended them.

        Args:
            offset: absolute, of a record, before the end of the file.
            several: key of the layout that takes whole records and leaves a cut one alone.
            single: key of the layout of one record, to say what a cut one lacks.
        """
        least, most = 1, WINDOW
        while True:
            data = self.available(offset, least, most)
            engine = "rows" if len(data) > _MANY else None
            decoded = decode(data, several, offset=offset, limits=self.limits, engine=engine)
            if decoded.error is not None:
                # The last one is what is left of the damaged one.
                return (decoded.value or [])[:-1], of_record(decoded.error, single)
            if decoded.value:
                return decoded.value, None
            if not self.reaches(offset + len(data)):
                alone = decode(data, single, offset=offset, limits=self.limits)
                return ([], alone.error) if alone.error is not None else ([alone.value], None)
            if len(data) >= WINDOW:  # a long record: looked at again when there is twice as much of it
                least = most = 4 * len(data)
            else:
                least = len(data) + 1

    def ended(self, offset: int, error: WireError | None) -> None:
        """Notes where a walk ended and why; that the file itself is not all there comes first."""
        self.walked = offset
        if error is not None and not error.hint and not self.piped:
            # A header that is read as a packet is one without data, so that the error is in what follows it.
            places = (at for at in (offset, offset - LEAD) if at > 0 and is_capture(self.read(at, _HEAD)))
            error.hint = next((JOINED.format(at) for at in places), "")
        if isinstance(error, Short) and not error.hint:
            error.hint = CUT
        self.damage = self._content.error or error


def is_capture(data: bytes) -> bool:
    """Whether bytes begin as a pcap or pcapng file does, or one that is compressed.

    64 bytes are enough, 1024 of most compressed files, and of one by bzip2 its first block.
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


def check_capture(path: str | os.PathLike[str]) -> None:
    """Raises what ``open_capture`` raises for a file that is not a capture; one that is compressed is not copied."""
    with open_binary(path) as source:
        if is_capture(source.read(_LONGEST_HEAD)):
            return
    open_capture(path).close()


def open_capture(path: str | os.PathLike[str], *, limits: Limits | None = None, name: str = "") -> Capture:
    """Opens a pcap or pcapng file, compressed by gzip, zstd, xz, bzip2 or lz4, or not.

    What is compressed, and what is no regular file (a pipe), is copied to a temporary file first; offsets are those of
    the capture itself, decompressed. An object of an object store is read by ranges, and copied if it will
    be read twice (``Capture.keep``).

    Args:
        path: the file, or the URI of an object.
        limits: ``frame`` is the most that a record may announce, ``decompressed`` the most that a copy may grow to,
            both in bytes; by default those of the protocol ``net``.
        name: what errors call the file, if not by its path.

    Raises:
        Wrong: it is neither; the text names the file.
        Short: it ends within its header.
        Limit: a copy grows beyond its limit.
        OSError: it cannot be read.
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
            file, unpacking = _copied(source, packing, limits.decompressed)
        return Capture(name or os.fspath(path), FileContent(file, unpacking), limits)
    except BaseException:
        file.close()
        source.close()
        raise


def piped_capture(
    source: BufferedReader, name: str, *, limits: Limits | None = None, waiting: Callable[[], object] | None = None
) -> Capture:
    """A capture that is read as it comes: its items once and in order, without a copy of what was read.

    Args:
        source: a pipe, at the beginning of the capture, which may be compressed; closed with the capture.
        name: what errors call it.
        limits: ``frame`` is the most that a record may announce; by default those of the protocol ``net``.
        waiting: is called before each time that more bytes are waited for.

    Raises:
        Wrong, Short: as for ``open_capture``.
    """
    content = PipedContent(source, packing_of(source.peek(LONGEST_MAGIC)[:LONGEST_MAGIC]), waiting)
    try:
        return Capture(name, content, limits or registry.protocol("net").limits)
    except BaseException:
        source.close()
        raise


def _copied(source: IO[bytes], packing: Packing | None, limit: int) -> tuple[IO[bytes], WireError | None]:
    """A temporary file with the content, decompressed, and why that is not all there."""
    target = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the capture
    size = 0
    ended: WireError | None = None
    try:
        for chunk in packing.chunks(source) if packing else iter(lambda: source.read(CHUNK), b""):
            size += len(chunk)
            if size > limit:
                raise Limit("decompressed", limit, size, protocol="net", offset=size)
            target.write(chunk)
    except Unpacking as error:
        ended = cut_short(packing, error, size)
    except BaseException:
        target.close()
        raise
    source.close()
    target.flush()
    return target, ended
