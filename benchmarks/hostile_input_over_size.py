"""How many seconds does a MB of the worst input take, and does that change with its size?"""

from __future__ import annotations

import time

from benchmarks.hostile import cases

SIZES = (1 << 18, 1 << 20, 1 << 22)
WARM = 1 << 13


def run() -> tuple[str, list[tuple[str, str]]]:
    """The question, and (input, processor seconds a MB at each size, how much more the largest takes)."""
    for work in cases(WARM).values():
        work()
    spent: dict[str, list[float]] = {}
    for size in SIZES:
        for name, work in cases(size).items():
            start = time.process_time()
            work()
            spent.setdefault(name, []).append((time.process_time() - start) * 1e6 / size)
    sizes = ", ".join(f"{size >> 10} kB" for size in SIZES)
    found = [("seconds a MB at", sizes)]
    for name, figures in spent.items():
        found.append((name, f"{', '.join(f'{figure:.2f}' for figure in figures)}: {figures[-1] / figures[0]:.1f} ×"))
    return str(__doc__), found
