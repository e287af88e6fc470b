"""JSON Schema (2020-12) of the values that ``wirekit decode --output json`` prints and ``encode`` takes.

The schema describes the values of whole frames. Values of truncated frames, which lack fields, do not match it.
"""

from __future__ import annotations

import json
import re
from typing import Any

from wirekit.compiler import ir
from wirekit.exports.missing import Export, Notes, unused
from wirekit.registry import registry
from wirekit.values import EXTRAS, SymbolTable
from wirekit.wire.protobuf import BYTES, Field, Message

Schema = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
HEX: Schema = {"type": "string", "pattern": "^([0-9a-f]{2})*$"}
NOT_FINITE = ["nan", "inf", "-inf"]
BESIDE: Schema = {f"^\\$({'|'.join(EXTRAS)})$": {}}
NULL: Schema = {"type": "null"}


def export(keys: list[str]) -> Export:
    """The schema of one layout, or of any of several; the name of a protocol means the layouts of its streams."""
    notes = Notes()
    writer = _Writer(notes)
    names = []
    for key in keys:
        protocol = registry.protocol(key)
        streams = dict.fromkeys([protocol.client, protocol.server]) if "." not in key else {}
        names += [protocol.key(name) for name in streams if name] or [key]
    for name in names:
        notes.add(name, "conditions of alternatives and optional fields are left out")
        notes.add(name, "lengths, counts and checksums are not verified")
    document: Schema = {"$schema": DIALECT, "title": ", ".join(names)}
    references = [writer.layout(name) for name in names]
    document |= references[0] if len(references) == 1 else {"anyOf": references}
    missing = (f"{line.removeprefix('- ')}." for line in notes.lines("-")[1:])
    document["$comment"] = " ".join(["Not expressed:", *missing])
    document["$defs"] = writer.definitions
    return Export(json.dumps(document, indent=1, ensure_ascii=False) + "\n", list(notes.missing))


class _Writer:
    def __init__(self, notes: Notes) -> None:
        self.definitions: dict[str, Schema] = {}
        self._notes = notes
        self._known: dict[tuple[int, str], tuple[Any, str]] = {}
        self._layouts: dict[str, str] = {}

    def layout(self, key: str) -> Schema:
        """A reference to the definition of a layout."""
        if key not in self._layouts:
            self._layouts[key] = name = self._unique(key)
            self.definitions[name] = {"description": registry[key].description, **self._of(registry[key].layout)}
        return {"$ref": f"#/$defs/{self._layouts[key]}"}

    def _unique(self, name: str) -> str:
        unique = unused(re.sub(r"[^\w.]", "_", name), self.definitions)
        self.definitions[unique] = {}
        return unique

    def _shared(self, source: Any, name: str, define: Any) -> Schema:
        """A reference to the definition of a part that occurs in several places."""
        key = id(source), name
        if key not in self._known:
            self._known[key] = source, self._unique(name)
            self.definitions[self._known[key][1]] = define(source)
        return {"$ref": f"#/$defs/{self._known[key][1]}"}

    def _of(self, node: ir.Node) -> Schema:
        match node:
            case ir.Number(real=True):
                return {"anyOf": [{"type": "number"}, {"enum": NOT_FINITE}]}
            case ir.Number(low=low, high=high):
                return {"type": "integer", "minimum": low, "maximum": high}
            case ir.Boolean():
                return {"type": "boolean"}
            case ir.Named(number=number, table=table, closed=closed):
                return self._symbol(table, self._of(number), closed)
            case ir.BitFields(fields=fields):
                return self._object({each.name: self._bits(each) for each in fields})
            case ir.Blob(is_text=is_text, null=null, coding=coding):
                return _or_null({"type": "string"} if is_text else HEX if coding is None else {}, null is not None)
            case ir.Delimited(decimal=decimal):
                return {"type": "integer"} if decimal else {"type": "string"}
            case ir.Structure(name=name):
                return self._shared(node, name, self._structure)
            case ir.Several(element=element, null=null):
                return _or_null({"type": "array", "items": self._of(element)}, null is not None)
            case ir.Conditional(node=inner):
                return _or_null(self._of(inner), True)
            case ir.Alternatives(nodes=nodes):
                return _union([self._of(inner) for inner in nodes])
            case ir.Bounded(node=inner, null=null):
                return _or_null(self._of(inner), null is not None)
            case ir.Fallback(node=inner):
                return _union([self._of(inner), HEX])
            case ir.Reference(key=key):
                return self.layout(key)
            case ir.Ahead(node=inner) | ir.Qualified(node=inner):
                return self._of(inner)
            case ir.Packed(blob=blob, node=inner):
                unpacked = self._object({"compressed": self._of(blob), "content": self._of(inner)})
                keep = {"type": "array", "contains": {"const": "compressed"}}
                damaged = self._object({"compressed": self._of(blob), "content": {}, "$keep": keep})
                return _union([self._of(blob), unpacked, damaged])
            case ir.Protobuf(message=message):
                return self._message(Message.by_full_name[message])
        raise NotImplementedError(node)

    def _structure(self, node: ir.Structure) -> Schema:
        return self._object({member.name: self._of(member.node) for member in node.members})

    def _object(self, properties: dict[str, Schema], required: list[str] | None = None) -> Schema:
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties) if required is None else required,
            "patternProperties": BESIDE,
            "additionalProperties": False,
        }

    def _bits(self, each: ir.BitField) -> Schema:
        if each.table is None and each.width == 1:
            return {"type": "boolean"}
        number: Schema = {"type": "integer", "minimum": 0, "maximum": each.most}
        return number if each.table is None else self._symbol(each.table, number, False)

    def _symbol(self, table: SymbolTable, number: Schema, closed: bool) -> Schema:
        symbols: list[Schema] = [
            {"properties": {"value": {"const": int(each)}, "symbol": {"const": each.symbol}}} for each in table
        ]
        other: Schema = {"value": {"not": {"enum": [int(each) for each in table]}}, "symbol": NULL}
        unnamed = [] if closed else [{"properties": other}]
        return {
            "type": "object",
            "properties": {"value": number, "symbol": {"type": ["string", "null"]}},
            "required": ["value", "symbol"],
            "additionalProperties": False,
            **self._shared(
                table, f"{table.name}_only" if closed else table.name, lambda _: {"anyOf": symbols + unnamed}
            ),
        }

    def _message(self, message: Message) -> Schema:
        return self._shared(message, message.name, self._fields)

    def _fields(self, message: Message) -> Schema:
        properties = {}
        for each in message.fields.values():
            value = self._scalar(each)
            properties[each.name] = {"type": "array", "items": value} if each.repeated else value
        return self._object(properties, [])

    def _scalar(self, field: Field) -> Schema:
        if field.message is not None:
            return self._message(field.message)
        if field.table is not None:
            low, high = -(1 << 31), (1 << 31) - 1
            return self._symbol(field.table, {"type": "integer", "minimum": low, "maximum": high}, False)
        if field.kind in ("bool", "string"):
            return {"type": "boolean" if field.kind == "bool" else "string"}
        if field.wire_type == BYTES:
            return HEX
        if field.kind in ("double", "float"):
            return {"anyOf": [{"type": "number"}, {"enum": NOT_FINITE}]}
        return {"type": "integer", "minimum": field.low, "maximum": field.high}


def _or_null(schema: Schema, null: bool) -> Schema:
    return _union([schema, NULL]) if null else schema


def _union(schemas: list[Schema]) -> Schema:
    flat: list[Schema] = []
    for each in schemas:
        for one in each["anyOf"] if list(each) == ["anyOf"] else [each]:
            if one not in flat:
                flat.append(one)
    return flat[0] if len(flat) == 1 else {"anyOf": flat}
