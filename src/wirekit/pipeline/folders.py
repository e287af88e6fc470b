"""The directories that tables are written to: local ones and prefixes of object stores, with the same operations.

Paths are relative to the folder, with ``/`` between names. Nothing follows a symbolic link.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from operator import attrgetter
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from wirekit.errors import Misuse
from wirekit.storage import REQUESTS, failures, is_remote, local, place_of

LEASE_SECONDS = 60
"""After this time without a sign of life another run may write to a prefix of an object store."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class Folder(Protocol):
    """A directory or a prefix.

    Attributes:
        name: its name in messages.
    """

    name: str

    def names(self, path: str = "") -> list[str]:
        """The names in a folder, in order; empty if the folder does not exist."""

    def kind(self, path: str) -> str:
        """``file``, ``folder``, ``other`` (a link, a device), or "" if nothing is there."""

    def kinds(self, path: str = "") -> dict[str, str]:
        """The names in a folder, in order, and the ``kind`` of each."""

    def sizes(self, path: str) -> dict[str, int]:
        """The names of the files in a folder, also of those that links lead to, and their sizes in bytes."""

    def each(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """The results of a function for each item; for an object store, several calls run at once."""

    def read(self, path: str) -> bytes:
        """The content of a file."""

    def write(self, path: str, content: bytes, new: str = "") -> None:
        """Creates a file or replaces its content, as a whole or not at all.

        Args:
            path: the path of the file.
            content: its content.
            new: the path of the file while it is written, visible to others; by default beside ``path``.
        """

    def write_table(self, path: str, table: pa.Table, **options: Any) -> tuple[int, pq.FileMetaData]:
        """Writes a Parquet file; returns its size in bytes and its metadata."""

    def create(self, path: str) -> AbstractContextManager[pa.NativeFile]:
        """A context manager for a file to write."""

    def open(self, path: str) -> AbstractContextManager[pa.NativeFile]:
        """A context manager for a file to read in any order; a local file is mapped into memory."""

    def make(self, path: str) -> None:
        """Creates a folder if it does not exist, where folders exist independently of files."""

    def move(self, source: str, target: str) -> None:
        """Moves a file."""

    def publish(self, source: str, target: str) -> None:
        """Like ``move``, but in an object store, which copies, the source stays until its folder is removed."""

    def remove(self, path: str) -> None:
        """Removes a file, or a folder with its content; does nothing if it does not exist."""

    def lock(self, path: str, mark: bytes) -> None:
        """Makes sure that no other run writes; the mark is the content of the lock file.

        Raises:
            Misuse: another run is writing.
        """

    def unlock(self, path: str, *, keep: bool = False) -> None:
        """Releases the lock, and removes the folder of the lock file if it is empty.

        Args:
            path: the path of the lock file.
            keep: whether to keep the file, with the mark of a run that left work for the next one.
        """

    def remove_empty(self) -> None:
        """Removes the folder itself if it is empty."""


def folder(name: str | os.PathLike[str]) -> Folder:
    """The folder at a path or a URI; it need not exist."""
    text = os.fspath(name)
    return RemoteFolder(text) if is_remote(text) else LocalFolder(local(text))


def _write_table(
    table: pa.Table, where: Path | pa.NativeFile, *, row_group_size: int | None = None, **options: Any
) -> pq.FileMetaData:
    """Writes a Parquet file.

    pyarrow's ``metadata_collector`` would return the metadata as well, but hides the reason of a failed write.
    """
    with pq.ParquetWriter(where, table.schema, **options) as writer:
        writer.write_table(table, row_group_size)
    return writer.writer.metadata


@contextlib.contextmanager
def _naming(place: Path) -> Iterator[None]:
    """Adds the name of the file to errors of writing, which lack it."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(place)) from error


def _kind(info: Any) -> str:
    """The kind of an object of a store, or of a prefix."""
    return "file" if info.is_file else "folder" if info.type.name == "Directory" else ""


def _local_kind(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "other"
    return "folder" if entry.is_dir() else "file" if entry.is_file() else "other"


class LocalFolder:
    """A directory of this machine, or one that several machines share."""

    def __init__(self, path: str) -> None:
        self.root = Path(path).absolute()
        self.name = str(self.root)
        self._lock: IO[bytes] | None = None

    def names(self, path: str = "") -> list[str]:
        try:
            return sorted(os.listdir(self.root / path))
        except FileNotFoundError:
            return []

    def kind(self, path: str) -> str:
        place = self.root / path
        if path and place.is_symlink():
            return "other"
        if place.is_dir():
            return "folder"
        return "file" if place.is_file() else "other" if place.exists() else ""

    def read(self, path: str) -> bytes:
        place = self.root / path
        if place.exists() and not place.is_file():
            raise Misuse(f"{place} is not a file")  # a pipe would never end
        return place.read_bytes()

    def kinds(self, path: str = "") -> dict[str, str]:
        try:
            with os.scandir(self.root / path) as entries:
                return {each.name: _local_kind(each) for each in sorted(entries, key=attrgetter("name"))}
        except (FileNotFoundError, NotADirectoryError):
            return {}

    def sizes(self, path: str) -> dict[str, int]:
        try:
            with os.scandir(self.root / path) as entries:
                return {each.name: each.stat().st_size for each in entries if each.is_file()}
        except (FileNotFoundError, NotADirectoryError):
            return {}

    def each(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        return list(map(function, items))

    def write(self, path: str, content: bytes, new: str = "") -> None:
        place = self.root / (new or f"{path}.new")
        with contextlib.suppress(FileNotFoundError):
            place.unlink()
        with _naming(self.root / path), open(place, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        place.rename(self.root / path)

    def write_table(self, path: str, table: pa.Table, **options: Any) -> tuple[int, pq.FileMetaData]:
        with _naming(self.root / path):
            metadata = _write_table(table, self.root / path, **options)
        return (self.root / path).stat().st_size, metadata

    @contextlib.contextmanager
    def create(self, path: str) -> Iterator[pa.NativeFile]:
        with _naming(self.root / path), pa.OSFile(os.fspath(self.root / path), "wb") as file:
            yield file

    def open(self, path: str) -> AbstractContextManager[pa.NativeFile]:
        return pa.memory_map(os.fspath(self.root / path))

    def make(self, path: str) -> None:
        (self.root / path).mkdir(parents=True, exist_ok=True)

    def move(self, source: str, target: str) -> None:
        (self.root / source).rename(self.root / target)

    def publish(self, source: str, target: str) -> None:
        self.move(source, target)

    def remove(self, path: str) -> None:
        place = self.root / path
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place, ignore_errors=True)
        else:
            place.unlink(missing_ok=True)

    def lock(self, path: str, mark: bytes) -> None:
        with _naming(self.root / path):
            self._lock = _locked(self.root / path, self.root, mark)

    def unlock(self, path: str, *, keep: bool = False) -> None:
        with contextlib.suppress(OSError):
            if not keep:
                (self.root / path).unlink()
                (self.root / path).parent.rmdir()
        if self._lock is not None:
            self._lock.close()

    def remove_empty(self) -> None:
        with contextlib.suppress(OSError):
            self.root.rmdir()


def _locked(path: Path, output: Path, mark: bytes) -> IO[bytes] | None:
    """The locked and marked lock file; None if the file system has no locks."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        file = open(handle, "r+b")  # noqa: SIM115  # held until the run ends
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise Misuse(f"another run writes to {output}; wait for it, or pass another directory") from None
            path.write_bytes(mark)
            return None
        if path.exists() and os.fstat(file.fileno()).st_ino == path.stat().st_ino:
            try:
                file.write(mark)
                file.flush()
            except OSError:  # the disk is full
                with contextlib.suppress(OSError):
                    file.close()
                path.unlink(missing_ok=True)
                raise
            return file
        file.close()  # the run that held it has just removed it


class RemoteFolder:
    """A prefix of an object store, which has no folders of its own and moves a file by copying it.

    Object stores have no locks: a run renews its lease periodically, and refuses to begin while another lease is
    younger than its limit, by the clock of the store.
    """

    def __init__(self, uri: str) -> None:
        self.name = uri.rstrip("/")
        place = place_of(self.name)
        self._system, self._root = place.system, place.path
        self._lease = uuid.uuid4().hex
        self._stopped = threading.Event()
        self._beat: threading.Thread | None = None

    def _uri(self, path: str) -> str:
        return f"{self.name}/{path}".rstrip("/")

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def _infos(self, path: str) -> list[Any]:
        from pyarrow import fs

        with failures(self._uri(path)):
            infos = self._system.get_file_info(fs.FileSelector(self._at(path), allow_not_found=True))
        return sorted(infos, key=lambda info: str(info.path))

    def names(self, path: str = "") -> list[str]:
        return [info.base_name for info in self._infos(path)]

    def kind(self, path: str) -> str:
        with failures(self._uri(path)):
            info = self._system.get_file_info(self._at(path))
        return _kind(info)

    def kinds(self, path: str = "") -> dict[str, str]:
        return {info.base_name: _kind(info) for info in self._infos(path)}

    def sizes(self, path: str) -> dict[str, int]:
        return {info.base_name: info.size for info in self._infos(path) if info.is_file}

    def each(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        with ThreadPoolExecutor(REQUESTS) as pool:
            return list(pool.map(function, items))

    def read(self, path: str) -> bytes:
        with failures(self._uri(path)), self._system.open_input_file(self._at(path)) as file:
            return bytes(file.readall())

    def write(self, path: str, content: bytes, new: str = "") -> None:
        with self.create(path) as stream:
            stream.write(content)

    def write_table(self, path: str, table: pa.Table, **options: Any) -> tuple[int, pq.FileMetaData]:
        with self.create(path) as stream:
            metadata = _write_table(table, stream, **options)
            return stream.tell(), metadata

    def create(self, path: str) -> AbstractContextManager[pa.NativeFile]:
        return self._created(path, self._uri(path))

    @contextlib.contextmanager
    def _created(self, path: str, uri: str) -> Iterator[pa.NativeFile]:
        """An object to write; a failure has the URI."""
        with failures(uri), self._system.open_output_stream(self._at(path), compression=None) as stream:
            yield stream

    @contextlib.contextmanager
    def open(self, path: str) -> Iterator[pa.NativeFile]:
        with failures(self._uri(path)), self._system.open_input_file(self._at(path)) as file:
            yield file

    def make(self, path: str) -> None:
        """Does nothing: the key of an object implies its folders."""

    def move(self, source: str, target: str) -> None:
        with failures(f"{self.name}/{target}"):
            self._system.copy_file(self._at(source), self._at(target))
            self._system.delete_file(self._at(source))

    def publish(self, source: str, target: str) -> None:
        with failures(self._uri(target)):
            self._system.copy_file(self._at(source), self._at(target))

    def remove(self, path: str) -> None:
        kind = self.kind(path)
        with failures(self._uri(path)):
            if kind == "folder":
                self._system.delete_dir(self._at(path))
            elif kind:
                self._system.delete_file(self._at(path))

    def lock(self, path: str, mark: bytes) -> None:
        above, _, base = path.rpartition("/")
        with self._created(f"{path}-{self._lease}", self.name) as stream:
            stream.write(mark)
        leases = {
            each.base_name: each.mtime_ns or 0 for each in self._infos(above) if each.base_name.startswith(f"{base}-")
        }
        own_lease = leases.pop(f"{base}-{self._lease}")
        fresh = [name for name, each in leases.items() if own_lease - each < LEASE_SECONDS * 1_000_000_000]
        if fresh:
            self.remove(f"{path}-{self._lease}")
            ago = f"or was killed less than {LEASE_SECONDS} seconds ago"
            raise Misuse(f"another run writes to {self.name}, {ago}; wait for it, or pass another directory")
        for name in leases:  # these are of runs that were killed
            self.remove(f"{above}/{name}")
        self._beat = threading.Thread(target=self._beating, args=(f"{path}-{self._lease}", mark), daemon=True)
        self._beat.start()

    def _beating(self, lease: str, mark: bytes) -> None:
        while not self._stopped.wait(LEASE_SECONDS / 6):
            with contextlib.suppress(OSError):  # the next one may succeed; writes of the run itself show the error
                self.write(lease, mark)

    def unlock(self, path: str, *, keep: bool = False) -> None:
        self._stopped.set()
        if self._beat is not None:
            self._beat.join()
        if keep:
            return
        above, _, base = path.rpartition("/")
        with contextlib.suppress(OSError), failures(self._uri(above)):
            if self.names(above) == [f"{base}-{self._lease}"]:
                self._system.delete_dir(self._at(above))  # with the marker of the folder
            else:
                self._system.delete_file(self._at(f"{path}-{self._lease}"))

    def remove_empty(self) -> None:
        """Does nothing: a prefix exists as long as objects have it."""
