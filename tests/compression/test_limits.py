"""Bombs are refused before they go off."""

import subprocess
import sys
import textwrap
import zlib

import pytest

from wirekit.compression import Codec, Decompression, Output, codecs, compress, decompress
from wirekit.errors import Limit, Misuse, Wrong

STREAMS = ["gzip", "zlib", "zip", "snappy", "xerial", "snappy-framed", "lz4-frame", "kafka-lz4", "lz4-block", "zstd"]
NO_RATIO = Decompression(ratio=1_000_000)


def bounded(size: int) -> Decompression:
    return Decompression(size=size, ratio=1_000_000)


@pytest.mark.parametrize("codec", STREAMS)
def test_size_limit_is_exact(codec: str) -> None:
    plain = b"some text, " * 30_000
    data = compress(codec, plain)
    size = len(plain) if codec == "lz4-block" else None
    assert decompress(codec, data, size=size, limits=bounded(len(plain))) == plain
    with pytest.raises(Limit) as caught:
        decompress(codec, data, size=size, limits=bounded(len(plain) - 1))
    assert (caught.value.limit, caught.value.allowed) == ("decompressed_size", len(plain) - 1)
    assert caught.value.actual >= len(plain)


@pytest.mark.parametrize("codec", STREAMS)
def test_ratio_limit_counts_only_above_the_floor(codec: str) -> None:
    plain = bytes(200_000)
    data = compress(codec, plain)
    size = len(plain) if codec == "lz4-block" else None
    with pytest.raises(Limit) as caught:
        decompress(codec, data, size=size, limits=Decompression(ratio=10))
    assert (caught.value.limit, caught.value.allowed) == ("decompression_ratio", 10)
    assert caught.value.actual > 10
    assert decompress(codec, data, size=size, limits=Decompression(ratio=10, ratio_floor=len(plain))) == plain


def test_a_piece_that_exceeded_a_limit_is_not_decompressed_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine that decodes a refused frame again, or asks for its spans, gets the same error in its own place."""
    sizes: list[int] = []

    def counted(data: memoryview, output: Output) -> None:
        sizes.append(len(data))
        output.announce(100)

    monkeypatch.setitem(codecs._CODECS, "counted", Codec("counted", counted, bytes, ""))
    errors = []
    for offset in (5, 7):
        with pytest.raises(Limit) as caught:
            decompress("counted", b"bomb", limits=bounded(99), path="value", offset=offset)
        errors.append((caught.value, caught.value.path, caught.value.offset, str(caught.value)))
    assert sizes == [4]
    assert errors[0][0] is not errors[1][0]
    assert [error[1:3] for error in errors] == [("value", 5), ("value", 7)]
    assert errors[1][3] == "value: 100 exceeds the limit of 99 (decompressed_size), at byte 7 (0x7)"
    for data, limits in ((b"tomb", bounded(99)), (b"bomb", bounded(98))):
        with pytest.raises(Limit):
            decompress("counted", data, limits=limits)
    assert sizes == [4, 4, 4]
    assert decompress("counted", b"bomb", limits=bounded(100)) == b""


@pytest.mark.parametrize("codec", ["gzip", "zstd", "lz4-block"])
def test_the_error_does_not_depend_on_the_call_before(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same piece with other limits: engines that decode a frame differ in the memory that is left."""
    plain = bytes(250_000)
    data, size = compress(codec, plain), len(plain) if codec == "lz4-block" else None
    bounds = [Decompression(most, ratio) for most in (100, 65_536, 65_537, 249_999, 300_000) for ratio in (20, 21)]
    bounds += [Decompression(300_000, 20, floor) for floor in (0, 249_999)]

    def error(limits: Decompression) -> tuple[str, object, object]:
        with pytest.raises(Limit) as caught:
            decompress(codec, data, size=size, limits=limits)
        return caught.value.limit, caught.value.allowed, caught.value.actual

    for before in bounds:
        for limits in bounds:
            monkeypatch.setattr(codecs, "_refused", None)
            alone = error(limits)
            error(before)
            assert error(limits) == alone, (before, limits)


def test_an_announced_ratio_is_reported_rounded_up() -> None:
    data = compress("lz4-block", b"hello")
    with pytest.raises(Limit) as caught:
        decompress("lz4-block", data, size=100_000 * len(data) + 1)
    assert (caught.value.limit, caught.value.actual) == ("decompression_ratio", 100_001)


def test_small_data_may_shrink_as_much_as_it_likes() -> None:
    data = compress("zstd", bytes(64 * 1024))
    assert len(data) < 64
    assert decompress("zstd", data) == bytes(64 * 1024)


@pytest.mark.parametrize(
    ("codec", "data", "announced"),
    [
        ("snappy", bytes.fromhex("ffffffff0f00"), 2**32 - 1),
        ("kafka-snappy", bytes.fromhex("ffffffff0f00"), 2**32 - 1),
        ("xerial", compress("xerial", b"") + bytes.fromhex("00000006ffffffff0f00"), 2**32 - 1),
        ("lz4-frame", bytes.fromhex("04224d186840000000000000001000"), 2**60),
        ("kafka-lz4-v0", bytes.fromhex("04224d186840000000000000001000"), 2**60),
        ("zstd", bytes.fromhex("28b52ffde00000000000000010010000"), 2**60),
        ("zip", b"PK\x03\x04" + bytes(18) + b"\xff\xff\xff\xff" + bytes(40), 2**32 - 1),
    ],
)
def test_announced_sizes_are_refused_before_anything_is_read(codec: str, data: bytes, announced: int) -> None:
    with pytest.raises(Limit) as caught:
        decompress(codec, data)
    assert (caught.value.limit, caught.value.actual) == ("decompressed_size", announced)


@pytest.mark.parametrize("codec", ["lz4-block", "zlib", "zstd", "snappy", "gzip"])
def test_a_size_from_the_protocol_is_refused_likewise(codec: str) -> None:
    with pytest.raises(Limit) as caught:
        decompress(codec, compress(codec, b"hello"), size=2**31)
    assert (caught.value.limit, caught.value.actual) == ("decompressed_size", 2**31)
    # As in the recorded message that crashes a client: LZ4 with a size of 100 MB.
    with pytest.raises(Limit) as caught:
        decompress(codec, compress(codec, b"hello"), size=100_000_000)
    assert caught.value.limit == "decompression_ratio"


def test_a_size_that_the_format_cannot_yield_is_not_allocated_either() -> None:
    with pytest.raises(Wrong, match="at most 1530 bytes"):
        decompress("lz4-block", b"\x50hello", size=60_000)
    for codec, data in (("lz4-block", bytes(9_000_000)), ("lz4-block", bytes(3000))):
        with pytest.raises(Wrong):
            decompress(codec, data, size=2**31 if len(data) > 10_000 else 800_000, limits=bounded(2**40))


def test_windows_of_frames_without_a_size_are_bounded() -> None:
    # Window descriptor 0xa8: 2 GiB.
    with pytest.raises(Limit) as caught:
        decompress("zstd", bytes.fromhex("28b52ffd00a8290000") + b"hello")
    assert (caught.value.limit, caught.value.allowed, caught.value.actual) == ("zstd_window", 8 * 2**20, 2**31)


def test_limits_that_make_no_sense() -> None:
    for wrong in ({"size": -1}, {"ratio": 0}, {"ratio_floor": -1}):
        with pytest.raises(Misuse):
            Decompression(**wrong)


def test_a_zlib_stream_is_not_read_past_its_expected_size() -> None:
    bomb = zlib.compress(bytes(10_000_000))
    with pytest.raises(Wrong, match="expected 5 bytes of decompressed data, found at least 6"):
        decompress("zlib", bomb, size=5)


BOMBS = """
    import resource, struct, zlib
    import lz4.block, lz4.frame
    from wirekit.compression import Decompression, compress, decompress, names
    from wirekit.errors import Limit, Wrong

    def zeros(engine):
        pieces = [engine.compress(bytes(1 << 20)) for _ in range(300)]
        return b"".join(pieces) + engine.flush()

    def chunk(last, kind, size):
        return (size << 3 | kind << 1 | last).to_bytes(3, "little")

    zeros_lz4 = lz4.frame.LZ4FrameCompressor()
    lz4_bomb = zeros_lz4.begin() + b"".join(zeros_lz4.compress(bytes(1 << 20)) for _ in range(300)) + zeros_lz4.flush()
    deflated = zeros(zlib.compressobj(wbits=-15))
    frame = bytes.fromhex("28b52ffd0058")
    snappy_bomb = bytes.fromhex("80808008") + b"\\x00a" + bytes.fromhex("fe0100") * 262_143
    bombs = {
        "gzip": zeros(zlib.compressobj(wbits=31)),
        "zlib": zeros(zlib.compressobj()),
        "zip": b"PK\\x03\\x04" + struct.pack("<5H12x2H", 20, 8, 8, 0, 0, 1, 0) + b"0" + deflated,
        "lz4-frame": lz4_bomb,
        "kafka-lz4": lz4_bomb,
        "kafka-lz4-v0": lz4_bomb,
        "snappy": snappy_bomb,
        "kafka-snappy": snappy_bomb,
        "xerial": compress("xerial", b"") + len(snappy_bomb).to_bytes(4, "big") + snappy_bomb,
        "snappy-framed": compress("snappy-framed", b"") + compress("snappy-framed", bytes(65536))[10:] * 4000,
        "zstd": frame + (chunk(0, 1, 131072) + b"a") * 10_000 + chunk(1, 1, 5) + b"a",
        "lz4-block": b"\\x1fa\\x01\\x00" + b"\\xff" * 1_000_000 + b"\\x00\\x50hello",
    }
    sized = {"lz4-block": 255_000_000}
    assert set(bombs) == set(names()) - {"none"}
    for codec in names():
        decompress(codec, compress(codec, b"warm"), size=4)

    with open("/proc/self/statm") as status:
        used = int(status.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (40 << 20), resource.RLIM_INFINITY))
    for codec, bomb in bombs.items():
        try:
            decompress(codec, bomb, size=sized.get(codec), limits=Decompression(size=8 << 20))
        except Limit as error:
            assert error.limit == "decompressed_size", (codec, error)
        else:
            raise AssertionError(codec)
        try:
            decompress(codec, bomb, size=60_000)
        except (Limit, Wrong):
            pass
        else:
            raise AssertionError(codec)
    for codec, size, data in [
        ("lz4-block", 2**31, b"\\x50hello"),
        ("lz4-block", 2**31, bytes(1000)),
        ("snappy", None, bytes.fromhex("ffffffff0f00")),
        ("snappy", None, bytes.fromhex("80808080") + b"\\x01" + bytes(3_000_000)),
        ("zstd", None, bytes.fromhex("28b52ffde00000000000000010010000")),
        ("zstd", None, frame + (chunk(0, 1, 131072) + b"a") * 10_000),
    ]:
        try:
            decompress(codec, data, size=size)
        except (Limit, EOFError, Wrong):
            pass
        else:
            raise AssertionError(codec)
    print("all refused")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the address space can be limited on Linux only")
def test_bombs_of_every_codec_stay_within_the_memory_of_the_limit() -> None:
    completed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(BOMBS)], capture_output=True, text=True, check=False
    )
    assert (completed.stdout, completed.stderr) == ("all refused\n", "")
