"""The tables of layouts have offsets, notes and an example."""

from __future__ import annotations

from wirekit.exports import export


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
