"""The first Ctrl-C ends a pipe, as it ends tcpdump: the command finishes with what it has read, and exits with 130."""

from __future__ import annotations

import array
import fcntl
import json
import os
import select
import shlex
import signal
import subprocess
import sys
import termios
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.cli.running import Run
from tests.conftest import FIXTURES
from wirekit.capture.files import open_capture
from wirekit.cli import group, pipes

PCAP, PCAPNG = FIXTURES / "pcap" / "jmq4-consume.pcap", FIXTURES / "pcap" / "kafka-0.10.2.2-4-clients.pcapng"
QUERY = shlex.quote("SELECT api, count(*) AS calls FROM calls GROUP BY api ORDER BY api")


def started(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "wirekit", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def wait_until_read(pipe: int) -> None:
    """Waits until a pipe is empty; then who reads it is past its first read."""
    size = array.array("i", [1])
    until = time.monotonic() + 60
    while size[0] and time.monotonic() < until:
        fcntl.ioctl(pipe, termios.FIONREAD, size)
        time.sleep(0.01)
    assert not size[0], "nobody reads"


def interrupted(*arguments: str, stdin: bytes, ends: bool = True) -> tuple[int, str, list[str]]:
    """Status, output and messages of a command that gets SIGINT when it has read its standard input.

    Args:
        stdin: the bytes that it gets.
        ends: whether standard input ends when the command is interrupted.
    """
    reading, writing = os.pipe()
    process = started(*arguments, stdin=reading)
    with os.fdopen(writing, "wb") as pipe:
        pipe.write(stdin)
        pipe.flush()
        wait_until_read(reading)
        os.close(reading)
        process.send_signal(signal.SIGINT)
        if ends:
            pipe.close()
        out, err = process.communicate(timeout=60)
    return process.returncode, out.decode(), err.decode().splitlines()


def cut(path: Path, size: int, tmp_path: Path) -> tuple[bytes, bytes]:
    """The first bytes of a capture, which end inside a record, and the whole records in them."""
    (tmp_path / "cut").write_bytes(path.read_bytes()[:size])
    with open_capture(tmp_path / "cut") as capture:
        assert list(capture.items())
        assert capture.damage is not None
        return capture.read(0, size), capture.read(0, capture.walked)


@pytest.mark.parametrize(
    ("command", "path", "size"),
    [
        ("frames --output table", PCAPNG, 40_001),
        ("frames", PCAP, 2_000),
        ("messages", PCAPNG, 40_001),
        ("inspect", PCAP, 2_000),
        ("inspect --rules", PCAP, 4_000),
        ("inspect --connections", PCAPNG, 40_001),
        (f"sql {QUERY}", PCAP, 2_000),
    ],
)
def test_a_command_finishes_with_what_it_has_read(command: str, path: Path, size: int, tmp_path: Path) -> None:
    beginning, whole = cut(path, size, tmp_path)
    status, out, err = interrupted(*shlex.split(command), "-", stdin=beginning)
    ended = Run(*shlex.split(command), "-", stdin=whole)
    assert ended.out
    assert (status, out) == (130, ended.out.decode())
    err.remove(f"wirekit: -: interrupted after {size:,} bytes; the output covers what was read")
    assert err == ended.err.splitlines()


def test_the_writer_goes_on() -> None:
    status, out, err = interrupted("inspect", "-", stdin=PCAP.read_bytes(), ends=False)
    assert (status, out) == (130, Run("inspect", "-", stdin=PCAP.read_bytes()).out.decode())
    assert err == ["wirekit: -: interrupted after 5,033 bytes; the output covers what was read"]


@pytest.mark.parametrize("road", ["columns", "objects"])
def test_a_pipeline_completes_the_tables(road: str, tmp_path: Path) -> None:
    beginning, whole = cut(PCAPNG, 40_001, tmp_path)
    status, _, err = interrupted("pipeline", "--road", road, "-", "-o", str(tmp_path / "lake"), stdin=beginning)
    assert (status, "interrupted after 40,001 bytes" in err[0]) == (130, True)
    query = shlex.split(QUERY)[0]
    assert Run("sql", query, str(tmp_path / "lake")).lines == Run("sql", query, "-", stdin=whole).lines
    assert Run("sql", "SELECT damaged, unreadable FROM inputs", str(tmp_path / "lake")).lines == [
        {"damaged": None, "unreadable": None}
    ]


@pytest.mark.parametrize("command", ["inspect", f"sql {QUERY}"])
def test_compressed_traffic(command: str, tmp_path: Path) -> None:
    beginning, whole = cut(PCAPNG, 40_001, tmp_path)
    packer = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    packed = packer.compress(beginning) + packer.flush(zlib.Z_SYNC_FLUSH)
    status, out, err = interrupted(*shlex.split(command), "-", stdin=packed)
    assert (status, out) == (130, Run(*shlex.split(command), "-", stdin=whole).out.decode())
    assert "interrupted after" in err[0]


WRITER = """
import signal, sys
data = open(sys.argv[1], "rb").read()

def end(*_):
    sys.stdout.buffer.write(data[24:int(sys.argv[2])])
    sys.stdout.buffer.flush()
    sys.exit()

signal.signal(signal.SIGINT, end)
sys.stdout.buffer.write(data[:24])
sys.stdout.buffer.flush()
while True:
    signal.pause()
"""
"""Writes the header of a capture, and at Ctrl-C the packets, as tcpdump does without ``-U``."""


@pytest.mark.parametrize("size", [2_000, PCAP.stat().st_size])
def test_the_last_bytes_of_the_writer_are_read(size: int, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    arguments = [sys.executable, "-c", WRITER, str(PCAP), str(size)]
    with subprocess.Popen(arguments, stdout=writing, process_group=0) as writer:
        os.close(writing)
        select.select([reading], [], [])  # the writer has begun
        process = started("frames", "-", stdin=reading, process_group=writer.pid)
        wait_until_read(reading)
        os.close(reading)
        os.killpg(writer.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    whole = PCAP.read_bytes() if size > 2_000 else cut(PCAP, size, tmp_path)[1]
    assert (process.returncode, out) == (130, Run("frames", "-", stdin=whole).out)
    assert f"wirekit: -: interrupted after {size:,} bytes; the output covers what was read" in err.decode()


def test_a_second_interrupt_stops_at_once() -> None:
    reading, writing = os.pipe()
    query = "SELECT m.* FROM messages m, range(10)"  # more than fits into the pipe that is not read
    process = started("sql", query, "-", stdin=reading)
    assert process.stdout is not None
    assert process.stderr is not None
    with os.fdopen(writing, "wb") as pipe:
        pipe.write(PCAPNG.read_bytes())
        pipe.flush()
        wait_until_read(reading)
        process.send_signal(signal.SIGINT)
        assert b"interrupted after" in process.stderr.readline()
        assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    os.close(reading)
    assert (process.returncode, err) == (130, b"interrupted\n")


def test_nothing_was_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    process = started("inspect", str(tmp_path / "pipe"))
    with open(tmp_path / "pipe", "wb"):  # waits for the reader
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"interrupted\n")


def test_a_regular_file_stops_at_once() -> None:
    process = started("frames", "--road", "objects", str(PCAPNG))
    assert process.stdout is not None
    first = process.stdout.readline()  # the rest does not fit into the pipe
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err.splitlines()[-1]) == (130, b"interrupted")
    assert len(first + out) < len(Run("frames", "--road", "objects", str(PCAPNG)).out)
    assert json.loads(first)


def test_the_library_leaves_signals_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    code = "import sys, wirekit; from wirekit.capture.files import open_capture; open_capture(sys.argv[1])"
    command = [sys.executable, "-c", code, str(tmp_path / "pipe")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    with open(tmp_path / "pipe", "wb") as pipe:
        pipe.write(PCAP.read_bytes())
        pipe.flush()
        process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)  # the pipe has ended, in case that the signal came just before a read
    assert process.returncode == -signal.SIGINT
    assert err.splitlines()[-1] == "KeyboardInterrupt"


def test_the_first_interrupt_ends_all_pipes(tmp_path: Path) -> None:
    paths = [tmp_path / "first", tmp_path / "second"]
    for path in paths:
        os.mkfifo(path)
    # With a selection, the command examines all inputs before it reads one.
    process = started("messages", "--protocol", "kafka", "--api", "produce", *map(str, paths))
    with ExitStack() as stack:
        pipes = []
        for path in paths:
            pipes.append(stack.enter_context(open(path, "wb")))
            pipes[-1].write(PCAPNG.read_bytes()[:4_000])
            pipes[-1].flush()
            wait_until_read(pipes[-1].fileno())
        pipes[0].write(PCAPNG.read_bytes()[4_000:5_000])
        pipes[0].flush()
        wait_until_read(pipes[0].fileno())
        time.sleep(0.5)  # it waits for more
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    for path, size in zip(paths, ("5,000", "4,000"), strict=True):
        assert f"wirekit: {path}: interrupted after {size} bytes; the output covers what was read" in err.decode()


def test_a_command_in_the_background_ignores_interrupts() -> None:
    """A script starts it so that it ignores SIGINT."""
    code = "import signal, sys, wirekit_command; signal.signal(signal.SIGINT, signal.SIG_IGN); wirekit_command.main()"
    reading, writing = os.pipe()
    command = [sys.executable, "-c", code, "frames", "-"]
    process = subprocess.Popen(command, stdin=reading, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with os.fdopen(writing, "wb") as pipe:
        pipe.write(PCAP.read_bytes()[:2_000])
        pipe.flush()
        wait_until_read(reading)
        os.close(reading)
        process.send_signal(signal.SIGINT)
        pipe.write(PCAP.read_bytes()[2_000:])
        pipe.close()
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, Run("frames", str(PCAP)).out.replace(bytes(PCAP), b"-"), b"")


def test_a_thread_reads_standard_input() -> None:
    code = (
        "from threading import Thread; from wirekit.cli import group;"
        "thread = Thread(target=lambda: group.main(['frames', '-'], standalone_mode=False)); thread.start();"
        "thread.join()"
    )
    with PCAP.open("rb") as file:
        command = f"cat | {shlex.join([sys.executable, '-c', code])}"
        completed = subprocess.run(command, shell=True, stdin=file, capture_output=True, check=True)
    assert (completed.stdout, completed.stderr) == (Run("frames", str(PCAP)).out.replace(bytes(PCAP), b"-"), b"")


def test_an_interruption_ends_with_its_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process may run another command, which reads its pipes to their ends."""
    pipe = tmp_path / "trace.pcap"
    os.mkfifo(pipe)
    monkeypatch.setattr(pipes._interruption, "came", True)
    with ThreadPoolExecutor() as pool:
        writing = pool.submit(pipe.write_bytes, PCAP.read_bytes())
        result = CliRunner().invoke(group, ["frames", str(pipe)], standalone_mode=False)
        writing.result()
    assert (pipes.interrupted(), "interrupted" in result.stderr) == (False, False)
    assert len(result.stdout.splitlines()) == len(Run("frames", str(PCAP)).lines)
