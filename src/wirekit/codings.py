"""Encodings of values other than UTF-8 text: text in other encodings, and values of custom functions.

A coding converts whole byte strings to values and back; the layout declares their place and their size.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from wirekit.errors import Misuse, raised

ENCODINGS = ("utf-8", "ascii", "latin-1", "utf-16-le", "utf-16-be")
LEAST = {"utf-16-le": 2, "utf-16-be": 2}  # bytes of a character


class CodingError(ValueError):
    """Bytes that have no value, or a value that has no bytes; the text gives the reason."""


@dataclass(frozen=True)
class TextCoding:
    """Text in an encoding, with the padding to a fixed size.

    Attributes:
        name: the encoding.
        size: size in bytes if the text is padded, otherwise None.
        pad: the padding character.

    >>> TextCoding("utf-16-le", 6, "\\0").encode("ab").hex(), TextCoding("latin-1").decode(b"\\xe4")
    ('610062000000', 'ä')
    """

    name: str
    size: int | None = None
    pad: str = ""

    text = True

    def decode(self, data: bytes) -> str:
        """Decodes bytes to a text without its padding.

        Raises:
            CodingError: the bytes are invalid in this encoding.
        """
        try:
            return self._bare(data.decode(self.name))
        except UnicodeDecodeError as error:
            raise CodingError(f"{error.reason} at byte {error.start} of the string") from None

    def damaged(self, data: bytes) -> str:
        """The value shown for bytes that ``decode`` refuses."""
        return self._bare(data.decode(self.name, errors="replace"))

    def _bare(self, text: str) -> str:
        return text.rstrip(self.pad) if self.pad else text

    def encode(self, value: Any) -> bytes:
        """The bytes of a text.

        Raises:
            CodingError: if the encoding has no bytes for a character.
        """
        if not isinstance(value, str):
            raise CodingError("it is not a string")
        try:
            data = value.encode(self.name)
        except UnicodeEncodeError as error:
            raise CodingError(f"{self.name} has no {error.object[error.start]!r}") from None
        if self.size is None:
            return data
        filler = self.pad.encode(self.name)
        return data + filler * ((self.size - len(data)) // len(filler))

    def nearest(self, data: bytes) -> bytes:
        """A similar byte string of the same size that is valid text, for test data."""
        if self.name in LEAST:
            characters = bytes(32 + byte % 95 for byte in data[: len(data) // 2])
            return characters.decode("ascii").encode(self.name)
        return bytes(32 + byte % 95 for byte in data)


@dataclass(frozen=True)
class CustomCoding:
    """A user's pair of functions.

    Attributes:
        parse: bytes to a value that JSON has: a boolean, number or text, or lists and mappings of these.
        build: the inverse function.
        name: a name of the values, for errors.
        examples: valid bytes, for test data.
    """

    parse: Callable[[bytes], Any]
    build: Callable[[Any], bytes]
    name: str
    examples: tuple[bytes, ...] = field(default=())

    text = False

    def decode(self, data: bytes) -> Any:
        """Decodes bytes with ``parse``.

        Raises:
            CodingError: the function raises an exception, or returns a value that JSON cannot express.
        """
        try:
            value = self.parse(data)
        except Exception as error:  # noqa: BLE001  # a user's function raises what it likes
            raise CodingError(raised(error)) from None
        if value is None or not _is_plain(value, 0):
            raise CodingError(f"it returned a value of type {type(value).__name__} that JSON cannot hold")
        return value

    def encode(self, value: Any) -> bytes:
        """Encodes a value with ``build``.

        Raises:
            CodingError: the function raises an exception, or does not return bytes.
        """
        try:
            data = self.build(value)
        except Exception as error:  # noqa: BLE001  # a user's function raises what it likes
            raise CodingError(raised(error)) from None
        if not isinstance(data, (bytes, bytearray)):
            raise CodingError(f"it returned a {type(data).__name__} instead of bytes")
        return bytes(data)

    def damaged(self, data: bytes) -> str:
        """The value shown for bytes that ``decode`` refuses."""
        return data.hex()

    def nearest(self, data: bytes) -> bytes:
        """Valid bytes from the examples, if there are any, for test data."""
        same = [each for each in self.examples if len(each) == len(data)] or [*self.examples, data]
        return same[len(data) % len(same)]


Coding = TextCoding | CustomCoding
DEEPEST = 32
MOST_BITS = 14_000
"""Bits of an integer that Python prints and reads in decimal: at most 4,300 digits."""


def _is_plain(value: Any, depth: int) -> bool:
    if isinstance(value, (list, tuple)):
        return depth < DEEPEST and all(_is_plain(each, depth + 1) for each in value)
    if isinstance(value, dict):
        keys = all(isinstance(key, str) and not key.startswith("$") for key in value)
        return depth < DEEPEST and keys and all(_is_plain(each, depth + 1) for each in value.values())
    if isinstance(value, int):
        return value.bit_length() <= MOST_BITS
    return value is None or isinstance(value, (float, str))


def _has_json_number(value: Any) -> bool:
    """Whether JSON has numbers for all floats in a plain value; NaN and infinities are text there."""
    if isinstance(value, (list, tuple)):
        return all(map(_has_json_number, value))
    if isinstance(value, dict):
        return all(map(_has_json_number, value.values()))
    return not isinstance(value, float) or math.isfinite(value)


def text_coding(encoding: str, pad: str | None, size: Any) -> TextCoding | None:
    """The coding of a text; None for UTF-8 without padding.

    Raises:
        Misuse: the encoding is unknown, or the padding is not one ASCII character.
    """
    if encoding not in ENCODINGS:
        raise Misuse(f"encoding must be one of {', '.join(ENCODINGS)}, not {encoding!r}")
    if pad is None:
        return None if encoding == "utf-8" else TextCoding(encoding)
    if not isinstance(size, int) or size % LEAST.get(encoding, 1):
        raise Misuse(f"padded text must have a fixed size in whole characters, not {size!r}")
    if len(pad) != 1 or not pad.isascii():
        raise Misuse(f"pad must be one ASCII character, not {pad!r}")
    return TextCoding(encoding, size, pad)


def is_valid(coding: Coding, data: bytes) -> bool:
    """Whether bytes have a value that can be encoded again."""
    try:
        coding.encode(coding.decode(data))
    except CodingError:
        return False
    return True


def reproduced(value: Any, again: bytes, data: bytes) -> bool:
    """Whether a value that encodes to ``again``, and its JSON form, give the bytes that it was decoded from."""
    return again == data and _has_json_number(value)


def read_plainly(coding: Coding, data: bytes) -> Any:
    """The value of bytes, if encoding it or its JSON form gives the same bytes.

    Raises:
        CodingError: encoding gives other bytes.
    """
    value = coding.decode(data)
    if not reproduced(value, coding.encode(value), data):
        raise CodingError("they are not in canonical form")
    return value
