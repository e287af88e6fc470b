"""The columns engine: a buffer of many records to a ``pyarrow.RecordBatch``, by programs made from the IR.

``columns.plan`` finds the list of records in a schema, ``program.read`` generates the program that reads a record, and
``run`` runs the interpreter over the records. Compressed records are unpacked and scanned by the same program, and the
filled arrays become Arrow columns without another copy. ``columns.reference`` gets the error of a record from the
reference engine, so that errors have one source.

Columns. Each field has a column named by its path (``message.key``, ``message.attributes.codec``), null where the field
is absent. Numbers keep their size. Numbers with symbols are int32 (int64 if that is too small), and the field's
metadata has the symbols, as JSON under ``wirekit.symbols``. Times are timestamps; their metadata has the
``wirekit.unit``. Bytes are ``binary``, or ``large_binary`` if one column has 2 GiB or more. Text is ``string``; bytes
that are not UTF-8 become U+FFFD. ``<path>.ok`` is the verdict on a checksum, a length that bounds nothing, a constant,
a text's encoding, or decompression; it is null where there was nothing to verify. Columns of the scan:

- ``@offset``, ``@length``: the range of the record in bytes, in the buffer or in the decompressed data around it;
- ``@gap``: bytes inside the record that no field explains, or that have no column, if the layout allows any;
- ``@depth``: 0 for the buffer, 1 for data compressed in it, and so on; ``@wrapper``: the ``@offset`` of the outermost
  record that contains the row compressed, null at depth 0. Both exist only if records can be compressed.

A record that contains other records is replaced by them. A record that cannot be decompressed stays, with its bytes,
unless its data is ``streamed`` and records come before the damage. With ``wrappers=True`` all records stay, each before
its content, and two more columns describe them: ``@parent``, the row of the wrapper, and, for a wrapper, ``@left``: the
bytes after the last good record in it.

The batch's metadata:

- ``wirekit.key``;
- ``wirekit.consumed``: the end of the records, where a truncated last record begins; the end of the length, if a length
  bounds the records and all of them are good;
- ``wirekit.errors``: the number of errors;
- ``wirekit.front``: the fields of the header as JSON, if a header selects the layout of the records;
- ``wirekit.left_out``: the paths without a column, see ``columns.protobuf``.

The interpreter is compiled at first use and stored on disk (see ``cache``). It releases the GIL.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wirekit.compiler import cache
from wirekit.compiler.columns.arrow import batch_of, merged_levels
from wirekit.compiler.columns.column_names import checked, selected
from wirekit.compiler.columns.compressed_records import compressed_levels
from wirekit.compiler.columns.errors import LevelErrors, details_of, error_batch, errors_of
from wirekit.compiler.columns.header_variants import selected_by_header
from wirekit.compiler.columns.meanings import TIMES, dated, with_symbols
from wirekit.compiler.columns.opening import BOTH, Opening
from wirekit.compiler.columns.plan import Ranges, Start, start
from wirekit.compiler.columns.programs import Columnar, described, led_program, program
from wirekit.compiler.columns.reference import Reference, of_records
from wirekit.compiler.columns.run import Level, NoRoom, as_array, byte_strings, run
from wirekit.decoding import check_options
from wirekit.encoding import built_key
from wirekit.errors import Misuse, WireError, plural
from wirekit.registry import registry
from wirekit.wire.stream import Allowance, Limits

LIBRARIES = 200 << 20
"""Bytes of memory of numba, Arrow and the compiled kernels, which count against ``Limits.memory``."""


def columns(
    key: str,
    buffer: Any,
    *,
    limits: Limits | None = None,
    fields: Sequence[str] | None = None,
    enums: str = "int",
    times: str = "timestamp",
    context: Mapping[str, Any] | None = None,
) -> pa.RecordBatch:
    """Decodes many records to an Arrow batch: one row for each record, one column for each field.

    Args:
        key: the key of a schema. If it is a list, its elements are the records; else the buffer holds records of this
            schema one after the other. The name of a protocol means the frames of its clients.
        buffer: bytes, or another object with the buffer protocol, such as ``mmap``; contiguous.
        limits: bounds for hostile bytes; by default the protocol's.
        fields: paths of the columns to return, each with all columns inside it. By default all, without those of
            protobuf messages that the buffer does not contain.
        enums: ``int``, or ``dictionary`` for the names of numbers; a number without a name becomes its digits.
        times: ``timestamp`` for times since the epoch as ``timestamp[ms, UTC]`` (or the unit of the field), or ``int``
            for the number in the bytes. A time of -1 is a millisecond before 1970, not null.
        context: facts that the bytes lack, as for ``wirekit.decode``.

    Returns:
        A ``pyarrow.RecordBatch`` with the columns that docs/columns.md describes. It lacks records that do not decode:
        ``scan`` returns their errors, and the metadata ``wirekit.errors`` has their number. If records exceed a limit,
        there is also a RuntimeWarning: many valid records with many columns exceed the memory limit.

    Raises:
        Misuse: for a schema without columns (the text names the cause), invalid ``enums`` or ``times``, or ``fields``
            that the layout lacks.

    >>> import wirekit
    >>> message = {"offset": 5, "message": {"magic": 0, "value": "6869"}}
    >>> data = wirekit.encode("kafka.message_set", {"messages": [message, message]})
    >>> batch = wirekit.columns("kafka.message_set", data)
    >>> batch["message.value"].to_pylist(), batch["message.crc.ok"].to_pylist(), batch["@offset"].to_pylist()
    ([b'hi', b'hi'], [True, True], [0, 28])
    """
    if enums not in ("int", "dictionary"):
        raise Misuse(f"enums must be 'int' or 'dictionary', not {enums!r}")
    batch, errors = scan(key, buffer, limits=limits, fields=fields, times=times, context=context)
    refused = errors.filter(pc.equal(errors["kind"], "limit"))
    if refused.num_rows:
        size = sum(refused.filter(pc.equal(refused["depth"], 0))["length"].to_pylist())
        warnings.warn(
            f"columns: {plural(size, 'byte')} of {key} exceed a limit and are not decoded, first at byte "
            f"{refused['at'][0]}: {refused['reason'][0]}; name fewer fields, pass fewer bytes, or raise the limit",
            RuntimeWarning,
            stacklevel=2,
        )
    return with_symbols(batch) if enums == "dictionary" else batch


def scan(
    key: str,
    buffer: Any,
    *,
    limits: Limits | None = None,
    wrappers: bool = False,
    fields: Sequence[str] | None = None,
    times: str = "int",
    context: Mapping[str, Any] | None = None,
) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Decodes many records as ``columns`` does, and returns the errors of those that do not decode.

    A record that does not decode ends the scan, unless its own length still gives the start of the next record. A
    record whose compressed records cannot be decompressed is both a row and an error of the kind
    ``decompression``; if records come before the damage in ``streamed`` data, these are the rows. A record that exceeds
    a limit, itself or in its compressed data, is only an error.

    Args:
        key, buffer, limits, fields, times, context: as for ``columns``, but times are integers by default.
        wrappers: whether to keep the records that contain compressed records.

    Returns:
        The batch of ``columns``, and a batch with one row per error: ``offset`` and ``length`` of the record (bytes; up
        to the end if the start of the next record is unknown), ``kind`` (short, wrong, limit, decompression, layout),
        ``path`` of the field in the record, ``at`` (the offset of the error), ``reason`` in words, ``limit`` (the name
        of the limit if the kind is limit, otherwise null), ``depth`` and ``wrapper`` of the record (as ``@depth`` and
        ``@wrapper``), and ``at_depth``: how many times the data in which ``at`` is an offset was decompressed. That is
        ``depth``, except for a limit exceeded inside the record.

        Kind, path, ``at`` and reason are those of the reference engine, which decodes each bad record again. This takes
        about as long as ``wirekit.decode`` of the record.

    Raises:
        Misuse: as for ``columns``.

    >>> batch, errors = scan("kafka.offset_index", bytes.fromhex("0000000500000010" "000000"))
    >>> batch["position"].to_pylist(), errors.num_rows, batch.schema.metadata[b"wirekit.consumed"]
    ([16], 0, b'8')
    """
    if times not in TIMES:
        raise Misuse(f"times must be 'timestamp' or 'int', not {times!r}")
    key = built_key(key)
    check_options("columns", context, limits)
    bounds = limits or registry[key].limits
    led = selected_by_header(registry[key].layout)
    data = as_array(buffer)
    allowance = Allowance(bounds, data.size)
    allowance.room -= LIBRARIES
    header = None
    if led:
        try:
            columnar, place, header = led_program(key, data, bounds)
        except WireError as error:
            return _unreadable(key, error, data.size)
        reference = Reference(key, header.node, header.scope, columnar.plan.stop, allowance)
    else:
        columnar = program(key, context)
        reference = of_records(columnar.plan, allowance, context)
        place = start(columnar.plan, data.data, 0, data.size, bounds.frame)
    paths = checked(key, columnar, fields)
    level = _level(data, place)
    beyond = counted = None
    try:
        run(columnar, columnar.plan, level, bounds, paths, allowance)
    except NoRoom as error:
        beyond, counted = error.position, error.rows
    if beyond is not None:  # the error, which keeps the arrays of the first scan, no longer exists here
        level = _level(data, replace(place, end=beyond, count=-1))
        run(columnar, columnar.plan, level, bounds, paths, counted=counted)
    wrong = [LevelErrors(columnar.program, reference, level).refused()]
    if beyond is not None:
        wrong[0].add((0, beyond, data.size - beyond), details_of(allowance.exceeded(), beyond))
        allowance.room = 0
    levels = compressed_levels(columnar, paths, wrong)
    batch = merged_levels(columnar, levels, wrappers)
    if columnar.program.contents is not None:
        opening = Opening(columnar, level, batch, reference, paths)
        batch = opening.unpack()
        wrong.append(opening.errors)
    errors = errors_of(wrong)
    is_whole = columnar.plan.is_bounded and not errors.num_rows
    consumed = place.end if is_whole else int(level.arrays["stopped"][0])
    batch = selected(batch, paths)
    metadata = {"wirekit.consumed": str(consumed), "wirekit.errors": str(errors.num_rows), **described(key, columnar)}
    if header is not None:
        metadata["wirekit.front"] = header.fields
    return _described(batch, columnar, metadata, times), errors


def _described(batch: pa.RecordBatch, columnar: Columnar, metadata: dict[str, str], times: str) -> pa.RecordBatch:
    """A batch with its metadata, and with times as timestamps if these are requested."""
    if times == "int":
        return batch.replace_schema_metadata(metadata)
    if not batch.schema.equals(columnar.schema):
        return dated(batch.replace_schema_metadata(metadata))
    columns = batch.columns
    for index in columnar.times:
        columns[index] = columns[index].view(columnar.dated.types[index])
    return pa.RecordBatch.from_arrays(columns, schema=columnar.dated.with_metadata(metadata))


def scan_column(
    key: str, column: pa.Array, *, limits: Limits | None = None, context: Mapping[str, Any] | None = None
) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """One record in each byte string of a column.

    Args:
        key: the key of a schema that is one record.
        column: a binary column; a null has no record.
        limits, context: as for ``columns``.

    Returns:
        The records, one row for each byte string; all columns of a row are null if its byte string does not decode. And
        the errors, as ``scan`` returns them: ``wrapper`` is the row, and ``offset`` counts within its bytes.

    Raises:
        Misuse: as for ``columns``, and for a list of records.

    >>> batch, errors = scan_column("jmq4.header", pa.array([None, b"short"]))
    >>> batch["magic"].to_pylist(), errors["wrapper"].to_pylist(), errors["kind"].to_pylist()
    ([None, None], [1], ['short'])
    """
    columnar = program(key, context)
    if columnar.plan.path or columnar.program.packing is not None or columnar.program.contents is not None:
        raise Misuse(f"{key} is a list of records; a byte string of a column must be one record")
    data, begins, ends, valid = byte_strings(column)
    rows = np.arange(begins.size)
    level = Level(data, Ranges(begins, ends, valid.astype(np.int64)), begins, roots=rows)
    bounds = limits or registry[key].limits
    run(columnar, columnar.plan, level, bounds)
    reference = of_records(columnar.plan, Allowance(bounds, level.buffer.size), context)
    errors = errors_of([LevelErrors(columnar.program, reference, level, 1).refused()])
    positions = np.full(rows.size, -1, np.int64)
    positions[level.ranges_of_rows()] = np.arange(level.rows)
    batch = batch_of(columnar, level)
    fields = [field.with_nullable(True) for field in batch.schema if field.name not in BOTH]
    place = pa.array(positions, mask=positions < 0)
    arrays = [batch[field.name].take(place) for field in fields]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)), errors


def warm(key: str, *, fields: Sequence[str] | None = None, context: Mapping[str, Any] | None = None) -> bool:
    """Compiles a kernel for a schema, which takes seconds, and stores it on disk.

    A kernel gives the same results as the interpreter in about half the time. From then on, all processes of this
    machine use it.

    Args:
        key, fields, context: as for ``columns``; the kernel is for this choice of columns.

    Returns:
        False if the layout has no kernel, for example because its records contain lists or fallbacks.

    Raises:
        Misuse: as for ``columns``.

    >>> warm("kafka.consumer_assignment")
    False
    """
    columnar = program(key, context)
    paths = checked(key, columnar, fields)
    scan_program = columnar.scan_program(paths, verdicts=False, wide=False)
    kernel = scan_program.kernel
    if kernel is None:
        return False
    scan_program.choose(cache.function(kernel, kind=cache.KERNEL))
    run(columnar, columnar.plan, _level(as_array(b""), Start(0, 0, -1)), registry[key].limits, paths)
    for each in columnar.choices.values():
        each.choose(None)
    return True


def _level(data: NDArray[Any], place: Start) -> Level:
    """The level of the buffer itself."""
    return Level(data, Ranges.of([place]), np.zeros(1, np.int64))


def _unreadable(key: str, error: WireError, size: int) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """An empty batch and the error of the header, which selects no layout, in a number of bytes."""
    at = min(error.offset or 0, size)
    metadata = {"wirekit.key": key, "wirekit.consumed": "0", "wirekit.errors": "1"}
    nothing = pa.RecordBatch.from_pylist([], schema=pa.schema([], metadata))
    return nothing, error_batch(at, size - at, details_of(error, at)._replace(at=at))
