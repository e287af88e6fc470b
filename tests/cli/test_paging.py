"""On a terminal long output goes to the pager and short output does not; Ctrl-C is quiet from the beginning."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

ROWS = 24


def on_terminal(tmp_path: Path, *arguments: str, pager: str = "", **variables: str) -> tuple[str, str]:
    """(What a command shows on a terminal of 24 lines, what its pager got)."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, 80, 0, 0))
    shown = tmp_path / "shown"
    command = tmp_path / "pager"
    command.write_text(f"#!/bin/sh\n{pager or f'cat > {shown}'}\n")
    command.chmod(0o755)
    environment = os.environ | {"TERM": "xterm", "PAGER": str(command), "COLUMNS": "80", "LINES": str(ROWS)}
    environment |= variables
    program = [sys.executable, "-m", "wirekit", *arguments]
    with subprocess.Popen(program, stdin=theirs, stdout=theirs, stderr=theirs, env=environment):
        os.close(theirs)
        pieces = []
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            pieces.append(piece)
    os.close(ours)
    return b"".join(pieces).decode(), shown.read_text() if shown.exists() else ""


def test_output_longer_than_the_terminal_goes_to_the_pager(tmp_path: Path) -> None:
    terminal, paged = on_terminal(tmp_path, "schemas", "kafka")
    assert terminal == ""
    assert paged.count("\n") > ROWS
    assert "\x1b[1m" in paged  # colours as on the terminal


@pytest.mark.parametrize("arguments", [["schemas", "kafka.message"], ["schemas", "kafka", "--no-pager"]])
def test_short_output_and_no_pager_go_to_the_terminal(tmp_path: Path, arguments: list[str]) -> None:
    terminal, paged = on_terminal(tmp_path, *arguments)
    assert "kafka.message" in terminal
    assert paged == ""


def test_messages_wait_for_the_pager(tmp_path: Path) -> None:
    capture = Path(__file__).parents[2] / "fixtures" / "pcap" / "pulsar-corrupt_checksum.pcap"
    terminal, paged = on_terminal(tmp_path, "frames", str(capture))
    assert terminal.split(" ", 2)[2] == "1 check failed: crc32c ×1\r\n"
    assert "1 message" in paged


@pytest.mark.parametrize("variables", [{"PAGER": "'less"}, {"PAGER": " "}, {"COLUMNS": "0", "PAGER": "cat"}])
def test_settings_of_a_terminal_that_make_no_sense(tmp_path: Path, variables: dict[str, str]) -> None:
    capture = Path(__file__).parents[2] / "fixtures" / "pcap" / "jmq4-odd.pcap"
    terminal, _ = on_terminal(tmp_path, "frames", str(capture), **variables)
    assert "Traceback" not in terminal
    assert "PRODUCE_MESSAGE v4" in terminal


def test_a_pager_that_is_left_is_no_error(tmp_path: Path) -> None:
    terminal, _ = on_terminal(tmp_path, "schemas", pager="exit 0")
    assert terminal == ""


def test_an_interrupt_while_wirekit_loads_is_quiet(tmp_path: Path) -> None:
    (tmp_path / "wirekit").mkdir()
    (tmp_path / "wirekit" / "__init__.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    code = "import wirekit_command; wirekit_command.main()"
    source = Path(__file__).parents[2] / "src" / "wirekit_command"
    (tmp_path / "wirekit_command").symlink_to(source)
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    completed = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=False)
    assert (completed.returncode, completed.stdout, completed.stderr) == (-signal.SIGINT, b"", b"")


@pytest.mark.parametrize(
    ("library", "arguments"), [("click", ["--version"]), ("duckdb", ["sql", "FROM calls", __file__])]
)
def test_an_interrupt_while_a_library_loads_is_quiet(library: str, arguments: list[str], tmp_path: Path) -> None:
    """An extension may not return from it: duckdb ended the process by an abort, with a traceback."""
    (tmp_path / f"{library}.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "wirekit", *arguments]
    completed = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert (completed.returncode, completed.stdout, completed.stderr) == (-signal.SIGINT, b"", b"")
