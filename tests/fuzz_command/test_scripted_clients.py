"""Scripted clients: what they ask a server, and what ``wirekit fuzz --conversation`` makes of its answers."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from tests.fuzz_command.test_command_line import fuzz
from tests.fuzz_command.test_network import Serve, server
from tests.own import declared
from wirekit.conversation import Conversation, Frame, Quarantined
from wirekit.fuzz.plays import QUESTIONS, Play, Plays
from wirekit.fuzz.scripted_client import REQUESTS, ConversationTarget
from wirekit.fuzz.scripted_server import ScriptedServer
from wirekit.fuzz.targets import Bounds, Outcome
from wirekit.registry import Layout, Protocol
from wirekit.wire import Length, Struct, uint8


def play(kind: str, at: int = 0, seed: str = "1") -> Play:
    return Play("kafka.request", b"", kind, seed=seed, at=at)


def outcome(serve: Serve, kind: str, at: int = 0, protocol: str = "kafka") -> Outcome:
    with server(serve) as port:
        return ConversationTarget("127.0.0.1", port, protocol, Bounds(seconds=1.0)).run(play(kind, at))


@pytest.mark.parametrize("protocol", ["kafka", "pulsar", "joyqueue"])
def test_a_server_that_answers_has_no_findings(protocol: str) -> None:
    answers = ScriptedServer(protocol, play("sound", seed="2"))
    target = ConversationTarget("127.0.0.1", answers.port, protocol, Bounds(seconds=5.0))
    try:
        for seed in "345":  # a connection may end early, as after REMOVE_CONNECTION of JMQ4
            for kind in ("sound", "in pieces", "damaged frame"):
                assert target.run(play(kind, seed=seed)).kind in ("accepted", "refused")
    finally:
        answers.close()
    assert answers.answers > 2 * REQUESTS


@pytest.mark.parametrize(
    ("kind", "at", "expected"),
    [
        ("answer twice", 2, "rule"),
        ("answer to nobody", 2, "rule"),
        ("answer left out", 2, "unanswered"),
        ("ends inside a frame", 2, "dropped"),
    ],
)
def test_a_server_that_does_something_wrong(kind: str, at: int, expected: str) -> None:
    answers = ScriptedServer("kafka", play(kind, at, seed="2"))
    try:
        target = ConversationTarget("127.0.0.1", answers.port, "kafka", Bounds(seconds=1.0))
        assert target.run(play("sound")).kind == expected
    finally:
        answers.close()


@pytest.mark.parametrize("kind", [kind for kind in QUESTIONS if kind != "opening left out"])
def test_each_kind_of_question_sends_its_requests(kind: str) -> None:
    data = bytearray()

    def listen(connection: socket.socket) -> None:
        while more := connection.recv(1 << 16):
            data.extend(more)

    outcome(listen, kind)
    follower = Conversation("kafka")
    events = [*follower.receive("client", bytes(data)), *follower.close()]
    frames = [event for event in events if isinstance(event, Frame) and event.decoded.clean]
    ended = any(isinstance(event, Quarantined) for event in events)
    assert ended == (kind == "ends inside a frame") or kind == "damaged frame"
    assert len(frames) == {"sound": 1, "in pieces": 1, "request twice": 2}.get(kind, len(frames))


def test_the_opening_is_left_out() -> None:
    apis: list[str] = []

    def listen(connection: socket.socket) -> None:
        for event in Conversation("pulsar").receive("client", connection.recv(1 << 16)):
            if isinstance(event, Frame):
                apis.append(event.description.api or "")

    outcome(listen, "sound", protocol="pulsar")
    outcome(listen, "opening left out", protocol="pulsar")
    assert apis[0] == "CONNECT"
    assert "CONNECT" not in apis[1:]


def test_the_command_finds_and_replays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with server(lambda connection: connection.recv(100) and None) as port:
        target = ["--target", f"tcp:127.0.0.1:{port}", "--conversation", "--corpus", str(tmp_path)]
        assert fuzz("kafka", *target, "--kind", "sound", "--count", "3", "--output", "json") == 1
        findings = json.loads(capsys.readouterr().out)["findings"]
        assert {finding["finding"] for finding in findings} == {"dropped"}
        assert fuzz("--replay", findings[0]["file"], *target[:3]) == 1
        assert f"sound, conversation {findings[0]['case']['seed']}; wirekit: sound" in capsys.readouterr().out
        assert fuzz("--replay", findings[0]["file"], *[each for each in target[:3] if each != "--conversation"]) == 2
    assert fuzz("kafka", "--target", "python:json:loads", "--conversation", "--count", "1") == 2


@pytest.mark.parametrize("target", [["tcp:127.0.0.1:1", "--conversation"], ["client:true {port}"]])
def test_a_protocol_without_a_pairing_is_refused_before_the_target_runs(
    target: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    frame = Layout(Struct("size" / Length(uint8, frame=True), "kind" / uint8))
    with declared(Protocol("unpaired", "Unpaired", {"frame": frame}, client="frame", server="frame")):
        assert fuzz("unpaired", "--target", *target, "--count", "1") == 2
    assert "unpaired declares no Pairing" in capsys.readouterr().err


def test_kinds_of_servers_and_clients_differ() -> None:
    assert {Plays("kafka", 1, offered=QUESTIONS)[index].kind for index in range(12)} == set(QUESTIONS)
