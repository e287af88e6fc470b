"""Integers and floats of any size, and numbers with a meaning: times, flags, symbols, bit fields."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Literal

import construct

from wirekit.errors import Misfit, Misuse, first_of
from wirekit.values import Record, Symbol, SymbolTable, field_of, plain_mapping, record_type, shown
from wirekit.varints import BY_FIRST_BYTE, LONG, QUIC, SHORT, SLEB, UNSIGNED, VLQ, ZIGZAG, VarintForm, varint_form
from wirekit.wire.arguments import at_least, one_of
from wirekit.wire.dollar_entries import refuse_unknown
from wirekit.wire.node import Node, Wrapping, check_names, load_number, unnamed
from wirekit.wire.stream import Reader, Scope, Writer

UNITS = ("s", "ms", "us", "ns")
UNPACKED = "iI"
"""Codes of integers of 3, 5, 6 and 7 bytes, for which struct has no letter: with sign and without."""
LEB128 = "leb128"


class Integer(construct.FormatField, Node):
    """An integer of 1 to 8 bytes, or a float of 4 or 8.

    For a NaN, ``$raw`` keeps the bytes, because Python and JSON do not distinguish the many NaNs.

    Args:
        endian: ``>`` or ``<``.
        code: the format character of ``struct``; with ``size``, ``i`` for a signed and ``I`` for an unsigned integer.
        size: 3, 5, 6 or 7 bytes, for which ``struct`` has no format character.
    """

    unit: str | None = None
    form: VarintForm | None = None

    def __init__(self, endian: str, code: str, size: int | None = None) -> None:
        one_of("Integer", "endian", endian, ("<", ">"))
        one_of("Integer", "code", code, tuple(UNPACKED if size is not None else "bhlqBHLQfd"))
        super().__init__(endian, code if size is None else "b")
        if size is not None:
            if size not in (3, 5, 6, 7):
                raise Misuse(f"size must be 3, 5, 6 or 7 bytes, not {size}")
            self.fmtstr, self.length = endian + code, size
        self.signed = code.islower()
        self.real = code in "fd"
        self.mask = (1 << 8 * self.length) - 1
        self.low = -(1 << 8 * self.length - 1) if self.signed else 0
        self.high = (1 << 8 * self.length - 1) - 1 if self.signed else self.mask

    def _parse(self, stream: Reader, context: Scope, path: str) -> Any:
        start = stream.position
        number = self._take_number(stream)
        if self.real and number != number:
            stream.note("raw", int.from_bytes(stream.buffer[start : stream.position], "big"))
        if stream.session.spans is not None:
            stream.span(start, "number")
        return number

    def read(self, stream: Reader, *names: str) -> int:
        """Reads the number as a part of a field, such as its length, count or tag, which has its own span."""
        start = stream.position
        number: int = self._take_number(stream)
        if names and stream.session.spans is not None:
            stream.span(start, names[-1].removeprefix("$"), *names)
        return number

    def _take_number(self, stream: Reader) -> Any:
        """Reads the number at the position, and moves past it."""
        start, size = stream.position, self.length
        if start + size > stream.limit:
            raise stream.short(size)
        stream.position = start + size
        if self.fmtstr[1] in UNPACKED:
            return self.unpack(bytes(stream.buffer[start : start + size]))
        return struct.unpack_from(self.fmtstr, stream.buffer, start)[0]

    def unpack(self, data: bytes) -> Any:
        """The number in bytes of exactly its size."""
        if self.fmtstr[1] in UNPACKED:
            return int.from_bytes(data, self._order, signed=self.signed)
        return struct.unpack(self.fmtstr, data)[0]

    @property
    def _order(self) -> Literal["little", "big"]:
        return "little" if self.fmtstr[0] == "<" else "big"

    def pack(self, value: Any) -> bytes:
        """The bytes of a number known to fit."""
        if self.fmtstr[1] in UNPACKED:
            data: bytes = value.to_bytes(self.length, self._order, signed=self.signed)
            return data
        return struct.pack(self.fmtstr, value)

    def write(self, value: Any, stream: Writer) -> bytes:
        """Writes a number known to fit, in as many bytes as it had when the number at the path was parsed."""
        return self.pack(value)

    def check(self, obj: Any, stream: Writer) -> Any:
        """The value, if it is a number that fits; else raises Wrong."""
        if self.real:
            if not isinstance(obj, (int, float)):
                raise stream.wrong("a number", shown(obj))
            try:
                self.pack(obj)
            except (struct.error, OverflowError):
                raise stream.wrong(f"a number that fits {self!r}", shown(obj)) from None
            return obj
        if isinstance(obj, bool) or not isinstance(obj, int):
            raise stream.wrong("an integer", shown(obj))
        if not self.low <= obj <= self.high:
            raise stream.wrong(f"an integer in {self.low}..{self.high}", obj)
        return obj

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        number = self.check(obj, stream)
        raw = stream.noted("raw") if self.real else None
        if raw is None or number == number:
            stream.write(self.write(number, stream))
            return obj
        data = self._nan(raw)
        if data is None:
            raise stream.wrong("the bytes of a NaN, as an integer, in $raw", shown(raw))
        stream.write(data)
        return obj

    def _nan(self, raw: Any) -> bytes | None:
        """The bytes of a NaN that an integer, in big-endian order, stands for; None if it is not one."""
        if not isinstance(raw, int) or not 0 <= raw <= self.mask:
            return None
        data = raw.to_bytes(self.length, "big")
        (number,) = struct.unpack(self.fmtstr, data)
        return data if number != number else None

    def load(self, obj: Any, context: Scope) -> Any:
        return load_real(obj) if self.real else load_integer(obj)

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
int24, uint24 = Integer(">", "i", 3), Integer(">", "I", 3)
int40, uint40 = Integer(">", "i", 5), Integer(">", "I", 5)
int48, uint48 = Integer(">", "i", 6), Integer(">", "I", 6)
int56, uint56 = Integer(">", "i", 7), Integer(">", "I", 7)
int24le, uint24le = Integer("<", "i", 3), Integer("<", "I", 3)
int40le, uint40le = Integer("<", "i", 5), Integer("<", "I", 5)
int48le, uint48le = Integer("<", "i", 6), Integer("<", "I", 6)
int56le, uint56le = Integer("<", "i", 7), Integer("<", "I", 7)
float32, float64 = Integer(">", "f"), Integer(">", "d")
float32le, float64le = Integer("<", "f"), Integer("<", "d")


class Varint(Integer):
    """An integer of variable size.

    By default, it consists of groups of 7 bits, least significant group first, with the high bit set if more follow.
    Unsigned, this is LEB128, as in protobuf and MQTT. A signed one is zigzag, as in Kafka (0, -1, 1, -2 are written as
    0, 1, 2, 3), or signed LEB128 in two's complement, as in DWARF and WebAssembly (-2 is ``7e``). In other unsigned
    forms, the most significant group comes first, or the first byte gives the size. A varint with more bytes than
    necessary is accepted, and ``$width`` stores the number of bytes; by default it is built in the fewest bytes. It may
    be a length or count prefix, also as the integer of a ``Length`` before the fields that it covers.

    Args:
        bits: 32 or 64: the size of the largest number; a QUIC integer has 62 at most.
        signed: whether it has a sign.
        zigzag: how the sign is written; False for two's complement.
        groups: the most bytes it may take, if it has groups; by default as many as ``bits`` needs.
        form: ``leb128``; ``vlq``: the most significant group first, as in MIDI files; ``quic``: RFC 9000, section 16;
            ``ber``: a definite length of ASN.1 (X.690, 8.1.3); ``lenenc``: a length-encoded integer of MySQL;
            ``compact_size``: that of Bitcoin.

    >>> from wirekit.wire import Struct, varint32
    >>> Struct("number" / varint32).members[0][1].pack(300).hex()
    'ac02'
    >>> Varint(64, form="ber").pack(300).hex()
    '82012c'
    """

    def __init__(
        self, bits: int, *, signed: bool = False, zigzag: bool = True, groups: int | None = None, form: str = LEB128
    ) -> None:
        if bits not in (32, 64):
            raise Misuse(f"a varint must have 32 or 64 bits, not {bits}")
        if groups is not None and not 1 <= groups <= 10:
            raise Misuse(f"a varint must have 1 to 10 bytes, not {groups}")
        one_of("Varint", "form", form, (LEB128, VLQ, *BY_FIRST_BYTE))
        if form != LEB128 and signed:
            raise Misuse(f"a varint of the form {form} has no sign")
        if form in BY_FIRST_BYTE and groups is not None:
            raise Misuse(f"a varint of the form {form} has no groups")
        super().__init__("<", {32: "l", 64: "q"}[bits] if signed else {32: "L", 64: "Q"}[bits])
        kind = form if form != LEB128 else (ZIGZAG if zigzag else SLEB) if signed else UNSIGNED
        if form in BY_FIRST_BYTE:
            groups, bits = max(size for *_, size in BY_FIRST_BYTE[form]), min(bits, 62 if form == QUIC else bits)
        else:
            groups = -(-bits // 7) if groups is None else groups
            bits = min(bits, 7 * groups)
        self.form: VarintForm = varint_form(kind, bits, groups)
        self.low = -(1 << self.form.bits - 1) if signed else 0
        self.high = (1 << self.form.bits - int(signed)) - 1

    def _take_number(self, stream: Reader) -> int:
        start = stream.position
        number, end = self.form.read(stream.buffer, start, stream.limit)
        if end == SHORT:
            raise stream.short(stream.limit - start + 1)
        if end == LONG:
            actual = bytes(stream.buffer[start : min(start + self.form.groups, stream.limit)]).hex()
            raise stream.wrong(f"a varint of at most {self.form.bits} bits in {self.form.groups} bytes", actual)
        stream.position = end
        if end - start != self.form.size(number):
            stream.note("width", end - start, wrapped=True)
        return number

    def pack(self, value: Any) -> bytes:
        return self.form.write(value)

    def write(self, value: Any, stream: Writer) -> bytes:
        width = stream.noted("width", wrapped=True)
        if width is not None and not 0 < width <= self.form.groups:
            raise stream.wrong(f"a size of 1 to {self.form.groups} bytes in $width", width)
        return self.form.write(value, width or 1)

    def __repr__(self) -> str:
        limited = self.form.kind not in BY_FIRST_BYTE and self.form.groups != -(-8 * self.length // 7)
        return f"{self.form.kind}{8 * self.length}{f' of at most {self.form.groups} bytes' if limited else ''}"


varint32, varint64 = Varint(32), Varint(64)
zigzag32, zigzag64 = Varint(32, signed=True), Varint(64, signed=True)
sleb32, sleb64 = Varint(32, signed=True, zigzag=False), Varint(64, signed=True, zigzag=False)


class Timestamp(Integer):
    """An 8-byte integer that counts time since the epoch, UTC.

    Arrow columns have a timestamp type for it; the decoded value is the integer.

    Args:
        number: the integer, of 8 bytes.
        unit: ``s``, ``ms``, ``us`` or ``ns``.

    >>> Timestamp(int64), Timestamp(int64).unit
    (int64, 'ms')
    """

    def __init__(self, number: Integer, *, unit: str = "ms") -> None:
        if number.real or number.form or number.length != 8 or unit not in UNITS:
            raise Misuse(f"a time must be an integer of 64 bits in {', '.join(UNITS)}, not {number!r} in {unit}")
        super().__init__(number.fmtstr[0], number.fmtstr[1])
        self.unit = unit


class Duration(Integer):
    """An integer that counts a span of time. Trees show it in words; the decoded value is the integer.

    Args:
        number: the integer, of 1, 2, 4 or 8 bytes.
        unit: ``s``, ``ms``, ``us`` or ``ns``.

    >>> Duration(int32), Duration(int32).counts
    (int32, 'ms')
    """

    def __init__(self, number: Integer, *, unit: str = "ms") -> None:
        if type(number) is not Integer or number.real or number.length not in (1, 2, 4, 8) or unit not in UNITS:
            raise Misuse(f"a duration must be a plain integer in {', '.join(UNITS)}, not {number!r} in {unit}")
        super().__init__(number.fmtstr[0], number.fmtstr[1])
        self.counts = unit


class Flag(Wrapping):
    """A boolean in an integer: 0 is false, all other values are true; true is written as 1."""

    def __init__(self, inner: Integer) -> None:
        super().__init__(_of_fixed_size(inner, "a flag"))

    def _parse(self, stream: Reader, context: Scope, path: str) -> bool:
        number = self.inner._parse(stream, context, path)
        if number not in (0, 1):
            stream.note("raw", number)
        return bool(number)

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        if not isinstance(obj, (bool, int)):
            raise stream.wrong("true or false", shown(obj))
        raw = stream.noted("raw")
        if raw is not None and (not isinstance(raw, int) or not raw):
            raise stream.wrong("an integer other than 0 in $raw", shown(raw))
        self.inner._build(raw if obj and raw else int(bool(obj)), stream, context, path)
        return obj


class Symbols(Wrapping):
    """An integer whose values have symbols.

    Args:
        inner: the integer.
        table: the symbols.
        closed: whether a value without a symbol is Wrong; by default it is accepted.
    """

    def __init__(self, inner: Integer, table: SymbolTable, *, closed: bool = False) -> None:
        super().__init__(_integer(inner, "a number with symbols"))
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
        return f"{self.table.name}: {first_of(list(self.table))}"

    def load(self, obj: Any, context: Scope) -> Any:
        return load_symbol(self.table, obj)


class Bit(Node):
    """A field of some bits inside ``Bits``.

    Args:
        width: number of bits.
        table: symbols of the values; a bit of width 1 without a table is a bool.
    """

    def __init__(self, width: int, table: SymbolTable | None = None) -> None:
        super().__init__()
        at_least("Bit", "width", width, 1)
        self.width = width
        self.mask = (1 << width) - 1
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
        if not isinstance(value, int) or not 0 <= value <= self.mask:
            raise stream.wrong(f"an integer in 0..{self.mask}", shown(value))
        return int(value)


class Bits(Wrapping):
    """Named bit fields inside one unsigned integer.

    Args:
        inner: the integer.
        fields: ``"name" / Bit(width)``; the widths add up to the integer's.
        order: ``lsb`` when the first field holds the least significant bits, ``msb`` when the most significant.
    """

    def __init__(self, inner: Integer, *fields: construct.Renamed, order: str) -> None:
        super().__init__(_of_fixed_size(inner, "a number with bit fields"))
        one_of("Bits", "order", order, ("lsb", "msb"))
        self.order = order
        self.fields: list[tuple[str, Bit, int]] = []
        shift = 0 if order == "lsb" else 8 * inner.length
        for field in fields:
            bit = unnamed(field)
            if not isinstance(field, construct.Renamed) or not isinstance(bit, Bit):
                raise Misuse(f"write a field of Bits as 'name' / Bit(width), not {field!r}")
            if order == "msb":
                shift -= bit.width
            self.fields.append((field.name, bit, shift))
            if order == "lsb":
                shift += bit.width
        if shift != (8 * inner.length if order == "lsb" else 0):
            raise Misuse(f"the bit fields must fill the {8 * inner.length} bits of {inner!r}")
        check_names([field.name for field in fields])
        self.docs_of = {field.name: field.docs for field in fields}
        self.record = record_type("Bits", tuple(field.name for field in fields))

    def _parse(self, stream: Reader, context: Scope, path: str) -> Record:
        start = stream.position
        record = self.unpack(self.inner.read(stream))
        if stream.session.spans is not None:
            for name, bit, shift in self.fields:
                stream.span(start, "bit", name, bits=(shift, bit.width))
            stream.span(start, "bits")
        return record

    def unpack(self, number: int) -> Record:
        """The record for the whole integer."""
        record = self.record._blank()
        record._extra = None
        for name, bit, shift in self.fields:
            setattr(record, name, bit.value(number >> shift & bit.mask))
        return record

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        number = self.pack(obj, stream)
        self.inner._build(number, stream, context, path)
        tables = [name for name, bit, _ in self.fields if bit.table]
        named = not isinstance(obj, int) and any(isinstance(field_of(obj, name), str) for name in tables)
        return self.unpack(number) if named else obj

    def pack(self, obj: Any, stream: Writer) -> int:
        """The whole integer for a record, a mapping or an integer."""
        if isinstance(obj, int):
            return obj
        if not isinstance(obj, (Record, Mapping)):
            raise stream.wrong("bit fields by name", shown(obj))
        if isinstance(obj, Mapping):
            refuse_unknown(obj, self.record._fields)
        number = 0
        for name, bit, shift in self.fields:
            stream.path.append(name)
            value = field_of(obj, name)
            number |= bit.number(0 if value is None else value, stream) << shift
            stream.path.pop()
        return number - (1 << 8 * self.inner.length) if number > self.inner.high else number

    def load(self, obj: Any, context: Scope) -> Any:
        if isinstance(obj, int):
            return self.unpack(obj)
        if plain_mapping(obj):
            refuse_unknown(obj, self.record._fields)
            return self.record(
                **{name: load_bit(bit.width, bit.table, obj.get(name, 0)) for name, bit, _ in self.fields}
            )
        return obj

    def default(self, context: Scope) -> Any:
        return self.unpack(0)


def _of_fixed_size(number: Integer, noun: str) -> Integer:
    if isinstance(number, Varint):
        raise Misuse(f"{noun} must be an integer of fixed size, not a {number!r}")
    return _integer(number, noun)


def _integer(number: Integer, noun: str) -> Integer:
    if number.real:
        raise Misuse(f"{noun} must be an integer, not a {number!r}")
    return number


def load_float(text: str) -> float:
    """The float in a string: JSON has no numbers for NaN and infinity."""
    try:
        return float(text)
    except ValueError:
        raise Misfit(f"a float must be a number, nan, inf or -inf, not {shown(text)}") from None


def load_real(value: Any) -> Any:
    """The float for its JSON form or that of a symbol; a value that is a float already is returned unchanged."""
    return load_float(value) if isinstance(value, str) else load_integer(value)


def load_integer(value: Any) -> Any:
    """The integer for its JSON form or that of a symbol; an integer is returned unchanged."""
    return value["value"] if plain_mapping(value) and "value" in value else value


def load_symbol(table: SymbolTable, value: Any) -> Any:
    """The symbol for a number, a name or its JSON form; a symbol is returned unchanged.

    Raises:
        Misfit: the symbol in the JSON form does not match its number.
    """
    if isinstance(value, str):
        return table[value]
    if not isinstance(value, int) and plain_mapping(value):
        number = load_number(value)
        if not isinstance(number, int):
            return number
        symbol, name = table(number), value.get("symbol")
        if name is not None and name != symbol.symbol:
            reason = "has no symbol" if symbol.symbol is None else f"is {symbol.symbol}"
            raise Misfit(f"{int(number)} {reason}, not {shown(name)}; pass the number or the symbol alone")
        return symbol
    return table(value) if isinstance(value, int) else value


def load_bit(width: int, table: SymbolTable | None, value: Any) -> Any:
    """The value of a bit field, for a number, a name or the JSON form."""
    if table is not None:
        return load_symbol(table, value)
    if not isinstance(value, int) and plain_mapping(value):
        value = load_number(value)
    return bool(value) if width == 1 else value
