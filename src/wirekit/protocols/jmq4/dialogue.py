"""The dialogue of a JMQ4 connection: it pairs requests and responses, and reads the messages in frames.

Sources: JoyQueue transport/support/DefaultChannelTransport.java:225, 302-323 (responses), consumer/converter/
BrokerMessageConverter.java:102-109 (batches), Serializer.java:285-292 (how the reader interprets systemCode).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from wirekit.conversation import OTHER_SIDES, Description, Dialogue, Frame, Message
from wirekit.conversation.dialogue import MOST_THOROUGH, THOROUGH
from wirekit.decoding import decode
from wirekit.engine import Decoded
from wirekit.errors import WireError
from wirekit.protocols.jmq4.attributes import properties_of
from wirekit.registry import Protocol
from wirekit.schemas.jmq4.codes import COMPRESSIONS, DOCUMENTED_COMPRESSIONS
from wirekit.schemas.jmq4.commands import VERSIONED
from wirekit.schemas.jmq4.message import FRAMINGS, JOYQUEUE_SOURCE, as_integer
from wirekit.wire.stream import Allowance

NAMES = {"zip": "zip", "zlib": "zlib", "snappy-framed": "snappy"}
MOST_APPS = 10_000
"""Apps, and topics of a command, that are remembered."""
NAMES_OF_CLIENT = ("username", "password", "app", "token", "region", "namespace", "version", "ip")
ADD_CONNECTION = {
    "version": 4,
    "identity": {"direction": "REQUEST", "qos_level": "RECEIVE"},
    "request_id": 1,
    "type": "ADD_CONNECTION",
    "send_time": 0,
    "payload": {**dict.fromkeys(NAMES_OF_CLIENT, "wirekit"), "language": "JAVA", "time": 0, "sequence": 1},
}
ONE_WAY = 0
"""The quality of service without a response, in both dialects: no peer sends the one that the document requires."""
PRODUCE_MESSAGE = 50
FETCH_TOPIC_MESSAGE_ACK = -30
FETCH_PARTITION_MESSAGE_ACK = -31


class JmqDialogue(Dialogue):
    """Follows one connection of either dialect.

    Attributes:
        apps: {app: {command: topics}} of the requests.
    """

    resumable = True

    def __init__(self, protocol: Protocol) -> None:
        super().__init__(protocol)
        self.apps: dict[str, dict[str, set[str]]] = {}
        if protocol.name == "joyqueue":
            self.opening = (("frame", ADD_CONNECTION),)

    def schema(self, side: str, data: bytes) -> tuple[str, Mapping[str, Any], str | None]:
        """The key of a frame; for responses with several layouts, with the version of the request."""
        key = self.protocol.key("frame")
        if self.protocol.name != "joyqueue":
            return key, {}, None
        header = decode(data, self.protocol.key("header"))
        if header.error is not None or header.value.type not in VERSIONED:
            return key, {}, None
        request = self.requests.get((OTHER_SIDES[side], header.value.request_id))
        version = request.description.version if request is not None else None
        return key, {"layout_version": version} if version else {}, None

    def plausible(self, side: str, data: bytes, size: int) -> bool:
        """Whether bytes may be a frame. Failed checks are accepted: the count of many COMMIT_ACK responses is wrong."""
        if super().plausible(side, data, size) or self.fits_unverified(data, self.protocol.key("frame"), size):
            return True
        if len(data) < size or size > MOST_THOROUGH:
            return False
        self._spend(data, THOROUGH)
        key, context, _ = self.schema(side, data)
        decoded = decode(data, key, context=context)
        return decoded.error is None and not decoded.gaps

    def describe(self, side: str, decoded: Decoded) -> Description:
        """Command, header version and request id; direction and quality of service give the role."""
        value = decoded.value
        if value is None or value.get("type") is None:
            return Description()
        api = value.type.symbol or str(int(value.type))
        answer = value.identity.direction == 1
        asker = OTHER_SIDES[side] if answer else side
        return Description(
            api=api,
            version=value.version,
            correlation_id=value.request_id,
            role="response" if answer else "request",
            answered=value.identity.qos_level != ONE_WAY,
            pair=(asker, value.request_id),
        )

    def observe(self, frame: Frame) -> None:
        """Stores the apps, and the topics that each uses by command."""
        payload = frame.part("payload")
        if frame.description.role != "request" or payload is None:
            return
        app = payload.get("app")
        if app is None or (app not in self.apps and len(self.apps) >= MOST_APPS):
            return
        commands = self.apps.setdefault(app, {}).setdefault(frame.description.api or "", set())
        for topic in payload.get("topics") or [payload.get("topic")]:
            name = topic if topic is None or isinstance(topic, str) else topic.get("topic")
            if name is not None and len(commands) < MOST_APPS:
                commands.add(name)

    @property
    def usual(self) -> bool:
        """Always true: the header of a frame has all facts."""
        return True

    def summary(self) -> dict[str, Any]:
        """The apps, and the topics that each used by command."""
        return {
            "apps": [
                {"app": app, "command": command, "topics": sorted(topics)}
                for app, commands in self.apps.items()
                for command, topics in commands.items()
            ]
        }

    def sender(self, decoded: Decoded) -> str:
        """The client for requests and the server for responses."""
        identity = None if decoded.value is None else decoded.value.get("identity")
        return "" if identity is None else "server" if identity.direction == 1 else "client"

    def messages(self, frame: Frame) -> Iterator[Message]:
        """The messages of PRODUCE_MESSAGE, which have no offset yet, and of both FETCH responses, batches split."""
        value, payload = frame.value, frame.part("payload")
        if payload is None:
            return
        allowance = Allowance(frame.decoded.limits, frame.decoded.consumed)
        verdicts = {check.path: check.status for check in frame.decoded.checks}
        for topic, path, number, message in _records(int(value.type), payload):
            if "app" in message:
                check = verdicts.get(f"{path}.body_crc", "absent")
                stored = value.type != PRODUCE_MESSAGE
                yield from _application_messages(frame, topic, message, check, allowance, number, stored=stored)


def _records(kind: int, payload: Any) -> Iterator[tuple[str | None, str, int, Any]]:
    """(topic, path, number, record) of each message in a payload, as far as it was decoded."""
    if kind == PRODUCE_MESSAGE:
        holders = [(topic, f"payload.topics[{i}]", topic) for i, topic in enumerate(payload.get("topics") or [])]
    elif kind == FETCH_TOPIC_MESSAGE_ACK:
        holders = [(topic, f"payload.data[{i}]", topic) for i, topic in enumerate(payload.get("data") or [])]
    elif kind == FETCH_PARTITION_MESSAGE_ACK:
        holders = [
            (topic, f"payload.data[{i}].partitions[{j}]", partition)
            for i, topic in enumerate(payload.get("data") or [])
            for j, partition in enumerate(topic.get("partitions") or [])
        ]
    else:
        return
    for topic, path, holder in holders:
        for index, message in enumerate(holder.get("messages") or []):
            yield topic.topic, f"{path}.messages[{index}]", index, message


def _application_messages(
    frame: Frame, topic: str | None, message: Any, check: str, allowance: Allowance, number: int, *, stored: bool
) -> Iterator[Message]:
    """The application messages of one record; if its body cannot be decompressed, its body as it is in the record.

    A produced message is not ``stored``: it has no offset yet, and no partition if the broker is to choose one.
    """
    codec, body = _decompressed(frame.protocol, message, allowance)
    inner = _batch(frame.protocol, message, body) if body is not None else None
    for index, item in enumerate([message] if inner is None else inner):
        content = item.body or b""
        value = content if inner is not None or body is None else body
        yield Message(
            topic=topic,
            partition=message.partition if message.partition >= 0 else None,
            offset=message.index + index if stored else None,
            timestamp=message.send_time,
            timestamp_type="CreateTime",
            key=_key(item.business_id),
            value=value,
            attributes=as_integer(message.system_code),
            codec=codec,
            crc=message.body_crc,
            check=check,
            schema=frame.schema,
            protocol=frame.protocol,
            facts={
                "properties": properties_of(item.attributes),
                "producer": message.app,
                "batch": None if inner is None else number,
                "batch_index": None if inner is None else index,
                "wire_bytes": item.length - len(content) + len(value),
            },
        )


def _decompressed(protocol: str, message: Any, allowance: Allowance) -> tuple[str, bytes | None]:
    """(codec, body); None for a body that does not decompress."""
    code = message.system_code
    body = message.body or b""
    if not code.compressed:
        return "none", body
    table = COMPRESSIONS if protocol == "joyqueue" else DOCUMENTED_COMPRESSIONS
    number = int(code.compression) & 3 if code.message_version == 0 else int(code.compression)
    symbol = table(number).symbol
    if symbol == "NONE":
        return "none", body
    codec = FRAMINGS.get(symbol or "")
    if codec is None:
        return str(number), None
    try:
        return NAMES[codec], allowance.decompress(codec, body)
    except WireError:
        return NAMES[codec], None


def _batch(protocol: str, message: Any, body: bytes) -> Any:
    """The messages of a batch, or None if it is not a batch: bits 13 to 15 must be 0, and the source JoyQueue itself.

    JoyQueue reads as many messages as the flag says and ignores the rest of the body.
    """
    code = message.system_code
    if not code.batch or code.reserved or (protocol == "joyqueue" and code.source != JOYQUEUE_SOURCE):
        return None
    decoded = decode(body, f"{protocol}.batch")
    messages = decoded.value.get("messages") or []
    is_whole = decoded.error is None and decoded.consumed == len(body) and not decoded.gaps
    if protocol == "joyqueue" and 0 < message.flag <= len(messages) - (decoded.error is not None):
        return messages[: message.flag]
    return messages if is_whole else None


def _key(business_id: Any) -> bytes | None:
    if business_id is None or isinstance(business_id, bytes):
        return business_id
    return str(business_id).encode(errors="surrogateescape")
