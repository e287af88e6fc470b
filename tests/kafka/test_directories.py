"""Segments and indexes of a partition: real disks are in order, and each kind of damage is found where it is."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import time
import zlib
from collections.abc import Callable
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wirekit
from tests.kafka.golden import DISK, message, message_set
from wirekit.cli import main

pytest.importorskip("numba")
pytest.importorskip("pyarrow")

from wirekit.protocols.kafka import columns, segment_file
from wirekit.protocols.kafka.data_directory import check
from wirekit.protocols.kafka.partition import _Partition
from wirekit.protocols.kafka.searching import Search

REAL = Path(__file__).parents[2] / "../shared/captures/kafka"
BASE = "0" * 20
KEYS = {"index": "kafka.offset_index", "timeindex": "kafka.time_index"}


def copied(folder: Path, release: str, name: str) -> Path:
    """A partition's directory with a segment of a real broker."""
    target = folder / name
    target.mkdir(parents=True)
    for source in DISK.glob(f"{release}-{name}.*"):
        if source.suffix != ".txt":
            shutil.copy(source, target / f"{BASE}{source.suffix}")
    return target


def problems(folder: Path) -> list[tuple[str, int | None, int | None, str]]:
    report = check(folder)
    assert report is not None
    reported = [*report.problems, *(problem for part in report.parts for problem in part.problems)]
    return [(Path(each.file).name, each.entry, each.offset, each.text) for each in reported]


@pytest.mark.parametrize("piece", [None, 100, 700])
@pytest.mark.parametrize("log", sorted(DISK.glob("*.log")), ids=lambda path: path.name)
def test_fixtures_are_in_order(log: Path, piece: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if piece is not None:
        monkeypatch.setattr(segment_file, "PIECE", piece)
    release, _, name = log.stem.partition("-")
    folder = copied(tmp_path, release, name)
    reported = problems(folder)
    if not log.with_suffix(".index").exists():  # fixtures leave out empty ones
        assert reported == [(f"{BASE}.index", None, None, "the index does not exist")]
    else:
        assert reported == []


@pytest.mark.parametrize("disk", sorted(REAL.glob("*/*/")), ids=lambda path: "-".join(path.parts[-2:]))
def test_real_disks_are_in_order(disk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["inspect", str(disk), "--output", "json"])
    report = json.loads(capsys.readouterr().out)[str(disk)]
    assert report["problems"] == []
    assert [part["problems"] for part in report["parts"].values()] == [[]] * report["partitions"]
    assert stopped.value.code == 0


@pytest.mark.parametrize(("base", "files"), [("09223372034707292160", 1), ("09223372034707292161", 0), ("9" * 20, 0)])
def test_a_base_offset_that_no_offset_can_be(base: str, files: int, tmp_path: Path) -> None:
    """The file is no segment."""
    folder = copied(tmp_path, "0.10.2.2", "t-gzip-0")
    for path in folder.iterdir():
        path.rename(folder / f"{base}{path.suffix}")
    report = check(folder)
    assert report is not None
    assert (len(report.facts["segments"]), report.facts["other_files"]) == (files, [f"{base}.log"] * (1 - files))
    unknown = [each for each in problems(folder) if each[3] == "the segment of this index does not exist"]
    assert len(unknown) == 2 * (1 - files)


def test_the_entries_of_an_index_are_not_examined_again_after_each_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The walk with an index of 800 kB, whose entries are beyond the log, takes no second more than without entries."""
    monkeypatch.setattr(_Partition, "_report_unreached", lambda *arguments: None)
    folder, seconds = tmp_path / "t-0", []
    folder.mkdir()
    (folder / f"{BASE}.log").write_bytes(
        b"".join(message_set(message(b"v", offset=n)) + b"\x55" * 7 for n in range(400))
    )
    (folder / f"{BASE}.timeindex").write_bytes(b"")
    for count in (0, 0, 100_000):
        entries = np.arange(1 << 20, (1 << 20) + count, dtype=">i4")
        (folder / f"{BASE}.index").write_bytes(np.stack([entries, entries], axis=1).tobytes())
        begin = time.process_time()
        assert problems(folder)
        seconds.append(time.process_time() - begin)
    assert seconds[2] < seconds[1] + 1


def changed(path: Path, change: Callable[[Any], None], key: str = "kafka.log_segment") -> None:
    """A file whose value was changed, lengths and checksums made to fit."""
    value = wirekit.decode(path.read_bytes(), key).value
    change(value)
    path.write_bytes(wirekit.encode(key, value))


def entry(kind: str, number: int, **fields: int) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        def set_fields(value: Any) -> None:
            for name, each in fields.items():
                setattr(value.entries[number], name, each)

        changed(folder / f"{BASE}.{kind}", set_fields, KEYS[kind])

    return change


def with_offset(number: int, offset: int) -> Callable[[Path], None]:
    return lambda folder: changed(folder / f"{BASE}.log", lambda v: setattr(v.messages[number], "offset", offset))


def broken_crc(folder: Path) -> None:
    def change(value: Any) -> None:
        value.messages[5].message.crc ^= 1
        value.messages[5].message.keep("crc")

    changed(folder / f"{BASE}.log", change)


def appended(name: str, data: bytes) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        with open(folder / f"{BASE}.{name}", "ab") as file:
            file.write(data)

    return change


def cut(size: int) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / f"{BASE}.log"
        path.write_bytes(path.read_bytes()[:size])

    return change


def renamed(base: int) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        for path in list(folder.iterdir()):
            path.rename(folder / f"{base:020}{path.suffix}")

    return change


ONE = message_set(message(b"one more", offset=81, magic=1))
DAMAGE: dict[str, tuple[Callable[[Path], None], list[tuple[str, int | None, int | None, str]]]] = {
    "entry between messages": (
        entry("index", 1, position=4300),
        [("index", 1, 8, "relative offset 51, position 4300: no message begins there, one does at 4249")],
    ),
    "entry of another message": (
        entry("index", 1, relative_offset=60),
        [
            (
                "index",
                1,
                8,
                "relative offset 60, position 4764: the message there has offset 51, and the one before it 50",
            )
        ],
    ),
    "entries that fall": (
        entry("index", 2, relative_offset=7),
        [("index", 2, 16, "does not ascend"), ("index", 2, 16, "the message there has offset")],
    ),
    "entry beyond the log": (
        entry("index", 2, position=10_000_000),
        [("index", 2, 16, "position 10000000 is beyond the log's last message, which ends at byte 6698")],
    ),
    "time that no message has": (
        entry("timeindex", 1, timestamp=5),
        [
            ("timeindex", 1, 12, "does not ascend"),
            ("timeindex", 1, 12, "timestamp 5: the latest timestamp up to this offset is"),
        ],
    ),
    "time before the log": (
        entry("timeindex", 0, relative_offset=-1),
        [("timeindex", 0, 0, "is before the base offset")],
    ),
    "first entry before the log": (
        entry("index", 0, relative_offset=-1, position=0),
        [("index", 0, 0, "relative offset -1, position 0 is before the base offset")],
    ),
    "time beyond the log": (
        entry("timeindex", 2, relative_offset=999),
        [("timeindex", 2, 24, "is beyond the log's last offset 80")],
    ),
    "index with half an entry": (
        appended("index", b"\1\2\3"),
        [("index", None, 24, "3 bytes after the last entry, neither entries nor zeros")],
    ),
    "wrong checksum": (broken_crc, [("log", None, None, "the checksum of offset 5 is wrong")]),
    "torn": (
        cut(6690),
        [
            ("log", None, None, "the last message is torn"),
        ],
    ),
    "log shorter than its indexes": (
        cut(4167),
        [
            ("index", 1, 8, "beyond the log's last message, which ends at byte 4167"),
            ("index", 2, 16, "beyond"),
            ("timeindex", None, None, "beyond the log's last offset"),
        ],
    ),
    "offset that falls": (
        with_offset(3, 1),
        [("log", None, None, "offset 1 does not ascend: the offset before it is 2")],
    ),
    "file named after another offset": (
        renamed(50),
        [("log", None, 0, "offset 0 is before the base offset in the file's name, 50"), ("index", 0, 0, "")],
    ),
    "something behind zeros": (
        appended("log", bytes(3000) + b"\7"),
        [("log", None, 9698, "data after the zeros at the end")],
    ),
    "nonsense": (appended("log", b"\x55" * 40), [("log", None, None, "")]),
    "no index": (
        lambda folder: (folder / f"{BASE}.index").unlink(),
        [("index", None, None, "the index does not exist")],
    ),
    "no log": (
        lambda folder: shutil.copy(folder / f"{BASE}.index", folder / f"{90:020}.index") and None,
        [("index", None, None, "the segment of this index does not exist")],
    ),
    "overlap": (
        lambda folder: (folder / f"{70:020}.log").write_bytes(ONE) and None,
        [("log", None, None, f"begins at offset 70, but {BASE}.log has offsets up to 80")],
    ),
    "hole": (
        lambda folder: (folder / f"{85:020}.log").write_bytes(b"") and None,
        [("log", None, None, "ends at offset 80: 4 are missing")],
    ),
}


@pytest.mark.parametrize("piece", [None, 500])
@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_reported_with_its_place(
    name: str, piece: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if piece is not None:
        monkeypatch.setattr(segment_file, "PIECE", piece)
    folder = copied(tmp_path, "0.10.2.2", "t-none-0")
    damage, expected = DAMAGE[name]
    damage(folder)
    reported = problems(folder)
    for kind, number, offset, text in expected:
        assert [
            each
            for each in reported
            if each[0].endswith(f".{kind}")
            and number in (None, each[1])
            and offset in (None, each[2])
            and text in each[3]
        ], reported
    assert check(folder).clean is False  # type: ignore[union-attr]


def test_offsets_too_far_from_the_base_are_reported_once(tmp_path: Path) -> None:
    folder = copied(tmp_path, "0.10.2.2", "t-none-0")
    for number in (78, 79, 80):
        with_offset(number, 2**33 + number)(folder)
    assert [text for *_, text in problems(folder) if "too far from the base" in text] == [
        f"offset {2**33 + 78} is too far from the base offset"
    ]


@pytest.mark.parametrize("piece", [None, 500])
@pytest.mark.parametrize(
    "junk", [b"\x55" * 60, bytes(90), bytes(60), b"\x7f" + bytes(11), bytes(8) + b"\x7f\xff\xff\xff"], ids=bytes.hex
)
def test_a_segment_is_read_on_behind_damage(
    junk: bytes, piece: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if piece is not None:
        monkeypatch.setattr(segment_file, "PIECE", piece)
    folder = copied(tmp_path, "0.10.2.2", "t-none-0")
    path = folder / f"{BASE}.log"
    data = bytearray(path.read_bytes())
    entries = wirekit.decode(bytes(data), "kafka.log_segment").value.messages
    place = sum(len(wirekit.encode("kafka.log_entry", each)) for each in entries[:60])
    following = sum(len(wirekit.encode("kafka.log_entry", each)) for each in entries[:62])
    assert following - place > len(junk)
    data[place : place + len(junk)] = junk
    path.write_bytes(data)
    reported = problems(folder)
    assert all(name.endswith(".log") and place <= (offset or 0) < following for name, _, offset, _ in reported), (
        reported
    )
    assert [
        offset for *_, offset, text in reported if "bytes that are not messages, with messages after them" in text
    ] == [place]
    report = check(folder)
    assert report is not None
    (segment,) = report.facts["segments"]
    assert segment["last_offset"] == 80
    assert len(entries) - 3 < segment["messages"] < len(entries)


def flipped(data: bytes, place: int, bit: int) -> bytes:
    return data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :]


@cache
def starts_of(segment: bytes) -> list[int]:
    """Where the messages of a segment begin, and where the last one ends."""
    entries = wirekit.decode(segment, "kafka.log_segment").value.messages
    return list(accumulate((len(wirekit.encode("kafka.log_entry", each)) for each in entries), initial=0))


@pytest.mark.parametrize("bit", [0x40, 0x01])
@pytest.mark.parametrize("at", [12, 18, -1], ids=["crc", "timestamp", "value"])
@pytest.mark.parametrize("piece", [None, 500])
@pytest.mark.parametrize("name", ["t-none-0", "t-gzip-0", "t-snappy-0"])
def test_a_wrong_checksum_is_blamed_on_its_message_alone(
    name: str, piece: int | None, at: int, bit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose timestamp is not known: entries of the time index that may be of it are not compared."""
    if piece is not None:
        monkeypatch.setattr(segment_file, "PIECE", piece)
    folder = copied(tmp_path, "0.10.2.2", name)
    path = folder / f"{BASE}.log"
    whole = path.read_bytes()
    for start, end in pairwise(starts_of(whole)):
        path.write_bytes(flipped(whole, start + at if at > 0 else end + at, bit))
        reported = problems(folder)
        assert reported
        assert all(each[0] == path.name and start <= (each[2] or 0) <= end for each in reported), reported


@pytest.mark.parametrize("piece", [None, 500])
def test_a_size_that_is_too_large_is_blamed_on_its_message_alone(
    piece: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if piece is not None:
        monkeypatch.setattr(segment_file, "PIECE", piece)
    folder = copied(tmp_path, "0.10.2.2", "t-gzip-0")
    path = folder / f"{BASE}.log"
    whole = path.read_bytes()
    entries, starts = wirekit.decode(whole, "kafka.log_segment").value.messages, starts_of(whole)
    for number, start in enumerate(starts[:-2]):
        for more in (1, 300, starts[-1] - starts[number + 1]):
            size = (entries[number].message_size + more).to_bytes(4, "big")
            path.write_bytes(whole[: start + 8] + size + whole[start + 12 :])
            report = check(folder)
            assert report is not None
            blamed = {(Path(each.file).name, each.offset, "message_size: " in each.text) for each in report.problems}
            assert blamed == {(path.name, start, False), (path.name, start + 8, True)}
            assert report.facts["segments"][0]["messages"] == 74


MANY = [message_set(message(b"v" * 40, offset=n, magic=1)) for n in range(60)]
"""The messages of a segment, one by one."""


def written(folder: Path, parts: dict[int, bytes]) -> Path:
    """A partition's directory with the segment of ``MANY``, in which some messages are others."""
    target = folder / "t-0"
    target.mkdir()
    (target / f"{BASE}.log").write_bytes(b"".join(parts.get(n, each) for n, each in enumerate(MANY)))
    (target / f"{BASE}.index").write_bytes(b"")
    return target


def resized(data: bytes, size: int) -> bytes:
    """An entry with another ``message_size``."""
    return data[:8] + size.to_bytes(4, "big") + data[12:]


@pytest.mark.parametrize("lost", [1, 2, 8, 30])
def test_bytes_that_are_lost_hide_no_other_message(lost: int, tmp_path: Path) -> None:
    """The size of the message that lacks them leads into the next one, which is found inside the first."""
    folder = written(tmp_path, {})
    path, whole = folder / f"{BASE}.log", b"".join(MANY)
    size, start = len(MANY[5]), len(b"".join(MANY[:5]))
    for place in range(size - lost):
        path.write_bytes(whole[: start + place] + whole[start + place + lost :])
        messages = [each for piece in segment_file.pieces_of_file(str(path)) for each in piece.all_messages()]
        assert {each.offset for each in messages if each.check == "ok"} == {*range(60)} - {5}, place
        report = check(folder)
        assert report is not None
        assert report.facts["segments"][0]["messages"] == len(messages)
        assert all(start <= (each.offset or start) <= start + size for each in report.problems), report.problems


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("after", [flipped(MANY[6], 40, 1), b"\xff" + MANY[6][1:]], ids=["checksum", "offset"])
def test_messages_after_an_undecodable_one_count_if_messages_prints_them(
    after: bytes, wrapped: bool, tmp_path: Path
) -> None:
    """In a segment, only a message with a good checksum and offset shows where reading goes on."""
    data = b"".join([*MANY[:5], flipped(MANY[5], 16, 8), after, *MANY[7:]])
    if wrapped:
        wrapper = message([message(b"")], offset=59, codec="GZIP", magic=1)
        wrapper["message"]["value"] = gzip.compress(data)
        data = message_set(wrapper)
    folder = tmp_path / "t-0"
    folder.mkdir()
    (folder / f"{BASE}.log").write_bytes(data)
    messages = [
        each for piece in segment_file.pieces_of_file(str(folder / f"{BASE}.log")) for each in piece.all_messages()
    ]
    report = check(folder)
    assert report is not None
    assert report.facts["segments"][0]["messages"] == len(messages) == (5 if wrapped else 58)
    assert not any("checksum of offset 6 " in each.text for each in report.problems)


LARGE = message_set(message(b"v" * 300, offset=57, magic=1))
LACKING = LARGE[:40] + LARGE[40 + len(MANY[0]) + 8 :]
"""Lost bytes, so that it ends after the next message, according to its size."""
SEVERAL = {
    "an incomplete message": {57: LACKING, 59: MANY[59][:17]},
    "zeros": {57: LACKING, 59: bytes(100)},
    "a good message": {57: LARGE[:40] + LARGE[40 + len(MANY[0]) :]},
    "a wrong offset": {56: bytes(6) + b"\1" + MANY[56][7:-1] + b"?", 57: LARGE[:-8]},
    "a wrong offset and a good checksum": {56: bytes(4) + b"\1" + MANY[56][5:], 57: b"?" * 50},
}


@pytest.mark.parametrize("name", SEVERAL)
def test_several_damages_hide_no_other_message(name: str, tmp_path: Path) -> None:
    folder = written(tmp_path, SEVERAL[name])
    path = str(folder / f"{BASE}.log")
    messages = [each for piece in segment_file.pieces_of_file(path) for each in piece.all_messages()]
    assert {each.value for each in messages if each.check == "ok"} == {b"v" * 40}
    good = {each.offset for each in messages if each.check == "ok"}
    assert good.issuperset({*range(60)} - SEVERAL[name].keys()), name
    assert [len(piece.batch or list(piece.messages)) for piece in columns.pieces_of_file(path)] == [
        len(list(piece.messages)) for piece in segment_file.pieces_of_file(path)
    ]
    report = check(folder)
    assert report is not None
    assert report.facts["segments"][0]["messages"] == len(messages)


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_a_checksum_covers_the_bytes_after_the_fields(whole: bool, wrapped: bool, tmp_path: Path) -> None:
    """As brokers verify it: over all bytes of the size (``Record.computeChecksum``). ``messages`` says the same."""
    fields = MANY[1][16:]
    crc = zlib.crc32(fields + b"\1\2\3" if whole else fields)
    larger = resized(MANY[1], len(MANY[1]) + 3 - 12)[:12] + crc.to_bytes(4, "big") + fields + b"\1\2\3"
    data = MANY[0] + larger + MANY[2]
    if wrapped:
        wrapper = message([message(b"")], offset=3, codec="GZIP", magic=1)
        wrapper["message"]["value"] = gzip.compress(data)
        data = message_set(wrapper)
    folder = tmp_path / "t-0"
    folder.mkdir()
    (folder / f"{BASE}.log").write_bytes(data)
    [piece] = segment_file.pieces_of_file(str(folder / f"{BASE}.log"))
    assert [each.check for each in piece.messages] == ["ok", "ok" if whole else "bad", "ok"]
    wrong = [text for *_, text in problems(folder) if "checksum" in text]
    offset, where = (2, ", in compressed data") if wrapped else (1, "")
    assert wrong == ([] if whole else [f"the checksum of offset {offset} is wrong{where}"])


@pytest.mark.parametrize("piece", [None, 500])
@pytest.mark.parametrize("size", [100, 1_000, 3_000, 4 * len(MANY[0]) - 12])
def test_an_undecodable_message_with_a_wrong_size_hides_no_messages(
    size: int, piece: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the size leads to the beginning of a later message."""
    if piece is not None:
        monkeypatch.setattr(segment_file, "PIECE", piece)
    bad = flipped(resized(MANY[5], size), 16, 8)
    folder = written(tmp_path, {5: bad})
    assert problems(folder) == [
        (f"{BASE}.log", None, 5 * len(bad) + 16, "message.magic: expected magic: V0 (0), V1 (1), found 9"),
        (f"{BASE}.log", None, 5 * len(bad), f"{len(bad)} bytes that are not messages, with messages after them"),
    ]
    report = check(folder)
    assert report is not None
    (segment,) = report.facts["segments"]
    assert (segment["messages"], segment["last_offset"]) == (59, 59)
    with open(folder / f"{BASE}.log", "rb") as file:
        pieces = list(segment_file.pieces_of_file(file.name))
    assert sum(1 for each in pieces for _ in each.messages) == 59


def test_messages_in_the_value_of_an_undecodable_message_are_not_read(tmp_path: Path) -> None:
    bad = flipped(message_set(message(MANY[20] + MANY[21], offset=5, magic=1)), 16, 8)
    folder = written(tmp_path, {5: bad})
    assert [text for *_, text in problems(folder)] == ["message.magic: expected magic: V0 (0), V1 (1), found 9"]
    pieces = list(segment_file.pieces_of_file(str(folder / f"{BASE}.log")))
    assert sum(1 for each in pieces for _ in each.messages) == 59
    assert [part.length for each in pieces for part in each.damaged] == [len(bad)]


@pytest.mark.parametrize("piece", [None, 500])
def test_a_wrong_size_behind_an_undecodable_message_hides_no_messages(
    piece: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if piece is not None:
        monkeypatch.setattr(segment_file, "PIECE", piece)
    each = len(MANY[0])
    folder = written(tmp_path, {2: flipped(MANY[2], 16, 8), 9: resized(MANY[9], 900)})
    assert sorted((place or 0, text) for _, _, place, text in problems(folder)) == [
        (2 * each + 16, "message.magic: expected magic: V0 (0), V1 (1), found 9"),
        (9 * each, "bytes that no field explains in offset 9"),
        (9 * each + 8, f"messages[].message_size: expected {each - 12} bytes, found 900"),
    ]
    report = check(folder)
    assert report is not None
    assert report.facts["segments"][0]["messages"] == 59


def test_a_damaged_offset_of_a_message_with_a_wrong_size_hides_no_messages(tmp_path: Path) -> None:
    """The wrong checksum covers no offset: the one of the damaged message does not tell which may follow."""
    bad = flipped(flipped(resized(MANY[5], 900), 0, 0x40), 40, 1)
    folder = written(tmp_path, {5: bad})
    report = check(folder)
    assert report is not None
    assert report.facts["segments"][0]["messages"] == 60
    pieces = segment_file.pieces_of_file(str(folder / f"{BASE}.log"))
    assert sum(1 for each in pieces for _ in each.messages) == 60


@pytest.mark.parametrize("piece", [None, 500])
def test_a_damaged_offset_before_damage_hides_no_messages(
    piece: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message after it is no message, and neither the commands nor the tables stop there."""
    if piece is not None:
        monkeypatch.setattr(segment_file, "PIECE", piece)
    folder = written(tmp_path, {5: flipped(flipped(MANY[5], 0, 0x40), 40, 1), 6: b"\x55" * len(MANY[6])})
    report = check(folder)
    assert report is not None
    assert report.facts["segments"][0]["messages"] == 59
    for read in (segment_file.pieces_of_file, columns.pieces_of_file):
        pieces = list(read(str(folder / f"{BASE}.log")))
        assert sum(1 for each in pieces for _ in each.all_messages()) == 59
        assert not any(each.errors for each in pieces)


def test_messages_in_a_last_set_that_does_not_decompress_are_not_read(tmp_path: Path) -> None:
    """gzip has stored them as they are, so that they can be recognised. Its magic is wrong."""
    stored = zlib.compressobj(0, wbits=31)
    contents = stored.compress(MANY[20] + message_set(message(b"stored", offset=59))) + stored.flush()
    last = message(b"", offset=59, codec="GZIP")
    last["message"]["value"] = {"compressed": flipped(contents, 0, 1).hex()}
    folder = written(tmp_path, {59: message_set(last)})
    (problem,) = problems(folder)
    assert problem[3].startswith("message.value: gzip: expected valid gzip data")
    report = check(folder)
    assert report is not None
    assert report.facts["segments"][0]["messages"] == 60
    (piece,) = segment_file.pieces_of_file(str(folder / f"{BASE}.log"))
    assert sum(1 for _ in piece.messages) == 60


def test_sizes_beyond_the_end_of_the_file_do_not_make_the_walk_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The windows after damage are small, and do not grow for a message that the file cannot hold."""
    torn = resized(MANY[0], (1 << 31) - 1)
    folder = tmp_path / "t-0"
    folder.mkdir()
    path = folder / f"{BASE}.log"
    many = 300
    path.write_bytes(b"".join(message_set(message(bytes(2000), offset=n)) + torn for n in range(many)))
    (folder / f"{BASE}.index").write_bytes(b"")
    read, window = [], segment_file.SegmentFile.window

    def counted(self: segment_file.SegmentFile) -> memoryview:
        read.append(len(data := window(self)))
        return data

    monkeypatch.setattr(segment_file.SegmentFile, "window", counted)
    report = check(folder)
    assert report is not None
    assert report.facts["segments"][0]["messages"] == many
    by_directory = sum(read)
    assert sum(1 for each in segment_file.pieces_of_file(str(path)) for _ in each.messages) == many
    assert by_directory < 5 * path.stat().st_size
    assert sum(read) - by_directory < 5 * path.stat().st_size


@pytest.mark.parametrize("cut", [1, 20])
def test_compressed_data_that_ends_in_a_part_of_a_message_is_reported(cut: int, tmp_path: Path) -> None:
    one = len(message_set(message(b"v", magic=1)))
    inner = message_set(*(message(b"v", offset=n, magic=1) for n in range(5)))[:-cut]
    wrapper = message(gzip.compress(inner), offset=5, magic=1, codec="GZIP")
    folder = written(tmp_path, {5: message_set(wrapper)})
    text = f"{one - cut} bytes after the last whole message in the compressed data"
    assert problems(folder) == [(f"{BASE}.log", None, 5 * len(MANY[0]), text)]


@pytest.mark.parametrize("before", [b"", b"\x55" * 7])
def test_a_search_passes_over_zeros_quickly(before: bytes) -> None:
    """A pattern takes 100 ns per byte, the search for the next written byte less than 1 ns."""
    junk = before + bytes(32 << 20)
    search = Search("", io.BytesIO(junk + message_set(message(b"v", offset=1))))
    begin = time.process_time()
    assert search.after(0) == len(junk)
    assert time.process_time() - begin < 1


def test_a_search_uses_up_its_allowance_by_the_bytes_that_it_inspects() -> None:
    data = message_set(message(b"v", offset=1)) + bytes(100_000)
    search = Search("", io.BytesIO(data), allowance=0)
    assert [search.within(0, len(data)) for _ in range(20)] == [0] * 20
    assert [search.within(1, len(data)) for _ in range(5)] == [None] * 5
    assert search.within(0, len(data)) is None


def test_an_entry_before_a_good_message_that_is_later_is_wrong_behind_a_wrong_checksum_too(tmp_path: Path) -> None:
    folder = copied(tmp_path, "0.10.2.2", "t-none-0")
    broken_crc(folder)
    entry("timeindex", 1, timestamp=5)(folder)
    assert any("timestamp 5: the latest timestamp up to this offset is" in text for *_, text in problems(folder))


def test_zeros_of_preallocation_are_no_damage(tmp_path: Path) -> None:
    folder = copied(tmp_path, "0.10.2.2", "t-none-0")
    for name in ("log", "index", "timeindex"):
        appended(name, bytes(1200))(folder)
    report = check(folder)
    assert report is not None
    assert report.clean
    (segment,) = report.facts["segments"]
    assert (segment["zeros"], segment["index_entries"], segment["timeindex_entries"]) == (1200, 3, 3)


@pytest.mark.parametrize("name", ["index", "timeindex"])
def test_entries_that_a_truncation_left_are_stale(name: str, tmp_path: Path) -> None:
    """As a broker of 0.10.2.2 left them when it became a follower: new entries overwrote only the first of them."""
    folder = copied(tmp_path, "0.10.2.2", "t-none-0")
    entries = (folder / f"{BASE}.{name}").read_bytes()
    appended(name, entries[len(entries) // 3 :])(folder)
    assert any("does not ascend" in text for *_, text in problems(folder))
    appended(name, bytes(1200))(folder)
    report = check(folder)
    assert report is not None
    assert report.problems == []
    assert report.facts["stale_entries"] == {f"{BASE}.{name}": 2}
    assert report.facts["segments"][0][f"{name}_entries"] == 3


@pytest.mark.parametrize(
    ("name", "fields"),
    [("index", {"position": 1 << 30}), ("index", {"relative_offset": 1 << 30, "position": 1 << 30}),
     ("timeindex", {"relative_offset": 1 << 30, "timestamp": 1 << 60})],
)  # fmt: skip
def test_an_entry_of_an_open_index_beyond_the_log_is_damaged_if_the_others_are_in_order(
    name: str, fields: dict[str, int], tmp_path: Path
) -> None:
    folder = copied(tmp_path, "0.10.2.2", "t-none-0")
    entry(name, 1, **fields)(folder)
    appended(name, bytes(1200))(folder)
    ((file, number, _, text),) = problems(folder)
    assert (file, number) == (f"{BASE}.{name}", 1)
    assert "beyond the log's last" in text


@pytest.mark.parametrize("size", [0, 4167])
def test_entries_of_an_open_index_beyond_the_log_are_stale(size: int, tmp_path: Path) -> None:
    """The log was truncated, and nothing was appended since."""
    folder = copied(tmp_path, "0.10.2.2", "t-none-0")
    cut(size)(folder)
    for name in ("index", "timeindex"):
        appended(name, bytes(1200))(folder)
    report = check(folder)
    assert report is not None
    assert report.problems == []
    left = 1 if size else 0
    assert report.facts["stale_entries"] == {f"{BASE}.{name}": 3 - left for name in ("index", "timeindex")}
    (segment,) = report.facts["segments"]
    assert (segment["index_entries"], segment["timeindex_entries"]) == (left, left)


def test_a_follower_indexes_the_last_offset_of_a_set_and_a_leader_the_first(tmp_path: Path) -> None:
    entries = [message([message(b"x", offset=n, magic=1) for n in range(3)], offset=2, magic=1, codec="GZIP")]
    entries.append(message([message(b"x", offset=n, magic=1) for n in range(3)], offset=5, magic=1, codec="GZIP"))
    data = message_set(*entries)
    second = len(message_set(entries[0]))
    for relative, clean in ((3, True), (5, True), (2, False), (6, False)):
        folder = tmp_path / f"t-{relative}"
        folder.mkdir()
        (folder / f"{BASE}.log").write_bytes(data)
        index = {"entries": [{"relative_offset": relative, "position": second}]}
        (folder / f"{BASE}.index").write_bytes(wirekit.encode("kafka.offset_index", index))
        assert (problems(folder) == []) is clean


def test_holes_of_compaction_are_no_damage(tmp_path: Path) -> None:
    folder = tmp_path / "t-0"
    folder.mkdir()
    (folder / f"{BASE}.log").write_bytes(message_set(message(b"a", offset=3), message(b"b", offset=9)))
    (folder / f"{40:020}.log").write_bytes(message_set(message(b"c", offset=40)))
    for base in (0, 40):
        (folder / f"{base:020}.index").write_bytes(b"")
    assert problems(folder) == []
