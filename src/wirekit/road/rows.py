"""Segments as rows of the table ``packets``, made of arrays: for flows that objects follow, and for Spark's shuffle."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from wirekit.capture.files import Skipped, open_capture
from wirekit.errors import WireError
from wirekit.pipeline.inputs import Input
from wirekit.pipeline.packet_rows import damage_rows, flow_of, note_rows
from wirekit.pipeline.rows import BATCH_BYTES, BATCH_ROWS, Rows
from wirekit.road.compiled import loop
from wirekit.road.packets import PORT_BITS, Endpoints, Packets, numbered_flows
from wirekit.road.windows import WINDOW, read_windows
from wirekit.tables.columns import PACKETS

if TYPE_CHECKING:
    from numpy.typing import NDArray


def packet_batches(file: Input, ports: frozenset[int], window: int = WINDOW) -> Iterator[pa.RecordBatch] | None:
    """The packets of one file as ``wirekit.pipeline.packets`` gives them; None where the file as a whole is odd.

    Args:
        file: the file.
        ports: if there are any, only segments from or to one of these; the others are counted in a note.
        window: bytes of the file that are treated at once, about.
    """
    try:
        capture = open_capture(file.path)
    except (OSError, WireError):
        return None
    windows = read_windows([capture], Endpoints(), window)
    if windows is None:
        capture.close()
        return None

    def batches() -> Iterator[pa.RecordBatch]:
        with capture:
            skipped: list[Skipped] = []
            others = 0
            for each in windows:
                packets = each.packets
                rows = np.arange(packets.time.size)
                if ports:
                    mask, wanted = (1 << PORT_BITS) - 1, list(ports)
                    here = np.isin(packets.source & mask, wanted) | np.isin(packets.target & mask, wanted)
                    rows = np.flatnonzero(here)
                    others += packets.time.size - rows.size
                skipped += (packet for _, packet in packets.skipped)
                yield from segment_batches(file, packets, rows)
            notes = Rows(PACKETS.schema)
            for row, size in chain(note_rows(file, capture, skipped, others), damage_rows(file, capture)):
                yield from _full(notes.add(row, size))
            yield from _full(notes.flush())

    return batches()


def segment_batches(file: Input, packets: Packets, rows: NDArray[Any]) -> Iterator[pa.RecordBatch]:
    """Some segments of a file, in the order in which they are given; batches of at most about 16 MiB.

    Args:
        file: the file.
        packets: its segments.
        rows: which of them.
    """
    buffer = np.frombuffer(packets.data, np.uint8)
    flow, _, first = numbered_flows(packets)
    text = packets.endpoints.text
    pairs = zip(packets.source[first].tolist(), packets.target[first].tolist(), strict=True)
    hashes = np.array([flow_of(file.capture, text(source), text(target)) for source, target in pairs], np.int64)
    while rows.size:
        sizes = packets.size[rows[:BATCH_ROWS]]
        count = max(1, int(np.searchsorted(np.cumsum(sizes), BATCH_BYTES)))
        part, rows = rows[:count], rows[count:]
        columns = {
            "flow": hashes[flow[part]],
            "ts_us": packets.time[part],
            "file_no": np.full(part.size, file.number),
            "position": packets.position[part],
            "source": _texts(packets.source[part], packets),
            "target": _texts(packets.target[part], packets),
            "sequence": packets.sequence[part],
            "acknowledgment": packets.acknowledgment[part],
            "flags": packets.flags[part],
            "length": packets.length[part],
            "payload": _payloads(buffer, packets.begin[part], packets.size[part]),
            "note": pa.nulls(part.size, pa.string()),
        }
        arrays = [pa.array(columns[field.name]).cast(field.type) for field in PACKETS.schema]
        yield pa.record_batch(arrays, schema=PACKETS.schema)


def _full(batch: pa.RecordBatch | None) -> Iterator[pa.RecordBatch]:
    if batch is not None:
        yield batch


def _texts(numbers: NDArray[Any], packets: Packets) -> pa.Array:
    """Endpoints as texts."""
    unique, which = np.unique(numbers, return_inverse=True)
    return pa.array([packets.endpoints.text(number) for number in unique.tolist()]).take(pa.array(which))


def _payloads(data: NDArray[Any], begin: NDArray[Any], size: NDArray[Any]) -> pa.Array:
    """Byte strings of a buffer."""
    offsets = np.zeros(size.size + 1, np.int32)
    np.cumsum(size, out=offsets[1:])
    content = np.zeros(int(offsets[-1]), np.uint8)
    loop("copy_ranges")(data, begin, size, content)
    return pa.Array.from_buffers(pa.binary(), size.size, [None, pa.py_buffer(offsets), pa.py_buffer(content)])
