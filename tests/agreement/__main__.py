"""``python -m tests.agreement COUNT [SEED [PROCESSES [KEY...]]]``: so many inputs through all engines.

The first part of a key will do: ``kafka.`` stands for all schemas of the protocol. The exit status is 1 when engines do
not agree. ``make agreement`` runs it.
"""

from __future__ import annotations

import sys
import time

import wirekit
from tests.agreement.run import report, run

EVERY = 30.0


def main(count: int, seed: int = 0, processes: int = 2, *starts: str) -> int:
    keys = [key for key in wirekit.registry if not starts or key.startswith(starts)]
    started = told = time.monotonic()
    found = None
    for found in run(keys, count, seed=seed, processes=processes):
        if time.monotonic() - told > EVERY:
            told = time.monotonic()
            faults = sum(found.faults.values())
            print(f"{found.seen['inputs']:,} inputs, {faults} faults, {told - started:.0f} s", flush=True)
    assert found is not None
    print(report(found, started))
    return 1 if found.findings else 0


if __name__ == "__main__":
    numbers = [int(text) for text in sys.argv[1:4]] or [1_000_000]
    sys.exit(main(*numbers, *sys.argv[4:]))
