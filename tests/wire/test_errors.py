"""Every error can be printed, in a few lines, whatever value it is about."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import wirekit
from tests.own import own
from wirekit.compiler.engines import DECODERS, ENCODERS
from wirekit.errors import printed
from wirekit.registry import Layout, Protocol, registry
from wirekit.values import SHOWN, Record, SymbolTable, record_type, shown
from wirekit.wire import (
    Bit,
    Bits,
    Default,
    RecordsToEnd,
    String,
    Struct,
    Switch,
    context,
    int16,
    this,
    uint8,
    unexplained,
)

HUGE = 10**5000
LONGEST = 2000  # characters of an error; some list all fields of a message
KEYS = {
    "kafka.list_groups.request.v0": {"correlation_id": 1, "client_id": "x", "body": {}},
    "kafka.message_set": {"messages": [{"offset": 5, "message": {"magic": 0, "attributes": {}, "value": "6869"}}]},
    "pulsar.frame": {"command": {"type": "PING", "ping": {}}},
    "net.proxy_v1": {"family": "TCP4", "source_port": 1, "destination_port": 2},
}


def deep(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


ODD = [
    HUGE,
    -HUGE,
    [HUGE],
    {"value": HUGE},
    {"n": [HUGE] * 1000},
    deep(100_000),
    "x" * 10**6,
    b"x" * 10**6,
    1.5,
    {},
    None,
]


def replaced(value: Any, odd: Any) -> Iterator[Any]:
    """The value with one of its parts replaced, for each part."""
    yield odd
    if isinstance(value, dict):
        for name, item in value.items():
            yield from ({**value, name: changed} for changed in replaced(item, odd))
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from ([*value[:index], changed, *value[index + 1 :]] for changed in replaced(item, odd))


def check_printable(error: wirekit.WirekitError) -> None:
    assert len(str(error)) < LONGEST
    assert repr(error)
    if isinstance(error, wirekit.WireError):
        json.dumps(error.to_json())


@pytest.mark.parametrize("value", [{"a\\b": 1}, "a\\b", {"magic": "a\\b"}], ids=["field", "shape", "symbol"])
def test_the_repr_has_the_text_and_the_place_as_they_are(value: Any) -> None:
    with pytest.raises(wirekit.WirekitError) as caught:
        wirekit.encode("kafka.message", value)
    assert repr(caught.value) == f"<{type(caught.value).__name__}: {caught.value}>"
    with pytest.raises(wirekit.Misuse) as misused:
        wirekit.decode(b"", r"C:\captures")
    assert repr(misused.value) == f"<Misuse: {misused.value}>"
    assert repr(copy.copy(misused.value)) == repr(misused.value)


@pytest.mark.parametrize("engine", ENCODERS)
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("odd", range(len(ODD)))
def test_of_any_value_anywhere(engine: str, key: str, odd: int) -> None:
    for value in replaced(KEYS[key], ODD[odd]):
        for use in (wirekit.encode, wirekit.from_json):
            try:
                use(key, value, engine=engine)  # type: ignore[operator]
            except wirekit.WirekitError as error:
                check_printable(error)


def test_an_integer_of_5000_digits() -> None:
    with pytest.raises(wirekit.Wrong, match=r"correlation_id: expected an integer in .*, found 0x[0-9a-f]{32}… \("):
        wirekit.encode("kafka.list_groups.request.v0", {"correlation_id": HUGE, "client_id": "x", "body": {}})


def test_values_are_shown_as_before() -> None:
    point = record_type("Point", ("x", "y"))
    for value in (7, "a'b", [1, "é", None], {"a": [True]}, point(x=1), b"ab", (1, b"x"), [b"x"]):
        try:
            expected = json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else repr(value)
        except TypeError:
            expected = repr(value)
        assert shown(value) == expected
    assert shown(list(range(100))) == json.dumps(list(range(100)))[:SHOWN] + "…"


def test_a_value_that_holds_itself_is_shown() -> None:
    value = record_type("Node", ("child",))()
    value.child = value
    assert shown(value) == ("Node(child=" * 10)[:SHOWN] + "…"
    assert isinstance(value, Record)


def test_numbers_in_decimal_as_long_as_a_reader_may_want_them() -> None:
    assert printed(2**256 - 1) == str(2**256 - 1)
    assert printed("text") == "text"


@pytest.mark.parametrize("engine", ENCODERS)
def test_a_default_that_needs_a_missing_field_blames_that_field(engine: str) -> None:
    entry = Struct("a" / uint8, "b" / Default(uint8, this.a + 1))
    with own(Struct("entries" / RecordsToEnd(entry))) as key:
        value = {"entries": [{"a": 1}, {}]}
        with pytest.raises(wirekit.Wrong, match=r"entries\[1\]\.a: expected a value, found nothing"):
            wirekit.encode(key, value, engine=engine)
        assert wirekit.to_json(wirekit.from_json(key, value, engine=engine)) == value


def test_a_body_that_context_selects_says_which_context_is_missing() -> None:
    body = Switch(context.type, {1: Struct("version" / int16), 2: String(int16)}, default=unexplained())
    answer = Struct("id" / int16, "body" / body)
    wirekit.register(Protocol("shelf", "Shelf", {"answer": Layout(answer)}))
    try:
        for partial, hint in (({}, "the context type was not given"), ({"type": "PUT"}, "the context type is 'PUT'")):
            with pytest.raises(wirekit.Wrong, match=f"body: expected bytes, .*; {hint}; it may be 1, 2"):
                wirekit.encode("shelf.answer", {"id": 1, "body": {"version": 3}}, context=partial)
        with pytest.raises(wirekit.Wrong, match=r"shelf\.answer: id: [^;]*$"):
            wirekit.encode("shelf.answer", {"id": 1 << 20, "body": b""})
        assert (
            wirekit.encode("shelf.answer", {"id": 1, "body": {"version": 3}}, context={"type": 1}).hex() == "00010003"
        )
    finally:
        registry.unregister("shelf")


def test_an_error_shows_the_value_of_the_caller() -> None:
    table = SymbolTable("kind", {1: "ONE"})
    layout = Struct(
        "bits" / Bits(uint8, "kind" / Bit(4, table), "count" / Bit(4), order="msb"),
        "text" / String(2, encoding="ascii"),
        "items" / RecordsToEnd(uint8, count=this.bits.count),
    )
    value = {"bits": {"kind": 1, "count": 3}, "text": "ab", "items": [1, 2]}
    with own(layout) as key:
        with pytest.raises(wirekit.Wrong, match=r"bits\.kind: expected an integer in 0\.\.15, found 16$"):
            wirekit.encode(key, value | {"bits": {"kind": table(16), "count": 2}})
        with pytest.raises(
            wirekit.Wrong, match=r"text: expected a value that ascii can encode, found 'äb' \(ascii has"
        ):
            wirekit.encode(key, value | {"text": "äb"})
        with pytest.raises(wirekit.Wrong, match="items: expected 3 elements, found 2"):
            wirekit.decode(wirekit.encode(key, value), key, strict=True)


@pytest.mark.parametrize("engine", DECODERS)
def test_a_result_with_an_error_holds_nothing_of_how_it_was_decoded(engine: str) -> None:
    """A traceback has the readers and scopes of all nodes around the error, in cycles."""
    cut = wirekit.decode(bytes.fromhex("0000000a0000000700000000"), "kafka.list_groups.response.v0", engine=engine)
    missing = wirekit.decode(bytes(8), "kafka.response", engine=engine)
    for decoded in (cut, missing):
        error = decoded.error
        assert error is not None
        assert error.__traceback__ is error.__context__ is error.__cause__ is None


@pytest.mark.parametrize(
    ("key", "data"),
    [("kafka.request", b"\0\0\0\x05\0"), ("jmq4.frame", b"\xff" * 20), ("kafka.request", b"\x7f" * 20)],
    ids=["short", "wrong", "limit"],
)
@pytest.mark.parametrize("how", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy], ids=["pickle", "copy"])
def test_errors_go_from_process_to_process_as_they_are(key: str, data: bytes, how: Callable[[Any], Any]) -> None:
    error = wirekit.decode(data, key).error
    assert error is not None
    error.hint = "a hint"
    error.add_note("a note")
    other = how(error)
    assert (type(other), str(other), other.to_json()) == (type(error), str(error), error.to_json())
    assert (other.partial, other.bounded, other.__notes__) == (error.partial, error.bounded, ["a note"])
