"""The items of a capture with the numbers that tables show, and the topics, groups and errors of each frame."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from wirekit.capture.links import Item, Link
from wirekit.conversation import Frame
from wirekit.tables.facts import ConnectionFacts, Facts

NOTHING = Facts()


class Numbered(NamedTuple):
    """An item of a capture.

    Attributes:
        link: its connection.
        item: None at the connection's end.
        connection: number of the connection in the capture, from 1, by its first item.
        frame: number of the frame in the capture, from 1; of other items, that of the frame before.
        facts: the facts of the frame; empty for other items.
    """

    link: Link
    item: Item | None
    connection: int
    frame: int
    facts: Facts


def numbered(items: Iterable[tuple[Link, Item | None]], *, describe: bool) -> Iterator[Numbered]:
    """The items of one capture.

    Args:
        items: as ``wirekit.capture.follow.follow`` yields them.
        describe: whether to evaluate facts; otherwise they are empty.
    """
    connections: dict[int, int] = {}
    facts: defaultdict[int, ConnectionFacts] = defaultdict(ConnectionFacts)
    frame = 0
    for link, item in items:
        connection = connections.setdefault(id(link), len(connections) + 1)
        frame_facts = NOTHING
        if isinstance(item, Frame):
            frame += 1
            frame_facts = facts[connection].of(item) if describe else frame_facts
        elif item is None:
            facts.pop(connection, None)
        yield Numbered(link, item, connection, frame, frame_facts)
