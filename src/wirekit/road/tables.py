"""Writes the pipeline's tables from a capture, window by window.

A window is read in rounds, because columns follow a connection again as soon as nothing of an irregularity is pending;
``wirekit.road.reading`` reads a round.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial

import numpy as np
import pyarrow as pa

from wirekit.capture.files import Capture, open_capture
from wirekit.capture.tcp import Settings
from wirekit.errors import WireError
from wirekit.pipeline.carried import Carried
from wirekit.pipeline.flows import Writer
from wirekit.pipeline.inputs import FlowShare, Input, Job
from wirekit.pipeline.packet_rows import damage_rows, note_rows
from wirekit.pipeline.rows import Batch
from wirekit.pipeline.summary import FileSummary, Summary
from wirekit.road.assembly import Assembly
from wirekit.road.connections import Connections
from wirekit.road.deferred import LongFlow
from wirekit.road.packets import Endpoints
from wirekit.road.reading import Reader
from wirekit.road.streams import put_together
from wirekit.road.windows import WINDOW, Window, read_windows
from wirekit.tables.columns import CONNECTIONS, SIDES, Table

ROUND = 500
"""A round is small if columns read fewer packets in it; it costs more than it saves."""
SHARE = 512
"""A round is also small if columns read fewer than one in ``SHARE`` packets of it."""
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
            yield from capture_tables.writer.unseen(carried)
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
        self._name = name
        self._changes_road = long is None and not job.values
        self._settings = Settings(server_ports=job.choice.server_ports)
        earlier = None if carried is None else partial(writer.earlier, carried)
        self._connections = Connections(name, endpoints, job.choice, self._settings, files, writer, earlier)
        self._reader = Reader(name, job, self._connections, writer, tables, endpoints.text, long, assembly)
        self._ends = _Ends(self._connections, writer.summary.file(name))
        self._small_rounds = MOST_SMALL

    def window(self, window: Window) -> Iterator[Batch]:
        """The tables of the next window."""
        packets, clock, connections = window.packets, window.clock, self._connections
        if packets.time.size:
            self.writer.summary.file(self._name).seen_all(packets.time)
        connections.begin_window()
        self._small_rounds = MOST_SMALL
        remaining: Window | None = window
        while remaining is not None:
            remaining = yield from self._round(remaining, first=remaining is window)
        passed = min(clock, window.later)
        yield from self._reader.items(connections.ended(passed))
        yield from self._ends.take_final(None if window.last else passed)
        if window.last:
            yield from self._reader.read(window, connections.silent())
            yield from self._reader.items(connections.end_inactive())

    def _round(self, window: Window, *, first: bool) -> Generator[Batch, None, Window | None]:
        """The tables of the next packets of each connection; returns a window of the packets after them, or None.

        Columns read a plain connection up to its first irregularity. From there on objects read it: up to a point from
        which columns can follow it in another round, or to the end of the window.
        """
        connections, changes = self._connections, self._changes_road
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
        for table, batch in self._reader.read(window, streams, again=again and first):
            if table == CONNECTIONS.name and not window.last and batch.num_rows:
                self._ends.wait(ended, batch)
            else:
                yield table, batch
        cut_flows, plain = np.flatnonzero(~odd & (reached < ends)), np.flatnonzero(~odd & (reached == ends))
        if cut_flows.size:
            connections.keep(streams, cut_flows)
            for flow in cut_flows.tolist():
                yield from self._reader.items(connections.odd(window, streams, flow, again=again))
        if not window.last:
            connections.keep(streams, plain)
        kept_packets = np.zeros(all_packets, bool)
        for flow in np.flatnonzero(reached < ends).tolist():
            kept_packets[streams.order[reached[flow] : ends[flow]]] = True
        return window.only(kept_packets) if kept_packets.any() else None

    def leave(self, carried: Carried) -> Iterator[Batch]:
        """Stores the connections for the next bundle, with the rows that late packets may still change."""
        name, writer, connections = self._name, self.writer, self._connections
        for batch in self._ends.take_all():
            times = [field.type.equals(_TIME) for field in batch.schema]
            columns = [each.cast(pa.int64()) if time else each for each, time in zip(batch.columns, times, strict=True)]
            rows = pa.record_batch(columns, batch.schema.names).to_pylist()
            final = [not connections.take_back(row, writer) for row in rows]
            if any(final):
                yield CONNECTIONS.name, batch.filter(pa.array(final))
        for row in connections.rows:
            yield from writer.items(name, connections.recalled(row))
            yield from writer.leave(name, *connections.leave(row), carried)


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

    def take_all(self) -> Iterator[pa.RecordBatch]:
        """Removes the waiting rows; returns them, corrected by the late packets so far."""
        while self._waiting:
            yield self._corrected(self._waiting.popleft()[1])

    def take_final(self, clock: int | None) -> Iterator[Batch]:
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
            captured = sum(batch[f"{side}_captured"][place].as_py() for side in SIDES)
            self._count.without_payload -= not (captured or batch["protocol"][place].as_py())
            for (side, fate), size in late.pop(batch["connection_id"][place].as_py()).items():
                self._count.bytes[fate] += size
                number = batch.schema.get_field_index(f"{side}_{fate}")
                values = batch.column(number).to_pylist()
                values[place] += size
                batch = batch.set_column(number, batch.schema[number], pa.array(values, batch.schema[number].type))
        return batch
