"""A server as a target of whole conversations: a scripted client sends requests with one defect."""

from __future__ import annotations

from random import Random

from wirekit import encoding
from wirekit.conversation import Frame
from wirekit.errors import Misuse
from wirekit.fuzz.cases import Case
from wirekit.fuzz.faults import faults_of
from wirekit.fuzz.network import SETTLE_SECONDS, Server, ServerTarget
from wirekit.fuzz.plays import HARMLESS, PIECES, Play
from wirekit.fuzz.targets import ACCEPTED, REFUSED, Outcome
from wirekit.strategies import Exchange, edited

REQUESTS = 8
"""Requests of a case, those of the opening not counted."""


class ConversationTarget(ServerTarget):
    """Sends a few requests, one of which may have a defect."""

    def talk(self, server: Server, case: Case) -> Outcome:
        if not isinstance(case, Play):
            raise Misuse("--conversation needs the name of a protocol, not a layout")
        return _ScriptedClient(server, self._protocol.name, case, self._bounds.seconds).run()


class _ScriptedClient:
    """One connection."""

    def __init__(self, server: Server, protocol: str, play: Play, seconds: float) -> None:
        self._server, self._play, self._seconds = server, play, seconds
        self._random = Random(f"{protocol} {play.seed}")
        self._exchange = Exchange(protocol, self._random)

    def run(self) -> Outcome:
        """Sends requests until the script ends, the server closes the connection, or a fault occurs."""
        protocol, play = self._exchange.protocol, self._play
        skipped = play.kind == "opening left out"
        for name, value in self._exchange.conversation.dialogue.opening:
            data = encoding.encode(protocol.key(name), value)
            self._exchange.hear("client", data)
            if skipped:
                self._exchange.answer(self._exchange.frames[-1])  # as if sent: else the rules allow only an opening
                continue
            problem = self._problem(data, harmless=True)
            if problem is not None:
                return problem
        at = 0 if skipped else play.at % REQUESTS
        for number in range(REQUESTS):
            turn = self._exchange.ask("client")
            if turn is None or self._server.closed:
                break
            data = self._changed(turn.data) if number == at else turn.data
            problem = self._problem(data, harmless=play.kind in HARMLESS)
            if problem is not None:
                return problem
            if number == at and play.kind not in HARMLESS:
                break  # the reaction to the rest is unknown
        return Outcome(REFUSED if self._server.closed else ACCEPTED)

    def _changed(self, data: bytes) -> bytes:
        if self._play.kind == "request twice":
            return data + data
        if self._play.kind == "ends inside a frame":
            return data[: self._random.randrange(len(data))]
        if self._play.kind == "damaged frame":
            return edited(data, self._random)
        return data

    def _problem(self, data: bytes, *, harmless: bool) -> Outcome | None:
        """Sends a request and waits for its response; returns the fault of the server, if the request was valid."""
        request = self._exchange.frames[-1]
        pieces = [data[at : at + 1] for at in range(len(data))] if self._play.kind == PIECES else [data]
        self._server.send(*pieces, last=self._play.kind == "ends inside a frame" and not harmless)
        owed = harmless and request.description.answered
        answered = self._receive(request, self._seconds if owed else min(SETTLE_SECONDS, self._seconds))
        if not harmless:
            return None
        fault = next(faults_of("server", self._exchange.protocol.name, self._exchange.items), None)
        if fault is not None or answered or not owed:
            return fault
        return self._server.silence(request, self._seconds, self._exchange.conversation)

    def _receive(self, request: Frame, seconds: float) -> bool:
        """Reads until a request is answered, or the connection or the time ends; returns whether it was answered."""
        for data in self._server.received(seconds):
            events = self._exchange.hear("server", data)
            if any(isinstance(event, Frame) and event.request is request for event in events):
                return True
        return False
