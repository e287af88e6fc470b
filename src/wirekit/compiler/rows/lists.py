"""Decoding code for lists: counted, or up to the limit, which may cut the last element."""

from __future__ import annotations

import struct
from dataclasses import replace

from wirekit.compiler import ir
from wirekit.compiler.costs import cost, grows
from wirekit.compiler.rows.code import Decoding, Place, Together
from wirekit.compiler.rows.numbers import Numbers
from wirekit.compiler.rows.state import Site
from wirekit.compiler.source import whole_number

Places = list[tuple[tuple[str, ...], str, ir.Number]]


class Lists(Numbers):
    """Writes what reads lists."""

    def _several(self, code: Decoding, node: ir.Several, path: Place) -> str:
        items = code.fresh("l")
        if node.count is None:
            start = code.here()
            self._to_the_end(code, node, items, path)
            code.lies(path, start, code.here(), '"list"')
            return items
        if isinstance(node.count, ir.Number):
            (count,) = self._fixed_run(code, [("$count", node.count)], path, kind="count")
        else:
            count = code.fresh("n")
            code.put(f"{count} = {self._expression(node.count, path.scope)}")
            whole_number(code, count)
        if node.null is None:
            self._counted(code, node, items, count, path)
            return items
        with code.block(f"if {count} <= {node.null} and {count} < 0:"):
            code.put(f"if {count} != {node.null}: S.differ()")
            self._absent(code, items, path)
        with code.block("else:"):
            self._counted(code, node, items, count, path)
        return items

    def _counted(self, code: Decoding, node: ir.Several, items: str, count: str, path: Place) -> None:
        """So many elements."""
        start = code.here()
        least = max(ir.minimum(node.element), 1)
        code.put(f"if {count} < 0: raise Unusual")
        code.short(f"{count} * {least} > {path.limit} - p", path.limit)
        code.put(f"S.charge({count} * {cost(node.element)})")
        if isinstance(node.element, ir.Number) and not node.element.real and node.element.is_packed:
            number = node.element
            form = "<" if number.little else ">"
            unpack = self._constant(struct.unpack_from, "unpack")
            code.put(f"{items} = [*{unpack}(f'{form}{{{count}}}{number.code}', b, p)]")
            code.move(f"p += {count} * {number.size}")
            if code.tracing:
                code.flush()
                code.put(f"S.add_numbers({code.path(path)}, {start}, {number.size}, {count})")
        else:
            index = code.fresh("i")
            outer = self._begun(code, node, index, path)
            code.put(f"{items} = []")
            with code.block(f"for {index} in range({count}):"):
                self._element(code, node, items, index, path)
                code.rewinds |= path.limit == code.leave and code.records  # by the element before
            self._ended(code, outer)
        code.lies(path, start, code.here(), '"list"')

    def _element(self, code: Decoding, node: ir.Several, items: str, index: str, path: Place) -> None:
        code.loops += 1
        code.spot = ""
        element = path.to(f"{{{index}}}")
        if code.tracing:
            whole, element = code.path(element), replace(element, base=code.fresh("q"), parts=())
            code.put(f"{element.base} = {whole}")
        value = self._node(code, node.element, element)
        code.loops -= 1
        code.put(f"{items}.append({value})")
        if code.tracing:
            code.flush()
            code.put(f"S.charge_spans({element.base})")

    def _to_the_end(self, code: Decoding, node: ir.Several, items: str, path: Place) -> None:
        index, start = f"len({items})", code.fresh("s")
        outer_list = self._begun(code, node, index, path)
        each, most = cost(node.element), code.fresh("m")
        code.put(f"{items} = []")
        code.put(f"{most} = S.room // {max(each, 1)}")
        # CPython 3.11 does not count the turns of a loop with a condition, to specialise it
        with code.block("while True:"):
            code.put(f"if p >= {path.limit}: break")
            if node.until:
                code.put(f"if {items} and b[p:p + {len(node.until)}] == {node.until!r}: break")
            code.put(f"if len({items}) > {most}: raise Unusual")
            code.put(f"{start} = p")
            if node.stop:
                self._may_be_cut(code, node, items, index, start, path)
            else:
                outer, code.leave = code.leave, ""
                self._element(code, node, items, index, path)
                code.leave = outer
            if not ir.minimum(node.element):
                code.put(f"if p == {start}: raise Unusual")
            if code.tracing:  # spans take what room there is as well
                code.put(f"S.charge({each})")
        self._ended(code, outer_list)
        if not code.tracing:
            code.put(f"S.charge(len({items}) * {each})")
        if node.announced is not None:
            number = code.fresh("n")
            code.put(f"{number} = {self._expression(node.announced, path.scope, plain=False)}")
            code.put(f"if {number} != len({items}): raise Unusual")
            self._verdict(code, path, "count", number, "p")

    def _may_be_cut(self, code: Decoding, node: ir.Several, items: str, index: str, start: str, path: Place) -> None:
        """An element that the limit may cut: then the position, and what was recorded since, is as before it."""
        outer = code.leave, code.records, code.rewinds
        code.leave, code.records, code.rewinds = path.limit, False, False
        known, opened, line = code.fresh("k"), code.fresh("o"), len(code.lines)
        room = code.fresh("r") if grows(node.element) else ""
        counted = f"S.room{', S.charged, len(spans)' if code.tracing else ''}"
        if room or code.tracing:
            room = room or code.fresh("r")
            code.put(f"{room} = {counted}")
        with code.block("try:"):
            self._element(code, node, items, index, path)
        code.put("except Cut:")
        code.put(f"    p = {start}")
        if code.tracing:
            code.put(f"    S.room, S.charged, {room} = {room}")
            code.put(f"    del spans[{room}:]")
        elif room:
            code.put(f"    S.room = {room}")
        if code.rewinds:
            code.lines.insert(line, "    " * code.depth + f"{known}, {opened} = len(S.checks), len(S.sources)")
            if code.together is not None:  # what it opened has ended an entry that holds elements before it
                code.put(f"    if len(S.checks) != {known}: raise Unusual")
                code.put(f"    del {code.together.ends}[{index} - {code.together.first}:]")
            code.put(f"    del S.checks[{known}:], S.sources[{opened}:]")
        code.put("    break")
        recorded = code.records
        code.leave, code.records, code.rewinds = outer
        code.records |= recorded

    def _together(self, code: Decoding, node: ir.Several, index: str, path: Place) -> Together | None:
        """Begins to keep the verdicts on a list's elements together, if each gets one, and of the same kind."""
        places = _verdicts(node.element, {})
        if places is None or len(places) != 1:
            return None
        ((inside, algorithm, number),) = places
        where = Place(path.base, (*path.parts, f"{{{index}}}", *inside))
        site = self._site(Site(where.template, algorithm, "ok", struct.Struct(f"{_order(number)}{number.code}")))
        ends, first = code.fresh("c"), code.fresh("f")
        code.put(f"{ends}, {first} = [], 0")
        code.verdicts = True
        entry = f"checks.append(({site}, {path.base}, {ends}, {first}, source{path.indexes}))"
        return Together(entry, ends, first, index)

    def _begun(self, code: Decoding, node: ir.Several, index: str, path: Place) -> tuple[Together | None, bool]:
        """Begins a list; returns the state from before it."""
        outer = code.together, code.judged
        code.together, code.judged = self._together(code, node, index, path), False
        return outer

    @staticmethod
    def _ended(code: Decoding, outer: tuple[Together | None, bool]) -> None:
        """Ends a list: what was kept together becomes an entry."""
        if code.together is not None:
            code.put(code.together.entry)
        code.together, code.judged = outer


def _verdicts(node: ir.Node, known: dict[int, Places | None]) -> Places | None:
    """(path, algorithm, number) of the checksums whose verdict every value gets; None if it may get others.

    What is inside compressed data does not count: that is a function of its own.
    """
    if id(node) not in known:
        known[id(node)] = _verdicts_of(node, known)
    return known[id(node)]


def _verdicts_of(node: ir.Node, known: dict[int, Places | None]) -> Places | None:
    match node:
        case ir.Structure(measures=measures, sums=sums):
            if any(measure.clip or not measure.is_limit for measure in measures):
                return None
            found: Places = []
            for member in node.members:
                inside = _verdicts(member.node, known)
                if inside is None:
                    return None
                found += [((member.name, *path), algorithm, number) for path, algorithm, number in inside]
            for total in sums:
                number = node.members[total.at].node
                if not isinstance(number, ir.Number) or not number.is_packed:
                    return None
                found.append(((node.members[total.at].name,), total.algorithm, number))
            return found
        case ir.Fallback(node=inner) | ir.Optional(node=inner):
            return _verdicts(inner, known)
        case ir.Packed() | ir.Protobuf():
            return []
        case ir.Reference() | ir.Constant(fatal=False):
            return None
        case ir.Several() if node.announced is not None:
            return None
    silent = all(_verdicts(inner, known) == [] for _, inner in ir.parts(node))
    return [] if silent else None


def _order(number: ir.Number) -> str:
    """struct's letter for the byte order."""
    return "<" if number.little else ">"
