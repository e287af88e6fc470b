"""Turns captures into tables, over iterators of ``pyarrow.RecordBatch``; nothing here knows Spark.

``inputs`` finds the captures, ``packets`` turns them into rows that are sorted by flow and time, ``flows`` turns sorted
packets into the tables, ``sink`` writes the output of one task, ``output`` publishes the output of all tasks, and
``summary`` has the counts. Three drivers run these functions: ``serial`` in one process, and the ``tasks`` of
``parallel`` in several ``processes`` or on Spark (``wirekit.spark.pipeline``).

Most modules of this package import pyarrow; ``import wirekit`` imports none of these.
"""
