"""The framing around each codec, byte by byte."""

import gzip
import random
import struct
import zipfile
import zlib
from io import BytesIO

import cramjam
import lz4.frame
import pytest
import xxhash
import zstandard

from wirekit.compression import compress, decompress
from wirekit.errors import Misuse, Short, Wrong

NOISE = random.Random(3).randbytes(100_000)


class TestKafkaLz4:
    def test_header_checksums_of_both_magics(self) -> None:
        # Magic, FLG 60 (version 1, independent blocks, no sizes, no checksums), BD 40 (64 KiB), checksum, end mark.
        assert compress("kafka-lz4-v0", b"").hex() == "04224d1860401a00000000"
        assert compress("kafka-lz4", b"").hex() == "04224d1860408200000000"

    def test_the_wrong_one_covers_the_magic_too(self) -> None:
        assert xxhash.xxh32_intdigest(bytes.fromhex("04224d186040")) >> 8 & 0xFF == 0x1A
        assert xxhash.xxh32_intdigest(bytes.fromhex("6040")) >> 8 & 0xFF == 0x82

    def test_the_magics_differ_in_that_byte_only(self) -> None:
        old, new = compress("kafka-lz4-v0", NOISE), compress("kafka-lz4", NOISE)
        assert old[:6] + b"\x82" + old[7:] == new

    def test_blocks_are_of_64_kib(self) -> None:
        frame = compress("kafka-lz4", NOISE)
        # Noise does not compress: the high bit says that the block is stored.
        assert frame[7:11] == (0x8000_0000 | 65536).to_bytes(4, "little")

    @pytest.mark.parametrize("checksum", [0x00, 0x1A, 0x82, 0xFF])
    def test_any_header_checksum_is_read_for_magic_0(self, checksum: int) -> None:
        frame = bytearray(compress("kafka-lz4", b"message" * 9))
        frame[6] = checksum
        assert decompress("kafka-lz4-v0", frame) == b"message" * 9

    @pytest.mark.parametrize("options", [{}, {"store_size": False, "content_checksum": True}, {"block_checksum": True}])
    def test_longer_headers_are_repaired_too(self, options: dict) -> None:
        frame = bytearray(lz4.frame.compress(b"message" * 9, **options))
        frame[14 if frame[4] & 8 else 6] ^= 0x55
        assert decompress("kafka-lz4-v0", frame) == b"message" * 9

    def test_only_one_frame_and_no_skippable_one(self) -> None:
        frame = compress("kafka-lz4", b"x")
        skippable = bytes.fromhex("502a4d1803000000616263")
        for codec in ("kafka-lz4", "kafka-lz4-v0"):
            with pytest.raises(Wrong, match="nothing after the LZ4 frame"):
                decompress(codec, frame + frame)
            with pytest.raises(Wrong, match="magic"):
                decompress(codec, skippable + frame)
        assert decompress("lz4-frame", frame + skippable + frame) == b"xx"


class TestSnappy:
    def test_xerial_header_and_blocks(self) -> None:
        data = compress("xerial", NOISE)
        assert data[:16].hex() == "82534e41505059000000000100000001"
        sizes, at = [], 16
        while at < len(data):
            (length,) = struct.unpack_from(">i", data, at)
            sizes.append(len(decompress("snappy", data[at + 4 : at + 4 + length])))
            at += 4 + length
        assert sizes == [32768, 32768, 32768, 100_000 - 3 * 32768]

    def test_kafka_writes_xerial(self) -> None:
        assert compress("kafka-snappy", NOISE) == compress("xerial", NOISE)

    def test_kafka_reads_both(self) -> None:
        for codec in ("snappy", "xerial"):
            assert decompress("kafka-snappy", compress(codec, NOISE)) == NOISE

    def test_version_numbers_are_not_looked_at(self) -> None:
        # Redpanda writes them little-endian.
        data = compress("xerial", b"hello")
        assert decompress("kafka-snappy", data[:8] + bytes.fromhex("0100000001000000") + data[16:]) == b"hello"

    def test_joined_xerial_streams(self) -> None:
        assert decompress("xerial", compress("xerial", b"one") + compress("xerial", b"two")) == b"onetwo"

    def test_xerial_block_lengths(self) -> None:
        header = compress("xerial", b"")
        with pytest.raises(Wrong, match=r"block length.*found -1.*byte 16"):
            decompress("xerial", header + b"\xff\xff\xff\xff")
        with pytest.raises(Short, match=r"needs 9 bytes, 2 available.*byte 20"):
            decompress("xerial", header + b"\x00\x00\x00\x09\x01\x00")

    def test_framed_skips_skippable_chunks(self) -> None:
        data = compress("snappy-framed", b"hello")
        padding, comment = b"\xfe\x02\x00\x00\x00\x00", b"\x80\x03\x00\x00abc"
        assert decompress("snappy-framed", data + padding + comment + data) == b"hellohello"
        with pytest.raises(Wrong, match=r"type 2.*byte 23"):
            decompress("snappy-framed", data + b"\x02\x00\x00\x00")

    def test_framed_checks_the_crc_of_compressed_and_plain_chunks(self) -> None:
        for plain, kind in ((b"a" * 100, 0), (b"abc", 1)):
            data = bytearray(compress("snappy-framed", plain))
            assert data[10] == kind
            data[14] ^= 1
            with pytest.raises(Wrong, match=r"masked CRC-32C.*byte 14"):
                decompress("snappy-framed", data)

    def test_framed_chunks_hold_64_kib_at_most(self) -> None:
        for kind, body in ((0, bytes(cramjam.snappy.compress_raw(bytes(65537)))), (1, bytes(65537))):
            chunk = b"\xff\x06\x00\x00sNaPpY" + bytes([kind]) + (4 + len(body)).to_bytes(3, "little") + bytes(4) + body
            with pytest.raises(Wrong, match="at most 65536 bytes, found one of 65537"):
                decompress("snappy-framed", chunk)

    def test_a_raw_block_that_announces_more_than_it_can_hold(self) -> None:
        with pytest.raises(Wrong, match=r"at most 170 bytes .* 1000 announced"):
            decompress("snappy", bytes.fromhex("e807") + b"\x10hello")


class TestDeflate:
    @pytest.mark.parametrize("members", [[b"one"], [b""], [b"one", b"", b"two"]])
    @pytest.mark.parametrize("zeros", [1, 7, 8, 26, 4096])
    def test_zeros_behind_gzip_members_are_padding(self, members: list[bytes], zeros: int) -> None:
        data = b"".join(compress("gzip", member) for member in members)
        assert decompress("gzip", data + bytes(zeros)) == b"".join(members)
        for other in (b"\1", b"\x1f", compress("gzip", b"behind")):
            with pytest.raises(Wrong):
                decompress("gzip", data + bytes(zeros) + other)

    def test_gzip_has_no_clock_in_it_and_members_follow_each_other(self) -> None:
        assert compress("gzip", b"x")[4:8] == bytes(4)
        assert decompress("gzip", gzip.compress(b"one") + compress("gzip", b"") + compress("gzip", b"two")) == b"onetwo"
        large = compress("gzip", NOISE * 30)
        assert decompress("gzip", large + large) == NOISE * 60

    def test_java_streams_end_with_a_flush(self) -> None:
        engine = zlib.compressobj()
        data = engine.compress(NOISE) + engine.flush(zlib.Z_SYNC_FLUSH)
        assert data[-4:].hex() == "0000ffff"
        assert decompress("zlib", data) == NOISE
        assert decompress("zlib", data, size=len(NOISE)) == NOISE
        for size in (len(NOISE) - 1, len(NOISE) + 1):
            with pytest.raises(Wrong, match=f"expected {size} bytes"):
                decompress("zlib", data, size=size)

    def test_an_empty_flushed_stream(self) -> None:
        for data in ("789c000000ffff", "789c030000000001"):
            assert decompress("zlib", bytes.fromhex(data), size=0) == decompress("zlib", bytes.fromhex(data)) == b""

    def test_zip_entries_of_other_writers(self) -> None:
        for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            archive = BytesIO()
            with zipfile.ZipFile(archive, "w", method) as target:
                target.comment = b"a comment"
                target.writestr("any name", NOISE)
            assert decompress("zip", archive.getvalue()) == NOISE

    def test_zip_is_read_by_others_and_has_no_clock_in_it(self) -> None:
        with zipfile.ZipFile(BytesIO(compress("zip", NOISE))) as archive:
            (entry,) = archive.infolist()
            assert (entry.filename, entry.date_time) == ("0", (1980, 1, 1, 0, 0, 0))
            assert archive.read("0") == NOISE

    def test_zip_descriptor_without_its_signature(self) -> None:
        body = zlib.compress(b"hello", wbits=-15)
        sums = struct.pack("<III", zlib.crc32(b"hello"), len(body), 5)
        local = b"PK\x03\x04" + struct.pack("<5H12x2H", 20, 8, 8, 0, 0, 1, 0) + b"0"
        central = b"PK\x01\x02" + struct.pack("<6H", 20, 20, 8, 8, 0, 0) + sums + struct.pack("<H16x", 1) + b"0"
        end = b"PK\x05\x06" + bytes(18)
        assert decompress("zip", local + body + sums + central + end) == b"hello"
        with pytest.raises(Wrong, match="CRC-32"):
            decompress("zip", local + body + bytes(12) + central + end)

    def test_zip_of_two_entries_is_refused(self) -> None:
        archive = BytesIO()
        with zipfile.ZipFile(archive, "w") as target:
            target.writestr("0", b"one")
            target.writestr("1", b"two")
        with pytest.raises(Wrong, match="directory after one zip entry"):
            decompress("zip", archive.getvalue())


class TestZstd:
    def test_frames_with_and_without_their_size_and_skippable_ones(self) -> None:
        sized = compress("zstd", NOISE)
        stream = zstandard.ZstdCompressor(write_checksum=True).compressobj()
        unsized = stream.compress(b"one" * 1000) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        unsized += stream.compress(b"two" * 1000) + stream.flush()
        assert zstandard.frame_content_size(unsized) == -1
        skippable = bytes.fromhex("5f2a4d1803000000616263")
        assert decompress("zstd", sized + skippable + unsized) == NOISE + b"one" * 1000 + b"two" * 1000

    def test_a_frame_that_announces_more_than_its_blocks_can_hold(self) -> None:
        # Content size 256 + 0x1000, one raw block of 5 bytes.
        frame = bytes.fromhex("28b52ffd600010290000") + b"hello"
        with pytest.raises(Wrong, match=r"at most 5 bytes .* 4352 announced"):
            decompress("zstd", frame)

    def test_block_headers_are_walked(self) -> None:
        with pytest.raises(Wrong, match=r"reserved kind 3.*byte 6"):
            decompress("zstd", bytes.fromhex("28b52ffd20052f0000") + b"hello")
        with pytest.raises(Short, match=r"needs 5 bytes, 4 available.*byte 9"):
            decompress("zstd", bytes.fromhex("28b52ffd2005290000") + b"hell")

    def test_windows_above_8_mib_only_in_frames_that_say_their_size(self) -> None:
        parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=24, enable_ldm=True)
        plain = NOISE * 200
        sized = zstandard.ZstdCompressor(compression_params=parameters).compress(plain)
        assert decompress("zstd", sized, size=len(plain)) == plain


class TestLz4Block:
    def test_needs_its_size(self) -> None:
        with pytest.raises(Misuse, match="pass size="):
            decompress("lz4-block", compress("lz4-block", b"hello"))

    @pytest.mark.parametrize("size", [0, 4, 6, 1000])
    def test_size_must_be_right(self, size: int) -> None:
        with pytest.raises(Wrong):
            decompress("lz4-block", compress("lz4-block", b"hello"), size=size)

    def test_incompressible_data_is_one_literal_run(self) -> None:
        assert compress("lz4-block", b"hello") == b"\x50hello"
