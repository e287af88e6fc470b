"""The columns of a layout: their names, types and lists, for reading and for building."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from wirekit.codings import Coding
from wirekit.compiler import ir
from wirekit.values import SymbolTable


@dataclass(slots=True, eq=False)
class Repeated:
    """A list inside a record: its elements stand in arrays of their own.

    Attributes:
        number: the number in the names of its arrays: ``lo<number>`` has where the elements of each row end.
        path: where it stands.
        outer: the list around it: then ``lo<number>`` is by element of that.
        nullable: whether ``lv<number>`` says which rows have a list.
        sparse: whether a condition may leave out its entry of a row, which is null then.
    """

    number: int
    path: str
    outer: Repeated | None
    nullable: bool
    sparse: bool = False


@dataclass(slots=True, eq=False)
class Column:
    """A column of the result, and the arrays that are filled for it.

    Attributes:
        path: its name.
        kind: ``number``, ``flag``, ``bytes`` or ``text``.
        dtype: of a number, as numpy has it.
        nullable: whether ``v<slot>`` says which rows have a value.
        table: names of its values, if there are any.
        slot: the number in the names of its arrays: ``c<slot>`` values; ``d<slot>`` data and ``o<slot>`` offsets of
            byte strings.
        unit: of a time since the epoch.
        within: the list of which it has an element each, instead of one a row.
        sparse: whether a condition may leave out its value of a row, which is null then.
        coding: what its bytes stand for: text in another encoding, or values of a user's functions, which stay bytes.
    """

    path: str
    kind: str
    dtype: str = ""
    nullable: bool = False
    table: SymbolTable | None = None
    slot: int = 0
    unit: str | None = None
    within: Repeated | None = None
    sparse: bool = False
    coding: Coding | None = None

    @property
    def is_bytes(self) -> bool:
        """Whether it has byte strings, as text is too."""
        return self.kind in ("bytes", "text")

    @property
    def is_verdict(self) -> bool:
        """Whether it tells what was verified."""
        return self.kind == "flag" and self.path.rpartition(".")[2] == "ok"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a record is not good: the field, ``short``, ``wrong`` or ``limit``, and in words."""

    path: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Packing:
    """The byte strings of a column hold more records of the same layout, compressed.

    Of each row ``codec`` tells the number of a codec plus one, 0 where there is nothing compressed.

    Attributes:
        column: the index of the column.
        codecs: names of codecs, as ``wirekit.compression`` knows them.
        key: the schema of what is inside.
    """

    column: int
    codecs: tuple[str, ...]
    key: str


@dataclass(slots=True)
class Contents:
    """The byte strings of a column may be, or hold compressed, more records of another layout.

    Of each row tell ``codec`` the number of a codec plus one, ``listed`` 1 where there are records and more where a
    message of ``messages`` should be, ``count`` how many records are announced and ``size`` how many bytes there are
    when decompressed, both -1 where nothing is said.

    Attributes:
        column: the index of the column.
        codecs: names of codecs.
        element: the layout of one record inside, None where there are only bytes.
        messages: names of protobuf messages.
    """

    column: int
    codecs: tuple[str, ...] = ()
    element: ir.Node | None = None
    messages: list[str] = field(default_factory=list)


CONTENTS = {"codec": "int8", "listed": "uint8", "count": "int64", "size": "int64"}
"""Arrays by row that tell of contents; ``codec`` of packing, too."""


def field_metadata(table: SymbolTable | None, unit: str | None) -> dict[str, str] | None:
    """The metadata of a field whose values have names, or are times."""
    if unit is not None:
        return {"wirekit.unit": unit}
    if table is None:
        return None
    symbols = {str(int(symbol)): symbol.symbol for symbol in table}
    return {"wirekit.table": table.name, "wirekit.symbols": json.dumps(symbols)}
