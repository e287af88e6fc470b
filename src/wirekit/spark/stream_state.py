"""The state of captures between the micro-batches of a stream: the open connections of each capture.

A task reads the next files of a capture, and writes the connections that are open at their end into a file of the state
folder. The task of the next micro-batch begins with that file. Attempts of a task write separate files of the same
content. The name of a file contains everything that the driver needs, so that tasks return nothing.

The state can always be computed from the captures: if Spark does not read a micro-batch to its end, as with ``limit``,
the next micro-batch reads the files of its captures again.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from wirekit.pipeline.carried import Carried, Continuation, StateFile
from wirekit.pipeline.folders import folder
from wirekit.pipeline.inputs import CAPTURE, Input, stored_kind

_NAME = re.compile(r"(\d{8,})-(\d{5,})-(\d+)-(\d+)-([0-9a-f]{64})-[0-9a-f]{32}\.parquet")

REMEDY = "to read all captures again, start the query with a new checkpoint and a new output"


class File(NamedTuple):
    """A file of a stream in an offset; ``kind`` is "" in offsets of versions that derived it from the name."""

    path: str
    size: int
    mtime_ns: int
    kind: str = ""

    def as_input(self) -> Input:
        """The file as an input, without a number."""
        return Input(0, self.path, self.path, self.size, self.mtime_ns, self.kind or stored_kind(self.path))


class State(NamedTuple):
    """A file with the state of a capture: its path or URI, bytes, SHA-256, and the latest time of the capture."""

    name: str
    bytes: int
    sha256: str
    clock_us: int


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a capture in a micro-batch.

    Attributes:
        capture: the name of the capture, which is that of its first file.
        files: the next files; none if the micro-batch only ends the capture.
        state: the state after the files before these.
        since: files between ``state`` and ``files``, whose rows are in other micro-batches.
        ends: whether no more files will come.
    """

    capture: str
    files: tuple[File, ...]
    state: State | None = None
    since: tuple[File, ...] = ()
    ends: bool = True

    @property
    def size(self) -> int:
        """The number of bytes to read."""
        return sum(each.size for each in (*self.since, *self.files))

    @property
    def is_alone(self) -> bool:
        """Whether all of the capture is in this micro-batch."""
        return self.ends and self.state is None and not self.since

    @property
    def kind(self) -> str:
        """The kind of the files."""
        return stored_kind(self.files[0].path) if self.files else CAPTURE

    def continuation(self) -> Continuation:
        """The continuation of the capture, for reading the files."""
        files = () if self.state is None else (StateFile(*self.state[:3]),)
        return Continuation(self.capture, files, goes_on=not self.ends, remedy=REMEDY)


class Open(NamedTuple):
    """A capture that continues.

    Attributes:
        capture: its name.
        last: its last file so far.
        number: its part in the latest micro-batch; None if it had none.
        state: the state after the files before ``since``.
        since: the files after that state.
    """

    capture: str
    last: File
    number: int | None
    state: State | None
    since: tuple[File, ...]


class StateFolder:
    """The state folder of one query.

    Args:
        place: the folder of all queries, a path or URI that all workers see.
        query: the name of the query.
    """

    def __init__(self, place: str, query: str) -> None:
        self._folder = folder(f"{place.rstrip('/')}/{query}")

    def write(self, batch: int, number: int, carried: Carried) -> State:
        """Writes the state of a capture after a part of a micro-batch."""
        buffer = io.BytesIO()
        pq.write_table(pa.Table.from_batches([carried.batch()]), buffer, compression="zstd")
        content = buffer.getvalue()
        digest = hashlib.sha256(content).hexdigest()
        stem = f"{batch:08}-{number:05}-{carried.clock_us}-{len(content)}-{digest}"
        name = f"{stem}-{uuid.uuid4().hex}.parquet"
        self._folder.make("")
        self._folder.write(name, content)
        return State(f"{self._folder.name}/{name}", len(content), digest, carried.clock_us)

    def written(self, batch: int) -> dict[int, State]:
        """The states after the parts of a micro-batch, by part, for the parts whose tasks have written one."""
        states: dict[int, State] = {}
        for name in self._folder.names():
            match = _NAME.fullmatch(name)
            if match and int(match[1]) == batch:
                state = State(f"{self._folder.name}/{name}", int(match[4]), match[5], int(match[3]))
                states.setdefault(int(match[2]), state)
        return states

    def keep(self, batch: int, states: Iterable[State]) -> None:
        """Removes the files of micro-batches before this one, except some states."""
        needed = {each.name for each in states}
        for name in self._folder.names():
            number = name.partition("-")[0]
            if number.isdecimal() and int(number) < batch and f"{self._folder.name}/{name}" not in needed:
                self._folder.remove(name)


def parts_text(parts: Iterable[Part]) -> str:
    """Parts as text of an offset."""
    rows = [[each.capture, each.files, each.state, each.since, each.ends] for each in parts]
    return json.dumps(rows, separators=(",", ":"))


def parts_from(text: str) -> list[Part]:
    """The inverse of ``parts_text``."""
    return [
        Part(capture, _files(files), _state(state), _files(since), ends)
        for capture, files, state, since, ends in json.loads(text)
    ]


def open_text(captures: Iterable[Open]) -> str:
    """Captures that continue, as text of an offset."""
    return json.dumps([*captures], separators=(",", ":"))


def open_from(text: str) -> list[Open]:
    """The inverse of ``open_text``."""
    return [
        Open(capture, File(*last), number, _state(state), _files(since))
        for capture, last, number, state, since in json.loads(text)
    ]


def _files(rows: Any) -> tuple[File, ...]:
    return tuple(File(*row) for row in rows)


def _state(row: Any) -> State | None:
    return None if row is None else State(*row)
