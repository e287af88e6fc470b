"""The branches of a layout by name, and those that no value can reach."""

from __future__ import annotations

from collections.abc import Iterator

from wirekit.compiler import ir
from wirekit.compiler.generated import by_key
from wirekit.encoding import built_key
from wirekit.strategies.layout import layout_of
from wirekit.strategies.nodes import branch_names


def branches(key: str) -> list[str]:
    """The names of all branches of a layout: cases, conditions, codecs, null, empty or some, numbers without a symbol.

    A shared part of a layout has the name of its first place. Those in ``unreachable`` are left out.

    >>> branches("kafka.consumer_offsets.value")[:4]
    ['=0', '=1', '=2', '=otherwise']
    """
    return [name for name, reason in _branches(built_key(key)) if not reason]


def unreachable(key: str) -> dict[str, str]:
    """The branches of a layout that no value reaches: {name: reason}.

    >>> unreachable("kafka.api_versions.response.v0")
    {}
    """
    return {name: reason for name, reason in _branches(built_key(key)) if reason}


@by_key
def _branches(key: str) -> list[tuple[str, str]]:
    """(name, reason why it cannot be reached, or "") of each branch."""
    return list(_reachability(key))


def _reachability(key: str) -> Iterator[tuple[str, str]]:
    layout = layout_of(key)
    constant = {id(inner) for node in layout.nodes if isinstance(node, ir.Constant) for _, inner in ir.walk(node.node)}
    for node in layout.nodes:
        for branch in branch_names(node):
            reason = ""
            if id(node) in constant:
                reason = "lies in a constant, which has one value"
            elif id(node) in layout.lookahead_ends and branch == "present":
                reason = "depends on the bytes after the value"
            yield f"{layout.names[id(node)]}={branch}", reason
        if isinstance(node, ir.Fallback) and "bytes" not in branch_names(node):
            yield f"{layout.names[id(node)]}=bytes", "the node reads no bytes, so it always decodes"
