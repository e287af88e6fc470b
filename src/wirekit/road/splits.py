"""Splits a large capture file at its records, which are searched in many places at once.

A walk begins at a guess, the first bytes of a range that look like a packet record, and ends at the first packet after
the range. The guess is right if the walk over the previous range ends there. From the first wrong guess on, one walk
goes over all records in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wirekit.capture.columns import records
from wirekit.capture.files import Capture, Interface, Place, is_packed, open_capture
from wirekit.capture.files.items import SECOND
from wirekit.compiler.heading import heading
from wirekit.decoding import frame_size
from wirekit.errors import WireError
from wirekit.pipeline.inputs import Input, Split
from wirekit.plain import restored, stored

if TYPE_CHECKING:
    import pyarrow as pa

    from wirekit.compiler.heading import Heading

WINDOWS = 16
"""The number of windows in which a range is scanned; the last range is longer by up to four windows."""
_HEAD = 1 << 12  # bytes that are scanned at once until there is a packet
_TRIAL = 1 << 18  # bytes of records that follow a guess
_LEAST = 4  # packets in them, if the file does not end
_SEARCHED = 1 << 20  # bytes of a range in which its first record must begin
_TRIALS = 2048  # guesses of a range
_DAY = 24 * 3600 * SECOND  # nanoseconds


class Range(NamedTuple):
    """A range of bytes in a file; ``end`` is the offset after its last byte."""

    begin: int
    end: int


class Walked(NamedTuple):
    """The result of a walk over a range: its first packet, the first packet after it, and the number of its packets.

    Places count packets from the first packet of the range. ``next`` is None at the end of the file.
    """

    start: Place
    next: Place | None
    packets: int

    def dumps(self) -> Any:
        """The result as JSON data."""
        return stored(self, _NAMED)


_NAMED: dict[str, type] = {"Walked": Walked, "Place": Place, "Interface": Interface}

Walks = Callable[[Sequence[Range]], Sequence[Walked | None]]
"""Calls ``walk`` for each range of a file."""


def loads(data: Any) -> Walked | None:
    """The inverse of ``Walked.dumps``, and of None."""
    walked: Walked | None = restored(data, _NAMED)
    return walked


def splits(file: Input, every: int, walks: Walks | None = None) -> list[Split]:
    """Splits a file at record boundaries into parts of about ``every`` bytes; empty if the file is read as a whole.

    A compressed or damaged file is read as a whole.

    Args:
        file: the file.
        every: bytes.
        walks: walks over ranges of the file, several at once; by default one walk goes over all of it.
    """
    errors: list[pa.RecordBatch] = []
    starts: list[Place] = []
    try:
        if is_packed(file.path):
            return []
        with open_capture(file.path) as capture:
            if capture.size != file.size:
                return []
            place: Place | None = capture.first
            for walked in [] if walks is None else walks(ranges(file.size, every)):
                if place is None or walked is None or walked.start != place._replace(number=0):
                    break
                starts.append(place)
                number = place.number + walked.packets
                place = None if walked.next is None else walked.next._replace(number=number)
            if place is not None:
                for part in records(capture, capture.limits, errors, every, start=place):
                    if part.rows["time"].null_count:
                        return []
                    of_file = capture.format == "pcap"
                    at = part.place
                    starts.append(capture.first._replace(offset=at.offset, number=at.number) if of_file else at)
    except (OSError, WireError):
        return []
    if errors:
        return []
    ends = [*(each.offset for each in starts[1:]), file.size]
    return [Split(start, end) for start, end in zip(starts, ends, strict=True)]


def ranges(size: int, every: int) -> list[Range]:
    """Ranges of ``every`` bytes; a short remainder belongs to the last one.

    >>> ranges(10 << 20, 64 << 20), len(ranges(1 << 30, 64 << 20))
    ([Range(begin=0, end=10485760)], 16)
    """
    begins = [0, *range(every, size - 4 * every // WINDOWS, every)]
    return [Range(*each) for each in pairwise([*begins, size])]


def walk(path: str, size: int, part: Range) -> Walked | None:
    """Walks over a range of a capture file that is not compressed.

    Args:
        path: the file, or its URI.
        size: its bytes.
        part: the range.

    Returns:
        The places where the walk began and ended; None if no record was found, something is damaged or has no time, or
        interfaces are described after the first packets of the file.
    """
    with open_capture(path) as capture:
        described = _described(capture)
        if capture.size != size or described is None:
            return None
        start = _guessed(capture, described, part) if part.begin else capture.first
        return None if start is None else _walked(capture, described, start, part)


def _described(capture: Capture) -> Place | None:
    """The place of the first packets, with byte order and interfaces; None if no packets follow the first ones."""
    if capture.format == "pcap":
        return capture.first
    before = 0
    for part in records(capture, capture.limits, [], _HEAD):
        if before:
            return part.place._replace(number=0)
        before += part.rows.num_rows
    return None


def _guessed(capture: Capture, described: Place, part: Range) -> Place | None:
    """The place of the first bytes in a range that look like a packet; None if none do."""
    if capture.format == "pcap":
        key, most = f"net.pcap.packet.{described.order}", described.interfaces[0].snap_length or capture.limits.frame
    else:
        key, most = f"net.pcapng.envelope.{described.order}", capture.limits.frame
    begin = heading(key, min(most, capture.limits.frame))
    data = capture.read(part.begin, min(_SEARCHED, part.end - part.begin) + begin.size - 1)
    at = 0
    for _ in range(_TRIALS):
        match = begin.pattern.search(data, at)
        if match is None:
            return None
        at = match.start()
        if not _continues(key, begin, data, at):
            at += 1
            continue
        errors: list[pa.RecordBatch] = []
        start = described._replace(offset=part.begin + at, number=0)
        trial = next(records(capture, capture.limits, errors, _TRIAL, start=start), None)
        wrong = [offset for each in errors for offset in each["offset"].to_pylist()]
        enough = _LEAST if start.offset + _TRIAL < capture.size else 1
        if trial is not None and not wrong and trial.rows.num_rows >= enough and _plausible(trial.rows, capture):
            return start._replace(offset=trial.rows["@offset"][0].as_py())
        at += 1
        if trial is not None and trial.rows.num_rows and not np.asarray(trial.rows["captured_length"]).any():
            at = max(at, trial.rows["@offset"][-1].as_py() - part.begin)  # these are zeros
    return None


def _continues(key: str, begin: Heading, data: bytes, at: int) -> bool:
    """Whether further records may follow the one at a place, as far as their headings in the data show."""
    for _ in range(_LEAST):
        try:
            size = frame_size(data, key, start=at)
        except WireError:
            return False
        if size is None or at + size + begin.size > len(data):
            return True
        at += size
        if not begin.pattern.match(data, at):
            return False
    return True


def _plausible(rows: pa.RecordBatch, capture: Capture) -> bool:
    """Whether packets have possible lengths, and were captured on one day."""
    times = np.asarray(rows["time"].view("int64").drop_null())
    captured, original = np.asarray(rows["captured_length"]), np.asarray(rows["original_length"])
    possible = (captured <= original) & (original <= capture.limits.frame)
    return times.size == rows.num_rows and np.ptp(times) < _DAY and bool(possible.all())


def _walked(capture: Capture, described: Place, start: Place, part: Range) -> Walked | None:
    errors: list[pa.RecordBatch] = []
    packets, behind = 0, None
    window = max((part.end - part.begin) // WINDOWS, 1)
    for chunk in records(capture, capture.limits, errors, window, start=start):
        place = chunk.place
        changed = capture.format != "pcap" and (place.order, place.interfaces) != (
            described.order,
            described.interfaces,
        )
        if errors or chunk.rows["time"].null_count:
            return None
        if changed and place.offset > start.offset:
            return None
        if behind is not None:
            return Walked(start, behind, packets)
        offsets = np.asarray(chunk.rows["@offset"])
        inside = int(np.searchsorted(offsets, part.end))
        packets += inside
        if inside < offsets.size:
            behind = described._replace(offset=int(offsets[inside]), number=0)
            if capture.format == "pcap":
                return Walked(start, behind, packets)
    # At the end of the file, the interfaces before the last packet are unknown.
    return None if behind is not None or errors else Walked(start, None, packets)
