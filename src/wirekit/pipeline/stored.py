"""Reads files that brokers store into the tables: messages, records embedded in them, and undecodable bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from wirekit import stored
from wirekit.errors import Damaged
from wirekit.pipeline.inputs import Input, Job
from wirekit.pipeline.messages import STORED, embedded_rows, message_row
from wirekit.pipeline.rows import Batch, TableRows
from wirekit.pipeline.summary import FileSummary, Summary
from wirekit.registry import registry
from wirekit.storage import open_binary
from wirekit.stored import Part, Piece, Start, Walked
from wirekit.tables.columns import FROM_INPUTS, GROUP_EVENTS, OFFSETS, Table
from wirekit.tables.records import records
from wirekit.times import EARLIEST_US, LATEST_US

LARGEST_RAW = 1 << 20
TIMES = frozenset(("timestamp", "timestamp_ms", "date"))
EMBEDDED = (GROUP_EVENTS, OFFSETS)
"""The tables with rows from the content of messages."""
CALLED = {"log_offset": "offset", "timestamp_ms": "timestamp", "crc_status": "check"}
"""{column: attribute of ``Message``} where they differ."""

Walks = Callable[[Sequence[int]], Sequence[Walked | None]]
"""Calls ``Protocol.walk`` for stretches of a file whose starts are not known."""


def parts_of(each: Input, walks: Walks | None = None) -> list[Part]:
    """Divides a large stored file into parts that several tasks can read; empty if one task reads the whole file.

    Each part but the last is a stretch, and a walk over it has ended where the next one begins. From the first stretch
    with a damaged record on, one part has all the remaining bytes.

    Args:
        each: the file.
        walks: walks over stretches, several at once; by default one walk begins where the one before has ended.
    """
    name, _, layout = each.kind.partition(".")
    walk = registry.protocol(name).walk(layout)
    if walk is None or not _in_columns(name, layout):
        return []
    stretches = range(-(-each.size // stored.STRETCH) - 1)
    walked_stretches = [None] * len(stretches) if walks is None else walks(stretches)
    starts: list[Start] = []
    for number, walked in zip(stretches, walked_stretches, strict=True):
        start = starts[-1] if starts else None
        if walked is None or start not in (None, walked.start):
            walked = walk(each.path, number, start)  # noqa: PLW2901
        if walked is None:
            break
        starts += [walked.end] if starts else walked
    return [Part(start, end) for start, end in zip(starts, [*starts[1:], None], strict=False)]


def stored_batches(
    each: Input, job: Job, summary: Summary, tables: Mapping[str, Table] = FROM_INPUTS, part: Part | None = None
) -> Iterator[Batch]:
    """The rows of one stored file, by table.

    Args:
        each: the file; its ``kind`` is the key of its layout.
        job: the options: whether ``quarantine`` contains the bytes.
        summary: receives the counts.
        tables: the tables to return, with their requested columns.
        part: the part to read, one of ``parts_of``; by default the whole file.

    Yields:
        (table name, batch), each as soon as the batch is full.
    """
    count = summary.file(each.name)
    collected = TableRows(tables)
    embeds = not tables.keys().isdisjoint(each.name for each in EMBEDDED)
    evaluator = records(each.kind.partition(".")[0])
    pieces = _pieces(each, None if embeds or "messages" not in tables else tables["messages"], part)
    try:
        first = next(pieces, None)
    except OSError as error:
        if part is not None:
            raise
        first = None
        count.unreadable = error.strerror or str(error)
        count.unopened.add(each.name)
        count.quarantined(count.unreadable, "", each.size)
        collected.add("quarantine", _quarantine_row(each, 0, each.size, count.unreadable))
    for piece in chain([] if first is None else [first], pieces):
        for message in piece.messages:
            count.messages[message.protocol] += 1
            count.checks.update(["crc32"] if message.check == "bad" else [])
            size = len(message.key or b"") + len(message.value or b"")
            rows = [("messages", message_row(message, each.name, STORED), size)] if "messages" in tables else []
            for emitted in (*rows, *(embedded_rows(evaluator, message, each.name, STORED) if embeds else ())):
                collected.add(*emitted)
                yield from collected.full()
        if piece.batch is not None:
            if "messages" in tables:
                yield from collected.flush("messages")
                for batch in message_batches(tables["messages"].schema, each.name, piece.batch, piece.fixed):
                    yield "messages", batch
            if embeds and evaluator.holds_rows(piece.fixed.get("topic")):
                for message in piece.all_messages():
                    for emitted in embedded_rows(evaluator, message, each.name, STORED):
                        collected.add(*emitted)
                        yield from collected.full()
            count.messages[piece.fixed["protocol"]] += piece.batch.num_rows
            if "check" in piece.batch.schema.names:
                count.checks["crc32"] += pc.sum(pc.equal(piece.batch["check"], "bad")).as_py() or 0
        for row in _quarantined(each, job, piece, count):
            collected.add("quarantine", row, len(row["raw"] or b""))
            yield from collected.full()
    count.checks = +count.checks
    yield from collected.flush()


def _in_columns(protocol: str, layout: str) -> bool:
    """Whether files of a layout are read in columns."""
    return layout in registry.protocol(protocol).stored_columns and find_spec("numba") is not None


def _pieces(each: Input, table: Table | None, part: Part | None) -> Iterator[Piece]:
    """The pieces of a file; pieces in columns have the columns that a table needs, or all without a table."""
    name, _, layout = each.kind.partition(".")
    columns = _in_columns(name, layout)
    more: tuple[Any, ...] = ()
    if columns and table is not None:
        names = {CALLED.get(name, name) for name in table.names}
        more = (names | {"timestamp"} if "date" in names else names,)
    if part is not None:
        more = (*(more or (None,)), part)
    return registry.protocol(name).reader(layout, columns=columns)(each.path, *more)


def message_batches(schema: pa.Schema, name: str, batch: pa.RecordBatch, fixed: Any) -> Iterator[pa.RecordBatch]:
    """The rows of ``messages`` for a piece's batch, which is halved while a column would be too large.

    Args:
        schema: the requested columns.
        name: the name of the file.
        batch, fixed: the attributes of ``Piece``.
    """
    times = _times_of(batch) if not TIMES.isdisjoint(schema.names) else {}
    value_by_column = {**STORED, **fixed, "file": name, **times}
    present = set(batch.schema.names)
    arrays = []
    for column, kind in zip(schema.names, schema.types, strict=True):
        value = value_by_column.get(column)
        attribute = CALLED.get(column, column)
        if column not in value_by_column and attribute in present:
            value = batch[attribute]
        if value is None:
            value = pa.nulls(batch.num_rows, kind)
        elif not isinstance(value, pa.Array):
            value = value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
            value = pa.repeat(pa.scalar(value, kind), batch.num_rows)
        try:
            arrays.append(value if value.type == kind else value.cast(kind))
        except pa.ArrowInvalid:
            if batch.num_rows < 2:
                raise
            half = batch.num_rows // 2
            yield from message_batches(schema, name, batch.slice(0, half), fixed)
            yield from message_batches(schema, name, batch.slice(half), fixed)
            return
    yield pa.record_batch(arrays, schema=schema)


def _times_of(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    """The columns in ``TIMES``."""
    stamp = batch["timestamp"].view(pa.int64())
    shown = pc.and_(pc.greater_equal(stamp, -(-EARLIEST_US // 1000)), pc.less_equal(stamp, LATEST_US // 1000))
    time = pc.if_else(shown, stamp, pa.scalar(None, pa.int64())).view(pa.timestamp("ms", "UTC"))
    return {"timestamp": time, "timestamp_ms": stamp, "date": time.cast(pa.date32())}


def _quarantined(each: Input, job: Job, piece: Piece, count: FileSummary) -> Iterator[dict[str, Any]]:
    """The undecodable part of a piece: the skipped bytes, or all bytes up to the end if the file ends early."""
    unexplained = "no field explains these bytes"
    ranges = [(gap.offset, gap.length, gap.reason or unexplained, gap.path, gap.offset) for gap in piece.gaps]
    end = piece.offset + piece.length
    damaged = [*piece.damaged, *(Damaged(end - piece.undecoded, piece.undecoded, error) for error in piece.errors)]
    for start, length, error in damaged:
        place = start if error.offset is None or error.source else error.offset
        ranges.append((start, length, error.reason, error.path, place))
    for start, length, reason, path, place in ranges:
        count.quarantined(reason, path, length)
        raw = None
        if job.raw:
            with suppress(OSError), open_binary(each.path) as file:  # the file may be gone meanwhile
                file.seek(start)
                raw = file.read(min(length, LARGEST_RAW))
        yield _quarantine_row(each, start, length, reason) | {"path": path, "error_position": place, "raw": raw}


def _quarantine_row(each: Input, start: int, length: int, reason: str) -> dict[str, Any]:
    return {
        "file": each.name,
        "protocol": each.kind.partition(".")[0],
        "schema": each.kind,
        "position": start,
        "length": length,
        "reason": reason,
        "path": "",
        "error_position": None,
        "part": 0,
        "raw": None,
    }
