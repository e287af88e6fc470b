"""Commands of a Pulsar conversation, as frames."""

from __future__ import annotations

from typing import Any

import wirekit
from tests.rules.conversations import SentFrame
from wirekit.proto import PulsarApi_pb2 as api

FIELDS = {field.number: field.name for field in api.BaseCommand.DESCRIPTOR.fields}


def sent_by(
    side: str, kind: str, entry: dict[str, Any] | None = None, at: int | None = None, **content: Any
) -> SentFrame:
    command = {"type": kind, FIELDS[api.BaseCommand.Type.Value(kind)]: content}
    return SentFrame(side, wirekit.encode("pulsar.frame", {"command": command, "entry": entry}), at)


def c(kind: str, entry: dict[str, Any] | None = None, at: int | None = None, **content: Any) -> SentFrame:
    return sent_by("client", kind, entry, at, **content)


def s(kind: str, entry: dict[str, Any] | None = None, at: int | None = None, **content: Any) -> SentFrame:
    return sent_by("server", kind, entry, at, **content)


def entry(payload: bytes = b"x", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"producer_name": "p", "sequence_id": 0, "publish_time": 1, **metadata}, "payload": payload}


def batch(count: int) -> dict[str, Any]:
    return entry([{"metadata": {"payload_size": 1}, "payload": b"x"}] * count, num_messages_in_batch=count)


def send(number: int, content: dict[str, Any] | None = None, producer: int = 1, **more: Any) -> SentFrame:
    return c("SEND", content or entry(), producer_id=producer, sequence_id=number, **more)


def replicated(number: int, position: str, **metadata: Any) -> SentFrame:
    """A message that a replicator sends, with its position in the source cluster."""
    properties = [{"key": "__MSG_PROP_REPL_SOURCE_POSITION", "value": position}]
    content = entry(sequence_id=number, replicated_from="west", properties=properties, **metadata)
    return send(number, content, marker=True if "marker_type" in metadata else None)


def sent_from(ledger: int, number: int, producer: int = 1) -> SentFrame:
    """The receipt of a replicated message."""
    return s("SEND_RECEIPT", producer_id=producer, sequence_id=ledger, highest_sequence_id=number)


def receipt(number: int, producer: int = 1) -> SentFrame:
    return s("SEND_RECEIPT", producer_id=producer, sequence_id=number)


def message(number: int, content: dict[str, Any] | None = None, consumer: int = 1) -> SentFrame:
    return s("MESSAGE", content or entry(), consumer_id=consumer, message_id={"ledgerId": 7, "entryId": number})


def ack(*numbers: int, kind: str = "Individual", consumer: int = 1) -> SentFrame:
    ids = [{"ledgerId": 7, "entryId": number} for number in numbers]
    return c("ACK", consumer_id=consumer, ack_type=kind, message_id=ids)


def connect(client: int = 20, server: int = 20, **more: Any) -> list[SentFrame]:
    return [
        c("CONNECT", client_version="c", protocol_version=client),
        s("CONNECTED", server_version="s", protocol_version=server, **more),
    ]


def producer(number: int = 1, request: int = 10, topic: str = "t") -> list[SentFrame]:
    return [
        c("PRODUCER", topic=topic, producer_id=number, request_id=request),
        s("PRODUCER_SUCCESS", request_id=request, producer_name="p"),
    ]


def consumer(number: int = 1, request: int = 20, topic: str = "t") -> list[SentFrame]:
    return [
        c("SUBSCRIBE", topic=topic, subscription="s", subType="Shared", consumer_id=number, request_id=request),
        s("SUCCESS", request_id=request),
    ]


def lookup(request: int = 30, topic: str = "t") -> list[SentFrame]:
    return [
        c("LOOKUP", topic=topic, request_id=request),
        s("LOOKUP_RESPONSE", request_id=request, response="Connect", brokerServiceUrl="pulsar://b:6650"),
    ]


def closed(request: int = 40) -> list[SentFrame]:
    return [c("CLOSE_PRODUCER", producer_id=1, request_id=request), s("SUCCESS", request_id=request)]


def flow(permits: int, consumer: int = 1) -> SentFrame:
    return c("FLOW", consumer_id=consumer, messagePermits=permits)
