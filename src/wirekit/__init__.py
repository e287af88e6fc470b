"""wirekit: wire formats of Kafka 0.8-0.10, Pulsar and JMQ4, each layout declared once.

``decode`` and ``encode`` turn bytes into values and back by schema key, ``frames`` walks a byte string,
``Conversation`` follows both directions of a connection, ``columns`` turns a buffer of many records into an Arrow
batch and ``build_columns`` turns it back, ``registry`` holds the layouts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirekit.engine import Decoded, decode, encode, frames, from_json
from wirekit.errors import Limit, Misuse, Short, WireError, WirekitError, Wrong
from wirekit.registry import Layout, Protocol, Schema, register, registry
from wirekit.values import Check, Gap, Record, Span, Symbol, SymbolTable, to_json
from wirekit.wire.stream import Limits

if TYPE_CHECKING:
    from wirekit.compiler.columns import columns
    from wirekit.compiler.columns_build import build_columns
    from wirekit.conversation import NEED_DATA, Conversation

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
    "frames",
    "from_json",
    "register",
    "registry",
    "to_json",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in ("Conversation", "NEED_DATA"):
        from wirekit import conversation

        return getattr(conversation, name)
    if name == "columns":
        from wirekit.compiler.columns import columns

        globals()[name] = columns  # found without this function from now on
        return columns
    if name == "build_columns":
        from wirekit.compiler.columns_build import build_columns

        globals()[name] = build_columns
        return build_columns
    raise AttributeError(f"module 'wirekit' has no attribute {name!r}")
