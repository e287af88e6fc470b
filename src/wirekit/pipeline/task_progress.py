"""The progress of running tasks: each task writes a small file to the folder of attempts; the driver adds them up.

In an object store each file would be a request, so no files are written, and the driver counts the completed tasks.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from wirekit.storage import is_remote

SECONDS = 0.2
"""The minimum number of seconds between two reports of a task."""


def report(attempts: str, stage: str, task: int) -> Callable[[int], None]:
    """Reports the number of bytes that a task has processed; another attempt of the task starts from 0.

    Args:
        attempts: the folder of all attempts.
        stage: the work of the task; the name of a folder.
        task: the number of the task.
    """
    if is_remote(attempts):
        return lambda _: None
    folder = Path(attempts, stage)
    next_time = 0.0

    def report_size(size: int) -> None:
        nonlocal next_time
        if time.monotonic() < next_time:
            return
        # If the disk is full, the task fails where it writes rows.
        with suppress(OSError):
            folder.mkdir(exist_ok=True)
            new = folder / f"{task}-{os.getpid()}.new"
            new.write_text(str(size))
            new.rename(folder / str(task))
        next_time = time.monotonic() + SECONDS

    return report_size


def reported(attempts: str, stage: str) -> int:
    """The bytes that the tasks of a stage have processed, according to their reports."""
    total = 0
    if not is_remote(attempts):
        with suppress(OSError):
            for each in Path(attempts, stage).iterdir():
                with suppress(OSError):
                    total += int(each.read_text()) if each.name.isdecimal() else 0
    return total
