"""Bytes from the wire never give a terminal orders, whatever form of output is asked for."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

import wirekit
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


def test_json_means_the_same() -> None:
    every = "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    assert json.loads(json_text(every)) == every
    assert not any(unicodedata.category(char) in ("Cc", "Cs") for char in json_text(every))
    assert not {unicodedata.bidirectional(char) for char in json_text(every)} & DIRECTIONS


def test_a_wide_terminal_shows_the_whole_topic() -> None:
    arguments = ("messages", "--no-pager", str(FIXTURES / "pcap" / "pulsar-batch.pcap"))
    assert "persistent://public/default/t-batch " in on_terminal(*arguments, width=160)
    assert "…nt://public/default/t-batch " in on_terminal(*arguments, width=110)


def test_messages_fit_a_narrow_terminal() -> None:
    """Two lines a message, each within the terminal; the topic is whole."""
    for capture in ("pulsar-batch.pcap", "jmq4-produce.pcap"):
        path = str(FIXTURES / "pcap" / capture)
        lines = on_terminal("messages", "--no-pager", path, width=80).splitlines()
        count = len(on_terminal("messages", "--no-pager", "--output", "json", path, width=80).splitlines())
        assert max(map(len, lines)) <= 80
        assert len(lines) == 2 * count
        assert all(" → " in line for line in lines[1::2])
