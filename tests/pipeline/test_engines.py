"""The serial driver and tasks, on Spark too, make the same tables; tasks that die or run twice change nothing."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from tests.conftest import FIXTURES
from tests.pipeline.helpers import rows, tables
from wirekit.pipeline import parallel, serial, task_progress
from wirekit.pipeline.deferred import Outstanding, completed
from wirekit.pipeline.inputs import Input, Job, find_inputs
from wirekit.pipeline.parallel import LEAD, Task, balanced, dominating
from wirekit.pipeline.run import COMMITTING, READING, Result, Step
from wirekit.pipeline.shuffle import Share, ShuffleFile, shares
from wirekit.pipeline.sink import Manifest
from wirekit.pipeline.tasks import FOLLOWING, SHUFFLING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IDS = ("file", "call_id", "connection_id")
"""Columns that depend on the file's name."""


@pytest.fixture(scope="module")
def by_serial(captures: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    output = tmp_path_factory.mktemp("serial")
    return output, serial.run(Job(find_inputs([captures])), output)


class Here:
    """Workers in this process: they perform one task after the other."""

    cores = 2
    errors: tuple[type[Exception], ...] = (Exception,)

    def results(self, task: Task, job: Job, attempts: str, count: int, most: int | None = None) -> list[str]:
        return [task(job, attempts, number) for number in range(count)]

    def completed(self) -> float:
        return 0.0


SPARK = pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.xdist_group("spark")])


@pytest.fixture(params=[SPARK, "here"])
def run_in_parallel(request: pytest.FixtureRequest) -> Callable[..., Result]:
    """Runs a job in tasks."""
    if request.param == "here":
        return lambda job, output, *progress, **how: parallel.run(job, output, "here", Here(), *progress, **how)
    from wirekit.spark import pipeline

    spark = request.getfixturevalue("spark")
    return lambda job, output, *progress, **how: pipeline.run(job, output, spark, *progress, **how)


def manifest(output: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((output / "manifest.json").read_text())
    return content


def test_rows_are_in_the_same_order_by_both_roads(tmp_path: Path) -> None:
    paths = [FIXTURES / "pcap" / "pulsar-consume.pcap"]
    for road in ("objects", "columns"):
        serial.run(Job(find_inputs(paths), road=road), tmp_path / road)
    for name in ("calls", "call_topics", "messages", "connections", "frames"):
        by_objects, by_columns = (pq.read_table(tmp_path / road / name).to_pylist() for road in ("objects", "columns"))
        assert by_objects == by_columns, name
        assert by_objects


def test_the_manifest_lists_inputs_and_tables(captures: Path, by_serial: tuple[Path, Result]) -> None:
    output, result = by_serial
    content = manifest(output)
    assert content == result.manifest
    assert [each["file"] for each in content["inputs"]] == [each.name for each in find_inputs([captures])]
    assert all(len(each["sha256"]) == 64 for each in content["inputs"])
    assert (content["format"], content["engine"], content["changed_while_read"]) == ("wirekit tables", "serial", [])
    assert content["configuration"] == {"protocol": "", "ports": {}, "raw": True, "values": False}
    for name, table in content["tables"].items():
        assert table["rows"] == sum(file["rows"] for file in table["files"]) == len(rows(output, name))
        assert all((output / file["file"]).stat().st_size == file["bytes"] for file in table["files"])
    assert content["summary"] == result.summary.to_json()


def test_runs_and_inputs_are_the_manifest_as_tables(
    captures: Path, by_serial: tuple[Path, Result], tmp_path: Path
) -> None:
    output, _ = by_serial
    content, (run,) = manifest(output), rows(output, "runs")
    assert (run["wirekit"], run["raw"], run["frame_values"], run["ports"]) == (content["wirekit"], True, False, [])
    inputs = {row["file"]: row for row in rows(output, "inputs")}
    assert {row["run_id"] for row in inputs.values()} == {run["run_id"]}
    assert {name: (row["sha256"], row["size"]) for name, row in inputs.items()} == {
        each["file"]: (each["sha256"], each["size"]) for each in content["inputs"]
    }
    for name, row in inputs.items():
        summary = content["summary"][name]
        assert (row["segments"], row["damaged"]) == (summary["segments"], summary["damaged"])
        assert {each["reason"]: each["packets"] for each in row["skipped"]} == summary["skipped"]
    part = captures / "pulsar-batch.pcap"
    ids = set()
    for number, options in enumerate(({}, {}, {"raw": False})):
        serial.run(Job(find_inputs([part]), **options), tmp_path / str(number))
        ids.add(rows(tmp_path / str(number), "runs")[0]["run_id"])
    assert len(ids) == 2  # the same files and configuration are the same run
    assert run["run_id"] not in ids


def test_a_damaged_capture_gives_all_before_the_damage(captures: Path, by_serial: tuple[Path, Result]) -> None:
    output, result = by_serial
    cut, whole = str(captures / "sub" / "cut.pcap"), str(captures / "pulsar-nobatch.pcap")
    frames = {name: [row for row in rows(output, "frames") if row["file"] == name] for name in (cut, whole)}
    assert len(frames[cut]) == len(frames[whole]) > 0
    (damage,) = [row for row in rows(output, "quarantine") if row["file"] == cut]
    assert damage["position"] + damage["length"] == Path(cut).stat().st_size
    assert damage["connection_id"] is None
    assert list(result.summary.unreadable) == [cut, str(captures / "sub" / "notes.cap")]


def test_a_file_of_another_kind_does_not_stop_the_run(captures: Path, by_serial: tuple[Path, Result]) -> None:
    output, result = by_serial
    name = str(captures / "sub" / "notes.cap")
    (row,) = [row for row in rows(output, "quarantine") if row["file"] == name]
    assert row["raw"] == Path(name).read_bytes()
    assert "at byte 0 (0x0); `wirekit decode` reads" in result.summary.file(name).unreadable


def test_a_compressed_capture_gives_the_rows_of_the_plain_one(captures: Path, by_serial: tuple[Path, Result]) -> None:
    output, _ = by_serial
    rows_of_each = [
        [row | dict.fromkeys(IDS) for row in rows(output, "messages") if row["file"] == str(captures / name)]
        for name in ("lossy.pcap", "sub/packed.pcap.gz")
    ]
    assert rows_of_each[0] == rows_of_each[1]
    assert rows_of_each[0]


def test_a_file_name_may_be_any_bytes(tmp_path: Path) -> None:
    name = os.fsdecode(os.fsencode(tmp_path) + b"/odd\xff.pcap")
    shutil.copy(FIXTURES / "pcap" / "pulsar-batch.pcap", name)
    result = serial.run(Job(find_inputs([name])), tmp_path / "out")
    assert {row["file"] for row in rows(tmp_path / "out", "frames")} == {f"{tmp_path}/odd\\udcff.pcap"}
    assert list(manifest(tmp_path / "out")["summary"]) == [name] == list(result.summary.files)


def assert_in_order(steps: list[Step], size: int) -> None:
    """Bytes only grow, from none to all, and each bundle is committed."""
    assert steps == sorted(steps, key=lambda step: (step.bundle, step.processed))
    assert [step.processed for step in steps] == sorted(step.processed for step in steps)
    assert (steps[0].processed, steps[-1].processed) == (0, size)
    assert {step.total for step in steps} == {size}
    bundles = steps[0].bundles
    assert [step.bundle for step in steps if step.stage == COMMITTING] == [*range(1, bundles + 1)]


def test_progress_is_reported_in_bytes_by_bundle_and_stage(captures: Path, tmp_path: Path) -> None:
    steps: list[Step] = []
    job = Job(find_inputs([captures]))
    serial.run(job, tmp_path / "out", steps.append, bundle=job.size // 4)
    assert_in_order(steps, job.size)
    assert steps[0].bundles > 2
    assert len({step.processed for step in steps if step.stage == READING}) > len(job.inputs) // 2


@pytest.mark.parametrize(
    ("shuffled", "road"), [(False, "auto"), (True, "objects"), (True, "columns"), (None, "auto"), (None, "columns")]
)
def test_drivers_make_the_same_tables(
    shuffled: bool | None,
    road: str,
    captures: Path,
    by_serial: tuple[Path, Result],
    run_in_parallel: Callable[..., Result],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also if a capture dominates that is not the first one, and with long connections of some packets."""
    monkeypatch.setattr(parallel, "dominating", lambda groups, road, cores: [groups[1], groups[3]])
    monkeypatch.setattr(parallel, "WINDOW", 10_000)
    monkeypatch.setattr(parallel, "AT_ONCE", 5000)
    followed_again: list[int] = []

    def all_but_one(attempts: str, flows: list[Outstanding], *decoded: Any) -> tuple[list[Manifest], list[int]]:
        manifests, again = completed(attempts, [dataclasses.replace(flows[0], plain=False), *flows[1:]], *decoded)
        followed_again.extend(again)
        return manifests, again

    monkeypatch.setattr(parallel, "completed", all_but_one)
    steps: list[Step] = []
    job = Job(find_inputs([captures]), road=road)
    result = run_in_parallel(job, tmp_path / "out", steps.append, shuffled=shuffled)
    assert bool(followed_again) == (shuffled is True and road == "columns")
    assert tables(tmp_path / "out") == tables(by_serial[0])
    assert result.summary == by_serial[1].summary
    assert list(result.summary.files) == list(by_serial[1].summary.files)
    mine, other = manifest(tmp_path / "out"), manifest(by_serial[0])
    assert (mine["inputs"], mine["configuration"]) == (other["inputs"], other["configuration"])
    assert mine["engine"] in ("spark", "here")
    assert len(mine["tables"]["frames"]["files"]) > 1
    assert_in_order(steps, job.size)
    stages = {step.stage for step in steps if step.processed}
    assert (READING in stages, FOLLOWING in stages) == (shuffled is not True, shuffled is not False)


def test_tasks_that_read_parts_exchange_only_flows_of_several_parts(
    run_in_parallel: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = FIXTURES / "pcap" / "kafka-0.10.2.2-2-produce.pcapng"
    job = Job(find_inputs([capture]), road="columns")
    expected = serial.run(job, tmp_path / "serial")
    exchanged: dict[str, int] = {}

    def run(name: str) -> None:
        def shares_of(files: Sequence[ShuffleFile], *arguments: Any) -> list[Share]:
            exchanged[name] = sum(each.size for each in files)
            return shares(files, *arguments)

        monkeypatch.setattr(parallel, "shares", shares_of)
        result = run_in_parallel(job, tmp_path / name, shuffled=True)
        assert tables(tmp_path / name) == tables(tmp_path / "serial")
        assert result.summary == expected.summary
        assert not (tmp_path / name / ".wirekit").exists()

    monkeypatch.setattr(parallel, "PARTITION_BYTES", 40_000)
    run("crossing")
    monkeypatch.setattr(parallel._Bundle, "_crossing", lambda *_: None)
    run("all")
    assert 0 < exchanged["crossing"] < 0.8 * exchanged["all"]


@pytest.mark.spark
def test_spark_reads_the_tables(by_serial: tuple[Path, Result], spark: SparkSession) -> None:
    messages = spark.read.parquet(str(by_serial[0] / "messages"))
    assert messages.count() == manifest(by_serial[0])["tables"]["messages"]["rows"]
    assert messages.where("timestamp is not null and timestamp_ms is null").count() == 0


@pytest.mark.spark
@pytest.mark.parametrize("shuffled", [False, True])
def test_progress_moves_within_a_task(
    shuffled: bool, captures: Path, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The only task of a stage lingers when all is written: what is told until then is not that it has ended."""
    from wirekit.spark import pipeline

    def lingering(task: Task) -> Task:
        def run(job: Job, attempts: str, number: int) -> str:
            import time

            result = task(job, attempts, number)
            time.sleep(1)
            return result

        return run

    monkeypatch.setattr(parallel, "balanced", lambda groups, count: [groups])
    monkeypatch.setattr(parallel, "WINDOW", 10_000)
    steps: list[Step] = []
    job = Job(find_inputs([captures]))
    pipeline.run(job, tmp_path / "out", spark, steps.append, around=lingering, shuffled=shuffled)
    assert_in_order(steps, job.size)
    processed_by_stage = {
        stage: {step.processed for step in steps if step.stage == stage} for stage in {step.stage for step in steps}
    }
    if shuffled:
        half = job.size - job.size // 2
        assert any(0 < processed < half for processed in processed_by_stage[SHUFFLING])
        assert any(half < processed < job.size for processed in processed_by_stage[FOLLOWING])
    else:
        assert any(0 < processed < job.size for processed in processed_by_stage[READING])


def test_reports_of_tasks_are_summed_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_progress, "SECONDS", 0)
    assert task_progress.reported(str(tmp_path), "reading") == 0
    first, second = (task_progress.report(str(tmp_path), "reading", number) for number in (1, 2))
    first(10)
    second(5)
    first(30)
    task_progress.report(str(tmp_path), "writing", 1)(100)
    assert task_progress.reported(str(tmp_path), "reading") == 35
    task_progress.report(str(tmp_path), "reading", 1)(7)  # another attempt
    assert task_progress.reported(str(tmp_path), "reading") == 12
    task_progress.report(str(tmp_path / "nowhere"), "reading", 1)(7)  # which is not a reason to fail
    assert task_progress.reported(str(tmp_path / "nowhere"), "reading") == 0
    task_progress.report("s3://bucket/lake", "reading", 1)(7)
    assert task_progress.reported("s3://bucket/lake", "reading") == 0


@pytest.mark.spark
@pytest.mark.parametrize("shuffled", [False, True])
def test_tasks_that_fail_or_leave_files_behind_change_nothing(
    shuffled: bool,
    captures: Path,
    by_serial: tuple[Path, Result],
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from wirekit.spark import pipeline

    monkeypatch.setattr(parallel, "WAVES", 1)  # a killed process takes seconds to replace
    marks = tmp_path / "marks"
    marks.mkdir()

    # The functions of a test module would go to the workers by name, and workers do not know it.
    def flaky(task: Task) -> Task:
        def run(job: Job, attempts: str, number: int) -> str:
            import os

            from pyspark import TaskContext

            context = TaskContext.get()
            if context.attemptNumber() == 0 and context.partitionId() % 2 == 0:
                result = task(job, attempts, number)  # all is written, and then the task is lost
                (marks / f"{context.partitionId()}").write_text(result)
                raise OSError("lost")
            if context.attemptNumber() == 0:
                (marks / f"{context.partitionId()}").write_text("killed")
                os._exit(1)
            return task(job, attempts, number)

        return run

    output = tmp_path / "out"
    result = pipeline.run(Job(find_inputs([captures])), output, spark, around=flaky, shuffled=shuffled)
    assert len(list(marks.iterdir())) >= 2
    assert tables(output) == tables(by_serial[0])
    assert result.summary == by_serial[1].summary
    parts = sum(len(table["files"]) for table in result.manifest["tables"].values())
    assert len(list(output.glob("*/*.parquet"))) == parts
    assert not (output / ".wirekit").exists()


@pytest.mark.spark
def test_a_run_that_fails_for_good_leaves_the_tables_of_the_last_one(
    captures: Path, spark: SparkSession, tmp_path: Path
) -> None:
    from wirekit.spark import pipeline

    job = Job(find_inputs([captures / "pulsar-batch.pcap"]))
    serial.run(job, tmp_path)
    before = tables(tmp_path)

    def broken(_: Task) -> Task:
        def run(job: Job, attempts: str, number: int) -> str:
            raise OSError("disk full")

        return run

    with pytest.raises(Exception, match="disk full"):
        pipeline.run(job, tmp_path, spark, around=broken, replace=True)
    assert tables(tmp_path) == before
    assert manifest(tmp_path)["engine"] == "serial"
    assert not (tmp_path / ".wirekit").exists()


def test_captures_go_whole_to_tasks_unless_one_dominates() -> None:
    mib = 1 << 20
    groups = [(Input(number, f"{number}.pcap", "", size * mib, 0),) for number, size in enumerate([1, 40, 3, 3, 50, 2])]
    assert dominating(groups, "objects", 2) == [groups[4]]  # 50 MiB of 99
    large = [tuple(dataclasses.replace(each, size=2 * each.size) for each in group) for group in groups]
    assert dominating(large, "columns", 2) == []
    assert dominating(large, "columns", round(2 * LEAD)) == [large[4]]
    assert dominating(groups, "columns", 8) == []  # too small for kernels in every worker
    assert dominating(groups[:1], "objects", 16) == []  # too small for a shuffle
    assert dominating([(Input(0, "a.pcap", "", 70 * mib, 0),)] * 9, "objects", 1) != []  # more than memory is to hold
    stored = (Input(0, "00000000000000000000.log", "", 90 * mib, 0, "kafka.log_segment"),)
    assert dominating([stored], "objects", 2) == []
    tasks = balanced(groups, 2)
    assert {group for task in tasks for group in task} == set(groups)
    assert sorted(sum(files[0].size for files in task) // mib for task in tasks) == [49, 50]
    assert [[files[0].size // mib for files in task] for task in balanced(groups, 100)] == [
        [50],
        [40],
        [3],
        [3],
        [2],
        [1],
    ]
    assert balanced([], 4) == []
