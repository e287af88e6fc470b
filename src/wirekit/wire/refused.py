"""Values that a layout can express and peers refuse: a bad check when read, an error when built strictly."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import or_
from typing import Any

from wirekit.errors import Misuse
from wirekit.values import SymbolTable


@dataclass(frozen=True, slots=True)
class Refused:
    """A value that peers refuse.

    Reading such a value gives a bad ``acceptance`` check; other values give no check. Building writes the value, unless
    ``wirekit.encode`` is called with ``strict``.

    Args:
        field: the member of the struct, or a bit field of one (``system_code.compression``).
        when: a ``this`` expression over members of the same struct that is true for such a value.
        note: the refused value and the reaction of peers, in words.
        source: the document or the implementation that shows it.
    """

    field: str
    when: Any
    note: str
    source: str

    @property
    def names(self) -> list[str]:
        """The member, and the bit field inside it if there is one."""
        return self.field.split(".")

    def __str__(self) -> str:
        return f"{self.note} [{self.source}]"


def unnamed(number: Any, table: SymbolTable) -> Any:
    """An expression that is true for a number without a symbol in a table.

    Args:
        number: a ``this`` expression.
        table: the symbols.

    >>> from wirekit.wire import this
    >>> unnamed(this.kind, SymbolTable("kind", {1: "A", 2: "B", 9: "C"}))
    (((this['kind'] < 1) | ((this['kind'] > 2) & (this['kind'] < 9))) | (this['kind'] > 9))
    """
    if not isinstance(table, SymbolTable):
        raise Misuse(f"unnamed: table must be a SymbolTable, not {table!r}")
    values = sorted(map(int, table))
    holes = [(low, high) for low, high in pairwise(values) if high > low + 1]
    between = [(number > low) & (number < high) for low, high in holes]
    return reduce(or_, [number < values[0], *between, number > values[-1]])
