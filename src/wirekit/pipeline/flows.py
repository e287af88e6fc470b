"""Writes the tables from packets that are sorted by flow and time; one flow is in memory at a time.

A flow is all connections between two addresses in one capture, one after the other, in both directions. Its
state stays in this module, unless other bundles have files of the capture.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa

from wirekit.capture.endpoints import address_columns
from wirekit.capture.follow import Flow
from wirekit.capture.links import Item, Link, Missing
from wirekit.capture.tcp import Segment, Settings
from wirekit.conversation import Frame, Quarantined
from wirekit.pipeline.calls import Calls, Emitted
from wirekit.pipeline.carried import Carried, Pair, pair_of
from wirekit.pipeline.ids import frame_id
from wirekit.pipeline.inputs import Job
from wirekit.pipeline.packet_rows import Note
from wirekit.pipeline.rows import Batch, TableRows
from wirekit.pipeline.summary import FileSummary, Summary, failure
from wirekit.tables.columns import FROM_INPUTS, PACKETS, Table
from wirekit.tables.paths import ALL, Step
from wirekit.tables.records import Frames, Row, records
from wirekit.times import day
from wirekit.values import Check, json_text, to_json

PART_BYTES = 1 << 20
"""The most bytes in a row of ``quarantine``; longer pieces have several rows."""
LARGEST_VALUE = 512 << 20
"""The most characters of a value in ``frames``."""


def flow_batches(
    batches: Iterable[pa.RecordBatch],
    job: Job,
    summary: Summary | None = None,
    tables: Mapping[str, Table] = FROM_INPUTS,
    carried: Carried | None = None,
) -> Iterator[Batch]:
    """The rows of all tables from packets.

    Args:
        batches: rows of the table ``packets``, sorted by (flow, ts_us, file_no, position), with all rows of each flow.
        job: the numbered captures, and the choice of protocols.
        summary: receives the counts.
        tables: the tables to return, with their requested columns.
        carried: the state of the capture, if other bundles have files of it.

    Yields:
        (table name, batch of at most about 16 MiB), each as soon as the batch is full.
    """
    writer = Writer(job, Summary() if summary is None else summary, tables)
    for _, rows in groupby(packet_tuples(batches), key=itemgetter(0)):
        yield from writer.flow(rows, carried)
    if carried is not None:
        yield from writer.unseen(carried)
    yield from writer.flush()


def packet_tuples(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    """The rows of the table ``packets`` one by one."""
    names = PACKETS.names
    for batch in batches:
        yield from zip(*(batch.column(name).to_pylist() for name in names), strict=True)


class Writer:
    """Turns items into rows of the tables and counts them.

    Attributes:
        job: the numbered captures, and the choice of protocols.
        summary: the counts.
        arrival: if columns read the capture, the time and the place of the packet that the next items come with.
    """

    def __init__(self, job: Job, summary: Summary, tables: Mapping[str, Table] = FROM_INPUTS) -> None:
        self.job = job
        self._choice = job.choice
        self._settings = Settings(server_ports=job.choice.server_ports)
        self.summary = summary
        self.arrival: tuple[int, int] = (0, 0)
        self._tables = TableRows(tables)
        self._calls: dict[int, Calls] = {}

    def flow(self, rows: Iterable[tuple[Any, ...]], carried: Carried | None = None) -> Iterator[Batch]:
        """Follows one flow to its end, or to the end of the bundle."""
        iterator = iter(rows)
        first = next(iterator)
        name = self.job.capture_name(first[2])
        count = self.summary.file(name)
        segments = self._segments(first, iterator, count)
        pair = None if first[4] is None else pair_of(first[4], first[5])
        try:
            flow = (
                Flow(self._choice, self._settings) if carried is None or pair is None else self._restored(pair, carried)
            )
            for segment in segments:
                for link, item in flow.feed(segment):
                    yield from self.item(name, link, item)
            if pair is not None:
                yield from self.leave(name, pair, flow, carried)
        except Exception as error:
            error.add_note(f"in {name}, between {first[4]} and {first[5]}")
            raise
        yield from self._tables.full()

    def unseen(self, carried: Carried) -> Iterator[Batch]:
        """The rows of flows of a capture that have no packets in the bundle, if they are over."""
        for pair in carried.unseen():
            yield from self.leave(carried.name, pair, self._restored(pair, carried), carried)
        yield from self._tables.full()

    def earlier(self, carried: Carried, pair: Pair) -> Flow | None:
        """The flow between two addresses as earlier bundles stored it, returned once; None if there is none."""
        return self._restored(pair, carried) if pair in carried else None

    def _restored(self, pair: Pair, carried: Carried) -> Flow:
        flow, calls = carried.take(pair)
        if flow.link is not None and calls is not None:
            self._calls[id(flow.link)] = calls
        return flow

    def leave(self, name: str, pair: Pair, flow: Flow, carried: Carried | None) -> Iterator[Batch]:
        """Ends a flow, or stores it for the next bundle."""
        if carried is None or not carried.goes_on:
            yield from self.items(name, flow.finish())
            return
        yield from self.items(name, flow.pass_time(carried.clock_us, carried.idle_us))
        if not carried.keep(pair, flow, self._calls.get(id(flow.link))):
            yield from self.items(name, flow.finish())
            flow.connection = None
            carried.keep(pair, flow, None)
        self._calls.pop(id(flow.link), None)

    def items(self, name: str, items: Iterable[tuple[Link, Item | None]]) -> Iterator[Batch]:
        """Takes items of connections in the named capture, with None at the end of each; returns the full batches."""
        for link, item in items:
            yield from self.item(name, link, item)

    def calls_of(self, name: str, link: Link) -> Calls:
        """The calls of a connection of the named capture."""
        calls = self._calls.get(id(link))
        if calls is None:
            calls = self._calls[id(link)] = Calls(name, link)
        return calls

    def forget(self, link: Link) -> None:
        """Drops the calls of a connection."""
        del self._calls[id(link)]

    def item(self, name: str, link: Link, item: Item | None) -> Iterator[Batch]:
        """Adds one item."""
        self.summary.file(name).count(link, item)
        yield from self._take(name, link, item)
        yield from self._tables.full()

    def flush(self) -> Iterator[Batch]:
        """The rows that are in no full batch."""
        return self._tables.flush()

    def _segments(
        self, first: tuple[Any, ...], rows: Iterator[tuple[Any, ...]], count: FileSummary
    ) -> Iterator[Segment]:
        row: tuple[Any, ...] | None = first
        while row is not None:
            _, ts_us, file_no, position, source, target, sequence, acknowledgment, flags, length, payload, note = row
            if note is None:
                count.count_segment(ts_us)
                yield Segment(
                    ts_us, source, target, sequence, acknowledgment, flags, payload, position, file_no, length
                )
            else:
                self.note(file_no, count, position, length, payload, note)
            row = next(rows, None)

    def note(self, file: int, count: FileSummary, position: int, length: int, payload: bytes, text: str) -> None:
        """Adds a note on a part of a capture without a segment: counts skipped packets, quarantines unread bytes."""
        note = Note.loads(text)
        name, alone = self.job.inputs[file].name, self.job.is_alone(file)
        if note.kind == "skipped":
            count.skipped.update(note.packets)
            return
        if note.retry:
            count.unopened.add(name)
        if note.kind == "unreadable" and alone:
            count.unreadable = note.text
        elif note.kind in ("unreadable", "damaged"):
            count.damage(note.text if alone else f"{name}: {note.text}")
        count.quarantined(note.reason, note.path, length)
        row = {
            "file": name,
            "position": position,
            "length": length,
            "reason": note.reason,
            "path": note.path,
            "error_position": note.error_offset,
            "part": 0,
            "raw": payload if self.job.raw else None,
        }
        self._tables.add("quarantine", row, len(payload))

    def completed(self, name: str, link: Link, item: Item | None) -> tuple[str, Iterable[Emitted]]:
        """The id of the call of a frame, "" for other items; and the rows that an item completes."""
        calls = self.calls_of(name, link)
        if isinstance(item, Frame):
            return calls.frame(item)
        if item is None:
            self.forget(link)
        return "", () if item is not None else calls.end()

    def _take(self, name: str, link: Link, item: Item | None) -> Iterator[Batch]:
        calls = self.calls_of(name, link)
        call_id, emitted = self.completed(name, link, item)
        yield from self._placed(name, link, emitted)
        if isinstance(item, Frame):
            item.messages = []  # they are in the tables; a request may wait for a long time
            failed = failure(item)
            if failed is None and "frames" in self._tables:
                self._frame(name, calls, call_id, item)
            elif failed is not None:
                self._quarantine(name, calls, failed, item.schema)
        elif isinstance(item, Quarantined):
            self._quarantine(name, calls, item, None)
        elif isinstance(item, Missing):
            where = self._where(name, calls, item.side, item.time_us)
            self._tables.add("gaps", {**where, "position": item.offset, "length": item.length, "reason": item.reason})

    def _placed(self, name: str, link: Link, emitted: Iterable[Emitted]) -> Iterator[Batch]:
        """Adds rows of calls and of a connection; yields each full batch, because one frame may have many rows."""
        for table, row, size in emitted:
            row["file"], row["date"] = name, day(row["time"])
            if table in ("calls", "connections"):
                row.update(address_columns(link.client, link.server))
            self._tables.add(table, row, size)
            yield from self._tables.full()

    def _where(self, name: str, calls: Calls, side: str, time_us: int | None) -> Row:
        return {
            "connection_id": calls.connection_id,
            "file": name,
            "date": day(time_us),
            "protocol": calls.link.protocol,
            **address_columns(calls.link.client, calls.link.server),
            "side": side,
            "time": time_us,
        }

    def _frame(self, name: str, calls: Calls, call_id: str, frame: Frame) -> None:
        description, connection = frame.description, calls.connection_id
        bad = () if frame.decoded.clean else frame.decoded.checks
        checks = [check_row(check) for check in bad if check.status == "bad"]
        value = frame_value(frame) if self.job.values else None
        row = {
            "frame_id": frame_id(connection, frame.side, frame.offset),
            "call_id": call_id,
            "connection_id": connection,
            "file": name,
            "date": day(frame.time_us),
            "protocol": frame.protocol,
            "side": frame.side,
            "time": frame.time_us,
            "schema": frame.schema,
            "api": description.api,
            "version": description.version,
            "correlation_id": description.correlation_id,
            "role": description.role,
            "position": frame.offset,
            "length": len(frame.data),
            "checks_bad": len(checks),
            "checks": checks,
            "gaps": [{"position": gap.offset, "length": gap.length} for gap in frame.decoded.gaps],
            "value": value,
        }
        self._tables.add("frames", row, len(value or "") + 64 * len(checks))

    def _quarantine(self, name: str, calls: Calls, piece: Quarantined, schema: str | None) -> None:
        where = self._where(name, calls, piece.side, piece.time_us)
        data = piece.data
        step = PART_BYTES if self.job.raw else max(len(data), 1)
        for part, start in enumerate(range(0, len(data), step)):
            raw = data[start : start + step]
            row = {
                **where,
                "schema": schema,
                "position": piece.offset + start,
                "length": len(raw),
                "reason": piece.reason,
                "path": piece.path,
                "error_position": piece.error_offset,
                "part": part,
                "raw": raw if self.job.raw else None,
            }
            self._tables.add("quarantine", row, len(raw))


def check_row(check: Check) -> Row:
    """An element of the column ``checks``."""
    stored, computed = (None if value is None else _text(value) for value in (check.stored, check.computed))
    return {"path": check.path, "kind": check.kind, "stored": stored, "computed": computed}


def _text(value: Any) -> str:
    """A stored or computed value as text: bytes in hex, numbers in decimal."""
    return value.hex() if isinstance(value, bytes) else str(int(value) if isinstance(value, int) else value)


def frame_value(frame: Frame) -> str | None:
    """The JSON text of a frame's value, without the fields that hold its messages. None if it is too long."""
    value = to_json(frame.value)
    facts = records(frame.protocol).messages(frame.schema, Frames(frame.value))
    for path in facts.payloads if facts is not None else ():
        _leave_out(value, path)
    text = json_text(value)
    return text if len(text) <= LARGEST_VALUE else None


def _leave_out(value: Any, path: tuple[Step, ...]) -> None:
    """Removes a field from plain JSON data."""
    step, inner = path[0], path[1:]
    if step == ALL:
        for item in value if isinstance(value, list) else ():
            _leave_out(item, inner)
    elif isinstance(value, dict) and step in value:
        if inner:
            _leave_out(value[step], inner)
        else:
            del value[step]
