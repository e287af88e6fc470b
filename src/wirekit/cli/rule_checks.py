"""Checks the items of a capture against the rules of their protocols."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from wirekit.capture.files import NO_TIME_US
from wirekit.capture.links import Item, Link, Missing
from wirekit.conversation import Frame
from wirekit.pipeline.summary import failure
from wirekit.rules import Checker, Facts, Violation, rules_of

NOT_CHECKED = "rules that need earlier frames are not checked after them"
MISSING = f"missing from the capture; {NOT_CHECKED}"
UNDECODED = f"could not be decoded; {NOT_CHECKED}"
WITHOUT_RULES = "without a protocol that has rules"


class RuleChecks:
    """Checks the connections of a capture; the connections of one client host share some facts.

    Attributes:
        checked: number of checked frames.
        unchecked: number of bytes that could not be checked, by reason.
    """

    def __init__(self) -> None:
        self.checked = 0
        self.unchecked: Counter[str] = Counter()
        self._checkers: dict[str, Checker | None] = {}  # of connections with frames
        self._undecoded: dict[str, int] = {}  # of connections with undecoded or missing bytes: undecoded bytes
        self._clients: dict[str, Facts] = {}

    def take(self, link: Link, item: Item | None) -> Iterable[Violation]:
        """Handles the next item of the capture; returns the violations of a connection at its end.

        The protocol of a connection may not be known before its first frame.
        """
        key = link.name
        if item is None:
            size, checker = self._undecoded.pop(key, 0), self._checkers.pop(key, None)
            self.unchecked[UNDECODED if link.protocol and rules_of(link.protocol) else WITHOUT_RULES] += size
            closed_us = None if link.closed_us in (0, NO_TIME_US) else link.closed_us
            return checker.close(closed_us) if checker is not None else ()
        if isinstance(item, Frame) and key not in self._checkers:
            self._checkers[key] = _checker(link, self._clients, incomplete=key in self._undecoded)
        checker = self._checkers.get(key)
        if isinstance(item, Missing):
            self._undecoded.setdefault(key, 0)
            self.unchecked[MISSING] += item.length
            if checker is not None:
                checker.lose(item.side)
            return ()
        if not isinstance(item, Frame):
            self._undecoded[key] = self._undecoded.get(key, 0) + len(item.data)
        elif checker is None:
            self.unchecked[WITHOUT_RULES] += len(item.data)
        else:
            self.checked += 1
            self.unchecked[UNDECODED] += len(item.data) if failure(item) is not None else 0
        if checker is not None:
            checker.take(item)
        return ()


def _checker(link: Link, clients: dict[str, Facts], *, incomplete: bool) -> Checker | None:
    rules = rules_of(link.protocol) if link.protocol else None
    if rules is None:
        return None
    host = link.client.rpartition(":")[0]
    shared = clients.setdefault(f"{link.protocol} {host}", Facts(rules.initial, started=False))
    checker = Checker(rules, started=link.known_start, shared=shared, connection=link.name)
    if incomplete:
        checker.lose()
    return checker
