"""The pages of the documentation that use Spark: their examples run, and print what stands there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages_run import run_page
from tests.docs.test_examples import PAGES, place_of_its_own, uses_object_store, uses_spark

pytestmark = pytest.mark.spark


@pytest.fixture
def _a_place_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield from place_of_its_own(tmp_path, monkeypatch)


@pytest.mark.usefixtures("_a_place_of_its_own")
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if uses_spark(page) and not uses_object_store(page)],
    ids=lambda page: page.stem,
)
def test_the_examples_of_a_page(page: Path, spark: object) -> None:
    wrong = list(run_page(page, {"spark": spark}))
    assert not wrong, "\n\n".join(map(str, wrong))
