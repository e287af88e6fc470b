"""Selection options: they select frames of captures in several commands."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import click

from wirekit.cli.numbered import Numbered
from wirekit.conversation import Frame, Message
from wirekit.times import DAY_US, EPOCH

if TYPE_CHECKING:
    from wirekit.cli.where import WhereFrames

UNITS = {"us": 1, "µs": 1, "ms": 1_000, "s": 1_000_000}
MICROSECOND = timedelta(microseconds=1)
ADDRESS = re.compile(r"^\[(?=[\da-f.:*?]*[:*][\da-f.:*?]*\](:|$))", re.IGNORECASE)
"""The bracket before an IPv6 address, or a pattern of one."""


OF_FRAMES = {
    "apis": "--api",
    "clients": "--client",
    "groups": "--group",
    "ids": "--id",
    "links": "--connection",
    "slower_us": "--slower-than",
}
"""{attribute of ``Selection``: option} of the conditions that only frames can match."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Microseconds since the epoch, or since midnight (UTC) of any day if no date was given."""

    us: int
    dated: bool

    def before_or_at(self, time_us: Any) -> Any:
        """Whether a time, or each time of an array, is this moment or a later one."""
        return self.us <= (time_us if self.dated else time_us % DAY_US)

    def after(self, time_us: int) -> bool:
        """Whether a time is earlier than this moment."""
        return not self.before_or_at(time_us)


class _MomentType(click.ParamType):
    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Moment:
        """Parses ``09:30``, ``09:30:05.25``, ``2026-11-21`` or both; UTC, or with an offset."""
        try:
            if re.match(r"\d\d:\d\d", value):
                clock = time.fromisoformat(value)
                since_midnight = datetime.combine(EPOCH, clock.replace(tzinfo=UTC)) - EPOCH
                utc = (since_midnight - (clock.utcoffset() or timedelta())) % timedelta(days=1)
                return Moment(utc // MICROSECOND, dated=False)
            moment = datetime.fromisoformat(value)
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return Moment((moment - EPOCH) // MICROSECOND, dated=True)
        except ValueError:
            self.fail(f"{value!r} is not a time; write 09:30:05.25, 2026-11-21 or 2026-11-21T09:30 (UTC)", param, ctx)


class _DurationType(click.ParamType):
    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parses ``50ms`` to microseconds."""
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(us|µs|ms|s)", value)
        if match is None:
            self.fail(f"{value!r} is not a duration; write 50ms, 1.5s or 200us", param, ctx)
        return int(Decimal(match[1]) * UNITS[match[2]])


@dataclass(frozen=True, slots=True)
class Selection:
    """Conditions on frames: a frame must match one value of every condition given.

    Attributes:
        apis: patterns for the API of the frame or of its request; case-insensitive.
        topics, groups: patterns for their names; a response also matches by the topics of its request.
        clients: patterns for the client's name, its address, or its address with port.
        ids: correlation ids.
        links: connections, by their number in the output table, or by name.
        since, until: bounds for the capture time of the frame's last byte; ``until`` is exclusive.
        slower_us: minimal latency of responses, exclusive.
        errors: whether to select only errors in responses, failed checks, and bytes not decoded or not captured.
        where: an expression over the columns of the tables; ``wants`` ignores it.
    """

    apis: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    ids: tuple[int, ...] = ()
    links: tuple[str, ...] = ()
    since: Moment | None = None
    until: Moment | None = None
    slower_us: int | None = None
    errors: bool = False
    where: str | None = None

    @property
    def active(self) -> bool:
        """Whether there is any condition."""
        return self != Selection()

    @property
    def by_columns(self) -> bool:
        """Whether columns can select the frames, without ``where``: connections must have names, see ``with_names``."""
        return all(">" in name for name in self.links)

    @property
    def of_frames(self) -> list[str]:
        """The options given that only frames can match, no messages of stored files."""
        return [option for name, option in OF_FRAMES.items() if getattr(self, name) not in ((), None)]

    def wants_stored(self, message: Message) -> bool:
        """Whether a message of a stored file matches; its time is the one that it states."""
        time_us = None if message.timestamp is None else message.timestamp * 1000
        return (
            self.wants_topic(message.topic) and self._in_time(time_us) and (not self.errors or message.check == "bad")
        )

    def wants(self, each: Numbered) -> bool:
        """Whether a frame, or a range of bytes that is not a frame, matches."""
        link, item, facts = each.link, each.item, each.facts
        if item is None or not self._in_time(item.time_us):
            return False
        if not self.wants_connection(each):
            return False
        if not (self.wants_client(facts.client) or self.wants_address(link.client)):
            return False
        if not isinstance(item, Frame):
            return not (self.apis or self.topics or self.groups or self.ids or self.slower_us is not None)
        description, latency = item.description, item.latency_us
        return (
            self.wants_api(description.api, facts.api)
            and self.wants_topic(*facts.topics, *facts.request_topics)
            and self.wants_group(facts.group_id)
            and (not self.ids or description.correlation_id in self.ids)
            and (self.slower_us is None or (latency is not None and latency > self.slower_us))
            and (not self.errors or is_wrong(each))
        )

    def wants_connection(self, each: Numbered) -> bool:
        """Whether the connection of an item matches."""
        return not self.links or str(each.connection) in self.links or each.link.name in self.links

    def wants_api(self, *apis: str | None) -> bool:
        """Whether one of these APIs matches."""
        return not self.apis or _any_fits(map(str.lower, self.apis), (name.lower() for name in apis if name))

    def wants_group(self, group: str | None) -> bool:
        """Whether a group matches."""
        return not self.groups or _any_fits(self.groups, [group])

    def wants_client(self, *names: str | None) -> bool:
        """Whether one of these names of a client matches."""
        return not self.clients or _any_fits(map(_literal_address, self.clients), names)

    def wants_address(self, address: str) -> bool:
        """Whether a client at an address with port matches."""
        host = address.rpartition(":")[0]
        return self.wants_client(address, host, host.strip("[]"))

    def wants_topic(self, *topics: str | None) -> bool:
        """Whether one of these topics matches."""
        return not self.topics or _any_fits(self.topics, topics)

    def bounds(self, times_us: Any) -> Iterator[Any]:
        """For each bound of the time: for each time of an array, whether it is within the bound."""
        if self.since is not None:
            yield self.since.before_or_at(times_us)
        if self.until is not None:
            yield ~self.until.before_or_at(times_us)

    def _in_time(self, time_us: int | None) -> bool:
        """Whether a time is within the bounds; None is outside of any."""
        if self.since is None and self.until is None:
            return True
        if time_us is None:
            return False
        after = self.since is None or self.since.before_or_at(time_us)
        return after and (self.until is None or self.until.after(time_us))


def chosen(
    items: Iterable[Numbered], selection: Selection, where: WhereFrames | None, *, live: bool
) -> Iterator[Numbered]:
    """The items that match, and the ends of connections; the arguments are those of ``decided``."""
    return (each for each, matches in decided(items, selection, where, live=live) if matches or each.item is None)


def decided(
    items: Iterable[Numbered], selection: Selection, where: WhereFrames | None, *, live: bool
) -> Iterator[tuple[Numbered, bool]]:
    """All items, each with whether it matches; the end of a connection does not.

    Args:
        items: the items of a capture.
        selection: the conditions.
        where: its expression over frames, or None.
        live: whether items arrive while they are captured, and should be passed on one by one.
    """
    items_selected = ((each, selection.wants(each)) for each in items)
    if where is None:
        return items_selected
    from wirekit.cli.where import AT_ONCE, fitting

    return fitting(items_selected, where, at_once=1 if live else AT_ONCE)


def is_wrong(each: Numbered) -> bool:
    """Whether a response has an error, a check failed, or bytes were not decoded or not captured."""
    item = each.item
    if not isinstance(item, Frame):
        return item is not None
    decoded = item.decoded
    failed = any(check.status == "bad" for check in decoded.checks)
    return bool(each.facts.errors) or decoded.error is not None or item.wrong is not None or failed


def selection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options; the command gets them as ``selection``."""

    @functools.wraps(command)
    def selected(*arguments: Any, **options: Any) -> Any:
        selection = Selection(**{each.name: options.pop(each.name) for each in fields(Selection)})
        since, until = selection.since, selection.until
        if since and until and since.dated == until.dated and since.us >= until.us:
            raise click.UsageError("--until must be later than --since")
        for each in selection.links:
            if not re.fullmatch(r"\d+|.+>.+#\d+", each):
                raise click.UsageError(
                    f"--connection {each}: neither a number nor a name such as '10.0.0.1:5000>10.0.0.2:9092#0'; "
                    "--client selects by the client's address"
                )
        return command(*arguments, selection=selection, **options)

    for option in reversed(OPTIONS):
        selected = option(selected)
    return selected


OPTIONS = (
    click.option(
        "--api",
        "apis",
        multiple=True,
        metavar="NAME",
        help="Select requests of an API or command, and their responses.",
    ),
    click.option("--topic", "topics", multiple=True, metavar="NAME", help="Select by topic; * matches any text."),
    click.option("--client", "clients", multiple=True, metavar="NAME", help="Select by client name or address."),
    click.option("--group", "groups", multiple=True, metavar="NAME", help="Select by consumer group or subscription."),
    click.option("--id", "ids", multiple=True, type=int, metavar="N", help="Select by correlation or request id."),
    click.option("--connection", "links", multiple=True, metavar="N", help="Select by connection number or name."),
    click.option(
        "--since",
        type=_MomentType(),
        metavar="TIME",
        help="Select from this time on: 09:30 or 2026-11-21T09:30:05.25 (UTC).",
    ),
    click.option("--until", type=_MomentType(), metavar="TIME", help="Select up to this time, exclusive."),
    click.option("--slower-than", "slower_us", type=_DurationType(), metavar="50ms", help="Select slower responses."),
    click.option(
        "--errors", is_flag=True, help="Select responses with an error, failed checks, and undecoded or missing bytes."
    ),
    click.option(
        "--where",
        metavar="EXPR",
        help="Select by a DuckDB SQL expression, such as \"topic = 'orders'\". A wrong name prints all columns.",
    ),
)


def _any_fits(patterns: Iterable[str], names: Iterable[str | None]) -> bool:
    known = [name for name in names if name]
    return any(pattern == name or fnmatchcase(name, pattern) for pattern in patterns for name in known)


def _literal_address(pattern: str) -> str:
    """A pattern in which the brackets of an IPv6 address are not a character class: ``[[]::1]:*`` for ``[::1]:*``."""
    return ADDRESS.sub("[[]", pattern)
