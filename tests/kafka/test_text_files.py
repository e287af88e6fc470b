"""Checkpoints and properties: files of lines, which come out as they went in on every engine."""

from __future__ import annotations

from pathlib import Path

import pytest

import wirekit
from tests.kafka.golden import DISK

CHECKPOINTS = sorted(DISK.glob("*-checkpoint"))
PROPERTIES = sorted(DISK.glob("*.properties"))
ENGINES = ["rows", "reference"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("path", [*CHECKPOINTS, *PROPERTIES], ids=lambda path: path.name)
def test_real_files_come_out_as_they_went_in(path: Path, engine: str) -> None:
    key = "kafka.offset_checkpoint" if path in CHECKPOINTS else "kafka.meta_properties"
    data = path.read_bytes()
    decoded = wirekit.decode(data, key, engine=engine)
    assert decoded.clean
    assert decoded.consumed == len(data)
    for _ in range(3):
        assert wirekit.encode(key, decoded.value) == data
    assert wirekit.encode(key, wirekit.to_json(decoded.value)) == data


def test_checkpoints_and_properties_decode_to_their_entries() -> None:
    data = (DISK / "0.10.2.2-recovery-point-offset-checkpoint").read_bytes()
    entries = wirekit.decode(data, "kafka.offset_checkpoint").value.entries
    assert (entries[0].topic, entries[0].partition, entries[0].offset) == ("t-snappy", 0, 74)
    assert len(entries) == 7
    data = (DISK / "0.10.2.2-meta.properties").read_bytes()
    lines = wirekit.decode(data, "kafka.meta_properties").value.lines
    assert [(line.name, line.value) for line in lines if line.comment is None] == [("broker.id", "1"), ("version", "0")]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("text", "path", "offset"),
    [
        (b"", "version", 0),
        (b"0", "version", 0),
        (b"x\n1\n", "version", 0),
        (b"00\n1\n", "version", 0),
        (b"0\n+1\nt 0 1\n", "count", 2),
        (b"0\n-1\n", "entries", 5),
        (b"0\n1\ntopic 0\n", "entries[0].partition", 10),
        (b"0\n1\nt\n 0 1\n", "entries[0].topic", 4),
        (b"0\n99999999999\nt 0 1\n", "entries", 14),
    ],
)
def test_text_that_is_no_checkpoint_is_an_error(text: bytes, path: str, offset: int, engine: str) -> None:
    decoded = wirekit.decode(text, "kafka.offset_checkpoint", engine=engine)
    assert decoded.error is not None
    assert (decoded.error.path, decoded.error.offset) == (path, offset)


def test_lines_behind_the_last_entry_are_a_gap() -> None:
    decoded = wirekit.decode(b"0\n0\nmore\n", "kafka.offset_checkpoint")
    assert [(gap.offset, gap.length) for gap in decoded.gaps] == [(4, 5)]


@pytest.mark.parametrize("topic", ["a b", "a\n", 7, None])
def test_a_topic_that_no_line_can_hold_is_refused(topic: object) -> None:
    with pytest.raises(wirekit.Wrong):
        wirekit.encode("kafka.offset_checkpoint", {"entries": [{"topic": topic, "partition": 0, "offset": 0}]})


def test_count_is_computed() -> None:
    entry = {"topic": "t", "partition": 0, "offset": 5}
    assert wirekit.encode("kafka.offset_checkpoint", {"entries": [entry] * 2}) == b"0\n2\nt 0 5\nt 0 5\n"


@pytest.mark.parametrize("engine", ENGINES)
def test_properties_without_an_end_or_an_equals_sign(engine: str) -> None:
    decoded = wirekit.decode(b"a=1\nb=2", "kafka.meta_properties", engine=engine)
    assert isinstance(decoded.error, wirekit.Short)
    assert (decoded.error.path, decoded.error.offset) == ("lines[1].value", 6)
    assert [(line.name, line.value) for line in decoded.value.lines[:1]] == [("a", "1")]
    decoded = wirekit.decode(b"a=1\nb\nc=2\n", "kafka.meta_properties", engine=engine)
    assert decoded.error is not None
    assert decoded.error.path == "lines[1].name"
