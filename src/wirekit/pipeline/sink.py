"""Writes the output of one attempt of a task: Parquet files in a directory of its own, listed by a manifest row.

Readers of the tables do not see these files. ``output`` publishes the files of the attempts whose manifests it gets,
so a failed or killed attempt, or a second attempt of the same task, leaves nothing in the tables.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wirekit.pipeline.delta import statistics
from wirekit.pipeline.folders import folder
from wirekit.pipeline.summary import Summary
from wirekit.tables.columns import OUTPUTS
from wirekit.values import json_text

if TYPE_CHECKING:
    from wirekit.pipeline.carried import Carried

HELD_BYTES = 128 << 20
MERGED = 256
"""The number of batches of a table that are merged: a batch of few rows takes 50 KiB, much more than its ``nbytes``."""
ROW_GROUP = 100_000
DIFFERENT = frozenset({"frame_id", "call_id"})
"""Columns whose values are mostly different, such as times; they are written without a dictionary."""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A Parquet file of an attempt.

    Attributes:
        table: its table.
        name: its name in the attempt's directory.
        rows: number of rows.
        bytes: its size.
        statistics: the statistics of its columns, as ``delta.statistics`` returns them.
    """

    table: str
    name: str
    rows: int
    bytes: int
    statistics: str = "{}"


@dataclass(frozen=True, slots=True)
class WrittenState:
    """A file with the state of captures that later bundles continue.

    Attributes:
        name: its name in the attempt's directory.
        bytes: its size.
        sha256: the hash of its bytes.
        captures: the names of the captures.
    """

    name: str
    bytes: int
    sha256: str
    captures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of one attempt: its files and counts.

    Attributes:
        task: number of the task; decides the order of the files in the tables.
        attempt: name of the attempt's directory.
        files: the files in it, in the order in which they were written.
        summary: its counts.
        state: the state of captures that later bundles continue, if any.
    """

    task: int
    attempt: str
    files: tuple[WrittenFile, ...] = ()
    summary: Summary = field(default_factory=Summary)
    state: WrittenState | None = None

    def dumps(self) -> str:
        """One line of JSON, to be sent in a row."""
        files = [[file.table, file.name, file.rows, file.bytes, file.statistics] for file in self.files]
        obj = {"task": self.task, "attempt": self.attempt, "files": files, "summary": self.summary.to_json()}
        if self.state is not None:
            obj["state"] = asdict(self.state)
        return json_text(obj)

    @classmethod
    def loads(cls, text: str) -> Manifest:
        """The inverse of ``dumps``."""
        obj = json.loads(text)
        files = tuple(WrittenFile(*file) for file in obj["files"])
        stored = obj.get("state")
        state = None if stored is None else WrittenState(**{**stored, "captures": tuple(stored["captures"])})
        return cls(obj["task"], obj["attempt"], files, Summary.from_json(obj["summary"]), state)


class Sink:
    """Collects batches of the tables; sorts and writes them when there are enough rows.

    Rows are sorted by the table's ``sort`` within a file, not across files. Use it as a context manager:
    its directory is removed if the block raises.

    Args:
        attempts: the folder of all attempts, a path or a URI.
        task: number of the task.
        attempt: a unique name of the attempt.
        held_bytes: bytes of Arrow memory to hold before the largest table is written.
    """

    def __init__(self, attempts: str | os.PathLike[str], task: int, attempt: str, held_bytes: int = HELD_BYTES) -> None:
        self._folder = folder(attempts)
        self._task = task
        self._attempt = attempt
        self._held_bytes = held_bytes
        self._pending: dict[str, list[pa.RecordBatch]] = {}
        self._sizes: dict[str, int] = {}
        self._unmerged = Counter[str]()
        self._files: list[WrittenFile] = []
        self._carried: list[tuple[str, pa.RecordBatch]] = []

    def __enter__(self) -> Sink:
        self._folder.make(self._attempt)
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error is not None:
            with suppress(OSError):
                self._folder.remove(self._attempt)

    def write(self, table: str, batch: pa.RecordBatch) -> None:
        """Adds rows of a table."""
        batches = self._pending.setdefault(table, [])
        batches.append(batch)
        self._unmerged[table] += 1
        if self._unmerged[table] == MERGED:
            batches[-MERGED:] = pa.Table.from_batches(batches[-MERGED:]).combine_chunks().to_batches()
            self._unmerged[table] = 0
        self._sizes[table] = self._sizes.get(table, 0) + batch.nbytes
        while sum(self._sizes.values()) > self._held_bytes:
            largest = max(self._sizes, key=self._sizes.__getitem__)
            self._files.append(self._written(largest, len(self._files)))

    def carry(self, carried: Carried) -> None:
        """Adds the state of a capture."""
        self._carried.append((carried.name, carried.batch()))

    def finish(self, summary: Summary) -> Manifest:
        """Writes the remaining rows, and returns the manifest."""
        tables = [table for table in OUTPUTS if table in self._pending]
        numbers = range(len(self._files), len(self._files) + len(tables))
        self._files += self._folder.each(lambda pair: self._written(*pair), zip(tables, numbers, strict=True))
        return Manifest(self._task, self._attempt, tuple(self._files), summary, self._state())

    def _state(self) -> WrittenState | None:
        if not self._carried:
            return None
        buffer = io.BytesIO()
        pq.write_table(pa.Table.from_batches([batch for _, batch in self._carried]), buffer, compression="zstd")
        content, name = buffer.getvalue(), "state.parquet"
        self._folder.write(f"{self._attempt}/{name}", content)
        captures = tuple(capture for capture, _ in self._carried)
        return WrittenState(name, len(content), hashlib.sha256(content).hexdigest(), captures)

    def _written(self, table: str, number: int) -> WrittenFile:
        """Writes the rows of a table that are held as the file with a number."""
        del self._sizes[table], self._unmerged[table]
        rows = _in_order(pa.Table.from_batches(self._pending.pop(table)), OUTPUTS[table].sort)
        name = f"{table}-{number:05}.parquet"
        size, metadata = self._folder.write_table(
            f"{self._attempt}/{name}",
            rows,
            compression="zstd",
            row_group_size=ROW_GROUP,
            use_dictionary=[path for each in rows.schema for path in _repeated(each.name, each.type)],
            write_statistics=[each.name for each in rows.schema if not pa.types.is_binary(each.type)],
            sorting_columns=pq.SortingColumn.from_ordering(rows.schema, _ascending(OUTPUTS[table].sort)),
        )
        return WrittenFile(table, name, rows.num_rows, size, statistics(metadata))


def _ascending(keys: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(key, "ascending") for key in keys]


def _repeated(path: str, kind: pa.DataType) -> Iterator[str]:
    """The paths, in a Parquet file, of those parts of a column that are written with a dictionary."""
    if pa.types.is_list(kind):
        yield from _repeated(f"{path}.list.element", kind.value_type)
    elif pa.types.is_struct(kind):
        for each in kind:
            yield from _repeated(f"{path}.{each.name}", each.type)
    elif not pa.types.is_timestamp(kind) and path not in DIFFERENT:
        yield path


def _in_order(rows: pa.Table, keys: tuple[str, ...]) -> pa.Table:
    """Rows sorted by the keys, nulls last; equal rows keep their order.

    If the caller has no other reference to the rows, the memory of each column is released once it is sorted.
    """
    order = pc.sort_indices(rows, sort_keys=_ascending(keys))
    places = order.to_numpy()
    if (places[1:] > places[:-1]).all():
        return rows
    schema, columns = rows.schema, rows.columns[::-1]
    del rows
    return pa.Table.from_arrays([columns.pop().take(order) for _ in schema], schema=schema)
