"""Hex without offsets: any separators, prefixes, C arrays, escaped strings."""

from __future__ import annotations

import re
from dataclasses import replace

from wirekit.cli.input.lines import LONGEST_LINE, parse_line, word_size
from wirekit.cli.input.literals import LEAST_LABELLED, doubtful
from wirekit.cli.input.text import COMMENT, DIGITS, Input, blank, line_count, wrong
from wirekit.errors import Misuse, plural

_LONGEST_SYNTAX = 1000  # characters before or after the braces of a C array
_SEPARATORS = str.maketrans(dict.fromkeys(",:;-'\"", " "))
_DECLARATION = re.compile(r"\s*|[\w\s*\[\]]*[=\]]\s*|\[\]byte\s*")  # C, C++, Java, Go
_CLOSING = re.compile(r" ?;?(?: ?(?:\w+ )+= ?\d+ ?;)?")  # xxd -i gives the length in a second declaration
_ONE_DIGIT = re.compile(r"0[xX]([0-9A-Fa-f])(?![0-9A-Fa-f])")
_DATABASE = re.compile(rf"\A\s*(?:[xX](?=')|\\x(?=[{DIGITS}]{{4,}}\s*\Z))")  # X'17ca' of SQL, \x17ca of PostgreSQL
_BYTES_PREFIX = re.compile(r"\A(\s*)[bB](?=['\"])")
_LINE_COMMENT = re.compile(r"(?:#|//)[^\n]*")
_LABELLED = re.compile(  # bytes and, two columns after them, words that cannot be damaged bytes
    rf"^([ \t]*(?:[{DIGITS}]{{2}} )*[{DIGITS}]{{2}})[ \t]{{2,}}(?![{DIGITS}]+(?!\S))(?=[A-Za-z]\S\S|[^\w\s])[^\n]+$",
    re.MULTILINE,
)
_JOINED = "lines end in the middle of a byte; they were joined"
_CONTINUATION = re.compile(r"\\(?=[ \t]*(?:\n|\Z))")


def read_plain(text: str) -> Input:
    """Hex without offsets: all digits are data, except those of prefixes.

    Raises:
        Misuse: the text is not hex.
    """
    bare, prefix = _strip_syntax(text)
    digits = _ONE_DIGIT.sub(r" 0\1", bare).replace("0x", "  ").replace("0X", "  ").replace("\\x", "  ")
    digits = digits.translate(_SEPARATORS)
    note = None
    try:
        data = bytes.fromhex(digits)
    except ValueError:
        if (bare := _without_labels(text)) != text:
            labelled = read_plain(bare)
            if len(labelled.data) >= LEAST_LABELLED and labelled.note != _JOINED:
                return replace(labelled, note="the text after the bytes of each line was skipped")
        data, note = _join_lines(text, digits)
    if prefix and bare.count(prefix) + bare.count(prefix.upper()) != len(data):
        raise _unprefixed(bare, prefix)
    if not data and text.strip():
        raise wrong(text, len(text) - len(text.lstrip()), "no hex digits")
    return Input(data, "hex", note or _doubt_plain(text))


def _without_labels(text: str) -> str:
    """Comments blanked; if there are none, what follows the bytes of each line two columns further on."""
    if (bare := blank(_LINE_COMMENT, text)) != text:
        return bare
    return _LABELLED.sub(lambda line: line[1].ljust(len(line[0])), text)


def _strip_syntax(text: str) -> tuple[str, str | None]:
    """The text with blanks around the bytes of an array, string or literal; and the prefix that each byte must have."""
    if "{" in text and "{" in (code := blank(COMMENT, text)):
        return _strip_array(code), "0x"
    if database := _DATABASE.match(text):
        return " " * database.end() + text[database.end() :], None
    if "\\x" in text:
        return blank(_CONTINUATION, _BYTES_PREFIX.sub(r"\1 ", text)), "\\x"
    return text, None


def _strip_array(text: str) -> str:
    """Blank the declaration before the first brace and what follows the last."""
    begin, end = text.index("{") + 1, text.rfind("}")
    end = len(text) if end < 0 else end
    before, after = text[: begin - 1], text[end + 1 :]
    if max(len(before), len(after)) > _LONGEST_SYNTAX:
        return text
    if not _DECLARATION.fullmatch(before) or not _CLOSING.fullmatch(" ".join(after.split())):
        return text
    return re.sub(r"[^\n]", " ", text[:begin]) + text[begin:end] + " " * (len(text) - end)


def _join_lines(text: str, digits: str) -> tuple[bytes, str]:
    """Read hex that was wrapped in the middle of a byte; the error names the text that is not hex."""
    if bad := re.search(rf"[^{DIGITS} \t\n\v\f]", digits):
        raise wrong(text, bad.start(), f"{text[bad.start()]!r} is not a hex digit")
    words = digits.split()
    wrapped = len(words) == line_count(digits) and all(len(word) == len(words[0]) for word in words[1:-1])
    if not wrapped or sum(map(len, words)) % 2 or len(words[-1]) > len(words[0]):
        odd = next(word for word in re.finditer(r"\S+", digits) if len(word[0]) % 2)
        raise wrong(text, odd.start(), f"{plural(len(odd[0]), 'hex digit')}, an odd number,")
    return bytes.fromhex("".join(words)), _JOINED


def _unprefixed(text: str, prefix: str) -> Misuse:
    """The error for text in which only some bytes have the prefix."""
    token = re.compile(rf"(?:0x[{DIGITS}]{{1,2}}|\\x[{DIGITS}]{{2}})(?![{DIGITS}])|[^\w\\]", re.IGNORECASE)
    at = 0
    while match := token.match(text, at):
        at = match.end()
    return wrong(text, at, f"not a byte with the prefix {prefix}")


def _doubt_plain(text: str) -> str | None:
    """A note if a single line of hex begins with a word that could be the offset of a dump; else None."""
    if len(text) > LONGEST_LINE or "\n" in text.strip():
        return None
    line = parse_line(1, text.strip())
    if line.kind != "data" or (word_size(line) > 1 and len(line.gap) < 2):
        return doubtful(text)
    return f"the first word was read as data; if {line.offset!r} is an offset, remove it"
