"""Spark: the data source, column functions and the pipeline. Only this package may import pyspark.

``decode``, ``messages``, ``check`` and ``encode`` are functions on columns of bytes; ``spark_schema`` returns the type
of their values; ``register`` registers the functions and the data source for SQL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wirekit.spark.functions import check, decode, encode, messages, register, spark_schema

__all__ = ["check", "decode", "encode", "messages", "register", "spark_schema"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'wirekit.spark' has no attribute {name!r}")
    from wirekit.errors import lacking

    try:
        from wirekit.spark import functions
    except ModuleNotFoundError as error:
        raise lacking(f"wirekit.spark.{name}", error) from error
    return getattr(functions, name)
