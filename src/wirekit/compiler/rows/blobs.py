"""Decoding code for bytes and text."""

from __future__ import annotations

from contextlib import nullcontext

from wirekit.compiler import ir
from wirekit.compiler.rows.code import Decoding, Place
from wirekit.compiler.rows.numbers import Numbers
from wirekit.compiler.source import whole_number
from wirekit.wire.blobs import is_decimal


class Blobs(Numbers):
    """Generates code that reads bytes and text."""

    def _blob(self, code: Decoding, node: ir.Blob, path: Place, kind: str = "bytes") -> str:
        """Bytes; sets the extent of the function. ``kind`` is the kind of their span if the node gives none."""
        value = code.fresh("v")
        kind = "text" if node.text else "filler" if node.filler else kind
        if isinstance(node.length, ir.Number):
            return self._prefixed(code, node, node.length, value, path, kind)
        start, end = code.here(), path.limit
        if node.length is not None:
            size, end = code.fresh("n"), code.fresh("p")
            code.put(f"{size} = {self._expression(node.length, path.scope)}")
            whole_number(code, size)
            code.put(f"if {size} < 0: raise Unusual")
            self._end(code, size, end, path)
        self._content(code, node, value, end)
        if node.part:
            code.put(f"S.part = {value}")
        code.extent = start, code.here(), f'"{kind}"'
        return value

    def _prefixed(self, code: Decoding, node: ir.Blob, length: ir.Number, value: str, path: Place, kind: str) -> str:
        # A length beyond the limit makes the end exceed the limit too, unless it means null.
        late = path.limit != code.leave and not length.groups
        place = path.to("$length")
        size, end = self._number(code, length, place.within("") if late else place, "length"), code.fresh("p")
        start, shown = code.here(), f'"{kind}"'
        if node.null is not None:
            shown += f' if {value} is not None else "absent"'
            with code.block(f"if {size} <= {node.null}:"):
                code.put(f"if {size} != {node.null}: S.differ()")
                if late:
                    code.put(f"if p > {path.limit}: raise Unusual")
                code.put(f"{value} = None")
        with nullcontext() if node.null is None else code.block("else:"):
            if length.signed and node.null != -1:
                code.put(f"if {size} < 0: raise Unusual")
            self._end(code, size, end, path)
            self._content(code, node, value, end)
        code.extent = start, code.here(), shown
        return value

    @staticmethod
    def _content(code: Decoding, node: ir.Blob, value: str, end: str) -> None:
        code.put(f"{value} = b[p:{end}]{'.decode()' if node.text else ''}")
        code.move(f"p = {end}")
        if not node.explained:
            code.put(f"if {value}: raise Unusual")

    def _delimited(self, code: Decoding, node: ir.Delimited, path: Place) -> str:
        value, after, start = code.fresh("v"), code.fresh("p"), code.here()
        code.put(f"{after} = b.find({node.end!r}, p, {path.limit})")
        code.short(f"{after} < 0", path.limit)
        code.put(f"{value} = b[p:{after}]")
        if node.decimal:
            code.put(f"if not {self._constant(is_decimal, 'decimal')}({value}): raise Unusual")
            code.put(f"{value} = int({value})")
        else:
            if node.lines:
                code.put(f"if b'\\n' in {value}: raise Unusual")
            code.put(f"{value} = {value}.decode()")
        code.move(f"p = {after} + {len(node.end)}")
        end = code.here(len(node.end))
        code.lies(path, start, end, '"number"' if node.decimal else '"text"')
        code.lies(path.to("$delimiter"), end, code.here(), '"delimiter"')
        return value
