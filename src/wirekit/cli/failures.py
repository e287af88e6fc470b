"""Counts the errors in the responses of a connection."""

from __future__ import annotations

from collections import Counter
from typing import Any

from wirekit.tables.facts import Facts, Refusal

MOST_FAILURES = 1000
"""The maximum number of different failures that are counted for a connection."""


class Failures:
    """Counts the refusals of one connection."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str | None, Refusal]] = Counter()

    def take(self, facts: Facts) -> None:
        """Counts the failures in the next frame."""
        for error in facts.errors:
            key = facts.api, error
            if key in self._counts or len(self._counts) < MOST_FAILURES:
                self._counts[key] += 1

    def to_json(self) -> list[dict[str, Any]]:
        """Plain data: each with its ``count``, in the order of their first occurrence."""
        return [{"api": api, **refusal._asdict(), "count": count} for (api, refusal), count in self._counts.items()]
