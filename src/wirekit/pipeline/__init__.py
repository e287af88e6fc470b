"""Captures to tables, over iterators of ``pyarrow.RecordBatch``; nothing here knows Spark.

``inputs`` finds the captures, ``packets`` turns them into the rows that are sorted by flow and time, ``flows`` turns
sorted packets into the tables, ``sink`` writes what one task made, ``output`` publishes what all tasks made,
``summary`` counts it. Two drivers run these functions: ``serial`` in one process, ``wirekit.spark.pipeline`` on Spark.

pyarrow is imported by most modules of this package, and by none that ``import wirekit`` reaches.
"""
