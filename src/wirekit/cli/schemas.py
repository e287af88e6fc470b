"""``wirekit schemas``: what layouts there are, and what one looks like."""

from __future__ import annotations

import click

from wirekit.cli.common import console, print_json
from wirekit.registry import registry
from wirekit.wire.describe import describe


@click.command("schemas")
@click.argument("key", required=False)
@click.option("--output", type=click.Choice(["text", "json"]), default="text")
def command(key: str | None, output: str) -> int:
    """List all schema keys, the keys of a protocol (KEY is its name), or the layout of one KEY."""
    if key is None or "." not in key:
        names = registry.protocols() if key is None else [registry.protocol(key).name]
        _list(names, output)
    else:
        _show(key, output)
    return 0


def _list(names: list[str], output: str) -> None:
    screen = console()
    for name in names:
        protocol = registry.protocol(name)
        if output == "text":
            screen.print(f"{protocol.name}: {protocol.title}", style="bold", markup=False)
        for rest, layout in protocol.layouts.items():
            if output == "json":
                print_json({"key": protocol.key(rest), "description": layout.description, "source": layout.source})
            else:
                screen.print(f"  {protocol.key(rest):44} {layout.description}".rstrip(), markup=False, soft_wrap=True)


def _show(key: str, output: str) -> None:
    schema = registry[key]
    lines = describe(schema.node)
    if output == "json":
        fields = [{"depth": x.depth, "name": x.name, "type": x.type, "note": x.note} for x in lines]
        notes = [{"text": note.text, "source": note.source} for note in schema.notes]
        print_json(
            {"key": key, "description": schema.description, "source": schema.source, "fields": fields, "notes": notes}
        )
        return
    screen = console()
    screen.print(key, style="bold", markup=False, end="")
    screen.print(f"  {schema.description}" if schema.description else "", markup=False)
    if schema.source:
        screen.print(f"source: {schema.source}", style="dim", markup=False, soft_wrap=True)
    width = max((2 * line.depth + len(line.name) for line in lines), default=0) + 2
    for line in lines:
        name = "  " * line.depth + line.name
        note = f"  ({line.note})" if line.note else ""
        screen.print(f"  {name:{width}}{line.type}{note}", markup=False, soft_wrap=True)
    if schema.notes:
        screen.print("notes", style="bold")
    for entry in schema.notes:
        screen.print(f"  {entry.text}  [{entry.source}]", markup=False, soft_wrap=True)
