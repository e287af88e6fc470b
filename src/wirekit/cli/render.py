"""A decoded value for a reader: a tree of fields, a hexdump in the fields' colours, or both side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from wirekit.engine import Decoded
from wirekit.registry import registry
from wirekit.values import Check, Record, Span, Symbol, readable
from wirekit.wire.hints import Hints, Nodes

PALETTE = ("cyan", "green", "yellow", "magenta", "bright_blue", "bright_red", "bright_green", "bright_magenta")
GAP = "reverse red"
FRAMING = ("length", "count", "tag", "delimiter")
BYTES_A_LINE = 16
HEXDUMP_WIDTH = 78
LONGEST_VALUE = 48
SIDE_BY_SIDE = 130
LINES_BESIDE = 256
LINES_OF_SOURCE = 16


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the tree: a field with its place, framing, value and verdicts.

    ``digits`` are the hexadecimal digits of its number, 0 for one in decimals.
    """

    depth: int
    name: str
    text: str
    note: str
    span: Span | None = None
    framing: tuple[Span, ...] = ()
    checks: tuple[Check, ...] = ()
    leaf: bool = False
    digits: int = 0


class _Known:
    """What is known about the fields of a value, by path."""

    def __init__(self, decoded: Decoded) -> None:
        self.hints = Hints(registry[decoded.schema].node)
        self.spans: dict[str, Span] = {}
        self.framing: dict[str, list[Span]] = {}
        self.checks: dict[str, list[Check]] = {}
        for span in decoded.spans:
            if span.kind in FRAMING:
                self.framing.setdefault(_framed(span), []).append(span)
            else:
                self.spans[span.path] = span
        for check in decoded.checks:
            self.checks.setdefault(check.path, []).append(check)


def _framed(span: Span) -> str:
    """The path of the field that a length, count, tag or delimiter belongs to."""
    return span.path.rpartition("$")[0].removesuffix(".")


def tree_lines(decoded: Decoded) -> list[Line]:
    """The fields of a decoded value from top to bottom."""
    known = _Known(decoded)
    return list(_walk(decoded.value, "", "", 0, known, known.hints.root))


def _walk(value: Any, path: str, name: str, depth: int, known: _Known, nodes: Nodes) -> Iterator[Line]:
    children = _children(value, path)
    if path:
        digits = known.hints.digits(nodes)
        text, note = _shown(value, digits)
        framing, checks = tuple(known.framing.get(path, ())), tuple(known.checks.get(path, ()))
        yield Line(depth, name, text, note, known.spans.get(path), framing, checks, children is None, digits)
    for child_name, child_path, child in children or ():
        inside = known.hints.inside(nodes, child_name)
        yield from _walk(child, child_path, child_name, depth + bool(path), known, inside)
    if isinstance(value, Record):
        for kept, content in value._beside().items():
            text = ", ".join(map(_unknown, content)) if isinstance(content, list) else _shown(content)[0]
            yield Line(depth + bool(path), f"${kept}", text, "")


def _unknown(kept: Any) -> str:
    """An entry of a list that a record keeps: a name, or a protobuf field that nobody knows."""
    return f"field {kept['number']} = {kept['value']}" if isinstance(kept, dict) else str(kept)


def _children(value: Any, path: str) -> list[tuple[str, str, Any]] | None:
    if isinstance(value, Record):
        return [(name, f"{path}.{name}" if path else name, item) for name, item in value._shown()]
    if isinstance(value, list):
        return [(f"[{index}]", f"{path}[{index}]", item) for index, item in enumerate(value)]
    return None


def _shown(value: Any, digits: int = 0) -> tuple[str, str]:
    """(value, remark) as text; a number in hexadecimal if it has such digits."""
    if isinstance(value, Symbol):
        return str(value), value.description
    if isinstance(value, Record):
        return "", ""
    if isinstance(value, list):
        return "", f"{len(value)} elements" if len(value) != 1 else "1 element"
    if isinstance(value, bytes):
        return _shown_bytes(value)
    if isinstance(value, str):
        text = repr(value)
        return (text, "") if len(text) <= LONGEST_VALUE else (text[:LONGEST_VALUE] + "…", f"{len(value)} characters")
    if isinstance(value, bool):
        return str(value).lower(), ""
    return ("null" if value is None else _number(value, digits)), ""


def _bytes(count: int) -> str:
    return f"{count} bytes" if count != 1 else "1 byte"


def _shown_bytes(value: bytes) -> tuple[str, str]:
    size = _bytes(len(value))
    if not value:
        return "empty", ""
    plain = readable(value)
    if plain is not None:
        text = repr(plain)
        return (text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + "…"), size
    shown = value[: LONGEST_VALUE // 2].hex()
    return shown + ("…" if len(value) > LONGEST_VALUE // 2 else ""), size


def _colours(decoded: Decoded) -> dict[str, str]:
    """A colour for each leaf that has bytes, neighbours different; bit fields have that of their number."""
    colours: dict[str, str] = {}
    turn, at = 0, (0, 0)
    for span in decoded.spans:
        if span.end > span.start and span.leaf and span.kind not in FRAMING:
            turn += span.kind != "bit" or at != (span.source, span.start)
            at = span.source, span.start
            colours[span.path] = GAP if span.kind == "gap" else PALETTE[turn % len(PALETTE)]
    return colours


def tree(decoded: Decoded, lines: list[Line], colours: dict[str, str]) -> Text:
    """The tree of fields, each with its offset, value and verdicts."""
    text = Text()
    for line in lines:
        span = line.span
        place = "" if span is None else f"{span.start:>6x}" if not span.source else f"#{span.source}:{span.start:x}"
        text.append(f"{place:>8}  ", "dim")
        text.append("  " * line.depth)
        colour = colours.get(span.path, "") if span is not None else ""
        text.append(line.name, f"bold {colour}".strip() if line.leaf else "bold")
        if line.text:
            text.append(" = ")
            text.append(line.text, colour)
        if line.note:
            text.append(f"  {line.note}", "dim")
        if line.framing:
            text.append("  " + ", ".join(f"{part.kind} at {part.start:x}" for part in line.framing), "dim")
        for check in line.checks:
            _verdict(text, check, line)
        text.append("\n")
    for gap in decoded.gaps:
        place = f"{gap.offset:x}" if not gap.source else f"#{gap.source}:{gap.offset:x}"
        where = f", in {gap.path}" if gap.path else ""
        text.append(f"{place:>8}  ", "dim")
        text.append(f"{_bytes(gap.length)} that no field explains{where}\n", "bold red")
    left = len(decoded.data) - decoded.consumed
    if decoded.error is not None and left:
        text.append(f"{decoded.offset + decoded.consumed:>8x}  ", "dim")
        text.append(f"{_bytes(left)} not decoded\n", "bold red")
    text.rstrip()
    return text


def _verdict(text: Text, check: Check, line: Line) -> None:
    if check.status == "ok":
        text.append(f"  ✓ {check.kind}", "green")
        if check.kind.startswith("crc"):
            stored, computed = (_number(number, line.digits) for number in (check.stored, check.computed))
            text.append(f" stored {stored}, computed {computed}", "dim")
    elif check.status == "absent":
        text.append(f"  – no {check.kind}", "dim")
    else:
        text.append(f"  ✗ {check.kind}", "bold red")
        if check.computed is not None:
            stored, computed = (_number(number, line.digits) for number in (check.stored, check.computed))
            text.append(f" stored {stored}, computed {computed}", "red")
        if check.note:
            text.append(f" {check.note}", "red")


def _number(value: Any, digits: int) -> str:
    if not digits or not isinstance(value, int):
        return str(value)
    return f"0x{value & (1 << 4 * digits) - 1:0{digits}x}"


def hexdump(data: bytes, offset: int, source: int, spans: list[Span], colours: dict[str, str], most: int = 0) -> Text:
    """A hexdump in the colours of the fields, lengths and the like dim; at most ``most`` lines, 0 for all."""
    painted = [GAP] * len(data)
    for span in spans:
        if span.source == source and span.leaf:
            framing = span.kind in FRAMING
            style = f"dim {colours.get(_framed(span), '')}".strip() if framing else colours.get(span.path, "")
            painted[span.start - offset : span.end - offset] = [style] * (span.end - span.start)
    text = Text()
    rows = range(0, len(data), BYTES_A_LINE)
    for number, start in enumerate(rows):
        if most and number == most:
            text.append(f"… {len(data) - start} more bytes (--output hexdump shows all)", "dim")
            break
        row = data[start : start + BYTES_A_LINE]
        text.append(f"{offset + start:08x}  ", "dim")
        for index, byte in enumerate(row):
            text.append(f"{byte:02x}", painted[start + index])
            text.append("  " if index == BYTES_A_LINE // 2 - 1 else " ")
        text.append("   " * (BYTES_A_LINE - len(row)) + (" " if len(row) < BYTES_A_LINE // 2 else "") + "|")
        for index, byte in enumerate(row):
            text.append(chr(byte) if 0x20 <= byte < 0x7F else ".", painted[start + index])
        text.append("|\n")
    text.rstrip()
    return text


def _dumps(decoded: Decoded, colours: dict[str, str], most: int) -> RenderableType:
    data = decoded.data[: max(decoded.consumed, 0)] if decoded.error is None else decoded.data
    parts: list[RenderableType] = [hexdump(data, decoded.offset, 0, decoded.spans, colours, most)]
    for number, (plain, path) in enumerate(decoded.sources, 1):
        parts.append(Text(f"#{number}: {len(plain)} bytes decompressed from", "italic"))
        parts += [Text(path[at : at + HEXDUMP_WIDTH], "italic") for at in range(0, len(path), HEXDUMP_WIDTH)]
        parts.append(hexdump(plain, 0, number, decoded.spans, colours, most and LINES_OF_SOURCE))
    return Group(*parts)


def show(decoded: Decoded, console: Console, form: str) -> None:
    """Prints a decoded value.

    Args:
        decoded: the value; with an error, as far as it was decoded.
        console: where to.
        form: ``rich`` for hexdump and tree, ``tree``, or ``hexdump``.
    """
    lines = tree_lines(decoded)
    colours = _colours(decoded)
    head = Text.assemble((decoded.schema, "bold"), f"  offset {decoded.offset}, {decoded.consumed} bytes")
    console.print(head)
    if form == "hexdump":
        console.print(_dumps(decoded, colours, 0))
    elif form == "tree":
        console.print(tree(decoded, lines, colours))
    elif console.width < SIDE_BY_SIDE:
        console.print(_dumps(decoded, colours, LINES_BESIDE))
        console.print(tree(decoded, lines, colours))
    else:
        both = Table.grid(padding=(0, 2))
        both.add_column(no_wrap=True)
        both.add_column()
        both.add_row(_dumps(decoded, colours, LINES_BESIDE), tree(decoded, lines, colours))
        console.print(both)
    console.print()
