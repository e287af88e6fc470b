"""Encodes values of one schema from columns as a byte string each: the inverse of ``columns.each``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wirekit.compiler.building.assembling import encode_batch
from wirekit.compiler.columns.each import is_list
from wirekit.compiler.columns.programs import program
from wirekit.errors import Misuse


def build_each(
    key: str, batch: pa.RecordBatch, firsts: NDArray[Any], *, context: Mapping[str, Any] | None = None
) -> tuple[pa.Array, dict[int, str]]:
    """A byte string for each value.

    Args:
        key: the key of a schema with columns.
        batch: the rows of all values, with columns as for ``build_columns``. Null in a field that is never null means
            its default, or empty text or bytes. A field with compressed data, or records of another layout, is a column
            of bytes, which are written unchanged.
        firsts: ``firsts[i]`` is the first row of the i-th value, ``firsts[-1]`` the number of rows. A value has one row
            unless the schema is a list.
        context: as for ``build_columns``.

    Returns:
        (binary column, errors): null for a value that cannot be built; the reasons by the number of the value.

    Raises:
        Misuse: the schema cannot be built from columns, or there are no rows.

    >>> batch = pa.RecordBatch.from_pydict({"token": [b"a", None, b"bc"]})
    >>> column, errors = build_each("kafka.sasl_token", batch, np.arange(4))
    >>> column.to_pylist()
    [b'\\x00\\x00\\x00\\x01a', b'\\x00\\x00\\x00\\x00', b'\\x00\\x00\\x00\\x02bc']
    >>> errors
    {}
    """
    contents = program(key, context).program.contents
    if contents is not None:
        path = program(key, context).program.columns[contents.column].path
        if path in batch.schema.names:  # bytes that are written unchanged
            batch = batch.append_column(f"{path}.ok", pa.array(np.zeros(batch.num_rows, bool)))
    built: list[pa.Array] = []
    errors: dict[int, str] = {}
    together = not (is_list(key, context) and program(key, context).plan.lead)
    waiting = [(0, firsts.size - 1)]
    while waiting:
        begin, end = waiting.pop()
        try:
            if together or end - begin < 2:
                built.append(_built(key, batch, firsts[begin : end + 1], context))
                continue
        except Misuse as error:
            if end - begin < 2:
                built.append(pa.nulls(end - begin, pa.binary()))
                errors[begin] = str(error)
                continue
        middle = (begin + end) // 2
        waiting += [(middle, end), (begin, middle)]
    return pa.concat_arrays(built), errors


def _built(key: str, batch: pa.RecordBatch, firsts: NDArray[Any], context: Mapping[str, Any] | None) -> pa.Array:
    first, last = int(firsts[0]), int(firsts[-1])
    rows = batch.slice(first, last - first)
    required = {each.path for each in program(key, context).program.columns if not each.nullable}
    filled = zip(rows.schema.names, rows.columns, strict=True)
    rows = rows.select([name for name, each in filled if each.null_count < len(each) or name not in required])
    ends = np.zeros(rows.num_rows, np.int64)
    data = encode_batch(key, rows, first=first, context=context, ends=ends)
    if firsts.size == 2:
        return pa.array([data], pa.binary())
    offsets = np.concatenate([[0], ends])[firsts - first]
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), firsts.size - 1, buffers)
