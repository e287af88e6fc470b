"""Checks that the fields named by a layout's expressions exist, and are read before the expressions."""

from __future__ import annotations

from wirekit.compiler import ir
from wirekit.compiler.expressions import fields_of
from wirekit.errors import Misuse
from wirekit.wire.blobs import POSITION

FIELD = "padding to a multiple must be a field of a struct; only If, IfMore or Default may wrap it"
_Free = frozenset[tuple[int, str, bool]]
"""The fields read outside a node: structures further out, name, and whether decoding needs them."""


def check_references(layout: ir.Node) -> None:
    """Checks that the structures named by expressions have the fields that the expressions read.

    A field must come before an expression that decoding needs; a default, which only building needs, may read later
    fields. Fields outside the layout are not checked, because the layout may be part of another.

    Raises:
        Misuse: a structure lacks the field, or has it later; the text has the path.
    """
    if (0, POSITION, True) in _free(layout, "", {}):
        raise Misuse(f"the layout: {FIELD}")


def _free(node: ir.Node, path: str, free_by_node: dict[int, _Free]) -> _Free:
    if id(node) not in free_by_node:
        free_by_node[id(node)] = (
            _structure(node, path, free_by_node) if isinstance(node, ir.Structure) else _plain(node, path, free_by_node)
        )
    return free_by_node[id(node)]


def _plain(node: ir.Node, path: str, free_by_node: dict[int, _Free]) -> _Free:
    free = {
        (field.up, field.names[0], role != "default")
        for role, tree in ir.expressions(node)
        for field in fields_of(tree)
    }
    element = f"{path}[]" if isinstance(node, ir.Several) else path
    for _, inner in ir.parts(node):
        inside = _free(inner, element, free_by_node)
        if (0, POSITION, True) in inside and not isinstance(node, ir.Conditional | ir.Optional):
            raise Misuse(f"{path or 'the layout'}: {FIELD}")
        free |= inside
    return frozenset(free)


def _structure(node: ir.Structure, path: str, free_by_node: dict[int, _Free]) -> _Free:
    names = [member.name for member in node.members]
    for field in (each for tree in node.refusals for each in fields_of(tree)):
        if field.up or field.names[0] not in names:
            where = path or "the layout"
            raise Misuse(f"{where}: refused= depends on {field}, which is not a field of {node.name}")
    free: set[tuple[int, str, bool]] = set()
    for at, member in enumerate(node.members):
        where = ir.inner_path(path, member.name)
        for up, name, needed in _free(member.node, where, free_by_node):
            if is_padded(member.node) and name == POSITION:
                _check_lengths(node, at, where)
            elif up == 0 and name not in names:
                raise Misuse(f"{where} reads {name!r}, which is not a field of {node.name}; it has {', '.join(names)}")
            elif up == 0 and needed and name not in names[:at]:
                raise Misuse(f"{where} reads {name!r}, which {node.name} does not have before it; declare it first")
            free.add((up - 1, name, needed))
    return frozenset(each for each in free if each[0] >= 0)


def is_padded(node: ir.Node) -> bool:
    """Whether a member of a structure is padding whose size depends on its position in it."""
    core = ir.bare(node)
    length = core.length if isinstance(core, ir.Blob) and core.filler else None
    fields = [] if length is None or isinstance(length, ir.Number) else fields_of(length)
    return any(field.names == (POSITION,) for field in fields)


def _check_lengths(node: ir.Structure, at: int, path: str) -> None:
    """Refuses padding whose position depends on a varint that is written later."""
    for measure in node.measures:
        number, name = ir.bare(node.members[measure.at].node), node.members[measure.at].name
        if measure.at < at and ir.varying(number) and not measure.at < measure.first <= measure.last < at:
            raise Misuse(
                f"{path}: its size follows from that of {name}, a varint that is known later; use a fixed size"
            )
