"""The columns of a layout: their names, types and lists, for reading and for building."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from wirekit.codings import Coding
from wirekit.compiler import ir
from wirekit.values import SymbolTable


@dataclass(slots=True, eq=False)
class Repeated:
    """A list inside a record; its elements are in arrays of their own.

    Attributes:
        number: the number in the names of its arrays: ``lo<number>`` has the end of the elements of each row.
        path: the path of the list.
        within: the enclosing list; ``lo<number>`` then has an entry for each element of it.
        nullable: whether ``lv<number>`` says which rows have a list.
        sparse: whether a condition may leave out its entry of a row, which is null then.
        in_message: whether it is a list of a protobuf message: a null list is written like an empty one.
        index: in a read program, the register with the number of its elements in all records so far.
    """

    number: int
    path: str
    within: Repeated | None
    nullable: bool
    sparse: bool = False
    in_message: bool = False
    index: int = 0


@dataclass(slots=True, eq=False)
class Column:
    """A column of the result, and the arrays that hold its values.

    Attributes:
        path: its name.
        kind: ``number``, ``flag``, ``bytes`` or ``text``.
        dtype: the numpy type of a number.
        nullable: whether ``v<slot>`` says which rows have a value.
        table: names of its values, if there are any.
        slot: the number in the names of its arrays: ``c<slot>`` values; ``d<slot>`` data and ``o<slot>`` offsets of
            byte strings.
        unit: of a time since the epoch.
        within: the list for whose elements it has one value each, instead of one per row.
        sparse: whether a condition may leave out its value of a row, which is null then.
        coding: the meaning of its bytes: text in another encoding, or values of a user's functions, which stay bytes.
        verdict: the slot of the verdict on a text.
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
    verdict: int = -1

    def is_like(self, other: Column) -> bool:
        """Whether both have values of the same meaning; the sizes of numbers may differ."""
        mine = self.kind, self.table, self.unit, self.coding
        return mine == (other.kind, other.table, other.unit, other.coding)

    @property
    def lists(self) -> list[Repeated]:
        """The lists around its values, the innermost first."""
        lists, group = [], self.within
        while group is not None:
            lists.append(group)
            group = group.within
        return lists

    @property
    def is_bytes(self) -> bool:
        """Whether its values are byte strings, including text."""
        return self.kind in ("bytes", "text")

    @property
    def is_verdict(self) -> bool:
        """Whether its values are verdicts."""
        return self.kind == "flag" and self.path.rpartition(".")[2] == "ok"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a record is bad, or a row is refused.

    Attributes:
        path: the field, or the column.
        kind: ``short``, ``wrong`` or ``limit``; ``refused`` for a row.
        within: the list if the value is in an element.
    """

    path: str
    kind: str
    text: str
    within: Repeated | None = None


@dataclass(slots=True)
class Contents:
    """The byte strings of a column that contain further records: compressed, of the same layout, or of another layout.

    For each row, ``codec`` is the number of a codec plus one, or 0 if nothing is compressed. For another layout,
    ``listed`` is 1 for records and more if a message of ``messages`` is expected, ``count`` is the announced number of
    records, and ``size`` that of bytes after decompression; both are -1 if not announced.

    Attributes:
        column: the index of the column.
        codecs: names of codecs in ``wirekit.compression``.
        streamed: whether the bytes decompressed before damage are the content.
        key: the schema of the content, if it is compressed records of the same layout.
        element: the layout of one record inside, None if there are only bytes.
        messages: names of protobuf messages.
    """

    column: int
    codecs: tuple[str, ...] = ()
    streamed: bool = False
    key: str = ""
    element: ir.Node | None = None
    messages: list[str] = field(default_factory=list)


FLAG, BYTES = Column("", "flag", "uint8"), Column("", "bytes")
"""The columns of flags, which include verdicts, and of bytes, without their places."""

CONTENTS = {"codec": "int8", "listed": "uint8", "count": "int64", "size": "int64"}
"""Arrays by row that describe contents."""


def field_metadata(table: SymbolTable | None, unit: str | None) -> dict[str, str] | None:
    """The metadata of a field whose values have names, or are times."""
    if unit is not None:
        return {"wirekit.unit": unit}
    if table is None:
        return None
    symbols = {str(int(symbol)): symbol.symbol for symbol in table}
    return {"wirekit.table": table.name, "wirekit.symbols": json.dumps(symbols)}
