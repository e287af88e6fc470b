"""Where large captures are cut: at records, whether they are found in order or guessed in many places at once."""

from __future__ import annotations

import functools
import gzip
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

pytest.importorskip("numba")

from tests.capture.second_parser import Packet, packets, write
from tests.conftest import FIXTURES
from wirekit.capture.files import open_capture
from wirekit.pipeline.inputs import Input, find_inputs
from wirekit.pipeline.packet_rows import Note
from wirekit.pipeline.packets import packet_batches
from wirekit.road.splits import Range, Walked, loads, ranges, splits, walk

CAPTURES = sorted((FIXTURES / "pcap").glob("*.pcap*"))
KAFKA = FIXTURES / "pcap" / "kafka-0.10.2.2-4-clients.pcapng"


class Walks:
    """Walks over ranges of a file, each as a task of its own would do it; remembers what they have found."""

    def __init__(self, file: Input, parts: Sequence[Range] | None = None) -> None:
        self.file, self.parts = file, parts
        self.results: list[Walked | None] = []

    def __call__(self, parts: Sequence[Range]) -> list[Walked | None]:
        for part in self.parts or parts:
            walked = walk(self.file.path, self.file.size, part)
            self.results.append(loads(None if walked is None else walked.dumps()))
        return self.results


def segments_and_skipped(batches: Iterable[pa.RecordBatch]) -> tuple[Counter[str], Counter[str]]:
    """The segments, and how many packets were skipped for what reason."""
    segments, skipped = Counter[str](), Counter[str]()
    for row in (row for batch in batches for row in batch.to_pylist()):
        note = None if row["note"] is None else Note.loads(row["note"])
        if note is not None and note.kind == "skipped":
            skipped.update(note.packets)
        else:
            segments[repr(row)] += 1
    return segments, skipped


@functools.cache
def whole(file: Input, ports: frozenset[int]) -> tuple[Counter[str], Counter[str]]:
    """The same of all of a file, by objects."""
    return segments_and_skipped(packet_batches([file], ports=ports, road="objects"))


def assert_whole(file: Input, every: int, walks: Walks | None, ports: frozenset[int] = frozenset()) -> int:
    """The parts of a file have what it has as a whole; says how many there are."""
    parts = splits(file, every, walks)
    assert [part.start.offset for part in parts[1:]] == [part.end for part in parts[:-1]]
    batches = [batch for part in parts for batch in packet_batches([file], ports=ports, split=part)]
    assert segments_and_skipped(batches) == whole(file, ports)
    return len(parts)


def meet(walked: Iterable[Walked | None]) -> bool:
    """Whether each walk has ended where the next one begins."""
    walks = list(walked)
    return all(one and other and one.next == other.start for one, other in pairwise(walks))


@pytest.mark.parametrize("ports", [frozenset(), frozenset({29101})], ids=["all", "one port"])
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_splits_of_a_file_have_its_packets(path: Path, ports: frozenset[int]) -> None:
    (file,) = find_inputs([path])
    assert assert_whole(file, file.size // 5, None, ports) > 1


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_splits_that_were_guessed_have_its_packets(path: Path) -> None:
    """Wherever the ranges begin: in headers, in payload, at a record; each is found in which a packet begins."""
    random = Random(path.stem)
    (file,) = find_inputs([path])
    with open_capture(path) as capture:
        places = [each.offset for each in capture.places(1)]
    agreed = 0
    for _ in range(4):
        begins = sorted(random.sample(range(1, file.size), random.randrange(1, 5)))
        parts = [Range(*each) for each in pairwise([0, *begins, file.size])]
        walks = Walks(file, parts)
        assert_whole(file, 1 << 20, walks)
        agreed += meet(walks.results)
        if path.suffix == ".pcap":
            assert meet(walks.results) == all(any(begin <= at < end for at in places) for begin, end in parts)
    assert agreed


def test_a_large_file_is_walked_in_ranges(tmp_path: Path) -> None:
    whole_capture = packets(CAPTURES[-1])
    path = write(
        tmp_path / "large.pcap", whole_capture * (1 + (1 << 20) // sum(len(each.data) for each in whole_capture))
    )
    (file,) = find_inputs([path])
    every = 1 << 16
    walks = Walks(file)
    assert assert_whole(file, every, walks) == len(ranges(file.size, every)) > 10
    assert meet(walks.results)


def test_a_capture_inside_a_packet_deceives_nobody(tmp_path: Path) -> None:
    """The guess falls into a packet that holds records, and the walk over them into what is behind it."""
    some = packets(CAPTURES[-1])
    inside = write(tmp_path / "inside.pcap", some[:40]).read_bytes()
    frame = some[0].data[:54]
    carrying = Packet(some[0].time_us, 54 + len(inside), frame + inside)
    path = write(tmp_path / "outside.pcap", [*some[:10], carrying, *some[10:50]])
    (file,) = find_inputs([path])
    first = path.read_bytes().index(inside) + 24
    walks = Walks(file, [Range(0, first), Range(first, file.size)])
    assert assert_whole(file, 1 << 20, walks)
    assert not meet(walks.results)


def test_splits_of_several_sections(tmp_path: Path) -> None:
    path = tmp_path / "twice.pcapng"
    path.write_bytes(KAFKA.read_bytes() * 2)
    (file,) = find_inputs([path])
    for every in (500, 4000, 1 << 20):
        assert_whole(file, every, None)
    assert_whole(file, 20_000, Walks(file))


def test_a_file_that_is_damaged_or_compressed_is_not_split(tmp_path: Path) -> None:
    data = KAFKA.read_bytes()
    (tmp_path / "cut.pcapng").write_bytes(data[:-3])
    (tmp_path / "packed.pcapng.gz").write_bytes(gzip.compress(data))
    for file in find_inputs([tmp_path]):
        assert splits(file, 4000) == []
        assert splits(file, 4000, Walks(file)) == []


def test_a_part_that_is_gone_or_cut_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes((FIXTURES / "pcap" / "pulsar-consume.pcap").read_bytes())
    (file,) = find_inputs([path])
    first, *others = splits(file, 8000)
    for size in (others[0].end - 1, first.end):  # inside a record, and after one
        os.truncate(path, size)
        assert sum(each.num_rows for each in packet_batches([file], split=first))
        for part in others:
            with pytest.raises(OSError, match="was changed while it was read") as raised:
                list(packet_batches([file], split=part))
            assert raised.value.filename == str(path)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        list(packet_batches([file], split=first))


def test_a_file_that_is_damaged_in_the_middle_is_not_split(tmp_path: Path) -> None:
    data = bytearray(CAPTURES[-1].read_bytes())
    data[len(data) // 2 : len(data) // 2 + 200] = bytes(200)
    (tmp_path / "damaged.pcap").write_bytes(data)
    (file,) = find_inputs([tmp_path])
    parts = splits(file, 4000, Walks(file))
    batches = [batch for part in parts for batch in packet_batches([file], split=part)]
    assert not parts or segments_and_skipped(batches) == segments_and_skipped(packet_batches([file], road="objects"))
