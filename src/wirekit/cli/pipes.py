"""Input that can be read only once: standard input and named pipes. The first Ctrl-C ends it, as it ends tcpdump.

A command that reads a pipe needs no code for this: it finishes with the bytes that it has, as if the pipe ended there.
"""

from __future__ import annotations

import os
import select
import signal
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import BufferedReader, RawIOBase
from typing import TYPE_CHECKING, Any

import click

from wirekit.cli.common import STANDARD_INPUT, STANDARD_INPUT_FILE, say, standard_input
from wirekit.errors import WireError, plural
from wirekit.storage import is_remote

if TYPE_CHECKING:
    from types import FrameType

LAST_BYTES_SECONDS = 2.0
"""How long a pipe is read after Ctrl-C.

In a terminal, Ctrl-C ends the writer of the pipe, too, which then writes the bytes in its buffer: tcpdump without
``-U`` up to 4 KiB.
"""
_PIECE = 1 << 20  # bytes of a capture that are copied at once


class Pipe(BufferedReader):
    """A pipe that ends at the first Ctrl-C while it is read; a second Ctrl-C ends the command at once.

    Args:
        source: the pipe; nothing must have been read from it.
        name: its name in messages.
    """

    def __init__(self, source: BufferedReader, name: str) -> None:
        self._interruptible = _Interruptible(source, name)
        super().__init__(self._interruptible)

    @property
    def stopped(self) -> bool:
        """Whether it has ended because of Ctrl-C, so that its last record may be incomplete."""
        return self._interruptible.stopped


class _Interruptible(RawIOBase):
    def __init__(self, source: BufferedReader, name: str) -> None:
        self.stopped = False
        self._source, self._name = source, name
        self._size, self._over = 0, False
        self._deadline: float | None = None

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._source.fileno()

    def readinto(self, buffer: Any) -> int:
        if self._over:
            return 0
        _interruption.listen(self)
        size = os.readv(self.fileno(), [buffer]) if self._has_more() else 0
        self._size += size
        if not size:
            self._end()
        return size

    def _has_more(self) -> bool:
        """Waits for bytes or for the end of the pipe; false if Ctrl-C comes first, or came some time before."""
        if _interruption.wait(self.fileno()):
            return True
        now = time.monotonic()
        self._deadline = self._deadline or now + LAST_BYTES_SECONDS
        return now < self._deadline and bool(select.select([self.fileno()], [], [], self._deadline - now)[0])

    def _end(self) -> None:
        self._over = True
        _interruption.forget(self)
        if _interruption.came:
            if not self._size:
                raise KeyboardInterrupt
            self.stopped = True
            say(f"{self._name}: interrupted after {plural(self._size, 'byte')}; the output covers what was read")

    def close(self) -> None:
        if not self.closed:
            _interruption.forget(self)
            self._source.close()
        super().close()


class _Interruption:
    """The first Ctrl-C while pipes are read; the next one goes to the handler that was set before.

    A thread other than the main one does not listen, nor does a process that ignores SIGINT, such as one that a script
    started in the background.

    Attributes:
        came: whether Ctrl-C has ended the pipes.
    """

    def __init__(self) -> None:
        self.came = False
        self._listeners: set[_Interruptible] = set()
        self._handler: Any = None  # the one before
        self._descriptor = -1  # to which Python wrote signals before
        self._signals: tuple[int, int] | None = None  # a pipe to which Python writes each signal

    def listen(self, reader: _Interruptible) -> None:
        """Listens until the pipe has ended."""
        if self.came or reader in self._listeners or threading.current_thread() is not threading.main_thread():
            return
        if not self._listeners:
            self._handler = signal.getsignal(signal.SIGINT)
            if self._handler in (signal.SIG_IGN, None):
                return
            self._signals = self._signals or os.pipe()
            os.set_blocking(self._signals[1], False)
            self._descriptor = signal.set_wakeup_fd(self._signals[1], warn_on_full_buffer=False)
            signal.signal(signal.SIGINT, self._interrupt)
        self._listeners.add(reader)

    def forget(self, reader: _Interruptible) -> None:
        """The pipe has ended."""
        if self._listeners:
            self._listeners.discard(reader)
            if not self._listeners:
                self._restore()

    def wait(self, pipe: int) -> bool:
        """Waits for bytes or for the end of a pipe; false if Ctrl-C has come."""
        while not self.came and self._listeners and self._signals:
            signals = self._signals[0]
            if signals not in select.select([pipe, signals], [], [])[0]:
                return True
            if signal.SIGINT in os.read(signals, 64):
                self.came = True
        return not self.came

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        self._listeners.clear()
        self._restore()

    def _restore(self) -> None:
        signal.signal(signal.SIGINT, self._handler)
        signal.set_wakeup_fd(self._descriptor)


_interruption = _Interruption()


def interrupted() -> bool:
    """Whether Ctrl-C has ended a pipe since the command began."""
    return _interruption.came


def forget_interruption() -> None:
    """Begins another command in the same process, which reads its pipes to their ends."""
    _interruption.came = False


def piped(path: str) -> Pipe | None:
    """The stream of standard input or of a pipe, which can be read only once; None for a regular file."""
    if is_remote(path) or (path != STANDARD_INPUT and os.path.isfile(path)):
        return None
    if path not in _pipes or _pipes[path].closed:
        if path != STANDARD_INPUT:
            source = open(path, "rb")  # noqa: SIM115  # closed by its reader
        else:
            source = standard_input()
            if source.isatty():
                raise click.UsageError(
                    "standard input is a terminal; name a file, or pass one as standard input: - < FILE"
                )
            if stat.S_ISREG(os.fstat(source.fileno()).st_mode):
                return None
        _pipes[path] = Pipe(source, path)
    return _pipes[path]


_pipes: dict[str, Pipe] = {}
"""Open pipes, by path: a pipe can be opened only once, and is examined before it is read."""


@contextmanager
def reopenable(path: str) -> Iterator[str]:
    """The path of a file that may be opened more than once: this one, or a copy of a pipe or of standard input."""
    source = piped(path)
    if source is None:
        yield STANDARD_INPUT_FILE if path == STANDARD_INPUT else path
        return
    import shutil
    import tempfile

    from wirekit.capture.files.content import copying

    with ExitStack() as stack:
        # A copy that does not fit is closed inside ``copying``, because closing writes again, and fails again.
        with copying(), ExitStack() as unfinished:
            copy = unfinished.enter_context(tempfile.NamedTemporaryFile(prefix="wirekit_"))
            with source:
                shutil.copyfileobj(source, copy)
            copy.flush()
            if source.stopped:
                _keep_whole_records(copy.name)
            stack.push(unfinished.pop_all())
        yield copy.name


def _keep_whole_records(path: str) -> None:
    """Removes an incomplete record at the end of a capture, of a compressed one after decompression."""
    from wirekit.capture.files import open_capture
    from wirekit.errors import Short

    try:
        capture = open_capture(path)
    except WireError:  # it is another file, or its header is incomplete; reading it says so
        return
    with capture, open(path, "r+b") as file:
        for _ in capture.items():
            pass
        if capture.incomplete:
            for offset in range(0, capture.walked, _PIECE):
                file.write(capture.read(offset, min(_PIECE, capture.walked - offset)))
        if capture.incomplete or isinstance(capture.damage, Short):
            file.truncate(capture.walked)
