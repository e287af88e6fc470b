"""The names that benchmarks import from wirekit exist; benchmarks run for minutes, so no test runs them all."""

from __future__ import annotations

import ast
import importlib
from importlib.util import find_spec
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize("path", sorted(BENCHMARKS.glob("*.py")), ids=lambda path: path.stem)
def test_names_that_a_benchmark_imports_exist(path: Path) -> None:
    missing = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] in ("wirekit", "benchmarks"):
            module = importlib.import_module(str(node.module))
            for name in (each.name for each in node.names):
                if not hasattr(module, name) and find_spec(f"{node.module}.{name}") is None:
                    missing.append(f"{node.module}.{name}")
    assert not missing
