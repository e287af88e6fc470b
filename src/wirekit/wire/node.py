"""The base of all nodes, and the scalar ones: integers, flags, symbols, strings, bytes.

Every node is a construct ``Construct`` whose parameters are plain attributes that a compiler can read. A node knows
four things: parse (``_parse``), build (``_build``), the value of a JSON form (``load``), and the least bytes it takes
(``minimum``), which bounds array counts.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from typing import Any

import construct
from construct import this

from wirekit.errors import Misfit, Misuse, Wrong
from wirekit.values import Record, Symbol, SymbolTable, shown
from wirekit.wire.extras import load_bytes
from wirekit.wire.stream import Reader, Scope, Writer

NOTHING = object()
UNITS = ("s", "ms", "us", "ns")
DECIMAL = re.compile(rb"0|-?[1-9][0-9]{0,18}")


class Node(construct.Construct):
    """A piece of a layout."""

    def _parse(self, stream: Reader, context: Scope, path: str) -> Any:
        raise NotImplementedError

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        raise NotImplementedError

    def load(self, obj: Any, context: Scope) -> Any:
        """The value for a piece of JSON data; what is a value already passes through."""
        return obj

    def minimum(self) -> int:
        """The least number of bytes that any value takes."""
        return 0

    def default(self, context: Scope) -> Any:
        """The value when a record to be built leaves the field out; NOTHING if it may not."""
        return NOTHING

    def parts(self) -> list[tuple[str, Node]]:
        """(role, node) of the nodes inside, for walks over a schema."""
        return []

    @property
    def opaque(self) -> bool:
        """Whether the bytes are not the plain content, so that their number is not its size."""
        return False

    def settled(self, context: Scope) -> Node:
        """The node that lays the value out, where others around it only decide which one does."""
        return self

    def plain_size(self, obj: Any, stream: Writer, context: Scope) -> int | None:
        """The bytes that a value takes, decompressed; None where its bytes do not tell."""
        inner = stream.inside()
        self._build(obj, inner, context, "")
        return len(inner.buffer)


class Missing(Wrong):
    """An expression needs a field that is not there.

    Attributes:
        name: the field's.
    """

    def __init__(self, name: str, expected: Any, actual: Any) -> None:
        super().__init__(expected, actual)
        self.name = name


def load_part(part: str | int, node: Node, obj: Any, context: Scope) -> Any:
    """What ``node.load`` gives; an error says that it is about this part."""
    try:
        return node.load(obj, context)
    except (Misfit, Wrong) as error:
        put_in_front(part, error)
        raise
    except Misuse as error:
        misfit = Misfit(str(error))
        put_in_front(part, misfit)
        raise misfit from None


def put_in_front(part: str | int, error: Misfit | Wrong) -> None:
    """Has the path of an error that is on its way out begin with a part."""
    name = f"[{part}]" if isinstance(part, int) else part
    dot = "" if not error.path or error.path.startswith("[") else "."
    error.path = f"{name}{dot}{error.path}"


def evaluate(expression: Any, context: Scope) -> Any:
    """The value of a constant or of a ``this`` expression.

    Raises:
        Wrong: when the expression needs a value that is not there; the enclosing struct adds where.
    """
    if not callable(expression):
        return expression
    try:
        return expression(context)
    except KeyError as error:
        name = str(error.args[0])
        raise Missing(name, f"a value for {name}", "nothing") from None
    except (TypeError, AttributeError, ZeroDivisionError) as error:
        raise Wrong(f"a value for {expression!r}", f"none ({error})") from None


def evaluate_size(expression: Any, context: Scope) -> int:
    """The value of an expression that counts; Wrong when it is no number or negative."""
    number = evaluate(expression, context)
    if not isinstance(number, int) or number < 0:
        raise Wrong("a length or count of at least 0", number)
    return number


def load_float(text: str) -> float:
    """The float that stands in a string, where JSON has no number for it."""
    try:
        return float(text)
    except ValueError:
        raise Misfit(f"a number is written as a number, nan, inf or -inf, not {text!r}") from None


def load_number(obj: Mapping[str, Any]) -> Any:
    """The number of a symbol in the JSON form."""
    if "value" not in obj:
        raise Misfit(f'a symbol is a number, a name or {{"value": number}}, not {shown(obj)}')
    return obj["value"]


def unnamed(field: construct.Renamed) -> Any:
    """The node of ``"name" / node * "note"``; each of the two operators wraps it once."""
    node = field
    while isinstance(node, construct.Renamed):
        node = node.subcon
    return node


class _Context:
    """``context.api``: what the caller says about the bytes, as a ``this`` expression; None when not given."""

    def __getattr__(self, name: str) -> Any:
        return this._params[name]


context = _Context()


class Integer(construct.FormatField, Node):
    """An integer or float of 1, 2, 4 or 8 bytes.

    Of a float that is not a number, ``$raw`` keeps the bytes: there are many, and neither Python nor JSON tells them
    apart.

    Args:
        endian: ``>`` or ``<``.
        code: struct's letter for it.
    """

    unit: str | None = None

    def __init__(self, endian: str, code: str) -> None:
        super().__init__(endian, code)
        self.signed = code.islower()
        self.real = code in "fd"
        self.mask = (1 << 8 * self.length) - 1
        self.low = -(1 << 8 * self.length - 1) if self.signed else 0
        self.high = (1 << 8 * self.length - 1) - 1 if self.signed else self.mask

    def _parse(self, stream: Reader, context: Scope, path: str) -> Any:
        start = stream.position
        data = stream.take(self.length)
        number = self.unpack(data)
        if self.real and number != number:
            stream.note("raw", int.from_bytes(data, "big"))
        if stream.session.spans is not None:
            stream.span(start, "number")
        return number

    def read(self, stream: Reader, *names: str) -> int:
        """The number where it is a part of a field; a length, count or tag has a name in the trace."""
        start = stream.position
        number: int = self.unpack(stream.take(self.length))
        if names and stream.session.spans is not None:
            stream.span(start, names[-1].removeprefix("$"), *names)
        return number

    def unpack(self, data: bytes) -> Any:
        """The number that the bytes are."""
        return struct.unpack(self.fmtstr, data)[0]

    def pack(self, value: Any) -> bytes:
        """The bytes of a number known to fit."""
        return struct.pack(self.fmtstr, value)

    def check(self, obj: Any, stream: Writer) -> Any:
        """The number, if it is one and fits; Wrong if not."""
        if self.real:
            if isinstance(obj, (int, float)):
                return obj
            raise stream.wrong("a number", shown(obj))
        if isinstance(obj, bool) or not isinstance(obj, int):
            raise stream.wrong("an integer", shown(obj))
        if not self.low <= obj <= self.high:
            raise stream.wrong(f"an integer in {self.low}..{self.high}", obj)
        return obj

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        number = self.check(obj, stream)
        raw = stream.noted("raw") if self.real and number != number else None
        stream.write(self.pack(number) if raw is None else int(raw).to_bytes(self.length, "big"))
        return obj

    def load(self, obj: Any, context: Scope) -> Any:
        if self.real and isinstance(obj, str):
            return load_float(obj)
        if isinstance(obj, Mapping) and "value" in obj:
            return obj["value"]
        return obj

    def minimum(self) -> int:
        return int(self.length)

    def __repr__(self) -> str:
        kind = "float" if self.real else "int" if self.signed else "uint"
        return f"{kind}{8 * self.length}{'le' if self.fmtstr[0] == '<' and self.length > 1 else ''}"


int8, uint8 = Integer(">", "b"), Integer(">", "B")
int16, uint16 = Integer(">", "h"), Integer(">", "H")
int32, uint32 = Integer(">", "l"), Integer(">", "L")
int64, uint64 = Integer(">", "q"), Integer(">", "Q")
int16le, uint16le = Integer("<", "h"), Integer("<", "H")
int32le, uint32le = Integer("<", "l"), Integer("<", "L")
int64le, uint64le = Integer("<", "q"), Integer("<", "Q")
float64 = Integer(">", "d")


class Timestamp(Integer):
    """An integer of 8 bytes that counts time since the epoch, UTC: what Arrow columns have a type for.

    Everywhere else it is the integer that it is.

    Args:
        number: the integer.
        unit: ``s``, ``ms``, ``us`` or ``ns``.

    >>> Timestamp(int64), Timestamp(int64).unit
    (int64, 'ms')
    """

    def __init__(self, number: Integer, *, unit: str = "ms") -> None:
        if number.real or number.length != 8 or unit not in UNITS:
            raise Misuse(f"a time is an integer of 64 bits in {', '.join(UNITS)}, not {number!r} in {unit}")
        super().__init__(number.fmtstr[0], number.fmtstr[1])
        self.unit = unit


class Wrapping(Node):
    """A node that is another node with something added."""

    def __init__(self, inner: Node) -> None:
        super().__init__()
        self.inner = inner

    def load(self, obj: Any, context: Scope) -> Any:
        return self.inner.load(obj, context)

    def minimum(self) -> int:
        return self.inner.minimum()

    def parts(self) -> list[tuple[str, Node]]:
        return [("inner", self.inner)]


class Flag(Wrapping):
    """A boolean in an integer: 0 is false, anything else true; true is written as 1."""

    def _parse(self, stream: Reader, context: Scope, path: str) -> bool:
        number = self.inner._parse(stream, context, path)
        if number not in (0, 1):
            stream.note("raw", number)
        return bool(number)

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        if not isinstance(obj, (bool, int)):
            raise stream.wrong("true or false", shown(obj))
        raw = stream.noted("raw")
        number = raw if obj and isinstance(raw, int) else int(bool(obj))
        self.inner._build(number, stream, context, path)
        return obj


class Symbols(Wrapping):
    """An integer whose values have names.

    Args:
        inner: the integer.
        table: the names.
        closed: whether a value without a name is Wrong; by default it is a symbol without a name.
    """

    def __init__(self, inner: Integer, table: SymbolTable, *, closed: bool = False) -> None:
        super().__init__(inner)
        self.table = table
        self.closed = closed

    def _parse(self, stream: Reader, context: Scope, path: str) -> Symbol:
        start = stream.position
        number = self.inner._parse(stream, context, path)
        if self.closed and number not in self.table:
            raise stream.wrong(self._choices(), number, start)
        return self.table(number)

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        number = int(self.table[obj]) if isinstance(obj, str) else obj
        if self.closed and (not isinstance(number, int) or number not in self.table):
            raise stream.wrong(self._choices(), number if isinstance(number, int) else shown(number))
        self.inner._build(number, stream, context, path)
        return self.table(number)

    def _choices(self) -> str:
        names = ", ".join(str(symbol) for symbol in self.table)
        return f"{self.table.name}: {names}"

    def load(self, obj: Any, context: Scope) -> Any:
        if isinstance(obj, Mapping):
            obj = load_number(obj)
        elif isinstance(obj, str):
            return self.table[obj]
        return self.table(obj) if isinstance(obj, int) else obj


class Null:
    """How a length says that there is no value: ``null=-1`` (Kafka) or ``null=0`` (JoyQueue: empty and null alike)."""

    @staticmethod
    def is_null(number: int, null: int | None) -> bool:
        """Whether a length read from the wire means null."""
        return null is not None and number <= null


class Bytes(Node):
    """A byte string.

    Args:
        length: an integer node (a length prefix), a number, a ``this`` expression, or None for the rest of the limit.
        null: what length means null, -1 or 0; None if there is no null.
        explained: False when nobody knows what the bytes mean: they are kept, and reported as a gap.
        part: whether the bytes are a piece of something larger, whose size they do not tell.
    """

    text = False
    kind = "bytes"

    def __init__(
        self, length: Any = None, *, null: int | None = None, explained: bool = True, part: bool = False
    ) -> None:
        super().__init__()
        self.length = length
        self.null = null
        self.explained = explained
        self.part = part

    @property
    def opaque(self) -> bool:
        return self.part

    @property
    def prefix(self) -> Integer | None:
        """The length prefix, if there is one."""
        return self.length if isinstance(self.length, Integer) else None

    def _parse(self, stream: Reader, context: Scope, path: str) -> Any:
        data = self._content(stream, context)
        if data is not None and not self.explained and data:
            stream.gap(stream.position - len(data), stream.position)
            stream.rename("gap")
        return data

    def _content(self, stream: Reader, context: Scope) -> bytes | None:
        size = self._size(stream, context)
        start = stream.position
        data = None if size is None else stream.take(size)
        if stream.session.spans is not None:
            stream.span(start, "absent" if data is None else self.kind)
        return data

    def _size(self, stream: Reader, context: Scope) -> int | None:
        if self.length is None:
            return stream.left
        prefix = self.prefix
        if prefix is None:
            return evaluate_size(self.length, context)
        start = stream.position
        size = prefix.read(stream, "$length")
        if Null.is_null(size, self.null):
            if size != self.null:
                stream.note("raw", size)
            return None
        if size < 0:
            raise stream.wrong("a length of at least 0", size, start)
        return size

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        data = self._encode(obj, stream)
        prefix = self.prefix
        if prefix is not None:
            if data is None or (self.null == 0 and not data):
                raw = stream.noted("raw")
                prefix._build(self.null if raw is None else raw, stream, context, path)
                return obj
            if len(data) > prefix.high:
                raise stream.wrong(f"at most {prefix.high} bytes", f"{len(data)} bytes")
            prefix._build(len(data), stream, context, path)
        elif self.length is not None:
            size = evaluate_size(self.length, context)
            if len(data or b"") != size:
                raise stream.wrong(f"{size} bytes", f"{len(data or b'')} bytes")
        stream.write(data or b"")
        return obj

    def plain_size(self, obj: Any, stream: Writer, context: Scope) -> int | None:
        if self.part:
            return None
        if self.length is None or self.prefix is not None:
            return super().plain_size(obj, stream, context)
        return len(self._encode(obj, stream) or b"")  # the length may be the very number that is asked for

    def _encode(self, obj: Any, stream: Writer) -> bytes | None:
        if obj is None:
            if self.null is None:
                raise stream.wrong("bytes", "null")
            return None
        if not isinstance(obj, (bytes, bytearray, memoryview)):
            raise stream.wrong("bytes", shown(obj))
        return bytes(obj)

    def load(self, obj: Any, context: Scope) -> Any:
        return load_bytes(obj)

    def default(self, context: Scope) -> Any:
        if self.null is not None:
            return None
        if self.length is None:
            return b""
        if self.prefix is None:
            return bytes(evaluate_size(self.length, context))
        return NOTHING

    def minimum(self) -> int:
        if self.prefix is not None:
            return self.prefix.minimum()
        return self.length if isinstance(self.length, int) else 0


class Padding(Bytes):
    """Bytes that only fill up, as many as an expression says: zeros when built.

    What was parsed is written again while its size is still right; other bytes than zeros are kept so.
    """

    kind = "filler"

    def __init__(self, length: Any) -> None:
        super().__init__(length)

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        size = evaluate_size(self.length, context)
        data = self._encode(obj, stream) or b""
        stream.write(data if len(data) == size else bytes(size))
        return obj


class String(Bytes):
    """UTF-8 text, with the parameters of ``Bytes``.

    Bytes that are not UTF-8 are kept as lone surrogates (Python's ``surrogateescape``), with a bad ``utf-8`` check.
    """

    text = True
    kind = "text"

    def _parse(self, stream: Reader, context: Scope, path: str) -> Any:
        start = stream.position
        data = self._content(stream, context)
        return None if data is None else decode_text(data, stream, start)

    def _encode(self, obj: Any, stream: Writer) -> bytes | None:
        if obj is None:
            if self.null is None:
                raise stream.wrong("a string", "null")
            return None
        if not isinstance(obj, str):
            raise stream.wrong("a string", shown(obj))
        return encode_text(obj, stream)

    def load(self, obj: Any, context: Scope) -> Any:
        return obj

    def default(self, context: Scope) -> Any:
        return None if self.null is not None else NOTHING


def decode_text(data: bytes, stream: Reader, start: int) -> str:
    """UTF-8 to str; what is not UTF-8 becomes lone surrogates and a bad check."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        stream.check("utf-8", None, None, False, start, f"{error.reason} at byte {error.start} of the string")
        return data.decode(errors="surrogateescape")


def encode_text(text: str, stream: Writer) -> bytes:
    """The inverse of ``decode_text``."""
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        raise stream.wrong("text that UTF-8 can carry", error.reason) from None


class Delimited(Node):
    """Text with a delimiter behind it, which files of lines are made of. No text goes beyond its line.

    Args:
        end: the delimiter.
        number: whether the text is an integer in decimal, without leading zeros.
    """

    def __init__(self, end: str, *, number: bool = False) -> None:
        super().__init__()
        self.end = end.encode()
        self.number = number

    def _parse(self, stream: Reader, context: Scope, path: str) -> Any:
        start = stream.position
        found = stream.buffer.find(self.end, start, stream.limit)
        if found < 0:
            raise stream.short(stream.left + len(self.end))
        data = stream.take(found - start)
        stream.span(start, "number" if self.number else "text")
        stream.take(len(self.end))
        stream.span(found, "delimiter", "$delimiter")
        if b"\n" in data:
            raise stream.wrong(f"{self.end!r} in the line", "none", start)
        if not self.number:
            return decode_text(data, stream, start)
        if not DECIMAL.fullmatch(data):
            raise stream.wrong("an integer in decimal", repr(data[:20]), start)
        return int(data)

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        kind = int if self.number else str
        if not isinstance(obj, kind) or isinstance(obj, bool):
            raise stream.wrong("an integer" if self.number else "a string", shown(obj))
        data = b"%d" % obj if isinstance(obj, int) else encode_text(obj, stream)
        if self.number and not DECIMAL.fullmatch(data):
            raise stream.wrong("an integer of at most 19 digits", obj)
        if b"\n" in data or self.end in data + self.end[:-1]:
            raise stream.wrong(f"text without {self.end!r} in one line", shown(obj))
        stream.write(data + self.end)
        return obj

    def minimum(self) -> int:
        return len(self.end) + self.number


def rest(*, part: bool = False) -> Bytes:
    """All bytes before the nearest limit; ``part`` when they are a piece of something larger."""
    return Bytes(None, part=part)


def unexplained() -> Bytes:
    """All bytes before the nearest limit, whose meaning is not known: they are a gap."""
    return Bytes(None, explained=False)


class Bit(Node):
    """A field of some bits inside ``Bits``.

    Args:
        width: number of bits.
        table: names of the values; a bit of width 1 without a table is a bool.
    """

    def __init__(self, width: int, table: SymbolTable | None = None) -> None:
        super().__init__()
        self.width = width
        self.table = table

    def value(self, number: int) -> Any:
        """The value for the bits."""
        if self.table is not None:
            return self.table(number)
        return bool(number) if self.width == 1 else number

    def number(self, value: Any, stream: Writer) -> int:
        """The bits for a value."""
        if self.table is not None and isinstance(value, str):
            value = self.table[value]
        if not isinstance(value, int) or not 0 <= value < 1 << self.width:
            raise stream.wrong(f"an integer in 0..{(1 << self.width) - 1}", shown(value))
        return int(value)


class Bits(Wrapping):
    """Named bit fields inside one unsigned integer.

    Args:
        inner: the integer.
        fields: ``"name" / Bit(width)``; the widths add up to the integer's.
        order: ``lsb`` when the first field holds the least significant bits, ``msb`` when the most significant.
    """

    def __init__(self, inner: Integer, *fields: construct.Renamed, order: str) -> None:
        from wirekit.values import record_type

        super().__init__(inner)
        self.order = order
        self.fields: list[tuple[str, Bit, int]] = []
        shift = 0 if order == "lsb" else 8 * inner.length
        for field in fields:
            bit = unnamed(field)
            if order == "msb":
                shift -= bit.width
            self.fields.append((field.name, bit, shift))
            if order == "lsb":
                shift += bit.width
        if shift != (8 * inner.length if order == "lsb" else 0):
            raise Misuse(f"the bit fields must fill the {8 * inner.length} bits of {inner!r}")
        self.docs_of = {field.name: field.docs for field in fields}
        self.record = record_type("Bits", tuple(field.name for field in fields))

    def _parse(self, stream: Reader, context: Scope, path: str) -> Record:
        start = stream.position
        record = self.unpack(self.inner.read(stream))
        if stream.session.spans is not None:
            for name, bit, shift in self.fields:
                stream.bits(start, name, shift, bit.width)
            stream.span(start, "bits")
        return record

    def unpack(self, number: int) -> Record:
        """The record for the whole integer."""
        number &= self.inner.mask
        return self.record(
            **{name: bit.value(number >> shift & (1 << bit.width) - 1) for name, bit, shift in self.fields}
        )

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        self.inner._build(self.pack(obj, stream), stream, context, path)
        return obj

    def pack(self, obj: Any, stream: Writer) -> int:
        """The whole integer for a record, a mapping or an integer."""
        if isinstance(obj, int):
            return obj
        if not isinstance(obj, (Record, Mapping)):
            raise stream.wrong("bit fields by name", shown(obj))
        number = 0
        for name, bit, shift in self.fields:
            stream.path.append(name)
            value = obj.get(name)
            number |= bit.number(0 if value is None else value, stream) << shift
            stream.path.pop()
        return number - (1 << 8 * self.inner.length) if self._negative(number) else number

    def _negative(self, number: int) -> bool:
        return self.inner.signed and number > self.inner.high

    def load(self, obj: Any, context: Scope) -> Any:
        if isinstance(obj, int):
            return self.unpack(obj)
        if isinstance(obj, Mapping):
            values = {}
            for name, bit, _ in self.fields:
                value = obj.get(name, 0)
                if isinstance(value, Mapping):
                    value = load_number(value)
                if isinstance(value, str) and bit.table is not None:
                    value = bit.table[value]
                values[name] = bit.value(value) if bit.table is None or isinstance(value, int) else value
            return self.record(**values)
        return obj

    def default(self, context: Scope) -> Any:
        return self.unpack(0)
