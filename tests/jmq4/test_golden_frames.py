"""Frames of JoyQueue's own codecs: read clean, mean what they were made from, come back byte for byte."""

from __future__ import annotations

import json
from typing import Any

import pytest

import wirekit
from tests.jmq4.vectors import FRAMES, RELEASE_FRAMES, context, differences, frame_value

KEY = "joyqueue.frame"
UNSIGNED = "joyqueue.frame_unsigned"

# Strings of more than 127 bytes behind a one-byte length: peers read the length signed, and so does the schema.
MISREAD = {
    "add_connection_request_token_128_bytes_QUIRK": "payload.namespace",
    "add_connection_response_id_130_bytes_QUIRK": "payload.notification",
}
# Frames that are read whole, and have a check that really fails.
FAILING = {
    "commit_ack_response_two_partitions_QUIRK": "count",
    "produce_message_explicit_crc": "crc32",
    "produce_message_setText_zip_crc0": "crc32",
}
VECTORS = [*FRAMES, *RELEASE_FRAMES]
READABLE = [vector for vector in VECTORS if vector["name"] not in MISREAD]


def of(vectors: list[dict[str, Any]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("vector", vectors, ids=[vector["name"] for vector in vectors])


def plain(vector: dict[str, Any]) -> dict[str, Any]:
    value = frame_value(vector)
    if FAILING.get(vector["name"]) == "crc32":
        value["payload"]["topics"][0]["messages"][0]["$keep"] = ["body_crc"]
    return value


@of(READABLE)
def test_reads_clean(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    decoded = wirekit.decode(data, KEY, context=context(vector))
    assert decoded.error is None
    assert decoded.consumed == len(data)
    assert not decoded.gaps
    failed = [check.kind for check in decoded.checks if check.status == "bad"]
    assert failed == ([FAILING[vector["name"]]] if vector["name"] in FAILING else [])


@of(READABLE)
def test_a_frame_decodes_to_the_fields_it_was_built_from(vector: dict[str, Any]) -> None:
    decoded = wirekit.decode(bytes.fromhex(vector["hex"]), KEY, context=context(vector))
    assert differences(frame_value(vector), decoded.value) == []


@of(READABLE)
def test_comes_back_byte_for_byte(vector: dict[str, Any]) -> None:
    decoded = wirekit.decode(bytes.fromhex(vector["hex"]), KEY, context=context(vector))
    assert wirekit.encode(KEY, decoded.value, context=context(vector)).hex() == vector["hex"]


@of(READABLE)
def test_survives_json(vector: dict[str, Any]) -> None:
    decoded = wirekit.decode(bytes.fromhex(vector["hex"]), KEY, context=context(vector))
    shown = json.loads(json.dumps(wirekit.to_json(decoded.value)))
    assert wirekit.from_json(KEY, shown, context=context(vector)) == decoded.value
    assert wirekit.encode(KEY, shown, context=context(vector)).hex() == vector["hex"]


@of(READABLE)
def test_is_built_from_plain_fields(vector: dict[str, Any]) -> None:
    assert wirekit.encode(KEY, plain(vector), context=context(vector)).hex() == vector["hex"]


@of(VECTORS)
def test_cut_anywhere_is_short(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    for size in range(len(data)):
        decoded = wirekit.decode(data[:size], KEY, context=context(vector))
        assert isinstance(decoded.error, wirekit.Short), size
        assert decoded.value is not None
        assert decoded.consumed <= size


@of([vector for vector in FRAMES if vector["name"] in MISREAD])
def test_long_strings_are_misread_as_peers_misread_them(vector: dict[str, Any]) -> None:
    decoded = wirekit.decode(bytes.fromhex(vector["hex"]), KEY)
    assert isinstance(decoded.error, wirekit.Short)
    assert decoded.error.path == MISREAD[vector["name"]]
    field = "token" if "token" in vector["name"] else "connection_id"
    assert decoded.value.payload[field] is None
    assert decoded.value.payload.extra["raw"][field] < 0
    # JoyQueue clips a string to what is left (Serializer.java:1037-1051), so the second frame gives it rubbish.
    java = vector["java_decode"]
    assert "exception" in java or java["payload"]["connectionId"] is None


@of([vector for vector in FRAMES if vector["name"] in MISREAD])
def test_long_strings_are_repaired_by_the_unsigned_layout(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    decoded = wirekit.decode(data, UNSIGNED)
    assert decoded.clean
    assert differences(frame_value(vector), decoded.value) == []
    assert wirekit.encode(UNSIGNED, decoded.value) == data
    with pytest.raises(wirekit.Wrong, match="at most 127 bytes"):
        wirekit.encode(KEY, decoded.value)


def test_every_status_fits_one_byte() -> None:
    (vector,) = (vector for vector in FRAMES if vector["name"] == "boolean_ack_error_code_260_wraps")
    decoded = wirekit.decode(bytes.fromhex(vector["hex"]), KEY)
    assert (vector["header"]["status"], decoded.value.status) == (260, 4)
    decoded.value.status = 260
    with pytest.raises(wirekit.Wrong, match=r"status: expected an integer in 0\.\.255"):
        wirekit.encode(KEY, decoded.value)


def test_the_count_of_a_commit_answer_may_exceed_its_topics() -> None:
    (vector,) = (vector for vector in FRAMES if vector["name"] == "commit_ack_response_two_partitions_QUIRK")
    decoded = wirekit.decode(bytes.fromhex(vector["hex"]), KEY)
    assert decoded.value.payload["count"] == 2
    assert len(decoded.value.payload.data) == 1
    assert [(check.path, check.stored, check.computed) for check in decoded.checks] == [("payload.data", 2, 1)]


def test_a_count_left_out_is_the_number_of_topics() -> None:
    value = wirekit.decode(bytes.fromhex(FRAMES[0]["hex"]), KEY).value
    topics = [{"topic": "t", "partition_data": [{"partition": number, "code": 0} for number in range(3)]}]
    answer = {name: value[name] for name in ("version", "request_id", "send_time")} | {
        "identity": {"direction": "RESPONSE"},
        "status": "SUCCESS",
        "type": "COMMIT_ACK_ACK",
        "payload": {"data": topics},
    }
    decoded = wirekit.decode(wirekit.encode(KEY, answer), KEY)
    assert decoded.clean
    assert decoded.value.payload["count"] == 1
