"""Bytes that are not in order, and the messages that are in them all the same (fixtures/kafka/cases.jsonl)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import wirekit
from tests.kafka.golden import FIXTURES
from wirekit.cli import main
from wirekit.protocols.kafka.reading import messages_of

CASES = [json.loads(line) for line in (FIXTURES / "cases.jsonl").read_text().splitlines()]


def cases(key: str) -> list[Any]:
    return [pytest.param(case, id=case["case"]) for case in CASES if case["key"] == key]


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_round_trip(case: dict[str, Any]) -> None:
    decoded = wirekit.decode(bytes.fromhex(case["hex"]), case["key"])
    if decoded.error is None:
        assert wirekit.encode(case["key"], decoded.value) == decoded.data


@pytest.mark.parametrize("case", cases("kafka.message_set"))
def test_messages(case: dict[str, Any]) -> None:
    decoded = wirekit.decode(bytes.fromhex(case["hex"]), case["key"])
    lines = [message.to_json() for message in messages_of(decoded)]
    assert [[line[name] for name in ("offset", "value", "check")] for line in lines] == case["messages"]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("engine", ["rows", "columns"])
@pytest.mark.parametrize("case", [*cases("kafka.message_set"), *cases("kafka.log_segment")])
def test_messages_of_a_file(
    case: dict[str, Any], engine: str, strict: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A failed check is said on standard error, and --strict fails for it. Damage of a segment always fails."""
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(bytes.fromhex(case["hex"]))
    if engine == "columns":
        pytest.importorskip("numba")
        pytest.importorskip("pyarrow")
    with pytest.raises(SystemExit) as stopped:
        main(["messages", str(path), "--output", "json", "--engine", engine, *(["--strict"] if strict else [])])
    out, err = capfd.readouterr()
    lines = [json.loads(line) for line in out.splitlines()]
    assert [[line[name] for name in ("offset", "value", "check")] for line in lines] == case["messages"]
    assert "skipped" in err or "message_size" in err or case["key"] == "kafka.message_set"
    bad = sum(check == "bad" for _, _, check in case["messages"])
    assert ("with a failed check" in err) == bool(bad)
    assert stopped.value.code == (1 if (strict and bad) or case["key"] == "kafka.log_segment" else 0)
