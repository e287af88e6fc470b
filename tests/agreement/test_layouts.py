"""All engines agree on layouts drawn at random; ``make agreement-layouts`` does it with many."""

from __future__ import annotations

import signal

import pytest

import wirekit
import wirekit.wire
from tests.agreement.drawing import Drawing
from tests.agreement.layouts import Drawn, Task, _stops, drawn, registered, show, work
from tests.agreement.run import late
from wirekit.compiler import ir
from wirekit.registry import registry

SLOW = {1, 7, 9, 18, 19, 23, 28, 43, 52}
"""Layouts that hardly a value fits: finding frames takes long."""
SEEDS = [seed for seed in range(59) if seed not in SLOW]
NAMES = [name for name in vars(wirekit.wire) if not name.startswith("_")]
COLUMNS = (2011, 2014)
"""Layouts that give columns, with kernels that compile in a few seconds."""


@pytest.fixture(autouse=True)
def alarm() -> None:
    """What takes too long fails, as in the long run."""
    signal.signal(signal.SIGALRM, late)


@pytest.mark.parametrize("seed", SEEDS)
def test_engines_agree_on_a_layout_drawn_at_random(seed: int) -> None:
    tally = work(Task(seed, count=20, sound=5, named=3))
    assert not tally.findings, str(drawn(seed))
    assert tally.counts["inputs"] == 20 or tally.refused


@pytest.mark.parametrize("seed", COLUMNS)
def test_columns_agree_on_a_layout_drawn_at_random(seed: int) -> None:
    tally = work(Task(seed, count=20, sound=5, named=3, columns=True))
    assert not tally.findings, str(drawn(seed))
    assert tally.counts["columns"]


def test_a_seed_draws_the_same_layout() -> None:
    assert drawn(7) == drawn(7) != drawn(8)


def test_every_node_is_drawn() -> None:
    nodes: set[str] = set()
    for seed in range(400):
        text = " ".join(drawn(seed).texts.values())
        nodes |= {name for name in NAMES if f"{name}(" in text}
    kinds = {name for name in NAMES if isinstance(getattr(wirekit.wire, name), type)}
    assert kinds - nodes == {"Address", "Encrypted", "Limits", "Node", "Refused"}


def test_nothing_is_left_in_the_registry() -> None:
    before = registry.keys()
    with registered(drawn(3)) as key:
        assert key in registry
    assert registry.keys() == before


def test_a_finding_names_its_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wirekit.engine, "by_rows", lambda *arguments: None)
    tally = work(Task(3, count=5))
    (finding, *_) = tally.findings.values()
    assert "agree('drawn3.main', bytes.fromhex('" in str(finding)


def test_a_list_that_stops_early_may_be_in_a_layout_that_is_referred_to() -> None:
    texts = {"main": "Struct('a' / Ref('drawn1.other'))", "other": "RecordsToEnd(uint16, short_tail='stop')"}
    with registered(Drawn(1, texts)) as key:
        assert _stops(key)
        assert not _stops("kafka.sasl_token")


def test_a_layout_is_shown_as_it_is_declared() -> None:
    layout = Drawn(3, Drawing(3, "drawn3").layouts())
    assert show(3).startswith(f"# seed 3\nmain = {layout.texts['main']}\n")
    with registered(layout) as key:
        dumped = ir.dump(registry[key].layout)
    assert dumped in show(3)
