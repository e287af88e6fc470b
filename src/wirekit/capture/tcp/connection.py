"""Turns the segments of one address pair into events, one TCP connection after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wirekit.capture.tcp.direction import MASK, NEVER, WINDOW, Direction, Piece
from wirekit.capture.tcp.events import (
    ACK,
    CLOCK_STEP_US,
    DEFAULT,
    FIN,
    RST,
    SYN,
    Closed,
    ClosedReason,
    Data,
    Event,
    Ignored,
    Opened,
    Segment,
    Settings,
)
from wirekit.errors import Misuse
from wirekit.values import quoted, whole_number

_FAST_OPEN = 0xFFFF  # bytes; more than a SYN can carry
STATE_VERSION = 3


_UNBEGUN = (Direction("client"), Direction("server"))  # the directions before the first segment


class Connection:
    """The segments of one address pair, in capture order; one TCP connection after the other.

    Args:
        settings: times and limits.
        take_number: returns the number of each new connection; by default 0, 1, 2, …

    >>> connection = Connection()
    >>> segment = Segment(0, "10.0.0.1:40000", "10.0.0.2:9092", 4294967295, 0, SYN, b"", 70, 0, 0)
    >>> connection.feed(segment)
    [Opened(connection=0, client='10.0.0.1:40000', server='10.0.0.2:9092', time_us=0, known_start=True)]
    >>> connection.feed(segment._replace(sequence=0, flags=ACK, payload=b"abc", offset=140, length=3))
    [Data(direction='client', data=b'abc', stream_offset=0, time_us=0, offset=140, file=0)]
    """

    __slots__ = (
        "_announced", "_closing_us", "_deadline", "_directions", "_ended_us", "_first", "_idle_us", "_known",
        "_last_us", "_opened_us", "_second", "_settings", "_start", "_take_number", "number",
    )  # fmt: skip

    def __init__(self, settings: Settings = DEFAULT, take_number: Callable[[], int] | None = None) -> None:
        self._settings = settings
        self._idle_us = settings.idle_us
        self._take_number = take_number
        self.number = -1  # of the current connection, -1 before the first segment
        self._first = self._second = ""  # addresses
        self._directions = _UNBEGUN  # their directions, in the same order
        self._start = -1  # the client's first sequence number, while its SYN is all there is and the directions are not
        self._known = False  # a SYN was seen
        self._announced = False  # Opened was given
        self._opened_us = 0
        self._last_us = 0
        self._closing_us = NEVER  # when a reset takes effect
        self._ended_us: int | None = None
        self._deadline = -NEVER  # earliest time at which something is due without a segment

    @property
    def _sides(self) -> tuple[Direction, Direction]:
        """The directions, in the order of the addresses; created late, as most connections of a port scan need none."""
        if self._start >= 0:
            start, self._start = self._start, -1
            self._directions = client, server = Direction("client"), Direction("server")
            client.begin(start)
            client.slow = False
            self._deadline = NEVER
            if self.ended:
                client.end()
                server.end()
        return self._directions

    @property
    def addresses(self) -> tuple[str, str]:
        """Both addresses, first the sender of the current connection's first segment; empty before any segment."""
        return self._first, self._second

    @property
    def ended(self) -> bool:
        """Whether the current connection has ended, so that only late segments of it are expected."""
        return self._ended_us is not None

    @property
    def settled(self) -> bool:
        """Whether nothing is pending: no hole, no reset, no uncertain first byte."""
        sides = self._directions
        return self._start >= 0 or (
            self._announced
            and min(self._closing_us, *(side.deadline for side in sides)) == NEVER
            and not any(side.held or side.cuts or side.settle_us is not None or side.continues_stray for side in sides)
        )

    def feed(self, segment: Segment) -> list[Event]:
        """Takes one segment, and returns the events that it completes, in order.

        Raises:
            Misuse: the segment belongs to another address pair.
        """
        time_us, source, _, sequence, acknowledgment, flags, payload, offset, file, length = segment
        if source == self._first:
            side, peer = self._directions
        else:
            peer, side = self._directions
            if source != self._second and self.number >= 0:
                raise Misuse(f"a segment from {source} does not belong to {self._first} and {self._second}")
        # Here for speed: 7 is FIN | SYN | RST, 16 is ACK. All else goes through _feed.
        if self._last_us <= time_us <= self._deadline and time_us - self._last_us <= self._idle_us and not flags & 7:
            if not payload and not length:
                events: list[Event] = []
            elif (
                sequence == side.raw
                and not side.slow
                and len(payload) == length
                and not peer.waits
                and (acknowledgment == peer.raw or not _must_wait(side, peer, acknowledgment))
            ):
                events = [Data(side.role, payload, side.next, time_us, offset, file)]
                side.next += length
                side.raw = (sequence + length) & MASK
            else:
                return self._feed(segment)
            self._last_us = time_us
            # An acknowledgment of released bytes only is the rule, and changes nothing.
            if (
                acknowledgment != peer.raw
                and flags & 16
                and ((acknowledgment - peer.raw) & MASK <= WINDOW or peer.raw < 0)
            ):
                self._acknowledge(side, peer, acknowledgment, time_us)
                self._deadline = min(side.deadline, peer.deadline, self._closing_us)
            return events
        return self._feed(segment)

    def expire(self, time_us: int) -> list[Event]:
        """Closes the connection at capture time ``time_us`` if it has been idle for too long."""
        if self.number < 0 or self.ended or not self.is_idle(time_us):
            return []
        return self._end("idle")

    def settle_reset(self, time_us: int) -> list[Event]:
        """Lets a reset take effect at capture time ``time_us``, if nothing else is pending."""
        if self._closing_us >= time_us or min(side.deadline for side in self._sides) < NEVER:
            return []
        return self._end("rst")

    @property
    def last_us(self) -> int:
        """Capture time of the current connection's last segment."""
        return self._last_us

    @property
    def closing_us(self) -> int:
        """When a reset takes effect; ``NEVER`` without one."""
        return self._closing_us

    @property
    def over_us(self) -> int:
        """The time after which no late segment of the current connection is expected; ``NEVER`` before its end."""
        return NEVER if self._ended_us is None else self._ended_us + self._settings.patience_us

    def is_idle(self, time_us: int) -> bool:
        """Whether a segment at ``time_us`` begins another connection, because the last one was too long ago."""
        return time_us - self._last_us > self._idle_us

    def finish(self, time_us: int | None = None) -> list[Event]:
        """Ends the capture, at ``time_us`` if it is later than the last segment of this pair."""
        if self.number < 0 or self.ended:
            return []
        idle = self.expire(time_us) if time_us is not None else []
        return idle or self._end("end of capture")

    def _feed(self, segment: Segment) -> list[Event]:
        """The general case of ``feed``."""
        time_us, source, _, sequence, acknowledgment, flags, payload, offset, file, length = segment
        previous: list[Event] = []
        events: list[Event] = []
        if time_us < self._last_us - CLOCK_STEP_US and self.number >= 0:
            events = self._set_back(time_us)
        if self.number < 0:
            self._begin(segment)
            if flags & (SYN | ACK | FIN | RST) == SYN and not payload and not length:  # all that a port scan sends
                return [self._open((sequence + 1) & MASK)]
            self._begin_directions(segment)
        elif self.is_idle(time_us):
            previous = self.expire(time_us)
            self._begin(segment)
            self._begin_directions(segment)
        else:
            if time_us > self._deadline:
                events += self._pass_time(time_us)
            if self._is_another(segment):
                previous, events = events, []
                if not self.ended:
                    previous += self._end("new connection")
                self._begin(segment)
                self._begin_directions(segment)
        self._last_us = max(self._last_us, time_us)
        side, peer = self._sides if source == self._first else self._sides[::-1]

        if flags & RST:
            if payload:
                events.append(Ignored(side.role, payload, time_us, offset, file, "in a reset"))
            # A reset that answers a SYN has no sequence number of its own.
            near = side.raw < 0 or not sequence or abs(side.distance(sequence)) <= WINDOW
            if near and not self.ended:
                self._closing_us = min(self._closing_us, time_us + self._settings.hold_us)
        else:
            if flags & SYN:
                sequence = (sequence + 1) & MASK
                self._handshake(side, peer, sequence, flags, acknowledgment)
                peer.release(events)
                peer.watch(time_us, self._settings)
            if length or payload or flags & FIN:
                self._place(side, peer, sequence, segment, events)
            side.release(events)
            side.limit(self._settings.held_limit, events)
            side.watch(time_us, self._settings)
            if flags & ACK:
                self._acknowledge(side, peer, acknowledgment, time_us)
            self._stop_waiting(time_us, events)
        self._check_end()
        self._deadline = min(side.deadline, peer.deadline, self._closing_us)
        self._announce(events, if_empty=self._known)
        return previous + events

    def _set_back(self, time_us: int) -> list[Event]:
        """Continues with a clock that was set back to a time.

        How long ago the last segment came is not known: a reset takes effect, and uncertain first bytes are certain.
        Holes and bytes that wait for the other side count from now on.
        """
        events: list[Event] = []
        if self._closing_us < NEVER:
            events = self._end("rst")
        self._last_us = time_us
        if self._ended_us is not None:
            self._ended_us = max(time_us - self._settings.patience_us - 1, 0)
        if self._start < 0:
            for side in sorted(self._directions, key=lambda direction: (direction.deadline, bool(direction.waits))):
                side.set_back(time_us, self._settings, events)
            self._stop_waiting(time_us, events)
            self._check_end()
            self._announce(events)
            self._deadline = min(side.deadline for side in self._directions)
        return events

    def _begin(self, segment: Segment) -> None:
        """Begins a new connection with its first segment."""
        self._first, self._second = segment.source, segment.target
        self.number = self.number + 1 if self._take_number is None else self._take_number()
        self._known = self._announced = False
        self._opened_us = self._last_us = segment.time_us
        self._closing_us = self._deadline = NEVER
        self._ended_us = None

    def _begin_directions(self, segment: Segment) -> None:
        self._start = -1
        client = _guess_client(segment, self._settings.server_ports)
        self._directions = (Direction("client"), Direction("server"))
        if client != self._first:
            self._directions[0].role, self._directions[1].role = "server", "client"

    def _open(self, start: int) -> Opened:
        """Handles a first segment that is only a SYN."""
        self._known = self._announced = True
        self._start, self._deadline = start, -NEVER
        return Opened(self.number, self._first, self._second, self._opened_us, True)

    def _is_another(self, segment: Segment) -> bool:
        """Whether the segment cannot belong to the current connection and begins another."""
        side, peer = self._sides if segment.source == self._first else self._sides[::-1]
        if segment.time_us > self.over_us:
            return bool(segment.flags & SYN or segment.length)
        if not segment.flags & SYN:
            if self.ended or segment.flags & RST or not segment.length:
                return False
            # The second of two segments that continue each other, but no earlier segment.
            return side.continues_stray and side.stray[0] == segment.sequence
        fits = side.in_place((segment.sequence + 1) & MASK)
        if fits < 0 and peer.start < 0:
            # So far only segments without payload, or with payload that may be early within the hold time.
            over = self.ended or self._closing_us < NEVER
            fits = int(not over and segment.time_us - self._opened_us <= self._settings.hold_us)
        if fits and segment.flags & ACK and peer.start >= 0:
            fits = int((segment.acknowledgment - peer.start) & MASK <= _FAST_OPEN)
        return not fits

    def _handshake(self, side: Direction, peer: Direction, start: int, flags: int, acknowledgment: int) -> None:
        """Handles a SYN, which has the sender's first sequence number; with ACK also the receiver's, and the server."""
        if not self._known and not self._announced:
            side.role, peer.role = ("server", "client") if flags & ACK else ("client", "server")
        self._known = True
        side.begin(start)
        if flags & ACK:
            peer.begin(acknowledgment)

    def _place(self, side: Direction, peer: Direction, sequence: int, segment: Segment, events: list[Event]) -> None:
        """Places payload and FIN at ``sequence``, the number of the first payload byte."""
        time_us, _, _, _, acknowledgment, flags, payload, offset, file, length = segment
        if side.raw < 0:
            if side.closed:
                if payload:
                    events.append(Ignored(side.role, payload, time_us, offset, file, "after the end"))
                return
            side.find_first(sequence)
            side.settle_us = time_us + self._settings.hold_us
        distance = side.distance(sequence)
        if abs(distance) > WINDOW:
            if payload:
                events.append(Ignored(side.role, payload, time_us, offset, file, "out of the window"))
            if length:
                side.stray = ((sequence + length) & MASK, max(side.next, 0))
            return
        if distance < 0 and side.settle_us is not None:
            side.shift(-distance)
            distance = 0
        at = side.next + distance
        if payload:
            if flags & ACK and _must_wait(side, peer, acknowledgment):
                side.wait(at, len(payload), acknowledgment, time_us)
            side.place(Piece(at, payload, time_us, offset, file), events)
        if length > len(payload):
            side.cut(at + len(payload), at + length, time_us)
        if flags & FIN:
            side.finish(at + max(length, len(payload)), time_us)

    def _acknowledge(self, side: Direction, peer: Direction, acknowledgment: int, time_us: int) -> None:
        """Handles the acknowledgment by ``side`` of all bytes of ``peer`` before a sequence number."""
        if peer.raw < 0:
            if side.start >= 0 and not peer.closed:  # the answer to a SYN whose SYN-ACK was not captured
                peer.begin(acknowledgment)
                peer.watch(time_us, self._settings)
            else:
                peer.hear(acknowledgment)
            return
        distance = peer.distance(acknowledgment)
        if 0 < distance <= WINDOW and peer.next + distance > peer.acked:
            peer.acked = peer.next + distance
            peer.watch(time_us, self._settings)

    def _pass_time(self, now_us: int) -> list[Event]:
        """Performs all actions that are due before ``now_us``, in the order of their times."""
        events: list[Event] = []
        while True:
            side = min(self._sides, key=lambda direction: (direction.deadline, bool(direction.waits)))
            if now_us <= min(side.deadline, self._closing_us):
                break
            if self._closing_us < side.deadline:
                self._announce(events)
                events += self._end("rst")
            else:
                side.pass_time(now_us, self._settings, events)
                self._stop_waiting(now_us, events)
                self._check_end()
        self._announce(events)
        return events

    def _stop_waiting(self, now_us: int, events: list[Event]) -> None:
        """Releases the bytes of a side that waited for bytes of the other side."""
        for side, peer in (self._sides, self._sides[::-1]):
            if side.waits and side.stop_waiting(peer, events):
                side.watch(now_us, self._settings)

    def _check_end(self) -> None:
        """Ends the connection if both directions ended by FIN."""
        if self._sides[0].closed and self._sides[1].closed and not self.ended:
            self._ended_us = self._last_us
            self._closing_us = NEVER

    def _end(self, reason: ClosedReason) -> list[Event]:
        """Closes the open directions, with gaps for the holes."""
        events: list[Event] = []
        last_us = self._last_us
        if self._closing_us < NEVER:
            reason = "rst"
            last_us = self._closing_us - self._settings.hold_us
            self._closing_us = NEVER
        if self._start >= 0:
            self._ended_us = self._last_us
            return [Closed("both", reason, last_us)]
        for side in sorted(self._sides, key=lambda direction: bool(direction.waits)):
            side.flush(reason, self._last_us, events)
        roles = [side.role for side in self._sides if not side.closed]
        if roles:
            events.append(Closed("both" if len(roles) == 2 else roles[0], reason, last_us))
        for side in self._sides:
            side.end()
        self._ended_us = self._last_us
        self._deadline = NEVER
        self._announce(events)
        return events

    def _announce(self, events: list[Event], *, if_empty: bool = False) -> None:
        """Puts Opened before the first events of the connection."""
        if self._announced or not (events or if_empty):
            return
        self._announced = True
        client, server = self._first, self._second
        if self._sides[0].role == "server":
            client, server = server, client
        events.insert(0, Opened(self.number, client, server, self._opened_us, self._known))

    def state(self) -> dict[str, Any]:
        """The current connection as JSON data for ``from_state``, without the settings."""
        sides = self._sides
        return {
            "version": STATE_VERSION,
            "number": self.number,
            "addresses": [self._first, self._second],
            "known": self._known,
            "announced": self._announced,
            "opened_us": self._opened_us,
            "last_us": self._last_us,
            "closing_us": self._closing_us,
            "ended_us": self._ended_us,
            "deadline": self._deadline,
            "directions": [side.state() for side in sides],
        }

    @classmethod
    def from_state(
        cls, state: dict[str, Any], settings: Settings = DEFAULT, take_number: Callable[[], int] | None = None
    ) -> Connection:
        """Continues from the result of ``state()``; by default connections are numbered from there, too.

        Raises:
            Misuse: the state has another version.
        """
        check_version(state)
        try:
            connection = cls(settings, take_number)
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
            connection._directions = (Direction.from_state(first), Direction.from_state(second))
        except (KeyError, TypeError, ValueError) as error:
            raise Misuse(f"the state of a connection is damaged ({error!r}); pass what state() returned") from error
        return connection


def _must_wait(side: Direction, peer: Direction, acknowledgment: int) -> bool:
    """Whether bytes of the server acknowledge bytes of the client that are not released: a request may be among them.

    Otherwise a late segment of the client, or an uncertain first byte, would put responses before their requests.
    """
    return side.role == "server" and peer.raw >= 0 and not peer.closed and 0 < peer.distance(acknowledgment) <= WINDOW


def _guess_client(segment: Segment, server_ports: frozenset[int]) -> str:
    """Guesses the client: from the handshake, known server ports, the higher port, or the first sender."""
    if segment.flags & SYN:
        return segment.target if segment.flags & ACK else segment.source
    source, target = _port(segment.source), _port(segment.target)
    if (source in server_ports) != (target in server_ports):
        return segment.target if source in server_ports else segment.source
    return segment.target if source < target else segment.source


def _port(address: str) -> int:
    port = whole_number(address.rpartition(":")[2])
    if port is None:
        raise Misuse(f"the address {quoted(address)} has no port; pass host:port, with brackets around an IPv6 host")
    return port


def check_version(state: dict[str, Any]) -> None:
    if state.get("version") != STATE_VERSION:
        raise Misuse(f"the state has version {state.get('version')!r}; pass one of version {STATE_VERSION}")
