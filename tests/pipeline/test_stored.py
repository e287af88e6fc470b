"""Log segments beside captures: the messages that ``wirekit messages`` prints, on both engines of the pipeline."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import wirekit
from tests.cli.running import Run
from tests.conftest import FIXTURES
from tests.pipeline.helpers import rows, tables
from wirekit import read
from wirekit.cli import main
from wirekit.compression import compress
from wirekit.pipeline import serial, stored
from wirekit.pipeline.inputs import CAPTURE, Job, find_inputs
from wirekit.pipeline.rows import BATCH_ROWS
from wirekit.pipeline.run import Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DISK = FIXTURES / "kafka" / "disk"
BASE = "0" * 20
VALUES = "kafka.consumer_offsets"
ENTRY = wirekit.encode("kafka.message_set", {"messages": [{"offset": 3, "message": {"magic": 0, "value": "6869"}}]})


@pytest.fixture(scope="module")
def disks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Partitions of real brokers, one torn, one with nonsense in it, one empty, and a capture."""
    folder = tmp_path_factory.mktemp("disks")
    for log in sorted(DISK.glob("*.log")):
        partition = folder / log.stem
        partition.mkdir()
        shutil.copy(log, partition / f"{BASE}.log")
        shutil.copy(log.with_suffix(".log.dump.txt"), partition / f"{BASE}.log.dump.txt")
    (folder / "__consumer_offsets-0").mkdir()
    shutil.copy(DISK / "0.10.2.2-__consumer_offsets-0.log", folder / "__consumer_offsets-0" / f"{BASE}.log")
    plain = (DISK / "0.10.2.2-t-none-0.log").read_bytes()
    for name, data in {"torn-1": plain[:-7], "nonsense-2": plain + b"\x55" * 3000, "empty-3": b""}.items():
        (folder / name).mkdir()
        (folder / name / f"{BASE}.log").write_bytes(data)
    shutil.copy(FIXTURES / "pcap" / "kafka-0.8.2.2-2-produce.pcapng", folder / "a.pcapng")
    return folder


@pytest.fixture(scope="module")
def by_serial(disks: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    output = tmp_path_factory.mktemp("serial")
    return output, serial.run(Job(find_inputs([disks])), output)


def segments(disks: Path) -> list[Path]:
    return sorted(disks.glob("*/*.log"))


def test_captures_come_first_and_segments_are_recognised_by_name(disks: Path) -> None:
    inputs = find_inputs([disks])
    assert [each.kind for each in inputs] == [CAPTURE] + ["kafka.log_segment"] * len(segments(disks))
    assert [each.number for each in inputs] == list(range(len(inputs)))
    assert find_inputs([segments(disks)[0]])[0].kind == "kafka.log_segment"


@pytest.mark.parametrize("name", ["orders.log", "0", "trace.pcap"])
def test_a_named_segment_is_recognised_by_its_content(name: str, tmp_path: Path, disks: Path) -> None:
    renamed = tmp_path / name
    shutil.copy(segments(disks)[0], renamed)
    for path in (renamed, f"file://{renamed}", *([] if name == "trace.pcap" else [tmp_path / "[0o]*"])):
        assert [each.kind for each in find_inputs([path])] == ["kafka.log_segment"]
    messages = read(renamed, "messages").read_all()
    assert messages.num_rows == read(segments(disks)[0], "messages").read_all().num_rows > 0
    assert Run("sql", "FROM messages", str(renamed)).status == 0
    assert "`wirekit messages` shows the messages of a log segment" in Run("frames", str(renamed)).err


def test_a_file_of_which_nothing_tells_the_kind_is_a_capture(tmp_path: Path) -> None:
    for number, content in enumerate([b"", b"hello", b"\xff" * 5000, b"\x1f\x8b" + bytes(40)]):
        (tmp_path / str(number)).write_bytes(content)
        assert [each.kind for each in find_inputs([tmp_path / str(number)])] == [CAPTURE]


def test_messages_are_those_that_the_command_prints(
    disks: Path, by_serial: tuple[Path, Result], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    with pytest.raises(SystemExit):
        main(["messages", *map(str, segments(disks)), "--output", "json", "--engine", "rows"])
    printed = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    stored = [row for row in rows(by_serial[0], "messages") if row["schema"] == "kafka.log_segment"]
    shown = [
        {
            **{name: row[name] for name in printed[0] if name in row and name not in ("timestamp", "key", "value")},
            "offset": row["log_offset"],
            "check": row["crc_status"],
            "timestamp": row["timestamp_ms"],
            "key": None if row["key"] is None else row["key"].hex(),
            "value": None if row["value"] is None else row["value"].hex(),
        }
        for row in stored
    ]
    assert sorted(shown, key=repr) == sorted(({name: line[name] for name in shown[0]} for line in printed), key=repr)
    assert {(row["connection_id"], row["call_id"], row["time"], row["direction"]) for row in stored} == {
        (None, None, None, "stored")
    }
    assert {row["timestamp"] is None for row in stored if row["timestamp_ms"] is not None} == {False}


def test_stored_offsets_and_groups_are_those_in_the_messages(by_serial: tuple[Path, Result]) -> None:
    output, _ = by_serial
    stored = [row for row in rows(output, "messages") if row["topic"] == "__consumer_offsets"]
    values = {row["position"]: (wirekit.decode(row["key"], f"{VALUES}.key").value, row["value"]) for row in stored}

    def offset(value: bytes | None) -> int | None:
        return None if value is None else wirekit.decode(value, f"{VALUES}.offset_value").value.offset

    positions = rows(output, "offsets")
    assert {
        row["position"]: (row["group_id"], row["topic"], row["partition"], row["log_offset"]) for row in positions
    } == {
        position: (key.group, key.topic, key.partition, offset(value))
        for position, (key, value) in values.items()
        if key.version <= 1
    }
    assert {(row["source"], row["call_id"]) for row in positions} == {("stored", None)}
    assert {row["deleted"]: row["log_offset"] is None for row in positions} == {False: False, True: True}
    members = {
        (key.group, member and member.member_id)
        for key, value in values.values()
        if key.version > 1 and value is not None
        for member in wirekit.decode(value, f"{VALUES}.group_value").value.members or [None]
    }
    events = {
        event: [row for row in rows(output, "group_events") if row["event"] == event] for event in ("stored", "deleted")
    }
    assert sum(map(len, events.values())) == len(rows(output, "group_events"))
    assert {(row["group_id"], row["member_id"]) for row in events["stored"]} == members
    assert {member is None for _, member in members} == {True, False}
    assert all((row["topics"] and row["assignment"]) or row["member_id"] is None for row in events["stored"])
    deleted = {position: key.group for position, (key, value) in values.items() if key.version > 1 and value is None}
    assert {row["position"]: row["group_id"] for row in events["deleted"]} == deleted != {}
    assert {(row["member_id"], row["generation"], row["topics"]) for row in events["deleted"]} == {(None, None, None)}


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize(
    ("contents", "rows"),
    [(b"\xff" * 50, 0), (ENTRY + b"\xff" * 50, 1), (ENTRY + ENTRY[:-1], 1)],
    ids=["none", "undecodable", "cut"],
)
def test_lost_messages_of_a_compressed_set_are_quarantined(
    contents: bytes, rows: int, magic: int, tmp_path: Path
) -> None:
    """The CRC of the set is good. Its bytes count as undecoded if none of its messages is decoded."""
    value = {"compressed": compress("gzip", contents).hex()}
    message = {"magic": magic, "attributes": {"codec": "GZIP"}, "timestamp": 7 if magic else None, "value": value}
    wrapper = wirekit.encode("kafka.message_set", {"messages": [{"offset": 4, "message": message}]})
    later = wirekit.encode("kafka.message_set", {"messages": [{"offset": 5, "message": {"magic": 0, "value": "6869"}}]})
    path = tmp_path / f"{BASE}.log"
    path.write_bytes(ENTRY + wrapper + later)
    (row,) = wirekit.read(path, "quarantine").read_all().to_pylist()
    assert (row["position"], row["length"]) == (len(ENTRY), 0 if rows else len(wrapper))
    assert row["error_position"] == len(ENTRY + wrapper) - len(bytes.fromhex(value["compressed"]))
    assert "whole messages in the compressed data" in row["reason"]
    assert wirekit.read(path, "messages").read_all().num_rows == rows + 2
    out = Run("messages", str(path))
    assert out.status == 1
    assert f"at byte {row['error_position']}" in out.err
    extent = "damaged: 1 place" if rows else f"not decoded: {len(wrapper)} bytes"
    assert f"{extent}; the table quarantine" in Run("sql", "SELECT count(*) FROM messages", str(path)).err
    out = Run("pipeline", str(path), "-o", str(tmp_path / "lake"), "--strict")
    assert out.status == 1
    assert (f"{extent}; the table" if rows else f"{extent} in 1 piece; the table") in out.err
    assert (b"not decoded    1 place: " if rows else b" B: messages[].message.value: ") in out.out


@pytest.mark.parametrize("codec", ["GZIP", "SNAPPY"])
def test_a_compressed_set_whose_content_is_empty_has_no_row(codec: str, tmp_path: Path) -> None:
    value = {"compressed": compress(codec.lower(), b"").hex()}
    message = {"magic": 0, "attributes": {"codec": codec}, "value": value}
    path = tmp_path / f"{BASE}.log"
    path.write_bytes(ENTRY + wirekit.encode("kafka.message_set", {"messages": [{"offset": 4, "message": message}]}))
    assert wirekit.read(path, "messages").read_all().num_rows == 1
    assert wirekit.read(path, "quarantine").read_all().num_rows == 0
    assert Run("messages", str(path)).status == 0


@pytest.mark.parametrize("after", [False, True])
def test_a_message_that_does_not_decode_is_quarantined_from_its_first_byte(after: bool, tmp_path: Path) -> None:
    """With an intact message after it, and without one."""
    nonsense = bytes(7) + b"\7" + b"\xff" * 30
    path = tmp_path / f"{BASE}.log"
    later = ENTRY.replace(bytes(7) + b"\3", bytes(7) + b"\4", 1) if after else b""
    path.write_bytes(ENTRY + nonsense + later)
    (row,) = wirekit.read(path, "quarantine").read_all().to_pylist()
    assert (row["position"], row["length"]) == (len(ENTRY), len(nonsense))
    assert row["error_position"] == len(ENTRY) + 8  # its size
    assert wirekit.read(path, "messages").read_all().num_rows == 1 + after


def test_a_file_may_have_more_undecodable_pieces_than_a_batch_has_rows(tmp_path: Path) -> None:
    number = BATCH_ROWS + 1
    path = tmp_path / f"{BASE}.log"
    entries = (offset.to_bytes(8, "big") + ENTRY[8:] for offset in range(number))
    path.write_bytes(b"".join(entry + b"\xff" * len(ENTRY) for entry in entries))
    assert wirekit.read(path, "quarantine").read_all().num_rows == number


def test_rows_and_columns_make_the_same_tables(
    disks: Path, by_serial: tuple[Path, Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "find_spec", lambda name: None)
    result = serial.run(Job(find_inputs([disks])), tmp_path / "out")
    assert tables(tmp_path / "out") == tables(by_serial[0])
    assert result.summary == by_serial[1].summary


def test_undecodable_bytes_are_quarantined_to_the_end_of_the_file(disks: Path, by_serial: tuple[Path, Result]) -> None:
    output, result = by_serial
    whole = (DISK / "0.10.2.2-t-none-0.log").stat().st_size
    quarantined: dict[str, Any] = {
        Path(row["file"]).parent.name: row for row in rows(output, "quarantine") if not row["side"]
    }
    assert sorted(quarantined) == ["nonsense-2", "torn-1"]
    for name, row in quarantined.items():
        path = disks / name / f"{BASE}.log"
        assert row["position"] + row["length"] == path.stat().st_size
        assert row["raw"] == path.read_bytes()[row["position"] :]
        assert result.summary.file(str(path)).quarantine
    assert quarantined["nonsense-2"]["position"] >= whole
    assert result.summary.file(str(segments(disks)[0])).messages["kafka"] == len(
        [row for row in rows(output, "messages") if row["file"] == str(segments(disks)[0])]
    )


def test_a_segment_alone(tmp_path: Path, disks: Path) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["pipeline", str(disks / "0.10.2.2-t-none-0"), "--output", str(tmp_path / "out"), "--strict"])
    assert stopped.value.code == 0
    assert len(rows(tmp_path / "out", "messages")) == 81


@pytest.mark.spark
def test_spark_makes_the_same_tables(
    disks: Path, by_serial: tuple[Path, Result], spark: SparkSession, tmp_path: Path
) -> None:
    from wirekit.spark import pipeline

    result = pipeline.run(Job(find_inputs([disks])), tmp_path / "out", spark)
    assert tables(tmp_path / "out") == tables(by_serial[0])
    assert result.summary == by_serial[1].summary
    alone = Job(find_inputs([segments(disks)[0]]))
    serial.run(alone, tmp_path / "a")
    pipeline.run(alone, tmp_path / "b", spark)
    assert tables(tmp_path / "a") == tables(tmp_path / "b")
