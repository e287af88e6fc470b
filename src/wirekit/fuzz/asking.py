"""A server as a target of whole conversations: a scripted client sends requests with one defect."""

from __future__ import annotations

import socket
import time
from random import Random

from wirekit import encoding
from wirekit.conversation import Frame, Quarantined
from wirekit.errors import Misuse
from wirekit.fuzz.cases import Case
from wirekit.fuzz.network import CLOSED, OPEN, SETTLE_SECONDS, connect_to
from wirekit.fuzz.plays import HARMLESS, PIECES, Play
from wirekit.fuzz.targets import ACCEPTED, REFUSED, Bounds, Outcome, Target
from wirekit.rules import check
from wirekit.strategies import Exchange, edited

REQUESTS = 8
"""Requests of a case, those of the opening not counted."""
LARGEST_READ = 1 << 16
MOST_READ = 16 << 20


class ConversationTarget(Target):
    """A server that listens; a case is a connection with a few requests.

    Args:
        host, port, allow_remote: as for ``TcpTarget``.
        protocol: the protocol that it speaks.
        bounds: ``seconds`` is the time for a response.

    Raises:
        Misuse: for a host that does not exist, or that is another machine's.
    """

    def __init__(self, host: str, port: int, protocol: str, bounds: Bounds, *, allow_remote: bool = False) -> None:
        self._address = f"{host}:{port}"
        self._connect = connect_to(host, port, bounds.seconds, allow_remote=allow_remote)
        self._protocol, self._bounds = protocol, bounds
        self._connected = False

    def run(self, case: Case) -> Outcome:
        if not isinstance(case, Play):
            raise Misuse("--conversation needs the name of a protocol, not a layout")
        try:
            connection = self._connect()
        except OSError as error:
            if not self._connected:
                raise Misuse(f"cannot connect to {self._address}: {error.strerror or error}") from None
            return Outcome("gone", f"the server accepts no connection: {error}")
        self._connected = True
        with connection:
            asking = _Asking(connection, self._protocol, case, self._bounds.seconds)
            outcome = asking.run()
        if asking.state == CLOSED:
            try:
                self._connect().close()
            except OSError as error:
                return Outcome("gone", f"the server accepts no connections after the case: {error}")
        return outcome


class _Asking:
    """One connection."""

    def __init__(self, connection: socket.socket, protocol: str, play: Play, seconds: float) -> None:
        self._socket, self._play, self._seconds = connection, play, seconds
        self._random = Random(f"{protocol} {play.seed}")
        self._exchange = Exchange(protocol, self._random)
        self._read = 0
        self.state = OPEN

    def run(self) -> Outcome:
        """Sends requests until the script ends, the server closes the connection, or a fault occurs."""
        protocol, play = self._exchange.protocol, self._play
        skipped = play.kind == "opening left out"
        for name, value in self._exchange.conversation.dialogue.opening:
            data = encoding.encode(protocol.key(name), value)
            self._exchange.hear("client", data)
            if skipped:
                self._exchange.answer(self._exchange.frames[-1])  # as if: else the rules allow nothing but an opening
                continue
            problem = self._problem(data, harmless=True)
            if problem is not None:
                return problem
        at = 0 if skipped else play.at % REQUESTS
        for number in range(REQUESTS):
            turn = self._exchange.ask("client")
            if turn is None or self.state == CLOSED:
                break
            data = self._changed(turn.data) if number == at else turn.data
            problem = self._problem(data, harmless=play.kind in HARMLESS)
            if problem is not None:
                return problem
            if number == at and play.kind not in HARMLESS:
                break  # the reaction to the rest is unknown
        return Outcome(REFUSED if self.state == CLOSED else ACCEPTED)

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
        try:
            for piece in pieces:
                self._socket.sendall(piece)
            if self._play.kind == "ends inside a frame" and not harmless:
                self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # closed meanwhile; receiving shows the responses so far
        owed = harmless and request.description.answered
        answered = self._receive(request, self._seconds if owed else min(SETTLE_SECONDS, self._seconds))
        if not harmless:
            return None
        fault = self._fault()
        if fault is not None or answered or not owed:
            return fault
        api = request.description.api or "request"
        if self.state == CLOSED:
            return Outcome("dropped", f"the server closed the connection without a response to {api}", api)
        return Outcome("unanswered", f"no response to {api} in {self._seconds:g} s", api)

    def _receive(self, request: Frame, seconds: float) -> bool:
        """Reads until a request is answered, or the connection or the time ends; returns whether it was answered."""
        end = time.monotonic() + seconds
        while self.state == OPEN and self._read < MOST_READ and (left := end - time.monotonic()) > 0:
            self._socket.settimeout(left)
            try:
                data = self._socket.recv(LARGEST_READ)
            except TimeoutError:
                return False
            except OSError:
                data = b""
            if not data:
                self.state = CLOSED
                return False
            self._read += len(data)
            events = self._exchange.hear("server", data)
            if any(isinstance(event, Frame) and event.request is request for event in events):
                return True
        return False

    def _fault(self) -> Outcome | None:
        """The first fault of the server's frames so far."""
        for item in self._exchange.items:
            if item.side != "server":
                continue
            if isinstance(item, Quarantined):
                return Outcome("answer", f"bytes that do not decode: {item.reason}", item.reason)
            if item.decoded.error is not None:
                return Outcome("answer", str(item.decoded.error), f"{item.schema} {item.decoded.error.path}")
        broken = check(self._exchange.protocol.name, self._exchange.items)
        violations = [each for each in broken if each.side == "server" and each.rule.severity == "error"]
        if not violations:
            return None
        rule = violations[0].rule
        return Outcome("rule", f"{rule.says} ({rule.source})", rule.name)
