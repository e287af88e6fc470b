"""Builds the bytes of Arrow batches by the write programs of layouts."""

from wirekit.compiler.building.assembling import assembled, build_columns, record_batch, source

__all__ = ["assembled", "build_columns", "record_batch", "source"]
