"""Turns TCP connections into frames: recognises the protocol of each connection and follows its conversation.

``follow`` takes the segments of a capture in capture order and returns, per connection, frames, quarantined bytes and
gaps. Every payload byte is in exactly one of them, unless it was a duplicate or is ignored by the rules of TCP.
``Link`` counts all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from wirekit.capture import tcp
from wirekit.capture.files import NO_TIME_US
from wirekit.capture.links import Choice, Item, Link, Missing, connection_name
from wirekit.conversation import OTHER_SIDES, Conversation, Event, Frame, Quarantined, Skipped, recognise
from wirekit.conversation.joined import RECOGNISE_WITHIN, Prospects, recognise_begun, recognise_joined, recognise_piece
from wirekit.conversation.recognition import UNRECOGNISED, Recognised

SAME_SIDES = {"client": "client", "server": "server"}
FIRST_ATTEMPTS = 4
"""Recognition is tried after each of so many segments with payload, later when segments or bytes have doubled."""
BY_PORT = "name its protocol with --port"
BEGAN_BEFORE = f"; the connection began before the capture: {BY_PORT}"
"""The end of the reason why bytes of a connection without a handshake are not recognised."""


_NONE_WAITS: list[tcp.Data | tcp.Gap] = []
"""The waiting events of a connection without any; never changed."""


class Follower:
    """Follows one connection from its TCP events; its protocol is given by the link, or recognised from the bytes.

    Args:
        link: the connection.
        begun: whether the link's client is known to be the client of its protocol; if not, the handshake shows the
            client, and without one the bytes do.
    """

    __slots__ = (
        "_broken", "_conversation", "_heads", "_hopeless", "_next_count", "_next_size", "_prospects", "_sides",
        "_waiting", "link",
    )  # fmt: skip

    def __init__(self, link: Link, *, begun: bool = True) -> None:
        self.link = link
        self._sides: Mapping[str, str] = SAME_SIDES
        self._waiting: list[tcp.Data | tcp.Gap] = _NONE_WAITS
        self._broken: frozenset[str] = frozenset()  # the sides of the gaps that wait
        self._heads: dict[str, bytearray] = {}
        self._next_count = self._next_size = 0
        self._prospects: Prospects | None = None
        self._conversation: Conversation | None = None
        self._hopeless = ""
        if link.protocol and (begun or link.known_start):
            self._begin(link.protocol, started=link.known_start)

    def state(self) -> dict[str, Any]:
        """The state for ``from_state``, in values that ``wirekit.plain`` can store."""
        return {
            "swapped": self.swapped,
            "hopeless": self._hopeless,
            "waiting": [[isinstance(event, tcp.Gap), *event] for event in self._waiting],
            "conversation": None if self._conversation is None else self._conversation.state(),
        }

    @classmethod
    def from_state(cls, link: Link, state: Mapping[str, Any]) -> Follower:
        """Continues a link from a state that ``state`` returned.

        Raises:
            KeyError, TypeError, ValueError: ``state`` did not return this.
        """
        follower = cls(link, begun=state["conversation"] is not None)
        follower._hopeless = state["hopeless"]
        if state["swapped"]:
            follower._sides = OTHER_SIDES
        for is_gap, *values in state["waiting"]:
            event = tcp.Gap(*values) if is_gap else tcp.Data(*values)
            if event.direction not in SAME_SIDES:
                raise ValueError(f"bytes of {event.direction!r}")
            if isinstance(event, tcp.Gap):
                follower._await(event)
            else:
                follower._hold(event)
                follower._is_time(last=False)
        if follower._conversation is not None:
            follower._conversation.restore(state["conversation"])
        return follower

    @property
    def quiet(self) -> bool:
        """Whether the protocol is known and nothing is pending; see ``Conversation.quiet``."""
        return self._conversation is not None and self._sides is SAME_SIDES and self._conversation.quiet

    @property
    def swapped(self) -> bool:
        """Whether the client of the protocol is the server of the TCP connection."""
        return self._sides is not SAME_SIDES

    @property
    def unheard(self) -> list[str]:
        """The sides from which no bytes were received; none while the protocol is not known."""
        return [] if self._conversation is None else self._conversation.unheard

    def begins_whole(self, side: str, data: bytes) -> bool:
        """Whether a whole frame may begin with the first bytes of a side, without a header before it."""
        return self._conversation is not None and self._conversation.begins_whole(side, data)

    def foresees(self, event: tcp.Data) -> str:
        """The protocol that ``take`` would recognise with an event, "" if none; uses the bytes only for recognition."""
        link = self.link
        sides = link.client, link.server
        if self._hopeless:
            return ""
        self._hold(event)
        return link.protocol if self._decided(last=False) and (link.client, link.server) == sides else ""

    @property
    def waiting(self) -> list[Frame]:
        """The requests that wait for their response; none while the protocol is not known."""
        return [] if self._conversation is None else self._conversation.requests

    @property
    def one_sided(self) -> bool:
        """Whether no request waits, because only one side was captured so far; see ``Requests``."""
        return self._conversation is not None and self._conversation.dialogue.requests.one_sided

    @one_sided.setter
    def one_sided(self, one_sided: bool) -> None:
        assert self._conversation is not None
        self._conversation.dialogue.requests.one_sided = one_sided

    @property
    def resumable(self) -> bool:
        """Whether the protocol is known, and columns may read its frames from the first one on."""
        return self._conversation is not None and self._conversation.dialogue.resumable

    @property
    def frame_limit(self) -> int | None:
        """The largest frame in bytes that the two sides agreed on; None without an agreement."""
        return None if self._conversation is None else self._conversation.dialogue.frame_limit

    def skip(self, side: str, size: int) -> None:
        """Skips ``size`` bytes of a side: whole frames that columns have read."""
        assert self._conversation is not None
        self._conversation.skip(side, size)
        self.link.count(side, "captured", size)
        self.link.count(side, "frames", size)

    def recall(self, event: tcp.Data) -> list[Item]:
        """Returns the items of a whole frame that was skipped earlier; no later frame may have been received since."""
        assert self._conversation is not None
        self.link.count(event.direction, "frames", -len(event.data))
        events = self._conversation.recall(
            event.direction, event.data, offset=event.stream_offset, time_us=_time_us(event)
        )
        return self._count(events)

    def skipped(self, frames: Skipped) -> None:
        """Passes facts about skipped frames to the dialogue."""
        assert self._conversation is not None
        self._conversation.dialogue.skipped(frames)

    def take(self, event: tcp.Event) -> list[Item]:
        """Takes a TCP event, and returns the items that it completes."""
        if isinstance(event, tcp.Data):
            self._account(event, "captured", len(event.data))
            return self._data(event)
        if isinstance(event, tcp.Gap):
            self._account(event, "missing", event.length)
            return self._gap(event)
        if isinstance(event, tcp.Duplicate):
            self._account(event, "captured", event.length)
            self._account(event, "duplicate", event.length)
        elif isinstance(event, tcp.Ignored):
            self._account(event, "captured", len(event.data))
            self._account(event, "ignored", len(event.data))
        elif isinstance(event, tcp.Closed):
            return self._closed(event)
        return []

    def forget(self) -> None:
        """Drops the state that later bytes would need: after the end of a connection, late bytes are only counted."""
        self._conversation = None
        if self.link.dialogue is not None:
            self.link.dialogue.requests.clear()

    def _account(self, event: tcp.Data | tcp.Gap | tcp.Duplicate | tcp.Ignored, fate: str, size: int) -> None:
        """Counts payload bytes for their sender; TCP and the protocol may disagree about who is the client."""
        self.link.count(self._sides[event.direction], fate, size)

    def _data(self, event: tcp.Data) -> list[Item]:
        if self._conversation is not None:
            return self._feed(event)
        if not self._hopeless:
            self._hold(event)
            return self._recognise(last=False)
        late = recognise_piece(event.direction, event.data)
        if late is not None and not late.swapped:
            self._begin(late.protocol, started=self.link.known_start)
            self._reach()
        return self._feed(event)

    def _reach(self) -> None:
        """Sets the offset of both sides after bytes that were quarantined before the protocol was known."""
        assert self._conversation is not None
        for side in SAME_SIDES:
            self._conversation.reach(side, sum(self.link.bytes[side, fate] for fate in ("quarantined", "missing")))

    def _hold(self, event: tcp.Data) -> None:
        self._await(event)
        head = self._heads.get(event.direction)
        if head is None:
            self._heads[event.direction] = bytearray(event.data)
        elif len(head) < RECOGNISE_WITHIN:
            head += event.data

    def _gap(self, event: tcp.Gap) -> list[Item]:
        if self._conversation is None and not self._hopeless:
            begun, piece = self._recognised_before(event.direction)
            self._await(event)
            recognised = begun or piece
            if recognised is None:
                return []
            self._settle(recognised, started=begun is not None)
            return self._waited()
        return self._feed(event)

    def _recognised_before(self, side: str) -> tuple[Recognised | None, Recognised | None]:
        """The protocol by the bytes of a side before a gap: by those from the start, and else by the last piece."""
        first = self.link.known_start and side not in self._broken
        begun = recognise_begun(*map(self._unbroken, SAME_SIDES)) if first else None
        last = self._waiting[-1] if self._waiting else None
        if begun is not None or not isinstance(last, tcp.Data) or last.direction != side:
            return begun, None
        piece = recognise_piece(side, last.data)
        return None, piece if piece is not None and self.link.protocol in ("", piece.protocol) else None

    def _await(self, event: tcp.Data | tcp.Gap) -> None:
        if self._waiting is _NONE_WAITS:
            self._waiting = []
        if isinstance(event, tcp.Gap):
            self._broken |= {event.direction}
        self._waiting.append(event)

    def _recognise(self, *, last: bool) -> list[Item]:
        return self._waited() if self._decided(last=last) else []

    def _waited(self) -> list[Item]:
        """The items of the events that waited for the protocol."""
        waiting, self._waiting, self._heads, self._prospects = self._waiting, _NONE_WAITS, {}, None
        items: list[Item] = []
        for event in waiting:
            items += self._feed(event) if isinstance(event, tcp.Gap) else self._data(event)
        return items

    def _decided(self, *, last: bool) -> bool:
        """Whether the bytes so far show the protocol, or that none is known."""
        if not self._is_time(last=last):
            return False
        known_start, over = self.link.known_start, last or self._size >= RECOGNISE_WITHIN
        heads = bytes(self._heads.get("client", b"")), bytes(self._heads.get("server", b""))
        recognised = self._recognised_from_start(heads, over) if known_start else None
        from_start = known_start and not self._broken
        if recognised is None or not (recognised.protocol or from_start):
            inside = recognise_joined(*heads, settled=over, names=(self.link.protocol,) if self.link.protocol else ())
            recognised = inside if recognised is None or not inside.swapped else recognised
            known_start = known_start and recognised is not inside
        if recognised.protocol:
            self._settle(recognised, started=known_start)
        elif over and self.link.protocol:
            self._begin(self.link.protocol, started=known_start)
        elif (recognised.certain and from_start) or over:
            self._hopeless = recognised.reason + self._hint(recognised)
        else:
            return False
        return True

    def _settle(self, recognised: Recognised, *, started: bool) -> None:
        if recognised.swapped:
            self._swap()
        self._begin(recognised.protocol, started=started)

    def _recognised_from_start(self, heads: tuple[bytes, bytes], over: bool) -> Recognised:
        """The protocol of a connection with a handshake by its first frames; ``over``: an incomplete one suffices."""
        recognised = recognise(*heads, sides_known=True, rivals=False)
        if recognised.protocol or not (over or recognised.certain):
            return recognised
        return recognise_begun(*map(self._unbroken, SAME_SIDES)) or recognised

    def _unbroken(self, side: str) -> bytes:
        """The bytes of a side before the first gap, of those that count for recognition."""
        pieces = []
        for event in self._waiting:
            if event.direction == side:
                if isinstance(event, tcp.Gap):
                    break
                pieces.append(event.data)
        return b"".join(pieces)[: len(self._heads.get(side, b""))]

    @property
    def _size(self) -> int:
        """Number of bytes available for recognition."""
        return sum(map(len, self._heads.values()))

    def _is_time(self, *, last: bool) -> bool:
        """Whether enough new bytes arrived to try recognition again."""
        count, size = len(self._waiting), self._size
        if last or size >= RECOGNISE_WITHIN:
            return True
        if count > FIRST_ATTEMPTS and count < self._next_count and size < self._next_size:
            return False
        self._next_count, self._next_size = 2 * count, 2 * size
        if self.link.known_start:
            return True
        if self._prospects is None:
            self._prospects = Prospects()
        return self._prospects.grown(self._heads)

    def _hint(self, recognised: Recognised) -> str:
        """The reason why the bytes were not recognised, with the option to use instead."""
        if any(isinstance(event, tcp.Gap) and event.reason == "snap length" for event in self._waiting):
            return f"; the snap length cut it: {BY_PORT}"
        return "" if self.link.known_start or recognised.reason != UNRECOGNISED else BEGAN_BEFORE

    def _swap(self) -> None:
        other = OTHER_SIDES
        link = self.link
        link.client, link.server = link.server, link.client
        link.name = connection_name(link.client, link.server, link.ordinal)
        counts, link._bytes = link._bytes or {}, None
        for (side, kind), size in counts.items():
            link.count(other[side], kind, size)
        self._sides = other

    def _begin(self, protocol: str, *, started: bool) -> None:
        self.link.protocol = protocol
        self._conversation = Conversation(protocol, started=started, in_time=True)
        self.link.dialogue = self._conversation.dialogue

    def _feed(self, event: tcp.Data | tcp.Gap) -> list[Item]:
        side = self._sides[event.direction]
        if isinstance(event, tcp.Gap):
            missing = Missing(side, event.stream_offset, event.length, _time_us(event), event.reason)
            if self._conversation is None:
                return [missing]
            self._conversation.reach(side, event.stream_offset)
            return [*self._count(self._conversation.gap(side, event.length, event.reason)), missing]
        if self._conversation is None:
            return self._count([_quarantined(event, self._hopeless)])
        self._conversation.reach(side, event.stream_offset)
        events = self._conversation.receive(side, event.data, time_us=_time_us(event))
        return self._count(events)

    def _closed(self, event: tcp.Closed) -> list[Item]:
        self.link.closed_us = event.time_us
        self.link.closed = event.reason
        items = self._recognise(last=True) if self._waiting else []
        if self._conversation is not None:
            side = None if event.direction == "both" else self._sides[event.direction]
            items += self._count(self._conversation.close(side))
        return items

    def _count(self, events: Iterable[Event]) -> list[Item]:
        counted: list[Item] = []
        for item in events:
            if not isinstance(item, (Frame, Quarantined)):
                continue
            undecoded = isinstance(item, Quarantined) or item.decoded.error is not None or item.wrong is not None
            self.link.count(item.side, "quarantined" if undecoded else "frames", len(item.data))
            counted.append(item)
        return counted


class Flow:
    """The connections between two addresses, one after the other, from the segments between these addresses.

    Args:
        choice: how protocols are chosen.
        settings: of the TCP reassembly.

    Attributes:
        connection: the TCP connection; None before the first segment, and after its last possible segment.
        link, follower: those of the latest connection; None before its first item and after its end was reported.
        count: number of connections so far.
    """

    __slots__ = ("_choice", "_settings", "connection", "count", "follower", "link")

    def __init__(self, choice: Choice, settings: tcp.Settings) -> None:
        self._choice, self._settings = choice, settings
        self.connection: tcp.Connection | None = None
        self.link: Link | None = None
        self.follower: Follower | None = None
        self.count = 0

    def feed(self, segment: tcp.Segment) -> Iterator[tuple[Link, Item | None]]:
        """Takes a segment, and returns the items that it completes, each with its connection; None ends one."""
        if self.connection is None:
            self.connection = tcp.Connection(self._settings)
        events = self.connection.feed(segment)
        return self._items(events) if events else iter(())

    def finish(self) -> Iterator[tuple[Link, Item | None]]:
        """Returns the last items of an open connection at the end of the capture."""
        if self.connection is not None:
            yield from self._items(self.connection.finish())
        yield from self._end()

    def pass_time(self, clock_us: int, idle_us: int) -> Iterator[tuple[Link, Item | None]]:
        """Returns the last items of a connection that is over when the capture reaches a time.

        A connection that has ended waits for segments that are captured late.

        Args:
            clock_us: a time, microseconds since the epoch, before which no more segments come.
            idle_us: a connection that was silent for longer is also over; at least ``Settings.idle_us``.
        """
        connection = self.connection
        if connection is None:
            return
        yield from self._items(connection.settle_reset(clock_us))
        if clock_us > connection.last_us + idle_us:
            yield from self._items(connection.expire(clock_us))
        if clock_us > connection.over_us:
            yield from self._end()
            if connection.is_idle(clock_us):
                self.connection = None

    def due_us(self, idle_us: int) -> int | None:
        """The time after which ``pass_time`` has work to do without a segment, None for never."""
        connection = self.connection
        if connection is None:
            return None
        if not connection.ended:
            return min(connection.closing_us, connection.last_us + idle_us)
        return connection.over_us if self.link is not None else connection.last_us + self._settings.idle_us

    def _end(self) -> Iterator[tuple[Link, Item | None]]:
        if self.link is not None:
            yield self.link, None
        self.link = self.follower = None

    def _items(self, events: Iterable[tcp.Event]) -> Iterator[tuple[Link, Item | None]]:
        for event in events:
            if isinstance(event, tcp.Opened):
                yield from self._end()
                self.link = _link(event, self.count, self._choice)
                self.count += 1
                continue
            link = self.link
            if link is None:
                continue
            if self.follower is None:
                if isinstance(event, tcp.Closed):
                    link.closed_us, link.closed = event.time_us, event.reason
                    continue
                self.follower = Follower(link, begun=False)
            for item in self.follower.take(event):
                yield link, item


def _link(event: tcp.Opened, ordinal: int, choice: Choice) -> Link:
    """A new connection, and its number among those between its addresses."""
    _, client, server, time_us, known_start = event
    name, protocol = connection_name(client, server, ordinal), choice.of(client, server)
    return Link(name, client, server, time_us, known_start, time_us, protocol)


def _quarantined(event: tcp.Data, reason: str) -> Quarantined:
    return Quarantined(event.direction, event.stream_offset, event.data, _time_us(event), reason)


def _time_us(event: tcp.Data | tcp.Gap) -> int | None:
    return None if event.time_us == NO_TIME_US else event.time_us


def follow(
    segments: Iterable[tcp.Segment], choice: Choice | None = None, settings: tcp.Settings | None = None
) -> Iterator[tuple[Link, Item | None]]:
    """The items of a capture, each with its connection; after the last item, every connection with None.

    Args:
        segments: in capture order.
        choice: how protocols are chosen; by default from the bytes.
        settings: of the TCP reassembly.
    """
    choice = choice or Choice()
    settings = settings or tcp.Settings(server_ports=choice.server_ports)
    connections = tcp.Connections(settings)
    links: dict[int, Link] = {}
    followers: dict[int, Follower] = {}  # of connections with payload: most connections of a port scan have none
    counts: Counter[tuple[str, str]] = Counter()

    for number, event in chain(chain.from_iterable(map(connections.feed, segments)), connections.closing()):
        if isinstance(event, tcp.Opened):
            pair = (min(event.client, event.server), max(event.client, event.server))
            links[number] = _link(event, counts[pair], choice)
            counts[pair] += 1
            continue
        follower = followers.get(number)
        if follower is None:
            if isinstance(event, tcp.Closed):
                links[number].closed_us, links[number].closed = event.time_us, event.reason
                continue
            follower = followers[number] = Follower(links[number], begun=False)
        for item in follower.take(event):
            yield follower.link, item
        if isinstance(event, tcp.Closed) and event.direction == "both":
            follower.forget()
    for number in list(links):
        yield links.pop(number), None
