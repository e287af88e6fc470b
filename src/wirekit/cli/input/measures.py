"""The layout of a dump, measured on its first lines; whether a text is a dump at all."""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice, pairwise
from typing import NamedTuple

from wirekit.cli.input.cutting import bytes_of, ends_of, fitted, framing, is_column, shows, shows_itself
from wirekit.cli.input.lines import Layout, Line, begins_dump, is_behind, lines_of, word_size
from wirekit.cli.input.text import DIGITS, wrong_in_line

_HEAD = 32  # lines that are measured to recognise a dump

# Dumps whose words are not hexadecimal: a pattern of the first line, the kind of words, the command to use instead.
_UNREADABLE = (
    (r"0{7} (?: {0,2}[0-7]{6}){2,8}$", "octal words of od", "`od -An -tx1 -v`"),
    (
        r"0{7}(?: {1,3}(?:\\.|[0-7]{3}|[a-z]{3}| [a-z]{2}|[ -~])){4,16}$",
        "characters or octal bytes of od",
        "`od -An -tx1 -v`",
    ),
    (r"0{7}(?=.*  )(?: +-?[0-9]{1,5}){2,16}$", "numbers in columns of od or hexdump", "`hexdump -C`"),
    (r"0{7}(?: {4}[0-9a-f]{4}){1,8}$", "the words of hexdump -x", "`hexdump -C`"),
    (r"0{8}: [01]{8}(?: [01]{8}){5}  ", "binary digits of xxd -b", "plain `xxd`"),
)


class _Step(NamedTuple):
    """A data line, the line with the next offset, whether a star is between them, and ``ends_of`` the data line."""

    line: Line
    after: Line
    star: bool
    ends: list[tuple[int, int]]

    def distance(self, base: int) -> int:
        """Bytes from one offset to the other; 0 if they are not numbers in this base."""
        try:
            return int(self.after.offset, base) - int(self.line.offset, base)
        except ValueError:
            return 0

    def size(self, layout: Layout) -> tuple[int, int]:
        """Bytes in the line and the index after them; (0, 0) if the offsets disagree."""
        distance = self.distance(layout.base)
        if self.star:
            count, end = self.ends[-1]
            divides = distance > count > 0 == distance % count
            return (count, end) if divides and is_column(self.line.text[end:], count) else (0, 0)
        fit = fitted(self.line, self.ends, distance, layout)
        return (len(fit[0]), fit[1]) if fit else (0, 0)


def measure(text: str) -> Layout | None:
    """The layout of the dump in ``text``, or None if the text is no dump.

    Raises:
        Misuse: for a dump whose words are not hexadecimal.
    """
    head = list(islice(lines_of(text), _HEAD))
    for pattern, name, remedy in _UNREADABLE if head else ():
        if re.match(pattern, head[0].text):
            raise wrong_in_line(head[0].number, head[0].text, 0, f"{name} cannot be read; use {remedy};")
    data = [line for line in head if line.kind == "data"]
    if not data or len(data) < _other_count(head[head.index(data[0]) :]):
        return None
    layout = _settle_order(data, _style(data))
    steps = _steps(head, layout)
    layout = _settle_base(steps, layout, data[0])
    full = [(count, end, step.line) for step in steps for count, end in [step.size(layout)] if count]
    if not _is_dump(data, len(full), len(steps), layout):
        return None
    if not full:
        return layout._replace(width=max(ends_of(line, layout)[-1][0] for line in data) if len(data) > 1 else 0)
    width = Counter(count for count, _, _ in full).most_common(1)[0][0]
    size = next(end - line.start for count, end, line in full if count == width)
    return layout._replace(width=width, end=size, text=any(line.text[end:].strip() for _, end, line in full))


def _other_count(lines: list[Line]) -> int:
    """Lines that are not a dump, except those from a closing bracket up to the next dump, as in a log."""
    count, inside = 0, True
    for line in lines:
        if line.kind == "data":
            inside = True
        elif line.kind == "other":
            inside = inside and not is_behind(line)
            count += inside
    return count


def _style(data: list[Line]) -> Layout:
    """The first guess from offsets and words, before anything is counted."""
    first = data[0]
    sizes = [size for size in map(word_size, data) if size]
    group = Counter(sizes or [1]).most_common(1)[0][0]
    single = not first.mark and first.gap == " "
    swapped = single and len(first.offset) in (6, 7) and group in (2, 4, 8)
    word = re.compile(rf"( *)((?:[{DIGITS}]{{2}}){{1,{group}}})(?!\S)")
    layout = Layout("wireshark", 16, group, first.mark.endswith(":"), swapped, word)
    if first.mark:
        return layout._replace(form="tcpdump" if first.mark[0] == "0" else "xxd")
    if framing(first, layout) == "||" or (swapped and len(first.offset) == 7):
        return layout._replace(form="hexdump")
    return layout._replace(form="od") if single and len(first.offset) >= 6 else layout


def _settle_order(data: list[Line], layout: Layout) -> Layout:
    """Read words as little-endian (xxd -e) if the text column shows their bytes only in this order."""
    swapped = layout._replace(swapped=True)
    if layout.form != "xxd" or layout.group == 1:
        return layout
    shown = {(shows_itself(line, layout), shows_itself(line, swapped)) for line in data}
    return swapped if (False, True) in shown and (True, False) not in shown else layout


def _steps(head: list[Line], layout: Layout) -> list[_Step]:
    steps = []
    for at, line in enumerate(head):
        star = [after.kind for after in head[at + 1 : at + 2]] == ["star"]
        after = next(iter(head[at + 1 + star :]), None)
        if line.kind == "data" and after and after.kind in ("data", "offset") and not begins_dump(after):
            steps.append(_Step(line, after, star, ends_of(line, layout)))
    return steps


def _settle_base(steps: list[_Step], layout: Layout, first: Line) -> Layout:
    """Choose the base in which most offsets agree with the bytes; among equals, the more usual base of the form."""
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


def _is_dump(data: list[Line], agreed: int, steps: int, layout: Layout) -> bool:
    """Whether the first words of the lines are offsets: ``agreed`` of ``steps`` distances match the bytes."""
    first = data[0]
    if layout.colon and (layout.form == "tcpdump" or len(first.offset) >= 7):
        return True
    if framing(first, layout):
        return True
    if len(first.gap) == 1 and len(first.offset) == 2 * layout.group:
        return False
    if agreed and 2 * agreed >= steps:
        return True
    if int(first.offset, 16) or len(first.gap + first.mark) < 2 or layout.group != 1:
        return False
    if len(data) > 1:
        return all(int(line.offset, 16) < int(after.offset, 16) for line, after in pairwise(data))
    count, end = ends_of(first, layout)[-1]
    return end == len(first.text) or shows(first.text[end:], bytes_of(first, end, count, layout))
