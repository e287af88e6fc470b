"""Packets in files for other tasks: each flow is in one share, and windows are in the order of time."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from wirekit.pipeline.crossing import Crossing, flows_of
from wirekit.pipeline.folders import folder
from wirekit.pipeline.inputs import Input
from wirekit.pipeline.shuffle import HEADER, LocalRows, Share, ShuffleFile, local_windows, shares, windows, write_files
from wirekit.tables.columns import PACKETS

PLACES = 3


def packet(flow: int, time: int, position: int, number: int, payload: bytes, note: str | None = None) -> dict[str, Any]:
    return {"flow": flow, "ts_us": time, "file_no": number, "position": position, "payload": payload, "note": note}


def capture(number: int, first: int, random: Random) -> tuple[Input, list[dict[str, Any]]]:
    """A file of a capture: packets that are late by up to 40 µs, flows of different lengths, and a note at the end."""
    flows = [random.getrandbits(64) - (1 << 63) for _ in range(9)]
    rows = [
        packet(
            random.choice(flows[: 1 + place % 9]), place * 10 - random.choice((0, 0, 0, 40)), place, number, b"x" * 30
        )
        for place in range(200)
    ]
    rows.append(packet(random.choice(flows), 0, 0, number, b"", "{}"))
    return Input(number, f"{number}.pcap", "", 0, 0, first=first), rows


def written(captures: list[tuple[Input, list[dict[str, Any]]]], folder: Path, size: int) -> list[ShuffleFile]:
    files: list[ShuffleFile] = []
    for file, rows in captures:
        batches = pa.Table.from_pylist(rows, PACKETS.schema).to_batches(max_chunksize=5)
        files += write_files(file, batches, folder, f"packets-{file.number}", PLACES, size)
    return files


def key(row: dict[str, Any]) -> tuple[int, int, bool]:
    return row["file_no"], row["position"], row["note"] is None


@pytest.mark.parametrize("size", [1000, 4000, 1 << 20])
@pytest.mark.parametrize("most", [None, 2000])
def test_each_row_is_in_one_window(size: int, most: int | None, tmp_path: Path) -> None:
    """Of three files, the first two are one capture and lie at the same time."""
    captures = [capture(number, first, Random(number)) for number, first in enumerate((0, 0, 2))]
    files = written(captures, tmp_path, size)
    rows_of_all: list[dict[str, Any]] = []
    of_flow: dict[int, Share] = {}
    most_windows = 0
    for share in shares(files, PLACES, most):
        latest: dict[int, int] = {}
        ended: set[int] = set()
        of_share = 0
        for window in windows(reversed(files), share, tmp_path, PLACES, size):
            rows = window.rows.to_pylist()
            assert window.capture not in ended
            ended |= {window.capture} if window.last else set()
            times = [row["ts_us"] for row in rows if row["note"] is None]
            assert min(times, default=window.clock) >= latest.get(window.capture, -100)
            assert max(times, default=window.clock) <= window.clock
            latest[window.capture] = window.clock
            assert all(of_flow.setdefault(row["flow"], share) == share for row in rows)
            rows_of_all += rows
            of_share += 1
        assert ended == {0, 2}
        most_windows = max(most_windows, of_share)
    everything = [row for _, rows in captures for row in rows]
    assert sorted(map(key, rows_of_all)) == sorted(map(key, everything))
    assert any(share.flow is not None for share in of_flow.values()) == (most is not None and size < 1 << 20)
    assert size > 1000 or most_windows > 2


def test_long_flows_come_first_and_those_of_one_place_are_followed_together(tmp_path: Path) -> None:
    sizes = {5: 3, 6: 40, 7: 20, 8: 2, 9: 1}
    rows = [packet(flow, 0, 0, 0, b"x" * 100) for flow, count in sizes.items() for _ in range(count)]
    files = written([(Input(0, "", "", 0, 0), rows)], tmp_path, 1)
    own = 100 + HEADER
    assert shares(files, PLACES, 20 * own) == [
        Share(0, 6),
        Share(1, 7),
        Share(0, None, (6,)),
        Share(2),
    ]
    assert shares(files, PLACES, None) == [Share(0), Share(1), Share(2)]


def test_places_without_packets_have_no_share(tmp_path: Path) -> None:
    rows = [packet(flow, 0, 0, 0, b"x" * 100) for flow in (2, 2, 5, 7)]
    file = Input(0, "", "", 0, 0)
    shared = written([(file, rows)], tmp_path / "shared", 1 << 20)
    own = written([(file, rows)], tmp_path / "own", 1)
    assert shares(shared, PLACES, None) == shares(own, PLACES, None) == [Share(1), Share(2)]
    assert shares(own, PLACES, 1) == [Share(2, 2), Share(2, 5), Share(1, 7)]


def test_files_have_so_many_bytes_at_most(tmp_path: Path) -> None:
    """So that a batch that has all packets of a window is a file, and neither is copied."""
    rows = [packet(1, place, place, 0, b"x" * 1000) for place in range(40)]
    batches = [pa.RecordBatch.from_pylist(rows[begin : begin + 10], PACKETS.schema) for begin in range(0, 40, 10)]
    size = batches[0].nbytes * 5 // 4
    files = list(write_files(Input(0, "0.pcap", "", 0, 0), batches, tmp_path, "packets", PLACES, size))
    assert len(files) == 4
    (share,) = shares(files, PLACES, 1)[:1]
    read = list(windows(files, share, tmp_path, PLACES, size))
    assert [len(each.rows["payload"].chunks) for each in read] == [1] * 4


@pytest.mark.parametrize("size", [1000, 1 << 20])
def test_only_flows_of_several_parts_and_notes_are_exchanged(size: int, tmp_path: Path) -> None:
    """Two parts of one capture: flows 0 and 1 lie in both, 2 and 3 in one each."""
    parts = [(0, 1, 2), (0, 1, 3)]
    crossing = Crossing.of([np.array(flows) for flows in parts])
    exchanged, kept_of = list[ShuffleFile](), list[dict[str, Any]]()
    for part, flows in enumerate(parts):
        rows = [packet(flows[at % 3], at, at, part, b"x" * 30) for at in range(part * 60, part * 60 + 60)]
        rows.append(packet(3 - part, 0, 0, part, b"", "{}"))
        local, file = LocalRows(), Input(part, f"{part}.pcap", "", 0, 0, first=0)
        batches = pa.Table.from_pylist(rows, PACKETS.schema).to_batches(max_chunksize=5)
        files = [*write_files(file, batches, tmp_path, f"packets-{part}", PLACES, size, crossing=crossing, local=local)]
        rows_of_windows = [window.rows.to_pylist() for window in local_windows(files, local, size)]
        assert not local
        assert [row["position"] for each in rows_of_windows for row in each] == [
            *range(part * 60 + 2, part * 60 + 60, 3)
        ]
        kept_of += [row for each in rows_of_windows for row in each]
        exchanged += files
    assert {(row["file_no"], row["flow"]) for row in kept_of} == {(0, 2), (1, 3)}
    followed = [
        row
        for share in shares(exchanged, PLACES, None)
        for window in windows(exchanged, share, tmp_path, PLACES, size)
        for row in window.rows.to_pylist()
    ]
    assert {row["flow"] for row in followed if row["note"] is None} == {0, 1}
    assert len(followed) == 82
    assert sum(each.size for each in exchanged) == 80 * (HEADER + 30) + 2 * HEADER


def test_a_part_of_long_flows_has_no_flows_of_its_own() -> None:
    def batches(*flows: range) -> Iterator[pa.RecordBatch]:
        return (pa.RecordBatch.from_pydict({"flow": each}) for each in flows)

    assert flows_of(batches(range(8), range(8), range(8, 16))) is None
    assert flows_of(batches(range(8), range(1, 9), range(4))).tolist() == [*range(9)]
    assert flows_of(batches()).tolist() == []


def test_flows_of_several_parts_survive_a_file(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    flows = random.integers(-(1 << 63), (1 << 63) - 1, 3000)
    folder(tmp_path).make("flows")
    Crossing.of([flows[:2000], flows[1500:]]).write(folder(tmp_path), "flows/crossing")
    has = Crossing.read(folder(tmp_path), "flows/crossing").has(flows)
    assert has[1500:2000].all()
    assert has.sum() < 500 + 2500 / 8


def test_a_full_disk_is_said_with_the_file(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, hard))
        with pytest.raises(OSError) as raised:
            written([capture(0, 0, Random(0))], tmp_path, 1 << 20)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (raised.value.strerror, raised.value.filename) == (
        "File too large",
        str(tmp_path / "packets-0" / "0-00000.arrow"),
    )
