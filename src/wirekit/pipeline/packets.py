"""Turns capture files into batches of the table ``packets``, by columns or row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import pyarrow as pa

from wirekit.capture.files.fragments import Fragments
from wirekit.pipeline.inputs import Input, Split
from wirekit.pipeline.inputs import captures as grouped
from wirekit.pipeline.packet_rows import capture_rows, counted
from wirekit.pipeline.roads import LEAST_FOR_COLUMNS, by_columns, unpacked_size
from wirekit.pipeline.rows import BATCH_BYTES, Rows
from wirekit.tables.columns import PACKETS, Table


def packet_batches(
    files: Iterable[Input],
    *,
    ports: frozenset[int] = frozenset(),
    road: str = "auto",
    table: Table = PACKETS,
    split: Split | None = None,
    size: int = BATCH_BYTES,
    fragments: Fragments | None = None,
) -> Iterator[pa.RecordBatch]:
    """The packets of captures, in the order of each file.

    Args:
        files: the files of the captures, in order.
        ports: if not empty, only segments from or to one of these ports; a note counts the others.
        road: as in ``Job``. The rows are the same; if columns read a file, its notes come after its segments. Columns
            also read large files on the other road.
        table: the columns to return.
        split: the part of the only file to read, by columns; None for the whole file.
        size: approximate size in bytes of a batch that columns read; other batches have 16 MiB.
        fragments: puts the fragments of datagrams together, in each capture.
    """
    names = table.names
    rows, fragments = Rows(PACKETS.schema), Fragments() if fragments is None else fragments
    for capture in grouped(files):
        for file in capture:
            size_of_file = unpacked_size([file])
            large = size_of_file >= LEAST_FOR_COLUMNS and by_columns(size_of_file, compiles=False)
            if split is not None or large or by_columns(size_of_file, road):
                from wirekit.road import rows as columns

                batches = columns.packet_batches(file, ports, table=table, split=split, size=size, fragments=fragments)
                if batches is not None:
                    yield from batches
                    continue
            for row, bytes_of_row in capture_rows(file, ports, fragments):
                batch = rows.add(row, bytes_of_row)
                if batch is not None:
                    yield batch.select(names)
        lost = Counter(each.reason for each in fragments.end())
        for row, bytes_of_row in counted(capture[-1], lost):
            batch = rows.add(row, bytes_of_row)
            if batch is not None:
                yield batch.select(names)
    batch = rows.flush()
    if batch is not None:
        yield batch.select(names)
