"""Segments are read in pieces; what a piece cuts is whole in the next one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import wirekit
from wirekit.conversation import Message
from wirekit.schemas.kafka import reading

SEGMENTS = sorted((Path(__file__).parents[2] / "fixtures" / "kafka" / "disk").glob("*.log"))


def read(path: Path) -> Iterator[Message]:
    for piece in reading.pieces_of_file(str(path)):
        assert not piece.problems
        yield from piece.messages


@pytest.mark.parametrize("path", SEGMENTS, ids=lambda path: path.name)
@pytest.mark.parametrize("piece", [100, 700, 3000])
def test_pieces_of_any_size_give_the_same_messages(path: Path, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = list(read(path))
    assert whole
    monkeypatch.setattr(reading, "PIECE", piece)
    assert list(read(path)) == whole


def test_offsets_of_pieces_are_those_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message = {"offset": 1, "message": {"magic": 0, "value": "61" * 20}}
    one = wirekit.encode("kafka.message_set", {"messages": [message]})
    path = tmp_path / "t-x-7" / "00000000000000000000.log"
    path.parent.mkdir()
    path.write_bytes(one * 9 + one[:-1])
    monkeypatch.setattr(reading, "PIECE", 2 * len(one) + 5)
    pieces = list(reading.pieces_of_file(str(path)))
    assert [piece.offset for piece in pieces] == [0, 2 * len(one), 4 * len(one), 6 * len(one), 8 * len(one)]
    assert [piece.length for piece in pieces] == [*[2 * len(one)] * 4, 2 * len(one) - 1]
    (error,) = pieces[-1].errors
    assert (error.offset, error.path) == (9 * len(one), "messages[1]")
    first = next(iter(pieces[0].messages))
    assert (first.topic, first.partition) == ("t-x", 7)


@pytest.mark.parametrize("zeros", [12, 5000])
def test_preallocated_zeros_end_a_segment(zeros: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message = {"offset": 1, "message": {"magic": 0, "value": "61"}}
    one = wirekit.encode("kafka.message_set", {"messages": [message]})
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(one * 3 + bytes(zeros))
    monkeypatch.setattr(reading, "PIECE", len(one) + 20)
    assert len(list(read(path))) == 3


def test_an_empty_segment_has_no_messages(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(b"")
    assert list(read(path)) == []
