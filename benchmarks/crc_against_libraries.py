"""How fast are the checksums that compiled kernels call, next to the libraries that Python calls?"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from typing import Any

import crc32c as crc32c_library
import numba
import numpy as np

from benchmarks.timing import best
from wirekit.compiler.kernels import crc
from wirekit.compiler.kernels.arrays import address

SIZES = {"140 bytes": 140, "4 KiB": 4 << 10, "1 MiB": 1 << 20}
TOTAL = 16 << 20
STARTS = 64


def repeated(kernel: Any) -> Callable[[np.ndarray, int, int], int]:
    """A kernel that calls ``kernel`` for many ranges, as one over a batch of records does."""

    @numba.njit(nogil=True)
    def over(buffer: Any, size: int, count: int) -> Any:
        mixed = np.uint32(0)
        for index in range(count):
            start = STARTS + index % STARTS  # as of all records but the first
            mixed ^= kernel(address(buffer), start, start + size)
        return mixed

    return over


def gigabytes(work: Callable[[], object], count: int) -> float:
    """GB/s of ``work``, which covers ``count`` bytes."""
    work()
    return count / best(work) / 1e9


def libraries() -> dict[str, list[tuple[str, Callable[[bytes], int]]]]:
    """The peers of each checksum; isal is measured if it is there."""
    peers: dict[str, list[tuple[str, Callable[[bytes], int]]]] = {
        "crc32": [("zlib", zlib.crc32)],
        "crc32c": [("package crc32c", crc32c_library.crc32c)],
    }
    try:
        from isal import isal_zlib
    except ImportError:
        return peers
    peers["crc32"].append(("isal", isal_zlib.crc32))
    return peers


def run() -> tuple[str, list[tuple[str, str]]]:
    """The question, and (label, figure) per contender."""
    data = os.urandom(max(SIZES.values()) + 2 * STARTS)
    buffer = np.frombuffer(data, np.uint8)
    rows = []
    for algorithm, peers in libraries().items():
        kernels = {name: repeated(getattr(crc.VARIANTS[name], f"{algorithm}_at")) for name in crc.AVAILABLE}
        for label, size in SIZES.items():
            count = TOTAL // size
            part = data[:size]
            speeds = {}
            for name, function in peers:
                speeds[name] = gigabytes(lambda f=function, p=part, c=count: [f(p) for _ in range(c)], size * count)
                rows.append((f"{algorithm} of {label}, {name}, called from Python", f"{speeds[name]:.1f} GB/s"))
            for name, kernel in kernels.items():
                speed = gigabytes(lambda k=kernel, s=size, c=count: k(buffer, s, c), size * count)
                ratios = ", ".join(f"{speed / other:.2f} × {peer}" for peer, other in speeds.items())
                rows.append((f"{algorithm} of {label}, wirekit {name}, in a kernel", f"{speed:.1f} GB/s, {ratios}"))
    return str(__doc__), rows
