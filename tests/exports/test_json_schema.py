"""The JSON Schema of a layout takes the values that are decoded, and refuses others."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import wirekit
from tests.own import own
from wirekit.exports import export
from wirekit.wire import Bytes, Compressed, String, Struct, int8, int16

FIXTURES = Path(__file__).parents[2] / "fixtures"


@cache
def validator(key: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads(export([key], "jsonschema").text))


def vectors() -> Iterator[tuple[str, bytes]]:
    """(key, bytes) of frames of real peers."""
    for line in (FIXTURES / "jmq4" / "frames.jsonl").read_text(encoding="utf-8").splitlines()[::12]:
        yield "joyqueue.frame", bytes.fromhex(json.loads(line)["hex"])
    for path in sorted((FIXTURES / "pulsar" / "frames").iterdir())[:2]:
        for line in path.read_text(encoding="utf-8").splitlines()[:10]:
            yield "pulsar.frame", bytes.fromhex(json.loads(line)["hex"])


def test_frames_of_real_peers_are_valid() -> None:
    compared = 0
    for key, data in vectors():
        decoded = wirekit.decode(data, key)
        if decoded.error is None:
            validator(key).validate(json.loads(json.dumps(wirekit.to_json(decoded.value))))
            compared += 1
    assert compared > 15


@pytest.mark.parametrize("key", ["kafka.log_segment", "net.pcap", "pulsar.entry"])
def test_the_example_of_a_layout_is_valid(key: str) -> None:
    Draft202012Validator.check_schema(validator(key).schema)
    value = wirekit.decode(wirekit.encode(key, wirekit.example(key)), key).value
    validator(key).validate(json.loads(json.dumps(wirekit.to_json(value))))


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        ("correlation_id", 1 << 31),
        ("correlation_id", "1"),
        ("api_key", {"value": 0, "symbol": "fetch"}),
        ("client_id", 7),
        ("unknown", 1),
    ],
)
def test_other_values_are_refused(path: str, wrong: Any) -> None:
    value = wirekit.example("kafka.request")
    value = wirekit.to_json(wirekit.decode(wirekit.encode("kafka.request", value), "kafka.request").value)
    assert validator("kafka.request").is_valid(value)
    assert not validator("kafka.request").is_valid({**value, path: wrong})


def test_compressed_data_whose_content_is_damaged_is_valid_if_it_says_so() -> None:
    content = Struct("a" / int16, "b" / String(int8))
    with own(Compressed(Bytes(int8), 1, {1: "gzip"}, content)) as key:
        packed = gzip.compress(b"\0\1\4ab")
        value = wirekit.to_json(wirekit.decode(bytes([len(packed)]) + packed, key).value)
        assert (value["content"], value["$keep"]) == ({"a": 1}, ["compressed"])
        assert validator(key).is_valid(value)
        assert not validator(key).is_valid({**value, "$keep": []})
