"""Times since the epoch in the years 1 to 9999; any other time is null in tables and a number in text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST_US = -62_135_596_800_000_000
LATEST_US = 253_402_300_799_999_999
DAY_US = 86_400_000_000


def in_years(time_us: int | None) -> int | None:
    """A time in microseconds since the epoch, or None outside the years 1 to 9999."""
    return time_us if time_us is not None and EARLIEST_US <= time_us <= LATEST_US else None


def moment(time_us: int | None) -> datetime | None:
    """A time in microseconds since the epoch as date and time in UTC, or None outside the years 1 to 9999.

    >>> moment(1_000_000).isoformat(), moment(1 << 60)
    ('1970-01-01T00:00:01+00:00', None)
    """
    time_us = in_years(time_us)
    return None if time_us is None else EPOCH + timedelta(microseconds=time_us)


def day(time_us: int | None) -> int | None:
    """The UTC day of a time, in days since the epoch.

    >>> day(86_400_000_001), day(-1), day(None)
    (1, -1, None)
    """
    return None if time_us is None else time_us // DAY_US
