"""Hypothesis strategies of every registered schema: values, frames and damaged bytes, made from the layout IR.

A value is a mapping of plain Python data (int, str, bytes, None, list, mapping): ``encode`` takes it, it shrinks to the
fields that matter, and ``to_json`` makes JSON of it. Lengths and checksums are left out, for they are computed. What
decides is drawn first: a structure looks at all conditions, choices and sizes that read its fields, chooses branches,
and takes values for the fields that lead there; all else follows. What cannot be solved so is built, decoded and
drawn anew when it does not come out the same.

Nothing here knows a protocol, nor writes bytes of its own except into copies of what ``encode`` gave.
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
