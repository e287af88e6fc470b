"""Application messages to rows of ``messages``, and to the rows that are inside of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from wirekit.conversation import Message
from wirekit.tables.records import Records, Row
from wirekit.tables.times import day


def message_row(message: Message, file: str, common: Mapping[str, Any]) -> Row:
    """A row of the table ``messages``.

    Args:
        message: the message; ``facts`` in it are columns as well.
        file: the capture or stored file, as it was named to the run.
        common: columns of all messages of its frame or file.
    """
    offset = message.offset
    return {
        **common,
        "file": file,
        "date": day(common["time"] if "time" in common else _micros(message.timestamp)),
        "protocol": message.protocol,
        "topic": message.topic,
        "partition": message.partition,
        "log_offset": offset if isinstance(offset, int) else None,
        "message_id": offset if isinstance(offset, str) else None,
        "timestamp": message.timestamp,
        "timestamp_ms": message.timestamp,
        "timestamp_type": message.timestamp_type,
        "key": message.key,
        "value": message.value,
        "attributes": message.attributes,
        "codec": message.codec,
        "crc": message.crc,
        "crc_status": message.check,
        "schema": message.schema,
        **message.facts,
    }


def embedded_rows(
    evaluator: Records, message: Message, file: str, common: Mapping[str, Any]
) -> Iterator[tuple[str, Row, int]]:
    """The rows of other tables that a message holds, such as a stored offset, with the bytes of their long values.

    Args:
        evaluator: of the message's protocol.
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
