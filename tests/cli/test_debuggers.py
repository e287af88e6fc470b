"""Memory as gdb prints it and bytes as Python prints them are read to the very bytes, or refused."""

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
            found = read_input(gdb(data, size, address, symbol), form)
            assert (found.data, found.form) == (data, "gdb")
            assert (found.note is None) == (size == 1)


@given(st.binary(min_size=1, max_size=60))
def test_bytes_as_python_prints_them(data: bytes) -> None:
    assert read_input(f"{data!r}\n".encode()).data == data


@pytest.mark.parametrize(
    "text",
    [
        b"0x7ffe00:\t0x48\t0x65\n0x7ffe08:\t0x6c\t0x6c\n",
        b"0x7ffe00:\t0x48\t0x6565\n",
        b"0x7ffe00:\t0x48\t0x65\n0x7ffe02:\t72\t101\n",
    ],
    ids=["address", "sizes", "decimal"],
)
def test_what_contradicts_itself_is_refused(text: bytes) -> None:
    with pytest.raises(Misuse, match="line"):
        read_input(text)
