"""A capture to the pipeline's tables: plain connections by the frame index, odd flows by objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from wirekit.capture.files import Capture, open_capture
from wirekit.capture.follow import Choice, Follower, Item, Link
from wirekit.capture.tcp import Closed, Data, Duplicate, Event, Settings, Side
from wirekit.conversation import ENDED_INSIDE, Conversation, Description, Frame, Quarantined
from wirekit.errors import WireError
from wirekit.pipeline.flows import Batch, Writer, flow_batches
from wirekit.pipeline.inputs import Input, Job
from wirekit.pipeline.packets import note_rows
from wirekit.pipeline.rows import Rows
from wirekit.pipeline.summary import Summary
from wirekit.registry import registry
from wirekit.road.assembly import Assembly
from wirekit.road.contents import read_contents
from wirekit.road.index import Index, index_frames
from wirekit.road.packets import Packets, read_packets
from wirekit.road.rows import segment_batches
from wirekit.road.streams import REASONS, Streams, put_together
from wirekit.tables.columns import PACKETS

SIDES: tuple[Side, Side] = ("client", "server")


def captured(each: Input, job: Job, summary: Summary, tables: Iterable[str]) -> Iterator[Batch] | None:
    """The tables of one capture; None where the file as a whole is odd: damaged, cut, or not to be read.

    Args:
        each: the capture.
        job: how protocols are chosen.
        summary: is counted up.
        tables: those that are wanted.
    """
    try:
        capture = open_capture(each.path)
    except (OSError, WireError):
        return None
    packets = read_packets(capture)
    if packets is None:
        capture.close()
        return None
    return _tables(each, capture, packets, job, summary, tables)


def _tables(
    each: Input, capture: Capture, packets: Packets, job: Job, summary: Summary, tables: Iterable[str]
) -> Iterator[Batch]:
    choice = job.choice
    with capture:
        data = capture.view()
        streams = put_together(data, packets, Settings(server_ports=frozenset(choice.ports)))
        index = index_frames(streams, choice, packets.endpoints.text)
        writer = Writer(job, summary, tables)
        count = summary.file(each.name)
        plain = _Plain(streams, index, packets)
        contents = read_contents(streams.stream, index)
        if job.values:
            contents.odd[:] = True
        assembly = Assembly(each.name, streams, index, contents, packets.endpoints.text)
        yield from assembly.batches(tables)
        assembly.count(count)
        for flow in np.flatnonzero(~streams.odd).tolist():
            rows = streams.order[streams.begins[flow] : streams.begins[flow + 1]]
            count.seen_all(rows.size, int(packets.time[rows[0]]), int(packets.time[rows[-1]]))
            if not contents.odd[flow]:
                for link, piece in plain.tails(flow):
                    yield from writer.piece(each.name, link, piece)
                continue
            found = None if index.odd[flow] else plain.connection(flow)
            link, items = found or plain.followed(flow, choice)
            yield from writer.connection(each.name, link, items)
        yield from writer.rest()
        yield from flow_batches(_odd(each, capture, data, packets, streams), job, summary, tables)


class _Plain:
    """Plain connections as objects: by the index, or followed from their bytes where they carry what is unusual."""

    def __init__(self, streams: Streams, index: Index, packets: Packets) -> None:
        self._streams, self._index, self._endpoints = streams, index, packets.endpoints
        self._keys = {
            name: {kind.layout: registry.protocol(name).key(kind.layout) for kind in index.kinds}
            for name in {*index.protocols} - {""}
        }

    def connection(self, flow: int) -> tuple[Link, list[Item]] | None:
        """A connection and what it carries; None where a frame does not decode, or is answered without asking."""
        streams, index = self._streams, self._index
        link = self._link(flow)
        link.protocol = index.protocols[flow]
        link.closed_us, link.closed = int(streams.closed[flow]), REASONS[streams.reason[flow]]
        begin, end = int(index.begins[flow]), int(index.begins[flow + 1])
        frames = self._frames(flow, begin, end)
        if len(frames) < end - begin:
            return None
        items: list[Item] = [*frames, *(piece for _, piece in self.tails(flow))]
        for side, name in enumerate(SIDES):
            again = int(streams.duplicates[flow, side])
            tail, stop = int(index.tails[flow, side]), int(streams.stops[flow, side])
            framed, left = tail - int(streams.starts[flow, side]), stop - tail
            sizes = {"captured": framed + left + again, "frames": framed, "quarantined": left, "duplicate": again}
            link.bytes.update({(name, fate): size for fate, size in sizes.items() if size})
        return link, items

    def tails(self, flow: int) -> Iterator[tuple[Link, Quarantined]]:
        """The frames that the connection's end cuts."""
        streams, index = self._streams, self._index
        for side, name in enumerate(SIDES):
            tail, stop = int(index.tails[flow, side]), int(streams.stops[flow, side])
            if tail < stop:
                last = int(streams.times[np.searchsorted(streams.ends, stop)])
                data = streams.stream[tail:stop].tobytes()
                link = self._link(flow)
                link.protocol = index.protocols[flow]
                yield link, Quarantined(name, tail - int(streams.starts[flow, side]), data, last, ENDED_INSIDE)

    def followed(self, flow: int, choice: Choice) -> tuple[Link, Iterator[Item]]:
        """A connection and what a follower makes of its bytes."""
        link = self._link(flow)
        link.protocol = choice.of(link.client, link.server)
        return link, self._items(flow, Follower(link))

    def _link(self, flow: int) -> Link:
        streams = self._streams
        client, server = (self._endpoints.text(int(ends[flow])) for ends in (streams.client, streams.server))
        opened_us = int(streams.opened[flow])
        return Link(f"{client}>{server}#0", client, server, opened_us, bool(streams.known[flow]), opened_us)

    def _items(self, flow: int, follower: Follower) -> Iterator[Item]:
        for _, event in sorted(self._events(flow), key=itemgetter(0)):
            yield from follower.take(event)
        for side in SIDES:
            again = int(self._streams.duplicates[flow, SIDES.index(side)])
            if again:
                follower.take(Duplicate(side, again, 0, 0))
        streams = self._streams
        left = [side for side, name in zip(SIDES, streams.ended[flow, :, 0].tolist(), strict=True) if name < 0]
        if left:
            reason, time_us = REASONS[streams.reason[flow]], int(streams.closed[flow])
            yield from follower.take(Closed("both" if len(left) == 2 else left[0], reason, time_us))

    def _events(self, flow: int) -> Iterator[tuple[int, Event]]:
        """Bytes and ends of both sides, each with its rank."""
        streams = self._streams
        for side, name in enumerate(SIDES):
            first = begin = int(streams.starts[flow, side])
            stop, piece = int(streams.stops[flow, side]), int(streams.pieces[flow, side])
            while begin < stop:
                end, time_us = int(streams.ends[piece]), int(streams.times[piece])
                data = streams.stream[begin:end].tobytes()
                yield int(streams.ranks[piece]), Data(name, data, begin - first, time_us, 0, 0)
                begin, piece = end, piece + 1
            rank, time_us = streams.ended[flow, side].tolist()
            if rank >= 0:
                yield rank, Closed(name, "fin", time_us)

    def _frames(self, flow: int, begin: int, end: int) -> list[Frame]:
        """The frames up to the first that is not usual."""
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


def _odd(
    each: Input, capture: Capture, data: memoryview, packets: Packets, streams: Streams
) -> Iterator[pa.RecordBatch]:
    """Rows of the table ``packets``, sorted as ``flow_batches`` wants them: what is no segment, and the odd flows."""
    rows = Rows(PACKETS.schema)
    for row, size in note_rows(each, capture, packets.skipped):
        batch = rows.add(row, size)
        if batch is not None:
            yield batch
    batch = rows.flush()
    if batch is not None:
        yield batch
    odd = np.repeat(streams.odd, np.diff(streams.begins))
    yield from segment_batches(each, data, packets, streams.order[odd])
