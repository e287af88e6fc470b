"""Captures that have only the first bytes of each packet, as ``tcpdump -s`` makes them."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("numba")

import wirekit
from tests.capture.second_parser import packets, write
from tests.conftest import FIXTURES
from tests.road.law import assert_same

CAPTURES = {
    "jmq4-odd.pcap": 96,
    "kafka-0.8.2.2-4-clients.pcapng": 128,
    "kafka-0.9.0.1-2-produce.pcapng": 128,
    "kafka-0.10.2.2-2-produce.pcapng": 96,
    "kafka-0.10.2.2-4-clients.pcapng": 128,
    "pulsar-encryption.pcap": 192,
    "pulsar-comp_zlib.pcap": 192,
}
"""The snap length with which no header of a frame is cut."""
COLUMNS = ["connection_id", "api", "version", "correlation_id", "outcome", "request_bytes", "response_bytes"]


def snapped(name: str, length: int, directory: Path, *, handshakes: bool = True) -> Path:
    cut = [each._replace(data=each.data[:length]) for each in packets(FIXTURES / "pcap" / name)]
    return write(directory / name, cut[0 if handshakes else len(cut) // 3 :])


def calls(path: Path) -> list[tuple[str, ...]]:
    rows = wirekit.read(str(path), table="calls", columns=COLUMNS).read_all().to_pylist()
    return sorted(tuple(map(str, row.values())) for row in rows)


@pytest.mark.parametrize("name", CAPTURES)
def test_all_calls_are_found(name: str, tmp_path: Path) -> None:
    whole = calls(snapped(name, 1 << 16, tmp_path))
    assert calls(snapped(name, CAPTURES[name], tmp_path)) == whole


@pytest.mark.parametrize("handshakes", [True, False])
@pytest.mark.parametrize("name", CAPTURES)
def test_both_roads_read_them(name: str, handshakes: bool, tmp_path: Path) -> None:
    path = snapped(name, CAPTURES[name], tmp_path, handshakes=handshakes)
    rows = assert_same(path, windows=(1 << 26, path.stat().st_size // 3))
    assert any("snap length" in row for row in rows["quarantine"])
