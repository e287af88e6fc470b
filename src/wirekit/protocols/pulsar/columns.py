"""The messages in Pulsar's SEND and MESSAGE as Arrow columns; ``dialogue`` returns the same one by one.

Cipher text is one message, as in ``dialogue``. Chunks, markers, compacted batches and acknowledgments inside batches
are left to the dialogue.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wirekit.compiler.columns.arrow import integers
from wirekit.compiler.columns.ranges import CLEAN, scan_lists
from wirekit.compiler.costs import cost_of_elements
from wirekit.compiler.generated import by_key
from wirekit.errors import WireError
from wirekit.protocols.pulsar.dialogue import SIZE_BYTES, SOURCE_POSITION, decoded_key
from wirekit.protocols.pulsar.tables import SINGLE
from wirekit.registry import registry
from wirekit.schemas.pulsar.frame import CODECS, SINGLE_METADATA
from wirekit.tables.columns import MESSAGES, arrow_type
from wirekit.tables.conversion import fitted
from wirekit.tables.scopes import Frames, Opened, Scope, Values, refuse_crowds
from wirekit.wire.costs import EXTRAS, MOST_OF_A_BYTE
from wirekit.wire.stream import Allowance

COMPRESSIONS = {0: "none", 1: "lz4", 2: "zlib", 3: "zstd", 4: "snappy"}
INNER = ("metadata_size", "payload", "metadata.compacted_out", *(f"metadata.{name}" for name in SINGLE))

_cost_of_message = by_key(lambda key: cost_of_elements(registry[key].layout) + SINGLE_METADATA.message.cost + EXTRAS)


def sent(frames: Frames) -> pa.RecordBatch:
    """The messages of SEND commands (see ``wirekit.tables.Messages``)."""
    return _Entries(frames, "").messages()


def delivered(frames: Frames) -> pa.RecordBatch:
    """The messages of MESSAGE commands."""
    return _Entries(frames, "command.message").messages()


class _Entries:
    """Entries of frames.

    Args:
        frames: the frames.
        command: path of the command with the place where an entry is stored; "" without one.
    """

    def __init__(self, frames: Frames, command: str) -> None:
        self.frames, self.command, self.scope = frames, command, Scope(frames)
        self.size = frames.batch.num_rows
        self.limits = registry.protocol("pulsar").limits
        self.lengths = np.asarray(frames.batch.column("@length")).astype(np.int64)
        self.room = self.limits.memory + self.limits.memory_ratio * self.lengths  # of each frame, bytes

    def messages(self) -> pa.RecordBatch:
        """The messages, in order."""
        payloads = self._column("payload")
        regular = np.asarray(payloads.is_valid()) & np.asarray(self._column("metadata_size").is_valid())
        regular &= ~self._unusual(payloads)
        encrypted = np.asarray(self.scope.lengths("entry.metadata.encryption_keys")) > 0
        batched = regular & ~encrypted & np.asarray(self._metadata("num_messages_in_batch").is_valid())
        compression = self._numbers("compression")
        payloads, good = self._decompressed(payloads, regular & ~encrypted & (compression != 0), compression)
        regular, batched = regular & good, batched & good
        alone, outer = np.flatnonzero(regular & ~batched), np.flatnonzero(batched)
        inner, counts = self._batches(payloads, outer)
        outer = np.repeat(outer, counts)
        refuse_crowds(outer)
        index = np.arange(outer.size) - np.repeat(np.cumsum(counts) - counts, counts)
        rows = np.concatenate([alone, outer])
        order = np.argsort(rows, kind="stable")
        rows, take = rows[order], pa.array(order)
        index = np.concatenate([np.full(alone.size, -1), index])[order]
        inside = index >= 0
        single = {name: _joined(self._metadata(name), alone, inner.get(f"metadata.{name}"), take) for name in SINGLE}
        value = _joined(payloads, alone, inner.get("payload"), take)
        lengths = integers(pc.binary_length(value))
        heads = np.zeros(rows.size, np.int64)
        if "metadata_size" in inner:
            heads[inside] = np.asarray(inner["metadata_size"]).astype(np.int64) + SIZE_BYTES
        of_row = pa.array(rows)
        null = _flags(single["null_value"])
        compressed = pa.array(COMPRESSIONS.values()).take(pa.array(compression[rows]))
        checksum, verdict = (self._column(name).take(of_row) for name in ("checksum", "checksum.ok"))
        sequence = single["sequence_id"]
        own = self._metadata("sequence_id").take(of_row)
        return pa.RecordBatch.from_pydict(
            {
                "@row": of_row,
                **self._places(rows, index),
                "timestamp_ms": _fitted(self._metadata("publish_time").take(of_row), "timestamp_ms"),
                "timestamp_type": pa.repeat("PublishTime", rows.size),
                **_event_times(single["event_time"]),
                "key": _keys(single),
                "value": pc.if_else(pa.array(null), pa.scalar(None, pa.binary()), value),
                "properties": _properties(single["properties.key"], single["properties.value"]),
                "codec": compressed,
                "encrypted": pa.array(encrypted[rows]),
                "encryption_keys": _keys_of(self._metadata("encryption_keys.key"), encrypted, rows),
                "batch": pa.array(np.zeros(rows.size, np.int64), mask=~inside),
                "batch_index": pa.array(index.astype(np.int32), mask=~inside),
                "wire_bytes": pa.array(lengths + heads),
                "crc": _fitted(checksum, "crc"),
                "crc_status": pc.if_else(checksum.is_valid(), pc.if_else(verdict, "ok", "bad"), "absent"),
                "producer": self.frames.repeats.repeated(self._metadata("producer_name"), rows),
                "sequence_id": _fitted(pc.coalesce(sequence, own) if sequence.type == own.type else own, "sequence_id"),
            }
        )

    def _column(self, name: str) -> pa.Array:
        return self.scope.path(f"entry.{name}").array

    def _metadata(self, name: str) -> pa.Array:
        return self._column(f"metadata.{name}")

    def _numbers(self, name: str) -> NDArray[Any]:
        return integers(self._metadata(name))

    def _unusual(self, payloads: pa.Array) -> NDArray[Any]:
        """The frames that only the dialogue can read."""
        described = self.lengths - integers(pc.binary_length(payloads))
        unusual = np.asarray(self._metadata("marker_type").is_valid()) | (self._numbers("num_chunks_from_msg") > 1)
        unusual = unusual | (described * MOST_OF_A_BYTE > self.room)
        unusual = unusual | ~np.isin(self._numbers("compression"), list(COMPRESSIONS))
        lists = ["entry.metadata.compacted_batch_indexes"]
        for path in (*lists, *([f"{self.command}.ack_set"] if self.command else [])):
            unusual = unusual | (self.scope.lengths(path) > 0)
        if self.command:
            unusual = unusual | (integers(self.scope.path(f"{self.command}.message_id.partition").array) < -1)
        else:
            unusual[self._replicated()] = True
        self.frames.doubted(self.frames, np.flatnonzero(unusual))
        return np.asarray(unusual)

    def _replicated(self) -> NDArray[Any]:
        """The frames with a position in a source cluster: the receipt has this position, not the sequence id."""
        keys = self._metadata("properties.key")
        if pa.types.is_null(keys.type):
            return np.zeros(0, np.int64)
        offsets = np.asarray(keys.offsets)
        is_position = pc.equal(keys.values.slice(offsets[0], offsets[-1] - offsets[0]), SOURCE_POSITION)
        return np.searchsorted(offsets - offsets[0], np.flatnonzero(np.asarray(is_position)), "right") - 1

    def _decompressed(
        self, payloads: pa.Array, compressed: NDArray[Any], compression: NDArray[Any]
    ) -> tuple[pa.Array, NDArray[Any]]:
        """The payloads, compressed ones decompressed, and a mask of the good ones; the dialogue reads the others."""
        good = np.ones(self.size, bool)
        rows = np.flatnonzero(compressed)
        if not rows.size:
            return payloads, good
        sizes = self._metadata("uncompressed_size")
        plain_sizes = sizes.take(pa.array(rows)).to_pylist()
        pieces: list[bytes | None] = []
        decompressed = Opened()
        for row, data, size in zip(rows.tolist(), payloads.take(pa.array(rows)).to_pylist(), plain_sizes, strict=True):
            allowance = Allowance(self.limits, int(self.lengths[row]))
            try:
                pieces.append(
                    allowance.decompress(CODECS[int(compression[row])], data, size) if size is not None else None
                )
            except WireError:
                pieces.append(None)
            self.room[row] = allowance.room
            decompressed.add(row, len(pieces[-1] or b""))
        failed = rows[[number for number, piece in enumerate(pieces) if piece is None]]
        good[failed] = False
        self.frames.doubted(self.frames, failed)
        places = np.arange(self.size)
        places[rows] = self.size + np.arange(rows.size)
        return pa.concat_arrays([payloads, pa.array(pieces, pa.binary())]).take(pa.array(places)), good

    def _batches(self, payloads: pa.Array, rows: NDArray[Any]) -> tuple[dict[str, pa.Array], NDArray[Any]]:
        """The messages in batches, and the number in each; an incomplete batch has none."""
        if not rows.size:
            return {}, np.zeros(0, np.int64)
        data = payloads.take(pa.array(rows))
        _, offsets, content = data.buffers()
        places = np.frombuffer(offsets, np.int32)[data.offset :][: len(data) + 1].astype(np.int64)
        cost, room = _cost_of_message("pulsar.batch"), np.maximum(self.room[rows], 0)
        batch, firsts, states = scan_lists(
            "pulsar.batch",
            content if content is not None else b"",
            places[:-1],
            places[1:],
            fields=[*INNER, "@gap"],
            most=room // cost + 1,
        )
        counts = np.diff(firsts)
        sums = np.concatenate([[0], np.cumsum(integers(batch.column("metadata_size")))])
        costs = counts * cost + (sums[firsts[1:]] - sums[firsts[:-1]]) * MOST_OF_A_BYTE
        odd = _flags(batch.column("metadata.compacted_out")) | (np.asarray(batch.column("@gap")) != 0)
        good = (states == CLEAN) & (counts == self._numbers("num_messages_in_batch")[rows]) & (costs <= room)
        good[np.repeat(np.arange(rows.size), counts)[odd]] = False
        self.frames.doubted(self.frames, rows[~good])
        return {name: batch.column(name) for name in INNER if name in batch.schema.names}, counts

    def _places(self, rows: NDArray[Any], index: NDArray[Any]) -> dict[str, pa.Array]:
        """The columns with the place where a message is stored."""
        of_row = pa.array(rows)
        last = self._column("broker_entry_metadata.metadata.index")
        if pa.types.is_null(last.type):
            offsets = pa.nulls(rows.size, pa.int64())
        else:
            later = np.where(index >= 0, self._numbers("num_messages_in_batch")[rows] - 1 - index, 0)
            log_offsets = integers(last)[rows] - later
            offsets = pa.array(log_offsets, mask=~np.asarray(last.is_valid())[rows])
        if not self.command:
            return {"log_offset": offsets}
        ids = [self.scope.path(f"{self.command}.message_id.{name}").array for name in ("ledgerId", "entryId")]
        parts = [each.take(of_row).cast(pa.string()) for each in ids]
        identity = pc.binary_join_element_wise(*parts, pa.array(index).cast(pa.string()), ":")
        return {"log_offset": offsets, "message_id": identity}


def _joined(alone: pa.Array, rows: NDArray[Any], inner: pa.Array | None, order: pa.Array) -> pa.Array:
    """Values of entries with a single message and of messages in batches, in the order of all messages."""
    first = alone.take(pa.array(rows))
    if inner is None:
        return first.take(order)
    kind = inner.type if pa.types.is_null(first.type) else first.type
    return pa.concat_arrays([first.cast(kind), inner.cast(kind)]).take(order)


def _flags(array: pa.Array) -> NDArray[Any]:
    return integers(array) != 0


def _fitted(array: pa.Array, column: str) -> pa.Array:
    return fitted(Values(array), MESSAGES.types[column])


def _event_times(array: pa.Array) -> dict[str, pa.Array]:
    """The application's time; 0 means none."""
    columns = {name: _fitted(array, name) for name in ("event_time", "event_time_ms")}
    none = pc.equal(columns["event_time_ms"], 0)
    return {name: pc.if_else(none, pa.scalar(None, times.type), times) for name, times in columns.items()}


def _keys_of(names: pa.Array, encrypted: NDArray[Any], rows: NDArray[Any]) -> pa.Array:
    """The names of the keys that encrypt the payload."""
    kind = arrow_type(MESSAGES.types["encryption_keys"])
    if pa.types.is_null(names.type):
        return pa.nulls(rows.size, kind)
    return pc.if_else(pa.array(encrypted), names, pa.scalar(None, names.type)).take(pa.array(rows)).cast(kind)


def _keys(single: dict[str, pa.Array]) -> pa.Array:
    """Partition keys as bytes."""
    texts = single["partition_key"]
    if pa.types.is_null(texts.type):
        return pa.nulls(len(texts), pa.binary())
    keys = pc.if_else(pa.array(_flags(single["null_partition_key"])), pa.scalar(None, texts.type), texts).cast(
        pa.binary()
    )
    encoded = _flags(single["partition_key_b64_encoded"])
    if not encoded.any():
        return keys
    coded = keys.dictionary_encode()
    decoded = pa.array([decoded_key(key) for key in coded.dictionary.to_pylist()], pa.binary())
    return pc.if_else(pa.array(encoded), decoded.take(coded.indices), keys)


def _properties(names: pa.Array, values: pa.Array) -> pa.Array:
    """Lists of names and values; empty if there are none."""
    kind = arrow_type(MESSAGES.types["properties"])
    if pa.types.is_null(names.type):
        nothing = np.zeros(len(names) + 1, np.int32)
        return pa.ListArray.from_arrays(nothing, pa.nulls(0, kind.value_type))
    offsets = np.asarray(names.offsets)
    pairs = [each.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0])) for each in (names, values)]
    content = pa.StructArray.from_arrays(pairs, fields=list(kind.value_type))
    return pa.ListArray.from_arrays((offsets - offsets[0]).astype(np.int32), content)
