"""Finds the next message in a segment or message set after bytes that are not a message.

A message is recognised by its own numbers: a size that fits the file or set, an offset after those before the damage
and within the range of a segment, a good CRC. The reader that continues there checks the message in full.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from functools import cache
from typing import Any, BinaryIO

from wirekit import stored
from wirekit.compiler.heading import heading
from wirekit.registry import registry
from wirekit.schemas.kafka.messages import ENTRY, MESSAGE
from wirekit.wire import Checked, Integer, Struct

KEY = "kafka.log_entry"
LOG = re.compile(r"(\d{20})\.log")
LARGEST_RELATIVE = (1 << 31) - 1
LARGEST_BASE = (1 << 63) - 1 - LARGEST_RELATIVE
"""How far after a segment's base offset its messages may lie: indexes hold the difference in 32 bits."""

_SEEK_DATA = getattr(os, "SEEK_DATA", os.SEEK_SET)
_LEAST_CHUNK, _LARGEST_CHUNK = 4 * 1024, 1024 * 1024
_ALLOWANCE = 64 * 1024 * 1024
_DISTANCES = (1 << 16, 1 << 20, 1 << 24)
"""Bytes before an offset at which a search for the message there begins."""
_SMALL = 16 * 1024  # bytes; a larger message is summed only where it may end


def base_offset(name: str) -> int | None:
    """The base offset in the name of a segment; None for other names, and for a number that no offset can be."""
    match = LOG.fullmatch(name)
    return int(match[1]) if match is not None and int(match[1]) <= LARGEST_BASE else None


class Search:
    """Finds messages in a segment file, or in a message set.

    Args:
        path: the name of the file, which may contain the base offset.
        file: the file, or the bytes of the set; its position changes.
        allowance: the number of bytes of a stretch that may be inspected, in addition to four times its size.

    Attributes:
        before: an offset that the next messages exceed: that of a good message, or the one before the base offset; None
            if unknown.
    """

    def __init__(self, path: str, file: BinaryIO, allowance: int = _ALLOWANCE) -> None:
        base = base_offset(os.path.basename(path))
        self.before: int | None = None if base is None else base - 1
        self._file = file
        self._size = file.seek(0, os.SEEK_END)
        self._most = registry[KEY].limits.frame
        self._begin = heading(KEY, self._most)
        self._allowance = self._remaining = allowance + 4 * min(self._size, stored.STRETCH)

    def renew(self) -> None:
        """Begins another stretch of the file."""
        self._remaining = self._allowance

    def follow(self, offsets: Sequence[int]) -> None:
        """Sets ``before`` after good messages with these offsets.

        No checksum covers an offset. If the file has no room for the messages between the last two, one of them may be
        wrong, and neither is used.
        """
        if offsets:
            previous = offsets[-2] if len(offsets) > 1 else self.before
            if previous is None or abs(offsets[-1] - previous) <= self._size:
                self.before = offsets[-1]

    def after(self, start: int) -> int | None:
        """The start of the next message after damage at ``start``; first tries the end of a whole bad message."""
        size = self.size(self._read(start, self._begin.size))
        return start + size if size > 0 and self.is_end(start, start + size) else self._next(start + 1)

    def is_end(self, start: int, end: int) -> bool:
        """Whether bytes that are not a good message may be one that begins and ends here.

        The next message must begin at ``end``. If a message inside has an offset before that of the next one, it is not
        in the value of a message: the size of the bytes is wrong, and leads to the beginning of a message by chance.
        """
        if not self.is_message(end):
            return False
        inside = self.within(start + 1, end)
        return inside is None or self.offset(inside) >= self.offset(end)

    def may_follow(self, at: int) -> bool:
        """Whether a message may end here: the end, zeros after another byte, or another one, good or not, that ends
        before such a place or before a good message must follow.
        """
        size = self.claim(at)
        end = at if size is None else at + size
        around = self._read(end - 1, 1 + self._begin.size)
        is_over = len(around) == 1 or (around[:1] > b"\0" and not around[1:].strip(b"\0"))
        return is_over or (end > at and self.is_message(end))

    def within(self, start: int, end: int) -> int | None:
        """The start of the first message between ``start`` and ``end``; None if there is none."""
        if self._remaining < 0:
            return None
        place = self._next(start, end)
        self._remaining -= (end if place is None else place) - start
        return place

    def size(self, head: bytes) -> int:
        """The bytes up to the next message, according to the size field of the bytes that may begin one."""
        return self._begin.frame_size(head.ljust(self._begin.size, b"\0"), 0) or 0

    def claim(self, at: int) -> int | None:
        """Size of the message that may begin here, according to its size field; None without a valid head."""
        head = self._read(at, self._begin.size)
        return self._begin.frame_size(head, 0) if self._begin.pattern.match(head) else None

    def crossing(self, at: int) -> tuple[int, int] | None:
        """The message that begins here or extends beyond, if the ones before it show it, and the offset before."""
        for distance in _DISTANCES:
            before, start = None, self.within(max(at - distance, 0), at)
            while start is not None and (size := self.claim(start)) is not None and start + size <= at:
                before, start = self.offset(start), start + size
            if start is not None and before is not None:
                return start, before
        return None

    def offset(self, at: int) -> int:
        """The offset of the message that begins here."""
        return _number(ENTRY, "offset", self._read(at, self._begin.size))

    def is_message(self, at: int) -> bool:
        """Whether a message begins here that may follow the last good one."""
        size = self.claim(at)
        if size is None or size > self._most or at + size > self._size or not self._follows(self.offset(at)):
            return False
        if size > _SMALL and not self._may_end(at + size):
            return False
        self._remaining -= size
        if self._remaining < 0:
            return False
        message = self._read(at + _LEAD, size - _LEAD)
        return bool(_CRC.compute(message[_CRC.inner.length :]) == _number(MESSAGE, "crc", message))

    def beyond_zeros(self, start: int) -> int | None:
        """The offset of the first byte from ``start`` on that is not zero; None if there is none."""
        while (written := self._written(start)) is not None and (data := self._read(written, _LARGEST_CHUNK)):
            nonzero = data.lstrip(b"\0")
            if nonzero:
                return written + len(data) - len(nonzero)
            start = written + len(data)
        return None

    def _written(self, start: int) -> int | None:
        """The offset of the next written bytes; preallocated parts of the file need not be read."""
        try:
            return self._file.seek(start, _SEEK_DATA)
        except OSError as error:
            return None if error.errno == errno.ENXIO else start
        except ValueError:  # bytes in memory
            return start

    def _next(self, at: int, end: int | None = None) -> int | None:
        """The start of the first message from ``at`` on, before ``end`` if it is given."""
        chunk = _LEAST_CHUNK
        end = self._size if end is None else end
        while at < end and len(data := self._read(at, chunk)) >= self._begin.size:
            if not data.strip(b"\0"):
                written = self.beyond_zeros(at + len(data))
                if written is None:
                    return None
                at = max(at + 1, written - _LEAD + 1)  # no message begins with more zeros: its size is not 0
                continue
            for match in self._begin.pattern.finditer(data):
                start = at + match.start()
                if start >= end:
                    return None
                size = self._begin.frame_size(data, match.start())
                if size is not None and start + size <= self._size and self.is_message(start):
                    return start
            if len(data) < chunk:
                return None
            at += len(data) - self._begin.size + 1
            chunk = min(2 * chunk, _LARGEST_CHUNK)
        return None

    def _may_end(self, at: int) -> bool:
        """Whether a message may end here: another message, zeros, or the end must follow."""
        head = self._read(at, self._begin.size)
        return not head.strip(b"\0") or len(head) < self._begin.size or self._begin.pattern.match(head) is not None

    def _follows(self, offset: int) -> bool:
        """Whether a message with this offset may follow the damage."""
        if self.before is None:
            return offset >= 0
        return self.before < offset <= self.before + LARGEST_RELATIVE

    def _read(self, at: int, size: int) -> bytes:
        self._file.seek(at)
        return self._file.read(size)


def _number(struct: Struct, field: str, data: bytes) -> int:
    """The number in a field at a fixed offset."""
    start, integer = _place(struct, field)
    return int(integer.unpack(data[start : start + integer.length]))


@cache
def _place(struct: Struct, field: str) -> tuple[int, Integer]:
    """The offset of a number field, and its node."""
    node: Any = dict(struct.members)[field]
    return struct.lead(field), node.inner if isinstance(node, Checked) else node


def _checked(struct: Struct) -> Checked:
    node = struct.members[0][1]
    assert isinstance(node, Checked)
    return node


_CRC = _checked(MESSAGE)
_LEAD = ENTRY.lead("message")
