"""Writes the pipeline's tables from a capture, window by window: whole plain connections by the frame index.

Plain connections that extend beyond a window are followed by their bytes, all other connections by their packets. A
window is read in rounds, because columns follow a connection again as soon as nothing of an irregularity is pending.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wirekit.capture.files import Capture, open_capture
from wirekit.capture.links import Item, Link
from wirekit.capture.tcp import Settings
from wirekit.conversation import Conversation, Description, Frame
from wirekit.errors import WireError
from wirekit.pipeline.carried import Carried
from wirekit.pipeline.flows import Batch, Writer
from wirekit.pipeline.inputs import FlowShare, Input, Job
from wirekit.pipeline.packet_rows import damage_rows, note_rows
from wirekit.pipeline.summary import FileSummary, Summary
from wirekit.registry import registry
from wirekit.road.assembly import Assembly
from wirekit.road.begun import Begun, nothing_begun
from wirekit.road.connections import Connections, resumable
from wirekit.road.contents import read_contents
from wirekit.road.deferred import LongFlow
from wirekit.road.events import SIDES
from wirekit.road.index import Index, index_frames, recognised
from wirekit.road.packets import Endpoints, Packets
from wirekit.road.streams import REASONS, Streams, put_together
from wirekit.road.windows import WINDOW, Window, read_windows
from wirekit.tables.columns import CONNECTIONS, Table

ROUND = 500
"""A round is small if columns read fewer packets in it; it costs more than it saves."""
SHARE = 512
"""A round is also small if columns read fewer than one in ``SHARE`` packets of it."""
MOST_PARTS, MOST_SMALL_PARTS = 8, 2
"""How often columns follow connections again in a window after an irregular frame; and how often if the frames before
it are few."""
LEAST_FRAMES, SMALL_PART = 200, 25
"""The fewest frames of such connections for which that pays; and the number below which the frames before the irregular
ones are few."""
MOST_SMALL = 4
"""The number of small rounds after which objects read the rest of a window, so that the time is linear."""
RELEASING = 2
"""The number of windows after which unused memory is returned to the system, against fragmentation."""
_TIME = pa.timestamp("us", "UTC")
_WORTH_COMPRESSING = 200  # rows; a compressor costs some milliseconds, whatever their number
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="zstd")


def captured(
    files: Sequence[Input],
    job: Job,
    summary: Summary,
    tables: Mapping[str, Table],
    progress: Callable[[int], object] | None = None,
    window: int = WINDOW,
    *,
    most_late: int | None = None,
    writer: Writer | None = None,
    carried: Carried | None = None,
    flows: FlowShare | None = None,
    assembly: Callable[..., Assembly] = Assembly,
) -> Iterator[Batch] | None:
    """The tables of one capture; None if objects must read it: packets follow damage, or a file cannot be read.

    Args:
        files: its files, in order.
        job: the choice of protocols.
        summary: receives the counts.
        tables: the tables to return, with their requested columns.
        progress: called with the number of bytes read so far.
        window: approximate number of bytes processed at once.
        most_late: as for ``read_windows``.
        writer: receives the items that objects read; by default they become rows of the same tables.
        carried: the state of the capture, if other bundles have files of it.
        flows: the flows to read; the first share has the notes on packets without a segment as well. None for all.
        assembly: creates the batches from the frames that columns read; by default those of the tables.
    """
    with ExitStack() as stack:
        try:
            captures = [stack.enter_context(open_capture(each.path)) for each in files]
        except (OSError, WireError):
            return None
        endpoints = Endpoints()
        windows = read_windows(captures, endpoints, window, most_late=most_late)
        if windows is None:
            return None
        writer = Writer(job, summary, tables) if writer is None else writer
        name = files[0].name if carried is None else carried.name
        numbers = [each.number for each in files]
        capture_tables = CaptureTables(name, numbers, endpoints, job, writer, tables, carried, assembly=assembly)
        return _tables(files, captures, windows, capture_tables, stack.pop_all(), progress, carried, flows)


def _tables(
    files: Sequence[Input],
    captures: Sequence[Capture],
    windows: Iterator[Window],
    capture_tables: CaptureTables,
    stack: ExitStack,
    progress: Callable[[int], object] | None,
    carried: Carried | None,
    flows: FlowShare | None,
) -> Iterator[Batch]:
    with stack:
        number = 0
        while (window := next(windows, None)) is not None:  # ``enumerate`` would keep it while the next is read
            number += 1
            ended = window.last
            if carried is not None:
                window.clock = window.clock if window.set_back else max(window.clock, carried.clock_us)
                carried.clock_us = window.clock
                window.last &= not carried.goes_on
            if flows is not None:
                window.keep(flows)
            for place, (each, capture) in enumerate(zip(files, captures, strict=True)):
                skipped = [packet for at, packet in window.packets.skipped if at == place]
                notes = [row for row, _ in note_rows(each, capture, skipped)]
                if ended and (flows is None or flows.number == 0):
                    notes += [row for row, _ in damage_rows(each, capture)]
                if notes:
                    yield from capture_tables.writer.flow(notes)
            yield from capture_tables.window(window)
            if progress is not None:
                progress(window.done)
            del window
            if number % RELEASING == 0:
                pa.default_memory_pool().release_unused()
        if carried is not None:
            if carried.goes_on:
                yield from capture_tables.leave(carried)
            yield from capture_tables.writer.others(carried)
        yield from capture_tables.writer.flush()


class CaptureTables:
    """Makes the tables of one capture, window by window; connections continue from window to window.

    Attributes:
        writer: takes the items that objects read.

    Args:
        name: the name of the capture.
        files: the number of each of its files.
        endpoints: the addresses with the numbers of endpoints.
        job: the choice of protocols.
        writer: as above.
        tables: the tables to return, with their requested columns.
        carried: the state of the capture, if other bundles have files of it.
        long: stores frames of a flow for other tasks to decode, if the windows have one flow.
        assembly: creates the batches from the frames that columns read.
    """

    def __init__(
        self,
        name: str,
        files: list[int],
        endpoints: Endpoints,
        job: Job,
        writer: Writer,
        tables: Mapping[str, Table],
        carried: Carried | None = None,
        long: LongFlow | None = None,
        assembly: Callable[..., Assembly] = Assembly,
    ) -> None:
        self.writer = writer
        self._assembly = assembly
        self._long = long
        self._name = name
        self._job = job
        self._tables = tables
        self._settings = Settings(server_ports=job.choice.server_ports)
        earlier = None if carried is None else partial(writer.left, carried)
        self._connections = Connections(name, endpoints, job.choice, self._settings, files, writer, earlier)
        self._ends = _Ends(self._connections, writer.summary.file(name))
        self._small_rounds = MOST_SMALL

    def window(self, window: Window) -> Iterator[Batch]:
        """The tables of the next window."""
        packets, clock, connections = window.packets, window.clock, self._connections
        if packets.time.size:
            self.writer.summary.file(self._name).seen_all(packets.time)
        connections.forget_seen()
        self._small_rounds = MOST_SMALL
        rest: Window | None = window
        while rest is not None:
            rest = yield from self._round(rest, first=rest is window)
        passed = min(clock, window.later)
        yield from self._items(connections.ended(passed))
        yield from self._ends.ready(None if window.last else passed)
        if window.last:
            yield from self._read(window, connections.silent())
            yield from self._items(connections.end_unseen())

    def _round(self, window: Window, *, first: bool) -> Generator[Batch, None, Window | None]:
        """The tables of the next packets of each connection; returns a window of the packets after them, or None.

        Columns read a plain connection up to its first irregularity. From there on objects read it: up to a point from
        which columns can follow it in another round, or to the end of the window.
        """
        connections, changes = self._connections, self._long is None and not self._job.values
        streams = put_together(
            window.packets,
            self._settings,
            clock=window.clock,
            last=window.last,
            earlier=connections,
            stretch=window.stretch,
            partly=changes,
        )
        reached, ends, odd = streams.reached, streams.begins[1:], streams.odd
        by_columns, all_packets = int((reached - streams.begins[:-1]).sum()), window.packets.time.size
        self._small_rounds -= not first and by_columns < max(ROUND, all_packets // SHARE)
        again = changes and self._small_rounds > 0 and all_packets - by_columns >= ROUND
        ended = max(window.clock, int(streams.closed.max(initial=0)) + self._settings.hold_us)
        for table, batch in self._read(window, streams, again=again and first):
            if table == CONNECTIONS.name and not window.last and batch.num_rows:
                self._ends.wait(ended, batch)
            else:
                yield table, batch
        cut, plain = np.flatnonzero(~odd & (reached < ends)), np.flatnonzero(~odd & (reached == ends))
        if cut.size:
            connections.keep(streams, cut)
            for flow in cut.tolist():
                yield from self._items(connections.odd(window, streams, flow, again=again))
        if not window.last:
            connections.keep(streams, plain)
        left = np.zeros(all_packets, bool)
        for flow in np.flatnonzero(reached < ends).tolist():
            left[streams.order[reached[flow] : ends[flow]]] = True
        return window.only(left) if left.any() else None

    def leave(self, carried: Carried) -> Iterator[Batch]:
        """Stores the connections for the next bundle, with the rows that late packets may still change."""
        name, writer, connections = self._name, self.writer, self._connections
        for batch in self._ends.left():
            times = [field.type.equals(_TIME) for field in batch.schema]
            columns = [each.cast(pa.int64()) if time else each for each, time in zip(batch.columns, times, strict=True)]
            rows = pa.record_batch(columns, batch.schema.names).to_pylist()
            final = [not connections.take_back(row, writer) for row in rows]
            if any(final):
                yield CONNECTIONS.name, batch.filter(pa.array(final))
        for row in connections.rows:
            yield from writer.items(name, connections.recalled(row))
            yield from writer.leave(name, *connections.leave(row), carried)

    def _items(self, items: Iterable[tuple[Link, Item | None]]) -> Iterator[Batch]:
        return self.writer.items(self._name, items if self._long is None else self._long.seen(items))

    def _read(self, window: Window, streams: Streams, *, again: bool = False) -> Iterator[Batch]:
        """The tables of the connections in a window; ``again``: as for ``Connections.odd``."""
        name, writer, job, connections = self._name, self.writer, self._job, self._connections
        if not streams.odd.size:
            connections.begun(streams)
            return

        reaching = ~streams.odd & (~streams.known | streams.resumed | ~streams.final)
        address = window.packets.endpoints.text
        others = ~(reaching & streams.known & ~streams.resumed)
        protocols = recognised(streams, job.choice, address, others)
        if not job.choice.protocol:
            connections.look_ahead(streams, np.flatnonzero(reaching & ~streams.known & ~streams.resumed))
        begun = nothing_begun()
        if not job.values:
            yield from self._items(connections.begin(streams, np.flatnonzero(reaching), protocols))
            begun = connections.begun(streams)
        index = index_frames(streams, job.choice, address, begun)
        cut = index.cut & ~index.odd
        cut[begun.flows] = False
        index.odd |= cut
        if not job.values:
            fresh = np.flatnonzero(cut & resumable(index.protocols))
            index.odd[fresh] = False
            connections.begin_fresh(streams, fresh, index.protocols)
            begun = connections.begun(streams, begun)
        if self._long is not None:
            frames = self._long.take(name, streams, window.packets.origin, index, begun, address)
            if frames is not None:
                yield from self._items(connections.skip(streams, frames, begun.flows[:0]))
                if not connections.done[0]:
                    yield from self._items(connections.followed(window, streams, 0))
                return

        def by_columns(index: Index, begun: Begun) -> Generator[Batch, None, tuple[NDArray[Any], NDArray[Any]]]:
            with read_contents(streams.stream, index, begun) as contents:
                if job.values:
                    contents.odd[:] = True
                if not contents.odd.all():
                    assembly = self._assembly(name, streams, index, contents, address, begun, self._tables)
                    yield from assembly.batches()
                    assembly.count(writer.summary.file(name))
                    if begun.flows.size:
                        yield from self._items(connections.skip(streams, assembly.followed(), assembly.ended))
            return contents.odd, contents.undecoded

        odd, undecoded = yield from by_columns(index, begun)
        if not job.values:
            whole = _irregular(index, odd) & resumable(index.protocols)
            whole[begun.flows] = False
            if _frames(index, whole) >= LEAST_FRAMES:
                connections.begin_fresh(streams, np.flatnonzero(whole), index.protocols)
                begun = connections.begun(streams, begun)
        parts = _regular_parts(index, begun, odd)
        unusual = [] if job.values else _unusual_beginnings(streams, index, parts)
        followed = {flow: connections.begin_one(streams, flow, index.protocols[flow]) for flow in unusual}
        left = MOST_PARTS
        while True:
            if left > 0 and parts is not None:
                left -= 1 if parts.frames >= SMALL_PART else MOST_PARTS // MOST_SMALL_PARTS
                with streams.shortened(parts.flows, parts.stops):
                    before = index_frames(streams, job.choice, address, parts.begun, whole=False)
                    still_odd, _ = yield from by_columns(before, parts.begun)
                for place in np.flatnonzero(~still_odd[parts.flows]).tolist():
                    flow, places, frame = parts.at(place)
                    followed[flow] = connections.pass_by(streams, flow, places, frame)
            for flow in sorted(followed):
                yield from self._items(followed.pop(flow))
            late = connections.begun(streams)
            if not late.flows.size:
                break
            late_index = index_frames(streams, job.choice, address, late, whole=False)
            late_odd, _ = yield from by_columns(late_index, late)
            parts = _regular_parts(late_index, late, late_odd)
        plain, known = _Plain(streams, index, window.packets), {*begun.flows.tolist()}
        whole = ~odd
        whole[begun.flows] = False
        connections.record_whole(np.flatnonzero(whole))
        for flow in np.flatnonzero(~(whole | connections.done)).tolist():
            hopeless = index.odd[flow] or undecoded[flow] or flow in known
            connection = None if hopeless else plain.connection(flow)
            if connection is not None:
                items = connections.whole(window, flow, *connection)
            elif streams.odd[flow]:
                items = connections.odd(window, streams, flow, again=again)
            else:
                items = connections.followed(window, streams, flow)
            yield from self._items(items)


class _Parts(NamedTuple):
    """The parts of begun connections before their first irregular frame.

    Attributes:
        flows: the connections.
        begun: their state at the beginning.
        stops: (connection, side) the end of the frames before the irregular one in ``Streams.stream``.
        sides, ends: the side of the irregular frame, and its end.
        frames: the number of frames before the irregular ones.
    """

    flows: NDArray[Any]
    begun: Begun
    stops: NDArray[Any]
    sides: NDArray[Any]
    ends: NDArray[Any]
    frames: int

    def at(self, place: int) -> tuple[int, tuple[int, int], tuple[int, int]]:
        """The arguments of ``Connections.pass_by`` for one of the connections."""
        client, server = self.stops[place].tolist()
        return int(self.flows[place]), (client, server), (int(self.sides[place]), int(self.ends[place]))


def _irregular(index: Index, odd: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The connections that a frame makes odd."""
    return odd & (index.irregular < index.kind.size)


def _frames(index: Index, which: NDArray[np.bool_]) -> int:
    """The number of frames of some connections."""
    return int((index.begins[1:] - index.begins[:-1])[which].sum())


def _regular_parts(index: Index, begun: Begun, odd: NDArray[np.bool_]) -> _Parts | None:
    """What columns may read of begun connections that are odd; None if it is too little."""
    carried = np.bincount(begun.carried["connection"], minlength=odd.size)
    own, end = index.begins[:-1] + carried, index.irregular
    chosen, frames = np.zeros(odd.size, bool), np.arange(index.kind.size)
    chosen[begun.flows] = True
    chosen &= _irregular(index, odd) & (own <= end)
    if _frames(index, chosen) < LEAST_FRAMES:
        return None
    flows, connection = np.flatnonzero(chosen), index.connection
    stops = np.zeros((odd.size, len(SIDES)), np.int64)
    stops[begun.flows] = begun.places
    read = np.flatnonzero(chosen[connection] & (own[connection] <= frames) & (frames < end[connection]))
    np.maximum.at(stops, (connection[read], index.side[read]), index.stop[read])
    return _Parts(flows, begun.up_to(flows), stops[flows], index.side[end[flows]], index.stop[end[flows]], read.size)


def _unusual_beginnings(streams: Streams, index: Index, parts: _Parts | None) -> list[int]:
    """Connections with an undeclared frame, such as a SASL token, that columns may follow after it."""
    plain = index.odd & ~streams.odd & streams.known & ~streams.resumed
    if parts is not None:
        plain[parts.flows] = False
    return np.flatnonzero(plain & resumable(index.protocols)).tolist()


class _Ends:
    """Rows of ``connections`` that wait until no late packet, such as a retransmission, changes them.

    Many rows are compressed.
    """

    def __init__(self, connections: Connections, count: FileSummary) -> None:
        self._connections = connections
        self._count = count
        self._waiting: deque[tuple[int, pa.Buffer | pa.RecordBatch]] = deque()

    def wait(self, clock: int, batch: pa.RecordBatch) -> None:
        """Adds the rows of connections that ended before a time."""
        if batch.num_rows < _WORTH_COMPRESSING:
            self._waiting.append((clock, batch))
            return
        stored = pa.BufferOutputStream()
        with pa.ipc.new_stream(stored, batch.schema, options=_COMPRESSED) as writer:
            writer.write_batch(batch)
        self._waiting.append((clock, stored.getvalue()))

    def left(self) -> Iterator[pa.RecordBatch]:
        """Removes the waiting rows; returns them, corrected by the late packets so far."""
        while self._waiting:
            yield self._corrected(self._waiting.popleft()[1])

    def ready(self, clock: int | None) -> Iterator[Batch]:
        """Removes the rows that are final at a time, or at the end of the capture; returns them."""
        while self._waiting and (clock is None or clock > self._waiting[0][0] + Settings().patience_us):
            yield CONNECTIONS.name, self._corrected(self._waiting.popleft()[1])

    def _corrected(self, stored: pa.Buffer | pa.RecordBatch) -> pa.RecordBatch:
        batch = stored if isinstance(stored, pa.RecordBatch) else pa.ipc.open_stream(stored).read_next_batch()
        late = self._connections.late
        places = (
            [place for place, each in enumerate(batch["connection_id"].to_pylist()) if each in late] if late else []
        )
        for place in places:
            for (side, fate), size in late.pop(batch["connection_id"][place].as_py()).items():
                self._count.bytes[fate] += size
                number = batch.schema.get_field_index(f"{side}_{fate}")
                values = batch.column(number).to_pylist()
                values[place] += size
                batch = batch.set_column(number, batch.schema[number], pa.array(values, batch.schema[number].type))
        return batch


class _Plain:
    """Plain connections as objects: made from the index, or from their bytes if a frame is unusual."""

    def __init__(self, streams: Streams, index: Index, packets: Packets) -> None:
        self._streams, self._index, self._endpoints = streams, index, packets.endpoints

    def connection(self, flow: int) -> tuple[Link, list[Frame]] | None:
        """A connection with its items; None if a frame does not decode, or a request without response has one."""
        streams, index = self._streams, self._index
        begin, end = int(index.begins[flow]), int(index.begins[flow + 1])
        if any(index.kinds[kind].particular for kind in np.unique(index.kind[begin:end]).tolist()):
            return None
        link = self._link(flow)
        link.protocol = index.protocols[flow]
        link.closed_us, link.closed = int(streams.closed[flow]), REASONS[streams.reason[flow]]
        frames = self._frames(flow, begin, end)
        if len(frames) < end - begin:
            return None
        for side, name in enumerate(SIDES):
            framed = int(streams.stops[flow, side] - streams.starts[flow, side])
            again = int(streams.duplicates[flow, side])
            for fate, size in {"captured": framed + again, "frames": framed, "duplicate": again}.items():
                if size:
                    link.count(name, fate, size)
        return link, frames

    def _link(self, flow: int) -> Link:
        streams = self._streams
        client, server = (self._endpoints.text(int(ends[flow])) for ends in (streams.client, streams.server))
        opened_us = int(streams.opened[flow])
        return Link(f"{client}>{server}#0", client, server, opened_us, bool(streams.known[flow]), opened_us)

    def _frames(self, flow: int, begin: int, end: int) -> list[Frame]:
        """The frames up to the first unusual one."""
        streams, index = self._streams, self._index
        frames: list[Frame] = []
        if begin == end:
            return frames
        name = index.protocols[flow]
        conversation = Conversation(name)
        first = streams.starts[flow].tolist()
        columns = (index.side, index.start, index.stop, index.time, index.kind, index.number, index.version)
        rows = zip(*(column[begin:end].tolist() for column in (*columns, index.request)), strict=True)
        for side, start, stop, time_us, which, number, version, asked in rows:
            kind = index.kinds[which]
            request = frames[asked - begin] if asked >= 0 else None
            if request is not None and not request.description.answered:
                break
            layout, api, context = kind.layout, kind.api, {}
            known = kind.version if isinstance(kind.version, int) else version if kind.version else None
            if request is not None:
                api = api or request.description.api
                layout = layout or index.kinds[index.kind[asked]].answer
                known = known if kind.version is not None or kind.api else request.description.version
                if kind.context and request.description.version:
                    context = {kind.context: request.description.version}
            frame = conversation.paired(
                SIDES[side],
                streams.stream[start:stop].tobytes(),
                offset=start - first[side],
                time_us=time_us,
                key=registry.protocol(name).key(layout),
                context=context,
                description=Description(api, known, number if kind.number else None, kind.role),
                request=request,
            )
            if frame.decoded.error is not None or frame.decoded.gaps:
                break
            if kind.silent is not None and _value(frame.value, kind.silent[0]) == kind.silent[1]:
                frame.description = frame.description._replace(answered=False)
            frames.append(frame)
        return frames


def _value(record: Any, path: str) -> Any:
    """The value at a path of field names."""
    for name in path.split("."):
        record = record[name]
    return record
