"""Compiles functions that only other compiled functions call: no machine code is made of them by themselves.

Numba optimizes each function that it compiles, makes machine code of it, and does so again in each function that calls
it. What calls it is all that is ever run, so for a part that is done once, there. That takes a third less time.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class _Library(JITCodeLibrary):
    """The code of a part, to be linked."""

    codegen = SimpleNamespace(set_env=lambda name, environment: None)
    """What a function that is run from Python has an environment set by; a part is run by others."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Numba's word for no function of that name; the code is complete from here on."""
        self._ensure_finalized()  # type: ignore[no-untyped-call]
        return 0


class PartCompiler(Compiler):
    """The compiler of parts, for ``njit(pipeline_class=...)``."""

    def compile_extra(self, func: Any) -> Any:
        self.state.library = _Library(self.state.targetctx.codegen(), func.__qualname__)  # type: ignore[no-untyped-call]
        return super().compile_extra(func)  # type: ignore[no-untyped-call]
