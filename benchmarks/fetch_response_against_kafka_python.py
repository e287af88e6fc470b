"""How fast is a Fetch response v2 with 1,000 messages read, frame to verified messages, next to kafka-python?"""

from __future__ import annotations

import wirekit
from benchmarks.samples import message_set
from benchmarks.timing import best

COUNT = 1_000
KEY = "kafka.fetch.response.v2"


def response() -> bytes:
    """One topic, one partition, messages of about 140 bytes."""
    messages = wirekit.decode(message_set(COUNT), "kafka.message_set").value
    partition = {"partition": 0, "error_code": 0, "high_watermark": COUNT, "record_set": messages}
    body = {"throttle_time_ms": 0, "responses": [{"topic": "orders", "partition_responses": [partition]}]}
    return wirekit.encode(KEY, {"correlation_id": 7, "body": body})


def run() -> tuple[str, list[tuple[str, str]]]:
    """The question, and (label, figure) per contender."""
    from kafka.protocol.consumer import FetchResponse
    from kafka.record import MemoryRecords

    data = response()

    def ours(engine: str) -> None:
        decoded = wirekit.decode(data, KEY, engine=engine)
        assert decoded.engine == engine
        assert decoded.clean
        assert len(decoded.value.body.responses[0].partition_responses[0].record_set.messages) == COUNT

    def theirs() -> None:
        decoded = FetchResponse.decode(data, version=2, header=True, framed=True)
        records = MemoryRecords(bytes(decoded.responses[0].partitions[0].records))
        read = 0
        while records.has_next():
            batch = records.next_batch()
            assert batch.validate_crc()
            for record in batch:
                read += record.value is not None
        assert read == COUNT

    ours("rows")
    rows, peer, reference = best(lambda: ours("rows")), best(theirs), best(lambda: ours("reference"))
    return (
        str(__doc__),
        [
            ("wirekit rows engine", f"{rows / COUNT * 1e6:.2f} µs a message"),
            ("wirekit reference engine", f"{reference / COUNT * 1e6:.2f} µs a message"),
            ("kafka-python FetchResponse and MemoryRecords", f"{peer / COUNT * 1e6:.2f} µs a message"),
            ("rows engine is faster than kafka-python", f"{peer / rows:.2f} ×"),
        ],
    )
