"""Decoding code for bytes and text."""

from __future__ import annotations

from wirekit.compiler import ir
from wirekit.compiler.rows.code import Decoding, Place
from wirekit.compiler.rows.numbers import Numbers
from wirekit.compiler.source import whole_number
from wirekit.wire.blobs import DECIMAL

NULL = -1  # the length that means null nearly everywhere


class Blobs(Numbers):
    """Writes what reads bytes and text."""

    def _blob(self, code: Decoding, node: ir.Blob, path: Place, kind: str = "bytes") -> str:
        """Bytes, and their extent as the function's; ``kind`` is what those are that the node has no other word for."""
        value, start = code.fresh("v"), "" if isinstance(node.length, ir.Number) else code.here()
        kind = "text" if node.text else "filler" if node.filler else kind
        if node.length is None:
            code.put(f"{value} = b[p:{path.limit}]")
            code.move(f"p = {path.limit}")
            if node.part:
                code.put(f"S.part = {value}")
        elif isinstance(node.length, ir.Number):
            # A length read from beyond the limit leads beyond it too, unless it means null.
            late = path.limit != code.leave and not node.length.groups
            prefix: list[tuple[str, ir.Node]] = [("$length", node.length)]
            (size,) = self._fixed_run(code, prefix, path.within("") if late else path, kind="length")
            start = code.here()
            self._prefixed(code, node, value, size, path.limit, late)
            shown = f'"{kind}"' if node.null is None else f'"{kind}" if {value} is not None else "absent"'
            code.extent = start, code.here(), shown
            return value
        else:
            size = code.fresh("n")
            code.put(f"{size} = {self._expression(node.length, path.scope)}")
            whole_number(code, size)
            code.put(f"if {size} < 0: raise Unusual")
            code.short(f"p + {size} > {path.limit}", path.limit)
            code.put(f"{value} = b[p:p + {size}]")
            code.move(f"p += {size}")
        code.extent = start, code.here(), f'"{kind}"'
        self._finish_blob(code, node, value)
        return value

    def _prefixed(self, code: Decoding, node: ir.Blob, value: str, size: str, limit: str, late: bool) -> None:
        if node.null is not None:
            code.put(f"if {size} {'< 0' if node.null == NULL else f'== {node.null}'}:")
            if node.null == NULL:
                code.put(f"    if {size} != {NULL}: S.differ()")
            if late:
                code.put(f"    if p > {limit}: raise Unusual")
            code.put(f"    {value} = None")
            code.put("else:")
            code.depth += 1
        after = code.fresh("p")
        code.put(f"{after} = p + {size}")
        if node.null != NULL:
            code.put(f"if {size} < 0: raise Unusual")
        code.short(f"{after} > {limit}", limit)
        code.put(f"{value} = b[p:{after}]{'.decode()' if node.text else ''}")
        code.move(f"p = {after}")
        if not node.explained:
            code.put(f"if {value}: raise Unusual")
        if node.null is not None:
            code.depth -= 1

    def _delimited(self, code: Decoding, node: ir.Delimited, path: Place) -> str:
        value, after, start = code.fresh("v"), code.fresh("p"), code.here()
        code.put(f"{after} = b.find({node.end!r}, p, {path.limit})")
        code.short(f"{after} < 0", path.limit)
        code.put(f"{value} = b[p:{after}]")
        if node.decimal:
            code.put(f"if not {self._constant(DECIMAL.fullmatch, 'decimal')}({value}): raise Unusual")
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

    def _finish_blob(self, code: Decoding, node: ir.Blob, value: str) -> None:
        if not node.explained:
            code.put(f"if {value}: raise Unusual")
        if node.text:
            code.put(f"{value} = {value}.decode()")
