"""Reads single lines of a dump, and declares the layout of a dump."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

LONGEST_LINE = 1 << 16  # characters; a longer line is not a line of a dump
_LINE = re.compile(
    r"[ \t]*(?:(?P<star>\*)$"
    r"|(?P<prefix>0[xX])?(?P<offset>[0-9A-Fa-f]{4,16}|(?<=0[xX])[0-9A-Fa-f]{1,3}(?=:))"
    r"(?P<colon>:?)(?:(?P<gap>[ \t]+)(?=[0-9A-Fa-f]{2,}(?!\S))|$))"
)
_ROW = r"(?=(?:0[xX])?[0-9A-Fa-f]{4,16}(?::?[ \t]+[0-9A-Fa-f]{2,}(?!\S)|[ \t]*$)|\*[ \t]*$)"
_PREFIX = re.compile(
    r"^[^\n]{0,200}?[ \t|:>+](?=(?:0[xX])?0{4,16}:?[ \t]+[0-9A-Fa-f]{2,}(?!\S))", re.MULTILINE
)  # of a log, before the first line of a dump
_NUMBERS_AND_BLANKS = re.compile(r"\d+|[ \t]+")
_TCPDUMP_END = re.compile(r"\s*(?:\^C)?\d+ packets? (?:captured|received by filter|dropped by \w+)")
_BEHIND = re.compile(r"\s*(?:```|[)\]}]+[,;]?$)")  # of Markdown; of the brackets around a dump of Java or Go


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


def without_prefix(text: str) -> str | None:
    """The text without what a log writes before each line of a dump; None if no line but the first has such text.

    Numbers in it, as of a time, and blanks may differ from line to line. Other lines stay as they are.
    """
    first = _PREFIX.search(text, 0, LONGEST_LINE)
    if first is None:
        return None
    pieces = _NUMBERS_AND_BLANKS.split(first[0])
    kinds = (r"\d++" if match[0].isdecimal() else r"[ \t]++" for match in _NUMBERS_AND_BLANKS.finditer(first[0]))
    prefix = "".join(re.escape(piece) + kind for piece, kind in zip(pieces, (*kinds, ""), strict=True))
    bare, count = re.subn(f"^{prefix}{_ROW}", lambda match: " " * len(match[0]), text, flags=re.MULTILINE)
    return bare if count > 1 else None


def begins_dump(line: Line) -> bool:
    """Whether the line is the first of a dump: its offset is 0."""
    return line.kind == "data" and not line.offset.strip("0")


def paired(text: str) -> Iterator[tuple[Line, Line | None]]:
    """Each line with the next one of its dump; None after the last, and after a title before a dump.

    A dump ends where the next one begins at offset 0. Lines of another kind are titles if a dump begins after them.
    After the last dump they are other text if the dump ended with an offset alone, if a blank line, a Markdown fence or
    a closing bracket comes first, or if tcpdump prints such lines at its end.
    """
    line: Line | None = None
    titles: list[Line] = []
    for after in lines_of(text):
        if after.kind == "other":
            titles.append(after)
            continue
        if line is not None:
            yield line, None if begins_dump(after) else next(iter(titles), after)
        yield from ((title, None) for title in titles)
        titles = []
        line = after
    if line is not None:
        yield line, None if _ends(line, titles) else titles[0]
    yield from ((title, None) for title in titles)


def is_behind(line: Line) -> bool:
    """Whether the line closes the brackets around a dump, or is a fence."""
    return bool(_BEHIND.match(line.text))


def _ends(line: Line, later: list[Line]) -> bool:
    """Whether the last dump ends with a line, though other lines stand after it."""
    if not later or line.kind == "offset" or later[0].number > line.number + 1:
        return True
    return is_behind(later[0]) or all(_TCPDUMP_END.match(each.text) for each in later)


def word_size(line: Line) -> int:
    """Bytes in the first word of a data line; 0 if the number of its digits is odd."""
    word = line.text[line.start :].split(maxsplit=1)[0]
    return 0 if len(word) % 2 else len(word) // 2


class Layout(NamedTuple):
    """The layout of a dump.

    Attributes:
        form: the program that printed it, as in ``Input``.
        base: the base of the offsets.
        group: bytes in a word.
        colon: whether a colon follows the offset.
        swapped: whether words are numbers in the byte order of the machine (hexdump without -C, od -x); they are read
            as little-endian.
        word: matches a word and the spaces before it.
        width: bytes in a full line; 0 if unknown.
        end: characters from the first word of a full line to the end of its last word; 0 if unknown.
        text: whether a text column follows; None if unknown.
        doubt: whether the offsets are plausible in another base as well.
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
