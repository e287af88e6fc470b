"""The tree of ``wirekit decode``: every byte stands beside the field that it belongs to, and is there once."""

from __future__ import annotations

import io
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

import wirekit
from tests.own import declared, own
from wirekit.capture.files import open_capture, segments
from wirekit.capture.follow import follow
from wirekit.capture.links import Item, Link
from wirekit.conversation import Frame
from wirekit.display.fields import in_utc
from wirekit.display.render import show
from wirekit.engine import Decoded
from wirekit.registry import Layout, Protocol
from wirekit.wire import (
    Address,
    Array,
    Bytes,
    Compressed,
    IfThenElse,
    Node,
    RecordsToEnd,
    Ref,
    Sized,
    String,
    Struct,
    Switch,
    Timestamp,
    context,
    int8,
    int16,
    int64,
    this,
)

ROW = re.compile(r"^ *(?:#(\d+):)?([0-9a-f]+)  ((?:[0-9a-f]{2} ?)+)(?: |$)")
FIXTURES = Path(__file__).parents[2] / "fixtures"
SEGMENTS = sorted((FIXTURES / "kafka" / "disk").glob("*.log"))
CAPTURES = [
    FIXTURES / "pcap" / name
    for name in ("jmq4-odd.pcap", "kafka-0.9.0.1-2-produce.pcapng", "pulsar-batch.pcap", "pulsar-comp_zlib.pcap")
]
MESSAGE = wirekit.encode(
    "kafka.message_set",
    {"messages": [{"offset": 7, "message": {"magic": 1, "attributes": {"codec": 1}, "timestamp": 1795222751070}}]},
)


def drawn(decoded: Decoded, width: int = 80, *, terminal: bool = False, form: str = "tree", **options: bool) -> str:
    output = io.StringIO()
    show(decoded, Console(file=output, width=width, force_terminal=terminal, highlight=False), form, **options)
    return output.getvalue()


def followed(path: Path) -> Iterator[tuple[Link, Item | None]]:
    with open_capture(path) as capture:
        yield from follow(segments(capture))


def beside(text: str) -> dict[int, dict[int, int]]:
    """{source: {offset: byte}} of all bytes in the tree; a byte that stands there twice is refused."""
    dumped: dict[int, dict[int, int]] = defaultdict(dict)
    for line in text.splitlines():
        match = ROW.match(line[: 10 + 3 * 16 + 1])
        if match:
            source, start = int(match[1] or 0), int(match[2], 16)
            for at, byte in enumerate(bytes.fromhex(match[3]), start):
                assert at not in dumped[source], f"byte {at} of source {source} stands there twice"
                dumped[source][at] = byte
    return dumped


def check_bytes(decoded: Decoded, width: int) -> None:
    shown = beside(drawn(decoded, width, complete=True))[0]
    assert bytes(shown[at] for at in sorted(shown)) == decoded.data[: len(shown)]
    assert len(shown) == (len(decoded.data) if decoded.error is not None else decoded.consumed)


def test_a_delimiter_stands_after_its_text() -> None:
    data = b"#Thu\nversion=0\nbroker.id=1\n"
    decoded = wirekit.decode(data, "kafka.meta_properties")
    check_bytes(decoded, 80)
    lines = drawn(decoded).splitlines()
    assert [bytes.fromhex(match[3]) for line in lines if (match := ROW.match(line[:35]))] == [
        b"#Thu\n", b"version=", b"0\n", b"broker.i", b"d=", b"1\n"
    ]  # fmt: skip


@pytest.mark.parametrize("width", [80, 160])
@pytest.mark.parametrize("path", SEGMENTS[:4], ids=lambda path: path.name)
def test_every_byte_of_a_segment_is_there_once(path: Path, width: int) -> None:
    data = path.read_bytes()
    check_bytes(wirekit.decode(data, "kafka.log_segment"), width)
    check_bytes(wirekit.decode(data[: len(data) // 2], "kafka.log_segment"), width)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_every_byte_of_a_frame_is_there_once_whole_or_cut(path: Path) -> None:
    schemas = set()
    for _, item in followed(path):
        if isinstance(item, Frame) and item.schema not in schemas:
            schemas.add(item.schema)
            check_bytes(item.decoded, 80)
            cut = item.data[: 2 * len(item.data) // 3]
            check_bytes(wirekit.decode(cut, item.schema, context=item.decoded.context), 80)
    assert schemas


@pytest.mark.parametrize(
    ("key", "data", "line"),
    [
        ("kafka.message", "8a698d4d0900ffffffff000000026869", "4  09                       magic = not valid"),
        ("kafka", "d4c3b2a100000000", "0  d4 c3 b2 a1              size = not valid"),
        (
            "kafka.metadata.request.v0",
            "0000000e0000000000000001ffff00000000",
            "4  00 00                    api_key = not valid",
        ),
    ],
)
def test_the_bytes_of_a_refused_field_are_shown(key: str, data: str, line: str) -> None:
    decoded = wirekit.decode(bytes.fromhex(data), key)
    check_bytes(decoded, 80)
    assert line in drawn(decoded)


def test_no_line_is_wider_than_the_terminal_and_continuation_lines_are_indented() -> None:
    text = drawn(wirekit.decode(MESSAGE, "kafka.message_set"), 80)
    assert max(map(len, text.splitlines())) <= 80
    name = next(line for line in text.splitlines() if " crc = " in line).index("crc")
    below = text.splitlines()[[" crc = " in line for line in text.splitlines()].index(True) + 1]
    assert below[:name].strip() == ""
    assert below[name] == " "


def test_bit_fields_stand_at_their_bits() -> None:
    text = drawn(wirekit.decode(MESSAGE, "kafka.message_set"), 120)
    assert re.search(r" 01 +attributes$", text, re.M)
    assert "codec = .... .001  GZIP (1)" in text
    assert "timestamp_type = .... 0...  CreateTime (0)" in text


def test_times_and_addresses_are_written_as_such() -> None:
    text = drawn(wirekit.decode(MESSAGE, "kafka.message_set"), 160)
    assert "timestamp = 2026-11-21 00:59:11.070 UTC (1795222751070)" in text
    packet = bytes.fromhex("450000140000000040fd65eb0a0000010a000002")
    text = drawn(wirekit.decode(packet, "net.ipv4"))
    assert "source = 10.0.0.1" in text
    frame = wirekit.encode("pulsar.message_metadata", {"producer_name": "p", "sequence_id": 1, "publish_time": 1000})
    assert "publish_time = 1970-01-01 00:00:01.000 UTC (1000)" in drawn(
        wirekit.decode(frame, "pulsar.message_metadata"), 160
    )


@pytest.mark.parametrize(
    ("node", "data", "lines"),
    [
        (int16, "0007", ["0 00 07 (value) = 7"]),
        (String(int8), "026162", ["0 02 61 62 (value) = 'ab'"]),
        (
            Array(int8, int8),
            "0107",
            ["0 01 (value) 1 element", "1 07 [0] = 7"],
        ),
        (RecordsToEnd(int8), "07", ["0 07 [0] = 7"]),
        (int16, "00", ["0 00 1 byte not decoded"]),
        (
            Array(int8, int8),
            "0207",
            ["0 02 (value) 1 element", "1 07 [0] = 7"],
        ),
    ],
)
def test_a_layout_that_is_no_struct_is_shown(node: Node, data: str, lines: list[str]) -> None:
    with own(node) as key:
        text = drawn(wirekit.decode(bytes.fromhex(data), key), 120)
        assert [" ".join(line.split()) for line in text.splitlines()[1:] if ROW.match(line)] == lines


def test_a_layout_that_holds_itself_without_a_field_between_is_shown() -> None:
    layout = Layout(Sized(int16, Ref("nested.main"), null=-1))
    with declared(Protocol("nested", "A layout inside itself", {"main": layout})):
        decoded = wirekit.decode(bytes.fromhex("0004 0002 ffff"), "nested.main")
        assert decoded.error is None
        assert "ff ff" in drawn(decoded)


def test_a_number_is_no_time_where_its_choice_selects_another_case() -> None:
    """A table of typed values, as in BSON or AMQP, nested, compressed, or cut before the type is known."""
    cases = {1: Timestamp(int64, unit="s"), 2: int64, 4: Address("ipv4"), 5: Bytes(4)}
    item = Struct("type" / int8, "value" / Switch(this.type, {**cases, 3: Ref("typed.list")}))
    layouts = {
        "list": Array(int8, item),
        "packed": Struct("kind" / int8, "body" / Compressed(Bytes(int8), 1, {1: "zlib"}, Switch(this.kind, cases))),
        "said": Struct("value" / IfThenElse(context.times == 1, Timestamp(int64, unit="s"), int64)),
    }
    seven = (7).to_bytes(8, "big")
    data = b"\5" + b"\1" + seven + b"\2" + seven + b"\3\1\2" + seven + b"\4abcd" + b"\5abcd"
    time, number = "1970-01-01 00:00:07 UTC (7)", "7"
    with declared(Protocol("typed", "A test's own", {name: Layout(node) for name, node in layouts.items()})):
        assert values(data, "typed.list") == [time, number, number, "97.98.99.100", "'abcd'  4 bytes"]
        assert values(data[:-6], "typed.list") == [time, number, number]
        for kind, shown in ((1, time), (2, number)):
            value = {"kind": kind, "body": {"content": 7}}
            packed = wirekit.decode(wirekit.encode("typed.packed", value), "typed.packed")
            assert f"content = {shown}\n" in drawn(packed, 120)
            assert values(seven, "typed.said", times=kind) == [shown]


def values(data: bytes, key: str, **facts: int) -> list[str]:
    text = drawn(wirekit.decode(data, key, context=facts), 120)
    return re.findall(r"value = (.*)$", text, re.M)


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (0, "s", "1970-01-01 00:00:00 UTC"),
        (1_500, "us", "1970-01-01 00:00:00.001500 UTC"),
        (1_000_000_007, "ns", "1970-01-01 00:00:01.000000007 UTC"),
        (-1, "ms", ""),
        (1 << 62, "ms", ""),
    ],
)
def test_a_time_that_no_calendar_has_stays_a_number(value: int, unit: str, shown: str) -> None:
    assert in_utc(value, unit) == shown


def test_long_lists_and_values_are_folded_with_a_count_and_failed_elements_are_not() -> None:
    entries = [{"offset": at, "message": {"magic": 0, "value": b"v" * 900}} for at in range(40)]
    data = bytearray(wirekit.encode("kafka.message_set", {"messages": entries}))
    data[30 * 926 + 12] ^= 1
    decoded = wirekit.decode(bytes(data), "kafka.message_set")
    text = drawn(decoded, 120)
    assert "18 more elements, 16,668 bytes (--all shows them)" in text
    assert "✗ crc32" in text
    assert len(text.splitlines()) < 250
    assert "(--all shows them)" not in drawn(decoded, complete=True)
    dump = drawn(decoded, 120, form="hexdump")
    assert "bytes more of messages[3].message.value (--all shows them)" in dump
    whole = drawn(decoded, form="hexdump", complete=True)
    assert sum(line[:8].strip().isalnum() for line in whole.splitlines()) >= len(data) // 16


def test_failed_checks_are_marked_on_the_bytes_themselves() -> None:
    damaged = bytearray(MESSAGE)
    damaged[12] ^= 1
    decoded = wirekit.decode(bytes(damaged), "kafka.message_set")
    for form in ("tree", "hexdump"):
        good = drawn(wirekit.decode(MESSAGE, "kafka.message_set"), terminal=True, form=form)
        bad = drawn(decoded, terminal=True, form=form)
        reverse = "\x1b[7;31m"
        assert reverse in bad
        assert reverse not in good


def test_payloads_that_are_json_are_indented_on_request() -> None:
    payload = json.dumps({"a": [1, {"b": "ü"}]}).encode()
    decoded = wirekit.decode(wirekit.encode("kafka.message", {"magic": 0, "value": payload}), "kafka.message")
    assert '"b": "ü"' in drawn(decoded, indent_json=True)
    assert drawn(decoded, indent_json=True).count("\n") > drawn(decoded).count("\n") + 5
    broken = wirekit.encode("kafka.message", {"magic": 0, "value": payload[:-1]})
    assert drawn(wirekit.decode(broken, "kafka.message"), indent_json=True) == drawn(
        wirekit.decode(broken, "kafka.message")
    )


def test_bytes_left_over_in_a_length_are_shown_as_bytes() -> None:
    entry = {"offset": 7, "message": {"magic": 0, "key": None, "value": None}}
    message = wirekit.encode("kafka.message_set", {"messages": [entry]})
    longer = message[:8] + (int.from_bytes(message[8:12]) + 4).to_bytes(4) + message[12:] + b"\0\xff" + b"zz"
    assert "$trailing = message_size: 00ff7a7a" in drawn(wirekit.decode(longer, "kafka.message_set"))
