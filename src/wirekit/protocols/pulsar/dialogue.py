"""The dialogue of a Pulsar connection: it pairs commands and reads the messages in entries.

Source: binary protocol specification, "Protocol commands"; PIP-37 for chunks.
"""

from __future__ import annotations

import base64
import binascii
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, cast

from wirekit.conversation import CALL, OTHER_SIDES, Description, Dialogue, Frame, Message, Skipped
from wirekit.engine import Decoded
from wirekit.errors import WireError
from wirekit.protocols.pulsar.ack_set import is_unacknowledged
from wirekit.protocols.pulsar.ends import Ends
from wirekit.protocols.pulsar.tables import TABLES
from wirekit.registry import Protocol
from wirekit.schemas.pulsar import FRAME_PADDING
from wirekit.schemas.pulsar.frame import CODECS, COMMAND
from wirekit.values import Record, whole_number
from wirekit.wire.compressed import NEED_SIZE

LARGEST_PARTITION = (1 << 31) - 1
"""The largest number of a partition; ``MessageIdData`` has an int32 for it."""

# Requests and responses without a request id: the role, and the link between them.
LINKED = {
    "CONNECT": ("request", "connect"),
    "CONNECTED": ("response", "connect"),
    "AUTH_CHALLENGE": ("request", "auth"),
    "AUTH_RESPONSE": ("response", "auth"),
    "SEND": ("request", "send"),
    "SEND_RECEIPT": ("response", "send"),
    "SEND_ERROR": ("response", "send"),
    "PING": ("request", "ping"),
    "PONG": ("response", "ping"),
}
# Clients number lookups separately from other requests, so a number can be in use twice (client-cpp, LookupService).
NUMBERED_APART = dict.fromkeys(
    ("LOOKUP", "LOOKUP_RESPONSE", "PARTITIONED_METADATA", "PARTITIONED_METADATA_RESPONSE"), "lookup"
)
# Commands that only one side sends.
ASKED = {
    "CONNECT",
    "PRODUCER",
    "SUBSCRIBE",
    "SEND",
    "FLOW",
    "ACK",
    "LOOKUP",
    "PARTITIONED_METADATA",
    "AUTH_RESPONSE",
    "REDELIVER_UNACKNOWLEDGED_MESSAGES",
    "SCALABLE_TOPIC_LOOKUP",
    "SCALABLE_TOPIC_CLOSE",
    "SCALABLE_TOPIC_UNSUBSCRIBE",
    "WATCH_SCALABLE_TOPICS",
    "WATCH_SCALABLE_TOPICS_CLOSE",
    "WATCH_TC_ASSIGNMENTS",
    "WATCH_TC_ASSIGNMENTS_CLOSE",
}
ANSWERED = {
    "CONNECTED",
    "SEND_RECEIPT",
    "SEND_ERROR",
    "MESSAGE",
    "PRODUCER_SUCCESS",
    "SUCCESS",
    "LOOKUP_RESPONSE",
    "AUTH_CHALLENGE",
    "REACHED_END_OF_TOPIC",
    "ACTIVE_CONSUMER_CHANGE",
    "WATCH_TOPIC_UPDATE",
    "TOPIC_MIGRATED",
    "SCALABLE_TOPIC_UPDATE",
    "SCALABLE_TOPIC_ASSIGNMENT_UPDATE",
    "WATCH_SCALABLE_TOPICS_UPDATE",
    "WATCH_TC_ASSIGNMENTS_UPDATE",
}
# The command that answers another one where nothing is wrong (PulsarApi.proto; protocol specification).
ANSWERS = {
    "CONNECT": ("CONNECTED",),
    "AUTH_CHALLENGE": ("AUTH_RESPONSE",),
    "PING": ("PONG",),
    "SEND": ("SEND_RECEIPT", "SEND_ERROR"),
    "PRODUCER": ("PRODUCER_SUCCESS",),
    **dict.fromkeys(("SUBSCRIBE", "UNSUBSCRIBE", "CLOSE_PRODUCER", "CLOSE_CONSUMER", "SEEK"), ("SUCCESS",)),
    "SCALABLE_TOPIC_UNSUBSCRIBE": ("SUCCESS",),
    "TC_CLIENT_CONNECT_REQUEST": ("TC_CLIENT_CONNECT_RESPONSE",),
    "WATCH_TOPIC_LIST": ("WATCH_TOPIC_LIST_SUCCESS",),
    **{
        command: (f"{command}_RESPONSE",)
        for command in (
            "ACK",
            "LOOKUP",
            "PARTITIONED_METADATA",
            "CONSUMER_STATS",
            "GET_LAST_MESSAGE_ID",
            "GET_TOPICS_OF_NAMESPACE",
            "GET_SCHEMA",
            "GET_OR_CREATE_SCHEMA",
            "NEW_TXN",
            "ADD_PARTITION_TO_TXN",
            "ADD_SUBSCRIPTION_TO_TXN",
            "END_TXN",
            "END_TXN_ON_PARTITION",
            "END_TXN_ON_SUBSCRIPTION",
            "SCALABLE_TOPIC_SUBSCRIBE",
        )
    },
}
UNPAIRED = {
    "server": frozenset({"CLOSE_PRODUCER", "CLOSE_CONSUMER"}),
    "client": frozenset(answer for answers in ANSWERS.values() for answer in answers),
}
"""Commands with a request id that are not responses of a broker, or not requests of a client."""
COMMAND_FIELDS = {number: field.name for number, field in COMMAND.message.fields.items() if field.message is not None}
"""The field of the sub-message that a type of command has."""
NO_REQUEST = 2**64 - 1
SIZE_BYTES = 4
"""The bytes of ``metadata_size``, which precedes each message of a batch."""
MOST_CHUNKS_HELD = 256 * 1024 * 1024
"""Maximum bytes of chunks of incomplete messages; the message whose last chunk is oldest is given up first."""
MOST_CHUNKED = 10_000
SOURCE_POSITION = "__MSG_PROP_REPL_SOURCE_POSITION"
"""The property in which a replicator stores ledger and entry of a message in its source cluster."""
MOST_SENDS = 1 << 16
LARGEST_FRAME_LIMIT = 100 * 1024 * 1024
"""The largest frame limit in bytes; a broker that announces larger messages does not raise it further."""


class PulsarDialogue(Dialogue):
    """Follows one Pulsar connection: topics by producer and consumer id, chunks of messages, the size of frames."""

    resumable = True
    opening = (
        ("frame", {"command": {"type": "CONNECT", "connect": {"client_version": "wirekit", "protocol_version": 21}}}),
    )

    def __init__(self, protocol: Protocol) -> None:
        super().__init__(protocol)
        self.ends = Ends()
        self._topics: dict[tuple[str, int], str] = {}
        self._chunks: OrderedDict[tuple[str, int, str], list[bytes]] = OrderedDict()
        self._bad_chunks: set[tuple[str, int, str]] = set()  # messages with a chunk that failed a check
        self._chunks_size = 0  # bytes in all chunks
        # {ids_of_send: numbers of SENDs and of their responses, other ids that a response may have}
        self._sends: OrderedDict[tuple[Any, ...], tuple[int, int, tuple[tuple[Any, ...], ...]]] = OrderedDict()
        self._other_ids: dict[tuple[Any, ...], dict[tuple[Any, ...], None]] = {}  # {other ids: ids in order of SENDs}

    def describe(self, side: str, decoded: Decoded) -> Description:
        """The command and request id; a command without an id is linked by its producer, consumer or topic."""
        command = command_of(decoded.value)
        if command is None:
            return Description()
        api, content = command
        request_id = content.get("request_id") if content is not None else None
        number = _signed(request_id)
        if api == "ERROR" and request_id == NO_REQUEST:
            return Description(api, None, number, "response", pair=("connect", "client"))
        if request_id is not None and request_id != NO_REQUEST and api not in UNPAIRED[side]:
            role = "request" if side == "client" else "response"
            return Description(api, None, number, role, pair=self._numbered(api, request_id))
        if api not in LINKED:
            return Description(api, None, number)
        role, link = LINKED[api]
        asker = side if role == "request" else OTHER_SIDES[side]
        if link == "send":
            return Description(api, None, None, role, pair=self._sent(role, content, decoded.value.get("entry")))
        return Description(api, None, None, role, pair=(link, asker))

    def _numbered(self, api: str, request_id: int) -> Hashable:
        pair = (NUMBERED_APART.get(api, "id"), request_id)
        if api == "ERROR" and pair not in self.requests and ("lookup", request_id) in self.requests:
            return "lookup", request_id
        return pair

    def _sent(self, role: str, content: Any, entry: Any) -> Hashable:
        """The key of a SEND and its receipt; chunks of a message share a sequence id; receipts come in turn."""
        ids = self._ids(role, content, entry) if content is not None else ()
        requests, responses, _ = self._sends.get(ids, (0, 0, ()))
        return "send", *ids, requests if role == "request" else responses

    def _ids(self, role: str, content: Any, entry: Any) -> tuple[Any, ...]:
        """The ``ids_of_send`` of a SEND, or of the one that a receipt or an error answers.

        The receipt of a replicated message has its ledger and entry in the source cluster as ``sequence_id`` and
        ``highest_sequence_id`` (``GeoReplicationProducerImpl.java`` since 4.0); brokers before 4.0 return the sequence
        id. SEND_ERROR has the highest sequence id of a batch (``Producer.java``).
        """
        if role == "request":
            return ids_of_send(content, entry)
        ids = content.get("producer_id"), content.get("sequence_id")
        positioned = *ids, content.get("highest_sequence_id")
        if positioned in self._sends:
            return positioned
        return ids if ids in self._sends else next(iter(self._other_ids.get(ids, ())), ids)

    def plausible(self, side: str, data: bytes, size: int) -> bool:
        self.effort += 3 * CALL  # a protobuf message takes about four times as long as fields at fixed places
        return self.fits(data, self.protocol.stream(side), size)

    def sender(self, decoded: Decoded) -> str:
        command = command_of(decoded.value)
        if command is None:
            return ""
        return "client" if command[0] in ASKED else "server" if command[0] in ANSWERED else ""

    def observe(self, frame: Frame) -> None:
        """Updates topics, the SENDs that wait, and the frame size after CONNECTED."""
        command = command_of(frame.value)
        if command is None or command[1] is None:
            return
        api, content = command
        request = command_of(frame.request.value) if frame.request is not None else None
        self.ends.observe(api, content, frame.value.get("entry"), request[1] if request is not None else None)
        if LINKED.get(api, ("", ""))[1] == "send":
            self._count(frame, content)
        elif api == "CONNECTED" and (content.max_message_size or 0) > 0:
            self._agree(content.max_message_size)
        elif api == "PRODUCER_SUCCESS" and content.producer_ready is False and frame.request is not None:
            self.requests[frame.request.description.pair] = frame.request  # a second answer says when it is ready
        kind = {"PRODUCER": "producer", "SUBSCRIBE": "consumer"}.get(api)
        if kind is not None and content.get(f"{kind}_id") is not None and content.topic is not None:
            self._topics[kind, content[f"{kind}_id"]] = content.topic

    def _agree(self, size: int) -> None:
        """Stores the maximal message size from CONNECTED."""
        self.frame_limit = min(size, LARGEST_FRAME_LIMIT) + FRAME_PADDING - 4

    @property
    def usual(self) -> bool:
        """Whether no message waits for chunks, and each SEND without a receipt is a waiting request."""
        return not self._chunks and all(
            len(ids) == 2 and ("send", *ids, number) in self.requests
            for ids, (requests, responses, _) in self._sends.items()
            for number in range(responses, requests)
        )

    def skipped(self, frames: Skipped) -> None:
        """Updates the topics of producers and consumers, and the frame size."""
        if frames.most > 0:
            self._agree(frames.most)
        for kind in ("producer", "consumer"):
            for number, columns in frames.names.get(kind, {}).items():
                if "topic" in columns:
                    self._topics[kind, number] = columns["topic"]

    def lost(self) -> None:
        """Marks the number of remaining permits as unknown."""
        self.ends.forget_permits()

    def state(self) -> dict[str, Any]:
        """All attributes except those only for the summary, which no table contains."""
        return {name: value for name, value in super().state().items() if name != "ends"}

    def summary(self) -> dict[str, Any]:
        """Versions, producers, consumers and lookups of the connection."""
        return self.ends.to_json()

    def _count(self, frame: Frame, content: Any) -> None:
        if self.requests.one_sided:
            self._sends.clear()
            self._other_ids.clear()
            return
        ids = cast("tuple[Any, ...]", frame.description.pair)[1:-1]  # as in ``_sent``
        requests, responses, others = self._sends.get(ids, (0, 0, ()))
        if frame.description.role == "request":
            requests += 1
            if not others:
                numbers = dict.fromkeys(content.get(name) for name in ("sequence_id", "highest_sequence_id"))
                others = tuple((ids[0], each) for each in numbers if each is not None and (ids[0], each) != ids)
                for each in others:
                    self._other_ids.setdefault(each, {})[ids] = None
        else:
            responses += 1
        if responses < requests:
            self._sends[ids] = (requests, responses, others)
            if len(self._sends) > MOST_SENDS:
                self._forget(*self._sends.popitem(last=False))
        elif ids in self._sends:
            self._forget(ids, self._sends.pop(ids))

    def _forget(self, ids: tuple[Any, ...], counts: tuple[int, int, tuple[tuple[Any, ...], ...]]) -> None:
        for each in counts[2]:
            same = self._other_ids.get(each, {})
            same.pop(ids, None)
            if not same:
                self._other_ids.pop(each, None)

    def messages(self, frame: Frame) -> Iterator[Message]:
        entry = getattr(frame.value, "entry", None)
        if entry is None or entry.get("metadata") is None:
            return
        command = command_of(frame.value)
        if command is None or command[1] is None:
            return
        api, content = command
        owner = ("producer", content.producer_id) if api == "SEND" else ("consumer", content.consumer_id)
        topic = self._topics.get(owner)
        if entry.get("payload") is None or entry.metadata.marker_type is not None:
            return
        payload = _Payload.of(frame, entry)
        if len(frame.data) < frame.size and not isinstance(payload.content, list):
            return
        if (entry.metadata.num_chunks_from_msg or 0) > 1 and not payload.encrypted:
            joined_payload = self._joined(owner, entry.metadata, payload)
            if joined_payload is None:
                return
            payload = joined_payload
        yield from _entry_messages(frame, topic, content, entry, payload)

    def _joined(self, owner: tuple[str, int], metadata: Any, chunk: _Payload) -> _Payload | None:
        """The complete message with its last chunk, otherwise None.

        A first chunk begins the message anew. A later chunk that is there already is ignored: a producer that connects
        again sends chunks again (``ConsumerImpl.java`` since 2.11).
        """
        key = (*owner, metadata.uuid or "")
        if 0 < (metadata.chunk_id or 0) < len(self._chunks.get(key, ())):
            return None
        pieces = self._chunks.pop(key, [])
        if metadata.chunk_id != len(pieces):
            self._drop(key, pieces)
            if metadata.chunk_id != 0:
                return None
            pieces = []
        pieces.append(chunk.content)
        if chunk.check == "bad":
            self._bad_chunks.add(key)
        self._chunks_size += len(chunk.content)
        if len(pieces) < metadata.num_chunks_from_msg:
            self._chunks[key] = pieces
            while self._chunks_size > MOST_CHUNKS_HELD or len(self._chunks) > MOST_CHUNKED:
                self._drop(*self._chunks.popitem(last=False))
            return None
        data = b"".join(pieces)
        check = "bad" if key in self._bad_chunks else chunk.check
        self._drop(key, pieces)
        codec, size = CODECS.get(metadata.compression or 0), metadata.uncompressed_size
        if codec is None:
            return _Payload(data, check)
        if size is None and codec in NEED_SIZE:
            return _Payload(data, "bad")
        from wirekit.compression import Decompression, decompress

        try:
            plain = decompress(codec, data, limits=Decompression(), size=size)
        except WireError:
            return _Payload(data, "bad")
        return _Payload(plain, check)

    def _drop(self, key: tuple[str, int, str], pieces: list[bytes]) -> None:
        """Stops counting the chunks of a message that is complete or given up."""
        self._chunks_size -= sum(map(len, pieces))
        self._bad_chunks.discard(key)


@dataclass(frozen=True, slots=True)
class _Payload:
    """The content of an entry: bytes, or the messages of a batch; its verdict; whether it is cipher text."""

    content: Any
    check: str
    encrypted: bool = False

    @classmethod
    def of(cls, frame: Frame, entry: Any) -> _Payload:
        """The payload of an entry, decrypted and decompressed as far as possible."""
        verdicts = {check.path: check.status for check in frame.decoded.checks}
        check = verdicts.get("entry.checksum", "absent")
        content = entry.payload
        encrypted = verdicts.get("entry.payload") == "absent"
        path = "entry.payload"
        for closed in ("encrypted", "compressed"):
            if verdicts.get(path) == "bad":
                check = "bad"
            if isinstance(content, Record) and closed in content:
                content = content[closed] if content.content is None else content.content
                path += ".content"
        return cls(content, check, encrypted)


def _signed(request_id: int | None) -> int | None:
    """A request id as brokers and Java clients store it: a signed 64-bit number, -1 without a request."""
    return request_id - (1 << 64) if request_id is not None and request_id >= 1 << 63 else request_id


def command_of(value: Any) -> tuple[str, Any] | None:
    """(type's name, sub-message or None) of a frame's command, as far as it was decoded."""
    command = getattr(value, "command", None)
    kind = command.type if command is not None else None
    if kind is None:
        return None
    field = COMMAND_FIELDS.get(kind)
    return kind.symbol or str(int(kind)), None if field is None else getattr(command, field)


def ids_of_send(content: Any, entry: Any) -> tuple[Any, ...]:
    """The producer and sequence id of a SEND; for a replicated message, the producer and ``_source_position``."""
    return content.get("producer_id"), *(_source_position(entry) or (content.get("sequence_id"),))


def _source_position(entry: Any) -> tuple[int, int] | None:
    """Ledger and entry of a replicated message in its source cluster; None for other messages and for markers."""
    metadata = entry.get("metadata") if entry is not None else None
    if metadata is None or metadata.marker_type is not None:
        return None
    position = next((pair.value for pair in metadata.properties if pair.key == SOURCE_POSITION), None)
    numbers = [] if position is None else [whole_number(part) for part in str(position).split(":")]
    if len(numbers) != 2 or numbers[0] is None or numbers[1] is None:
        return None
    return numbers[0], numbers[1]


def _entry_messages(frame: Frame, topic: str | None, command: Any, entry: Any, payload: _Payload) -> Iterator[Message]:
    metadata = entry.metadata
    position = command.get("message_id") if frame.side == "server" else None
    codec = (metadata.compression.symbol or "unknown").lower() if metadata.compression else "none"
    batched = isinstance(payload.content, list)
    items = payload.content if batched else [None]
    for place, item in enumerate(items):
        if item is not None and (item.get("payload") is None or item.metadata.compacted_out):
            continue
        single = metadata if item is None else item.metadata
        index = _index(metadata, place, len(items)) if batched else -1
        facts = _facts(entry, single, command, item, index, payload)
        yield Message(
            topic=topic,
            partition=_partition(topic, position),
            offset=_offset(position, index),
            timestamp=metadata.publish_time,
            timestamp_type="PublishTime",
            key=_key(single),
            value=None if single.null_value else bytes(payload.content if item is None else item.payload),
            attributes=None,
            codec=codec,
            crc=entry.get("checksum"),
            check=payload.check,
            schema=frame.schema,
            protocol="pulsar",
            details=TABLES.detailed(facts),
            facts=facts,
        )


def _index(metadata: Any, place: int, number: int) -> int:
    """The batch index of the message at a place; a compacted batch lists the indexes of the remaining messages."""
    indexes = metadata.compacted_batch_indexes
    return int(indexes[place]) if len(indexes) == number else place


def _facts(entry: Any, single: Any, command: Any, item: Any, index: int, payload: _Payload) -> dict[str, Any]:
    """Columns of a message that only Pulsar has; ``item`` is the message in its batch, None without a batch."""
    metadata = entry.metadata
    words = command.get("ack_set")
    keys = [key.key for key in metadata.encryption_keys] if payload.encrypted else None
    return {
        "log_offset": _broker_index(entry, index),
        "event_time": single.event_time or None,
        "event_time_ms": single.event_time or None,
        "properties": [{"name": pair.key, "value": pair.value} for pair in single.properties],
        "encrypted": payload.encrypted,
        "encryption_keys": keys,
        "producer": metadata.producer_name,
        "sequence_id": metadata.sequence_id if single.sequence_id is None else single.sequence_id,
        "acknowledged": not is_unacknowledged(words, index) if words and index >= 0 else None,
        "batch": None if item is None else 0,
        "batch_index": None if item is None else index,
        "wire_bytes": len(payload.content) if item is None else SIZE_BYTES + item.metadata_size + len(item.payload),
    }


def _broker_index(entry: Any, index: int) -> int | None:
    """The broker's index of the message; the index in the entry is that of its last message."""
    broker = entry.get("broker_entry_metadata")
    last = broker.metadata.index if broker is not None and broker.get("metadata") is not None else None
    if last is None:
        return None
    later = (entry.metadata.num_messages_in_batch or 1) - 1 - max(index, 0)
    return int(last - later) if index >= 0 or entry.metadata.num_messages_in_batch is None else int(last)


def _partition(topic: str | None, position: Any) -> int | None:
    if position is not None and position.partition is not None and position.partition >= 0:
        return int(position.partition)
    suffix = (topic or "").rpartition("-partition-")
    number = whole_number(suffix[2]) if suffix[1] else None
    return number if number is not None and number <= LARGEST_PARTITION else None


def _offset(position: Any, index: int) -> str | None:
    return None if position is None else f"{position.ledgerId}:{position.entryId}:{index}"


def _key(metadata: Any) -> bytes | None:
    if metadata.partition_key is None or metadata.null_partition_key:
        return None
    key = str(metadata.partition_key).encode(errors="surrogateescape")
    return decoded_key(key) if metadata.partition_key_b64_encoded else key


def decoded_key(text: bytes) -> bytes:
    """The bytes of a key in base64, whose padding may be left out, as in Java; other text as it is.

    >>> [decoded_key(text) for text in (b"YQ==", b"YQ", b"YQ=", b"a key")]
    [b'a', b'a', b'YQ=', b'a key']
    """
    padding = b"" if text.endswith(b"=") else b"=" * (-len(text) % 4)
    try:
        return base64.b64decode(text + padding, validate=True)
    except binascii.Error:
        return text
