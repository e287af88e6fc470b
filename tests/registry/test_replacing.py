"""A key that is registered again stands for the new layout, in whatever way it is used."""

from __future__ import annotations

from typing import Any

import pytest

import wirekit
from wirekit.compiler import building, columns
from wirekit.compiler.engines import DECODERS, ENCODERS
from wirekit.compiler.heading import heading
from wirekit.registry import Layout, Protocol, registry
from wirekit.strategies.layout import layout_of
from wirekit.tables.plans import Plan, plan_of
from wirekit.tables.refusals import Refusals, refusals_of
from wirekit.wire import Bytes, Length, Node, Refused, Struct, this, uint8, uint16

KEY = "replaced.it"
NARROW, WIDE = Struct("n" / uint8, "left" / uint8), Struct("left" / uint8, "n" / uint16)
VALUES: list[tuple[Node, bytes, dict[str, Any]]] = [
    (NARROW, bytes.fromhex("0102"), {"n": 1, "left": 2}),
    (WIDE, bytes.fromhex("030004"), {"left": 3, "n": 4}),
    (NARROW, bytes.fromhex("0506"), {"n": 5, "left": 6}),
]


def each_layout() -> Any:
    """Registers one layout after the other under the same key."""
    for node, data, value in VALUES:
        registry.register(Protocol("replaced", "a test", {"it": Layout(node)}))
        try:
            yield data, value
        finally:
            registry.unregister("replaced")


@pytest.mark.parametrize("engine", DECODERS)
def test_decoding(engine: str) -> None:
    for data, value in each_layout():
        decoded = wirekit.decode(data, KEY, engine=engine)
        assert (decoded.value, decoded.engine, decoded.consumed) == (value, engine, len(data))
        assert [span.path for span in decoded.spans][:2] == list(value)


@pytest.mark.parametrize("engine", ENCODERS)
def test_encoding(engine: str) -> None:
    for data, value in each_layout():
        assert wirekit.encode(KEY, value, engine=engine) == data
        assert wirekit.encode(KEY, wirekit.from_json(KEY, value, engine=engine), engine=engine) == data


def test_columns() -> None:
    for data, value in each_layout():
        batch = wirekit.columns(KEY, data * 3)
        assert batch.select(list(value)).to_pylist() == [value] * 3
        assert columns.columns(KEY, data * 3, fields=["n"]).column_names == ["n"]
        assert building.build_columns(KEY, batch) == data * 3


def test_strategies() -> None:
    for _ in each_layout():
        assert layout_of(KEY).root is registry[KEY].layout


def test_plans_of_tables() -> None:
    plans: list[Plan] = []
    for _ in each_layout():
        plan = plan_of(KEY, "")
        assert plan is plan_of(KEY, "")
        assert plan not in plans
        plans.append(plan)


def test_refused_values() -> None:
    refused: list[Refusals] = []
    for least in (1, 2):
        layout = Struct("n" / uint8, refused=(Refused("n", this.n < least, "too small", "a test"),))
        registry.register(Protocol("replaced", "a test", {"it": Layout(layout)}))
        try:
            refused.append(refusals_of(KEY))
        finally:
            registry.unregister("replaced")
    assert refused[0] != refused[1]


def test_headings_of_frames() -> None:
    for number in (uint8, uint16):
        frame = Struct("size" / Length(number, of="data"), "data" / Bytes(2))
        registry.register(Protocol("replaced", "a test", {"it": Layout(frame)}))
        try:
            assert heading(KEY, 9).size == number.length
        finally:
            registry.unregister("replaced")
