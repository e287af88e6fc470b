"""Decodes indexed frames into columns: each frame once, together with all frames of its layout and kind.

A connection with an unusual frame (a bad verdict, or a fact that only its dialogue knows) is left to objects as a
whole: ``Contents.odd`` names it, and the results contain none of its frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wirekit.compiler.columns.ranges import CLEAN, DOUBTFUL, REFUSED, scan_ranges
from wirekit.conversation import Names
from wirekit.conversation.pairing import Kind, pairing_of
from wirekit.conversation.requests import (
    LEAST_UNHEARD_US,
    MOST_UNHEARD,
    MOST_UNHEARD_BYTES,
    MOST_WAITING,
    MOST_WAITING_BYTES,
)
from wirekit.decoding import decode
from wirekit.engine import Decoded, by_rows_once
from wirekit.errors import Misuse
from wirekit.registry import registry
from wirekit.road.begun import Begun, nothing_begun
from wirekit.road.facts import Facts, alike, context_of, facts_of
from wirekit.road.index import Index
from wirekit.road.names import NamesByKey
from wirekit.tables.batches import evaluate
from wirekit.tables.conversion import fitted
from wirekit.tables.declaration import Value
from wirekit.tables.plans import Declared, Plan, plan_of
from wirekit.tables.refusals import paths_of_refusals, refusals_of, refused
from wirekit.tables.scopes import OPENED_AT_ONCE, Crowded, Frames, Repeats, Scope, Unfit, Values
from wirekit.values import Check
from wirekit.wire.costs import MOST_OF_A_BYTE

COUNTED = ("topic", "partition")
"""The columns of messages by which the messages of a call are counted."""
KEPT = 64 << 20
"""Bytes of the columns of messages in a window that are kept until they are written."""


@dataclass(slots=True)
class Group:
    """The frames of one layout and kind."""

    plan: Plan
    key: str
    frames: Frames
    silent: tuple[str, int] | None


@dataclass(slots=True)
class Messages:
    """Messages in frames of one kind.

    Attributes:
        frames: the frame of each message.
        columns: their columns, or only those in ``COUNTED``.
        schema: the layout of the frames.
        make: makes all columns again, which were too large to keep; None if they are kept.
    """

    frames: NDArray[Any]
    columns: dict[str, pa.Array]
    schema: str
    make: Callable[[], dict[str, pa.Array]] | None = None

    def all_columns(self) -> dict[str, pa.Array]:
        """All columns."""
        return self.columns if self.make is None else self.make()

    def only(self, chosen: NDArray[np.bool_]) -> Messages:
        """Some of the messages."""
        if chosen.all():
            return self
        places = pa.array(np.flatnonzero(chosen))

        def chosen_of(columns: dict[str, pa.Array]) -> dict[str, pa.Array]:
            return {name: column.take(places) for name, column in columns.items()}

        make = None if self.make is None else lambda: chosen_of(self.all_columns())
        return Messages(self.frames[chosen], chosen_of(self.columns), self.schema, make)


@dataclass(slots=True)
class Contents:
    """The contents of the frames.

    Attributes:
        facts: the facts of all frames.
        odd: for each connection, whether it is left to objects.
        gaps: for each frame, the bytes at its end that no field explains.
        reported: for each frame, whether it is written to the tables now. False in begun connections for waiting
            requests, and for the frames after them where these depend on the answers.
        one_sided: for each connection, the field of ``CONVERSATION`` at the end of the window.
        rows: declared rows, with the frame of each.
        messages: the messages.
        checks: the failed checks of frames that are usual otherwise, by frame.
        holders: the frames that are declared to hold messages.
        names, most: for begun connections, by flow, the attributes of ``Skipped`` for the frames in ``reported``.
    """

    facts: Facts
    odd: NDArray[Any]
    gaps: NDArray[Any]
    reported: NDArray[Any]
    one_sided: NDArray[Any]
    rows: list[tuple[NDArray[Any], Declared]] = field(default_factory=list)
    messages: list[Messages] = field(default_factory=list)
    holders: list[NDArray[Any]] = field(default_factory=list)
    checks: dict[int, list[Check]] = field(default_factory=dict)
    names: dict[int, Names] = field(default_factory=dict)
    most: dict[int, int] = field(default_factory=dict)


@contextmanager
def read_contents(stream: NDArray[Any], index: Index, begun: Begun | None = None) -> Iterator[Contents]:
    """Decodes the frames of an index; ``Messages.make`` works only inside the context.

    Args:
        stream: ``Streams.stream``.
        index: the frames; those of odd connections are ignored.
        begun: connections that were followed up to a point in this window.
    """
    reader = _Reader(stream, index, begun or nothing_begun())
    try:
        yield reader.read()
    finally:
        reader.release()


def outline(stream: NDArray[Any], index: Index, begun: Begun) -> Contents | None:
    """``facts`` and ``reported`` of begun connections, without decoding their frames.

    Args:
        stream, index, begun: the same as for ``read_contents``.

    Returns:
        None if these depend on the contents of frames, which may declare names or agree on a frame size.
    """
    reader = _Reader(stream, index, begun)
    try:
        return reader.outline()
    finally:
        reader.release()


class _Reader:
    def __init__(self, stream: NDArray[Any], index: Index, begun: Begun) -> None:
        self.stream, self.index, self.begun = stream, index, begun
        self.odd = index.odd.copy()
        self.repeats, self.room = Repeats(), KEPT
        self.groups: list[Group] = []
        self.of_frame = np.full(index.kind.size, -1, np.int64)  # the group of each frame
        self.row_of = np.zeros(index.kind.size, np.int64)
        self.names: dict[str, NamesByKey] = {}
        self.agreed: list[tuple[NDArray[Any], NDArray[Any]]] = []  # frames, and the frame sizes that they allow
        self._naming = np.zeros(index.kind.size, bool)  # whether a frame declares names, or agrees on a frame size

    def read(self) -> Contents:
        """The contents of all frames."""
        contents = self._undecoded()
        facts, index = contents.facts, self.index
        for members in alike(facts, index):
            self._scan(members, contents)
        self._silence(facts)
        self._stay_within()
        self._name()
        self._hold_back(contents)
        for group in self.groups:
            try:
                frames = group.frames
                rows = [(frames.numbers[each.rows], each) for each in group.plan.rows(frames)]
                holders = frames.numbers[group.plan.holds_messages(frames)]
                messages = list(self._messages(group))
            except Unfit:
                self._doubt(group.frames.numbers)
                continue
            contents.rows += rows
            contents.holders.append(holders)
            contents.messages += messages
        self._hand_over(contents)
        return contents

    def _messages(self, group: Group) -> Iterator[Messages]:
        """The messages of a group, in parts that fit into memory."""
        rows, begin = group.frames.batch.num_rows, 0
        step = end = rows
        while begin < end:
            frames = group.frames.part(begin, end)
            try:
                places, columns = group.plan.messages(frames)
            except Crowded as crowded:
                end = begin + crowded.rows
                step = max(1, crowded.rows * 3 // 4)  # the next parts, if similar, are not crowded
                continue
            make = None
            size = sum(column.nbytes for column in columns.values())
            if size > self.room:
                make = partial(_made_again, group.plan, frames)
                columns = {name: columns[name] for name in COUNTED if name in columns}
            else:
                self.room -= size
            if places.size:
                yield Messages(frames.numbers[places], columns, group.key, make)
            step = 2 * step if 2 * size < OPENED_AT_ONCE else step
            begin, end = end, min(rows, end + step)

    def outline(self) -> Contents | None:
        """The contents without decoding, see the function of this name."""
        contents = self._undecoded()
        facts, index = contents.facts, self.index
        for members in alike(facts, index):
            first = int(members[0])
            kind, key = index.kinds[int(index.kind[first])], facts.schemas[int(facts.schema[first])]
            plan = plan_of(key, kind.api)
            if plan.declares_names or kind.most:
                return None
            alone = members[~np.isin(members, index.request)]
            if kind.silent is not None and alone.size:
                path, _ = kind.silent
                batch, states = scan_ranges(key, self.stream, index.start[alone], index.stop[alone], fields=[path])
                if (states == REFUSED).any():
                    return None
                frames = Frames(plan.protocol, batch, alone, self._asked, self._named, self._doubted, self.repeats)
                self.groups.append(Group(plan, key, frames, kind.silent))
        self._silence(facts)
        self._stay_within()
        self._hold_back(contents)
        return None if self.odd.any() else contents

    def _undecoded(self) -> Contents:
        """The contents that follow from the index alone."""
        count = self.index.kind.size
        one_sided = np.zeros(self.odd.size, bool)
        return Contents(facts_of(self.index), self.odd, np.zeros(count, np.int64), np.ones(count, bool), one_sided)

    def release(self) -> None:
        """Drops the references to the frames: they refer to the reader, and the cycle would keep their arrays alive."""
        self.groups.clear()
        self.names.clear()

    def _doubt(self, frames: NDArray[Any]) -> None:
        connections = self.index.connection[frames]
        self.odd[connections] = True
        np.minimum.at(self.index.irregular, connections, frames)

    def _scan(self, members: NDArray[Any], contents: Contents) -> None:
        """Decodes frames that are all of one layout and kind."""
        index, facts, first = self.index, contents.facts, int(members[0])
        kind = index.kinds[int(index.kind[first])]
        protocol, key = facts.protocols[int(facts.protocol[first])], facts.schemas[int(facts.schema[first])]
        context = context_of(index, facts, first)
        request = int(index.request[first])
        plan = plan_of(key, kind.api)
        refusals = refusals_of(key)
        question = index.kinds[int(index.kind[request])] if request >= 0 else None
        answers = [] if question is None else [each for each in (question.refusal, question.unusual_answer) if each]
        headed = kind.headed or (question is not None and question.headed and not question.refusal)
        more = [path for path, _ in answers]
        more += [*([kind.silent[0]] if kind.silent else []), *([kind.most] if kind.most else [])]
        more += paths_of_refusals(key)
        try:
            fields = plan.fields(key, more, context)
        except (Unfit, Misuse):  # the layout does not fit columns
            self._doubt(members)
            return
        batch, states = scan_ranges(
            key,
            self.stream,
            index.start[members],
            index.stop[members],
            fields=[*fields, "@offset", "@length", "@gap"],
            context=context,
        )
        good = states == CLEAN
        rows = np.flatnonzero(states < REFUSED)
        gaps = np.asarray(batch.column("@gap")) if "@gap" in batch.schema.names else np.zeros(rows.size, np.int64)
        if headed:
            contents.gaps[members[rows]] = gaps
        else:
            for row in np.flatnonzero(gaps).tolist():
                good[rows[row]] &= self._explained(int(members[rows[row]]), key, batch, context)
        for row in np.flatnonzero(states == DOUBTFUL).tolist() if plan.message_checks and not headed else ():
            failed = self._failed(int(members[row]), key, plan.message_checks, context)
            if failed:
                contents.checks[int(members[row])] = failed
                good[row] = True
        if not plan.counts_messages:
            limits, sizes = registry.protocol(protocol).limits, index.stop[members] - index.start[members]
            large = sizes * MOST_OF_A_BYTE > limits.memory + limits.memory_ratio * sizes
            for row in np.flatnonzero(good & large).tolist():
                data = self._bytes(int(members[row]))
                if by_rows_once(registry[key], data, 0, context, limits) is None:
                    states[row], good[row] = REFUSED, False
        if not good.all():
            self._doubt(members[~good])
            batch = batch.filter(pa.array(good[rows]))
            members = members[good]
        frames = Frames(protocol, batch, members, self._asked, self._named, self._doubted, self.repeats)
        try:
            plan.check(frames)
            self._doubt(members[refused(refusals, frames)])
            if question is not None:
                self._doubt(members[_unusual_answers(question, frames)])
        except Unfit:
            self._doubt(members)
            return
        if kind.most:
            self._bound(frames, kind.most)
        self.of_frame[members], self.row_of[members] = len(self.groups), np.arange(members.size)
        self.groups.append(Group(plan, key, frames, kind.silent))

    def _explained(self, frame: int, key: str, batch: pa.RecordBatch, context: dict[str, Any]) -> bool:
        """Whether the bytes of a frame that are in no column of its batch are in fields that have no column."""
        if b"wirekit.left_out" not in batch.schema.metadata:
            return False
        decoded = self._decoded(frame, key, context)
        return decoded.error is None and not decoded.gaps

    def _decoded(self, frame: int, key: str, context: dict[str, Any]) -> Decoded:
        limits = registry.protocol(registry[key].protocol).limits
        return decode(self._bytes(frame), key, context=context, limits=limits)

    def _bytes(self, frame: int) -> bytes:
        data: bytes = self.stream[int(self.index.start[frame]) : int(self.index.stop[frame])].tobytes()
        return data

    def _failed(self, frame: int, key: str, message_checks: frozenset[str], context: dict[str, Any]) -> list[Check]:
        """The failed checks of a frame; empty if anything else in it is unusual as well."""
        if self.index.connection[frame] in self.begun.flows[self.begun.unheard.any(axis=1)]:
            return []
        decoded = self._decoded(frame, key, context)
        failed = [check for check in decoded.checks if check.status == "bad"]
        usual = decoded.error is None and not decoded.gaps and all(check.path in message_checks for check in failed)
        return failed if usual else []

    def _bound(self, frames: Frames, path: str) -> None:
        """Leaves connections to objects that have a larger frame than the two sides have agreed on."""
        index = self.index
        most = np.asarray(fitted(Scope(frames).path(path), "bigint").fill_null(0))
        rows = np.flatnonzero(most > 0)
        if rows.size:
            numbers = frames.numbers[rows]
            self._doubt(numbers[self._largest[index.connection[numbers]] > most[rows]])
            self.agreed.append((numbers, most[rows]))
            self._naming[numbers] = True

    @cached_property
    def _largest(self) -> NDArray[Any]:
        """For each connection, the size of its largest frame in bytes."""
        largest = np.zeros(self.index.odd.size, np.int64)
        np.maximum.at(largest, self.index.connection, self.index.stop - self.index.start)
        return largest

    def _stay_within(self) -> None:
        """Leaves begun connections to objects that have a larger frame than was agreed in earlier windows."""
        flows, most = self.begun.flows, self.begun.conversations["most"]
        self.odd[flows] |= (most > 0) & (self._largest[flows] > most)

    def _hand_over(self, contents: Contents) -> None:
        """Collects the names and agreed sizes in begun connections, for objects that may continue them.

        Objects read the frames of odd connections, with their names, from the first frame on.
        """
        begun = self.begun.flows[~self.odd[self.begun.flows]]
        for name, names in self.names.items():
            for flow, key, columns in names.last(begun, contents.reported):
                contents.names.setdefault(flow, {}).setdefault(name.partition(".")[2], {})[key] = columns
        for frames, most in self.agreed:
            flows = self.index.connection[frames]
            here = np.flatnonzero(contents.reported[frames] & np.isin(flows, begun))
            for place in here[np.argsort(frames[here])].tolist():
                contents.most[int(flows[place])] = int(most[place])

    def _silence(self, facts: Facts) -> None:
        """Marks the requests that ask for no response; a connection with a response to one is left to objects."""
        for group in self.groups:
            if group.silent is not None and group.frames.batch.num_rows:
                path, value = group.silent
                answered = fitted(Scope(group.frames).path(path), "bigint").fill_null(value - 1)
                facts.answered[group.frames.numbers[np.asarray(answered) == value]] = False
        asked = self.index.request
        responses = np.flatnonzero(asked >= 0)
        self._doubt(responses[~facts.answered[asked[responses]]])

    def _hold_back(self, contents: Contents) -> None:
        """Marks requests that wait for a later frame, and the frames that depend on them, as not reported.

        Such a frame is in a later window, or is cut at the end of the connection.

        Later frames depend on a waiting request if the request or a later frame declares names, if the protocol answers
        in order and a later request is answered already, or if the answer must be examined by objects.
        """
        index, facts, reported = self.index, contents.facts, contents.reported
        answers = index.request >= 0
        waits = facts.answered.copy()
        waits[index.request[answers]] = False
        open_here = np.zeros(index.odd.size, bool)
        open_here[self.begun.flows[~self.begun.final | index.cut[self.begun.flows]]] = True
        contents.one_sided[:] = self._one_sided(waits)
        open_here &= ~contents.one_sided
        waiting = np.flatnonzero(waits & open_here[index.connection])
        if not waiting.size:
            return
        flows, first = np.unique(index.connection[waiting], return_index=True)
        since = np.full(index.odd.size, index.kind.size)
        since[flows] = waiting[first]
        particular = np.array([each.particular for each in index.kinds], bool)
        orders = {name: _in_order(name) for name in {*index.protocols} - {""}}
        ordered = np.array([orders.get(name, False) for name in index.protocols], bool)
        matters = np.zeros(index.odd.size, bool)
        matters[index.connection[waiting[particular[index.kind[waiting]]]]] = True
        naming = np.flatnonzero(self._naming)
        matters[index.connection[naming[naming >= since[index.connection[naming]]]]] = True
        passed = np.flatnonzero(answers & (index.request > since[index.connection]))
        matters[index.connection[passed]] |= ordered[index.connection[passed]]
        for flow in np.flatnonzero(matters).tolist():
            begin, end = int(index.begins[flow]), int(index.begins[flow + 1])
            pending = np.cumsum(facts.answered[begin:end].astype(np.int64) - answers[begin:end])
            none = np.flatnonzero(pending == 0)
            reported[begin + (int(none[-1]) + 1 if none.size else 0) : end] = False
        reported[waiting] = False

    def _one_sided(self, waits: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """For each connection, whether only one side is captured and too many requests wait for too long.

        Objects follow a connection whose oldest requests are dropped before.
        """
        index, begun = self.index, self.begun
        one_sided, undecided = np.zeros((2, self.odd.size), bool)
        one_sided[begun.flows] = begun.alone & begun.conversations["one_sided"]
        undecided[begun.flows] = begun.alone & ~begun.conversations["one_sided"]
        requests = np.flatnonzero(waits & undecided[index.connection])
        flows, sizes = index.connection[requests], (index.stop - index.start)[requests]
        oldest = np.searchsorted(flows, flows)
        count = np.arange(1, requests.size + 1) - oldest
        size = np.cumsum(sizes) - (np.cumsum(sizes) - sizes)[oldest]
        late = index.time[requests] - index.time[requests[oldest]] > LEAST_UNHEARD_US
        one_sided[flows[late & ((count > MOST_UNHEARD) | (size > MOST_UNHEARD_BYTES))]] = True
        self._doubt(requests[~late & ((count > MOST_WAITING) | (size > MOST_WAITING_BYTES))])
        return one_sided

    def _doubted(self, frames: Frames, rows: NDArray[Any]) -> None:
        self._doubt(frames.numbers[rows])

    def _asked(self, frames: Frames, value: Value, kind: str) -> Values:
        """A value of the requests that some frames answer."""
        requests = self.index.request[frames.numbers]
        groups = np.where(requests >= 0, self.of_frame[requests], -1)
        pieces: list[pa.Array] = []
        places = np.full(requests.size, -1, np.int64)
        count = 0
        for number in np.unique(groups[groups >= 0]).tolist():
            values = fitted(evaluate(value, Scope(self.groups[number].frames), kind), kind)
            here = np.flatnonzero(groups == number)
            places[here] = count + self.row_of[requests[here]]
            pieces.append(values)
            count += len(values)
        if not pieces:
            return Values(pa.nulls(requests.size))
        return Values(pa.concat_arrays(pieces).take(pa.array(places, mask=places < 0)))

    def _name(self) -> None:
        """Collects the names that are declared on each connection."""
        by_name: dict[str, list[tuple[NDArray[Any], Values, dict[str, Values]]]] = {}
        for (name, kind), before in self._named_before().items():
            frames, names_before, texts = zip(*before, strict=True)
            columns = {
                column: Values(pa.array([each.get(column) for each in texts], pa.string()))
                for column in sorted({column for each in texts for column in each})
            }
            by_name.setdefault(name, []).append(
                (np.array(frames, np.int64), Values(pa.array(names_before, kind)), columns)
            )
        for group in self.groups:
            try:
                for name, rows, keys, columns in group.plan.names(group.frames):
                    protocol = group.frames.protocol
                    by_name.setdefault(f"{protocol}.{name}", []).append((group.frames.numbers[rows], keys, columns))
                    self._naming[group.frames.numbers[rows]] = True
            except Unfit:
                self._doubt(group.frames.numbers)
        for name, pieces in by_name.items():
            names = self.names[name] = NamesByKey(self.index.connection, pieces)
            self.odd[names.crowded] = True

    def _named_before(self) -> dict[tuple[str, pa.DataType], list[tuple[int, Any, dict[str, Any]]]]:
        """The names that begun connections declared in earlier windows, as if their first frames declared them.

        Connections with a key or text that columns cannot hold are left to objects.

        Returns:
            (frame, key, columns) for each, by name and type of key.
        """
        by_name: dict[tuple[str, pa.DataType], list[tuple[int, Any, dict[str, Any]]]] = {}
        conversations = self.begun.conversations
        with_names = conversations[conversations["names"].astype(bool)]
        columns_of = (with_names[each].tolist() for each in ("connection", "protocol", "names"))
        for flow, protocol, names in zip(*columns_of, strict=True):
            frame = int(self.index.begins[flow])
            if self.odd[flow] or frame == int(self.index.begins[flow + 1]):
                continue
            items = [(name, *item) for name, keys in names.items() for item in keys.items()]
            self.odd[flow] |= not all(_is_held(each) for _, key, texts in items for each in (key, *texts.values()))
            for name, key, columns in items if not self.odd[flow] else ():
                kind = pa.string() if isinstance(key, str) else pa.int64() if key < 1 << 63 else pa.uint64()
                by_name.setdefault((f"{protocol}.{name}", kind), []).append((frame, key, columns))
        return by_name

    def _named(self, frames: Frames, name: str, keys: Values, column: str) -> Values:
        names = self.names.get(f"{frames.protocol}.{name}")
        if names is None:
            return Values(pa.nulls(frames.numbers.size))
        return names.column(frames, self.index.connection[frames.numbers], keys, column)


def _made_again(plan: Plan, frames: Frames) -> dict[str, pa.Array]:
    """The columns of the messages of frames."""
    return plan.messages(replace(frames, repeats=Repeats()))[1]


def _in_order(protocol: str) -> bool:
    """Whether a protocol's responses come in the order of requests."""
    pairing = pairing_of(protocol)
    return pairing is not None and pairing.in_order


def _is_held(value: Any) -> bool:
    """Whether a column of signed or unsigned 64-bit numbers, or of text, can hold a value."""
    if isinstance(value, str):
        return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)
    return isinstance(value, int) and -(1 << 63) <= value < 1 << 64


def _unusual_answers(request_kind: Kind, frames: Frames) -> NDArray[Any]:
    """For each answer to requests of a kind, whether it is left to the dialogue."""
    unusual = np.zeros(frames.numbers.size, bool)
    for declared, usual in ((request_kind.refusal, True), (request_kind.unusual_answer, False)):
        if declared is not None:
            path, number = declared
            values = fitted(Scope(frames).path(path), "bigint")
            unusual |= np.asarray(pc.fill_null(pc.equal(values, number), not usual)) != usual
    return unusual
