"""Text lines for the frames of a capture: topics, latency, errors and failed checks of each frame.

No text is truncated: text that does not fit beside the numbers continues on the next line.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from wirekit.capture.links import Link, Missing
from wirekit.conversation import Frame, Quarantined
from wirekit.errors import plural
from wirekit.tables.facts import Facts
from wirekit.times import moment
from wirekit.values import printable

if TYPE_CHECKING:
    from rich.console import Console

WIDE = 120  # columns of a terminal from which each topic has a line, and times have microseconds
WIDE_API = 34
LEAST_TEXT = 24  # columns that are left to the text, however narrow the terminal
BELOW = 16  # columns before a text that has no room beside the numbers
MOST_TOPICS = 3
ARROWS = {"client": "→", "server": "←"}
"""The direction of bytes, by their sender."""

Part = tuple[str, str]
"""A text and its style."""


class FrameTable:
    """Prints lines as frames arrive, because a capture may be larger than memory.

    Args:
        console: the output; lines have its width.
        title: a heading before the first line.
    """

    def __init__(self, console: Console, title: str = "") -> None:
        self._console = console
        self._title = title
        self._coloured = console.color_system is not None
        self._width = console.width
        self._wide = self._width >= WIDE
        self._heading = self._numbers("#", "time", "conn", " ", "ms", "bytes")
        self._room = max(self._width - len(self._heading) - 2, LEAST_TEXT)
        self._headed = False
        self._date = ""
        self._known: set[int] = set()

    def frame(
        self, number: int, connection: int, link: Link, frame: Frame, facts: Facts, messages: int | None = None
    ) -> None:
        """Prints a frame; before it, its connection if that is new, and the date if it has changed.

        Args:
            number: number of the frame in its capture.
            connection: number of the connection in the capture.
            link, frame, facts: the connection, the frame, and its facts.
            messages: the number of messages in the frame, if it does not have them itself.
        """
        self._introduce(connection, link, frame.time_us, facts.client)
        latency = "" if frame.latency_us is None else f"{frame.latency_us / 1000:.3f}"
        arrow = ARROWS[frame.side]
        self._row(
            self._numbers(number, self._time(frame.time_us), connection, arrow, latency, frame.size),
            [
                *_description(frame, facts, WIDE_API if self._wide else 0),
                *_remarks(frame, len(frame.messages) if messages is None else messages, good=self._wide),
            ],
        )

    def undecoded(self, connection: int, link: Link, item: Quarantined | Missing) -> None:
        """Prints a line for bytes that were not decoded, or not captured."""
        self._introduce(connection, link, item.time_us, None)
        size = len(item.data) if isinstance(item, Quarantined) else item.length
        state = "not decoded" if isinstance(item, Quarantined) else "missing"
        arrow = ARROWS[item.side]
        self._row(
            self._numbers("", self._time(item.time_us), connection, arrow, "", size),
            [(f"✗ {state}: {item.reason}", "red")],
        )

    def _numbers(
        self, number: int | str, time: str, connection: int | str, arrow: str, ms: str, size: int | str
    ) -> str:
        """The columns before the text."""
        widths = (15, 5) if self._wide else (12, 4)
        return f"{number:>5} {time:<{widths[0]}} {connection:>{widths[1]}}{arrow} {ms:>9} {size:>8}"

    def _time(self, time_us: int | None) -> str:
        """A time of the day, UTC, with milliseconds on a narrow terminal; a number outside the years 1 to 9999."""
        utc = moment(time_us)
        if utc is None:
            return "" if time_us is None else f"{time_us} µs"
        return utc.time().isoformat("microseconds" if self._wide else "milliseconds")

    def _introduce(self, connection: int, link: Link, time_us: int | None, client: str | None) -> None:
        if not self._headed:
            self._headed = True
            if self._title:
                self._print((printable(self._title), "bold"))
            self._print((f"{self._heading}  api, topic, error", "bold"))
        if connection not in self._known:
            self._known.add(connection)
            client_text = f", client {client}" if client else ""
            joined = "" if link.known_start else ", joined in the middle"
            text = f"connection {connection}: {link.name}  {link.protocol or 'unknown protocol'}{client_text}{joined}"
            for line in textwrap.wrap(printable(text), self._width, subsequent_indent="    "):
                self._print((line, "dim"))
        date = _date(time_us)
        if date and date != self._date:
            self._date = date
            self._print((f"{'':>5} {date}", "dim"))

    def _row(self, numbers: str, parts: list[Part]) -> None:
        texts = [(printable(text), style) for text, style in parts if text]
        below = self._width - BELOW - 2
        for number, (indent, row) in enumerate(_rows(texts, len(numbers), self._room, max(below, LEAST_TEXT))):
            self._print((" " * indent if number else numbers, ""), *((f"  {text}", style) for text, style in row))

    def _print(self, *parts: Part) -> None:
        """Prints a line without trailing blanks; without colours it bypasses rich, which is much slower."""
        if self._coloured:
            line = Text.assemble(*parts)
            line.rstrip()
            self._console.print(line, soft_wrap=True)
        else:
            self._console.file.write("".join(text for text, _ in parts).rstrip() + "\n")
            self._console.file.flush()


def _rows(parts: list[Part], indent: int, room: int, below: int) -> Iterator[tuple[int, list[Part]]]:
    """(indent, parts) of each line; from the first part that does not fit beside the numbers, the indent is smaller."""
    row: list[Part] = []
    width_used = 0
    for number, (text, style) in enumerate(parts):
        if row and width_used + len(text) > room:
            yield indent, row
            row, width_used = [], 0
        last = text
        if len(text) > room:
            if not number:
                yield indent, []
            indent, room = BELOW, below
            *lines, last = textwrap.wrap(text, room, subsequent_indent="  ", break_on_hyphens=False)
            for line in lines:
                yield indent, [(line, style)]
        row.append((last, style))
        width_used += len(last) + 2
    if row:
        yield indent, row


def _description(frame: Frame, facts: Facts, width: int) -> Iterator[Part]:
    description = frame.description
    version = "" if description.version is None else f" v{description.version}"
    requested = None if frame.request is None else frame.request.description.version
    to = "" if requested in (None, description.version) else f" to v{requested}"
    yield f"{description.api or '?'}{version}{to}".ljust(width), ""
    yield _topics(facts.topics), "cyan"
    yield f"group {facts.group_id}" if facts.group_id else "", "cyan"
    for error in dict.fromkeys(error.error for error in facts.errors):
        yield error, "bold red"


def _topics(topics: dict[str, list[int]]) -> str:
    """``orders[3], payments[12 partitions]``."""
    texts = []
    for topic, partitions in list(topics.items())[:MOST_TOPICS]:
        where = f"[{partitions[0]}]" if len(partitions) == 1 else f"[{len(partitions):,} partitions]"
        texts.append(f"{topic}{where if partitions else ''}")
    more = len(topics) - len(texts)
    return ", ".join(texts) + (f" and {plural(more, 'more topic')}" if more else "")


def _remarks(frame: Frame, messages: int, *, good: bool) -> Iterator[Part]:
    """The problems of a frame, or the number of good checks if requested."""
    error = frame.decoded.error
    if error is not None:
        yield "; ".join(filter(None, [f"✗ {error.path} {error.reason}", error.hint])), "red"
        return
    if frame.wrong is not None:
        yield f"✗ {frame.wrong}", "red"
        return
    yield frame.reason or "", "dim"
    yield plural(messages, "message") if messages else "", ""
    bad = [check for check in frame.decoded.checks if check.status == "bad"]
    if bad:
        yield f"✗ {bad[0].kind} {bad[0].path}", "yellow"
        return
    passed = sum(check.status == "ok" for check in frame.decoded.checks) if good else 0
    yield f"✓ {plural(passed, 'check')}" if passed else "", "green"
    unexplained = sum(gap.length for gap in frame.decoded.gaps)
    yield plural(unexplained, "unexplained byte") if unexplained else "", "yellow"
    sealed = any(check.kind == "decryption" and check.status == "absent" for check in frame.decoded.checks)
    yield "encrypted" if sealed else "", ""


def _date(time_us: int | None) -> str:
    utc = moment(time_us)
    return "" if utc is None else f"{utc:%Y-%m-%d}"
