"""The evaluator of declarations that works on columns: the frames of one layout and kind at once.

It returns the same rows as ``records``, for frames that decode without an error or a failed check. A path or
expression that it cannot evaluate raises ``Unfit``; ``records`` then evaluates the frames.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wirekit.compiler.columns.column_names import names
from wirekit.compiler.columns.programs import Columnar, program
from wirekit.compiler.columns.ranges import DOUBTFUL, REFUSED, scan_ranges
from wirekit.compiler.expressions import Expression, Field, Literal, Operation, expression, fields_of
from wirekit.errors import Misuse
from wirekit.tables.columns import BIGINT, INT, TEXT, arrow_type
from wirekit.tables.conversion import fitted
from wirekit.tables.declaration import Asked, Elements, Except, Extract, First, Fixed, Inside, Named, Text, Total, Value
from wirekit.tables.paths import Step, column_at, parse
from wirekit.tables.scopes import Scope, Unfit, Values


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
    column_names = names(columnar)
    ordered = sorted(column_names)
    columns: dict[str, None] = {}
    for path in paths:
        name = column_at(path)
        if _first_with(f"{name}:", ordered) is not None:
            raise Unfit(f"{key} has {name} in several types")
        inside = name if name in column_names else _first_with(f"{name}.", ordered)
        if inside is not None:
            columns[inside] = None
    return tuple(columns)


def _first_with(prefix: str, ordered: list[str]) -> str | None:
    """The first of some sorted texts that has a prefix; None if none has it."""
    place = bisect_left(ordered, prefix)
    return ordered[place] if place < len(ordered) and ordered[place].startswith(prefix) else None


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
        case First(values=values):
            return Values(pc.coalesce(*(fitted(evaluate(each, scope, kind), kind) for each in values)))
        case Except(value=inner, other=other):
            return _unless(evaluate(inner, scope, kind), other)
        case Total(path=path, add=add):
            return _total(scope, path, add)
        case Text(separator=separator, values=values):
            parts = [fitted(evaluate(each, scope, TEXT), TEXT) for each in values]
            return Values(pc.binary_join_element_wise(*parts, separator))
        case Extract(value=inner, pattern=pattern):
            return _extracted(fitted(evaluate(inner, scope, TEXT), TEXT), pattern)
        case Asked(value=inner):
            return _of_frames(scope.frames.request_values(scope.frames, inner, kind), scope)
        case Named(names=name, key=key, column=column):
            frame_scope = Scope(scope.frames)
            meanings = scope.frames.name_values(scope.frames, name, evaluate(key, frame_scope, BIGINT), column)
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
    return Values(scope.frames.repeats.repeated(values.array, scope.rows), values.symbols)


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
    if not same.true_count:
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
            array = column if not scope.each else scope.frames.repeats.repeated(column, scope.rows)
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
