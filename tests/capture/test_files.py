"""Capture files to packets and segments: what is found, what is passed over, what ends the reading."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import random
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tests.net.building import (
    NETWORKS,
    ORDERS,
    SECONDS,
    TUNNELS,
    block,
    enhanced,
    ethernet,
    fragments,
    in_frame,
    in_ip,
    in_udp,
    interface,
    ipv4,
    ipv6,
    option,
    packet,
    pcap,
    section_header,
    tcp,
)
from wirekit.capture import files
from wirekit.capture.files import (
    Damaged,
    Packet,
    Place,
    Skipped,
    check_capture,
    dissect,
    is_capture,
    open_capture,
    segments,
)
from wirekit.capture.files import fragments as fragments_of_files
from wirekit.capture.files.fragments import Fragments
from wirekit.capture.tcp import ACK, PSH, Segment
from wirekit.errors import Limit, Short, WireError, Wrong
from wirekit.wire import Limits

FRAME = packet("net.ethernet", ethernet())
RAW = packet("net.ipv4", ipv4())
Write = Callable[[bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a capture file."""

    def written(data: bytes) -> Path:
        path = tmp_path / "a.cap"
        path.write_bytes(data)
        return path

    return written


def read(path: Path) -> tuple[list[Packet], WireError | None]:
    with open_capture(path) as capture:
        return list(capture.packets()), capture.damage


def whole(order: str, kind: str) -> tuple[bytes, list[int]]:
    """A capture of three packets, and where its records end."""
    if kind == "pcap":
        packets = [FRAME, b"abc", FRAME]
        ends = [24]
        for data in packets:
            ends.append(ends[-1] + 16 + len(data))
        return pcap(*packets, order=order), ends
    parts = [
        section_header(order, option(2, "x")),
        interface(order),
        enhanced(order, FRAME, 1),
        block(order, "SIMPLE_PACKET", {"data": "616263"}),
        enhanced(order, FRAME, 2, options=[option(1, "seen"), option(0, "")]),
        block(order, "INTERFACE_STATISTICS", {"timestamp_high": 0, "timestamp_low": 0}),
    ]
    ends = [sum(map(len, parts[:number])) for number in range(len(parts) + 1)]
    return b"".join(parts), ends


class TestPackets:
    @pytest.mark.parametrize("order", ORDERS)
    @pytest.mark.parametrize("nanoseconds", [False, True])
    def test_of_pcap(self, write: Write, order: str, nanoseconds: bool) -> None:
        data = pcap(FRAME, b"abc", order=order, nanoseconds=nanoseconds)
        packets, damage = read(write(data))
        assert damage is None
        first = Packet(
            time_us=SECONDS * 1_000_000 + (0 if nanoseconds else 250),
            time_ns=SECONDS * 1_000_000_000 + (250 if nanoseconds else 250_000),
            link_type=1,
            data=FRAME,
            offset=40,
            original_length=len(FRAME),
            number=1,
        )
        assert packets[0] == first
        assert (packets[1].number, packets[1].data) == (2, b"abc")
        assert data[packets[1].offset :] == b"abc"

    @pytest.mark.parametrize("order", ORDERS)
    def test_of_pcapng(self, write: Write, order: str) -> None:
        data, _ = whole(order, "pcapng")
        packets, damage = read(write(data))
        assert damage is None
        assert [each.number for each in packets] == [1, 2, 3]
        assert [each.data for each in packets] == [FRAME, b"abc", FRAME]
        assert [each.time_ns for each in packets] == [1000, 1000, 2000]  # a simple packet has no time
        for each in packets:
            assert data[each.offset : each.offset + len(each.data)] == each.data

    @pytest.mark.parametrize(
        ("options", "units", "time_ns"),
        [
            ([], 1_600_000_000_000_001, 1_600_000_000_000_001_000),
            ([option(9, {"exponent": 9})], 1_600_000_000_000_000_001, 1_600_000_000_000_000_001),
            ([option(9, {"exponent": 3})], 1_600_000_000_001, 1_600_000_000_001_000_000),
            ([option(9, {"exponent": 12})], 1_600_000_000_000_001_999, 1_600_000_000_000_001),
            ([option(9, {"binary": True, "exponent": 10})], 1_024 * 7 + 512, 7_500_000_000),
            ([option(14, SECONDS)], 1_000_001, (SECONDS + 1) * 1_000_000_000 + 1000),
            ([option(14, -1)], 1_000_000, 0),
            ([option(9, {"exponent": 0}), option(14, 5)], 1, 6_000_000_000),
            ([option(14, "0102")], 1, 1000),
        ],
    )
    @pytest.mark.parametrize("order", ORDERS)
    def test_times(self, write: Write, order: str, options: list[Any], units: int, time_ns: int) -> None:
        parts = [section_header(order), interface(order, 1, *options), enhanced(order, FRAME, units)]
        packets, damage = read(write(b"".join(parts)))
        assert damage is None
        assert (packets[0].time_ns, packets[0].time_us) == (time_ns, time_ns // 1000)

    def test_interfaces_have_their_own_links_and_units(self, write: Write) -> None:
        parts = [section_header("le"), interface("le", 1), interface("le", 101, option(9, {"exponent": 9}))]
        parts += [enhanced("le", RAW, 5, interface_id=1), enhanced("le", FRAME, 5)]
        packets, _ = read(write(b"".join(parts)))
        assert [(each.link_type, each.time_ns) for each in packets] == [(101, 5), (1, 5000)]

    def test_a_section_begins_with_no_interfaces(self, write: Write) -> None:
        one = section_header("le") + interface("le") + enhanced("le", FRAME, 1)
        two = section_header("be") + interface("be", 101) + enhanced("be", RAW, 2)
        with open_capture(write(one + two + section_header("le") + enhanced("le", FRAME, 3))) as capture:
            *packets, last = capture.items()
        assert [(each.link_type, each.time_us) for each in packets if isinstance(each, Packet)] == [(1, 1), (101, 2)]
        assert isinstance(last, Damaged)
        assert str(last.error).startswith("net.pcapng: interface_id: expected one of 0 interfaces")

    def test_the_snap_length_ends_a_simple_packet(self, write: Write) -> None:
        simple = block("le", "SIMPLE_PACKET", {"original_length": 60, "data": "61626300", "$keep": ["original_length"]})
        data = section_header("le") + interface("le", snap_length=3) + simple
        ((packet,), damage) = read(write(data))
        assert damage is None
        assert (packet.data, packet.original_length) == (b"abc", 60)

    def test_the_obsolete_packet(self, write: Write) -> None:
        old = block("be", "PACKET", {"timestamp_low": 9, "data": FRAME.hex()})
        data = section_header("be") + interface("be") + old
        ((packet,), _) = read(write(data))
        assert (packet.data, packet.time_us) == (FRAME, 9)
        assert data[packet.offset :].startswith(FRAME)

    def test_unknown_blocks_are_passed_over(self, write: Write) -> None:
        data = section_header("le") + block("le", 0xBAD, "0102030400") + interface("le") + enhanced("le", FRAME, 1)
        packets, damage = read(write(data))
        assert (len(packets), damage) == (1, None)


class TestWindows:
    """Records are decoded many at once: where a window ends must not show."""

    @pytest.mark.parametrize("kind", ["pcap", "pcapng"])
    @pytest.mark.parametrize("window", [1, 16, 60, 100, 1000])
    def test_of_any_size(self, write: Write, monkeypatch: pytest.MonkeyPatch, kind: str, window: int) -> None:
        data, _ = whole("le", kind)
        path = write(data * 3 if kind == "pcapng" else data)
        expected = read(path)
        monkeypatch.setattr(files, "WINDOW", window)
        assert read(path) == expected
        assert expected[1] is None

    def test_a_record_longer_than_a_window(self, write: Write) -> None:
        packets, damage = read(write(pcap(b"a" * (files.WINDOW + 1), b"b" * (5 * files.WINDOW), b"c", link_type=147)))
        assert damage is None
        assert [len(each.data) for each in packets] == [files.WINDOW + 1, 5 * files.WINDOW, 1]


class TestDamage:
    @pytest.mark.parametrize("kind", ["pcap", "pcapng"])
    @pytest.mark.parametrize("order", ORDERS)
    def test_cut_anywhere(self, write: Write, order: str, kind: str) -> None:
        data, ends = whole(order, kind)
        expected, _ = read(write(data))
        for length in range(len(data)):
            path = write(data[:length])
            if length < (24 if kind == "pcap" else 12):
                with pytest.raises(Short):
                    read(path)
                continue
            packets, damage = read(path)
            complete = max(end for end in ends if end <= length)
            assert packets == [each for each in expected if each.offset + len(each.data) <= complete]
            assert (damage is None) == (length in ends)
            if damage is not None:
                assert isinstance(damage, Short)
                assert damage.offset is not None
                assert complete <= damage.offset <= length

    def test_says_where_the_good_records_end(self, write: Write) -> None:
        data, ends = whole("le", "pcap")
        with open_capture(write(data[:-1])) as capture:
            list(capture.packets())
            assert capture.walked == ends[-2]
        with open_capture(write(data)) as capture:
            list(capture.packets())
            assert (capture.walked, capture.damage) == (len(data), None)

    def test_an_impossible_length_ends_the_walk(self, write: Write) -> None:
        data, ends = whole("be", "pcap")
        at = ends[1] + 8
        packets, damage = read(write(data[:at] + b"\x7f\xff\xff\xff" + data[at + 4 :]))
        assert [each.data for each in packets] == [FRAME]
        assert isinstance(damage, Limit)
        assert damage.offset == at

    @pytest.mark.parametrize("order", ORDERS)
    @pytest.mark.parametrize(
        ("number", "at", "change", "path"),
        [
            (2, 20, "7fffffff", "body.captured_length"),
            (2, 8, "00000007", "interface_id"),
            (2, 4, "00000008", "block_total_length"),
            (2, 4, "00000010", "block_total_length_again"),
            (2, 4, "00100000", "block_total_length"),
            (2, 4, "7fffffff", "block_total_length"),
            (3, -4, "00000040", "block_total_length_again"),
            (5, -4, "00000000", "block_total_length_again"),
        ],
    )
    def test_a_damaged_block_is_passed_over(
        self, write: Write, order: str, number: int, at: int, change: str, path: str
    ) -> None:
        whole_file, ends = whole(order, "pcapng")
        begin, end = ends[number : number + 2]
        data = bytearray(whole_file)
        place = (end if at < 0 else begin) + at
        data[place : place + 4] = bytes.fromhex(change)[:: 1 if order == "be" else -1]
        data += enhanced(order, b"last", 3)
        with open_capture(write(bytes(data))) as capture:
            items = list(capture.items())
            assert capture.damage is None
        (damaged,) = (each for each in items if isinstance(each, Damaged))
        assert (damaged.offset, damaged.length) == (begin, end - begin)
        assert damaged.error.path == path
        assert begin <= (damaged.error.offset or 0) < end
        expected = [data for index, data in ((2, FRAME), (3, b"abc"), (4, FRAME), (6, b"last")) if index != number]
        assert [each.data for each in items if isinstance(each, Packet)] == expected

    @pytest.mark.parametrize("order", ORDERS)
    def test_the_walk_goes_on_behind_bytes_that_are_no_block(self, write: Write, order: str) -> None:
        data, ends = whole(order, "pcapng")
        other = "le" if order == "be" else "be"
        section = section_header(other) + interface(other) + enhanced(other, b"other order", 9)
        for junk in (b"\r\n", bytes(40), bytes(range(256)) * 5):
            with open_capture(write(data[: ends[3]] + junk + data[ends[3] :] + junk + section)) as capture:
                items = list(capture.items())
            lost = [each for each in items if isinstance(each, Damaged)]
            assert [(each.offset, each.length) for each in lost[:1]] == [(ends[3], len(junk))]
            packets = [each.data for each in items if isinstance(each, Packet)]
            assert packets[:3] == [FRAME, b"abc", FRAME]

    def test_a_damaged_interface_keeps_its_number(self, write: Write) -> None:
        damaged = bytearray(interface("le", 101, option(9, {"exponent": 3})))
        damaged[18] = 0xFF  # the length of its option
        data = section_header("le") + bytes(damaged) + interface("le", 1) + enhanced("le", FRAME, 5, interface_id=1)
        with open_capture(write(data)) as capture:
            lost, packet = capture.items()
        assert isinstance(lost, Damaged)
        assert isinstance(packet, Packet)
        assert (packet.link_type, packet.data) == (1, FRAME)

    def test_a_damaged_section_header_ends_the_interfaces_described_before_it(self, write: Write) -> None:
        header = bytearray(section_header("le"))
        header[8] ^= 1  # of the byte order
        data = (
            section_header("le") + interface("le", 101) + bytes(header) + interface("le", 1) + enhanced("le", FRAME, 5)
        )
        with open_capture(write(data)) as capture:
            lost, packet = capture.items()
        assert (lost.offset, packet.link_type) == (28 + 20, 1)  # type: ignore[union-attr]

    def test_a_limit_of_the_caller(self, write: Write) -> None:
        with open_capture(write(pcap(b"abc", FRAME)), limits=Limits(frame=10)) as capture:
            assert [each.data for each in capture.packets()] == [b"abc"]
            assert isinstance(capture.damage, Limit)

    def test_is_that_of_the_part_it_lies_in(self, write: Write) -> None:
        data, _ = whole("le", "pcap")
        with open_capture(write(data[:-1])) as capture:
            list(capture.packets())
            assert capture.damage is not None
            list(capture.packets(end=117))
            assert capture.damage is None
            list(capture.packets(118))
            assert capture.damage is not None

    @given(
        kind=st.sampled_from(["pcap", "pcapng"]),
        order=st.sampled_from(ORDERS),
        changes=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=4),
    )
    def test_any_change_of_bytes(
        self, tmp_path_factory: pytest.TempPathFactory, kind: str, order: str, changes: list[tuple[int, int]]
    ) -> None:
        data = bytearray(whole(order, kind)[0])
        for at, value in changes:
            data[at % len(data)] = value
        path = tmp_path_factory.mktemp("changed") / "a.cap"
        path.write_bytes(data)
        with contextlib.suppress(WireError), open_capture(path) as capture:
            before = 0
            for item in segments(capture):
                assert before <= item.offset <= len(data)
                before = item.offset + item.length if isinstance(item, Damaged) else before
            assert before <= capture.walked
            assert capture.damage is None or capture.damage.offset is not None
            assert capture.walked <= len(data)


class TestParts:
    @pytest.mark.parametrize("kind", ["pcap", "pcapng"])
    @pytest.mark.parametrize("every", [1, 50, 100, 10_000])
    def test_places_split_a_file(self, write: Write, kind: str, every: int) -> None:
        data, _ = whole("le", kind)
        data = data + whole("be", kind)[0] if kind == "pcapng" else data
        with open_capture(write(data)) as capture:
            expected = list(capture.packets())
            places = list(capture.places(every))
            ends = [*(place.offset for place in places[1:]), None]
            parts = [list(capture.packets(place, end)) for place, end in zip(places, ends, strict=True)]
        assert [each for part in parts for each in part] == expected
        assert all(parts)
        assert len(places) == (1 if every == 10_000 else min(len(places), len(expected)))

    def test_any_offsets_split_a_file(self, write: Write) -> None:
        data, _ = whole("be", "pcapng")
        with open_capture(write(data)) as capture:
            expected = list(capture.packets())
            for middle in range(len(data) + 1):
                parts = [*capture.packets(0, middle), *capture.packets(middle)]
                assert parts == expected

    def test_a_place_holds_plain_values(self, write: Write) -> None:
        data = section_header("le") + interface("le", 101, option(2, "lo"), option(9, {"exponent": 9}))
        data += enhanced("le", RAW, 7) + enhanced("le", RAW, 8)
        with open_capture(write(data)) as capture:
            _, place = capture.places(1)
        at = len(data) - len(enhanced("le", RAW, 8))
        assert place == Place(at, 1, 7, "le", ((101, 0, False, 9, 0, "lo"),))

    def test_segments_of_a_part(self, write: Write) -> None:
        data, ends = whole("le", "pcap")
        with open_capture(write(data)) as capture:
            items = list(segments(capture, 3, start=ends[2]))
        assert [(each.file, each.offset) for each in items if isinstance(each, Segment)] == [(3, len(data) - 5)]


class TestFormats:
    def test_a_file_that_is_neither(self, write: Write) -> None:
        path = write(b"GIF89a" + bytes(100))
        with pytest.raises(Wrong) as caught:
            open_capture(path)
        begins = "expected a pcap or pcapng file, found bytes that begin with 47 49 46 38"
        assert str(caught.value) == f"{begins}, at byte 0 (0x0)"

    @pytest.mark.parametrize("data", [b"", b"\n", b"\xa1\xb2\xc3"])
    def test_a_file_of_next_to_nothing(self, write: Write, data: bytes) -> None:
        with pytest.raises(Short):
            open_capture(write(data))

    def test_a_version_that_is_not_known(self, write: Write) -> None:
        with pytest.raises(Wrong) as caught:
            open_capture(write(bytes.fromhex("a1b2c3d4 0001 0000") + bytes(16)))
        assert (caught.value.path, caught.value.offset) == ("header.major_version", 4)

    def test_a_byte_order_that_is_not_known(self, write: Write) -> None:
        with pytest.raises(Wrong) as caught:
            open_capture(write(section_header("le").replace(b"\x4d\x3c", b"\x4d\x4d")))
        assert (caught.value.path, caught.value.offset) == ("byte_order", 8)

    def test_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            open_capture(tmp_path / "none")

    @pytest.mark.parametrize("kind", ["pcap", "pcapng"])
    @pytest.mark.parametrize("order", ORDERS)
    def test_is_capture(self, kind: str, order: str) -> None:
        data, _ = whole(order, kind)
        assert is_capture(data)
        assert is_capture(data[:64])
        assert is_capture(gzip.compress(data))

    @pytest.mark.parametrize(
        "data", [b"", b"\n\r\r\n", b"\x00\x00\x00\x2a" * 20, b"\x1f\x8b", gzip.compress(b"abc", mtime=0)]
    )
    def test_is_no_capture(self, data: bytes) -> None:
        assert not is_capture(data)


PACK = {
    "gzip": gzip.compress,
    "zstd": zstandard.compress,
    "xz": lzma.compress,
    "bzip2": partial(bz2.compress, compresslevel=1),  # a cut file yields whole blocks: here of 100 kB
    "lz4": lz4.frame.compress,
}


@pytest.mark.parametrize("name", PACK)
class TestCompressed:
    def test_whole(self, write: Write, name: str) -> None:
        data, _ = whole("le", "pcapng")
        expected, pack = read(write(data)), PACK[name]
        assert read(write(pack(data))) == expected
        assert read(write(pack(data[:99]) + pack(data[99:]))) == expected
        assert is_capture(pack(data))

    def test_cut(self, write: Write, name: str) -> None:
        data = pcap(*(random.Random(number).randbytes(1000) for number in range(300)), link_type=147)
        expected, _ = read(write(data))
        packed = PACK[name](data)
        for length in range(2000, len(packed), 54321):
            try:
                packets, damage = read(write(packed[:length]))
            except Wrong as error:
                packets, damage = [], error
            assert packets == expected[: len(packets)]
            assert len(packets) >= (length - 200_000) // 1016
            assert isinstance(damage, Wrong)
            assert damage.expected == f"a whole {name} file"

    @pytest.mark.parametrize("tail", [b"\1", b"no capture"])
    def test_with_something_else_behind_it(self, write: Write, name: str, tail: bytes) -> None:
        data, _ = whole("le", "pcapng")
        packets, damage = read(write(PACK[name](data) + tail))
        assert packets == read(write(data))[0]
        assert isinstance(damage, Wrong)
        assert damage.expected == f"a whole {name} file"

    def test_that_grows_beyond_the_limit(self, write: Write, name: str) -> None:
        path = write(PACK[name](pcap(bytes(100_000), link_type=147)))
        with pytest.raises(Limit) as caught:
            open_capture(path, limits=Limits(decompressed=99_999))
        assert caught.value.limit == "decompressed"


class TestPacked:
    def test_xz_with_padding(self, write: Write) -> None:
        data, _ = whole("le", "pcapng")
        assert read(write(lzma.compress(data[:99]) + bytes(8) + lzma.compress(data[99:]) + bytes(4))) == read(
            write(data)
        )

    @pytest.mark.parametrize("length", [2, 10, 17])
    def test_cut_at_its_beginning(self, write: Write, length: int) -> None:
        with pytest.raises(Wrong, match="a whole gzip file"):
            open_capture(write(gzip.compress(FRAME)[:length]))

    def test_of_something_else(self, write: Write) -> None:
        with pytest.raises(Wrong, match="a pcap or pcapng file"):
            open_capture(write(gzip.compress(b"hello world")))

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
    def test_from_a_pipe(self, tmp_path: Path) -> None:
        data, _ = whole("le", "pcap")
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_bytes, args=(data,))
        writer.start()
        packets, damage = read(pipe)
        writer.join()
        assert (len(packets), damage) == (3, None)


def captured(data: bytes, link_type: int = 1, original_length: int | None = None) -> Packet:
    return Packet(7, 7000, link_type, data, 1000, len(data) if original_length is None else original_length, 1)


def segment_of(data: bytes, link_type: int = 1, original_length: int | None = None) -> Segment:
    segment = dissect(captured(data, link_type, original_length), 2)
    assert isinstance(segment, Segment)
    return segment


def skipped(data: bytes, link_type: int = 1, original_length: int | None = None) -> Skipped:
    item = dissect(captured(data, link_type, original_length))
    assert isinstance(item, Skipped)
    return item


class TestSegments:
    def test_all_of_it(self) -> None:
        assert segment_of(FRAME) == Segment(
            time_us=7,
            source="10.0.0.1:4000",
            target="10.0.0.2:9092",
            sequence=1000,
            acknowledgment=2000,
            flags=PSH | ACK,
            payload=b"hello",
            offset=1054,
            file=2,
            length=5,
        )

    def test_each_flag(self) -> None:
        for flags in range(256):
            assert segment_of(packet("net.ipv4", ipv4(tcp(flags=flags))), 101).flags == flags & 0x1F

    def test_addresses_of_ipv6(self) -> None:
        segment = segment_of(packet("net.ethernet", ethernet(ipv6(), type="IPV6")))
        assert (segment.source, segment.target) == ("[fe80::1]:4000", "[fe80::2]:9092")

    @pytest.mark.parametrize(
        ("link_type", "head"),
        [
            (0, "02000000"),
            (0, "00000002"),
            (1, "00" * 12 + "0800"),
            (1, "00" * 12 + "8100 0001 0800"),
            (1, "00" * 12 + "88a8 0001 8100 0002 0800"),
            (12, ""),
            (14, ""),
            (101, ""),
            (108, "00000002"),
            (113, "0000 0304 0006 0000000000000000 0800"),
            (228, ""),
            (276, "0800 0000 00000001 0304 00 06 0000000000000000"),
        ],
    )
    @pytest.mark.parametrize("trailer", ["", "000000000000"])
    def test_of_every_link_type(self, link_type: int, head: str, trailer: str) -> None:
        data = bytes.fromhex(head) + RAW + bytes.fromhex(trailer)
        segment = segment_of(data, link_type)
        assert segment.payload == b"hello"
        assert segment.length == 5
        assert data[segment.offset - 1000 :].startswith(b"hello")

    def test_of_ipv6_behind_extension_headers(self) -> None:
        inner = {"next_header": 6, "fragment": {}, "payload": tcp()}
        outer = {"next_header": 44, "content": "00" * 6, "payload": inner}
        data = packet("net.ipv6", ipv6(outer, next_header=0))
        segment = segment_of(data, 229)
        assert (segment.payload, segment.offset) == (b"hello", 1000 + len(data) - 5)

    @pytest.mark.parametrize("make", [ipv4, ipv6])
    @pytest.mark.parametrize("missing", [1, 99, 100])
    def test_cut_by_the_snap_length(self, make: Callable[..., Any], missing: int) -> None:
        data = packet(f"net.{make.__name__}", make(tcp(bytes(100))))
        segment = segment_of(data[:-missing], 101, len(data))
        assert (len(segment.payload), segment.length) == (100 - missing, 100)

    @pytest.mark.parametrize(("make", "field"), [(ipv4, "total_length"), (ipv6, "payload_length")])
    def test_of_an_offloaded_packet(self, make: Callable[..., Any], field: str) -> None:
        data = packet(f"net.{make.__name__}", make(tcp(bytes(100)), **{field: 0, "$keep": [field]}))
        assert segment_of(data, 101).length == 100
        cut = segment_of(data[:-60], 101, len(data))
        assert (len(cut.payload), cut.length) == (40, 100)

    def test_padding_of_a_short_frame_is_no_payload(self) -> None:
        data = packet("net.ethernet", ethernet(ipv4(tcp(b"")), trailer="00" * 6))
        segment = segment_of(data)
        assert (segment.payload, segment.length, segment.offset) == (b"", 0, 1054)

    def test_a_packet_with_a_wrong_checksum_yields_its_segment(self) -> None:
        value = ipv4(header_checksum=0, **{"$keep": ["header_checksum"]})
        assert segment_of(packet("net.ipv4", value), 101).payload == b"hello"


class TestFragments:
    """A frame whose IP datagram comes in parts."""

    FRAME = packet("net.ethernet", ethernet(ipv4(tcp(bytes(range(200))))))
    IN_PARTS = fragments(FRAME, [4, 9, 20])

    def read(self, *frames: bytes, held: Fragments | None = None, seconds: int = 0) -> list[Segment | Skipped]:
        held = Fragments() if held is None else held
        found: list[Segment | Skipped] = []
        for place, each in enumerate(frames):
            item = dissect(captured(each)._replace(offset=1000 * place, time_us=seconds * 1_000_000 * place), 2, held)
            found += [*([] if item is None else [item]), *held.take_lost()]
        return found + held.end()

    def assert_lost(self, *frames: bytes, **options: Any) -> None:
        found = self.read(*frames, **options)
        assert [each.reason for each in found if isinstance(each, Skipped)] == ["fragment"] * len(frames)

    @pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 0, 2, 3, 1]])
    @pytest.mark.parametrize("version", [4, 6])
    def test_the_segment_comes_with_the_last_part(self, order: list[int], version: int) -> None:
        parts = fragments(self.FRAME, [4, 9, 20], version=version)
        (segment,) = self.read(*(parts[place] for place in order))
        assert isinstance(segment, Segment)
        assert (segment.payload, segment.length, segment.sequence) == (bytes(range(200)), 200, 1000)
        assert segment.offset == 1000 * len(order) - 1000 + (34 if version == 4 else 62)

    @pytest.mark.parametrize("extensions", [1, 3])
    @pytest.mark.parametrize("frame", [FRAME, TUNNELS["VXLAN"](FRAME)], ids=["TCP", "VXLAN"])
    def test_with_extension_headers(self, frame: bytes, extensions: int) -> None:
        parts = fragments(frame, [1, 4, 9], version=6, extensions=extensions)
        (segment,) = self.read(*parts)
        assert isinstance(segment, Segment)
        assert segment.payload == bytes(range(200))
        self.assert_lost(*parts[:3])

    def test_with_more_extension_headers_than_are_read(self) -> None:
        found = self.read(*fragments(self.FRAME, [4, 9], version=6, extensions=4))
        assert [each.reason for each in found if isinstance(each, Skipped)] == ["ipv6_opts", "fragment", "fragment"]

    @pytest.mark.parametrize("wrap", TUNNELS.values(), ids=TUNNELS)
    def test_in_tunnels(self, wrap: Callable[[bytes], bytes]) -> None:
        (segment,) = self.read(*map(wrap, self.IN_PARTS))
        assert isinstance(segment, Segment)
        assert segment.payload == bytes(range(200))

    @pytest.mark.parametrize("name", ["VXLAN", "GRE", "IP in IP", "MPLS in UDP"])
    def test_of_tunnels(self, name: str) -> None:
        outer = fragments(TUNNELS[name](self.FRAME), [1, 11])
        (segment,) = self.read(*outer)
        assert isinstance(segment, Segment)
        assert (segment.payload, segment.offset) == (bytes(range(200)), 2034)
        both = [part for number, each in enumerate(self.IN_PARTS)
                for part in fragments(TUNNELS[name](each), [3], number)]  # fmt: skip
        assert [segment.payload for segment in self.read(*both) if isinstance(segment, Segment)] == [bytes(range(200))]
        self.assert_lost(*both[:-2])

    @pytest.mark.parametrize("wrap", NETWORKS.values(), ids=NETWORKS)
    def test_in_networks_with_the_same_addresses(self, wrap: Callable[[int, bytes], bytes]) -> None:
        other = fragments(packet("net.ethernet", ethernet(ipv4(tcp(bytes(200))))), [4, 9, 20])
        pairs = list(zip(self.IN_PARTS, other, strict=True))
        found = self.read(*(wrap(1 + at, part) for pair in pairs for at, part in enumerate(pair)))
        assert [each.payload for each in found if isinstance(each, Segment)] == [bytes(range(200)), bytes(200)]
        self.assert_lost(*(wrap(1 + at % 2, part) for at, part in enumerate(self.IN_PARTS)))

    def test_of_tunnels_with_other_fields_of_their_headers(self) -> None:
        """The priority of a VLAN; the source port of VXLAN, a hash of ports that only the first fragment has."""
        ports = [in_ip(17, f"{port:04x} 12b5 {len(part) + 16:04x} 0000 08000000 00002a00", part)
                 for port, part in enumerate(self.IN_PARTS, 50000)]  # fmt: skip
        priorities = [NETWORKS["VLAN"](at << 13 | 7, part) for at, part in enumerate(self.IN_PARTS)]
        for frames in (ports, priorities):
            (segment,) = self.read(*frames)
            assert isinstance(segment, Segment)
            assert segment.payload == bytes(range(200))

    def test_datagrams_of_other_protocols(self) -> None:
        assert [each.reason for each in self.read(*fragments(in_udp(53, "", self.FRAME), [5]))
                if isinstance(each, Skipped)] == ["udp", "fragment"]  # fmt: skip
        self.assert_lost(*fragments(in_ip(1, "", self.FRAME), [5]))

    def test_what_is_not_whole_has_no_segment(self) -> None:
        for missing in range(4):
            self.assert_lost(*self.IN_PARTS[:missing], *self.IN_PARTS[missing + 1 :])
        self.assert_lost(*fragments(self.FRAME, [4], 1)[:1], *fragments(self.FRAME, [4], 2)[1:])
        self.assert_lost(*(each[:-1] for each in self.IN_PARTS))

    def test_parts_that_overlap(self) -> None:
        """If they agree, they are put together; otherwise the datagram is dropped."""
        other = packet("net.ethernet", ethernet(ipv4(tcp(bytes(range(1, 201))))))
        one, agreeing, contrary = (fragments(each, cuts) for each, cuts in
                                   ((self.FRAME, [9]), (self.FRAME, [4, 20]), (other, [4, 20])))  # fmt: skip
        (segment,) = self.read(one[0], agreeing[1], agreeing[2])
        assert isinstance(segment, Segment)
        assert segment.payload == bytes(range(200))
        self.assert_lost(one[0], contrary[1])
        self.assert_lost(contrary[1], one[1])

    def test_parts_that_cannot_be(self) -> None:
        """The end inside another part (a teardrop), a part beyond it; without bytes, of odd size, too far behind."""

        def part(begin: int, size: int, *, more: bool) -> bytes:
            about = {"fragment_offset": begin, "more_fragments": more}
            return packet("net.ethernet", ethernet(ipv4("00" * size, fragment=about, identification=7)))

        self.assert_lost(part(0, 32, more=True), part(3, 4, more=False))
        self.assert_lost(part(2, 16, more=False), part(4, 16, more=True))
        self.assert_lost(part(4, 16, more=True), part(2, 16, more=False))
        self.assert_lost(part(1, 0, more=True), part(1, 7, more=True), part(8190, 64, more=True))

    def test_time_and_memory_are_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert len(self.read(*self.IN_PARTS, seconds=10)) == 1
        self.assert_lost(*self.IN_PARTS[:2], seconds=31)
        many = [fragments(self.FRAME, [4], number) for number in range(4)]
        asked = [each[0] for each in many] + [each[1] for each in reversed(many)]
        monkeypatch.setattr(fragments_of_files, "MOST_DATAGRAMS", 3)
        assert sum(isinstance(each, Segment) for each in self.read(*asked)) == 3
        monkeypatch.undo()
        monkeypatch.setattr(fragments_of_files, "MOST_BYTES", 3 * fragments_of_files.COST)
        assert sum(isinstance(each, Segment) for each in self.read(*asked)) == 2


def deep(levels: int) -> bytes:
    data = FRAME
    for _ in range(levels):
        data = TUNNELS["VXLAN"](data)
    return data


class TestTunnels:
    @pytest.mark.parametrize("wrap", TUNNELS.values(), ids=TUNNELS)
    @pytest.mark.parametrize("trailer", [0, 6])
    def test_the_segment_inside(self, wrap: Callable[[bytes], bytes], trailer: int) -> None:
        data = wrap(FRAME)
        segment = segment_of(data + bytes(trailer))
        assert segment == segment_of(FRAME)._replace(offset=1000 + len(data) - 5)

    @pytest.mark.parametrize("wrap", TUNNELS.values(), ids=TUNNELS)
    @pytest.mark.parametrize("missing", [1, 5])
    def test_cut_by_the_snap_length(self, wrap: Callable[[bytes], bytes], missing: int) -> None:
        data = wrap(FRAME)
        segment = segment_of(data[:-missing], 1, len(data))
        assert (len(segment.payload), segment.length) == (5 - missing, 5)
        assert segment.offset == 1000 + len(data) - 5

    @pytest.mark.parametrize("wrap", TUNNELS.values(), ids=TUNNELS)
    def test_cut_inside_the_headers(self, wrap: Callable[[bytes], bytes]) -> None:
        data = wrap(FRAME)
        for length in range(len(data) - 5):
            assert skipped(data[:length], 1, len(data)).reason == "cut"
            assert isinstance(dissect(captured(data[:length])), Skipped)

    def test_offloaded_packets(self) -> None:
        value = ipv4(total_length=0, **{"$keep": ["total_length"]})
        data = TUNNELS["VXLAN"](packet("net.ethernet", ethernet(value)))
        assert segment_of(data).length == 5
        assert segment_of(data[:-2], 1, len(data)).length == 5

    def test_tunnels_in_tunnels(self) -> None:
        assert segment_of(deep(4)).offset == 1000 + len(deep(4)) - 5
        assert skipped(deep(5)).reason == "udp"

    def test_a_tunnel_in_a_tunnel_of_another_kind(self) -> None:
        for outer in TUNNELS.values():
            assert segment_of(outer(TUNNELS["GRE"](FRAME))).payload == b"hello"

    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            (TUNNELS["VXLAN"](packet("net.ethernet", ethernet("0001", type="ARP"))), "arp"),
            (TUNNELS["VXLAN"](packet("net.ethernet", ethernet(ipv4("0001", fragment={"more_fragments": True})))),
             "fragment"),
            (packet("net.ethernet", ethernet(ipv4(TUNNELS["VXLAN"](FRAME)[34:].hex(), protocol=17,
                                                  fragment={"more_fragments": True}))), "fragment"),
            (TUNNELS["VXLAN"](FRAME[:40]), "damaged"),
            (in_udp(53, "", FRAME), "udp"),
            (in_udp(4789, "", b"\0"), "vxlan"),
            (in_ip(47, "0000 1234", FRAME), "gre"),
            (in_ip(4, "", b"\x50"), "ip version 5"),
            (in_frame("8847", "00010040" * 9, FRAME[14:]), "mpls"),
            (in_frame("8847", "00011140", b"\x50"), "mpls"),
            (in_frame("8864", "11 00 0007 0004 c021", b"\1\1"), "lcp"),
            (in_frame("8864", "11 00 0007 0004 0029", b"\1\1"), "pppoe"),
        ],
    )  # fmt: skip
    def test_packets_without_a_segment(self, data: bytes, reason: str) -> None:
        assert skipped(data).reason == reason


class TestSkipped:
    @pytest.mark.parametrize(
        ("value", "reason"),
        [
            (ethernet("0001", type="ARP"), "arp"),
            (ethernet("0001", type=0x88B5), "type 0x88b5"),
            (ethernet("0001", type=0x26), "type 0x26"),
            (ethernet(ipv4("0001", protocol="UDP")), "udp"),
            (ethernet(ipv4("0001", protocol=253)), "protocol 0xfd"),
            (ethernet(ipv4("0001", fragment={"more_fragments": True})), "fragment"),
            (ethernet(ipv4("0001", fragment={"fragment_offset": 9})), "fragment"),
            (ethernet(ipv6("0001", next_header="ICMPV6"), type="IPV6"), "icmpv6"),
            (ethernet(ipv6({"fragment": {"more_fragments": True}, "payload": "00"}, next_header=44), type="IPV6"),
             "fragment"),
            (ethernet({"tag": {"identifier": 1}, "type": "LLDP", "payload": "00"}, type="VLAN"), "lldp"),
        ],
    )  # fmt: skip
    def test_packets_without_a_whole_tcp_segment_are_skipped_with_a_reason(self, value: Any, reason: str) -> None:
        data = packet("net.ethernet", value)
        assert skipped(data) == Skipped(1, 7, 1000, len(data), reason)

    def test_a_link_that_is_not_known(self) -> None:
        assert skipped(b"abc", 147).reason == "link type 147"

    def test_raw_data_that_is_no_ip(self) -> None:
        assert skipped(b"\x50abc", 101).reason == "ip version 5"

    @pytest.mark.parametrize("length", range(len(FRAME) - 5))
    def test_headers_that_are_not_all_there(self, length: int) -> None:
        assert skipped(FRAME[:length], 1, len(FRAME)).reason == "cut"
        dropped = skipped(FRAME[:length])
        assert dropped.reason == "damaged"
        assert "needs" in dropped.detail
        assert "at byte 1" in dropped.detail

    def test_are_counted(self, write: Write) -> None:
        arp = packet("net.ethernet", ethernet("0001", type="ARP"))
        with open_capture(write(pcap(FRAME, arp, arp, FRAME[:20]))) as capture:
            items = list(segments(capture))
            assert capture.skipped == {"arp": 2, "damaged": 1}
        assert [type(each) for each in items] == [Segment, Skipped, Skipped, Skipped]


def test_real_captures(fixtures: Path) -> None:
    for path in sorted((fixtures / "pcap").glob("*.pcap*")):
        data = path.read_bytes()
        with open_capture(path) as capture:
            items = list(segments(capture))
            assert capture.damage is None
            assert not capture.skipped
        assert items
        for each in items:
            assert isinstance(each, Segment)
            assert each.length == len(each.payload)
            assert data[each.offset : each.offset + each.length] == each.payload


def test_checking_a_compressed_capture_does_not_decompress_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good, other = tmp_path / "good.pcap.gz", tmp_path / "other.gz"
    good.write_bytes(gzip.compress(whole("le", "pcap")[0]))
    other.write_bytes(gzip.compress(b"hello world"))
    with pytest.raises(Wrong) as direct:
        open_capture(other)
    with pytest.raises(Wrong) as checked:
        check_capture(other)
    assert str(checked.value) == str(direct.value)

    def copied(*_: object) -> Any:
        raise AssertionError("it is decompressed")

    monkeypatch.setattr("wirekit.capture.files.opening._copied", copied)
    check_capture(good)


@pytest.mark.parametrize("kind", ["pcap", "pcapng"])
def test_a_capture_behind_another_is_told(tmp_path: Path, fixtures: Path, kind: str) -> None:
    """As `cat` joins them; a file of pcapng may hold several, but none may stand in one of pcap."""
    first = (fixtures / "pcap" / "pulsar-batch.pcap").read_bytes()
    second = sorted((fixtures / "pcap").glob(f"*.{kind}"))[0].read_bytes()
    path = tmp_path / "joined.pcap"
    path.write_bytes(first + second)
    with files.open_capture(path) as capture:
        packets = sum(isinstance(item, files.Packet) for item in capture.items())
    assert packets >= 20
    assert capture.damage is not None
    assert f"another capture begins at byte {len(first)}: `mergecap` joins captures" in str(capture.damage)
