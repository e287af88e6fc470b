"""``wirekit inspect --connections``: what each connection carries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cli.running import Run
from tests.net.building import ethernet, ipv4, packet, pcap, tcp
from wirekit.encoding import encode


def connections(path: Path) -> list[dict[str, object]]:
    run = Run("inspect", "--connections", "--output", "json", str(path))
    assert (run.status, run.err) == (0, "")
    return run.lines


def test_pulsar(fixtures: Path) -> None:
    (line,) = connections(fixtures / "pcap" / "pulsar-consume.pcap")
    assert (line["protocol"], line["from_start"]) == ("pulsar", True)
    summary = line["summary"]
    assert isinstance(summary, dict)
    assert (summary["protocol_version"], summary["max_message_size"]) == (20, 5 * 1024 * 1024)
    topic = "persistent://public/default/t-consume"
    assert summary["producers"][1] == {
        "producer_id": 1,
        "topic": topic,
        "name": "standalone-0-1",
        "messages": 4,
        "sends": 1,
        "receipts": 1,
        "errors": 0,
    }
    assert summary["consumers"][1] == {
        "consumer_id": 1,
        "topic": topic,
        "subscription": "sub-Shared",
        "name": "9bbe155ef8",
        "messages": 10,
        "permits": 990,
    }
    assert summary["lookups"] == [
        {"topic": topic, "response": "Connect", "broker": "pulsar://127.0.0.1:6650", "partitions": 0}
    ]


def test_kafka(fixtures: Path) -> None:
    lines = Run("inspect", "--connections", str(fixtures / "pcap" / "kafka-0.9.0.1-4-clients.pcapng")).lines
    assert {"client_ids": ["kpy"], "calls": [{"api": "produce", "version": 1, "requests": 1}]} in [
        line["summary"] for line in lines
    ]


def test_jmq4(fixtures: Path) -> None:
    (line,) = connections(fixtures / "pcap" / "jmq4-consume.pcap")
    summary = line["summary"]
    assert isinstance(summary, dict)
    assert {"app": "demo", "command": "ADD_CONSUMER", "topics": ["topic1", "topic2"]} in summary["apps"]


def test_decoding_errors_are_reported_as_by_other_commands(fixtures: Path) -> None:
    path = str(fixtures / "pcap" / "kafka-0.9.0.1-2-produce.pcapng")
    run, plain = Run("inspect", "--connections", path), Run("inspect", path)
    assert run.status == plain.status == 1
    assert "at byte 0 of the stream: no request has correlation id 15" in run.err
    assert run.lines


def captured(path: Path, *pieces: tuple[str, bytes], snap_length: int = 1 << 16) -> Path:
    """A capture of what both sides say in turn, each in a packet; without a handshake if it is cut."""
    sequences = {"client": 1, "server": 1}
    packets = []
    for side, data in pieces:
        peer = "server" if side == "client" else "client"
        ports = (40000, 6650) if side == "client" else (6650, 40000)
        fields = {"source_port": ports[0], "destination_port": ports[1], "sequence_number": sequences[side]}
        layers = ipv4(tcp(data, **fields, acknowledgment_number=sequences[peer]))
        if side == "server":
            layers |= {"source": layers["destination"], "destination": layers["source"]}
        sequences[side] += len(data)
        whole = packet("net.ethernet", ethernet(layers))
        packets.append({"data": whole[:snap_length].hex(), "original_length": len(whole)})
    path.write_bytes(pcap(*packets))
    return path


def command(kind: str, **fields: Any) -> bytes:
    """A Pulsar frame with a command and no entry."""
    name = {"PARTITIONED_METADATA": "partitionMetadata", "LOOKUP": "lookupTopic"}.get(kind, kind.lower())
    return encode("pulsar.frame", {"command": {"type": kind, name: fields}})


def refused(request_id: int, error: str, text: str) -> tuple[str, bytes]:
    return "server", command("ERROR", request_id=request_id, error=error, message=text)


TOPIC = "persistent://a/b/c"
SUBSCRIBE = {"topic": TOPIC, "subscription": "s", "subType": "Exclusive", "consumer_id": 1}
REFUSALS = (
    ("client", command("PRODUCER", topic=TOPIC, producer_id=1, request_id=1)),
    refused(1, "ProducerBusy", "taken"),
    ("client", command("SUBSCRIBE", **SUBSCRIBE, request_id=2)),
    refused(2, "ConsumerBusy", "taken"),
    ("client", command("SUBSCRIBE", **SUBSCRIBE, request_id=3)),
    refused(3, "ConsumerBusy", "taken"),
    ("client", command("LOOKUP", topic=TOPIC, request_id=4)),
    refused(4, "ServiceNotReady", "not served"),
    ("client", command("CONNECT", client_version="x")),
    refused(2**64 - 1, "AuthenticationError", "who?"),
)


def test_failed_requests_come_first(tmp_path: Path) -> None:
    (line,) = connections(captured(tmp_path / "a.pcap", *REFUSALS))
    assert line["failures"] == [
        {"api": "PRODUCER", "topic": TOPIC, "error": "ProducerBusy", "text": "taken", "count": 1},
        {"api": "SUBSCRIBE", "topic": TOPIC, "error": "ConsumerBusy", "text": "taken", "count": 2},
        {"api": "LOOKUP", "topic": TOPIC, "error": "ServiceNotReady", "text": "not served", "count": 1},
        {"api": "CONNECT", "topic": None, "error": "AuthenticationError", "text": "who?", "count": 1},
    ]
    text = Run("inspect", "--connections", "--output", "text", str(tmp_path / "a.pcap")).out.decode().splitlines()
    assert text[1:5] == [
        f"  failed: PRODUCER {TOPIC} ProducerBusy ×1: taken",
        f"  failed: SUBSCRIBE {TOPIC} ConsumerBusy ×2: taken",
        f"  failed: LOOKUP {TOPIC} ServiceNotReady ×1: not served",
        "  failed: CONNECT AuthenticationError ×1: who?",
    ]


def test_errors_of_topics_name_the_topic(fixtures: Path) -> None:
    lines = Run("inspect", "--connections", str(fixtures / "pcap" / "kafka-0.10.2.2-4-clients.pcapng")).lines
    failures = [each for line in lines for each in line["failures"]]
    assert failures
    assert all(each["error"] and each["count"] for each in failures)
    assert any(each["topic"] for each in failures)


def test_a_request_id_that_nobody_asked_with_is_minus_one(tmp_path: Path) -> None:
    lines = Run("frames", str(captured(tmp_path / "a.pcap", *REFUSALS))).lines
    assert [line["correlation_id"] for line in lines] == [1, 1, 2, 2, 3, 3, 4, 4, None, -1]


def test_a_capture_cut_by_the_snap_length_says_how_to_name_its_protocol(tmp_path: Path) -> None:
    path = captured(tmp_path / "a.pcap", *REFUSALS, snap_length=60)
    run = Run("inspect", "--connections", str(path))
    assert [line["protocol"] for line in run.lines] == [None]
    assert "no known protocol fits; the snap length cut it: name its protocol with --port" in run.err
    named = Run("inspect", "--connections", "--port", "6650=pulsar", str(path))
    assert [line["protocol"] for line in named.lines] == ["pulsar"]


def test_the_path_is_printed_once_on_standard_error(fixtures: Path) -> None:
    path = str(fixtures / "pcap" / "kafka-0.9.0.1-2-produce.pcapng")
    complaints = Run("inspect", "--connections", path).err.splitlines()
    assert complaints[0] == f"wirekit: {path}"
    assert len(complaints) > 2
    assert all(line.startswith("wirekit:   127.0.0.1:") and path not in line for line in complaints[1:])


def test_text(fixtures: Path) -> None:
    text = Run(
        "inspect", "--connections", "--output", "text", str(fixtures / "pcap" / "pulsar-batch.pcap")
    ).out.decode()
    assert "producer: producer_id 0  topic persistent://public/default/t-batch" in text


def test_the_chunks_of_a_message_count_once(tmp_path: Path) -> None:
    frames = [("client", command("PRODUCER", topic=TOPIC, producer_id=1, request_id=1))]
    for chunk in range(3):
        metadata = {"producer_name": "p", "sequence_id": 0, "publish_time": 1, "uuid": "p-0"}
        chunks = {"num_chunks_from_msg": 3, "total_chunk_msg_size": 3, "chunk_id": chunk}
        send = {"producer_id": 1, "sequence_id": 0, "is_chunk": True}
        value = {"command": {"type": "SEND", "send": send}, "entry": {"metadata": metadata | chunks, "payload": "61"}}
        frames.append(("client", encode("pulsar.frame", value)))
    (line,) = Run("inspect", "--connections", str(captured(tmp_path / "chunks.pcap", *frames))).lines
    summary: Any = line["summary"]
    assert summary["producers"][0]["messages"] == 1
