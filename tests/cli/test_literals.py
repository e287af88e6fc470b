"""Bytes as languages and Netty print them are read to the very bytes, or refused with the place."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from urllib.parse import quote_from_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirekit.cli.input import Input, read_input
from wirekit.errors import Misuse

LISTS: dict[str, Callable[[bytes], str]] = {
    "Java": lambda data: str([(byte ^ 0x80) - 0x80 for byte in data]),
    "Java source": lambda data: f"byte[] frame = new byte[] {{{', '.join(f'(byte) {byte}' for byte in data)}}};",
    "Go": lambda data: f"[{' '.join(map(str, data))}]",
    "Go source": lambda data: f"[]byte{{{', '.join(map(str, data))}}}",
    "JSON": lambda data: json.dumps(list(data)),
    "Node's JSON": lambda data: json.dumps({"type": "Buffer", "data": list(data)}, indent=2),
    "JavaScript": lambda data: f"Uint8Array({len(data)}) [ {', '.join(map(str, data))} ]",
    "Python": lambda data: f"bytes([{', '.join(map(str, data))},])",
    "Rust": lambda data: f"&[{', '.join(f'{byte}u8' for byte in data)}]",
    "Erlang": lambda data: f"<<{','.join(map(str, data))}>>",
    "C": lambda data: f"/* it */\nstatic const uint8_t frame[{len(data)}] = {{ {', '.join(map(str, data))} }};",
    "C, mixed": lambda data: f"char a[] = {{{', '.join(f'{byte:#x}' if byte % 2 else str(byte) for byte in data)}, 0}}",
}


LISTS |= {
    "Erlang, hexadecimal": lambda data: f"Bin = <<{','.join(f'16#{byte:02X}' for byte in data)}>>.",
    "Elixir": lambda data: f"assert request ==\n    <<{', '.join(f'{byte}::8' for byte in data)}>>\n",
    "F#": lambda data: f"[|{'; '.join(f'{byte}uy' for byte in data)}|]",
    "Scala": lambda data: f"Array[Byte]({', '.join(str((byte ^ 0x80) - 0x80) for byte in data)})",
    "Clojure": lambda data: f"(byte-array [{' '.join(str((byte ^ 0x80) - 0x80) for byte in data)}])",
    "JSON of a typed array": lambda data: json.dumps(dict(enumerate(data))),
}


@pytest.mark.parametrize("language", LISTS)
@given(data=st.binary(min_size=1, max_size=40))
def test_lists_of_numbers(language: str, data: bytes) -> None:
    parsed = read_input(LISTS[language](data).encode())
    assert (parsed.data, parsed.form, parsed.note) == (data + b"\0" * (language == "C, mixed"), "decimal", None)


@given(st.binary(min_size=1, max_size=40))
def test_lists_of_hexadecimal_numbers(data: bytes) -> None:
    items = ", ".join(f"0x{byte:02x}" for byte in data)
    cast = ", ".join(f"{'(byte) ' * (byte > 127)}0x{byte:02X}" for byte in data)
    typed = ", ".join(f"0x{byte:02x}.toByte()" if byte > 127 else f"0x{byte:02x}u8" for byte in data)
    texts = (f"vec![{items}]", f"new Uint8Array([{items}])", f"new byte[] {{ {cast} }};", f"[]byte{{{items}}}")
    for text in (*texts, f"byteArrayOf({typed})", f"[byte[]]({items})", f"@[{items}]"):
        parsed = read_input(text.encode())
        assert (parsed.data, parsed.form, parsed.note) == (data, "hex", None)


def test_a_list_of_hexadecimal_digits_as_rust_prints_it() -> None:
    for data in (bytes(range(256)), b"\xbe\xef\0", b"\0\x01\x12\xbe"):
        parsed = read_input(f"[{', '.join(f'{byte:02x}' for byte in data)}]".encode())
        assert (parsed.data, parsed.form, parsed.note) == (data, "hex", None)


@given(st.binary(max_size=40))
def test_bytes_as_a_url_has_them(data: bytes) -> None:
    data = b"\0" + data
    for text in (quote_from_bytes(data), "".join(f"%{byte:02X}" for byte in data) + "\n"):
        assert read_input(text.encode()).data == data


@given(st.binary(max_size=40))
def test_strings_with_escaped_bytes(data: bytes) -> None:
    """As Python 2, Go and Ruby print them."""
    data = b"\0" + data + b"topic"
    shown = "".join(f"\\x{byte:02x}" if byte < 32 or byte > 126 or byte in b"'\"\\" else chr(byte) for byte in data)
    for text in (f"'{shown}'", f'"{shown}"', f'sent = "{shown}"', f"$'{shown}'", f'[]byte("{shown}")'):
        assert read_input(text.encode()).data == data


@given(st.text("abuy8'\\", min_size=1, max_size=9))
def test_characters_in_a_list(text: str) -> None:
    """Also those that look like the prefix or the type of a number elsewhere."""
    characters = [f"'{chr(92) * (each in chr(92) + chr(39))}{each}'" for each in text]
    for items in (",".join(characters), ", ".join(characters), ", ".join(f"b{each}" for each in characters)):
        for zero in ("0", "0x00"):
            assert read_input(f"[]byte{{{zero}, {items}}}".encode()).data == b"\0" + text.encode()


@given(st.lists(st.binary(min_size=1, max_size=9), min_size=1, max_size=5))
def test_strings_in_pieces(pieces: list[bytes]) -> None:
    """As the sources of C, Python, JavaScript and PHP have them, with comments."""
    data = b"\0" + b"".join(pieces)
    shown = ["".join(f"\\x{byte:02x}" for byte in piece) for piece in (b"\0", *pieces)]
    joints = ("\n  ", " +\n", " . ", " <> ", '  // the "size"\n', "  # it's\n", " \\\n", " /* 1 */ ")
    texts = [joint.join(f'"{piece}"' for piece in shown) for joint in joints]
    texts += [
        f"b''.join([\n{', '.join(f'b{chr(39)}{piece}{chr(39)}' for piece in shown)}\n])",
        f"Create<char>({texts[0]});",
    ]
    for text in texts:
        parsed = read_input(text.encode())
        assert (parsed.data, parsed.dumps) == (data, ()), text


@pytest.mark.parametrize(
    "text",
    [
        r'"\x00\x00\x00\x05\x00\x0Ctext".force_encoding("BINARY")',
        r'"\x00\x00\x00\x05\x00\ftext".b',
        r'"\u0000\u0000\u0000\u0005\u0000\u000ctext"',
        r'"\x{0}\x{00}\x{00}\x{5}\x{00}\x{0c}text"',
        r'write(7, "\0\0\0\5\0\ftext", 10) = 10',
        r"DEBUG:kafka.conn:Sending b'\x00\x00\x00\x05\x00\x0ctext' to node 1",
    ],
)
def test_strings_of_other_languages_and_logs(text: str) -> None:
    parsed = read_input(text.encode())
    assert (parsed.data, parsed.note) == (b"\0\0\0\x05\0\x0ctext", None)


def test_other_characters_in_a_string_are_utf8_and_noted() -> None:
    parsed = read_input('"\\x00\\x05caf\u00e9"'.encode())
    assert (parsed.data, parsed.note) == ("\0\x05caf\u00e9".encode(), "characters beyond ASCII were read as UTF-8")
    for text in ("b'\\x00\u00e9'", '<<0, "\u00e9">>', r"b'\x00\u0041'"):
        assert read_input(text.encode()).form == "raw"
    with pytest.raises(Misuse, match="not a character of one byte"):
        read_input("[1, 2, '\u00e9']".encode())


def test_octal_escapes_are_noted_if_they_may_be_decimal() -> None:
    parsed = read_input(rb'"\0\0\0\36text"')
    assert (parsed.data, parsed.note) == (b"\0\0\0\x1etext", r"\36 and similar escapes were read as octal numbers")


@pytest.mark.parametrize("text", [r'"\x1b[0m" + colour', "[" + "b'a', " * 9 + "other]"])
def test_strings_beside_something_else_are_text(text: str) -> None:
    assert read_input(text.encode()).form == "raw"


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ('<<3::16, -1::32, 3::size(16), "foo"::binary, 10_000::32-signed>>', "0003 ffffffff 0003 666f6f 00002710"),
        ('Bin = <<3:16, -1:32/signed, 16#ff, <<"foo">>/binary, "a\\"b">>.', "0003 ffffffff ff 666f6f 612262"),
        ("<< 1:16 % API key, v1\n , 0:8     % empty\n >>", "0001 00"),
        ("  expect = <<\n    # it's the size, 4 bytes\n    4::32,\n    0x1F\n  >>", "00000004 1f"),
        ("> <<1, 2,\n> 3>>\n", "010203"),
    ],
)
def test_binaries_of_erlang_and_elixir(text: str, data: str) -> None:
    assert read_input(text.encode()).data == bytes.fromhex(data)


@pytest.mark.parametrize(
    "text",
    ["<<1:1, 0:7>>", "<<1:0>>", "<<1:16/little>>", "<<a, b>>", "<<>>", "<<1>> <<2>>", '<<"\\n">>']
    + ["a << 1", "mask = 1 << 300;", "x << 300 >> 4", "cat <<...", "sum << 1000 << endl"],
)
def test_binaries_without_constant_bytes_are_text(text: str) -> None:
    assert read_input(text.encode()).form == "raw"


def test_hex_in_several_strings_of_a_call() -> None:
    for text in (
        "bytes.fromhex(\n    '000b'  # size of 'it'\n    \"0b0c\"\n)",
        'Hex.decode("000b" +\n  "0b0c");',
        "Buffer.from('000b' + // \"one\"\n  '0b0c', 'hex')",
    ):
        assert read_input(text.encode()) == Input(bytes.fromhex("000b0b0c"), "hex")


@pytest.mark.parametrize(
    "text",
    [
        "&[{x}][..]",
        '    assert_eq!(&v[..], &[\n        {x}, // name = ""\n    ][..]);',
        "vec![{decimal}].to_vec().into()",
        "ByteBuffer.wrap(new byte[] {{{decimal}}}).asReadOnlyBuffer();",
        "new Uint8Array([{decimal}]).buffer;",
        "[{decimal}].pack('C*')",
        "assertArrayEquals(new byte[] {{{decimal}}}, out);",
        "assert.Equal(t, []byte{{{decimal}}}, buf.Bytes())",
        "(bytevector {words})",
        "#vu8({words})",
        "E'\\\\x{hex}'",
        "'\\x{hex}'::bytea",
        'assert_eq!(&buf[..], &b"{escaped}"[..]);',
        'data = "{escaped}".encode("latin1")',
        'binary:decode_hex(<<"{hex}">>)',
    ],
)
def test_what_tests_have_around_bytes(text: str) -> None:
    data = b"\0\0\0\x05hello+"
    text = text.format(
        x=", ".join(f"{byte:#04x}" for byte in data),
        decimal=", ".join(map(str, data)),
        words=" ".join(map(str, data)),
        hex=data.hex(),
        escaped="".join(f"\\x{byte:02x}" for byte in data),
    )
    parsed = read_input(text.encode())
    assert (parsed.data, parsed.note) == (data, None)


@pytest.mark.parametrize(
    "text",
    ["(0, 1, 2), out)", "[0, 1, 2].map(f)", "[0, 1, 2][1]", "'\\x00fg'::bytea"]
    + [
        "c = f(g(7, 8), d)",
        "n = edges[BB].size()",
        "see=man:gpg-agent(1)",
        "# useradd(8)",
        "def f():\n    return Day(2)\n",
        "equal(f(), [258, 3])",
    ],
)
def test_what_changes_a_list_is_text(text: str) -> None:
    assert read_input(text.encode()).form == "raw"


@pytest.mark.parametrize(
    "text",
    [
        "base64.b64decode(b'{}')",
        "data = base64.b64decode('{}')  ",
        "Base64.getDecoder().decode('{}');",
        "Base64.decode64(\n  '{}'\n)",
        "atob('{}')",
        "Buffer.from('{}', 'base64')",
        "let d = base64::decode('{}').unwrap();",
        "rp(base64:decode(<<'{}'>>)).",
    ],
)
def test_base64_in_a_call(text: str) -> None:
    data = b"\0\0\0\x05hello\xfb\xff+"
    shown = base64.b64encode(data).decode()
    assert "+" in shown
    for string in (shown, shown[:8] + "'\n + '" + shown[8:]):
        assert read_input(text.format(string).encode()) == Input(data, "base64")


@pytest.mark.parametrize(
    "text",
    [
        'print(unhexlify(b"00000005"))',
        'rp(binary:decode_hex(<<"00000005">>)).',
        'Base.decode16!(<<"00000005">>)',
        'let d = hex::decode("00000005").unwrap();',
    ],
)
def test_hex_in_nested_calls(text: str) -> None:
    assert read_input(text.encode()) == Input(b"\0\0\0\5", "hex")


def test_the_string_of_an_encoder_is_the_bytes() -> None:
    assert read_input(b'binascii.hexlify(b"00000005")').data == b"00000005"
    assert read_input(b'<<"00000005">>').data == b"00000005"


def test_strings_of_other_calls_are_no_base64() -> None:
    assert read_input(rb"base64.b64encode(b'\x00\x01abcdef')").data == b"\0\1abcdef"
    assert read_input(b"base64.b64encode(b'AAAABWhlbGxvIQ==')").form == "hex"
    assert read_input(b"b64 = encoded('hello')").form == "raw"
    assert read_input(b"document_base64_encoding('UserData')").form == "raw"
    assert read_input(b'base64.StdEncoding.DecodeString("AAEC")').data == b"\0\1\2"
    assert read_input(b'return _b64_decode(text).decode("utf8")').form == "raw"
    assert read_input(b"b2a_base64(digest())[:-1].decode('ascii')").form == "raw"
    assert read_input(b"print(unhexlify(text).split('ad'))").form == "raw"
    with pytest.raises(Misuse, match="line 2, column 7: the standard and the URL-safe alphabet are mixed"):
        read_input(b"base64.b64decode('AAA+'\n  'AAA_')")


RUBY = {ord(char): f"\\{name}" for char, name in zip('\a\b\t\n\v\f\r\x1b"#\\', 'abtnvfre"#\\', strict=True)}
RUST = {ord(char): f"\\{name}" for char, name in zip('\0\t\n\r"\\', '0tnr"\\', strict=True)}


def escaped(data: bytes, names: dict[int, str], other: str) -> str:
    return "".join(names.get(byte) or (chr(byte) if 32 <= byte < 127 else other.format(byte)) for byte in data)


@given(st.binary(max_size=40))
def test_strings_of_ruby(data: bytes) -> None:
    data = b"\0\0\x1b#" + data
    assert read_input(f'"{escaped(data, RUBY, chr(92) + "x{:02X}")}"'.encode()).data == data


@given(st.binary(max_size=40))
def test_bytes_of_rust(data: bytes) -> None:
    data = b"\0\0\x009\0\0\x0012" + data
    parsed = read_input(f'b"{escaped(data, RUST, chr(92) + "x{:02x}")}"'.encode())
    assert parsed.data == data
    assert parsed.note == r"\0 before digits was read as a zero byte, as Rust prints it"


def test_octal_bytes_of_python() -> None:
    assert read_input(rb"""b"\000\0059\1x\12" """).data == b"\x00\x059\x01x\n"


@pytest.mark.parametrize(
    "before",
    [
        "2024-05-01 12:00:00,123 DEBUG [main] sent 12 bytes: ",
        "2024-05-01T12:00:00.123Z INFO traffic - payload=0x",
        '{"id": "1f0c", "payload": "',
    ],
)
@given(data=st.binary(min_size=8, max_size=40))
def test_hex_that_the_words_of_a_line_name(before: str, data: bytes) -> None:
    after = '"}' if before.endswith('"') else ""
    for digits in (data.hex(), data.hex().upper(), *([data.hex(" ")] if before.endswith(" ") else [])):
        parsed = read_input(f"{before}{digits}{after}\n".encode())
        assert (parsed.data, parsed.form, parsed.note) == (data, "hex", "the text around the hex was skipped")


@given(st.lists(st.binary(min_size=8, max_size=40), min_size=2))
def test_hex_in_several_lines_of_a_log(frames: list[bytes]) -> None:
    lines = [
        f"12:00:07,{number:03} DEBUG {'received' if number % 2 else 'sent'}: {each.hex()}\n"
        for number, each in enumerate(frames)
    ]
    assert read_input("\n".join(lines).encode()).dumps == tuple(frames)


@pytest.mark.parametrize(
    "text",
    [
        "connected to broker 7\nsent 0000000a00100000",
        "trace 4bf92f3577b34da6a3ce929d0e0e4736 sent 0000000a00100000",
        "interface 00:11:22:33:44:55 is up",
        "id 123e4567-e89b-12d3-a456-426614174000 is known",
        "sent 0000000a00100000a bytes",
    ],
)
def test_lines_that_do_not_name_one_number(text: str) -> None:
    assert read_input(text.encode()).form == "raw"


@given(st.binary(min_size=2, max_size=40))
def test_a_node_buffer(data: bytes) -> None:
    assert read_input(f"<Buffer {data.hex(' ')}>".encode()).data == data


@given(st.binary(min_size=2, max_size=40))
def test_bytes_as_databases_print_them(data: bytes) -> None:
    for text in (f"X'{data.hex()}'", f"x'{data.hex().upper()}'\n", f"\\x{data.hex()}", f" \\x{data.hex()}\n"):
        assert read_input(text.encode()).data == data


@given(st.binary(min_size=1, max_size=60))
def test_bytes_as_python_prints_them(data: bytes) -> None:
    for text in (f"{data!r}\n", f"{bytearray(data)!r}", f"(\n {data!r}\n {data!r})"):
        assert read_input(text.encode()).data == data * (1 + (text[0] == "("))


def netty(data: bytes, direction: str = "READ") -> str:
    """What Netty's ``LoggingHandler`` logs."""
    edge = "+--------+" + 49 * "-" + "+----------------+"
    heading = "".join(f"{number:3x}" for number in range(16))
    lines = ["12:00:00.123 DEBUG - [id: 0x1a2b3c4d, L:/127.0.0.1:50088 - R:/127.0.0.1:51234] "]
    lines[0] += f"{direction}: {len(data)}B"
    lines += [9 * " " + "+" + 49 * "-" + "+", f"{9 * ' '}|{heading} |", edge]
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        shown = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
        lines.append(f"|{at:08x}|{''.join(f' {byte:02x}' for byte in row):<48} |{shown:<16}|")
    return "\n".join([*lines, edge, ""])


@given(st.binary(min_size=1, max_size=80))
def test_nettys_box(data: bytes) -> None:
    for form in ("auto", "hex"):
        parsed = read_input(netty(data).encode(), form)
        assert (parsed.data, parsed.form) == (data, "netty")
        assert parsed.note is None


def test_a_line_that_is_no_part_of_the_box_is_noted() -> None:
    parsed = read_input(("what a log says\n" + netty(b"one")).encode())
    assert (parsed.data, parsed.note) == (b"one", "line 1 is not part of the box and was skipped")


@given(st.lists(st.tuples(st.sampled_from(["READ", "WRITE"]), st.binary(min_size=1, max_size=40)), min_size=2))
def test_several_boxes_and_who_sent_each(turns: list[tuple[str, bytes]]) -> None:
    parsed = read_input("".join(netty(data, direction) for direction, data in turns).encode())
    assert parsed.dumps == tuple(data for _, data in turns)
    assert parsed.sides == tuple(int(direction != turns[0][0]) for direction, _ in turns)


def test_boxes_of_two_channels_have_no_sides() -> None:
    parsed = read_input((netty(b"one") + netty(b"two", "WRITE").replace("0x1a2b3c4d", "0x4")).encode())
    assert (parsed.dumps, parsed.sides) == ((b"one", b"two"), ())


def test_bytes_that_a_log_or_a_program_names() -> None:
    data = bytes(range(250, 256)) + b"a b"
    signed = [byte - 256 * (byte > 127) for byte in data]
    for text in (
        f"recv: {data!r}",
        f"request = {data!r};",
        f"INFO client: sent={bytearray(data)!r}",
        f"Arrays.toString(buf) = {signed}",
        f"12:00:07,123 DEBUG [main] Sending bytes={signed} to node 1",
    ):
        assert read_input(text.encode()).data == data, text


def test_a_few_numbers_behind_words_are_text() -> None:
    assert read_input(b"12:00:07 DEBUG partitions=[1, 2]").form == "raw"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[0, 0, 23, 300]", "line 1, column 12: 300 is not in 0 to 255"),
        ("[0, -1, 200]", "200 is not in -128 to 127, as other numbers are negative"),
        ("[0, 0, 1a]", "'1a' is not the decimal number of a byte"),
        ("[0, 0, 010]", "'010' is not the decimal number"),
        ("[0, 0, 23, ...]", "the list is cut"),
        ("<<0, 0, 23, ...>>", "the list is cut"),
        ("<<0, 300>>", "line 1, column 6: 300 does not fit into 8 bits"),
        ("<<0, 65536::16>>", "65536 does not fit into 16 bits"),
        (r'write(5, "\0\0\0\36"..., 34) = 34', "line 1, column 21: the string is cut"),
        ("<Buffer 00 00 00 17 ... 50 more bytes>", "the list is cut"),
        (netty(bytes(40)).replace("|00000010|", "|00000020|"), "the row should begin at 0x10"),
        (netty(b"one").replace("|00000000|", "|00000010|"), "the row should begin at 0x0"),
        (netty(b"one").replace("|one", "|two"), "the text column does not show these bytes"),
    ],
)
def test_a_literal_that_contradicts_itself_is_refused(text: str, message: str) -> None:
    with pytest.raises(Misuse, match=message):
        read_input(text.encode())


@pytest.mark.parametrize(
    ("text", "data", "note"),
    [
        ("-54, -12, 10, 11", b"\xca\xf4\x0a\x0b", "read as decimal"),
        ("0, 0, 0, 23, 202", b"\0\0\0\x17\xca", "read as decimal"),
        ("10, 20, 30", b"\x10\x20\x30", "read as hexadecimal"),
        ("0012ff64  0000 1700 feca", bytes.fromhex("0012ff6400001700feca"), "is an offset"),
    ],
)
def test_ambiguous_text_has_a_note_of_how_it_was_read(text: str, data: bytes, note: str) -> None:
    parsed = read_input(text.encode())
    assert parsed.data == data
    assert note in (parsed.note or "")


@pytest.mark.parametrize("text", ['{"a": 5}', "[a, b]", '{"data": "x"}', "see [12] and [13]"])
def test_brackets_around_something_else_are_text(text: str) -> None:
    assert read_input(text.encode()).form == "raw"


STRACE = r"""
12:00:01.1 write(7, "\0\0\0\36\0\f\0\0\0\0\0\7\0\4text\0\4text\0\0\0\3\0\4text", 34) = 34
12:00:01.2 read(7, "\0\0\0\6", 4) = 4
12:00:01.2 read(7, "\0\0\0\7\0\0", 6) = 6
"""


def test_the_strings_of_strace_are_dumps_with_sides() -> None:
    parsed = read_input(STRACE.encode())
    assert [len(each) for each in parsed.dumps] == [34, 4, 6]
    assert parsed.dumps[2] == b"\0\0\0\7\0\0"
    assert parsed.sides == (0, 1, 1)
    assert parsed.note == "the text around the strings was skipped"


def test_the_strings_of_a_log_are_dumps_without_sides() -> None:
    parsed = read_input(rb"""
        DEBUG:kafka.conn:Sending b'\x00\x00\x00\x01a'
        DEBUG:kafka.conn:Received b'\x00\x00\x00\x02ab'
    """)
    assert parsed.dumps == (b"\0\0\0\1a", b"\0\0\0\2ab")
    assert parsed.sides == ()


def test_the_strings_of_strace_are_read_only_if_every_line_has_one() -> None:
    assert read_input(STRACE.encode() + b"12:00:01.3 close(7) = 0\n").form == "raw"
    assert read_input(STRACE.encode() + b'12:00:01.3 openat(AT_FDCWD, "/etc/hosts", O_RDONLY) = 3\n').form == "raw"


def test_a_string_that_strace_cuts_is_refused_with_its_line() -> None:
    with pytest.raises(Misuse, match="line 4, column 34: the string is cut"):
        read_input(STRACE.replace(r'\0\0", 6)', r'\0\0"..., 6)').encode())


def test_the_time_of_a_list_of_numbers_is_linear() -> None:
    begin = time.process_time()
    assert read_input(b"[" + b"1," * 20_000 + b"1]").data == b"\1" * 20_001
    assert time.process_time() - begin < 4  # 20 s if each number goes through all of them


@pytest.mark.parametrize(
    "text",
    [
        '"\\' * 20_000,
        'bytes.fromhex("00")' + " " * 40_000 + "x",
        f"|00000000| 00 {' ' * 45} |.{' ' * 15}|\n" + "READ(" * 40_000,
        f"|00000000| 00 {' ' * 45} |.{' ' * 15}|\n" + "[id: a " * 40_000,
        "00" + " " * 60_000 + "00,00",
        "[1" + " " * 40_000 + "]",
        "<<1" + " " * 40_000 + "x",
        "<<" + "1" * 40_000 + ">>",
        r'"\x00"' + " \\\n" * 20_000 + "x",
        "fromhex(" + "'00' " * 20_000,
        'read(7, "\\0\\0") = 2\n' * 20_000,
        "b64decode(" + "'00' " * 20_000,
        "b64decode('00')" + ".a" * 20_000 + " " * 20_000 + "x",
        "[1]" + ".a" * 20_000 + " " * 20_000 + "x",
        "[1]" + ".a()" * 10_000 + "x",
        "f([1" + "]" * 20_000 + " " * 20_000 + ", a",
        "|00000000|" + (" 00" * 8 + " |") * 5_000 + "x",
        '"\\NUL" ' * 20_000,
        "0x00, 'a', " * 20_000 + "x",
        "0uy" + " " * 60_000 + "x",
    ],
    ids=["quotes", "call", "event", "channel", "words", "list", "binary", "number", "joint", "strings", "strace"]
    + ["base64", "suffix of base64", "suffix", "calls", "argument", "panels", "names"]
    + ["lines of an array", "cast"],
)
def test_the_time_of_incomplete_notations_is_linear(text: str) -> None:
    begin = time.process_time()
    read_input(text.encode())
    assert time.process_time() - begin < 1.2


@pytest.mark.filterwarnings("error")
def test_escapes_that_are_no_byte_cause_no_warning() -> None:
    for text in ("b'\\777'", "'\\400\\000'"):
        assert read_input(text.encode()).form == "raw"
    with pytest.raises(Misuse, match="not a character of one byte"):
        read_input(b"[1, '\\q', 'a']")


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("0x00, 0x00, 0x00, 0x05, // size\n'h', 'e', 'l', 'l', 'o',\n0x00, 0x0a, '+'", "hex"),
        ("\t\t0, 0, 0, 5, // size\n\t\t'h', 'e', 'l', 'l', 'o',\n\t\t0x00, 0x0a, '+',", "decimal"),
        ("(byte) 0x00, (byte) 0, (byte) 0, 5, 'h', 'e', 108, 108, 'o', 0, 10, '+'", "decimal"),
        ("0uy;0uy;0uy;5uy;104uy;101uy;108uy;108uy;111uy;\n0uy;10uy;43uy;", "decimal"),
        ("[0x00, 0x00, 0x00, 0b00000101, b'h', 0x65, 0x6c, 0x6c, b'o', 0x00, 0x0a, b'+']", "hex"),
    ],
    ids=["Go", "Go, decimal", "Java", "F#", "Rust"],
)
def test_lines_of_an_array_with_characters_or_types(text: str, form: str) -> None:
    assert read_input(text.encode()) == Input(b"\0\0\0\x05hello\0\n+", form)


@pytest.mark.parametrize("text", ["'tis 12", "00, 'a'", "'a' 'b'", "0b101, 'a'", "10, 12, 'a' ?"])
def test_other_lines_with_apostrophes_are_no_array(text: str) -> None:
    assert read_input(text.encode()).form == "raw"


def test_strings_as_haskell_shows_them() -> None:
    shown = r'"\NUL\NUL\NUL*\SO\&H\SOH\DEL\200\&7\a\"\\payments"'
    for text in (shown, f"sent: {shown}", f"Right {shown}"):
        assert read_input(text.encode()).data == b'\0\0\0*\x0eH\1\x7f\xc87\a"\\payments'
    assert read_input(rb'"\NUL\300"').form == read_input(rb'"\NUL\1234"').form == "raw"
    assert read_input(rb'"\NULL is \QED"').form == "raw"


def test_a_zero_in_text_that_is_declared_as_hex_is_refused() -> None:
    with pytest.raises(Misuse, match="not a hex digit"):
        read_input(b"b'\0'", "hex")
