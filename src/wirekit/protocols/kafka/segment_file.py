"""Reads segment files, and files of messages: pieces of whole messages, what is damaged, and where it goes on."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from io import BufferedReader
from itertools import accumulate
from pathlib import Path
from typing import Any

from wirekit import stored
from wirekit.decoding import decode
from wirekit.engine import Decoded
from wirekit.errors import Damaged, Limit, WireError, Wrong, plural
from wirekit.protocols.kafka.reading import (
    ENTRY_HEAD,
    SEGMENT,
    content,
    contents,
    has_message,
    left_over,
    messages_of,
    status,
    verdicts,
)
from wirekit.protocols.kafka.searching import Search
from wirekit.schemas.kafka.messages import ENTRY
from wirekit.storage import open_binary
from wirekit.stored import Piece, Start
from wirekit.values import Gap, Record
from wirekit.wire.compressed import is_damage
from wirekit.wire.stream import SHARED

PIECE = 4 * 1024 * 1024
WINDOW_BEHIND_DAMAGE = 4 * 1024
ZEROS = bytes(12)
_NUMBER = re.compile(r"messages\[(\d+)\]")
PARTITION = re.compile(r"(.+)-(\d+)(\.[0-9a-f]{32}-delete)?")
LARGEST_PARTITION = (1 << 31) - 1


def named_partition(name: str) -> tuple[str, int] | None:
    """Topic and partition in the name of a directory; None for other names, and for a number that no partition has."""
    match = PARTITION.fullmatch(name)
    return (match[1], int(match[2])) if match is not None and int(match[2]) <= LARGEST_PARTITION else None


def topic_of_file(path: str) -> str | None:
    """The topic in the name of a segment's directory."""
    topic, _ = _partition_of_file(path)
    return topic


def _partition_of_file(path: str) -> tuple[str, int] | tuple[None, None]:
    return named_partition(Path(path).absolute().parent.name) or (None, None)


class SegmentFile:
    """A segment file, read in windows of a few MiB; a message cut by a window begins the next one.

    The windows of a stretch end at a multiple of ``stored.STRETCH``; a message that crosses it begins the next stretch.

    Topic and partition come from the name of the file's directory, ``<topic>-<partition>``, or
    ``<topic>-<partition>.<uuid>-delete`` if 0.10.2 has marked the partition as deleted.

    Attributes:
        topic, partition: the topic and partition of the messages, if the directory has such a name.
        stretch: the number of the stretch.
        position: the byte offset of the next window.
        size: the size of the file in bytes.
        last: whether a larger window has no more whole messages: it extends to the end of the file, or its first
            message is torn.
        after_damage: whether the window begins after damage.
        search: finds the next message after damage.
    """

    def __init__(self, path: str, file: BufferedReader) -> None:
        self.topic: str | None
        self.partition: int | None
        self.topic, self.partition = _partition_of_file(path)
        self.stretch = 0
        self.position = 0
        self.last = self.after_damage = False
        self.search = Search(path, file)
        self._file = file
        self.size = file.seek(0, os.SEEK_END)
        self._window = PIECE
        self._buffer = bytearray(min(PIECE, self.size))

    def window(self) -> memoryview:
        """A few MiB from ``position`` on; the next window replaces them."""
        size = min(self._window, self.size - self.position, self._boundary - self.position)
        if len(self._buffer) < size:
            self._buffer = bytearray(size)
        self._file.seek(self.position)
        read = self._file.readinto(memoryview(self._buffer)[:size])
        if read < size:  # the broker or someone else has truncated the file
            self.size = self.position + read
        window = memoryview(self._buffer)[:read]
        self.last = self.position + read >= self.size or self.is_torn(self.position, window)
        return window

    def is_torn(self, position: int, data: bytes | memoryview) -> bool:
        """Whether the message whose first bytes are given extends beyond the end of the file, according to its size."""
        return position + self.search.size(bytes(data[:ENTRY_HEAD])) > self.size

    def shorten(self, window: memoryview, size: int) -> memoryview:
        """The first ``size`` bytes of a window whose messages exceed a limit together; the next one is at most twice as
        large.
        """
        self.last, self._window = False, max(size // 2, 1)
        return window[:size]

    def take(self, size: int) -> None:
        """Continues after the first ``size`` bytes of the window.

        If 0, the next window is larger, in the next stretch if this one has no more bytes.
        """
        self.position += size
        self.after_damage = False
        if not size and self.position + self._window >= self._boundary:
            self.begin(Start(self.stretch + 1, self.position, self.search.before))
        else:
            self._window = min(4 * self._window, PIECE) if size else 4 * self._window
            self._cross()

    def continue_at(self, position: int) -> None:
        """Continues after damage, with a small window, because more damage may follow."""
        self.position, self.after_damage = position, True
        self._window = min(WINDOW_BEHIND_DAMAGE, PIECE)
        self._cross()

    def begin(self, start: Start) -> None:
        """Continues at the start of a stretch."""
        self.stretch, self.position, self.search.before = start
        self._window = PIECE
        self.search.renew()

    def start_of(self, stretch: int) -> Start | None:
        """The start of a stretch, as the messages before it show it; None if none is found."""
        if not stretch:
            return Start(0, 0, self.search.before)
        crossing = self.search.crossing(stretch * stored.STRETCH)
        return None if crossing is None else Start(stretch, *crossing)

    @property
    def _boundary(self) -> int:
        """The offset at which windows of the stretch end."""
        return (self.stretch + 1) * stored.STRETCH

    def _cross(self) -> None:
        """Begins another stretch if the position is after this one."""
        if self.position >= self._boundary:
            self.begin(Start(self.position // stored.STRETCH, self.position, self.search.before))

    def one_by_one(self, window: memoryview) -> tuple[Piece | None, bool]:
        """The messages of a window, by the layout (None without a whole one), and whether the segment continues."""
        data = bytes(window)
        if data.startswith(ZEROS):
            return self._preallocated()
        decoded = decode(data, SEGMENT, offset=self.position)
        if (oversized := self.oversized(decoded)) is not None:
            return self._resumed(decoded, *oversized), True
        if _is_shared(decoded.error) and len(decoded.value.messages) > 1:
            return self._first_of_many(decoded)
        unread = b"" if self.last or decoded.error is not None else decoded.value.tail
        if data and len(unread) == len(data):
            self.take(0)
            return None, True
        end, error = self._ended(data, decoded)
        return self.piece(
            end,
            error,
            messages=messages_of(decoded, topic=self.topic, partition=self.partition),
            damaged=_undecoded_contents(decoded, _whole_entries(decoded)),
            gaps=_gaps(decoded),
            fits=any(check.status == "ok" for check in decoded.checks) or not data.strip(b"\0"),
        )

    def _first_of_many(self, decoded: Decoded) -> tuple[Piece, bool]:
        """The messages before one that exceeds a limit together with them; the next window begins with it."""
        messages = decoded.value.messages
        exceeding = f"messages[{len(messages) - 1}]"
        size = _complete_size(decoded.value)
        messages.pop()
        self.last = False
        self._follow(decoded, messages)
        return self.piece(
            self.position + size,
            None,
            messages=messages_of(decoded, topic=self.topic, partition=self.partition),
            damaged=_undecoded_contents(decoded, messages),
            gaps=tuple(gap for gap in _gaps(decoded) if not gap.path.startswith(exceeding)),
            fits=any(check.status == "ok" for check in decoded.checks),
        )

    def piece(
        self, end: int, error: WireError | None, damaged: tuple[Damaged, ...] = (), **content: Any
    ) -> tuple[Piece, bool]:
        """A piece with the whole messages of a window, and whether the segment continues.

        Args:
            end: the byte offset after the messages.
            error: the error at ``end``; reading continues at the next message after it, if there is one.
            damaged: the parts before ``end`` that do not decode.
            content: other attributes of the piece.
        """
        begin = self.position
        next_start = None if error is None else self.search.after(end)
        piece = Piece(
            begin,
            (end if error is None else self.size if next_start is None else next_start) - begin,
            errors=() if error is None or next_start is not None else (error,),
            undecoded=0 if error is None or next_start is not None else self.size - end,
            damaged=damaged
            if error is None or next_start is None
            else (*damaged, Damaged(end, next_start - end, error)),
            **content,
        )
        if next_start is not None:
            self.continue_at(next_start)
        else:
            self.take(piece.length)
        return piece, self.position < self.size and (error is None or next_start is not None)

    def oversized(self, decoded: Decoded) -> tuple[int, Damaged] | None:
        """The first message whose size is too large: its number, and the excess bytes; None if there is none.

        The size is too large if another message begins inside it. If the CRC over the fields is bad, the size may still
        be right: it is, if the next message begins after it. If no message can follow there, the fields are wrong, too.
        """
        if not decoded.gaps and all(check.status != "bad" for check in decoded.checks):
            return None
        checks = verdicts(decoded.checks)
        entries = _whole_entries(decoded)
        ends = _ends(entries)
        before, good_offsets = self.search.before, list[int]()
        for number, entry in enumerate(entries):
            check = checks.get(f"messages[{number}].message.crc")
            if check is None:
                continue
            if check.status == "ok":
                good_offsets.append(entry.offset)
            if status(entry, check) == "ok":
                continue
            begin, end = decoded.offset + ends[number], decoded.offset + ends[number + 1]
            search_start = end - len(left_over(entry))
            self.search.follow(good_offsets)
            if check.status != "ok":
                if self.search.is_end(begin, end):
                    continue
                if self.search.is_message(end) or not self.search.may_follow(end):
                    search_start = begin + 1
            next_start = self.search.within(search_start, end)
            if next_start is not None:
                excess = min(end - len(left_over(entry)), next_start)
                place = begin + ENTRY.lead("message_size")
                where = {"protocol": SEGMENT, "path": "messages[].message_size", "offset": place}
                error = Wrong(f"{excess - begin - ENTRY_HEAD} bytes", entry.message_size, **where)
                return number, Damaged(excess, next_start - excess, error)
        self.search.before = before
        return None

    def _resumed(self, decoded: Decoded, number: int, damaged: Damaged) -> Piece:
        """The messages up to one whose size is too large; reading continues at the next one, inside it."""
        begin = self.position
        decoded.value.messages = decoded.value.messages[: number + 1]
        self.continue_at(damaged.offset + damaged.length)
        return Piece(
            begin,
            self.position - begin,
            messages_of(decoded, topic=self.topic, partition=self.partition),
            damaged=(*_undecoded_contents(decoded, decoded.value.messages), damaged),
            gaps=tuple(gap for gap in _gaps(decoded) if gap.offset < damaged.offset),
            fits=True,
        )

    def _ended(self, data: bytes, decoded: Decoded) -> tuple[int, WireError | None]:
        """The end of the whole messages of a window, and the error there."""
        segment = decoded.value
        self._follow(decoded, _whole_entries(decoded))
        if decoded.error is not None:
            return self.position + _complete_size(segment), decoded.error
        return self.end(len(data), segment.tail)

    def _follow(self, decoded: Decoded, entries: list[Record]) -> None:
        """Continues the search after the first entries of a window; the offset of a damaged message may be wrong."""
        good = {check.path for check in decoded.checks if check.kind == "crc32" and check.status == "ok"}
        self.search.follow([each.offset for n, each in enumerate(entries) if f"messages[{n}].message.crc" in good])

    def end(self, size: int, unread: bytes) -> tuple[int, WireError | None]:
        """The end of the whole messages of a window without a damaged one, and the error there.

        Args:
            size: the bytes of the window.
            unread: the bytes after its last whole message.
        """
        end = self.position + size - len(unread)
        if unread.startswith(ZEROS) or not (self.last or self.is_torn(end, unread)):
            return end, None
        if not unread.strip(b"\0"):
            return end + len(unread), None
        where = {"protocol": SEGMENT, "path": "messages[]", "offset": end}
        return end, Wrong("a whole message or zeros", f"{self.size - end} bytes of one", **where)

    def _preallocated(self) -> tuple[Piece, bool]:
        """The zeros at the end of a segment, unless other bytes follow."""
        begin = self.position
        place = self.search.beyond_zeros(begin)
        if place is None:
            return Piece(begin, self.size - begin, fits=True), False
        where = {"protocol": SEGMENT, "path": "tail", "offset": place}
        error = Wrong("zeros up to the end of the segment", "something else", **where)
        next_start = self.search.after(begin)
        if next_start is None:
            return Piece(begin, self.size - begin, errors=(error,), undecoded=self.size - place), False
        self.continue_at(next_start)
        return Piece(begin, next_start - begin, damaged=(Damaged(begin, next_start - begin, error),)), True


def pieces_of_file(path: str) -> Iterator[Piece]:
    """A segment in pieces of a few MiB; the last piece includes the tail: zeros, or a message cut by a crash.

    After damage, reading continues at the next message, if there is one.
    """
    with open_binary(path) as file:
        segment = SegmentFile(path, file)
        more = True
        while more:
            piece, more = segment.one_by_one(segment.window())
            if piece is not None:
                yield piece


def _is_shared(error: WireError | None) -> bool:
    """Whether messages exceed a limit only together, so that fewer of them may be within it."""
    return isinstance(error, Limit) and error.limit in SHARED


def _complete_size(segment: Record) -> int:
    """Size of the messages before the last one, where decoding stopped."""
    return _ends(segment.messages[:-1])[-1]


def _ends(entries: list[Record]) -> list[int]:
    """0, the start of the first entry, and then the end of each entry."""
    return [*accumulate((ENTRY_HEAD + entry.message_size for entry in entries), initial=0)]


def _whole_entries(decoded: Decoded) -> list[Record]:
    """The entries of a decoded segment, without one in which decoding stopped."""
    entries: list[Record] = decoded.value.messages
    return entries if decoded.error is None else entries[:-1]


def _gaps(decoded: Decoded) -> tuple[Gap, ...]:
    """The bytes of a segment that no field explains; those of compressed data with the reason it cannot be opened."""
    note_by_path = {check.path: check.note for check in decoded.checks if check.kind == "decompression"}
    return tuple(replace(gap, reason=note_by_path.get(gap.path, "")) for gap in decoded.gaps if not gap.source)


def _undecoded_contents(decoded: Decoded, entries: Iterable[Record]) -> tuple[Damaged, ...]:
    """The wrappers among the first entries of a segment whose contents are not decompressed and decoded to their ends.

    Each is damaged at its first byte. All of its bytes are undecoded if none of its messages is decoded, else 0.
    """
    gaps = Counter[int]()
    for gap in decoded.gaps:
        if gap.source and (numbered := _NUMBER.match(gap.path)):
            gaps[int(numbered[1])] += gap.length
    notes: dict[int, str] = {}
    for check in decoded.checks:
        if is_damage(check) and (numbered := _NUMBER.match(check.path)):
            notes.setdefault(int(numbered[1]), check.note)
    damaged, end = [], decoded.offset
    for number, entry in enumerate(entries):
        start, end = end, end + ENTRY_HEAD + entry.message_size
        inside = content(entry.message.value)
        if inside is None:
            continue
        surplus = gaps[number] + _incomplete_size(inside)
        if surplus or number in notes:
            value = end - len(left_over(entry)) - len(entry.message.value.compressed)
            actual = f"{plural(surplus, 'byte')} that no message has"
            if number in notes:
                actual = f"damage: {notes[number]}"
            where = {"protocol": SEGMENT, "path": "messages[].message.value", "offset": value}
            error = Wrong("whole messages in the compressed data", actual, **where)
            damaged.append(Damaged(start, 0 if has_message(inside) else end - start, error))
    return tuple(damaged)


def _incomplete_size(message_set: Record) -> int:
    """The bytes of incomplete messages at the ends of a set and of the sets in it."""
    inside = (_incomplete_size(inner) for inner in contents(message_set) if inner is not None)
    return len(message_set.get("partial") or b"") + sum(inside)
