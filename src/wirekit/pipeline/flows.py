"""Packets, sorted by flow and time, to the tables; one flow in memory at a time.

A flow is both directions between two addresses in one capture, of one file or of several, with all their connections
one after the other. Its state lives and dies here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa

from wirekit.capture.follow import Item, Link, Missing, follow
from wirekit.capture.tcp import Segment
from wirekit.conversation import Frame, Message, Quarantined
from wirekit.pipeline.inputs import Job
from wirekit.pipeline.packets import Note
from wirekit.pipeline.rows import Rows
from wirekit.pipeline.summary import FileSummary, Summary, failure
from wirekit.pipeline.tables import FATES, OUTPUTS, PACKETS, SIDES, in_years, message_row
from wirekit.values import json_text, to_json

PART_BYTES = 1 << 20
LARGEST_VALUE = 512 << 20

Batch = tuple[str, pa.RecordBatch]


def flow_batches(batches: Iterable[pa.RecordBatch], job: Job, summary: Summary | None = None) -> Iterator[Batch]:
    """The tables of packets.

    Args:
        batches: rows of the table ``packets``, sorted by (flow, ts_us, file_no, offset); all rows of a flow.
        job: the captures by number, and how protocols are chosen.
        summary: is counted up.

    Yields:
        (table name, batch of about 16 MiB or less), each as soon as it is full.
    """
    writer = _Writer(job, Summary() if summary is None else summary)
    for _, rows in groupby(_rows(batches), key=itemgetter(0)):
        yield from writer.flow(rows)
    yield from writer.rest()


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    names = PACKETS.schema.names
    for batch in batches:
        yield from zip(*(batch.column(name).to_pylist() for name in names), strict=True)


class _Writer:
    """Turns items into rows of the tables and counts them."""

    def __init__(self, job: Job, summary: Summary) -> None:
        self._job = job
        self._choice = job.choice
        self._summary = summary
        self._tables = {name: Rows(table.schema) for name, table in OUTPUTS.items()}
        self._ready: list[Batch] = []

    def flow(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[Batch]:
        """Follows one flow to its end."""
        iterator = iter(rows)
        first = next(iterator)
        name = self._job.capture_of(first[2]).name
        count = self._summary.file(name)
        segments = self._segments(first, iterator, count)
        addresses = f"{first[4]} and {first[5]}"
        try:
            for link, item in follow(segments, self._choice):
                count.count(link, item)
                self._take(name, link, item)
                if self._ready:
                    yield from self._drain()
        except Exception as error:
            error.add_note(f"in {name}, between {addresses}")
            raise
        yield from self._drain()

    def rest(self) -> Iterator[Batch]:
        """The rows that no full batch has taken."""
        for name, rows in self._tables.items():
            batch = rows.flush()
            if batch is not None:
                yield name, batch

    def _drain(self) -> Iterator[Batch]:
        ready, self._ready = self._ready, []
        yield from ready

    def _add(self, table: str, row: tuple[Any, ...], size: int = 0) -> None:
        batch = self._tables[table].add(row, size)
        if batch is not None:
            self._ready.append((table, batch))

    def _segments(
        self, first: tuple[Any, ...], rest: Iterator[tuple[Any, ...]], count: FileSummary
    ) -> Iterator[Segment]:
        row: tuple[Any, ...] | None = first
        while row is not None:
            _, ts_us, file_no, offset, source, target, sequence, acknowledgment, flags, length, payload, note = row
            if note is None:
                count.seen(ts_us)
                yield Segment(ts_us, source, target, sequence, acknowledgment, flags, payload, offset, file_no, length)
            else:
                self._note(file_no, count, offset, length, payload, note)
            row = next(rest, None)

    def _note(self, file: int, count: FileSummary, offset: int, length: int, payload: bytes, text: str) -> None:
        """What in a capture is no segment: skipped packets are counted, bytes that nobody read are quarantined."""
        note = Note.loads(text)
        name, alone = self._job.inputs[file].name, self._job.is_alone(file)
        if note.kind == "skipped":
            count.skipped.update(note.packets)
            return
        if note.kind == "unreadable" and alone:
            count.unreadable = note.text
        elif note.kind in ("unreadable", "damaged"):
            count.damage(note.text if alone else f"{name}: {note.text}")
        count.quarantined(note.reason, note.path, length)
        raw = payload if self._job.raw else None
        where = (name, None, None, None, None, None, None, None, offset, length)
        self._add("quarantine", (*where, note.reason, note.path, note.error_offset, 0, raw), len(payload))

    def _take(self, name: str, link: Link, item: Item | None) -> None:
        if isinstance(item, Frame):
            for message in item.messages:
                self._message(name, link, item, message)
            failed = failure(item)
            if failed is None:
                self._frame(name, link, item)
            else:
                self._quarantine(name, link, failed, item.schema)
        elif isinstance(item, Quarantined):
            self._quarantine(name, link, item, None)
        elif isinstance(item, Missing):
            self._gap(name, link, item)
        else:
            self._connection(name, link)

    def _frame(self, name: str, link: Link, frame: Frame) -> None:
        what = frame.description
        value: str | None = json_text(to_json(frame.value))
        if value is not None and len(value) > LARGEST_VALUE:
            value = None
        checks = json_text([check.to_json() for check in frame.decoded.checks])
        gaps = json_text([gap.to_json() for gap in frame.decoded.gaps])
        row = (
            name,
            link.name,
            *link.addresses(frame.side),
            frame.side,
            in_years(frame.time_us),
            frame.protocol,
            frame.schema,
            what.api,
            what.version,
            what.correlation_id,
            what.role,
            frame.offset,
            len(frame.data),
            frame.latency_us,
            sum(check.status == "bad" for check in frame.decoded.checks),
            checks,
            gaps,
            value,
        )
        self._add("frames", row, len(value or "") + len(checks) + len(gaps))

    def _message(self, name: str, link: Link, frame: Frame, message: Message) -> None:
        row = message_row(message, name, link.name, frame.time_us, frame.side)
        self._add("messages", row, len(message.key or b"") + len(message.value or b""))

    def _quarantine(self, name: str, link: Link, piece: Quarantined, schema: str | None) -> None:
        data = piece.data
        step = PART_BYTES if self._job.raw else max(len(data), 1)
        for part, start in enumerate(range(0, len(data), step)):
            raw = data[start : start + step]
            row = (
                name,
                link.name,
                *link.addresses(piece.side),
                piece.side,
                in_years(piece.time_us),
                link.protocol,
                schema,
                piece.offset + start,
                len(raw),
                piece.reason,
                piece.path,
                piece.error_offset,
                part,
                raw if self._job.raw else None,
            )
            self._add("quarantine", row, len(raw))

    def _gap(self, name: str, link: Link, gap: Missing) -> None:
        where = (name, link.name, *link.addresses(gap.side), gap.side, in_years(gap.time_us), link.protocol)
        self._add("gaps", (*where, gap.offset, gap.length, gap.reason))

    def _connection(self, name: str, link: Link) -> None:
        row = (
            name,
            link.name,
            link.client,
            link.server,
            in_years(link.opened_us),
            in_years(link.closed_us),
            link.closed,
            link.protocol,
            link.known_start,
            *(link.bytes[side, fate] for side in SIDES for fate in FATES),
        )
        self._add("connections", row)
