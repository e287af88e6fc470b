"""``wirekit messages`` prints the same lines on both roads, and says the same of what did not decode."""

from __future__ import annotations

import functools
import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import wirekit
import wirekit.road.tables as road
from tests.cli.roads import same_lines
from tests.fuzz.captures import hostile
from tests.kafka.golden import message, message_set
from tests.kafka.sets import call
from tests.road.test_pairing import capture
from wirekit.cli import group
from wirekit.conversation import SIDES
from wirekit.errors import Misuse

CAPTURES = sorted(path.name for path in (Path(__file__).parents[2] / "fixtures" / "pcap").glob("*.pcap*"))
WINDOW = 20_000
"""Bytes: connections reach beyond it."""


def messages(path: Path, which: str, *options: str) -> Result:
    return CliRunner().invoke(group, ["messages", str(path), "--road", which, *options], standalone_mode=False)


def assert_same(path: Path, *options: str) -> list[str]:
    return same_lines(messages, path, *options)


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(road, "captured", functools.partial(road.captured, window=WINDOW))


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("output", ["json", "table"])
def test_lines_are_the_same(capture: str, output: str, fixtures: Path) -> None:
    assert_same(fixtures / "pcap" / capture, "--output", output)


@pytest.mark.usefixtures("small_windows")
@pytest.mark.parametrize("capture", CAPTURES)
def test_lines_of_connections_that_reach_beyond_windows_are_the_same(capture: str, fixtures: Path) -> None:
    assert_same(fixtures / "pcap" / capture, "--output", "json", "--strict")


@pytest.mark.usefixtures("small_windows")
def test_lines_of_hostile_captures_are_the_same(tmp_path: Path) -> None:
    path, some = tmp_path / "hostile.pcap", 0
    for seed in range(100, 140):
        hostile(path, seed)
        some += bool(assert_same(path, "--output", "json", "--allow-cut"))
    assert some >= 2


def test_lines_are_in_the_order_of_time(tmp_path: Path, fixtures: Path) -> None:
    lines = assert_same(fixtures / "pcap" / "kafka-0.10.2.2-4-clients.pcapng", "--output", "json")
    times = [line["timestamp"] for line in map(json.loads, lines) if line["offset"] is None]
    assert len(times) > 90
    assert times == sorted(times)


def test_a_message_of_a_protocol_with_details_has_them(fixtures: Path) -> None:
    line: dict[str, Any] = json.loads(assert_same(fixtures / "pcap" / "pulsar-encryption.pcap", "--output", "json")[0])
    assert line["encrypted"] == ["my-key"]
    assert line["properties"] == {"visible": "yes"}
    assert "acknowledged" not in line


def test_messages_of_a_connection_by_its_number(fixtures: Path) -> None:
    path = fixtures / "pcap" / "pulsar-consume.pcap"
    lines = assert_same(path, "--output", "json", "--connection", "1")
    assert 0 < len(lines) <= len(assert_same(path, "--output", "json"))
    assert not assert_same(path, "--connection", "9999")


def test_columns_need_their_extra(fixtures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    result = messages(fixtures / "pcap" / "jmq4-produce.pcap", "columns")
    assert isinstance(result.exception, Misuse)
    assert "needs numba" in str(result.exception)


def test_names_of_emoji_in_a_value_stay_text(tmp_path: Path) -> None:
    entry = {"offset": 0, "message": {"magic": 0, "key": b":car:", "value": b":smile:"}}
    segment = tmp_path / f"{0:020}.log"
    segment.write_bytes(wirekit.encode("kafka.message_set", {"messages": [entry], "partial": b""}))
    (_, line) = messages(segment, "auto", "--output", "table").stdout.splitlines()
    assert line.endswith("':car:' → ':smile:'")


@pytest.mark.parametrize("side", ["server", "client", "segment"])
@pytest.mark.parametrize("output", ["json", "table"])
def test_messages_in_cut_compressed_data_have_no_offset(side: str, output: str, tmp_path: Path) -> None:
    """The offset of the last message, which is missing, determines the others; produced messages never have one."""
    first = message_set(message(b"x", offset=0, magic=1))
    wrapper = message([message(b"")], offset=9, codec="GZIP", magic=1)
    wrapper["message"]["value"] = gzip.compress((3 * first)[:-10])
    if side == "segment":
        path = tmp_path / f"{0:020}.log"
        path.write_bytes(first + message_set(wrapper))
    else:
        pieces = [*call(side, first), *call(side, first + message_set(wrapper)), *call(side, first)]
        path = capture(tmp_path / "cut.pcap", *((SIDES.index(each), data) for each, data in pieces))
    engines = {"objects": "rows", "columns": "columns"}
    runs = [messages(path, road, "--output", output, "--engine", engine) for road, engine in engines.items()]
    complaint = f"{path}: 2 messages without an offset, because compressed data ends inside a message"
    assert [complaint in run.stderr for run in runs] == [side != "client"] * 2
    assert runs[0].output == runs[1].output
