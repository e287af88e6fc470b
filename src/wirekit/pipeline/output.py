"""The folder of a lake: protects it against other writers, and makes bundles visible.

A lake has a folder of Parquet files for each table, ``commits/`` with a file for each bundle, ``state/`` with the state
of captures that continue, and ``manifest.json``, which sums up all commits. A run works in ``.wirekit`` there and holds
a lock. The files that a bundle's tasks have written there are moved to the tables, the commit last. The planned moves
are stored first (``.wirekit/moves.json``). If a run is killed while it moves files, the next run completes the moves.
If a run is killed earlier, the next run removes its files. So files without a commit are in the tables only while moves
are under way. For a lake with Delta tables, the transactions of their logs are planned as well, and executed before the
commit is moved.

A folder that no run wrote is refused before anything is read; foreign files in a lake stay. Nothing outside the
folder is ever changed: a symbolic link at a name that a run writes to is refused. Leftovers of an earlier run in
``.wirekit`` are removed only if the lock file there has the mark of a run.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from wirekit.errors import Misuse, refuse_unless_utf8
from wirekit.pipeline import delta
from wirekit.pipeline.carried import STATE, StateFile
from wirekit.pipeline.commits import (
    COMMIT,
    COMMITS,
    MANIFEST,
    MOVES,
    PART,
    VERSION,
    WORK,
    commit_path,
    json_of,
    merged,
    open_captures,
    read_commits,
)
from wirekit.pipeline.folders import Folder, folder
from wirekit.pipeline.sink import Manifest, WrittenFile
from wirekit.storage import is_remote, local
from wirekit.tables.columns import OUTPUTS

FORMAT = "wirekit tables"
LOCK = "lock"
MARK = b"wirekit tables\n"
"""The content of the lock file, from the moment when a run writes anything beside it."""
_ATTEMPTS, _OLD, _CHANGES = (f"{WORK}/{name}" for name in ("attempts", "old", "delta.json"))
_FOLDERS = (COMMITS, STATE, *OUTPUTS)
_LOCKS = re.compile(rf"{LOCK}(?:-[0-9a-f]{{32}})?")

Moves = list[tuple[str, str]]


class _UnfinishedError(OSError):
    """A transaction failed after others succeeded; nothing can be undone."""


class Output:
    """The output folder of one run, locked for as long as the block runs.

    Args:
        path: the path or URI of the folder; created if it does not exist.

    Attributes:
        commits: {number of a bundle: its commit} of the folder.
        is_delta: whether the tables are Delta tables; may be set before a commit that replaces everything.

    Raises:
        Misuse: on entering, if the folder contains files that wirekit did not write, another run writes to it, or its
            name is not UTF-8: the libraries that write and read Parquet refuse such paths.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.folder: Folder = folder(path)
        self.commits: dict[int, dict[str, Any]] = {}
        self.is_delta = False
        self._is_new = False
        self._has_logs = False
        self._has_committed = False

    @property
    def is_of_another_version(self) -> bool:
        """Whether the tables lack commits, as earlier versions wrote them."""
        return not (self.commits or self._is_new) and self.folder.kind(MANIFEST) == "file"

    @property
    def attempts(self) -> str:
        """The folder in which each attempt of a task creates its own folder: a path, or a URI."""
        return f"{self.folder.name}/{_ATTEMPTS}"

    def __enter__(self) -> Output:
        refuse_unless_utf8(f"the path {self.folder.name}", self.folder.name)
        kinds = self.folder.kinds()
        kind = "folder" if kinds else self.folder.kind("")
        self._has_logs = _refuse_foreign(self.folder, kind, kinds)
        self._is_new = not kind
        self.folder.make(WORK)
        self.folder.lock(f"{WORK}/{LOCK}", MARK)
        try:
            self._begin()
        except BaseException:
            self._leave()
            raise
        return self

    def _begin(self) -> None:
        leftovers = self._leftovers()
        if leftovers.get(MOVES) == "file":
            planned = json_of(self.folder.read(MOVES))
            if not isinstance(planned, list) or not all(isinstance(each, list) and len(each) == 2 for each in planned):
                raise Misuse(f"{self.folder.name}/{MOVES} is damaged; remove {WORK}")
            self._move([(str(source), str(target)) for source, target in planned], again=True)
        self._remove(leftovers)
        self.commits = read_commits(self.folder)
        # An earlier run may have converted all tables to Delta tables.
        self._has_logs |= not self._is_new and delta.has_log(self.folder, next(iter(OUTPUTS)))
        self.is_delta = self._has_logs
        self.folder.make(_ATTEMPTS)

    def __exit__(self, *_: object) -> None:
        self._leave()
        if self._is_new:
            self.folder.remove_empty()  # nothing was committed

    def _leave(self) -> None:
        unfinished = True
        with contextlib.suppress(OSError):
            leftovers = self._leftovers()
            unfinished = leftovers.get(MOVES) == "file"  # the next run needs the files that they name
            if not unfinished:
                self._remove(leftovers)
        self.folder.unlock(f"{WORK}/{LOCK}", keep=unfinished)

    def commit(
        self, manifests: Iterable[Manifest], facts: Mapping[str, Any], replaces: Iterable[int] = ()
    ) -> dict[str, Any]:
        """Publishes the files of these attempts, and no others, as a bundle.

        Args:
            manifests: one manifest per task, in any order.
            facts: further content of the commit: inputs, configuration, summary; ``continues``, the captures of which
                earlier bundles have files; ``open``, the captures whose open rows it has.
            replaces: the bundles whose rows are removed.

        Returns:
            The commit of the bundle.

        Raises:
            Misuse: there are two manifests of one task.
        """
        manifests, replaces = sorted(manifests, key=lambda manifest: manifest.task), sorted(replaces)
        tasks = [manifest.task for manifest in manifests]
        if len(set(tasks)) < len(tasks):
            raise Misuse("one task has two manifests; pass the one to commit")
        number = max(self.commits, default=-1) + 1
        remaining = [commit for other, commit in self.commits.items() if other not in replaces]
        tables, moves, added = self._tables(number, manifests, remaining)
        state, states = _states(number, manifests)
        content = {"format": FORMAT, "version": VERSION, "bundle": number, **facts, **state, "tables": tables}
        commits = {other: commit for other, commit in self.commits.items() if other not in replaces} | {number: content}
        commit = f"{_ATTEMPTS}/commit.json"
        self.folder.write(commit, _text(content))
        if self.is_delta:
            changes = [delta.Change(name, tuple(each), self._removed(name, replaces)) for name, each in added.items()]
            filled = {table for each in remaining for table in OUTPUTS if each["tables"][table]["files"]}
            delta.check_present(self.folder, changes, filled)
            self.folder.write(_CHANGES, json.dumps({"bundle": number, "changes": [*map(asdict, changes)]}).encode())
        removals = [*self._removals(replaces), *self._dead_states(commits)]
        moves = [*removals, *moves, *states, (commit, commit_path(number))]
        for name in (COMMITS, _OLD, *OUTPUTS, *([STATE] if states else [])):
            self.folder.make(name)
        self.folder.write(MOVES, json.dumps(moves).encode())
        self._move(moves)
        self.commits = commits
        self._has_committed = True
        self._has_logs = self.is_delta
        self._remove(self._leftovers())
        self.folder.make(_ATTEMPTS)
        return content

    def finish(self) -> dict[str, Any]:
        """Writes ``manifest.json``, which sums up all commits, if it is not current; returns its content."""
        manifest = merged(self.commits.values())
        is_current = (
            not self._has_committed
            and self.folder.kind(MANIFEST) == "file"
            and json_of(self.folder.read(MANIFEST)) == manifest
        )
        if not is_current:
            self.folder.write(MANIFEST, _text(manifest), f"{WORK}/{MANIFEST}")
        return manifest

    def _tables(
        self, number: int, manifests: list[Manifest], remaining: list[dict[str, Any]]
    ) -> tuple[dict[str, Any], Moves, dict[str, list[delta.Added]]]:
        """The commit's entries for the tables, and their files as moves and for logs, in the order of their tasks."""
        files: dict[str, list[tuple[str, WrittenFile]]] = {name: [] for name in OUTPUTS}
        for manifest in manifests:
            for file in manifest.files:
                files[file.table].append((f"{_ATTEMPTS}/{manifest.attempt}", file))
        lacking = [
            table
            for table, parts in files.items()
            if not (parts or any(commit["tables"][table]["files"] for commit in remaining))
        ]
        for empty in self.folder.each(self._write_empty, lacking):
            files[empty.table].append((_ATTEMPTS, empty))
        tables: dict[str, Any] = {}
        moves: Moves = []
        added: dict[str, list[delta.Added]] = {}
        for table, parts in files.items():
            rows = []
            added[table] = []
            for place, (attempt, file) in enumerate(parts):
                name = f"part-{number:05}-{place:05}.parquet"
                target = f"{table}/{name}"
                moves.append((f"{attempt}/{file.name}", target))
                added[table].append(delta.Added(name, file.bytes, file.statistics))
                rows.append({"file": target, "rows": file.rows, "bytes": file.bytes})
            tables[table] = {"rows": sum(row["rows"] for row in rows), "files": rows}
        return tables, moves, added

    def _write_empty(self, table: str) -> WrittenFile:
        """Writes a file without rows, so that readers find every table and its columns."""
        name = f"{table}.parquet"
        rows = OUTPUTS[table].schema.empty_table()
        size, _ = self.folder.write_table(f"{_ATTEMPTS}/{name}", rows, compression="zstd")
        return WrittenFile(table, name, 0, size)

    def _removed(self, table: str, replaces: list[int]) -> tuple[str, ...] | None:
        """The names of the files of a table that are removed with bundles; None for all of its files."""
        if len(replaces) == len(self.commits):
            return None if replaces else ()
        files = (file["file"] for each in replaces for file in self.commits[each]["tables"][table]["files"])
        return tuple(name.rpartition("/")[2] for name in files)

    def _removals(self, replaces: list[int]) -> Moves:
        """The moves of the files of bundles out of the tables; if all are removed, also those of earlier versions."""
        names = [commit_path(each) for each in replaces]
        if self._has_logs:
            pass  # earlier versions of the tables have them
        elif len(replaces) < len(self.commits):
            names += [
                file["file"]
                for each in replaces
                for table in self.commits[each]["tables"].values()
                for file in table["files"]
            ]
        elif not self._is_new or self._has_committed:
            present = zip(OUTPUTS, self.folder.each(self.folder.names, OUTPUTS), strict=True)
            names += [f"{table}/{name}" for table, files in present for name in files]
        return [(name, f"{_OLD}/{name.replace('/', '-')}") for name in names]

    def _dead_states(self, commits: Mapping[int, Mapping[str, Any]]) -> Moves:
        """The moves of state files of captures that no bundle will continue."""
        needed = {name for files in open_captures(commits).values() for name, *_ in files}
        present = [f"{STATE}/{name}" for name in self.folder.names(STATE)]
        return [(name, f"{_OLD}/{name.replace('/', '-')}") for name in present if name not in needed]

    def states(self) -> dict[str, tuple[StateFile, ...]]:
        """The state files of each capture that continues."""
        return {
            capture: tuple(each._replace(name=f"{self.folder.name}/{each.name}") for each in files)
            for capture, files in open_captures(self.commits).items()
        }

    def _move(self, moves: Moves, *, again: bool = False) -> None:
        """Executes planned moves; undoes them if they fail, except for transactions.

        Files of the tables are moved away before new ones take their names; the commit comes last.

        Args:
            moves: the moves.
            again: whether an earlier run has executed some of them.
        """
        for source, target in moves:
            _check_move(source, target)
        moved: Moves = []

        def execute(move: tuple[str, str]) -> None:
            source, target = move
            inside = source.startswith(f"{WORK}/")
            if (inside and not again) or self.folder.kind(source) == "file":
                (self.folder.publish if inside else self.folder.move)(source, target)
                moved.append(move)

        old, new, commits = list[tuple[str, str]](), list[tuple[str, str]](), list[tuple[str, str]]()
        for source, target in moves:
            phase = commits if target.startswith(f"{COMMITS}/") else new if source.startswith(f"{WORK}/") else old
            phase.append((source, target))
        try:
            self.folder.each(execute, old)
            self.folder.each(execute, new)
            if commits and (self.folder.kind(_CHANGES) == "file" if again else self.is_delta):
                self._transact()
            self.folder.each(execute, commits)
        except _UnfinishedError:
            raise
        except OSError:
            for source, target in reversed(moved):
                self.folder.move(target, source)
            self.folder.remove(MOVES)
            raise
        self.folder.remove(MOVES)

    def _transact(self) -> None:
        """Executes planned transactions; the next run executes those that fail."""
        planned = json_of(self.folder.read(_CHANGES))
        if not isinstance(planned, dict) or planned.keys() != {"bundle", "changes"}:
            raise Misuse(f"{self.folder.name}/{_CHANGES} is damaged; remove {WORK}")
        try:
            delta.transact(self.folder, planned["bundle"], map(delta.Change.from_json, planned["changes"]))
        except OSError as error:
            advice = f"{error.strerror}; run the pipeline again to finish"
            raise _UnfinishedError(error.errno, advice, error.filename) from error

    def _leftovers(self) -> dict[str, str]:
        """The files and folders of this or an earlier run in ``.wirekit``, except the lock, and their kinds."""
        kinds = self.folder.kinds(WORK)
        return {f"{WORK}/{name}": kind for name, kind in kinds.items() if not _LOCKS.fullmatch(name)}

    def _remove(self, paths: Iterable[str]) -> None:
        self.folder.each(self.folder.remove, paths)


def is_lake(path: str | os.PathLike[str]) -> bool:
    """Whether a folder has the tables of a run."""
    try:
        lake = folder(path)
        return _is_manifest(lake) or bool(read_commits(lake))
    except (OSError, ValueError):
        return False


def lake_of(path: str) -> str:
    """The folder with the tables of a run that a path names, by itself or a part (``lake/calls``); else ""."""
    name = path.rstrip("/") if is_remote(path) else os.path.realpath(local(path))
    above, _, base = name.rpartition("/")
    return next(filter(is_lake, (name, above) if base in (MANIFEST, *_FOLDERS) else (name,)), "")


def _states(number: int, manifests: list[Manifest]) -> tuple[dict[str, Any], Moves]:
    """The commit's entry for the state of captures (None without any), and the moves of its files."""
    written = [(manifest.attempt, manifest.state) for manifest in manifests if manifest.state is not None]
    if not written:
        return {}, []
    files, moves = [], []
    for place, (attempt, state) in enumerate(written):
        name = f"{STATE}/part-{number:05}-{place:05}.parquet"
        files.append({"file": name, "bytes": state.bytes, "sha256": state.sha256, "captures": [*state.captures]})
        moves.append((f"{_ATTEMPTS}/{attempt}/{state.name}", name))
    return {STATE: files}, moves


def _text(content: Mapping[str, Any]) -> bytes:
    """JSON that is held as text only: for many files, the parsed form has millions of objects."""
    text = io.BytesIO()
    for piece in json.JSONEncoder(indent=1).iterencode(content):
        text.write(piece.encode())
    text.write(b"\n")
    return text.getvalue()


def _check_move(source: str, target: str) -> None:
    """Checks that a planned move stays within the names of a lake, because the plan is untrusted."""
    for path in (source, target):
        above, _, base = path.rpartition("/")
        inside = path.startswith(f"{WORK}/") and ".." not in path.split("/")
        part = above in (STATE, *OUTPUTS) and PART.fullmatch(base)
        if not (inside or part or (above == COMMITS and COMMIT.fullmatch(base))):
            raise Misuse(f"{MOVES} names {path}, which wirekit did not write; remove {WORK}")


def _refuse_foreign(lake: Folder, kind: str, kinds: Mapping[str, str]) -> bool:
    """Refuses a folder that is neither empty nor written by a run, and foreign files that a run would replace.

    Args:
        lake: the folder.
        kind: the kind of folder to write.
        kinds: {name: kind} of its entries.

    Returns:
        Whether any of its tables is a Delta table.
    """
    if not kind:
        return False
    if kind != "folder":
        raise Misuse(f"{lake.name} is not a directory; pass one that is empty or does not exist")
    folders = [name for name in kinds if name in _FOLDERS]
    expected = {WORK: "folder", MANIFEST: "file", **dict.fromkeys(folders, "folder")}
    foreign = [name for name in kinds if kinds[name] != expected.get(name, kinds[name])]
    inside = {} if foreign else dict(zip(folders, lake.each(lake.kinds, folders), strict=True))
    if not foreign and WORK in kinds:
        foreign = [f"{WORK}/{name}" for name in _unmarked(lake)]
    elif not (foreign or _are_commits(lake, inside.get(COMMITS, ())) or (MANIFEST in kinds and _is_manifest(lake))):
        # A first bundle whose moves were undone leaves empty folders.
        foreign = [name for name in kinds if name not in folders or inside[name]]
    logged = {name for name, files in inside.items() if name in OUTPUTS and files.get(delta.LOG) == "folder"}
    if not foreign:
        for name, files in inside.items():
            if name not in logged:  # any writer of a Delta table may add files to its folder
                pattern = COMMIT if name == COMMITS else PART
                foreign += [f"{name}/{file}" for file in files if not pattern.fullmatch(file)]
    if foreign:
        raise Misuse(
            f"{lake.name} contains {foreign[0]}, which wirekit did not write; pass a directory that is empty or "
            "written by wirekit"
        )
    return bool(logged)


def _unmarked(lake: Folder) -> list[str]:
    """The files in the work folder, if no run has marked the folder as its own."""
    names = lake.names(WORK)
    locks = [name for name in names if _LOCKS.fullmatch(name)]
    wrong = [name for name in locks if lake.kind(f"{WORK}/{name}") != "file"]
    if wrong:
        return wrong
    beside = [name for name in names if name not in locks]
    if not beside or any(lake.read(f"{WORK}/{name}") == MARK for name in locks):
        return []
    return beside


def _is_manifest(lake: Folder) -> bool:
    return lake.kind(MANIFEST) == "file" and _is_ours(lake.read(MANIFEST))


def _are_commits(lake: Folder, names: Iterable[str]) -> bool:
    *_, last = ["", *names]
    return bool(last) and _is_ours(lake.read(f"{COMMITS}/{last}"))


def _is_ours(content: bytes) -> bool:
    commit = json_of(content)
    return isinstance(commit, dict) and commit.get("format") == FORMAT
