"""Names of connections that selection options give by their numbers, by columns."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from wirekit.capture.links import Choice
from wirekit.cli.common import say
from wirekit.cli.filters import Selection
from wirekit.cli.filters_columns import Selected
from wirekit.cli.frame_numbers import NumberedFrames, NumberedWindows, StopReading, WindowItem
from wirekit.cli.selected_names import Names
from wirekit.pipeline.inputs import Input

NOWHERE = ">"
"""A name that no connection has."""


class Lacking(NamedTuple):
    """A capture without any of the requested connections; nothing else of it needs to be read.

    Attributes:
        names: the counts of its frames.
        problems: those of its files, which are not reported yet.
    """

    names: Names
    problems: list[str]

    def report(self) -> int:
        """Reports the problems; returns the exit status."""
        for each in self.problems:
            say(each)
        return int(bool(self.problems))


def with_names(selection: Selection, files: tuple[Input, ...], choice: Choice) -> tuple[Selection, Lacking | None]:
    """A selection with the names of connections instead of their numbers, unless objects must read the capture.

    Returns:
        The selection, and the capture if it has none of the connections.
    """
    numbers = {int(each) for each in selection.links if ">" not in each}
    if not numbers:
        return selection, None
    windows = _NameWindows(files, choice, selection, numbers)
    complete = False
    with suppress(StopReading):
        complete = windows.read()
    links = tuple(windows.names.get(each, NOWHERE if complete else each) for each in selection.links)
    lacking = Lacking(windows.counted, windows.problems) if {*links} == {NOWHERE} else None
    return replace(selection, links=links), lacking


class _NameWindows(NumberedWindows):
    """Collects the names of connections, by their numbers as text."""

    def __init__(self, files: tuple[Input, ...], choice: Choice, selection: Selection, numbers: set[int]) -> None:
        everything = Selected(Selection())
        self.counted = everything.names = Names(selection)
        super().__init__(files, choice, everything)
        self.names: dict[str, str] = {}
        self.problems: list[str] = []
        self._wanted = numbers

    def report(self, problem: str) -> None:
        """Keeps a problem: if the command reads the capture again, it is reported then."""
        self.problems.append(problem)

    def window(self, parts: list[NumberedFrames], items: list[WindowItem]) -> None:
        """Collects the names of connections that begin in a window."""
        self.names |= {str(number): name for name, number in self.numbers.connections.items() if number in self._wanted}
        if len(self.names) == len(self._wanted):
            raise StopReading
