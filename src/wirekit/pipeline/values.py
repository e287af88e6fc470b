"""The values of frames as JSON, without the messages, which are in another table."""

from __future__ import annotations

from typing import Any

from wirekit.conversation import Frame
from wirekit.tables.paths import ALL, Step
from wirekit.tables.records import Frames, records
from wirekit.values import json_text, to_json

LARGEST_VALUE = 512 << 20


def frame_value(frame: Frame) -> str | None:
    """The JSON text of a frame's value, without the fields that hold its messages. None if it is too long."""
    value = to_json(frame.value)
    facts = records(frame.protocol).messages(frame.schema, Frames(frame.value))
    for path in facts.payloads if facts is not None else ():
        _leave_out(value, path)
    text = json_text(value)
    return text if len(text) <= LARGEST_VALUE else None


def _leave_out(value: Any, path: tuple[Step, ...]) -> None:
    """Removes a field from plain JSON data."""
    step, inner = path[0], path[1:]
    if step == ALL:
        for item in value if isinstance(value, list) else ():
            _leave_out(item, inner)
    elif isinstance(value, dict) and step in value:
        if inner:
            _leave_out(value[step], inner)
        else:
            del value[step]
