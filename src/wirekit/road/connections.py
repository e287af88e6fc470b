"""The connections of a capture from window to window.

``streams`` follows plain connections up to an irregularity, and objects follow them from there on, with their state
(``tracking``). Objects give a connection back if nothing of it is pending, within a window or at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wirekit.capture.endpoints import endpoint
from wirekit.capture.follow import Flow, Follower
from wirekit.capture.links import Choice, Link, connection_name
from wirekit.capture.tcp import Closed, Data, Duplicate, Event, Settings
from wirekit.conversation import Conversation
from wirekit.conversation.joined import recognise_joined
from wirekit.pipeline.carried import pair_of
from wirekit.pipeline.summary import failure
from wirekit.registry import registry
from wirekit.road.begun import Begun, conversations, nothing_begun
from wirekit.road.events import SIDES, events, segment_of
from wirekit.road.joined import Attempt, begins_whole, first_attempts, usual_beginnings
from wirekit.road.packets import RANKS, Endpoints
from wirekit.road.streams import AT_END, LEAST, REASONS, STATE, Streams, silent_streams, word
from wirekit.road.tails import Tail
from wirekit.road.tracking import OVER, Followed, TrackedFlow, Tracking, at_rest
from wirekit.road.windows import Window
from wirekit.tables.columns import CONNECTIONS, FATES

if TYPE_CHECKING:
    from wirekit.pipeline.flows import Writer
    from wirekit.road.begun import Followed as FollowedFrames

MOST_CARRIED = 64
CARRIED_BYTES = 1 << 16
"""Limits on the frames of a connection that are carried to the next window: their number, and their bytes."""
LAST, RESET = (STATE.index(each) for each in ("last", "reset"))
AFTER_WINDOW = AT_END + 1
"""The time of ``Writer.arrival`` for items that come with the end of a window; objects report them later."""
_NO_TIME = 1 << 62
"""The number for a missing time."""


class Connections:
    """The connections of a capture.

    Attributes:
        late: the same as in ``Tracking``.
        done: for each flow of a window, whether it is finished in this window.

    Args:
        name: the name of the capture.
        endpoints: the addresses with the numbers of endpoints.
        choice: how protocols are chosen.
        settings: settings of the TCP reassembly.
        files: the number of each file of the capture, for its segments.
        writer: stores the calls of the connections that objects follow.
        earlier: returns the flow between two addresses, the lower one first, that an earlier bundle has stored; None
            if there is none.
    """

    def __init__(
        self,
        name: str,
        endpoints: Endpoints,
        choice: Choice,
        settings: Settings,
        files: list[int],
        writer: Writer,
        earlier: Callable[[tuple[str, str]], Flow | None] | None = None,
    ) -> None:
        self._objects = objects = Tracking(name, endpoints, choice, settings, writer)
        self._states, self._tails, self._conversations = objects.states, objects.tails, objects.conversations
        self.late = objects.late
        self._name, self._endpoints = name, endpoints
        self._choice = choice
        self._settings = settings
        self._files = files
        self._writer = writer
        self.done = np.zeros(0, bool)
        self._earlier = earlier
        self._places: dict[int, tuple[int, int]] = {}  # by flow of a window: where the unread bytes of both sides begin
        self._rows = self._active = np.zeros(0, np.int64)  # rows of States: of the window, of the last one
        self._beginnings: list[tuple[Any, Any, Any]] = []  # for ``begun``: flows, places, unheard sides
        self._attempts: dict[int, Attempt] = {}  # of flows of a window, as ``first_attempts`` has them

    def _restore(self, row: int) -> bool:
        """Restores a flow that an earlier bundle has stored; returns False if there is none."""
        states = self._states
        pair = pair_of(*(self._endpoints.text(int(end[row])) for end in (states.low, states.high)))
        flow = self._earlier(pair) if self._earlier is not None else None
        if flow is None:
            return False
        states.count[row] = flow.count
        tracked = self._objects.flows[row] = TrackedFlow(
            row, link=flow.link, follower=flow.follower, connection=flow.connection
        )
        if tracked.connection is not None and tracked.connection.settled:
            self._objects.give_back(tracked, tracked.connection)
            self._objects.note_end(tracked)
        return True

    @property
    def rows(self) -> range:
        """The row numbers of all flows."""
        return range(self._states.size)

    def leave(self, row: int) -> tuple[tuple[str, str], Flow]:
        """Removes a flow; returns its addresses, the lower one first, and its state for the next bundle."""
        states = self._states
        tracked, flow = self._objects.of(row), Flow(self._choice, self._settings)
        flow.link, flow.follower, flow.count = tracked.link, tracked.follower, int(states.count[row])
        if tracked.connection is not None or states.plain[row]:
            flow.connection = tracked.connection or self._objects.connection(tracked)
        del self._objects.flows[row]
        return pair_of(*(self._endpoints.text(int(end[row])) for end in (states.low, states.high))), flow

    def recalled(self, row: int) -> Iterator[Followed]:
        """Lets objects follow the frames of a flow that were carried from earlier windows."""
        yield from self._objects.recalled(self._objects.of(row))

    def take_back(self, row: Mapping[str, Any], writer: Writer) -> bool:
        """Takes back a row of ``connections`` that later packets may still change, with times as numbers.

        Returns:
            False if the row is final, because another connection of the flow has begun.
        """
        ends = [endpoint(row[f"{side}_address"], row[f"{side}_port"]) for side in SIDES]
        states, tracked = self._states, self._objects.of(self._states.row(*map(self._endpoints.number, ends)))
        if not states.reported[tracked.row] or row["ordinal"] != states.count[tracked.row] - 1:
            return False
        client, server = ends
        name = connection_name(client, server, row["ordinal"])
        opened_us, closed = (_NO_TIME if row[each] is None else row[each] for each in ("opened", "closed"))
        link = Link(name, client, server, opened_us, row["known_start"], closed, row["protocol"], row["reason"])
        for side in SIDES:
            for fate in FATES:
                if row[f"{side}_{fate}"]:
                    link.count(side, fate, row[f"{side}_{fate}"])
        facts = {column: row[column] for column in CONNECTIONS.declared if row[column] is not None}
        writer.calls_of(self._name, link).add(row["calls"], row["errors"], facts, {})
        writer.summary.file(self._name).uncount(link)
        tracked.link, states.reported[tracked.row] = link, False
        return True

    def begin_window(self) -> None:
        """Begins another window: see ``silent``."""
        self._active = self._active[:0]

    def resume(self, streams: Streams) -> None:
        """Fills in the state of flows that earlier windows have seen."""
        states, before = self._states, self._states.size
        self.done, self._places = np.zeros(streams.odd.size, bool), {}
        self._conversations.compact()
        ends = streams.client, streams.server
        rows = self._rows = states.rows(np.minimum(*ends), np.maximum(*ends))
        self._active = np.append(self._active, rows)
        streams.rows = rows
        is_known = np.arange(states.size) < before
        if self._earlier is not None:
            is_known[before:] = [self._restore(row) for row in range(before, states.size)]
        streams.resumed[:] = states.plain[rows]
        streams.odd[:] = is_known[rows] & ~states.plain[rows]
        flows = np.flatnonzero(streams.resumed)
        rows = rows[flows]
        streams.client[flows], streams.server[flows] = states.client[rows], states.servers(rows)
        streams.known[flows], streams.opened[flows] = states.known[rows], states.opened[rows]
        streams.state[flows] = states.words_of(rows)

    def carried_bytes(self) -> int:
        """The number of bytes in carried frames."""
        return self._conversations.carried_bytes()

    def tails(self, odd: NDArray[np.bool_], sizes: NDArray[np.int64]) -> list[Tail]:
        """The first bytes of frames that earlier windows cut, for the sides that continue in this window."""
        return self._tails.take(odd, sizes, self._rows, self._states.size)

    def odd(self, window: Window, streams: Streams, flow: int, *, again: bool) -> Iterator[Followed]:
        """Lets objects follow a flow of a window, packet by packet, from the first one that has not been read.

        Args:
            window, streams: the window.
            flow: the flow.
            again: whether to stop as soon as nothing is pending, so that columns follow the next packets, if there are
                ``LEAST``.
        """
        packets = window.packets
        tracked = self._objects.of(self._rows[flow])
        self._objects.ending.pop(tracked.row, None)
        if tracked.connection is None:
            tracked.connection = self._objects.connection(tracked)
            self._states.plain[tracked.row] = False
        connection = tracked.connection
        reached, end = int(streams.reached[flow]), int(streams.begins[flow + 1])
        streams.reached[flow] = end
        for place, row in enumerate(streams.order[reached:end].tolist(), reached + 1):
            self._writer.arrival = packets.arrival(row)
            yield from self._objects.follow(tracked, connection.feed(segment_of(packets, row, self._files)))
            if not again or end - place < LEAST or connection.ended or not connection.settled:
                continue
            if at_rest(tracked.follower) and self._objects.give_back(tracked, connection):
                self._objects.give_to_columns(tracked)
                streams.reached[flow] = place
                return
        if window.last:
            self._writer.arrival = AT_END, tracked.row * RANKS
            yield from self._objects.finished(tracked, connection)
        elif connection.settled:
            self._objects.give_back(tracked, connection)
            self._objects.note_end(tracked)
            self._objects.give_to_columns(tracked)

    def begin(self, streams: Streams, flows: NDArray[Any], protocols: list[str]) -> Iterator[Followed]:
        """Lets objects follow plain connections up to the point from which ``begun`` gives them to columns.

        Args:
            streams: the window.
            flows: the connections that reach beyond it.
            protocols: the protocol of each flow that begins in this window and is recognised, else "".
        """
        states, rows = self._states, self._rows[flows]
        fresh = resumable([protocols[flow] for flow in flows.tolist()])
        carries = (streams.starts[flows] < streams.stops[flows]).any(axis=1)
        heard = states.begun[rows] & (streams.offsets[flows] > 0).all(axis=1)
        pending = carries | streams.final[flows] | _closing(streams, flows)
        self.done[flows[heard & ~pending]] = True
        self.begin_fresh(streams, flows[fresh], protocols)
        self._begin_columns(streams, flows[heard & pending])
        by_objects = flows[~(fresh | heard | states.reported[rows])]
        joined = np.array([flow in self._attempts for flow in by_objects.tolist()], bool)
        yield from self._join(streams, by_objects[joined])
        for flow in by_objects[~joined].tolist():
            yield from self.begin_one(streams, flow)

    def begin_fresh(self, streams: Streams, flows: NDArray[Any], protocols: list[str]) -> None:
        """Gives columns connections that begin in this window, from the first byte on; their protocol is resumable."""
        if not flows.size:
            return
        states, rows = self._states, self._rows[flows]
        states.take(rows, streams, flows)
        states.count[rows], states.reported[rows] = 1, False
        self._conversations.add(conversations(rows, [protocols[flow] for flow in flows.tolist()]))
        self._begin_columns(streams, flows)

    def _begin_columns(self, streams: Streams, flows: NDArray[Any]) -> None:
        if flows.size:
            self._beginnings.append((flows, streams.starts[flows], np.zeros((flows.size, len(SIDES)), bool)))

    def _join(self, streams: Streams, flows: NDArray[Any]) -> Iterator[Followed]:
        """Begins connections that were joined in the middle, and that their first attempt may recognise.

        Columns follow those with a usual beginning from their first bytes on, or after a response whose request was
        before the capture; this response is reported here.
        """
        if not flows.size:
            return
        rows = self._rows[flows]
        self._states.take(rows, streams, flows)
        links = [self._objects.next_link(row) for row in rows.tolist()]
        self._recognise(streams, flows, links)
        protocols = np.array([link.protocol for link in links], object)
        readers = {name: Conversation(name, started=False) for name in {*protocols.tolist()} - {""}}
        usual, ahead = np.zeros(flows.size, bool), np.zeros(flows.size, np.int64)
        for name, reader in readers.items():
            of_protocol = np.flatnonzero(protocols == name)
            attempts = [self._attempts[flow] for flow in flows[of_protocol].tolist()]
            usual[of_protocol] = usual_beginnings(streams, flows[of_protocol], attempts, reader)
            ahead[of_protocol] = [each.ahead for each in attempts]
        for place in np.flatnonzero(~usual).tolist():
            row, link = int(rows[place]), links[place]
            self._objects.flows[row] = TrackedFlow(row, link=link, follower=Follower(link) if link.protocol else None)
            yield from self.begin_one(streams, int(flows[place]))
        places = streams.starts[flows] + np.stack([np.zeros_like(ahead), ahead], axis=1)
        begun = conversations(rows, protocols)
        begun["skipped"][:, 1] = ahead
        for place in np.flatnonzero(usual & (ahead > 0)).tolist():
            flow, link, (client, stop) = int(flows[place]), links[place], places[place].tolist()
            self._places[flow] = client, stop
            yield from self._report_unasked(streams, flow, link, readers[link.protocol], begun[place])
        self._conversations.add(begun[usual])
        self._beginnings.append((flows[usual], places[usual], np.stack([usual, ahead == 0], axis=1)[usual]))

    def _report_unasked(
        self, streams: Streams, flow: int, link: Link, reader: Conversation, row: Any
    ) -> Iterator[Followed]:
        """Reports the response that comes before the client's first frame, and counts it in the row of ``begun``."""
        stop, size = self._places[flow][1], self._attempts[flow].ahead
        frame = reader.preview("server", streams.stream[stop - size : stop].tobytes())
        frame.time_us = int(streams.times[np.searchsorted(streams.ends, stop)])
        frame.messages = reader.dialogue.application_messages(frame)
        sizes = np.array(self._attempts[flow].sizes)
        reached = (streams.starts[flow] + sizes)[sizes > 0]
        streams.recognised[flow] = streams.ranks[np.searchsorted(streams.ends, reached)].max()
        self._writer.arrival = streams.arrival(flow, 0)
        yield link, frame
        row["calls"], row["errors"], facts, names = self._writer.calls_of(self._name, link).take()
        row["facts"], row["names"] = facts or None, names or None
        if failure(frame) is not None:  # ``skipped`` counts it among the frames
            row["sizes"][1, [list(FATES).index(fate) for fate in ("frames", "quarantined")]] = -size, size
        self._writer.forget(link)

    def pass_by(
        self, streams: Streams, flow: int, places: tuple[int, int], frame: tuple[int, int]
    ) -> Iterator[Followed]:
        """Follows a begun connection through a frame that columns do not read, and to the next point of rest.

        Args:
            streams: the window.
            flow: the connection.
            places: where the frames of both sides end that columns have read.
            frame: the side of the frame, and its end in ``Streams.stream``.
        """
        self._places[flow], self.done[flow] = places, False
        yield from self.begin_one(streams, flow, beyond=frame)

    def begin_one(
        self, streams: Streams, flow: int, protocol: str = "", beyond: tuple[int, int] = (0, 0)
    ) -> Iterator[Followed]:
        """Follows the first unread frames of a connection up to the first point at which nothing is pending.

        If its ``protocol`` is given, both sides must have sent something before that point. ``beyond``: a side, and a
        place in ``Streams.stream`` that must have been read.
        """
        particular = bool(protocol)
        tracked = self._objects.of(self._rows[flow])
        if tracked.link is None and self._states.count[tracked.row] > 0:
            return
        self._link_of(streams, flow, tracked)
        before, final = self._places.get(flow), bool(streams.final[flow])
        places = list(before or map(int, streams.starts[flow]))
        if tracked.follower is None and tracked.link is not None and flow not in self._attempts:
            protocol = protocol or self._foreseen(streams, flow, tracked.link)
            if protocol:
                recognised = not tracked.link.protocol
                tracked.link.protocol = protocol
                tracked.follower = Follower(tracked.link, begun=recognised)
        at_once = tracked.follower is not None and tracked.follower.quiet and not tracked.follower.unheard
        at_once &= places[beyond[0]] >= beyond[1]
        if at_once and not final and not (streams.starts[flow] < streams.stops[flow]).any():
            return
        for rank, event in () if at_once else events(streams, flow, before):
            follower, there = tracked.follower, places[beyond[0]] >= beyond[1]
            if follower is not None and there and _may_leave(streams, flow, follower, event, particular=particular):
                break
            if not isinstance(event, Data):
                self._places[flow] = places[0], places[1]
                return
            self._writer.arrival = streams.arrival(flow, rank)
            yield from self._objects.follow(tracked, [event])
            places[SIDES.index(event.direction)] += len(event.data)
        self._places[flow] = places[0], places[1]
        follower = tracked.follower
        if tracked.link is None or follower is None or not follower.quiet:
            return
        unheard = follower.unheard
        if not (unheard and particular) and self._objects.put_into_columns(tracked, tracked.link, follower):
            self._beginnings.append(([flow], [places], [[side in unheard for side in SIDES]]))

    def begun(self, streams: Streams, before: Begun | None = None) -> Begun:
        """The connections that columns follow from here on, added to ``before``."""
        states = self._states
        open_conversations = self._conversations
        open_conversations.compact()
        before = before or nothing_begun()
        if not self._beginnings:
            return before
        parts = [(before.flows, before.places, before.unheard), *self._beginnings]
        flows, places, unheard = (np.concatenate(each) for each in zip(*parts, strict=True))
        self._beginnings = []
        order = np.argsort(flows)
        flows = flows[order]
        rows = self._rows[flows]
        final = streams.final[flows] & ~np.isin(rows, self._tails.rows)
        conversations, *frames = open_conversations.of_flows(rows, flows)
        ends = final & ~conversations["waits"]
        places = places[order]
        silent = (places == streams.stops[flows]) & (places - streams.starts[flows] + streams.offsets[flows] == 0)
        alone = silent.any(axis=1) & ~np.isin(rows, self._tails.rows)
        return Begun(conversations, states.count[rows] - 1, places, final, ends, unheard[order], alone, *frames)

    def look_ahead(self, streams: Streams, flows: NDArray[Any]) -> None:
        """Computes, before ``begin``, how many bytes it takes to recognise connections that were joined in the middle.

        Args:
            streams: the window.
            flows: the connections that no earlier window has packets of.
        """
        self._attempts = first_attempts(streams, flows)

    def _recognise(self, streams: Streams, flows: NDArray[Any], links: list[Link]) -> None:
        """Tries to recognise connections, attempt by attempt, and drops the attempts that recognise nothing.

        The protocol stays unknown if an attempt exchanges client and server.
        """
        unknown = [place for place, link in enumerate(links) if not link.protocol]
        while unknown:
            failed = []
            for place in unknown:
                flow, link = int(flows[place]), links[place]
                attempt = self._attempts.get(flow)
                if attempt is None:
                    continue
                bounds = zip(streams.starts[flow].tolist(), attempt.sizes, strict=True)
                heads = [streams.stream[start : start + size].tobytes() for start, size in bounds]
                recognised = recognise_joined(*heads, settled=False, names=attempt.names)
                if not recognised.protocol:
                    failed.append(place)
                elif not recognised.swapped:
                    link.protocol = recognised.protocol
            numbers = np.array([self._attempts.pop(int(flows[place])).number for place in failed], np.int64)
            self._attempts |= first_attempts(streams, flows[failed], numbers)
            unknown = failed

    @staticmethod
    def _foreseen(streams: Streams, flow: int, link: Link) -> str:
        """The protocol that a follower would recognise by a connection's first bytes in a window, "" for none.

        Notes when it would do so in ``streams.recognised``.
        """
        scout, protocol = Follower(replace(link)), link.protocol
        for rank, event in events(streams, flow) if not protocol else ():
            if not isinstance(event, Data):
                return ""
            protocol = scout.foresees(event)
            if scout.link.protocol:
                streams.recognised[flow] = rank
                break
        return protocol

    def skip(self, streams: Streams, frames: FollowedFrames, ended: NDArray[Any]) -> Iterator[Followed]:
        """Records the frames of begun connections that columns have written to the tables.

        Waiting frames are carried to the next window, with the first bytes of the frame after them. If they are many
        or large, objects follow them.

        Args:
            streams: the window.
            frames: the frames.
            ended: the flows whose rows of ``connections`` are in the tables as well.
        """
        states, flows = self._states, frames.flows
        rows = self._rows[flows]
        self._conversations.note(frames, self._rows)
        self.record_whole(ended)
        of_flow = frames.waiting["connection"]
        sizes = np.array(list(map(len, frames.waiting["data"])), np.int64)
        many = np.bincount(of_flow, minlength=streams.odd.size) > MOST_CARRIED
        large = np.bincount(of_flow, sizes, streams.odd.size) > CARRIED_BYTES
        crowded = (many | large)[flows]
        is_cut = (frames.places < streams.stops[flows]).any(axis=1)
        closing = _closing(streams, flows) | streams.final[flows]
        self.done[flows] = True
        for place in np.flatnonzero(states.begun[rows] & (is_cut | closing | crowded)).tolist():
            flow = int(flows[place])
            reached = self._places[flow] = self._tails.keep(
                streams, flow, int(rows[place]), frames.places[place].tolist()
            )
            is_complete = reached == tuple(streams.stops[flow].tolist())
            self.done[flow] = is_complete and not closing[place] and not crowded[place]
            if crowded[place]:
                yield from self._objects.recalled(self._objects.of(rows[place]))

    def record_whole(self, flows: NDArray[Any]) -> None:
        """Records connections that columns have reported."""
        rows = self._rows[flows]
        self._states.count[rows] = np.maximum(self._states.count[rows], 1)
        self._states.reported[rows], self._states.begun[rows] = True, False

    def _link_of(self, streams: Streams, flow: int, tracked: TrackedFlow) -> None:
        """Creates the link of a connection, unless it has one or has no event yet."""
        size = streams.stops[flow] - streams.starts[flow]
        if tracked.link is None and (streams.known[flow] or size.any() or streams.final[flow]):
            self._states.take(np.array([tracked.row]), streams, np.array([flow]))
            tracked.link = self._objects.next_link(tracked.row)

    def followed(self, window: Window, streams: Streams, flow: int) -> Iterator[Followed]:
        """Lets a follower read the bytes of a plain connection that columns have not read."""
        tracked = self._objects.of(self._rows[flow])
        reported = tracked.link is None and self._states.count[tracked.row] > 0  # in an earlier window
        if not reported:
            self._link_of(streams, flow, tracked)
        for rank, event in events(streams, flow, self._places.pop(flow, None)):
            self._writer.arrival = streams.arrival(flow, rank)
            yield from self._objects.follow(tracked, [event])
        self._writer.arrival = AT_END if window.last else AFTER_WINDOW, tracked.row * RANKS
        again = streams.duplicates[flow].tolist()
        yield from self._objects.follow(
            tracked, [Duplicate(side, size, 0) for side, size in zip(SIDES, again, strict=True) if size]
        )
        if streams.final[flow] and not reported:
            state = streams.state[flow]
            open_sides = [side for number, side in enumerate(SIDES) if state[word(number, "ended")] < 0]
            reason, time_us = REASONS[streams.reason[flow]], int(streams.closed[flow])
            if open_sides:
                yield from self._objects.follow(
                    tracked, [Closed("both" if len(open_sides) == 2 else open_sides[0], reason, time_us)]
                )
            if window.last and tracked.link is not None:
                self._objects.ending.pop(tracked.row, None)
                yield tracked.link, None

    def keep(self, streams: Streams, flows: NDArray[Any]) -> None:
        """Stores the state of plain connections after the packets that have been read."""
        rows, words = self._rows[flows], streams.state[flows]
        reset = np.flatnonzero(streams.final[flows] & (words[:, RESET] >= 0))
        over = np.where(words[reset, OVER] < 0, words[reset, LAST], words[reset, OVER])
        words[reset, OVER], words[reset, RESET] = over, -1
        for side in range(2):
            words[reset, word(side, "ended")] = over
        self._states.take(rows, streams, flows)
        self._states.put_words(rows, words)
        again = flows[self._states.begun[rows] & self.done[flows] & streams.duplicates[flows].any(axis=1)]
        self._conversations.count_duplicates(self._rows[again], streams.duplicates[again])
        for row in self._objects.flows.keys() & set(rows.tolist()):
            tracked = self._objects.flows[row]
            link, follower = tracked.link, tracked.follower
            self._objects.note_end(tracked)
            if link is None:
                if not any(tracked.gaps):
                    del self._objects.flows[row]
            elif follower is None:
                continue
            elif row in self._objects.ending:
                if not follower.swapped:
                    tracked.follower = link.dialogue = None  # late bytes are only counted
            else:
                self._objects.give_to_columns(tracked)
        self._conversations.pack()

    def ended(self, clock: int) -> Iterator[Followed]:
        """Ends the connections that no later packet can change.

        The state of connections that take no more late segments is forgotten.

        Args:
            clock: a time that no later packet is before, microseconds since the epoch.
        """
        flows, ending = self._objects.flows, self._objects.ending
        for row, time_us in list(ending.items()):
            self._writer.arrival = AFTER_WINDOW, row * RANKS
            if clock > time_us + self._settings.patience_us:
                del ending[row]
                tracked = flows[row]
                if tracked.link is not None and self._states.plain[row]:
                    yield tracked.link, None
                    del flows[row]
        over = self._states.ended_before(clock - self._settings.patience_us)
        waiting = np.array([row in flows and flows[row].link is not None for row in over.tolist()], bool)
        over = over[~waiting]
        self._states.forget(over)
        for row in flows.keys() & set(over.tolist()):
            del flows[row]

    def silent(self) -> Streams:
        """The open connections without packets in the last window, as a window; the end of the capture ends them."""
        states = self._states
        open_flows = states.begun[: states.size] & states.plain[: states.size]
        open_flows[self._active] = open_flows[self._tails.rows] = False
        rows = np.flatnonzero(open_flows)
        words = states.words_of(rows)
        is_complete = (words[:, RESET] < 0) & (words[:, OVER] < 0)
        for side in range(len(SIDES)):
            begun, size, acked, heard, ended = (
                words[:, word(side, name)] for name in ("begun", "size", "acked", "heard", "ended")
            )
            is_complete &= (ended >= 0) | ((acked <= size + 1) & ((begun > 0) | (heard == 0)))
        rows = self._rows = rows[is_complete]
        self._active = np.append(self._active, rows)
        self.done, self._places = np.zeros(rows.size, bool), {}
        return silent_streams(
            states.client[rows], states.servers(rows), states.known[rows], states.opened[rows], words[is_complete]
        )

    def end_inactive(self) -> Iterator[Followed]:
        """Ends the other flows without packets in the last window."""
        states = self._states
        inactive = np.ones(states.size, bool)
        inactive[self._active] = False
        silent = states.plain[: states.size] & (states.count[: states.size] == 0)
        for row in np.flatnonzero(inactive).tolist():
            tracked = self._objects.of(row) if states.begun[row] else self._objects.flows.get(row)
            if tracked is None and silent[row]:
                tracked = TrackedFlow(row)
            if tracked is None or (tracked.link is None and states.count[row] and tracked.connection is None):
                continue
            self._writer.arrival = AT_END, row * RANKS
            yield from self._objects.finished(tracked, tracked.connection or self._objects.connection(tracked))


def resumable(protocols: list[str]) -> NDArray[np.bool_]:
    """Whether columns may read the frames of some protocols from the first one on; not for "", an unknown one."""
    of_name = {name: registry.protocol(name).follow().resumable for name in {*protocols} - {""}}
    return np.array([of_name.get(name, False) for name in protocols], bool)


def _closing(streams: Streams, flows: NDArray[Any]) -> NDArray[Any]:
    """Whether a side of a connection ends in this window; objects need to know it to follow later packets."""
    return np.asarray((streams.ended[flows, :, 0] >= 0).any(axis=1))


def _may_leave(streams: Streams, flow: int, follower: Follower, event: Event, *, particular: bool) -> bool:
    """Whether columns may follow a connection from an event on.

    A side that has sent nothing so far must begin with a whole frame. Without a handshake the client must send first,
    because the server's first frame may answer a request from before the capture.
    """
    if not follower.quiet:
        return False
    unheard = follower.unheard
    if unheard:
        if particular or not isinstance(event, Data):
            return False
        if event.direction == "server" and not follower.link.known_start:
            return False
    return begins_whole(streams, flow, unheard, follower)
