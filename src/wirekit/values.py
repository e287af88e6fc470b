"""The values that decoding returns and encoding accepts, and their JSON mapping.

A value is plain: int, float, str, bytes, bool, None, list, ``Symbol`` (an int that knows its name) and ``Record``
(named fields with attribute access). This module is independent of layouts; ``from_json``, which needs them, is in
``wirekit.encoding``.

JSON mapping, both ways: bytes are lower-case hex, a symbol is ``{"value": 3, "symbol": "LZ4"}`` (a bare number is
accepted on input), a record is an object, integers of any size are JSON integers. Details that a plain value lacks are
stored in the ``extra`` of a record and appear under names that start with ``$``:

``$keep``      names of lengths and checks to write unchanged instead of computing them
``$trailing``  {path: hex} bytes left over inside a length, which no field explains
``$width``     {path: int} size in bytes of a varint that is longer than necessary
``$raw``       {path: int} a length or flag written in an unusual way (null as -2, true as 7), the bytes of a NaN;
               {path: hex} the bytes of a text or custom value that would be encoded differently
``$bytes``     hex of a protobuf message in non-canonical form
``$unknown``   protobuf fields that the descriptor does not know
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import math
import re
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeGuard, cast

from wirekit.errors import LARGEST_PRINTED, Misuse, printed

CONTROLS = ((0x7F, 0x9F), (0x61C, 0x61C), (0x200E, 0x200F), (0x2028, 0x202E), (0x2066, 0x2069))
"""First and last of the code points beyond ASCII's controls that a terminal may obey (ISO 6429) or that turn the order
of the text around them (Unicode's bidirectional controls)."""
_ESCAPED = re.compile(f"[{''.join(f'{chr(first)}-{chr(last)}' for first, last in CONTROLS)}\ud800-\udfff]")
_ENCODED = json.JSONEncoder(ensure_ascii=False).encode
SHOWN = 80  # characters of a value in an error
SHOWN_OF_ARGUMENT = 200
LONGEST_NUMBER = 20
_BYTES = re.compile(r"(\d{1,19})(?:\.(\d{1,19}))? ?(?:([kmgtp])(?:i?b)?|(b))?", re.ASCII | re.IGNORECASE)
EXTRAS = ("keep", "trailing", "raw", "width", "bytes", "unknown")


class SymbolTable:
    """Names and descriptions of the values of one integer field.

    Args:
        name: the name of the enumeration, for example ``compression_codec``.
        entries: {value: symbol} or {value: (symbol, description)}.

    Raises:
        Misuse: an entry has another form, or its symbol is not printable.

    >>> codecs = SymbolTable("codec", {0: "NONE", 3: ("LZ4", "LZ4 frame")})
    >>> codecs(3).symbol, codecs(3).description, codecs(9).symbol
    ('LZ4', 'LZ4 frame', None)
    >>> codecs["LZ4"]
    <LZ4: 3>
    """

    __slots__ = ("_by_name", "_by_value", "name")

    def __init__(self, name: str, entries: Mapping[int, str | tuple[str, str]]) -> None:
        self.name = name
        self._by_value: dict[int, Symbol] = {}
        self._by_name: dict[str, Symbol] = {}
        if not isinstance(entries, Mapping):
            raise Misuse(f"SymbolTable: entries of {name} must be a mapping from numbers, not {entries!r}")
        for value, entry in entries.items():
            symbol, description = entry if isinstance(entry, tuple) and len(entry) == 2 else (entry, "")
            if not all(map(isinstance, (value, symbol, description), (int, str, str))):
                raise Misuse(
                    f"SymbolTable: entries of {name} must be number: symbol or number: (symbol, description), "
                    f"not {value!r}: {entry!r}"
                )
            if not symbol.isprintable():
                raise Misuse(f"SymbolTable: the names of {name} must be printable text, not {symbol!r}")
            member = Symbol(value, symbol, description)
            self._by_value[value] = member
            self._by_name.setdefault(symbol, member)

    def __call__(self, value: int) -> Symbol:
        """The member for a value; for a value without a name, a symbol whose ``symbol`` is None."""
        member = self._by_value.get(value)
        return Symbol(value, None, "") if member is None else member

    def __getitem__(self, name: str) -> Symbol:
        """The member with a name; if there is none, Misuse lists the names."""
        try:
            return self._by_name[name]
        except KeyError:
            raise Misuse(f"{self.name} has no symbol {shown(name)}; it has {', '.join(self._by_name)}") from None

    def __contains__(self, value: object) -> bool:
        return value in self._by_value

    def __iter__(self) -> Iterator[Symbol]:
        return iter(self._by_value.values())

    def __len__(self) -> int:
        return len(self._by_value)

    def __repr__(self) -> str:
        return f"SymbolTable({self.name!r}, {len(self)} symbols)"


class Symbol(int):
    """An integer of an enumeration, equal to the plain integer.

    Attributes:
        symbol: its name; None for a value without a name.
        description: its meaning; "" if the table gives none.

    >>> Symbol(3, "LZ4", "LZ4 frame") == 3, str(Symbol(3, "LZ4")), str(Symbol(9))
    (True, 'LZ4 (3)', '9')
    """

    symbol: str | None = None
    description: str = ""

    def __new__(cls, value: int, symbol: str | None = None, description: str = "") -> Symbol:
        self = super().__new__(cls, value)
        if symbol is not None:  # one without a name is common in damaged data, and small without attributes of its own
            self.symbol = symbol
            self.description = description
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Symbol, (int(self), self.symbol, self.description)

    def __repr__(self) -> str:
        return f"<{self.symbol or 'unknown'}: {int(self)}>"

    def __str__(self) -> str:
        return f"{self.symbol} ({int(self)})" if self.symbol else str(int(self))


class _RecordType(type):
    """The class of record classes: it makes records, so that they need no ``__init__``.

    Attributes:
        _blank: makes a record without any field set, not even ``_extra``; generated code sets them all.
    """

    _blank: Callable[[], Any]

    def __init__(cls, name: str, bases: tuple[type, ...], attributes: dict[str, Any]) -> None:
        super().__init__(name, bases, attributes)
        cls._blank = type.__call__.__get__(cls)

    def __call__(cls, /, **values: Any) -> Any:
        record = cls._blank()
        record._extra = None
        for name, value in values.items():
            if name not in record._fields:
                raise Misuse(f"{cls.__name__} has no field {name!r}; it has {', '.join(record._fields) or 'none'}")
            setattr(record, name, value)
        return record


class Record(metaclass=_RecordType):
    """Named fields of one structure, in wire order, with attribute and item access.

    ``record_type`` creates the subclasses. A field that decoding did not reach is not set and raises AttributeError; in
    a sparse record it is None. Two records are equal if their set fields and extras are equal, regardless of the names
    of their types; so is a mapping with the same content. A field may have the name of a method: the attribute is then
    the field, and ``Record.keep(record, "crc")`` calls the method.

    A record is a ``collections.abc.Mapping`` of its set fields, a sparse record of all fields; but it is true even if
    it is empty. ``to_json`` converts it for ``json.dumps``.

    >>> Point = record_type("Point", ("x", "y"))
    >>> p = Point(x=1, y=2)
    >>> p.x, p["y"], p == {"x": 1, "y": 2}
    (1, 2, True)
    >>> dict(p), list(p), len(p), isinstance(p, Mapping)
    ({'x': 1, 'y': 2}, ['x', 'y'], 2, True)
    """

    __slots__ = ("_extra",)
    _fields: ClassVar[tuple[str, ...]] = ()
    _sparse: ClassVar[bool] = False

    if TYPE_CHECKING:
        _extra: dict[str, Any] | None

        def __init__(self, **values: Any) -> None: ...
        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

    def __delattr__(self, name: str) -> None:
        try:
            super().__delattr__(name)
        except AttributeError:
            if not self._sparse or name not in self._fields:  # of a sparse record any field may be absent
                raise

    @property
    def extra(self) -> dict[str, Any]:
        """Details that the fields lack, by the names of docs/json.md without ``$``; empty for most records."""
        return self._beside()

    def _beside(self) -> dict[str, Any]:
        """``extra``; works even if a field has the name ``extra``."""
        if self._extra is None:
            self._extra = {}
        return self._extra

    def keep(self, *names: str) -> None:
        """Makes ``encode`` write these lengths or checks unchanged instead of computing them.

        Raises:
            Misuse: the record has no field of such a name.
        """
        for name in names:
            if name not in self._fields:
                raise Misuse(f"{type(self).__name__} has no field {name!r}; it has {', '.join(self._fields) or 'none'}")
        listed: list[str] = self._beside().setdefault("keep", [])
        listed.extend(name for name in names if name not in listed)

    def _pairs(self) -> Iterator[tuple[str, Any]]:
        """(name, value) of the fields that are set, in wire order; works even if a field has the name ``items``."""
        for name in self._fields:
            try:
                yield name, getattr(self, name)
            except AttributeError:
                continue

    def _shown(self) -> Iterator[tuple[str, Any]]:
        """The pairs to display: for a sparse record, only the present ones."""
        for name, value in self._pairs():
            if not (self._sparse and (value is None or value == [])):
                yield name, value

    def items(self) -> ItemsView[str, Any]:
        """(name, value) of the fields that are set, in wire order."""
        return ItemsView(self._as_mapping())

    def keys(self) -> KeysView[str]:
        """Names of the fields that are set, in wire order."""
        return KeysView(self._as_mapping())

    def values(self) -> ValuesView[Any]:
        """Values of the fields that are set, in wire order."""
        return ValuesView(self._as_mapping())

    def _as_mapping(self) -> Mapping[str, Any]:
        """The record itself, for type checkers, which do not know that it is registered as a mapping."""
        return cast("Mapping[str, Any]", self)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._pairs())

    def __len__(self) -> int:
        return sum(1 for _ in self._pairs())

    def __bool__(self) -> bool:
        return True

    def get(self, name: str, default: Any = None) -> Any:
        """The field's value, or the default if it is not set or does not exist."""
        return getattr(self, name, default) if name in self._fields else default

    _get = get  # safe when a field is called so

    def __getitem__(self, name: str) -> Any:
        if name not in self._fields:
            raise KeyError(name)
        try:
            return getattr(self, name)
        except AttributeError:
            raise KeyError(name) from None

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self, name, value)

    def __contains__(self, name: object) -> bool:
        return name in self._fields and hasattr(self, str(name))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Record):
            return dict(self._pairs()) == dict(other._pairs()) and (self._extra or {}) == (other._extra or {})
        if isinstance(other, Mapping):
            mine: dict[str, Any] = dict(self._pairs())
            mine.update({f"${name}": value for name, value in (self._extra or {}).items()})
            return mine == dict(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # a record is mutable

    def __reduce__(self) -> tuple[Any, ...]:
        values = self.__dict__ if self._sparse else dict(self._pairs())
        return _restore, (type(self).__name__, self._fields, self._sparse, values, self._extra)

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={value!r}" for name, value in self._shown())
        extra = "".join(f", ${name}={value!r}" for name, value in (self._extra or {}).items())
        return f"{type(self).__name__}({inner}{extra})"


Mapping.register(Record)


@functools.cache
def record_type(name: str, fields: tuple[str, ...], *, sparse: bool = False) -> type[Record]:
    """The record class with these fields; the same arguments give the same class.

    Args:
        name: the name of the class.
        fields: names in wire order.
        sparse: whether the format has presence: fields that are not set are None, and JSON leaves out those that are
            None or an empty list. Such a record takes time and memory for the fields that are set, not for all.
    """
    attributes: dict[str, Any] = {"_fields": fields, "_sparse": sparse, "__module__": __name__}
    if sparse:
        attributes.update(dict.fromkeys(fields), __slots__=("__dict__",), __setattr__=_set_present)
    else:
        attributes["__slots__"] = fields
    return cast("type[Record]", _RecordType(name, (Record,), attributes))


def _set_present(record: Record, name: str, value: Any) -> None:
    """``setattr`` of a sparse record, which has no slots that would refuse other names."""
    if name != "_extra" and name not in record._fields:
        raise AttributeError(f"{type(record).__name__} has no field {name!r}")
    object.__setattr__(record, name, value)


def pairs(value: Record | Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """(name, value) of the fields of a record or a mapping."""
    return value._pairs() if isinstance(value, Record) else value.items()


def plain_mapping(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether an object is a mapping other than a record: the JSON form of a value, which loading converts."""
    return value.__class__ is dict or (isinstance(value, Mapping) and not isinstance(value, Record))


def field_of(value: Record | Mapping[str, Any], name: str, default: Any = None) -> Any:
    """A field of a record or a mapping, or the default if it is absent."""
    return value._get(name, default) if isinstance(value, Record) else value.get(name, default)


def _restore(
    name: str, fields: tuple[str, ...], sparse: bool, values: dict[str, Any], extra: dict[str, Any] | None
) -> Record:
    record = record_type(name, fields, sparse=sparse)(**values)
    record._extra = extra
    return record


class Check(NamedTuple):
    """The verdict of one check, such as that of a checksum, a redundant length, a constant or a codec.

    Attributes:
        path: the checked field.
        kind: the name of a checksum such as ``crc32c``, of an encoding such as ``utf-8``, or of a ``Custom`` node;
            ``length``, ``count``, ``constant``, ``decompression``, ``decryption``, ``layout``, ``required`` or
            ``acceptance`` (see docs/reference/errors.md).
        stored: the value in the bytes (None if it is not a number).
        computed: the correct value.
        status: ``ok``, ``bad`` or ``absent``.
        offset: absolute byte offset of the field in ``source``.
        source: 0 for the input, n for the n-th piece of decompressed data.
        note: an explanation, if stored and computed are not enough.
    """

    path: str
    kind: str
    stored: Any
    computed: Any
    status: str
    offset: int
    source: int = 0
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """path, kind, stored, computed, status; ``note`` if there is one."""
        shown = {
            "path": self.path,
            "kind": self.kind,
            "stored": to_json(self.stored),
            "computed": to_json(self.computed),
            "status": self.status,
        }
        if self.note:
            shown["note"] = self.note
        return shown


@dataclass(frozen=True, slots=True)
class Gap:
    """Bytes that no field explains.

    Attributes:
        offset: absolute offset of the first byte in ``source``.
        length: number of bytes.
        path: the field with them; if they are left over inside a length, that length.
        source: 0 for the input, n for the n-th piece of decompressed data.
        reason: why no field explains them, if that is known.
    """

    offset: int
    length: int
    path: str = ""
    source: int = 0
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """offset and length; ``source`` as well in decompressed data."""
        shown: dict[str, Any] = {"offset": self.offset, "length": self.length}
        if self.source:
            shown["source"] = self.source
        return shown


CONTAINERS = frozenset(("record", "list", "bits"))


class Span(NamedTuple):
    """The bytes [start, end) of one field, or of a length, count or tag of one (see docs/spans.md).

    Attributes:
        path: the field; ``key.$length`` is the length before ``key``.
        start: absolute offset of the first byte.
        end: absolute offset after the last byte.
        source: 0 for the input, n for the n-th piece of decompressed data.
        bit_start: first bit of a bit field, counted from the least significant.
        bit_length: number of bits of a bit field.
        kind: ``record``, ``list`` and ``bits`` hold others; all other kinds are leaves, which tile the bytes.
    """

    path: str
    start: int
    end: int
    source: int = 0
    bit_start: int | None = None
    bit_length: int | None = None
    kind: str = ""

    @property
    def leaf(self) -> bool:
        """Whether no other span lies inside."""
        return self.kind not in CONTAINERS

    def to_json(self) -> dict[str, Any]:
        """path, start, end, kind; ``source`` in decompressed data, ``bits`` (first, how many) of a bit field."""
        shown: dict[str, Any] = {"path": self.path, "start": self.start, "end": self.end, "kind": self.kind}
        if self.source:
            shown["source"] = self.source
        if self.bit_start is not None:
            shown["bits"] = [self.bit_start, self.bit_length]
        return shown


def printable(text: str) -> str:
    """The text without control characters that a terminal would obey, because parts of it come from the wire.

    >>> printable("a\\x1b[31mb")
    'a�[31mb'
    """
    return text if text.isprintable() else "".join(char if char.isprintable() else "�" for char in text)


def readable(data: bytes) -> str | None:
    """Bytes as text if they are printable UTF-8, else None.

    >>> readable(b"caf\\xc3\\xa9"), readable(b"\\x00")
    ('café', None)
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() else None


def json_text(obj: Any) -> str:
    """One line of JSON, with escapes only for characters that could harm a terminal or that an encoding lacks.

    All control characters are escaped, including those of C1 and of text direction, and so are lone surrogates.

    >>> print(json_text("caf\xe9 \x9b31m \u202e"))
    "café \\u009b31m \\u202e"
    """
    return escaped(_ENCODED(obj))


def escaped(text: str) -> str:
    """JSON text with escapes for the characters that ``json_text`` must not leave unchanged."""
    if text.isascii() and "\x7f" not in text:
        return text
    return _ESCAPED.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def shown(value: Any) -> str:
    """The beginning of an invalid value in its JSON form, for an error.

    It takes little time and no stack depth, even for large and deep values.

    >>> shown(None), shown([True]), shown("a"), shown(SymbolTable("kind", {1: "ONE"})(1))
    ('null', '[true]', "'a'", 'ONE (1)')
    """
    if isinstance(value, int) and value.bit_length() > LARGEST_PRINTED:
        return printed(value)
    beginning = _beginning(value, [SHOWN])
    text = str(beginning) if isinstance(beginning, int) else repr(beginning)
    if value is None or isinstance(value, (bool, list, dict)):
        with contextlib.suppress(TypeError):
            text = json.dumps(beginning, ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def whole_number(text: str) -> int | None:
    """The number that at most 19 decimal digits write, None for other text; Python refuses thousands of digits.

    >>> whole_number("9092"), whole_number("-1"), whole_number("٣")
    (9092, None, None)
    """
    return int(text) if len(text) < LONGEST_NUMBER and text.isascii() and text.isdecimal() else None


def byte_size(text: str, unit: str = "") -> int | None:
    """The number of bytes that a text writes, in units of 1024 as Spark has them; None for other text.

    Args:
        text: a number below 2⁶³ and a unit, as in ``512k``, ``1m``, ``1.5 GiB``, ``300``.
        unit: that of a number without one, such as ``m``.

    >>> byte_size("512k"), byte_size("1.5GiB"), byte_size("2", "m"), byte_size("1 mile")
    (524288, 1610612736, 2097152, None)
    """
    match = _BYTES.fullmatch(text.strip())
    if match is None:
        return None
    whole, fraction, prefix, byte = match.groups(default="")
    factor = 1024 ** " kmgtp".index((prefix if prefix or byte else unit).lower() or " ")
    size = int(whole + fraction) * factor // 10 ** len(fraction)
    return size if size < 1 << 63 else None


def quoted(value: Any) -> str:
    """The beginning of ``repr`` of a wrong argument, for an error; Python refuses that of large integers.

    >>> quoted(None), quoted({1 << 40000: "a"})
    ('None', '{"0x10000000000000000000000000000000… (40001 bits)": "a"}')
    """
    try:
        text = repr(value)
    except ValueError:
        return shown(value)
    return text if len(text) <= SHOWN_OF_ARGUMENT else f"{text[:SHOWN_OF_ARGUMENT]}…"


def _beginning(value: Any, budget: list[int]) -> Any:
    """The part of a value that its first ``SHOWN`` characters need, even if the value is large and deep.

    Args:
        budget: number of values that may still be shown; each takes at least one character.
    """
    budget[0] -= 1
    if budget[0] < 0:
        return None
    if isinstance(value, (str, bytes, bytearray)):
        return value[: SHOWN + 1]
    if isinstance(value, int) and value.bit_length() > LARGEST_PRINTED:
        return printed(value)
    if isinstance(value, Record):
        copy = type(value)._blank()
        copy._extra = None
        for name, item in value._shown():
            setattr(copy, name, _beginning(item, budget))
        return copy
    if isinstance(value, Mapping):
        some = itertools.islice(value.items(), SHOWN)
        return {_beginning(name, [1]): _beginning(item, budget) for name, item in some}
    if isinstance(value, list):
        return [_beginning(item, budget) for item in value[:SHOWN]]
    if type(value) is tuple:
        return tuple(_beginning(item, budget) for item in value[:SHOWN])
    return value


def to_json(value: Any) -> Any:
    """A decoded value as plain JSON data; docs/json.md has the mapping.

    Raises:
        Misuse: an object that decoding never returns, or a value that is nested too deeply.

    >>> to_json([1, b"\\x0a", Symbol(3, "LZ4"), None])
    [1, '0a', {'value': 3, 'symbol': 'LZ4'}, None]
    """
    try:
        return _json(value)
    except RecursionError:
        raise Misuse("the value is nested too deeply or contains itself") from None


def _json(value: Any) -> Any:
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, Symbol):
        return {"value": int(value), "symbol": value.symbol}
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    if isinstance(value, Record):
        shown = {name: _json(item) for name, item in value._shown()}
        for name, item in (value._extra or {}).items():
            shown[f"${name}"] = _json(item)
        return shown
    if isinstance(value, Mapping):
        return {str(name): _json(item) for name, item in value.items()}
    if isinstance(value, Iterable):
        return [_json(item) for item in value]
    raise Misuse(f"a value of type {type(value).__name__} is not a wirekit value")
