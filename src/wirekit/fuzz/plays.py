"""Cases of whole conversations by number: the script of a server or client, the same for the same seed."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from wirekit.conversation.pairing import required_pairing
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
"""Kinds of plays of a scripted server: valid, in single bytes, with an unrequested frame, and damaged."""
QUESTIONS = (SOUND, PIECES, "opening left out", "request twice", "ends inside a frame", "damaged frame")
"""Kinds of plays of a scripted client."""
HARMLESS = (SOUND, PIECES, PUSHED)
LATEST = 12
"""The maximum number of responses before the damaged one."""


@dataclass(frozen=True)
class Play(Case):
    """A play of a script against a client or server; ``data`` has the bytes that a scripted server sent.

    Attributes:
        seed: determines the responses.
        at: the number of the response, or request, that is damaged, from 0; responses on all connections are counted
            together.
    """

    seed: str = ""
    at: int = 0

    @property
    def name(self) -> str:
        """A file name: kind, number of the response, seed."""
        return f"{self.kind}-{self.at}-{self.seed}".replace(" ", "-")

    @functools.cached_property
    def expectation(self) -> Expectation:
        """A correct peer continues after valid frames, and gives up, refuses or retries after others."""
        if self.kind in HARMLESS:
            return Expectation(SOUND)
        return Expectation("damaged", f"{self.kind}, frame {self.at}", registry[self.key].source)

    def to_json(self) -> dict[str, Any]:
        """The play as stored in the file of a case."""
        return {**super().to_json(), "seed": self.seed, "at": self.at}


def play_of(line: Any, data: bytes) -> Play:
    """The play of ``to_json`` and the bytes that were sent.

    Raises:
        Misuse: for JSON that is not a play.
    """
    case = Case.from_json(line, data)
    if (
        not isinstance(line.get("seed"), str)
        or not isinstance(line.get("at"), int)
        or case.kind not in (*PLAYS, *QUESTIONS)
    ):
        raise Misuse("a case of a client must be an object with key, kind, path, seed and at")
    return Play(case.key, data, case.kind, seed=line["seed"], at=line["at"])


class Plays:
    """The cases of a client, or of a server that is asked, by number, for a ``Fuzzer``.

    Args:
        protocol: its protocol.
        seed: any number.
        kinds: of ``offered``; by default all.
        offered: ``PLAYS`` or ``QUESTIONS``.

    Raises:
        Misuse: for a kind that does not exist, or a protocol without a pairing.
    """

    def __init__(
        self,
        protocol: str,
        seed: int,
        *,
        kinds: Iterable[str] | None = None,
        offered: Sequence[str] = PLAYS,
    ) -> None:
        required_pairing(protocol)
        self.key = registry.protocol(protocol).stream("server" if offered is PLAYS else "client")
        self.seed = seed
        self.kinds = list(offered if kinds is None else kinds)
        unknown = [kind for kind in self.kinds if kind not in offered]
        if unknown:
            raise Misuse(f"a script has no option {unknown[0]!r}; choose from {', '.join(offered)}")

    def __getitem__(self, index: int) -> Play:
        random = Random(f"play {self.seed} {index}")
        kind = self.kinds[index % len(self.kinds)]
        return Play(self.key, b"", kind, seed=f"{self.seed}-{index}", at=random.randrange(LATEST))

    def sound(self, count: int) -> list[bytes]:
        """Frames for other fuzzers: none, because other fuzzers do not play a server."""
        return []
