"""Tables with several rows per call: merges matching rows of request and response, and passes errors on to rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wirekit.road.arrays import codes_of, how_many, joined
from wirekit.tables.columns import CALL_TOPICS, DECLARED, OFFSETS

if TYPE_CHECKING:
    from wirekit.tables.plans import Declared

ERROR = ("error_code", "error")
"""Columns that a row without an error inherits."""


class Topics:
    """The rows of ``call_topics``, from which columns of calls are computed.

    Args:
        calls: the call of each row.
        rows: the columns; ``count`` adds one.
        topic: the topic that each call's own columns state.
        count: the number of calls.
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
        """A column of ``call_topics``."""
        return self._rows.get(name, pa.nulls(self._calls.size, CALL_TOPICS.schema.field(name).type))

    def count(self, holds: NDArray[Any], calls: NDArray[Any], topics: pa.Array, partitions: pa.Array) -> None:
        """Adds the column ``messages``: the number of messages of the topic and partition, for calls with messages.

        Args:
            holds: for each call, whether it holds messages.
            calls, topics, partitions: the call, topic and partition of each message.
        """
        size = self._calls.size
        if not size:
            return
        codes, many = codes_of(pa.concat_arrays([self._topic, topics]))
        parts, most = codes_of(pa.concat_arrays([self._partition, partitions]))
        of_topic = np.concatenate([self._calls, calls]) * many + codes
        of_place = of_topic * most + parts
        alone = how_many(of_topic[:size], of_topic[:size]) == 1
        counts = np.where(alone, how_many(of_topic[:size], of_topic[size:]), how_many(of_place[:size], of_place[size:]))
        self._rows["messages"] = pa.array(counts.astype(np.int32), mask=~holds[self._calls])

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
            codes, many = codes_of(pa.concat_arrays([mine.take(take), other]))
            keys = keys * many + codes
        distinct, which = np.unique(keys[:size], return_inverse=True)
        last = np.zeros(distinct.size, np.int64)
        last[which] = self.failed
        place = np.minimum(np.searchsorted(distinct, keys[size:]), distinct.size - 1)
        return np.where(distinct[place] == keys[size:], last[place], -1)

    def complete(self, columns: dict[str, Any], own: dict[str, pa.Array]) -> None:
        """Adds the columns of calls that are computed from their topics: error, ``topics`` and ``topic``."""
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
        if not self._calls.size:
            stated = np.asarray(self._own.is_valid())
            columns["topics"], columns["topic"] = pa.array(stated.astype(np.int32), mask=~stated), self._own
            return
        names = pa.concat_arrays([self._topic, self._own])
        codes, many = codes_of(names)
        pairs = np.concatenate([self._calls, np.arange(count)]) * many + codes
        there = np.asarray(names.is_valid())
        distinct, first_row = np.unique(pairs[there], return_index=True)
        number = np.bincount(distinct // many, minlength=count)
        holds = np.zeros(count, bool)
        holds[self._calls] = True
        columns["topics"] = pa.array(number.astype(np.int32), mask=(number == 0) & ~holds)
        single = np.full(count, -1, np.int64)
        single[distinct // many] = np.flatnonzero(there)[first_row]
        single[number != 1] = -1
        columns["topic"] = pc.coalesce(self._own, names.take(pa.array(single, mask=single < 0)))


def merged(
    table: str,
    declared: Iterable[tuple[NDArray[Any], Declared]],
    call_of: NDArray[Any],
    request: NDArray[Any],
    count: int,
) -> tuple[NDArray[Any], dict[str, pa.Array]]:
    """The rows of a table with several rows for a call; matching rows of request and response become one.

    Args:
        table: its name.
        declared: the declared rows of frames of one kind, with the frame of each.
        call_of: the call of each frame, or -1.
        request: the request that each frame answers, or -1.
        count: the number of calls.

    Returns:
        The call of each row, and the columns.
    """
    pieces = []
    for frames, each in declared:
        if each.table == table and frames.size:
            places = np.flatnonzero(call_of[frames] >= 0)
            columns = each.columns
            if places.size < frames.size:
                columns = {name: column.take(pa.array(places)) for name, column in columns.items()}
            if places.size:
                pieces.append((frames[places], each.keys, columns))
    if not pieces:
        return np.zeros(0, np.int64), {}
    frames = np.concatenate([each for each, _, _ in pieces])
    declared_keys = np.concatenate([np.full(each.size, bits) for each, bits, _ in pieces])
    columns = dict(pieces[0][2])
    if len(pieces) > 1:
        kinds = {name: column.type for _, _, each in pieces for name, column in each.items()}
        sizes = [each.size for each, _, _ in pieces]
        columns = {name: joined([each.get(name) for _, _, each in pieces], sizes, kinds[name]) for name in kinds}
    if (frames[1:] < frames[:-1]).any():
        order = np.argsort(frames, kind="stable")
        frames, declared_keys, take = frames[order], declared_keys[order], pa.array(order)
        columns = {name: column.take(take) for name, column in columns.items()}
    calls, answers = call_of[frames], request[frames] >= 0
    sides = np.zeros((count, 2), bool)
    sides[calls, answers.astype(np.int64)] = True
    both = (sides[:, 0] & sides[:, 1])[calls]
    if not both.any():
        return calls, columns
    common = np.full(count, (1 << len(DECLARED[table].keys)) - 1)
    np.bitwise_and.at(common, calls, declared_keys)
    key = calls.copy()
    for number, name in enumerate(DECLARED[table].keys):
        codes, size = codes_of(columns[name]) if name in columns else (np.zeros(calls.size, np.int64), 1)
        key = key * size + np.where(common[calls] >> number & 1 != 0, codes, 0)
    requests, responses = np.flatnonzero(both & ~answers), np.flatnonzero(both & answers)
    partner = np.full(calls.size, -1, np.int64)
    partner[responses], paired = _partners(key[requests], key[responses], requests)
    remaining = np.ones(calls.size, bool)
    remaining[paired] = False
    rows_left = np.flatnonzero(remaining)
    rank = np.lexsort((rows_left, ~answers[rows_left], calls[rows_left]))
    rows_left = rows_left[rank]
    take, other = pa.array(rows_left), partner[rows_left]
    with_other = pa.array(other, mask=other < 0)
    return calls[rows_left], {
        name: pc.coalesce(column.take(take), column.take(with_other)) if column.null_count else column.take(take)
        for name, column in columns.items()
    }


def with_errors(
    table: str,
    calls: NDArray[Any],
    rows: dict[str, pa.Array],
    own: dict[str, pa.Array],
    topics: Topics | None,
) -> dict[str, pa.Array]:
    """Rows in which those without an error have that of their topic, or of their call."""
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
                name: pc.if_else(there, topics.column(name).take(place), column) for name, column in inherited.items()
            }
    error = rows.get("error")
    none = pa.array(np.ones(calls.size, bool)) if error is None else error.is_null()
    for name, column in inherited.items():
        mine = rows.get(name, pa.nulls(calls.size, column.type))
        some = column.null_count < len(column)
        rows[name] = pc.if_else(none, pc.coalesce(column, mine), mine) if some else mine
    return rows


def _partners(requests: NDArray[Any], responses: NDArray[Any], rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Matches equal keys of requests and responses: the first with the first, the second with the second, and so on.

    Returns:
        The request row for each response key, or -1; and the request rows that have a partner.
    """
    _, which = np.unique(np.concatenate([requests, responses]), return_inverse=True)
    numbers = np.concatenate([_ranked(which[: requests.size]), _ranked(which[requests.size :])])
    pairs = which * (int(numbers.max(initial=0)) + 1) + numbers
    order = np.argsort(pairs[: requests.size])
    sorted_pairs = pairs[: requests.size][order]
    place = np.minimum(np.searchsorted(sorted_pairs, pairs[requests.size :]), max(requests.size - 1, 0))
    same = sorted_pairs[place] == pairs[requests.size :]
    partners = np.where(same, rows[order[place]], -1)
    return partners, partners[partners >= 0]


def _ranked(keys: NDArray[Any]) -> NDArray[Any]:
    """For each key, the number of equal keys before it."""
    order = np.argsort(keys, kind="stable")
    first = np.diff(keys[order], prepend=-1) != 0
    begins = np.maximum.accumulate(np.where(first, np.arange(keys.size), 0))
    ranks = np.empty(keys.size, np.int64)
    ranks[order] = np.arange(keys.size) - begins
    return ranks
