"""Record lists whose layout a header selects; one program per variant.

The reference engine reads the header, once per buffer. The header selects the list, and every choice in a record that
depends on the header alone, so the program contains no steps for the other cases.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from wirekit.compiler import ir
from wirekit.compiler.expressions import Expression, Field
from wirekit.errors import WireError
from wirekit.values import Record, to_json
from wirekit.wire.composite import RecordsToEnd, Struct
from wirekit.wire.stream import Limits, Reader, Scope, Session, located


@dataclass(frozen=True, slots=True)
class Header:
    """The fields before the records of a buffer.

    Attributes:
        fields: the fields, as JSON.
        several: the list of records, with its choices resolved.
        path: the path of the list.
        case: the values that resolved the choices.
        begin: the offset of the first record.
        node: the layout of one record, as the reference engine reads it.
        scope: the header, for the expressions of a record.
        with_choices: the layout of a record with all choices.
    """

    fields: str
    several: ir.Several
    path: str
    case: str
    begin: int
    node: Any
    scope: Scope
    with_choices: ir.Node


def selected_by_header(layout: ir.Node) -> bool:
    """Whether a layout is a header and a list of records whose layout the header selects."""
    if not isinstance(layout, ir.Structure) or layout.measures or layout.sums or not layout.members:
        return False
    last = layout.members[-1].node
    if not isinstance(last, ir.Choice) or last.otherwise is not None:
        return False
    lists = all(
        isinstance(node, ir.Several) and node.count is None and node.announced is None for _, node in last.cases
    )
    return lists and all(isinstance(tree, Field) and tree.up == 0 for tree in last.on)


def read_header(
    layout: ir.Node, node: Any, protocol: str, data: bytes | memoryview, limits: Limits, params: Any
) -> Header:
    """Reads the header before the records.

    Args:
        layout, node: those of a schema for which ``selected_by_header`` is true.
        data: the buffer.

    Raises:
        WireError: the bytes are not a header, or select no layout.
    """
    assert isinstance(layout, ir.Structure)
    assert isinstance(node, Struct)
    path, last = layout.members[-1].name, layout.members[-1].node
    assert isinstance(last, ir.Choice)
    reader = Reader(Session(protocol, limits), bytes(data))
    scope = Scope.root(params).inner()
    try:
        for name, member in node.members[:-1]:
            reader.session.path.append(name)
            scope[name] = member._parse(reader, scope, "")
            reader.session.path.pop()
        records = node.members[-1][1].settled(scope)
        if not isinstance(records, RecordsToEnd):  # no case has these values
            reader.session.path.append(path)
            node.members[-1][1]._parse(reader, scope, "")
    except WireError as error:
        if error.offset is None:
            located(error, reader)
        raise
    values = {name: scope[name] for name, _ in node.members[:-1]}
    cases: list[str] = []
    several = _chosen(last, values, 0, cases, {})
    assert isinstance(several, ir.Several)
    assert isinstance(records, RecordsToEnd)
    fields = json.dumps({name: to_json(value) for name, value in values.items()})
    with_choices = last.case(tuple(_value(tree, values) for tree in last.on))
    assert isinstance(with_choices, ir.Several)
    return Header(fields, several, path, ",".join(cases), reader.position, records.element, scope, with_choices.element)


def _chosen(
    node: ir.Node, values: dict[str, Any], depth: int, cases: list[str], chosen_by_node: dict[Any, ir.Node]
) -> ir.Node:
    """Resolves the choices that header fields, ``depth`` structures further out, decide; shared nodes stay shared."""
    if (id(node), depth) in chosen_by_node:
        return chosen_by_node[id(node), depth]
    chosen, deeper = node, depth + isinstance(node, ir.Structure)
    if isinstance(node, ir.Choice) and all(isinstance(tree, Field) and tree.up == depth for tree in node.on):
        key = tuple(_value(tree, values) for tree in node.on)
        case = node.case(key)
        # "*" for all unknown values: hostile bytes cannot create more programs than there are cases
        cases.append("*" if case is None else ",".join(map(str, key)))
        if (case := case or node.otherwise) is not None:
            chosen = _chosen(case, values, depth, cases, chosen_by_node)
    else:
        chosen = ir.mapped(node, lambda _, inner: _chosen(inner, values, deeper, cases, chosen_by_node))
    chosen_by_node[id(node), depth] = chosen
    return chosen


def _value(tree: Expression, values: dict[str, Any]) -> Any:
    assert isinstance(tree, Field)
    value: Any = values.get(tree.names[0])
    for name in tree.names[1:]:
        value = value._get(name) if isinstance(value, Record) else None
    return int(value) if isinstance(value, int) else value
