"""Whatever the bytes are, rules and summaries give an answer."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.rules.conversations import FIXTURES, captured
from wirekit.conversation import Conversation, Frame, Quarantined
from wirekit.rules import Checker, rules_of
from wirekit.strategies import damaged_conversation
from wirekit.values import json_text

DAMAGES = 60
CAPTURES = [path for path in sorted(FIXTURES.glob("*.pcap*")) if path.stat().st_size < 100_000]


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_damaged_frames(path: Path) -> None:
    random = Random(path.name)
    connections = [(link.protocol, frames[:40]) for link, frames in captured(path)]
    for _ in range(DAMAGES):
        protocol, frames = random.choice(connections)
        rules = rules_of(protocol)
        assert rules is not None
        conversation, checker = Conversation(protocol), Checker(rules)
        for each in frames[random.randrange(len(frames)) :][:12]:
            data = bytearray(each.data)
            for _ in range(random.choice((0, 1, 1, 3))):
                data[random.randrange(len(data))] = random.choice((0, 1, 127, 128, 255, random.randrange(256)))
            for item in conversation.receive(each.side, bytes(data), time_us=each.time_us):
                if isinstance(item, (Frame, Quarantined)):
                    checker.take(item)
        assert all(violation.found is not None for violation in checker.close(1 << 60))
        assert json_text(conversation.dialogue.summary())


@pytest.mark.parametrize("protocol", ["kafka", "pulsar", "joyqueue"])
def test_generated_conversations_have_damaged_frames(protocol: str) -> None:
    for seed in range(8):
        assert damaged_conversation(protocol, seed=seed, length=6, kinds=["damaged frame"]).faults()
