"""Base64, requested by the user or recognised."""

from __future__ import annotations

import base64
import re

from wirekit.cli.input.text import DIGITS, Input, line_count, wrong
from wirekit.errors import Misuse, plural

_SHORTEST_BASE64 = 16  # characters; shorter text may be a word, so only --input base64 reads it
_AROUND = re.compile(r"\s*(?:data:[\w/.+-]*;base64,|(?P<quote>['\"]))(?P<text>[^'\"\s]*)(?(quote)(?P=quote))[,;]?\s*")
_URLSAFE = str.maketrans("-_", "+/")


def from_base64(text: str) -> bytes:
    if bad := re.search(r"[^A-Za-z0-9+/_= \t\n\v\f-]", text):
        raise wrong(text, bad.start(), f"{bad[0]!r} is not a base64 character")
    if (bad := re.search(r"[+/]", text)) and (other := re.search(r"[_-]", text)):
        raise wrong(text, max(bad.start(), other.start()), "the standard and the URL-safe alphabet are mixed")
    if bad := re.search(r"=\s*[^=\s]", text):
        raise wrong(text, bad.start(), "padding before the end")
    joined = "".join(text.split())
    body = joined.rstrip("=")
    missing = -len(body) % 4
    if missing == 3 or len(joined) - len(body) not in (0, missing):
        raise Misuse(f"{plural(len(joined), 'character')}, not a whole number of base64 groups")
    return base64.b64decode(body.translate(_URLSAFE) + "=" * missing)


def guess_base64(text: str) -> Input:
    """Printable ``text`` as base64, also in quotes or a data URI, or Misuse if it is more likely something else."""
    if around := _AROUND.fullmatch(text):
        text = around["text"]
    lines = text.split() or [""]
    size = sum(map(len, lines))
    if not set(text) - set(DIGITS + " \n\t\v\f"):
        raise Misuse("hex digits only")
    if len(lines) != line_count(text):
        raise Misuse("words with spaces between them")
    if any(len(line) != len(lines[0]) for line in lines[1:-1]) or len(lines[-1]) > len(lines[0]):
        raise Misuse("lines of different lengths")
    if size < _SHORTEST_BASE64:
        raise Misuse(f"{plural(size, 'character')}, too few to tell")
    data = from_base64(text)
    if base64.b64encode(data).decode().rstrip("=") != "".join(lines).rstrip("=").translate(_URLSAFE):
        raise Misuse("the last character holds bits beyond the last byte")
    if lines[-1].endswith("=") or size % 4 == 0:
        return Input(data, "base64")
    return Input(data, "base64", "read as base64 without padding; pass --input raw if the text itself is meant")
