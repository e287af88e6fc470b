"""Where the clock of a capture was set back: packets are followed stretch by stretch, each in the order of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from wirekit.capture.tcp import CLOCK_STEP_US

STRETCH = "stretch"
"""A column that packets may have besides those of their table: the result of ``stretches``."""
EVER = (1 << 63) - 1
"""The latest possible time, microseconds since the epoch; ``-EVER`` is the earliest."""


def stretches(rows: pa.Table) -> pa.Array:
    """For each row of the table ``packets``, how often the clock was set back between the segments up to it."""
    times = pc.if_else(rows["note"].is_null(), rows["ts_us"], pa.scalar(None, pa.int64()))
    times = pc.fill_null_forward(times.combine_chunks() if isinstance(times, pa.ChunkedArray) else times)
    if not len(times):
        return times
    after = pc.add(pc.min_element_wise(times.slice(1), EVER - CLOCK_STEP_US), CLOCK_STEP_US)
    steps = pc.fill_null(pc.less(after, times.slice(0, len(times) - 1)), False).cast(pa.int64())
    return pc.cumulative_sum(pa.concat_arrays([pa.array([0], pa.int64()), steps]))


class Times(NamedTuple):
    """Times of segments that stay together, in microseconds since the epoch.

    ``first`` is the earliest time before the clock was set back between them, ``last`` the latest time after that,
    ``earliest`` the earliest time of all; without a segment, the latest and the earliest possible. ``before`` and
    ``inside`` tell whether the clock was set back in front of the first of them, and between them.
    """

    first: int = EVER
    last: int = -EVER
    earliest: int = EVER
    before: bool = False
    inside: bool = False


class Clock(NamedTuple):
    """The clock at the end of a part of a capture, in microseconds since the epoch.

    ``latest`` is the latest time since the clock was set back, ``later`` the earliest time of the parts behind, and
    ``may_end`` tells whether a window may end there.
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
    found, following, later = list[Clock](), EVER, EVER  # following: before the clock is set back again
    for part, clock in zip(reversed(parts), reversed(latest), strict=True):
        found.append(Clock(clock, later, clock <= following))
        following = EVER if part.before else part.first if part.inside else min(part.first, following)
        later = min(part.earliest, later)
    return found[::-1]
