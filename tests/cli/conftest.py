"""Fixtures of the tests of the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def send(fixtures: Path) -> bytes:
    """A SEND frame of a real client, with a batch in it."""
    lines = (fixtures / "pulsar" / "frames" / "batch.frames.jsonl").read_text().splitlines()
    return next(bytes.fromhex(line["hex"]) for line in map(json.loads, lines) if line["type"] == "SEND")
