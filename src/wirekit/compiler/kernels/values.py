"""What the generated kernels that build find in the arrays of a column: whether there is a value, and where.

Written out, each of these would be several branches for numba, and there are some for every field. Numba types a call,
and what compiles its code puts the function in the place of it: a record would take half as long again with calls.
``given`` says of each column whether it is there at all, ``valid`` which of its values are not null.

Numba's cache knows nothing of this file. A cached function that calls these must have ``FINGERPRINT`` in the text of
its own.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from typing import Any, Final

import numpy as np

from wirekit.compiler.building.inputs import MISSING, WHOLE
from wirekit.compiler.kernels.arrays import inlined


@inlined
def there(given: Any, slot: int, valid: Any, at: Any) -> bool:
    """Whether a column has a value."""
    return bool(given[slot] == WHOLE or (given[slot] != MISSING and valid[at] != 0))


@inlined
def lacks(given: Any, slot: int, valid: Any, at: Any) -> int:
    """0 where a column has a value, 1 where there is no such column, 2 where it is null."""
    if given[slot] == WHOLE:
        return np.int64(0)  # type: ignore[return-value]
    if given[slot] == MISSING:
        return np.int64(1)  # type: ignore[return-value]
    return np.int64(0) if valid[at] != 0 else np.int64(2)  # type: ignore[return-value]


@inlined
def piece(given: Any, slot: int, valid: Any, at: Any, offsets: Any, data: Any) -> tuple[int, int]:
    """(start, length) of a byte string; a length of 0 where there is none, below 0 where its offsets are wrong."""
    if not there(given, slot, valid, at):
        return np.int64(0), np.int64(0)  # type: ignore[return-value]
    start = offsets[at]
    length = offsets[at + np.uint64(1)] - start
    if start < 0 or length < 0 or length > data.size - start:
        return start, np.int64(-1)  # type: ignore[return-value]
    return start, length


@inlined
def elements(given: Any, slot: int, valid: Any, at: Any, offsets: Any) -> tuple[int, int]:
    """Where the elements of a list begin and end."""
    if not there(given, slot, valid, at):
        return np.uint64(0), np.uint64(0)  # type: ignore[return-value]
    return np.uint64(offsets[at]), np.uint64(offsets[at + np.uint64(1)])  # type: ignore[return-value]


_SOURCE: Final = inspect.getsource(sys.modules[__name__])
FINGERPRINT: Final = hashlib.sha256(_SOURCE.encode()).hexdigest()[:12]
