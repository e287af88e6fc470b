"""The data source ``wirekit``, at the place where Spark looks for it; imported in every helper process, so kept light.

Spark imports every module called ``pyspark_*`` at the first use of a format that it does not know, and takes its
``DefaultSource``. The source itself is in ``wirekit.spark.source``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class DefaultSource(DataSource):
    """Captures as a table: ``spark.read.format("wirekit").option("table", "messages").load("captures/")``."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "wirekit"

    def schema(self) -> StructType:
        """The columns of the table that the options name.

        All options are verified here: ``load`` shows the error of one, but Spark hides an error in ``streamReader``.
        """
        from wirekit.spark.source import OF_STREAMS, source_schema

        schema = source_schema(self.options)
        (self.reader if OF_STREAMS.isdisjoint(map(str.lower, self.options)) else self.streamReader)(schema)
        return schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reads these columns; a schema given by the caller may have fewer, in another order."""
        from wirekit.spark.source import CaptureReader

        return CaptureReader(schema, self.options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Reads these columns of files as they are completed."""
        from wirekit.spark.stream import CaptureStream

        return CaptureStream(schema, self.options)
