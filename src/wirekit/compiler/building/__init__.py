"""Arrow batches to bytes, by kernels generated from the IR."""

from wirekit.compiler.building.assembling import assembled, build_columns, record_batch, source

__all__ = ["assembled", "build_columns", "record_batch", "source"]
