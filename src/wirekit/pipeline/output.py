"""The directory of tables: who may write it, and how a finished run becomes visible.

A run works in ``OUTPUT/.wirekit`` and holds a lock there. When all of it is complete, the tables of an earlier run move
out, the new ones move in, ``manifest.json`` last; then ``.wirekit`` goes away. A directory without ``manifest.json`` is
not done. A directory that no run made is refused before anything is read; what else is in one that a run made stays.

Nothing outside the directory is ever changed: a symbolic link at a name that a run writes to is refused. What an
earlier run left in ``.wirekit`` is removed only if the lock file there carries the mark of a run.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

import pyarrow.parquet as pq

from wirekit.errors import Misuse
from wirekit.pipeline.sink import Manifest, WrittenFile, empty_table
from wirekit.tables.columns import OUTPUTS

FORMAT = "wirekit tables"
VERSION = 1
MANIFEST = "manifest.json"
WORK = ".wirekit"
LOCK = "lock"
MARK = b"wirekit tables\n"
"""What the lock file says from the moment when a run puts anything beside it."""
_PART = re.compile(r"part-\d{5,}\.parquet")


class Output:
    """The output directory of one run, claimed for as long as the block lasts.

    Args:
        path: of the directory; made if it does not exist.

    Raises:
        Misuse: for a URL; on entering, when the directory holds something that is not wirekit's, or another run
            writes to it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if "://" in os.fspath(path):
            raise Misuse(f"{os.fspath(path)} is a URL; pass a directory, and on a cluster one that all workers see")
        self.path = Path(path).absolute()
        self._work = self.path / WORK
        self._lock: IO[bytes] | None = None
        self._made = False

    @property
    def attempts(self) -> Path:
        """Where each attempt of a task makes its directory."""
        return self._work / "attempts"

    def __enter__(self) -> Output:
        _refuse_foreign(self.path)
        self._made = not self.path.exists()
        self.path.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            self._work.mkdir()
        self._lock = _locked(self._work / LOCK, self.path)
        self._remove_leftovers()
        self.attempts.mkdir()
        return self

    def __exit__(self, *_: object) -> None:
        self._remove_leftovers()
        with contextlib.suppress(OSError):
            (self._work / LOCK).unlink()
            self._work.rmdir()
        if self._lock is not None:
            self._lock.close()
        if self._made:
            with contextlib.suppress(OSError):
                self.path.rmdir()  # only when nothing was committed is it empty

    def commit(self, manifests: Iterable[Manifest], about: Mapping[str, Any]) -> dict[str, Any]:
        """Makes the files of these attempts, and no others, the tables.

        Args:
            manifests: one of each task, in any order.
            about: what the manifest says besides (inputs, configuration, summary).

        Returns:
            What ``manifest.json`` says.

        Raises:
            Misuse: two attempts of one task.
        """
        tables = self._collect(sorted(manifests, key=lambda manifest: manifest.task))
        said = {"format": FORMAT, "version": VERSION, **about, "tables": tables}
        written = self._work / MANIFEST
        with open(written, "w", encoding="utf-8") as file:
            json.dump(said, file, indent=1)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        self._swap()
        written.rename(self.path / MANIFEST)
        return said

    def _remove_leftovers(self) -> None:
        """Removes what a run, this one or an earlier one, has in ``.wirekit`` besides the lock."""
        for name in os.listdir(self._work):
            path = self._work / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            elif name != LOCK:
                path.unlink()

    def _collect(self, manifests: list[Manifest]) -> dict[str, Any]:
        """Moves the files of the attempts to ``.wirekit/new``, in the order of their tasks."""
        tasks = [manifest.task for manifest in manifests]
        if len(set(tasks)) < len(tasks):
            raise Misuse("two attempts of one task; pass the manifest of the one that counts")
        files: dict[str, list[tuple[str, WrittenFile]]] = {name: [] for name in OUTPUTS}
        for manifest in manifests:
            for file in manifest.files:
                files[file.table].append((manifest.attempt, file))
        tables: dict[str, Any] = {}
        for table, parts in files.items():
            folder = self._work / "new" / table
            folder.mkdir(parents=True)
            rows = []
            for number, (attempt, file) in enumerate(parts):
                name = f"part-{number:05}.parquet"
                (self.attempts / attempt / file.name).rename(folder / name)
                rows.append({"file": f"{table}/{name}", "rows": file.rows, "bytes": file.bytes})
            if not rows:
                path = folder / "part-00000.parquet"
                pq.write_table(empty_table(table), path, compression="zstd")
                rows.append({"file": f"{table}/{path.name}", "rows": 0, "bytes": path.stat().st_size})
            tables[table] = {"rows": sum(row["rows"] for row in rows), "files": rows}
        return tables

    def _swap(self) -> None:
        """The tables of an earlier run out, its manifest first; the new ones in."""
        new, old = self._work / "new", self._work / "old"
        old.mkdir()
        moves = [(self.path / name, old / name) for name in (MANIFEST, *OUTPUTS) if (self.path / name).exists()]
        moves += [(new / name, self.path / name) for name in OUTPUTS]
        done: list[tuple[Path, Path]] = []
        try:
            for source, target in moves:
                source.rename(target)
                done.append((source, target))
        except OSError:
            for source, target in reversed(done):
                target.rename(source)
            raise


def is_lake(path: str | os.PathLike[str]) -> bool:
    """Whether a directory has the tables of a run that is complete."""
    return _is_manifest(Path(path) / MANIFEST)


def _refuse_foreign(path: Path) -> None:
    """The directory must be empty or a run's, and what a new run would replace must be what a run writes."""
    if not path.exists():
        return
    if not path.is_dir():
        raise Misuse(f"{path} is not a directory; pass one that is empty or does not exist")
    names = sorted(os.listdir(path))
    written = [name for name in names if name in (WORK, MANIFEST, *OUTPUTS)]
    foreign = [name for name in written if (path / name).is_symlink() or (path / name).is_dir() == (name == MANIFEST)]
    if not foreign and WORK in names:
        foreign = [f"{WORK}/{name}" for name in _unmarked(path / WORK)]
    elif not foreign and not _is_manifest(path / MANIFEST):
        foreign = names
    if not foreign:
        for table in OUTPUTS.keys() & set(names):
            foreign += [f"{table}/{name}" for name in os.listdir(path / table) if not _PART.fullmatch(name)]
    if foreign:
        raise Misuse(f"{path} holds {foreign[0]}, which is not wirekit's; pass a directory that is empty or made by it")


def _unmarked(work: Path) -> list[str]:
    """What is in the work directory of runs, if no run has marked it as its own."""
    names = sorted(os.listdir(work))
    lock = work / LOCK
    if lock.is_symlink() or (LOCK in names and not lock.is_file()):
        return [LOCK]
    beside = [name for name in names if name != LOCK]
    if not beside or (LOCK in names and lock.read_bytes() == MARK):
        return []
    return beside


def _is_manifest(path: Path) -> bool:
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(said, dict) and said.get("format") == FORMAT


def _locked(path: Path, output: Path) -> IO[bytes] | None:
    """The lock file, locked and marked; None where the file system has no locks."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        file = open(handle, "r+b")  # noqa: SIM115  # held until the run ends
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise Misuse(f"another run writes to {output}; wait for it, or pass another directory") from None
            path.write_bytes(MARK)
            return None
        if path.exists() and os.fstat(file.fileno()).st_ino == path.stat().st_ino:
            file.write(MARK)
            file.flush()
            return file
        file.close()  # the run that held it has just removed it
