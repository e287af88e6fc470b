"""``wirekit inspect DIRECTORY`` of a broker: partitions, checkpoints, files that cannot be read, several brokers."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import wirekit
from tests.kafka.golden import DISK
from tests.kafka.test_directories import BASE, copied, entry, problems, written
from wirekit.cli import main

pytest.importorskip("numba")
pytest.importorskip("pyarrow")

from wirekit.protocols.kafka.data_directory import check


class TestDataDirectory:
    @pytest.fixture
    def disk(self, tmp_path: Path) -> Path:
        copied(tmp_path, "0.10.2.2", "t-none-0")
        entries = [{"topic": "t-none", "partition": 0, "offset": 81}]
        for name in ("recovery-point", "replication", "cleaner"):
            path = tmp_path / f"{name}-offset-checkpoint"
            path.write_bytes(wirekit.encode("kafka.offset_checkpoint", {"entries": entries}))
        shutil.copy(DISK / "0.10.2.2-meta.properties", tmp_path / "meta.properties")
        return tmp_path

    def test_in_order(self, disk: Path) -> None:
        report = check(disk)
        assert report is not None
        assert report.clean
        assert report.facts["meta"] == {"broker.id": "1", "version": "0"}
        assert report.facts["checkpoints"]["replication-offset-checkpoint"] == 1

    @pytest.mark.parametrize(
        ("topic", "offset", "text"),
        [
            ("t-none", 82, "the high watermark of t-none 0, 82, is beyond the end of the log, 81"),
            ("t-none", -1, "is negative"),
            ("t-some", 0, "is for a partition without a directory here"),
        ],
    )
    def test_checkpoint_that_disagrees(self, disk: Path, topic: str, offset: int, text: str) -> None:
        entries = [{"topic": topic, "partition": 0, "offset": offset}]
        path = disk / "replication-offset-checkpoint"
        path.write_bytes(wirekit.encode("kafka.offset_checkpoint", {"entries": entries}))
        ((name, number, _, problem),) = problems(disk)
        assert (name, number) == (path.name, 2)
        assert text in problem

    def test_a_damaged_checkpoint_is_compared_up_to_the_damage(self, disk: Path) -> None:
        path = disk / "replication-offset-checkpoint"
        path.write_bytes(b"0\n3\nt-none 0 99\nt-none 0 5\n")
        assert problems(disk) == [
            (path.name, None, 27, "entries[2].topic: needs 1 byte, 0 available"),
            (path.name, 2, None, "the high watermark of t-none 0, 99, is beyond the end of the log, 81"),
        ]

    def test_files_of_a_broker_on_windows(self, disk: Path) -> None:
        """Kafka writes and reads lines as the system does."""
        for path in (each for each in disk.iterdir() if each.is_file()):
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        report = check(disk)
        assert report is not None
        assert report.clean
        assert report.facts["meta"] == {"broker.id": "1", "version": "0"}
        path = disk / "replication-offset-checkpoint"
        path.write_bytes(b"0\r\n2\r\nt-none 0 99\r\nt-none x 5\r\n")
        assert problems(disk)[0] == (
            path.name,
            None,
            26,
            "entries[1].partition: expected an integer in decimal, found b'x'",
        )

    def test_checkpoint_of_a_version_that_no_broker_reads(self, disk: Path) -> None:
        path = disk / "replication-offset-checkpoint"
        path.write_bytes(wirekit.encode("kafka.offset_checkpoint", {"version": 1, "entries": []}))
        assert problems(disk) == [(path.name, 0, 0, "version 1: Kafka reads only version 0")]

    def test_checkpoint_without_entries(self, disk: Path) -> None:
        (disk / "cleaner-offset-checkpoint").write_bytes(b"")
        report = check(disk)
        assert report is not None
        assert report.clean
        assert report.facts["checkpoints"]["cleaner-offset-checkpoint"] == 0

    @pytest.mark.parametrize(
        ("name", "make"),
        [
            ("t-none-0/00000000000000000777.log", lambda path: path.symlink_to("nowhere")),
            ("t-none-0/00000000000000000777.log", Path.mkdir),
            (f"t-none-0/{BASE}.index", lambda path: (path.unlink(), path.mkdir())),
            ("cleaner-offset-checkpoint", lambda path: (path.unlink(), path.mkdir())),
        ],
    )
    def test_an_unreadable_file_hides_no_other_problem(
        self, disk: Path, name: str, make: Callable[[Path], None]
    ) -> None:
        make(disk / name)
        report = check(disk)
        assert report is not None
        reported = problems(disk)
        assert (Path(name).name, None, None) in [each[:3] for each in reported if "cannot be read" in each[3]]
        assert not [each for each in reported if "beyond the end of the log" in each[3] or "missing" in each[3]]
        assert report.parts[0].facts["segments"][0]["messages"] == 81
        assert report.facts["checkpoints"]["replication-offset-checkpoint"] == 1

    def test_checkpoint_that_is_none(self, disk: Path) -> None:
        (disk / "cleaner-offset-checkpoint").write_bytes(b"0\n7\nt-none 0 1\n")
        ((name, _, _, _),) = problems(disk)
        assert name == "cleaner-offset-checkpoint"

    def test_command(self, disk: Path, capsys: pytest.CaptureFixture[str]) -> None:
        for arguments in ([str(disk)], [str(disk / "t-none-0")]):
            with pytest.raises(SystemExit) as stopped:
                main(["inspect", *arguments, "--output", "text"])
            assert stopped.value.code == 0
        text = capsys.readouterr().out
        assert "81" in text
        assert text.startswith(f"{disk}  ✓\n")
        entry("index", 1, position=4300)(disk / "t-none-0")
        with pytest.raises(SystemExit) as stopped:
            main(["inspect", str(disk), "--output", "text"])
        assert stopped.value.code == 1
        text = capsys.readouterr().out
        assert "entry 1, at byte 8" in text
        assert text.startswith(f"{disk}\n")  # not in order, because a partition is not

    def test_other_directories_are_misuse(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as stopped:
            main(["inspect", str(tmp_path)])
        assert stopped.value.code == 2
        assert f"nothing to read in {tmp_path}" in capsys.readouterr().err


@pytest.mark.parametrize("name", [f"{BASE}.log", f"{BASE}.index", f"{BASE}.timeindex"])
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_file_that_never_ends_cannot_be_read(kind: str, name: str, tmp_path: Path) -> None:
    path = copied(tmp_path, "0.10.2.2", "t-none-0") / name
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    assert (name, None, None, "cannot be read: not a regular file") in problems(tmp_path)


def test_an_index_and_a_checkpoint_beyond_the_limit_cannot_be_read(tmp_path: Path) -> None:
    index = copied(tmp_path, "0.10.2.2", "t-none-0") / f"{BASE}.index"
    checkpoint = tmp_path / "recovery-point-offset-checkpoint"
    for path in (index, checkpoint):
        path.touch()
        os.truncate(path, 1 << 40)
    assert [(name, text) for name, _, _, text in problems(tmp_path)] == [
        (checkpoint.name, "cannot be read: more than 256 MiB"),
        (index.name, "cannot be read: more than 256 MiB"),
    ]


def test_a_directory_of_brokers_names_one_of_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for broker in ("one", "two"):
        (tmp_path / broker).mkdir()
        written(tmp_path / broker, {})
    with pytest.raises(SystemExit) as stopped:
        main(["inspect", str(tmp_path)])
    assert stopped.value.code == 2
    assert capsys.readouterr().err.endswith(f"; name those in it, such as {tmp_path / 'one'}\n")


@pytest.mark.parametrize("inner", ["", "2026-01-31"])
def test_captures_in_directories_named_after_dates_are_summarised(
    inner: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The name could be that of partition 31 of a topic 2026-01."""
    folder = tmp_path / "2026-01-31"
    folder.mkdir()
    shutil.copy(DISK.parents[1] / "pcap" / "jmq4-consume.pcap", folder)
    with pytest.raises(SystemExit):
        main(["inspect", str(tmp_path if inner else folder), "--output", "json"])
    (summary,) = json.loads(capsys.readouterr().out).values()
    assert summary["connections"] == {"joyqueue": 1}
