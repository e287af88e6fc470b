"""``spark.readStream.format("wirekit")`` with option ``state``: the files of a rotation are one capture."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import time
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.capture.damage import DAMAGES
from tests.capture.second_parser import packets
from tests.conftest import FIXTURES
from tests.pipeline.test_rotation import cut
from wirekit import read
from wirekit.errors import Misuse
from wirekit.pipeline import serial
from wirekit.tables.columns import FROM_INPUTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from wirekit.spark.stream import CaptureStream

pytest.importorskip("pyspark")

CAPTURES = sorted((FIXTURES / "pcap").glob("*.pcap*"))
KAFKA = FIXTURES / "pcap" / "kafka-0.10.2.2-4-clients.pcapng"
JOYQUEUE = FIXTURES / "pcap" / "jmq4-consume.pcap"
PULSAR = FIXTURES / "pcap" / "pulsar-batch.pcap"
SEGMENT = FIXTURES / "kafka" / "disk" / "0.10.2.2-t-logappend-0.log"
ROADS = ["objects", *(["columns"] if find_spec("numba") else [])]
EXHAUSTIVE = os.environ.get("HYPOTHESIS_PROFILE") == "exhaustive"
COPIES = 20 if EXHAUSTIVE else 1
TABLES = len(FROM_INPUTS) if EXHAUSTIVE else 4
"""The number of tables, chosen at random, that a query reads of each rotation."""
Rows = list[dict[str, Any]]


@pytest.fixture(params=range(COPIES))
def random(request: pytest.FixtureRequest) -> Random:
    return Random(request.node.nodeid)


@pytest.fixture(params=ROADS)
def road(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(serial, "captures_by_columns", lambda *_: request.param == "columns")
    return str(request.param)


def old(paths: list[Path]) -> None:
    """Files that were changed an hour ago, one after the other."""
    now = int(time.time())
    for number, path in enumerate(paths):
        os.utime(path, (now - 3600 + number, now - 3600 + number))


class Query:
    """What Spark does with the source, from the checkpoint on; each look is by a source of its own."""

    def __init__(self, folder: Path | str, state: Path | str, table: str = "calls", **options: str) -> None:
        self.options = {"path": str(folder), "state": str(state), "table": table, **options}
        self.offset = json.dumps(self.source().initialOffset())
        self.rows: Rows = []
        self.batches: list[list[list[str]]] = []

    def source(self) -> CaptureStream:
        from wirekit.spark.source import source_schema
        from wirekit.spark.stream import CaptureStream

        return CaptureStream(source_schema(self.options), self.options)

    def planned(self) -> str | None:
        source, start = self.source(), json.loads(self.offset)
        end = source.latestOffset(start, source.getDefaultReadLimit())
        return None if end == start else json.dumps(end)

    def run(self, end: str, batches: int | None = None) -> Rows:
        """Reads a micro-batch, or so many batches of rows of each partition."""
        rows: Rows = []
        for part in self.source().partitions(json.loads(self.offset), json.loads(end)):
            for number, batch in enumerate(self.source().read(pickle.loads(pickle.dumps(part)))):
                if batches is not None and number >= batches:
                    break
                rows += batch.to_pylist()
        return rows

    def step(self, random: Random | None = None) -> bool:
        """One micro-batch, perhaps after attempts of it that came to nothing."""
        end = self.planned()
        if end is None:
            return False
        for _ in range(0 if random is None else random.randrange(3)):
            self.run(end, random.choice([None, 0, 1]) if random else None)
        self.rows += self.run(end)
        self.batches.append([[Path(file[0]).name for file in part[1]] for part in json.loads(json.loads(end)["parts"])])
        self.offset = end
        if random is None or random.randrange(2):
            self.source().commit(json.loads(end))
        return True

    def finish(self, random: Random | None = None) -> Rows:
        while self.step(random):
            pass
        self.options["closeAfter"] = "0"
        while self.step(random):
            pass
        return self.sorted_rows()

    def sorted_rows(self) -> Rows:
        return sorted(self.rows, key=repr)


def whole(folder: Path | str, table: str) -> Rows:
    return sorted(read(folder, table).read_all().to_pylist(), key=repr)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_a_rotation_gives_the_tables_of_the_whole(path: Path, road: str, random: Random, tmp_path: Path) -> None:
    """Cut anywhere, in micro-batches of any files, with attempts that fail and a source that begins anew each time."""
    all_packets = packets(path)
    damage = random.choice([None, *DAMAGES])
    if damage is not None:
        all_packets = sorted(DAMAGES[damage](all_packets, random), key=lambda packet: packet.time_us)
    places = sorted(random.sample(range(1, len(all_packets)), random.randint(1, 4)))
    old(cut(tmp_path / "cut", all_packets, places, "-C"))
    for table in random.sample(list(FROM_INPUTS), TABLES):
        query = Query(tmp_path / "cut", tmp_path / "state", table, maxFilesPerTrigger=str(random.randint(1, 2)))
        assert query.finish(random) == whole(tmp_path / "cut", table), table


def test_files_that_come_later_go_on(tmp_path: Path) -> None:
    files = cut(tmp_path / "all", packets(KAFKA), [60, 200, 390], "-C")
    old(files)
    (tmp_path / "some").mkdir()
    query = Query(tmp_path / "some", tmp_path / "state")
    for path in files:
        shutil.copy2(path, tmp_path / "some")
        assert query.step()
        assert not query.step()
    assert query.batches == [[[path.name]] for path in files]
    query.options["closeAfter"] = "0"
    assert query.step()
    assert query.batches[-1] == [[]]
    assert query.sorted_rows() == whole(tmp_path / "some", "calls")


def test_states_are_enough(tmp_path: Path) -> None:
    """Files that were read may go."""
    files = cut(tmp_path / "all", packets(KAFKA), [60, 200, 390], "-C")
    old(files)
    expected = [str(row["api"]) for row in whole(tmp_path / "all", "calls")]
    (tmp_path / "some").mkdir()
    query = Query(tmp_path / "some", tmp_path / "state")
    for path in files:
        shutil.copy2(path, tmp_path / "some")
        assert query.step()
        (tmp_path / "some" / path.name).unlink()
    assert sorted(str(row["api"]) for row in query.finish()) == sorted(expected)
    assert len({row["file"] for row in query.rows}) == 1


@pytest.mark.parametrize("batches", [0, 1])
def test_micro_batches_that_nobody_read_to_their_end(batches: int, tmp_path: Path) -> None:
    """Their files are read again, as they left no state; their rows are those that were taken."""
    old(cut(tmp_path / "cut", packets(KAFKA), [60, 200, 390], "-C"))
    query = Query(tmp_path / "cut", tmp_path / "state", maxFilesPerTrigger="1")
    rows: Rows = []
    for _ in range(2):
        end = query.planned()
        assert end is not None
        rows += query.run(end, batches)
        query.offset = end
        query.source().commit(json.loads(end))
    assert rows or not batches
    remaining = query.finish()
    expected = whole(tmp_path / "cut", "calls")
    assert 0 < len(remaining) < len(expected)
    assert all(row in expected for row in remaining)
    assert not any(row in remaining for row in rows)


def test_only_needed_states_stay(tmp_path: Path) -> None:
    old(cut(tmp_path / "cut", packets(KAFKA), [60, 200, 390], "-C"))
    query = Query(tmp_path / "cut", tmp_path / "state", maxFilesPerTrigger="1")
    states = lambda: list((tmp_path / "state").glob("*/*"))  # noqa: E731
    while query.step():
        assert len(states()) == (1 if len(query.batches) == 1 else 2)
    query.finish()
    assert states() == []


def test_other_files_are_captures_of_their_own(tmp_path: Path) -> None:
    """A rotation, a file that is older than what was read of it, one without relatives, and a stored file."""
    files = cut(tmp_path / "cut", packets(KAFKA), [60, 200], "-C")
    shutil.copy(PULSAR, tmp_path / "cut" / "other.pcap")
    shutil.copy(SEGMENT, tmp_path / "cut" / "00000000000000000000.log")
    old([tmp_path / "cut" / "other.pcap", tmp_path / "cut" / "00000000000000000000.log", *files])
    late = files[0].rename(tmp_path / "late")
    query = Query(tmp_path / "cut", tmp_path / "state", "messages")
    assert query.step()
    late.rename(files[0])
    assert query.step()
    assert query.batches == [[["other.pcap"], ["00000000000000000000.log"], ["t.pcap1", "t.pcap2"]], [["t.pcap"]]]
    end = json.loads(query.offset)
    assert [Path(each[0]).name for each in json.loads(end["open"])] == ["other.pcap", "t.pcap1"]
    rows = query.finish()
    assert len(rows) == len({repr(row) for row in rows})
    assert {Path(row["file"]).name for row in rows} == {"other.pcap", "00000000000000000000.log", "t.pcap1"}


def test_a_rotation_waits_for_a_file_that_is_being_written(tmp_path: Path) -> None:
    files = cut(tmp_path / "cut", packets(KAFKA), [60, 200, 390], "-C")
    old(files)
    os.utime(files[1])
    query = Query(tmp_path / "cut", tmp_path / "state", closeAfter="0")
    assert query.step()
    assert not query.step()  # and the capture goes on
    old(files[:2])
    assert query.finish() == whole(tmp_path / "cut", "calls")
    assert query.batches == [[["t.pcap"]], [["t.pcap1", "t.pcap2", "t.pcap3"]]]


def test_a_name_that_is_used_again_ends_its_capture(tmp_path: Path) -> None:
    files = cut(tmp_path / "cut", packets(JOYQUEUE), [20], "-C")
    old(files)
    query = Query(tmp_path / "cut", tmp_path / "state", "connections")
    assert query.step()
    files[1].unlink()
    shutil.copy(PULSAR, tmp_path / "cut" / "a.pcap")
    old([tmp_path / "cut" / "a.pcap"])
    assert query.step()
    shutil.copy(PULSAR, files[1])
    old([files[1]])
    assert query.step()
    assert query.batches[-1] == [["t.pcap1"], []]
    goes_on = [Path(each[0]).name for each in json.loads(json.loads(query.offset)["open"])]
    assert sorted(goes_on) == ["a.pcap", "t.pcap1"]


def test_where_and_ports_keep_the_state(tmp_path: Path) -> None:
    """Rows that are not wanted decide on others."""
    old(cut(tmp_path / "cut", packets(JOYQUEUE), [10, 25, 30], "-C"))
    where = {"where": "outcome = 'answered'", "columns": "api,latency_us"}
    query = Query(tmp_path / "cut", tmp_path / "state", maxFilesPerTrigger="1", ports="50088=joyqueue", **where)
    rows = query.finish()
    expected = [row for row in whole(tmp_path / "cut", "calls") if row["outcome"] == "answered"]
    assert rows == sorted(({name: row[name] for name in ("api", "latency_us")} for row in expected), key=repr)
    assert rows


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"separate": "true"}, "state or separate, not both"),
        ({"table": "packets"}, "packets needs no state"),
        ({"closeAfter": "never"}, "closeAfter must be a number of seconds"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, str], text: str, tmp_path: Path) -> None:
    with pytest.raises(Misuse, match=text):
        Query(tmp_path, tmp_path / "state", **options)


def test_a_checkpoint_of_other_options_is_refused(tmp_path: Path) -> None:
    old(cut(tmp_path / "cut", packets(JOYQUEUE), [10, 25], "-C"))
    query = Query(tmp_path / "cut", tmp_path / "state", maxFilesPerTrigger="1")
    assert query.step()
    for change in ({"columns": "api"}, {"state": "", "separate": "true"}, {"protocol": "kafka"}, {"table": "frames"}):
        other = dict(query.options)
        query.options |= change
        with pytest.raises(Misuse, match="a query with another state"):
            query.planned()
        query.options = other
    assert query.finish() == whole(tmp_path / "cut", "calls")


@pytest.mark.skipif("WIREKIT_LONG" not in os.environ, reason="takes a minute: make test-long")
@pytest.mark.spark
@pytest.mark.parametrize("table", ["calls", "connections"])
def test_a_query_that_is_restarted_in_the_middle(table: str, tmp_path: Path, spark: SparkSession) -> None:
    """On Spark: it dies behind a micro-batch that was written and not committed, and a micro-batch is read twice."""
    from wirekit.spark.source import register

    register(spark)
    old(cut(tmp_path / "cut", packets(KAFKA), [60, 200, 390], "-C"))
    by_number: dict[int, Rows] = {}
    numbers: list[int] = []

    def add(frame: Any, number: int) -> None:
        frame.limit(1).collect()
        by_number[number] = frame.toArrow().to_pylist()  # as an application transaction would, once for each number
        numbers.append(number)
        if numbers == [0, 1]:
            raise RuntimeError("killed")

    def query(**options: str) -> None:
        parameters = {"table": table, "maxFilesPerTrigger": "1", "state": str(tmp_path / "state"), **options}
        captures = spark.readStream.format("wirekit").options(**parameters).load(str(tmp_path / "cut"))
        writer = captures.writeStream.foreachBatch(add).option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()

    with pytest.raises(Exception, match="killed"):
        query()
    query()
    assert numbers == [0, 1, 1, 2, 3]
    query(closeAfter="0")
    rows = [row for number in sorted(by_number) for row in by_number[number]]
    assert sorted(rows, key=repr) == whole(tmp_path / "cut", table)
    assert len(numbers) == 6


def test_a_state_that_is_damaged_names_what_a_stream_can_do(tmp_path: Path) -> None:
    old(cut(tmp_path / "cut", packets(JOYQUEUE), [10, 25], "-C"))
    query = Query(tmp_path / "cut", tmp_path / "state", maxFilesPerTrigger="1")
    assert query.step()
    (state,) = (tmp_path / "state").rglob("*.parquet")
    state.write_bytes(state.read_bytes()[:-1])
    with pytest.raises(Misuse, match=r"was changed after it was written; .*start the query with a new checkpoint"):
        query.step()
