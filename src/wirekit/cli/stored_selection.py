"""Selection options for files that brokers store: the messages in them that match."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from wirekit.cli.filters import Selection
from wirekit.cli.selected_names import listed_names
from wirekit.cli.where import AT_ONCE, BYTES_AT_ONCE, WhereMessages
from wirekit.conversation import Message
from wirekit.errors import plural
from wirekit.pipeline.messages import STORED, message_row
from wirekit.stored import Piece
from wirekit.times import LATEST_US

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray


class StoredMessages:
    """Selects the messages of a stored file.

    Attributes:
        shown: the number of messages that match so far.

    Args:
        path: the name of the file.
        selection: the conditions; ``of_frames`` must be empty.
        where: its expression over messages, or None.
    """

    def __init__(self, path: str, selection: Selection, where: WhereMessages | None) -> None:
        self._path, self._selection, self._where = path, selection, where
        self._number = self.shown = 0
        self._topics: Counter[str] = Counter()

    def among(self, piece: Piece) -> Piece:
        """A piece with the messages that match, and without its problems."""
        batch = None if piece.batch is None else self._rows(piece.batch, piece.fixed)
        return Piece(piece.offset, piece.length, self._messages(piece.messages), batch, piece.fixed)

    def text(self) -> str:
        """``no message matches; it has 12 messages; topics: orders``, with the topics if topics were selected."""
        topics = f"; topics: {listed_names(self._topics)}" if self._selection.topics else ""
        return f"no message matches; it has {plural(self._number, 'message')}{topics}"

    def _messages(self, messages: Iterable[Message]) -> Iterator[Message]:
        for some in _parts(messages):
            self._number += len(some)
            self._topics.update(message.topic for message in some if message.topic)
            matching = [message for message in some if self._selection.wants_stored(message)]
            if self._where is not None:
                fits = self._where.fits([message_row(message, self._path, STORED) for message in matching])
                matching = [message for message, fit in zip(matching, fits, strict=True) if fit]
            self.shown += len(matching)
            yield from matching

    def _rows(self, batch: pa.RecordBatch, fixed: Mapping[str, Any]) -> pa.RecordBatch:
        """The rows of a piece that match."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        from wirekit.pipeline.stored import message_batches
        from wirekit.tables.columns import MESSAGES

        selection, topic = self._selection, fixed.get("topic")
        self._number += batch.num_rows
        self._topics.update({topic: batch.num_rows} if topic else {})
        matches = np.full(batch.num_rows, selection.wants_topic(topic))
        stamp = batch["timestamp"].view(pa.int64())
        for within in selection.bounds(_micros(np.asarray(stamp.fill_null(0)))):
            matches &= within & np.asarray(stamp.is_valid())
        if selection.errors:
            matches &= np.asarray(pc.equal(batch["check"], "bad"))
        batch = batch.filter(pa.array(matches))
        if self._where is not None:
            numbers, before = list[int](), 0
            for rows in message_batches(MESSAGES.schema, self._path, batch, fixed):
                numbers += [before + number for number in self._where.numbers(rows)]
                before += rows.num_rows
            batch = batch.take(pa.array(numbers, pa.int64()))
        self.shown += batch.num_rows
        return batch


def _parts(messages: Iterable[Message]) -> Iterator[list[Message]]:
    """Messages that are evaluated together."""
    some, size = list[Message](), 0
    for message in messages:
        some.append(message)
        size += len(message.value or b"")
        if len(some) >= AT_ONCE or size >= BYTES_AT_ONCE:
            yield some
            some, size = [], 0
    yield some


def _micros(milliseconds: NDArray[np.int64]) -> NDArray[Any]:
    """Times in microseconds; as Python integers if 64 bits do not suffice."""
    fits = (abs(milliseconds // 1000) < LATEST_US // 1_000_000).all()
    return (milliseconds if fits else milliseconds.astype(object)) * 1000
