"""Fields of a user's own protobuf message that tell the size or number of what stands behind the message."""

from __future__ import annotations

import pytest
from google.protobuf import duration_pb2

import wirekit
from wirekit.compiler.lower import lower
from wirekit.registry import Layout, Protocol, registry
from wirekit.wire import CountOf, Length, Protobuf, RecordsToEnd, SizeOf, String, Struct, int16, rest, uint8, uint16

DURATION = duration_pb2.Duration.DESCRIPTOR
LISTED = Struct(
    "size" / Length(int16, of="head"),
    "head" / Protobuf(DURATION, derived={"seconds": SizeOf("names"), "nanos": CountOf("names")}),
    "names" / RecordsToEnd(Struct("name" / String(uint8))),
)
PIECE = Struct(
    "size" / Length(int16, of="head"),
    "head" / Protobuf(DURATION, derived={"seconds": SizeOf("data")}),
    "data" / rest(part=True),
)
ENGINES = ("reference", "rows")


@pytest.fixture(scope="module")
def protocol() -> str:
    """The name of a protocol of a user's own."""
    layouts = {"listed": Layout(LISTED), "piece": Layout(PIECE)}
    return registry.register(Protocol("told_test", "a test", layouts)).name


@pytest.mark.parametrize("engine", ENGINES)
def test_numbers_follow_the_value(protocol: str, engine: str) -> None:
    key = f"{protocol}.listed"
    value = {"head": {"seconds": 1}, "names": [{"name": "ab"}, {"name": "c"}]}
    decoded = wirekit.decode(wirekit.encode(key, value, engine=engine), key, engine=engine)
    assert decoded.clean
    assert (decoded.value.head.seconds, decoded.value.head.nanos) == (5, 2)
    del decoded.value.names[0]
    again = wirekit.decode(wirekit.encode(key, decoded.value, engine=engine), key, engine=engine).value
    assert (again.head.seconds, again.head.nanos) == (2, 1)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_absent_or_wrong_derived_field_is_rebuilt_as_it_was(protocol: str, engine: str) -> None:
    key = f"{protocol}.listed"
    absent = bytes.fromhex("000210010161")
    decoded = wirekit.decode(absent, key, engine=engine)
    assert decoded.clean
    assert decoded.value.head.seconds is None
    assert wirekit.encode(key, decoded.value, engine=engine) == absent
    wrong = bytes.fromhex("0004080910070161")
    decoded = wirekit.decode(wrong, key, engine=engine)
    assert [(check.kind, check.path, check.stored, check.computed) for check in decoded.checks] == [
        ("length", "head.seconds", 9, 2)
    ]
    assert decoded.value.head.extra["keep"] == ["seconds", "nanos"]
    assert wirekit.encode(key, decoded.value, engine=engine) == wrong


@pytest.mark.parametrize("engine", ENGINES)
def test_a_piece_does_not_tell_the_size_of_the_whole(protocol: str, engine: str) -> None:
    key = f"{protocol}.piece"
    data = wirekit.encode(key, {"head": {"seconds": 100}, "data": "616263"}, engine=engine)
    decoded = wirekit.decode(data, key, engine=engine)
    assert decoded.clean
    assert decoded.engine == engine
    assert decoded.value.head.seconds == 100
    assert wirekit.encode(key, decoded.value, engine=engine) == data


@pytest.mark.parametrize(
    "derived", [{"hours": SizeOf("data")}, {"seconds": SizeOf("body")}, {"seconds": SizeOf("size")}]
)
def test_a_derived_field_that_does_not_exist_is_misuse(derived: dict[str, SizeOf]) -> None:
    with pytest.raises(wirekit.Misuse, match=r"is not a later field|has no field "):
        lower(Struct("size" / uint16, "head" / Protobuf(DURATION, derived=derived), "data" / rest()))
