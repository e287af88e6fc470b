"""The flows that objects follow, and the passage of a connection between objects and columns.

Both use one form for the state of a connection's bytes: the state of ``wirekit.capture.tcp.Connection``, plain JSON
data. While columns follow a connection, the state of its conversation is a row of ``wirekit.road.begun``; if the
connection becomes odd, objects are created from the row.
"""

from __future__ import annotations

import pickle
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from wirekit.capture.follow import Follower
from wirekit.capture.links import Choice, Item, Link, connection_name
from wirekit.capture.tcp import Closed, Connection, Data, Duplicate, Event, Ignored, Opened, Settings
from wirekit.conversation import Skipped
from wirekit.conversation.following import MOST_OVERDUE
from wirekit.pipeline.ids import connection_id
from wirekit.road.begun import CARRIED, CONVERSATION
from wirekit.road.conversations import Conversations
from wirekit.road.events import SIDES
from wirekit.road.packets import Endpoints
from wirekit.road.states import States
from wirekit.road.streams import STATE
from wirekit.road.tails import Tails
from wirekit.tables.columns import FATES

if TYPE_CHECKING:
    from wirekit.pipeline.flows import Writer

OVER = STATE.index("over")
Followed = tuple[Link, Item | None]
"""An item of a connection; None is the end of the connection."""


@dataclass(slots=True)
class TrackedFlow:
    """The objects that follow a flow, with the state that its row of ``States`` cannot store.

    Attributes:
        row: the row.
        gaps: for each side of the latest connection, the gaps that ``Connection`` remembers.
        connection: the latest connection, while objects reassemble it.
        link: the latest connection, from its first event until it has been reported.
        follower: the follower of its conversation, from the first payload on.
        carried: frames that are not reported yet, as ``CARRIED`` rows.
    """

    row: int
    gaps: tuple[Any, Any] = ((), ())
    connection: Connection | None = None
    link: Link | None = None
    follower: Follower | None = None
    carried: list[tuple[Any, ...]] = field(default_factory=list)


class Tracking:
    """The flows that objects follow.

    Attributes:
        states, tails, conversations: the state of the flows, for objects and columns.
        flows: the flows with objects, by their rows in ``states``.
        ending: by row, when a connection ended that is not fully reported.
        late: bytes that arrived again or too late for connections that columns have reported: by connection id, then by
            side and fate.

    Args:
        name, endpoints, choice, settings, writer: as for ``Connections``.
    """

    def __init__(self, name: str, endpoints: Endpoints, choice: Choice, settings: Settings, writer: Writer) -> None:
        self._name, self._endpoints = name, endpoints
        self._choice, self._settings, self._writer = choice, settings, writer
        self.states, self.tails = States(), Tails()
        self.conversations = Conversations(self.states)
        self.flows: dict[int, TrackedFlow] = {}
        self.ending: dict[int, int] = {}
        self.late: defaultdict[str, Counter[tuple[str, str]]] = defaultdict(Counter)

    def of(self, row: int) -> TrackedFlow:
        """The objects of a flow, created if there are none."""
        row = int(row)
        if self.states.begun[row]:
            return self._take_from_columns(row)
        tracked = self.flows.get(row)
        if tracked is None:
            tracked = self.flows[row] = TrackedFlow(row)
        return tracked

    def next_link(self, row: int) -> Link:
        """Counts the next connection of a flow; returns its link."""
        self.states.count[row] += 1
        return self._link(row, self._choice.of(*self._texts(row)))

    def _link(self, row: int, protocol: str) -> Link:
        """The link of a flow's latest connection."""
        states, (client, server) = self.states, self._texts(row)
        name, opened_us = connection_name(client, server, int(states.count[row]) - 1), int(states.opened[row])
        return Link(name, client, server, opened_us, bool(states.known[row]), opened_us, protocol)

    def _texts(self, row: int) -> list[str]:
        """The addresses of client and server of a flow's latest connection."""
        ends = self.states.client[row], self.states.servers(row)
        return [self._endpoints.text(int(end)) for end in ends]

    def note_end(self, tracked: TrackedFlow) -> None:
        """Stores when the latest connection of a flow ended, if it has."""
        states, row = self.states, tracked.row
        over = int(states.words_of(row)[OVER]) if states.plain[row] else -1
        if tracked.link is not None and over >= 0:
            self.ending[row] = over

    def follow(self, tracked: TrackedFlow, events: Iterable[Event]) -> Iterator[Followed]:
        """Follows the latest connection of a flow through events."""
        for event in events:
            if (tracked.carried or tracked.row in self.tails) and not isinstance(event, Duplicate | Ignored):
                yield from self.recalled(tracked)
            if isinstance(event, Opened):
                if tracked.link is not None:
                    yield tracked.link, None
                states, row = self.states, tracked.row
                states.reported[row] = False
                _, client, server, time_us, known_start = event
                name = connection_name(client, server, int(states.count[row]))
                protocol = self._choice.of(client, server)
                tracked.link = Link(name, client, server, time_us, known_start, time_us, protocol)
                tracked.follower = None
                states.count[row] += 1
                continue
            link = tracked.link
            if link is None:
                if self.states.reported[tracked.row] and isinstance(event, Duplicate | Ignored):
                    self._late(tracked.row, event)
                continue
            if tracked.follower is None:
                if isinstance(event, Closed):
                    link.closed_us, link.closed = event.time_us, event.reason
                    continue
                tracked.follower = Follower(link, begun=False)
            for item in tracked.follower.take(event):
                yield link, item

    def _late(self, row: int, event: Duplicate | Ignored) -> None:
        client, server = self._texts(row)
        late = self.late[connection_id(self._name, client, server, int(self.states.count[row]) - 1)]
        size = event.length if isinstance(event, Duplicate) else len(event.data)
        late[event.direction, "captured"] += size
        late[event.direction, "duplicate" if isinstance(event, Duplicate) else "ignored"] += size

    def recalled(self, tracked: TrackedFlow) -> Iterator[Followed]:
        """Lets objects follow the carried frames and bytes of a connection, before later events."""
        carried, tracked.carried = tracked.carried, []
        tails = self.tails.pop(tracked.row)
        link, follower = tracked.link, tracked.follower
        if link is None or follower is None:
            return
        for _, side, position, time_us, data in carried:
            for item in follower.recall(Data(SIDES[side], data, position, time_us, 0, 0)):
                yield link, item
        for tail in tails:
            for item in follower.take(tail):
                yield link, item

    def finished(self, tracked: TrackedFlow, connection: Connection) -> Iterator[Followed]:
        """Ends the latest connection of a flow."""
        yield from self.follow(tracked, connection.finish())
        if tracked.link is not None:
            yield tracked.link, None

    def connection(self, tracked: TrackedFlow) -> Connection:
        """A flow's latest connection as an object."""
        if not self.states.plain[tracked.row]:
            return Connection(self._settings)
        state = self.states.state(tracked.row, self._texts(tracked.row), tracked.gaps, self._settings.hold_us)
        return Connection.from_state(state, self._settings)

    def give_back(self, tracked: TrackedFlow, connection: Connection) -> bool:
        """Stores the state of a connection in ``States``; returns False if that cannot represent it."""
        plain = connection.state()
        gaps = self.states.put(tracked.row, plain, list(map(self._endpoints.number, plain["addresses"])))
        if gaps is not None:
            tracked.connection, tracked.gaps = None, gaps
        return gaps is not None

    def give_to_columns(self, tracked: TrackedFlow) -> None:
        """Gives a connection to columns at the end of a window, if it is open and nothing is pending."""
        link, follower = tracked.link, tracked.follower
        usual = self.states.plain[tracked.row] and tracked.row not in self.ending
        if usual and link is not None and follower is not None and at_rest(follower):
            self.put_into_columns(tracked, link, follower)

    def put_into_columns(self, tracked: TrackedFlow, link: Link, follower: Follower) -> bool:
        """Gives a connection that objects have followed to columns.

        Returns:
            False if objects must follow it: so many calls are incomplete that later ones may end the oldest.
        """
        row, states = tracked.row, self.states
        calls = self._writer.calls_of(self._name, link)
        overdue = [(row, SIDES.index(each.side), each.offset, 0, each.data) for each in follower.waiting]
        if overdue and calls.waiting > MOST_OVERDUE:
            return False
        number, errors, facts, names = calls.take()
        counted = link.bytes
        sizes = [[counted.get((side, fate), 0) for fate in FATES] for side in SIDES]
        link.forget()
        stated = link.opened_us, link.known_start, link.ordinal, [link.client, link.server]
        here = states.opened[row], states.known[row], states.count[row] - 1, self._texts(row)
        waits = bool(calls.waiting) or bool(link.closed) or stated != here or bool(overdue)
        if not waits:
            self._writer.forget(link)
            self.conversations.pack_later(row)
        most, nothing = follower.frame_limit or 0, (0, 0)
        conversation: tuple[Any, ...] = (
            row, link.protocol, number, errors, sizes, nothing, 0, most, frozenset(), facts or None, names or None,
            waits, follower.one_sided, follower,
        )  # fmt: skip
        self.conversations.add(np.array([conversation], CONVERSATION), np.array(tracked.carried, CARRIED), overdue)
        tracked.link, tracked.follower, tracked.carried = None, None, []
        if not any(tracked.gaps):
            del self.flows[row]
        return True

    def _take_from_columns(self, row: int) -> TrackedFlow:
        """Creates the objects for a connection that columns have followed."""
        tracked = self.flows.setdefault(row, TrackedFlow(row))
        conversation, tracked.carried = self.conversations.take(row)
        follower, protocol = conversation["follower"], conversation["protocol"]
        if not isinstance(follower, Follower):
            link = self._link(row, protocol)
            follower = Follower(link) if follower is None else Follower.from_state(link, pickle.loads(follower))
        tracked.follower, tracked.link = follower, follower.link
        for side, sizes in zip(SIDES, conversation["sizes"].tolist(), strict=True):
            for fate, size in zip(FATES, sizes, strict=True):
                if size:
                    tracked.link.count(side, fate, size)
        skipped = dict(zip(SIDES, conversation["skipped"].tolist(), strict=True))
        for side, size in skipped.items():
            follower.skip(side, size)
        names = conversation["names"] or {}
        sides = [side for side, size in skipped.items() if size]
        called = {(api, version) for api, version, _ in conversation["called"]}
        clients = {name for *_, each in conversation["called"] for name in each}
        follower.skipped(Skipped(sides, clients, sorted(called), names, int(conversation["stated"])))
        follower.one_sided = bool(conversation["one_sided"])
        calls = self._writer.calls_of(self._name, tracked.link)
        calls.add(int(conversation["calls"]), int(conversation["errors"]), conversation["facts"] or {}, names)
        return tracked


def at_rest(follower: Follower | None) -> bool:
    """Whether nothing of a conversation is pending, and both sides have sent bytes if the capture has both."""
    return follower is not None and follower.quiet and (follower.one_sided or not follower.unheard)
