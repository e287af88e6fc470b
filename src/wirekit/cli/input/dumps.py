"""Reads a whole dump line by line; the offsets give the length of each line."""

from __future__ import annotations

from wirekit.cli.input.cutting import contradicts, cut, cut_last, damaged, offset_of
from wirekit.cli.input.lines import Layout, Line, begins_dump, lines_of, paired
from wirekit.cli.input.text import Input
from wirekit.errors import Limit, plural


def read_dump(text: str, layout: Layout, limit: int) -> Input:
    """The bytes of a dump, or of several dumps that begin at offset 0 and skip no bytes.

    Raises:
        Misuse: a line is damaged, or contradicts the offsets.
        Limit: the data has more than ``limit`` bytes.
    """
    dumps = [bytearray()]
    notes = _Notes()
    last = b""  # the bytes of the last data line
    at = 0  # the offset after these bytes
    before = 0  # bytes of the dumps before this one
    for line, after in paired(text):
        if line.kind == "star" and last:
            span = _span(line, after, at, last, layout)
            size = before + len(dumps[-1]) + span
            if size > limit:
                raise Limit("input_size", limit, size, path=f"line {line.number}")
            dumps[-1] += last * (span // len(last))
            at += span
            notes.repeated += span
        elif line.kind == "data":
            here = offset_of(line, layout)
            if begins_dump(line) and dumps[-1]:
                before += len(dumps[-1])
                dumps.append(bytearray())
            step = _step(here, after, layout)
            last = cut_last(line, layout) if step is None else cut(line, step, layout)
            at = here + len(last)
            if not before and not dumps[-1]:
                notes.begin(line, here, last, layout)
            dumps[-1] += last
            if step is not None and step > len(last):
                notes.leave_out(step - len(last), at, line)
        elif line.kind == "other" and (before or dumps[-1] or _starts_at_zero(text, layout)):
            notes.skipped.append(line.number)
        elif line.kind != "offset" or after is not None:
            raise damaged(line, 0, "not a line of a dump")
    if len(dumps) > 1 and notes.gap:
        raise damaged(notes.gap, 0, "bytes are missing after the line, which is allowed in a single dump only,")
    contents = tuple(map(bytes, dumps)) if len(dumps) > 1 else ()
    return Input(b"".join(dumps), layout.form, notes.text(), contents)


def _step(here: int, after: Line | None, layout: Layout) -> int | None:
    """Bytes from a data line to the next offset; a full line before a star; None if unknown."""
    if after is None:
        return None
    if after.kind == "star":
        return layout.width or None
    if after.kind == "other":
        raise damaged(after, 0, "not a line of a dump")
    step = offset_of(after, layout) - here
    if step <= 0:
        raise damaged(after, 0, "the offset goes back, but not to 0, where another dump would begin,")
    return step


def _span(line: Line, after: Line | None, at: int, unit: bytes, layout: Layout) -> int:
    """The number of bytes that a star stands for: up to the next offset, in whole lines."""
    if after is None or after.kind == "star":
        raise damaged(line, 0, "no offset follows to show how often the previous line is repeated")
    if after.kind == "other":
        raise damaged(after, 0, "not a line of a dump")
    span = offset_of(after, layout) - at
    if span <= 0 or span % len(unit):
        raise damaged(after, 0, f"after a star, the offset must be higher by a multiple of {len(unit)} bytes")
    return span


def _starts_at_zero(text: str, layout: Layout) -> bool:
    """Whether no bytes are missing before the first data line, so that lines before it are a title or a prompt."""
    first = next(line for line in lines_of(text) if line.kind == "data")
    return offset_of(first, layout) == 0


class _Notes:
    """Notes on a dump for the user, in the order of its lines."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.gaps = self.missing = self.repeated = 0
        self.gap: Line | None = None  # the first line after which bytes are missing
        self.skipped: list[int] = []

    def begin(self, line: Line, offset: int, data: bytes, layout: Layout) -> None:
        """Notes what is unusual about the first data line."""
        if offset:
            self.notes.append(f"the offsets start at 0x{offset:x}")
        if layout.swapped:
            self.notes.append(f"words of {layout.group} bytes were read as little-endian (hexdump -C is unambiguous)")
            if layout.doubt:
                self.notes.append("offsets were read as hexadecimal (hexdump); those of od -x would be octal")
        elif contradicts(line, data, layout):
            self.notes.append("the text column does not show these bytes (xxd -E?)")

    def leave_out(self, count: int, offset: int, line: Line) -> None:
        """Notes that bytes are missing after a line; the first gaps one by one, the others in total."""
        self.gaps += 1
        self.gap = self.gap or line
        self.missing += count
        if self.gaps <= 3:
            self.notes.append(f"{plural(count, 'byte')} missing at offset 0x{offset:x}, after line {line.number}")

    def text(self) -> str | None:
        """All notes, joined by semicolons; None without notes."""
        if self.skipped:
            numbers = ", ".join(map(str, self.skipped[:3])) + (", …" if len(self.skipped) > 3 else "")
            one = len(self.skipped) == 1
            skipped = "is not part of the dump and was" if one else "are not part of a dump and were"
            self.notes.insert(0, f"line{'' if one else 's'} {numbers} {skipped} skipped")
        if self.gaps > 3:
            self.notes.append(f"{plural(self.missing, 'byte')} missing in {self.gaps} places in all")
        if self.repeated:
            self.notes.append(f"lines squeezed to * were expanded to {self.repeated} bytes")
        return "; ".join(self.notes) or None
