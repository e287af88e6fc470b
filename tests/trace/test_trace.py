"""Where fields lie: spans of single layouts by name, and the choice of the engine that makes them."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

import wirekit
from tests.engines import same
from wirekit.display.render import show
from wirekit.registry import Layout, Protocol, registry
from wirekit.wire import (
    Array,
    Bit,
    Bits,
    Bytes,
    Compressed,
    Delimited,
    If,
    IfMore,
    IfNext,
    IfThenElse,
    Length,
    Lookahead,
    Padding,
    RecordsToEnd,
    Repeat,
    Sized,
    String,
    Struct,
    int8,
    int16,
    this,
    uint8,
    uint16,
    unexplained,
)

Layouter = Callable[[Any], str]
COUNTER = itertools.count()


@pytest.fixture
def key() -> Layouter:
    """Registers a node under a key of its own."""
    return lambda node: registry.register(Protocol(f"trace_test_{next(COUNTER)}", "a test", {"x": Layout(node)})).key(
        "x"
    )


def spans(key: str, data: bytes) -> list[str]:
    """All spans as both engines give them: ``path kind start-end``."""
    same(key, data, {})
    decoded = wirekit.decode(data, key)
    return [f"{span.path} {span.kind} {'#' * span.source}{span.start}-{span.end}" for span in decoded.spans]


CASES: dict[str, tuple[Any, str, list[str]]] = {
    "text": (String(int16), "0002 6162", ["$length length 0-2", " text 2-4"]),
    "null": (String(int16, null=-1), "ffff", ["$length length 0-2", " absent 2-2"]),
    "empty like null": (Bytes(int8, null=0), "00", ["$length length 0-1", " absent 1-1"]),
    "text of two bytes a letter": (String(int8), "02 c3a9", ["$length length 0-1", " text 1-3"]),
    "numbers": (
        Array(int8, int16),
        "02 0001 0002",
        ["$count count 0-1", "[0] number 1-3", "[1] number 3-5", " list 1-5"],
    ),
    "no list": (Array(int8, int16, null=-1), "ff", ["$count count 0-1", " absent 1-1"]),
    "list in a length": (
        Sized(int8, Array(int8, Bytes(1))),
        "02 01 61",
        ["$length length 0-1", "$count count 1-2", "[0] bytes 2-3", " list 2-3"],
    ),
    "null length": (Struct("a" / Sized(int8, int8, null=-1)), "ff", ["a.$length length 0-1", "a absent 1-1"]),
    "null inside what is left": (
        Struct("a" / IfMore(String(int8, null=-1))),
        "ff",
        ["a.$length length 0-1", "a absent 1-1"],
    ),
    "nothing left": (Struct("a" / IfMore(int8)), "", ["a absent 0-0"]),
    "left in a length": (
        Struct("n" / Length(uint8, of="a"), "a" / Struct("x" / int8, "y" / IfMore(int8)), "b" / int8),
        "01 61 62",
        ["n number 0-1", "a.x number 1-2", "a.y absent 2-2", "a record 1-2", "b number 2-3"],
    ),
    "by the next bytes": (
        Struct("a" / IfNext(b"a", Bytes(2)), "b" / IfNext(b"a", Bytes(2)), "c" / int8),
        "6162 63",
        ["a bytes 0-2", "b absent 2-2", "c number 2-3"],
    ),
    "by a number": (
        Struct("k" / int8, "a" / If(this.k > 0, int8), "b" / IfThenElse(this.k > 0, int8, int16)),
        "01 02 03",
        ["k number 0-1", "a number 1-2", "b number 2-3"],
    ),
    "up to a delimiter": (
        Struct("k" / Delimited("="), "v" / Delimited("\n", number=True)),
        "6162 3d 2d3132 0a",
        ["k text 0-2", "k.$delimiter delimiter 2-3", "v number 3-6", "v.$delimiter delimiter 6-7"],
    ),
    "what is looked at": (
        Struct("a" / Lookahead(int8, 1), "b" / int16),
        "0102",
        ["a ahead 0-0", "b number 0-2"],
    ),
    "filler": (
        Struct("a" / Bytes(int8), "f" / Padding(2), "b" / int8),
        "01 61 0000 05",
        ["a.$length length 0-1", "a bytes 1-2", "f filler 2-4", "b number 4-5"],
    ),
    "records of records": (
        RecordsToEnd(Struct("n" / int8, "l" / Repeat(this.n, Struct("x" / int8)))),
        "01 07 00",
        [
            "[0].n number 0-1",
            "[0].l[0].x number 1-2",
            "[0].l[0] record 1-2",
            "[0].l list 1-2",
            "[0] record 0-2",
            "[1].n number 2-3",
            "[1].l list 3-3",
            "[1] record 2-3",
            " list 0-3",
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_spans(key: Layouter, name: str) -> None:
    node, data, expected = CASES[name]
    texts = spans(key(node), bytes.fromhex(data))
    if isinstance(node, Struct):
        assert texts.pop() == f" record 0-{len(bytes.fromhex(data))}"
    assert texts == expected


def test_bits_tile_their_number(key: Layouter) -> None:
    node = Struct("b" / Bits(uint16, "high" / Bit(3), "low" / Bit(13), order="msb"))
    by_path = {span.path: span for span in wirekit.decode(b"\0\0", key(node)).spans}
    assert (by_path["b.high"].bit_start, by_path["b.high"].bit_length) == (13, 3)
    assert (by_path["b.low"].bit_start, by_path["b.low"].bit_length) == (0, 13)
    assert by_path["b"].kind == "bits"


NESTED = Struct(
    "codec" / int8, "data" / Compressed(Bytes(int8), this.codec, {1: "gzip"}, Struct("a" / int8, "b" / int8))
)


def test_opened_data_is_a_source_of_its_own(key: Layouter) -> None:
    name = key(NESTED)
    data = wirekit.encode(name, {"codec": 1, "data": {"content": {"a": 1, "b": 2}}})
    size = len(data)
    assert spans(name, data) == [
        "codec number 0-1",
        "data.$length length 1-2",
        f"data.compressed bytes 2-{size}",
        "data.content.a number #0-1",
        "data.content.b number #1-2",
        "data.content record #0-2",
        f"data record 2-{size}",
        f" record 0-{size}",
    ]


def test_data_that_does_not_decompress_is_a_gap(key: Layouter) -> None:
    assert spans(key(NESTED), b"\1\2ab") == [
        "codec number 0-1",
        "data.$length length 1-2",
        "data gap 2-4",
        " record 0-4",
    ]


@pytest.mark.parametrize(
    ("node", "data", "gap"),
    [
        (Struct("n" / Length(int8), "a" / int8), "02 01 02", "n.$trailing gap 2-3"),
        (Struct("a" / Sized(int8, int8)), "02 01 02", "a.$trailing gap 2-3"),
        (Struct("a" / int8, "rest" / unexplained()), "01 02", "rest gap 1-2"),
    ],
)
def test_gaps_are_spans(key: Layouter, node: Any, data: str, gap: str) -> None:
    assert gap in spans(key(node), bytes.fromhex(data))


def test_fields_decoded_before_an_error_keep_their_spans(key: Layouter) -> None:
    node = Struct("a" / int8, "l" / Array(int8, Struct("x" / int8, "t" / String(int8))))
    assert spans(key(node), bytes.fromhex("07 02 01 01 61 02 05 61")) == [
        "a number 0-1",
        "l.$count count 1-2",
        "l[0].x number 2-3",
        "l[0].t.$length length 3-4",
        "l[0].t text 4-5",
        "l[0] record 2-5",
        "l[1].x number 5-6",
        "l[1].t.$length length 6-7",
        "l[1] record 5-7",
        "l list 2-7",
        " record 0-7",
    ]


def test_protobuf() -> None:
    assert spans("pulsar.command", bytes.fromhex("0802 1203 0a01 61")) == [
        "type.$tag tag 0-1",
        "type number 1-2",
        "connect.$tag tag 2-3",
        "connect.$length length 3-4",
        "connect.client_version.$tag tag 4-5",
        "connect.client_version.$length length 5-6",
        "connect.client_version text 6-7",
        "connect record 4-7",
        " record 0-7",
    ]


def test_generated_code_gives_the_spans_of_the_trace() -> None:
    data = wirekit.encode("kafka.heartbeat.response.v0", {"correlation_id": 7, "body": {"error_code": 0}})
    decoded = wirekit.decode(data, "kafka.heartbeat.response.v0", engine="rows")
    assert decoded.spans == wirekit.decode(data, "kafka.heartbeat.response.v0", engine="trace").spans
    assert decoded.engine == "rows"


def test_spans_are_those_of_the_bytes_when_the_value_was_changed() -> None:
    data = wirekit.encode("kafka.message", {"magic": 1, "timestamp": 5, "value": "6869"})
    decoded = wirekit.decode(data, "kafka.message", engine="rows")
    decoded.value.value = b"something else"
    assert decoded.spans == wirekit.decode(data, "kafka.message", engine="reference").spans


@pytest.mark.parametrize(
    ("data", "unexplained"),
    [("0000000900000005 0812 920100", 0), ("0000000900000005 0812", 0), ("0000000900000005 0812 92", 1)],
    ids=["whole", "cut between fields", "cut inside a tag"],
)
def test_the_hexdump_marks_the_bytes_that_nothing_explains(data: str, unexplained: int) -> None:
    output = io.StringIO()
    console = Console(width=100, force_terminal=True, color_system="standard", file=output)
    show(wirekit.decode(bytes.fromhex(data), "pulsar.frame"), console, "hexdump")
    assert output.getvalue().count("\x1b[7;31m") == 2 * unexplained
