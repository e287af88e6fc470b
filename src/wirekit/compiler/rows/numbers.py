"""Decoding code for numbers, symbols and bit fields: adjacent numbers are one struct call."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from wirekit.compiler import ir
from wirekit.compiler.ir import bare, fixed
from wirekit.compiler.rows.code import Decoding, Place, Writing
from wirekit.errors import Misuse
from wirekit.values import SymbolTable
from wirekit.varints import SHORT

LARGEST_TABLE = 2  # bytes of a number whose bit fields are remembered


class Numbers(Writing):
    """Writes what reads numbers."""

    def _fixed_run(
        self,
        code: Decoding,
        members: list[tuple[str, ir.Node]],
        path: Place,
        kind: str = "number",
    ) -> Iterator[str]:
        """Members of fixed size, read by one struct call; ``kind`` is that of their spans, "" for none.

        The variables come one by one: a constant can read the members that the caller added to its scope before.
        """
        numbers = [number for _, node in members for number in fixed(node)]
        if not numbers:
            yield from (self._varint(code, node, path.to(name) if name else path, kind) for name, node in members)
            return
        size = sum(number.size for number in numbers)
        variables = [code.fresh("n") for _ in numbers]
        end = self._unpacked(code, numbers, variables, path.limit)
        start = "p"
        if any(isinstance(node, ir.Constant) and not node.fatal for _, node in members):
            start = code.fresh("s")
            code.put(f"{start} = p")
        code.move(f"p = {end}" if end else f"p += {size}")
        offset, index = 0, 0
        for name, node in members:
            numbers_here = fixed(node)
            place = f"{start} + {offset}" if start != "p" else "p"
            where = path.to(name) if name else path
            width = sum(number.size for number in numbers_here)
            if kind:
                self._lies(code, node, where, size - offset, size - offset - width, kind)
            yield self._meaning(code, node, variables[index], where, place)
            offset += width
            index += len(numbers_here)

    @staticmethod
    def _lies(code: Decoding, node: ir.Node, path: Place, start: int, end: int, kind: str) -> None:
        """Records where a number lies, which begins and ends so many bytes before the position."""
        node = ir.core(node)
        if not isinstance(node, ir.BitFields):
            code.lies(path, code.here(start), code.here(end), f'"{kind}"')
            return
        for bit in node.fields:
            code.lies(path.to(bit.name), code.here(start), code.here(end), '"bit"', f"{bit.shift}, {bit.width}")
        code.lies(path, code.here(start), code.here(end), '"bits"')

    def _varint(self, code: Decoding, node: ir.Node, path: Place, kind: str) -> str:
        """Reads a varint, written in as few bytes as it needs, and gives what it stands for."""
        number = ir.varying(node)
        if number is None or number.form is None:
            raise Misuse(f"{self.key}: a {type(node).__name__} is not a number")
        value, after, start = code.fresh("n"), code.fresh("p"), code.here()
        form = self._constant(number.form, number.form.kind)
        code.put(f"{value}, {after} = {form}.read(b, p, {path.limit})")
        code.short(f"{after} == {SHORT}", path.limit)
        code.put(f"if {after} - p != {form}.size({value}): raise Unusual")
        code.move(f"p = {after}")
        code.lies(path, start, code.here(), f'"{kind}"')
        return self._meaning(code, node, value, path, "p")

    def _unpacked(self, code: Decoding, numbers: list[ir.Number], variables: list[str], e: str) -> str:
        """Reads numbers at the position, if the limit lets; the position stays. A limit of "" is known to let.

        Returns:
            The variable with the position behind them, "" if there is none.
        """
        little = any(number.little for number in numbers)
        letters = [number.code if number.is_packed else f"{number.size}s" for number in numbers]
        layout = struct.Struct(("<" if little else ">") + "".join(letters))
        name = f"unpack_{'le' if little else 'be'}_{layout.format[1:]}"
        self.names[name] = layout.unpack_from
        end = code.fresh("p") if e else ""
        if e:
            code.put(f"{end} = p + {layout.size}")
            code.short(f"{end} > {e}", e)
        code.put(f"{', '.join(variables)}{',' if len(variables) == 1 else ''} = {name}(b, p)")
        for number, variable in zip(numbers, variables, strict=True):
            if not number.is_packed:
                order = "little" if number.little else "big"
                code.put(f"{variable} = int.from_bytes({variable}, {order!r}, signed={number.signed})")
        return end

    def _meaning(self, code: Decoding, node: ir.Node, number: str, path: Place, place: str) -> str:
        """The value that a number stands for."""
        match node:
            case ir.Number(real=True):
                code.put(f"if {number} != {number}: raise Unusual")
                return number
            case ir.Number():
                return number
            case ir.Boolean():
                code.put(f"if {number} != 0 and {number} != 1: S.differ()")
                return f"({number} != 0)"
            case ir.Named(table=table, closed=closed):
                return self._named(code, table, closed, number)
            case ir.BitFields():
                return self._bits(code, node, number)
            case ir.Optional():
                return self._meaning(code, node.node, number, path, place)
            case ir.Constant():
                value = self._meaning(code, node.node, number, path, place)
                return self._constant_of(code, node, value, path, place)
        raise Misuse(f"{self.key}: a {type(node).__name__} is not a number")

    def _named(self, code: Decoding, table: SymbolTable, closed: bool, number: str) -> str:
        known = self._constant(table._by_value, "T")
        value = code.fresh("v")

        def find() -> None:
            if closed:
                code.put(f"{value} = {known}[{number}]")
            else:
                code.put(f"{value} = {known}.get({number})")
                code.put(f"if {value} is None: {value} = Symbol({number}, None, '')")

        code.unless_same([number], find)
        code.plain[value] = number
        return value

    def _constant_of(self, code: Decoding, node: ir.Constant, value: str, path: Place, place: str) -> str:
        code.put(f"if {value} != {self._expression(node.value, path.scope)}: raise Unusual")
        if not node.fatal:
            self._verdict(code, path, "constant", value, place)
        return value

    def _bits(self, code: Decoding, node: ir.BitFields, number: str) -> str:
        record = node.record
        base = bare(node.number)
        if not isinstance(base, ir.Number):
            raise Misuse(f"{self.key}: bit fields lie in a plain number")
        values = [self._bit(bit, f"(x >> {bit.shift} & {bit.most})") for bit in node.fields]
        if id(node) not in self._splitters:
            self._held.append(node)
            self._splitters[id(node)] = f"bits{len(self._splitters)}"
            name = self._splitters[id(node)]
            split = [f"def {name}(x):", f"    x &= {(1 << 8 * base.size) - 1}", f"    return ({', '.join(values)},)"]
            self._functions.append(split)
        name = self._splitters[id(node)]
        if base.size > LARGEST_TABLE:
            return self._made(code, record, [f"*{name}({number})"])
        cache = f"{name}_known"
        self.names.setdefault(cache, {})
        split_value = code.fresh("t")

        def find() -> None:
            code.put(f"try: {split_value} = {cache}[{number}]")
            code.put(f"except KeyError: {split_value} = {cache}[{number}] = {name}({number})")

        code.unless_same([number], find)
        return self._made(code, record, [f"*{split_value}"])

    def _bit(self, bit: ir.BitField, number: str) -> str:
        if bit.table is not None:
            return f"{self._constant(bit.table, 'table')}({number})"
        return f"({number} == 1)" if bit.width == 1 else number
