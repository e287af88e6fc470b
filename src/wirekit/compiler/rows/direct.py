"""Building directly from mappings, without records: Python code, generated from the IR, that writes plain values.

Like ``rows.build``, but the value of a structure is a dict. It accepts numbers, text, bytes (or their hex), lists and
dicts. For anything else, such as the JSON form of a symbol or a ``$keep``, it raises ``Unusual``, and the value is
loaded and built in two steps.
"""

from __future__ import annotations

from typing import Any

from wirekit.compiler import ir
from wirekit.compiler.rows.build import Builder
from wirekit.compiler.rows.build_code import Building
from wirekit.compiler.source import Scope, Unusual, by_name, choosing, units


def octets(value: Any) -> bytes:
    """The bytes of an object with the buffer protocol, or of hex."""
    if isinstance(value, str):
        return bytes.fromhex(value)
    if not isinstance(value, (bytes, bytearray)):
        raise Unusual
    return bytes(value)


def sequence(value: Any) -> None:
    """Raises ``Unusual`` for all values, as their elements are not loaded."""
    raise Unusual


def ignored(value: Any) -> None:
    """Accepts the value of a field that is not read."""
    if not (value is None or isinstance(value, (int, bytes))):
        raise Unusual


class DirectBuilder(Builder):
    """Generates the encoder of one schema: a function of (state, buffer, mapping) that appends to the buffer."""

    NAMES = Builder.NAMES | by_name(octets, sequence, ignored)
    purpose = "direct"

    def _begin(self, code: Building, node: ir.Structure, x: str) -> None:
        if self._members_read(node, choosing) & {node.members[index].name for index in node.computed}:
            code.add_line("raise Unusual")  # the value in the mapping decides the layout, not the following bytes
        code.add_line(f"if {x}.__class__ is not dict: raise Unusual")
        code.add_line(f"{_entries_left(x)} = len({x})")

    def _end(self, code: Building, x: str) -> None:
        code.add_line(f"if {_entries_left(x)}: raise Unusual")

    def _leave_out(self, code: Building, member: ir.Member, x: str) -> None:
        code.add_line(f"if {member.name!r} in {x}:")
        code.add_line(f"    ignored({x}[{member.name!r}])")
        code.add_line(f"    {_entries_left(x)} -= 1")

    @staticmethod
    def _source(x: str, name: str) -> str:
        return f"{x}[{name!r}]"

    @staticmethod
    def _read_or_none(x: str, name: str) -> str:
        return f"{x}.get({name!r})"

    def _take(self, code: Building, member: ir.Member, x: str, value: str, default: str | None) -> None:
        code.add_line(f"if {member.name!r} in {x}:")
        code.add_line(f"    {value} = {self._source(x, member.name)}")
        code.add_line(f"    {_entries_left(x)} -= 1")
        code.add_line(f"else: {value} = {default}" if default is not None else "else: raise Unusual")
        if isinstance(member.node, ir.Ahead):
            code.add_line(f"ignored({value})")

    def _default_bits(self, node: ir.BitFields, value: Any) -> str | None:
        return str(value) if type(value) is int else None

    def _node(self, code: Building, node: ir.Node, x: str, scope: Scope | None) -> None:
        if isinstance(node, ir.Named) and not node.closed:
            node = node.number
        elif isinstance(node, ir.Constant) and x:
            code.add_line(f"ignored({x})")
        super()._node(code, node, x, scope)

    def _bits(self, code: Building, node: ir.BitFields, x: str) -> None:
        number = node.number
        if any(hasattr(int, bit.name) for bit in node.fields):
            code.add_line("raise Unusual")
            return
        code.add_line(f"if {x}.__class__ is not int or not 0 <= {x} < {1 << 8 * number.size}: raise Unusual")
        code.add(number.code.upper(), number.size, x, little=number.little)

    def _packed(self, code: Building, node: ir.Packed, x: str, scope: Scope | None) -> None:
        code.add_line(f"if {x}.__class__ is Opened: raise Unusual")  # mappings inside a record are not loaded
        super()._packed(code, node, x, scope)

    def _protobuf(self, code: Building, node: ir.Protobuf, x: str) -> None:
        from wirekit.wire.protobuf import load_message

        loaded = code.let("v", f"{self._constant(load_message, 'load')}({self._message(node)}, {x})")
        super()._protobuf(code, node, loaded)


def _entries_left(x: str) -> str:
    """The variable with the number of entries of a mapping that are not read yet."""
    return f"left_{x}"


unit, builder = units(DirectBuilder)
"""Functions that return the encoder of a schema's mappings, and its module."""
