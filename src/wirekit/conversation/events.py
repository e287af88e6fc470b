"""The output of a conversation: frames with their messages, undecodable bytes, and NEED_DATA."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from wirekit.engine import Decoded, decode_bytes
from wirekit.registry import Schema, registry
from wirekit.values import to_json
from wirekit.wire.stream import Decrypt, Limits

SIDES = ("client", "server")
OTHER_SIDES = {"client": "server", "server": "client"}


class _NeedData:
    """The outcome "a frame has begun and is incomplete"."""

    def __repr__(self) -> str:
        return "NEED_DATA"

    def __reduce__(self) -> str:  # the one object also after pickling and copying: callers compare with ``is``
        return "NEED_DATA"


NEED_DATA = _NeedData()
ROLES = ("request", "response", "event")
"""The roles of frames."""


# Named tuples, not frozen dataclasses: one is made for each frame or message, at a quarter of the cost.
class Description(NamedTuple):
    """The role of a frame in its conversation.

    Attributes:
        api: name of the API or command, as the protocol's keys or enumeration write it. A response without one gets
            the API and version of its request.
        version: version of the API or header, None if the protocol has none.
        correlation_id: the protocol's request id, None if the frame has none.
        role: ``request``, ``response``, or ``event`` for a frame that is neither.
        answered: whether a request gets a response.
        pair: the key that links request and response; by default the correlation id.
    """

    api: str | None = None
    version: int | None = None
    correlation_id: int | None = None
    role: str = "event"
    answered: bool = True
    pair: Hashable = None


class Message(NamedTuple):
    """One application message from a frame or a log segment, also from compressed sets and batches.

    Attributes:
        topic, partition: None if the bytes do not tell them.
        offset: absolute log offset or index; ``ledger:entry:batch_index`` for Pulsar; None if not assigned yet.
        timestamp: milliseconds since the epoch, or None.
        timestamp_type: ``CreateTime``, ``LogAppendTime``, ``PublishTime``, or None.
        key, value: bytes, or None for null.
        attributes: the protocol's attribute bits as one integer, or None.
        codec: ``none``, ``gzip``, ``snappy``, ``lz4``, ``zlib``, ``zip``, ``zstd``.
        crc: the checksum as stored, or None.
        check: the verdict on ``crc``: ``ok``, ``bad`` or ``absent``; in a wrapper, the worse of this and the wrapper's.
        schema: the key of the frame or record that contains it.
        protocol: the name of the protocol.
        details: further facts of its protocol by name (docs/json.md), as plain JSON data.
        facts: columns of the table ``messages`` that have no attribute here, by name.
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
"""The names of the attributes of every message, as they are shown."""


class Undeclared(str):
    """The reason why the body of a frame without any error is a gap: its API or version has no layout."""

    __slots__ = ()


class _Reading(NamedTuple):
    """The arguments with which the bytes of a frame are decoded again."""

    schema: Schema
    context: Mapping[str, Any]
    limits: Limits
    offset: int
    decrypt: Decrypt | None


@dataclass(slots=True)
class Frame:
    """A frame of a conversation.

    Attributes:
        protocol: the name of the protocol.
        side: the sender, ``client`` or ``server``.
        offset: number of bytes before it in its direction.
        data: the bytes of the frame.
        time_us: arrival time of its last byte, microseconds since the epoch, or None.
        decoded: value, checks, gaps, error; its offsets count from the start of the direction.
        description: its role, API, version and correlation id.
        request: for a response, the request it answers.
        reason: why the body of a whole frame could not be decoded, why the frame is unexpected here, or why the frame
            is cut; ``Undeclared`` if only the layout of the body is missing.
        messages: the application messages in it.
        announced: of a frame that is cut because bytes are missing, its size by its own length; ``data`` are the bytes
            before the first missing one. Otherwise 0.
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
    announced: int = 0
    _released: _Reading | None = field(default=None, init=False, repr=False, compare=False)

    def release(self) -> None:
        """Drops ``decoded`` if it is clean, to save memory; the next access decodes ``data`` again."""
        if self._released is None and (decoded := self.decoded).clean:
            schema = registry[decoded.schema]
            self._released = _Reading(schema, decoded.context, decoded.limits, decoded.offset, decoded.decrypt)
            del self.decoded

    @property
    def reading(self) -> tuple[str, Mapping[str, Any], Limits]:
        """The key, the context and the limits of ``decoded``; known without decoding again."""
        released = self._released
        if released is None:
            return self.decoded.schema, self.decoded.context, self.decoded.limits
        return released.schema.key, released.context, released.limits

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:  # only called for an attribute that is missing
            if name != "decoded" or self._released is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            schema, context, limits, offset, decrypt = self._released
            self.decoded = decode_bytes(schema, self.data, context, limits, offset, decrypt=decrypt)
            self._released = None
            return self.decoded

    @property
    def size(self) -> int:
        """Bytes of the whole frame, missing ones included."""
        return self.announced or len(self.data)

    @property
    def schema(self) -> str:
        """The key that decoded it."""
        released = self._released
        return self.decoded.schema if released is None else released.schema.key

    @property
    def value(self) -> Any:
        """Its value, as far as decoded."""
        return self.decoded.value

    def part(self, name: str) -> Any:
        """A field of its value; None if it was not decoded, or is only known as bytes."""
        part = None if self.value is None else self.value.get(name)
        return None if isinstance(part, bytes) else part

    @property
    def wrong(self) -> str | None:
        """The reason, unless it is only that the body has no layout."""
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
    """Bytes of a direction that could not be decoded.

    Attributes:
        side: the sender, ``client`` or ``server``.
        offset: number of bytes before them in their direction.
        data: the bytes.
        time_us: arrival time of the last bytes received, microseconds since the epoch, or None.
        reason: the reason, as text.
        path, error_offset: the field where decoding failed, and its offset in the direction, if decoding began.
    """

    side: str
    offset: int
    data: bytes
    time_us: int | None
    reason: str
    path: str = ""
    error_offset: int | None = None


Event = Frame | Quarantined | _NeedData
