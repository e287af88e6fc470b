"""Converts pasted or piped text to bytes.

The entry point is ``read_input``. It knows raw bytes, base64, lists of numbers, URL encoding and every usual way to
write bytes as hex: plain hex with any separators or labels, C arrays, escaped strings, Python's bytes, binaries of
Erlang, a line of a log, and the dumps of xxd, hexdump, hexyl, od, Wireshark, tcpdump, ngrep, socat, OpenSSL, gdb, lldb,
WinDbg and Netty, also with text before each line.
Nothing here knows a protocol, a file or a terminal.

A dump is read in two steps. First its layout is measured on the first lines: the base of the offsets, the bytes in a
word and in a line, and whether a text column follows. Then each line is cut by these measures and by the distance to
the next offset, so that the text column is never taken for data, however much it looks like hex. A line that
contradicts its offsets is an error, not a guess. Before text is read, ignored parts are replaced by blanks and never
removed, so that an error can name line and column.
"""

from __future__ import annotations

import re
from dataclasses import replace

from wirekit.cli.input.bit_syntax import read_binary
from wirekit.cli.input.calls import read_call
from wirekit.cli.input.debuggers import read_gdb, read_windbg
from wirekit.cli.input.dumps import read_dump
from wirekit.cli.input.encoded import from_base64, guess_base64
from wirekit.cli.input.exchanges import read_arrays, read_follow, read_turns
from wirekit.cli.input.lines import without_prefix
from wirekit.cli.input.literals import (
    read_box,
    read_haskell,
    read_literal,
    read_logged,
    read_named,
    read_numbers,
    read_url,
)
from wirekit.cli.input.measures import measure
from wirekit.cli.input.plain import read_plain
from wirekit.cli.input.text import Input, clean, encoding_of, without_comments, without_fences
from wirekit.errors import Limit, Misuse

__all__ = ["DEFAULT_LIMIT", "FORMS", "Input", "read_input"]

FORMS = ("auto", "raw", "hex", "base64")
DEFAULT_LIMIT = 256 * 1024 * 1024
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
_PRINTABLE = bytes(range(0x20, 0x7F)) + b"\t\n\v\f\r"


def read_input(raw: bytes, form: str = "auto", *, limit: int = DEFAULT_LIMIT) -> Input:
    r"""Read the bytes that ``raw`` represents.

    The form ``raw`` accepts any bytes. ``hex`` accepts plain hex (``0A 0b``, ``0a:0b``, ``0x0a,0x0b``, ``\x0a\x0b``, a
    C array, in any number of lines, with comments), lists of decimal numbers and all dumps. ``base64`` accepts the
    standard and the URL-safe alphabet, wrapped or not, padded or not. ``auto`` chooses the first that applies:

    1. raw, if the bytes are not printable ASCII text after an optional byte order mark (UTF-8, UTF-16); text around a
       dump, or around the output of a debugger or a language, may have other characters;
    2. the output of a debugger, a language or Netty, recognised by its brackets, quotes and addresses; a stream that
       Wireshark followed, recognised by its heading or its two margins;
    3. a dump, if at least half of the lines from the first one on have an offset and hex words after it, and the
       offsets are marked (xxd, tcpdump), or the text column is (``|…|``, ``>…<``), or the offsets advance by the bytes
       of their lines, or they start at 0 and are two columns apart from the bytes. A damaged dump is an error. If the
       text is no dump, the words that a log writes before each offset are skipped, and the rest is read as one;
    4. hex, if all of the text is hex, or if each line has one hex number of at least 8 bytes;
    5. base64, if the text is at least 16 characters of valid base64, not only hex digits, in lines of one length (the
       last may be shorter) without other white space;
    6. raw, with a note that says why.

    Leading white space and ``> `` quoting are ignored in each line. Offsets may start at any number. If they skip
    bytes, these are missing in the data, and the note says so. An offset of 0 begins another dump. Lines between two
    dumps are skipped; if there are several dumps, none may skip bytes.

    >>> read_input(b"0x0a, 0x0B")
    Input(data=b'\n\x0b', form='hex', note=None)
    >>> read_input(b"00000000: 6465 2061 64                             de ad").data
    b'de ad'
    >>> read_input(b"AAAABWhlbGxvIQ==").form
    'base64'

    Args:
        raw: at most ``limit`` bytes. The result has at most ``limit`` bytes as well, also with ``*`` lines.
        form: auto, raw, hex or base64.
        limit: bytes; 256 MiB by default.

    Raises:
        Misuse: the text is not what ``form`` says, or it is a damaged dump; names the line, the column and the text
            there.
        Limit: ``input_size`` is exceeded.
    """
    if form not in FORMS:
        raise Misuse(f"unknown input form {form!r}; pass one of {', '.join(FORMS)}")
    if len(raw) > limit:
        raise Limit("input_size", limit, len(raw), path="input")
    if form == "raw":
        return Input(raw, "raw")
    if form == "auto":
        return _read_auto(raw, limit)
    text = clean(raw.decode(encoding_of(raw), errors="replace"))
    if form == "base64":
        return Input(from_base64(without_fences(text)), "base64")
    return _read_hex(without_comments(text), limit)


def _read_auto(raw: bytes, limit: int) -> Input:
    try:
        shown = clean(raw.decode(encoding_of(raw)))
    except UnicodeDecodeError:
        return Input(raw, "raw")
    text = without_comments(shown)
    if text.encode(errors="replace").translate(None, _PRINTABLE):
        if not "".join(text.split()).isprintable():
            return Input(raw, "raw")
        around = _BEYOND_ASCII.sub("?", text)  # words around a dump, such as tshark's arrows
        dump = _read_printed(text, limit) or _read_dump(around, limit)
        return dump or Input(raw, "raw", "text read as raw bytes: it is not all ASCII")
    if not text.strip():
        return Input(raw, "raw", "the input contains only white space" if raw else "the input is empty")
    if dump := _read_printed(text, limit) or _read_dump(text, limit):
        return dump
    bare = without_fences(text)
    try:
        return read_plain(bare)
    except Misuse as error:
        not_hex = error
    if named := read_named(bare):
        return named
    try:
        return guess_base64(without_fences(shown))  # a comment may be a single word
    except Misuse as error:
        return Input(raw, "raw", f"text read as raw bytes; not hex: {not_hex}; not base64: {error}")


def _read_printed(text: str, limit: int) -> Input | None:
    """Inputs that name their kind: output of debuggers, languages and Netty, and followed streams; else None."""
    text = without_fences(text)
    printed = read_gdb(text) or read_windbg(text) or read_call(text) or read_literal(text)
    printed = printed or read_haskell(text) or read_box(text) or read_logged(text) or read_binary(text)
    return (
        printed
        or read_turns(text)
        or read_arrays(text)
        or read_numbers(text)
        or read_url(text)
        or read_follow(text, limit)
    )


def _read_dump(text: str, limit: int) -> Input | None:
    if layout := measure(text):
        return read_dump(text, layout, limit)
    bare = without_prefix(text)
    if bare is None or (layout := measure(bare)) is None:
        return None
    try:
        dump = read_dump(bare, layout, limit)
    except Misuse as damaged:
        try:
            return read_plain(text)  # hex of which some words look like offsets
        except Misuse:
            raise damaged from None
    note = "the text before the offsets was skipped"
    return replace(dump, note=f"{note}; {dump.note}" if dump.note else note)


def _read_hex(text: str, limit: int) -> Input:
    return _read_printed(text, limit) or _read_dump(text, limit) or read_plain(without_fences(text))
