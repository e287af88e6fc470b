"""Dumps of bytes: samples, and formatters that print any bytes as a command does.

FRAME is the beginning of a Kafka request, text that looks like hex, zeros that dumps squeeze, and text that looks like
the frame of a text column. The samples named after a command are what that command printed for FRAME (xxd 2022-01-14,
hexdump of util-linux, od of coreutils, hexyl 0.8.0, OpenSSL 3.0.19, socat 1.7.4, ngrep 1.47) without trailing spaces;
the others are written after the formats they name.
"""

from __future__ import annotations

import base64
import re

import pytest
from hypothesis import strategies as st

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
    "hexyl": (
        "wireshark",
        """\
┌────────┬─────────────────────────┬─────────────────────────┬────────┬────────┐
│00000000│ 00 00 00 1f 00 03 00 01 ┊ 00 00 00 0a 00 04 6b 61 │000•0•0•┊000_0•ka│
│00000010│ 64 65 61 64 62 65 65 66 ┊ 20 64 65 20 61 64 20 20 │deadbeef┊ de ad  │
│00000020│ 00 00 00 00 00 00 00 00 ┊ 00 00 00 00 00 00 00 00 │00000000┊00000000│
│*       │                         ┊                         │        ┊        │
│00000050│ 3e 20 30 30 20 31 31 7c ┊ 62 65 65 66             │> 00 11|┊beef    │
└────────┴─────────────────────────┴─────────────────────────┴────────┴────────┘
""",
    ),
    "hexyl --border ascii": (
        "wireshark",
        """\
+--------+-------------------------+-------------------------+--------+--------+
|00000000| 00 00 00 1f 00 03 00 01 | 00 00 00 0a 00 04 6b 61 |000•0•0•|000_0•ka|
|00000010| 64 65 61 64 62 65 65 66 | 20 64 65 20 61 64 20 20 |deadbeef| de ad  |
|00000020| 00 00 00 00 00 00 00 00 | 00 00 00 00 00 00 00 00 |00000000|00000000|
|*       |                         |                         |        |        |
|00000050| 3e 20 30 30 20 31 31 7c | 62 65 65 66             |> 00 11||beef    |
+--------+-------------------------+-------------------------+--------+--------+
""",
    ),
    "hexyl --border none": (
        "wireshark",
        """\
 00000000  00 00 00 1f 00 03 00 01   00 00 00 0a 00 04 6b 61  000•0•0• 000_0•ka
 00000010  64 65 61 64 62 65 65 66   20 64 65 20 61 64 20 20  deadbeef  de ad
 00000020  00 00 00 00 00 00 00 00   00 00 00 00 00 00 00 00  00000000 00000000
 *
 00000050  3e 20 30 30 20 31 31 7c   62 65 65 66              > 00 11| beef
""",
    ),
    "BIO_dump": (
        "wireshark",
        """\
0000 - 00 00 00 1f 00 03 00 01-00 00 00 0a 00 04 6b 61   ..............ka
0010 - 64 65 61 64 62 65 65 66-20 64 65 20 61 64 20 20   deadbeef de ad
0020 - 00 00 00 00 00 00 00 00-00 00 00 00 00 00 00 00   ................
0030 - 00 00 00 00 00 00 00 00-00 00 00 00 00 00 00 00   ................
0040 - 00 00 00 00 00 00 00 00-00 00 00 00 00 00 00 00   ................
0050 - 3e 20 30 30 20 31 31 7c-62 65 65 66               > 00 11|beef
""",
    ),
    "lldb": (
        "tcpdump",
        """\
(lldb) memory read -c 92 0
0x0: 00 00 00 1f 00 03 00 01 00 00 00 0a 00 04 6b 61  ..............ka
0x10: 64 65 61 64 62 65 65 66 20 64 65 20 61 64 20 20  deadbeef de ad
0x20: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
0x30: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
0x40: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
0x50: 3e 20 30 30 20 31 31 7c 62 65 65 66              > 00 11|beef
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


# Formatters


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


def xxd_e(data: bytes, *, group: int, width: int = 16) -> str:
    """The lines of ``xxd -e``: words are little-endian, and a short last word is padded on its left."""
    text = ""
    for number, line in enumerate(cut(data, width)):
        words = " ".join(word[::-1].hex().rjust(2 * group) for word in cut(line, group))
        text += f"{width * number:08x}: {words:{2 * width + width // group}} {shown(line)}\n"
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


ANY = st.one_of(
    st.binary(min_size=1, max_size=300),
    st.text(alphabet=" deadbf019.|<>*:x\\", min_size=1, max_size=200).map(str.encode),
    st.text(alphabet=" de", min_size=1, max_size=64).map(str.encode),
    st.lists(st.sampled_from([b"\0" * 16, b"de ad be ef 0011"]), min_size=1, max_size=9).map(b"".join),
)
START = st.integers(min_value=0, max_value=0xFFFF_FFFF)
both = pytest.mark.parametrize("form", ["auto", "hex"])
