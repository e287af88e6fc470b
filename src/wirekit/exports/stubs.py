"""Type stubs of decoded values, for type checkers: a class for each layout, with its fields.

``wirekit.types`` has the stubs of the built-in protocols, and a test compares them with the output of this module.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from pathlib import Path

from wirekit.compiler import ir
from wirekit.exports.missing import Export, Notes, layouts, unused
from wirekit.registry import BUILT_IN, WITHOUT_STREAM, registry
from wirekit.values import SymbolTable
from wirekit.wire.protobuf import BYTES, Field, Message

MOST_ALTERNATIVES = 8
"""The maximum number of layouts in the type of a field; more would not help a type checker."""

IGNORED = "  # type: ignore[assignment]"
"""Follows a field that hides a method of mappings, such as ``values``: the attribute of a record is the field."""

HEADING = '''"""Values of the layouts of {names}, written by `wirekit schemas {names} --output pyi`."""

from typing import Any, Generic, TypeVar

from wirekit.types import Fields
from wirekit.values import Symbol

_Content = TypeVar("_Content")

class _Opened(Fields, Generic[_Content]):
    """Compressed data: the bytes and their content."""

    compressed: bytes
    content: _Content
'''


DECODING_HEADING = '''"""``wirekit.decode`` for type checkers, written by `python -m wirekit.exports.stubs`."""

from collections.abc import Mapping
from typing import Any, Generic, Literal, TypedDict, TypeVar, overload

from typing_extensions import Unpack

from wirekit.engine import Buffer, Decoded
from wirekit.types import {names}
from wirekit.wire.stream import Decrypt, Limits

_Value = TypeVar("_Value")

class Typed(Decoded, Generic[_Value]):
    value: _Value

class Options(TypedDict, total=False):
    context: Mapping[str, Any] | None
    limits: Limits | None
    strict: bool
    offset: int
    engine: str | None
    decrypt: Decrypt | None

'''
DECODING = """@overload
def decode(data: {data}, key: {key}, **options: Unpack[Options]) -> {decoded}: ...
"""
TYPES = Path(__file__).parents[1] / "types"
"""The stubs of the built-in protocols."""
TYPED = tuple(name for name in BUILT_IN if name not in WITHOUT_STREAM)


def decoding(protocols: tuple[str, ...] = TYPED) -> str:
    """The stub of ``wirekit.decode``: an overload for each key of the protocols."""
    text = DECODING_HEADING.format(names=", ".join(sorted(protocols)))
    for name in protocols:
        protocol = registry.protocol(name)
        keys = {protocol.key(layout): protocol.key(layout) for layout in protocol.layouts}
        for key, target in {name: protocol.stream("client"), **keys}.items():
            value = f"{name}.{class_name(target)}"
            literal = f'Literal["{key}"]'
            text += DECODING.format(data="Buffer", key=literal, decoded=f"Typed[{value}]")
    return text + DECODING.format(data="Buffer | str", key="Buffer | str", decoded="Decoded")


def write() -> None:
    """Writes the stubs of ``wirekit.types``."""
    for name in TYPED:
        (TYPES / f"{name}.pyi").write_text(export([name]).text)
    (TYPES / "decoding.pyi").write_text(decoding())


def export(keys: list[str]) -> Export:
    """The stubs of layouts; the name of a protocol means all of its layouts."""
    notes = Notes()
    writer = _Writer(notes)
    for key in keys:
        for name in layouts(key):
            writer.layout(name)
    lines = notes.lines("#") if notes.missing else []
    text = HEADING.format(names=" ".join(keys)) + "".join(writer.classes.values())
    return Export(text + "".join(f"{line}\n" for line in ["", *lines] if lines), list(notes.missing))


def class_name(key: str) -> str:
    """The name of the class of a layout.

    >>> class_name("kafka.produce.request.v2"), class_name("pulsar.frame")
    ('ProduceRequestV2', 'Frame')
    """
    parts = re.split(r"[._]", key.partition(".")[2])
    return "".join(part[:1].upper() + part[1:] for part in parts)


class _Writer:
    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self.classes: dict[str, str] = {}
        self._messages: dict[str, str] = {}
        self._bodies: dict[str, str] = {}
        self._keys: dict[str, str] = {}
        self._place = ""  # the class and the fields that lead to the current node
        self._path = ""  # the same place, as a path that begins with the key

    def layout(self, key: str) -> str:
        """The name of the class, or of the type, of a layout."""
        if key not in self._keys:
            self._keys[key] = name = class_name(key)
            layout = registry[key].layout
            self.classes[name] = ""
            outside, self._place = self._place, name
            path, self._path = self._path, key
            if isinstance(layout, (ir.Structure, ir.BitFields)):
                self._class(name, self._fields(layout), registry[key].description)
            else:
                self.classes[name] = f"\n{name} = {self._of(layout)}\n"
            self._place, self._path = outside, path
        return self._keys[key]

    def _fields(self, layout: ir.Structure | ir.BitFields) -> dict[str, str]:
        if isinstance(layout, ir.BitFields):
            return self._attributes(self._path, {each.name: self._bits(each) for each in layout.fields})
        outside, path, fields = self._place, self._path, {}
        for member in layout.members:
            self._place, self._path = f"{outside}_{member.name}", f"{path}.{member.name}"
            fields[member.name] = self._of(member.node)
        self._place, self._path = outside, path
        return self._attributes(path, fields)

    def _attributes(self, path: str, fields: dict[str, str]) -> dict[str, str]:
        """The fields that can be attributes."""
        for name in [name for name in fields if not name.isidentifier() or keyword.iskeyword(name)]:
            self._notes.add(f"{path}.{name}", "fields named like Python keywords are not attributes; use value[name]")
            del fields[name]
        return fields

    def _class(self, name: str, fields: dict[str, str], text: str = "") -> None:
        plain = text.replace("\\", "\\\\").replace('"', '\\"')
        lead = f'    """{plain}"""\n\n' if text else ""
        self.classes[name] = f"\nclass {name}(Fields):\n{lead}{_body(fields)}"

    def _inner(self, fields: dict[str, str]) -> str:
        """The name of an inner class; classes with the same fields share one."""
        body = _body(fields)
        if body not in self._bodies:
            self._bodies[body] = name = unused(f"_{re.sub(r'[^0-9A-Za-z_]', '_', self._place)}", self.classes, "")
            self._class(name, fields)
        return self._bodies[body]

    def _of(self, node: ir.Node) -> str:
        match node:
            case ir.Number(real=real):
                return "float" if real else "int"
            case ir.Boolean():
                return "bool"
            case ir.Named():
                return "Symbol"
            case ir.BitFields():
                return self._inner(self._fields(node))
            case ir.Blob(is_text=is_text, null=null, coding=coding):
                return _or_none("str" if is_text else "bytes" if coding is None else "Any", null is not None)
            case ir.Delimited(decimal=decimal):
                return "int" if decimal else "str"
            case ir.Structure():
                return self._inner(self._fields(node))
            case ir.Several(element=element, null=null):
                return _or_none(f"list[{self._of(element)}]", null is not None)
            case ir.Conditional(node=inner):
                return _or_none(self._of(inner), True)
            case ir.Alternatives(nodes=nodes):
                return _union([self._of(inner) for inner in nodes])
            case ir.Bounded(node=inner, null=null):
                return _or_none(self._of(inner), null is not None)
            case ir.Fallback(node=inner):
                return _union([self._of(inner), "bytes"])
            case ir.Reference(key=key):
                return self.layout(key)
            case ir.Ahead(node=inner) | ir.Qualified(node=inner):
                return self._of(inner)
            case ir.Packed(blob=blob, node=inner):
                return _union([self._of(blob), f"_Opened[{self._of(inner)}]"])
            case ir.Protobuf(message=message):
                return self._message(Message.by_full_name[message])
        raise NotImplementedError(node)

    def _bits(self, each: ir.BitField) -> str:
        if each.table is not None:
            return "Symbol"
        return "bool" if each.width == 1 else "int"

    def _message(self, message: Message) -> str:
        """The class of a protobuf message, which may contain itself."""
        if message.name not in self._messages:
            self._messages[message.name] = name = f"_{message.name.rpartition('.')[2]}"
            self.classes[name] = ""
            fields = {each.name: self._field(each) for each in message.fields.values()}
            self._class(name, self._attributes(message.name, fields))
        return self._messages[message.name]

    def _field(self, field: Field) -> str:
        table: SymbolTable | None = field.table
        if field.message is not None:
            kind = self._message(field.message)
        elif table is not None:
            kind = "Symbol"
        elif field.kind in ("bool", "string"):
            kind = "bool" if field.kind == "bool" else "str"
        elif field.wire_type == BYTES:
            kind = "bytes"
        else:
            kind = "float" if field.kind in ("double", "float") else "int"
        return f"list[{kind}]" if field.repeated else kind if field.required else f"{kind} | None"


def _body(fields: dict[str, str]) -> str:
    lines = [f"    {field}: {kind}" + IGNORED * hasattr(Mapping, field) for field, kind in fields.items()]
    return "\n".join(lines or ["    ..."]) + "\n"


def _or_none(kind: str, null: bool) -> str:
    return _union([kind, "None"]) if null else kind


def _union(kinds: list[str]) -> str:
    """A union of several types, ``None`` last."""
    flat = dict.fromkeys(part for kind in kinds for part in _alternatives(kind))
    known = [part for part in flat if part != "None"] + [part for part in flat if part == "None"]
    return "Any" if "Any" in known or len(known) > MOST_ALTERNATIVES else " | ".join(known)


def _alternatives(union: str) -> list[str]:
    """The types of a union; one within brackets is part of the type around it."""
    parts: list[str] = []
    for part in union.split(" | "):
        if parts and parts[-1].count("[") > parts[-1].count("]"):
            parts[-1] += f" | {part}"
        else:
            parts.append(part)
    return parts


if __name__ == "__main__":
    write()
