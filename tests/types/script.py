"""What a user writes who wants a type checker to know the fields: ``make lint`` checks it by mypy, strict as all else.

An error that must be found has a comment that mypy finds superfluous if there is none.
"""

from __future__ import annotations

import wirekit
from wirekit.types.kafka import MessageSet, ProduceRequestV2
from wirekit.types.pulsar import Frame


def topics(request: ProduceRequestV2) -> dict[str, int]:
    """Messages by topic."""
    counts: dict[str, int] = {}
    for topic in request.body.topic_data:
        for partition in topic.data:
            messages = [] if partition.record_set is None else partition.record_set.messages
            counts[topic.topic] = counts.get(topic.topic, 0) + len(messages)
    return counts


def codecs(messages: MessageSet) -> list[str | None]:
    """The codec of each message."""
    return [each.message.attributes.codec.symbol for each in messages.messages]


def client(frame: Frame) -> str:
    """What a Pulsar client calls itself."""
    connect = frame.command.connect
    return "" if connect is None else connect.client_version


def mistakes(request: ProduceRequestV2, frame: Frame) -> None:
    """What a checker must find."""
    request.body.topics  # type: ignore[attr-defined]  # noqa: B018
    request.body.acks + request.client_id  # type: ignore[operator]
    frame.command.connect.client_version  # type: ignore[union-attr]  # noqa: B018
    wirekit.decode(b"", "kafka.produce.request.v2").value.body.topics  # type: ignore[attr-defined]  # noqa: B018
    wirekit.decode(b"", "pulsar").value.command.connect.client_version  # type: ignore[union-attr]  # noqa: B018


def decoded(data: bytes) -> ProduceRequestV2:
    """A value of a literal key: its type is known."""
    value = wirekit.decode(data, "kafka.produce.request.v2", strict=True).value
    return value


def of_any_key(data: bytes, key: str) -> str:
    """A value of a key that is not known before the script runs: it may be anything."""
    result: wirekit.Decoded = wirekit.decode(data, key)
    name: str = result.value.client_id
    return name
