"""Capture files to batches of the table ``packets``, by columns or row by row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from wirekit.pipeline.inputs import Input, Split
from wirekit.pipeline.packet_rows import capture_rows
from wirekit.pipeline.roads import LEAST_FOR_COLUMNS, by_columns
from wirekit.pipeline.rows import BATCH_BYTES, Rows
from wirekit.tables.columns import PACKETS, Table


def packet_batches(
    captures: Iterable[Input],
    *,
    ports: frozenset[int] = frozenset(),
    road: str = "auto",
    table: Table = PACKETS,
    split: Split | None = None,
    size: int = BATCH_BYTES,
) -> Iterator[pa.RecordBatch]:
    """The packets of captures, in the order of each file.

    Args:
        captures: the files.
        ports: if there are any, only segments from or to one of these; the others are counted in a note.
        road: as in ``Job``; the rows are the same, those of a file's notes behind the others where columns read it, as
            they do a large file's on either road.
        table: the columns that are wanted.
        split: the part that is wanted of the one file, which is read by columns; None for all of it.
        size: bytes of a batch that is read by columns, about; others have 16 MiB.
    """
    names = table.names
    rows = Rows(PACKETS.schema)
    for capture in captures:
        large = capture.size >= LEAST_FOR_COLUMNS and by_columns(capture.size, compiles=False)
        if split is not None or large or by_columns(capture.size, road):
            from wirekit.road import rows as columns

            batches = columns.packet_batches(capture, ports, table=table, split=split, size=size)
            if batches is not None:
                yield from batches
                continue
        for row, bytes_of_row in capture_rows(capture, ports):
            batch = rows.add(row, bytes_of_row)
            if batch is not None:
                yield batch.select(names)
    batch = rows.flush()
    if batch is not None:
        yield batch.select(names)
