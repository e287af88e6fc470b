"""Message records, batch bodies, attribute texts, compressed bodies and addresses of JoyQueue's own serializers."""

from __future__ import annotations

import doctest
import hashlib
import itertools
from typing import Any

import pytest

import wirekit
from tests.jmq4.vectors import PARTS, differences, format_attributes, message_value
from wirekit.compression import compress, decompress
from wirekit.protocols.jmq4 import attributes
from wirekit.protocols.jmq4.attributes import parse_attributes
from wirekit.schemas.jmq4.message import FRAMINGS


def of(prefix: str) -> pytest.MarkDecorator:
    vectors = [vector for vector in PARTS if vector["name"].startswith(prefix)]
    return pytest.mark.parametrize("vector", vectors, ids=[vector["name"] for vector in vectors])


def test_every_part_is_tested() -> None:
    prefixes = ("message_", "batch_", "attributes_", "compress_", "clientip_")
    assert [vector["name"] for vector in PARTS if not vector["name"].startswith(prefixes)] == []


@of("message_")
def test_message(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    value = message_value(vector["fields"])
    decoded = wirekit.decode(data, "joyqueue.message")
    assert decoded.clean
    assert decoded.consumed == len(data)
    assert differences(value, decoded.value) == []
    assert wirekit.encode("joyqueue.message", decoded.value) == data
    assert wirekit.encode("joyqueue.message", value) == data


@of("batch_body")
def test_batch(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    decoded = wirekit.decode(data, "joyqueue.batch")
    assert decoded.clean
    assert wirekit.encode("joyqueue.batch", decoded.value) == data
    fields = vector["fields"]
    messages = [_inner(message) for message in fields.get("messages") or fields["java_messages"]]
    assert differences(messages, decoded.value.messages) == []
    assert wirekit.encode("joyqueue.batch", {"messages": messages}) == data


def _inner(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "priority": fields["priority"],
        "flag": fields["flag"],
        "body": fields.get("body_hex", fields.get("body")),
        "business_id": fields["businessId"],
        "attributes": format_attributes(dict(fields["attributes"] or {})),
    }


@of("attributes_")
def test_attributes(vector: dict[str, Any]) -> None:
    text = bytes.fromhex(vector["hex"]).decode()
    parsed = parse_attributes(text)
    if "java_map" in vector["fields"]:
        assert parsed == vector["fields"]["java_map"]
    else:
        assert vector["fields"]["equal_to_input"]
        assert format_attributes(parsed) == text


def test_examples() -> None:
    assert doctest.testmod(attributes).failed == 0


def test_attributes_that_java_refuses() -> None:
    with pytest.raises(wirekit.Misuse, match="four hex digits"):
        parse_attributes("a=\\u12")


@pytest.mark.parametrize(
    ("pieces", "digest"),
    [
        (
            ["\\", "\r", "\n", " ", "#", "=", "a"],
            "5a629c7faf19f96658a8eb97db9e217510f1adae65281d332233736ccf2b87a4",
        ),
        (
            ["\\", "\\uD83D", "\\uDE00", "\udcff", "t", "="],
            "4acc1f0c12633ec71ad8c0175783a017f75ba9b318c30a5d64700d9f7397bf3b",
        ),
    ],
    ids=["lines", "escapes"],
)
def test_every_short_text_reads_as_in_java(pieces: list[str], digest: str) -> None:
    """The digests are those of Properties.load (fixtures/jmq4/Attributes.java), which sees U+FFFD for such a byte."""
    digest_of_all = hashlib.sha256()
    for count in range(6):
        for text in itertools.product(pieces, repeat=count):
            digest_of_all.update(f"{_as_java(''.join(text))}\n".encode())
    assert digest_of_all.hexdigest() == digest


def _as_java(text: str) -> str:
    try:
        attributes = parse_attributes(text)
    except wirekit.Misuse:
        return "refused"
    pairs = [[each.encode("utf-16-be", "surrogatepass").hex() for each in pair] for pair in attributes.items()]
    return ",".join(sorted("=".join(pair) for pair in pairs))


@pytest.mark.parametrize(
    ("data", "attributes"),
    [
        (b"a=1\\\r\n", {"a": "1"}),
        (b"\\\r\n", {}),
        (b"\\\n", {"": ""}),
        (b"\\", {"": ""}),
        (b"\\\n  \n#no", {}),
        (b"a=\\\xff", {"a": "\ufffd"}),
        (b"a=\\uD83D\xe4\xb8", {"a": "\ud83d\ufffd"}),
    ],
)
def test_attributes_that_end_in_a_continuation_or_are_no_text(data: bytes, attributes: dict[str, str]) -> None:
    assert parse_attributes(data.decode(errors="surrogateescape")) == attributes


@of("compress_")
def test_compressed_body(vector: dict[str, Any]) -> None:
    codec = FRAMINGS[vector["name"].split("_")[1].upper()]
    data, plain = bytes.fromhex(vector["hex"]), bytes.fromhex(vector["fields"]["plain_hex"])
    assert decompress(codec, data) == plain
    assert decompress(codec, compress(codec, plain)) == plain


@of("clientip_")
def test_client_address(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    value = wirekit.decode(data, "joyqueue.client_address").value
    assert f"{'.'.join(map(str, value.address))}:{value.port}" == vector["fields"]["address"]
    assert wirekit.encode("joyqueue.client_address", value) == data
