"""Checks of a protocol that is registered: its names, the types of its declarations and its tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, get_type_hints

import construct

from wirekit.errors import Misuse
from wirekit.registry.declarations import DIALOGUE, Beginning, Protocol, layouts
from wirekit.registry.schema import Schema
from wirekit.wire.arguments import refuse_unless_fit
from wirekit.wire.node import Node


def check_declaration(protocol: Protocol, schemas: Mapping[str, Schema]) -> None:
    """Refuses a declaration of tables that names a table, column or path that does not exist.

    Args:
        protocol: the protocol with the declaration.
        schemas: the schemas of the protocol by key.

    Raises:
        Misuse: for a table, column or path that does not exist.
    """
    from wirekit.tables.checking import check_tables

    check_tables(protocol.name, protocol.declared, layouts(protocol, schemas.__getitem__))


def check_protocol(protocol: Protocol) -> None:
    """Refuses a protocol with an invalid name, type, port or pattern, or with a name of a layout that it lacks.

    Raises:
        Misuse: naming the protocol and the declaration.
    """
    _check_types(protocol)
    name = protocol.name
    if not re.fullmatch(r"[\w-]+", name):
        raise Misuse(f"{name!r} cannot be the name of a protocol; use letters, digits, _ and -")
    if not protocol.layouts:
        raise Misuse(f"{name}: declare at least one layout")
    for key, layout in protocol.layouts.items():
        if not re.fullmatch(r"\w+(\.\w+)*", key):
            raise Misuse(
                f"{name}: {key!r} cannot be the name of a layout; use words of letters, digits and _, joined by dots"
            )
        node: Any = layout.node  # callers may work without a type checker
        if not isinstance(node, Node) and not callable(node):
            kind = type(node)
            package = kind.__module__.partition(".")[0]
            type_name = kind.__name__ if package == "builtins" else f"{package}.{kind.__name__}"
            remedy = "write it with wirekit.wire" if kind is not construct.Renamed else "put the field in a Struct"
            raise Misuse(f"{name}.{key}: a layout of type {type_name} cannot be compiled; {remedy}")
    referred = [("client", protocol.client), ("server", protocol.server)]
    referred += [("recognised_by", key) for key in protocol.recognised_by]
    referred += [("records", key) for key in protocol.records]
    referred += [("variant_of", layout.variant_of) for layout in protocol.layouts.values()]
    places = {"dialogue": protocol.dialogue, "tables": protocol.tables}
    places |= {role: getattr(protocol, role) for role in ("pairing", "rules", "directory")}
    referred += [("stored_names", key) for key in protocol.stored_names]
    for role in ("stored", "stored_columns", "stored_walks", "stored_topics", "examined", "built"):
        referred += [(role, key) for key in getattr(protocol, role)]
        places |= {f"{role}[{key!r}]": place for key, place in getattr(protocol, role).items()}
    for role, key in referred:
        if key and key not in protocol.layouts:
            layouts = ", ".join(protocol.layouts)
            raise Misuse(f"{name}: {role} names {key!r}, which is not a layout; choose from {layouts}")
    for role, place in places.items():
        if place and isinstance(place, str) and place.count(":") != 1:
            raise Misuse(f"{name}: {role} must have the form module:name, not {place!r}")
    if protocol.pairing and protocol.dialogue == DIALOGUE:
        raise Misuse(
            f"{name}: a pairing needs a dialogue, which pairs the frames of all connections that columns do not read; "
            "name it in dialogue"
        )
    for beginning in protocol.beginnings:
        _check_beginning(protocol, beginning)
    for port in protocol.ports:
        if not 0 < port < 1 << 16:
            raise Misuse(f"{name}: a port must be in 1..65535, not {port}")
    for key, pattern in protocol.stored_names.items():
        try:
            re.compile(pattern)
        except re.error as error:
            raise Misuse(f"{name}: stored_names[{key!r}] is not a regular expression: {error}") from None


def _check_beginning(protocol: Protocol, beginning: Beginning) -> None:
    where = f"{protocol.name}: the beginning {beginning.title!r}"
    if not (beginning.starts and all(beginning.starts)):
        raise Misuse(f"{where} must have starts of at least one byte")
    if not beginning.header:
        return
    keys = list(map(protocol.key, protocol.layouts))
    if beginning.header not in keys:
        raise Misuse(f"{where} names {beginning.header!r}, which is not a key; choose from {', '.join(keys)}")
    if beginning.longest < max(map(len, beginning.starts)):
        raise Misuse(f"{where} must have the size of the longest header in longest, not {beginning.longest}")


def _check_types(protocol: Any) -> None:
    from wirekit.tables import Tables

    if not isinstance(protocol, Protocol):
        raise Misuse(f"register takes a wirekit.Protocol, not {protocol!r}")
    for name in ("pairing", "rules"):
        if not isinstance(place := getattr(protocol, name), str):
            kind = type(place).__name__
            raise Misuse(f"the protocol {protocol.name}: {name} must have the form module:name, not a {kind}")
    for name, hint in get_type_hints(Protocol, localns={"Dialogue": Any, "Tables": Tables}).items():
        refuse_unless_fit(f"the protocol {protocol.name}", name, getattr(protocol, name), hint)
