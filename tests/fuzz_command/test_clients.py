"""Scripted servers: what they do to a client, and what ``wirekit fuzz --target client:`` makes of it."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

import pytest

import wirekit
from tests.fuzz_command.clients import LIST_GROUPS, NUMBER
from tests.fuzz_command.test_command_line import fuzz
from wirekit.conversation import Conversation, Frame
from wirekit.errors import Misuse
from wirekit.fuzz.clients import ClientTarget
from wirekit.fuzz.plays import PIECES, PLAYS, Play, Plays
from wirekit.fuzz.scripted_server import ScriptedServer
from wirekit.fuzz.targets import Bounds

KEY = "kafka.response"
CLIENT = f"{sys.executable} {Path(__file__).with_name('clients.py')}"
LISTED = "kafka.list_groups.response.v0"


def received(kind: str, at: int = 0, requests: int = 2, **fields: int) -> bytes:
    """What a server says to requests that are sent one after the other, before it hangs up."""
    server = ScriptedServer("kafka", Play(KEY, b"", kind, seed="1", at=at), fields=fields)
    try:
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.settimeout(5)
            for number in range(requests):
                connection.sendall(LIST_GROUPS[:8] + (NUMBER + number).to_bytes(4, "big") + LIST_GROUPS[12:])
            connection.shutdown(socket.SHUT_WR)
            data = b""
            while more := connection.recv(1 << 16):
                data += more
    finally:
        server.close()
    assert server.sent == data
    assert not [*server.faults()]
    return data


def numbers(data: bytes) -> list[int]:
    return [frame.value.correlation_id for frame in wirekit.frames("kafka.response", data)]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("sound", [7, 8]),
        (PIECES, [7, 8]),
        ("answer twice", [7, 7, 8]),
        ("answer to nobody", [1_000_007, 8]),
        ("answers out of order", [8, 7]),
        ("answer left out", [8]),
        ("answer of another kind", [7, 8]),
    ],
)
def test_each_kind_of_answer_has_its_correlation_ids(kind: str, expected: list[int]) -> None:
    assert numbers(received(kind)) == expected


def test_sound_answers_are_those_of_the_requests() -> None:
    data, follower = received("sound", requests=3, error_code=0), Conversation("kafka")
    for number in range(3):
        follower.receive("client", LIST_GROUPS[:8] + (NUMBER + number).to_bytes(4, "big") + LIST_GROUPS[12:])
    frames = follower.receive("server", data)
    assert all(isinstance(frame, Frame) and frame.schema == LISTED and frame.decoded.clean for frame in frames)
    assert [frame.value.body.error_code for frame in frames if isinstance(frame, Frame)] == [0, 0, 0]


def test_an_answer_that_ends_inside_or_is_damaged() -> None:
    sound = received("sound")
    ended = received("ends inside a frame", requests=1)
    assert ended != sound
    assert sound.startswith(ended)
    assert received("damaged frame", at=1)[:8] == sound[:8]
    assert received("damaged frame", at=1) != sound


def run(manner: str, kind: str, seconds: float = 5.0) -> str:
    target = ClientTarget(f"{CLIENT} {manner} {{port}}", "kafka", Bounds(seconds=seconds))
    return target.run(Play(KEY, b"", kind, seed="1")).kind


@pytest.mark.parametrize(
    ("manner", "kind", "outcome"),
    [
        ("careful", "sound", "accepted"),
        ("careful", "answer to nobody", "refused"),
        ("trusting", "answer to nobody", "crash"),
        ("wrong", "sound", "request"),
        ("longer", "sound", "request"),
        ("negative", "sound", "request"),
    ],
)
def test_outcomes(manner: str, kind: str, outcome: str) -> None:
    assert run(manner, kind) == outcome


def test_a_client_that_waits_for_ever() -> None:
    assert run("patient", "answer left out", 0.5) == "hang"


def test_plays_are_the_same_for_the_same_seed() -> None:
    plays, again = Plays("kafka", 3), Plays("kafka", 3)
    assert [plays[index] for index in range(30)] == [again[index] for index in range(30)]
    assert {plays[index].kind for index in range(30)} == set(PLAYS)
    with pytest.raises(Misuse, match="a script has no option 'bit rot'"):
        Plays("kafka", 3, kinds=["bit rot"])


def test_the_command_finds_and_replays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = ["--target", f"client:{CLIENT} trusting {{port}}", "--corpus", str(tmp_path)]
    kinds = ["--kind", "answer to nobody", "--kind", "sound"]
    assert fuzz("kafka", *target, *kinds, "--seed", "1", "--count", "12", "--output", "json") == 1
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert (finding["finding"], finding["case"]["kind"]) == ("crash", "answer to nobody")
    assert finding["reproduced"]
    assert Path(finding["file"]).read_bytes()
    assert fuzz("--replay", finding["file"], *target[:2]) == 1
    assert fuzz("--replay", finding["file"], "--target", f"client:{CLIENT} careful {{port}}") == 0


@pytest.mark.parametrize("target", ["client:./client", "client:./no-such-client {port}", "client:'./client {port}"])
def test_clients_that_cannot_be_run(target: str) -> None:
    assert fuzz("kafka", "--target", target, "--count", "1") == 2
