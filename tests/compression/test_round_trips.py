"""What a codec writes, it reads; and it writes the same bytes every time."""

import random

import pytest

from wirekit import compression
from wirekit.compression import Decompression

NOISE = random.Random(8).randbytes(200_000)
SAMPLES = {
    "empty": b"",
    "one byte": b"a",
    "words": b"the quick brown fox jumps over the lazy dog. " * 40,
    "zeros": bytes(50_000),
    "noise over many blocks": NOISE,
    "noise, then zeros": NOISE[:70_000] + bytes(70_000),
    "many steps of a stream": NOISE[:5000] * 300 + NOISE,
    "32 KiB exactly": NOISE[: 32 * 1024],
    "64 KiB and one": NOISE[: 64 * 1024 + 1],
}
WIDE = Decompression(ratio=1_000_000)


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("codec", compression.names())
def test_decompressing_compressed_data_gives_the_data_back(codec: str, sample: str) -> None:
    plain = SAMPLES[sample]
    compressed = compression.compress(codec, plain)
    assert type(compressed) is bytes
    back = compression.decompress(codec, compressed, size=len(plain), limits=WIDE)
    assert type(back) is bytes
    assert back == plain


@pytest.mark.parametrize("codec", [name for name in compression.names() if name != "lz4-block"])
def test_size_is_needed_only_by_lz4_blocks(codec: str) -> None:
    for plain in SAMPLES.values():
        assert compression.decompress(codec, compression.compress(codec, plain), limits=WIDE) == plain


@pytest.mark.parametrize("codec", compression.names())
def test_writing_is_reproducible(codec: str) -> None:
    for plain in SAMPLES.values():
        assert compression.compress(codec, plain) == compression.compress(codec, plain)


@pytest.mark.parametrize("codec", compression.names())
def test_any_contiguous_buffer_will_do(codec: str) -> None:
    plain = SAMPLES["words"]
    compressed = compression.compress(codec, memoryview(bytearray(plain)))
    assert compressed == compression.compress(codec, plain)
    inside = memoryview(b"..." + compressed + b"...")[3:-3]
    for data in (inside, bytearray(compressed), memoryview(compressed)):
        assert compression.decompress(codec, data, size=len(plain)) == plain


def test_uncompressed_data_does_not_look_at_the_size() -> None:
    # Every chunk of a chunked Pulsar message carries the size of the whole.
    assert compression.decompress("none", b"chunk", size=2**40) == b"chunk"
