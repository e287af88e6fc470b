"""Values that peers refuse: a bad check on every engine, an error where building is strict, a note in the schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from click.testing import CliRunner

import wirekit
from tests.agreement.law import agree
from tests.own import own
from wirekit.cli import group
from wirekit.values import SymbolTable
from wirekit.wire import (
    Array,
    Bit,
    Bits,
    Node,
    Refused,
    String,
    Struct,
    Symbols,
    int8,
    len_,
    this,
    uint8,
    unnamed,
)
from wirekit.wire.describe import describe

KINDS = SymbolTable("kind", {1: "A", 2: "B", 3: "C", 9: "I", 200: "Z"})
FLAGS = Bits(uint8, "on" / Bit(1), "level" / Bit(7), order="lsb")
ITEM = Struct(
    "kind" / Symbols(uint8, KINDS) * "what it is",
    "flags" / FLAGS,
    "name" / String(int8, null=0),
    "values" / Array(int8, int8),
    refused=(
        Refused("kind", unnamed(this.kind, KINDS), "brokers drop it", "Kind.java"),
        Refused("flags.level", this.flags.on & (this.flags.level > 5), "brokers stop", "Flags.java"),
        Refused("name", ~this.name & (len_(this["values"]) > 0), "brokers close the connection", "Name.java"),
    ),
)


@pytest.fixture(scope="module")
def key() -> Iterator[str]:
    with own(Struct("items" / Array(uint8, ITEM))) as name:
        yield name


def refusals(kind: int, flags: int, name: bytes, values: bytes) -> list[tuple[str, int]]:
    """(field, place of its first byte) of what is refused of an item, as plain Python has it."""
    return [
        *([("kind", 0)] if kind not in KINDS else []),
        *([("flags.level", 1)] if flags & 1 and flags >> 1 > 5 else []),
        *([("name", 2)] if values and not name else []),
    ]


@pytest.mark.parametrize("name", [b"", b"n"])
@pytest.mark.parametrize("values", [b"", b"\1\2"])
def test_every_engine_has_the_verdict_and_strict_building_the_error(key: str, name: bytes, values: bytes) -> None:
    for number in range(256):
        item = bytes([number, 255 - number, len(name)]) + name + bytes([len(values)]) + values
        data = b"\2" + item + item
        expected = [
            (f"items[{index}].{field}", "acceptance", "bad", 1 + index * len(item) + place)
            for index in (0, 1)
            for field, place in refusals(number, 255 - number, name, values)
        ]
        decoded = agree(key, data, {}, columns=False)
        assert [(check.path, check.kind, check.status, check.offset - 1000) for check in decoded.checks] == expected
        assert decoded.error is None
        assert decoded.clean is not bool(expected)
        assert wirekit.encode(key, decoded.value) == data
        if not expected:
            assert wirekit.encode(key, decoded.value, strict=True) == data
            continue
        with pytest.raises(wirekit.Wrong) as caught:
            wirekit.encode(key, decoded.value, strict=True)
        assert (caught.value.path, caught.value.offset) == (expected[0][0], expected[0][3])
        with pytest.raises(wirekit.Wrong, match="brokers"):
            wirekit.decode(data, key, strict=True)


@pytest.mark.parametrize(
    "table", [{0: "A"}, {-3: "A", -2: "B", 4: "C"}, {1: "A", 2: "B", 3: "C"}, {-128: "A", 127: "B"}]
)
def test_a_number_without_a_name(table: dict[int, str]) -> None:
    symbols = SymbolTable("kind", table)
    expression = unnamed(this.kind, symbols)
    assert [n for n in range(-128, 128) if not expression({"kind": n})] == sorted(table)


def test_strict_building_and_strict_reading_refuse_alike() -> None:
    value = {"partition": 0, "send_time": 1, "body": b"body", "business_id": None, "attributes": None, "app": "a"}
    wirekit.encode("joyqueue.message", {**value, "extension": None}, strict=True)
    for wrong in ({"body_crc": 7, "$keep": ["body_crc"]}, {"magic": 7, "$keep": ["magic"]}):
        odd = {**value, "extension": None, **wrong}
        assert wirekit.encode("joyqueue.message", odd)
        with pytest.raises(wirekit.Wrong):
            wirekit.encode("joyqueue.message", odd, strict=True)


def test_a_layout_describes_its_refusals(key: str) -> None:
    notes = {line.name: line.note for line in describe(wirekit.registry[key].node)}
    assert notes["kind"] == "what it is; brokers drop it [Kind.java]"
    assert notes["level"] == "brokers stop [Flags.java]"
    assert notes["name"] == "brokers close the connection [Name.java]"


def test_strict_commands_report_the_refusal() -> None:
    value = '{"subscriptions": [{"topic": "t", "app": "a", "type": 3}]}'
    key = "joyqueue.unsubscribe.request"
    written = CliRunner().invoke(group, ["encode", key, "--output", "hex"], input=value)
    assert written.stdout == "00010174016103\n"
    refused = CliRunner().invoke(group, ["encode", key, "--strict"], input=value)
    assert refused.stdout == ""
    assert "subscriptions[0].type: expected a good acceptance check, found 3 (JoyQueue throws" in refused.stderr
    read = CliRunner().invoke(group, ["decode", key, "--hex", "00010174016103"])
    assert "subscriptions[0].type: acceptance check failed at byte 6: JoyQueue throws" in read.stderr


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (
            lambda: Struct("a" / int8, refused=(Refused("b", this.a == 1, "", ""),)),
            "refused= names 'b', which is not a field",
        ),
        (lambda: Struct("a" / int8, refused=(Refused("a", this.b == 1, "", ""),)), "refused= depends on b"),
        (
            lambda: Struct("a" / int8, "s" / Struct("b" / int8, refused=(Refused("b", this._.a == 1, "", ""),))),
            "s: refused= depends on \\^a",
        ),
    ],
)
def test_a_declaration_that_makes_no_sense(node: Callable[[], Node], text: str) -> None:
    with pytest.raises(wirekit.Misuse, match=text), own(node()):
        pass
