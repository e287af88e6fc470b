"""Binaries in the syntax of Erlang and Elixir: ``<<0, 18:16, -1::32, "text">>``."""

from __future__ import annotations

import re

from wirekit.cli.input.text import Input, wrong
from wirekit.errors import Misuse
from wirekit.values import whole_number

_BEFORE = re.compile(r"\s*+(?:[^\n\"]{0,200}[\s:=(,])?\s*+")
_AFTER = re.compile(r"[\s.,;)\]}]*+(?:(?:%|#)[^\n]*+\s*+)*+")
_GAP = re.compile(r"(?:[\s,]|[%#][^\n]*+)*+")
_SEGMENT = re.compile(
    r'(?:(?P<string>"(?:[^"\\\n]|\\["\\])*+"|<<\s*+"(?:[^"\\\n]|\\["\\])*+"\s*+>>)'
    r"|(?P<sign>-?)\s*+(?P<base>16#|0[xX])?(?P<digits>[\da-fA-F]++(?:_\d++)*+))"
    r"\s*+(?:(?:::?|/)\s*+(?P<type>[a-z\d]++(?:[-/][a-z\d]++|\(\d++\))*+))?"
)
_TYPES = frozenset(("size", "integer", "signed", "unsigned", "big", "binary", "bytes", "utf8"))
_MOST_BITS = 1024


def read_binary(text: str) -> Input | None:
    """The bytes of ``<<...>>`` whose segments are constants of whole bytes; None for other text.

    >>> read_binary('request = <<18::16, -1::size(8), "ab"::binary>>').data
    b'\\x00\\x12\\xffab'

    Raises:
        Misuse: for an incomplete binary, or a number that does not fit into its segment.
    """
    begin = text.find("<<")
    if begin < 0 or not text.isascii() or not _BEFORE.fullmatch(text, 0, begin):
        return None
    end = text.rfind(">>")
    try:
        data, at = _segments(text, begin + 2)
    except Misuse:
        if end > begin and _AFTER.fullmatch(text, end + 2):
            raise
        return None  # a shift, a redirection
    return Input(data, "decimal") if data and text.startswith(">>", at) and _AFTER.fullmatch(text, at + 2) else None


def _segments(text: str, at: int) -> tuple[bytes, int]:
    """The bytes of all segments from ``at`` on, and the index after them."""
    data = bytearray()
    at = _after_gap(text, at)
    while not text.startswith(">>", at):
        if text.startswith("...", at):
            raise wrong(text, at, "the list is cut; print all of it")
        segment = _SEGMENT.match(text, at)
        piece = segment and _bytes(text, segment)
        if segment is None or piece is None:
            break
        data += piece
        at = _after_gap(text, segment.end())
    return bytes(data), at


def _after_gap(text: str, at: int) -> int:
    """The index after blanks, commas and comments."""
    gap = _GAP.match(text, at)
    return gap.end() if gap else at


def _bytes(text: str, segment: re.Match[str]) -> bytes | None:
    """The bytes of a segment; None if they are not constant, big-endian and whole."""
    words = re.findall(r"[a-z]+8?|\d+", segment["type"] or "")
    sizes = [whole_number(word) for word in words if word.isdecimal()]
    if len(sizes) > 1 or not _TYPES.issuperset(word for word in words if not word.isdecimal()):
        return None
    if segment["string"]:
        return re.sub(r"\\(.)", r"\1", segment["string"].strip("<> \n\t")[1:-1]).encode() if not sizes else None
    digits = segment["digits"].replace("_", "")
    bits = sizes[0] if sizes else 8
    if not bits or bits % 8 or max(bits, len(digits)) > _MOST_BITS or not (segment["base"] or digits.isdecimal()):
        return None
    number = int(segment["sign"] + digits, 16 if segment["base"] else 10)
    if not -(1 << bits - 1) <= number < 1 << bits:
        raise wrong(text, segment.start(), f"{number} does not fit into {bits} bits")
    return (number % (1 << bits)).to_bytes(bits // 8, "big")
