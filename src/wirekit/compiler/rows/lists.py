"""Decoding code for lists: counted, or up to the limit, which may cut the last element."""

from __future__ import annotations

import struct
from dataclasses import replace

from wirekit.compiler import ir
from wirekit.compiler.costs import cost, grows
from wirekit.compiler.rows.code import Decoding, Place
from wirekit.compiler.rows.numbers import Numbers
from wirekit.compiler.source import integer_variable


class Lists(Numbers):
    """Generates code that reads lists."""

    def _several(self, code: Decoding, node: ir.Several, path: Place) -> str:
        items = code.fresh("l")
        if node.count is None:
            start = code.here()
            self._to_the_end(code, node, items, path)
            code.add_span(path, start, code.here(), '"list"')
            return items
        if isinstance(node.count, ir.Number):
            count = self._number(code, node.count, path.to("$count"), "count")
        else:
            count = integer_variable(code, self._expression(node.count, path.scope))
        with self._unless_null(code, count, node.null, items, path):
            self._counted(code, node, items, count, path)
        return items

    def _counted(self, code: Decoding, node: ir.Several, items: str, count: str, path: Place) -> None:
        """A number of elements."""
        start = code.here()
        least = max(node.least, 1)
        code.add_line(f"if {count} < 0: raise Unusual")
        code.short(f"{count} * {least} > {path.limit} - p", path.limit)
        code.add_line(f"S.charge({count} * {cost(node.element)})")
        if isinstance(node.element, ir.Number) and not node.element.real and node.element.is_packed:
            number = node.element
            form = "<" if number.little else ">"
            unpack = self._constant(struct.unpack_from, "unpack")
            code.add_line(f"{items} = [*{unpack}(f'{form}{{{count}}}{number.code}', b, p)]")
            code.move(f"p += {count} * {number.size}")
            if code.tracing:
                code.flush()
                code.add_line(f"S.add_numbers({code.path(path)}, {start}, {number.size}, {count})")
        else:
            index = code.fresh("i")
            code.add_line(f"{items} = []")
            with code.branch(f"for {index} in range({count}):"):
                self._element(code, node, items, index, path)
                code.rewinds |= path.limit == code.leave and code.records  # by the element before
        code.add_span(path, start, code.here(), '"list"')

    def _element(self, code: Decoding, node: ir.Several, items: str, index: str, path: Place) -> None:
        code.loops += 1
        code.offset = ""
        element = path.to(f"{{{index}}}")
        if code.tracing:
            joined_path, element = code.path(element), replace(element, base=code.fresh("q"), parts=())
            code.add_line(f"{element.base} = {joined_path}")
        value = self._node(code, node.element, element)
        code.loops -= 1
        code.add_line(f"{items}.append({value})")
        if code.tracing:
            code.flush()
            code.add_line(f"S.charge_spans({element.base})")

    def _to_the_end(self, code: Decoding, node: ir.Several, items: str, path: Place) -> None:
        index, start, each, inside = code.fresh("i"), code.fresh("s"), cost(node.element), grows(node.element)
        code.add_line(f"{items} = []")
        with code.branch(f"for {index} in range(S.room // {max(each, 1)} + 1):"):
            code.add_line(f"if p >= {path.limit}: break")
            if node.until:
                size = len(node.until)
                later = f"{index} and " if node.except_first else ""
                code.add_line(f"if {later}b[p:p + {size}] == {node.until!r} and p + {size} <= {path.limit}: break")
            code.add_line(f"{start} = p")
            if node.stop:
                self._may_be_cut(code, node, items, index, start, path)
            else:
                outer, code.leave = code.leave, ""
                self._element(code, node, items, index, path)
                code.leave = outer
            if not ir.minimum(node.element):
                code.add_line(f"if p == {start}: raise Unusual")
            if inside or code.tracing:  # values in the elements, and spans, need memory as well
                code.add_line(f"S.room -= {each}")
                code.add_line("if S.room < 0: raise Unusual")
        code.add_line(f"else:\n{'    ' * (code.depth + 1)}if p < {path.limit}: raise Unusual")
        if not (inside or code.tracing):
            code.add_line(f"S.charge(len({items}) * {each})")
        if node.announced is not None:
            number = code.let("n", self._expression(node.announced, path.scope))
            code.add_line(f"if {number} != len({items}): raise Unusual")
            self._verdict(code, path, "count", number, "p")

    def _may_be_cut(self, code: Decoding, node: ir.Several, items: str, index: str, start: str, path: Place) -> None:
        """An element that the limit may cut; if it does, the position and the records are restored."""
        outer = code.leave, code.records, code.rewinds
        code.leave, code.records, code.rewinds = path.limit, False, False
        checks, sources, line = code.fresh("k"), code.fresh("o"), len(code.lines)
        room = code.fresh("r") if grows(node.element) else ""
        counted = f"S.room{', S.charged, len(spans)' if code.tracing else ''}"
        if room or code.tracing:
            room = room or code.fresh("r")
            code.add_line(f"{room} = {counted}")
        with code.branch("try:"):
            self._element(code, node, items, index, path)
        code.add_line("except Cut:")
        code.add_line(f"    p = {start}")
        if code.tracing:
            code.add_line(f"    S.room, S.charged, {room} = {room}")
            code.add_line(f"    del spans[{room}:]")
        elif room:
            code.add_line(f"    S.room = {room}")
        if code.rewinds:
            code.lines.insert(line, "    " * code.depth + f"{checks}, {sources} = len(S.checks), len(S.sources)")
            code.add_line(f"    del S.checks[{checks}:], S.sources[{sources}:]")
        code.add_line("    break")
        recorded = code.records
        code.leave, code.records, code.rewinds = outer
        code.records |= recorded
