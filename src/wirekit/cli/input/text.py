"""Functions for all forms of text: the result, cleaning, and errors that name line and column."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from wirekit.errors import Misuse

DIGITS = "0123456789abcdefABCDEF"
COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|//[^\n]*", re.DOTALL)
ANY_COMMENT = r"(?:#|//)[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/"
"""A pattern of comments in programs and scripts, to be a part of others."""
_COLOURS = re.compile(r"\x1b\[[\d;]*[mK]")
_FENCE = re.compile(r"^[ \t]*```[\w+-]*[ \t]*$", re.MULTILINE)  # of Markdown
_QUOTING = re.compile(r"^[ \t]*(?:>[ \t]*)+", re.MULTILINE)
_QUOTED_BINARY = re.compile(r"^[ \t]*(?:>(?!>[\s.,;)\]}]*$)[ \t]*)+", re.MULTILINE)  # not the end of <<...>>
_PROMPT = re.compile(r"^[ \t]*\((?:gdb|lldb)\)[^\n]*", re.MULTILINE)
_PANELS = re.compile(  # of hexyl: an offset, eight bytes in each panel, text
    r"[│|](?P<offset>[0-9a-f]{8}|\* {7})[│|](?P<words>(?:(?: [0-9a-f]{2}| {3}){8} [┊│|]){1,8}+)"
    r"(?:[^\n]{8}[┊│|]){1,8}[ \t]*$",
    re.MULTILINE,
)
_BARE_PANELS = re.compile(  # of hexyl --border none
    r"^(?P<bytes> ?[0-9a-f]{8}  (?:[0-9a-f]{2} | {3}){8}  (?:[0-9a-f]{2} | {3}){8}) [^\n]{1,18}$", re.MULTILINE
)
_PANEL_FRAME = re.compile(r"^[^\n│]{0,200}?[┌└+][─┬┴┐┘+-]{20,}[ \t]*$", re.MULTILINE)
_BORDERS = str.maketrans("┊│|", "   ")
_DASHED = re.compile(  # of OpenSSL's BIO_dump
    r"^(?P<offset>[ \t]*[0-9a-f]{4,8}) -(?P<words>(?: [0-9a-f]{2}){1,8}(?:-[0-9a-f]{2}(?: [0-9a-f]{2}){0,7})?)"
    r"(?=[ -]|$)",
    re.MULTILINE,
)
_COMMENTED = re.compile(r"\s*^[ \t]*+(?P<marker>/{2,3}!?|#+|\*|--|;+|%+)(?=[ \t])", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Input:
    """The bytes that a text represents, and their form.

    Attributes:
        data: the bytes; of several dumps, one after the other.
        form: one of raw, hex, decimal, xxd, hexdump, wireshark, od, tcpdump, gdb, windbg, netty or base64.
        note: a message for the user if the text was ambiguous or unusual, else None.
        dumps: the bytes of each dump if there are several, else empty.
        sides: for each dump, the side of the connection that sent it: 0 for the sender of the first dump, 1 for the
            other. Empty if the input does not name the senders.
    """

    data: bytes
    form: str
    note: str | None = None
    dumps: tuple[bytes, ...] = field(default=(), repr=False)
    sides: tuple[int, ...] = field(default=(), repr=False)


def encoding_of(raw: bytes) -> str:
    return "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


def clean(text: str) -> str:
    """Line feeds only; no-break spaces (from web pages and chats) replaced by spaces.

    Quoting, the prompts of debuggers, hexyl's borders and text, and BIO_dump's dashes are blanked. The colours of a
    terminal are removed, because a dump has none in the middle of its columns.
    """
    text = _COLOURS.sub("", text) if "\x1b[" in text else text
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\xa0", " ")
    if ">" in text:
        text = blank(_QUOTED_BINARY if "<<" in text else _QUOTING, text)
    text = _DASHED.sub(lambda line: f"{line['offset']}  {line['words'].replace('-', ' ')}", blank(_PROMPT, text))
    return _without_panels(text)


def _without_panels(text: str) -> str:
    text = _BARE_PANELS.sub(lambda line: line["bytes"].ljust(len(line[0])), text)
    bare = _PANELS.sub(lambda line: f" {line['offset']} {line['words'].translate(_BORDERS)}".ljust(len(line[0])), text)
    return text if bare == text else blank(_PANEL_FRAME, bare)


def without_comments(text: str) -> str:
    """The markers of comments blanked if all lines have them."""
    first = _COMMENTED.match(text)
    if first is None:
        return text
    marker = re.compile(rf"^[ \t]*+{re.escape(first['marker'])}(?![^ \t\n])", re.MULTILINE)
    return blank(marker, text) if len(marker.findall(text)) == line_count(text) else text


def without_fences(text: str) -> str:
    """The fences of Markdown blanked; those around dumps are lines that the dump's note names."""
    return blank(_FENCE, text) if "```" in text else text


def blank(pattern: re.Pattern[str], text: str) -> str:
    """``text`` with each match of ``pattern`` replaced by spaces; line feeds and positions stay."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def wrong(text: str, at: int, problem: str) -> Misuse:
    """An error at index ``at`` of ``text``: line, column, the problem, and the text around it."""
    line = text.count("\n", 0, at) + 1
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    return wrong_in_line(line, text[start : len(text) if end < 0 else end], at - start, problem)


def wrong_in_line(number: int, line: str, at: int, problem: str) -> Misuse:
    begin = max(0, at - 20)
    return Misuse(f"line {number}, column {at + 1}: {problem} in {line[begin : at + 20].strip()!r}")


def line_count(text: str) -> int:
    """Lines that are not blank."""
    return sum(1 for line in text.split("\n") if line.strip())
