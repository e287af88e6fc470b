"""Record batches as JSON lines: the same as ``wirekit.values.json_text`` of ``to_json`` of a row.

A line is an object whose fields are columns of the batch or constants. Numbers and times are written as integers,
``binary`` as hex, text and dictionaries of text as strings, flags as ``true`` and ``false``, nulls as ``null``.
Nothing here knows a protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirekit.compiler.columns.column_names import no_column
from wirekit.compiler.columns.run import byte_strings
from wirekit.errors import Misuse
from wirekit.values import CONTROLS, json_text, to_json

PIECE = 1 << 20  # bytes of text that are made at once, so that they stay in the processor's cache; more for a long line
FIELD = 32  # bytes of a name and a number

_NEWLINE = 10
_NO_OTHER = (1 << 63, b"")
_TEXT = pa.large_string()
_NOTHING = pa.scalar("", _TEXT)
_CONTROLS = "".join(rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in CONTROLS)
_ESCAPED = rf'["\\\x00-\x1f{_CONTROLS}]'
"""The characters that ``json_text`` does not leave unchanged, as a pattern for Arrow."""


def lines(batch: pa.RecordBatch, fields: Sequence[str], fixed: Mapping[str, Any]) -> Iterator[memoryview]:
    """The lines of a batch, about a MiB at a time.

    Args:
        fields: the names in a line, in order.
        fixed: the fields that are the same in all lines, anything that ``to_json`` takes; the others are columns.

    Raises:
        Misuse: a field is neither fixed nor a column, or its column's type has no JSON.

    >>> batch = pa.RecordBatch.from_pydict({"offset": [7, None], "value": [b"hi", None]})
    >>> print(b"".join(lines(batch, ["topic", "offset", "value"], {"topic": "t"})).decode(), end="")
    {"topic": "t", "offset": 7, "value": "6869"}
    {"topic": "t", "offset": null, "value": null}
    """
    sizes = np.full(batch.num_rows, FIELD * len(fields), np.int64)
    for column in batch.columns:
        if _is_bytes(column.type) or _is_text(column.type):
            sizes += 2 * np.asarray(pc.binary_length(column).fill_null(0))
    ends = np.cumsum(sizes)
    row = 0
    while row < batch.num_rows:
        after = int(np.searchsorted(ends, ends[row] - sizes[row] + PIECE, side="right"))
        part = batch.slice(row, max(after - row, 1))
        row += part.num_rows
        yield memoryview(_joined(part, fields, fixed).buffers()[2])


def with_others(pieces: Iterable[memoryview], others: Iterable[tuple[int, bytes]]) -> Iterator[bytes | memoryview]:
    """Pieces of whole lines, with other lines between them.

    Args:
        pieces: the pieces, as ``lines`` returns them.
        others: (number, line): the line is inserted before the line with this number; in order.

    >>> b"".join(with_others([memoryview(b"a\\nb\\n"), memoryview(b"c\\n")], [(1, b"x\\n"), (3, b"y\\n")]))
    b'a\\nx\\nb\\nc\\ny\\n'
    """
    remaining, before = iter(others), 0
    place, line = next(remaining, _NO_OTHER)
    for piece in pieces:
        ends = np.flatnonzero(np.frombuffer(piece, np.uint8) == _NEWLINE) + 1
        begin = 0
        while place < before + ends.size:
            end = int(ends[place - before - 1]) if place > before else 0
            yield piece[begin:end]
            yield line
            begin = end
            place, line = next(remaining, _NO_OTHER)
        yield piece[begin:]
        before += ends.size
    while line:
        yield line
        _, line = next(remaining, _NO_OTHER)


def _joined(batch: pa.RecordBatch, fields: Sequence[str], fixed: Mapping[str, Any]) -> pa.Array:
    """The lines of all rows: the columns, with texts between them that are the same in each line."""
    texts, columns = ["{"], []
    for index, name in enumerate(fields):
        texts[-1] += f"{', ' if index else ''}{json_text(name)}: "
        if name in fixed:
            texts[-1] += json_text(to_json(fixed[name]))
            continue
        if name not in batch.schema.names:
            raise no_column("the batch", name, batch.schema.names)
        column, quote = _shown(name, batch[name]), ""
        if pa.types.is_dictionary(batch[name].type) or _is_bytes(batch[name].type) or _is_text(batch[name].type):
            quote = '"'
        if column.null_count and quote:
            column, quote = pc.binary_join_element_wise(*_scalars('"'), column, *_scalars('"', "")), ""
        columns.append(column.fill_null("null") if column.null_count else column)
        texts[-1] += quote
        texts.append(quote)
    texts[-1] += "}\n"
    first, *others = _scalars(*texts)
    between = (each for pair in zip(columns, others, strict=True) for each in pair)
    lines = pc.binary_join_element_wise(first, *between, _NOTHING)
    return lines if columns else pa.repeat(lines, batch.num_rows)


def _scalars(*texts: str) -> list[pa.Scalar]:
    return [pa.scalar(text, _TEXT) for text in texts]


def _shown(name: str, array: pa.Array) -> pa.Array:
    """The text of each value of a column, without quotes."""
    kind = array.type
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        array = array.view(pa.int64())
    if pa.types.is_integer(array.type) or pa.types.is_boolean(kind) or pa.types.is_null(kind):
        return array.cast(_TEXT)
    if pa.types.is_dictionary(kind) and pa.types.is_string(kind.value_type):
        return _escaped(array.dictionary.cast(_TEXT)).take(array.indices)
    if _is_text(kind):
        return _escaped(array.cast(_TEXT))
    if not _is_bytes(kind):
        raise Misuse(f"the column {name!r} is {kind}, which has no JSON form")
    data, starts, ends, valid = byte_strings(array)
    first = int(starts[0])
    digits = data.data[first : int(ends[-1])].hex().encode()
    offsets = 2 * (np.append(starts, ends[-1:]) - first)
    present = pa.array(valid).buffers()[1] if array.null_count else None
    return pa.Array.from_buffers(_TEXT, len(array), [present, pa.py_buffer(offsets), pa.py_buffer(digits)])


def _escaped(array: pa.Array) -> pa.Array:
    """Text with the escapes of JSON strings."""
    special = pc.match_substring_regex(array, _ESCAPED).fill_null(False)
    if not pc.any(special).as_py():
        return array
    texts = [json_text(text)[1:-1] for text in array.filter(special).to_pylist()]
    return pc.replace_with_mask(array, special, pa.array(texts, _TEXT))


def _is_bytes(kind: pa.DataType) -> bool:
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)
