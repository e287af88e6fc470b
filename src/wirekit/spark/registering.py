"""Making the data source known to a session of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_wirekit import DefaultSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Makes ``spark.read.format("wirekit")`` known to a session.

    Spark finds an installed package by itself, but not one that is installed as editable.
    """
    spark.dataSource.register(DefaultSource)
