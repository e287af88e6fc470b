"""One direction of a connection: its bytes in order, and the gaps between them."""

from __future__ import annotations

from base64 import b64decode, b64encode
from bisect import bisect_right, insort
from operator import itemgetter
from typing import Any, NamedTuple

from wirekit.capture.tcp.ascending import Ascending
from wirekit.capture.tcp.events import (
    CLOCK_STEP_US,
    Closed,
    ClosedReason,
    Data,
    Duplicate,
    Event,
    Gap,
    GapReason,
    Ignored,
    Settings,
    Side,
)
from wirekit.plain import like

_PENDING: dict[ClosedReason, GapReason] = {
    "fin": "pending at fin",
    "rst": "pending at rst",
    "end of capture": "pending at end of capture",
    "new connection": "pending at new connection",
    "idle": "pending at idle",
}
MASK = 0xFFFFFFFF
_HALF = 1 << 31
WINDOW = 1 << 30  # bytes; the largest window that TCP can announce
NEVER = 1 << 128  # µs; after any time that the units and offsets of a capture file can tell
_PIECE_COST = 256  # bytes of memory that a held piece takes besides its payload
NOTHING = -(1 << 62)  # an offset before any that a stream can have
_LISTS = frozenset({"held", "cuts", "waits", "gaps", "stray"})  # of a direction; a state has them as lists
_GAPS_KEPT = 64  # gaps remembered, to tell a late byte from a duplicate


class Piece(NamedTuple):
    """Held bytes at a stream offset."""

    at: int
    data: bytes
    time_us: int
    offset: int
    file: int


# Most directions never hold anything: these stand for their empty lists, so that many connections take little memory.
_NONE_HELD: Ascending[Piece] = Ascending()
_NONE_CUT: Ascending[tuple[int, int, int]] = Ascending()
_NONE_WAITING: Ascending[tuple[int, int, int]] = Ascending()


class Direction:
    """The bytes that one side of the connection sent.

    Offsets count from the first byte. While that is uncertain (``settle_us``), they count from the first segment, so
    that ``next`` may be negative; ``settle`` then corrects all of them.
    """

    __slots__ = (
        "acked", "back_us", "closed", "cost", "cuts", "deadline", "fin", "fin_us", "gaps", "held", "mark", "mark_us",
        "next", "raw", "role", "seen", "settle_us", "slow", "start", "stray", "unseen", "unseen_size", "waits",
    )  # fmt: skip

    def __init__(self, role: Side) -> None:
        self.role: Side = role
        self.raw = -1  # sequence number of the next byte to release, -1 while unknown
        self.next = 0  # its stream offset
        self.start = -1  # sequence number of the first byte if the handshake told it
        self.settle_us: int | None = None  # until then a lower sequence may still become the first byte
        self.held: Ascending[Piece] = _NONE_HELD  # disjoint, all at or beyond next
        self.cost = 0  # memory of the held pieces, bytes
        self.cuts: Ascending[tuple[int, int, int]] = _NONE_CUT  # (from, to, time) cut by the snap length
        self.waits: Ascending[tuple[int, int, int]] = _NONE_WAITING  # (from, sequence number of the peer, time)
        self.seen = 0  # where the highest of held and cuts ends
        self.gaps: tuple[tuple[int, int], ...] = ()  # the latest gaps released
        self.acked = NOTHING  # highest stream offset acknowledged beyond next
        self.unseen = -1  # sequence number that was acknowledged first, before any segment was captured
        self.unseen_size = 0  # bytes acknowledged from there on
        self.mark = 0  # the acknowledged offset ...
        self.mark_us = 0  # ... at this time, for the hold time to count from
        self.fin = -1  # stream offset of the end
        self.fin_us = 0
        self.closed = False
        self.back_us = NEVER  # the time to which the clock was last set back
        self.stray = (-1, 0)  # where the last segment out of the window ended, and next at that time
        self.slow = True  # whether in-order data needs more than to be passed on
        self.deadline = NEVER

    def distance(self, sequence: int) -> int:
        """Bytes from the next byte to release to this sequence number; negative if it is before that byte."""
        return ((sequence - self.raw + _HALF) & MASK) - _HALF

    @property
    def continues_stray(self) -> bool:
        """Whether a segment that continues the last one out of the window would begin another connection."""
        return self.stray[0] >= 0 and self.stray[1] == max(self.next, 0)

    def in_place(self, start: int) -> int:
        """Whether a handshake with this first sequence number fits: 1 yes, 0 no, -1 if no other fact decides."""
        if self.start >= 0:
            return int(self.start == start)
        if self.raw < 0:
            return -1
        if self.settle_us is None:
            return int((self.raw - self.next) & MASK == start)
        return -1 if -WINDOW <= self.distance(start) <= 0 else 0

    def begin(self, start: int) -> None:
        """Sets the sequence number of the first byte, from the handshake."""
        if self.start >= 0 or self.closed:
            return
        if self.raw < 0:
            self.raw = start
        elif self.settle_us is not None:
            ahead = -self.distance(start)
            if not 0 <= ahead <= WINDOW:
                return
            self.shift(ahead)
            self.settle()
        elif (self.raw - self.next) & MASK != start:
            return
        self.start = start

    def hear(self, acknowledgment: int) -> None:
        """Handles an acknowledgment by the peer before any byte of this direction was captured."""
        if self.unseen < 0:
            self.unseen = acknowledgment
        size = (acknowledgment - self.unseen) & MASK
        if self.unseen_size < size <= WINDOW:
            self.unseen_size = size

    def find_first(self, sequence: int) -> None:
        """Handles the first segment: the stream begins with it, or with the bytes that the peer acknowledged before."""
        missing = (sequence - self.unseen) & MASK
        self.raw = sequence
        if self.unseen >= 0 and 0 < missing <= self.unseen_size:
            self.raw, self.acked = self.unseen, self.unseen_size

    def shift(self, by: int) -> None:
        """Moves the first byte ``by`` bytes back; nothing may have been released yet."""
        self.raw = (self.raw - by) & MASK
        self.next -= by

    def settle(self) -> None:
        """Declares the first byte certain, and counts offsets from it."""
        self.settle_us = None
        by, self.next = -self.next, 0
        if by:
            self.held = Ascending(piece._replace(at=piece.at + by) for piece in self.held.all())
            self.cuts = Ascending((begin + by, end + by, time_us) for begin, end, time_us in self.cuts.all())
            self.waits = Ascending((at + by, needed, time_us) for at, needed, time_us in self.waits.all())
            self.seen += by
            self.acked += by
            if self.fin >= 0:
                self.fin += by

    def wait(self, at: int, size: int, needed: int, time_us: int) -> None:
        """Lets new bytes of a segment, and all after them, wait until the peer's bytes before ``needed`` are released.

        Args:
            at, size: the stream offset of the segment's payload, and its size.
            needed: the sequence number that the segment acknowledges.
            time_us: the time of the segment.
        """
        if at + size > self.next:
            if self.waits is _NONE_WAITING:
                self.waits = Ascending()
            insort(self.waits, (max(at, self.next), needed, time_us), lo=self.waits.begin)

    def is_released(self, sequence: int) -> bool:
        """Whether all bytes before a sequence number are released, or will never be."""
        return self.closed or (self.raw >= 0 and self.settle_us is None and self.distance(sequence) <= 0)

    def stop_waiting(self, peer: Direction, events: list[Event]) -> bool:
        """Releases the bytes that waited for bytes that the peer has released by now; returns whether there are any."""
        waits = self.waits
        released = waits.begin
        while released < len(waits) and peer.is_released(waits[released][1]):
            released += 1
        if released == waits.begin:
            return False
        waits.leave(released)
        self.release(events)
        return True

    def place(self, piece: Piece, events: list[Event]) -> None:
        """Holds the new bytes of a segment, and counts the others."""
        at, data, time_us, offset, file = piece
        end = at + len(data)
        if at < self.next:
            early = min(self.next, end) - at
            self._pass(Piece(at, data[:early], time_us, offset, file), events)
            data = data[early:]
            at += early
            offset += early
        if 0 <= self.fin < end:
            excess = min(end - self.fin, len(data))
            if excess:
                size = len(data) - excess
                events.append(Ignored(self.role, data[size:], time_us, offset + size, file, "after the end"))
                data = data[:size]
                end = at + size
        if not data:
            return
        if self.held is _NONE_HELD:
            self.held = Ascending()
        pieces = self.held
        self.seen = max(self.seen, end)
        if not pieces or at >= pieces[-1].at + len(pieces[-1].data):
            pieces.append(Piece(at, data, time_us, offset, file))
            self.cost += len(data) + _PIECE_COST
            return
        first = bisect_right(pieces, at, lo=pieces.begin, key=itemgetter(0))
        if first > pieces.begin and pieces[first - 1].at + len(pieces[first - 1].data) > at:
            first -= 1
        index, position, repeated = first, at, 0
        fresh: list[Piece] = []
        while position < end:
            stop = min(end, pieces[index].at) if index < len(pieces) else end
            if position < stop:
                fresh.append(Piece(position, data[position - at : stop - at], time_us, offset + position - at, file))
                self.cost += stop - position + _PIECE_COST
                position = stop
            if position < end:
                piece_there = pieces[index]
                index += 1
                stop = min(end, piece_there.at + len(piece_there.data))
                repeated += stop - position
                position = stop
        pieces[first:index] = sorted([*pieces[first:index], *fresh])
        if repeated:
            events.append(Duplicate(self.role, repeated, time_us))

    def _pass(self, piece: Piece, events: list[Event]) -> None:
        """Accounts for bytes before the next one: before the start, in a reported gap, or duplicates."""
        at, data, time_us, offset, file = piece
        end = at + len(data)
        repeated = len(data)
        if at < 0:
            early = min(-at, len(data))
            events.append(Ignored(self.role, data[:early], time_us, offset, file, "before the start"))
            repeated -= early
        for begin, stop in self.gaps:
            low, high = max(at, begin), min(end, stop)
            if low < high:
                late = data[low - at : high - at]
                events.append(Ignored(self.role, late, time_us, offset + low - at, file, "after its gap"))
                repeated -= high - low
        if repeated:
            events.append(Duplicate(self.role, repeated, time_us))

    def cut(self, begin: int, end: int, time_us: int) -> None:
        """Registers bytes [begin, end) that were on the wire but beyond the snap length."""
        begin = max(begin, self.next)
        if self.fin >= 0:
            end = min(end, self.fin)
        if begin < end:
            if self.cuts is _NONE_CUT:
                self.cuts = Ascending()
            insort(self.cuts, (begin, end, time_us), lo=self.cuts.begin)
            self.seen = max(self.seen, end)
            self.cost += _PIECE_COST

    def finish(self, at: int, time_us: int) -> None:
        """Ends the direction at the stream offset of a FIN; the first plausible FIN counts."""
        if self.fin < 0 and at >= max(self.next, self.seen):
            self.fin, self.fin_us = at, time_us

    def release(self, events: list[Event]) -> None:
        """Releases the bytes that have become contiguous and do not wait, unless the first byte is uncertain."""
        if self.raw < 0 or self.settle_us is not None or self.closed:
            return
        before = position = self.next
        pieces, cuts = self.held, self.cuts
        released, reported = pieces.begin, cuts.begin
        stop_at = self.waits.first[0] if self.waits else NEVER
        while True:
            for index in range(released, len(pieces)):
                at, data, time_us, offset, file = pieces[index]
                if at != position or at >= stop_at:
                    break
                events.append(Data(self.role, data, position, time_us, offset, file))
                position += len(data)
                self.cost -= len(data) + _PIECE_COST
                released += 1
            if reported == len(cuts) or cuts[reported][0] > position or position >= stop_at:
                break
            _, end, time_us = cuts[reported]
            stop = min(end, pieces[released].at) if released < len(pieces) else end
            if stop > position:
                events.append(Gap(self.role, position, stop - position, time_us, "snap length"))
                self._remember(position, stop)
                position = stop
            if position >= end:
                self.cost -= _PIECE_COST
                reported += 1
        if released > pieces.begin:
            pieces.leave(released)
            if not pieces:
                self.held = _NONE_HELD
        if reported > cuts.begin:
            cuts.leave(reported)
        self.next = position
        self.raw = (self.raw + position - before) & MASK
        if position == self.fin:
            self.closed = True
            events.append(Closed(self.role, "fin", self.fin_us))

    def hole(self) -> tuple[int, int] | None:
        """The end of the hole at the next byte and the time when it appeared, if bytes after it are known."""
        if self.closed or self.settle_us is not None or not (self.fin >= 0 or self.held or self.cuts):
            return None
        if self.waits and self.waits.first[0] <= self.next:
            return None
        hole = (self.fin, self.fin_us) if self.fin >= 0 else (NEVER, 0)
        if self.cuts:
            begin, _, time_us = self.cuts.first
            hole = min(hole, (begin, time_us))
        if self.held:
            hole = min(hole, (self.held.first.at, self.held.first.time_us))
        return None if hole[0] == NEVER else hole

    def skip(self, end: int, time_us: int, reason: GapReason, events: list[Event]) -> None:
        """Reports the bytes up to ``end`` as a gap, and releases the bytes after them."""
        events.append(Gap(self.role, self.next, end - self.next, time_us, reason))
        self._remember(self.next, end)
        self.raw = (self.raw + end - self.next) & MASK
        self.next = end
        self.release(events)

    def _remember(self, begin: int, end: int) -> None:
        self.gaps = (*self.gaps[1 - _GAPS_KEPT :], (begin, end))

    def pass_time(self, now_us: int, settings: Settings, events: list[Event]) -> None:
        """Handles the deadline: ends a wait, or settles the first byte and turns expired holes into gaps."""
        if self.waits and self._wait_start(self.waits.first[2], now_us) + settings.hold_us == self.deadline:
            self.waits.leave(self.waits.begin + 1)
            self.release(events)
            self.watch(now_us, settings)
            return
        if self.settle_us is not None and self.settle_us < now_us:
            self.settle()
            self.release(events)
        while hole := self.hole():
            end, seen_us = hole
            if end <= self.mark and now_us > self.mark_us + settings.hold_us:
                reason: GapReason = "acknowledged, never captured"
            elif now_us > self._wait_start(seen_us, now_us) + settings.patience_us:
                reason = "pending at fin" if end == self.fin else "never acknowledged, never captured"
                if end <= self.acked:
                    reason = "acknowledged, never captured"
            else:
                break
            self.skip(end, seen_us, reason, events)
        self.watch(now_us, settings)

    def limit(self, limit: int, events: list[Event]) -> None:
        """Turns the earliest holes into gaps until at most ``limit`` bytes are held."""
        if self.cost > limit and self.settle_us is not None:
            self.settle()
            self.release(events)
        if self.cost > limit and self.waits:
            self.waits = _NONE_WAITING
            self.release(events)
        while self.cost > limit and (hole := self.hole()):
            self.skip(*hole, "held bytes over the limit", events)

    def set_back(self, now_us: int, settings: Settings, events: list[Event]) -> None:
        """Lets all waits count from a time to which the clock was set back, and makes the first byte certain."""
        self.back_us = self.mark_us = now_us
        if self.settle_us is not None:
            self.settle()
            self.release(events)
        if not self.closed:
            self.watch(now_us, settings)

    def _wait_start(self, time_us: int, now_us: int) -> int:
        """The time from which a wait counts: its own beginning, or a later step of the clock."""
        return time_us if time_us <= now_us + CLOCK_STEP_US else min(self.back_us, time_us)

    def watch(self, now_us: int, settings: Settings) -> None:
        """Sets the deadline, and whether in-order data may take the fast path."""
        unsettled = self.settle_us is not None
        self.slow = bool(self.raw < 0 or unsettled or self.fin >= 0 or self.held or self.cuts)
        waited = self._wait_start(self.waits.first[2], now_us) + settings.hold_us if self.waits else NEVER
        if self.settle_us is not None:
            self.deadline = min(self.settle_us, waited)
            return
        hole = self.hole()
        if hole is None:
            self.mark = 0
            self.deadline = waited
            return
        end, seen_us = hole
        self.deadline = min(self._wait_start(seen_us, now_us) + settings.patience_us, waited)
        if end <= self.acked:
            if end > self.mark:
                self.mark, self.mark_us = self.acked, now_us
            self.deadline = min(self.deadline, self.mark_us + settings.hold_us)

    def flush(self, reason: ClosedReason, last_us: int, events: list[Event]) -> None:
        """Releases all held bytes at the end of the direction, with gaps for the holes."""
        if self.raw < 0 and not self.unseen_size:
            return
        pending = self.held or self.cuts or self.fin >= 0 or self.settle_us is not None
        if self.raw >= 0 and not pending and self.acked <= self.next + 1:
            return
        if self.raw < 0 and not self.closed:
            self.find_first((self.unseen + self.unseen_size) & MASK)
        if self.settle_us is not None:
            self.settle()
        self.waits = _NONE_WAITING
        self.release(events)
        while hole := self.hole():
            end, seen_us = hole
            self.skip(end, seen_us, "acknowledged, never captured" if end <= self.acked else _PENDING[reason], events)
        if not self.closed and self.raw >= 0 and self.acked > self.next + 1:
            self.skip(self.acked, last_us, "acknowledged, never captured", events)

    def end(self) -> None:
        """Stops accepting segments."""
        self.closed = True
        self.fin = self.next
        self.slow = True
        self.deadline = NEVER

    def state(self) -> dict[str, Any]:
        """The state as JSON data; held bytes in base64."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        plain["held"] = [[p.at, b64encode(p.data).decode(), p.time_us, p.offset, p.file] for p in self.held.all()]
        plain["cuts"] = [list(cut) for cut in self.cuts.all()]
        plain["waits"] = [list(wait) for wait in self.waits.all()]
        plain["gaps"] = [list(gap) for gap in self.gaps]
        plain["stray"] = list(self.stray)
        return plain

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Direction:
        state = {"back_us": NEVER, **state}
        direction = cls(state["role"])
        if direction.role not in ("client", "server"):
            raise ValueError(f"a direction of {direction.role!r}")
        for name in cls.__slots__:
            if name not in _LISTS:
                setattr(direction, name, like(getattr(direction, name), state[name]))
        direction.held = Ascending(Piece(at, b64decode(data), *where) for at, data, *where in state["held"])
        direction.cuts = Ascending((begin, end, time_us) for begin, end, time_us in state["cuts"])
        direction.waits = Ascending((at, needed, time_us) for at, needed, time_us in state.get("waits", ()))
        direction.gaps = tuple((begin, end) for begin, end in state["gaps"])
        end, at = state["stray"]
        direction.stray = (end, at)
        return direction
