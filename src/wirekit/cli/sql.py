"""``wirekit sql``: queries over the tables of captures, stored files and lakes, through DuckDB."""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from datetime import date, datetime, time
from decimal import Decimal
from functools import partial
from itertools import chain, islice
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from wirekit.cli.captures import CUT, Unread, choice_options, inputs_of, parse_choice, separate_option
from wirekit.cli.common import (
    cells,
    console,
    interruption,
    need,
    on_terminal,
    once,
    padded,
    print_json,
    print_line,
    print_wrapped,
    refuse_input,
    say,
    whole_file,
)
from wirekit.errors import Misuse, plural, refuse_unless_utf8
from wirekit.pipeline.inputs import Job
from wirekit.storage import is_remote
from wirekit.tables import queries
from wirekit.values import json_text, printable, readable

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

LONGEST_CELL = 200
"""Characters of a value that a table shows."""
FIRST_ROWS = 1000
"""The first rows, which determine the widths of a table's columns."""
EXACT = 1e15
"""Below it, six digits of a fraction tell enough."""
SETTINGS = {"TimeZone": "UTC", "python_enable_replacements": "false", "autoinstall_known_extensions": "false"}
FORMS = ("table", "json", "csv", "parquet")
JSON_LINES = ("jsonl", "ndjson")
"""Other suffixes of files with one JSON value per line."""


class _QueryType(click.ParamType):
    """SQL, or the name of a query; a shell completes the name."""

    name = "query"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        names = (name for name in queries.NAMES if name.startswith(incomplete))
        return [CompletionItem(name, help=queries.description(name)[0]) for name in names]


class _Command(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads SQL that begins with a comment as an argument; no option has a space after its dashes."""
        return super().parse_args(ctx, [f" {arg}" if re.match(r"--\s", arg) else arg for arg in args])


@click.command("sql", cls=_Command)
@click.argument("query", required=False, type=_QueryType(), metavar="QUERY")
@click.argument("paths", nargs=-1, type=click.Path(readable=False), metavar="CAPTURE|SEGMENT|DIRECTORY...")
@choice_options
@click.option(
    "--output",
    type=click.Choice(FORMS),
    help="Default: by the suffix of --to, else table on a terminal, else json (one line per row). A table that is "
    "wider than the terminal has a line per value.",
)
@click.option("--to", type=click.Path(), metavar="FILE", help="Write to FILE; required for Parquet.")
@click.option("--list", "listed", is_flag=True, help="List the named queries; with QUERY, print its SQL.")
@separate_option
def command(
    query: str | None,
    paths: tuple[str, ...],
    protocol: str,
    ports: tuple[str, ...],
    output: str | None,
    to: str | None,
    listed: bool,
    separate: bool,
) -> int:
    """Run QUERY in DuckDB over captures, log segments, directories of them, or tables of `wirekit pipeline`.

    QUERY is SQL, or the name of a query for a common question, such as lag or slow_calls (--list).

    Tables: calls, call_topics, messages, group_events, offsets, connections, frames, quarantine, gaps; for captures
    also packets, and for tables of `wirekit pipeline` also runs and inputs. Only the tables that QUERY names are read.
    "DESCRIBE calls" lists the columns of a table; "FROM call_topics" shows errors by topic. In CSV and JSON, bytes are
    hex; decode(value) gives text.

    \b
    wirekit sql lag trace.pcap
    wirekit sql "SELECT api, count(*) AS n, quantile_disc(latency_us, 0.99) AS p99 FROM calls GROUP BY 1" trace.pcap
    wirekit sql "FROM messages WHERE topic = 'orders'" tables/ --to orders.parquet
    """
    if listed:
        if paths or protocol or ports or to or separate or output not in (None, "table", "json"):
            raise click.UsageError("--list reads no capture; its only option is --output table or json")
        return _list(query, output)
    if query in queries.NAMES:
        query = queries.query(query)
    elif query is not None and os.path.exists(query):
        raise click.UsageError(f"{query} is a path; the query comes first: wirekit sql QUERY CAPTURE...")
    if query is None or not paths:
        example = "wirekit sql lag trace.pcap; --list shows the names"
        raise click.UsageError(f"pass a query, and a capture, segment or directory, as in: {example}")
    if not query.strip():
        raise click.UsageError("QUERY is empty")
    once(paths)
    choice = parse_choice(protocol, ports)
    if to and is_remote(to):
        raise click.UsageError(f"--to {to}: write to a local file; only wirekit pipeline writes to object stores")
    refuse_input("--to", to, paths)
    form = output or _form_of(to)
    if form == "parquet" and not to:
        raise click.UsageError("--output parquet needs --to FILE")
    need("wirekit sql", "duckdb", "pyarrow")
    from wirekit.pipeline.output import lake_of
    from wirekit.pipeline.reading import refusal_of

    lake_by_path = {path: lake_of(path) for path in paths}
    lakes = [*dict.fromkeys(filter(None, lake_by_path.values()))]  # one that is named twice is read once, as a capture
    others = [path for path in paths if not lake_by_path[path]]
    if not others and (protocol or ports or separate):
        raise click.UsageError("--protocol, --port and --separate apply to captures, but all inputs are tables")
    unread = Unread()
    with inputs_of(others, unread, separate=separate) if others else nullcontext(()) as inputs:
        refusal = "" if lakes else refusal_of(inputs)
        if refusal:
            say(refusal)
            return 1
        return _answer(query, Job(inputs, choice.protocol, dict(choice.ports)), lakes, form, to) or unread.status


def _list(name: str | None, output: str | None) -> int:
    """Prints the named queries by subject, or the SQL of one."""
    text = "" if name is None else queries.query(name)
    if text and output != "json":
        print_line(text)
        return 0
    screen = console() if output == "table" or (output is None and on_terminal()) else None
    for subject, names in queries.SUBJECTS.items():
        if screen is not None:
            screen.print(subject, style="bold", markup=False)
        for each in names:
            description = queries.description(each)
            if screen is not None:
                print_wrapped(screen, f"  {each:18}{description[0]}", indent=20)
            elif name in (None, each):
                details = {"description": " ".join(description), "sql": queries.query(each)}
                print_json({"name": each, "subject": subject, **details})
    return 0


def _form_of(to: str | None) -> str:
    """The form of the result if ``--output`` is not given."""
    if not to:
        return "table" if on_terminal() else "json"
    ending = Path(to).suffix[1:]
    if ending in FORMS:
        return ending
    if ending and ending not in JSON_LINES:
        raise click.UsageError(
            f"--to {to}: no output format has this suffix; write .parquet, .csv or .json, or pass --output"
        )
    return "json"


def _answer(query: str, job: Job, lakes: list[str], form: str, to: str | None) -> int:
    import duckdb
    import pyarrow as pa

    from wirekit.pipeline.commits import other_format
    from wirekit.pipeline.reading import READABLE
    from wirekit.pipeline.views import create_views
    from wirekit.tables.columns import OUTPUTS, TABLES

    refuse_unless_utf8("QUERY", query)
    with (
        interruption(),
        tempfile.TemporaryDirectory(prefix="wirekit_") as spilled,
        duckdb.connect(config={**SETTINGS, "temp_directory": spilled}) as connection,
    ):
        try:
            selects = [each.type for each in connection.extract_statements(query)].count(duckdb.StatementType.SELECT)
            if selects > 1:
                raise Misuse(f"QUERY has {selects} statements with a result; pass one")
            summary = create_views(connection, job, lakes)
            relation = connection.sql(query)
            if relation is not None:
                relation = _with_durations_as_text(relation)
                with _reader(relation) as reader:
                    _write(reader, form, to)
        except duckdb.Error as error:
            if isinstance(error, duckdb.ParserException) and re.fullmatch(r"[\w-]+", query):
                if query in TABLES:
                    raise Misuse(f'{query} is a table; pass "FROM {query}" for its rows') from None
                queries.query(query)  # refuses the name with advice
            unknown = re.match(r"Catalog Error: Table with name (.+?) does not exist!", str(error))
            problem = in_one_line(str(error)) + _place(error)
            if unknown is not None:
                names = ", ".join(dict.fromkeys([*(READABLE if job.inputs else ()), *(OUTPUTS if lakes else ())]))
                problem = f"no table {unknown[1]}; the tables of these inputs are {names}"
            is_name = isinstance(error, (duckdb.BinderException, duckdb.CatalogException))
            raise Misuse("; ".join(filter(None, [problem, *map(other_format, lakes if is_name else ())]))) from None
        except pa.ArrowNotImplementedError as error:
            raise Misuse(f"{form} cannot express a column of this query: {in_one_line(str(error))}") from None
    for name, reason in summary.unreadable.items():
        say(f"{name}: {reason}")
    undecoded = Counter[str]()
    for (kind, unit), number in summary.total().quarantine.items():
        undecoded[unit] += 0 if kind in CUT else number
    if undecoded["pieces"] and "quarantine" not in query.lower():
        # A piece without bytes is in decompressed data, or a wrong length.
        size = undecoded["bytes"]
        extent = f"not decoded: {plural(size, 'byte')}" if size else f"damaged: {plural(undecoded['pieces'], 'place')}"
        say(f"{extent}; the table quarantine has the reasons")
    return 1 if summary.unreadable else 0


def _reader(relation: duckdb.DuckDBPyRelation) -> pa.RecordBatchReader:
    """The result of a query.

    Raises:
        Misuse: Arrow has no type for a column, such as lists in more than 60 lists.
    """
    import pyarrow as pa

    try:
        return pa.RecordBatchReader.from_stream(relation)
    except pa.ArrowInvalid as error:
        raise Misuse(f"Arrow cannot express a column of this query: {in_one_line(str(error))}") from None


def _with_durations_as_text(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """A query whose intervals, such as differences of times, are text as DuckDB shows them: ``00:00:00.5``."""
    if "INTERVAL" not in map(str, relation.types):
        return relation
    columns = []
    for number, (name, kind) in enumerate(zip(relation.columns, relation.types, strict=True), 1):
        quoted = name.replace('"', '""')
        columns.append(f'#{number}{"::VARCHAR" if str(kind) == "INTERVAL" else ""} AS "{quoted}"')
    return relation.project(", ".join(columns))


def _place(error: duckdb.Error) -> str:
    """Where a syntax error is: the text before the mark that DuckDB sets below the line."""
    marked = re.match(r"Parser Error: .*\n\n(LINE \d+: )(.*)\n( *)\^", str(error))
    before = marked[2][: len(marked[3]) - len(marked[1])].strip() if marked else ""
    return f", after: {before[-40:]}" if before else ""


def in_one_line(text: str) -> str:
    """The message of a DuckDB error without the lines that quote the query, which follow an empty line."""
    line = re.sub(r"\s*\n\s*", " ", text.partition("\n\n")[0]).strip()
    of_bytes = re.match(r"Binder Error: No function matches .*?\(.*?BLOB.*?\)'\.", line)
    return f"{of_bytes[0]} Keys and values are bytes; decode(value) is text." if of_bytes else line


def _write(reader: pa.RecordBatchReader, form: str, to: str | None) -> None:
    names = _distinct(reader.schema.names)
    if to and form == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = pa.schema([field.with_name(name) for field, name in zip(reader.schema, names, strict=True)])
        with whole_file(to) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
            for batch in reader:
                writer.write_batch(batch.rename_columns(names))
        return
    rows = (row for batch in reader for row in zip(*map(_values, batch.columns), strict=True))
    lines_of = LINES[form]
    if not to and on_terminal():
        lines_of = {
            "table": partial(_table_lines, most=shutil.get_terminal_size().columns),
            "csv": partial(_csv_lines, text_of=printable),
        }.get(form, lines_of)
    with whole_file(to) if to else nullcontext(sys.stdout.buffer) as lines:
        for line in lines_of(names, rows):
            lines.write(line.encode() + b"\n")


def _distinct(names: list[str]) -> list[str]:
    """Column names; repeated names get a number."""
    counts: Counter[str] = Counter()
    distinct = []
    for name in names:
        counts[name] += 1
        distinct.append(name if counts[name] == 1 else f"{name}_{counts[name]}")
    return distinct


def _values(column: pa.Array) -> list[Any]:
    """The values of a column; as text if Python has no type for them, such as times after the year 9999."""
    try:
        values: list[Any] = column.to_pylist()
    except (ValueError, OverflowError):
        values = column.cast("string").to_pylist()
    return values


def _json_lines(names: list[str], rows: Iterable[tuple[Any, ...]]) -> Iterator[str]:
    for row in rows:
        yield json_text(dict(zip(names, map(_plain, row), strict=True)))


def _csv_lines(names: list[str], rows: Iterable[tuple[Any, ...]], text_of: Callable[[str], str] = str) -> Iterator[str]:
    line = io.StringIO()
    writer = csv.writer(line, lineterminator="")
    for row in chain([names], rows):
        values = (json_text(value) if isinstance(value, (list, dict, bool)) else value for value in map(_plain, row))
        writer.writerow([text_of(value) if isinstance(value, str) else value for value in values])
        yield line.getvalue()
        line.seek(0)
        line.truncate()


def _table_lines(names: list[str], rows: Iterable[tuple[Any, ...]], most: int = sys.maxsize) -> Iterator[str]:
    """A table whose columns are as wide as their first values; numbers are right-aligned.

    If the table would be wider than ``most``, each row is a block with a line per value. Without rows, the names are
    printed in any case: they tell an empty result from no result.
    """
    names = list(map(printable, names))
    remaining = iter(rows)
    first = list(islice(remaining, FIRST_ROWS))
    lines = [names, *(list(map(_cell, row)) for row in first)]
    widths = [max(map(cells, column)) for column in zip(*lines, strict=True)]
    if first and sum(widths) + 2 * len(widths) - 2 > most:
        yield from _blocks(names, chain(first, remaining))
        return
    right = [any(map(_is_number, column)) for column in zip(*first, strict=True)] or [False] * len(names)
    for row in chain(lines, (list(map(_cell, row)) for row in remaining)):
        aligned = (padded(cell, width, right=number) for cell, width, number in zip(row, widths, right, strict=True))
        yield "  ".join(aligned).rstrip()


def _blocks(names: list[str], rows: Iterable[tuple[Any, ...]]) -> Iterator[str]:
    width = max(map(cells, names))
    for number, row in enumerate(rows):
        if number:
            yield ""
        for name, value in zip(names, row, strict=True):
            yield f"{padded(name, width)}  {_cell(value)}"


LINES: dict[str, Callable[[list[str], Iterable[tuple[Any, ...]]], Iterator[str]]] = {
    "table": _table_lines,
    "json": _json_lines,
    "csv": _csv_lines,
}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _cell(value: Any) -> str:
    """A value as one line of at most ``LONGEST_CELL`` characters."""
    match value:
        case None:
            return "null"
        case bytes():
            text = readable(value)
            shown = value.hex() if text is None else text
        case datetime():
            shown = value.replace(tzinfo=None).isoformat(" ")
        case float():
            shown = f"{value:.6g}" if abs(value) < EXACT else repr(value)
        case list() | dict() | tuple() | bool():
            shown = json_text(_plain(value))
        case _:
            shown = printable(str(value))
    return shown if len(shown) <= LONGEST_CELL else f"{shown[:LONGEST_CELL]}… ({len(shown):,} characters)"


def _plain(value: Any) -> Any:
    """A value as JSON: bytes in hex, times in ISO 8601, null for numbers that JSON lacks."""
    match value:
        case bytes():
            return value.hex()
        case date() | time():
            return value.isoformat()
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case float():
            return value if isfinite(value) else None
        case dict():
            return {str(name): _plain(item) for name, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case None | int() | str():
            return value
    return str(value)
