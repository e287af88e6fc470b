"""A Java client and a broker of Pulsar 3.0.7: the tables have every message that the client sent and received."""

from __future__ import annotations

import json
from typing import Any

import pytest

import wirekit
from tests.conftest import FIXTURES
from tests.road.law import by_columns, by_objects
from tests.rules.conversations import captured, names, violations

CAPTURE = FIXTURES / "pulsar" / "broker" / "java-3.0.7.pcap"
TRUTH = [json.loads(line) for line in CAPTURE.with_suffix(".messages.jsonl").read_text().splitlines()]
ALIKE = ("topic", "key", "value", "event_time_ms", "sequence_id", "producer", "properties")


def text(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def of_table(row: dict[str, Any]) -> dict[str, Any]:
    """A row of ``messages`` in the terms of the application."""
    properties = {each["name"]: each["value"] for each in row["properties"]}
    values = {"key": text(row["key"]), "value": text(row["value"]), "properties": properties}
    return {name: row[name] for name in ALIKE} | values | {"event_time_ms": row["event_time_ms"] or 0}


def of_application(message: dict[str, Any]) -> dict[str, Any]:
    names = {"event_time_ms": "event", "sequence_id": "seq", "properties": "props"}
    return {name: message[names.get(name, name)] for name in ALIKE}


@pytest.mark.parametrize(("event", "direction"), [("sent", "produced"), ("received", "pushed")])
def test_every_message_of_the_application_is_in_the_table(event: str, direction: str) -> None:
    rows = [row for row in wirekit.read(CAPTURE, "messages").read_all().to_pylist() if row["direction"] == direction]
    assert {row["crc_status"] for row in rows} == {"ok"}
    expected = [each for each in TRUTH if each["what"] == event]
    assert len(expected) > 13
    for message in expected:
        same = [row for row in rows if of_table(row) == of_application(message)]
        assert same, message
        if event == "received":
            here = [row for row in same if row["message_id"] == message["id"]]
            assert message["redeliveries"] in {row["redeliveries"] or 0 for row in here}
            assert message.get("index", here[0]["log_offset"]) == here[0]["log_offset"]


def test_chunks_give_whole_messages_to_both_consumers_and_again_after_seek() -> None:
    rows = wirekit.read(CAPTURE, "messages", ["topic", "group_id", "message_id"]).read_all().to_pylist()
    chunked = [row for row in rows if (row["topic"] or "").endswith("/chunks") and row["message_id"]]
    groups = [row["group_id"] for row in chunked]
    assert (groups.count("a"), groups.count("b")) == (4, 2)


def test_every_call_is_answered_and_no_rule_is_broken() -> None:
    calls = wirekit.read(CAPTURE, "calls", ["outcome", "error"]).read_all().to_pylist()
    assert {row["outcome"] for row in calls} <= {"answered", "event"}
    ((link, frames),) = captured(CAPTURE)
    assert not names(violations(link.protocol, frames))


def test_every_frame_is_clean_and_rebuilt() -> None:
    ((_, frames),) = captured(CAPTURE)
    assert len(frames) == 254
    for engine in ("reference", "rows"):
        for _, data, _ in frames:
            decoded = wirekit.decode(data, "pulsar.frame", engine=engine)
            assert decoded.clean
            assert wirekit.encode("pulsar.frame", decoded.value, engine=engine) == data


def test_both_roads_give_the_same_tables() -> None:
    assert by_columns(CAPTURE, window=5000) == by_objects(CAPTURE)
