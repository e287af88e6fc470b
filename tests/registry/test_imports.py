"""Modules import each other in one direction, imports inside functions included."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACES = {"src": (), "schemas": ("wirekit", "schemas")}


def modules() -> dict[str, Path]:
    """Where each module is, by its name."""
    paths = {}
    for place, package in PLACES.items():
        for path in (ROOT / place).rglob("*.py"):
            parts = [*package, *path.relative_to(ROOT / place).with_suffix("").parts]
            paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return paths


def imported(tree: ast.AST) -> Iterator[str]:
    """The names that a module imports when it runs: not those for the type checker."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield from imported(node)


def test_no_modules_import_each_other_in_a_circle() -> None:
    path_by_module = modules()
    graph = {}
    for module, path in path_by_module.items():
        names = imported(ast.parse(path.read_text(encoding="utf-8")))
        targets = {name if name in path_by_module else name.rpartition(".")[0] for name in names}
        graph[module] = targets & set(path_by_module) - {module}
    assert len(graph) > 300
    assert sum(map(len, graph.values())) > 1000
    TopologicalSorter(graph).prepare()  # raises CycleError with the modules of a circle
