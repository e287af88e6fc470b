"""Counts of a run per capture: they can be merged in any order, converted to and from JSON, and printed as a report.

Each task counts its own rows, the driver adds the counts of all tasks, and the manifest stores the sum.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from wirekit.capture.files import LINK_TYPE, NO_TIME_US
from wirekit.capture.links import Item, Link, Missing
from wirekit.conversation import Frame, Quarantined
from wirekit.errors import plural
from wirekit.times import moment
from wirekit.values import printable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console

_FOUND = re.compile(r", found .*", re.DOTALL)
_INDEXES = re.compile(r"\[\d+\]")
_NUMBERS = re.compile(r"0x[0-9a-f]+|\d+")
_NUMBER_OR_N = re.compile(rf"{_NUMBERS.pattern}|N")
LONGEST_REASON, LONGEST_NUMBER = 200, 20
TITLES = 17
"""Columns that the titles of a report take."""
MOST_CALLS, MOST_REASONS = 12, 5
"""The maximum numbers of kinds of calls, and of reasons, that the sum of several captures lists."""
LEAST_ROOM = 30
"""Columns of text below which a line is not broken."""
NARROW, INDENT = 72, 3
"""On a narrower terminal, a title has its own line, and the text below it is indented by this many columns."""


def kind_of_reason(reason: str, path: str = "") -> str:
    """A reason without its varying parts (numbers, values), so that equal kinds of reasons are counted together.

    >>> kind_of_reason("needs 4 bytes, 2 available", "topics[3].name")
    'topics[].name: needs N bytes, N available'
    """
    return _general(_without_value(reason, path))


def _without_value(reason: str, path: str) -> str:
    text = _FOUND.sub("", reason)
    return f"{_INDEXES.sub('[]', path)}: {text}" if path else text


def _general(text: str) -> str:
    return _NUMBERS.sub("N", text)[:LONGEST_REASON]


def _in_common(text: str, other: str) -> str:
    """Two reasons of one kind as one, which has N for the numbers in which they differ, and for long numbers.

    >>> _in_common("expected 0 to 3", "expected 0 to 9"), _in_common("expected 0 to N", "expected 0 to 3")
    ('expected 0 to N', 'expected 0 to N')
    """
    numbers = zip(_NUMBER_OR_N.findall(text), _NUMBER_OR_N.findall(other), strict=False)
    common = (one if one == two and len(one) <= LONGEST_NUMBER else "N" for one, two in numbers)
    return re.sub("N", lambda _: next(common), _general(text))


UNASKED = "responses whose request was before the capture"
LOST = "responses whose request was not captured"


def _kind_of_failure(link: Link, frame: Frame, failed: Quarantined) -> tuple[str, str]:
    """(reason, path) under which an undecoded frame is counted."""
    if unasked(link, frame):
        return UNASKED, ""
    if _without_request(frame):
        return LOST, ""
    if frame.announced:
        return failed.reason, ""
    return failed.reason, failed.path


def unasked(link: Link, frame: Frame) -> bool:
    """Whether the frame is a response that is not decoded because its request was before the capture."""
    return _without_request(frame) and not link.known_start


def _without_request(frame: Frame) -> bool:
    alone = frame.description.role == "response" and frame.request is None
    return alone and frame.decoded.error is None and frame.wrong is not None


def failure(frame: Frame) -> Quarantined | None:
    """The frame as undecoded bytes, or None if it was decoded."""
    error = frame.decoded.error
    if error is None and frame.wrong is None:
        return None
    reason, path, offset = frame.wrong or "", "", None
    if error is not None:
        reason, path, offset = reason if frame.announced else error.reason, error.path, error.offset
        if error.source:
            reason, offset = f"{reason}, at byte {offset} of decompressed data", None
    return Quarantined(frame.side, frame.offset, frame.data, frame.time_us, reason, path, offset)


@dataclass(slots=True)
class FileSummary:
    """The summary of one capture.

    Attributes:
        segments: TCP segments.
        first_us, last_us: capture times of the first and the last of them, microseconds since the epoch.
        connections: number by protocol ("" if not known).
        without_payload: number of those whose protocol is not known because they have no payload.
        calls: number of frames by (protocol, api, version, role), also of undecoded ones that show their API.
        messages: number of application messages by protocol.
        checks: failed checks by kind.
        gaps: missing bytes, by (reason, ``ranges`` or ``bytes``).
        quarantine: undecoded bytes, by (kind of reason, ``pieces`` or ``bytes``).
        reasons: by kind, the reason with the numbers that all reasons of the kind have in common.
        skipped: number of packets without a TCP segment, by reason.
        bytes: payload bytes by their use, as in the table ``connections``.
        damaged: where and why reading a file of the capture stopped, "" if all files were read to their end.
        unreadable: why the capture could not be read at all, "" if it could.
        unopened: the names of files that the system refused to read.
    """

    segments: int = 0
    first_us: int | None = None
    last_us: int | None = None
    connections: Counter[str] = field(default_factory=Counter)
    without_payload: int = 0
    calls: Counter[tuple[str, str, int | None, str]] = field(default_factory=Counter)
    messages: Counter[str] = field(default_factory=Counter)
    checks: Counter[str] = field(default_factory=Counter)
    gaps: Counter[tuple[str, str]] = field(default_factory=Counter)
    quarantine: Counter[tuple[str, str]] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)
    bytes: Counter[str] = field(default_factory=Counter)
    damaged: str = ""
    unreadable: str = ""
    unopened: set[str] = field(default_factory=set)

    def count_segment(self, time_us: int) -> None:
        """Counts a segment."""
        self.segments += 1
        if time_us == NO_TIME_US:
            return
        if self.first_us is None or time_us < self.first_us:
            self.first_us = time_us
        if self.last_us is None or time_us > self.last_us:
            self.last_us = time_us

    def seen_all(self, times_us: NDArray[np.int64]) -> None:
        """Counts segments, given their times."""
        times = times_us[times_us != NO_TIME_US]
        self.segments += times_us.size - min(times.size, 2)
        if times.size:
            self.count_segment(int(times.min()))
        if times.size > 1:
            self.count_segment(int(times.max()))

    def count(self, link: Link, item: Item | None) -> None:
        """Counts an item of a connection; None is its end."""
        if isinstance(item, Frame):
            if item.messages:
                self.messages.update(message.protocol for message in item.messages)
            failed = failure(item)
            if failed is not None:
                self.quarantined(*_kind_of_failure(link, item, failed), len(failed.data))
            description = item.description
            if failed is not None and not description.api:
                return
            self.calls[item.protocol, description.api or "", description.version, description.role] += 1
            if not item.decoded.clean:
                self.checks.update(check.kind for check in item.decoded.checks if check.status == "bad")
        elif isinstance(item, Quarantined):
            self.quarantined(item.reason, item.path, len(item.data))
        elif isinstance(item, Missing):
            self.gaps[item.reason, "ranges"] += 1
            self.gaps[item.reason, "bytes"] += item.length
        else:
            self.connections[link.protocol] += 1
            self.without_payload += not (link.protocol or any(link.bytes.values()))
            for (_, fate), size in link.bytes.items():
                if size:  # frames may be decoded again as other bytes
                    self.bytes[fate] += size

    def uncount(self, link: Link) -> None:
        """Undoes the count of a connection's end, which will be counted later."""
        self.connections[link.protocol] -= 1
        self.without_payload -= not (link.protocol or any(link.bytes.values()))
        for (_, fate), size in link.bytes.items():
            self.bytes[fate] -= size
        self.connections, self.bytes = +self.connections, +self.bytes  # without those that are 0

    def quarantined(self, reason: str, path: str, size: int) -> None:
        """Counts a piece of ``size`` undecoded bytes."""
        text = _without_value(reason, path)
        kind = _general(text)
        self.quarantine[kind, "pieces"] += 1
        self.quarantine[kind, "bytes"] += size
        self._add_reason(kind, text)

    def _add_reason(self, kind: str, text: str) -> None:
        earlier = self.reasons.get(kind)
        if earlier != text:
            self.reasons[kind] = _in_common(text, earlier or text)

    @property
    def undecoded(self) -> dict[str, dict[str, int]]:
        """{reason: {``pieces`` or ``bytes``: number}} of the undecoded bytes."""
        return {self.reasons[kind]: counts for kind, counts in _nested(self.quarantine).items()}

    def damage(self, text: str) -> None:
        """Stores where and why reading a file of the capture stopped."""
        self.damaged = "\n".join(sorted({*self.damaged.splitlines(), text}))

    def merge(self, other: FileSummary) -> None:
        """Adds the counts of another task for the same capture."""
        self.segments += other.segments
        self.without_payload += other.without_payload
        self.first_us = min(_present(self.first_us, other.first_us), default=None)
        self.last_us = max(_present(self.last_us, other.last_us), default=None)
        for name in ("connections", "calls", "messages", "checks", "gaps", "quarantine", "skipped", "bytes"):
            getattr(self, name).update(getattr(other, name))
        for kind, text in other.reasons.items():
            self._add_reason(kind, text)
        for text in other.damaged.splitlines():
            self.damage(text)
        self.unreadable = max(self.unreadable, other.unreadable)
        self.unopened |= other.unopened

    def roles(self, role: str) -> int:
        """The number of frames with a role: ``request``, ``response`` or ``event``."""
        return sum(count for (*_, each), count in self.calls.items() if each == role)

    @property
    def unread(self) -> str:
        """Why nothing of the capture could be read, "" if something could."""
        return self.unreadable or ("" if self.segments else of_other_links(self.skipped))

    @property
    def quarantined_bytes(self) -> int:
        """Bytes in quarantine, of connections and of the file itself."""
        return sum(count for (_, unit), count in self.quarantine.items() if unit == "bytes")

    @property
    def clean(self) -> bool:
        """Whether nothing was quarantined and the capture could be read to its end."""
        return not (self.quarantine or self.damaged or self.unreadable)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data; its order depends only on the content."""
        return {
            "segments": self.segments,
            "first_us": self.first_us,
            "last_us": self.last_us,
            "connections": _sorted(self.connections),
            "without_payload": self.without_payload,
            "calls": [
                {"protocol": protocol, "api": api, "version": version, "role": role, "count": count}
                for (protocol, api, version, role), count in sorted(self.calls.items(), key=_by_call)
            ],
            "messages": _sorted(self.messages),
            "failed_checks": _sorted(self.checks),
            "gaps": _nested(self.gaps),
            "quarantine": self.undecoded,
            "skipped": _sorted(self.skipped),
            "bytes": _sorted(self.bytes),
            "damaged": self.damaged or None,
            "unreadable": self.unread or None,
            **({"unopened": sorted(self.unopened)} if self.unopened else {}),
        }

    @classmethod
    def from_json(cls, obj: Mapping[str, Any]) -> FileSummary:
        """The inverse of ``to_json``."""
        skipped = _counted(obj["skipped"])
        reason = obj["unreadable"] or ""
        return cls(
            segments=obj["segments"],
            first_us=obj["first_us"],
            last_us=obj["last_us"],
            connections=_counted(obj["connections"]),
            without_payload=obj.get("without_payload", 0),  # a commit of an earlier version lacks it
            calls=Counter({_key(*(call[name] for name in _CALL)): call["count"] for call in obj["calls"]}),
            messages=_counted(obj["messages"]),
            checks=_counted(obj["failed_checks"]),
            gaps=_flat(obj["gaps"]),
            quarantine=_flat({_general(text): counts for text, counts in obj["quarantine"].items()}),
            reasons={_general(text): text for text in obj["quarantine"]},
            skipped=skipped,
            bytes=_counted(obj["bytes"]),
            damaged=obj["damaged"] or "",
            unreadable="" if reason == of_other_links(skipped) else reason,  # other files may have segments
            unopened={*obj.get("unopened", ())},
        )


class Summary:
    """The summaries of all captures of a run, by their names."""

    def __init__(self, files: Mapping[str, FileSummary] | None = None) -> None:
        self.files: dict[str, FileSummary] = dict(files or {})

    def file(self, name: str) -> FileSummary:
        """The summary of one capture, created at first access."""
        summary = self.files.get(name)
        if summary is None:
            summary = self.files[name] = FileSummary()
        return summary

    def merge(self, other: Summary) -> None:
        """Adds the counts of another task."""
        for name, each in other.files.items():
            self.file(name).merge(each)

    def total(self) -> FileSummary:
        """The sum over all captures; it does not show which of them could not be read."""
        total = FileSummary()
        for each in self.files.values():
            total.merge(each)
        total.damaged = total.unreadable = ""
        return total

    @property
    def quarantined(self) -> bool:
        """Whether any bytes were quarantined."""
        return any(each.quarantine for each in self.files.values())

    @property
    def incomplete(self) -> bool:
        """Whether bytes are missing from a capture."""
        return any(each.gaps for each in self.files.values())

    @property
    def unopened(self) -> set[str]:
        """The files that the system refused to read."""
        return set[str]().union(*(each.unopened for each in self.files.values()))

    @property
    def unreadable(self) -> dict[str, str]:
        """{capture: reason} of the captures that could not be read, or not to their end."""
        reasons = {name: each.unread or each.damaged for name, each in self.files.items()}
        return {name: reason for name, reason in reasons.items() if reason}

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data by name, in order of the names."""
        return {name: self.files[name].to_json() for name in sorted(self.files)}

    @classmethod
    def from_json(cls, obj: Mapping[str, Any]) -> Summary:
        """The inverse of ``to_json``."""
        return cls({name: FileSummary.from_json(each) for name, each in obj.items()})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Summary) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]  # it is counted up


Fact = tuple[str, str, str]
"""A line of a report: title, text, style."""


def show(
    summary: Summary,
    console: Console,
    details: Mapping[str, Iterable[Fact]] | None = None,
    most_blocks: int | None = None,
    most_files: int | None = None,
) -> None:
    """Prints a report: a block per capture, and the sum if there are several.

    Args:
        summary: the counts.
        console: the output.
        details: {capture: lines} to print instead of the counts of its calls.
        most_blocks: if there are more captures, each has a line.
        most_files: if there are more captures, only the sum is printed.
    """
    brief = most_blocks is not None and len(summary.files) > most_blocks
    for name, each in summary.files.items() if most_files is None or len(summary.files) <= most_files else ():
        if brief:
            console.print(f"{printable(name)}: {_brief(each)}", markup=False, soft_wrap=True)
        else:
            _show(name, each, console, details=(details or {}).get(name))
    if len(summary.files) > 1:
        _show(
            f"all {len(summary.files):,} files", summary.total(), console, MOST_CALLS, MOST_REASONS if brief else None
        )
        if summary.unreadable:
            _line(console, "not all read", plural(len(summary.unreadable), "file"), "red")


def _show(
    name: str,
    file: FileSummary,
    console: Console,
    most_calls: int | None = None,
    most_reasons: int | None = None,
    details: Iterable[Fact] | None = None,
) -> None:
    console.print(printable(name), style="bold", markup=False, soft_wrap=True)
    for line in facts(file, most_calls, details, most_reasons):
        _line(console, *line)


def _brief(file: FileSummary) -> str:
    """``1 connection, 11 requests, 3 messages; failed checks``: the counts of a capture, and its faults."""
    counts = {
        "connection": file.connections.total(),
        "request": file.roles("request"),
        "message": file.messages.total(),
    }
    faults = dict.fromkeys(title for title, _, style in facts(file) if style)
    texts = [", ".join(plural(count, unit) for unit, count in counts.items() if count), ", ".join(faults)]
    return "; ".join(filter(None, texts)) or "nothing"


def facts(
    file: FileSummary,
    most_calls: int | None = None,
    details: Iterable[Fact] | None = None,
    most_reasons: int | None = None,
) -> Iterator[Fact]:
    """The lines of a report on one capture; ``details`` replace the counts of its calls."""
    if file.unread:
        yield "not read", file.unread, "red"
        return
    count_by_protocol = {protocol or "unknown": count for protocol, count in sorted(file.connections.items())}
    if file.without_payload:
        count_by_protocol["unknown"] -= file.without_payload
        count_by_protocol["without payload"] = file.without_payload
    size = size_text(file.bytes["captured"])
    connections = listed(count_by_protocol) or "none"
    if details is not None and file.first_us is not None and file.last_us is not None:
        yield "time", time_span(file.first_us, file.last_us), ""
    if file.segments or not file.messages:
        yield "connections", f"{connections} ({file.segments:,} segments, {size} of payload)", ""
    yield from _call_lines(file, most_calls) if details is None else details
    yield "messages", listed(file.messages) or "none", ""
    if file.checks:
        places = "" if details is None else " (frames --errors shows where)"
        yield "failed checks", listed(file.checks) + places, "yellow"
    for title, nested, style in (("missing", _nested(file.gaps), "yellow"), ("not decoded", file.undecoded, "red")):
        reasons = [*nested.items()]
        if most_reasons is not None and len(reasons) > most_reasons:
            reasons.sort(key=lambda each: -each[1]["bytes"])
            other_bytes = sum(counts["bytes"] for _, counts in reasons[most_reasons:])
            more = f"{size_text(other_bytes)} for {len(reasons) - most_reasons} other reasons"
        else:
            more = ""
        for reason, counts in reasons[:most_reasons]:
            yield title, _undecoded(reason, counts), style
        if more:
            yield title, more, style
    if file.bytes["duplicate"]:
        yield "retransmitted", size_text(file.bytes["duplicate"]), ""
    if file.bytes["ignored"]:
        yield "ignored", f"{size_text(file.bytes['ignored'])}: too late, after the end, or out of the window", "yellow"
    if file.skipped:
        yield "no TCP", listed(file.skipped), ""
    for text in file.damaged.splitlines():
        yield "damaged", text, "red"


def time_span(first_us: int, last_us: int) -> str:
    """``2026-11-21 00:37:06.293 to 00:37:13.400 UTC (7.107 s)``; numbers for times outside the years 1 to 9999."""
    begin, end = moment(first_us), moment(last_us)
    if begin is None or end is None:
        return f"{first_us} to {last_us} µs since the epoch"
    shown = f"{end:%H:%M:%S.%f}" if begin.date() == end.date() else f"{end:%Y-%m-%d %H:%M:%S.%f}"
    return f"{begin:%Y-%m-%d %H:%M:%S.%f} to {shown} UTC ({(last_us - first_us) / 1_000_000:,.3f} s)"


def _undecoded(reason: str, counts: Mapping[str, int]) -> str:
    number = counts.get("ranges") or counts.get("pieces", 0)
    if reason in (UNASKED, LOST):
        return f"{number:,} {reason if number > 1 else reason.replace('responses', 'response', 1)}"
    if not counts["bytes"]:  # in decompressed data, or a wrong length
        return f"{plural(number, 'place')}: {reason}"
    times = f" in {number:,} pieces" if number > 1 else ""
    return f"{size_text(counts['bytes'])}{times}: {reason}"


def _call_lines(file: FileSummary, most: int | None) -> Iterator[Fact]:
    for role, title in (("request", "requests"), ("response", "responses"), ("event", "events")):
        calls = _calls(file, role)
        if calls:
            more = f", and {len(calls) - most} more" if most and len(calls) > most else ""
            yield title, f"{file.roles(role):,}: {', '.join(calls[:most])}{more}", ""


def _line(console: Console, title: str, text: str, style: str = "") -> None:
    """A fact, on several lines if the terminal is too narrow."""
    narrow = console.is_terminal and console.width < NARROW
    if narrow and title:
        console.print(f"  {title}", markup=False, soft_wrap=True)
    indent = INDENT if narrow else TITLES
    first = " " * indent if narrow else f"  {title:<{indent - 2}}"
    room = console.width - indent
    lines = [printable(text)]
    if console.is_terminal and len(lines[0]) > room > LEAST_ROOM:
        lines = textwrap.wrap(lines[0], room, subsequent_indent="  ", break_on_hyphens=False)
    for number, line in enumerate(lines):
        console.print(" " * indent if number else first, end="", markup=False)
        console.print(line, style=style or None, markup=False, soft_wrap=True)


def _calls(file: FileSummary, role: str) -> list[str]:
    """``produce v1 ×7``, ``metadata v0 ×3``: the most frequent first."""
    calls = [(protocol, api, version, n) for (protocol, api, version, each), n in file.calls.items() if each == role]
    calls.sort(key=lambda call: (-call[3], call[0], call[1], -1 if call[2] is None else call[2]))
    return [
        f"{api or protocol}{'' if version is None else f' v{version}'} ×{count:,}"
        for protocol, api, version, count in calls
    ]


def listed(counts: Mapping[str, int]) -> str:
    """Counts as text.

    >>> listed({"udp": 1200, "arp": 2, "icmp": 0})
    'arp ×2, udp ×1,200'
    """
    return ", ".join(f"{name} ×{count:,}" for name, count in sorted(counts.items()) if count)


def of_other_links(skipped: Mapping[str, int]) -> str:
    """The reason why no packet of a capture could be read, if all have unsupported link types; otherwise "".

    >>> of_other_links({"link type 147": 3})
    'no packet can be read: wirekit does not support link type 147 ×3'
    >>> of_other_links({"link type 147": 3, "udp": 1}), of_other_links({})
    ('', '')
    """
    other = bool(skipped) and all(reason.startswith(LINK_TYPE) for reason in skipped)
    return f"no packet can be read: wirekit does not support {listed(skipped)}" if other else ""


def size_text(size: float) -> str:
    """A number of bytes for messages: ``812 B``, ``1.5 MB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"


def _present(*times: int | None) -> list[int]:
    return [time for time in times if time is not None]


def _sorted(counter: Counter[str]) -> dict[str, int]:
    return dict(sorted(counter.items()))


def _nested(counter: Counter[tuple[str, str]]) -> dict[str, dict[str, int]]:
    nested: dict[str, dict[str, int]] = {}
    for (reason, unit), count in sorted(counter.items()):
        nested.setdefault(reason, {})[unit] = count
    return nested


def _flat(nested: Mapping[str, Mapping[str, int]]) -> Counter[tuple[str, str]]:
    return Counter({_key(reason, unit): count for reason, counts in nested.items() for unit, count in counts.items()})


def _counted(counts: Mapping[str, int]) -> Counter[str]:
    return Counter({sys.intern(name): count for name, count in counts.items()})


_CALL = ("protocol", "api", "version", "role")


@lru_cache(4096)
def _key(*key: Any) -> Any:
    """A key of a counter: one shared object for the summaries of all files."""
    return key


def _by_call(item: tuple[tuple[str, str, int | None, str], int]) -> tuple[str, str, int, str]:
    (protocol, api, version, role), _ = item
    return protocol, api, -1 if version is None else version, role
