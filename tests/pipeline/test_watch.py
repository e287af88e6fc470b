"""``--watch`` adds each capture once it is complete, and a signal stops it without a trace."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.pipeline.test_bundles import JOYQUEUE, PULSAR, content, pipeline, rotation
from wirekit.cli import pipeline as command
from wirekit.pipeline.commits import read_commits
from wirekit.pipeline.folders import folder as folder_of
from wirekit.pipeline.inputs import Input, find_inputs
from wirekit.pipeline.watch import Settling, settled


class Clocks:
    """A monotonic clock and a wall clock, both in seconds."""

    def __init__(self) -> None:
        self.moment = self.wall = 1000.0

    def settling(self) -> Settling:
        return Settling(10, clock=lambda: self.moment, now=lambda: int(self.wall * 1e9))

    def wait(self, seconds: float) -> None:
        self.moment += seconds
        self.wall += seconds


def file(name: str, size: int, changed: float) -> Input:
    return Input(0, name, name, size, int(changed * 1e9))


def test_a_file_is_complete_when_it_has_not_changed_for_some_time() -> None:
    clocks = Clocks()
    settling = clocks.settling()
    assert settling.complete([file("old", 1, 990), file("new", 1, 991)]) == {"old"}
    clocks.wait(9)
    assert settling.complete([file("old", 1, 990), file("new", 2, 1009)]) == {"old"}
    clocks.wait(9)
    assert settling.complete([file("new", 2, 1009)]) == set()
    clocks.wait(1)
    assert settling.complete([file("new", 2, 1009), file("late", 1, 500)]) == {"new", "late"}
    assert settling.complete([file("new", 3, 1019)]) == set()


@pytest.mark.parametrize("jump", [-10_000, 10_000])
def test_the_clock_of_the_machine_may_jump(jump: float) -> None:
    clocks = Clocks()
    settling = clocks.settling()
    assert settling.complete([file("new", 1, 1000)]) == set()
    clocks.wall += jump
    assert settling.complete([file("new", 2, clocks.wall)]) == set()
    clocks.wait(9)
    assert settling.complete([file("new", 2, 1000 + jump)]) == set()
    clocks.wait(1)
    assert settling.complete([file("new", 2, 1000 + jump)]) == {"new"}


def test_an_object_is_complete() -> None:
    assert Settling(10).complete([file("s3://captures/a.pcap", 1, time.time())]) == {"s3://captures/a.pcap"}


def test_a_rotation_ends_before_its_first_incomplete_file(tmp_path: Path) -> None:
    paths = [str(path) for path in rotation(tmp_path / "all", 5, 12)]
    inputs = find_inputs([tmp_path / "all", JOYQUEUE])
    names = [each.name for each in settled(inputs, {paths[0], paths[2], str(JOYQUEUE)}, {})]
    assert names == [paths[0], str(JOYQUEUE)]
    assert [each.number for each in settled(inputs, {*paths, str(JOYQUEUE)}, {})] == [0, 1, 2, 3]


def test_a_bundle_waits_for_all_of_its_files(tmp_path: Path) -> None:
    for name in ("a.pcap", "b.pcap", "c.pcap"):
        shutil.copy2(PULSAR, tmp_path / name)
    a, b, c = (str(tmp_path / name) for name in ("a.pcap", "b.pcap", "c.pcap"))
    commits = {0: {"inputs": [{"path": a}, {"path": b}]}}
    assert [each.name for each in settled(find_inputs([tmp_path]), {a, c}, commits)] == [c]


def test_captures_are_added_as_they_are_completed(tmp_path: Path) -> None:
    folder, lake = tmp_path / "captures", tmp_path / "lake"
    folder.mkdir()
    command = [sys.executable, "-m", "wirekit", "pipeline", str(folder), "--output", str(lake), "--watch"]
    with subprocess.Popen([*command, "--settle", "3"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        shutil.copy2(PULSAR, folder / "first.pcap")
        added = [process.stdout.readline()]
        whole = JOYQUEUE.read_bytes()
        for cut in (1000, len(whole)):  # somebody writes it: never is a part of it read
            (folder / "second.pcap").write_bytes(whole[:cut])
            time.sleep(1)
        added.append(process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, b"", b"wirekit: stopped\n")
    assert [b"runs +1" in line for line in added] == [True, True]
    assert not (lake / ".wirekit").exists()
    pipeline(tmp_path / "whole", folder)
    assert content(lake) == content(tmp_path / "whole")
    assert sum(bool(commit["inputs"]) for commit in read_commits(folder_of(lake)).values()) == 2


def test_the_pause_does_not_grow_with_the_time_that_adding_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds, pauses = 0.0, []

    def spend(more: float, value: object) -> object:
        nonlocal seconds
        seconds += more
        return value

    def sleep(pause: float) -> None:
        pauses.append(pause)
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "time", SimpleNamespace(monotonic=lambda: seconds, sleep=sleep))
    monkeypatch.setattr(command, "_report_added", lambda *_, **__: 0)
    look: Any = lambda: spend(2, find_inputs([PULSAR]))  # noqa: E731
    add: Any = lambda _: spend(1000, SimpleNamespace(manifest={"tables": {}}))  # noqa: E731
    command._watch(look, add, str(tmp_path), 0, strict=False)
    assert (seconds, pauses) == (1002, [command.PAUSE * 2])
