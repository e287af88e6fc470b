"""Times in the form of the tables: null outside the years 1 to 9999, which readers cannot show."""

from __future__ import annotations

EARLIEST_US = -62_135_596_800_000_000
LATEST_US = 253_402_300_799_999_999
DAY_US = 86_400_000_000


def in_years(time_us: int | None) -> int | None:
    """A time in microseconds since the epoch, or None outside the years 1 to 9999."""
    return time_us if time_us is not None and EARLIEST_US <= time_us <= LATEST_US else None


def day(time_us: int | None) -> int | None:
    """The UTC day of a time, in days since the epoch.

    >>> day(86_400_000_001), day(-1), day(None)
    (1, -1, None)
    """
    return None if time_us is None else time_us // DAY_US
