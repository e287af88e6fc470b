"""JMQ4, in two dialects: ``joyqueue`` as JoyQueue writes it, ``jmq4`` as its protocol document reads literally.

Only ``joyqueue`` is spoken by anybody: no known client or broker accepts the very first frame of ``jmq4``. NOTES.md has
the sources and every difference.
"""

from __future__ import annotations

from wirekit.registry import Layout, Protocol
from wirekit.schemas.jmq4 import commands, frame, message
from wirekit.schemas.jmq4.codes import COMMANDS
from wirekit.schemas.jmq4.differences import noted
from wirekit.schemas.jmq4.types import string1
from wirekit.wire import Limits, Node

DOCUMENT = "JMQ4 protocol document, 通信协议"
IMPLEMENTATION = "JoyQueue 4.2.8-SNAPSHOT, network/"
OPENED = "bodies decompressed and batches split"
LIMITS = Limits(frame=100 * 1024 * 1024)
PORT = 50088


def _payloads(payloads: dict[int, Node], source: str) -> dict[str, Layout]:
    """The layouts of payloads that have content, by command and direction."""
    layouts = {}
    for symbol in COMMANDS:
        node = payloads.get(int(symbol))
        if node is None or symbol == -128:
            continue
        direction = "request" if symbol > 0 else "response"
        name = str(COMMANDS(abs(symbol)).symbol).lower()
        layouts[f"{name}.{direction}"] = Layout(node, f"payload of {symbol}", source)
    return layouts


JOYQUEUE = Protocol(
    name="joyqueue",
    title="JMQ4 as JoyQueue writes it, header versions 1 to 4",
    layouts=noted(
        {
            "frame": Layout(frame.JOYQUEUE_FRAME, "a request or a response", IMPLEMENTATION),
            "frame_opened": Layout(frame.joyqueue_frame_opened, f"a frame, {OPENED}", IMPLEMENTATION),
            "header": Layout(frame.JOYQUEUE_HEADER, "the header of a frame", "JoyQueueHeaderCodec.java:53-90"),
            "message": Layout(message.MESSAGE, "a message, as sent and as stored", "Serializer.java:153-318"),
            "message_opened": Layout(message.OPENED_MESSAGE, f"a message, {OPENED}", "Serializer.java:153-318"),
            "batch": Layout(message.BATCH, "the messages in the body of a batch", "BatchMessageSerializer.java:66-133"),
            "client_address": Layout(
                message.CLIENT_ADDRESS, "port and address: the start of client_ip for IPv4", "IpUtil.java:349-378"
            ),
            "frame_unsigned": Layout(
                frame.joyqueue_frame_unsigned,
                "repairs frames with strings of 128 to 255 bytes after a one-byte length, which peers misread",
                "AbstractSerializer.java:146-152",
            ),
            **_payloads(
                {**commands.implemented(string1, message.MESSAGE), **commands.by_version(string1, commands.NEWEST)},
                IMPLEMENTATION,
            ),
        }
    ),
    client="frame",
    server="frame",
    recognised_by=("frame",),
    records=("message",),
    readings=({"layout_version": 1}, {"layout_version": 2}, {"layout_version": 3}),
    limits=LIMITS,
    ports=(PORT,),
    dialogue="wirekit.protocols.jmq4.dialogue:JmqDialogue",
    tables="wirekit.protocols.jmq4.tables:TABLES",
    pairing="wirekit.protocols.jmq4.pairing:JOYQUEUE",
    rules="wirekit.protocols.jmq4.rules:RULES",
)

JMQ4 = Protocol(
    name="jmq4",
    title="JMQ4 exactly as in its document; no known client or broker speaks it",
    layouts=noted(
        {
            "frame": Layout(frame.JMQ4_FRAME, "a request or a response", DOCUMENT),
            "frame_opened": Layout(frame.jmq4_frame_opened, f"a frame, {OPENED}", DOCUMENT),
            "header": Layout(frame.JMQ4_HEADER, "the header of a frame", "document, 头信息"),
            "message": Layout(message.DOCUMENTED_MESSAGE, "a message", "document, MESSAGE"),
            "message_opened": Layout(message.DOCUMENTED_OPENED_MESSAGE, f"a message, {OPENED}", "document, MESSAGE"),
            "batch": Layout(message.DOCUMENTED_BATCH, "the messages in the body of a batch", "document, BATCH_MESSAGE"),
            **_payloads(commands.documented(), DOCUMENT),
        }
    ),
    client="frame",
    server="frame",
    recognised_by=("frame",),
    limits=LIMITS,
    ports=(PORT,),
    dialogue="wirekit.protocols.jmq4.dialogue:JmqDialogue",
    tables="wirekit.protocols.jmq4.tables:TABLES",
    pairing="wirekit.protocols.jmq4.pairing:JMQ4",
    rules="wirekit.protocols.jmq4.rules:RULES",
)
