"""The application messages of decoded message sets: decompressed, with absolute offsets and effective timestamps.

The rules are those of Kafka 0.10.2's reader (``MemoryRecords.RecordsIterator``, ``Record.timestamp``):

- In a wrapper of magic 1, offsets count from a base: the offset of the wrapper minus the last inner offset. If the base
  is negative (a produce request before it reaches a broker), and in a wrapper of magic 0, offsets are used as stored.
  An offset is unknown if it, or the base, exceeds 64 bits.
- The timestamp type of a wrapper of magic 1 applies to all messages in it; with LogAppendTime, so does its timestamp.
- Messages of magic 0 have no timestamp, and -1 means none.
- A compressed value that cannot be decompressed is returned as stored, as the value of one message with a bad check.
- The CRC of a wrapper covers its contents: a message in a wrapper has the worse of both verdicts.
- A CRC covers all bytes of ``message_size`` (``Record.computeChecksum``), including bytes that no field explains. If
  only the CRC over the fields is good, the size is wrong, and in a file the next message begins inside it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from wirekit.conversation import Message
from wirekit.engine import Decoded
from wirekit.errors import plural
from wirekit.schemas.kafka.messages import ATTRIBUTES
from wirekit.values import Check, Record
from wirekit.wire.compressed import Opened, is_damage

CODEC_NAMES = {0: "none", 1: "gzip", 2: "snappy", 3: "lz4"}
LOG_APPEND_TIME = 1
SEGMENT = "kafka.log_segment"
NO_TIMESTAMP = -1
ENTRY_HEAD = 12
"""Bytes of an entry before the bytes that its ``message_size`` counts."""


class _Wrapper(NamedTuple):
    """Fields of a compressed message that apply to the messages in it."""

    magic: int
    offset: int | None
    timestamp: int | None
    timestamp_type: Any
    codec: str
    check: str
    size: int
    damaged: bool


def verdicts(checks: Iterable[Check]) -> dict[str, Check]:
    """The verdicts on CRCs and decompression in a decoded value, by path."""
    return {check.path: check for check in checks if check.kind in ("crc32", "decompression")}


def left_over(entry: Record) -> bytes:
    """The bytes within an entry's ``message_size`` that no field explains."""
    trailing: bytes = entry._extra.get("trailing", {}).get("message_size", b"") if entry._extra else b""
    return trailing


def content(value: Any) -> Any:
    """The message set in the value of a wrapper, as far as limits allowed decoding it; None for other values."""
    return value.content if isinstance(value, Opened) else value if isinstance(value, Record) else None


def over_size(entry: Record, check: Check) -> Check:
    """The verdict on the CRC of an entry over all bytes of its ``message_size``, not only over its fields."""
    trailing = left_over(entry)
    if not trailing or check.note:
        return check
    computed = zlib.crc32(trailing, check.computed)
    note = f"computed over the message_size, {plural(len(trailing), 'byte')} more than the fields"
    verdict = "ok" if computed == check.stored else "bad"
    return Check(check.path, check.kind, check.stored, computed, verdict, check.offset, check.source, note)


def status(entry: Record, check: Check | None) -> str:
    """The verdict on the CRC of an entry, over all bytes of its ``message_size``: ``ok``, ``bad`` or ``absent``."""
    if check is None:
        return "absent"
    return over_size(entry, check).status


def messages_of_set(
    message_set: Any,
    statuses: Mapping[str, Check],
    *,
    path: str = "",
    topic: str | None = None,
    partition: int | None = None,
    schema: str = "kafka.message_set",
    position: int | None = None,
    first: int = 0,
    offsets: bool = True,
) -> Iterator[Message]:
    """The application messages of a decoded message set or log segment, in order.

    Args:
        message_set: the value; it may be None, or decoded in part.
        statuses: the result of ``verdicts`` for the decoded value that contains the set.
        path: the path of the set in that value.
        topic, partition: the topic and partition of the messages, if known.
        schema: the key of the decoded value.
        position: for a stored set, its byte offset in the file.
        first: the number of its first entry, if it continues a set.
        offsets: whether the offsets are those of a log; produced messages have none yet.

    >>> import wirekit
    >>> message = {"offset": 5, "message": {"magic": 0, "value": "6869"}}
    >>> data = wirekit.encode("kafka.message_set", {"messages": [message]})
    >>> decoded = wirekit.decode(data, "kafka.message_set")
    >>> [(m.offset, m.value, m.check) for m in messages_of_set(decoded.value, verdicts(decoded.checks))]
    [(5, b'hi', 'ok')]
    """
    reader = _Reader(statuses, topic, partition, schema, _Place(position, first), offsets)
    return reader.read(message_set, path, None)


def messages_of(decoded: Decoded, *, topic: str | None = None, partition: int | None = None) -> Iterator[Message]:
    """The application messages of a decoded ``kafka.message_set`` or ``kafka.log_segment``."""
    statuses = verdicts(decoded.checks)
    position = decoded.offset if decoded.schema == SEGMENT else None
    return messages_of_set(
        decoded.value, statuses, topic=topic, partition=partition, schema=decoded.schema, position=position
    )


@dataclass(slots=True)
class _Place:
    """The place of the current entry: its byte in the file of a stored set, its number, and its messages so far."""

    position: int | None
    number: int = 0
    index: int = 0

    def facts(self, size: int, *, inside: bool) -> dict[str, int]:
        """The columns of the next message.

        Args:
            size: size of its own entry in bytes.
            inside: whether it is inside a wrapper.
        """
        facts = {"wire_bytes": size}
        if self.position is not None:
            facts["position"] = self.position
        if inside:
            facts["batch"] = self.number if self.position is None else self.position
            facts["batch_index"] = self.index
            self.index += 1
        return facts


@dataclass(frozen=True, slots=True)
class _Reader:
    statuses: Mapping[str, Check]
    topic: str | None
    partition: int | None
    schema: str
    at: _Place
    offsets: bool

    def read(self, message_set: Any, path: str, wrapper: _Wrapper | None) -> Iterator[Message]:
        if message_set is None:
            return
        entries = message_set.get("messages") or []
        is_absolute, base = _base(message_set, entries, wrapper)
        prefix = f"{path}.messages" if path else "messages"
        first = self.at.number
        for index, entry in enumerate(entries):
            message = entry.get("message")
            if wrapper is None:
                self.at.number, self.at.index = first + index, 0
                if index and self.at.position is not None:
                    self.at.position += ENTRY_HEAD + entries[index - 1].message_size
            if message is None or "value" not in message:
                continue
            offset = _int64(entry.offset + base) if is_absolute else None
            place = f"{prefix}[{index}].message"
            damaged = is_damage(self.statuses.get(f"{place}.value"))
            crc = status(entry, self.statuses.get(f"{place}.crc"))
            own = _described(entry, offset, wrapper, crc, damaged=damaged)
            inside = content(message.value)
            if inside is None or (damaged and not has_message(inside)):
                yield self._message(message, own, place, wrapper)
            else:
                yield from self.read(inside, f"{place}.value.content", own)

    def _message(self, message: Record, own: _Wrapper, path: str, wrapper: _Wrapper | None) -> Message:
        value = message.value
        if isinstance(value, Record):
            value = value.compressed
        attributes = 0
        for name, _, shift in ATTRIBUTES.fields:
            attributes |= getattr(message.attributes, name) << shift
        unopened = self.statuses.get(f"{path}.value")
        dated = message.magic >= 1
        return Message(
            topic=self.topic,
            partition=self.partition,
            offset=own.offset if self.offsets else None,
            timestamp=own.timestamp if dated and own.timestamp != NO_TIMESTAMP else None,
            timestamp_type=own.timestamp_type.symbol if dated else None,
            key=message.key,
            value=value,
            attributes=attributes,
            codec=wrapper.codec if wrapper is not None and own.codec == "none" else own.codec,
            crc=message.crc,
            check=own.check if unopened is None else unopened.status,
            schema=self.schema,
            protocol="kafka",
            facts=self.at.facts(own.size, inside=wrapper is not None),
        )


def _described(entry: Record, offset: int | None, wrapper: _Wrapper | None, check: str, *, damaged: bool) -> _Wrapper:
    """The verdicts on a message and, if it is a wrapper, on its contents."""
    message = entry.message
    timestamp, timestamp_type = message.get("timestamp"), message.attributes.timestamp_type
    if wrapper is not None and wrapper.check == "bad":
        check = "bad"
    if wrapper is not None and wrapper.magic >= 1:
        timestamp_type = wrapper.timestamp_type
        if timestamp_type == LOG_APPEND_TIME:
            timestamp = wrapper.timestamp
    number = int(message.attributes.codec)
    codec = CODEC_NAMES.get(number, f"codec {number}")
    size = ENTRY_HEAD + entry.message_size
    return _Wrapper(int(message.magic), offset, timestamp, timestamp_type, codec, check, size, damaged)


def _base(message_set: Any, entries: list[Any], wrapper: _Wrapper | None) -> tuple[bool, int]:
    """Whether absolute offsets are known, and the number to add to the stored offsets."""
    if wrapper is None or wrapper.magic == 0 or not entries:
        return True, 0
    if message_set.get("partial") != b"" or wrapper.offset is None or wrapper.damaged:
        return False, 0  # the last message, which has the offset of the wrapper, may be missing
    base = _int64(wrapper.offset - entries[-1].offset)
    return base is not None, max(0, base or 0)


def _int64(number: int) -> int | None:
    """The number, if an offset has enough bits for it."""
    return number if -1 << 63 <= number < 1 << 63 else None


def contents(message_set: Record) -> Iterator[Any]:
    """For each decoded message of a set: the set in its value, None if it is not a wrapper."""
    for entry in message_set.get("messages") or ():
        if "value" in (entry.get("message") or ()):
            yield content(entry.message.value)


def has_message(message_set: Record) -> bool:
    """Whether a set, or a set in it, has a decoded message."""
    return any(inner is None or has_message(inner) for inner in contents(message_set))
