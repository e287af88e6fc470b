"""The examples in docstrings, in docs/*.md and in the READMEs run and print what they say.

Pages with commands are run by tests/docs/test_examples.py, in a directory of their own.
"""

from __future__ import annotations

import doctest
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.test_examples import PAGES
from wirekit.registry import BUILT_IN, registry

ROOT = Path(__file__).parents[2]
PLACES = {"src": "", "schemas": "wirekit.schemas"}


@pytest.fixture(autouse=True)
def _nothing_is_left_in_the_registry() -> Iterator[None]:
    """A protocol that an example registers may be taken for that of other tests' bytes."""
    before = set(registry.protocols())
    yield
    for name in set(registry.protocols()) - before - BUILT_IN.keys():
        registry.unregister(name)


def modules() -> list[str]:
    """All modules that have an example."""
    names = []
    for place, prefix in PLACES.items():
        for path in sorted((ROOT / place).rglob("*.py")):
            if ">>> " in path.read_text():
                parts = path.relative_to(ROOT / place).with_suffix("").parts
                parts = parts[:-1] if parts[-1] == "__init__" else parts
                names.append(".".join([*([prefix] if prefix else []), *parts]))
    return names


@pytest.mark.parametrize("name", modules())
def test_examples_of_a_module(name: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried
    assert not failed


@pytest.mark.parametrize(
    "path",
    [ROOT / "README.md", ROOT / "examples" / "README.md", *sorted({*(ROOT / "docs").glob("*.md")} - {*PAGES})],
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_examples_of_a_page(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    failed, _ = doctest.testfile(str(path), module_relative=False)
    assert not failed
