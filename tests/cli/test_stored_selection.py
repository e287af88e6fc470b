"""Selection options for the messages of log segments: what is listed is what matches of all that there is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wirekit
from tests.cli.running import Run
from wirekit.cli import stored_selection

DAY_MS = 86_400_000
MOMENT = 1_795_222_763_700
"""2026-11-21T00:59:23.7 in milliseconds since the epoch."""
TIMES = [MOMENT - 1, MOMENT, MOMENT + 1, MOMENT + 12 * DAY_MS - 5, -1, (1 << 63) - 1, -(1 << 63), 0]
ENGINES = pytest.mark.parametrize("engine", ["rows", "columns"])

Line = dict[str, Any]


@pytest.fixture(scope="module")
def segment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A segment of topic ``orders``: messages without a time between others, and a wrong checksum."""
    messages = []
    for number, time_ms in enumerate(TIMES):
        for magic in ({"magic": 0}, {"magic": 1, "timestamp": time_ms}):
            value = None if number == 2 else b"v%d" % number
            message = {**magic, "attributes": {}, "key": b"k", "value": value}
            messages.append({"offset": len(messages), "message": message})
    data = bytearray(wirekit.encode("kafka.log_segment", {"messages": messages, "tail": b""}))
    data[-1] ^= 1
    path = tmp_path_factory.mktemp("broker") / "orders-3" / f"{0:020}.log"
    path.parent.mkdir()
    path.write_bytes(data)
    return path


@ENGINES
@pytest.mark.parametrize(
    ("options", "matches"),
    [
        (["--topic", "ord*"], lambda line: True),
        (["--topic", "payments"], lambda line: False),
        (["--errors"], lambda line: line["check"] == "bad"),
        (["--since", "2026-11-21T00:59:23.7"], lambda line: (line["timestamp"] or 0) >= MOMENT),
        (
            ["--until", "2026-11-21T00:59:23.7"],
            lambda line: line["timestamp"] is not None and line["timestamp"] < MOMENT,
        ),
        (["--since", "00:59:23.7"], lambda line: (line["timestamp"] or 0) % DAY_MS >= MOMENT % DAY_MS),
        (["--where", "log_offset % 2 = 0"], lambda line: line["offset"] % 2 == 0),
        (["--where", "value IS NULL", "--since", "00:00"], lambda line: line["value"] is None and line["timestamp"]),
        (
            ["--where", "direction = 'stored' AND \"partition\" = 3 AND crc_status = 'ok'"],
            lambda line: line["check"] == "ok",
        ),
    ],
)
def test_messages_that_match(
    options: list[str], matches: Callable[[Line], bool], engine: str, segment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_selection, "AT_ONCE", 4)
    everything = Run("messages", str(segment), "--engine", engine)
    expected = [line for line in everything.lines if matches(line)]
    run = Run("messages", str(segment), "--engine", engine, *options)
    assert run.lines == expected
    assert ("no message matches; it has 16 messages" in run.err) == (not expected)
    bad = sum(line["check"] == "bad" for line in expected)
    assert (f"{bad} message with a failed check" in run.err) == bool(bad)
    table = Run("messages", str(segment), "--engine", engine, "--output", "table", *options)
    assert len(table.out.splitlines()) == len(expected) + bool(expected)
