"""Segments read in columns: the same lines, complaints and exit status as one message at a time, whatever they hold."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest

import wirekit
from tests.kafka.golden import DISK, message, message_set
from wirekit.cli import main
from wirekit.compression import compress

pytest.importorskip("numba")
pytest.importorskip("pyarrow")

from wirekit.protocols.kafka import columns, segment_file
from wirekit.stored import Piece

CAPTURES = Path(__file__).parents[2] / "../shared/captures/kafka"
SEGMENTS = [*sorted(DISK.glob("*.log")), *sorted(CAPTURES.glob("*/*/*/*.log"))]

Run = Callable[[Path, str], tuple[int, bytes, str]]


@pytest.fixture
def run(capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    def messages(path: Path, engine: str) -> tuple[int, bytes, str]:
        with pytest.raises(SystemExit) as stopped:
            main(["messages", str(path), "--output", "json", "--engine", engine])
        out, err = capfdbinary.readouterr()
        return int(str(stopped.value.code)), out, err.decode()

    return messages


def wrapper(value: bytes, codec: str, **fields: object) -> dict[str, object]:
    """A compressed message whose value is what it is."""
    entry = message(b"", codec=codec, **fields)  # type: ignore[arg-type]
    entry["message"]["value"] = {"compressed": value.hex()}
    return entry


def damaged(codec: str, symbol: str, end: int) -> bytes:
    """A set that is cut after it was compressed."""
    return message_set(wrapper(compress(codec, message_set(*inner(9)))[:end], symbol, magic=1, offset=30))


def inner(count: int, magic: int = 1) -> list[dict[str, object]]:
    return [message(b"inner %d" % n, offset=n, magic=magic, key="6b") for n in range(count)]


WHOLE = message_set(message(b"one", offset=1), message(b"two", offset=2, magic=1))
ODD_TEXTS = message_set(
    *(
        message(value, offset=n, magic=1)
        for n, value in enumerate([b'\x00\x1f"\\\n', "ä漢".encode(), b"\xff\xfe", b""])
    ),
    message(None, offset=9, key=""),
    message(None, offset=10, magic=1, key=None, timestamp=-1),
    message(b"past", offset=11, magic=1, timestamp=-5),
    message(b"far", offset=(1 << 63) - 1, magic=1, timestamp=(1 << 63) - 1),
    message(b"low", offset=-(1 << 63), magic=1, timestamp=-(1 << 63)),
)
COMPRESSED = message_set(
    *(
        message(inner(3, magic), offset=10 * at + 2, magic=magic, codec=codec, timestamp_type=kind, key="77")
        for at, (magic, codec, kind) in enumerate(
            [
                (0, "GZIP", "CreateTime"),
                (1, "SNAPPY", "CreateTime"),
                (1, "LZ4", "LogAppendTime"),
                (0, "LZ4", "CreateTime"),
            ]
        )
    ),
    message([message(inner(2), magic=1, offset=7, codec="GZIP")], magic=1, offset=50, codec="GZIP"),
)


def bad_crc(data: bytes) -> bytes:
    """The first message's checksum is wrong."""
    value = wirekit.decode(data, "kafka.message_set").value
    value.messages[0].message.crc ^= 1
    value.messages[0].message.keep("crc")
    return wirekit.encode("kafka.message_set", value)


def trailing(data: bytes) -> bytes:
    """Bytes that no field explains inside the first message."""
    value = wirekit.decode(data, "kafka.message_set").value
    value.messages[0].extra["trailing"] = {"message_size": b"\x07\x08"}
    return wirekit.encode("kafka.message_set", value)


def unpacked(name: str, magic: int) -> bytes:
    """Whose content is cut within a message."""
    whole = message_set(*inner(3, magic))
    return message_set(wrapper(compress(name, whole[:-1]), name.upper(), magic=magic, offset=30))


def undecodable(intact: int, nested: bool = False) -> bytes:
    """A valid wrapper whose contents have some intact messages, then bytes that are none."""
    contents = message_set(*inner(intact, magic=0)) + b"\xff" * 50
    if nested:
        contents = message_set(wrapper(compress("gzip", contents), "GZIP", magic=0, offset=30))
    return message_set(wrapper(compress("gzip", contents), "GZIP", magic=0, offset=30))


LATER = message_set(message(b"later", offset=1000), message(b"and later", offset=1001, magic=1))
DAMAGE = {
    "whole": WHOLE,
    "odd texts": ODD_TEXTS,
    "compressed": COMPRESSED,
    "torn": WHOLE + WHOLE[:-1],
    "torn header": WHOLE + WHOLE[:7],
    "only torn": WHOLE[:20],
    "bad crc": WHOLE + bad_crc(WHOLE) + WHOLE,
    "bad crc of a wrapper": bad_crc(COMPRESSED),
    "zeros": WHOLE + bytes(5000),
    "few zeros": WHOLE + bytes(11),
    "zeros, then something": WHOLE + bytes(5000) + WHOLE,
    "only zeros": bytes(4096),
    "nothing": b"",
    "nonsense": WHOLE + b"\x55" * 50,
    "only nonsense": b"\x55" * 500,
    "nonsense inside": WHOLE + b"\x55" * 50 + LATER,
    "zeros inside": WHOLE + bytes(500) + LATER,
    "a size that leads nowhere": WHOLE + bytes(7) + b"\x07\x7f\xff\xff\xff" + LATER + WHOLE[:30],
    "size 3": WHOLE + (7).to_bytes(8, "big") + (3).to_bytes(4, "big") + bytes(range(20)),
    "magic 9": message_set(message(b"x")).replace(b"\0\0\xff\xff\xff\xff", b"\x09\0\xff\xff\xff\xff") + WHOLE,
    "damaged gzip": message_set(wrapper(b"\x1f\x8b no gzip", "GZIP", magic=1)) + WHOLE,
    "cut gzip": WHOLE + damaged("gzip", "GZIP", -8) + damaged("gzip", "GZIP", -30) + LATER,
    "cut gzip without a message": WHOLE + damaged("gzip", "GZIP", 60) + LATER,
    "cut lz4": damaged("kafka-lz4", "LZ4", -2) + WHOLE,
    "cut inside": unpacked("gzip", 1) + unpacked("gzip", 0) + WHOLE,
    "undecodable inside": undecodable(2) + WHOLE,
    "nothing decodable inside": undecodable(0) + WHOLE,
    "nothing decodable inside, nested": undecodable(0, nested=True) + WHOLE,
    "unknown codec": message_set({**message(b"v"), "message": {**message(b"v")["message"], "attributes": 7}}) + WHOLE,
    "gap": WHOLE + trailing(WHOLE) + WHOLE,
    "bytes lost": WHOLE[:-2] + LATER,
    "bytes lost before a torn message": WHOLE[:-2] + LATER[:-1],
    "bytes of the fields lost": WHOLE[:20] + WHOLE[21:] + LATER,
    "null wrapper": message_set(message(None, codec="GZIP", magic=1)) + WHOLE,
    "empty wrapper": message_set(message([], codec="SNAPPY", magic=1)) + WHOLE,
}


@pytest.mark.parametrize("piece", [None, 64, 300])
@pytest.mark.parametrize("name", DAMAGE)
def test_lines_are_the_same(
    name: str, piece: int | None, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / 'ü "t" \\-0'
    folder.mkdir()
    path = folder / "00000000000000000000.log"
    path.write_bytes(DAMAGE[name])
    if piece is not None:
        monkeypatch.setattr(segment_file, "PIECE", piece)
    assert run(path, "columns") == run(path, "rows")


@pytest.mark.parametrize("name", DAMAGE)
def test_the_size_of_a_piece_changes_no_problem(
    name: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No number of a message in them counts from the start of a piece."""
    path, by_size = tmp_path / "00000000000000000000.log", []
    path.write_bytes(WHOLE + DAMAGE[name] + WHOLE)
    for size in (300, 1000, 1 << 22):
        monkeypatch.setattr(segment_file, "PIECE", size)
        by_size += [run(path, engine) for engine in ("columns", "rows")]
    assert all(each == by_size[0] for each in by_size)


@pytest.mark.parametrize("engine", ["rows", "columns"])
def test_the_name_of_a_segment_shows_its_format_if_it_begins_with_damage(engine: str, run: Run, tmp_path: Path) -> None:
    """Another file must begin with a message whose checksum is right."""
    named, other = tmp_path / "00000000000000000000.log", tmp_path / "other.log"
    for path in (named, other):
        path.write_bytes(b"\x55" * 50 + LATER)
    status, lines, problems = run(named, engine)
    assert (status, lines.count(b"\n"), problems.count("50 bytes skipped")) == (1, 2, 1)
    assert (lines, "expected a pcap" in problems) == (run(named, "rows")[1], False)
    status, lines, problems = run(other, engine)
    assert (status, lines, "expected a pcap" in problems) == (1, b"", True)


@pytest.mark.parametrize("engine", ["rows", "columns"])
def test_problems_are_in_the_order_of_the_file(engine: str, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    contents = compress("gzip", trailing(WHOLE))
    inside = message_set(wrapper(contents, "GZIP", magic=1))
    path.write_bytes(inside + trailing(WHOLE) + b"\x55" * 50)
    places = re.findall(r" bytes? .*at (byte .*)", run(path, engine)[2])
    gap, end = len(inside) + 29, len(inside + trailing(WHOLE))
    value = len(inside) - len(contents)
    assert places == [f"byte {value} ({value:#x})", f"byte {gap}", f"byte {end} ({end:#x})"]


@pytest.mark.parametrize("path", SEGMENTS, ids=lambda path: "-".join(path.parts[-4:]))
def test_lines_of_captured_segments_are_the_same(path: Path, run: Run) -> None:
    rows = run(path, "rows")
    assert run(path, "columns") == rows
    assert rows[0] == 0


def test_segments_in_order_are_read_in_columns() -> None:
    for path in sorted(DISK.glob("*.log")):
        pieces = list(columns.pieces_of_file(str(path)))
        assert pieces
        assert all(piece.batch is not None for piece in pieces)
        assert [m for piece in pieces for m in piece.all_messages()] == [
            m for piece in segment_file.pieces_of_file(str(path)) for m in piece.messages
        ]


def test_a_damaged_piece_is_read_one_by_one_and_its_neighbours_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_file, "PIECE", len(WHOLE))
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(WHOLE + trailing(WHOLE) + WHOLE * 2)
    pieces = list(columns.pieces_of_file(str(path)))
    one_by_one = [piece for piece in pieces if piece.batch is None]
    assert [len(piece.gaps) for piece in one_by_one] == [1]
    assert pieces[0].batch is not None
    assert pieces[-1].batch is not None


@pytest.mark.parametrize("between", [b"\x55" * 7, bytes(12)], ids=["junk", "zeros"])
def test_columns_do_not_try_each_message_between_damage(
    between: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried, scanned = [], columns.scanned
    monkeypatch.setattr(columns, "scanned", lambda *arguments: tried.append(1) or scanned(*arguments))
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(b"".join(message_set(message(b"v", offset=number)) + between for number in range(100)))
    pieces = columns.pieces_of_file(str(path))
    assert [message.offset for piece in pieces for message in piece.all_messages()] == [*range(100)]
    assert len(tried) <= 2


MANY = [message(bytes(500), offset=n, magic=1) for n in range(1000)]
LARGE = [message(random.Random(1).randbytes(2000) + bytes(2 << 20), magic=1)]


@pytest.mark.parametrize("content", [MANY, LARGE], ids=["many", "large"])
def test_whole_messages_that_exceed_the_memory_together_are_read(
    content: list[dict[str, object]], tmp_path: Path
) -> None:
    """Fewer of them do not; the last one is torn."""
    path, count = tmp_path / "00000000000000000000.log", 70
    one = message_set(message(content, magic=1, codec="GZIP", offset=len(content) - 1))
    entries = [(number * len(content) + len(content) - 1).to_bytes(8, "big") + one[8:] for number in range(count + 1)]
    path.write_bytes(b"".join(entries)[:-7])
    assert columns.scan(columns.SEGMENT, path.read_bytes(), wrappers=True)[1].num_rows
    for pieces_of_file in (columns.pieces_of_file, segment_file.pieces_of_file):
        in_columns, one_by_one, errors = list[int](), list[int | None](), list[str]()
        for piece in pieces_of_file(str(path)):
            in_columns += piece.batch["offset"].to_pylist() if piece.batch is not None else []
            one_by_one += [each.offset for each in piece.messages]
            errors += [each.reason for each in piece.errors]
            assert (piece.damaged, piece.gaps) == ((), ())
        offsets = [*range(count * len(content))]
        expected = (offsets, []) if pieces_of_file is columns.pieces_of_file else ([], offsets)
        assert (in_columns, one_by_one) == expected
        assert errors == [f"expected a whole message or zeros, found {len(one) - 7} bytes of one"]


@pytest.mark.parametrize(
    "pieces_of_file", [columns.pieces_of_file, segment_file.pieces_of_file], ids=["columns", "objects"]
)
@pytest.mark.parametrize(("size", "torn"), [(0, 0), (2, 0), (2.5, 1), (4, 0)])
def test_a_segment_that_is_truncated_while_it_is_read_ends_there(
    pieces_of_file: Callable[[str], Iterator[Piece]],
    size: float,
    torn: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A broker truncates a segment at the end of a message, which may be behind what was read, or before it."""
    one = message_set(message(bytes(20_000), offset=7))  # is larger than the buffer of a file
    monkeypatch.setattr(segment_file, "PIECE", 2 * len(one))
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(9 * one)
    pieces = pieces_of_file(str(path))
    assert next(pieces).length == 2 * len(one)
    os.truncate(path, int(size * len(one)))
    others = list(islice(pieces, 9))
    assert sum(len(list(piece.all_messages())) for piece in others) == max(int(size) - 2, 0)
    assert sum(len(piece.errors) for piece in others) == torn
    assert len(others) < 9


def test_large_segments_are_read_in_columns(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wirekit.cli import messages

    assert messages._engine(messages._size((str(tmp_path),)), at_once=True) == "rows"
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(bytes(messages.MUCH))
    much = messages._size((str(path),))
    assert messages._engine(much, at_once=True) == "columns"
    assert messages._engine(much, at_once=False) == "rows"
    monkeypatch.setattr(messages, "have_columns", lambda: False)
    assert messages._engine(much, at_once=True) == "rows"


@pytest.mark.parametrize("engine", ["rows", "columns"])
@pytest.mark.parametrize("later", [b"", LATER], ids=["last", "before others"])
def test_an_error_in_decompressed_data_has_the_place_of_its_set(
    later: bytes, engine: str, run: Run, tmp_path: Path
) -> None:
    """The set is nested deeper than the limit."""
    nested = message_set(message(b"v"))
    for _ in range(9):
        nested = message_set(wrapper(compress("gzip", nested), "GZIP", magic=0))
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(WHOLE + nested + later)
    problems = run(path, engine)[2]
    assert f"{len(nested)} bytes skipped from byte {len(WHOLE)} on: kafka.log_segment: " in problems
