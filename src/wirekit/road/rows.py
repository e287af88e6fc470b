"""Converts arrays of segments to rows of the table ``packets``, for objects and for tasks that share a capture."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wirekit.capture.columns import NO_RECORDS, START, Records, Sections, records
from wirekit.capture.files import Capture, Skipped, open_capture
from wirekit.capture.files.fragments import Fragments
from wirekit.errors import WireError
from wirekit.pipeline.inputs import Input, Split
from wirekit.pipeline.packet_rows import damage_rows, flow_of, note_rows, rows_from
from wirekit.pipeline.rows import BATCH_BYTES, Rows
from wirekit.road.compiled import byte_ranges
from wirekit.road.packets import PORT_BITS, Endpoints, PacketReader, Packets, numbered_flows
from wirekit.road.windows import WINDOW, damaged_only_at_end
from wirekit.tables.columns import PACKETS, Table

_COLUMNS = 128  # bytes of a row besides its payload, about
_ARRAYS = {"flow": ("source", "target"), "position": ("begin",), "payload": ("begin",)}
"""The arrays of ``Packets`` for a column, where the names differ."""


def packet_batches(
    file: Input,
    ports: frozenset[int],
    window: int = WINDOW,
    table: Table = PACKETS,
    split: Split | None = None,
    size: int = BATCH_BYTES,
    fragments: Fragments | None = None,
) -> Iterator[pa.RecordBatch] | None:
    """The rows of the table ``packets`` of one file; None if it cannot be opened.

    Objects read the file from the first part on that has damage before its end, or a packet without a time. The notes
    on the parts before it come after all segments of these parts.

    Args:
        file: the file.
        ports: if not empty, only segments from or to one of these ports; a note counts the others.
        window: approximate number of bytes read at once.
        table: the table, with the requested columns; header fields that these do not need are not read.
        split: the requested part of the file, None for all of it.
        size: bytes of a batch at most, about; no batch has packets of two windows.
        fragments: those of earlier files; receives those at the end. By default, no row counts the latter.

    Raises:
        OSError, WireError: a part is not as it was when the file was split, because another program has changed it.
    """
    try:
        capture = open_capture(file.path)
    except (OSError, WireError):
        if split is not None:
            raise
        return None
    arrays = {array for name in table.names for array in _ARRAYS.get(name, (name,))}
    arrays |= {"source", "target"} if ports else set()
    fragments = Fragments() if fragments is None else fragments
    reader = PacketReader(0, Endpoints(), 0 if split is None else split.start.number, arrays, fragments)

    def batches() -> Iterator[pa.RecordBatch]:
        with capture:
            skipped, other_ports, following = list[Skipped](), 0, -1
            for part in _parts(capture, split, window):
                if isinstance(part, int):
                    following = part
                    break
                packets = reader.segments(part)
                rows = np.arange(packets.time.size)
                if ports:
                    mask, numbers = (1 << PORT_BITS) - 1, list(ports)
                    here = np.isin(packets.source & mask, numbers) | np.isin(packets.target & mask, numbers)
                    rows = np.flatnonzero(here)
                    other_ports += packets.time.size - rows.size
                skipped += (packet for _, packet in packets.skipped)
                yield from segment_batches(file, packets, rows, table, size)
                del part, packets  # before the next are read
            last: Iterator[tuple[tuple[Any, ...], int]]
            if following < 0:
                last = chain(note_rows(file, capture, skipped, other_ports), damage_rows(file, capture))
            else:
                capture.keep()
                last = rows_from(file, capture, ports, following, skipped, other_ports, fragments)
            packet_rows = Rows(PACKETS.schema)
            for row, bytes_of_row in last:
                yield from _full(packet_rows.add(row, bytes_of_row), table)
            yield from _full(packet_rows.flush(), table)

    return batches()


def _parts(capture: Capture, split: Split | None, window: int) -> Iterator[Records | int]:
    """The records of a file, or of a part of it, and then the offset from which objects must read it, if any."""
    errors: list[pa.RecordBatch] = []
    start, end = (START, None) if split is None else (split.start, split.end)
    last, following, reached, sections = NO_RECORDS, 0, 0, Sections()
    for part in records(capture, capture.limits, errors, window, start=start, end=end):
        if split is None and (
            part.rows["time"].null_count
            or sections.are_small(capture, part)
            or (errors and not damaged_only_at_end(capture, part, errors))
        ):
            yield following
            return
        reached = part.begin + len(part.data)
        if part.rows.num_rows:
            following = part.rows["@offset"][-1].as_py() + 1
        last = part._replace(rows=part.rows.select(["@offset"]), data=memoryview(b""))
        yield part
        del part
        if errors and split is None:
            return
    if split is not None:
        if errors or reached < split.end:
            raise OSError(errno.EIO, "was changed while it was read", capture.path)
    elif (capture.incomplete or errors) and not damaged_only_at_end(capture, last, errors):
        yield following


def segment_batches(
    file: Input, packets: Packets, rows: NDArray[Any], table: Table = PACKETS, size: int = BATCH_BYTES
) -> Iterator[pa.RecordBatch]:
    """Some segments of a file in the given order, in batches.

    Args:
        file: the file.
        packets: its segments.
        rows: the numbers of the segments.
        table: the table, with the requested columns.
        size: approximate maximum of bytes in a batch.
    """
    buffer = np.frombuffer(packets.data, np.uint8)
    hashes = _hashes(file, packets) if "flow" in table.names else np.zeros(0, np.int64)
    while rows.size:
        count = max(1, size // _COLUMNS)
        if "payload" in table.names:
            count = max(1, int(np.searchsorted(np.cumsum(packets.size[rows[:count]] + _COLUMNS), size)))
        part, rows = rows[:count], rows[count:]
        columns: dict[str, Callable[[], Any]] = {
            "flow": partial(hashes.take, part),
            "ts_us": partial(packets.time.take, part),
            "file_no": partial(np.full, part.size, file.number),
            "position": partial(packets.position.take, part),
            "source": partial(_texts, packets.source, part, packets),
            "target": partial(_texts, packets.target, part, packets),
            "sequence": partial(packets.sequence.take, part),
            "acknowledgment": partial(packets.acknowledgment.take, part),
            "flags": partial(packets.flags.take, part),
            "length": partial(packets.length.take, part),
            "payload": partial(byte_ranges, buffer, packets.begin[part], packets.size[part]),
            "note": partial(pa.nulls, part.size, pa.string()),
        }
        arrays = [pa.array(columns[field.name]()).cast(field.type) for field in table.schema]
        yield pa.record_batch(arrays, schema=table.schema)


def _hashes(file: Input, packets: Packets) -> NDArray[Any]:
    """The flow of each segment."""
    flow, _, first = numbered_flows(packets)
    text = packets.endpoints.text
    pairs = zip(packets.source[first].tolist(), packets.target[first].tolist(), strict=True)
    return np.array([flow_of(file.capture, text(source), text(target)) for source, target in pairs], np.int64)[flow]


def _full(batch: pa.RecordBatch | None, table: Table) -> Iterator[pa.RecordBatch]:
    if batch is not None:
        yield batch.select(table.names)


def _texts(numbers: NDArray[Any], part: NDArray[Any], packets: Packets) -> pa.Array:
    """The texts of endpoints."""
    unique, which = np.unique(numbers[part], return_inverse=True)
    return pa.array([packets.endpoints.text(number) for number in unique.tolist()]).take(pa.array(which))
