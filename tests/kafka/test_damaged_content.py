"""Damaged compressed sets beside what Kafka's consumers deliver of them (fixtures/kafka/damaged_sets.jsonl)."""

from __future__ import annotations

import json
from typing import Any

import pytest

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
