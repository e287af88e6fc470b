"""Rows of Pulsar's frames become the frames that they came from, and what ``encode`` makes of the same values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wirekit
from tests.compiler.test_columns_messages import CHECKED, FRAMES, KEY, UNUSUAL, batched, encoded, frames_of, single
from wirekit import strategies
from wirekit.errors import Misuse

INDEX = "entry.payload.metadata.sequence_id"
DAMAGED = "entry.payload.ok: its content was damaged"
LOST = "@gap: the record held bytes that no column has"
PING = {"command": {"type": "PING", "ping": {}}}


def build(batch: Any) -> bytes:
    return wirekit.build_columns(KEY, batch)


def again(data: bytes) -> str:
    """Builds what was scanned, to the same bytes; gives why it is refused where columns have lost something."""
    return built_again(wirekit.columns(KEY, data), data)


def built_again(batch: pa.RecordBatch, data: bytes) -> str:
    try:
        built = build(batch)
    except Misuse as error:
        return str(error)
    assert built == data
    return ""


@pytest.mark.parametrize("path", FRAMES, ids=lambda path: path.name.partition(".")[0])
def test_captured_frames_come_back(path: Path) -> None:
    good, refused = [], []
    for frame in frames_of(path):
        batch = wirekit.columns(KEY, frame)
        if batch.num_rows:
            why = built_again(batch, frame)
            (refused if why else good).append(frame)
            assert not why or LOST in why or DAMAGED in why
    assert len(good) > 4 * len(refused)
    whole = b"".join(good)
    assert again(whole) == ""
    assert build(wirekit.columns(KEY, whole, times="int", enums="dictionary")) == whole


def test_rows_that_lost_fields_are_refused() -> None:
    acked = {"consumer_id": 1, "ack_type": "Individual", "message_id": [{"ledgerId": 1, "entryId": 2, "ack_set": [5]}]}
    data = wirekit.encode(KEY, {"command": {"type": "ACK", "ack": acked}})
    assert LOST in again(data)
    del acked["message_id"][0]["ack_set"]
    without = wirekit.encode(KEY, {"command": {"type": "ACK", "ack": acked}})
    assert build(wirekit.columns(KEY, data).drop_columns(["@gap"])) == without
    assert again(without) == ""


def test_rows_that_lost_an_empty_nested_message_are_refused() -> None:
    def connected(**flags: Any) -> dict[str, Any]:
        return {"command": {"type": "CONNECTED", "connected": {"server_version": "x", **flags}}}

    frame, ping, without = encoded(connected(feature_flags={}), PING, connected())
    assert LOST in again(frame)
    assert build(wirekit.columns(KEY, frame).drop_columns(["@gap"])) == without
    assert again(ping + without) == ""


def test_messages_of_a_batch_go_back_into_one_frame() -> None:
    compressed = [batched(4, compression=number) for number in (1, 2, 3, 4)]
    parts = encoded(single(1), batched(3), *compressed, batched(0), batched(1), single(2))
    data = b"".join(parts)
    assert again(data) == again(b"") == ""
    assert build(wirekit.columns(KEY, data).drop_columns(["@offset"])) == data
    frames = {offset: part for part, offset in zip(parts, _offsets(parts), strict=True)}
    batch = wirekit.columns(KEY, data)
    for offset, part in frames.items():
        assert build(batch.filter(pc.equal(batch["@offset"], offset))) == part


def _offsets(parts: list[bytes]) -> list[int]:
    return [sum(map(len, parts[:number])) for number in range(len(parts))]


@pytest.mark.parametrize("codec", [None, 2, 4])
def test_numbers_follow_the_rows_that_are_there(codec: int | None) -> None:
    value = batched(4, **({} if codec is None else {"compression": codec}))
    batch = wirekit.columns(KEY, wirekit.encode(KEY, value))
    payload = value["entry"]["payload"]
    contents = [payload["content"][at] for at in (1, 3)] if codec else [payload[at] for at in (1, 3)]
    value["entry"]["payload"] = {"content": contents} if codec else contents
    value["entry"]["metadata"]["num_messages_in_batch"] = 2
    if codec:
        value["entry"]["metadata"].pop("uncompressed_size", None)
    expected = wirekit.encode(KEY, value)
    some = batch.filter(pa.array([False, True, False, True]))
    assert build(some) == expected
    names = [f"entry.metadata.{name}" for name in ("num_messages_in_batch", "uncompressed_size")]
    assert build(some.drop_columns([*names, "entry.payload.metadata.payload_size"])) == expected


OWN: dict[str, Any] = {
    "command.type": ["SEND", "SEND", "PING"],
    "command.send.producer_id": [1, 1, None],
    "command.send.sequence_id": [5, 6, None],
    "entry.metadata.producer_name": ["p", "p", None],
    "entry.metadata.sequence_id": [5, 6, None],
    "entry.metadata.publish_time": [1, 2, None],
}
SEND = [{"type": "SEND", "send": {"producer_id": 1, "sequence_id": number}} for number in (5, 6)]
METADATA = [{"producer_name": "p", "sequence_id": number, "publish_time": number - 4} for number in (5, 6)]


def own(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(OWN | {name.replace("__", "."): values for name, values in columns.items()})


def test_columns_of_ones_own() -> None:
    def both(payloads: list[Any], **metadata: Any) -> bytes:
        frames = [
            {"command": SEND[at], "entry": {"metadata": METADATA[at] | metadata, "payload": payloads[at]}}
            for at in (0, 1)
        ]
        return b"".join(encoded(*frames, PING))

    assert build(own(entry__payload=[b"ab", b"", None])) == both([b"ab", b""])
    packed = own(entry__payload=[b"ab" * 9, b"c", None], entry__metadata__compression=["ZLIB", "ZLIB", None])
    assert build(packed) == both([{"content": b"ab" * 9}, {"content": b"c"}], compression=2)
    each = own(**{"entry__payload__payload": [b"ab", b"c", None], INDEX.replace(".", "__"): [7, 8, None]})
    inside = [[{"metadata": {"sequence_id": 7 + at}, "payload": data}] for at, data in enumerate((b"ab", b"c"))]
    assert build(each) == both(inside)


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"command__send__producer_id": [1, None, None]}, r"row 1: command\.send\.producer_id: is missing"),
        ({"command__type": ["SEND", "SEND", "PONE"]}, r"row 2: command\.type: 'PONE' is not a name"),
        ({"command__type": ["SEND", "SEND", None]}, r"row 2: command\.type: is missing, but the message requires it"),
        ({"command__type": ["SEND", "SEND", "SUBSCRIBE"]}, r"row 2: command\.subscribe\.\w+: is missing"),
        ({"command__type": ["SEND", "PING", "PING"]}, r"row 1: entry\.metadata: has a value, but the layout has no"),
        ({"entry__payload": [b"", b"", b"x"]}, r"row 2: entry\.payload: has a value, but the layout has none here"),
        ({"entry__payload": [1, 2, 3]}, r"the column entry\.payload is int64; give it as binary"),
        (
            {"entry__payload__payload": [None, b"x", None], "@index": [None] * 3},
            r"row 1: .*@index says that the list has no record",
        ),
        (
            {"entry__payload": [b"", b"", None], "@index": [0, 0, None]},
            r"row 0: entry\.payload: has bytes, but its rec",
        ),
        (
            {"entry__metadata__num_messages_in_batch": [1, None, None], "entry__payload": [b"x", b"x", None]},
            r"row 0: entry\.payload: has bytes, but the layout has records here",
        ),
        (
            {"entry__metadata__num_chunks_from_msg": [None, 3, None], "@index": [None, 0, None]},
            r"row 1: @index: the layout has no records here",
        ),
        ({"@index": [0, 1, None]}, r"row 1: command\.send\.sequence_id: differs from row 0 of the same record"),
        ({"entry__payload__ok": ["no", "yes", "no"]}, r"the column entry\.payload\.ok is string; give it as bool"),
        ({"@index": ["a", "b", "c"]}, "the column @index is string; give it as int64"),
        ({"entry__payload__nothing": [1, 2, 3]}, r"has no column 'entry\.payload\.nothing'"),
    ],
)
def test_a_value_that_does_not_fit_the_frame_is_misuse(columns: dict[str, Any], text: str) -> None:
    with pytest.raises(Misuse, match=text):
        build(own(**columns))


@pytest.mark.parametrize(("value", "failed"), UNUSUAL.values(), ids=UNUSUAL)
def test_unusual_frames_come_back_or_are_refused(value: dict[str, Any], failed: str) -> None:
    data = wirekit.encode(KEY, value)
    why = again(data)
    assert ("it was not complete" in why) == (failed in ("command.ok", "entry.metadata.ok"))
    assert not why or "it was not complete" in why


def test_a_payload_that_does_not_decompress_is_rebuilt_as_it_is() -> None:
    data = wirekit.encode(KEY, batched(3, compression=2))
    bad = data[:-8] + bytes(8)
    assert wirekit.columns(KEY, bad)["entry.payload.ok"].to_pylist() == [False]
    assert again(bad) == ""


def test_a_damaged_batch_is_refused() -> None:
    data = bytearray(wirekit.encode(KEY, batched(3)))
    data[-1 - data[::-1].index(b"k2"[::-1])] = 0xFF
    assert any(text in again(bytes(data)) for text in (DAMAGED, "it was not complete"))


@settings(max_examples=5 if CHECKED else settings().max_examples)
@given(st.lists(strategies.frames(KEY), min_size=1, max_size=5))
def test_generated_frames_come_back_or_are_refused(parts: list[bytes]) -> None:
    for part in parts:
        why = again(part)
        assert not why or any(text in why for text in (LOST, DAMAGED, "it was not complete")), why


@pytest.mark.parametrize("count", [1, 300])
def test_entries_come_back(count: int) -> None:
    value = wirekit.decode(wirekit.encode(KEY, batched(count)), KEY).value
    entry = wirekit.encode("pulsar.entry", value.entry)
    assert wirekit.build_columns("pulsar.entry", wirekit.columns("pulsar.entry", entry)) == entry
