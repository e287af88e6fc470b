"""``wirekit frames``, ``messages`` and ``inspect`` as scripts see them."""

from __future__ import annotations

import errno
import gzip
import importlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from rich.cells import cell_len

import wirekit
from tests.capture.second_parser import packets, write
from tests.cli.running import Run
from wirekit.capture.files import opening
from wirekit.cli import main, windows
from wirekit.storage import open_binary


@pytest.mark.parametrize("command", ["frames", "inspect"])
def test_a_log_segment_given_as_a_capture_points_to_messages(command: str, fixtures: Path, tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(next((fixtures / "kafka" / "disk").glob("*-t-none-0.log")).read_bytes())
    run = Run(command, str(path))
    assert run.status == 1
    assert "`wirekit messages` shows the messages of a log segment" in run.err + run.out.decode()


def test_standard_input_is_inspected_as_a_file_is(fixtures: Path) -> None:
    """Only a pipe is copied."""
    path = next((fixtures / "kafka" / "disk").glob("*-t-none-0.log"))
    expected = Run("inspect", str(path)).out.decode().replace(str(path), "-")
    assert Run("inspect", "-", stdin=path.read_bytes()).out.decode() == expected
    code = "import tempfile; tempfile.NamedTemporaryFile = None; from wirekit.cli import main; main()"
    with path.open("rb") as file:
        completed = subprocess.run(
            [sys.executable, "-c", code, "inspect", "-"], stdin=file, capture_output=True, check=False
        )
    assert (completed.returncode, completed.stdout.decode()) == (1, expected)


@pytest.mark.parametrize("name", ["jmq4-consume.pcap", "kafka-0.9.0.1-2-produce.pcapng"])
@pytest.mark.parametrize("size", [3, 10])
def test_a_capture_that_ends_in_its_header_is_named_by_each_command(
    name: str, size: int, fixtures: Path, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes((fixtures / "pcap" / name).read_bytes()[:size])
    frames = Run("frames", str(path))
    assert " available, at byte " in frames.err
    for run in (Run("messages", str(path)), Run("messages", "--engine", "columns", str(path))):
        assert (run.status, run.err) == (1, frames.err)
    assert Run("messages", "-", stdin=path.read_bytes()).err == frames.err.replace(str(path), "-")


@pytest.mark.parametrize(
    "command",
    [["frames"], ["messages"], ["inspect", "--output", "text"], ["inspect", "--rules"], ["inspect", "--connections"]],
    ids=" ".join,
)
def test_a_file_that_cannot_be_opened_does_not_end_the_command(
    command: list[str], fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = str(fixtures / "pcap" / "jmq4-consume.pcap")
    refused = tmp_path / "a.pcap"
    refused.write_bytes(Path(capture).read_bytes())

    def refuse(path: str) -> Any:  # as root, no permissions refuse a file
        if path == str(refused):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return open_binary(path)

    monkeypatch.setattr(opening, "open_binary", refuse)
    module = importlib.import_module(f"wirekit.cli.{command[0]}")
    result = CliRunner().invoke(module.command, [*command[1:], str(refused), capture], standalone_mode=False)
    assert result.return_value == 1
    assert "Permission denied" in result.output
    assert Run(*command, capture).out in result.stdout_bytes


@pytest.mark.parametrize(
    "command",
    [
        ["frames"],
        ["messages"],
        ["inspect"],
        ["inspect", "--rules"],
        ["sql", "SELECT api FROM calls"],
        ["pipeline", "-o", "OUT"],
    ],
    ids=" ".join,
)
def test_a_directory_that_cannot_be_read_does_not_end_the_command(
    command: list[str], fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("all", "all/a", "all/locked", "rest"):
        os.mkdir(folder)
    for folder in ("all/a", "all/locked", "rest"):
        (tmp_path / folder / "a.pcap").write_bytes((fixtures / "pcap" / "jmq4-produce.pcap").read_bytes())
    scandir = os.scandir

    def refuse(path: str) -> Any:  # as root, no permissions refuse a directory
        if path == "all/locked":
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    module = importlib.import_module(f"wirekit.cli.{command[0]}")
    result = CliRunner().invoke(module.command, [*command[1:], "all"], standalone_mode=False)
    assert (result.return_value, result.stderr) == (1, "wirekit: all/locked: Permission denied\n")
    shutil.rmtree("OUT", ignore_errors=True)
    assert Run(*command, "rest").out == result.stdout_bytes.replace(b"all/a", b"rest") != b""


@pytest.mark.parametrize("name", ["decode", "encode", "frames", "messages", "inspect", "sql", "pipeline"])
def test_a_file_without_permissions_is_an_error_of_the_file(name: str) -> None:
    """click refuses such a file as an error of usage, with status 2, unless told otherwise."""
    module = importlib.import_module(f"wirekit.cli.{name}")
    paths = [each.type for each in module.command.params if isinstance(each, click.Argument)]
    assert [each.readable for each in paths if isinstance(each, click.Path)] == [False]


def test_a_capture_whose_compression_is_damaged_is_named_by_each_command(fixtures: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.pcap.gz"
    path.write_bytes(gzip.compress((fixtures / "pcap" / "jmq4-consume.pcap").read_bytes())[:20])
    frames, messages = Run("frames", str(path)), Run("messages", str(path))
    assert (frames.status, messages.status) == (1, 1)
    assert "expected a whole gzip file" in frames.err
    assert "wirekit decode" not in frames.err
    assert messages.err == frames.err


@pytest.mark.parametrize(
    "command",
    [
        *(
            [name, "--road", road, *more]
            for name, *more in (["frames"], ["messages"], ["inspect"], ["inspect", "--output", "text"])
            for road in ("objects", "columns")
        ),
        ["inspect", "--rules"],
        ["inspect", "--connections"],
        ["sql", "FROM frames"],
        ["pipeline", "-o", "tables", "--road", "objects"],
        ["pipeline", "-o", "tables", "--road", "columns"],
    ],
    ids=" ".join,
)
def test_a_capture_of_an_unsupported_link_type_is_not_read(
    command: list[str], fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = (fixtures / "pcap" / "jmq4-consume.pcap").read_bytes()
    (tmp_path / "usb.pcap").write_bytes(data[:20] + (220).to_bytes(4, "little") + data[24:])
    (tmp_path / "empty.pcap").write_bytes(data[:24])
    run = Run(*command, "usb.pcap")
    assert run.status == 1
    assert "no packet can be read: wirekit does not support link type 220 ×" in run.err + run.out.decode()
    assert Run(*command, "empty.pcap").status == 0


@pytest.mark.parametrize("command", ["frames", "messages", "inspect"])
def test_a_selection_that_nothing_matches_lists_the_names_in_the_files(command: str, fixtures: Path) -> None:
    run = Run(command, "--api", "nope", str(fixtures / "pcap" / "kafka-0.9.0.1-2-produce.pcapng"))
    assert run.status == 0
    assert run.err.endswith(" matches; it has 137 frames in 16 connections; APIs: fetch, metadata, produce\n")


@pytest.mark.parametrize("command", ["frames", "messages"])
def test_no_heading_without_a_line(command: str) -> None:
    run = Run(command, "--output", "table", "no/such/file.pcap")
    assert (run.status, run.out) == (1, b"")


def test_an_empty_segment_is_in_order(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(b"")
    run = Run("messages", str(path))
    assert (run.status, run.out, run.err) == (0, b"", "")


def test_frames_of_a_capture(fixtures: Path) -> None:
    run = Run("frames", str(fixtures / "pcap" / "kafka-0.9.0.1-2-produce.pcapng"))
    assert run.status == 1
    assert "no request has correlation id" in run.err
    lines = run.lines
    assert sum(line["schema"] == "kafka.produce.request.v1" for line in lines) == 7
    answer = next(line for line in lines if line["schema"] == "kafka.metadata.response.v0")
    assert list(answer) == [
        "file",
        "connection",
        "from",
        "to",
        "time",
        "protocol",
        "schema",
        "api",
        "version",
        "correlation_id",
        "offset",
        "length",
        "value",
        "checks",
        "error",
        "latency_ms",
    ]
    assert (answer["api"], answer["version"], answer["protocol"]) == ("metadata", 0, "kafka")
    assert answer["latency_ms"] > 0


def test_frames_table(fixtures: Path) -> None:
    run = Run("frames", str(fixtures / "pcap" / "pulsar-batch.pcap"), "--output", "table")
    assert run.status == 0, run.err
    arrows = {line[49:].split()[0]: line[27] for line in run.out.decode().splitlines()[3:]}
    assert (arrows["SEND"], arrows["SEND_RECEIPT"]) == ("→", "←")


def test_messages_of_a_capture(fixtures: Path) -> None:
    run = Run("messages", str(fixtures / "pcap" / "pulsar-consume.pcap"))
    assert run.status == 0, run.err
    received = [line for line in run.lines if line["offset"]]
    assert all(line["offset"].count(":") == 2 for line in received)
    assert {line["check"] for line in run.lines} == {"ok"}


@pytest.mark.parametrize("engine", ["rows", "columns"])
@pytest.mark.parametrize("output", ["table", "json"])
def test_messages_with_a_failed_check_are_counted(output: str, engine: str, fixtures: Path, tmp_path: Path) -> None:
    path = tmp_path / "t-none-0" / "damaged.log"
    path.parent.mkdir()
    data = bytearray(next((fixtures / "kafka" / "disk").glob("*-t-none-0.log")).read_bytes())
    data[40] ^= 1
    path.write_bytes(data)
    arguments = ["messages", str(path), "--engine", engine, "--output", output]
    complaint = f"wirekit: {path}: 1 message with a failed check\n"
    for strict in ([], ["--strict"]):
        run = Run(*arguments, *strict)
        assert (run.status, run.err) == (len(strict), complaint)


def test_frames_with_a_failed_check_are_counted(fixtures: Path, tmp_path: Path) -> None:
    data = (fixtures / "pcap" / "pulsar-batch.pcap").read_bytes()
    path = tmp_path / "damaged.pcap"
    path.write_bytes(data.replace(b"msg-0", b"mug-0"))
    for strict in ([], ["--strict"]):
        run = Run("frames", str(path), *strict)
        assert (run.status, run.err) == (len(strict), f"wirekit: {path}: 1 check failed: crc32c ×1\n")
        assert any(check["status"] == "bad" for line in run.lines for check in line["checks"])


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [(253_402_300_799_999, "9999-12-31 23:59:59.999"), (-62_135_596_800_000, "0001-01-01 00:00:00.000")],
)
def test_messages_have_exact_times(milliseconds: int, shown: str, tmp_path: Path) -> None:
    message = {"magic": 1, "attributes": {}, "timestamp": milliseconds, "key": None, "value": b"v"}
    data = wirekit.encode("kafka.log_segment", {"messages": [{"offset": 0, "message": message}], "tail": b""})
    (tmp_path / "0.log").write_bytes(data)
    run = Run("messages", str(tmp_path / "0.log"), "--output", "table")
    assert shown in run.out.decode()


def test_messages_are_aligned_for_characters_of_two_columns(fixtures: Path, tmp_path: Path) -> None:
    places = set()
    for topic in ("orders", "订单主题", "订单" * 20):
        segment = tmp_path / f"{topic}-0" / "00000000000000000000.log"
        segment.parent.mkdir()
        segment.write_bytes((fixtures / "kafka/disk/0.10.2.2-t-snappy-0.log").read_bytes())
        line = Run("messages", str(segment), "--output", "table").out.decode().splitlines()[1]
        places.add(cell_len(line.partition("2026-")[0]))
    assert len(places) == 1


@pytest.mark.parametrize("engine", ["rows", "columns"])
def test_a_table_shows_the_groups_and_positions_in_a_topic_of_the_broker(
    engine: str, fixtures: Path, tmp_path: Path
) -> None:
    segment = tmp_path / "__consumer_offsets-0" / "00000000000000000000.log"
    segment.parent.mkdir()
    data = (fixtures / "kafka/disk/0.10.2.2-__consumer_offsets-0.log").read_bytes()
    segment.write_bytes(data)
    arguments = ("messages", str(segment), "--engine", engine, "--output", "table")
    lines = [line[91:] for line in Run(*arguments).out.decode().splitlines()]
    assert lines[2] == (
        "group_id=console-consumer-14530 topic=t-gzip partition=0 log_offset=51 "
        'commit_time="2026-11-21 00:59:36.470" expire_time="2026-11-22 00:59:36.470"'
    )
    assert lines[3] == "event=stored group_id=console-consumer-14530 generation=2"
    assert "event=deleted group_id=console-consumer-14530 → null" in lines
    assert 'client_host=/127.0.0.1 topics=["t-gzip"] assignment=[{' in lines[1]
    assert lines[1].endswith("… (223 characters)")
    first = wirekit.decode(data, "kafka.log_segment").value["messages"][0]
    first["message"]["key"] = bytes.fromhex("0063")  # of a version that does not exist
    segment.write_bytes(wirekit.encode("kafka.log_segment", {"messages": [first], "tail": b""}))
    assert " 0063 → 00010008" in Run(*arguments).out.decode()


def test_messages_of_a_segment(fixtures: Path) -> None:
    segment = fixtures / "kafka" / "disk" / "0.8.2.2-t-lz4-0.log"
    run = Run("messages", str(segment))
    assert run.status == 0, run.err
    assert run.lines[0]["codec"] == "lz4"
    offsets = [line["offset"] for line in run.lines]
    assert offsets == sorted(offsets)


def test_a_log_segment_is_recognised_by_its_name(fixtures: Path, tmp_path: Path) -> None:
    segment = (fixtures / "kafka/disk/0.10.2.2-t-snappy-0.log").read_bytes()
    named = tmp_path / "00000000000000000000.log"
    named.write_bytes(segment)
    run = Run("decode", str(named))
    assert (run.status, json.loads(run.out)["schema"]) == (0, "kafka.log_segment")
    assert (
        run.err == "wirekit: decoded as kafka.log_segment because of the file's name; name a schema if this is wrong\n"
    )
    named.write_bytes((fixtures / "pcap/pulsar-batch.pcap").read_bytes())
    assert "this is a capture file" in Run("decode", str(named)).err


def test_frames_of_another_protocol_are_errors_rather_than_tokens(fixtures: Path) -> None:
    run = Run("frames", "--protocol", "kafka", str(fixtures / "pcap" / "pulsar-batch.pcap"))
    assert run.status == 1
    assert all(line["error"] for line in run.lines)


def test_cut_segment_is_reported_after_its_whole_messages(fixtures: Path, tmp_path: Path) -> None:
    data = (fixtures / "kafka" / "disk" / "0.10.2.2-t-none-0.log").read_bytes()
    (tmp_path / "0.log").write_bytes(data[:3000])
    run = Run("messages", str(tmp_path / "0.log"))
    assert run.status == 1
    assert "expected a whole message or zeros" in run.err
    assert len(run.lines) == 31


def test_foreign_files_are_no_segments(fixtures: Path) -> None:
    for name in ("kafka/disk/0.8.2.2-t-lz4-0.index", "jmq4/frames.jsonl", "pcap/README.md"):
        run = Run("messages", str(fixtures / name))
        assert (run.status, run.out) == (1, b"")
        hint = "; `wirekit decode` reads single frames and hex dumps"
        assert run.err.endswith(f": expected a pcap or pcapng file or a file of kafka.log_segment{hint}\n")


@pytest.mark.parametrize("command", ["frames", "messages", "inspect", "pipeline --output lake", "sql 'SELECT 1'"])
def test_a_parquet_file_is_named(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("calls.parquet").write_bytes(b"PAR1" + bytes(100))
    run = Run(*shlex.split(command), "calls.parquet")
    assert run.status == 1
    assert "found a Parquet file, at byte 0" in run.out.decode() + run.err
    assert "wirekit decode" not in run.out.decode() + run.err


@pytest.mark.parametrize("command", ["frames", "messages", "inspect", "pipeline --output lake", "sql 'SELECT 1'"])
def test_a_file_that_another_command_or_step_makes_readable_is_named(
    command: str, fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    disk = fixtures / "kafka" / "disk"
    index = f"{0:020}.index"
    Path(index).write_bytes((disk / "0.8.2.2-t-lz4-0.index").read_bytes())
    packed = f"{0:020}.log.gz"
    Path(packed).write_bytes(gzip.compress((disk / "0.10.2.2-t-none-0.log").read_bytes()))
    capture = fixtures / "pcap" / "jmq4-produce.pcap"
    with tarfile.open("a.tar", "w") as tar, tarfile.open("a.tar.gz", "w:gz") as packed_tar:
        tar.add(capture)
        packed_tar.add(capture)
    with zipfile.ZipFile("a.zip", "w") as archive:
        archive.write(capture)
    advice = {
        index: "; `wirekit decode` shows a file of kafka.offset_index, `wirekit inspect` checks its directory",
        packed: "; of compressed files, only captures are read; decompress this file of kafka.log_segment",
        "a.tar": "found a tar archive, at byte 0 (0x0); extract it, and pass the files in it",
        "a.tar.gz": "found a tar archive, at byte 0 (0x0); extract it, and pass the files in it",
        "a.zip": "found a zip archive, at byte 0 (0x0); extract it, and pass the files in it",
    }
    for name, text in advice.items():
        run = Run(*shlex.split(command), name)
        assert run.status == 1
        assert text in (json.loads(run.out)[name]["unreadable"] if command == "inspect" else run.err)


@pytest.mark.parametrize("command", ["frames", "messages", "inspect", "inspect --connections", "inspect --rules"])
def test_a_capture_from_standard_input(command: str, fixtures: Path) -> None:
    capture = fixtures / "pcap" / "jmq4-produce.pcap"
    by_name = Run(*command.split(), "--output", "json", str(capture))
    piped = Run(*command.split(), "--output", "json", "-", stdin=capture.read_bytes())
    assert by_name.out
    assert by_name.status == piped.status
    assert piped.out.decode() == by_name.out.decode().replace(str(capture), "-")
    assert piped.err == by_name.err.replace(str(capture), "-")


def test_the_order_of_lines_does_not_depend_on_the_process(fixtures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Text hashes differently in each process: what is read from a set would come in another order each time.
    def printed(seed: int) -> bytes:
        monkeypatch.setenv("PYTHONHASHSEED", str(seed))
        return Run("inspect", "--output", "json", str(fixtures / "pcap" / "jmq4-produce.pcap"), fresh=True).out

    assert len({printed(seed) for seed in range(4)}) == 1


def test_a_segment_from_standard_input(fixtures: Path) -> None:
    segment = fixtures / "kafka" / "disk" / "0.10.2.2-t-gzip-0.log"
    by_name, piped = Run("messages", str(segment)), Run("messages", "-", stdin=segment.read_bytes())
    assert (piped.status, len(piped.lines)) == (0, len(by_name.lines))
    assert all(line == {**other, "file": "-"} for line, other in zip(piped.lines, by_name.lines, strict=True))


@pytest.mark.parametrize("command", ["messages", "pipeline -o tables", "sql 'FROM messages WHERE topic IS NULL'"])
def test_a_segment_outside_of_its_directory_has_no_topic(
    command: str, fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("orders-0", "copies", "more"):
        Path(folder).mkdir()
        shutil.copy(fixtures / "kafka" / "disk" / "0.10.2.2-t-gzip-0.log", f"{folder}/{0:020}.log")
    note = "topic unknown; a broker stores it only in the name of the directory, such as orders-0"
    assert Run(*shlex.split(command), "orders-0").err == ""
    segment = "copies/00000000000000000000.log"
    assert Run(*shlex.split(command), segment).err == f"wirekit: {segment}: {note}\n"
    assert Run(*shlex.split(command), "copies", "more", "orders-0").err == (
        f"wirekit: {segment} and 1 more file: {note}\n"
    )


@pytest.mark.parametrize("command", ["frames", "messages", "inspect", "inspect --connections"])
def test_the_captures_of_a_directory(command: str, fixtures: Path, tmp_path: Path) -> None:
    inside = tmp_path / "captures" / "a.pcap"
    inside.parent.mkdir()
    inside.write_bytes((fixtures / "pcap" / "jmq4-produce.pcap").read_bytes())
    expected, directory = (Run(*command.split(), str(path), "--output", "json") for path in (inside, tmp_path))
    assert (directory.status, directory.out) == (expected.status, expected.out)
    assert directory.out


@pytest.mark.parametrize("command", ["frames", "messages", "inspect", "inspect --connections", "inspect --rules"])
def test_the_captures_that_match_a_pattern(command: str, fixtures: Path, tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("a.pcap", "b.pcap")]
    for path, kind in zip(paths, ("produce", "odd"), strict=True):
        Path(path).write_bytes((fixtures / "pcap" / f"jmq4-{kind}.pcap").read_bytes())
    by_name, pattern = (Run(*command.split(), "--output", "json", *each) for each in (paths, [f"{tmp_path}/[ab].pcap"]))
    assert (pattern.status, pattern.out, pattern.err) == (by_name.status, by_name.out, by_name.err)
    assert pattern.out
    assert f"nothing matches {tmp_path}/*.cap" in Run(*command.split(), f"{tmp_path}/*.cap").err


@pytest.mark.parametrize("command", ["frames", "messages", "inspect", "inspect --rules"])
def test_a_directory_without_captures(command: str, tmp_path: Path) -> None:
    run = Run(*command.split(), str(tmp_path))
    assert (run.status, run.out) == (2, b"")
    assert f"nothing to read in {tmp_path}" in run.err


def test_a_capture_without_frames_is_called_so(fixtures: Path, tmp_path: Path) -> None:
    header = tmp_path / "header.pcap"
    header.write_bytes((fixtures / "pcap" / "pulsar-batch.pcap").read_bytes()[:24])
    run = Run("frames", str(header))
    assert (run.status, run.out) == (0, b"")
    assert run.err == f"wirekit: {header}: no connection has frames\n"


@pytest.mark.parametrize("name", ["jmq4-versions.pcap", "jmq4-consume.pcap"])
def test_a_table_without_messages_says_so(name: str, fixtures: Path) -> None:
    run = Run("messages", "--output", "table", str(fixtures / "pcap" / name))
    assert (run.out == b"") == (run.err == "wirekit: no messages\n") == (name == "jmq4-versions.pcap")


@pytest.mark.parametrize("road", ["objects", "columns"])
def test_fragments_are_named(road: str, fixtures: Path, tmp_path: Path) -> None:
    """Each IPv4 header announces more fragments."""
    whole = packets(fixtures / "pcap" / "pulsar-batch.pcap")
    marked = [each._replace(data=each.data[:20] + b"\x20" + each.data[21:]) for each in whole]
    path = write(tmp_path / "fragments.pcap", marked)
    assert Run("frames", str(path), "--road", road).err.splitlines() == [
        f"wirekit: {path}: no connection has frames; packets without TCP: fragment ×{len(whole)}",
        f"wirekit: {path}: {len(whole)} IP fragments not read: their datagrams are incomplete or not TCP",
    ]


def test_a_file_that_is_no_capture_is_reported_by_the_name_given(tmp_path: Path) -> None:
    assert (
        "wirekit: -: expected a pcap or pcapng file, found bytes that begin with 47 49 46"
        in Run("frames", "-", stdin=b"GIF89a" + bytes(100)).err
    )
    (tmp_path / "a.pcap").touch()
    assert Run("frames", str(tmp_path / "a.pcap")).err.endswith("; the file is empty\n")


def test_a_capture_that_is_cut_is_called_so(fixtures: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes((fixtures / "pcap" / "jmq4-produce.pcap").read_bytes()[:-3])
    assert "the file ends in the middle of this record" in Run("frames", str(cut)).err


def test_packets_behind_damage_in_a_file_are_kept(fixtures: Path, tmp_path: Path) -> None:
    whole = fixtures / "pcap" / "kafka-0.9.0.1-2-produce.pcapng"
    data = whole.read_bytes()
    damaged = tmp_path / "damaged.pcapng"
    damaged.write_bytes(data[:40_000] + bytes(200) + data[40_200:])
    expected, partial = Run("frames", str(whole)), Run("frames", str(damaged))
    assert partial.status == 1
    assert "bytes skipped: net.pcapng.block.le: " in partial.err
    assert len(expected.lines) - 3 <= len(partial.lines) < len(expected.lines)


def test_gzipped_capture(fixtures: Path, tmp_path: Path) -> None:
    import gzip

    capture = fixtures / "pcap" / "pulsar-consume.pcap"
    (tmp_path / "c.pcap.gz").write_bytes(gzip.compress(capture.read_bytes()))
    for command in ("messages", "frames"):
        packed, plain = Run(command, str(tmp_path / "c.pcap.gz")), Run(command, str(capture))
        assert len(packed.lines) == len(plain.lines) > 0


@pytest.mark.parametrize("command", ["frames", "messages"])
@pytest.mark.parametrize("name", ["kafka-0.10.2.2-4-clients.pcapng", "pulsar-comp_lz4.pcap", "pulsar-batch.pcap"])
def test_large_windows_are_shown_in_parts(
    command: str, name: str, fixtures: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = [command, "--road", "columns", str(fixtures / "pcap" / name)]
    with suppress(SystemExit):
        main(arguments)
    expected = capsys.readouterr()
    monkeypatch.setattr(windows, "HELD", 1000)
    with suppress(SystemExit):
        main(arguments)
    assert capsys.readouterr() == expected
    assert expected.out.count("\n") >= 5


NAMED = {
    f"{0:020}.index": ("kafka.offset_index", {"entries": [{"relative_offset": 40, "position": 1476}]}),
    f"{0:020}.timeindex": ("kafka.time_index", {"entries": [{"timestamp": 1000, "relative_offset": 5}]}),
    "recovery-point-offset-checkpoint": (
        "kafka.offset_checkpoint",
        {"entries": [{"topic": "t", "partition": 0, "offset": 5}]},
    ),
    "meta.properties": ("kafka.meta_properties", {"lines": [{"name": "broker.id", "value": "1"}]}),
}


@pytest.mark.parametrize("name", NAMED)
def test_a_file_without_messages_is_decoded_by_its_name(name: str, tmp_path: Path) -> None:
    key, value = NAMED[name]
    path = tmp_path / name
    path.write_bytes(wirekit.encode(key, value))
    run = Run("decode", str(path))
    assert run.status == 0
    assert json.loads(run.out)["schema"] == key
    assert run.err == f"wirekit: decoded as {key} because of the file's name; name a schema if this is wrong\n"
    for command in ("messages", "frames"):
        run = Run(command, str(path))
        assert (run.status, run.out) == (1, b"")
        assert run.err.endswith(f"; `wirekit decode` shows a file of {key}, `wirekit inspect` checks its directory\n")


def test_a_compressed_segment_is_not_read(fixtures: Path, tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log.gz"
    path.write_bytes(gzip.compress((fixtures / "kafka" / "disk" / "0.10.2.2-t-none-0.log").read_bytes()))
    for command in ("messages", "frames"):
        run = Run(command, str(path))
        assert (run.status, run.out) == (1, b"")
        assert run.err.endswith(
            "; of compressed files, only captures are read; decompress this file of kafka.log_segment\n"
        )
        path.rename(other := tmp_path / "other.gz")
        assert Run(command, str(other)).err.endswith("; of compressed files, only captures are read\n")
        other.rename(path)


def test_decode_reads_no_more_of_a_file_than_its_limit(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    path.touch()
    os.truncate(path, 300 << 20)
    run = Run("decode", str(path))
    assert (run.status, run.err) == (1, "wirekit: input: 268435457 exceeds the limit of 268435456 (input_size)\n")
