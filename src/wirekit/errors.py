"""The errors that wirekit raises.

Malformed bytes cause one of three errors: too few bytes (``Short``), a value that the format does not allow
(``Wrong``), or an exceeded limit (``Limit``). Each has the protocol, the path of the field with array indexes, and the
absolute byte offset. ``Misuse`` is a fault of the caller; it says what to pass instead and has no offset.

``Short`` is also an ``EOFError``; ``Wrong``, ``Limit`` and ``Misuse`` are also a ``ValueError``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple


class WirekitError(Exception):
    """Base class of all errors that wirekit raises; ``repr`` shows the text of ``str``, as it is."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self}>"


class Misuse(WirekitError, ValueError):
    """The caller passed an invalid argument; the text says what to pass instead."""


LARGEST_PRINTED = 256
"""Bits of an integer that is printed in decimal; Python raises ValueError for a few thousand digits."""
LARGEST_RAISED = 400
"""Characters of the text of another's exception."""
MOST_NAMED = 12
"""Valid values that an error names."""


def printed(value: Any) -> str:
    """``str(value)``; of a larger integer the first hexadecimal digits.

    >>> printed(-12), printed(1 << 40000)
    ('-12', '0x10000000000000000000000000000000… (40001 bits)')
    """
    if isinstance(value, int) and value.bit_length() > LARGEST_PRINTED:
        return f"{hex(value)[:34]}… ({value.bit_length()} bits)"
    return str(value)


def raised(error: BaseException) -> str:
    """The type of an exception that another's function raised, and the beginning of its text.

    >>> raised(KeyError("a")), raised(ValueError("x" * 1000))[-3:]
    ("KeyError: 'a'", 'xx…')
    """
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  # its class is another's, too
        text = "its text cannot be read"
    return f"{type(error).__name__}: {text if len(text) <= LARGEST_RAISED else f'{text[:LARGEST_RAISED]}…'}"


def plural(number: int, noun: str) -> str:
    """A number of things in words.

    >>> plural(1, "byte"), plural(2000, "byte")
    ('1 byte', '2,000 bytes')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def first_of(values: Sequence[Any]) -> str:
    """The valid values in the text of an error: of more than ``MOST_NAMED``, the first ones and their number.

    >>> first_of("AB"), first_of(range(30))
    ('A, B', '0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, … (30 in all)')
    """
    more = f", … ({len(values)} in all)" if len(values) > MOST_NAMED else ""
    return ", ".join(map(str, values[:MOST_NAMED])) + more


EXTRA_OF = {
    "numba": "columns",
    "numpy": "columns",
    "pyarrow": "columns",
    "deltalake": "delta",
    "duckdb": "sql",
    "hypothesis": "fuzz",
    "pandas": "spark",
    "pyspark": "spark",
}


def lacking(feature: str, error: ModuleNotFoundError) -> Exception:
    """The error for a missing extra that a function needs; the error itself for any other missing module."""
    extra = EXTRA_OF.get((error.name or "").partition(".")[0])
    return error if extra is None else Misuse(f"{feature} needs {error.name}: pip install 'wirekit[{extra}]'")


def refuse_unless_utf8(name: str, text: str) -> None:
    """Refuses text with lone surrogates: an argument or a path that is not UTF-8, for libraries that fail on it.

    Raises:
        Misuse: with the name.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Misuse(f"{name} is not UTF-8 at character {error.start + 1}") from None


class Misfit(Misuse):
    """A value to build does not have the shape of the layout; the text names the field.

    Attributes:
        reason: the problem, without the place.
        path: the field, with array indexes; outer parts are added while the error propagates.
        protocol: the schema key.
        hint: a suggestion, or "".
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = ""
        self.protocol = ""
        self.hint = ""

    def __str__(self) -> str:
        text = ": ".join(filter(None, (self.protocol, self.path, self.reason)))
        return f"{text}; {self.hint}" if self.hint else text


class WireError(WirekitError):
    """Bytes (or a value to build) do not fit the layout.

    Attributes:
        protocol: the schema key that was being read, for example ``kafka.message_set``; empty if unknown.
        path: the field, with array indexes, for example ``record_set.messages[3].message.key``.
        offset: absolute byte offset in ``source``, or None for an error of building.
        source: 0 for the input itself; 1, 2, … for the n-th piece of decompressed data inside it.
        partial: the fields decoded before the error.
        hint: a suggestion of what the bytes may be, or "".
        bounded: number of valid lengths around the error; distinguishes a cut tail from damage.
    """

    __slots__ = ("bounded", "hint", "offset", "partial", "path", "protocol", "source")

    kind: ClassVar[str] = "wire"

    def __init__(
        self,
        *,
        protocol: str = "",
        path: str = "",
        offset: int | None = None,
        source: int = 0,
    ) -> None:
        super().__init__()
        self.protocol = protocol
        self.path = path
        self.offset = offset
        self.source = source
        self.partial: Any = None
        self.hint = ""
        self.bounded = 0

    def __reduce__(self) -> tuple[Any, ...]:
        kinds = type(self).__mro__
        facts = {name: getattr(self, name) for kind in kinds for name in vars(kind).get("__slots__", ())}
        return _restored, (type(self), facts), self.__dict__

    @property
    def reason(self) -> str:
        """The problem, without the place."""
        return "does not fit the layout"

    def __str__(self) -> str:
        text = ": ".join(filter(None, (self.protocol, self.path, self.reason)))
        if self.offset is not None:
            text += f", at byte {self.offset} (0x{self.offset:x})"
            if self.source:
                text += f" of decompressed data #{self.source}"
        return f"{text}; {self.hint}" if self.hint else text

    def to_json(self) -> dict[str, Any]:
        """The error as the command line prints it: kind, path, offset (bytes), message."""
        return {"kind": self.kind, "path": self.path, "offset": self.offset, "message": str(self)}


def _restored(kind: type[WireError], facts: dict[str, Any]) -> WireError:
    """An error that came from another process."""
    error = kind.__new__(kind)
    for name, value in facts.items():
        setattr(error, name, value)
    return error


class Short(WireError, EOFError):
    """The bytes end, or their enclosing length ends, before the field does.

    Attributes:
        needed: bytes that the field needs.
        available: bytes left before the nearest enclosing limit.
    """

    __slots__ = ("available", "needed")

    kind = "short"

    def __init__(self, needed: int, available: int, **where: Any) -> None:
        super().__init__(**where)
        self.needed = needed
        self.available = available

    @property
    def reason(self) -> str:
        return f"needs {self.needed} byte{'' if self.needed == 1 else 's'}, {self.available} available"


def short_at(needed: int, available: int, protocol: str, path: str, offset: int, source: int, bounded: int) -> Short:
    """A ``Short`` with its place, in less than half of the time: damaged input causes one for every few bytes."""
    error = Short.__new__(Short)
    error.needed, error.available = needed, available
    error.protocol, error.path, error.offset, error.source, error.bounded = protocol, path, offset, source, bounded
    error.partial, error.hint = None, ""
    return error


class Wrong(WireError, ValueError):
    """The bytes have a value that the format does not allow.

    Attributes:
        expected: the correct value, or a description of it.
        actual: the value in the bytes.
    """

    __slots__ = ("actual", "expected")

    kind = "wrong"

    def __init__(self, expected: Any, actual: Any, **where: Any) -> None:
        super().__init__(**where)
        self.expected = expected
        self.actual = actual

    @property
    def reason(self) -> str:
        return f"expected {printed(self.expected)}, found {printed(self.actual)}"


class Limit(WireError, ValueError):
    """The bytes exceed a limit of ``wirekit.Limits``, or the nesting depth that protobuf allows.

    Attributes:
        limit: the name of the limit, for example ``frame``; ``messages`` for protobuf nesting.
        allowed: its value.
        actual: the value that exceeds it.
    """

    kind = "limit"

    def __init__(self, limit: str, allowed: Any, actual: Any, **where: Any) -> None:
        super().__init__(**where)
        self.limit = limit
        self.allowed = allowed
        self.actual = actual

    @property
    def reason(self) -> str:
        return f"{self.actual} exceeds the limit of {self.allowed} ({self.limit})"


class Damaged(NamedTuple):
    """A part of a file that does not decode and is skipped.

    Attributes:
        offset: absolute offset of its first byte.
        length: number of bytes; 0 for a wrong length that loses no bytes.
        error: the problem and its place.
    """

    offset: int
    length: int
    error: WireError

    def __str__(self) -> str:
        place = f" from byte {self.offset} on" if self.error.source else ""
        passed = f"{plural(self.length, 'byte')} skipped{place}: " if self.length else ""
        return f"{passed}{self.error}"
