"""The law of two roads for files: rotations, files without their end or that are cut, windows of a file."""

from __future__ import annotations

import gc
import gzip
import os
from dataclasses import replace
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any
from weakref import ref

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("numba")

from tests.capture.second_parser import packets, write
from tests.conftest import FIXTURES
from tests.road.law import CAPTURES, EXHAUSTIVE, KAFKA, TableRows, as_read, assert_same
from wirekit.capture.columns import Records
from wirekit.capture.files import Capture, open_capture
from wirekit.pipeline import packet_rows
from wirekit.pipeline.inputs import Job, find_inputs
from wirekit.pipeline.packets import packet_batches
from wirekit.pipeline.serial import captured_batches, sorted_packets
from wirekit.pipeline.shuffle import HEADER, Share, windows, write_files
from wirekit.pipeline.summary import Summary
from wirekit.road.packets import Endpoints, PacketReader, Packets
from wirekit.road.rows import packet_batches as rows_by_columns
from wirekit.road.tables import captured
from wirekit.road.windows import read_windows
from wirekit.tables.columns import FROM_INPUTS


@pytest.mark.parametrize("window", [700, 1 << 26])
def test_files_of_a_rotation(window: int, tmp_path: Path) -> None:
    whole = packets(FIXTURES / "pcap" / "pulsar-consume.pcap")
    cut = [whole[:20], whole[20:21], whole[21:70], whole[70:]]
    files = [write(tmp_path / f"part.pcap{number}", part) for number, part in enumerate(cut)]
    assert_same(*files, windows=(window,))


@pytest.mark.parametrize("name", ["pulsar-consume.pcap", "kafka-0.10.2.2-4-clients.pcapng"])
@pytest.mark.parametrize("share", [0.4, 0.7, 0.95])
def test_a_file_that_is_cut_while_it_is_read(
    name: str, share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both roads give what was in front of the cut, and say what is wrong with the end."""
    data = (FIXTURES / "pcap" / name).read_bytes()
    path, left, window = tmp_path / name, round(len(data) * share), len(data) // 10
    path.write_bytes(data)
    job, counted = Job(find_inputs([path])), [Summary(), Summary()]
    columns = captured(job.inputs, job, counted[0], FROM_INPUTS, window=window)
    packets_read = rows_by_columns(job.inputs[0], frozenset(), window)
    assert columns is not None
    assert packets_read is not None

    def opened_and_cut(name: str) -> Capture:
        path.write_bytes(data)
        capture = open_capture(name)
        os.truncate(path, left)
        return capture

    first = next(columns), next(packets_read)
    os.truncate(path, left)
    monkeypatch.setattr(packet_rows, "open_capture", opened_and_cut)
    objects = captured_batches(job.inputs, replace(job, road="objects"), counted[1])
    assert TableRows(chain(first[:1], columns)) == TableRows(objects)
    assert counted[0] == counted[1]
    by_road = chain(first[1:], packets_read), packet_batches(job.inputs, road="objects")
    columns_packets, expected = (TableRows(("", each) for each in batches) for batches in by_road)
    assert columns_packets == expected


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_a_file_without_its_end_goes_by_columns(path: Path, tmp_path: Path) -> None:
    """Wherever it is cut, a pcap file that ends in what is no record, and the first file of a rotation."""
    data, random = path.read_bytes(), Random(path.stem)
    cut, damaged = tmp_path / f"cut{path.suffix}", tmp_path / "damaged.pcap"
    cut.write_bytes(data[: random.randrange(len(data) // 2, len(data))])
    whole = packets(path)
    count = random.randrange(1, len(whole))
    with write(damaged, whole[:count]).open("ab") as file:
        file.write(b"\xff" * 100)
    rotation = [
        write(tmp_path / f"part.pcap{place}", each) for place, each in enumerate((whole[:count], whole[count:]))
    ]
    os.truncate(rotation[0], rotation[0].stat().st_size - 3)
    ends = ([cut], [damaged], rotation)
    for files in ends if EXHAUSTIVE else random.sample(ends, 1):
        job = Job(find_inputs(files))
        assert list(captured(job.inputs, job, Summary(), FROM_INPUTS) or ())
        assert_same(*files, windows=(len(data) // 5, 1 << 26))


def test_a_compressed_file_without_its_end(tmp_path: Path) -> None:
    """All packets are there, and still something is wrong."""
    path = tmp_path / "cut.pcap.gz"
    path.write_bytes(gzip.compress((FIXTURES / "pcap" / "pulsar-batch.pcap").read_bytes())[:-8])
    job = Job(find_inputs([path]))
    assert list(captured(job.inputs, job, Summary(), FROM_INPUTS) or ())
    assert_same(path)
    objects, columns = as_read(path, 1 << 26)
    assert objects == columns
    assert "gzip" in str(objects[-1])


def test_progress_is_reported_in_bytes() -> None:
    path = FIXTURES / "pcap" / "pulsar-consume.pcap"
    job = Job(find_inputs([path]))
    reached: list[int] = []
    batches = captured(job.inputs, job, Summary(), FROM_INPUTS, reached.append, window=2000)
    assert batches is not None
    assert sum(batch.num_rows for _, batch in batches) > 0
    assert len(reached) > 5
    assert reached == sorted(reached)
    assert reached[-1] == path.stat().st_size


def test_windows_end_where_reading_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a capture in the order of time each is what was read at once, so that no bytes are copied."""
    ordered = [each._replace(time_us=1000 * number) for number, each in enumerate(packets(KAFKA) * 5)]
    path = write(tmp_path / "ordered.pcap", ordered)
    reads: list[int] = []
    segments_of = PacketReader.segments

    def counted(reader: PacketReader, part: Records) -> Packets:
        reads.append(part.rows.num_rows)
        return segments_of(reader, part)

    monkeypatch.setattr(PacketReader, "segments", counted)
    with open_capture(path) as capture:
        windows = list(read_windows([capture], Endpoints(), path.stat().st_size // 4) or ())
    assert 4 <= len(windows) == len(reads) <= 6
    assert sum(window.packets.time.size for window in windows) == sum(reads) == len(ordered)


def test_a_window_is_gone_before_the_next_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several windows only one is in memory: neither its arrays nor the bytes of the file outlive it."""
    ordered = [each._replace(time_us=1000 * number) for number, each in enumerate(packets(KAFKA) * 5)]
    path = write(tmp_path / "ordered.pcap", ordered)
    size = path.stat().st_size // 4
    references: list[ref[Any]] = []
    alive: list[int] = []
    load, segments_of = Capture.load, PacketReader.segments

    def counted(capture: Capture, offset: int, most: int) -> memoryview:
        data = np.frombuffer(bytearray(load(capture, offset, most)), np.uint8)
        if references:  # behind the first pass
            gc.collect()
            alive.append(sum(each() is not None for each in references))
            references.append(ref(data))
        return memoryview(data)

    def noted(reader: PacketReader, part: Records) -> Packets:
        segments_read = segments_of(reader, part)
        references.append(ref(segments_read.time))
        return segments_read

    monkeypatch.setattr(Capture, "load", counted)
    monkeypatch.setattr(PacketReader, "segments", noted)
    job = Job(find_inputs([path]))
    windows = captured(job.inputs, job, Summary(), FROM_INPUTS, window=size)
    assert windows is not None
    assert sum(batch.num_rows for _, batch in windows)
    assert len(alive) >= 3
    assert not any(alive)


def test_flows_without_payload_fill_windows(tmp_path: Path) -> None:
    """A scan of ports: what is held does not grow with the number of its flows."""
    job = Job(find_inputs([KAFKA]))
    (first, *_) = sorted_packets(job.inputs, road="objects")
    (row,) = first.filter(first["note"].is_null()).slice(0, 1).to_pylist()
    scan = [{**row, "flow": flow, "payload": b"", "length": 0} for flow in range(1000)]
    batches = pa.Table.from_pylist(scan, first.schema).to_batches(max_chunksize=10)
    files = list(write_files(job.inputs[0], batches, tmp_path, "packets", 1, 1))
    parts = list(windows(files, Share(0), tmp_path, 1, 10 * HEADER))
    assert [part.rows.num_rows for part in parts] == [10] * 100
