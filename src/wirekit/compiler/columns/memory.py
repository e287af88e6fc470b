"""Memory of Arrow's pool, which keeps what was freed: new pages would cost as much as a scan.

Each row is written into twenty arrays and more. Large allocations begin with a page; arrays that all do so push
each other out of the processor's cache, which has few places for what stands at the same place of a page. So each
begins at another.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

PAGE = 4096  # bytes
STEP = 5 * 64  # bytes: five lines of the cache, so that 64 arrays all begin at different lines of a page

_turns = itertools.count()


def array(size: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array whose elements may be anything."""
    begin = next(_turns) * STEP % PAGE
    return np.frombuffer(pa.allocate_buffer(begin + size * dtype.itemsize), dtype, size, begin)


def table(columns: int, rows: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array of columns, for so many rows at least."""
    rows += (STEP // dtype.itemsize - rows) % (PAGE // dtype.itemsize)
    return array(columns * rows, dtype).reshape(columns, rows)
