"""What an engineer pastes or pipes, turned into bytes.

One entry, ``read_input``. It knows raw bytes, base64 and every usual way to write bytes as hex: plain hex with any
separators, C arrays, escaped strings, and the dumps of xxd, hexdump, od, Wireshark and tcpdump. Nothing here knows a
protocol, a file or a terminal.

A dump is read in two steps. Its first lines are measured: base of the offsets, bytes in a word, bytes in a line,
whether a text column follows. Then each line is cut by these measures and by the distance to the next offset, so that
the text column is never taken for data however much it looks like hex. A line that contradicts its offsets is an error,
not a guess. Text is only ever blanked, never shortened, before it is read, so that an error can name line and column.
"""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import NamedTuple

from wirekit.errors import Limit, Misuse

__all__ = ["DEFAULT_LIMIT", "FORMS", "Input", "read_input"]

FORMS = ("auto", "raw", "hex", "base64")
DEFAULT_LIMIT = 256 * 1024 * 1024

_HEAD = 32  # lines that are measured to recognise a dump
_LONGEST_LINE = 1 << 16  # characters; a longer line is no line of a dump
_LONGEST_SYNTAX = 1000  # characters before or after the braces of a C array
_WIDEST_TEXT = 64  # words of a line up to which a text column is looked for behind each of them
_SHORTEST_BASE64 = 16  # characters; shorter text is as likely a word, so only --input base64 takes it

_PRINTABLE = bytes(range(0x20, 0x7F)) + b"\t\n\v\f\r"
_DIGITS = "0123456789abcdefABCDEF"
_SEPARATORS = str.maketrans(dict.fromkeys(",:;-'\"", " "))
_SHOWN = bytes(byte if 0x20 <= byte < 0x7F else 0x2E for byte in range(256))
_URLSAFE = str.maketrans("-_", "+/")

_QUOTING = re.compile(r"^[ \t]*(?:>[ \t]*)+", re.MULTILINE)
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|//[^\n]*", re.DOTALL)
_DECLARATION = re.compile(r"\s*|[\w\s*\[\]]*[=\]]\s*|\[\]byte\s*")  # C, C++, Java, Go
_CLOSING = re.compile(r" ?;?(?: ?(?:\w+ )+= ?\d+ ?;)?")  # xxd -i gives the length in a second declaration
_ONE_DIGIT = re.compile(r"0[xX]([0-9A-Fa-f])(?![0-9A-Fa-f])")
_BYTES_PREFIX = re.compile(r"\A(\s*)[bB](?=['\"])")
_CONTINUATION = re.compile(r"\\(?=[ \t]*(?:\n|\Z))")
_LINE = re.compile(
    r"[ \t]*(?:(?P<star>\*)$"
    r"|(?P<prefix>0[xX])?(?P<offset>[0-9A-Fa-f]{4,16})(?P<colon>:?)(?:(?P<gap>[ \t]+)(?=[0-9A-Fa-f]{2})|$))"
)


@dataclass(frozen=True, slots=True)
class Input:
    """Bytes, and how they were written.

    Attributes:
        data: the bytes.
        form: what the input was: raw, hex, xxd, hexdump, wireshark, od, tcpdump or base64.
        note: a sentence for a human if something was ambiguous or odd, else None.
    """

    data: bytes
    form: str
    note: str | None = None


def read_input(raw: bytes, form: str = "auto", *, limit: int = DEFAULT_LIMIT) -> Input:
    r"""Read the bytes that ``raw`` stands for.

    ``form`` says what ``raw`` is. ``raw`` takes it as it is. ``hex`` takes plain hex (``0A 0b``, ``0a:0b``,
    ``0x0a,0x0b``, ``\x0a\x0b``, a C array, in any number of lines) and all dumps. ``base64`` takes the standard and the
    URL-safe alphabet, wrapped or not, padded or not. ``auto`` decides, in this order:

    1. raw, if it is not printable text: ASCII and white space, after a UTF-8 or UTF-16 byte order mark if there is one;
    2. a dump, if at least half of the first lines have an offset and hex words behind it, and the offsets are marked
       as such (xxd, tcpdump), or a text column is (``|…|``, ``>…<``), or they advance by the bytes of their lines, or
       they start at 0 and stand two columns apart from the bytes. What is so recognised and damaged is an error;
    3. hex, if all of it is hex;
    4. base64, if it is 16 characters or more of valid base64 without white space except between lines of one length,
       and not made of hex digits only;
    5. raw, with a note saying why.

    Leading white space and ``> `` quoting are ignored in each line. Offsets may start anywhere; where they leave bytes
    out, the data has them left out too and the note says so.

    >>> read_input(b"0x0a, 0x0B")
    Input(data=b'\n\x0b', form='hex', note=None)
    >>> read_input(b"00000000: 6465 2061 64                             de ad").data
    b'de ad'
    >>> read_input(b"AAAABWhlbGxvIQ==").form
    'base64'

    Args:
        raw: at most ``limit`` bytes; no more than ``limit`` come back either, whatever a ``*`` line asks for.
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
    text = _clean(raw.decode(_encoding(raw), errors="replace"))
    return _read_hex(text, limit) if form == "hex" else Input(_from_base64(text), "base64")


def _read_auto(raw: bytes, limit: int) -> Input:
    try:
        text = _clean(raw.decode(_encoding(raw)))
    except UnicodeDecodeError:
        return Input(raw, "raw")
    if text.encode(errors="replace").translate(None, _PRINTABLE):
        beyond = "".join(text.split()).isprintable()
        return Input(raw, "raw", "text taken as raw bytes: it is not all ASCII" if beyond else None)
    if not text.strip():
        return Input(raw, "raw", "the input holds nothing but white space" if raw else "the input is empty")
    if layout := _measure(text):
        return _read_dump(text, layout, limit)
    try:
        return _read_plain(text)
    except Misuse as error:
        not_hex = error
    try:
        return _guess_base64(text)
    except Misuse as error:
        return Input(raw, "raw", f"text taken as raw bytes: as hex, {not_hex}; as base64, {error}")


def _read_hex(text: str, limit: int) -> Input:
    layout = _measure(text)
    return _read_dump(text, layout, limit) if layout else _read_plain(text)


# Text


def _encoding(raw: bytes) -> str:
    return "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


def _clean(text: str) -> str:
    """Line feeds only, quoting blanked, no-break spaces (a habit of web pages and chats) made spaces."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\xa0", " ")
    return _blank(_QUOTING, text) if ">" in text else text


def _blank(pattern: re.Pattern[str], text: str) -> str:
    """``text`` with spaces for what ``pattern`` matches; line feeds and positions stay."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def _wrong(text: str, at: int, what: str) -> Misuse:
    """An error at index ``at`` of ``text``: line, column, what, and the text around it."""
    line = text.count("\n", 0, at) + 1
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    return _wrong_in_line(line, text[start : len(text) if end < 0 else end], at - start, what)


def _wrong_in_line(number: int, line: str, at: int, what: str) -> Misuse:
    begin = max(0, at - 20)
    return Misuse(f"line {number}, column {at + 1}: {what} in {line[begin : at + 20].strip()!r}")


# Plain hex


def _read_plain(text: str) -> Input:
    """Hex without offsets: every digit is data, prefixes and separators are not."""
    bare, prefix = _strip_syntax(text)
    digits = _ONE_DIGIT.sub(r" 0\1", bare).replace("0x", "  ").replace("0X", "  ").replace("\\x", "  ")
    digits = digits.translate(_SEPARATORS)
    note = None
    try:
        data = bytes.fromhex(digits)
    except ValueError:
        data, note = _join_lines(text, digits)
    if prefix and bare.count(prefix) + bare.count(prefix.upper()) != len(data):
        raise _unprefixed(bare, prefix)
    if not data and text.strip():
        raise _wrong(text, len(text) - len(text.lstrip()), "no hex digits")
    return Input(data, "hex", note or _doubt_plain(text))


def _strip_syntax(text: str) -> tuple[str, str | None]:
    """Blank what surrounds the bytes of a C array or an escaped string; also the prefix each byte must then have."""
    if "{" in text and "{" in (code := _blank(_COMMENT, text)):
        return _strip_array(code), "0x"
    if "\\x" in text:
        return _blank(_CONTINUATION, _BYTES_PREFIX.sub(r"\1 ", text)), "\\x"
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
    """Read hex that was wrapped in the middle of a byte, or say what is no hex in it."""
    if bad := re.search(rf"[^{_DIGITS} \t\n\v\f]", digits):
        raise _wrong(text, bad.start(), f"{text[bad.start()]!r} is no hex digit")
    words = digits.split()
    wrapped = len(words) == _line_count(digits) and all(len(word) == len(words[0]) for word in words[1:-1])
    if not wrapped or sum(map(len, words)) % 2 or len(words[-1]) > len(words[0]):
        odd = next(word for word in re.finditer(r"\S+", digits) if len(word[0]) % 2)
        raise _wrong(text, odd.start(), f"{len(odd[0])} hex digits, an odd number,")
    return bytes.fromhex("".join(words)), "lines end in the middle of a byte; they were joined"


def _line_count(text: str) -> int:
    """Lines that are not blank."""
    return sum(1 for line in text.split("\n") if line.strip())


def _unprefixed(text: str, prefix: str) -> Misuse:
    """The error for text in which not every byte has the prefix that some have."""
    token = re.compile(rf"(?:0x[{_DIGITS}]{{1,2}}|\\x[{_DIGITS}]{{2}})(?![{_DIGITS}])|[^\w\\]", re.IGNORECASE)
    at = 0
    while match := token.match(text, at):
        at = match.end()
    return _wrong(text, at, f"not one byte with the prefix {prefix}")


def _doubt_plain(text: str) -> str | None:
    """A note if a single line of hex begins with what could be the offset of a dump."""
    if len(text) > _LONGEST_LINE or "\n" in text.strip():
        return None
    line = _parse_line(1, text.strip())
    if line.kind != "data" or _word_size(line) > 1:
        return None
    return f"the first word was taken as data; if {line.offset!r} is an offset, remove it"


# Base64


def _from_base64(text: str) -> bytes:
    if bad := re.search(r"[^A-Za-z0-9+/_= \t\n\v\f-]", text):
        raise _wrong(text, bad.start(), f"{bad[0]!r} is no base64 character")
    if (bad := re.search(r"[+/]", text)) and (other := re.search(r"[_-]", text)):
        raise _wrong(text, max(bad.start(), other.start()), "the standard and the URL-safe alphabet are mixed")
    if bad := re.search(r"=\s*[^=\s]", text):
        raise _wrong(text, bad.start(), "padding before the end")
    joined = "".join(text.split())
    body = joined.rstrip("=")
    missing = -len(body) % 4
    if missing == 3 or len(joined) - len(body) not in (0, missing):
        raise Misuse(f"{len(joined)} characters are no whole number of base64 groups")
    return base64.b64decode(body.translate(_URLSAFE) + "=" * missing)


def _guess_base64(text: str) -> Input:
    """Printable ``text`` as base64, or Misuse if it is more likely something else."""
    lines = text.split()
    size = sum(map(len, lines))
    if not set(text) - set(_DIGITS + " \n\t\v\f"):
        raise Misuse("hex digits only")
    if len(lines) != _line_count(text):
        raise Misuse("words with spaces between them")
    if any(len(line) != len(lines[0]) for line in lines[1:-1]) or len(lines[-1]) > len(lines[0]):
        raise Misuse("lines of different lengths")
    if size < _SHORTEST_BASE64:
        raise Misuse(f"{size} characters are too few to tell")
    data = _from_base64(text)
    if base64.b64encode(data).decode().rstrip("=") != "".join(lines).rstrip("=").translate(_URLSAFE):
        raise Misuse("the last character holds bits beyond the last byte")
    if lines[-1].endswith("=") or size % 4 == 0:
        return Input(data, "base64")
    return Input(data, "base64", "taken as base64 without padding; pass --input raw if the text itself is meant")


# Dumps: lines


class _Line(NamedTuple):
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


def _parse_line(number: int, text: str) -> _Line:
    match = _LINE.match(text) if len(text) < _LONGEST_LINE else None
    if match is None:
        return _Line(number, text, "other")
    star, prefix, offset, colon, gap = match.groups("")
    if star:
        return _Line(number, text, "star")
    return _Line(number, text, "data" if gap else "offset", offset, prefix + colon, gap, match.end())


def _lines(text: str) -> Iterator[_Line]:
    """The lines that are not blank, numbered from 1; one at a time, because there may be millions."""
    number = begin = 0
    while begin <= len(text):
        end = text.find("\n", begin)
        end = len(text) if end < 0 else end
        number += 1
        if line := text[begin:end].rstrip():
            yield _parse_line(number, line)
        begin = end + 1


def _paired(text: str) -> Iterator[tuple[_Line, _Line | None]]:
    """Each line with the next one."""
    lines = _lines(text)
    line = next(lines)
    for after in lines:
        yield line, after
        line = after
    yield line, None


def _word_size(line: _Line) -> int:
    """Bytes in the first word of a data line; 0 if its digits are odd."""
    word = line.text[line.start :].split(maxsplit=1)[0]
    return 0 if len(word) % 2 else len(word) // 2


# Dumps: measures


class _Layout(NamedTuple):
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


class _Step(NamedTuple):
    """A data line, the line with the next offset, whether a star stands between, and the first's ``_ends``."""

    line: _Line
    after: _Line
    star: bool
    ends: list[tuple[int, int]]

    def distance(self, base: int) -> int:
        """Bytes from one offset to the other; 0 if they are no numbers of this base."""
        try:
            return int(self.after.offset, base) - int(self.line.offset, base)
        except ValueError:
            return 0

    def size(self, layout: _Layout) -> tuple[int, int]:
        """Bytes in the line and the index behind them; (0, 0) if the offsets disagree."""
        distance = self.distance(layout.base)
        if self.star:
            count, end = self.ends[-1]
            whole = distance > count > 0 == distance % count
            return (count, end) if whole and _is_column(self.line.text[end:], count) else (0, 0)
        fit = _fit(self.line, self.ends, distance, layout)
        return (len(fit[0]), fit[1]) if fit else (0, 0)


def _measure(text: str) -> _Layout | None:
    """The layout of the dump that ``text`` is, or None if it is no dump."""
    head = list(islice(_lines(text), _HEAD))
    data = [line for line in head if line.kind == "data"]
    if not data or 2 * len(data) < sum(line.kind in ("data", "other") for line in head):
        return None
    layout = _style(data)
    steps = _steps(head, layout)
    layout = _settle_base(steps, layout, data[0])
    full = [(count, end, step.line) for step in steps for count, end in [step.size(layout)] if count]
    if not _is_dump(data, len(full), len(steps), layout):
        return None
    if not full:
        return layout._replace(width=max(_ends(line, layout)[-1][0] for line in data) if len(data) > 1 else 0)
    width = Counter(count for count, _, _ in full).most_common(1)[0][0]
    size = next(end - line.start for count, end, line in full if count == width)
    return layout._replace(width=width, end=size, text=any(line.text[end:].strip() for _, end, line in full))


def _style(data: list[_Line]) -> _Layout:
    """What the offsets and the words show, before anything is counted."""
    first = data[0]
    sizes = [size for size in map(_word_size, data) if size]
    group = Counter(sizes or [1]).most_common(1)[0][0]
    single = not first.mark and first.gap == " "
    swapped = single and len(first.offset) in (6, 7) and group in (2, 4, 8)
    word = re.compile(rf"( *)((?:[{_DIGITS}]{{2}}){{1,{group}}})(?!\S)")
    layout = _Layout("wireshark", 16, group, first.mark.endswith(":"), swapped, word)
    if first.mark:
        return layout._replace(form="tcpdump" if first.mark[0] == "0" else "xxd")
    if _frame(first, layout) == "||" or (swapped and len(first.offset) == 7):
        return layout._replace(form="hexdump")
    return layout._replace(form="od") if single and len(first.offset) >= 6 else layout


def _steps(head: list[_Line], layout: _Layout) -> list[_Step]:
    steps = []
    for at, line in enumerate(head):
        star = [after.kind for after in head[at + 1 : at + 2]] == ["star"]
        after = next(iter(head[at + 1 + star :]), None)
        if line.kind == "data" and after and after.kind in ("data", "offset"):
            steps.append(_Step(line, after, star, _ends(line, layout)))
    return steps


def _settle_base(steps: list[_Step], layout: _Layout, first: _Line) -> _Layout:
    """Take the base in which most offsets agree with the bytes; of those that the form can have, the usual first."""
    bases: tuple[int, ...] = (16, 10) if layout.form == "xxd" else (16,)
    if not first.mark and first.gap == " " and len(first.offset) == 7:
        bases = (8, 10, 16) if layout.form == "od" else (16, 10, 8)
    layouts = {base: layout._replace(base=base) for base in bases}
    best = max(layouts.values(), key=lambda layout: sum(step.size(layout)[0] > 0 for step in steps))
    if not layout.swapped or 8 not in layouts:
        return best
    if best.base != 16:
        return best._replace(form="od")
    return best._replace(doubt=any(step.star and step.size(layouts[8])[0] for step in steps))


def _is_dump(data: list[_Line], agreed: int, steps: int, layout: _Layout) -> bool:
    """Whether what stands first in the lines really are offsets; so many of so many distances agree with the bytes."""
    first = data[0]
    if layout.colon and (layout.form == "tcpdump" or len(first.offset) >= 7):
        return True
    if _frame(first, layout):
        return True
    if len(first.gap) == 1 and len(first.offset) == 2 * layout.group:
        return False
    if agreed and 2 * agreed >= steps:
        return True
    if int(first.offset, 16) or len(first.gap) < 2 or layout.group != 1:
        return False
    if len(data) > 1:
        return all(int(line.offset, 16) < int(after.offset, 16) for line, after in pairwise(data))
    count, end = _ends(first, layout)[-1]
    return end == len(first.text) or _shows(first.text[end:], _bytes(first, end, count, layout))


# Dumps: bytes


def _ends(line: _Line, layout: _Layout) -> list[tuple[int, int]]:
    """(bytes so far, index behind the word) for each word that could be data: one space apart, two after 8 bytes."""
    ends: list[tuple[int, int]] = []
    count, at = 0, line.start
    while match := layout.word.match(line.text, at):
        gap, size = len(match[1]), len(match[2]) // 2
        if ends and gap != 1 and (gap != 2 or count != 8 or layout.colon):
            break
        count, at = count + size, match.end()
        ends.append((count, at))
        if size < layout.group:
            break
    return ends or [(0, line.start)]


def _bytes(line: _Line, end: int, count: int, layout: _Layout) -> bytes:
    """The first ``count`` bytes of the words up to index ``end``."""
    data = bytes.fromhex(line.text[line.start : end])
    if layout.swapped:
        size = layout.group
        data = b"".join(data[at : at + size][::-1] for at in range(0, len(data), size))
    return data[:count]


def _shows(column: str, data: bytes) -> bool:
    """Whether ``column`` is the text column of ``data``; tcpdump shows a space as a dot."""
    shown = data.translate(_SHOWN).decode()
    text = column.strip()
    return bool(text) and text in (shown.strip(), shown.replace(" ", "."))


def _frame(line: _Line, layout: _Layout) -> str:
    """The two characters around the text column, if it has such: || or ><."""
    count, end = _ends(line, layout)[-1]
    column = line.text[end:].strip()
    return column[0] + column[-1] if len(column) == count + 2 and column[0] + column[-1] in ("||", "><") else ""


def _apart(rest: str) -> bool:
    """Whether what follows hex words stands apart from them, or is nothing."""
    return rest[:2] in ("", "  ") or rest[0] == "\t"


def _is_column(rest: str, count: int) -> bool:
    """Whether what follows hex words can be the text column of ``count`` bytes, framed or not, or is nothing."""
    return _apart(rest) and len(rest.strip()) <= count + 2


def _fit(line: _Line, ends: list[tuple[int, int]], count: int, layout: _Layout) -> tuple[bytes, int] | None:
    """``count`` bytes and the index behind them, if what follows them stands apart or shows them."""
    spare = layout.group if layout.swapped else 1  # a swapped last word is filled up with zeros
    for have, end in ends:
        if 0 < count <= have < count + spare:
            data, rest = _bytes(line, end, count, layout), line.text[end:]
            if _apart(rest) or _shows(rest, data):
                return data, end
    return None


def _cut(line: _Line, step: int, layout: _Layout) -> bytes:
    """The bytes of a line with the next offset ``step`` bytes away: so many, or a full line if lines are left out."""
    count = min(step, layout.width or step)
    end = line.start + layout.end
    if step == layout.width and layout.end and not layout.swapped and _apart(line.text[end : end + 2]):
        try:
            data = bytes.fromhex(line.text[line.start : end])
        except ValueError:
            data = b""
        if len(data) == count:
            return data
    ends = _ends(line, layout)
    fit = _fit(line, ends, count, layout)
    if fit and (step == count or _is_column(line.text[fit[1] :], count)):
        return fit[0]
    have, end = ends[-1]
    raise _damaged(line, end, f"{have} bytes of hex where the offsets tell {count if have != count else step}")


def _cut_last(line: _Line, layout: _Layout) -> bytes:
    """The bytes of a line with no offset after it: its words, unless a text column shows that there are fewer."""
    ends = [(count, end) for count, end in _ends(line, layout) if layout.text is None or count <= layout.width]
    if not ends:
        raise _damaged(line, line.start, f"more than {layout.width} bytes")
    for count, end in ends[:_WIDEST_TEXT]:
        rest = line.text[end:]
        if _apart(rest) or layout.text:
            data = _bytes(line, end, count, layout)
            if _shows(rest, data):
                return data
    count, end = ends[-1]
    if not _is_column(line.text[end:], count):
        raise _damaged(line, end, "neither hex nor the text column of these bytes")
    return _bytes(line, end, count, layout)


def _damaged(line: _Line, at: int, what: str) -> Misuse:
    error = _wrong_in_line(line.number, line.text, at, what)
    return Misuse(f"{error}; mend or remove the line, or pass --input raw if the text itself is meant")


def _offset(line: _Line, layout: _Layout) -> int:
    try:
        return int(line.offset, layout.base)
    except ValueError:
        raise _damaged(line, 0, f"offset is no number of base {layout.base}") from None


# Dumps: the whole


def _read_dump(text: str, layout: _Layout, limit: int) -> Input:
    data = bytearray()
    notes = _Notes()
    last = b""  # the bytes of the last data line
    at = 0  # the offset behind them
    for line, after in _paired(text):
        if line.kind == "star" and last:
            span = _span(line, after, at, last, layout)
            if len(data) + span > limit:
                raise Limit("input_size", limit, len(data) + span, path=f"line {line.number}")
            data += last * (span // len(last))
            at += span
            notes.repeated += span
        elif line.kind == "data":
            here = _offset(line, layout)
            step = _step(line, here, after, layout)
            last = _cut_last(line, layout) if step is None else _cut(line, step, layout)
            at = here + len(last)
            if not data:
                notes.begin(line, here, last, layout)
            data += last
            if step is not None and step > len(last):
                notes.leave_out(step - len(last), at, line)
        elif line.kind == "other" and not data and _starts_at_zero(text, layout):
            notes.notes.append(f"line {line.number} is no part of the dump and was skipped")
        elif line.kind != "offset" or after is not None:
            raise _damaged(line, 0, "no line of a dump")
    return Input(bytes(data), layout.form, notes.text())


def _step(line: _Line, here: int, after: _Line | None, layout: _Layout) -> int | None:
    """Bytes from a data line to the next offset; a full line before a star; None if nothing tells."""
    if after is None:
        return None
    if after.kind == "star":
        return layout.width or None
    if after.kind == "other":
        raise _damaged(after, 0, "no line of a dump")
    step = _offset(after, layout) - here
    if step <= 0:
        raise _damaged(after, 0, "the offset goes back (one dump at a time, one direction of a conversation)")
    return step


def _span(line: _Line, after: _Line | None, at: int, unit: bytes, layout: _Layout) -> int:
    """Bytes that a star stands for: up to the next offset, in whole lines."""
    if after is None or after.kind == "star":
        raise _damaged(line, 0, "no offset follows that tells how often the line before is repeated")
    if after.kind == "other":
        raise _damaged(after, 0, "no line of a dump")
    span = _offset(after, layout) - at
    if span <= 0 or span % len(unit):
        raise _damaged(after, 0, f"after a star the offset must be a multiple of {len(unit)} bytes further")
    return span


def _starts_at_zero(text: str, layout: _Layout) -> bool:
    """Whether no bytes are lost before the first data line: then what stands before it is a title or a prompt."""
    first = next(line for line in _lines(text) if line.kind == "data")
    return _offset(first, layout) == 0


class _Notes:
    """What a human should know about a dump, in the order of its lines."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.gaps = self.missing = self.repeated = 0

    def begin(self, line: _Line, offset: int, data: bytes, layout: _Layout) -> None:
        """Look at the first data line."""
        if offset:
            self.notes.append(f"the offsets start at 0x{offset:x}")
        if layout.swapped:
            self.notes.append(f"words of {layout.group} bytes were taken as little-endian (hexdump -C leaves no doubt)")
            if layout.doubt:
                self.notes.append("offsets were taken as hexadecimal (hexdump); those of od -x would be octal")
        elif _contradicts(line, data, layout):
            self.notes.append("the text column does not show these bytes (xxd -e or -E?)")

    def leave_out(self, count: int, offset: int, line: _Line) -> None:
        """Note that bytes are missing after a line; the first gaps one by one, the others in the total."""
        self.gaps += 1
        self.missing += count
        if self.gaps <= 3:
            self.notes.append(f"{count} bytes are missing at offset 0x{offset:x}, after line {line.number}")

    def text(self) -> str | None:
        """All notes as one sentence."""
        if self.gaps > 3:
            self.notes.append(f"{self.missing} bytes are missing in {self.gaps} places in all")
        if self.repeated:
            self.notes.append(f"lines squeezed to * were expanded to {self.repeated} bytes")
        return "; ".join(self.notes) or None


def _contradicts(line: _Line, data: bytes, layout: _Layout) -> bool:
    """Whether the text column of a line is as long as ``data`` but shows something else."""
    fit = _fit(line, _ends(line, layout), len(data), layout)
    column = line.text[fit[1] :].strip() if fit else ""
    column = column[1:-1] if _frame(line, layout) else column
    return len(column) == len(data) and not _shows(column, data)
