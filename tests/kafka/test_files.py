"""Segments are read in pieces; what a piece cuts is whole in the next one."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import wirekit
from tests.kafka.golden import message, message_set
from wirekit.cli import group
from wirekit.conversation import Message
from wirekit.protocols.kafka import segment_file

SEGMENTS = sorted((Path(__file__).parents[2] / "fixtures" / "kafka" / "disk").glob("*.log"))


def read(path: Path) -> Iterator[Message]:
    for piece in segment_file.pieces_of_file(str(path)):
        assert not piece.problems
        yield from piece.messages


@pytest.mark.parametrize("path", SEGMENTS, ids=lambda path: path.name)
@pytest.mark.parametrize("piece", [100, 700, 3000])
def test_pieces_of_any_size_give_the_same_messages(path: Path, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = list(read(path))
    assert whole
    monkeypatch.setattr(segment_file, "PIECE", piece)
    assert list(read(path)) == whole


def test_offsets_of_pieces_are_those_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message = {"offset": 1, "message": {"magic": 0, "value": "61" * 20}}
    one = wirekit.encode("kafka.message_set", {"messages": [message]})
    path = tmp_path / "t-x-7" / "00000000000000000000.log"
    path.parent.mkdir()
    path.write_bytes(one * 9 + one[:-1])
    monkeypatch.setattr(segment_file, "PIECE", 2 * len(one) + 5)
    pieces = list(segment_file.pieces_of_file(str(path)))
    assert [piece.offset for piece in pieces] == [0, 2 * len(one), 4 * len(one), 6 * len(one), 8 * len(one)]
    assert [piece.length for piece in pieces] == [*[2 * len(one)] * 4, 2 * len(one) - 1]
    (error,) = pieces[-1].errors
    assert (error.offset, error.path) == (9 * len(one), "messages[]")
    first = next(iter(pieces[0].messages))
    assert (first.topic, first.partition) == ("t-x", 7)


ONE, TWO, THREE = (message_set(message(b"value %d" % offset, offset=offset)) for offset in (1, 2, 3))


@pytest.mark.parametrize("piece", [30, 4096])
@pytest.mark.parametrize(
    ("damage", "path"),
    [
        (b"\x55" * 50, "tail"),
        (bytes(100), "tail"),
        (bytes(11), "tail"),
        (bytes(7) + b"\x02" + (3).to_bytes(4, "big"), "messages[1].message_size"),
        (TWO[:16] + b"\x09" + TWO[17:], "messages[1].message.magic"),
    ],
)
def test_reading_goes_on_behind_damage(
    damage: bytes, path: str, piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_file, "PIECE", piece)
    segment = tmp_path / "00000000000000000000.log"
    segment.write_bytes(ONE + damage + THREE)
    pieces = list(segment_file.pieces_of_file(str(segment)))
    assert [message.value for piece in pieces for message in piece.messages] == [b"value 1", b"value 3"]
    (damaged,) = (each for piece in pieces for each in piece.damaged)
    assert (damaged.offset, damaged.length) == (len(ONE), len(damage))
    assert damaged.error.path.partition("]")[2] == path.partition("]")[2]
    assert not any(piece.errors for piece in pieces)


def test_bytes_that_only_resemble_a_message_are_none(tmp_path: Path) -> None:
    segment = tmp_path / "00000000000000000000.log"
    for behind in (THREE[:-1], ONE, THREE[:-1] + b"\0", message_set(message(b"far", offset=1 << 40))):
        segment.write_bytes(TWO + b"\x55" * 50 + behind)
        (*_, last) = segment_file.pieces_of_file(str(segment))
        assert [error.offset for error in last.errors] == [len(TWO)]


def test_a_large_message_behind_damage_may_be_followed_by_part_of_a_header(tmp_path: Path) -> None:
    """The end of the file cuts the next message before its size is told."""
    segment = tmp_path / "00000000000000000000.log"
    large = message_set(message(b"x" * 20_000, offset=3))
    segment.write_bytes(ONE + b"\x55" * 50 + large + bytes(7) + b"\x04")
    pieces = list(segment_file.pieces_of_file(str(segment)))
    assert [len(each.value or b"") for piece in pieces for each in piece.messages] == [7, 20_000]


def with_size(data: bytes, size: int) -> bytes:
    return data[:8] + size.to_bytes(4, "big") + data[12:]


def inside(magic: int, number: int) -> dict[str, Any]:
    return message([message(b"inner", offset=number, magic=magic)], offset=number, magic=magic, codec="GZIP")


@pytest.mark.parametrize("piece", [30, 4096])
@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("magic", [0, 1])
def test_a_size_that_is_too_large_hides_no_other_message(
    magic: int, compressed: bool, piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it names: some bytes of the next message, all of them, all to the end of the file or more.

    The message itself is not said to be in order, as its CRC covers what its size names.
    """
    monkeypatch.setattr(segment_file, "PIECE", piece)
    one, two, *others = (
        message_set(inside(magic, n) if compressed else message(b"value %d" % n, offset=n, magic=magic))
        for n in range(1, 6)
    )
    behind = b"".join(others)
    segment = tmp_path / "00000000000000000000.log"
    for more in range(1, len(behind) + 3):
        segment.write_bytes(one + with_size(two, len(two) - 12 + more) + behind)
        pieces = list(segment_file.pieces_of_file(str(segment)))
        verdicts = [(m.offset, m.check) for each in pieces for m in each.messages]
        assert [each for each in verdicts if each[0] != 2] == [(n, "ok") for n in (1, 3, 4, 5)]
        assert (2, "ok") not in verdicts
        assert [each for piece in pieces for each in piece.damaged]
        assert sum(each.length for each in pieces) == segment.stat().st_size
        assert not any(each.errors or each.gaps for each in pieces)


def test_bytes_behind_a_value_are_covered_by_the_crc(tmp_path: Path) -> None:
    """A message with more bytes than its fields is bad, or good, as the CRC over all of them says."""
    segment = tmp_path / "00000000000000000000.log"
    for crc, check in ((None, "ok"), (zlib.crc32(TWO[16:]), "bad")):
        long = TWO[16:] + b"more"
        body = (zlib.crc32(long) if crc is None else crc).to_bytes(4, "big") + long
        segment.write_bytes(ONE + TWO[:8] + len(body).to_bytes(4, "big") + body + THREE)
        pieces = list(segment_file.pieces_of_file(str(segment)))
        assert [m.check for piece in pieces for m in piece.messages] == ["ok", check, "ok"]
        assert sum(gap.length for piece in pieces for gap in piece.gaps) == 4
        assert not any(piece.damaged for piece in pieces)


@pytest.mark.parametrize("zeros", [12, 5000])
def test_preallocated_zeros_end_a_segment(zeros: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message = {"offset": 1, "message": {"magic": 0, "value": "61"}}
    one = wirekit.encode("kafka.message_set", {"messages": [message]})
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(one * 3 + bytes(zeros))
    monkeypatch.setattr(segment_file, "PIECE", len(one) + 20)
    assert len(list(read(path))) == 3


def test_an_empty_segment_has_no_messages(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(b"")
    assert list(read(path)) == []


def test_messages_before_damage_in_compressed_data_are_read_and_the_damage_is_a_problem(tmp_path: Path) -> None:
    wrapper = {
        "offset": 3,
        "message": {"magic": 0, "attributes": {"codec": 1}, "value": gzip.compress(TWO + THREE)[:-8]},
    }
    data = wirekit.encode("kafka.message_set", {"messages": [wrapper]})
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(ONE + data)
    reason = "expected whole messages in the compressed data, found damage: gzip: expected a complete gzip member"
    read_messages = [(1, "ok"), (2, "ok"), (3, "ok")]
    for engine in ("rows", "columns"):
        result = CliRunner().invoke(group, ["messages", str(path), "--engine", engine, "--output", "json"])
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        assert [(line["offset"], line["check"]) for line in lines] == read_messages
        assert reason in result.stderr
    pq = pytest.importorskip("pyarrow.parquet")
    out = tmp_path / "tables"
    CliRunner().invoke(group, ["pipeline", str(path), "--output", str(out)])
    table = pq.read_table(out / "messages").select(["log_offset", "crc_status"])
    assert [tuple(row.values()) for row in table.to_pylist()] == read_messages
    (row,) = pq.read_table(out / "quarantine").select(["reason", "length"]).to_pylist()
    assert row["reason"].startswith(reason)
    assert row["length"] == 0


def test_compressed_data_that_cannot_be_opened_is_a_problem_with_its_reason(tmp_path: Path) -> None:
    cut = gzip.compress(ONE)[:10]
    wrapper = {"offset": 1, "message": {"magic": 0, "attributes": {"codec": 1}, "value": cut}}
    data = wirekit.encode("kafka.message_set", {"messages": [wrapper]})
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(ONE + data + TWO)
    (piece,) = segment_file.pieces_of_file(str(path))
    place = f"{len(cut)} unexplained bytes at byte {len(ONE) + len(data) - len(cut)}"
    reason = f"gzip: expected a complete gzip member, found one cut after {len(cut)} bytes"
    assert piece.problems == [f"{place}: {reason}"]
    pq = pytest.importorskip("pyarrow.parquet")
    out = tmp_path / "tables"
    CliRunner().invoke(group, ["pipeline", str(path), "--output", str(out)])
    rows = pq.read_table(out / "quarantine").select(["reason", "length"]).to_pylist()
    assert rows == [{"reason": reason, "length": len(cut)}]
