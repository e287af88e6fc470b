"""Capture files to batches of the table ``packets``, by columns or row by row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.util import find_spec

import pyarrow as pa

from wirekit.compiler.cache import interpreter_is_compiled
from wirekit.pipeline.inputs import Input
from wirekit.pipeline.packet_rows import capture_rows
from wirekit.pipeline.rows import Rows
from wirekit.tables.columns import PACKETS

LEAST_FOR_COLUMNS = 16 << 20
"""Bytes of a capture from which on it takes the road of columns by itself."""

LEAST_COMPILED = 4 << 20
"""The same on a machine that has compiled the interpreter of layouts already."""


def by_columns(size: int, road: str = "auto") -> bool:
    """Whether a capture of so many bytes takes the road of columns; a small one does not pay for its kernels."""
    if road != "auto":
        return road == "columns"
    if size < LEAST_COMPILED or find_spec("numba") is None:
        return False
    return size >= LEAST_FOR_COLUMNS or interpreter_is_compiled()


def packet_batches(
    captures: Iterable[Input], *, ports: frozenset[int] = frozenset(), road: str = "auto"
) -> Iterator[pa.RecordBatch]:
    """The packets of captures, in the order of each file; batches of about 16 MiB.

    Args:
        captures: the files.
        ports: if there are any, only segments from or to one of these; the others are counted in a note.
        road: as in ``Job``; the rows are the same, those of a file's notes in front with ``columns``.
    """
    rows = Rows(PACKETS.schema)
    for capture in captures:
        if by_columns(capture.size, road):
            from wirekit.road import rows as columns

            found = columns.packet_batches(capture, ports)
            if found is not None:
                yield from found
                continue
        for row, size in capture_rows(capture, ports):
            batch = rows.add(row, size)
            if batch is not None:
                yield batch
    batch = rows.flush()
    if batch is not None:
        yield batch
