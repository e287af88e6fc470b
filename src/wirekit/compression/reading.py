"""Functions that the readers of all formats share."""

from __future__ import annotations

from typing import Protocol, TypeVar

from wirekit.compression.output import KIB, STEP, Buffer, Output
from wirekit.errors import Short, Wrong

View = TypeVar("View", bytes, memoryview)


def take(data: View, start: int, size: int) -> View:
    """Exactly ``size`` bytes from ``start``; Short if some are missing."""
    end = start + size
    if end > len(data):
        start = min(start, len(data))
        raise Short(end - start, len(data) - start, offset=start)
    return data[start:end]


def integer(data: memoryview, start: int, size: int) -> int:
    """A little-endian unsigned integer."""
    return int.from_bytes(take(data, start, size), "little")


def at_end(data: memoryview, end: int, name: str) -> None:
    if end != len(data):
        raise Wrong(f"nothing after {name}", f"{len(data) - end} more bytes", offset=end)


class Stream(Protocol):
    """The interface that ``bz2.BZ2Decompressor`` and similar classes share."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes | None: ...
    def decompress(self, data: Buffer, max_length: int) -> bytes: ...


def drain(stream: Stream, data: memoryview, start: int, output: Output) -> int | None:
    """Decompresses one stream from ``start`` on.

    Returns:
        The end of the stream in ``data``, or None if ``data`` ends first.
    """
    # The libraries copy the input that they leave unread, so they get it in slices. The first slices are small, because
    # each of many tiny streams would otherwise copy a large slice.
    position, slice_size = start, 4 * KIB
    chunk: Buffer = data[position : position + slice_size]
    while True:
        position += len(chunk)
        room = output.room()
        piece = stream.decompress(chunk, room)
        output.add(piece)
        if stream.eof:
            return position - len(stream.unused_data or b"")
        if len(piece) == room or not stream.needs_input:
            if not piece and not chunk:
                return None
            chunk = b""
            continue
        if position == len(data):
            return None
        slice_size = min(2 * slice_size, STEP)
        chunk = data[position : position + slice_size]
