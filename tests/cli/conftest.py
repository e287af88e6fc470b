"""Fixtures of the tests of the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from wirekit.cli import complaints


@pytest.fixture(scope="session")
def send(fixtures: Path) -> bytes:
    """A SEND frame of a real client, with a batch in it."""
    lines = (fixtures / "pulsar" / "frames" / "batch.frames.jsonl").read_text().splitlines()
    return next(bytes.fromhex(line["hex"]) for line in map(json.loads, lines) if line["type"] == "SEND")


@pytest.fixture(autouse=True)
def every_line(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The roads find problems in another order, so all of their lines are compared."""
    if hasattr(request.module, "same_lines"):
        monkeypatch.setattr(complaints, "MOST_LINES", sys.maxsize)
