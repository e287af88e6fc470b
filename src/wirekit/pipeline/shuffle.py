"""Passes packets between tasks by Arrow IPC files beside the tables, with one batch for each reading task.

Spark's own shuffle would pass packets as rows through its JVM, and sort them. The files keep the order of the capture,
so that a task follows its connections window by window, as the serial driver does. Payloads of a flow that dominates
a part of a local file are not copied: the tasks read that part again. Packets of flows that lie in one part are not
passed on: the task that read them follows these flows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirekit.capture.files.fragments import Fragments
from wirekit.capture.tcp import CLOCK_STEP_US
from wirekit.pipeline.clock_steps import EVER, STRETCH, Times, clocks, stretches
from wirekit.pipeline.crossing import Crossing
from wirekit.pipeline.folders import Folder, folder
from wirekit.pipeline.inputs import Input
from wirekit.tables.columns import PACKETS

HEADER = 64
"""The bytes by which a segment counts besides its payload, so that segments without payload fill windows as well."""
LARGE = 8
"""A flow with at least 1 / ``LARGE`` of a file's bytes has a batch of its own there."""
FULL = 0.75
"""A window may end once it has this part of its bytes."""
DENSE = 0.5
"""A flow's payloads are not copied if they fill at least this part of the file between the first and the last one."""
SHUFFLED = PACKETS.schema.append(pa.field("captured", pa.int64())).append(pa.field(STRETCH, pa.int64()))
"""Rows of the table ``packets``. If ``captured`` is not null, it is the number of bytes in the file at ``position``,
and ``payload`` is null. ``stretch`` is the result of ``stretches`` for the whole capture; in a stored file, for that
file alone."""


class ShuffleFile(NamedTuple):
    """Packets of one file of a capture that were read together.

    Attributes:
        name: its name in the folder of attempts.
        capture, number: the numbers of the capture and of its file.
        position: position of the first packet in that file.
        times: the times of its segments.
        ends: the times of its first and its last segment; empty without a segment.
        steps: how often the clock was set back between its segments.
        size: bytes of its packets, with ``HEADER`` for each; without those that are kept.
        large: (flow, bytes) of each flow with a batch of its own; other flows share batches by their number.
        places: the places with packets of other flows.
    """

    name: str
    capture: int
    number: int
    position: int
    times: Sequence[int]
    ends: Sequence[int]
    steps: int
    size: int
    large: Sequence[Sequence[int]]
    places: Sequence[int]


LocalRows = dict[str, pa.Table]
"""Rows of ``SHUFFLED`` that the task which read them follows, by the name of their file."""


class Share(NamedTuple):
    """The flows that one task follows.

    Attributes:
        place: the remainder when their numbers are divided by the number of places.
        flow: the only flow, None for all flows of the place.
        apart: flows of the place that other tasks follow.
    """

    place: int
    flow: int | None = None
    apart: tuple[int, ...] = ()


class PacketWindow(NamedTuple):
    """Rows of ``SHUFFLED`` of one capture, with the clock, later times and end of ``wirekit.road.windows.Window``.

    ``size`` is counted as in ``ShuffleFile``.
    """

    capture: int
    rows: pa.Table
    clock: int
    later: int
    last: bool
    size: int


def write_files(
    file: Input,
    batches: Iterable[pa.RecordBatch],
    attempts: str | os.PathLike[str],
    attempt: str,
    places: int,
    size: int,
    *,
    again: bool = False,
    fragments: Fragments | None = None,
    crossing: Crossing | None = None,
    local: LocalRows | None = None,
) -> Iterator[ShuffleFile]:
    """Writes the packets of a file.

    Args:
        file: the file.
        batches: rows of the table ``packets``, in the order of the file.
        attempts: the folder of all attempts.
        attempt: a unique name of the attempt.
        places: number of tasks that follow several flows.
        size: approximate maximum of packet bytes in a file; more if one batch has more.
        again: whether tasks may read payloads from the file again.
        fragments: those of ``batches``. Payloads of datagrams that came in fragments are in no file as a whole, so
            tasks read no payloads again from the first such datagram on.
        crossing: the flows whose packets are written; by default all.
        local: receives the packets of other flows.
    """
    store, pending, count = folder(attempts), list[pa.RecordBatch](), 0
    store.make(attempt)

    def written(name: str) -> ShuffleFile:
        readable = again and not (fragments and fragments.completed)
        return _write(file, pending, name, store, places, size, again=readable, crossing=crossing, local=local)

    total = 0
    for batch in batches:
        if pending and total + batch.nbytes > size:
            yield written(f"{attempt}/{file.number}-{count:05}.arrow")
            pending, count, total = [], count + 1, 0
        pending.append(batch)
        total += batch.nbytes
    if pending:
        yield written(f"{attempt}/{file.number}-{count:05}.arrow")


def _write(
    file: Input,
    batches: list[pa.RecordBatch],
    name: str,
    store: Folder,
    places: int,
    size: int,
    *,
    again: bool,
    crossing: Crossing | None,
    local: LocalRows | None,
) -> ShuffleFile:
    rows = pa.Table.from_batches(batches).combine_chunks()
    rows = rows.append_column(STRETCH, stretches(rows))
    position, times = rows["position"][0].as_py(), _times(rows)
    if crossing is not None and local is not None:
        written = pa.array(crossing.has(rows["flow"].to_numpy()) | np.asarray(rows["note"].is_valid()))
        own_rows = rows.filter(pc.invert(written)).combine_chunks()
        local[name] = pa.Table.from_batches([_shuffled(each, again=False) for each in own_rows.to_batches()], SHUFFLED)
        rows = rows.filter(written).combine_chunks()
    own, shared = _write_rows(rows, name, store, places, size, again=again) if rows.num_rows else ([], [])
    written_size = int(_sizes(rows).sum())
    return ShuffleFile(name, file.capture, file.number, position, *times, written_size, own, shared)


def _write_rows(
    rows: pa.Table, name: str, store: Folder, places: int, size: int, *, again: bool
) -> tuple[list[tuple[int, int]], list[int]]:
    """Writes rows; returns ``large`` and ``places`` of ``ShuffleFile``."""
    flows, which = np.unique(rows["flow"].to_numpy(), return_inverse=True)
    sizes = np.bincount(which, _sizes(rows), flows.size).astype(np.int64)
    large = np.flatnonzero(sizes >= size // LARGE)
    place = flows % places
    place[large] = places + np.arange(large.size)
    order = np.argsort(place[which], kind="stable")
    bounds = np.searchsorted(place[which][order], np.arange(places + large.size + 1))
    # Packets of one flow, or of one place, are in order.
    (batch,) = (rows.take(pa.array(order)).combine_chunks() if (np.diff(order) < 0).any() else rows).to_batches()
    with store.create(name) as target, pa.ipc.new_file(target, SHUFFLED) as writer:
        for number, (begin, end) in enumerate(pairwise(bounds.tolist())):
            place_rows = batch.slice(begin, end - begin)
            writer.write_batch(_shuffled(place_rows, again=again and number >= places))
    own = [(int(flows[each]), int(sizes[each])) for each in large]
    return own, np.unique(place[place < places]).tolist()


def _times(rows: pa.Table) -> tuple[Times, list[int], int]:
    """``times``, ``ends`` and ``steps`` of ``ShuffleFile``."""
    segments = rows.select(["ts_us", STRETCH]).filter(rows["note"].is_null()).combine_chunks()
    if not len(segments):
        return Times(), [], 0
    time, stretch = segments["ts_us"], segments[STRETCH]
    steps = stretch[-1].as_py()
    earliest = pc.min(time.filter(pc.equal(stretch, 0))).as_py()
    latest = pc.max(time.filter(pc.equal(stretch, steps))).as_py()
    times = Times(earliest, latest, pc.min(time).as_py(), inside=steps > 0)
    return times, [time[0].as_py(), time[-1].as_py()], steps


def _shuffled(batch: pa.RecordBatch, *, again: bool) -> pa.RecordBatch:
    """Rows of the table ``packets`` as rows of ``SHUFFLED``, if possible without payloads."""
    captured = pc.binary_length(batch["payload"]).cast(pa.int64())
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    if again and batch["note"].null_count == len(batch):
        begin, end = pc.min(batch["position"]), pc.max(pc.add(batch["position"], captured))
        if pc.sum(captured).as_py() >= DENSE * (end.as_py() - begin.as_py()):
            columns |= {"payload": pa.nulls(len(batch), pa.binary()), "captured": captured}
    return pa.record_batch([columns.get(each.name, pa.nulls(len(batch), each.type)) for each in SHUFFLED], SHUFFLED)


def _sizes(rows: pa.Table | pa.RecordBatch) -> np.ndarray:
    """Size of each row in bytes."""
    sizes = pc.binary_length(rows["payload"]).cast(pa.int64())
    if "captured" in rows.schema.names:
        sizes = pc.coalesce(sizes, rows["captured"])
    return pc.fill_null(sizes, 0).to_numpy() + HEADER


def shares(files: Sequence[ShuffleFile], places: int, most: int | None) -> list[Share]:
    """The shares of all tasks; the largest shares come first. A place without packets has no share.

    Args:
        files: all files.
        places: as of ``write_files``.
        most: a flow of at least this many bytes has a task of its own; None for no such task.
    """
    sizes: dict[int, int] = {}
    for file in files:
        for flow, size in file.large:
            sizes[flow] = sizes.get(flow, 0) + size
    long = [flow for flow, size in sizes.items() if most is not None and size >= most]
    long.sort(key=lambda flow: -sizes[flow])
    places_used = {flow % places for flow in sizes.keys() - long}.union(*(file.places for file in files))
    apart = [tuple(flow for flow in long if flow % places == place) for place in range(places)]
    return [
        *(Share(flow % places, flow) for flow in long),
        *(Share(place, None, apart[place]) for place in sorted(places_used)),
    ]


def windows(
    files: Iterable[ShuffleFile], share: Share, attempts: str | os.PathLike[str], places: int, size: int
) -> Iterator[PacketWindow]:
    """The packets of a share, capture by capture, in windows; no packet is older than one in an earlier window.

    Args:
        files: all files.
        share: the flows.
        attempts: the folder of all attempts.
        places: as of ``write_files``.
        size: approximate size of a window in bytes. A window ends with a file, so that packets are not copied.
    """
    store = folder(attempts)
    return _windows(files, lambda file: _read(store, file, share, places), size)


def local_windows(files: Iterable[ShuffleFile], packets: LocalRows, size: int) -> Iterator[PacketWindow]:
    """The packets that a task kept, capture by capture, in windows.

    Args:
        files: the files that the task has written.
        packets: ``local`` of ``write_files``; their rows are removed when they are returned.
        size: as of ``windows``.
    """
    return _windows(files, lambda file: packets.pop(file.name).to_batches(), size)


def _windows(
    files: Iterable[ShuffleFile], read: Callable[[ShuffleFile], list[pa.RecordBatch]], size: int
) -> Iterator[PacketWindow]:
    for capture, group in groupby(
        sorted(files, key=attrgetter("capture", "number", "position")), attrgetter("capture")
    ):
        capture_files = list(group)
        stretch, before, firsts, times = 0, -EVER, list[int](), list[Times]()
        for file in capture_files:
            back = bool(file.ends) and before - file.ends[0] > CLOCK_STEP_US
            firsts.append(stretch + back)
            first, last, earliest, _, inside = file.times
            times.append(Times(first, last, earliest, back, bool(inside)))
            stretch += back + file.steps
            before = file.ends[1] if file.ends else before
        ends = clocks(times)
        pending, total = list[pa.RecordBatch](), 0
        for number, (file, first, clock) in enumerate(zip(capture_files, firsts, ends, strict=True), 1):
            batches = [_later(each, first) for each in read(file)]
            pending += batches
            total += sum(int(_sizes(each).sum()) for each in batches)
            last = number == len(capture_files)
            if last or (total >= FULL * size and clock.may_end):
                rows = pa.Table.from_batches(pending, SHUFFLED)
                yield PacketWindow(capture, rows, clock.latest, clock.later, last, total)
                pending, total = [], 0


def _later(batch: pa.RecordBatch, stretches: int) -> pa.RecordBatch:
    """Rows after further stretches."""
    if not stretches:
        return batch
    place = SHUFFLED.get_field_index(STRETCH)
    return batch.set_column(place, SHUFFLED[place], pc.add(batch[STRETCH], stretches))


def _read(store: Folder, file: ShuffleFile, share: Share, places: int) -> list[pa.RecordBatch]:
    """The rows of a share in a file, which is opened only if it has packets of the share's flow or place."""
    flows = [flow for flow, _ in file.large]
    if share.flow is None:
        own = [flow for flow in flows if flow % places == share.place and flow not in share.apart]
    else:
        own = [share.flow] if share.flow in flows else []
    shared = share.place in file.places and not (own and share.flow is not None)
    if not (own or shared):
        return []
    with store.open(file.name) as source, pa.ipc.open_file(source) as reader:
        batches = [reader.get_batch(places + flows.index(flow)) for flow in own]
        if shared:
            batch = reader.get_batch(share.place)
            if share.flow is not None:
                batch = batch.filter(pc.equal(batch["flow"], share.flow))
            elif share.apart:
                batch = batch.filter(pc.invert(pc.is_in(batch["flow"], pa.array(share.apart))))
            batches.insert(0, batch)
        return batches
