"""Codecs have names, and cost nothing before they are used."""

import subprocess
import sys

import pytest

from wirekit import compression
from wirekit.compression import Codec, Output, codecs
from wirekit.errors import Misuse

NAMES = {
    "none", "gzip", "zlib", "zip", "snappy", "xerial", "kafka-snappy", "snappy-framed",
    "lz4-frame", "kafka-lz4", "kafka-lz4-v0", "lz4-block", "zstd",
}  # fmt: skip


def test_every_codec_has_a_name_and_a_description() -> None:
    assert set(compression.names()) == NAMES
    for name in NAMES:
        assert compression.codec(name).name == name
        assert compression.codec(name).description


def test_an_unknown_name_is_the_callers_fault_and_the_known_ones_are_listed() -> None:
    for call in (
        lambda: compression.codec("brotli"),
        lambda: compression.compress("brotli", b""),
        lambda: compression.decompress("brotli", b""),
    ):
        with pytest.raises(Misuse, match=r"no codec 'brotli'; choose from none, gzip, .*zstd"):
            call()


def test_data_that_is_not_contiguous_bytes_is_the_callers_fault() -> None:
    for data in (memoryview(b"abcd")[::2], "text", None):
        with pytest.raises(Misuse, match="pass bytes"):
            compression.decompress("gzip", data)  # type: ignore[arg-type]


def test_a_codec_of_another_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    def repeat(data: memoryview, output: Output) -> None:
        output.announce(data[0])
        output.add(bytes(data[1:2]) * data[0])

    monkeypatch.setattr(codecs, "_CODECS", dict(codecs._CODECS))
    compression.register(Codec("repeat", repeat, lambda data: bytes([len(data), data[0]]), "count and byte"))
    assert compression.decompress("repeat", compression.compress("repeat", b"aaa"), size=3) == b"aaa"
    with pytest.raises(Misuse, match="'repeat' already exists"):
        compression.register(compression.codec("repeat"))


def test_libraries_are_imported_by_the_codec_that_needs_them() -> None:
    script = """
import sys
import wirekit.compression, wirekit.checksums
heavy = {"lz4", "cramjam", "zstandard", "xxhash", "crc32c"}
print(sorted(heavy & set(sys.modules)))
wirekit.compression.compress("zstd", b"")
print(sorted(heavy & set(sys.modules)))
"""
    completed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert completed.stdout.splitlines() == ["[]", "['zstandard']"]
