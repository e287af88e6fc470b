"""Generated frames fit their layouts, of every schema and of one's own; damage is damage, and engines agree on it."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

import wirekit
from tests.compiler.test_engines import same
from wirekit.errors import WireError
from wirekit.registry import Layout, Protocol, registry
from wirekit.strategies import branches, contexts, frames, mutations, values
from wirekit.wire import Array, Checked, If, Length, String, Struct, Switch, int8, int16, this, uint32

KEYS = wirekit.registry.keys()
EXAMPLES = max(8, settings().max_examples // 8)
QUICK = settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

OWN = Struct(
    "size" / Length(int16),
    "crc" / Checked(uint32, "crc32c"),
    "kind" / int8,
    "names" / Array(int16, Struct("name" / String(int16, null=-1), "age" / If(this._.kind > 0, int8))),
    "body" / Switch(this.kind, {0: int8, 1: String(int8)}, default=int16),
)


@pytest.fixture(scope="module")
def own() -> str:
    """The key of a layout of a user's own."""
    return registry.register(Protocol("strategies_test", "a test", {"x": Layout(OWN)})).key("x")


@pytest.mark.parametrize("key", KEYS)
@QUICK
@given(data=st.data())
def test_frames_decode_and_come_back(key: str, data: st.DataObject) -> None:
    context = data.draw(contexts(key))
    frame = data.draw(frames(key, context=context))
    decoded = same(key, frame, context, used=False)
    assert decoded.error is None
    assert wirekit.encode(key, decoded.value, context=context) == frame[: decoded.consumed]


@pytest.mark.parametrize("key", KEYS)
@QUICK
@given(data=st.data())
def test_mutations_differ_and_engines_agree_on_them(key: str, data: st.DataObject) -> None:
    context = data.draw(contexts(key))
    mutation = data.draw(mutations(key, context=context))
    assert mutation.data != mutation.original
    decoded = same(key, mutation.data, context, used=False)
    assert decoded.error is None or isinstance(decoded.error, WireError)


@QUICK
@given(data=st.data())
def test_a_layout_of_ones_own(own: str, data: st.DataObject) -> None:
    assert wirekit.decode(data.draw(frames(own)), own).clean


@pytest.mark.parametrize("kind", [0, 1, 7])
def test_every_branch_of_ones_own_layout_is_reached(own: str, kind: int) -> None:
    found = find(frames(own), lambda frame: (wirekit.decode(frame, own).value.kind in (0, 1)) == (kind in (0, 1)))
    assert wirekit.decode(found, own).clean
    assert len(branches(own)) >= 3


def test_named_damage(own: str) -> None:
    settled = settings(max_examples=400, database=None, derandomize=True)
    names: set[str] = set()

    @settled
    @given(mutations(own))
    def collect(mutation: object) -> None:
        names.add(mutation.name)  # type: ignore[attr-defined]

    collect()
    assert {"truncated", "trailing bytes"} < names
    assert len(names) >= 5, names


def test_values_can_be_edited_and_encoded(own: str) -> None:
    value = find(values(own), lambda value: bool(value["names"]))
    assert wirekit.decode(wirekit.encode(own, value), own).clean


def test_unknown_key_is_misuse() -> None:
    with pytest.raises(wirekit.Misuse):
        values("kafka.nothing").example()
