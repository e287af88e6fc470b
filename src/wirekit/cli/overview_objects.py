"""Computes the overview of a capture from its frames, using the rows that the tables would have for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from wirekit.capture.endpoints import address_columns
from wirekit.capture.links import Item, Link
from wirekit.cli.numbered import Numbered
from wirekit.cli.overview import COUNTED, UNANSWERED, UNNAMED, Overview
from wirekit.conversation import Frame
from wirekit.pipeline.calls import Calls, Emitted
from wirekit.tables.records import Row
from wirekit.times import in_years

INT_BITS = 31  # of a version, as the table holds it


class CallRows:
    """Evaluates all frames of a capture, and counts the calls of those that are chosen.

    A call counts if one of its frames is chosen, a message if its frame is.

    Args:
        overview: receives the counts.
    """

    def __init__(self, overview: Overview) -> None:
        self._overview = overview
        self._calls: dict[int, Calls] = {}
        self._waiting: deque[tuple[str, list[Emitted]]] = deque()
        self._chosen: set[str] = set()
        self._call = ""
        self._topics: set[str] = set()

    def counting(self, items: Iterable[Numbered]) -> Iterator[Numbered]:
        """Yields the same items, and evaluates them; each is counted when ``decide`` is called for it."""
        for each in items:
            link, item = each.link, each.item
            if isinstance(item, Frame):
                followed = self._calls.get(each.connection)
                if followed is None:
                    followed = self._calls[each.connection] = Calls(self._overview.file, link)
                self._waiting.append(followed.frame(item))
            else:
                ended = self._calls.pop(each.connection, None) if item is None else None
                self._waiting.append(("", [] if ended is None else list(ended.end())))
            yield each

    def decide(self, each: Numbered, *, chosen: bool) -> None:
        """Counts the next item that ``counting`` has given, if it is chosen, and the calls that it completes."""
        call_id, emitted = self._waiting.popleft()
        self.take(each.link, call_id, emitted, chosen=chosen)
        if answers_slowly(each.item, self._overview.least_slow):
            self._overview.number(call_id, each.frame)

    def take(self, link: Link, call_id: str, emitted: Iterable[Emitted], *, chosen: bool) -> None:
        """Counts the rows that an item completes.

        Args:
            link: the connection of the item.
            call_id, emitted: as ``Writer.completed`` returns them.
            chosen: whether the item is chosen.
        """
        if chosen and call_id:
            self._chosen.add(call_id)
        for table, row, _ in emitted:
            if table == "messages":
                self._message(row) if chosen else None
            elif table == "connections":
                names = (row.get("client_software"), row.get("client_version"))
                self._overview.software(row["connection_id"], *map(_text, names)) if names[0] else None
            elif row.get("call_id") in self._chosen:
                self._row(table, row, link)

    def _row(self, table: str, row: Row, link: Link) -> None:
        if table == "calls":
            self._chosen.discard(row["call_id"])
            self._counted(row, link)
        elif table == "call_topics" and row.get("topic") is not None:
            if row["call_id"] != self._call:
                self._call, self._topics = row["call_id"], set()
            if row["topic"] not in self._topics:
                self._topics.add(row["topic"])
                self._overview.topic(_text(row["topic"]) or "", calls=1)

    def _counted(self, row: Row, link: Link) -> None:
        if row["outcome"] not in COUNTED:
            return
        overview, client = self._overview, _text(row.get("client"))
        version = row["version"]
        row["version"] = None if version is None or version >> INT_BITS not in (0, -1) else version
        latency, error = row.get("latency_us"), _text(row.get("error"))
        key = row["protocol"], _text(row["api"]) or "", row["version"]
        errors = {} if error is None else {error: 1}
        overview.calls(key, 1, row["outcome"] == UNANSWERED, errors, () if latency is None else (latency,))
        ends = address_columns(link.client, link.server)
        asks = row["outcome"] != "event" and row["call_id"].split("-")[1] == "c"
        overview.client(ends["client_address"], client or "", asks, (row["connection_id"],))
        if (group_id := _text(row.get("group_id"))) is not None:
            overview.group(group_id, 1, [client] if client else [])
        if latency is not None and latency >= overview.least_slow:
            shown = {name: _text(row.get(name)) for name in ("api", "topic", "client")}
            overview.slow(row | ends | shown, in_years(row["request_time"]) or 0)

    def _message(self, row: Row) -> None:
        produced = row["direction"] == "produced"
        topic = _text(row["topic"])
        self._overview.topic(
            UNNAMED if topic is None else topic,
            produced=produced,
            delivered=not produced,
            size=len(row["key"] or b"") + len(row["value"] or b""),
        )


def answers_slowly(item: Item | None, least_us: int) -> bool:
    """Whether an item is the response of a call with at least a latency."""
    if not isinstance(item, Frame) or item.request is None or item.latency_us is None:
        return False
    return item.latency_us >= least_us


def _text(value: str | None) -> str | None:
    """Text as a column holds it."""
    return None if value is None else value.encode("utf-8", "backslashreplace").decode()
