"""A server as a target: sends each case on its own connection, after the protocol's opening; checks the response."""

from __future__ import annotations

import ipaddress
import socket
import time
from collections.abc import Callable
from typing import Any

from wirekit import decoding, encoding
from wirekit.conversation import Conversation, Frame, Quarantined
from wirekit.errors import Misuse, WireError, Wrong
from wirekit.fuzz.cases import Case
from wirekit.fuzz.targets import ACCEPTED, REFUSED, Bounds, Outcome, Target
from wirekit.registry import registry
from wirekit.rules import check

LARGEST_ANSWER = 16 << 20
"""The maximum number of bytes that are read from a connection."""
SETTLE_SECONDS = 0.2
"""Seconds to wait for a response to a case that requires none."""
CLOSED = "closed"
OPEN = "open"


class TcpTarget(Target):
    """A server that listens.

    Args:
        host, port: the address of the server.
        protocol: the protocol that it speaks.
        bounds: ``seconds`` is the time for a response.
        opening: whether to send the opening frames of the protocol's dialogue.
        allow_remote: whether the host may be another machine.

    Raises:
        Misuse: for a host that does not exist, or that is another machine's.
    """

    def __init__(
        self, host: str, port: int, protocol: str, bounds: Bounds, *, opening: bool = True, allow_remote: bool = False
    ) -> None:
        self._address = f"{host}:{port}"
        self._connect = connect_to(host, port, bounds.seconds, allow_remote=allow_remote)
        self._protocol = registry.protocol(protocol)
        self._bounds = bounds
        dialogue = self._protocol.follow()
        self._opening = [
            encoding.encode(self._protocol.key(name), value) for name, value in (dialogue.opening if opening else ())
        ]
        self._connected = False

    def run(self, case: Case) -> Outcome:
        try:
            connection = self._connect()
        except OSError as error:
            if not self._connected:
                raise Misuse(f"cannot connect to {self._address}: {error.strerror or error}") from None
            return Outcome("gone", f"the server accepts no connection: {error}")
        self._connected = True
        with connection:
            exchange = _Exchange(connection, Conversation(self._protocol.name))
            outcome = self._exchanged(case, exchange)
        if exchange.state == CLOSED:
            try:
                self._connect().close()
            except OSError as error:
                return Outcome("gone", f"the server accepts no connections after the case: {error}")
        return outcome

    def _exchanged(self, case: Case, exchange: _Exchange) -> Outcome:
        for data in self._opening:
            exchange.send(data)
            if not exchange.receive(self._bounds.seconds):
                kind = "dropped" if exchange.state == CLOSED else "unanswered"
                return Outcome(kind, "no response to the opening of the connection", "the opening")
        started = len(exchange.frames)
        exchange.send(case.data)
        requests = [frame for frame in exchange.frames[started:] if frame.side == "client"]
        sound = case.expectation.verdict == "sound" and len(requests) == 1 and exchange.sound
        owed = sound and requests[0].description.role == "request" and requests[0].description.answered
        endless = _endless(self._protocol.stream("client"), case.data)
        patience = self._bounds.seconds if owed or endless is not None else min(SETTLE_SECONDS, self._bounds.seconds)
        answered = exchange.receive(patience)
        problem = exchange.problem(requests[0] if sound and requests else None)
        if problem is not None:
            return problem
        if owed and not answered:
            api = requests[0].description.api or "request"
            if exchange.state == CLOSED:
                return Outcome("dropped", f"the server closed the connection without a response to {api}", api)
            return Outcome("unanswered", f"no response to {api} in {self._bounds.seconds:g} s", api)
        if endless is not None and exchange.state == OPEN and not answered:
            return Outcome("kept", f"the connection stays open after a frame whose length is invalid: {endless}")
        return Outcome(REFUSED if exchange.state == CLOSED else ACCEPTED)


class _Exchange:
    """The exchange on one connection."""

    def __init__(self, connection: socket.socket, conversation: Conversation) -> None:
        self._socket = connection
        self._conversation = conversation
        self.frames: list[Frame] = []
        self.items: list[Any] = []
        self.sound = True
        self.state = OPEN
        self.read = 0

    def send(self, data: bytes) -> None:
        """Sends bytes of the client, as far as the server takes them."""
        self._take(self._conversation.receive("client", data))
        try:
            self._socket.sendall(data)
        except OSError:
            pass  # closed meanwhile, or not read in time; receiving shows the responses so far

    def receive(self, seconds: float) -> bool:
        """Reads until there is a frame of the server, or the connection or the time has ended; whether there is one."""
        end = time.monotonic() + seconds
        before = len(self.frames)
        while self.state == OPEN and self.read < LARGEST_ANSWER:
            left = end - time.monotonic()
            if left <= 0:
                break
            self._socket.settimeout(left)
            try:
                data = self._socket.recv(1 << 16)
            except TimeoutError:
                break
            except OSError:
                data = b""
            if not data:
                self.state = CLOSED
                break
            self.read += len(data)
            self._take(self._conversation.receive("server", data))
            if any(frame.side == "server" for frame in self.frames[before:]) or not self.sound:
                return True
        return False

    def problem(self, request: Frame | None) -> Outcome | None:
        """The first fault of the server's frames; after an invalid request, any answer is accepted."""
        for item in self.items if request is not None else ():
            if item.side != "server":
                continue
            if isinstance(item, Quarantined):
                return Outcome("answer", f"bytes that do not decode: {item.reason}", item.reason)
            error = item.decoded.error
            if error is not None:
                return Outcome("answer", str(error), f"{item.schema} {error.path}")
            if item.reason is not None:
                return Outcome("answer", item.reason, f"{item.schema} {item.description.api}")
        if request is None:
            return None
        violation = next(
            (
                each
                for each in check(self._conversation.protocol.name, self.items)
                if each.side == "server" and each.rule.severity == "error"
            ),
            None,
        )
        return (
            None
            if violation is None
            else Outcome("rule", f"{violation.rule.says} ({violation.rule.source})", violation.rule.name)
        )

    def _take(self, items: list[Any]) -> None:
        for item in items:
            if isinstance(item, Frame):
                self.frames.append(item)
                self.items.append(item)
            elif isinstance(item, Quarantined):
                self.items.append(item)
                self.sound &= item.side != "client"


def _endless(key: str, data: bytes) -> str | None:
    """Why the end of a frame with these first bytes cannot be known; None if its length is valid."""
    try:
        decoding.frame_size(data, key)
    except Wrong as error:
        return str(error)
    except WireError:
        return None  # too large for wirekit's limits, which are not the server's
    return None


def connect_to(host: str, port: int, seconds: float, *, allow_remote: bool) -> Callable[[], socket.socket]:
    """A function that connects to a server.

    A server that resets the connection at once has accepted it: the function returns a closed connection.

    Raises:
        Misuse: as ``address_of``.
    """
    address = address_of(host, port, allow_remote=allow_remote)

    def connect() -> socket.socket:
        try:
            return socket.create_connection(address[:2], timeout=seconds)
        except ConnectionResetError:
            closed, other = socket.socketpair()
            other.close()
            return closed

    return connect


def address_of(host: str, port: int, *, allow_remote: bool) -> tuple[Any, ...]:
    """The socket address to connect to.

    Raises:
        Misuse: for a host that does not exist, or that is another machine's.
    """
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise Misuse(f"{host}: {error}") from None
    for *_, address in addresses:
        if not allow_remote and not ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback:
            named = host if host == address[0] else f"{host} ({address[0]})"
            raise Misuse(f"{named} is not this machine; --allow-remote sends cases there")
    return tuple(addresses[0][4])
