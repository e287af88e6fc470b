"""``spark.readStream.format("wirekit")``: captures and stored files as they are completed, each read once.

Options besides those of the batch source: ``maxFilesPerTrigger`` and ``maxBytesPerTrigger`` bound a micro-batch,
``settle`` is the time in seconds without change after which a file is complete, and ``ignoreMissing`` (``true``) skips
planned files that no longer exist.

Without ``state`` each file is a capture of its own. ``state`` is a folder, which all workers see, for the connections
that are open at the end of a micro-batch: then the files of a rotation are one capture, regardless of their
micro-batches. A capture ends ``closeAfter`` seconds after its last file was changed; its open connections and requests
get their rows then.

An offset lists the files of its micro-batch, so that a restarted query reads the same files again. It also lists the
captures that continue, and has eight bytes (about 11 characters of text) for each file that was read and still exists,
and digests of the options, so that a query with others is refused.
The stream identifies a file by its path: a file that changes later is not read again. A file that was deleted is new if
it appears again, but only after a micro-batch without it: a folder that is not mounted for a moment has no new files.
"""

from __future__ import annotations

import base64
import hashlib
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from operator import itemgetter
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

from wirekit.capture.rotation import OVERLAP_US, Span, Spans, rotations, span_of
from wirekit.errors import Misuse
from wirekit.pipeline.inputs import CAPTURE, Input, NothingToReadError, captures, grouped, renumbered
from wirekit.pipeline.watch import SETTLE_SECONDS, Settling
from wirekit.spark.source import (
    BUNDLE_BYTES,
    OF_STREAMS,
    OPTIONS,
    STREAM_OPTIONS,
    CapturePartition,
    CaptureReader,
    check_names,
    flag,
)
from wirekit.spark.stream_state import (
    File,
    Open,
    Part,
    State,
    StateFolder,
    open_from,
    open_text,
    parts_from,
    parts_text,
)
from wirekit.storage import local, status
from wirekit.tables.columns import PACKETS
from wirekit.values import byte_size, quoted, whole_number

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

DIGEST_BYTES = 8
CLOSE_SECONDS = 86_400.0
"""A rotation without a new file for this time has ended."""


@dataclass
class OpenPartition(InputPartition):
    """The input of one task, for captures with files in several micro-batches."""

    query: str
    batch: int
    parts: tuple[tuple[int, Part], ...]


@dataclass(slots=True)
class _Line:
    """The files of a capture that can be read now.

    Attributes:
        open: the capture, if earlier micro-batches have files of it.
        files: its next files, all complete.
        grows: whether a file after these is still being written.
        is_over: whether no further file can come.
    """

    open: Open | None
    files: list[Input]
    grows: bool = False
    is_over: bool = False


class CaptureStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a table of captures, micro-batch by micro-batch.

    Args:
        schema: the requested columns.
        options: options of the data source.

    Raises:
        Misuse: an option is invalid, or the table does not have a column.
    """

    def __init__(self, schema: StructType, options: Mapping[str, str]) -> None:
        check_names(options, (*OPTIONS, *STREAM_OPTIONS))
        batch = {name: value for name, value in options.items() if name.lower() not in OF_STREAMS}
        lowercase_options = {name.lower(): value for name, value in options.items()}
        self._place = local(lowercase_options.get("state", ""))
        if not self._place and not flag({"separate": "true", **batch}, "separate"):
            raise Misuse(
                "a stream joins the files of a rotation only with the option state, a folder for open connections"
            )
        if not self._place and "closeafter" in lowercase_options:
            raise Misuse("option closeAfter needs option state")
        if self._place and flag(batch, "separate"):
            raise Misuse("pass state or separate, not both")
        if self._place and lowercase_options.get("table", PACKETS.name) == PACKETS.name:
            raise Misuse("the table packets needs no state; choose another table")
        self._reader = CaptureReader(schema, {**batch, "separate": "true"})
        self._identity = self._reader.identity()
        self._configuration = self._reader.configuration() if self._place else ""
        self._close_ns = int(_seconds("closeAfter", lowercase_options.get("closeafter", str(CLOSE_SECONDS))) * 1e9)
        self._limit = _limit(options)
        self._settling = Settling(_seconds("settle", options.get("settle", str(SETTLE_SECONDS))))
        self._ignore_missing = flag(options, "ignoreMissing")
        self._present: tuple[Input, ...] = ()
        self._available: list[Input] | None = None
        self._spans: dict[Input, Span | None] = {}

    def initialOffset(self) -> dict[str, Any]:
        """The offset before the first micro-batch."""
        offset = {"batch": 0, "parts": "[]", "seen": ""}
        if self._place:
            offset |= {"query": uuid.uuid4().hex, "configuration": self._configuration, "open": "[]"}
        return offset

    def getDefaultReadLimit(self) -> ReadLimit:
        """The limit of a micro-batch that the options set."""
        return self._limit

    def prepareForTriggerAvailableNow(self) -> None:
        """Restricts the query to the files that are complete now."""
        self._available = self._complete()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The end of the next micro-batch, which reads complete new files, the oldest first."""
        self._check(start)
        complete = self._complete() if self._available is None else self._available
        processed = _digests_from(start["seen"])
        digests = {each.path: _digest(each.path) for each in complete}
        fresh = [each for each in complete if digests[each.path] not in processed]
        lines = self._lines(start, fresh, processed)
        chosen = _limited(_in_order(lines), limit)
        parts, still_open = self._planned(lines, chosen)
        if not parts:
            return start
        present = processed.intersection(_digest(each.path) for each in self._present)
        processed = present.union(digests[each.path] for each in chosen)
        end = {
            **start,
            "batch": start["batch"] + 1,
            "parts": parts_text(parts),
            "seen": _digests_text(processed),
            "options": self._identity,
        }
        if self._place:
            end["open"] = open_text(still_open)
        return end

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """One partition for each capture; small captures share one."""
        self._check(end)
        if end["batch"] == start["batch"]:
            return []
        if end["batch"] != start["batch"] + 1:
            raise Misuse(f"the offsets {start['batch']} and {end['batch']} do not bound one micro-batch")
        parts = parts_from(end["parts"])
        alone = [tuple(each.as_input() for each in part.files) for part in parts if part.is_alone]
        bundles = grouped(captures(renumbered(alone)), BUNDLE_BYTES)
        partitions: list[InputPartition] = list(map(CapturePartition, bundles))
        together: list[tuple[int, Part]] = []
        size = 0
        for number, part in enumerate(parts):
            if part.is_alone:
                continue
            if together and size + part.size > BUNDLE_BYTES:
                partitions.append(OpenPartition(end["query"], end["batch"], tuple(together)))
                together, size = [], 0
            together.append((number, part))
            size += part.size
        return [*partitions, *([OpenPartition(end["query"], end["batch"], tuple(together))] if together else [])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition's files.

        Raises:
            OSError: a file no longer exists, and ``ignoreMissing`` is not set.
        """
        if isinstance(partition, CapturePartition):
            files = self._existing(partition.captures)
            if files:
                yield from self._reader.read(replace(partition, captures=files))
        elif isinstance(partition, OpenPartition):
            folder = StateFolder(self._place, partition.query)
            for number, part in partition.parts:
                yield from self._read_part(folder, partition.batch, number, part)

    def commit(self, end: dict[str, Any]) -> None:
        """Removes states that no later micro-batch needs."""
        if self._place:
            states = [each.state for each in open_from(end["open"]) if each.state is not None]
            StateFolder(self._place, end["query"]).keep(end["batch"], states)

    def _read_part(self, folder: StateFolder, batch: int, number: int, part: Part) -> Iterator[pa.RecordBatch]:
        """The rows of a part; writes the state of its capture if the capture continues."""
        if part.since:
            # No task has read these files to their end, so their state is missing.
            before: list[State] = []
            files = self._existing(each.as_input() for each in part.since)
            if files:
                keep = lambda carried: before.append(folder.write(0, number, carried))  # noqa: E731
                deque(self._reader.read_part(files, replace(part, ends=False).continuation(), keep), maxlen=0)
            part = replace(part, state=before[0] if before else part.state, since=())
        files = self._existing(each.as_input() for each in part.files)
        if files or part.ends:
            yield from self._reader.read_part(files, part.continuation(), partial(folder.write, batch, number))

    def _existing(self, files: Iterable[Input]) -> tuple[Input, ...]:
        return tuple(each for each in files if self._is_there(each))

    def _is_there(self, file: Input) -> bool:
        try:
            status(file.path)
        except FileNotFoundError as error:
            if not self._ignore_missing:
                reason = f"{error.strerror}; the option ignoreMissing skips planned files that were deleted"
                raise FileNotFoundError(error.errno, reason, file.path) from None
            return False
        return True

    def _check(self, offset: Mapping[str, Any]) -> None:
        """Refuses the checkpoint of a query with other options: its files give no rows, or its state does not fit."""
        if offset["batch"] and offset.get("configuration", "") != self._configuration:
            raise Misuse(
                "the checkpoint belongs to a query with another state, table, columns, where, protocol or ports"
            )
        identity = offset.get("options", self._identity)
        changed = [name for name, digest in self._identity.items() if identity[name] != digest]
        if changed:
            raise Misuse(
                f"the checkpoint belongs to a query with another {', '.join(changed)}:"
                " give this query its own checkpointLocation"
            )

    def _complete(self) -> list[Input]:
        """The files that are complete now."""
        try:
            self._present = self._reader.of_table(self._reader.files(may_grow=True))
        except NothingToReadError:
            self._present = ()
        complete = self._settling.complete(self._present)
        return [each for each in self._present if each.path in complete]

    def _lines(self, start: Mapping[str, Any], fresh: list[Input], processed: set[bytes]) -> list[_Line]:
        """The captures that can be read now, and those that continue."""
        if not self._place:
            return [_Line(None, [each], is_over=True) for each in fresh]
        open_captures = self._open_captures(start)
        growing = [each for each in self._present if _digest(each.path) not in processed and each not in fresh]
        again = {each.path for each in fresh}
        going = {each.last.path: each for each in open_captures if each.last.path not in again}
        # If the name of a capture's last file is used for another file, the capture does not continue.
        lines = [_Line(each, [], is_over=True) for each in open_captures if each.last.path in again]
        lines += [_Line(None, [each], is_over=True) for each in fresh if each.kind != CAPTURE]
        input_by_path = {each.path: each for each in (*fresh, *growing) if each.kind == CAPTURE}
        waiting = {each.path for each in growing}
        spans = Spans({path: self._spans[each] for path, each in input_by_path.items() if each in self._spans})
        spans |= {path: span_of(path, to_end=False) for path in waiting if path in input_by_path}
        spans |= {
            path: (each.state.clock_us - OVERLAP_US, each.state.clock_us)
            for path, each in going.items()
            if each.state is not None and not each.since
        }
        groups = rotations([*going, *input_by_path], spans)
        self._spans = {
            each: spans[path] for path, each in input_by_path.items() if path in spans and path not in waiting
        }
        for paths in groups:
            line = _Line(None, [])
            lines.append(line)
            for path in paths:
                if path in going:
                    line.is_over = line.open is None  # the capture that continues began later
                    line = _Line(going[path], [])
                    lines.append(line)
                elif path in waiting:
                    line.grows = True
                    break
                else:
                    line.files.append(input_by_path[path])
        return lines

    def _open_captures(self, start: Mapping[str, Any]) -> list[Open]:
        """The captures that continue, with the states that the tasks of the latest micro-batch have written."""
        open_captures = open_from(start["open"])
        if all(each.number is None for each in open_captures):
            return open_captures
        written = StateFolder(self._place, start["query"]).written(start["batch"])
        return [
            each._replace(number=None, state=written[each.number], since=())
            if each.number in written
            else each._replace(number=None)
            for each in open_captures
        ]

    def _planned(self, lines: Iterable[_Line], chosen: Sequence[Input]) -> tuple[list[Part], list[Open]]:
        """The parts of a micro-batch that has these files, and the captures that continue after it."""
        parts: list[Part] = []
        still_open: list[Open] = []
        now = time.time_ns()
        place = {each: number for number, each in enumerate(chosen)}
        for line in sorted(lines, key=lambda line: place.get(line.files[0], len(place)) if line.files else len(place)):
            files = tuple(File(each.path, each.size, each.mtime_ns, each.kind) for each in line.files if each in place)
            if not files and line.open is None:
                continue
            before = line.open or Open(files[0].path, files[0], None, None, ())
            last = files[-1] if files else before.last
            is_over = line.is_over or now - last.mtime_ns >= self._close_ns
            ends = is_over and not line.grows and len(files) == len(line.files)
            number = None
            if files or ends:
                number = len(parts)
                parts.append(Part(before.capture, files, before.state, before.since, ends))
            if not ends:
                still_open.append(before._replace(last=last, number=number, since=(*before.since, *files)))
        return parts, still_open


def _in_order(lines: Iterable[_Line]) -> list[Input]:
    """The files of captures, the oldest first, but each after the earlier files of its capture."""
    ranked = [
        ((oldest, line.files[0].path, number), each)
        for line in lines
        for number, (each, oldest) in enumerate(
            zip(line.files, accumulate((each.mtime_ns for each in line.files), max), strict=True)
        )
    ]
    return [each for _, each in sorted(ranked, key=itemgetter(0))]


def _limited(files: list[Input], limit: ReadLimit) -> list[Input]:
    """The first files that a limit allows, at least one."""
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
    kinds = (("maxFilesPerTrigger", ReadMaxFiles, whole_number), ("maxBytesPerTrigger", ReadMaxBytes, byte_size))
    limits = [kind(_count(name, options[name], read)) for name, kind, read in kinds if name in options]
    if len(limits) > 1:
        raise Misuse("pass maxFilesPerTrigger or maxBytesPerTrigger, not both")
    return limits[0] if limits else ReadAllAvailable()


def _count(name: str, text: str, read: Callable[[str], int | None]) -> int:
    number = read(text)
    if not number:
        units = ", also with a unit such as 512k, 1m or 2g" if read is byte_size else ""
        raise Misuse(f"option {name} must be a number from 1{units}, not {quoted(text)}")
    return number


def _seconds(name: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 <= seconds < float("inf"):
        raise Misuse(f"option {name} must be a number of seconds, not {text!r}")
    return seconds


def _digest(path: str) -> bytes:
    return hashlib.blake2b(path.encode(errors="surrogatepass"), digest_size=DIGEST_BYTES).digest()


def _digests_text(digests: Iterable[bytes]) -> str:
    return base64.b64encode(b"".join(sorted(digests))).decode()


def _digests_from(text: str) -> set[bytes]:
    data = base64.b64decode(text)
    return {data[start : start + DIGEST_BYTES] for start in range(0, len(data), DIGEST_BYTES)}
