"""Cuts a line of a dump into its bytes and its text column, by the measures of the dump."""

from __future__ import annotations

from wirekit.cli.input.lines import Layout, Line
from wirekit.cli.input.text import wrong_in_line
from wirekit.errors import Misuse, plural

_WIDEST_TEXT = 64  # a text column is searched for after each of at most this many words of a line
_SHOWN = bytes(byte if 0x20 <= byte < 0x7F else 0x2E for byte in range(256))


def ends_of(line: Line, layout: Layout) -> list[tuple[int, int]]:
    """(bytes so far, index after the word) for each word that could be data: one space apart, or up to three after 8.

    xxd -e pads a short last word on its left.
    """
    ends: list[tuple[int, int]] = []
    count, at = 0, line.start
    while match := layout.word.match(line.text, at):
        gap, size = len(match[1]), len(match[2]) // 2
        padding = 2 * (layout.group - size) if layout.swapped and layout.colon else 0
        if ends and gap != 1 + padding and (gap not in (2, 3) or count != 8 or layout.group > 1):
            break
        count, at = count + size, match.end()
        ends.append((count, at))
        if size < layout.group:
            break
    return ends or [(0, line.start)]


def bytes_of(line: Line, end: int, count: int, layout: Layout) -> bytes:
    """The first ``count`` bytes of the words up to index ``end``."""
    data = bytes.fromhex(line.text[line.start : end])
    if layout.swapped:
        size = layout.group
        data = b"".join(data[at : at + size][::-1] for at in range(0, len(data), size))
    return data[:count]


def shows(column: str, data: bytes) -> bool:
    """Whether ``column`` is the text column of ``data``; tcpdump shows a space as a dot."""
    shown = data.translate(_SHOWN).decode()
    text = column.strip()
    return bool(text) and text in (shown.strip(), shown.replace(" ", "."))


def shows_itself(line: Line, layout: Layout) -> bool:
    """Whether the text column of a line shows its bytes."""
    ends = ends_of(line, layout)[:_WIDEST_TEXT]
    return any(shows(line.text[end:], bytes_of(line, end, count, layout)) for count, end in ends)


def framing(line: Line, layout: Layout) -> str:
    """The two characters around the text column, || or ><; empty if there are none."""
    count, end = ends_of(line, layout)[-1]
    column = line.text[end:].strip()
    return column[0] + column[-1] if len(column) == count + 2 and column[0] + column[-1] in ("||", "><") else ""


def _apart(following: str) -> bool:
    """Whether the text after hex words is separated from them, or empty."""
    return following[:2] in ("", "  ") or following[0] == "\t"


def is_column(following: str, count: int) -> bool:
    """Whether the text after hex words is empty, or can be the text column of ``count`` bytes, framed or not."""
    return _apart(following) and len(following.strip()) <= count + 2


def fitted(line: Line, ends: list[tuple[int, int]], count: int, layout: Layout) -> tuple[bytes, int] | None:
    """``count`` bytes and the index after them, if the text after them is separated or shows them; else None."""
    spare = layout.group if layout.swapped else 1  # a swapped last word is filled up with zeros
    for have, end in ends:
        if 0 < count <= have < count + spare:
            data, following = bytes_of(line, end, count, layout), line.text[end:]
            if _apart(following) or shows(following, data):
                return data, end
    return None


def cut(line: Line, step: int, layout: Layout) -> bytes:
    """The ``step`` bytes of a line up to the next offset, or the bytes of a full line if the offsets skip lines.

    Raises:
        Misuse: the line has another number of bytes.
    """
    count = min(step, layout.width or step)
    end = line.start + layout.end
    if step == layout.width and layout.end and not layout.swapped and _apart(line.text[end : end + 2]):
        try:
            data = bytes.fromhex(line.text[line.start : end])
        except ValueError:
            data = b""
        if len(data) == count:
            return data
    ends = ends_of(line, layout)
    fit = fitted(line, ends, count, layout)
    if fit and (step == count or is_column(line.text[fit[1] :], count)):
        return fit[0]
    have, end = ends[-1]
    raise damaged(line, end, f"{plural(have, 'byte')} of hex, but the offsets say {count if have != count else step}")


def cut_last(line: Line, layout: Layout) -> bytes:
    """The bytes of a line with no offset after it: its words, unless a text column shows that there are fewer.

    Raises:
        Misuse: the line has more bytes than a full line, or text that is not its text column.
    """
    ends = [(count, end) for count, end in ends_of(line, layout) if layout.text is None or count <= layout.width]
    if not ends:
        raise damaged(line, line.start, f"more than {layout.width} bytes")
    for count, end in ends[:_WIDEST_TEXT]:
        following = line.text[end:]
        if _apart(following) or layout.text:
            data = bytes_of(line, end, count, layout)
            if shows(following, data):
                return data
    count, end = ends[-1]
    if not is_column(line.text[end:], count):
        raise damaged(line, end, "neither hex nor the text column of these bytes")
    return bytes_of(line, end, count, layout)


def damaged(line: Line, at: int, problem: str) -> Misuse:
    error = wrong_in_line(line.number, line.text, at, problem)
    return Misuse(f"{error}; correct or remove the line, or pass --input raw if the text itself is meant")


def offset_of(line: Line, layout: Layout) -> int:
    try:
        return int(line.offset, layout.base)
    except ValueError:
        raise damaged(line, 0, f"the offset is not a number in base {layout.base}") from None


def contradicts(line: Line, data: bytes, layout: Layout) -> bool:
    """Whether the text column of a line is as long as ``data`` but shows something else."""
    fit = fitted(line, ends_of(line, layout), len(data), layout)
    column = line.text[fit[1] :].strip() if fit else ""
    column = column[1:-1] if framing(line, layout) else column
    return len(column) == len(data) and not shows(column, data)
