"""Finds where the clock of a capture was set back: the packets between two such steps are in the order of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wirekit.capture.tcp import CLOCK_STEP_US

STRETCH = "stretch"
"""A column that packets may have besides those of their table: the result of ``stretches``."""
EVER = (1 << 63) - 1
"""The latest possible time, microseconds since the epoch; ``-EVER`` is the earliest."""


def stretches(rows: pa.Table) -> pa.Array:
    """For each row of the table ``packets``, how often the clock was set back between the segments up to it."""
    segments = np.asarray(pc.and_(rows["note"].is_null(), rows["ts_us"].is_valid()))
    steps = np.zeros(rows.num_rows, np.int64)
    steps[segments] = set_back(np.asarray(rows["ts_us"].fill_null(0))[segments])
    return pa.array(np.cumsum(steps))


def set_back(times: NDArray[Any]) -> NDArray[Any]:
    """For each segment of a capture, in the order of the file, whether the clock was set back before it.

    Args:
        times: of the segments, microseconds since the epoch.

    >>> set_back(np.array([0, 500_000, 400_000, 100_000])).tolist()
    [False, False, False, True]
    """
    after = np.minimum(times, EVER - CLOCK_STEP_US) + CLOCK_STEP_US
    return np.append(np.zeros(min(times.size, 1), bool), after[1:] < times[:-1])


class Times(NamedTuple):
    """Times of segments that stay together, in microseconds since the epoch.

    ``first`` is the earliest time before the clock was set back between them, ``last`` the latest time after that,
    ``earliest`` the earliest time of all; without a segment, the latest and the earliest possible. ``before`` and
    ``inside`` tell whether the clock was set back before the first of them, and between them.
    """

    first: int = EVER
    last: int = -EVER
    earliest: int = EVER
    before: bool = False
    inside: bool = False


class Clock(NamedTuple):
    """The clock at the end of a part of a capture, in microseconds since the epoch.

    ``latest`` is the latest time since the clock was set back, ``later`` the earliest time in later parts, and
    ``may_end`` whether a window may end after the part.
    """

    latest: int
    later: int
    may_end: bool


def clocks(parts: Sequence[Times]) -> list[Clock]:
    """The clock at the end of each part of a capture."""
    latest, clock = list[int](), -EVER
    for part in parts:
        clock = part.last if part.before or part.inside else max(clock, part.last)
        latest.append(clock)
    backwards, following, later = list[Clock](), EVER, EVER  # following: until the clock is set back again
    for part, clock in zip(reversed(parts), reversed(latest), strict=True):
        backwards.append(Clock(clock, later, clock <= following))
        following = EVER if part.before else part.first if part.inside else min(part.first, following)
        later = min(part.earliest, later)
    return backwards[::-1]
