"""A pager for output that is longer than the terminal: ``$PAGER``, or ``less`` where it is installed."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

OPTIONS_OF_LESS = "FRX"
"""For ``less`` without ``$LESS``: exit if all fits on a screen, show colours, do not clear the screen."""


class _Paged(io.RawIOBase):
    """Standard output: straight to the terminal, or held until there is more than a screen, then to the pager."""

    def __init__(self, terminal: Any) -> None:
        self.waits = False
        self._over = False
        self._terminal = terminal
        self._buffer = bytearray()
        self._rows = shutil.get_terminal_size().lines - 1
        self.pager: subprocess.Popen[bytes] | None = None

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        number: int = self._terminal.fileno()
        return number

    def write(self, data: Any) -> int:
        if self._over:
            pass
        elif self.pager is not None and self.pager.stdin is not None:
            self.pager.stdin.write(data)
        elif not self.waits:
            self._terminal.buffer.write(data)
            self._terminal.buffer.flush()
        else:
            self._buffer += data
            if self._buffer.count(b"\n") >= self._rows:
                self._start()
        return len(data)

    def _start(self) -> None:
        environment = {"LESS": OPTIONS_OF_LESS} | os.environ
        try:
            self.pager = subprocess.Popen(_command(), stdin=subprocess.PIPE, env=environment)
        except OSError:
            self.waits = False
        self.write(bytes(self._buffer))
        self._buffer.clear()

    def end(self) -> None:
        """Shows the held output; waits until the user leaves the pager."""
        if self.pager is None:
            self.waits = False
            self.write(bytes(self._buffer))
            self._over = True
            return
        self._over = True
        try:
            if self.pager.stdin is not None:
                self.pager.stdin.close()
        except BrokenPipeError:
            pass
        while True:
            try:
                self.pager.wait()
                return
            except KeyboardInterrupt:  # Ctrl-C is for the pager
                continue


class _Remarks(io.TextIOBase):
    """Standard error: held while the pager has the screen."""

    def __init__(self, terminal: Any, paged: _Paged) -> None:
        self.held = io.StringIO()  # refuses bytes as a terminal does: click tries which of both a stream takes
        self._terminal = terminal
        self._paged = paged

    def write(self, text: str) -> int:
        if self._paged.pager is None:
            self._terminal.write(text)
            self._terminal.flush()
        else:
            self.held.write(text)
        return len(text)

    def isatty(self) -> bool:
        return bool(self._terminal.isatty())

    def fileno(self) -> int:
        number: int = self._terminal.fileno()
        return number


@contextmanager
def paging() -> Iterator[None]:
    """Sends standard output through a pager if it is long, a command requests it, and both ends are terminals."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):
        yield
        return
    terminal, errors = sys.stdout, sys.stderr
    paged = _Paged(terminal)
    remarks = _Remarks(errors, paged)
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(paged), terminal.encoding, terminal.errors, line_buffering=True)
    sys.stderr = remarks
    try:
        yield
    finally:
        try:
            sys.stdout.flush()
        except BrokenPipeError:  # the reader has seen enough
            pass
        paged.end()
        sys.stdout, sys.stderr = terminal, errors
        errors.write(remarks.held.getvalue())


def no_pager_option() -> click.Option:
    """The option of commands whose output may be long."""
    return click.Option(
        ["--no-pager"],
        is_flag=True,
        expose_value=False,
        callback=_choose,
        help="Do not send long output to $PAGER or less.",
    )


def _choose(context: click.Context, option: click.Parameter, refused: bool) -> None:
    paged = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    if isinstance(paged, _Paged):
        command = _command()
        paged.waits = not refused and command not in ([], ["cat"]) and bool(shutil.which(command[0]))


def _command() -> list[str]:
    """The words of ``$PAGER``; none if they are not words for a shell."""
    try:
        return shlex.split(os.environ.get("PAGER", "less"))
    except ValueError:  # a quote is not closed
        return []
