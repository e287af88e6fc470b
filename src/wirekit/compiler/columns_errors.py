"""What did not decode: rows of errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from wirekit.compiler.columns_kernel import Kernel
from wirekit.compiler.columns_run import Level

ERRORS = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("length", pa.int64(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("at", pa.int64(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("depth", pa.int32(), nullable=False),
        pa.field("wrapper", pa.int64()),
    ]
)


NO_ERRORS = pa.RecordBatch.from_pylist([], schema=ERRORS)


def scanned(made: Kernel, level: Level, depth: int, prefix: str = "") -> pa.RecordBatch:
    """The errors that the kernel found at a level; there can be as many as records."""
    arrays, count = level.arrays, level.errors
    which = np.searchsorted(arrays["failed"], np.arange(count), side="right") - 1
    begins = level.begins[which]
    reasons = pa.array(arrays["error_reason"][:count] - 1)

    def told(name: str) -> pa.Array:
        lead = prefix if name == "path" else ""
        return pa.array([lead + getattr(reason, name) for reason in made.reasons], pa.string()).take(reasons)

    found = [
        pa.array(arrays["error_offset"][:count] - begins),
        pa.array(arrays["error_length"][:count]),
        told("kind"),
        told("path"),
        pa.array(arrays["error_at"][:count] - begins),
        told("text"),
        pa.array(np.full(count, depth, np.int32)),
        pa.array(level.roots[which]) if depth else pa.nulls(count, pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(found, schema=ERRORS)


def in_front(level: Level, depth: int) -> Iterator[dict[str, Any]]:
    """What is wrong in front of the records of each range of a level."""
    for index, (path, kind, at, length, reason) in level.ranges.wrong.items():
        place = at - int(level.begins[index])
        yield failure(place, length, kind, path, place, reason, depth, level, index)


def failure(
    offset: int, length: int, kind: str, path: str, at: int, reason: str, depth: int, level: Level, which: int
) -> dict[str, Any]:
    """A row of the errors."""
    wrapper = int(level.roots[which]) if depth else None
    return {
        "offset": offset,
        "length": length,
        "kind": kind,
        "path": path,
        "at": at,
        "reason": reason,
        "depth": depth,
        "wrapper": wrapper,
    }
