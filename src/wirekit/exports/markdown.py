"""Layouts as Markdown: tables of fields, with offsets if they are fixed, notes, and an example with its bytes.

For the name of a protocol, the result is its page of the documentation.
"""

from __future__ import annotations

from io import StringIO

from wirekit.compiler import ir
from wirekit.compiler.lower import lower
from wirekit.decoding import decode
from wirekit.encoding import encode
from wirekit.errors import Misuse
from wirekit.exports.missing import Export
from wirekit.registry import Protocol, Schema, registry
from wirekit.values import SymbolTable
from wirekit.wire import Const, Default, If, IfMore, Node, Struct
from wirekit.wire.describe import FieldLine, describe

WIDTH = 110
MOST_LINES = 150
"""The maximum number of lines of a layout; of a longer one, only the outer fields are shown."""


def export(keys: list[str]) -> Export:
    """The pages of protocols, and the sections of layouts."""
    lines: list[str] = []
    for key in keys:
        lines += _protocol(registry.protocol(key)) if "." not in key else _layout(registry[key])
    return Export("\n".join(lines).rstrip() + "\n")


def _protocol(protocol: Protocol) -> list[str]:
    lines = [f"# {protocol.name}: {protocol.title}", ""]
    lines += [f"<!-- Written by `wirekit schemas {protocol.name} --output markdown`. -->", ""]
    if protocol.client:
        streams = [f"the {side} sends `{protocol.stream(side)}`" for side in ("client", "server")]
        ports = f" Usual port: {', '.join(map(str, protocol.ports))}." if protocol.ports else ""
        lines += [f"On a connection {' and '.join(streams)}.{ports}", ""]
    lines += ["Offsets are in bytes from the start of the layout; a field after one of variable size has none.", ""]
    tables: dict[int, SymbolTable] = {}
    for name in protocol.layouts:
        schema = registry[protocol.key(name)]
        lines += _layout(schema)
        tables |= {id(table): table for table in _tables(schema.layout)}
    if tables:
        lines += ["## Values with names", ""]
        for table in sorted(tables.values(), key=lambda table: table.name):
            lines += _symbols(table)
    return lines


def _layout(schema: Schema) -> list[str]:
    lines = [f"## {schema.key}", ""]
    if schema.description:
        lines += [f"{_text(schema.description[:1].upper() + schema.description[1:])}.", ""]
    if schema.source:
        lines += [f"Source: {_text(schema.source)}.", ""]
    fields = describe(schema.node)
    if fields:
        shown = fields if len(fields) <= MOST_LINES else [line for line in fields if line.depth < 1]
        lines += ["| offset | field | type | note |", "|---|---|---|---|"]
        offsets = _offsets(fields)
        for line, offset in zip(fields, offsets, strict=True):
            if line in shown:
                name = f"{'&emsp;' * line.depth}`{line.name}`"
                lines.append(f"| {offset} | {name} | {_text(line.type)} | {_text(line.note)} |")
        if len(shown) < len(fields):
            lines += ["", f"Its {len(fields) - len(shown)} inner fields are in the layouts below, and in"]
            lines[-1] += f" `wirekit schemas {schema.key}`."
        lines.append("")
    lines += [f"- {_text(note.text)} ({_text(note.source)})" for note in schema.notes]
    lines += [""] if schema.notes else []
    return lines + _example(schema.key)


def _text(text: str) -> str:
    """A text for a cell of a table."""
    plain = text.replace("\\", "\\\\").replace("|", "\\|")
    for special in "*_<>[]`":
        plain = plain.replace(special, f"\\{special}")
    return plain


def _offsets(lines: list[FieldLine]) -> list[str]:
    """The offset of each line, "" if it is not fixed."""
    at: dict[int, int | None] = {0: 0}
    offsets = []
    for line in lines:
        offset = at.get(line.depth) if line.node is not None else None
        offsets.append("" if offset is None else str(offset))
        if line.node is None:
            at[line.depth + 1] = None
            continue
        at[line.depth + 1] = offset if isinstance(_bare(line.node), Struct) else None
        node = _bare(line.node)
        size = None if offset is None or isinstance(node, (If, IfMore)) else ir.fixed_size(lower(node))
        at[line.depth] = None if offset is None or size is None else offset + size
    return offsets


def _bare(node: Node) -> Node:
    """The node with the bytes of a field, because a length or checksum cannot be lowered without its struct."""
    from wirekit.wire import Checked, Length

    while isinstance(node, (Default, Const, Length, Checked)):
        node = node.inner
    return node


def _tables(layout: ir.Node) -> list[SymbolTable]:
    tables = []
    for _, node in ir.walk(layout):
        if isinstance(node, ir.Named):
            tables.append(node.table)
        elif isinstance(node, ir.BitFields):
            tables += [field.table for field in node.fields if field.table is not None]
    return tables


def _symbols(table: SymbolTable) -> list[str]:
    lines = [f"### {_text(table.name)}", "", "| value | name | meaning |", "|---|---|---|"]
    lines += [f"| {int(each)} | `{each.symbol}` | {_text(each.description)} |" for each in table]
    return [*lines, ""]


def _example(key: str) -> list[str]:
    from rich.console import Console

    from wirekit.display.render import show
    from wirekit.examples import example

    try:
        decoded = decode(encode(key, example(key)), key)
    except Misuse:
        return ["No small value is valid; `wirekit.strategies.values` draws valid ones.", ""]
    text = StringIO()
    show(decoded, Console(file=text, width=WIDTH, highlight=False, emoji=False, no_color=True), "tree", complete=True)
    return ["```text", *(line.rstrip() for line in text.getvalue().strip().splitlines()), "```", ""]
