"""Selection options by columns: the frames of a window that match, as ``Selection.wants`` decides frame by frame."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wirekit.capture.links import Item, Link
from wirekit.cli.filters import Selection
from wirekit.cli.frame_texts import Texts
from wirekit.cli.numbered import NOTHING, Numbered
from wirekit.cli.selected_names import Names
from wirekit.cli.where import FrameRows, Waiting, WhereFrames, frame_rows
from wirekit.cli.where_columns import fitting
from wirekit.conversation import Frame
from wirekit.errors import Misuse
from wirekit.pipeline.flows import Writer
from wirekit.road.assembly import Assembly
from wirekit.tables.facts import ConnectionFacts

INT64 = np.iinfo(np.int64)
COLUMNS = {"topic": "topic", "group": "group_id", "client": "client"}
"""The column with the names of a kind."""


def selected_by_columns(selection: Selection) -> Selected | None:
    """The frames that match; None if objects must select: by numbers of frames or connections.

    Objects also report an expression that is wrong.
    """
    if not selection.by_columns:
        return None
    try:
        where = None if selection.where is None else WhereFrames(selection.where, numbered=False)
    except Misuse:
        return None
    return Selected(selection, where)


class Selected:
    """The frames of a capture that match.

    Attributes:
        selection: the conditions.
        names: the counts of all frames, for the message if none matches.

    Args:
        selection: the conditions; ``by_columns`` must be true.
        where: its expression over frames, or None.
    """

    def __init__(self, selection: Selection, where: WhereFrames | None = None) -> None:
        self.selection, self.names = selection, Names(selection)
        self._where = where
        self._waiting = Waiting[tuple[FrameRows | None, bool, Callable[[bool], None]]]()
        self._facts: dict[str, ConnectionFacts] = {}  # of connections with a call that waits

    def decide(self, each: Numbered, then: Callable[[bool], None]) -> None:
        """Calls a function with whether an item matches; true for the end of a connection.

        Calls have the order of the items. With an expression, an item may wait until ``settle``.
        """
        ends = each.item is None
        matches = ends or self.selection.wants(each)
        if self._where is None:
            then(matches)
            return
        if self._waiting.add(each.item, (frame_rows(each) if matches else None, ends, then)):
            self.settle()

    def settle(self) -> None:
        """Decides all items that wait."""
        waiting = self._waiting.take()
        fits = [] if self._where is None else self._where.fits([rows for rows, *_ in waiting])
        for (_, ends, then), matches in zip(waiting, fits, strict=True):
            then(matches or ends)

    def described(self, writer: Writer, path: str, link: Link, item: Item | None) -> Numbered:
        """An item that objects read, with its facts and without numbers; its names are counted.

        Args:
            writer: has the names that columns met on the connection.
            path: the name of the capture.
            link, item: the item.
        """
        if item is None:
            self._facts.pop(link.name, None)
            self.names.connections += 1
            self.names.connected |= link.name in self.selection.links
            return Numbered(link, item, 0, 0, NOTHING)
        frame_facts = NOTHING
        if isinstance(item, Frame):
            facts = self._facts.setdefault(link.name, ConnectionFacts())
            facts.names = writer.calls_of(path, link).names
            frame_facts = facts.of(item)
            if not facts.waiting:
                del self._facts[link.name]
        each = Numbered(link, item, 0, 0, frame_facts)
        self.names.add(each)
        return each

    def among(self, assembly: Assembly) -> NDArray[np.bool_]:
        """For each frame of a window's index, whether it matches.

        For a frame that columns do not report, the result means nothing. Items that wait are decided before.
        """
        self.settle()
        index, facts, selection = assembly.index, assembly.facts, self.selection
        request, times = index.request, index.time
        first = np.where(request >= 0, request, np.arange(request.size))  # of the call
        matches = np.ones(request.size, bool)
        for within in selection.bounds(times):
            matches &= within
        if selection.apis:
            fits = np.array([*(selection.wants_api(name) for name in facts.apis), False])
            matches &= fits[facts.api] | fits[facts.api[first]]
        if selection.links:
            named = np.zeros(index.odd.size, bool)
            named[assembly.flows] = [name in selection.links for name in assembly.names]
            self.names.connected |= bool(named.any())
            matches &= named[index.connection]
        if selection.ids:
            numbers = [number for number in selection.ids if INT64.min <= number <= INT64.max]
            matches &= facts.numbered & np.isin(index.number, numbers)
        if selection.slower_us is not None:
            matches &= (request >= 0) & (times - times[first] > selection.slower_us)
        if selection.errors:
            matches &= _failed(assembly, first)
        texts = {kind: Texts(assembly, column, first) for kind, column in COLUMNS.items() if kind in self.names.kinds}
        if topics := texts.get("topic"):
            fits = topics.having(np.array([selection.wants_topic(text) for text in topics.texts], bool))
            matches &= fits | fits[first]
        if groups := texts.get("group"):
            fits = np.array([*(selection.wants_group(text) for text in groups.texts), False])
            matches &= fits[groups.first_number]
        if clients := texts.get("client"):
            by_name = np.array([*(selection.wants_client(text) for text in clients.texts), False])
            by_address = np.zeros(index.odd.size, bool)
            by_address[assembly.flows] = [selection.wants_address(address) for address in assembly.ends[0]]
            matches &= by_name[clients.first_number] | by_address[index.connection]
        self._count(assembly, texts)
        if self._where is not None:
            chosen = fitting(assembly, self._where, assembly.frames[matches[assembly.frames]])
            matches[:] = False
            matches[chosen] = True
        return matches

    def _count(self, assembly: Assembly, texts_by_kind: dict[str, Texts]) -> None:
        """Counts the frames, the connections that end here, and the names."""
        frames, facts, names = assembly.frames, assembly.facts, self.names
        names.frames += frames.size
        names.connections += assembly.listed.size
        if "API" in names.kinds:
            names.count("API", dict(zip(facts.apis, _how_many(facts.api[frames], len(facts.apis)), strict=True)))
        for kind, texts in texts_by_kind.items():
            number = texts.in_frames(frames) if kind == "topic" else texts.first_number[frames]
            names.count(kind, dict(zip(texts.texts, _how_many(number, len(texts.texts)), strict=True)))


def wants_topics(selection: Selection, topics: pa.Array) -> NDArray[np.bool_]:
    """For each topic, whether it matches; null does not."""
    coded = topics.dictionary_encode()
    fits = np.array([*map(selection.wants_topic, coded.dictionary.to_pylist()), False], bool)
    return fits[np.asarray(coded.indices.fill_null(-1))]


def _failed(assembly: Assembly, first: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether a frame has an error or a failed check."""
    failed = np.zeros(assembly.index.kind.size, bool)
    failed[[frame for frame, _ in assembly.checks]] = True
    errors = Texts(assembly, "error", first)
    return failed | errors.having(np.ones(len(errors.texts), bool))


def _how_many(numbers: NDArray[np.int64], size: int) -> list[int]:
    """How many times each number below a size occurs; -1 does not count."""
    counts: list[int] = np.bincount(numbers + 1, minlength=size + 1)[1:].tolist()
    return counts
