"""Writes a struct: first the members, then the lengths and checksums that cover them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from wirekit.errors import Wrong
from wirekit.values import Record, shown
from wirekit.wire.blobs import count_zeros
from wirekit.wire.composite.choices import bare, present
from wirekit.wire.derived import Checked, Const, Length
from wirekit.wire.dollar_entries import load_extras
from wirekit.wire.message_fields import derive
from wirekit.wire.node import NOTHING, Node
from wirekit.wire.numbers import Bits
from wirekit.wire.stream import Scope, Sparse, Writer

if TYPE_CHECKING:
    from wirekit.wire.composite.structure import Struct


class Writing:
    """Appends one struct to the writer's output.

    Attributes:
        values: the given members.
        extra: the ``$`` entries of the record.
        starts, ends: the range of each member.
        undecided: the number of elements of ``Writer.undecided`` before each member.
        named: whether values had names of symbols, and have the symbols now, which expressions read.
        numbers: the lengths of ranges that are completely written, by index.
        limits: the lengths that bound undecided fields, the innermost first: index, end of these in the list.
    """

    __slots__ = (
        "ends", "extra", "keep", "limits", "named", "numbers", "scope", "starts", "stream", "struct", "undecided",
        "values",
    )  # fmt: skip

    def __init__(self, struct: Struct, obj: Any, stream: Writer, context: Scope) -> None:
        self.struct = struct
        self.stream = stream
        self.values, self.extra = _members_of(struct, obj, stream)
        self.keep = self.extra.get("keep", ())
        self.scope = context.inner()
        self.scope.update(self.values)
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.undecided: list[int] = []
        self.named = False
        self.numbers: dict[int, int] = {}
        self.limits: list[tuple[int, int]] = []

    def write(self) -> None:
        """Appends all members."""
        self.stream.frames.append((len(self.stream.path), self.extra, set()))
        self._derive()
        trailing = self.extra.get("trailing", {})
        for index, (name, node) in enumerate(self.struct.members):
            self.stream.path.append(name)
            self._member(name, node)
            self.stream.path.pop()
            self._end(index, trailing)
        self._lengths()
        self._checks()
        self._decide()
        self.stream.refuse_unused()
        self.stream.frames.pop()

    def _derive(self) -> None:
        """Sets the fields of messages that are derived from later members."""
        for derived in self.struct.derived_fields:
            (name, _), (of, node) = self.struct.members[derived.at], self.struct.members[derived.of]
            if name in self.values and of in self.values:
                self.stream.path.append(of)
                message = derive(derived, self.values[name], self.values[of], node, self.stream, self.scope)
                self.values[name] = self.scope[name] = message
                self.stream.path.pop()

    def _member(self, name: str, node: Node) -> None:
        value = self.values.get(name, NOTHING)
        if value is NOTHING:
            value = node.default(self.scope)
            if value is NOTHING:
                error = self.stream.wrong("a value", "nothing")
                missing = ", ".join(self._lacking(after=name))
                error.hint = f"also missing: {missing}" if missing else ""
                raise error
            if isinstance(value, bytes):
                count_zeros(len(value), self.stream)
        core = bare(node)
        if isinstance(core, (Length, Checked)) and (name not in self.keep or value is None):
            blank = core.blank if isinstance(core, Checked) else 0
            value = blank if present(node, self.scope, value) else None
            if value is not None and name in self.keep:
                raise self.stream.wrong("a value, because $keep names it", "null")
        elif isinstance(core, Const) and value is not None:
            if name in self.keep:
                self.stream.overrides += 1
            else:
                value = core.default(self.scope)
        elif isinstance(core, Bits) and isinstance(value, int):
            value = core.unpack(value)
        self.scope[name] = value
        self.starts.append(len(self.stream.buffer))
        self.undecided.append(len(self.stream.undecided))
        built = node._build(value, self.stream, self.scope, "")
        if built is not value and isinstance(value, (str, Record, Mapping)):
            self.scope[name] = self.values[name] = built
            self.named = True
        self.ends.append(len(self.stream.buffer))

    def _lacking(self, *, after: str) -> Iterator[str]:
        """The required members after this one that were not given."""
        members = iter(self.struct.members)
        for name, _ in members:
            if name == after:
                break
        for name, node in members:
            try:
                if name not in self.values and node.default(self.scope) is NOTHING:
                    yield name
            except Wrong:  # a missing field determines whether this one may be left out
                continue

    def _end(self, index: int, trailing: Mapping[str, bytes]) -> None:
        """Computes the lengths that end with this member, and appends their left-over bytes."""
        for place in self.struct.closing.get(index, ()):
            length, first, _ = self.struct.lengths[place]
            name = self.struct.members[place][0]
            end = self.ends[index]
            if length.bounds:
                self.stream.frames[-1][2].add(("trailing", name))
                self.stream.write(trailing.get(name, b""))
                end = len(self.stream.buffer)
                if self.scope[name] is not None and len(self.stream.undecided) > self.undecided[first]:
                    self.limits.append((place, len(self.stream.undecided)))
            self.numbers[place] = end - self.starts[first] + length.add
            if name not in self.keep and self.scope[name] is not None:
                self.scope[name] = self.numbers[place]
            if length.inner.form:
                self._patch(place, length, self.numbers[place])

    def _lengths(self) -> None:
        for index, (length, first, last) in self.struct.lengths.items():
            number = self.numbers.get(index)
            if number is not None and length.inner.form:
                continue  # it was written when the covered fields were complete
            self._patch(index, length, self.ends[last] - self.starts[first] + length.add if number is None else number)

    def _checks(self) -> None:
        for index, checked, first, last in self.struct.computed:
            if self.struct.members[index][0] not in self.keep:
                start = self.starts[first]
                if checked.content:
                    start += self.struct.prefix(self.struct.members[first][0])
                number = checked.compute(bytes(self.stream.buffer[start : self.ends[last]]))
                self._patch(index, checked, number)

    def _decide(self) -> None:
        """Checks the undecided fields before the ends of lengths, when all bytes there are computed.

        A length that is kept may be wrong, so the fields that it bounds are not checked.
        """
        if not self.limits:
            return
        undecided, decided = self.stream.undecided, set[int]()
        for place, stop in self.limits:
            length, first, _ = self.struct.lengths[place]
            is_kept = self.struct.members[place][0] in self.keep
            inside = [
                number
                for number in range(self.undecided[first], stop)
                if number not in decided and not (is_kept and isinstance(undecided[number], Sparse))
            ]
            decided.update(inside)
            if not is_kept:
                end = self.starts[first] + self.numbers[place] - length.add
                self.stream.decide([undecided[number] for number in inside], end)
        begin = self.undecided[0]
        undecided[begin:] = [each for number, each in enumerate(undecided[begin:], begin) if number not in decided]

    def _patch(self, index: int, node: Length | Checked, number: Any) -> None:
        """Writes a number or a digest to its place, unless it is absent or written unchanged."""
        name = self.struct.members[index][0]
        start, end = self.starts[index], self.ends[index]
        if start == end or name in self.keep:
            return
        self.stream.path.append(name)
        data = node.written(number, self.stream)
        self.stream.path.pop()
        self.stream.buffer[start:end] = data
        if len(data) != end - start:  # a varint that is longer than the one that held its place
            self._move(index, len(data) - (end - start))

    def _move(self, index: int, by: int) -> None:
        """Moves the ranges of all members after the start of a member by a number of bytes."""
        self.ends[index] += by
        for later in range(index + 1, len(self.ends)):
            self.starts[later] += by
            self.ends[later] += by
        for place in self.numbers:
            _, first, last = self.struct.lengths[place]
            if first <= index <= last:
                self.numbers[place] += by
        first, undecided = self.undecided[index], self.stream.undecided
        undecided[first:] = [each._replace(start=each.start + by) for each in undecided[first:]]


def _members_of(struct: Struct, obj: Any, stream: Writer) -> tuple[dict[str, Any], dict[str, Any]]:
    """The members of a record or a mapping, and its ``$`` entries."""
    if isinstance(obj, Record):
        values, extra = dict(obj._pairs()), obj._extra or {}
    elif isinstance(obj, Mapping):
        values = {name: value for name, value in obj.items() if not name.startswith("$")}
        extra = load_extras(obj, struct.record._fields) or {}
    else:
        raise stream.wrong(f"a record of {', '.join(struct.record._fields)}", shown(obj))
    for name in values:
        if name not in struct.record._fields:
            raise stream.wrong(f"one of the fields {', '.join(struct.record._fields)}", f"a field {shown(name)}")
    return values, extra
