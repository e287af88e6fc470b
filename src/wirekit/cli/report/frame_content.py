"""A frame for the page: its bytes, and its fields with the byte range of each."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from wirekit.conversation import Frame
from wirekit.display.fields import FRAMING, Line, field_lines, number_text
from wirekit.engine import Decoded
from wirekit.errors import Limit, plural
from wirekit.pipeline.summary import kind_of_reason
from wirekit.values import Check, Span

MOST_BYTES = 8192
"""The maximum number of bytes of a frame, or of a piece of decompressed data, in the page."""
MOST_LINES = 1000
"""The maximum number of fields of a frame in the page."""
PLAIN = (*FRAMING, "number", "bit", "bits", "absent", "ahead", "record", "list")
"""Kinds of spans that hold neither application data nor secrets."""
HARMLESS_TEXTS = ("", "null", "not decoded")
"""Texts of fields without bytes that reveal no data."""

FrameContent = dict[str, Any]


def frame_content(frame: Frame, names: Collection[str] | None) -> FrameContent | None:
    """The frame as plain JSON data, None if its fields take too much memory.

    Args:
        frame: a frame of a capture.
        names: texts that may be shown; None to show everything. All other texts, bytes and undecoded bytes are
            replaced by dots: they may be application data, passwords or tokens.
    """
    decoded = frame.decoded
    try:
        spans = decoded.spans
    except Limit:
        return None
    by_path = {span.path: span for span in spans if span.kind not in FRAMING}
    shown = {id(span) for span in spans if names is None or _harmless(decoded, span, names)}
    lines = field_lines(decoded)
    fields = [
        _field(decoded, line, by_path.get(line.path), shown, all_shown=names is None) for line in lines[:MOST_LINES]
    ]
    pieces = [(decoded.offset, decoded.data, ""), *((0, plain, path) for plain, path in decoded.sources)]
    return {
        "schema": decoded.schema,
        "offset": decoded.offset,
        "error": _error(frame, names),
        "more": len(lines) - len(fields),
        "pieces": [
            [_hex(number, offset, data, spans, shown, all_shown=names is None), path, len(data)]
            for number, (offset, data, path) in enumerate(pieces)
        ],
        "fields": fields,
    }


def _harmless(decoded: Decoded, span: Span, names: Collection[str]) -> bool:
    if span.kind == "text":
        offset, data = (0, decoded.sources[span.source - 1][0]) if span.source else (decoded.offset, decoded.data)
        return data[span.start - offset : span.end - offset].decode(errors="replace") in names
    return span.kind in PLAIN


def _field(decoded: Decoded, line: Line, span: Span | None, shown: set[int], *, all_shown: bool) -> list[Any]:
    """[depth, name, value, remark, verdicts, [[piece, start, end, first bit, bits], ...], whether it is a leaf]."""
    visible = all_shown or (line.text in HARMLESS_TEXTS if span is None else id(span) in shown)
    text, note = (line.text, line.note) if visible else ("", line.note or "not shown")
    if not visible and span is not None:
        note = f"{plural(span.end - span.start, 'byte')} not shown"
    covered = list(line.spans)
    if span is not None and span not in covered:
        covered.append(span)
    places = [
        [each.source, each.start - begin, each.end - begin, each.bit_start, each.bit_length]
        for each in covered
        for begin in [0 if each.source else decoded.offset]
    ]
    verdicts = [_verdict(check, line.digits, with_note=visible) for check in line.checks]
    return [line.depth, line.name, text, note, verdicts, places, int(line.leaf)]


def _verdict(check: Check, digits: int, *, with_note: bool) -> list[str]:
    numbers = ""
    if check.computed is not None and isinstance(check.stored, int):
        stored, computed = (number_text(number, digits) for number in (check.stored, check.computed))
        numbers = f" stored {stored}, computed {computed}"
    note = f" {check.note}" if check.note and with_note else ""
    return [check.status, f"{check.kind}{numbers}{note}"]


def _hex(number: int, offset: int, data: bytes, spans: list[Span], shown: set[int], *, all_shown: bool) -> str:
    """Two digits per byte, or two dots for a byte that is not shown."""
    head = data[:MOST_BYTES]
    if all_shown:
        return head.hex()
    visible = bytearray(len(head))
    for span in spans:
        if span.source == number and span.kind not in ("record", "list") and id(span) in shown:
            start, end = span.start - offset, min(span.end - offset, len(head))
            visible[start:end] = b"\1" * max(end - start, 0)
    return "".join(f"{byte:02x}" if is_visible else ".." for byte, is_visible in zip(head, visible, strict=True))


def _error(frame: Frame, names: Collection[str] | None) -> str:
    error = frame.decoded.error
    if error is None:
        return frame.reason or ""
    return str(error) if names is None else kind_of_reason(error.reason, error.path)
