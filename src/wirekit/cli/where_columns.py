"""The facts of the frames of a window that columns have read, and the rows over which ``--where`` is evaluated."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wirekit.cli.frame_texts import Texts
from wirekit.cli.where import MOST_PLACES, ROW, WhereFrames
from wirekit.road.arrays import codes_of, joined
from wirekit.road.assembly import Assembly
from wirekit.tables.facts import TABLES, Facts, Refusal

AT_ONCE = 1 << 15
"""The number of frames that are evaluated together."""


def fitting(assembly: Assembly, where: WhereFrames, frames: NDArray[np.int64]) -> NDArray[np.int64]:
    """The frames that fit, of some frames of a window in ascending order."""
    rows = WindowFacts(assembly)
    parts = [frames[begin : begin + AT_ONCE] for begin in range(0, frames.size, AT_ONCE)]
    fits = [part[sorted(rows.numbers(where, part))] for part in parts]
    return np.concatenate([frames[:0], *fits])


class WindowFacts:
    """The facts of a window's frames, as ``ConnectionFacts`` and ``frame_rows`` make them one by one."""

    def __init__(self, assembly: Assembly) -> None:
        index = assembly.index
        self._assembly = assembly
        self._asked = index.request >= 0
        self._first = np.where(self._asked, index.request, np.arange(index.request.size))
        self._failures = np.zeros(index.kind.size, np.int64)
        for frame, failed in assembly.checks:
            self._failures[frame] = len(failed)
        frames_of_messages = [each.frames for each in assembly.messages]
        self.messages = np.bincount(
            np.concatenate([np.zeros(0, np.int64), *frames_of_messages]), minlength=index.kind.size
        )
        declared = [(frames, each.columns) for frames, each in assembly.contents.rows if each.table in TABLES]
        sizes = [frames.size for frames, _ in declared]
        frames = np.concatenate([np.zeros(0, np.int64), *(frames for frames, _ in declared)])
        order = np.argsort(frames, kind="stable")
        self._frames = frames[order]
        self._columns = {
            name: joined([columns.get(name) for _, columns in declared], sizes, kind).take(pa.array(order))
            for name, kind in (("topic", pa.string()), ("partition", pa.int32()), ("error", pa.string()))
        }
        self._texts = {name: Texts(assembly, name, self._first) for name in ("client", "group_id")}
        self._places, self._begins = self._ordered_places()

    def numbers(self, where: WhereFrames, frames: NDArray[np.int64]) -> list[int]:
        """The places of the frames that fit among some frames."""
        return where.numbers(self._rows(where, frames), self._of_places(where, frames), self._errors(where, frames))

    def of(self, frames: NDArray[np.int64]) -> Iterator[Facts]:
        """The facts of some frames: client, group, topics, and the names of errors."""
        texts = [self._text(name, frames).to_pylist() for name in ("client", "group_id")]
        source = self._with_places(frames)
        places = self._lists(("topic", "partition"), self._begins[source], self._begins[source + 1], self._places)
        begins, ends = np.searchsorted(self._frames, [frames, frames + 1])
        errors = self._lists(("error",), begins, ends, np.arange(self._frames.size))
        for client, group_id, rows, failures in zip(*texts, places, errors, strict=True):
            topics: dict[str, list[int]] = {}
            for topic, partition in rows:
                topics.setdefault(topic, []).extend([] if partition is None else [partition])
            refusals = tuple(Refusal(None, error, None) for (error,) in failures if error)
            yield Facts(client=client, group_id=group_id, topics=topics, errors=refusals)

    def _lists(
        self, names: tuple[str, ...], begins: NDArray[np.int64], ends: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> Iterator[list[tuple[Any, ...]]]:
        """For each range of ``rows``, the values of some columns."""
        counts = ends - begins
        stops = np.cumsum(counts)
        chosen = pa.array(rows[np.repeat(ends - stops, counts) + np.arange(counts.sum())])
        values = list(zip(*(self._columns[name].take(chosen).to_pylist() for name in names), strict=True))
        return (values[stop - count : stop] for stop, count in zip(stops.tolist(), counts.tolist(), strict=True))

    def _with_places(self, frames: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each frame, the one whose places it has: itself, or else the first frame of its call."""
        own = self._begins[frames + 1] > self._begins[frames]
        return np.where(own, frames, self._first[frames])

    def _rows(self, where: WhereFrames, frames: NDArray[np.int64]) -> pa.RecordBatch:
        index, first = self._assembly.index, self._first[frames]
        columns = {
            **self._assembly.frame_columns(frames),
            "checks_bad": pa.array(self._failures[frames]),
            "client": self._text("client", frames),
            "group_id": self._text("group_id", frames),
            "latency_us": pa.array(index.time[frames] - index.time[first], mask=~self._asked[frames]),
            "messages": pa.array(self.messages[frames]),
            ROW: pa.array(np.arange(frames.size)),
        }
        chosen = {name: columns[name] for name in where.frames.names}
        arrays = [column() if callable(column) else column for column in chosen.values()]
        return pa.record_batch(
            [array.cast(field.type) for array, field in zip(arrays, where.frames, strict=True)], where.frames
        )

    def _text(self, name: str, frames: NDArray[np.int64]) -> pa.Array:
        """The first text that is not empty of each frame, or else of the first frame of its call."""
        texts = self._texts[name]
        number = texts.first_number[frames]
        return pa.array(texts.texts, pa.string()).take(pa.array(number, mask=number < 0))

    def _ordered_places(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows with a place, by frame and by the first row with their topic; and where those of each frame begin.

        A topic without partition counts only if no other row of the frame has it with one.
        """
        topic, many = codes_of(self._columns["topic"])
        rows = np.flatnonzero(np.asarray(self._columns["topic"].is_valid()))
        with_partition = np.asarray(self._columns["partition"].is_valid())[rows]
        keys = self._frames[rows] * many + topic[rows]
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        has_partition = np.bincount(which[with_partition], minlength=first.size) > 0
        alone = np.zeros(rows.size, bool)
        alone[first] = True
        distinct = np.flatnonzero(with_partition | (~has_partition[which] & alone))
        order = distinct[np.lexsort((distinct, first[which[distinct]], self._frames[rows[distinct]]))]
        rows = rows[order]
        return rows, np.searchsorted(self._frames[rows], np.arange(self._first.size + 1))

    def _of_places(self, where: WhereFrames, frames: NDArray[np.int64]) -> pa.RecordBatch:
        """The places of frames; a frame without any has those of the first frame of its call."""
        begins, source = self._begins, self._with_places(frames)
        count = np.minimum(begins[source + 1] - begins[source], MOST_PLACES)
        number = np.repeat(np.arange(frames.size), count)
        offsets = np.arange(number.size) - np.repeat(np.cumsum(count) - count, count)
        rows = pa.array(self._places[np.repeat(begins[source], count) + offsets])
        columns = [self._columns[name].take(rows) for name in ("topic", "partition")]
        return pa.record_batch([*columns, pa.array(number)], where.places)

    def _errors(self, where: WhereFrames, frames: NDArray[np.int64]) -> pa.RecordBatch:
        """The errors of frames; without a topic of their own, that of the request if it refers to one."""
        error, topic = self._columns["error"], self._columns["topic"]
        failed = np.flatnonzero(np.asarray(pc.fill_null(pc.not_equal(error, ""), False)))
        place = np.searchsorted(frames, self._frames[failed])
        failed = failed[(place < frames.size) & (frames[np.minimum(place, frames.size - 1)] == self._frames[failed])]
        owners = self._frames[failed]
        stated = np.asarray(pc.fill_null(pc.not_equal(topic, ""), False))[failed]
        only = np.where(self._asked[owners], self._only[self._first[owners]], -1)
        row = np.where(stated, failed, only)
        columns = topic.take(pa.array(row, mask=row < 0)), error.take(pa.array(failed))
        return pa.record_batch([*columns, pa.array(np.searchsorted(frames, owners))], where.errors)

    @cached_property
    def _only(self) -> NDArray[np.int64]:
        """For each frame, a row with its topic, if it refers to exactly one; else -1."""
        topic = codes_of(self._columns["topic"])[0][self._places]
        begins, ends = self._begins[:-1], self._begins[1:]
        changes = np.append(0, np.cumsum(np.diff(topic, prepend=-1) != 0))
        one = (ends > begins) & (changes[ends] - changes[np.minimum(begins + 1, changes.size - 1)] == 0)
        only = np.full(begins.size, -1, np.int64)
        only[one] = self._places[begins[one]]
        return only
