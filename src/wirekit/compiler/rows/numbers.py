"""Decoding code for numbers, symbols and bit fields: adjacent numbers are one struct call."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from math import copysign

from wirekit.compiler import ir
from wirekit.compiler.ir import bare, fixed
from wirekit.compiler.rows.code import Decoding, DecodingGenerator, Place
from wirekit.errors import Misuse
from wirekit.values import SymbolTable
from wirekit.varints import SHORT


class Numbers(DecodingGenerator):
    """Generates code that reads numbers."""

    def _number(self, code: Decoding, node: ir.Node, path: Place, kind: str = "number") -> str:
        """One number, which may be a varint; ``kind`` is the kind of its span."""
        if fixed(node) is None:
            return self._varint(code, node, path, kind)
        (value,) = self._numbers(code, [(path, node)], kind)
        return value

    def _numbers(self, code: Decoding, fields: list[tuple[Place, ir.Node]], kind: str = "number") -> Iterator[str]:
        """Numbers of fixed size, read by one struct call.

        Yields the variables one by one: a constant can read members that the caller has added to its scope.
        """
        numbers = [number for _, node in fields if (number := fixed(node)) is not None]
        variables = [code.fresh("n") for _ in numbers]
        self._unpacked(code, numbers, variables, fields[0][0].limit)
        back = sum(number.size for number in numbers)
        for (path, node), number, variable in zip(fields, numbers, variables, strict=True):
            if path.written:
                self._add_spans(code, node, path, back, back - number.size, kind)
            yield self._meaning(code, node, variable, path, f"p - {back}")
            back -= number.size

    @staticmethod
    def _add_spans(code: Decoding, node: ir.Node, path: Place, start: int, end: int, kind: str) -> None:
        """Records the span of a number that begins and ends a number of bytes before the position."""
        node = ir.core(node)
        if not isinstance(node, ir.BitFields):
            code.add_span(path, code.here(start), code.here(end), f'"{kind}"')
            return
        for bit in node.fields:
            code.add_span(path.to(bit.name), code.here(start), code.here(end), '"bit"', f"{bit.shift}, {bit.width}")
        code.add_span(path, code.here(start), code.here(end), '"bits"')

    def _varint(self, code: Decoding, node: ir.Node, path: Place, kind: str) -> str:
        """Reads a varint, with ``Unusual`` if it has more bytes than necessary; returns its value."""
        number = ir.varying(node)
        if number is None or number.form is None:
            raise Misuse(f"{self.key}: a {type(node).__name__} is not a number")
        value, after, start = code.fresh("n"), code.fresh("p"), code.here()
        form = self._constant(number.form, number.form.kind)
        code.add_line(f"{value}, {after} = {form}.read(b, p, {path.limit})")
        code.short(f"{after} == {SHORT}", path.limit)
        code.add_line(f"if {after} - p != {form}.size({value}): raise Unusual")
        meaning = self._meaning(code, node, value, path, "p")
        code.move(f"p = {after}")
        code.add_span(path, start, code.here(), f'"{kind}"')
        return meaning

    def _unpacked(self, code: Decoding, numbers: list[ir.Number], variables: list[str], e: str) -> None:
        """Reads numbers before the limit; with the limit "" the bytes are known to suffice."""
        little = any(number.little for number in numbers)
        letters = [number.code if number.is_packed else f"{number.size}s" for number in numbers]
        layout = struct.Struct(("<" if little else ">") + "".join(letters))
        name = f"unpack_{'le' if little else 'be'}_{layout.format[1:]}"
        self.names[name] = layout.unpack_from
        end = code.let("p", f"p + {layout.size}") if e else ""
        if e:
            code.short(f"{end} > {e}", e)
        code.add_line(f"{', '.join(variables)}{',' if len(variables) == 1 else ''} = {name}(b, p)")
        for number, variable in zip(numbers, variables, strict=True):
            if not number.is_packed:
                order = "little" if number.little else "big"
                code.add_line(f"{variable} = int.from_bytes({variable}, {order!r}, signed={number.signed})")
        code.move(f"p = {end}" if end else f"p += {layout.size}")

    def _meaning(self, code: Decoding, node: ir.Node, number: str, path: Place, place: str) -> str:
        """The value that a number represents."""
        match node:
            case ir.Number(real=real):
                if real and path.written:
                    code.add_line(f"if {number} != {number}: raise Unusual")
                return number
            case ir.Boolean():
                if path.written:
                    code.add_line(f"if {number} != 0 and {number} != 1: S.differ()")
                return f"({number} != 0)"
            case ir.Named(table=table, closed=closed):
                return self._named(code, table, closed, number)
            case ir.BitFields():
                return self._split(code, node, number)
            case ir.Optional():
                return self._meaning(code, node.node, number, path, place)
            case ir.Constant():
                value = self._meaning(code, node.node, number, path, place)
                return self._constant_of(code, node, value, path, place)
        raise Misuse(f"{self.key}: a {type(node).__name__} is not a number")

    def _named(self, code: Decoding, table: SymbolTable, closed: bool, number: str) -> str:
        symbol_by_number = self._constant(table._by_value, "T")
        value = code.fresh("v")

        def find() -> None:
            if closed:
                code.add_line(f"{value} = {symbol_by_number}[{number}]")
            else:
                code.add_line(f"{value} = {symbol_by_number}.get({number})")
                code.add_line(f"if {value} is None: {value} = Symbol({number}, None, '')")

        code.unless_same([number], find)
        return value

    @contextmanager
    def _unless_null(self, code: Decoding, number: str, null: int | None, value: str, path: Place) -> Iterator[None]:
        """The value under a length or count; absent if that means null."""
        if null is None:
            yield
            return
        with code.branch(f"if {number} <= {null}:"):
            code.add_line(f"if {number} != {null}: S.differ()")
            self._absent(code, value, path)
        with code.branch("else:"):
            yield

    @staticmethod
    def _end(code: Decoding, size: str, end: str, path: Place) -> None:
        """A variable with the position after a number of bytes, checked against the limit."""
        code.add_line(f"{end} = p + {size}")
        code.short(f"{end} > {path.limit}", path.limit)

    def _constant_of(self, code: Decoding, node: ir.Constant, value: str, path: Place, place: str) -> str:
        expected = self._expression(node.value, path.scope)
        number, sign, signs = bare(node.node), self._constant(copysign, "sign"), ""
        if isinstance(number, ir.Number) and number.real:  # 0.0 equals -0.0, but their bytes differ
            signs = f" or {sign}(1, {value}) != {sign}(1, {expected})"
        code.add_line(f"if {value} != {expected}{signs}: raise Unusual")
        if not node.fatal:
            self._verdict(code, path, "constant", value, place)
        return value
