"""Damage has a name, is really there, occurs wherever a layout allows it, and gives values or errors of ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import find
from hypothesis import strategies as st

import wirekit
from tests.strategies.laws import examples, survived
from wirekit.compiler import ir
from wirekit.strategies import KINDS, Mutation, contexts, damage, mutations

KEYS = wirekit.registry.keys()
ROUNDS = 60
A_ROUND = 8


def nodes(key: str, known: set[str]) -> Iterator[ir.Node]:
    """All nodes of a schema and of those it refers to, but for what is inside constants or only looked at."""
    known.add(key)
    layout = wirekit.registry[key].layout
    closed = [node.node for _, node in ir.walk(layout) if isinstance(node, ir.Constant | ir.Ahead)]
    hidden = {id(inner) for node in closed for _, inner in ir.walk(node)}
    for _, node in ir.walk(layout):
        if id(node) not in hidden:
            yield node
        if isinstance(node, ir.Reference) and node.key not in known:
            yield from nodes(node.key, known)


def sizes(what: str, number: ir.Number) -> set[str]:
    return {
        f"{what} {size}"
        for size in ("too small", "too large", "negative", "huge")
        if size != "negative" or number.signed
    }


def possible(key: str) -> set[str]:
    """The kinds of damage that some value of a schema offers, by what its layout has."""
    if wirekit.registry[key].layout == ir.Structure("Empty", (), (), ()):
        return {"trailing bytes"}
    found: set[str] = {"trailing bytes", "truncated"}
    known: set[str] = set()
    for node in nodes(key, known):
        match node:
            case ir.Structure(members=members, measures=measures, sums=sums):
                for measure in measures:
                    number = members[measure.at].node
                    found |= sizes("length", number) if isinstance(number, ir.Number) else set()
                found |= {"checksum"} if sums else set()
            case ir.Blob(length=ir.Number() as number) | ir.Bounded(length=number):
                found |= sizes("length", number)
            case ir.Several(count=ir.Number() as number):
                found |= sizes("count", number)
            case ir.Named(table=table, number=ir.Number() as number):
                found |= {"unknown symbol"} if len(table) <= number.high - number.low else set()
            case ir.BitFields(fields=fields):
                found |= {"reserved bit" for field in fields if field.name.startswith("reserved")}
                tables = [(field.table, field.width) for field in fields]
                found |= {"unknown symbol" for table, width in tables if table is not None and len(table) < 1 << width}
            case ir.Constant():
                found.add("constant")
            case ir.Protobuf():
                found.add("endless varint")
    layout = wirekit.registry[key].layout
    refers = any(isinstance(node, ir.Reference) for _, node in ir.walk(layout))
    return found | ({"too deep"} if refers or key == "kafka.message_set" else set())


@pytest.mark.parametrize("key", KEYS)
def test_every_kind_occurs_where_the_layout_allows_it(key: str) -> None:
    seen: set[str] = set()
    expected = possible(key)

    def run(drawn: tuple[dict[str, Any], Mutation]) -> None:
        context, mutation = drawn
        seen.add(mutation.name)
        if mutation.name not in checked:
            checked.add(mutation.name)
            survived(key, mutation, context)

    checked: set[str] = set()
    for start in range(ROUNDS):
        missing = expected - seen
        if not missing:
            break
        kinds = sorted(missing)
        together = contexts(key).flatmap(
            lambda context, kinds=kinds: st.tuples(st.just(context), mutations(key, context=context, kinds=kinds))
        )
        examples(together, run, count=A_ROUND, start=start)
    assert expected - seen == set()
    assert seen <= set(KINDS)


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

    found = find(mutations("kafka.message", kinds=["checksum"]), inside)
    decoded = wirekit.decode(found.data, "kafka.message")
    statuses = {check.path: check.status for check in decoded.checks}
    assert statuses["crc"] == "ok"
    assert statuses[found.path] == "bad"


def test_all_damage_of_given_bytes() -> None:
    data = wirekit.encode("kafka.message", {"magic": 0, "value": "6162"})
    found = list(damage("kafka.message", data))
    assert all(mutation.original == data != mutation.data for mutation in found)
    cut = {len(mutation.data) for mutation in found if mutation.name == "truncated"}
    assert cut == {0, 4, 5, 6, 10, len(data) - 1}
    assert [mutation.path for mutation in found if mutation.name == "checksum"] == ["crc"]
    assert [mutation.path for mutation in found if mutation.name == "reserved bit"] == ["attributes.reserved"]
    assert {mutation.name for mutation in found if mutation.path == "value"} == {
        *(f"length {size}" for size in ("too small", "too large", "negative", "huge"))
    }


def test_an_unknown_kind_is_misuse() -> None:
    with pytest.raises(wirekit.Misuse, match="no mutation 'bit rot'"):
        mutations("kafka.message", kinds=["bit rot"])
