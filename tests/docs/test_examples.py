"""Every example of the documentation runs, and prints what the page says.

Pages of ``docs`` itself are here if they have commands; tests/registry/test_docstrings.py runs the others.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages_run import run_page
from wirekit.registry import BUILT_IN, registry

ROOT = Path(__file__).parents[2]
PLACES = ("tutorial", "how-to", "reference", "explanation")
PAGES = [page for place in PLACES for page in sorted((ROOT / "docs" / place).glob("*.md"))]
PAGES += [page for page in sorted((ROOT / "docs").glob("*.md")) if "```console\n" in page.read_text(encoding="utf-8")]
TOOLS = {"show-frames-in-wireshark": "tshark"}
"""What a page needs that is no Python package."""


def uses_spark(page: Path) -> bool:
    """Whether the examples of a page name a Spark session; these are run by tests/spark/test_pages.py."""
    return ">>> spark." in page.read_text(encoding="utf-8") or "= spark." in page.read_text(encoding="utf-8")


def uses_object_store(page: Path) -> bool:
    """Whether the examples of a page read from buckets; these are run by tests/pipeline/test_pages.py."""
    return "$ wirekit inspect s3://" in page.read_text(encoding="utf-8")


@pytest.fixture
def _a_place_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Files, modules and protocols that a page makes are gone behind it."""
    yield from place_of_its_own(tmp_path, monkeypatch)


def place_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The directory in which a page runs."""
    (tmp_path / "fixtures").symlink_to(ROOT / "fixtures")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("PYTHONPATH", "")  # so that it is put back behind a page that sets it
    monkeypatch.delenv("PYTHONPATH")
    monkeypatch.syspath_prepend(str(tmp_path))
    protocols, modules = set(registry.protocols()), set(sys.modules)
    yield
    for name in set(registry.protocols()) - protocols - BUILT_IN.keys():
        registry.unregister(name)
    for name in set(sys.modules) - modules:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.mark.usefixtures("_a_place_of_its_own")
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if not uses_spark(page) and not uses_object_store(page)],
    ids=lambda page: f"{page.parent.name}/{page.stem}",
)
def test_the_examples_of_a_page(page: Path) -> None:
    tool = TOOLS.get(page.stem)
    if tool is not None and shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    wrong = list(run_page(page, {}))
    assert not wrong, "\n\n".join(map(str, wrong))
