"""Captures in growing folders: finds the files that are complete, and those of them that a run may read now."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Container, Iterable, Mapping
from itertools import takewhile
from typing import Any

from wirekit.pipeline.inputs import Input, captures, renumbered
from wirekit.storage import is_remote

SETTLE_SECONDS = 10.0
"""A file that has not changed for so long is complete."""


class Settling:
    """Separates complete files from those that are still being written, look after look.

    A file is complete when its size and time of change have stayed the same for some time, as measured by a monotonic
    clock. At the first sight of a file its time of change counts. An object of an object store appears complete.

    Args:
        seconds: for how long it must stay the same.
        clock: seconds, by the monotonic clock.
        now: nanoseconds since the epoch.

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
        self._seen: dict[str, tuple[int, int, float]] = {}

    def complete(self, files: Iterable[Input]) -> set[str]:
        """The paths of the complete ones among all files that there are now."""
        moment, now = self._clock(), self._now()
        seen: dict[str, tuple[int, int, float]] = {}
        for each in files:
            size, mtime_ns, since = self._seen.get(each.path, (None, None, moment))
            if size is None and (now - each.mtime_ns) / 1e9 >= self._seconds:
                since = -math.inf
            elif (size, mtime_ns) != (each.size, each.mtime_ns):
                since = moment
            seen[each.path] = (each.size, each.mtime_ns, since)
        self._seen = seen
        return {path for path, (_, _, since) in seen.items() if is_remote(path) or moment - since >= self._seconds}


def settled(
    inputs: Iterable[Input], complete: Container[str], commits: Mapping[int, Mapping[str, Any]]
) -> tuple[Input, ...]:
    """The files that a run may add now: of a rotation, those before its first incomplete file.

    Nothing is read of a bundle that has a file which is incomplete again: it will be read again as a whole.

    Args:
        inputs: all files that there are.
        complete: the paths of complete files.
        commits: what the lake's commits say, by the number of the bundle.
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
