"""Damage has a name, is really there, occurs wherever a layout allows it, and gives values or errors of ours."""

from __future__ import annotations

from typing import Any

import pytest

import wirekit
from tests.own import own
from tests.strategies.laws import examples, first, survived, together
from wirekit.strategies import KINDS, Mutation, damage, kinds, mutations
from wirekit.wire import If, Struct, Switch, context, this, uint8

KEYS = wirekit.registry.keys()
ROUNDS = 60
A_ROUND = 6


@pytest.mark.parametrize("key", KEYS)
def test_every_kind_occurs_where_the_layout_allows_it(key: str) -> None:
    """Each kind that the layout offers is drawn, and is what it says; the first of each is put to the law."""
    missing = set(kinds(key))

    def run(drawn: tuple[dict[str, Any], Mutation]) -> None:
        context, mutation = drawn
        assert mutation.name in kinds(key)
        if mutation.name in missing:
            missing.remove(mutation.name)
            survived(key, mutation, context)

    for start in range(ROUNDS):
        if not missing:
            break
        few = min(A_ROUND, len(missing))
        examples(together(key, mutations, kinds=sorted(missing)), run, count=few, start=start)
    assert missing == set()


SIZES = ("too small", "too large", "negative", "huge")


@pytest.mark.parametrize(
    ("key", "offered"),
    [
        ("kafka.sasl_token", {*(f"length {size}" for size in SIZES), "truncated", "trailing bytes"}),
        ("jmq4.heartbeat.request", {"trailing bytes"}),
        ("kafka.time_index", {"truncated", "trailing bytes"}),
        ("kafka.message", set(KINDS) - {"constant", "endless varint", *(f"count {size}" for size in SIZES)}),
        (
            "kafka.fetch.request.v2",
            set(KINDS) - {"endless varint", "too deep", "bomb", "checksum", "reserved bit", "unknown symbol"},
        ),
    ],
)
def test_kinds_are_those_that_the_layout_allows(key: str, offered: set[str]) -> None:
    assert set(kinds(key)) == offered
    assert len(kinds(key)) == len(offered)


@pytest.mark.parametrize("context", [{}, {"api": "fetch", "version": 2}, {"api": "list_groups", "version": 0}])
def test_every_kind_of_a_context_occurs_in_it(context: dict[str, Any]) -> None:
    """Without context a response has a body of bytes, and so no symbols."""
    offered = kinds("kafka.response", context=context)
    assert set(offered) <= set(kinds("kafka.response"))
    for kind in offered:
        wrong = first(mutations("kafka.response", context=context, kinds=[kind]), lambda mutation: True)
        assert wrong.name == kind


def test_a_choice_without_a_case_for_the_context_leaves_values_that_do_not_contain_it() -> None:
    with own(Struct("kind" / uint8, "body" / If(this.kind == 1, Switch(context.mode, {1: uint8})))) as key:
        wrong = first(mutations(key, context={"mode": 2}, kinds=["truncated"]), lambda mutation: True)
        assert wrong.original[0] != 1
        assert kinds(key, context={"mode": 2}) == kinds(key)


def test_every_kind_occurs_somewhere() -> None:
    assert {kind for key in KEYS for kind in kinds(key)} == set(KINDS)


def test_a_kind_that_a_schema_does_not_offer_gives_no_mutations() -> None:
    assert mutations("kafka.sasl_token", kinds=["checksum"]).is_empty


def test_a_wrong_checksum_is_all_that_is_wrong() -> None:
    def run(mutation: Mutation) -> None:
        decoded = wirekit.decode(mutation.data, "kafka.produce.request.v2")
        assert decoded.error is None
        assert {check.status for check in decoded.checks if check.path == mutation.path} == {"bad"}
        assert len(mutation.data) == len(mutation.original)

    examples(mutations("kafka.produce.request.v2", kinds=["checksum"]), run, count=20)


def test_damage_inside_compressed_data_is_compressed_again() -> None:
    def inside(mutation: Mutation) -> bool:
        return ".content." in mutation.path

    drawn_mutation = first(mutations("kafka.message", kinds=["checksum"]), inside)
    decoded = wirekit.decode(drawn_mutation.data, "kafka.message")
    statuses = {check.path: check.status for check in decoded.checks}
    assert statuses["crc"] == "ok"
    assert statuses[drawn_mutation.path] == "bad"


def test_a_wrong_count_inside_compressed_data() -> None:
    content = {"messages": [{"body": b"one", "business_id": None, "attributes": None}] * 2}
    code = {"compressed": True, "compression": 2, "batch": True}
    place = {"partition": 0, "system_code": code, "send_time": 0, "body": {"content": content}}
    value = place | dict.fromkeys(("business_id", "attributes", "extension", "app"))
    data = wirekit.encode("jmq4.message_opened", value)
    wrong = [mutation for mutation in damage("jmq4.message_opened", data) if mutation.name.startswith("count")]
    assert {mutation.path for mutation in wrong} == {"body.content.messages"}
    for mutation in wrong:
        decoded = survived("jmq4.message_opened", mutation, {})
        assert [check.status for check in decoded.checks if check.path == "body_crc"] == ["ok"]


def test_all_damage_of_given_bytes() -> None:
    data = wirekit.encode("kafka.message", {"magic": 0, "value": "6162"})
    damaged = list(damage("kafka.message", data))
    assert all(mutation.original == data != mutation.data for mutation in damaged)
    cut = {len(mutation.data) for mutation in damaged if mutation.name == "truncated"}
    assert cut == {0, 4, 5, 6, 10, 14, len(data) - 1}, "at the end of each field, and of lengths in front"
    assert [mutation.path for mutation in damaged if mutation.name == "checksum"] == ["crc"]
    assert [mutation.path for mutation in damaged if mutation.name == "reserved bit"] == ["attributes.reserved"]
    assert {mutation.name for mutation in damaged if mutation.path == "value"} == {
        *(f"length {size}" for size in ("too small", "too large", "negative", "huge"))
    }


def test_kinds_may_come_from_a_generator() -> None:
    names: list[str] = []
    drawn = mutations("kafka.message", kinds=(kind for kind in ["checksum"]))
    examples(drawn, lambda mutation: names.append(mutation.name), count=20)
    assert set(names) == {"checksum"}


def test_an_unknown_kind_is_misuse() -> None:
    with pytest.raises(wirekit.Misuse, match="no kind of damage 'bit rot'"):
        mutations("kafka.message", kinds=["bit rot"])
