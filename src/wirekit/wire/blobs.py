"""Byte strings and text: behind a length, as many as an expression says, up to a limit or a delimiter."""

from __future__ import annotations

import re
from typing import Any

from wirekit.errors import Misuse
from wirekit.values import shown
from wirekit.wire.extras import load_bytes
from wirekit.wire.node import NOTHING, Node, evaluate_size, is_null
from wirekit.wire.numbers import Integer
from wirekit.wire.stream import Reader, Scope, Writer

PIECE = 4096  # bytes of a view that are searched at a time
DECIMAL = re.compile(rb"0|-?[1-9][0-9]{0,18}")


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


ADDRESS_SIZES = {"ipv4": 4, "ipv6": 16, "mac": 6}


class Address(Bytes):
    """The bytes of a network address: a byte string of a known size, which readers see written as an address.

    Args:
        family: ``ipv4`` (4 bytes), ``ipv6`` (16) or ``mac`` (6).

    >>> Address("ipv4").length
    4
    """

    def __init__(self, family: str) -> None:
        if family not in ADDRESS_SIZES:
            raise Misuse(f"an address is one of {', '.join(ADDRESS_SIZES)}, not {family!r}")
        super().__init__(ADDRESS_SIZES[family])
        self.family = family


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
        found = _find(stream.buffer, self.end, start, stream.limit)
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


def _find(buffer: Any, end: bytes, start: int, limit: int) -> int:
    """Where a delimiter stands, -1 for nowhere; a view has no search of its own, and is searched piece by piece."""
    if isinstance(buffer, (bytes, bytearray)):
        return buffer.find(end, start, limit)
    for at in range(start, limit, PIECE):
        place = bytes(buffer[at : min(at + PIECE + len(end) - 1, limit)]).find(end)
        if place >= 0:
            return at + place
    return -1


def rest(*, part: bool = False) -> Bytes:
    """All bytes before the nearest limit; ``part`` when they are a piece of something larger."""
    return Bytes(None, part=part)


def unexplained() -> Bytes:
    """All bytes before the nearest limit, whose meaning is not known: they are a gap."""
    return Bytes(None, explained=False)


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
