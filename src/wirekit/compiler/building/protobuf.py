"""Protobuf messages in the kernel that builds: a call of ``kernels.protobuf_writes`` for each.

A field that its column has is written; null, or no column, leaves it out. A message inside of another is there when
one of its fields is, when it is required, or when the field that tells of it demands it. Of a list of messages the
columns are lists of one length.
"""

from __future__ import annotations

from typing import Protocol

from wirekit.compiler.building.expressions import Value
from wirekit.compiler.building.tables import Built
from wirekit.program.columns import Column
from wirekit.program.held import WIDTHS
from wirekit.program.messages import Place, Tables
from wirekit.program.values import LONGEST

MESSAGE = 1 << 32  # reasons of the first message begin behind this, those of the second behind its double


class Writer(Protocol):
    """What is needed of the writer of the kernel."""

    columns: dict[str, Column]
    uses: set[str]

    def put(self, line: str) -> None:
        """Writes a line."""

    def fresh(self, stem: str) -> str:
        """A new variable."""

    def fail(self, condition: str, path: str, text: str) -> None:
        """Ends the building if the condition holds."""

    def column(self, path: str) -> Column:
        """A column of that name."""

    def there(self, column: Column) -> str:
        """The condition that the column has a value."""

    def bad(self, verdict: Column) -> str:
        """The condition that a verdict says so."""

    def room(self, size: str) -> None:
        """Ends the building for now if so many bytes have no room."""


def message(writer: Writer, built: Built, number: int, path: str) -> Value:
    """Writes a message; gives what expressions can read of it."""
    told = writer.column(f"{path}.ok" if path else "ok")
    text = f"it was not whole, or its text no UTF-8; without the column {told.path} it is written as it stands"
    writer.fail(writer.bad(told), path, text)
    size = writer.fresh("n")
    writer.uses |= {"sized", "written"}
    writer.put(f"{size} = np.int64(sized(m{number}, {built.root}, row, -1))")
    writer.put(f"if {size} < 0:")
    writer.put(f"    reason = {size} - {MESSAGE * (number + 1)}")
    writer.put("    break")
    writer.room(size)
    writer.put(f"p = written(o, p, m{number}, {built.root}, row, -1)")
    writer.uses |= {"has", "number_of", "count_of"}
    return Value(inside=_fields(built.tables, number, 1, len(built.tables.places), inner=False))


def _fields(made: Tables, number: int, slot: int, end: int, *, inner: bool) -> dict[str, Value]:
    """What expressions can read of a message."""
    inside = {}
    while slot < end:
        place = made.places[slot]
        inside[place.path.rpartition(".")[2]] = _value(made, number, slot, place, inner=inner)
        slot = place.end
    return inside


def _value(made: Tables, number: int, slot: int, place: Place, *, inner: bool) -> Value:
    each = place.field
    assert each is not None
    if each.repeated:
        return Value(length=f"np.int64(count_of(m{number}, {slot}, row))", high=LONGEST, unfit="a list")
    if each.message is not None:
        return Value(inside=_fields(made, number, slot + 1, place.end, inner=True))
    if each.kind not in WIDTHS:
        return Value(unfit=f"a field of type {each.kind}")
    present = f"has(m{number}, {slot}, row)" if inner or not each.required else ""
    return Value(f"np.int64(number_of(m{number}, {slot}, row))", *WIDTHS[each.kind], present=present)
