"""``wirekit fuzz`` against servers on this machine: what they do to connections and what they answer."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

import wirekit
from wirekit.errors import Misuse
from wirekit.fuzz import Case, Fuzzer, Options, Outcome
from wirekit.fuzz.network import TcpTarget
from wirekit.fuzz.numbered_cases import NumberedCases
from wirekit.fuzz.targets import Bounds
from wirekit.strategies.bulk import bulk_frames

KEY = "kafka.heartbeat.request.v0"
Serve = Callable[[socket.socket], None]


@contextlib.contextmanager
def server(serve: Serve, most: int = 10_000) -> Iterator[int]:
    """A server for one connection after the other; gives its port."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]

    def run() -> None:
        for _ in range(most):
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                connection.settimeout(5)
                serve(connection)
        listener.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield port
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)  # wakes who waits for a connection
        thread.join(10)
        listener.close()


def read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (more := connection.recv(size - len(data))):
        data += more
    return data


def requests(connection: socket.socket) -> Iterator[int]:
    """The correlation ids of the sound requests; ends with the first that is not."""
    while len(head := read(connection, 4)) == 4:
        size = int.from_bytes(head, "big", signed=True)
        if not 0 <= size <= 1 << 20:
            return
        decoded = wirekit.decode(head + read(connection, size), KEY)
        if not decoded.clean:
            return
        yield decoded.value.correlation_id


def answer(correlation_id: int) -> bytes:
    return wirekit.encode("kafka.heartbeat.response.v0", {"correlation_id": correlation_id, "body": {"error_code": 0}})


def correct(connection: socket.socket) -> None:
    for number in requests(connection):
        connection.sendall(answer(number))


def kinds(serve: Serve, count: int = 30, seconds: float = 2.0, most: int = 10_000) -> set[str]:
    with server(serve, most) as port:
        bounds = Bounds(seconds=seconds)
        options = Options(count, minimise=False)
        fuzzer = Fuzzer(NumberedCases(KEY, 1), lambda: TcpTarget("127.0.0.1", port, "kafka", bounds), options)
        return {finding.kind for finding in fuzzer.run().findings}


def test_a_correct_server_has_no_findings() -> None:
    assert kinds(correct) == set()


def test_a_server_that_drops_sound_requests() -> None:
    assert kinds(lambda connection: None) == {"dropped"}


def test_a_server_that_does_not_answer() -> None:
    assert "unanswered" in kinds(lambda connection: read(connection, 1 << 20) and None, 40, 0.1)


def test_answers_that_nobody_can_decode() -> None:
    def garbage(connection: socket.socket) -> None:
        for number in requests(connection):
            connection.sendall(answer(number)[:-2] + b"\0\0\0\0" if number % 2 else answer(number ^ 1))

    assert kinds(garbage) == {"answer"}


@pytest.mark.parametrize("key", [KEY, "pulsar.frame"])
def test_a_server_of_another_protocol(key: str) -> None:
    """Its response does not decode; one that is cut is no response."""

    def http(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")

    def cut(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        connection.sendall(b"\0\0\0\x08\0")

    sound = Case(key, next(bulk_frames(key, seed=1, clean=True)), "sound")
    for serve, kind in ((http, "answer"), (cut, "dropped")):
        with server(serve) as port:
            outcome = TcpTarget("127.0.0.1", port, key.partition(".")[0], Bounds(seconds=2)).run(sound)
        assert outcome.kind == kind
        if kind == "answer":
            assert outcome.says.startswith("bytes that do not decode: ")
            assert "1213486160 exceeds the limit" in outcome.says


def test_a_connection_that_is_kept_behind_a_length_below_zero() -> None:
    def keeping(connection: socket.socket) -> None:
        while connection.recv(1 << 16):
            pass

    with server(keeping) as port:
        target = TcpTarget("localhost", port, "kafka", Bounds(seconds=0.3))
        assert target.run(Case(KEY, b"\xff\xff\xff\xff", "length negative")).kind == "kept"
        assert target.run(Case(KEY, b"\0\0\1\0", "truncated")).kind == "accepted"  # more may follow


def test_a_server_that_is_gone() -> None:
    assert "gone" in kinds(lambda connection: None, most=1)


def test_a_server_that_resets_a_connection_is_not_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reset may arrive while the connection is made: then the server has accepted it."""

    def reset(*args: object, **options: object) -> socket.socket:
        raise ConnectionResetError(104, "Connection reset by peer")

    monkeypatch.setattr(socket, "create_connection", reset)
    sound = Case(KEY, next(bulk_frames(KEY, seed=1, clean=True)), "sound")
    assert TcpTarget("127.0.0.1", 9, "kafka", Bounds()).run(sound).kind == "dropped"


def test_the_opening_comes_first_and_must_be_answered() -> None:
    commands: list[str] = []

    def greet(connection: socket.socket) -> None:
        data = connection.recv(1 << 16)
        commands.append(next(wirekit.frames("pulsar", data)).value.command.type.symbol)
        connection.sendall(
            wirekit.encode("pulsar.frame", {"command": {"type": "CONNECTED", "connected": {"server_version": "test"}}})
        )
        commands.append(next(wirekit.frames("pulsar", connection.recv(1 << 16))).value.command.type.symbol)
        connection.sendall(wirekit.encode("pulsar.frame", {"command": {"type": "PONG", "pong": {}}}))

    ping = Case("pulsar.frame", wirekit.encode("pulsar.frame", {"command": {"type": "PING", "ping": {}}}), "sound")
    with server(greet) as port:
        assert TcpTarget("127.0.0.1", port, "pulsar", Bounds()).run(ping) == Outcome("accepted")
    assert commands == ["CONNECT", "PING"]
    with server(lambda connection: None) as port:
        for protocol, case in (("pulsar", ping), ("joyqueue", Case("joyqueue.frame", b"", "sound"))):
            outcome = TcpTarget("127.0.0.1", port, protocol, Bounds()).run(case)
            assert (outcome.kind, outcome.place) == ("dropped", "the opening")


@pytest.mark.parametrize(
    "command",
    [
        {"type": "LOOKUP_RESPONSE", "lookupTopicResponse": {"request_id": 1}},
        {"type": "FLOW", "flow": {"consumer_id": 1, "messagePermits": 1}},
        {"type": "GET_LAST_MESSAGE_ID", "getLastMessageId": {"consumer_id": 7, "request_id": 1}},
    ],
)
def test_a_frame_that_no_client_may_send_needs_no_answer(command: dict[str, object]) -> None:
    def greet(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        connected = {"type": "CONNECTED", "connected": {"server_version": "test"}}
        connection.sendall(wirekit.encode("pulsar.frame", {"command": connected}))
        connection.recv(1 << 16)

    with server(greet) as port:
        case = Case("pulsar.frame", wirekit.encode("pulsar.frame", {"command": command}), "sound")
        assert TcpTarget("127.0.0.1", port, "pulsar", Bounds(seconds=1)).run(case).kind == "refused"


def test_no_other_machine_is_reached_unless_asked() -> None:
    for host in ("192.0.2.1", "::ffff:192.0.2.1", "0.0.0.0"):
        with pytest.raises(Misuse, match=f"^{host} is not this machine"):
            TcpTarget(host, 9092, "kafka", Bounds())
    TcpTarget("192.0.2.1", 9092, "kafka", Bounds(), allow_remote=True)  # connects when it runs a case


def test_nobody_listens_at_all() -> None:
    with server(correct, most=0) as port:
        pass
    with pytest.raises(Misuse, match=rf"cannot connect to 127\.0\.0\.1:{port}: Connection refused"):
        TcpTarget("127.0.0.1", port, "kafka", Bounds()).run(Case(KEY, next(bulk_frames(KEY)), "sound"))
