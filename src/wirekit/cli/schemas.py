"""``wirekit schemas``: lists all layouts, or the fields of one layout."""

from __future__ import annotations

import click

from wirekit.cli.arguments import KeyType
from wirekit.cli.common import console, print_json, print_wrapped, say
from wirekit.errors import Misuse
from wirekit.exports import FORMS, export
from wirekit.registry import registry
from wirekit.values import Symbol
from wirekit.wire.describe import describe, tables

LISTED, DESCRIBED, DEEPEST = 47, 32, 36
"""Columns before descriptions of layouts, of symbols, and at most before types of fields, on further lines."""


@click.command("schemas")
@click.argument("keys", metavar="[KEY]...", nargs=-1, type=KeyType())
@click.option("--output", type=click.Choice(["text", "json", *FORMS]), default="text")
def command(keys: tuple[str, ...], output: str) -> int:
    """List all schema keys, the keys of a protocol (KEY is its name), or the fields of one layout.

    --output exports declarations: ksy for Kaitai Struct, lua for Wireshark, c for C structs, jsonschema for the JSON of
    values, markdown for tables, pyi for Python type checkers. Declarations that a format cannot express are listed in
    the output and on standard error.
    """
    if output in FORMS:
        return _export(keys, output)
    if len(keys) > 1:
        raise Misuse(f"--output {output} takes one key; {', '.join(FORMS)} take several")
    key = keys[0] if keys else None
    if key is None or "." not in key:
        names = registry.protocols() if key is None else [registry.protocol(key).name]
        _list(names, output)
    else:
        _show(key, output)
    return 0


def _export(keys: tuple[str, ...], form: str) -> int:
    if not keys:
        raise Misuse(f"--output {form} needs a key; `wirekit schemas` lists them")
    written = export(keys, form)
    click.echo(written.text, nl=False)
    for line in written.summary():
        say(f"not expressed: {line}")
    return 0


def _list(names: list[str], output: str) -> None:
    screen = console()
    for name in names:
        protocol = registry.protocol(name)
        if output == "text":
            screen.print(f"{protocol.name}: {protocol.title}", style="bold", markup=False)
        for suffix, layout in protocol.layouts.items():
            if output == "json":
                print_json({"key": protocol.key(suffix), "description": layout.description, "source": layout.source})
            else:
                print_wrapped(screen, f"  {protocol.key(suffix):44} {layout.description}", indent=LISTED)


def _show(key: str, output: str) -> None:
    schema = registry[key]
    lines = describe(schema.node)
    if output == "json":
        fields = [
            {
                "depth": line.depth,
                "name": line.name,
                "type": line.type,
                "note": line.note,
                "presence": line.presence,
                "symbols": None if line.table is None else line.table.name,
            }
            for line in lines
        ]
        symbols = {table.name: [_symbol(symbol) for symbol in table] for table in tables(lines)}
        notes = [{"text": note.text, "source": note.source} for note in schema.notes]
        head = {"key": key, "description": schema.description, "source": schema.source}
        print_json({**head, "fields": fields, "symbols": symbols, "notes": notes})
        return
    screen = console()
    print_wrapped(screen, f"{key}  {schema.description}", "bold", indent=2)
    if schema.source:
        print_wrapped(screen, f"source: {schema.source}", "dim", indent=2)
    width = max((2 * line.depth + len(line.name) for line in lines), default=0) + 2
    for line in lines:
        name = "  " * line.depth + line.name
        note = f"  ({line.note})" if line.note else ""
        needed = f"; {line.presence}" if line.presence else ""
        print_wrapped(screen, f"  {name:{width}}{line.type}{needed}{note}", indent=min(width, DEEPEST) + 4)
    for table in tables(lines):
        print_wrapped(screen, table.name.rpartition(".")[2], "bold", indent=2)
        for symbol in table:
            print_wrapped(screen, f"  {symbol!s:30}{symbol.description}", indent=DESCRIBED)
    if schema.notes:
        screen.print("notes", style="bold")
    for entry in schema.notes:
        print_wrapped(screen, f"  {entry.text}  [{entry.source}]", indent=2)


def _symbol(symbol: Symbol) -> dict[str, int | str | None]:
    return {"value": int(symbol), "symbol": symbol.symbol, "description": symbol.description}
