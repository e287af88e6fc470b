"""The command line. Each command lives in a module of its own, which is imported when the command runs.

Exit status: 0 if all bytes were decoded, 1 if some were not (standard error names them), 2 for wrong usage, 130 after
Ctrl-C. Colour and progress are for terminals only.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import os
import signal
import sys
import warnings
from difflib import get_close_matches
from typing import Any

import click

import wirekit
from wirekit.cli.common import IN_ASCII, say
from wirekit.cli.paging import no_pager_option, paging
from wirekit.cli.pipes import forget_interruption, interrupted
from wirekit.errors import Misuse, WirekitError
from wirekit.tuning import collect_rarely

ENVIRONMENT = {"ARROW_DEFAULT_MEMORY_POOL": "system", "OPENBLAS_NUM_THREADS": "1"}
"""Settings of libraries, if the user has none.

Arrow's own allocator returns large arrays to the system at once, and new pages cost as much as a scan. OpenBLAS, a part
of numpy that wirekit does not need, starts threads that wait in a loop: a twentieth of the processor time of a run.
"""
INTERRUPTED = 130
"""The exit status after Ctrl-C."""
IN_BACKGROUND = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
"""Whether the process began with SIGINT ignored, as a script starts commands in the background."""
COMPLETE = "_WIREKIT_COMPLETE"
"""The environment variable by which a shell requests completion: ``bash_source`` and the like, then its queries."""
COMMANDS = {
    "decode": "Decode bytes or a pasted hex dump to fields and checks.",
    "encode": "Encode JSON, as decode prints it, to bytes.",
    "example": "Print a small valid value of a layout.",
    "frames": "List the frames of a capture, with responses paired to requests.",
    "messages": "List the application messages of captures and log segments.",
    "sql": "Query captures and tables with SQL, or with named queries such as lag.",
    "inspect": "Summarise a capture: connections, calls, failed checks, undecoded bytes.",
    "fuzz": "Test your parser or server with valid and damaged inputs.",
    "schemas": "List all layouts, or the fields of one layout.",
    "explain": "Print the code generated for a layout.",
    "pipeline": "Write captures as Parquet tables, on this machine or on Spark.",
    "warm": "Compile the code for large captures in advance.",
    "archive": "Write an archive for Spark workers that do not have wirekit.",
}

PAGED = ("decode", "example", "explain", "frames", "inspect", "messages", "schemas", "sql")
"""Commands whose long output goes to a pager."""


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"wirekit.cli.{cmd_name}").command
        if cmd_name in PAGED and not any(option.name == "no_pager" for option in command.params):
            command.params.append(no_pager_option())
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = get_close_matches(args[0], COMMANDS)
            if near:
                raise click.UsageError(f"{error.message} Did you mean {near[0]!r}?", ctx) from None
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(wirekit.__version__, prog_name="wirekit")
def group() -> None:
    """Decode, encode and tabulate the wire formats of Kafka 0.8-0.10, Pulsar and JMQ4 (JoyQueue)."""
    forget_interruption()


def main(arguments: list[str] | None = None) -> None:
    """Runs the command line and exits."""
    collect_rarely()
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    atexit.register(_leave)
    warnings.showwarning = _show_warning
    _prepare_streams()
    instruction = os.environ.get(COMPLETE)
    if instruction:
        from click.shell_completion import shell_complete

        sys.exit(shell_complete(group, {}, "wirekit", COMPLETE, instruction))
    if not IN_BACKGROUND:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with paging():
            status = _run(arguments)
    except KeyboardInterrupt:
        status = INTERRUPTED
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(status)


def _leave() -> None:
    """Skips the garbage collection of all layouts at exit; the system frees their memory.

    DuckDB reports frozen objects as leaks.
    """
    if "duckdb" not in sys.modules:
        gc.freeze()


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Prints a warning like other messages of commands, without the Python line that caused it."""
    say(f"warning: {message}")


def _prepare_streams() -> None:
    """Replaces characters that the encoding of a stream lacks; output to a closed descriptor is dropped.

    A stream without a buffer (``PYTHONUNBUFFERED``) gets one: without a buffer, the bytes of a write that do not fit on
    a full disk are lost without an error.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  # open until the process ends
            continue
        if isinstance(getattr(stream, "buffer", None), io.RawIOBase):
            buffered = open(stream.fileno(), "wb", closefd=False)  # noqa: SIM115  # open until the process ends
            stream = io.TextIOWrapper(buffered, stream.encoding, line_buffering=True)
            setattr(sys, name, stream)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=IN_ASCII)


def _run(arguments: list[str] | None) -> int:
    """The exit status, after all output is written."""
    status = 0
    try:
        status = _invoke(arguments)
        sys.stdout.flush()
    except OSError as error:
        status = _broken(error) or status
    return INTERRUPTED if interrupted() and status in (0, 1) else status


def _invoke(arguments: list[str] | None) -> int:
    try:
        with group.make_context("wirekit", sys.argv[1:] if arguments is None else arguments) as context:
            status = group.invoke(context)
    except click.exceptions.Exit as error:
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except Misuse as error:
        say(str(error))
        return 2
    except WirekitError as error:
        say(str(error))
        return 1
    return status if isinstance(status, int) else 0


def _broken(error: OSError) -> int:
    """The exit status: 0 if the reader closed the pipe, 1 for a file that cannot be read."""
    try:
        sys.stdout.flush()
    except OSError:  # drops output that would fail again when the process ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return 0
    name = "" if error.filename is None else f"{error.filename or repr('')}: "
    say(f"{name}{error.strerror}")
    return 1
