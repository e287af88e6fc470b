"""The command lines of docs/fuzzing.md run, with few cases, against a codec, a parser, servers and a client."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.conftest import FIXTURES
from tests.fuzz_command.test_command_line import fuzz
from tests.fuzz_command.test_scripted_clients import play
from wirekit.fuzz.scripted_server import ScriptedServer

PAGE = (FIXTURES.parent / "docs" / "fuzzing.md").read_text(encoding="utf-8")
LINES = re.findall(r"^wirekit fuzz (.+)$", PAGE, re.M)
CODEC = """
import wirekit

def decode(data):
    return wirekit.to_json(wirekit.decode(data, "kafka.fetch.response.v2", strict=True).value)
"""
CRASHES = "#!/bin/sh\nkill -SEGV $$\n"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mylib").mkdir()
    Path("mylib/codec.py").write_text(CODEC)
    for name in ("parser", "client"):
        Path(name).write_text(CRASHES)
        Path(name).chmod(0o755)


def line(part: str) -> str:
    (match,) = [each for each in LINES if part in each]
    return match


def run(text: str, *more: str, port: int = 0) -> int:
    """The exit status of a line with a port of a server that there is."""
    return fuzz(*shlex.split(re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{port}", text)), *more)


def test_the_page_has_six_lines() -> None:
    assert len(LINES) == 6


def test_a_function() -> None:
    assert run(line("python:"), "--count", "20") == 0


def test_a_command_and_its_replay(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(line("--corpus"), "--count", "2") == 1
    assert "<testsuite" in Path("fuzz.xml").read_text()
    replay = line("--replay")
    (named,) = re.findall(r"corpus/findings/crash-\S+\.bin", replay)
    stored = sorted(Path("corpus/findings").glob("crash-*.bin"))
    capsys.readouterr()
    assert run(replay.replace(named, str(stored[0]))) == 1
    assert "crash" in capsys.readouterr().out


@pytest.mark.parametrize(("part", "protocol"), [("kafka.metadata", "kafka"), ("--conversation", "pulsar")])
def test_a_server(part: str, protocol: str) -> None:
    answers = ScriptedServer(protocol, play("sound", seed="2"))
    try:
        assert run(line(part), "--count", "3", port=answers.port) == 0
    finally:
        answers.close()


def test_a_client(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(line("client:"), "--count", "2") == 1
    assert "crash" in capsys.readouterr().out
