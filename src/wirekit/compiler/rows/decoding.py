"""The rows engine: Python code, generated from the IR, that decodes valid bytes, one value at a time.

Adjacent fixed fields are one ``struct`` call, positions and limits are local variables, and the path of a verdict is
composed only on request. The generated code reports wrong checksums, bytes after a frame's fields, a frame's field of
unknown meaning, and missing fields of a protobuf message. For every other irregularity, such as an exceeded bound or a
number in an unusual form, it raises ``Unusual``, and the reference engine decodes the same bytes and explains them,
with path, offset and all fields before the error. So both engines return the same value, verdicts and errors, and only
one of them has to explain errors.

``rows.numbers``, ``rows.structures``, ``rows.lists`` and this module generate the code of each kind of node;
``rows.state`` is its runtime. The source has a file name of its own, which tracebacks show; ``wirekit explain
KEY`` prints it.

The trace engine is the same code with the spans of the fields (docs/spans.md). A span is recorded where its field ends;
the spans between two branches are recorded by one call.
"""

from __future__ import annotations

import functools
from contextlib import nullcontext
from dataclasses import replace

from wirekit.codings import read_plainly
from wirekit.compiler import ir
from wirekit.compiler.ir import fixed
from wirekit.compiler.rows.code import Decoding, Place
from wirekit.compiler.rows.lists import Lists
from wirekit.compiler.rows.structures import Structures
from wirekit.compiler.source import integer_variable, is_large, units
from wirekit.wire.blobs import is_decimal


class Decoder(Structures, Lists):
    """Generates the decoder of one schema, with code for every kind of node."""

    def _node(self, code: Decoding, node: ir.Node, path: Place) -> str:
        match node:
            case ir.Structure():
                return self._structure(code, node, path)
            case ir.Several():
                return self._several(code, node, path)
            case ir.Blob():
                if node.sealed:
                    self._verdict(code, path, "decryption", "None", "p", status="absent")
                value = self._blob(code, node, path)
                code.add_span(path, *code.extent)
                if node.coding is not None:
                    read = self._constant(functools.partial(read_plainly, node.coding), "read")
                    code.add_line(f"if {value} is not None: {value} = {read}({value})")
                return value
            case ir.Delimited():
                return self._delimited(code, node, path)
            case ir.When():
                return self._maybe(code, self._expression(node.condition, path.scope), node.node, path)
            case ir.WhenNext(magic=magic):
                size = len(magic)
                begins = f"b[p:p + {size}] == {magic!r} and p + {size} <= {path.limit}"
                return self._maybe(code, begins if magic else f"p < {path.limit}", node.node, path, by_bytes=True)
            case ir.Either():
                value = code.fresh("v")
                with code.branch(f"if {self._expression(node.condition, path.scope)}:"):
                    self._branch(code, value, node.then, path)
                with code.branch("else:"):
                    self._branch(code, value, node.otherwise, path)
                return value
            case ir.Choice():
                value = code.fresh("v")
                unit, above = self._chosen(code, node, path.scope)
                return self._called(code, f"{unit}(S, ", path, above, value)
            case ir.Ahead():
                return self._ahead(code, node, path)
            case ir.Bounded():
                return self._bounded(code, node, path)
            case ir.Optional():
                return self._node(code, node.node, path)
            case ir.Fallback():
                leave, code.leave = code.leave, ""  # if the node is cut, bytes take its place
                value = self._node(code, node.node, path)
                code.leave = leave
                return value
            case ir.Reference():
                return self._called(code, f"S.refer({node.key!r}, resolve({node.key!r}), ", path)
            case ir.Packed():
                return self._packed(code, node, path)
            case ir.Protobuf():
                return self._protobuf(code, node, path)
            case ir.Constant() if fixed(node) is None:
                start = "p" if node.fatal else code.fresh("s")
                if not node.fatal:
                    code.add_line(f"{start} = p")
                return self._constant_of(code, node, self._node(code, node.node, path), path, start)
            case _:
                return self._number(code, node, path)

    def _branch(self, code: Decoding, value: str, node: ir.Node, path: Place) -> None:
        if is_large(node):
            name, above = self._call(node, path.scope)
            self._called(code, f"{name}(S, ", path, above, value)
        else:
            code.add_line(f"{value} = {self._node(code, node, path)}")

    @staticmethod
    def _called(code: Decoding, call: str, path: Place, above: str = "", value: str = "") -> str:
        """Generates a call of a function with some first arguments; returns the variable with its value."""
        value = value or code.fresh("v")
        code.records = True
        code.flush()
        code.move(f"{value}, p = {call}b, p, {path.limit}, {code.path(path)}{above})")
        return value

    def _maybe(self, code: Decoding, condition: str, node: ir.Node, path: Place, *, by_bytes: bool = False) -> str:
        """Reads a node that may be absent; if its own bytes decide, a null that is present is not an absence."""
        value = code.fresh("v")
        with code.branch(f"if {condition}:"):
            self._branch(code, value, node, path)
            if by_bytes:
                code.add_line(f"if {value} is None: raise Unusual")
        with code.branch("else:"):
            self._absent(code, value, path)
        return value

    def _ahead(self, code: Decoding, node: ir.Ahead, path: Place) -> str:
        end = node.at + ir.minimum(node.node)
        code.short(f"p + {end} > {path.limit}", path.limit)
        code.move(f"p += {node.at}")
        value = self._number(code, node.node, replace(path, written=False))
        code.move(f"p -= {end}")
        code.add_span(path, code.here(), code.here(), '"ahead"')
        return value

    def _bounded(self, code: Decoding, node: ir.Bounded, path: Place) -> str:
        size, value = self._number(code, node.length, path.to("$length"), "length"), code.fresh("v")
        with self._unless_null(code, size, node.null, value, path):
            limit = code.fresh("e")
            if node.length.signed:
                code.add_line(f"if {size} < 0: raise Unusual")
            self._end(code, size, limit, path)
            code.add_line(f"{value} = {self._node(code, node.node, path.within(limit))}")
            code.add_line(f"if p != {limit}: raise Unusual")
            if node.null is not None:
                code.add_line(f"if {value} is None: raise Unusual")
        return value

    def _packed(self, code: Decoding, node: ir.Packed, path: Place) -> str:
        value, codec = self._blob(code, node.blob, path), code.fresh("c")
        start, end, kind = code.extent
        on = [self._expression(part, path.scope) for part in node.on]
        code.unless_same(
            on, lambda: code.add_line(f"{codec} = {self._codecs(node)}.get({self._key(node.on, path.scope)})")
        )
        with code.branch(f"if {codec} is not None and {value} is not None:"):
            name, above = self._call(node.node, path.scope)
            code.records = True
            size = "None" if node.size is None else self._expression(node.size, path.scope)
            arguments = f"{codec}, {value}, {size}, {node.size is not None}, {name}, {code.path(path)}{above}"
            code.add_span(path.to("compressed"), start, end, '"bytes"')
            code.flush()
            code.add_line(f"{value} = S.open({arguments})")
            code.add_span(path, start, end, '"record"')
        if code.tracing:
            with code.branch("else:"):
                code.add_span(path, start, end, kind)
        return value

    def _protobuf(self, code: Decoding, node: ir.Protobuf, path: Place) -> str:
        from wirekit.compiler.rows.messages import message

        kind, read = self._message(node), self._constant(message, "message")
        code.flush()
        value = code.let("v", f"{read}(S, {kind}, b, p, {path.limit}, {code.path(path)})")
        code.move(f"p = {path.limit}")
        return value

    # Bytes and text.

    def _blob(self, code: Decoding, node: ir.Blob, path: Place) -> str:
        """Bytes, or UTF-8 text; sets the extent of the function."""
        value = code.fresh("v")
        kind = "text" if node.is_text else "filler" if node.filler else "bytes"
        if isinstance(node.length, ir.Number):
            return self._prefixed(code, node, node.length, value, path, kind)
        start, end = code.here(), path.limit
        if node.length is not None:
            size, end = integer_variable(code, self._expression(node.length, path.scope)), code.fresh("p")
            code.add_line(f"if {size} < 0: raise Unusual")
            self._end(code, size, end, path)
        self._content(code, node, value, end, path)
        if node.part:
            code.add_line(f"S.part = {value}")
        shown = f'"{kind}"' if node.explained else f'"gap" if {value} else "{kind}"'
        code.extent = start, code.here(), shown
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
                code.add_line(f"if {size} != {node.null}: S.differ()")
                if late:
                    code.add_line(f"if p > {path.limit}: raise Unusual")
                code.add_line(f"{value} = None")
        with nullcontext() if node.null is None else code.block("else:"):
            if length.signed and node.null != -1:
                code.add_line(f"if {size} < 0: raise Unusual")
            self._end(code, size, end, path)
            self._content(code, node, value, end, path)
        code.extent = start, code.here(), shown
        return value

    @staticmethod
    def _content(code: Decoding, node: ir.Blob, value: str, end: str, path: Place) -> None:
        code.add_line(f"{value} = b[p:{end}]{'.decode()' if node.text else ''}")
        if not node.explained:
            code.add_line(f"if {value}: S.unexplained({code.path(path)}, p, {end})")
        code.move(f"p = {end}")

    def _delimited(self, code: Decoding, node: ir.Delimited, path: Place) -> str:
        value, after, start = code.fresh("v"), code.fresh("p"), code.here()
        code.add_line(f"{after} = b.find({node.end!r}, p, {path.limit})")
        code.short(f"{after} < 0", path.limit)
        code.add_line(f"{value} = b[p:{after}]")
        if node.decimal:
            code.add_line(f"if not {self._constant(is_decimal, 'decimal')}({value}): raise Unusual")
            code.add_line(f"{value} = int({value})")
        else:
            if node.lines:
                code.add_line(f"if b'\\n' in {value}: raise Unusual")
            code.add_line(f"{value} = {value}.decode()")
        code.move(f"p = {after} + {len(node.end)}")
        end = code.here(len(node.end))
        code.add_span(path, start, end, '"number"' if node.decimal else '"text"')
        code.add_span(path.to("$delimiter"), end, code.here(), '"delimiter"')
        return value


class Tracer(Decoder):
    """Generates the decoder that also records the spans of the fields."""

    tracing = True
    purpose = "trace"


unit, decoder = units(Decoder)
"""Functions that return the decoder of a schema, and its module; the next two, the decoder that records spans."""
tracing_unit, tracer = units(Tracer)
