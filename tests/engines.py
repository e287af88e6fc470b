"""What all engines must agree on: value, verdicts, sources, spans and errors. Tests of behaviour run on every one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import wirekit
from tests.trace.tiling import check_tiling
from wirekit import decoding, encoding
from wirekit.compiler.engines import ENCODERS
from wirekit.errors import Misuse, WireError
from wirekit.value_text import value_text
from wirekit.values import json_text

decode, encode = decoding.decode, encoding.encode


def same(key: str, data: bytes, context: Mapping[str, Any], *, used: bool = True, **options: Any) -> wirekit.Decoded:
    """Decodes on every engine and compares all that they say; gives what the generated code says.

    Args:
        used: what is in order is for the generated code, so it must have decoded it.
        options: of ``decode``.
    """
    options = {"context": context, "offset": 1000, **options}
    reference = decode(data, key, engine="reference", **options)
    generated = decode(data, key, engine="rows", **options)
    shown = wirekit.to_json(reference.value)
    assert reference.engine == "reference"
    if used and reference.clean and "$" not in json.dumps(shown):
        assert generated.engine == "rows", "bytes that are in order are for the generated code"
    assert wirekit.to_json(generated.value) == shown
    assert value_text(generated.value) == value_text(reference.value) == json_text(shown)
    assert value_text(generated.checks) == json_text([check.to_json() for check in generated.checks])
    assert generated.consumed == reference.consumed
    assert judged(generated) == judged(reference)
    assert generated.gaps == reference.gaps
    assert generated.sources == reference.sources
    assert generated.clean == reference.clean
    assert error_facts(generated.error) == error_facts(reference.error)
    same_spans(reference, generated, decode(data, key, engine="trace", **options), shown)
    return generated


def same_spans(reference: wirekit.Decoded, generated: wirekit.Decoded, traced: wirekit.Decoded, shown: Any) -> None:
    """The trace engine gives what rows gives, and the spans that the reference engine gives, which tile the bytes."""
    assert traced.engine == generated.engine.replace("rows", "trace")
    assert wirekit.to_json(traced.value) == shown
    assert (traced.consumed, traced.gaps) == (generated.consumed, generated.gaps)
    assert judged(traced) == judged(reference)
    assert traced.sources == generated.sources
    assert error_facts(traced.error) == error_facts(generated.error)
    assert traced.spans == reference.spans
    check_tiling(traced)


def judged(decoded: wirekit.Decoded) -> str:
    """The verdicts as they are shown: of numbers that are none, no two are equal."""
    return json.dumps([(check.to_json(), check.offset, check.source) for check in decoded.checks])


def error_facts(error: WireError | None) -> Any:
    return None if error is None else (type(error), str(error), error.to_json())


_compared: set[tuple[Any, ...]] = set()
"""What ``decode_by_all`` has compared in the tests of a file: many ask for the same bytes."""


def forget_compared() -> None:
    """Has everything be compared again."""
    _compared.clear()


def decode_by_all(data: Any, key: str, **options: Any) -> wirekit.Decoded:
    """``wirekit.decode`` on every engine; one that a test names is left alone."""
    call = (bytes(data), key, repr(sorted(options.items())))
    if options.get("engine") is None and call not in _compared:
        plain = {name: value for name, value in options.items() if name not in ("strict", "engine", "context")}
        name = key if "." in key else decoding.stream_key(key, bytes(data), options.get("context") or {})
        used = not name.startswith("net.") and options.get("decrypt") is None
        same(name, data, options.get("context") or {}, used=used, **plain)
        if not any(options.values()):
            _by_columns(name, bytes(data))
        _compared.add(call)
    return decode(data, key, **options)


def _by_columns(key: str, data: bytes) -> None:
    """Compares what a schema's columns hold; of schemas with kernels of the same kind one stands for all."""
    from tests.agreement.law import compiled
    from tests.agreement.walk import compare

    if key in compiled():
        compare(key, data)


def encode_by_all(key: str, value: Any, **options: Any) -> bytes:
    """``wirekit.encode`` on every engine that writes: the same bytes, or the same error."""
    if options.get("engine") is None:
        results = [_result(lambda name=name: encode(key, value, **{**options, "engine": name})) for name in ENCODERS]
        assert all(result == results[0] for result in results)
        if isinstance(results[0], bytes):
            return results[0]
    return encode(key, value, **options)


def _result(call: Callable[[], bytes]) -> Any:
    try:
        return call()
    except (WireError, Misuse) as error:
        return type(error), str(error)
