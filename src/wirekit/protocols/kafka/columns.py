"""The application messages of message sets as Arrow columns: what ``reading`` gives one by one, for many at once.

The rules for offsets and timestamps are those of ``reading``; here they are applied to whole columns, depth by depth,
as a wrapper's own offset and time must be known before those of what is in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirekit.compiler.columns import scan
from wirekit.protocols.kafka.reading import (
    CODEC_NAMES,
    ENTRY_HEAD,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    SEGMENT,
    ZEROS,
    SegmentFile,
    cut,
)
from wirekit.schemas.kafka.messages import COMPRESSIONS, TIMESTAMP_TYPES
from wirekit.stored import Piece
from wirekit.wire.stream import TOTAL, Limits

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNCOMPRESSED = 0
CODECS = 8  # values of the field
TIME = pa.timestamp("ms", "UTC")


def messages(
    buffer: Any, key: str = "kafka.message_set", *, limits: Limits | None = None
) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """The messages in a message set or log segment: compressed sets opened, offsets absolute, times as they hold.

    Args:
        buffer: the bytes, or anything else that gives them by the buffer protocol.
        key: ``kafka.message_set`` or ``kafka.log_segment``.
        limits: what the bytes may ask for; by default the protocol's.

    Returns:
        A batch with a row a message: ``offset`` (null where it cannot be known: the wrapper's last message is damaged
        or cut, or the sum exceeds 64 bits), ``timestamp`` (UTC, milliseconds; null for magic 0 and for none),
        ``timestamp_type``, ``key``, ``value``, ``attributes``, ``codec`` (of the wrapper, for what was in one), ``crc``
        and ``check`` (ok or bad: the worse of its own verdict and its wrapper's). And the errors, as
        ``wirekit.compiler.columns.scan`` gives them.

    >>> import wirekit
    >>> message = {"offset": 5, "message": {"magic": 1, "timestamp": 1000, "value": "6869"}}
    >>> batch, errors = messages(wirekit.encode("kafka.message_set", {"messages": [message]}))
    >>> [batch[name][0].as_py() for name in ("offset", "value", "codec", "check")]
    [5, b'hi', 'none', 'ok']
    """
    rows, errors = scan(key, buffer, limits=limits, wrappers=True)
    return _messages(rows), errors


def pieces_of_file(path: str) -> Iterator[Piece]:
    """What ``reading.pieces_of_file`` gives, with the messages of each piece in columns.

    A piece in which something is not in order (a record that does not decode or decompress, bytes left over) is read
    by the layout, one by one: errors have one source. So is one without a single good checksum.
    """
    with open(path, "rb") as file:
        segment = SegmentFile(path, file)
        more = True
        while more:
            data = segment.window()
            piece, more = _in_columns(segment, data) or segment.one_by_one(data)
            if piece is not None:
                yield piece


def _in_columns(segment: SegmentFile, data: memoryview) -> tuple[Piece, bool] | None:
    """A window's messages in columns, and whether the segment goes on; None if it must be read one by one."""
    if data[: len(ZEROS)] == ZEROS:
        return None
    data, rows, errors = scanned(segment, data)
    consumed = int(rows.schema.metadata[b"wirekit.consumed"])
    good = not errors.num_rows and not pc.any(pc.not_equal(rows["@gap"], 0)).as_py()
    if not good or not consumed or not pc.any(rows["message.crc.ok"]).as_py():
        return None
    left = data[consumed:]
    whole = rows.num_rows - int(np.count_nonzero(numbers(rows, "@depth")))
    zeros = bytes(left[: len(ZEROS)]) == ZEROS
    if segment.last and not zeros and cut(segment.position + len(data), bytes(left), whole) is not None:
        return None
    segment.search.before = int(numbers(rows, "offset")[numbers(rows, "@depth") == 0][-1])
    fixed = {"protocol": "kafka", "topic": segment.topic, "partition": segment.partition, "schema": SEGMENT}
    size = len(data) if segment.last and not zeros else consumed
    piece = Piece(segment.position, size, batch=_messages(rows, segment.position), fixed=fixed, fits=True)
    segment.take(size)
    return piece, zeros or not segment.last


def scanned(segment: SegmentFile, window: memoryview) -> tuple[memoryview, pa.RecordBatch, pa.RecordBatch]:
    """The messages of a window, with their wrappers: of so much of it as may be opened at once."""
    while True:
        rows, errors = scan(SEGMENT, window, wrappers=True)
        total = errors.filter(pc.match_substring(errors["reason"], TOTAL))
        first = pc.min(pc.coalesce(total["wrapper"], total["offset"])).as_py()
        if not first:
            return window, rows, errors
        window, segment.last = window[:first], False


def _messages(rows: pa.RecordBatch, position: int | None = None) -> pa.RecordBatch:
    """The messages of a scan with wrappers; with the byte of the file where it begins, also the columns of places."""
    offsets, known, times, types = resolved(rows)
    magic, codec = numbers(rows, "message.magic"), numbers(rows, "message.attributes.codec")
    dated = magic >= 1
    attributes = (
        codec
        | numbers(rows, "message.attributes.timestamp_type") << 3
        | numbers(rows, "message.attributes.reserved").astype(np.int32) << 4
    )
    parents = numbers(rows, "@parent", -1)
    inherited = (codec == UNCOMPRESSED) & (parents >= 0)
    codec = np.where(inherited, codec[parents], codec)
    batch = pa.RecordBatch.from_pydict(
        {
            "offset": pa.array(offsets, mask=~known),
            "timestamp": pa.array(times, mask=~dated | (times == NO_TIMESTAMP)).view(TIME),
            "timestamp_type": _named(types, [TIMESTAMP_TYPES(number).symbol or "" for number in (0, 1)], ~dated),
            "key": rows["message.key"],
            "value": rows["message.value"],
            "attributes": pa.array(attributes.astype(np.uint8)),
            "codec": _named(codec, [CODEC_NAMES.get(number, f"codec {number}") for number in range(CODECS)], None),
            "crc": rows["message.crc"],
            "check": _named(verified(rows).astype(np.int32), ["bad", "ok"], None),
            **({} if position is None else _places(rows, position)),
        }
    )
    return batch if rows["@left"].null_count == rows.num_rows else batch.filter(rows["@left"].is_null())


def _places(rows: pa.RecordBatch, position: int) -> dict[str, pa.Array]:
    """Where each message stands: byte of its entry in the file, and for one in a wrapper that and its index."""
    inside = numbers(rows, "@depth") > 0
    places = np.where(inside, numbers(rows, "@wrapper", 0), numbers(rows, "@offset")) + position
    counted = np.cumsum(inside & np.asarray(rows["@left"].is_null()))
    before = np.maximum.accumulate(np.where(inside, 0, counted))
    return {
        "position": pa.array(places.astype(np.int64)),
        "batch": pa.array(places.astype(np.int64), mask=~inside),
        "batch_index": pa.array((counted - before - 1).astype(np.int32), mask=~inside),
        "wire_bytes": pa.array(numbers(rows, "message_size").astype(np.int64) + ENTRY_HEAD),
    }


def numbers(rows: pa.RecordBatch, name: str, missing: int = 0) -> NDArray[Any]:
    """A column as numbers."""
    column = rows[name]
    if column.null_count:
        column = column.fill_null(missing)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _named(numbers: NDArray[Any], names: list[str], missing: NDArray[Any] | None) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(numbers.astype(np.int8), mask=missing), pa.array(names))


def verified(rows: pa.RecordBatch) -> NDArray[Any]:
    """Whether the CRC of every row is good, and those of the wrappers around it.

    False for what cannot be opened, and for a size that names more than the message: the CRC covers all of it.
    """
    good = numbers(rows, "message.crc.ok").astype(bool) & (numbers(rows, "@gap") == 0)
    compressed = np.isin(numbers(rows, "message.attributes.codec"), [codec for _, codec in COMPRESSIONS])
    good &= ~(compressed & np.asarray(rows["@left"].is_null()) & np.asarray(rows["message.value"].is_valid()))
    depths, parents = numbers(rows, "@depth"), numbers(rows, "@parent", -1)
    for depth in range(1, int(depths.max(initial=0)) + 1):
        here = np.flatnonzero(depths == depth)
        good[here] &= good[parents[here]]
    return good


def resolved(rows: pa.RecordBatch) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Absolute offset, whether it is known, timestamp and its type of every row, wrappers included."""
    stored = numbers(rows, "offset")
    offsets = stored.copy()
    known = np.ones(rows.num_rows, bool)
    times = numbers(rows, "message.timestamp", NO_TIMESTAMP).copy()
    types = numbers(rows, "message.attributes.timestamp_type").copy()
    magic, left = numbers(rows, "message.magic"), numbers(rows, "@left", -1)
    depths, parents = numbers(rows, "@depth"), numbers(rows, "@parent", -1)
    last = np.full(rows.num_rows, -1, np.int64)  # the last message in each wrapper
    inside = np.flatnonzero(parents >= 0)
    last[parents[inside]] = inside
    for depth in range(1, int(depths.max(initial=0)) + 1):
        here = np.flatnonzero((depths == depth) & (magic[parents] >= 1))
        wrappers = parents[here]
        above, end = offsets[wrappers], stored[last[wrappers]]
        base = above - end
        fits = ((above ^ end) & (above ^ base)) >= 0  # no sign was lost
        base = np.maximum(base, 0)
        offsets[here] = stored[here] + base
        fits &= ~((stored[here] >= 0) & (offsets[here] < 0))
        known[here] = known[wrappers] & (left[wrappers] == 0) & fits
        within = np.flatnonzero((depths == depth) & (magic[parents] == 0))
        known[within] = True
        types[here] = types[wrappers]
        stamped = here[types[wrappers] == LOG_APPEND_TIME]
        times[stamped] = times[parents[stamped]]
    return offsets, known, times, types
