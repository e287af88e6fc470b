"""The Delta logs of a lake: each table is a Delta table, and each bundle one transaction of each of them.

The number of the bundle is the version of the application transaction: a transaction that a table already has is not
repeated, no matter how the run that wrote it ended. Files of replaced bundles are kept, so that earlier versions
of a table can be read until ``VACUUM`` removes them.
"""

from __future__ import annotations

import errno
import json
import os
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from wirekit.errors import Misuse, lacking
from wirekit.pipeline.folders import Folder
from wirekit.storage import is_remote, s3_endpoint
from wirekit.tables.columns import OUTPUTS
from wirekit.values import shown

if TYPE_CHECKING:
    import pyarrow.parquet as pq
    from deltalake import DeltaTable

APPLICATION = "wirekit"
LOG = "_delta_log"
SCHEMES = ("s3", "gs", "abfs", "abfss")
"""Object stores that deltalake writes to."""
_BACKTRACE = re.compile(r"\n *0: ")  # the beginning of a backtrace of native code, after the message
_MISREAD = re.compile(r"%[0-9A-Fa-f]{2}|[\\\x00-\x1f\x7f]")
"""Parts of paths and URIs that deltalake decodes, replaces or refuses."""
LONGEST_TEXT = 32
"""Maximum number of characters of a text column's least and greatest value; a file with a longer one states neither."""


@dataclass(frozen=True, slots=True)
class Added:
    """A file that a transaction adds to a table: its name in the table's folder, bytes, and ``statistics``."""

    name: str
    bytes: int
    statistics: str


@dataclass(frozen=True, slots=True)
class Change:
    """The changes to one table by a bundle.

    Attributes:
        table: its name.
        added: the files to add.
        removed: the names of the files to remove; None for all files of the table.
    """

    table: str
    added: tuple[Added, ...]
    removed: tuple[str, ...] | None = ()

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Change:
        """The inverse of ``dataclasses.asdict``."""
        removed = fields["removed"]
        added = tuple(Added(**each) for each in fields["added"])
        return cls(fields["table"], added, None if removed is None else tuple(removed))


def check(lake: Folder) -> None:
    """Refuses a lake that cannot have Delta tables.

    Raises:
        Misuse: deltalake is not installed, or cannot write to the store or the path of the lake.
    """
    if is_remote(lake.name) and lake.name.partition("://")[0].lower() not in SCHEMES:
        raise Misuse(f"Delta tables cannot be written to {lake.name}; use a directory or {', '.join(SCHEMES)}")
    misread = _MISREAD.search(lake.name)
    if misread is not None:
        raise Misuse(
            f"Delta tables cannot be written to {shown(lake.name)}: deltalake does not read {shown(misread[0])} in a "
            "path as it is; use another directory"
        )
    with _deltalake("--format delta"):
        pass


def has_log(lake: Folder, table: str) -> bool:
    """Whether a table of a lake is a Delta table."""
    return lake.kind(f"{table}/{LOG}") == "folder"


def table_of(lake: Folder, table: str) -> DeltaTable:
    """Opens a table of a lake with Delta tables.

    Raises:
        Misuse: deltalake is not installed.
        OSError: the log of the table cannot be read.
    """
    with _deltalake(lake.name):
        from deltalake import DeltaTable
    uri = f"{lake.name}/{table}"
    with _failures(uri):
        return DeltaTable(uri, storage_options=_options(uri))


def check_present(lake: Folder, changes: Iterable[Change], filled: Collection[str]) -> None:
    """Refuses to remove files that another program has rewritten, because the rows of the bundle cannot be identified.

    Args:
        lake: the lake.
        changes: the changes of its tables.
        filled: the tables that keep files of other bundles; a new log would lack them.

    Raises:
        Misuse: a file to remove is not in its table, or a table has lost its log.
    """
    from deltalake import DeltaTable

    for change in changes:
        uri = f"{lake.name}/{change.table}"
        if change.table in filled and not DeltaTable.is_deltatable(uri, storage_options=_options(uri)):
            raise Misuse(f"{uri} has lost its transaction log; restore {LOG}, or pass --replace")
        if change.removed:
            missing = {*change.removed} - _names(table_of(lake, change.table))
            if missing:
                raise Misuse(
                    f"{lake.name}/{change.table}: another program has rewritten {min(missing)}, which is to be "
                    "replaced; pass --replace"
                )


def transact(lake: Folder, bundle: int, changes: Iterable[Change]) -> None:
    """Executes the transactions of a bundle on each table, except those that are already in the log.

    Raises:
        OSError: a log cannot be written.
    """
    from deltalake import DeltaTable, Schema
    from deltalake.transaction import (
        AddAction,
        CommitProperties,
        RemoveAction,
        Transaction,
        create_table_with_add_actions,
    )

    for change in changes:
        uri = f"{lake.name}/{change.table}"
        now = time.time_ns() // 1_000_000
        added = [AddAction(each.name, each.bytes, {}, now, True, each.statistics) for each in change.added]
        schema = Schema.from_arrow(OUTPUTS[change.table].schema)
        properties = CommitProperties(app_transactions=[Transaction(APPLICATION, bundle, now)])
        options = _options(uri)
        with _failures(uri):
            if not DeltaTable.is_deltatable(uri, storage_options=options):
                create_table_with_add_actions(uri, schema, added, storage_options=options, commit_properties=properties)
                continue
            table = DeltaTable(uri, storage_options=options)
            version = table.transaction_version(APPLICATION)
            if version is not None and version >= bundle:
                continue
            removed = [RemoveAction(name, True, now) for name in change.removed or ()]
            mode = "overwrite" if change.removed is None else "append"
            if added or removed or mode == "overwrite":
                table.create_write_transaction([*removed, *added], mode, schema, commit_properties=properties)


def statistics(metadata: pq.FileMetaData) -> str:
    """Statistics of a Parquet file for a Delta log, as JSON: rows, and of each column minimum, maximum and nulls."""
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for number in range(metadata.num_columns if metadata.num_row_groups else 0):
        columns = [metadata.row_group(group).column(number) for group in range(metadata.num_row_groups)]
        name, chunks = columns[0].path_in_schema, [column.statistics for column in columns]
        if "." in name or not all(each is not None and each.has_null_count for each in chunks):
            continue
        nulls[name] = sum(each.null_count for each in chunks)
        bounded = [each for each in chunks if each.num_values]
        if bounded and all(each.has_min_max for each in bounded):
            low, high = _least(min(each.min for each in bounded)), _greatest(max(each.max for each in bounded))
            if low is not None and high is not None:
                least[name], greatest[name] = low, high
    totals = {"numRecords": metadata.num_rows, "minValues": least, "maxValues": greatest, "nullCount": nulls}
    return json.dumps(totals, ensure_ascii=False)


def _least(value: object) -> int | str | None:
    """A value in JSON, or a lower bound of it; None for types and texts without statistics."""
    if isinstance(value, bool) or (isinstance(value, str) and len(value) > LONGEST_TEXT):
        return None
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
    if isinstance(value, date):
        return value.isoformat()
    return value if isinstance(value, (int, str)) else None


def _greatest(value: object) -> int | str | None:
    """Like ``_least``, but the value or an upper bound."""
    if not isinstance(value, datetime) or value.microsecond % 1000 == 0:
        return _least(value)
    with suppress(OverflowError):
        return _least(value + timedelta(milliseconds=1))
    return None


def _names(table: DeltaTable) -> set[str]:
    """The names of a table's files in its folder."""
    return {uri.rpartition("/")[2] for uri in table.file_uris()}


def _options(uri: str) -> dict[str, str]:
    """Options by which deltalake finds the store of a URI; credentials come from the environment, as for pyarrow."""
    endpoint = s3_endpoint(os.environ) if uri.lower().startswith("s3://") else None
    if endpoint is None:
        return {}
    return {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": str(endpoint.startswith("http:")).lower()}


@contextmanager
def _deltalake(purpose: str) -> Iterator[None]:
    try:
        import deltalake  # noqa: F401

        yield
    except ModuleNotFoundError as error:
        raise lacking(purpose, error) from error


@contextmanager
def _failures(uri: str) -> Iterator[None]:
    """Converts an error of a log to one line with the name of the table."""
    from deltalake.exceptions import DeltaError

    try:
        yield
    except (DeltaError, OSError) as error:
        text = _BACKTRACE.split(str(error), maxsplit=1)[0]
        raise OSError(errno.EIO, " ".join(text.split()), uri) from error
