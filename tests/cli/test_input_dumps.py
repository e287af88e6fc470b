"""Several dumps, what is noted about a dump, and what is damaged in one."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.dumps import (
    ANY,
    FRAME,
    HEXDUMP_C,
    SAMPLES,
    WIRESHARK,
    XXD,
    both,
    hexdump,
    shown,
    tcpdump,
    wireshark,
    xxd,
    xxd_e,
)
from wirekit.cli.input import Input, read_input
from wirekit.errors import Misuse

# Several dumps


OTHER = bytes(range(256)) + b"a tail"
TITLE = "12:00:00.000001 IP 10.0.0.1.4000 > 10.0.0.2.9092: Flags [P.], length 5\n"


@pytest.mark.parametrize("dump", [xxd, tcpdump, wireshark, hexdump])
@pytest.mark.parametrize("between", ["", "\n\n", TITLE])
def test_each_dump_begins_at_offset_zero(dump: Callable[[bytes], str], between: str) -> None:
    parsed = read_input((dump(FRAME) + between + dump(OTHER) + between + dump(FRAME)).encode())
    assert parsed.dumps == (FRAME, OTHER, FRAME)
    assert parsed.data == FRAME + OTHER + FRAME


def test_skipped_titles_of_dumps_are_noted() -> None:
    parsed = read_input((TITLE + tcpdump(FRAME) + TITLE + tcpdump(OTHER)).encode())
    assert (parsed.dumps, parsed.note) == ((FRAME, OTHER), "lines 1, 8 are not part of a dump and were skipped")


def test_one_dump_is_not_several() -> None:
    assert read_input(XXD.encode()).dumps == ()


def test_counts_that_tcpdump_prints_at_its_end_are_no_damage() -> None:
    text = tcpdump(FRAME) + "^C1 packet captured\n2 packets received by filter\n0 packets dropped by kernel\n"
    assert read_input(text.encode()).data == FRAME


@pytest.mark.parametrize(
    ("dump", "behind"), [(hexdump, "0000053\\nwhat follows\n"), (xxd, "```\n"), (xxd, "\nwhat follows\nin two lines\n")]
)
def test_text_behind_a_dump_is_skipped(dump: Callable[[bytes], str], behind: str) -> None:
    parsed = read_input((dump(FRAME) + behind).encode())
    assert parsed.data == FRAME
    assert "skipped" in (parsed.note or "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0000000 000000 023000 001400\n0000006\n", "octal words of od"),
        ("0000000  000000  021400\n0000004\n", "octal words of od"),
        ("0000000  \\0  \\0   &  \\0 003\n0000005\n", "characters or octal bytes of od"),
        ("0000000   d   e       a   d\n0000005\n", "characters or octal bytes of od"),
        ("0000000 000 000 000 043 007\n0000005\n", "characters or octal bytes of od"),
        ("0000000 nul nul  ff   #  sp\n0000005\n", "characters or octal bytes of od"),
        ("0000000   0   0   0 109   7\n0000005\n", "numbers in columns of od or hexdump"),
        ("0000000    0    0 -128   35    7\n0000005\n", "numbers in columns of od or hexdump"),
        ("0000000   00000   08960\n0000004\n", "numbers in columns of od or hexdump"),
        ("0000000    0000    656d\n0000004\n", "the words of hexdump -x"),
        ("00000000: 00000000 00000000 00000000 00100110 00000000 00000011  ...&..\n", "binary digits of xxd -b"),
    ],
)
def test_dumps_that_are_not_hexadecimal_name_one_that_is(text: str, message: str) -> None:
    with pytest.raises(Misuse, match=f"{message} cannot be read; use .*`; in "):
        read_input(text.encode())


def java(data: bytes) -> str:
    """As javax.net.debug prints plain text: three spaces after 8 bytes."""
    rows = [data[at : at + 16] for at in range(0, len(data), 16)]
    return "".join(
        f"  {16 * number:04X}: {row[:8].hex(' ').upper():23}   {row[8:].hex(' ').upper():23}"
        f"  {''.join(chr(byte) if 32 <= byte < 127 else '.' for byte in row)}\n"
        for number, row in enumerate(rows)
    )


@pytest.mark.parametrize("size", [5, 8, 12, 16, 17, 40, 64])
@pytest.mark.parametrize(("before", "behind"), [("", ""), ("Plaintext before ENCRYPTION (\n", ")\n")])
def test_dumps_of_java(before: str, behind: str, size: int) -> None:
    data = (FRAME * 3)[:size]
    assert read_input((before + java(data) + behind).encode()).data == data


def test_dumps_of_java_in_a_log() -> None:
    frames = [FRAME[:10], FRAME[:12], FRAME * 2, FRAME[:10]]
    log = "".join(f"WRITE: 5\nPlaintext before ENCRYPTION (\n{java(each)})\n" for each in frames) + "READ: 5\nREAD: 6\n"
    assert read_input(log.encode()).dumps == tuple(frames)


def test_a_dump_of_go_in_brackets() -> None:
    lines = "".join(f" {line}\n" for line in hexdump(FRAME).splitlines()[:-1])
    assert read_input(f"([]uint8) (len={len(FRAME)} cap=64) {{\n{lines}}}\n".encode()).data == FRAME


# Dumps: what is odd is noted


def test_offsets_that_start_anywhere_are_noted() -> None:
    parsed = read_input(xxd(FRAME, start=0x40).encode())
    assert parsed == Input(FRAME, "xxd", "the offsets start at 0x40")


def test_squeezed_lines_are_expanded_and_noted() -> None:
    assert read_input(HEXDUMP_C.encode()).note == "lines squeezed to * were expanded to 32 bytes"


def test_lines_left_out_are_left_out_and_noted() -> None:
    lines = XXD.splitlines(keepends=True)
    parsed = read_input("".join(lines[:1] + lines[3:]).encode())
    assert parsed == Input(FRAME[:16] + FRAME[48:], "xxd", "32 bytes missing at offset 0x10, after line 1")


def test_many_gaps_are_summed_up() -> None:
    lines = xxd(bytes(range(256))).splitlines(keepends=True)
    note = read_input("".join(lines[::2]).encode()).note
    assert note is not None
    assert note.count("after line") == 3
    assert note.endswith("112 bytes missing in 7 places in all")


def test_words_in_the_byte_order_of_the_machine_are_noted() -> None:
    assert "little-endian" in str(read_input(SAMPLES["hexdump"][1].encode()).note)


def test_squeezed_offsets_that_may_be_octal_are_noted() -> None:
    zeros = " ".join(["0000"] * 8)
    assert "would be octal" in str(read_input(f"0000000 {zeros}\n*\n0000040\n".encode()).note)
    assert "would be octal" not in str(read_input(f"0000000 {zeros}\n*\n0000050\n".encode()).note)


def test_a_text_column_that_shows_other_bytes_is_noted() -> None:
    ebcdic = b"00000000: 0000 0019 0003 0000 0000 0001 0006 6d65  .............._.\n"
    assert "does not show these bytes" in str(read_input(ebcdic).note)


@both
@pytest.mark.parametrize("width", [8, 16, 32])
@pytest.mark.parametrize("group", [2, 4, 8])
def test_words_of_xxd_e_are_read_as_little_endian(form: str, group: int, width: int) -> None:
    for data in (FRAME, FRAME[:-1], FRAME[:-3]):
        note = f"words of {group} bytes were read as little-endian (hexdump -C is unambiguous)"
        assert read_input(xxd_e(data, group=group, width=width).encode(), form) == Input(data, "xxd", note)


@given(data=ANY, group=st.sampled_from([2, 4, 8]))
def test_words_of_plain_xxd_are_not_taken_as_those_of_xxd_e(data: bytes, group: int) -> None:
    assert read_input(xxd(data, group=group).encode()).data == data


def test_a_title_or_prompt_before_offset_zero_is_skipped_and_noted() -> None:
    parsed = read_input(b"$ xxd frame.bin\n" + XXD.encode())
    assert parsed == Input(FRAME, "xxd", "line 1 is not part of the dump and was skipped")


# Dumps: what is damaged is an error


def damaged(text: str, form: str = "auto") -> str:
    with pytest.raises(Misuse) as caught:
        read_input(text.encode(), form)
    return str(caught.value)


@both
@pytest.mark.parametrize("new", ["00 00", "0 ", "", "zz", "00  00", "000"])
@pytest.mark.parametrize("text", [XXD, HEXDUMP_C, WIRESHARK], ids=["xxd", "hexdump", "wireshark"])
def test_a_damaged_line_is_named(form: str, text: str, new: str) -> None:
    lines = text.splitlines(keepends=True)
    lines[2] = lines[2][:12] + lines[2][12:].replace("00", new, 1)
    assert damaged("".join(lines), form).startswith("line 3, column ")


@given(data=ANY, at=st.integers(min_value=0), dump_and_end=st.sampled_from([(xxd, 50), (tcpdump, 50), (hexdump, 58)]))
def test_a_dump_that_lost_a_digit_is_never_read(
    data: bytes, at: int, dump_and_end: tuple[Callable[[bytes], str], int]
) -> None:
    dump, end = dump_and_end  # the hex words stand before this column
    lines = dump(data).splitlines()
    digits = [
        (number, match.start())
        for number, line in enumerate(lines)
        if (words := re.match(r"\s*\w+:? +((?:\w\w)+ {1,2})+", line[:end]))
        for match in re.finditer(r"\w", words[0])
        if match.start() > line.index(" ")
    ]
    number, column = digits[at % len(digits)]
    lines[number] = lines[number][:column] + lines[number][column + 1 :]
    assert damaged("\n".join(lines), "hex").startswith(f"line {number + 1}, column ")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (XXD.replace("00000020:", "0000002O:"), "line 3, column 1: not a line of a dump"),
        (XXD.replace("00000020:", "00000000:"), "line 3, column 1: bytes are missing after the line"),
        (XXD.replace("00000020:", "00000010:"), "line 3, column 1: the offset goes back"),
        (XXD + XXD[68:], "line 7, column 1: the offset goes back"),
        (XXD.replace("2031", "2g31"), "line 6, column 20: neither hex nor the text column"),
        (XXD.replace("2031 ", "2031  "), "line 6, column 25: neither hex nor the text column"),
        (XXD + "$ \n", "line 7, column 1: not a line of a dump"),
        ("$ xxd\n" + xxd(FRAME, start=16), "line 1, column 1: not a line of a dump"),
        (HEXDUMP_C.replace("6b 61 ", "6b    "), "line 1, column 56: 15 bytes of hex, but the offsets say 16"),
        (HEXDUMP_C.replace("0000005c", "0000005e"), "line 5, column 47: 12 bytes of hex, but the offsets say 14"),
        (HEXDUMP_C.replace("00000050  3e", "00000058  3e"), "line 5, column 1: after a star"),
        ("\n".join(HEXDUMP_C.split("\n")[:4]), "line 4, column 1: no offset follows"),
        ("*\n" + HEXDUMP_C, "line 1, column 1: not a line of a dump"),
        (HEXDUMP_C.replace("\n*\n", "\n*\n*\n"), "line 4, column 1: no offset follows"),
        (
            hexdump(bytes(24)).replace(" 00  00", " 00  0", 1),
            "line 1, column 34: 8 bytes of hex, but the offsets say 16",
        ),
        ("00000000  01 02 03  |...|\n00000004\n", "line 1, column 19: 3 bytes of hex, but the offsets say 4"),
    ],
)
def test_a_dump_that_contradicts_itself_names_the_line(text: str, place: str) -> None:
    message = damaged(text)
    assert message.startswith(place)
    assert message.endswith("pass --input raw if the text itself is meant")


def test_the_heading_of_powershell_is_longer_than_a_short_dump() -> None:
    text = """

   Label: String (System.String) <2AC4A2E1>

          Offset Bytes                                           Ascii
                 00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F
          ------ ----------------------------------------------- -----
0000000000000000 00 00 00 1A 00 12 00 00 00 00 00 01 00 10 72 61               ra
0000000000000010 67 65 72 65 61 64 79 2D 63 6C 69 65 6E 74       geready-client
"""
    data = bytes.fromhex("0000001a001200000000000100107261676572656164792d636c69656e74")
    parsed = read_input(text.replace("\n", "\r\n").encode())
    assert (parsed.data, parsed.note) == (data, "lines 3, 5, 6, … are not part of a dump and were skipped")


@pytest.mark.parametrize("dump", [xxd, hexdump, wireshark, tcpdump])
@pytest.mark.parametrize("prefix", ["2026-11-29 03:43:07,123 DEBUG [io-1] ", "broker-1  | ", "12:00:07.125 "])
def test_a_dump_in_the_lines_of_a_log(prefix: str, dump: Callable[[bytes], str]) -> None:
    lines = ["received 92 bytes:", *dump(FRAME).splitlines()]
    text = "\n".join(prefix + line for line in lines)
    for form in ("auto", "hex"):
        parsed = read_input(text.encode(), form)
        assert parsed.data == FRAME
        assert (parsed.note or "").startswith("the text before the offsets was skipped")


@pytest.mark.parametrize("dump", [xxd, hexdump, wireshark, tcpdump])
@pytest.mark.parametrize(
    "prefix", ["2026-11-29T03:43:{0:02}.{0}Z stderr F ", "11-29 03:43:07.{0}  1234  5678 D tag  : ", "app[{0}]: 0x1f "]
)
def test_numbers_before_the_lines_of_a_dump_may_differ(prefix: str, dump: Callable[[bytes], str]) -> None:
    lines = ["sent 0000", "received 1234 56 bytes", *dump(FRAME).splitlines()]
    text = "\n".join(prefix.format(9 * number) + line for number, line in enumerate(lines))
    parsed = read_input(text.encode())
    assert (parsed.data, parsed.form) == (FRAME, read_input(dump(FRAME).encode()).form)


def test_hex_is_no_log() -> None:
    text = "01000002: 00000000: 59000101\n01000000: 00560002: 02010000\n01000000: 00000200: 0000\n"
    assert read_input(text.encode()) == Input(bytes.fromhex(text.replace(":", " ")), "hex")


def test_only_times_before_a_dump_without_text() -> None:
    rows = [f"12:00:0{at // 16} {at:04x}  {FRAME[at : at + 16].hex(' ')}" for at in range(0, len(FRAME), 16)]
    assert read_input("\n".join(rows).encode()).data == FRAME


def test_one_line_with_an_offset_and_words_is_no_dump() -> None:
    assert read_input(b"code 0000: 10 items").form == "raw"


def test_the_time_of_a_long_log_is_linear() -> None:
    text = "".join(f"12:00:07 INFO {line}\n" for line in xxd(FRAME * 2_000).splitlines())
    begin = time.process_time()
    assert read_input(text.encode()).data == FRAME * 2_000
    assert time.process_time() - begin < 4


def test_a_dump_in_a_log_that_lost_a_digit_is_refused() -> None:
    lines = [f"12:00:07 INFO {line}" for line in xxd(FRAME).splitlines()]
    lines[2] = lines[2].replace(": 0000", ": 000")
    with pytest.raises(Misuse, match="line 3"):
        read_input("\n".join(lines).encode())


@given(data=st.binary(min_size=1, max_size=60))
def test_a_gap_after_8_bytes_of_a_dump_with_colons(data: bytes) -> None:
    """As Python's package hexdump prints."""
    rows = [data[at : at + 16] for at in range(0, len(data), 16)]
    lines = [
        f"{16 * number:08X}: {row[:8].hex(' ').upper():23}  {row[8:].hex(' ').upper():23}  {shown(row)}"
        for number, row in enumerate(rows)
    ]
    assert read_input("\n".join(lines).encode()).data == data


@pytest.mark.parametrize("data", [b"7v7_\xaad\xc9", b"d\xe0", b"fb2ccccfeb2|e", b" beef de ad 12"])
def test_one_line_of_hexyl_without_borders_ends_before_its_text(data: bytes) -> None:
    """Its text has no mark; no offset of a next line tells how many bytes it has."""
    shown = "".join(chr(byte) if byte < 128 else "×" for byte in data)
    panels = (data[:8].hex(" "), data[8:].hex(" "), shown[:8], shown[8:])
    line = " 00000000  {:23}   {:23}  {:8} {:8} ".format(*panels)
    for text in (line, line.rstrip()):
        assert read_input(f"{text}\n".encode()).data == data
