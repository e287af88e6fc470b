"""``--where``: an expression in DuckDB's language, evaluated over columns of the tables for each frame or message."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from wirekit.capture.endpoints import address_columns
from wirekit.cli.common import need
from wirekit.cli.numbered import Numbered
from wirekit.cli.sql import SETTINGS, in_one_line
from wirekit.conversation import Frame
from wirekit.errors import Misuse
from wirekit.tables.columns import TABLES
from wirekit.tables.facts import Facts

if TYPE_CHECKING:
    import pyarrow as pa

    from wirekit.capture.links import Item, Link
    from wirekit.pipeline.calls import Calls

AT_ONCE = 1000
"""The number of frames that are evaluated together, because a query takes some milliseconds."""
MOST_TOPICS = 1000
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
    "call_topics": ("topic", "partition", "error"),
}  # fmt: skip
"""Columns of a frame by the table that has them: one row for each topic and partition that the frame refers to."""
NUMBERS = ("frame", "connection")
"""Columns besides: the numbers that ``wirekit frames`` shows."""


class Where:
    """An expression over rows of named columns.

    Args:
        expression: in DuckDB's language; it is checked at once.
        schema: the columns.

    Raises:
        Misuse: in DuckDB's words, if it is no expression over these columns.
    """

    def __init__(self, expression: str, schema: pa.Schema) -> None:
        need("--where", "duckdb", "pyarrow")
        import duckdb
        import pyarrow as pa

        self._error = duckdb.Error
        self._schema = schema.append(pa.field("_row", pa.int64()))
        self._connection = duckdb.connect(config={**SETTINGS})
        self._expression = expression
        self.fits([])

    def fits(self, rows: Sequence[list[dict[str, Any]]]) -> list[bool]:
        """For each item, whether one of its rows fits."""
        from wirekit.pipeline.rows import Rows

        table = Rows(self._schema, batch_rows=1 << 62, batch_bytes=1 << 62)
        for number, several in enumerate(rows):
            for row in several:
                table.add(row | {"_row": number})
        import pyarrow as pa

        batch = table.flush()
        numbers = {*self._fitting(pa.Table.from_batches([] if batch is None else [batch], self._schema))}
        return [number in numbers for number in range(len(rows))]

    def matching(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that fit, in their order; they have all columns."""
        import pyarrow as pa

        numbered = pa.record_batch([*rows.columns, pa.array(range(rows.num_rows), pa.int64())], self._schema)
        return rows.take(pa.array(sorted(self._fitting(pa.Table.from_batches([numbered]))), pa.int64()))

    def _fitting(self, rows: pa.Table) -> list[int]:
        """The numbers of the items with a row that fits."""
        try:
            chosen = self._connection.from_arrow(rows).filter(self._expression).project("_row").distinct()
            return [number for (number,) in chosen.fetchall()]
        except self._error as error:
            raise Misuse(f"--where: {self._explained(in_one_line(str(error)))}") from None

    def _explained(self, text: str) -> str:
        """An error of DuckDB; for an unknown column with all columns instead of some that are spelled alike."""
        start, candidates, _ = text.partition(" Candidate bindings:")
        return f"{start} The columns are {', '.join(self._schema.names[:-1])}." if candidates else text


def where_frames(expression: str) -> Where:
    """An expression over frames."""
    need("--where", "duckdb", "pyarrow")
    import pyarrow as pa

    fields = [TABLES[table].schema.field(name) for table, names in FRAME_COLUMNS.items() for name in names]
    return Where(expression, pa.schema([*[pa.field(name, pa.int64()) for name in NUMBERS], *fields]))


def where_messages(expression: str) -> Where:
    """An expression over messages: the columns of the table ``messages``."""
    need("--where", "duckdb", "pyarrow")
    return Where(expression, TABLES["messages"].schema)


def frame_rows(each: Numbered) -> list[dict[str, Any]]:
    """The rows of a frame; no rows for other items."""
    frame, facts, link = each.item, each.facts, each.link
    if not isinstance(frame, Frame):
        return []
    about = frame.description
    common = {
        "frame": each.frame,
        "connection": each.connection,
        "protocol": frame.protocol,
        "side": frame.side,
        "time": frame.time_us,
        "schema": frame.schema,
        "api": about.api,
        "version": about.version,
        "correlation_id": about.correlation_id,
        "role": about.role,
        "position": frame.offset,
        "length": frame.size,
        "checks_bad": sum(check.status == "bad" for check in frame.decoded.checks),
        "client": facts.client,
        **address_columns(link.client, link.server),
        "latency_us": frame.latency_us,
        "group_id": facts.group_id,
        "messages": len(frame.messages),
    }
    rows: list[dict[str, Any]] = []
    for topic, partition in islice(_places(facts), MOST_TOPICS):
        errors = {refusal.error: None for refusal in facts.errors if refusal.topic in (topic, None) or topic is None}
        rows += [common | {"topic": topic, "partition": partition, "error": error} for error in errors or [None]]
    return rows


def _places(facts: Facts) -> Iterator[tuple[str | None, int | None]]:
    """The topics and partitions that a frame refers to; if there are none, one entry without them."""
    if not facts.topics:
        yield None, None
    for topic, partitions in facts.topics.items():
        if not partitions:
            yield topic, None
        for partition in partitions:
            yield topic, partition


class MessageRows:
    """The rows of the table ``messages`` for the frames of a capture.

    Args:
        file: the name of the capture.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self._calls: dict[int, Calls] = {}

    def of(self, link: Link, item: Item | None) -> list[dict[str, Any]]:
        """The row of each message of the next item; some columns depend on earlier frames of the connection."""
        from wirekit.pipeline.calls import Calls

        if item is None:
            self._calls.pop(id(link), None)
        if not isinstance(item, Frame):
            return []
        calls = self._calls.get(id(link)) or self._calls.setdefault(id(link), Calls(self._file, link))
        return [{**row, "file": self._file} for table, row, _ in calls.frame(item)[1] if table == "messages"]


def fitting(
    items: Iterable[tuple[Numbered, bool]], where: Where, *, at_once: int = AT_ONCE
) -> Iterator[tuple[Numbered, bool]]:
    """All items, each with whether it was wanted and fits; ``at_once`` is the number that is evaluated together."""
    iterator = iter(items)
    while batch := list(islice(iterator, at_once)):
        rows = [frame_rows(each) if wanted else [] for each, wanted in batch]
        yield from zip([each for each, _ in batch], where.fits(rows), strict=True)


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
