"""Spark functions on columns of bytes: ``decode``, ``messages``, ``check`` and ``encode``; also on Spark Connect.

They need no pipeline and no data source. Spark passes batches of a column as Arrow; the columns engine decodes a whole
batch and returns structs. Bad bytes give null and an error; they do not fail the job, unless ``mode="FAILFAST"``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import functions as sf
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_type

from wirekit.compiler import ir
from wirekit.compiler.building.each import build_each
from wirekit.compiler.columns.column_names import names
from wirekit.compiler.columns.each import Values, holds_messages, is_list, left_over, scan_each
from wirekit.compiler.columns.programs import program
from wirekit.compiler.expressions import Field
from wirekit.errors import Misuse, WirekitError
from wirekit.registry import registry
from wirekit.spark.nested import Shape, constant_key, flat, nested, shape
from wirekit.spark.source import register as register_source

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession
    from pyspark.sql.types import DataType

MODES = ("PERMISSIVE", "FAILFAST")
CHECKED = pa.struct([("status", pa.string()), ("error", pa.string())])
OK, BAD, ERROR = "ok", "bad", "error"

Batches = Callable[[Iterator[pa.Array]], Iterator[pa.Array]]
Keyed = Callable[[Iterator[tuple[pa.Array, pa.Array]]], Iterator[pa.Array]]


def spark_schema(
    key: str,
    *,
    fields: Sequence[str] | None = None,
    context: Mapping[str, Any] | None = None,
    times: str = "timestamp",
) -> DataType:
    """The Spark type of a value of a schema: a struct, or an array of structs for a list of records.

    Args:
        key: the key of a schema with columns.
        fields: paths of the wanted fields, each with all its inner fields, as for ``wirekit.columns``.
        context: facts that the bytes lack, as for ``wirekit.decode``.
        times: ``timestamp``, or ``int`` for the numbers on the wire.

    Raises:
        Misuse: for a schema that has no columns, and for ``fields`` or context that it does not have.

    >>> spark_schema("kafka.offset_index").simpleString()
    'array<struct<relative_offset:int,position:int>>'
    """
    kind = shape(key, fields=fields, context=context, times=times).type
    return from_arrow_type(pa.list_(kind) if is_list(key, context) else kind)


def decode(
    column: Column | str,
    key: str,
    *,
    fields: Sequence[str] | None = None,
    context: Mapping[str, Any] | None = None,
    mode: str = "PERMISSIVE",
    times: str = "timestamp",
) -> Column:
    """Decodes each byte string of a column as one value of a schema.

    Compressed data and nested records stay bytes; ``messages`` decodes them.

    Args:
        column: a binary column, or its name.
        key, fields, context, times: as for ``spark_schema``.
        mode: ``PERMISSIVE``, or ``FAILFAST`` to fail the job at the first value that does not decode.

    Returns:
        A column of ``struct<value, error>``. ``value`` is of the type ``spark_schema(key)``. If the bytes are not
        exactly one value, it is null, and ``error`` has the reason. If the column is null, both are null.

    Raises:
        Misuse: as ``spark_schema``, and for another ``mode``.
    """
    return _decoder(key, fields, context, mode, times)(column)


def messages(
    column: Column | str,
    key: str,
    *,
    fields: Sequence[str] | None = None,
    context: Mapping[str, Any] | None = None,
    mode: str = "PERMISSIVE",
    times: str = "timestamp",
) -> Column:
    """The records in each byte string of a column, decompressed, as an array for ``explode`` and ``inline``.

    Nested records replace their outer record: messages replace their wrapper (Kafka), the messages of a batch their
    frame (Pulsar). ``_depth`` (Kafka) and ``_index`` (Pulsar) give the place of a record. The offsets in a compressed
    Kafka set of magic 1 are relative, as in the bytes.

    Args:
        column, key, fields, context, mode, times: as for ``decode``; the schema is a list of records, or a record that
            may hold some.

    Returns:
        A column of ``array<struct<value, error>>``: one element per record, then one with a null ``value`` for each
        record that does not decode. A damaged record does not affect its neighbours.

    Raises:
        Misuse: as ``decode``, and for a schema whose values contain no records.
    """
    constant_key(key)
    if not holds_messages(key, context):
        raise Misuse(f"values of {key} contain no messages; use decode")
    return _message_reader(key, fields, context, mode, times)(column)


def check(column: Column | str, key: str, *, context: Mapping[str, Any] | None = None) -> Column:
    """Checks each byte string of a column as a value of a schema, compressed content included.

    Args:
        column: a binary column, or its name.
        key, context: as for ``spark_schema``.

    Returns:
        A column of ``struct<status, error>``. ``status`` is ``ok``; ``bad`` for a value with a failed check (a
        checksum, a constant, a length, invalid text) or with bytes that no field explains; ``error`` for bytes
        that do not decode. ``error`` has the first fault. The check ``acceptance`` does not count.

    Raises:
        Misuse: as ``spark_schema``.
    """
    shape(key, context=context)
    return _checker(context)(column, sf.lit(key))


def encode(
    column: Column | str, key: str, *, context: Mapping[str, Any] | None = None, mode: str = "PERMISSIVE"
) -> Column:
    """Builds the bytes of each struct of a column: the inverse of ``decode``.

    Args:
        column: a column of the type ``spark_schema(key)``, such as ``decode(...).value``, or its name. Fields may be
            missing or in another order; lengths, counts and checksums are computed. A checksum with a false verdict
            (``crc`` and ``crc_ok``) is written unchanged.
        key, context: as for ``spark_schema``.
        mode: ``PERMISSIVE``, or ``FAILFAST`` to fail the job at the first value that cannot be built.

    Returns:
        A binary column: null where the struct is null or cannot be built.

    Raises:
        Misuse: as ``spark_schema``, and for another ``mode``.
    """
    return _encoder(key, context, mode)(column)


def register(spark: SparkSession, *keys: str) -> None:
    """Registers the data source ``wirekit`` and SQL functions with a session.

    A Spark function has one return type. So each schema in ``keys`` gets its own functions:
    ``wirekit_decode_kafka_message(bytes)``, ``wirekit_messages_…`` if its values contain records, ``wirekit_encode_…``.
    ``wirekit_check(bytes, key)`` serves all schemas.

    Args:
        spark: the session, classic or Connect.
        keys: schemas that get functions.

    Raises:
        Misuse: as ``spark_schema``.
    """
    register_source(spark)
    spark.udf.register("wirekit_check", _checker())
    for key in keys:
        decoder, encoder = _decoder(key), _encoder(key)
        name = re.sub(r"\W", "_", key)
        spark.udf.register(f"wirekit_decode_{name}", decoder)
        spark.udf.register(f"wirekit_encode_{name}", encoder)
        if holds_messages(key):
            spark.udf.register(f"wirekit_messages_{name}", _message_reader(key))


def _arrow_udf(function: Batches | Keyed, kind: pa.DataType) -> Any:
    untyped_udf: Any = arrow_udf
    return untyped_udf(function, from_arrow_type(kind))


def _with_error(value: pa.DataType) -> pa.DataType:
    """The type of a value beside the reason why it is null."""
    return pa.struct([("value", value), ("error", pa.string())])


def _fails(mode: str) -> bool:
    if mode.upper() not in MODES:
        raise Misuse(f"mode must be {' or '.join(MODES)}, not {mode!r}")
    return mode.upper() == "FAILFAST"


# Spark sends inner functions to workers by value, with the objects that they use, and functions of a module by name.


def _argument(column: Any) -> pa.Array:
    """The only argument of a function; a null literal of SQL, which has no type, as a column of bytes.

    Raises:
        Misuse: for another number of arguments, which Spark SQL passes on.
    """
    if isinstance(column, tuple):
        raise Misuse(f"the function takes one argument, not {len(column)}")
    return column.cast(pa.binary()) if pa.types.is_null(column.type) else column


def _decoder(
    key: str,
    fields: Sequence[str] | None = None,
    context: Mapping[str, Any] | None = None,
    mode: str = MODES[0],
    times: str = "timestamp",
) -> Any:
    value_shape = shape(key, fields=fields, context=context, times=times)
    listed, fails = is_list(key, context), _fails(mode)

    def decoded(columns: Iterator[pa.Array]) -> Iterator[pa.Array]:
        for column in map(_argument, columns):
            at = 0
            for values in scan_each(key, column, fields=fields, context=context):
                count = values.firsts.size - 1
                yield decoded_values(values, value_shape, column.slice(at, count).is_null() if listed else None, fails)
                at += count

    return _arrow_udf(decoded, _with_error(pa.list_(value_shape.type) if listed else value_shape.type))


def decoded_values(values: Values, value_shape: Shape, missing: pa.Array | None, fails: bool) -> pa.Array:
    """Values as ``struct<value, error>``.

    Args:
        missing: for a schema that is a list of records, which values are null; None for a schema that is one record.

    Raises:
        WirekitError: for the first that does not decode, if it ``fails``.
    """
    structs = nested(value_shape, values.batch)
    firsts, count = values.firsts, values.firsts.size - 1
    errors = _texts(values, fails)
    if missing is not None:
        if values.errors:
            missing = pc.or_(missing, errors.is_valid())
        structs = pa.ListArray.from_arrays(pa.array(firsts, pa.int32()), structs, mask=missing)
    elif len(structs) != count:
        structs = structs.take(pa.array(firsts[:-1], mask=firsts[:-1] == firsts[1:]))
    return pa.StructArray.from_arrays([structs, errors], ["value", "error"])


def _texts(values: Values, fails: bool) -> pa.Array:
    """The first error of each value."""
    if not values.errors:
        return pa.nulls(values.firsts.size - 1, pa.string())
    if fails:
        raise WirekitError(values.errors[min(values.errors)][0])
    return pa.array([values.errors.get(n, (None,))[0] for n in range(values.firsts.size - 1)], pa.string())


def _message_reader(
    key: str,
    fields: Sequence[str] | None = None,
    context: Mapping[str, Any] | None = None,
    mode: str = MODES[0],
    times: str = "timestamp",
) -> Any:
    value_shape = shape(key, fields=fields, context=context, times=times, unpack=True)
    fails = _fails(mode)

    def read(columns: Iterator[pa.Array]) -> Iterator[pa.Array]:
        for column in map(_argument, columns):
            at = 0
            for values in scan_each(key, column, fields=fields, context=context, unpack=True):
                count = values.firsts.size - 1
                yield message_values(values, value_shape, column.slice(at, count).is_null(), fails)
                at += count

    return _arrow_udf(read, pa.list_(_with_error(value_shape.type)))


def message_values(values: Values, value_shape: Shape, missing: pa.Array, fails: bool) -> pa.Array:
    """Values as ``list<struct<value, error>>``, with the errors of each after its records.

    Raises:
        WirekitError: for the first that does not decode, if it ``fails``.
    """
    structs, ends = nested(value_shape, values.batch), values.firsts
    errors = pa.nulls(len(structs), pa.string())
    if values.errors:
        if fails:
            _texts(values, fails)
        texts = [(number, text) for number, faults in sorted(values.errors.items()) for text in faults]
        of_errors = np.array([number for number, _ in texts])
        of_rows = np.repeat(np.arange(ends.size - 1), np.diff(ends))
        owners = np.concatenate([of_rows, of_errors])
        order = np.argsort(owners, kind="stable")
        structs = pa.concat_arrays([structs, pa.nulls(len(texts), structs.type)]).take(pa.array(order))
        errors = pa.concat_arrays([errors, pa.array([text for _, text in texts], pa.string())]).take(pa.array(order))
        ends = np.searchsorted(owners[order], np.arange(ends.size))
    elements = pa.StructArray.from_arrays([structs, errors], ["value", "error"])
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), elements, mask=missing)


def _checker(context: Mapping[str, Any] | None = None) -> Any:
    def checked(batches: Iterator[tuple[pa.Array, pa.Array]]) -> Iterator[pa.Array]:
        arguments: Any
        for arguments in batches:
            two = isinstance(arguments, tuple) and len(arguments) == 2  # Spark SQL passes any number of them
            if not two or not (pa.types.is_string(arguments[1].type) or pa.types.is_null(arguments[1].type)):
                raise Misuse("wirekit_check takes a column of bytes and the key of a schema")
            column, keys = arguments
            yield checked_values(_argument(column), keys, context)

    return _arrow_udf(checked, CHECKED)


def checked_values(column: pa.Array, keys: pa.Array, context: Mapping[str, Any] | None = None) -> pa.Array:
    """The ``struct<status, error>`` of each byte string, as a value of the schema beside it.

    >>> checked_values(pa.array([b"\\0\\0\\0\\1a", b"abc"]), pa.array(["kafka.sasl_token"] * 2)).to_pylist()[0]
    {'status': 'ok', 'error': None}
    """
    statuses: NDArray[Any] = np.full(len(column), None, object)
    errors: NDArray[Any] = np.full(len(column), None, object)
    for key in pc.unique(keys).drop_null().to_pylist():
        places = np.flatnonzero(pc.fill_null(pc.equal(keys, key), False).to_numpy(zero_copy_only=False))
        part = column if places.size == len(column) else column.take(pa.array(places))
        first, hidden = 0, _left_out(key, context)
        fields = [*_verdicts(key, context), *(name for each in hidden or () for name in each.columns)]
        for values in scan_each(key, part, fields=fields, context=context, unpack=True, wrappers=True):
            count = values.firsts.size - 1
            there = part.slice(first, count).is_valid().to_numpy(zero_copy_only=False)
            statuses[places[first : first + count][there]] = OK
            suspects = there
            if hidden is not None:
                suspects = there & values.doubtful([each.rows(values.batch) for each in hidden])
                suspects[[*values.errors]] = True
            for number in np.flatnonzero(suspects).tolist():
                at = places[first + number]
                statuses[at], errors[at] = _verdict(key, column[at].as_py(), context)
            first += count
    arrays = [pa.array(each, pa.string()) for each in (statuses, errors)]
    return pa.StructArray.from_arrays(arrays, fields=list(CHECKED))


@dataclass(frozen=True, slots=True)
class _Compressed:
    """A compressed field whose content has no columns: the columns that select its codec, and their values."""

    columns: list[str]
    codecs: list[tuple[Any, ...]]

    def rows(self, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        """The rows of a batch in which the field is compressed."""
        chosen = np.zeros(batch.num_rows, bool)
        for codec in self.codecs:
            equal = (pc.equal(batch[name], value) for name, value in zip(self.columns, codec, strict=True))
            chosen |= np.logical_and.reduce([np.asarray(each.fill_null(False)) for each in equal])
        return chosen


def _left_out(key: str, context: Mapping[str, Any] | None) -> list[_Compressed] | None:
    """The compressed fields whose content has no columns; None if other parts of a value may have none."""
    nodes = dict(ir.walk(registry[key].layout))
    fields = []
    for path in program(key, context).program.left_out:
        name = path.removesuffix(".content")
        node = None if "." in name else nodes.get(name)
        if not isinstance(node, ir.Packed) or not all(isinstance(each, Field) and not each.up for each in node.on):
            return None
        columns = [".".join(each.names) for each in node.on if isinstance(each, Field)]
        if not {*columns} <= {*names(program(key, context))}:
            return None
        fields.append(_Compressed(columns, [values for values, _ in node.codecs]))
    return fields


def _verdicts(key: str, context: Mapping[str, Any] | None) -> list[str]:
    """The columns that tell whether a value is good."""
    columnar = program(key, context)
    return [name for name in names(columnar) if name.rpartition(".")[2] == "ok"] + ["@gap"] * columnar.program.gaps


def _verdict(key: str, data: bytes, context: Mapping[str, Any] | None) -> tuple[str, str | None]:
    """The status of bytes, and their error, failed check or gap that comes first; None if there is none."""
    from wirekit.decoding import decode as decoded

    value = decoded(data, key, context=context)
    if value.error is not None:
        return ERROR, str(value.error)
    if value.consumed < len(data):
        return ERROR, left_over(key, len(data) - value.consumed, value.consumed)
    for each in value.checks:
        if each.status == "bad" and each.kind != "acceptance":
            words = each.note or f"expected {each.computed}, found {each.stored}"
            return BAD, f"{key}: {each.path}: {each.kind}: {words}, at byte {each.offset} (0x{each.offset:x})"
    gap = next(iter(value.gaps), None)
    if gap is not None:
        return BAD, f"{key}: bytes that no field explains, {gap.length} at byte {gap.offset}"
    return OK, None


def _encoder(key: str, context: Mapping[str, Any] | None = None, mode: str = MODES[0]) -> Any:
    value_shape, listed, fails = shape(key, context=context), is_list(key, context), _fails(mode)

    def encoded(columns: Iterator[pa.Array]) -> Iterator[pa.Array]:
        for column in map(_argument, columns):
            yield encoded_values(key, column, context, value_shape, listed, fails)

    return _arrow_udf(encoded, pa.binary())


def encoded_values(
    key: str, column: pa.Array, context: Mapping[str, Any] | None, value_shape: Shape, listed: bool, fails: bool
) -> pa.Array:
    """Structs, or lists of them, as bytes; null where they cannot be built.

    Raises:
        Misuse: for another type; for the first value that cannot be built, if it ``fails``.
    """
    there = column.drop_null()
    if not len(there):
        return pa.nulls(len(column), pa.binary())
    if listed and not pa.types.is_list(column.type) and not pa.types.is_large_list(column.type):
        raise Misuse(f"{key} is built from an array of structs, not from {column.type}")
    structs = there.flatten() if listed else there
    sizes = np.asarray(there.value_lengths()) if listed else np.ones(len(there), np.int64)
    columns = flat(value_shape, structs)
    rows = pa.RecordBatch.from_arrays([*columns.values(), structs.is_valid()], names=[*columns, ""])
    batch = rows.select([*range(len(columns))])  # of structs without a field, it has their rows
    built, errors = build_each(key, batch, np.concatenate([[0], np.cumsum(sizes)]), context=context)
    if errors and fails:
        raise Misuse(errors[min(errors)])
    if len(there) == len(column):
        return built
    places = np.cumsum(np.asarray(column.is_valid())) - 1
    return built.take(pa.array(places, mask=np.asarray(column.is_null())))
