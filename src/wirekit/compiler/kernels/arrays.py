"""Passes arrays to the generated kernels as one table of addresses and sizes, whatever their number and types.

A call with one argument costs the same for a layout of two columns and of fifty, and compiled code is of one type. Who
calls keeps the arrays alive. With NUMBA_BOUNDSCHECK=1 each index is compared with the size in the table.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba import carray, njit, types  # type: ignore[attr-defined]
from numba.extending import intrinsic as typed_intrinsic

# To a type checker an intrinsic takes what its typing function takes; but nobody passes the typing context.
intrinsic: Any = typed_intrinsic


@intrinsic
def _pointer(typing: Any, address: Any) -> Any:
    """The pointer of an address."""

    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.int64), lower


@intrinsic
def address(typing: Any, array: Any) -> Any:
    """Where a contiguous array begins. Views made of it (``uint8_on``) count no references, which would cost more."""
    if not isinstance(array, types.Array) or array.layout != "C":
        return None

    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.ptrtoint(data, context.get_value_type(types.int64))

    return types.int64(array), lower


# For functions that only compiled code calls: what makes a function callable from Python takes time to compile.
_OPTIONS: Final[Any] = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
inner: Any = njit(**_OPTIONS)
dividing: Any = njit(error_model="numpy", **_OPTIONS)  # without a look at divisors, which are never 0
inlined: Any = njit(forceinline=True, **_OPTIONS)


@inlined
def int64_rows(address: int, count: int, width: int) -> Any:
    """The two-dimensional array at an address."""
    return carray(_pointer(address), (count, width), np.int64)


def _view(dtype: Any) -> Any:
    """A function that gives the array of a type at an address."""

    @inner
    def view_on(address: int, size: int) -> Any:
        return carray(_pointer(address), (size,), dtype)

    return view_on


uint8_on, int32_on, int64_on, uint64_on = (_view(dtype) for dtype in (np.uint8, np.int32, np.int64, np.uint64))
