"""The search for the next frame in the bytes of one direction, after framing was lost.

Its effort is limited by the number of bytes received.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wirekit import plain
from wirekit.conversation.dialogue import CALL, FEW, LARGEST_HEAD, LARGEST_PROBE, LARGEST_WAITED, Dialogue
from wirekit.decoding import frame_size
from wirekit.errors import WireError
from wirekit.wire.stream import Limits

if TYPE_CHECKING:
    from wirekit.compiler.heading import Heading

CREDIT = 12
"""The search effort allowed for each byte that arrives, counted as ``Dialogue.effort`` is."""
FIRST_CREDIT = 4096
MOST_CREDIT = 1024 * 1024
MOST_UNSEEN = 256
"""The number of possible frames that are not examined before they are complete."""
MOST_BEGUN = 16
"""The number of the last pieces for which it is stored that a frame may begin with them."""
HEADS = (FEW, LARGEST_PROBE)
"""Sizes of the first bytes of a possible frame that are examined before the whole frame."""
_NONE_BEGUN: list[tuple[int, int]] = []
"""The heaps of a direction that was never searched; not modified."""


@dataclass(slots=True)
class Direction:
    """Bytes of one direction that are not decoded yet.

    Attributes:
        buffer: the bytes.
        offset: number of bytes before them in the direction.
        short: ``PER_SHORT`` for each frame shorter than the minimum of its layout, less the bytes of other frames.
        lost: why framing was lost, "" while it was not.
        headed: whether the header before the first frame was handled.
        rest: number of the next bytes that belong to a frame that is cut.
        searched: offset up to which the bytes were searched for a frame since framing was lost.
        begun: offsets of incomplete possible frames with which a piece of the bytes began since framing was lost.
        waiting: a heap of (end, start) offsets of possible frames that are incomplete.
        whole: a heap of (start, end) offsets of possible frames that have become complete.
        credit: the budget of the search. When it is used up, the search waits for more bytes, so that its time is
            linear in the bytes received.
        time_us: the time of the last bytes received, microseconds since the epoch, or None.
    """

    buffer: bytearray = field(default_factory=bytearray)
    offset: int = 0
    lost: str = ""
    headed: bool = False
    short: int = 0
    rest: int = 0
    searched: int = 0
    begun: list[int] = field(default_factory=list)
    credit: int = FIRST_CREDIT
    waiting: list[tuple[int, int]] = field(default_factory=lambda: _NONE_BEGUN)
    whole: list[tuple[int, int]] = field(default_factory=lambda: _NONE_BEGUN)
    time_us: int | None = None

    def earn(self, size: int) -> None:
        """Adds the budget for ``size`` bytes that arrived."""
        credit = self.credit + CREDIT * size
        self.credit = credit if credit < MOST_CREDIT else MOST_CREDIT

    def expect(self, end: int, start: int) -> None:
        """Stores the offsets of a possible frame that is incomplete."""
        if self.waiting is _NONE_BEGUN:
            self.waiting, self.whole = [], []
        heapq.heappush(self.waiting, (end, start))

    def lose(self, why: str) -> None:
        """Marks framing as lost."""
        self.lost = why
        self.waiting = self.whole = _NONE_BEGUN
        self.begun.clear()

    def state(self) -> dict[str, Any]:
        """The state for ``restore``, in values that ``wirekit.plain`` can store."""
        values = {name: getattr(self, name) for name in self.__slots__}
        lists = {"waiting": [*self.waiting], "whole": [*self.whole], "begun": [*self.begun]}
        return values | lists  # the first two are one list where there are none

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores the state that ``state`` returned; raises KeyError, TypeError or ValueError for anything else."""
        self.buffer += state["buffer"]
        for name in self.__slots__:
            if name != "buffer":
                if state[name] is None and name != "time_us":
                    raise TypeError(f"no {name}")
                setattr(self, name, plain.like(getattr(self, name), state[name]))


def next_frame(
    dialogue: Dialogue, side: str, direction: Direction, begin: Heading, limits: Limits, piece: int
) -> int | None:
    """The number of bytes before the next frame; None if there is none yet.

    The frame is whole and decodes cleanly. One that is larger than ``LARGEST_WAITED`` begins at ``piece``, the
    offset of the bytes that arrived last, because senders usually write it so, and its first bytes prove it.
    """
    buffer, base, waiting, whole = direction.buffer, direction.offset, direction.waiting, direction.whole
    key = dialogue.frame_key(side)
    while waiting and waiting[0][0] <= base + len(buffer):
        end, start = heapq.heappop(waiting)
        heapq.heappush(whole, (start, end))
    while whole and direction.credit > 0:
        start = heapq.heappop(whole)[0] - base
        if start >= 0 and _is_frame(dialogue, side, direction, start, _size_at(begin, buffer, start, key, limits)):
            return start
    at = max(direction.searched - base, 0)
    while direction.credit > 0:
        match = begin.pattern.search(buffer, at)
        next_at = match.start() + 1 if match is not None else max(at, len(buffer) - begin.size + 1)
        direction.credit -= next_at - at
        direction.searched = base + next_at
        if match is None:
            return None
        at, start = next_at, match.start()
        size = _size_at(begin, buffer, start, key, limits)
        if size <= 0 or (size > LARGEST_WAITED and base + start != piece):
            continue
        end = start + (size if size <= LARGEST_WAITED else LARGEST_PROBE)
        if base + start == piece and size > len(buffer) - start:
            direction.begun.append(piece)
            del direction.begun[:-MOST_BEGUN]
        if end > len(buffer) and len(direction.waiting) < MOST_UNSEEN and size <= LARGEST_WAITED:
            direction.expect(base + end, base + start)
        elif _is_frame(dialogue, side, direction, start, size):
            if end <= len(buffer):
                return start
            direction.expect(base + end, base + start)
    return None


def _size_at(begin: Heading, buffer: bytearray, start: int, key: str, limits: Limits) -> int:
    """The size of the frame that may begin at a match of its heading; 0 if its length is invalid."""
    size = begin.frame_size(buffer, start)
    if size is not None:
        return size
    head = bytes(buffer[start : start + LARGEST_HEAD])
    try:
        size = frame_size(head, key, limits=limits)
    except WireError:
        return 0
    if size is None:
        return LARGEST_HEAD if len(head) < LARGEST_HEAD else 0
    return size


def _is_frame(dialogue: Dialogue, side: str, direction: Direction, start: int, size: int) -> bool:
    """Whether a frame may begin at a place: examines its first bytes, then more of them, then all.

    Of a frame that is larger than ``LARGEST_WAITED``, the first ``LARGEST_PROBE`` bytes decide.
    """
    buffer = direction.buffer
    before, dialogue.whole = dialogue.effort, None
    most = min(size if size <= LARGEST_WAITED else LARGEST_PROBE, len(buffer) - start)
    lengths = [length for length in HEADS if length < most] + [most]
    is_frame = all(dialogue.plausible(side, bytes(buffer[start : start + length]), size) for length in lengths)
    if is_frame and size > LARGEST_WAITED and most == LARGEST_PROBE:
        dialogue.effort += CALL
        is_frame = dialogue.proven(side, bytes(buffer[start : start + most]))
    direction.credit -= CALL + dialogue.effort - before
    return is_frame
