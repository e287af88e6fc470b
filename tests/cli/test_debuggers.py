"""Memory as gdb and WinDbg print it is read to the very bytes, or refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirekit.cli.input import read_input
from wirekit.errors import Misuse

SIZES = {"b": 1, "h": 2, "w": 4, "g": 8}


def gdb(data: bytes, size: int, address: int, symbol: str) -> bytes:
    """What ``x/<n>x<size>`` of gdb 12 prints of memory on a little-endian machine: eight bytes or two words a line."""
    lines = []
    for at in range(0, len(data), 8):
        words = [data[at + i : at + i + size] for i in range(0, min(8, len(data) - at), size)]
        where = f"{address + at:#x}" + (f" <{symbol}+{at}>" if symbol else "")
        lines.append(f"{where}:\t" + "\t".join(f"0x{int.from_bytes(word, 'little'):0{2 * size}x}" for word in words))
    return ("\n".join(lines) + "\n").encode()


@given(st.binary(min_size=8, max_size=80), st.sampled_from([*SIZES.values()]), st.integers(0, 1 << 47))
def test_memory_as_gdb_prints_it(data: bytes, size: int, address: int) -> None:
    data = data[: len(data) // 8 * 8]
    for symbol in ("", "buffer"):
        for form in ("auto", "hex"):
            parsed = read_input(gdb(data, size, address, symbol), form)
            assert (parsed.data, parsed.form) == (data, "gdb")
            assert (parsed.note is None) == (size == 1)


@given(st.binary(min_size=16, max_size=80), st.sampled_from("uc"), st.integers(0, 1 << 47))
def test_numbers_and_characters_as_gdb_prints_them(data: bytes, letter: str, address: int) -> None:
    words = [str(byte) if letter == "u" else f"{(byte ^ 0x80) - 0x80} '{character(byte)}'" for byte in data]
    lines = ["\t".join([f"{address + at:#x}:", *words[at : at + 8]]) for at in range(0, len(words), 8)]
    parsed = read_input("\n".join(lines).encode())
    assert (parsed.data, parsed.form, parsed.note) == (data, "gdb", "decimal numbers were read as bytes")


def character(byte: int) -> str:
    """A character as gdb's ``x/c`` prints it."""
    return chr(byte) if 0x20 <= byte < 0x7F and chr(byte) not in "'\\" else f"\\{byte:03o}"


def windbg(data: bytes, letter: str, address: int, *, wide: bool, text: bool) -> bytes:
    """What WinDbg's ``db``, ``dw``, ``dd``, ``dc`` and ``dq`` print: 16 bytes a line, an accent in 64 bits."""
    size = WORDS[letter]
    lines = []
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        words = [row[i : i + size][::-1].hex() for i in range(0, len(row), size)]
        words = [f"{word[:8]}`{word[8:]}" for word in words] if letter == "q" else words
        line = " ".join(words) if letter != "b" else "-".join(filter(None, [" ".join(words[:8]), " ".join(words[8:])]))
        shown = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
        where = f"{address + at:016x}" if wide else f"{address + at:08x}"
        column = f"{line:<{LINE[letter]}}  {shown}" if text or letter in "bc" else line
        lines.append(f"{where[:8]}`{where[8:]}  {column}" if wide else f"{where}  {column}")
    return ("\n".join(lines) + "\n").encode()


WORDS = {"b": 1, "w": 2, "d": 4, "c": 4, "q": 8}
LINE = {"b": 47, "w": 39, "d": 35, "c": 35, "q": 35}


@given(st.binary(min_size=32, max_size=80), st.sampled_from([*WORDS]), st.integers(16, 1 << 31), st.booleans())
def test_memory_as_windbg_prints_it(data: bytes, letter: str, address: int, wide: bool) -> None:
    data = data[: len(data) // 16 * 16]
    for form in ("auto", "hex"):
        parsed = read_input(windbg(data, letter, address, wide=wide, text=False), form)
        assert (parsed.data, parsed.form) == (data, "windbg")
        assert (parsed.note is None) == (letter == "b")


def test_a_prompt_and_a_short_last_line() -> None:
    lines = b"0:000> db 0012ff64 L18\n" + windbg(bytes(range(24)), "b", 0x12FF64, wide=False, text=True)
    assert read_input(lines).data == bytes(range(24))


@pytest.mark.parametrize(
    "text",
    [
        b"0x7ffe00:\t0x48\t0x65\n0x7ffe08:\t0x6c\t0x6c\n",
        b"0x7ffe00:\t0x48\t0x6565\n",
        b"0x7ffe00:\t0x48\t0x65\n0x7ffe02:\t72\t101\n",
        b"0x7ffe00:\t72\t300\n",
        b"00007ff6`1a2b3c40  00 00 ?? ??\n",
        b"0012ff64  00 00 00 17 ca fe ba be-04 02\n0012ff6f  00\n",
        b"0012ff64  68 65 6c 6c 6f 6f 6f 6f-68 65  helloooohx\n",
    ],
    ids=["address", "sizes", "decimal", "no byte", "unreadable", "windbg's address", "windbg's text"],
)
def test_a_dump_that_contradicts_itself_is_refused(text: bytes) -> None:
    with pytest.raises(Misuse, match="line"):
        read_input(text)


def test_the_prompt_of_gdb_is_skipped() -> None:
    text = b"(gdb) x/8xb buf\n" + gdb(bytes(range(30)), 1, 0x1000, "") + b"(gdb) \n"
    assert read_input(text).data == bytes(range(30))


def test_a_number_of_more_digits_than_python_converts_is_refused() -> None:
    with pytest.raises(Misuse, match="line 2, column 1: not a line of gdb's x command"):
        read_input(b"0x10:\t1\n0x11:\t" + b"9" * 5_000)
