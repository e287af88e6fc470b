"""A decoded value as text lines: each field with its bytes, its value as text, and its verdicts."""

from __future__ import annotations

import ipaddress
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import starmap
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from wirekit.errors import plural
from wirekit.registry import registry
from wirekit.times import moment
from wirekit.values import Check, Record, Span, Symbol, readable
from wirekit.wire.compressed import Opened
from wirekit.wire.display_hints import Display, DisplayHints, Nodes
from wirekit.wire.encrypted import Decrypted
from wirekit.wire.stream import Scope

if TYPE_CHECKING:
    from wirekit.engine import Decoded

FRAMING = ("length", "count", "tag", "delimiter")
LONGEST_TEXT = 200  # characters of a value
MOST_ELEMENTS = 16  # shown of a list
FIRST_ELEMENTS = 12  # shown of a longer list
MOST_PATTERN = 32  # bits of a number that are drawn

NOTES = {"keep": "not as computed; encode writes it unchanged"}  # on details that records store beside their fields

_NANOS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the tree.

    Attributes:
        depth: number of enclosing fields.
        name: the name of the field.
        text: its value, "" if it has none of its own.
        note: a remark on the value.
        path: its path in the value.
        spans: its own bytes with its length, count, tag or delimiter, in order; without those of fields inside it.
        checks: verdicts on it.
        leaf: whether it contains no other field.
        digits: number of hexadecimal digits of its number, 0 for a decimal number.
        below: further lines of text below it.
    """

    depth: int
    name: str
    text: str = ""
    note: str = ""
    path: str = ""
    spans: tuple[Span, ...] = ()
    checks: tuple[Check, ...] = ()
    leaf: bool = False
    digits: int = 0
    below: tuple[str, ...] = ()


def field_lines(decoded: Decoded, *, complete: bool = False, indent_json: bool = False) -> list[Line]:
    """The fields of a decoded value from top to bottom.

    Args:
        decoded: the value; with an error, as far as it was decoded.
        complete: whether long lists and values are shown whole.
        indent_json: whether payloads that are JSON are shown with a line for each of their members.
    """
    walk = _Walk(decoded, complete, indent_json)
    scope = Scope.root(defaultdict(lambda: None, decoded.context))
    lines = list(walk.lines(decoded.value, "", "(value)", 0, walk.hints.root, scope))
    return lines + list(walk.begun())


def framed(span: Span) -> str:
    """The path of the field that a length, count, tag or delimiter belongs to."""
    return span.path.rpartition("$")[0].removesuffix(".")


class _Walk:
    def __init__(self, decoded: Decoded, complete: bool, indent_json: bool) -> None:
        self._decoded = decoded
        self.hints = DisplayHints(registry[decoded.schema].node)
        self._complete = complete
        self._indent_json = indent_json
        self._cut = decoded.error is not None
        self._spans: dict[str, Span] = {}
        self._framing: dict[str, list[Span]] = {}
        self._checks: dict[str, list[Check]] = {}
        self._failed: set[str] = set()  # paths with a failed check in them
        self._walked: set[str] = set()
        self._folded: set[str] = set()
        for span in decoded.spans:
            if span.kind in FRAMING:
                self._framing.setdefault(framed(span), []).append(span)
            else:
                self._spans[span.path] = span
        for check in decoded.checks:
            self._checks.setdefault(check.path, []).append(check)
            if check.status == "bad":
                self._failed.update(_ancestors(check.path))

    def lines(self, value: Any, path: str, name: str, depth: int, nodes: Nodes, scope: Scope) -> Iterator[Line]:
        children = _children(value, path)
        leaf = children is None
        shown = bool(path) or path in self._framing or (leaf and not (value is None and self._cut))
        if shown:
            yield self._line(value, path, name, depth, self.hints.display(nodes, scope), leaf=leaf)
        within = scope
        if isinstance(value, Record) and not isinstance(value, Opened | Decrypted):
            within = scope.inner()
            within.update(value._shown())
        inside = depth + shown
        folds = isinstance(value, list) and not self._complete and len(value) > MOST_ELEMENTS
        folded: list[str] = []
        for index, (child_name, child_path, child) in enumerate(children or ()):
            last = self._cut and index == len(value) - 1
            if folds and index >= FIRST_ELEMENTS and child_path not in self._failed and not last:
                folded.append(child_path)
                self._folded.add(child_path)
                continue
            if folded:
                yield self._fold(folded, inside)
                folded = []
            parts = self.hints.inside(nodes, child_name, scope)
            yield from self.lines(child, child_path, child_name, inside, parts, within)
        if folded:
            yield self._fold(folded, inside)
        if isinstance(value, Record):
            for beside, content in value._beside().items():
                if isinstance(content, dict):
                    text = self._shortened(", ".join(starmap(_detail, content.items())))
                elif isinstance(content, list):
                    text = ", ".join(map(_entry, content))
                else:
                    text = self._shown(content)[0]
                yield Line(inside, f"${beside}", text, NOTES.get(beside, ""))

    def begun(self) -> Iterator[Line]:
        """The bytes of fields without a value because of an error: an invalid one, and lengths, tags and the like."""
        error = self._decoded.error
        refused = self._spans.get(error.path) if error is not None else None
        if refused is not None and refused.leaf and refused.path not in self._walked:
            framing = self._framing.pop(refused.path, [])
            yield Line(0, refused.path, "not valid", path=refused.path, spans=(*framing, refused), leaf=True)
        for path, spans in self._framing.items() if self._cut else ():
            if path not in self._walked and self._folded.isdisjoint(_ancestors(path)):
                yield Line(0, path, "not decoded", path=path, spans=tuple(spans))

    def _fold(self, paths: list[str], depth: int) -> Line:
        spans = [span for path in paths if (span := self._spans.get(path)) is not None]
        size = f", {plural(sum(span.end - span.start for span in spans), 'byte')}" if len(spans) == len(paths) else ""
        return Line(depth, "…", note=f"{plural(len(paths), 'more element')}{size} (--all shows them)")

    def _line(self, value: Any, path: str, name: str, depth: int, display: Display, *, leaf: bool) -> Line:
        self._walked.add(path)
        span = self._spans.get(path)
        text, note = self._shown(value, display)
        framing = self._framing.get(path, [])
        own = [span] if span is not None and span.kind not in ("record", "list") and span.bit_start is None else []
        if span is not None and span.bit_start is not None:
            text = f"{_pattern(span, value)}  {text}"
        if span is not None and span.kind == "gap":
            note = f"{note}, which no field explains"
        below = _json_lines(value) if self._indent_json and leaf else ()
        checks = tuple(self._checks.get(path, ()))
        spans = tuple(sorted((*framing, *own), key=attrgetter("start")))
        return Line(depth, name, text, note, path, spans, checks, leaf, display.digits, below)

    def _shown(self, value: Any, display: Display = Display()) -> tuple[str, str]:  # noqa: B008  # a constant
        """(value, remark) as text."""
        match value:
            case Symbol():
                return str(value), value.description
            case Record():
                return "", ""
            case list():
                return "", plural(len(value), "element")
            case bytes() if display.family:
                return _address(value, display.family), ""
            case bytes():
                return self._shown_bytes(value)
            case str():
                return self._shortened(repr(value)), plural(len(value), "character") if self._is_long(value) else ""
            case bool():
                return str(value).lower(), ""
            case None:
                return "null", ""
            case dict():
                return self._shortened(str(value)), ""
            case int() if display.unit:
                time = in_utc(value, display.unit)
                return (f"{time} ({value})", "") if time else (str(value), "")
            case int() if display.duration and value > 0:
                text = duration_text(value, display.duration)
                return (text if text == f"{value} {display.duration}" else f"{text} ({value})"), ""
        return number_text(value, display.digits), ""

    def _shown_bytes(self, value: bytes) -> tuple[str, str]:
        if not value:
            return "empty", ""
        text = readable(value)
        return "" if text is None else self._shortened(repr(text)), plural(len(value), "byte")

    def _is_long(self, text: str) -> bool:
        return len(text) > LONGEST_TEXT and not self._complete

    def _shortened(self, text: str) -> str:
        return text[:LONGEST_TEXT] + "…" if self._is_long(text) else text


def _ancestors(path: str) -> Iterator[str]:
    """A path, and the paths of all enclosing fields."""
    while path:
        yield path
        path = path[: max(path.rfind("."), path.rfind("["), 0)]


def _children(value: Any, path: str) -> list[tuple[str, str, Any]] | None:
    if isinstance(value, Record):
        return [(name, f"{path}.{name}" if path else name, item) for name, item in value._shown()]
    if isinstance(value, list):
        return [(f"[{index}]", f"{path}[{index}]", item) for index, item in enumerate(value)]
    return None


def _entry(entry: Any) -> str:
    """An entry of a list that a record stores: a name, or an unknown protobuf field."""
    return f"field {entry['number']} = {entry['value']}" if isinstance(entry, dict) else str(entry)


def _detail(name: str, detail: Any) -> str:
    """A detail that a record stores for a field; bytes in hex, as in JSON."""
    return f"{name}: {detail.hex() if isinstance(detail, bytes) else detail}"


def _pattern(span: Span, value: Any) -> str:
    """The bits of a field at their place in the number, the most significant first: ``.... .01.``."""
    bits, first, length = 8 * (span.end - span.start), span.bit_start or 0, span.bit_length or 0
    if bits > MOST_PATTERN:
        return f"bits {first} to {first + length - 1}"
    digits = "." * (bits - first - length) + f"{int(value) & (1 << length) - 1:0{length}b}" + "." * first
    return " ".join(digits[at : at + 4] for at in range(0, bits, 4))


def in_utc(value: int, unit: str) -> str:
    """A time since the epoch as UTC with the digits of its unit; "" for a negative time or one outside the calendar.

    >>> in_utc(1795222751070, "ms"), in_utc(-1, "ms")
    ('2026-11-21 00:59:11.070 UTC', '')
    """
    if value < 0:
        return ""
    micros, digits = (value // 1000, 6) if unit == "ns" else (value * _MICROS[unit], {"s": 0, "ms": 3, "us": 6}[unit])
    time = moment(micros)
    if time is None:
        return ""
    fraction = f".{time.microsecond:06d}"[: digits + 1] if digits else ""
    fraction += f"{value % 1000:03d}" if unit == "ns" else ""
    return f"{time:%Y-%m-%d %H:%M:%S}{fraction} UTC"


def duration_text(value: int, unit: str) -> str:
    """A duration as text.

    >>> duration_text(500, "ms"), duration_text(90_000, "ms"), duration_text(1500, "us")
    ('500 ms', '1 min 30 s', '1.5 ms')
    """
    nanoseconds = value * _NANOS[unit]
    if nanoseconds < _NANOS["s"]:
        size = next(name for name in ("ms", "us", "ns") if nanoseconds >= _NANOS[name])
        return f"{nanoseconds / _NANOS[size]:g} {size}"
    seconds, below = divmod(nanoseconds, _NANOS["s"])
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    fraction = f"{below:09d}".rstrip("0")
    parts = {"d": days, "h": hours, "min": minutes, "s": f"{seconds}.{fraction}" if fraction else seconds}
    return " ".join(f"{number} {name}" for name, number in parts.items() if number)


def _address(value: bytes, family: str) -> str:
    return value.hex(":") if family == "mac" else str(ipaddress.ip_address(value))


def number_text(value: Any, digits: int) -> str:
    """A number in decimal, or with a number of hexadecimal digits."""
    if not digits or not isinstance(value, int):
        return str(value)
    return f"0x{value & (1 << 4 * digits) - 1:0{digits}x}"


def _json_lines(value: Any) -> tuple[str, ...]:
    """A payload that is a JSON object or array, indented; nothing for other values."""
    if not isinstance(value, (str, bytes)) or value[:1] not in ("{", "[", b"{", b"["):
        return ()
    try:
        content = json.loads(value)
    except (ValueError, RecursionError):
        return ()
    return tuple(json.dumps(content, indent=2, ensure_ascii=False).splitlines())
