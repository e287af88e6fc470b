"""Finds the flows whose packets lie in several parts of a capture; only these are exchanged between tasks.

The task that reads a part follows its other flows itself, so that their packets are not written and read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
from numpy.lib.format import read_array, write_array

from wirekit.pipeline.folders import Folder

BEGINNING = 1 / 8
"""Most flows are long if fewer than this part of a window's flows begin in it."""
_BUCKETS = 16
"""Buckets for each flow."""
_MOST_BITS = 28


def flows_of(windows: Iterable[pa.RecordBatch]) -> np.ndarray | None:
    """The numbers of the flows of a part, each once; None if most flows are long, and so lie in several parts.

    Args:
        windows: rows of the table ``packets`` with the column ``flow``, in the order of the capture.
    """
    flows, last = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for number, window in enumerate(windows):
        last = np.unique(window["flow"].to_numpy())
        new = np.setdiff1d(last, flows, assume_unique=True)
        if number == 1 and new.size < BEGINNING * last.size:
            return None
        flows = np.union1d(flows, new)
    return flows


class Crossing:
    """The flows that lie in several parts, and a few others that share a bucket with one of them.

    Args:
        buckets: whether a flow of the bucket lies in several parts; their number is a power of two.
    """

    def __init__(self, buckets: np.ndarray) -> None:
        self._buckets = buckets

    @classmethod
    def of(cls, parts: Sequence[np.ndarray]) -> Crossing:
        """The flows that several of some parts have."""
        bits = min((_BUCKETS * sum(flows.size for flows in parts)).bit_length(), _MOST_BITS)
        once, again = (np.zeros(1 << bits, bool) for _ in range(2))
        for flows in parts:
            buckets = flows & ((1 << bits) - 1)
            again[buckets[once[buckets]]] = True
            once[buckets] = True
        return cls(again)

    def has(self, flows: np.ndarray) -> np.ndarray:
        """Whether each flow lies in several parts."""
        has: np.ndarray = self._buckets[flows & (self._buckets.size - 1)]
        return has

    def write(self, store: Folder, name: str) -> None:
        """Writes a file that ``read`` reads."""
        write_numbers(store, name, np.packbits(self._buckets))

    @classmethod
    def read(cls, store: Folder, name: str) -> Crossing:
        """The inverse of ``write``."""
        return cls(np.unpackbits(read_numbers(store, name)).astype(bool))


def write_numbers(store: Folder, name: str, numbers: np.ndarray) -> None:
    """Writes a file of numbers."""
    with store.create(name) as target:
        write_array(target, numbers, allow_pickle=False)


def read_numbers(store: Folder, name: str) -> np.ndarray:
    """The inverse of ``write_numbers``."""
    with store.open(name) as source:
        numbers: np.ndarray = read_array(source, allow_pickle=False)
    return numbers
