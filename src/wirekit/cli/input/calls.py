"""Calls that decode hex or base64 in a program: ``bytes.fromhex("17ca")``, ``base64.b64decode("F8o=")``."""

from __future__ import annotations

import re

from wirekit.cli.input.encoded import from_base64
from wirekit.cli.input.text import ANY_COMMENT, Input, blank

_SPACE = rf"(?:\s|{ANY_COMMENT})*+"
_STRING = r"""b?(?:'[^'\n]*+'|"[^"\n]*+")"""
_CALL = re.compile(
    rf"""\s*+(?:[^'"\n]{{0,200}}=\s*+)?[^'"\n]{{0,200}}?\({_SPACE}(?:<<{_SPACE})?(?P<strings>(?:{_STRING}{_SPACE}\+?{_SPACE})++)(?:>>\s*+)?"""
    r"""(?:,\s*+['"](?P<form>\w++)['"]\s*+)?\)(?:[.?]\w*+(?:\(\))?)*+[\s;,.)]*+""",
    re.IGNORECASE,
)
_PARTS = re.compile(
    rf"(?P<before>b?(?P<quote>['\"]))(?P<text>(?:(?!(?P=quote)).)*+)(?P=quote)|{ANY_COMMENT}|[\s+]", re.IGNORECASE
)
_ALL = re.compile(r"[^\n]")
_NO_ARGUMENTS = re.compile(r"\(\)")
_BASE64 = re.compile(r"base_?64|b64|decode64|\batob\(", re.IGNORECASE)
_HEX = re.compile(r"hex(?!lify)|unhexlify|decode16", re.IGNORECASE)
_ENCODER = re.compile(r"encode|encoding(?!\.)|to_?hex", re.IGNORECASE)
_POSTGRES = re.compile(r"\s*+(?:[eE]'\\\\x(?P<escaped>[^']*+)'|'\\x(?P<cast>[^']*+)'(?=::))(?:::bytea)?\s*+;?\s*+")


def read_call(text: str) -> Input | None:
    """The bytes of a call that decodes strings of hex or base64, and of PostgreSQL's bytea; None for other text.

    >>> read_call('print(unhexlify(b"17ca"))').data.hex()
    '17ca'

    Raises:
        Misuse: the strings are not base64.
    """
    if bytea := _POSTGRES.fullmatch(text):
        return _from_hex(bytea["escaped"] or bytea["cast"] or "")
    call = _CALL.fullmatch(text)
    name = text[: call.start("strings")] if call else ""
    if call is None or _ENCODER.search(name):
        return None
    begin = max(map(blank(_NO_ARGUMENTS, name).rfind, "=)")) + 1  # of the last of several calls in a row
    form = (call["form"] or "").lower()
    parts = list(_PARTS.finditer(call["strings"]))
    if form == "base64" or _BASE64.search(name, begin):
        strings = "".join(_in_place(part) for part in parts)
        return Input(from_base64(blank(_ALL, name) + strings), "base64")
    digits = "".join(part["text"] or "" for part in parts).replace(":", " ")
    return _from_hex(digits) if form == "hex" or _HEX.search(name, begin) else None


def _in_place(part: re.Match[str]) -> str:
    """The text of a string, or blanks, in the place of the part."""
    return blank(_ALL, part[0]) if part["text"] is None else " " * len(part["before"]) + part["text"] + " "


def _from_hex(digits: str) -> Input | None:
    try:
        return Input(bytes.fromhex(digits), "hex")
    except ValueError:
        return None
