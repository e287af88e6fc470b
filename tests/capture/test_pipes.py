"""A capture that comes through a pipe: the same items as of a file, each as soon as it is there."""

from __future__ import annotations

import gzip
import re
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import FIXTURES
from wirekit.capture.files import Capture, Packet, open_capture, piped_capture
from wirekit.errors import Misuse, Short, Wrong

PCAP, PCAPNG = FIXTURES / "pcap" / "pulsar-batch.pcap", FIXTURES / "pcap" / "kafka-0.8.2.2-2-produce.pcapng"


_INDEX = re.compile(r"\[\d+\]")  # of a record, counted from where its window begins


class Pipe(RawIOBase):
    """Gives bytes in pieces of a size, as a pipe does that somebody writes to."""

    def __init__(self, data: bytes, size: int) -> None:
        self.data, self.size, self.position = data, size, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self.data[self.position : self.position + min(self.size, len(buffer))]
        buffer[: len(piece)] = piece
        self.position += len(piece)
        return len(piece)


def items(capture: Capture) -> tuple[list[str], str]:
    with capture:
        texts = list(map(str, capture.items()))
        return texts, _INDEX.sub("[]", str(capture.damage))


def of_file(path: Path, data: bytes) -> tuple[list[str], str]:
    path.write_bytes(data)
    return items(open_capture(path, name="-"))


@pytest.mark.parametrize("size", [7, 100, 4096, 1 << 20])
@pytest.mark.parametrize("path", [PCAP, PCAPNG], ids=lambda path: path.suffix[1:])
def test_pieces_of_any_size(path: Path, size: int) -> None:
    piped = items(piped_capture(BufferedReader(Pipe(path.read_bytes(), size)), "-"))
    assert piped == items(open_capture(path))


@pytest.mark.parametrize("path", [PCAP, PCAPNG], ids=lambda path: path.suffix[1:])
def test_packets_come_before_more_is_waited_for(path: Path) -> None:
    pipe = Pipe(path.read_bytes()[:3000], 10)
    packets: list[Packet] = []
    behind: list[tuple[int, int]] = []

    def waiting() -> None:
        behind.append((pipe.position, len(packets)))

    with piped_capture(BufferedReader(pipe, 1), "-", waiting=waiting) as capture:
        for packet in capture.packets():
            packets.append(packet)
    padding = 8  # behind a packet of pcapng: to a multiple of 4 bytes, and the length of its block again
    for there, count in behind:
        assert count >= sum(each.offset + len(each.data) + padding <= there - 64 for each in packets)
    assert packets


@pytest.mark.parametrize("cut", [30, 500, 1999])
def test_cut_and_damaged(cut: int, tmp_path: Path) -> None:
    for data in (PCAP.read_bytes()[:cut], PCAP.read_bytes()[:cut] + b"\xff" * 300 + PCAP.read_bytes()[cut:]):
        assert items(piped_capture(BufferedReader(Pipe(data, 50)), "-")) == of_file(tmp_path / "cut.pcap", data)


@pytest.mark.parametrize("at", [200, 20_000, 60_000])
def test_damaged_blocks(at: int, tmp_path: Path) -> None:
    data = bytearray(PCAPNG.read_bytes())
    data[at : at + 40] = bytes(40)
    piped = items(piped_capture(BufferedReader(Pipe(bytes(data), 5000)), "-"))
    assert piped == of_file(tmp_path / "damaged.pcapng", data)


def test_compressed(tmp_path: Path) -> None:
    packed = gzip.compress(PCAP.read_bytes())
    assert items(piped_capture(BufferedReader(Pipe(packed, 90)), "-")) == items(open_capture(PCAP))
    cut = packed[: len(packed) // 2]
    assert items(piped_capture(BufferedReader(Pipe(cut, 90)), "-")) == of_file(tmp_path / "cut.gz", cut)


def test_nothing_to_read() -> None:
    with pytest.raises(Short, match="the file is empty"):
        piped_capture(BufferedReader(Pipe(b"", 1)), "-")
    with pytest.raises(Wrong, match="a pcap or pcapng file"):
        piped_capture(BufferedReader(Pipe(b"something else, longer than a header of a capture file is", 7)), "-")


def test_little_is_held() -> None:
    packet = PCAP.read_bytes()[24:2385]
    pipe = Pipe(PCAP.read_bytes()[:24] + packet * 4000, 1 << 16)
    with piped_capture(BufferedReader(pipe), "-") as capture:
        most = max(len(capture._content._buffer) for _ in capture.packets())  # type: ignore[attr-defined]
        with pytest.raises(Misuse, match="has already been read"):
            capture.read(0, 1)
    assert pipe.position > 8 << 20
    assert most < 3 << 20
