"""The tables of captures, stored files and lakes as DuckDB views; each is read when a query scans it."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from wirekit.pipeline.commits import lake_files
from wirekit.pipeline.delta import has_log, table_of
from wirekit.pipeline.folders import folder
from wirekit.pipeline.inputs import Job
from wirekit.pipeline.reading import READABLE, table_batches
from wirekit.pipeline.summary import Summary
from wirekit.storage import is_remote, place_of
from wirekit.tables.columns import OUTPUTS, TABLES

if TYPE_CHECKING:
    import duckdb


class _Scanned:
    """A table of captures and stored files as an Arrow stream, which every scan reads again."""

    def __init__(self, job: Job, name: str, summary: Summary) -> None:
        self._job = job
        self._name = name
        self._schema = READABLE[name].schema
        self._summary = summary

    def __arrow_c_schema__(self) -> Any:
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        reader = pa.RecordBatchReader.from_batches(self._schema, self._batches())
        return reader.__arrow_c_stream__(requested_schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        summary = Summary()
        yield from table_batches(self._job, self._name, summary=summary)
        self._summary.files.update(summary.files)


def create_views(connection: duckdb.DuckDBPyConnection, job: Job, lakes: Sequence[str]) -> Summary:
    """Creates a view of each table; a table that a query names twice is read twice.

    Args:
        connection: the DuckDB connection.
        job: captures and stored files, if any.
        lakes: directories and prefixes that the pipeline wrote; a view has their rows and those of ``job``.

    Returns:
        The counts of the files of ``job``, filled by scans that run to their end.
    """
    summary = Summary()
    stored = [_stored(connection, f"lake_{number}", lake) for number, lake in enumerate(lakes)]
    for name in TABLES:
        sources = [each[name] for each in stored if name in each]
        if job.inputs and name in READABLE:
            scanned = f"read_{name}" if sources else name
            connection.register(scanned, _Scanned(job, name, summary))
            if scanned == name:
                continue
            sources.append(scanned)
        if sources:
            connection.execute(f"CREATE TEMP VIEW {name} AS FROM {' UNION ALL BY NAME FROM '.join(sources)}")
    return summary


def _stored(connection: duckdb.DuckDBPyConnection, view: str, lake: str) -> dict[str, str]:
    """The SQL sources of the tables of a lake, by table.

    pyarrow reads Delta tables and object stores: DuckDB would download an extension for them.
    """
    import pyarrow.dataset

    place, sources = folder(lake), dict[str, str]()
    logged = place.each(lambda table: has_log(place, table), OUTPUTS)
    plain = lake_files(lake, [table for table, has_one in zip(OUTPUTS, logged, strict=True) if not has_one])
    for table, has_one in zip(OUTPUTS, logged, strict=True):
        if has_one:
            connection.register(f"{view}_{table}", table_of(place, table).to_pyarrow_dataset())
        elif not plain[table]:
            continue
        elif not is_remote(lake):
            sources[table] = f"read_parquet([{', '.join(map(_literal, plain[table]))}])"
            continue
        else:
            paths = [place_of(uri).path for uri in plain[table]]
            rows = pyarrow.dataset.dataset(paths, filesystem=place_of(lake).system)
            connection.register(f"{view}_{table}", rows)
        sources[table] = f"{view}_{table}"
    return sources


def _literal(path: str) -> str:
    """A path as SQL text, with the characters escaped that DuckDB would read as a pattern."""
    return "'" + glob.escape(path).replace("'", "''") + "'"
