"""Finds files that are parts of one capture: a rotation (``tcpdump -C`` or ``-G``, ``dumpcap -b``), or split by hand.

File names decide which files may belong together. The times of their packets decide which of them do: each part begins
after the previous one ends. Files whose times overlap are different captures, for example of two interfaces or two
hosts.

- Names that are equal except for a number at the end (``trace.pcap``, ``trace.pcap1``: ``-C``), a time stamp
  (``trace-20260102030405.pcap``: ``-G``), or a time stamp and a number before it (``trace_00001_20260102030405.pcap``:
  ``dumpcap``) belong together, with any pause between two files.
- Names that are equal except for their last number (``part-1.pcap``, ``part-2.pcap``) belong together if no pause is
  longer than the idle time of a connection.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from wirekit.capture.files import Capture, open_capture
from wirekit.capture.files.unpacking import PACKINGS
from wirekit.capture.tcp import Settings
from wirekit.errors import WireError
from wirekit.storage import in_parallel, is_remote

if TYPE_CHECKING:
    import pyarrow as pa

_PACKED = rf"\.(?:{'|'.join(packing.ending for packing in PACKINGS)})"
CAPTURE_NAME = re.compile(rf".*\.(?:pcap|pcapng|cap)\d*(?:{_PACKED})?", re.IGNORECASE | re.DOTALL)
"""The whole name of a file that is taken for a capture where only a directory was named."""

LONGEST_PAUSE_US = Settings().idle_us
OVERLAP_US = Settings().hold_us
"""The microseconds by which a part may reach into the next one, because packets are captured late."""
_LARGE = 4 << 20  # bytes: from this size on, columns read the records of a file; also the size of a window

_STAMP = re.compile(
    r"(?:_\d+_)?(?<!\d)(?:19|20)\d\d([-_.]?)(?:0[1-9]|1[0-2])\1(?:0[1-9]|[12]\d|3[01])"
    r"(?:[-_.T ]?(?:[01]\d|2[0-3])(?:[-_.:]?[0-5]\d){0,2})?(?!\d)"
    r"|(?<!\d)1\d{9}(?!\d)"  # seconds since the epoch
)
_COUNT = re.compile(r"\d+$")
_LAST_NUMBER = re.compile(r"\d+(?=\D*$)")

Parts = tuple[str, ...]
Span = tuple[int, int]
"""Capture times of the first and the last packet, microseconds since the epoch."""


def rotations(paths: Iterable[str], spans: Spans | None = None) -> list[Parts]:
    """Groups files into captures; the files of each capture are in the order of their times.

    Files whose names may belong together are read through for the times of their packets: the position of the last
    packet follows only from the sizes of all packets before it.

    Args:
        paths: capture files. An unreadable file, or one without packets, is a capture of its own.
        spans: cache of known times; times that were read are added.

    Returns:
        Captures in the order in which the caller named their first files.
    """
    place = {path: number for number, path in enumerate(dict.fromkeys(paths))}
    spans = Spans() if spans is None else spans
    captures: list[Parts] = [(path,) for path in place]
    for kind, longest_pause_us in ((_rotated, None), (_numbered, LONGEST_PAUSE_US)):
        alike = defaultdict(list)
        for parts in captures:
            alike[kind(parts[0])].append(parts)
        captures = [joined for group in alike.values() for joined in _joined(group, spans, longest_pause_us)]
    return sorted(captures, key=lambda parts: min(place[path] for path in parts))


def _rotated(path: str) -> str:
    """The common name of the files of a rotation."""
    name = re.sub(f"{_PACKED}$", "", os.path.basename(path), flags=re.IGNORECASE)
    return os.path.join(os.path.dirname(os.path.abspath(path)), _COUNT.sub("", _STAMP.sub("%", name)))


def _numbered(path: str) -> str:
    """The common name of files whose names are numbered."""
    folder, name = os.path.split(_rotated(path))
    return os.path.join(folder, _LAST_NUMBER.sub("#", name))


class Spans(dict[str, Span | None]):
    """The time span of each file, None for one without packets; read at first access."""

    def ask(self, paths: Iterable[str]) -> None:
        """Reads the spans of files in advance: of object stores several at once."""
        unread = [path for path in dict.fromkeys(paths) if path not in self]
        self.update(zip(unread, in_parallel(span_of, unread), strict=True))

    def __missing__(self, path: str) -> Span | None:
        self[path] = span_of(path)
        return self[path]


def span_of(path: str, *, to_end: bool = True) -> Span | None:
    """The span of a file, None for one without packets.

    Args:
        path: the file.
        to_end: False to read only the time of the first packet.
    """
    times: list[int] = []
    try:
        if not (is_remote(path) or os.path.isfile(path)):
            raise OSError  # a pipe can be read only once
        with open_capture(path) as capture:
            span = _by_columns(capture) if to_end else None
            if span is not None:
                return span
            for packet in capture.packets():
                times[1:] = [packet.time_us]
                if not to_end:
                    break
    except (WireError, OSError):
        times = []
    return (times[0], times[-1]) if times else None


def _by_columns(capture: Capture) -> Span | None:
    """The span of a large file, from the headers of its records; None if objects must read it."""
    if capture.size < _LARGE or find_spec("numba") is None or find_spec("pyarrow") is None:
        return None
    from wirekit.compiler.cache import interpreter_is_compiled

    if not interpreter_is_compiled():
        return None
    from wirekit.capture.columns import Sections, records

    errors: list[pa.RecordBatch] = []
    ends: list[int] = []
    sections = Sections()
    for part in records(capture, capture.limits, errors, _LARGE):
        times = part.rows["time"]
        if times.null_count or sections.are_small(capture, part):
            return None
        if len(times):
            ends = [*ends[:1], *(each.value // 1000 for each in (times[0], times[-1]))]
    return None if capture.incomplete or errors or not ends else (ends[0], ends[-1])


def _joined(group: list[Parts], spans: Spans, longest_pause_us: int | None) -> Iterator[Parts]:
    """Groups captures with similar names, if one follows the other."""
    if len(group) == 1:
        yield group[0]
        return
    timed: list[tuple[Span, Parts]] = []
    spans.ask(path for parts in group for path in (parts[0], parts[-1]))
    for parts in group:
        first, last = spans[parts[0]], spans[parts[-1]]
        if first is None or last is None:
            yield parts
        else:
            timed.append(((first[0], last[1]), parts))
    timed.sort()
    joined: Parts = ()
    before: Span | None = None
    for span, parts in timed:
        if before is not None and not _follows(span, before, longest_pause_us):
            yield joined
            joined = ()
        joined += parts
        before = span
    if joined:
        yield joined


def _follows(span: Span, before: Span, longest_pause_us: int | None) -> bool:
    """Whether a span begins after the previous one ends, and not too long after."""
    pause = span[0] - before[1]
    if span == before or span[1] < before[1] or pause < -OVERLAP_US:
        return False
    return longest_pause_us is None or pause <= longest_pause_us
