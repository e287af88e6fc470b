"""wirekit: wire formats of Kafka 0.8-0.10, Pulsar and JMQ4, each layout declared once.

``decode`` and ``encode`` turn bytes into values and back by schema key, ``frames`` walks a byte string,
``Conversation`` follows both directions of a connection, ``columns`` turns a buffer of many records into an Arrow
batch and ``build_columns`` turns it back, ``rows`` walks over a batch, ``example`` gives a value to start from,
``read`` gives a table of captures as Arrow batches, ``registry`` holds the layouts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirekit.engine import Decoded, decode, encode, frames, from_json
from wirekit.errors import Limit, Misuse, Short, WireError, WirekitError, Wrong, lacking
from wirekit.registry import Layout, Protocol, Schema, register, registry
from wirekit.values import Check, Gap, Record, Span, Symbol, SymbolTable, to_json
from wirekit.wire.stream import Limits

if TYPE_CHECKING:
    from wirekit.compiler.building import build_columns
    from wirekit.compiler.columns import columns
    from wirekit.compiler.columns.rows import rows
    from wirekit.conversation import NEED_DATA, Conversation
    from wirekit.examples import example
    from wirekit.pipeline.reading import read

__all__ = [
    "NEED_DATA",
    "Check",
    "Conversation",
    "Decoded",
    "Gap",
    "Layout",
    "Limit",
    "Limits",
    "Misuse",
    "Protocol",
    "Record",
    "Schema",
    "Short",
    "Span",
    "Symbol",
    "SymbolTable",
    "WireError",
    "WirekitError",
    "Wrong",
    "build_columns",
    "columns",
    "decode",
    "encode",
    "example",
    "frames",
    "from_json",
    "read",
    "register",
    "registry",
    "rows",
    "to_json",
]

__version__ = "0.1.0"


# Found when they are first asked for: what they need is slow to import, or an extra.
_LATER = {
    "Conversation": "wirekit.conversation",
    "NEED_DATA": "wirekit.conversation",
    "build_columns": "wirekit.compiler.building",
    "example": "wirekit.examples",
    "read": "wirekit.pipeline.reading",
    "columns": "wirekit.compiler.columns",
    "rows": "wirekit.compiler.columns.rows",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'wirekit' has no attribute {name!r}")
    import importlib

    try:
        found = globals()[name] = getattr(importlib.import_module(_LATER[name]), name)
    except ModuleNotFoundError as error:
        raise lacking(f"wirekit.{name}", error) from error
    return found
