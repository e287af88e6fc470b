"""Prints the frames of a capture as a table: columns cut, pair, select and number them; then each is decoded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirekit.capture.links import Choice, Item, Link
from wirekit.cli.filters_columns import Selected
from wirekit.cli.frame_numbers import NumberedFrames, NumberedWindows, WindowItem, runs
from wirekit.cli.where_columns import WindowFacts
from wirekit.conversation import Frame
from wirekit.display.frames import FrameTable
from wirekit.pipeline.inputs import Input


class TableWindows(NumberedWindows):
    """Prints the row of each frame that matches.

    Attributes:
        bad: failed checks by kind, of the frames that match.
        shown: number of rows printed so far, and of the other items that match.

    Args:
        files, choice, selected: as for ``NumberedWindows``.
        take: called with each item that objects read and that matches, None for the end of a connection.
        table: prints the rows.
        one_connection: whether the rows are of one connection; undecoded and missing bytes then have rows as well.
    """

    def __init__(
        self,
        files: tuple[Input, ...],
        choice: Choice,
        selected: Selected,
        take: Callable[[Link, Item | None], None],
        table: FrameTable,
        *,
        one_connection: bool = False,
    ) -> None:
        super().__init__(files, choice, selected)
        self.bad: Counter[str] = Counter()
        self.shown = 0
        self._take_item, self._table, self._one_connection = take, table, one_connection

    def assembly(self, *arguments: Any) -> NumberedFrames:
        """The frames of a window that columns have read."""
        part = super().assembly(*arguments)
        self.bad.update(check.kind for frame, failed in part.checks if part.matches[frame] for check in failed)
        return part

    def take(self, link: Link, item: Item | None) -> None:
        """Handles an item that objects read and that matches (None for the end of a connection)."""
        self._take_item(link, item)
        self.shown += item is not None
        if isinstance(item, Frame):
            self.bad.update(check.kind for check in item.decoded.checks if check.status == "bad")

    def window(self, parts: list[NumberedFrames], items: list[WindowItem]) -> None:
        """Prints a window in the order of time."""
        matching = [each for each in items if each.matches and (each.is_frame or self._one_connection)]
        times = [part.index.time[part.matching] for part in parts]
        times.append(np.array(list(_times(matching)), np.int64))
        numbers = [part.number[part.matching] for part in parts]
        numbers.append(np.array([each.numbered.frame for each in matching], np.int64))
        places = [*(part.matching for part in parts), np.arange(len(matching))]
        facts_of: dict[int, WindowFacts] = {}
        for part, chosen in runs(places, numbers, times):
            if part < len(parts):
                # A part must not refer to its facts: the garbage collector would see the cycle windows later.
                facts_of[part] = facts_of.get(part) or WindowFacts(parts[part])
                self._show(parts[part], facts_of[part], chosen)
                continue
            for each in (matching[number] for number in chosen.tolist()):
                link, item, connection, number, facts = each.numbered
                if isinstance(item, Frame):
                    self._table.frame(number, connection, link, item, facts, each.messages)
                elif item is not None:
                    self._table.undecoded(connection, link, item)

    def _show(self, part: NumberedFrames, window_facts: WindowFacts, frames: NDArray[np.int64]) -> None:
        for (place, frame), facts in zip(part.with_requests(frames), window_facts.of(frames), strict=True):
            link = part.link(int(part.index.connection[place]))
            number, messages = int(part.number[place]), int(window_facts.messages[place])
            self._table.frame(number, self.connection(link), link, frame, facts, messages)
            self.shown += 1


def _times(items: list[WindowItem]) -> Iterator[int]:
    """The time of each item, or of the item before one that has none."""
    latest = 0
    for each in items:
        item = each.numbered.item
        latest = latest if item is None or item.time_us is None else item.time_us
        yield latest
