"""Vectors of the examples: files with bytes, and what a peer reads in them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import wirekit
from tests.agreement.law import agree

EXAMPLES = Path(__file__).parents[2] / "examples"


def vectors(example: str) -> list[dict[str, Any]]:
    """Those of an example; each has ``key``, ``hex``, ``reads`` and, where the layout asks for it, ``context``."""
    entries: list[dict[str, Any]] = json.loads((EXAMPLES / example / "vectors.json").read_text(encoding="utf-8"))
    return entries


def ids_of(example: str) -> list[str]:
    """A name for each vector of an example."""
    return [f"{at}-{vector['key']}" for at, vector in enumerate(vectors(example))]


def check(protocol: str, vector: Mapping[str, Any]) -> wirekit.Decoded:
    """Every engine reads a vector as the peer does, and writes it again."""
    key, data, context = f"{protocol}.{vector['key']}", bytes.fromhex(vector["hex"]), vector.get("context", {})
    decoded = agree(key, data, context)
    assert decoded.error is None, str(decoded.error)
    assert decoded.clean, decoded.checks
    assert decoded.consumed == len(data)
    assert [*differences(vector["reads"], wirekit.to_json(decoded.value), "")] == []
    value = wirekit.from_json(key, vector["reads"] | wirekit.to_json(decoded.value), context=context)
    assert wirekit.encode(key, value, context=context) == data
    return decoded


def differences(expected: Any, actual: Any, path: str) -> Iterator[str]:
    """Where a value says something else than the peer; fields that the peer leaves out are not compared."""
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for name, inner in expected.items():
            yield from differences(inner, actual.get(name), f"{path}.{name}")
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for at, (one, other) in enumerate(zip(expected, actual, strict=True)):
            yield from differences(one, other, f"{path}[{at}]")
    elif expected != (actual["value"] if isinstance(actual, Mapping) and "value" in actual else actual):
        yield f"{path}: {expected!r} is not {actual!r}"
