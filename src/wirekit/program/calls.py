"""Python functions that the interpreters call: checksums without compiled code, and custom values.

A function gets (address of the data, start, end, at): the range of its bytes, and the position of their checksum.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from wirekit.checksums import checksum
from wirekit.codings import Coding, is_valid
from wirekit.compiler import ir

Function = Callable[[int, int, int, int], int]
_KIND = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 6)


@dataclass(frozen=True, slots=True)
class IsValid:
    """Whether bytes are valid in a coding."""

    coding: Coding

    def __call__(self, data: int, start: int, end: int, at: int) -> int:
        return is_valid(self.coding, ctypes.string_at(data + start, end - start))

    def __str__(self) -> str:
        return self.coding.name


class Summed:
    """Whether a checksum of a range is right; with ``writes``, writes it and returns whether it fits.

    Args:
        node: the number, or bytes, of the checksum; if they are among the covered bytes, they count as zeros.
    """

    def __init__(self, algorithm: str, node: ir.Node, *, writes: bool = False) -> None:
        self._algorithm, self._writes, self._size = checksum(algorithm), writes, ir.minimum(node)
        self._order: Literal["little", "big"] = "little" if isinstance(node, ir.Number) and node.little else "big"

    def __call__(self, data: int, start: int, end: int, at: int) -> int:
        size, covered = self._size, ctypes.string_at(data + start, end - start)
        if start <= at < end:
            hole = at - start
            covered = covered[:hole] + bytes(size) + covered[hole + size :]
        number = self._algorithm.function(covered)
        if number >> 8 * size:
            return False
        computed = number.to_bytes(size, self._order)
        if self._writes:
            ctypes.memmove(data + at, computed, size)
        return self._writes or ctypes.string_at(data + at, size) == computed

    def __str__(self) -> str:
        return self._algorithm.name


class Calls:
    """Calls functions by their number.

    Attributes:
        address: address of a C function that needs no GIL; its first argument is the number. 0 for none.
    """

    def __init__(self, functions: Sequence[Function]) -> None:
        self._functions = functions
        self._raised: list[BaseException] = []
        # None for most layouts, which have no function: otherwise each scan would create a cycle with a C object.
        self._pointer = _KIND(self._call) if functions else None
        self.address = ctypes.cast(self._pointer, ctypes.c_void_p).value if self._pointer else 0

    def _call(self, number: int, *arguments: int) -> int:
        if not self._raised:
            try:
                return self._functions[number](*arguments)
            except BaseException as error:  # noqa: BLE001  # it cannot pass through compiled code
                self._raised.append(error)
        return 0

    def raise_error(self) -> None:
        """Raises an exception that a function raised."""
        if self._raised:
            raise self._raised[0]
