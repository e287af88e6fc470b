"""Protobuf messages by descriptor, read byte by byte: presence, order and unknown fields are not lost.

The value is a record of all fields of the descriptor: None where an optional field is absent (a default is never
filled in), a list for a repeated field. ``$unknown`` has the fields that the descriptor lacks; a group among them is
Wrong, and a group in the descriptor is Misuse. If the canonical form of the value (fields by number, unknown fields
last, shortest varints) differs from the parsed bytes, ``$bytes`` keeps them, and they are written while the value is
unchanged.

Source: protobuf encoding guide, https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from wirekit.errors import Limit, Misfit, Misuse, WireError
from wirekit.values import Record, Symbol, SymbolTable, plain_mapping, record_type, shown, to_json
from wirekit.varints import ZIGZAG
from wirekit.wire import costs
from wirekit.wire.blobs import decode_text, encode_text
from wirekit.wire.dollar_entries import LARGEST_FIELD, OF_MESSAGE, load_bytes, load_extras
from wirekit.wire.node import load_number, load_part
from wirekit.wire.numbers import load_float
from wirekit.wire.stream import Reader, Session, Writer, join_path

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
LAST_BYTE = 0x80
LARGEST = 0xFFFFFFFFFFFFFFFF
set_extra = Record.__dict__["_extra"].__set__
"""Sets ``_extra`` of a record, without the ``__setattr__`` with which a sparse record checks names."""
_set_attribute = object.__setattr__
DEEPEST = 100  # messages inside of messages, as protobuf's own readers bound it

SIGNED = "signed"
_NAMES = {
    getattr(FieldDescriptor, name): name.removeprefix("TYPE_").lower()
    for name in dir(FieldDescriptor)
    if name.startswith("TYPE_")
}


class Kind(NamedTuple):
    """A type of fields.

    Attributes:
        wire_type: its wire type.
        bits: the size of the number in a varint.
        sign: ``SIGNED`` for two's complement, ``ZIGZAG``, or "" for a number without sign.
        fixed: struct's format of a number of fixed size.
        dtype: numpy's type of a number.
    """

    wire_type: int
    bits: int = 64
    sign: str = ""
    fixed: str = ""
    dtype: str = ""


KINDS = {
    "double": Kind(FIXED64, fixed="<d", dtype="float64"),
    "float": Kind(FIXED32, fixed="<f", dtype="float32"),
    "int32": Kind(VARINT, 32, SIGNED, dtype="int32"),
    "int64": Kind(VARINT, 64, SIGNED, dtype="int64"),
    "uint32": Kind(VARINT, 32, dtype="uint32"),
    "uint64": Kind(VARINT, 64, dtype="uint64"),
    "sint32": Kind(VARINT, 32, ZIGZAG, dtype="int32"),
    "sint64": Kind(VARINT, 64, ZIGZAG, dtype="int64"),
    "fixed32": Kind(FIXED32, fixed="<I", dtype="uint32"),
    "fixed64": Kind(FIXED64, fixed="<Q", dtype="uint64"),
    "sfixed32": Kind(FIXED32, sign=SIGNED, fixed="<i", dtype="int32"),
    "sfixed64": Kind(FIXED64, sign=SIGNED, fixed="<q", dtype="int64"),
    "bool": Kind(VARINT, 1),
    "enum": Kind(VARINT, 32, SIGNED, dtype="int32"),
    "string": Kind(BYTES),
    "bytes": Kind(BYTES),
    "message": Kind(BYTES),
}
"""The types of fields by name; groups are refused."""


class Field:
    """One field of a message, as the walker needs it."""

    __slots__ = (
        "bits", "dtype", "fixed", "high", "kind", "low", "message", "name", "number", "repeated", "required", "sign",
        "table", "wire_type",
    )  # fmt: skip

    def __init__(self, descriptor: FieldDescriptor, message: Message | None, table: SymbolTable | None) -> None:
        self.name: str = descriptor.name
        self.number: int = descriptor.number
        self.kind: str = _NAMES[descriptor.type]
        self.repeated, self.required = _cardinality(descriptor)
        self.message = message
        self.table = table
        self.wire_type, self.bits, self.sign, self.fixed, self.dtype = KINDS[self.kind]
        self.low = -(1 << self.bits - 1) if self.sign else 0
        self.high = (1 << self.bits - bool(self.sign)) - 1


def _cardinality(descriptor: FieldDescriptor) -> tuple[bool, bool]:
    """Whether a field is repeated, and whether it is required."""
    try:
        return descriptor.is_repeated, descriptor.is_required
    except AttributeError:  # protobuf before 6.31; ``label`` ends with 7
        label = cast("Any", descriptor).label
        return label == FieldDescriptor.LABEL_REPEATED, label == FieldDescriptor.LABEL_REQUIRED


class Message:
    """A message type: its fields by number, its record class.

    All attributes but the name are computed at first use, because few of the nested messages ever occur.
    """

    by_full_name: ClassVar[dict[str, Message]] = {}

    def __init__(self, descriptor: Descriptor) -> None:
        self.name: str = descriptor.full_name
        Message.by_full_name[self.name] = self
        self.selector = ""
        self._descriptor = descriptor

    @cached_property
    def fields(self) -> dict[int, Field]:
        """The fields by number, in the order of the numbers."""
        fields = {}
        for field in sorted(self._descriptor.fields, key=lambda field: int(field.number)):
            message = Message.of(field.message_type) if field.message_type is not None else None
            table = symbols_of(field.enum_type) if field.enum_type is not None else None
            fields[field.number] = Field(field, message, table)
        return fields

    @cached_property
    def by_name(self) -> dict[str, Field]:
        """The fields by name."""
        return {field.name: field for field in self.fields.values()}

    @cached_property
    def record(self) -> type[Record]:
        """The class of records of this type."""
        return record_type(self._descriptor.name, tuple(self.by_name), sparse=True)

    @cached_property
    def lists(self) -> list[str]:
        """The names of repeated fields."""
        return [field.name for field in self.fields.values() if field.repeated]

    @cached_property
    def cost(self) -> int:
        """Memory of a record in bytes, without its values."""
        return costs.SPARSE + 3 * costs.SLOT * len(self.fields) + costs.LIST * len(self.lists)

    @cached_property
    def required(self) -> list[Field]:
        """The required fields."""
        return [field for field in self.fields.values() if field.required]

    @cached_property
    def selected(self) -> dict[int, Field]:
        """The fields of which the selector may hold the number; its table, if it has one, names the number."""
        table = self.by_name[self.selector].table
        return {number: field for number, field in self.fields.items() if table is None or number in table}

    @property
    def least(self) -> int:
        """The minimal size of a message that readers accept, in bytes; a field takes at least two."""
        table = self.by_name[self.selector].table if self.selector else None
        selects = table is not None and all(symbol in self.fields for symbol in table)
        return 2 * (len(self.required) + selects)

    @classmethod
    def of(cls, descriptor: Descriptor) -> Message:
        """The message type of a descriptor, made once."""
        return cls.by_full_name.get(descriptor.full_name) or cls(descriptor)


def refuse_fields(descriptor: Descriptor, visited: set[str]) -> None:
    """Raises Misuse for a message with a field that no engine reads, also in a nested message.

    That is a group, or a field with the name of an attribute that records need.
    """
    if descriptor.full_name in visited:
        return
    visited.add(descriptor.full_name)
    for field in descriptor.fields:
        if field.type == FieldDescriptor.TYPE_GROUP:
            raise Misuse(f"{field.full_name} is a group; wirekit does not decode groups: declare a message instead")
        if field.name.startswith("_") and hasattr(Record, field.name):
            raise Misuse(f"{field.full_name} has the name of an attribute of all records: choose another name")
        if field.message_type is not None:
            refuse_fields(field.message_type, visited)


def symbols_of(enum: Any) -> SymbolTable:
    """The symbol table of a protobuf enum."""
    return SymbolTable(enum.full_name, {value.number: value.name for value in enum.values})


def parse_message(message: Message, stream: Reader) -> Record:
    """Reads fields up to the limit.

    Raises:
        Limit: for messages nested more than ``DEEPEST`` deep.
    """
    stream.charge(message.cost)
    record, contents = blank(message)
    unknown: list[dict[str, Any]] = []
    begin, last = stream.position, 0
    outer, stream.plain = stream.plain, True
    session, buffer, fields = stream.session, stream.buffer, message.fields
    names, tracing = session.path, session.spans is not None
    depth = len(names)
    try:
        while stream.position < stream.limit:
            start = stream.position
            tag = buffer[start]
            if tag < LAST_BYTE:
                stream.position = start + 1
            else:
                tag = _varint(stream)
            number, wire_type = tag >> 3, tag & 7
            field_ = fields.get(number)
            if field_ is None or (wire_type != field_.wire_type and not _is_packed(field_, wire_type)):
                stream.plain = False
                stream.span(start, "tag", "$unknown", len(unknown), "$tag")
                stream.charge(costs.UNKNOWN)
                unknown.append(_unknown(number, wire_type, stream, len(unknown)))
                continue
            if number < last or (number == last and not field_.repeated):
                stream.plain = False
            last = number
            stream.charge(costs.BYTES)
            names.append(field_.name)
            if field_.repeated:
                _append(field_, wire_type, stream, contents[field_.name], start)
            else:
                if tracing:
                    stream.span(start, "tag", "$tag")
                contents[field_.name] = _value(field_, stream)
            names.pop()
    except WireError as error:
        if len(names) > depth and error.partial is not None:
            name = str(names[depth])
            if name in message.lists:
                contents[name].append(error.partial)
            else:
                contents[name] = error.partial
        error.partial = record
        raise
    finally:
        if tracing:
            stream.span(begin, "record", depth=depth)
    extra: dict[str, Any] = {}
    if unknown:
        extra["unknown"] = unknown
    for name, expected, stored in refused(message, record.get):
        names.append(name)
        stream.check("required", stored, None, False, begin, f"readers expect {expected}", end=stream.position)
        names.pop()
        extra.setdefault("keep", []).append(name)
    if extra or not stream.plain:
        stream.charge(costs.EXTRAS)
    if extra:
        record._extra = extra
    if not stream.plain:
        data = bytes(stream.buffer[begin : stream.position])
        writer = Writer(stream.session.protocol, stream.session.limits)
        writer.parsed = True
        if build_message(message, record, writer) != data:
            stream.charge(len(data))
            extra["bytes"] = data
            record._extra = extra
    stream.plain = outer
    return record


def blank(message: Message) -> tuple[Record, dict[str, Any]]:
    """An empty record, with empty lists, and the dict of its fields.

    The dict is created here, because the one that Python creates for attributes may reserve space for thirty.
    """
    record = message.record._blank()
    contents: dict[str, Any] = {name: [] for name in message.lists}
    set_extra(record, None)
    _set_attribute(record, "__dict__", contents)
    return record, contents


def refused(message: Message, get: Callable[[str], Any]) -> Iterator[tuple[str, str, int | None]]:
    """The reasons for which readers refuse a message: (field, expected value, the number in its place or None)."""
    for field in message.required:
        value = get(field.name)
        if value is None:
            yield field.name, f"a value, because {message.name} requires it", None
        elif field.table is not None and isinstance(value, int) and value not in field.table:
            yield field.name, f"a value of {field.table.name}, because readers take any other as missing", int(value)
    if message.selector:
        value = get(message.selector)
        table = message.by_name[message.selector].table
        if table is not None and isinstance(value, str):
            value = table[value]
        selected = message.selected.get(value) if isinstance(value, int) else None
        content = None if selected is None else get(selected.name)
        if selected is not None and (content is None or (isinstance(content, list) and not content)):
            yield selected.name, f"a value, because {message.selector} {value} requires it", None


def _is_packed(field: Field, wire_type: int) -> bool:
    """Whether a field has another wire type because the numbers of a list are packed."""
    return field.repeated and wire_type == BYTES and field.wire_type != BYTES


def _append(field: Field, wire_type: int, stream: Reader, items: list[Any], start: int) -> None:
    names = stream.session.path
    if wire_type == field.wire_type:
        names.append(len(items))
        stream.span(start, "tag", "$tag")
        items.append(_value(field, stream))
        names.pop()
        return
    stream.plain = False
    stream.span(start, "tag", "$tag")
    size = _length(stream)
    end = stream.position + size
    outer, stream.limit = stream.limit, end
    while stream.position < end:
        names.append(len(items))
        items.append(_value(field, stream))
        stream.charge(costs.NUMBER)
        names.pop()
    stream.limit = outer


def _varint(stream: Reader) -> int:
    start = stream.position
    if start < stream.limit:
        value = stream.buffer[start]
        if value < LAST_BYTE:
            stream.position = start + 1
            return value
    value = shift = 0
    while True:
        if stream.position >= stream.limit:
            error = stream.short(1)
            stream.position = start
            raise error
        byte = stream.buffer[stream.position]
        stream.position += 1
        value |= (byte & 0x7F) << shift
        if byte < LAST_BYTE:
            if byte == 0 or value > LARGEST:
                stream.plain = False
            return value & LARGEST
        shift += 7
        if shift > 63:
            stream.position = start
            raise stream.wrong("a varint of at most 10 bytes", "a longer one", start)


def _length(stream: Reader, *names: str | int) -> int:
    start = stream.position
    size = _varint(stream)
    if stream.session.spans is not None:
        stream.span(start, "length", *names, "$length")
    if size > stream.limit - stream.position:
        raise stream.short(size)
    return size


def _value(field: Field, stream: Reader) -> Any:
    start, tracing = stream.position, stream.session.spans is not None
    if field.wire_type == VARINT:
        raw = _varint(stream)
        if tracing:
            stream.span(start, "number")
        if raw < LAST_BYTE and field.table is not None:
            return field.table(raw)
        number = number_of(field, raw)
        if encoded_number(field, number) != raw:
            stream.plain = False
        return number
    if field.fixed:
        stream.plain = stream.plain and field.fixed[1] not in "df"
        data = stream.take(struct.calcsize(field.fixed))
        stream.span(start, "number")
        return struct.unpack(field.fixed, data)[0]
    size = LAST_BYTE if tracing or start >= stream.limit else stream.buffer[start]
    if size < LAST_BYTE:
        stream.position = start + 1
    else:
        size = _varint(stream)
        if tracing:
            stream.span(start, "length", "$length")
    if field.message is not None:
        return _nested(field.message, stream, size)
    start = stream.position
    data = stream.take(size)
    text = field.kind == "string"
    if tracing:
        stream.span(start, "text" if text else "bytes")
    return decode_text(data, stream, start) if text else data


def _nested(message: Message, stream: Reader, size: int) -> Record:
    """A message of ``size`` bytes in a field; if fewer are left, Short has those as its partial value."""
    if stream.messages == DEEPEST:
        raise Limit("messages", DEEPEST, DEEPEST + 1, **stream.where())
    begin, outer, before = stream.position, stream.limit, stream.cut
    stream.limit = min(begin + size, outer)
    stream.cut = outer if begin + size > outer else -1
    stream.messages += 1
    try:
        value = parse_message(message, stream)
    finally:
        stream.messages -= 1
        stream.limit, stream.cut = outer, before
    if begin + size > outer:
        stream.position = begin
        error = stream.short(size)
        stream.position, error.partial = outer, value
        raise error
    return value


def number_of(field: Field, raw: int) -> Any:
    """The value that a varint encodes."""
    if field.kind == "bool":
        return bool(raw)
    bits = field.bits
    value = raw & (1 << bits) - 1
    if field.sign == ZIGZAG:
        return value >> 1 ^ -(value & 1)
    if field.sign and value >> bits - 1:
        value -= 1 << bits
    return field.table(value) if field.table is not None else value


def encoded_number(field: Field, number: Any) -> int:
    """The varint that encodes a number."""
    if field.sign == ZIGZAG:
        return (number << 1 ^ number >> field.bits - 1) & LARGEST
    return int(number) & LARGEST


def _unknown(number: int, wire_type: int, stream: Reader, index: int) -> dict[str, Any]:
    start = stream.position
    if not 1 <= number <= LARGEST_FIELD:
        raise stream.wrong(f"a field number of 1 to {LARGEST_FIELD}", number)
    value: Any
    size = 0
    if wire_type in (FIXED64, FIXED32):
        size = 8 if wire_type == FIXED64 else 4
    elif wire_type == BYTES:
        size = _length(stream, "$unknown", index)
    elif wire_type != VARINT:
        raise stream.wrong("a wire type of 0, 1, 2 or 5", wire_type, start)
    start = stream.position
    value = _varint(stream) if wire_type == VARINT else stream.take(size).hex()
    stream.span(start, "number" if wire_type == VARINT else "bytes", "$unknown", index)
    return {"number": number, "wire_type": wire_type, "value": value}


def build_message(message: Message, obj: Any, stream: Writer) -> bytes:
    """The bytes of a record or mapping; the parsed bytes if the value is unchanged.

    Raises:
        Limit: for messages nested more than ``DEEPEST`` deep.
    """
    values: Mapping[str, Any]
    if isinstance(obj, Record):
        values, extra = obj.__dict__ if obj._sparse else dict(obj._pairs()), obj._extra or {}
    elif isinstance(obj, Mapping):
        values = {name: value for name, value in obj.items() if not name.startswith("$")}
        extra = load_extras(obj, message.by_name, OF_MESSAGE) or {}
    else:
        raise stream.wrong(f"a {message.name}", shown(obj))
    original = extra.get("bytes")
    if original is not None and (stream.parsed or _decodes_to(message, original, values, stream)):
        return bytes(original)
    for name in values:
        if name not in message.by_name:
            raise stream.wrong(f"a field of {message.name}", f"a field {shown(name)}")
    for name, expected, stored in refused(message, values.get):
        if name not in extra.get("keep", ()):
            stream.path.append(name)
            raise stream.wrong(expected, "nothing" if stored is None else stored)
    out = bytearray()
    for field in sorted((message.by_name[name] for name in values), key=_number_of):
        value = values[field.name]
        stream.path.append(field.name)
        if value is None:
            pass
        elif field.repeated:
            if not isinstance(value, (list, tuple)):
                raise stream.wrong("a list", shown(value))
            for index, item in enumerate(value):
                stream.path.append(index)
                _write(out, field, item, stream)
                stream.path.pop()
        else:
            _write(out, field, value, stream)
        stream.path.pop()
    for entry in extra.get("unknown", ()):
        _write_unknown(out, entry)
    return bytes(out)


_number_of = operator.attrgetter("number")


def _decodes_to(message: Message, data: bytes, values: Mapping[str, Any], stream: Writer) -> bool:
    """Whether bytes decode to exactly these values."""
    reader = Reader(Session("", stream.limits), data)
    reader.messages = stream.messages
    try:
        record = parse_message(message, reader)
    except WireError:
        return False
    present = {name: value for name, value in values.items() if value is not None}
    parsed = {name: value for name, value in record._pairs() if value is not None}
    return all(to_json(parsed.get(name)) == to_json(value) for name, value in present.items()) and all(
        name in present or value == [] for name, value in parsed.items()
    )


def _put_varint(out: bytearray, value: int) -> None:
    value &= 0xFFFFFFFFFFFFFFFF
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _write(out: bytearray, field: Field, value: Any, stream: Writer) -> None:
    _put_varint(out, field.number << 3 | field.wire_type)
    if field.wire_type == VARINT:
        _put_varint(out, _raw(field, value, stream))
    elif field.fixed:
        try:
            out += struct.pack(field.fixed, value)
        except (struct.error, OverflowError):
            raise stream.wrong("a number that fits", shown(value)) from None
    else:
        data = _content(field, value, stream)
        _put_varint(out, len(data))
        out += data


def _raw(field: Field, value: Any, stream: Writer) -> int:
    if field.table is not None and isinstance(value, str):
        value = field.table[value]
    if not isinstance(value, int):
        raise stream.wrong("an integer", shown(value))
    if field.kind == "bool":
        return int(bool(value))
    if not field.low <= value <= field.high:
        raise stream.wrong(f"an integer in {field.low}..{field.high}", value)
    return encoded_number(field, value)


def _content(field: Field, value: Any, stream: Writer) -> bytes:
    if field.message is not None:
        if stream.messages == DEEPEST:
            where = {"protocol": stream.protocol, "path": join_path(stream.path)}
            raise Limit("messages", DEEPEST, DEEPEST + 1, **where)
        stream.messages += 1
        data = build_message(field.message, value, stream)
        stream.messages -= 1
        return data
    if field.kind == "string":
        if not isinstance(value, str):
            raise stream.wrong("a string", shown(value))
        return encode_text(value, stream)
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise stream.wrong("bytes", shown(value))
    return bytes(value)


def _write_unknown(out: bytearray, entry: Mapping[str, Any]) -> None:
    wire_type = entry["wire_type"]
    _put_varint(out, entry["number"] << 3 | wire_type)
    if wire_type == VARINT:
        _put_varint(out, entry["value"])
        return
    data = bytes.fromhex(entry["value"])
    if wire_type == BYTES:
        _put_varint(out, len(data))
    out += data


def load_message(message: Message, obj: Any, depth: int = 0) -> Any:
    """The record for a JSON object, which ``depth`` messages enclose.

    Raises:
        Misuse: for a field that the message lacks, and for messages nested more than ``DEEPEST`` deep.
    """
    if not plain_mapping(obj):
        return obj
    if depth > DEEPEST:
        raise Misuse(f"a {message.name} inside of more than {DEEPEST} other messages")
    record = message.record()
    for field in message.fields.values():
        value = obj.get(field.name)
        if value is not None:
            setattr(record, field.name, load_part(field.name, partial(_load_field, field), value, depth))
        elif field.repeated:
            setattr(record, field.name, [])
    for name in obj:
        if not str(name).startswith("$") and name not in message.by_name:
            raise Misfit(f"{message.name} has no field {shown(name)}; it has {', '.join(message.by_name) or 'none'}")
    record._extra = load_extras(obj, message.by_name, OF_MESSAGE)
    return record


def _load_field(field: Field, value: Any, depth: int) -> Any:
    if not field.repeated:
        return _load_value(field, value, depth)
    if not isinstance(value, (list, tuple)):
        raise Misfit(f"expected a list, not {shown(value)}")
    load = partial(_load_value, field)
    return [load_part(index, load, item, depth) for index, item in enumerate(value)]


def _load_value(field: Field, value: Any, depth: int) -> Any:
    if field.message is not None:
        return load_message(field.message, value, depth + 1)
    if field.table is not None and not isinstance(value, Symbol):
        number = load_number(value) if plain_mapping(value) else value
        if isinstance(number, str):
            return field.table[number]
        return field.table(number) if isinstance(number, int) else number
    if field.kind == "bytes" and isinstance(value, str):
        return load_bytes(value)
    if field.kind in ("double", "float") and isinstance(value, str):
        return load_float(value)
    return value
