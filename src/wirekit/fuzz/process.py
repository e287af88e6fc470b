"""A child process whose time, memory and output are bounded."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any

LARGEST_OUTPUT = 1 << 20
"""The maximum bytes of standard output that are kept."""
LARGEST_COMPLAINT = 1 << 16
"""Bytes of standard error that are kept: the last ones."""
STEP = 0.02
"""Seconds between two checks of the memory of a child."""
PAGE = os.sysconf("SC_PAGE_SIZE")

DONE = "done"
ENDED = "ended"
HANG = "hang"
MEMORY = "memory"


class Child:
    """A running command with both of its outputs.

    Args:
        command: its words.
        stdin: as for ``subprocess.Popen``.

    Attributes:
        output: the beginning of standard output; a reader may remove bytes.
        complaint: the end of standard error.
        status: exit status once it has ended, negative for a signal.
        measured: its memory in bytes when it was last measured.
    """

    def __init__(self, command: Sequence[str], stdin: Any) -> None:
        self.process = subprocess.Popen(
            command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        self.output = bytearray()
        self.complaint = bytearray()
        self.status: int | None = None
        self.measured = 0
        self._selector = selectors.DefaultSelector()
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        for stream in (self.process.stdout, self.process.stderr):
            os.set_blocking(stream.fileno(), False)
            self._selector.register(stream, selectors.EVENT_READ)

    def wait(self, seconds: float, memory: int, is_over: Callable[[], bool] = lambda: False) -> str:
        """Reads until ``is_over`` is true, the child has ended, or a bound is reached: DONE, ENDED, HANG or MEMORY.

        Args:
            seconds: how long at most.
            memory: bytes that the child may hold.
            is_over: called after each read; ends the wait if true.
        """
        end = time.monotonic() + seconds
        while not is_over():
            seconds_left = end - time.monotonic()
            if seconds_left <= 0:
                return HANG
            open_ = self._read(min(seconds_left, STEP))
            if not open_ and self._has_ended(end):
                return DONE if is_over() else ENDED
            self.measured = self.resident()
            if self.measured > memory:
                return MEMORY
        return DONE

    def _has_ended(self, end: float) -> bool:
        """Whether the child has ended, and its outputs are closed or empty."""
        if not self._selector.get_map():
            try:
                self.process.wait(max(0.0, min(STEP, end - time.monotonic())))
            except subprocess.TimeoutExpired:
                return False
        self.status = self.process.poll()
        return self.status is not None

    def _read(self, seconds: float) -> bool:
        """Reads the available output; returns whether more may be available at once."""
        if not self._selector.get_map():
            return False
        events = self._selector.select(seconds)
        for key, _ in events:
            data = os.read(key.fd, 1 << 16)
            if not data:
                self._selector.unregister(key.fileobj)
            elif key.fileobj is self.process.stdout:
                self.output += data[: LARGEST_OUTPUT - len(self.output)]
            else:
                self.complaint += data
                del self.complaint[:-LARGEST_COMPLAINT]
        return bool(events) and bool(self._selector.get_map())

    def resident(self) -> int:
        """Resident memory of the child in bytes; 0 if the system does not provide it."""
        try:
            with open(f"/proc/{self.process.pid}/statm", "rb") as file:
                return int(file.read().split()[1]) * PAGE
        except (OSError, IndexError, ValueError):
            return 0

    def kill(self) -> None:
        """Ends the child and all processes of its session, and releases its resources."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        self.process.wait()
        self._selector.close()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    pass
