"""Estimates the memory of decoded Python values from the layout, for ``Limits.memory``.

The figures are those of CPython on 64 bits, rounded up. Both engines charge the same for the same value, so that they
exceed the limit at the same value. Costs that the layout does not determine are charged when they occur: elements of
lists, protobuf fields, decompressed bytes, bad verdicts.
"""

from __future__ import annotations

from wirekit.compiler import ir
from wirekit.wire.costs import RECORD, SLOT, SYMBOL, VERDICT


@ir.remembered
def cost(node: ir.Node) -> int:
    """Bytes of memory that a value takes, without elements of lists, protobuf messages and other schemas inside.

    >>> from wirekit.registry import registry
    >>> from wirekit.wire.costs import NUMBER
    >>> cost(registry["kafka.request_header"].layout) == RECORD + SLOT + SYMBOL + 3 * NUMBER + 4 * SLOT
    True
    """
    match node:
        case ir.BitFields(fields=fields):
            return RECORD + sum(SLOT if each.table is None else SYMBOL for each in fields)
        case ir.Structure(members=members, measures=measures, sums=sums):
            verdicts = len(sums) + sum(not each.is_limit for each in measures)
            inside = sum(SLOT + cost(member.node) for member in members)
            return RECORD + SLOT + VERDICT * verdicts + inside
        case ir.Alternatives(nodes=nodes):
            return max(map(cost, nodes), default=0)
        case ir.Packed(blob=blob, node=inner):
            return cost(blob) + cost(inner)
        case ir.Constant(node=inner, fatal=False):
            return VERDICT + cost(inner)
        case ir.Around(node=inner):
            return cost(inner)
    return node.COST


def cost_of_elements(layout: ir.Node) -> int:
    """The most bytes that an element of a list in a layout takes, as ``cost`` counts them.

    >>> from wirekit.registry import registry
    >>> cost_of_elements(registry["kafka.message_set"].layout) > 2 * RECORD + VERDICT
    True
    """
    return max((cost(each.element) for _, each in ir.walk(layout) if isinstance(each, ir.Several)), default=0)


def grows(node: ir.Node) -> bool:
    """Whether a value takes more than its ``cost``: lists, messages, other schemas or compressed data lie in it."""
    return any(isinstance(each, ir.Several | ir.Protobuf | ir.Reference | ir.Packed) for _, each in ir.walk(node))
