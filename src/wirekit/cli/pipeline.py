"""``wirekit pipeline``: captures and stored files to Parquet tables, in this process or on Spark."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import click

from wirekit.cli.captures import choice_options, inputs_of, parse_choice, separate_option
from wirekit.cli.common import console, failed, need, once, plural, say
from wirekit.pipeline.inputs import Job
from wirekit.pipeline.summary import show, size_text

if TYPE_CHECKING:
    from wirekit.pipeline.run import Progress, Result

MOST_FILES = 10
"""Captures that are reported one by one; of more only the sum is printed."""


class SizeType(click.ParamType):
    """A number of bytes with a unit: ``512MiB``, ``1.5G`` (of 1024 each), ``0``."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = re.fullmatch(r"(\d+(?:\.\d+)?) ?([kKMGT]?)(?:i?B)?", str(value))
        if match is None:
            self.fail(f"{value!r} is not a number of bytes, such as 512MiB", param, ctx)
        return int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))


@click.command("pipeline")
@click.argument("inputs", nargs=-1, required=True, type=click.Path(), metavar="INPUT...")
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(),
    metavar="DIR",
    help="Directory for the tables; empty, or written by wirekit before.",
)
@click.option(
    "--engine",
    type=click.Choice(["serial", "spark"]),
    help="serial: in this process (default); spark: on Spark, local unless --master is given.",
)
@click.option("--master", metavar="URL", help="A Spark master, such as local[4,4] or spark://host:7077.")
@click.option(
    "--road",
    type=click.Choice(["auto", "columns", "objects"]),
    default="auto",
    help="How captures are read; the tables are the same. columns: plain connections by columns; objects: all "
    "connections by objects; auto: by columns if the capture is large (default).",
)
@choice_options
@click.option(
    "--resume/--replace",
    default=True,
    help="Add inputs that DIR does not hold yet, and continue a run that was killed (default); or replace all tables "
    "when the run is complete.",
)
@click.option(
    "--bundle",
    type=SizeType(),
    help="Bytes of captures that become visible together, such as 512MiB; 0: one bundle per capture. Default: 1GiB, "
    "more on Spark with many cores.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["parquet", "delta"]),
    help="parquet: Parquet files; delta: each table is a Delta table. Default: what DIR has; parquet if it is new.",
)
@click.option("--strict", is_flag=True, help="Exit with status 1 if bytes were not decoded or a check failed.")
@separate_option
@click.option(
    "--values", is_flag=True, help="Write the value of each frame to the table frames, as JSON without messages."
)
@click.option("--debug", is_flag=True, help="Show all output of Spark if it fails.")
@click.option("--no-raw", is_flag=True, help="Do not write undecoded bytes to the table quarantine.")
def command(
    inputs: tuple[str, ...],
    output: str,
    engine: str | None,
    master: str | None,
    road: str,
    protocol: str,
    ports: tuple[str, ...],
    resume: bool,
    bundle: int | None,
    form: str | None,
    strict: bool,
    separate: bool,
    debug: bool,
    values: bool,
    no_raw: bool,
) -> int:
    """Write captures and log segments as Parquet tables: calls, topics of calls, messages, group events, offsets,
    connections, frames, undecoded bytes, and gaps.

    INPUT is a capture (- is standard input), a segment (<20 digits>.log), a directory of such files (*.pcap, *.pcapng,
    *.cap and segments), a pattern, or a URI (s3://bucket/prefix/). DIR will hold a directory of Parquet files per table
    and manifest.json. Inputs that DIR already holds are skipped; new ones are added.

    \b
    wirekit pipeline captures/ --output tables
    wirekit pipeline captures/ --output tables --engine spark
    """
    if master and engine == "serial":
        raise click.UsageError("--master is for --engine spark")
    if road == "columns":
        if engine == "spark" or master:
            raise click.UsageError("--road columns is for --engine serial")
        need("the road of columns", "pyarrow", "numba")
    once(inputs)
    choice = parse_choice(protocol, ports)
    with inputs_of(inputs, separate=separate) as found:
        job = Job(found, choice.protocol, dict(choice.ports), raw=not no_raw, values=values, road=road)
        if engine == "spark" or master:
            result = _on_spark(job, output, master, bundle, form, replace=not resume, debug=debug)
        else:
            result = _here(job, output, bundle, form, replace=not resume)
    return _report(result, output, strict)


def _here(job: Job, output: str, bundle: int | None, form: str | None, *, replace: bool) -> Result:
    need("the pipeline", "pyarrow")
    from wirekit.compiler.cache import listening
    from wirekit.pipeline import serial
    from wirekit.pipeline.bundles import BUNDLE_BYTES

    size = BUNDLE_BYTES if bundle is None else bundle
    with _progress("reading", size_text) as progress, listening(_Compiling()):
        return serial.run(job, output, progress, bundle=size, replace=replace, form=form)


class _Compiling:
    """Says once, on a terminal, why a first run takes longer."""

    def __init__(self) -> None:
        self._quiet = not sys.stderr.isatty()

    def __call__(self, name: str) -> None:
        if not self._quiet:
            say("compiling, once a machine; `wirekit warm` does it ahead")
        self._quiet = True


def _on_spark(
    job: Job, output: str, master: str | None, bundle: int | None, form: str | None, *, replace: bool, debug: bool
) -> Result:
    need("the pipeline on Spark", "pyspark", "pyarrow", "pandas")
    from wirekit.spark import pipeline
    from wirekit.spark.session import LOUD, in_one_line, session

    with _progress("starting Spark", "{:.0f} tasks".format) as progress:
        spark = session(master, "wirekit pipeline", LOUD if debug else None)
        with nullcontext() if debug else in_one_line():
            return pipeline.run(job, output, spark, progress, bundle=bundle, replace=replace, form=form)


@contextmanager
def _progress(begin: str, amount: Callable[[float], str]) -> Iterator[Progress | None]:
    """A bar on standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(begin, total=None)

        def told(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, description=f"{amount(done)} of {amount(total)}")

        yield told


def _say_some(lines: Sequence[str], kind: str) -> None:
    """Says the first of some lines, and how many more there are; the table ``inputs`` has all."""
    for line in lines[:MOST_FILES]:
        say(line)
    if len(lines) > MOST_FILES:
        say(f"and {len(lines) - MOST_FILES:,} more {kind}; the table inputs has all")


def _report(result: Result, output: str, strict: bool) -> int:
    """Prints the summary; complains on standard error of what was not read."""
    _say_some(result.notes, "captures")
    screen = console()
    show(result.summary, screen, most_files=MOST_FILES)
    if result.committed:
        screen.print(f"{output} has {plural(result.committed, 'file')} already", markup=False, soft_wrap=True)
    rows = ", ".join(f"{name} {table['rows']:,}" for name, table in result.manifest["tables"].items())
    screen.print(f"{output}: {rows}", markup=False, soft_wrap=True)
    unreadable = result.summary.unreadable
    _say_some(
        [f"{name}: {line}" for name, reason in unreadable.items() for line in reason.splitlines()], "files not read"
    )
    changed = [f"{name}: changed while it was read; the tables hold a part of it" for name in result.changed]
    _say_some(changed, "files changed while they were read")
    status = 1 if unreadable or changed else 0
    total = result.summary.total()
    if total.quarantine:
        pieces = sum(number for (_, what), number in total.quarantine.items() if what == "pieces")
        say(f"in quarantine: {total.quarantined_bytes:,} bytes in {plural(pieces, 'piece')}")
        status |= strict
    if total.checks:
        say(failed(total.checks))
        status |= strict
    return status
