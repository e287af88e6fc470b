"""The output of a conversation: frames with their messages, undecodable bytes, and NEED_DATA."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from wirekit.engine import Decoded
from wirekit.values import to_json

SIDES = ("client", "server")


class _NeedData:
    """The outcome "a frame has begun and is not all there"."""

    def __repr__(self) -> str:
        return "NEED_DATA"


NEED_DATA = _NeedData()


# Named tuples, not frozen dataclasses: one is made for each frame or message, at a quarter of the cost.
class Description(NamedTuple):
    """The role of a frame in its conversation.

    Attributes:
        api: name of the API or command, as the protocol's keys or enumeration write it.
        version: version of the API or header, None if the protocol has none.
        correlation_id: the protocol's request id, None if the frame has none.
        role: ``request``, ``response``, or ``event`` for what neither asks nor answers.
        answered: whether a request gets a response.
        pair: what links request and response; by default the correlation id.
    """

    api: str | None = None
    version: int | None = None
    correlation_id: int | None = None
    role: str = "event"
    answered: bool = True
    pair: Hashable = None


class Message(NamedTuple):
    """One application message out of a frame or a log segment; compressed sets and batches are opened.

    Attributes:
        offset: absolute log offset or index; ``ledger:entry:batch_index`` for Pulsar; None where nobody knows it yet.
        timestamp: milliseconds since the epoch, or None.
        timestamp_type: ``CreateTime`` or ``LogAppendTime``, or None.
        key, value: bytes, or None for null.
        attributes: the protocol's attribute bits as one integer, or None.
        codec: ``none``, ``gzip``, ``snappy``, ``lz4``, ``zlib``, ``zip``, ``zstd``.
        crc: the checksum as stored, or None.
        check: ``ok``, ``bad`` or ``absent``: the verdict on it; in a compressed message, the worse of both verdicts.
        schema: the key of the frame or record it came in.
        details: what else its protocol says of it, by name (docs/json.md), as plain JSON data.
        facts: columns of the table ``messages`` that nothing above holds, by name.
    """

    topic: str | None
    partition: int | None
    offset: int | str | None
    timestamp: int | None
    timestamp_type: str | None
    key: bytes | None
    value: bytes | None
    attributes: int | None
    codec: str
    crc: int | None
    check: str
    schema: str
    protocol: str
    details: Mapping[str, Any] = {}
    facts: Mapping[str, Any] = {}

    def to_json(self) -> dict[str, Any]:
        """The line that ``wirekit messages --output json`` prints, without ``file``: ``SHOWN``, then the details."""
        return {**{name: to_json(getattr(self, name)) for name in SHOWN}, **self.details}


SHOWN = ("protocol", *(name for name in Message._fields if name not in ("protocol", "details", "facts")))
"""The names of what every message has, as they are shown."""


class Undeclared(str):
    """Why the body of a frame is a gap although nothing is wrong with it: what it is has no layout here."""

    __slots__ = ()


@dataclass(slots=True)
class Frame:
    """A frame of a conversation.

    Attributes:
        side: who sent it, ``client`` or ``server``.
        offset: bytes of that direction before it.
        data: its bytes.
        time_us: when its last byte arrived, microseconds since the epoch, or None.
        decoded: value, checks, gaps, error; offsets in it are offsets of the direction.
        request: for a response, the request it answers.
        reason: why the body could not be decoded although the frame is whole, or why the frame is not in its place;
            ``Undeclared`` where the header says what the frame is, and the body alone is not known.
        messages: the application messages in it.
    """

    protocol: str
    side: str
    offset: int
    data: bytes
    time_us: int | None
    decoded: Decoded
    description: Description
    request: Frame | None = None
    reason: str | None = None
    messages: list[Message] = field(default_factory=list)

    @property
    def schema(self) -> str:
        """The key it was decoded by."""
        return self.decoded.schema

    @property
    def value(self) -> Any:
        """Its value, as far as it was decoded."""
        return self.decoded.value

    @property
    def wrong(self) -> str | None:
        """The reason, where it is more than that the body has no layout here."""
        return None if isinstance(self.reason, Undeclared) else self.reason

    @property
    def latency_us(self) -> int | None:
        """Microseconds between the request and this response, or None."""
        if self.request is None or self.time_us is None or self.request.time_us is None:
            return None
        return self.time_us - self.request.time_us

    def __repr__(self) -> str:
        description = self.description
        version = "" if description.version is None else f" v{description.version}"
        api = f"{description.api}{version} #{description.correlation_id}"
        return f"<Frame {self.side} {api} {self.schema} at {self.offset}>"


class Quarantined(NamedTuple):
    """Bytes of a direction that nobody could decode.

    Attributes:
        reason: in words.
        path, error_offset: the field and the offset in the direction where decoding failed, if it got that far.
    """

    side: str
    offset: int
    data: bytes
    time_us: int | None
    reason: str
    path: str = ""
    error_offset: int | None = None


Event = Frame | Quarantined | _NeedData
