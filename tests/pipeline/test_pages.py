"""The pages of the documentation that use an object store: their examples run, and print what stands there."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import FIXTURES
from tests.docs.pages_run import run_page
from tests.docs.test_examples import PAGES, place_of_its_own, uses_object_store
from tests.pipeline.object_store import BUCKET, ObjectStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def _a_place_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield from place_of_its_own(tmp_path, monkeypatch)


@pytest.fixture
def buckets(store: ObjectStore) -> None:
    """The objects that the pages name."""
    assert BUCKET == "captures"
    store.upload("2026/11/22/broker-1.pcap", FIXTURES / "pcap" / "jmq4-consume.pcap")
    packed = gzip.compress((FIXTURES / "pcap" / "pulsar-batch.pcap").read_bytes())
    store.upload("2026/11/23/broker-1.pcap.gz", packed)
    store.system().create_dir("lake")


@pytest.mark.usefixtures("_a_place_of_its_own", "buckets")
@pytest.mark.parametrize("page", [page for page in PAGES if uses_object_store(page)], ids=lambda page: page.stem)
def test_the_examples_of_a_page(
    page: Path, store: ObjectStore, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in store.environment.items():  # the workers' environment is else that of the session's begin
        monkeypatch.setitem(spark.sparkContext.environment, name, value)
    wrong = list(run_page(page, {"spark": spark}))
    assert not wrong, "\n\n".join(map(str, wrong))


def test_a_page_uses_an_object_store() -> None:
    assert any(map(uses_object_store, PAGES))
