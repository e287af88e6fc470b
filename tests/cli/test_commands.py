"""The command line as scripts see it: what is printed where, and the exit status."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

import wirekit
from tests.capture.second_parser import packets, write
from tests.cli.running import Run

HEARTBEAT = "00000017cafebebe040200000001070000016c3d0e8b28"


@pytest.fixture(scope="session")
def send(fixtures: Path) -> bytes:
    """A SEND frame of a real client, with a batch in it."""
    lines = (fixtures / "pulsar" / "frames" / "batch.frames.jsonl").read_text().splitlines()
    return next(bytes.fromhex(line["hex"]) for line in map(json.loads, lines) if line["type"] == "SEND")


def test_decode_prints_a_line_a_frame(send: bytes) -> None:
    run = Run("decode", "pulsar", "-", stdin=send + send)
    assert run.status == 0, run.err
    assert [line["offset"] for line in run.lines] == [0, len(send)]
    line = run.lines[0]
    assert list(line) == ["schema", "offset", "length", "value", "checks", "gaps", "error"]
    assert (line["schema"], line["length"], line["gaps"], line["error"]) == ("pulsar.frame", len(send), [], None)
    checks = {check["path"]: check for check in line["checks"]}
    check = checks["entry.checksum"]
    assert list(check) == ["path", "kind", "stored", "computed", "status"]
    assert (check["kind"], check["status"]) == ("crc32c", "ok")
    assert check["stored"] == check["computed"]


def test_encode_gives_the_same_bytes_back(send: bytes) -> None:
    decoded = Run("decode", "pulsar", stdin=send + send)
    assert Run("encode", "pulsar", stdin=decoded.out).out == send + send
    assert Run("encode", "pulsar.frame", "--output", "hex", stdin=decoded.out).out.decode() == 2 * f"{send.hex()}\n"
    bare = json.dumps(decoded.lines[0]["value"], indent=2).encode()
    assert Run("encode", "pulsar.frame", stdin=bare).out == send


def xxd(data: bytes) -> str:
    rows = [data[i : i + 16] for i in range(0, len(data), 16)]
    return "".join(
        f"{16 * n:08x}: {' '.join(row[i : i + 2].hex() for i in range(0, len(row), 2)):<39}  {show(row)}\n"
        for n, row in enumerate(rows)
    )


def hexdump_c(data: bytes) -> str:
    rows = [data[i : i + 16] for i in range(0, len(data), 16)]
    body = "".join(
        f"{16 * n:08x}  {row[:8].hex(' '):<23}  {row[8:].hex(' '):<23}  |{show(row)}|\n" for n, row in enumerate(rows)
    )
    return f"{body}{len(data):08x}\n"


def wireshark(data: bytes) -> str:
    rows = [data[i : i + 16] for i in range(0, len(data), 16)]
    return "".join(f"{16 * n:04x}   {row.hex(' '):<47}   {show(row)}\n" for n, row in enumerate(rows))


def show(row: bytes) -> str:
    return "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)


@pytest.mark.parametrize(
    "form",
    [bytes.hex, xxd, hexdump_c, wireshark, lambda data: base64.encodebytes(data).decode(), lambda data: data.hex(" ")],
    ids=["hex", "xxd", "hexdump -C", "wireshark", "base64", "spaced hex"],
)
def test_decode_takes_pasted_text(form: Any, send: bytes) -> None:
    run = Run("decode", "pulsar", stdin=form(send).encode())
    assert run.status == 0, run.err
    assert run.lines == Run("decode", "pulsar", stdin=send).lines


def test_decode_of_a_file(send: bytes, tmp_path: Path) -> None:
    (tmp_path / "frame.bin").write_bytes(send)
    with_schema = Run("decode", "pulsar.frame", str(tmp_path / "frame.bin"))
    without = Run("decode", str(tmp_path / "frame.bin"))
    assert with_schema.lines == without.lines
    assert "decoded as pulsar" in without.err


def test_decode_finds_the_protocol_and_says_so() -> None:
    run = Run("decode", "--hex", HEARTBEAT)
    assert run.status == 0
    assert run.lines[0]["schema"] == "joyqueue.frame"
    assert run.lines[0]["value"]["type"] == {"value": 7, "symbol": "HEARTBEAT"}
    assert "decoded as joyqueue" in run.err


def test_options_may_stand_anywhere(send: bytes, tmp_path: Path) -> None:
    (tmp_path / "frame.bin").write_bytes(send)
    run = Run("decode", "--output", "json", "pulsar", "--input", "raw", str(tmp_path / "frame.bin"), "--strict")
    assert run.status == 0, run.err


def test_context_selects_the_layout_of_a_response() -> None:
    response = wirekit.encode("kafka.heartbeat.response.v0", {"correlation_id": 7, "body": {"error_code": 27}})
    arguments = (
        "decode",
        "kafka.response",
        "--context",
        "api=heartbeat",
        "--context",
        "version=0",
        "--hex",
        response.hex(),
    )
    run = Run(*arguments)
    assert run.status == 0, run.err
    assert run.lines[0]["value"]["body"]["error_code"]["symbol"] == "REBALANCE_IN_PROGRESS"
    assert Run("encode", "kafka.response", stdin=run.out).out == response
    blind = Run("decode", "kafka.response", "--hex", response.hex())
    assert blind.status == 1
    assert blind.lines[0]["gaps"] == [{"offset": 8, "length": 2}]


def test_truncated_frame_shows_the_fields_before_the_cut(send: bytes) -> None:
    run = Run("decode", "pulsar", stdin=send[:60])
    assert run.status == 1
    (line,) = run.lines
    assert line["value"]["command"]["type"]["symbol"] == "SEND"
    assert line["error"]["kind"] == "short"
    assert line["error"]["offset"] is not None
    assert line["error"]["message"] in run.err
    assert Run("encode", "pulsar", stdin=run.out).status == 1


def test_failed_check_is_marked_and_fails_only_when_strict(send: bytes) -> None:
    damaged = bytearray(send)
    damaged[-1] ^= 1
    run = Run("decode", "pulsar", stdin=bytes(damaged))
    assert run.status == 0
    assert [check["path"] for check in run.lines[0]["checks"] if check["status"] == "bad"] == ["entry.checksum"]
    assert "crc32c check failed at byte" in run.err
    assert Run("encode", "pulsar", stdin=run.out).out == bytes(damaged)
    assert Run("decode", "pulsar", "--strict", stdin=bytes(damaged)).status == 1


def test_foreign_bytes() -> None:
    run = Run("decode", stdin=b"\xff" * 40)
    assert run.status == 1
    assert "no known protocol fits" in run.err
    run = Run("decode", "joyqueue", stdin=b"\xff" * 40)
    assert run.status == 1
    assert "joyqueue.frame: length: expected a length of at least 23, found -1, at byte 0" in run.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("decode", "--output", "yaml"),
        ("decode", "pulsar", "--hex", "00", "--spans", "--output", "tree"),
        ("frames",),
        ("decode", "pulsar", "x", "--hex", "00"),
        ("nonsense",),
    ],
    ids=" ".join,
)
def test_usage_errors_have_status_2(arguments: tuple[str, ...]) -> None:
    assert Run(*arguments).status == 2


def test_unknown_schema_suggests_near_ones() -> None:
    run = Run("decode", "pulsar.frames", "--hex", "00")
    assert run.status == 2
    assert "did you mean" in run.err
    assert "pulsar.frame" in run.err


@pytest.mark.parametrize(
    "arguments",
    [("decode", "kafka"), ("encode", "kafka"), ("frames",), ("messages",), ("inspect",), ("inspect", "--rules")],
    ids=" ".join,
)
def test_empty_input_is_reported_once(arguments: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.write_bytes(b"")
    run = Run(*arguments, str(path))
    assert run.status == 1
    assert len((run.err + run.out.decode()).splitlines()) == 1


@pytest.mark.parametrize("command", ["frames", "inspect"])
def test_a_log_segment_given_as_a_capture_points_to_messages(command: str, fixtures: Path, tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(next((fixtures / "kafka" / "disk").glob("*-t-none-0.log")).read_bytes())
    run = Run(command, str(path))
    assert run.status == 1
    assert "`wirekit messages` shows the messages of a log segment" in run.err + run.out.decode()


@pytest.mark.parametrize("command", ["frames", "messages"])
def test_no_heading_without_a_line(command: str) -> None:
    run = Run(command, "--output", "table", "no/such/file.pcap")
    assert (run.status, run.out) == (1, b"")


def test_an_empty_segment_is_in_order(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(b"")
    run = Run("messages", str(path))
    assert (run.status, run.out, run.err) == (0, b"", "")


@pytest.mark.parametrize("command", ["frames", "messages", "inspect"])
def test_file_that_does_not_exist(command: str) -> None:
    run = Run(command, "no/such/file.pcap")
    assert run.status == 1
    assert run.err == "wirekit: no/such/file.pcap: No such file or directory\n"


@pytest.mark.parametrize("command", ["frames", "messages", "inspect"])
def test_a_missing_file_among_several_is_reported_before_any_is_read(command: str, fixtures: Path) -> None:
    run = Run(command, str(fixtures / "pcap" / "pulsar-batch.pcap"), "no/such/file.pcap")
    assert (run.status, run.out, run.err) == (1, b"", "wirekit: no/such/file.pcap: No such file or directory\n")


@pytest.mark.parametrize("output", ["rich", "tree", "hexdump"])
def test_pictures_for_readers(output: str, send: bytes) -> None:
    damaged = bytearray(send)
    damaged[-1] ^= 1
    good = Run("decode", "pulsar", "--output", output, stdin=send).out.decode()
    bad = Run("decode", "pulsar", "--output", output, stdin=bytes(damaged)).out.decode()
    assert "pulsar.frame  offset 0" in good
    assert "\x1b" not in good
    if output != "hexdump":
        assert "✓ crc32c stored 0x" in good
        assert "✗ crc32c stored 0x" in bad
        assert "producer_name = 'standalone" in good
        assert "       0  00 00 01 12              total_size = 274" in good
    else:
        assert "00000000  00 00" in good


@pytest.mark.parametrize(
    ("key", "data", "lines"),
    [
        ("joyqueue.frame", HEARTBEAT, ["magic = 0xcafebebe", "version = 4"]),
        ("kafka.message", "bb7edf1a0000ffffffff000000026162", ["crc = 0xbb7edf1a"]),
        ("kafka.message", "cb7edf1a0000ffffffff000000026162", ["stored 0xcb7edf1a, computed 0xbb7edf1a"]),
        (
            "net.pcapng.block.be",
            "0a0d0d0a0000001c1a2b3c4d00010000ffffffffffffffff0000001c",
            ["byte_order_magic = 0x1a2b3c4d", "major_version = 1"],
        ),
        ("net.ipv4", "450000140000000040fd65eb0a0000010a000002", ["header_checksum = 0x65eb"]),
    ],
)
def test_magic_numbers_and_checksums_are_shown_in_hexadecimal(key: str, data: str, lines: list[str]) -> None:
    shown = Run("decode", key, "--output", "tree", "--hex", data).out.decode()
    assert [line for line in lines if line not in shown] == []
    (line,) = Run("decode", key, "--hex", data).lines
    assert "0x" not in json.dumps(line)


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
    path = tmp_path / "damaged.log"
    data = bytearray(next((fixtures / "kafka" / "disk").glob("*-t-none-0.log")).read_bytes())
    data[40] ^= 1
    path.write_bytes(data)
    arguments = ["messages", str(path), "--engine", engine, "--output", output]
    said = f"wirekit: {path}: 1 message with a failed check\n"
    for strict in ([], ["--strict"]):
        run = Run(*arguments, *strict)
        assert (run.status, run.err) == (len(strict), said)


def test_frames_with_a_failed_check_are_counted(fixtures: Path, tmp_path: Path) -> None:
    data = (fixtures / "pcap" / "pulsar-batch.pcap").read_bytes()
    path = tmp_path / "damaged.pcap"
    path.write_bytes(data.replace(b"msg-0", b"mug-0"))
    for strict in ([], ["--strict"]):
        run = Run("frames", str(path), *strict)
        assert (run.status, run.err) == (len(strict), f"wirekit: {path}: 1 check failed: crc32c ×1\n")
        assert any(check["status"] == "bad" for line in run.lines for check in line["checks"])


def test_messages_are_aligned_for_characters_of_two_columns(fixtures: Path, tmp_path: Path) -> None:
    places = set()
    for topic in ("orders", "订单主题", "订单" * 20):
        segment = tmp_path / f"{topic}-0" / "00000000000000000000.log"
        segment.parent.mkdir()
        segment.write_bytes((fixtures / "kafka/disk/0.10.2.2-t-snappy-0.log").read_bytes())
        line = Run("messages", str(segment), "--output", "table").out.decode().splitlines()[1]
        places.add(cell_len(line.partition("2026-")[0]))
    assert len(places) == 1


def test_messages_of_a_segment(fixtures: Path) -> None:
    segment = fixtures / "kafka" / "disk" / "0.8.2.2-t-lz4-0.log"
    run = Run("messages", str(segment))
    assert run.status == 0, run.err
    assert run.lines[0]["codec"] == "lz4"
    offsets = [line["offset"] for line in run.lines]
    assert offsets == sorted(offsets)


def test_schemas() -> None:
    assert "kafka.fetch.response.v2" in Run("schemas").out.decode()
    layout = Run("schemas", "joyqueue.frame").out.decode()
    assert "uint32 = 0xcafebebe" in layout
    assert "bits 1-2" in layout
    assert "  HEARTBEAT (7)" in layout
    message = Run("schemas", "kafka.message").out.decode()
    assert "int8, magic only; required" in message
    assert "crc32 of all that follows\n" in message
    assert "int8; default 0\n" in Run("schemas", "joyqueue.batch").out.decode()


@pytest.mark.parametrize("key", ["kafka.metadata.request.v1", "joyqueue.batch", "kafka.message"])
def test_encode_misses_exactly_the_fields_that_schemas_call_required(key: str) -> None:
    (layout,) = Run("schemas", key, "--output", "json").lines
    top = [field for field in layout["fields"] if field["depth"] == 0]
    required = {field["name"] for field in top if field["presence"] == "required" and ", if " not in field["type"]}
    done = Run("encode", key, stdin=b"{}")
    missed = {name for name in required if name in done.err}
    assert missed == required, done.err


def test_closed_pipe_is_no_error(fixtures: Path) -> None:
    capture = fixtures / "pcap" / "kafka-0.9.0.1-2-produce.pcapng"
    command = f"{sys.executable} -m wirekit frames {capture} 2>/dev/null | head -1 | wc -l; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == "1"
    assert "Traceback" not in done.stderr


REQUEST = (
    "00000050000000010000000900096b70792d70726f62650001000003e8000000010006742d6e6f6e6500000001000000000000001f"
    "0000000000000000000000136cbc21b70000000000036f6c64000000027631"
)


def test_damaged_bytes_without_a_schema_are_guessed_as_well_as_can_be() -> None:
    bad_sum = Run("decode", "--hex", REQUEST.replace("6cbc21b7", "6cbc21b8"))
    assert bad_sum.status == 0
    assert "decoded as kafka: 1 frame decodes in part as kafka" in bad_sum.err
    assert "crc32 check failed at byte 65" in bad_sum.err
    cut = Run("decode", "--hex", REQUEST[:100])
    assert cut.status == 1
    assert cut.lines[0]["value"]["client_id"] == "kpy-probe"


def test_context_that_a_schema_does_not_have_is_refused() -> None:
    run = Run("decode", "kafka.response", "--context", "foo=1", "--hex", "00")
    assert run.status == 2
    assert "it takes api, version" in run.err
    err = Run("decode", "kafka.response", "--hex", "000000060000000700ff").err
    assert "decodes cleanly with --context api=leave_group --context version=0" in err


@pytest.mark.parametrize(
    ("context", "said"),
    [
        (["api=nosuch"], "has no api 'nosuch'; there are api_versions, controlled_shutdown,"),
        (["api=Fetch", "version=1"], "has no api 'Fetch'; there are"),
        (["api=fetch", "version=99"], "with api fetch has no version 99; there are 0 to 3"),
        (["version=99"], "has no version 99; there are 0 to 3"),
        (["api=fetch", "version=zz"], "with api fetch has no version 'zz'; there are 0 to 3"),
    ],
)
def test_context_that_no_case_has_is_refused(context: list[str], said: str) -> None:
    arguments = [word for pair in context for word in ("--context", pair)]
    for command in (["decode", "--hex", "0000000a00000001000000000000"], ["encode"]):
        run = Run(*command, "kafka.response", *arguments)
        assert (run.status, run.out) == (2, b"")
        assert said in " ".join(run.err.split())


def test_schema_of_nothing_leaves_the_rest_as_a_gap() -> None:
    run = Run("decode", "joyqueue.heartbeat.request", "--hex", "0102030405")
    assert run.status == 1
    assert [line["gaps"] for line in run.lines] == [[{"offset": 0, "length": 5}]]


@pytest.mark.parametrize(
    "text",
    [b"\xff\xfe", b'{"schema":1,"value":{}}', b'{"schema":"kafka.request","value":{},"context":5}', b"[" * 99999]
    + [b'{"schema":"kafka.request","value":{},"error":%s}' % odd for odd in (b"5", b'"x"', b'{"kind":"short"}')],
)
def test_malformed_input_of_encode_is_reported_in_one_line(text: bytes) -> None:
    run = Run("encode", "kafka.request", stdin=text)
    assert run.status == 1
    assert run.err.startswith("wirekit: ")
    assert run.err.count("\n") == 1


def test_root_value_that_is_bytes_comes_back() -> None:
    decoded = Run("decode", "kafka.consumer_offsets.value", "--hex", "0102")
    assert Run("encode", "kafka.consumer_offsets.value", stdin=decoded.out).out == b"\x01\x02"


def test_output_encoding_that_lacks_a_character(fixtures: Path) -> None:
    command = f"PYTHONIOENCODING=ascii {sys.executable} -m wirekit schemas kafka.message_set"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "kafka.message_set" in done.stdout


@pytest.mark.parametrize("command", ["frames", "messages", "inspect", "decode kafka", "encode kafka"])
def test_an_empty_name_is_shown(command: str) -> None:
    assert Run(*command.split(), "").err == "wirekit: '': No such file or directory\n"


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


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "gbk"])
def test_signs_that_an_encoding_lacks_keep_their_meaning(encoding: str, fixtures: Path) -> None:
    lines = {}
    for each in ("utf-8", encoding):
        command = [sys.executable, "-m", "wirekit", "frames", "--output", "table", fixtures / "pcap/jmq4-consume.pcap"]
        done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": each}, check=True)
        lines[each] = done.stdout.decode(each).splitlines()
    assert [*map(len, lines[encoding])] == [*map(len, lines["utf-8"])]
    for line, whole in zip(lines[encoding], lines["utf-8"], strict=True):
        for sign, counterpart in {"→": ">", "←": "<", "✓": "+"}.items():
            for at, each in enumerate(whole):
                assert each != sign or line[at] in (sign, counterpart)


@pytest.mark.parametrize("command", ["schemas", "frames fixtures/pcap/pulsar-batch.pcap", "explain kafka.request"])
def test_closed_pipe_has_status_0(command: str, fixtures: Path) -> None:
    script = (
        f"cd {fixtures.parent}; {sys.executable} -m wirekit {command} | head -1 >/dev/null; echo ${{PIPESTATUS[0]}}"
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_closed_standard_output(fixtures: Path) -> None:
    script = f"{sys.executable} -m wirekit frames {fixtures}/pcap/pulsar-batch.pcap >&-"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


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
        assert run.err.endswith(": expected a pcap or pcapng file or a file of kafka.log_segment\n")


@pytest.mark.parametrize("command", ["frames", "messages", "inspect", "inspect --connections", "inspect --rules"])
def test_a_capture_from_standard_input(command: str, fixtures: Path) -> None:
    capture = fixtures / "pcap" / "jmq4-produce.pcap"
    named = Run(*command.split(), "--output", "json", str(capture))
    piped = Run(*command.split(), "--output", "json", "-", stdin=capture.read_bytes())
    assert named.out
    assert named.status == piped.status
    assert piped.out.decode() == named.out.decode().replace(str(capture), "-")
    assert piped.err == named.err.replace(str(capture), "-")


def test_the_order_of_lines_does_not_depend_on_the_process(fixtures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Text hashes differently in each process: what is read from a set would come in another order each time.
    def printed(seed: int) -> bytes:
        monkeypatch.setenv("PYTHONHASHSEED", str(seed))
        return Run("inspect", "--output", "json", str(fixtures / "pcap" / "jmq4-produce.pcap"), fresh=True).out

    assert len({printed(seed) for seed in range(4)}) == 1


def test_a_segment_from_standard_input(fixtures: Path) -> None:
    segment = fixtures / "kafka" / "disk" / "0.10.2.2-t-gzip-0.log"
    named, piped = Run("messages", str(segment)), Run("messages", "-", stdin=segment.read_bytes())
    assert (piped.status, len(piped.lines)) == (0, len(named.lines))
    assert all(line == {**other, "file": "-"} for line, other in zip(piped.lines, named.lines, strict=True))


def test_standard_input_is_read_once(fixtures: Path) -> None:
    for command in ("frames", "messages", "inspect"):
        run = Run(command, "-", "-")
        assert (run.status, run.out) == (2, b"")
        assert "standard input can be read only once" in run.err


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
    named, pattern = (Run(*command.split(), "--output", "json", *each) for each in (paths, [f"{tmp_path}/[ab].pcap"]))
    assert (pattern.status, pattern.out, pattern.err) == (named.status, named.out, named.err)
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


def test_decode_points_to_frames_for_a_capture(fixtures: Path) -> None:
    for schema in ((), ("kafka",)):
        run = Run("decode", *schema, str(fixtures / "pcap" / "pulsar-batch.pcap"))
        assert run.status == 1
        assert "this is a capture file; `wirekit frames FILE` shows the frames in it" in run.err


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


def test_a_command_that_is_misspelt() -> None:
    assert "No such command 'frame'. Did you mean 'frames'?" in Run("frame").err


def test_a_report_for_a_directory_that_does_not_exist(fixtures: Path, tmp_path: Path) -> None:
    page = tmp_path / "none" / "page.html"
    run = Run("inspect", str(fixtures / "pcap" / "jmq4-produce.pcap"), "--report", str(page))
    assert (run.status, run.out) == (2, b"")
    assert f"--report {page}: the directory does not exist" in run.err


def test_packets_behind_damage_in_a_file_are_kept(fixtures: Path, tmp_path: Path) -> None:
    whole = fixtures / "pcap" / "kafka-0.9.0.1-2-produce.pcapng"
    data = whole.read_bytes()
    damaged = tmp_path / "damaged.pcapng"
    damaged.write_bytes(data[:40_000] + bytes(200) + data[40_200:])
    expected, partial = Run("frames", str(whole)), Run("frames", str(damaged))
    assert partial.status == 1
    assert "bytes passed over: net.pcapng.block.le: " in partial.err
    assert len(expected.lines) - 3 <= len(partial.lines) < len(expected.lines)


def test_gzipped_capture(fixtures: Path, tmp_path: Path) -> None:
    import gzip

    capture = fixtures / "pcap" / "pulsar-consume.pcap"
    (tmp_path / "c.pcap.gz").write_bytes(gzip.compress(capture.read_bytes()))
    for command in ("messages", "frames"):
        packed, plain = Run(command, str(tmp_path / "c.pcap.gz")), Run(command, str(capture))
        assert len(packed.lines) == len(plain.lines) > 0


def test_spans_are_printed_on_request(send: bytes) -> None:
    run = Run("decode", "pulsar", "--spans", stdin=send)
    spans = run.lines[0]["spans"]
    leaves = [span for span in spans if span["kind"] not in ("record", "list")]
    assert [leaf["start"] for leaf in leaves[1:]] == [leaf["end"] for leaf in leaves[:-1]]
    assert (leaves[0]["start"], leaves[-1]["end"]) == (0, len(send))
    assert {"path": "command.type.$tag", "start": 8, "end": 9, "kind": "tag"} in spans
    assert Run("encode", "pulsar", stdin=run.out).out == send


def test_encode_needs_no_schema_where_lines_name_theirs(send: bytes, tmp_path: Path) -> None:
    lines = Run("decode", "pulsar", "--output", "json", stdin=send).out
    assert Run("encode", stdin=lines).out == send
    (tmp_path / "lines.jsonl").write_bytes(lines)
    assert Run("encode", str(tmp_path / "lines.jsonl")).out == send
    bare = json.dumps(json.loads(lines)["value"]).encode()
    assert Run("encode", stdin=bare).err == "wirekit: line 1: names no schema; pass one: `wirekit encode SCHEMA`\n"
    assert Run("encode", "no.such.schema").status == 2


def test_encode_refuses_lines_of_another_schema(send: bytes) -> None:
    lines = Run("decode", "pulsar", "--output", "json", stdin=send).out
    for other in ("kafka", "pulsar.batch"):
        run = Run("encode", other, stdin=lines)
        assert (run.status, run.out) == (1, b"")
        assert f"the schema is pulsar.frame, not {other};" in run.err


def test_all_missing_fields_of_a_record_are_reported_at_once() -> None:
    run = Run("encode", "kafka.heartbeat.request.v0", stdin=b'{"correlation_id": 1, "body": {}}')
    assert "body.group_id: expected a value, found nothing; missing too: group_generation_id, member_id" in run.err


@pytest.mark.parametrize("protocol", ["kafka", ""], ids=["named", "recognised"])
def test_a_response_whose_correlation_id_is_small_is_no_cut_request(protocol: str) -> None:
    """The number lies where a request has its API, so that the bytes may begin a request, too."""
    run = Run("decode", *filter(None, [protocol]), "--hex", "000000060000000f000f")
    assert (run.status, run.lines[0]["schema"], run.lines[0]["error"]) == (0, "kafka.response", None)
    assert run.err == (
        "wirekit: decoded as kafka.response with --context api=leave_group --context version=0; also possible: "
        "--context api=heartbeat --context version=0, --context api=update_metadata --context version=3, "
        "--context api=update_metadata --context version=2 and 2 more\n"
    )


def test_a_request_that_is_cut_stays_one() -> None:
    run = Run("decode", "kafka", "--hex", "0000002000030000000000010003")
    assert (run.status, run.lines[0]["schema"], run.lines[0]["error"]["path"]) == (1, "kafka.request", "client_id")


def test_one_unexplained_byte_is_not_some_bytes() -> None:
    run = Run("decode", "kafka.list_groups.request.v0", "--hex", "0000000c001000000000000700016378")
    assert run.err == "wirekit: kafka.list_groups.request.v0: size: 1 unexplained byte at byte 15\n"


def test_an_example_of_a_protocol_is_a_frame_of_its_client() -> None:
    assert Run("example", "kafka").lines == Run("example", "kafka.request").lines
    refused = Run("example", "net")
    assert refused.status == 2
    assert "net has no byte stream" in refused.err
