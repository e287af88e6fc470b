"""Damaged, cut and lengthened data is an error of ours, and says where."""

import random

import pytest

from wirekit import compression
from wirekit.compression import (
    LZ4_MAGIC,
    Decompression,
    compress,
    decompress,
    decompress_until_damage,
    lz4_header_checksum,
)
from wirekit.errors import Limit, Short, WireError, Wrong

WORDS = b"the quick brown fox jumps over the lazy dog. " * 6
CODECS = [name for name in compression.names() if name != "none"]


@pytest.mark.parametrize("codec", CODECS)
def test_cut_anywhere(codec: str) -> None:
    data = compress(codec, WORDS)
    for length in range(len(data)):
        # With its size known, a zlib stream may lack its final block and checksum: Java's do.
        if codec == "zlib":
            with pytest.raises((Short, Wrong)):
                decompress(codec, data[:length])
        else:
            with pytest.raises((Short, Wrong)):
                decompress(codec, data[:length], size=len(WORDS))


@pytest.mark.parametrize("codec", [name for name in CODECS if name not in ("xerial", "kafka-snappy", "snappy-framed")])
def test_cut_anywhere_with_the_size_unknown(codec: str) -> None:
    # Snappy's streams have no end mark: cut between two blocks they are whole.
    if codec == "lz4-block":
        return
    data = compress(codec, WORDS)
    for length in range(len(data)):
        with pytest.raises((Short, Wrong)):
            decompress(codec, data[:length])


@pytest.mark.parametrize("codec", [name for name in CODECS if name != "lz4-block"])
def test_what_comes_before_a_cut_is_the_beginning_of_the_data(codec: str) -> None:
    data = compress(codec, WORDS)
    plain = [decompress_until_damage(codec, data[:length])[0] for length in range(len(data))]
    assert all(WORDS.startswith(each) for each in plain)
    assert plain == sorted(plain, key=len)
    assert decompress_until_damage(codec, data) == (WORDS, None)


@pytest.mark.parametrize("codec", ["gzip", "zlib"])
@pytest.mark.parametrize("size", [300, 20_000, 1_000_000])
def test_all_bytes_before_damage_are_decompressed(codec: str, size: int) -> None:
    """The libraries return nothing of the slice of input that has the damage."""
    words = random.Random(1).randbytes(size)
    data = bytearray(compress(codec, words))
    data[-1] ^= 1
    plain, error = decompress_until_damage(codec, data)
    assert plain == words
    assert isinstance(error, Wrong)
    plain, error = decompress_until_damage(codec, compress("gzip", words) + b"garbage!" * 1000)
    assert (codec, plain) in {("gzip", words), ("zlib", b"")}
    assert isinstance(error, Wrong)


@pytest.mark.parametrize("codec", ["xerial", "kafka-lz4", "snappy-framed"])
def test_whole_blocks_before_damage_are_decompressed(codec: str) -> None:
    words = random.Random(1).randbytes(200_000)
    data = compress(codec, words)
    plain, error = decompress_until_damage(codec, data[:-100])
    assert words.startswith(plain)
    assert len(plain) >= 128 * 1024
    assert error is not None


@pytest.mark.parametrize("size", [7, 1 << 20, 1 << 60])
def test_a_wrong_size_in_an_lz4_frame_loses_no_bytes(size: int) -> None:
    """Kafka's consumers ignore it."""
    frame = b"\x68\x40" + size.to_bytes(8, "little")
    data = LZ4_MAGIC + frame + bytes([lz4_header_checksum(frame)]) + compress("kafka-lz4", WORDS)[7:]
    plain, error = decompress_until_damage("kafka-lz4", data)
    assert plain == WORDS
    assert isinstance(error, Wrong)


@pytest.mark.parametrize("block", ["ffff03", "8080808004"])
def test_a_size_that_a_cut_block_cannot_yield_is_damage(block: str) -> None:
    """64 KiB, and 1 GiB, which alone would exceed the limit."""
    start = bytes.fromhex(block)
    data = compress("xerial", WORDS) + len(start).to_bytes(4, "big") + start
    for _ in range(2):
        with pytest.raises((Limit, Wrong)):
            decompress("xerial", data)
        plain, error = decompress_until_damage("xerial", data)
        assert plain == WORDS
        assert isinstance(error, Wrong)


def test_many_tiny_lz4_blocks_before_damage_take_few_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    import lz4.frame

    calls = 0

    class Counted(lz4.frame.LZ4FrameDecompressor):
        def decompress(self, data: bytes, max_length: int) -> bytes:
            nonlocal calls
            calls += 1
            plain: bytes = super().decompress(data, max_length)
            return plain

    monkeypatch.setattr(lz4.frame, "LZ4FrameDecompressor", Counted)
    words = random.Random(1).randbytes(20_000)
    blocks = b"".join(b"\x01\x00\x00\x80" + words[at : at + 1] for at in range(len(words)))
    data = compress("kafka-lz4", b"")[:7] + blocks + b"\xff\xff\xff\x7f"
    plain, error = decompress_until_damage("kafka-lz4", data)
    assert plain == words
    assert isinstance(error, Wrong)
    assert calls < 400


def test_a_limit_holds_before_damage_as_well() -> None:
    with pytest.raises(Limit):
        decompress_until_damage("gzip", compress("gzip", bytes(1 << 20))[:-8], limits=Decompression(size=1 << 16))


@pytest.mark.parametrize("codec", CODECS)
def test_followed_by_other_bytes(codec: str) -> None:
    for tail in (b"\x01", b"garbage!", *([] if codec == "gzip" else [bytes(8)])):  # zeros are padding in gzip
        with pytest.raises((Short, Wrong)):
            decompress(codec, compress(codec, WORDS) + tail, size=len(WORDS))


@pytest.mark.parametrize("codec", ["gzip", "zlib", "zip", "snappy-framed"])
def test_a_format_with_a_checksum_never_gives_other_data(codec: str) -> None:
    data = compress(codec, WORDS)
    for at in range(len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[at] ^= 1 << bit
            try:
                output = decompress(codec, damaged, size=len(WORDS))
            except WireError:
                continue
            assert output == WORDS, (at, bit)


@pytest.mark.parametrize("codec", CODECS)
def test_another_size_than_the_protocol_says(codec: str) -> None:
    data = compress(codec, WORDS)
    for size in (0, 1, len(WORDS) - 1, len(WORDS) + 1, 60_000):
        with pytest.raises(Wrong):
            decompress(codec, data, size=size)


def test_a_negative_size() -> None:
    with pytest.raises(Wrong, match="size of 0 or more, found -1"):
        decompress("zlib", b"", size=-1)


@pytest.mark.parametrize("codec", CODECS)
def test_noise(codec: str) -> None:
    noise = random.Random(5)
    for length in range(64):
        with pytest.raises((Short, Wrong, Limit)):
            decompress(codec, noise.randbytes(length), size=70_000_000 if length % 2 else 500)


@pytest.mark.parametrize(
    ("codec", "data", "words"),
    [
        ("gzip", b"garbage", "valid gzip data, found Error -3 while decompressing data: incorrect header check"),
        ("gzip", compress("gzip", b"x")[:-1], "a complete gzip member, found one cut after 20 bytes"),
        ("zlib", compress("zlib", b"x")[:-1], "a final block or flushed at its end, found neither after 8 bytes"),
        ("lz4-frame", b"garbage", "a valid LZ4 frame, found LZ4F_decompress failed with code: ERROR_frameType_unknown"),
        ("kafka-lz4", b"garbage", "the magic 04224d18 of an LZ4 frame, found 67617262"),
        ("snappy", b"\x05\x10hell", "a valid snappy block, found snappy: corrupt input"),
        (
            "snappy",
            compress("snappy-framed", b"hello"),
            "one raw snappy block, found a stream of snappy's framing format",
        ),
        ("snappy", compress("xerial", b"hello"), "one raw snappy block, found a stream of snappy-java"),
        ("xerial", b"\x05\x10hello..", "the magic 82534e4150505900 of snappy-java's stream"),
        ("zstd", b"garbage", "the magic 28b52ffd of a zstd frame, found 67617262"),
        ("zip", b"garbage", "a zip entry, 504b0304, found 67617262"),
    ],
)
def test_errors_name_the_expected_data_and_quote_the_library(codec: str, data: bytes, words: str) -> None:
    with pytest.raises(Wrong) as caught:
        decompress(codec, data)
    assert words in str(caught.value)


def test_errors_carry_where_the_data_stands() -> None:
    data = compress("xerial", b"x") + b"\x00\x00\x00\x09\x00"
    with pytest.raises(Short) as caught:
        decompress("xerial", data, protocol="kafka.message_set", path="messages[2].value", offset=1000, source=1)
    error = caught.value
    assert (error.protocol, error.path, error.offset, error.source) == (
        "kafka.message_set",
        "messages[2].value",
        1000 + len(data) - 1,
        1,
    )
    assert (error.needed, error.available) == (9, 1)


def test_errors_without_a_place_of_their_own_point_at_the_data() -> None:
    with pytest.raises(Wrong) as caught:
        decompress("lz4-block", b"\x50hell", size=5, offset=77)
    assert caught.value.offset == 77
