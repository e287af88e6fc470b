"""Prints the messages of a capture that columns read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from wirekit.capture.follow import Choice, Item, Link
from wirekit.cli.windows import Windows
from wirekit.conversation import Message
from wirekit.pipeline.inputs import Input
from wirekit.pipeline.messages import COLUMN_OF, message_of
from wirekit.registry import registry
from wirekit.stored import Piece
from wirekit.tables.columns import MESSAGES

if TYPE_CHECKING:
    from wirekit.cli.messages import Show


class MessageWindows(Windows[Message]):
    """Shows messages, as batches of columns or one by one.

    Args:
        files, choice: as for ``Windows``.
        take: called with each item that objects read, None for the end of a connection; returns the messages in it.
        show: shows messages.
    """

    def __init__(
        self,
        files: tuple[Input, ...],
        choice: Choice,
        take: Callable[[Link, Item | None], Iterable[Message]],
        show: Show,
    ) -> None:
        details = (registry.protocol(name).declared.detail_columns for name in registry.protocols())
        table = MESSAGES.only({*COLUMN_OF.values(), "time", "message_id"}.union(*details))
        super().__init__(files, choice, table.schema, table)
        self._take_item, self._show = take, show
        self._path = files[0].name

    def take(self, link: Link, item: Item | None) -> Iterable[Message]:
        """Handles an item that objects read (None for the end of a connection); returns the messages in it."""
        return self._take_item(link, item)

    def show_item(self, item: Message) -> None:
        """Shows a message that objects read."""
        self._show(self._path, item)

    def show_rows(self, rows: pa.Table) -> None:
        """Shows rows: as columns if their protocol has no details of its own, otherwise one by one."""
        for batch in rows.to_batches():
            protocols = batch["protocol"].dictionary_encode()
            names = protocols.dictionary.to_pylist()
            alone = np.array([bool(registry.protocol(name).declared.details) for name in names])
            alone = alone[np.asarray(protocols.indices)] | np.asarray(batch["message_id"].is_valid())
            ends = [*np.flatnonzero(alone[1:] != alone[:-1]) + 1, batch.num_rows]
            for begin, end in pairwise([0, *ends]):
                part = batch.slice(begin, end - begin)
                if alone[begin]:
                    for message in map(message_of, part.to_pylist()):
                        self._show(self._path, message)
                else:
                    columns = {name: part[column] for name, column in COLUMN_OF.items()}
                    self._show.piece(self._path, Piece(0, 0, batch=pa.RecordBatch.from_pydict(columns)))
