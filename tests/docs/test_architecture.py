"""The table of docs/architecture.md lists the parts lowest first: at import, a part needs only the parts above it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"


def rows() -> dict[str, int]:
    """{part of the package: its row in the table}."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    return {
        name.removesuffix(".<protocol>"): number
        for number, cell in enumerate(cells)
        for name in re.findall(r"`(?:\w+/\S*` \(package `)?(wirekit[\w.<>]*)`", cell)
    }


def part_of(module: str, parts: dict[str, int]) -> str | None:
    """The part that a module belongs to: the longest name that it begins with."""
    return max((name for name in parts if f"{module}.".startswith(f"{name}.")), key=len, default=None)


def imported(tree: ast.Module) -> list[str]:
    """The modules of wirekit that a module imports when it is imported itself."""
    imports = [each for each in tree.body if isinstance(each, ast.ImportFrom) and each.module]
    return [
        f"wirekit.{alias.name}" if each.module == "wirekit" else str(each.module)
        for each in imports
        for alias in (each.names if each.module == "wirekit" else each.names[:1])
        if str(each.module).partition(".")[0] == "wirekit"
    ]


def test_a_part_imports_only_parts_above_it() -> None:
    parts = rows()
    assert len(set(parts.values())) > 30
    wrong = []
    for path in sorted(SOURCE.rglob("*.py")):
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        part = part_of(module, parts)
        for name in imported(ast.parse(path.read_text(encoding="utf-8"))) if part is not None else ():
            below = part_of(name, parts)
            if below is not None and parts[below] > parts[str(part)]:
                wrong.append(f"{module} imports {name}")
    assert not wrong, wrong
