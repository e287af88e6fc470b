"""wirekit: wire formats of Kafka 0.8-0.10, Pulsar and JMQ4, each layout declared once.

``help(wirekit.decode)`` and so on explain each name. The pages ``docs/reference/library/`` list them.

Bytes and values
    decode, frames          bytes to a value by schema key; all frames of a byte string
    encode                  a value to bytes
    from_json, to_json      values from and to plain JSON data
    example                 a small valid value of a layout
    Decoded                 the result of decode: value, checks, gaps, error
    Record, Symbol          the value of a structure; a number with a name
    Check, Gap, Span        a verdict on a checksum or a length; undecoded bytes; the bytes of a field

Connections and captures
    Conversation, NEED_DATA follows both directions of a connection
    read                    a table of captures or segments as Arrow batches

Many records
    columns, build_columns  a buffer of records to an Arrow batch, and back
    rows                    the records of a batch one by one

Layouts
    wirekit.wire            the vocabulary of layouts
    Protocol, Layout        a protocol, and a layout in it
    register, registry      adds a protocol; all protocols and schemas
    Schema, SymbolTable     a registered layout; names of numbers

Errors and limits
    WirekitError            the base class of all errors
    Misuse                  a wrong argument
    WireError               bytes that do not decode: Short (cut), Wrong (not as declared), Limit (a limit is exceeded)
    Limits                  bounds on memory and depth for hostile bytes

>>> import wirekit
>>> wirekit.decode(bytes.fromhex("0000000a00000007000000000000"), "kafka.list_groups.response.v0").value.correlation_id
7
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirekit.decoding import frames
from wirekit.encoding import encode, from_json
from wirekit.engine import Decoded
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
    from wirekit.types.decoding import decode
else:
    from wirekit.decoding import decode

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


# Resolved on first use, because the modules they need are slow to import, or an extra.
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
        attribute = globals()[name] = getattr(importlib.import_module(_LATER[name]), name)
    except ModuleNotFoundError as error:
        raise lacking(f"wirekit.{name}", error) from error
    return attribute
