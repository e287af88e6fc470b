"""Fields that are derived from other fields: lengths, checksums, constants.

Parsing verifies the number, building computes it. To write a wrong number, set it and name the field in ``$keep``
(``record.keep("crc")``); a wrong number that was parsed is in ``$keep`` already. The enclosing struct computes these
fields, because only it knows the positions of the covered fields.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import copysign
from typing import Any, cast

from wirekit.errors import Limit, Misuse
from wirekit.values import shown, to_json
from wirekit.wire.arguments import at_least
from wirekit.wire.blobs import Bytes
from wirekit.wire.node import Node, Wrapping, evaluate
from wirekit.wire.numbers import Integer, Symbols
from wirekit.wire.stream import Reader, Scope, Writer


class Length(Wrapping):
    """The size in bytes of other fields of the struct; no field inside can read past it.

    Args:
        inner: the integer.
        of: the name of the covered field, or (first, last); by default all fields after this one.
        add: bytes that the stored number counts beyond the covered fields (its own size, for an inclusive length).
        minimum: the least valid stored number; a smaller one is Wrong, read or computed.
        zero_is_rest: whether 0 means up to the enclosing limit (IPv4 with segmentation offload); only with ``bounds``,
            before the covered fields.
        clip: whether a length beyond the enclosing limit is only a bad check (packets cut by a snap length);
            otherwise the fields are read up to the limit, and the error is Short.
        exceeds: whether the number may exceed the number of bytes, such as the original length of a truncated packet;
            only with ``clip`` or without ``bounds``.
        frame: whether the limit ``frame`` of ``Limits`` bounds the stored number.
        bounds: False if readers of the format ignore the number: the fields are read without it, and it is only
            verified.
    """

    def __init__(
        self,
        inner: Integer,
        of: str | tuple[str, str] | None = None,
        *,
        add: int = 0,
        minimum: int = 0,
        zero_is_rest: bool = False,
        clip: bool = False,
        exceeds: bool = False,
        frame: bool = False,
        bounds: bool = True,
    ) -> None:
        super().__init__(inner)
        at_least("Length", "minimum", minimum, 0)
        self.of = of
        self.add = add
        self.least = max(minimum, add)
        self.zero_is_rest = zero_is_rest
        self.clip = clip
        self.exceeds = exceeds
        self.frame = frame
        self.bounds = bounds

    def _parse(self, stream: Reader, context: Scope, path: str) -> int:
        start = stream.position
        number: int = self.inner._parse(stream, context, path)
        if not self.bounds or (self.zero_is_rest and number == 0):
            return number
        if number < self.least:
            raise stream.wrong(f"a length of at least {self.least}", number, start)
        if self.frame and number > stream.session.limits.frame:
            where = stream.where()
            where["offset"] = stream.origin + start
            raise Limit("frame", stream.session.limits.frame, number, **where)
        return number

    def written(self, number: int, stream: Writer) -> bytes:
        """The bytes of a computed length; Wrong if parsing would refuse it."""
        if self.bounds and number < self.least and not (self.zero_is_rest and number == 0):
            raise stream.wrong(f"a length of at least {self.least}", number)
        return bytes(self.inner.write(self.inner.check(number, stream), stream))

    def default(self, context: Scope) -> Any:
        return None


class Checked(Wrapping):
    """A checksum of other fields of the struct. If it lies among them, its own bytes count as zeros.

    Args:
        inner: the integer, or bytes of the size of the checksum: ``Bytes(32)`` for SHA-256.
        algorithm: a name in ``wirekit.checksums``.
        covers: the name of the covered field, (first, last), or None for all fields after this one.
        content: whether a covered byte string counts without its length prefix.

    If bytes of unknown size precede the checksum, a length must end before it; ``add`` counts the checksum's bytes in
    the stored number.

    >>> from wirekit.wire import Struct, rest, uint16, uint32
    >>> size = Length(uint16, "body", add=4)
    >>> trailer = Struct("size" / size, "body" / rest(), "crc" / Checked(uint32, "crc32", "body"))
    """

    def __init__(
        self,
        inner: Integer | Bytes,
        algorithm: str,
        covers: str | tuple[str, str] | None = None,
        *,
        content: bool = False,
    ) -> None:
        super().__init__(inner)
        self.algorithm = algorithm
        self.covers = covers
        self.content = content

    @property
    def blank(self) -> int | bytes:
        """The placeholder that is written until the covered bytes are written."""
        return bytes(cast("int", self.inner.length)) if isinstance(self.inner, Bytes) else 0

    def compute(self, data: Any) -> int | bytes:
        """The checksum of bytes, in the form of the stored field."""
        from wirekit.checksums import checksum

        algorithm = checksum(self.algorithm)
        if isinstance(self.inner, Bytes):
            return algorithm.digest(data)
        number = algorithm.function(data)
        high: int = self.inner.high
        return number - (1 << 8 * self.inner.length) if number > high else number

    def written(self, number: int | bytes, stream: Writer) -> bytes:
        """The bytes of a computed checksum."""
        if isinstance(number, bytes):
            return number
        return bytes(self.inner.write(self.inner.check(number, stream), stream))

    def default(self, context: Scope) -> Any:
        return None


class Const(Wrapping):
    """A field with a fixed value.

    Args:
        inner: the field.
        value: a value or a ``this`` expression.
        fatal: whether any other value is Wrong; if False, it is a bad ``constant`` check.
        hexadecimal: whether the number is displayed in hexadecimal, such as a magic number.
    """

    def __init__(self, inner: Node, value: Any, *, fatal: bool = True, hexadecimal: bool = False) -> None:
        super().__init__(inner)
        self.value = value
        self.fatal = fatal
        self.hexadecimal = hexadecimal

    def _parse(self, stream: Reader, context: Scope, path: str) -> Any:
        start = stream.position
        actual = self.inner._parse(stream, context, path)
        expected = evaluate(self.value, context)
        same = actual == expected and not (isinstance(actual, float) and copysign(1, actual) != copysign(1, expected))
        if self.fatal:
            if not same:
                raise stream.wrong(_shown(expected, self.inner), _shown(actual, self.inner), start)
            return actual
        stream.check("constant", actual, self.inner.load(expected, context), same, start)
        if not same:
            stream.keep()
        return actual

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        value = obj if stream.is_kept() else evaluate(self.value, context)
        return self.inner._build(value, stream, context, path)

    def default(self, context: Scope) -> Any:
        return evaluate(self.value, context)


def _shown(value: Any, inner: Any) -> Any:
    if isinstance(value, int) and isinstance(inner, Symbols):
        return str(inner.table(value))
    if isinstance(value, int) and isinstance(inner, Integer):
        return f"0x{value & inner.mask:0{2 * inner.length}x}"
    return shown(value) if isinstance(value, str) else to_json(value)


class Default(Wrapping):
    """A field that may be left out when building.

    Args:
        inner: the field.
        value: the value that is then built, or an expression that computes it, also from later fields of the struct:
            ``len_(this.items)`` counts a list.
    """

    def __init__(self, inner: Node, value: Any) -> None:
        super().__init__(inner)
        self.value = value

    def settled(self, context: Scope) -> Node:
        return self.inner.settled(context)

    def default(self, context: Scope) -> Any:
        return evaluate(self.value, context)


def innermost_first(sums: Iterable[Any]) -> list[Any]:
    """Sorts checksums in the order of computation: a checksum comes after those that it covers.

    Args:
        sums: checksums with their index ``at`` and the members they cover, ``first`` to ``last``.
    """
    remaining, ordered = list(sums), []
    while remaining:
        ready = [
            one
            for one in remaining
            if not any(one.first <= each.at <= one.last for each in remaining if each is not one)
        ]
        ordered += ready or remaining  # those that cover each other are refused when they are registered
        remaining = [one for one in remaining if ready and one not in ready]
    return ordered


def cover(of: str | tuple[str, str] | None, own: int, names: list[str]) -> tuple[int, int]:
    """First and last index of the fields that a length or a checksum at index ``own`` covers."""
    if of is None:
        return own + 1, len(names) - 1
    first, last = (of, of) if isinstance(of, str) else of
    for name in (first, last):
        if name not in names:
            raise Misuse(f"{names[own]} covers {name!r}, which is not a field of its struct: {', '.join(names)}")
    return names.index(first), names.index(last)
