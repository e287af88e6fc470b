"""A layout after a length prefix, and a reference to a layout by key."""

from __future__ import annotations

from typing import Any

from wirekit.errors import Limit, WireError
from wirekit.wire.node import Node, Wrapping, is_null, null_length, wrapping
from wirekit.wire.numbers import Integer
from wirekit.wire.references import referred
from wirekit.wire.stream import Reader, Scope, Writer


class Sized(Wrapping):
    """A length prefix and a layout inside that length; the value is the value of the layout.

    Args:
        length: the integer that holds the number of bytes.
        inner: the layout.
        null: the length that means null, or None. If the length differs from it but the value inside is null,
            ``$keep`` names the field.
        contain: whether decoding continues after this field if the layout inside has an error. The error is still
            reported, and the bytes that the layout did not read are a gap. No expression may refer to a field inside.
    """

    def __init__(self, length: Integer, inner: Node, *, null: int | None = None, contain: bool = False) -> None:
        super().__init__(inner)
        self.length = length
        self.null = null
        self.contain = contain

    def _parse(self, stream: Reader, context: Scope, path: str) -> Any:
        start = stream.position
        size = self.length.read(stream, "$length")
        if is_null(size, self.null):
            if size != self.null:
                stream.note("raw", size)
            return stream.absent()
        if size < 0:
            raise stream.wrong("a length of at least 0", size, start)
        begin = stream.position
        outer = stream.limit
        is_cut = begin + size > outer
        if is_cut and stream.bounded == stream.leave:
            raise stream.short(size)
        names = stream.session.path
        depth, bounded, nested, leave = len(names), stream.bounded, stream.nested, stream.leave
        before = stream.cut
        stream.limit = end = min(begin + size, outer)
        stream.cut = end if is_cut else -1
        stream.bounded += not is_cut
        try:
            with wrapping(stream, names):
                value = self.inner._parse(stream, context, path)
        except WireError as inside:
            if not self.contain or not stream.contain(inside, depth, begin, end) or is_cut:
                raise
            stream.bounded, stream.nested, stream.leave = bounded, nested, leave
            stream.trailing(stream.position, end)
            stream.position = end
            return inside.partial
        finally:
            stream.limit, stream.cut = outer, before
        if value is None and self.null is not None:
            stream.keep(wrapped=True)
        stream.bounded -= not is_cut
        if stream.position < end:
            stream.trailing(stream.position, end)
            stream.note("trailing", bytes(stream.buffer[stream.position : end]), wrapped=True)
            stream.position = end
        if is_cut:
            stream.position = begin
            error = stream.short(size)
            stream.position = end
            error.partial = value
            raise error
        return value

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        if obj is None and self.null is not None and not stream.is_kept(wrapped=True):
            self.length._build(null_length(self.null, stream), stream, context, path)
            return obj
        start = len(stream.buffer)
        self.length._build(0, stream, context, path)
        begin, undecided = len(stream.buffer), len(stream.undecided)
        with wrapping(stream, stream.path):
            obj = self.inner._build(obj, stream, context, path)
        trailing = stream.noted("trailing", wrapped=True)
        if trailing:
            stream.write(trailing)
        stream.end_limit(undecided, len(stream.buffer))
        size = self.length.check(len(stream.buffer) - begin, stream)
        stream.buffer[start:begin] = self.length.write(size, stream)
        return obj


class Ref(Node):
    """Another registered schema, by key.

    A layout can contain itself this way, up to 8 levels deep. A protocol whose values are nested more deeply raises
    that limit: ``Protocol(…, limits=wirekit.Limits(depth=40))``.
    """

    def __init__(self, key: str) -> None:
        super().__init__()
        self.key = key

    @property
    def target(self) -> Node:
        """The node of the key."""
        return referred(self.key).node

    @property
    def cost(self) -> int:
        """Memory of a value in bytes."""
        return referred(self.key).cost

    def _parse(self, stream: Reader, context: Scope, path: str) -> Any:
        limits = stream.session.limits
        if stream.nested >= limits.depth:
            raise Limit("depth", limits.depth, stream.nested + 1, **stream.where())
        stream.charge(self.cost)
        start, nested, names = stream.position, stream.nested, stream.session.path
        depth = len(names)
        stream.nested += 1
        try:
            value = self.target._parse(stream, context, path)
        except RecursionError:
            stream.position = start
            del names[depth:]
            error = Limit("depth", nested, nested + 1, **stream.where())
            error.hint = f"Python's stack ends before the limit of {limits.depth}"
            raise error from None
        stream.nested -= 1
        return value

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        return self.target._build(obj, stream, context, path)

    def load(self, obj: Any, context: Scope) -> Any:
        return self.target.load(obj, context)

    def default(self, context: Scope) -> Any:
        return self.target.default(context)
