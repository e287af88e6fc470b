"""Compressed records in columns: limits, damage inside, and messages as reading gives them."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import wirekit
from tests.agreement.walk import compare
from tests.compiler.samples import CASES, FEW, entries, files, message, message_sets, mixed
from wirekit.compiler.columns import scan

pytestmark = pytest.mark.usefixtures("own_layouts")


def test_a_value_that_does_not_decompress_stays_as_it_is() -> None:
    data = wirekit.encode("kafka.message_set", {"messages": [message(0, 1, b"no gzip", 1), message(1, 1, b"plain")]})
    batch, errors = compare("kafka.message_set", data)
    assert batch["message.value"].to_pylist() == [b"no gzip", b"plain"]
    assert batch["message.value.ok"].to_pylist() == [False, None]
    assert [errors[name].to_pylist() for name in ("offset", "kind", "path")] == [
        [0],
        ["decompression"],
        ["message.value"],
    ]


def test_a_message_beyond_a_limit_is_an_error_and_its_neighbours_are_rows() -> None:
    bomb = {"messages": [message(0, 1, bytes(200_000))]}
    messages = [message(0, 1, b"a"), message(1, 1, {"content": bomb}, 1), message(2, 1, b"b")]
    data = wirekit.encode("kafka.message_set", {"messages": messages})
    batch, errors = compare("kafka.message_set", data, wirekit.Limits(decompressed=1000))
    assert batch["message.value"].to_pylist() == [b"a", b"b"]
    assert errors["kind"].to_pylist() == ["limit"]
    assert errors["offset"].to_pylist() == [entries(data)[1]]


def test_a_limit_that_is_passed_inside_is_an_error_of_the_record_around_it() -> None:
    rows = []
    for depth in range(4):
        batch, errors = compare("kafka.message_set", mixed(), wirekit.Limits(depth=depth))
        rows.append(batch.num_rows)
        if depth == 2:
            (error,) = errors.to_pylist()
    assert rows[0] < rows[1] == rows[2] < rows[3]
    assert b"deepest" in batch["message.value"].to_pylist()
    assert error["path"] == "message.value.content.messages[1].message.value.content.messages[1].message.value"
    assert (error["depth"], error["wrapper"], error["at_depth"], error["limit"]) == (0, None, 2, "depth")


def test_all_that_is_compressed_is_bounded_together() -> None:
    inside = {"messages": [message(0, 1, bytes(300))]}
    plain = [message(number, 1, b"plain") for number in range(3)]
    packed = [message(number, 1, {"content": inside}, 1) for number in range(6)]
    data = wirekit.encode("kafka.message_set", {"messages": [*plain, *packed, *plain]})
    batch, errors = compare("kafka.message_set", data, wirekit.Limits(decompressed=400, total_ratio=1))
    assert 0 < errors.num_rows < 6
    assert set(errors["path"].to_pylist()) == {"message.value"}
    assert set(errors["limit"].to_pylist()) == {"decompressed_total"}
    assert batch.num_rows == 12 - errors.num_rows


def test_damage_comes_before_a_limit_behind_it() -> None:
    bomb: dict[str, Any] = {"messages": [message(0, 1, bytes(2000))]}
    inner = [message(0, 1, b"x"), message(1, 1, {"content": bomb}, 1), message(2, 1, b"y"), message(3, 1, b"z")]
    for broken in range(4):
        middle = bytearray(wirekit.encode("kafka.message_set", {"messages": inner}))
        middle[entries(middle)[broken] + 16] = 9
        outer = [message(1, 1, b"first"), message(2, 1, gzipped(middle), 1), message(3, 1, b"last")]
        data = wirekit.encode("kafka.message_set", {"messages": outer})
        _, errors = compare("kafka.message_set", data, wirekit.Limits(decompressed=1000))
        kinds = list(zip(errors["kind"].to_pylist(), errors["depth"].to_pylist(), strict=True))
        assert kinds == {0: [("wrong", 1), ("limit", 1)], 1: [("wrong", 1)]}.get(broken, [("limit", 0)])


def test_an_error_inside_a_wrapper_names_the_wrapper() -> None:
    inner = bytearray(wirekit.encode("kafka.message_set", {"messages": [message(n, 1, b"value") for n in range(3)]}))
    inner[entries(inner)[1] + 16] = 9
    packed = wirekit.encode("kafka.message_set", {"messages": [message(5, 1, b"x"), message(6, 1, gzipped(inner), 1)]})
    batch, errors = compare("kafka.message_set", packed)
    assert batch["offset"].to_pylist() == [5, 0, 2]
    wrapper = entries(packed)[1]
    assert batch["@wrapper"].to_pylist() == [None, wrapper, wrapper]
    assert errors["offset"].to_pylist() == [entries(inner)[1]]
    assert errors["wrapper"].to_pylist() == [wrapper]


def test_any_damage_inside_wrappers() -> None:
    chance = random.Random(5)
    whole = wirekit.encode("kafka.message_set", {"messages": [message(n, n % 2, b"v" * n) for n in range(4)]})
    for _ in range(CASES // 5):
        messages = [message(1, 1, b"before")]
        for magic in (0, 1):
            inner = bytearray(whole[: chance.randrange(1, len(whole) + 1)])
            inner[chance.randrange(len(inner))] = chance.randrange(256)
            messages += [message(2, magic, gzipped(inner), 1), message(3, magic, b"between")]
        inner = bytearray(wirekit.encode("kafka.message_set", {"messages": messages}))
        inner[chance.randrange(len(inner))] ^= 1 << chance.randrange(8)
        outer = [message(1, 0, b"first"), message(2, 0, gzipped(inner), 1), message(3, 1, b"last")]
        limits = chance.choice([None, wirekit.Limits(depth=1), wirekit.Limits(decompressed=80)])
        compare("kafka.message_set", wirekit.encode("kafka.message_set", {"messages": outer}), limits)


def gzipped(data: bytes) -> bytes:
    from wirekit.compression import compress

    return compress("gzip", bytes(data))


def test_wrappers_can_be_kept() -> None:
    data = mixed()
    without = wirekit.columns("kafka.message_set", data, times="int")
    batch, _ = scan("kafka.message_set", data, wrappers=True)
    wrappers = batch.filter(pa.compute.is_valid(batch["@left"]))
    assert wrappers.num_rows == 6 + 3
    assert wrappers["@left"].to_pylist() == [0] * 9
    messages = batch.filter(pa.compute.is_null(batch["@left"]))
    assert messages.select(without.schema.names).equals(without)
    for index in range(batch.num_rows):
        parent = batch["@parent"][index].as_py()
        assert (parent is None) == (batch["@depth"][index].as_py() == 0)
        if parent is not None:
            assert parent < index
            assert batch["@left"][parent].as_py() == 0
            assert batch["@depth"][parent].as_py() == batch["@depth"][index].as_py() - 1


def messages_by_reading(key: str, data: bytes) -> list[Any]:
    from wirekit.protocols.kafka.reading import messages_of

    names = ("offset", "timestamp", "timestamp_type", "key", "value", "attributes", "codec", "crc", "check")
    decoded = wirekit.decode(data, key, engine="reference")
    return [{name: getattr(each, name) for name in names} for each in messages_of(decoded)]


def messages_by_columns(key: str, data: bytes) -> list[Any]:
    from wirekit.protocols.kafka.columns import messages

    batch, _ = messages(data, key)
    batch.validate(full=True)
    plain = batch.set_column(1, "timestamp", batch["timestamp"].view(pa.int64()))
    return plain.to_pylist()


def log_append(number: int) -> bytes:
    """A wrapper whose time is the broker's, around one whose time is not, around messages of both magics."""
    inside: dict[str, Any] = {"messages": [message(n, n % 2, b"x") for n in range(4)]}
    middle = message(3, 1, {"content": inside}, 2)
    outer = message(number, 1, {"content": {"messages": [message(0, 1, None), middle, message(4, 0, b"z")]}}, 3)
    outer["message"]["attributes"]["timestamp_type"] = 1
    return wirekit.encode("kafka.message_set", {"messages": [outer, message(number + 1, 1, b"", timestamp=-1)]})


@pytest.mark.skipif(FEW, reason="reads no bytes")
def test_messages_as_reading_gives_them() -> None:
    for data in [*message_sets(), mixed(), log_append(90), log_append(1), log_append(2**63 - 2), b""]:
        assert messages_by_columns("kafka.message_set", data) == messages_by_reading("kafka.message_set", data)
    for data in files(".log"):
        assert messages_by_columns("kafka.log_segment", data) == messages_by_reading("kafka.log_segment", data)


def test_offsets_in_a_cut_wrapper_are_not_known() -> None:
    inner = wirekit.encode("kafka.message_set", {"messages": [message(n, 1, b"v") for n in range(2)]})
    data = wirekit.encode("kafka.message_set", {"messages": [message(9, 1, gzipped(inner[:-1]), 1)]})
    assert [each["offset"] for each in messages_by_columns("kafka.message_set", data)] == [None]
    assert messages_by_columns("kafka.message_set", data) == messages_by_reading("kafka.message_set", data)
