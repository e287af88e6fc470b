"""What a schema's key stands for in the columns engine: its list of records, and the kernel that scans them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from wirekit.compiler import ir
from wirekit.compiler.columns.code import kernel
from wirekit.compiler.columns.context import said, settled
from wirekit.compiler.columns.front import Front, front, is_told
from wirekit.compiler.columns.kernel import CONTENTS, Kernel, Repeated, field_metadata
from wirekit.compiler.columns.plan import Records, Start, records, unfit
from wirekit.compiler.columns.times import dated_schema
from wirekit.compiler.generated import by_key
from wirekit.errors import Misuse
from wirekit.wire.stream import Limits

if TYPE_CHECKING:
    from numpy.typing import NDArray

FRONT = 1 << 16  # bytes in which all that stands in front of records must be


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
        elements: of each list inside a record, of those that have an element an element.
        schema: of the batch, while no column has 2 GiB.
        dated: the same with times.
        whole: the layout of a record with all choices, where some were made; it decides what is read once.
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
    elements: tuple[dict[str, np.dtype[Any]], ...] = ()
    whole: ir.Node | None = None


_alive: list[Program] = []  # for as long as the process, as others are found by the id of theirs
_lock = threading.Lock()


@by_key
def _programs(key: str) -> dict[str, Program]:
    """The programs of a schema, by what the caller, or something in front of the records, says of them."""
    return {}


def program(key: str, context: Mapping[str, Any] | None = None) -> Program:
    """The plan and the kernel of a schema, made when first asked for; nothing is compiled yet.

    Args:
        context: what the caller says about the bytes, where the layout asks for it.

    Raises:
        Misuse: when the schema is no list of records, or a record has something inside that columns cannot hold.

    >>> program("kafka.offset_index").plan.path
    'entries'
    """
    from wirekit.registry import registry

    known = _programs(key)
    if "" in known:
        return known[""]
    schema = registry[key]
    name = said(schema.layout, context or {})
    if name in known:
        return known[name]
    if is_told(schema.layout):
        why = "what stands in front of its records tells what they are"
        raise Misuse(f"{key} has many kernels, as {why}; give the bytes (explain: --front FILE)")
    layout = settled(key, schema.layout, context or {})
    whole = None if layout is schema.layout else records(key, schema.layout).element
    return _program(key, name, lambda: records(key, layout), whole)


def _program(key: str, name: str, planned: Callable[[], Records], whole: ir.Node | None) -> Program:
    from wirekit.registry import registry

    with _lock:
        known = _programs(key)
        found = known.get(name)
        if found is None:
            plan = planned()
            made = kernel(key, plan.element, whole)
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
            dated, elements = dated_schema(schema), _elements(made)
            found = Program(plan, inner, made, least, _types(made), schema, dated, contents, held, elements, whole)
            known[name] = found
            _alive.append(found)
    return found


def led_program(key: str, data: NDArray[Any], limits: Limits) -> tuple[Program | None, Start, Front]:
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
    return _program(key, f"front {read.case}", lambda: plan, read.whole), Start(read.begin, data.size, -1), read


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
    found = Program(held, None, inner, least, _types(inner), schema, dated_schema(schema), elements=_elements(inner))
    return found, held


def _types(made: Kernel) -> dict[str, np.dtype[Any]]:
    found = {"offset": "int64", "length": "int64"} | _filled(made, None)
    if made.packing is not None:
        found["k0"] = "int8"
    if made.gaps:
        found["gap"] = "int64"
    if made.contents is not None:
        found.update(CONTENTS)
    return {name: np.dtype(dtype) for name, dtype in found.items()}


def _elements(made: Kernel) -> tuple[dict[str, np.dtype[Any]], ...]:
    return tuple({name: np.dtype(dtype) for name, dtype in _filled(made, each).items()} for each in made.lists)


def _filled(made: Kernel, group: Repeated | None) -> dict[str, str]:
    """The arrays of columns and lists that have an element a row, or an element of a list."""
    columns = (column for column in made.columns if column.within is group)
    found = {name: dtype for column in columns for name, dtype in column.arrays() if not name.startswith("d")}
    for each in made.lists:
        if each.outer is group:
            found.update(each.arrays())
    return found


def _schema(made: Kernel) -> pa.Schema:
    fields = []
    for column in made.columns:
        metadata = field_metadata(column.table, column.unit)
        named = {"flag": pa.bool_(), "bytes": pa.binary(), "text": pa.string()}
        kind = named.get(column.kind) or pa.from_numpy_dtype(np.dtype(column.dtype))
        nullable, group = column.nullable, column.within
        while group is not None:
            kind, nullable, group = pa.list_(pa.field("item", kind, nullable)), group.nullable, group.outer
        opened = made.contents is not None and column.slot == made.contents.column  # null where it holds records
        fields.append(pa.field(column.path, kind, nullable or opened, metadata))
        if made.packing is not None and column.slot == made.packing.column:
            fields.append(pa.field(f"{column.path}.ok", pa.bool_()))
    fields += [pa.field("@offset", pa.int64(), False), pa.field("@length", pa.int64(), False)]
    if made.gaps:
        fields.append(pa.field("@gap", pa.int64(), False))
    if made.packing is not None:
        fields += [pa.field("@depth", pa.int32(), False), pa.field("@wrapper", pa.int64())]
    return pa.schema(fields)


def source(key: str, ahead: bytes = b"", context: Mapping[str, Any] | None = None) -> str:
    """The generated source of a schema's kernel, as ``wirekit explain KEY --engine columns`` prints it.

    Args:
        ahead: what stands in front of its records, where that tells what they are.
        context: what the caller says about the bytes.

    Raises:
        Misuse: for a schema that gives no columns.
        WireError: for what cannot stand in front of records.
    """
    return program_of(key, ahead, context).kernel.source


def program_of(key: str, ahead: bytes, context: Mapping[str, Any] | None = None) -> Program:
    """The program of a schema, for records behind these bytes where they tell what the records are.

    Raises:
        Misuse: for a schema that gives no columns.
        WireError: for what cannot stand in front of records.
    """
    from wirekit.registry import registry

    if not ahead or not is_told(registry[key].layout):
        return program(key, context)
    found, _, read = led_program(key, np.frombuffer(ahead, np.uint8), registry[key].limits)
    if found is None:
        assert read.error is not None
        raise read.error
    return found


def without_columns(made: Program) -> list[str]:
    """Fields that have no column."""
    found = list(made.kernel.left_out)
    found += [path for table in made.kernel.messages for path in table.left_out]
    if made.contents is not None and made.held is not None:
        found += [f"{made.held.path}.{path}" for path in without_columns(made.contents)]
    return found
