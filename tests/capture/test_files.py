"""Capture files to packets and segments: what is found, what is passed over, what ends the reading."""

from __future__ import annotations

import contextlib
import gzip
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capture.capture_bytes import FRAME, RAW, Write, read, whole
from tests.net.building import (
    ORDERS,
    SECONDS,
    block,
    enhanced,
    interface,
    option,
    pcap,
    section_header,
)
from wirekit.capture import files
from wirekit.capture.files import (
    Damaged,
    Packet,
    Place,
    is_capture,
    open_capture,
    segments,
)
from wirekit.capture.tcp import Segment
from wirekit.errors import Limit, Short, WireError, Wrong
from wirekit.wire import Limits


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
            ([option(9, {"exponent": 9}), option(0, ""), option(14, 5)], 1, 1),
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

    @pytest.mark.parametrize(
        "damaged",
        [
            pytest.param("01000000 0c000000 0c000000", id="empty"),
            pytest.param("01000000 10000000 65000000 10000000", id="no-snap-length"),
            pytest.param("01000000 18000000 65000000 00000000 0900ff00 18000000", id="length-of-an-option"),
            pytest.param("01000000 18000000 65000000 00000000 00000900 18000000", id="end-of-options"),
        ],
    )
    def test_a_damaged_interface_keeps_its_number(self, write: Write, damaged: str) -> None:
        described = bytes.fromhex(damaged) + interface("le", 1)
        data = section_header("le") + described + enhanced("le", FRAME, 5, interface_id=1)
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

    def test_a_file_of_a_known_format_is_named_with_advice(self, write: Write) -> None:
        with pytest.raises(Wrong, match=r"found a Parquet file, at byte 0 \(0x0\); `wirekit sql` reads the directory"):
            open_capture(write(b"PAR1" + bytes(100)))

    @pytest.mark.parametrize("magic", [b"\x34\xcd\xb2\xa1", b"\xa1\xb2\xcd\x34", b"snoop\0\0\0", b"GMBU"])
    def test_a_capture_of_another_format_is_named_with_a_converter(self, write: Write, magic: bytes) -> None:
        with pytest.raises(Wrong, match=r"found a capture of another format, .* `editcap FILE OUT.pcapng` converts it"):
            open_capture(write(magic + bytes(100)))

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


@pytest.mark.parametrize("kind", ["pcap", "pcapng"])
def test_a_capture_behind_another_is_reported(tmp_path: Path, fixtures: Path, kind: str) -> None:
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
