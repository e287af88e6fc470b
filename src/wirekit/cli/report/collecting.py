"""Collects the content of the HTML report: frames, connections, and the counts of ``wirekit inspect``."""

from __future__ import annotations

import heapq
import json
import math
from collections import Counter
from typing import Any, NamedTuple

from wirekit.capture.links import Link, Missing
from wirekit.cli.filters import is_wrong
from wirekit.cli.numbered import Numbered
from wirekit.cli.overview import Overview
from wirekit.cli.report.frame_content import FrameContent, frame_content
from wirekit.conversation import Frame, Quarantined
from wirekit.conversation.requests import MOST_WAITING
from wirekit.pipeline.summary import FileSummary, facts, kind_of_reason
from wirekit.tables.facts import Facts
from wirekit.times import in_years

MOST_FRAMES = 20_000
"""The maximum number of rows of a sample of frames: of more, every second, every fourth, ... frame has one."""
MOST_WRONG = 5_000
"""The maximum number of rows of frames with an error or a failed check, and of undecoded bytes."""
MOST_SLOW = 200
"""The maximum number of further rows: those of the slowest responses."""
MOST_CONTENT = 12_000_000
"""The approximate maximum of characters of JSON for the fields and bytes of frames, before compression."""
MOST_CONNECTIONS = 2_000
"""The maximum number of connections with a row."""
BUCKETS_OF_OCTAVE = 4
"""Bars of the histogram of latencies for each octave, the range from one power of two to the next."""


class Row(NamedTuple):
    """A frame, or a range of bytes that is not a frame (``number`` 0)."""

    ordinal: int
    number: int
    connection: int
    time_us: int | None
    role: str
    api: str = ""
    topics: str = ""
    group: str = ""
    client: str = ""
    error: str = ""
    latency_us: int | None = None
    size: int = 0
    note: str = ""
    request: int | None = None
    content: FrameContent | None = None
    weight: int = 0


class _Sample:
    """Keeps every n-th of the offered items, with n so large that a maximum size is never exceeded."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._every = 1
        self._count = 0
        self.rows: dict[int, Row] = {}

    def wants_next(self) -> bool:
        """Whether the next item belongs to the sample."""
        self._count += 1
        return (self._count - 1) % self._every == 0

    def add(self, row: Row) -> int:
        """Adds the item that ``wants_next`` accepted; returns the weight of removed items."""
        self.rows[self._count - 1] = row
        lost = 0
        if len(self.rows) > self._most:
            self._every *= 2
            lost = sum(row.weight for number, row in self.rows.items() if number % self._every)
            self.rows = {number: row for number, row in self.rows.items() if number % self._every == 0}
        return lost


class Report:
    """Takes the items of captures, one capture after the other.

    Args:
        payloads: whether application data, and all other texts, may be in the page.
    """

    def __init__(self, *, payloads: bool) -> None:
        self.payloads = payloads
        self.frames = 0
        self._captures: list[dict[str, Any]] = []
        self._connections: list[dict[str, Any]] = []
        self._numbers: dict[int, int] = {}
        self._last_connection = 0
        self._frames_of: Counter[int] = Counter()
        self._clients: dict[int, Facts] = {}
        self._ordinary = _Sample(MOST_FRAMES)
        self._wrong = _Sample(MOST_WRONG)
        self._slow: list[tuple[int, int, Row]] = []
        self._requests: dict[tuple[int, str, int], int] = {}
        self._content_size = 0
        self._ordinal = 0

    def take(self, each: Numbered) -> None:
        """Takes the next item of the capture."""
        link, item = each.link, each.item
        if item is None:
            self._close(each)
            return
        number = self._numbers.get(each.connection)
        if number is None:
            self._last_connection = number = self._numbers[each.connection] = self._last_connection + 1
        self._ordinal += 1
        if not isinstance(item, Frame):
            if self._wrong.wants_next():
                self._content_size -= self._wrong.add(self._gap(number, item))
            return
        self.frames += 1
        self._frames_of[number] += 1
        self._clients[number] = each.facts
        request = self._request_of(number, each.frame, item)
        wrong = is_wrong(each)
        sample = self._wrong if wrong else self._ordinary
        sampled = sample.wants_next()
        latency = item.latency_us or 0
        slow = len(self._slow) < MOST_SLOW or latency > self._slow[0][0]
        if not sampled and not (latency and slow):
            return
        row = self._row(number, each, item, request, link)
        if sampled:
            self._content_size += row.weight - sample.add(row)
        if latency and slow:
            push = heapq.heappush if len(self._slow) < MOST_SLOW else heapq.heappushpop
            push(self._slow, (latency, -self._ordinal, row))

    def end(self, name: str, file: FileSummary, overview: Overview) -> None:
        """Ends a capture: adds its counts."""
        self._captures.append({"name": name, "facts": list(facts(file, details=overview.lines()))} | overview.to_json())
        for counts, latencies in zip(self._captures[-1]["apis"], overview.latencies(), strict=True):
            counts["histogram"] = sorted(Counter(map(_bucket, latencies)).items())
        self._numbers.clear()
        self._requests.clear()

    def _request_of(self, connection: int, frame: int, item: Frame) -> int | None:
        """The number of the frame's request; None if there is none."""
        if item.request is not None:
            return self._requests.pop((connection, item.request.side, item.request.offset), None)
        if item.description.answered:
            self._requests[connection, item.side, item.offset] = frame
            if len(self._requests) > MOST_WAITING:
                del self._requests[next(iter(self._requests))]
        return None

    def _gap(self, connection: int, item: Quarantined | Missing) -> Row:
        size = len(item.data) if isinstance(item, Quarantined) else item.length
        text = "not decoded" if isinstance(item, Quarantined) else "missing"
        note = f"{text}: {kind_of_reason(item.reason)}"
        role = "→" if item.side == "client" else "←"
        return Row(
            self._ordinal,
            0,
            connection,
            in_years(item.time_us),
            role,
            error=text,
            size=size,
            note=note,
        )

    def _row(self, connection: int, each: Numbered, item: Frame, request: int | None, link: Link) -> Row:
        description, frame_facts = item.description, each.facts
        version = "" if description.version is None else f" v{description.version}"
        errors = ", ".join(dict.fromkeys(error.error for error in frame_facts.errors))
        content, weight = None, 0
        if self._content_size < MOST_CONTENT:
            content = frame_content(item, None if self.payloads else self._names(frame_facts, link))
            weight = len(json.dumps(content))
        note = content["error"] if content else item.reason or ("not decoded" if item.decoded.error else "")
        failed = [check.kind for check in item.decoded.checks if check.status == "bad"]
        return Row(
            self._ordinal,
            each.frame,
            connection,
            in_years(item.time_us),
            "→" if item.side == "client" else "←",
            f"{description.api or '?'}{version}",
            ", ".join(frame_facts.topics),
            frame_facts.group_id or "",
            frame_facts.client or "",
            errors or ("not decoded" if note else f"{failed[0]} check failed" if failed else ""),
            item.latency_us,
            item.size,
            note,
            request,
            content,
            weight,
        )

    def _names(self, frame_facts: Facts, link: Link) -> set[str]:
        """Texts of a frame that the page contains in any case: its topics, its group, its client."""
        return {
            *frame_facts.topics,
            frame_facts.group_id or "",
            frame_facts.client or "",
            link.client,
            link.server,
            *_software(frame_facts),
        }

    def _close(self, each: Numbered) -> None:
        link = each.link
        number = self._numbers.get(each.connection)
        frame_facts = self._clients.pop(number or 0, Facts())
        if number is None or len(self._connections) >= MOST_CONNECTIONS:
            return
        self._connections.append(
            {
                "number": number,
                "capture": len(self._captures),
                "connection": each.connection,
                "client": link.client,
                "server": link.server,
                "protocol": link.protocol,
                "name": frame_facts.client or "",
                "software": " ".join(_software(frame_facts)),
                "opened": in_years(link.opened_us),
                "closed": in_years(link.closed_us) if link.closed_us else None,
                "frames": self._frames_of.pop(number, 0),
                "sent": link.bytes["client", "captured"],
                "received": link.bytes["server", "captured"],
                "missing": sum(link.bytes[side, "missing"] for side in ("client", "server")),
                "undecoded": sum(link.bytes[side, "quarantined"] for side in ("client", "server")),
            }
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data: frames by columns; columns of texts have indexes into a list of strings."""
        slow = (row for *_, row in self._slow)
        row_by_ordinal = {
            row.ordinal: row for row in (*self._ordinary.rows.values(), *self._wrong.rows.values(), *slow)
        }
        rows = [row for _, row in sorted(row_by_ordinal.items())]
        times = [row.time_us for row in rows if row.time_us is not None]
        begin = min(times, default=0)
        strings: dict[str, int] = {"": 0}
        columns: dict[str, list[Any]] = {}
        for name in ("role", "api", "topics", "group", "client", "error", "note"):
            columns[name] = [strings.setdefault(getattr(row, name), len(strings)) for row in rows]
        columns["time"] = [None if row.time_us is None else row.time_us - begin for row in rows]
        columns |= {name: [getattr(row, name) for row in rows] for name in ("number", "connection", "size", "request")}
        columns["latency"] = [row.latency_us for row in rows]
        return {
            "captures": self._captures,
            "connections": self._connections,
            "begin": begin,
            "payloads": self.payloads,
            "total": self.frames,
            "strings": list(strings),
            "frames": columns,
            "opened": {str(number): row.content for number, row in enumerate(rows) if row.content is not None},
            "octave": BUCKETS_OF_OCTAVE,
        }


def _software(frame_facts: Facts) -> list[str]:
    """The client's software."""
    parts = [frame_facts.connection.get(column) for column in ("client_software", "client_version")]
    return [part for part in parts if part]


def _bucket(latency_us: int) -> int:
    return math.floor(BUCKETS_OF_OCTAVE * math.log2(max(latency_us, 1)))
