"""The columns engine: buffers of many records to Arrow batches (``scanning``), by programs made from the IR."""

from wirekit.compiler.columns.programs import program, source
from wirekit.compiler.columns.ranges import scan_ranges
from wirekit.compiler.columns.scanning import columns, opened, scan, warm

__all__ = ["columns", "opened", "program", "scan", "scan_ranges", "source", "warm"]
