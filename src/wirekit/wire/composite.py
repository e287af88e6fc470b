"""Nodes made of nodes: structs, arrays, records up to a limit, choices, references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import construct

from wirekit.errors import Limit, Misfit, Misuse, Short, WireError, Wrong
from wirekit.values import Check, Record, record_type, shown
from wirekit.wire.derived import Checked, Default, Length, cover
from wirekit.wire.extras import load_extras
from wirekit.wire.node import (
    NOTHING,
    Bits,
    Bytes,
    Integer,
    Missing,
    Node,
    Null,
    Wrapping,
    evaluate,
    evaluate_size,
    load_part,
    rest,
    unnamed,
)
from wirekit.wire.stream import Reader, Scope, Writer, join_path, located
from wirekit.wire.told import counted, observe, tales, tell


class _Open:
    """A length whose covered fields are being read."""

    __slots__ = ("cut", "end", "last", "name", "outer", "size", "start")

    def __init__(self, name: str, last: int, start: int, size: int, reader: Reader) -> None:
        self.name = name
        self.last = last
        self.start = start
        self.size = size
        self.outer = reader.limit
        self.end = min(start + size, reader.limit)
        self.cut = start + size > reader.limit


class Struct(Node):
    """Named fields one after the other; the value is a ``Record``.

    Args:
        fields: ``"name" / node``, with ``* "text"`` for a note about the field.
        name: what the record is called.
        doc: what the structure is, for ``wirekit schemas``.
    """

    def __init__(self, *fields: Any, name: str = "Record", doc: str = "") -> None:
        super().__init__()
        self.members: list[tuple[str, Node]] = []
        self.docs_of: dict[str, str] = {}
        for field in fields:
            if not isinstance(field, construct.Renamed):
                raise Misuse(f"a field of a Struct is written 'name' / node, not {field!r}")
            self.members.append((field.name, unnamed(field)))
            self.docs_of[field.name] = field.docs
        self.doc = doc
        names = [name for name, _ in self.members]
        self.record = record_type(name, tuple(names))
        self.lengths: dict[int, tuple[Length, int, int]] = {}
        self.checked: list[tuple[int, Checked, int, int]] = []
        for index, (_, node) in enumerate(self.members):
            core = bare(node)
            if isinstance(core, Length):
                self.lengths[index] = (core, *cover(core.of, index, names))
            elif isinstance(core, Checked):
                self.checked.append((index, core, *cover(core.covers, index, names)))
        self.closing: dict[int, list[int]] = {}
        for index, (_, _, last) in self.lengths.items():
            if last > index:
                self.closing.setdefault(last, []).append(index)
        self.told = list(tales(self.members, [bare(node) for _, node in self.members]))
        self._least: int | None = None

    def parts(self) -> list[tuple[str, Node]]:
        return list(self.members)

    def minimum(self) -> int:
        if self._least is None:
            self._least = sum(node.minimum() for _, node in self.members)
        return self._least

    def _parse(self, stream: Reader, context: Scope, path: str) -> Record:
        session = stream.session
        names = session.path
        scope = context.inner()
        record = self.record()
        extra: dict[str, Any] = {}
        session.frames.append((len(names), extra))
        starts: list[int] = []
        ends: list[int] = []
        pending: dict[int, tuple[str, int, int]] = {}
        opened: list[_Open] = []
        field = ""
        begin, depth = stream.position, len(names)
        try:
            for index, (field, node) in enumerate(self.members):
                if index in pending:
                    name, last, size = pending.pop(index)
                    self._open(stream, opened, name, last, size)
                names.append(field)
                start = stream.position
                value = node._parse(stream, scope, "")
                starts.append(start)
                ends.append(stream.position)
                setattr(record, field, value)
                scope[field] = value
                names.pop()
                if index in self.lengths and value is not None:
                    self._length(stream, index, value, pending, starts, ends, extra)
                while opened and opened[-1].last == index:
                    self._close(stream, opened.pop(), extra)
            for name, last, size in pending.values():
                self._open(stream, opened, name, last, size)
                self._close(stream, opened.pop(), extra)
            for index, (length, first, last) in self.lengths.items():
                number = getattr(record, self.members[index][0])
                if not length.bounds and last > index and number is not None:
                    self._agree(stream, index, number, starts, ends, extra)
                elif length.zero_is_rest and number == 0 and ends[last] - starts[first] + length.add:
                    extra.setdefault("keep", []).append(self.members[index][0])
            for index, checked, first, last in self.checked:
                self._verify(stream, index, checked, starts[first], ends[last], record, ends[index], extra)
            if self.told:
                self._observe(stream, record, scope, starts, ends)
        except WireError as error:
            if error.offset is None:
                located(error, stream)
            if len(starts) < len(self.members) and error.partial is not None:
                setattr(record, field, error.partial)
            error.partial = record
            if opened:
                stream.limit = opened[0].outer
                self._blame(stream, opened, error)
            raise
        finally:
            session.frames.pop()
            stream.span(begin, "record", depth=depth)
            if extra:
                record._extra = extra
        return record

    def _observe(self, stream: Reader, record: Record, scope: Scope, starts: list[int], ends: list[int]) -> None:
        """Verifies what messages tell about the members behind them."""
        for told in self.told:
            (name, _), (of, node) = self.members[told.at], self.members[told.of]
            extent = None if node.settled(scope).opaque else ends[told.of] - starts[told.of]
            stream.session.path.append(name)
            observe(told, getattr(record, name), getattr(record, of), extent, stream, starts[told.at])
            stream.session.path.pop()

    def _length(
        self,
        stream: Reader,
        index: int,
        number: int,
        pending: dict[int, tuple[str, int, int]],
        starts: list[int],
        ends: list[int],
        extra: dict[str, Any],
    ) -> None:
        node, first, last = self.lengths[index]
        name = self.members[index][0]
        if node.zero_is_rest and number == 0:
            return
        if last < index:
            self._agree(stream, index, number, starts, ends, extra)
        elif node.bounds:
            pending[first] = (name, last, number - node.add)

    def _agree(
        self,
        stream: Reader,
        index: int,
        number: int,
        starts: list[int],
        ends: list[int],
        extra: dict[str, Any],
    ) -> None:
        """Verifies a length that did not bound the fields it covers."""
        node, first, last = self.lengths[index]
        name = self.members[index][0]
        actual = ends[last] - starts[first] + node.add
        stream.session.path.append(name)
        stream.check("length", number, actual, actual == number or (node.exceeds and number > actual), starts[index])
        stream.session.path.pop()
        if actual != number:
            extra.setdefault("keep", []).append(name)

    def _open(self, stream: Reader, opened: list[_Open], name: str, last: int, size: int) -> None:
        entry = _Open(name, last, stream.position, size, stream)
        if entry.cut and stream.bounded == stream.leave and not self._clips(name):
            raise stream.short(size)
        opened.append(entry)
        stream.limit = entry.end
        if not entry.cut:
            stream.bounded += 1

    @staticmethod
    def _blame(stream: Reader, opened: list[_Open], error: WireError) -> None:
        """Says of an error inside a length that cannot be right that it cannot: it passes one that fits."""
        beyond = next((entry for entry in opened if entry.cut), None)
        if beyond is not None and stream.bounded and not isinstance(error, (Short, Limit)) and not error.hint:
            depth = stream.session.frames[-1][0]
            where = join_path([*stream.session.path[:depth], beyond.name])
            error.hint = f"{where} says {beyond.size} bytes where {beyond.end - beyond.start} are left"

    def _clips(self, name: str) -> bool:
        return any(length.clip for index, (length, _, _) in self.lengths.items() if self.members[index][0] == name)

    def _close(self, stream: Reader, entry: _Open, extra: dict[str, Any]) -> None:
        names = stream.session.path
        if stream.position < entry.end:
            left = bytes(stream.buffer[stream.position : entry.end])
            names.append(entry.name)
            stream.trailing(stream.position, entry.end)
            names.pop()
            extra.setdefault("trailing", {})[entry.name] = left
            stream.position = entry.end
        stream.limit = entry.outer
        if not entry.cut:
            stream.bounded -= 1
            return
        names.append(entry.name)
        available = entry.end - entry.start
        index = [name for name, _ in self.members].index(entry.name)
        length = self.lengths[index][0]
        if length.clip:
            stream.check("length", entry.size, available, length.exceeds, entry.start, "cut by the end of the data")
            extra.setdefault("keep", []).append(entry.name)
            names.pop()
            return
        position, stream.position = stream.position, entry.start
        error = stream.short(entry.size)
        stream.position = position
        names.pop()
        error.available = available
        raise error

    def _verify(
        self,
        stream: Reader,
        index: int,
        checked: Checked,
        start: int,
        end: int,
        record: Record,
        after: int,
        extra: dict[str, Any],
    ) -> None:
        name = self.members[index][0]
        stored = getattr(record, name)
        if stored is None:
            where = [*stream.session.path, name]
            offset = stream.origin + after
            verdict = Check(join_path(where), checked.algorithm, None, None, "absent", offset, stream.source)
            stream.session.checks.append(verdict)
            return
        if checked.content:
            start += self._prefix(str(checked.covers))
        position = after - checked.inner.minimum()
        data: Any = memoryview(stream.buffer)[start:end]
        if start <= position < end:
            data = bytearray(data)
            data[position - start : after - start] = bytes(after - position)
        computed = checked.compute(data)
        stream.session.path.append(name)
        stream.check(checked.algorithm, stored, computed, stored == computed, position)
        stream.session.path.pop()
        if stored != computed:
            extra.setdefault("keep", []).append(name)

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        values, extra = self._given(obj, stream)
        scope = context.inner()
        scope.update(values)
        keep = extra.get("keep", ())
        stream.frames.append((len(stream.path), extra))
        for told in self.told:
            (name, _), (of, node) = self.members[told.at], self.members[told.of]
            if name in values and of in values:
                stream.path.append(of)
                values[name] = scope[name] = tell(told, values[name], values[of], node, stream, scope)
                stream.path.pop()
        starts: list[int] = []
        ends: list[int] = []
        trailing = {self.lengths[i][2]: self.members[i][0] for i in self.lengths if self.lengths[i][2] > i}
        for index, (name, node) in enumerate(self.members):
            stream.path.append(name)
            value = values.get(name, NOTHING)
            if value is NOTHING:
                value = node.default(scope)
                if value is NOTHING:
                    raise stream.wrong("a value", "nothing")
            core = bare(node)
            if isinstance(core, (Length, Checked)) and (name not in keep or value is None):
                value = 0 if _present(node, scope, value, stream) else None
            elif isinstance(core, Bits) and isinstance(value, int):
                value = core.unpack(value)
            scope[name] = value
            starts.append(len(stream.buffer))
            node._build(value, stream, scope, "")
            ends.append(len(stream.buffer))
            stream.path.pop()
            left = extra.get("trailing", {})
            if index in trailing and left.get(trailing[index]):
                stream.write(left[trailing[index]])
                ends[index] = len(stream.buffer)
            for place in self.closing.get(index, ()):
                length, first, last = self.lengths[place]
                covering = self.members[place][0]
                if covering not in keep and scope[covering] is not None:
                    scope[covering] = ends[last] - starts[first] + length.add
        for index, (length, first, last) in self.lengths.items():
            if self.members[index][0] not in keep:
                number = (ends[last] - starts[first] if last >= first else 0) + length.add
                self._patch(stream, index, length.inner, number, starts, ends)
        for index, checked, first, last in self.checked:
            if self.members[index][0] not in keep:
                start = starts[first]
                if checked.content:
                    start += self._prefix(self.members[first][0])
                number = checked.compute(bytes(stream.buffer[start : ends[last]]))
                self._patch(stream, index, checked.inner, number, starts, ends)
        stream.frames.pop()
        return obj

    def _prefix(self, name: str) -> int:
        """Bytes of the length in front of a byte string, compressed or not."""
        node = bare(dict(self.members)[name])
        if isinstance(node, Wrapping):
            node = node.inner
        return node.prefix.minimum() if isinstance(node, Bytes) and node.prefix else 0

    def _given(self, obj: Any, stream: Writer) -> tuple[dict[str, Any], dict[str, Any]]:
        if isinstance(obj, Record):
            values, extra = dict(obj._pairs()), obj._extra or {}
        elif isinstance(obj, Mapping):
            values = {name: value for name, value in obj.items() if not name.startswith("$")}
            extra = load_extras(obj, self.record._fields) or {}
        else:
            raise stream.wrong(f"a record of {', '.join(self.record._fields)}", shown(obj))
        for name in values:
            if name not in self.record._fields:
                raise stream.wrong(f"one of the fields {', '.join(self.record._fields)}", f"a field {name!r}")
        return values, extra

    def _patch(self, stream: Writer, index: int, integer: Any, number: int, starts: list[int], ends: list[int]) -> None:
        start, end = starts[index], ends[index]
        if start == end:
            return
        stream.path.append(self.members[index][0])
        stream.buffer[start : start + integer.length] = integer.pack(integer.check(number, stream))
        stream.path.pop()

    def load(self, obj: Any, context: Scope) -> Any:
        if not isinstance(obj, Mapping):
            return obj
        scope = context.inner()
        scope.update(obj)
        record = self.record()
        for name, node in self.members:
            if name in obj:
                value = self._counted(name, self._load_member(name, node, obj, scope), obj)
                scope[name] = value
                setattr(record, name, value)
            elif isinstance(node, Default):
                value = node.default(scope)
                core = bare(node)
                scope[name] = core.unpack(value) if isinstance(core, Bits) and isinstance(value, int) else value
            else:
                _assume(scope, name, node)
        for name in obj:
            if not name.startswith("$") and name not in self.record._fields:
                raise Misfit(f"no field {name!r}; the fields are {', '.join(self.record._fields) or 'none'}")
        record._extra = load_extras(obj, self.record._fields)
        return record

    @staticmethod
    def _load_member(name: str, node: Node, obj: Mapping[str, Any], scope: Scope) -> Any:
        try:
            return load_part(name, node, obj[name], scope)
        except Missing as error:
            if error.path == name and error.name not in scope:
                error.path, error.expected = error.name, "a value"
            raise

    def _counted(self, name: str, value: Any, obj: Mapping[str, Any]) -> Any:
        for told in self.told:
            if self.members[told.at][0] == name and told.what == "count":
                value = counted(told.field, value, obj.get(self.members[told.of][0]))
        return value

    def default(self, context: Scope) -> Any:
        return NOTHING

    def frame_size(self, reader: Reader, context: Scope) -> int | None:
        """Bytes of the whole structure as its own length tells, or None when too few are there to know.

        Raises:
            Wrong, Limit: when the length is not a sensible one.
            Misuse: when no length covers the rest of the structure.
        """
        begin = reader.position
        scope = context.inner()
        for index, (name, node) in enumerate(self.members):
            reader.session.path.append(name)
            try:
                value = node._parse(reader, scope, "")
            except Short:
                return None
            scope[name] = value
            reader.session.path.pop()
            if index in self.lengths:
                length, first, last = self.lengths[index]
                if last == len(self.members) - 1 and first == index + 1:
                    return int(reader.position - begin + value - length.add)
        raise Misuse(f"{self.record.__name__} has no length that covers the rest of it")

    def overruns(self, reader: Reader, context: Scope) -> bool:
        """Whether one of the integers that the structure begins with is a length that leads beyond the limit."""
        for index, (_, node) in enumerate(self.members):
            core = node.inner if isinstance(node, Length) else node
            if not isinstance(core, Integer) or core.length > reader.left:
                return False
            number = core._parse(reader, context, "")
            length, first, last = self.lengths.get(index, (None, 0, 0))
            if length is None or not length.bounds or length.clip or last < index:
                continue
            if first == index + 1 and number - length.add > reader.left:
                return True
        return False


def _assume(scope: Scope, name: str, node: Node) -> None:
    """Puts the default of a field that was left out into the scope, for the expressions of the fields behind it."""
    try:
        value = node.default(scope)
    except Wrong:
        return
    core = bare(node)
    if isinstance(core, Bits) and isinstance(value, int):
        value = core.unpack(value)
    if value is not NOTHING:
        scope[name] = value


def _present(node: Node, scope: Scope, value: Any, stream: Writer) -> bool:
    """Whether a length or check under conditions is there at all."""
    while isinstance(node, (If, IfMore)):
        if isinstance(node, If):
            if not evaluate(node.condition, scope):
                return False
        elif value is None:
            return False
        node = node.inner
    return True


class Array(Node):
    """A count and that many elements; the value is a list.

    Args:
        count: the integer that counts.
        element: what is repeated.
        null: the count that means null, or None; any other negative count is Wrong.
    """

    def __init__(self, count: Integer, element: Node, *, null: int | None = None) -> None:
        super().__init__()
        self.count = count
        self.element = element
        self.null = null

    def parts(self) -> list[tuple[str, Node]]:
        return [("element", self.element)]

    def minimum(self) -> int:
        return self.count.minimum()

    def _parse(self, stream: Reader, context: Scope, path: str) -> list[Any] | None:
        start = stream.position
        number = self.count.read(stream, "$count")
        if Null.is_null(number, self.null) and number < 0:
            if number != self.null:
                stream.note("raw", number)
            absent(stream)
            return None
        if number < 0:
            raise stream.wrong("a count of at least 0", number, start)
        return parse_elements(self.element, number, stream, context)

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        if obj is None:
            if self.null is None:
                raise stream.wrong("a list", "null")
            raw = stream.noted("raw")
            self.count._build(self.null if raw is None else raw, stream, context, path)
            return obj
        if not isinstance(obj, (list, tuple)):
            raise stream.wrong("a list", shown(obj))
        if len(obj) > self.count.high:
            raise stream.wrong(f"at most {self.count.high} elements", len(obj))
        self.count._build(len(obj), stream, context, path)
        build_elements(self.element, obj, stream, context)
        return obj

    def load(self, obj: Any, context: Scope) -> Any:
        return load_elements(self.element, obj, context) if isinstance(obj, list) else obj

    def default(self, context: Scope) -> Any:
        return None if self.null is not None else NOTHING


class Repeat(Node):
    """As many elements as an expression says; the value is a list.

    Args:
        count: a number or a ``this`` expression.
        element: what is repeated.
    """

    def __init__(self, count: Any, element: Node) -> None:
        super().__init__()
        self.count = count
        self.element = element

    def parts(self) -> list[tuple[str, Node]]:
        return [("element", self.element)]

    def _parse(self, stream: Reader, context: Scope, path: str) -> list[Any]:
        return parse_elements(self.element, evaluate_size(self.count, context), stream, context)

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        if not isinstance(obj, (list, tuple)):
            raise stream.wrong("a list", shown(obj))
        build_elements(self.element, obj, stream, context)
        return obj

    def load(self, obj: Any, context: Scope) -> Any:
        return load_elements(self.element, obj, context) if isinstance(obj, list) else obj


def load_elements(element: Node, items: list[Any], context: Scope) -> list[Any]:
    """The values of a list in the JSON form."""
    return [load_part(index, element, item, context) for index, item in enumerate(items)]


def parse_elements(element: Node, number: int, stream: Reader, context: Scope) -> list[Any]:
    """That many elements; the count is checked against what the limit leaves before anything is read."""
    needed = number * max(element.minimum(), 1)
    if needed > stream.left:
        raise stream.short(needed)
    items: list[Any] = []
    names = stream.session.path
    begin, depth = stream.position, len(names)
    try:
        for index in range(number):
            names.append(index)
            items.append(element._parse(stream, context, ""))
            names.pop()
    except WireError as error:
        error.partial = items if error.partial is None else [*items, error.partial]
        raise
    finally:
        stream.span(begin, "list", depth=depth)
    return items


def absent(stream: Reader) -> None:
    """The value of a field that is not there, or null."""
    stream.span(stream.position, "absent")


def build_elements(element: Node, items: Any, stream: Writer, context: Scope) -> None:
    """Writes each element."""
    for index, item in enumerate(items):
        stream.path.append(index)
        element._build(item, stream, context, "")
        stream.path.pop()


class RecordsToEnd(Node):
    """Elements until the limit; the value is a list.

    Args:
        element: what is repeated.
        short_tail: what to do with a last element that the limit cuts: ``error``, or ``stop`` before it, which leaves
            its bytes to the next field. Damage inside a whole element is an error in both cases.
        until: stop before these bytes, if given.
        count: an expression for the number of elements that another field announces, verified by a ``count`` check.
    """

    def __init__(self, element: Node, *, short_tail: str = "error", until: bytes = b"", count: Any = None) -> None:
        super().__init__()
        self.count = count
        self.element = element
        self.short_tail = short_tail
        self.until = until

    def parts(self) -> list[tuple[str, Node]]:
        return [("element", self.element)]

    def _parse(self, stream: Reader, context: Scope, path: str) -> list[Any]:
        items: list[Any] = []
        session = stream.session
        bounded, nested, leave = stream.bounded, stream.nested, stream.leave
        if self.short_tail == "stop":
            stream.leave = bounded
        begin, depth = stream.position, len(session.path)
        while stream.position < stream.limit:
            start = stream.position
            if self.until and items and stream.buffer[start : start + len(self.until)] == self.until:
                break
            mark = session.mark()
            limit = stream.limit
            session.path.append(len(items))
            try:
                items.append(self.element._parse(stream, context, ""))
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
            stream.check("count", announced, len(items), announced == len(items), stream.position)
        return items

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        if not isinstance(obj, (list, tuple)):
            raise stream.wrong("a list", shown(obj))
        build_elements(self.element, obj, stream, context)
        return obj

    def load(self, obj: Any, context: Scope) -> Any:
        return load_elements(self.element, obj, context) if isinstance(obj, list) else obj

    def default(self, context: Scope) -> Any:
        return []


class If(Wrapping):
    """A field that is there when a ``this`` expression is true, and None otherwise."""

    def __init__(self, condition: Any, inner: Node) -> None:
        super().__init__(inner)
        self.condition = condition

    def _parse(self, stream: Reader, context: Scope, path: str) -> Any:
        return self.inner._parse(stream, context, path) if evaluate(self.condition, context) else absent(stream)

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        if evaluate(self.condition, context):
            return self.inner._build(obj, stream, context, path)
        if obj is not None:
            raise stream.wrong("nothing, for the field's condition does not hold", shown(obj))
        return obj

    def load(self, obj: Any, context: Scope) -> Any:
        return None if obj is None else self.inner.load(obj, context)

    def minimum(self) -> int:
        return 0

    def settled(self, context: Scope) -> Node:
        return self.inner.settled(context)

    def default(self, context: Scope) -> Any:
        return self.inner.default(context) if evaluate(self.condition, context) else None


class IfThenElse(Node):
    """One of two layouts, by a ``this`` expression."""

    def __init__(self, condition: Any, then: Node, otherwise: Node) -> None:
        super().__init__()
        self.condition = condition
        self.then = then
        self.otherwise = otherwise

    def parts(self) -> list[tuple[str, Node]]:
        return [("then", self.then), ("otherwise", self.otherwise)]

    def minimum(self) -> int:
        return min(self.then.minimum(), self.otherwise.minimum())

    def _chosen(self, context: Scope) -> Node:
        return self.then if evaluate(self.condition, context) else self.otherwise

    def settled(self, context: Scope) -> Node:
        return self._chosen(context).settled(context)

    def _parse(self, stream: Reader, context: Scope, path: str) -> Any:
        return self._chosen(context)._parse(stream, context, path)

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        return self._chosen(context)._build(obj, stream, context, path)

    def load(self, obj: Any, context: Scope) -> Any:
        return self._chosen(context).load(obj, context)

    def default(self, context: Scope) -> Any:
        return self._chosen(context).default(context)


class Switch(Node):
    """One of several layouts, by a ``this`` expression or a tuple of them.

    Args:
        on: the expression, or a tuple of expressions; a symbol counts as its number.
        cases: {value: node}, or {(value, …): node}.
        default: the layout for other values; without one, another value is Wrong.
    """

    def __init__(self, on: Any, cases: Mapping[Any, Node], default: Node | None = None) -> None:
        super().__init__()
        self.on = on
        self.cases = dict(cases)
        self.otherwise = default

    def parts(self) -> list[tuple[str, Node]]:
        parts = [(str(value), node) for value, node in self.cases.items()]
        return [*parts, ("default", self.otherwise)] if self.otherwise is not None else parts

    def minimum(self) -> int:
        return min((node.minimum() for _, node in self.parts()), default=0)

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

    def settled(self, context: Scope) -> Node:
        node = self._chosen(context)
        return self if node is None else node.settled(context)

    def _parse(self, stream: Reader, context: Scope, path: str) -> Any:
        node = self._chosen(context)
        if node is None:
            raise stream.wrong(f"one of {', '.join(map(str, self.cases))}", self._key(context))
        return node._parse(stream, context, path)

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        node = self._chosen(context)
        if node is None:
            raise stream.wrong(f"one of {', '.join(map(str, self.cases))}", self._key(context))
        return node._build(obj, stream, context, path)

    def load(self, obj: Any, context: Scope) -> Any:
        node = self._chosen(context)
        return obj if node is None else node.load(obj, context)

    def default(self, context: Scope) -> Any:
        node = self._chosen(context)
        return NOTHING if node is None else node.default(context)


class IfNext(Wrapping):
    """A field that is there when the next bytes are these, and None otherwise."""

    def __init__(self, magic: bytes, inner: Node) -> None:
        super().__init__(inner)
        self.magic = magic

    def _parse(self, stream: Reader, context: Scope, path: str) -> Any:
        end = stream.position + len(self.magic)
        if end > stream.limit or stream.buffer[stream.position : end] != self.magic:
            return absent(stream)
        return self.inner._parse(stream, context, path)

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        return None if obj is None else self.inner._build(obj, stream, context, path)

    def settled(self, context: Scope) -> Node:
        return self.inner.settled(context)

    def load(self, obj: Any, context: Scope) -> Any:
        return None if obj is None else self.inner.load(obj, context)

    def minimum(self) -> int:
        return 0

    def default(self, context: Scope) -> Any:
        return None


class IfMore(Wrapping):
    """A field that is there when any byte is left before the limit, and None otherwise."""

    def _parse(self, stream: Reader, context: Scope, path: str) -> Any:
        return self.inner._parse(stream, context, path) if stream.position < stream.limit else absent(stream)

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        return None if obj is None else self.inner._build(obj, stream, context, path)

    def settled(self, context: Scope) -> Node:
        return self.inner.settled(context)

    def load(self, obj: Any, context: Scope) -> Any:
        return None if obj is None else self.inner.load(obj, context)

    def minimum(self) -> int:
        return 0

    def default(self, context: Scope) -> Any:
        return None


class OrBytes(Wrapping):
    """A layout whose value is no string, or all bytes before the limit as they stand where they do not fit it.

    Bytes that do not fit are a gap with a bad ``layout`` check, which says what is wrong with them. Asking for too much
    (``Limit``) stays an error.
    """

    def _parse(self, stream: Reader, context: Scope, path: str) -> Any:
        session = stream.session
        mark = session.mark()
        start, limit, bounded, nested = stream.position, stream.limit, stream.bounded, stream.nested
        leave = stream.leave
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

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        if isinstance(obj, (bytes, bytearray, memoryview)):
            stream.write(bytes(obj))
            return obj
        return self.inner._build(obj, stream, context, path)

    def load(self, obj: Any, context: Scope) -> Any:
        return rest().load(obj, context) if isinstance(obj, str) else self.inner.load(obj, context)

    def minimum(self) -> int:
        return 0

    def default(self, context: Scope) -> Any:
        return self.inner.default(context)


class Lookahead(Wrapping):
    """The number that stands ``at`` bytes ahead, without moving; nothing is written for it."""

    def __init__(self, inner: Node, at: int = 0) -> None:
        super().__init__(inner)
        self.at = at

    def _parse(self, stream: Reader, context: Scope, path: str) -> Any:
        start = stream.position
        if start + self.at + self.inner.minimum() > stream.limit:
            raise stream.short(self.at + self.inner.minimum())
        mark = stream.session.mark()
        stream.position += self.at
        try:
            return self.inner._parse(stream, context, path)
        finally:
            stream.position = start
            stream.session.forget_spans(mark)
            stream.span(start, "ahead", depth=mark[0])

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        return obj

    def minimum(self) -> int:
        return 0


class Sized(Wrapping):
    """A length prefix and a layout inside that length, as one field whose value is the layout's.

    Args:
        length: the integer that counts the bytes.
        inner: the layout.
        null: the length that means null, or None.
    """

    def __init__(self, length: Integer, inner: Node, *, null: int | None = None) -> None:
        super().__init__(inner)
        self.length = length
        self.null = null

    def minimum(self) -> int:
        return self.length.minimum()

    def _parse(self, stream: Reader, context: Scope, path: str) -> Any:
        start = stream.position
        size = self.length.read(stream, "$length")
        if Null.is_null(size, self.null):
            if size != self.null:
                stream.note("raw", size)
            return absent(stream)
        if size < 0:
            raise stream.wrong("a length of at least 0", size, start)
        begin = stream.position
        outer = stream.limit
        cut = begin + size > outer
        if cut and stream.bounded == stream.leave:
            raise stream.short(size)
        stream.limit = end = min(begin + size, outer)
        stream.bounded += not cut
        try:
            value = self.inner._parse(stream, context, path)
        finally:
            stream.limit = outer
        stream.bounded -= not cut
        if stream.position < end:
            stream.trailing(stream.position, end)
            stream.note("trailing", bytes(stream.buffer[stream.position : end]))
            stream.position = end
        if cut:
            stream.position = begin
            error = stream.short(size)
            stream.position = end
            error.partial = value
            raise error
        return value

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        if obj is None:
            if self.null is None:
                raise stream.wrong("a value", "null")
            raw = stream.noted("raw")
            self.length._build(self.null if raw is None else raw, stream, context, path)
            return obj
        start = len(stream.buffer)
        self.length._build(0, stream, context, path)
        begin = len(stream.buffer)
        self.inner._build(obj, stream, context, path)
        trailing = stream.noted("trailing")
        if trailing:
            stream.write(trailing)
        size = self.length.check(len(stream.buffer) - begin, stream)
        stream.buffer[start:begin] = self.length.pack(size)
        return obj

    def load(self, obj: Any, context: Scope) -> Any:
        return None if obj is None else self.inner.load(obj, context)

    def default(self, context: Scope) -> Any:
        return None if self.null is not None else NOTHING


class Ref(Node):
    """Another registered schema, by key; how a layout contains itself."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self.key = key

    @property
    def target(self) -> Node:
        """The node behind the key."""
        from wirekit.registry import registry

        return registry[self.key].node

    def _parse(self, stream: Reader, context: Scope, path: str) -> Any:
        limits = stream.session.limits
        if stream.nested >= limits.depth:
            raise Limit("depth", limits.depth, stream.nested + 1, **stream.where())
        stream.nested += 1
        value = self.target._parse(stream, context, path)
        stream.nested -= 1
        return value

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        return self.target._build(obj, stream, context, path)

    def load(self, obj: Any, context: Scope) -> Any:
        return self.target.load(obj, context)

    def default(self, context: Scope) -> Any:
        return self.target.default(context)


def bare(node: Node) -> Node:
    """The node under its conditions and its default."""
    while isinstance(node, (If, IfMore, Default)):
        node = node.inner
    return node


__all__ = [
    "Array",
    "If",
    "IfMore",
    "IfNext",
    "IfThenElse",
    "Lookahead",
    "OrBytes",
    "RecordsToEnd",
    "Ref",
    "Repeat",
    "Sized",
    "Struct",
    "Switch",
    "bare",
    "join_path",
]
