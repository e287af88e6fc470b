"""Building code for constants, bit fields, bytes and text."""

from __future__ import annotations

from wirekit.compiler import ir
from wirekit.compiler.expressions import Literal
from wirekit.compiler.ir import bare
from wirekit.compiler.rows.build_code import Building, put_number
from wirekit.compiler.rows.build_state import flag, integer, octets, real, sequence
from wirekit.compiler.source import Generator, Scope, field_of, named, whole_number
from wirekit.values import Symbol
from wirekit.wire.blobs import is_decimal
from wirekit.wire.compressed import Opened
from wirekit.wire.message_fields import elements


class Plain(Generator):
    """Generates the encoder of one schema: a function of (state, buffer, value) that appends to the buffer.

    Each subclass generates the code of some kinds of nodes. ``x`` is the variable with the value.
    """

    NAMES = named(integer, real, flag, octets, sequence, elements, Symbol, Opened)
    ROLES = ("condition", "default", "length", "value")
    purpose = "build"
    arguments = "S, o, x"

    def _function(self, header: str, node: ir.Node, scope: Scope | None) -> list[str]:
        code = Building([header], module=self.names)
        self._node(code, node, "x", scope)
        code.settle()
        if len(code.lines) == 1:
            code.put("pass")
        return code.done()

    def _node(self, code: Building, node: ir.Node, x: str, scope: Scope | None) -> None:
        """Generates the code of a node of any kind."""
        raise NotImplementedError

    def _constant_of(self, code: Building, node: ir.Constant, scope: Scope | None) -> None:
        number = node.node.number if isinstance(node.node, ir.Named) and not node.node.closed else node.node
        if isinstance(node.value, Literal) and type(node.value.value) is int and isinstance(number, ir.Number):
            put_number(code, number, str(node.value.value))
            return
        value = code.fresh("v")
        code.put(f"{value} = {self._expression(node.value, scope)}")
        self._node(code, node.node, value, scope)

    def _bits(self, code: Building, node: ir.BitFields, x: str) -> None:
        kind = self._constant(node.record, "R")
        code.put(f"if {x}.__class__ is not {kind}: raise Unusual")
        values, fits, sum_of = [], [], []
        for bit in node.fields:
            value = code.fresh("b")
            code.put(f"{value} = {field_of(x, bit.name)}")
            values.append(value)
            fits.append(f"0 <= {value} < {1 << bit.width}")
            sum_of.append(f"{value} << {bit.shift}" if bit.shift else value)
        number = code.fresh("n")

        def join() -> None:
            code.put(f"if not ({' and '.join(fits)}): raise Unusual")
            code.put(f"{number} = {' | '.join(sum_of) if len(sum_of) > 1 else f'0 | {sum_of[0]}'}")
            code.put(f"if {number}.__class__ is not int: raise Unusual")

        code.unless_same(values, join)
        base = bare(node.number)
        if isinstance(base, ir.Number):
            code.add(base.code.upper(), base.size, number, little=base.little)

    def _blob(self, code: Building, node: ir.Blob, x: str, scope: Scope | None) -> None:
        if isinstance(node.length, ir.Number):
            self._prefixed(code, node, node.length, x)
            return
        data = self._bytes(code, node, x)
        match node.length:
            case None:
                code.append(data)
                if node.part:
                    code.put(f"S.part = {x}")
            case Literal(value=int(size)) if not node.filler and size > 0:
                code.put(f"if len({data}) != {size}: raise Unusual")
                code.add(f"{size}s", size, data)
            case length:
                number = code.fresh("n")
                code.put(f"{number} = {self._expression(length, scope)}")
                whole_number(code, number)
                code.put(f"if {number} < 0: raise Unusual")
                if node.filler:
                    code.append(f"{data} if len({data}) == {number} else S.zeros({number})")
                else:
                    code.put(f"if len({data}) != {number}: raise Unusual")
                    code.append(data)

    def _delimited(self, code: Building, node: ir.Delimited, x: str) -> None:
        data = code.fresh("d")
        if node.decimal:
            code.put(f"if {x}.__class__ is not int: raise Unusual")
            code.put(f"{data} = b'%d' % {x}")
            code.put(f"if not {self._constant(is_decimal, 'decimal')}({data}): raise Unusual")
        else:
            code.put(f"{data} = {x}.encode()")
            other = f"b'\\n' in {data} or " if node.lines else ""
            code.put(f"if {other}{node.end!r} in {data} + {node.end[:-1]!r}: raise Unusual")
        code.append(f"{data} + {node.end!r}")

    def _prefixed(self, code: Building, node: ir.Blob, number: ir.Number, x: str) -> None:
        if node.null is None:
            data = self._bytes(code, node, x)
            size = f"len({data})"
        else:
            data, size = code.fresh("d"), code.fresh("n")
            code.put(f"if {x} is None: {data}, {size} = b'', {node.null}")
            code.put("else:")
            code.put(f"    {data} = {_octets(node, x)}")
            code.put(f"    {size} = len({data})")
        put_number(code, number, size)
        code.append(data)

    @staticmethod
    def _bytes(code: Building, node: ir.Blob, x: str) -> str:
        """The variable with the bytes of a value."""
        data = code.fresh("d")
        code.put(f"{data} = {_octets(node, x)}")
        return data


def _octets(node: ir.Blob, x: str) -> str:
    return f"{x}.encode()" if node.text else f"{x} if {x}.__class__ is bytes else octets({x})"
