"""A layout that somebody registers gets values, frames and damage like those that come with wirekit."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

import wirekit
from tests.own import declared, own
from tests.strategies.laws import examples, first, sound, survived, together
from wirekit.registry import Layout, Protocol
from wirekit.strategies import (
    EDITED,
    KINDS,
    Mutation,
    branches,
    bulk_mutations,
    bulk_values,
    damage,
    kinds,
    mutations,
    values,
)
from wirekit.values import SymbolTable
from wirekit.wire import (
    Array,
    Bit,
    Bits,
    Bytes,
    Checked,
    Compressed,
    Const,
    Default,
    If,
    IfMore,
    IfNext,
    IfThenElse,
    Length,
    Lookahead,
    Node,
    OrBytes,
    RecordsToEnd,
    Ref,
    Repeat,
    Sized,
    String,
    Struct,
    Switch,
    Symbols,
    Varint,
    context,
    float64,
    int8,
    int16,
    int32,
    int40,
    len_,
    rest,
    this,
    uint8,
    uint16,
    uint32,
    unexplained,
)

KIND = SymbolTable("kind", {1: "TEXT", 2: "NUMBERS", 3: "PACKED"})
FLAGS = Bits(uint8, "wide" / Bit(1), "kind" / Bit(3, KIND), "reserved" / Bit(4), order="lsb")

ORDER = Struct(
    "customer" / String(int16),
    "lines" / Array(int16, Struct("article" / String(int8, null=-1), "amounts" / Array(int8, int32, null=-1))),
    "gift" / If(this._.header.version >= 2, Struct("note" / String(int16), "wrapped" / uint8)),
)
NESTED = Struct(
    "size" / Length(int32, frame=True, minimum=4),
    "header" / Struct("magic" / Const(uint16, 0xBEEF), "version" / uint8, "flags" / FLAGS),
    "crc" / Checked(uint32, "crc32c"),
    "id" / IfThenElse(this.header.flags.wide, int32, int16),
    "body"
    / Switch(
        this.header.flags.kind,
        {1: Sized(int32, ORDER, null=-1), 2: RecordsToEnd(float64)},
        default=unexplained(),
    ),
)
COUNTED = Struct(
    "n" / uint8,
    "half" / Bytes(this.n // 2),
    "twice" / Repeat(this.n * 2, int16),
    "pair" / Switch((this.n & 1, context.mode), {(0, 1): int8, (1, 1): String(int8)}, default=Bytes(2)),
    "names" / Default(int8, len_(this.all)),
    "all" / RecordsToEnd(String(int8), count=this.names),
)
TREE = Struct("name" / String(int8), "children" / Array(int8, Ref("own.tree")))
GRID = Repeat(8, Array(int8, Ref("own.grid")))
SEEN = Struct(
    "kind" / Lookahead(uint8, at=2),
    "mark" / IfNext(b"\xca\xfe", Struct("magic" / Const(uint16, 0xCAFE))),
    "body" / Switch(this.kind, {7: Struct("a" / uint8, "b" / uint16)}, default=Struct("x" / uint16, "y" / uint8)),
    "more" / IfMore(OrBytes(int32)),
)
PACKED = Struct(
    "codec" / Symbols(int8, SymbolTable("codec", {0: "NONE", 1: "GZIP", 2: "SNAPPY"})),
    "plain_size" / uint32,
    "data" / Compressed(Bytes(int32), this.codec, {1: "gzip", 2: "snappy"}, Struct("rows" / RecordsToEnd(int16))),
)
CUT = Struct("records" / RecordsToEnd(Sized(int16, Struct("x" / int32)), short_tail="stop"), "tail" / rest())
ROUNDS = 20
LAYOUTS = {"nested": NESTED, "counted": COUNTED, "tree": TREE, "seen": SEEN, "packed": PACKED, "cut": CUT}


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    layouts = {name: Layout(node) for name, node in {**LAYOUTS, "grid": GRID}.items()}
    with declared(Protocol("own", "Of one's own", layouts)):
        yield


@pytest.mark.parametrize("name", LAYOUTS)
def test_values_come_out_again_and_reach_every_branch(name: str) -> None:
    """The first round goes anywhere, each further one for what was not reached yet."""
    key = f"own.{name}"
    every, reached = set(branches(key)), set[str]()
    for start in range(ROUNDS):
        missing = every - reached if start else set()
        if start and not missing:
            break
        drawn = together(key, values, aim=missing, reached=reached)
        examples(drawn, lambda drawn: sound(key, drawn[1], drawn[0]), count=7 if start else 250, start=start)
    assert reached == every


@pytest.mark.parametrize("name", LAYOUTS)
def test_damage_gives_a_value_or_an_error(name: str) -> None:
    key = f"own.{name}"
    kinds_drawn: set[str] = set()

    def run(drawn: tuple[dict[str, Any], Mutation]) -> None:
        kinds_drawn.add(drawn[1].name)
        survived(key, drawn[1], drawn[0])

    for kind in kinds(key):
        examples(together(key, mutations, kinds=[kind]), run, count=12)
    assert kinds_drawn == set(kinds(key))
    assert kinds_drawn <= set(KINDS)
    if name == "nested":
        assert kinds_drawn == set(KINDS) - {"too deep", "bomb", "endless varint"}


@pytest.mark.parametrize("key", ["own.tree", "own.grid"])
def test_a_value_nested_too_deep_is_refused(key: str) -> None:
    drawn_mutation = first(mutations(key, kinds=["too deep"]), lambda mutation: True)
    error = wirekit.decode(drawn_mutation.data, key).error
    assert isinstance(error, wirekit.Limit)
    assert error.limit == "depth"


def gift(body: Any) -> Any:
    return body["gift"] if isinstance(body, dict) else None


def test_a_value_is_aimed_at_a_branch() -> None:
    (aim,) = [name for name in branches("own.nested") if name == "body.1.node.gift=present"]
    drawn_value = first(values("own.nested", aim=[aim]), lambda value: gift(value["body"]))
    assert drawn_value["header"]["version"] >= 2
    assert drawn_value["header"]["flags"]["kind"] == 1


def test_a_value_can_be_edited_and_its_damage_listed() -> None:
    value = first(values("own.nested", clean=True), lambda value: value["header"]["flags"]["kind"] == 2)
    value["body"] = [1.5]
    data = wirekit.encode("own.nested", value)
    assert wirekit.decode(data, "own.nested").value.body == [1.5]
    (wrong,) = [mutation for mutation in damage("own.nested", data) if mutation.name == "checksum"]
    assert not wirekit.decode(wrong.data, "own.nested").clean


@pytest.mark.parametrize("unsigned", [Varint(32), Symbols(Varint(32), SymbolTable("level", {1: "LOW"}))])
def test_a_number_that_a_condition_asks_for_fits_its_alternative(unsigned: Node) -> None:
    number = IfThenElse(this.kind == 1, unsigned, int40)
    layout = Struct("kind" / uint8, "number" / number, "then" / If(this.number % 3 == 1, uint8))
    with own(layout) as key:

        def check(value: Any) -> None:
            assert wirekit.decode(key, wirekit.encode(key, value)).value == value

        examples(values(key), check, count=200)


def test_every_case_is_drawn_beside_cases_that_are_plain_numbers() -> None:
    cases = {1: int8, 2: String(int8), 3: int16, 4: Bytes(2)}
    with own(Struct("tag" / uint8, "body" / Switch(this.tag, cases, default=rest()))) as key:
        tags = [value["tag"] for value in islice(bulk_values(key), 500)]
        assert min(map(tags.count, cases)) > 30
        assert len(set(tags)) > 10
        tags_drawn: set[int] = set()
        examples(values(key), lambda value: tags_drawn.add(value["tag"]), count=100)
        assert {*cases} < tags_drawn


def test_a_layout_that_contains_itself_beside_a_plain_number_is_damaged_in_all_ways() -> None:
    key = "boxes.box"
    node = Struct("tag" / uint8, "body" / Switch(this.tag, {1: int8, 2: Array(uint8, Ref(key))}))
    with declared(Protocol("boxes", "Boxes", {"box": Layout(node)})):
        drawn = {mutation.name for mutation in islice(bulk_mutations(key), 2000)}
        assert drawn == {*kinds(key), EDITED}
        assert "too deep" in drawn


@pytest.mark.parametrize(("depth", "reached"), [(60, True), (1000, False)])
def test_a_value_is_nested_beyond_a_great_limit_unless_pythons_stack_ends_before(depth: int, reached: bool) -> None:
    """As in BSON: elements with a type, until a zero; 60 levels of them have more fields than other values."""
    key = "nests.document"
    element = Struct("type" / uint8, "name" / String(uint8), "value" / Switch(this.type, {1: int8, 3: Ref(key)}))
    node = Struct("size" / Length(int32), "elements" / RecordsToEnd(element, until=b"\0"), "end" / Const(uint8, 0))
    with declared(Protocol("nests", "Nests", {"document": Layout(node)}, limits=wirekit.Limits(depth=depth))):
        assert ("too deep" in kinds(key)) is reached
        drawn = [mutation.data for mutation in islice(bulk_mutations(key), 2000) if mutation.name == "too deep"]
        assert bool(drawn) is reached
        for data in drawn:
            error = wirekit.decode(data, key).error
            assert isinstance(error, wirekit.Limit)
            assert error.limit == "depth"


@pytest.mark.parametrize(
    ("field", "labels"),
    [
        (Bytes(4), [b"IHDR", b"IEND"]),
        (String(4), ["IHDR", "IEND"]),
        (String(4, encoding="latin-1"), ["IHDR", "é\xa0\xa0\xa0"]),
        (String(8, encoding="utf-16-le"), ["IHDR", "IEND"]),
        (String(int8, encoding="ascii", null=-1), ["fmt ", "data", ""]),
        (Bytes(int8), [b"fmt ", b""]),
    ],
)
def test_text_and_bytes_lead_to_the_cases_that_they_select(field: Node, labels: list[Any]) -> None:
    cases = {label: Const(uint8, number) for number, label in enumerate(labels)}
    with own(Struct("label" / field, "body" / Switch(this.label, cases, default=String(int8)))) as key:
        drawn = list(islice(bulk_values(key), 300))
        assert all(sum(value["label"] == label for value in drawn) > 10 for label in labels)
        assert sum(value["label"] not in labels for value in drawn) > 10
        examples(values(key), lambda value: sound(key, value, {}), count=30)
