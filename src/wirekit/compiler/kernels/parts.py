"""Compiles functions that only other compiled functions call, without machine code of their own.

Numba optimizes every function that it compiles and translates it to machine code, and does both again in each function
that calls it. A part only ever runs inside its callers, so it is optimized and translated only there. That takes a
third less time.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class _Library(JITCodeLibrary):
    """The code of a part, which callers link."""

    codegen = SimpleNamespace(set_env=lambda name, environment: None)
    """Sets no environment: Python never calls a part."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Returns 0, numba's value for no such function; the code is complete from here on."""
        self._ensure_finalized()  # type: ignore[no-untyped-call]
        return 0


class PartCompiler(Compiler):
    """The compiler of parts, for ``njit(pipeline_class=...)``."""

    def compile_extra(self, func: Any) -> Any:
        self.state.library = _Library(self.state.targetctx.codegen(), func.__qualname__)  # type: ignore[no-untyped-call]
        return super().compile_extra(func)  # type: ignore[no-untyped-call]
