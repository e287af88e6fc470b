"""How much faster are JoyQueue's messages as columns than as rows?"""

from __future__ import annotations

import wirekit
from benchmarks.timing import best
from wirekit.decoding import frames

COUNT = 20_000
KEY = "joyqueue.message"


def messages(count: int) -> bytes:
    """Messages of about 180 bytes, as the store keeps them: 80 of body, a business id, attributes."""
    value = {
        "partition": 0,
        "index": 0,
        "system_code": {"source": 3, "address_type": 1, "message_version": 1},
        "client_ip": bytes([0, 0, 10, 0, 0, 1]) + bytes(10),
        "send_time": 1_564_390_929_000,
        "body": bytes(range(32, 112)),
        "business_id": "order-000001",
        "attributes": "TAGS=red",
        "extension": None,
        "app": "shop",
    }
    return b"".join(wirekit.encode(KEY, {**value, "index": index}) for index in range(count))


def columns(data: bytes) -> None:
    """All fields of all messages, checksums verified."""
    batch = wirekit.columns(KEY, data)
    assert batch.num_rows == COUNT
    assert batch.schema.metadata[b"wirekit.errors"] == b"0"


def rows(data: bytes) -> None:
    """The same, one value at a time."""
    for decoded in frames(KEY, data):
        assert decoded.error is None


def run() -> tuple[str, list[tuple[str, str]]]:
    """The question, and (label, figure) per contender."""
    data = messages(COUNT)
    columns(data)  # compiles, or loads what was compiled
    mine, theirs = best(lambda: columns(data)) / COUNT, best(lambda: rows(data)) / COUNT
    return str(__doc__), [
        (f"wirekit.columns, {COUNT:,} messages of {len(data) // COUNT} bytes", f"{mine * 1e9:.0f} ns a message"),
        ("wirekit.frames, the rows engine", f"{theirs * 1e9:,.0f} ns a message, {theirs / mine:.0f} × ours"),
    ]
