"""Prints a decoded value: a tree of fields, each beside its bytes, or a hexdump with a colour for each field."""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from wirekit.display.fields import FRAMING, Line, field_lines, framed, number_text
from wirekit.errors import Wrong, plural
from wirekit.values import Check, Span

if TYPE_CHECKING:
    from wirekit.engine import Decoded

LEVELS = ("cyan", "green", "bright_blue", "magenta")  # by depth; red and yellow mark errors
BAD = "reverse red"
WIDE = 120  # columns of a terminal from which a line has 16 bytes; a pipe gets 8, easier to compare
NARROW_BYTES, WIDE_BYTES = 8, 16
DUMP_BYTES = 16
MOST_ROWS = 2  # of the bytes of a field
MOST_DUMP_ROWS = 8  # of the bytes of a field in the hexdump
LEAST_TEXT = 24  # columns that are left to the fields, however deep
HTML_COLUMNS = 140
ROWS_AT_ONCE = 500  # that rich prints in one call, because each call costs as much as a row
DEEPEST = 12  # how many steps the tree moves to the right


def show(decoded: Decoded, console: Console, form: str, *, complete: bool = False, indent_json: bool = False) -> None:
    """Prints a decoded value.

    Args:
        decoded: the value; with an error, as far as it was decoded.
        console: the output.
        form: ``hexdump``, or ``tree`` (also called ``rich``).
        complete: whether long lists, values and their bytes are shown whole.
        indent_json: whether payloads that are JSON are shown with a line for each of their members.
    """
    drawing = _Drawing(decoded, console, complete)
    console.print(
        Text.assemble((decoded.schema, "bold"), f"  offset {decoded.offset}, {plural(decoded.consumed, 'byte')}")
    )
    if form == "hexdump":
        rows = drawing.dumps()
    else:
        rows = drawing.tree(field_lines(decoded, complete=complete, indent_json=indent_json))
    while part := list(islice(rows, ROWS_AT_ONCE)):
        if console.color_system is None:
            console.out("\n".join(row.plain for row in part), highlight=False)
        else:
            console.print(Text("\n").join(part), soft_wrap=True)
    console.print()


def html(decoded: Decoded) -> str:
    """The tree of a decoded value as an HTML element, with its styles inline."""
    console = Console(
        record=True, file=io.StringIO(), width=HTML_COLUMNS, force_terminal=True, highlight=False, emoji=False
    )
    show(decoded, console, "tree")
    return console.export_html(inline_styles=True, code_format='<pre style="line-height:1.2">{code}</pre>')


class _Drawing:
    def __init__(self, decoded: Decoded, console: Console, complete: bool) -> None:
        self._decoded = decoded
        self._width = console.width
        self._complete = complete
        self._step = " " if console.width < WIDE else "  "
        self._row = WIDE_BYTES if console.is_terminal and console.width >= WIDE else NARROW_BYTES
        self._data = [(decoded.offset, decoded.data), *((0, plain) for plain, _ in decoded.sources)]
        failed = {check.path for check in decoded.checks if check.status == "bad"}
        if isinstance(decoded.error, Wrong):
            failed |= {span.path for span in decoded.spans if span.leaf and span.path == decoded.error.path}
        self._styles = _styles(decoded.spans, failed)

    def tree(self, lines: list[Line]) -> Iterator[Text]:
        """The fields, each with offset, bytes, value and verdicts; then the bytes that no field explains."""
        shown: set[tuple[int, int]] = set()
        for line in lines:
            yield from self._field(line)
            shown.update((span.source, span.start) for span in line.spans if span.kind == "gap")
        for gap in self._decoded.gaps:
            if (gap.source, gap.offset) in shown:
                continue
            where = f", in {gap.path}" if gap.path else ""
            span = Span("", gap.offset, gap.offset + gap.length, gap.source, kind="gap")
            text = Text.assemble((f"{plural(gap.length, 'byte')} that no field explains{where}", "bold red"))
            yield from self._beside([span], text, 0, BAD)
        decoded = self._decoded
        end = decoded.offset + len(decoded.data)
        unread = end - decoded.offset - decoded.consumed
        if decoded.error is not None and unread:
            span = Span("", end - unread, end, kind="gap")
            yield from self._beside([span], Text(f"{plural(unread, 'byte')} not decoded", "bold red"), 0, BAD)

    def _field(self, line: Line) -> Iterator[Text]:
        style = self._styles.get(line.path, "")
        name_style = f"bold {style}".strip() if line.leaf and style != BAD else "bold"
        text = Text.assemble((line.name, name_style))
        if line.text:
            text.append(" = ")
            text.append(line.text, "" if style == BAD else style)
        if line.note:
            text.append(f"  {line.note}", "dim")
        for check in line.checks:
            _verdict(text, check, line.digits)
        yield from self._beside(line.spans, text, line.depth, style)
        for below in line.below:
            yield from self._beside((), Text(below, style), line.depth + 1, "")

    def _beside(self, spans: tuple[Span, ...] | list[Span], text: Text, depth: int, style: str) -> Iterator[Text]:
        """A text with the bytes of some spans to its left, both on the same number of rows."""
        indent = self._step * min(depth, DEEPEST)
        room = max(self._width - len(_margin(None)) - 3 * self._row - 1 - len(indent) - 2, LEAST_TEXT)
        texts = _wrapped(text, room)
        cells = list(self._cells(spans, style))
        rows = [cells[at : at + self._row] for at in range(0, len(cells), self._row)]
        shown = len(rows) if self._complete else min(len(rows), max(MOST_ROWS, len(texts)))
        for number in range(max(shown, len(texts), 1)):
            row = rows[number] if number < shown else []
            drawn = Text.assemble((_margin(row[0][0] if row else None), "dim"))
            for _, digits, byte_style in row:
                drawn.append(digits, byte_style)
                drawn.append(" ")
            if number == shown - 1 < len(rows) - 1:
                drawn.right_crop(1)
                drawn.append("…", "dim")
            drawn.append("   " * (self._row - len(row)) + " ")
            if number < len(texts):
                drawn.append(indent + ("  " if number else ""))
                drawn.append_text(texts[number])
            drawn.rstrip()
            yield drawn

    def _cells(self, spans: tuple[Span, ...] | list[Span], style: str) -> Iterator[tuple[str, str, str]]:
        """(place, digits, style) of each byte to show."""
        for span in spans:
            offset, data = self._data[span.source]
            mark = f"#{span.source}:" if span.source else ""
            end = span.end
            if not self._complete:
                end = min(end, span.start + (MOST_ROWS + LEAST_TEXT) * self._row)
            shown = f"dim {style}".strip() if span.kind in FRAMING else style
            for at in range(span.start, end):
                yield f"{mark}{at:x}", f"{data[at - offset]:02x}", shown

    def dumps(self) -> Iterator[Text]:
        """The hexdump of the bytes, and of each piece of decompressed data."""
        decoded = self._decoded
        end = decoded.offset + (len(decoded.data) if decoded.error is not None else max(decoded.consumed, 0))
        yield from self._dump(0, end)
        for number, (plain, path) in enumerate(decoded.sources, 1):
            yield Text(f"#{number}: {plural(len(plain), 'byte')} decompressed from {path}", "italic")
            yield from self._dump(number, len(plain))

    def _dump(self, source: int, end: int) -> Iterator[Text]:
        offset, data = self._data[source]
        painted = [BAD] * (end - offset)
        owner: list[int] = [-1] * (end - offset)
        leaves = [span for span in self._decoded.spans if span.source == source and span.leaf]
        for number, span in enumerate(leaves):
            style = self._styles.get(framed(span) if span.kind in FRAMING else span.path, "")
            style = f"dim {style}".strip() if span.kind in FRAMING else style
            stop = min(span.end, end)
            painted[span.start - offset : stop - offset] = [style] * (stop - span.start)
            owner[span.start - offset : stop - offset] = [number] * (stop - span.start)
        at = 0
        while at < len(owner):
            yield _dump_row(data, offset, at, min(at + DUMP_BYTES, len(owner)), painted)
            at += DUMP_BYTES
            if self._complete or at >= len(owner) or owner[at] < 0:
                continue
            span = leaves[owner[at]]
            rows = (min(span.end, end) - offset - at) // DUMP_BYTES
            if rows > MOST_DUMP_ROWS and span.start - offset <= at - DUMP_BYTES:
                yield Text(
                    f"       *  {plural(rows * DUMP_BYTES, 'byte')} more of {span.path} (--all shows them)", "dim"
                )
                at += rows * DUMP_BYTES


def _styles(spans: list[Span], failed: set[str]) -> dict[str, str]:
    """A style for each path with bytes: a colour by depth, and marks for failed checks and gaps."""
    styles: dict[str, str] = {}
    turn, at = 0, (0, 0)
    for span in spans:
        if span.kind in FRAMING or span.kind in ("record", "list"):
            continue
        turn += span.kind != "bit" or at != (span.source, span.start)
        at = span.source, span.start
        depth = span.path.count(".") + span.path.count("[")
        colour = LEVELS[depth % len(LEVELS)]
        styles[span.path] = BAD if span.kind == "gap" or span.path in failed else ("bold " * (turn % 2)) + colour
    return styles


def _margin(place: str | None) -> str:
    return f"{place or '':>8}  "


def _wrapped(text: Text, width: int) -> list[Text]:
    """The text in lines of a maximal width, broken at spaces if possible."""
    if len(text) <= width:
        return [text]
    return list(text.wrap(Console(width=width), width))


def _dump_row(data: bytes, offset: int, start: int, end: int, painted: list[str]) -> Text:
    text = Text.assemble((f"{offset + start:08x}  ", "dim"))
    for index in range(start, end):
        text.append(f"{data[index]:02x}", painted[index])
        text.append("  " if index - start == DUMP_BYTES // 2 - 1 else " ")
    size = end - start
    text.append("   " * (DUMP_BYTES - size) + (" " if size < DUMP_BYTES // 2 else "") + " |")
    for index in range(start, end):
        byte = data[index]
        text.append(chr(byte) if 0x20 <= byte < 0x7F else ".", painted[index])
    text.append("|")
    return text


def _verdict(text: Text, check: Check, digits: int) -> None:
    stored, computed = (number_text(number, digits) for number in (check.stored, check.computed))
    if check.status == "ok":
        text.append(f"  ✓ {check.kind}", "green")
        if check.kind.startswith("crc"):
            text.append(f" stored {stored}, computed {computed}", "dim")
    elif check.status == "absent":
        text.append(f"  – no {check.kind}", "dim")
    else:
        text.append(f"  ✗ {check.kind}", "bold red")
        if check.computed is not None:
            text.append(f" stored {stored}, computed {computed}", "red")
        if check.note:
            text.append(f" {check.note}", "red")
