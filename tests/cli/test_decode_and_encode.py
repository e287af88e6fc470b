"""``wirekit decode`` and ``wirekit encode`` as scripts see them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

import wirekit
from tests.cli.running import HEARTBEAT, Run
from tests.own import declared
from wirekit.cli.context import parse_context
from wirekit.cli.guesses import missing_size
from wirekit.registry import OF_YOUR_OWN, Layout, Protocol
from wirekit.wire import Const, Length, Struct, rest, uint8


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


def test_hex_that_is_not_utf8_is_refused() -> None:
    run = Run("decode", "--hex", "00\udcff")
    assert (run.status, run.out, run.err.count("\n")) == (1, b"", 1)
    assert "hex" in run.err


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


def test_a_frame_without_its_size_is_named_with_the_size_to_put_before_it(send: bytes) -> None:
    before = "with the size {} before them, the bytes decode cleanly as {}"
    response = bytes.fromhex("00000000 00000001 0003 626172 00000001 00000000 0000 000000000000000a")
    fetched = "kafka.response with --context api=produce --context version=0"
    request = bytes.fromhex("0003 0000 00000001 0003 666f6f 00000001 0003 626172")
    for data, size, key in ((request, "00000016", "kafka.request"), (response, "0000001f", fetched)):
        for schema in ((), ("kafka",)):
            run = Run("decode", *schema, stdin=data)
            assert run.status == 1
            assert before.format(size, key) in run.err
        assert Run("decode", *key.replace(" with", "").split(), stdin=bytes.fromhex(size) + data).status == 0
    assert before.format(send[:4].hex(), "pulsar.frame") in Run("decode", stdin=send[4:]).err
    assert before.format(HEARTBEAT[:8], "joyqueue.frame") in Run("decode", "--hex", HEARTBEAT[8:]).err
    assert "before them" not in Run("decode", stdin=request[1:]).err


def test_a_size_before_bytes_that_any_bytes_fit_is_no_hint() -> None:
    packet, start = Struct("size" / Length(uint8), "data" / rest()), Struct("magic" / Const(uint8, 7))
    layouts = {"packet": Layout(packet), "start": Layout(start)}
    size = "with the size 28 before them"
    for proofs, hint in ((("start",), ""), (("packet",), size)):
        with declared(Protocol("packets", "Packets", layouts, "packet", "packet", proofs)):
            assert missing_size(b"\xff" * 40)[: len(size)] == hint


def test_unknown_schema_suggests_near_ones() -> None:
    run = Run("decode", "pulsar.frames", "--hex", "00")
    assert run.status == 2
    assert "did you mean" in run.err
    assert "pulsar.frame" in run.err


@pytest.mark.parametrize("part", ["kafka.list_offsets", "list_offsets", "Kafka.List_Offsets"])
def test_a_part_of_a_key_suggests_the_keys_with_this_part(part: str) -> None:
    keys = ", ".join(f"kafka.list_offsets.{side}.v{version}" for side in ("request", "response") for version in (0, 1))
    run = Run("decode", part, "--hex", "00")
    assert run.status == 2
    assert run.err.endswith(f"; did you mean {keys}?\n")


@pytest.mark.parametrize("command", ["decode", "encode", "example", "schemas"])
@pytest.mark.parametrize("part", ["list_offsets", "list_ofsets", "kafka.list_ofset", "kafak.list_offsets"])
def test_every_command_suggests_the_keys_with_a_similar_part(command: str, part: str) -> None:
    run = Run(command, part)
    assert run.status == 2
    assert "did you mean kafka.list_offsets.request.v0, kafka.list_offsets.request.v1, " in run.err


@pytest.mark.parametrize("command", ["example", "schemas"])
def test_a_misspelt_protocol_suggests_the_protocol(command: str) -> None:
    assert Run(command, "kafak").err == "wirekit: no protocol 'kafak'; did you mean kafka?\n"


def test_an_incomplete_frame_without_a_schema_names_the_protocols_to_pass() -> None:
    run = Run("decode", "--hex", "0000000900000005081292")
    assert run.status == 1
    assert "for an incomplete or damaged frame, pass its protocol as SCHEMA (kafka, pulsar, joyqueue, jmq4)" in run.err


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


@pytest.mark.parametrize("key", ["kafka.metadata.request.v1", "joyqueue.batch", "kafka.message"])
def test_encode_misses_exactly_the_fields_that_schemas_call_required(key: str) -> None:
    (layout,) = Run("schemas", key, "--output", "json").lines
    top = [field for field in layout["fields"] if field["depth"] == 0]
    required = {field["name"] for field in top if field["presence"] == "required" and ", if " not in field["type"]}
    encoded = Run("encode", key, stdin=b"{}")
    missed = {name for name in required if name in encoded.err}
    assert missed == required, encoded.err


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


KAFKA_HEARTBEAT = "0000001e000c00000000000700047465787400047465787400000003000474657874"


@pytest.mark.parametrize(
    ("schema", "data", "other"),
    [
        ("pulsar", KAFKA_HEARTBEAT, "kafka"),
        ("kafka.heartbeat.response.v0", KAFKA_HEARTBEAT, "kafka"),
        ("kafka", HEARTBEAT, "joyqueue"),
    ],
)
def test_bytes_of_another_protocol_than_the_given_one_are_recognised(schema: str, data: str, other: str) -> None:
    run = Run("decode", schema, "--hex", data)
    assert run.status == 1
    assert run.err.endswith(f"wirekit: the first frame decodes cleanly as {other}; pass {other} instead of {schema}\n")


@pytest.mark.parametrize("data", [f"{KAFKA_HEARTBEAT}00", KAFKA_HEARTBEAT[:-2]])
def test_bytes_of_the_given_schema_are_not_compared_with_others(data: str) -> None:
    run = Run("decode", "kafka.heartbeat.request.v0", "--hex", data)
    assert run.status == 1
    assert "decodes cleanly" not in run.err


def test_context_that_a_schema_does_not_have_is_refused() -> None:
    run = Run("decode", "kafka.response", "--context", "foo=1", "--hex", "00")
    assert run.status == 2
    assert "it takes api, version" in run.err
    err = Run("decode", "kafka.response", "--hex", "000000060000000700ff").err
    assert "decodes cleanly with --context api=leave_group --context version=0" in err


@pytest.mark.parametrize(
    ("context", "text"),
    [
        (["api=nosuch"], "has no api 'nosuch'; it may be api_versions, controlled_shutdown,"),
        (["api=Fetch", "version=1"], "has no api 'Fetch'; it may be"),
        (["api=fetch", "version=99"], "with api fetch has no version 99; it may be 0 to 3"),
        (["version=99"], "has no version 99; it may be 0 to 3"),
        (["api=fetch", "version=zz"], "with api fetch has no version 'zz'; it may be 0 to 3"),
    ],
)
def test_context_that_no_case_has_is_refused(context: list[str], text: str) -> None:
    arguments = [word for pair in context for word in ("--context", pair)]
    for command in (["decode", "--hex", "0000000a00000001000000000000"], ["encode"]):
        run = Run(*command, "kafka.response", *arguments)
        assert (run.status, run.out) == (2, b"")
        assert text in " ".join(run.err.split())


def test_schema_of_nothing_leaves_the_rest_as_a_gap() -> None:
    run = Run("decode", "joyqueue.heartbeat.request", "--hex", "0102030405")
    assert run.status == 1
    assert [line["gaps"] for line in run.lines] == [[{"offset": 0, "length": 5}]]


def test_names_that_are_no_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("frame.bin").write_bytes(b"\0")
    for arguments, error in (
        (["frame.bin", "kafka"], "frame.bin is not a schema; the schema comes first: wirekit decode kafka frame.bin"),
        (["kafak", "frame.bin"], "no schema 'kafak'; did you mean kafka?"),
        (["nofile"], f"no file 'nofile', and no schema 'nofile'; `wirekit schemas` lists them all; {OF_YOUR_OWN}"),
    ):
        run = Run("decode", *arguments)
        assert (run.status, run.err) == (2, f"wirekit: {error}\n")


@pytest.mark.parametrize(
    ("text", "line", "path"),
    [
        (b'{"client_id": "me", "client_id": "you"}', 1, "client_id"),
        (b'{"schema": "kafka.request",\n"value": {"a": [1, {"b": 2, "c": 3, "b": 4}]}}', 1, "value.a[1].b"),
        (b'{"a": {"x": 1, "x": 2}, "a": 3}', 1, "a"),
        (b'\n\n{"a": 1, "a": 2}\n{"b": 1}', 3, "a"),
    ],
)
def test_a_key_twice_in_json_is_refused(text: bytes, line: int, path: str) -> None:
    run = Run("encode", "kafka.request", stdin=text)
    message = f"wirekit: line {line}: {path}: the object has this key twice\n"
    assert (run.status, run.out, run.err) == (1, b"", message)


@pytest.mark.parametrize(
    ("text", "reason"),
    [(b"[" * 99_999, "the JSON is nested too deeply"), (b"9" * 9999, "the JSON has an integer with too many digits")],
)
def test_json_that_python_does_not_read_is_refused_with_its_line(text: bytes, reason: str) -> None:
    assert Run("encode", "kafka.request", stdin=text).err == f"wirekit: line 1: {reason}\n"


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


def test_decode_points_to_frames_for_a_capture(fixtures: Path) -> None:
    for schema in ((), ("kafka",)):
        run = Run("decode", *schema, str(fixtures / "pcap" / "pulsar-batch.pcap"))
        assert run.status == 1
        assert "this is a capture file; `wirekit frames FILE` shows the frames in it" in run.err


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
    assert Run("encode", stdin=bare).err == "wirekit: line 1 names no schema; pass one: `wirekit encode SCHEMA`\n"
    assert Run("encode", "no.such.schema").status == 2


def test_encode_refuses_lines_of_another_schema(send: bytes) -> None:
    lines = Run("decode", "pulsar", "--output", "json", stdin=send).out
    for other in ("kafka", "pulsar.batch"):
        run = Run("encode", other, stdin=lines)
        assert (run.status, run.out) == (1, b"")
        assert f"the schema is pulsar.frame, not {other};" in run.err


def test_all_missing_fields_of_a_record_are_reported_at_once() -> None:
    run = Run("encode", "kafka.heartbeat.request.v0", stdin=b'{"correlation_id": 1, "body": {}}')
    assert "body.group_id: expected a value, found nothing; also missing: group_generation_id, member_id" in run.err


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


def test_values_of_a_context_are_numbers_if_they_have_digits_alone() -> None:
    most = (1 << 64) - 1
    assert parse_context((f"most={most}", "least=-1", "name=1a", "other=١")) == {
        "most": most,
        "least": -1,
        "name": "1a",
        "other": "١",
    }
    assert parse_context((f"long={'9' * 5_000}",)) == {"long": "9" * 5_000}
