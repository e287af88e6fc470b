"""A list in ascending order whose first items are removed in constant time each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

Item = TypeVar("Item")
_FEW = 64


class Ascending(list[Item], Generic[Item]):
    """Items in ascending order.

    Removed items are deleted many at a time, because deleting the first of a long list moves all others; when all are
    removed, the list is empty.

    Attributes:
        begin: index of the first item; the items before it are removed.
    """

    __slots__ = ("begin",)

    def __init__(self, items: Iterable[Item] = ()) -> None:
        super().__init__(items)
        self.begin = 0

    @property
    def first(self) -> Item:
        """The lowest item."""
        return self[self.begin]

    def all(self) -> list[Item]:
        """The items that were not removed."""
        return self[self.begin :]

    def leave(self, index: int) -> None:
        """Removes the items before an index."""
        self.begin = index
        if index == len(self):
            self.clear()
            self.begin = 0
        elif index > _FEW and 2 * index > len(self):
            del self[:index]
            self.begin = 0
