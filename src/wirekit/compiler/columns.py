"""The columns engine: a buffer of many records to a ``pyarrow.RecordBatch``, by kernels generated from the IR.

``columns_plan`` finds the list of records in a schema, ``columns_code`` writes the kernel, ``columns_cache`` has it
compiled. Here the kernel is run, compressed records are opened and scanned by the same kernel, and the arrays that it
filled become Arrow columns without being copied once more.

Columns. One a field, called by its path (``message.key``, ``message.attributes.codec``), null where the field is not
there. Numbers keep their size; those with names are int32 (int64 where that is too small), and the field's metadata
has the names, as JSON under ``wirekit.symbols``. Times are timestamps; their metadata has the ``wirekit.unit``. Bytes
are ``binary``, from 2 GiB on in one column ``large_binary``. Text is ``string``; what is not UTF-8 in it is U+FFFD.
``<path>.ok`` is the verdict on a checksum, a length that bounds nothing, a constant, a text's encoding, decompression;
null where there was nothing to verify. Columns of the scan:

- ``@offset``, ``@length``: where the record stands (bytes), in the buffer or in the decompressed data that it is from;
- ``@gap``: bytes inside the record that no field explains, where the layout allows for any;
- ``@depth``: 0 for the buffer, 1 for what was compressed in it, and so on; ``@wrapper``: the ``@offset`` of the
  outermost record that holds the row compressed, null at depth 0. Both only where records can be compressed.

A record that holds others is left out, they stand in its place. One that cannot be opened stays, with the bytes as
they are. With ``wrappers=True`` all stay, each in front of what it holds, and two more columns tell of them:
``@parent``, the row of the wrapper, and ``@left``, in a wrapper, the bytes behind the last good record in it.

The batch's metadata has ``wirekit.key``, ``wirekit.consumed`` (where the records end: a cut last one begins there),
``wirekit.errors`` (how many there are), ``wirekit.front`` (what stands in front of the records, as JSON, where that
tells what they are) and ``wirekit.left_out`` (paths without a column, see ``columns_protobuf``).

Kernels are compiled when they are first needed and kept on disk (see ``columns_cache``). They release the GIL.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from wirekit.compiler import columns_cache, ir
from wirekit.compiler.columns_block import LARGEST, Block, block
from wirekit.compiler.columns_code import kernel
from wirekit.compiler.columns_front import Front, front, is_told
from wirekit.compiler.columns_kernel import CONTENTS, SCALARS, STATE, Column, Kernel, by_arrays, field_metadata
from wirekit.compiler.columns_names import named
from wirekit.compiler.columns_opened import Opening
from wirekit.compiler.columns_plan import Records, Start, records, start, unfit
from wirekit.compiler.columns_protobuf import Tray, chosen
from wirekit.compiler.columns_protobuf import arrays as message_arrays
from wirekit.compiler.columns_times import TIMES, dated, dated_schema
from wirekit.errors import Limit, Misuse, WireError
from wirekit.wire.stream import Limits

if TYPE_CHECKING:
    from numpy.typing import NDArray

HIGHEST = (1 << 63) - 1
LARGE = (1 << 31) - 1  # bytes from which on 32-bit offsets do not do
WHOLE = 256 << 20  # bytes: up to here each column of byte strings gets room for all of the buffer at once
SPARE = 3  # how many times what is used an array may take
SMALL = 1 << 20  # bytes: what an array of no more holds on to does not matter
FRONT = 1 << 16  # bytes in which all that stands in front of records must be
ROW_GUESS = 64  # bytes a record takes, for a first guess of how many there are

ERRORS = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("length", pa.int64(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("at", pa.int64(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("depth", pa.int32(), nullable=False),
        pa.field("wrapper", pa.int64()),
    ]
)


_NO_ERRORS = pa.RecordBatch.from_pylist([], schema=ERRORS)


@dataclass(frozen=True, slots=True)
class Program:
    """What a schema's key stands for.

    Attributes:
        plan: its list of records.
        inner: the list of what records hold compressed, of the same layout; None where they hold none.
        kernel: the kernel for both.
        contents: what a column's byte strings hold: how to scan it; None where there is no such thing.
        held: the list of that.
        least: bytes that a record takes at least.
        types: names and types of the kernel's arrays that have an element a row.
        schema: of the batch, while no column has 2 GiB.
        dated: the same with times.
    """

    plan: Records
    inner: Records | None
    kernel: Kernel
    least: int
    types: dict[str, np.dtype[Any]]
    schema: pa.Schema
    dated: pa.Schema
    contents: Program | None = None
    held: Records | None = None


@dataclass(slots=True)
class Level:
    """What was scanned at one depth.

    Attributes:
        buffer: the bytes; from depth 1 on all that was decompressed, one piece after the other.
        begins: of each range, where it begins in the buffer; offsets count from there.
        parents: of each range, the row that holds it, one depth up.
        rows, errors: how many the kernel found.
        arrays: by name, as the kernel filled them.
        state: what became of each row: 0 a row of the result, 1 opened, 2 an error.
        left: of each opened row, the bytes behind the last good record in it.
        trays: what the protobuf messages in the records hold.
    """

    buffer: NDArray[Any]
    starts: list[Start]
    begins: NDArray[Any]
    parents: NDArray[Any]
    rows: int = 0
    errors: int = 0
    arrays: dict[str, Any] = field(default_factory=dict)
    state: NDArray[Any] = field(default_factory=lambda: np.zeros(0, np.uint8))
    left: NDArray[Any] = field(default_factory=lambda: np.zeros(0, np.int64))
    roots: NDArray[Any] = field(default_factory=lambda: np.zeros(0, np.int64))
    trays: list[Tray] = field(default_factory=list)


_programs: dict[str, Program] = {}
_blocks: dict[str, Block | None] = {}
_lock = threading.Lock()


def program(key: str) -> Program:
    """The plan and the kernel of a schema, made when first asked for; nothing is compiled yet.

    Raises:
        Misuse: when the schema is no list of records, or a record has something inside that columns cannot hold.

    >>> program("kafka.offset_index").plan.path
    'entries'
    """
    from wirekit.registry import registry

    found = _programs.get(key)
    if found is not None:
        return found
    schema = registry[key]
    if is_told(schema.layout):
        raise unfit(
            key, "", schema.layout, "what stands in front of its records tells what they are, so give the bytes"
        )
    return _program(key, key, lambda: records(key, schema.layout))


def _program(key: str, name: str, planned: Callable[[], Records]) -> Program:
    from wirekit.registry import registry

    with _lock:
        found = _programs.get(name)
        if found is None:
            plan = planned()
            made = kernel(key, plan.element)
            inner = None
            if made.packing is not None:
                other = made.packing.key
                inner = records(other, registry[other].layout)
                if inner.element != plan.element:
                    path = made.columns[made.packing.column].path
                    raise unfit(key, path, "compressed", f"{other} inside it holds records of another layout")
            least = max(ir.minimum(plan.element), 1)
            contents, held = _held(key, made)
            schema = _schema(made)
            found = Program(plan, inner, made, least, _types(made), schema, dated_schema(schema), contents, held)
            _programs[name] = found
    return found


def _told(key: str, data: NDArray[Any], limits: Limits) -> tuple[Program | None, Start, Front]:
    """The program for records of which something in front tells what they are."""
    from wirekit.engine import Params
    from wirekit.registry import registry

    schema = registry[key]
    read = front(schema.layout, schema.node, schema.protocol, data.data[:FRONT], limits, Params())
    if read.several is None:
        error = read.error
        assert error is not None
        at = min(error.offset or 0, data.size)
        wrong = (error.path, error.kind, at, data.size - at, error.reason)
        return None, Start(0, 0, 0, wrong), read
    several = read.several
    plan = Records(key, several.element, read.path, False, several.stop, several.until, ())
    return _program(key, f"{key} {read.case}", lambda: plan), Start(read.begin, data.size, -1), read


def _held(key: str, made: Kernel) -> tuple[Program | None, Records | None]:
    """What the byte strings of a column hold."""
    if made.contents is None or made.contents.element is None:
        return None, None
    element = made.contents.element
    path = made.columns[made.contents.column].path
    inner = kernel(key, element)
    if inner.contents is not None or inner.packing is not None:
        raise unfit(key, path, "a list", "its records hold others again")
    held = Records(key, element, path, counted=False, stop=False, until=b"", lead=())
    schema = _schema(inner)
    least = max(ir.minimum(element), 1)
    return Program(held, None, inner, least, _types(inner), schema, dated_schema(schema)), held


def _types(made: Kernel) -> dict[str, np.dtype[Any]]:
    found = {"offset": "int64", "length": "int64"}
    for column in made.columns:
        found.update({name: dtype for name, dtype in column.arrays() if not name.startswith("d")})
    if made.packing is not None:
        found["k0"] = "int8"
    if made.gaps:
        found["gap"] = "int64"
    if made.contents is not None:
        found.update(CONTENTS)
    return {name: np.dtype(dtype) for name, dtype in found.items()}


def _schema(made: Kernel) -> pa.Schema:
    fields = []
    for column in made.columns:
        metadata = field_metadata(column.table, column.unit)
        named = {"flag": pa.bool_(), "bytes": pa.binary(), "text": pa.string()}
        kind = named.get(column.kind) or pa.from_numpy_dtype(np.dtype(column.dtype))
        opened = made.contents is not None and column.slot == made.contents.column  # null where it holds records
        fields.append(pa.field(column.path, kind, column.nullable or opened, metadata))
        if made.packing is not None and column.slot == made.packing.column:
            fields.append(pa.field(f"{column.path}.ok", pa.bool_()))
    fields += [pa.field("@offset", pa.int64(), False), pa.field("@length", pa.int64(), False)]
    if made.gaps:
        fields.append(pa.field("@gap", pa.int64(), False))
    if made.packing is not None:
        fields += [pa.field("@depth", pa.int32(), False), pa.field("@wrapper", pa.int64())]
    return pa.schema(fields)


def source(key: str) -> str:
    """The generated source of a schema's kernel, as ``wirekit explain KEY --engine columns`` prints it."""
    return program(key).kernel.source


def columns(
    key: str,
    buffer: Any,
    *,
    limits: Limits | None = None,
    fields: Sequence[str] | None = None,
    enums: str = "int",
    times: str = "timestamp",
) -> pa.RecordBatch:
    """The records in a buffer, one row each, one column a field.

    Args:
        key: the key of a schema that is a list of records, or one record: then the buffer is one after the other. The
            name of a protocol stands for the frames that its clients send.
        buffer: bytes, or anything else that gives contiguous bytes by the buffer protocol, an ``mmap`` for example.
        limits: what the bytes may ask for; by default the protocol's.
        fields: paths of the columns to give, each with all inside it, whether the buffer has them or not. By default
            all, except for those of protobuf messages that occur nowhere in it.
        enums: ``int``, or ``dictionary`` for the names of numbers that have names; one without is its digits then.
        times: ``timestamp``: what counts time since the epoch is ``timestamp[ms, UTC]`` (or another unit), or ``int``,
            as the wire has it. Nothing is lost by either: a -1 for no time is a millisecond before 1970, not null.

    Returns:
        A batch; see the module's header for its columns. Records that do not decode are not in it: ``scan`` gives
        them, and the metadata ``wirekit.errors`` tells how many there are.

    Raises:
        Misuse: for a schema that gives no columns; the text names what is in the way. For other ``enums``, ``times``.

    >>> import wirekit
    >>> message = {"offset": 5, "message": {"magic": 0, "value": "6869"}}
    >>> data = wirekit.encode("kafka.message_set", {"messages": [message, message]})
    >>> batch = wirekit.columns("kafka.message_set", data)
    >>> batch["message.value"].to_pylist(), batch["message.crc.ok"].to_pylist(), batch["@offset"].to_pylist()
    ([b'hi', b'hi'], [True, True], [0, 28])
    """
    if enums not in ("int", "dictionary"):
        raise Misuse(f"enums is 'int' or 'dictionary', not {enums!r}")
    batch = scan(key, buffer, limits=limits, fields=fields, times=times)[0]
    return named(batch) if enums == "dictionary" else batch


def scan(
    key: str,
    buffer: Any,
    *,
    limits: Limits | None = None,
    wrappers: bool = False,
    fields: Sequence[str] | None = None,
    times: str = "int",
) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """The records in a buffer, and those that do not decode.

    A record that does not decode ends the scan, unless its own length still tells where the next one begins. What
    holds others compressed and cannot be opened is both a row and an error, of the kind ``decompression``; what asks
    for more than the limits grant is an error only.

    Args:
        key, buffer, limits, fields, times: as for ``columns``.
        wrappers: keep the records that hold others compressed.

    Returns:
        The batch of ``columns``, and one with a row an error: ``offset`` and ``length`` (bytes; up to the end when
        nothing tells where the next record begins), ``kind`` (short, wrong, limit, decompression), ``path`` of the
        field, ``at`` (offset where it went wrong), ``reason`` in words, ``depth``, and ``wrapper`` (as ``@wrapper``).

    Raises:
        Misuse: as for ``columns``.

    >>> batch, errors = scan("kafka.offset_index", bytes.fromhex("0000000500000010" "000000"))
    >>> batch["position"].to_pylist(), errors.num_rows, batch.schema.metadata[b"wirekit.consumed"]
    ([16], 0, b'8')
    """
    from wirekit.registry import registry

    if times not in TIMES:
        raise Misuse(f"times is 'timestamp' or 'int', not {times!r}")
    if "." not in key:
        key = registry.protocol(key).stream("client")
    bounds = limits or registry[key].limits
    led = is_told(registry[key].layout)
    if not (wrappers or led or fields is not None):
        batch = _small(key, program(key), buffer, bounds, times)
        if batch is not None:
            return batch, _NO_ERRORS
    data = as_array(buffer)
    ahead = None
    if led:
        known, found, ahead = _told(key, data, bounds)
        if known is None:
            return _unreadable(key, found)
        made = known
    else:
        made = program(key)
        found = start(made.plan, data.data, 0, data.size, bounds.frame)
    whole = Level(data, [found], np.zeros(1, np.int64), np.zeros(1, np.int64))
    wanted = None if fields is None else tuple(fields)
    run(made, made.plan, whole, bounds, wanted)
    levels = [whole]
    failures = list(_in_front(whole, 0))
    while made.kernel.packing is not None and made.inner is not None:
        opened = _open(made, levels[-1], len(levels) - 1, bounds, failures)
        if opened is None:
            break
        levels.append(opened)
        failures += _in_front(opened, len(levels) - 1)
    batch = _assembled(made, levels, wrappers)
    opening = None
    if made.kernel.contents is not None:
        opening = Opening(made, whole, batch, bounds, wanted)
        batch = opening.opened()
        failures += opening.failures
    consumed = int(whole.arrays["stopped"][0])
    parts = [scanned(made.kernel, level, depth) for depth, level in enumerate(levels) if level.errors]
    parts += opening.errors if opening is not None else []
    parts += [pa.RecordBatch.from_pylist(failures, schema=ERRORS)] if failures else []
    errors = pa.concat_batches(parts) if parts else _NO_ERRORS
    if wanted is not None:
        batch = batch.select([name for name in batch.schema.names if chosen(name, wanted)])
    told = {"wirekit.key": key, "wirekit.consumed": str(consumed), "wirekit.errors": str(errors.num_rows)}
    if ahead is not None:
        told["wirekit.front"] = ahead.told
    left_out = _left_out(made)
    if left_out:
        told["wirekit.left_out"] = json.dumps(left_out)
    batch = batch.replace_schema_metadata(told)
    return batch if times == "int" else dated(batch), errors


def _unreadable(key: str, found: Start) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Nothing but an error: what the records are is not known."""
    nowhere = Level(np.zeros(0, np.uint8), [found], np.zeros(1, np.int64), np.zeros(1, np.int64))
    errors = pa.RecordBatch.from_pylist(list(_in_front(nowhere, 0)), schema=ERRORS)
    told = {"wirekit.key": key, "wirekit.consumed": "0", "wirekit.errors": "1"}
    return pa.RecordBatch.from_pylist([], schema=pa.schema([], told)), errors


def _small(key: str, made: Program, buffer: Any, limits: Limits, times: str) -> pa.RecordBatch | None:
    """The batch of a small buffer in which all is usual."""
    try:
        data = pa.py_buffer(buffer)
    except (TypeError, ValueError, BufferError):
        return None
    if data.size > LARGEST:
        return None
    if key not in _blocks:
        _blocks[key] = block(made.kernel, made.plan, made.schema, made.least)
    small = _blocks[key]
    if small is None:
        return None
    found = Start(0, data.size, -1)
    if made.plan.lead:
        found = start(made.plan, memoryview(data), 0, data.size, limits.frame)
    scanned = small.scanned(data, found, min(limits.frame, HIGHEST)) if found.wrong is None else None
    if scanned is None:
        return None
    memory, consumed = scanned
    told = {"wirekit.key": key, "wirekit.consumed": str(consumed), "wirekit.errors": "0"}
    schema = made.schema if times == "int" else made.dated
    return pa.ipc.read_record_batch(pa.ipc.read_message(memory), schema.with_metadata(told))


def _left_out(made: Program) -> list[str]:
    """The fields of messages that have no column."""
    found = [path for table in made.kernel.messages for path in table.left_out]
    if made.contents is not None and made.held is not None:
        found += [f"{made.held.path}.{path}" for path in _left_out(made.contents)]
    return found


def inside(fields: tuple[str, ...] | None, path: str) -> tuple[str, ...] | None:
    """Which columns are wanted of what lies inside a path, called as they are there."""
    if fields is None or chosen(path, fields):
        return None
    return tuple(name[len(path) + 1 :] for name in fields if name.startswith(f"{path}."))


def as_array(buffer: Any) -> NDArray[Any]:
    """A buffer as an array that may not be written: one type for the kernels, whatever was given."""
    try:
        view = memoryview(buffer)
    except TypeError:
        raise Misuse(f"columns reads bytes, not {type(buffer).__name__}") from None
    if not view.c_contiguous:
        raise Misuse("columns reads contiguous bytes; copy the others with bytes()")
    data = np.frombuffer(view.cast("B") if view.nbytes else b"", np.uint8)
    data.flags.writeable = False
    return data


def run(made: Program, plan: Records, level: Level, limits: Limits, fields: tuple[str, ...] | None = None) -> None:
    """Has the kernel scan the ranges of a level, and its arrays grow as they are filled."""
    total = sum(each.end - each.start for each in level.starts)
    ranges = len(level.starts)
    bound = total // made.least + 1
    rows = min(bound, total // ROW_GUESS + 1024)
    byte_columns = sum(column.kind in ("bytes", "text") for column in made.kernel.columns)
    room = total if total <= WHOLE else total // max(byte_columns, 1)
    arrays = level.arrays
    arrays["b"] = level.buffer
    arrays["state"] = np.array([0, -1, 0, 0, 0], np.int64)  # see columns_kernel
    arrays["until"] = np.frombuffer(plan.until, np.uint8) if plan.until else np.zeros(0, np.uint8)
    arrays["until"].flags.writeable = False
    arrays["starts"] = np.array([each.start for each in level.starts], np.int64)
    arrays["ends"] = np.array([each.end for each in level.starts], np.int64)
    arrays["counts"] = np.array([each.count for each in level.starts], np.int64)
    for name in ("first", "failed", "stopped", "good"):
        arrays[name] = np.zeros(ranges, np.int64)
    for name in _ERROR_ARRAYS:
        arrays[name] = np.empty(16, np.int64)
    kinds = made.types
    wide = total > LARGE
    if not wide:
        kinds = {name: _SHORT if _extra(name) else dtype for name, dtype in kinds.items()}
    for name, dtype in kinds.items():
        arrays[name] = _empty(rows + _extra(name), dtype)
    for column in made.kernel.columns:
        if column.kind in ("bytes", "text"):
            arrays[f"d{column.slot}"] = _empty(room, _BYTE)
            arrays[f"o{column.slot}"][0] = 0
    level.trays = [Tray(table, rows, fields) for table in made.kernel.messages]
    name = "scan" if by_arrays(made.kernel) else "scan_table"
    compiled = columns_cache.function(made.kernel.source, "int64" if wide else "int32", name)
    scalars = (min(limits.frame, HIGHEST), int(plan.stop))
    while True:
        for number, tray in enumerate(level.trays):
            tray.grow(rows)
            arrays.update({f"{name}{number}": array for name, array in tray.given().items()})
        full = _called(made.kernel, compiled, arrays, scalars)
        level.rows, level.errors = int(arrays["state"][3]), int(arrays["state"][4])
        if not full:
            break
        if full == 2:  # byte strings
            for column in made.kernel.columns:
                if column.kind in ("bytes", "text"):
                    used = int(arrays[f"o{column.slot}"][level.rows])
                    size = min(2 * arrays[f"d{column.slot}"].size + 4096, total)
                    arrays[f"d{column.slot}"] = _larger(arrays[f"d{column.slot}"], used, size)
            continue
        if level.rows >= rows:
            rows = 2 * rows + 1024
            for name in kinds:
                arrays[name] = _larger(arrays[name], level.rows, rows, _extra(name))
        if level.errors >= arrays["error_at"].size:
            for name in _ERROR_ARRAYS:
                arrays[name] = _larger(arrays[name], level.errors, 4 * level.errors)
    for name in kinds:
        arrays[name] = _fitted(arrays[name], level.rows + _extra(name))
    for column in made.kernel.columns:
        if column.kind in ("bytes", "text"):
            arrays[f"d{column.slot}"] = _fitted(arrays[f"d{column.slot}"], int(arrays[f"o{column.slot}"][level.rows]))
    level.state = np.zeros(level.rows, np.uint8)


def _called(made: Kernel, compiled: Any, arrays: dict[str, NDArray[Any]], scalars: tuple[int, int]) -> int:
    """Calls a kernel; gives what it gives."""
    if by_arrays(made):
        given = dict(zip(("frame", "stop"), map(np.int64, scalars), strict=True)) | arrays
        return int(compiled(*(given[name] for name in made.arguments)))
    named = (arrays[name] for name in made.arguments if name not in SCALARS)
    table = np.array([(each.__array_interface__["data"][0], each.size) for each in named], np.int64).ravel()
    state = np.zeros(STATE, np.int64)
    state[:5], state[5:7] = arrays["state"], scalars
    full = compiled(table, state)
    arrays["state"][:] = state[:5]
    return int(full)


_SHORT = np.dtype(np.int32)
_BYTE = np.dtype(np.uint8)
_ERROR_ARRAYS = ("error_at", "error_offset", "error_length", "error_reason")


@cache
def _extra(name: str) -> int:
    """How many elements more than rows an array has: offsets have the end of the last row, too."""
    return int(name[0] == "o" and name[1:].isdigit())


def _empty(size: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array in memory of Arrow's pool, which keeps what was freed: new pages would cost as much as the scan."""
    return np.frombuffer(pa.allocate_buffer(size * dtype.itemsize), dtype)


def _larger(array: NDArray[Any], used: int, size: int, extra: int = 0) -> NDArray[Any]:
    grown = _empty(size + extra, array.dtype)
    grown[: used + extra] = array[: used + extra]
    return grown


def _fitted(array: NDArray[Any], size: int) -> NDArray[Any]:
    """The part of an array that is used; copied where it is so small that it would hold on to much memory."""
    part = array[:size]
    if SPARE * part.nbytes < array.nbytes and array.nbytes > SMALL:
        fitted = _empty(size, array.dtype)
        fitted[:] = part
        return fitted
    return part


def scanned(made: Kernel, level: Level, depth: int, prefix: str = "") -> pa.RecordBatch:
    """The errors that the kernel found at a level; there can be as many as records."""
    arrays, count = level.arrays, level.errors
    which = np.searchsorted(arrays["failed"], np.arange(count), side="right") - 1
    begins = level.begins[which]
    reasons = pa.array(arrays["error_reason"][:count] - 1)

    def told(name: str) -> pa.Array:
        lead = prefix if name == "path" else ""
        return pa.array([lead + getattr(reason, name) for reason in made.reasons], pa.string()).take(reasons)

    found = [
        pa.array(arrays["error_offset"][:count] - begins),
        pa.array(arrays["error_length"][:count]),
        told("kind"),
        told("path"),
        pa.array(arrays["error_at"][:count] - begins),
        told("text"),
        pa.array(np.full(count, depth, np.int32)),
        pa.array(level.roots[which]) if depth else pa.nulls(count, pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(found, schema=ERRORS)


def _in_front(level: Level, depth: int) -> Iterator[dict[str, Any]]:
    """What is wrong in front of the records of each range of a level."""
    for index, each in enumerate(level.starts):
        if each.wrong is not None:
            path, kind, at, length, reason = each.wrong
            place = at - int(level.begins[index])
            yield _failure(place, length, kind, path, place, reason, depth, level, index)


def _failure(
    offset: int, length: int, kind: str, path: str, at: int, reason: str, depth: int, level: Level, which: int
) -> dict[str, Any]:
    wrapper = int(level.roots[which]) if depth else None
    return {
        "offset": offset,
        "length": length,
        "kind": kind,
        "path": path,
        "at": at,
        "reason": reason,
        "depth": depth,
        "wrapper": wrapper,
    }


def _open(made: Program, level: Level, depth: int, limits: Limits, failures: list[dict[str, Any]]) -> Level | None:
    """Decompresses what the records of a level hold, and scans it; None if there is nothing."""
    from wirekit.compression import Decompression, decompress

    packing, inner = made.kernel.packing, made.inner
    assert packing is not None
    assert inner is not None
    arrays = level.arrays
    packed = np.flatnonzero(arrays["k0"])
    if packed.size == 0:
        return None
    level.left = np.full(level.rows, -1, np.int64)
    column = made.kernel.columns[packing.column]
    data, offsets = arrays[f"d{column.slot}"].data, arrays[f"o{column.slot}"]
    bounds = Decompression(size=limits.decompressed, ratio=limits.ratio)
    ranges = np.searchsorted(arrays["first"], packed, side="right") - 1
    pieces: list[bytes] = []
    parents: list[int] = []
    for row, which in zip(packed.tolist(), ranges.tolist(), strict=True):
        try:
            if depth >= limits.depth:
                raise Limit("depth", limits.depth, depth + 1)
            codec = packing.codecs[int(arrays["k0"][row]) - 1]
            pieces.append(decompress(codec, data[int(offsets[row]) : int(offsets[row + 1])], limits=bounds))
            parents.append(row)
        except WireError as error:
            kind = "limit" if isinstance(error, Limit) else "decompression"
            level.state[row] = 2 if kind == "limit" else 0
            offset, length = int(arrays["offset"][row] - level.begins[which]), int(arrays["length"][row])
            failures.append(_failure(offset, length, kind, column.path, offset, error.reason, depth, level, which))
    level.state[parents] = 1
    if not pieces:
        return None
    ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64)
    begins = ends - [len(piece) for piece in pieces]
    buffer = as_array(b"".join(pieces))
    del pieces
    view = buffer.data
    starts = [start(inner, view, int(b), int(e), limits.frame) for b, e in zip(begins, ends, strict=True)]
    below = Level(buffer, starts, begins, np.array(parents, np.int64))
    outer = np.searchsorted(arrays["first"], below.parents, side="right") - 1
    below.roots = level.roots[outer] if depth else arrays["offset"][below.parents]
    run(made, inner, below, limits)
    level.left[below.parents] = ends - below.arrays["good"]
    return below


def _assembled(made: Program, levels: list[Level], wrappers: bool) -> pa.RecordBatch:
    """The rows of all levels, each in its place."""
    sizes = {
        column.slot: sum(int(level.arrays[f"o{column.slot}"][level.rows]) for level in levels)
        for column in made.kernel.columns
        if column.kind in ("bytes", "text")
    }
    order, positions = _order(levels, wrappers)
    parts = [_batch(made, level, depth, sizes) for depth, level in enumerate(levels)]
    if wrappers and made.kernel.packing is not None:
        parts = [_wrapped(part, depth, levels, positions) for depth, part in enumerate(parts)]
    if order is None:
        return parts[0]
    return pa.concat_batches(parts).take(pa.array(order))


def _wrapped(part: pa.RecordBatch, depth: int, levels: list[Level], positions: list[NDArray[Any]]) -> pa.RecordBatch:
    """A level's batch with the two columns that tell of wrappers."""
    level = levels[depth]
    left = level.left if level.left.size else np.full(level.rows, -1, np.int64)
    parents = np.zeros(level.rows, np.int64)
    if depth:
        parents = positions[depth - 1][level.parents[_ranges(level)]]
    part = part.append_column("@parent", pa.array(parents, mask=np.full(level.rows, depth == 0)))
    return part.append_column("@left", pa.array(left, mask=left < 0))


def _ranges(level: Level) -> NDArray[Any]:
    """The range of each row."""
    return np.searchsorted(level.arrays["first"], np.arange(level.rows), side="right") - 1


def _order(levels: list[Level], wrappers: bool) -> tuple[NDArray[Any] | None, list[NDArray[Any]]]:
    """Which row of all levels stands where in the result (None: as they are), and each row's place by level."""
    if len(levels) == 1 and not levels[0].state.any():
        return None, []
    kept = [(level.state == 0) | ((level.state == 1) & wrappers) for level in levels]
    taken = [each.astype(np.int64) for each in kept]
    for depth in range(len(levels) - 1, 0, -1):
        level = levels[depth]
        before = np.concatenate([[0], np.cumsum(taken[depth])])
        lasts = np.append(level.arrays["first"][1:], level.rows)
        taken[depth - 1][level.parents] += before[lasts] - before[level.arrays["first"]]
    positions: list[NDArray[Any]] = []
    order = np.empty(int(taken[0].sum()), np.int64)
    skipped = 0
    for depth, level in enumerate(levels):
        before = np.cumsum(taken[depth]) - taken[depth]
        if depth:
            ranges = _ranges(level)
            bases = positions[-1][level.parents] + kept[depth - 1][level.parents]
            before = bases[ranges] + before - before[level.arrays["first"][ranges]]
        positions.append(before)
        rows = np.flatnonzero(kept[depth])
        order[before[rows]] = skipped + rows
        skipped += level.rows
    return order, positions


def _batch(made: Program, level: Level, depth: int, sizes: dict[int, int]) -> pa.RecordBatch:
    """The columns of one level."""
    code, rows, filled = made.kernel, level.rows, level.arrays
    arrays: list[pa.Array] = []
    for column in code.columns:
        arrays.append(_array(column, level, sizes))
        if code.packing is not None and column.slot == code.packing.column:
            codec = filled["k0"]
            arrays.append(pa.array(level.state == 1, mask=codec == 0) if codec.any() else pa.nulls(rows, pa.bool_()))
    offset = filled["offset"] - level.begins[_ranges(level)] if depth else filled["offset"]
    arrays += [_numbers(offset, pa.int64()), _numbers(filled["length"], pa.int64())]
    if code.gaps:
        arrays.append(_numbers(filled["gap"], pa.int64()))
    if code.packing is not None:
        arrays.append(_numbers(np.full(rows, depth, np.int32), pa.int32()))
        roots = _numbers(level.roots[_ranges(level)], pa.int64()) if depth else pa.nulls(rows, pa.int64())
        arrays.append(roots)
    schema = made.schema
    if level.trays:
        schema, arrays = _with_messages(made, level, schema, arrays)
    if any(size > LARGE for size in sizes.values()):
        named = zip(schema, arrays, strict=True)
        schema = pa.schema([field.with_type(array.type) for field, array in named])
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def batch_of(made: Program, level: Level) -> pa.RecordBatch:
    """The rows of one level alone."""
    byte_columns = (column for column in made.kernel.columns if column.kind in ("bytes", "text"))
    return _batch(made, level, 1, {each.slot: int(level.arrays[f"o{each.slot}"][level.rows]) for each in byte_columns})


def _with_messages(
    made: Program, level: Level, schema: pa.Schema, arrays: list[pa.Array]
) -> tuple[pa.Schema, list[pa.Array]]:
    """The columns of the messages in front of those that follow them."""
    fields = list(schema)
    for tray in reversed(level.trays):
        found = list(message_arrays(tray, level.buffer, level.rows))
        at = tray.made.at
        fields[at:at] = [each for each, _ in found]
        arrays[at:at] = [array for _, array in found]
    return pa.schema(fields), arrays


def _numbers(values: NDArray[Any], kind: pa.DataType, valid: pa.Buffer | None = None) -> pa.Array:
    return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(values)])


def _array(column: Column, level: Level, sizes: dict[int, int]) -> pa.Array:
    """An Arrow array over what the kernel filled."""
    rows, arrays, slot = level.rows, level.arrays, column.slot
    valid = None
    if column.nullable:
        valid = pa.py_buffer(np.packbits(arrays[f"v{slot}"], bitorder="little"))
    if column.kind == "number":
        return _numbers(arrays[f"c{slot}"], pa.from_numpy_dtype(arrays[f"c{slot}"].dtype), valid)
    if column.kind == "flag":
        bits = np.packbits(arrays[f"c{slot}"], bitorder="little")
        return pa.Array.from_buffers(pa.bool_(), rows, [valid, pa.py_buffer(bits)])
    offsets, data = arrays[f"o{slot}"], arrays[f"d{slot}"]
    large = sizes[slot] > LARGE
    kind = pa.large_binary() if large else pa.binary()
    used = data[: int(offsets[rows])]
    buffers = [valid, pa.py_buffer(offsets.astype(np.int64 if large else np.int32, copy=False)), pa.py_buffer(used)]
    array = pa.Array.from_buffers(kind, rows, buffers)
    return _text(array, level, column, made_large=large) if column.kind == "text" else array


def _text(array: pa.Array, level: Level, column: Column, *, made_large: bool) -> pa.Array:
    """Bytes as text; what is not UTF-8 is replaced, which the verdict beside it tells."""
    kind = pa.large_string() if made_large else pa.string()
    good = level.arrays[f"c{column.slot + 1}"][: level.rows]  # the verdict's column is the next one
    missing = ~level.arrays[f"v{column.slot}"].astype(bool) if column.nullable else np.zeros(level.rows, bool)
    if bool((good.astype(bool) | missing).all()):
        return pa.Array.from_buffers(kind, level.rows, array.buffers())
    values: Sequence[bytes | None] = array.to_pylist()
    return pa.array([None if value is None else value.decode(errors="replace") for value in values], kind)
