"""Both directions of a connection in one text: Wireshark's "Follow TCP stream", and what socat and ngrep print."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

from wirekit.cli.input.cutting import shows
from wirekit.cli.input.dumps import read_dump
from wirekit.cli.input.measures import measure
from wirekit.cli.input.text import COMMENT, Input, blank, wrong_in_line

_ROW = re.compile(r"(?P<indent>[ \t]*)(?P<offset>[0-9A-Fa-f]{8})  (?=[0-9A-Fa-f]{2}(?!\S))")
_RAW = re.compile(r"(?P<indent>[ \t]*)(?P<digits>(?:[0-9A-Fa-f]{2})+)[ \t]*")
_HEAD = re.compile(
    r"[ \t]*(?:={20,}|Follow: \w+,(?P<form>\w+)|Filter: .*|Node [01]: .*|\[\d+ bytes missing[^\]]*\])[ \t]*"
)
_HINT = re.compile(
    r"^[ \t]*Follow: \w+,|^(?:\t| {4})[ \t]*0{8}  ", re.MULTILINE
)  # every followed stream has such a line
_MISSING = re.compile(r"[ \t]*\[\d+ bytes missing")
_ARRAY = re.compile(
    r"[\w\s*.:&=;]*(?:\[\w*\][\w\s=]*)*\{(?P<items>(?:[\s,]*+0[xX][0-9A-Fa-f]{1,2}\b)++)[\s,]*\}[ \t;,]*(?:\n|\Z)"
)
_BYTE = re.compile(r"0[xX]([0-9A-Fa-f]{1,2})")
_BEHIND_ARRAYS = re.compile(r"[\w\s=;]*")
_PEER = re.compile(r"\bpeer(?P<side>[01])_\d")  # the name of an array of a followed stream
_TIME = r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d+"
_WORD, _COLUMN = "[0-9a-f]{2}", r" *(?:(?<=  )(?P<text>\S.*))?"
_TURNS = {  # the line before the bytes of a piece, and a line of bytes; the > of socat is blanked like a quotation's
    "socat": (
        re.compile(rf"^(?P<source>[< ]) {_TIME}  length=(?P<size>\d{{1,9}}) from=\d+ to=\d+[ \t]*$", re.MULTILINE),
        re.compile(rf"(?P<words>(?: {_WORD})++){_COLUMN}"),
    ),
    "ngrep": (
        re.compile(
            rf"^[TU](?: {_TIME})? (?P<source>\S+:\d+) -> (?P<target>\S+:\d+)(?: \[\w*\])?(?: #\d+)?[ \t]*$",
            re.MULTILINE,
        ),
        re.compile(rf" (?P<words>(?: {_WORD}){{8}} {{3}}(?: {_WORD}){{1,8}}|(?: {_WORD}){{1,8}}){_COLUMN}"),
    ),
}
_BETWEEN = re.compile(r"--|#*(?:exit)?|(?:interface|input|filter|match): .*|\d+ received, \d+ dropped")
_INDENT = 4  # columns by which the second side is indented, if not by a tab


class _Row(NamedTuple):
    """A line of bytes; ``side`` is 1 where it is indented."""

    number: int
    text: str
    side: int
    offset: int


def read_follow(text: str, limit: int) -> Input | None:
    """The turns of both sides, None for other text: side 0 is at the margin, side 1 is indented.

    Raises:
        Misuse: for a line of another kind, an offset that does not continue its side, bytes missing in the capture.
        Limit: for more than ``limit`` bytes.
    """
    if not _HINT.search(text):
        return None
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    forms = {match["form"] for _, line in lines if (match := _HEAD.fullmatch(line)) and match["form"]}
    if forms == {"raw"}:
        return _read_raw(lines)
    rows = _rows(lines)
    if not rows or not (forms or _takes_turns(rows)):
        return None
    for number, line in lines:
        if _MISSING.match(line):
            raise wrong_in_line(
                number, line, 0, "bytes are missing in the capture; paste only the turns before or after the gap"
            )
        if not _ROW.match(line) and not _HEAD.fullmatch(line):
            raise wrong_in_line(number, line, 0, "not a line of a followed stream")
    sides = [_of_side(text, rows, side, limit) for side in (0, 1)]
    turns: list[tuple[int, int]] = []  # the side of each, and its offset there
    for row, before in zip(rows, [None, *rows], strict=False):
        if before is None or row.side != before.side:
            turns.append((row.side, row.offset))
    dumps, ends = [], [len(data) for data in sides]
    for side, begin in reversed(turns):
        dumps.append(sides[side][begin : ends[side]])
        ends[side] = begin
    dumps.reverse()
    return Input(b"".join(dumps), "wireshark", None, tuple(dumps), tuple(side for side, _ in turns))


def read_turns(text: str) -> Input | None:
    """The pieces that ``socat -x`` and ``ngrep -x`` print, with their senders; None for other text.

    Raises:
        Misuse: for a line of another kind, or a piece whose length differs from its head.
    """
    head, row = next((each for each in _TURNS.values() if each[0].search(text)), (None, None))
    if head is None or row is None:
        return None
    dumps: list[bytearray] = []
    heads: list[tuple[int, str, dict[str, str]]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if match := head.fullmatch(line):
            heads.append((number, line, match.groupdict()))
            dumps.append(bytearray())
        elif dumps and (match := row.fullmatch(line)):
            data = bytes.fromhex(match["words"])
            if match["text"] and not shows(match["text"], data):
                raise wrong_in_line(number, line, match.start("text"), "the text column does not show these bytes")
            dumps[-1] += data
        elif not _BETWEEN.fullmatch(line.strip()):
            raise wrong_in_line(number, line, 0, "not a line of bytes")
    for (number, line, named), piece in zip(heads, dumps, strict=True):
        if int(named.get("size", len(piece))) != len(piece):
            raise wrong_in_line(number, line, 0, f"{len(piece)} bytes follow")
    ends = {frozenset((named["source"], named.get("target", ""))) for _, _, named in heads}
    first = heads[0][2]["source"]
    one = len(ends) == 1 or "target" not in heads[0][2]
    sides = tuple(int(named["source"] != first) for _, _, named in heads) if one else ()
    return Input(b"".join(dumps), "hex", None, tuple(map(bytes, dumps)), sides)


def read_arrays(text: str) -> Input | None:
    """Several arrays of hex numbers in lines of their own, as Wireshark exports packets; None for other text.

    In the arrays of a followed stream, the names tell the senders.
    """
    if text.count("{") < 2:
        return None
    code = blank(COMMENT, text)
    arrays: list[re.Match[str]] = []
    while array := _ARRAY.match(code, arrays[-1].end() if arrays else 0):
        arrays.append(array)
    if len(arrays) < 2 or not _BEHIND_ARRAYS.fullmatch(code, arrays[-1].end()):
        return None
    dumps = tuple(bytes(int(byte, 16) for byte in _BYTE.findall(array["items"])) for array in arrays)
    peers = [peer["side"] for array in arrays if (peer := _PEER.search(array[0]))]
    sides = tuple(int(peer != peers[0]) for peer in peers) if len(peers) == len(arrays) else ()
    return Input(b"".join(dumps), "hex", None, dumps, sides)


def _rows(lines: list[tuple[int, str]]) -> list[_Row]:
    matches = [(number, line, match) for number, line in lines if (match := _ROW.match(line))]
    margin = min((len(match["indent"].expandtabs(_INDENT)) for _, _, match in matches), default=0)
    return [
        _Row(number, line, int(len(match["indent"].expandtabs(_INDENT)) >= margin + _INDENT), int(match["offset"], 16))
        for number, line, match in matches
    ]


def _takes_turns(rows: list[_Row]) -> bool:
    """Whether both sides have rows, each from offset 0 on."""
    first = {row.side: row.offset for row in reversed(rows)}
    return first == {0: 0, 1: 0}


def _of_side(text: str, rows: list[_Row], side: int, limit: int) -> bytes:
    """The bytes of one side; the lines of the other side are blank, so that errors name the right line."""
    own = [row for row in rows if row.side == side]
    if not own:
        return b""
    blanked = [""] * (text.count("\n") + 1)
    for row in own:
        blanked[row.number - 1] = row.text
    layout = measure("\n".join(row.text for row in own))
    if layout is None or own[0].offset:
        raise wrong_in_line(own[0].number, own[0].text, 0, "no dump from offset 0")
    data = read_dump("\n".join(blanked), layout, limit).data
    for row, after in pairwise(own):
        if after.offset - row.offset > layout.width:
            raise wrong_in_line(row.number, row.text, 0, f"bytes are missing after it, up to {after.offset:#x},")
    return data


def _read_raw(lines: list[tuple[int, str]]) -> Input:
    dumps, sides = [], []
    for number, line in lines:
        if match := _RAW.fullmatch(line):
            dumps.append(bytes.fromhex(match["digits"]))
            sides.append(int(bool(match["indent"])))
        elif not _HEAD.fullmatch(line):
            raise wrong_in_line(number, line, 0, "not a line of a followed stream")
    return Input(b"".join(dumps), "hex", None, tuple(dumps), tuple(sides))
