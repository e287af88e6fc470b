"""Passes arrays to the generated kernels as one table of addresses and sizes, for any number and types of arrays.

A call with one argument costs the same for a layout of two columns and of fifty, and needs one compiled type. The
caller keeps the arrays alive. With NUMBA_BOUNDSCHECK=1 each index is compared with the size in the table.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import carray, config, njit, types  # type: ignore[attr-defined]
from numba.extending import intrinsic as typed_intrinsic

from wirekit.compiler.kernels.parts import PartCompiler
from wirekit.errors import Misuse

# For a type checker, an intrinsic has the arguments of its typing function, but callers do not pass the typing context.
intrinsic: Any = typed_intrinsic
settings: Any = config
if settings.DISABLE_JIT:
    raise Misuse("columns need the code that numba compiles, but NUMBA_DISABLE_JIT is set; unset it")


@intrinsic
def _pointer(typing: Any, address: Any) -> Any:
    """The pointer of an address."""

    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.int64), lower


@intrinsic
def address(typing: Any, array: Any) -> Any:
    """The address of a contiguous array.

    Views of the address (``uint8_on``) do not count references, which would cost more.
    """
    if not isinstance(array, types.Array) or array.layout != "C":
        return None

    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.ptrtoint(data, context.get_value_type(types.int64))

    return types.int64(array), lower


def loader(kind: Any, bits: int, scale: int, swapped: bool) -> Any:
    """A function that reads an integer at an address plus ``scale`` bytes times an index."""

    @intrinsic
    def load(typing: Any, base: Any, index: Any) -> Any:
        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            place = builder.add(arguments[0], builder.mul(arguments[1], ir.Constant(ir.IntType(64), scale)))
            value = builder.load(builder.inttoptr(place, ir.IntType(bits).as_pointer()), align=1)
            value = builder.bswap(value) if swapped else value
            return value if bits == kind.bitwidth else builder.sext(value, ir.IntType(64))

        return kind(types.int64, index), lower

    return load


def storer(bits: int, scale: int) -> Any:
    """A function that writes an integer there; one of 64 bits into bytes, the least significant byte first."""

    @intrinsic
    def store(typing: Any, base: Any, index: Any, value: Any) -> Any:
        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            place = builder.add(arguments[0], builder.mul(arguments[1], ir.Constant(ir.IntType(64), scale)))
            value = arguments[2]
            value = value if bits == 64 else builder.trunc(value, ir.IntType(bits))
            builder.store(value, builder.inttoptr(place, ir.IntType(bits).as_pointer()), align=1)
            return context.get_dummy_value()

        return types.void(types.int64, index, value), lower

    return store


@intrinsic
def move(typing: Any, target: Any, source: Any, length: Any) -> Any:
    """``memcpy`` between two addresses."""

    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        octets = ir.IntType(8).as_pointer()
        to, begin = (builder.inttoptr(argument, octets) for argument in arguments[:2])
        memcpy = builder.module.declare_intrinsic("llvm.memcpy", [octets, octets, arguments[2].type])
        builder.call(memcpy, [to, begin, arguments[2], ir.Constant(ir.IntType(1), 0)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), lower


# For functions that only compiled code calls: the wrappers for calls from Python take time to compile.
_OPTIONS: Final[Any] = {
    "pipeline_class": PartCompiler,
    "nogil": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
inner: Any = njit(**_OPTIONS)
dividing: Any = njit(error_model="numpy", **_OPTIONS)  # without checks of divisors, which are never 0
inlined: Any = njit(forceinline=True, **_OPTIONS)
inlined_dividing: Any = njit(forceinline=True, error_model="numpy", **_OPTIONS)


@inlined
def int64_rows(address: int, count: int, width: int) -> Any:
    """The two-dimensional array at an address."""
    return carray(_pointer(address), (count, width), np.int64)


def _view(dtype: Any) -> Any:
    """A function that returns the array of a type at an address."""

    @inner
    def view_on(address: int, size: int) -> Any:
        return carray(_pointer(address), (size,), dtype)

    return view_on


uint8_on, int32_on, int64_on, uint64_on = (_view(dtype) for dtype in (np.uint8, np.int32, np.int64, np.uint64))
