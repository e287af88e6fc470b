"""Lines on standard error about the bytes of a capture that were not decoded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

from wirekit.capture.links import Choice, Item, Link, Missing
from wirekit.cli.captures import is_cut
from wirekit.cli.common import say
from wirekit.cli.guesses import other_protocol
from wirekit.conversation import SIDES, Frame, Quarantined
from wirekit.errors import plural
from wirekit.pipeline.summary import kind_of_reason

MOST_TRIED = 64 * 1024
"""Bytes of a connection that are tried as a protocol other than the chosen one."""
MOST_LINES = 20
"""Lines about one kind of problem in a capture; more of them are only counted."""
TRIES = 8
"""Attempts to find the protocol of connections that do not decode as the chosen one."""


@dataclass(slots=True)
class _Series:
    """Pieces of a side that follow each other, with one reason; ``pieces`` and ``size`` do not count the first."""

    link: Link
    first: Quarantined
    end: int
    pieces: int = 0
    size: int = 0


class Complaints:
    """Reports undecoded bytes, and decides the exit status; a context manager.

    Pieces with one reason that follow each other have two lines: one for the first, at once, and one for all others. A
    connection of an unknown protocol has a piece for each segment. Missing bytes that cut a frame are reported with it.
    After ``MOST_LINES`` lines with one reason, apart from numbers in it, a last line has the number of the others: with
    a snap length nearly every frame is cut.

    Args:
        tell: prints a line.
        choice: the chosen protocols; if the bytes of a connection fit another one, a line names that.
        allow_cut: see ``allow_cut_option``.

    Attributes:
        status: 1 after undecoded bytes, otherwise 0.
    """

    def __init__(self, tell: Callable[[str], object], choice: Choice, *, allow_cut: bool = False) -> None:
        self._tell, self._choice, self._allow_cut = tell, choice, allow_cut
        self._tries = TRIES
        self._begun: dict[str, bytes] = {}  # the first bytes of a client, while none of its frames has decoded
        self._series: dict[tuple[str, str], _Series] = {}
        self._lines = Counter[str]()  # by kind of reason
        self._cut: dict[tuple[str, str], int] = {}  # where the frame ends that was reported last, if it is cut
        self.status = 0

    @classmethod
    def of(cls, path: str, choice: Choice, *, allow_cut: bool = False) -> Complaints:
        """Complaints about a capture; its name begins each line."""
        return cls(lambda text: say(f"{path}: {text}"), choice, allow_cut=allow_cut)

    def __enter__(self) -> Complaints:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        for key in list(self._series):
            self._end(key)
        for reason, number in self._lines.items():
            if number > MOST_LINES:
                self._tell(f"{plural(number - MOST_LINES, 'line')} left out: {reason}")

    def take(self, link: Link, item: Item | None, *, silent: bool = False) -> None:
        """Takes an item of a connection; None is its end. If ``silent``, it only counts for the status."""
        if item is None:
            for side in SIDES:
                self._end((link.name, side))
                self._cut.pop((link.name, side), None)
            self._begun.pop(link.name, None)
            return
        text = complaint(link, item)
        if not text:
            return
        if not (self._allow_cut and is_cut(link, item)):
            self.status = 1
        self._name_other(link, item)
        if silent:
            return
        key = link.name, item.side
        series = self._series.get(key)
        if isinstance(item, Missing) and self._cut.pop(key, None) == item.offset:
            return
        if isinstance(item, Frame) and item.announced:
            self._cut[key] = item.offset + len(item.data)
        if not isinstance(item, Quarantined):
            self._end(key)
            self._add(text, item)
        elif series is not None and (series.first.reason, series.end) == (item.reason, item.offset):
            series.end += len(item.data)
            series.pieces += 1
            series.size += len(item.data)
        else:
            self._end(key)
            self._add(text, item)
            self._series[key] = _Series(link, item, item.offset + len(item.data))

    def _name_other(self, link: Link, item: Item) -> None:
        """Reports the protocol that fits a connection which does not decode as the chosen one; once in a capture."""
        chosen = self._choice.of(link.client, link.server)
        if not chosen or not self._tries or isinstance(item, Missing) or item.side != "client":
            return
        begun = self._begun.get(link.name, b"")
        if item.offset != len(begun) or len(begun) > MOST_TRIED:
            return
        self._tries -= 1
        self._begun[link.name] = begun = begun + item.data
        if other := other_protocol(chosen, begun):
            self._tries = 0
            self._tell(f"connection {link.name} begins with a frame of {other}, not of {chosen}")

    def _end(self, key: tuple[str, str]) -> None:
        """Reports the pieces of a side after the first of a series."""
        series = self._series.pop(key, None)
        if series is not None and series.pieces:
            number = "" if series.pieces == 1 else f" in {series.pieces:,} pieces"
            text = f"{series.size:,} more bytes{number} not decoded: {series.first.reason}"
            self._add(_placed(series.link, series.first.side, series.end - series.size, text), series.first)

    def _add(self, text: str, item: Item) -> None:
        """Prints a line about an item, unless there were many of its kind."""
        kind = _kind(item)
        self._lines[kind] += 1
        if self._lines[kind] <= MOST_LINES:
            self._tell(text)


def complaint(link: Link, item: Item) -> str:
    """The reason and place where decoding failed; "" for an item that decoded."""
    if isinstance(item, Frame):
        error = item.decoded.error
        if error is None and item.wrong is None:
            return ""
        text = str(error or item.wrong)
    elif isinstance(item, Quarantined):
        text = f"{plural(len(item.data), 'byte')} not decoded: {item.reason}"
    else:
        assert isinstance(item, Missing)
        text = f"{plural(item.length, 'byte')} missing: {item.reason}"
    return _placed(link, item.side, item.offset, text)


def _kind(item: Item) -> str:
    """The reason of an item that did not decode, without the numbers in it."""
    if isinstance(item, Frame) and not item.announced:
        error = item.decoded.error
        return kind_of_reason(str(item.wrong)) if error is None else kind_of_reason(error.reason, error.path)
    reason = kind_of_reason(item.reason or "")
    return f"bytes missing: {reason}" if isinstance(item, Missing) else reason


def _placed(link: Link, side: str, offset: int, text: str) -> str:
    sender, receiver = link.addresses(side)
    return f"{sender} > {receiver} at byte {offset} of the stream: {text}"
