"""Spark: data sources, column functions and the pipeline. Only what lives here may import pyspark."""
