"""The columns engine: buffers of many records to Arrow batches (``scanning``), by programs made from the IR."""

from wirekit.compiler.columns.programs import program, source
from wirekit.compiler.columns.ranges import scan_ranges
from wirekit.compiler.columns.scanning import columns, scan, scan_column, warm

__all__ = ["columns", "program", "scan", "scan_column", "scan_ranges", "source", "warm"]
