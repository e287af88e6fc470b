"""How many seconds does a MB of the worst input take, and does that change with its size?"""

from __future__ import annotations

import gc
import time

from benchmarks.hostile import Work, cases
from wirekit.tuning import COLLECT

SIZES = (1 << 18, 1 << 20, 1 << 22)
LIBRARY = 1 << 20
"""The size that is also measured with the setting of the collector that programs have by default."""
WARM = 1 << 13


def run() -> tuple[str, list[tuple[str, str]]]:
    """The question, and (input, processor seconds a MB at each size, how much more the largest takes).

    Garbage is collected as often as in the commands; the last figure is with Python's own setting.
    """
    for work in cases(WARM).values():
        work()
    own = gc.get_threshold()
    gc.set_threshold(COLLECT)
    spent: dict[str, list[float]] = {}
    for size in SIZES:
        for name, work in cases(size).items():
            spent.setdefault(name, []).append(_seconds(work) * 1e6 / size)
    gc.set_threshold(*own)
    library = {name: _seconds(work) * 1e6 / LIBRARY for name, work in cases(LIBRARY).items()}
    sizes = ", ".join(f"{size >> 10} kB" for size in SIZES)
    rows = [("seconds a MB at", f"{sizes}; {LIBRARY >> 10} kB with Python's own collector")]
    for name, figures in spent.items():
        shown = ", ".join(f"{figure:.2f}" for figure in figures)
        rows.append((name, f"{shown}: {figures[-1] / figures[0]:.1f} ×; {library[name]:.2f}"))
    return str(__doc__), rows


def _seconds(work: Work) -> float:
    """Processor seconds, without what earlier work has left to collect."""
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start
