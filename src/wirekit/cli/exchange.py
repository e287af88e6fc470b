"""``wirekit frames --frame``: one frame of a capture, with its request or its response."""

from __future__ import annotations

import sys
from functools import partial
from typing import NamedTuple

from wirekit.capture.links import Link
from wirekit.cli.captures import FollowedCapture
from wirekit.cli.common import console, print_line, say, time_of_day
from wirekit.cli.frame_lines import frame_line
from wirekit.cli.numbered import numbered
from wirekit.cli.verdicts import WithBytes
from wirekit.conversation import Frame
from wirekit.errors import Misuse, plural


class Exchange(NamedTuple):
    """A frame, with its request or its response.

    Attributes:
        link: the connection.
        frame: the requested frame.
        request: the request that it answers, or None.
        response: the response to it, or None.
    """

    link: Link
    frame: Frame
    request: Frame | None = None
    response: Frame | None = None

    @property
    def awaits(self) -> bool:
        """Whether a response may follow."""
        return self.frame.description.role == "request" and self.frame.description.answered


def show_exchange(exchange: Exchange, number: int, form: str, path: str) -> None:
    """Prints a frame of a capture after its request, or before its response; as ``raw`` its own bytes alone."""
    link, frame, request, response = exchange
    if form == "raw":
        sys.stdout.buffer.write(frame.data)
        return
    for title, each in (("its request", request), (f"frame {number}", frame), ("its response", response)):
        if each is not None and form == "json":
            print_line(frame_line(link, each, path))
        elif each is not None:
            _show(link, each, title, form)
    if form != "json" and exchange.awaits and response is None:
        say(f"{path}: no response to frame {number} was captured")


def exchange_of(followed: FollowedCapture, number: int) -> Exchange:
    """Reads as far as the frame of a number, or as its response if it is a request.

    Raises:
        Misuse: no frame has this number.
    """
    asking: Exchange | None = None
    count = 0
    for link, item, _, count, _ in numbered(followed, describe=False):
        if not isinstance(item, Frame):
            continue
        if asking is None and count == number:
            asking = Exchange(link, item, request=item.request)
            if not asking.awaits:
                return asking
        elif asking is not None and link is asking.link and item.request is asking.frame:
            return asking._replace(response=item)
    if asking is None:
        raise no_frame(followed.path, number, count)
    return asking


def no_frame(path: str, number: int, count: int) -> Misuse:
    """The error for a number that none of the frames of a capture has."""
    return Misuse(f"{path} has no frame {number}; it has {plural(count, 'frame')}")


def _show(link: Link, frame: Frame, title: str, form: str) -> None:
    from wirekit.display.render import show

    sender, receiver = link.addresses(frame.side)
    latency = "" if frame.latency_us is None else f", {frame.latency_us / 1000:.3f} ms after its request"
    screen = console()
    moment = "" if frame.time_us is None else f" at {time_of_day(frame.time_us)}"
    text = f"{title}: {sender} > {receiver}{moment}{latency}"
    screen.print(text, style="bold", markup=False, soft_wrap=True)
    WithBytes(partial(show, console=screen, form=form))(frame.decoded)
