"""Captures in growing folders: finds complete files, and those of them that a run may read now."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Container, Iterable, Mapping
from itertools import takewhile
from typing import Any

from wirekit.pipeline.inputs import Input, captures, renumbered
from wirekit.storage import is_remote

SETTLE_SECONDS = 10.0
"""A file that has not changed for this many seconds is complete."""


class Settling:
    """Separates complete files from files that are still being written; called once per scan of the folder.

    A file is complete when its size and modification time have not changed for some time, as measured by a monotonic
    clock. In the first scan, the modification time of a file decides. An object of an object store is always complete.

    Args:
        seconds: how long a file must not change.
        clock: returns seconds of a monotonic clock.
        now: returns nanoseconds since the epoch.

    >>> Settling(10, now=lambda: 100_000_000_000).complete([
    ...     Input(0, "old.pcap", "/old.pcap", 24, 90_000_000_000), Input(1, "new.pcap", "/new.pcap", 24, 91_000_000_000)
    ... ])
    {'/old.pcap'}
    """

    def __init__(
        self,
        seconds: float = SETTLE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], int] = time.time_ns,
    ) -> None:
        self._seconds = seconds
        self._clock = clock
        self._now = now
        self._files: dict[str, tuple[int, int, float]] = {}

    def complete(self, files: Iterable[Input]) -> set[str]:
        """The paths of the complete files among all current files."""
        moment, now = self._clock(), self._now()
        files_now: dict[str, tuple[int, int, float]] = {}
        for each in files:
            size, mtime_ns, since = self._files.get(each.path, (None, None, moment))
            if size is None and (now - each.mtime_ns) / 1e9 >= self._seconds:
                since = -math.inf
            elif (size, mtime_ns) != (each.size, each.mtime_ns):
                since = moment
            files_now[each.path] = (each.size, each.mtime_ns, since)
        self._files = files_now
        return {path for path, (_, _, since) in files_now.items() if is_remote(path) or moment - since >= self._seconds}


def settled(
    inputs: Iterable[Input], complete: Container[str], commits: Mapping[int, Mapping[str, Any]]
) -> tuple[Input, ...]:
    """The files that a run may add now: of a rotation, only those before its first incomplete file.

    If a file of a bundle is incomplete again, no file of the bundle is read: the whole bundle will be read again later.

    Args:
        inputs: all current files.
        complete: the paths of complete files.
        commits: the commits of the lake, by the number of the bundle.
    """
    groups = captures(inputs)
    growing = {each.path for files in groups for each in files if each.path not in complete}
    bundles = ({each["path"] for each in commit["inputs"]} for commit in commits.values())
    waiting = set[str]().union(*(paths for paths in bundles if paths & growing))
    return renumbered(
        files
        for group in groups
        if not waiting.intersection(each.path for each in group)
        and (files := tuple(takewhile(lambda each: each.path not in growing, group)))
    )
