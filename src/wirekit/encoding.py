"""encode and from_json: values to bytes by schema key, and their JSON forms to values.

Two engines, as in ``wirekit.engine``: ``reference`` runs ``_build`` and ``load`` of each node, ``rows`` runs code
that is generated once a key has been encoded a few times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from wirekit.compiler.engines import ENCODERS
from wirekit.decoding import check_options, decode
from wirekit.engine import Params, is_generated, may_succeed
from wirekit.errors import Misfit, Misuse, WireError
from wirekit.registry import Schema, registry
from wirekit.values import plain_mapping
from wirekit.wire.stream import Limits, Scope, Writer, join_path

UNFIT = (TypeError, AttributeError, LookupError, ArithmeticError, ValueError)
"""Errors of Python for a value that does not fit its layout."""

_encoded_times: Counter[str] = Counter()
_not_direct: Counter[str] = Counter()
"""By key, the number of consecutive mappings that were not built directly."""
_loaded_times: Counter[str] = Counter()


def encode(
    key: str,
    value: Any,
    *,
    context: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
    strict: bool = False,
    engine: str | None = None,
) -> bytes:
    """The bytes of a value; lengths, counts, checksums and compressed data are computed.

    Args:
        key: a schema key, or a protocol's name for a frame of its client stream.
        value: a record, or a mapping in the JSON form. A length or check named in ``$keep`` is written unchanged.
        context, limits: as for ``decode``.
        strict: refuse a value whose bytes ``decode`` refuses with ``strict``: values that peers refuse
            (``wirekit.wire.Refused``), wrong numbers in ``$keep``, bytes that no field explains.
        engine: ``rows`` or ``reference``; the default is whichever is faster. The results are equal.

    Raises:
        Wrong: the value does not fit the layout; the path names the field.
        Short, Limit: only with ``strict``.
        Misuse: an unknown key, engine, field or symbol, a symbol that does not match its number, or a value that is
            nested too deeply.

    >>> import wirekit
    >>> wirekit.encode("kafka.heartbeat.response.v0", {"correlation_id": 7, "body": {"error_code": 0}}).hex()
    '00000006000000070000'
    """
    data = encoded(key, value, context=context, limits=limits, engine=engine)[0]
    if strict:
        decode(data, built_key(key), context=context, limits=limits, strict=True)
    return data


def built_key(key: str) -> str:
    """The schema key; for a protocol's name, the key of its client's frames."""
    if not isinstance(key, str):
        raise Misuse(f"the key, the first argument, must be a str, not {type(key).__name__}")
    return key if "." in key else registry.protocol(key).stream("client")


def encoded(
    key: str,
    value: Any,
    *,
    context: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
    engine: str | None = None,
) -> tuple[bytes, str]:
    """The result of ``encode``, and the engine that built it: ``rows`` or ``reference``."""
    key = built_key(key)
    check_options("encode", context, limits)
    schema = registry[key]
    params, bounds = Params(context or {}), limits or schema.limits
    generated = is_generated(engine, key, _encoded_times, ENCODERS)
    try:
        return _encoded(schema, value, params, bounds, generated)
    except RecursionError:
        raise _too_deep(key) from None
    except (WireError, Misfit) as error:
        from wirekit.compiler.contexts import undecided

        error.hint = error.hint or undecided(key, context or {}, error.path)
        raise


def _too_deep(key: str) -> Misuse:
    return Misuse(f"the value of {key} is nested too deeply or contains itself")


def _encoded(schema: Schema, value: Any, params: Params, bounds: Limits, generated: bool) -> tuple[bytes, str]:
    scope = Scope.root(params)
    if generated and isinstance(value, dict):
        data = _directly_built(schema, value, params, bounds) if may_succeed(_not_direct[schema.key]) else None
        _not_direct[schema.key] = _not_direct[schema.key] + 1 if data is None else 0
        if data is not None:
            return data, "rows"
    if plain_mapping(value) or isinstance(value, (list, str)):
        value = _loaded(schema, value, params, generated)
    if generated:
        from wirekit.compiler.rows import build as rows_build

        data = _rows_built(schema, value, params, bounds, rows_build.unit)
        if data is not None:
            return data, "rows"
    return _built(schema, value, Writer(schema.key, bounds), scope), "reference"


def _directly_built(schema: Schema, value: Any, params: Params, bounds: Limits) -> bytes | None:
    """The bytes of a mapping that needs no loading, such as one of plain numbers and text; None for others."""
    from wirekit.compiler.rows import direct as rows_direct

    return _rows_built(schema, value, params, bounds, rows_direct.unit)


def _loaded(schema: Schema, obj: Any, params: Params, generated: bool) -> Any:
    """The value of a JSON form; generated code loads plain parts, the nodes load the others."""
    if generated:
        from wirekit.compiler.rows import REASONS
        from wirekit.compiler.rows import load as rows_load

        try:
            return rows_load.unit(schema.key)(rows_load.State(params), obj)
        except REASONS:
            pass  # the nodes explain errors, if there are any
    try:
        return schema.node.load(obj, Scope.root(params))
    except Misfit as error:
        error.protocol = schema.key
        raise
    except WireError as error:
        error.protocol = error.protocol or schema.key
        raise
    except Misuse:
        raise
    except UNFIT as error:
        raise _unfit(schema.key, "", error) from None


def _built(schema: Schema, value: Any, writer: Writer, scope: Scope) -> bytes:
    """The bytes that the nodes' own methods build."""
    try:
        schema.node._build(value, writer, scope, "")
        return writer.end()
    except WireError as error:
        if not error.protocol:
            error.protocol, error.path = schema.key, join_path(writer.path)
        raise
    except Misfit as error:
        error.protocol, error.path = schema.key, error.path or join_path(writer.path)
        raise
    except Misuse as error:
        raise _unfit(schema.key, join_path(writer.path), error) from None
    except UNFIT as error:
        raise _unfit(schema.key, join_path(writer.path), error) from None


def _unfit(key: str, path: str, error: Exception) -> Misfit:
    """Wraps a Python error from building, with its path."""
    misfit = Misfit(str(error) if isinstance(error, Misuse) else f"a value that does not fit the layout ({error})")
    misfit.protocol, misfit.path = key, path
    return misfit


def _rows_built(
    schema: Schema, value: Any, params: Params, limits: Limits, unit_of: Callable[[str], Callable[..., None]]
) -> bytes | None:
    """The bytes that the generated code builds; None if the value is not valid: the reference engine reports why."""
    from wirekit.compiler.rows import build as rows_build

    unit = unit_of(schema.key)
    buffer = bytearray()
    try:
        state = rows_build.State(schema.key, params, limits)
        unit(state, buffer, value)
        state.decide()
    except rows_build.REASONS:
        return None
    return bytes(buffer)


def from_json(key: str, obj: Any, *, context: Mapping[str, Any] | None = None, engine: str | None = None) -> Any:
    """Converts the JSON form of a value to the value: the inverse of ``to_json``.

    The layout is needed to distinguish bytes from text.

    Args:
        key: a schema key, or a protocol's name for a frame of its client stream.
        obj: the JSON form; it may also contain Python values such as bytes.
        context: as for ``decode``.
        engine: ``rows`` or ``reference``; the default is whichever is faster. The results are equal.

    Raises:
        Misuse: an unknown key, engine, field or symbol, bytes that are not hex, or a value that is nested too deeply.

    >>> import wirekit
    >>> value = wirekit.from_json("kafka.fetch.response.v0", {"correlation_id": 7, "body": {"responses": []}})
    >>> value.correlation_id, wirekit.encode("kafka.fetch.response.v0", value).hex()
    (7, '000000080000000700000000')
    """
    key = built_key(key)
    check_options("from_json", context)
    generated = is_generated(engine, key, _loaded_times, ENCODERS)
    try:
        return _loaded(registry[key], obj, Params(context or {}), generated)
    except RecursionError:
        raise _too_deep(key) from None
