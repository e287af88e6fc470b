"""Decides which captures are read by columns."""

from __future__ import annotations

from importlib.util import find_spec

LEAST_FOR_COLUMNS = 16 << 20
"""The size in bytes from which on ``auto`` chooses columns for a capture."""

LEAST_COMPILED = 4 << 20
"""The same on a machine that has compiled the interpreter of layouts already."""


def by_columns(size: int, road: str = "auto", *, compiles: bool = True) -> bool:
    """Whether columns read a capture of this size; for a small capture, loading the kernels costs more than it saves.

    Args:
        size: size of the capture in bytes.
        road: as in ``Job``.
        compiles: whether a large capture may wait for the compilation of the interpreter.
    """
    if road != "auto":
        return road == "columns"
    if size < LEAST_COMPILED or find_spec("numba") is None:
        return False
    from wirekit.compiler.cache import interpreter_is_compiled

    return (compiles and size >= LEAST_FOR_COLUMNS) or interpreter_is_compiled()
