"""Writes the pages of the documentation that are made from the code; `make pages` runs it.

``tests/docs/test_pages.py`` compares them with what stands in the repository.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import click
import construct

import wirekit.wire
from wirekit.exports import export
from wirekit.registry import BUILT_IN, Layout, Protocol, register, registry
from wirekit.tables import queries

HERE = Path(__file__).parent

VOCABULARY_HEAD = """# The vocabulary

<!-- Written by `make pages` from the docstrings of wirekit.wire and the examples in docs/pages.py. -->

A layout is a `Struct` of fields, `"name" / node`. Import all names from `wirekit.wire`. A note about a field follows it with `*`:
`"size" / int32 * "bytes after it"`. Sizes, counts and conditions are constants or expressions over `this`, the fields read earlier in
the same struct. `len_(this.name)` is the length of such a field. `this._` is the enclosing struct, and `context` holds the facts that the
caller passes. Combine conditions with `&`, `|` and `~`, each in parentheses: `(this.kind == 1) & ~this.last`.

Each node has its parameters, an example, and the bytes of one value of the example.

## Rules

- **A length is a bound.** No field inside a `Length` or `Sized` can read past its end. If the length exceeds the data, the fields are
  decoded as far as possible, and the error is `Short`. Bytes left over inside the length are a gap, kept in `$trailing`.
- **Derived numbers are computed.** Lengths, counts and checksums are computed from the fields they cover. A wrong number that was parsed
  is kept (`$keep`), so that encoding gives the same bytes; `record.keep("crc")` keeps a number that you set.
- **Damage in compressed data is a verdict**, not an error: the value is the stored bytes (with `streamed=True`, the content before the
  damage), and decoding continues with the next field.
- **Mistakes in a layout** raise `Misuse`: an invalid argument where the node is made, nodes that do not work together in `register`, with
  the path of the field.
- **Time and memory are bounded** ([limits](../limits.md)). Exceeding a bound is a `Limit` error; values decoded before it are kept.
"""

GROUP_HEADS = {
    "Numbers": """
| name | on the wire |
|---|---|
| `int8` … `int64`, `uint8` … `uint64`, each also as `…le` | 1 to 8 bytes, most significant byte first; `le`: least significant byte first |
| `float32`, `float64`, each also as `…le` | IEEE 754 |
| `varint32`, `varint64` | LEB128: 7 bits per byte, least significant group first; the high bit of a byte is set if another byte follows |
| `zigzag32`, `zigzag64` | zigzag numbers as LEB128: 0, 1, 2, 3 stand for 0, -1, 1, -2, as in Kafka |
| `sleb32`, `sleb64` | signed LEB128 (two's complement), as in DWARF and WebAssembly |
| `Varint(32, groups=4)` | at most 4 bytes, as in MQTT |
| `Varint(32, form="vlq")` | 7 bits per byte, most significant group first, as in MIDI files |
| `Varint(64, form="quic")`, `"ber"`, `"lenenc"`, `"compact_size"` | the first byte gives the size, as in QUIC, ASN.1, MySQL and Bitcoin |

Each of these numbers may be a length or a count, or have symbols. Flags, bit fields, checksums, and lengths that follow the fields they
cover need a number of fixed size.
""",
    "Fields that depend on other fields": """
The algorithms of checksums are:

- `crc32`, `crc32c`, `internet`; `adler32`, `fletcher16`, `fletcher32`; `xxh32`, `xxh64`; `md5`, `sha1`, `sha256`;
- the common CRCs of the RevEng catalogue, in lower case: `crc-16/modbus`, `crc-24/openpgp`, `crc-64/xz`;
- algorithms that you add with `wirekit.checksums.register`: any CRC by its parameters, or a function.

```python
>>> from hashlib import sha256
>>> from wirekit.checksums import Checksum, crc, register
>>> from wirekit.crc import Crc
>>> register(crc("crc-16/mine", Crc(16, poly=0x1021, init=0xFFFF, refin=False, refout=False, xorout=0)))
>>> def twice(data):
...     return int.from_bytes(sha256(sha256(data).digest()).digest()[:4], "big")
>>> register(Checksum("sha256-twice", 32, twice, "the first 4 bytes of SHA-256 of SHA-256, as in Bitcoin"))

```

Every engine computes and verifies all algorithms. Columns have compiled code for CRCs of up to 64 bits, Internet checksums, and the sums
of Adler and Fletcher. For any other checksum they call its Python function, which takes about 2 µs.
""",
}
"""{heading: the text below it}."""

GROUPS: dict[str, list[tuple[str, str, Any]]] = {
    "Numbers": [
        ("int8, int16, int24, …, float32, float64", 'Struct("a" / int8, "b" / uint16, "c" / int24, "d" / int32le, "x" / float32)', dict(a=-1, b=1, c=2, d=3, x=1.5)),
        ("Varint", 'Struct(\n    "a" / varint32,\n    "b" / zigzag32,\n    "c" / sleb32,\n    "d" / Varint(64, form="quic"),\n    "e" / String(Varint(32, form="ber")),\n)', dict(a=300, b=-2, c=-2, d=300, e="public")),
        ("Timestamp", 'Struct("sent" / Timestamp(int64))', dict(sent=1_600_000_000_000)),
        ("Duration", 'Struct("timeout" / Duration(int32))', dict(timeout=30_000)),
        ("Flag", 'Struct("more" / Flag(int8))', dict(more=True)),
        ("Symbols", 'Struct(\n    "kind"\n    / Symbols(int8, SymbolTable("kind", {1: ("PING", "are you there?"), 2: "PONG"}))\n)', dict(kind=1)),
        ("Bits, Bit", 'Struct(\n    "flags"\n    / Bits(uint8, "codec" / Bit(3), "last" / Bit(1), "rest" / Bit(4), order="lsb")\n)', dict(flags=dict(codec=5, last=True, rest=0))),
    ],
    "Bytes and text": [
        ("Bytes", 'Struct("key" / Bytes(int16, null=-1), "mac" / Bytes(6))', dict(key=b"k1", mac=bytes(6))),
        ("String", 'Struct("name" / String(int16))', dict(name="café")),
        ("Delimited", 'Struct("line" / Delimited("\\n"))', dict(line="GET")),
        ("Address", 'Struct("source" / Address("ipv4"))', dict(source=bytes([10, 1, 1, 1]))),
        ("Custom", 'Struct("id" / Custom(2, parse=bytes.hex, build=bytes.fromhex))', dict(id="0a14")),
        ("Padding", 'Struct("name" / String(int8), "padding" / Padding(to=4), "size" / int32)', dict(name="a", size=3)),
        ("rest", 'Struct("kind" / int8, "body" / rest())', dict(kind=1, body=b"abc")),
        ("unexplained", 'Struct("kind" / int8, "body" / unexplained())', dict(kind=1, body=b"abc")),
    ],
    "Structure": [
        ("Struct", 'Struct("x" / int16, "y" / int16, name="Point", doc="a place")', dict(x=1, y=2)),
        ("Array", 'Struct("ports" / Array(int16, uint16))', dict(ports=[80, 443])),
        (
            "Repeat",
            'Struct(\n    "count" / Default(int8, len_(this.ports)),\n    "kind" / int8,\n    "ports" / Repeat(this.count, uint16),\n)',
            dict(kind=6, ports=[80, 443]),
        ),
        ("RecordsToEnd", 'Struct("points" / RecordsToEnd(Struct("x" / int16, "y" / int16)))', dict(points=[dict(x=1, y=2), dict(x=3, y=4)])),
        ("Sized", 'Struct("point" / Sized(int32, Struct("x" / int16, "y" / int16)))', dict(point=dict(x=1, y=2))),
        ("Ref", 'Struct("set" / Ref("kafka.message_set"))', dict(set=dict(messages=[], partial=b""))),
        ("Lookahead", 'Struct("next" / Lookahead(uint8), "body" / rest())', dict(next=1, body=b"\1\2")),
    ],
    "Conditions and choices": [
        ("If", 'Struct("version" / int8, "time" / If(this.version >= 1, int32))', dict(version=1, time=7)),
        ("IfThenElse", 'Struct("wide" / Flag(int8), "n" / IfThenElse(this.wide, int32, int16))', dict(wide=False, n=7)),
        ("Switch", 'Struct(\n    "kind" / int8,\n    "body" / Switch(this.kind, {1: int32, 2: String(int8)}, default=unexplained()),\n)', dict(kind=2, body="hi")),
        ("IfNext", 'Struct("magic" / IfNext(b"\\x0e\\x01", uint16), "body" / rest())', dict(magic=0x0E01, body=b"a")),
        ("IfMore", 'Struct("a" / int8, "b" / IfMore(int8))', dict(a=1, b=2)),
        ("OrBytes", 'Struct("point" / OrBytes(Struct("x" / int16, "y" / int16)))', dict(point=dict(x=1, y=2))),
    ],
    "Fields that depend on other fields": [
        ("Length", 'Struct("size" / Length(int32), "text" / rest())', dict(text=b"abc")),
        ("Checked", 'Struct("crc" / Checked(uint32, "crc32c"), "text" / rest())', dict(text=b"abc")),
        ("Const", 'Struct("magic" / Const(uint16, 0xCAFE, hexadecimal=True), "n" / int8)', dict(n=1)),
        ("Default", 'Struct("version" / Default(int8, 4), "n" / int8)', dict(n=1)),
        ("Refused", 'Struct(\n    "kind" / int8,\n    refused=(Refused("kind", this.kind > 2, "brokers close", "Kind.java"),),\n)', dict(kind=3)),
    ],
    "Compressed, encrypted, protobuf": [
        ("Compressed", 'Struct(\n    "codec" / int8,\n    "set" / Compressed(Bytes(int32), this.codec, {1: "snappy"}, Struct("n" / int32)),\n)', dict(codec=1, set=dict(content=dict(n=7)))),
        ("Encrypted", 'Struct("key" / String(int8), "body" / Encrypted(Struct("n" / int32), about=this.key))', dict(key="k", body=b"\x8f\x11")),
        ("Protobuf", 'Struct(\n    "size" / Length(uint32, of="message"),\n    "message" / Protobuf("wirekit.proto.PulsarApi_pb2:MessageIdData"),\n)', dict(message=dict(ledgerId=1, entryId=2))),
        ("SizeOf, CountOf", 'Struct(\n    "size" / Length(uint32, of="about"),\n    "about"\n    / Protobuf(\n        "wirekit.proto.PulsarApi_pb2:SingleMessageMetadata",\n        derived={"payload_size": SizeOf("payload")},\n    ),\n    "payload" / Bytes(this.about.payload_size),\n)', dict(about={}, payload=b"abc")),
    ],
}  # fmt: skip
"""{heading: (nodes, a layout that uses them, a value of it to be built)}."""

COMMANDS_HEAD = """# Commands

<!-- Written by `make pages` from the help of each command. -->

`eval "$(_WIREKIT_COMPLETE=bash_source wirekit)"` enables completion of commands, options and keys in bash; use `zsh_source` and
`fish_source` for the other shells. [JSON](../json.md) describes the output of each command and the exit status.
"""


def vocabulary() -> str:
    """The nodes by group, with what their docstrings say and the bytes of an example."""
    lines = [VOCABULARY_HEAD]
    for heading, nodes in GROUPS.items():
        lines += [f"## {heading}", *GROUP_HEADS.get(heading, "").splitlines(), ""]
        for names, layout, value in nodes:
            lines += _node(names, layout, value)
    return "\n".join(lines).rstrip() + "\n"


def _node(names: str, layout: str, value: Any) -> list[str]:
    first = re.split(r"\W", names)[0]
    kind = getattr(wirekit.wire, first, None) or getattr(wirekit.wire.numbers, first)
    kind = kind if inspect.isclass(kind) or inspect.isfunction(kind) else type(kind)
    parameters = [
        each.replace(annotation=inspect.Parameter.empty) for each in inspect.signature(kind).parameters.values()
    ]
    called = f"{kind.__name__}{inspect.Signature(parameters)}"
    lines = [f"### {names}", "", f"`{called}`", "", *_documented(inspect.getdoc(kind) or ""), ""]
    return [*lines, "```python", layout, "```", "", "```text", *_picture(layout, value), "```", ""]


def _documented(text: str) -> list[str]:
    """A docstring as Markdown: its parameters are a list, its examples stand in code, elsewhere nothing changes."""
    text = re.split(r"^>>> ", text, maxsplit=1, flags=re.M)[0].rstrip()
    text = re.sub(r"``([^`]+)``", r"`\1`", text)
    lines: list[str] = []
    for line in text.splitlines():
        heading = re.fullmatch(r"(Args|Attributes|Raises|Returns):", line)
        parameter = re.fullmatch(r"    (\w[\w, ]*): (.*)", line)
        if heading:
            lines += [f"{'Parameters' if heading[1] == 'Args' else heading[1]}:", ""]
        elif parameter:
            lines.append(f"- **{parameter[1]}**: {parameter[2]}")
        else:
            lines.append(f"  {line.strip()}" if line.startswith("     ") else line)
    return lines


def _picture(layout: str, value: Any) -> list[str]:
    """The bytes of a value beside its fields, as `wirekit decode` shows them."""
    from rich.console import Console

    from wirekit.display.render import show

    names = {
        **vars(wirekit.wire),
        **vars(wirekit.wire.numbers),
        "SymbolTable": wirekit.SymbolTable,
        "construct": construct,
    }
    node = eval(layout, names)
    register(Protocol("example", "An example", {"layout": Layout(node)}))
    try:
        decoded = wirekit.decode(wirekit.encode("example.layout", value), "example.layout")
        text = StringIO()
        show(decoded, Console(file=text, width=110, highlight=False, no_color=True), "tree", complete=True)
    finally:
        registry.unregister("example")
    return [line.rstrip() for line in text.getvalue().strip().splitlines()[1:]]


def commands() -> str:
    """The help of each command."""
    from wirekit.cli import COMMANDS, group

    lines = [COMMANDS_HEAD]
    with click.Context(group, info_name="wirekit", help_option_names=["-h", "--help"]) as outer:
        for name in COMMANDS:
            command = group.get_command(outer, name)
            assert command is not None
            # A command keeps the names of its help option from its first call, which may have been without the group.
            fresh = click.Command(name, params=command.params, help=command.help, epilog=command.epilog)
            context = click.Context(fresh, outer, info_name=name, terminal_width=110, max_content_width=110)
            lines += [f"## wirekit {name}", "", "```text", *fresh.get_help(context).splitlines(), "```", ""]
    return "\n".join(line.rstrip() for line in "\n".join(lines).splitlines()).rstrip() + "\n"


QUERIES = "<!-- Written by `make pages` from src/wirekit/tables/queries, up to the next comment. -->\n"
QUERIES_END = "\n<!-- End of the queries. -->"


def lake() -> str:
    """The page of SQL, whose text around the named queries is written by hand."""
    head, begin, others = (HERE / "lake.md").read_text(encoding="utf-8").partition(QUERIES)
    _, end, tail = others.partition(QUERIES_END)
    lines = []
    for subject, names in queries.SUBJECTS.items():
        lines += ["", f"## {subject}"]
        for name in names:
            about = textwrap.fill(f"**`{name}`**: {' '.join(queries.description(name))}", 139, break_on_hyphens=False)
            statement = [line for line in queries.query(name).splitlines() if not line.startswith("--")]
            lines += ["", about, "", "```sql", *statement, "```"]
    return head + begin + "\n".join(lines) + "\n" + end + tail


def protocol_page(name: str) -> Callable[[], str]:
    """What writes the page of a protocol."""
    return lambda: export([name], "markdown").text


PICTURED = (
    "00000050000000010000000900096b70792d70726f62650001000003e8000000010006742d6e6f6e6500"
    "000001000000000000001f0000000000000000000000136cbc21b70000000000036f6c64000000027631"
)
"""A produce request out of a capture, for the picture in the README."""


def picture() -> str:
    """What `wirekit decode` shows in a terminal, as SVG."""
    from rich.console import Console
    from rich.terminal_theme import MONOKAI

    from wirekit.display.render import show

    screen = Console(
        file=StringIO(), record=True, width=116, force_terminal=True, color_system="truecolor", highlight=False
    )
    screen.print(f"$ wirekit decode --hex {PICTURED[:48]}…", markup=False)
    show(wirekit.decode(bytes.fromhex(PICTURED), "kafka.request"), screen, "tree")
    drawn = screen.export_svg(title="wirekit decode", theme=MONOKAI, unique_id="wirekit")
    drawn = re.sub(r"\s*@font-face \{.*?\n    \}", "", drawn, flags=re.S)  # no font is fetched from anywhere
    return "\n".join(line.rstrip() for line in drawn.splitlines()) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "images/decode.svg": picture,
    "lake.md": lake,
    "reference/vocabulary.md": vocabulary,
    "reference/commands.md": commands,
    **{f"reference/protocols/{name}.md": protocol_page(name) for name in BUILT_IN},
}


def main() -> None:
    """Writes all pages."""
    for path, text in PAGES.items():
        (HERE / path).write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
