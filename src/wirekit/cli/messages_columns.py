"""The messages of a large capture by columns: window by window, in the order of time in each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from wirekit.capture.follow import Choice, Item, Link
from wirekit.cli.common import say
from wirekit.conversation import Frame, Message, Quarantined
from wirekit.pipeline.flows import Batch, Writer
from wirekit.pipeline.inputs import Input, Job
from wirekit.pipeline.messages import COLUMN_OF, message_of
from wirekit.pipeline.packet_rows import Note
from wirekit.pipeline.summary import FileSummary, Summary
from wirekit.registry import registry
from wirekit.stored import Piece
from wirekit.tables.columns import MESSAGES

Take = Callable[[Link, Item | None], Iterable[Message]]
"""Reports an item that objects read; gives the messages in it."""
Shown = Piece | Message


def window_messages(files: tuple[Input, ...], choice: Choice, take: Take, *, ordered: bool) -> Windows | None:
    """Messages in pieces of columns and one by one; None where objects must read the capture.

    Args:
        files: of the capture, in order.
        choice: how protocols are chosen.
        take: is given each item that objects read, None for the end of a connection.
        ordered: whether a capture whose packets are not in the order of time is left to objects, too.
    """
    from wirekit.road.tables import captured

    summary, job = Summary(), Job(files, choice.protocol, choice.ports)
    windows = Windows(job, summary, take)
    batches = captured(
        files, job, summary, {MESSAGES.name: windows.table}, windows.end, ordered=ordered, writer=windows
    )
    if batches is None:
        return None
    windows.batches = batches
    return windows


def _shown(rows: pa.Table) -> Iterator[Piece | Message]:
    """Rows of the table ``messages``: as columns where their protocol has no details of its own, else one by one."""
    for batch in rows.to_batches():
        protocols = batch["protocol"].dictionary_encode()
        alone = np.array([bool(registry.protocol(name).declared.details) for name in protocols.dictionary.to_pylist()])
        alone = alone[np.asarray(protocols.indices)] | np.asarray(batch["message_id"].is_valid())
        ends = [*np.flatnonzero(alone[1:] != alone[:-1]) + 1, batch.num_rows]
        for begin, end in pairwise([0, *ends]):
            part = batch.slice(begin, end - begin)
            if alone[begin]:
                yield from map(message_of, part.to_pylist())
            else:
                columns = {name: part[column] for name, column in COLUMN_OF.items()}
                yield Piece(0, 0, batch=pa.RecordBatch.from_pydict(columns))


class Windows(Writer):
    """Messages instead of rows: those that objects read, beside the batches of a window.

    Attributes:
        batches: the table of what columns read, and when a window has ended.
        table: ``messages`` with the columns that are shown.
        status: 1 if a file was not read to its end, as it was cut meanwhile.
    """

    def __init__(self, job: Job, summary: Summary, take: Take) -> None:
        super().__init__(job, summary, {})
        details = (registry.protocol(name).declared.detail_columns for name in registry.protocols())
        self.table = MESSAGES.only({*COLUMN_OF.values(), "time", "message_id"}.union(*details))
        self._each = take
        self.batches: Iterator[Batch] = iter(())
        self._rows: list[pa.RecordBatch] = []
        self._messages: list[tuple[int, Message]] = []
        self.status = 0
        self._ended: list[Iterator[Shown]] = []

    def __iter__(self) -> Iterator[Shown]:
        for _, batch in self.batches:
            yield from self._whole()
            self._rows.append(batch)
        self.end()
        yield from self._whole()

    def end(self, done: int = 0) -> None:
        """Ends a window; ``done`` are the bytes read."""
        self._ended.append(_in_order(pa.Table.from_batches(self._rows, self.table.schema), self._messages))
        self._rows, self._messages = [], []

    def piece(self, name: str, link: Link, piece: Quarantined) -> Iterator[Batch]:
        """Takes bytes of a connection that nobody could decode, and nothing else of it."""
        self._each(link, piece)
        return super().piece(name, link, piece)

    def item(self, name: str, link: Link, item: Item | None) -> Iterator[Batch]:
        """Takes the messages of an item that objects read."""
        time_us = item.time_us if isinstance(item, Frame) else None
        self._messages += [(time_us or 0, message) for message in self._each(link, item)]
        if self._ended:  # an empty batch gives these to the reader
            yield MESSAGES.name, pa.RecordBatch.from_pylist([], self.table.schema)
        yield from super().item(name, link, item)

    def note(self, file: int, count: FileSummary, position: int, length: int, payload: bytes, text: str) -> None:
        """Says where a file was not read to its end."""
        note = Note.loads(text)
        if note.kind == "damaged":
            self.status = 1
            say(f"{self.job.inputs[file].name}: {note.text}")
        super().note(file, count, position, length, payload, text)

    def _whole(self) -> Iterator[Shown]:
        ended, self._ended = self._ended, []
        for shown in ended:
            yield from shown


def _in_order(rows: pa.Table, messages: list[tuple[int, Message]]) -> Iterator[Shown]:
    """Rows and messages in the order of time; of equal times the rows come first, as they came."""
    times = np.asarray(rows["time"].cast("int64"))
    order = np.argsort(times, kind="stable")
    messages.sort(key=lambda each: each[0])
    places = np.searchsorted(times[order], [time_us for time_us, _ in messages], "right").tolist()
    begin = 0
    for (_, message), place in zip(messages, places, strict=True):
        if place > begin:
            yield from _shown(rows.take(order[begin:place]))
            begin = place
        yield message
    if begin < order.size:
        yield from _shown(rows.take(order[begin:]))
