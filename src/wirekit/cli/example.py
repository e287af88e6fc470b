"""``wirekit example``: a small valid value of a layout, to start from."""

from __future__ import annotations

import json

import click

from wirekit.cli.arguments import KeyType
from wirekit.cli.common import on_terminal, print_json
from wirekit.cli.context import check_context, context_option, parse_context


@click.command("example")
@click.argument("key", type=KeyType())
@context_option
def command(key: str, context_pairs: tuple[str, ...]) -> int:
    """Print a small valid value of KEY as JSON. `wirekit encode KEY` reads it.

    KEY is a schema key, or the name of a protocol for a frame of its client.

    \b
    wirekit example kafka.heartbeat.request.v0 | wirekit encode kafka.heartbeat.request.v0 --output hex
    """
    from wirekit.examples import example

    context = parse_context(context_pairs)
    check_context(key, context)
    value = example(key, context=context)
    if on_terminal():
        click.echo(json.dumps(value, indent=2))
    else:
        print_json(value)
    return 0
