"""The lines that ``wirekit frames --output json`` prints."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from wirekit.capture.links import Link
from wirekit.conversation import Frame
from wirekit.value_text import value_text
from wirekit.values import json_text


def frame_line(link: Link, frame: Frame, file: str) -> str:
    """The line of a frame of a file."""
    return line_of(frame, line_head(file, link.name, *link.addresses(frame.side)), frame.latency_us)


def line_head(file: str, connection: str, sender: str, receiver: str) -> str:
    """The beginning of the line of every frame that one side of a connection sends."""
    text = json_text({"file": file, "connection": connection, "from": sender, "to": receiver})
    return f"{text[:-1]}, "


def line_of(frame: Frame, head: str, latency_us: int | None) -> str:
    """The line of a frame, after such a beginning."""
    description, decoded, reason = frame.description, frame.decoded, frame.reason
    time = "null" if frame.time_us is None else frame.time_us / 1_000_000
    latency = "null" if latency_us is None else latency_us / 1000
    error = "null"
    if decoded.error is not None or reason is not None:
        error = json_text(_undecoded(frame) if decoded.error is None else decoded.error.to_json())
    undeclared = "" if reason == frame.wrong else f', "undeclared": {json_text(reason)}'
    of_kind = _line_of_kind(frame.protocol, decoded.schema, description.api, description.version)
    identifier = description.correlation_id
    number = identifier if type(identifier) is int else json_text(identifier)
    return (
        f'{head}"time": {time}, {of_kind}, "correlation_id": {number}, "offset": {frame.offset}, '
        f'"length": {frame.size}, "value": {value_text(decoded.value)}, "checks": {value_text(decoded.checks)}, '
        f'"error": {error}, "latency_ms": {latency}{undeclared}}}'
    )


@lru_cache(1 << 10)
def _line_of_kind(protocol: str, schema: str, api: str | None, version: int | None) -> str:
    """The part of a line that all frames of a kind share."""
    return json_text({"protocol": protocol, "schema": schema, "api": api, "version": version})[1:-1]


def _undecoded(frame: Frame) -> dict[str, Any] | None:
    if frame.wrong is None:
        return None
    return {"kind": "undecoded", "path": "", "offset": frame.offset, "message": frame.wrong}
