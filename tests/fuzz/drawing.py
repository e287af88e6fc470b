"""What tests draw while they run. A strategy that is made for each draw takes most of the time of such a test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import strategies as st

from wirekit.strategies.choices import upto

T = TypeVar("T")


def one_of(data: st.DataObject, items: Sequence[T]) -> T:
    """An element, as ``st.sampled_from`` draws it."""
    return items[data.draw(upto(len(items) - 1))]
