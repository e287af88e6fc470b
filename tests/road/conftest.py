"""Fixtures of the tests of the road."""

from __future__ import annotations

from typing import Any

import pytest

from wirekit.conversation import Conversation, Event


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What objects get of the bytes of connections."""
    pieces: list[bytes] = []

    def receive(self: Conversation, side: str, data: bytes, **options: Any) -> list[Event]:
        pieces.append(data)
        return whole(self, side, data, **options)

    whole = Conversation.receive
    monkeypatch.setattr(Conversation, "receive", receive)
    return pieces
