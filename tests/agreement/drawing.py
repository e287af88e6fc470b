"""Layouts drawn at random, as the Python text that declares them: any node of ``wirekit.wire`` inside any other.

The text is what a user would write, so a layout that shows a fault can be read and pasted. What is drawn mostly makes
sense: fields are read behind where they stand, and what takes all bytes up to a limit mostly stands in front of one. A
layout that makes none is refused when it is registered, or it is a fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

UNSIGNED = ("uint8", "uint16", "uint32", "uint64", "uint16le", "uint32le", "uint64le", "uint24", "uint48le")
SIGNED = ("int8", "int16", "int32", "int64", "int16le", "int32le", "int64le", "int24le", "int40", "int56")
FIXED = UNSIGNED + SIGNED
VARINTS = (
    "varint32",
    "varint64",
    "zigzag32",
    "zigzag64",
    "sleb32",
    "sleb64",
    "Varint(32, groups=4)",
    "Varint(64, signed=True, groups=3)",
    "Varint(64, form='vlq')",
    "Varint(32, form='vlq', groups=4)",
    "Varint(64, form='quic')",
    "Varint(32, form='ber')",
    "Varint(64, form='lenenc')",
    "Varint(64, form='compact_size')",
)
INTEGERS = FIXED + VARINTS
REALS = ("float64", "float64le", "float32", "float32le", "Integer('>', 'f')")
PREFIXES = ("uint8", "int8", "int16", "uint16", "int32", "uint32le", "int16le", "int64", "uint64", "int32le")
PREFIXES += ("uint24", "int24le", "varint32", "zigzag32", "sleb32", "Varint(32, form='vlq')", "Varint(64, form='ber')")
PREFIXES += ("Varint(32, form='quic')", "Varint(32, form='lenenc')")
WIDE = ("int16", "uint16", "int32", "uint32le", "int32le", "uint32", "int64", "uint64le")
NAMES = ("a", "b", "c", "d", "size", "kind", "body", "crc", "n", "text", "flags", "rows", "extra_data", "z", "head")
ODD_NAMES = ("items", "get", "keep", "extra", "from", "class", "x", "S", "p", "value", "content", "compressed", "len")
TABLES = (
    "SymbolTable('kind', {0: 'NONE', 1: 'ONE', 2: 'TWO'})",
    "SymbolTable('codec', {0: 'NONE', 1: 'GZIP', 2: 'SNAPPY', 3: 'LZ4'})",
    "SymbolTable('level', {1: 'LOW', 5: ('HIGH', 'the highest'), 100: 'OTHER'})",
)
CODECS = ("gzip", "zlib", "snappy", "lz4-frame", "zstd", "none", "lz4-block")
MESSAGES = ("KeyValue", "SingleMessageMetadata", "BrokerEntryMetadata", "IntRange", "MessageIdData")
MAGICS = (0x01, 0xCA, 0xCAFE, 0x00, 0x0E01)
ORDERS = ("lsb", "msb")
CODED = (
    ("String", "other", ", encoding='ascii'"),
    ("String", "other", ", encoding='latin-1'"),
    ("String", "other", ", encoding='utf-16-le'"),
    ("String", "other", ", encoding='utf-16-be'"),
    ("Custom", "other", ", parse=bytes.hex, build=bytes.fromhex"),
    ("Custom", "other", ", parse=zlib.crc32, build=len"),
)
MULTIPLES = ("2", "4", "4", "8", "3")
PADS = ("' '", "'\\0'")
SUMS = {
    "internet": ("uint16", "int16", "uint16le"),
    "crc-16/modbus": ("uint16", "uint24"),
    "crc-24/openpgp": ("uint24", "int32le"),
    "fletcher16": ("uint16", "int16"),
    "adler32": ("uint32", "int40"),
    "xxh32": ("uint32le", "int64", "Bytes(4)"),
    "xxh64": ("uint64", "int64", "Bytes(8)"),
    "md5": ("Bytes(16)",),
    "count of a drawn layout": ("uint8", "uint32le"),
}
BIT_NUMBERS = (("uint8", 8), ("uint16", 16), ("uint16le", 16), ("uint32", 32), ("int8", 8), ("uint24", 24))
DEEPEST = 6


@dataclass(frozen=True, slots=True)
class Seen:
    """A field that expressions may read.

    Attributes:
        kind: ``int``, ``flag``, ``text``, ``bytes``, ``list``, ``other``.
        sure: whether it is never null.
    """

    name: str
    kind: str
    sure: bool = True


@dataclass(frozen=True, slots=True)
class Piece:
    """A node as text, and what its value is."""

    text: str
    kind: str = "other"
    sure: bool = True
    inside: tuple[Seen, ...] = ()


class Drawing:
    """Draws one protocol: a layout ``main``, and ``other`` that it may refer to.

    Args:
        seed: the same seed draws the same text.
        protocol: the first part of the keys that are referred to.
    """

    def __init__(self, seed: int, protocol: str) -> None:
        self.chance = Random(f"layout {seed}")
        self.protocol = protocol
        self.left = 0
        self.depth = 0
        self.scopes: list[list[Seen]] = []

    def layouts(self) -> dict[str, str]:
        """The text of each layout by name."""
        drawn = {"main": self._layout()}
        if any("other" in text for text in drawn.values()):
            drawn["other"] = self._layout()
        return drawn

    def _layout(self) -> str:
        self.left, self.depth, self.scopes = self.chance.choice((3, 5, 8, 12, 18, 26)), 0, []
        draw = self._pick(
            (self._structure, 12), (self._records, 4), (self._array, 1), (self._repeat, 1), (self.node, 1)
        )
        return draw(True).text

    # Chance

    def _one(self, of: tuple[str, ...] | list[str]) -> str:
        return self.chance.choice(of)

    def _often(self, share: float) -> bool:
        return self.chance.random() < share

    def _pick(self, *weighted):  # type: ignore[no-untyped-def]
        draws, weights = zip(*weighted, strict=True)
        return self.chance.choices(draws, weights)[0]

    # Nodes

    def node(self, end: bool) -> Piece:
        """A node of any kind.

        Args:
            end: whether nothing stands between it and a limit, so that it may take all bytes that are left.
        """
        self.left -= 1
        if self.left <= 0 or self.depth >= DEEPEST:
            return self._leaf(end)
        self.depth += 1
        open_ended = end or self._often(0.04)
        kinds = [(self._leaf, 22), (self._structure, 9), (self._array, 5), (self._repeat, 4), (self._if, 5)]
        kinds += [(self._if_then_else, 4), (self._switch, 6), (self._if_next, 2), (self._sized, 6), (self._ref, 3)]
        kinds += [(self._lookahead, 2), (self._compressed, 4), (self._default, 2), (self._const, 3)]
        if open_ended:
            kinds += [(self._records, 8), (self._if_more, 4), (self._or_bytes, 4), (self._message, 3), (self._rest, 4)]
        drawn: Piece = self._pick(*kinds)(end)
        self.depth -= 1
        return drawn

    def _leaf(self, end: bool) -> Piece:
        kinds = [(self._number, 8), (self._symbols, 3), (self._flag, 2), (self._bits, 3), (self._blob, 8)]
        kinds += [(self._padding, 1), (self._delimited, 1)]
        if end:
            kinds.append((self._rest, 4))
        drawn: Piece = self._pick(*kinds)(end)
        return drawn

    # Numbers

    def _number(self, end: bool) -> Piece:
        if self._often(0.1):
            return Piece(self._one(REALS))
        if self._often(0.1):
            return Piece(f"Timestamp({self._one(('int64', 'uint64', 'int64le'))})", "int")
        if self._often(0.05):
            return Piece(f"Duration({self._one(('int32', 'uint16le', 'int64'))})", "int")
        return Piece(self._one(INTEGERS), "int")

    def _symbols(self, end: bool) -> Piece:
        closed = ", closed=True" if self._often(0.4) else ""
        return Piece(f"Symbols({self._one(INTEGERS)}, {self._one(TABLES)}{closed})", "int")

    def _flag(self, end: bool) -> Piece:
        return Piece(f"Flag({self._one(FIXED)})", "flag")

    def _bits(self, end: bool) -> Piece:
        number, left = self.chance.choice(BIT_NUMBERS)
        fields, inside = [], []
        for name in ("reserved", "wide", "low", "code", "high", "get", "items"):
            width = left if name == "items" else min(left, self.chance.choice((1, 1, 2, 3, 4, 7, 9)))
            if not width:
                break
            left -= width
            table = f", {self._one(TABLES[:2])}" if width > 1 and self._often(0.2) else ""
            fields.append(f"'{name}' / Bit({width}{table})")
            inside.append(Seen(name, "flag" if width == 1 else "int"))
        text = f"Bits({number}, {', '.join(fields)}, order='{self._one(ORDERS)}')"
        return Piece(text, "other", inside=tuple(inside))

    # Bytes and text

    def _blob(self, end: bool) -> Piece:
        name, kind, more = self.chance.choice(
            (("Bytes", "bytes", ""), ("Bytes", "bytes", ""), ("String", "text", ""), ("String", "text", ""), *CODED)
        )
        if name == "String" and more and self._often(0.3):
            return Piece(f"String({self.chance.choice((2, 4, 8))}{more}, pad={self._one(PADS)})", kind)
        if self._often(0.3):
            return Piece(f"{name}({self._amount()}{more})", kind)
        prefix = self._one(PREFIXES)
        if self._often(0.4):
            null = self._null(prefix)
            return Piece(f"{name}({prefix}, null={null}{more})", kind, sure=False)
        return Piece(f"{name}({prefix}{more})", kind)

    def _null(self, prefix: str) -> int:
        return 0 if prefix.startswith(("u", "v")) or self._often(0.3) else self.chance.choice((-1, -1, -1, -2))

    def _padding(self, end: bool) -> Piece:
        return Piece(f"Padding({f'to={self._one(MULTIPLES)}' if self._often(0.4) else self._amount()})", "bytes")

    def _delimited(self, end: bool) -> Piece:
        if self._often(0.3):
            return Piece("Delimited('\\0', lines=False)", "text")
        mark = self._one(("\\n", " ", "\\r\\n", "::", ",", "="))
        number = self._often(0.4)
        return Piece(f"Delimited('{mark}'{', number=True' if number else ''})", "int" if number else "text")

    def _rest(self, end: bool) -> Piece:
        text = self._one(("rest()", "rest()", "unexplained()", "String()", "rest(part=True)", "Bytes(None)"))
        return Piece(text, "text" if "String" in text else "bytes")

    # Expressions

    def _fields(self, *kinds: str) -> list[str]:
        """What expressions may read here, as text."""
        texts = []
        for up, scope in enumerate(reversed(self.scopes)):
            for variable in scope:
                if variable.kind in kinds and (variable.sure or self._often(0.1)):
                    texts.append(_this(up, variable.name))
        return texts

    def _amount(self) -> str:
        """A number of bytes or elements."""
        numbers, sized = self._fields("int"), self._fields("text", "bytes", "list")
        if numbers and self._often(0.65):
            field = self._one(numbers)
            return self._one((f"{field} & 3", f"{field} % 5", f"({field} & 7) * 2", field, f"({field} & 1) + 1"))
        if sized and self._often(0.5):
            return self._one((f"len_({self._one(sized)})", f"len_({self._one(sized)}) // 2"))
        return str(self.chance.choice((0, 1, 2, 3, 4, 8)))

    def _condition(self) -> str:
        numbers, flags, texts = self._fields("int"), self._fields("flag"), self._fields("text")
        sized = self._fields("text", "bytes", "list")
        kinds: list[str] = []
        if numbers:
            field = self._one(numbers)
            kinds += [f"{field} > 1", f"{field} == 2", f"{field} & 1", f"{field} % 3 != 0", field, f"({field} & 3) < 2"]
            kinds += [f"({field} > 0) & ({self._one(numbers)} < 5)"]
        if flags:
            kinds += [self._one(flags), f"~{self._one(flags)}", f"{self._one(flags)} == False"]
        if texts:
            kinds += [f"{self._one(texts)} == 'a'"]
        if sized:
            kinds += [f"len_({self._one(sized)}) > 1"]
        if not kinds or self._often(0.08):
            return self._one(("context.mode == 1", "context.mode", "context.name == 'x'"))
        return self._one(kinds)

    # Presence and alternatives

    def _if(self, end: bool) -> Piece:
        condition = self._condition()
        inner = self.node(end)
        return Piece(f"If({condition}, {inner.text})", inner.kind, sure=False)

    def _if_then_else(self, end: bool) -> Piece:
        condition = self._condition()
        then, other = self.node(end), self.node(end)
        kind = then.kind if then.kind == other.kind else "other"
        return Piece(f"IfThenElse({condition}, {then.text}, {other.text})", kind, then.sure and other.sure)

    def _switch(self, end: bool) -> Piece:
        numbers, flags, texts = self._fields("int"), self._fields("flag"), self._fields("text")
        on: str
        if len(numbers) > 0 and self._often(0.2):
            second = self._one(["context.mode", *numbers, *flags])
            on, values = f"({self._one(numbers)} & 3, {second})", ["(0, 1)", "(1, 0)", "(2, 1)", "(3, 3)"]
        elif numbers and self._often(0.85):
            field = self._one(numbers)
            on, values = self._one((field, f"{field} & 3", f"{field} % 4")), ["0", "1", "2", "5"]
        elif flags:
            on, values = self._one(flags), ["True", "False"]
        elif texts and self._often(0.3):
            on, values = self._one(texts), ["'a'", "''"]
        else:
            on, values = "context.mode", ["1", "2", "None"]
        count = self.chance.randint(1, min(3, len(values)))
        cases = [f"{value}: {self.node(end).text}" for value in self.chance.sample(values, count)]
        default = f", default={self.node(end).text}" if self._often(0.7) else ""
        return Piece(f"Switch({on}, {{{', '.join(cases)}}}{default})", sure=False)

    def _if_next(self, end: bool) -> Piece:
        magic = self.chance.choice(MAGICS)
        size = 2 if magic > 0xFF or self._often(0.3) else 1
        data = magic.to_bytes(size, "big")
        number = "uint16" if size == 2 else "uint8"
        const = f"Const({number}, {magic:#x})"
        if self._often(0.4):
            return Piece(f"IfNext({data!r}, {const})", "int", sure=False)
        self.scopes.append([])
        inner = f"Struct('mark' / {const}, 'inner' / {self.node(end).text})"
        self.scopes.pop()
        return Piece(f"IfNext({data!r}, {inner})", sure=False)

    def _if_more(self, end: bool) -> Piece:
        inner = self.node(end)
        return Piece(f"IfMore({inner.text})", inner.kind, sure=False)

    def _or_bytes(self, end: bool) -> Piece:
        inner = self._pick((self._structure, 5), (self._number, 2), (self._records, 2), (self.node, 2))(True)
        return Piece(f"OrBytes({inner.text})", sure=False)

    def _lookahead(self, end: bool) -> Piece:
        at = self.chance.choice((0, 0, 1, 2, 3))
        inner = self._pick((self._number, 4), (self._symbols, 2), (self._flag, 1), (self._bits, 1), (self._blob, 1))(
            end
        )
        return Piece(f"Lookahead({inner.text}{f', at={at}' if at else ''})", inner.kind, inside=inner.inside)

    # What is inside something

    def _array(self, end: bool) -> Piece:
        prefix = self._one(PREFIXES)
        null = ", null=-1" if self._often(0.4) and not prefix.startswith(("u", "v")) else ""
        return Piece(f"Array({prefix}, {self.node(False).text}{null})", "list", sure=not null)

    def _repeat(self, end: bool) -> Piece:
        count = self._amount()
        return Piece(f"Repeat({count}, {self.node(False).text})", "list")

    def _records(self, end: bool) -> Piece:
        element = self._pick((self._structure, 6), (self.node, 4))(False).text
        tail = ", short_tail='stop'" if self._often(0.3) else ""
        until = f", until={self.chance.choice(MAGICS).to_bytes(2, 'big')!r}" if self._often(0.15) else ""
        until += ", except_first=True" if until and self._often(0.3) else ""
        numbers = self._fields("int")
        count = f", count={self._one(numbers)}" if numbers and self._often(0.2) else ""
        return Piece(f"RecordsToEnd({element}{tail}{until}{count})", "list")

    def _sized(self, end: bool) -> Piece:
        prefix = self._one(PREFIXES)
        null = f", null={self._null(prefix)}" if self._often(0.4) else ""
        inner = self.node(True)
        return Piece(f"Sized({prefix}, {inner.text}{null})", inner.kind, inner.sure and not null, inner.inside)

    def _ref(self, end: bool) -> Piece:
        key = f"{self.protocol}.{self._one(('main', 'other', 'other'))}"
        around = self._one(
            ("Ref({0!r})", "Array(int8, Ref({0!r}))", "If({1}, Ref({0!r}))", "Sized(int16, Ref({0!r}), null=-1)")
        )
        return Piece(around.format(key, self._condition()), "list" if "Array" in around else "other", sure=False)

    def _compressed(self, end: bool) -> Piece:
        bytes_ = f"Bytes({self._one(PREFIXES)})"
        if self._often(0.2):
            bytes_ = f"Bytes({self._one(SIGNED)}, null=-1)"
        if end and self._often(0.3):
            bytes_ = "rest()"
        numbers = self._fields("int")
        names = self.chance.sample(CODECS if numbers else CODECS[:-1], self.chance.randint(1, 3))
        on, values = "context.mode", ["1", "2", "3"]
        if numbers:
            field = self._one(numbers)
            on = self._one((f"{field} & 3", field))
            if self._often(0.15):
                on, values = f"({field} & 1, {field} & 2)", ["(1, 0)", "(0, 2)", "(1, 2)"]
        codecs = ", ".join(f"{value}: {name!r}" for value, name in zip(values, names, strict=False))
        size = f", size={self._one(numbers)}" if numbers and ("lz4-block" in names or self._often(0.1)) else ""
        content = self._pick((self._structure, 4), (self._records, 3), (self.node, 3))(True).text
        streamed = ", streamed=True" if self._often(0.4) else ""
        return Piece(f"Compressed({bytes_}, {on}, {{{codecs}}}, {content}{size}{streamed})", sure=False)

    def _message(self, end: bool) -> Piece:
        return Piece(f"Protobuf({'wirekit.proto.PulsarApi_pb2:' + self._one(MESSAGES)!r})")

    def _default(self, end: bool) -> Piece:
        kinds = (
            (f"Default({self._one(INTEGERS)}, 3)", "int"),
            (f"Default({self._one(INTEGERS)}, {self._amount()})", "int"),
            (f"Default(Symbols({self._one(INTEGERS)}, {self._one(TABLES)}), 1)", "int"),
            (f"Default(Flag({self._one(FIXED)}), True)", "flag"),
            (f"Default(String({self._one(PREFIXES)}), 'ab')", "text"),
            (f"Default(Bytes({self._one(PREFIXES)}), b'ab')", "bytes"),
            (f"Default({self._bits(end).text}, 0)", "other"),
            (f"Default(Array({self._one(PREFIXES)}, int8), [])", "list"),
            ("Default(float64, 1)", "other"),
        )
        text, kind = self.chance.choice(kinds)
        return Piece(text, kind)

    def _const(self, end: bool) -> Piece:
        kinds = [
            (f"{self._one(INTEGERS)}, {self.chance.choice((0, 1, 7, 100))}", "int"),
            (f"Symbols({self._one(INTEGERS)}, {self._one(TABLES)}), 1", "int"),
            (f"Flag({self._one(FIXED)}), True", "flag"),
            ("Bytes(2), b'ab'", "bytes"),
            (f"Bytes({self._one(PREFIXES)}), b'ab'", "bytes"),
            (f"String({self._one(PREFIXES)}), 'ab'", "text"),
            ("String(3), 'abc'", "text"),
            ("float64, 1.5", "other"),
        ]
        numbers = self._fields("int")
        if numbers:
            kinds.append((f"{self._one(WIDE)}, {self._one(numbers)} & 15", "int"))
        text, kind = self.chance.choice(kinds)
        fatal = ", fatal=False" if self._often(0.4) else ""
        return Piece(f"Const({text}{fatal}{', hexadecimal=True' if self._often(0.1) else ''})", kind)

    # Structures

    def _structure(self, end: bool) -> Piece:
        count = self.chance.choice((0, 1, 2, 2, 3, 3, 4, 5, 6)) if self._often(0.98) else 8
        names = self.chance.sample(NAMES, count)
        if count and self._often(0.08):
            names[0] = self._one(ODD_NAMES)
        computed = self._computed(names)
        self.scopes.append([])
        fields, tells = [], ""
        for index, name in enumerate(names):
            closes = index == count - 1 and end
            if index in computed:
                piece, _ = computed[index]
            else:
                bounded = any(last == index for piece, last in computed.values())
                if not tells and index < count - 1 and (closes or self._often(0.03)):
                    tells = name
                piece = self.node(closes or bounded)
            if index not in computed:
                self.scopes[-1].append(Seen(name, piece.kind, piece.sure))
            for at, (length, last) in computed.items():  # before, it could be read and not be written
                if at < last == index:
                    self.scopes[-1].append(Seen(names[at], length.kind, length.sure))
            if piece.sure:
                self.scopes[-1] += [Seen(f"{name}.{variable.name}", variable.kind) for variable in piece.inside]
            fields.append(f"{name!r} / {piece.text}")
        inside = tuple(variable for variable in self.scopes.pop() if variable.sure)
        fields += self._telling(names) if end and self._often(0.06) else []
        return Piece(f"Struct({', '.join(fields)})", inside=inside)

    def _telling(self, names: list[str]) -> list[str]:
        """A message that tells of what is behind it."""
        tells = self._one(
            (
                "'told' / Sized(int16, Protobuf('wirekit.proto.PulsarApi_pb2:IntRange')), 'behind' / rest()",
                "'told' / Protobuf('wirekit.proto.PulsarApi_pb2:SingleMessageMetadata', derived={'payload_size': "
                "SizeOf('behind')}), 'behind' / rest()",
                "'size_of_told' / Length(int32, 'told'), 'told' / Protobuf("
                "'wirekit.proto.PulsarApi_pb2:SingleMessageMetadata', derived={'payload_size': SizeOf('behind')}), "
                "'behind' / Bytes(this.told.payload_size)",
                "'size_of_told' / Length(int32, 'told'), 'told' / Protobuf("
                "'wirekit.proto.PulsarApi_pb2:IntRange', derived={'start': CountOf('behind')}), "
                "'behind' / RecordsToEnd(int16)",
            )
        )
        return [tells]

    def _computed(self, names: list[str]) -> dict[int, tuple[Piece, int]]:
        """Lengths and checksums among the members, and the last member that each one bounds."""
        computed: dict[int, tuple[Piece, int]] = {}
        places = [index for index in range(len(names)) if self._often(0.16)] if len(names) > 1 else []
        for at in places:
            if self._often(0.6):
                computed[at] = self._length(names, at)
            else:
                computed[at] = self._checked(names, at), -1
        return computed

    def _length(self, names: list[str], at: int) -> tuple[Piece, int]:
        of, last = self._covered(names, at)
        options = ""
        if self._often(0.25):
            options += f", add={self.chance.choice((1, 2, 4, 4, -1))}"
        if self._often(0.15):
            options += f", minimum={self.chance.choice((1, 2, 4))}"
        clip = self._often(0.15)
        loose = self._often(0.2)
        zero_is_rest = self._often(0.12)
        options += ", zero_is_rest=True" if zero_is_rest and not loose else ""
        options += ", clip=True" if clip else ""
        options += ", exceeds=True" if (clip or loose) and self._often(0.5) else ""
        options += ", frame=True" if self._often(0.1) else ""
        options += ", bounds=False" if loose else ""
        text = f"Length({self._one(WIDE if self._often(0.8) else INTEGERS)}{of}{options})"
        around = self._one(("", "", "", "", "", "", "", "If", "IfMore", "Default"))
        if around == "If":
            text = f"If(context.mode != 1, {text})"
        elif around:
            text = f"{around}({text}{', 0' if around == 'Default' else ''})"
        return Piece(text, "int", around not in ("If", "IfMore")), last

    def _checked(self, names: list[str], at: int) -> Piece:
        of, _ = self._covered(names, at)
        algorithm = self._one(("crc32", "crc32c", *SUMS))
        number = self._one(SUMS.get(algorithm, ("uint32", "int32", "uint64")))
        content = ", content=True" if of.startswith(", '") and self._often(0.15) else ""
        text = f"Checked({number}, {algorithm!r}{of}{content})"
        if self._often(0.15):
            text = f"{self._one(('IfMore(', 'If(context.mode != 1, '))}{text})"
            return Piece(text, "int", sure=False)
        return Piece(text, "int")

    def _covered(self, names: list[str], at: int) -> tuple[str, int]:
        """What a length or checksum covers, as an argument, and the last of it."""
        how = self.chance.random()
        if at == len(names) - 1 and (how < 0.95 and len(names) > 1):  # what stands in front is all that there is
            last = self.chance.randrange(at)
            first = self.chance.randint(0, last)
        elif how < 0.35 or len(names) < 2:
            return "", len(names) - 1
        elif how < 0.92:
            first = self.chance.randint(at + 1, len(names) - 1)
            last = self.chance.randint(first, len(names) - 1)
        else:
            first = self.chance.randrange(len(names))
            last = self.chance.randint(first, len(names) - 1)
        if first == last:
            return f", {names[first]!r}", last
        return f", ({names[first]!r}, {names[last]!r})", last


def _this(up: int, name: str) -> str:
    """An expression for a field, some structures further out."""
    parts = name.split(".")
    if any(part in dir(object) or part in ("get", "items", "keep", "extra", "from", "class") for part in parts):
        return "this" + "._" * up + "".join(f"[{part!r}]" for part in parts)
    return f"this{'._' * up}.{name}"
