"""Captures as rows: every segment once, the same flow in both directions, notes on the rest, never an exception."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.conftest import FIXTURES
from tests.net.building import ethernet, fragments, ipv4, packet, pcap, tcp
from tests.pipeline.helpers import keep_packets
from wirekit.capture.files import open_capture, segments
from wirekit.capture.tcp import Segment
from wirekit.pipeline import roads, serial
from wirekit.pipeline.inputs import Input, Job, find_inputs
from wirekit.pipeline.packet_rows import OTHER_PORT, Note, flow_of
from wirekit.pipeline.packets import packet_batches
from wirekit.pipeline.roads import by_columns, captures_by_columns, unpacked_size
from wirekit.tables.columns import PACKETS

CAPTURE = FIXTURES / "pcap" / "kafka-0.9.0.1-4-clients.pcapng"


def table(*paths: Path, ports: frozenset[int] = frozenset()) -> pa.Table:
    return pa.Table.from_batches(packet_batches(find_inputs(paths), ports=ports), PACKETS.schema)


def notes(rows: pa.Table) -> list[tuple[Note, int, int, bytes]]:
    return [
        (Note.loads(row["note"]), row["position"], row["length"], row["payload"])
        for row in rows.to_pylist()
        if row["note"] is not None
    ]


def test_every_segment_is_a_row_as_it_stands_in_the_file() -> None:
    rows = [row for row in table(CAPTURE).to_pylist() if row["note"] is None]
    with open_capture(CAPTURE) as capture:
        expected = list(segments(capture))
    assert len(rows) == len(expected)
    names = [
        {"time_us": "ts_us", "file": "file_no", "offset": "position"}.get(field, field) for field in Segment._fields
    ]
    assert [tuple(row[name] for name in names) for row in rows] == expected
    data = CAPTURE.read_bytes()
    for row in rows:
        assert data[row["position"] : row["position"] + len(row["payload"])] == row["payload"]


def test_a_flow_is_both_directions_in_one_capture_and_stable() -> None:
    assert flow_of(0, "a:1", "b:2") == flow_of(0, "b:2", "a:1") == -4494550442544740322
    assert flow_of(1, "a:1", "b:2") != flow_of(0, "a:1", "b:2")


def test_serial_sort_is_total_and_gives_each_row_once(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = table(CAPTURE).sort_by([(key, "ascending") for key in PACKETS.sort])
    monkeypatch.setattr(serial, "SLICE_ROWS", 37)
    monkeypatch.setattr("wirekit.pipeline.rows.BATCH_ROWS", 50)
    sliced = pa.Table.from_batches(serial.sorted_packets(find_inputs([CAPTURE])))
    assert sliced.to_pylist() == expected.to_pylist()


def test_damage_is_a_note_after_all_that_could_be_read(tmp_path: Path) -> None:
    whole = FIXTURES / "pcap" / "pulsar-nobatch.pcap"
    path = tmp_path / "cut.pcap"
    path.write_bytes(whole.read_bytes()[:-20])
    rows = table(path)
    assert rows.num_rows == table(whole).num_rows
    ((note, offset, length, raw),) = notes(rows)
    assert (note.kind, note.error_offset) == ("damaged", offset)
    assert offset + length == path.stat().st_size
    assert raw == path.read_bytes()[offset:]
    assert f"at byte {offset}" in note.text


def test_a_packet_that_does_not_decode_is_a_note(tmp_path: Path) -> None:
    path = keep_packets(FIXTURES / "pcap" / "pulsar-nobatch.pcap", tmp_path / "broken.pcap", range(8))
    data = bytearray(path.read_bytes())
    with open_capture(path) as capture:
        packets = list(capture.packets())
    broken = packets[5]
    data[broken.offset + 14] = 0x41  # an IP header of four bytes
    path.write_bytes(data)
    rows = table(path)
    (first, offset, length, raw), (second, *_) = notes(rows)
    assert (first.kind, offset, length) == ("packet", broken.offset, len(broken.data))
    assert raw == data[offset : offset + length]
    assert second.kind == "skipped"
    assert sum(second.packets.values()) == 1
    assert rows.num_rows == 7 + 2


def test_a_block_that_does_not_decode_is_a_note(tmp_path: Path) -> None:
    whole = FIXTURES / "pcap" / "kafka-0.9.0.1-2-produce.pcapng"
    data = bytearray(whole.read_bytes())
    with open_capture(whole) as capture:
        packet = list(capture.packets())[5]
    data[packet.offset - 8 : packet.offset - 4] = b"\xff" * 4  # its captured length
    path = tmp_path / "broken.pcapng"
    path.write_bytes(data)
    rows = table(path)
    (first, offset, length, raw), *_ = notes(rows)
    assert (first.kind, first.path, first.error_offset) == ("packet", "body.captured_length", packet.offset)
    assert offset < packet.offset < offset + length
    assert raw == bytes(data[offset : offset + length])
    assert rows.num_rows == table(whole).num_rows


@pytest.mark.parametrize(
    ("content", "byte"), [(b"", 0), (b"\xd4\xc3\xb2\xa1", 4), (b"plain text, no capture at all", 0)]
)
def test_a_file_that_is_no_capture_is_a_note_that_names_the_byte(tmp_path: Path, content: bytes, byte: int) -> None:
    path = tmp_path / "bad.pcap"
    path.write_bytes(content)
    ((note, offset, length, raw),) = notes(table(path))
    assert (note.kind, offset, length, raw) == ("unreadable", 0, len(content), content)
    assert f"at byte {byte} " in note.text


def test_fragments_in_two_captures_are_not_put_together(tmp_path: Path) -> None:
    parts = fragments(packet("net.ethernet", ethernet(ipv4(tcp(bytes(100))))), [4])
    paths = [tmp_path / "one.pcap", tmp_path / "other.pcap"]
    for path, part in zip(paths, parts, strict=True):
        path.write_bytes(pcap(part))
    together = tmp_path / "both.pcap"
    together.write_bytes(pcap(*parts))
    assert [len(row["payload"]) for row in table(together).to_pylist()] == [100]
    rows = table(*paths)
    assert rows["note"].null_count == 0
    assert rows["file_no"].to_pylist() == [0, 1]
    assert [note.packets for note, *_ in notes(rows)] == [{"fragment": 1}, {"fragment": 1}]


def test_a_file_that_is_gone_is_a_note(tmp_path: Path) -> None:
    path = tmp_path / "gone.pcap"
    path.write_bytes(b"")
    inputs = find_inputs([path])
    path.unlink()
    ((note, *_),) = notes(pa.Table.from_batches(packet_batches(inputs)))
    assert (note.kind, note.text) == ("unreadable", "No such file or directory")


def test_ports_filter_packets_and_count_the_others() -> None:
    everything = table(CAPTURE)
    servers = {int(row["target"].rpartition(":")[2]) for row in everything.to_pylist() if row["flags"] == 2}
    port = sorted(servers)[0]
    some = table(CAPTURE, ports=frozenset([port]))
    selected = [row for row in some.to_pylist() if row["note"] is None]
    assert selected
    assert all(row["source"].endswith(f":{port}") or row["target"].endswith(f":{port}") for row in selected)
    ((note, *_),) = notes(some)
    assert note.packets[OTHER_PORT] + len(selected) == everything.num_rows


def test_a_compressed_capture_is_read_by_columns_if_it_may_be_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba")
    packed, content = tmp_path / "a.pcap.gz", CAPTURE.read_bytes()
    packed.write_bytes(gzip.compress(content))
    (file,) = find_inputs([packed])
    monkeypatch.setattr("wirekit.compiler.cache.interpreter_is_compiled", lambda: True)
    for least, columns in ((len(content), True), (len(content) + 1, False)):
        monkeypatch.setattr(roads, "LEAST_COMPILED", least)
        assert by_columns(unpacked_size([file])) == columns
        assert not by_columns(file.size)
    monkeypatch.setattr(roads, "LEAST_FOR_COLUMNS", len(content) - 1)
    assert unpacked_size([file]) == len(content) - 1
    packed.write_bytes(packed.read_bytes()[: file.size // 2])
    assert file.size < unpacked_size([file]) < len(content) - 1
    assert unpacked_size(find_inputs([CAPTURE])) == CAPTURE.stat().st_size
    packed.unlink()
    assert unpacked_size([file]) == file.size


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize(("payload", "count", "columns"), [(40, 6100, True), (40, 5900, False), (400, 5900, False)])
def test_a_capture_of_many_small_packets_is_read_by_columns(
    payload: int, count: int, columns: bool, pack: Callable[[bytes], bytes], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    pytest.importorskip("numba")
    path, header = tmp_path / "some.pcap", pcap()
    record = pcap(ethernet(ipv4(tcp(bytes(payload)))))[len(header) :]
    path.write_bytes(pack(header + record * count))
    monkeypatch.setattr("wirekit.compiler.cache.interpreter_is_compiled", lambda: True)
    assert captures_by_columns(find_inputs([path])) == columns


@pytest.mark.parametrize("size_of_others", [0, 1 << 12])
def test_small_captures_that_are_read_together_are_read_by_columns(
    size_of_others: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba")
    size = CAPTURE.stat().st_size
    for name in "abc":
        (tmp_path / f"{name}-capture.pcapng").write_bytes(CAPTURE.read_bytes())
    monkeypatch.setattr("wirekit.compiler.cache.interpreter_is_compiled", lambda: True)
    monkeypatch.setattr(roads, "LEAST_COMPILED", 3 * size)
    monkeypatch.setattr(roads, "LEAST_AMONG_OTHERS", size + size_of_others)
    chosen: list[str] = []
    captured_batches = serial.captured_batches

    def noted(files: Sequence[Input], job: Job, *values: Any, **named: Any) -> Any:
        chosen.append(job.road)
        return captured_batches(files, job, *values, **named)

    monkeypatch.setattr(serial, "captured_batches", noted)
    inputs = find_inputs([tmp_path])
    serial.run(Job(inputs), tmp_path / "all")
    assert chosen == 3 * ["auto" if size_of_others else "columns"]
    serial.run(Job(inputs[:2]), tmp_path / "two")
    assert chosen[3:] == ["auto", "auto"]
