"""TCP segments in, ordered bytes with explicit gaps out. Nothing here knows packets, protocols, Arrow or Spark.

``Connection`` follows one address pair, ``Connections`` a whole capture. Strategy, for each direction:

- Bytes are placed by sequence number, unwrapped to a 64-bit stream offset (0 = the direction's first byte). What comes
  in order leaves at once; what comes early is held; what was there already is dropped and counted, first copy wins.
- A hole becomes a ``Gap`` only when it cannot be filled any more: its peer has acknowledged all of it *and* the hold
  time has passed (captures deliver packets late), or nobody acknowledged it for the length of the patience (only one
  direction was captured), or too much is held behind it, or the connection ends. Bytes that the snap length cut off are
  a gap at once. A loss that no byte follows is reported when the next byte comes or the connection ends.
- When no handshake was seen the first bytes are held for the hold time too: a lower sequence can still go first.
- A reset takes effect after the hold time; a handshake with another initial sequence begins a new connection.

Rules: Data and Gap of a direction tile its stream offsets, ascending, without overlap. Every captured payload byte ends
in exactly one of Data, Duplicate, Ignored. Time is capture time, taken from the segments, never from a clock. Events
depend only on the segments of their address pair, so one pair at a time and a whole capture give the same.

Not resolved: an acknowledgment one beyond the last byte is taken as that of a FIN which the capture lost, not as a gap
of one byte; more than 1 GiB of one direction lost in one piece is a new connection, or a gap that is too short.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from bisect import bisect_right, insort
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from operator import itemgetter
from typing import Any, Literal, NamedTuple

from wirekit.errors import Misuse

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16

Side = Literal["client", "server"]
ClosedReason = Literal["fin", "rst", "end of capture", "new connection", "idle"]
GapReason = Literal[
    "acknowledged, never captured",
    "snap length",
    "never acknowledged, never captured",
    "held bytes over the limit",
    "pending at fin",
    "pending at rst",
    "pending at end of capture",
    "pending at new connection",
    "pending at idle",
]
IgnoredReason = Literal["before the start", "after the end", "after its gap", "out of the window", "in a reset"]

_PENDING: dict[ClosedReason, GapReason] = {
    "fin": "pending at fin",
    "rst": "pending at rst",
    "end of capture": "pending at end of capture",
    "new connection": "pending at new connection",
    "idle": "pending at idle",
}
_STATE_VERSION = 1
_MASK = 0xFFFFFFFF
_HALF = 1 << 31
_WINDOW = 1 << 30  # bytes; the largest window that TCP can announce
_FAST_OPEN = 0xFFFF  # bytes; more than a SYN can carry
_NEVER = 1 << 62  # µs
_PIECE_COST = 256  # bytes of memory that a held piece takes besides its payload
_GAPS_KEPT = 64  # gaps remembered, to tell a late byte from a duplicate


# Named tuples, not frozen dataclasses: millions are made, at a quarter of the cost.
class Segment(NamedTuple):
    """One TCP segment as captured.

    Attributes:
        time_us: capture time, microseconds since the epoch.
        source: sender, for example ``127.0.0.1:29101`` or ``[::1]:6650``.
        target: receiver, written the same way.
        sequence: raw 32-bit sequence number.
        acknowledgment: raw 32-bit acknowledgment number; read only when the ACK flag is set.
        flags: TCP flag bits (FIN 1, SYN 2, RST 4, PSH 8, ACK 16).
        payload: the bytes that are in the capture.
        offset: absolute offset of the payload in the capture file, bytes.
        file: ordinal of the capture file; unique over all files whose state is carried on.
        length: bytes of payload on the wire; more than ``len(payload)`` when the snap length cut it.
    """

    time_us: int
    source: str
    target: str
    sequence: int
    acknowledgment: int
    flags: int
    payload: bytes
    offset: int
    file: int
    length: int


class Opened(NamedTuple):
    """A connection appeared; always its first event.

    Attributes:
        connection: number of the connection.
        client: address that sent the SYN; when no SYN was seen, the one that is not the server by the known server
            ports, else by the lower port, else the first one to send.
        server: the other address.
        time_us: capture time of its first segment, microseconds since the epoch.
        known_start: whether a SYN was captured, so that stream offset 0 is the first byte ever sent.
    """

    connection: int
    client: str
    server: str
    time_us: int
    known_start: bool


class Data(NamedTuple):
    """Bytes of one direction, in order, each exactly once.

    Attributes:
        direction: who sent them.
        data: the bytes, never empty.
        stream_offset: their place in the direction's stream, bytes.
        time_us: capture time of the segment that brought them.
        offset: absolute offset of the first byte in the capture file.
        file: ordinal of the capture file.
    """

    direction: Side
    data: bytes
    stream_offset: int
    time_us: int
    offset: int
    file: int


class Gap(NamedTuple):
    """Bytes that were sent and are not in the capture.

    Attributes:
        direction: who sent them.
        stream_offset: where they are missing, bytes.
        length: how many, at least 1.
        time_us: capture time at which the loss showed: of the segment behind the gap or of the cut one; of the
            connection's last segment when nothing is behind it.
        reason: why they are missing.
    """

    direction: Side
    stream_offset: int
    length: int
    time_us: int
    reason: GapReason


class Duplicate(NamedTuple):
    """Captured bytes that were there already and have been dropped.

    Attributes:
        direction: who sent them again.
        length: bytes dropped.
        conflicting: how many of them differ from the first copy; known only while the first copy is held.
        time_us: capture time of the copy.
    """

    direction: Side
    length: int
    conflicting: int
    time_us: int


class Ignored(NamedTuple):
    """Captured bytes that belong to no place of the stream which is still open.

    Attributes:
        direction: who sent them.
        data: the bytes.
        time_us: capture time of their segment.
        offset: absolute offset of the first byte in the capture file.
        file: ordinal of the capture file.
        reason: why they have no place; ``after its gap`` says that the hold time was too short for this capture.
    """

    direction: Side
    data: bytes
    time_us: int
    offset: int
    file: int
    reason: IgnoredReason


class Closed(NamedTuple):
    """A direction, or what was still open of the connection, has ended; no Data or Gap of it follows.

    Attributes:
        direction: who will send no more.
        reason: what ended it.
        time_us: capture time of the FIN or RST, else of the connection's last segment.
    """

    direction: Literal["client", "server", "both"]
    reason: ClosedReason
    time_us: int


Event = Opened | Data | Gap | Duplicate | Ignored | Closed


@dataclass(frozen=True, slots=True)
class Settings:
    """How long to wait and how much to hold. Microseconds are capture time.

    Attributes:
        hold_us: how late a packet may be captured: waited after the acknowledgment of a hole, at a start without
            handshake, and after a reset.
        patience_us: how long a hole may stay that nobody acknowledges; also how long after its end a connection still
            takes segments for stragglers, not for a new connection whose handshake is missing.
        idle_us: a connection without any segment for longer than this is closed.
        held_limit: bytes held out of order per direction, 256 bytes of bookkeeping counted for each piece.
        server_ports: ports that are known to be servers' where no handshake tells.
    """

    hold_us: int = 5_000
    patience_us: int = 10_000_000
    idle_us: int = 600_000_000
    held_limit: int = 64 << 20
    server_ports: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        for name in ("hold_us", "patience_us", "idle_us", "held_limit"):
            if getattr(self, name) < 0:
                raise Misuse(f"{name} is {getattr(self, name)}; pass 0 or more")


_DEFAULT = Settings()


class _Piece(NamedTuple):
    """Bytes held, at a stream offset."""

    at: int
    data: bytes
    time_us: int
    offset: int
    file: int


class _Direction:
    """What one side of the connection has sent."""

    __slots__ = (
        "acked", "closed", "cost", "cuts", "deadline", "fin", "fin_us", "gaps", "held", "mark", "mark_us", "next",
        "raw", "role", "settle_us", "slow", "start", "stray",
    )  # fmt: skip

    def __init__(self, role: Side) -> None:
        self.role: Side = role
        self.raw = -1  # sequence number of the next byte to release, -1 while unknown
        self.next = 0  # its stream offset
        self.start = -1  # sequence number of the first byte if the handshake told it
        self.settle_us = -1  # until then a lower sequence may still become the first byte
        self.held: list[_Piece] = []  # ascending, disjoint, all at or beyond next
        self.cost = 0  # what they take, bytes
        self.cuts: list[tuple[int, int, int]] = []  # (from, to, time) cut by the snap length, ascending
        self.gaps: list[tuple[int, int]] = []  # the latest gaps released
        self.acked = 0  # highest stream offset acknowledged beyond next
        self.mark = 0  # what was acknowledged ...
        self.mark_us = 0  # ... at this time, for the hold time to count from
        self.fin = -1  # stream offset of the end
        self.fin_us = 0
        self.closed = False
        self.stray = (-1, 0)  # where the last segment out of the window ended, and next at that time
        self.slow = True  # whether in-order data needs more than to be passed on
        self.deadline = _NEVER

    def distance(self, sequence: int) -> int:
        """Bytes from the next byte to release to this sequence number; negative when it lies behind."""
        return ((sequence - self.raw + _HALF) & _MASK) - _HALF

    def in_place(self, start: int) -> int:
        """How a handshake with this first sequence number fits: 1 yes, 0 no, -1 no other fact speaks for or against."""
        if self.start >= 0:
            return int(self.start == start)
        if self.raw < 0:
            return -1
        if self.settle_us < 0:
            return int((self.raw - self.next) & _MASK == start)
        return -1 if -_WINDOW <= self.distance(start) <= 0 else 0

    def begin(self, start: int) -> None:
        """The handshake tells the sequence number of the first byte."""
        if self.start >= 0 or self.closed:
            return
        if self.raw < 0:
            self.raw = start
        elif self.settle_us >= 0:
            ahead = -self.distance(start)
            if not 0 <= ahead <= _WINDOW:
                return
            self.shift(ahead)
            self.settle_us = -1
        elif (self.raw - self.next) & _MASK != start:
            return
        self.start = start

    def shift(self, by: int) -> None:
        """Put the first byte ``by`` bytes earlier; nothing has been released yet."""
        self.raw = (self.raw - by) & _MASK
        self.held = [piece._replace(at=piece.at + by) for piece in self.held]
        self.cuts = [(begin + by, end + by, time_us) for begin, end, time_us in self.cuts]
        if self.acked:
            self.acked += by
        if self.fin >= 0:
            self.fin += by

    def place(self, piece: _Piece, events: list[Event]) -> None:
        """Hold the bytes that are new; count the others."""
        at, data, time_us, offset, file = piece
        end = at + len(data)
        if at < self.next:
            early = min(self.next, end) - at
            self._pass(_Piece(at, data[:early], time_us, offset, file), events)
            data = data[early:]
            at += early
            offset += early
        if 0 <= self.fin < end:
            excess = min(end - self.fin, len(data))
            if excess:
                kept = len(data) - excess
                events.append(Ignored(self.role, data[kept:], time_us, offset + kept, file, "after the end"))
                data = data[:kept]
                end = at + kept
        if not data:
            return
        held = self.held
        if not held or at >= held[-1].at + len(held[-1].data):
            held.append(_Piece(at, data, time_us, offset, file))
            self.cost += len(data) + _PIECE_COST
            return
        first = bisect_right(held, at, key=itemgetter(0))
        if first and held[first - 1].at + len(held[first - 1].data) > at:
            first -= 1
        index, position, repeated, conflicting = first, at, 0, 0
        fresh: list[_Piece] = []
        while position < end:
            stop = min(end, held[index].at) if index < len(held) else end
            if position < stop:
                fresh.append(_Piece(position, data[position - at : stop - at], time_us, offset + position - at, file))
                self.cost += stop - position + _PIECE_COST
                position = stop
            if position < end:
                known = held[index]
                index += 1
                stop = min(end, known.at + len(known.data))
                mine = data[position - at : stop - at]
                theirs = known.data[position - known.at : stop - known.at]
                repeated += len(mine)
                if mine != theirs:
                    conflicting += sum(a != b for a, b in zip(mine, theirs, strict=True))
                position = stop
        held[first:index] = sorted([*held[first:index], *fresh])
        if repeated:
            events.append(Duplicate(self.role, repeated, conflicting, time_us))

    def _pass(self, piece: _Piece, events: list[Event]) -> None:
        """Account for bytes behind the next one: before the start, in a gap already reported, or seen before."""
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
            events.append(Duplicate(self.role, repeated, 0, time_us))

    def cut(self, begin: int, end: int, time_us: int) -> None:
        """Bytes [begin, end) were on the wire but not within the snap length."""
        begin = max(begin, self.next)
        if self.fin >= 0:
            end = min(end, self.fin)
        if begin < end:
            insort(self.cuts, (begin, end, time_us))
            self.cost += _PIECE_COST

    def finish(self, at: int, time_us: int) -> None:
        """A FIN ends the direction at this stream offset; the first one that fits what was seen counts."""
        end = self.next
        if self.held:
            end = self.held[-1].at + len(self.held[-1].data)
        if self.cuts:
            end = max(end, *(cut[1] for cut in self.cuts))
        if self.fin < 0 and at >= end:
            self.fin, self.fin_us = at, time_us

    def release(self, events: list[Event]) -> None:
        """Pass on what has become contiguous, unless the first byte is not certain yet."""
        if self.raw < 0 or self.settle_us >= 0 or self.closed:
            return
        before = position = self.next
        held, cuts = self.held, self.cuts
        released = reported = 0
        while True:
            for index in range(released, len(held)):
                at, data, time_us, offset, file = held[index]
                if at != position:
                    break
                events.append(Data(self.role, data, position, time_us, offset, file))
                position += len(data)
                self.cost -= len(data) + _PIECE_COST
                released += 1
            if reported == len(cuts) or cuts[reported][0] > position:
                break
            _, end, time_us = cuts[reported]
            stop = min(end, held[released].at) if released < len(held) else end
            if stop > position:
                events.append(Gap(self.role, position, stop - position, time_us, "snap length"))
                self._remember(position, stop)
                position = stop
            if position >= end:
                self.cost -= _PIECE_COST
                reported += 1
        del held[:released], cuts[:reported]
        self.next = position
        self.raw = (self.raw + position - before) & _MASK
        if position == self.fin:
            self.closed = True
            events.append(Closed(self.role, "fin", self.fin_us))

    def hole(self) -> tuple[int, int] | None:
        """The end of the hole at the next byte and the time at which it showed, if something is known behind it."""
        if self.closed or self.settle_us >= 0:
            return None
        found = (self.fin, self.fin_us) if self.fin >= 0 else (_NEVER, 0)
        if self.cuts:
            found = min(found, (self.cuts[0][0], self.cuts[0][2]))
        if self.held:
            found = min(found, (self.held[0].at, self.held[0].time_us))
        return None if found[0] == _NEVER else found

    def skip(self, end: int, time_us: int, reason: GapReason, events: list[Event]) -> None:
        """Give up the bytes up to ``end`` and pass on what follows."""
        events.append(Gap(self.role, self.next, end - self.next, time_us, reason))
        self._remember(self.next, end)
        self.raw = (self.raw + end - self.next) & _MASK
        self.next = end
        self.release(events)

    def _remember(self, begin: int, end: int) -> None:
        self.gaps.append((begin, end))
        if len(self.gaps) > _GAPS_KEPT:
            del self.gaps[0]

    def pass_time(self, now_us: int, settings: Settings, events: list[Event]) -> None:
        """The deadline has passed: settle the first byte, give up the holes whose time is over."""
        if 0 <= self.settle_us < now_us:
            self.settle_us = -1
            self.release(events)
        while hole := self.hole():
            end, seen_us = hole
            if end <= self.mark and now_us > self.mark_us + settings.hold_us:
                reason: GapReason = "acknowledged, never captured"
            elif now_us > seen_us + settings.patience_us:
                reason = "pending at fin" if end == self.fin else "never acknowledged, never captured"
                if end <= self.acked:
                    reason = "acknowledged, never captured"
            else:
                break
            self.skip(end, seen_us, reason, events)
        self.watch(now_us, settings)

    def limit(self, limit: int, events: list[Event]) -> None:
        """Give up the earliest holes until no more than ``limit`` bytes are held."""
        if self.cost > limit and self.settle_us >= 0:
            self.settle_us = -1
            self.release(events)
        while self.cost > limit and (hole := self.hole()):
            self.skip(*hole, "held bytes over the limit", events)

    def watch(self, now_us: int, settings: Settings) -> None:
        """Set the deadline and whether in-order data may take the fast path."""
        self.slow = self.raw < 0 or self.settle_us >= 0 or self.fin >= 0 or bool(self.held) or bool(self.cuts)
        if self.settle_us >= 0:
            self.deadline = self.settle_us
            return
        hole = self.hole()
        if hole is None:
            self.mark = 0
            self.deadline = _NEVER
            return
        end, seen_us = hole
        self.deadline = seen_us + settings.patience_us
        if end <= self.acked:
            if end > self.mark:
                self.mark, self.mark_us = self.acked, now_us
            self.deadline = min(self.deadline, self.mark_us + settings.hold_us)

    def flush(self, reason: ClosedReason, last_us: int, events: list[Event]) -> None:
        """Nothing more will come: pass on all that is held, with gaps for the holes."""
        self.settle_us = -1
        self.release(events)
        while hole := self.hole():
            end, seen_us = hole
            self.skip(end, seen_us, "acknowledged, never captured" if end <= self.acked else _PENDING[reason], events)
        if not self.closed and self.raw >= 0 and self.acked > self.next + 1:
            self.skip(self.acked, last_us, "acknowledged, never captured", events)

    def end(self) -> None:
        """Take nothing more."""
        self.closed = True
        self.fin = self.next
        self.slow = True
        self.deadline = _NEVER

    def state(self) -> dict[str, Any]:
        """All of it as JSON-able data; held bytes in base64."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        plain["held"] = [[p.at, b64encode(p.data).decode(), p.time_us, p.offset, p.file] for p in self.held]
        plain["cuts"] = [list(cut) for cut in self.cuts]
        plain["gaps"] = [list(gap) for gap in self.gaps]
        plain["stray"] = list(self.stray)
        return plain

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> _Direction:
        direction = cls(state["role"])
        for name in cls.__slots__:
            setattr(direction, name, state[name])
        direction.held = [_Piece(at, b64decode(data), *where) for at, data, *where in state["held"]]
        direction.cuts = [(begin, end, time_us) for begin, end, time_us in state["cuts"]]
        direction.gaps = [(begin, end) for begin, end in state["gaps"]]
        end, at = state["stray"]
        direction.stray = (end, at)
        return direction


class Connection:
    """The segments of one address pair, in capture order; one TCP connection after the other.

    Args:
        settings: times and limits.
        take_number: gives the number of each connection that begins; by default 0, 1, 2, …

    >>> connection = Connection()
    >>> segment = Segment(0, "10.0.0.1:40000", "10.0.0.2:9092", 4294967295, 0, SYN, b"", 70, 0, 0)
    >>> connection.feed(segment)
    [Opened(connection=0, client='10.0.0.1:40000', server='10.0.0.2:9092', time_us=0, known_start=True)]
    >>> connection.feed(segment._replace(sequence=0, flags=ACK, payload=b"abc", offset=140, length=3))
    [Data(direction='client', data=b'abc', stream_offset=0, time_us=0, offset=140, file=0)]
    """

    __slots__ = (
        "_announced", "_closing_us", "_deadline", "_ended_us", "_first", "_idle_us", "_known", "_last_us",
        "_opened_us", "_second", "_settings", "_sides", "_take_number", "number",
    )  # fmt: skip

    def __init__(self, settings: Settings = _DEFAULT, take_number: Callable[[], int] | None = None) -> None:
        self._settings = settings
        self._idle_us = settings.idle_us
        self._take_number = take_number or count().__next__
        self.number = -1  # of the current connection, -1 before the first segment
        self._first = self._second = ""  # addresses
        self._sides = (_Direction("client"), _Direction("server"))  # what they sent, in the same order
        self._known = False  # a SYN was seen
        self._announced = False  # Opened was given
        self._opened_us = 0
        self._last_us = 0
        self._closing_us = _NEVER  # when a reset takes effect
        self._ended_us = -1
        self._deadline = -1  # earliest time at which something is due without a segment

    @property
    def addresses(self) -> tuple[str, str]:
        """Both addresses, the sender of the current connection's first segment first; empty before any segment."""
        return self._first, self._second

    @property
    def ended(self) -> bool:
        """Whether the current connection is over and only stragglers of it are expected."""
        return self._ended_us >= 0

    def feed(self, segment: Segment) -> list[Event]:
        """Take one segment; return the events that it settles, in order.

        Raises:
            Misuse: the segment belongs to another address pair.
        """
        time_us, source, _, sequence, acknowledgment, flags, payload, offset, file, length = segment
        if source == self._first:
            side, peer = self._sides
        else:
            peer, side = self._sides
            if source != self._second and self.number >= 0:
                raise Misuse(f"a segment from {source} does not belong to {self._first} and {self._second}")
        # Here for speed: 7 is FIN | SYN | RST, 16 is ACK. All else goes through _feed.
        if self._last_us <= time_us <= self._deadline and time_us - self._last_us <= self._idle_us and not flags & 7:
            if not payload and not length:
                events: list[Event] = []
            elif sequence == side.raw and not side.slow and len(payload) == length:
                events = [Data(side.role, payload, side.next, time_us, offset, file)]
                side.next += length
                side.raw = (sequence + length) & _MASK
            else:
                return self._feed(segment)
            self._last_us = time_us
            # All that was released being acknowledged, or less, is the rule and tells nothing.
            if (
                acknowledgment != peer.raw
                and flags & 16
                and ((acknowledgment - peer.raw) & _MASK <= _WINDOW or peer.raw < 0)
            ):
                self._acknowledge(side, peer, acknowledgment, time_us)
                self._deadline = min(side.deadline, peer.deadline, self._closing_us)
            return events
        return self._feed(segment)

    def expire(self, time_us: int) -> list[Event]:
        """Capture time has come to ``time_us``: close the connection if it has been idle for too long."""
        if self.number < 0 or self.ended or not self.is_idle(time_us):
            return []
        return self._end("idle")

    def is_idle(self, time_us: int) -> bool:
        """Whether a segment at ``time_us`` would begin another connection because the last one was so long ago."""
        return time_us - self._last_us > self._idle_us

    def finish(self, time_us: int | None = None) -> list[Event]:
        """The capture is over, at ``time_us`` if that is known to be later than the last segment of this pair."""
        if self.number < 0 or self.ended:
            return []
        return self.expire(time_us or 0) or self._end("end of capture")

    def _feed(self, segment: Segment) -> list[Event]:
        """The general case of ``feed``."""
        time_us, source, _, sequence, acknowledgment, flags, payload, offset, file, length = segment
        previous: list[Event] = []
        events: list[Event] = []
        if self.number < 0:
            self._begin(segment)
        elif self.is_idle(time_us):
            previous = self.expire(time_us)
            self._begin(segment)
        else:
            if time_us > self._deadline:
                events = self._pass_time(time_us)
            if self._is_another(segment):
                previous, events = events, []
                if not self.ended:
                    previous += self._end("new connection")
                self._begin(segment)
        self._last_us = max(self._last_us, time_us)
        side, peer = self._sides if source == self._first else self._sides[::-1]

        if flags & RST:
            if payload:
                events.append(Ignored(side.role, payload, time_us, offset, file, "in a reset"))
            # A reset that answers a SYN has no sequence number of its own.
            near = side.raw < 0 or not sequence or abs(side.distance(sequence)) <= _WINDOW
            if near and not self.ended:
                self._closing_us = min(self._closing_us, time_us + self._settings.hold_us)
        else:
            if flags & SYN:
                sequence = (sequence + 1) & _MASK
                self._handshake(side, peer, sequence, flags, acknowledgment)
                peer.release(events)
                peer.watch(time_us, self._settings)
            if length or payload or flags & FIN:
                self._place(side, sequence, segment, events)
            side.release(events)
            side.limit(self._settings.held_limit, events)
            side.watch(time_us, self._settings)
            if flags & ACK:
                self._acknowledge(side, peer, acknowledgment, time_us)
        self._check_end()
        self._deadline = min(side.deadline, peer.deadline, self._closing_us)
        self._announce(events, if_empty=self._known)
        return previous + events

    def _begin(self, segment: Segment) -> None:
        """A new connection, of which this is the first segment."""
        self._first, self._second = segment.source, segment.target
        self.number = self._take_number()
        self._known = self._announced = False
        self._opened_us = self._last_us = segment.time_us
        self._closing_us = self._deadline = _NEVER
        self._ended_us = -1
        client = _guess_client(segment, self._settings.server_ports)
        self._sides = (_Direction("client"), _Direction("server"))
        if client != self._first:
            self._sides[0].role, self._sides[1].role = "server", "client"

    def _is_another(self, segment: Segment) -> bool:
        """Whether the segment cannot be one of the current connection but begins another."""
        side, peer = self._sides if segment.source == self._first else self._sides[::-1]
        if not segment.flags & SYN:
            if segment.flags & RST or not segment.length:
                return False
            if self.ended:
                return segment.time_us > self._ended_us + self._settings.patience_us
            # The second of two segments that agree with each other, but with nothing before them.
            return side.stray == (segment.sequence, side.next)
        fits = side.in_place((segment.sequence + 1) & _MASK)
        if fits < 0 and peer.start < 0:
            # Nothing but segments without payload, or payload that the hold time allows to be early.
            over = self.ended or self._closing_us < _NEVER
            fits = int(not over and segment.time_us - self._opened_us <= self._settings.hold_us)
        if fits and segment.flags & ACK and peer.start >= 0:
            fits = int((segment.acknowledgment - peer.start) & _MASK <= _FAST_OPEN)
        return not fits

    def _handshake(self, side: _Direction, peer: _Direction, start: int, flags: int, acknowledgment: int) -> None:
        """A SYN tells the sender's first sequence number; one with ACK the receiver's, too, and who the server is."""
        if not self._known and not self._announced:
            side.role, peer.role = ("server", "client") if flags & ACK else ("client", "server")
        self._known = True
        side.begin(start)
        if flags & ACK:
            peer.begin(acknowledgment)

    def _place(self, side: _Direction, sequence: int, segment: Segment, events: list[Event]) -> None:
        """Put payload and FIN where ``sequence``, the number of the first payload byte, says."""
        time_us, _, _, _, _, flags, payload, offset, file, length = segment
        if side.raw < 0:
            if side.closed:
                if payload:
                    events.append(Ignored(side.role, payload, time_us, offset, file, "after the end"))
                return
            side.raw = sequence
            side.settle_us = time_us + self._settings.hold_us
        distance = side.distance(sequence)
        if abs(distance) > _WINDOW:
            if payload:
                events.append(Ignored(side.role, payload, time_us, offset, file, "out of the window"))
            if length:
                side.stray = ((sequence + length) & _MASK, side.next)
            return
        if distance < 0 and side.settle_us >= 0:
            side.shift(-distance)
            distance = 0
        at = side.next + distance
        if payload:
            side.place(_Piece(at, payload, time_us, offset, file), events)
        if length > len(payload):
            side.cut(at + len(payload), at + length, time_us)
        if flags & FIN:
            side.finish(at + max(length, len(payload)), time_us)

    def _acknowledge(self, side: _Direction, peer: _Direction, acknowledgment: int, time_us: int) -> None:
        """``side`` says that it has all that ``peer`` sent before this sequence number."""
        if peer.raw < 0:
            # The answer to a SYN whose SYN-ACK was not captured.
            if side.start >= 0 and not peer.closed:
                peer.begin(acknowledgment)
                peer.watch(time_us, self._settings)
            return
        distance = peer.distance(acknowledgment)
        if 0 < distance <= _WINDOW and peer.next + distance > peer.acked:
            peer.acked = peer.next + distance
            peer.watch(time_us, self._settings)

    def _pass_time(self, now_us: int) -> list[Event]:
        """Do all that is due before ``now_us``, in the order in which it became due."""
        events: list[Event] = []
        while True:
            side = min(self._sides, key=lambda direction: direction.deadline)
            if now_us <= min(side.deadline, self._closing_us):
                break
            if self._closing_us < side.deadline:
                self._announce(events)
                events += self._end("rst")
            else:
                side.pass_time(now_us, self._settings, events)
                self._check_end()
        self._announce(events)
        return events

    def _check_end(self) -> None:
        """When both directions have ended by FIN, the connection has."""
        if self._sides[0].closed and self._sides[1].closed and not self.ended:
            self._ended_us = self._last_us
            self._closing_us = _NEVER

    def _end(self, reason: ClosedReason) -> list[Event]:
        """Close what is open, with gaps for the holes."""
        events: list[Event] = []
        last_us = self._last_us
        if self._closing_us < _NEVER:
            reason = "rst"
            last_us = self._closing_us - self._settings.hold_us
            self._closing_us = _NEVER
        for side in self._sides:
            side.flush(reason, self._last_us, events)
        roles = [side.role for side in self._sides if not side.closed]
        if roles:
            events.append(Closed("both" if len(roles) == 2 else roles[0], reason, last_us))
        for side in self._sides:
            side.end()
        self._ended_us = self._last_us
        self._deadline = _NEVER
        self._announce(events)
        return events

    def _announce(self, events: list[Event], *, if_empty: bool = False) -> None:
        """Put Opened before the first events of the connection."""
        if self._announced or not (events or if_empty):
            return
        self._announced = True
        client, server = self._first, self._second
        if self._sides[0].role == "server":
            client, server = server, client
        events.insert(0, Opened(self.number, client, server, self._opened_us, self._known))

    def state(self) -> dict[str, Any]:
        """The current connection as JSON-able data, for ``from_state``; settings are not part of it."""
        return {
            "version": _STATE_VERSION,
            "number": self.number,
            "addresses": [self._first, self._second],
            "known": self._known,
            "announced": self._announced,
            "opened_us": self._opened_us,
            "last_us": self._last_us,
            "closing_us": self._closing_us,
            "ended_us": self._ended_us,
            "deadline": self._deadline,
            "directions": [side.state() for side in self._sides],
        }

    @classmethod
    def from_state(
        cls, state: dict[str, Any], settings: Settings = _DEFAULT, take_number: Callable[[], int] | None = None
    ) -> Connection:
        """Go on where ``state()`` was taken; numbers go on from the state's by default.

        Raises:
            Misuse: the state is not one of this version.
        """
        _check_version(state)
        try:
            connection = cls(settings, take_number or count(state["number"] + 1).__next__)
            connection.number = state["number"]
            connection._first, connection._second = state["addresses"]
            connection._known = state["known"]
            connection._announced = state["announced"]
            connection._opened_us = state["opened_us"]
            connection._last_us = state["last_us"]
            connection._closing_us = state["closing_us"]
            connection._ended_us = state["ended_us"]
            connection._deadline = state["deadline"]
            first, second = state["directions"]
            connection._sides = (_Direction.from_state(first), _Direction.from_state(second))
        except (KeyError, TypeError, ValueError) as error:
            raise Misuse(f"the state of a connection is damaged ({error!r}); pass what state() returned") from error
        return connection


class Connections:
    """The segments of a whole capture, in capture order, each event with the number of its connection.

    Numbers count from 0 in order of first appearance. Connections that were idle for ``Settings.idle_us`` are closed
    and forgotten, so that memory follows the open ones.

    Args:
        settings: times and limits of every connection.
    """

    def __init__(self, settings: Settings = _DEFAULT) -> None:
        self._settings = settings
        self._next_number = 0
        self._connections: dict[tuple[str, str], Connection] = {}  # by the addresses as first seen
        self._flows: dict[tuple[str, str], Connection] = {}  # by the addresses either way round
        self._sweep_us = -1

    def feed(self, segment: Segment) -> list[tuple[int, Event]]:
        """Take one segment; return (connection number, event) for all that it settles, in order."""
        swept = self._sweep(segment.time_us) if segment.time_us > self._sweep_us else []
        key = segment[1:3]
        connection = self._flows.get(key)
        if connection is None:
            connection = Connection(self._settings, self._take_number)
            self._connections[key] = self._flows[key] = self._flows[key[::-1]] = connection
        number = connection.number
        events = connection.feed(segment)
        if swept or connection.number != number:
            return swept + _numbered(number, events)
        if len(events) == 1:  # nearly always, and a list made in one go takes half the time
            return [(number, events[0])]
        return [(number, event) for event in events]

    def read(self, segments: Iterable[Segment]) -> Iterator[tuple[int, Event]]:
        """``feed`` for many segments; ``finish`` stays to be called, unless the state is carried on."""
        for segment in segments:
            yield from self.feed(segment)

    def finish(self, time_us: int | None = None) -> list[tuple[int, Event]]:
        """The capture is over, at ``time_us`` if that is known: close every connection, in order of appearance."""
        return [pair for each in self._connections.values() for pair in _numbered(each.number, each.finish(time_us))]

    def state(self) -> dict[str, Any]:
        """All connections as JSON-able data, for ``from_state``; settings are not part of it."""
        return {
            "version": _STATE_VERSION,
            "next_number": self._next_number,
            "sweep_us": self._sweep_us,
            "connections": [connection.state() for connection in self._connections.values()],
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], settings: Settings = _DEFAULT) -> Connections:
        """Go on where ``state()`` was taken.

        Raises:
            Misuse: the state is not one of this version.
        """
        _check_version(state)
        connections = cls(settings)
        try:
            connections._next_number = state["next_number"]
            connections._sweep_us = state["sweep_us"]
            parts = state["connections"]
        except KeyError as error:
            raise Misuse(f"the state of a capture lacks {error}; pass what state() returned") from error
        for part in parts:
            connection = Connection.from_state(part, settings, connections._take_number)
            key = connection.addresses
            connections._connections[key] = connections._flows[key] = connections._flows[key[::-1]] = connection
        return connections

    def _take_number(self) -> int:
        self._next_number += 1
        return self._next_number - 1

    def _sweep(self, time_us: int) -> list[tuple[int, Event]]:
        """Close and forget the connections that have been idle."""
        self._sweep_us = time_us + self._settings.idle_us
        events: list[tuple[int, Event]] = []
        for key, connection in list(self._connections.items()):
            events += _numbered(connection.number, connection.expire(time_us))
            if connection.is_idle(time_us):
                del self._connections[key], self._flows[key]
                self._flows.pop(key[::-1], None)
        return events


def _numbered(number: int, events: list[Event]) -> list[tuple[int, Event]]:
    """Events with the connection's number; the number changes where another connection opens."""
    pairs: list[tuple[int, Event]] = []
    for event in events:
        if isinstance(event, Opened):
            number = event.connection
        pairs.append((number, event))
    return pairs


def _guess_client(segment: Segment, server_ports: frozenset[int]) -> str:
    """Who is the client: by the handshake, by the ports that are servers', by the lower port, by who sends first."""
    if segment.flags & SYN:
        return segment.target if segment.flags & ACK else segment.source
    source, target = _port(segment.source), _port(segment.target)
    if (source in server_ports) != (target in server_ports):
        return segment.target if source in server_ports else segment.source
    return segment.target if source < target else segment.source


def _port(address: str) -> int:
    port = address.rpartition(":")[2]
    if not port.isdecimal():
        raise Misuse(f"the address {address!r} has no port; pass host:port, with brackets around an IPv6 host")
    return int(port)


def _check_version(state: dict[str, Any]) -> None:
    if state.get("version") != _STATE_VERSION:
        raise Misuse(f"the state has version {state.get('version')!r}; pass one of version {_STATE_VERSION}")
