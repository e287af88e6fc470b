"""Draws fields without inner fields: numbers, symbols, bits, bytes and text."""

from __future__ import annotations

from typing import Any

from wirekit.codings import Coding, CodingError, read_plainly
from wirekit.compiler import ir
from wirekit.compiler.values import LENGTH, Names, Unknown
from wirekit.strategies.choices import LONG, Rejected
from wirekit.strategies.domains import DECIMAL, LARGEST
from wirekit.strategies.drawing import Drawing
from wirekit.strategies.packing import pack, size_of
from wirekit.wire.stream import Scope


class Fields(Drawing):
    """Draws fields."""

    def _number(self, node: ir.Number, forced: dict[Names, Any]) -> Any:
        if () in forced and forced[()] is not None:
            return self.number(node, _fitting(node, forced[()]))
        if node.real:
            self.advance(node.size)
            return self.choices.real(node.code)
        return self.number(node, self.choices.integer(node.low, node.high))

    def _named(self, node: ir.Named, forced: dict[Names, Any]) -> Any:
        if () in forced and forced[()] is not None:
            value = _fitting(ir.number_of(node), forced[()])
        elif not node.closed and (not self.layout.symbols(node) or self.aims(node, "unknown") or self.chance(6)):
            value = self.choices.integer(node.number.low, node.number.high)
        else:
            value = self.one_of(self.layout.symbols(node))
        value = self.number(node, value)
        if value not in node.table:
            if node.closed:
                raise Rejected
            self.take(node, "unknown")
        return value

    def _bits(self, node: ir.BitFields, forced: dict[Names, Any]) -> Any:
        if () in forced and isinstance(forced[()], dict):
            return self.number(node, forced[()])
        value: dict[str, Any] = {}
        for field in node.fields:
            if (field.name,) in forced:
                value[field.name] = forced[field.name,]
            elif field.table is not None and not self.chance(6):
                value[field.name] = self.one_of([int(symbol) for symbol in field.table if symbol < 1 << field.width])
            else:
                number = self.choices.integer(0, field.most)
                value[field.name] = bool(number) if field.width == 1 and field.table is None else number
        return self.number(node, value)

    def _constant(self, node: ir.Constant, value: Any) -> Any:
        data = pack(node.node, value) if isinstance(value, int) else None
        if data is None:
            self.advance(ir.fixed_size(node.node))
        else:
            if self.overlaid(data) != data:
                raise Rejected
            self.advance(len(data))
        return value

    def _blob(self, node: ir.Blob, scope: Scope, forced: dict[Names, Any], *, some: bool = False) -> Any:
        if node.length is None:
            return self._bytes_to_limit(node, some=some)
        if isinstance(node.length, ir.Number):
            return self._prefixed(node, node.length, forced)
        try:
            size = self._value(node.length, scope)
        except Unknown:
            size = 0 if node.filler else self.upto(8)
        if not isinstance(size, int) or not 0 <= size <= 64 * LARGEST:
            raise Rejected
        if node.filler:
            self.advance(None)
            return bytes(ir.fixed_size(node) or 0)
        if forced.get(()) is not None:
            return self._sized(forced[()], forced[()].encode() if node.text else forced[()], size)
        data = self.overlaid(self._content(node, size))
        self.advance(size)
        return data.decode(errors="surrogateescape") if node.text else data

    def _sized(self, value: Any, data: bytes, size: int) -> Any:
        """A value for a field of a fixed size, whose bytes are these."""
        if len(data) != size or self.overlaid(data) != data:
            raise Rejected
        self.advance(size)
        return value

    def _content(self, node: ir.Blob, size: int) -> bytes:
        if node.text:
            return bytes(32 + byte % 95 for byte in self.choices.exactly(size))
        return self.choices.exactly(size)

    def _text_or_bytes(self, node: ir.Blob, most: int) -> Any:
        """Drawn content of at most a number of bytes."""
        if self.pieces <= 0:
            return "" if node.text else b""
        value: Any = self.choices.text() if node.text else self.choices.data()
        size = len(value.encode()) if node.text else len(value)
        return value if size <= most else value[:0]

    def _prefixed(self, node: ir.Blob, number: ir.Number, forced: dict[Names, Any]) -> Any:
        value: Any
        if () in forced:
            value = forced[()]
        elif (LENGTH,) in forced:
            content = self._content(node, forced[LENGTH,])
            value = content.decode() if node.text else content
        elif node.null is not None and self._null(node, 4):
            value = None
        elif node.null != 0 and self.aims(node, "empty"):
            value = "" if node.text else b""
        elif self.aims(node, "some"):
            value = "x" if node.text else b"x"
        elif number.high <= 255 and self.chance(16):
            value = number.high * ("x" if node.text else b"x")
        else:
            value = self._text_or_bytes(node, number.high)
        if node.null == 0 and not value:
            value = None  # both have the same bytes
        size = 0 if value is None else len(value.encode() if node.text else value)
        self.take(node, "null" if value is None else "some" if size else "empty")
        self.advance(size_of(number, (node.null or 0) if value is None else size) + size)
        return value

    def _coded(self, node: ir.Blob, coding: Coding, scope: Scope, forced: dict[Names, Any]) -> Any:
        """A value of an encoding or function, from drawn bytes."""
        if () in forced and coding.text:
            return self._coded_text(node, coding, forced[()])
        wants = bool(self.wants)
        data = self._blob(node, scope, {})
        if data is None:
            return None
        near = coding.nearest(data)
        if near != data and wants:
            raise Rejected
        if len(near) != len(data):
            self.advance(None)
        try:
            return read_plainly(coding, near)
        except CodingError:
            raise Rejected from None

    def _coded_text(self, node: ir.Blob, coding: Coding, text: str | None) -> str | None:
        """A text in another encoding; its length prefix, if any, counts its bytes."""
        number, null = node.length, node.null
        data = b"" if text is None else coding.encode(text)
        if not isinstance(number, ir.Number):
            self._sized(text, data, len(data))
        else:
            self.advance(size_of(number, null or 0 if text is None else len(data)) + len(data))
        return None if null == 0 and not data else text

    def _delimited(self, node: ir.Delimited, forced: dict[Names, Any]) -> Any:
        """A number, or the text of a line without the delimiter in it."""
        if () in forced:
            value = forced[()]
        elif node.decimal:
            value = self.choices.integer(-DECIMAL, DECIMAL)
        else:
            value = self.choices.text().replace("\n", "" if node.lines else "\n").replace(node.end.decode(), "")
            if self.wants and self.at is not None:
                required = max(want.end for want in self.wants) - self.at
                value = self.overlaid(b" " * required).decode(errors="replace") + value
        self.advance(len(str(value).encode() if node.decimal else value.encode()) + len(node.end))
        return value

    def _bytes_to_limit(self, node: ir.Blob, *, some: bool = False) -> Any:
        empty: Any = "" if node.text else b""
        tail, self.tail = self.tail, None
        unexplained = self.clean and not node.explained
        if tail is not None and not unexplained:
            data = self._cut(*tail)
            self.advance(len(data))
            self.full = True
            return data.decode(errors="surrogateescape") if node.text else data
        if self.full or unexplained:
            self.full = True
            return empty
        value = self._text_or_bytes(node, 2 * max(LONG))
        if some and not value:
            value = "x" if node.text else b"x"
        if self.wants and self.at is not None:
            data = value.encode() if node.text else value
            needed = max(want.end for want in self.wants) - self.at
            if data or any(want.must for want in self.wants):
                data = self.overlaid(data + bytes(max(0, needed - len(data))))
            value = data.decode(errors="surrogateescape") if node.text else data
        self.advance(len(value.encode(errors="surrogateescape") if node.text else value))
        self.full = True
        return value

    def _cut(self, node: ir.Several, items: list[Any], scope: Scope) -> bytes:
        """The bytes after a list that tolerates an incomplete element: none, such an element, or the end marker."""
        choice = self.upto(3)
        if choice == 3 and node.until and len(items) >= node.except_first:
            return node.until + self.choices.exactly(self.upto(3))
        if choice >= 2 and not (self.pieces <= 0 and self.layout.refers(node.element)):
            element = self._written(node.element, self._apart(node.element, scope), scope)
            if len(element) > 1:
                return element[: 1 + self.upto(len(element) - 2)]
        return b""


def _fitting(node: ir.Number | None, value: Any) -> Any:
    """A value that is asked for.

    Raises:
        Rejected: the number cannot hold it; it is for another alternative.
    """
    if node is not None and not node.real and not node.low <= value <= node.high:
        raise Rejected
    return value
