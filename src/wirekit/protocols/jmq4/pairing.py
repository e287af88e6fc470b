"""The pairing of JMQ4 requests and responses in both dialects, as data; ``dialogue`` has the same rules."""

from __future__ import annotations

from collections.abc import Iterator

from wirekit.conversation.pairing import Heads, Kind, Pairing
from wirekit.protocols.jmq4.dialogue import ONE_WAY
from wirekit.protocols.jmq4.rules import BOOLEAN_ACK
from wirekit.schemas.jmq4.codes import COMMANDS
from wirekit.schemas.jmq4.commands import VERSIONED

NUMBER = "request_id"


def _kinds(versioned: frozenset[int]) -> Iterator[tuple[tuple[int, int], Kind]]:
    """The commands of each direction; the direction is a field of its own, besides the command."""
    commands = frozenset(int(symbol) for symbol in COMMANDS)
    for symbol in COMMANDS:
        name = symbol.symbol or str(int(symbol))
        context = "layout_version" if int(symbol) in versioned else ""
        silent = ("identity.qos_level", ONE_WAY)
        answers = tuple(COMMANDS(number).symbol or "" for number in (-int(symbol), BOOLEAN_ACK) if number in commands)
        asks = answers if int(symbol) > 0 else ()
        yield (
            (int(symbol), 0),
            Kind(name, "frame", "request", "version", NUMBER, (NUMBER,), answers=asks, silent=silent),
        )
        yield (int(symbol), 1), Kind(name, "frame", "response", "version", NUMBER, (NUMBER,), context=context)


def _pairing(versioned: frozenset[int]) -> Pairing:
    heads = Heads("header", ("type", "identity.direction"), dict(_kinds(versioned)))
    return Pairing(heads, heads)


JOYQUEUE = _pairing(VERSIONED)
JMQ4 = _pairing(frozenset())
