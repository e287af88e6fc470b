"""Decoding code for bytes and text."""

from __future__ import annotations

from wirekit.compiler import ir
from wirekit.compiler.rows.code import Decoding
from wirekit.compiler.rows.numbers import Numbers
from wirekit.compiler.source import Scope, whole_number
from wirekit.wire.blobs import DECIMAL

NULL = -1  # the length that means null nearly everywhere


class Blobs(Numbers):
    """Writes what reads bytes and text."""

    def _blob(self, code: Decoding, node: ir.Blob, scope: Scope | None, e: str) -> str:
        value = code.fresh("v")
        if node.length is None:
            code.put(f"{value} = b[p:{e}]")
            code.put(f"p = {e}")
            if node.part:
                code.put(f"S.part = {value}")
        elif isinstance(node.length, ir.Number):
            # A length read from beyond the limit leads beyond it too, unless it means null.
            late = e != code.leave and not code.read and not node.length.groups
            (size,) = self._fixed_run(code, [("", node.length)], scope, (), "" if late else e)
            self._prefixed(code, node, value, size, e, late)
            return value
        else:
            size = code.fresh("n")
            code.put(f"{size} = {self._expression(node.length, scope)}")
            whole_number(code, size)
            code.put(f"if {size} < 0: raise Unusual")
            code.short(f"p + {size} > {e}", e)
            code.put(f"{value} = b[p:p + {size}]")
            code.put(f"p += {size}")
        self._finish_blob(code, node, value)
        return value

    def _prefixed(self, code: Decoding, node: ir.Blob, value: str, size: str, e: str, late: bool) -> None:
        if node.null is not None:
            code.put(f"if {size} {'< 0' if node.null == NULL else f'== {node.null}'}:")
            tests = [f"{size} != {NULL}"] if node.null == NULL else []
            tests += [f"p > {e}"] if late else []
            if tests:
                code.put(f"    if {' or '.join(tests)}: raise Unusual")
            code.put(f"    {value} = None")
            code.put("else:")
            code.depth += 1
        after = code.fresh("p")
        code.put(f"{after} = p + {size}")
        if node.null != NULL:
            code.put(f"if {size} < 0: raise Unusual")
        code.short(f"{after} > {e}", e)
        code.put(f"{value} = b[p:{after}]{'.decode()' if node.text else ''}")
        code.put(f"p = {after}")
        if not node.explained:
            code.put(f"if {value}: raise Unusual")
        if node.null is not None:
            code.depth -= 1

    def _delimited(self, code: Decoding, node: ir.Delimited, e: str) -> str:
        value, after = code.fresh("v"), code.fresh("p")
        code.put(f"{after} = b.find({node.end!r}, p, {e})")
        code.short(f"{after} < 0", e)
        code.put(f"{value} = b[p:{after}]")
        if node.decimal:
            code.put(f"if not {self._constant(DECIMAL.fullmatch, 'decimal')}({value}): raise Unusual")
            code.put(f"{value} = int({value})")
        else:
            if node.lines:
                code.put(f"if b'\\n' in {value}: raise Unusual")
            code.put(f"{value} = {value}.decode()")
        code.put(f"p = {after} + {len(node.end)}")
        return value

    def _finish_blob(self, code: Decoding, node: ir.Blob, value: str) -> None:
        if not node.explained:
            code.put(f"if {value}: raise Unusual")
        if node.text:
            code.put(f"{value} = {value}.decode()")
