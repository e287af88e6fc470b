"""The connections of a capture from window to window.

``streams`` follows plain connections, and objects follow the others within a window, from the state at its beginning.
At the end of the window objects give a connection back if nothing of it is pending. Both use one form for the state of
a connection's bytes: the state of ``wirekit.capture.tcp.Connection``, plain JSON data. While columns follow a
connection, the state of its conversation is a row of ``wirekit.road.begun``; if the connection becomes odd, objects are
created from the row.
"""

from __future__ import annotations

import pickle
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from wirekit.capture.follow import Choice, Follower, Item, Link
from wirekit.capture.follow import Flow as AnyFlow
from wirekit.capture.tcp import Closed, Connection, Data, Duplicate, Event, Ignored, Opened, Settings
from wirekit.conversation import Skipped
from wirekit.conversation.recognition import recognise_joined
from wirekit.pipeline.carried import pair_of
from wirekit.pipeline.ids import connection_id
from wirekit.registry import registry
from wirekit.road.begun import CARRIED, CONVERSATION, Begun, conversations, nothing_begun
from wirekit.road.conversations import Conversations
from wirekit.road.events import SIDES, events, segment_of
from wirekit.road.joined import Sizes, first_attempts
from wirekit.road.packets import Endpoints
from wirekit.road.states import States
from wirekit.road.streams import REASONS, STATE, Streams, silent_streams, word
from wirekit.road.tails import Tail, Tails
from wirekit.road.windows import Window
from wirekit.tables.columns import CONNECTIONS, FATES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wirekit.pipeline.flows import Writer
    from wirekit.road.begun import Followed as FollowedFrames

MOST_BEGINNING = 64
"""Pieces of a connection in a window that objects get before they get all of them."""
MOST_CARRIED = 64
CARRIED_BYTES = 1 << 16
"""Frames of a connection that are carried to the next window, and their bytes."""
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
        carried: frames that nobody has told of, as ``CARRIED`` has them.
    """

    row: int
    gaps: tuple[Any, Any] = ((), ())
    connection: Connection | None = None
    link: Link | None = None
    follower: Follower | None = None
    carried: list[tuple[Any, ...]] = field(default_factory=list)


class Connections:
    """The connections of a capture.

    Attributes:
        late: of connections that others have told of, by id, the bytes that came again or too late: by side and fate.
        done: of each flow of a window, whether nothing is left to do for it.

    Args:
        name: what the capture is called.
        endpoints: what the numbers of endpoints stand for.
        choice: how protocols are chosen.
        settings: of the TCP reassembly.
        files: the number of each file of the capture, for its segments.
        writer: has the calls of the connections that objects follow.
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
        writer: Writer,
        earlier: Callable[[tuple[str, str]], AnyFlow | None] | None = None,
    ) -> None:
        self.late: defaultdict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
        self._name, self._endpoints = name, endpoints
        self._choice = choice
        self._settings = settings
        self._files = files
        self._writer = writer
        self.done = np.zeros(0, bool)
        self._earlier = earlier
        self._places: dict[int, tuple[int, int]] = {}  # of flows of a window: where what nobody has taken begins
        self._states = States()
        self._rows = self._seen = np.zeros(0, np.int64)  # of flows of a window, and of the last one, in the states
        self._flows: dict[int, Flow] = {}  # by row
        self._tails = Tails()
        self._conversations = Conversations(self._states)
        self._ready: list[tuple[Any, Any, Any]] = []  # flows that it gives, their places, and the sides unheard
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

    @property
    def rows(self) -> range:
        """The rows of all flows."""
        return range(self._states.size)

    def leave(self, row: int) -> tuple[tuple[str, str], AnyFlow]:
        """A flow as the next bundle goes on with it, with its addresses, the lower one first; once."""
        states = self._states
        known, flow = self._flow(row), AnyFlow(self._choice, self._settings)
        flow.link, flow.follower, flow.count = known.link, known.follower, int(states.count[row])
        if known.connection is not None or states.plain[row]:
            flow.connection = known.connection or self._connection(known)
        del self._flows[row]
        return pair_of(*(self._endpoints.text(int(end[row])) for end in (states.low, states.high))), flow

    def recalled(self, row: int) -> Iterator[Followed]:
        """Gives objects all frames of a flow that were carried to a next window."""
        yield from self._recalled(self._flow(row))

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
        self.done, self._places = np.zeros(streams.odd.size, bool), {}
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

    def carried_bytes(self) -> int:
        """How many bytes of frames are carried."""
        return self._conversations.carried_bytes()

    def tails(self, odd: NDArray[np.bool_], sizes: NDArray[np.int64]) -> list[Tail]:
        """The begins of frames that earlier windows cut, of the sides of which more comes."""
        return self._tails.take(odd, sizes, self._rows, self._states.size)

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
            yield from self._told(known, connection.feed(segment_of(packets, row, self._files)))
        if window.last:
            yield from self._finished(known, connection)
        elif connection.settled:
            self._give_back(known, connection)
            self._note_end(known)
            self._let_go(known)

    def begin(self, streams: Streams, flows: NDArray[Any], protocols: list[str]) -> Iterator[Followed]:
        """Follows plain connections in a window as far as objects have to; ``begun`` gives those that columns may take.

        Args:
            streams: the window.
            flows: the connections that reach beyond it.
            protocols: of each flow, what it is, where it begins in this window and that is known from its bytes.
        """
        states, rows = self._states, self._rows[flows]
        resumable = {name: registry.protocol(name).follow().resumable for name in {*protocols} - {""}}
        fresh = np.array([resumable.get(protocols[flow], False) for flow in flows.tolist()], bool)
        carries = (streams.starts[flows] < streams.stops[flows]).any(axis=1)
        heard = states.begun[rows] & (streams.offsets[flows] > 0).all(axis=1)
        left = carries | streams.final[flows] | _closing(streams, flows)
        self.done[flows[heard & ~left]] = True
        started = flows[fresh]
        states.take(rows[fresh], streams, started)
        states.count[rows[fresh]], states.told[rows[fresh]] = 1, False
        self._conversations.add(conversations(rows[fresh], [protocols[flow] for flow in started.tolist()]))
        for each in (started, flows[heard & left]):
            self._ready.append((each, streams.starts[each], np.zeros((each.size, len(SIDES)), bool)))
        for flow in flows[~(fresh | heard | states.told[rows])].tolist():
            yield from self._begin(streams, flow)

    def begin_behind(self, streams: Streams, flow: int) -> Iterator[Followed]:
        """Does the same for a connection of which objects have to take the first frames of both sides."""
        yield from self._begin(streams, flow, particular=True)

    def _begin(self, streams: Streams, flow: int, *, particular: bool = False) -> Iterator[Followed]:
        """Follows the first frames of a connection up to a point at which nothing is pending, if any."""
        known = self._flow(self._rows[flow])
        if known.link is None and self._states.count[known.row] > 0:
            return
        self._link_of(streams, flow, known)
        places, final = list(map(int, streams.starts[flow])), bool(streams.final[flow])
        if known.follower is None and not particular:
            self._foresee(streams, flow, known)
        at_once = known.follower is not None and known.follower.quiet and not known.follower.unheard
        if at_once and not final and not (streams.starts[flow] < streams.stops[flow]).any():
            return
        for count, (_, event) in enumerate(() if at_once else events(streams, flow)):
            if known.follower is not None and _may_leave(streams, flow, known.follower, event, particular=particular):
                break
            if not isinstance(event, Data) or count >= MOST_BEGINNING:
                self._places[flow] = places[0], places[1]
                return
            yield from self._told(known, [event])
            places[SIDES.index(event.direction)] += len(event.data)
        self._places[flow] = places[0], places[1]
        follower = known.follower
        if known.link is None or follower is None or not follower.quiet:
            return
        unheard = follower.unheard
        if not (unheard and particular):
            self._ready.append(([flow], [places], [[side in unheard for side in SIDES]]))
            self._put_into_columns(known, known.link, follower)

    def begun(self, streams: Streams) -> Begun:
        """The connections that columns may take from here on."""
        states = self._states
        open_conversations = self._conversations
        open_conversations.compact()
        none = nothing_begun()
        parts = [(none.flows, none.places, none.unheard), *self._ready]
        flows, places, unheard = (np.concatenate(each) for each in zip(*parts, strict=True))
        self._ready = []
        order = np.argsort(flows)
        flows = flows[order]
        rows, final = self._rows[flows], streams.final[flows]
        found, carried = open_conversations.of_flows(rows, flows)
        ends = final & ~found["waits"] & ~np.isin(rows, self._tails.rows)
        return Begun(found, states.count[rows] - 1, places[order], final, ends, unheard[order], carried)

    def _let_go(self, known: Flow) -> None:
        """Makes columns of a connection at the end of a window, if it is open and nothing of it is pending."""
        link, follower = known.link, known.follower
        usual = self._states.plain[known.row] and known.row not in self._ending
        if usual and link is not None and follower is not None and follower.quiet and not follower.unheard:
            self._put_into_columns(known, link, follower)

    def _put_into_columns(self, known: Flow, link: Link, follower: Follower) -> None:
        """Makes columns of a connection that objects have followed so far."""
        row, states = known.row, self._states
        calls = self._writer.calls_of(self._name, link)
        number, errors, facts, names = calls.take()
        counted = link.bytes
        sizes = [[counted.get((side, fate), 0) for fate in FATES] for side in SIDES]
        link.forget()
        said = link.opened_us, link.known_start, link.ordinal, [link.client, link.server]
        here = states.opened[row], states.known[row], states.count[row] - 1, self._texts(row)
        waits = calls.waiting or bool(link.closed) or said != here
        if not waits:
            self._writer.forget(link)
            self._conversations.pack_later(row)
        most, nothing = follower.frame_limit or 0, (0, 0)
        told: tuple[Any, ...] = (
            row, link.protocol, number, errors, sizes, nothing, 0, most, frozenset(), facts or None, names or None,
            waits, follower,
        )  # fmt: skip
        self._conversations.add(np.array([told], CONVERSATION), np.array(known.carried, CARRIED))
        known.link, known.follower, known.carried = None, None, []
        if not any(known.gaps):
            del self._flows[row]

    def _taken_out_of_columns(self, row: int) -> Flow:
        """Makes objects of a connection that columns have followed so far."""
        known = self._flows.setdefault(row, Flow(row))
        told, known.carried = self._conversations.take(row)
        follower, protocol = told["follower"], told["protocol"]
        if not isinstance(follower, Follower):
            link = self._link(row, protocol)
            follower = Follower(link) if follower is None else Follower.from_state(link, pickle.loads(follower))
        known.follower, known.link = follower, follower.link
        for side, sizes in zip(SIDES, told["sizes"].tolist(), strict=True):
            for fate, size in zip(FATES, sizes, strict=True):
                if size:
                    known.link.count(side, fate, size)
        skipped = dict(zip(SIDES, told["skipped"].tolist(), strict=True))
        for side, size in skipped.items():
            follower.skip(side, size)
        names = told["names"] or {}
        sides = [side for side, size in skipped.items() if size]
        called = {(api, version) for api, version, _ in told["called"]}
        clients = {name for *_, each in told["called"] for name in each}
        follower.skipped(Skipped(sides, clients, sorted(called), names, int(told["stated"])))
        calls = self._writer.calls_of(self._name, known.link)
        calls.add(int(told["calls"]), int(told["errors"]), told["facts"] or {}, names)
        return known

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
        for _, event in events(streams, flow) if not protocol else ():
            if not isinstance(event, Data):
                return
            protocol = scout.foresees(event)
            if scout.link.protocol:
                break
        if protocol:
            known.link.protocol = protocol
            known.follower = Follower(known.link)

    def skip(self, streams: Streams, frames: FollowedFrames, ended: NDArray[Any]) -> Iterator[Followed]:
        """Takes note of the frames of begun connections that are in the tables.

        Those that wait are carried to the next window, with what is there of a frame behind them; if they are many or
        large, objects get them.

        Args:
            streams, frames: as above.
            ended: the flows whose rows of ``connections`` are in the tables, too.
        """
        states, flows = self._states, frames.flows
        rows = self._rows[flows]
        self._conversations.note(frames, self._rows)
        self._over(ended)
        of_flow = frames.waiting["connection"]
        sizes = np.array(list(map(len, frames.waiting["data"])), np.int64)
        many = np.bincount(of_flow, minlength=streams.odd.size) > MOST_CARRIED
        large = np.bincount(of_flow, sizes, streams.odd.size) > CARRIED_BYTES
        crowded = (many | large)[flows]
        cut = (frames.places < streams.stops[flows]).any(axis=1)
        closing = _closing(streams, flows) | streams.final[flows]
        self.done[flows] = True
        for place in np.flatnonzero(states.begun[rows] & (cut | closing | crowded)).tolist():
            flow = int(flows[place])
            reached = self._places[flow] = self._tails.keep(
                streams, flow, int(rows[place]), frames.places[place].tolist()
            )
            whole = reached == tuple(streams.stops[flow].tolist())
            self.done[flow] = whole and not closing[place] and not crowded[place]
            if crowded[place]:
                yield from self._recalled(self._flow(rows[place]))

    def _over(self, flows: NDArray[Any]) -> None:
        """Takes note of connections that others have told of."""
        rows = self._rows[flows]
        self._states.count[rows] = np.maximum(self._states.count[rows], 1)
        self._states.told[rows], self._states.begun[rows] = True, False

    def _recalled(self, known: Flow) -> Iterator[Followed]:
        """Gives objects what was carried of a connection, before anything else."""
        carried, known.carried = known.carried, []
        tails = self._tails.pop(known.row)
        link, follower = known.link, known.follower
        if link is None or follower is None:
            return
        for _, side, position, time_us, data in carried:
            for item in follower.recall(Data(SIDES[side], data, position, time_us, 0, 0)):
                yield link, item
        for tail in tails:
            for item in follower.take(tail):
                yield link, item

    def _link_of(self, streams: Streams, flow: int, known: Flow) -> None:
        """Makes the link of a connection of which nothing was told so far."""
        size = streams.stops[flow] - streams.starts[flow]
        if known.link is None and (streams.known[flow] or size.any() or streams.final[flow]):
            self._states.take(np.array([known.row]), streams, np.array([flow]))
            known.link = self._opened(known.row)

    def followed(self, window: Window, streams: Streams, flow: int) -> Iterator[Followed]:
        """A plain connection of a window, of which a follower gets the bytes that nobody has taken yet."""
        known = self._flow(self._rows[flow])
        told = known.link is None and self._states.count[known.row] > 0  # all of it, in an earlier window
        if not told:
            self._link_of(streams, flow, known)
        for _, event in events(streams, flow, self._places.pop(flow, None)):
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
                self._ending.pop(known.row, None)
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
        self._over(flows)

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
        again = flows[self._states.begun[rows] & self.done[flows] & streams.duplicates[flows].any(axis=1)]
        self._conversations.count_duplicates(self._rows[again], streams.duplicates[again])
        for row in self._flows.keys() & set(rows.tolist()):
            known = self._flows[row]
            link, follower = known.link, known.follower
            self._note_end(known)
            if link is None:
                if not any(known.gaps):
                    del self._flows[row]
            elif follower is None:
                continue
            elif row in self._ending:
                if not follower.swapped:
                    known.follower = link.dialogue = None  # what comes late is only counted
            else:
                self._let_go(known)
        self._conversations.pack()

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

    def silent(self) -> Streams:
        """The connections that the last window has no packets of and that nothing but the capture ends, as a window."""
        states = self._states
        self._seen = self._rows
        words = states.words[: states.size]
        whole = states.begun[: states.size] & states.plain[: states.size]
        whole &= (words[:, STATE.index("reset")] < 0) & (words[:, OVER] < 0)
        for side in range(len(SIDES)):
            begun, size, acked, heard, ended = (
                words[:, word(side, name)] for name in ("begun", "size", "acked", "heard", "ended")
            )
            whole &= (ended >= 0) | ((acked <= size + 1) & ((begun > 0) | (heard == 0)))
        whole[self._seen] = whole[self._tails.rows] = False
        rows = self._rows = np.flatnonzero(whole)
        self._seen = np.append(self._seen, rows)
        self.done, self._places = np.zeros(rows.size, bool), {}
        return silent_streams(
            states.client[rows], states.servers(rows), states.known[rows], states.opened[rows], words[rows]
        )

    def rest(self) -> Iterator[Followed]:
        """The ends of the other flows that it has no packets of."""
        states = self._states
        unseen = np.ones(states.size, bool)
        unseen[self._seen] = False
        silent = states.plain[: states.size] & (states.count[: states.size] == 0)
        for row in np.flatnonzero(unseen).tolist():
            known = self._flow(row) if states.begun[row] else self._flows.get(row)
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
        if self._states.begun[row]:
            return self._taken_out_of_columns(row)
        known = self._flows.get(row)
        if known is None:
            known = self._flows[row] = Flow(row)
        return known

    def _note_end(self, known: Flow) -> None:
        """Takes note of when the latest connection of a flow ended, if it has."""
        states, row = self._states, known.row
        if known.link is not None and states.plain[row] and states.words[row, OVER] >= 0:
            self._ending[row] = int(states.words[row, OVER])

    def _opened(self, row: int) -> Link:
        """The link of a flow's next connection."""
        self._states.count[row] += 1
        return self._link(row, self._choice.of(*self._texts(row)))

    def _link(self, row: int, protocol: str) -> Link:
        """The link of a flow's latest connection."""
        states, (client, server) = self._states, self._texts(row)
        name, opened = f"{client}>{server}#{states.count[row] - 1}", int(states.opened[row])
        return Link(name, client, server, opened, bool(states.known[row]), opened, protocol)

    def _texts(self, row: int) -> list[str]:
        """Client and server of the latest connection of a flow."""
        ends = self._states.client[row], self._states.servers(row)
        return [self._endpoints.text(int(end)) for end in ends]

    def _told(self, known: Flow, events: Iterable[Event]) -> Iterator[Followed]:
        """Follows the latest connection of a flow through events."""
        for event in events:
            if (known.carried or known.row in self._tails) and not isinstance(event, Duplicate | Ignored):
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
        state = self._states.state(known.row, self._texts(known.row), known.gaps, self._settings.hold_us)
        return Connection.from_state(state, self._settings)

    def _give_back(self, known: Flow, connection: Connection) -> None:
        """Makes words of a connection of which nothing is pending, unless they cannot say all of it."""
        plain = connection.state()
        gaps = self._states.put(known.row, plain, list(map(self._endpoints.number, plain["addresses"])))
        if gaps is not None:
            known.connection, known.gaps = None, gaps


def _closing(streams: Streams, flows: NDArray[Any]) -> NDArray[Any]:
    """Whether a side of a connection ends in this window: objects have to know it if they get what comes later."""
    return np.asarray((streams.ended[flows, :, 0] >= 0).any(axis=1))


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
