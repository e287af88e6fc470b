"""Generates conversations of a protocol: valid conversations, and conversations with one named defect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random
from typing import Any

from hypothesis import strategies as st

from wirekit.compiler.generated import by_key
from wirekit.conversation import NEED_DATA, Conversation, Frame
from wirekit.errors import Misuse
from wirekit.rules import check
from wirekit.strategies.bulk import edited
from wirekit.strategies.exchange import ATTEMPTS, Exchange, Turn

LENGTH = 20
NOBODY = 1_000_000
"""Added to the number of a request to get a number that no request has."""


@dataclass(frozen=True, slots=True)
class Script:
    """A script: the turns of both sides of a connection, in order.

    Attributes:
        turns: the frames; if the connection ends inside a frame, its first bytes.
        damage: the defect, one of ``conversation_kinds``; "" without one.
        at: the index of the turn that shows it, or None.
    """

    protocol: str
    turns: tuple[Turn, ...]
    damage: str = ""
    at: int | None = None

    def faults(self) -> list[str]:
        """The faults that wirekit finds: names of rules, and reasons for bytes that do not decode."""
        conversation = Conversation(self.protocol)
        events = [event for turn in self.turns for event in conversation.receive(turn.side, turn.data)]
        items = [each for each in (*events, *conversation.close()) if each is not NEED_DATA]
        faults = []
        for item in items:
            if not isinstance(item, Frame):
                faults.append(getattr(item, "reason", ""))
            elif item.reason is not None:
                faults.append(item.reason)
            elif not item.decoded.clean:
                faults.append(str(item.decoded.error or "unexplained bytes, or a failed check"))
        return faults + [violation.rule.name for violation in check(self.protocol, items)]


def conversation(
    protocol: str, *, seed: int | str = 0, length: int = LENGTH, fields: Mapping[str, Any] | None = None
) -> Script:
    """A valid conversation: the same for the same seed; a shorter one is the beginning of a longer one.

    It begins with the opening frames of the protocol's dialogue. Then requests, responses and pushed frames follow as
    the protocol's ``Pairing`` declares them. Every frame decodes cleanly and breaks no rule.

    Args:
        protocol: its name; it must declare a pairing.
        seed: any number or text.
        length: the maximal number of frames after the opening.
        fields: {name: value, or function of a ``random.Random``} of fields that get this value wherever they are.

    Raises:
        Misuse: for a protocol that does not exist or declares no pairing.

    >>> script = conversation("joyqueue", seed=1, length=4)
    >>> [turn.api for turn in script.turns][:2]
    ['ADD_CONNECTION', 'ADD_CONNECTION_ACK']
    >>> script.faults()
    []
    """
    return Script(protocol, tuple(_exchange(protocol, Random(f"{protocol} {seed}"), length, fields).turns))


def conversations(
    protocol: str, *, length: int = LENGTH, fields: Mapping[str, Any] | None = None
) -> st.SearchStrategy[Script]:
    """Valid conversations; they shrink to the shortest beginning.

    The arguments and errors are those of ``conversation``; ``length`` is the maximum.
    """
    conversation(protocol, length=0)  # refuses unknown names at once
    numbers, lengths = st.integers(0, 2**32), st.integers(0, length)
    return st.builds(
        lambda seed, steps: conversation(protocol, seed=seed, length=steps, fields=fields), numbers, lengths
    )


def conversation_kinds(protocol: str) -> list[str]:
    """The kinds of damage that a conversation of a protocol can have, by name.

    >>> [kind for kind in conversation_kinds("kafka") if kind not in conversation_kinds("pulsar")]
    ['answers out of order', 'answer left out']
    """
    exchange = Exchange(protocol, Random(0))
    missing = set() if exchange.pairing.in_order else {"answers out of order", "answer left out"}
    if not exchange.conversation.dialogue.opening:
        missing.add("opening left out")
    offered = [kind for kind in _DAMAGE if kind not in missing]
    if exchange.protocol.rules:
        return offered
    shown = _shown(exchange.protocol.stream("client"))
    return [kind for kind in offered if kind in shown]


@by_key
def _shown(key: str) -> frozenset[str]:
    """The kinds of damage that show in a protocol without rules, by the key of its client's frames."""
    protocol = key.partition(".")[0]
    return frozenset(kind for kind in _DAMAGE if _with_damage(protocol, Random(kind), LENGTH, [kind], None) is not None)


def damaged_conversation(
    protocol: str,
    *,
    seed: int | str = 0,
    length: int = LENGTH,
    kinds: Iterable[str] | None = None,
    fields: Mapping[str, Any] | None = None,
) -> Script:
    """A conversation with one defect; ``Script.faults`` is not empty.

    Args:
        protocol, seed, length, fields: as for ``conversation``.
        kinds: names of damage (``conversation_kinds``); by default all.

    Raises:
        Misuse: for a kind that does not exist, or that the protocol does not have.

    >>> "response_without_request" in damaged_conversation("kafka", seed=1, kinds=["answer twice"]).faults()
    True
    """
    offered = conversation_kinds(protocol)
    requested = offered if kinds is None else list(kinds)
    unknown = [kind for kind in requested if kind not in offered]
    if unknown:
        raise Misuse(f"{protocol} has no kind {unknown[0]!r}; choose from {', '.join(offered)}")
    script = _with_damage(protocol, Random(f"damage {protocol} {seed}"), length, requested, fields)
    if script is None:
        names = " or ".join(map(repr, requested))
        raise Misuse(f"{protocol} gave no conversation with {names}; try another seed or length")
    return script


def _with_damage(
    protocol: str, random: Random, length: int, kinds: list[str], fields: Mapping[str, Any] | None
) -> Script | None:
    """A conversation with one of the kinds of damage that shows; None if none was found."""
    for _ in range(ATTEMPTS):
        exchange = _exchange(protocol, random, length, fields)
        turns = range(len(exchange.turns))
        places = [(kind, at) for kind in random.sample(kinds, len(kinds)) for at in random.sample(turns, len(turns))]
        for kind, at in places:
            change = _DAMAGE[kind](exchange, at, random)
            script = None if change is None else _script(exchange, change, kind)
            if script is not None and script.faults():
                return script
    return None


def damaged_conversations(
    protocol: str, *, length: int = LENGTH, kinds: Iterable[str] | None = None, fields: Mapping[str, Any] | None = None
) -> st.SearchStrategy[Script]:
    """Conversations with one defect; the arguments and errors are those of ``damaged_conversation``."""
    requested = None if kinds is None else list(kinds)
    damaged_conversation(protocol, kinds=requested)  # refuses unknown names at once
    return st.integers(0, 2**32).map(
        lambda seed: damaged_conversation(protocol, seed=seed, length=length, kinds=requested, fields=fields)
    )


def in_pieces(script: Script, seed: int | str = 0) -> list[tuple[str, bytes]]:
    """(side, bytes) of a script, cut and joined as a network may do it: at any byte, and across turns of one side."""
    random = Random(f"pieces {seed}")
    joined: list[tuple[str, bytes]] = []
    for turn in script.turns:
        if joined and joined[-1][0] == turn.side and random.random() < 0.5:
            joined[-1] = (turn.side, joined[-1][1] + turn.data)
        else:
            joined.append((turn.side, turn.data))
    pieces = []
    for side, data in joined:
        cuts = sorted({0, len(data), *(random.randrange(len(data) + 1) for _ in range(random.randrange(4)))})
        pieces += [(side, data[start:end]) for start, end in pairwise(cuts)]
    return pieces


def _exchange(protocol: str, random: Random, length: int, fields: Mapping[str, Any] | None) -> Exchange:
    exchange = Exchange(protocol, random, fields=fields)
    for _ in range(ATTEMPTS):
        exchange = Exchange(protocol, random, fields=fields)
        exchange.open()
        before = len(exchange.turns)
        turn = exchange.ask("client") if length > 0 else None
        if length <= 0 or (turn is not None and turn.api not in {said.api for said in exchange.turns[:before]}):
            break  # else the response to the opening forbids all others
    for _ in range(length - 1):
        if exchange.step() is None:
            break
    del exchange.turns[before + max(length, 0) :]
    return exchange


_Change = list[tuple[int | None, Turn]]
"""Turns, each with its index in the sound conversation; None for one that is not there."""


def _script(exchange: Exchange, change: _Change, kind: str) -> Script:
    """The script of a damaged conversation, with the numbers that its turns have in it."""
    places = {before: now for now, (before, _) in reversed(list(enumerate(change)))}
    turns = [
        replace(turn, request=places.get(turn.request) if turn.request is not None else None) for _, turn in change
    ]
    sound = exchange.turns
    at = next((now for now, (_, turn) in enumerate(change) if now >= len(sound) or turn != sound[now]), len(turns) - 1)
    return Script(exchange.protocol.name, tuple(turns), kind, at)


def _answered(exchange: Exchange, at: int) -> Turn | None:
    """The turn, if it responds to a request by a number."""
    turn = exchange.turns[at]
    if turn.request is None:
        return None
    kind = exchange.kind_of(exchange.frames[turn.request])
    return turn if kind is not None and kind.pair else None


def _replaced(exchange: Exchange, at: int, data: bytes | None) -> _Change | None:
    if data is None:
        return None
    change: _Change = list(enumerate(exchange.turns))
    change[at] = (at, replace(exchange.turns[at], data=data))
    return change


def _twice(exchange: Exchange, at: int, random: Random) -> _Change | None:
    turn = _answered(exchange, at)
    change: _Change = list(enumerate(exchange.turns))
    return None if turn is None else [*change[: at + 1], (None, turn), *change[at + 1 :]]


def _to_nobody(exchange: Exchange, at: int, random: Random) -> _Change | None:
    turn = _answered(exchange, at)
    if turn is None or turn.request is None:
        return None
    return _replaced(exchange, at, exchange.draft(exchange.frames[turn.request], number=NOBODY))


def _of_another_kind(exchange: Exchange, at: int, random: Random) -> _Change | None:
    turn = _answered(exchange, at)
    if turn is None or turn.request is None:
        return None
    return _replaced(exchange, at, exchange.draft(exchange.frames[turn.request], other=True))


def _out_of_order(exchange: Exchange, at: int, random: Random) -> _Change | None:
    """Another request is answered before the one that was asked first."""
    later = [place for place in range(at + 1, len(exchange.turns)) if _answered(exchange, place) is not None]
    if _answered(exchange, at) is None or not later:
        return None
    change: _Change = list(enumerate(exchange.turns))
    change.insert(random.choice(later), change.pop(at))
    return change


def _left_out(exchange: Exchange, at: int, random: Random) -> _Change | None:
    change: _Change = list(enumerate(exchange.turns))
    return None if _answered(exchange, at) is None else [*change[:at], *change[at + 1 :]]


def _ends_inside(exchange: Exchange, at: int, random: Random) -> _Change | None:
    data = exchange.turns[at].data
    change = _replaced(exchange, at, data[: random.randrange(1, len(data))])
    return change[: at + 1] if change is not None else None


def _damaged(exchange: Exchange, at: int, random: Random) -> _Change | None:
    others = [turn.data for turn in exchange.turns]
    return _replaced(exchange, at, edited(exchange.turns[at].data, random, others))


def _without_opening(exchange: Exchange, at: int, random: Random) -> _Change | None:
    """Leaves out the first request of the client, and its response; None if no turns remain."""
    change: _Change = list(enumerate(exchange.turns))
    return change[2 * len(exchange.conversation.dialogue.opening) :] or None


_DAMAGE: dict[str, Callable[[Exchange, int, Random], _Change | None]] = {
    "answer twice": _twice,
    "answer to nobody": _to_nobody,
    "answer of another kind": _of_another_kind,
    "answers out of order": _out_of_order,
    "answer left out": _left_out,
    "ends inside a frame": _ends_inside,
    "damaged frame": _damaged,
    "opening left out": _without_opening,
}
