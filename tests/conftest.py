"""Hypothesis profiles, where the fixtures are, and one Spark session for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIXTURES = Path(__file__).parent.parent / "fixtures"

settings.register_profile(
    "quick", max_examples=60, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "exhaustive", max_examples=20_000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """The directory of captures and vectors."""
    return FIXTURES


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session as ``wirekit.spark.session`` makes it, on two threads with retries; starting one takes seconds."""
    from wirekit.spark.session import session

    # The JVM's first compiler only: the tests' jobs are too short to earn back what the second one costs.
    conf = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.local.dir": str(tmp_path_factory.mktemp("spark")),
    }
    started = session("local[2,4]", "wirekit tests", conf)
    yield started
    started.stop()
