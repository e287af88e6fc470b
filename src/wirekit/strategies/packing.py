"""Fields as bytes, for two purposes only: to make lookaheads agree with the bytes that follow, and to damage copies."""

from __future__ import annotations

from typing import Any

from wirekit.compiler import ir
from wirekit.varints import VarintForm


def pack(node: ir.Node, value: Any) -> bytes | None:
    """The bytes of a number in any of its forms; None for other nodes."""
    match ir.core(node):
        case ir.Number(form=VarintForm() as form):
            return form.write(int(value))
        case ir.Number() as number if not number.real:
            return int(value).to_bytes(number.size, "little" if number.little else "big", signed=int(value) < 0)
        case ir.Boolean(number=number) | ir.Named(number=number):
            return pack(number, int(value))
        case ir.BitFields(number=number, fields=fields):
            packed = sum(int(value[field.name]) << field.shift for field in fields)
            return packed.to_bytes(number.size, "little" if number.little else "big")
    return None


def unpack(node: ir.Node, data: bytes) -> Any:
    """The inverse of ``pack``."""
    match ir.core(node):
        case ir.Number() as number:
            return int.from_bytes(data, "little" if number.little else "big", signed=number.signed)
        case ir.Boolean(number=number):
            return bool(unpack(number, data))
        case ir.Named(number=number):
            return unpack(number, data)
        case ir.BitFields(number=number) as bits:
            return taken_apart(bits, unpack(number, data))
    return None


def size_of(number: ir.Number, value: int) -> int:
    """Bytes that an integer takes."""
    return len(pack(number, value) or b"") if number.groups else number.size


def taken_apart(node: ir.BitFields, number: int) -> dict[str, Any]:
    bits = node.parted(number)
    return {
        field.name: bool(bits[field.name]) if field.width == 1 and field.table is None else bits[field.name]
        for field in node.fields
    }
