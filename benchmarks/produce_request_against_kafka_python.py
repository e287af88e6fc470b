"""How fast is a Produce request v2 with 1,000 messages built, checksums included, next to kafka-python?"""

from __future__ import annotations

from typing import Any

import wirekit
from benchmarks.timing import best

COUNT = 1_000
KEY = "kafka.produce.request.v2"
MESSAGES = [(1_480_000_000_000 + index, f"key-{index:012d}".encode(), bytes(range(32, 112))) for index in range(COUNT)]


def mapping() -> dict[str, Any]:
    """The request as a mapping; lengths and checksums are left to be computed."""
    messages = [
        {
            "offset": index,
            "message": {"magic": 1, "attributes": 0, "timestamp": timestamp, "key": key, "value": value},
        }
        for index, (timestamp, key, value) in enumerate(MESSAGES)
    ]
    partition = {"partition": 0, "record_set": {"messages": messages}}
    body = {"acks": -1, "timeout": 1000, "topic_data": [{"topic": "orders", "data": [partition]}]}
    return {"api_version": 2, "correlation_id": 7, "client_id": "bench", "body": body}


def run() -> tuple[str, list[tuple[str, str]]]:
    """The question, and (label, figure) per contender."""
    from kafka.protocol.producer import ProduceRequest
    from kafka.record.memory_records import MemoryRecordsBuilder

    value = wirekit.from_json(KEY, mapping())
    topic = ProduceRequest.TopicProduceData
    partition = topic.PartitionProduceData

    def records() -> bytes:
        builder = MemoryRecordsBuilder(magic=1, compression_type=0, batch_size=1 << 22)
        for timestamp, key, content in MESSAGES:
            builder.append(timestamp, key, content)
        builder.close()
        return bytes(builder.buffer())

    def theirs() -> bytes:
        data = topic(name="orders", partition_data=[partition(index=0, records=records())])
        request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data])
        request.with_header(correlation_id=7, client_id="bench")
        return bytes(request.encode(version=2, header=True, framed=True))

    assert wirekit.encode(KEY, value, engine="rows") == theirs()
    rows = best(lambda: wirekit.encode(KEY, value, engine="rows"))
    loaded = best(lambda: wirekit.encode(KEY, mapping(), engine="rows"))
    reference = best(lambda: wirekit.encode(KEY, value, engine="reference"))
    peer = best(theirs)
    return (
        str(__doc__),
        [
            ("wirekit rows engine, from records", f"{rows / COUNT * 1e6:.2f} µs a message"),
            ("wirekit rows engine, from a mapping made anew", f"{loaded / COUNT * 1e6:.2f} µs a message"),
            ("wirekit reference engine, from records", f"{reference / COUNT * 1e6:.2f} µs a message"),
            ("kafka-python MemoryRecordsBuilder and ProduceRequest", f"{peer / COUNT * 1e6:.2f} µs a message"),
            ("rows engine from records is faster than kafka-python", f"{peer / rows:.2f} ×"),
            ("rows engine from a mapping is faster than kafka-python", f"{peer / loaded:.2f} ×"),
        ],
    )
