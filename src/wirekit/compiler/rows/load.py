"""The loading part of the rows engine: Python code, generated from the IR, that converts JSON mappings to records.

It does the work of the nodes' own ``load`` for dicts, lists and plain values; the mapping is never changed. For
anything else, and for a value that does not fit, it raises ``Unusual``, and the nodes' ``load`` converts the same
mapping, or explains the error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from wirekit.compiler import ir
from wirekit.compiler.source import Code, Generator, Scope, Unusual, by_name, choosing, field_of, is_large, units
from wirekit.values import Record, Symbol, plain_mapping
from wirekit.wire.compressed import load_opened
from wirekit.wire.dollar_entries import load_bytes, load_extras
from wirekit.wire.message_fields import counted
from wirekit.wire.numbers import load_bit, load_integer, load_real, load_symbol


class State(NamedTuple):
    """The context from the caller."""

    params: Mapping[str, Any]


# Generated code calls these functions for values of unusual classes.


def other(value: Any) -> Any:
    """Returns a value that needs no conversion; raises ``Unusual`` for others."""
    if plain_mapping(value) or isinstance(value, list):
        raise Unusual
    return value


def extras(record: Record, mapping: Mapping[str, Any]) -> None:
    """The entries of a mapping that are not fields."""
    if any(name not in record._fields for name in mapping if not str(name).startswith("$")):
        raise Unusual
    record._extra = load_extras(mapping, record._fields)


class Loader(Generator):
    """Generates the loader of one schema: (state, mapping) → record."""

    NAMES = by_name(other, extras, counted, plain_mapping, Symbol) | {"packed": load_opened, "number": load_integer}
    NAMES |= {"real": load_real, "symbol": load_symbol, "octets": load_bytes, "bit": load_bit}
    evaluated = staticmethod(choosing)
    purpose = "load"
    arguments = "S, x"

    def _function(self, header: str, node: ir.Node, scope: Scope | None) -> list[str]:
        code = Code([header])
        code.add_line(f"return {self._node(code, node, 'x', scope)}")
        return code.all_lines()

    # Each of the following methods generates the code of one kind of node, and returns the variable with its value.
    # ``x`` is the variable with the JSON form.

    def _node(self, code: Code, node: ir.Node, x: str, scope: Scope | None) -> str:
        match node:
            case ir.Structure():
                return self._structure(code, node, x, scope)
            case ir.Several():
                return self._several(code, node, x, scope)
            case ir.Number():
                code.add_line(f"if {x}.__class__ is not int: {x} = {'real' if node.real else 'number'}({x})")
            case ir.Boolean():
                code.add_line(f"if {x}.__class__ is not bool: {x} = number({x})")
            case ir.Named():
                self._named(code, node, x)
            case ir.BitFields():
                self._bits(code, node, x)
            case ir.Blob(text=False, coding=None):
                if node.sealed:
                    code.add_line(f"if plain_mapping({x}): raise Unusual")
                code.add_line(f"if {x}.__class__ is not bytes: {x} = octets({x})")
            case ir.Qualified() | ir.Ahead():
                return self._node(code, node.node, x, scope)
            case ir.Conditional() | ir.Bounded():
                return self._unless(code, f"{x} is not None", node.node, x, scope)
            case ir.Fallback():
                code.add_line(f"if {x}.__class__ is str: {x} = octets({x})")
                return self._unless(code, f"{x}.__class__ is not bytes", node.node, x, scope)
            case ir.Either():
                value = self._unless(code, self._expression(node.condition, scope), node.then, x, scope)
                self._arm(code, "else:", node.otherwise, x, value, scope)
                return value
            case ir.Choice():
                chosen, above = self._chosen(code, node, scope)
                code.add_line(f"{x} = {chosen}(S, {x}{above})")
            case ir.Reference():
                code.add_line(f"{x} = resolve({node.key!r})(S, {x})")
            case ir.Packed():
                self._packed(code, node, x, scope)
            case ir.Protobuf():
                self._protobuf(code, node, x)
        return x

    def _unless(self, code: Code, condition: str, node: ir.Node, x: str, scope: Scope | None) -> str:
        """Generates code that loads a value if a condition holds, and otherwise leaves it unchanged."""
        value = code.let("v", x)
        self._arm(code, f"if {condition}:", node, x, value, scope)
        return value

    def _arm(self, code: Code, header: str, node: ir.Node, x: str, value: str, scope: Scope | None) -> None:
        with code.block(header):
            if is_large(node):
                name, above = self._call(node, scope)
                code.add_line(f"{value} = {name}(S, {x}{above})")
            else:
                code.add_line(f"{value} = {self._node(code, node, x, scope)}")

    def _structure(self, code: Code, node: ir.Structure, x: str, scope: Scope | None) -> str:
        inner, used = Scope({}, scope), self._members_read(node, self.evaluated)
        with code.block(f"if {x}.__class__ is dict:"):
            remaining = code.let("c", f"len({x})")
            record = self._blank(code, node.record)
            for index, member in enumerate(node.members):
                with code.block(f"if {member.name!r} in {x}:"):
                    value = code.let("v", f"{x}[{member.name!r}]")
                    loaded = self._node(code, member.node, value, inner)
                    for derived in node.derived:
                        if derived.at == index and derived.quantity == "count":
                            name = node.members[derived.of].name
                            code.add_line(f"{loaded} = counted({derived.field!r}, {loaded}, {x}.get({name!r}))")
                    code.add_line(f"{field_of(record, member.name)} = {loaded}")
                    code.add_line(f"{remaining} -= 1")
                    if member.name in used and loaded != value:
                        code.add_line(f"{value} = {loaded}")
                if member.name in used:
                    inner.variables[member.name] = value
                    with code.block("else:"):
                        code.add_line(self._absent(node, index, value))
            code.add_line(f"if {remaining}: extras({record}, {x})")
        code.add_line(f"else: {record} = other({x})")
        return record

    def _absent(self, node: ir.Structure, index: int, value: str) -> str:
        """The value that expressions read for a field that is left out."""
        member = node.members[index].node
        default = "None" if index in node.computed and isinstance(member, ir.Number) else self._default(member, None)
        return "raise Unusual" if default is None else f"{value} = {default}"

    def _several(self, code: Code, node: ir.Several, x: str, scope: Scope | None) -> str:
        items, item = code.fresh("l"), code.fresh("x")
        with code.block(f"if {x}.__class__ is list:"):
            code.add_line(f"{items} = []")
            with code.block(f"for {item} in {x}:"):
                code.add_line(f"{items}.append({self._node(code, node.element, item, scope)})")
        code.add_line(f"else: {items} = other({x})")
        return items

    def _named(self, code: Code, node: ir.Named, x: str) -> None:
        symbol_by_number, table = self._constant(node.table._by_value, "T"), self._constant(node.table, "table")
        value = code.let("v", f"{symbol_by_number}.get({x}) if {x}.__class__ is int else None")
        code.add_line(f"{x} = symbol({table}, {x}) if {value} is None else {value}")

    def _bits(self, code: Code, node: ir.BitFields, x: str) -> None:
        with code.block(f"if isinstance({x}, int):"):
            code.add_line(f"{x} = {self._split(code, node, x)}")
        with code.block(f"elif plain_mapping({x}):"):
            names = self._constant(frozenset(node.record._fields), "names")
            code.add_line(f"if not {names}.issuperset({x}): raise Unusual")
            record = self._blank(code, node.record)
            for bit in node.fields:
                table = "None" if bit.table is None else self._constant(bit.table, "table")
                value = f"{x}.get({bit.name!r}, 0)"
                code.add_line(f"{field_of(record, bit.name)} = bit({bit.width}, {table}, {value})")
            code.add_line(f"{x} = {record}")

    def _packed(self, code: Code, node: ir.Packed, x: str, scope: Scope | None) -> None:
        name, above = self._call(node.node, scope)
        code.add_line(f"if {x}.__class__ is not bytes:")
        code.add_line(f"    if plain_mapping({x}): {x} = packed({x}, {name}(S, {x}.get('content'){above}))")
        code.add_line(f"    else: {x} = {x if node.blob.text else f'octets({x})'}")

    def _protobuf(self, code: Code, node: ir.Protobuf, x: str) -> None:
        from wirekit.wire.protobuf import load_message

        load = self._constant(load_message, "load")
        code.add_line(f"{x} = {load}({self._message(node)}, {x})")


unit, loader = units(Loader)
"""Functions that return the loader of a schema, and its module."""
