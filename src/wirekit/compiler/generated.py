"""Code generated from schemas, cached by key until the schema is unregistered.

A key that is registered again may stand for another layout, so nothing that was generated from the old layout may be
used for it. Every cache by key uses ``by_key``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


class _ByKey(dict[str, Any]):
    """{key: code generated from its schema}; the code is generated on first access."""

    def __init__(self, generate: Callable[[str], Any]) -> None:
        super().__init__()
        self._generate = generate

    def __missing__(self, key: str) -> Any:
        value = self[key] = self._generate(key)
        return value


_caches: list[_ByKey] = []


def by_key(generate: Callable[[str], T]) -> Callable[[str], T]:
    """Caches a function of a schema's key until ``forget`` gets the key."""
    cache = _ByKey(generate)
    _caches.append(cache)
    return cache.__getitem__


def forget(keys: Iterable[str]) -> None:
    """Drops all code that was generated from the schemas of these keys."""
    for key in keys:
        for cache in _caches:
            cache.pop(key, None)
