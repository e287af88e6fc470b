"""The rows of a batch as named tuples, converted a thousand at a time.

Columns become Python lists, and these are zipped to named tuples. This module knows no layout: it converts any batch.
"""

from __future__ import annotations

import keyword
from collections import namedtuple
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain, repeat
from typing import Any

import pyarrow as pa

from wirekit.compiler.columns.column_names import no_column
from wirekit.compiler.columns.meanings import counted
from wirekit.errors import Misuse

CHUNK = 1024  # rows


def rows(batch: Any, fields: Sequence[str] | None = None) -> Iterator[Any]:
    """The rows of a batch as named tuples.

    Args:
        batch: a ``pyarrow.RecordBatch`` of ``columns``, or a ``Table``.
        fields: the columns to return, in this order; by default all whose names do not begin with ``@``. Fewer are
            faster.

    Returns:
        An iterator. An attribute of a row has the name of its column, with ``_`` for dots and ``scan_`` for ``@``
        (``row.message_key``, ``row.scan_offset``). Values are int, float, bool, bytes, str or None; other types are
        as ``to_pylist`` returns them. Times are integers in the unit of the column.

    Raises:
        Misuse: for a column that the batch lacks, or an object that is not a batch; raised by the call.

    >>> import wirekit
    >>> entries = [{"offset": n, "message": {"magic": 0, "value": "6869"}} for n in (5, 6)]
    >>> batch = wirekit.columns("kafka.message_set", wirekit.encode("kafka.message_set", {"messages": entries}))
    >>> [(row.offset, row.message_value) for row in wirekit.rows(batch)]
    [(5, b'hi'), (6, b'hi')]
    >>> next(wirekit.rows(batch, ["@offset", "message.key"]))
    Row(scan_offset=0, message_key=None)
    """
    if not isinstance(batch, (pa.RecordBatch, pa.Table)):
        raise Misuse(f"pass a RecordBatch or Table, not {type(batch).__name__}")
    names = batch.schema.names
    if isinstance(fields, str):
        raise Misuse(f"fields must be a list of columns, not {fields!r}")
    fields = [name for name in names if not name.startswith("@")] if fields is None else list(fields)
    for name in fields:
        if name not in names:
            raise no_column("the batch", name, names)
        if names.count(name) > 1:
            raise Misuse(f"the batch has {names.count(name)} columns {name!r}")
    return chain.from_iterable(_chunks(batch.select(fields), row_type(tuple(fields))))


@lru_cache(64)
def row_type(columns: tuple[str, ...]) -> Any:
    """The class of the rows with these columns.

    Raises:
        Misuse: two columns would get the same attribute.

    >>> row_type(("message.key", "@length"))._fields
    ('message_key', 'scan_length')
    """
    names = [_attribute(name) for name in columns]
    for name, column in zip(names, columns, strict=True):
        if names.count(name) > 1:
            raise Misuse(f"two columns would be called {name}, one of them {column!r}; choose with fields")
    return namedtuple("Row", names)


def _attribute(column: str) -> str:
    name = column.replace("@", "scan_").replace(".", "_").replace(":", "_")
    if keyword.iskeyword(name) or not name.isidentifier() or name.startswith("_"):
        name = f"column_{name}" if f"column_{name}".isidentifier() else "column"
    return name


def _chunks(batch: Any, kind: Any) -> Iterator[Iterator[Any]]:
    make = partial(tuple.__new__, kind)
    for record_batch in map(counted, batch.to_batches() if isinstance(batch, pa.Table) else [batch]):
        for first in range(0, record_batch.num_rows, CHUNK):
            columns = [column.to_pylist() for column in record_batch.slice(first, CHUNK).columns]
            yield map(
                make, zip(*columns, strict=True) if columns else repeat((), min(CHUNK, record_batch.num_rows - first))
            )
