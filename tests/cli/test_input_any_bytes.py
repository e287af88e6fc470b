"""Any bytes, through any formatter, are read back."""

from __future__ import annotations

import base64
import re

from hypothesis import assume, given
from hypothesis import strategies as st

from tests.cli.dumps import ANY, START, both, cut, hexdump, shown, tcpdump, wireshark, xxd
from wirekit.cli.input import Input, read_input
from wirekit.errors import Limit, Misuse


def plain(data: bytes, *, before: str, between: str, per_line: int, upper: bool) -> str:
    words = [before + (f"{byte:02X}" if upper else f"{byte:02x}") for byte in data]
    return "\n".join(between.join(words[at : at + per_line]) for at in range(0, len(words), per_line))


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
