"""``--where``: an expression in DuckDB's language, evaluated over columns of the tables for each frame or message."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from wirekit.capture.endpoints import address_columns
from wirekit.cli.common import need
from wirekit.cli.numbered import Numbered
from wirekit.cli.sql import SETTINGS, in_one_line
from wirekit.conversation import Frame, Message, Quarantined
from wirekit.errors import Misuse
from wirekit.tables.columns import TABLES
from wirekit.tables.records import Row

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyRelation

    from wirekit.capture.links import Item, Link
    from wirekit.pipeline.calls import Calls

AT_ONCE = 1000
"""The maximum number of frames that are evaluated together, because a query takes some milliseconds."""
BYTES_AT_ONCE = 16 << 20
"""Waiting frames and messages with more bytes are evaluated at once, however few they are."""
MOST_PLACES = 1000
"""The maximum number of topics and partitions of a frame that are evaluated."""
MOST_HELD = 20_000
"""The maximum number of frames that wait for earlier ones."""
LATE_US = 10_000_000
"""Microseconds by which a frame may be recognised later than others that were captured after it."""

FRAME_COLUMNS = {
    "frames": ("protocol", "side", "time", "schema", "api", "version", "correlation_id", "role", "position", "length",
               "checks_bad"),
    "calls": ("client", "client_address", "client_port", "server_address", "server_port", "latency_us", "group_id",
              "messages"),
}  # fmt: skip
"""Columns of a frame by the table that has them."""
PLACE_COLUMNS = ("topic", "partition", "error")
"""Columns of ``call_topics``: a frame has a row for each topic and partition that it refers to."""
NUMBERS = ("frame", "connection")
"""Further columns: the numbers that ``wirekit frames`` shows."""
Wanted = Callable[[str | None], bool]
"""Whether a topic is wanted."""
T = TypeVar("T")
ROW = "_row"
"""The column with the number of the item that a row belongs to."""
FRAMES_THAT_FIT = f"""
SELECT DISTINCT {ROW} FROM (
    SELECT {{columns}}, {ROW} FROM _frames
    LEFT JOIN (SELECT {ROW} AS _of_place, topic, partition FROM _places) ON {ROW} = _of_place
    LEFT JOIN (SELECT DISTINCT {ROW} AS _of_error, topic AS _topic, error FROM _errors)
    ON {ROW} = _of_error AND (_topic IS NULL OR topic IS NULL OR topic = _topic)
) WHERE (
{{expression}}
)"""
"""Selects the items for which an expression holds.

This is one query, because DuckDB binds each step of a chain of relations anew, with all steps before it.
"""


class _Expression:
    """An expression over rows of named columns.

    Args:
        expression: in DuckDB's language; it is checked at once.
        schema: the columns.

    Raises:
        Misuse: in DuckDB's words, if it is not an expression over these columns.
    """

    def __init__(self, expression: str, schema: pa.Schema) -> None:
        import duckdb

        self._error = duckdb.Error
        self._names = schema.names
        self._schema = _with_number(schema)
        self._connection = duckdb.connect(config={**SETTINGS})
        self._expression = expression
        self._items_of(self._relation(schema.empty_table()), "0")  # an expression must not use ``ROW``

    def _relation(self, rows: pa.Table | pa.RecordBatch) -> DuckDBPyRelation:
        import pyarrow as pa

        return self._connection.from_arrow(rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows]))

    def _items_of(self, rows: DuckDBPyRelation, number: str = ROW) -> list[int]:
        """The numbers of the items with a row that fits; ``number`` is the column that has them."""
        return self._numbers(lambda: rows.filter(self._expression).project(number).distinct().fetchall())

    def _numbers(self, query: Callable[[], list[tuple[int]]]) -> list[int]:
        """The result of a query."""
        try:
            return [each for (each,) in query()]
        except self._error as error:
            raise Misuse(f"--where: {self._explained(in_one_line(str(error)))}") from None

    def _explained(self, text: str) -> str:
        """An error of DuckDB; for an unknown column with all columns instead of some that are spelled alike."""
        start, candidates, _ = text.partition(" Candidate bindings:")
        return f"{start} The columns are {', '.join(self._names)}." if candidates else text


class WhereMessages(_Expression):
    """An expression over messages: the columns of the table ``messages``."""

    def __init__(self, expression: str) -> None:
        need("--where", "duckdb", "pyarrow")
        super().__init__(expression, TABLES["messages"].schema)

    def fits(self, rows: Sequence[Row]) -> list[bool]:
        """For each message, by its row, whether it fits."""
        numbers = {*self._items_of(self._relation(_batch(rows, self._schema)))}
        return [number in numbers for number in range(len(rows))]

    def numbers(self, rows: pa.RecordBatch) -> list[int]:
        """The numbers of the rows that fit, ascending; the rows have all columns."""
        import pyarrow as pa

        numbered = pa.record_batch([*rows.columns, pa.array(range(rows.num_rows), pa.int64())], self._schema)
        return sorted(self._items_of(self._relation(numbered)))

    def matching(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that fit, in their order; they have all columns."""
        import pyarrow as pa

        return rows.take(pa.array(self.numbers(rows), pa.int64()))


class Waiting(Generic[T]):
    """A queue of entries that are evaluated together; its size is bounded.

    Args:
        at_once: the number that is evaluated together.
    """

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._at_once = at_once
        self._waiting: list[T] = []
        self._size = 0

    def add(self, item: Item | None, *waiting: T) -> bool:
        """Adds the entries for an item of a capture; returns whether the queue is full."""
        if waiting and isinstance(item, Frame | Quarantined):
            messages = item.messages if isinstance(item, Frame) else []
            self._size += len(item.data) + sum(len(message.value or b"") for message in messages)
        self._waiting += waiting
        return len(self._waiting) >= self._at_once or self._size >= BYTES_AT_ONCE

    def take(self) -> list[T]:
        """Removes and returns all entries."""
        waiting, self._waiting, self._size = self._waiting, [], 0
        return waiting


class WaitingMessages:
    """Messages that wait to be selected.

    Args:
        where: the expression that selects.
        then: called with each message that fits, and its frame.
        at_once: the number that is evaluated together.
    """

    def __init__(self, where: WhereMessages, then: Callable[[Frame, Message], None], *, at_once: int = AT_ONCE) -> None:
        self._where, self._then = where, then
        self._waiting = Waiting[tuple[Frame, Message, Row]](at_once)

    def add(self, frame: Frame, messages: Sequence[Message], rows: Sequence[Row], topic: Wanted) -> None:
        """Adds those messages of a frame whose topic is wanted; ``rows`` are their rows of ``messages``."""
        pairs = zip(messages, rows, strict=True)
        if self._waiting.add(frame, *((frame, *pair) for pair in pairs if topic(pair[0].topic))):
            self.settle()

    def settle(self) -> None:
        """Selects among all messages that wait."""
        waiting = self._waiting.take()
        for (frame, message, _), fits in zip(waiting, self._where.fits([row for *_, row in waiting]), strict=True):
            if fits:
                self._then(frame, message)


class WhereFrames(_Expression):
    """An expression over frames. A frame has several rows if it refers to several topics, partitions or errors.

    Attributes:
        frames, places, errors: the schemas of the arguments of ``numbers``.

    Args:
        expression: in DuckDB's language.
        numbered: whether the rows have ``NUMBERS``.
    """

    def __init__(self, expression: str, *, numbered: bool = True) -> None:
        need("--where", "duckdb", "pyarrow")
        import pyarrow as pa

        numbers = [pa.field(name, pa.int64()) for name in NUMBERS if numbered]
        fields = [TABLES[table].schema.field(name) for table, names in FRAME_COLUMNS.items() for name in names]
        topic, partition, error = (TABLES["call_topics"].schema.field(name) for name in PLACE_COLUMNS)
        super().__init__(expression, pa.schema([*numbers, *fields, topic, partition, error]))
        self.frames = _with_number(pa.schema([*numbers, *fields]))
        self.places = _with_number(pa.schema([topic, partition]))
        self.errors = _with_number(pa.schema([topic, error]))
        self._query = FRAMES_THAT_FIT.format(columns=", ".join(self._names), expression=expression)

    def fits(self, frames: Sequence[FrameRows | None]) -> list[bool]:
        """For each frame, by its rows, whether one of them fits; an item that is None does not."""
        frame_rows: list[Row] = []
        places: list[Row] = []
        errors: list[Row] = []
        for number, each in enumerate(frames):
            if each is not None:
                here = {ROW: number}
                frame_rows.append(each.frame | here)
                places += [place | here for place in each.places]
                errors += [error | here for error in each.errors]
        tables = ((frame_rows, self.frames), (places, self.places), (errors, self.errors))
        numbers = {*self.numbers(*(_batch(rows, schema) for rows, schema in tables))}
        return [number in numbers for number in range(len(frames))]

    def numbers(self, frames: pa.RecordBatch, places: pa.RecordBatch, errors: pa.RecordBatch) -> list[int]:
        """The numbers (``ROW``) of the frames with a row that fits.

        Args:
            frames: a row for each frame.
            places: the topics and partitions of frames.
            errors: the errors in frames, each with its topic, if that is known.
        """
        import pyarrow as pa

        tables = {"_frames": frames, "_places": places, "_errors": errors}
        for name, rows in tables.items():
            self._connection.register(name, pa.Table.from_batches([rows]))
        try:
            return self._numbers(lambda: self._connection.execute(self._query).fetchall())
        finally:
            for name in tables:
                self._connection.unregister(name)


class FrameRows(NamedTuple):
    """The rows of a frame.

    Attributes:
        frame: its columns of ``FRAME_COLUMNS``, and ``NUMBERS``.
        places: its topics and partitions; none if it refers to none.
        errors: its errors, each with its topic, if that is known.
    """

    frame: Row
    places: list[Row]
    errors: list[Row]


def frame_rows(each: Numbered) -> FrameRows | None:
    """The rows of a frame; None for other items."""
    frame, facts, link = each.item, each.facts, each.link
    if not isinstance(frame, Frame):
        return None
    description = frame.description
    row = {
        "frame": each.frame,
        "connection": each.connection,
        "protocol": frame.protocol,
        "side": frame.side,
        "time": frame.time_us,
        "schema": frame.schema,
        "api": description.api,
        "version": description.version,
        "correlation_id": description.correlation_id,
        "role": description.role,
        "position": frame.offset,
        "length": frame.size,
        "checks_bad": sum(check.status == "bad" for check in frame.decoded.checks),
        "client": facts.client,
        **address_columns(link.client, link.server),
        "latency_us": frame.latency_us,
        "group_id": facts.group_id,
        "messages": len(frame.messages),
    }
    no_partition: list[int | None] = [None]
    places = (
        {"topic": topic, "partition": partition}
        for topic, partitions in facts.topics.items()
        for partition in partitions or no_partition
    )
    errors = [{"topic": refusal.topic, "error": refusal.error} for refusal in facts.errors]
    return FrameRows(row, list(islice(places, MOST_PLACES)), errors)


def _with_number(schema: pa.Schema) -> pa.Schema:
    import pyarrow as pa

    return schema.append(pa.field(ROW, pa.int64()))


def _batch(rows: Sequence[Row], schema: pa.Schema) -> pa.RecordBatch:
    """Rows that may lack columns; a row without a number has its place as number."""
    import pyarrow as pa

    from wirekit.pipeline.rows import Rows

    table = Rows(schema, batch_rows=1 << 62, batch_bytes=1 << 62)
    for number, row in enumerate(rows):
        table.add({ROW: number} | row)
    return table.flush() or pa.RecordBatch.from_pylist([], schema)


class MessageRows:
    """The rows of the table ``messages`` for the frames of a capture.

    Args:
        file: the name of the capture.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self._calls: dict[int, Calls] = {}

    def of(self, link: Link, item: Item | None) -> list[Row]:
        """The row of each message of the next item; some columns depend on earlier frames of the connection."""
        from wirekit.pipeline.calls import Calls

        if item is None:
            self._calls.pop(id(link), None)
        if not isinstance(item, Frame):
            return []
        calls = self._calls.get(id(link)) or self._calls.setdefault(id(link), Calls(self._file, link))
        return [{**row, "file": self._file} for table, row, _ in calls.frame(item)[1] if table == "messages"]


def fitting(
    items: Iterable[tuple[Numbered, bool]], where: WhereFrames, *, at_once: int = AT_ONCE
) -> Iterator[tuple[Numbered, bool]]:
    """All items, each with whether it was selected and fits; at most ``at_once`` are evaluated together."""
    waiting = Waiting[tuple[Numbered, bool]](at_once)

    def settled() -> Iterator[tuple[Numbered, bool]]:
        batch = waiting.take()
        fits = where.fits([frame_rows(each) if selected else None for each, selected in batch])
        return zip([each for each, _ in batch], fits, strict=True)

    for each in items:
        if waiting.add(each[0].item, each):
            yield from settled()
    yield from settled()


def in_order(items: Iterable[Numbered]) -> Iterator[Numbered]:
    """The items in the order of their times, as far as a bounded window can bring them into it.

    A frame comes late if the protocol of its connection was recognised later, or segments before it were.
    """
    heap: list[tuple[int, int, Numbered]] = []
    latest = -(1 << 63)
    for number, each in enumerate(items):
        time_us = each.item.time_us if each.item is not None else None
        time_us = latest if time_us is None else time_us
        latest = max(latest, time_us)
        heapq.heappush(heap, (time_us, number, each))
        while heap and (len(heap) > MOST_HELD or heap[0][0] < latest - LATE_US):
            yield heapq.heappop(heap)[2]
    while heap:
        yield heapq.heappop(heap)[2]
