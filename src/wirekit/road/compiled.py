"""The loops of ``kernels``, compiled once a machine and kept where generated kernels are."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from wirekit.compiler.cache import function


@cache
def loop(name: str) -> Callable[..., Any]:
    """A function of ``kernels``, compiled when it is first called."""
    return function(Path(__file__).with_name("kernels.py").read_text(encoding="utf-8"), "int64", name)
