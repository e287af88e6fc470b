"""Apache Pulsar's binary protocol: frames, entries, batches, and every protobuf message in them.

Sources: the binary protocol specification (pulsar.apache.org/docs, "Binary protocol"), ``PulsarApi.proto``, and what
real clients and brokers do where the specification is loose (NOTES.md).
"""

from __future__ import annotations

from wirekit.registry import Layout, Protocol
from wirekit.schemas.pulsar import frame, notes
from wirekit.wire import Limits

MAX_MESSAGE_SIZE = 5 * 1024 * 1024
FRAME_PADDING = 10 * 1024
SPECIFICATION = "Pulsar binary protocol specification, Framing"


PROTOCOL = Protocol(
    name="pulsar",
    title="Apache Pulsar binary protocol, protocol versions 0 to 21",
    layouts={
        "frame": Layout(frame.FRAME, "a command; after SEND and MESSAGE also an entry", SPECIFICATION, notes.FRAME),
        "entry": Layout(
            frame.ENTRY, "an entry as a broker stores it: checksum, metadata, payload", SPECIFICATION, notes.ENTRY
        ),
        "batch": Layout(
            frame.BATCH, "the messages of a batch, decompressed", "specification, Batched messages", notes.BATCH
        ),
        "command": Layout(frame.COMMAND, "a command without its frame", "PulsarApi.proto, BaseCommand", notes.COMMAND),
        "message_metadata": Layout(frame.MESSAGE_METADATA, "metadata of an entry", "PulsarApi.proto"),
        "single_message_metadata": Layout(frame.SINGLE_METADATA, "metadata of a message in a batch", "PulsarApi.proto"),
        "broker_entry_metadata": Layout(
            frame.BROKER_METADATA, "metadata that the broker adds to an entry", "PulsarApi.proto"
        ),
    },
    client="frame",
    server="frame",
    recognised_by=("frame",),
    limits=Limits(frame=MAX_MESSAGE_SIZE + FRAME_PADDING - 4, decompressed=256 * 1024 * 1024),
    ports=(6650,),
    dialogue="wirekit.protocols.pulsar.dialogue:PulsarDialogue",
    tables="wirekit.protocols.pulsar.tables:TABLES",
    pairing="wirekit.protocols.pulsar.pairing:PAIRING",
    rules="wirekit.protocols.pulsar.rules:RULES",
)
