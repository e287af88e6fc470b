"""The connections of a capture from window to window.

Plain connections are followed by ``streams``, and objects follow the others: within a window, with what was known at
its begin. At its end they give a connection back when nothing of it is pending. What is known of a connection's bytes
has one form for both, the state of ``wirekit.capture.tcp.Connection``, which is plain JSON data.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
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
from wirekit.road.states import States
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
MOST_TAIL = 1 << 20
"""Bytes of a frame that is not all there, and is carried, too."""
SIDES: tuple[Side, Side] = ("client", "server")
LAST, OVER = STATE.index("last"), STATE.index("over")
_NO_TIME = 1 << 62
"""Stands for a time that tables do not show."""
Followed = tuple[Link, Item | None]
"""An item of a connection, None for its end."""


@dataclass(slots=True)
class Flow:
    """What a flow carries at the end of a window, and what its row of ``States`` cannot say.

    Attributes:
        row: the row.
        gaps: of each side of the latest connection, those that ``Connection`` remembers.
        connection: the latest connection while objects follow it.
        link: None while nothing is to be told of it, and when all was told.
        follower: once it carries anything.
        carried: frames that nobody has told of, and that come first in the next window.
        tails: by side, the bytes behind them: of a frame that is not all there.
    """

    row: int
    gaps: tuple[Any, Any] = ((), ())
    connection: Connection | None = None
    link: Link | None = None
    follower: Follower | None = None
    carried: tuple[Carried, ...] = ()
    tails: dict[int, Data] = field(default_factory=dict)


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
        self._states = States()
        self._rows = np.zeros(0, np.int64)  # of flows of a window, in the states
        self._flows: dict[int, Flow] = {}  # by row
        self._tailed: set[int] = set()  # rows of flows with tails
        self._ending: dict[int, int] = {}  # by row, when a connection ended of which not all was told
        self._attempts: dict[int, Sizes] = {}  # of flows of a window, as ``first_attempts`` has them

    def _restore(self, row: int) -> bool:
        """Goes on with a flow that an earlier bundle has left; whether one has."""
        states = self._states
        pair = pair_of(*(self._endpoints.text(int(end[row])) for end in (states.low, states.high)))
        flow = self._earlier(pair) if self._earlier is not None else None
        if flow is None:
            return False
        states.count[row] = flow.count
        known = self._flows[row] = Flow(row, link=flow.link, follower=flow.follower, connection=flow.connection)
        if known.connection is not None and known.connection.settled:
            self._give_back(known, known.connection)
            self._note_end(known)
        return True

    def flows(self) -> Iterator[tuple[tuple[str, str], AnyFlow]]:
        """The flows as the next bundle goes on with them, each with its addresses, the lower one first."""
        states = self._states
        for row in range(states.size):
            flow, known = AnyFlow(self._choice, self._settings), self._flows.get(row) or Flow(row)
            flow.link, flow.follower, flow.count = known.link, known.follower, int(states.count[row])
            if known.connection is not None or states.plain[row]:
                flow.connection = known.connection or self._connection(known)
            yield pair_of(*(self._endpoints.text(int(end[row])) for end in (states.low, states.high))), flow

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
        states, known = self._states, self._flow(self._states.row(*map(self._endpoints.number, ends)))
        if not states.told[known.row] or row["ordinal"] != states.count[known.row] - 1:
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
        known.link, states.told[known.row] = link, False
        return True

    def resume(self, streams: Streams) -> None:
        """Fills in what is known of flows."""
        states, before = self._states, self._states.size
        ends = streams.client, streams.server
        rows = self._rows = states.rows(np.minimum(*ends), np.maximum(*ends))
        known = np.arange(states.size) < before
        if self._earlier is not None:
            known[before:] = [self._restore(row) for row in range(before, states.size)]
        streams.resumed[:] = states.plain[rows]
        streams.odd[:] = known[rows] & ~states.plain[rows]
        flows = np.flatnonzero(streams.resumed)
        rows = rows[flows]
        streams.client[flows], streams.server[flows] = states.client[rows], states.servers(rows)
        streams.known[flows], streams.opened[flows] = states.known[rows], states.opened[rows]
        streams.state[flows] = states.words[rows]

    def put_tails(self, streams: Streams) -> None:
        """Puts the tails of frames that earlier windows cut in front of what comes behind them."""
        rows = np.fromiter(self._tailed, np.int64, len(self._tailed))
        flow_of = np.full(self._states.size, -1, np.int64)
        flow_of[self._rows] = np.arange(self._rows.size)
        sizes, tails = np.zeros(streams.starts.size, np.int64), dict[int, Data]()
        for row, flow in zip(rows.tolist(), flow_of[rows].tolist(), strict=True):
            for side, tail in list(self._flows[row].tails.items()) if flow >= 0 and not streams.odd[flow] else ():
                if streams.starts[flow, side] < streams.stops[flow, side]:
                    sizes[2 * flow + side], tails[2 * flow + side] = len(tail.data), tail
                    self._drop_tail(self._flows[row], side)
        if not tails:
            return
        streams.offsets -= sizes.reshape(-1, 2)
        places = sorted(tails)
        content = np.split(streams.stream, streams.starts.ravel()[places])
        pieces = chain(
            *((np.frombuffer(tails[at].data, np.uint8), rest) for at, rest in zip(places, content[1:], strict=True))
        )
        streams.stream = np.concatenate([content[0], *pieces])
        moved = np.cumsum(sizes)
        counts = np.diff(streams.pieces.ravel(), append=streams.ends.size)
        streams.ends += np.repeat(moved, counts)
        streams.starts, streams.stops = (
            each + more.reshape(-1, 2) for each, more in ((streams.starts, moved - sizes), (streams.stops, moved))
        )

    def _drop_tail(self, known: Flow, side: int) -> None:
        del known.tails[side]
        if not known.tails:
            self._tailed.discard(known.row)

    def odd(self, window: Window, streams: Streams, flow: int) -> Iterator[Followed]:
        """A flow of a window, followed by objects."""
        packets = window.packets
        known = self._flow(self._rows[flow])
        self._ending.pop(known.row, None)
        if known.connection is None:
            known.connection = self._connection(known)
            self._states.plain[known.row] = False
        connection = known.connection
        for row in streams.order[streams.begins[flow] : streams.begins[flow + 1]].tolist():
            yield from self._told(known, connection.feed(_segment(packets, row, self._files)))
        if window.last:
            yield from self._finished(known, connection)
        elif connection.settled:
            self._give_back(known, connection)
            self._note_end(known)

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
        known = self._flow(self._rows[flow])
        if known.link is None and self._states.count[known.row] > 0:
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
        if at_once and not final and not (streams.starts[flow] < streams.stops[flow]).any():
            return items, None
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

        Those that wait are carried to the next window, with what is there of a frame behind them; if they are many or
        large, objects get them.
        """
        known = self._flow(self._rows[flow])
        follower = known.follower
        assert follower is not None
        calls.add(frames.calls, frames.errors, frames.facts, frames.skipped.names)
        follower.skipped(frames.skipped)
        for side, end in enumerate(frames.places):
            follower.skip(SIDES[side], end - self._places[flow][side])
        self._places[flow] = frames.places
        known.carried = tuple(frames.waiting)
        if not streams.final[flow] and not follower.unheard:
            self._keep_tails(known, streams, flow, list(frames.places))
        if len(known.carried) > MOST_CARRIED or sum(len(each.data) for each in known.carried) > CARRIED_BYTES:
            yield from self._recalled(known)

    def _keep_tails(self, known: Flow, streams: Streams, flow: int, places: list[int]) -> None:
        """Carries what is there of the frames behind some places."""
        for side, place in enumerate(places):
            stop, first = int(streams.stops[flow, side]), int(streams.starts[flow, side])
            if place < stop <= place + MOST_TAIL:
                last = int(streams.times[np.searchsorted(streams.ends, stop)])
                position = int(streams.offsets[flow, side]) + place - first
                known.tails[side] = Data(SIDES[side], streams.stream[place:stop].tobytes(), position, last, 0, 0)
                self._tailed.add(known.row)
                places[side] = stop
        self._places[flow] = places[0], places[1]

    def _recalled(self, known: Flow) -> Iterator[Followed]:
        """Gives objects what was carried of a connection, before anything else."""
        carried, known.carried = known.carried, ()
        tails, known.tails = known.tails, {}
        self._tailed.discard(known.row)
        link, follower = known.link, known.follower
        if link is None or follower is None:
            return
        for side, position, data, time_us in carried:
            for item in follower.recall(Data(SIDES[side], data, position, time_us, 0, 0)):
                yield link, item
        for tail in sorted(tails.values(), key=lambda each: each.time_us):
            for item in follower.take(tail):
                yield link, item

    def link(self, flow: int) -> Link:
        """A connection that is begun."""
        link = self._flow(self._rows[flow]).link
        assert link is not None
        return link

    def _link_of(self, streams: Streams, flow: int, known: Flow) -> None:
        """Makes the link of a connection of which nothing was told so far."""
        size = streams.stops[flow] - streams.starts[flow]
        if known.link is None and (streams.known[flow] or size.any() or streams.final[flow]):
            self._states.take(np.array([known.row]), streams, np.array([flow]))
            known.link = self._link(known.row)

    def followed(self, window: Window, streams: Streams, flow: int) -> Iterator[Followed]:
        """A plain connection of a window, of which a follower gets the bytes that nobody has taken yet."""
        known = self._flow(self._rows[flow])
        told = known.link is None and self._states.count[known.row] > 0  # all of it, in an earlier window
        if not told:
            self._link_of(streams, flow, known)
        for _, event in _events(streams, flow, self._places.pop(flow, None)):
            yield from self._told(known, [event])
        again = streams.duplicates[flow].tolist()
        yield from self._told(
            known, [Duplicate(side, size, 0, 0) for side, size in zip(SIDES, again, strict=True) if size]
        )
        if streams.final[flow] and not told:
            state = streams.state[flow]
            left = [side for number, side in enumerate(SIDES) if state[word(number, "ended")] < 0]
            reason, time_us = REASONS[streams.reason[flow]], int(streams.closed[flow])
            if left:
                yield from self._told(known, [Closed("both" if len(left) == 2 else left[0], reason, time_us)])
            if window.last and known.link is not None:
                yield known.link, None

    def whole(self, window: Window, flow: int, link: Link, items: Iterable[Item]) -> Iterator[Followed]:
        """A connection of which all bytes are in a window, with what it carries."""
        known = self._flow(self._rows[flow])
        known.link, self._states.count[known.row] = link, 1
        yield from ((link, item) for item in items)
        if window.last:
            yield link, None

    def assembled(self, flows: NDArray[Any]) -> None:
        """Takes note of connections of which all bytes are in a window, and of which others tell."""
        self._states.count[self._rows[flows]] = 1
        self._states.told[self._rows[flows]] = True

    def keep(self, streams: Streams) -> None:
        """Takes note of the state of the plain connections at the end of a window."""
        flows = np.flatnonzero(~streams.odd)
        rows, words = self._rows[flows], streams.state[flows]
        reset = np.flatnonzero(streams.final[flows] & (words[:, OVER] < 0))
        last = words[reset, LAST]
        words[reset, OVER], words[reset, STATE.index("reset")] = last, -1
        for side in range(2):
            words[reset, word(side, "ended")] = last
        self._states.take(rows, streams, flows)
        self._states.words[rows], self._states.plain[rows] = words, True
        for row in self._flows.keys() & set(rows.tolist()):
            known = self._flows[row]
            self._note_end(known)
            if known.link is None and not any(known.gaps):
                del self._flows[row]
            elif row in self._ending and known.link is not None and known.follower and not known.follower.swapped:
                known.follower = known.link.dialogue = None  # what comes late is only counted

    def ended(self, clock: int) -> Iterator[Followed]:
        """The ends of connections to which nothing can come any more at a time.

        A flow that was idle since its connection ended is forgotten: what comes later is another connection.
        """
        for row, time_us in list(self._ending.items()):
            if clock > time_us + self._settings.patience_us:
                del self._ending[row]
                known = self._flows[row]
                if known.link is not None and self._states.plain[row]:
                    yield known.link, None
                    del self._flows[row]
        for row in self._states.idle(clock - self._settings.idle_us).tolist():
            if row not in self._flows or self._flows[row].link is None:
                self._states.plain[row] = False
                self._flows.pop(row, None)

    def rest(self) -> Iterator[Followed]:
        """The ends of the flows that the last window has no packets of."""
        states = self._states
        unseen = np.ones(states.size, bool)
        unseen[self._rows] = False
        silent = states.plain[: states.size] & (states.count[: states.size] == 0)
        for row in np.flatnonzero(unseen).tolist():
            known = self._flows.get(row)
            if known is None and silent[row]:
                known = Flow(row)
            if known is None or (known.link is None and states.count[row] and known.connection is None):
                continue
            yield from self._finished(known, known.connection or self._connection(known))

    def _finished(self, known: Flow, connection: Connection) -> Iterator[Followed]:
        yield from self._told(known, connection.finish())
        if known.link is not None:
            yield known.link, None

    def _flow(self, row: int) -> Flow:
        """What the flow of a row carries."""
        row = int(row)
        known = self._flows.get(row)
        if known is None:
            known = self._flows[row] = Flow(row)
        return known

    def _note_end(self, known: Flow) -> None:
        """Takes note of when the latest connection of a flow ended, if it has."""
        states, row = self._states, known.row
        if known.link is not None and states.plain[row] and states.words[row, OVER] >= 0:
            self._ending[row] = int(states.words[row, OVER])

    def _link(self, row: int) -> Link:
        states, (client, server) = self._states, self._texts(row)
        name, protocol = f"{client}>{server}#{states.count[row]}", self._choice.of(client, server)
        states.count[row] += 1
        opened = int(states.opened[row])
        return Link(name, client, server, opened, bool(states.known[row]), opened, protocol)

    def _texts(self, row: int) -> list[str]:
        """Client and server of the latest connection of a flow."""
        ends = self._states.client[row], self._states.servers(row)
        return [self._endpoints.text(int(end)) for end in ends]

    def _told(self, known: Flow, events: Iterable[Event]) -> Iterator[Followed]:
        """Follows the latest connection of a flow through events."""
        for event in events:
            if (known.carried or known.tails) and not isinstance(event, Duplicate | Ignored):
                yield from self._recalled(known)
            if isinstance(event, Opened):
                if known.link is not None:
                    yield known.link, None
                states, row = self._states, known.row
                states.told[row] = False
                _, client, server, time_us, known_start = event
                name, protocol = f"{client}>{server}#{states.count[row]}", self._choice.of(client, server)
                known.link = Link(name, client, server, time_us, known_start, time_us, protocol)
                known.follower = None
                states.count[row] += 1
                continue
            link = known.link
            if link is None:
                if self._states.told[known.row] and isinstance(event, Duplicate | Ignored):
                    self._late(known.row, event)
                continue
            if known.follower is None:
                if isinstance(event, Closed):
                    link.closed_us, link.closed = event.time_us, event.reason
                    continue
                known.follower = Follower(link)
            for item in known.follower.take(event):
                yield link, item

    def _late(self, row: int, event: Duplicate | Ignored) -> None:
        client, server = self._texts(row)
        late = self.late[connection_id(self._name, client, server, int(self._states.count[row]) - 1)]
        size = event.length if isinstance(event, Duplicate) else len(event.data)
        late[event.direction, "captured"] += size
        late[event.direction, "duplicate" if isinstance(event, Duplicate) else "ignored"] += size

    def _connection(self, known: Flow) -> Connection:
        """A flow's latest connection as an object."""
        if not self._states.plain[known.row]:
            return Connection(self._settings)
        return Connection.from_state(self._as_objects(known), self._settings)

    def _as_objects(self, known: Flow) -> dict[str, Any]:
        """The state of a plain connection as ``Connection.state`` gives it."""
        states, row, addresses = self._states, known.row, self._texts(known.row)
        words = states.words[row].tolist()
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
        closing = reset + self._settings.hold_us if reset >= 0 else NEVER
        return {
            "version": STATE_VERSION, "number": 0, "addresses": addresses[::-1] if sender else addresses,
            "known": bool(states.known[row]), "announced": bool(states.count[row]),
            "opened_us": int(states.opened[row]), "last_us": last,
            "closing_us": closing, "ended_us": over if over >= 0 else None, "deadline": closing,
            "directions": directions[::-1] if sender else directions,
        }  # fmt: skip

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
        states, row = self._states, known.row
        states.client[row] = numbers[0 if first is client else 1]
        states.known[row], states.opened[row] = plain["known"], plain["opened_us"]
        states.words[row], states.plain[row] = words, True
        known.connection, known.gaps = None, (client["gaps"], server["gaps"])


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
