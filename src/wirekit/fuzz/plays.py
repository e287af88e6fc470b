"""Cases of a client: what a scripted server does to it, by number; the same for the same seed."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

from wirekit.errors import Misuse
from wirekit.fuzz.cases import SOUND, Case, Expectation
from wirekit.registry import registry

PIECES = "in pieces"
PUSHED = "pushed frame"
PLAYS = (
    SOUND,
    PIECES,
    PUSHED,
    "answer twice",
    "answer to nobody",
    "answer of another kind",
    "answers out of order",
    "answer left out",
    "ends inside a frame",
    "damaged frame",
)
"""What a scripted server does: nothing wrong, answers in single bytes, a frame that nobody asked for, and damage."""
HARMLESS = (SOUND, PIECES, PUSHED)
LATEST = 12
"""Answers before the one that is damaged, at most."""


@dataclass(frozen=True)
class Play(Case):
    """What a scripted server does to a client; ``data`` is what it sent, once it did.

    Attributes:
        seed: decides what the answers are.
        at: the number of the answer that is damaged, from 0; those of all connections are counted together.
    """

    seed: str = ""
    at: int = 0

    @property
    def name(self) -> str:
        """A file name: kind, number of the answer, seed."""
        return f"{self.kind}-{self.at}-{self.seed}".replace(" ", "-")

    @functools.cached_property
    def expectation(self) -> Expectation:
        """A correct client gets on with sound answers, and gives up or tries again on others."""
        if self.kind in HARMLESS:
            return Expectation(SOUND)
        return Expectation("damaged", f"{self.kind}, answer {self.at}", registry[self.key].source)

    def to_json(self) -> dict[str, Any]:
        """What a case's file says of it."""
        return {**super().to_json(), "seed": self.seed, "at": self.at}


def play_of(line: Any, data: bytes) -> Play:
    """The play of ``to_json`` and the bytes that were sent.

    Raises:
        Misuse: for JSON that is no play.
    """
    case = Case.from_json(line, data)
    if not isinstance(line.get("seed"), str) or not isinstance(line.get("at"), int) or case.kind not in PLAYS:
        raise Misuse("a case of a client is an object with key, kind, path, seed and at")
    return Play(case.key, data, case.kind, seed=line["seed"], at=line["at"])


class Plays:
    """The cases of a client by number, for a ``Fuzzer``.

    Args:
        protocol: what it speaks.
        seed: any number.
        kinds: of ``PLAYS``; by default all.

    Raises:
        Misuse: for a kind that does not exist.
    """

    def __init__(self, protocol: str, seed: int, *, kinds: Iterable[str] | None = None) -> None:
        self.key = registry.protocol(protocol).stream("server")
        self.seed = seed
        self.kinds = list(PLAYS if kinds is None else kinds)
        unknown = [kind for kind in self.kinds if kind not in PLAYS]
        if unknown:
            raise Misuse(f"a scripted server does not know {unknown[0]!r}; there are {', '.join(PLAYS)}")

    def __getitem__(self, index: int) -> Play:
        random = Random(f"play {self.seed} {index}")
        kind = self.kinds[index % len(self.kinds)]
        return Play(self.key, b"", kind, seed=f"{self.seed}-{index}", at=random.randrange(LATEST))

    def sound(self, count: int) -> list[bytes]:
        """Frames for other fuzzers: none, for these do not play a server."""
        return []
