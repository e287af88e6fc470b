"""All that is compressed in one input is bounded together: on every engine, with the same error at the same piece."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

import pytest

import wirekit
from tests.kafka.golden import message, message_set
from wirekit.compiler.engines import DECODERS
from wirekit.errors import Limit

KEY = "kafka.message_set"
PLAIN = message_set(message(bytes(400)))
LIMITS = wirekit.Limits(decompressed=5 * len(PLAIN) + 10, total_ratio=1)


def packed(count: int, value: bytes = bytes(400)) -> bytes:
    """A set of so many sets of one message."""
    return message_set(*(message([message(value)], offset=number, codec="GZIP") for number in range(count)))


def nested(depth: int) -> bytes:
    inside = message(bytes(400))
    for _ in range(depth):
        inside = message([inside], codec="GZIP")
    return message_set(inside)


@pytest.mark.parametrize("engine", DECODERS)
def test_values_decompressed_before_the_limit_are_kept(engine: str) -> None:
    decoded = wirekit.decode(packed(9), KEY, limits=LIMITS, engine=engine, offset=1000)
    error = decoded.error
    assert isinstance(error, Limit)
    assert (error.limit, error.allowed, error.path) == (
        "decompressed_total",
        LIMITS.decompressed,
        "messages[5].message.value",
    )
    assert error.actual > LIMITS.decompressed
    assert error.offset == 1000 + len(packed(6))
    assert [each.message.value.content.messages[0].message.value for each in decoded.value.messages[:5]] == [
        bytes(400)
    ] * 5
    assert wirekit.decode(packed(5), KEY, limits=LIMITS, engine=engine).clean


@pytest.mark.parametrize("engine", DECODERS)
def test_pieces_inside_others_count_too(engine: str) -> None:
    assert wirekit.decode(nested(3), KEY, engine=engine).clean
    sizes = [len(wirekit.decode(nested(depth), KEY).sources[0][0]) for depth in (1, 2, 3)]
    for less, status in ((0, True), (1, False)):
        limits = wirekit.Limits(decompressed=sum(sizes) - less, total_ratio=1)
        decoded = wirekit.decode(nested(3), KEY, limits=limits, engine=engine)
        assert decoded.clean == status
    assert isinstance(decoded.error, Limit)
    assert decoded.error.limit == "decompressed_total"


@pytest.mark.parametrize("engine", DECODERS)
def test_the_total_grows_with_the_input(engine: str) -> None:
    data = packed(2000)
    ratio = -(-2000 * len(PLAIN) // len(data))
    for total, good in ((ratio, True), (ratio - 1, False)):
        limits = wirekit.Limits(decompressed=2 * len(PLAIN), total_ratio=total)
        assert (wirekit.decode(data, KEY, limits=limits, engine=engine).error is None) == good


def test_columns_refuse_the_same_piece() -> None:
    pytest.importorskip("numba")
    from wirekit.compiler.columns import scan

    batch, errors = scan(KEY, packed(9), limits=LIMITS)
    assert batch["message.value"].to_pylist() == [bytes(400)] * 5
    assert errors["kind"].to_pylist() == ["limit"] * 4
    assert errors["path"].to_pylist() == ["message.value"] * 4
    assert errors["offset"].to_pylist() == [len(packed(count)) for count in (5, 6, 7, 8)]
    reference = wirekit.decode(packed(9), KEY, limits=LIMITS).error
    assert reference is not None
    assert errors["reason"][0].as_py() == reference.reason
    assert not scan(KEY, packed(5), limits=LIMITS)[1].num_rows
    for depth in (3, 4):
        limits = wirekit.Limits(decompressed=sum(len(source) for source, _ in wirekit.decode(nested(3), KEY).sources))
        errors_of_columns = scan(
            KEY, nested(depth), limits=wirekit.Limits(decompressed=limits.decompressed, total_ratio=1)
        )[1]
        assert errors_of_columns["kind"].to_pylist() == ["limit"] * (depth - 3)


def test_payloads_that_columns_open_are_bounded_together() -> None:
    pytest.importorskip("numba")
    from wirekit.compiler.columns import scan

    metadata = {
        "producer_name": "p",
        "sequence_id": 1,
        "publish_time": 1,
        "compression": "ZLIB",
        "uncompressed_size": 900,
    }
    entry = {"metadata": metadata, "payload": {"content": bytes(900)}}
    command = {"type": "SEND", "send": {"producer_id": 1, "sequence_id": 7}}
    frame = wirekit.encode("pulsar.frame", {"command": command, "entry": entry})
    batch, errors = scan("pulsar.frame", frame * 5, limits=wirekit.Limits(decompressed=2000, total_ratio=1))
    assert batch["entry.payload"].to_pylist() == [bytes(900)] * 2
    assert errors["offset"].to_pylist() == [len(frame) * number for number in (2, 3, 4)]
    assert all("of 2000 (decompressed_total)" in reason for reason in errors["reason"].to_pylist())


@pytest.mark.parametrize("engine", DECODERS)
def test_a_megabyte_does_not_become_a_gigabyte(engine: str) -> None:
    value = random.Random(1).randbytes(1000) + bytes(4 << 20)
    data = 190 * message_set(message([message(value)], codec="GZIP"))
    assert len(data) < 1 << 20
    decoded = wirekit.decode(data, KEY, engine=engine)
    assert sum(len(plain) for plain, _ in decoded.sources) <= wirekit.Limits().decompressed
    assert isinstance(decoded.error, Limit)
    assert (decoded.error.limit, decoded.error.path) == ("memory", "messages[31].message.value")
    decoded = wirekit.decode(data, KEY, limits=wirekit.Limits(memory=1 << 30), engine=engine)
    assert isinstance(decoded.error, Limit)
    assert (decoded.error.limit, decoded.error.path) == ("decompressed_total", "messages[63].message.value")


@pytest.mark.parametrize("engine", ["rows", "columns"])
def test_a_segment_is_read_in_parts_that_may_grow_so_much(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However well its sets are compressed, a segment is read to its end; but a set that is too much alone ends it."""
    from wirekit.protocols.kafka import segment_file

    if engine == "columns":
        pytest.importorskip("numba")
        from wirekit.protocols.kafka import columns

        monkeypatch.setattr(columns, "scan", partial(columns.scan, limits=LIMITS))
        pieces_of_file = columns.pieces_of_file
    else:
        pieces_of_file = segment_file.pieces_of_file
    monkeypatch.setattr(segment_file, "decode", partial(segment_file.decode, limits=LIMITS))
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(packed(23))
    pieces = list(pieces_of_file(str(path)))
    assert [piece.length for piece in pieces] == [*[len(packed(5))] * 4, len(packed(3))]
    assert not any(piece.errors for piece in pieces)
    assert [each.value for piece in pieces for each in piece.all_messages()] == [bytes(400)] * 23

    path.write_bytes(packed(3) + packed(1, bytes(LIMITS.decompressed)) + packed(1))
    pieces = list(pieces_of_file(str(path)))
    assert [each.value for piece in pieces for each in piece.all_messages()][:3] == [bytes(400)] * 3
    assert [error.offset for piece in pieces for error in piece.errors] == [path.stat().st_size - len(packed(1))]
