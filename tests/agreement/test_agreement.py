"""All engines agree on generated, damaged and repaired bytes of every schema; ``make agreement`` does it for long."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

import wirekit
from tests.agreement.damage import damaged, damaged_inside, repaired
from tests.agreement.generated_inputs import inputs
from tests.agreement.law import LISTS, agree, compiled, generated
from tests.agreement.run import Task, tasks, work
from wirekit.compiler import rows

KEYS = wirekit.registry.keys()
COUNT, SOUND, NAMED = 60, 4, 3
"""Generated frames and named damage, which tests/strategies put to the same law, are what the others are made from."""


@pytest.mark.parametrize("key", KEYS)
def test_engines_agree(key: str) -> None:
    counts: Counter[str] = Counter()
    for context, data in inputs(key, 0, COUNT, sound=SOUND, named=NAMED):
        agree(key, data, context, columns=key in compiled(), counts=counts)
    assert counts["inputs"] == COUNT
    assert counts["rows"] or not generated(key), "generated code decoded nothing"
    assert counts["columns"] or key not in compiled()


def test_columns_of_all_ways_to_hold_records_are_compared() -> None:
    keys = {"kafka.message_set", "kafka.time_index", "joyqueue.batch", "jmq4.batch", "pulsar.frame", *LISTS}
    assert keys <= compiled()


def test_a_wrong_engine_fails_the_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    data = wirekit.encode("kafka.sasl_token", {"token": b"ab"})
    agree("kafka.sasl_token", data, {}, columns=False)
    right = rows.unit("kafka.sasl_token")

    def wrong(*arguments: object) -> object:
        value, consumed = right(*arguments)
        value.token = b"ac"
        return value, consumed

    monkeypatch.setattr(rows, "unit", lambda key: wrong)
    with pytest.raises(AssertionError):
        agree("kafka.sasl_token", data, {}, columns=False)


def test_an_engine_that_falls_back_to_another_fails_the_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*arguments: object) -> object:
        raise rows.Unusual

    monkeypatch.setattr(rows, "unit", lambda key: never)
    with pytest.raises(AssertionError):
        agree("kafka.sasl_token", wirekit.encode("kafka.sasl_token", {"token": b"ab"}), {}, columns=False)


def test_a_finding_names_the_input_that_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wirekit.engine, "by_rows", lambda *arguments, **options: None)
    tally = work(Task("jmq4.heartbeat.request", 0, 5))
    assert tally.counts["inputs"] == 5
    (finding,) = tally.findings.values()
    assert "AssertionError" in finding.error
    assert "agree('jmq4.heartbeat.request', bytes.fromhex('" in str(finding)


def test_inputs_are_the_same_for_the_same_seed() -> None:
    def drawn(seed: int) -> list[object]:
        return list(inputs("kafka.message", seed, 60, sound=10, named=4))

    assert drawn(3) == drawn(3) != drawn(4)


def test_a_run_is_spread_over_all_schemas() -> None:
    planned = list(tasks(["a", "b", "c"], 1000, 7, 150))
    assert sum(task.count for task in planned) == 1002
    assert Counter(task.key for task in planned) == {"a": 3, "b": 3, "c": 3}
    assert {task.seed for task in planned} == {7, 8, 9}


def test_damage_can_be_repaired() -> None:
    data = wirekit.encode("kafka.message", {"magic": 0, "value": "6162"})
    broken = data[:-1] + b"c"
    assert not wirekit.decode(broken, "kafka.message").clean
    assert wirekit.decode(repaired("kafka.message", broken, {}), "kafka.message").clean


def test_damage_reaches_compressed_data() -> None:
    inner = {"messages": [{"offset": 0, "message": {"magic": 0, "value": "61" * 40}}]}
    wrapper = {"magic": 0, "attributes": {"codec": 1}, "value": {"content": inner}}
    data = wirekit.encode("kafka.message", wrapper)
    other = damaged_inside(Random(1), "kafka.message", data, {})
    assert other not in (None, data)
    decoded = wirekit.decode(other or b"", "kafka.message")
    assert [check.status for check in decoded.checks if check.path == "crc"] == ["ok"]
    assert decoded.sources[0] != wirekit.decode(data, "kafka.message").sources[0]


def test_nothing_can_be_damaged() -> None:
    chance = Random(0)
    assert {damaged(chance, [b""])[:1] == b"" for _ in range(200)} == {True, False}
