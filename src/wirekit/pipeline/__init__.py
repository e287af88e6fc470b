"""Turns captures and stored files into tables, over iterators of ``pyarrow.RecordBatch``; nothing here knows Spark.

- ``inputs`` finds the files; ``bundles`` divides them into parts that are committed together.
- ``packets`` turns a capture into rows, one per TCP segment; ``flows`` turns these rows, sorted by flow and time, into
  the tables. If columns read the capture, ``wirekit.road`` takes the place of both. ``stored`` reads stored files.
- ``sink`` writes the output of one task, ``output`` publishes the output of all tasks, ``summary`` has the counts.
- Three drivers run these functions: ``serial`` in one process, and the ``tasks`` of ``parallel`` in several
  ``processes`` or on Spark (``wirekit.spark.pipeline``). ``reading`` returns one table without writing anything.

Most modules of this package import pyarrow; ``import wirekit`` imports none of these.
"""
