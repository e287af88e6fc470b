"""Counts the frames of a capture and their names, for the message if no frame matches the selection options."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from wirekit.cli.filters import Selection
from wirekit.cli.numbered import Numbered
from wirekit.conversation import Frame
from wirekit.errors import plural

MOST_NAMES = 12
"""Names that are listed if nothing matches."""
MOST_COUNTED = 10_000
"""Names that are counted."""
SELECTED_BY = {"API": "apis", "topic": "topics", "group": "groups", "client": "clients"}
"""The kinds of names, and the attribute of ``Selection`` that selects by each."""


class Names:
    """Counts the frames of a capture and their names.

    Args:
        selection: the conditions.

    Attributes:
        kinds: the kinds of names by which the selection selects.
        connected: whether a connection matches, even if none of its frames does.
        frames, connections: their numbers.
    """

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self.kinds = [kind for kind, condition in SELECTED_BY.items() if getattr(selection, condition)]
        self.connected = False
        self.frames = self.connections = 0
        self._names: dict[str, Counter[str]] = {kind: Counter() for kind in self.kinds}

    def counted(self, items: Iterable[Numbered]) -> Iterator[Numbered]:
        """Yields the same items while counting them."""
        for each in items:
            self.add(each)
            yield each

    def add(self, each: Numbered) -> None:
        """Counts an item."""
        self.connections = max(self.connections, each.connection)
        self.connected = self.connected or self._selection.wants_connection(each)
        if isinstance(each.item, Frame):
            self.frames += 1
            names_by_kind: dict[str, Iterable[str | None]] = {
                "API": (each.item.description.api,),
                "topic": each.facts.topics,
                "group": (each.facts.group_id,),
                "client": (each.facts.client,),
            }
            for kind in self.kinds:
                self.count(kind, dict.fromkeys(names_by_kind[kind], 1))

    def count(self, kind: str, times: Mapping[str | None, int]) -> None:
        """Adds counts of names of a kind; None and "" do not count."""
        names = self._names[kind]
        for name, number in times.items():
            if name and number and (name in names or len(names) < MOST_COUNTED):
                names[name] += number

    def text(self) -> str:
        """``384 frames in 45 connections; API: fetch, metadata``, with the names of each selected kind."""
        parts = [f"it has {plural(self.frames, 'frame')} in {plural(self.connections, 'connection')}"]
        parts += [f"{kind}s: {listed_names(names)}" for kind, names in self._names.items()]
        return "; ".join(parts)


def listed_names(names: Counter[str]) -> str:
    """``orders, payments and 3 more``: the most frequent names; ``none`` if there are none."""
    most = sorted(sorted(names, key=lambda name: (-names[name], name))[:MOST_NAMES])
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return f"{', '.join(most) or 'none'}{more}"
