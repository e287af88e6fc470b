"""Builds compressed message sets from Arrow columns; the engine itself only writes records one after the other.

A compressed set is the value of a wrapper. All messages in it share one magic, one timestamp type and, if the broker
set the time, one time. A new wrapper therefore begins where one of these changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wirekit.compiler.building import encode_batch, record_batch
from wirekit.compiler.building.from_arrow import input_of
from wirekit.compiler.columns import program
from wirekit.compression import compress
from wirekit.errors import Misuse
from wirekit.protocols.kafka.reading import CODEC_NAMES, LOG_APPEND_TIME, NO_TIMESTAMP
from wirekit.schemas.kafka.messages import COMPRESSIONS

NONE = "none"
MAGIC, OFFSET, TIMESTAMP = "message.magic", "offset", "message.timestamp"
CODEC, TYPE = "message.attributes.codec", "message.attributes.timestamp_type"


def build(key: str, batch: Any, *, codec: str = NONE) -> bytes:
    """Builds a message set or log segment from the rows of a batch.

    Args:
        key: ``kafka.message_set`` or ``kafka.log_segment``.
        batch: columns as returned by ``wirekit.columns``.
        codec: the codec of the messages: ``none``, ``gzip``, ``snappy`` (snappy-java's blocks) or ``lz4`` (in magic 0
            with Kafka's wrong header checksum). The wrapper has the offset of its last message and, from magic 1 on,
            the greatest timestamp; the offsets inside count from its first message. Rows that were read from a wrapper
            (``@wrapper``) have such offsets already and keep them; a new wrapper begins where ``@wrapper`` changes.

    Raises:
        Misuse: for a codec that Kafka does not have, rows that are compressed already, offsets that do not ascend,
            and as ``wirekit.build_columns``.

    >>> import wirekit
    >>> entries = [{"offset": n, "message": {"magic": 1, "timestamp": 5, "value": "6869"}} for n in (7, 8)]
    >>> batch = wirekit.columns("kafka.message_set", wirekit.encode("kafka.message_set", {"messages": entries}))
    >>> packed = wirekit.build_columns("kafka.message_set", batch, codec="gzip")
    >>> wirekit.columns("kafka.message_set", packed)["offset"].to_pylist()
    [0, 1]
    >>> from wirekit.protocols.kafka.columns import messages
    >>> messages(packed)[0]["offset"].to_pylist()
    [7, 8]
    """
    numbers = {name: number for number, name in CODEC_NAMES.items()}
    if codec not in numbers:
        raise Misuse(f"{key}: Kafka has no codec {codec!r}; it has {', '.join(numbers)}")
    batch = record_batch(key, batch)
    if codec == NONE or not batch.num_rows or not {OFFSET, MAGIC} <= set(batch.schema.names):
        return encode_batch(key, batch)
    rows = _Rows(key, batch)
    wrappers: list[dict[str, Any]] = []
    for first, last in rows.runs():
        inside = encode_batch(key, rows.inside(first, last), first=first)
        wrappers.append(rows.wrapper(first, last, numbers[codec], inside))
    names = list(wrappers[0])
    columns = [pa.array([wrapper[name] for wrapper in wrappers], KINDS.get(name)) for name in names]
    return encode_batch(key, pa.RecordBatch.from_arrays(columns, names=names))


KINDS = {"message.value": pa.large_binary(), TIMESTAMP: pa.int64()}


class _Rows:
    """The rows of a batch, and the columns that delimit wrappers."""

    def __init__(self, key: str, batch: pa.RecordBatch) -> None:
        self.key = key
        self.batch = batch
        self.offset = self._numbers(OFFSET, 0)
        self.magic = self._numbers(MAGIC, 0)
        self.times = self._numbers(TIMESTAMP, NO_TIMESTAMP)
        self.types = np.where(self.magic >= 1, self._numbers(TYPE, 0), 0)
        compressed = np.flatnonzero(self._numbers(CODEC, 0))
        if compressed.size:
            text = "it is compressed already; leave out the row, or omit codec="
            raise Misuse(f"{key}: row {compressed[0]}: {CODEC}: {text}")
        wrapper = batch.column("@wrapper") if "@wrapper" in batch.schema.names else pa.nulls(batch.num_rows, pa.int64())
        self.wrapped = wrapper.fill_null(-1).to_numpy(zero_copy_only=False)

    def _numbers(self, name: str, missing: int) -> NDArray[Any]:
        if name not in self.batch.schema.names:
            return np.full(self.batch.num_rows, missing, np.int64)
        column = next(each for each in program(self.key).program.columns if each.path == name)
        array = input_of(self.key, column, self.batch.column(name))
        values = array.values.astype(np.int64)
        return np.where(array.valid != 0, values, missing) if array.valid.size else values

    def runs(self) -> Iterator[tuple[int, int]]:
        """(first row, row after the last one) of each wrapper."""
        delimiters = [self.magic, self.types, self.wrapped, np.where(self.types == LOG_APPEND_TIME, self.times, 0)]
        changes = np.flatnonzero(np.logical_or.reduce([values[1:] != values[:-1] for values in delimiters])) + 1
        yield from zip([0, *changes.tolist()], [*changes.tolist(), self.batch.num_rows], strict=True)

    def inside(self, first: int, last: int) -> pa.RecordBatch:
        """The rows of one wrapper, with their offsets inside it."""
        part = self.batch.slice(first, last - first)
        if self.magic[first] < 1 or self.wrapped[first] >= 0:
            return part
        offsets = self.offset[first:last]
        falls = np.flatnonzero(offsets[1:] < offsets[:-1])
        if falls.size or int(offsets[-1]) - int(offsets[0]) >= 1 << 63:
            row = first + (int(falls[0]) if falls.size else last - first - 2) + 1
            raise Misuse(f"{self.key}: row {row}: {OFFSET}: offsets must ascend inside a wrapper of magic 1")
        at = part.schema.get_field_index(OFFSET)
        valid = part.column(at).is_valid()
        return part.set_column(at, OFFSET, pa.array(offsets - offsets[0], mask=~valid.to_numpy(zero_copy_only=False)))

    def wrapper(self, first: int, last: int, codec: int, inside: bytes) -> dict[str, Any]:
        """The wrapper's columns."""
        magic = int(self.magic[first])
        return {
            OFFSET: int(self.offset[last - 1]),
            MAGIC: magic,
            CODEC: codec,
            TYPE: int(self.types[first]),
            TIMESTAMP: int(self.times[first:last].max()) if magic >= 1 else None,
            "message.value": compress(COMPRESSIONS[magic, codec], inside),
        }
