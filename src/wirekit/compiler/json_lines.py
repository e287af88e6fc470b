"""Record batches as JSON lines, by generated code: the same as ``wirekit.values.json_text`` of ``to_json`` of a row.

A line is an object whose fields are columns of the batch or constants. Numbers and times are written as integers,
``binary`` as hex, text and dictionaries of text as strings, flags as ``true`` and ``false``, nulls as ``null``. For
each list of column types a kernel is generated, and kept by ``cache``.
Nothing here knows a protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wirekit.compiler import cache as columns_cache
from wirekit.errors import Misuse
from wirekit.values import json_text, to_json

PIECE = 4 << 20  # bytes of text that are written at once; more only for a longer line

_NEWLINE = 10
_NO_OTHER = (1 << 63, b"")

_HEAD = '''\
import numpy as np
from numba import njit

from wirekit.compiler.kernels.reads import copy
from wirekit.compiler.kernels.text import put_hex, put_null, put_part, put_signed, put_text, put_unsigned


@njit(nogil=True, cache=True)
def scan({arguments}):
    """Writes the lines of the rows from ``row`` on that fit; gives the next row and the bytes written."""
    w = np.int64(0)
    while row < rows:
        i = np.uint64(row)  # unsigned, so that numba does not check for negative indexes
        needed = {needed}
        if needed > out.size - w:
            break
'''
_TAIL = """\
        w = put_part(out, w, texts, ends, {last})
        row += 1
    return row, w
"""
_PUT = {
    "signed": "put_signed(out, w, c{k}[i])",
    "unsigned": "put_unsigned(out, w, c{k}[i])",
    "name": "put_part(out, w, d{k}, o{k}, c{k}[i])",
    "hex": "put_hex(out, w, d{k}, o{k}[i], o{k}[i + np.uint64(1)] - o{k}[i])",
    "text": "put_text(out, w, d{k}, o{k}[i], o{k}[i + np.uint64(1)] - o{k}[i])",
}


@dataclass(slots=True)
class _Column:
    """A column for the kernel: the ``kind`` of _PUT, its arrays by letter, the most characters besides its bytes."""

    kind: str
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    room: int = 4


class Lines:
    """Writes lines.

    Args:
        fields: the names in a line, in order.
        fixed: the fields that are the same in all lines, anything that ``to_json`` takes; the others are columns.

    >>> batch = pa.RecordBatch.from_pydict({"offset": [7, None], "value": [b"hi", None]})
    >>> print(b"".join(Lines(["topic", "offset", "value"], {"topic": "t"}).of(batch)).decode(), end="")
    {"topic": "t", "offset": 7, "value": "6869"}
    {"topic": "t", "offset": null, "value": null}
    """

    def __init__(self, fields: Sequence[str], fixed: Mapping[str, Any]) -> None:
        self.fields = fields
        self.fixed = fixed
        self._out = np.empty(PIECE, np.uint8)

    def of(self, batch: pa.RecordBatch) -> Iterator[memoryview]:
        """The lines of a batch, some MiB at a time; each piece is overwritten by the next.

        Raises:
            Misuse: a field is neither fixed nor a column, or its column's type has no JSON.
        """
        texts, columns = self._parts(batch)
        encoded = [text.encode() for text in texts]
        ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        arrays: list[NDArray[Any]] = [np.frombuffer(b"".join(encoded), np.uint8), ends]
        room = int(ends[-1]) + sum(column.room for column in columns)
        for column in columns:
            arrays += column.arrays.values()
        arrays = [_fixed(array) for array in arrays]
        write = columns_cache.function(_source(columns))
        row = 0
        while row < batch.num_rows:
            after, written = write(self._out, row, batch.num_rows, room, *arrays)
            if after == row:
                self._out = np.empty(2 * self._out.size, np.uint8)
                continue
            row = after
            yield self._out.data[:written]

    def _parts(self, batch: pa.RecordBatch) -> tuple[list[str], list[_Column]]:
        """The texts before each column and after the last, and the columns."""
        texts, columns = ["{"], []
        for index, name in enumerate(self.fields):
            texts[-1] += f"{', ' if index else ''}{json_text(name)}: "
            if name in self.fixed:
                texts[-1] += json_text(to_json(self.fixed[name]))
                continue
            if name not in batch.schema.names:
                raise Misuse(f"the batch has no column {name!r}; it has {', '.join(batch.schema.names)}")
            columns.append(_column(name, batch[name]))
            texts.append("")
        texts[-1] += "}\n"
        return texts, columns


def with_others(pieces: Iterable[memoryview], others: Iterable[tuple[int, bytes]]) -> Iterator[bytes | memoryview]:
    """Pieces of whole lines, with other lines between them.

    Args:
        pieces: the pieces, as ``Lines.of`` returns them.
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


def _source(columns: list[_Column]) -> str:
    from wirekit.compiler.kernels.text import LONGEST_ESCAPE

    arguments = ["out", "row", "rows", "room", "texts", "ends"]
    needed, body = "room", []
    for k, column in enumerate(columns):
        arguments += [f"{letter}{k}" for letter in column.arrays]
        if column.kind in ("hex", "text"):
            needed += f" + {2 if column.kind == 'hex' else LONGEST_ESCAPE} * np.int64(o{k}[i + np.uint64(1)] - o{k}[i])"
        put = _PUT[column.kind].format(k=k)
        put = f"{put} if v{k}.size == 0 or v{k}[i] else put_null(out, w)"
        body += [f"        w = put_part(out, w, texts, ends, {k})", f"        w = {put}"]
        kinds = ", ".join(str(array.dtype) for array in column.arrays.values())
        body[-1] += f"  # {kinds}"  # each list of types has a module of its own
    head = _HEAD.format(arguments=", ".join(arguments), needed=needed)
    return head + "\n".join([*body, ""]) + _TAIL.format(last=len(columns))


def _column(name: str, array: pa.Array) -> _Column:
    kind = array.type
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        array = array.view(pa.int64())
    if pa.types.is_boolean(kind):
        array = pa.DictionaryArray.from_arrays(array.cast(pa.int8()), pa.array(["false", "true"]))
        column = _named(array, quoted=False)
    elif pa.types.is_dictionary(kind) and pa.types.is_string(kind.value_type):
        column = _named(array)
    elif pa.types.is_integer(array.type):
        column = _number(array)
    elif pa.types.is_null(kind):
        column = _named(pa.DictionaryArray.from_arrays(array.cast(pa.int8()), pa.array([], pa.string())))
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        column = _strings(array, "hex")
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        column = _strings(array, "text")
    else:
        raise Misuse(f"the column {name!r} is {kind}, which has no JSON form")
    column.arrays["v"] = np.asarray(array.is_valid().cast(pa.uint8())) if array.null_count else np.zeros(0, np.uint8)
    return column


def _fixed(array: NDArray[Any]) -> NDArray[Any]:
    """The array as a read-only view: numba distinguishes both types, and one type needs only one kernel."""
    view = array.view()
    view.flags.writeable = False
    return view


def _number(array: pa.Array) -> _Column:
    from wirekit.compiler.kernels.text import LONGEST_NUMBER

    kind = "unsigned" if pa.types.is_unsigned_integer(array.type) else "signed"
    return _Column(kind, {"c": _values(array)}, LONGEST_NUMBER)


def _named(array: pa.DictionaryArray, *, quoted: bool = True) -> _Column:
    names = [json_text(name).encode() if quoted else name.encode() for name in array.dictionary.to_pylist()]
    ends = np.cumsum([0, *map(len, names)], dtype=np.int64)
    arrays = {"c": _values(array.indices), "d": np.frombuffer(b"".join(names), np.uint8), "o": ends}
    return _Column("name", arrays, max([4, *map(len, names)]))


def _strings(array: pa.Array, kind: str) -> _Column:
    _, offsets, data = array.buffers()
    wide = np.int64 if pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type) else np.int32
    if offsets is None or not len(array):
        offsets = pa.py_buffer(bytes(8))
        return _Column(kind, {"d": np.zeros(0, np.uint8), "o": np.zeros(1, wide)})
    places = np.frombuffer(offsets, wide)[array.offset : array.offset + len(array) + 1]
    return _Column(kind, {"d": np.frombuffer(data or b"", np.uint8), "o": places})


def _values(array: pa.Array) -> NDArray[Any]:
    """The values of a column of integers; arbitrary for nulls."""
    _, values = array.buffers()
    dtype = np.dtype(array.type.to_pandas_dtype())
    return np.frombuffer(values or b"", dtype)[array.offset : array.offset + len(array)]
