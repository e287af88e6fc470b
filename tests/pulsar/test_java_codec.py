"""Frames that Java wrote or read: wirekit reads the same values, and gives the messages that a consumer got."""

from __future__ import annotations

import json
from typing import Any

import pytest

import wirekit
from tests.conftest import FIXTURES
from wirekit.conversation import Conversation, Frame, Message
from wirekit.proto import PulsarApi_pb2 as api
from wirekit.values import Record

LINES = [json.loads(line) for line in (FIXTURES / "pulsar" / "java_codec.jsonl").read_text().splitlines()]
COMMANDS, ENTRIES, DAMAGED, CHUNKS = (
    [(line["hex"], line["java"]) for line in LINES if line["what"] == what]
    for what in ("command", "entry", "damaged", "chunks")
)


def plain(value: Any) -> Any:
    """A value in the terms of the file: numbers of symbols, bytes in hex, no field that is absent or an empty list."""
    if isinstance(value, Record):
        fields = {name: plain(field) for name, field in value._pairs()}
        return {name: field for name, field in fields.items() if field not in (None, [])}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.hex() if isinstance(value, bytes) else value


def delivered(*frames: str) -> list[list[Message]]:
    """The messages of each frame that a consumer of one connection gets."""
    conversation = Conversation("pulsar")
    received = [conversation.receive("server", bytes.fromhex(frame)) for frame in frames]
    return [[each for event in events if isinstance(event, Frame) for each in event.messages] for events in received]


def of_application(message: Message) -> dict[str, Any]:
    facts = message.facts
    return {
        "key": plain(message.key),
        "value": plain(message.value),
        "properties": {each["name"]: each["value"] for each in facts["properties"]},
        "event_time": facts["event_time"] or 0,
        "sequence_id": facts["sequence_id"],
        "index": facts["log_offset"],
    }


@pytest.mark.parametrize(("frame", "java"), COMMANDS, ids=[str(java["type"]) for _, java in COMMANDS])
def test_a_command_has_the_values_that_java_reads(frame: str, java: dict[str, Any]) -> None:
    data = bytes.fromhex(frame)
    decoded = wirekit.decode(data, "pulsar.frame")
    assert decoded.clean
    assert plain(decoded.value.command) == java
    assert wirekit.encode("pulsar.frame", decoded.value) == data


def test_the_commands_are_of_all_types() -> None:
    assert {java["type"] for _, java in COMMANDS} == set(api.BaseCommand.Type.values())


@pytest.mark.parametrize(("frame", "java"), ENTRIES)
def test_an_entry_has_the_metadata_and_messages_that_java_reads(frame: str, java: dict[str, Any]) -> None:
    data = bytes.fromhex(frame)
    decoded = wirekit.decode(data, "pulsar.frame")
    assert decoded.clean
    assert plain(decoded.value.entry.metadata) == java["metadata"]
    assert wirekit.encode("pulsar.frame", decoded.value) == data
    (messages,) = delivered(frame)
    assert [of_application(each) for each in messages] == java["messages"]


@pytest.mark.parametrize(("frame", "java"), DAMAGED)
def test_the_messages_before_damage_are_those_that_java_delivers_unless_the_checksum_is_wrong(
    frame: str, java: dict[str, Any]
) -> None:
    decoded = wirekit.decode(bytes.fromhex(frame), "pulsar.frame")
    assert decoded.error is not None
    (messages,) = delivered(frame)
    if "discarded" in java:
        assert [(check.kind, check.status) for check in decoded.checks if check.path == "entry.checksum"] == [
            ("crc32c", "bad")
        ]
        assert all(each.check == "bad" for each in messages)
    else:
        assert [of_application(each) for each in messages] == java["messages"]
        assert all(each.check == "ok" for each in messages)


@pytest.mark.parametrize(("frames", "java"), CHUNKS)
def test_chunks_that_come_again_or_out_of_order_give_the_messages_that_java_delivers(
    frames: list[str], java: list[list[str]]
) -> None:
    assert [[plain(each.value) for each in messages] for messages in delivered(*frames)] == java
