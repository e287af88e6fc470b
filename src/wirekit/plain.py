"""Converts plain values to JSON data and back without loss, for state that is stored and continued later.

None, booleans, numbers, text and bytes, and lists, tuples, sets, dictionaries, ``Counter`` and ``OrderedDict`` of them.
Reading creates objects of these types only, whatever the data contains.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from wirekit.errors import Misuse

DEEPEST = 100
"""The maximum depth of containers inside one another."""
_TAG, _OF = "type", "of"
_MAPPINGS: dict[str, Callable[[Any], Any]] = {"dict": dict, "counter": Counter, "ordered": OrderedDict}
_SERIES: dict[str, Callable[[Any], Any]] = {"tuple": tuple, "set": set, "frozenset": frozenset}
_AS_THEY_ARE = frozenset({type(None), bool, int, float, str})
_NAMES: dict[type, str] = {tuple: "tuple", set: "set", frozenset: "frozenset"}


def stored(value: Any, type_by_name: Mapping[str, type] | None = None) -> Any:
    """A value as JSON data.

    Args:
        value: the value; subclasses of numbers, text and lists are restored as the plain types.
        type_by_name: the named tuple types that may occur in it, by their names in the data.

    Raises:
        Misuse: the value contains another type.

    >>> restored(stored({("a", 1): {b"x"}})) == {("a", 1): {b"x"}}
    True
    """
    names = _NAMES | {type_: name for name, type_ in (type_by_name or {}).items()}
    return _stored(value, names, 0)


def restored(data: Any, type_by_name: Mapping[str, type] | None = None) -> Any:
    """The inverse of ``stored``.

    Raises:
        Misuse: ``stored`` did not return the data.
    """
    try:
        return _read(data, type_by_name or {}, 0)
    except (ValueError, TypeError, KeyError) as error:
        raise Misuse(f"stored values are damaged ({error}); pass the stored text unchanged") from error


def like(example: Any, value: Any) -> Any:
    """A restored value, if it has the type of an example; None is accepted for every type.

    Raises:
        TypeError: the value has another type.
    """
    if value is not None and example is not None and type(value) is not type(example):
        raise TypeError(f"a {type(value).__name__} instead of a {type(example).__name__}")
    return value


def _stored(value: Any, names: Mapping[type, str], depth: int) -> Any:
    if type(value) in _AS_THEY_ARE:
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if depth > DEEPEST:
        raise Misuse(f"containers nested more than {DEEPEST} deep cannot be stored")
    if isinstance(value, bytes | bytearray | memoryview):
        return {_TAG: "bytes", _OF: b64encode(value).decode("ascii")}
    if isinstance(value, dict):
        kind = "counter" if isinstance(value, Counter) else "ordered" if isinstance(value, OrderedDict) else "dict"
        pairs = [[_stored(each, names, depth + 1) for each in item] for item in value.items()]
        return {_TAG: kind, _OF: pairs}
    if isinstance(value, list):
        return [_stored(each, names, depth + 1) for each in value]
    kind = names.get(type(value), "")
    if not kind:
        raise Misuse(f"a {type(value).__qualname__} cannot be stored; use plain values and containers of them")
    return {_TAG: kind, _OF: [_stored(each, names, depth + 1) for each in value]}


def _read(stored: Any, type_by_name: Mapping[str, type], depth: int) -> Any:
    if depth > 2 * DEEPEST:
        raise ValueError("too deep")
    if type(stored) in _AS_THEY_ARE:
        return stored
    if isinstance(stored, list):
        return [_read(each, type_by_name, depth + 1) for each in stored]
    kind, items = stored[_TAG], stored[_OF]
    if kind == "bytes":
        return b64decode(items, validate=True)
    if not isinstance(items, list):
        raise TypeError(f"a {kind} of {type(items).__name__}")
    if kind in _MAPPINGS:
        pairs = [(_read(key, type_by_name, depth + 1), _read(value, type_by_name, depth + 1)) for key, value in items]
        return _MAPPINGS[kind](dict(pairs))
    values = [_read(each, type_by_name, depth + 1) for each in items]
    return type_by_name[kind](*values) if kind in type_by_name else _SERIES[kind](values)
