"""Reads a capture by columns for the commands that list it: window by window, sorted by time within each."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from tempfile import NamedTemporaryFile
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa

from wirekit.capture.links import Choice, Item, Link
from wirekit.capture.tcp import CLOCK_STEP_US
from wirekit.cli.common import say
from wirekit.cli.filters_columns import Selected
from wirekit.conversation import Frame
from wirekit.pipeline.flows import Writer
from wirekit.pipeline.inputs import Input, Job
from wirekit.pipeline.packet_rows import Note
from wirekit.pipeline.rows import Batch
from wirekit.pipeline.serial import gathered
from wirekit.pipeline.summary import FileSummary, Summary, of_other_links
from wirekit.road import tables
from wirekit.road.assembly import Assembly
from wirekit.tables.columns import Table

T = TypeVar("T")
AT_ONCE = 1 << 10
"""Rows that become Python objects at once."""
HELD = 128 << 20
"""Bytes of the rows of a window that are held in memory; more are written to a file until the window is shown."""


class CaptureWindows(Writer):
    """Reads a capture by columns, window by window.

    Attributes:
        status: 1 if a file was not read to its end, because it was truncated in the meantime, or if no packet of the
            capture has a supported link type.

    Args:
        files: the files of the capture, in order.
        choice: the choice of protocols.
        shown: the tables to read.
        summary: receives the counts.
    """

    assembly: Callable[..., Assembly] = Assembly
    """Makes the batches of rows."""

    def __init__(
        self,
        files: tuple[Input, ...],
        choice: Choice,
        shown: dict[str, Table] | None = None,
        summary: Summary | None = None,
    ) -> None:
        super().__init__(Job(files, choice.protocol, choice.ports), Summary() if summary is None else summary, {})
        self.status = 0
        self._shown = shown or {}

    @abstractmethod
    def end(self, size: int = 0) -> None:
        """Shows the window that was read; ``size`` is the number of bytes read so far."""

    def hold(self, table: str, batch: pa.RecordBatch) -> None:
        """Adds rows to those of the window; without tables in ``shown`` there are none."""

    def read(self) -> bool:
        """Shows the whole capture; returns False, and shows nothing, if objects must read it.

        Objects must also read a capture whose clock was set back.
        """
        batches = tables.captured(
            self.job.inputs,
            self.job,
            self.summary,
            self._shown,
            self.end,
            most_late=CLOCK_STEP_US,
            writer=self,
            assembly=self.assembly,
        )
        if batches is None:
            return False
        for table, batch in batches:
            self.hold(table, batch)
        self.end()
        for name, each in self.summary.files.items():
            reason = "" if each.segments else of_other_links(each.skipped)
            if reason:
                self.report(f"{name}: {reason}")
        return True

    def report(self, problem: str) -> None:
        """Reports a problem of a file."""
        self.status = 1
        say(problem)

    def note(self, file: int, count: FileSummary, position: int, length: int, payload: bytes, text: str) -> None:
        """Reports where a file was not read to its end."""
        note = Note.loads(text)
        if note.kind == "damaged":
            self.report(f"{self.job.inputs[file].name}: {note.text}")
        super().note(file, count, position, length, payload, text)


class Windows(CaptureWindows, Generic[T]):
    """Shows the content of a capture in the order of time: rows that columns read, and items that objects read.

    Args:
        files, choice: as for ``CaptureWindows``.
        rows: the schema of the batches of rows, with the column ``time``.
        table: the table of the rows, if they are rows of a table.
        selected: the items to show of those that objects read; None for all.
    """

    def __init__(
        self,
        files: tuple[Input, ...],
        choice: Choice,
        rows: pa.Schema,
        table: Table | None = None,
        *,
        selected: Selected | None = None,
    ) -> None:
        super().__init__(files, choice, {} if table is None else {table.name: table})
        self._selected = selected
        self._schema = rows
        self._rows: list[pa.RecordBatch] = []
        self._size = 0  # bytes of these rows
        self._stored: list[pa.RecordBatch] = []  # earlier rows of the window, in files
        self._items: list[tuple[int, T]] = []

    @abstractmethod
    def take(self, link: Link, item: Item | None) -> Iterable[T]:
        """Handles an item that objects read and that matches (None for the end of a connection).

        Returns:
            The things to show for it.
        """

    @abstractmethod
    def show(self, rows: pa.Table, items: list[tuple[int, T]]) -> None:
        """Shows some rows of a window and, each before a row (its number), results of ``take``."""

    def end(self, size: int = 0) -> None:
        """Shows the window that was read; ``size`` is the number of bytes read so far.

        Rows and items are in the order of time; at equal times, rows come first, in their order.
        """
        if self._selected is not None:
            self._selected.settle()
        batches, items = [*self._stored, *self._rows] or [pa.RecordBatch.from_pylist([], self._schema)], self._items
        self._stored, self._rows, self._items, self._size = [], [], [], 0
        times = np.concatenate([np.asarray(each["time"].cast("int64")) for each in batches])
        order = np.argsort(times, kind="stable")
        items.sort(key=lambda each: each[0])
        places = np.searchsorted(times[order], [time_us for time_us, _ in items], "right").tolist()
        starts = [0, *accumulate(each.num_rows for each in batches)]
        step = max(times.size // (sum(each.nbytes for each in batches) // HELD + 1), 1)
        for begin in range(0, max(times.size, 1), step):
            rows = gathered(batches, starts, pa.array(order[begin : begin + step]))
            last = bisect_left(places, begin + step) if begin + step < times.size else len(places)
            first = bisect_left(places, begin)
            shown = zip(places[first:last], items[first:last], strict=True)
            self.show(rows, [(place - begin, item) for place, (_, item) in shown])

    def hold(self, table: str, batch: pa.RecordBatch) -> None:
        """Adds rows to those of the window."""
        self._rows.append(batch)
        self._size += batch.nbytes
        if self._size > HELD:
            self._stored += _stored(self._rows)
            self._rows, self._size = [], 0

    def item(self, name: str, link: Link, item: Item | None) -> Iterator[Batch]:
        """Adds an item that objects read."""
        if self._selected is None:
            self._collect(link, item, matches=True)
        else:
            each = self._selected.described(self, name, link, item)
            self._selected.decide(each, lambda matches: self._collect(link, item, matches=matches))
        return super().item(name, link, item)

    def _collect(self, link: Link, item: Item | None, *, matches: bool) -> None:
        if matches:
            time_us = item.time_us if isinstance(item, Frame) else None
            self._items += [(time_us or 0, shown) for shown in self.take(link, item)]


def _stored(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Batches of one schema in a file of their own, which is deleted with them."""
    with NamedTemporaryFile(suffix=".arrow") as file:
        with pa.ipc.new_file(file, batches[0].schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        file.flush()
        reader = pa.ipc.open_file(pa.memory_map(file.name))
    return [reader.get_batch(number) for number in range(reader.num_record_batches)]
