"""``wirekit explain``: what the compiler makes of a layout."""

from __future__ import annotations

import click

from wirekit.compiler import ir, rows
from wirekit.registry import registry


@click.command("explain")
@click.argument("key")
@click.option(
    "--engine",
    type=click.Choice(["rows", "ir"]),
    default="rows",
    help="rows: the generated decoder (default); ir: the layout that it is generated from.",
)
def command(key: str, engine: str) -> int:
    """Print the code that is generated to decode KEY, or the layout IR it is generated from."""
    layout = registry[key].layout
    click.echo(ir.dump(layout) if engine == "ir" else rows.writer(key).source, nl=engine == "ir")
    return 0
