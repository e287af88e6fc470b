"""The law of two roads: objects and columns give the same tables, of captures as they are and of damaged copies."""

from __future__ import annotations

import gc
import gzip
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise, zip_longest
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from weakref import ref

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

pytest.importorskip("numba")

from tests.capture.damage import DAMAGES
from tests.capture.second_parser import Packet as PacketOfFile
from tests.capture.second_parser import packets, tcp, write
from tests.conftest import FIXTURES
from tests.fuzz.captures import packets_of
from tests.kafka.golden import Pdu, message, message_set
from tests.kafka.sets import FIRST, SECOND, THIRD, call, damages, frames_with_sets, script, undecodable
from tests.net.building import NETWORKS, TUNNELS, ethernet, fragments, in_udp, ipv4, packet, pcap
from tests.net.building import tcp as tcp_value
from wirekit.capture.columns import Records
from wirekit.capture.files import Capture, Packet, is_packed, open_capture, segments
from wirekit.capture.files.blocks import DATA_LEADS
from wirekit.capture.files.fragments import Fragments
from wirekit.capture.follow import Choice, follow
from wirekit.capture.tcp import Segment, Settings
from wirekit.cli import captures, group
from wirekit.conversation import Frame
from wirekit.pipeline import packet_rows, roads
from wirekit.pipeline import packets as pipeline_packets
from wirekit.pipeline.crossing import Crossing
from wirekit.pipeline.inputs import FlowShare, Job, find_inputs
from wirekit.pipeline.packets import packet_batches
from wirekit.pipeline.serial import captured_batches, sorted_packets
from wirekit.pipeline.shuffle import HEADER, Kept, Share, ShuffleFile, kept_windows, shares, windows, write_files
from wirekit.pipeline.summary import FileSummary, Summary, failure
from wirekit.registry import registry
from wirekit.road import packets as road_packets
from wirekit.road.flows import flow_batches
from wirekit.road.index import index_frames
from wirekit.road.packets import Endpoints, PacketReader, Packets, read_packets
from wirekit.road.packets import segments as packets_by_columns
from wirekit.road.rows import packet_batches as rows_by_columns
from wirekit.road.streams import put_together
from wirekit.road.tables import captured
from wirekit.road.windows import read_windows
from wirekit.schemas.net.pcapng import ENHANCED_PACKET
from wirekit.strategies import Script, Turn
from wirekit.tables.columns import FROM_INPUTS, PACKETS
from wirekit.wire.stream import Limits

CAPTURES = sorted((FIXTURES / "pcap").glob("*.pcap*"))
EXHAUSTIVE = os.environ.get("HYPOTHESIS_PROFILE") == "exhaustive"
COPIES = 40 if EXHAUSTIVE else 1
FEW = ("jmq4-consume", "pulsar-consume", "kafka-0.8.2.2-2-produce")
DAMAGED = CAPTURES if EXHAUSTIVE else [path for path in CAPTURES if path.stem in FEW]
WINDOWS = (200, 700, 2000, 5000, 20_000)
"""Bytes; the captures that are damaged have some hundreds a packet."""
PLACES, SHARES = 3, 2
"""Tasks that follow flows: of packets that are shuffled, of all packets."""
KAFKA = FIXTURES / "pcap" / "kafka-0.10.2.2-4-clients.pcapng"


Rows = tuple[dict[str, Counter[str]], Summary]
"""The rows of each table, and what was counted."""


def by_objects(*paths: Path, **options: Any) -> Rows:
    job = Job(find_inputs(paths), road="objects", **options)
    summary = Summary()
    return rows(captured_batches(job.inputs, job, summary)), summary


def by_columns(*paths: Path, window: int, **options: Any) -> Rows:
    """With windows of about so many bytes."""
    job = Job(find_inputs(paths), **options)
    summary = Summary()
    found = captured(job.inputs, job, summary, FROM_INPUTS, window=window)
    return by_objects(*paths, **options) if found is None else (rows(found), summary)


def by_shares(*paths: Path, window: int, **options: Any) -> Rows:
    """As tasks of the data source do it one after the other, each with some of the flows."""
    job = Job(find_inputs(paths), **options)
    summary = Summary()
    found = [
        captured(job.inputs, job, summary, FROM_INPUTS, window=window, flows=FlowShare(number, SHARES))
        for number in range(SHARES)
    ]
    if None in found:
        return by_objects(*paths, **options)
    return rows(chain.from_iterable(each for each in found if each is not None)), summary


def shuffled(*paths: Path, window: int, **options: Any) -> Rows:
    """As tasks of Spark do it one after the other: some read parts of the packets, the others follow flows of all."""
    job = Job(find_inputs(paths), **options)
    summary = Summary({job.inputs[0].name: FileSummary()})
    with TemporaryDirectory() as folder:
        parts = parts_of(job)
        files_of = [written(job, folder, window, part=part) for part in parts]
        files = [*chain.from_iterable(files_of)]
        sources = [
            *(kept_windows(mine, part.kept, window) for mine, part in zip(files_of, parts, strict=True) if part.kept),
            *(windows(files, share, folder, PLACES, window) for share in shares(files, PLACES, window)),
        ]
        found = [each for source in sources for each in flow_batches(source, job, summary)]
    return rows(found), summary


class Part(NamedTuple):
    """A part of the packets of a capture: their numbers, the flows that other parts have as well, the others' rows."""

    numbers: range
    crossing: Crossing | None
    kept: Kept


def parts_of(job: Job) -> list[Part]:
    """Up to three parts of a capture; how many depends on its packets."""
    batches = packet_batches(job.inputs, road="objects")
    flows = np.concatenate([np.zeros(0, np.int64), *(each["flow"].to_numpy() for each in batches)])
    begins = np.linspace(0, flows.size, 2 + flows.size % 3).astype(int).tolist()
    crossing = Crossing.of([np.unique(flows[begin:end]) for begin, end in pairwise(begins)])
    return [Part(range(*each), crossing if len(begins) > 2 else None, {}) for each in pairwise(begins)]


def written(
    job: Job, folder: str | Path, size: int, *, lost: Container[int] = (), again: bool = True, part: Part | None = None
) -> list[ShuffleFile]:
    """The packets of a capture in files of some bytes, without those of some numbers in their order.

    ``again``: whether tasks read payloads from the capture again where they can. ``part``: if given, only these.
    """
    files: list[ShuffleFile] = []
    before = 0
    for each in job.inputs:
        fragments = Fragments()
        packets = pa.Table.from_batches(packet_batches([each], road="objects", fragments=fragments), PACKETS.schema)
        here = range(before, before + packets.num_rows)
        chosen = [at - before for at in here if at not in lost and (part is None or at in part.numbers)]
        before += packets.num_rows
        batches = packets.take(pa.array(chosen, pa.int64())).to_batches(max_chunksize=7)
        files += write_files(
            each,
            batches,
            folder,
            f"packets-{each.number}-{0 if part is None else part.numbers.start}",
            PLACES,
            size,
            again=again and not is_packed(each.path),
            fragments=fragments,
            crossing=None if part is None else part.crossing,
            kept=None if part is None else part.kept,
        )
    return files


def rows(batches: Iterable[tuple[str, pa.RecordBatch]]) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for table, batch in batches:
        found.setdefault(table, Counter()).update(map(repr, batch.to_pylist()))
    return found


def assert_same(*paths: Path, windows: Sequence[int] = (1 << 26,), **options: Any) -> dict[str, Counter[str]]:
    """The law, of one capture; returns the rows that all roads give."""
    objects, counted = by_objects(*paths, **options)
    for window, road in [
        *((window, by_columns) for window in windows),
        (min(windows), shuffled),
        (max(windows), by_shares),
    ]:
        columns, summary = road(*paths, window=window, **options)
        for table in objects.keys() | columns.keys():
            assert not objects.get(table, Counter()) - columns.get(table, Counter()), (table, window)
            assert not columns.get(table, Counter()) - objects.get(table, Counter()), (table, window)
        assert counted == summary, window
    return objects


def odd_packets(path: Path) -> tuple[int, int]:
    """How many packets of a capture are in flows that are no plain connections, and in those that are not indexed."""
    with open_capture(path) as capture:
        found = read_packets(capture)
        assert found is not None
        streams = put_together(found, Settings())
        index = index_frames(streams, Choice(), found.endpoints.text)
    sizes = streams.begins[1:] - streams.begins[:-1]
    assert not (streams.odd & ~index.odd).any()
    return int(sizes[streams.odd].sum()), int(sizes[index.odd].sum())


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_captures(path: Path) -> None:
    assert_same(path, windows=(1 << 26, path.stat().st_size // 3))


def test_a_capture_without_packets(tmp_path: Path) -> None:
    path = tmp_path / "empty.pcap"
    write(path, [])
    assert_same(path)
    assert list(by_objects(path)[1].files) == [str(path)]


def test_a_connection_whose_only_name_is_not_decoded_by_columns(tmp_path: Path) -> None:
    """A hostile capture: the address in ADD_CONNECTION is not UTF-8, and a later request asks for the name."""
    name = "07" + b"wirekit".hex()
    frames = (
        ("client", f"00000068cafebebe040200000001010000000000000000{name * 6}00{name}0777697280{'00' * 18}01"),
        ("server", "0000002acafebebe040300000001ff0000000000000000000001610cc2a42d0bc2b2c29ec2bd22180000"),
        ("client", f"0000002ecafebebe6b02000000671e0000000000000001000100007fff00{name}fdba6c1573e201d2"),
    )
    script = Script("joyqueue", tuple(Turn(side, bytes.fromhex(data), "", "") for side, data in frames))
    path = tmp_path / "hostile.pcap"
    write(path, packets_of(script, Random(1)))
    assert_same(path)
    assert by_objects(path)[1].total().calls


@pytest.mark.parametrize("pdu", frames_with_sets(), ids=str)
def test_a_message_size_that_is_too_large(pdu: Pdu, tmp_path: Path) -> None:
    """One connection alone, and a connection for each damage."""
    connections = [
        packets_of(script(pdu, damage.data), Random(number), number) for number, damage in enumerate(damages(pdu))
    ]
    for count in (1, len(connections)):
        path = tmp_path / f"{count}.pcap"
        write(path, sorted(chain(*connections[:count]), key=lambda each: each.time_us))
        found = assert_same(path)
        job = Job(find_inputs([path]), road="columns")
        batches = [batch for _, batch in captured(job.inputs, job, Summary(), FROM_INPUTS) or ()]
        assert batches
        bad = [row for row in found["messages"] if "'crc_status': 'bad'" in row]
        assert len({re.search("'connection_id': '(.*?)'", row)[1] for row in bad}) == count


@pytest.mark.parametrize("side", ["server", "client"])
@pytest.mark.parametrize("count", [40, 400])
def test_more_messages_than_memory_allows(
    side: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both roads keep to the limit, whether the messages are compressed or not."""
    monkeypatch.setattr(registry, "protocol", lambda name, real=registry.protocol: replace(real(name), limits=limits))
    limits = Limits(memory=200_000, memory_ratio=0)
    plain = [message(b"v", offset=number) for number in range(count)]
    for number, entries in enumerate((plain, [message(plain, offset=count - 1, codec="GZIP")])):
        path = tmp_path / f"{number}.pcap"
        turns = call(side, FIRST) + call(side, message_set(*entries)) + call(side, FIRST)
        write(path, packets_of(Script("kafka", tuple(Turn(who, data, "", "") for who, data in turns)), Random(1)))
        assert_same(path)
        assert bool(by_objects(path)[0].get("quarantine")) == (count == 400)


@pytest.mark.parametrize("side", ["server", "client"])
def test_partitions_behind_a_set_that_does_not_decode(side: str, tmp_path: Path) -> None:
    for number, place in enumerate((16, 30)):
        bad = undecodable(SECOND, place)
        turns = call(side, FIRST) + call(side, FIRST, FIRST + bad + THIRD, bad, THIRD) + call(side, FIRST)
        path = tmp_path / f"{number}.pcap"
        write(path, packets_of(Script("kafka", tuple(Turn(who, data, "", "") for who, data in turns)), Random(number)))
        assert_same(path)
        found = by_columns(path, window=5000)[0]["messages"]
        assert sum("'crc_status': 'ok'" in row for row in found.elements()) == 2 + 4


@pytest.mark.parametrize("ports", [frozenset(), frozenset({29101})], ids=["all", "one port"])
def test_packets(ports: frozenset[int]) -> None:
    assert_same_packets(*CAPTURES, ports=ports)


def assert_same_packets(*paths: Path, ports: frozenset[int] = frozenset(), window: int = 1 << 26) -> Counter[str]:
    files, held = find_inputs(paths), Fragments()
    objects, columns = (
        Counter(repr(row) for batch in batches for row in batch.to_pylist())
        for batches in (
            packet_batches(files, ports=ports, road="objects"),
            chain.from_iterable(rows_by_columns(each, ports, window, fragments=held) or () for each in files),
        )
    )
    lost = Counter(each.reason for each in held.end())
    for row, _ in packet_rows.counted(files[-1], lost) if lost else ():
        columns[repr(dict(zip(PACKETS.names, row, strict=True)))] += 1
    assert columns == objects
    return objects


def test_a_block_whose_lengths_differ(tmp_path: Path) -> None:
    """The packets behind it are read, and it is reported."""
    data, path = bytearray(KAFKA.read_bytes()), tmp_path / "copy.pcapng"
    with open_capture(KAFKA) as capture:
        following = list(capture.packets())[41]
    data[following.offset - DATA_LEADS[ENHANCED_PACKET] - 4] ^= 1
    path.write_bytes(data)
    for window in (300, 20_000, 1 << 26):
        assert any("block_total_length_again" in row for row in assert_same_packets(path, window=window))
    assert_same(path, windows=(20_000, 1 << 26))


@pytest.mark.parametrize("path", [*DAMAGED, KAFKA], ids=lambda path: path.stem)
def test_damaged_bytes_of_a_file(path: Path, tmp_path: Path) -> None:
    data, random = path.read_bytes(), Random(path.stem)
    for _ in range(COPIES):
        copy = bytearray(data)
        copy[random.randrange(24, len(copy))] ^= 1 << random.randrange(8)
        damaged = tmp_path / path.name
        damaged.write_bytes(copy)
        window = random.choice((300, 20_000, 1 << 26))
        assert_same_packets(damaged, window=window)
        assert_same(damaged, windows=(window,))


def test_columns_read_the_packets_of_a_large_capture_that_objects_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = by_objects(KAFKA)
    monkeypatch.setattr(roads, "LEAST_COMPILED", 0)
    monkeypatch.setattr(pipeline_packets, "LEAST_FOR_COLUMNS", 0)
    monkeypatch.delattr(pipeline_packets, "capture_rows")
    assert by_objects(KAFKA) == expected


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_the_captures_are_plain(path: Path) -> None:
    odd, not_indexed = odd_packets(path)
    assert not odd
    assert path.stem.startswith("kafka") or not not_indexed


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("path", DAMAGED, ids=lambda path: path.stem)
def test_damaged_copies(path: Path, damage: str, tmp_path: Path) -> None:
    whole = packets(path)
    for seed in range(COPIES):
        random = Random(zlib.crc32(f"{path.stem} {damage} {seed}".encode()))
        copy = DAMAGES[damage](whole, random)
        assert_same(write(tmp_path / "copy.pcap", copy), windows=(1 << 26, random.choice(WINDOWS)))


@pytest.mark.parametrize("path", DAMAGED, ids=lambda path: path.stem)
def test_windows_of_a_few_packets(path: Path) -> None:
    assert_same(path, windows=(1, 300, 4000))


def test_the_end_of_a_connection_that_objects_have_seen(tmp_path: Path) -> None:
    """A packet of the server that has all flags resets it, and in a later window comes more."""
    found = packets(FIXTURES / "pcap" / "pulsar-comp_lz4.pcap")
    whole = [tcp(each) for each in found]
    at = next(number for number, each in enumerate(whole) if each.source.endswith(":6650") and len(each.payload) == 207)
    data = bytearray(found[at].data)
    data[47] = 0x17
    found[at] = found[at]._replace(data=bytes(data))
    assert_same(write(tmp_path / "copy.pcap", found), windows=(166,))


@pytest.mark.parametrize("name", ["pulsar-nobatch", "pulsar-batch"])
def test_a_first_byte_that_no_protocol_has(name: str, tmp_path: Path) -> None:
    """Nobody looks for a protocol any more, whatever comes behind it."""
    found = packets(FIXTURES / "pcap" / f"{name}.pcap")
    at = next(number for number, each in enumerate(found) if tcp(each).payload)
    data = bytearray(found[at].data)
    data[-len(tcp(found[at]).payload)] = 0x2B
    found[at] = found[at]._replace(data=bytes(data))
    assert_same(write(tmp_path / "copy.pcap", found), windows=(700, 1500, 2000))


def test_a_connection_that_objects_take_twice_in_a_window(tmp_path: Path) -> None:
    """What it waits for the second time is known to objects alone."""
    copy, random = packets(FIXTURES / "pcap" / "kafka-0.9.0.1-4-clients.pcapng"), Random(163)
    for damage in ("joined_late", "reordered"):
        copy = DAMAGES[damage](copy, random)
    assert_same(write(tmp_path / "copy.pcap", copy), windows=(200,))


@pytest.mark.parametrize("damage", [None, "dropped", "joined_late"])
def test_ports_again_after_a_long_time(damage: str | None, tmp_path: Path) -> None:
    """A connection after a long time is another one, and told even if nothing but its end was captured."""
    found, path = packets(KAFKA), tmp_path / "again.pcap"
    for again in range(1, 3):
        part = found[: len(packets(KAFKA))]
        part = part if damage is None else DAMAGES[damage](part, Random(again))
        found = found + [each._replace(time_us=each.time_us + again * 700_000_000) for each in part]
    write(path, found)
    assert_same(path, windows=(1 << 26, path.stat().st_size // 3, path.stat().st_size // 20))


SECOND_US, HOUR_US = 1_000_000, 3_600_000_000


@pytest.mark.parametrize(
    ("name", "places", "steps"),
    [
        ("kafka-0.8.2.2-2-produce.pcapng", [0.5], [-SECOND_US]),
        ("kafka-0.8.2.2-2-produce.pcapng", [0.3, 0.6, 0.9], [-60 * SECOND_US, 2 * SECOND_US, -HOUR_US]),
        ("pulsar-consume.pcap", [0.4], [-24 * HOUR_US]),
        ("pulsar-consume.pcap", [0.2, 0.5, 0.8], [-200_000, 5 * SECOND_US, -60 * SECOND_US]),
    ],
)
def test_a_clock_that_is_set(name: str, places: list[float], steps: list[int], tmp_path: Path) -> None:
    """The packets behind a step are followed in the order of the file, and nothing of what they have is left out."""
    whole, shift, at = packets(FIXTURES / "pcap" / name), 2 * HOUR_US * 24, 0
    copy = list[PacketOfFile]()
    for number, each in enumerate(whole):
        while at < len(steps) and number >= places[at] * len(whole):
            shift, at = shift + steps[at], at + 1
        copy.append(each._replace(time_us=each.time_us + shift))
    size = sum(len(each.data) for each in whole)
    path = write(tmp_path / "copy.pcap", copy)
    found = assert_same(path, windows=(1 << 26, size // 3, size // 20, 300))
    assert by_shares(path, window=size // 10)[0] == found
    before = by_objects(FIXTURES / "pcap" / name)[0]
    for table in ("frames", "messages", "calls", "quarantine", "gaps"):
        assert sum(found.get(table, Counter()).values()) == sum(before.get(table, Counter()).values()), table
    items = (item for _, item in follow(captures.by_time((str(path),), segments_of(path))))
    assert sum(isinstance(item, Frame) and failure(item) is None for item in items) == sum(found["frames"].values())


def segments_of(path: Path) -> Iterator[Segment]:
    with open_capture(path) as capture:
        yield from (each for each in segments(capture) if isinstance(each, Segment))


def test_windows_end_behind_a_step_of_the_clock(tmp_path: Path) -> None:
    """They do not wait for the time of before, and the clock of each is that of its packets."""
    whole = packets(FIXTURES / "pcap" / "pulsar-consume.pcap")
    half = len(whole) // 2
    copy = [each._replace(time_us=each.time_us + (HOUR_US if place < half else 0)) for place, each in enumerate(whole)]
    with open_capture(write(tmp_path / "copy.pcap", copy)) as capture:
        found = read_windows([capture], Endpoints(), 2000)
        assert found is not None
        clocks = [window.clock for window in found]
    assert len(clocks) > 10
    assert clocks.index(min(clocks)) == sum(clock > whole[-1].time_us for clock in clocks)
    for clock in (clocks[: clocks.index(min(clocks))], clocks[clocks.index(min(clocks)) :]):
        assert clock == sorted(clock)


def test_late_copies_behind_a_leap_and_a_step_of_the_clock(tmp_path: Path) -> None:
    """A connection takes late segments for ten seconds of its own time, wherever the clock was in between."""
    whole = packets(FIXTURES / "pcap" / "kafka-0.9.0.1-2-produce.pcapng")
    leap, step, again = 11_000_000, -10_500_000, 3_000_000
    for begin in (450, 470, 494):
        shifts = [leap * (place > begin) + step * (place > begin + 25) for place in range(len(whole))]
        copy = [each._replace(time_us=each.time_us + shift) for each, shift in zip(whole, shifts, strict=True)]
        copy += [each._replace(time_us=each.time_us + shifts[-1] + again) for each in whole[begin - 60 :]]
        assert_same(write(tmp_path / f"{begin}.pcap", copy), windows=(300, 2000, 5000))


def test_a_connection_of_an_address_with_itself(tmp_path: Path) -> None:
    """Nothing tells its sides apart: it is opened from both ends at once, as TCP does that connects to itself."""
    ends = {"source": "0a000001", "destination": "0a000001"}
    path, found = tmp_path / "itself.pcap", []
    for sequence, acknowledgment, flags, payload in [
        (1000, 0, 2, b""),
        (5000, 0, 2, b""),
        (1000, 5001, 18, b""),
        (5000, 1001, 18, b""),
        *((1001 + 5 * number, 5001, 24, b"hello") for number in range(9)),
        (5001, 1006, 16, b""),
        (5001, 0, 4, b""),
    ]:
        numbers = {"sequence_number": sequence, "acknowledgment_number": acknowledgment, "flags": flags}
        segment = tcp_value(payload, source_port=9092, destination_port=9092, **numbers)
        found.append(packet("net.ethernet", ethernet(ipv4(segment, **ends))))
    path.write_bytes(pcap(*found))
    assert_same(path, windows=(1 << 26, 500, 200))


def test_a_protocol_that_is_given(tmp_path: Path) -> None:
    assert_same(KAFKA, protocol="kafka")
    assert_same(KAFKA, protocol="pulsar")
    assert_same(KAFKA, ports={29101: "kafka"})


def test_a_version_that_is_not_declared(tmp_path: Path) -> None:
    """Its frames are named by their header, paired, and have the body as a gap; nothing of them is in quarantine."""
    metadata = b"\x00\x03\x00\x00", b"\x00\x03\x00\x13"
    found = packets(KAFKA)
    requests = [number for number, each in enumerate(found) if tcp(each).payload[4:8] == metadata[0]]
    assert requests
    for number in requests:
        data = found[number].data.replace(*metadata, 1)
        found[number] = found[number]._replace(data=data)
        assert tcp(found[number]).payload[4:8] == metadata[1]
    changed = write(tmp_path / "changed.pcap", found)
    assert_same(changed)
    job, summary = Job(find_inputs([changed]), road="columns"), Summary()
    rows: dict[str, list[dict[str, Any]]] = {"frames": [], "calls": []}
    for table, batch in captured_batches(job.inputs[:1], job, summary):
        rows.get(table, []).extend(batch.to_pylist())
    (counted,), (before,) = summary.files.values(), by_objects(KAFKA)[1].files.values()
    assert counted.quarantine == before.quarantine
    frames, calls = (
        [row for row in rows[table] if (row["api"], row["version"]) == ("metadata", 19)]
        for table in ("frames", "calls")
    )
    assert Counter(frame["role"] for frame in frames) == {"request": len(requests), "response": len(requests)}
    assert all(frame["gaps"] for frame in frames)
    assert len(calls) == len(requests)


@pytest.mark.parametrize("window", [700, 1 << 26])
def test_files_of_a_rotation(window: int, tmp_path: Path) -> None:
    whole = packets(FIXTURES / "pcap" / "pulsar-consume.pcap")
    cut = [whole[:20], whole[20:21], whole[21:70], whole[70:]]
    files = [write(tmp_path / f"part.pcap{number}", part) for number, part in enumerate(cut)]
    assert_same(*files, windows=(window,))


@pytest.mark.parametrize(
    ("name", "version", "wrap", "lossy"),
    [
        ("kafka-0.8.2.2-2-produce.pcapng", 4, None, False),
        ("pulsar-consume.pcap", 6, None, True),
        ("pulsar-comp_lz4.pcap", 4, "VXLAN", False),
    ],
)
def test_fragments(name: str, version: int, wrap: str | None, lossy: bool, tmp_path: Path) -> None:
    """Of random sizes, disordered, some of them twice; a few are lost."""
    copy, whole, random = list[PacketOfFile](), packets(FIXTURES / "pcap" / name), Random(name)
    for number, each in enumerate(whole):
        cuts = [random.randrange(1, 9 + len(each.data) // 8) for _ in range(random.randrange(4))]
        cuts += [1] if version == 6 else []
        parts = fragments(each.data, cuts, number, version=version, extensions=number % 3 if version == 6 else 0)
        parts = random.sample(parts, len(parts)) + random.choices(parts, k=len(parts) > 1)
        parts = parts if wrap is None else list(map(TUNNELS[wrap], parts))
        kept = [part for part in parts if not lossy or random.random() > 1 / 40]
        copy += [each._replace(data=part, length=len(part)) for part in kept]
    thirds = [0, len(copy) // 3, 2 * len(copy) // 3, len(copy)]
    cut = [write(tmp_path / f"part.pcap{at}", copy[begin:end]) for at, (begin, end) in enumerate(pairwise(thirds))]
    for paths in ([write(tmp_path / "copy.pcap", copy)], cut):
        assert_same_packets(*paths, window=5000)
    found = assert_same(tmp_path / "copy.pcap", windows=(5000, 300))
    objects, columns = by_objects(*cut), by_columns(*cut, window=5000)
    assert columns == objects
    assert {table: sum(rows.values()) for table, rows in objects[0].items()} == {
        table: sum(rows.values()) for table, rows in found.items()
    }
    if not lossy:
        before = by_objects(FIXTURES / "pcap" / name)[0]
        for table in ("frames", "messages", "calls", "quarantine", "gaps"):
            assert sum(found.get(table, Counter()).values()) == sum(before.get(table, Counter()).values()), table


@pytest.mark.parametrize("name", NETWORKS)
def test_fragments_in_networks_with_the_same_addresses(name: str, tmp_path: Path) -> None:
    """The datagrams of each network have the same identifications, and their fragments alternate."""
    copy, path = list[PacketOfFile](), tmp_path / "networks.pcap"
    whole = packets(FIXTURES / "pcap" / "jmq4-produce.pcap")
    for number, each in enumerate(whole):
        shifted = whole[number - len(whole) // 2]
        parts = [fragments(data, range(1, 200, 7), number) for data in (each.data, shifted.data)]
        wrapped = [NETWORKS[name](network, part) for pair in zip_longest(*parts)
                   for network, part in enumerate(pair, 1) if part is not None]  # fmt: skip
        copy += [each._replace(data=part, length=len(part)) for part in wrapped]
    write(path, copy)
    objects, columns = as_read(path, 5000)
    assert columns == objects
    found = [item for item in objects if isinstance(item, str)]
    assert sum(item.startswith("Segment") for item in found) == 2 * len(whole)


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
    assert rows(chain(first[:1], columns)) == rows(objects)
    assert counted[0] == counted[1]
    expected = packet_batches(job.inputs, road="objects")
    assert rows(("", each) for each in chain(first[1:], packets_read)) == rows(("", each) for each in expected)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_a_file_without_its_end_goes_by_columns(path: Path, tmp_path: Path) -> None:
    """Wherever it is cut, a pcap file that ends in what is no record, and the first file of a rotation."""
    data, random = path.read_bytes(), Random(path.stem)
    cut, damaged = tmp_path / f"cut{path.suffix}", tmp_path / "damaged.pcap"
    cut.write_bytes(data[: random.randrange(len(data) // 2, len(data))])
    found = packets(path)
    kept = random.randrange(1, len(found))
    with write(damaged, found[:kept]).open("ab") as file:
        file.write(b"\xff" * 100)
    rotation = [write(tmp_path / f"part.pcap{place}", each) for place, each in enumerate((found[:kept], found[kept:]))]
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
    found = captured(job.inputs, job, Summary(), FROM_INPUTS, reached.append, window=2000)
    assert found is not None
    assert sum(batch.num_rows for _, batch in found) > 0
    assert len(reached) > 5
    assert reached == sorted(reached)
    assert reached[-1] == path.stat().st_size


def as_read(path: Path, window: int) -> tuple[list[object], list[object]]:
    """(What objects give of a capture, what columns give), each with what is said of it at the end.

    Fragments that are not read come at the end, because columns tell them window by window.
    """
    ways = (segments, partial(packets_by_columns, window=window))
    found: list[list[object]] = []
    for read in ways:
        with open_capture(path) as capture:
            items = list(map(repr, read(capture, 3)))
            lost = sorted(item for item in items if "reason='fragment'" in item)
            items = [*(item for item in items if "reason='fragment'" not in item), *lost]
            found.append([*items, capture.skipped, str(capture.damage)])
    return found[0], found[1]


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_packets_as_objects(path: Path, tmp_path: Path) -> None:
    """They are the same and in the same order, also of a file that is cut or damaged somewhere."""
    data, random = path.read_bytes(), Random(path.stem)
    cut, damaged = tmp_path / f"cut{path.suffix}", tmp_path / f"damaged{path.suffix}"
    cut.write_bytes(data[: random.randrange(len(data) // 2, len(data))])
    place = random.randrange(len(data) // 2, len(data) - 40)
    damaged.write_bytes(data[:place] + random.randbytes(40) + data[place + 40 :])
    for each in (path, cut, damaged):
        for window in (1 << 26, len(data) // 5):
            objects, columns = as_read(each, window)
            assert columns == objects


@pytest.mark.parametrize("wrap", TUNNELS.values(), ids=TUNNELS)
def test_packets_in_tunnels(wrap: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """Plain ones and some of all others between them; whole, cut, damaged, in a tunnel once more."""
    path, random = tmp_path / "tunnels.pcap", Random("tunnels")
    plain = packet("net.ethernet", ethernet(ipv4(tcp_value(b"hello"))))
    found = [plain, wrap(plain), wrap(wrap(plain)), in_udp(53, "", plain)]
    found += [each[:length] for each in found for length in random.sample(range(len(each)), 10)]
    for each in list(found[:3]) * 20:
        place = random.randrange(14, len(each))
        found.append(each[:place] + random.randbytes(2) + each[place + 2 :])
    path.write_bytes(pcap(*found))
    for window in (1 << 26, 2000):
        objects, columns = as_read(path, window)
        assert columns == objects


@pytest.mark.parametrize("wrap", [TUNNELS["VXLAN"], TUNNELS["PPPoE"]], ids=["VXLAN", "PPPoE"])
def test_packets_that_are_captured_inside_and_outside_a_tunnel(wrap: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path, both = FIXTURES / "pcap" / "jmq4-produce.pcap", tmp_path / "both.pcap"
    with open_capture(path) as capture:
        frames = [each.data for each in capture.items() if isinstance(each, Packet)]
    both.write_bytes(pcap(*(copy for each in frames for copy in (each, wrap(each)))))
    tables = assert_same(both)
    once = by_objects(path)[0]
    assert not tables.get("gaps")
    for table in ("frames", "calls", "messages"):
        assert sum(tables[table].values()) == sum(once[table].values()) > 0


@pytest.mark.parametrize("name", ["VXLAN", "VXLAN of Linux", "Geneve", "Geneve without Ethernet", "GRE", "IP in IPv6"])
def test_packets_in_tunnels_are_read_by_columns(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = packet("net.ethernet", ethernet(ipv4(tcp_value(b"hello"))))
    path = tmp_path / "tunnels.pcap"
    path.write_bytes(pcap(*[TUNNELS[name](plain)] * 3))
    monkeypatch.setattr(road_packets, "dissect", None)
    objects, columns = as_read(path, 1 << 26)
    assert columns == objects


def test_a_large_capture_is_read_by_columns_with_the_same_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counted(capture: Capture, place: int, fragments: Fragments) -> Iterator[object]:
        read.append(capture.path)
        return packets_by_columns(capture, place, fragments=fragments)

    monkeypatch.setattr(road_packets, "segments", counted)
    found = []
    for large in (False, True):
        monkeypatch.setattr(captures, "by_columns", lambda size, large=large, **options: large)
        found.append(CliRunner().invoke(group, ["frames", str(KAFKA)], standalone_mode=False).output)
    assert found[0] == found[1]
    assert read == [str(KAFKA)]


def test_windows_end_where_reading_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a capture in the order of time each is what was read at once, so that no bytes are copied."""
    found = [each._replace(time_us=1000 * number) for number, each in enumerate(packets(KAFKA) * 5)]
    path = write(tmp_path / "ordered.pcap", found)
    reads: list[int] = []
    segments_of = PacketReader.segments

    def counted(reader: PacketReader, part: Records) -> Packets:
        reads.append(part.rows.num_rows)
        return segments_of(reader, part)

    monkeypatch.setattr(PacketReader, "segments", counted)
    with open_capture(path) as capture:
        windows = list(read_windows([capture], Endpoints(), path.stat().st_size // 4) or ())
    assert 4 <= len(windows) == len(reads) <= 6
    assert sum(window.packets.time.size for window in windows) == sum(reads) == len(found)


def test_a_window_is_gone_before_the_next_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several windows only one is in memory: neither its arrays nor the bytes of the file outlive it."""
    found = [each._replace(time_us=1000 * number) for number, each in enumerate(packets(KAFKA) * 5)]
    path = write(tmp_path / "ordered.pcap", found)
    size = path.stat().st_size // 4
    held: list[ref[Any]] = []
    alive: list[int] = []
    load, segments_of = Capture.load, PacketReader.segments

    def counted(capture: Capture, offset: int, most: int) -> memoryview:
        data = np.frombuffer(bytearray(load(capture, offset, most)), np.uint8)
        if held:  # behind the first pass
            gc.collect()
            alive.append(sum(each() is not None for each in held))
            held.append(ref(data))
        return memoryview(data)

    def noted(reader: PacketReader, part: Records) -> Packets:
        made = segments_of(reader, part)
        held.append(ref(made.time))
        return made

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
