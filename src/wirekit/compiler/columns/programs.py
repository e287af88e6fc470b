"""Maps a schema key to its list of records in the columns engine, and to the program that reads them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wirekit.compiler import ir
from wirekit.compiler.columns.filled import ScanProgram
from wirekit.compiler.columns.header_variants import Header, read_header, selected_by_header
from wirekit.compiler.columns.meanings import dated_schema
from wirekit.compiler.columns.plan import Records, Start, of_list, records
from wirekit.compiler.generated import by_key
from wirekit.compiler.settling import context_text, settled
from wirekit.engine import Params
from wirekit.errors import Misuse
from wirekit.program.columns import Column, Repeated, field_metadata
from wirekit.program.maker import Program
from wirekit.program.messages import chosen
from wirekit.program.passes import shortened
from wirekit.program.read import read
from wirekit.program.show import shown
from wirekit.program.steps import Body
from wirekit.program.unfit import unfit
from wirekit.registry import registry
from wirekit.wire.stream import Limits

CHOICES = 64  # choices of columns that are kept for each schema
FRONT = 1 << 16  # the most bytes of a header


@dataclass(eq=False, slots=True)
class Columnar:
    """The program and columns of a schema's key.

    Attributes:
        plan: the list of records.
        inner: the list of compressed records in a record, with the same layout; None if there are none.
        program: the program that reads a record of both lists.
        contents: the program for the byte strings of a column; None if they are not scanned.
        least: the smallest number of bytes of a record.
        schema: the schema of a batch in which no column has 2 GiB.
        dated: the same schema with times.
        with_choices: the layout of a record with all alternatives, if the context selected some; None otherwise.
        choices: the encoded program by choice of columns.
        fields: the fields of the schema by name.
        times: the places of the columns of the schema that are times.
        byte_columns: the columns of byte strings.
        verdicts: the columns of verdicts.
    """

    plan: Records
    inner: Records | None
    program: Program
    contents: Columnar | None = None
    with_choices: ir.Node | None = None
    choices: dict[tuple[tuple[str, ...] | None, bool, bool], ScanProgram] = field(default_factory=dict)
    least: int = field(init=False)
    schema: pa.Schema = field(init=False)
    dated: pa.Schema = field(init=False)
    fields: dict[str, pa.Field] = field(init=False)
    times: list[int] = field(init=False)
    byte_columns: list[Column] = field(init=False)
    verdicts: list[Column] = field(init=False)

    def __post_init__(self) -> None:
        self.least = max(ir.minimum(self.plan.element), 1)
        self.schema = _schema(self.program)
        self.dated = dated_schema(self.schema)
        self.fields = {each.name: each for each in self.schema}
        self.byte_columns = [each for each in self.program.columns if each.is_bytes]
        self.verdicts = [each for each in self.program.columns if each.is_verdict]
        pairs = zip(self.schema, self.dated, strict=True)
        self.times = [at for at, (plain, dated) in enumerate(pairs) if plain.type != dated.type]

    def scan_program(self, fields: tuple[str, ...] | None, verdicts: bool, wide: bool) -> ScanProgram:
        """The encoded program that fills some columns, with the other data for a scan.

        Args:
            fields: prefixes of the columns, or None for all.
            verdicts: whether to fill all verdicts as well.
            wide: whether offsets have 64 bits.
        """
        choice = fields, verdicts, wide
        scan_program = self.choices.get(choice)
        if scan_program is None:
            if len(self.choices) >= CHOICES:
                self.choices.clear()
            scan_program = self.choices[choice] = ScanProgram(self.program, *self._chosen(fields, verdicts), wide)
        return scan_program

    def _chosen(self, fields: tuple[str, ...] | None, verdicts: bool) -> tuple[Body, list[Column | Repeated]]:
        """The steps that fill some columns; these columns, and the lists of the program."""
        program = self.program
        holder = program.packing or program.contents
        needed = {message.at for message in program.messages} | ({holder.column} if holder is not None else set())
        columns = [
            each
            for each in program.columns
            if chosen(each.path, fields) or each.slot in needed or (verdicts and each.is_verdict)
        ]
        filled = {id(each) for each in (*columns, *program.hidden.values())}
        body = shortened(program, lambda column: id(column) in filled)
        return body, [*columns, *program.lists, *program.hidden.values()]


_lock = threading.Lock()


_programs: Callable[[str], dict[str, Columnar]] = by_key(lambda key: {})
"""The programs of a schema by context or header variant."""


def program(key: str, context: Mapping[str, Any] | None = None) -> Columnar:
    """The plan and the program of a schema, created on the first call; nothing is compiled yet.

    Args:
        key: the key of the schema.
        context: values that the layout takes from the caller.

    Raises:
        Misuse: the schema is not a list of records, or columns cannot represent a node of a record.

    >>> program("kafka.offset_index").plan.path
    'entries'
    """
    program_by_name = _programs(key)
    if "" in program_by_name:
        return program_by_name[""]
    schema = registry[key]
    name = context_text(key, context or {})
    if name in program_by_name:
        return program_by_name[name]
    if selected_by_header(schema.layout):
        why = "the fields before its records select their layout"
        raise Misuse(f"{key} has several programs, because {why}; pass the bytes (explain: --front FILE)")
    layout = settled(key, schema.layout, context or {})
    with_choices = None if layout is schema.layout else records(key, schema.layout).element
    may_be_list = isinstance(schema.layout, (ir.Structure, ir.Several))
    return _program(key, name, records(key, layout) if may_be_list else Records(key, layout), with_choices)


def _program(key: str, name: str, plan: Records, with_choices: ir.Node | None) -> Columnar:
    with _lock:
        program_by_name = _programs(key)
        columnar = program_by_name.get(name)
        if columnar is None:
            program = read(key, plan.element, with_choices, stop=plan.stop)
            inner = None
            if program.packing is not None:
                inner = records(program.packing.key, registry[program.packing.key].layout)
                if inner.element != plan.element:  # records of another layout remain bytes
                    program, inner = read(key, plan.element, with_choices, closed=True, stop=plan.stop), None
            columnar = program_by_name[name] = Columnar(plan, inner, program, _contents(key, program), with_choices)
    return columnar


def led_program(key: str, data: NDArray[Any], limits: Limits) -> tuple[Columnar, Start, Header]:
    """The program for records whose layout a header selects.

    Raises:
        WireError: the bytes are not a header of the schema, or select no layout.
    """
    schema = registry[key]
    header = read_header(schema.layout, schema.node, schema.protocol, data.data[:FRONT], limits, Params())
    plan = of_list(key, header.several, header.path, [])
    columnar = _program(key, f"front {header.case}", plan, header.with_choices)
    return columnar, Start(header.begin, data.size, -1), header


def _contents(key: str, program: Program) -> Columnar | None:
    """The program for the byte strings of a column."""
    if program.contents is None or program.contents.element is None:
        return None
    element = program.contents.element
    path = program.columns[program.contents.column].path
    inner = read(key, element)
    if inner.contents is not None or inner.packing is not None:
        raise unfit(key, path, "a list", "its records hold nested records")
    return Columnar(Records(key, element, path), None, inner)


def type_of(column: Column) -> pa.DataType:
    """The Arrow type of a column's values, of less than 2 GiB."""
    return _type_of(column.kind, column.dtype)


@cache
def _type_of(kind: str, dtype: str) -> pa.DataType:
    type_by_kind = {"flag": pa.bool_(), "bytes": pa.binary(), "text": pa.string()}
    return type_by_kind.get(kind) or pa.from_numpy_dtype(np.dtype(dtype))


def in_lists(column: Column, kind: pa.DataType) -> tuple[pa.DataType, bool]:
    """The type of a column with values of a type, in lists if the column is in lists; and whether it may be null."""
    nullable = column.nullable
    for group in column.lists:
        kind, nullable = pa.list_(pa.field("item", kind, nullable)), group.nullable
    return kind, nullable


def _schema(compiled: Program) -> pa.Schema:
    fields = []
    for column in compiled.columns:
        metadata = field_metadata(column.table, column.unit)
        # Nested records replace the bytes of this column, which is then null.
        nested = compiled.contents is not None and column.slot == compiled.contents.column
        kind, nullable = in_lists(column, type_of(column))
        fields.append(pa.field(column.path, kind, nullable or nested, metadata))
        if compiled.packing is not None and column.slot == compiled.packing.column:
            fields.append(pa.field(f"{column.path}.ok", pa.bool_()))
    fields += [pa.field("@offset", pa.int64(), False), pa.field("@length", pa.int64(), False)]
    if compiled.gaps:
        fields.append(pa.field("@gap", pa.int64(), False))
    if compiled.packing is not None:
        fields += [pa.field("@depth", pa.int32(), False), pa.field("@wrapper", pa.int64())]
    return pa.schema(fields)


def source(key: str, ahead: bytes = b"", context: Mapping[str, Any] | None = None) -> str:
    """The steps of a schema's program, one a line, as ``wirekit explain KEY --engine columns`` prints them.

    Args:
        ahead: the bytes before the records, if a header selects the layout of the records.
        context: values that the layout takes from the caller.

    Raises:
        Misuse: the schema has no columns.
        WireError: ``ahead`` is not a header of the schema.
    """
    return shown(program_of(key, ahead, context).program)


def program_of(key: str, ahead: bytes, context: Mapping[str, Any] | None = None) -> Columnar:
    """The program of a schema; ``ahead`` and ``context`` are those of ``source``.

    Raises:
        Misuse: the schema has no columns.
        WireError: ``ahead`` is not a header of the schema.
    """
    if not ahead or not selected_by_header(registry[key].layout):
        return program(key, context)
    return led_program(key, np.frombuffer(ahead, np.uint8), registry[key].limits)[0]


@lru_cache(1 << 10)
def described(key: str, columnar: Columnar) -> Mapping[str, str]:
    """The metadata of a batch."""
    left_out = without_columns(columnar)
    return {"wirekit.key": key} | ({"wirekit.left_out": json.dumps(left_out)} if left_out else {})


def without_columns(columnar: Columnar) -> list[str]:
    """Fields that have no column."""
    paths = list(columnar.program.left_out)
    paths += [path for table in columnar.program.messages for path in table.left_out]
    if columnar.contents is not None:
        paths += [f"{columnar.contents.plan.path}.{path}" for path in without_columns(columnar.contents)]
    return paths
