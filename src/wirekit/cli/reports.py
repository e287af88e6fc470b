"""Prints the report on a broker's directory as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirekit.stored import Report
from wirekit.values import printable

if TYPE_CHECKING:
    from rich.console import Console


def show_report(report: Report, console: Console) -> None:
    """Prints a directory, then those in it: facts, a table of each list of facts, what disagrees."""
    verdict = "" if report.problems else "  ✓"
    console.print(f"{printable(report.directory)}{verdict}", style="bold", markup=False, soft_wrap=True)
    for name, fact in report.facts.items():
        rows = fact if isinstance(fact, list) else []
        if rows and isinstance(rows[0], dict):
            _table(rows, console)
        elif fact not in (None, [], {}):
            console.print(f"  {name:<15}{printable(_text(fact))}", markup=False, soft_wrap=True)
    for problem in report.problems:
        console.print(f"  ✗ {printable(str(problem))}", style="red", markup=False, soft_wrap=True)
    for part in report.parts:
        show_report(part, console)


def _text(fact: Any) -> str:
    if isinstance(fact, dict):
        return ", ".join(f"{name} {value}" for name, value in fact.items())
    return ", ".join(map(str, fact)) if isinstance(fact, list) else str(fact)


def _table(rows: list[dict[str, Any]], console: Console) -> None:
    names = list(rows[0])
    cells = [[name.replace("_", " ") for name in names]]
    cells += [["" if row[name] is None else printable(str(row[name])) for name in names] for row in rows]
    widths = [max(len(line[column]) for line in cells) for column in range(len(names))]
    for number, line in enumerate(cells):
        padded = [
            cell.ljust(width) if not at else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        console.print(
            f"  {'  '.join(padded)}".rstrip(), style="dim" if not number else None, markup=False, soft_wrap=True
        )
