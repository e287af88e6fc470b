"""Link layers, IPv4, IPv6 and TCP: what is payload, what is not, and what cannot be told."""

from __future__ import annotations

from typing import Any

import pytest

import wirekit
from tests.net.building import ethernet, ipv4, ipv6, packet, tcp

SYN = "875e 19fa b5f4a6fa 00000000 a002 ffd7 fe30 0000 0204ffd70402080a6a3e8e6b000000000103030a"
LOOPBACK_SYN = f"4500003c 546e4000 4006 e84b 7f000001 7f000001 {SYN}"


def innermost(decoded: wirekit.Decoded) -> Any:
    layer = decoded.value
    while isinstance(layer.payload, wirekit.Record):
        layer = layer.payload
    return layer


def both_ways(key: str, data: bytes) -> wirekit.Decoded:
    decoded = wirekit.decode(data, key)
    assert decoded.error is None
    assert wirekit.encode(key, decoded.value) == data[: decoded.consumed]
    assert wirekit.encode(key, decoded.to_json()["value"]) == data[: decoded.consumed]
    return decoded


def test_a_segment_of_a_real_capture() -> None:
    segment = both_ways("net.tcp", bytes.fromhex(SYN)).value
    assert (segment.source_port, segment.destination_port) == (34654, 6650)
    assert (segment.sequence_number, segment.acknowledgment_number) == (0xB5F4A6FA, 0)
    assert (segment.offset.data_offset, segment.window, segment.checksum) == (10, 65495, 0xFE30)
    assert {name for name, flag in segment.flags.items() if flag} == {"syn"}
    assert (len(segment.options), segment.payload) == (20, b"")


def test_a_packet_of_a_real_capture() -> None:
    decoded = both_ways("net.ipv4", bytes.fromhex(LOOPBACK_SYN))
    assert decoded.clean
    (check,) = decoded.checks
    assert (check.path, check.kind, check.status, check.offset) == ("header_checksum", "internet", "ok", 10)
    assert decoded.value.fragment == {
        "reserved": False,
        "dont_fragment": True,
        "more_fragments": False,
        "fragment_offset": 0,
    }


@pytest.mark.parametrize(
    ("key", "head"),
    [
        ("net.ethernet", "000000000000 000000000000 0800"),
        ("net.ethernet", "000000000000 000000000000 8100 a02a 0800"),
        ("net.ethernet", "000000000000 000000000000 88a8 0001 8100 0002 0800"),
        ("net.ethernet", "000000000000 000000000000 9100 0001 8100 0002 0800"),
        ("net.linux_cooked", "0000 0304 0006 0000000000000000 0800"),
        ("net.linux_cooked", "0004 0001 0006 0200000000010000 8100 002a 0800"),
        ("net.linux_cooked2", "0800 0000 00000001 0304 00 06 0000000000000000"),
        ("net.loopback", "00000002"),
        ("net.loopback", "02000000"),
        ("net.ip", ""),
    ],
)
@pytest.mark.parametrize("trailer", ["", "000000000000"])
def test_link_layers(key: str, head: str, trailer: str) -> None:
    decoded = both_ways(key, bytes.fromhex(head + LOOPBACK_SYN + trailer))
    assert decoded.clean
    assert decoded.value.trailer.hex() == trailer
    assert innermost(decoded).source_port == 34654


@pytest.mark.parametrize("family", ["00000018", "0000001c", "0000001e", "18000000", "1c000000", "1e000000"])
def test_loopback_families_of_ipv6(family: str) -> None:
    data = bytes.fromhex(family) + packet("net.ipv6", ipv6())
    assert innermost(both_ways("net.loopback", data)).payload == b"hello"


def test_raw_ip_version_comes_from_its_first_byte() -> None:
    assert innermost(both_ways("net.ip", packet("net.ipv6", ipv6()))).payload == b"hello"
    decoded = both_ways("net.ip", b"\x5f\1\2\3")
    assert decoded.value.start.version == 5
    assert [(gap.offset, gap.length) for gap in decoded.gaps] == [(0, 4)]


def test_tags_of_a_vlan() -> None:
    data = bytes.fromhex("000000000000 000000000000 8100 b02a 0800" + LOOPBACK_SYN)
    vlan = wirekit.decode(data, "net.ethernet").value.payload
    assert vlan.tag == {"priority": 5, "drop_eligible": True, "identifier": 42}


def test_more_than_three_tags_are_a_gap() -> None:
    data = bytes(12) + bytes.fromhex("8100 0001") * 4 + bytes.fromhex("0800" + LOOPBACK_SYN)
    decoded = both_ways("net.ethernet", data)
    assert [(gap.offset, gap.length) for gap in decoded.gaps] == [(26, 64)]


@pytest.mark.parametrize(("kind", "symbol"), [("0806", "ARP"), ("88cc", "LLDP"), ("1234", None), ("0026", None)])
def test_other_contents_of_a_frame_are_gaps(kind: str, symbol: str | None) -> None:
    decoded = both_ways("net.ethernet", bytes.fromhex("ffffffffffff 020000000001" + kind + "0001 0800"))
    assert decoded.value.type.symbol == symbol
    assert [gap.length for gap in decoded.gaps] == [4]


class TestIpv4:
    def test_lengths_and_checksum_are_computed(self) -> None:
        data = packet("net.ipv4", ipv4(tcp(b"abc")))
        decoded = both_ways("net.ipv4", data)
        assert decoded.clean
        assert decoded.value.total_length == 43 == len(data)

    def test_a_changed_packet_gets_new_ones(self) -> None:
        value = wirekit.decode(bytes.fromhex(LOOPBACK_SYN), "net.ipv4").value
        value.payload.payload = b"abc"
        changed = wirekit.decode(wirekit.encode("net.ipv4", value), "net.ipv4")
        assert changed.clean
        assert changed.value.total_length == 63
        assert changed.value.header_checksum != value.header_checksum

    def test_a_wrong_checksum_is_marked_and_kept(self) -> None:
        decoded = both_ways("net.ipv4", bytes.fromhex(LOOPBACK_SYN.replace("e84b", "0000")))
        (check,) = decoded.checks
        assert (check.status, check.stored, check.computed) == ("bad", 0, 0xE84B)

    def test_options(self) -> None:
        value = ipv4(start={"version": 4, "header_length": 6}, options="94040000")
        decoded = both_ways("net.ipv4", packet("net.ipv4", value))
        assert decoded.clean
        assert decoded.value.options == bytes.fromhex("94040000")
        assert decoded.value.payload.payload == b"hello"

    def test_cut_by_the_snap_length(self) -> None:
        whole = packet("net.ipv4", ipv4(tcp(bytes(100))))
        decoded = both_ways("net.ipv4", whole[:60])
        (bad,) = (check for check in decoded.checks if check.status == "bad")
        assert (bad.path, bad.stored - bad.computed) == ("total_length", 80)
        assert len(decoded.value.payload.payload) == 20

    def test_a_length_of_zero_is_that_of_an_offloaded_packet(self) -> None:
        data = packet("net.ipv4", ipv4(total_length=0, **{"$keep": ["total_length"]}))
        decoded = both_ways("net.ipv4", data)
        assert decoded.clean
        assert decoded.value.payload.payload == b"hello"

    @pytest.mark.parametrize("length", [1, 19])
    def test_a_length_below_that_of_the_header(self, length: int) -> None:
        data = bytes.fromhex(LOOPBACK_SYN.replace("003c", f"00{length:02x}"))
        assert "total_length: expected a length of at least 20" in str(wirekit.decode(data, "net.ipv4").error)

    @pytest.mark.parametrize("words", [0, 4])
    def test_a_header_that_is_too_short(self, words: int) -> None:
        data = bytes.fromhex(LOOPBACK_SYN.replace("45000", f"4{words}000", 1))
        error = wirekit.decode(data, "net.ipv4").error
        assert error is not None
        assert (error.kind, error.path) == ("wrong", "options")

    @pytest.mark.parametrize("fragment", [{"more_fragments": True}, {"fragment_offset": 2}])
    def test_a_fragment_is_no_segment(self, fragment: dict[str, Any]) -> None:
        decoded = both_ways("net.ipv4", packet("net.ipv4", ipv4("00" * 30, fragment=fragment)))
        assert decoded.clean
        assert decoded.value.payload == bytes(30)

    @pytest.mark.parametrize(("number", "symbol"), [(17, "UDP"), (1, "ICMP"), (253, None)])
    def test_other_protocols_are_gaps(self, number: int, symbol: str | None) -> None:
        decoded = both_ways("net.ipv4", packet("net.ipv4", ipv4("0102", protocol=number)))
        assert decoded.value.protocol.symbol == symbol
        assert [(gap.offset, gap.length) for gap in decoded.gaps] == [(20, 2)]


class TestIpv6:
    def test_bytes(self) -> None:
        head = "6a b12345 0019 06 40" + "fe80" + "00" * 13 + "01" + "fe80" + "00" * 13 + "02"
        data = bytes.fromhex(head) + packet("net.tcp", tcp())
        network = both_ways("net.ipv6", data).value
        assert network.start == {"version": 6, "traffic_class": 0xAB, "flow_label": 0x12345}
        assert network.payload.payload == b"hello"

    @pytest.mark.parametrize("header", ["HOPOPT", "IPV6_ROUTE", "IPV6_OPTS"])
    @pytest.mark.parametrize("units", [0, 2])
    def test_extension_header(self, header: str, units: int) -> None:
        content = "00" * (6 + 8 * units)
        extension = {"next_header": 6, "header_extension_length": units, "content": content, "payload": tcp()}
        data = packet("net.ipv6", ipv6(extension, next_header=header))
        decoded = both_ways("net.ipv6", data + b"padding")
        assert decoded.clean
        assert decoded.value.payload_length == 8 + 8 * units + 25
        assert decoded.value.payload.payload.payload == b"hello"
        assert decoded.consumed == len(data)

    def test_a_chain_of_them(self) -> None:
        inner: dict[str, Any] = tcp()
        following = "TCP"
        for header in ("IPV6_OPTS", "IPV6_FRAG", "IPV6_ROUTE", "HOPOPT"):
            fields = {"fragment": {}} if header == "IPV6_FRAG" else {"content": "00" * 6}
            inner = {"next_header": following, "payload": inner, **fields}
            following = header
        decoded = both_ways("net.ipv6", packet("net.ipv6", ipv6(inner, next_header=following)))
        assert decoded.clean
        assert innermost(decoded).payload == b"hello"

    def test_a_longer_chain_is_a_gap(self) -> None:
        chain = bytes.fromhex("3c00000000000000") * 5
        decoded = both_ways("net.ipv6", packet("net.ipv6", ipv6())[:40].replace(b"\0\x19\6", b"\0\x28\x3c") + chain)
        assert [(gap.offset, gap.length) for gap in decoded.gaps] == [(72, 8)]

    def test_a_fragment_that_is_whole(self) -> None:
        whole = {"next_header": 6, "fragment": {}, "payload": tcp()}
        decoded = both_ways("net.ipv6", packet("net.ipv6", ipv6(whole, next_header=44)))
        assert innermost(decoded).payload == b"hello"

    @pytest.mark.parametrize("fragment", [{"more_fragments": True}, {"fragment_offset": 2}])
    def test_a_fragment_is_no_segment(self, fragment: dict[str, Any]) -> None:
        piece = {"next_header": 6, "fragment": fragment, "identification": 7, "payload": "00" * 30}
        decoded = both_ways("net.ipv6", packet("net.ipv6", ipv6(piece, next_header=44)))
        assert decoded.clean
        assert decoded.value.payload.payload == bytes(30)

    def test_a_length_of_zero_is_that_of_an_offloaded_packet(self) -> None:
        data = packet("net.ipv6", ipv6(payload_length=0, **{"$keep": ["payload_length"]}))
        decoded = both_ways("net.ipv6", data)
        assert decoded.clean
        assert decoded.value.payload.payload == b"hello"


def test_padding_of_short_frames_is_no_payload() -> None:
    decoded = both_ways("net.ethernet", packet("net.ethernet", ethernet(ipv4(tcp(b"")), trailer="00" * 6)))
    assert decoded.clean
    assert innermost(decoded).payload == b""
    assert decoded.value.trailer == bytes(6)


@pytest.mark.parametrize("words", [0, 4])
def test_a_segment_whose_header_is_too_short(words: int) -> None:
    decoded = wirekit.decode(bytes.fromhex(SYN.replace("a002", f"{words}002")), "net.tcp")
    assert decoded.error is not None
    assert (decoded.error.kind, decoded.error.path) == ("wrong", "options")


class TestTunnels:
    @pytest.mark.parametrize(
        ("key", "head", "fields"),
        [
            ("udp", "c350 12b5 000d 0000", {"destination_port": 4789, "length": 13}),
            ("vxlan", "08000000 00002a00", {"flags": 8, "identifier": 42}),
            ("geneve", "02406558 00002a00 0102800100000007", {"identifier": 42, "options": b"\1\2\x80\1\0\0\0\7"}),
            ("gre", "0000 0800", {"protocol_type": 0x800, "checksum": None, "key": None, "sequence_number": None}),
            ("gre", "b000 6558 12340000 0000002a 00000001", {"checksum": 0x1234, "key": 42, "sequence_number": 1}),
            ("erspan", "10011801 00000003", {"index": 3}),
            ("erspan_3", "20010001 00000005 0006 0000", {"timestamp": 5, "security_group": 6, "platform": None}),
            ("erspan_3", "20010001 00000005 0006 0001 0102030405060708", {"platform": bytes(range(1, 9))}),
            ("pppoe", "11 00 0007 0007 0021", {"session": 7, "length": 7}),
            ("llc", "aaaa03 000000 0800", {"organization": 0, "type": 0x800}),
            ("llc", "aaaa03 00000c", {"organization": 12, "type": None}),
            ("llc", "424203", {"control": 3, "organization": None, "type": None}),
        ],
    )
    def test_headers(self, key: str, head: str, fields: dict[str, Any]) -> None:
        value = both_ways(f"net.{key}", bytes.fromhex(head) + b"hello").value
        assert {name: value[name] for name in fields} == fields
        assert value.payload == b"hello"

    def test_labels(self) -> None:
        outer = both_ways("net.mpls", bytes.fromhex("00010a40 00021140 45 00")).value
        assert outer.entry == {"label": 16, "traffic_class": 5, "bottom_of_stack": False, "time_to_live": 64}
        assert (outer.payload.entry.label, outer.payload.entry.bottom_of_stack) == (33, True)
        assert (outer.payload.payload.control_word, outer.payload.payload.payload) == (None, b"\x45\0")

    def test_a_control_word(self) -> None:
        content = both_ways("net.mpls", bytes.fromhex("00021140 00000007 0102")).value.payload
        assert (content.control_word, content.payload) == (7, b"\1\2")

    def test_more_labels_are_a_gap(self) -> None:
        decoded = both_ways("net.mpls", bytes.fromhex("00010040") * 9)
        assert [(gap.offset, gap.length) for gap in decoded.gaps] == [(32, 4)]

    def test_padding_behind_a_datagram_or_a_packet_is_no_payload(self) -> None:
        assert wirekit.decode(bytes.fromhex("c350 12b5 0009 0000 01 02"), "net.udp").value.payload == b"\1"
        value = both_ways("net.pppoe", bytes.fromhex("11 00 0007 0003 0021 01 02")).value
        assert (value.payload, value.trailer) == (b"\1", b"\2")

    @pytest.mark.parametrize("length", range(8))
    def test_a_length_below_that_of_a_header(self, length: int) -> None:
        data = bytes.fromhex(f"c350 12b5 000{length} 0000 01")
        assert (wirekit.decode(data, "net.udp").error is None) == (length == 0)
