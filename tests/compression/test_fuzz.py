"""Any bytes give data or one of our errors, whatever the codec."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wirekit import compression
from wirekit.compression import Decompression, compress, decompress
from wirekit.errors import Short, WireError

LIMITS = Decompression(size=1 << 20)
PLAIN = [
    b"",
    b"a",
    b"the quick brown fox jumps over the lazy dog. " * 30,
    random.Random(2).randbytes(3000),
    bytes(70_000),
]
ROUNDS = 300


def attempt(codec: str, data: bytes, size: int | None) -> None:
    if size is None and codec == "lz4-block":
        size = 1000
    try:
        output = decompress(codec, data, size=size, limits=LIMITS)
    except WireError as caught:
        error = caught
    else:
        assert len(output) <= LIMITS.size
        assert codec == "none" or size in (None, len(output))
        return
    assert error.reason
    assert error.offset is not None
    assert 0 <= error.offset <= len(data)
    if isinstance(error, Short):
        assert error.needed > error.available >= 0


@pytest.mark.parametrize("codec", compression.names())
@settings(deadline=None, derandomize=True)
@given(data=st.binary(max_size=300), size=st.none() | st.integers(-1, 1 << 33))
def test_random_bytes(codec: str, data: bytes, size: int | None) -> None:
    attempt(codec, data, size)


@pytest.mark.parametrize("codec", compression.names())
def test_random_bytes_behind_a_real_beginning(codec: str) -> None:
    chance = random.Random(f"{codec} beginning")
    starts = [compress(codec, plain)[:cut] for plain in PLAIN for cut in (4, 7, 10, 16, 20, 35)]
    for _ in range(ROUNDS):
        attempt(codec, chance.choice(starts) + chance.randbytes(chance.randrange(60)), chance.choice([None, 0, 1350]))


@pytest.mark.parametrize("codec", compression.names())
def test_mutated_data(codec: str) -> None:
    chance = random.Random(f"{codec} mutation")
    seeds = [(compress(codec, plain), len(plain)) for plain in PLAIN]
    for _ in range(ROUNDS):
        original, length = chance.choice(seeds)
        data = bytearray(original)
        for _ in range(chance.choice([1, 1, 1, 2, 5])):
            at = chance.randrange(min(len(data), 60) + 1) if chance.random() < 0.7 else chance.randrange(len(data) + 1)
            match chance.randrange(5):
                case 0:
                    data[at : at + 1] = bytes([chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)])])
                case 1:
                    del data[at : at + chance.randrange(1, 9)]
                case 2:
                    data[at:at] = chance.randbytes(chance.randrange(1, 9))
                case 3:
                    data[at : at + 4] = chance.choice(
                        [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", bytes(4), b"\x00\x00\x00\x80"]
                    )
                case 4:
                    data += data[at : at + chance.randrange(200)]
        attempt(codec, bytes(data), chance.choice([None, length, length, length + 1]))
