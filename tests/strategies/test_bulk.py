"""Bulk generation gives what the strategies give, faster: seeded, inside the layout, with named damage."""

from __future__ import annotations

import time
from collections import Counter
from itertools import islice
from random import Random

import pytest
from hypothesis import strategies as st

import wirekit
from tests.own import own
from tests.strategies.laws import examples, first
from wirekit.errors import Misuse
from wirekit.strategies import EDITED, bulk_frames, bulk_mutations, bulk_values, edited, frames, kinds, values
from wirekit.strategies.choices import LONG
from wirekit.values import SymbolTable
from wirekit.wire import Bit, Bits, Bytes, Checked, Node, Padding, Struct, Switch, len_, this, uint8, uint32

KEYS = wirekit.registry.keys()
REQUESTS = ["kafka.metadata.request.v0", "kafka.fetch.request.v2", "joyqueue.frame"]


@pytest.mark.parametrize("key", KEYS)
def test_frames_decode(key: str) -> None:
    drawn = list(islice(bulk_frames(key), 20))
    assert all(wirekit.decode(data, key).error is None for data in drawn)
    assert drawn == list(islice(bulk_frames(key), 20))


def test_another_seed_gives_others() -> None:
    assert list(islice(bulk_frames("kafka.request", seed=1), 5)) != list(islice(bulk_frames("kafka.request"), 5))


@pytest.mark.parametrize("key", REQUESTS)
def test_two_thousand_frames_take_a_second_of_the_processor(key: str) -> None:
    frames = bulk_frames(key)
    list(islice(frames, 100))  # generates the code that encodes
    before = time.process_time()
    list(islice(frames, 500))
    assert time.process_time() - before < 500 / 2000 * 4  # four times what is promised of an idle core


@pytest.mark.parametrize("key", ["kafka.message", "pulsar.frame", "joyqueue.frame", "kafka.fetch.request.v2"])
def test_every_kind_of_damage_occurs(key: str) -> None:
    counts = Counter(mutation.name for mutation in islice(bulk_mutations(key), 5000))
    assert set(kinds(key)) <= set(counts)
    assert counts[EDITED] > 1000


def test_some_values_are_longer_than_usual_buffers() -> None:
    sizes = Counter(len(value["token"]) for value in islice(bulk_values("kafka.sasl_token"), 2000))
    assert sizes.keys() >= set(LONG)
    assert sum(sizes[size] for size in LONG) < 100


def test_a_bomb_grows_beyond_a_limit() -> None:
    bomb = next(bulk_mutations("kafka.message", kinds=["bomb"]))
    assert len(bomb.data) < 1 << 16
    assert isinstance(wirekit.decode(bomb.data, "kafka.message").error, wirekit.Limit)


def test_damage_of_given_frames() -> None:
    frame = wirekit.encode("kafka.sasl_token", {"token": b"0123456789"})
    originals = {mutation.original for mutation in islice(bulk_mutations("kafka.sasl_token", originals=[frame]), 2000)}
    assert frame in originals


def test_edits_without_anything_to_edit() -> None:
    assert all(len(edited(b"", Random(seed))) < 1000 for seed in range(100))


@pytest.mark.parametrize("name", ["topic", "topics.topic", "body.topics.topic"])
def test_given_fields_are_in_every_value(name: str) -> None:
    key = "kafka.fetch.request.v2"
    for value in islice(bulk_values(key, fields={name: lambda random: random.choice(["a", "b"])}), 50):
        assert {topic["topic"] for topic in value["body"]["topics"]} <= {"a", "b"}
    topics: set[str] = set()
    drawn = values(key, fields={name: st.sampled_from(["a", "b"])})
    examples(drawn, lambda value: topics.update(topic["topic"] for topic in value["body"]["topics"]), count=30)
    assert topics == {"a", "b"}


def test_a_given_field_leads_to_its_branch() -> None:
    for value in islice(bulk_values("kafka.request", fields={"api_key": 3}), 20):
        assert value["api_key"] == 3
    for value in islice(bulk_values("pulsar.frame", clean=True, fields={"command.type": 18}), 20):
        assert value["command"]["type"] == 18
        assert "ping" in value["command"]


@pytest.mark.parametrize("name", ["nothing", "body.nothing", "size"])
def test_fields_that_cannot_be_given(name: str) -> None:
    with pytest.raises(Misuse, match=r"or encode computes it; `wirekit schemas kafka\.request` lists the fields"):
        bulk_values("kafka.request", fields={name: 1})


@pytest.mark.parametrize(
    ("key", "name", "constant", "reason"),
    [
        ("kafka.sasl_token", "token", 5, r"kafka\.sasl_token: token: expected bytes, found 5"),
        ("kafka.request", "correlation_id", 1 << 40, r"correlation_id: expected an integer in .*, found 1099511627776"),
        ("kafka.metadata.request.v0", "topics", ["x" * 40000], r"topics\[0\]: expected at most 32767 bytes"),
        ("pulsar.frame", "command.type", "NOPE", "has no symbol 'NOPE'"),
    ],
)
def test_a_constant_that_does_not_fit_is_named(key: str, name: str, constant: object, reason: str) -> None:
    for strategy in (values, bulk_values):
        with pytest.raises(
            Misuse, match=rf"no value of {key} was found with the given constants for {name}: .*{reason}"
        ):
            strategy(key, fields={name: constant})


def test_a_function_that_gives_no_value_that_fits_ends_the_iteration() -> None:
    drawn = bulk_values("kafka.sasl_token", fields={"token": lambda random: 5})
    with pytest.raises(Misuse, match=r"kafka\.sasl_token gave no value in 10,000 attempts \(.*expected bytes, found 5"):
        next(drawn)


def test_a_strategy_beside_a_constant_is_not_tried_in_advance() -> None:
    with pytest.raises(Misuse, match="constants for group_id: "):
        values("kafka.heartbeat.request.v0", fields={"group_id": 7, "member_id": st.text()})
    values("kafka.heartbeat.request.v0", fields={"group_id": "g", "member_id": st.integers()})


@pytest.mark.parametrize(
    "node",
    [
        Struct("gap" / Padding(2), "data" / Bytes(len_(this.gap))),
        Struct("digest" / Checked(Bytes(16), "md5", covers="data"), "data" / Bytes(len_(this.digest))),
    ],
)
def test_expressions_read_the_length_of_bytes_that_building_computes(node: Node) -> None:
    with own(node) as key:
        value = next(bulk_values(key))
        assert wirekit.decode(wirekit.encode(key, value), key).clean
        assert len(value["data"]) in (2, 16)


@pytest.mark.parametrize("constant", [6, "SEND"])
@pytest.mark.parametrize("clean", [False, True])
def test_a_symbol_may_be_given_by_its_name(constant: int | str, clean: bool) -> None:
    """The frames of a name are those of its number, with the field that it selects."""
    fields = {"command.type": constant}
    drawn = [
        *islice(bulk_frames("pulsar.frame", seed=1, clean=clean, fields=fields), 20),
        first(frames("pulsar.frame", clean=clean, fields=fields), lambda frame: True),
    ]
    decoded = [wirekit.decode(frame, "pulsar.frame") for frame in drawn]
    assert {each.value.command.type for each in decoded} == {6}
    assert sum("send" in each.value.command for each in decoded) >= (len(drawn) if clean else 10)


def test_an_unknown_name_of_a_symbol_lists_the_names() -> None:
    with pytest.raises(Misuse, match=r"constants for error_code: .* has no symbol 'NOPE'; it has "):
        values("kafka.heartbeat.response.v0", fields={"error_code": "NOPE"})


PACKETS = Struct(
    "head" / Bits(uint8, "type" / Bit(4, SymbolTable("type", {1: "NOTE", 2: "PING"})), "flags" / Bit(4), order="msb"),
    "body" / Switch(this.head.type, {1: Struct("text" / Bytes(uint8)), 2: Struct("time" / uint32)}),
)


@pytest.mark.parametrize("fields", [{"head.type": 2, "flags": 5}, {"type": "PING", "head.flags": 5}])
def test_bit_fields_may_be_given(fields: dict[str, int | str]) -> None:
    """They lead to the branch that they select, as other fields do."""
    with own(PACKETS) as key:
        drawn = [
            *islice(bulk_frames(key, seed=1, fields=fields), 20),
            first(frames(key, fields=fields), lambda frame: True),
        ]
        assert {frame[0] for frame in drawn} == {0x25}
        assert {len(frame) for frame in drawn} == {5}
