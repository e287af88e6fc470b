"""The building half of the rows engine: Python code, generated from the IR, that writes valid values.

Adjacent fixed fields are one ``struct`` call. Lengths and checksums are patched after the fields that they cover, or
written directly if they are known in advance. As in ``rows``, the generated code handles only the usual case. For a
value that does not fit, a field of another type, a record with ``extra``, or a mapping, it raises ``Unusual``; then the
reference engine builds the same value, or explains the error. The value itself is never changed.

``rows.build_structures`` and this module generate the code of each kind of node, with ``rows.build_code``;
``rows.build_state`` is its runtime.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from wirekit.compiler import ir
from wirekit.compiler.expressions import Literal
from wirekit.compiler.rows.build_code import Building, distance, put_number, usual
from wirekit.compiler.rows.build_state import State, Unit, flag, integer, octets, real, sequence
from wirekit.compiler.rows.build_structures import Structures
from wirekit.compiler.source import REASONS, Scope, Unusual, by_name, field_of, integer_variable, is_large, units
from wirekit.values import Symbol
from wirekit.wire.blobs import is_decimal
from wirekit.wire.compressed import Opened
from wirekit.wire.message_fields import elements

__all__ = ["REASONS", "Builder", "State", "Unit", "Unusual", "builder", "unit"]


class Builder(Structures):
    """Generates the encoder of one schema: a function of (state, buffer, value) that appends to the buffer.

    Each method generates the code of some kind of node. ``x`` is the variable with the value.
    """

    NAMES = by_name(integer, real, flag, octets, sequence, elements, Symbol, Opened)
    purpose = "build"
    arguments = "S, o, x"

    def _function(self, header: str, node: ir.Node, scope: Scope | None) -> list[str]:
        code = Building([header], module=self.names)
        self._node(code, node, "x", scope)
        code.settle()
        if len(code.lines) == 1:
            code.add_line("pass")
        return code.all_lines()

    def _node(self, code: Building, node: ir.Node, x: str, scope: Scope | None) -> None:
        match node:
            case ir.Structure():
                self._structure(code, node, x, scope)
            case ir.Number():
                usual(code, x, "float" if node.real else "int", "real" if node.real else "integer")
                put_number(code, node, x)
            case ir.Boolean():
                number = code.let("n", f"{x} if {x}.__class__ is bool else flag({x})")
                put_number(code, node.number, number)
            case ir.Named():
                code.unless_same([x] if node.closed else [], lambda: self._symbol(code, node, x))
                put_number(code, node.number, x)
            case ir.BitFields():
                self._bits(code, node, x)
            case ir.Constant():
                self._constant_of(code, node, scope)
            case ir.Optional():
                self._node(code, node.node, x, scope)
            case ir.Blob():
                self._blob(code, node, x, scope)
            case ir.Delimited():
                self._delimited(code, node, x)
            case ir.Several():
                self._several(code, node, x, scope)
            case ir.When() if ir.fixed(node.node) is not None:
                condition = self._expression(node.condition, scope)
                code.add_if(condition, lambda: self._node(code, node.node, x, scope), f"{x} is not None")
            case ir.When():
                condition = f"if {self._expression(node.condition, scope)}:"
                absent = f"if {x} is not None: raise Unusual"
                code.fork(
                    (condition, lambda: self._branch(code, node.node, x, scope)),
                    ("else:", lambda: code.add_line(absent)),
                )
            case ir.WhenNext():
                self._selected(code, node, x, scope)
            case ir.Either():
                code.fork(
                    (f"if {self._expression(node.condition, scope)}:", lambda: self._branch(code, node.then, x, scope)),
                    ("else:", lambda: self._branch(code, node.otherwise, x, scope)),
                )
            case ir.Fallback():
                code.fork(
                    (f"if {x}.__class__ is bytes:", lambda: code.append(x)),
                    ("else:", lambda: self._branch(code, node.node, x, scope)),
                )
            case ir.Choice():
                unit, above = self._chosen(code, node, scope)
                code.call(f"{unit}(S, o, {x}{above})")
            case ir.Ahead():
                pass  # the next field writes these bytes
            case ir.Bounded():
                self._unless_null(code, node.null, node.length, x, lambda: self._bounded(code, node, x, scope))
            case ir.Reference():
                code.call(f"resolve({node.key!r})(S, o, {x})")
            case ir.Packed():
                self._packed(code, node, x, scope)
            case ir.Protobuf():
                self._protobuf(code, node, x)

    def _selected(self, code: Building, node: ir.WhenNext, x: str, scope: Scope | None) -> None:
        """An optional field whose presence the bytes tell: the state compares them in the end."""
        magic = node.magic

        def place(*, present: bool) -> None:
            code.flush()
            code.add_line(
                f"S.selected.append((o, len(o), {magic!r}, {present}))" if magic else "S.ends.append((o, len(o)))"
            )

        def write() -> None:
            if magic:
                place(present=True)
            self._branch(code, node.node, x, scope)

        code.fork((f"if {x} is not None:", write), ("else:", lambda: place(present=False)))

    def _symbol(self, code: Building, node: ir.Named, x: str) -> None:
        usual(code, x, "Symbol", "integer")
        if node.closed:
            code.add_line(f"if {x} not in {self._constant(node.table._by_value, 'T')}: raise Unusual")

    def _branch(self, code: Building, node: ir.Node, x: str, scope: Scope | None) -> None:
        if is_large(node):
            unit, above = self._call(node, scope)
            code.call(f"{unit}(S, o, {x}{above})")
        else:
            self._node(code, node, x, scope)

    @staticmethod
    def _unless_null(code: Building, null: int | None, number: ir.Number, x: str, write: Callable[[], None]) -> None:
        """Generates code that writes a value under a length or count that can mean null."""
        if null is None:
            write()
        else:
            code.fork((f"if {x} is None:", lambda: put_number(code, number, str(null))), ("else:", write))

    def _several(self, code: Building, node: ir.Several, x: str, scope: Scope | None) -> None:
        count = node.count
        if isinstance(count, ir.Number):
            self._unless_null(code, node.null, count, x, lambda: self._elements(code, node, x, scope, count))
            return
        if count is not None:
            number = integer_variable(code, self._expression(count, scope))
            code.add_line(f"if len({x}) != {number}: raise Unusual")
        self._elements(code, node, x, scope)

    def _elements(
        self, code: Building, node: ir.Several, x: str, scope: Scope | None, count: ir.Number | None = None
    ) -> None:
        """The elements of a list, and before them their number if it is written."""
        element = node.element
        usual(code, x, "list", "sequence")
        if count is not None:
            put_number(code, count, f"len({x})")
        if isinstance(element, ir.Number) and not (element.real or node.until) and element.is_packed:
            pack, only = self._constant(struct.pack, "pack"), self._constant(frozenset({int}), "only")
            code.add_line(f"if not {only}.issuperset(map(type, {x})): raise Unusual")
            code.append(f"{pack}(f'{'<' if element.little else '>'}{{len({x})}}{element.code}', *{x})")
            return
        item = code.fresh("x")
        code.settle()
        sparse = node.count is not None and not node.least
        brief = ir.minimum(element) < len(node.until)
        begin = code.here() if node.except_first or sparse or brief else None
        with code.block(f"for {item} in {x}:"):
            code.end = None
            code.loops += 1
            empty = node.count is None and not ir.minimum(element)
            start = code.here() if empty or node.until else None
            self._node(code, element, item, scope)
            code.settle()
            if empty:
                code.add_line(f"if len(o) == {start}: raise Unusual")
            if node.until:
                last = len(node.until) - 1
                quick = f"o[{start} + {last}] == {node.until[last]} and " if ir.minimum(element) > last else ""
                quick += f"{start} > {begin} and " if node.except_first else ""
                code.add_line(f"if {quick}o.startswith({node.until!r}, {start}): raise Unusual")
            code.loops -= 1
        code.end = None
        if brief or (node.until and not (node.stop and ir.fixed_size(element) is None)):
            ended = f"S.lists.append((o, {begin if brief else 'len(o)'}, len(o), {node.until!r}))"
            code.add_line(f"if {x}: {ended}" if node.except_first else ended)
            if node.except_first:
                code.add_line("else: S.ends.append((o, len(o)))")
        if sparse:
            code.add_line(f"if len({x}) > len(o) - ({begin}): raise Unusual")

    def _bounded(self, code: Building, node: ir.Bounded, x: str, scope: Scope | None) -> None:
        if node.length.groups:
            outer = code.begin_apart()
            self._node(code, node.node, x, scope)
            code.end_apart(outer, node.length)
            return
        place = code.here()
        piece = code.add(node.length.code, node.length.size, None, little=node.length.little)
        self._node(code, node.node, x, scope)
        self._limit(code, [node.node])
        code.patch(place, piece, distance(place.moved(node.length.size), code.here(), 0))

    def _packed(self, code: Building, node: ir.Packed, x: str, scope: Scope | None) -> None:
        table = self._codecs(node)
        unit, above = self._call(node.node, scope)
        data = code.let("v", x)
        code.add_line(f"if {x}.__class__ is Opened:")
        code.add_line(f"    {data} = S.close({table}.get({self._key(node.on, scope)}), {x}, {unit}{above})")
        code.add_line(f"else: S.part = {x}")
        self._blob(code, node.blob, data, scope)

    def _protobuf(self, code: Building, node: ir.Protobuf, x: str) -> None:
        data = code.let("d", f"S.message({self._message(node)}, {x})")
        code.append(data)

    # Constants, bit fields, bytes and text.

    def _constant_of(self, code: Building, node: ir.Constant, scope: Scope | None) -> None:
        number = node.node.number if isinstance(node.node, ir.Named) and not node.node.closed else node.node
        if isinstance(node.value, Literal) and type(node.value.value) is int and isinstance(number, ir.Number):
            put_number(code, number, str(node.value.value))
            return
        value = code.let("v", self._expression(node.value, scope))
        self._node(code, node.node, value, scope)

    def _bits(self, code: Building, node: ir.BitFields, x: str) -> None:
        kind = self._constant(node.record, "R")
        code.add_line(f"if {x}.__class__ is not {kind}: raise Unusual")
        values, fits, sum_of = [], [], []
        for bit in node.fields:
            value = code.let("b", field_of(x, bit.name))
            values.append(value)
            fits.append(f"0 <= {value} < {1 << bit.width}")
            sum_of.append(f"{value} << {bit.shift}" if bit.shift else value)
        number = code.fresh("n")

        def join() -> None:
            code.add_line(f"if not ({' and '.join(fits)}): raise Unusual")
            code.add_line(f"{number} = {' | '.join(sum_of) if len(sum_of) > 1 else f'0 | {sum_of[0]}'}")
            code.add_line(f"if {number}.__class__ is not int: raise Unusual")

        code.unless_same(values, join)
        code.add(node.number.code.upper(), node.number.size, number, little=node.number.little)

    def _blob(self, code: Building, node: ir.Blob, x: str, scope: Scope | None) -> None:
        if node.coding is not None:
            write = self._constant(node.coding.encode, "write")
            x = code.let("v", f"{write}({x})" + (f" if {x} is not None else None" if node.null is not None else ""))
        if isinstance(node.length, ir.Number):
            self._prefixed(code, node, node.length, x)
            return
        data = code.let("d", _octets(node, x))
        match node.length:
            case None:
                code.append(data)
                if node.part:
                    code.add_line(f"S.part = {x}")
            case Literal(value=int(size)) if not node.filler and size > 0:
                code.add_line(f"if len({data}) != {size}: raise Unusual")
                code.add(f"{size}s", size, data)
            case length:
                number = integer_variable(code, self._expression(length, scope))
                code.add_line(f"if {number} < 0: raise Unusual")
                if node.filler:
                    code.append(f"{data} if len({data}) == {number} else S.zeros({number})")
                else:
                    code.add_line(f"if len({data}) != {number}: raise Unusual")
                    code.append(data)

    def _delimited(self, code: Building, node: ir.Delimited, x: str) -> None:
        if node.decimal:
            code.add_line(f"if {x}.__class__ is not int: raise Unusual")
            data = code.let("d", f"b'%d' % {x}")
            code.add_line(f"if not {self._constant(is_decimal, 'decimal')}({data}): raise Unusual")
        else:
            data = code.let("d", f"{x}.encode()")
            other = f"b'\\n' in {data} or " if node.lines else ""
            code.add_line(f"if {other}{node.end!r} in {data} + {node.end[:-1]!r}: raise Unusual")
        code.append(f"{data} + {node.end!r}")

    def _prefixed(self, code: Building, node: ir.Blob, number: ir.Number, x: str) -> None:
        if node.null is None:
            data = code.let("d", _octets(node, x))
            size = f"len({data})"
        else:
            data, size = code.fresh("d"), code.fresh("n")
            code.add_line(f"if {x} is None: {data}, {size} = b'', {node.null}")
            code.add_line("else:")
            code.add_line(f"    {data} = {_octets(node, x)}")
            code.add_line(f"    {size} = len({data})")
        put_number(code, number, size)
        code.append(data)


def _octets(node: ir.Blob, x: str) -> str:
    return f"{x}.encode()" if node.text else f"{x} if {x}.__class__ is bytes else octets({x})"


unit, builder = units(Builder)
"""Functions that return the encoder of a schema, and its module."""
