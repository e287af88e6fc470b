"""AMQP 0-9-1, as RabbitMQ speaks it. NOTES.md has the sources."""

from __future__ import annotations

from examples.amqp import layouts
from examples.amqp.dialogue import AmqpDialogue
from wirekit.conversation import Dialogue
from wirekit.registry import Beginning, Layout, Protocol
from wirekit.wire import Limits

HEADER = b"AMQP\x00\x00\x09\x01"


def _dialogue() -> type[Dialogue]:
    return AmqpDialogue


PROTOCOL = Protocol(
    "amqp",
    "AMQP 0-9-1",
    {
        "frame": Layout(layouts.FRAME, "a frame of any type", "AMQP 0-9-1, 4.2.3"),
        "protocol_header": Layout(layouts.PROTOCOL_HEADER, "what a client sends first", "AMQP 0-9-1, 4.2.2"),
        "content_header": Layout(layouts.CONTENT_HEADER, "the properties of a message", "AMQP 0-9-1, 4.2.6.1"),
        "table": Layout(layouts.TABLE_OF_FIELDS, "names and values", "AMQP 0-9-1, 4.2.5.5; RabbitMQ's errata"),
        "field": Layout(layouts.FIELD, "a value of an array", "AMQP 0-9-1, 4.2.1"),
    },
    client="frame",
    server="frame",
    recognised_by=("frame",),
    limits=Limits(frame=128 * 1024 * 1024),
    ports=(5672,),
    dialogue=_dialogue,
    beginnings=(Beginning("AMQP's protocol header", (HEADER,), "amqp.protocol_header", len(HEADER)),),
)
