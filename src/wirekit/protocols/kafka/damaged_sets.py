"""The messages of a set that follow a message with a wrong ``message_size``, or one that does not decode.

Decoding cannot continue there, because the size gives the start of the next message. So the remaining bytes of the set
are searched for messages with a good CRC. If the fields of a message end before its size does, and the bytes between
contain an intact message, the size is wrong: the message ends with its fields, and its verdict is bad, because its CRC
covers all bytes that its size names. If both the fields and the size exceed the set, the broker has cut the message in
a fetch. Fetches do not cut the set in a wrapper: if its last message is incomplete, the producer compressed other bytes
than a message set, and brokers drop the rest.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

from wirekit.compiler.generated import by_key
from wirekit.conversation import Message
from wirekit.decoding import decode
from wirekit.engine import Decoded
from wirekit.errors import Limit, WireError
from wirekit.protocols.kafka.reading import ENTRY_HEAD, content, left_over, messages_of_set, over_size, status, verdicts
from wirekit.protocols.kafka.searching import Search
from wirekit.registry import registry
from wirekit.schemas.kafka.messages import ENTRY, MESSAGE, record_set
from wirekit.values import Check, Record
from wirekit.wire import Compressed, Struct
from wirekit.wire.stream import Limits, Reader, Scope, Session, join_path

ALLOWANCE = 16 * 1024  # bytes
LEAST_MEMORY = 1024  # bytes
SMALLEST = 3
"""The factor by which the smallest messages take more memory per byte than others; it is soon free again."""
BATCH = 64 * 1024  # bytes
_LIMITS = Limits()
SET, UNTIMED = "kafka.message_set", ".untimed"


class Part(NamedTuple):
    """An entry in the bytes of a set.

    Attributes:
        start, stop: its range.
        named: whether its size agrees with this range.
    """

    start: int
    stop: int
    named: bool


class Sets:
    """Returns the messages of the sets in a frame, including those after damage.

    Args:
        decoded: the frame, or a single set with the path "".
        ordered: whether offsets ascend, as in sets from a broker; otherwise messages have no offset yet.
    """

    def __init__(self, decoded: Decoded, *, ordered: bool) -> None:
        self._decoded = decoded
        self._ordered = ordered
        self._is_set = decoded.schema.startswith(SET)
        self._statuses = verdicts(decoded.checks)
        self._stopped = {each.path: each for each in decoded.contained}
        untimed = decoded.schema.endswith(UNTIMED)
        self._key = SET + UNTIMED if untimed else SET

    def messages(self, message_set: Any, path: str, *, topic: str | None, partition: int | None) -> Iterator[Message]:
        """The messages of the set at a path."""
        facts: dict[str, Any] = {"topic": topic, "partition": partition, "schema": self._decoded.schema}
        facts["offsets"] = self._ordered
        if message_set is None:
            return
        self.verify(message_set, path)
        self._verify_contents(message_set, path)
        entries = message_set.get("messages") or []
        number, data, start = self._damage(message_set, entries, path)
        if number is None:
            yield from messages_of_set(message_set, self._statuses, path=path, **facts)
            return
        before = entries[number - 1].offset if number and self._ordered else None
        parts = list(self._parts(data, start, before, undecodable=self._is_undecodable(path, number)))
        if not parts or (self._decoded.error is None and all(part.named for part in parts)):
            yield from messages_of_set(message_set, self._statuses, path=path, **facts)
            return
        if number == len(entries):
            self._decoded.add(self._verdict(data, parts[0], path))
        yield from messages_of_set({"messages": entries[:number]}, self._statuses, path=path, **facts)
        for batch in _batches(parts):
            rebuilt = b"".join(self._bytes(data, part) for part in batch)
            decoded = decode(rebuilt, self._key, limits=self._limits(rebuilt))
            statuses = verdicts(decoded.checks)
            for index, part in enumerate(batch):
                place = f"messages[{index}].message.crc"
                if not part.named and place in statuses:
                    statuses[place] = statuses[place]._replace(status="bad")
            yield from messages_of_set(decoded.value, statuses, first=number, **facts)
            number += len(batch)

    def verify(self, message_set: Any, path: str) -> None:
        """Replaces verdicts on CRCs over the fields alone by those over all bytes of the size, also in wrappers."""
        decoded = self._decoded
        if not decoded.gaps:
            return
        before = f"{path}.messages" if path else "messages"
        for number, entry in enumerate(message_set.get("messages") or []):
            place = f"{before}[{number}].message"
            if left_over(entry) and (check := self._statuses.get(f"{place}.crc")) is not None:
                self._statuses[check.path] = over_size(entry, check)
                decoded.put(self._numbers[check.path], self._statuses[check.path])
            message = entry.get("message")
            value = None if message is None else message.get("value")
            if isinstance(value, Record) and (inside := content(value)) is not None:
                self.verify(inside, f"{place}.value.content")

    def _verify_contents(self, message_set: Any, path: str) -> None:
        """Adds a bad verdict for each wrapper whose decompressed set ends inside a message."""
        before = f"{path}.messages" if path else "messages"
        for number, entry in enumerate(message_set.get("messages") or []):
            message = entry.get("message")
            value = None if message is None else message.get("value")
            if not isinstance(value, Record) or (inside := content(value)) is None:
                continue
            value_path = f"{before}[{number}].message.value"
            place = f"{value_path}.content"
            if (partial := inside.get("partial")) and value_path not in self._statuses:
                start, source = self._contents.get(f"{place}.partial", (0, 0))
                size = _size_of(partial)
                present = None if size is None else len(partial) - ENTRY_HEAD
                start += 0 if size is None else ENTRY.lead("message_size")
                note = "the decompressed set ends inside a message"
                self._decoded.add(Check(f"{place}.partial", "length", size, present, "bad", start, source, note))
            self._verify_contents(inside, place)

    @cached_property
    def _contents(self) -> dict[str, tuple[int, int]]:
        """(start, source) of the fields in decompressed data, by path; empty if the spans exceed the limits."""
        try:
            return {each.path: (each.start, each.source) for each in self._decoded.spans if each.source}
        except Limit:
            return {}

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """The number of each verdict on a CRC, by path."""
        return {check.path: number for number, check in enumerate(self._decoded.checks) if check.kind == "crc32"}

    def _damage(self, message_set: Any, entries: list[Record], path: str) -> tuple[int | None, bytes, int]:
        """The number of the first entry that disagrees with its size, the set, and the entry's start in them."""
        decoded = self._decoded
        stopped = self._stopped.get(path)
        for number, entry in enumerate(entries if stopped or decoded.gaps else ()):
            check = self._statuses.get(join_path([path, f"messages[{number}].message.crc"]))
            wrong = check is not None and left_over(entry) and status(entry, check) == "bad"
            if wrong or (stopped and number == len(entries) - 1):
                start = sum(ENTRY_HEAD + each.message_size for each in entries[:number])
                begin = self._begin(path)
                return (number, decoded.data[begin : self._end(begin)], start)
        partial = message_set.get("partial") or b""
        return (len(entries), partial, 0) if is_oversized(partial, self._key) else (None, b"", 0)

    def _begin(self, path: str) -> int:
        """The offset of the set at a path in the frame."""
        if self._is_set:
            return 0
        if path in self._stopped:
            return self._stopped[path].start
        first = self._statuses.get(join_path([path, "messages[0].message.crc"]))
        if first is not None:
            return first.offset - ENTRY.lead("message") - MESSAGE.lead("crc") - self._decoded.offset
        return self._begins.get(f"{path}.$length", self._decoded.offset) - self._decoded.offset

    @cached_property
    def _begins(self) -> dict[str, int]:
        """The ends of the lengths of the frame's own fields, by path; empty if the spans exceed the limits."""
        try:
            return {each.path: each.end for each in self._decoded.spans if each.kind == "length" and not each.source}
        except Limit:
            return {}

    def _end(self, begin: int) -> int:
        """The end of the set that begins at an offset."""
        if self._is_set:
            return len(self._decoded.data)
        data, length = self._decoded.data, record_set.length
        return min(begin + int(length.unpack(data[begin - length.length : begin])), len(data))

    def _is_undecodable(self, path: str, number: int) -> bool:
        """Whether the set ended in an error in a field of an entry's message, so that its fields do not end."""
        stopped = self._stopped.get(path)
        return stopped is not None and stopped.error.path.startswith(f"{path}.messages[{number}].message.")

    def _parts(self, data: bytes, at: int, before: int | None, *, undecodable: bool) -> Iterator[Part]:
        """The entries from the first one that disagrees with its size: valid ones, and those with a bad verdict.

        Args:
            undecodable: whether the fields of the first entry are known to be incomplete.
        """
        first = at
        search = Search("", io.BytesIO(data), ALLOWANCE)
        search.before = before
        while at < len(data):
            claim = search.claim(at)
            end = len(data) if claim is None else at + claim
            if claim is not None and search.is_message(at):
                yield Part(at, end, True)
                search.before = search.offset(at) if self._ordered else None
                at = end
                continue
            limit = min(end, len(data))
            fields = None if undecodable and at == first else fields_end(data, at, limit, self._key)
            if end > limit and fields is None:
                return  # cut
            next_start = search.within(at + 1 if fields is None else fields, limit)
            if next_start is None and (claim is None or end > limit):
                return
            if fields is not None:
                yield Part(at, limit if next_start is None else fields, next_start is None)
            at = limit if next_start is None else next_start

    def _verdict(self, partial: bytes, part: Part, path: str) -> Check:
        """The verdict on a size beyond the end of its set; if no message is cut, the bytes are already a gap."""
        stored, begin = _size_of(partial), self._begin(path)
        has_place = begin or self._is_set
        place = self._end(begin) - len(partial) + ENTRY.lead("message_size") if has_place else 0
        offset = self._decoded.offset + place
        note = "the fields of the message end before the set does, and an intact message follows them"
        return Check(join_path([path, "partial"]), "length", stored, part.stop - ENTRY_HEAD, "bad", offset, note=note)

    def _bytes(self, data: bytes, part: Part) -> bytes:
        """An entry with its actual size."""
        if part.named:
            return data[part.start : part.stop]
        size = record_set.length.pack(part.stop - part.start - ENTRY_HEAD)
        head = data[part.start : part.start + ENTRY.lead("message_size")]
        return head + size + data[part.start + ENTRY_HEAD : part.stop]

    def _limits(self, data: bytes) -> Limits:
        """The bytes' share of a quarter of the frame's limits, because the frame's own value exists already."""
        limits, share = self._decoded.limits, len(data) / len(self._decoded.data) / 4
        memory = LEAST_MEMORY + round(limits.memory * share)
        ratio = SMALLEST * limits.memory_ratio
        return replace(limits, memory=memory, memory_ratio=ratio, decompressed=round(limits.decompressed * share))


def _batches(parts: list[Part]) -> Iterator[list[Part]]:
    """The entries in order, in groups whose decoded values take little memory compared with the frame's value."""
    batch: list[Part] = []
    size = 0
    for part in parts:
        batch.append(part)
        size += part.stop - part.start
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _size_of(partial: bytes) -> int | None:
    """The ``message_size`` of an incomplete entry; None if it ends before."""
    place, number = ENTRY.lead("message_size"), record_set.length
    return int(number.unpack(partial[place : place + number.length])) if len(partial) >= ENTRY_HEAD else None


def is_oversized(partial: bytes, key: str = SET) -> bool:
    """Whether only the size of the last entry of a set exceeds the set: all its fields are present."""
    return len(partial) > ENTRY_HEAD and fields_end(partial, 0, len(partial), key) is not None


def fields_end(data: bytes, at: int, limit: int, key: str = SET) -> int | None:
    """The end of the fields of the entry at an offset; None if they are incomplete, or no message."""
    reader = Reader(Session(key, _LIMITS), data, at + ENTRY_HEAD, limit)
    scope = Scope.root({}).inner()
    try:
        for name, node in _fields(key):
            scope[name] = node._parse(reader, scope, "")
    except WireError:
        return None
    return reader.position


@by_key
def _fields(key: str) -> list[tuple[str, Any]]:
    """The fields of a message in a set; compressed values stay as stored."""
    entry: Any = dict(registry[key].node.members)["messages"].element
    message: Struct = dict(entry.members)["message"]
    return [(name, node.inner if isinstance(node, Compressed) else node) for name, node in message.members]
