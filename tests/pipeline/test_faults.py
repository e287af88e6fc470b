"""What goes wrong around a run is one line, and the next run makes the same tables."""

from __future__ import annotations

import errno
import gzip
import os
import resource
import shutil
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks import capture_samples
from benchmarks.samples import message_set
from tests.conftest import FIXTURES
from tests.pipeline.helpers import pcap_records
from tests.pipeline.object_store import BUCKET, ObjectStore
from tests.pipeline.test_bundles import JOYQUEUE, PULSAR, content, pipeline
from wirekit import storage
from wirekit.capture.files import open_capture
from wirekit.cli import main
from wirekit.pipeline import parallel, serial
from wirekit.pipeline.folders import LocalFolder
from wirekit.pipeline.inputs import Job, find_inputs
from wirekit.pipeline.run import Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from wirekit.spark import pipeline as on_spark


def remote(store: ObjectStore, output: str | Path) -> Any:
    """A run over one capture in the store."""
    store.upload("faults/a.pcap", PULSAR)
    return serial.run(Job(find_inputs([f"s3://{BUCKET}/faults/a.pcap"])), output)


@pytest.mark.parametrize("status", [500, 503])
def test_a_store_that_fails_now_and_then(
    status: int, store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: Counter[tuple[str, str]] = Counter()

    def fault(method: str, path: str) -> int | None:
        requests[method, path] += 1
        return status if requests[method, path] == 1 else None

    whole = remote(store, tmp_path / "whole")
    with store.faulty(fault) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        again = remote(store, tmp_path / "lake")
    assert again.summary == whole.summary
    assert content(tmp_path / "lake") == content(tmp_path / "whole")
    assert ("GET", f"/{BUCKET}/faults/a.pcap") in requests


def test_many_requests_may_fail_once(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    uri, requests = store.upload("faults/a.pcap", PULSAR), Counter[str]()

    def fault(method: str, path: str) -> int | None:
        requests[path] += 1
        return 503 if requests[path] % 2 else None

    with store.faulty(fault) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        sizes = {storage.status(uri).size for _ in range(120)}
    assert sizes == {PULSAR.stat().st_size}
    assert max(requests.values()) >= 240


def test_a_store_that_keeps_failing_is_a_line(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "ATTEMPTS", 2)
    with store.faulty(lambda *_: 503) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        with pytest.raises(OSError, match=r"a\.pcap") as raised:
            find_inputs([f"s3://{BUCKET}/faults/a.pcap"])
    assert raised.value.strerror == "the object store fails: HTTP status 503 (HeadObject)"


def test_a_store_that_does_not_answer_in_time_is_a_line(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "ATTEMPTS", 1)
    monkeypatch.setattr(storage, "REQUEST_SECONDS", 0.2)

    def slow(*_: str) -> None:
        time.sleep(3)  # curl looks at the time once a second

    with store.faulty(slow) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        with pytest.raises(OSError, match=r"the object store does not answer: .*'s3://captures/faults/a\.pcap'"):
            find_inputs([f"s3://{BUCKET}/faults/a.pcap"])


def test_a_lake_in_a_store_that_fails_is_completed_by_the_next_run(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "ATTEMPTS", 1)
    uri = f"s3://{BUCKET}/faults/lake"

    def fault(method: str, path: str) -> int | None:
        return 500 if method == "PUT" and path.startswith(f"/{BUCKET}/faults/lake/frames/") else None

    with store.faulty(fault) as endpoint, monkeypatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", endpoint)
        with pytest.raises(OSError, match="faults/lake/frames/"):
            remote(store, uri)
    assert not [name for name in store.names("faults/lake") if name.startswith("commits/")]
    result = remote(store, uri)
    assert result.manifest["bundles"] == [0]
    remote(store, tmp_path / "whole")
    assert content(store.fetched("faults/lake", tmp_path / "copy")) == content(tmp_path / "whole")


def changing_object(store: ObjectStore, key: str, data: bytes, requests: int) -> Callable[[str, str], None]:
    """Replaces an object, or deletes it if there is no data, when so many ranges of it have been requested."""
    counts = Counter[str]()

    def fault(method: str, path: str) -> None:
        counts[method + path] += 1
        if method == "GET" and path == f"/{BUCKET}/{key}" and counts[method + path] == requests:
            how = {"Content-Type": "application/octet-stream"}
            change = urllib.request.Request(
                store.endpoint + path, data or None, how, method="PUT" if data else "DELETE"
            )
            urllib.request.urlopen(change).close()

    return fault


KINDS = {"objects": "a.pcap", "columns": "a.pcap", "packed": "a.pcap.gz", "segment": f"{0:020}.log"}


@pytest.mark.parametrize("change", ["unlink", "cut"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_object_that_changes_in_the_middle_of_its_ranges_ends_there(
    kind: str, change: str, store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind in ("columns", "segment"):
        pytest.importorskip("numba")
    monkeypatch.setattr(storage, "CHUNK", 5000)
    folder = f"changing/{kind}-{change}"
    key = f"{folder}/orders-0/{KINDS[kind]}"
    capture_samples.bulk(tmp_path / "bulk.pcap", 300_000)
    data = message_set(500) * 30 if kind == "segment" else (tmp_path / "bulk.pcap").read_bytes()
    data = gzip.compress(data, 0) if kind == "packed" else data
    uri = store.upload(key, data)
    store.upload(f"{folder}/same.pcap", PULSAR)

    def run(lake: str) -> Result:
        road = "auto" if kind == "segment" else kind.replace("packed", "objects")
        return serial.run(Job(find_inputs([f"s3://{BUCKET}/{folder}"]), road=road), tmp_path / lake)

    changed = data[: len(data) // 2] if change == "cut" else b""
    with store.faulty(changing_object(store, key, changed, 4)) as endpoint, monkeypatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", endpoint)
        result = run("lake")
    assert result.changed == (uri,)
    assert result.gone == ({uri} if change == "unlink" else set())
    run("lake")
    run("whole")
    now, whole = content(tmp_path / "lake"), content(tmp_path / "whole")
    for table in ("calls", "messages", "quarantine"):
        assert [row for row in now[table] if change == "cut" or row["file"] != uri] == whole[table]


def share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets tasks of Spark share the first capture of a run, however small, in several parts."""
    for name, size in {"PARTITION_BYTES": 200_000, "WINDOW": 50_000, "AT_ONCE": 50_000}.items():
        monkeypatch.setattr(parallel, name, size)
    monkeypatch.setattr(parallel, "dominating", lambda groups, road, cores: groups[:1])


@pytest.mark.spark
@pytest.mark.parametrize("change", ["unlink", "cut"])
def test_an_object_that_changes_while_tasks_of_spark_share_it(
    change: str, store: ObjectStore, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba")
    from wirekit.spark import pipeline as on_spark

    share(monkeypatch)
    folder = f"changing/spark-{change}"
    capture_samples.bulk(tmp_path / "bulk.pcap", 600_000)
    data = (tmp_path / "bulk.pcap").read_bytes()
    uri = store.upload(f"{folder}/bulk.pcap", data)
    store.upload(f"{folder}/same.pcap", PULSAR)
    job = Job(find_inputs([f"s3://{BUCKET}/{folder}"]), road="columns")
    fault = changing_object(store, f"{folder}/bulk.pcap", data[: len(data) // 2] if change == "cut" else b"", 8)
    with store.faulty(fault) as endpoint, monkeypatch.context() as patch:
        for name, value in (store.environment | {"AWS_ENDPOINT_URL": endpoint}).items():
            patch.setitem(spark.sparkContext.environment, name, value)
            patch.setenv(name, value)
        result = on_spark.run(job, tmp_path / "lake", spark)
    assert result.changed == (uri,)
    assert result.gone == ({uri} if change == "unlink" else set())
    of_bulk = result.summary.files[uri]
    assert of_bulk.unreadable == ("no such object" if change == "unlink" else "")
    assert bool(of_bulk.damaged) == (change == "cut")
    pipeline_again = serial.run(Job(find_inputs([f"s3://{BUCKET}/{folder}"])), tmp_path / "lake")
    assert pipeline_again.changed == ()
    serial.run(Job(find_inputs([f"s3://{BUCKET}/{folder}"])), tmp_path / "whole")
    now, whole = content(tmp_path / "lake"), content(tmp_path / "whole")
    assert [row for row in now["messages"] if change == "cut" or row["file"] != uri] == whole["messages"]


def grow(path: Path) -> None:
    path.write_bytes(path.read_bytes() + JOYQUEUE.read_bytes()[24:])


def cut(path: Path) -> None:
    os.truncate(path, 1000)


@pytest.mark.parametrize("change", [grow, cut, Path.unlink])
def test_a_capture_that_is_changed_while_it_is_read(
    change: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.pcap"
    shutil.copy2(PULSAR, path)
    packets = serial.sorted_packets

    def changing(*arguments: Any, **how: Any) -> Iterator[Any]:
        batches = [*packets(*arguments, **how)]
        if path.exists():
            change(path)
        yield from batches

    monkeypatch.setattr(serial, "sorted_packets", changing)
    first = pipeline(tmp_path / "lake", path, options={"road": "objects"})
    assert first.changed == (str(path),)
    assert first.gone == ({str(path)} if change is Path.unlink else set())
    monkeypatch.undo()
    if change is not Path.unlink:
        assert pipeline(tmp_path / "lake", path, options={"road": "objects"}).changed == ()
        pipeline(tmp_path / "whole", path)
        assert content(tmp_path / "lake") == content(tmp_path / "whole")


def test_a_capture_that_is_cut_while_it_is_read_ends_there(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    header, packets = pcap_records(FIXTURES / "pcap" / "pulsar-consume.pcap")
    path.write_bytes(header + b"".join(packets) * 40)
    with open_capture(path) as capture:
        items = capture.items()
        next(items)
        os.truncate(path, 4096)
        assert len([*items]) < len(packets) * 40 - 1
        assert len(capture.read(0, 1 << 20)) == 4096


def test_a_log_segment_that_is_gone_is_noted(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(message_set(3))
    job = Job(find_inputs([JOYQUEUE, path]))
    path.unlink()
    result = serial.run(job, tmp_path / "lake")
    assert result.changed == (str(path),)
    assert result.summary.unreadable == {str(path): "No such file or directory"}
    noted = [row for row in content(tmp_path / "lake")["quarantine"] if row["file"] == str(path)]
    assert [(row["schema"], row["position"], row["length"], row["reason"]) for row in noted] == [
        ("kafka.log_segment", 0, job.stored[0].size, "No such file or directory")
    ]
    path.write_bytes(message_set(3))
    assert pipeline(tmp_path / "lake", JOYQUEUE, path).summary.unreadable == {}
    pipeline(tmp_path / "whole", JOYQUEUE, path)
    assert content(tmp_path / "lake") == content(tmp_path / "whole")


def test_a_log_segment_that_is_gone_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "orders-0" / f"{0:020}.log"
    path.parent.mkdir()
    path.write_bytes(message_set(3))
    read = serial.write

    def deleting(*arguments: Any, **how: Any) -> Any:
        path.unlink()
        return read(*arguments, **how)

    monkeypatch.setattr(serial, "write", deleting)
    with pytest.raises(SystemExit) as ended:
        main(["pipeline", str(path), "--output", str(tmp_path / "lake")])
    assert ended.value.code == 1
    assert [line for line in capsys.readouterr().err.splitlines() if str(path) in line] == [
        f"wirekit: {path}: gone; it was deleted during the run, and the tables may hold a part of it"
    ]


def changing_when(stage: str, mark: Path, changes: dict[str, str]) -> Callable[[on_spark.Task], on_spark.Task]:
    """Changes files when the first task of a stage begins; functions of test modules are unknown to the workers."""

    def around(task: on_spark.Task) -> on_spark.Task:
        def run(job: Job, attempts: str, number: int) -> str:
            import os

            if getattr(task, "func", task).__name__ == stage and not mark.exists():
                mark.touch()
                for path, change in changes.items():
                    if change == "unlink":
                        os.unlink(path)
                    elif change == "cut":
                        os.truncate(path, os.path.getsize(path) // 2 + 1)
                    else:
                        with open(path, "r+b") as file:
                            last = file.read()[-100_000:]
                            file.write(last)
            return task(job, attempts, number)

        return run

    return around


CHANGES = ("grow", "cut", "unlink")


@pytest.mark.spark
def test_files_that_are_changed_while_tasks_of_spark_read_them(spark: SparkSession, tmp_path: Path) -> None:
    from wirekit.spark import pipeline as on_spark

    folder = tmp_path / "inputs"
    folder.mkdir()
    changes = {}
    for number, change in enumerate(CHANGES):
        for path, data in (
            (folder / f"{change}.pcap", PULSAR.read_bytes()),
            (folder / f"{number:020}.log", message_set(50)),
        ):
            path.write_bytes(data)
            changes[str(path)] = change
    shutil.copy2(JOYQUEUE, folder / "same.pcap")
    job = Job(find_inputs([folder]))
    around = changing_when("read_whole", tmp_path / "mark", changes)
    result = on_spark.run(job, tmp_path / "lake", spark, around=around, shuffled=False)
    assert {*result.changed} == {*changes}
    gone = [name for name, change in changes.items() if change == "unlink"]
    assert {name: result.summary.unreadable[name] for name in gone} == dict.fromkeys(gone, "No such file or directory")
    assert_repaired(tmp_path, folder, {*gone})


@pytest.mark.spark
@pytest.mark.parametrize(
    ("stage", "change"),
    [
        ("walk_ranges", "unlink"),
        ("read_parts", "cut"),
        ("follow_share", "cut"),
        ("decode_units", "unlink"),
    ],
)
def test_a_capture_that_is_changed_while_tasks_of_spark_share_it(
    stage: str, change: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba")
    from wirekit.spark import pipeline as on_spark

    share(monkeypatch)
    folder = tmp_path / "inputs"
    folder.mkdir()
    capture_samples.bulk(folder / "large.pcap", 600_000, connections=1)
    shutil.copy2(JOYQUEUE, folder / "same.pcap")
    job = Job(find_inputs([folder]), road="columns")
    large = job.inputs[0].name
    around = changing_when(stage, tmp_path / "mark", {large: change})
    result = on_spark.run(job, tmp_path / "lake", spark, around=around)
    assert result.changed == (large,)
    assert (tmp_path / "mark").exists()
    assert not (tmp_path / "lake" / ".wirekit").exists()
    assert_repaired(tmp_path, folder, {large} if change == "unlink" else set())


def assert_repaired(tmp_path: Path, folder: Path, gone: set[str]) -> None:
    """The next run makes the tables of the files as they are now; nothing is asked of files that are gone."""

    def of_present(lake: Path) -> dict[str, list[dict[str, Any]]]:
        return {name: [row for row in rows if row["file"] not in gone] for name, rows in content(lake).items()}

    before = [row for row in content(tmp_path / "lake")["messages"] if row["file"] == str(folder / "same.pcap")]
    pipeline(tmp_path / "lake", folder)
    pipeline(tmp_path / "whole", folder)
    assert of_present(tmp_path / "lake") == of_present(tmp_path / "whole")
    assert before
    assert before == [row for row in content(tmp_path / "whole")["messages"] if row in before]


def test_a_first_bundle_that_cannot_be_moved_leaves_nothing_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    move = LocalFolder.move

    def failing(self: LocalFolder, source: str, target: str) -> None:
        if target.startswith("frames/"):
            raise OSError(errno.ENOSPC, "No space left on device")
        move(self, source, target)

    monkeypatch.setattr(LocalFolder, "move", failing)
    with pytest.raises(OSError, match="No space left"):
        pipeline(tmp_path / "lake", PULSAR)
    assert not [*(tmp_path / "lake").rglob("*.parquet")]
    monkeypatch.undo()
    assert pipeline(tmp_path / "lake", PULSAR).manifest["bundles"] == [0]


def test_a_full_disk_is_said_with_the_file(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
        with pytest.raises(OSError) as raised:
            LocalFolder(str(tmp_path)).write("commit.json", b"{}")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (raised.value.strerror, raised.value.filename) == ("File too large", str(tmp_path / "commit.json"))


@pytest.mark.parametrize("most", [0, 3000, 9000])
def test_an_output_that_takes_no_more_bytes(most: int, tmp_path: Path) -> None:
    """A limit on the size of files stands for a full disk."""
    pipeline(tmp_path / "lake", JOYQUEUE)
    before = content(tmp_path / "lake")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
        with pytest.raises(OSError) as raised:
            pipeline(tmp_path / "lake", JOYQUEUE, PULSAR)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert raised.value.strerror == "File too large"
    assert str(raised.value.filename).startswith(str(tmp_path / "lake"))
    assert content(tmp_path / "lake") == before
    pipeline(tmp_path / "lake", JOYQUEUE, PULSAR)
    pipeline(tmp_path / "whole", JOYQUEUE, PULSAR)
    assert content(tmp_path / "lake") == content(tmp_path / "whole")
    assert not (tmp_path / "lake" / ".wirekit").exists()


def test_a_deleted_capture_is_said_to_be_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.pcap"
    shutil.copy2(PULSAR, path)
    read = serial.write

    def deleting(*arguments: Any, **how: Any) -> Any:
        summary = read(*arguments, **how)
        path.unlink()
        return summary

    monkeypatch.setattr(serial, "write", deleting)
    with pytest.raises(SystemExit) as ended:
        main(["pipeline", str(path), "--output", str(tmp_path / "lake")])
    assert ended.value.code == 1
    expected = f"wirekit: {path}: gone; it was deleted during the run, and the tables may hold a part of it\n"
    assert capsys.readouterr().err == expected


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB; only root can mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", place]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("a file system cannot be mounted")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def large(path: Path) -> Path:
    """A capture whose tables do not fit on the small disk."""
    capture_samples.bulk(path, 2 << 20)
    return path


def test_a_disk_that_is_full_is_a_line_and_the_next_run_completes(small_disk: Path, tmp_path: Path) -> None:
    pipeline(small_disk / "lake", JOYQUEUE)
    with pytest.raises(OSError, match="No space left on device") as raised:
        pipeline(small_disk / "lake", JOYQUEUE, large(tmp_path / "large.pcap"))
    assert str(raised.value.filename).startswith(str(small_disk / "lake"))
    assert_completed(small_disk, tmp_path)


@pytest.mark.spark
@pytest.mark.parametrize("shuffled", [False, True])
def test_a_disk_that_is_full_ends_a_run_on_spark_with_a_line(
    shuffled: bool, small_disk: Path, spark: SparkSession, tmp_path: Path
) -> None:
    from wirekit.spark import pipeline as on_spark
    from wirekit.spark.session import SparkFailed, in_one_line

    pipeline(small_disk / "lake", JOYQUEUE)
    job = Job(find_inputs([JOYQUEUE, large(tmp_path / "large.pcap")]))
    with pytest.raises(SparkFailed) as raised, in_one_line():
        on_spark.run(job, small_disk / "lake", spark, shuffled=shuffled)
    text = str(raised.value)
    assert text.startswith(f"Spark failed: OSError: [Errno 28] No space left on device: '{small_disk}/lake/.wirekit/")
    assert "\n" not in text
    assert_completed(small_disk, tmp_path)


def assert_completed(disk: Path, tmp_path: Path) -> None:
    """A failed run left the tables as they were; one on a larger disk adds the rest."""
    pipeline(tmp_path / "before", JOYQUEUE)
    assert content(disk / "lake") == content(tmp_path / "before")
    assert not (disk / "lake" / ".wirekit").exists()
    subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
    for lake in (disk / "lake", tmp_path / "whole"):
        pipeline(lake, JOYQUEUE, tmp_path / "large.pcap")
    assert content(disk / "lake") == content(tmp_path / "whole")


def test_a_full_directory_for_temporary_files_is_named(
    small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = tmp_path / "packed.pcap.gz"
    packed.write_bytes(gzip.compress(large(tmp_path / "large.pcap").read_bytes()))
    monkeypatch.setattr("tempfile.tempdir", str(small_disk))
    result = pipeline(tmp_path / "lake", JOYQUEUE, packed)
    why = f"No space left on device for a copy in {small_disk}; see TMPDIR"
    assert result.summary.unreadable == {str(packed): why}
    assert os.listdir(small_disk) == []
    monkeypatch.undo()
    pipeline(tmp_path / "lake", JOYQUEUE, packed)
    pipeline(tmp_path / "whole", JOYQUEUE, packed)
    assert content(tmp_path / "lake") == content(tmp_path / "whole")


def test_a_full_directory_for_the_copy_of_a_pipe_is_named(small_disk: Path, tmp_path: Path) -> None:
    capture = large(tmp_path / "large.pcap").read_bytes()
    command = [sys.executable, "-m", "wirekit", "pipeline", "-", "--output", str(tmp_path / "lake")]
    environment = {**os.environ, "TMPDIR": str(small_disk)}
    completed = subprocess.run(command, input=capture, capture_output=True, check=False, env=environment)
    why = f"wirekit: No space left on device for a copy in {small_disk}; see TMPDIR\n"
    assert (completed.returncode, completed.stderr.decode()) == (1, why)
    assert os.listdir(small_disk) == []
