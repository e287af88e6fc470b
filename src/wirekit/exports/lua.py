"""A Wireshark dissector in Lua, composed of the nodes of ``dissector.lua``, which is copied to its beginning.

For the name of a protocol it dissects the protocol's TCP streams: the frame length of the layout delimits frames, and
the protocol's ``Pairing`` selects the layout of responses. For a key it dissects one frame of that layout.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import resources
from typing import Any

from wirekit.codings import TextCoding
from wirekit.compiler import ir
from wirekit.compiler.expressions import Context, Expression, Field, LengthOf, Literal, Operation
from wirekit.conversation.pairing import Heads, Kind, Pairing, pairing_of
from wirekit.errors import Misuse
from wirekit.exports.missing import Export, Notes
from wirekit.registry import Protocol, Schema, registry
from wirekit.values import SymbolTable
from wirekit.varints import SLEB, VLQ, ZIGZAG, FirstByteForm
from wirekit.wire.composite import Struct
from wirekit.wire.protobuf import Message

CHECKSUMS = ("crc32", "crc32c")
CODECS = ("gzip", "zlib", "snappy", "kafka-snappy", "lz4-block", "kafka-lz4", "kafka-lz4-v0")


def export(keys: list[str]) -> Export:
    """The dissector of a protocol or of a layout.

    Raises:
        Misuse: for several keys.
    """
    if len(keys) != 1:
        raise Misuse("a dissector covers one protocol or one layout; pass one key")
    (key,) = keys
    writer = _Writer(key)
    tail = writer.streams(registry.protocol(key)) if "." not in key else writer.layout_alone()
    runtime = resources.files("wirekit.exports").joinpath("dissector.lua").read_text(encoding="utf-8")
    lines = [
        f"-- A Wireshark dissector of {key}, written by `wirekit schemas {key} --output lua`.",
        f"-- Load it with `tshark -X lua_script:FILE`; its fields begin with {writer.prefix}.",
        *writer.notes.lines("--"),
        "",
        runtime,
        *writer.head(),
        *writer.lines,
        *tail,
    ]
    return Export("\n".join(lines) + "\n", list(writer.notes.missing))


def text(value: str | bytes) -> str:
    """A string of Lua."""
    data = value.encode(errors="surrogateescape") if isinstance(value, str) else value
    plain = (chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03d}" for byte in data)
    return f'"{"".join(plain)}"'


def boolean(value: object) -> str:
    return "true" if value else "false"


class _Writer:
    def __init__(self, key: str) -> None:
        self.key = key
        self.prefix = f"wirekit_{key.replace('.', '_')}"
        self.notes = Notes()
        self.lines: list[str] = []
        self._fields: dict[tuple[str, str, str], int] = {}
        own = {"api": "string", "request_in": "framenum", "latency_ms": "double", "problem": "", "bad_checksum": ""}
        self._types = {self.prefix: "protocol", **{f"{self.prefix}.{name}": kind for name, kind in own.items()}}
        self._declared: list[str] = []
        self._tables: dict[int, tuple[SymbolTable, int]] = {}
        self._nodes: dict[tuple[int, str, bool], tuple[Any, int]] = {}
        self._references: dict[str, int] = {}
        self._messages: dict[str, int] = {}
        self._count = 0

    # The declarations before the nodes.

    def head(self) -> list[str]:
        lines = [
            f"local proto = Proto({text(self.prefix)}, {text('wirekit ' + self.key)})",
            "local T, F, N = {}, {}, {}",
        ]
        for table, index in self._tables.values():
            symbols = ", ".join(f"[{int(each)}] = {text(each.symbol or '')}" for each in table)
            lines.append(f"T[{index}] = {{ {symbols} }}")
        lines += self._declared
        names = ("problem", "bad_checksum")
        lines += [
            f'local {name} = ProtoExpert.new({text(f"{self.prefix}.{name}")}, "{title}", expert.group.MALFORMED, '
            "expert.severity.ERROR)"
            for name, title in zip(names, ("Not decoded", "Bad checksum"), strict=True)
        ]
        lines += [
            f'local api = ProtoField.string({text(f"{self.prefix}.api")}, "API")',
            f'local request_in = ProtoField.framenum({text(f"{self.prefix}.request_in")}, "Request in")',
            f'local latency = ProtoField.double({text(f"{self.prefix}.latency_ms")}, "Milliseconds since the request")',
            "do",
            "  local fields = { api, request_in, latency }",
            "  for _, each in ipairs(F) do fields[#fields + 1] = each end",
            "  proto.fields = fields",
            "  proto.experts = { problem, bad_checksum }",
            "end",
        ]
        return lines

    def field(
        self, path: str, name: str, kind: str, *, base: str = "", table: SymbolTable | None = None, mask: int = 0
    ) -> str:
        """The ProtoField of a path."""
        full = ".".join(part for part in (self.prefix, *path.replace("$", "_").split(".")) if part)
        if self._types.setdefault(full, kind) != kind:
            full = f"{full}__{kind}"
            self._types[full] = kind
        strings = f"T[{self._table(table)}]" if table is not None else "nil"
        arguments = ""
        if kind.startswith(("int", "uint")):
            arguments = f", base.{base or 'DEC'}, {strings}" + (f", 0x{mask:x}" if mask else "")
        line = f"ProtoField.{kind}({text(full)}, {text(name)}{arguments})"
        number = self._fields.get((full, kind, line))
        if number is None:
            number = self._fields[full, kind, line] = len(self._fields) + 1
            self._declared.append(f"F[{number}] = {line}")
        return f"F[{number}]"

    def _table(self, table: SymbolTable) -> int:
        return self._tables.setdefault(id(table), (table, len(self._tables) + 1))[1]

    # Expressions.

    def function(self, tree: Expression) -> str:
        return f"function(s, scope) return {self.expression(tree)} end"

    def expression(self, tree: Expression) -> str:
        match tree:
            case Literal(value=None):
                return "nil"
            case Literal(value=bool(value)):
                return boolean(value)
            case Literal(value=str(value) | bytes(value)):
                return text(value)
            case Literal(value=value):
                if isinstance(value, int) and abs(value) > 1 << 53:
                    self.notes.add(self.key, "numbers of more than 53 bits are compared by their first 53 bits")
                return str(value)
            case Field(up=up, names=names):
                return f"get(scope, {up}, {', '.join(text(name) for name in names)})"
            case Context(name=name):
                return f"s.context[{text(name)}]"
            case LengthOf(of=Field(up=up, names=names) as of):
                is_text = self.expression(Field(up, (*names[:-1], f"{names[-1]} is text")))
                return f"length_of({self.expression(of)}, {is_text})"
            case LengthOf(of=of):
                return f"length_of({self.expression(of)})"
            case Operation(symbol=symbol, operands=operands):
                return f"operators[{text(symbol)}]({', '.join(map(self.expression, operands))})"
        raise Misuse(f"{tree} cannot be expressed in Lua")

    # Nodes.

    def node(self, node: ir.Node, path: str, *, element: bool = False) -> str:
        """The node at a path; ``element`` if it is an element of a list."""
        memo = (id(node), path, element)
        if memo not in self._nodes:
            call = self._call(node, path, _title(path), element)
            self._count += 1
            self._nodes[memo] = node, self._count
            self.lines.append(f"N[{self._count}] = {call}")
        return f"N[{self._nodes[memo][1]}]"

    def _call(self, node: ir.Node, path: str, name: str, element: bool) -> str:
        match node:
            case ir.Number():
                return self._number(node, path, name)
            case ir.Boolean(number=inner):
                return f"flag({self.node(inner, path)})"
            case ir.Named(number=number, table=table, closed=closed):
                call = self._number(number, path, name, table)
                return f"closed({call}, T[{self._table(table)}])" if closed else call
            case ir.BitFields(number=number, fields=fields):
                return self._bits(number, fields, path, name)
            case ir.Blob(coding=TextCoding(name="utf-8" | "ascii", pad=pad)):
                call = self._blob(replace(node, text=True), path, name)
                return f"padded({call}, {text(pad)})" if pad else call
            case ir.Blob():
                if node.coding is not None:
                    self.notes.add(f"{self.key}.{path}", "values of an encoding or a function are shown as bytes")
                return self._blob(node, path, name)
            case ir.Delimited(end=end, decimal=decimal):
                return f"delimited({self.field(path, name, 'string')}, {text(end)}, {boolean(decimal)})"
            case ir.Structure():
                return self._structure(node, path, name, element)
            case ir.Several():
                return self._several(node, path, name)
            case ir.When(condition=condition, node=inner):
                return f"when({self.function(condition)}, {self.node(inner, path, element=element)})"
            case ir.WhenNext(magic=b"", node=inner):
                return f"when_more({self.node(inner, path, element=element)})"
            case ir.WhenNext(magic=magic, node=inner):
                return f"when_next({text(magic)}, {self.node(inner, path, element=element)})"
            case ir.Either(condition=condition, then=then, otherwise=otherwise):
                both = f"{self.node(then, path, element=element)}, {self.node(otherwise, path, element=element)}"
                return f"either({self.function(condition)}, {both})"
            case ir.Choice():
                return self._choice(node, path, element)
            case ir.Ahead(node=inner, at=at):
                return f"ahead({self.node(inner, path)}, {at})"
            case ir.Bounded(length=length, node=inner, null=null):
                size = self.node(length, f"{path}.$length")
                return f"bounded({size}, {self.node(inner, path, element=element)}, {text(name)}, {_null(null)})"
            case ir.Fallback(node=inner):
                bytes_field = self.field(path, name, "bytes")
                return f"fallback({self.node(inner, path, element=element)}, blob({bytes_field}, {text(name)}, false))"
            case ir.Reference(key=key):
                return self._reference(key, path, element)
            case ir.Constant(node=inner, value=value, fatal=fatal):
                return f"constant({self.node(inner, path)}, {self.function(value)}, {boolean(fatal)})"
            case ir.Optional(node=inner):
                return self.node(inner, path, element=element)
            case ir.Packed():
                return self._packed(node, path, name)
            case ir.Protobuf(message=message):
                return self._protobuf(Message.by_full_name[message], path, name)
        raise Misuse(f"{self.key}: {path}: a {type(node).__name__} cannot be expressed in Lua")

    def _number(self, node: ir.Number, path: str, name: str, table: SymbolTable | None = None, base: str = "") -> str:
        bits = 8 * node.size if node.size in (1, 2, 3, 4) else 64
        kind = ("double" if bits == 64 else "float") if node.real else f"{'' if node.signed else 'u'}int{bits}"
        if table is not None and any(abs(symbol) > 1 << 53 for symbol in table):
            self.notes.add(f"{self.key}.{path}", "names of values of more than 53 bits are not shown")
        field = self.field(path, name, kind, table=table, base=base)
        if node.form is not None:
            kind = {ZIGZAG: "sint", SLEB: "int"}.get(node.form.kind, "uint") + str(bits)
            if isinstance(node.form, FirstByteForm):
                heads = ", ".join(f"{{ {low}, {high}, {size} }}" for low, high, size in node.form.heads)
                return f"first_byte_number({field}, {text(kind)}, {{ {heads} }}, {boolean(node.form.little)})"
            return f"varint_number({field}, {text(kind)}, {node.groups}, {boolean(node.form.kind == VLQ)})"
        if not node.is_packed:
            return f"odd_number({field}, {node.size}, {boolean(node.signed)}, {boolean(node.little)})"
        return f"number({field}, {node.size}, {boolean(node.signed)}, {boolean(node.real)}, {boolean(node.little)})"

    def _bits(self, number: ir.Number, fields: tuple[ir.BitField, ...], path: str, name: str) -> str:
        parts = []
        for each in fields:
            kind = f"uint{8 if each.width <= 8 else 16 if each.width <= 16 else 32 if each.width <= 32 else 64}"
            field = self.field(f"{path}.{each.name}", each.name, kind, table=each.table)
            parts.append(f"{{ {text(each.name)}, {each.width}, {each.shift}, {field} }}")
        read = f"{self.field(path, name, 'none')}, {number.size}, {boolean(number.little)}"
        return f"bit_fields({read}, {{ {', '.join(parts)} }})"

    def _blob(self, node: ir.Blob, path: str, name: str, field: str = "") -> str:
        field = field or self.field(path, name, "string" if node.text else "bytes")
        if node.sealed:
            self.notes.add(f"{self.key}.{path}", "encrypted data is shown as cipher text")
        is_utf8 = node.text and (node.coding is None or node.coding.name == "utf-8")
        arguments = f"{field}, {text(name)}, {boolean(is_utf8)}"
        if isinstance(node.length, ir.Number):
            arguments += f", {self.node(node.length, f'{path}.$length')}, false, {_null(node.null)}"
        elif node.length is not None:
            arguments += f", {self.function(node.length)}, true, {_null(node.null)}"
        return f"blob({arguments})"

    def _structure(self, node: ir.Structure, path: str, name: str, element: bool) -> str:
        sums_at = {each.at for each in node.sums}
        members = []
        for index, member in enumerate(node.members):
            inner = ir.inner_path(path, member.name)
            plain = member.node
            if index in sums_at and isinstance(plain, ir.Number) and not plain.real:
                call = self._number(plain, inner, member.name, base="HEX" if not plain.signed else "DEC")
                members.append(f"{{ {text(member.name)}, {call} }}")
            else:
                members.append(f"{{ {text(member.name)}, {self.node(plain, inner)} }}")
        measures = [
            f"{{ at = {each.at + 1}, first = {each.first + 1}, last = {each.last + 1}, add = {each.add}, "
            f"zero_is_rest = {boolean(each.zero_is_rest)}, "
            f"clip = {boolean(each.clip)}, bounds = {boolean(each.bounds)} }}"
            for each in sorted(node.measures, key=lambda each: (-each.last, each.at))
        ]
        for each in node.measures:
            if not each.is_limit:
                self.notes.add(f"{self.key}.{path}", "lengths that bound nothing are shown, not verified")
        sums = [self._sum(each, node, path) for each in node.sums]
        for _ in node.derived:
            self.notes.add(f"{self.key}.{path}", "sizes and counts in a protobuf message are shown, not verified")
        if node.refusals:
            self.notes.add(f"{self.key}.{path}", "values that peers refuse are shown without a verdict")
        own = "false" if not path else text("[]") if element else self.field(path, name, "none")
        lists = (members, measures, [each for each in sums if each])
        return f"structure({own}, {', '.join('{ ' + ', '.join(each) + ' }' for each in lists)})"

    def _sum(self, each: ir.Sum, node: ir.Structure, path: str) -> str:
        name = node.members[each.at].name
        where = ir.inner_path(path, name)
        if each.algorithm not in CHECKSUMS:
            self.notes.add(f"{self.key}.{where}", f"the checksum {each.algorithm} is shown, not verified")
            return ""
        content = "nil"
        if each.content:
            content = str(ir.length_in_front(node.members[each.first].node))
        ok = self.field(f"{where}.$ok", f"{name} is correct", "bool")
        return (
            f"{{ at = {each.at + 1}, first = {each.first + 1}, last = {each.last + 1}, "
            f"algorithm = {text(each.algorithm)}, content = {content}, field = {ok} }}"
        )

    def _several(self, node: ir.Several, path: str, name: str) -> str:
        is_free = isinstance(node.element, (ir.Structure, ir.Reference))  # no field of the elements has the path
        field = self.field(path if is_free else f"{path}.$list", name, "none")
        element = self.node(node.element, path, element=True)
        count, computed = "nil", False
        if isinstance(node.count, ir.Number):
            count = self.node(node.count, f"{path}.$count")
        elif node.count is not None:
            count, computed = self.function(node.count), True
        if node.announced is not None:
            self.notes.add(f"{self.key}.{path}", "counts that are only compared are shown, not verified")
        until = text(node.until) if node.until else "nil"
        return (
            f"several({field}, {text(name)}, {element}, {count}, {boolean(computed)}, {_null(node.null)}, "
            f"{boolean(node.stop)}, {until}, {boolean(node.except_first)})"
        )

    def _choice(self, node: ir.Choice, path: str, element: bool) -> str:
        on = ", ".join(map(self.function, node.on))
        cases = []
        for values, case in node.cases:
            shown = ", ".join("NONE" if value is None else self.expression(Literal(value)) for value in values)
            cases.append(f"{{ {{ {shown} }}, {self.node(case, path, element=element)} }}")
        otherwise = "nil" if node.otherwise is None else self.node(node.otherwise, path, element=element)
        return f"choice({{ {on} }}, {{ {', '.join(cases)} }}, {otherwise})"

    def _reference(self, key: str, path: str, element: bool) -> str:
        """Another layout: in full at its first occurrence; inside itself, a reference to the same node."""
        if key not in self._references:
            self._count += 1
            self._references[key] = index = self._count
            inner = self.node(registry[key].layout, path, element=element)
            del self._references[key]
            self.lines.append(f"N[{index}] = {inner}")
            return f"reference(N, {index})"
        return f"reference(N, {self._references[key]})"

    def _packed(self, node: ir.Packed, path: str, name: str) -> str:
        cases = []
        for values, codec in node.codecs:
            if codec not in CODECS:
                self.notes.add(f"{self.key}.{path}", f"data compressed by {codec} is shown compressed")
            shown = ", ".join("NONE" if value is None else self.expression(Literal(value)) for value in values)
            cases.append(f"{{ {{ {shown} }}, {text(codec)} }}")
        unpacked = self.field(f"{path}.$content", f"{name}, decompressed", "none")
        content = self.node(node.node, f"{path}.content")
        on = ", ".join(map(self.function, node.on))
        compressed = self._blob(node.blob, path, name, self.field(f"{path}.compressed", name, "bytes"))
        plain = self.node(node.blob, path)
        return f"packed({unpacked}, {plain}, {compressed}, {{ {on} }}, {{ {', '.join(cases)} }}, {content})"

    def _protobuf(self, message: Message, path: str, name: str) -> str:
        fields = []
        declared = self._messages.get(message.name)
        if declared is not None:
            return f"reference(N, {declared})"
        self._count += 1
        self._messages[message.name] = index = self._count
        for number, each in message.fields.items():
            where = ir.inner_path(path, each.name)
            parts = [f"name = {text(each.name)}", f"kind = {text(each.kind)}", f"repeated = {boolean(each.repeated)}"]
            if each.message is not None:
                inner = self._inside(each.message, where, each.name)
                parts.append(f"node = function() return {inner} end")
            else:
                kind = _PROTOBUF.get(each.kind, each.kind)
                parts.append(f"field = {self.field(where, each.name, kind, table=each.table)}")
            fields.append(f"[{number}] = {{ {', '.join(parts)} }}")
        del self._messages[message.name]
        own = "false" if not path else self.field(path, name, "none")
        self.lines.append(f"N[{index}] = protobuf({own}, {{ {', '.join(fields)} }})")
        return f"N[{index}]"

    def _inside(self, message: Message, path: str, name: str) -> str:
        if message.name in self._messages:
            return f"N[{self._messages[message.name]}]"
        memo = (id(message), path, False)
        if memo not in self._nodes:
            call = self._protobuf(message, path, name)
            self._nodes[memo] = message, int(call[2:-1])
        return f"N[{self._nodes[memo][1]}]"

    # Streams.

    def layout_alone(self) -> list[str]:
        schema = registry[self.key]
        node = self.node(schema.layout, "")
        return self._end({"client": node, "server": node}, self._framing(schema), None, (), schema.limits.frame)

    def streams(self, protocol: Protocol) -> list[str]:
        if not protocol.client:
            raise Misuse(
                f"{protocol.name} has no byte stream; pass one of the keys that `wirekit schemas {protocol.name}` lists"
            )
        sides = {side: registry[protocol.stream(side)] for side in ("client", "server")}
        nodes = {"client": self.node(sides["client"].layout, protocol.client)}
        nodes["server"] = self.node(sides["server"].layout, protocol.server)
        client, server = map(self._framing, sides.values())
        framing = None
        if client is not None and server is not None:
            if client[:3] == server[:3]:
                framing = (*client[:3], min(client[3], server[3]))
            else:
                self.notes.add(self.key, "the two sides have different frame lengths: a segment is read as one frame")
        pairing = self._pairing(protocol)
        self.notes.add(self.key, "protocol rules, and facts that only a dialogue knows, are not checked")
        return self._end(nodes, framing, pairing, protocol.ports, protocol.limits.frame)

    def _framing(self, schema: Schema) -> tuple[ir.Number, int, int, int] | None:
        """(the length, its place, the number to add for the size of the frame, the minimal size)."""
        layout, sized_by = schema.layout, schema.node.sized_by if isinstance(schema.node, Struct) else {}
        if isinstance(layout, ir.Structure) and sized_by:
            at, other_size = next(iter(sized_by.items()))
            each = next(each for each in layout.measures if each.at == at)
            length, sizes = layout.members[at].node, [ir.fixed_size(member.node) for member in layout.members[:at]]
            fixed = None not in sizes and not (each.zero_is_rest or each.exceeds)
            if fixed and isinstance(length, ir.Number) and (length.is_packed or length.size == 3):
                place = sum(filter(None, sizes))
                return length, place, place + length.size + other_size - each.add, ir.minimum(layout)
        self.notes.add(self.key, "the layout has no frame length at a fixed place: a segment is read as one frame")
        return None

    def _pairing(self, protocol: Protocol) -> Pairing | None:
        pairing = pairing_of(protocol.name)
        if pairing is None:
            self.notes.add(protocol.name, "responses are not paired with requests: no Pairing is declared")
            return None
        lines = []
        for side, stream in (("client", protocol.client), ("server", protocol.server)):
            lines += self._heads(protocol, side, pairing.heads(side), stream)
        self.lines += ["local pairing = {}", *lines]
        return pairing

    def _heads(self, protocol: Protocol, side: str, heads: Heads, stream: str) -> list[str]:
        before, self.notes = self.notes, Notes()  # parts missing in heads are reported for the frames as well
        node = self.node(registry[protocol.key(heads.layout)].layout, f"{stream}.$head")
        self.notes = before
        fields = ", ".join(map(text, heads.fields))
        lines = [f"pairing.{side} = {{ node = {node}, fields = {{ {fields} }}, kinds = {{}} }}"]
        for numbers, kind in heads.kinds.items():
            key = ",".join(map(str, numbers))
            lines.append(f"pairing.{side}.kinds[{text(key)}] = {self._kind(protocol, kind, heads, side)}")
        return lines

    def _kind(self, protocol: Protocol, kind: Kind, heads: Heads, side: str) -> str:
        head = registry[protocol.key(heads.layout)].layout
        head_names = {member.name for member in head.members} if isinstance(head, ir.Structure) else set()
        read = (*kind.paths, *(each[0] for each in (kind.silent, kind.unusual) if each is not None))
        deeper = [path for path in read if path.split(".")[0] not in head_names]
        parts = [f"api = {text(kind.api)}", f"role = {text(kind.role)}", f"link = {text(kind.link)}"]
        if kind.version is not None:
            parts.append(f"version = {text(kind.version) if isinstance(kind.version, str) else kind.version}")
        parts.append(f"pair = {{ {', '.join(map(text, kind.pair))} }}")
        parts.append(f"context = {text(kind.context)}")
        stream = protocol.client if side == "client" else protocol.server
        if kind.layout and kind.layout != stream:
            parts.append(f"node = {self.node(registry[protocol.key(kind.layout)].layout, stream)}")
        if kind.answer:
            parts.append(f"answer = {self.node(registry[protocol.key(kind.answer)].layout, protocol.server)}")
        if deeper:
            parts.append(f"full = {self.node(registry[protocol.key(kind.layout or heads.layout)].layout, stream)}")
        for name in ("silent", "unusual"):
            pair = getattr(kind, name)
            if pair is not None:
                parts.append(f"{name} = {{ {text(pair[0])}, {pair[1]} }}")
        return f"{{ {', '.join(parts)} }}"

    def _end(
        self,
        nodes: dict[str, str],
        framing: tuple[ir.Number, int, int, int] | None,
        pairing: Pairing | None,
        ports: tuple[int, ...],
        most: int,
    ) -> list[str]:
        options = [
            "proto = proto", "problem = problem", "bad_checksum = bad_checksum", "api = api", "request_in = request_in",
            "latency = latency", f"title = {text(self.prefix.removeprefix('wirekit_').upper())}",
            f"client = {nodes['client']}", f"server = {nodes['server']}",
        ]  # fmt: skip
        if pairing is not None:
            options.append("pairing = pairing")
        if framing is not None:
            length, at, add, least = framing
            read = f"reader({length.size}, {boolean(length.signed)}, false, {boolean(length.little)})"
            options += [f"length_reader = {read}", f"length_at = {at}", f"length_size = {length.size}"]
            options += [f"length_add = {add}", f"least = {least}", f"most = {most + add}"]
        lines = [f"dissect_streams({{ {', '.join(options)} }})"]
        lines += [f'DissectorTable.get("tcp.port"):add({port}, proto)' for port in ports]
        lines.append('DissectorTable.get("tcp.port"):add_for_decode_as(proto)')
        return lines


_PROTOBUF = {
    "enum": "int32", "sint32": "int32", "sint64": "int64", "fixed32": "uint32", "fixed64": "uint64",
    "sfixed32": "int32", "sfixed64": "int64",
}  # fmt: skip


def _null(null: int | None) -> str:
    return "nil" if null is None else str(null)


def _title(path: str) -> str:
    """The title of the field of a path."""
    before, _, name = path.rpartition(".")
    if name.startswith("$"):
        return f"{name[1:]} of {before.rpartition('.')[2] or 'value'}"
    return name or "value"
