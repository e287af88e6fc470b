"""The command line. Each command lives in a module of its own, which is imported when the command runs.

Exit status: 0 all decoded, 1 something did not (said where and why), 2 usage. Colour and progress only on a terminal.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import signal
import sys

import click

import wirekit
from wirekit.cli.common import say
from wirekit.cli.paging import no_pager_option, paging
from wirekit.errors import Misuse, WirekitError

COLLECT = 50_000
"""New objects after which unused ones are looked for. Layouts are thousands of objects, and records hold no cycles."""
INTERRUPTED = 130
"""The exit status after Ctrl-C."""
COMPLETE = "_WIREKIT_COMPLETE"
"""What a shell sets to ask for completion: ``bash_source`` and the like for its script, then what the script asks."""
COMMANDS = {
    "decode": "Bytes or a pasted hex dump to fields, checks and a hexdump.",
    "encode": "The JSON that decode prints, back to bytes.",
    "example": "A small valid value of a layout, to start from.",
    "frames": "The frames of a capture, requests and responses paired.",
    "messages": "The application messages of captures and log segments.",
    "sql": "An SQL query over the calls, messages and other tables of captures.",
    "inspect": "What a capture holds: connections, calls, checks, bytes nobody decoded.",
    "fuzz": "Sound and damaged inputs for your parser or server, and what it gets wrong.",
    "schemas": "The layouts: all keys, or the fields of one.",
    "explain": "The code that is generated for a layout.",
    "pipeline": "Captures to Parquet tables, on Spark or in this process.",
    "warm": "Compile ahead what big captures need.",
}

PAGED = ("decode", "example", "explain", "frames", "inspect", "messages", "schemas", "sql")
"""Commands of which long output goes to a pager."""


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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(wirekit.__version__, prog_name="wirekit")
def group() -> None:
    """Decode, build and tabulate the wire formats of Kafka 0.8-0.10, Pulsar and JMQ4 (JoyQueue)."""


def main(arguments: list[str] | None = None) -> None:
    """Runs the command line and exits."""
    gc.set_threshold(COLLECT)
    atexit.register(_leave)
    _prepare_streams()
    instruction = os.environ.get(COMPLETE)
    if instruction:
        from click.shell_completion import shell_complete

        sys.exit(shell_complete(group, {}, "wirekit", COMPLETE, instruction))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with paging():
            status = _run(arguments)
    except KeyboardInterrupt:
        status = INTERRUPTED
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(status)


def _leave() -> None:
    """Spares the end of the process a search of all layouts for cycles: their memory is given back anyway.

    DuckDB reports what is frozen as leaked.
    """
    if "duckdb" not in sys.modules:
        gc.freeze()


def _prepare_streams() -> None:
    """Output that its encoding lacks is replaced, never a traceback; a closed descriptor swallows what is printed."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  # open until the process ends
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _run(arguments: list[str] | None) -> int:
    """The exit status."""
    try:
        with group.make_context("wirekit", sys.argv[1:] if arguments is None else arguments) as context:
            status = group.invoke(context)
        sys.stdout.flush()
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
    except OSError as error:
        return _broken(error)
    return status if isinstance(status, int) else 0


def _broken(error: OSError) -> int:
    """A reader that closed the pipe is no error of ours; a file that cannot be read is."""
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    name = f"{error.filename}: " if error.filename else ""
    say(f"{name}{error.strerror}")
    return 1
