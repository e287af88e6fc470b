"""Starts Spark's Python workers as copies of a process that has their modules: a worker ends with each task that fails.

pyspark imports nothing before it copies, for fear of threads. The only thread here is one of jemalloc, which starts it
again in each copy.
"""

from __future__ import annotations

import gc
import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import wirekit.road.tables
import wirekit.spark.pipeline
import wirekit.spark.source  # noqa: F401

if __name__ == "__main__":
    gc.freeze()
    manager()
