"""The one law of the engines: what the reference engine says of bytes, every other engine says too.

A behaviour that is tested with ``agree`` is tested on all engines, and each is shown to have been used.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import wirekit
from tests.agreement.walk import compare
from tests.engines import same
from wirekit.errors import Misuse


def generated(key: str) -> bool:
    """Whether generated code decodes all that is in order; lengths of 0 that mean the rest are for the reference."""
    return not key.startswith("net.")


@functools.cache
def columnar(key: str) -> bool:
    """Whether a schema gives columns."""
    from wirekit.compiler.columns import program
    from wirekit.compiler.columns_front import is_told

    try:
        return is_told(wirekit.registry[key].layout) or program(key) is not None
    except Misuse:
        return False


def prepare(key: str, sound: Iterable[tuple[Any, bytes]] = ()) -> None:
    """Compiles the kernel of a schema that gives columns, or the kernels that sound inputs need."""
    if columnar(key):
        from wirekit.compiler.columns import scan
        from wirekit.compiler.columns_front import is_told

        scan(key, b"")
        if is_told(wirekit.registry[key].layout):
            for _, data in sound:
                scan(key, data)


def agree(
    key: str, data: bytes, context: Mapping[str, Any], *, columns: bool = True, seen: Counter[str] | None = None
) -> wirekit.Decoded:
    """Decodes bytes on every engine and compares value, verdicts, gaps, error and its offset.

    What decodes is written again by every engine that writes, to the same bytes.

    Args:
        columns: whether to scan with the columns engine too, where the schema gives columns; it knows no context.
        seen: counts what happened.

    Raises:
        AssertionError: when engines differ, or when one that must take the bytes left them to another.
    """
    decoded = same(key, data, dict(context), used=generated(key))
    if decoded.error is None:
        written = wirekit.encode(key, decoded.value, context=context, engine="reference")
        assert written == data[: decoded.consumed]
        assert wirekit.encode(key, decoded.value, context=context, engine="rows") == written
    else:
        assert decoded.error.offset is not None
    scanned = columns and not context and columnar(key)
    if scanned:
        compare(key, data)
    if seen is not None:
        how = decoded.error.kind if decoded.error is not None else "clean" if decoded.clean else "with verdicts"
        seen.update(["inputs", how, *(["columns"] if scanned else []), *([decoded.engine] if decoded.clean else [])])
    return decoded
