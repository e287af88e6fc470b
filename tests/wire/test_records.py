"""A record behaves as a mapping of the fields that are set."""

from __future__ import annotations

from collections.abc import ItemsView, KeysView, Mapping, ValuesView
from typing import Any

import pytest

import wirekit
from wirekit.compiler.engines import DECODERS, ENCODERS
from wirekit.errors import Misfit, Misuse
from wirekit.value_text import value_text
from wirekit.values import Record, Symbol, json_text, record_type, to_json

KEY = "kafka.list_groups.request.v0"
MESSAGE = {"magic": 1, "attributes": 0, "timestamp": 5, "key": None, "value": "61"}


def as_arguments(**fields: Any) -> dict[str, Any]:
    return fields


def laws(record: Record) -> None:
    """What holds of every mapping."""
    copy = dict(record)
    assert copy == record
    assert list(record) == list(record.keys()) == list(copy)
    assert list(record.values()) == list(copy.values())
    assert list(record.items()) == list(copy.items())
    assert len(record) == len(copy)
    assert all(name in record and record[name] == copy[name] == record.get(name) for name in record)
    assert isinstance(record, Mapping)
    for view, kind in ((record.keys(), KeysView), (record.items(), ItemsView), (record.values(), ValuesView)):
        assert isinstance(view, kind)
        assert len(view) == len(copy)
    assert record.keys() == copy.keys()
    assert as_arguments(**record) == copy
    assert {**record} == copy
    assert value_text(record) == json_text(to_json(record))


@pytest.mark.parametrize("engine", DECODERS)
def test_a_decoded_record(engine: str) -> None:
    data = wirekit.encode(KEY, {"correlation_id": 7, "client_id": "x", "body": {}})
    record = wirekit.decode(data, KEY, engine=engine).value
    laws(record)
    assert wirekit.encode(KEY, dict(record)) == data
    laws(record.body)


def test_fields_that_were_not_reached_are_not_there() -> None:
    record = wirekit.decode(bytes.fromhex("0000000a 0010"), KEY).value
    laws(record)
    assert list(record) == ["size", "api_key"]
    assert "correlation_id" not in record
    with pytest.raises(KeyError):
        record["correlation_id"]


def test_a_record_without_fields_is_there() -> None:
    empty = record_type("Empty", ())()
    laws(empty)
    assert (len(empty), bool(empty)) == (0, True)


def test_a_number_is_no_field() -> None:
    with pytest.raises(KeyError):
        record_type("Point", ("x",))(x=1)[0]  # type: ignore[index]


@pytest.mark.parametrize("engine", ["rows", "reference"])
def test_a_record_inside_of_a_mapping_keeps_its_details(engine: str) -> None:
    """The mapping is converted as JSON is; the record is a value already, with the numbers that it keeps."""
    value = wirekit.decode(bytes.fromhex("0000000a00000007000000000000"), "kafka.list_groups.response.v0").value
    value.keep("size")
    value.size = 99
    outer = {"messages": [{"offset": 1, "message": wirekit.from_json("kafka.message", MESSAGE)}]}
    outer["messages"][0]["message"].keep("crc")
    outer["messages"][0]["message"].crc = 7
    data = wirekit.encode("kafka.message_set", outer, engine=engine)
    message = wirekit.decode(data, "kafka.message_set").value.messages[0].message
    assert message.crc == 7
    assert wirekit.encode("kafka.list_groups.response.v0", value, engine=engine)[:4] == bytes([0, 0, 0, 99])


@pytest.mark.parametrize(
    "value",
    [
        None, True, 0, 1 << 70, -1, 0.5, -0.0, 1e300, float("nan"), float("-inf"),
        "a\"b\\\n", "caf\xe9", "\x7f", "\x9b31m", "\u202e", "\ud800",
        b"", bytearray(b"\x0a"), memoryview(b"\x0a"), [], (1, "a"), {"a": [None], 1: b"\x00"},
        Symbol(3, "LZ4"), Symbol(3, "OTHER"), Symbol(4), {"a": Symbol(3, "LZ4"), "b": True},
        record_type("Odd", ("from", "a"))(**{"from": 1, "a": "\x85"}),
        record_type("Sparse", ("a", "b", "c", "d"), sparse=True)(c=0, b=[], a=None, d=record_type("Empty", ())()),
    ],
)  # fmt: skip
def test_the_text_of_a_value_is_that_of_its_plain_data(value: Any) -> None:
    assert value_text(value) == json_text(to_json(value))


@pytest.mark.parametrize("engine", ENCODERS)
def test_a_symbol_of_another_number_is_refused(engine: str) -> None:
    key = "kafka.heartbeat.response.v0"
    body = lambda error: {"correlation_id": 1, "body": {"error_code": error}}  # noqa: E731
    none = wirekit.encode(key, body({"value": 0, "symbol": "NONE"}), engine=engine)
    assert none == wirekit.encode(key, body({"value": 0, "symbol": None}), engine=engine)
    for value, text in ((0, "0 is NONE, not 'UNKNOWN'"), (999, "999 has no symbol, not 'UNKNOWN'")):
        with pytest.raises(Misfit, match=f"body.error_code: {text}; pass the number or the symbol alone"):
            wirekit.encode(key, body({"value": value, "symbol": "UNKNOWN"}), engine=engine)


def test_an_object_that_is_no_value_has_no_text() -> None:
    with pytest.raises(Misuse, match="type object is not a wirekit value"):
        value_text(object())
