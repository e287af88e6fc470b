"""A scripted server: reads with ``Conversation``, answers as an ``Exchange`` does, and damages one response."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

from wirekit.conversation import Frame
from wirekit.fuzz.faults import faults_of
from wirekit.fuzz.plays import PIECES, PUSHED, Play
from wirekit.fuzz.targets import Outcome
from wirekit.strategies import Exchange, Mutation, damage, edited
from wirekit.strategies.conversations import NOBODY

MOST_CONNECTIONS = 64
MOST_SENT = 1 << 20
"""The most bytes of sent data that are kept."""
LARGEST_READ = 1 << 16

Answer = Callable[[Exchange, Frame, int], bytes | None]
"""Returns the response of a server at a port to a frame, or nothing, and passes it to the exchange."""


def drawn_answer(exchange: Exchange, frame: Frame, port: int) -> bytes | None:
    """A response to a request that the exchange draws."""
    description = frame.description
    turn = exchange.answer(frame) if description.role == "request" and description.answered else None
    return None if turn is None else turn.data


class ScriptedServer:
    """Serves a client until it is closed.

    Args:
        protocol: its name.
        play: the script of the server.
        fields: {name: value} of fields that get this value in all responses; ``{port}`` in a text is the port.
        answer: makes a response; by default it is drawn.

    Attributes:
        port: its port on 127.0.0.1.
        sent: the bytes that it sent on all connections, up to 1 MiB.
        answers: number of responses sent.
        damaged: the request of the damaged response, and the damage; "" before that response.
    """

    def __init__(
        self,
        protocol: str,
        play: Play,
        *,
        fields: Mapping[str, Any] | None = None,
        answer: Answer = drawn_answer,
    ) -> None:
        self._protocol, self.play, self._answer = protocol, play, answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._fields = {name: _with_port(value, self.port) for name, value in (fields or {}).items()}
        self._lock = threading.Lock()
        self._connections: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._exchanges: list[Exchange] = []
        self.sent = bytearray()
        self.answers = 0
        self.damaged = ""
        self._start(self._accept)

    def close(self) -> None:
        """Closes the connections."""
        for each in (self._listener, *self._connections):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            each.close()
        for thread in self._threads:
            thread.join(10)

    def faults(self) -> Iterator[Outcome]:
        """The faults in the clients' bytes."""
        for exchange in self._exchanges:
            yield from faults_of("client", self._protocol, exchange.items)

    def _start(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        for number in range(MOST_CONNECTIONS):
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            random = Random(f"{self._protocol} {self.play.seed} {number}")
            exchange = Exchange(self._protocol, random, fields=self._fields)
            self._exchanges.append(exchange)
            self._start(_Serving(self, connection, exchange, random).serve)

    def answered(self) -> int:
        """The number of the next response."""
        with self._lock:
            self.answers += 1
            return self.answers - 1

    def say(self, exchange: Exchange, request: Frame) -> bytes | None:
        """The response to a request."""
        return self._answer(exchange, request, self.port)

    def note(self, data: bytes) -> None:
        """Stores bytes that were sent."""
        with self._lock:
            self.sent += data[: MOST_SENT - len(self.sent)]


class _Serving:
    """One connection."""

    def __init__(self, server: ScriptedServer, connection: socket.socket, exchange: Exchange, random: Random) -> None:
        self._server = server
        self._socket = connection
        self._exchange = exchange
        self._random = random
        self._delayed = b""

    def serve(self) -> None:
        """Answers until one side closes the connection."""
        with self._socket:
            while True:
                try:
                    data = self._socket.recv(LARGEST_READ)
                except OSError:
                    return
                if not data:
                    self._exchange.end("client")
                    return
                for event in self._exchange.hear("client", data):
                    if isinstance(event, Frame) and not self._take(event):
                        return

    def _take(self, frame: Frame) -> bool:
        """Answers a frame of the client; returns False if the connection ends."""
        play, draft = self._server.play, None
        if self._server.answers == play.at and play.kind in ("answer to nobody", "answer of another kind"):
            other = play.kind == "answer of another kind"
            draft = self._exchange.draft(frame, other=other, number=0 if other else NOBODY)
        before = len(self._exchange.frames)
        data = self._server.say(self._exchange, frame)
        if data is None:
            return True
        if self._server.answered() != play.at:
            return self._send(data)
        self._server.damaged = frame.description.api or ""
        return self._damaged(draft or data, self._exchange.frames[before:])

    def _damaged(self, data: bytes, frames: list[Frame]) -> bool:
        """Sends the damaged response of the play.

        Args:
            data: the response, or its replacement.
            frames: the frames to record in the exchange.
        """
        kind = self._server.play.kind
        if kind == "answer left out":
            return True
        if kind == "answers out of order":
            self._delayed = data
            return True
        if kind == "ends inside a frame":
            self._send(data[: self._random.randrange(len(data))])
            return False
        if kind == "damaged frame" and frames:
            data = self._spoiled(frames[-1])
        if kind == "answer twice":
            data += data
        if kind == PUSHED:
            turn = self._exchange.tell("server")
            data += turn.data if turn is not None else b""
        return self._send(data)

    def _spoiled(self, frame: Frame) -> bytes:
        """A frame with one error; the lengths around it are right, except one time in four."""
        mutations: list[Mutation] = []
        if self._random.random() < 0.75:
            mutations = list(damage(frame.schema, frame.data, context=frame.decoded.context))
        kinds = list(dict.fromkeys(mutation.name for mutation in mutations))
        if not kinds:
            return edited(frame.data, self._random)
        kind = self._random.choice(kinds)
        mutation = self._random.choice([each for each in mutations if each.name == kind])
        self._server.damaged += f": {mutation.name} of {mutation.path}"
        return mutation.data

    def _send(self, data: bytes | None) -> bool:
        """Sends a response, and after it the one that was held back."""
        data = (data or b"") + (self._delayed if data else b"")
        self._delayed = b"" if data else self._delayed
        self._server.note(data)
        single = self._server.play.kind == PIECES
        try:
            for start in range(0, len(data), 1) if single else (0,):
                self._socket.sendall(data[start : start + 1] if single else data)
        except OSError:
            return False
        return True


def _with_port(value: Any, port: int) -> Any:
    if value == "{port}":
        return port
    return value.replace("{port}", str(port)) if isinstance(value, str) else value
