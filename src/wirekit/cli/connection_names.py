"""Names of connections that selection options give by their numbers, by columns."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from wirekit.capture.links import Choice
from wirekit.cli.filters import Selection
from wirekit.cli.filters_columns import Selected
from wirekit.cli.frame_numbers import NumberedFrames, NumberedWindows, StopReading, WindowItem
from wirekit.pipeline.inputs import Input


def with_names(selection: Selection, files: tuple[Input, ...], choice: Choice) -> Selection:
    """A selection with the names of connections instead of their numbers, as far as the capture has them."""
    numbers = {int(each) for each in selection.links if ">" not in each}
    if not numbers:
        return selection
    windows = _NameWindows(files, choice, numbers)
    with suppress(StopReading):
        windows.read()
    return replace(selection, links=tuple(windows.names.get(each, each) for each in selection.links))


class _NameWindows(NumberedWindows):
    """Collects the names of connections, by their numbers as text."""

    def __init__(self, files: tuple[Input, ...], choice: Choice, numbers: set[int]) -> None:
        super().__init__(files, choice, Selected(Selection()))
        self.names: dict[str, str] = {}
        self._wanted = numbers

    def report(self, problem: str) -> None:
        """Does nothing: the command reads the capture again, and reports it then."""

    def window(self, parts: list[NumberedFrames], items: list[WindowItem]) -> None:
        """Collects the names of connections that begin in a window."""
        self.names |= {str(number): name for name, number in self.numbers.connections.items() if number in self._wanted}
        if len(self.names) == len(self._wanted):
            raise StopReading
