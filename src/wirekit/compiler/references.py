"""Checks that the fields named by a layout's expressions exist."""

from __future__ import annotations

from wirekit.compiler import ir
from wirekit.compiler.expressions import fields_of
from wirekit.errors import Misuse

_Open = frozenset[tuple[int, str]]  # (how many structures further out, field) of what is read outside a node


def check_references(layout: ir.Node) -> None:
    """Looks up what every expression reads in the structure that it names.

    What lies outside the layout is not looked for: it may be used inside another.

    Raises:
        Misuse: for a field that no structure has; the text has the path.
    """
    _open(layout, "", {})


def _open(node: ir.Node, path: str, known: dict[int, _Open]) -> _Open:
    if id(node) not in known:
        known[id(node)] = _structure(node, path, known) if isinstance(node, ir.Structure) else _plain(node, path, known)
    return known[id(node)]


def _plain(node: ir.Node, path: str, known: dict[int, _Open]) -> _Open:
    found = {(field.up, field.names[0]) for _, tree in ir.expressions(node) for field in fields_of(tree)}
    element = f"{path}[]" if isinstance(node, ir.Several) else path
    for _, inner in ir.parts(node):
        found |= _open(inner, element, known)
    return frozenset(found)


def _structure(node: ir.Structure, path: str, known: dict[int, _Open]) -> _Open:
    names = [member.name for member in node.members]
    for field in (each for tree in node.refusals for each in fields_of(tree)):
        if field.up or field.names[0] not in names:
            where = path or "the layout"
            raise Misuse(f"{where}: refused= depends on {field}, which is not a field of {node.name}")
    found: set[tuple[int, str]] = set()
    for member in node.members:
        where = f"{path}.{member.name}" if path else member.name
        for up, name in _open(member.node, where, known):
            if up == 0 and name not in names:
                raise Misuse(f"{where} reads {name!r}, which is not a field of {node.name}; it has {', '.join(names)}")
            found.add((up - 1, name))
    return frozenset((up, name) for up, name in found if up >= 0)
