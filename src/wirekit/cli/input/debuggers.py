"""What debuggers and Python print: memory as gdb's ``x`` command shows it, and the literal of a bytes object."""

from __future__ import annotations

import ast
import re

from wirekit.cli.input.text import Input, wrong_in_line

_GDB = re.compile(r"[ \t]*(0x[0-9a-fA-F]+)(?:[ \t]+<[^>\n]*>)?:((?:[ \t]+0x[0-9a-fA-F]+)+)[ \t]*")
_LITERAL = re.compile(
    r"""\s*(b'(?:[^'\\\n]|\\[\\'"tnr]|\\x[0-9a-fA-F]{2})*'|b"(?:[^"\\\n]|\\[\\'"tnr]|\\x[0-9a-fA-F]{2})*")\s*"""
)


def read_gdb(text: str) -> Input | None:
    """Memory as ``x/8xb`` and the like show it, None for other text; words of several bytes are taken little-endian.

    Raises:
        Misuse: for a line that is of another kind, an address that does not follow, words of different sizes.
    """
    if not _GDB.match(text.lstrip("\n")):
        return None
    data, begin, size = bytearray(), 0, 0
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        match = _GDB.fullmatch(line)
        if match is None:
            raise wrong_in_line(number, line, 0, "no line of gdb's x/x")
        address, words = int(match[1], 16), [word[2:] for word in match[2].split()]
        if not size:
            begin, size = address, len(words[0])
        if size not in (2, 4, 8, 16) or any(len(word) != size for word in words):
            raise wrong_in_line(number, line, match.start(2), "words that are not of one size (x/xb gives bytes)")
        if address != begin + len(data):
            raise wrong_in_line(number, line, 0, f"the address should be {begin + len(data):#x}")
        for word in words:
            data += bytes.fromhex(word)[::-1]
    return Input(bytes(data), "gdb", None if size == 2 else "words of several bytes were taken as little-endian")


def read_literal(text: str) -> Input | None:
    r"""The bytes of ``b'...'`` as Python prints it, None for other text.

    >>> read_literal(r"b'\x00\x05hello'")
    Input(data=b'\x00\x05hello', form='hex', note=None)
    """
    match = _LITERAL.fullmatch(text)
    return None if match is None or not match[1].isascii() else Input(ast.literal_eval(match[1]), "hex")
