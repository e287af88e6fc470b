"""The error for a layout that gives no columns, in words for a reader who does not know the IR."""

from __future__ import annotations

from wirekit.compiler import ir
from wirekit.errors import Misuse

_WORDS: dict[type, str] = {
    ir.Number: "a number",
    ir.Boolean: "a flag",
    ir.Named: "a symbol",
    ir.BitFields: "bit fields",
    ir.Blob: "a byte string",
    ir.Delimited: "text up to a delimiter",
    ir.Coded: "text in another encoding, or a value of a function",
    ir.Structure: "a structure",
    ir.Several: "a list",
    ir.When: "a field under a condition",
    ir.WhenNext: "a field that the next bytes decide about",
    ir.WhenMore: "a field that may be left out at the end",
    ir.Either: "one of two layouts",
    ir.Choice: "one of several layouts",
    ir.Ahead: "a number further on",
    ir.Bounded: "a value of a length of its own",
    ir.Fallback: "a value or bytes",
    ir.Reference: "another schema",
    ir.Constant: "a constant",
    ir.Optional: "a field with a default",
    ir.Packed: "compressed data",
    ir.Protobuf: "a protobuf message",
}


def in_words(node: ir.Node) -> str:
    """Describes a node, for a reader who does not know the IR."""
    return _WORDS.get(type(node), "a value of its own")


class Unfit(Misuse):
    """A layout gives no columns.

    Attributes:
        path, kind, why: the field, what it is, and why that is in the way.
    """

    def __init__(self, key: str, path: str, kind: str, why: str) -> None:
        text = f"{key} gives no columns: {path or 'its layout'} is {kind}"
        super().__init__(f"{text}{f' ({why})' if why else ''}; decode it with wirekit.decode")
        self.path, self.kind, self.why = path, kind, why


def unfit(key: str, path: str, node: ir.Node | str, why: str = "") -> Unfit:
    """The error for a layout that gives no columns."""
    return Unfit(key, path, node if isinstance(node, str) else in_words(node), why)
