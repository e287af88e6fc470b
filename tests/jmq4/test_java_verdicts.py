"""Damaged and odd bytes: wirekit's verdict beside that of JoyQueue's decoder, each difference with its reason."""

from __future__ import annotations

from typing import Any

import pytest

import wirekit
from tests.jmq4.vectors import JUDGED

# name: (JoyQueue, wirekit, why they differ)
DIFFERENT = {
    "length_too_small": (
        "value",
        "wrong",
        "JoyQueue takes the length for a minimum and reads on; framing can't, so a length below 23 is wrong",
    ),
    "trailing_bytes": (
        "leftover",
        "gap",
        "JoyQueue would read the bytes as its next frame; the length says that they are of this one",
    ),
    "bad_utf8": ("value", "bad utf-8", "JoyQueue replaces what is not UTF-8; the bytes are kept, with a verdict"),
    "message_magic_ignored": ("value", "bad constant", "JoyQueue ignores the magic number"),
    "message_crc_ignored": ("value", "bad crc32", "JoyQueue ignores the checksum and computes a new one"),
    "doc_literal_fetch_cluster_response": ("leftover", "gap", "see trailing_bytes"),
}
AGREE = {
    ("value", "clean"),
    ("exception", "wrong"),
    ("exception", "short"),
    ("exception", "bad acceptance"),
    ("waits", "short"),
}
MESSAGES = [vector for vector in JUDGED if vector["name"].startswith("message_") and "payload" in vector["java_decode"]]


def java(vector: dict[str, Any]) -> str:
    verdict = vector["java_decode"]
    if "exception" in verdict:
        return "exception"
    if "result" in verdict:
        return "waits"
    return "leftover" if verdict["leftover_bytes"] else "value"


def ours(data: bytes) -> str:
    decoded = wirekit.decode(data, "joyqueue.frame")
    if decoded.error is not None:
        return decoded.error.kind
    failed = [f"bad {check.kind}" for check in decoded.checks if check.status == "bad"]
    return "gap" if decoded.gaps else ", ".join(failed) or "clean"


@pytest.mark.parametrize("vector", JUDGED, ids=[vector["name"] for vector in JUDGED])
def test_verdict(vector: dict[str, Any]) -> None:
    verdicts = (java(vector), ours(bytes.fromhex(vector["hex"])))
    if vector["name"] in DIFFERENT:
        assert verdicts == DIFFERENT[vector["name"]][:2]
    else:
        assert verdicts in AGREE


@pytest.mark.parametrize("vector", JUDGED, ids=[vector["name"] for vector in JUDGED])
def test_a_decoded_frame_encodes_to_the_same_bytes(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    decoded = wirekit.decode(data, "joyqueue.frame")
    if decoded.error is None:
        assert wirekit.encode("joyqueue.frame", decoded.value) == data
        assert wirekit.encode("joyqueue.frame", wirekit.to_json(decoded.value)) == data


@pytest.mark.parametrize("vector", JUDGED, ids=[vector["name"] for vector in JUDGED])
def test_headers_agree(vector: dict[str, Any]) -> None:
    header = vector["java_decode"].get("header")
    value = wirekit.decode(bytes.fromhex(vector["hex"]), "joyqueue.header").value
    if header is not None and value.get("type") is not None:
        assert value.identity.qos_level.symbol == header["qosLevel"]
        assert value.identity.direction.symbol == header["direction"]
        fields = (value.version, value.request_id, value.type, value.send_time, value.status or 0, value.error)
        assert fields == tuple(header[name] for name in ("version", "requestId", "type", "sendTime", "status", "error"))


@pytest.mark.parametrize("vector", MESSAGES, ids=[vector["name"] for vector in MESSAGES])
def test_messages_agree(vector: dict[str, Any]) -> None:
    message = wirekit.decode(bytes.fromhex(vector["hex"]), "joyqueue.frame").value.payload.topics[0].messages[0]
    (expected,) = vector["java_decode"]["payload"]["data"]["t"]["messages"]
    code = message.system_code
    assert code.compressed == expected["compressed"]
    assert code.ordered == expected["ordered"]
    assert code.source == expected["source"]
    # JoyQueue wants the reserved bits to be 0 before it believes the batch bit.
    assert (code.batch and not code.reserved) == expected["batch"]
    ipv4 = code.address_type.symbol == "IPV4" or code.message_version == 0
    assert message.client_ip[: 6 if ipv4 else 16].hex() == expected["clientIp"]
    names = {"priority": "priority", "flag": "flag", "partition": "partition", "send_time": "startTime", "app": "app"}
    assert {name: message[name] for name in names} == {name: expected[other] for name, other in names.items()}
    assert message.body.hex() == expected["body"]


def test_a_wrong_length_of_a_message_is_reported_and_not_followed() -> None:
    """JoyQueue's network reader ignores the length of a record (Serializer.java:266-318)."""
    (vector,) = (vector for vector in JUDGED if vector["name"] == "message_syscode_0080")
    data = bytearray.fromhex(vector["hex"])
    start = data.index(b"\0\0\0\x57")
    data[start + 3] = 7
    decoded = wirekit.decode(bytes(data), "joyqueue.frame")
    assert decoded.error is None
    (check,) = (check for check in decoded.checks if check.status == "bad")
    assert (check.path, check.kind) == ("payload.topics[0].messages[0].length", "length")
    assert (check.stored, check.computed, check.offset) == (7, 0x57, start)
    assert wirekit.encode("joyqueue.frame", decoded.value) == data
