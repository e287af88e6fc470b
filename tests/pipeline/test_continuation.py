"""A rotation gives the tables of the whole capture although each of its files is a bundle, or a run, of its own."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from tests.capture.damage import DAMAGES
from tests.capture.second_parser import Packet, packets, write
from tests.conftest import FIXTURES
from tests.pipeline.helpers import tables
from tests.pipeline.test_rotation import Run, cut, once, without_names
from wirekit import plain
from wirekit.errors import Misuse
from wirekit.pipeline import carried, serial
from wirekit.pipeline.inputs import Job, find_inputs
from wirekit.pipeline.run import Result
from wirekit.road import tables as road_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CAPTURES = sorted((FIXTURES / "pcap").glob("*.pcap*"))
KAFKA = FIXTURES / "pcap" / "kafka-0.10.2.2-4-clients.pcapng"
JOYQUEUE = FIXTURES / "pcap" / "jmq4-consume.pcap"
ROADS = ["objects", *(["columns"] if find_spec("numba") else [])]
COPIES = 20 if os.environ.get("HYPOTHESIS_PROFILE") == "exhaustive" else 1
WINDOWS = (700, 5000, 1 << 25)
SECONDS = 1_000_000

Tables = dict[str, list[dict[str, Any]]]


def run(lake: Path, inputs: Path, *, road: str = "objects", **how: Any) -> Run:
    """The tables of a lake after a run, without the names of files."""
    result = serial.run(Job(find_inputs([inputs]), road=road), lake, **how)
    assert not result.notes  # nothing was read again
    return without_names(tables(lake)), result


def counts(result: Result) -> list[Any]:
    """What the manifest says of the one capture that there is."""
    assert len(result.manifest["summary"]) == 1
    return list(result.manifest["summary"].values())


def files_of(whole: list[Packet], random: Random, folder: Path) -> list[Path]:
    """The packets in two to five files, cut anywhere."""
    return cut(folder, whole, sorted(random.sample(range(1, len(whole)), random.randint(1, 4))), "-C")


@pytest.fixture(params=range(COPIES))
def random(request: pytest.FixtureRequest) -> Random:
    return Random(f"{request.node.nodeid}")


@pytest.fixture(scope="module")
def run_whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Run]:
    return once(run, tmp_path_factory)


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_a_bundle_for_each_file_gives_the_tables_of_the_whole(
    path: Path, road: str, random: Random, tmp_path: Path, run_whole: Callable[[Path], Run]
) -> None:
    expected, one = run_whole(path)
    files = files_of(packets(path), random, tmp_path / "cut")
    lake, several = run(tmp_path / "lake", files[0].parent, road=road, bundle=0)
    assert len(several.manifest["bundles"]) == len(files)
    assert lake == expected
    assert counts(several) == counts(one)
    assert list(several.summary.to_json().values()) == list(one.summary.to_json().values())
    assert not list((tmp_path / "lake" / "state").iterdir())


@pytest.mark.parametrize("damage", [None, *DAMAGES])
def test_files_that_come_one_by_one_give_the_tables_of_those_that_are_there(
    damage: str | None, random: Random, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a road, and with windows, that change from file to file."""
    captured = road_tables.captured
    monkeypatch.setattr(
        road_tables, "captured", lambda *values, **how: captured(*values, **how, window=random.choice(WINDOWS))
    )
    whole = packets(random.choice(CAPTURES))
    if damage is not None:
        whole = sorted(DAMAGES[damage](whole, random), key=lambda packet: packet.time_us)
    files = files_of(whole, random, tmp_path / "cut")
    for number, path in enumerate(files):
        (tmp_path / "some").mkdir(exist_ok=True)
        shutil.copy2(path, tmp_path / "some")
        lake, result = run(tmp_path / "lake", tmp_path / "some", road=random.choice(ROADS), rotating=True)
        expected, so_far = run(tmp_path / f"whole{number}", tmp_path / "some")
        assert lake == expected
        assert counts(result) == counts(so_far)
        assert result.committed == number
    assert run(tmp_path / "lake", tmp_path / "some")[1].manifest == result.manifest
    assert len(list((tmp_path / "lake" / "state").iterdir())) == 1


def test_a_last_run_may_end_the_capture(tmp_path: Path) -> None:
    whole = packets(KAFKA)
    files = cut(tmp_path / "cut", whole, [60, 200], "-C")
    last = files[2].rename(tmp_path / files[2].name)
    run(tmp_path / "lake", files[0].parent, rotating=True)
    shutil.move(last, files[2])
    lake, _ = run(tmp_path / "lake", files[0].parent)
    assert lake == run(tmp_path / "whole", files[0].parent)[0]
    assert not list((tmp_path / "lake" / "state").iterdir())


def test_the_rest_of_a_ring_goes_on(tmp_path: Path) -> None:
    """The files that were read first are gone: the state is enough."""
    files = cut(tmp_path / "cut", packets(KAFKA), [60, 200, 390], "-C")
    expected, _ = run(tmp_path / "whole", files[0].parent)
    hidden = [path.rename(tmp_path / path.name) for path in files[2:]]
    run(tmp_path / "lake", files[0].parent, rotating=True)
    files[0].unlink()
    for path in hidden:
        shutil.move(path, files[0].parent)
    assert run(tmp_path / "lake", files[0].parent, rotating=True)[0] == expected


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("replace", [False, True])
def test_a_capture_that_is_read_again_begins_without_the_state(replace: bool, road: str, tmp_path: Path) -> None:
    """Its connections are those of the earlier reading, and would take its packets for repeated ones."""
    folder = tmp_path / "cut"
    files = cut(folder, packets(KAFKA), [60, 200], "-C")
    last = files[2].rename(tmp_path / files[2].name)
    run(tmp_path / "lake", folder, road=road, rotating=True)
    os.utime(files[1], (1, 1))
    again = serial.run(Job(find_inputs([folder]), road=road), tmp_path / "lake", rotating=True, replace=replace)
    assert bool(again.notes) != replace
    assert without_names(tables(tmp_path / "lake")) == run(tmp_path / "some", folder)[0]
    shutil.move(last, files[2])
    assert run(tmp_path / "lake", folder, road=road, rotating=True)[0] == run(tmp_path / "whole", folder)[0]


@pytest.mark.parametrize("rotating", [False, True])
def test_a_changed_file_is_not_read_again_without_the_files_before_it(rotating: bool, tmp_path: Path) -> None:
    """The state after those is needed and gone: rows of connections that they began would be missing."""
    folder = tmp_path / "cut"
    files = cut(folder, packets(KAFKA), [60, 200], "-C")
    run(tmp_path / "lake", folder, bundle=0, rotating=rotating)
    before = tables(tmp_path / "lake")
    os.utime(files[2], (1, 1))
    hidden = files[0].rename(tmp_path / files[0].name)
    for _ in range(2):
        again = serial.run(Job(find_inputs([folder])), tmp_path / "lake", rotating=True)
        assert again.notes == (
            f"{files[2]}: has changed, and the tables keep what was read before, because {files[0]} was read"
            " with it and is gone; --replace reads all inputs again",
        )
        assert tables(tmp_path / "lake") == before
    shutil.move(hidden, files[0])
    with pytest.raises(Misuse, match=r"has changed since it was read; also pass .*t\.pcap, which was read with it"):
        serial.run(Job(find_inputs(files[1:])), tmp_path / "lake", rotating=True)
    serial.run(Job(find_inputs([folder])), tmp_path / "lake", rotating=True)
    assert without_names(tables(tmp_path / "lake")) == run(tmp_path / "whole", folder)[0]


def test_other_captures_keep_their_open_connections(tmp_path: Path) -> None:
    for name in "ab":
        files = cut(tmp_path / name, packets(KAFKA), [60, 200], "-C")
    hidden = files[2].rename(tmp_path / files[2].name)
    run_all = lambda **how: serial.run(Job(find_inputs([tmp_path / "a", tmp_path / "b"])), tmp_path / "lake", **how)  # noqa: E731
    run_all(rotating=True)
    shutil.move(hidden, files[2])
    run_all(rotating=True)
    serial.run(Job(find_inputs([tmp_path / "a", tmp_path / "b"])), tmp_path / "whole")
    without_names(tables(tmp_path / "lake"))
    lake, expected = (tables(tmp_path / name) for name in ("lake", "whole"))
    assert {name: rows for name, rows in lake.items() if name not in ("runs", "inputs")} == {
        name: rows for name, rows in expected.items() if name not in ("runs", "inputs")
    }


RUN = """
import sys
from wirekit.pipeline.inputs import Job, find_inputs
from wirekit.pipeline.serial import run
job = Job(find_inputs([sys.argv[1]]))
print("begin", flush=True)
run(job, sys.argv[2], bundle=0, rotating=True)
print("end", flush=True)
"""


def test_a_run_that_is_killed_between_bundles_goes_on(tmp_path: Path) -> None:
    whole = packets(KAFKA)
    files = cut(tmp_path / "cut", whole, list(range(20, len(whole), 20)), "-C")
    expected, _ = run(tmp_path / "whole", files[0].parent)
    random, killed, counts_of_commits = Random(5), 0, [0]
    command = [sys.executable, "-c", RUN, str(files[0].parent), str(tmp_path / "lake")]

    def commits() -> int:
        return max((int(path.stem) for path in (tmp_path / "lake" / "commits").glob("*.json")), default=-1) + 1

    while True:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "begin\n"
            if killed < 4:
                until = counts_of_commits[-1] + random.randrange(1, 4)
                while commits() < until and process.poll() is None:
                    time.sleep(0.001)
                time.sleep(random.uniform(0, 0.05))
                process.send_signal(signal.SIGKILL)
            out, err = process.communicate()
        assert err == ""
        counts_of_commits.append(commits())
        if "end" in out:
            break
        killed += 1
    assert killed >= 3
    assert without_names(tables(tmp_path / "lake")) == expected
    assert counts_of_commits == sorted(counts_of_commits)
    assert len({*counts_of_commits}) > 3
    assert len(list((tmp_path / "lake" / "state").iterdir())) == 1


def test_watch_goes_on_with_each_file(tmp_path: Path) -> None:
    whole = packets(JOYQUEUE)
    files = cut(tmp_path / "cut", whole, [10, 25, 30], "-C")
    folder, lake = tmp_path / "captures", tmp_path / "lake"
    folder.mkdir()
    command = [sys.executable, "-m", "wirekit", "pipeline", str(folder), "--output", str(lake), "--watch"]
    with subprocess.Popen([*command, "--settle", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        for path in files:
            shutil.copy2(path, tmp_path / "new")
            (tmp_path / "new").rename(folder / path.name)
            assert process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"wirekit: stopped\n")
    assert without_names(tables(lake)) == run(tmp_path / "whole", folder)[0]


@pytest.mark.skipif(not find_spec("deltalake"), reason="needs deltalake")
def test_delta_tables_go_on(tmp_path: Path) -> None:
    from deltalake import DeltaTable

    files = cut(tmp_path / "cut", packets(KAFKA), [60, 200], "-C")
    expected, one = run(tmp_path / "whole", files[0].parent)
    for count in (1, 2, 3):
        (tmp_path / "some").mkdir(exist_ok=True)
        shutil.copy2(files[count - 1], tmp_path / "some")
        run(tmp_path / "lake", tmp_path / "some", rotating=True, form="delta")
    for name in expected:
        assert DeltaTable(tmp_path / "lake" / name).to_pyarrow_table().num_rows == one.manifest["tables"][name]["rows"]


def later(whole: list[Packet], seconds: int) -> list[Packet]:
    return [packet._replace(time_us=packet.time_us + seconds * SECONDS) for packet in whole]


def state(lake: Path) -> list[dict[str, Any]]:
    (path,) = (lake / "state").iterdir()
    return [row for row in pq.read_table(path).to_pylist() if row["one"]]


@pytest.mark.parametrize("road", ROADS)
def test_silent_connections_are_over(road: str, tmp_path: Path) -> None:
    """With the file that comes so late; their numbers remain taken."""
    whole = packets(JOYQUEUE)[:40]
    folder = tmp_path / "cut"
    folder.mkdir()
    write(folder / "t.pcap", whole)
    run(tmp_path / "lake", folder, road=road, rotating=True)
    assert any(row["state"] for row in state(tmp_path / "lake"))
    other = packets(FIXTURES / "pcap" / "pulsar-batch.pcap")
    gap = (whole[-1].time_us - other[0].time_us) // SECONDS
    write(folder / "t.pcap1", later(other, gap + 601))
    lake, _ = run(tmp_path / "lake", folder, road=road, rotating=True)
    assert {row["reason"] for row in lake["connections"] if row["protocol"] == "joyqueue"} == {"idle"}
    joyqueue = {tuple(sorted((row["one"], row["other"]))): row for row in state(tmp_path / "lake") if not row["state"]}
    assert joyqueue
    write(folder / "t.pcap2", later(whole, 1300))
    lake, _ = run(tmp_path / "lake", folder, road=road, rotating=True)
    assert sorted({row["ordinal"] for row in lake["connections"] if row["protocol"] == "joyqueue"}) == [0, 1]
    expected, _ = run(tmp_path / "whole", folder)
    assert lake == expected


def test_a_connection_with_too_much_state_ends_with_the_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carried, "MOST_OF_CONNECTION", 100)
    files = cut(tmp_path / "cut", packets(JOYQUEUE), [20], "-C")
    lake, _ = run(tmp_path / "lake", files[0].parent, bundle=0)
    expected, _ = run(tmp_path / "whole", files[0].parent)
    assert len(lake["connections"]) == len(expected["connections"]) + 1

    def sizes(rows: Tables) -> int:
        return sum(row[f"{side}_captured"] for row in rows["connections"] for side in ("client", "server"))

    assert sizes(lake) == sizes(expected)


@pytest.fixture
def begun_lake(tmp_path: Path) -> Path:
    """A lake with the state of a capture of which the next file has just come."""
    files = cut(tmp_path / "cut", packets(JOYQUEUE), [20], "-C")
    hidden = files[1].rename(tmp_path / "hidden")
    run(tmp_path / "lake", files[0].parent, rotating=True)
    shutil.move(hidden, files[1])
    return tmp_path


def rewrite(folder: Path, change: Any) -> None:
    """Changes the rows of the state, and what the commit says of the file."""
    (path,) = (folder / "lake" / "state").iterdir()
    table = pq.read_table(path)
    rows = table.to_pylist()
    change(rows)
    pq.write_table(type(table).from_pylist(rows, table.schema), path)
    commit = folder / "lake" / "commits" / "00000.json"
    content_of_commit = json.loads(commit.read_text())
    content = path.read_bytes()
    content_of_commit["state"][0] |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    commit.write_text(json.dumps(content_of_commit))


def test_a_state_that_was_changed_is_refused(begun_lake: Path) -> None:
    (path,) = (begun_lake / "lake" / "state").iterdir()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(Misuse, match="was changed after it was written"):
        run(begun_lake / "lake", begun_lake / "cut")


@pytest.mark.parametrize("road", ROADS)
def test_a_state_of_another_version_is_refused(road: str, begun_lake: Path) -> None:
    def change(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            if row["state"]:
                row["state"] = row["state"].replace(f'"version":{carried.VERSION}', '"version":1', 1)

    rewrite(begun_lake, change)
    with pytest.raises(Misuse, match=f"version 1, not {carried.VERSION}"):
        run(begun_lake / "lake", begun_lake / "cut", road=road)


def test_a_damaged_state_is_refused_or_read(begun_lake: Path) -> None:
    """Whatever it says: it is data, and no code."""
    lake, random = begun_lake / "lake", Random(3)
    shutil.copytree(lake, begun_lake / "good")
    refused = 0
    for _ in range(60):
        shutil.rmtree(lake)
        shutil.copytree(begun_lake / "good", lake)

        def change(rows: list[dict[str, Any]]) -> None:
            row = random.choice([row for row in rows if row["state"]])
            text = row["state"]
            at = random.randrange(len(text))
            row["state"] = text[:at] + random.choice(["", "0", '"', "]", "{", "null", "-1"]) + text[at + 1 :]

        rewrite(begun_lake, change)
        try:
            serial.run(Job(find_inputs([begun_lake / "cut"])), lake)
        except Misuse:
            refused += 1
    assert refused > 20


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"os.system","of":["true"]}',
        '{"type":"set","of":[[1]]}',
        '{"of":[]}',
        "[" * 500 + "]" * 500,
        '{"type":"bytes","of":1}',
    ],
)
def test_stored_values_make_plain_ones_only(text: str) -> None:
    with pytest.raises(Misuse, match="damaged"):
        plain.restored(json.loads(text))


@pytest.mark.spark
def test_spark_goes_on_with_each_file(tmp_path: Path, spark: SparkSession) -> None:
    from wirekit.spark import pipeline

    files = cut(tmp_path / "cut", packets(KAFKA), [60, 200, 390], "-C")
    expected, _ = run(tmp_path / "whole", files[0].parent)
    hidden = files[3].rename(tmp_path / "hidden")
    pipeline.run(Job(find_inputs([files[0].parent])), tmp_path / "lake", spark, bundle=0, rotating=True)
    shutil.move(hidden, files[3])
    result = pipeline.run(Job(find_inputs([files[0].parent])), tmp_path / "lake", spark, rotating=True)
    assert (result.notes, result.committed) == ((), 3)
    assert without_names(tables(tmp_path / "lake")) == expected
