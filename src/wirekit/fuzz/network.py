"""A server as a target: sends each case on its own connection, after the protocol's opening; checks the response."""

from __future__ import annotations

import ipaddress
import socket
import time
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

from wirekit import decoding, encoding
from wirekit.conversation import Conversation, Frame, Quarantined
from wirekit.errors import Misuse, WireError, Wrong
from wirekit.fuzz.cases import Case
from wirekit.fuzz.faults import broken_rules, undecoded, unreadable
from wirekit.fuzz.targets import ACCEPTED, REFUSED, Bounds, Outcome, Target
from wirekit.registry import registry

MOST_READ = 16 << 20
"""The maximum number of bytes that are read from a connection."""
SETTLE_SECONDS = 0.2
"""Seconds to wait for a response to a case that requires none."""


class Server:
    """The server at the other end of a connection.

    Attributes:
        closed: whether it has closed the connection.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._read = 0
        self.closed = False

    def send(self, *pieces: bytes, last: bool = False) -> None:
        """Sends bytes, as far as the server takes them; after the ``last`` ones, it receives the end of the stream."""
        try:
            for data in pieces:
                self._socket.sendall(data)
            if last:
                self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # closed meanwhile, or not read in time; receiving shows the responses so far

    def received(self, seconds: float) -> Iterator[bytes]:
        """The bytes that arrive before the end of the connection, or of the time."""
        end = time.monotonic() + seconds
        while not self.closed and self._read < MOST_READ and (seconds_left := end - time.monotonic()) > 0:
            self._socket.settimeout(seconds_left)
            try:
                data = self._socket.recv(1 << 16)
            except TimeoutError:
                return
            except OSError:
                data = b""
            self.closed = not data
            self._read += len(data)
            if data:
                yield data

    def silence(self, request: Frame, seconds: float, conversation: Conversation) -> Outcome:
        """The fault of a server that has not responded to a request, the last one of a conversation."""
        fault = unreadable("server", conversation)
        if fault is not None:
            return fault
        api = request.description.api or "request"
        if self.closed:
            return Outcome("dropped", f"the server closed the connection without a response to {api}", api)
        return Outcome("unanswered", f"no response to {api} in {seconds:g} s", api)


class ServerTarget(Target):
    """A server that listens; each case has a connection of its own.

    Args:
        host, port: the address of the server.
        protocol: the protocol that it speaks.
        bounds: ``seconds`` is the time for a response.
        allow_remote: whether the host may be another machine.

    Raises:
        Misuse: for a host that does not exist, or that is another machine's.
    """

    def __init__(self, host: str, port: int, protocol: str, bounds: Bounds, *, allow_remote: bool = False) -> None:
        self._name = f"{host}:{port}"
        self._address = address_of(host, port, allow_remote=allow_remote)
        self._protocol, self._bounds = registry.protocol(protocol), bounds
        self._connected = False

    def run(self, case: Case) -> Outcome:
        try:
            connection = self._connect()
        except OSError as error:
            if not self._connected:
                raise Misuse(f"cannot connect to {self._name}: {error.strerror or error}") from None
            return Outcome("gone", f"the server accepts no connection: {error}")
        self._connected = True
        with connection:
            server = Server(connection)
            outcome = self.talk(server, case)
        if server.closed:
            try:
                self._connect().close()
            except OSError as error:
                return Outcome("gone", f"the server accepts no connections after the case: {error}")
        return outcome

    @abstractmethod
    def talk(self, server: Server, case: Case) -> Outcome:
        """Runs a case on a new connection."""

    def _connect(self) -> socket.socket:
        """Connects to the server; one that resets the connection at once has accepted it, and closed it."""
        try:
            return socket.create_connection(self._address[:2], timeout=self._bounds.seconds)
        except ConnectionResetError:
            closed, other = socket.socketpair()
            other.close()
            return closed


class TcpTarget(ServerTarget):
    """Sends the opening frames of the protocol's dialogue, and then the case.

    Args:
        opening: whether to send the opening frames.
    """

    def __init__(
        self, host: str, port: int, protocol: str, bounds: Bounds, *, opening: bool = True, allow_remote: bool = False
    ) -> None:
        super().__init__(host, port, protocol, bounds, allow_remote=allow_remote)
        frames = self._protocol.follow().opening if opening else ()
        self._opening = [encoding.encode(self._protocol.key(name), value) for name, value in frames]

    def talk(self, server: Server, case: Case) -> Outcome:
        conversation = Conversation(self._protocol.name)
        exchange = _Exchange(server, conversation)
        for data in self._opening:
            exchange.send(data)
            if not exchange.receive(self._bounds.seconds):
                kind = "dropped" if server.closed else "unanswered"
                silence = Outcome(kind, "no response to the opening of the connection", "the opening")
                return unreadable("server", conversation) or silence
        started = len(exchange.frames)
        exchange.send(case.data)
        requests = [frame for frame in exchange.frames[started:] if frame.side == "client"]
        sound = case.expectation.verdict == "sound" and len(requests) == 1 and exchange.sound
        sound = sound and not any(broken_rules("client", self._protocol.name, exchange.items))
        owed = sound and requests[0].description.role == "request" and requests[0].description.answered
        endless = _endless(self._protocol.stream("client"), case.data)
        patience = self._bounds.seconds if owed or endless is not None else min(SETTLE_SECONDS, self._bounds.seconds)
        answered = exchange.receive(patience)
        problem = exchange.problem() if sound else None  # after an invalid request, any answer is accepted
        if problem is not None:
            return problem
        if owed and not answered:
            return server.silence(requests[0], self._bounds.seconds, conversation)
        if endless is not None and not server.closed and not answered:
            return Outcome("kept", f"the connection stays open after a frame whose length is invalid: {endless}")
        return Outcome(REFUSED if server.closed else ACCEPTED)


class _Exchange:
    """The exchange on one connection."""

    def __init__(self, server: Server, conversation: Conversation) -> None:
        self._server = server
        self._conversation = conversation
        self.frames: list[Frame] = []
        self.items: list[Any] = []
        self.sound = True

    def send(self, data: bytes) -> None:
        """Sends bytes of the client."""
        self._take(self._conversation.receive("client", data))
        self._server.send(data)

    def receive(self, seconds: float) -> bool:
        """Reads until there is a frame of the server, or the connection or the time has ended; whether there is one."""
        before = len(self.frames)
        for data in self._server.received(seconds):
            self._take(self._conversation.receive("server", data))
            if any(frame.side == "server" for frame in self.frames[before:]) or not self.sound:
                return True
        return False

    def problem(self) -> Outcome | None:
        """The first fault of the server's frames."""
        for item in self.items:
            if item.side != "server":
                continue
            fault = undecoded(item)
            if fault is None and item.reason is not None:
                fault = Outcome("answer", item.reason, f"{item.schema} {item.description.api}")
            if fault is not None:
                return fault
        return next(broken_rules("server", self._conversation.protocol.name, self.items), None)

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
            host_text = host if host == address[0] else f"{host} ({address[0]})"
            raise Misuse(f"{host_text} is not this machine; --allow-remote sends cases there")
    return tuple(addresses[0][4])
