"""A fixture that writes capture files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.capture.capture_bytes import Write


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a capture file."""

    def written(data: bytes) -> Path:
        path = tmp_path / "a.cap"
        path.write_bytes(data)
        return path

    return written
