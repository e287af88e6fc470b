"""Dumps of both sides of a connection that alternate."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from wirekit.cli.common import say
from wirekit.cli.verdicts import Show, complain
from wirekit.errors import plural
from wirekit.registry import registry

if TYPE_CHECKING:
    from wirekit.conversation import Event, Recognised

Alone = Callable[[bytes], int]
"""Decodes the bytes of one side alone; returns the status."""


def decode_turns(
    turns: tuple[bytes, ...],
    sides: tuple[int, ...],
    protocol: str,
    show: Show,
    strict: bool,
    alone: Alone,
) -> int:
    """Shows the frames of a conversation, each after the turn with its last byte.

    Args:
        sides: for each turn 0 or 1, its sender.
        protocol: empty to recognise it.
        alone: for each side, if the two are not a conversation.
    """
    from wirekit.conversation import SIDES, Conversation

    recognised = _recognised(turns, sides, protocol)
    if not recognised.protocol:
        say(f"{recognised.reason}; each side is decoded separately")
        status = 0
        for side in sorted(set(sides)):
            say(f"side {side + 1}:")
            status |= alone(_of_side(turns, sides, side))
        return status
    say(f"decoded as {recognised.protocol}: {recognised.reason}")
    conversation, status = Conversation(recognised.protocol), 0
    for number, (side, data) in enumerate(zip(sides, turns, strict=True), 1):
        sender = SIDES[side ^ recognised.swapped]
        say(f"dump {number} of {len(turns)}: {plural(len(data), 'byte')} from the {sender}")
        status |= _show_events(conversation.receive(sender, data), show, strict)
    return status | _show_events(conversation.close(), show, strict)


def _of_side(turns: tuple[bytes, ...], sides: tuple[int, ...], side: int) -> bytes:
    return b"".join(data for data, each in zip(turns, sides, strict=True) if each == side)


def _recognised(turns: tuple[bytes, ...], sides: tuple[int, ...], protocol: str) -> Recognised:
    from wirekit.conversation import recognise

    names = (protocol,) if protocol else ()
    return recognise(_of_side(turns, sides, 0), _of_side(turns, sides, 1), names=names)


def _show_events(events: list[Event], show: Show, strict: bool) -> int:
    from wirekit.conversation import Frame, Quarantined

    status = 0
    for event in events:
        if isinstance(event, Frame):
            if event.wrong and not (event.announced and event.decoded.error):  # the error has the reason
                say(event.wrong)
            show(event.decoded)
            status |= complain(event.decoded, strict) | bool(event.wrong)
        elif isinstance(event, Quarantined):
            say(f"{plural(len(event.data), 'byte')} from the {event.side} not decoded: {event.reason}")
            status = 1
    return status


def alternate(dumps: tuple[bytes, ...], protocol: str) -> bool:
    """Whether dumps are requests and responses in turns: all of them decode cleanly so, and a response has its request.

    If both sides send frames of one layout, each dump is decoded by itself.
    """
    from wirekit.conversation import SIDES, Conversation, Frame

    sides = tuple(number % 2 for number in range(len(dumps)))
    recognised = _recognised(dumps, sides, protocol)
    if (
        not recognised.protocol
        or registry.protocol(recognised.protocol).client == registry.protocol(recognised.protocol).server
    ):
        return False
    conversation = Conversation(recognised.protocol)
    events: list[Event] = []
    for side, data in zip(sides, dumps, strict=True):
        events += conversation.receive(SIDES[side ^ recognised.swapped], data)
    events += conversation.close()
    sound = all(isinstance(each, Frame) and each.decoded.clean and not each.wrong for each in events)
    return sound and any(isinstance(each, Frame) and each.request is not None for each in events)
