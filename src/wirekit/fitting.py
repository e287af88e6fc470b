"""Checks that are cheaper than decoding: whether bytes fit a layout, and single values in them.

Recognition, search and dialogues need them for every frame.
"""

from __future__ import annotations

import functools
import struct
from collections import namedtuple
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wirekit.compiler.engines import DECODERS
from wirekit.engine import (
    NO_PARAMS,
    Decoded,
    Params,
    by_reference,
    by_rows,
    decode_bytes,
    decoded_times,
    is_generated,
    rows_module,
)
from wirekit.registry import registry
from wirekit.wire.composite import Struct
from wirekit.wire.stream import Limits, Reader, Scope, Session

if TYPE_CHECKING:
    from wirekit.compiler.rows import State

WORTH_COMPILING = 1 << 16
"""Bytes that take the reference engine as long, and as much memory, as generating code does."""


def value_of(data: bytes, key: str) -> Any:
    """``decode(data, key).value``, for every frame: nothing else of the decoding is stored."""
    value = lead_of(data, key) if is_generated(None, key, decoded_times, DECODERS) else None
    if value is None:  # the reference engine says how far the bytes go
        schema = registry[key]
        value = by_reference(schema, data, 0, {}, schema.limits).value
    return value


def numbers_of(data: bytes, key: str) -> Any:
    """The fields, by name, of a schema whose fields are all numbers at fixed places; None for missing bytes.

    Nothing is verified, and fields with symbols are plain numbers.

    >>> numbers_of(bytes.fromhex("0000000a001000000000"), "kafka.request_header")
    Numbers(size=10, api_key=16, api_version=0, correlation_id=None)
    """
    if is_generated(None, key, decoded_times, DECODERS):
        reader, names = rows_module().fixed_numbers(key)
        if len(data) >= reader.size:
            return _numbers(names)._make(reader.unpack_from(data))
    value = value_of(data, key)
    numbers = (value.get(name) for name in value._fields)
    return _numbers(value._fields)._make(None if number is None else int(number) for number in numbers)


@functools.cache
def _numbers(names: tuple[str, ...]) -> Any:
    return namedtuple("Numbers", names)


def lead_of(data: bytes, key: str) -> Any:
    """The value at the start of some bytes; None if they are not valid."""
    rows, size = rows_module(), len(data)
    try:
        return rows.unit(key)(rows.State(key, NO_PARAMS, registry[key].limits, size), data, 0, size, "")[0]
    except rows.REASONS:
        return None


class _Beginning(bytes):
    """The first bytes of longer data: a slice beyond them raises an error instead of being shorter."""

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice) and key.stop is not None and key.stop > len(self):
            raise IndexError
        return bytes.__getitem__(self, key)


def begins(data: bytes, key: str, size: int, *, context: Mapping[str, Any] | None = None) -> bool:
    """Whether bytes may be a clean value of ``size`` bytes, or the first bytes of such a value.

    It is used for searching, where most bytes do not fit: it takes a tenth of the time of ``decode`` with its error.
    """
    return _begins(rows_module().State, data, key, size, context)


def begins_unverified(data: bytes, key: str, size: int) -> bool | None:
    """Like ``begins``, without verifying checksums and decompressing data.

    None if text is invalid, because only ``decode`` can tell whether the other bytes fit.
    """
    try:
        return _begins(rows_module().Unverified, data, key, size, None)
    except UnicodeDecodeError:
        return None


def fits_unverified(data: bytes, key: str, limits: Limits | None = None) -> bool | None:
    """Whether ``decode`` finds no error and no gap outside compressed data; None if only ``decode`` can tell."""
    if not is_generated(None, key, decoded_times, DECODERS) and len(data) < WORTH_COMPILING:
        return None
    try:
        return _begins(rows_module().Unverified, data, key, len(data), None, limits)
    except UnicodeDecodeError:
        return None


def _begins(
    kind: type[State],
    data: bytes,
    key: str,
    size: int,
    context: Mapping[str, Any] | None,
    limits: Limits | None = None,
) -> bool:
    rows = rows_module()
    state = kind(key, Params(context) if context else NO_PARAMS, limits or registry[key].limits, size)
    is_cut = len(data) < size
    try:
        _, end = rows.unit(key)(state, _Beginning(data) if is_cut else data, 0, size, "")
    except (struct.error, IndexError):  # raised by reading beyond the bytes
        return is_cut
    except UnicodeDecodeError:
        if kind is rows.State:
            return False
        raise
    except rows.REASONS:
        return False
    return end == size and (is_cut or kind is not rows.State or state.clean)


def clean_value(data: bytes, key: str, *, context: Mapping[str, Any] | None = None) -> Decoded | None:
    """The result of ``decode`` for bytes that are exactly one valid value; None for all others."""
    schema = registry[key]
    decoded = by_rows(schema, data, 0, dict(context or {}), schema.limits)
    return decoded if decoded is not None and decoded.consumed == len(data) and decoded.clean else None


def fitting_value(data: bytes, key: str) -> Decoded | None:
    """The result of ``decode`` if the bytes are one value without an error or gap, else None; checks may fail."""
    schema = registry[key]
    decoded = by_rows(schema, data, 0, {}, schema.limits) if is_generated(None, key, decoded_times, DECODERS) else None
    if decoded is None:
        if fits_unverified(data, key) is False:
            return None
        decoded = decode_bytes(schema, data, {}, schema.limits, 0)
    return decoded if decoded.error is None and not decoded.gaps and decoded.consumed == len(data) else None


def overruns(frame: bytes, key: str) -> bool:
    """Whether a length at the start of a frame exceeds the bytes, so that the frame cannot be clean."""
    schema = registry[key]
    if not isinstance(schema.node, Struct):
        return False
    return schema.node.overruns(Reader(Session(key, schema.limits), frame), Scope.root(Params()))
