"""Which pairs of parameters a long random run takes: all of them only in ``make test-long``, or exhaustively."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import cycle, product
from pathlib import Path
from typing import Any

LONG = "WIREKIT_LONG" in os.environ or os.environ.get("HYPOTHESIS_PROFILE") == "exhaustive"


def pairs(first: Iterable[Any], second: Iterable[Any]) -> list[tuple[Any, Any]]:
    """All pairs, or each of ``first`` with one of ``second``, in turn."""
    return list(product(first, second) if LONG else zip(first, cycle(second), strict=False))


def name_of(value: Path | str) -> str:
    """The id of a parameter."""
    return value.stem if isinstance(value, Path) else value
