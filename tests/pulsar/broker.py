"""A scripted broker on loopback, for a real client: reads with ``Conversation``, answers with ``encode``.

One topic namespace, no authentication, no persistence: entries are kept as the client sent them and handed out again
in MESSAGE frames, byte for byte. Every byte of both directions is kept for the test to look at.
"""

from __future__ import annotations

import socket
import threading
from collections import defaultdict
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import wirekit
from wirekit.conversation import Conversation, Frame

LEDGER = 7
MAX_MESSAGE_SIZE = 5 * 1024 * 1024


class Connection:
    """One client's connection: what was said, and the answers to it."""

    def __init__(self, broker: Broker, stream: socket.socket) -> None:
        self.broker = broker
        self.stream = stream
        self.conversation = Conversation("pulsar")
        self.frames: list[Frame] = []
        self.quarantined: list[Any] = []
        self.topics: dict[int, str] = {}
        self.consumers: dict[int, tuple[str, int]] = {}  # topic, index of the entry that is handed out next
        self.permits: dict[int, int] = defaultdict(int)

    def serve(self) -> None:
        """Answers until the client hangs up."""
        with self.stream:
            while True:
                try:
                    data = self.stream.recv(1 << 16)
                except OSError:
                    return
                if not data:
                    return
                for frame in self._heard("client", data):
                    for answer in self._answers(frame.value):
                        self._say(answer)

    def _heard(self, side: str, data: bytes) -> list[Frame]:
        events = self.conversation.receive(side, data)
        frames = [event for event in events if isinstance(event, Frame)]
        self.quarantined += [event for event in events if isinstance(event, wirekit.conversation.Quarantined)]
        self.frames += frames
        return frames

    def _say(self, value: dict[str, Any]) -> None:
        data = wirekit.encode("pulsar.frame", value)
        self._heard("server", data)
        try:
            self.stream.sendall(data)
        except OSError:
            pass  # the client has gone; what it was told is kept all the same

    def _answers(self, value: Any) -> Iterator[dict[str, Any]]:
        kind = value.command.type.symbol
        content = value.command.get(kind.lower())
        answer = getattr(self, f"_{kind.lower()}", None)
        if answer is not None:
            yield from answer(value)
        elif content is not None and content.get("request_id") is not None:
            yield command("SUCCESS", request_id=content.request_id)

    def _connect(self, value: Any) -> Iterator[dict[str, Any]]:
        version = value.command.connect.protocol_version
        fields = {"server_version": "wirekit", "protocol_version": version}
        yield command("CONNECTED", max_message_size=self.broker.max_message_size, **fields)

    def _ping(self, value: Any) -> Iterator[dict[str, Any]]:
        yield command("PONG")

    def _partitioned_metadata(self, value: Any) -> Iterator[dict[str, Any]]:
        request_id = value.command.partitionMetadata.request_id
        yield command(
            "PARTITIONED_METADATA_RESPONSE",
            field="partitionMetadataResponse",
            request_id=request_id,
            partitions=0,
            response="Success",
        )

    def _lookup(self, value: Any) -> Iterator[dict[str, Any]]:
        fields = {"response": "Connect", "authoritative": True, "brokerServiceUrl": self.broker.url}
        request_id = value.command.lookupTopic.request_id
        yield command("LOOKUP_RESPONSE", field="lookupTopicResponse", request_id=request_id, **fields)

    def _producer(self, value: Any) -> Iterator[dict[str, Any]]:
        producer = value.command.producer
        self.topics[producer.producer_id] = producer.topic
        name = producer.producer_name or f"wirekit-{producer.producer_id}"
        yield command("PRODUCER_SUCCESS", request_id=producer.request_id, producer_name=name, last_sequence_id=-1)

    def _send(self, value: Any) -> Iterator[dict[str, Any]]:
        sent = value.command.send
        entries = self.broker.entries[self.topics[sent.producer_id]]
        entries.append(value.entry)
        place = {"ledgerId": LEDGER, "entryId": len(entries) - 1}
        ids = {"producer_id": sent.producer_id, "sequence_id": sent.sequence_id}
        yield command("SEND_RECEIPT", message_id=place, **ids)

    def _subscribe(self, value: Any) -> Iterator[dict[str, Any]]:
        subscribe = value.command.subscribe
        self.consumers[subscribe.consumer_id] = subscribe.topic, 0
        yield command("SUCCESS", request_id=subscribe.request_id)

    def _flow(self, value: Any) -> Iterator[dict[str, Any]]:
        flow = value.command.flow
        self.permits[flow.consumer_id] += flow.messagePermits
        topic, index = self.consumers[flow.consumer_id]
        entries = self.broker.entries[topic]
        while index < len(entries) and self.permits[flow.consumer_id] > 0:
            place = {"ledgerId": LEDGER, "entryId": index}
            yield {**command("MESSAGE", consumer_id=flow.consumer_id, message_id=place), "entry": entries[index]}
            self.permits[flow.consumer_id] -= entries[index].metadata.num_messages_in_batch or 1
            index += 1
        self.consumers[flow.consumer_id] = topic, index

    def _ack(self, value: Any) -> Iterator[dict[str, Any]]:
        ack = value.command.ack
        self.broker.acknowledged += [(place.ledgerId, place.entryId) for place in ack.message_id]
        if ack.request_id is not None:
            yield command("ACK_RESPONSE", consumer_id=ack.consumer_id, request_id=ack.request_id)


class Broker:
    """Listens on a free port of loopback while the context is open."""

    def __init__(self, *, max_message_size: int = MAX_MESSAGE_SIZE) -> None:
        self.max_message_size = max_message_size
        self.entries: dict[str, list[Any]] = defaultdict(list)
        self.acknowledged: list[tuple[int, int]] = []
        self.connections: list[Connection] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"pulsar://127.0.0.1:{self._listener.getsockname()[1]}"

    @property
    def frames(self) -> list[Frame]:
        """The frames of all connections."""
        return [frame for connection in self.connections for frame in connection.frames]

    def _accept(self) -> None:
        while True:
            try:
                stream, _ = self._listener.accept()
            except OSError:
                return
            connection = Connection(self, stream)
            self.connections.append(connection)
            self._start(connection.serve)

    def _start(self, work: Any) -> None:
        thread = threading.Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()

    def __enter__(self) -> Broker:
        self._start(self._accept)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self.connections:
            try:
                connection.stream.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in self._threads:
            thread.join(timeout=5)


def command(kind: str, *, field: str = "", **values: Any) -> dict[str, Any]:
    """A frame with one command."""
    return {"command": {"type": kind, field or kind.lower(): values}}
