"""A record behaves as a mapping of the fields that are set."""

from __future__ import annotations

from typing import Any

import pytest

import wirekit
from wirekit.compiler.engines import DECODERS
from wirekit.values import Record, record_type

KEY = "kafka.list_groups.request.v0"


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
    assert as_arguments(**record) == copy
    assert {**record} == copy


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
