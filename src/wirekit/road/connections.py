"""The connections of a capture from window to window.

Plain connections are followed by ``streams``, and objects follow the others: within a window, with what was known at
its begin. At its end they give a connection back when nothing of it is pending. What is known of a connection's bytes
has one form for both, the state of ``wirekit.capture.tcp.Connection``, which is plain JSON data.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from wirekit.capture.follow import Choice, Follower, Item, Link
from wirekit.capture.follow import Flow as AnyFlow
from wirekit.capture.tcp import Closed, Connection, Data, Duplicate, Event, Ignored, Opened, Segment, Settings, Side
from wirekit.capture.tcp.connection import STATE_VERSION
from wirekit.capture.tcp.direction import NEVER, NOTHING
from wirekit.conversation.recognition import recognise_joined
from wirekit.pipeline.carried import pair_of
from wirekit.pipeline.ids import connection_id
from wirekit.road.index import Begun, Carried
from wirekit.road.joined import Sizes, first_attempts
from wirekit.road.packets import Endpoints, Packets
from wirekit.road.streams import REASONS, STATE, Streams, word
from wirekit.road.windows import Window
from wirekit.tables.columns import CONNECTIONS, FATES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wirekit.pipeline.calls import Calls
    from wirekit.pipeline.flows import Writer
    from wirekit.road.assembly import Followed as FollowedFrames

MOST_BEGINNING = 64
"""Pieces of a connection in a window that objects get before they get all of them."""
MOST_CARRIED = 64
CARRIED_BYTES = 1 << 16
"""Frames of a connection that are carried to the next window, and their bytes."""
SIDES: tuple[Side, Side] = ("client", "server")
_NO_TIME = 1 << 62
"""Stands for a time that tables do not show."""
Followed = tuple[Link, Item | None]
"""An item of a connection, None for its end."""


@dataclass(slots=True)
class Flow:
    """The state of the connections between two endpoints at the end of a window.

    Attributes:
        client, server: endpoints of the latest connection.
        known, opened: whether it has a handshake, and when it began.
        state: its words as ``Streams.state`` has them; None while objects follow it.
        gaps: of each side, those that ``Connection`` remembers.
        connection: while objects follow it.
        link: None while nothing is to be told of it, and when all was told.
        follower: once it carries anything.
        count: connections so far.
        told: whether others have told of the latest connection.
        carried: frames that nobody has told of, and that come first in the next window.
    """

    client: int
    server: int
    known: bool = False
    opened: int = 0
    state: NDArray[Any] | None = None
    gaps: tuple[Any, Any] = ((), ())
    connection: Connection | None = None
    link: Link | None = None
    follower: Follower | None = None
    count: int = 0
    told: bool = False
    carried: tuple[Carried, ...] = ()


class Connections:
    """The connections of a capture.

    Attributes:
        late: of connections that others have told of, by id, the bytes that came again or too late: by side and fate.

    Args:
        name: what the capture is called.
        endpoints: what the numbers of endpoints stand for.
        choice: how protocols are chosen.
        settings: of the TCP reassembly.
        files: the number of each file of the capture, for its segments.
        earlier: gives the flow between two addresses, the lower one first, as earlier bundles have left it, if they
            have.
    """

    def __init__(
        self,
        name: str,
        endpoints: Endpoints,
        choice: Choice,
        settings: Settings,
        files: list[int],
        earlier: Callable[[tuple[str, str]], AnyFlow | None] | None = None,
    ) -> None:
        self.late: defaultdict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
        self._name, self._endpoints = name, endpoints
        self._choice = choice
        self._settings = settings
        self._files = files
        self._earlier = earlier
        self._places: dict[int, tuple[int, int]] = {}  # of flows of a window: where what nobody has taken begins
        self._flows: dict[tuple[int, int], Flow] = {}
        self._here: dict[int, Flow] = {}  # of flows of a window
        self._ending: dict[tuple[int, int], int] = {}  # when a connection ended of which not all was told
        self._over: deque[tuple[int, tuple[int, int]]] = deque()  # when a flow can be forgotten that has ended
        self._counts: dict[tuple[int, int], int] = {}  # connections of forgotten flows
        self._attempts: dict[int, Sizes] = {}  # of flows of a window, as ``first_attempts`` has them

    def _restore(self, one: int, other: int) -> None:
        """Goes on with a flow that an earlier bundle has left, if one has."""
        pair = pair_of(self._endpoints.text(one), self._endpoints.text(other))
        flow = self._earlier(pair) if self._earlier is not None else None
        if flow is None:
            return
        known = self._flows[one, other] = Flow(one, other, link=flow.link, follower=flow.follower, count=flow.count)
        connection = known.connection = flow.connection
        if connection is not None and connection.settled:
            self._give_back(known, connection)
            self._note_end((one, other), known)

    def flows(self) -> Iterator[tuple[tuple[str, str], AnyFlow]]:
        """The flows as the next bundle goes on with them, each with its addresses, the lower one first."""
        for (one, other), known in self._flows.items():
            flow = AnyFlow(self._choice, self._settings)
            flow.link, flow.follower, flow.count = known.link, known.follower, known.count
            if known.connection is not None or known.state is not None:
                flow.connection = known.connection or self._connection(known)
            yield pair_of(self._endpoints.text(one), self._endpoints.text(other)), flow
        for (one, other), count in self._counts.items():
            flow = AnyFlow(self._choice, self._settings)
            flow.count = count
            yield pair_of(self._endpoints.text(one), self._endpoints.text(other)), flow

    def recalled(self) -> Iterator[Followed]:
        """Gives objects all frames that were carried to a next window."""
        for known in self._flows.values():
            yield from self._recalled(known)

    def take_back(self, row: Mapping[str, Any], writer: Writer) -> bool:
        """Takes a row of ``connections`` to which something may still come, with times as numbers.

        Returns:
            False where nothing can come to it any more, as another connection has begun.
        """
        ends = [_address(row, side) for side in SIDES]
        one, other = sorted(map(self._endpoints.number, ends))
        known = self._flows[one, other]
        if not known.told or row["ordinal"] != known.count - 1:
            return False
        client, server = ends
        name = f"{client}>{server}#{row['ordinal']}"
        opened, closed = (_NO_TIME if row[each] is None else row[each] for each in ("opened", "closed"))
        link = Link(name, client, server, opened, row["known_start"], closed, row["protocol"], row["reason"])
        for side in SIDES:
            for fate in FATES:
                if row[f"{side}_{fate}"]:
                    link.count(side, fate, row[f"{side}_{fate}"])
        facts = {column: row[column] for column in CONNECTIONS.declared if row[column] is not None}
        writer.calls_of(self._name, link).add(row["calls"], row["errors"], facts, {})
        writer.summary.file(self._name).uncount(link)
        known.link, known.told = link, False
        return True

    def resume(self, streams: Streams) -> None:
        """Fills in what is known of flows."""
        self._here = {}
        if not self._flows and not self._counts and self._earlier is None:
            return
        for flow, ends in enumerate(streams.pairs()):
            if ends in self._counts:
                streams.odd[flow] = True
                continue
            if ends not in self._flows:
                self._restore(*ends)
            known = self._flows.get(ends)
            if known is None:
                continue
            if known.state is None:
                streams.odd[flow] = True
                continue
            streams.resumed[flow] = True
            streams.client[flow], streams.server[flow] = known.client, known.server
            streams.known[flow], streams.opened[flow] = known.known, known.opened
            streams.state[flow] = known.state

    def odd(self, window: Window, streams: Streams, flow: int) -> Iterator[Followed]:
        """A flow of a window, followed by objects."""
        packets = window.packets
        known = self._flow(streams, flow)
        self._ending.pop(streams.between(flow), None)
        if known.connection is None:
            known.connection = self._connection(known)
            known.state = None
        connection = known.connection
        for row in streams.order[streams.begins[flow] : streams.begins[flow + 1]].tolist():
            yield from self._told(known, connection.feed(_segment(packets, row, self._files)))
        if window.last:
            yield from self._finished(known, connection)
        elif connection.settled:
            self._give_back(known, connection)
            self._note_end(streams.between(flow), known)

    def begin(
        self, streams: Streams, flow: int, protocol: str = "", *, particular: bool = False
    ) -> tuple[list[Followed], Begun | None]:
        """The first frames of a plain connection in a window, up to a point at which nothing is pending, if any.

        ``followed`` goes on from there, or from where ``skip`` says.

        Args:
            streams, flow: the connection.
            protocol: what it is, where it begins in this window and columns may take its first frame; by default that
                is found from its bytes, and objects may take some.
            particular: whether objects have to take the first frames of both sides.
        """
        known = self._flow(streams, flow)
        if known.link is None and known.count > 0:
            return [], None
        self._link_of(streams, flow, known)
        places, items, final = list(map(int, streams.starts[flow])), list[Followed](), bool(streams.final[flow])
        if protocol and known.follower is None and known.link is not None:
            known.link.protocol = protocol
            known.follower = Follower(known.link)
            if known.follower.resumable:
                self._places[flow] = places[0], places[1]
                return items, Begun(protocol, known.link.ordinal, (places[0], places[1]), final=final)
        if known.follower is None and not particular:
            self._foresee(streams, flow, known)
        at_once = known.follower is not None and known.follower.quiet and not known.follower.unheard
        for count, (_, event) in enumerate(() if at_once else _events(streams, flow)):
            if known.follower is not None and _may_leave(streams, flow, known.follower, event, particular=particular):
                break
            if not isinstance(event, Data) or count >= MOST_BEGINNING:
                self._places[flow] = places[0], places[1]
                return items, None
            items += self._told(known, [event])
            places[SIDES.index(event.direction)] += len(event.data)
        self._places[flow] = begun = places[0], places[1]
        link, follower = known.link, known.follower
        if link is None or follower is None or not follower.quiet:
            return items, None
        unheard = tuple(SIDES.index(side) for side in follower.unheard)
        if unheard and particular:
            return items, None
        most = follower.frame_limit
        return items, Begun(
            link.protocol, link.ordinal, begun, most=most, final=final, carried=known.carried, unheard=unheard
        )

    def look_ahead(self, streams: Streams, flows: NDArray[Any]) -> None:
        """Finds out, before ``begin``, when the protocols of connections that were joined in the middle may be found.

        Args:
            streams, flows: those of which nothing is known.
        """
        self._attempts = first_attempts(streams, flows)

    def _foresee(self, streams: Streams, flow: int, known: Flow) -> None:
        """Finds the protocol of a connection in a window from its first bytes there, as a follower would."""
        if known.link is None:
            return
        sizes = None if known.link.protocol else self._attempts.get(flow)
        if sizes is not None:
            places = zip(streams.starts[flow].tolist(), sizes, strict=True)
            heads = [streams.stream[start : start + size].tobytes() for start, size in places]
            found = recognise_joined(*heads, settled=False)
            if found.protocol:
                if not found.swapped:
                    known.link.protocol = found.protocol
                    known.follower = Follower(known.link)
                return
        scout = Follower(replace(known.link))
        protocol = known.link.protocol
        for _, event in _events(streams, flow) if not protocol else ():
            if not isinstance(event, Data):
                return
            protocol = scout.foresees(event)
            if scout.link.protocol:
                break
        if protocol:
            known.link.protocol = protocol
            known.follower = Follower(known.link)

    def skip(self, flow: int, streams: Streams, calls: Calls, frames: FollowedFrames) -> Iterator[Followed]:
        """Says which frames of a begun connection others have told of.

        Those that wait are carried to the next window; if they are many or large, objects get them.
        """
        known = self._flow(streams, flow)
        follower = known.follower
        assert follower is not None
        calls.add(frames.calls, frames.errors, frames.facts, frames.skipped.names)
        follower.skipped(frames.skipped)
        for side, end in enumerate(frames.places):
            follower.skip(SIDES[side], end - self._places[flow][side])
        self._places[flow] = frames.places
        known.carried = tuple(frames.waiting)
        if len(known.carried) > MOST_CARRIED or sum(len(each.data) for each in known.carried) > CARRIED_BYTES:
            yield from self._recalled(known)

    def _recalled(self, known: Flow) -> Iterator[Followed]:
        """Gives objects the frames of a connection that were carried, before anything else."""
        carried, known.carried = known.carried, ()
        for side, position, data, time_us in carried:
            assert known.link is not None
            assert known.follower is not None
            for item in known.follower.recall(Data(SIDES[side], data, position, time_us, 0, 0)):
                yield known.link, item

    def link(self, streams: Streams, flow: int) -> Link:
        """A connection that is begun."""
        link = self._flow(streams, flow).link
        assert link is not None
        return link

    def _link_of(self, streams: Streams, flow: int, known: Flow) -> None:
        """Makes the link of a connection of which nothing was told so far."""
        size = streams.stops[flow] - streams.starts[flow]
        if known.link is None and (streams.known[flow] or size.any() or streams.final[flow]):
            known.opened, known.known = int(streams.opened[flow]), bool(streams.known[flow])
            known.client, known.server = int(streams.client[flow]), int(streams.server[flow])
            known.link = self._link(known)

    def followed(self, window: Window, streams: Streams, flow: int) -> Iterator[Followed]:
        """A plain connection of a window, of which a follower gets the bytes that nobody has taken yet."""
        known = self._flow(streams, flow)
        told = known.link is None and known.count > 0  # all of it, in an earlier window
        if not told:
            self._link_of(streams, flow, known)
        for _, event in _events(streams, flow, self._places.pop(flow, None)):
            yield from self._told(known, [event])
        again = streams.duplicates[flow].tolist()
        yield from self._told(
            known, [Duplicate(side, size, 0, 0) for side, size in zip(SIDES, again, strict=True) if size]
        )
        self._keep(window, streams, flow, known)
        if streams.final[flow] and not told:
            state = streams.state[flow]
            left = [side for number, side in enumerate(SIDES) if state[word(number, "ended")] < 0]
            reason, time_us = REASONS[streams.reason[flow]], int(streams.closed[flow])
            if left:
                yield from self._told(known, [Closed("both" if len(left) == 2 else left[0], reason, time_us)])
            if window.last and known.link is not None:
                yield known.link, None

    def whole(
        self, window: Window, streams: Streams, flow: int, link: Link, items: Iterable[Item]
    ) -> Iterator[Followed]:
        """A connection of which all bytes are in a window, with what it carries."""
        known = self._flow(streams, flow)
        known.link, known.count = link, 1
        yield from ((link, item) for item in items)
        self._keep(window, streams, flow, known)
        if window.last:
            yield link, None

    def assembled(self, window: Window, streams: Streams, flow: int) -> None:
        """Takes note of a connection of which all bytes are in a window, and of which others tell."""
        if not window.last:
            known = self._flow(streams, flow)
            known.count, known.told = 1, True
            self._keep(window, streams, flow, known)

    def ended(self, clock: int) -> Iterator[Followed]:
        """The ends of connections to which nothing can come any more at a time.

        A flow that was idle since its connection ended is forgotten: what comes later is another connection.
        """
        for ends, time_us in list(self._ending.items()):
            if clock > time_us + self._settings.patience_us:
                del self._ending[ends]
                known = self._flows[ends]
                if known.link is not None and known.state is not None:
                    yield known.link, None
                    known.link = known.follower = None
        while self._over and clock > self._over[0][0]:
            _, ends = self._over.popleft()
            over = self._flows.get(ends)
            if over is None or over.state is None or over.link is not None or over.state[STATE.index("over")] < 0:
                continue
            due = int(over.state[STATE.index("last")]) + self._settings.idle_us
            if clock > due:
                self._counts[ends] = self._flows.pop(ends).count
            else:
                self._over.append((due, ends))

    def rest(self, streams: Streams) -> Iterator[Followed]:
        """The ends of the flows that the last window has no packets of."""
        seen = set(streams.pairs())
        for ends, known in self._flows.items():
            if ends in seen or (known.link is None and known.count and known.connection is None):
                continue
            yield from self._finished(known, known.connection or self._connection(known))

    def _finished(self, known: Flow, connection: Connection) -> Iterator[Followed]:
        yield from self._told(known, connection.finish())
        if known.link is not None:
            yield known.link, None

    def _flow(self, streams: Streams, flow: int) -> Flow:
        known = self._here.get(flow)
        if known is None:
            ends = streams.between(flow)
            if ends not in self._flows:
                client, server = int(streams.client[flow]), int(streams.server[flow])
                self._flows[ends] = Flow(client, server, count=self._counts.pop(ends, 0))
            known = self._here[flow] = self._flows[ends]
        return known

    def _keep(self, window: Window, streams: Streams, flow: int, known: Flow) -> None:
        """Takes note of the state of a plain connection."""
        if window.last:
            return
        ends, state = streams.between(flow), streams.state[flow].copy()
        known.client, known.server = int(streams.client[flow]), int(streams.server[flow])
        known.known, known.opened = bool(streams.known[flow]), int(streams.opened[flow])
        if streams.final[flow]:
            last = int(state[STATE.index("last")])
            if state[STATE.index("over")] < 0:  # by a reset
                state[STATE.index("over")] = last
                state[STATE.index("reset")] = -1
                for side in range(2):
                    state[word(side, "ended")] = last
        known.state = state
        self._note_end(ends, known)

    def _note_end(self, ends: tuple[int, int], known: Flow) -> None:
        """Takes note of when the latest connection of a flow ended, if it has."""
        if known.state is None or known.state[STATE.index("over")] < 0:
            return
        if known.link is not None:
            self._ending[ends] = int(known.state[STATE.index("over")])
        self._over.append((int(known.state[STATE.index("last")]) + self._settings.idle_us, ends))

    def _link(self, known: Flow) -> Link:
        client, server = self._texts(known)
        name, protocol = f"{client}>{server}#{known.count}", self._choice.of(client, server)
        known.count += 1
        return Link(name, client, server, known.opened, known.known, known.opened, protocol)

    def _texts(self, known: Flow) -> list[str]:
        """Client and server of the latest connection."""
        return [self._endpoints.text(number) for number in (known.client, known.server)]

    def _told(self, known: Flow, events: Iterable[Event]) -> Iterator[Followed]:
        """Follows the latest connection of a flow through events."""
        for event in events:
            if known.carried:
                yield from self._recalled(known)
            if isinstance(event, Opened):
                if known.link is not None:
                    yield known.link, None
                known.told = False
                _, client, server, time_us, known_start = event
                name, protocol = f"{client}>{server}#{known.count}", self._choice.of(client, server)
                known.link = Link(name, client, server, time_us, known_start, time_us, protocol)
                known.follower = None
                known.count += 1
                continue
            link = known.link
            if link is None:
                if known.told and isinstance(event, Duplicate | Ignored):
                    self._late(known, event)
                continue
            if known.follower is None:
                if isinstance(event, Closed):
                    link.closed_us, link.closed = event.time_us, event.reason
                    continue
                known.follower = Follower(link)
            for item in known.follower.take(event):
                yield link, item

    def _late(self, known: Flow, event: Duplicate | Ignored) -> None:
        client, server = self._texts(known)
        late = self.late[connection_id(self._name, client, server, known.count - 1)]
        size = event.length if isinstance(event, Duplicate) else len(event.data)
        late[event.direction, "captured"] += size
        late[event.direction, "duplicate" if isinstance(event, Duplicate) else "ignored"] += size

    def _connection(self, known: Flow) -> Connection:
        """A flow's latest connection as an object."""
        if known.state is None:
            return Connection(self._settings)
        return Connection.from_state(_as_objects(known, self._texts(known), self._settings), self._settings)

    def _give_back(self, known: Flow, connection: Connection) -> None:
        """Makes words of a connection of which nothing is pending, unless they cannot say all of it."""
        plain = connection.state()
        first, second = plain["directions"]
        client, server = (first, second) if first["role"] == "client" else (second, first)
        both = client["raw"] >= 0 and server["raw"] >= 0
        if (plain["known"] and not both) or plain["last_us"] < 0:
            return
        ended = -1 if plain["ended_us"] is None else plain["ended_us"]
        words = [plain["last_us"], -1, ended, int(first is server)]
        for side in (client, server):
            closed = side["closed"] or ended >= 0
            words += [
                side["raw"] >= 0, side["start"], max(side["raw"], 0), side["next"], max(side["acked"], 0),
                side["unseen"], side["unseen_size"], max(side["fin_us"], 0) if closed else -1,
                max((end for _, end in side["gaps"]), default=0),
            ]  # fmt: skip
        numbers = [self._endpoints.number(address) for address in plain["addresses"]]
        known.client, known.server = numbers if first is client else numbers[::-1]
        known.known, known.opened = plain["known"], plain["opened_us"]
        known.state, known.connection = np.array(words, np.int64), None
        known.gaps = (client["gaps"], server["gaps"])


def _address(row: Mapping[str, Any], side: str) -> str:
    """The address of a side in a row of ``connections``, as links have it."""
    host, port = row[f"{side}_address"], row[f"{side}_port"]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _may_leave(streams: Streams, flow: int, follower: Follower, event: Event, *, particular: bool) -> bool:
    """Whether columns may take a connection from an event on.

    Of a side of which nothing was heard so far, a whole frame has to come first. Without a handshake the client has to
    speak first, as what the server says may answer what nobody has seen.
    """
    if not follower.quiet:
        return False
    unheard = follower.unheard
    if unheard:
        if particular or not isinstance(event, Data):
            return False
        if event.direction == "server" and not follower.link.known_start:
            return False
    for side in map(SIDES.index, unheard):
        start, stop = int(streams.starts[flow, side]), int(streams.stops[flow, side])
        if start < stop:
            stop = int(streams.ends[streams.pieces[flow, side]])
            if not follower.begins_whole(SIDES[side], streams.stream[start:stop].tobytes()):
                return False
    return True


def _as_objects(known: Flow, addresses: list[str], settings: Settings) -> dict[str, Any]:
    """The state of a plain connection as ``Connection.state`` gives it."""
    assert known.state is not None
    words = known.state.tolist()
    last, reset, over, sender = words[: len(STATE)]
    directions = []
    for number, role in enumerate(SIDES):
        begun, start, following, size, acked, unseen, heard, ended, _ = words[
            word(number, "begun") : word(number + 1, "begun")
        ]
        closed = ended >= 0
        directions.append({
            "role": role, "raw": following if begun else -1, "next": size, "start": start, "settle_us": None,
            "held": [], "cost": 0, "cuts": [], "seen": size, "gaps": known.gaps[number],
            "acked": acked or NOTHING, "unseen": unseen, "unseen_size": heard, "mark": 0, "mark_us": 0,
            "fin": size if closed else -1, "fin_us": max(ended, 0), "closed": closed, "stray": [-1, 0],
            "slow": closed or not begun, "deadline": NEVER,
        })  # fmt: skip
    closing = reset + settings.hold_us if reset >= 0 else NEVER
    return {
        "version": STATE_VERSION, "number": 0, "addresses": addresses[::-1] if sender else addresses,
        "known": known.known, "announced": known.count > 0, "opened_us": known.opened, "last_us": last,
        "closing_us": closing, "ended_us": over if over >= 0 else None, "deadline": closing,
        "directions": directions[::-1] if sender else directions,
    }  # fmt: skip


def _segment(packets: Packets, row: int, files: list[int]) -> Segment:
    begin, size = int(packets.begin[row]), int(packets.size[row])
    return Segment(
        int(packets.time[row]),
        packets.endpoints.text(int(packets.source[row])),
        packets.endpoints.text(int(packets.target[row])),
        int(packets.sequence[row]),
        int(packets.acknowledgment[row]),
        int(packets.flags[row]),
        bytes(packets.data[begin : begin + size]),
        int(packets.position[row]),
        files[packets.file[row]],
        int(packets.length[row]),
    )


def _events(streams: Streams, flow: int, places: tuple[int, int] | None = None) -> Iterator[tuple[int, Event]]:
    """Bytes and ends of both sides of a plain connection in the order of their ranks, which are with them.

    Args:
        places: of each side, where in ``Streams.stream`` what is wanted begins; by default where its bytes do.
    """
    begins = streams.starts[flow].tolist() if places is None else places
    stops, ended = streams.stops[flow].tolist(), streams.ended[flow, :, 0].tolist()
    sides = [
        _events_of(streams, flow, side, begins[side])
        for side in range(2)
        if begins[side] < stops[side] or ended[side] >= 0
    ]
    return heapq.merge(*sides, key=itemgetter(0)) if len(sides) > 1 else chain.from_iterable(sides)


def _events_of(streams: Streams, flow: int, side: int, begin: int) -> Iterator[tuple[int, Event]]:
    """Those of one side."""
    name, first = SIDES[side], int(streams.starts[flow, side])
    before = int(streams.offsets[flow, side])
    stop, piece = int(streams.stops[flow, side]), int(streams.pieces[flow, side])
    if begin > first:
        piece = int(np.searchsorted(streams.ends, begin, side="right"))
    while begin < stop:
        end, time_us = int(streams.ends[piece]), int(streams.times[piece])
        data = streams.stream[begin:end].tobytes()
        yield int(streams.ranks[piece]), Data(name, data, before + begin - first, time_us, 0, 0)
        begin, piece = end, piece + 1
    rank, time_us = streams.ended[flow, side].tolist()
    if rank >= 0:
        yield rank, Closed(name, "fin", time_us)
