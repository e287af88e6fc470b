"""Nodes composed of nodes: structs, lists, choices, layouts inside a length, references by key."""

from __future__ import annotations

from wirekit.wire.composite.choices import If, IfMore, IfNext, IfThenElse, Lookahead, OrBytes, Switch, bare
from wirekit.wire.composite.lists import Array, RecordsToEnd, Repeat
from wirekit.wire.composite.nested import Ref, Sized
from wirekit.wire.composite.structure import Struct

__all__ = [
    "Array",
    "If",
    "IfMore",
    "IfNext",
    "IfThenElse",
    "Lookahead",
    "OrBytes",
    "RecordsToEnd",
    "Ref",
    "Repeat",
    "Sized",
    "Struct",
    "Switch",
    "bare",
]
