"""Rows of the table ``packets``, one by one: a row for each TCP segment, and note rows for everything else.

Damaged data raises no error here: a capture that cannot be read, or not to its end, has a note.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from wirekit.capture.endpoints import host_and_port
from wirekit.capture.files import Capture, Damaged, Skipped, open_capture, segments
from wirekit.capture.files.fragments import Fragments
from wirekit.capture.tcp import Segment
from wirekit.errors import WireError
from wirekit.pipeline.inputs import Input, advised
from wirekit.storage import open_binary
from wirekit.values import json_text

MOST_RAW = 1 << 20
OTHER_PORT = "TCP on a port that was not asked for"
_LATEST = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Note:
    """A note in ``packets``: a row that is not a segment.

    Attributes:
        kind: ``damaged`` (read up to a byte), ``unreadable`` (not at all), ``packet`` (one, or a block, that
            does not decode), or ``skipped`` (packets without a segment).
        reason: the problem as text, without its place.
        path, error_offset: the field, and the offset in the file.
        text: reason and place together, for messages.
        packets: for ``skipped``, the number of packets by reason.
        retry: whether the system refused to read the file, which may work later.
    """

    kind: str
    reason: str = ""
    path: str = ""
    error_offset: int | None = None
    text: str = ""
    packets: dict[str, int] = field(default_factory=dict)
    retry: bool = False

    def dumps(self) -> str:
        """The text that the column contains."""
        return json_text({name: getattr(self, name) for name in self.__slots__ if name != "retry" or self.retry})

    @classmethod
    def loads(cls, text: str) -> Note:
        """The inverse of ``dumps``."""
        return cls(**json.loads(text))


def capture_rows(
    file: Input, ports: frozenset[int], fragments: Fragments | None = None
) -> Iterator[tuple[tuple[Any, ...], int]]:
    """The rows of a capture, each with the bytes of its payload; arguments as for ``rows_from``."""
    try:
        capture = open_capture(file.path)
    except WireError as error:
        note = Note("unreadable", error.reason, error.path, error.offset, str(advised(error, file.path)))
        yield _note(file, note, 0, file.size, _head(file.path))
        return
    except OSError as error:
        reason = error.strerror or str(error)
        yield _note(file, Note("unreadable", reason, text=reason, retry=True), 0, file.size, b"")
        return
    with capture:
        yield from rows_from(file, capture, ports, fragments=fragments)


def rows_from(
    file: Input,
    capture: Capture,
    ports: frozenset[int],
    start: int = 0,
    skipped: Sequence[Skipped] = (),
    other_ports: int = 0,
    fragments: Fragments | None = None,
) -> Iterator[tuple[tuple[Any, ...], int]]:
    """The rows of an open capture from an offset on, each with the bytes that it contains.

    Args:
        file, capture, ports: the capture, and the ports of its segments, or none for all.
        start: the offset.
        skipped, other_ports: the packets before it without a segment, and the number of those of other ports.
        fragments: as for ``segments``.
    """
    counts: Counter[str] = Counter({OTHER_PORT: other_ports} if other_ports else {})
    yield from _skipped(file, capture, skipped, counts)
    for item in segments(capture, file.number, start=start, fragments=fragments):
        if isinstance(item, Damaged):
            yield _damaged(file, capture, item)
        elif isinstance(item, Skipped):
            if item.detail:
                yield _undecoded(file, capture, item)
        elif ports and ports.isdisjoint([host_and_port(item.source)[1], host_and_port(item.target)[1]]):
            counts[OTHER_PORT] += 1
        else:
            yield segment_row(item, file.capture), len(item.payload)
    counts.update(capture.skipped)
    yield from counted(file, counts)
    yield from damage_rows(file, capture)


def note_rows(
    file: Input, capture: Capture, skipped: Iterable[Skipped], other_ports: int = 0
) -> Iterator[tuple[tuple[Any, ...], int]]:
    """The rows on packets without a segment, and on those of other ports, each with the bytes that it contains."""
    counts: Counter[str] = Counter({OTHER_PORT: other_ports} if other_ports else {})
    yield from _skipped(file, capture, skipped, counts)
    yield from counted(file, counts)


def _skipped(
    file: Input, capture: Capture, packets: Iterable[Skipped], counts: Counter[str]
) -> Iterator[tuple[tuple[Any, ...], int]]:
    """The rows on undecoded packets; counts all packets by reason."""
    for packet in packets:
        counts[packet.reason] += 1
        if packet.detail:
            yield _undecoded(file, capture, packet)


def damage_rows(file: Input, capture: Capture) -> Iterator[tuple[tuple[Any, ...], int]]:
    """The row on the damage that ended a file early, with its bytes; none for an undamaged file."""
    damage = capture.damage
    if damage is not None:
        start = damage.offset or 0
        note = Note("damaged", damage.reason, damage.path, damage.offset, str(damage))
        yield _note(file, note, start, max(capture.size - start, 0), capture.read(start, MOST_RAW))


def counted(file: Input, counts: Counter[str]) -> Iterator[tuple[tuple[Any, ...], int]]:
    """The row on the number of packets without a segment, by reason."""
    if counts:
        yield _note(file, Note("skipped", packets=dict(sorted(counts.items()))), 0, 0, b"")


def segment_row(segment: Segment, capture: int) -> tuple[Any, ...]:
    """The row of a segment of a capture with this number."""
    time_us, source, target, sequence, acknowledgment, flags, payload, offset, file, length = segment
    time_us = min(max(time_us, -_LATEST), _LATEST)
    flow = flow_of(capture, source, target)
    return flow, time_us, file, offset, source, target, sequence, acknowledgment, flags, length, payload, None


def _undecoded(file: Input, capture: Capture, packet: Skipped) -> tuple[tuple[Any, ...], int]:
    """The note on a packet whose headers do not decode."""
    note = Note("packet", packet.problem, error_offset=packet.offset)
    return _note(file, note, packet.offset, packet.length, capture.read(packet.offset, min(packet.length, MOST_RAW)))


def _damaged(file: Input, capture: Capture, part: Damaged) -> tuple[tuple[Any, ...], int]:
    """The note on a skipped part of the file."""
    note = Note("packet", part.error.reason, part.error.path, part.error.offset)
    return _note(file, note, part.offset, part.length, capture.read(part.offset, min(part.length, MOST_RAW)))


def _note(file: Input, note: Note, start: int, length: int, raw: bytes) -> tuple[tuple[Any, ...], int]:
    row = (flow_of(file.number, "", ""), 0, file.number, start, None, None, 0, 0, 0, length, raw, note.dumps())
    return row, len(raw)


def _head(path: str) -> bytes:
    try:
        with open_binary(path) as file:
            return file.read(MOST_RAW)
    except OSError:
        return b""  # the note says that the file cannot be read


@lru_cache(maxsize=65536)
def flow_of(capture: int, one: str, other: str) -> int:
    """The number of a flow, equal for both directions and in every process; Python's ``hash`` is not."""
    first, second = sorted((one, other))
    digest = blake2b(f"{capture}\0{first}\0{second}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
