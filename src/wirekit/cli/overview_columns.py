"""Computes the overview of a capture from its tables, batch by batch: rows are grouped first, and then counted."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirekit.capture.links import Choice, Item, Link
from wirekit.capture.tcp import CLOCK_STEP_US
from wirekit.cli.filters_columns import Selected
from wirekit.cli.overview import COUNTED, ENDS, MOST_SLOW, SIDE, UNNAMED, Overview
from wirekit.cli.overview_objects import CallRows
from wirekit.conversation import Frame
from wirekit.pipeline.flows import Writer
from wirekit.pipeline.inputs import Input, Job
from wirekit.pipeline.rows import Batch
from wirekit.pipeline.summary import Summary
from wirekit.road.assembly import COUNTED as OF_CALLS
from wirekit.road.assembly import Assembly
from wirekit.tables.columns import FROM_INPUTS

TABLES = ("calls", "call_topics", "messages", "connections")
SLOW = (
    "call_id", "protocol", "api", "version", "latency_us", *ENDS, "topic", "topics", "client", "request_time",
)  # fmt: skip
NUMBER: tuple[Any, str] = ([], "count_all")


def count_tables(
    files: Sequence[Input],
    choice: Choice,
    summary: Summary,
    overview: Overview,
    matching: Matching | None = None,
) -> bool:
    """Counts a capture by its tables; False, and nothing is counted, where all of it is left to objects.

    Args:
        files: the files of the capture, in order.
        choice: how protocols are chosen.
        summary, overview: receive the counts.
        matching: the frames to count, with their calls and connections; None for all.
    """
    from wirekit.road.tables import captured

    job = Job(tuple(files), choice.protocol, choice.ports)
    batches = captured(
        files,
        job,
        summary,
        {name: FROM_INPUTS[name] for name in TABLES},
        most_late=CLOCK_STEP_US,
        writer=None if matching is None else _MatchingItems(job, summary, overview, matching),
        assembly=Assembly if matching is None else partial(_MatchingRows, matching),
    )
    if batches is None:
        return False
    counts = _Counts(overview)
    for table, batch in batches:
        getattr(counts, table)(pa.Table.from_batches([batch]))
    if matching is not None:
        matching.selected.settle()
    return True


class Matching:
    """The connections with frames that match.

    Attributes:
        selected: selects the frames.
        any_matched: whether any frame, or any bytes outside of frames, matched.
        connections: the ids of open connections with such frames or bytes.

    Args:
        selected: as above.
    """

    def __init__(self, selected: Selected) -> None:
        self.selected = selected
        self.any_matched = False
        self.connections: set[str] = set()

    def add(self, connections: Iterable[str]) -> None:
        """Adds connections."""
        self.connections.update(connections)
        self.any_matched = self.any_matched or bool(self.connections)

    def remove(self, connection: str) -> bool:
        """Removes a connection that has ended; returns whether it was there."""
        there = connection in self.connections
        self.connections.discard(connection)
        return there


class _MatchingRows(Assembly):
    """The rows of the frames that match, of their calls, and of the connections that have any.

    Args:
        matching: the frames, and the connections so far.
        arguments: as for ``Assembly``.
    """

    def __init__(self, matching: Matching, *arguments: Any) -> None:
        super().__init__(*arguments)
        wanted = matching.selected.among(self)
        self.counted = self.frames[wanted[self.frames]]
        self.checks = [(frame, failed) for frame, failed in self.checks if wanted[frame]]
        messages = (each.only(wanted[each.frames]) for each in self.messages)
        self.messages = [each for each in messages if each.frames.size]
        flows = np.unique(self.index.connection[self.counted])
        matching.add(self._connection_ids.take(pa.array(flows)).to_pylist())
        ended = self._connection_ids.take(pa.array(self.whole)).to_pylist()
        self.whole = self.whole[np.array([matching.remove(each) for each in ended], bool)]

    def batches(self) -> Iterator[Batch]:
        """The rows, table by table."""
        if not (self.counted.size or self.whole.size):
            return
        chosen = np.zeros(self.first.size, bool)
        chosen[self.call_of[self.counted]] = True
        calls = self._call_ids.filter(pa.array(chosen))
        for table, batch in super().batches():
            rows = batch.filter(pc.is_in(batch["call_id"], calls)) if table in OF_CALLS else batch
            if rows.num_rows:
                yield table, rows


class _MatchingItems(Writer):
    """Counts the items that objects read and that match, and their calls.

    Args:
        job: as for ``Writer``.
        summary, overview: receive the counts.
        matching: the frames, and the connections so far.
    """

    def __init__(self, job: Job, summary: Summary, overview: Overview, matching: Matching) -> None:
        super().__init__(job, summary, {})
        self._matching, self._rows = matching, CallRows(overview)

    def item(self, name: str, link: Link, item: Item | None) -> Iterator[Batch]:
        """Counts an item, if it matches."""
        selected, connection = self._matching.selected, self.calls_of(name, link).connection_id
        each = selected.described(self, name, link, item)
        completed = self.completed(name, link, item)

        def count(matches: bool) -> None:
            if item is None:
                matches = self._matching.remove(connection)
            elif matches:
                self._matching.add([connection])
            if matches:
                self.summary.file(name).count(link, item)
            self._rows.take(link, *completed, chosen=matches)
            if isinstance(item, Frame):
                item.messages = []

        selected.decide(each, count)
        yield from ()


class _Counts:
    """Takes batches of the tables."""

    def __init__(self, overview: Overview) -> None:
        self._overview = overview
        self._last: defaultdict[str, set[str]] = defaultdict(set)

    def calls(self, rows: pa.Table) -> None:
        """Calls by API, client and group, and the slowest."""
        rows = rows.filter(pc.is_in(rows["outcome"], pa.array(COUNTED)))
        overview = self._overview
        api = ["protocol", "api", "version"]
        errors: defaultdict[tuple[Any, ...], dict[str, int]] = defaultdict(dict)
        failed = rows.filter(pc.is_valid(rows["error"]))
        for protocol, name, version, error, number in _groups(failed, [*api, "error"], NUMBER):
            errors[protocol, name, version][error] = number
        for protocol, name, version, number, latencies in _groups(rows, api, NUMBER, ("latency_us", "list")):
            latencies_us = array("q", latencies.values.drop_null().to_numpy().tobytes())
            overview.calls((protocol, name or "", version), number, errors[protocol, name, version], latencies_us)
        sent = pc.equal(pc.utf8_slice_codeunits(rows["call_id"], SIDE, SIDE + 1), "c")
        asks = pc.and_(sent, pc.not_equal(rows["outcome"], "event")).cast(pa.int64())
        of_client, client = rows.append_column("asks", asks), ["client_address", "client"]
        for host, name, requests, ids in _groups(of_client, client, ("asks", "sum"), ("connection_id", "distinct")):
            overview.client(host, name or "", requests, ids.as_py())
        grouped = rows.filter(pc.is_valid(rows["group_id"]))
        for group_id, number, names in _groups(grouped, ["group_id"], NUMBER, ("client", "distinct")):
            overview.group(group_id, number, filter(None, names.as_py()))
        answered = rows.filter(pc.is_valid(rows["latency_us"]))
        if not answered.num_rows:  # pyarrow before 26 cannot select from none
            return
        answered = answered.append_column("place", pc.utf8_slice_codeunits(answered["call_id"], SIDE))
        order = [("latency_us", "descending"), ("request_time", "ascending")]
        order += [(name, "descending") for name in (*ENDS, "place", "call_id")]
        slowest = answered.take(pc.select_k_unstable(answered, MOST_SLOW, order)).select(SLOW)
        times = slowest["request_time"].cast(pa.int64()).to_pylist()
        for row, time_us in zip(slowest.drop_columns("request_time").to_pylist(), times, strict=True):
            overview.slow(row, time_us or 0)

    def call_topics(self, rows: pa.Table) -> None:
        """Calls by topic. The rows of the last call of a batch may continue in another batch."""
        pairs = rows.filter(pc.is_valid(rows["topic"])).group_by(["call_id", "topic"], use_threads=False).aggregate([])
        for topic, number in _groups(pairs, ["topic"], NUMBER):
            self._overview.topic(topic, calls=number)
        first, last = rows["call_id"][0].as_py(), rows["call_id"][-1].as_py()
        for topic in self._topics_of(pairs, first) & self._last[first]:
            self._overview.topic(topic, calls=-1)
        self._last[last] |= self._topics_of(pairs, last)

    def messages(self, rows: pa.Table) -> None:
        """Messages by topic and direction."""
        sizes = [pc.fill_null(pc.binary_length(rows[name]).cast(pa.int64()), 0) for name in ("key", "value")]
        counted = pa.table(
            {
                "topic": rows["topic"],
                "produced": pc.equal(rows["direction"], "produced"),
                "size": pc.add(*sizes),
            }
        )
        for topic, produced, number, size in _groups(counted, ["topic", "produced"], NUMBER, ("size", "sum")):
            way = "produced" if produced else "delivered"
            self._overview.topic(UNNAMED if topic is None else topic, size=size, **{way: number})

    def connections(self, rows: pa.Table) -> None:
        """Counts the software of clients."""
        names = ["connection_id", "client_software", "client_version"]
        for row in rows.select(names).filter(pc.is_valid(rows["client_software"])).to_pylist():
            self._overview.software(*row.values())

    def _topics_of(self, pairs: pa.Table, call_id: str) -> set[str]:
        return set(pairs.filter(pc.equal(pairs["call_id"], call_id))["topic"].to_pylist())


def _groups(rows: pa.Table, keys: list[str], *aggregates: tuple[Any, str]) -> Iterator[tuple[Any, ...]]:
    """The values of the keys that occur, with their aggregates; a list is not changed."""
    groups = rows.group_by(keys, use_threads=False).aggregate(list(aggregates))
    names = [*keys, *(f"{of}_{how}" if of else how for of, how in aggregates)]
    columns = [groups[name] for name in names]
    return zip(*(column if pa.types.is_list(column.type) else column.to_pylist() for column in columns), strict=True)
