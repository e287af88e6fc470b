"""Which files a run reads, in which order, and how it knows them again."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import wirekit
from tests.pipeline.helpers import rows
from wirekit.errors import Misuse
from wirekit.pipeline import inputs as inputs_module
from wirekit.pipeline import packet_rows, serial
from wirekit.pipeline.inputs import Identification, Job, find_inputs


def touch(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(path.name.encode())


def test_directories_are_searched_in_order(tmp_path: Path) -> None:
    touch(tmp_path / "b.pcap", tmp_path / "a.cap", tmp_path / "z" / "c.PCAPNG", tmp_path / "y" / "d.pcap.gz")
    touch(tmp_path / "notes.txt", tmp_path / "y" / "pcap")
    inputs = find_inputs([tmp_path])
    assert [each.name for each in inputs] == [
        str(tmp_path / name) for name in ("a.cap", "b.pcap", "y/d.pcap.gz", "z/c.PCAPNG")
    ]
    assert [each.number for each in inputs] == [0, 1, 2, 3]
    assert [each.size for each in inputs] == [5, 6, 9, 8]


def test_irregular_files_in_a_directory_are_skipped_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    touch(tmp_path / "captures" / "a.pcap")
    os.mkfifo("captures/pipe.pcap")
    for name in ("b.pcap", "notes.txt"):
        (tmp_path / "captures" / name).symlink_to("nowhere")
    touch(tmp_path / "elsewhere" / "c.pcap")
    (tmp_path / "captures" / "linked").symlink_to(tmp_path / "elsewhere")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("captures/s.pcap")
    with pytest.warns(RuntimeWarning) as warned:
        inputs = find_inputs(["captures"])
    assert [each.name for each in inputs] == ["captures/a.pcap"]
    assert [str(each.message) for each in warned] == [
        "skipped, not a regular file: captures/b.pcap, captures/pipe.pcap, captures/s.pcap",
        "skipped, a link to a directory: captures/linked",
    ]
    assert [each.name for each in find_inputs(["captures/linked"])] == ["captures/linked/c.pcap"]
    (tmp_path / "captures" / "linked").unlink()
    for number in range(4):
        (tmp_path / "captures" / f"z{number}.pcap").symlink_to("nowhere")
    with pytest.warns(RuntimeWarning, match="captures/z1.pcap and 2 more$"):
        find_inputs(["captures"])


def test_a_file_that_vanishes_from_a_directory_is_skipped_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touch(tmp_path / "a.pcap", tmp_path / "b.pcap", tmp_path / "c.pcap")
    stat, vanishes = os.stat, str(tmp_path / "b.pcap")

    def vanish(path: Any, **options: Any) -> os.stat_result:
        if path == vanishes and os.path.lexists(path):
            os.unlink(path)
        return stat(path, **options)

    monkeypatch.setattr(os, "stat", vanish)
    with pytest.warns(RuntimeWarning, match=r"b\.pcap: No such file or directory$"):
        inputs = find_inputs([tmp_path])
    assert [Path(each.name).name for each in inputs] == ["a.pcap", "c.pcap"]


def test_a_directory_that_is_named_and_cannot_be_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> Any:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    touch(tmp_path / "a.pcap")
    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(PermissionError):
        find_inputs([tmp_path])


def test_named_files_are_read_once_whatever_their_suffix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    touch(tmp_path / "dump", tmp_path / "a.pcap")
    (tmp_path / "same.pcap").symlink_to(tmp_path / "a.pcap")
    inputs = find_inputs(["dump", ".", "a.pcap"])
    assert [each.name for each in inputs] == ["dump", "./a.pcap"]
    assert inputs[1].path == str(tmp_path / "a.pcap")


def test_a_path_that_cannot_be_an_input_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.pcap"):
        find_inputs([tmp_path / "nowhere.pcap"])
    with pytest.raises(Misuse, match=r"nothing to read in .*\*\.pcapng.* or log segments"):
        find_inputs([tmp_path])
    touch(tmp_path / "a.pcap")
    serial.run(Job(find_inputs([tmp_path])), tmp_path / "lake")
    with pytest.raises(Misuse, match=r"nothing to read in .*lake; .*lake has tables .*; `wirekit sql QUERY .*lake`"):
        find_inputs([tmp_path / "lake"])
    with pytest.raises(Misuse, match=r"nothing to read in .*calls; .*lake has tables .*; `wirekit sql QUERY .*lake`"):
        find_inputs([tmp_path / "lake" / "calls"])
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Misuse, match="neither a file nor a directory"):
        find_inputs([tmp_path / "pipe"])


def test_a_parquet_file_is_refused_with_the_directory_of_its_tables(tmp_path: Path) -> None:
    touch(tmp_path / "a.pcap")
    serial.run(Job(find_inputs([tmp_path])), tmp_path / "lake")
    (part,) = (tmp_path / "lake" / "calls").iterdir()
    reason = "expected a pcap or pcapng file, found a Parquet file, at byte 0"
    with pytest.raises(Misuse, match=rf"part-.*: {reason}.*; .*lake has tables .*; `wirekit sql QUERY .*lake`"):
        wirekit.read(part)
    with pytest.raises(Misuse, match=rf"orders\.parquet: {reason}.*; `wirekit sql` reads the directory that"):
        wirekit.read(part.rename(tmp_path / "orders.parquet"))


@pytest.mark.parametrize("paths", [b"a.pcap", [b"a.pcap"], [7]])
def test_a_path_is_text(paths: Any) -> None:
    with pytest.raises(Misuse, match="a path must be text or a pathlib"):
        find_inputs(paths)


@pytest.mark.parametrize("paths", [b"a.pcap", io.BytesIO(b"a.pcap"), 7, None])
def test_read_names_the_type_of_what_is_no_path(paths: Any) -> None:
    with pytest.raises(Misuse, match=f"a path must be text or a pathlib.Path, not {type(paths).__name__}"):
        wirekit.read(paths)
    with pytest.raises(Misuse, match="nothing to read; pass files"):
        wirekit.read([])


def test_a_file_from_after_the_year_9999_has_no_time(tmp_path: Path) -> None:
    """A file system may store such a time; a clock that is wrong sets it."""
    touch(tmp_path / "a.pcap")
    job = Job(tuple(replace(each, mtime_ns=253_402_300_800 * 10**9) for each in find_inputs([tmp_path])))
    manifest = serial.run(job, tmp_path / "lake").manifest
    assert (manifest["inputs"][0]["mtime"], manifest["inputs"][0]["mtime_ns"]) == (None, 253_402_300_800 * 10**9)
    assert [row["modified"] for row in rows(tmp_path / "lake", "inputs")] == [None]


def test_a_file_that_the_system_refuses_to_open_has_not_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an object that a store denies, the status is denied, too."""

    def denied(path: str) -> Any:
        raise PermissionError(errno.EACCES, "access denied", path)

    touch(tmp_path / "a.pcap")
    job = Job(find_inputs([tmp_path]))
    monkeypatch.setattr(packet_rows, "open_capture", denied)
    monkeypatch.setattr(inputs_module, "status", denied)
    result = serial.run(job, tmp_path / "lake")
    assert (result.changed, result.summary.unreadable) == ((), {str(tmp_path / "a.pcap"): "access denied"})


def test_captures_are_hashed_and_changes_noticed(tmp_path: Path) -> None:
    touch(tmp_path / "a.pcap", tmp_path / "b.pcap", tmp_path / "c.pcap")
    inputs = find_inputs([tmp_path])
    with Identification(Job(inputs)) as identification:
        rows_of_inputs = identification.rows()
        (tmp_path / "b.pcap").write_bytes(b"longer than before")
        (tmp_path / "c.pcap").unlink()
        assert identification.changed() == {str(tmp_path / "b.pcap"): False, str(tmp_path / "c.pcap"): True}
    assert rows_of_inputs[0]["sha256"] == hashlib.sha256(b"a.pcap").hexdigest()
    assert (rows_of_inputs[0]["size"], rows_of_inputs[0]["mtime"][-6:]) == (6, "+00:00")
