"""Fixtures of the tests of the compiler."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import wirekit
from wirekit.registry import register


@pytest.fixture(scope="module")
def own_layouts() -> Iterator[None]:
    """The layouts of ``samples`` are registered for the tests of one file."""
    from tests.compiler.samples import PROTOCOL

    registry = wirekit.registry
    register(PROTOCOL)
    yield
    for name in PROTOCOL.layouts:
        del registry._schemas[PROTOCOL.key(name)]
    del registry._protocols[PROTOCOL.name]
