"""A C header: packed structs of the fields at fixed offsets, from the first byte of a layout.

A structure with later fields at varying offsets has a struct of the fields before them. Numbers are in the byte order
of the wire: on a machine of the other byte order, their bytes have to be swapped.
"""

from __future__ import annotations

import re

from wirekit.compiler import ir
from wirekit.compiler.expressions import Literal
from wirekit.exports.missing import Export, Notes, layouts, unused
from wirekit.registry import registry
from wirekit.values import SymbolTable

C17 = """
auto break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
"""
KEYWORDS = frozenset(C17.split())


def export(keys: list[str]) -> Export:
    """The header of some layouts; the name of a protocol means all its layouts."""
    notes, lines = Notes(), []
    writer = _Writer(notes)
    for key in keys:
        for name in layouts(key):
            lines += writer.layout(name)
    guard = "_".join(["WIREKIT", *(_name(key).upper() for key in keys[:1]), "H"])
    text = [
        f"/* Written by `wirekit schemas {' '.join(keys)} --output c`.",
        *notes.lines(" *"),
        " */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "#include <stdint.h>",
        *writer.enums(),
        "#pragma pack(push, 1)",
        *lines,
        "#pragma pack(pop)",
        "#endif",
    ]
    return Export("\n".join(text) + "\n", list(notes.missing))


def _name(text: str) -> str:
    name = re.sub(r"\W", "_", text)
    return f"{name}_" if name in KEYWORDS or not (name[:1].isalpha() or name[:1] == "_") else name


class _Writer:
    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._structs: dict[int, tuple[ir.Structure, str]] = {}
        self._tables: dict[int, tuple[SymbolTable, str]] = {}
        self._lines: list[str] = []

    def layout(self, key: str) -> list[str]:
        """The structs of a layout, inner ones first."""
        self._lines = []
        self._walk(registry[key].layout, key)
        return self._lines

    def enums(self) -> list[str]:
        """The enums of named values; the field of a number has a comment with its enum."""
        lines = []
        for table, name in self._tables.values():
            entries: dict[str, int] = {}
            for each in (symbol for symbol in table if symbol.symbol):
                entry = f"{name.upper()}_{_name(str(each.symbol)).upper()}"
                numbered = f"{entry}_{abs(int(each))}" if entry in entries else entry
                entries[unused(numbered, entries)] = int(each)
            lines += [f"enum {name} {{", *(f"  {entry} = {value}," for entry, value in entries.items()), "};"]
        return lines

    def _walk(self, node: ir.Node, path: str) -> None:
        for name, inner in ir.walk(node):
            if isinstance(inner, ir.Structure):
                self._struct(inner, f"{path}.{name}" if name else path)

    def _struct(self, node: ir.Structure, path: str) -> str:
        """The name of a structure's struct, written at its first occurrence; "" if no field has a fixed offset."""
        if id(node) in self._structs:
            return self._structs[id(node)][1]
        title = "_".join(
            part for part in re.split(r"\W+", path) if part not in ("element", "node", "then", "otherwise")
        )
        name = unused(_name(title), {used for _, used in self._structs.values()})
        self._structs[id(node)] = node, name
        fields, offset, used = [], 0, set[str]()
        for member in node.members:
            size = ir.fixed_size(member.node)
            plain = _name(member.name)
            where = f"{path}.{member.name}"
            if size is None:
                head = self._length(member.node, plain, used, where, offset)
                fields += [head] if head else []
                self._notes.add(where, "presence or size depends on other bytes; the struct ends before this field")
                break
            if size:
                used.add(plain := unused(plain, used))
                fields.append(self._field(member.node, plain, where, offset, size))
            offset += size
        if not fields:
            self._structs[id(node)] = node, ""
            return ""
        self._lines += [f"/* {path} */", f"struct {name} {{", *fields, "};"]
        return name

    def _length(self, node: ir.Node, name: str, used: set[str], path: str, offset: int) -> str:
        """The length prefix of a field of varying size."""
        number = getattr(node, "length", None) or getattr(node, "count", None)
        kind = "count" if isinstance(node, ir.Several) else "length"
        if not isinstance(number, ir.Number) or number.groups:
            return ""
        return self._field(number, unused(f"{name}_{kind}", used), path, offset, number.size)

    def _field(self, node: ir.Node, name: str, path: str, offset: int, size: int) -> str:
        note = ""
        while not isinstance(node, (ir.Number, ir.Structure, ir.Blob, ir.BitFields)):
            if isinstance(node, ir.Named):
                name_of_table = unused(_name(node.table.name), {used for _, used in self._tables.values()})
                table = self._tables.setdefault(id(node.table), (node.table, name_of_table))
                note = f", enum {table[1]}"
            if isinstance(node, ir.Several):
                count = int(node.count.value) if isinstance(node.count, Literal) else 0
                inner = ir.fixed_size(node.element) or 1
                return f"  uint8_t {name}[{count}][{inner}]; /* offset {offset} */"
            node = getattr(node, "number", None) or getattr(node, "node")  # noqa: B009
        if isinstance(node, ir.Structure):
            return f"  struct {self._struct(node, path)} {name}; /* offset {offset} */"
        if isinstance(node, ir.BitFields):
            bits = ", ".join(f"{each.name} {_bits(each)}" for each in node.fields)
            note, node = f": {bits}", node.number
        if isinstance(node, ir.Number) and node.is_packed:
            order = "" if node.size == 1 else ", little-endian" if node.little else ", big-endian"
            if node.real:
                return f"  {'float' if node.size == 4 else 'double'} {name}; /* offset {offset}{order} */"
            return f"  {'' if node.signed else 'u'}int{8 * node.size}_t {name}; /* offset {offset}{order}{note} */"
        return f"  uint8_t {name}[{size}]; /* offset {offset} */"


def _bits(each: ir.BitField) -> str:
    return f"bit {each.shift}" if each.width == 1 else f"bits {each.shift} to {each.shift + each.width - 1}"
