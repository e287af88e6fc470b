"""Sums up a capture: clients, topics, groups, calls with errors and latencies, the slowest calls."""

from __future__ import annotations

import heapq
import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from sys import intern
from typing import Any, TypeVar

from wirekit.capture.endpoints import endpoint
from wirekit.capture.links import Link, connection_name
from wirekit.conversation import SIDES
from wirekit.errors import plural
from wirekit.pipeline.ids import ID_BYTES, connection_id
from wirekit.pipeline.summary import Fact, size_text
from wirekit.rules import Violation

MOST_NAMES = 100_000
"""Different clients, topics, groups and calls that are counted; all others are counted as one."""
OTHERS = "(others)"
MOST_SLOW = 5
LEAST = -1 << 63
"""Less than any latency; a clock that was set back makes latencies negative."""
MOST_SHOWN = 12
"""Clients, topics and groups in the report for readers; the JSON has all."""
PERCENTILES = (50, 95, 99)
MOST_ORDINALS = 1 << 20
"""The maximum number of connections between the same addresses among which that of a slow call is searched."""
SIDE = 2 * ID_BYTES + 1
"""The place of the side in the id of a frame."""
ENDS = ("client_address", "client_port", "server_address", "server_port")
UNANSWERED = "unanswered"
COUNTED = ("answered", UNANSWERED, "one_way", "event")
"""Outcomes of rows that count as calls; the others are responses whose request is not known."""
UNNAMED = "(unknown)"
"""The topic of messages whose topic is not in the capture."""
EMPTY = "''"
"""A name without characters, in the report for readers."""

_Counts = TypeVar("_Counts")
Key = tuple[str, str, int | None]
"""Protocol, API ("?" if not known) and version."""


@dataclass(slots=True)
class _Client:
    connections: set[str] = field(default_factory=set)
    requests: int = 0


@dataclass(slots=True)
class _Topic:
    calls: int = 0
    produced: int = 0
    delivered: int = 0
    bytes: int = 0


@dataclass(slots=True)
class _Group:
    calls: int = 0
    clients: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Calls:
    """Calls of one API and version; latencies in microseconds."""

    number: int = 0
    unanswered: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    latencies: array[int] = field(default_factory=lambda: array("q"))

    def milliseconds(self) -> dict[str, float] | None:
        """Percentiles (the nearest response's) and the longest one; None without a response."""
        ordered = sorted(self.latencies)
        if not ordered:
            return None
        ranks = {f"p{percent}": math.ceil(percent / 100 * len(ordered)) - 1 for percent in PERCENTILES}
        return {name: ordered[rank] / 1000 for name, rank in (ranks | {"max": -1}).items()}


class Overview:
    """Counts the calls, messages and connections of one capture, as the rows of their tables state them.

    Args:
        file: the capture, as it was named; ids of connections depend on it.
        large: whether the violations of rules, which take a long time, are left out.
    """

    def __init__(self, file: str, *, large: bool = False) -> None:
        self.file, self._without_rules = file, large
        self._clients: dict[tuple[str, str], _Client] = {}
        self._software: dict[str, str] = {}
        self._topics: dict[str, _Topic] = {}
        self._groups: dict[str, _Group] = {}
        self._calls: dict[Key, _Calls] = {}
        self._slowest: list[tuple[int, int, tuple[Any, ...], dict[str, Any]]] = []
        self._violations: Counter[tuple[str, str, str]] = Counter()

    def calls(
        self, key: Key, number: int, unanswered: int, errors: Mapping[str, int], latencies: Iterable[int]
    ) -> None:
        """Adds calls of an API.

        Args:
            key: the API.
            number: how many calls.
            unanswered: how many of them expect a response that was not captured.
            errors: how many of them have each error.
            latencies: the latencies of the answered ones, in microseconds.
        """
        protocol, api, version = key
        calls = _of(self._calls, (protocol, api or "?", version), (protocol, OTHERS, None), _Calls)
        calls.number += number
        calls.unanswered += unanswered
        calls.errors.update(errors)
        calls.latencies.extend(latencies)

    def client(self, host: str, name: str, requests: int, connections: Iterable[str]) -> None:
        """Adds requests of a client, and the ids of connections that it uses."""
        client = _of(self._clients, (host, name), ("", OTHERS), _Client)
        client.requests += requests
        client.connections.update(connections)

    def group(self, group_id: str, calls: int, clients: Iterable[str]) -> None:
        """Adds calls that refer to a group, and the names of clients that make them."""
        group = _of(self._groups, group_id, OTHERS, _Group)
        group.calls += calls
        for name in clients:
            if name in group.clients or len(group.clients) < MOST_NAMES:
                group.clients.add(name)

    def topic(self, name: str, *, calls: int = 0, produced: int = 0, delivered: int = 0, size: int = 0) -> None:
        """Adds calls that refer to a topic, messages in both directions, and bytes of their keys and values."""
        counts = _of(self._topics, name, OTHERS, _Topic)
        counts.calls += calls
        counts.produced += produced
        counts.delivered += delivered
        counts.bytes += size

    def software(self, connection: str, name: str | None, version: str | None) -> None:
        """Adds the software of the client of a connection."""
        parts = [part for part in (name, version) if part]
        if parts:
            has_version = len(parts) == 2 and parts[1] in parts[0]
            self._software[connection] = intern(parts[0] if has_version else " ".join(parts))

    def slow(self, row: Mapping[str, Any], time_us: int) -> None:
        """Takes an answered call: its row of ``calls``, and the time of its request."""
        call_id = row["call_id"]
        place = (*(row[name] for name in ENDS), call_id[SIDE:], call_id)  # the whole id depends on the name of the file
        entry = (row["latency_us"], -time_us, place, dict(row) | {"frame": None})
        push = heapq.heappush if len(self._slowest) < MOST_SLOW else heapq.heappushpop
        push(self._slowest, entry)

    @property
    def least_slow(self) -> int:
        """The least latency in microseconds that a call may have to be among the slowest."""
        return self._slowest[0][0] if len(self._slowest) == MOST_SLOW else LEAST

    def number(self, call_id: str, frame: int) -> None:
        """Stores the number of the response of a call, if this is one of the slowest."""
        for *_, row in self._slowest:
            if row["call_id"] == call_id and row["frame"] is None:
                row["frame"] = frame

    def violation(self, link: Link, violation: Violation) -> None:
        """Counts a violation of a rule."""
        self._violations[link.protocol, violation.rule.name, violation.rule.severity] += 1

    def _software_of(self, client: _Client) -> list[str]:
        """The software that connections of a client report, that of most connections first."""
        counts = Counter(self._software[each] for each in client.connections if each in self._software)
        return sorted(counts, key=lambda name: (-counts[name], name))

    def latencies(self) -> Iterator[array[int]]:
        """Microseconds of each response, by API and version in the order of ``to_json``."""
        return (calls.latencies for _, calls in sorted(self._calls.items(), key=_by_number))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data: lists begin with the most frequent, or slowest, entry."""
        return {
            "clients": [
                {
                    "client": name or None,
                    "address": host or None,
                    "connections": len(client.connections),
                    "requests": client.requests,
                    "software": next(iter(software), None),
                    "other_software": software[1:],
                }
                for (host, name), client in sorted(self._clients.items(), key=lambda each: (-each[1].requests, each[0]))
                for software in [self._software_of(client)]
            ],
            "topics": [
                {
                    "topic": name,
                    "calls": topic.calls,
                    "produced": topic.produced,
                    "delivered": topic.delivered,
                    "bytes": topic.bytes,
                }
                for name, topic in sorted(self._topics.items(), key=lambda each: (-each[1].bytes, each[0]))
            ],
            "groups": [
                {"group_id": name, "calls": group.calls, "clients": sorted(group.clients)}
                for name, group in sorted(self._groups.items(), key=lambda each: (-each[1].calls, each[0]))
            ],
            "apis": [
                {
                    "protocol": protocol,
                    "api": api,
                    "version": version,
                    "calls": calls.number,
                    "answered": len(calls.latencies),
                    "unanswered": calls.unanswered,
                    "errors": dict(sorted(calls.errors.items(), key=lambda each: (-each[1], each[0]))),
                    "latency_ms": calls.milliseconds(),
                }
                for (protocol, api, version), calls in sorted(self._calls.items(), key=_by_number)
            ],
            "breaches": None
            if self._without_rules
            else [
                {"protocol": protocol, "rule": rule, "severity": severity, "count": count}
                for (protocol, rule, severity), count in sorted(
                    self._violations.items(), key=lambda each: (-each[1], each)
                )
            ],
            "slowest": [
                self._slow_json(row) for *_, row in sorted(self._slowest, key=lambda each: each[:3], reverse=True)
            ],
        }

    def _slow_json(self, row: Mapping[str, Any]) -> dict[str, Any]:
        client, server = (endpoint(row[f"{side}_address"], row[f"{side}_port"]) for side in SIDES)
        connection = row["call_id"].partition("-")[0]
        ids = ((each, connection_id(self.file, client, server, each)) for each in range(MOST_ORDINALS))
        ordinal = next((each for each, other in ids if other == connection), None)
        return {
            "latency_ms": row["latency_us"] / 1000,
            "protocol": row["protocol"],
            "api": row["api"],
            "version": row["version"],
            "frame": row["frame"],
            "connection": f"{client}>{server}" if ordinal is None else connection_name(client, server, ordinal),
            "topic": row["topic"],
            "topics": row["topics"],
            "client": row["client"],
        }

    def lines(self) -> Iterator[Fact]:
        """The overview as pairs of a title and a text, with the style of the text."""
        summary = self.to_json()
        yield from _listed("clients", summary["clients"], _client_text)
        yield from _listed("topics", summary["topics"], _topic_text)
        yield from _listed("groups", summary["groups"], _group_text)
        yield from _calls_lines(summary["apis"])
        yield from _listed("slowest", summary["slowest"], _slow_text)
        if self._without_rules:
            yield "rules broken", "not counted in large captures (--rules lists them)", "dim"
        elif self._violations:
            rules = ", ".join(f"{each['rule']} ×{each['count']:,}" for each in summary["breaches"])
            yield "rules broken", f"{rules} (see --rules)", "yellow"


def _of(counts_by_name: dict[Any, _Counts], key: Any, others: Any, make: Callable[[], _Counts]) -> _Counts:
    """The counts of a key, or of all others where there are too many keys."""
    if key not in counts_by_name and len(counts_by_name) >= MOST_NAMES:
        key = others
    if key not in counts_by_name:
        counts_by_name[key] = make()
    counts: _Counts = counts_by_name[key]
    return counts


def _by_number(each: tuple[tuple[str, str, int | None], _Calls]) -> tuple[int, str, str, int]:
    (protocol, api, version), calls = each
    return -calls.number, protocol, api, -1 if version is None else version


def _listed(title: str, entries: list[Mapping[str, Any]], text: Callable[[Mapping[str, Any]], str]) -> Iterator[Fact]:
    for number, each in enumerate(entries[:MOST_SHOWN]):
        yield "" if number else title, text(each), ""
    if len(entries) > MOST_SHOWN:
        yield "", f"and {len(entries) - MOST_SHOWN:,} more", ""


def _client_text(each: Mapping[str, Any]) -> str:
    who = f"{each['client'] or '(no name)'} at {each['address']}" if each["address"] else OTHERS
    more = f" and {len(each['other_software'])} more" if each["other_software"] else ""
    software = f" ({each['software']}{more})" if each["software"] else ""
    return f"{who}{software}: {plural(each['requests'], 'request')} on {plural(each['connections'], 'connection')}"


def _topic_text(each: Mapping[str, Any]) -> str:
    counts = [f"{each[name]:,} {name}" for name in ("produced", "delivered") if each[name]]
    messages = f"{' and '.join(counts)} ({size_text(each['bytes'])}), " if counts else ""
    return f"{each['topic'] or EMPTY}: {messages}{plural(each['calls'], 'call')}"


def _group_text(each: Mapping[str, Any]) -> str:
    clients = each["clients"]
    more = f" and {len(clients) - 3} more" if len(clients) > 3 else ""
    by = f" by {', '.join(clients[:3])}{more}" if clients else ""
    return f"{each['group_id'] or EMPTY}: {plural(each['calls'], 'call')}{by}"


def _slow_text(each: Mapping[str, Any]) -> str:
    version = "" if each["version"] is None else f" v{each['version']}"
    topic_count = f"{each['topics']} topics" if each["topics"] else ""
    topic = topic_count if each["topic"] is None else each["topic"] or EMPTY
    call = f"{each['api']}{version} {topic}".rstrip()
    client = f", client {each['client']}" if each["client"] else ""
    return f"{each['latency_ms']:,.3f} ms: frame {each['frame']}, {call}{client}"


def _calls_lines(apis: list[Mapping[str, Any]]) -> Iterator[Fact]:
    """One line per API and version, with calls and latencies in columns; errors and missing responses are below it."""
    if not apis:
        return
    columns = ("p50", "p95", "p99", "max")
    names = [f"{each['api']}{'' if each['version'] is None else ' v' + str(each['version'])}" for each in apis]
    width = max(map(len, names))
    latencies = [each["latency_ms"] or {} for each in apis]
    size = max(len(f"{latency.get(column, 0):.1f}") for latency in latencies for column in columns)
    counted = max(len("calls"), *(len(f"{each['calls']:,}") for each in apis))
    heads = " ".join(f"{name:>{size}}" for name in columns)
    yield "calls", f"{'':<{width}} {'calls':>{counted}} {heads} ms", "dim"
    for name, each, latency in zip(names, apis, latencies, strict=True):
        numbers = " ".join(f"{latency[column]:>{size}.1f}" if latency else "" for column in columns)
        yield "", f"{name:<{width}} {each['calls']:>{counted},} {numbers}".rstrip(), ""
        if each["errors"]:
            yield "", "  " + ", ".join(f"{error} ×{count:,}" for error, count in each["errors"].items()), "red"
        if each["unanswered"]:
            yield "", f"  unanswered ×{each['unanswered']:,}", "yellow"
