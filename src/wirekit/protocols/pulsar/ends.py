"""The producers and consumers of a Pulsar connection by id, and its topic lookups.

Counts cover the captured frames. Facts that only the start of a producer or consumer contains are None if the start
was not captured.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

MOST_ENDS = 10_000
"""Producers, consumers and looked-up topics that are remembered, each."""


@dataclass(slots=True)
class Producer:
    """A producer.

    ``sends`` counts SENDs, and ``receipts`` and ``errors`` their responses. A SEND carries a batch of ``messages``, one
    message, or a chunk of one; a chunked message counts with its last chunk.
    """

    producer_id: int
    topic: str | None = None
    name: str | None = None
    messages: int = 0
    sends: int = 0
    receipts: int = 0
    errors: int = 0


@dataclass(slots=True)
class Consumer:
    """A consumer; ``permits`` are those that FLOW granted since SUBSCRIBE, less the messages delivered."""

    consumer_id: int
    topic: str | None = None
    subscription: str | None = None
    name: str | None = None
    messages: int = 0
    permits: int | None = None


@dataclass(slots=True)
class Lookup:
    """The broker of a topic, as a lookup returned it, and the number of its partitions."""

    topic: str
    response: str | None = None
    broker: str | None = None
    partitions: int | None = None


@dataclass(slots=True)
class Ends:
    """The state of one connection.

    Attributes:
        client_version, server_version: names of the programs and their versions, from CONNECT and CONNECTED.
        protocol_version: the lower of the versions that client and broker announced.
        max_message_size: size in bytes from CONNECTED.
        producers, consumers: {id: state}.
        lookups: {topic: its broker and number of partitions}.
    """

    client_version: str | None = None
    server_version: str | None = None
    protocol_version: int | None = None
    max_message_size: int | None = None
    producers: dict[int, Producer] = field(default_factory=dict)
    consumers: dict[int, Consumer] = field(default_factory=dict)
    lookups: dict[str, Lookup] = field(default_factory=dict)
    _permitted: dict[int, Consumer] = field(default_factory=dict)  # consumers whose permits are known

    def observe(self, api: str, content: Any, entry: Any, request: Any) -> None:
        """Updates the state after a command.

        Args:
            api: its name.
            content: its sub-message.
            entry: the entry after it, or None.
            request: the sub-message of the request, or None.
        """
        match api:
            case "CONNECT":
                self.client_version = content.client_version
                self.protocol_version = content.protocol_version or 0
            case "CONNECTED":
                version = content.protocol_version or 0
                self.server_version = content.server_version
                earlier = self.protocol_version
                self.protocol_version = version if earlier is None else min(version, earlier)
                self.max_message_size = content.max_message_size
            case "PRODUCER":
                producer = self._of("producers", content.producer_id)
                producer.topic, producer.name = content.topic, content.producer_name or producer.name
            case "PRODUCER_SUCCESS" if request is not None and request.get("producer_id") is not None:
                self._of("producers", request.producer_id).name = content.producer_name
            case "SEND":
                producer = self._of("producers", content.producer_id)
                producer.sends += 1
                if _completes(entry):
                    producer.messages += content.num_messages or 1
            case "SEND_RECEIPT":
                self._of("producers", content.producer_id).receipts += 1
            case "SEND_ERROR":
                self._of("producers", content.producer_id).errors += 1
            case "SUBSCRIBE":
                consumer = self._of("consumers", content.consumer_id)
                consumer.topic, consumer.subscription = content.topic, content.subscription
                consumer.name, consumer.permits = content.consumer_name, 0
                if consumer.consumer_id in self.consumers:
                    self._permitted[consumer.consumer_id] = consumer
            case "FLOW":
                consumer = self._of("consumers", content.consumer_id)
                if consumer.permits is not None:
                    consumer.permits += content.messagePermits or 0
            case "MESSAGE":
                consumer = self._of("consumers", content.consumer_id)
                metadata = entry.get("metadata") if entry is not None else None
                count = (metadata.num_messages_in_batch or 1) if metadata is not None else 1
                if _completes(entry):
                    consumer.messages += count
                if consumer.permits is not None:
                    consumer.permits -= count
            case "LOOKUP_RESPONSE" if request is not None and request.get("topic") is not None:
                looked = self._of("lookups", request.topic)
                looked.response = content.response.symbol if content.response is not None else None
                looked.broker = content.brokerServiceUrl or content.brokerServiceUrlTls
            case "PARTITIONED_METADATA_RESPONSE" if request is not None and request.get("topic") is not None:
                self._of("lookups", request.topic).partitions = content.partitions

    def forget_permits(self) -> None:
        """Reports missing commands; permits are unknown until a consumer subscribes again."""
        for consumer in self._permitted.values():
            consumer.permits = None
        self._permitted.clear()

    def to_json(self) -> dict[str, Any]:
        """Plain data; lists are in the order of appearance."""
        return {
            "client_version": self.client_version,
            "server_version": self.server_version,
            "protocol_version": self.protocol_version,
            "max_message_size": self.max_message_size,
            **{name: [asdict(each) for each in getattr(self, name).values()] for name in KINDS},
        }

    def _of(self, kind: str, number: Any) -> Any:
        """The producer, consumer or topic with a number or name; created if it is new."""
        ends = getattr(self, kind)
        if number not in ends and len(ends) < MOST_ENDS:
            ends[number] = KINDS[kind](number)
        return ends.get(number) or KINDS[kind](number)


def _completes(entry: Any) -> bool:
    """Whether an entry is a message, or the last chunk of one."""
    metadata = entry.get("metadata") if entry is not None else None
    if metadata is None or (metadata.num_chunks_from_msg or 0) < 2:
        return True
    return bool(metadata.chunk_id == metadata.num_chunks_from_msg - 1)


KINDS: dict[str, Any] = {"producers": Producer, "consumers": Consumer, "lookups": Lookup}
