"""One Spark session for all tests: starting one takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session as ``wirekit.spark.session`` makes it, on two threads with retries."""
    from wirekit.spark.session import session

    # The JVM's first compiler only: the tests' jobs are too short to earn back what the second one costs.
    conf = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.local.dir": str(tmp_path_factory.mktemp("spark")),
    }
    started = session("local[2,4]", "wirekit tests", conf)
    yield started
    started.stop()
