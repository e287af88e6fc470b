"""The assertions for tests of an own codec: they hold for a correct one, and name the damage for others."""

from __future__ import annotations

import importlib.util
import json
import struct
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import wirekit
from wirekit.errors import Misuse
from wirekit.testing import agrees_with, check_vectors, export_vectors, never_crashes, roundtrip

KEY = "kafka.sasl_token"


@pytest.fixture(scope="module")
def parsers() -> ModuleType:
    spec = importlib.util.spec_from_file_location("parsers", Path(__file__).with_name("parsers.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def encode(value: Any) -> bytes:
    return struct.pack(">i", len(value["token"])) + bytes(value["token"])


def test_a_correct_codec(parsers: ModuleType) -> None:
    roundtrip(KEY, parsers.sound, encode)
    never_crashes(KEY, parsers.sound)
    agrees_with(KEY, parsers.sound)


def test_assertions_name_the_fault(parsers: ModuleType) -> None:
    with pytest.raises(AssertionError, match="was rebuilt as"):
        roundtrip(KEY, parsers.misreading, encode)
    with pytest.raises(AssertionError, match=r"exception: struct.error: unpack_from.*\n.*needs 4 bytes") as failed:
        never_crashes(KEY, parsers.unchecked)
    assert isinstance(failed.value.__cause__, struct.error)
    with pytest.raises(AssertionError, match="value: token: wirekit decodes"):
        agrees_with(KEY, parsers.misreading)
    with pytest.raises(AssertionError, match="accepts: the target accepts bytes that wirekit refuses"):
        agrees_with(KEY, parsers.lenient, kinds=["length huge"])
    with pytest.raises(AssertionError, match="no-json"):
        agrees_with(KEY, lambda data: {(1, 2): 3})


def test_the_damage_of_a_minimised_input_says_so() -> None:
    """The smallest input no longer ends where the damage cut it."""

    def error_of(data: bytes) -> int:
        return int(struct.unpack(">iih", data[:10])[2])

    with pytest.raises(
        AssertionError, match=r"damage: truncated in correlation_id, then minimised; .*\ninput, 0 bytes$"
    ):
        never_crashes("kafka.heartbeat.response.v0", error_of)
    with pytest.raises(AssertionError, match=r"damage: truncated, at byte 0; .*\ninput, 0 bytes$"):
        never_crashes(KEY, lambda data: data[3])


def test_the_profile_says_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs: list[bytes] = []
    monkeypatch.setitem(__import__("wirekit.testing").testing.PROFILES, "exhaustive", 500)
    for profile, count in (("quick", 300), ("exhaustive", 500)):
        monkeypatch.setenv("WIREKIT_PROFILE", profile)
        inputs.clear()
        never_crashes(KEY, inputs.append)
        assert len(inputs) == count
    monkeypatch.setenv("WIREKIT_PROFILE", "long")
    with pytest.raises(Misuse, match="quick or exhaustive"):
        never_crashes(KEY, inputs.append)


def test_golden_vectors(parsers: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "vectors.jsonl"
    export_vectors(KEY, path, count=200)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert {line["verdict"] for line in lines} == {"sound", "damaged", "doubtful"}
    assert check_vectors(path, parsers.sound) == 200
    with pytest.raises(AssertionError, match=r"line \d+: kafka.sasl_token: value: token"):
        check_vectors(path, parsers.misreading)
    changed = next(line for line in lines if line["verdict"] == "sound") | {"value": {"token": "00"}}
    path.write_text(json.dumps(changed))
    with pytest.raises(AssertionError, match="wirekit decodes '00'"):
        check_vectors(path, parsers.sound)  # the file says what is right
    misspelt = json.dumps(lines[0] | {"verdict": "valid"}).encode()
    for line in (b'{"hex": "00"}', misspelt, b"\xff\xfe", b"[" * 100_000):
        path.write_bytes(line)
        with pytest.raises(Misuse, match="line 1 is not a vector"):
            check_vectors(path, parsers.sound)


def test_a_codec_that_cannot_rebuild_is_shown_with_the_bytes(parsers: ModuleType) -> None:
    def refusing(value: Any) -> bytes:
        raise KeyError("size")

    with pytest.raises(AssertionError, match=r"^kafka.sasl_token: [0-9a-f]+ is valid, but: KeyError: 'size'$"):
        roundtrip(KEY, parsers.sound, refusing)
    with pytest.raises(AssertionError, match=r"was rebuilt as None$"):
        roundtrip(KEY, parsers.sound, lambda value: None)


def test_private_attributes_are_not_compared(parsers: ModuleType) -> None:
    class Token:
        def __init__(self, data: bytes) -> None:
            self.token, self._data = parsers.sound(data)["token"], data

    agrees_with(KEY, Token, count=20)
    agrees_with("pulsar.frame", lambda data: wirekit.decode(data, "pulsar.frame", strict=True).value, count=20)


def test_values_with_slots_are_compared_by_their_fields(parsers: ModuleType) -> None:
    @dataclass(slots=True)
    class Token:
        token: bytes

    agrees_with(KEY, lambda data: Token(parsers.sound(data)["token"]))
    with pytest.raises(AssertionError, match="value: token: wirekit decodes"):
        agrees_with(KEY, lambda data: Token(parsers.sound(data)["token"] + b"x"))


def test_no_inputs_are_no_test(parsers: ModuleType) -> None:
    for count in (0, -1):
        with pytest.raises(Misuse, match=f"count must be at least 1, not {count}"):
            never_crashes(KEY, parsers.sound, count=count)
