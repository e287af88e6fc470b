"""Packets of captures in columns are those that the capture reader gives, whatever the file."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import wirekit
from tests.capture.second_parser import Packet, write
from wirekit.capture.columns import nanoseconds, packets, records
from wirekit.capture.files import Interface, Skipped, open_capture, segments
from wirekit.errors import Misuse, WireError

ROOT = Path(__file__).parents[2]
CAPTURES = sorted((ROOT / "fixtures" / "pcap").glob("*.pcap*"))
SHARED = sorted((ROOT.parent / "shared" / "captures").rglob("*.pcap*"))


def same_as_the_reader(path: Path) -> pa.RecordBatch:
    """Compares all that the reader tells of packets and segments."""
    batch, errors = packets(path.read_bytes())
    batch.validate(full=True)
    with open_capture(path) as capture:
        want = list(capture.packets())
        cut = list(segments(capture))
        assert (capture.damage is not None) == (errors.num_rows > 0)
    for name, column in [
        ("link_type", "link_type"),
        ("original_length", "original_length"),
    ]:
        assert batch[column].to_pylist() == [getattr(packet, name) for packet in want]
    assert batch["captured_length"].to_pylist() == [len(packet.data) for packet in want]
    times = batch["time"].cast(pa.int64()).to_pylist()
    assert [time for time in times if time is not None] == [
        packet.time_ns for packet, time in zip(want, times, strict=True) if time is not None
    ]
    rows = batch.select(["tcp.payload", "tcp.sequence_number", "tcp.acknowledgment_number"]).to_pylist()
    for row, segment in zip(rows, cut, strict=True):
        if isinstance(segment, Skipped):
            assert row["tcp.payload"] is None
        else:
            assert list(row.values()) == [segment.payload, segment.sequence, segment.acknowledgment]
    return batch


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_packets_of_captures(path: Path) -> None:
    assert same_as_the_reader(path).num_rows > 5


@pytest.mark.skipif(not SHARED, reason="there are no more captures here")
def test_packets_of_all_captures() -> None:
    for path in SHARED:
        same_as_the_reader(path)


def frame(payload: bytes) -> bytes:
    tcp = {"source_port": 1, "destination_port": 2, "sequence_number": 7, "payload": payload.hex()}
    ip = {"total_length": 40 + len(payload), "source": "00000001", "destination": "00000002", "payload": tcp}
    return wirekit.encode("net.ipv4", ip)


def interface(link: int, *options: dict[str, Any]) -> dict[str, Any]:
    return {"block_type": 1, "body": {"link_type": link, "options": [*options, {"code": 0, "value": ""}]}}


def packet(number: int, data: bytes, high: int = 0, low: int = 0) -> dict[str, Any]:
    header = {"interface_id": number, "timestamp_high": high, "timestamp_low": low}
    return {"block_type": 6, "body": {**header, "original_length": len(data), "data": data.hex(), "options": []}}


def simple(data: bytes, size: int) -> dict[str, Any]:
    return {"block_type": 3, "body": {"original_length": size, "data": data.hex()}}


def section(order: int, *blocks: dict[str, Any]) -> dict[str, Any]:
    return {"byte_order": order, "blocks": [{"block_type": 0x0A0D0D0A, "body": {"options": []}}, *blocks]}


BIG, LITTLE = 0x1A2B3C4D, 0x4D3C2B1A
TENTHS = {"code": 9, "value": {"binary": False, "exponent": 1}}
BINARY = {"code": 9, "value": {"binary": True, "exponent": 10}}
LATER = {"code": 14, "value": 100}


def ethernet(payload: bytes) -> bytes:
    return bytes(12) + b"\x08\x00" + frame(payload)


def several() -> bytes:
    """Two sections of both byte orders; interfaces of other link types and units."""
    first = section(
        BIG,
        interface(1, TENTHS),
        packet(0, ethernet(b"first"), 0, 15),
        interface(1, BINARY, LATER),
        packet(1, ethernet(b"second"), 0, 2048),
        packet(0, b"", 0, 20),
        interface(4711),
        packet(2, b"no idea", 1, 2),
    )
    other = section(LITTLE, interface(1), simple(ethernet(b"third"), 59), packet(0, b"\x45", 0x7FFFFFFF, 0))
    return wirekit.encode("net.pcapng", {"sections": [first, other]})


def test_sections_and_interfaces_each_have_their_own_rules(tmp_path: Path) -> None:
    path = tmp_path / "several.pcapng"
    path.write_bytes(several())
    batch = same_as_the_reader(path)
    assert batch["interface"].to_pylist() == [0, 1, 0, 2, 0, 0]
    assert batch["tcp.payload"].to_pylist() == [b"first", b"second", None, None, b"third", None]
    times = batch["time"].cast(pa.int64()).to_pylist()
    assert times == [1_500_000_000, 102_000_000_000, 2_000_000_000, ((1 << 32) + 2) * 1000, None, None]
    assert batch["data"].to_pylist() == [None, None, b"", b"no idea", None, b"\x45"]
    assert batch["data.ok"].to_pylist() == [True, True, False, True, True, False]


def test_scanned_columns_are_released_while_the_caller_works_on_the_packets(tmp_path: Path) -> None:
    path = write(tmp_path / "many.pcap", [Packet(number, 0, b"") for number in range(20_000)])
    with open_capture(path) as capture:
        before = pa.total_allocated_bytes()
        for part in records(capture, capture.limits, []):
            column_bytes = sum(part.rows[name].nbytes for name in ("captured_length", "original_length", "bytes"))
            assert pa.total_allocated_bytes() - before < 1.5 * column_bytes


@pytest.mark.parametrize("data", [several(), CAPTURES[0].read_bytes()[:300]], ids=["pcapng", "pcap"])
def test_any_damage_gives_packets_before_it_and_errors(data: bytes, tmp_path: Path) -> None:
    chance = random.Random(11)
    damaged = [data[:size] for size in range(0, len(data), 7)]
    for _ in range(100):
        changed = bytearray(data)
        for _ in range(chance.randrange(1, 4)):
            changed[chance.randrange(len(changed))] = chance.choice([1, 0x7E, 0x7F, 0xFF])
        damaged.append(bytes(changed))
    path = tmp_path / "damaged"
    for each in damaged:
        path.write_bytes(each)
        try:
            with open_capture(path) as capture:
                want = list(capture.packets())
        except WireError:
            continue
        batch, errors = packets(each)
        batch.validate(full=True)
        errors.validate(full=True)
        assert not any(errors[field.name].null_count for field in errors.schema if not field.nullable)
        end = min(errors["offset"].to_pylist(), default=len(each))
        rows = batch.select(["@offset", "captured_length", "link_type"]).to_pylist()
        assert [(row["captured_length"], row["link_type"]) for row in rows if row["@offset"] < end] == [
            (len(first.data), first.link_type) for first in want if first.offset < end
        ]


def test_a_packet_of_an_interface_that_is_not_described_is_an_error() -> None:
    data = wirekit.encode("net.pcapng", {"sections": [section(BIG, packet(0, b"x"), interface(1), packet(0, b"y"))]})
    batch, errors = packets(data)
    assert batch["data"].to_pylist() == [b"y"]
    assert errors["path"].to_pylist() == ["body.interface_id"]


def test_packet_times_follow_the_unit_of_their_interface() -> None:
    chance = random.Random(3)
    units = np.array([0, 1, 2**32, 2**62, 2**64 - 1, *(chance.getrandbits(64) for _ in range(50))], np.uint64)
    for binary in (False, True):
        for exponent in (0, 3, 6, 9, 10, 12, 33, 34, 63, 127):
            for shift in (0, -5, 2**40):
                described = Interface(1, 0, binary, exponent, shift)
                times, fits = nanoseconds(units, described)
                for unit, time, fit in zip(units.tolist(), times.tolist(), fits.tolist(), strict=True):
                    exact = described.nanoseconds(unit)
                    assert (time == exact) if fit else abs(exact) >= 2**63


def test_reading_bytes_that_are_no_capture_is_misuse() -> None:
    for data in (b"", b"GET / HTTP", bytes(100)):
        with pytest.raises(Misuse, match="pcap or pcapng"):
            packets(data)
    with pytest.raises(Misuse, match="reads bytes, not str"):
        packets("capture.pcap")


def test_rows_of_packets_have_times_as_integers() -> None:
    data = CAPTURES[0].read_bytes()
    batch, _ = packets(data)
    assert [row.time for row in wirekit.rows(batch, ["time"])] == batch["time"].cast(pa.int64()).to_pylist()
