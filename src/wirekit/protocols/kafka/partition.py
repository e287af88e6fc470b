"""Checks a partition's directory: its indexes must fit the log.

The conditions, by file:

- ``.log``: checksums are good; offsets ascend and begin at or after the base offset in the file's name (compaction
  removes the first ones); after the last message come zeros or nothing, in compressed data nothing.
- ``.index``: both columns ascend; an entry's position is the start of a message in the log, and its offset is greater
  than that of the previous message and at most that of this one (leaders write the first offset of a batch, followers
  the last).
- ``.timeindex``: both columns ascend; an entry's timestamp is the latest among the messages up to its offset. Messages
  without a timestamp are ignored, because brokers then use the file's time. A message that is lost, or has a wrong
  checksum, may have had any timestamp: after it, an entry is wrong only if a good message is later than the entry.
- both indexes: a broker that truncates its log (a follower after a change of leaders) keeps the bytes of the dropped
  entries until it overwrites them or closes the index. So in an index with preallocated zeros, entries from the first
  that does not ascend on, and those beyond the log, are stale; they are counted and not compared. An entry beyond the
  log is damaged if all entries before and after it ascend and are in the log.
- consecutive segments: each begins where the previous one ends, unless the log was compacted.

Source: Kafka 0.10.2 ``LogSegment.scala``, ``OffsetIndex.scala``, ``TimeIndex.scala``.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedReader
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wirekit.compiler.columns import scan
from wirekit.decoding import decode
from wirekit.errors import Damaged, plural
from wirekit.protocols.kafka.columns import FIELDS, numbers, resolved, scanned, verified
from wirekit.protocols.kafka.damaged_sets import SET, Sets
from wirekit.protocols.kafka.reading import ENTRY_HEAD, NO_TIMESTAMP, SEGMENT, verdicts
from wirekit.protocols.kafka.searching import LARGEST_RELATIVE, base_offset
from wirekit.protocols.kafka.segment_file import ZEROS, SegmentFile, named_partition
from wirekit.stored import Problem, Report

INDEX = re.compile(r"(\d{20})\.(index|timeindex)")
KEYS = {"index": "kafka.offset_index", "timeindex": "kafka.time_index"}
EARLIEST = -(1 << 63)
LARGEST_WHOLE = 256 << 20
"""Bytes of an index or a checkpoint, which are read as a whole; a broker preallocates 10 MiB for an index."""


@dataclass(slots=True)
class Segment:
    """The state of the walk over one segment.

    Attributes:
        base: the offset in the file's name.
        messages: number of messages, including those in compressed sets.
        first, last: offsets of the first and last message; None without one.
        end: byte offset of the end of the last whole message; ``zeros`` is the number of zeros after it.
        latest: the latest timestamp so far; ``before``, the offset of the last message set so far.
        doubtful: whether a lost message, or one with a wrong checksum, may have had a later timestamp.
        compacted: whether offsets are missing; ``resumed``, whether the next ones may be missing because of damage.
        unread: whether the file could not be read, or not to its end.
        entries: {``index`` or ``timeindex``: number of entries of that file}, for the files that exist.
    """

    name: str
    base: int
    size: int
    messages: int = 0
    first: int | None = None
    last: int | None = None
    end: int = 0
    zeros: int = 0
    latest: int = EARLIEST
    doubtful: bool = False
    before: int = EARLIEST
    compacted: bool = False
    resumed: bool = False
    unread: bool = False
    entries: dict[str, int] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        """The facts for the report."""
        return {
            "file": self.name,
            "bytes": None if self.unread else self.size,
            "messages": None if self.unread else self.messages,
            "first_offset": self.first,
            "last_offset": None if self.unread else self.last,
            "zeros": None if self.unread else self.zeros,
            "index_entries": self.entries.get("index"),
            "timeindex_entries": self.entries.get("timeindex"),
        }


@dataclass(slots=True)
class _Index:
    """The entries of an index, in the order in which the walk reaches them.

    Attributes:
        keys: the positions or offsets at which the walk reaches the entries, sorted; ``order``, the entries' numbers.
        is_open: whether preallocated zeros follow the entries, as until the broker closes the index.
        after: the first and the last of the entries that are not compared, if these ascend: (offset, value).
        passed: the number of entries that the walk has passed; ``missed``, those of them that it did not reach.
    """

    name: str
    width: int
    offsets: NDArray[Any]
    values: NDArray[Any]
    keys: NDArray[Any]
    order: NDArray[Any]
    is_open: bool = False
    after: tuple[tuple[int, int], tuple[int, int]] | None = None
    passed: int = 0
    missed: list[NDArray[Any]] = field(default_factory=list)

    def take(self, end: int, begin: int = EARLIEST) -> NDArray[Any]:
        """The numbers of the next entries from ``begin`` to ``end``; those before ``begin`` are missed."""
        first = max(int(np.searchsorted(self.keys, begin)), self.passed)
        if first > self.passed:
            self.missed.append(self.order[self.passed : first])
        self.passed = max(int(np.searchsorted(self.keys, end, side="right")), first)
        return np.sort(self.order[first : self.passed])

    def unreached(self) -> list[int]:
        """The numbers of the entries that the walk did not reach."""
        unreached: list[int] = np.sort(np.concatenate([*self.missed, self.order[self.passed :]])).tolist()
        return unreached


def check_partition(folder: str | os.PathLike[str]) -> Report:
    """Checks the files of a partition's directory, and reports the contradictions between them.

    Args:
        folder: ``<topic>-<partition>``, or any directory with segments.
    """
    return _Partition(Path(folder)).report


def unreadable(path: Path, error: OSError) -> Problem:
    """The report on a file that its directory lists and that cannot be read: a dead link, a directory, or deleted."""
    return Problem(str(path), f"cannot be read: {error.strerror}")


@contextmanager
def open_regular(path: Path) -> Iterator[BufferedReader]:
    """A regular file, open for reading.

    Raises:
        OSError: for any other file as well: a pipe or a device may never end.
    """
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        yield file


def read_whole(path: Path) -> bytes:
    """The bytes of an index or a checkpoint.

    Raises:
        OSError: for a file that is not regular, or has more than ``LARGEST_WHOLE`` bytes, as a sparse one may.
    """
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > LARGEST_WHOLE:
            raise OSError(errno.EFBIG, f"more than {LARGEST_WHOLE >> 20} MiB", str(path))
        return file.read(LARGEST_WHOLE)


def _places(rows: Any) -> NDArray[Any]:
    """The offset of each message in the window; for messages in a wrapper, the offset of the wrapper."""
    return np.where(numbers(rows, "@depth") == 0, numbers(rows, "@offset"), numbers(rows, "@wrapper", 0))


def _good(rows: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """The places in the window, and the offsets, of messages with a good checksum; those in wrappers do not count."""
    good = (numbers(rows, "@depth") == 0) & numbers(rows, "message.crc.ok").astype(bool)
    return numbers(rows, "@offset")[good], numbers(rows, "offset")[good]


def _reached(rows: Any) -> NDArray[Any]:
    """Whether readers of messages reach each one: they leave a compressed set at its first undecodable message."""
    depths, parents, starts = numbers(rows, "@depth"), numbers(rows, "@parent", -1), numbers(rows, "@offset")
    ends, reached = starts + numbers(rows, "@length"), np.ones(rows.num_rows, bool)
    for depth in range(1, int(depths.max(initial=0)) + 1):
        here = np.flatnonzero(depths == depth)
        is_first = np.diff(parents[here], prepend=-1) != 0
        skips = starts[here] != np.where(is_first, 0, np.roll(ends[here], 1))
        before = np.cumsum(skips) - skips
        skipped = before + skips - np.maximum.accumulate(np.where(is_first, before, 0))
        reached[here] = reached[parents[here]] & (skipped == 0)
    return reached


def _outer(errors: Any) -> NDArray[Any]:
    """The offset of each erroneous message in the window; for messages in a wrapper, the offset of the wrapper."""
    return np.where(numbers(errors, "depth") == 0, numbers(errors, "offset"), numbers(errors, "wrapper", 0))


def _checksums(window: memoryview, rows: Any, *, resized: bool) -> NDArray[Any]:
    """For each row, whether its checksum is good over all bytes of its ``message_size``, as brokers verify it.

    Columns verify it over the fields, which is less if ``@gap`` counts bytes after them.

    Args:
        resized: whether the size of the last message is reported as wrong; then its fields decide.
    """
    good = numbers(rows, "message.crc.ok").astype(bool)
    places, parents = _places(rows), numbers(rows, "@parent", -1).tolist()
    larger = np.unique(places[numbers(rows, "@gap") > 0])
    for place in larger[larger < places[-1]] if resized else larger:
        first, last = np.searchsorted(places, place), np.searchsorted(places, place, side="right")
        size = ENTRY_HEAD + rows["message_size"][int(first)].as_py()
        decoded = decode(bytes(window[place : place + size]), SET)
        Sets(decoded, ordered=True).verify(decoded.value, "")
        status, paths, inside = verdicts(decoded.checks), dict[int, str](), Counter[int]()
        for row in range(int(first), int(last)):
            parent = parents[row]
            around = f"{paths[parent]}.value.content." if parent in paths else ""
            paths[row] = f"{around}messages[{inside[parent]}].message"
            inside[parent] += 1
            check = status.get(f"{paths[row]}.crc")
            good[row] = good[row] if check is None else check.status == "ok"
    return good


class _Partition:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.report = Report(str(folder))
        names = self._names()
        logs = [name for name in names if base_offset(name) is not None]
        topic, partition = named_partition(folder.absolute().name) or (None, None)
        self.report.facts = {"topic": topic, "partition": partition}
        timed = any(name.endswith(".timeindex") for name in names)
        self.stale = Counter[str]()
        self.segments = [self._segment(name, timed) for name in logs]
        self.report.facts["segments"] = [segment.facts() for segment in self.segments]
        indexes = [name for name in names if INDEX.fullmatch(name)]
        for name in indexes:
            if f"{name.partition('.')[0]}.log" not in logs:
                self._say(name, "the segment of this index does not exist")
        self.report.facts["other_files"] = [name for name in names if name not in logs and name not in indexes]
        self.report.facts["stale_entries"] = dict(self.stale)
        self._in_a_row()

    def _say(self, name: str, text: str, offset: int | None = None, entry: int | None = None) -> None:
        self.report.problems.append(Problem(str(self.folder / name), text, offset, entry))

    def _names(self) -> list[str]:
        try:
            return sorted(os.listdir(self.folder))
        except OSError as error:
            self.report.problems.append(unreadable(self.folder, error))
            return []

    def _segment(self, name: str, timed: bool) -> Segment:
        path = self.folder / name
        segment = Segment(name, int(name.partition(".")[0]), 0)
        indexes = {}
        for kind in ("index", *(["timeindex"] if timed else [])):
            index = self._index(segment, path.with_suffix(f".{kind}"), kind)
            if index is not None:
                indexes[kind] = index
        try:
            with open_regular(path) as file:
                segment.size = os.fstat(file.fileno()).st_size
                self._walk(segment, SegmentFile(str(path), file), indexes)
        except OSError as error:
            self.report.problems.append(unreadable(path, error))
            segment.unread = True
            return segment
        for index in indexes.values():
            for number in index.unreached():
                self._report_unreached(segment, index, number)
        return segment

    # The indexes alone

    def _index(self, segment: Segment, path: Path, kind: str) -> _Index | None:
        """Checks an existing index by itself."""
        if not path.exists():
            self._say(path.name, "the index does not exist")
            return None
        try:
            data = read_whole(path)
        except OSError as error:
            self.report.problems.append(unreadable(path, error))
            return None
        data = data if data.strip(b"\0") else b""  # preallocated, and never written to
        rows, _ = scan(KEYS[kind], data)
        consumed = int(rows.schema.metadata[b"wirekit.consumed"])
        unread = data[consumed:]
        if unread.strip(b"\0"):
            self._say(
                path.name, f"{plural(len(unread), 'byte')} after the last entry, neither entries nor zeros", consumed
            )
        width = rows["@length"][0].as_py() if rows.num_rows else 1
        values = numbers(rows, "position" if kind == "index" else "timestamp")
        offsets = numbers(rows, "relative_offset").astype(np.int64) + segment.base
        rises = np.diff(values) > 0
        follows = np.diff(offsets) > 0 if kind == "index" else np.diff(offsets) >= 0
        falls = np.flatnonzero(~(rises & follows)) + 1
        is_open = bool(unread) and not unread.strip(b"\0")
        after = None
        if is_open and falls.size:
            first = int(falls[0])
            self.stale[path.name] = len(offsets) - first
            if falls.size == 1:
                after = (int(offsets[first]), int(values[first])), (int(offsets[-1]), int(values[-1]))
            offsets, values, falls = offsets[:first], values[:first], falls[:0]
        keys = values if kind == "index" else offsets
        order = np.argsort(keys, kind="stable")
        index = _Index(path.name, width, offsets, values, keys[order], order, is_open, after)
        segment.entries[kind] = len(offsets)
        if (offsets[:1] < segment.base).any():
            self._report(index, 0, f"{self._entry(segment, index, 0)} is before the base offset")
        for number in falls:
            before, here = self._entry(segment, index, int(number) - 1), self._entry(segment, index, int(number))
            self._report(index, int(number), f"{here} does not ascend: the offset before it is {before}")
        return index

    def _entry(self, segment: Segment, index: _Index, number: int) -> str:
        value_name = "position" if index.name.endswith(".index") else "timestamp"
        relative = int(index.offsets[number]) - segment.base
        return f"relative offset {relative}, {value_name} {int(index.values[number])}"

    def _report(self, index: _Index, number: int, text: str) -> None:
        self._say(index.name, text, number * index.width, number)

    def _report_unreached(self, segment: Segment, index: _Index, number: int) -> None:
        """Reports an entry that the walk never reached."""
        entry = self._entry(segment, index, number)
        if index.name.endswith(".index"):
            beyond, text = index.values[number] >= segment.end, f"last message, which ends at byte {segment.end}"
        else:
            beyond, text = segment.last is None or index.offsets[number] > segment.last, f"last offset {segment.last}"
        if beyond and index.is_open and not self._is_alone(segment, index, number):
            self.stale[index.name] += 1
            segment.entries[index.name.rpartition(".")[2]] -= 1
        elif index.name.endswith(".index") or (beyond and segment.last is not None):
            self._report(index, number, f"{entry} is beyond the log's {text}")

    def _is_alone(self, segment: Segment, index: _Index, number: int) -> bool:
        """Whether an entry beyond the log is a damaged one: those before and after it ascend, and are in the log."""
        if index.after is None or number != len(index.offsets) - 1 or number == 0:
            return False
        (offset, value), (last, last_value) = index.after
        inside = last_value < segment.end if index.name.endswith(".index") else last <= (segment.last or 0)
        return inside and bool(index.offsets[number - 1] < offset and index.values[number - 1] < value)

    # The log, compared with the indexes

    def _walk(self, segment: Segment, file: SegmentFile, indexes: dict[str, _Index]) -> None:
        while True:
            window, rows, errors = scanned(file, file.window(), FIELDS)
            start, consumed = file.position, int(rows.schema.metadata[b"wirekit.consumed"])
            if window[: len(ZEROS)] == ZEROS:
                consumed = 0
            elif not consumed and not errors.num_rows and not file.last:
                file.take(0)
                continue
            misled = self._misled(file, rows, errors)
            if misled is not None:
                consumed = misled
                rows = rows.filter(pa.array(_places(rows) < misled))
                errors = errors.filter(pa.array(_outer(errors) <= misled))
            oversized = self._oversized(file, window, rows)
            if oversized is not None:
                rows = rows.filter(pa.array(_places(rows) + start < oversized.offset))
                errors = errors.filter(pa.array(_outer(errors) + start < oversized.offset))
            self._part(segment, start, rows, indexes, _checksums(window, rows, resized=oversized is not None))
            self._check_left_over(segment, start, rows, errors)
            file.search.follow(_good(rows)[1][-2:].tolist())
            ended = False
            for error, outer in zip(errors.to_pylist(), _outer(errors).tolist(), strict=True):
                inside = error["depth"] > 0
                place = start + (outer if error["at_depth"] else error["at"])
                where = " in compressed data" if inside else ""
                self._say(segment.name, f"{error['path']}{where}: {error['reason']}", place)
                ended = ended or (not inside and error["offset"] == consumed)
            if oversized is not None:
                self._say(segment.name, f"{oversized.error.path}: {oversized.error.reason}", oversized.error.offset)
                segment.end = oversized.offset + oversized.length
                file.continue_at(segment.end)
                continue
            segment.end = start + consumed
            unread = bytes(window[consumed:])
            if not (ended or file.last or unread.startswith(ZEROS) or file.is_torn(segment.end, unread)):
                file.take(consumed)
            elif not self._resumes(segment, file, indexes, damaged=ended or bool(unread.strip(b"\0"))):
                if not ended:
                    self._tail(segment, file, unread)
                return

    @staticmethod
    def _misled(file: SegmentFile, rows: Any, errors: Any) -> int | None:
        """The place in the window of the first undecodable message whose size may be wrong: none begins after it."""
        start, before, consumed = file.position, file.search.before, int(rows.schema.metadata[b"wirekit.consumed"])
        places, offsets = _good(rows)
        undecoded = ~np.isin(numbers(errors, "offset"), _places(rows))  # others only do not decompress
        for error in np.flatnonzero(
            undecoded & (numbers(errors, "depth") == 0) & (numbers(errors, "offset") < consumed)
        ):
            begin = errors["offset"][error].as_py()
            end, number = begin + errors["length"][error].as_py(), int(np.searchsorted(places, begin))
            file.search.before = before
            file.search.follow(offsets[:number][-2:].tolist())
            if not file.search.is_end(start + begin, start + end):
                return int(begin)
        file.search.before = before
        return None

    @staticmethod
    def _oversized(file: SegmentFile, window: memoryview, rows: Any) -> Damaged | None:
        """The excess bytes of a message whose size is too large; they end where the next message begins."""
        start, before = file.position, file.search.before
        places, offsets = _good(rows)
        ends = numbers(rows, "@offset") + numbers(rows, "@length")
        doubtful = (numbers(rows, "@gap") > 0) | ~numbers(rows, "message.crc.ok").astype(bool)
        for row in np.flatnonzero((numbers(rows, "@depth") == 0) & doubtful):
            begin = rows["@offset"][row].as_py()
            number = int(np.searchsorted(places, begin))
            file.search.before = before
            file.search.follow(offsets[:number][-2:].tolist())
            oversized = file.oversized(decode(bytes(window[begin : ends[row]]), SEGMENT, offset=start + begin))
            if oversized is not None:
                return oversized[1]
        file.search.before = before
        return None

    def _resumes(self, segment: Segment, file: SegmentFile, indexes: dict[str, _Index], *, damaged: bool) -> bool:
        """Moves to the next message after undecodable bytes, if any; unknown facts are not compared."""
        if not damaged and file.search.beyond_zeros(segment.end) is None:
            return False
        next_start = file.search.after(segment.end)
        if next_start is None:
            return False
        self._say(
            segment.name,
            f"{next_start - segment.end} bytes that are not messages, with messages after them",
            segment.end,
        )
        index = indexes.get("index")
        if index is not None:
            index.take(next_start - 1, segment.end)
        segment.doubtful = segment.resumed = True
        file.continue_at(next_start)
        return True

    def _tail(self, segment: Segment, file: SegmentFile, unread: bytes) -> None:
        """The bytes after the last whole message."""
        if unread.strip(b"\0") and not unread.startswith(ZEROS):
            size = file.size - segment.end
            self._say(segment.name, f"the last message is torn after {plural(size, 'byte')}", segment.end)
            return
        segment.zeros = segment.size - segment.end
        place = file.search.beyond_zeros(segment.end)
        if place is not None:
            self._say(segment.name, "data after the zeros at the end", place)

    def _part(self, segment: Segment, start: int, rows: Any, indexes: dict[str, _Index], intact: NDArray[Any]) -> None:
        """The messages of a window; ``intact`` tells which have a good checksum."""
        if not rows.num_rows:
            return
        offsets, has_offset, times, _ = resolved(rows)
        is_outermost = numbers(rows, "@depth") == 0
        places, reached = _places(rows) + start, _reached(rows)
        for row in np.flatnonzero(~intact & reached):
            inside = "" if is_outermost[row] else ", in compressed data"
            self._say(segment.name, f"the checksum of offset {int(offsets[row])} is wrong{inside}", int(places[row]))
        for row in np.flatnonzero(numbers(rows, "@gap") > 0):
            self._say(segment.name, f"bytes that no field explains in offset {int(offsets[row])}", int(places[row]))
        leaf = np.asarray(rows["@left"].is_null()) & reached
        self._order(segment, offsets[leaf & has_offset], places[leaf & has_offset])
        segment.last = int(offsets[is_outermost][-1])  # those of the messages in it may be unknown
        segment.messages += int(leaf.sum())
        self._positions(
            segment, indexes.get("index"), offsets[is_outermost], places[is_outermost], has_offset[is_outermost]
        )
        good = leaf & has_offset & verified(rows)
        lost = (leaf & ~good) | (numbers(rows, "@left") > 0) | ~reached
        self._times(segment, indexes.get("timeindex"), offsets[good], times[good], np.cumsum(lost)[good])
        segment.doubtful = segment.doubtful or bool(lost.any())

    def _check_left_over(self, segment: Segment, start: int, rows: Any, errors: Any) -> None:
        """Bytes after the last whole message in compressed data without an error."""
        bytes_left, places = numbers(rows, "@left"), _places(rows)
        for row in np.flatnonzero((bytes_left > 0) & ~np.isin(places, _outer(errors))):
            text = f"{plural(int(bytes_left[row]), 'byte')} after the last whole message in the compressed data"
            self._say(segment.name, text, start + int(places[row]))

    def _order(self, segment: Segment, offsets: NDArray[Any], places: NDArray[Any]) -> None:
        if not offsets.size:
            return
        before = np.concatenate([[segment.base - 1 if segment.last is None else segment.last], offsets[:-1]])
        steps = offsets - before
        segment.compacted = segment.compacted or bool((steps[segment.resumed :] > 1).any())
        segment.resumed = False
        for row in np.flatnonzero(steps <= 0):
            reason = f"offset {int(offsets[row])} does not ascend: the offset before it is {int(before[row])}"
            if segment.last is None and not row:
                reason = f"offset {int(offsets[0])} is before the base offset in the file's name, {segment.base}"
            self._say(segment.name, reason, int(places[row]))
        for row in np.flatnonzero(offsets - segment.base > LARGEST_RELATIVE)[:1]:
            self._say(segment.name, f"offset {int(offsets[row])} is too far from the base offset", int(places[row]))
        if segment.first is None:
            segment.first = int(offsets[0])

    def _positions(
        self,
        segment: Segment,
        index: _Index | None,
        offsets: NDArray[Any],
        places: NDArray[Any],
        has_offset: NDArray[Any],
    ) -> None:
        """Compares the offset index with the message sets of a window."""
        before = np.concatenate([[segment.before], offsets[:-1]])
        segment.before = int(offsets[-1])
        if index is None:
            return
        for number in index.take(int(places[-1]), int(places[0])):
            at = int(np.searchsorted(places, index.values[number], side="right")) - 1
            entry = self._entry(segment, index, int(number))
            if places[at] != index.values[number]:
                self._report(index, int(number), f"{entry}: no message begins there, one does at {int(places[at])}")
            elif has_offset[at] and not before[at] < index.offsets[number] <= offsets[at]:
                span = f"offset {int(offsets[at])}, and the one before it {int(before[at])}"
                if before[at] == EARLIEST:
                    span = f"offset {int(offsets[at])}"
                self._report(index, int(number), f"{entry}: the message there has {span}")

    def _times(
        self,
        segment: Segment,
        index: _Index | None,
        offsets: NDArray[Any],
        times: NDArray[Any],
        lost: NDArray[Any],
    ) -> None:
        """Compares the time index with the good messages of a window; ``lost`` counts other messages before each."""
        if not offsets.size:
            return
        times = np.where(times == NO_TIMESTAMP, EARLIEST, times)
        latest = np.maximum(np.maximum.accumulate(times), segment.latest)
        segment.latest = int(latest[-1])
        if index is None:
            return
        for number in index.take(int(offsets[-1])):
            at = int(np.searchsorted(offsets, index.offsets[number], side="right")) - 1
            latest_time, entry_time = int(latest[at]) if at >= 0 else EARLIEST, int(index.values[number])
            doubtful = segment.doubtful or lost[min(at + 1, len(lost) - 1)] > 0
            if latest_time > entry_time or (latest_time not in (EARLIEST, entry_time) and not doubtful):
                entry = self._entry(segment, index, int(number))
                self._report(index, int(number), f"{entry}: the latest timestamp up to this offset is {latest_time}")

    # Segment by segment

    def _in_a_row(self) -> None:
        compacted = any(segment.compacted for segment in self.segments)
        for before, after in pairwise(self.segments):
            if before.unread or after.unread:
                continue
            end = before.base if before.last is None else before.last + 1
            if after.base < end:
                self._say(after.name, f"begins at offset {after.base}, but {before.name} has offsets up to {end - 1}")
            elif after.base > end and not compacted:
                self._say(after.name, f"{before.name} ends at offset {end - 1}: {after.base - end} are missing")
