"""What an engineer pastes or pipes becomes the bytes it stands for, or an error that names the place."""

from __future__ import annotations

import base64
import re
import shutil
import subprocess

import pytest

from tests.cli.dumps import FRAME, SAMPLES, XXD, hexdump
from wirekit.cli.input import DEFAULT_LIMIT, Input, read_input
from wirekit.errors import Limit, Misuse

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


@pytest.mark.parametrize("marker", ["// ", "  /// ", "//! ", "# ", " * ", "-- ", ";; ", "%% "])
def test_comments_in_all_lines_are_no_data(marker: str) -> None:
    for text in (XXD, "&[\n" + ", ".join(map(hex, FRAME)) + ",\n]"):
        lines = "".join(marker + line for line in text.splitlines(keepends=True))
        assert read_input(f"\n{lines}\n{marker.rstrip()}\n".encode()).data == FRAME


@pytest.mark.parametrize("text", ["# local_users_only\n", "# ----------------\n", "// see//AAAAbbbbCCCC"])
def test_words_in_comments_are_no_base64(text: str) -> None:
    assert read_input(text.encode()).form == "raw"


def test_markers_of_comments_in_some_lines_stay() -> None:
    assert read_input(b"// 00 01\n00 02").form == "raw"
    assert read_input(b"//AAAAAAAAAAAAAAAAAAAA==").form == "base64"
    assert read_input(b"# 00 01\n; 00 02").form == "raw"


@by_sample
def test_line_ends_and_encodings_of_other_systems_are_read(form: str, text: str) -> None:
    crlf = text.replace("\n", "\r\n")
    variants = [crlf.encode(), text.replace("\n", "\r").encode(), b"\xef\xbb\xbf" + text.encode()]
    variants += [crlf.encode("utf-16"), b"\xfe\xff" + crlf.encode("utf-16-be")]
    if form != "base64":
        variants.append(text.replace(" ", "\xa0").encode())
    assert [read_input(raw).data for raw in variants] == [FRAME] * len(variants)


@pytest.mark.parametrize(
    "before", ["app_1  | ", "2024-05-01T12:00:07.123Z stderr F ", "May 01 12:00:07 host app[7]: ", "+"]
)
@by_sample
def test_text_before_each_line_of_a_dump_is_skipped(form: str, text: str, before: str) -> None:
    if form in ("xxd", "hexdump", "wireshark", "od"):
        parsed = read_input("".join(before + line for line in text.splitlines(keepends=True)).encode())
        assert (parsed.data, bool(parsed.note)) == (FRAME, True)


@by_sample
def test_colours_of_a_terminal_are_no_data(form: str, text: str) -> None:
    coloured = re.sub(r"([0-9a-f]{2})", "\x1b[1;32m\\1\x1b[0m", text) if form in ("xxd", "hexdump", "od") else text
    assert read_input(coloured.encode()).data == FRAME


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


# Plain hex


@pytest.mark.parametrize(
    "text",
    [
        *("0A 0b 0C", "0a:0b:0c", "0a-0b-0c", "0a0b0c", "0A0B0C\n", "0x0a0b0c", "0X0A 0x0B,0x0c", "0x0a0x0b0x0c"),
        *(r"\x0a\x0b\x0c", r'"\x0a\x0b\x0c"', r"b'\x0a\x0b\x0c'", '"\\x0a\\x0b" \\\n"\\x0c"', "'0a0b0c'"),
        *("{0x0a, 0x0b, 0xc}", "char x[3] = {10\n}".replace("10", "0xa,0xb,0xc"), "[]byte{0x0a, 0x0b, 0x0c,}"),
        *("new byte[] { 0x0a, 0x0b, 0x0c };", "uint8_t a[] = { 0x0a, // one\n 0x0b, /* 2 */ 0x0c };"),
        *("    []byte{0x0a,0xb,0x0c}", "var a = []byte{\n\t0x0a, 0x0b, // one\n\t0x0c,\n}", "vec![0x0a, 0x0b, 0x0c]"),
        *(
            "new byte[]{(byte)0x0a, (byte) 0x0b, 0x0c};",
            "new Uint8Array([0x0a, 0x0b, 0x0c])",
            '[]byte("\\x0a\\x0b\\x0c")',
        ),
        *("let a: [UInt8] = [0x0a, 0x0b, 0x0c]", "let a: [u8; 3] = [0x0a, 0x0b, 0x0c];", r"$'\x0a\x0b\x0c'"),
        *('data = bytes.fromhex("0a 0b 0c")', "binascii.unhexlify(b'0a0b0c')", "Buffer.from('0a0b0c', 'hex');"),
        *("%0A%0b%0C\n", "```\n0a 0b 0c\n```\n", "```python\n[0x0a, 0x0b, 0x0c]\n```"),
        "\n\n  0a\n\t0b 0c\n",
    ],
)
def test_hex_in_any_spacing(text: str) -> None:
    for form in ("auto", "hex"):
        assert read_input(text.encode(), form) == Input(b"\n\x0b\x0c", "hex")


@pytest.mark.parametrize("text", [r'"\x00\n\tit\000\"c"', r"log: sent $'\000\n\x09it\x00\"c'", "%00%0a%09it%00%22c"])
def test_characters_between_escaped_bytes(text: str) -> None:
    assert read_input(text.encode()).data == b'\0\n\tit\0"c'


@pytest.mark.parametrize("text", ["100%25", "a%20b", '"it\\x27s"', 'int("10")', 'hexagon("side")'])
def test_text_with_a_few_escapes_is_text(text: str) -> None:
    assert read_input(text.encode()).form == "raw"


LABELLED = """00 00 00 12            Size = 18
00 03                  ApiKey = 3 (Metadata)
00 00
00 04 74 65 73 74      ClientId = "test"
"""


def test_labels_and_comments_after_the_bytes_of_each_line_are_skipped_and_noted() -> None:
    data, note = bytes.fromhex("00000012 0003 0000 0004 74657374"), "the text after the bytes of each line was skipped"
    column = "00 00 00 12 00 03 00 00  ........\n00 04 74 65 73 74        ..test\n"
    for text in (LABELLED, re.sub(r"  (\S+ =)", r"  # \1", LABELLED), re.sub(r"  (\S+ =)", r"// \1", LABELLED), column):
        assert read_input(text.encode()) == Input(data, "hex", note)


def test_lines_with_labels_do_not_end_in_the_middle_of_a_byte() -> None:
    assert read_input(b"631  # ipp\n636  # ldaps\n721  # a\n722  # b\n723  # c\n724  # d\n").form == "raw"


@pytest.mark.parametrize("label", ["0g", "o0", "de facto", "1e", "add"])
def test_words_that_may_be_damaged_bytes_are_no_labels(label: str) -> None:
    with pytest.raises(Misuse, match=r"is not a hex digit|an odd number"):
        read_input((LABELLED + f"00 01  {label} x\n").encode(), "hex")


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
    ("text", "reason"),
    [
        ("AAEC\nAw%T", "line 2, column 3: '%' is not a base64 character"),
        ("AA+C\nAw_T", "line 2, column 3: the standard and the URL-safe alphabet are mixed"),
        ("AA==AAEC", "line 1, column 4: padding before the end"),
        ("AAECA", "5 characters, not a whole number of base64 groups"),
        ("A", "1 character, not a whole number of base64 groups"),
    ],
)
def test_text_forced_as_base64_that_is_not(text: str, reason: str) -> None:
    with pytest.raises(Misuse, match=re.escape(reason)):
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


@pytest.mark.parametrize(
    "around", ["'{}'", '"{}"', ' "{}",\n', "data:application/octet-stream;base64,{}", "data:;base64,{}"]
)
def test_base64_in_quotes_and_in_a_data_uri(around: str) -> None:
    parsed = read_input(around.format(base64.b64encode(FRAME).decode()).encode())
    assert (parsed.data, parsed.form, parsed.note) == (FRAME, "base64", None)


@pytest.mark.parametrize("text", ["''", '"', "data:;base64,", "'AAECAwQ=", "data:text/plain,AAECAwQFBgcICQoLDA0ODw=="])
def test_quotes_without_base64_are_text(text: str) -> None:
    assert read_input(text.encode()).form == "raw"


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
        ("username", "8 characters, too few to tell"),
        ("the quick brown fox jumps over it", "words with spaces between them"),
        ("abcdefghijklmnop\nqrst\nuvwxyzabcdefghij", "lines of different lengths"),
        ("abcdefghijklmnopqr", "bits beyond the last byte"),
        ('{"topic": "de", "partition": 10}', "is not a hex digit"),
        (" \n", "only white space"),
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


# Limits and misuse


def test_the_limit_holds_for_the_input() -> None:
    assert DEFAULT_LIMIT == 256 * 1024 * 1024
    assert read_input(b"0a0b", limit=4).data == b"\n\x0b"
    with pytest.raises(Limit, match=r"limit of 3 \(input_size\)"):
        read_input(b"0a0b", limit=3)


def test_the_limit_holds_for_the_lines_that_a_star_repeats() -> None:
    text = hexdump(bytes(16)).replace("00000010\n", "*\nfffffffffffffff0\n")
    with pytest.raises(Limit, match=r"line 2: .*\(input_size\)"):
        read_input(text.encode())


def test_an_unknown_form_is_misuse() -> None:
    with pytest.raises(Misuse, match="auto, raw, hex, base64"):
        read_input(b"", "xxd")
