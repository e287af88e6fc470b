"""``wirekit explain``: what the compiler makes of a layout."""

from __future__ import annotations

import click

from wirekit.compiler import ir, rows, rows_build, rows_direct, rows_load, trace
from wirekit.registry import registry


@click.command("explain")
@click.argument("key")
@click.option(
    "--engine",
    type=click.Choice(["rows", "trace", "build", "direct", "load", "columns", "build-columns", "ir"]),
    default="rows",
    help=(
        "rows: the generated decoder (default); trace: the generated code that says where each field lies; build: the "
        "generated encoder; direct: the same for plain mappings; load: what makes the encoder's records of other JSON; "
        "columns: the generated kernel that fills Arrow columns; build-columns: the one that builds from them; "
        "ir: the layout that all are generated from."
    ),
)
def command(key: str, engine: str) -> int:
    """Print the code that is generated to decode or encode KEY, or the layout IR it is generated from."""
    if engine == "ir":
        click.echo(ir.dump(registry[key].layout))
    elif engine == "columns":
        from wirekit.compiler import columns

        click.echo(columns.source(key), nl=False)
    elif engine == "build-columns":
        from wirekit.compiler import columns_build

        click.echo(columns_build.source(key), nl=False)
    else:
        write = {
            "rows": rows.writer,
            "trace": trace.writer,
            "build": rows_build.builder,
            "direct": rows_direct.builder,
            "load": rows_load.loader,
        }[engine]
        click.echo(write(key).source, nl=False)
    return 0
