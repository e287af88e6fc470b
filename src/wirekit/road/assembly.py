"""Assembles table rows from decoded frames: calls of requests with their responses, and values from several rows.

The rules are those of ``wirekit.pipeline.calls``, applied to whole columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wirekit.capture.endpoints import host_and_port
from wirekit.capture.links import connection_name
from wirekit.conversation import Message
from wirekit.pipeline.flows import check_row
from wirekit.pipeline.ids import connection_id
from wirekit.pipeline.messages import embedded_rows
from wirekit.pipeline.rows import Batch, TableRows, array
from wirekit.pipeline.summary import FileSummary
from wirekit.road.arrays import Columns, batch_of, codes_of, days, joined, small, times
from wirekit.road.begun import CARRIED, Begun, Called, Followed, nothing_begun
from wirekit.road.call_tables import ERROR, Topics, merged, with_errors
from wirekit.road.contents import Contents, Messages
from wirekit.road.facts import NOT_THERE
from wirekit.road.index import Index, grouped
from wirekit.road.packets import PORT_BITS
from wirekit.road.streams import REASONS, Streams
from wirekit.tables.columns import (
    CALL_TOPICS,
    CALLS,
    CONNECTIONS,
    FATES,
    FRAMES,
    FROM_INPUTS,
    GROUP_EVENTS,
    MESSAGES,
    OFFSETS,
    SIDES,
    Table,
)  # fmt: skip
from wirekit.tables.records import records

CALL_TABLES = (CALL_TOPICS, GROUP_EVENTS, OFFSETS)
"""Tables with several rows for a call."""
OF_CALLS = ("client", "is_replica", "error")
"""Columns of ``calls`` from which other columns are computed."""
COUNTED = (CALLS.name, CALL_TOPICS.name)
"""Tables whose rows count messages, in the column ``messages``."""
OUTCOMES = pa.array(["answered", "unanswered", "one_way", "event"])


class Assembly:
    """The tables of the usual connections of a window.

    Args:
        file: the name of the capture in the run.
        streams, index, contents: the window.
        address: returns the text of an endpoint.
        begun: connections that were followed up to a point in this window.
        tables: the requested tables, with the requested columns.

    Attributes:
        ended: the begun connections that get their row of ``connections`` here.
        counted: the frames that ``count`` counts.
    """

    def __init__(
        self,
        file: str,
        streams: Streams,
        index: Index,
        contents: Contents,
        address: Any,
        begun: Begun | None = None,
        tables: Mapping[str, Table] = FROM_INPUTS,
    ) -> None:
        self._tables = tables
        self.file, self.streams, self.index, self.contents = file, streams, index, contents
        self.facts = contents.facts
        self.flows = np.flatnonzero(~contents.odd)
        self._address = address
        begun = begun or nothing_begun()
        self._carried = np.bincount(begun.carried["connection"], minlength=contents.odd.size)
        self.begun = begun = begun.only(~contents.odd[begun.flows])
        self.ended = begun.flows[begun.ends & ~index.cut[begun.flows]]
        only_here = ~contents.odd
        only_here[begun.flows] = False
        only_here[self.ended] = True
        self.listed = np.flatnonzero(only_here)
        reported = ~contents.odd[index.connection] & contents.reported
        self.frames = self.counted = np.flatnonzero(reported)
        self.checks = [(frame, failed) for frame, failed in sorted(contents.checks.items()) if reported[frame]]
        self.first = np.flatnonzero(reported & (index.request < 0))
        self.call_of = np.full(index.connection.size, -1, np.int64)
        self.call_of[self.first] = np.arange(self.first.size)
        responses = np.flatnonzero(reported & (index.request >= 0))
        self.call_of[responses] = self.call_of[index.request[responses]]
        self.response = np.full(self.first.size, -1, np.int64)
        self.response[self.call_of[responses]] = responses
        reported_messages = (each.only(self.call_of[each.frames] >= 0) for each in contents.messages)
        self.messages = [each for each in reported_messages if each.frames.size]

    def batches(self) -> Iterator[Batch]:
        """The requested tables."""
        if not (self.frames.size or self.listed.size):
            return
        makers: dict[str, Callable[[], Iterable[pa.RecordBatch]]] = {
            FRAMES.name: lambda: [self._frame_table()] if self.frames.size else [],
            CALLS.name: lambda: [self._calls[0]],
            CONNECTIONS.name: lambda: [self._connection_table()] if self.listed.size else [],
            MESSAGES.name: lambda: map(self._messages_of, self.messages),
            **{table.name: partial(self._call_table, table.name) for table in CALL_TABLES},
        }
        for name, make in makers.items():
            for rows in make() if name in self._tables else ():
                if rows.num_rows:
                    names = self._tables[name].names
                    yield name, rows if rows.num_columns == len(names) else rows.select(names)
        yield from self._embedded()

    def count(self, summary: FileSummary) -> None:
        """Adds the frames, messages, checks and bytes of these connections to the summary of their file."""
        facts, frames = self.facts, self.counted
        codes = np.stack([facts.protocol[frames], facts.api[frames], facts.version[frames], facts.role[frames]])
        for (protocol, api, version, role), count in zip(*_counted(codes), strict=True):
            name = facts.apis[api] if api >= 0 else ""
            number = None if version == NOT_THERE else version
            summary.calls[facts.protocols[protocol], name, number, facts.roles[role]] += count
        summary.checks.update(check.kind for _, each in self.checks for check in each)
        for each in self.messages:
            summary.messages[each.schema.partition(".")[0]] += each.frames.size
        if not self.listed.size:
            return
        by_fate = self._bytes()
        for flow, size in zip(self.listed.tolist(), by_fate["captured"][self.listed].sum(axis=1).tolist(), strict=True):
            recognised = self.index.protocols[flow]
            summary.connections[recognised] += 1
            summary.without_payload += not (recognised or size)
        for fate, sizes in by_fate.items():
            size = int(sizes[self.listed].sum())
            if size:
                summary.bytes[fate] += size

    def followed(self) -> Followed:
        """The frames of begun connections that are in the tables."""
        failed = np.asarray(self._calls[0].column("error").is_valid())
        flows, connection = self.begun.flows, self.index.connection[self.first]
        calls, errors = (
            np.bincount(of_calls, minlength=self.index.odd.size)[flows] for of_calls in (connection, connection[failed])
        )
        facts = np.full(flows.size, None, object)
        declared = self._declared_of_connections(flows)
        codes = [codes_of(column)[0] for column in declared.values()]
        for group in grouped(np.stack(codes)) if codes else ():
            values = {name: column[int(group[0])].as_py() for name, column in declared.items()}
            facts[group] = {name: value for name, value in values.items() if value is not None} or None
        return self._left_over(calls, errors, facts, self._calls[0].column("client"))

    def undecoded(self) -> Followed:
        """The result of ``followed`` for frames that are not decoded here: without calls, errors and facts."""
        flows = self.begun.flows
        none = np.zeros(flows.size, np.int64)
        return self._left_over(none, none, np.full(flows.size, None, object))

    def _left_over(
        self, calls: NDArray[Any], errors: NDArray[Any], facts: NDArray[Any], clients: pa.Array | None = None
    ) -> Followed:
        index, contents, flows = self.index, self.contents, self.begun.flows
        places = np.maximum(self._reached[flows], self.begun.places)
        unreported = np.flatnonzero(~contents.reported)
        unreported = unreported[~contents.odd[index.connection[unreported]]]
        waiting = np.zeros(unreported.size, CARRIED)
        for name in ("connection", "side", "position", "time"):
            waiting[name] = getattr(index, name)[unreported]
        bounds = zip(index.start[unreported].tolist(), index.stop[unreported].tolist(), strict=True)
        waiting["data"] = [self.streams.stream[start:stop].tobytes() for start, stop in bounds]
        sizes, called = places - self.begun.places, self._called(flows, clients)
        names, most, one_sided = contents.names, contents.most, contents.one_sided[flows]
        return Followed(flows, places, sizes, waiting, calls, errors, called, facts, names, most, one_sided)

    def _called(self, flows: NDArray[Any], clients: pa.Array | None) -> NDArray[Any]:
        """For each of some connections, the set of its calls, as ``Called``; empty if no response was captured."""
        facts, called = self.facts, np.full(flows.size, frozenset(), object)
        there = (facts.api[self.first] >= 0) & ~self.contents.one_sided[self.index.connection[self.first]]
        first = self.first[there]
        client, texts = np.zeros(first.size, np.int64), list[tuple[str | None, ...]]([()])
        if clients is not None:
            coded = clients.dictionary_encode()
            texts = [(text,) for text in (*coded.dictionary.to_pylist(), None)]
            client = np.asarray(coded.indices.fill_null(len(texts) - 1))[there].astype(np.int64)
        code, names = np.zeros(first.size, np.int64), list[Called]()
        for number, group in enumerate(grouped(np.stack([facts.api[first], facts.version[first], client]))):
            code[group] = number
            one = first[group[0]]
            names.append((facts.apis[int(facts.api[one])], int(facts.version[one]), texts[int(client[group[0]])]))
        name_count = max(len(names), 1)
        connection, code = np.divmod(np.unique(self.index.connection[first] * name_count + code), name_count)
        bounds = np.searchsorted(connection, [flows, flows + 1]).T.tolist()
        sets: dict[tuple[int, ...], frozenset[Called]] = {}
        codes = code.tolist()
        for place, (begin, end) in enumerate(bounds):
            which = tuple(codes[begin:end])
            if which not in sets:
                sets[which] = frozenset(names[each] for each in which)
            called[place] = sets[which]
        return called

    @cached_property
    def _reached(self) -> NDArray[Any]:
        """(flow, side) the end of the last frame that is not carried, or -1."""
        index = self.index
        behind = (index.begins[:-1] + self._carried)[index.connection]
        here = np.flatnonzero(np.arange(index.connection.size) >= behind)
        reached = np.full((index.odd.size, len(SIDES)), -1, np.int64)
        np.maximum.at(reached, (index.connection[here], index.side[here]), index.stop[here])
        return reached

    # Ids, and the columns that all rows of a connection or call have in common

    @cached_property
    def ends(self) -> tuple[list[str], list[str]]:
        """The addresses of client and server of ``flows``."""
        streams = self.streams
        return tuple([self._address(int(end)) for end in ends[self.flows]] for ends in (streams.client, streams.server))  # type: ignore[return-value]

    @cached_property
    def names(self) -> list[str]:
        """The names of the connections of ``flows``."""
        ordinals = self._ordinals[self.flows].tolist()
        return list(map(connection_name, *self.ends, ordinals))

    @cached_property
    def _connection_ids(self) -> pa.Array:
        """The ids of all flows' connections; null for odd flows."""
        ids: list[str | None] = [None] * self.index.odd.size
        ordinals = self._ordinals[self.flows].tolist()
        for flow, client, server, ordinal in zip(self.flows.tolist(), *self.ends, ordinals, strict=True):
            ids[flow] = connection_id(self.file, client, server, ordinal)
        return pa.array(ids, pa.string())

    @cached_property
    def _ordinals(self) -> NDArray[Any]:
        """The number of each flow's connection among the connections between its endpoints."""
        ordinals = np.zeros(self.index.odd.size, np.int32)
        ordinals[self.begun.flows] = self.begun.ordinals
        return ordinals

    @cached_property
    def _addresses(self) -> dict[str, pa.Array]:
        """The address columns of ``flows``."""
        columns = {}
        for side, ends in zip(SIDES, (self.streams.client, self.streams.server), strict=True):
            ports = ends[self.flows] & (1 << PORT_BITS) - 1
            hosts, which = np.unique(ends[self.flows] - ports, return_inverse=True)
            texts = [host_and_port(self._address(host))[0] for host in hosts.tolist()]
            columns[f"{side}_address"] = pa.array(texts, pa.string()).take(pa.array(which))
            columns[f"{side}_port"] = pa.array(ports.astype(np.int32))
        return columns

    def _addresses_of(self, flows: NDArray[Any]) -> Columns:
        places = pa.array(np.searchsorted(self.flows, flows))

        def addresses(name: str) -> pa.Array:
            return self._addresses[name].take(places)

        return {f"{side}_{end}": partial(addresses, f"{side}_{end}") for side in SIDES for end in ("address", "port")}

    @cached_property
    def _frame_ids(self) -> pa.Array:
        """The ids of ``frames``."""
        index, frames = self.index, self.frames
        side = pa.array([f"-{name[0]}-" for name in SIDES]).take(pa.array(index.side[frames]))
        connection = self._connection_ids.take(pa.array(index.connection[frames]))
        return pc.binary_join_element_wise(connection, side, pa.array(self._positions).cast(pa.string()), "")

    @cached_property
    def _positions(self) -> NDArray[Any]:
        """The offsets of ``frames`` in their direction."""
        return self.index.position[self.frames]

    @cached_property
    def _place(self) -> NDArray[Any]:
        """For each frame of the index, its place in ``frames``."""
        place = np.zeros(self.index.connection.size, np.int64)
        place[self.frames] = np.arange(self.frames.size)
        return place

    @cached_property
    def _call_ids(self) -> pa.Array:
        """The ids of the calls."""
        return self._frame_ids.take(pa.array(self._place[self.first]))

    def _of_frames(self, frames: NDArray[Any]) -> Columns:
        """The columns that rows about frames have in common."""
        index, facts = self.index, self.facts
        return {
            "call_id": lambda: self._call_ids.take(pa.array(self.call_of[frames])),
            "connection_id": lambda: self._connection_ids.take(pa.array(index.connection[frames])),
            "file": lambda: pa.repeat(self.file, frames.size),
            "date": lambda: days(index.time[frames]),
            "protocol": lambda: pa.array(facts.protocols, pa.string()).take(pa.array(facts.protocol[frames])),
            "time": lambda: times(index.time[frames]),
        }

    def _described(self, frames: NDArray[Any]) -> Columns:
        """API, version and correlation id."""
        facts = self.facts
        api, version = facts.api[frames], facts.version[frames]
        return {
            "api": lambda: pa.array(facts.apis, pa.string()).take(pa.array(api, mask=api < 0)),
            "version": lambda: small(version, version == NOT_THERE),
            "correlation_id": lambda: pa.array(self.index.number[frames], mask=~facts.numbered[frames]),
        }

    def frame_columns(self, frames: NDArray[Any]) -> Columns:
        """The columns of the table ``frames`` that no content decides, and the addresses, for some frames."""
        index, facts = self.index, self.facts
        schema = pa.array(facts.schemas, pa.string())
        return {
            **self._of_frames(frames),
            **self._addresses_of(index.connection[frames]),
            "side": lambda: pa.array(SIDES).take(pa.array(index.side[frames])),
            "schema": lambda: schema.take(pa.array(facts.schema[frames])),
            **self._described(frames),
            "role": lambda: pa.array(facts.roles).take(pa.array(facts.role[frames])),
            "position": lambda: pa.array(index.position[frames]),
            "length": lambda: pa.array(index.stop[frames] - index.start[frames]),
        }

    # Tables

    def _frame_table(self) -> pa.RecordBatch:
        index, frames = self.index, self.frames
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
        return batch_of(
            self._tables[FRAMES.name],
            count,
            {
                **self.frame_columns(frames),
                "frame_id": lambda: self._frame_ids,
                "checks_bad": pa.array(failures),
                "checks": pa.ListArray.from_arrays(np.append(0, np.cumsum(failures)).astype(np.int32), failed),
                "gaps": pa.ListArray.from_arrays(np.append(0, np.cumsum(gaps > 0)).astype(np.int32), ranges),
            },
        )

    @cached_property
    def _calls(self) -> tuple[pa.RecordBatch, dict[str, pa.RecordBatch]]:
        """The table ``calls``, and the requested tables with several rows for a call, if they have rows."""
        index, facts, first, response = self.index, self.facts, self.first, self.response
        count = first.size
        calls_table = _with_computing(self._tables[CALLS.name].names if CALLS.name in self._tables else ())
        if not count:
            return pa.RecordBatch.from_pylist([], calls_table.schema), {}
        answered = response >= 0
        waits = facts.answered[first]
        outcome = np.where(answered, 0, np.where(facts.role[first] == 0, 3, np.where(waits, 1, 2)))
        asked_at, answered_at = index.time[first], index.time[response]
        sizes = index.stop - index.start
        columns = {
            **self._of_frames(first),
            **self._described(first),
            "outcome": lambda: OUTCOMES.take(pa.array(outcome)),
            **self._addresses_of(index.connection[first]),
            "request_time": lambda: times(asked_at),
            "response_time": lambda: times(answered_at, ~answered),
            "latency_us": lambda: pa.array(answered_at - asked_at, mask=~answered),
            "request_bytes": lambda: pa.array(sizes[first]),
            "response_bytes": lambda: pa.array(sizes[response], mask=~answered),
            **self._declared_of_calls(),
        }
        own = {name: columns.get(name, pa.nulls(count, CALLS.schema.field(name).type)) for name in ERROR}
        batch_by_table: dict[str, pa.RecordBatch] = {}
        call_topics: Topics | None = None
        for table in CALL_TABLES:
            if table is not CALL_TOPICS and table.name not in self._tables:
                continue
            calls, rows = merged(table.name, self.contents.rows, self.call_of, index.request, count)
            if table is CALL_TOPICS:
                call_topics = Topics(calls, rows, columns.get("topic"), count)
                if self._wants_counts:
                    self._count_messages(call_topics, columns)
            if table.name in self._tables and calls.size:
                rows = with_errors(table.name, calls, rows, own, call_topics)
                batch_by_table[table.name] = batch_of(
                    self._tables[table.name], calls.size, {**self._of_frames(first[calls]), **rows}
                )
        assert call_topics is not None
        call_topics.complete(columns, own)
        return batch_of(calls_table, count, columns), batch_by_table

    @property
    def _wants_counts(self) -> bool:
        """Whether the number of messages in calls, or in topics of calls, is requested."""
        return any("messages" in self._tables[table].names for table in COUNTED if table in self._tables)

    def _call_table(self, table: str) -> list[pa.RecordBatch]:
        rows = self._calls[1].get(table)
        return [] if rows is None else [rows]

    def _declared_of_calls(self) -> dict[str, pa.Array]:
        """The declared columns of ``calls``: the last value that is not null; the response comes after the request."""
        pieces: list[list[tuple[NDArray[Any], dict[str, pa.Array]]]] = [[], []]
        for frames, declared in self.contents.rows:
            if declared.table == CALLS.name and frames.size:
                answers = self.index.request[frames] >= 0
                for side in (0, 1):
                    if (answers == bool(side)).all():
                        pieces[side].append((frames, declared.columns))
                    elif (answers == bool(side)).any():
                        raise AssertionError("a kind of frame asks and answers")
        last_values = {}
        for name in sorted({name for side in pieces for _, columns in side for name in columns}):
            having = [(frames, columns[name]) for side in pieces for frames, columns in side if name in columns]
            if all(column.null_count == len(column) for _, column in having):
                last_values[name] = pa.nulls(self.first.size, having[0][1].type)
                continue
            winner = np.full(self.first.size, -1, np.int64)
            count = 0
            for frames, column in having:
                calls = self.call_of[frames]
                there = np.flatnonzero(np.asarray(column.is_valid()) & (calls >= 0))
                winner[calls[there]] = count + there
                count += len(column)
            values = pa.concat_arrays([column for _, column in having])
            last_values[name] = values.take(pa.array(winner, mask=winner < 0))
        return last_values

    def _count_messages(self, topics: Topics, columns: dict[str, Any]) -> None:
        """Adds the number of messages in each call."""
        holds = np.zeros(self.first.size, bool)
        for frames in self.contents.holders:
            calls = self.call_of[frames]
            holds[calls[calls >= 0]] = True
        calls = [self.call_of[each.frames] for each in self.messages]
        counted = np.bincount(np.concatenate(calls), minlength=self.first.size) if calls else np.zeros(holds.size)
        columns["messages"] = pa.array(counted.astype(np.int32), mask=~holds)
        sizes = [each.frames.size for each in self.messages]
        topics.count(
            holds,
            np.concatenate(calls) if calls else np.zeros(0, np.int64),
            joined([each.columns.get("topic") for each in self.messages], sizes, pa.string()),
            joined([each.columns.get("partition") for each in self.messages], sizes, pa.int32()),
        )

    def _connection_table(self) -> pa.RecordBatch:
        flows, streams = self.listed, self.streams
        count, size = flows.size, self.index.odd.size
        calls, columns = self._calls[0], {}
        of_call = self.index.connection[self.first]
        failed = of_call[np.asarray(calls.column("error").is_valid())]
        called, errors = (np.bincount(each, minlength=size) for each in (of_call, failed))
        called[self.begun.flows] += self.begun.conversations["calls"]
        errors[self.begun.flows] += self.begun.conversations["errors"]
        for fate, sizes in self._bytes().items():
            for side, name in enumerate(SIDES):
                columns[f"{name}_{fate}"] = pa.array(sizes[flows, side])
        opening_times, closed = streams.opened[flows], streams.closed[flows]
        return batch_of(
            self._tables[CONNECTIONS.name],
            count,
            {
                "connection_id": self._connection_ids.take(pa.array(flows)),
                "file": pa.repeat(self.file, count),
                "date": days(opening_times),
                "protocol": pa.array(self.index.protocols, pa.string()).take(pa.array(flows)),
                **self._addresses_of(flows),
                "ordinal": pa.array(self._ordinals[flows]),
                "opened": times(opening_times),
                "closed": times(closed),
                "reason": pa.array(REASONS).take(pa.array(streams.reason[flows])),
                "known_start": pa.array(streams.known[flows].astype(bool)),
                "calls": pa.array(called[flows]),
                "errors": pa.array(errors[flows]),
                **columns,
                **self._facts(flows),
            },
        )

    def _facts(self, flows: NDArray[Any]) -> dict[str, pa.Array]:
        """The declared columns of ``connections``, of earlier windows and of this one."""
        declared = self._declared_of_connections(flows)
        if not self.ended.size:
            return declared
        earlier = np.full(self.index.odd.size, None, object)
        earlier[self.begun.flows] = self.begun.conversations["facts"]
        rows = [each or {} for each in earlier[flows].tolist()]
        for name in CONNECTIONS.declared:
            before = array([each.get(name) for each in rows], CONNECTIONS.schema.field(name).type)
            declared[name] = pc.coalesce(before, declared[name].cast(before.type)) if name in declared else before
        return declared

    def _declared_of_connections(self, flows: NDArray[Any]) -> dict[str, pa.Array]:
        """The declared columns of ``connections``: the first value that is not null."""
        pieces = [(frames, each) for frames, each in self.contents.rows if each.table == CONNECTIONS.name]
        first_values = {}
        for name in sorted({name for _, each in pieces for name in each.columns}):
            having = [(frames, each.columns[name]) for frames, each in pieces if name in each.columns]
            frames = np.concatenate([each for each, _ in having])
            values = pa.concat_arrays([column for _, column in having])
            there = np.flatnonzero(np.asarray(values.is_valid()))
            there = there[np.argsort(frames[there], kind="stable")[::-1]]
            winner = np.full(self.index.odd.size, -1, np.int64)
            winner[self.index.connection[frames[there]]] = there
            winner = winner[flows]
            first_values[name] = values.take(pa.array(winner, mask=winner < 0))
        return first_values

    def _bytes(self) -> dict[str, NDArray[Any]]:
        """Payload bytes so far by fate, for all flows and both sides; right for ``listed`` ones."""
        streams, begun = self.streams, self.begun
        starts = streams.starts.copy()
        starts[begun.flows] = begun.places
        frames, again = streams.stops - starts, streams.duplicates
        by_fate = {"captured": frames + again, "frames": frames, "duplicate": again}
        sizes = {fate: by_fate.get(fate, np.zeros_like(frames)).copy() for fate in FATES}
        for number, of_fate in enumerate(sizes.values()):
            of_fate[begun.flows] += begun.conversations["sizes"][:, :, number]
        for fate in ("captured", "frames"):
            sizes[fate][begun.flows] += begun.conversations["skipped"]
        return sizes

    def _messages_of(self, messages: Messages) -> pa.RecordBatch:
        frames = messages.frames
        return batch_of(
            self._tables[MESSAGES.name],
            frames.size,
            {
                **messages.all_columns(),
                **self._of_frames(frames),
                "direction": lambda: self._directions(frames),
                "schema": lambda: pa.repeat(messages.schema, frames.size),
            },
        )

    def _directions(self, frames: NDArray[Any]) -> pa.Array:
        replica = np.asarray(self._calls[0].column("is_replica").fill_null(False))
        roles, side = self.facts.role[frames], self.index.side[frames]
        fetched = np.where(replica[self.call_of[frames]], 1, 0)
        which = np.where(roles == self.facts.roles.index("response"), fetched, np.where(side == 0, 2, 3))
        return pa.array(["fetched", "replicated", "produced", "pushed"]).take(pa.array(which))

    def _embedded(self) -> Iterator[Batch]:
        """The rows that are embedded in messages of some topics, read message by message."""
        if not self.messages:
            return
        tables = {name: self._tables[name] for name in (GROUP_EVENTS.name, OFFSETS.name) if name in self._tables}
        if not tables:
            return
        collected = TableRows(tables)
        for each in self.messages:
            schema, protocol = each.schema, each.schema.partition(".")[0]
            evaluator = records(protocol)
            topics = each.columns.get("topic")
            if topics is None:
                continue
            topics_with_rows = [topic for topic in topics.unique().to_pylist() if evaluator.holds_rows(topic)]
            if not topics_with_rows:
                continue
            columns = each.all_columns()
            rows = np.flatnonzero(np.asarray(pc.is_in(topics, pa.array(topics_with_rows))))
            frames = each.frames[rows]
            facts = zip(
                *(columns[name].take(pa.array(rows)).to_pylist() for name in ("topic", "key", "value", "timestamp_ms")),
                self._call_ids.take(pa.array(self.call_of[frames])).to_pylist(),
                self.index.time[frames].tolist(),
                self._directions(frames).to_pylist(),
                strict=True,
            )
            for topic, key, value, timestamp, call_id, time_us, direction in facts:
                message = Message(topic, None, None, timestamp, None, key, value, None, "", None, "", schema, protocol)
                common = {"call_id": call_id, "time": time_us, "direction": direction}
                for emitted in embedded_rows(evaluator, message, self.file, common):
                    collected.add(*emitted)
                    yield from collected.full()
        yield from collected.flush()


@lru_cache(64)
def _with_computing(requested: tuple[str, ...]) -> Table:
    """``calls`` with requested columns, and those from which other columns are computed."""
    return CALLS.only({*OF_CALLS, *requested})


def _counted(codes: NDArray[Any]) -> tuple[list[list[int]], list[int]]:
    """The distinct columns of codes, and how often each occurs."""
    groups = grouped(codes)
    return [codes[:, group[0]].tolist() for group in groups], [group.size for group in groups]
