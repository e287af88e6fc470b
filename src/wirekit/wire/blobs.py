"""Byte strings and text: after a length prefix, of a computed size, up to the limit or up to a delimiter."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from functools import cached_property
from typing import Any

from wirekit.codings import Coding, CodingError, CustomCoding, is_valid, reproduced, text_coding
from wirekit.errors import Misuse, Wrong
from wirekit.values import shown, to_json
from wirekit.wire.arguments import Expression, at_least, one_of
from wirekit.wire.dollar_entries import load_bytes
from wirekit.wire.fields import this
from wirekit.wire.node import Node, evaluate_size, expect_size, is_null, null_length
from wirekit.wire.numbers import UNPACKED, Integer
from wirekit.wire.stream import Reader, Scope, Writer

PIECE = 4096  # bytes of a view that are searched at a time
POSITION, BEGIN = "_position", "_begin"
"""Names that padding to a multiple reads: its position in the struct, and the struct's begin in the scope around."""
_DECIMAL = re.compile(rb"0|-?[1-9][0-9]{0,18}")
_DIGITS = re.compile(rb"-?[0-9]*")


ZEROS = 1 << 28
"""The maximum number of zeros that the computed sizes of a value may request."""


def _zeros(size: int) -> bytes:
    if size > ZEROS:
        raise Wrong(f"at most {ZEROS} zeros", size)
    return bytes(size)


def count_zeros(size: int, stream: Writer) -> None:
    """Counts zeros that are written for a computed size; Wrong if they become too many."""
    stream.zeros += size
    if stream.zeros > ZEROS:
        raise stream.wrong(f"at most {ZEROS} zeros", stream.zeros)


class Bytes(Node):
    """A byte string.

    If its length is a number or an expression, a record may omit the field; it is then built as zeros.

    Args:
        length: an integer node (a length prefix), a number, a ``this`` expression, or None for all bytes up to the
            limit.
        null: the length that means null, -1 or 0; None if the field is never null.
        explained: False if the meaning of the bytes is unknown: they are kept, and reported as a gap.
        part: whether the bytes are a piece of a larger object, so that their size is not the size of the object.
    """

    text = False
    kind = "bytes"
    coding: Coding | None = None

    def __init__(
        self,
        length: Integer | int | Expression | None = None,
        *,
        null: int | None = None,
        explained: bool = True,
        part: bool = False,
    ) -> None:
        super().__init__()
        at_least(type(self).__name__, "length", length, 0)
        if null is not None and not isinstance(length, Integer):
            raise Misuse(f"{type(self).__name__}: null= needs a length prefix, which {length!r} is not")
        self.length = length
        self.null = null
        self.explained = explained
        self.part = part

    @property
    def opaque(self) -> bool:
        return self.part

    @property
    def takes_all(self) -> bool:
        return self.length is None

    @property
    def prefix(self) -> Integer | None:
        """The length prefix, if there is one."""
        return self.length if isinstance(self.length, Integer) else None

    def _parse(self, stream: Reader, context: Scope, path: str) -> Any:
        data = self._content(stream, context)
        if data and not self.explained:
            stream.gap(stream.position - len(data), stream.position)
            stream.rename("gap")
        return data

    @cached_property
    def _count(self) -> struct.Struct | None:
        """Reads the length prefix, if it is an integer of a size that ``struct`` knows."""
        prefix = self.prefix
        is_packed = type(prefix) is Integer and not prefix.real and prefix.fmtstr[1] not in UNPACKED
        return struct.Struct(prefix.fmtstr) if is_packed and prefix is not None else None

    def _content(self, stream: Reader, context: Scope) -> bytes | None:
        start, count = stream.position, self._count
        if count is not None and stream.session.spans is None and start + count.size <= stream.limit:
            (size,) = count.unpack_from(stream.buffer, start)
            if size >= 0 and not is_null(size, self.null):
                stream.position = start = start + count.size
                if size > stream.limit - start:
                    raise stream.short(size)
                stream.position = start + size
                return bytes(stream.buffer[start : start + size])
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
        if is_null(size, self.null):
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
            raw = null_length(self.null, stream, coded=self.coding is not None)
            if data is None or (self.null == 0 and not data):
                prefix._build(raw, stream, context, path)
                return obj
            if len(data) > prefix.high:
                raise stream.wrong(f"at most {prefix.high} bytes", f"{len(data)} bytes")
            prefix._build(len(data), stream, context, path)
        elif self.length is not None:
            expect_size(self.length, "bytes", len(data or b""), stream, context)
        stream.write(data or b"")
        return obj

    def plain_size(self, obj: Any, stream: Writer, context: Scope) -> int | None:
        if self.part:
            return None
        if self.length is None or self.prefix is not None:
            return super().plain_size(obj, stream, context)
        return len(self._encode(obj, stream) or b"")  # the length may be the requested number itself

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
        if self.length is None:
            return b""
        if self.prefix is None:
            return _zeros(evaluate_size(self.length, context))
        return super().default(context)


ADDRESS_SIZES = {"ipv4": 4, "ipv6": 16, "mac": 6}


class Address(Bytes):
    """A network address: a byte string of a fixed size, displayed as an address.

    Args:
        family: ``ipv4`` (4 bytes), ``ipv6`` (16) or ``mac`` (6).

    >>> Address("ipv4").length
    4
    """

    def __init__(self, family: str) -> None:
        one_of("Address", "family", family, tuple(ADDRESS_SIZES))
        super().__init__(ADDRESS_SIZES[family])
        self.family = family


class Padding(Bytes):
    """Filler bytes of a computed size: zeros when built.

    Parsed bytes other than zeros are kept, and written back if their size is still right.

    Args:
        length: a number or a ``this`` expression.
        to: instead of ``length``: the padding ends at the next multiple of this number of bytes, counted from the
            first byte of the struct. Such padding must be a field of a struct; only ``If``, ``IfMore`` or ``Default``
            may wrap it.

    >>> from wirekit.wire import Struct, String, uint8, uint32
    >>> entry = Struct("name" / String(uint8), "padding" / Padding(to=4), "size" / uint32)
    """

    kind = "filler"

    def __init__(self, length: int | Expression | None = None, *, to: int | None = None) -> None:
        if (length is None) == (to is None) or (to is not None and to < 1):
            raise Misuse(f"Padding takes a length, or to= a multiple of at least 1, not {length!r} and to={to!r}")
        super().__init__(length if to is None else -this[POSITION] % to)
        self.to = to

    def _placed(self, position: int, context: Scope) -> None:
        """Sets the distance of the padding from the start of the struct, which the length expression reads."""
        if self.to is not None:
            context[POSITION] = position - context["_"][BEGIN]

    def _size(self, stream: Reader, context: Scope) -> int | None:
        self._placed(stream.position, context)
        return super()._size(stream, context)

    def default(self, context: Scope) -> Any:
        return super().default(context) if self.to is None else b""

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        self._placed(len(stream.buffer), context)
        size = evaluate_size(self.length, context)
        data = self._encode(obj, stream) or b""
        if len(data) != size:
            count_zeros(size, stream)
            data = bytes(size)
        stream.write(data)
        return obj


class _Decoded(Bytes):
    """A byte string whose value is not bytes: text, or a value of functions."""

    def _parse(self, stream: Reader, context: Scope, path: str) -> Any:
        start = stream.position
        data = self._content(stream, context)
        if data is None:
            return None
        return decode_text(data, stream, start) if self.coding is None else _decoded(self.coding, data, stream, start)

    def load(self, obj: Any, context: Scope) -> Any:
        return obj

    default = Node.default


class String(_Decoded):
    r"""Text, UTF-8 by default.

    Bytes that are not UTF-8 are kept as lone surrogates (Python's ``surrogateescape``), with a bad ``utf-8`` check.
    Undecodable bytes of another encoding become U+FFFD, with a bad check of that name, and ``$raw`` keeps the bytes.

    Args:
        length, null, explained, part: as for ``Bytes``; a length counts bytes.
        encoding: ``utf-8``, ``ascii``, ``latin-1``, ``utf-16-le`` or ``utf-16-be``.
        pad: the character that pads the text to its ``length``, which must be a number.

    >>> String(8, encoding="utf-16-le", pad="\0").coding.encode("ab").hex()
    '6100620000000000'
    """

    text = True
    kind = "text"

    def __init__(
        self,
        length: Integer | int | Expression | None = None,
        *,
        null: int | None = None,
        explained: bool = True,
        part: bool = False,
        encoding: str = "utf-8",
        pad: str | None = None,
    ) -> None:
        super().__init__(length, null=null, explained=explained, part=part)
        self.encoding = encoding
        self.coding = text_coding(encoding, pad, length)

    def _encode(self, obj: Any, stream: Writer) -> bytes | None:
        if obj is None:
            if self.null is None:
                raise stream.wrong("a string", "null")
            return None
        if not isinstance(obj, str):
            raise stream.wrong("a string", shown(obj))
        return encode_text(obj, stream) if self.coding is None else _encoded(self.coding, obj, stream, self.null)


class Custom(_Decoded):
    """Bytes that two functions decode and encode.

    The functions get and return only the bytes of the field. Its size is ``length``. If ``parse`` raises, or returns
    any other type or an integer of more than 14,000 bits, the value is the bytes in hexadecimal, with a bad check
    called ``name`` that gives the reason; the fields after it are decoded. If ``build`` raises, the error is Wrong. If
    ``build`` returns bytes that differ from the parsed ones, or the value has a NaN or an infinity, ``$raw`` keeps the
    parsed bytes. Columns contain the bytes and the verdict.

    Args:
        length, null: as for ``Bytes``: an integer node, a number, an expression, or None for all bytes up to the limit.
        parse: converts bytes to a value that JSON can express: a boolean, number or text, or lists and mappings of
            these.
        build: the inverse.
        name: the name of the check; by default the name of ``parse``.
        examples: valid bytes, from which test data is generated.

    >>> def parse(data): return [byte / 10 for byte in data]
    >>> def build(value): return bytes(round(10 * each) for each in value)
    >>> Custom(2, parse=parse, build=build, name="tenths").coding.decode(bytes([5, 10]))
    [0.5, 1.0]
    """

    def __init__(
        self,
        length: Integer | int | Expression | None = None,
        *,
        parse: Callable[[bytes], Any],
        build: Callable[[Any], bytes],
        name: str = "",
        null: int | None = None,
        examples: tuple[bytes, ...] = (),
    ) -> None:
        super().__init__(length, null=null)
        self.coding = CustomCoding(parse, build, name or getattr(parse, "__name__", "custom"), examples)

    def _encode(self, obj: Any, stream: Writer) -> bytes | None:
        if obj is None and self.null is not None:
            return None
        return None if self.coding is None else _encoded(self.coding, obj, stream, self.null)


def _decoded(coding: Coding, data: bytes, stream: Reader, start: int) -> Any:
    """Decodes bytes to a value; ``$raw`` keeps bytes that the value would not reproduce."""
    try:
        value = coding.decode(data)
        plainly = reproduced(value, coding.encode(value), data)
    except CodingError as error:
        stream.check(coding.name, None, None, False, start, str(error))
        value, plainly = coding.damaged(data), False
    if not plainly:
        stream.note("raw", data)
    return value


def _encoded(coding: Coding, obj: Any, stream: Writer, null: int | None) -> bytes:
    """The bytes of a value, or the kept bytes that it was parsed from."""
    raw = stream.noted("raw")
    if isinstance(raw, int) and null is None:
        raise stream.wrong("bytes in hex in $raw", raw)
    try:
        if isinstance(raw, bytes):
            decoded = coding.decode(raw) if is_valid(coding, raw) else coding.damaged(raw)
            if obj == decoded or to_json(obj) == to_json(decoded):
                return raw
        return coding.encode(obj)
    except CodingError as error:
        raise stream.wrong(f"a value that {coding.name} can encode", f"{shown(obj)} ({error})") from None


class Delimited(Node):
    r"""UTF-8 text followed by a delimiter, such as a line or a C string.

    Args:
        end: the delimiter.
        number: whether the text is a signed integer of 64 bits in decimal, without leading zeros.
        lines: whether text that contains another line is Wrong; False for zero-terminated text.

    >>> Delimited("\0", lines=False).end
    b'\x00'
    """

    def __init__(self, end: str, *, number: bool = False, lines: bool = True) -> None:
        super().__init__()
        try:
            self.end = end.encode()
        except UnicodeEncodeError as error:
            raise Misuse(f"Delimited: end must be text that UTF-8 can express, not {end!r}") from error
        if number and _DIGITS.fullmatch(self.end):
            raise Misuse(f"Delimited: end must not be digits, which the number may have, too, not {end!r}")
        self.number = number
        self.lines = lines

    def _parse(self, stream: Reader, context: Scope, path: str) -> Any:
        start = stream.position
        delimiter = _find(stream.buffer, self.end, start, stream.limit)
        if delimiter < 0:
            raise stream.short(stream.left + len(self.end))
        data = stream.take(delimiter - start)
        stream.span(start, "number" if self.number else "text")
        stream.take(len(self.end))
        stream.span(delimiter, "delimiter", "$delimiter")
        if self.lines and b"\n" in data:
            raise stream.wrong(f"{self.end!r} in the line", "none", start)
        if not self.number:
            return decode_text(data, stream, start)
        if not is_decimal(data):
            raise stream.wrong("an integer in decimal", repr(data[:20]), start)
        return int(data)

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        kind = int if self.number else str
        if not isinstance(obj, kind) or isinstance(obj, bool):
            raise stream.wrong("an integer" if self.number else "a string", shown(obj))
        data = b"%d" % obj if isinstance(obj, int) else encode_text(obj, stream)
        if self.number and not is_decimal(data):
            raise stream.wrong("an integer of 64 bits", obj)
        if (self.lines and b"\n" in data) or self.end in data + self.end[:-1]:
            raise stream.wrong(f"text without {self.end!r}{' in one line' if self.lines else ''}", shown(obj))
        stream.write(data + self.end)
        return obj


def is_decimal(data: bytes) -> bool:
    """Whether the bytes are a signed integer of 64 bits in decimal, without leading zeros."""
    return _DECIMAL.fullmatch(data) is not None and (len(data) < 19 or -1 << 63 <= int(data) < 1 << 63)


def _find(buffer: Any, end: bytes, start: int, limit: int) -> int:
    """The position of a delimiter, or -1; a memoryview, which has no search method, is searched piece by piece."""
    if isinstance(buffer, (bytes, bytearray)):
        return buffer.find(end, start, limit)
    for at in range(start, limit, PIECE):
        place = bytes(buffer[at : min(at + PIECE + len(end) - 1, limit)]).find(end)
        if place >= 0:
            return at + place
    return -1


def rest(*, part: bool = False) -> Bytes:
    """All bytes before the nearest limit; ``part`` if they are a piece of a larger object."""
    return Bytes(None, part=part)


def unexplained() -> Bytes:
    """All bytes before the nearest limit, as a gap: their meaning is unknown."""
    return Bytes(None, explained=False)


def decode_text(data: bytes, stream: Reader, start: int) -> str:
    """UTF-8 to str; bytes that are not UTF-8 become lone surrogates and a bad check."""
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
        raise stream.wrong("text that UTF-8 can encode", ascii(error.object[error.start : error.end])) from None
