"""Reading captures for the commands: options that choose the protocol, and what could not be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import click

from wirekit.capture.files import Capture, Damaged, open_capture, segments
from wirekit.capture.follow import Choice, Item, Link, follow
from wirekit.capture.tcp import Segment
from wirekit.cli.common import reopenable, say
from wirekit.errors import WireError
from wirekit.pipeline.inputs import CAPTURE, stored_kind
from wirekit.registry import registry

LARGEST_PORT = 1 << 16
PROTOCOL_HELP = "The protocol of every connection. Real JMQ4 is joyqueue; jmq4 is its document read literally."


def choice_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --protocol and --port."""
    port = click.option("--port", "ports", multiple=True, metavar="PORT=P", help="The protocol on a server port.")
    protocol = click.option("--protocol", default="", metavar="P", help=PROTOCOL_HELP)
    return protocol(port(command))


def parse_choice(protocol: str, ports: tuple[str, ...]) -> Choice:
    """The choice that the options make."""
    chosen: dict[int, str] = {}
    for pair in ports:
        port, equals, name = pair.partition("=")
        if not equals or not port.isdecimal() or not 0 < int(port) < LARGEST_PORT:
            raise click.BadParameter(f"{pair!r} is not PORT=PROTOCOL, as in --port 9092=kafka")
        chosen[int(port)] = registry.protocol(name).name
    for name in filter(None, [protocol, *chosen.values()]):
        registry.protocol(name).stream("client")
    return Choice(protocol, chosen)


def no_capture(path: str, error: WireError) -> str:
    """Why a file cannot be read as a capture, and what can be done with it if a broker stored it."""
    if stored_kind(path) == CAPTURE:
        return str(error)
    return f"{error}; `wirekit messages` shows the messages of a log segment, `wirekit inspect` checks its directory"


class FollowedFile:
    """The items of one capture file, connection by connection.

    A file that cannot be read, or not to its end, or whose damage was passed over, is said on standard error, with
    the byte.

    Args:
        path: what the file is called; ``-`` is standard input.
        choice: how protocols are chosen.
        copy: where it can be read, if not there.

    Attributes:
        status: 1 when that happened; known once all items are taken.
        skipped: packets that hold no TCP segment, by reason; known once all items are taken.
    """

    def __init__(self, path: str, choice: Choice, copy: str = "") -> None:
        self.path = path
        self.choice = choice
        self.copy = copy
        self.status = 0
        self.skipped: dict[str, int] = {}

    def __iter__(self) -> Iterator[tuple[Link, Item | None]]:
        with reopenable(self.copy or self.path) as path:
            yield from self._items(path)

    def _items(self, path: str) -> Iterator[tuple[Link, Item | None]]:
        try:
            capture = open_capture(path, name=self.path)
        except WireError as error:
            say(f"{self.path}: {no_capture(self.path, error)}")
            self.status = 1
            return
        with capture:
            yield from follow(self._segments(capture), self.choice)
            self.skipped = dict(capture.skipped)
            if capture.damage is not None:
                say(f"{self.path}: {capture.damage}")
                self.status = 1

    def _segments(self, capture: Capture) -> Iterator[Segment]:
        for each in segments(capture):
            if isinstance(each, Segment):
                yield each
            elif isinstance(each, Damaged):
                say(f"{self.path}: {each}")
                self.status = 1
