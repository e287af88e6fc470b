"""``wirekit explain``: what the compiler makes of a layout."""

from __future__ import annotations

import importlib
from typing import IO, Any

import click

from wirekit.cli.arguments import KeyType
from wirekit.cli.context import check_context, context_option, parse_context
from wirekit.compiler import ir, rows
from wirekit.compiler.rows import build as rows_build
from wirekit.compiler.rows import direct as rows_direct
from wirekit.compiler.rows import load as rows_load
from wirekit.errors import lacking
from wirekit.registry import registry

FRONT = 1 << 16  # bytes in which all that stands in front of records must be


COLUMNS = {"columns": "columns", "program": "columns", "build-columns": "building"}
"""The engines of columns, and their packages."""


@click.command("explain")
@click.argument("key", type=KeyType())
@click.option(
    "--engine",
    type=click.Choice(["rows", "trace", "build", "direct", "load", "columns", "program", "build-columns", "ir"]),
    default="rows",
    help=(
        "rows: the decoder (default); trace: the same, with the bytes of each field; build: the encoder; direct: the "
        "encoder for plain mappings; load: the conversion of JSON to the encoder's records; columns or program: the "
        "steps that fill Arrow columns; build-columns: the steps that encode Arrow columns; ir: the layout IR, from "
        "which all others are generated."
    ),
)
@click.option(
    "--front",
    type=click.File("rb"),
    help="For the engines of columns: a file that begins with KEY, if its header selects the layout of its records.",
)
@context_option
def command(key: str, engine: str, front: IO[bytes] | None, context_pairs: tuple[str, ...]) -> int:
    """Print the code that is generated to decode or encode KEY, or the layout IR."""
    context = parse_context(context_pairs)
    if context and engine not in COLUMNS:
        raise click.UsageError(f"--context is for the engines of columns; what {engine} prints is for any context")
    if front is not None and engine not in COLUMNS:
        raise click.UsageError(f"--front is for the engines of columns; what {engine} prints is for any file")
    check_context(key, context)
    if engine == "ir":
        click.echo(ir.dump(registry[key].layout))
    elif engine in COLUMNS:
        told: tuple[Any, ...] = (front.read(FRONT) if front is not None else b"",)
        if context:
            told = (*told, context)
        click.echo(_steps(key, engine, *told), nl=False)
    else:
        write = {
            "rows": rows.writer,
            "trace": rows.tracer,
            "build": rows_build.builder,
            "direct": rows_direct.builder,
            "load": rows_load.loader,
        }[engine]
        click.echo(write(key).source, nl=False)
    return 0


def _steps(key: str, engine: str, *told: Any) -> str:
    """The program of an engine of columns."""
    registry[key]
    try:
        module = importlib.import_module(f"wirekit.compiler.{COLUMNS[engine]}")
    except ModuleNotFoundError as error:
        raise lacking(f"--engine {engine}", error) from error
    source: str = module.source(key, *told)
    return source
