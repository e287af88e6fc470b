"""Kaitai Struct: one .ksy file for one layout.

A length that bounds the fields after it becomes a substream; if it covers several fields, they are in an attribute
``sized_by_X``. A number with symbols has its value in the attribute and the symbol in the instance ``X_symbol``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from wirekit.codings import TextCoding
from wirekit.compiler import ir
from wirekit.compiler.expressions import Context, Expression, Field, LengthOf, Literal, Operation
from wirekit.errors import Misuse
from wirekit.exports.missing import Export, Notes, unused
from wirekit.registry import registry
from wirekit.values import SymbolTable
from wirekit.wire.blobs import POSITION

Chain = tuple[str, ...]
"""The attributes that lead from the type at the top to another one."""
Entry = dict[str, Any]
COMPARING = ("==", "!=", "<", "<=", ">", ">=", "not ")
LOGICAL = {"&": "and", "|": "or"}


def export(keys: list[str]) -> Export:
    """The .ksy file of a layout.

    Raises:
        Misuse: for several keys, and for the name of a protocol.
    """
    if len(keys) != 1 or "." not in keys[0]:
        raise Misuse("a .ksy file holds one layout; pass one key, such as kafka.request")
    (key,) = keys
    schema = registry[key]
    writer = _Writer(key)
    top = writer.top(schema.layout)
    meta = {"id": identifier(key), "title": schema.description or key, "endian": "be", "encoding": "UTF-8"}
    if writer.params:
        top = {"params": [{"id": name, "type": kind, "doc": GIVEN} for name, kind in writer.params.items()], **top}
    document: Entry = {"meta": meta, "doc": f"{schema.source or key}", **top}
    if writer.types:
        document["types"] = writer.types
    if writer.tables:
        document["enums"] = {name: _enum(table) for name, table in writer.tables.items()}
    lines = [
        f"# {key} as a Kaitai Struct, written by `wirekit schemas {key} --output ksy`.",
        *writer.notes.lines("#"),
        *_yaml(document, 0),
    ]
    return Export("\n".join(lines) + "\n", list(writer.notes.missing))


def identifier(name: str) -> str:
    """A valid identifier of Kaitai Struct for a name.

    >>> identifier("kafka.produce.request.v2"), identifier("2PC")
    ('kafka_produce_request_v2', 'n_2pc')
    """
    plain = re.sub(r"\W", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)).lower().strip("_")
    return plain if plain[:1].isalpha() else f"n_{plain}"


def _enum(table: SymbolTable) -> dict[int, str]:
    names: dict[int, str] = {}
    for symbol in table:
        name = identifier(symbol.symbol or str(int(symbol)))
        names[int(symbol)] = f"{name}_{abs(int(symbol))}" if name in names.values() else name
    return names


def _yaml(value: Any, depth: int) -> Iterator[str]:
    indent = "  " * depth
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, item in items:
        head = f"{indent}{name}:" if isinstance(value, dict) else f"{indent}-"
        if isinstance(item, (dict, list)) and item:
            if isinstance(value, dict):
                yield head
                yield from _yaml(item, depth + 1)
            else:
                first, *others = _yaml(item, depth + 1)
                yield f"{head} {first.strip()}"
                yield from others
        else:
            yield f"{head} {json.dumps(item, ensure_ascii=False)}"


class NotExpressed(Exception):
    """A node that cannot be expressed in Kaitai Struct; the text names it."""


@dataclass(slots=True)
class _Place:
    """The place of a member of a structure: its type's chain, its attribute, and the attributes that must follow it."""

    chain: Chain
    name: str
    node: ir.Node
    read: bool = True


@dataclass(slots=True)
class _Type:
    """A type that is being written."""

    chain: Chain
    seq: list[Entry] = field(default_factory=list)
    instances: dict[str, Entry] = field(default_factory=dict)
    ended: bool = False

    def entry(self) -> Entry:
        entry: Entry = {"seq": self.seq}
        if self.instances:
            entry["instances"] = self.instances
        return entry


class _Writer:
    def __init__(self, key: str) -> None:
        self.key = key
        self.notes = Notes()
        self.types: dict[str, Entry] = {}
        self.tables: dict[str, SymbolTable] = {}
        self.params: dict[str, str] = {}
        self._shared: dict[int, tuple[ir.Node, str]] = {}
        self._closed: set[int] = set()  # layouts that others refer to by key
        self._endless: set[str] = set()  # types that take all bytes to the end
        self._scopes: list[dict[str, _Place]] = []
        self._path: list[str] = []

    def note(self, reason: str) -> None:
        self.notes.add(".".join((self.key, *self._path)), reason)

    def top(self, layout: ir.Node) -> Entry:
        kind = _Type(())
        if isinstance(layout, ir.Structure):
            self._members(layout, kind)
        else:
            self._member("value", layout, kind)
        return kind.entry()

    # Types.

    def _unique(self, name: str) -> str:
        unique = unused(identifier(name), self.types)
        self.types[unique] = {}
        return unique

    def type_of(self, node: ir.Node, name: str, chain: Chain, *, own: bool = False) -> str:
        """The name of the type of a node, which is at a chain of types; ``own``: never a type of Kaitai Struct."""
        if isinstance(node, ir.Number) and not own:
            return _number(node)
        if isinstance(node, ir.BitFields):
            return self._bits(node, name)
        closed = id(node) in self._closed or not ir.reads_outside(node)  # so the type can be used anywhere
        if closed and id(node) in self._shared:
            return self._shared[id(node)][1]
        title = node.name if isinstance(node, ir.Structure) and node.name != "Record" else name
        type_name = self._unique(title)
        scopes = self._scopes
        if closed:
            self._shared[id(node)] = node, type_name
            self._scopes, chain = [], ()
        kind = _Type(chain)
        if isinstance(node, ir.Structure):
            self._members(node, kind)
        else:
            self._member("value", node, kind)
        self._scopes = scopes
        self.types[type_name] = kind.entry()
        if kind.ended:
            self._endless.add(type_name)
        return type_name

    def _members(self, node: ir.Structure, kind: _Type) -> None:
        self._scopes = [*self._scopes, {}]
        self._range(node, 0, len(node.members) - 1, kind, ())
        self._scopes = self._scopes[:-1]
        for each in node.measures:
            if not each.is_limit:
                self.note("lengths that bound nothing are not verified")
        if node.sums:
            self.note(f"checksums ({', '.join(sorted({each.algorithm for each in node.sums}))}) are not verified")
        if node.derived:
            self.note("sizes and counts in a protobuf message are not verified")
        if node.refusals:
            self.note("values that peers refuse get no verdict")

    def _range(self, node: ir.Structure, first: int, last: int, kind: _Type, handled: tuple[ir.Measure, ...]) -> None:
        """A range of members, with those after a length in a substream."""
        index = first
        while index <= last:
            opening = [each for each in ir.opening(node, index) if each not in handled]
            if kind.ended:
                self.notes.add(f"{self.key}.{'.'.join((*self._path, node.members[index].name))}", BEHIND)
                self._scopes[-1][node.members[index].name] = _Place((), "", node, False)
                index += 1
            elif opening:
                self._sized(node, opening[0], index, kind, (*handled, opening[0]))
                index = opening[0].last + 1
            else:
                member = node.members[index]
                self._member(member.name, member.node, kind)
                index += 1

    def _sized(
        self, node: ir.Structure, measure: ir.Measure, index: int, kind: _Type, handled: tuple[ir.Measure, ...]
    ) -> None:
        length = node.members[measure.at].name
        try:
            number = self._expression(Field(0, (length,)), kind.chain)
        except NotExpressed:
            number = ""
        size = (
            f"{number} - {measure.add}" if measure.add > 0 else f"{number} + {-measure.add}" if measure.add else number
        )
        if measure.zero_is_rest:
            size = f"({number} == 0) ? (_io.size - _io.pos) : ({size})"
        if measure.clip:
            size = f"(_io.size - _io.pos < ({size})) ? (_io.size - _io.pos) : ({size})"
        inner = _Type(kind.chain)
        if measure.last == index and len([each for each in ir.opening(node, index) if each not in handled]) == 0:
            self._member(node.members[index].name, node.members[index].node, inner)
            if len(inner.seq) == 1 and not {"size", "repeat", "if"} & inner.seq[0].keys() and _is_type(inner.seq[0]):
                entry = inner.seq[0]
                entry.pop("size-eos", None)
                kind.seq.append({**entry, "size": size})
                kind.instances |= inner.instances
                return
        name = f"sized_by_{identifier(length)}"
        for member in node.members[index : measure.last + 1]:
            self._scopes[-1].pop(member.name, None)
        group = _Type((*kind.chain, name))
        self._range(node, index, measure.last, group, handled)
        group_type = self._unique(f"{node.name}_{name}")
        self.types[group_type] = group.entry()
        kind.seq.append({"id": name, "size": size, "type": group_type})

    # Members.

    def _member(self, name: str, node: ir.Node, kind: _Type) -> None:
        """The attributes of a member, added to the type."""
        self._path.append(name)
        plain = identifier(name)
        place = _Place(kind.chain, plain, node)
        if self._scopes:
            self._scopes[-1][name] = place
        before = dict(kind.instances), dict(self.types), dict(self.tables), dict(self._shared)
        try:
            entries = self._attributes(plain, node, kind)
            kind.seq += entries
            kind.ended = any("size" not in each and not self._endless.isdisjoint(_types(each)) for each in entries)
        except NotExpressed as error:
            kind.instances, self.types, self.tables, self._shared = before
            kind.seq.append({"id": plain, "size-eos": True})
            place.read, kind.ended = False, True
            self.note(f"{error}: the bytes to the end are one field")
        self._path.pop()

    def _attributes(self, name: str, node: ir.Node, kind: _Type) -> list[Entry]:
        match node:
            case ir.Number(unit=unit):
                return [{"id": name, "type": _number(node)} | ({"doc": f"since the epoch, {unit}"} if unit else {})]
            case ir.Boolean(number=inner):
                return [{**entry, "doc": "0 or not 0"} for entry in self._attributes(name, inner, kind)]
            case ir.Named(number=inner, table=table, closed=closed):
                if closed:
                    self.note("values without a name are accepted")
                kind.instances[f"{name}_symbol"] = {"value": name, "enum": self._table(table)}
                return self._attributes(name, inner, kind)
            case ir.BitFields():
                return [{"id": name, "type": self._bits(node, name)}]
            case ir.Blob(coding=TextCoding(name=coding, pad=pad)) if len(pad.encode(coding)) < 2:
                coded: Entry = {"type": "str", "encoding": ENCODINGS[coding]}
                coded |= {"pad-right": ord(pad)} if pad else {}
                self.note("text that is not in its encoding is an error")
                return [each | coded if each["id"] == name else each for each in self._blob(name, node, kind)]
            case ir.Blob():
                if node.coding is not None:
                    self.note("values of an encoding or a function are read as bytes")
                return self._blob(name, node, kind)
            case ir.Delimited(end=end, decimal=decimal):
                if len(end) != 1:
                    raise NotExpressed("text with a delimiter of several bytes")
                if decimal:
                    self.note("numbers in text are read as text")
                return [{"id": name, "type": "str", "terminator": end[0]}]
            case ir.Structure() | ir.Reference():
                return [{"id": name, "type": self._type(node, name, kind)}]
            case ir.Several():
                return self._several(name, node, kind)
            case ir.When(condition=condition, node=inner):
                return _with_condition(self._truth(condition, kind.chain), self._attributes(name, inner, kind))
            case ir.WhenNext(magic=b"", node=inner):
                return self._optional("not _io.eof", name, inner, kind)
            case ir.WhenNext(magic=magic, node=inner):
                kind.instances[f"next_{name}"] = {"pos": "_io.pos", "size": len(magic)}
                present = f"_io.size - _io.pos >= {len(magic)} and next_{name} == [{', '.join(map(str, magic))}]"
                return self._optional(present, name, inner, kind)
            case ir.Either(condition=condition, then=then, otherwise=otherwise):
                on = f"({self._truth(condition, kind.chain)}) ? 1 : 0"
                cases = {1: self._type(then, name, kind), 0: self._type(otherwise, name, kind)}
                return [{"id": name, "type": {"switch-on": on, "cases": cases}}]
            case ir.Choice():
                return self._choice(name, node, kind)
            case ir.Ahead(node=inner, at=at):
                self.note("fields of Lookahead are read when first accessed")
                ahead_type = self._unique(f"{name}_ahead")
                value = {"pos": f"_io.pos + {at}", "type": self._direct(inner, name)}
                self.types[ahead_type] = {"instances": {"value": value}}
                return [{"id": name, "type": ahead_type}]
            case ir.Bounded(length=length, node=inner, null=null):
                size = {"id": f"len_{name}", "type": _number(length)}
                entry = {"id": name, "size": f"len_{name}", "type": self._type(inner, name, kind, own=True)}
                return [size, *_unless(f"len_{name}", null, [entry])]
            case ir.Fallback(node=inner):
                self.note("bytes that do not decode are an error; wirekit keeps them as bytes")
                return self._attributes(name, inner, kind)
            case ir.Constant(node=inner, value=value, fatal=fatal):
                entries = self._attributes(name, inner, kind)
                if fatal and isinstance(value, Literal) and type(value.value) is int and len(entries) == 1:
                    entries[0]["valid"] = value.value
                else:
                    self.note("constants are not verified")
                return entries
            case ir.Optional(node=inner):
                return self._attributes(name, inner, kind)
            case ir.Packed(blob=blob, codecs=codecs):
                self.note(
                    f"compressed data is not decompressed ({', '.join(dict.fromkeys(codec for _, codec in codecs))})"
                )
                return self._attributes(name, blob, kind)
        raise NotExpressed("a protobuf message")

    def _optional(self, present: str, name: str, node: ir.Node, kind: _Type) -> list[Entry]:
        """A node whose presence depends on the position, so that the condition holds for its first attribute only."""
        before = dict(kind.instances)
        entries = self._attributes(name, node, kind)
        if len(entries) > 1:
            kind.instances = before
            entries = [{"id": name, "type": self._type(node, name, kind)}]
        return _with_condition(present, entries)

    def _type(self, node: ir.Node, name: str, kind: _Type, *, own: bool = False) -> str:
        if isinstance(node, ir.Reference):
            layout = registry[node.key].layout
            if id(layout) in self._shared or isinstance(layout, ir.Structure):
                self._closed.add(id(layout))
            return self.type_of(layout, node.key, ())
        return self.type_of(node, name, (*kind.chain, name), own=own)

    def _direct(self, node: ir.Node, name: str) -> str:
        """A type whose value is the value of the node, without an enclosing attribute."""
        while isinstance(node, (ir.Named, ir.Boolean)):
            node = node.number
        return self._bits(node, name) if isinstance(node, ir.BitFields) else self.type_of(node, name, ())

    def _table(self, table: SymbolTable) -> str:
        others = {name for name, other in self.tables.items() if other is not table}
        name = unused(identifier(table.name), others)
        self.tables[name] = table
        return name

    def _bits(self, node: ir.BitFields, name: str) -> str:
        if id(node) in self._shared:
            return self._shared[id(node)][1]
        bits_type = self._unique(f"{name}_bits")
        self._shared[id(node)] = node, bits_type
        instances: dict[str, Entry] = {}
        for each in node.fields:
            plain = identifier(each.name)
            instances[plain] = {"value": f"(bits >> {each.shift}) & {each.most}"}
            if each.table is not None:
                instances[f"{plain}_symbol"] = {"value": plain, "enum": self._table(each.table)}
        number = replace(node.number, signed=False)
        self.types[bits_type] = {"seq": [{"id": "bits", "type": _number(number)}], "instances": instances}
        return bits_type

    def _blob(self, name: str, node: ir.Blob, kind: _Type) -> list[Entry]:
        if node.sealed:
            self.note("encrypted data is read as cipher text")
        entry: Entry = {"id": name} | ({"type": "str"} if node.text else {})
        if node.text:
            self.notes.add(self.key, "text that is not UTF-8 is an error")
        if node.length is None:
            return [{**entry, "size-eos": True}]
        if isinstance(node.length, ir.Number):
            size = {"id": f"len_{name}", "type": _number(node.length)}
            return [size, *_unless(f"len_{name}", node.null, [{**entry, "size": f"len_{name}"}])]
        return [{**entry, "size": self._expression(node.length, kind.chain)}]

    def _several(self, name: str, node: ir.Several, kind: _Type) -> list[Entry]:
        if node.until:
            raise NotExpressed("a list that ends at certain bytes")
        if node.announced is not None:
            self.note("counts that are only compared are not verified")
        element: Entry = {"id": name, "type": self._type(node.element, name, kind)}
        if node.count is None:
            if node.stop:
                self.note("an incomplete last element is an error")
            return [{**element, "repeat": "eos"}]
        if isinstance(node.count, ir.Number):
            count = {"id": f"num_{name}", "type": _number(node.count)}
            repeated = {**element, "repeat": "expr", "repeat-expr": f"num_{name}"}
            return [count, *_unless(f"num_{name}", node.null, [repeated])]
        return [{**element, "repeat": "expr", "repeat-expr": self._expression(node.count, kind.chain)}]

    def _choice(self, name: str, node: ir.Choice, kind: _Type) -> list[Entry]:
        kinds = [{type(values[place]) for values, _ in node.cases} for place in range(len(node.on))]
        if any(not types <= {int, bool, str} for types in kinds):
            raise NotExpressed("a choice by an absent value")
        for expression, types in zip(node.on, kinds, strict=True):
            if isinstance(expression, Context):
                self.params[expression.name] = "str" if str in types else "s4"
        on = [self._expression(each, kind.chain) for each in node.on]
        texts = [str in types for types in kinds]
        cases: dict[Any, str] = {}
        if any(texts):
            joined = " + '.' + ".join(each if text else f"({each}).to_s" for each, text in zip(on, texts, strict=True))
            for values, case in node.cases:
                cases[json.dumps(json.dumps(".".join(map(str, values))))] = self._type(case, name, kind)
        else:
            joined = on[0]
            for each in on[1:]:
                joined = f"({joined}) * 65536 + {each}"
            for values, case in node.cases:
                number = 0
                for value in values:
                    number = number * 65536 + int(value)
                cases[number] = self._type(case, name, kind)
        entry: Entry = {"id": name}
        if node.otherwise is None:
            self.note("values without a case are accepted")
        elif isinstance(node.otherwise, ir.Blob) and node.otherwise.length is None and not node.otherwise.is_text:
            entry["size-eos"] = True
        else:
            cases["_"] = self._type(node.otherwise, name, kind)
        entry["type"] = {"switch-on": joined, "cases": cases}
        return [entry]

    # Expressions.

    def _truth(self, tree: Expression, chain: Chain) -> str:
        text = self._expression(tree, chain)
        return text if _logical(tree) else f"({text}) != 0"

    def _expression(self, tree: Expression, chain: Chain) -> str:
        match tree:
            case Literal(value=bool(value)):
                return "true" if value else "false"
            case Literal(value=int(value)):
                return str(value)
            case Literal(value=str(value)):
                return json.dumps(value)
            case Field(up=up, names=names):
                return self._field(up, names, chain)
            case Context(name=name):
                self.params.setdefault(name, "s4")
                return f"_root.{name}"
            case LengthOf(of=Field(up=up, names=names)):
                return f"{self._field(up, names, chain)}.{self._length_name(up, names)}"
            case Operation(symbol="not ", operands=(only,)):
                return f"not ({self._truth(only, chain)})"
            case Operation(symbol=symbol, operands=(only,)):
                return f"{symbol}({self._expression(only, chain)})"
            case Operation(symbol=symbol, operands=(left, right)):
                if symbol in LOGICAL and _logical(tree):
                    return f"({self._truth(left, chain)}) {LOGICAL[symbol]} ({self._truth(right, chain)})"
                both = self._expression(left, chain), self._expression(right, chain)
                return f"({both[0]} {symbol.replace('//', '/')} {both[1]})"
        raise NotExpressed(f"the expression {tree}")

    def _place(self, up: int, names: tuple[str, ...]) -> _Place:
        scope = self._scopes[-1 - up] if up < len(self._scopes) else {}
        place = scope.get(names[0])
        if names[0] == POSITION:
            raise NotExpressed("padding to a multiple of bytes")
        if place is None or not place.read:
            raise NotExpressed(f"{'.'.join(names)} is not read")
        return place

    def _field(self, up: int, names: tuple[str, ...], chain: Chain) -> str:
        place = self._place(up, names)
        _inside(place.node, names[1:])
        same = 0
        while same < min(len(chain), len(place.chain)) and chain[same] == place.chain[same]:
            same += 1
        steps = ["_parent"] * (len(chain) - same) + list(place.chain[same:]) + [place.name]
        if isinstance(place.node, ir.Ahead):
            steps.append("value")
        text = ".".join([*steps, *map(identifier, names[1:])])
        return f"{text}.to_i" if isinstance(place.node, ir.Delimited) and place.node.decimal else text

    def _length_name(self, up: int, names: tuple[str, ...]) -> str:
        return "size" if isinstance(self._place(up, names).node, ir.Several) else "length"


GIVEN = "context, passed by the caller; 0 or empty if there is none"
ENCODINGS = {
    "utf-8": "UTF-8",
    "ascii": "ASCII",
    "latin-1": "ISO-8859-1",
    "utf-16-le": "UTF-16LE",
    "utf-16-be": "UTF-16BE",
}
"""Kaitai Struct's names of encodings."""
BEHIND = "comes after a part that is not read"


def _number(node: ir.Number) -> str:
    if not node.is_packed:
        raise NotExpressed("a varint" if node.groups else f"an integer of {node.size} bytes")
    letter = "f" if node.real else "s" if node.signed else "u"
    return f"{letter}{node.size}" + ("" if node.size == 1 else "le" if node.little else "be")


def _types(entry: Entry) -> set[str]:
    """The types of an attribute."""
    kind = entry.get("type", "")
    return {kind} if isinstance(kind, str) else set(kind["cases"].values())


def _is_type(entry: Entry) -> bool:
    """Whether a substream can enclose it."""
    simple = isinstance(entry.get("type"), str) and re.fullmatch(r"[suf][1248](le|be)?", entry["type"])
    return not simple and "terminator" not in entry


def _inside(node: ir.Node, names: tuple[str, ...]) -> None:
    """Refuses names inside a node that have no path in Kaitai Struct."""
    while isinstance(node, (ir.Optional, ir.Constant, ir.Ahead, ir.When, ir.WhenNext)):
        node = node.node
    if not names:
        return
    if isinstance(node, ir.BitFields) and len(names) == 1:
        return
    if isinstance(node, ir.Structure) and not node.measures:
        _inside({member.name: member.node for member in node.members}[names[0]], names[1:])
        return
    raise NotExpressed(f"{'.'.join(names)} inside a {type(node).__name__.lower()}")


def _with_condition(condition: str, entries: list[Entry]) -> list[Entry]:
    return [{**each, "if": f"({condition}) and ({each['if']})" if "if" in each else condition} for each in entries]


def _unless(name: str, null: int | None, entries: list[Entry]) -> list[Entry]:
    return entries if null is None else _with_condition(f"{name} != {null}", entries)


def _logical(tree: Expression) -> bool:
    """Whether an expression is a boolean, not a number."""
    match tree:
        case Literal(value=value):
            return isinstance(value, bool)
        case Operation(symbol=symbol, operands=operands):
            return symbol in COMPARING or (symbol in LOGICAL and any(map(_logical, operands)))
    return False
