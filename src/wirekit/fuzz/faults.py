"""The faults in the bytes of a peer: those that do not decode, and those that break a rule of the protocol."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from wirekit.conversation import ENDED_INSIDE, Conversation, Frame, Quarantined
from wirekit.fuzz.targets import Outcome
from wirekit.rules import check


def faults_of(side: str, protocol: str, items: Iterable[Frame | Quarantined]) -> Iterator[Outcome]:
    """The faults of one side of a connection."""
    items = list(items)
    yield from filter(None, (undecoded(item) for item in items if item.side == side))
    yield from broken_rules(side, protocol, items)


def undecoded(item: Frame | Quarantined) -> Outcome | None:
    """The fault of bytes that do not decode."""
    if isinstance(item, Quarantined):
        return Outcome("answer", f"bytes that do not decode: {item.reason}", item.reason)
    error = item.decoded.error
    return None if error is None else Outcome("answer", str(error), f"{item.schema} {error.path}")


def unreadable(side: str, conversation: Conversation) -> Outcome | None:
    """The fault of a side that sends no more, and whose last bytes begin no frame."""
    lost = (each for each in conversation.close(side) if isinstance(each, Quarantined) and each.reason != ENDED_INSIDE)
    return next(map(undecoded, lost), None)


def broken_rules(side: str, protocol: str, items: Iterable[Frame | Quarantined]) -> Iterator[Outcome]:
    """The faults of one side that breaks rules of its protocol."""
    for each in check(protocol, items):
        if each.side == side and each.rule.severity == "error":
            yield Outcome("rule", f"{each.rule.says} ({each.rule.source})", each.rule.name)
