"""The evaluator of declarations that works on decoded values, frame by frame; it accepts damaged frames.

A field that decoding did not reach is null, like an absent field. A value that a column cannot hold is converted,
or null.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from wirekit.compiler.expressions import FUNCTIONS, Context, Expression, Field, LengthOf, Literal, expression
from wirekit.conversation.events import Frame, Message
from wirekit.decoding import decode
from wirekit.engine import Decoded
from wirekit.errors import plural
from wirekit.registry import Protocol, registry
from wirekit.tables.columns import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DECLARED,
    INT,
    MESSAGES,
    TEXT,
    Table,
)
from wirekit.tables.declaration import (
    Asked,
    Elements,
    Embedded,
    Except,
    Extract,
    First,
    Fixed,
    Inside,
    Messages,
    Named,
    Names,
    Rows,
    Tables,
    Text,
    Total,
    Value,
)
from wirekit.tables.paths import ALL, Step, bound, parse
from wirekit.values import Record, Symbol, whole_number

MOST_NAMES = 100_000
"""The maximum number of keys that a connection remembers for each ``Names``."""

Row = dict[str, Any]
"""Columns that are not null, by name."""


@dataclass(slots=True)
class Frames:
    """The values and names from which declared values are read.

    Attributes:
        value: the value of the frame.
        request: the value of the request that the frame answers, or None.
        names: the meanings of numbers and texts on the connection, by name and key.
    """

    value: Any
    request: Any = None
    names: dict[str, dict[Any, Row]] = field(default_factory=dict)


_Read = Callable[[Frames, list[Any]], Any]
"""Reads a value; the list has the frame and the elements of ``each`` around it, outermost first."""

_Column = tuple[str, _Read, type, Callable[[Any], Any]]
"""The name, the reader, the class of values that the column's type holds, and the converter of other values."""


class FrameRows(NamedTuple):
    """The rows of a frame in a table, and the keys of the table that they have."""

    table: str
    rows: list[Row]
    keys: frozenset[str]


class Records:
    """Evaluates the declaration of a protocol.

    Args:
        protocol: its name.
    """

    def __init__(self, protocol: str) -> None:
        self._protocol = protocol
        self._tables = registry.protocol(protocol).declared
        self._plans: dict[tuple[str, str | None], _Plan] = {}
        self._kinds: dict[str, _Read | None] = {}
        declared: list[Rows | Names | Messages] = [*self._tables.rows, *self._tables.names, *self._tables.messages]
        self._named_kinds = {kind for each in declared for kind in each.kinds}
        self._embedded: dict[str, list[_EmbeddedRows]] = {}
        for each in self._tables.embedded:
            self._embedded.setdefault(each.topic, []).append(_EmbeddedRows(protocol, each))

    def rows(self, schema: str, frames: Frames) -> list[FrameRows]:
        """The rows of a frame, by table; stores the names that the frame declares in ``frames``.

        Args:
            schema: the key that decoded the frame.
            frames: its value, its request, and the names of the connection.
        """
        plan = self._plan(schema, frames)
        plan.remember(frames)
        return [rows.of(frames) for rows in plan.rows]

    def declared_messages(self, frame: Frame, frames: Frames) -> Iterator[Message]:
        """The messages of a frame, if the declaration alone gives them; stores the frame's names in ``frames``."""
        plan = self._plan(frame.schema, frames)
        plan.remember(frames)
        facts = plan.messages
        if facts is not None and facts.suffices and facts.applies(frames):
            statuses = {check.path: check.status for check in frame.decoded.checks}
            yield from facts.messages(frame, frames, statuses)

    def messages(self, schema: str, frames: Frames) -> MessageFacts | None:
        """The declaration of the messages in a frame; None if it has no messages."""
        plan = self._plan(schema, frames)
        return plan.messages if plan.messages is not None and plan.messages.applies(frames) else None

    def holds_rows(self, topic: str | None) -> bool:
        """Whether messages of a topic contain rows of other tables."""
        return topic in self._embedded

    def embedded(self, topic: str | None, key: bytes | None, value: bytes | None) -> Iterator[FrameRows]:
        """The rows of other tables in the content of a message of a topic."""
        for each in self._embedded.get(topic or "", ()):
            yield from each.of(key, value)

    def _plan(self, schema: str, frames: Frames) -> _Plan:
        if schema not in self._kinds:
            name = schema.partition(".")[2]
            path = self._tables.kind_of(name)
            self._kinds[schema] = None if path is None else _Compiler(self._protocol).value(path, ())
        read = self._kinds[schema]
        kind = None if read is None else _as_text(read(frames, [frames.value]))
        if kind not in self._named_kinds:
            kind = None
        plan = self._plans.get((schema, kind))
        if plan is None:
            plan = self._plans[schema, kind] = _Plan(self._protocol, self._tables, schema, kind)
        return plan


_records: dict[str, tuple[Protocol, Records]] = {}


def records(protocol: str) -> Records:
    """The evaluator of the declaration of the protocol that is registered under a name now; cached."""
    registered = registry.protocol(protocol)
    entry = _records.get(protocol)
    if entry is None or entry[0] is not registered:
        entry = _records[protocol] = registered, Records(protocol)
    return entry[1]


class _Plan:
    """The declarations for frames of one layout and kind."""

    def __init__(self, protocol: str, tables: Tables, schema: str, kind: str | None) -> None:
        owner, _, name = schema.partition(".")
        declared = tables.of(name, kind) if owner == protocol else Tables()
        compiler = _Compiler(protocol)
        self.rows = [_DeclaredRows(compiler, each) for each in declared.rows]
        self.names = [_DeclaredNames(compiler, each) for each in declared.names]
        self.messages = next((MessageFacts(compiler, each) for each in declared.messages), None)

    def remember(self, frames: Frames) -> None:
        """Stores the names that a frame declares."""
        for names in self.names:
            names.remember(frames)


class _RowsOf:
    """The rows that a declaration makes of a frame."""

    def __init__(self, compiler: _Compiler, declared: Rows | Messages | Embedded, table: Table) -> None:
        self._each = parse(declared.each) if declared.each else ()
        self.applies = compiler.condition(declared.when)
        self._columns = compiler.columns(declared.columns, self._each, table.types)

    def rows(self, frames: Frames) -> Iterator[Row]:
        """The declared columns of each row, without a look at the condition."""
        for around in elements(frames.value, self._each):
            yield row_of(self._columns, frames, around)


class _DeclaredRows(_RowsOf):
    def __init__(self, compiler: _Compiler, declared: Rows) -> None:
        self._table = DECLARED[declared.table]
        super().__init__(compiler, declared, self._table)
        self._keys = frozenset(key for key in self._table.keys if key in declared.columns)

    def of(self, frames: Frames) -> FrameRows:
        """The rows of a frame."""
        return FrameRows(self._table.name, list(self.rows(frames)) if self.applies(frames) else [], self._keys)


class _DeclaredNames:
    def __init__(self, compiler: _Compiler, declared: Names) -> None:
        self._name = declared.name
        self._applies = compiler.condition(declared.when)
        self._key = compiler.value(declared.key, ())
        self._columns = {name: compiler.value(value, ()) for name, value in declared.columns.items()}

    def remember(self, frames: Frames) -> None:
        """Stores the names that the frame declares."""
        around = [frames.value]
        if not self._applies(frames):
            return
        key = self._key(frames, around)
        if key is None:
            return
        names_by_key = frames.names.setdefault(self._name, {})
        if key not in names_by_key and len(names_by_key) >= MOST_NAMES:
            return
        stands_for = {name: read(frames, around) for name, read in self._columns.items()}
        names_by_key[key] = names_by_key.get(key, {}) | {
            name: value for name, value in stands_for.items() if value is not None
        }


class MessageFacts(_RowsOf):
    """The declaration of the messages in a frame: ``rows`` of every message, or once if the dialogue returns them.

    Attributes:
        applies: returns whether a frame has messages.
        suffices: whether the declaration alone gives the messages.
        payloads: paths of the message contents in the frame's value.
    """

    def __init__(self, compiler: _Compiler, declared: Messages) -> None:
        self.suffices = bool(declared.each) or "value" in declared.columns
        self.payloads = [parse(path) for path in declared.payloads]
        self._crc = declared.columns.get("crc")
        super().__init__(compiler, declared, MESSAGES)

    def messages(self, frame: Frame, frames: Frames, statuses: Mapping[str, str]) -> Iterator[Message]:
        """The messages, if they come from the declaration alone.

        Args:
            frame: the frame.
            frames: its value, its request, and the names of the connection.
            statuses: the statuses of the frame's checks, by path.
        """
        crcs = self._crc_paths(frame.value)
        for row in self.rows(frames):
            offset, message_id = row.pop("log_offset", None), row.pop("message_id", None)
            yield Message(
                topic=row.pop("topic", None),
                partition=row.pop("partition", None),
                offset=message_id if offset is None else offset,
                timestamp=row.pop("timestamp_ms", None),
                timestamp_type=row.pop("timestamp_type", None),
                key=row.pop("key", None),
                value=row.pop("value", None),
                attributes=row.pop("attributes", None),
                codec=row.pop("codec", "none"),
                crc=row.pop("crc", None),
                check=statuses.get(next(crcs, ""), "absent"),
                schema=frame.schema,
                protocol=frame.protocol,
                facts=row,
            )

    def _crc_paths(self, value: Any) -> Iterator[str]:
        """The path of each message's checksum in the frame, with indexes; empty if none is declared."""
        if isinstance(self._crc, str):
            yield from indexed(value, parse(self._crc))


class _EmbeddedRows(_RowsOf):
    def __init__(self, protocol: str, declared: Embedded) -> None:
        super().__init__(_Compiler(protocol), declared, DECLARED[declared.table])
        self._declared = declared
        self._keys = {name: f"{protocol}.{getattr(declared, name)}" for name in ("key", "value")}

    def of(self, key: bytes | None, value: bytes | None) -> Iterator[FrameRows]:
        """The rows of a message with this key and value; if one of them does not decode, ``error`` says why."""
        if key is None or (value is not None and not self._declared.value):
            return
        decoded = [decode(key, self._keys["key"])]
        if value is not None:
            decoded.append(decode(value, self._keys["value"]))
        values = [each.value for each in decoded]
        frames = Frames({"key": values[0], "value": values[1] if value is not None else None})
        if self.applies(frames):
            rows = list(self.rows(frames)) or [row_of(self._columns, frames, self._around_none(frames))]
            error = next(filter(None, map(_undecoded, decoded)), None)
            if error is not None:
                rows = [{**row, "error": error} for row in rows]
            yield FrameRows(self._declared.table, rows, frozenset())

    def _around_none(self, frames: Frames) -> list[Any]:
        """The frame, with null in place of the elements that would contain a row."""
        return [frames.value] + [None] * self._each.count(ALL)


def _undecoded(decoded: Decoded) -> str | None:
    """Why a value does not decode, or the first bytes in it that no field explains."""
    if decoded.error is None and decoded.gaps:
        gap = decoded.gaps[0]
        return f"{decoded.schema}: {plural(gap.length, 'byte')} not decoded, at byte {gap.offset} (0x{gap.offset:x})"
    return None if decoded.error is None else str(decoded.error)


def row_of(columns: list[_Column], frames: Frames, around: list[Any]) -> Row:
    """The columns that are not null."""
    row = {}
    for name, read, fitting, fitted in columns:
        value = read(frames, around)
        if value is not None and value.__class__ is not fitting:
            value = fitted(value)
        if value is not None:
            row[name] = value
    return row


def elements(value: Any, each: tuple[Step, ...]) -> Iterable[list[Any]]:
    """The frame with the elements that contain each row, outermost first."""
    return _descend([value], _lists(each)) if ALL in each else ([value],)


@cache
def _lists(each: tuple[Step, ...]) -> list[tuple[Step, ...]]:
    """The paths of the lists along a path with ``[]``, each relative to an element of the previous list."""
    parts: list[tuple[Step, ...]] = []
    begin = 0
    for index, step in enumerate(each):
        if step == ALL:
            parts.append(each[begin:index])
            begin = index + 1
    return parts


def _descend(around: list[Any], parts: Sequence[tuple[Step, ...]]) -> Iterator[list[Any]]:
    if not parts:
        yield around
        return
    items = _followed(around[-1], parts[0])
    for item in items if isinstance(items, list) else ():
        yield from _descend([*around, item], parts[1:])


def indexed(value: Any, steps: tuple[Step, ...], path: str = "") -> Iterator[str]:
    """The path, with indexes, of each element that a path with ``[]`` leads to, as in checks."""
    at = steps.index(ALL) if ALL in steps else len(steps)
    here = "".join([path, *(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps[:at])]).lstrip(".")
    if at == len(steps):
        yield here
        return
    items = _followed(value, steps[:at])
    for number, item in enumerate(items if isinstance(items, list) else ()):
        yield from indexed(item, steps[at + 1 :], f"{here}[{number}]")


def _followed(value: Any, steps: tuple[Any, ...]) -> Any:
    """The value at a path without ``[]``; None if there is none."""
    for step in steps:
        if isinstance(value, Record):
            value = getattr(value, step, None) if step in value._fields else None
        elif isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        elif isinstance(value, Mapping):
            value = value.get(step)
        else:
            return None
    return value


def _elements(value: Any, steps: tuple[Step, ...]) -> list[Any] | None:
    """The elements of all lists along a path with ``[]``; None if there is no list."""
    at = steps.index(ALL)
    items = _followed(value, steps[:at])
    if not isinstance(items, list):
        return None
    inner_steps = steps[at + 1 :]
    if ALL not in inner_steps:
        return [_followed(item, inner_steps) for item in items]
    return [inner for item in items for inner in _elements(item, inner_steps) or ()]


def _path(steps: tuple[Step, ...], each: tuple[Step, ...]) -> _Read:
    depth, steps_left = bound(each, steps)
    if ALL in steps_left:
        return lambda frames, around: _elements(around[depth], steps_left)
    if len(steps_left) == 1 and isinstance(steps_left[0], str):
        name = steps_left[0]

        def field_of(frames: Frames, around: list[Any]) -> Any:
            value = around[depth]
            if isinstance(value, Record):
                return getattr(value, name, None) if name in value._fields else None
            return value.get(name) if isinstance(value, Mapping) else None

        return field_of
    return lambda frames, around: _followed(around[depth], steps_left)


class _Compiler:
    """Compiles declared values to functions that read them."""

    def __init__(self, protocol: str) -> None:
        self._protocol = protocol

    def columns(self, columns: Mapping[str, Value], each: tuple[Step, ...], types: Mapping[str, str]) -> list[_Column]:
        """Columns with the functions that read them, converted to their types."""
        return [(name, self.value(value, each), *_fitting(types[name])) for name, value in columns.items()]

    def condition(self, when: Value) -> Callable[[Frames], bool]:
        """A function that evaluates a condition of frames; it is true if there is no condition."""
        if when is None:
            return lambda frames: True
        read = self.value(when, ())
        return lambda frames: read(frames, [frames.value]) is True

    def value(self, value: Value, each: tuple[Step, ...]) -> _Read:
        """A function that evaluates a declared value."""
        match value:
            case str():
                return _path(parse(value), each)
            case Fixed(value=fixed):
                return lambda frames, around: fixed
            case First(values=values):
                return _first([self.value(inner, each) for inner in values])
            case Except(value=inner, other=other):
                return _except(self.value(inner, each), other)
            case Total(path=path, add=add):
                return _total(self.value(path, each), add)
            case Text(separator=separator, values=values):
                return _text(separator, [self.value(inner, each) for inner in values])
            case Extract(value=inner, pattern=pattern):
                return _extract(self.value(inner, each), pattern)
            case Asked(value=inner):
                return _of_request(self.value(inner, ()))
            case Named(names=names, key=key, column=column):
                return _name_value(names, self.value(key, each), column)
            case Inside(path=path, layout=layout, value=inner):
                return _inside(self.value(path, each), f"{self._protocol}.{layout}", self.value(inner, ()))
            case Elements(each=path, columns=columns):
                return self._elements(parse(path), columns)
        return _computed(expression(value))

    def _elements(self, each: tuple[Step, ...], columns: Mapping[str, Value]) -> _Read:
        if not columns:
            return _path(each, ())
        reads = [(name, self.value(value, each)) for name, value in columns.items()]

        def structures(frames: Frames, around: list[Any]) -> list[Row] | None:
            items = [{name: read(frames, inner) for name, read in reads} for inner in elements(around[0], each)]
            return items or None

        return structures


def _first(reads: list[_Read]) -> _Read:
    def first(frames: Frames, around: list[Any]) -> Any:
        for read in reads:
            value = read(frames, around)
            if value is not None:
                return value
        return None

    return first


def _except(read: _Read, other: int | str) -> _Read:
    def unless(frames: Frames, around: list[Any]) -> Any:
        value = read(frames, around)
        return None if value == other else value

    return unless


def _total(read: _Read, add: int) -> _Read:
    def total(frames: Frames, around: list[Any]) -> int | None:
        items = read(frames, around)
        return None if items is None else sum(int(item) + add for item in items if item is not None)

    return total


def _text(separator: str, reads: list[_Read]) -> _Read:
    def text(frames: Frames, around: list[Any]) -> str | None:
        parts = [_as_text(read(frames, around)) for read in reads]
        return None if None in parts else separator.join(map(str, parts))

    return text


def _extract(read: _Read, pattern: str) -> _Read:
    search = re.compile(pattern).search

    def extract(frames: Frames, around: list[Any]) -> str | None:
        text = read(frames, around)
        match = search(text) if isinstance(text, str) else None
        return match[1] if match is not None else None

    return extract


def _of_request(read: _Read) -> _Read:
    def of_request(frames: Frames, around: list[Any]) -> Any:
        if frames.request is None:
            return None
        request = Frames(frames.request, None, frames.names)
        return read(request, [frames.request])

    return of_request


def _name_value(names: str, read: _Read, column: str) -> _Read:
    def name_value(frames: Frames, around: list[Any]) -> Any:
        return frames.names.get(names, {}).get(read(frames, around), {}).get(column)

    return name_value


def _inside(read: _Read, key: str, inner: _Read) -> _Read:
    def inside(frames: Frames, around: list[Any]) -> Any:
        data = read(frames, around)
        if not isinstance(data, bytes):
            return None
        decoded = decode(data, key)
        return None if decoded.error is not None else inner(Frames(decoded.value), [decoded.value])

    return inside


def _computed(tree: Expression) -> _Read:
    """An expression over the frame's fields; null if one of the fields is null, as in SQL."""

    def compute(tree: Expression, value: Any) -> Any:
        match tree:
            case Literal(value=literal):
                return literal
            case Field(names=names):
                return _followed(value, names)
            case LengthOf(of=inner):
                measured = compute(inner, value)
                return None if measured is None else len(measured)
            case Context():
                return None
        operands = [compute(operand, value) for operand in tree.operands]
        if None in operands:
            return None
        try:
            return FUNCTIONS[tree.symbol, len(operands)](*operands)
        except (TypeError, ValueError, ZeroDivisionError):
            return None

    return lambda frames, around: compute(tree, around[0])


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Symbol):
        return value.symbol or str(int(value))
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return str(value) if isinstance(value, int) else None


def _as_number(value: Any) -> int | None:
    if isinstance(value, int):
        return int(value)
    return whole_number(value) if isinstance(value, str) else None


def _fitting(type_: str) -> tuple[type, Callable[[Any], Any]]:
    """The Python class of a column type's values, and a function that converts other values, or None."""
    if type_ == TEXT:
        return str, _as_text
    if type_ in (INT, BIGINT) or type_.startswith("timestamp"):
        return int, _as_number
    if type_ == BOOLEAN:
        return bool, bool
    if type_ == BINARY:
        return bytes, _as_bytes
    if type_ == "list<string>":
        return type(None), _as_texts
    return list, lambda value: value


def _as_bytes(value: Any) -> bytes | None:
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value


def _as_texts(value: Any) -> list[str | None]:
    return [_as_text(item) for item in value] if isinstance(value, list) else [_as_text(value)]
