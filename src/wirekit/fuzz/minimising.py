"""Shrinks a case that still shows a finding: removes parts, then sets bytes to zero, within a number of attempts."""

from __future__ import annotations

from collections.abc import Callable

ATTEMPTS = 200


def minimised(data: bytes, shows: Callable[[bytes], bool]) -> bytes:
    """The smallest bytes found that show a finding.

    Args:
        data: bytes that show the finding.
        shows: returns whether given bytes show it; called at most ``ATTEMPTS`` times.

    >>> minimised(b"some bytes with an X inside", lambda data: b"X" in data)
    b'X'
    """
    attempts_left = ATTEMPTS
    size = len(data) // 2
    while size and attempts_left:
        at = 0
        while at < len(data) and attempts_left:
            attempts_left -= 1
            fewer = data[:at] + data[at + size :]
            if shows(fewer):
                data = fewer
            else:
                at += size
        size //= 2
    size = len(data)
    while size and attempts_left:
        for at in range(0, len(data), size):
            part = data[at : at + size]
            if not any(part):
                continue
            if not attempts_left:
                break
            attempts_left -= 1
            zeroed = data[:at] + bytes(len(part)) + data[at + size :]
            if shows(zeroed):
                data = zeroed
        size //= 2
    return data
