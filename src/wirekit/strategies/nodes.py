"""Properties of a single node: its size, its branches, and the ways to damage it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from wirekit.compiler import ir
from wirekit.values import SymbolTable
from wirekit.varints import FirstByteForm, VarintForm

SIZES = ("too small", "too large", "negative", "huge")


KINDS = (
    *(f"length {size}" for size in SIZES),
    *(f"count {size}" for size in SIZES),
    "checksum",
    "truncated",
    "reserved bit",
    "unknown symbol",
    "constant",
    "too deep",
    "bomb",
    "trailing bytes",
    "endless varint",
)
"""The names of mutations; which of them occur depends on the schema and on the value."""
BOMB_CODECS = frozenset(("gzip", "zip", "zlib", "zstd"))
"""Codecs that pack zeros into less than a thousandth, which is more than ``Limits`` grants."""


def branch_names(node: ir.Node) -> list[str]:
    match node:
        case ir.Choice():
            return [name for name, _ in ir.parts(node)]
        case ir.Either():
            return ["then", "otherwise"]
        case ir.Conditional():
            return ["present", "absent"]
        case ir.Packed(codecs=codecs):
            return [f"{','.join(map(str, values_))} {name}" for values_, name in codecs] + ["as it stands"]
        case ir.Fallback(node=ir.Choice()):
            return ["layout", "bytes"]
        case ir.Fallback(node=inner):
            return ["layout", "bytes"] if ir.minimum(inner) else ["layout"]
        case ir.Bounded(null=null):
            return ["present"] if null is None else ["present", "null"]
        case ir.Blob(length=ir.Number(), null=null):
            return ["some", "null"] if null == 0 else ["some", "empty"] if null is None else ["some", "empty", "null"]
        case ir.Several(count=ir.Number(), null=null):
            return ["some", "empty"] if null is None or null == 0 else ["some", "empty", "null"]
        case ir.Named(closed=False):
            return ["unknown"]
    return []


def kinds_of(node: ir.Node) -> set[str]:
    """The kinds of damage that a node itself allows."""
    match node:
        case ir.Structure(members=members, measures=measures, sums=sums):
            names = {"checksum"} if sums else set()
            for measure in measures:
                number = ir.bare(members[measure.at].node)
                names |= _size_kinds("length", number) if isinstance(number, ir.Number) else set()
            return names
        case ir.Blob(length=ir.Number() as number) | ir.Bounded(length=number):
            return _size_kinds("length", number)
        case ir.Several(count=ir.Number() as number):
            return _size_kinds("count", number)
        case ir.Named(table=table, number=number):
            return set() if without_name(table, number.low, number.high) is None else {"unknown symbol"}
        case ir.BitFields(fields=fields):
            names = {"reserved bit" for field in fields if field.name.startswith("reserved")}
            for field in fields:
                if field.table is not None and without_name(field.table, 0, field.most) is not None:
                    names.add("unknown symbol")
            return names
        case ir.Number(form=VarintForm() as form):
            return set() if isinstance(form, FirstByteForm) else {"endless varint"}
        case ir.Constant():
            return {"constant"}
        case ir.Protobuf():
            return {"endless varint"}
        case ir.Packed(codecs=codecs) if not BOMB_CODECS.isdisjoint(codec for _, codec in codecs):
            return {"bomb"}
    return set()


def _size_kinds(prefix: str, number: ir.Number) -> set[str]:
    return {f"{prefix} {size}" for size in SIZES if size != "negative" or number.signed}


def wrong_sizes(number: ir.Number, right: int) -> Iterator[tuple[str, int]]:
    """(name of the error, number) for each way in which a length or count can be wrong within its integer."""
    for name, wrong in (
        ("too small", right - 1),
        ("too large", right + 1),
        ("negative", -1),
        ("negative", number.low),
        ("huge", number.high),
    ):
        sensible = (name == "negative") == (wrong < 0) and wrong != right
        if sensible and number.low <= wrong <= number.high:
            yield name, wrong


def without_name(table: SymbolTable, low: int, high: int) -> int | None:
    """A number without a symbol; None if the integer cannot hold one."""
    near = itertools.chain(range(min(len(table) + 1, high + 1)), (high, low))
    return next((number for number in near if low <= number <= high and number not in table), None)
