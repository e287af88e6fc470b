"""Columns to bytes: the inverse of the columns engine, by the write program of the same layout.

``building.run`` runs the program over the columns, ``building.contents`` joins the rows of nested records to the
records that contain them. This module writes the header before the records.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wirekit.compiler import ir
from wirekit.compiler.building.contents import closed
from wirekit.compiler.building.places import Rows
from wirekit.compiler.building.run import run
from wirekit.compiler.columns import column_names
from wirekit.compiler.columns.header_variants import selected_by_header
from wirekit.compiler.columns.plan import Records
from wirekit.compiler.columns.programs import Columnar, led_program, program, program_of
from wirekit.compiler.contexts import checked
from wirekit.encoding import built_key, encode
from wirekit.errors import Misuse, WireError, WirekitError
from wirekit.program.show import shown_writing
from wirekit.program.write import WriteProgram, write
from wirekit.registry import load_object, registry
from wirekit.runtime.write_words import WRITE_PROGRAMS

FRONT = b"wirekit.front"


def build_columns(key: str, batch: Any, *, context: Mapping[str, Any] | None = None, **options: Any) -> bytes:
    """Encodes the rows of a batch as records: the inverse of ``columns``.

    Lengths, counts, checksums and constants are computed. A bad one is written unchanged if the batch has both its
    column and its verdict (``message.crc`` and ``message.crc.ok``). A missing column takes the default of the layout.
    Of the columns that begin with ``@``, three are used: ``@gap``, and ``@index`` and ``@offset``, which show the rows
    that are messages of one record.

    Args:
        key: the key of a schema with columns.
        batch: a ``pyarrow.RecordBatch`` or ``Table`` with the columns of ``columns`` in any order. Integers may have
            any width, bytes and text any binary or string type. Numbers with names may be names or dictionaries. Times
            may be integers, or timestamps of any unit with a time zone. A field inside a list has a list in each row;
            the fields of a list of structures have lists of one length.
        context: facts that the bytes lack, as for ``wirekit.columns``.
        options: options of the protocol for this layout, such as ``codec="gzip"`` for a Kafka message set.

    Returns:
        The bytes that ``encode`` returns for the same records.

    Raises:
        Misuse: for a schema without columns; a column of the wrong type or name; a missing column without a default;
            context that the layout does not use or has no case for; a null or a value that the layout does not allow;
            lists of one structure that differ in length. The text has the column, the row, and in lists the indexes of
            the element.

    >>> import pyarrow as pa, wirekit
    >>> batch = pa.RecordBatch.from_pydict({"relative_offset": [1, 4], "position": [0, 120]})
    >>> wirekit.build_columns("kafka.offset_index", batch).hex()
    '00000001000000000000000400000078'

    A field inside a list has a list in each row:

    >>> topics = {"topic_partitions.topic": [["t"]], "topic_partitions.partitions": [[[0, 2]]]}
    >>> batch = pa.RecordBatch.from_pydict({"version": [0], **topics})
    >>> wirekit.build_columns("kafka.consumer_assignment", batch).hex()
    '000000000001000174000000020000000000000002ffffffff'
    """
    key = built_key(key)
    schema, protocol = registry[key], registry.protocol(key)
    checked_context = checked(key, context)
    place = protocol.built.get(key.removeprefix(f"{protocol.name}."))
    if place is None:
        if options:
            raise Misuse(f"{key} takes no options; remove {', '.join(options)}")
        return encode_batch(schema.key, batch, context=checked_context)
    function = load_object(place)
    signature = inspect.signature(function)
    options |= {"context": checked_context} if checked_context else {}
    try:
        signature.bind(schema.key, batch, **options)
    except TypeError as error:
        names = [name for name, each in signature.parameters.items() if each.kind is each.KEYWORD_ONLY]
        raise Misuse(f"{key}: {error}; it takes {', '.join(names)}") from None
    built: bytes = function(schema.key, batch, **options)
    return built


def record_batch(key: str, batch: Any, columnar: Columnar | None = None) -> pa.RecordBatch:
    """A batch or table as one batch whose columns are known to the layout.

    Args:
        columnar: the program of the key, if it depends on the batch.

    Raises:
        Misuse: the object is neither, the chunks of a table do not fit one batch, or the layout has no such column.
    """
    batch = _one_batch(key, batch)
    names, columnar = batch.schema.names, columnar or program(key)
    for name in names:
        if names.count(name) > 1:
            raise Misuse(f"{key}: the batch has {names.count(name)} columns {name}; give it once")
        if name not in column_names.names(columnar) and not name.startswith("@"):
            raise column_names.unknown(key, name, columnar)
    return batch


def _one_batch(key: str, batch: Any) -> pa.RecordBatch:
    if isinstance(batch, pa.Table) and not batch.num_rows:
        return pa.RecordBatch.from_pylist([], schema=batch.schema)
    if isinstance(batch, pa.Table):
        try:
            return pa.concat_batches(batch.to_batches())
        except pa.ArrowInvalid as error:
            raise Misuse(f"{key}: the table is too large for one batch ({error}); give large_binary columns") from None
    if not isinstance(batch, pa.RecordBatch):
        raise Misuse(f"{key}: pass a RecordBatch or Table, not {type(batch).__name__}")
    return batch


def encode_batch(
    key: str,
    batch: Any,
    *,
    first: int = 0,
    context: Mapping[str, Any] | None = None,
    ends: NDArray[Any] | None = None,
) -> bytes:
    """The bytes of a batch, record after record, with the fields before them.

    Args:
        key: the schema's key.
        batch: a batch or table, as for ``record_batch``.
        first: the number of its first row, for errors.
        context: facts that the bytes lack.
        ends: receives the end of each record, as int64.

    Raises:
        Misuse: as ``build_columns``.
    """
    columnar, ahead = _header_program(key, batch, context)
    batch = record_batch(key, batch, columnar)
    message_fields = column_names.message_fields(columnar).intersection(batch.schema.names)
    writer = _writer(key, columnar, message_fields, apart=ends is not None)
    rows: Rows = first
    facts: dict[str, NDArray[Any]] = {}
    if columnar.program.contents is not None:
        batch, rows, facts = closed(
            key, columnar, writer, _contents_program(key, columnar, message_fields), batch, first
        )
    numbers = [lead.number for lead in columnar.plan.lead if lead.number is not None]
    front = len(ahead) + sum(number.groups or number.size for number in numbers)
    output, end = run(key, writer, batch, rows, front=front, facts=facts, ends=ends)
    if columnar.plan.counted and not columnar.plan.least and batch.num_rows > end - front:
        raise Misuse(f"{key}: {batch.num_rows} records take {end - front} bytes; decoding needs a byte for each record")
    lead = ahead + _lead(key, columnar.plan, end - front, batch.num_rows)
    spare = front - len(lead)
    output.array[spare:front] = np.frombuffer(lead, np.uint8)
    if ends is not None:
        ends -= spare
    return output.cut(end)[spare:]


def _header_program(key: str, batch: Any, context: Mapping[str, Any] | None) -> tuple[Columnar, bytes]:
    """The program of a key, and the encoded fields before the records if they select the records' layout."""
    layout = registry[key].layout
    if not selected_by_header(layout):
        return program(key, context), b""
    assert isinstance(layout, ir.Structure)
    text = (_one_batch(key, batch).schema.metadata or {}).get(FRONT)
    if text is None:
        advice = f"pass them as the metadata {FRONT.decode()}, as columns does"
        raise Misuse(f"{key}: its first fields select the layout of the records; {advice}")
    try:
        ahead = encode(key, {**json.loads(text), layout.members[-1].name: []})
    except (ValueError, TypeError, WirekitError) as error:
        raise Misuse(f"{key}: the metadata {FRONT.decode()} does not hold its first fields: {error}") from None
    try:
        return led_program(key, np.frombuffer(ahead, np.uint8), registry[key].limits)[0], ahead
    except WireError:
        raise Misuse(f"{key}: the metadata {FRONT.decode()} selects records of an unknown layout") from None


@lru_cache(WRITE_PROGRAMS)
def _writer(
    key: str, columnar: Columnar, message_fields: frozenset[str] | None, *, apart: bool = False
) -> WriteProgram:
    """The program that builds records.

    Args:
        message_fields: the fields of messages that the batch has; None for all.
        apart: whether it stores the end of each record, and a record may be empty.
    """
    read, plan = columnar.program, columnar.plan
    some = not (apart or plan.counted or ir.minimum(plan.element))  # no count precedes the records
    return write(
        key,
        plan.element,
        read.columns,
        gaps=read.gaps,
        with_choices=columnar.with_choices,
        some=some,
        until=b"" if apart else plan.until,
        except_first=plan.except_first,
        message_fields=message_fields,
    )


@lru_cache(WRITE_PROGRAMS)
def _contents_program(key: str, columnar: Columnar, message_fields: frozenset[str]) -> WriteProgram | None:
    """The program that builds the records inside a schema's records; None if they contain none."""
    if columnar.contents is None:
        return None
    plan, columns = columnar.contents.plan, columnar.contents.program.columns
    return write(key, plan.element, columns, gaps=False, within=plan.path, message_fields=message_fields)


def source(key: str, ahead: bytes = b"", context: Mapping[str, Any] | None = None) -> str:
    """The steps of a schema's write program, as ``wirekit explain KEY --engine build-columns`` prints them.

    Args:
        ahead: the bytes before the records, if a header selects the layout of the records.
        context: values that the layout takes from the caller.

    Raises:
        Misuse: the schema has no columns, or columns cannot build it.
    """
    return shown_writing(_writer(key, program_of(key, ahead, context), None))


def _lead(key: str, plan: Records, size: int, rows: int) -> bytes:
    """The fields before the records, now that the size of these is known."""
    data = b""
    for lead in reversed(plan.lead):
        if lead.number is None:
            continue
        value = rows if lead.role == "count" else int(lead.value or 0)
        if lead.measure is not None:
            value = len(data) + size + lead.measure.add
        if not lead.number.low <= value <= lead.number.high or (lead.measure and value < lead.measure.least):
            low = lead.measure.least if lead.measure else lead.number.low
            unit, change = "records" if lead.role == "count" else "bytes", "more" if value < low else "fewer"
            within = f"{value} {unit} is not in {low}..{lead.number.high}"
            raise Misuse(f"{key}: {lead.path}: {within}; build {change} rows")
        data = lead.number.written(value) + data
    return data
