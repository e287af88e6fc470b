"""The source of drawn numbers, bytes and text: hypothesis, which shrinks, or a seeded generator, which is fast."""

from __future__ import annotations

import functools
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import strategies as st

Draw = Callable[[st.SearchStrategy[Any]], Any]

USUAL_BYTES = (b"", b"\0", b"\xff\xff\xff\xff", bytes(13))
MOST_BYTES = 24
UNUSUAL_TEXT = ("", "a", "topic-1", "\0", "é", "消息", "\U0001f600", "a\u202eb", "\ufeff", "\n", "' \"\\", "e\u0301")
MOST_TEXT = 12
LONG = (127, 128, 255, 256, 1000, 5000)
"""Sizes where a length takes one byte more, or a buffer of a usual size ends: 2 to 4 % of the sizes drawn by seed."""
ANY_BYTES = st.sampled_from(USUAL_BYTES) | st.binary(max_size=MOST_BYTES)
ANY_TEXT = st.sampled_from(UNUSUAL_TEXT) | st.text(max_size=MOST_TEXT)
FLOATS = {
    ("d", True): st.floats(),
    ("d", False): st.floats(allow_nan=False),
    ("f", True): st.floats(width=32),
    ("f", False): st.floats(width=32, allow_nan=False),
}


class Rejected(Exception):
    """The choices so far lead to no value; another attempt may succeed."""


class StackEnds(Rejected):
    """Python's stack is too small for a value of the requested depth."""


class Choices(ABC):
    """Draws the parts of a value."""

    @abstractmethod
    def upto(self, most: int) -> int:
        """An integer from 0 to ``most``."""

    @abstractmethod
    def integer(self, low: int, high: int) -> int:
        """An integer in a range; its ends, 0, 1 and -1 are more likely than others."""

    @abstractmethod
    def exactly(self, size: int) -> bytes:
        """A byte string of a given size."""

    @abstractmethod
    def data(self) -> bytes:
        """A short byte string."""

    @abstractmethod
    def text(self) -> str:
        """A short text, often an unusual one."""

    @abstractmethod
    def real(self, code: str, *, nan: bool = True) -> float:
        """A floating-point number of the format ``d`` or ``f`` of ``struct``."""

    @abstractmethod
    def from_caller(self, source: Any) -> Any:
        """A value from the caller's strategy or constant for a field."""


class DrawnChoices(Choices):
    """Choices of hypothesis; the caller passes strategies or constants for fields."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw

    def upto(self, most: int) -> int:
        return int(self._draw(upto(most)))

    def integer(self, low: int, high: int) -> int:
        return int(self._draw(_integers(low, high)))

    def exactly(self, size: int) -> bytes:
        return bytes(self._draw(_exactly(size)))

    def data(self) -> bytes:
        return bytes(self._draw(ANY_BYTES))

    def text(self) -> str:
        return str(self._draw(ANY_TEXT))

    def real(self, code: str, *, nan: bool = True) -> float:
        return float(self._draw(FLOATS[code, nan]))

    def from_caller(self, source: Any) -> Any:
        return self._draw(source) if isinstance(source, st.SearchStrategy) else source


class SeededChoices(Choices):
    """Choices of a seeded generator; the caller passes constants, or functions of the generator, for fields."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._below = random._randbelow  # type: ignore[attr-defined]  # half the time of randrange, and no other way

    def upto(self, most: int) -> int:
        return int(self._below(most + 1))

    def integer(self, low: int, high: int) -> int:
        if self._below(2):
            return int(low + self._below(high - low + 1))
        edges = _edges(low, high)
        return int(edges[self._below(len(edges))])

    def exactly(self, size: int) -> bytes:
        return self._random.randbytes(size)

    def data(self) -> bytes:
        if self._below(2):
            return USUAL_BYTES[self._below(len(USUAL_BYTES))]
        return self._random.randbytes(self._size(MOST_BYTES))

    def text(self) -> str:
        if self._below(2):
            return UNUSUAL_TEXT[self._below(len(UNUSUAL_TEXT))]
        return self._random.randbytes(self._size(MOST_TEXT)).decode("latin-1")

    def _size(self, most: int) -> int:
        size = self._below(most + 1)
        return LONG[self._below(len(LONG))] if size == most else int(size)

    def real(self, code: str, *, nan: bool = True) -> float:
        size = struct.calcsize(code)
        number = float(struct.unpack(f">{code}", self._random.randbytes(size))[0])
        return number if nan or number == number else 0.0

    def from_caller(self, source: Any) -> Any:
        return source(self._random) if callable(source) else source


@functools.cache
def upto(most: int) -> st.SearchStrategy[int]:
    """Integers from 0 to ``most``."""
    return st.integers(0, most)


@functools.cache
def _edges(low: int, high: int) -> list[int]:
    return [value for value in dict.fromkeys((0, 1, -1, low, high)) if low <= value <= high]


@functools.cache
def _integers(low: int, high: int) -> st.SearchStrategy[int]:
    return st.sampled_from(_edges(low, high)) | st.integers(low, high)


@functools.cache
def _exactly(size: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=size, max_size=size)
