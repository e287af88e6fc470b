"""What the benchmarks read, the same for every peer."""

from __future__ import annotations

import wirekit


def message_set(count: int) -> bytes:
    """A Kafka message set of magic 1: messages of about 140 bytes, 16 of key and 80 of value, uncompressed."""
    messages = [
        {
            "offset": index,
            "message": {
                "magic": 1,
                "attributes": 0,
                "timestamp": 1_480_000_000_000 + index,
                "key": f"key-{index:012d}".encode(),
                "value": bytes(range(32, 112)),
            },
        }
        for index in range(count)
    ]
    return wirekit.encode("kafka.message_set", {"messages": messages})
