"""The lines of a dump, each for itself, and how a dump is written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

LONGEST_LINE = 1 << 16  # characters; a longer line is no line of a dump
_LINE = re.compile(
    r"[ \t]*(?:(?P<star>\*)$"
    r"|(?P<prefix>0[xX])?(?P<offset>[0-9A-Fa-f]{4,16})(?P<colon>:?)(?:(?P<gap>[ \t]+)(?=[0-9A-Fa-f]{2})|$))"
)


class Line(NamedTuple):
    """One line of a dump.

    ``kind`` is ``data``, ``offset`` (alone, as at the end of hexdump -C), ``star`` (the line before, repeated) or
    ``other``; ``start`` is where the hex words begin.
    """

    number: int
    text: str
    kind: str
    offset: str = ""
    mark: str = ""
    gap: str = ""
    start: int = 0


def parse_line(number: int, text: str) -> Line:
    match = _LINE.match(text) if len(text) < LONGEST_LINE else None
    if match is None:
        return Line(number, text, "other")
    star, prefix, offset, colon, gap = match.groups("")
    if star:
        return Line(number, text, "star")
    return Line(number, text, "data" if gap else "offset", offset, prefix + colon, gap, match.end())


def lines_of(text: str) -> Iterator[Line]:
    """The lines that are not blank, numbered from 1; one at a time, because there may be millions."""
    number = begin = 0
    while begin <= len(text):
        end = text.find("\n", begin)
        end = len(text) if end < 0 else end
        number += 1
        if line := text[begin:end].rstrip():
            yield parse_line(number, line)
        begin = end + 1


def paired(text: str) -> Iterator[tuple[Line, Line | None]]:
    """Each line with the next one."""
    lines = lines_of(text)
    line = next(lines)
    for after in lines:
        yield line, after
        line = after
    yield line, None


def word_size(line: Line) -> int:
    """Bytes in the first word of a data line; 0 if its digits are odd."""
    word = line.text[line.start :].split(maxsplit=1)[0]
    return 0 if len(word) % 2 else len(word) // 2


class Layout(NamedTuple):
    """How a dump is written.

    ``group`` is bytes in a word, ``width`` bytes in a full line, ``end`` characters from the first word of a full line
    to the end of its last, ``text`` whether a text column follows; 0 or None where the first lines do not tell.
    ``swapped`` words are numbers in the byte order of the machine (hexdump without -C, od -x), taken as little-endian.
    ``doubt``: the offsets make sense in another base too.
    """

    form: str
    base: int
    group: int
    colon: bool
    swapped: bool
    word: re.Pattern[str]
    width: int = 0
    end: int = 0
    text: bool | None = None
    doubt: bool = False
