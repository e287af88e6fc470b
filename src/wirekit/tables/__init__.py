"""The declaration of a protocol's tables: data that maps fields to columns.

A protocol declares its tables in ``protocols/<protocol>/tables.py`` and names the declaration in its registration. Two
evaluators return equal rows: ``records`` reads decoded values, frame by frame; ``batches`` reads whole columns. A
declaration contains no code except ``this`` expressions.

``columns`` has the tables, ``queries`` named queries over them, ``declaration`` the vocabulary; ``checking`` refuses
fields, tables and columns that do not exist. None of them needs pyarrow until ``Table.schema`` is called.
"""

from __future__ import annotations

from wirekit.tables.declaration import (
    Asked,
    Elements,
    Embedded,
    Except,
    Extract,
    First,
    Fixed,
    Inside,
    Messages,
    Named,
    Names,
    Present,
    Rows,
    Tables,
    Text,
    Total,
    Value,
)

__all__ = [
    "Asked",
    "Elements",
    "Embedded",
    "Except",
    "Extract",
    "First",
    "Fixed",
    "Inside",
    "Messages",
    "Named",
    "Names",
    "Rows",
    "Present",
    "Tables",
    "Text",
    "Total",
    "Value",
]
