"""The processes below this one: the JVM and the Python workers of a Spark session."""

from __future__ import annotations

import os
import re
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def used_below() -> float:
    """Seconds of processor time that the processes below this one have used, those that have ended included."""
    return sum(sum(map(int, fields[11:15])) for fields in _below().values()) / TICKS


def peaks_below() -> tuple[int, int]:
    """MiB of memory that the largest JVM below this process has had at most, and the largest other process."""
    peaks = {True: 0, False: 0}
    for pid in _below():
        try:
            about = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue
        name, most = re.search(r"^Name:\s*(\S+)", about, re.M), re.search(r"^VmHWM:\s*(\d+)", about, re.M)
        if name and most:
            java = name[1] == "java"
            peaks[java] = max(peaks[java], int(most[1]) >> 10)
    return peaks[True], peaks[False]


def _below() -> dict[int, list[str]]:
    """The fields of ``/proc/PID/stat`` from the state on, of each process below this one."""
    fields: dict[int, list[str]] = {}
    for each in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields[int(each.parent.name)] = each.read_text().rpartition(")")[2].split()
        except OSError:
            continue
    below, level = set[int](), {os.getpid()}
    while level:
        level = {pid for pid, values in fields.items() if int(values[1]) in level}
        below |= level
    return {pid: fields[pid] for pid in below}
