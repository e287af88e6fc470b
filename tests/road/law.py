"""The law of two roads: objects, columns and tasks give the same tables of a capture."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("numba")

from tests.conftest import FIXTURES
from wirekit.capture.files import is_packed, open_capture, segments
from wirekit.capture.files.fragments import Fragments
from wirekit.capture.links import Choice
from wirekit.capture.tcp import Settings
from wirekit.pipeline.crossing import Crossing
from wirekit.pipeline.inputs import FlowShare, Job, find_inputs
from wirekit.pipeline.packets import packet_batches
from wirekit.pipeline.serial import captured_batches
from wirekit.pipeline.shuffle import LocalRows, ShuffleFile, local_windows, shares, windows, write_files
from wirekit.pipeline.summary import FileSummary, Summary
from wirekit.road.flows import flow_batches
from wirekit.road.index import Index, index_frames
from wirekit.road.packets import read_packets
from wirekit.road.packets import segments as packets_by_columns
from wirekit.road.streams import Streams, put_together
from wirekit.road.tables import captured
from wirekit.tables.columns import FROM_INPUTS, PACKETS

CAPTURES = sorted((FIXTURES / "pcap").glob("*.pcap*"))
EXHAUSTIVE = os.environ.get("HYPOTHESIS_PROFILE") == "exhaustive"
COPIES = 40 if EXHAUSTIVE else 1
FEW = ("jmq4-consume", "pulsar-consume", "kafka-0.8.2.2-2-produce")
DAMAGED = CAPTURES if EXHAUSTIVE else [path for path in CAPTURES if path.stem in FEW]
WINDOWS = (200, 700, 2000, 5000, 20_000)
"""Bytes; the captures that are damaged have some hundreds a packet."""
PLACES, SHARES = 3, 2
"""Tasks that follow flows: of packets that are shuffled, of all packets."""
KAFKA = FIXTURES / "pcap" / "kafka-0.10.2.2-4-clients.pcapng"


class TableRows(Mapping[str, Counter[str]]):
    """The rows of each table as text, which is made when a test asks for it, or if tables differ."""

    def __init__(self, batches: Iterable[tuple[str, pa.RecordBatch]]) -> None:
        of_tables: dict[str, list[pa.RecordBatch]] = {}
        for table, batch in batches:
            of_tables.setdefault(table, []).append(batch)
        self._tables = {table: pa.Table.from_batches(each) for table, each in of_tables.items()}
        self._sorted: dict[str, pa.Table] = {}
        self._text: dict[str, Counter[str]] = {}

    def __getitem__(self, table: str) -> Counter[str]:
        if table not in self._text:
            self._text[table] = Counter(map(repr, self._tables[table].to_pylist()))
        return self._text[table]

    def __contains__(self, table: object) -> bool:
        return table in self._tables

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableRows) and self.keys() == other.keys() and not any(self.differing(other))

    __hash__ = None  # type: ignore[assignment]  # it has an equality of its own

    def __repr__(self) -> str:
        return repr(dict(self))

    def differing(self, other: TableRows) -> Iterator[str]:
        """The tables that have other rows, in any order; one without rows is as one that is absent."""
        for table in self.keys() | other.keys():
            if table in self and table in other and self._in_order(table).equals(other._in_order(table)):
                continue
            if self.get(table, Counter()) != other.get(table, Counter()):
                yield table

    def _in_order(self, table: str) -> pa.Table:
        """The rows in an order that depends on their flat columns alone."""
        if table not in self._sorted:
            rows = self._tables[table]
            flat = [(each.name, "ascending") for each in rows.schema if not pa.types.is_nested(each.type)]
            self._sorted[table] = rows.sort_by(flat)
        return self._sorted[table]


Rows = tuple[TableRows, Summary]
"""The rows of each table, and what was counted."""


def by_objects(*paths: Path, **options: Any) -> Rows:
    job = Job(find_inputs(paths), road="objects", **options)
    summary = Summary()
    return TableRows(captured_batches(job.inputs, job, summary)), summary


def by_columns(*paths: Path, window: int, **options: Any) -> Rows:
    """With windows of about so many bytes."""
    job = Job(find_inputs(paths), **options)
    summary = Summary()
    batches = captured(job.inputs, job, summary, FROM_INPUTS, window=window)
    return by_objects(*paths, **options) if batches is None else (TableRows(batches), summary)


def by_shares(*paths: Path, window: int, **options: Any) -> Rows:
    """As tasks of the data source do it one after the other, each with some of the flows."""
    job = Job(find_inputs(paths), **options)
    summary = Summary()
    batches_of_shares = [
        captured(job.inputs, job, summary, FROM_INPUTS, window=window, flows=FlowShare(number, SHARES))
        for number in range(SHARES)
    ]
    if None in batches_of_shares:
        return by_objects(*paths, **options)
    return TableRows(chain.from_iterable(each for each in batches_of_shares if each is not None)), summary


def shuffled(*paths: Path, window: int, **options: Any) -> Rows:
    """As tasks of Spark do it one after the other: some read parts of the packets, the others follow flows of all."""
    job = Job(find_inputs(paths), **options)
    summary = Summary({job.inputs[0].name: FileSummary()})
    with TemporaryDirectory() as folder:
        packets = packets_of(job)
        parts = parts_of(packets)
        files_of = [written(job, folder, window, part=part, packets=packets) for part in parts]
        files = [*chain.from_iterable(files_of)]
        sources = [
            *(
                local_windows(mine, part.local, window)
                for mine, part in zip(files_of, parts, strict=True)
                if part.local
            ),
            *(windows(files, share, folder, PLACES, window) for share in shares(files, PLACES, window)),
        ]
        batches = [each for source in sources for each in flow_batches(source, job, summary)]
    return TableRows(batches), summary


class Part(NamedTuple):
    """A part of the packets of a capture: their numbers, the flows that other parts have as well, the others' rows."""

    numbers: range
    crossing: Crossing | None
    local: LocalRows


def packets_of(job: Job) -> list[tuple[pa.Table, Fragments]]:
    """The packets of each file of a capture as objects read them, and the fragments among them."""
    packets: list[tuple[pa.Table, Fragments]] = []
    for each in job.inputs:
        fragments = Fragments()
        batches = packet_batches([each], road="objects", fragments=fragments)
        packets.append((pa.Table.from_batches(batches, PACKETS.schema), fragments))
    return packets


def parts_of(packets: list[tuple[pa.Table, Fragments]]) -> list[Part]:
    """Up to three parts of a capture; how many depends on its packets."""
    flows = np.concatenate([each["flow"].to_numpy() for each, _ in packets])
    begins = np.linspace(0, flows.size, 2 + flows.size % 3).astype(int).tolist()
    crossing = Crossing.of([np.unique(flows[begin:end]) for begin, end in pairwise(begins)])
    return [Part(range(*each), crossing if len(begins) > 2 else None, {}) for each in pairwise(begins)]


def written(
    job: Job,
    folder: str | Path,
    size: int,
    *,
    lost: Container[int] = (),
    again: bool = True,
    part: Part | None = None,
    packets: list[tuple[pa.Table, Fragments]] | None = None,
) -> list[ShuffleFile]:
    """The packets of a capture in files of some bytes, without those of some numbers in their order.

    ``again``: whether tasks read payloads from the capture again where they can. ``part``: if given, only these.
    ``packets``: ``packets_of`` the job, if they are read already.
    """
    files: list[ShuffleFile] = []
    before = 0
    for each, (table, fragments) in zip(job.inputs, packets or packets_of(job), strict=True):
        here = range(before, before + table.num_rows)
        chosen = [at - before for at in here if at not in lost and (part is None or at in part.numbers)]
        before += table.num_rows
        batches = table.take(pa.array(chosen, pa.int64())).to_batches(max_chunksize=7)
        files += write_files(
            each,
            batches,
            folder,
            f"packets-{each.number}-{0 if part is None else part.numbers.start}",
            PLACES,
            size,
            again=again and not is_packed(each.path),
            fragments=fragments,
            crossing=None if part is None else part.crossing,
            local=None if part is None else part.local,
        )
    return files


def assert_same(*paths: Path, windows: Sequence[int] = (1 << 26,), **options: Any) -> TableRows:
    """The law, of one capture; returns the rows that all roads give."""
    objects, counted = by_objects(*paths, **options)
    for window, road in [
        *((window, by_columns) for window in windows),
        (min(windows), shuffled),
        (max(windows), by_shares),
    ]:
        columns, summary = road(*paths, window=window, **options)
        for table in objects.differing(columns):
            assert not objects.get(table, Counter()) - columns.get(table, Counter()), (table, window)
            assert not columns.get(table, Counter()) - objects.get(table, Counter()), (table, window)
        assert counted == summary, window
    return objects


def indexed(path: Path) -> tuple[Streams, Index]:
    """The flows of a capture in one window, and the index of their frames."""
    with open_capture(path) as capture:
        packets = read_packets(capture)
        assert packets is not None
        streams = put_together(packets, Settings())
        return streams, index_frames(streams, Choice(), packets.endpoints.text)


def odd_packets(path: Path) -> tuple[int, int]:
    """How many packets of a capture are in flows that are no plain connections, and in those that are not indexed."""
    streams, index = indexed(path)
    sizes = streams.begins[1:] - streams.begins[:-1]
    assert not (streams.odd & ~index.odd).any()
    return int(sizes[streams.odd].sum()), int(sizes[index.odd].sum())


def as_read(path: Path, window: int) -> tuple[list[object], list[object]]:
    """(What objects give of a capture, what columns give), each with what is said of it at the end.

    Fragments that are not read come at the end, because columns tell them window by window.
    """
    ways = (segments, partial(packets_by_columns, window=window))
    results: list[list[object]] = []
    for read in ways:
        with open_capture(path) as capture:
            items = list(map(repr, read(capture, 3)))
            lost = sorted(item for item in items if "reason='fragment'" in item)
            items = [*(item for item in items if "reason='fragment'" not in item), *lost]
            results.append([*items, capture.skipped, str(capture.damage)])
    return results[0], results[1]
