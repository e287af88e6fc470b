"""Packets are the same by objects and by columns: of files, damaged files, fragments and tunnels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, pairwise, zip_longest
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

pytest.importorskip("numba")

from tests.capture.second_parser import Packet as PacketOfFile
from tests.capture.second_parser import packets, write
from tests.conftest import FIXTURES
from tests.fuzz.captures import pcapng
from tests.net.building import NETWORKS, TUNNELS, ethernet, fragments, in_udp, ipv4, ipv6, packet, pcap
from tests.net.building import tcp as tcp_value
from tests.road.law import CAPTURES, COPIES, DAMAGED, KAFKA, as_read, assert_same, by_columns, by_objects
from wirekit.capture.columns import MANY_SECTIONS, Records
from wirekit.capture.files import Capture, Packet, Skipped, open_capture
from wirekit.capture.files.blocks import DATA_LEADS
from wirekit.capture.files.fragments import Fragments
from wirekit.cli import captures, group
from wirekit.pipeline import packet_rows, roads
from wirekit.pipeline import packets as pipeline_packets
from wirekit.pipeline.inputs import Job, find_inputs
from wirekit.pipeline.packets import packet_batches
from wirekit.pipeline.summary import Summary
from wirekit.road import packets as road_packets
from wirekit.road import windows
from wirekit.road.packets import Endpoints, PacketReader, Packets
from wirekit.road.packets import segments as packets_by_columns
from wirekit.road.rows import packet_batches as rows_by_columns
from wirekit.road.tables import captured
from wirekit.road.windows import read_windows
from wirekit.schemas.net.pcapng import ENHANCED_PACKET
from wirekit.tables.columns import FROM_INPUTS, PACKETS


@pytest.mark.parametrize("ports", [frozenset(), frozenset({29101})], ids=["all", "one port"])
def test_packets(ports: frozenset[int]) -> None:
    assert_same_packets(*CAPTURES, ports=ports)


def assert_same_packets(*paths: Path, ports: frozenset[int] = frozenset(), window: int = 1 << 26) -> Counter[str]:
    files, incomplete = find_inputs(paths), Fragments()
    objects, columns = (
        Counter(repr(row) for batch in batches for row in batch.to_pylist())
        for batches in (
            packet_batches(files, ports=ports, road="objects"),
            chain.from_iterable(rows_by_columns(each, ports, window, fragments=incomplete) or () for each in files),
        )
    )
    lost = Counter(each.reason for each in incomplete.end())
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


def test_packets_without_content_fill_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is an object in memory, so that some megabytes of a file could take gigabytes."""
    path = write(tmp_path / "empty.pcap", [PacketOfFile(number, 0, b"") for number in range(2_000)])
    with open_capture(path) as capture:
        skipped = [window.packets.skipped for window in read_windows([capture], Endpoints(), 100_000) or ()]
    assert sum(map(len, skipped)) == 2_000
    assert max(map(len, skipped)) <= 400
    monkeypatch.setattr(road_packets, "SCANNED_AT_ONCE", 300)
    monkeypatch.setattr(windows, "SCANNED_AT_ONCE", 300)
    at_once: list[int] = []
    read = PacketReader.segments

    def counted(reader: PacketReader, part: Records) -> Packets:
        at_once.append(part.rows.num_rows)
        return read(reader, part)

    monkeypatch.setattr(PacketReader, "segments", counted)
    with open_capture(path) as capture:
        assert len(list(packets_by_columns(capture))) == 2_000
    assert max(at_once) == 300
    at_once.clear()
    with open_capture(path) as capture:
        assert sum(len(window.packets.skipped) for window in read_windows([capture], Endpoints()) or ()) == 2_000
    assert (max(at_once), sum(at_once)) == (300, 2_000)


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
        remaining = [part for part in parts if not lossy or random.random() > 1 / 40]
        copy += [each._replace(data=part, length=len(part)) for part in remaining]
    thirds = [0, len(copy) // 3, 2 * len(copy) // 3, len(copy)]
    cut = [write(tmp_path / f"part.pcap{at}", copy[begin:end]) for at, (begin, end) in enumerate(pairwise(thirds))]
    for paths in ([write(tmp_path / "copy.pcap", copy)], cut):
        assert_same_packets(*paths, window=5000)
    rows_of_tables = assert_same(tmp_path / "copy.pcap", windows=(5000, 300))
    objects, columns = by_objects(*cut), by_columns(*cut, window=5000)
    assert columns == objects
    assert {table: sum(rows.values()) for table, rows in objects[0].items()} == {
        table: sum(rows.values()) for table, rows in rows_of_tables.items()
    }
    if not lossy:
        before = by_objects(FIXTURES / "pcap" / name)[0]
        for table in ("frames", "messages", "calls", "quarantine", "gaps"):
            assert sum(rows_of_tables.get(table, Counter()).values()) == sum(before.get(table, Counter()).values()), (
                table
            )


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
    texts = [item for item in objects if isinstance(item, str)]
    assert sum(item.startswith("Segment") for item in texts) == 2 * len(whole)


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


@pytest.mark.parametrize(("link_type", "head"), [(9, "0021"), (9, "ff030021"), (50, "ff030021")])
def test_packets_of_ppp(link_type: int, head: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, ppp = FIXTURES / "pcap" / "jmq4-produce.pcap", tmp_path / "ppp.pcap"
    with open_capture(path) as capture:
        frames = [bytes.fromhex(head) + each.data[14:] for each in capture.items() if isinstance(each, Packet)]
    ppp.write_bytes(pcap(*frames, link_type=link_type))
    monkeypatch.setattr(road_packets, "dissect", None)
    tables, once = assert_same(ppp), by_objects(path)[0]
    for table in ("frames", "calls", "messages"):
        assert sum(tables[table].values()) == sum(once[table].values()) > 0


@pytest.mark.parametrize("wrap", TUNNELS.values(), ids=TUNNELS)
def test_packets_in_tunnels(wrap: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """Plain ones and some of all others between them; whole, cut, damaged, in a tunnel once more."""
    path, random = tmp_path / "tunnels.pcap", Random("tunnels")
    plain = packet("net.ethernet", ethernet(ipv4(tcp_value(b"hello"))))
    frames = [plain, wrap(plain), wrap(wrap(plain)), in_udp(53, "", plain)]
    frames += [each[:length] for each in frames for length in random.sample(range(len(each)), 10)]
    for each in list(frames[:3]) * 20:
        place = random.randrange(14, len(each))
        frames.append(each[:place] + random.randbytes(2) + each[place + 2 :])
    path.write_bytes(pcap(*frames))
    for window in (1 << 26, 2000):
        objects, columns = as_read(path, window)
        assert columns == objects


_PLAIN = packet("net.ethernet", ethernet(ipv4(tcp_value(b"hello" * 9))))
_WITHOUT = {
    "UDP": in_udp(53, "", b"query" * 9),
    "ICMP": packet("net.ethernet", ethernet(ipv4("0800", protocol="ICMP"))),
    "ICMP in IPv6": packet("net.ethernet", ethernet(ipv6("8000", next_header="ICMPV6"), type="IPV6")),
    "UDP in VXLAN": TUNNELS["VXLAN"](in_udp(53, "", b"query")),
}
_WITH_OPTIONS = packet("net.ethernet", ethernet(ipv4(tcp_value(offset={"data_offset": 8}, options="01" * 12))))
_SNAPPED = {
    **_WITHOUT,
    "options": _WITH_OPTIONS,
    "options in VXLAN": TUNNELS["VXLAN"](_WITH_OPTIONS),
    "plain": _PLAIN,
    "trailer": _PLAIN + bytes(6),
    "IPv6": packet("net.ethernet", ethernet(ipv6(tcp_value(b"hello" * 9)), type="IPV6")),
    **{name: wrap(_PLAIN) for name, wrap in (TUNNELS | {"VLAN": partial(NETWORKS["VLAN"], 7)}).items()},
}


@pytest.mark.parametrize("frame", _SNAPPED.values(), ids=_SNAPPED)
def test_packets_that_the_snap_length_cut(frame: bytes, tmp_path: Path) -> None:
    """At every byte; some were longer on the wire than their datagram, or than the file."""
    cuts = range(len(frame) + 1)
    snapped = [PacketOfFile(0, len(frame) + more, frame[:cut]) for more in (0, 4, 10_000, 1 << 31) for cut in cuts]
    path = write(tmp_path / "snapped.pcap", Random(frame).sample(snapped, len(snapped)))
    for window in (1 << 26, 9000):
        objects, columns = as_read(path, window)
        assert columns == objects


def test_packets_without_a_segment_are_counted_by_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "without.pcap"
    path.write_bytes(pcap(*(each for frame in _WITHOUT.values() for each in (_PLAIN, frame))))
    objects, _ = as_read(path, 1 << 26)
    monkeypatch.setattr(road_packets, "dissect", None)
    with open_capture(path) as capture:
        assert list(map(repr, packets_by_columns(capture, 3))) == objects[:-2]
        assert capture.skipped == {"udp": 2, "icmp": 1, "icmpv6": 1}


def test_packets_that_the_snap_length_cut_are_read_by_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapped = [each._replace(data=each.data[:80]) for each in packets(FIXTURES / "pcap" / "jmq4-produce.pcap")]
    path = write(tmp_path / "snapped.pcap", [*snapped, PacketOfFile(0, 2000, bytes(2000))])
    monkeypatch.setattr(road_packets, "dissect", lambda packet, *_: Skipped(packet.number, 0, 0, 0, "none"))
    objects, columns = ([each for each in road if "Segment" in str(each)] for road in as_read(path, 1 << 26))
    assert len(columns) == len(snapped)
    assert columns == objects


@pytest.mark.parametrize("name", ["VXLAN", "PPPoE", "SNAP"])
def test_packets_that_are_captured_inside_and_outside_a_tunnel(name: str, tmp_path: Path) -> None:
    wrap = TUNNELS[name]
    path, both = FIXTURES / "pcap" / "jmq4-produce.pcap", tmp_path / "both.pcap"
    with open_capture(path) as capture:
        frames = [each.data for each in capture.items() if isinstance(each, Packet)]
    both.write_bytes(pcap(*(copy for each in frames for copy in (each, wrap(each)))))
    tables = assert_same(both)
    once = by_objects(path)[0]
    assert not tables.get("gaps")
    for table in ("frames", "calls", "messages"):
        assert sum(tables[table].values()) == sum(once[table].values()) > 0


@pytest.mark.parametrize(
    "name",
    [
        *("VXLAN", "VXLAN of Linux", "VXLAN-GPE", "VXLAN-GPE without Ethernet", "GTP-U", "GTP-U with extensions"),
        *("Geneve", "Geneve without Ethernet", "GRE", "GRE of PPTP", "IP in IPv6", "three tags"),
    ],
)
def test_packets_in_tunnels_are_read_by_columns(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = packet("net.ethernet", ethernet(ipv4(tcp_value(b"hello"))))
    path = tmp_path / "tunnels.pcap"
    path.write_bytes(pcap(*[TUNNELS[name](plain)] * 3))
    monkeypatch.setattr(road_packets, "dissect", None)
    objects, columns = as_read(path, 1 << 26)
    assert columns == objects


def test_bytes_behind_the_packet_of_a_tunnel(tmp_path: Path) -> None:
    inner = packet("net.ipv4", ipv4(tcp_value(b"hello")))
    path = tmp_path / "tunnels.pcap"
    path.write_bytes(pcap(in_udp(2152, f"30ff {len(inner):04x} 0000002a", inner + inner)))
    objects, columns = as_read(path, 1 << 26)
    assert "payload=b'hello'" in str(objects[0])
    assert columns == objects


def test_a_large_capture_is_read_by_columns_with_the_same_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counted(capture: Capture, place: int, fragments: Fragments) -> Iterator[object]:
        read.append(capture.path)
        return packets_by_columns(capture, place, fragments=fragments)

    monkeypatch.setattr(road_packets, "segments", counted)
    outputs = []
    for large in (False, True):
        monkeypatch.setattr(captures, "by_columns", lambda size, large=large, **options: large)
        outputs.append(CliRunner().invoke(group, ["frames", str(KAFKA)], standalone_mode=False).output)
    assert outputs[0] == outputs[1]
    assert read == [str(KAFKA)]


@pytest.mark.parametrize(("count", "small"), [(MANY_SECTIONS, False), (MANY_SECTIONS + 6, True)])
def test_many_small_sections(count: int, small: bool, tmp_path: Path) -> None:
    path = tmp_path / "sections.pcapng"
    whole, one = packets(KAFKA), Random(1)
    cuts = [len(whole) * number // count for number in range(count + 1)]
    path.write_bytes(b"".join(pcapng(whole[begin:end], one) for begin, end in pairwise(cuts)))
    job = Job(find_inputs([path]), road="columns")
    assert (captured(job.inputs, job, Summary(), FROM_INPUTS) is None) == small
    assert_same(path, windows=(5000,))
    assert_same_packets(path)
    objects, columns = as_read(path, 5000)
    assert columns == objects
