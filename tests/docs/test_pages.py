"""The pages of the documentation that are made from the code say what the code says."""

from __future__ import annotations

import importlib.util
import inspect
import re
from pathlib import Path

import pytest

import wirekit.wire

DOCS = Path(__file__).parents[2] / "docs"
_spec = importlib.util.spec_from_file_location("documentation_pages", DOCS / "pages.py")
assert _spec is not None
assert _spec.loader is not None
pages = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(pages)


@pytest.mark.parametrize("path", pages.PAGES)
def test_a_written_page_is_current(path: str) -> None:
    """`make pages` writes them again."""
    assert (DOCS / path).read_text(encoding="utf-8") == pages.PAGES[path]()


def test_each_node_is_in_the_vocabulary() -> None:
    page = (DOCS / "reference" / "vocabulary.md").read_text(encoding="utf-8")
    headings = {name for line in re.findall(r"^### (.*)$", page, re.M) for name in line.split(", ")}
    nodes = {
        name
        for name, kind in vars(wirekit.wire).items()
        if inspect.isclass(kind) and issubclass(kind, wirekit.wire.Node)
    }
    assert nodes - headings == {"Node", "Integer"}  # the base, and the class of int8 and so on
