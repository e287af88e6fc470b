"""Long connections whose frames others decode: the tables of objects, or the flow is followed again."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

pytest.importorskip("numba")

from tests.conftest import FIXTURES
from tests.road.test_law import CAPTURES, KAFKA, Rows, by_objects, rows
from wirekit.pipeline.deferred import Outstanding, completed
from wirekit.pipeline.flows import flow_batches as follow_objects
from wirekit.pipeline.inputs import Job, find_inputs
from wirekit.pipeline.serial import sorted_packets
from wirekit.pipeline.sink import Manifest
from wirekit.pipeline.summary import FileSummary, Summary
from wirekit.road.deferred import LongFlow, decode_units
from wirekit.road.flows import flow_batches
from wirekit.tables.columns import OUTPUTS

Counts = Counter[str]


def deferred(path: Path, attempts: Path, window: int, counts: Counts, lost: Container[int] = ()) -> Rows:
    """The tables of a capture without some rows, as tasks of Spark make them one after the other."""
    job = Job(find_inputs([path]))
    summary = Summary({job.inputs[0].name: FileSummary()})
    packets = packets_of(job, lost)
    long: list[LongFlow] = []

    def begin(flow: int) -> LongFlow:
        long.append(LongFlow(attempts, 0, f"{window}-{len(long)}", flow, 0))
        return long[-1]

    found = list(flow_batches(packets, job, summary, window=window, long_flow=begin))
    for each in long:
        text = each.dumps()
        flow = Outstanding.loads(text)
        if flow is None:
            found += written(attempts, [Manifest.loads(text)], summary)
            continue
        counts["units"] += len(flow.units)
        runs = [
            decode_units(
                str(attempts), number, f"{each.flow}-{window}-{number}", flow.flow, flow.units[number:][:2], job
            )
            for number in range(0, len(flow.units) if flow.plain else 0, 2)
        ]
        manifests, again = completed(str(attempts), [flow], runs)
        found += written(attempts, manifests, summary)
        counts["again" if again else "plain"] += 1
        if again:
            mine = (batch.filter(pc.equal(batch["flow"], each.flow)) for batch in packets)
            found += flow_batches(mine, job, summary, window=window)
    return rows(found), summary


def packets_of(job: Job, lost: Container[int]) -> list[pa.RecordBatch]:
    """The rows of the table ``packets``, without those of some numbers."""
    found = pa.Table.from_batches(sorted_packets(job.inputs, road="objects"))
    return found.take([row for row in range(found.num_rows) if row not in lost]).to_batches(max_chunksize=7)


def written(attempts: Path, manifests: Iterable[Manifest], summary: Summary) -> Iterator[tuple[str, pa.RecordBatch]]:
    for manifest in manifests:
        summary.merge(manifest.summary)
        for file in manifest.files:
            content = (attempts / manifest.attempt / file.name).read_bytes()
            for batch in pq.read_table(io.BytesIO(content), schema=OUTPUTS[file.table].schema).to_batches():
                yield file.table, batch


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_the_tables_are_those_of_objects(path: Path, tmp_path: Path) -> None:
    expected = by_objects(path)
    for window in (700, 5000):
        assert deferred(path, tmp_path, window, Counter()) == expected


def test_connections_of_kafka_are_plain(tmp_path: Path) -> None:
    counts: Counts = Counter()
    deferred(KAFKA, tmp_path, 2000, counts)
    assert counts["units"] > 10
    assert not counts["again"]


@pytest.mark.parametrize("path", [KAFKA, FIXTURES / "pcap" / "pulsar-consume.pcap"], ids=lambda path: path.stem)
def test_what_lies_behind_lost_bytes_is_followed_again(path: Path, tmp_path: Path) -> None:
    """Objects search there by what they know of earlier frames."""
    job = Job(find_inputs([path]))
    count = sum(batch.num_rows for batch in packets_of(job, ()))
    counts: Counts = Counter()
    for number in range(5):
        lost = range(number, count, 41)
        summary = Summary({job.inputs[0].name: FileSummary()})
        expected = rows(follow_objects(packets_of(job, lost), job, summary)), summary
        assert deferred(path, tmp_path / str(number), 1000, counts, lost) == expected
    assert counts["again"] > 0
