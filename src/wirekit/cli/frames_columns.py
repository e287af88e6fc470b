"""Prints the frames of a capture as JSON lines: columns cut, pair and select them; then each is decoded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wirekit.capture.links import Choice, Item, Link
from wirekit.cli.common import print_line
from wirekit.cli.filters_columns import Selected
from wirekit.cli.frame_lines import frame_line, line_head, line_of
from wirekit.cli.window_frames import WindowFrames
from wirekit.cli.windows import Windows
from wirekit.conversation import SIDES, Frame
from wirekit.pipeline.inputs import Input
from wirekit.pipeline.rows import Batch

ROWS = pa.schema({"time": pa.int64(), "part": pa.int64(), "frame": pa.int64()})
"""A frame that columns have found: its time, the ``FrameLines`` that has it, and its number there."""


class FrameWindows(Windows[str]):
    """Prints the line of each frame that matches.

    Attributes:
        bad: failed checks by kind, of the frames that match.
        shown: number of lines printed so far, and of the other items that match.

    Args:
        files, choice: as for ``Windows``.
        take: called with each item that objects read and that matches, None for the end of a connection.
        selected: selects the frames; None for all.
    """

    def __init__(
        self,
        files: tuple[Input, ...],
        choice: Choice,
        take: Callable[[Link, Item | None], None],
        selected: Selected | None = None,
    ) -> None:
        super().__init__(files, choice, ROWS, selected=selected)
        self.bad: Counter[str] = Counter()
        self.shown = 0
        self._take_item = take
        self._path = files[0].name
        self._parts: list[FrameLines] = []

    def assembly(self, *arguments: Any) -> FrameLines:
        """The frames of a window that columns have read."""
        lines = FrameLines(len(self._parts), self._selected, *arguments)
        self._parts.append(lines)
        self.bad.update(check.kind for frame, failed in lines.checks if lines.matches[frame] for check in failed)
        return lines

    def take(self, link: Link, item: Item | None) -> Iterable[str]:
        """Handles an item that objects read (None for the end of a connection); returns the line of a frame."""
        self._take_item(link, item)
        if not isinstance(item, Frame):
            self.shown += item is not None
            return ()
        self.bad.update(check.kind for check in item.decoded.checks if check.status == "bad")
        return (frame_line(link, item, self._path),)

    def show(self, rows: pa.Table, items: list[tuple[int, str]]) -> None:
        """Prints the lines of frames that columns cut, and between them those of frames that objects read."""
        self.shown += len(items)
        lines, printed = self._lines(rows), 0
        for place, line in items:
            self._print(islice(lines, place - printed))
            print_line(line)
            printed = place
        self._print(lines)

    def _print(self, lines: Iterator[str]) -> None:
        for line in lines:
            print_line(line)
            self.shown += 1

    def _lines(self, rows: pa.Table) -> Iterator[str]:
        parts, frames = np.asarray(rows["part"]), np.asarray(rows["frame"])
        bounds = np.flatnonzero(np.diff(parts, prepend=-1, append=-1))
        for begin, end in pairwise(bounds.tolist()):
            yield from self._parts[parts[begin]].lines(frames[begin:end])

    def end(self, size: int = 0) -> None:
        """Prints the window that was read; ``size`` is the number of bytes read so far."""
        super().end(size)
        self._parts = []


class FrameLines(WindowFrames):
    """The frames of plain connections as lines; a frame is decoded when its line is requested.

    Args:
        part: the number of this object in ``FrameWindows``.
        selected: selects the frames; None for all.
        arguments: as for ``Assembly``.
    """

    def __init__(self, part: int, selected: Selected | None, *arguments: Any) -> None:
        super().__init__(selected, *arguments)
        self._part = part
        self._heads: dict[tuple[int, int], str] = {}

    def batches(self) -> Iterator[Batch]:
        """The frames, in any order."""
        frames = self.matching
        columns = self.index.time[frames], np.full(frames.size, self._part), frames
        yield "frames", pa.record_batch([pa.array(column) for column in columns], ROWS)

    def lines(self, frames: NDArray[Any]) -> Iterator[str]:
        """The lines of some frames, in their order."""
        times, sides = self.index.time, self.index.side
        for number, frame in self.decoded(frames):
            request = int(self.index.request[number])
            latency_us = int(times[number]) - int(times[request]) if request >= 0 else None
            yield line_of(frame, self._head(int(self.index.connection[number]), int(sides[number])), latency_us)

    def _head(self, flow: int, side: int) -> str:
        """The beginning of the lines of one side of a connection."""
        head = self._heads.get((flow, side))
        if head is None:
            link = self.link(flow)
            head = self._heads[flow, side] = line_head(self.file, link.name, *link.addresses(SIDES[side]))
        return head
