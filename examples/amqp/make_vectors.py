"""Writes vectors.json with pika, which wirekit does not depend on: ``pip install pika==1.4.4``, then run this."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from pika import frame, spec

TIME = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
TABLE = {
    "s": "text",
    "n": -5,
    "wide": 2**40,
    "yes": True,
    "bytes": b"\xff",
    "price": Decimal("1.25"),
    "when": TIME,
    "none": None,
    "list": [1, "two", {"three": 3}],
    "inside": {"a": {}},
}
ENTRIES = [
    {"name": "s", "type": ord("S"), "value": b"text".hex()},
    {"name": "n", "type": ord("I"), "value": -5},
    {"name": "wide", "type": ord("l"), "value": 2**40},
    {"name": "yes", "type": ord("t"), "value": True},
    {"name": "bytes", "type": ord("x"), "value": "ff"},
    {"name": "price", "type": ord("D"), "value": {"scale": 2, "value": 125}},
    {"name": "when", "type": ord("T"), "value": 1_700_000_000},
    {"name": "none", "type": ord("V"), "value": {}},
    {
        "name": "list",
        "type": ord("A"),
        "value": [
            {"type": ord("I"), "value": 1},
            {"type": ord("S"), "value": b"two".hex()},
            {"type": ord("F"), "value": [{"name": "three", "type": ord("I"), "value": 3}]},
        ],
    },
    {"name": "inside", "type": ord("F"), "value": [{"name": "a", "type": ord("F"), "value": []}]},
]


def vector(frame_object: Any, reads: dict[str, Any]) -> dict[str, Any]:
    """A frame that pika writes, and reads as it wrote it."""
    data = frame_object.marshal()
    size, again = frame.decode_frame(data)
    assert (size, again.marshal()) == (len(data), data)
    return {"key": "frame", "hex": data.hex(), "reads": reads}


def method(channel: int, method_object: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """The frame of a method."""
    payload = {"method": method_object.INDEX, "arguments": arguments}
    return vector(frame.Method(channel, method_object), {"type": 1, "channel": channel, "payload": payload})


def main() -> None:
    """Writes the file."""
    properties = spec.BasicProperties(
        content_type="text/plain", headers=TABLE, delivery_mode=2, timestamp=1_700_000_000, message_id="m-1"
    )
    has = {"content_type": True, "headers": True, "priority": False, "timestamp": True}
    header = {"content_type": "text/plain", "headers": ENTRIES, "delivery_mode": 2, "timestamp": 1_700_000_000}
    declared = {"queue": "q", "flags": {"durable": True, "auto_delete": True, "no_wait": False}, "arguments": ENTRIES}
    vectors = [
        {
            "key": "protocol_header",
            "hex": frame.ProtocolHeader(0, 9, 1).marshal().hex(),
            "reads": {"version_minor": 9, "revision": 1},
        },
        method(
            0, spec.Connection.Tune(2047, 131_072, 60), {"channel_max": 2047, "frame_max": 131_072, "heartbeat": 60}
        ),
        method(0, spec.Connection.Open("/"), {"virtual_host": "/"}),
        method(1, spec.Channel.Open(), {}),
        method(1, spec.Queue.Declare(queue="q", durable=True, auto_delete=True, arguments=TABLE), declared),
        method(1, spec.Queue.DeclareOk("q", 3, 1), {"queue": "q", "message_count": 3, "consumer_count": 1}),
        method(
            1, spec.Basic.Publish(exchange="e", routing_key="r", mandatory=True), {"exchange": "e", "routing_key": "r"}
        ),
        vector(
            frame.Header(1, 300, properties),
            {"type": 2, "channel": 1, "payload": {"class_id": 60, "body_size": 300, "has": has, **header}},
        ),
        vector(frame.Body(1, b"x" * 300), {"type": 3, "channel": 1, "payload": "78" * 300}),
        method(1, spec.Basic.Deliver("t", 7, True, "e", "r"), {"delivery_tag": 7, "flags": {"redelivered": True}}),
        method(1, spec.Basic.Nack(7, True, False), {"delivery_tag": 7, "flags": {"multiple": True, "requeue": False}}),
        method(1, spec.Channel.Close(404, "NOT_FOUND", 60, 40), {"reply_code": 404, "class_id": 60, "method_id": 40}),
        vector(frame.Heartbeat(), {"type": 8, "channel": 0, "size": 0}),
    ]
    lines = ",\n".join(f"  {json.dumps(each, ensure_ascii=False)}" for each in vectors)
    Path(__file__).with_name("vectors.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
