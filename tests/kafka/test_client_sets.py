"""The message sets that many clients write, in their own way of each codec (fixtures/kafka/clients.jsonl)."""

from __future__ import annotations

import json
from typing import Any

import pytest

import wirekit
from tests.agreement.law import agree
from tests.kafka.golden import FIXTURES
from wirekit.protocols.kafka.reading import messages_of

SETS = [json.loads(line) for line in (FIXTURES / "clients.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("case", SETS, ids=[f"{case['client']}, {case['codec']}" for case in SETS])
def test_every_engine_reads_what_a_client_sent_and_writes_the_same_bytes(case: dict[str, Any]) -> None:
    data = bytes.fromhex(case["hex"])
    decoded = agree("kafka.message_set", data, {})
    assert decoded.clean
    assert wirekit.encode("kafka.message_set", decoded.value) == data
    assert {
        (entry.message.magic, entry.message.attributes.codec.symbol.lower()) for entry in decoded.value.messages
    } == {(case["magic"], case["codec"])}
    lines = [message.to_json() for message in messages_of(decoded)]
    assert [[line["key"], line["value"]] for line in lines] == case["sent"]
    assert {line["check"] for line in lines} == {"ok"}
