"""Access to the bytes of a capture: a file in any order; a pipe as far as bytes have arrived and were not discarded."""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from typing import IO, Protocol

from wirekit.capture.files.unpacking import Packing, Unpacking
from wirekit.errors import Misuse, WireError, Wrong

_CHUNK = 1 << 16  # bytes read at once from a pipe
_LARGE = 1 << 22  # bytes of memory that the system gives in huge pages: pages of 4 KiB take longer than reading
_HUGE = getattr(mmap, "MADV_HUGEPAGE", None)
_KEPT = 1 << 20  # bytes forgotten at once: this costs a call, and a pipe moves the bytes that it still holds


class Content(Protocol):
    """Bytes of a capture by their absolute offsets.

    Attributes:
        error: why only the beginning of the compressed data could be decompressed; None if all could.
    """

    error: WireError | None

    @property
    def size(self) -> int:
        """The number of bytes; while it is unknown, a number larger than any capture."""

    def read(self, offset: int, least: int, most: int) -> bytes:
        """The bytes at an offset: at most ``most``, and at least ``least`` unless the data ends."""

    def load(self, offset: int, size: int) -> memoryview:
        """Like ``read`` without ``least``; a large result has memory of its own."""

    def forget(self, offset: int) -> None:
        """Announces that the bytes before an offset are probably not read again, and may be discarded."""

    def keep(self) -> None:
        """Announces that all bytes will be read more than once."""

    def close(self) -> None:
        """Releases the bytes."""


class FileContent:
    """A regular file.

    It is not mapped into memory: the system kills a process that reads mapped bytes which another process truncated.
    """

    def __init__(self, file: IO[bytes], error: WireError | None = None) -> None:
        self.error = error
        self.size = os.fstat(file.fileno()).st_size
        self._file = file

    def read(self, offset: int, least: int, most: int) -> bytes:
        return os.pread(self._file.fileno(), min(most, max(self.size - offset, 0)), offset)

    def load(self, offset: int, size: int) -> memoryview:
        size = min(size, max(self.size - offset, 0))
        if size < _LARGE:
            return memoryview(self.read(offset, size, size))
        pages = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if _HUGE is not None:
            with suppress(OSError):  # a kernel without them
                pages.madvise(_HUGE)
        return memoryview(pages).toreadonly()[: os.preadv(self._file.fileno(), [pages], offset)]

    def forget(self, offset: int) -> None:
        """Does nothing: no bytes are held."""

    def keep(self) -> None:
        """Does nothing: the file can be read again."""

    def close(self) -> None:
        self._file.close()


class RangedContent:
    """An object of an object store, read by ranges; copied to a temporary file if it will be read twice."""

    def __init__(self, file: BufferedReader) -> None:
        self.error: WireError | None = None
        self.size = file.seek(0, os.SEEK_END)
        self._file = file
        self._copy: FileContent | None = None

    def read(self, offset: int, least: int, most: int) -> bytes:
        if self._copy is not None:
            return self._copy.read(offset, least, most)
        self._file.seek(offset)
        return self._file.read(most)

    def load(self, offset: int, size: int) -> memoryview:
        return memoryview(self.read(offset, size, size)) if self._copy is None else self._copy.load(offset, size)

    def forget(self, offset: int) -> None:
        """Does nothing: only a few ranges are held."""

    def keep(self) -> None:
        if self._copy is None:
            target = tempfile.TemporaryFile(prefix="wirekit_")  # noqa: SIM115  # closed with the content
            self._file.seek(0)
            with copying():
                shutil.copyfileobj(self._file, target, _KEPT)
                target.flush()
            self._copy = FileContent(target)

    def close(self) -> None:
        if self._copy is not None:
            self._copy.close()
        self._file.close()


class PipedContent:
    """Data that arrives through a pipe."""

    def __init__(
        self, source: BufferedReader, packing: Packing | None = None, waiting: Callable[[], object] | None = None
    ) -> None:
        self.error: WireError | None = None
        self.size = sys.maxsize
        self._source, self._packing = source, packing
        self._pieces = packing.chunks(source) if packing else iter(lambda: source.read1(_CHUNK), b"")
        self._waiting = waiting
        self._buffer = bytearray()
        self._offset = 0  # of the first byte held

    def read(self, offset: int, least: int, most: int) -> bytes:
        begin = offset - self._offset
        if begin < 0:
            raise Misuse(f"byte {offset} of the pipe has already been read; save the pipe to a file first")
        while len(self._buffer) < begin + least and self.size == sys.maxsize:
            self._more()
        return bytes(self._buffer[begin : begin + most])

    def load(self, offset: int, size: int) -> memoryview:
        return memoryview(self.read(offset, size, size))

    def _more(self) -> None:
        if self._waiting is not None:
            self._waiting()
        try:
            piece = next(self._pieces, b"")
        except Unpacking as error:
            piece = b""
            self.error = cut_short(self._packing, error, self._offset + len(self._buffer))
        self._buffer += piece
        if not piece:
            self.size = self._offset + len(self._buffer)

    def forget(self, offset: int) -> None:
        if offset - self._offset > _KEPT:
            del self._buffer[: offset - self._offset]
            self._offset = offset

    def keep(self) -> None:
        raise Misuse("a pipe can be read only once and in order; save it to a file first")

    def close(self) -> None:
        self._source.close()


def cut_short(packing: Packing | None, error: BaseException, size: int) -> WireError:
    """The error for compressed data that can be decompressed only up to ``size`` bytes."""
    name = packing.name if packing else ""
    return Wrong(f"a whole {name} file", f"one that decompresses only in part ({error})", protocol="net", offset=size)


@contextmanager
def copying() -> Iterator[None]:
    """Names the directory in the error of a temporary file that does not fit there."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise OSError(error.errno, f"{error.strerror} for a copy in {tempfile.gettempdir()}; see TMPDIR") from error
