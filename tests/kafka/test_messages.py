"""Message sets: magics, codecs, offsets, timestamps, and what stands at the end of a fetch."""

from __future__ import annotations

import zlib
from itertools import product
from typing import Any

import pytest

import wirekit
from tests.kafka.golden import DISK, message, message_set, sized
from wirekit.compression import compress, decompress
from wirekit.conversation import Message
from wirekit.protocols.kafka.reading import messages_of

SET = "kafka.message_set"
LARGEST = (1 << 63) - 1


def read(data: bytes) -> list[Message]:
    decoded = wirekit.decode(data, SET)
    assert decoded.clean
    return list(messages_of(decoded))


def offsets(*entries: dict[str, Any]) -> list[int | str | None]:
    return [each.offset for each in read(message_set(*entries))]


def inner(*numbers: int, magic: int) -> list[dict[str, Any]]:
    return [message(b"m%d" % number, offset=number, magic=magic) for number in numbers]


def test_magic_decides_message_by_message() -> None:
    """A fetch response of any version may hold both, compressed or not."""
    data = message_set(
        message(b"old", offset=1),
        message(b"new", offset=2, magic=1, timestamp=5),
        message(inner(3, magic=0), offset=3, codec="GZIP"),
        message(inner(0, magic=1), offset=4, magic=1, codec="GZIP"),
    )
    decoded = read(data)
    assert [(m.offset, m.timestamp, m.timestamp_type, m.codec) for m in decoded] == [
        (1, None, None, "none"),
        (2, 5, "CreateTime", "none"),
        (3, None, None, "gzip"),
        (4, 1_000, "CreateTime", "gzip"),
    ]
    assert all(m.check == "ok" for m in decoded)


def test_crc_is_of_the_message_without_the_crc() -> None:
    data = message_set(message(b"v", magic=1), message(b"w", magic=1))
    size = int.from_bytes(data[8:12], "big")
    assert int.from_bytes(data[12:16], "big") == zlib.crc32(data[16 : 12 + size])


def test_smallest_messages() -> None:
    """14 bytes of magic 0, 22 of magic 1: key and value null."""
    assert int.from_bytes(message_set(message(None))[8:12], "big") == 14
    assert int.from_bytes(message_set(message(None, magic=1))[8:12], "big") == 22


@pytest.mark.parametrize(("key", "value"), [(None, None), (None, b""), (b"", None), (b"", b"")])
@pytest.mark.parametrize("magic", [0, 1])
def test_null_is_not_empty(key: bytes | None, value: bytes | None, magic: int) -> None:
    (decoded,) = read(message_set(message(value, magic=magic, key=None if key is None else key.hex())))
    assert (decoded.key, decoded.value) == (key, value)


@pytest.mark.parametrize("codec", ["GZIP", "SNAPPY", "LZ4"])
@pytest.mark.parametrize("magic", [0, 1])
def test_compressed_set_is_built_and_opened(codec: str, magic: int) -> None:
    data = message_set(message(inner(0, 1, 2, magic=magic), offset=2, magic=magic, codec=codec))
    decoded = read(data)
    assert [m.value for m in decoded] == [b"m0", b"m1", b"m2"]
    assert {(m.codec, m.attributes, m.check) for m in decoded} == {(codec.lower(), 0, "ok")}
    assert wirekit.encode(SET, wirekit.decode(data, SET).value) == data


def test_changed_content_is_compressed_anew_with_lengths_and_crcs() -> None:
    data = message_set(message(inner(0, 1, magic=1), offset=1, magic=1, codec="LZ4"))
    value = wirekit.decode(data, SET).value
    content = value.messages[0].message.value.content
    content.messages[1].message.value = b"something longer than before"
    decoded = read(wirekit.encode(SET, value))
    assert [m.value for m in decoded] == [b"m0", b"something longer than before"]


class TestOffsets:
    """Inner offsets of magic 1 count back from the wrapper's; those of magic 0 are absolute."""

    def test_magic_1_is_relative_to_the_last(self) -> None:
        assert offsets(message(inner(0, 1, 2, magic=1), offset=39, magic=1, codec="GZIP")) == [37, 38, 39]

    def test_magic_0_is_absolute(self) -> None:
        assert offsets(message(inner(37, 38, 39, magic=0), offset=39, codec="GZIP")) == [37, 38, 39]

    def test_holes_that_compaction_left(self) -> None:
        """The last inner offset counts, not the number of messages."""
        assert offsets(message(inner(0, 4, 9, magic=1), offset=39, magic=1, codec="GZIP")) == [30, 34, 39]

    @pytest.mark.parametrize(
        ("numbers", "wrapper", "expected"),
        [
            pytest.param((0, 1, 2), 0, [0, 1, 2], id="kafka-python-and-librdkafka"),
            pytest.param((0, 1, 2), 2, [0, 1, 2], id="java-0.10-and-scala"),
            pytest.param((0, 0, 0), 2, [2, 2, 2], id="zeros"),
        ],
    )
    def test_produce_requests_of_magic_1(self, numbers: tuple[int, ...], wrapper: int, expected: list[int]) -> None:
        assert offsets(message(inner(*numbers, magic=1), offset=wrapper, magic=1, codec="GZIP")) == expected

    def test_produce_requests_of_magic_0(self) -> None:
        assert offsets(message(inner(0, 0, 0, magic=0), offset=2, codec="GZIP")) == [0, 0, 0]

    def test_are_not_known_when_the_last_inner_message_is_not(self) -> None:
        whole = message_set(*inner(0, 1, 2, magic=1))
        entry = wrapper(compress("gzip", whole[:-1]), offset=39, magic=1, codec="GZIP")
        decoded = messages_of(wirekit.decode(message_set(entry), SET))
        assert [(m.offset, m.value) for m in decoded] == [(None, b"m0"), (None, b"m1")]

    @pytest.mark.parametrize(
        ("numbers", "wrapper", "expected"),
        [
            pytest.param((9, 0), LARGEST, [None, LARGEST], id="sum"),
            pytest.param((0, -1), LARGEST, [None, None], id="base"),
            pytest.param((0, LARGEST), -LARGEST, [None, None], id="negative-base"),
            pytest.param((9, 0), LARGEST - 9, [LARGEST, LARGEST - 9], id="largest"),
        ],
    )
    def test_are_not_known_when_they_exceed_64_bits(
        self, numbers: tuple[int, ...], wrapper: int, expected: list[int | None]
    ) -> None:
        data = message_set(message(inner(*numbers, magic=1), offset=wrapper, magic=1, codec="GZIP"))
        assert [each.offset for each in read(data)] == expected
        columns = pytest.importorskip("wirekit.protocols.kafka.columns")
        assert columns.messages(data)[0]["offset"].to_pylist() == expected


class TestTimestamps:
    def test_log_append_time_of_the_wrapper_holds_for_all_inside(self) -> None:
        wrapper = message(
            inner(0, 1, magic=1), offset=1, magic=1, codec="GZIP", timestamp=77, timestamp_type="LogAppendTime"
        )
        decoded = read(message_set(wrapper))
        assert [(m.timestamp, m.timestamp_type, m.attributes) for m in decoded] == [(77, "LogAppendTime", 0)] * 2

    def test_create_time_of_the_wrapper_leaves_those_inside(self) -> None:
        decoded = read(message_set(message(inner(0, magic=1), magic=1, codec="GZIP", timestamp=77)))
        assert [(m.timestamp, m.timestamp_type) for m in decoded] == [(1_000, "CreateTime")]

    def test_magic_0_inside_magic_1_has_none(self) -> None:
        """The log cleaner of 0.10.0 wrote such sets (KAFKA-4298)."""
        decoded = read(message_set(message(inner(0, magic=0), offset=8, magic=1, codec="GZIP", timestamp=77)))
        assert [(m.offset, m.timestamp, m.timestamp_type) for m in decoded] == [(8, None, None)]

    @pytest.mark.parametrize(("stored", "shown"), [(-1, None), (-5, -5), (0, 0)])
    def test_minus_one_is_none_and_other_negatives_are_kept(self, stored: int, shown: int | None) -> None:
        """A broker of 0.10.2.2 stored -5."""
        (decoded,) = read(message_set(message(b"", magic=1, timestamp=stored)))
        assert (decoded.timestamp, decoded.timestamp_type) == (shown, "CreateTime")

    def test_bit_3_means_nothing_in_magic_0(self) -> None:
        (decoded,) = read(message_set(message(b"", timestamp_type="LogAppendTime")))
        assert (decoded.timestamp_type, decoded.attributes) == (None, 8)


class TestCodecs:
    """LZ4's header checksum is wrong in magic 0; snappy comes framed and raw."""

    @pytest.mark.parametrize(("magic", "checksum"), [(0, 0x1A), (1, 0x82)])
    def test_lz4_header_checksum_is_built_by_magic(self, magic: int, checksum: int) -> None:
        data = message_set(message(inner(0, magic=magic), magic=magic, codec="LZ4"))
        frame = wirekit.decode(data, SET).value.messages[0].message.value.compressed
        assert frame[:7] == bytes.fromhex("04224d186040") + bytes([checksum])

    @pytest.mark.parametrize("log", ["0.8.2.2-t-lz4-0.log", "0.10.2.2-t-fmt09-0.log"])
    def test_lz4_of_magic_0_as_brokers_store_it(self, log: str) -> None:
        entries = wirekit.decode((DISK / log).read_bytes(), "kafka.log_segment").value.messages
        frames = [e.message.value.compressed for e in entries if e.message.attributes.codec == 3]
        assert {frame[6] for frame in frames} == {0x1A}

    @pytest.mark.parametrize("checksum", [0x1A, 0x82, 0x00])
    def test_magic_0_reads_any_lz4_header_checksum(self, checksum: int) -> None:
        frame = bytearray(compress("kafka-lz4", message_set(*inner(0, magic=0))))
        frame[6] = checksum
        data = message_set(wrapper(bytes(frame), magic=0, codec="LZ4"))
        assert [m.value for m in read(data)] == [b"m0"]
        assert wirekit.encode(SET, wirekit.decode(data, SET).value) == data

    def test_magic_1_checks_the_lz4_header_checksum(self) -> None:
        frame = compress("kafka-lz4-v0", message_set(*inner(0, magic=1)))
        decoded = wirekit.decode(message_set(wrapper(frame, magic=1, codec="LZ4")), SET)
        assert [(check.kind, check.status) for check in decoded.checks if check.status == "bad"] == [
            ("decompression", "bad")
        ]

    @pytest.mark.parametrize("codec", ["snappy", "xerial"])
    def test_snappy_is_raw_or_framed(self, codec: str) -> None:
        data = message_set(wrapper(compress(codec, message_set(*inner(0, magic=1))), magic=1, codec="SNAPPY"))
        assert [m.value for m in read(data)] == [b"m0"]
        assert wirekit.encode(SET, wirekit.decode(data, SET).value) == data

    def test_snappy_is_built_framed(self) -> None:
        data = message_set(message(inner(0, magic=1), magic=1, codec="SNAPPY"))
        compressed = wirekit.decode(data, SET).value.messages[0].message.value.compressed
        assert compressed.startswith(b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")
        assert decompress("xerial", compressed) == message_set(*inner(0, magic=1))

    def test_sets_compressed_twice_are_opened(self) -> None:
        """Readers of 0.8 and 0.9 do so, and kafka-python once produced such sets on retry."""
        within = message(inner(0, 1, magic=1), offset=1, magic=1, codec="SNAPPY")
        data = message_set(message([within], offset=9, magic=1, codec="GZIP"))
        assert [(m.offset, m.codec) for m in read(data)] == [(8, "snappy"), (9, "snappy")]

    def test_value_that_does_not_open_is_given_as_it_stands(self) -> None:
        decoded = wirekit.decode(message_set(wrapper(b"no gzip", magic=1, codec="GZIP", offset=4)), SET)
        (opened_message,) = messages_of(decoded)
        assert (opened_message.offset, opened_message.value, opened_message.codec, opened_message.check) == (
            4,
            b"no gzip",
            "gzip",
            "bad",
        )
        assert "decompression" in {check.kind for check in decoded.checks if check.status == "bad"}

    def test_codec_that_nobody_knows(self) -> None:
        entry = message(b"?")
        entry["message"]["attributes"]["codec"] = 5
        (decoded,) = read(message_set(entry))
        assert (decoded.value, decoded.codec, decoded.attributes) == (b"?", "codec 5", 5)


def wrapper(compressed: bytes, *, magic: int, codec: str, offset: int = 0) -> dict[str, Any]:
    """A compressed message around bytes that are compressed already."""
    entry = message(b"", offset=offset, magic=magic, codec=codec)
    entry["message"]["value"] = {"compressed": compressed.hex()}
    return entry


class TestDamagedContent:
    """The messages before damage are decoded, whatever follows them."""

    entries = inner(*range(20), magic=1)

    def damaged(self, codec: str, cut: int, magic: int = 1) -> bytes:
        contents = compress(codec, message_set(*inner(*range(20), magic=magic)))
        first = wrapper(contents[:cut], magic=magic, codec="LZ4" if "lz4" in codec else codec.upper(), offset=19)
        return message_set(first, message(b"after", offset=20, magic=magic))

    @pytest.mark.parametrize("codec", ["gzip", "kafka-lz4"])
    def test_without_the_trailer(self, codec: str) -> None:
        decoded = wirekit.decode(self.damaged(codec, -4), SET)
        assert [(each.value, each.check) for each in messages_of(decoded)] == [
            *((b"m%d" % number, "ok") for number in range(20)),
            (b"after", "ok"),
        ]
        (bad,) = (check for check in decoded.checks if check.status == "bad")
        assert (bad.path, bad.kind) == ("messages[0].message.value", "decompression")
        assert bad.note.endswith("; 730 bytes decompressed")
        assert decoded.gaps == []

    @pytest.mark.parametrize("magic", [0, 1])
    def test_cut(self, magic: int) -> None:
        """The offsets of magic 1 count from the last message, which is missing."""
        data = self.damaged("gzip", 60, magic)
        decoded = wirekit.decode(data, SET)
        *found, after = messages_of(decoded)
        assert 0 < len(found) < 20
        assert [each.value for each in found] == [b"m%d" % number for number in range(len(found))]
        assert [each.offset for each in found] == [None if magic else number for number in range(len(found))]
        assert (after.value, after.offset) == (b"after", 20)
        assert sum(check.status == "bad" for check in decoded.checks) == 1
        assert wirekit.encode(SET, decoded.value) == data
        assert wirekit.encode(SET, wirekit.to_json(decoded.value)) == data

    @pytest.mark.parametrize("cut", [0, 5, 11])
    def test_a_wrapper_without_a_message_before_the_damage_is_one_message(self, cut: int) -> None:
        found, after = messages_of(wirekit.decode(self.damaged("gzip", cut), SET))
        assert (found.check, found.codec, after.value) == ("bad", "gzip", b"after")
        assert len(found.value) == cut

    def test_a_cut_snappy_block_hides_no_message_after_it(self) -> None:
        """It announces more than its bytes can yield, and more than the limit on the ratio allows."""
        block = compress("snappy", bytes(100_000))[:4]
        data = message_set(wrapper(block, magic=1, codec="SNAPPY", offset=19), message(b"after", offset=20, magic=1))
        found, after = messages_of(wirekit.decode(data, SET))
        assert (found.check, found.value, after.value) == ("bad", block, b"after")

    def test_changed_content_replaces_the_damaged_bytes(self) -> None:
        value = wirekit.decode(self.damaged("gzip", 60), SET).value
        inside = value.messages[0].message.value
        inside.content.messages.pop()
        del inside.compressed
        assert wirekit.decode(wirekit.encode(SET, value), SET).clean


class TestTail:
    """max_bytes of a fetch cuts the last message anywhere: that is no error. Damage before it is one."""

    whole = message_set(message(b"first", offset=1, magic=1), message(b"second", offset=2, magic=1))
    start = len(message_set(message(b"first", offset=1, magic=1)))

    @pytest.mark.parametrize("end", range(start, len(whole)))
    def test_cut_anywhere(self, end: int) -> None:
        decoded = wirekit.decode(self.whole[:end], SET)
        assert decoded.clean
        assert decoded.value.partial == self.whole[self.start : end]
        assert [m.value for m in messages_of(decoded)] == [b"first"]
        assert wirekit.encode(SET, decoded.value) == self.whole[:end]

    @pytest.mark.parametrize("filler", [b"\0", b"\xff", b"\x09"], ids=["zeros", "ones", "magic-9"])
    def test_overflow_stub_of_later_brokers(self, filler: bytes) -> None:
        stub = b"\xff" * 8 + (1000).to_bytes(4, "big") + filler * 50
        decoded = wirekit.decode(self.whole + stub, SET)
        assert decoded.clean
        assert len(decoded.value.messages) == 2
        assert decoded.value.partial == stub

    def test_in_a_fetch_response(self) -> None:
        key = "kafka.fetch.response.v0"
        cut = self.whole[:-3]
        head = bytes.fromhex("00000001 00000001 0001 74 00000001 00000000 0000 0000000000000009")
        data = sized(head + sized(cut))
        decoded = wirekit.decode(data, key)
        assert decoded.clean
        record_set = decoded.value.body.responses[0].partition_responses[0].record_set
        assert len(record_set.messages) == 1
        assert record_set.partial == cut[self.start :]
        assert wirekit.encode(key, decoded.value) == data

    @pytest.mark.parametrize("size", [13, 3, 0, -5])
    def test_size_that_no_message_has(self, size: int) -> None:
        data = self.whole + bytes(8) + size.to_bytes(4, "big", signed=True) + bytes(30)
        decoded = wirekit.decode(data, SET)
        assert isinstance(decoded.error, wirekit.Wrong)
        assert (decoded.error.path, decoded.error.offset) == ("messages[2].message_size", len(self.whole) + 8)
        assert len(decoded.value.messages) == 3
        assert len(list(messages_of(decoded))) == 2

    def test_magic_that_no_message_has(self) -> None:
        data = bytearray(self.whole)
        data[self.start + 16] = 9
        decoded = wirekit.decode(bytes(data), SET)
        assert isinstance(decoded.error, wirekit.Wrong)
        assert (decoded.error.path, decoded.error.offset) == ("messages[1].message.magic", self.start + 16)
        assert [m.value for m in messages_of(decoded)] == [b"first"]

    def test_size_below_the_fields(self) -> None:
        """A whole message of magic 1 cannot have 14 bytes: that is damage, not a cut tail."""
        data = bytearray(self.whole)
        data[self.start + 8 : self.start + 12] = (14).to_bytes(4, "big")
        decoded = wirekit.decode(bytes(data), SET)
        assert isinstance(decoded.error, wirekit.Short)
        assert decoded.error.path.startswith("messages[1].message.")


def test_bad_crc_is_reported_for_its_message_only() -> None:
    data = bytearray(message_set(message(b"a", offset=1), message(b"b", offset=2)))
    data[-1] ^= 1
    decoded = messages_of(wirekit.decode(bytes(data), SET))
    assert [(m.offset, m.check) for m in decoded] == [(1, "ok"), (2, "bad")]


@pytest.mark.parametrize("codec", ["GZIP", "SNAPPY", "LZ4"])
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("broken", list(product([False, True], repeat=3)), ids=str)
def test_a_message_has_the_worst_verdict_of_its_own_and_its_wrappers(
    broken: tuple[bool, bool, bool], magic: int, codec: str
) -> None:
    """The CRC of a wrapper covers what is in it; so say both readers, one by one and in columns."""
    entry = message(b"bottom", magic=magic)
    for level, wrong in enumerate(reversed(broken)):
        if level:
            entry = message([entry, message(b"beside", magic=magic)], magic=magic, codec=codec)
        if wrong:
            entry["message"] |= {"crc": 7, "$keep": ["crc"]}
    data = message_set(entry, message(b"outside", magic=magic))
    checks = [(m.value, m.check) for m in messages_of(wirekit.decode(data, SET))]
    worst = ["bad" if any(broken[:depth]) else "ok" for depth in range(4)]
    assert checks == [(b"bottom", worst[3]), (b"beside", worst[2]), (b"beside", worst[1]), (b"outside", "ok")]
    columns = pytest.importorskip("wirekit.protocols.kafka.columns")
    batch, _ = columns.messages(data)
    assert list(zip(batch["value"].to_pylist(), batch["check"].to_pylist(), strict=True)) == checks


def test_wrong_crc_is_written_when_asked_for() -> None:
    value = wirekit.decode(message_set(message(b"a")), SET).value
    value.messages[0].message.crc = 7
    value.messages[0].message.keep("crc")
    decoded = wirekit.decode(wirekit.encode(SET, value), SET)
    assert decoded.value.messages[0].message.crc == 7
    assert [check.status for check in decoded.checks] == ["bad"]


def test_reserved_bits_are_kept() -> None:
    entry = message(b"")
    entry["message"]["attributes"]["reserved"] = 9
    data = message_set(entry)
    assert wirekit.encode(SET, wirekit.decode(data, SET).value) == data
    assert [m.attributes for m in read(data)] == [0x90]


def test_nesting_has_a_limit() -> None:
    entry = message(b"bottom", magic=1)
    for _ in range(9):
        entry = message([entry], magic=1, codec="GZIP")
    decoded = wirekit.decode(message_set(entry), SET)
    assert isinstance(decoded.error, wirekit.Limit)
    assert decoded.error.limit == "depth"
