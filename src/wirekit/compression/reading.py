"""Functions that the readers of all formats share."""

from __future__ import annotations

from collections.abc import Iterator
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


def drain(
    stream: Stream, data: memoryview, start: int, output: Output, sizes: Iterator[int] | None = None
) -> int | None:
    """Decompresses one stream from ``start`` on.

    Args:
        sizes: the sizes of the slices of the input; the rest is one slice.

    Returns:
        The end of the stream in ``data``, or None if ``data`` ends first.
    """
    sizes = _growing() if sizes is None else sizes
    position = start
    chunk: Buffer = data[position : position + next(sizes, len(data))]
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
        chunk = data[position : position + next(sizes, len(data))]


def _growing() -> Iterator[int]:
    """The sizes of slices: the libraries copy the input that they leave unread, and many streams are tiny."""
    size = 4 * KIB
    while True:
        yield size
        size = min(2 * size, STEP)
