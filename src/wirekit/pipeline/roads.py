"""Decides which captures are read by columns."""

from __future__ import annotations

from importlib.util import find_spec

LEAST_FOR_COLUMNS = 16 << 20
"""Bytes of a capture from which on it takes the road of columns by itself."""

LEAST_COMPILED = 4 << 20
"""The same on a machine that has compiled the interpreter of layouts already."""


def by_columns(size: int, road: str = "auto", *, compiles: bool = True) -> bool:
    """Whether a capture of so many bytes takes the road of columns; a small one does not pay for its kernels.

    Args:
        size: bytes of the capture.
        road: as in ``Job``.
        compiles: whether a large one may wait until the interpreter of layouts is compiled.
    """
    if road != "auto":
        return road == "columns"
    if size < LEAST_COMPILED or find_spec("numba") is None:
        return False
    from wirekit.compiler.cache import interpreter_is_compiled

    return (compiles and size >= LEAST_FOR_COLUMNS) or interpreter_is_compiled()
