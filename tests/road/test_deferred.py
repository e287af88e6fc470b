"""Long connections whose frames others decode: the tables of objects, or the flow is followed again."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("numba")

from tests.conftest import FIXTURES
from tests.road.law import CAPTURES, KAFKA, PLACES, Rows, TableRows, by_objects
from tests.road.law import written as packets_written
from wirekit.pipeline.deferred import Outstanding, completed
from wirekit.pipeline.flows import flow_batches as follow_objects
from wirekit.pipeline.inputs import Job, find_inputs
from wirekit.pipeline.packets import packet_batches
from wirekit.pipeline.serial import in_order
from wirekit.pipeline.shuffle import shares, windows
from wirekit.pipeline.sink import Manifest
from wirekit.pipeline.summary import FileSummary, Summary
from wirekit.road.deferred import LongFlow, decode_units
from wirekit.road.flows import flow_batches
from wirekit.tables.columns import OUTPUTS

Counts = Counter[str]


def deferred(
    path: Path, attempts: Path, window: int, counts: Counts, lost: Container[int] = (), *, again: bool = True
) -> Rows:
    """The tables of a capture without some packets, as tasks of Spark make them one after the other."""
    job = Job(find_inputs([path]))
    summary = Summary({job.inputs[0].name: FileSummary()})
    files = packets_written(job, attempts, window, lost=lost, again=again)
    batches: list[tuple[str, pa.RecordBatch]] = []
    for number, share in enumerate(shares(files, PLACES, window)):
        packets = partial(windows, files, share, attempts, PLACES, window)
        if share.flow is None:
            batches += flow_batches(packets(), job, summary)
            continue
        with LongFlow(attempts, 0, f"{window}-{number}", share.flow, 0) as long:
            for table, batch in flow_batches(packets(), job, long.summary, long=long):
                long.sink.write(table, batch)
            text = long.dumps()
        flow = Outstanding.loads(text)
        if flow is None:
            batches += written(attempts, [Manifest.loads(text)], summary)
            continue
        counts["units"] += len(flow.units)
        runs = [
            decode_units(str(attempts), run, f"{share.flow}-{window}-{run}", flow.flow, flow.units[run:][:2], job)
            for run in range(0, len(flow.units) if flow.plain else 0, 2)
        ]
        manifests, again = completed(str(attempts), [flow], runs)
        batches += written(attempts, manifests, summary)
        counts["again" if again else "plain"] += 1
        if again:
            batches += flow_batches(packets(), job, summary)
    return TableRows(batches), summary


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
    for window, again in ((max(700, path.stat().st_size // 80), False), (5000, True)):
        assert deferred(path, tmp_path / str(again), window, Counter(), again=again) == expected


def test_payloads_of_small_windows_are_read_again(tmp_path: Path) -> None:
    path = FIXTURES / "pcap" / "kafka-0.8.2.2-2-produce.pcapng"
    assert deferred(path, tmp_path, 700, Counter(), again=True) == by_objects(path)


def test_connections_of_kafka_are_plain(tmp_path: Path) -> None:
    counts: Counts = Counter()
    deferred(KAFKA, tmp_path, 2000, counts)
    assert counts["units"] > 10
    assert not counts["again"]


@pytest.mark.parametrize("path", [KAFKA, FIXTURES / "pcap" / "pulsar-consume.pcap"], ids=lambda path: path.stem)
def test_frames_behind_lost_bytes_are_followed_again(path: Path, tmp_path: Path) -> None:
    """Objects search there by what they know of earlier frames."""
    job = Job(find_inputs([path]))
    packets = pa.Table.from_batches(packet_batches(job.inputs, road="objects"))
    counts: Counts = Counter()
    for number in range(3):
        lost = range(number, packets.num_rows, 41)
        summary = Summary({job.inputs[0].name: FileSummary()})
        remaining = packets.take([row for row in range(packets.num_rows) if row not in lost]).to_batches()
        expected = TableRows(follow_objects(in_order(remaining), job, summary)), summary
        window = max(1000, path.stat().st_size // 60)
        assert deferred(path, tmp_path / str(number), window, counts, lost) == expected
    assert counts["again"] > 0


def test_payloads_of_a_dominating_flow_are_read_from_the_capture_again(tmp_path: Path) -> None:
    """Neither packets nor units have them; a capture that became too short is an error with its name."""
    path = tmp_path / "kafka.pcap"
    path.write_bytes(KAFKA.read_bytes())
    job, window = Job(find_inputs([path])), 700
    files = packets_written(job, tmp_path, window)
    flows = []
    for number, share in enumerate(shares(files, PLACES, window)):
        if share.flow is not None:
            packets = list(windows(files, share, tmp_path, PLACES, window))
            with LongFlow(tmp_path, number, f"long-{number}", share.flow, 0) as long:
                list(flow_batches(packets, job, long.summary, long=long))
            read_again = {each.rows["payload"].null_count == each.rows.num_rows for each in packets}
            flows.append((share.flow, long.units, read_again))
    assert {each for _, _, read_again in flows for each in read_again} == {False, True}
    path.write_bytes(KAFKA.read_bytes()[:200])

    def decode_all() -> None:
        for number, (flow, units, _) in enumerate(flows):
            decode_units(str(tmp_path), number, f"units-{number}", flow, units, job)

    with pytest.raises(OSError, match="was truncated while it was read") as raised:
        decode_all()
    assert raised.value.filename == str(path)
