"""Checks the frames of a capture against rules: columns cut and pair them; then each is decoded."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from wirekit.capture.links import Choice, Item, Link
from wirekit.cli.filters_columns import Selected
from wirekit.cli.frame_numbers import NumberedFrames, NumberedWindows, WindowItem, in_order
from wirekit.cli.rule_checks import RuleChecks
from wirekit.conversation import Frame
from wirekit.pipeline.inputs import Input
from wirekit.pipeline.rows import Batch
from wirekit.pipeline.summary import Summary
from wirekit.rules import Violation
from wirekit.tables.columns import Table

MOST_DECODED = 10_000
"""Frames of a window that objects read and that stay decoded until they are checked; others are decoded again."""


class RuleWindows(NumberedWindows):
    """Checks all frames of a capture, in the order of their numbers.

    Args:
        files, choice, selected, shown, summary: as for ``NumberedWindows``.
        checks: checks all frames, also those that are not selected; None for no checks.
        violated: called with each violation of a connection when this has ended.
    """

    def __init__(
        self,
        files: tuple[Input, ...],
        choice: Choice,
        selected: Selected,
        checks: RuleChecks | None,
        violated: Callable[[Link, Violation], None],
        shown: dict[str, Table] | None = None,
        summary: Summary | None = None,
    ) -> None:
        super().__init__(files, choice, selected, shown, summary)
        self._checks, self._violated = checks, violated

    def item(self, name: str, link: Link, item: Item | None) -> Iterator[Batch]:
        """Adds an item that objects read."""
        yield from super().item(name, link, item)
        self.release(item)

    def release(self, item: Item | None) -> None:
        """Drops the value of a frame if the window has many."""
        if isinstance(item, Frame) and len(self._items) > MOST_DECODED:
            item.release()

    def window(self, parts: list[NumberedFrames], items: list[WindowItem]) -> None:
        """Checks the frames of a window."""
        if self._checks is not None:
            for link, item in in_order(parts, items):
                self._checks.take(link, item)

    def over(self, link: Link) -> None:
        """Reports the violations of a connection that has ended."""
        for violation in self._checks.take(link, None) if self._checks is not None else ():
            self._violated(link, violation)
