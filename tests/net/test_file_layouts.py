"""pcap and pcapng files: byte orders, units of time, lengths, padding, options, damage."""

from __future__ import annotations

import pytest

import wirekit
from tests.net.building import (
    ORDERS,
    SECONDS,
    block,
    enhanced,
    ethernet,
    interface,
    option,
    packet,
    pcap,
    section_header,
)
from wirekit.errors import Limit, Short, WireError, Wrong

BIG_PCAP = """
    a1b2c3d4 0002 0004 00000000 00000000 00040000 00000065
    5f5e1000 000000fa 00000003 00000005 616263
"""
LITTLE_PCAPNG = """
    0a0d0d0a 1c000000 4d3c2b1a 0100 0000 ffffffffffffffff 1c000000
    01000000 20000000 6500 0000 00000000 0900 0100 09 000000 0000 0000 20000000
    06000000 24000000 00000000 00000000 fa000000 03000000 05000000 616263 00 24000000
"""


class TestPcap:
    def test_bytes(self) -> None:
        data = bytes.fromhex(BIG_PCAP)
        decoded = wirekit.decode(data, "net.pcap")
        header, (record,) = decoded.value.header, decoded.value.packets
        assert decoded.value.magic_number.symbol == "BIG_MICROSECONDS"
        assert (header.major_version, header.minor_version, header.snap_length) == (2, 4, 262144)
        assert header.link.type.symbol == "RAW"
        assert (record.seconds, record.fraction, record.captured_length, record.original_length) == (SECONDS, 250, 3, 5)
        assert wirekit.encode("net.pcap", decoded.value) == data

    @pytest.mark.parametrize(
        ("magic", "order", "nanoseconds"),
        [
            ("a1b2c3d4", "be", False),
            ("a1b23c4d", "be", True),
            ("d4c3b2a1", "le", False),
            ("4d3cb2a1", "le", True),
        ],
    )
    def test_four_magic_numbers(self, magic: str, order: str, nanoseconds: bool) -> None:
        data = pcap(b"", order=order, nanoseconds=nanoseconds, link_type=147)
        assert data[:4].hex() == magic
        assert int.from_bytes(data[4:6], "big" if order == "be" else "little") == 2
        decoded = wirekit.decode(data, "net.pcap")
        assert decoded.clean
        assert decoded.value.packets[0].fraction == 250

    def test_another_magic_number(self) -> None:
        decoded = wirekit.decode(b"GIF89a..", "net.pcap")
        assert isinstance(decoded.error, Wrong)
        assert (decoded.error.path, decoded.error.offset) == ("magic_number", 0)

    def test_another_version(self) -> None:
        decoded = wirekit.decode(bytes.fromhex("a1b2c3d4 0003"), "net.pcap")
        assert str(decoded.error) == "net.pcap: header.major_version: expected 0x0002, found 0x0003, at byte 4 (0x4)"

    def test_frame_check_sequence_beside_the_link_type(self) -> None:
        header = wirekit.decode(bytes.fromhex(BIG_PCAP.replace("00000065", "24000001")), "net.pcap").value.header
        assert (header.link.fcs_length, header.link.fcs_present, header.link.type) == (2, True, 1)

    @pytest.mark.parametrize("order", ORDERS)
    def test_nested_packets(self, order: str) -> None:
        data = pcap(ethernet(), ethernet(trailer="0000"), order=order)
        decoded = wirekit.decode(data, "net.pcap")
        assert decoded.clean
        assert [packet.captured_length for packet in decoded.value.packets] == [59, 61]
        assert decoded.value.packets[0].data.payload.payload.payload == b"hello"
        assert wirekit.encode("net.pcap", decoded.value) == data

    def test_a_cut_packet_is_no_damage_of_the_file(self) -> None:
        data = pcap({"data": "616263", "original_length": 5, "$keep": ["original_length"]}, link_type=147)
        decoded = wirekit.decode(data, "net.pcap")
        assert decoded.clean
        (check,) = decoded.checks
        assert (check.path, check.stored, check.computed) == ("packets[0].original_length", 5, 3)
        assert wirekit.encode("net.pcap", decoded.value) == data

    def test_more_captured_than_there_was(self) -> None:
        data = pcap({"data": "616263", "original_length": 2, "$keep": ["original_length"]}, link_type=147)
        decoded = wirekit.decode(data, "net.pcap")
        assert [check.status for check in decoded.checks] == ["bad"]
        assert wirekit.encode("net.pcap", decoded.value) == data

    @pytest.mark.parametrize("length", range(54))
    def test_a_packet_cut_within_its_headers_stays_as_it_is(self, length: int) -> None:
        cut = packet("net.ethernet", ethernet())[:length]
        data = pcap(cut, ethernet())
        decoded = wirekit.decode(data, "net.pcap")
        assert decoded.error is None
        first, second = decoded.value.packets
        assert first.data == cut
        assert second.data.payload.payload.payload == b"hello"
        assert [check.path for check in decoded.checks if check.status == "bad"] == ["packets[0].data"]
        assert wirekit.encode("net.pcap", decoded.value) == data

    def test_an_impossible_length(self) -> None:
        data = pcap(b"abc", link_type=147, order="be").replace(bytes.fromhex("00000003 00000003"), b"\x7f" * 8)
        decoded = wirekit.decode(data, "net.pcap")
        assert isinstance(decoded.error, Limit)
        assert (decoded.error.path, decoded.error.offset) == ("packets[0].captured_length", 32)

    @pytest.mark.parametrize("order", ORDERS)
    def test_cut_anywhere(self, order: str) -> None:
        data = pcap(ethernet(), b"abc", ethernet(), order=order)
        for length in range(len(data)):
            decoded = wirekit.decode(data[:length], "net.pcap")
            boundary = length in (24, 24 + 75, 24 + 75 + 19)
            assert (decoded.error is None) == boundary
            assert boundary or isinstance(decoded.error, Short)

    def test_whole_records_of_a_window(self) -> None:
        record = pcap(b"abc", link_type=147)[24:]
        for length in range(3 * len(record)):
            decoded = wirekit.decode((3 * record)[:length], "net.pcap.packets.le")
            assert decoded.error is None
            assert decoded.consumed == length - length % len(record)


class TestPcapng:
    def test_bytes(self) -> None:
        data = bytes.fromhex(LITTLE_PCAPNG)
        decoded = wirekit.decode(data, "net.pcapng")
        assert decoded.clean
        header, described, captured = decoded.value.sections[0].blocks
        assert (header.block_total_length, header.body.section_length) == (28, -1)
        assert described.body.options[0].value == {"binary": False, "exponent": 9}
        assert (captured.body.timestamp_low, captured.body.data, captured.body.original_length) == (250, b"abc", 5)
        assert wirekit.encode("net.pcapng", decoded.value) == data

    @pytest.mark.parametrize("order", ORDERS)
    @pytest.mark.parametrize("length", range(6))
    def test_padding(self, order: str, length: int) -> None:
        data = enhanced(order, bytes(length), 1)
        assert len(data) % 4 == 0
        decoded = wirekit.decode(data, f"net.pcapng.block.{order}")
        assert decoded.clean
        assert decoded.value.body.padding == bytes(-length % 4)

    def test_padding_follows_changed_data(self) -> None:
        value = wirekit.decode(enhanced("le", b"abc", 1), "net.pcapng.block.le").value
        value.body.data = b"abcde"
        changed = wirekit.decode(wirekit.encode("net.pcapng.block.le", value), "net.pcapng.block.le")
        assert changed.clean
        assert (changed.value.body.padding, changed.value.block_total_length) == (bytes(3), 40)

    def test_other_padding_than_zeros_is_kept(self) -> None:
        data = bytes.fromhex(LITTLE_PCAPNG.replace("616263 00", "616263 ff"))
        assert wirekit.encode("net.pcapng", wirekit.decode(data, "net.pcapng").value) == data

    def test_sections_of_both_byte_orders(self) -> None:
        parts = [section_header(order) + interface(order) + enhanced(order, b"abc", 1) for order in ("be", "le", "be")]
        data = b"".join(parts)
        decoded = wirekit.decode(data, "net.pcapng")
        assert decoded.clean
        orders = [section.byte_order.symbol for section in decoded.value.sections]
        assert orders == ["BIG_ENDIAN", "LITTLE_ENDIAN", "BIG_ENDIAN"]
        assert [len(section.blocks) for section in decoded.value.sections] == [3, 3, 3]
        assert wirekit.encode("net.pcapng", decoded.value) == data

    def test_options(self) -> None:
        options = [option(1, "grüß"), option(9, {"binary": True, "exponent": 10}), option(14, -7), option(0, "")]
        decoded = wirekit.decode(interface("be", 1, *options), "net.pcapng.block.be")
        assert decoded.clean
        decoded_options = decoded.value.body.options
        assert [each.code.symbol for each in decoded_options] == [
            "opt_comment",
            "if_tsresol",
            "if_tsoffset",
            "opt_endofopt",
        ]
        assert [each.length for each in decoded_options] == [6, 1, 8, 0]
        assert decoded_options[0].value == "grüß"
        assert decoded_options[2].value == -7

    def test_an_option_that_is_too_short_stays_as_it_is(self) -> None:
        data = interface("be", 1, option(14, "0102"))
        decoded = wirekit.decode(data, "net.pcapng.block.be")
        assert decoded.error is None
        assert decoded.value.body.options[0].value == b"\1\2"
        assert [(check.kind, check.status) for check in decoded.checks if check.status != "ok"] == [("layout", "bad")]

    @pytest.mark.parametrize("kind", [4, 10, 0xBAD, 0x80000001])
    def test_blocks_whose_content_is_not_known_are_gaps(self, kind: int) -> None:
        data = block("le", kind, "0102030405060708")
        decoded = wirekit.decode(data, "net.pcapng.block.le")
        assert [(gap.offset, gap.length) for gap in decoded.gaps] == [(8, 8)]
        assert wirekit.encode("net.pcapng.block.le", decoded.value) == data

    def test_the_second_length_is_verified(self) -> None:
        data = enhanced("le", b"abc", 1)[:-4] + bytes.fromhex("20000000")
        decoded = wirekit.decode(data, "net.pcapng.block.le")
        (bad,) = (check for check in decoded.checks if check.status == "bad")
        assert (bad.path, bad.stored, bad.computed) == ("block_total_length_again", 32, 36)
        assert wirekit.encode("net.pcapng.block.le", decoded.value) == data

    @pytest.mark.parametrize("length", range(5))
    def test_simple_packets(self, length: int) -> None:
        data = block("le", "SIMPLE_PACKET", {"data": "61" * length})
        assert len(data) == 16 + length + -length % 4
        decoded = wirekit.decode(data, "net.pcapng.block.le")
        assert decoded.clean
        assert (decoded.value.body.original_length, decoded.value.body.data) == (length, b"a" * length)

    def test_a_cut_simple_packet_has_its_padding_in_it(self) -> None:
        data = bytes.fromhex("00000003 00000014 000005dc 61626300 00000014")
        decoded = wirekit.decode(data, "net.pcapng.block.be")
        assert decoded.clean
        assert decoded.value.body.data == b"abc\0"
        assert wirekit.encode("net.pcapng.block.be", decoded.value) == data

    def test_the_obsolete_packet(self) -> None:
        data = block("be", "PACKET", {"timestamp_low": 9, "data": "616263"})
        decoded = wirekit.decode(data, "net.pcapng.block.be")
        assert decoded.clean
        assert (decoded.value.body.drops_count, decoded.value.body.data) == (0xFFFF, b"abc")

    def test_statistics(self) -> None:
        body = {"timestamp_high": 1, "timestamp_low": 2, "options": [option(4, 77), option(5, 0)]}
        decoded = wirekit.decode(block("be", "INTERFACE_STATISTICS", body), "net.pcapng.block.be")
        assert decoded.clean
        assert decoded.value.body.options[0].value == 77

    @pytest.mark.parametrize("order", ORDERS)
    def test_cut_anywhere(self, order: str) -> None:
        parts = [section_header(order, option(2, "x")), interface(order, 1, option(9, {"exponent": 9}))]
        parts += [enhanced(order, b"abcde", 1), block(order, 4, "00000000")]
        data = b"".join(parts)
        boundaries = {sum(map(len, parts[:number])) for number in range(len(parts) + 1)}
        for length in range(len(data)):
            decoded = wirekit.decode(data[:length], "net.pcapng")
            assert decoded.error is None or isinstance(decoded.error, WireError)
            assert (decoded.error is None) == (length in boundaries)
            blocks = wirekit.decode(data[:length], f"net.pcapng.blocks.{order}")
            assert blocks.error is None
            assert blocks.consumed == max(boundary for boundary in boundaries if boundary <= length)
