"""Settings of Python and of libraries for the processes that wirekit starts: commands, and workers of a run."""

from __future__ import annotations

import gc
import importlib.abc
import sys

COLLECT = 500_000
"""Allocations between garbage collections. The layouts of a capture are 200,000 objects, and records hold no cycles."""


def collect_rarely() -> None:
    """Sets the number of allocations between garbage collections."""
    gc.set_threshold(COLLECT)


def keep_pandas_out() -> None:
    """Keeps pyarrow from importing pandas, which only Spark uses.

    pyarrow imports pandas when it first gets a list, to distinguish it from a Series; that takes as long as a small
    capture. It checks only once: later imports of pandas by name succeed.
    """
    import pyarrow

    class Hidden(importlib.abc.MetaPathFinder):
        def find_spec(self, fullname: str, path: object, target: object = None) -> None:
            if fullname == "pandas":
                raise ModuleNotFoundError("pandas is not needed here", name=fullname)

    if "pandas" not in sys.modules:
        hidden = Hidden()
        sys.meta_path.insert(0, hidden)
        try:
            pyarrow.array([0])
        finally:
            sys.meta_path.remove(hidden)
