"""The tables of layouts have offsets, notes and an example."""

from __future__ import annotations

from tests.own import own
from wirekit.exports import export
from wirekit.wire import Bytes, If, Length, Struct, int8, int16, this


def test_offsets_stand_where_they_are_fixed() -> None:
    rows = [line.split(" | ") for line in export(["kafka.log_entry"], "markdown").text.splitlines() if line[:2] == "| "]
    assert [(row[0].strip("| "), row[1].replace("&emsp;", "")) for row in rows[1:6]] == [
        ("0", "`offset`"),
        ("8", "`message_size`"),
        ("12", "`message`"),
        ("12", "`crc`"),
        ("16", "`magic`"),
    ]
    assert rows[-1][0].strip("| ") == ""


def test_a_length_under_a_condition_has_no_fixed_size() -> None:
    with own(Struct("a" / int8, "n" / If(this.a > 0, Length(int16)), "b" / Bytes(2))) as key:
        rows = [line.split(" | ")[0] for line in export([key], "markdown").text.splitlines() if "`" in line]
    assert [row.strip("| ") for row in rows[:3]] == ["0", "1", ""]
