"""Real clients and brokers of Pulsar: the tables have every message that the clients sent and received."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import wirekit
from tests.conftest import FIXTURES
from tests.road.law import by_columns, by_objects
from tests.rules.conversations import broken, captured, names, violations

BROKER = FIXTURES / "pulsar" / "broker"
CAPTURES = sorted(path for path in BROKER.glob("*.pcap") if path.with_suffix(".messages.jsonl").exists())
JAVA, CPP_AND_GO = (next(path for path in CAPTURES if path.stem == name) for name in ("java-3.0.7", "cpp-go-4.0.7"))
each_capture = pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.stem)
ALIKE = ("topic", "key", "value", "event_time_ms", "sequence_id", "producer", "properties")


def text(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def of_table(row: dict[str, Any]) -> dict[str, Any]:
    """A row of ``messages`` in the terms of the application."""
    properties = {each["name"]: each["value"] for each in row["properties"]}
    values = {"key": text(row["key"]), "value": text(row["value"]), "properties": properties}
    return {name: row[name] for name in ALIKE} | values | {"event_time_ms": row["event_time_ms"] or 0}


def of_application(message: dict[str, Any]) -> dict[str, Any]:
    """A message of the application; Go and C++ do not say its sequence id, and hide that a value is null."""
    names = {"event_time_ms": "event", "sequence_id": "seq", "properties": "props"}
    return {name: message[names.get(name, name)] for name in ALIKE if names.get(name, name) in message}


@each_capture
@pytest.mark.parametrize(("event", "direction"), [("sent", "produced"), ("received", "pushed")])
def test_every_message_of_the_application_is_in_the_table(capture: Path, event: str, direction: str) -> None:
    rows = [row for row in wirekit.read(capture, "messages").read_all().to_pylist() if row["direction"] == direction]
    assert {row["crc_status"] for row in rows} == {"ok"}
    truth = [json.loads(line) for line in capture.with_suffix(".messages.jsonl").read_text().splitlines()]
    expected = [each for each in truth if each["what"] == event]
    assert len(expected) > 13
    for message in expected:
        content = of_application(message)
        same = [row for row in rows if of_table(row).items() >= content.items()]
        assert same, message
        assert message.get("codec", "") in {"", *(row["codec"] for row in same)}
        if event == "received":
            here = [row for row in same if row["message_id"] == message["id"]]
            assert message["redeliveries"] in {row["redeliveries"] or 0 for row in here}
            assert message.get("index", here[0]["log_offset"]) == here[0]["log_offset"]


def test_chunks_give_whole_messages_to_both_consumers_and_again_after_seek() -> None:
    rows = wirekit.read(JAVA, "messages", ["topic", "group_id", "message_id"]).read_all().to_pylist()
    chunked = [row for row in rows if (row["topic"] or "").endswith("/chunks") and row["message_id"]]
    groups = [row["group_id"] for row in chunked]
    assert (groups.count("a"), groups.count("b")) == (4, 2)


def test_encrypted_messages_show_what_is_not_cipher_text() -> None:
    columns = ["topic", "key", "encrypted", "encryption_keys", "codec", "batch_index"]
    rows = wirekit.read(CPP_AND_GO, "messages", columns).read_all().to_pylist()
    encrypted = [row for row in rows if row["encrypted"]]
    assert len(encrypted) == 2 * (1 + 5)  # a batch is one cipher text
    assert {
        (row["topic"], row["key"], row["codec"], row["batch_index"], *row["encryption_keys"]) for row in encrypted
    } == {("persistent://public/default/fx-enc", b"pk", "lz4", None, "my-key")}


def test_every_call_is_answered_and_no_rule_is_broken() -> None:
    calls = wirekit.read(JAVA, "calls", ["outcome", "error"]).read_all().to_pylist()
    assert {row["outcome"] for row in calls} <= {"answered", "event"}
    ((link, frames),) = captured(JAVA)
    assert not names(violations(link.protocol, frames))


def test_steps_of_transactions_name_topic_and_subscription() -> None:
    calls = wirekit.read(CPP_AND_GO, "calls", ["api", "outcome", "topic", "group_id"]).read_all().to_pylist()
    steps = Counter(tuple(row.values()) for row in calls if "TXN" in row["api"])
    topic = "persistent://public/default/fg-txn"
    assert steps == {
        (api, "answered", *place): 2
        for api, place in {
            "NEW_TXN": (None, None),
            "ADD_SUBSCRIPTION_TO_TXN": (topic, "tx"),
            "ADD_PARTITION_TO_TXN": (f"{topic}-out", None),
            "END_TXN": (None, None),
            "END_TXN_ON_SUBSCRIPTION": (topic, "tx"),
            "END_TXN_ON_PARTITION": (f"{topic}-out", None),
        }.items()
    }


def test_producers_that_wait_and_are_fenced() -> None:
    columns = ["api", "outcome", "topic", "client", "error"]
    calls = wirekit.read(CPP_AND_GO, "calls", columns).read_all().to_pylist()
    cpp, go = (f"persistent://public/default/{name}-modes" for name in ("fx", "fg"))
    repeated = [(row["api"], row["client"], row["topic"]) for row in calls if row["outcome"] == "repeated"]
    assert repeated == [("PRODUCER_SUCCESS", "waiter", topic) for topic in (cpp, go)]
    errors = Counter((row["topic"], row["error"]) for row in calls if row["error"] and row["topic"])
    assert errors == {(cpp, "ProducerFenced"): 2, (cpp, "ProducerBusy"): 1, (go, "ProducerFenced"): 1}


def test_a_broker_answers_twice_for_a_compacted_topic() -> None:
    assert [each for each in broken(CPP_AND_GO) if each] == [["answered_twice", "answered_twice"]]


def test_receipts_of_a_replicator_name_the_position_in_the_source_cluster() -> None:
    path = BROKER / "replication-4.0.7.pcap"
    calls = [row for row in wirekit.read(path, "calls").read_all().to_pylist() if row["api"].startswith("SEND")]
    assert len(calls) == 15
    assert {(row["api"], row["outcome"]) for row in calls} == {("SEND", "answered")}
    assert max(row["latency_us"] for row in calls) < 110_000
    assert [row["messages"] for row in calls if row["messages"]] == [6, 6, 6]  # the others are markers
    assert broken(path) == [[]]
    assert by_columns(path, window=5000) == by_objects(path)


@each_capture
def test_every_frame_is_clean_and_rebuilt(capture: Path) -> None:
    frames = [frame for _, frames in captured(capture) for frame in frames]
    assert len(frames) == {JAVA: 254, CPP_AND_GO: 610}[capture]
    for engine in ("reference", "rows"):
        for _, data, _ in frames:
            decoded = wirekit.decode(data, "pulsar.frame", engine=engine)
            assert decoded.clean
            assert wirekit.encode("pulsar.frame", decoded.value, engine=engine) == data


@each_capture
def test_both_roads_give_the_same_tables(capture: Path) -> None:
    assert by_columns(capture, window=5000) == by_objects(capture)
