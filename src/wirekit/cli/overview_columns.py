"""Computes the overview of a capture from its tables, batch by batch: rows are grouped first, and then counted."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirekit.capture.links import Choice, Item, Link
from wirekit.cli.filters_columns import Selected
from wirekit.cli.frame_numbers import NumberedFrames, WindowItem
from wirekit.cli.numbered import NOTHING
from wirekit.cli.overview import COUNTED, ENDS, MOST_SLOW, SIDE, UNANSWERED, UNNAMED, Overview
from wirekit.cli.overview_objects import CallRows, answers_slowly
from wirekit.cli.rule_checks import RuleChecks
from wirekit.cli.rules_columns import RuleWindows
from wirekit.conversation import Frame
from wirekit.pipeline.inputs import Input
from wirekit.pipeline.rows import Batch
from wirekit.pipeline.summary import Summary
from wirekit.road.assembly import COUNTED as OF_CALLS
from wirekit.tables.columns import FROM_INPUTS

TABLES = ("calls", "call_topics", "messages", "connections")
SLOW = (
    "call_id", "protocol", "api", "version", "latency_us", *ENDS, "topic", "topics", "client", "request_time",
)  # fmt: skip
NUMBER: tuple[Any, str] = ([], "count_all")


class OverviewWindows(RuleWindows):
    """Counts a capture by its tables, with the numbers of frames and the violations of rules, which no table has.

    Args:
        files: the files of the capture, in order.
        choice: how protocols are chosen.
        summary, overview: receive the counts.
        matching: the frames to count, with their calls and connections.
        checks: checks all frames against rules; None if they are not checked.
    """

    def __init__(
        self,
        files: tuple[Input, ...],
        choice: Choice,
        summary: Summary,
        overview: Overview,
        matching: Matching,
        checks: RuleChecks | None,
    ) -> None:
        tables = {name: FROM_INPUTS[name] for name in TABLES}
        super().__init__(files, choice, matching.selected, checks, overview.violation, tables, summary)
        self._overview, self._matching = overview, matching
        self._counts, self._rows = _Counts(overview), CallRows(overview)
        self._responses: list[tuple[str, WindowItem]] = []  # of slow calls, by their ids

    def report(self, problem: str) -> None:
        """The summary has the problems of files."""

    def assembly(self, *arguments: Any) -> NumberedFrames:
        """The frames of a window that columns have read."""
        part = _MatchingRows(self._matching, *arguments)
        self._parts.append(part)
        return part

    def hold(self, table: str, batch: pa.RecordBatch) -> None:
        """Counts rows."""
        getattr(self._counts, table)(pa.Table.from_batches([batch]))

    def item(self, name: str, link: Link, item: Item | None) -> Iterator[Batch]:
        """Counts an item that objects read, if it matches."""
        each, connection = self.noted(name, link, item), self.calls_of(name, link).connection_id
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
                if answers_slowly(item, self._overview.least_slow):
                    self._responses.append((completed[0], each))
            if self._checks is None:
                each.numbered = each.numbered._replace(item=None, facts=NOTHING)
            else:
                self.release(item)

        self._selected.decide(each.numbered, count)
        yield from ()

    def window(self, parts: list[NumberedFrames], items: list[WindowItem]) -> None:
        """Takes the numbers of slow responses, and checks all frames."""
        responses, self._responses = self._responses, []
        for call_id, each in responses:
            if each.numbered.frame:
                self._overview.number(call_id, each.numbered.frame)
            else:
                self._responses.append((call_id, each))
        for part in parts:
            for call_id, number in part.slow(self._overview.least_slow):
                self._overview.number(call_id, number)
        super().window(parts, items)


class Matching:
    """The connections with frames that match.

    Attributes:
        selected: selects the frames.
        any_matched: whether any frame, or any bytes outside frames, matched.

    Args:
        selected: as above.
    """

    def __init__(self, selected: Selected) -> None:
        self.selected = selected
        self.any_matched = False
        self._all = not selected.selection.active
        self._connections: set[str] = set()  # the ids of open ones

    def add(self, connections: Iterable[str]) -> None:
        """Adds the ids of connections."""
        if not self._all:
            self._connections.update(connections)
            self.any_matched = self.any_matched or bool(self._connections)

    def remove(self, connection: str) -> bool:
        """Removes a connection that has ended; returns whether any of it, or all of the capture, matched."""
        matched = self._all or connection in self._connections
        self._connections.discard(connection)
        return matched


class _MatchingRows(NumberedFrames):
    """The rows of the frames that match, of their calls, and of the connections that have any.

    Args:
        matching: the frames, and the connections so far.
        arguments: as for ``Assembly``.
    """

    def __init__(self, matching: Matching, *arguments: Any) -> None:
        super().__init__(matching.selected, *arguments)
        if not matching.selected.selection.active:
            return
        matches, self.counted = self.matches, self.matching
        self.checks = [(frame, failed) for frame, failed in self.checks if matches[frame]]
        messages = (each.only(matches[each.frames]) for each in self.messages)
        self.messages = [each for each in messages if each.frames.size]
        flows = np.unique(self.index.connection[self.counted])
        matching.add(self._connection_ids.take(pa.array(flows)).to_pylist())
        ended = self._connection_ids.take(pa.array(self.listed)).to_pylist()
        self.listed = self.listed[np.array([matching.remove(each) for each in ended], bool)]

    def batches(self) -> Iterator[Batch]:
        """The rows, table by table."""
        if not (self.counted.size or self.listed.size):
            return
        chosen = np.zeros(self.first.size, bool)
        chosen[self.call_of[self.counted]] = True
        calls = None if chosen.all() else self._call_ids.filter(pa.array(chosen))
        for table, batch in super().batches():
            chosen_only = calls is not None and table in OF_CALLS
            rows = batch.filter(pc.is_in(batch["call_id"], calls)) if chosen_only else batch
            if rows.num_rows:
                yield table, rows


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
        waiting = pc.equal(rows["outcome"], UNANSWERED).cast(pa.int64())
        counts = NUMBER, ("waiting", "sum"), ("latency_us", "list")
        for protocol, name, version, number, unanswered, latencies in _groups(
            rows.append_column("waiting", waiting), api, *counts
        ):
            latencies_us = array("q", latencies.values.drop_null().to_numpy().tobytes())
            key = protocol, name or "", version
            overview.calls(key, number, unanswered, errors[protocol, name, version], latencies_us)
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
    names = [*keys, *(f"{column}_{function}" if column else function for column, function in aggregates)]
    columns = [groups[name] for name in names]
    return zip(*(column if pa.types.is_list(column.type) else column.to_pylist() for column in columns), strict=True)
