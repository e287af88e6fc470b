"""Integers and floats, and numbers with a meaning: times, flags, names for values, bit fields."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import construct

from wirekit.errors import Misfit, Misuse
from wirekit.values import Record, Symbol, SymbolTable, field_of, record_type, shown
from wirekit.wire.node import Node, Wrapping, check_names, load_number, unnamed
from wirekit.wire.stream import Reader, Scope, Writer

UNITS = ("s", "ms", "us", "ns")


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
        check_names([field.name for field in fields])
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
            value = field_of(obj, name)
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


def load_float(text: str) -> float:
    """The float that stands in a string, where JSON has no number for it."""
    try:
        return float(text)
    except ValueError:
        raise Misfit(f"a number is written as a number, nan, inf or -inf, not {shown(text)}") from None
