"""Reads a struct: the positions of its members, the lengths that bound them, and their verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirekit.errors import Limit, Short, WireError
from wirekit.values import EXTRAS, Check, Record, field_of
from wirekit.wire.derived import Checked, Length
from wirekit.wire.message_fields import verify
from wirekit.wire.node import NOTHING, evaluate
from wirekit.wire.refused import Refused
from wirekit.wire.stream import Reader, Scope, join_path, located

if TYPE_CHECKING:
    from wirekit.wire.composite.structure import Struct


class _Bound:
    """A length whose covered members are being read."""

    __slots__ = ("before", "cut", "end", "index", "last", "name", "outer", "size", "start")

    def __init__(self, index: int, name: str, last: int, size: int, reader: Reader) -> None:
        self.index = index
        self.name = name
        self.last = last
        self.size = size
        self.start = start = reader.position
        self.outer = limit = reader.limit
        self.before = reader.cut
        self.cut = cut = start + size > limit
        self.end = limit if cut else start + size


class Reading:
    """Reads one struct at the reader's position.

    Attributes:
        record: the value, as far as it is read.
        extra: the ``$`` entries of the record.
        starts, ends: the range of each member.
        pending: lengths before their covered members, with their numbers, by the index of the first covered member.
        bounds: the active lengths, innermost last.
        complete: the last member that a length covered which was not beyond the limit; -1 if none did.
        limit: the limit of the struct; -1 if no length shows that all bytes before it are there.
    """

    __slots__ = (
        "bounds", "complete", "ends", "extra", "limit", "pending", "record", "scope", "starts", "stream", "struct",
    )  # fmt: skip

    def __init__(self, struct: Struct, stream: Reader, context: Scope) -> None:
        self.struct = struct
        self.stream = stream
        self.scope = context.inner()
        self.record: Record = struct.record._blank()
        self.record._extra = None
        self.extra: dict[str, Any] = {}
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.pending: dict[int, list[tuple[int, int]]] = {}
        self.bounds: list[_Bound] = []
        self.complete = -1
        self.limit = stream.limit if stream.bounded and stream.cut < 0 else -1

    def verify(self) -> None:
        """Verifies lengths and checksums that need all members."""
        for index, (length, first, last) in self.struct.lengths.items():
            name = self.struct.members[index][0]
            number = getattr(self.record, name)
            if not length.bounds and last > index and number is not None:
                self._agree(index, number)
            elif length.zero_is_rest and number == 0 and self.ends[last] - self.starts[first] + length.add:
                self._keep(name)
        for index, checked, first, last in self.struct.checked:
            self._verify(index, checked, self.starts[first], self.ends[last], self._end(last))
        self._verify_derived()
        for refused in self.struct.refused:
            if evaluate(refused.when, self.scope):
                self._refuse(refused)

    def explain(self, error: WireError, depth: int) -> None:
        """Adds to a propagating error its place, the members read before it, and a hint at an excessive length."""
        if error.offset is None:
            located(error, self.stream)
        reached = len(self.starts)
        if reached < len(self.struct.members) and error.partial is not None:
            setattr(self.record, self.struct.members[reached][0], error.partial)
        error.partial = self.record
        if self.struct.checked and 0 < reached < len(self.struct.members) and not isinstance(error, Limit):
            self._verify_damaged(reached, depth)
        if self.bounds:
            self.stream.limit, self.stream.cut = self.bounds[0].outer, self.bounds[0].before
            self._blame(error, depth)

    def _verify_damaged(self, reached: int, depth: int) -> None:
        """Verifies the checksums over a member with an error, if it is certain where the covered bytes end."""
        names = self.stream.session.path
        inside = names[depth:]
        del names[depth:]
        for index, checked, first, last in self.struct.checked:
            end = self._end_despite_error(last) if index < reached and first <= reached <= last else -1
            if end >= 0:
                self._verify(index, checked, [*self.starts, self.ends[-1]][first], end, None)
        names += inside

    def _end_despite_error(self, last: int) -> int:
        """The end of a member that is not read: that of a length, or the limit that it extends to; -1 if unknown."""
        bound = next((bound for bound in reversed(self.bounds) if bound.last >= last), None)
        if bound is not None and bound.last == last:
            return -1 if bound.cut else bound.end
        is_last = bound is None and last == len(self.struct.members) - 1
        return self.limit if is_last and self.struct.takes_all else -1

    def length(self, index: int, number: int) -> None:
        """Opens a length, or verifies it if the covered members precede it."""
        node, first, last = self.struct.lengths[index]
        if node.zero_is_rest and number == 0:
            return
        if last < index:
            self._agree(index, number)
        elif node.bounds:
            if index in self.struct.opens:
                self.open([(index, number - node.add)])
            else:
                self.pending.setdefault(first, []).append((index, number - node.add))

    def _agree(self, index: int, number: int) -> None:
        """Verifies a length that did not bound the members it covers."""
        node, first, last = self.struct.lengths[index]
        name = self.struct.members[index][0]
        actual = self.ends[last] - self.starts[first] + node.add
        fits = actual == number or (node.exceeds and number > actual)
        self._check(name, "length", number, actual, fits, self.starts[index], end=self._end(last))
        if actual != number:
            self._keep(name)

    def open(self, opening: list[tuple[int, int]]) -> None:
        """Opens lengths that begin at one member: the one that ends last encloses the others."""
        stream, struct = self.stream, self.struct
        if len(opening) > 1:
            opening = sorted(opening, key=lambda item: (-struct.lengths[item[0]][2], item[0]))
        for index, size in opening:
            length, _, last = struct.lengths[index]
            bound = _Bound(index, struct.members[index][0], last, size, stream)
            if not bound.cut:
                stream.bounded += 1
                stream.cut = -1
            elif not length.clip:
                if stream.bounded == stream.leave:
                    raise stream.short(size)
                stream.cut = bound.end
            self.bounds.append(bound)
            stream.limit = bound.end

    def close(self, bound: _Bound) -> None:
        """Closes a length after the last member that it covers."""
        stream = self.stream
        if stream.position < bound.end:
            self._trailing(bound)
        stream.limit, stream.cut = bound.outer, bound.before
        if bound.cut:
            self._cut(bound, self.struct.lengths[bound.index][0])
        else:
            stream.bounded -= 1
            self.complete = max(self.complete, bound.last)

    def _trailing(self, bound: _Bound) -> None:
        """Keeps the bytes left over inside a length."""
        stream, names = self.stream, self.stream.session.path
        trailing = bytes(stream.buffer[stream.position : bound.end])
        names.append(bound.name)
        stream.trailing(stream.position, bound.end)
        names.pop()
        self.extra.setdefault("trailing", {})[bound.name] = trailing
        stream.position = bound.end

    def _cut(self, bound: _Bound, length: Length) -> None:
        """Records the verdict on a length beyond the limit, or raises Short."""
        stream, names = self.stream, self.stream.session.path
        available = bound.end - bound.start
        names.append(bound.name)
        if length.clip:
            note = "cut by the end of the data"
            stream.check("length", bound.size, available, length.exceeds, bound.start, note, end=bound.end)
            self._keep(bound.name)
            names.pop()
            return
        position, stream.position = stream.position, bound.start
        error = stream.short(bound.size)
        stream.position = position
        names.pop()
        error.available = available
        raise error

    def _blame(self, error: WireError, depth: int) -> None:
        """Adds a hint to an error inside a length that exceeds an enclosing valid length."""
        if isinstance(error, (Short, Limit)) or error.hint or not self.stream.bounded:
            return
        beyond = next((bound for bound in self.bounds if bound.cut), None)
        if beyond is not None:
            where = join_path([*self.stream.session.path[:depth], beyond.name])
            error.hint = f"{where} says {beyond.size} bytes, but {beyond.end - beyond.start} are left"

    def _end(self, last: int) -> int | None:
        """The end of a member; None if a length shows that no byte before it is missing."""
        return None if last <= self.complete else self.ends[last]

    def _verify(self, index: int, checked: Checked, start: int, end: int, needed: int | None) -> None:
        """Verifies a checksum of the bytes from ``start`` to ``end``; for ``needed``, see ``Reader.check``."""
        stream, name = self.stream, self.struct.members[index][0]
        stored = getattr(self.record, name)
        after = self.ends[index]
        if stored is None:
            where, offset = join_path([*stream.session.path, name]), stream.origin + after
            verdict = Check(where, checked.algorithm, None, None, "absent", offset, stream.source)
            stream.session.checks.append(verdict)
            return
        if checked.content:
            start += self.struct.prefix(str(checked.covers))
        position = after - checked.inner.length
        data: Any = memoryview(stream.buffer)[start:end]
        if start <= position < end:
            data = bytearray(data)
            data[position - start : after - start] = bytes(after - position)
        computed = checked.compute(data)
        self._check(name, checked.algorithm, stored, computed, stored == computed, position, end=needed)
        if stored != computed:
            self._keep(name)

    def _verify_derived(self) -> None:
        """Verifies the fields of messages that are derived from later members."""
        for derived in self.struct.derived_fields:
            (name, _), (of, node) = self.struct.members[derived.at], self.struct.members[derived.of]
            extent = None if node.settled(self.scope).opaque else self.ends[derived.of] - self.starts[derived.of]
            self.stream.session.path.append(name)
            message, value = getattr(self.record, name), getattr(self.record, of)
            verify(derived, message, value, extent, self.stream, self.starts[derived.at], self._end(derived.of))
            self.stream.session.path.pop()

    def _refuse(self, refused: Refused) -> None:
        """The verdict on a value that peers refuse."""
        value: Any = self.record
        for name in refused.names:
            value = field_of(value, name)
        start = self.starts[self.record._fields.index(refused.names[0])]
        self._check(refused.field, "acceptance", value, None, False, start, str(refused))

    def _check(
        self,
        name: str,
        kind: str,
        stored: Any,
        computed: Any,
        ok: bool,
        position: int,
        note: str = "",
        *,
        end: int | None = None,
    ) -> None:
        self.stream.session.path.append(name)
        self.stream.check(kind, stored, computed, ok, position, note, end=end)
        self.stream.session.path.pop()

    def _keep(self, name: str) -> None:
        """Adds a member to ``$keep``, so that it is written unchanged."""
        self.extra.setdefault("keep", []).append(name)


def read(struct: Struct, stream: Reader, context: Scope, path: str) -> Record:
    """The record of a struct; an error carries the members read before it."""
    reading = Reading(struct, stream, context)
    record, scope, extra = reading.record, reading.scope, reading.extra
    session, buffer = stream.session, stream.buffer
    names, tracing, largest = session.path, session.spans is not None, session.limits.frame
    starts, ends, lengths = reading.starts, reading.ends, struct.lengths
    bounds, pending = reading.bounds, reading.pending
    begin, depth = stream.position, len(names)
    session.frames.append((depth, extra))
    try:
        for index, (name, parse, unpack, size, table, low, high, frame) in enumerate(struct.steps):
            if pending and index in pending:
                reading.open(pending.pop(index))
            start = stream.position
            value: Any = NOTHING
            if unpack is not None and not tracing and start + size <= stream.limit:
                (number,) = unpack(buffer, start)
                if low <= number <= high and not (frame and number > largest):
                    value = number if table is None else table(number)
                    stream.position = start + size
            if value is NOTHING:
                names.append(name)
                value = parse(stream, scope, "")
                names.pop()
            starts.append(start)
            ends.append(stream.position)
            setattr(record, name, value)
            scope[name] = value
            if index in lengths and value is not None:
                reading.length(index, value)
            while bounds and bounds[-1].last == index:
                reading.close(bounds.pop())
        if struct.verified:
            reading.verify()
    except WireError as error:
        reading.explain(error, depth)
        raise
    finally:
        session.frames.pop()
        if tracing:
            stream.span(begin, "record", depth=depth)
        if extra:
            record._extra = {name: extra[name] for name in EXTRAS if name in extra}
    return record


def read_plain(struct: Struct, stream: Reader, context: Scope, path: str) -> Record:
    """The record of a struct without lengths and verdicts; an error carries the members read before it."""
    session, buffer, scope = stream.session, stream.buffer, context.inner()
    names, tracing = session.path, session.spans is not None
    begin, depth, name = stream.position, len(names), ""
    extra: dict[str, Any] = {}
    record: Record = struct.record._blank()
    record._extra = None
    session.frames.append((depth, extra))
    try:
        for name, parse, unpack, size, table, low, high, _ in struct.steps:
            if unpack is not None and not tracing:
                start = stream.position
                if start + size <= stream.limit:
                    (number,) = unpack(buffer, start)
                    if low <= number <= high:
                        stream.position = start + size
                        value = number if table is None else table(number)
                        setattr(record, name, value)
                        scope[name] = value
                        continue
            names.append(name)
            value = parse(stream, scope, "")
            names.pop()
            setattr(record, name, value)
            scope[name] = value
    except WireError as error:
        if error.offset is None:
            located(error, stream)
        if error.partial is not None:
            setattr(record, name, error.partial)
        error.partial = record
        raise
    finally:
        session.frames.pop()
        if tracing:
            stream.span(begin, "record", depth=depth)
        if extra:
            record._extra = {name: extra[name] for name in EXTRAS if name in extra}
    return record
