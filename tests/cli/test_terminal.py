"""Bytes from the wire never give a terminal orders, whatever form of output is asked for."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

import wirekit
from wirekit.cli.common import cells
from wirekit.values import json_text

HOSTILE = "a\x1b[31m\x9b31m\x85\x7f\u061c\u200e\u200f\u2028\u202a\u202e\u2066\u2069z"
FIXTURES = Path(__file__).parents[2] / "fixtures"
DIRECTIONS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}  # embeddings, overrides, isolates
TOPICS = {"correlation_id": 1, "client_id": HOSTILE, "body": {"topics": [HOSTILE]}}


def on_terminal(*arguments: str, width: int = 0) -> str:
    """What a command writes to a terminal of so many columns, 0 for any."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "wirekit", *arguments]
    environment = os.environ | {"TERM": "dumb"} | ({"COLUMNS": str(width), "TERM": "xterm"} if width else {})
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        pieces = []
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            pieces.append(piece)
    os.close(ours)
    assert process.returncode == 0
    return b"".join(pieces).decode()


def without_styles(text: str) -> str:
    """The text without colours and bold type."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def controls(text: str) -> set[str]:
    """Characters that a terminal may obey, but for line ends."""
    return {char for char in text if unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp")} - {"\r", "\n"}


@pytest.mark.parametrize("output", ["json", "tree", "rich", "hexdump"])
def test_nothing_that_a_terminal_obeys(tmp_path: Path, output: str) -> None:
    frame = tmp_path / "frame"
    frame.write_bytes(wirekit.encode("kafka.metadata.request.v0", TOPICS))
    text = on_terminal("decode", "kafka.metadata.request.v0", str(frame), "--output", output)
    assert controls(text) == set()
    if output == "json":
        assert json.loads(text)["value"]["client_id"] == HOSTILE


@pytest.mark.parametrize("output", ["table", "csv", "json"])
def test_no_row_or_name_of_a_query_gives_orders(output: str) -> None:
    capture = str(FIXTURES / "pcap" / "jmq4-consume.pcap")
    query = f"""SELECT '{HOSTILE}' AS "{HOSTILE}", ['{HOSTILE}'] AS list FROM calls LIMIT 1"""
    assert controls(on_terminal("sql", query, capture, "--output", output)) == set()


def test_json_means_the_same() -> None:
    every = "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    assert json.loads(json_text(every)) == every
    assert not any(unicodedata.category(char) in ("Cc", "Cs") for char in json_text(every))
    assert not {unicodedata.bidirectional(char) for char in json_text(every)} & DIRECTIONS


def test_a_wide_terminal_shows_the_whole_topic() -> None:
    arguments = ("messages", "--no-pager", str(FIXTURES / "pcap" / "pulsar-batch.pcap"))
    assert "persistent://public/default/t-batch " in on_terminal(*arguments, width=160)
    assert "…nt://public/default/t-batch " in on_terminal(*arguments, width=110)


def test_rows_that_are_wider_than_the_terminal_have_a_line_per_value(tmp_path: Path) -> None:
    capture = str(FIXTURES / "pcap" / "jmq4-consume.pcap")
    query = "SELECT api, topic, client_address, server_address, latency_us FROM calls ORDER BY request_time LIMIT 2"
    wide, narrow = (on_terminal("sql", query, capture, width=width).splitlines() for width in (100, 60))
    assert [line.split()[0] for line in wide] == ["api", "ADD_CONNECTION", "ADD_CONNECTION"]
    block = ["api             ADD_CONNECTION", "topic           null"]
    block += ["client_address  10.23.45.67", "server_address  10.1.1.1", "latency_us      1790"]
    assert narrow == [*block, "", *block]
    file = tmp_path / "calls.txt"
    on_terminal("sql", query, capture, "--output", "table", "--to", str(file), width=60)
    assert file.read_text().splitlines() == wide
    names = wide[0].split()
    assert on_terminal("sql", query.replace("LIMIT 2", "LIMIT 0"), capture, width=40).split() == names


def test_the_report_on_a_directory_fits_a_narrow_terminal(tmp_path: Path) -> None:
    partition = tmp_path / "t-none-0"
    partition.mkdir()
    for kind in ("log", "index", "timeindex"):
        source = FIXTURES / "kafka" / "disk" / f"0.10.2.2-t-none-0.{kind}"
        (partition / f"{'0' * 20}.{kind}").write_bytes(source.read_bytes())
    (partition / f"{'a' * 40} {'b' * 40}").touch()
    lines = without_styles(on_terminal("inspect", str(partition), width=80)).splitlines()[1:]
    assert [line.strip() for line in lines] == [
        "topic          t-none",
        "partition      0",
        f"{'0' * 20}.log  bytes 6698, messages 81, first offset 0, last offset",
        "80, zeros 0, index entries 3, timeindex entries 3",
        f"other files    {'a' * 40}",
        "b" * 40,
    ]
    assert max(map(len, lines)) <= 80
    assert "  first offset  last offset  zeros" in on_terminal("inspect", str(partition), width=140)


@pytest.mark.parametrize(
    ("capture", "call"), [("kafka-0.10.2.2-4-clients.pcapng", "fetch v3"), ("jmq4-consume.pcap", "FETCH_CLUSTER v3")]
)
def test_the_latencies_of_a_call_stay_in_one_line_of_a_narrow_terminal(capture: str, call: str) -> None:
    """On 60 columns the titles have lines of their own, so that the table of calls has room."""
    path = str(FIXTURES / "pcap" / capture)
    wide, narrow = (
        without_styles(on_terminal("inspect", "--allow-cut", "--no-pager", path, width=width)).splitlines()
        for width in (100, 60)
    )
    assert max(map(cells, narrow[1:])) <= 60
    assert "  calls" in narrow
    (row,) = [line for line in wide if line.strip().startswith(call) and " ms:" not in line]
    assert f"   {row.strip()}" in narrow


def test_connections_fit_a_narrow_terminal() -> None:
    path = str(FIXTURES / "pcap" / "pulsar-batch.pcap")
    lines = without_styles(on_terminal("inspect", "--connections", "--no-pager", path, width=70)).splitlines()
    assert max(map(cells, lines[1:])) <= 70
    assert any(line.startswith("  producer: producer_id 0") for line in lines)


@pytest.mark.parametrize("key", ["", "kafka.produce.request.v2", "kafka.offset_index", "joyqueue.frame"])
def test_schemas_fit_a_narrow_terminal(key: str) -> None:
    lines = without_styles(on_terminal("schemas", "--no-pager", *filter(None, [key]), width=80)).splitlines()
    assert len(lines) > 5
    assert max(map(cells, lines)) <= 80


def test_a_terminal_that_has_no_room_gets_lines_of_80() -> None:
    """One that is narrower than an indent ended with an error of the library that breaks lines."""
    lines = without_styles(on_terminal("schemas", "--no-pager", "kafka.offset_index", width=2)).splitlines()
    assert 40 < max(map(cells, lines)) <= 80


def test_rules_fit_a_narrow_terminal() -> None:
    text = on_terminal("inspect", "--rules", "--list", "--no-pager", width=80)
    assert max(map(cells, without_styles(text).splitlines())) <= 80


def test_messages_fit_a_narrow_terminal() -> None:
    """Two lines a message, each within the terminal; the topic is whole."""
    for capture in ("pulsar-batch.pcap", "jmq4-produce.pcap"):
        path = str(FIXTURES / "pcap" / capture)
        lines = on_terminal("messages", "--no-pager", path, width=80).splitlines()
        count = len(on_terminal("messages", "--no-pager", "--output", "json", path, width=80).splitlines())
        assert max(map(len, lines)) <= 80
        assert len(lines) == 2 * count
        assert all(" → " in line for line in lines[1::2])


def _from_terminal(*arguments: str) -> tuple[int, str]:
    """The exit status and standard error of a command whose standard input is a terminal, which ends at once."""
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "wirekit", *arguments]
    with os.fdopen(ours, "wb", buffering=0) as terminal, os.fdopen(theirs, "rb") as stdin:
        terminal.write(b"\x04")
        completed = subprocess.run(command, stdin=stdin, capture_output=True, text=True, check=False, timeout=60)
    return completed.returncode, completed.stderr


@pytest.mark.parametrize("arguments", [["decode"], ["encode", "kafka"]], ids=" ".join)
def test_input_from_a_terminal_says_how_it_ends(arguments: list[str]) -> None:
    status, error = _from_terminal(*arguments)
    assert status == 1
    assert error == (
        "wirekit: reading from the terminal; Ctrl-D at the beginning of a line ends the input\n"
        "wirekit: the input is empty\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["frames", "-"],
        ["messages", "-"],
        ["inspect", "-"],
        ["sql", "FROM calls", "-"],
        ["pipeline", "-", "-o", "tables"],
    ],
    ids=" ".join,
)
def test_a_terminal_is_no_capture(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    status, error = _from_terminal(*arguments)
    assert (status, "standard input is a terminal; name a file" in error) == (2, True)
