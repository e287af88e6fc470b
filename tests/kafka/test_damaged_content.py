"""Damaged compressed sets beside what Kafka's consumers deliver of them (fixtures/kafka/damaged_sets.jsonl)."""

from __future__ import annotations

import json
from typing import Any

import pytest

import wirekit
from tests.agreement.law import agree
from tests.kafka.golden import FIXTURES
from wirekit.protocols.kafka.reading import messages_of

CASES = [json.loads(line) for line in (FIXTURES / "damaged_sets.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    "case", CASES, ids=[f"{case['codec']}, magic {case['magic']}, {case['case']}" for case in CASES]
)
def test_no_message_that_kafka_delivers_is_lost_and_no_offset_is_wrong(case: dict[str, Any]) -> None:
    """Kafka counts the offsets of magic 1 from the last message before a cut."""
    decoded = agree("kafka.message_set", bytes.fromhex(case["hex"]), {})
    assert [check.kind for check in decoded.checks if check.status == "bad"][:1] == ["decompression"]
    messages = [message for message in messages_of(decoded) if message.check == "ok"]
    offset_by_value = {value.encode(): offset for offset, value in case["sent"]}
    assert all(message.offset in (None, offset_by_value[message.value]) for message in messages)
    values = [message.value for message in messages]
    for release in ("0.10.2.1", "0.10.0.1"):
        delivered = [value.encode() for _, is_valid, value in case[release]["messages"] if is_valid]
        assert values[: len(delivered)] == delivered
    after = [value.encode() for _, value in case["sent"] if value == "after"]
    assert values[len(values) - len(after) :] == after


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_columns_have_the_same_offsets_and_verdicts(case: dict[str, Any]) -> None:
    columns = pytest.importorskip("wirekit.protocols.kafka.columns")
    data = bytes.fromhex(case["hex"])
    batch, _ = columns.messages(data)
    found = zip(*(batch[name].to_pylist() for name in ("offset", "value", "check")), strict=True)
    messages = messages_of(wirekit.decode(data, "kafka.message_set"))
    assert list(found) == [(message.offset, message.value, message.check) for message in messages]
