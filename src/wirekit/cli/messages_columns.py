"""Prints the messages of a capture that columns read."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirekit.capture.links import Choice, Item, Link
from wirekit.cli.filters_columns import Selected, wants_topics
from wirekit.cli.where import WaitingMessages, WhereMessages
from wirekit.cli.windows import AT_ONCE, Windows
from wirekit.conversation import Frame, Message
from wirekit.pipeline.calls import Emitted
from wirekit.pipeline.inputs import Input
from wirekit.pipeline.messages import COLUMN_OF, message_of, unplaced
from wirekit.registry import registry
from wirekit.road.assembly import Assembly
from wirekit.tables.columns import MESSAGES

if TYPE_CHECKING:
    from wirekit.cli.messages import Show


class MessageWindows(Windows[Message]):
    """Shows the messages that match, as batches of columns or one by one.

    Attributes:
        shown: number of messages shown so far.

    Args:
        files, choice: as for ``Windows``.
        take: called with each item that objects read and that matches, None for the end of a connection; returns the
            messages in it.
        show: shows messages.
        selected: selects the frames of the messages; None for all.
        where: selects messages by the columns of their table; then ``take`` is not called. None for all.
    """

    def __init__(
        self,
        files: tuple[Input, ...],
        choice: Choice,
        take: Callable[[Link, Item | None], Iterable[Message]],
        show: Show,
        selected: Selected | None = None,
        where: WhereMessages | None = None,
    ) -> None:
        details = (registry.protocol(name).declared.detail_columns for name in registry.protocols())
        shown = {*COLUMN_OF.values(), "time", "message_id", "direction", "batch_index"}.union(*details)
        table = MESSAGES if where is not None else MESSAGES.only(shown)
        super().__init__(files, choice, table.schema, table, selected=selected)
        self._take_item, self._show = take, show
        self._path = files[0].name
        self._expression = where
        self._waiting = None if where is None else WaitingMessages(where, self._add_message)
        self._messages: list[Message] = []  # of the frame that ``completed`` takes next
        self.shown = 0

    def assembly(self, *arguments: Any) -> Assembly:
        """The messages of a window that columns have read, in the frames that match."""
        return Assembly(*arguments) if self._selected is None else MatchingMessages(self._selected, *arguments)

    def take(self, link: Link, item: Item | None) -> Iterable[Message]:
        """Handles an item that objects read (None for the end of a connection); returns the messages in it."""
        if self._waiting is None:
            return self._take_item(link, item)
        self._messages = item.messages if isinstance(item, Frame) else []
        return ()

    def completed(self, name: str, link: Link, item: Item | None) -> tuple[str, Iterable[Emitted]]:
        """As for ``Writer``; the rows of messages that are taken wait for ``where``."""
        call_id, emitted = super().completed(name, link, item)
        if self._messages and self._waiting is not None and self._selected is not None and isinstance(item, Frame):
            messages, self._messages = self._messages, []
            rows = [row for table, row, _ in emitted if table == MESSAGES.name]
            self._waiting.add(item, messages, rows, self._selected.selection.wants_topic)
        return call_id, emitted

    def _add_message(self, frame: Frame, message: Message) -> None:
        self._items.append((frame.time_us or 0, message))
        self._show.unplaced += unplaced(frame, [message])

    def end(self, size: int = 0) -> None:
        """Shows the window that was read; ``size`` is the number of bytes read so far."""
        if self._waiting is not None:
            self._waiting.settle()
        super().end(size)

    def hold(self, table: str, batch: pa.RecordBatch) -> None:
        """Adds the rows that match to those of the window."""
        super().hold(table, batch if self._expression is None else self._expression.matching(batch))

    def show(self, rows: pa.Table, items: list[tuple[int, Message]]) -> None:
        """Shows messages: rows as columns if their protocol has no details of its own, the others one by one."""
        self.shown += rows.num_rows + len(items)
        begin, item_place = 0, itemgetter(0)
        for batch in rows.combine_chunks().to_batches():
            end = begin + batch.num_rows
            first, last = (bisect_left(items, place, key=item_place) for place in (begin, end))
            self._show_batch(batch, [(place - begin, item) for place, item in items[first:last]])
            begin = end
        for _, item in items[bisect_left(items, begin, key=item_place) :]:
            self._show(self._path, item)

    def _show_batch(self, batch: pa.RecordBatch, items: list[tuple[int, Message]]) -> None:
        protocols = batch["protocol"].dictionary_encode()
        names = protocols.dictionary.to_pylist()
        detailed = np.array([bool(registry.protocol(name).declared.details) for name in names])
        has_place = pc.or_(batch["log_offset"].is_valid(), batch["message_id"].is_valid())
        fetched = pc.is_in(batch["direction"], pa.array(["fetched", "replicated"]))
        unplaced = pc.and_not(pc.and_(fetched, batch["batch_index"].is_valid()), has_place)
        self._show.unplaced += pc.sum(unplaced).as_py() or 0
        alone = detailed[np.asarray(protocols.indices)] | np.asarray(batch["message_id"].is_valid())
        singles = zip(np.flatnonzero(alone).tolist(), _messages(batch.filter(pa.array(alone))), strict=True)
        before = np.append(0, np.cumsum(~alone)).tolist()
        others = ((before[row], message) for row, message in merge(items, singles, key=itemgetter(0)))
        columns = batch.filter(pa.array(~alone)) if alone.any() else batch
        shown = pa.RecordBatch.from_pydict({name: columns[column] for name, column in COLUMN_OF.items()})
        self._show.batch(self._path, shown, others)


class MatchingMessages(Assembly):
    """The messages of a window's frames that match.

    Args:
        selected: selects the frames.
        arguments: as for ``Assembly``.
    """

    def __init__(self, selected: Selected, *arguments: Any) -> None:
        super().__init__(*arguments)
        matches = selected.among(self)
        matching = []
        for each in self.messages:
            chosen = matches[each.frames]
            if selected.selection.topics:
                topics = each.columns.get("topic", pa.nulls(chosen.size, pa.string()))
                chosen &= wants_topics(selected.selection, topics)
            matching.append(each.only(chosen))
        self.messages = [each for each in matching if each.frames.size]


def _messages(rows: pa.RecordBatch) -> Iterator[Message]:
    for begin in range(0, rows.num_rows, AT_ONCE):
        yield from map(message_of, rows.slice(begin, AT_ONCE).to_pylist())
