"""The rows of ``calls`` and of its dependent tables from the frames of one connection, as the protocol declares.

A call is complete with its response, or when the connection ends. Until then only its columns are stored, no frame.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from wirekit.capture.links import Link
from wirekit.conversation import Description, Frame, Names
from wirekit.conversation.requests import MOST_WAITING
from wirekit.pipeline.ids import connection_id, frame_id
from wirekit.pipeline.messages import embedded_rows, message_row
from wirekit.tables.columns import CALL_TOPICS, CALLS, CONNECTIONS, DECLARED, FATES, GROUP_EVENTS, OFFSETS, SIDES
from wirekit.tables.records import FrameRows, Frames, MessageFacts, Records, Row, records

_BYTES = [(f"{side}_{fate}", (side, fate)) for side in SIDES for fate in FATES]

_OF_EVERY_CALL = {"call_id", "connection_id", "protocol", "time"}

Emitted = tuple[str, Row, int]
"""Name of a table, a row of it, bytes of its long values."""


@dataclass(slots=True)
class _Call:
    """The state of a call.

    Attributes:
        row: its columns of ``calls``.
        rows: rows of its frames in tables with several rows per call, one list per frame.
        messages: number of application messages by topic and partition; None if its frames have none.
    """

    row: Row
    rows: dict[str, list[list[FrameRows]]] = field(default_factory=dict)
    messages: Counter[tuple[str | None, int | None]] | None = None


class Calls:
    """The calls of one connection.

    Args:
        file: the name of the capture, as given to the run.
        link: the connection; its protocol is known once it has a frame.

    Attributes:
        names: the meanings of declared names.
    """

    def __init__(self, file: str, link: Link) -> None:
        self.file = file
        self.link = link
        self.connection_id = connection_id(file, link.client, link.server, link.ordinal)
        self._waiting: dict[tuple[str, int], _Call] = {}
        self.names: Names = {}
        self._facts: Row = {}
        self._number = self._errors = 0

    def frame(self, frame: Frame) -> tuple[str, list[Emitted]]:
        """Adds a frame; returns the id of its call, and the rows that it completes."""
        connection = self.connection_id
        description = frame.description
        evaluator = records(frame.protocol)
        request = frame.request
        waiting = None if request is None else self._waiting.pop((request.side, request.offset), None)
        frames = Frames(frame.value, None if request is None else request.value, self.names)
        call = waiting or _Call(self._first_row(frame, connection))
        call_id = call.row["call_id"]
        self._declared(call, evaluator, frame, frames)
        emitted = list(self._messages(call, evaluator, frame, frames, connection))
        if description.role == "request" and description.answered:
            self._waiting[frame.side, frame.offset] = call
            dialogue = self.link.dialogue
            one_sided = dialogue is not None and dialogue.requests.one_sided
            while len(self._waiting) > (0 if one_sided else MOST_WAITING):
                oldest = next(iter(self._waiting))
                emitted += self._completed(self._waiting.pop(oldest), "unanswered")
            return call_id, emitted
        if waiting is not None:
            call.row["response_time"], call.row["response_bytes"] = frame.time_us, frame.size
            call.row["latency_us"] = frame.latency_us
            outcome = "answered"
        elif description.role == "response":
            outcome = "unasked" if request is None else "repeated"
        else:
            outcome = "one_way" if description.role == "request" else "event"
        return call_id, [*emitted, *self._completed(call, outcome)]

    def add(self, number: int, errors: int, facts: Row, names: Names) -> None:
        """Adds the counts of calls whose rows columns have written.

        Args:
            number, errors: the number of calls, and of those with an error.
            facts: columns of the connection from these calls.
            names: the meanings of declared names after them.
        """
        self._number += number
        self._errors += errors
        self._facts = {**facts, **self._facts}
        for name, stands_for in names.items():
            self.names.setdefault(name, {}).update(stands_for)

    def take(self) -> tuple[int, int, Row, Names]:
        """Returns the arguments for ``add``, and resets the counts."""
        totals = self._number, self._errors, self._facts, self.names
        self._number, self._errors, self._facts, self.names = 0, 0, {}, {}
        return totals

    @property
    def waiting(self) -> int:
        """The number of incomplete calls."""
        return len(self._waiting)

    def end(self) -> Iterator[Emitted]:
        """The rows of the calls without a response, and of the connection."""
        for call in self._waiting.values():
            yield from self._completed(call, "unanswered")
        self._waiting.clear()
        link = self.link
        sizes = link.bytes
        yield (
            CONNECTIONS.name,
            {
                "connection_id": self.connection_id,
                "protocol": link.protocol,
                "time": link.opened_us,
                "ordinal": link.ordinal,
                "opened": link.opened_us,
                "closed": link.closed_us,
                "reason": link.closed,
                "known_start": link.known_start,
                "calls": self._number,
                "errors": self._errors,
                **self._facts,
                **{name: sizes[fate] for name, fate in _BYTES},
            },
            0,
        )

    def state(self) -> dict[str, Any]:
        """The state for ``restore``, in values that ``wirekit.plain`` can store."""
        waiting = [
            [
                place,
                call.row,
                {
                    table: [[[each.rows, each.keys] for each in side] for side in sides]
                    for table, sides in call.rows.items()
                },
                call.messages,
            ]
            for place, call in self._waiting.items()
        ]
        counts = [self._number, self._errors]
        return {"waiting": waiting, "names": self.names, "facts": self._facts, "counts": counts}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continues from a state that ``state`` returned.

        Raises:
            KeyError, TypeError, ValueError: ``state`` did not return this.
        """
        for place, row, stored_rows, messages in state["waiting"]:
            if not _OF_EVERY_CALL <= row.keys() <= {*CALLS.names, "time"} or not {*stored_rows} <= {*DECLARED}:
                raise ValueError(f"a call has the columns {', '.join(row)} and the tables {', '.join(stored_rows)}")
            rows = {
                table: [[FrameRows(table, rows, keys) for rows, keys in side] for side in sides]
                for table, sides in stored_rows.items()
            }
            self._waiting[place] = _Call(row, rows, messages)
        self.names, self._facts = state["names"], state["facts"]
        self._number, self._errors = state["counts"]

    def _first_row(self, frame: Frame, connection: str) -> Row:
        """The columns from the first frame of a call."""
        description = frame.description
        row: Row = {
            "call_id": frame_id(connection, frame.side, frame.offset),
            "connection_id": connection,
            "protocol": frame.protocol,
            "time": frame.time_us,
            "api": description.api,
            "version": description.version,
            "correlation_id": description.correlation_id,
        }
        kind = "response" if description.role == "response" else "request"
        row[f"{kind}_time"], row[f"{kind}_bytes"] = frame.time_us, frame.size
        return row

    def _declared(self, call: _Call, evaluator: Records, frame: Frame, frames: Frames) -> None:
        """Stores the declared rows of a frame."""
        rows_by_table: dict[str, list[FrameRows]] = {}
        for each in evaluator.rows(frame.schema, frames):
            if each.table == CALLS.name:
                for row in each.rows:
                    call.row.update(row)
            elif each.table == CONNECTIONS.name:
                for row in each.rows:
                    self._facts = {**row, **self._facts}
            elif each.rows:
                rows_by_table.setdefault(each.table, []).append(each)
        for table, rows in rows_by_table.items():
            call.rows.setdefault(table, []).append(rows)

    def _messages(
        self, call: _Call, evaluator: Records, frame: Frame, frames: Frames, connection: str
    ) -> Iterator[Emitted]:
        """The rows of the messages of a frame, and the rows of records in them."""
        facts = evaluator.messages(frame.schema, frames)
        if facts is None and not frame.messages:
            return
        counts = call.messages = Counter() if call.messages is None else call.messages
        common: Row = {
            **_declared_for_all(facts, frames),
            "call_id": call.row["call_id"],
            "connection_id": connection,
            "time": frame.time_us,
            "direction": _direction(frame.description, frame.side, call.row.get("is_replica")),
        }
        for message in frame.messages:
            counts[message.topic, message.partition] += 1
            row = message_row(message, self.file, common)
            yield "messages", row, _size(row)
            if evaluator.holds_rows(message.topic):
                yield from embedded_rows(evaluator, message, self.file, common)

    def _completed(self, call: _Call, outcome: str) -> Iterator[Emitted]:
        """The rows of a complete call."""
        row = call.row
        row["outcome"] = outcome
        rows = {table: _merged(DECLARED[table].keys, sides) for table, sides in call.rows.items()}
        own = _error(row)
        topics = rows.get(CALL_TOPICS.name, [])
        failed = {(each.get("topic"), each.get("partition")): each for each in topics if "error" in each}
        if call.messages is not None:
            _count_messages(topics, call.messages)
        for each in topics:
            yield CALL_TOPICS.name, self._with_call(each, row, own), _size(each)
        for each in rows.get(GROUP_EVENTS.name, ()):
            yield GROUP_EVENTS.name, self._with_call(each, row, own), _size(each)
        for each in rows.get(OFFSETS.name, ()):
            error = failed.get((each.get("topic"), each.get("partition")))
            offset = {**self._with_call(each, row, own if error is None else _error(error)), "source": "request"}
            yield OFFSETS.name, offset, _size(each)
        if "error" not in row and failed:
            row.update(_error(next(iter(failed.values()))))
        names = {each["topic"] for each in topics if "topic" in each}
        names |= {row["topic"]} if "topic" in row else set()
        row["topics"] = len(names) if names or call.rows.get(CALL_TOPICS.name) is not None else None
        if len(names) == 1:
            row.setdefault("topic", next(iter(names)))
        row["messages"] = None if call.messages is None else call.messages.total()
        self._number += 1
        self._errors += "error" in row
        yield CALLS.name, row, _size(row)

    def _with_call(self, row: Row, call: Row, error: Row) -> Row:
        return {
            **(row if "error" in row else {**row, **error}),
            "call_id": call["call_id"],
            "protocol": call["protocol"],
            "time": call["time"],
        }


def _count_messages(topics: list[Row], messages: Counter[tuple[str | None, int | None]]) -> None:
    """Sets the number of messages of each topic, or of each partition if several are named."""
    rows_of = Counter(each.get("topic") for each in topics)
    messages_of: Counter[str | None] = Counter()
    for (topic, _), count in messages.items():
        messages_of[topic] += count
    for each in topics:
        topic = each.get("topic")
        each["messages"] = messages_of[topic] if rows_of[topic] == 1 else messages[topic, each.get("partition")]


def _error(row: Row) -> Row:
    return {name: row[name] for name in ("error_code", "error") if name in row}


def _declared_for_all(facts: MessageFacts | None, frames: Frames) -> Row:
    """The declared columns that all messages of a frame share."""
    return {} if facts is None or facts.suffices else next(facts.rows(frames), {})


def _direction(description: Description, side: str, is_replica: bool | None) -> str:
    if description.role == "response":
        return "replicated" if is_replica else "fetched"
    return "produced" if side == "client" else "pushed"


def _size(row: Row) -> int:
    """The length of its text and bytes."""
    return sum([len(value) for value in row.values() if type(value) is str or type(value) is bytes])


def _merged(keys: tuple[str, ...], frames: list[list[FrameRows]]) -> list[Row]:
    """The rows of a request and of its response, merged where their keys agree."""
    if len(frames) == 1:
        return [row for each in frames[0] for row in each.rows]
    requests, responses = frames
    declared = [frozenset.intersection(*(each.keys for each in side)) for side in (requests, responses)]
    common = [key for key in keys if key in declared[0] and key in declared[1]]
    waiting: dict[tuple[Any, ...], deque[Row]] = defaultdict(deque)
    for each in requests:
        for row in each.rows:
            waiting[tuple(row.get(key) for key in common)].append(row)
    merged = []
    for each in responses:
        for row in each.rows:
            same = waiting.get(tuple(row.get(key) for key in common))
            merged.append({**same.popleft(), **row} if same else row)
    return merged + [row for rows in waiting.values() for row in rows]
