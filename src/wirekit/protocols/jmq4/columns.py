"""The messages in JMQ4's frames as Arrow columns, in both dialects; ``dialogue`` returns the same one by one.

Compressed bodies and batches are left to the dialogue.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirekit.compiler.columns.arrow import integers
from wirekit.protocols.jmq4.attributes import properties_of
from wirekit.schemas.jmq4.message import SYSTEM_CODE
from wirekit.tables.columns import MESSAGES, arrow_type
from wirekit.tables.paths import parse
from wirekit.tables.scopes import Frames, Scope


def produced(frames: Frames) -> pa.RecordBatch:
    """The messages of PRODUCE_MESSAGE (see ``wirekit.tables.Messages``)."""
    return _messages(frames, "payload.topics[]", "payload.topics[].messages[]", stored=False)


def fetched_by_topic(frames: Frames) -> pa.RecordBatch:
    """The messages of FETCH_TOPIC_MESSAGE_ACK."""
    return _messages(frames, "payload.data[]", "payload.data[].messages[]")


def fetched_by_partition(frames: Frames) -> pa.RecordBatch:
    """The messages of FETCH_PARTITION_MESSAGE_ACK."""
    return _messages(frames, "payload.data[]", "payload.data[].partitions[].messages[]")


def _messages(frames: Frames, topics: str, messages: str, *, stored: bool = True) -> pa.RecordBatch:
    scope = Scope(frames, parse(messages))

    def column(name: str) -> pa.Array:
        return scope.path(f"{messages}.{name}").array

    bits = {name: integers(column(f"system_code.{name}")) for name, _, _ in SYSTEM_CODE.fields}
    frames.doubted(frames, np.unique(scope.rows[(bits["compressed"] | bits["batch"]) != 0]))
    attributes = np.zeros(scope.size, np.int64)
    for name, _, shift in SYSTEM_CODE.fields:
        attributes |= bits[name] << shift
    business_id, partition = column("business_id"), column("partition")
    return pa.RecordBatch.from_pydict(
        {
            "@row": pa.array(scope.rows),
            "topic": scope.path(f"{topics}.topic").array,
            "partition": pc.if_else(pc.greater_equal(partition, 0), partition, None),
            "log_offset": column("index") if stored else pa.nulls(scope.size),
            "timestamp_ms": column("send_time"),
            "timestamp_type": pa.repeat("CreateTime", scope.size),
            "key": business_id.cast(pa.binary()),
            "value": pc.fill_null(column("body"), b""),
            "properties": _properties(column("attributes")),
            "attributes": pa.array(attributes),
            "codec": pa.repeat("none", scope.size),
            "crc": column("body_crc"),
            "crc_status": pc.if_else(column("body_crc.ok").is_valid(), "ok", "absent"),
            "producer": column("app"),
            "wire_bytes": column("length"),
        }
    )


def _properties(texts: pa.Array) -> pa.Array:
    """Name and value of each attribute; null for a text that Java refuses."""
    coded = texts.dictionary_encode()
    pairs = [properties_of(text) for text in (*coded.dictionary.to_pylist(), None)]
    places = coded.indices.fill_null(len(coded.dictionary))
    return pa.array(pairs, arrow_type(MESSAGES.types["properties"])).take(places)
