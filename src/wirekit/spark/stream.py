"""``spark.readStream.format("wirekit")``: captures and stored files as they are completed, each read once.

Options besides those of the batch source: ``maxFilesPerTrigger`` and ``maxBytesPerTrigger`` bound a micro-batch,
``settle`` is the time in seconds without change after which a file is complete, and ``ignoreMissing`` (``true``) skips
planned files that no longer exist. Each file is a capture of its own, as parts of a rotation can be in different
micro-batches.

An offset has the files of its micro-batch, so that a restarted query reads the same ones again, and eight bytes for
each file that was read and still exists. A file is known by its path: one that changes later is not read again, unless
it was gone in between.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from wirekit.errors import Misuse
from wirekit.pipeline.inputs import Input, NothingToReadError, renumbered, stored_kind
from wirekit.pipeline.watch import SETTLE_SECONDS, Settling
from wirekit.spark.source import STREAM_OPTIONS, CapturePartition, CaptureReader, bundles, flag
from wirekit.storage import status

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

DIGEST_BYTES = 8


class CaptureStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a table of captures, micro-batch by micro-batch.

    Args:
        schema: the columns to give.
        options: of the data source.

    Raises:
        Misuse: for options that make no sense, or a column that the table does not have.
    """

    def __init__(self, schema: StructType, options: Mapping[str, str]) -> None:
        batch = {name: value for name, value in options.items() if name.lower() not in STREAM_OPTIONS}
        if not flag({"separate": "true", **batch}, "separate"):
            raise Misuse("a stream reads each file by itself; option separate cannot be false")
        self._reader = CaptureReader(schema, {**batch, "separate": "true"})
        self._limit = _limit(options)
        self._settling = Settling(_seconds(options.get("settle", str(SETTLE_SECONDS))))
        self._ignore_missing = flag(options, "ignoreMissing")
        self._present: tuple[Input, ...] = ()
        self._available: list[Input] | None = None

    def initialOffset(self) -> dict[str, Any]:
        """No file has been read."""
        return {"batch": 0, "files": "[]", "seen": ""}

    def getDefaultReadLimit(self) -> ReadLimit:
        """The limit of a micro-batch by the options."""
        return self._limit

    def prepareForTriggerAvailableNow(self) -> None:
        """The query reads what is complete now."""
        self._available = self._complete()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The end of the next micro-batch: files that are complete and new, the oldest first."""
        complete = self._complete() if self._available is None else self._available
        seen = _unpacked(start["seen"])
        digests = {each.path: _digest(each.path) for each in complete}
        fresh = sorted((each for each in complete if digests[each.path] not in seen), key=_age)
        files = _limited(fresh, limit)
        if not files:
            return start
        present = seen.intersection(_digest(each.path) for each in self._present)
        seen = present.union(digests[each.path] for each in files)
        said = json.dumps([[each.path, each.size, each.mtime_ns] for each in files])
        return {"batch": start["batch"] + 1, "files": said, "seen": _packed(seen)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """One partition a file; small ones share one."""
        if end["batch"] == start["batch"]:
            return []
        if end["batch"] != start["batch"] + 1:
            raise Misuse(f"no micro-batch is from offset {start['batch']} to {end['batch']}")
        files = [Input(0, path, path, size, mtime, stored_kind(path)) for path, size, mtime in json.loads(end["files"])]
        numbered = renumbered([(each,) for each in files])
        return [CapturePartition(part) for part in bundles([(each,) for each in numbered])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition's files.

        Raises:
            OSError: a file no longer exists, and ``ignoreMissing`` is not set.
        """
        if isinstance(partition, CapturePartition):
            files = tuple(each for each in partition.captures if self._is_there(each))
            if files:
                yield from self._reader.read(replace(partition, captures=files))

    def _is_there(self, file: Input) -> bool:
        try:
            status(file.path)
        except FileNotFoundError:
            if not self._ignore_missing:
                raise
            return False
        return True

    def _complete(self) -> list[Input]:
        """The files that are complete now."""
        try:
            self._present = self._reader.of_table(self._reader.found())
        except NothingToReadError:
            self._present = ()
        complete = self._settling.complete(self._present)
        return [each for each in self._present if each.path in complete]


def _age(file: Input) -> tuple[int, str]:
    return file.mtime_ns, file.path


def _limited(files: list[Input], limit: ReadLimit) -> list[Input]:
    """The first files that a limit allows, but one at least."""
    if isinstance(limit, ReadMaxFiles):
        return files[: limit.max_files]
    if not isinstance(limit, ReadMaxBytes):
        return files
    total = 0
    for number, each in enumerate(files):
        total += each.size
        if total > limit.max_bytes and number:
            return files[:number]
    return files


def _limit(options: Mapping[str, str]) -> ReadLimit:
    limits = [
        kind(_count(name, options[name]))
        for name, kind in (("maxFilesPerTrigger", ReadMaxFiles), ("maxBytesPerTrigger", ReadMaxBytes))
        if name in options
    ]
    if len(limits) > 1:
        raise Misuse("pass maxFilesPerTrigger or maxBytesPerTrigger, not both")
    return limits[0] if limits else ReadAllAvailable()


def _count(name: str, text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise Misuse(f"option {name} is a number from 1, not {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 <= seconds < float("inf"):
        raise Misuse(f"option settle is a number of seconds, not {text!r}")
    return seconds


def _digest(path: str) -> bytes:
    return hashlib.blake2b(path.encode(errors="surrogatepass"), digest_size=DIGEST_BYTES).digest()


def _packed(digests: Iterable[bytes]) -> str:
    return base64.b64encode(b"".join(sorted(digests))).decode()


def _unpacked(text: str) -> set[bytes]:
    data = base64.b64decode(text)
    return {data[start : start + DIGEST_BYTES] for start in range(0, len(data), DIGEST_BYTES)}
