"""Lists: elements after a count, of a computed count, or up to the limit."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from wirekit.errors import Misuse, Short, WireError
from wirekit.values import shown
from wirekit.wire.arguments import Expression, at_least, one_of
from wirekit.wire.node import Node, evaluate, evaluate_size, expect_size, is_null, load_part, null_length
from wirekit.wire.numbers import Integer
from wirekit.wire.references import cost_of, fixed_size_of, minimum_of
from wirekit.wire.stream import Ended, Reader, Scope, Shorter, Sparse, Writer, join_path


class _Elements(Node):
    """A list of elements of one layout."""

    def __init__(self, element: Node) -> None:
        super().__init__()
        self.element = element

    @cached_property
    def cost(self) -> int:
        """Memory of an element in bytes."""
        return cost_of(self.element)

    @cached_property
    def least(self) -> int:
        """The least size by which a count of elements is bounded, in bytes."""
        return max(minimum_of(self.element), 1)

    def parts(self) -> list[tuple[str, Node]]:
        return [("element", self.element)]

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        self._write(self._listed(obj, stream), stream, context)
        return obj

    def load(self, obj: Any, context: Scope) -> Any:
        if not isinstance(obj, list):
            return obj
        return [load_part(index, self.element.load, item, context) for index, item in enumerate(obj)]

    def _read(self, number: int, stream: Reader, context: Scope) -> list[Any]:
        """Reads a number of elements, after comparing their minimal size with the bytes left before the limit.

        If that is more, the elements that are there are the partial value of the error.
        """
        needed = number * self.least
        short = stream.short(needed) if needed > stream.left else None
        if short is not None and stream.bounded == stream.leave:
            raise short
        items: list[Any] = []
        names = stream.session.path
        begin, depth = stream.position, len(names)
        try:
            for index in range(number if short is None else stream.left):
                if short is not None and not stream.left:
                    break
                names.append(index)
                items.append(self.element._parse(stream, context, ""))
                stream.charge(self.cost)
                names.pop()
            if short is not None:
                raise short
        except WireError as error:
            error.partial = items if error.partial is None else [*items, error.partial]
            if short is None:
                raise
            short.partial = error.partial
            raise short from None
        finally:
            stream.span(begin, "list", depth=depth)
        return items

    def _listed(self, obj: Any, stream: Writer) -> list[Any] | tuple[Any, ...]:
        if not isinstance(obj, (list, tuple)):
            raise stream.wrong("a list", shown(obj))
        return obj

    def _write(self, items: list[Any] | tuple[Any, ...], stream: Writer, context: Scope) -> None:
        start = len(stream.buffer)
        for index, item in enumerate(items):
            stream.path.append(index)
            self.element._build(item, stream, context, "")
            stream.path.pop()
        if len(items) > len(stream.buffer) - start:
            stream.undecided.append(Sparse(start, join_path(stream.path), len(items)))


class Array(_Elements):
    """A count and that many elements; the value is a list.

    Args:
        count: the integer that holds the count.
        element: the layout of each element.
        null: the count that means null, or None; any other negative count is Wrong.
    """

    def __init__(self, count: Integer, element: Node, *, null: int | None = None) -> None:
        super().__init__(element)
        self.count = count
        self.null = null

    def _parse(self, stream: Reader, context: Scope, path: str) -> list[Any] | None:
        start = stream.position
        number = self.count.read(stream, "$count")
        if is_null(number, self.null) and number < 0:
            if number != self.null:
                stream.note("raw", number)
            stream.absent()
            return None
        if number < 0:
            raise stream.wrong("a count of at least 0", number, start)
        return self._read(number, stream, context)

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        raw = null_length(self.null, stream)
        if obj is None:
            if self.null is None:
                raise stream.wrong("a list", "null")
            self.count._build(raw, stream, context, path)
            return obj
        items = self._listed(obj, stream)
        if len(items) > self.count.high:
            raise stream.wrong(f"at most {self.count.high} elements", len(items))
        self.count._build(len(items), stream, context, path)
        self._write(items, stream, context)
        return obj


class Repeat(_Elements):
    """A computed number of elements; the value is a list.

    Building requires that many elements. ``Default`` computes a count in an earlier field from the list.

    Args:
        count: a number or a ``this`` expression.
        element: the layout of each element.
    """

    def __init__(self, count: int | Expression, element: Node) -> None:
        super().__init__(element)
        at_least("Repeat", "count", count, 0)
        self.count = count

    def _parse(self, stream: Reader, context: Scope, path: str) -> list[Any]:
        return self._read(evaluate_size(self.count, context), stream, context)

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        items = self._listed(obj, stream)
        expect_size(self.count, "elements", len(items), stream, context)
        self._write(items, stream, context)
        return obj


class RecordsToEnd(_Elements):
    """Elements until the limit; the value is a list.

    Building refuses a list that a reader would end earlier because of ``until``. It also refuses bytes after the list
    that a reader would take as its next element; with ``short_tail="stop"`` only if elements have a fixed size.

    Args:
        element: the layout of each element.
        short_tail: how to treat a last element that the limit cuts: ``error``, or ``stop`` before it, which leaves
            its bytes to the next field. Damage inside a complete element is an error in both cases.
        until: stop before these bytes, if given.
        except_first: whether the first element may begin with these bytes.
        count: an expression for the number of elements that another field announces, verified by a ``count`` check.
    """

    def __init__(
        self,
        element: Node,
        *,
        short_tail: str = "error",
        until: bytes = b"",
        except_first: bool = False,
        count: int | Expression | None = None,
    ) -> None:
        super().__init__(element)
        one_of("RecordsToEnd", "short_tail", short_tail, ("error", "stop"))
        if except_first and not until:
            raise Misuse("RecordsToEnd: except_first needs until=")
        self.count = count
        self.short_tail = short_tail
        self.until = until
        self.except_first = except_first

    @property
    def takes_all(self) -> bool:
        return self.short_tail != "stop" and not self.until

    def _parse(self, stream: Reader, context: Scope, path: str) -> list[Any]:
        items: list[Any] = []
        session = stream.session
        bounded, nested, leave = stream.bounded, stream.nested, stream.leave
        if self.short_tail == "stop":
            stream.leave = bounded
        begin, depth = stream.position, len(session.path)
        until, first = self.until, int(self.except_first)
        while stream.position < stream.limit:
            start = stream.position
            if until and len(items) >= first and stream.buffer[start : min(start + len(until), stream.limit)] == until:
                break
            mark = session.mark()
            limit = stream.limit
            session.path.append(len(items))
            try:
                items.append(self.element._parse(stream, context, ""))
                stream.charge(self.cost)
            except WireError as error:
                if self.short_tail == "stop" and isinstance(error, Short) and error.bounded == bounded:
                    session.rewind(mark)
                    stream.position, stream.limit, stream.bounded = start, limit, bounded
                    stream.nested = nested
                    break
                error.partial = items if error.partial is None else [*items, error.partial]
                stream.span(begin, "list", depth=depth)
                raise
            if stream.position == start:
                raise stream.wrong("a record of at least one byte", "an empty one")
            session.path.pop()
        stream.leave = leave
        stream.span(begin, "list")
        if self.count is not None:
            announced = evaluate(self.count, context)
            agrees, end = announced == len(items), stream.position
            stream.check("count", announced, len(items), agrees, end, end=end)
        return items

    @cached_property
    def _least_next(self) -> int:
        """The number of bytes after the list from which on a reader takes another element; 0 if it is unknown."""
        if not self.until or self.short_tail == "error":
            return len(self.until[:1])
        return fixed_size_of(self.element) or 0

    def _write(self, items: list[Any] | tuple[Any, ...], stream: Writer, context: Scope) -> None:
        size, shorter = len(self.until), list[Shorter]()
        for index, item in enumerate(items):
            stream.path.append(index)
            start = len(stream.buffer)
            self.element._build(item, stream, context, "")
            if len(stream.buffer) == start:
                raise stream.wrong("a record of at least one byte", "an empty one")
            if size and index >= self.except_first:
                if len(stream.buffer) - start < size:
                    shorter.append(Shorter(start, join_path(stream.path), self.until))
                elif stream.buffer.startswith(self.until, start):
                    raise stream.wrong("a record", f"the bytes {self.until.hex()}, which end the list")
            stream.path.pop()
            while shorter and shorter[0].start + size <= len(stream.buffer):
                stream.decide([shorter.pop(0)], len(stream.buffer))
        stream.undecided += shorter
        stream.written(len(items))  # where an element that ends early is left to later fields
        if self._least_next:
            until = self.until if len(items) >= self.except_first else b""
            stream.undecided.append(Ended(len(stream.buffer), join_path(stream.path), until, self._least_next))

    def default(self, context: Scope) -> Any:
        return []
