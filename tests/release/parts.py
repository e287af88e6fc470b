"""What each extra brings, and what can then be done: for packages that are not in the way of this environment's own."""

from __future__ import annotations

OPTIONAL = ("duckdb", "hypothesis", "isal", "numba", "numpy", "pandas", "pyarrow", "pyspark")
"""Packages that `pip install wirekit` does not bring."""

BROUGHT = {
    "": (),
    "columns": ("numba", "numpy", "pyarrow"),
    "spark": ("pandas", "numpy", "pyarrow", "pyspark"),
    "fast": ("isal",),
    "fuzz": ("hypothesis",),
    "sql": ("duckdb", "pyarrow"),
}
"""{extra: those of them that it brings}."""

CORE = """
import wirekit
assert wirekit.__version__
data = wirekit.encode("pulsar.frame", wirekit.example("pulsar.frame"))
assert wirekit.decode(data, "pulsar.frame").clean
assert len(wirekit.registry.keys()) > 200
import wirekit.cli, wirekit.conversation, wirekit.capture.follow, wirekit.exports
assert "ProtoField" in wirekit.exports.export(["joyqueue"], "lua").text
"""

USED = {
    "": CORE,
    "columns": "import wirekit; assert callable(wirekit.columns) and callable(wirekit.build_columns)",
    "spark": "import wirekit.spark.pipeline, pyspark_wirekit",
    "fast": "from wirekit.checksums import crc32; assert crc32(b'123456789') == 0xCBF43926; import isal",
    "fuzz": "from wirekit.strategies import values; assert values('kafka.message') is not None",
    "sql": "import wirekit.cli.sql, duckdb",
}
"""{extra: what runs with it alone}."""

COMPILED = "import wirekit; assert wirekit.columns('kafka.offset_index', bytes(8)).num_rows == 1"
"""What the extra `columns` is for; its kernels are compiled anew in an environment of its own, which takes a minute."""
