"""Functions that several commands share: JSON lines, printing to a terminal or a pipe."""

from __future__ import annotations

import codecs
import importlib
import importlib.util
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BufferedReader
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import click

from wirekit.errors import lacking, plural
from wirekit.times import moment
from wirekit.tuning import keep_pandas_out
from wirekit.values import json_text, printable

if TYPE_CHECKING:
    from types import FrameType

    from rich.console import Console


_IN_ASCII = {"→": ">", "←": "<", "×": "x", "✓": "+", "✗": "!", "…": "~", "–": "-", "µ": "u"}


def in_ascii(error: UnicodeError) -> tuple[str, int]:
    """The error handler of output streams: symbols of the commands become ASCII, all other characters ``?``."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_IN_ASCII.get(each, "?") for each in error.object[error.start : error.end]), error.end


IN_ASCII = "wirekit.in_ascii"
"""The name of this handler."""
codecs.register_error(IN_ASCII, in_ascii)


def on_terminal() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout.isatty()


NARROWEST = 8
"""The columns of a terminal for which lines are broken; one that says it has fewer gets 80."""
STANDARD_INPUT = "-"
"""The file name that means standard input."""
STANDARD_INPUT_FILE = "/dev/stdin"
"""Standard input, where a regular file was redirected to it."""

COLUMNS = ("numba", "numpy", "pyarrow")
"""The packages of the extra ``columns``."""


def have_columns() -> bool:
    """Whether the extra ``columns`` is installed."""
    return all(importlib.util.find_spec(name) is not None for name in COLUMNS)


def need(purpose: str, *modules: str) -> None:
    """Raises Misuse that names the extra to install, if a module that this part of a command needs is missing."""
    for module in modules:
        try:
            with _ended_by_interruption():
                importlib.import_module(module)
        except ModuleNotFoundError as error:
            raise lacking(purpose, error) from error
    if "pyarrow" in modules and "pandas" not in modules:
        keep_pandas_out()


@contextmanager
def _ended_by_interruption() -> Iterator[None]:
    """Lets Ctrl-C end the process without a word: an extension in C that is interrupted while it loads may abort."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def say(text: str) -> None:
    """Prints a message to standard error."""
    click.echo(f"wirekit: {printable(text)}", err=True)


def time_of_day(time_us: int | None) -> str:
    """Microseconds since the epoch as a time of the day, UTC; as a number outside the years 1 to 9999."""
    if time_us is None:
        return ""
    time = moment(time_us)
    return f"{time_us} µs" if time is None else f"{time:%H:%M:%S.%f}"


def check_page(path: str | None, inputs: Iterable[str]) -> None:
    """Refuses a ``--report`` file that is an input or whose name is not that of HTML, but of a capture, for example."""
    refuse_input("--report", path, inputs)
    check_report(path)
    if path is not None and not path.endswith((".html", ".htm")) and (os.path.isfile(path) or not os.path.exists(path)):
        raise click.UsageError(f"--report {path}: not an HTML file; name it FILE.html")


def check_report(page: str | None) -> None:
    """Refuses a ``--report`` file in a directory that does not exist, because a report is written last.

    Raises:
        UsageError: the text names the file.
    """
    if page is not None and not os.path.isdir(os.path.dirname(page) or "."):
        raise click.UsageError(f"--report {page}: the directory does not exist")


def refuse_input(option: str, path: str | None, inputs: Iterable[str]) -> None:
    """Refuses a file that an option names for output if it is one of the inputs.

    Raises:
        UsageError: the text names the file.
    """
    for each in inputs if path is not None and os.path.isfile(path) else ():
        if os.path.exists(each) and os.path.samefile(path or "", each):
            raise click.UsageError(f"{option} {path}: this file is an input")


@contextmanager
def whole_file(path: str) -> Iterator[BinaryIO]:
    """A file for output that replaces an earlier file when the block ends; if the block raises, that file stays."""
    if os.path.exists(path) and not os.path.isfile(path):  # a pipe or a terminal
        with open(path, "wb") as file:
            yield file
        return
    import tempfile

    target = os.path.realpath(path)
    try:
        handle, unfinished = tempfile.mkstemp(prefix=".wirekit_", dir=os.path.dirname(target))
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None
    try:
        with open(handle, "wb") as file:
            yield file
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(unfinished, os.stat(target).st_mode & 0o777 if os.path.exists(target) else 0o666 & ~mask)
        os.replace(unfinished, target)
    except BaseException:
        os.unlink(unfinished)
        raise


def failed(checks: Mapping[str, int]) -> str:
    """Failed checks by kind, as text."""
    kinds = ", ".join(f"{kind} ×{count:,}" for kind, count in sorted(checks.items()))
    return f"{plural(sum(checks.values()), 'check')} failed: {kinds}"


strict_option = click.option("--strict", is_flag=True, help="Treat a failed check as an error (exit status 1).")


@contextmanager
def interruption() -> Iterator[None]:
    """Replaces an error that follows Ctrl-C by ``KeyboardInterrupt``.

    DuckDB wraps the interruption of a table that it scans. pyspark calls Java while an interrupted call ends, and that
    call fails.
    """
    handler = signal.getsignal(signal.SIGINT)
    interrupted = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        interrupted = True
        if callable(handler):
            handler(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    except Exception as error:
        if interrupted:
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.signal(signal.SIGINT, handler)


def print_json(obj: Any) -> None:
    """Prints one line of JSON."""
    print_line(json_text(obj))


def print_line(text: str) -> None:
    """Prints a line in UTF-8, regardless of the locale."""
    sys.stdout.buffer.write(text.encode() + b"\n")


def console(*, stderr: bool = False) -> Console:
    """A rich console: colours on a terminal, plain text of a fixed width on a pipe."""
    from rich.console import Console

    class Piped(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 160
    printer = Piped(stderr=stderr, width=width, highlight=False, emoji=False, soft_wrap=False)
    if printer.width < NARROWEST:  # COLUMNS=0, or a terminal without room for an indent
        printer.width = 80
    return printer


def print_wrapped(screen: Console, text: str, style: str = "", *, indent: int) -> None:
    """Prints a line; on a narrower terminal, it continues on indented lines."""
    from rich.text import Text

    lines = [text]
    if screen.is_terminal and cells(text) > screen.width:
        first = Text(text).wrap(screen, screen.width)[0].plain
        others = Text(text[len(first) :].lstrip()).wrap(screen, screen.width - indent)
        lines = [first, *(" " * indent + each.plain for each in others)]
    for line in lines:
        screen.print(line.rstrip(), style=style or None, markup=False, soft_wrap=True)


def cells(text: str) -> int:
    """The columns of a terminal that a text takes; a Chinese character takes two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def padded(text: str, width: int, *, right: bool = False) -> str:
    """The text with blanks up to a number of columns of a terminal, to the left of it if ``right``.

    >>> padded("主题", 6), padded("7", 3, right=True)
    ('主题  ', '  7')
    """
    blanks = " " * (width - cells(text))
    return blanks + text if right else text + blanks


def read_bytes(path: str | None, most: int = -1) -> bytes:
    """The bytes of a file, or of standard input for ``-`` and None; the first ``most`` bytes if that is not -1."""
    if path in (None, STANDARD_INPUT):
        source = standard_input()
        if source.isatty():
            say("reading from the terminal; Ctrl-D at the beginning of a line ends the input")
        return source.read(most)
    with open(path, "rb") as file:
        return file.read(most)


def once(paths: tuple[str, ...]) -> None:
    """Refuses standard input if it is named twice."""
    if paths.count(STANDARD_INPUT) > 1:
        raise click.UsageError("standard input can be read only once; give - once")


def standard_input() -> BufferedReader:
    """The bytes of standard input."""
    if sys.stdin is None:
        raise click.UsageError("standard input is closed; name a file")
    return cast(BufferedReader, sys.stdin.buffer)
