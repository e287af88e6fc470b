"""The captures of JMQ4: made the same every time, sound packets, and conversations that are followed to the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import wirekit
from fixtures.pcap import make_jmq4
from wirekit.conversation import Frame

CAPTURES = Path(make_jmq4.__file__).parent
NAMES = ["jmq4-consume.pcap", "jmq4-document.pcap", "jmq4-odd.pcap", "jmq4-produce.pcap", "jmq4-versions.pcap"]
ODD = {"payload.topics[0].messages[0].body_crc", "payload.data", "type"}


def packets(name: str) -> list[Any]:
    decoded = wirekit.decode((CAPTURES / name).read_bytes(), "net.pcap", strict=True)
    return list(decoded.value.packets)


def test_the_script_makes_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_jmq4, "HERE", tmp_path)
    make_jmq4.main()
    assert sorted(path.name for path in tmp_path.iterdir()) == NAMES
    for name in NAMES:
        assert (tmp_path / name).read_bytes() == (CAPTURES / name).read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_checksums_of_the_packets(name: str) -> None:
    for packet in packets(name):
        ip = wirekit.encode("net.ethernet", packet.data)[14:]
        size = len(ip) - 20
        assert make_jmq4.checksum(ip[:20]) == 0
        assert make_jmq4.checksum(ip[12:20] + bytes((0, 6, size >> 8, size & 0xFF)) + ip[20:]) == 0


@pytest.mark.parametrize("name", NAMES)
def test_the_conversation(name: str) -> None:
    conversation = wirekit.Conversation("jmq4" if "document" in name else "joyqueue")
    frames: list[Frame] = []
    times = []
    for packet in packets(name):
        tcp = packet.data.payload.payload
        side = "client" if tcp.destination_port == 50_088 else "server"
        times.append(packet.seconds * 1_000_000 + packet.fraction)
        if tcp.payload:
            events = conversation.receive(side, tcp.payload, time_us=times[-1])
            frames += [event for event in events if isinstance(event, Frame)]
    assert conversation.close() == []
    assert times == sorted(times)
    assert all(frame.decoded.error is None and not frame.decoded.gaps for frame in frames)
    failed = {check.path for frame in frames for check in frame.decoded.checks if check.status == "bad"}
    assert failed == (ODD if "odd" in name else set())
    assert all(frame.request is not None for frame in frames if frame.side == "server")
    assert all(frame.latency_us for frame in frames if frame.side == "server")
    waiting = [request.description.api for request in conversation.requests]
    assert waiting == (["FETCH_ACK_INDEX", "HEARTBEAT"] if "odd" in name else [])
