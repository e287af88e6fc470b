"""Runs a Python target under atheris, in a process of its own: libFuzzer looks for inputs that reach new code.

    python coverage_worker.py MODULE FUNCTION SECONDS MEMORY_MIB TIMEOUT QUEUE

QUEUE is a directory of inputs. Inputs that reach new code are added to it, and so are the first input for each
exception at each place, and inputs that crash or hang the process. Nothing here imports wirekit.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
import traceback
from pathlib import Path
from typing import Any

LONGEST = 1 << 16
"""Bytes of an input."""


def main() -> None:
    """Runs until the time is spent, or the process ends."""
    module, name, seconds, memory, timeout, queue = sys.argv[1:]
    import atheris

    sys.path[0] = os.getcwd()
    with atheris.instrument_imports():
        function: Any = importlib.import_module(module)
    for part in name.split("."):
        function = getattr(function, part)
    places: set[tuple[str, str]] = set()

    def one(data: bytes) -> None:
        try:
            function(data)
        except Exception as error:  # noqa: BLE001  # whatever the target raises is for the run that follows
            frames = traceback.extract_tb(error.__traceback__)
            place = type(error).__name__, f"{frames[-1].filename}:{frames[-1].lineno}"
            if place not in places:
                places.add(place)
                Path(queue, f"raised-{hashlib.sha256(data).hexdigest()[:16]}").write_bytes(data)

    options = [
        f"-max_total_time={seconds}",
        f"-rss_limit_mb={memory}",
        f"-timeout={timeout}",
        f"-max_len={LONGEST}",
        f"-artifact_prefix={queue}{os.sep}",
        "-print_final_stats=1",
        "-verbosity=0",
    ]
    atheris.Setup([sys.argv[0], *options, queue], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
