"""Checks the frames of a capture against rules: columns cut and pair them; then each is decoded."""

from __future__ import annotations

from collections.abc import Callable

from wirekit.capture.links import Choice, Link
from wirekit.cli.filters_columns import Selected
from wirekit.cli.frame_numbers import NumberedFrames, NumberedWindows, WindowItem, in_order
from wirekit.cli.rules import RuleChecks
from wirekit.pipeline.inputs import Input
from wirekit.pipeline.summary import Summary
from wirekit.rules import Violation
from wirekit.tables.columns import Table


class RuleWindows(NumberedWindows):
    """Checks all frames of a capture, in the order of their numbers.

    Args:
        files, choice, selected, shown, summary: as for ``NumberedWindows``.
        checks: checks all frames, also those that are not selected; None for no checks.
        found: called with each violation of a connection when this has ended.
    """

    def __init__(
        self,
        files: tuple[Input, ...],
        choice: Choice,
        selected: Selected,
        checks: RuleChecks | None,
        found: Callable[[Link, Violation], None],
        shown: dict[str, Table] | None = None,
        summary: Summary | None = None,
    ) -> None:
        super().__init__(files, choice, selected, shown, summary)
        self._checks, self._found = checks, found

    def window(self, parts: list[NumberedFrames], items: list[WindowItem]) -> None:
        """Checks the frames of a window."""
        if self._checks is not None:
            for link, item in in_order(parts, items):
                self._checks.take(link, item)

    def over(self, link: Link) -> None:
        """Reports the violations of a connection that has ended."""
        for violation in self._checks.take(link, None) if self._checks is not None else ():
            self._found(link, violation)
