"""Frames that somebody else has cut: a row each, or nothing, and of each whether it is clean."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import wirekit
from wirekit.compiler.columns import scan, scan_ranges
from wirekit.compiler.columns.ranges import CLEAN, DOUBTFUL, REFUSED
from wirekit.errors import Misuse

NESTED = {"@index", "entry.payload.ok"}
BROKERS = [{"node_id": node, "host": "localhost", "port": 9090 + node} for node in (1, 2)]
FRAMES = {
    "kafka.metadata.response.v1": wirekit.encode(
        "kafka.metadata.response.v1",
        {"correlation_id": 7, "body": {"brokers": BROKERS, "controller_id": 1, "topic_metadata": []}},
    ),
    "kafka.message_set": wirekit.encode(
        "kafka.message_set", {"messages": [{"offset": 5, "message": {"magic": 1, "timestamp": 3, "value": "6869"}}]}
    ),
    "pulsar.frame": wirekit.encode("pulsar.frame", {"command": {"type": "PING", "ping": {}}}),
}


def state_of(key: str, frame: bytes) -> tuple[int, list[dict[str, Any]]]:
    """What a scan of the bytes alone says, which opens what is compressed."""
    batch, errors = scan(key, frame)
    rows = batch.to_pylist()
    if (
        set(errors["kind"].to_pylist()) - {"decompression"}
        or len(rows) != 1
        or int(batch.schema.metadata[b"wirekit.consumed"]) != len(frame)
    ):
        return REFUSED, []
    bad = any(has_false(value) for name, value in rows[0].items() if name.rpartition(".")[2] == "ok")
    return DOUBTFUL if bad else CLEAN, rows


def has_false(verdict: Any) -> bool:
    return any(map(has_false, verdict)) if isinstance(verdict, list) else verdict is False


@pytest.mark.parametrize("key", FRAMES)
def test_each_range_has_the_state_and_rows_of_its_own_scan(key: str) -> None:
    draw = random.Random(key)
    frames = [FRAMES[key], FRAMES[key][:-1], FRAMES[key] + b"\0", b""]
    for _ in range(150):
        damaged = bytearray(FRAMES[key])
        damaged[draw.randrange(len(damaged))] ^= 1 << draw.randrange(8)
        frames.append(bytes(damaged))
    ends = np.cumsum([len(frame) for frame in frames])
    order = np.array(draw.sample(range(len(frames)), len(frames)))
    starts = np.append(0, ends[:-1])
    batch, states = scan_ranges(key, b"".join(frames), starts[order], ends[order])
    rows = iter(batch.to_pylist())
    assert set(states.tolist()) >= {CLEAN, REFUSED}
    for number, state in zip(order.tolist(), states.tolist(), strict=True):
        expected, alone = state_of(key, frames[number])
        assert state == expected, frames[number].hex()
        for row in alone:
            actual = next(rows)
            own = {name: actual.get(name) for name in row if name not in NESTED}
            assert own == {name: row[name] for name in own} | {"@offset": starts[number]}
    assert next(rows, None) is None


def test_only_the_fields_that_are_asked_for() -> None:
    frame = FRAMES["kafka.metadata.response.v1"]
    batch, _ = scan_ranges("kafka.metadata.response.v1", frame, np.array([0]), np.array([len(frame)]), fields=["body"])
    assert "body.brokers.host" in batch.schema.names
    assert "correlation_id" not in batch.schema.names


@pytest.mark.parametrize("lengths", [(), ("body.brokers.host",)])
@pytest.mark.parametrize("key", ["kafka.metadata.response.v1", "pulsar.frame"])
def test_a_choice_of_columns_has_the_values_and_the_schema_of_all_columns(key: str, lengths: tuple[str, ...]) -> None:
    lengths = lengths if key.startswith("kafka") else ()
    buffer, ends = FRAMES[key] * 3, np.arange(1, 4) * len(FRAMES[key])
    ranges = ends - len(FRAMES[key]), ends
    whole, _ = scan_ranges(key, buffer, *ranges, lengths=lengths)
    assert whole.schema.metadata[b"wirekit.key"] == key.encode()
    for fields in ([name] for name in whole.schema.names):
        batch, _ = scan_ranges(key, buffer, *ranges, fields=fields, lengths=lengths)
        inside = [each for each in whole.schema.names if each in fields or each.startswith(f"{fields[0]}.")]
        assert set(inside) <= set(batch.schema.names)
        assert all(each in fields or each.startswith(f"{fields[0]}.") for each in batch.schema.names)
        assert batch.select(inside).equals(whole.select(inside), check_metadata=True)


@pytest.mark.parametrize(("starts", "ends"), [([0], [99]), ([-1], [3]), ([3], [2]), ([0, 1], [2])])
def test_ranges_lie_in_the_buffer(starts: list[int], ends: list[int]) -> None:
    with pytest.raises(Misuse):
        scan_ranges("kafka.sasl_token", b"\0" * 9, np.array(starts), np.array(ends))


def test_a_list_with_something_in_front_is_misuse() -> None:
    with pytest.raises(Misuse, match="each range must be one record"):
        scan_ranges("joyqueue.get_topics.response", b"", np.array([]), np.array([]))
