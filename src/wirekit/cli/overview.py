"""Sums up a capture: clients, topics, groups, calls with errors and latencies, the slowest calls."""

from __future__ import annotations

import heapq
import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from wirekit.cli.captures import is_cut
from wirekit.cli.common import plural
from wirekit.cli.numbered import Numbered
from wirekit.conversation import Frame, Quarantined
from wirekit.pipeline.summary import Fact, failure, size_text
from wirekit.rules import Rule

MOST_NAMES = 10_000
"""Different clients, topics, groups and calls that are counted; all others are counted as one."""
OTHERS = "(others)"
MOST_SLOW = 5
MOST_SHOWN = 12
"""Clients, topics and groups in the report for readers; the JSON has all."""
PERCENTILES = (50, 95, 99)

_Counts = TypeVar("_Counts")


@dataclass(slots=True)
class _Client:
    connections: set[int] = field(default_factory=set)
    requests: int = 0
    software: str | None = None


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
    answered: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    latencies: array[int] = field(default_factory=lambda: array("q"))

    def milliseconds(self) -> dict[str, float] | None:
        """Percentiles (the nearest answer's) and the longest one; None without an answer."""
        ordered = sorted(self.latencies)
        if not ordered:
            return None
        ranks = {f"p{percent}": math.ceil(percent / 100 * len(ordered)) - 1 for percent in PERCENTILES}
        return {name: ordered[rank] / 1000 for name, rank in (ranks | {"max": -1}).items()}


class Overview:
    """Counts the frames of one capture.

    Attributes:
        undecoded: frames and pieces that were not decoded.
        cut: those at the begin or end of a connection in the capture, see ``is_cut``; not counted in ``undecoded``.
    """

    def __init__(self) -> None:
        self.undecoded = self.cut = 0
        self._clients: dict[tuple[str, str], _Client] = {}
        self._topics: dict[str, _Topic] = {}
        self._groups: dict[str, _Group] = {}
        self._calls: dict[tuple[str, str, int | None], _Calls] = {}
        self._slowest: list[tuple[int, int, dict[str, Any]]] = []
        self._breaches: Counter[tuple[str, str, str]] = Counter()

    def take(self, each: Numbered) -> None:
        """Counts a frame, or what was not decoded."""
        frame, facts = each.item, each.facts
        if isinstance(frame, Quarantined) or (isinstance(frame, Frame) and failure(frame) is not None):
            cut = is_cut(each.link, frame)
            self.cut += cut
            self.undecoded += not cut
        if not isinstance(frame, Frame):
            return
        if frame.decoded.error is not None or frame.wrong is not None:
            if frame.description.role == "request" and frame.description.api:
                self._client(each, asks=True)
                self._calls_of(frame).number += 1
            return
        asks = frame.request is None
        self._client(each, asks=asks)
        self._call(each, frame)
        for topic in facts.topics if asks else ():
            _of(self._topics, topic, OTHERS, _Topic).calls += 1
        for message in frame.messages:
            counts = _of(self._topics, message.topic or "(unknown)", OTHERS, _Topic)
            counts.produced += frame.side == "client"
            counts.delivered += frame.side != "client"
            counts.bytes += len(message.key or b"") + len(message.value or b"")
        if facts.group_id:
            group = _of(self._groups, facts.group_id, OTHERS, _Group)
            group.calls += asks
            if facts.client and len(group.clients) < MOST_NAMES:
                group.clients.add(facts.client)

    def breach(self, protocol: str, rule: Rule) -> None:
        """Counts where a conversation breaks a rule."""
        self._breaches[protocol, rule.name, rule.severity] += 1

    def _client(self, each: Numbered, *, asks: bool) -> None:
        facts = each.facts
        host = each.link.client.rpartition(":")[0].strip("[]")
        requests = asks and each.item is not None and each.item.side == "client"
        if not (requests or facts.client or facts.connection):
            return
        client = _of(self._clients, (host, facts.client or ""), ("", OTHERS), _Client)
        client.connections.add(each.connection)
        client.requests += requests
        parts = [facts.connection.get(column) for column in ("client_software", "client_version")]
        named = [part for part in parts if part]
        client.software = (named[0] if len(named) == 2 and named[1] in named[0] else " ".join(named)) or None

    def _call(self, each: Numbered, frame: Frame) -> None:
        request = frame.request
        about = (request or frame).description
        call = self._calls_of(frame)
        call.number += request is None
        call.errors.update(dict.fromkeys((error.error for error in each.facts.errors), 1))
        latency = frame.latency_us
        if request is None or latency is None:
            return
        call.answered += 1
        call.latencies.append(latency)
        slow = {
            "latency_ms": latency / 1000,
            "protocol": frame.protocol,
            "api": about.api,
            "version": about.version,
            "frame": each.frame,
            "connection": each.link.name,
            "topics": list(each.facts.topics),
            "client": each.facts.client,
        }
        push = heapq.heappush if len(self._slowest) < MOST_SLOW else heapq.heappushpop
        push(self._slowest, (latency, -each.frame, slow))

    def _calls_of(self, frame: Frame) -> _Calls:
        about = (frame.request or frame).description
        key = (frame.protocol, about.api or "?", about.version)
        calls: _Calls = _of(self._calls, key, (frame.protocol, OTHERS, None), _Calls)
        return calls

    def latencies(self) -> Iterator[array[int]]:
        """Microseconds of each answer, by API and version in the order of ``to_json``."""
        return (calls.latencies for _, calls in sorted(self._calls.items(), key=_by_number))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data: each list with what is most frequent, or slowest, first."""
        return {
            "clients": [
                {
                    "client": name or None,
                    "address": host or None,
                    "connections": len(client.connections),
                    "requests": client.requests,
                    "software": client.software,
                }
                for (host, name), client in sorted(self._clients.items(), key=lambda each: (-each[1].requests, each[0]))
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
                    "answered": calls.answered,
                    "errors": dict(calls.errors.most_common()),
                    "latency_ms": calls.milliseconds(),
                }
                for (protocol, api, version), calls in sorted(self._calls.items(), key=_by_number)
            ],
            "breaches": [
                {"protocol": protocol, "rule": rule, "severity": severity, "count": count}
                for (protocol, rule, severity), count in sorted(
                    self._breaches.items(), key=lambda each: (-each[1], each)
                )
            ],
            "slowest": [slow for *_, slow in sorted(self._slowest, reverse=True)],
        }

    def lines(self) -> Iterator[Fact]:
        """The same for readers."""
        found = self.to_json()
        yield from _listed("clients", found["clients"], _client_text)
        yield from _listed("topics", found["topics"], _topic_text)
        yield from _listed("groups", found["groups"], _group_text)
        yield from _calls_lines(found["apis"])
        yield from _listed("slowest", found["slowest"], _slow_text)
        if self._breaches:
            rules = ", ".join(f"{each['rule']} ×{each['count']:,}" for each in found["breaches"])
            yield "rules broken", f"{rules} (see --rules)", "yellow"


def _of(known: dict[Any, _Counts], key: Any, others: Any, make: Callable[[], _Counts]) -> _Counts:
    """The counts of a key, or of all others where there are too many keys."""
    if key not in known and len(known) >= MOST_NAMES:
        key = others
    if key not in known:
        known[key] = make()
    counts: _Counts = known[key]
    return counts


def _by_number(each: tuple[tuple[str, str, int | None], _Calls]) -> tuple[int, str, str, int]:
    (protocol, api, version), calls = each
    return -calls.number, protocol, api, -1 if version is None else version


def _listed(title: str, found: list[Mapping[str, Any]], text: Callable[[Mapping[str, Any]], str]) -> Iterator[Fact]:
    for number, each in enumerate(found[:MOST_SHOWN]):
        yield "" if number else title, text(each), ""
    if len(found) > MOST_SHOWN:
        yield "", f"and {len(found) - MOST_SHOWN:,} more", ""


def _client_text(each: Mapping[str, Any]) -> str:
    who = f"{each['client'] or '(no name)'} at {each['address']}" if each["address"] else OTHERS
    software = f" ({each['software']})" if each["software"] else ""
    return f"{who}{software}: {plural(each['requests'], 'request')} on {plural(each['connections'], 'connection')}"


def _topic_text(each: Mapping[str, Any]) -> str:
    counts = [f"{each[name]:,} {name}" for name in ("produced", "delivered") if each[name]]
    messages = f"{' and '.join(counts)} ({size_text(each['bytes'])}), " if counts else ""
    return f"{each['topic']}: {messages}{plural(each['calls'], 'call')}"


def _group_text(each: Mapping[str, Any]) -> str:
    clients = each["clients"]
    more = f" and {len(clients) - 3} more" if len(clients) > 3 else ""
    by = f" by {', '.join(clients[:3])}{more}" if clients else ""
    return f"{each['group_id']}: {plural(each['calls'], 'call')}{by}"


def _slow_text(each: Mapping[str, Any]) -> str:
    version = "" if each["version"] is None else f" v{each['version']}"
    topics = ", ".join(each["topics"][:2]) + (" …" if len(each["topics"]) > 2 else "")
    return f"{each['latency_ms']:,.3f} ms: frame {each['frame']}, {each['api']}{version} {topics}".rstrip()


def _calls_lines(apis: list[Mapping[str, Any]]) -> Iterator[Fact]:
    """A line an API and version: calls and latencies in columns; below it its errors."""
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
