"""The loops of ``kernels``, compiled once per machine and cached with the generated kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wirekit.compiler.cache import function


@cache
def loop(name: str) -> Callable[..., Any]:
    """A function of ``kernels``, compiled when it is first called."""
    return function(Path(__file__).with_name("kernels.py").read_text(encoding="utf-8"), name)


def byte_ranges(data: NDArray[Any], begin: NDArray[Any], size: NDArray[Any]) -> pa.Array:
    """Ranges of a byte array as a binary column."""
    offsets = np.zeros(size.size + 1, np.int32)
    np.cumsum(size, out=offsets[1:])
    content = np.zeros(int(offsets[-1]), np.uint8)
    loop("copy_ranges")(data, begin, size, content)
    return pa.Array.from_buffers(pa.binary(), size.size, [None, pa.py_buffer(offsets), pa.py_buffer(content)])
