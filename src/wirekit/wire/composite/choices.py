"""Optional fields, and choices between layouts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirekit.errors import Limit, Misuse, WireError, first_of
from wirekit.values import shown
from wirekit.wire.arguments import Expression, at_least, check_cases
from wirekit.wire.blobs import Bytes, rest
from wirekit.wire.derived import Checked, Const, Default, Length
from wirekit.wire.node import NOTHING, Node, Wrapping, evaluate, shown_value, wrapping
from wirekit.wire.numbers import Bits, Flag, Integer, Symbols
from wirekit.wire.stream import Reader, Scope, Selected, Writer, join_path

FARTHEST = (1 << 31) - 1
"""The most bytes ahead; columns count in 64 bits."""


class _Optional(Wrapping):
    """An optional field; if absent, its value is None and it takes no bytes.

    If the field is present and its value is null, ``$keep`` names it, so that the null is written.
    """

    magic = b""  # a present field begins with these bytes

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        start, present = len(stream.buffer), obj is not None or stream.is_kept(wrapped=True)
        if present:
            overrides = stream.overrides
            with wrapping(stream, stream.path):
                obj = self.inner._build(obj, stream, context, path)
            if not self.magic or stream.overrides != overrides or stream.is_kept():
                return obj
        stream.undecided.append(Selected(start, join_path(stream.path), self.magic, present))
        return obj

    def _present(self, stream: Reader, context: Scope, path: str) -> Any:
        with wrapping(stream, stream.session.path):
            value = self.inner._parse(stream, context, path)
        if value is None:
            stream.keep(wrapped=True)
        return value

    def settled(self, context: Scope) -> Node:
        return self.inner.settled(context)

    def default(self, context: Scope) -> Any:
        return None


class If(_Optional):
    """A field that is present if a ``this`` expression is true; otherwise the value is None."""

    def __init__(self, condition: Expression, inner: Node) -> None:
        super().__init__(inner)
        self.condition = condition

    def _parse(self, stream: Reader, context: Scope, path: str) -> Any:
        return self.inner._parse(stream, context, path) if evaluate(self.condition, context) else stream.absent()

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        if evaluate(self.condition, context):
            return self.inner._build(obj, stream, context, path)
        if obj is not None:
            raise stream.wrong("no value, because the field's condition is false", shown(obj))
        return obj

    def default(self, context: Scope) -> Any:
        return self.inner.default(context) if evaluate(self.condition, context) else None


class Switch(Node):
    """One of several layouts, selected by a ``this`` expression or a tuple of them.

    Args:
        on: the expression, or a tuple of expressions; a symbol counts as its number.
        cases: {value: node}; {(value, …): node} if ``on`` is a tuple. The node of a case without bytes is ``Struct()``.
        default: the layout for other values; without one, any other value is Wrong.
    """

    def __init__(
        self, on: Expression | tuple[Expression, ...], cases: Mapping[Any, Node], default: Node | None = None
    ) -> None:
        super().__init__()
        if not cases and default is None:
            raise Misuse("Switch: pass at least one case, or default=")
        check_cases("Switch", on, cases)
        self.on = on
        self.cases = dict(cases)
        self.otherwise = default

    def parts(self) -> list[tuple[str, Node]]:
        parts = [(str(value), node) for value, node in self.cases.items()]
        return [*parts, ("default", self.otherwise)] if self.otherwise is not None else parts

    def _key(self, context: Scope) -> Any:
        if isinstance(self.on, tuple):
            return tuple(evaluate(part, context) for part in self.on)
        return evaluate(self.on, context)

    def _chosen(self, context: Scope) -> Node | None:
        key = self._key(context)
        try:
            return self.cases.get(key, self.otherwise)
        except TypeError:  # a list, say, that is to be built
            return self.otherwise

    @property
    def takes_all(self) -> bool:
        return all(node.takes_all for _, node in self.parts())

    def settled(self, context: Scope) -> Node:
        node = self._chosen(context)
        return self if node is None else node.settled(context)

    def _required(self, stream: Reader | Writer, context: Scope) -> Node:
        node = self._chosen(context)
        if node is None:
            key = shown_value(self._key(context), self.on, context)
            raise stream.wrong(f"one of {first_of(list(self.cases))}", key)
        return node

    def _parse(self, stream: Reader, context: Scope, path: str) -> Any:
        return self._required(stream, context)._parse(stream, context, path)

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        return self._required(stream, context)._build(obj, stream, context, path)

    def load(self, obj: Any, context: Scope) -> Any:
        node = self._chosen(context)
        return obj if node is None else node.load(obj, context)

    def default(self, context: Scope) -> Any:
        node = self._chosen(context)
        return NOTHING if node is None else node.default(context)


class IfThenElse(Switch):
    """One of two layouts, selected by a ``this`` expression."""

    def __init__(self, condition: Expression, then: Node, otherwise: Node) -> None:
        super().__init__(condition, {True: then}, otherwise)
        self.condition = condition
        self.then = then
        self.otherwise: Node = otherwise

    def parts(self) -> list[tuple[str, Node]]:
        return [("then", self.then), ("else", self.otherwise)]

    def _key(self, context: Scope) -> bool:
        return bool(evaluate(self.condition, context))


class IfNext(_Optional):
    """A field that is present if the next bytes are these; otherwise the value is None.

    Building refuses a value that does not begin with them, and None before such bytes.
    """

    def __init__(self, magic: bytes, inner: Node) -> None:
        super().__init__(inner)
        if not magic:
            raise Misuse("IfNext: magic must have at least one byte")
        self.magic = magic

    def _parse(self, stream: Reader, context: Scope, path: str) -> Any:
        end = stream.position + len(self.magic)
        if end > stream.limit or stream.buffer[stream.position : end] != self.magic:
            return stream.absent()
        return self._present(stream, context, path)


class IfMore(_Optional):
    """A field that is present if any byte is left before the limit; otherwise the value is None.

    Building refuses None before other bytes.
    """

    def _parse(self, stream: Reader, context: Scope, path: str) -> Any:
        return self._present(stream, context, path) if stream.position < stream.limit else stream.absent()


class OrBytes(Wrapping):
    """A layout, or all bytes before the limit if they do not fit the layout.

    The value of the layout must not be a string. Bytes that do not fit are a gap with a bad ``layout`` check,
    whose note names the error. An exceeded limit (``Limit``) is still an error.
    """

    @property
    def takes_all(self) -> bool:
        return True

    def _parse(self, stream: Reader, context: Scope, path: str) -> Any:
        session = stream.session
        mark = session.mark()
        start, limit, bounded, nested = stream.position, stream.limit, stream.bounded, stream.nested
        leave = stream.leave
        contained, session.contained = session.contained, None
        try:
            return self.inner._parse(stream, context, path)
        except Limit:
            raise
        except WireError as error:
            session.rewind(mark)
            stream.position, stream.limit, stream.bounded, stream.nested = start, limit, bounded, nested
            stream.leave = leave
            stream.check("layout", None, None, False, start, f"{error.path}: {error.reason}")
            data = stream.take(stream.left)
            if data:
                stream.gap(start, stream.position)
            stream.span(start, "gap")
            return data
        finally:
            session.contained = contained

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        if isinstance(obj, (bytes, bytearray, memoryview)):
            stream.write(bytes(obj))
            stream.written()
            return obj
        return self.inner._build(obj, stream, context, path)

    def load(self, obj: Any, context: Scope) -> Any:
        return rest().load(obj, context) if isinstance(obj, str) else self.inner.load(obj, context)

    def default(self, context: Scope) -> Any:
        return self.inner.default(context)


class Lookahead(Wrapping):
    """The number ``at`` bytes ahead, read without consuming it.

    Building writes nothing for it, and does not compare it with the bytes that follow. ``Default(Lookahead(uint8),
    this.kind)`` takes it from the field that follows.

    Args:
        inner: the number: an integer, a flag, symbols or bits of fixed size.
        at: how many bytes ahead.
    """

    def __init__(self, inner: Node, at: int = 0) -> None:
        super().__init__(inner)
        at_least("Lookahead", "at", at, 0)
        if at > FARTHEST:
            raise Misuse(f"Lookahead: at must be at most {FARTHEST}, not {at}")
        self.at = at

    def _parse(self, stream: Reader, context: Scope, path: str) -> Any:
        start, size = stream.position, self.at + (fixed_size(self.inner) or 0)
        if start + size > stream.limit:
            raise stream.short(size)
        session = stream.session
        mark, frames = session.mark(), session.frames
        stream.position += self.at
        session.frames = []  # a lookahead is not written, so it needs no details for that
        try:
            return self.inner._parse(stream, context, path)
        finally:
            stream.position, session.frames = start, frames
            session.forget_spans(mark)
            stream.span(start, "ahead", depth=mark[0])

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        return obj


def bare(node: Node) -> Node:
    """The node without the conditions and the default around it."""
    while isinstance(node, (If, IfMore, Default)):
        node = node.inner
    return node


def fixed_size(node: Node) -> int | None:
    """Size of a number, or of a byte string of fixed length; None for other nodes."""
    while isinstance(node, (Const, Default, Checked, Length, Symbols, Flag, Bits)):
        node = node.inner
    if isinstance(node, Integer):
        return None if node.form else node.length
    return node.length if isinstance(node, Bytes) and isinstance(node.length, int) else None


def present(node: Node, scope: Scope, value: Any) -> bool:
    """Whether a conditional length or checksum is present."""
    while isinstance(node, (If, IfMore)):
        if isinstance(node, If):
            if not evaluate(node.condition, scope):
                return False
        elif value is None:
            return False
        node = node.inner
    return True
