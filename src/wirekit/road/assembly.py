"""Decoded frames to the tables: calls of requests with their answers, and what follows from several rows together.

The rules are those of ``wirekit.pipeline.calls``, over whole columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirekit.conversation import Message, Skipped
from wirekit.pipeline.flows import check_row
from wirekit.pipeline.ids import connection_id
from wirekit.pipeline.messages import embedded_rows
from wirekit.pipeline.rows import Rows
from wirekit.pipeline.summary import FileSummary
from wirekit.road.contents import NOT_THERE, Contents
from wirekit.road.index import Begun, Carried, Index, grouped
from wirekit.road.packets import PORT_BITS
from wirekit.road.streams import REASONS, Streams
from wirekit.tables.columns import (
    CALL_TOPICS,
    CALLS,
    CONNECTIONS,
    DECLARED,
    FATES,
    FRAMES,
    FROM_INPUTS,
    GROUP_EVENTS,
    MESSAGES,
    OFFSETS,
    SIDES,
    Table,
)  # fmt: skip
from wirekit.tables.records import Row, records
from wirekit.tables.times import DAY_US, EARLIEST_US, LATEST_US

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wirekit.pipeline.flows import Batch

SEVERAL = (CALL_TOPICS, GROUP_EVENTS, OFFSETS)
"""Tables that have several rows a call."""
OF_CALLS = ("client", "is_replica", "error")
"""Columns of ``calls`` that others depend on."""
OUTCOMES = pa.array(["answered", "unanswered", "one_way", "event"])
ERROR = ("error_code", "error")


Columns = dict[str, Any]
"""Columns by name: arrays, or functions that make them when they are wanted."""


@dataclass(frozen=True, slots=True)
class Followed:
    """Frames of a begun connection that are in the tables.

    Attributes:
        flow: the connection.
        places: of each side, where they end in ``Streams.stream``.
        waiting: those that are not in the tables, in the order of arrival.
        calls, errors: how many calls they are, and how many of these have an error.
        facts: columns of the table ``connections``.
        skipped: what their dialogue has to know.
    """

    flow: int
    places: tuple[int, int]
    waiting: list[Carried]
    calls: int
    errors: int
    facts: Row
    skipped: Skipped


class Assembly:
    """The tables of the connections that are usual.

    Args:
        file: the capture, as it was named to the run.
        streams, index, contents: what was read of it.
        address: of each endpoint's number the text.
        begun: connections of which objects give the other frames, and the row of ``connections``.
        tables: those that are wanted, with the columns that are.
    """

    def __init__(
        self,
        file: str,
        streams: Streams,
        index: Index,
        contents: Contents,
        address: Any,
        begun: Mapping[int, Begun] | None = None,
        tables: Mapping[str, Table] = FROM_INPUTS,
    ) -> None:
        self._tables = tables
        self.file, self.streams, self.index, self.contents = file, streams, index, contents
        self.facts = contents.facts
        self.flows = np.flatnonzero(~contents.odd)
        self._address = address
        self.begun = {flow: each for flow, each in (begun or {}).items() if not contents.odd[flow]}
        self.whole = np.array([flow for flow in self.flows.tolist() if flow not in self.begun], np.int64)
        kept = ~contents.odd[index.connection] & contents.kept
        self.frames = np.flatnonzero(kept)
        self.checks = [(frame, failed) for frame, failed in sorted(contents.checks.items()) if kept[frame]]
        self.first = np.flatnonzero(kept & (index.request < 0))
        self.call_of = np.full(index.connection.size, -1, np.int64)
        self.call_of[self.first] = np.arange(self.first.size)
        responses = np.flatnonzero(kept & (index.request >= 0))
        self.call_of[responses] = self.call_of[index.request[responses]]
        self.response = np.full(self.first.size, -1, np.int64)
        self.response[self.call_of[responses]] = responses
        self.messages = [each for each in map(self._kept_messages, contents.messages) if each is not None]

    def batches(self) -> Iterator[Batch]:
        """The tables that are wanted."""
        makers: dict[str, Callable[[], pa.Table]] = {
            FRAMES.name: self._frame_table,
            CALLS.name: lambda: self._calls[0],
            CONNECTIONS.name: self._connection_table,
            MESSAGES.name: self._message_table,
            **{table.name: partial(self._of_several, table.name) for table in SEVERAL},
        }
        for name, make in makers.items():
            if name in self._tables:
                found = make()
                if found.num_rows:
                    wanted = found.select([column.name for column in self._tables[name].columns])
                    for batch in wanted.to_batches():
                        yield name, batch
        yield from self._embedded()

    def count(self, summary: FileSummary) -> None:
        """Counts what these connections carry."""
        facts, frames = self.facts, self.frames
        codes = np.stack([facts.protocol[frames], facts.api[frames], facts.version[frames], facts.role[frames]])
        for (protocol, api, version, role), count in zip(*_counted(codes), strict=True):
            name = facts.apis[api] if api >= 0 else ""
            known = None if version == NOT_THERE else version
            summary.calls[facts.protocols[protocol], name, known, facts.roles[role]] += count
        summary.checks.update(check.kind for _, each in self.checks for check in each)
        for each in self.messages:
            summary.messages[each[2].partition(".")[0]] += each[0].size
        for flow in self.whole.tolist():
            summary.connections[self.index.protocols[flow]] += 1
        for fate, sizes in self._bytes().items():
            size = int(sizes[self.whole].sum())
            if size:
                summary.bytes[fate] += size

    def followed(self) -> Iterator[Followed]:
        """The state that objects need of the frames of begun connections that are in the tables."""
        calls, index = self._calls[0], self.index
        flows = np.array(sorted(self.begun), np.int64)
        told = self._declared_of_connections(flows)
        columns = {name: column.to_pylist() for name, column in told.items()}
        connection, failed = index.connection[self.first], np.asarray(calls.column("error").is_valid())
        order = np.argsort(connection, kind="stable")
        bounds = np.searchsorted(connection[order], [flows, flows + 1])
        clients = _whole(calls.column("client")).dictionary_encode()
        names_of = [*clients.dictionary.to_pylist(), None]
        client = np.asarray(clients.indices.fill_null(len(names_of) - 1))[order].tolist()
        errors = np.append(0, np.cumsum(failed[order])).tolist()
        called = list(
            zip(*(each[self.first[order]].tolist() for each in (self.facts.api, self.facts.version)), strict=True)
        )
        unkept = list(self._waiting(self._unkept))
        lefts = np.searchsorted(self._unkept, [index.begins[flows], index.begins[flows + 1]]).T.tolist()
        for number, (flow, (begin, end), (low, high)) in enumerate(
            zip(flows.tolist(), bounds.T.tolist(), lefts, strict=True)
        ):
            said = [names_of[each] for each in sorted(set(client[begin:end]))]
            places, skipped = self._left_over(flow, called[begin:end], said)
            yield Followed(
                flow,
                places,
                unkept[low:high],
                end - begin,
                errors[end] - errors[begin],
                {name: values[number] for name, values in columns.items() if values[number] is not None},
                skipped,
            )

    def undecoded(self, flow: int) -> Followed:
        """The same of a begun connection whose frames are not decoded here: without what calls and facts say."""
        first = self.first[self.index.connection[self.first] == flow]
        called = zip(*(each[first].tolist() for each in (self.facts.api, self.facts.version)), strict=True)
        left = self._unkept[slice(*np.searchsorted(self._unkept, self.index.begins[flow : flow + 2]))]
        places, skipped = self._left_over(flow, called, [])
        return Followed(flow, places, list(self._waiting(left)), 0, 0, {}, skipped)

    def _left_over(
        self, flow: int, called: Iterable[tuple[int, int]], clients: list[str | None]
    ) -> tuple[tuple[int, int], Skipped]:
        """Where the frames of a begun connection end that are in the tables, and ``Skipped``.

        Args:
            flow: the connection.
            called: API and version of its calls.
            clients: what these name as the client.
        """
        begun, apis = self.begun[flow], self.facts.apis
        client, server = map(max, self._reached[flow].tolist(), begun.places)
        skipped = Skipped(
            [name for name, end, begin in zip(SIDES, (client, server), begun.places, strict=True) if end > begin],
            clients,
            [(apis[api], version) for api, version in sorted(set(called)) if api >= 0],
            self.contents.names.get(flow, {}),
            self.contents.most.get(flow, 0),
        )
        return (client, server), skipped

    def _waiting(self, frames: NDArray[Any]) -> Iterator[Carried]:
        """Frames as the next window gets them."""
        index = self.index
        columns = (index.side, index.position, index.start, index.stop, index.time)
        for side, position, start, stop, time_us in zip(*(each[frames].tolist() for each in columns), strict=True):
            yield Carried(side, position, self.streams.stream[start:stop].tobytes(), time_us)

    @cached_property
    def _unkept(self) -> NDArray[Any]:
        """The frames that are not in the tables."""
        return np.flatnonzero(~self.contents.kept)

    @cached_property
    def _reached(self) -> NDArray[Any]:
        """(flow, side) where the last frame ends that came in this window, or -1."""
        index = self.index
        carried = np.zeros(index.odd.size, np.int64)
        for flow, each in self.begun.items():
            carried[flow] = len(each.carried)
        here = np.flatnonzero(np.arange(index.connection.size) >= (index.begins[:-1] + carried)[index.connection])
        reached = np.full((index.odd.size, len(SIDES)), -1, np.int64)
        np.maximum.at(reached, (index.connection[here], index.side[here]), index.stop[here])
        return reached

    # Ids, and what all rows of a connection or call have

    @cached_property
    def _ends(self) -> tuple[list[str], list[str]]:
        """Of the flows, the texts of client and server."""
        streams = self.streams
        return tuple([self._address(int(end)) for end in ends[self.flows]] for ends in (streams.client, streams.server))  # type: ignore[return-value]

    @cached_property
    def _connection_ids(self) -> pa.Array:
        """Of all flows; null for odd ones."""
        found: list[str | None] = [None] * self.index.odd.size
        for flow, client, server in zip(self.flows.tolist(), *self._ends, strict=True):
            ordinal = self.begun[flow].ordinal if flow in self.begun else 0
            found[flow] = connection_id(self.file, client, server, ordinal)
        return pa.array(found, pa.string())

    @cached_property
    def _addresses(self) -> dict[str, pa.Array]:
        """The columns of addresses, of ``flows``."""
        columns = {}
        for side, ends in zip(SIDES, (self.streams.client, self.streams.server), strict=True):
            ports = ends[self.flows] & (1 << PORT_BITS) - 1
            hosts, which = np.unique(ends[self.flows] - ports, return_inverse=True)
            texts = [self._address(host).rpartition(":")[0].strip("[]") for host in hosts.tolist()]
            columns[f"{side}_address"] = pa.array(texts, pa.string()).take(pa.array(which))
            columns[f"{side}_port"] = pa.array(ports.astype(np.int32))
        return columns

    def _addresses_of(self, flows: NDArray[Any]) -> Columns:
        def taken(name: str) -> pa.Array:
            place = np.zeros(self.index.odd.size, np.int64)
            place[self.flows] = np.arange(self.flows.size)
            return self._addresses[name].take(pa.array(place[flows]))

        return {f"{side}_{part}": partial(taken, f"{side}_{part}") for side in SIDES for part in ("address", "port")}

    @cached_property
    def _frame_ids(self) -> pa.Array:
        """Of ``frames``."""
        index, frames = self.index, self.frames
        side = pa.array([f"-{name[0]}-" for name in SIDES]).take(pa.array(index.side[frames]))
        connection = self._connection_ids.take(pa.array(index.connection[frames]))
        return pc.binary_join_element_wise(connection, side, pa.array(self._positions).cast(pa.string()), "")

    @cached_property
    def _positions(self) -> NDArray[Any]:
        """Of ``frames``, where in their direction they begin."""
        return self.index.position[self.frames]

    @cached_property
    def _place(self) -> NDArray[Any]:
        """Of each frame, its place among ``frames``."""
        place = np.zeros(self.index.connection.size, np.int64)
        place[self.frames] = np.arange(self.frames.size)
        return place

    @cached_property
    def _call_ids(self) -> pa.Array:
        """Of the calls."""
        return self._frame_ids.take(pa.array(self._place[self.first]))

    def _protocols(self, frames: NDArray[Any]) -> pa.Array:
        return pa.array(self.facts.protocols, pa.string()).take(pa.array(self.facts.protocol[frames]))

    def _of_calls(self, calls: NDArray[Any]) -> Columns:
        """The columns that rows of calls have in common."""
        first = self.first[calls]
        time = self.index.time[first]
        return {
            "call_id": lambda: self._call_ids.take(pa.array(calls)),
            "file": lambda: pa.repeat(self.file, calls.size),
            "date": lambda: _days(time),
            "protocol": lambda: self._protocols(first),
            "time": lambda: _times(time),
        }

    def _described(self, frames: NDArray[Any]) -> Columns:
        """API, version and correlation id."""
        facts = self.facts
        api, version = facts.api[frames], facts.version[frames]
        return {
            "api": lambda: pa.array(facts.apis, pa.string()).take(pa.array(api, mask=api < 0)),
            "version": lambda: _small(version, version == NOT_THERE),
            "correlation_id": lambda: pa.array(self.index.number[frames], mask=~facts.numbered[frames]),
        }

    # Tables

    def _frame_table(self) -> pa.Table:
        index, facts, frames = self.index, self.facts, self.frames
        time, flow = index.time[frames], pa.array(index.connection[frames])
        schema = pa.array(facts.schemas, pa.string())
        count = frames.size
        checks, sizes = FRAMES.schema.field("checks").type.value_type, index.stop[frames] - index.start[frames]
        failures = np.zeros(count, np.int32)
        for frame, each in self.checks:
            failures[self._place[frame]] = len(each)
        failed = pa.array([check_row(check) for _, each in self.checks for check in each], checks)
        gaps = self.contents.gaps[frames]
        unexplained = np.flatnonzero(gaps)
        ranges = pa.StructArray.from_arrays(
            [(self._positions + sizes - gaps)[unexplained], gaps[unexplained]], ["position", "length"]
        )
        return _table(
            self._tables[FRAMES.name],
            count,
            {
                "frame_id": lambda: self._frame_ids,
                "call_id": lambda: self._call_ids.take(pa.array(self.call_of[frames])),
                "connection_id": lambda: self._connection_ids.take(flow),
                "file": lambda: pa.repeat(self.file, count),
                "date": lambda: _days(time),
                "protocol": lambda: self._protocols(frames),
                "side": lambda: pa.array(SIDES).take(pa.array(index.side[frames])),
                "time": lambda: _times(time),
                "schema": lambda: schema.take(pa.array(facts.schema[frames])),
                **self._described(frames),
                "role": lambda: pa.array(facts.roles).take(pa.array(facts.role[frames])),
                "position": lambda: pa.array(self._positions),
                "length": pa.array(sizes),
                "checks_bad": pa.array(failures),
                "checks": pa.ListArray.from_arrays(np.append(0, np.cumsum(failures)).astype(np.int32), failed),
                "gaps": pa.ListArray.from_arrays(np.append(0, np.cumsum(gaps > 0)).astype(np.int32), ranges),
            },
        )

    @cached_property
    def _calls(self) -> tuple[pa.Table, dict[str, pa.Table]]:
        """``calls``, and the tables that have several rows a call."""
        index, facts, first, response = self.index, self.facts, self.first, self.response
        count = first.size
        answered = response >= 0
        waits = facts.answered[first]
        outcome = np.where(answered, 0, np.where(facts.role[first] == 0, 3, np.where(waits, 1, 2)))
        asked_at, answered_at = index.time[first], index.time[response]
        sizes = index.stop - index.start
        flow = index.connection[first]
        columns = {
            "call_id": lambda: self._call_ids,
            "connection_id": lambda: self._connection_ids.take(pa.array(flow)),
            "file": lambda: pa.repeat(self.file, count),
            "date": lambda: _days(asked_at),
            "protocol": lambda: self._protocols(first),
            **self._described(first),
            "outcome": lambda: OUTCOMES.take(pa.array(outcome)),
            **self._addresses_of(flow),
            "request_time": lambda: _times(asked_at),
            "response_time": lambda: _times(answered_at, ~answered),
            "latency_us": lambda: pa.array(answered_at - asked_at, mask=~answered),
            "request_bytes": lambda: pa.array(sizes[first]),
            "response_bytes": lambda: pa.array(sizes[response], mask=~answered),
            **self._declared_of_calls(),
        }
        own = {name: columns.get(name, pa.nulls(count, CALLS.schema.field(name).type)) for name in ERROR}
        several: dict[str, pa.Table] = {}
        call_topics: _Topics | None = None
        for table in SEVERAL:
            if table is not CALL_TOPICS and table.name not in self._tables:
                continue
            calls, rows = self._merged(table.name)
            if table is CALL_TOPICS:
                call_topics = _Topics(calls, rows, columns.get("topic"), count)
                self._count_messages(call_topics, columns)
            rows = self._with_errors(table.name, calls, rows, own, call_topics)
            if table.name in self._tables:
                several[table.name] = _table(self._tables[table.name], calls.size, {**self._of_calls(calls), **rows})
        assert call_topics is not None
        call_topics.complete(columns, own)
        wanted = CALLS.only({*OF_CALLS, *(self._tables[CALLS.name].names if CALLS.name in self._tables else ())})
        return _table(wanted, count, columns), several

    def _of_several(self, table: str) -> pa.Table:
        return self._calls[1][table]

    def _declared_of_calls(self) -> dict[str, pa.Array]:
        """The declared columns of ``calls``: the last value that is not null, a response's behind a request's."""
        pieces: list[list[tuple[NDArray[Any], dict[str, pa.Array]]]] = [[], []]
        for frames, declared in self.contents.rows:
            if declared.table == CALLS.name and frames.size:
                answers = self.index.request[frames] >= 0
                for side in (0, 1):
                    if (answers == bool(side)).all():
                        pieces[side].append((frames, declared.columns))
                    elif (answers == bool(side)).any():
                        raise AssertionError("a kind of frame asks and answers")
        found = {}
        for name in sorted({name for side in pieces for _, columns in side for name in columns}):
            having = [(frames, columns[name]) for side in pieces for frames, columns in side if name in columns]
            winner = np.full(self.first.size, -1, np.int64)
            count = 0
            for frames, column in having:
                calls = self.call_of[frames]
                there = np.flatnonzero(np.asarray(column.is_valid()) & (calls >= 0))
                winner[calls[there]] = count + there
                count += len(column)
            values = pa.concat_arrays([column for _, column in having])
            found[name] = values.take(pa.array(winner, mask=winner < 0))
        return found

    def _merged(self, table: str) -> tuple[NDArray[Any], dict[str, pa.Array]]:
        """The rows of a table with several a call, those of request and answer that agree as one: calls, columns."""
        pieces = []
        for frames, declared in self.contents.rows:
            if declared.table == table and frames.size:
                kept = np.flatnonzero(self.call_of[frames] >= 0)
                columns = declared.columns
                if kept.size < frames.size:
                    columns = {name: column.take(pa.array(kept)) for name, column in columns.items()}
                if kept.size:
                    pieces.append((frames[kept], declared.keys, columns))
        if not pieces:
            return np.zeros(0, np.int64), {}
        frames = np.concatenate([each for each, _, _ in pieces])
        declared_keys = np.concatenate([np.full(each.size, bits) for each, bits, _ in pieces])
        rows = pa.concat_tables([pa.table(columns) for _, _, columns in pieces], promote_options="default")
        order = np.argsort(frames, kind="stable")
        frames, declared_keys, rows = frames[order], declared_keys[order], rows.take(pa.array(order))
        columns = {name: _whole(rows.column(name)) for name in rows.schema.names}
        calls, answers = self.call_of[frames], self.index.request[frames] >= 0
        sides = np.zeros((self.first.size, 2), bool)
        sides[calls, answers.astype(np.int64)] = True
        both = (sides[:, 0] & sides[:, 1])[calls]
        if not both.any():
            return calls, columns
        common = np.full(self.first.size, (1 << len(DECLARED[table].keys)) - 1)
        np.bitwise_and.at(common, calls, declared_keys)
        key = calls.copy()
        for number, name in enumerate(DECLARED[table].keys):
            codes, size = _codes(columns[name]) if name in columns else (np.zeros(calls.size, np.int64), 1)
            key = key * size + np.where(common[calls] >> number & 1 != 0, codes, 0)
        asked, given = np.flatnonzero(both & ~answers), np.flatnonzero(both & answers)
        partner = np.full(calls.size, -1, np.int64)
        partner[given], merged = _partners(key[asked], key[given], asked)
        kept = np.ones(calls.size, bool)
        kept[merged] = False
        rows_left = np.flatnonzero(kept)
        rank = np.lexsort((rows_left, ~answers[rows_left], calls[rows_left]))
        rows_left = rows_left[rank]
        take, other = pa.array(rows_left), partner[rows_left]
        with_other = pa.array(other, mask=other < 0)
        return calls[rows_left], {
            name: pc.coalesce(column.take(take), column.take(with_other)) for name, column in columns.items()
        }

    def _with_errors(
        self,
        table: str,
        calls: NDArray[Any],
        rows: dict[str, pa.Array],
        own: dict[str, pa.Array],
        topics: _Topics | None,
    ) -> dict[str, pa.Array]:
        """Rows with the error of their call, or of their topic, where they have none."""
        rows = dict(rows)
        take = pa.array(calls)
        inherited = {name: column.take(take) for name, column in own.items()}
        if table == OFFSETS.name:
            rows["source"] = pa.repeat("request", calls.size)
            assert topics is not None
            failed = topics.failed_for(calls, rows)
            if failed is not None:
                place = pa.array(failed, mask=failed < 0)
                there = pa.array(failed >= 0)
                inherited = {
                    name: pc.if_else(there, topics.column(name).take(place), column)
                    for name, column in inherited.items()
                }
        error = rows.get("error")
        none = pa.array(np.ones(calls.size, bool)) if error is None else error.is_null()
        for name, column in inherited.items():
            mine = rows.get(name, pa.nulls(calls.size, column.type))
            rows[name] = pc.if_else(none, pc.coalesce(column, mine), mine)
        return rows

    def _count_messages(self, topics: _Topics, columns: dict[str, Any]) -> None:
        """Adds how many messages a call carried."""
        holds = np.zeros(self.first.size, bool)
        for frames in self.contents.holders:
            calls = self.call_of[frames]
            holds[calls[calls >= 0]] = True
        calls = [self.call_of[frames] for frames, _, _ in self.messages]
        counted = np.bincount(np.concatenate(calls), minlength=self.first.size) if calls else np.zeros(holds.size)
        columns["messages"] = pa.array(counted.astype(np.int32), mask=~holds)
        topics.count(
            holds,
            np.concatenate(calls) if calls else np.zeros(0, np.int64),
            _joined(
                [each[1].get("topic") for each in self.messages], [each[0].size for each in self.messages], pa.string()
            ),
            _joined(
                [each[1].get("partition") for each in self.messages],
                [each[0].size for each in self.messages],
                pa.int32(),
            ),
        )

    def _connection_table(self) -> pa.Table:
        flows, streams = self.whole, self.streams
        count = flows.size
        calls, columns = self._calls[0], {}
        of_call = self.index.connection[self.first]
        failed = of_call[np.asarray(calls.column("error").is_valid())]
        sizes = self._bytes()
        for side, name in enumerate(SIDES):
            for fate in FATES:
                of_fate = sizes.get(fate)
                amount = np.zeros(count, np.int64) if of_fate is None else of_fate[flows, side]
                columns[f"{name}_{fate}"] = pa.array(amount)
        opened, closed = streams.opened[flows], streams.closed[flows]
        return _table(
            self._tables[CONNECTIONS.name],
            count,
            {
                "connection_id": self._connection_ids.take(pa.array(flows)),
                "file": pa.repeat(self.file, count),
                "date": _days(opened),
                "protocol": pa.array(self.index.protocols, pa.string()).take(pa.array(flows)),
                **self._addresses_of(flows),
                "ordinal": pa.repeat(pa.scalar(0, pa.int32()), count),
                "opened": _times(opened),
                "closed": _times(closed),
                "reason": pa.array(REASONS).take(pa.array(streams.reason[flows])),
                "known_start": pa.array(streams.known[flows].astype(bool)),
                "calls": pa.array(np.bincount(of_call, minlength=self.index.odd.size)[flows]),
                "errors": pa.array(np.bincount(failed, minlength=self.index.odd.size)[flows]),
                **columns,
                **self._declared_of_connections(flows),
            },
        )

    def _declared_of_connections(self, flows: NDArray[Any]) -> dict[str, pa.Array]:
        """The declared columns of ``connections``: the first value that is not null."""
        pieces = [(frames, each) for frames, each in self.contents.rows if each.table == CONNECTIONS.name]
        found = {}
        for name in sorted({name for _, each in pieces for name in each.columns}):
            having = [(frames, each.columns[name]) for frames, each in pieces if name in each.columns]
            frames = np.concatenate([each for each, _ in having])
            values = pa.concat_arrays([column for _, column in having])
            there = np.flatnonzero(np.asarray(values.is_valid()))
            there = there[np.argsort(frames[there], kind="stable")[::-1]]
            winner = np.full(self.index.odd.size, -1, np.int64)
            winner[self.index.connection[frames[there]]] = there
            winner = winner[flows]
            found[name] = values.take(pa.array(winner, mask=winner < 0))
        return found

    def _bytes(self) -> dict[str, NDArray[Any]]:
        """Payload bytes by what became of them, of all flows and both sides."""
        streams, tails = self.streams, self.index.tails
        frames, left = tails - streams.starts, streams.stops - tails
        again = streams.duplicates
        return {"captured": frames + left + again, "frames": frames, "quarantined": left, "duplicate": again}

    def _kept_messages(self, each: Any) -> tuple[NDArray[Any], dict[str, pa.Array], str] | None:
        there = self.call_of[each.frames] >= 0
        if there.all():
            return each.frames, each.columns, each.schema
        kept = pa.array(np.flatnonzero(there))
        columns = {name: column.take(kept) for name, column in each.columns.items()}
        return (each.frames[there], columns, each.schema) if there.any() else None

    def _message_table(self) -> pa.Table:
        wanted = self._tables[MESSAGES.name]
        tables = [self._messages_of(wanted, *each) for each in self.messages]
        return pa.concat_tables(tables) if tables else wanted.schema.empty_table()

    def _messages_of(self, wanted: Table, frames: NDArray[Any], columns: dict[str, pa.Array], schema: str) -> pa.Table:
        calls = self.call_of[frames]
        return _table(
            wanted,
            frames.size,
            {
                **columns,
                "call_id": lambda: self._call_ids.take(pa.array(calls)),
                "connection_id": lambda: self._connection_ids.take(pa.array(self.index.connection[frames])),
                "file": lambda: pa.repeat(self.file, frames.size),
                "date": lambda: _days(self.index.time[frames]),
                "time": lambda: _times(self.index.time[frames]),
                "protocol": lambda: self._protocols(frames),
                "direction": lambda: self._directions(frames, calls),
                "schema": lambda: pa.repeat(schema, frames.size),
            },
        )

    def _directions(self, frames: NDArray[Any], calls: NDArray[Any]) -> pa.Array:
        replica = np.asarray(self._calls[0].column("is_replica").fill_null(False))
        roles, side = self.facts.role[frames], self.index.side[frames]
        answer, request = (self.facts.roles.index(name) for name in ("response", "request"))
        asked = (roles == request) | (side == 0)
        which = np.where(roles == answer, np.where(replica[calls], 1, 0), np.where(asked, 2, 3))
        return pa.array(["fetched", "replicated", "produced", "pushed"]).take(pa.array(which))

    def _embedded(self) -> Iterator[Batch]:
        """The rows that messages of some topics hold, message by message."""
        tables = [self._tables[each.name] for each in (GROUP_EVENTS, OFFSETS) if each.name in self._tables]
        found = {table.name: Rows(table.schema) for table in tables}
        if not found:
            return
        for frames, columns, schema in self.messages:
            protocol = schema.partition(".")[0]
            evaluator = records(protocol)
            topics = columns.get("topic")
            if topics is None:
                continue
            held = [topic for topic in topics.unique().to_pylist() if evaluator.holds_rows(topic)]
            if not held:
                continue
            rows = np.flatnonzero(np.asarray(pc.is_in(topics, pa.array(held))))
            calls = self.call_of[frames[rows]]
            facts = zip(
                topics.take(pa.array(rows)).to_pylist(),
                columns["key"].take(pa.array(rows)).to_pylist(),
                columns["value"].take(pa.array(rows)).to_pylist(),
                columns["timestamp_ms"].take(pa.array(rows)).to_pylist(),
                self._call_ids.take(pa.array(calls)).to_pylist(),
                self.index.time[frames[rows]].tolist(),
                self._directions(frames[rows], calls).to_pylist(),
                strict=True,
            )
            for topic, key, value, timestamp, call_id, time_us, direction in facts:
                message = Message(topic, None, None, timestamp, None, key, value, None, "", None, "", schema, protocol)
                common = {"call_id": call_id, "time": time_us, "direction": direction}
                for table, row, size in embedded_rows(evaluator, message, self.file, common):
                    batch = found[table].add(row, size) if table in found else None
                    if batch is not None:
                        yield table, batch
        for table, rows_of in found.items():
            batch = rows_of.flush()
            if batch is not None:
                yield table, batch


class _Topics:
    """The rows of ``call_topics``, and what calls get from them.

    Args:
        calls: of each row.
        rows: the columns; ``count`` adds one.
        topic: the topic that calls name themselves.
        count: how many calls there are.
    """

    def __init__(self, calls: NDArray[Any], rows: dict[str, pa.Array], topic: pa.Array | None, count: int) -> None:
        self._calls, self._rows, self._count = calls, rows, count
        size = calls.size
        self._topic = rows.get("topic", pa.nulls(size, pa.string()))
        self._partition = rows.get("partition", pa.nulls(size, pa.int32()))
        self._own = pa.nulls(count, pa.string()) if topic is None else topic
        error = rows.get("error")
        self.failed = np.zeros(0, np.int64) if error is None else np.flatnonzero(np.asarray(error.is_valid()))

    def column(self, name: str) -> pa.Array:
        """A column of theirs."""
        return self._rows.get(name, pa.nulls(self._calls.size, CALL_TOPICS.schema.field(name).type))

    def count(self, holds: NDArray[Any], calls: NDArray[Any], topics: pa.Array, partitions: pa.Array) -> None:
        """Adds the column ``messages``: of calls that hold messages, how many are about the topic and partition.

        Args:
            holds: of each call, whether it does.
            calls, topics, partitions: of each message.
        """
        size = self._calls.size
        codes, many = _codes(pa.concat_arrays([self._topic, topics]))
        parts, most = _codes(pa.concat_arrays([self._partition, partitions]))
        of_topic = np.concatenate([self._calls, calls]) * many + codes
        of_place = of_topic * most + parts
        alone = _how_many(of_topic[:size], of_topic[:size]) == 1
        found = np.where(
            alone, _how_many(of_topic[:size], of_topic[size:]), _how_many(of_place[:size], of_place[size:])
        )
        self._rows["messages"] = pa.array(found.astype(np.int32), mask=~holds[self._calls])

    def failed_for(self, calls: NDArray[Any], rows: dict[str, pa.Array]) -> NDArray[Any] | None:
        """The last row of the same call, topic and partition that has an error, or -1; None without errors."""
        if not self.failed.size or not calls.size:
            return None
        take = pa.array(self.failed)
        size = self.failed.size
        none = pa.nulls(calls.size)
        keys = np.concatenate([self._calls[self.failed], calls])
        for mine, name in ((self._topic, "topic"), (self._partition, "partition")):
            other = rows.get(name, none).cast(mine.type)
            codes, many = _codes(pa.concat_arrays([mine.take(take), other]))
            keys = keys * many + codes
        known, which = np.unique(keys[:size], return_inverse=True)
        last = np.zeros(known.size, np.int64)
        last[which] = self.failed
        place = np.minimum(np.searchsorted(known, keys[size:]), known.size - 1)
        return np.where(known[place] == keys[size:], last[place], -1)

    def complete(self, columns: dict[str, Any], own: dict[str, pa.Array]) -> None:
        """Adds to the columns of calls what follows from their topics: error, ``topics`` and ``topic``."""
        count = self._count
        if self.failed.size:
            calls = self._calls[self.failed]
            first = np.full(count, -1, np.int64)
            first[calls[::-1]] = self.failed[::-1]
            last = self.failed_for(self._calls, self._rows)
            assert last is not None
            use = np.where((first >= 0) & np.asarray(own["error"].is_null()), first, -1)
            place = np.where(use >= 0, last[use], -1)
            there, take = pa.array(place >= 0), pa.array(place, mask=place < 0)
            for name in ERROR:
                mine = self.column(name).take(take)
                columns[name] = pc.if_else(there, pc.coalesce(mine, own[name]), own[name])
        names = pa.concat_arrays([self._topic, self._own])
        codes, many = _codes(names)
        pairs = np.concatenate([self._calls, np.arange(count)]) * many + codes
        there = np.asarray(names.is_valid())
        known, first_row = np.unique(pairs[there], return_index=True)
        number = np.bincount(known // many, minlength=count)
        holds = np.zeros(count, bool)
        holds[self._calls] = True
        columns["topics"] = pa.array(number.astype(np.int32), mask=(number == 0) & ~holds)
        single = np.full(count, -1, np.int64)
        single[known // many] = np.flatnonzero(there)[first_row]
        single[number != 1] = -1
        columns["topic"] = pc.coalesce(self._own, names.take(pa.array(single, mask=single < 0)))


def _counted(codes: NDArray[Any]) -> tuple[list[list[int]], list[int]]:
    """The columns that occur, and how often."""
    groups = grouped(codes)
    return [codes[:, group[0]].tolist() for group in groups], [group.size for group in groups]


def _codes(column: pa.Array) -> tuple[NDArray[Any], int]:
    """Numbers from 0 that are equal where values are, and how many there may be; nulls are equal."""
    coded = column.dictionary_encode()
    missing = len(coded.dictionary)
    return np.asarray(coded.indices.fill_null(missing)).astype(np.int64), missing + 1


def _how_many(keys: NDArray[Any], among: NDArray[Any]) -> NDArray[Any]:
    """How often each key occurs among others."""
    known, counts = np.unique(among, return_counts=True)
    if not known.size:
        return np.zeros(keys.size, np.int64)
    place = np.minimum(np.searchsorted(known, keys), known.size - 1)
    return np.where(known[place] == keys, counts[place], 0)


def _partners(asked: NDArray[Any], given: NDArray[Any], rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Of each key that is given, the row of the one that is asked: the first with the first, and so on; or -1.

    Returns:
        These, and the rows that have a partner.
    """
    _, which = np.unique(np.concatenate([asked, given]), return_inverse=True)
    numbers = np.concatenate([_ranked(which[: asked.size]), _ranked(which[asked.size :])])
    pairs = which * (int(numbers.max(initial=0)) + 1) + numbers
    order = np.argsort(pairs[: asked.size])
    sorted_pairs = pairs[: asked.size][order]
    place = np.minimum(np.searchsorted(sorted_pairs, pairs[asked.size :]), max(asked.size - 1, 0))
    same = sorted_pairs[place] == pairs[asked.size :]
    found = np.where(same, rows[order[place]], -1)
    return found, found[found >= 0]


def _ranked(keys: NDArray[Any]) -> NDArray[Any]:
    """Of each key, how many equal ones stand in front of it."""
    order = np.argsort(keys, kind="stable")
    first = np.diff(keys[order], prepend=-1) != 0
    begins = np.maximum.accumulate(np.where(first, np.arange(keys.size), 0))
    ranks = np.empty(keys.size, np.int64)
    ranks[order] = np.arange(keys.size) - begins
    return ranks


def _whole(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return found.chunk(0) if isinstance(found, pa.ChunkedArray) else found


def _joined(columns: list[pa.Array | None], sizes: list[int], kind: pa.DataType) -> pa.Array:
    """Columns one behind the other; those that are not there are null."""
    arrays = [
        pa.nulls(size, kind) if column is None else column.cast(kind)
        for column, size in zip(columns, sizes, strict=True)
    ]
    return pa.concat_arrays(arrays) if arrays else pa.nulls(0, kind)


def _times(time: NDArray[Any], missing: NDArray[Any] | None = None) -> pa.Array:
    """Microseconds as times; those that no reader can show are null."""
    beyond = (time < EARLIEST_US) | (time > LATEST_US)
    mask = beyond if missing is None else beyond | missing
    return pa.array(time, mask=mask).cast(pa.timestamp("us", "UTC"))


def _days(time: NDArray[Any]) -> pa.Array:
    """UTC days of times in microseconds."""
    day = time // DAY_US
    beyond = (day < EARLIEST_US // DAY_US) | (day > LATEST_US // DAY_US)
    return pa.array(np.where(beyond, 0, day).astype(np.int32), mask=beyond).cast(pa.date32())


def _small(numbers: NDArray[Any], missing: NDArray[Any]) -> pa.Array:
    """Numbers as a column of 32 bits holds them; null where they do not fit."""
    beyond = missing | (numbers < -(1 << 31)) | (numbers >= 1 << 31)
    return pa.array(np.where(beyond, 0, numbers).astype(np.int32), mask=beyond)


def _table(table: Table, count: int, columns: Columns) -> pa.Table:
    """The columns of a table; those that are not given are null."""
    arrays = []
    for field in table.schema:
        column = columns.get(field.name)
        if callable(column):
            column = column()
        if column is None:
            column = pa.nulls(count, field.type)
        elif column.type != field.type:
            column = column.cast(field.type)
        arrays.append(column)
    return pa.Table.from_arrays(arrays, schema=table.schema)
