"""The frames of a capture as lines for readers: what each one is about, how long its answer took, what is wrong.

Nothing is cut: what does not fit beside the numbers goes on below.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from rich.text import Text

from wirekit.capture.follow import Link, Missing
from wirekit.conversation import Frame, Quarantined
from wirekit.display.fields import counted
from wirekit.tables.facts import Facts
from wirekit.values import printable

if TYPE_CHECKING:
    from rich.console import Console

WIDE = 120  # columns of a terminal from which on topics begin below each other
WIDE_API = 34
LEAST_TEXT = 24  # columns that are left to the text, however narrow the terminal
MOST_TOPICS = 3
HEADING = f"{'#':>5} {'time':<15} {'conn':>5}  {'ms':>9} {'bytes':>8}  api, topic, error"
ARROWS = {"request": "→", "response": "←"}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Part = tuple[str, str]
"""A text and its style."""


class FrameTable:
    """Lines that are printed as frames come: a capture may be longer than memory.

    Args:
        console: where to; lines are as wide as it is.
        title: what the lines begin with, if there are any.
    """

    def __init__(self, console: Console, title: str = "") -> None:
        self._console = console
        self._title = title
        self._room = max(console.width - len(HEADING[: HEADING.index("api")]), LEAST_TEXT)
        self._headed = False
        self._date = ""
        self._known: set[int] = set()

    def frame(self, number: int, connection: int, link: Link, frame: Frame, facts: Facts) -> None:
        """Prints a frame; in front of it its connection, if that is new, and the date, if it is another.

        Args:
            number: of the frame in its capture.
            connection: number of the connection in the capture.
            link, frame, facts: what is known of them.
        """
        self._introduce(connection, link, frame.time_us, facts.client)
        latency = "" if frame.latency_us is None else f"{frame.latency_us / 1000:.3f}"
        arrow = ARROWS.get(frame.description.role, "·")
        self._row(
            f"{number:>5} {_time(frame.time_us):<15} {connection:>5}{arrow} {latency:>9} {len(frame.data):>8}",
            [*_about(frame, facts, WIDE_API if self._console.width >= WIDE else 0), *_remarks(frame)],
        )

    def undecoded(self, connection: int, link: Link, item: Quarantined | Missing) -> None:
        """Prints bytes that nobody could decode, or that the capture does not have."""
        self._introduce(connection, link, item.time_us, None)
        size = len(item.data) if isinstance(item, Quarantined) else item.length
        what = "not decoded" if isinstance(item, Quarantined) else "missing"
        arrow = "→" if item.side == "client" else "←"
        self._row(
            f"{'':>5} {_time(item.time_us):<15} {connection:>5}{arrow} {'':>9} {size:>8}",
            [(f"✗ {what}: {item.reason}", "red")],
        )

    def _introduce(self, connection: int, link: Link, time_us: int | None, client: str | None) -> None:
        if not self._headed:
            self._headed = True
            if self._title:
                self._print(Text(printable(self._title), "bold"))
            self._print(Text(HEADING, "bold"))
        if connection not in self._known:
            self._known.add(connection)
            named = f", client {client}" if client else ""
            joined = "" if link.known_start else ", joined in the middle"
            text = f"connection {connection}: {link.name}  {link.protocol or 'unknown protocol'}{named}{joined}"
            for line in textwrap.wrap(printable(text), self._console.width, subsequent_indent="    "):
                self._print(Text(line, "dim"))
        date = _date(time_us)
        if date and date != self._date:
            self._date = date
            self._print(Text(f"{'':>5} {date}", "dim"))

    def _row(self, numbers: str, parts: list[Part]) -> None:
        rows = list(_rows([(printable(text), style) for text, style in parts if text], self._room))
        for number, row in enumerate(rows):
            line = Text(numbers if not number else " " * len(numbers))
            for text, style in row:
                line.append(text, style)
            line.rstrip()
            self._print(line)

    def _print(self, text: Text) -> None:
        self._console.print(text, soft_wrap=True)


def _rows(parts: list[Part], room: int) -> Iterator[list[Part]]:
    """The parts in rows of this width, two columns between them; a part that is longer goes on below, indented."""
    row: list[Part] = []
    used = 0
    for text, style in parts:
        if row and used + len(text) > room:
            yield row
            row, used = [], 0
        lines = textwrap.wrap(text, room, subsequent_indent="  ", break_on_hyphens=False)
        for number, line in enumerate(lines if len(text) > room else [text]):
            if number:
                yield row
                row, used = [], 0
            row.append((f"  {line}", style))
            used += 2 + len(line)
    yield row


def _about(frame: Frame, facts: Facts, width: int) -> Iterator[Part]:
    what = frame.description
    version = "" if what.version is None else f" v{what.version}"
    yield f"{what.api or '?'}{version}".ljust(width), ""
    yield _topics(facts.topics), "cyan"
    yield f"group {facts.group_id}" if facts.group_id else "", "cyan"
    for error in dict.fromkeys(error.error for error in facts.errors):
        yield error, "bold red"


def _topics(topics: dict[str, list[int]]) -> str:
    """``orders[3], payments[12 partitions]``."""
    named = []
    for topic, partitions in list(topics.items())[:MOST_TOPICS]:
        where = f"[{partitions[0]}]" if len(partitions) == 1 else f"[{len(partitions):,} partitions]"
        named.append(f"{topic}{where if partitions else ''}")
    more = len(topics) - len(named)
    return ", ".join(named) + (f" and {counted(more, 'more topic')}" if more else "")


def _remarks(frame: Frame) -> Iterator[Part]:
    """What is wrong with a frame, or how much is right."""
    error = frame.decoded.error
    if error is not None:
        yield "; ".join(filter(None, [f"✗ {error.path} {error.reason}", error.hint])), "red"
        return
    if frame.reason is not None:
        yield f"✗ {frame.reason}", "red"
        return
    messages = len(frame.messages)
    yield counted(messages, "message") if messages else "", ""
    bad = [check for check in frame.decoded.checks if check.status == "bad"]
    if bad:
        yield f"✗ {bad[0].kind} {bad[0].path}", "yellow"
        return
    good = sum(check.status == "ok" for check in frame.decoded.checks)
    yield f"✓ {good}" if good else "", "green"
    unexplained = sum(gap.length for gap in frame.decoded.gaps)
    yield f"{unexplained} unexplained bytes" if unexplained else "", "yellow"
    sealed = any(check.kind == "decryption" and check.status == "absent" for check in frame.decoded.checks)
    yield "encrypted" if sealed else "", ""


def _moment(time_us: int | None) -> datetime | None:
    try:
        return None if time_us is None else EPOCH + timedelta(microseconds=time_us)
    except OverflowError:
        return None


def _time(time_us: int | None) -> str:
    """A time of the day, UTC; a number for one outside the years 1 to 9999."""
    moment = _moment(time_us)
    if moment is None:
        return "" if time_us is None else f"{time_us} µs"
    return f"{moment:%H:%M:%S.%f}"


def _date(time_us: int | None) -> str:
    moment = _moment(time_us)
    return "" if moment is None else f"{moment:%Y-%m-%d}"
