"""The domain of a field: interesting values, and a test for all other values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wirekit.compiler import ir
from wirekit.compiler.expressions import Literal
from wirekit.compiler.values import LENGTH, Names
from wirekit.registry import registry
from wirekit.values import SymbolTable
from wirekit.wire.protobuf import VARINT, Message

ELEMENTS = 3
"""The maximum number of elements of a list, unless more are required."""


DECIMAL = 10**18
"""The largest number that is written in decimal."""
LARGEST = 256
"""Bytes of a field whose size is an expression, and elements of a list whose count is one."""


@dataclass(slots=True)
class Domain:
    """Interesting values of a field, and a test for the values that it can have.

    Attributes:
        values: the interesting values.
        low, high: the range of its integers.
        string: a test for its text or bytes; None if it has neither.
    """

    values: list[Any]
    low: int = 0
    high: int = -1
    string: Callable[[str | bytes], bool] | None = None

    def holds(self, value: Any) -> bool:
        """Whether a value of an expression fits the field."""
        if isinstance(value, (str, bytes)):
            return self.string is not None and self.string(value)
        return isinstance(value, int) and self.low <= value <= self.high


def edges_of(low: int, high: int) -> list[int]:
    """Integers at boundaries: around 0, and at the ends of the range."""
    near = [*range(17), -1, -2, low, low + 1, high - 1, high]
    return sorted({value for value in near if low <= value <= high}, key=lambda value: (abs(value), value < 0))


def _domain_of_table(table: SymbolTable, low: int, high: int, *, closed: bool) -> Domain:
    numbers = [int(symbol) for symbol in table if low <= symbol <= high]
    if closed:
        return Domain(numbers)
    return Domain([*numbers, *(value for value in edges_of(low, high) if value not in table)], low, high)


def domain_of(node: ir.Node, names: Names) -> Domain | None:
    """The possible values of the field at ``names`` inside a node; None if it cannot be chosen."""
    match ir.core(node):
        case ir.Blob(coding=None) | ir.Several() if names == (LENGTH,):
            return Domain(list(range(ELEMENTS + 1)), 0, LARGEST)
    match node:
        case ir.Structure(members=members):
            for index, member in enumerate(members):
                if names and member.name == names[0]:
                    return None if index in node.computed else domain_of(member.node, names[1:])
        case ir.BitFields(fields=fields):
            for field in fields:
                if names == (field.name,):
                    return _bits_domain(field)
        case ir.Protobuf(message=message):
            return _message_domain(Message.by_full_name[message], names)
        case ir.Reference(key=key):
            return domain_of(registry[key].layout, names)
        case ir.Number() if not names and not node.real:
            return Domain([*edges_of(node.low, node.high)], node.low, node.high)
        case ir.Delimited(decimal=True) if not names:
            return Domain([*edges_of(-DECIMAL, DECIMAL)], -DECIMAL, DECIMAL)
        case ir.Named(number=number) if not names:
            return _domain_of_table(node.table, number.low, number.high, closed=node.closed)
        case ir.Boolean() if not names:
            return Domain([False, True])
        case ir.Blob() if not names:
            if node.coding is not None:
                return _string_domain(node, node.coding.encode, " ") if node.coding.text else None
            return _string_domain(node, str.encode if node.text else bytes, " " if node.text else b"\0")
        case ir.Constant(value=Literal(value=value)) if not names:
            return Domain([value])
        case ir.WhenNext(node=inner) if not names:
            domain = domain_of(inner, names)
            return None if domain is None else Domain([*domain.values, None], domain.low, domain.high)
        case ir.Alternatives(nodes=nodes):
            return _domain_of_any([domain_of(inner, names) for inner in nodes])
        case ir.Around(node=inner):
            return domain_of(inner, names)
    return None


def _string_domain(blob: ir.Blob, encode: Callable[[Any], bytes], blank: str | bytes) -> Domain | None:
    """The domain of text or bytes of a fixed size, or after a length prefix.

    Args:
        blob: the field.
        encode: returns the bytes of a value.
        blank: one character or byte.
    """
    if not isinstance(blob.length, Literal | ir.Number) or blob.filler:
        return None
    size = blob.length.value if isinstance(blob.length, Literal) else None

    def fits(value: str | bytes) -> bool:
        try:
            return type(value) is type(blank) and size in (None, len(encode(value)))
        except ValueError:  # the encoding has no bytes for it
            return False

    sizes = (0, 1, size or 0, (size or 0) // 2)  # a character takes one byte, or two
    absent = [] if blob.null is None else [None]
    return Domain([*filter(fits, dict.fromkeys(blank * number for number in sizes)), *absent], string=fits)


def _bits_domain(field: ir.BitField) -> Domain:
    high = field.most
    if field.table is not None:
        return _domain_of_table(field.table, 0, high, closed=False)
    return Domain([False, True]) if field.width == 1 else Domain(edges_of(0, high), 0, high)


def _domain_of_any(domains: list[Domain | None]) -> Domain | None:
    bounded = [domain for domain in domains if domain is not None]
    if not bounded:
        return None
    together = list(dict.fromkeys(value for domain in bounded for value in domain.values))
    return Domain(
        together, min(domain.low for domain in bounded), max(domain.high for domain in bounded), bounded[0].string
    )


def _message_domain(message: Message, names: Names) -> Domain | None:
    field = message.by_name.get(names[0]) if names else None
    if field is None:
        return None
    if field.repeated:
        return Domain(list(range(ELEMENTS + 1)), 0, LARGEST) if names[1:] == (LENGTH,) else None
    if names[1:]:
        return _message_domain(field.message, names[1:]) if field.message is not None and field.required else None
    absent = [] if field.required else [None]
    if field.kind == "bool":
        return Domain([*absent, False, True])
    if field.wire_type == VARINT:
        low, high = field.low, field.high
        domain = (
            Domain(edges_of(low, high), low, high)
            if field.table is None
            else _domain_of_table(field.table, low, high, closed=False)
        )
        return Domain([*absent, *domain.values], low, high)
    return Domain(list(absent), string=lambda value: isinstance(value, str)) if field.kind == "string" else None
