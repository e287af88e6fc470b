"""The law of two roads: objects and columns give the same tables, of captures as they are and of damaged copies."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from dataclasses import replace
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytest.importorskip("numba")

import wirekit
from tests.capture.damage import DAMAGES
from tests.capture.second_parser import packets, tcp, write
from tests.conftest import FIXTURES
from tests.fuzz.captures import packets_of
from tests.kafka.golden import Pdu, message, message_set
from tests.kafka.sets import FIRST, SECOND, THIRD, call, damages, frames_with_sets, script, undecodable
from tests.net.building import ethernet, ipv4, packet, pcap
from tests.net.building import tcp as tcp_value
from tests.road.law import CAPTURES, COPIES, DAMAGED, KAFKA, WINDOWS, assert_same, by_columns, by_objects, odd_packets
from wirekit.pipeline.inputs import Job, find_inputs
from wirekit.pipeline.serial import captured_batches
from wirekit.pipeline.summary import Summary
from wirekit.protocols.kafka import columns
from wirekit.registry import registry
from wirekit.road.tables import captured
from wirekit.strategies import Script, Turn
from wirekit.tables.columns import FROM_INPUTS
from wirekit.wire.stream import Limits


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_captures(path: Path) -> None:
    assert_same(path, windows=(1 << 26, path.stat().st_size // 3))


def test_a_capture_without_packets(tmp_path: Path) -> None:
    path = tmp_path / "empty.pcap"
    write(path, [])
    assert_same(path)
    assert list(by_objects(path)[1].files) == [str(path)]


def test_a_connection_whose_only_name_is_not_decoded_by_columns(tmp_path: Path) -> None:
    """A hostile capture: the address in ADD_CONNECTION is not UTF-8, and a later request asks for the name."""
    name = "07" + b"wirekit".hex()
    frames = (
        ("client", f"00000068cafebebe040200000001010000000000000000{name * 6}00{name}0777697280{'00' * 18}01"),
        ("server", "0000002acafebebe040300000001ff0000000000000000000001610cc2a42d0bc2b2c29ec2bd22180000"),
        ("client", f"0000002ecafebebe6b02000000671e0000000000000001000100007fff00{name}fdba6c1573e201d2"),
    )
    script = Script("joyqueue", tuple(Turn(side, bytes.fromhex(data), "", "") for side, data in frames))
    path = tmp_path / "hostile.pcap"
    write(path, packets_of(script, Random(1)))
    assert_same(path)
    assert by_objects(path)[1].total().calls


def test_a_request_whose_layout_has_no_client_id(tmp_path: Path) -> None:
    """After lost bytes, it makes a later request without a client id plausible, although others have one."""
    shutdown = wirekit.encode("kafka.controlled_shutdown.request.v0", {"correlation_id": 6, "body": {"broker_id": 1}})
    value = {"correlation_id": 6, "body": {"error_code": 0, "partitions_remaining": []}}
    answer = wirekit.encode("kafka.controlled_shutdown.response.v0", value)
    named = wirekit.encode("kafka.list_groups.request.v0", {"correlation_id": 7, "client_id": "name", "body": {}})
    value = {"correlation_id": 8, "client_id": None, "body": {"topics": ["t"] * 40}}
    unnamed = wirekit.encode("kafka.metadata.request.v0", value)
    turns = (
        ("client", shutdown),
        ("server", answer),
        *(("client", each) for each in (named, named, bytes(13) + unnamed)),
    )
    sent = packets_of(Script("kafka", tuple(Turn(side, data, "", "") for side, data in turns)), Random(1))
    lost = 1001 + len(shutdown) + len(named)
    path = write(tmp_path / "lost.pcap", [each for each in sent if tcp(each).sequence != lost])
    rows = assert_same(path)
    assert any("'api': 'metadata'" in row for row in rows["frames"])


@pytest.mark.parametrize("pdu", frames_with_sets(), ids=str)
def test_a_message_size_that_is_too_large(pdu: Pdu, tmp_path: Path) -> None:
    """One connection alone, and a connection for each damage."""
    connections = [
        packets_of(script(pdu, damage.data), Random(number), number) for number, damage in enumerate(damages(pdu))
    ]
    for count in (1, len(connections)):
        path = tmp_path / f"{count}.pcap"
        write(path, sorted(chain(*connections[:count]), key=lambda each: each.time_us))
        rows = assert_same(path)
        job = Job(find_inputs([path]), road="columns")
        batches = [batch for _, batch in captured(job.inputs, job, Summary(), FROM_INPUTS) or ()]
        assert batches
        bad = [row for row in rows["messages"] if "'crc_status': 'bad'" in row]
        assert len({re.search("'connection_id': '(.*?)'", row)[1] for row in bad}) == count


@pytest.mark.parametrize("side", ["server", "client"])
@pytest.mark.parametrize("count", [40, 400])
def test_more_messages_than_memory_allows(
    side: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both roads keep to the limit, whether the messages are compressed or not."""
    monkeypatch.setattr(registry, "protocol", lambda name, real=registry.protocol: replace(real(name), limits=limits))
    limits = Limits(memory=200_000, memory_ratio=0)
    plain = [message(b"v", offset=number) for number in range(count)]
    for number, entries in enumerate((plain, [message(plain, offset=count - 1, codec="GZIP")])):
        path = tmp_path / f"{number}.pcap"
        turns = call(side, FIRST) + call(side, message_set(*entries)) + call(side, FIRST)
        write(path, packets_of(Script("kafka", tuple(Turn(who, data, "", "") for who, data in turns)), Random(1)))
        assert_same(path)
        assert bool(by_objects(path)[0].get("quarantine")) == (count == 400)


def test_wrappers_with_more_messages_than_memory_allows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns read no more of them than the limit, because objects read the frame anyway."""
    limits, read = Limits(memory=200_000, memory_ratio=0), []
    monkeypatch.setattr(registry, "protocol", lambda name, real=registry.protocol: replace(real(name), limits=limits))
    monkeypatch.setattr(columns, "SCANNED_AT_ONCE", 1000)

    def counted(*args: Any, real: Any = columns.scan_lists, **options: Any) -> Any:
        scanned = real(*args, **options)
        read.append(scanned[0].num_rows)
        return scanned

    monkeypatch.setattr(columns, "scan_lists", counted)
    plain = [message(b"v", offset=number) for number in range(400)]
    wrappers = [message(plain, offset=399, codec="GZIP")] * 5
    turns = call("server", FIRST) + call("server", message_set(*wrappers)) + call("server", FIRST)
    path = write(
        tmp_path / "many.pcap",
        packets_of(Script("kafka", tuple(Turn(who, data, "", "") for who, data in turns)), Random(1)),
    )
    by_columns(path, window=1 << 26)
    assert 0 < sum(read) < 200
    assert_same(path)


@pytest.mark.parametrize("side", ["server", "client"])
def test_partitions_behind_a_set_that_does_not_decode(side: str, tmp_path: Path) -> None:
    for number, place in enumerate((16, 30)):
        bad = undecodable(SECOND, place)
        turns = call(side, FIRST) + call(side, FIRST, FIRST + bad + THIRD, bad, THIRD) + call(side, FIRST)
        path = tmp_path / f"{number}.pcap"
        write(path, packets_of(Script("kafka", tuple(Turn(who, data, "", "") for who, data in turns)), Random(number)))
        assert_same(path)
        rows = by_columns(path, window=5000)[0]["messages"]
        assert sum("'crc_status': 'ok'" in row for row in rows.elements()) == 2 + 4


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_the_captures_are_plain(path: Path) -> None:
    odd, not_indexed = odd_packets(path)
    assert not odd
    assert path.stem.startswith("kafka") or not not_indexed


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("path", DAMAGED, ids=lambda path: path.stem)
def test_damaged_copies(path: Path, damage: str, tmp_path: Path) -> None:
    whole = packets(path)
    for seed in range(COPIES):
        random = Random(zlib.crc32(f"{path.stem} {damage} {seed}".encode()))
        copy = DAMAGES[damage](whole, random)
        assert_same(write(tmp_path / "copy.pcap", copy), windows=(1 << 26, random.choice(WINDOWS)))


@pytest.mark.parametrize("path", DAMAGED, ids=lambda path: path.stem)
def test_windows_of_a_few_packets(path: Path) -> None:
    assert_same(path, windows=(1, 300, 4000))


@pytest.mark.parametrize("name", ["pulsar-nobatch", "pulsar-batch"])
def test_a_first_byte_that_no_protocol_has(name: str, tmp_path: Path) -> None:
    """Nobody looks for a protocol any more, whatever comes behind it."""
    changed = packets(FIXTURES / "pcap" / f"{name}.pcap")
    at = next(number for number, each in enumerate(changed) if tcp(each).payload)
    data = bytearray(changed[at].data)
    data[-len(tcp(changed[at]).payload)] = 0x2B
    changed[at] = changed[at]._replace(data=bytes(data))
    assert_same(write(tmp_path / "copy.pcap", changed), windows=(700, 1500, 2000))


def test_a_connection_whose_beginning_needs_objects_twice_in_a_window(tmp_path: Path) -> None:
    """The first frame and a later one are damaged, and a segment after that is lost: nothing is read twice."""
    changed = packets(FIXTURES / "pcap" / "pulsar-comp_zlib.pcap")
    sizes = [len(tcp(each).payload) for each in changed]
    for at, place in ((3, 0), (11, 8)):
        data = bytearray(changed[at].data)
        data[place - sizes[at]] = 0xFF
        changed[at] = changed[at]._replace(data=bytes(data))
    assert [sizes[at] for at in (3, 11, 12)] == [45, 60, 46]
    assert_same(write(tmp_path / "copy.pcap", changed[:12] + changed[13:]))


def test_a_connection_that_objects_take_twice_in_a_window(tmp_path: Path) -> None:
    """What it waits for the second time is known to objects alone."""
    copy, random = packets(FIXTURES / "pcap" / "kafka-0.9.0.1-4-clients.pcapng"), Random(163)
    for damage in ("joined_late", "reordered"):
        copy = DAMAGES[damage](copy, random)
    assert_same(write(tmp_path / "copy.pcap", copy), windows=(200,))


def test_a_connection_of_an_address_with_itself(tmp_path: Path) -> None:
    """Nothing tells its sides apart: it is opened from both ends at once, as TCP does that connects to itself."""
    ends = {"source": "0a000001", "destination": "0a000001"}
    path, frames = tmp_path / "itself.pcap", []
    for sequence, acknowledgment, flags, payload in [
        (1000, 0, 2, b""),
        (5000, 0, 2, b""),
        (1000, 5001, 18, b""),
        (5000, 1001, 18, b""),
        *((1001 + 5 * number, 5001, 24, b"hello") for number in range(9)),
        (5001, 1006, 16, b""),
        (5001, 0, 4, b""),
    ]:
        numbers = {"sequence_number": sequence, "acknowledgment_number": acknowledgment, "flags": flags}
        segment = tcp_value(payload, source_port=9092, destination_port=9092, **numbers)
        frames.append(packet("net.ethernet", ethernet(ipv4(segment, **ends))))
    path.write_bytes(pcap(*frames))
    assert_same(path, windows=(1 << 26, 500, 200))


def test_a_protocol_that_is_given(tmp_path: Path) -> None:
    assert_same(KAFKA, protocol="kafka")
    assert_same(KAFKA, protocol="pulsar")
    assert_same(KAFKA, ports={29101: "kafka"})


def test_a_version_that_is_not_declared(tmp_path: Path) -> None:
    """Its frames are named by their header, paired, and have the body as a gap; nothing of them is in quarantine."""
    metadata = b"\x00\x03\x00\x00", b"\x00\x03\x00\x13"
    changed_packets = packets(KAFKA)
    requests = [number for number, each in enumerate(changed_packets) if tcp(each).payload[4:8] == metadata[0]]
    assert requests
    for number in requests:
        data = changed_packets[number].data.replace(*metadata, 1)
        changed_packets[number] = changed_packets[number]._replace(data=data)
        assert tcp(changed_packets[number]).payload[4:8] == metadata[1]
    changed = write(tmp_path / "changed.pcap", changed_packets)
    assert_same(changed)
    job, summary = Job(find_inputs([changed]), road="columns"), Summary()
    rows: dict[str, list[dict[str, Any]]] = {"frames": [], "calls": []}
    for table, batch in captured_batches(job.inputs[:1], job, summary):
        rows.get(table, []).extend(batch.to_pylist())
    (counted,), (before,) = summary.files.values(), by_objects(KAFKA)[1].files.values()
    assert counted.quarantine == before.quarantine
    frames, calls = (
        [row for row in rows[table] if (row["api"], row["version"]) == ("metadata", 19)]
        for table in ("frames", "calls")
    )
    assert Counter(frame["role"] for frame in frames) == {"request": len(requests), "response": len(requests)}
    assert all(frame["gaps"] for frame in frames)
    assert len(calls) == len(requests)
