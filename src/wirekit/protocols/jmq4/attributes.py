r"""The text in ``attributes``: Java properties, ``key=value`` joined by newlines.

Sources: document, ATTRIBUTE; JoyQueue toolkit/serialize/AbstractSerializer.java:30-134 (writing), which leaves reading
to ``java.util.Properties.load``. Writers escape every UTF-16 unit outside 0x20..0x7e, so the bytes are plain ASCII.
The wire keeps the text, because order, comments and duplicates mean nothing and would be lost in a map.
"""

from __future__ import annotations

import re

from wirekit.errors import Misuse

BLANK = " \t\f"
UNESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
UNDECODABLE = re.compile("[\udc80-\udcff]+")
"""Bytes that are not UTF-8, as they stand in decoded text."""


def parse_attributes(text: str | None) -> dict[str, str]:
    r"""The map of a text, by the rules of ``Properties.load``; of equal keys the last one counts.

    Bytes that are not UTF-8 read as U+FFFD, as in JoyQueue.

    Raises:
        Misuse: for ``\u`` without four hex digits, which Java refuses as well.

    >>> parse_attributes("# note\n a : 1\nb\\=c 2\\\n  3")
    {'a': '1', 'b=c': '23'}
    """
    attributes = {}
    for line in _lines(UNDECODABLE.sub(_replaced, text or "")):
        end = _key_end(line)
        value = line[end:].lstrip(BLANK)
        if value[:1] in ("=", ":"):
            value = value[1:].lstrip(BLANK)
        attributes[_unescaped(line[:end])] = _unescaped(value)
    return attributes


def properties_of(text: str | None) -> list[dict[str, str]] | None:
    """Name and value of each attribute; None for a text that Java refuses."""
    try:
        return [{"name": name, "value": value} for name, value in parse_attributes(text).items()]
    except Misuse:
        return None


def _replaced(match: re.Match[str]) -> str:
    return match[0].encode(errors="surrogateescape").decode(errors="replace")


def _lines(text: str) -> list[str]:
    """The logical lines: continued lines joined, comments and empty lines omitted.

    An empty line counts if the text ends after its backslash, or after one more character that ends the line.
    """
    lines: list[str] = []
    line, continues = "", False
    for raw in re.split("\r\n|\r|\n", re.sub(r"(?<=\\)[\r\n]\Z", "", text)):
        piece = raw.lstrip(BLANK)
        if not line and piece.startswith(("#", "!")):
            piece = ""
        continues = (len(piece) - len(piece.rstrip("\\"))) % 2 == 1
        line += piece[:-1] if continues else piece
        if line and not continues:
            lines.append(line)
            line = ""
    return [*lines, line] if continues else lines


def _key_end(line: str) -> int:
    escaped = False
    for index, character in enumerate(line):
        if not escaped and character in "=:" + BLANK:
            return index
        escaped = character == "\\" and not escaped
    return len(line)


def _unescaped(text: str) -> str:
    plain = re.sub(r"\\(u[0-9a-fA-F]{4}|.|$)", _character, text, flags=re.DOTALL)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _character(match: re.Match[str]) -> str:
    escape = match[1]
    if escape == "u":
        raise Misuse(f"\\u in {match.string!r} needs four hex digits")
    if escape.startswith("u"):
        return chr(int(escape[1:], 16))
    return UNESCAPES.get(escape, escape)
