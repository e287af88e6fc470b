"""Prints the report on a broker's directory as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirekit.cli.common import print_wrapped
from wirekit.stored import Report
from wirekit.values import printable

if TYPE_CHECKING:
    from rich.console import Console


def show_report(report: Report, console: Console) -> None:
    """Prints a directory, then those in it: facts, a table of each list of facts, contradictions."""
    verdict = "  ✓" if report.clean else ""
    console.print(f"{printable(report.directory)}{verdict}", style="bold", markup=False, soft_wrap=True)
    for name, fact in report.facts.items():
        rows = fact if isinstance(fact, list) else []
        if rows and isinstance(rows[0], dict):
            _table(rows, console)
        elif fact not in (None, [], {}):
            print_wrapped(console, f"  {_title(name):<15}{printable(_text(fact))}", indent=17)
    for problem in report.problems:
        print_wrapped(console, f"  ✗ {printable(str(problem))}", "red", indent=4)
    for part in report.parts:
        show_report(part, console)


def _title(name: str) -> str:
    return name.replace("_", " ")


def _text(fact: Any) -> str:
    if isinstance(fact, dict):
        return ", ".join(f"{name} {value}" for name, value in fact.items())
    return ", ".join(map(str, fact)) if isinstance(fact, list) else str(fact)


def _table(rows: list[dict[str, Any]], console: Console) -> None:
    """Prints a line per row: in columns, or on a terminal that is too narrow for them as a list of facts."""
    names = list(rows[0])
    cells = [list(map(_title, names))]
    cells += [["" if row[name] is None else printable(str(row[name])) for name in names] for row in rows]
    widths = [max(len(line[column]) for line in cells) for column in range(len(names))]
    if console.is_terminal and sum(widths) + 2 * len(widths) > console.width:
        for first, *others in cells[1:]:
            facts = [f"{name} {cell}" for name, cell in zip(cells[0][1:], others, strict=True) if cell]
            print_wrapped(console, f"  {first}  {', '.join(facts)}", indent=4)
        return
    for number, line in enumerate(cells):
        padded = [
            cell.ljust(width) if not at else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        console.print(
            f"  {'  '.join(padded)}".rstrip(), style="dim" if not number else None, markup=False, soft_wrap=True
        )
