"""What holds for generated values and frames; the tests here and the long runs in tests/fuzz share it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import HealthCheck, Phase, find, given, seed, settings
from hypothesis import strategies as st

import wirekit
from tests.agreement.law import agree
from wirekit.errors import Limit, WireError
from wirekit.strategies import Mutation, agrees, contexts

Run = Callable[[Any], None]


def sound(key: str, value: Any, context: Mapping[str, Any]) -> wirekit.Decoded:
    """A value is encoded by both engines alike, decoded by both alike, and is the same then: nothing is lost."""
    data = wirekit.encode(key, value, context=context, engine="reference")
    assert wirekit.encode(key, value, context=context, engine="rows") == data
    decoded = agree(key, data, context, columns=False)
    assert decoded.error is None
    assert decoded.consumed == len(data)
    assert {check.kind for check in decoded.checks if check.status == "bad"} <= {"layout", "required", "acceptance"}
    assert agrees(value, decoded.value)
    original = decoded.value if "nan" in repr(value) else value  # of which JSON has one, and a record knows the bytes
    shown = json.loads(json.dumps(wirekit.to_json(original)))
    assert wirekit.encode(key, shown, context=context) == data
    return decoded


def survived(key: str, mutation: Mutation, context: Mapping[str, Any]) -> wirekit.Decoded:
    """Damage gives a value that encodes to the same bytes, or an error of ours; the engines agree on it."""
    assert mutation.data != mutation.original
    decoded = agree(key, mutation.data, context, columns=False)
    assert decoded.error is None or isinstance(decoded.error, WireError)
    if mutation.name == "too deep":
        assert isinstance(decoded.error, Limit)
    if mutation.name in ("bomb", "checksum", "endless varint"):
        assert not decoded.clean
    return decoded


def examples(strategy: st.SearchStrategy[Any], run: Run, *, count: int, start: int = 0) -> None:
    """Runs with examples that are the same every time, and as many as the caller says, not the profile."""
    suppressed = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
    suppressed.append(HealthCheck.large_base_example)
    seeded = settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=suppressed,
    )

    @seed(start)
    @seeded
    @given(strategy)
    def go(drawn: Any) -> None:
        run(drawn)

    go()


def first(strategy: st.SearchStrategy[Any], suits: Callable[[Any], object]) -> Any:
    """The first example that suits; ``hypothesis.find`` would go on to the smallest, which takes most of the time."""
    return find(strategy, suits, settings=settings(max_examples=2000, database=None, phases=[Phase.generate]))


def together(key: str, strategy: Callable[..., st.SearchStrategy[Any]], **arguments: Any) -> st.SearchStrategy[Any]:
    """Pairs of a context that a schema tells apart, and what a strategy gives for it."""
    return contexts(key).flatmap(
        lambda context: st.tuples(st.just(context), strategy(key, context=context, **arguments))
    )
