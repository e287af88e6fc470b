"""``wirekit inspect --connections``: what each connection carries."""

from __future__ import annotations

from pathlib import Path

from tests.cli.test_commands import Run


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


def test_what_did_not_decode_is_said_as_by_other_commands(fixtures: Path) -> None:
    path = str(fixtures / "pcap" / "kafka-0.9.0.1-2-produce.pcapng")
    run, plain = Run("inspect", "--connections", path), Run("inspect", path)
    assert run.status == plain.status == 1
    assert "at byte 0 of the stream: no request has correlation id 15" in run.err
    assert run.lines


def test_text(fixtures: Path) -> None:
    text = Run(
        "inspect", "--connections", "--output", "text", str(fixtures / "pcap" / "pulsar-batch.pcap")
    ).out.decode()
    assert "producer: producer_id 0  topic persistent://public/default/t-batch" in text
