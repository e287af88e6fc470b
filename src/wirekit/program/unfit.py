"""The error for a layout that has no columns, in terms of the vocabulary instead of the IR."""

from __future__ import annotations

from wirekit.compiler import ir
from wirekit.errors import Misuse


class Unfit(Misuse):
    """A layout has no columns.

    Attributes:
        path, kind, why: the field, its kind, and the reason.
    """

    def __init__(self, key: str, path: str, kind: str, why: str) -> None:
        text = f"{key} has no columns: {path or 'its layout'} is {kind}"
        super().__init__(f"{text}{f' ({why})' if why else ''}; decode it with wirekit.decode")
        self.path, self.kind, self.why = path, kind, why


def unfit(key: str, path: str, node: ir.Node | str, why: str = "") -> Unfit:
    """The error for a layout that has no columns."""
    return Unfit(key, path, node if isinstance(node, str) else node.WORDS, why)
