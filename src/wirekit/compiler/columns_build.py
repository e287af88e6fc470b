"""Columns to bytes: the inverse of the columns engine, by a kernel that is generated from the same IR.

``columns_build_code`` writes the kernel, ``columns_inputs`` prepares the columns. Here what stands in front of the
records is written, the kernel is run, and what it says about a row becomes an error.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from wirekit.compiler import columns_cache
from wirekit.compiler.columns_build_code import Builder, builder
from wirekit.compiler.columns_build_protobuf import leaves
from wirekit.compiler.columns_inputs import Input, taken
from wirekit.compiler.columns_plan import Lead, Records
from wirekit.compiler.columns_programs import program
from wirekit.errors import Misuse

if TYPE_CHECKING:
    from numpy.typing import NDArray

_builders: dict[str, Builder] = {}
_lock = threading.Lock()


def build_columns(key: str, batch: Any, **options: Any) -> bytes:
    """The bytes of the records that the rows of a batch are: the inverse of ``columns``.

    Lengths, counts, checksums and constants are computed. One that was read and found bad stays as it was, as long as
    the batch has both its column and its verdict (``message.crc`` and ``message.crc.ok``). A column that is not there
    takes the layout's default. Of the columns of the scan (``@offset`` and so on) only ``@gap`` is looked at.

    Args:
        key: the key of a schema that gives columns.
        batch: a ``pyarrow.RecordBatch`` or ``Table`` with columns as ``columns`` has them, in any order; integers of
            any width, bytes and text as any binary or string type, names for numbers that have names, dictionaries;
            times as integers or as timestamps of any unit, with a time zone.
        options: what the protocol offers for this layout, for example ``codec="gzip"`` for a Kafka message set.

    Returns:
        What ``encode`` would give for the rows as records.

    Raises:
        Misuse: for a schema that gives no columns, a column of another type or name, one that is missing and has no
            default, a null or a value that the layout does not have; the text has the column and the row.

    >>> import pyarrow as pa, wirekit
    >>> batch = pa.RecordBatch.from_pydict({"relative_offset": [1, 4], "position": [0, 120]})
    >>> wirekit.build_columns("kafka.offset_index", batch).hex()
    '00000001000000000000000400000078'
    """
    from wirekit.registry import registry

    schema, protocol = registry[key], registry.protocol(key)
    place = protocol.built.get(key.removeprefix(f"{protocol.name}."))
    if place is None:
        if options:
            raise Misuse(f"{key} is built without options; {', '.join(options)} means nothing to it")
        return assembled(schema.key, batch)
    module, name = place.split(":")
    function = getattr(importlib.import_module(module), name)
    try:
        inspect.signature(function).bind(schema.key, batch, **options)
    except TypeError as error:
        raise Misuse(f"{key}: {error}; it takes {inspect.signature(function)}") from None
    built: bytes = function(schema.key, batch, **options)
    return built


def record_batch(key: str, batch: Any) -> pa.RecordBatch:
    """A batch or table as one batch whose columns are known to the layout.

    Raises:
        Misuse: when it is neither, when the chunks of a table do not fit one batch, for a column of another name.
    """
    if isinstance(batch, pa.Table):
        try:
            batch = pa.concat_batches(batch.to_batches()) if batch.num_rows else batch.schema.empty_table()
        except pa.ArrowInvalid as error:
            raise Misuse(f"{key}: the table is too large for one batch ({error}); give large_binary columns") from None
        if isinstance(batch, pa.Table):
            batch = pa.RecordBatch.from_pylist([], schema=batch.schema)
    if not isinstance(batch, pa.RecordBatch):
        raise Misuse(f"{key}: columns are built from a RecordBatch or Table, not from a {type(batch).__name__}")
    made, names = program(key), batch.schema.names
    known = [*made.schema.names, *(place.path for message in made.kernel.messages for place in leaves(message))]
    for name in names:
        if names.count(name) > 1:
            raise Misuse(f"{key}: the batch has {names.count(name)} columns {name}; give it once")
        if name not in known and not name.startswith("@"):
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
            raise Misuse(f"{key} has no column {name!r}; it has {', '.join(near or known)}")
    return batch


def assembled(key: str, batch: Any, *, first: int = 0) -> bytes:
    """The bytes of a batch, record after record, with what the layout has in front of them.

    Args:
        first: the number of its first row, for errors.

    Raises:
        Misuse: as ``build_columns``.
    """
    plan, made = program(key).plan, building(key)
    batch = record_batch(key, batch)
    inputs = {column.path: taken(key, column, _column(batch, column.path), first) for column in made.columns.values()}
    front = sum(lead.number.size for lead in plan.lead if lead.number is not None)
    room = front + batch.num_rows * made.most + sum(each.total for each in inputs.values())
    try:
        out, end = _run(made, inputs, batch.num_rows, front, room)
    except _Unfit as error:
        path, text = made.reasons[error.reason]
        raise Misuse(f"{key}: row {first + error.row}: {path}: {text}") from None
    _lead(key, plan, out, end, batch.num_rows)
    return out[:end].tobytes()


def building(key: str) -> Builder:
    """The kernel that builds a schema's records, written when first asked for; nothing is compiled yet.

    Raises:
        Misuse: when the schema gives no columns, or has something that they cannot build.
    """
    made = program(key)
    with _lock:
        found = _builders.get(key)
        if found is None:
            kernel = made.kernel
            found = _builders[key] = builder(key, made.plan.element, kernel.columns, kernel.messages, gaps=kernel.gaps)
    return found


def source(key: str) -> str:
    """The generated source of the kernel that builds, as ``wirekit explain KEY --engine build-columns`` prints it."""
    return building(key).source


def _column(batch: pa.RecordBatch, path: str) -> pa.Array | None:
    index = batch.schema.get_field_index(path)
    return None if index < 0 else batch.column(index)


class _Unfit(Exception):
    """A row that does not fit the layout, and the index of the reason."""

    def __init__(self, row: int, reason: int) -> None:
        super().__init__()
        self.row = row
        self.reason = reason


def _run(made: Builder, inputs: dict[str, Input], rows: int, front: int, room: int) -> tuple[NDArray[Any], int]:
    """What the kernel builds behind ``front`` bytes, and where it ends."""
    if not rows:
        return np.zeros(front, np.uint8), front
    given = np.zeros(max(column.slot for column in made.columns.values()) + 1, np.uint8)
    arrays: dict[str, NDArray[Any]] = {}
    for path, each in inputs.items():
        given[made.columns[path].slot] = each.given
        arrays |= each.arrays
    arrays |= {"o": np.empty(room, np.uint8), "given": given}
    state = np.array([front, 0, rows, 0], np.int64)
    function = columns_cache.function(made.source, "int64", "build")
    while True:
        told = [(arrays[name].__array_interface__["data"][0], arrays[name].size) for name, _ in made.arrays]
        reason = function(np.array(told, np.int64).ravel(), state)
        if reason <= 0:
            break
        more = max(arrays["o"].size, 4096)  # for bytes that are in no column
        arrays["o"] = np.concatenate([arrays["o"], np.empty(more, np.uint8)])
        state[3] += more
    if reason < 0:
        raise _Unfit(int(state[1]), -int(reason) - 1)
    return arrays["o"], int(state[0])


def _lead(key: str, plan: Records, out: NDArray[Any], end: int, rows: int) -> None:
    """Writes what stands in front of the records, now that they are there."""
    position = 0
    for lead in plan.lead:
        if lead.number is None:
            continue
        value = _value(lead, rows, end - position - lead.number.size)
        if not lead.number.low <= value <= lead.number.high or (lead.measure and value < lead.measure.least):
            low = lead.measure.least if lead.measure else lead.number.low
            what = "records" if lead.role == "count" else "bytes"
            raise Misuse(f"{key}: {lead.path}: {value} {what} is not in {low}..{lead.number.high}; build fewer rows")
        order: Any = "little" if lead.number.little else "big"
        data = value.to_bytes(lead.number.size, order, signed=lead.number.signed)
        out[position : position + len(data)] = np.frombuffer(data, np.uint8)
        position += len(data)


def _value(lead: Lead, rows: int, behind: int) -> int:
    if lead.role == "count":
        return rows
    if lead.measure is not None:
        return behind + lead.measure.add
    return int(lead.value)
