"""What many pieces at once give is what one call gives for each; and all that is not usual is left to that."""

import random
import sys

import pytest

from wirekit import compression_quick
from wirekit.compression import Decompression, compress, decompress, names
from wirekit.compression_quick import pieces
from wirekit.errors import WireError
from wirekit.wire.stream import Allowance, Limits

LIMITS = Limits()
QUICK = ["gzip", "snappy", "xerial", "kafka-snappy", "kafka-lz4", "kafka-lz4-v0"]
PLAIN = [b"", b"x", b"some text, " * 200, bytes(3_000), random.Random(1).randbytes(3_000), b"blocks of it " * 9_000]


@pytest.fixture(params=["isal", "zlib"], autouse=True)
def _with_and_without_the_faster_library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "isal":
        pytest.importorskip("isal")
    else:
        monkeypatch.setitem(sys.modules, "isal", None)
    compression_quick._gzip.cache_clear()


def all_of(codec: str, data: list[bytes], limits: Limits = LIMITS) -> list[bytes | None]:
    ends = [sum(map(len, data[: number + 1])) for number in range(len(data))]
    allowance = Allowance(limits, 1 << 40)  # no total
    return list(pieces(codec, memoryview(b"".join(data)), [0, *ends[:-1]], ends, allowance))


def one_by_one(codec: str, data: bytes, limits: Limits = LIMITS) -> bytes | None:
    try:
        return decompress(codec, data, limits=Decompression(limits.decompressed, limits.ratio))
    except WireError:
        return None


@pytest.mark.parametrize("codec", QUICK)
def test_usual_pieces_are_all_opened(codec: str) -> None:
    assert all_of(codec, [compress(codec, plain) for plain in PLAIN[1:]]) == PLAIN[1:]


@pytest.mark.parametrize("codec", [name for name in names() if name not in (*QUICK, "lz4-block")])
def test_other_codecs_are_left_to_decompress(codec: str) -> None:
    assert all_of(codec, [compress(codec, b"any")]) == [None]


@pytest.mark.parametrize("codec", QUICK)
def test_damaged_and_extended_data_never_decompresses_differently(codec: str) -> None:
    chance = random.Random(7)
    data = [compress(codec, plain) for plain in PLAIN[:4]]
    odd = [a + b for a in data for b in (*data, b"\0", a[-8:])]
    odd += [each[: chance.randrange(len(each))] for each in data for _ in range(50)]
    for _ in range(1_000):
        each = bytearray(chance.choice(data))
        each[chance.randrange(len(each))] ^= 1 << chance.randrange(8)
        odd.append(bytes(each))
    for each, output in zip(odd, all_of(codec, odd), strict=True):
        assert output is None or output == one_by_one(codec, each), each.hex()


@pytest.mark.parametrize("codec", QUICK)
@pytest.mark.parametrize("limits", [Limits(decompressed=2_199), Limits(decompressed=2_200), Limits(ratio=3)])
def test_limits_are_exact(codec: str, limits: Limits) -> None:
    data = [compress(codec, plain) for plain in (*PLAIN, bytes(100_000))]
    for each, output in zip(data, all_of(codec, data, limits), strict=True):
        assert output is None or output == one_by_one(codec, each, limits)
