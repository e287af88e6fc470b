"""The declaration of a protocol's tables: which field goes to which column, as data.

A protocol declares it in ``protocols/<protocol>/tables.py`` and names that in its registration. Two evaluators read the
declaration and give equal rows: ``records``, frame by frame, from decoded values; and one over whole columns. Nothing
in a declaration is code, but for ``this`` expressions.

``columns`` has the tables, ``declaration`` the vocabulary, ``checking`` refuses what a layout or table does not have.
None of them needs pyarrow until ``Table.schema`` is asked for.
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
