"""Hypothesis strategies of every registered schema: values, frames and damaged bytes, made from the layout IR.

A value is a mapping of plain Python data (int, str, bytes, None, list, mapping). ``encode`` accepts it, it shrinks to
the fields that matter, and ``to_json`` converts it to JSON. Lengths and checksums are left out, because ``encode``
computes them. Fields that select branches are drawn first: a structure collects all conditions, choices and sizes that
read its fields, chooses branches, and sets the fields that lead there. Then the other fields are drawn. If this cannot
solve a value, the value is encoded and decoded, and drawn again if the result differs.

This package contains nothing of a protocol, and changes bytes only in copies of the output of ``encode``.
"""

try:
    import hypothesis as _hypothesis
except ImportError as missing:
    raise ImportError("wirekit.strategies needs hypothesis: pip install 'wirekit[fuzz]'") from missing

from wirekit.strategies.branches import branches, unreachable
from wirekit.strategies.bulk import EDITED, bulk_frames, bulk_mutations, bulk_values, edited
from wirekit.strategies.conversations import (
    Script,
    conversation,
    conversation_kinds,
    conversations,
    damaged_conversation,
    damaged_conversations,
    in_pieces,
)
from wirekit.strategies.exchange import Exchange, Turn
from wirekit.strategies.mutations import Mutation, damage, kinds, mutations
from wirekit.strategies.nodes import KINDS
from wirekit.strategies.values import agrees, contexts, frames, values

__all__ = [
    "EDITED",
    "KINDS",
    "Exchange",
    "Mutation",
    "Script",
    "Turn",
    "agrees",
    "branches",
    "bulk_frames",
    "bulk_mutations",
    "bulk_values",
    "contexts",
    "conversation",
    "conversation_kinds",
    "conversations",
    "damage",
    "damaged_conversation",
    "damaged_conversations",
    "edited",
    "frames",
    "in_pieces",
    "kinds",
    "mutations",
    "unreachable",
    "values",
]

del _hypothesis
