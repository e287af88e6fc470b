"""Memory as debuggers print it: gdb's ``x`` command, and WinDbg's ``db``, ``dw``, ``dd``, ``dc`` and ``dq``."""

from __future__ import annotations

import re

from wirekit.cli.input.cutting import shows
from wirekit.cli.input.text import Input, wrong_in_line

_GDB = re.compile(
    r"[ \t]*(?P<address>0x[0-9a-fA-F]+)(?:[ \t]+<[^>\n]*>)?:"
    r"(?P<words>(?:[ \t]+(?:0x[0-9a-fA-F]+|-?(?:0|[1-9]\d{0,19})(?:[ ]'(?:\\\d{3}|\\.|[^\\\n])')?)(?!\S))+)[ \t]*"
)
_CHARACTER = re.compile(r" '(?:\\\d{3}|\\.|[^\\\n])'")
_WORD = r"(?:[0-9a-fA-F]{8}`[0-9a-fA-F]{8}|[0-9a-fA-F]{16}|[0-9a-fA-F]{8}|[0-9a-fA-F]{4}|[0-9a-fA-F]{2}|\?{2,})"
_WINDBG = re.compile(
    rf"[ \t]*(?P<address>[0-9a-fA-F]{{8}}(?:`?[0-9a-fA-F]{{8}})?)  (?P<words>{_WORD}(?:[ -]{_WORD})*+)-?"
    r"(?:  +(?P<text>\S.*))?[ \t]*"
)
_PROMPT = re.compile(r"[ \t]*\d+:[^>\n]*> ?d[a-zA-Z]* [^\n]*")
_LINE = 16


def read_gdb(text: str) -> Input | None:
    """Memory as ``x/8xb`` and the like show it, None for other text; words of several bytes are little-endian.

    Decimal numbers and characters (``x/8ub``, ``x/8cb``) are read as bytes.

    Raises:
        Misuse: for a line of another kind, an address that does not continue the line before, words of different
            sizes.
    """
    first = text.lstrip().partition("\n")[0]
    if not _GDB.match(first) or not ("0x" in first.partition(":")[2] or "\t" in first.strip()):
        return None
    data, begin, size = bytearray(), 0, 0
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        match = _GDB.fullmatch(line)
        if match is None:
            raise wrong_in_line(number, line, 0, "not a line of gdb's x command with hexadecimal or decimal numbers")
        address, words = int(match["address"], 16), _CHARACTER.sub("", match["words"]).split()
        width = len(words[0]) - 2 if words[0].startswith("0x") else 0
        if not data:
            begin, size = address, width
        same = width == size and all(word.startswith("0x") and len(word) == size + 2 for word in words if size)
        if not same or size not in (0, 2, 4, 8, 16):
            raise wrong_in_line(number, line, match.start("words"), "words of different sizes (x/xb prints bytes)")
        if address != begin + len(data):
            raise wrong_in_line(number, line, 0, f"the address should be {begin + len(data):#x}")
        for word in words:
            if size:
                data += bytes.fromhex(word[2:])[::-1]
            elif -0x80 <= int(word) <= 0xFF:
                data.append(int(word) % 0x100)
            else:
                raise wrong_in_line(number, line, match.start("words"), f"{word} is not a byte (x/xb prints bytes)")
    notes = {0: "decimal numbers were read as bytes", 2: None}
    return Input(bytes(data), "gdb", notes.get(size, "words of several bytes were read as little-endian"))


def read_windbg(text: str) -> Input | None:
    """Memory as ``db``, ``dw``, ``dd``, ``dc`` and ``dq`` show it, None for other text; words are little-endian.

    WinDbg's lines have a grave accent in the address, or a hyphen after the eighth byte, or words of several bytes two
    columns after addresses that advance by the sizes of the words.

    Raises:
        Misuse: for a line of another kind, an address that does not continue the line before, memory that could not
            be read, a text column that shows other bytes.
    """
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not any(map(_is_windbg, (line for _, line in lines[:2]))) and not _advance([line for _, line in lines[:4]]):
        return None
    data, begin, size = bytearray(), 0, 0
    for number, line in lines:
        match = _WINDBG.fullmatch(line)
        if match is None:
            if not data and _PROMPT.fullmatch(line):
                continue
            raise wrong_in_line(number, line, 0, "not a line of WinDbg's db, dw, dd or dq")
        words = re.split("[ -]", match["words"].replace("`", ""))
        address = int(match["address"].replace("`", ""), 16)
        if not data:
            begin, size = address, len(words[0])
        if any("?" in word for word in words):
            raise wrong_in_line(number, line, match.start("words"), "memory that the debugger could not read (??)")
        if any(len(word) != size for word in words):
            raise wrong_in_line(number, line, match.start("words"), "words of different sizes")
        if address != begin + len(data):
            raise wrong_in_line(number, line, 0, f"the address should be {begin + len(data):#x}")
        row = b"".join(bytes.fromhex(word)[::-1] for word in words)
        if match["text"] and len(match["text"]) >= len(row) and not shows(match["text"], row):
            raise wrong_in_line(number, line, match.start("text"), "the text column does not show these bytes")
        data += row
    return Input(bytes(data), "windbg", None if size == 2 else "words of several bytes were read as little-endian")


def _is_windbg(line: str) -> bool:
    match = _WINDBG.fullmatch(line)
    return match is not None and ("`" in match["address"] or "-" in match["words"][:24][23:])


def _advance(lines: list[str]) -> bool:
    """Whether lines have words of several bytes, after addresses of eight digits that advance by them."""
    matches = [_WINDBG.fullmatch(line) for line in lines]
    if len(matches) < 2 or matches[0] is None or matches[1] is None:
        return False
    first, second = (int(match["address"].replace("`", ""), 16) for match in matches[:2] if match)
    words = matches[0]["words"].replace("`", "").split(" ")
    return first > 0 and len(words[0]) > 2 and second - first == sum(map(len, words)) // 2
