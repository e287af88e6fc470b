"""Builds the bytes of Arrow batches by the write programs of layouts."""

from wirekit.compiler.building.assembling import build_columns, encode_batch, record_batch, source

__all__ = ["encode_batch", "build_columns", "record_batch", "source"]
