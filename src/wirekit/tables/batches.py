"""The evaluator of declarations that works on columns: the frames of one layout and kind at once.

It returns the same rows as ``records``, for frames that decode without an error or a failed check. A path leads into
the list columns of a batch. A path or expression that it cannot evaluate raises ``Unfit``; ``records`` then evaluates
the frames.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirekit.compiler.columns.column_names import names
from wirekit.compiler.columns.programs import Columnar, program
from wirekit.compiler.columns.ranges import DOUBTFUL, REFUSED, scan_ranges
from wirekit.compiler.expressions import Expression, Field, Literal, Operation, expression, fields_of
from wirekit.errors import Misuse
from wirekit.tables.columns import BIGINT, BINARY, BOOLEAN, INT, MICROS, MILLIS, TEXT, arrow_type
from wirekit.tables.declaration import (
    Asked,
    Elements,
    Except,
    Extract,
    First,
    Fixed,
    Inside,
    Named,
    Text,
    Total,
    Value,
)
from wirekit.tables.paths import ALL, Step, bound, column_at, parse
from wirekit.times import EARLIEST_US, LATEST_US

if TYPE_CHECKING:
    from numpy.typing import NDArray

NUMBERS = (INT, BIGINT, MILLIS, MICROS)
MOST_REPEATED = 128 << 20
"""The maximum bytes of text that the rows of a window repeat, such as a topic in the rows of its partitions.

``records`` evaluates the frames with more; its rows need not be in memory at once.
"""
OPENED_AT_ONCE = 64 << 20
"""The maximum of decompressed bytes of messages in memory at once, unless a single frame has more."""
MESSAGE = 256
"""The approximate number of bytes that a message without content takes in columns."""
SHORT = 1 << 16
"""Text that a column repeats counts only if its longest value, in every row, would take more bytes than this."""
_HALF = 1 << 63


class Unfit(Exception):
    """A declared value cannot be evaluated by columns."""


class Crowded(Exception):
    """The messages of the frames have too many decompressed bytes to be in memory at once.

    Attributes:
        rows: the number of frames, from the first one on, whose messages may be in memory at once; at least 1.
    """

    def __init__(self, rows: int) -> None:
        super().__init__(f"{rows} frames have enough messages")
        self.rows = rows


@dataclass(frozen=True, slots=True)
class Values:
    """One value per row.

    Attributes:
        array: the values.
        symbols: {number: name} for numbers with names.
    """

    array: pa.Array
    symbols: Mapping[int, str] = field(default_factory=dict)


@dataclass(slots=True)
class Repeats:
    """What the rows of a window may still repeat.

    Attributes:
        left: bytes of text.
    """

    left: int = MOST_REPEATED

    def taken(self, array: pa.Array, places: NDArray[Any], missing: NDArray[Any] | None = None) -> pa.Array:
        """Values at some places of a column.

        Args:
            array: the column.
            places: the places.
            missing: of ``places``, those that have a null instead.

        Raises:
            Unfit: their text is much longer than that of the column.
        """
        long = len(array) > 0 and array.nbytes * places.size > SHORT
        if long and (pa.types.is_string(array.type) or pa.types.is_binary(array.type)):
            lengths = np.asarray(pc.binary_length(array).fill_null(0)).astype(np.int64)
            if int(lengths.max()) * places.size > SHORT:
                there = places if missing is None else places[~missing]
                more = max(0, int(lengths[there].sum() - lengths.sum()))
                if more > self.left:
                    raise Unfit(f"{more} bytes of repeated text")
                self.left -= more
        return array.take(pa.array(places, mask=missing))


@dataclass(slots=True)
class Frames:
    """Frames of one layout and kind.

    Attributes:
        protocol: its name.
        batch: their fields, one row per frame.
        numbers: their numbers among all frames.
        asked: returns a value, converted to a column type, of the requests that they answer.
        named: looks up (names, keys, column) on their connections.
        doubted: receives the rows that must be evaluated one by one.
        repeats: what the rows may repeat, shared by the frames of a window.
    """

    protocol: str
    batch: pa.RecordBatch
    numbers: NDArray[Any]
    asked: Callable[[Frames, Value, str], Values]
    named: Callable[[Frames, str, Values, str], Values]
    doubted: Callable[[Frames, NDArray[Any]], None]
    repeats: Repeats

    def part(self, begin: int, end: int) -> Frames:
        """A range of the frames, by their rows in the batch."""
        return replace(self, batch=self.batch.slice(begin, end - begin), numbers=self.numbers[begin:end])


class Opened:
    """Counts the bytes of messages in frames, which are added in the order of the frames."""

    def __init__(self) -> None:
        self._size, self._first = 0, -1

    def add(self, row: int, size: int) -> None:
        """Adds the decompressed bytes of messages of the frame in a row.

        Raises:
            Crowded: together with those of earlier frames, the bytes are too many.
        """
        self._first = row if self._first < 0 else self._first
        self._size += size
        if self._size > OPENED_AT_ONCE and row > self._first:
            raise Crowded(row)


def refuse_crowds(rows: NDArray[Any]) -> None:
    """Refuses several frames with too many messages to be in memory at once.

    Args:
        rows: the row of each message's frame, in order.

    Raises:
        Crowded: there are too many.
    """
    most = max(OPENED_AT_ONCE // MESSAGE, int(np.searchsorted(rows, rows[:1], side="right").sum()))
    if rows.size > most:
        raise Crowded(int(rows[most]))


class Scope:
    """One row for each frame, or for each element of a list in it.

    Args:
        frames: the frames.
        each: path of the list; empty for the frames themselves.
        places: for each row, the row of its frame, if the rows are neither those of the batch nor of ``each``.
    """

    def __init__(self, frames: Frames, each: tuple[Step, ...] = ()) -> None:
        self.frames, self.each = frames, each
        self.batch = frames.batch
        self.size = self.batch.num_rows
        owners: list[NDArray[Any]] = []
        for end, step in enumerate(each):
            if step == ALL:
                column = self._below(each[:end])
                offsets = _offsets(_inside(column, len(owners)))
                owners.append(np.repeat(np.arange(offsets.size - 1), np.diff(offsets)))
                self.size = owners[-1].size
        self._owners = owners[-1] if owners else np.arange(self.size)
        self._places: list[NDArray[Any] | None] = [None]
        for owner in reversed(owners):
            inner = self._places[0]
            self._places.insert(0, owner if inner is None else owner[inner])

    @property
    def rows(self) -> NDArray[Any]:
        """For each row, the row of its frame."""
        outer = self._places[0]
        return np.arange(self.size) if outer is None else outer

    @property
    def owners(self) -> NDArray[Any]:
        """For each element of the innermost list, the element or frame that contains the list."""
        return self._owners

    def path(self, path: str) -> Values:
        """The column at a path; null if the path leads nowhere.

        Raises:
            Unfit: the path leads to fields inside the elements of a list.
        """
        steps = parse(path)
        depth, left = bound(self.each, steps)
        number = self.batch.schema.get_field_index(column_at(path))
        if number < 0:
            return Values(pa.nulls(self.size))
        at = self._places[depth]
        column, mask = _inside(self.batch.column(number), depth), None
        if ALL in left and left.index(ALL) != len(left) - 1:
            raise Unfit(f"{path}: more than the elements of a list")
        for step in left:
            if isinstance(step, int) and step != ALL:
                offsets = _offsets(column)
                first = offsets[:-1] if at is None else offsets[:-1][at]
                ends = offsets[1:] if at is None else offsets[1:][at]
                missing = first + step >= ends
                mask = missing if mask is None else mask | missing
                at, column = np.where(mask, 0, first + step), _flat(column)
        if at is not None:
            column = self.frames.repeats.taken(column, at, mask)
        return Values(column, _symbols(self.batch.schema.field(number).metadata))

    def lists(self, path: str) -> tuple[pa.Array, NDArray[Any], pa.Array]:
        """For a path with one ``[]`` left: the elements, the first index of each row, and whether a row has a list.

        Raises:
            Unfit: the path has another number of ``[]``.
        """
        steps = parse(path)
        depth, left = bound(self.each, steps)
        if left.count(ALL) != 1:
            raise Unfit(f"{path}: not the elements of one list")
        number = self.batch.schema.get_field_index(column_at(path))
        if number < 0:
            return pa.nulls(0), np.zeros(self.size + 1, np.int64), pa.nulls(self.size)
        return self._elements(self.batch.column(number), depth)

    def lengths(self, path: str) -> NDArray[Any]:
        """The number of elements of each list; 0 for an absent list.

        Raises:
            Unfit: the path leads to lists inside of lists.
        """
        steps = parse(path)
        depth, left = bound(self.each, steps)
        if ALL in left:
            raise Unfit(f"{path}: lists of lists")
        return np.diff(self._elements(self._below(steps), depth)[1])

    def _elements(self, column: pa.Array, depth: int) -> tuple[pa.Array, NDArray[Any], pa.Array]:
        column, at = _inside(column, depth), self._places[depth]
        if at is not None:
            column = column.take(pa.array(at))
        return _flat(column), _offsets(column), column.is_valid()

    def _below(self, steps: tuple[Step, ...]) -> pa.Array:
        """A column of the list at a path, or of a field in its elements."""
        prefix = ".".join(step for step in steps if isinstance(step, str))
        for name in self.batch.schema.names:
            if name == prefix or name.startswith(f"{prefix}."):
                column = self.batch.column(name)
                kind, depth = column.type, 0
                while pa.types.is_list(kind) or pa.types.is_large_list(kind):
                    kind, depth = kind.value_type, depth + 1
                if depth > steps.count(ALL):
                    return column
        return pa.nulls(self.batch.num_rows, pa.list_(pa.null()))


def _inside(column: pa.Array, depth: int) -> pa.Array:
    """The elements of a column of lists, or of lists in lists."""
    for _ in range(depth):
        column = _flat(column)
    return column


def _flat(column: pa.Array) -> pa.Array:
    """The elements of all lists, without those outside any list."""
    if pa.types.is_null(column.type):
        return column
    offsets = np.asarray(column.offsets)
    return column.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))


def _offsets(column: pa.Array) -> NDArray[Any]:
    """The index of the first element of each list, and the end of the last list."""
    if pa.types.is_null(column.type):
        return np.zeros(len(column) + 1, np.int64)
    offsets = np.asarray(column.offsets).astype(np.int64)
    return offsets - offsets[0]


def _symbols(metadata: Mapping[bytes, bytes] | None) -> Mapping[int, str]:
    return _named_numbers(metadata[b"wirekit.symbols"]) if metadata and b"wirekit.symbols" in metadata else {}


@lru_cache(1 << 8)
def _named_numbers(text: bytes) -> Mapping[int, str]:
    return {int(number): name for number, name in json.loads(text).items()}


# The fields that a declaration reads


def paths_of(values: Iterable[Value]) -> Iterator[str]:
    """The paths that values read in their own frame; those in ``Asked`` are in another."""
    for value in values:
        match value:
            case str():
                yield value
            case First(values=inner) | Text(values=inner):
                yield from paths_of(inner)
            case Except(value=inner) | Extract(value=inner) | Named(key=inner):
                yield from paths_of([inner])
            case Total(path=path) | Inside(path=path):
                yield path
            case Elements(each=path, columns=columns):
                yield path
                yield from paths_of(columns.values())
            case Fixed() | Asked() | None:
                pass
            case _:
                yield from (".".join(each.names) for each in fields_of(expression(value)))


def asked_of(values: Iterable[Value]) -> Iterator[Value]:
    """The values that are read from the requests that frames answer."""
    for value in values:
        match value:
            case Asked(value=inner):
                yield inner
            case First(values=inner) | Text(values=inner):
                yield from asked_of(inner)
            case Except(value=inner) | Extract(value=inner) | Named(key=inner):
                yield from asked_of([inner])


def columns_for(key: str, paths: Iterable[str], context: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    """The columns of a schema at these paths; for a structure, or a list of structures, its first column.

    Raises:
        Unfit: a path leads to columns of several types.
    """
    return _columns_at(key, program(key, context), tuple(paths))


@lru_cache(1 << 10)
def _columns_at(key: str, columnar: Columnar, paths: tuple[str, ...]) -> tuple[str, ...]:
    known = names(columnar)
    ordered = sorted(known)
    columns: dict[str, None] = {}
    for path in paths:
        name = column_at(path)
        if _first_with(f"{name}:", ordered) is not None:
            raise Unfit(f"{key} has {name} in several types")
        inside = name if name in known else _first_with(f"{name}.", ordered)
        if inside is not None:
            columns[inside] = None
    return tuple(columns)


def _first_with(prefix: str, ordered: list[str]) -> str | None:
    """The first of some sorted texts that has a prefix; None if none has it."""
    place = bisect_left(ordered, prefix)
    return ordered[place] if place < len(ordered) and ordered[place].startswith(prefix) else None


# Values


def evaluate(value: Value, scope: Scope, kind: str) -> Values:
    """Evaluates a declared value for each row of a scope.

    Args:
        value: the declared value.
        scope: the rows.
        kind: the type of the column.

    Raises:
        Unfit: the frames must be evaluated one by one.
    """
    match value:
        case str():
            return scope.path(value)
        case Fixed(value=fixed):
            return Values(pa.repeat(pa.scalar(fixed), scope.size))
        case First(values=several):
            return Values(pc.coalesce(*(fitted(evaluate(each, scope, kind), kind) for each in several)))
        case Except(value=inner, other=other):
            return _unless(evaluate(inner, scope, kind), other)
        case Total(path=path, add=add):
            return _total(scope, path, add)
        case Text(separator=separator, values=several):
            parts = [fitted(evaluate(each, scope, TEXT), TEXT) for each in several]
            return Values(pc.binary_join_element_wise(*parts, separator))
        case Extract(value=inner, pattern=pattern):
            return _extracted(fitted(evaluate(inner, scope, TEXT), TEXT), pattern)
        case Asked(value=inner):
            return _of_frames(scope.frames.asked(scope.frames, inner, kind), scope)
        case Named(names=name, key=key, column=column):
            whole = Scope(scope.frames)
            meanings = scope.frames.named(scope.frames, name, evaluate(key, whole, BIGINT), column)
            return _of_frames(meanings, scope)
        case Inside(path=path, layout=layout, value=inner):
            return _decoded(scope, path, layout, inner, kind)
        case Elements(each=path, columns=columns):
            return _structures(scope, parse(path), columns, kind)
    return Values(_computed(expression(value), scope))


def where(when: Value, scope: Scope) -> NDArray[Any]:
    """A mask of the frames for which a condition is true."""
    truth = _computed(expression(when), scope)
    if not pa.types.is_boolean(truth.type):
        return np.zeros(scope.size, bool)
    return np.asarray(pc.fill_null(truth, False))


def _of_frames(values: Values, scope: Scope) -> Values:
    if not scope.each:
        return values
    return Values(scope.frames.repeats.taken(values.array, scope.rows), values.symbols)


def _unless(values: Values, other: int | str) -> Values:
    array = values.array
    if pa.types.is_null(array.type) or pa.types.is_string(array.type) != isinstance(other, str):
        return values
    if isinstance(other, int) and not (pa.types.is_integer(array.type) or pa.types.is_boolean(array.type)):
        return values
    try:
        same = pc.equal(array, pa.scalar(other, array.type))
    except (OverflowError, pa.ArrowInvalid):
        return values
    return Values(pc.if_else(same, pa.scalar(None, array.type), array), values.symbols)


def _total(scope: Scope, path: str, add: int) -> Values:
    items, offsets, lists_valid = scope.lists(path)
    if pa.types.is_null(items.type):
        return Values(pa.nulls(scope.size))
    valid = np.asarray(items.is_valid())
    numbers = np.asarray(pc.fill_null(items, 0)).astype(np.int64) + add
    sums = np.concatenate([[0], np.cumsum(np.where(valid, numbers, 0))])
    return Values(pa.array(sums[offsets[1:]] - sums[offsets[:-1]], mask=~np.asarray(lists_valid)))


def _extracted(texts: pa.Array, pattern: str) -> Values:
    search = re.compile(pattern).search
    coded = texts.dictionary_encode()
    groups = [
        None if each is None or (match := search(each)) is None else match[1] for each in coded.dictionary.to_pylist()
    ]
    return Values(pa.array(groups, pa.string()).take(coded.indices))


def _decoded(scope: Scope, path: str, layout: str, value: Value, kind: str) -> Values:
    """A value inside bytes of a frame."""
    data = scope.path(path).array
    if not pa.types.is_binary(data.type):
        return Values(pa.nulls(scope.size))
    frames = scope.frames
    valid_rows = np.flatnonzero(np.asarray(data.is_valid()))
    _, offsets, content = data.buffers()
    places = np.frombuffer(offsets, np.int32)[data.offset :][: len(data) + 1].astype(np.int64)
    key = f"{frames.protocol}.{layout}"
    try:
        batch, states = scan_ranges(
            key,
            content if content is not None else b"",
            places[:-1][valid_rows],
            places[1:][valid_rows],
            fields=columns_for(key, paths_of([value])),
            prefix=True,
        )
    except Misuse as error:
        raise Unfit(str(error)) from None
    if (states == DOUBTFUL).any():  # records escape text that is no UTF-8
        frames.doubted(frames, np.unique(scope.rows[valid_rows[states == DOUBTFUL]]))
    rows = valid_rows[states < REFUSED]
    values = evaluate(value, Scope(replace(frames, batch=batch)), kind)
    back = np.full(scope.size, -1, np.int64)
    back[rows] = np.arange(rows.size)
    return Values(values.array.take(pa.array(back, mask=back < 0)), values.symbols)


def _structures(scope: Scope, each: tuple[Step, ...], columns: Mapping[str, Value], kind: str) -> Values:
    """A list of structures for each frame, null instead of an empty list."""
    if scope.each or not columns:
        raise Unfit("lists of structures inside of lists")
    items = Scope(scope.frames, each)
    types = {field.name: field.type for field in arrow_type(kind).value_type}
    arrays = [
        fitted(evaluate(columns[name], items, _type_name(type_)), _type_name(type_)) for name, type_ in types.items()
    ]
    counts = np.bincount(items.rows, minlength=scope.size)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    content = pa.StructArray.from_arrays(arrays, fields=list(arrow_type(kind).value_type))
    empty = pa.array(np.append(counts == 0, False))
    return Values(pa.ListArray.from_arrays(pc.if_else(empty, pa.scalar(None, pa.int32()), pa.array(offsets)), content))


def _type_name(kind: pa.DataType) -> str:
    return {pa.string(): TEXT, pa.int32(): INT, pa.int64(): BIGINT}[kind]


_COMPARED = {
    "==": pc.equal,
    "!=": pc.not_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
    "<": pc.less,
    "<=": pc.less_equal,
}


def _computed(tree: Expression, scope: Scope) -> pa.Array:
    """An expression over the frame's fields, null if one of them is null."""
    match tree:
        case Literal(value=value):
            return pa.repeat(pa.scalar(value), scope.size)
        case Field(names=parts):
            column = Scope(scope.frames).path(".".join(parts)).array
            array = column if not scope.each else scope.frames.repeats.taken(column, scope.rows)
            return array.cast(pa.int64()) if pa.types.is_boolean(array.type) else array
        case Operation(symbol=symbol, operands=(one, other)) if symbol in _COMPARED:
            left, right = _computed(one, scope), _computed(other, scope)
            if pa.types.is_null(left.type) or pa.types.is_null(right.type):
                return pa.nulls(scope.size, pa.bool_())
            if pa.types.is_string(left.type) != pa.types.is_string(right.type):
                raise Unfit(f"{tree}: text and number")
            return _COMPARED[symbol](left, right)
        case Operation(symbol="&", operands=(one, other)):
            left, right = _computed(one, scope), _computed(other, scope)
            if pa.types.is_boolean(left.type) and pa.types.is_boolean(right.type):
                return pc.and_(left, right)
    raise Unfit(f"{tree}: only comparisons, joined by &")


# Columns


def fitted(values: Values, kind: str) -> pa.Array:
    """Values converted to a column's type, with the rules of ``records`` and ``Rows``.

    Raises:
        Unfit: the values have a type that columns do not convert.
    """
    array, type_ = values.array, arrow_type(kind)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), type_)
    if array.type == type_:
        return array
    if kind == TEXT:
        return _text(array, values.symbols)
    if kind in NUMBERS:
        return _number(array, kind)
    if kind == BOOLEAN and pa.types.is_integer(array.type):
        return pc.not_equal(array, 0)
    if kind == BINARY and pa.types.is_string(array.type):
        return array.cast(type_)
    if pa.types.is_list(type_) and pa.types.is_list(array.type):
        return array.cast(type_)
    if kind == "list<string>":
        texts = _text(array, values.symbols)
        valid = np.asarray(texts.is_valid())
        offsets = np.concatenate([[0], np.cumsum(valid)]).astype(np.int32)
        begins = pa.array(offsets, mask=np.append(~valid, False))
        return pa.ListArray.from_arrays(begins, texts.drop_null())
    raise Unfit(f"{array.type} as {kind}")


def _text(array: pa.Array, symbols: Mapping[int, str]) -> pa.Array:
    if pa.types.is_large_string(array.type):
        return array.cast(pa.string())
    if pa.types.is_string(array.type):
        return array
    if pa.types.is_boolean(array.type) or not (pa.types.is_integer(array.type) or pa.types.is_binary(array.type)):
        raise Unfit(f"{array.type} as text")
    coded = array.dictionary_encode()
    texts = [_as_text(each, symbols) for each in coded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(coded.indices)


def _as_text(value: Any, symbols: Mapping[int, str]) -> str | None:
    if value is None:
        return None
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else symbols.get(value) or str(value)


def _number(array: pa.Array, kind: str) -> pa.Array:
    type_ = arrow_type(kind)
    if pa.types.is_string(array.type):
        coded = array.dictionary_encode()
        numbers = [_as_number(each) for each in coded.dictionary.to_pylist()]
        array = pa.array(numbers, pa.int64()).take(coded.indices)
    elif pa.types.is_boolean(array.type):
        array = array.cast(pa.int64())
    elif not pa.types.is_integer(array.type):
        raise Unfit(f"{array.type} as {kind}")
    if kind in (MILLIS, MICROS):
        unit = 1000 if kind == MILLIS else 1
        array = _between(array, EARLIEST_US // unit, LATEST_US // unit)
    elif kind == INT:
        array = _between(array, -(1 << 31), (1 << 31) - 1)
    elif array.type == pa.uint64():
        return array.view(pa.int64())
    return array.cast(pa.int64()).cast(type_)


def _between(array: pa.Array, low: int, high: int) -> pa.Array:
    """Numbers within a range; null for others."""
    if array.type.bit_width < 64 and array.type.bit_width < high.bit_length() + pa.types.is_signed_integer(array.type):
        return array
    beyond = pc.greater(array, pa.scalar(high, array.type))
    if pa.types.is_signed_integer(array.type):
        beyond = pc.or_(beyond, pc.less(array, pa.scalar(low, array.type)))
    return pc.if_else(beyond, pa.scalar(None, array.type), array)


def _as_number(text: str | None) -> int | None:
    if text is None or not (text.isascii() and text.isdecimal() and len(text) < 20):
        return None
    number = int(text)
    return number - 2 * _HALF if number >= _HALF else number
