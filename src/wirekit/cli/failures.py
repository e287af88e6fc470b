"""What the answers of a connection refuse, by what its protocol declares for the tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from wirekit.conversation import Frame
from wirekit.tables.records import Frames, Row, records

MOST_FAILURES = 1000
"""Different ones that are remembered of a connection."""


class Failure(NamedTuple):
    """A refusal.

    Attributes:
        api: what was asked for.
        topic: what it was about, None where nothing tells.
        error: name of the error.
        text: what the server says besides, or None.
    """

    api: str | None
    topic: str | None
    error: str
    text: str | None


class Failures:
    """Collects the refusals of one connection."""

    def __init__(self) -> None:
        self._names: dict[str, dict[Any, Row]] = {}
        self._counts: Counter[Failure] = Counter()

    def take(self, frame: Frame) -> None:
        """Takes note of the next frame."""
        for failure in self._of(frame):
            if failure in self._counts or len(self._counts) < MOST_FAILURES:
                self._counts[failure] += 1

    def to_json(self) -> list[dict[str, Any]]:
        """Plain data: each with its ``count``, in the order in which they came first."""
        return [{**failure._asdict(), "count": count} for failure, count in self._counts.items()]

    def _of(self, frame: Frame) -> Iterator[Failure]:
        asked = frame.request
        about = Frames(frame.value, asked.value if asked is not None else None, self._names)
        rows = self._rows(frame, about)
        if not any(row.get("error") for row in rows):
            return
        api = (asked or frame).description.api
        topic = None
        if asked is not None:
            topics = {row.get("topic") for row in self._rows(asked, Frames(asked.value, None, self._names))} - {None}
            topic = topics.pop() if len(topics) == 1 else None
        for row in rows:
            if row.get("error"):
                yield Failure(api, row.get("topic") or topic, row["error"], row.get("error_text"))

    def _rows(self, frame: Frame, about: Frames) -> list[Row]:
        found = records(frame.protocol).rows(frame.schema, about)
        return [row for each in found if each.table in ("calls", "call_topics") for row in each.rows]
