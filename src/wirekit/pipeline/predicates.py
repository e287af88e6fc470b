"""Filters over the rows of a table: which columns they read, which files they rule out, and their form as text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import fs

from wirekit.capture.files import open_capture
from wirekit.errors import Misuse, WireError
from wirekit.pipeline.inputs import CAPTURE, Input
from wirekit.pipeline.roads import by_columns
from wirekit.times import EARLIEST_US, LATEST_US

MARGIN_US = 3_600_000_000
"""Microseconds by which a row's time may differ from those of the packets: an idle connection ends later."""
TIMES = ("time", "request_time", "response_time", "opened")
"""Columns with the time of a packet."""

_TOKENS = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<number>-?\d+)|(?P<word>[A-Za-z_]\w*)|(?P<sign><=|>=|<>|!=|=|<|>|\(|\)|,)|(?P<end>$))"
)
_SIGNS = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def columns_of(expression: pc.Expression, schema: pa.Schema) -> frozenset[str]:
    """The columns that an expression reads, possibly with others; all if it names columns by position.

    >>> sorted(columns_of(pc.field("a") > 3, pa.schema([("a", pa.int32()), ("b", pa.int32())])))
    ['a']
    """
    # An expression does not list its fields, but its text has their names.
    text = str(expression)
    if "FieldPath(" in text:
        return frozenset(schema.names)
    words = set(re.findall(r"\w+", text))
    return frozenset(name for name in schema.names if name in words)


def may_hold(expression: pc.Expression, schema: pa.Schema, guarantees: Sequence[pc.Expression]) -> bool:
    """Whether the expression can be true for a row, given guarantees about the row.

    >>> schema, file = pa.schema([("file", pa.string())]), pc.field("file")
    >>> may_hold(file == "a.pcap", schema, [file == "a.pcap"]), may_hold(file == "a.pcap", schema, [file == "b.pcap"])
    (True, False)
    """
    guarantee = pc.scalar(True)
    for each in guarantees:
        guarantee = guarantee & each
    form = ds.ParquetFileFormat()  # of a file that does not exist, and that pyarrow does not open
    fragment = form.make_fragment("none", fs.LocalFileSystem(), partition_expression=guarantee)
    return next(ds.FileSystemDataset([fragment], schema, form).get_fragments(filter=expression), None) is not None


def may_have_rows(files: Sequence[Input], expression: pc.Expression, schema: pa.Schema, road: str) -> bool:
    """Whether a capture or a stored file can have rows for which an expression is true.

    A capture is ruled out by its name, or by the times in the headers of its packets; a stored file by its name or
    protocol. No other file is examined.

    Args:
        files: the files of the capture, in order.
        expression: a filter over the columns of the table.
        schema: the schema of the table.
        road: as in ``Job``; only columns read the times.
    """
    known: list[list[pc.Expression]] = [[]]  # packets have neither a file's name nor a protocol
    if "file" in schema.names:
        # A row of damage has the name of its file; other rows have that of the first file.
        names = [each.name.encode("utf-8", "backslashreplace").decode() for each in files]
        known = [[pc.field("file") == name] for name in names]
        if files[0].kind != CAPTURE:
            known[0].append(pc.field("protocol") == files[0].kind.partition(".")[0])
    if not any(may_hold(expression, schema, each) for each in known):
        return False
    timed = [name for name in (*TIMES, "date") if name in columns_of(expression, schema)]
    size = sum(each.size for each in files)
    if files[0].kind != CAPTURE or not timed or not by_columns(size, road, compiles=False):
        return True
    times = _times(files)
    if times is None:
        return True
    within = []
    for name in timed:
        column, type_ = pc.field(name), schema.field(name).type
        low, high = (pa.scalar(each, pa.timestamp("us", "UTC")).cast(type_, safe=False) for each in times)
        within += [(column >= low) | column.is_null(), (column <= high) | column.is_null()]
    return any(may_hold(expression, schema, [*each, *within]) for each in known)


def _times(files: Sequence[Input]) -> tuple[int, int] | None:
    """The earliest and the latest time that a row of a capture can have; None if a file is damaged."""
    from wirekit.capture.columns import records

    low, high = LATEST_US, EARLIEST_US
    with ExitStack() as stack:
        for each in files:
            errors: list[pa.RecordBatch] = []
            try:
                capture = stack.enter_context(open_capture(each.path))
                for batch, *_ in records(capture, capture.limits, errors):
                    if batch["time"].null_count:
                        return None
                    if batch.num_rows:
                        times = np.asarray(batch["time"].view(pa.int64())) // 1000
                        low, high = min(low, int(times.min())), max(high, int(times.max()))
            except (OSError, WireError):
                return None
            if errors:
                return None
    return max(low - MARGIN_US, EARLIEST_US), min(high + MARGIN_US, LATEST_US)


def parsed(text: str, schema: pa.Schema) -> pc.Expression:
    """Parses a filter in SQL: comparisons of columns with literals, joined by ``AND``.

    ``COLUMN = | != | <> | < | <= | > | >= LITERAL``, ``COLUMN IN (LITERAL, ...)``, ``COLUMN IS [NOT] NULL``. A literal
    is a number, ``TRUE``, ``FALSE``, or a text in single quotes; one for a time is a text in ISO 8601, in UTC unless it
    says otherwise.

    Args:
        text: the filter.
        schema: the schema of the table.

    Raises:
        Misuse: the column does not exist, or the text is not such a filter.

    >>> schema = pa.schema([("api", pa.string()), ("latency_us", pa.int64())])
    >>> str(parsed("api = 'Fetch' AND latency_us > 1000", schema))
    '((api == "Fetch") and (latency_us > 1000))'
    """
    return _Parser(text, schema).parse()


class _Parser:
    def __init__(self, text: str, schema: pa.Schema) -> None:
        self._text, self._schema = text, schema
        self._tokens = [*self._split()]
        self._at = 0

    def _split(self) -> Iterator[tuple[str, str]]:
        at = 0
        while True:
            match = _TOKENS.match(self._text, at)
            if match is None:
                raise self._wrong(self._text[at:].strip())
            kind = match.lastgroup or ""
            yield kind, match[kind]
            if kind == "end":
                return
            at = match.end()

    def _wrong(self, near: str) -> Misuse:
        return Misuse(
            f"{self._text!r} is not COLUMN = LITERAL [AND ...], as in \"protocol = 'kafka' AND time >= '2026-01-31'\", "
            f"at {repr(near) if near else 'its end'}; besides =, there are <>, <, <=, >, >=, IN and IS [NOT] NULL"
        )

    def _next(self, *kinds: str) -> str:
        kind, value = self._tokens[self._at]
        if kind not in kinds:
            raise self._wrong(value)
        self._at += 1
        return value

    def _word(self, *words: str) -> bool:
        """Consumes the next token if it is one of some keywords."""
        kind, value = self._tokens[self._at]
        matches = kind in ("word", "sign") and value.upper() in words
        self._at += matches
        return matches

    def parse(self) -> pc.Expression:
        """Parses the whole text."""
        predicate = self._comparison()
        while self._word("AND"):
            predicate = predicate & self._comparison()
        self._next("end")
        return predicate

    def _comparison(self) -> pc.Expression:
        name = self._next("word")
        if name not in self._schema.names:
            raise Misuse(f"no column {name!r} in {self._text!r}; choose from {', '.join(self._schema.names)}")
        column = pc.field(name)
        if self._word("IS"):
            negated = self._word("NOT")
            if not self._word("NULL"):
                raise self._wrong(self._tokens[self._at][1])
            return column.is_valid() if negated else column.is_null()
        if self._word("IN"):
            values: list[pa.Scalar] = []
            if not self._word("("):
                raise self._wrong(self._tokens[self._at][1])
            while not values or self._word(","):
                values.append(self._literal(name))
            if not self._word(")"):
                raise self._wrong(self._tokens[self._at][1])
            return column.isin(pa.array(values, self._schema.field(name).type))
        sign = self._next("sign")
        if sign not in _SIGNS:
            raise self._wrong(sign)
        return _SIGNS[sign](column, self._literal(name))

    def _literal(self, name: str) -> pa.Scalar:
        kind, text = self._tokens[self._at]
        if not self._word("TRUE", "FALSE"):
            self._next("text", "number")
        type_ = self._schema.field(name).type
        try:
            value: Any = text.upper() == "TRUE"
            if kind == "number":
                value = int(text)
            elif kind == "text":
                value = text[1:-1].replace("''", "'")
            if pa.types.is_timestamp(type_) and isinstance(value, str):
                moment = datetime.fromisoformat(value)
                value = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
                return pa.scalar(value, pa.timestamp("us", "UTC")).cast(type_)
            if isinstance(value, str) and not pa.types.is_binary(type_):
                return pa.scalar(value).cast(type_)
            if pa.types.is_temporal(type_):
                raise ValueError  # pyarrow takes a number in the column's unit: seconds would be a time in 1970
            return pa.scalar(value, type_)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, OverflowError, ValueError):
            raise Misuse(f"{text} is not a value of the column {name}, whose type is {type_}") from None
