"""The packets of a capture of one or more files, window by window.

No packet of a window is older than a packet of an earlier window, unless the clock was set back between them, so work
window by window is in the order of time. If packets are far out of order, windows grow. A first pass over the record
headers finds where windows may end, and whether a file is damaged before its end; in that case objects read all files.
If a packet may have been captured after the clock was set back, a second pass over the segments finds where.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wirekit.capture.columns import NO_RECORDS, Records, Sections, records
from wirekit.capture.files import Capture, Damaged
from wirekit.capture.files.fragments import Fragments
from wirekit.capture.tcp import CLOCK_STEP_US
from wirekit.compiler import ir
from wirekit.pipeline.clock_steps import EVER, Times, clocks, set_back
from wirekit.pipeline.inputs import FlowShare
from wirekit.registry import registry
from wirekit.road.packets import ALL, SCANNED_AT_ONCE, SEGMENTS, Endpoints, PacketReader, Packets, joined

WINDOW = 32 << 20
"""Approximate size of a window in bytes of the capture."""
_MIXING = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio
_END = 1 << 16  # bytes at the end of a damaged file that objects read as well
NOTE = 512
"""The bytes of a window that a packet without a TCP segment counts, because it is kept as an object."""
_PARTS = 16  # parts of a scan, between which a window may end


class _Part(NamedTuple):
    """Packets that stay together: the place of their file, their number, bytes, and times.

    ``late``: by how many microseconds, at most, a packet is older than one before it; ``read``: whether the part ends
    a read of the file; ``last``: the place of the bytes of the last packet in the file.
    """

    file: int
    rows: int
    size: int
    times: Times
    late: int
    read: bool
    last: int


class _Planned(NamedTuple):
    """The parts of a window, and its clock, as in ``Window``."""

    parts: list[_Part]
    clock: int
    later: int
    stepped: bool


@dataclass(slots=True)
class Window:
    """Packets of a capture.

    Attributes:
        packets: the segments in them.
        clock: the latest time since the clock was set back, or of all so far, microseconds since the epoch; no later
            window has a packet before it, unless the clock is set back again.
        later: the earliest time in later windows, or the latest possible one.
        last: whether this is the last window.
        done: bytes of the capture up to here.
        set_back: whether the clock was set back so far.
        stretch: for each packet, how often the clock was set back before it; None if the packets show it
            because no packets of the capture are left out.
    """

    packets: Packets
    clock: int
    later: int
    last: bool
    done: int
    set_back: bool = False
    stretch: NDArray[Any] | None = None

    def keep(self, flows: FlowShare) -> None:
        """Drops the packets of other flows, by the numbers of endpoints, which are the same for all readers.

        Packets without a segment belong to the first share.
        """
        packets = self.packets
        low, high = (each(packets.source, packets.target).astype(np.uint64) for each in (np.minimum, np.maximum))
        mixed = (low * _MIXING + high) * _MIXING
        of_flows = self.only((mixed >> np.uint64(32)) % np.uint64(flows.shares) == flows.number)
        self.packets, self.stretch = of_flows.packets, of_flows.stretch
        self.packets.skipped = [] if flows.number else packets.skipped

    def only(self, chosen: NDArray[np.bool_]) -> Window:
        """A window with some of the segments."""
        packets = self.packets
        stretch = np.cumsum(set_back(packets.time)) if self.stretch is None else self.stretch
        arrays = {name: getattr(packets, name)[chosen] for name in SEGMENTS}
        return replace(self, packets=replace(packets, **arrays), stretch=stretch[chosen])


def read_windows(
    captures: Sequence[Capture], endpoints: Endpoints, size: int = WINDOW, *, most_late: int | None = None
) -> Iterator[Window] | None:
    """The windows of a capture, at least one; None if objects must read it.

    Objects must read it if packets follow damage, a packet has no time, or a pcapng file has many small sections.

    A file that is truncated, even while it is read, ends there; ``damage`` then describes the end, if it is damaged.

    Args:
        captures: its files, open, in order.
        endpoints: receives the endpoints of the packets.
        size: approximate size of a window in bytes.
        most_late: if given, the result is also None if a packet is older than one before it by more microseconds.
    """
    parts: list[_Part] = []
    for place, capture in enumerate(captures):
        file_parts = _parts(capture, place, size)
        if file_parts is None:
            return None
        parts += file_parts
    if most_late is not None and _lateness(parts) > most_late:
        return None
    if _lateness(parts) > CLOCK_STEP_US:
        parts = _with_steps(captures, parts, endpoints, size)
    return _windows(captures, _planned(parts, size), endpoints, size)


@cache
def _least_segment() -> int:
    """Bytes below which a packet has no TCP segment."""
    return sum(ir.minimum(registry[key].layout) for key in ("net.ipv4", "net.tcp"))


def _parts(capture: Capture, place: int, size: int) -> list[_Part] | None:
    """The packets of a file in small parts; None if it is damaged before its end, or has many small sections."""
    errors: list[pa.RecordBatch] = []
    sections = Sections()
    parts: list[_Part] = []
    last = NO_RECORDS
    capture.keep()
    for last in records(capture, capture.limits, errors, size):
        batch = last.rows
        if batch["time"].null_count or sections.are_small(capture, last):
            return None
        times = np.asarray(batch["time"].view(pa.int64())) // 1000
        lengths = np.asarray(batch["captured_length"]).astype(np.int64)
        places = np.asarray(batch["@data"])
        count, more = divmod(times.size, _PARTS)
        rows = np.repeat([count + 1, count], [more, _PARTS - more])[: times.size]
        ends = np.cumsum(rows)
        starts = ends - rows
        columns = (
            rows,
            np.add.reduceat(np.where(lengths < _least_segment(), NOTE, lengths), starts),
            np.minimum.reduceat(times, starts),
            np.maximum.reduceat(times, starts),
            np.maximum.reduceat(np.maximum.accumulate(times) - times, starts),
            ends == times.size,
            places[ends - 1],
        )
        for number, weight, first, latest, late, read, at in zip(*(each.tolist() for each in columns), strict=True):
            parts.append(_Part(place, number, weight, Times(first, latest, first), late, read, at))
    return None if (capture.incomplete or errors) and not damaged_only_at_end(capture, last, errors) else parts


def _lateness(parts: list[_Part]) -> int:
    """By how many microseconds, at most, a packet is older than one before it."""
    latest = accumulate((part.times.last for part in parts), max)
    between = (last - behind.times.first for last, behind in zip(latest, parts[1:], strict=False))
    return max([0, *(part.late for part in parts), *between])


def _with_steps(captures: Sequence[Capture], parts: list[_Part], endpoints: Endpoints, size: int) -> list[_Part]:
    """The parts with the times of their segments, and where the clock was set back."""
    timed: list[_Part] = []
    before: NDArray[Any] = np.zeros(0, np.int64)
    for part, times in zip(parts, _times(captures, parts, endpoints, size), strict=True):
        steps = np.flatnonzero(set_back(np.append(before, times))) - before.size
        span = Times()
        if times.size:
            inside = steps[steps > 0]
            first, last = (int(inside[0]), int(inside[-1])) if inside.size else (times.size, 0)
            first_us, last_us, earliest = int(times[:first].min()), int(times[last:].max()), int(times.min())
            span = Times(first_us, last_us, earliest, 0 in steps, inside.size > 0)
            before = times[-1:]
        timed.append(part._replace(times=span))
    return timed


def _times(captures: Sequence[Capture], parts: list[_Part], endpoints: Endpoints, size: int) -> Iterator[NDArray[Any]]:
    """The times of the segments in each part; the parts of a read are taken together."""
    fragments = Fragments()
    streams = [_Stream(capture, place, endpoints, size, fragments, ()) for place, capture in enumerate(captures)]
    of_read: list[_Part] = []
    for part in parts:
        of_read.append(part)
        if part.read:
            segments = streams[part.file].take(sum(each.rows for each in of_read))
            lasts = [each.last for each in of_read[:-1]]
            yield from np.split(segments.time, np.searchsorted(segments.position, lasts, side="right"))
            of_read = []


def damaged_only_at_end(capture: Capture, last: Records, errors: list[pa.RecordBatch]) -> bool:
    """Whether a file is damaged only at its end; sets ``damage`` of the capture.

    Args:
        capture: the file.
        last: its last records.
        errors: the errors of all its records.
    """
    if last is NO_RECORDS:
        return False
    for following in records(capture, capture.limits, [], _END, start=last.place):
        last = following
    place = last.place
    end = last.rows["@offset"][-1].as_py() if last.rows.num_rows else place.offset
    if any(pc.min(each["offset"]).as_py() < end for each in errors):
        return False
    if capture.format == "pcap":
        place = capture.first._replace(offset=place.offset, number=place.number)
    count = 0
    for count, item in enumerate(capture.items(place), 1):
        if isinstance(item, Damaged) or count > last.rows.num_rows:
            return False
    return count == last.rows.num_rows


def _planned(parts: list[_Part], size: int) -> list[_Planned]:
    """The windows; if possible, one ends with a read of the file, so that no bytes are copied."""
    windows: list[_Planned] = []
    total, stepped, window_parts = 0, False, list[_Part]()
    for number, (part, clock) in enumerate(zip(parts, clocks([each.times for each in parts]), strict=True)):
        window_parts.append(part)
        total += part.size
        stepped |= part.times.before or part.times.inside
        full = total >= size or (part.read and 2 * total >= size)
        if number + 1 == len(parts) or (full and clock.may_end):
            windows.append(_Planned(window_parts, max(clock.latest, 0), clock.later, stepped))
            total, window_parts = 0, []
    return windows or [_Planned([], 0, EVER, False)]


def _windows(captures: Sequence[Capture], planned: list[_Planned], endpoints: Endpoints, size: int) -> Iterator[Window]:
    fragments = Fragments()
    streams = [_Stream(capture, place, endpoints, size, fragments) for place, capture in enumerate(captures)]
    for number, (parts, clock, later, stepped) in enumerate(planned):
        rows_by_file: dict[int, int] = {}
        for part in parts:
            rows_by_file[part.file] = rows_by_file.get(part.file, 0) + part.rows
        packets = joined([streams[place].take(rows) for place, rows in (rows_by_file or {0: 0}).items()])
        if number + 1 == len(planned):
            packets.skipped += [(len(streams) - 1, each) for each in fragments.end()]
        yield Window(
            packets,
            clock,
            later,
            number + 1 == len(planned),
            sum(stream.reached for stream in streams),
            stepped,
        )
        del packets  # before the next are read


class _Stream:
    """The packets of one file, taken in order."""

    def __init__(
        self,
        capture: Capture,
        place: int,
        endpoints: Endpoints,
        size: int,
        fragments: Fragments,
        arrays: Collection[str] = ALL,
    ) -> None:
        self.reached = 0
        self._capture = capture
        self._parts = records(capture, capture.limits, [], size)
        self._reader = PacketReader(place, endpoints, 0, arrays, fragments)
        self._part = NO_RECORDS
        self._ended = False

    def take(self, rows: int) -> Packets:
        """The segments in the next packets; fewer if another program has truncated the file."""
        packets: list[Packets] = []
        while rows or not packets:
            if not self._part.rows.num_rows:
                self._part = next(self._parts, NO_RECORDS)
                if self._part is NO_RECORDS or self._part.rows["time"].null_count:
                    self._end()
                    rows = 0
            count = min(rows, SCANNED_AT_ONCE)
            part = self._part._replace(rows=self._part.rows.slice(0, count))
            remaining = self._part.rows.slice(count)
            self._part = self._part._replace(rows=remaining) if remaining.num_rows else NO_RECORDS
            rows -= part.rows.num_rows
            packets.append(self._reader.segments(part))
            if part.rows.num_rows:
                self.reached = part.rows["@data"][-1].as_py() + part.rows["captured_length"][-1].as_py()
        return joined(packets)

    def _end(self) -> None:
        """Lets objects find out why the file ends here."""
        if not self._ended:
            self._ended = True
            for _ in self._capture.items(self.reached):
                pass
