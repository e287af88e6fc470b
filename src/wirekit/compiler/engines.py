"""The table of engines: their names, their functions, and the code that ``wirekit explain`` prints for each.

``wirekit.engine``, ``wirekit explain --engine`` and the tests read the engines from this table.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from wirekit.errors import lacking


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine, or one part of an engine that has code of its own.

    Attributes:
        name: its name for ``--engine`` and ``decode(..., engine=...)``.
        description: of the code that ``wirekit explain`` prints; empty if there is none.
        module: the module of ``function``.
        function: the name of a function of a schema key that returns the code, as text or an object with ``source``.
        decodes: whether ``wirekit.decode`` accepts it.
        encodes: whether ``wirekit.encode`` accepts it.
        columns: whether its code depends on ``--context`` and ``--front``.
    """

    name: str
    description: str = ""
    module: str = ""
    function: str = ""
    decodes: bool = False
    encodes: bool = False
    columns: bool = False

    def source(self, key: str, *arguments: Any) -> str:
        """The code of a layout.

        Args:
            arguments: for an engine of columns: the bytes before the records, and the context.

        Raises:
            Misuse: a package that the engine needs is not installed, or the layout has no such code.
        """
        try:
            function = getattr(importlib.import_module(self.module), self.function)
        except ModuleNotFoundError as error:
            raise lacking(f"--engine {self.name}", error) from error
        code = function(key, *arguments)
        return code if isinstance(code, str) else str(code.source)


_ROWS = "wirekit.compiler.rows"
_TABLE = (
    Engine("rows", "the decoder", _ROWS, "decoder", decodes=True, encodes=True),
    Engine("trace", "the same, with the bytes of each field", _ROWS, "tracer", decodes=True),
    Engine("reference", decodes=True, encodes=True),
    Engine("build", "the encoder", f"{_ROWS}.build", "builder"),
    Engine("direct", "the encoder for plain mappings", f"{_ROWS}.direct", "builder"),
    Engine("load", "the conversion of JSON to the encoder's records", f"{_ROWS}.load", "loader"),
    Engine("columns", "the steps that fill Arrow columns", "wirekit.compiler.columns", "source", columns=True),
    Engine("program", "the same as columns", "wirekit.compiler.columns", "source", columns=True),
    Engine("build-columns", "the steps that encode Arrow columns", "wirekit.compiler.building", "source", columns=True),
)
DECODERS = tuple(engine.name for engine in _TABLE if engine.decodes)
ENCODERS = tuple(engine.name for engine in _TABLE if engine.encodes)
SHOWN = {engine.name: engine for engine in _TABLE if engine.description}
