"""``wirekit pipeline``: captures and stored files to Parquet tables, on this machine or on Spark."""

from __future__ import annotations

import logging
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from wirekit.capture.tcp import Settings
from wirekit.cli.arguments import Bytes, Seconds
from wirekit.cli.captures import Unread, choice_options, inputs_of, parse_choice, road_option, separate_option
from wirekit.cli.common import STANDARD_INPUT, console, failed, interruption, need, once, print_wrapped, say
from wirekit.errors import plural
from wirekit.pipeline.inputs import Input, Job, NothingToReadError, find_inputs
from wirekit.pipeline.summary import show, size_text
from wirekit.pipeline.watch import SETTLE_SECONDS, Settling, settled

if TYPE_CHECKING:
    from wirekit.pipeline.run import Progress, Result, Step

MOST_BLOCKS = 3
"""Captures that are reported in full; of more each has a line, so that a screen shows the report."""
MOST_FILES = 10
"""Captures that are reported one by one; of more only the sum is printed."""

MOST_JOBS = 1024

IDLE_SECONDS = Settings().idle_us / 1_000_000
POLL_SECONDS = 1.0
ESTIMATE_SECONDS = 600.0
"""The past period from which the time left is estimated; on Spark a task may take minutes."""
LINE_SECONDS = 60.0
"""Without a terminal: seconds between two lines about the progress at least."""
PAUSE = 4.0
"""With --watch: the pause between two scans, as a multiple of the duration of a scan."""


@click.command("pipeline")
@click.argument("inputs", nargs=-1, required=True, type=click.Path(readable=False), metavar="INPUT...")
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(),
    metavar="DIR",
    help="Directory for the tables: new, empty, or written by wirekit.",
)
@click.option(
    "--engine",
    type=click.Choice(["serial", "spark"]),
    help="serial: without Spark (default); spark: on Spark, local unless --master is given.",
)
@click.option(
    "--jobs",
    "-j",
    type=click.IntRange(1, MOST_JOBS),
    default=1,
    show_default=True,
    help="Without Spark: number of processes that read the inputs. Each may need 1 GiB of memory.",
)
@click.option(
    "--master", metavar="URL", help="A Spark master, such as local[4,4] or spark://host:7077; implies --engine spark."
)
@click.option(
    "--archive",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="With --master: an archive of `wirekit archive`, which Spark copies to each worker.",
)
@click.option(
    "--conf",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="With --engine spark: a setting of Spark, such as spark.executor.memory=4g; repeatable.",
)
@road_option
@choice_options
@click.option(
    "--resume/--replace",
    default=True,
    help="Add inputs that DIR does not hold yet, and continue a run that was killed (default); or replace all tables "
    "when the run is complete.",
)
@click.option(
    "--bundle",
    type=Bytes(),
    help="Bytes of captures that become visible together, such as 512MiB; 0: one bundle per file. Default: 1GiB, more "
    "on Spark with many cores.",
)
@click.option(
    "--rotating",
    is_flag=True,
    help="More files of the captures will follow: keep the state of open connections, so that a later run continues "
    "them. Implied by --watch.",
)
@click.option(
    "--idle",
    type=Seconds(min=IDLE_SECONDS),
    default=IDLE_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="If a bundle ends before its capture: end the connections that have been silent for this long.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["parquet", "delta"]),
    help="parquet: Parquet files; delta: each table is a Delta table. Default: what DIR has; parquet if it is new.",
)
@click.option(
    "--watch", is_flag=True, help="Keep running, and add captures as they are completed, until SIGINT or SIGTERM."
)
@click.option(
    "--settle",
    type=Seconds(min=0),
    default=SETTLE_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="With --watch: a file that has not changed for this long is complete.",
)
@click.option("--strict", is_flag=True, help="Exit with status 1 if bytes were not decoded or a check failed.")
@separate_option
@click.option(
    "--values", is_flag=True, help="Write the value of each frame to the table frames, as JSON without messages."
)
@click.option("--debug", is_flag=True, help="Show all output of Spark if it fails.")
@click.option("--no-raw", is_flag=True, help="Omit the undecoded bytes from the table quarantine.")
def command(
    inputs: tuple[str, ...],
    output: str,
    engine: str | None,
    jobs: int,
    master: str | None,
    archive: str | None,
    settings: tuple[str, ...],
    road: str,
    protocol: str,
    ports: tuple[str, ...],
    resume: bool,
    bundle: int | None,
    form: str | None,
    rotating: bool,
    idle: float,
    watch: bool,
    settle: float,
    strict: bool,
    separate: bool,
    debug: bool,
    values: bool,
    no_raw: bool,
) -> int:
    """Write captures and log segments as Parquet tables: calls, topics of calls, messages, group events, offsets,
    connections, frames, undecoded bytes, and gaps.

    INPUT is a capture (- is standard input), a segment, a directory of such files (*.pcap, *.pcapng, *.cap and segments
    named <20 digits>.log), a pattern, or a URI (s3://bucket/prefix/). DIR will hold manifest.json, and a directory of
    Parquet files for each table. Inputs that DIR already holds are skipped; new ones are added. All frames are written;
    `wirekit sql` selects from the tables.

    \b
    wirekit pipeline captures/ --output tables
    wirekit pipeline captures/ --output tables --jobs 8
    wirekit pipeline captures/ --output tables --engine spark
    wirekit pipeline captures/ --output tables --rotating
    wirekit pipeline captures/ --output tables --watch
    """
    if master and engine == "serial":
        raise click.UsageError("--master needs --engine spark")
    on_spark = engine == "spark" or master is not None
    conf = _conf(settings)
    if conf and not on_spark:
        raise click.UsageError("--conf needs --engine spark")
    if jobs > 1 and on_spark:
        raise click.UsageError("--jobs is for runs without Spark; on Spark, --master sets the number of tasks at once")
    if archive:
        if not master or master.startswith("local["):
            raise click.UsageError("--archive needs --master of a cluster: local tasks run with this Python")
        from wirekit.spark.archive import settings as of_archive

        conf = of_archive(archive) | conf
    if road == "columns":
        if on_spark:
            raise click.UsageError("--road columns needs --engine serial")
        need("--road columns", "pyarrow", "numba")
    once(inputs)
    if watch and (not resume or STANDARD_INPUT in inputs):
        other = f"standard input ({STANDARD_INPUT})" if resume else "--replace"
        raise click.UsageError(f"--watch cannot be combined with {other}; leave out one of them")
    if not watch and click.get_current_context().get_parameter_source("settle") is ParameterSource.COMMANDLINE:
        raise click.UsageError("--settle needs --watch")
    if rotating and separate:
        raise click.UsageError("--rotating continues rotations, which --separate does not join; leave out one of them")
    choice = parse_choice(protocol, ports)
    options = {
        "bundle": bundle,
        "form": form,
        "replace": not resume,
        "rotating": (rotating or watch) and not separate,
        "idle_us": int(idle * 1_000_000),
    }

    def add(files: tuple[Input, ...]) -> Result:
        job = Job(files, choice.protocol, dict(choice.ports), raw=not no_raw, values=values, road=road)
        if on_spark:
            return _on_spark(job, output, master, conf, options, debug=debug)
        return _here(job, output, jobs, options)

    unread = Unread()
    if watch:
        look = partial(find_inputs, inputs, separate=separate, unread=unread)
        return _watch(look, add, output, settle, strict=strict) or unread.status
    with inputs_of(inputs, unread, separate=separate) as files:
        return _report(add(files), output, strict) or unread.status


def _conf(settings: Sequence[str]) -> dict[str, str]:
    """The settings of ``--conf`` by name; if a setting is given twice, the last value."""
    for each in settings:
        if not re.fullmatch(r"spark\.[^=\s]+=.*", each, re.DOTALL):
            raise click.UsageError(f"--conf {each!r} is not a setting of Spark, such as spark.executor.memory=4g")
    return {name: value for name, _, value in (each.partition("=") for each in settings)}


def _watch(
    look: Callable[[], tuple[Input, ...]],
    add: Callable[[tuple[Input, ...]], Result],
    output: str,
    settle: float,
    *,
    strict: bool,
) -> int:
    """Adds complete files, scan after scan, until a signal; the current bundle is dropped then.

    Args:
        look: returns all existing files.
        add: adds the new ones of some files to the lake.
        output: the lake.
        settle: seconds without change after which a file is complete.
        strict: whether undecoded bytes and failed checks are a failure.
    """
    need("the pipeline", "pyarrow")
    from wirekit.pipeline.commits import merged, read_commits
    from wirekit.pipeline.folders import folder

    settling = Settling(settle)
    commits = read_commits(folder(output))
    rows = {name: table["rows"] for name, table in merged(commits.values())["tables"].items()} if commits else {}
    added: set[Input] | None = None
    reported, status = "", 0
    with suppress(KeyboardInterrupt), _interrupted_by(signal.SIGTERM):
        while True:
            began = time.monotonic()
            inputs, trouble = _looked(look, ended_by_errors=added is None)
            pause = max(POLL_SECONDS, PAUSE * (time.monotonic() - began))
            if trouble not in ("", reported):
                say(trouble)
            reported = trouble
            complete = () if trouble else settled(inputs, settling.complete(inputs), commits)
            complete_inputs = {replace(each, number=0, first=None) for each in complete}
            if complete_inputs - (added or set()):
                result = add(complete)
                commits = read_commits(folder(output))
                status |= _report_added(result, output, rows, strict=strict)
                rows = {name: table["rows"] for name, table in result.manifest["tables"].items()}
            if not trouble:
                added = complete_inputs
            time.sleep(pause)
    say("stopped")
    return status


def _looked(look: Callable[[], tuple[Input, ...]], *, ended_by_errors: bool) -> tuple[tuple[Input, ...], str]:
    """The files that exist now, and an error that may be temporary."""
    try:
        return look(), ""
    except NothingToReadError:
        return (), ""
    except OSError as error:  # the store does not answer, or a file has just been removed
        if ended_by_errors:
            raise
        return (), f"{error.filename}: {error.strerror}" if error.filename else str(error)


@contextmanager
def _interrupted_by(number: int) -> Iterator[None]:
    """While the block lasts, a signal interrupts it as Ctrl-C does."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(number, interrupt)
    try:
        yield
    finally:
        signal.signal(number, before)


def _here(job: Job, output: str, jobs: int, options: Mapping[str, Any]) -> Result:
    need("the pipeline", "pyarrow")
    from wirekit.compiler.cache import listening
    from wirekit.pipeline import serial
    from wirekit.pipeline.bundles import BUNDLE_BYTES

    with _progress("reading") as progress, listening(_Compiling()):
        if jobs > 1:
            from wirekit.pipeline import processes

            return processes.run(job, output, jobs, progress, **options)
        size = BUNDLE_BYTES if options["bundle"] is None else options["bundle"]
        return serial.run(job, output, progress, **{**options, "bundle": size})


class _Compiling:
    """Reports once, on a terminal, that the first run compiles."""

    def __init__(self) -> None:
        self._quiet = not sys.stderr.isatty()

    def __call__(self, name: str) -> None:
        if not self._quiet:
            say("compiling, once per machine; `wirekit warm` compiles in advance")
        self._quiet = True


def _on_spark(
    job: Job,
    output: str,
    master: str | None,
    conf: Mapping[str, str],
    options: Mapping[str, Any],
    *,
    debug: bool,
) -> Result:
    need("the pipeline on Spark", "pyspark", "pyarrow", "pandas")
    from wirekit.spark import pipeline
    from wirekit.spark.session import BRIEF, JAVA_OPTIONS, LOUD, in_one_line, session

    with _progress("starting Spark") as progress:
        java_options = [BRIEF, *([conf[JAVA_OPTIONS]] if JAVA_OPTIONS in conf else []), *([LOUD] if debug else [])]
        handler = signal.getsignal(signal.SIGINT)
        spark = session(master, "wirekit pipeline", {**conf, JAVA_OPTIONS: " ".join(java_options)})
        # The handler of pyspark uses the connection that the interrupted call holds, and fails with tracebacks.
        signal.signal(signal.SIGINT, handler)
        quiet = (interruption(), in_one_line(), _without_logging())
        with ExitStack() as stack:
            for each in () if debug else quiet:
                stack.enter_context(each)
            return pipeline.run(job, output, spark, progress, **options)


@contextmanager
def _without_logging() -> Iterator[None]:
    """Drops messages of Python's logging while the block lasts: py4j logs the traceback of an interrupted call."""
    before = logging.root.manager.disable
    logging.disable()
    try:
        yield
    finally:
        logging.disable(before)


@contextmanager
def _progress(begin: str) -> Iterator[Progress]:
    """Shows the progress on standard error: a bar on a terminal, otherwise a line from time to time."""
    if not sys.stderr.isatty():
        yield _progress_lines()
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    screen = console(stderr=True)
    with Progress(*columns, console=screen, transient=True, speed_estimate_period=ESTIMATE_SECONDS) as bar:
        task = bar.add_task(begin, total=None)

        def show_step(step: Step) -> None:
            bar.update(task, completed=step.processed, total=step.total, description=_step_text(step))

        yield show_step


def _progress_lines() -> Progress:
    """Prints a line about the progress, at most one in ``LINE_SECONDS``; a shorter run has none."""
    start = latest = time.monotonic()

    def say_step(step: Step) -> None:
        nonlocal latest
        now = time.monotonic()
        if now - latest < LINE_SECONDS:
            return
        latest = now
        time_left = f", {(now - start) * (step.total / step.processed - 1) / 60:.0f} min left" if step.processed else ""
        say(f"{_step_text(step)} after {(now - start) / 60:.0f} min{time_left}")

    return say_step


def _step_text(step: Step) -> str:
    bundle = f"bundle {step.bundle} of {step.bundles}, " if step.bundles > 1 else ""
    return f"{bundle}{step.stage}: {size_text(step.processed)} of {size_text(step.total)}"


def _say_some(lines: Sequence[str], kind: str) -> None:
    """Prints the first of several lines, and the number of others; the table ``inputs`` has all."""
    for line in lines[:MOST_FILES]:
        say(line)
    if len(lines) > MOST_FILES:
        say(f"and {len(lines) - MOST_FILES:,} more {kind}; the table inputs lists all")


def _report(result: Result, output: str, strict: bool) -> int:
    """Prints the summary; reports on standard error what was not read."""
    _say_some(result.notes, "captures")
    screen = console()
    show(result.summary, screen, most_blocks=MOST_BLOCKS, most_files=MOST_FILES)
    if result.committed:
        screen.print(
            f"skipped {plural(result.committed, 'file')} that {output} already contains", markup=False, soft_wrap=True
        )
    rows = ", ".join(f"{name} {table['rows']:,}" for name, table in result.manifest["tables"].items())
    print_wrapped(screen, f"{output}: {rows}", indent=2)
    return _complain(result, strict)


def _report_added(result: Result, output: str, before: Mapping[str, int], *, strict: bool) -> int:
    """Prints a line with the numbers of new rows; reports errors as ``_report`` does."""
    _say_some(result.notes, "captures")
    counts = {name: table["rows"] - before.get(name, 0) for name, table in result.manifest["tables"].items()}
    rows = ", ".join(f"{name} {count:+,}" for name, count in counts.items() if count)
    if rows:
        print_wrapped(console(), f"{output}: {rows}", indent=2)
    return _complain(result, strict)


def _complain(result: Result, strict: bool) -> int:
    """Reports on standard error bytes that were not read, with the reasons; returns the exit status."""
    unreadable = result.summary.unreadable
    _say_some(
        [
            f"{name}: {line}"
            for name, reason in unreadable.items()
            for line in (() if name in result.gone else reason.splitlines())
        ],
        "files not read to their end",
    )
    changed = [
        f"{name}: gone; it was deleted during the run, and the tables may hold a part of it"
        if name in result.gone
        else f"{name}: changed while it was read; the tables hold a part of it"
        for name in result.changed
    ]
    _say_some(changed, "files changed or deleted during the run")
    status = 1 if unreadable or changed else 0
    total = result.summary.total()
    if total.quarantine:
        pieces = sum(number for (_, unit), number in total.quarantine.items() if unit == "pieces")
        size = f"not decoded: {plural(total.quarantined_bytes, 'byte')} in {plural(pieces, 'piece')}"
        extent = size if total.quarantined_bytes else f"damaged: {plural(pieces, 'place')}"
        untold = any(each.quarantine for name, each in result.summary.files.items() if name not in unreadable)
        if total.quarantined_bytes or untold:
            say(f"{extent}; the table quarantine has the reasons")
        status |= strict
    if total.checks:
        say(failed(total.checks))
        status |= strict
    return status
