"""The client, topics, group and errors of frames, by the declaration of their protocol's tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from wirekit.conversation import Frame
from wirekit.conversation.requests import MOST_WAITING
from wirekit.tables.records import Frames, Row, records

TABLES = ("calls", "call_topics")
"""The tables whose declared rows have the facts of a frame."""


class Refusal(NamedTuple):
    """An error in a response.

    Attributes:
        topic: the topic that it refers to, or None.
        error: its name.
        text: the server's error message, or None.
    """

    topic: str | None
    error: str
    text: str | None


@dataclass(frozen=True, slots=True)
class Facts:
    """The topic, names and other facts of a frame; a response has those of its request.

    Attributes:
        api: the frame's API, or that of its request.
        client: the client's name.
        group_id: consumer group, subscription or consuming app.
        topics: {topic: its partitions}; empty if the frame names no partition.
        request_topics: of a response, the topics of its request.
        errors: the errors in the frame.
        connection: columns of the table ``connections`` known so far; shared by the frames of a connection.
    """

    api: str | None = None
    client: str | None = None
    group_id: str | None = None
    topics: dict[str, list[int]] = field(default_factory=dict)
    request_topics: tuple[str, ...] = ()
    errors: tuple[Refusal, ...] = ()
    connection: Row = field(default_factory=dict)


class ConnectionFacts:
    """Evaluates the frames of one connection, in their order.

    Attributes:
        names: the meanings of declared names.
    """

    def __init__(self) -> None:
        self.names: dict[str, dict[Any, Row]] = {}
        self._waiting: dict[tuple[str, int], Facts] = {}
        self._connection: Row = {}

    @property
    def waiting(self) -> int:
        """The number of requests that wait for their response."""
        return len(self._waiting)

    def of(self, frame: Frame) -> Facts:
        """The facts of the next frame."""
        request = frame.request
        request_facts = Facts() if request is None else self._waiting.pop((request.side, request.offset), Facts())
        frames = Frames(frame.value, None if request is None else request.value, self.names)
        rows: list[Row] = []
        for each in records(frame.protocol).rows(frame.schema, frames):
            if each.table in TABLES:
                rows += each.rows
            elif each.table == "connections":
                for row in each.rows:
                    self._connection |= row | self._connection
        topics: dict[str, list[int]] = {}
        for row in rows:
            if "topic" in row:
                partitions = topics.setdefault(row["topic"], [])
                partitions += [row["partition"]] if "partition" in row else []
        only = next(iter(request_facts.topics)) if len(request_facts.topics) == 1 else None
        facts = Facts(
            (request or frame).description.api,
            _first(rows, "client") or request_facts.client,
            _first(rows, "group_id") or request_facts.group_id,
            topics or request_facts.topics,
            tuple(request_facts.topics),
            tuple(
                Refusal(row.get("topic") or only, row["error"], row.get("error_text"))
                for row in rows
                if row.get("error")
            ),
            self._connection,
        )
        if frame.description.role == "request" and frame.description.answered:
            self._waiting[frame.side, frame.offset] = facts
            if len(self._waiting) > MOST_WAITING:
                del self._waiting[next(iter(self._waiting))]
        return facts


def _first(rows: list[Row], column: str) -> str | None:
    return next((row[column] for row in rows if row.get(column)), None)
