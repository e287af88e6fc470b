"""Packets to segments: fragments, tunnels, and what is passed over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.capture.capture_bytes import FRAME, RAW, Write
from tests.net.building import (
    NETWORKS,
    TUNNELS,
    ethernet,
    fragments,
    in_frame,
    in_ip,
    in_udp,
    ipv4,
    ipv6,
    packet,
    pcap,
    tcp,
)
from wirekit.capture.files import (
    Packet,
    Skipped,
    dissect,
    open_capture,
    segments,
)
from wirekit.capture.files import fragments as fragments_of_files
from wirekit.capture.files.fragments import Fragments
from wirekit.capture.tcp import ACK, PSH, Segment


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
            (9, "0021"),
            (9, "ff03 0021"),
            (12, ""),
            (14, ""),
            (50, "ff03 0021"),
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

    def test_behind_an_authentication_header(self) -> None:
        header = "06 04 0000 00000100 00000001" + "aa" * 12
        content = header + packet("net.tcp", tcp()).hex()
        extension = {"next_header": 51, "content": "00" * 6, "payload": content}
        for value, key in (
            (ipv4(content, protocol=51), "net.ipv4"),
            (ipv6(content, next_header=51), "net.ipv6"),
            (ipv6(extension, next_header=0), "net.ipv6"),
        ):
            data = packet(key, value)
            segment = segment_of(data, 101)
            assert (segment.payload, segment.length, segment.offset) == (b"hello", 5, 1000 + len(data) - 5)
            assert segment.source.endswith(":4000")
            assert skipped(data[:30] + bytes(len(data) - 30), 101).reason in ("damaged", "hopopt")

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

    def read(self, *frames: bytes, incomplete: Fragments | None = None, seconds: int = 0) -> list[Segment | Skipped]:
        incomplete = Fragments() if incomplete is None else incomplete
        items: list[Segment | Skipped] = []
        for place, each in enumerate(frames):
            item = dissect(
                captured(each)._replace(offset=1000 * place, time_us=seconds * 1_000_000 * place), 2, incomplete
            )
            items += [*([] if item is None else [item]), *incomplete.take_lost()]
        return items + incomplete.end()

    def assert_lost(self, *frames: bytes, **options: Any) -> None:
        items = self.read(*frames, **options)
        assert [each.reason for each in items if isinstance(each, Skipped)] == ["fragment"] * len(frames)

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
        items = self.read(*fragments(self.FRAME, [4, 9], version=6, extensions=4))
        assert [each.reason for each in items if isinstance(each, Skipped)] == ["ipv6_opts", "fragment", "fragment"]

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
        items = self.read(*(wrap(1 + at, part) for pair in pairs for at, part in enumerate(pair)))
        assert [each.payload for each in items if isinstance(each, Segment)] == [bytes(range(200)), bytes(200)]
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

    def test_an_incomplete_datagram_has_no_segment(self) -> None:
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
        ordered = [each[0] for each in many] + [each[1] for each in reversed(many)]
        monkeypatch.setattr(fragments_of_files, "MOST_DATAGRAMS", 3)
        assert sum(isinstance(each, Segment) for each in self.read(*ordered)) == 3
        monkeypatch.undo()
        monkeypatch.setattr(fragments_of_files, "MOST_BYTES", 3 * fragments_of_files.COST)
        assert sum(isinstance(each, Segment) for each in self.read(*ordered)) == 2


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

    @pytest.mark.parametrize("wrap", TUNNELS.values(), ids=TUNNELS)
    @pytest.mark.parametrize("fields", [{}, {"total_length": 0, "$keep": ["total_length"]}], ids=["", "offloaded"])
    def test_cut_inside_the_options(self, wrap: Callable[[bytes], bytes], fields: dict[str, Any]) -> None:
        value = ipv4(tcp(offset={"data_offset": 15}, options="01" * 40), **fields)
        data = wrap(packet("net.ethernet", ethernet(value)))
        begin = len(data) - 45
        for length in range(begin, len(data) - 5):
            segment = segment_of(data[:length], 1, len(data))
            assert (segment.payload, segment.length, segment.offset) == (b"", 5, 1000 + length)
            assert segment.sequence == 1000
            assert isinstance(dissect(captured(data[:length])), Skipped)
        assert skipped(data[: begin - 1], 1, len(data)).reason == "cut"

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
            (in_frame("000a", "aaaa03 000000 0806", b"\1\1"), "arp"),
            (in_frame("000a", "aaaa03 00000c 2000", b"\1\1"), "llc"),
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
            (ethernet("42420300", type=0x26), "llc"),
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
