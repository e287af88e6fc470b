"""What an engineer pastes or pipes becomes the bytes it stands for, or an error that names the place.

FRAME is the beginning of a Kafka request, text that looks like hex, zeros that dumps squeeze, and text that looks like
the frame of a text column. The samples named after a command are what that command printed for FRAME (xxd 2022-01-14,
hexdump of util-linux, od of coreutils) without trailing spaces; the others are written after the formats they name.
"""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from wirekit.cli.input import DEFAULT_LIMIT, Input, read_input
from wirekit.errors import Limit, Misuse

FRAME = bytes.fromhex("0000001f000300010000000a00046b61") + b"deadbeef de ad  " + bytes(48) + b"> 00 11|beef"

XXD = """\
00000000: 0000 001f 0003 0001 0000 000a 0004 6b61  ..............ka
00000010: 6465 6164 6265 6566 2064 6520 6164 2020  deadbeef de ad
00000020: 0000 0000 0000 0000 0000 0000 0000 0000  ................
00000030: 0000 0000 0000 0000 0000 0000 0000 0000  ................
00000040: 0000 0000 0000 0000 0000 0000 0000 0000  ................
00000050: 3e20 3030 2031 317c 6265 6566            > 00 11|beef
"""

HEXDUMP_C = """\
00000000  00 00 00 1f 00 03 00 01  00 00 00 0a 00 04 6b 61  |..............ka|
00000010  64 65 61 64 62 65 65 66  20 64 65 20 61 64 20 20  |deadbeef de ad  |
00000020  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|
*
00000050  3e 20 30 30 20 31 31 7c  62 65 65 66              |> 00 11|beef|
0000005c
"""

WIRESHARK = """\
0000   00 00 00 1f 00 03 00 01 00 00 00 0a 00 04 6b 61   ..............ka
0010   64 65 61 64 62 65 65 66 20 64 65 20 61 64 20 20   deadbeef de ad
0020   00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00   ................
0030   00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00   ................
0040   00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00   ................
0050   3e 20 30 30 20 31 31 7c 62 65 65 66               > 00 11|beef
"""

SAMPLES = {
    "xxd": ("xxd", XXD),
    "xxd -g1 -u": (
        "xxd",
        """\
00000000: 00 00 00 1F 00 03 00 01 00 00 00 0A 00 04 6B 61  ..............ka
00000010: 64 65 61 64 62 65 65 66 20 64 65 20 61 64 20 20  deadbeef de ad
00000020: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
00000030: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
00000040: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
00000050: 3E 20 30 30 20 31 31 7C 62 65 65 66              > 00 11|beef
""",
    ),
    "xxd -g0 -c8": (
        "xxd",
        """\
00000000: 0000001f00030001  ........
00000008: 0000000a00046b61  ......ka
00000010: 6465616462656566  deadbeef
00000018: 2064652061642020   de ad
00000020: 0000000000000000  ........
00000028: 0000000000000000  ........
00000030: 0000000000000000  ........
00000038: 0000000000000000  ........
00000040: 0000000000000000  ........
00000048: 0000000000000000  ........
00000050: 3e2030302031317c  > 00 11|
00000058: 62656566          beef
""",
    ),
    "xxd -a": (
        "xxd",
        """\
00000000: 0000 001f 0003 0001 0000 000a 0004 6b61  ..............ka
00000010: 6465 6164 6265 6566 2064 6520 6164 2020  deadbeef de ad
00000020: 0000 0000 0000 0000 0000 0000 0000 0000  ................
*
00000050: 3e20 3030 2031 317c 6265 6566            > 00 11|beef
""",
    ),
    "xxd -p": (
        "hex",
        """\
0000001f000300010000000a00046b616465616462656566206465206164
202000000000000000000000000000000000000000000000000000000000
00000000000000000000000000000000000000003e2030302031317c6265
6566
""",
    ),
    "xxd -i": (
        "hex",
        """\
unsigned char frame_bin[] = {
  0x00, 0x00, 0x00, 0x1f, 0x00, 0x03, 0x00, 0x01, 0x00, 0x00, 0x00, 0x0a,
  0x00, 0x04, 0x6b, 0x61, 0x64, 0x65, 0x61, 0x64, 0x62, 0x65, 0x65, 0x66,
  0x20, 0x64, 0x65, 0x20, 0x61, 0x64, 0x20, 0x20, 0x00, 0x00, 0x00, 0x00,
  0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
  0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
  0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
  0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x3e, 0x20, 0x30, 0x30,
  0x20, 0x31, 0x31, 0x7c, 0x62, 0x65, 0x65, 0x66
};
unsigned int frame_bin_len = 92;
""",
    ),
    "hexdump -C": ("hexdump", HEXDUMP_C),
    "hexdump": (
        "hexdump",
        """\
0000000 0000 1f00 0300 0100 0000 0a00 0400 616b
0000010 6564 6461 6562 6665 6420 2065 6461 2020
0000020 0000 0000 0000 0000 0000 0000 0000 0000
*
0000050 203e 3030 3120 7c31 6562 6665
000005c
""",
    ),
    "od -t x1": (
        "od",
        """\
0000000 00 00 00 1f 00 03 00 01 00 00 00 0a 00 04 6b 61
0000020 64 65 61 64 62 65 65 66 20 64 65 20 61 64 20 20
0000040 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
*
0000120 3e 20 30 30 20 31 31 7c 62 65 65 66
0000134
""",
    ),
    "od -A x -t x1z": (
        "od",
        """\
000000 00 00 00 1f 00 03 00 01 00 00 00 0a 00 04 6b 61  >..............ka<
000010 64 65 61 64 62 65 65 66 20 64 65 20 61 64 20 20  >deadbeef de ad  <
000020 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  >................<
*
000050 3e 20 30 30 20 31 31 7c 62 65 65 66              >> 00 11|beef<
00005c
""",
    ),
    "od -A d -t x1z -w8": (
        "od",
        """\
0000000 00 00 00 1f 00 03 00 01  >........<
0000008 00 00 00 0a 00 04 6b 61  >......ka<
0000016 64 65 61 64 62 65 65 66  >deadbeef<
0000024 20 64 65 20 61 64 20 20  > de ad  <
0000032 00 00 00 00 00 00 00 00  >........<
*
0000080 3e 20 30 30 20 31 31 7c  >> 00 11|<
0000088 62 65 65 66              >beef<
0000092
""",
    ),
    "Wireshark, hex and text": ("wireshark", WIRESHARK),
    "Wireshark, hex only": ("wireshark", re.sub(r"(?m)^(.{54}).*$", r"\1", WIRESHARK)),
    "tcpdump -X": (
        "tcpdump",
        """\
\t0x0000:  0000 001f 0003 0001 0000 000a 0004 6b61  ..............ka
\t0x0010:  6465 6164 6265 6566 2064 6520 6164 2020  deadbeef.de.ad..
\t0x0020:  0000 0000 0000 0000 0000 0000 0000 0000  ................
\t0x0030:  0000 0000 0000 0000 0000 0000 0000 0000  ................
\t0x0040:  0000 0000 0000 0000 0000 0000 0000 0000  ................
\t0x0050:  3e20 3030 2031 317c 6265 6566            >.00.11|beef
""",
    ),
    "text2pcap, one space before the text column": (
        "od",
        """\
000000 00 00 00 1f 00 03 00 01 ........
000008 00 00 00 0a 00 04 6b 61 ......ka
000010 64 65 61 64 62 65 65 66 deadbeef
000018 20 64 65 20 61 64 20 20  de ad
000020 00 00 00 00 00 00 00 00 ........
000028 00 00 00 00 00 00 00 00 ........
000030 00 00 00 00 00 00 00 00 ........
000038 00 00 00 00 00 00 00 00 ........
000040 00 00 00 00 00 00 00 00 ........
000048 00 00 00 00 00 00 00 00 ........
000050 3e 20 30 30 20 31 31 7c > 00 11|
000058 62 65 65 66 beef
""",
    ),
    "Wireshark, escaped string": (
        "hex",
        " \\\n".join(
            '"' + "".join(f"\\x{byte:02x}" for byte in FRAME[at : at + 16]) + '"' for at in range(0, len(FRAME), 16)
        ),
    ),
    "Wireshark, hex stream": ("hex", FRAME.hex()),
    "base64": ("base64", base64.b64encode(FRAME).decode()),
    "base64 -w 76": ("base64", base64.encodebytes(FRAME).decode()),
}

by_sample = pytest.mark.parametrize(("form", "text"), SAMPLES.values(), ids=SAMPLES.keys())


@by_sample
def test_a_sample_is_read_and_named(form: str, text: str) -> None:
    parsed = read_input(text.encode())
    assert (parsed.form, parsed.data) == (form, FRAME)


@by_sample
def test_a_recognised_form_can_also_be_forced(form: str, text: str) -> None:
    assert read_input(text.encode(), "base64" if form == "base64" else "hex").data == FRAME


@by_sample
def test_quoting_and_indentation_are_no_data(form: str, text: str) -> None:
    for lead in ("> ", "\t", ">> > ", "    "):
        quoted = "".join(lead + line for line in text.splitlines(keepends=True))
        assert read_input(quoted.encode()).data == FRAME


@by_sample
def test_line_ends_and_encodings_of_other_systems_are_read(form: str, text: str) -> None:
    crlf = text.replace("\n", "\r\n")
    variants = [crlf.encode(), text.replace("\n", "\r").encode(), b"\xef\xbb\xbf" + text.encode()]
    variants += [crlf.encode("utf-16"), b"\xfe\xff" + crlf.encode("utf-16-be")]
    if form != "base64":
        variants.append(text.replace(" ", "\xa0").encode())
    assert [read_input(raw).data for raw in variants] == [FRAME] * len(variants)


# The tools themselves

TOOLS = [
    *(
        f"xxd {options}"
        for options in ("", "-g1", "-g4 -u", "-g0", "-c7", "-c5 -g2", "-c8 -g1", "-c256 -g1", "-c1", "-a")
    ),
    *(f"xxd {options}" for options in ("-o 0x100", "-d", "-E", "-i", "-p", "-p -u", "-p -c 300")),
    *("hexdump -C", "hexdump -v -C", "hexdump", "hexdump -v"),
    *("od -t x1", "od -A d -t x1z", "od -A x -t x1z", "od -A x -t x1 -w8", "od -A x -t x2", "od -A x -t x4 -v"),
]
LOOKS_LIKE_HEX = [
    *(b"deadbeef de ad"[:size] for size in (1, 2, 8, 14)),
    *(b"de ad be ef 00 11 22 33 ca fe ba be 44 55 66 77"[:size] for size in (7, 8, 9, 15, 16, 17, 31, 32, 33, 47)),
    *(b"|00|>11<>  |<> 22", b" " * 40, b"0" * 40, FRAME, bytes(range(256)) * 3),
    *(bytes(40) + b"\x01" + bytes(50), bytes(100) + b"abc"),
]


@pytest.mark.parametrize("command", TOOLS)
def test_a_tool_of_this_machine_is_read_back(command: str) -> None:
    program, *options = command.split()
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    for data in LOOKS_LIKE_HEX:
        text = subprocess.run([program, *options], input=data, stdout=subprocess.PIPE, check=True).stdout
        assert read_input(text).data == data
        assert read_input(text, "hex").data == data


# Any bytes through any formatter


def shown(data: bytes, space: str = " ") -> str:
    return "".join(chr(byte) if 0x20 < byte < 0x7F else space if byte == 0x20 else "." for byte in data)


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def xxd(data: bytes, *, group: int = 2, width: int = 16, start: int = 0) -> str:
    text = ""
    for number, line in enumerate(cut(data, width)):
        words = " ".join(word.hex() for word in cut(line, group))
        text += f"{start + width * number:08x}: {words:{2 * width + (width - 1) // group}}  {shown(line)}\n"
    return text


def tcpdump(data: bytes, *, start: int = 0) -> str:
    text = ""
    for number, line in enumerate(cut(data, 16)):
        words = "".join(" " + word.hex() for word in cut(line, 2))
        text += f"\t0x{start + 16 * number:04x}: {words:40}  {shown(line, '.')}\n"
    return text


def hexdump(data: bytes, *, start: int = 0, squeeze: bool = True) -> str:
    text, previous, starred = "", b"", False
    for number, line in enumerate(cut(data, 16)):
        if squeeze and line == previous:
            text += "" if starred else "*\n"
            starred = True
            continue
        previous, starred = line, False
        halves = "  ".join(half.hex(" ") for half in cut(line, 8))
        text += f"{start + 16 * number:08x}  {halves:48}  |{shown(line)}|\n"
    return text + (f"{start + len(data):08x}\n" if data else "")


def wireshark(data: bytes, *, gap: str = "  ", middle: str = " ", text: bool = True) -> str:
    lines = ""
    for number, line in enumerate(cut(data, 16)):
        words = middle.join(half.hex(" ") for half in cut(line, 8))
        lines += f"{16 * number:04x}{gap}{words:{46 + len(middle)}}{'   ' + shown(line) if text else ''}\n"
    return lines


def plain(data: bytes, *, before: str, between: str, per_line: int, upper: bool) -> str:
    words = [before + (f"{byte:02X}" if upper else f"{byte:02x}") for byte in data]
    return "\n".join(between.join(words[at : at + per_line]) for at in range(0, len(words), per_line))


ANY = st.one_of(
    st.binary(min_size=1, max_size=300),
    st.text(alphabet=" deadbf019.|<>*:x\\", min_size=1, max_size=200).map(str.encode),
    st.text(alphabet=" de", min_size=1, max_size=64).map(str.encode),
    st.lists(st.sampled_from([b"\0" * 16, b"de ad be ef 0011"]), min_size=1, max_size=9).map(b"".join),
)
START = st.integers(min_value=0, max_value=0xFFFF_FFFF)
both = pytest.mark.parametrize("form", ["auto", "hex"])


@both
@given(data=ANY, group=st.integers(1, 16), width=st.integers(1, 40), start=START)
def test_any_bytes_through_xxd(form: str, data: bytes, group: int, width: int, start: int) -> None:
    parsed = read_input(xxd(data, group=group, width=width, start=start).encode(), form)
    assert (parsed.data, parsed.form) == (data, "xxd")


@both
@given(data=ANY, start=START)
def test_any_bytes_through_tcpdump(form: str, data: bytes, start: int) -> None:
    parsed = read_input(tcpdump(data, start=start).encode(), form)
    assert (parsed.data, parsed.form) == (data, "tcpdump")


@both
@given(data=ANY, start=START, squeeze=st.booleans(), closing=st.booleans())
def test_any_bytes_through_hexdump(form: str, data: bytes, start: int, squeeze: bool, closing: bool) -> None:
    text = hexdump(data, start=start, squeeze=squeeze)
    if not closing and not text.split("\n")[-3].startswith("*"):
        text = "".join(text.splitlines(keepends=True)[:-1])
    parsed = read_input(text.encode(), form)
    assert (parsed.data, parsed.form) == (data, "hexdump")


@both
@given(
    data=ANY,
    gap=st.sampled_from(["  ", "   "]),
    middle=st.sampled_from([" ", "  "]),
    text=st.booleans(),
    trim=st.booleans(),
)
def test_any_bytes_through_wireshark(form: str, data: bytes, gap: str, middle: str, text: bool, trim: bool) -> None:
    lines = wireshark(data, gap=gap, middle=middle, text=text)
    if trim:
        lines = re.sub(r"(?m) +$", "", lines)
    parsed = read_input(lines.encode(), form)
    assert (parsed.data, parsed.form) == (data, "wireshark")


@both
@given(
    data=ANY,
    before=st.sampled_from(["", "0x", "\\x"]),
    between=st.sampled_from([" ", ":", ",", ", ", "-", "  ", "\t", "", "; "]),
    per_line=st.integers(1, 40),
    upper=st.booleans(),
)
def test_any_bytes_through_plain_hex(
    form: str, data: bytes, before: str, between: str, per_line: int, upper: bool
) -> None:
    assume(before == "" or between != "-")
    text = plain(data, before=before, between=between, per_line=per_line, upper=upper)
    parsed = read_input(text.encode(), form)
    assert (parsed.data, parsed.form) == (data, "hex")
    assert parsed.note is None or ("," in between and data.hex().isdecimal())


@given(data=ANY, per_line=st.integers(1, 40), one_digit=st.booleans())
def test_any_bytes_through_a_c_array(data: bytes, per_line: int, one_digit: bool) -> None:
    lines = [
        ", ".join(f"0x{byte:x}" if one_digit else f"0x{byte:02x}" for byte in line) for line in cut(data, per_line)
    ]
    comments = [shown(line).replace("*", ".") for line in cut(data, per_line)]
    body = "\n".join(f"{line}, /* {comment} */" for line, comment in zip(lines, comments, strict=True))
    text = f"/* Frame (7 bytes) */\nstatic const unsigned char pkt7[{len(data)}] = {{\n{body}\n}};\n"
    assert read_input(text.encode()) == Input(data, "hex")


@given(data=ANY, urlsafe=st.booleans(), padded=st.booleans(), width=st.sampled_from([0, 20, 64, 76]))
def test_any_bytes_through_base64(data: bytes, urlsafe: bool, padded: bool, width: int) -> None:
    text = (base64.urlsafe_b64encode if urlsafe else base64.b64encode)(data).decode()
    text = text if padded else text.rstrip("=")
    text = "\n".join(text[at : at + width] for at in range(0, len(text), width)) if width else text
    assert read_input(text.encode(), "base64").data == data
    assume(len(text) >= 16 and re.search(r"[G-WYZg-wyz_+/]", text))
    parsed = read_input(text.encode())
    assert (parsed.data, parsed.form) == (data, "base64")


@given(data=st.binary(max_size=60))
def test_any_bytes_give_an_input_or_one_of_our_errors(data: bytes) -> None:
    for raw in (data, data.hex(" ").encode() + b"\n" + data):
        for form in ("auto", "raw", "hex", "base64"):
            try:
                parsed = read_input(raw, form)
            except Misuse:
                continue
            assert form != "raw" or parsed == Input(raw, "raw")


@given(text=st.text(alphabet="0a1: \n*|>x\\{},=", max_size=60))
def test_any_text_gives_an_input_or_one_of_our_errors(text: str) -> None:
    for form in ("auto", "raw", "hex", "base64"):
        try:
            read_input(text.encode(), form, limit=1000)
        except (Misuse, Limit):
            continue


# Plain hex


@pytest.mark.parametrize(
    "text",
    [
        *("0A 0b 0C", "0a:0b:0c", "0a-0b-0c", "0a0b0c", "0A0B0C\n", "0x0a0b0c", "0X0A 0x0B,0x0c", "0x0a0x0b0x0c"),
        *(r"\x0a\x0b\x0c", r'"\x0a\x0b\x0c"', r"b'\x0a\x0b\x0c'", '"\\x0a\\x0b" \\\n"\\x0c"', "'0a0b0c'"),
        *("{0x0a, 0x0b, 0xc}", "char x[3] = {10\n}".replace("10", "0xa,0xb,0xc"), "[]byte{0x0a, 0x0b, 0x0c,}"),
        *("new byte[] { 0x0a, 0x0b, 0x0c };", "uint8_t a[] = { 0x0a, // one\n 0x0b, /* 2 */ 0x0c };"),
        "\n\n  0a\n\t0b 0c\n",
    ],
)
def test_hex_in_any_spacing(text: str) -> None:
    for form in ("auto", "hex"):
        assert read_input(text.encode(), form) == Input(b"\n\x0b\x0c", "hex")


def test_hex_wrapped_in_the_middle_of_a_byte_is_joined_and_noted() -> None:
    text = "\n".join(FRAME.hex()[at : at + 79] for at in range(0, 2 * len(FRAME), 79))
    parsed = read_input(text.encode())
    assert parsed.data == FRAME
    assert parsed.note == "lines end in the middle of a byte; they were joined"


def test_a_first_word_that_may_be_an_offset_is_data_and_noted() -> None:
    parsed = read_input(b"0000001f 00 03 00 01")
    assert parsed == Input(
        bytes.fromhex("0000001f00030001"),
        "hex",
        "the first word was read as data; if '0000001f' is an offset, remove it",
    )
    assert read_input(b"00000005 68656c6c6f").note is None


@pytest.mark.parametrize(
    ("text", "place", "offending"),
    [
        ("0a 0b\n0c 0g 0d", "line 2, column 5", "0c 0g 0d"),
        ("0a 0b\n0c 0 0d", "line 2, column 4", "0c 0 0d"),
        ("0a0b0", "line 1, column 1", "0a0b0"),
        ("> 0a 0b\n> 0c zz", "line 2, column 6", "0c zz"),
        ("0a\n0b 0c\n\nhello", "line 4, column 1", "hello"),
        (r'"\x0a\x0bab"', "line 1, column 6", r"\x0bab"),
        (r"\x00 ab", "line 1, column 6", "ab"),
        (r"\x0a\n\x0b", "line 1, column 5", r"\n"),
        ("char a[] = {0x0a, 300}", "line 1, column 19", "300"),
        ("char a[] = {0x0a}; char b[] = {0x0b};", "line 1, column 17", "char b"),
        ("0a é", "line 1, column 4", "é"),
        ("0x", "line 1, column 1", "0x"),
        ("--", "line 1, column 1", "--"),
    ],
)
def test_text_forced_as_hex_that_is_not_names_the_place(text: str, place: str, offending: str) -> None:
    with pytest.raises(Misuse) as caught:
        read_input(text.encode(), "hex")
    assert str(caught.value).startswith(place + ":")
    assert offending in str(caught.value).replace("\\\\", "\\")


# Base64


@pytest.mark.parametrize(
    "text", ["AAECAwT+/w==", "AAECAwT+/w", "AAECAwT-_w==", "AAECAwT-_w", "AAEC\nAwT+\n/w==\n", "> AAECAwT+/w="]
)
def test_base64_in_any_alphabet_and_padding(text: str) -> None:
    if text.endswith("/w="):
        with pytest.raises(Misuse, match="not a whole number"):
            read_input(text.encode(), "base64")
    else:
        assert read_input(text.encode(), "base64") == Input(b"\x00\x01\x02\x03\x04\xfe\xff", "base64")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("AAEC\nAw%T", "line 2, column 3: '%' is not a base64 character"),
        ("AA+C\nAw_T", "line 2, column 3: the standard and the URL-safe alphabet are mixed"),
        ("AA==AAEC", "line 1, column 4: padding before the end"),
        ("AAECA", "5 characters are not a whole number of base64 groups"),
    ],
)
def test_text_forced_as_base64_that_is_not(text: str, what: str) -> None:
    with pytest.raises(Misuse, match=re.escape(what)):
        read_input(text.encode(), "base64")


def test_base64_without_padding_is_doubted() -> None:
    assert "without padding" in str(read_input(base64.b64encode(FRAME).rstrip(b"=")).note)
    assert read_input(base64.b64encode(FRAME)).note is None


# What auto decides


def test_bytes_that_are_no_text_are_raw() -> None:
    for raw in (bytes(4), FRAME, b"0a 0b\x00", b"\xff\xfe\x00", b"\xfe\xff\xd8\x00", b"0a\x7f"):
        assert read_input(raw) == Input(raw, "raw")


def test_text_beyond_ascii_is_raw_and_noted() -> None:
    assert read_input("0a é".encode()).note == "text read as raw bytes: it is not all ASCII"
    around = read_input("127.0.0.1 → 127.0.0.1 Kafka\n0000  0a 0b                    ..\n".encode())
    assert (around.form, around.data) == ("wireshark", b"\x0a\x0b")


def test_all_hex_is_hex_and_never_base64() -> None:
    assert read_input(b"deadbeefdeadbeef").form == "hex"
    odd = read_input(b"deadbeefdeadbee")
    assert odd.form == "raw"
    assert "15 hex digits, an odd number" in str(odd.note)
    assert "hex digits only" in str(odd.note)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("hello, world", "'h' is not a hex digit"),
        ("GET / HTTP/1.1\r\nHost: broker\r\n\r\n", "'G' is not a hex digit"),
        ("username", "8 characters are too few to tell"),
        ("the quick brown fox jumps over it", "words with spaces between them"),
        ("abcdefghijklmnop\nqrst\nuvwxyzabcdefghij", "lines of different lengths"),
        ("abcdefghijklmnopqr", "bits beyond the last byte"),
        ('{"topic": "de", "partition": 10}', "is not a hex digit"),
        (" \n", "nothing but white space"),
        ("", "empty"),
        ("2024: 20 lines of log\n2025: 21 lines of log", "is not a hex digit"),
    ],
)
def test_other_text_is_raw_with_the_reason(text: str, why: str) -> None:
    parsed = read_input(text.encode())
    assert (parsed.data, parsed.form) == (text.encode(), "raw")
    assert why in str(parsed.note)


def test_raw_is_never_touched() -> None:
    assert read_input(XXD.encode(), "raw") == Input(XXD.encode(), "raw")


def test_rows_of_hex_are_no_dump_unless_the_first_words_count_bytes() -> None:
    rows = b"00000010 00 01 02 03\n00000010 00 01 02 03\n"
    assert read_input(rows).form == "hex"
    assert read_input(b"0000  01 02\n0000  03 04") == Input(bytes.fromhex("0000010200000304"), "hex")
    assert read_input(b"0000  01 02\n0002  03 04") == Input(bytes.fromhex("01020304"), "wireshark")


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
        ("0000000  \\0  \\0   &  \\0 003\n0000005\n", "characters or octal bytes of od"),
        ("00000000: 00000000 00000000 00000000 00100110 00000000 00000011  ...&..\n", "binary digits of xxd -b"),
    ],
)
def test_dumps_that_are_not_hexadecimal_name_one_that_is(text: str, message: str) -> None:
    with pytest.raises(Misuse, match=f"{message}, and only .* can be read"):
        read_input(text.encode())


# Dumps: what is odd is noted


def test_offsets_that_start_anywhere_are_noted() -> None:
    parsed = read_input(xxd(FRAME, start=0x40).encode())
    assert parsed == Input(FRAME, "xxd", "the offsets start at 0x40")


def test_squeezed_lines_are_expanded_and_noted() -> None:
    assert read_input(HEXDUMP_C.encode()).note == "lines squeezed to * were expanded to 32 bytes"


def test_lines_left_out_are_left_out_and_noted() -> None:
    lines = XXD.splitlines(keepends=True)
    parsed = read_input("".join(lines[:1] + lines[3:]).encode())
    assert parsed == Input(FRAME[:16] + FRAME[48:], "xxd", "32 bytes are missing at offset 0x10, after line 1")


def test_many_gaps_are_summed_up() -> None:
    lines = xxd(bytes(range(256))).splitlines(keepends=True)
    note = read_input("".join(lines[::2]).encode()).note
    assert note is not None
    assert note.count("after line") == 3
    assert note.endswith("112 bytes are missing in 7 places in all")


def test_words_in_the_byte_order_of_the_machine_are_noted() -> None:
    assert "little-endian" in str(read_input(SAMPLES["hexdump"][1].encode()).note)


def test_squeezed_offsets_that_may_be_octal_are_noted() -> None:
    zeros = " ".join(["0000"] * 8)
    assert "would be octal" in str(read_input(f"0000000 {zeros}\n*\n0000040\n".encode()).note)
    assert "would be octal" not in str(read_input(f"0000000 {zeros}\n*\n0000050\n".encode()).note)


def test_a_text_column_that_shows_other_bytes_is_noted() -> None:
    little_endian = b"00000000: 1f000000 01000300 0a000000 616b0400  ..............ka\n"
    assert "does not show these bytes" in str(read_input(little_endian).note)


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
        (HEXDUMP_C.replace("6b 61 ", "6b    "), "line 1, column 56: 15 bytes of hex, but by the offsets 16"),
        (HEXDUMP_C.replace("0000005c", "0000005e"), "line 5, column 47: 12 bytes of hex, but by the offsets 14"),
        (HEXDUMP_C.replace("00000050  3e", "00000058  3e"), "line 5, column 1: after a star"),
        ("\n".join(HEXDUMP_C.split("\n")[:4]), "line 4, column 1: no offset follows"),
        ("*\n" + HEXDUMP_C, "line 1, column 1: not a line of a dump"),
        (HEXDUMP_C.replace("\n*\n", "\n*\n*\n"), "line 4, column 1: no offset follows"),
        (
            hexdump(bytes(24)).replace(" 00  00", " 00  0", 1),
            "line 1, column 34: 8 bytes of hex, but by the offsets 16",
        ),
        ("00000000  01 02 03  |...|\n00000004\n", "line 1, column 19: 3 bytes of hex, but by the offsets 4"),
    ],
)
def test_a_dump_that_contradicts_itself_names_the_line(text: str, place: str) -> None:
    message = damaged(text)
    assert message.startswith(place)
    assert message.endswith("pass --input raw if the text itself is meant")


# Limits and misuse


def test_the_limit_holds_for_the_input() -> None:
    assert DEFAULT_LIMIT == 256 * 1024 * 1024
    assert read_input(b"0a0b", limit=4).data == b"\n\x0b"
    with pytest.raises(Limit, match="input_size of 3"):
        read_input(b"0a0b", limit=3)


def test_the_limit_holds_for_the_lines_that_a_star_repeats() -> None:
    text = hexdump(bytes(16)).replace("00000010\n", "*\nfffffffffffffff0\n")
    with pytest.raises(Limit, match=r"line 2: .* input_size"):
        read_input(text.encode())


def test_an_unknown_form_is_misuse() -> None:
    with pytest.raises(Misuse, match="auto, raw, hex, base64"):
        read_input(b"", "xxd")
