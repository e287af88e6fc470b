"""Structs: named members one after the other, with lengths and checksums that cover other members."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, NamedTuple

import construct

from wirekit.errors import Misuse, Short, Wrong
from wirekit.values import Record, SymbolTable, plain_mapping, record_type
from wirekit.wire.blobs import BEGIN, Bytes, Padding
from wirekit.wire.composite.choices import bare, fixed_size
from wirekit.wire.composite.reading import read, read_plain
from wirekit.wire.composite.writing import Writing
from wirekit.wire.derived import Checked, Const, Default, Length, cover, innermost_first
from wirekit.wire.dollar_entries import load_extras
from wirekit.wire.message_fields import Derived, check_derived, counted, derived_fields
from wirekit.wire.node import NOTHING, Missing, Node, Wrapping, check_names, load_part, unnamed
from wirekit.wire.numbers import UNPACKED, Bits, Duration, Integer, Symbols, Timestamp
from wirekit.wire.refused import Refused
from wirekit.wire.stream import Reader, Scope, Writer


class Checking(NamedTuple):
    """A checksum among the members: its index, its node, the first and the last member that it covers."""

    at: int
    checked: Checked
    first: int
    last: int


class Step(NamedTuple):
    """The functions that read a member.

    Attributes:
        name: the name of the member.
        parse: reads any member.
        unpack, size: read an integer if no spans are requested; None and 0 for other members.
        table: the symbols of the integer, or its bit fields, if it has some.
        low, high: a number outside these bounds is left to ``parse``.
        frame: whether a number above the limit ``frame`` is left to ``parse``, too.
    """

    name: str
    parse: Callable[[Reader, Scope, str], Any]
    unpack: Callable[[bytes, int], tuple[Any, ...]] | None
    size: int
    table: Callable[[int], Any] | None
    low: int
    high: int
    frame: bool


def _step(name: str, node: Node) -> Step:
    number: Any = node
    low = high = table = None
    frame = False
    if type(number) is Length and not number.zero_is_rest:
        low, frame, number = number.least if number.bounds else None, number.frame and number.bounds, number.inner
    elif type(number) is Const and number.fatal and type(number.value) is int:
        low, high, number = number.value, number.value, number.inner
    elif type(number) in (Checked, Default):
        number = number.inner
    if type(number) is Symbols and not number.closed:
        number, table = number.inner, number.table
    elif type(number) is Symbols and low is None and _is_gapless(number.table):
        low, high, number, table = int(min(number.table)), int(max(number.table)), number.inner, number.table
    elif type(number) is Bits:
        number, table = number.inner, number.unpack
    if type(number) not in (Integer, Duration, Timestamp) or number.real or number.fmtstr[1] in UNPACKED:
        parse = node._reader if type(node) is Struct else node._parse
        return Step(name, parse, None, 0, None, 0, 0, False)
    low, high = number.low if low is None else low, number.high if high is None else high
    return Step(name, node._parse, struct.Struct(number.fmtstr).unpack_from, number.length, table, low, high, frame)


def _is_gapless(table: SymbolTable) -> bool:
    """Whether every number between the smallest and the largest with a symbol has one."""
    return len(table) > 0 and max(table) - min(table) == len(table) - 1


class Struct(Node):
    """Named fields one after the other; the value is a ``Record``.

    Args:
        fields: ``"name" / node``, with ``* "text"`` for a note about the field.
        name: the name of the record.
        doc: a description of the structure, for ``wirekit schemas``.
        refused: values that peers refuse.
    """

    def __init__(self, *fields: Any, name: str = "Record", doc: str = "", refused: tuple[Refused, ...] = ()) -> None:
        super().__init__()
        check_names([name])
        self.members: list[tuple[str, Node]] = []
        self.docs_of: dict[str, str] = {}
        for field in fields:
            if not isinstance(field, construct.Renamed):
                raise Misuse(f"write a field of a Struct as 'name' / node, not {field!r}")
            self.members.append((field.name, unnamed(field)))
            self.docs_of[field.name] = field.docs
        self.doc = doc
        names = [name for name, _ in self.members]
        check_names(names)
        for each in refused:
            if each.names[0] not in names:
                raise Misuse(f"refused= names {each.field!r}, which is not a field; the fields are {', '.join(names)}")
        self.refused = refused
        cores = [bare(node) for _, node in self.members]
        self.padded = any(isinstance(core, Padding) and core.to for core in cores)
        self._name = name
        self.lengths: dict[int, tuple[Length, int, int]] = {}
        self.checked: list[Checking] = []
        for index, core in enumerate(cores):
            if isinstance(core, Length):
                self.lengths[index] = (core, *cover(core.of, index, names))
            elif isinstance(core, Checked):
                self.checked.append(Checking(index, core, *cover(core.covers, index, names)))
        self.computed = innermost_first(self.checked)
        self.closing: dict[int, list[int]] = {}  # lengths by the last member that they cover, the innermost first
        for index in sorted(self.lengths, key=lambda index: (self.lengths[index][1], index), reverse=True):
            last = self.lengths[index][2]
            if last > index:
                self.closing.setdefault(last, []).append(index)
        check_derived(names, cores)

    @cached_property
    def derived_fields(self) -> list[Derived]:
        """Fields of members that are derived from other members; computed at first use, as that imports protobuf."""
        return list(derived_fields([name for name, _ in self.members], [bare(node) for _, node in self.members]))

    @cached_property
    def steps(self) -> list[Step]:
        """The step that reads each member."""
        return [_step(name, node) for name, node in self.members]

    @cached_property
    def opens(self) -> frozenset[int]:
        """The lengths directly before their range, if no other range begins there and none ends at the length."""
        firsts = [first for _, first, _ in self.lengths.values()]
        lasts = {last for _, _, last in self.lengths.values()}
        return frozenset(
            index
            for index, (length, first, last) in self.lengths.items()
            if length.bounds and first == index + 1 <= last and firsts.count(first) == 1 and index not in lasts
        )

    @cached_property
    def verified(self) -> bool:
        """Whether anything is left to verify after all members are read."""
        late = any(not length.bounds or length.zero_is_rest for length, _, _ in self.lengths.values())
        return bool(late or self.checked or self.refused or self.derived_fields)

    @property
    def takes_all(self) -> bool:
        last = len(self.members) - 1
        bounded = any(length.bounds and end == last for length, _, end in self.lengths.values())
        return bool(self.members) and not bounded and self.members[-1][1].takes_all

    @cached_property
    def sized_by(self) -> dict[int, int]:
        """The lengths that tell the size of the whole structure, and the size of the fields that each does not cover.

        Each of them is in every value, and bounds all fields after it, except for fields of a fixed size. Other lengths
        are among the fields that it covers, or bound fields before these.
        """
        sized = {}
        limits = {index: each for index, (length, *each) in self.lengths.items() if length.bounds and each[1] > index}
        for index, (first, last) in limits.items():
            node = self.members[index][1]
            while isinstance(node, Default):
                node = node.inner
            sizes = [fixed_size(each) for _, each in self.members[index + 1 : first] + self.members[last + 1 :]]
            decides = all(at == index or first <= at <= last or end < first for at, (_, end) in limits.items())
            if isinstance(node, Length) and decides and None not in sizes:
                sized[index] = sum(filter(None, sizes))
        return sized

    @cached_property
    def record(self) -> type[Record]:
        """The class of its values; created at first use, because most structures of a protocol never occur."""
        return record_type(self._name, tuple(name for name, _ in self.members))

    def parts(self) -> list[tuple[str, Node]]:
        return list(self.members)

    def lead(self, name: str) -> int:
        """Size in bytes of the fields before a field; all of them have a fixed size."""
        names = [each for each, _ in self.members]
        return sum(fixed_size(node) or 0 for _, node in self.members[: names.index(name)])

    @cached_property
    def _reader(self) -> Callable[[Reader, Scope, str], Record]:
        reader = partial(read if self.lengths or self.verified else read_plain, self)
        if not self.padded:
            return reader

        def placed(stream: Reader, context: Scope, path: str) -> Record:
            context[BEGIN] = stream.position
            return reader(stream, context, path)

        return placed

    def _parse(self, stream: Reader, context: Scope, path: str) -> Record:
        return self._reader(stream, context, path)

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        context[BEGIN] = len(stream.buffer)
        writing = Writing(self, obj, stream, context)
        writing.write()
        return writing.values if writing.named else obj

    def prefix(self, name: str) -> int:
        """Size of the length prefix of a byte string, compressed or not."""
        node = bare(dict(self.members)[name])
        if isinstance(node, Wrapping):
            node = node.inner
        return node.prefix.length if isinstance(node, Bytes) and node.prefix else 0

    def load(self, obj: Any, context: Scope) -> Any:
        if not plain_mapping(obj):
            return obj
        scope = context.inner()
        scope.update(obj)
        record = self.record()
        for name, node in self.members:
            if name in obj:
                value = self._counted(name, self._load_member(name, node, obj, scope), obj)
                scope[name] = value
                setattr(record, name, value)
            else:
                _assume(scope, name, node)
        record._extra = load_extras(obj, self.record._fields)
        return record

    @staticmethod
    def _load_member(name: str, node: Node, obj: Mapping[str, Any], scope: Scope) -> Any:
        try:
            return load_part(name, node.load, obj[name], scope)
        except Missing as error:
            if error.path == name and error.name not in scope:
                error.path, error.expected = error.name, "a value"
            raise

    def _counted(self, name: str, value: Any, obj: Mapping[str, Any]) -> Any:
        for derived in self.derived_fields:
            if self.members[derived.at][0] == name and derived.quantity == "count":
                value = counted(derived.field, value, obj.get(self.members[derived.of][0]))
        return value

    def frame_size(self, reader: Reader, context: Scope) -> int | None:
        """Bytes of the whole structure according to its own length, or None if too few bytes are given.

        Raises:
            Wrong, Limit: if the length is invalid, or means up to the end.
            Misuse: if there is no length that ``sized_by`` has.
        """
        context[BEGIN] = begin = reader.position
        scope, around = context.inner(), list[tuple[int, int, int]]()  # last member, end and limit around each length
        sizes: dict[int, list[tuple[int, int]]] = {}  # last member and size of each length, by its first member
        for index, (name, node) in enumerate(self.members):
            reader.session.path.append(name)
            start = reader.position
            for last, size in sorted(sizes.get(index, ()), reverse=True):
                around.append((last, start + size, reader.limit))
                reader.limit = min(start + size, reader.limit)
            length, first, last = self.lengths.get(index, (None, 0, 0))
            try:
                value = node._parse(reader, scope, "")
            except Short:
                return None
            is_rest = length is not None and length.zero_is_rest and value == 0
            if is_rest and index in self.sized_by:
                raise reader.wrong("a length that says where the frame ends", 0, start)
            scope[name] = value
            reader.session.path.pop()
            while around and around[-1][0] == index:
                _, end, reader.limit = around.pop()
                if end > reader.limit:
                    return None
                reader.position = end
            if length is None or value is None:
                continue
            if index in self.sized_by:
                return int(reader.position - begin + value - length.add + self.sized_by[index])
            if length.bounds and not is_rest:
                sizes.setdefault(first, []).append((last, int(value - length.add)))
        raise Misuse(f"{self.record.__name__} has no length that bounds all fields after it")

    def overruns(self, reader: Reader, context: Scope) -> bool:
        """Whether one of the integers of fixed size at the start is a length that exceeds the limit."""
        for index, (_, node) in enumerate(self.members):
            core = node.inner if isinstance(node, Length) else node
            if not isinstance(core, Integer) or core.form or core.length > reader.left:
                return False
            number = core._parse(reader, context, "")
            length, first, last = self.lengths.get(index, (None, 0, 0))
            if length is None or not length.bounds or length.clip or last < index:
                continue
            if first == index + 1 and number - length.add > reader.left:
                return True
        return False


def _assume(scope: Scope, name: str, node: Node) -> None:
    """Adds the default of an omitted field to the scope, for the expressions of later fields."""
    try:
        value = node.default(scope)
    except Wrong:
        return
    core = bare(node)
    if isinstance(core, Bits) and isinstance(value, int):
        value = core.unpack(value)
    if value is not NOTHING:
        scope[name] = value
