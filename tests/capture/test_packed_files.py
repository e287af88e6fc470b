"""Compressed capture files: they give the packets of the plain file, or an error."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import random
import struct
import threading
from functools import partial
from pathlib import Path
from typing import Any

import lz4.frame
import pytest
import zstandard

from tests.capture.capture_bytes import FRAME, Write, read, whole
from tests.net.building import (
    pcap,
)
from wirekit.capture.files import (
    check_capture,
    is_capture,
    open_capture,
)
from wirekit.capture.files.unpacking import PZSTD
from wirekit.errors import Limit, Wrong
from wirekit.wire import Limits

PACK = {
    "gzip": gzip.compress,
    "zstd": zstandard.compress,
    "xz": lzma.compress,
    "bzip2": partial(bz2.compress, compresslevel=1),  # a cut file yields whole blocks: here of 100 kB
    "lz4": lz4.frame.compress,
}


@pytest.mark.parametrize("name", PACK)
class TestCompressed:
    def test_whole(self, write: Write, name: str) -> None:
        data, _ = whole("le", "pcapng")
        expected, pack = read(write(data)), PACK[name]
        assert read(write(pack(data))) == expected
        assert read(write(pack(data[:99]) + pack(data[99:]))) == expected
        assert is_capture(pack(data))

    def test_cut(self, write: Write, name: str) -> None:
        data = pcap(*(random.Random(number).randbytes(1000) for number in range(300)), link_type=147)
        expected, _ = read(write(data))
        packed = PACK[name](data)
        for length in range(2000, len(packed), 54321):
            try:
                packets, damage = read(write(packed[:length]))
            except Wrong as error:
                packets, damage = [], error
            assert packets == expected[: len(packets)]
            assert len(packets) >= (length - 200_000) // 1016
            assert isinstance(damage, Wrong)
            assert damage.expected == f"a whole {name} file"

    @pytest.mark.parametrize("tail", [b"\1", b"no capture"])
    def test_with_something_else_behind_it(self, write: Write, name: str, tail: bytes) -> None:
        data, _ = whole("le", "pcapng")
        packets, damage = read(write(PACK[name](data) + tail))
        assert packets == read(write(data))[0]
        assert isinstance(damage, Wrong)
        assert damage.expected == f"a whole {name} file"
        assert damage.actual.startswith("one that decompresses only in part (")

    def test_that_grows_beyond_the_limit(self, write: Write, name: str) -> None:
        path = write(PACK[name](pcap(bytes(100_000), link_type=147)))
        with pytest.raises(Limit) as caught:
            open_capture(path, limits=Limits(decompressed=99_999))
        assert caught.value.limit == "decompressed"

    def test_that_grows_beyond_the_ratio(self, write: Write, name: str) -> None:
        path = write(PACK[name](pcap(bytes(17 << 20), link_type=147)))
        with pytest.raises(Limit) as caught:
            open_capture(path, limits=Limits(ratio=100))
        assert caught.value.limit == "decompression_ratio"
        try:
            open_capture(path, limits=Limits(ratio=caught.value.actual)).close()
        except Limit as error:
            assert error.actual > error.allowed  # noqa: PT017  # it need not be raised
        smaller = write(PACK[name](pcap(bytes(1 << 20), link_type=147)))
        open_capture(smaller, limits=Limits(ratio=100)).close()


class TestPacked:
    def test_xz_with_padding(self, write: Write) -> None:
        data, _ = whole("le", "pcapng")
        assert read(write(lzma.compress(data[:99]) + bytes(8) + lzma.compress(data[99:]) + bytes(4))) == read(
            write(data)
        )

    @pytest.mark.parametrize("length", [2, 10, 17])
    def test_cut_at_its_beginning(self, write: Write, length: int) -> None:
        with pytest.raises(Wrong, match="a whole gzip file"):
            open_capture(write(gzip.compress(FRAME)[:length]))

    def test_of_something_else(self, write: Write) -> None:
        with pytest.raises(Wrong, match="a pcap or pcapng file"):
            open_capture(write(gzip.compress(b"hello world")))

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
    def test_from_a_pipe(self, tmp_path: Path) -> None:
        data, _ = whole("le", "pcap")
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_bytes, args=(data,))
        writer.start()
        packets, damage = read(pipe)
        writer.join()
        assert (len(packets), damage) == (3, None)


def test_of_pzstd(write: Write) -> None:
    """It writes a skippable frame with the size before each frame."""

    def pack(data: bytes) -> bytes:
        frame = zstandard.compress(data)
        return PZSTD + struct.pack("<II", 4, len(frame)) + frame

    data, _ = whole("le", "pcapng")
    packed = pack(data[:99]) + pack(data[99:])
    assert read(write(packed)) == read(write(data))
    assert is_capture(packed)
    with pytest.raises(Wrong, match="a whole zstd file"):
        read(write(packed[:50]))


def test_checking_a_compressed_capture_does_not_decompress_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good, other = tmp_path / "good.pcap.gz", tmp_path / "other.gz"
    good.write_bytes(gzip.compress(whole("le", "pcap")[0]))
    other.write_bytes(gzip.compress(b"hello world"))
    with pytest.raises(Wrong) as direct:
        open_capture(other)
    with pytest.raises(Wrong) as checked:
        check_capture(other)
    assert str(checked.value) == str(direct.value)

    def copied(*_: object) -> Any:
        raise AssertionError("it is decompressed")

    monkeypatch.setattr("wirekit.capture.files.opening._copied", copied)
    check_capture(good)
