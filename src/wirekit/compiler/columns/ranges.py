"""Decodes frames at given ranges of a buffer, one record in each range, without Python code per frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wirekit.compiler.columns.arrow import batch_of
from wirekit.compiler.columns.column_names import checked
from wirekit.compiler.columns.header_variants import selected_by_header
from wirekit.compiler.columns.plan import Ranges
from wirekit.compiler.columns.programs import Columnar, program
from wirekit.compiler.columns.run import Level, as_array, run
from wirekit.errors import Misuse
from wirekit.registry import registry
from wirekit.wire.stream import Limits

CLEAN, DOUBTFUL, REFUSED = 0, 1, 2


def scan_ranges(
    key: str,
    buffer: Any,
    starts: NDArray[Any],
    ends: NDArray[Any],
    *,
    fields: Sequence[str] | None = None,
    context: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
    prefix: bool = False,
    lengths: Sequence[str] = (),
    verdicts: bool = True,
) -> tuple[pa.RecordBatch, NDArray[Any]]:
    """Decodes one record of a schema in each range of a buffer.

    Compressed data, and records of another layout in a record (a Pulsar batch), are a column of bytes. Errors have no
    explanation here; ``wirekit.decode`` of the range gives it.

    Args:
        key: the key of a schema that is one record, such as a protocol's frame, or a list of records without a header,
            with one record in each range.
        buffer: an object with the buffer protocol and contiguous bytes.
        starts, ends: int64 arrays of one length: ``buffer[starts[i]:ends[i]]`` is a whole frame. Ranges may overlap
            and come in any order.
        fields: paths of the columns to return, each with all columns inside it; by default all. Other columns cost
            almost nothing.
        context: values that the layout takes from the caller, as for ``wirekit.columns``; the same for all ranges.
        limits: the limits of decoding; by default the protocol's.
        prefix: whether bytes may follow the record in its range.
        lengths: paths of byte strings whose length is returned instead: their columns are int64, and no byte is copied.
        verdicts: whether ``states`` reflects all verdicts; otherwise, only those among ``fields``.

    Returns:
        (batch, states). ``states`` is an int8 array with one element per range: ``CLEAN`` (0), a row; ``DOUBTFUL`` (1),
        a row with a bad verdict (``<path>.ok``, see ``verdicts``); ``REFUSED`` (2), no row: the bytes do not decode, or
        bytes follow the record. Row ``n`` of the batch belongs to the n-th range that is not refused:
        ``numpy.flatnonzero(states < REFUSED)`` gives the range of each row. ``@offset`` is an offset in the buffer.
        Times are integers.

    Raises:
        Misuse: the schema has no columns, does not have one of ``fields``, or does not take the context, or a range
            lies outside the buffer.

    >>> import numpy as np, wirekit
    >>> token = wirekit.encode("kafka.sasl_token", {"token": b"abc"})
    >>> starts = np.array([0, 7, 14])
    >>> batch, states = scan_ranges("kafka.sasl_token", token * 2 + b"junk", starts, np.array([7, 14, 18]))
    >>> batch["token"].to_pylist(), states.tolist()
    ([b'abc', b'abc'], [0, 0, 2])
    >>> scan_ranges("kafka.sasl_token", token, starts[:1], starts[1:2], lengths=["token"])[0]["token"].to_pylist()
    [3]
    """
    schema = registry[key]
    if selected_by_header(schema.layout):
        raise Misuse(f"{key}: fields before its records select their layout, and a range has no such fields")
    columnar = program(key, context)
    if columnar.plan.lead:
        raise Misuse(f"{key}: each range must be one record, but the layout has fields before its list of records")
    paths = checked(key, columnar, fields)
    level = _level(buffer, starts, ends, 1)
    measured = frozenset(
        each.slot for each in columnar.program.columns if each.is_bytes and each.coding is None and each.path in lengths
    )
    run(columnar, columnar.plan, level, limits or schema.limits, paths, verdicts=verdicts, measured=measured)
    first = level.arrays["first"]
    decoded = np.append(first[1:], level.rows) - first == 1
    clean = decoded if prefix else decoded & (level.arrays["stopped"] == level.ranges.ends)
    states = np.where(clean, np.int8(CLEAN), np.int8(REFUSED))
    rows = first[clean]
    doubtful = _doubtful(columnar, level)
    if doubtful is not None:
        states[np.flatnonzero(clean)[doubtful[rows]]] = DOUBTFUL
    batch = batch_of(columnar, level, 0, paths, metadata=True)
    return batch if rows.size == level.rows else batch.take(pa.array(rows)), states


def scan_lists(
    key: str,
    buffer: Any,
    starts: NDArray[Any],
    ends: NDArray[Any],
    *,
    fields: Sequence[str] | None = None,
    most: NDArray[Any] | None = None,
) -> tuple[pa.RecordBatch, NDArray[Any], NDArray[Any]]:
    """Decodes all records of a list in each range of a buffer; compressed data is not decompressed.

    Args:
        key: the key of a schema that is a list of records without a header.
        buffer, starts, ends, fields: as for ``scan_ranges``.
        most: for each range, the number of records after which its list is refused, an int64 array.

    Returns:
        (batch, firsts, states). ``firsts[i]`` is the first row of the i-th range, ``firsts[-1]`` the number of rows.
        ``states`` is an int8 array with one element per range: ``CLEAN``; ``DOUBTFUL``, a verdict is bad; ``REFUSED``,
        a record does not decode, or bytes follow the last record, or the last of ``most``.

    Raises:
        Misuse: as for ``scan_ranges``.

    >>> import numpy as np, wirekit
    >>> entry = {"offset": 5, "message": {"magic": 0, "value": "6869"}}
    >>> data = wirekit.encode("kafka.message_set", {"messages": [entry] * 3})
    >>> batch, firsts, states = scan_lists("kafka.message_set", data, np.array([0, 28]), np.array([28, 84]))
    >>> batch["offset"].to_pylist(), firsts.tolist(), states.tolist()
    ([5, 5, 5], [0, 1, 3], [0, 0])
    >>> scan_lists("kafka.message_set", data, np.array([0, 28]), np.array([28, 84]), most=np.array([2, 1]))[2].tolist()
    [0, 2]
    """
    schema = registry[key]
    columnar = program(key)
    if selected_by_header(schema.layout) or columnar.plan.lead or not columnar.plan.path:
        raise Misuse(f"{key} is not a list of records without fields before it")
    paths = checked(key, columnar, fields)
    level = _level(buffer, starts, ends, -1 if most is None else most)
    run(columnar, columnar.plan, level, schema.limits, paths, verdicts=True)
    firsts = np.append(level.arrays["first"], level.rows)
    states = np.where(level.arrays["stopped"] == level.ranges.ends, CLEAN, REFUSED).astype(np.int8)
    failures = np.diff(level.arrays["failed"], append=level.errors)
    if most is not None:  # a range with fewer records has an error at its end
        last = (level.arrays["failed"] + failures - 1)[failures > 0]
        failures[failures > 0] -= level.arrays["error_offset"][last] == level.ranges.ends[failures > 0]
    states[failures != 0] = REFUSED
    doubtful = _doubtful(columnar, level)
    if doubtful is not None:
        bad = level.ranges_of_rows()[doubtful]
        states[bad] = np.maximum(states[bad], DOUBTFUL)
    return batch_of(columnar, level, 0, paths), firsts, states


def _level(buffer: Any, starts: NDArray[Any], ends: NDArray[Any], count: int | NDArray[Any]) -> Level:
    """The level of ranges with at most a number of records each, -1 for any number."""
    data = as_array(buffer)
    starts, ends = (np.ascontiguousarray(each, np.int64) for each in (starts, ends))
    if starts.shape != ends.shape or starts.ndim != 1:
        raise Misuse(f"starts and ends must be arrays of one length, not of shapes {starts.shape} and {ends.shape}")
    if starts.size and (int(starts.min()) < 0 or int(ends.max()) > data.size or (starts > ends).any()):
        raise Misuse(f"each range must lie in the buffer of {data.size} bytes and start before its end")
    ranges = Ranges(starts, ends, np.full(starts.size, count, np.int64))
    return Level(data, ranges, np.zeros(starts.size, np.int64))


def _doubtful(columnar: Columnar, level: Level) -> NDArray[np.bool_] | None:
    """For each row, whether one of its verdicts is bad; None if no verdict is."""
    doubtful: NDArray[np.bool_] | None = None
    for column in columnar.verdicts:
        if f"c{column.slot}" not in level.arrays:
            continue
        count = level.elements(column.within)
        bad = level.arrays[f"c{column.slot}"][:count] == 0
        if column.nullable:
            bad &= level.arrays[f"v{column.slot}"][:count] != 0
        if not bad.any():
            continue
        places = np.flatnonzero(bad)
        for group in column.lists:
            offsets = level.arrays[f"lo{group.number}"][: level.elements(group.within) + 1]
            places = np.searchsorted(offsets, places, side="right") - 1
        doubtful = np.zeros(level.rows, bool) if doubtful is None else doubtful
        doubtful[places] = True
    return doubtful
