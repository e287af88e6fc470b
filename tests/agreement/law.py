"""The one law of the engines: what the reference engine says of bytes, every other engine says too.

A behaviour that is tested with ``agree`` is tested on all engines, and each is shown to have been used.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping
from typing import Any

import wirekit
from tests.compiler.test_columns import compare, flat, list_of
from tests.engines import same
from wirekit.compiler import ir
from wirekit.errors import Misuse
from wirekit.wire.composite import RecordsToEnd, Struct


def generated(key: str) -> bool:
    """Whether generated code decodes all that is in order; lengths of 0 that mean the rest are for the reference."""
    return not key.startswith("net.")


ALTERNATIVES = ir.Choice | ir.Either | ir.Fallback | ir.Protobuf | ir.WhenNext


@functools.cache
def columnar(key: str) -> bool:
    """Whether a schema gives columns that are its fields one by one.

    Alternatives and messages share columns, and a row may be a part of a record: these have tests of their own
    (``tests/compiler/test_columns_branches.py`` and ``test_columns_messages.py``). What is always empty has no rows.
    """
    from wirekit.compiler.columns import program

    try:
        element = program(key).plan.element
    except Misuse:
        return False
    plain = not any(isinstance(node, ALTERNATIVES) for _, node in ir.walk(element))
    return plain and (not isinstance(element, ir.Structure) or bool(element.members))


def prepare(key: str) -> None:
    """Compiles the kernel of a schema that gives columns."""
    if columnar(key):
        from wirekit.compiler.columns import scan

        scan(key, b"")


def compare_whole(key: str, data: bytes) -> None:
    """Columns against one value of a schema that counts or bounds its records, or has something in front of them.

    The records of what decodes are rows; what does not decode has an error in columns as well.
    """
    from wirekit.compiler.columns import program, scan

    decoded = wirekit.decode(data, key, engine="reference")
    batch, errors = scan(key, data)
    batch.validate(full=True)
    if decoded.error is not None:
        assert errors.num_rows > 0
        return
    assert errors.num_rows == 0
    path = program(key).plan.path
    items = (decoded.value[path] if path else decoded.value) or []
    assert batch.num_rows == len(items)
    for index, item in enumerate(items):
        wanted: dict[str, Any] = {}
        flat(wanted, "", item)
        for name in batch.schema.names:
            got, should = batch[name][index].as_py(), wanted.get(name)
            plain = not name.endswith(".ok") and not name.startswith("@")
            assert not plain or got == should or (got != got and should != should), (name, got, should)


def record_by_record(key: str) -> bool:
    """Whether a buffer of a schema is records and nothing else, which the reference engine can read one by one."""
    node = wirekit.registry[key].node
    before, several, _ = list_of(key)
    if several is None:
        return isinstance(node, Struct)
    return isinstance(several, RecordsToEnd) and (not before or key == "kafka.log_segment")


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
        (compare if record_by_record(key) else compare_whole)(key, data)
    if seen is not None:
        how = decoded.error.kind if decoded.error is not None else "clean" if decoded.clean else "with verdicts"
        seen.update(["inputs", how, *(["columns"] if scanned else []), *([decoded.engine] if decoded.clean else [])])
    return decoded
