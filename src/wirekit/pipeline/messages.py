"""The rows of ``messages`` from application messages, and the rows of records embedded in messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wirekit.capture.links import Item
from wirekit.conversation import Frame, Message
from wirekit.conversation.events import SHOWN
from wirekit.registry import registry
from wirekit.tables.records import Records, Row
from wirekit.times import day

COLUMN_OF = {name: name for name in SHOWN} | {
    "offset": "log_offset",
    "timestamp": "timestamp_ms",
    "check": "crc_status",
}
"""{field of a message: its column}; an offset that is text is in ``message_id`` instead."""
STORED = {"direction": "stored"}
"""The columns that all messages of stored files share."""
_COLUMNS = [COLUMN_OF[name] for name in Message._fields if name in COLUMN_OF]


def message_of(row: Mapping[str, Any]) -> Message:
    """The message in a row of the table ``messages``, with the details of its protocol."""
    values = {name: row[column] for name, column in COLUMN_OF.items()}
    if row["message_id"] is not None:
        values["offset"] = row["message_id"]
    return Message(**values, details=registry.protocol(row["protocol"]).declared.detailed(row))


def unplaced(item: Item | None, messages: Sequence[Message]) -> int:
    """How many messages in a response have no offset, although they are in a batch; in requests none may have one.

    Args:
        item: the frame of the messages.
        messages: some of its messages; none if it is not a frame.
    """
    if not isinstance(item, Frame) or item.description.role != "response":
        return 0
    return sum(message.offset is None and "batch_index" in message.facts for message in messages)


def message_row(message: Message, file: str, common: Mapping[str, Any]) -> Row:
    """A row of the table ``messages``.

    Args:
        message: the message; its ``facts`` become columns as well.
        file: the name of the capture or stored file, as given to the run.
        common: columns of all messages of its frame or file.
    """
    offset = message.offset
    numbered = isinstance(offset, int)
    return {
        **common,
        "file": file,
        "date": day(common["time"] if "time" in common else _micros(message.timestamp)),
        **dict(zip(_COLUMNS, message, strict=False)),
        "log_offset": offset if numbered else None,
        "message_id": None if numbered else offset,
        "timestamp": message.timestamp,
        **message.facts,
    }


def embedded_rows(
    evaluator: Records, message: Message, file: str, common: Mapping[str, Any]
) -> Iterator[tuple[str, Row, int]]:
    """The rows of other tables in a message, such as a stored offset, each with the size of its long values.

    Args:
        evaluator: the evaluator of the message's protocol.
        message, file, common: as for ``message_row``.
    """
    for each in evaluator.embedded(message.topic, message.key, message.value):
        for row in each.rows:
            at_us = common.get("time")
            if at_us is None:
                at_us = _micros(row.get("commit_time", message.timestamp))
            place = {
                "call_id": common.get("call_id"),
                "file": file,
                "date": day(at_us),
                "protocol": message.protocol,
                "position": message.facts.get("position"),
                "time": at_us,
                "source": common["direction"],
                "deleted": message.value is None,
            }
            yield each.table, {**row, **place}, 0


def _micros(milliseconds: int | None) -> int | None:
    return None if milliseconds is None else milliseconds * 1000
