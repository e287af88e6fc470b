"""Generates conversations of a protocol: valid conversations, and conversations with one named defect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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

_DAMAGE = (
    *("answer twice", "answer to nobody", "answer of another kind", "answers out of order", "answer left out"),
    *("ends inside a frame", "damaged frame", "opening left out"),
)
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
            change = _damaged(kind, exchange, at, random)
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
    """(side, bytes) of a script, cut and joined as a network may: at any byte, and across turns of one side."""
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
        if length <= 0 or (turn is not None and turn.api not in {earlier.api for earlier in exchange.turns[:before]}):
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


def _is_answer(exchange: Exchange, turn: Turn) -> bool:
    """Whether a turn responds to a request by a number."""
    kind = None if turn.request is None else exchange.kind_of(exchange.frames[turn.request])
    return kind is not None and bool(kind.pair)


def _damaged(kind: str, exchange: Exchange, at: int, random: Random) -> _Change | None:
    """The turns with a kind of damage at one of them; None if it cannot have this kind, or no turns remain."""
    turn, change = exchange.turns[at], list[tuple[int | None, Turn]](enumerate(exchange.turns))
    data: bytes | None = None
    match kind:
        case "opening left out":  # the first request of the client, and its response
            return change[2 * len(exchange.conversation.dialogue.opening) :] or None
        case "damaged frame":
            data = edited(turn.data, random, [each.data for each in exchange.turns])
        case "ends inside a frame":
            del change[at + 1 :]
            data = turn.data[: random.randrange(1, len(turn.data))]
        case _ if turn.request is None or not _is_answer(exchange, turn):
            return None
        case "answer twice":
            return [*change[: at + 1], (None, turn), *change[at + 1 :]]
        case "answer left out":
            return [*change[:at], *change[at + 1 :]]
        case "answers out of order":  # another request is answered before the one that was asked first
            later = [place for place in range(at + 1, len(change)) if _is_answer(exchange, change[place][1])]
            if not later:
                return None
            change.insert(random.choice(later), change.pop(at))
            return change
        case "answer to nobody":
            data = exchange.draft(exchange.frames[turn.request], number=NOBODY)
        case "answer of another kind":
            data = exchange.draft(exchange.frames[turn.request], other=True)
    if data is None:
        return None
    change[at] = (at, replace(turn, data=data))
    return change
