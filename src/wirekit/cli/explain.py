"""``wirekit explain``: the code and the programs that the compiler generates from a layout."""

from __future__ import annotations

from typing import IO

import click

from wirekit.cli.arguments import KeyType
from wirekit.cli.context import check_context, context_option, parse_context
from wirekit.compiler import ir
from wirekit.compiler.engines import SHOWN
from wirekit.registry import registry

MOST_HEADER_BYTES = 1 << 16  # of a file, which must contain its header


@click.command("explain")
@click.argument("key", type=KeyType())
@click.option(
    "--engine",
    type=click.Choice([*SHOWN, "ir"]),
    default="rows",
    help="; ".join(f"{engine.name}: {engine.description}" for engine in SHOWN.values())
    + "; ir: the layout IR, from which all others are generated. The default is rows.",
)
@click.option(
    "--front",
    type=click.File("rb"),
    help="For the columns engines: a file of the layout KEY, if its header selects the layout of its records.",
)
@context_option
def command(key: str, engine: str, front: IO[bytes] | None, context_pairs: tuple[str, ...]) -> int:
    """Print the code that is generated to decode or encode KEY, or the layout IR."""
    context = parse_context(context_pairs)
    shown = SHOWN.get(engine)
    if not (shown and shown.columns):
        if context:
            raise click.UsageError(
                f"--context applies to the columns engines; the output of {engine} is the same for every context"
            )
        if front is not None:
            raise click.UsageError(
                f"--front applies to the columns engines; the output of {engine} is the same for every file"
            )
    check_context(key, context)
    layout = registry[key].layout
    if shown is None:
        click.echo(ir.dump(layout))
    elif shown.columns:
        ahead = front.read(MOST_HEADER_BYTES) if front is not None else b""
        click.echo(shown.source(key, ahead, context or None), nl=False)
    else:
        click.echo(shown.source(key), nl=False)
    return 0
