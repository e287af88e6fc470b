"""Compressed messages that are many times larger than the capture: only a part of them is in memory at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("numba")

import wirekit
from tests.pulsar.commands import c, connect, entry, producer, receipt, send
from tests.road.law import CAPTURES, assert_same
from tests.road.test_long_names import in_packets, produced
from tests.road.test_pairing import capture
from wirekit import engine
from wirekit.compiler.rows import messages
from wirekit.pipeline.inputs import Job, find_inputs
from wirekit.pipeline.summary import Summary
from wirekit.protocols.pulsar import columns as pulsar
from wirekit.registry import registry
from wirekit.road import contents
from wirekit.road.tables import captured
from wirekit.tables import scopes
from wirekit.tables.columns import FROM_INPUTS
from wirekit.wire.stream import Limits

VALUE = 100_000
COUNT = 40


def in_wrappers() -> list[tuple[int, bytes]]:
    """Kafka requests with a wrapper of 1 MB each."""
    return [
        each for number in range(COUNT) for each in produced(10, 10, value=bytes(VALUE), wrapped=True, number=number)
    ]


def in_payloads() -> list[tuple[int, bytes]]:
    """Pulsar's entries with a payload of 1 MB each."""
    payload = (Random(1).randbytes(100) + bytes(9_900)) * (VALUE // 1000)
    content = entry({"content": payload}, compression="ZLIB", uncompressed_size=len(payload))
    commands = [
        *connect(),
        *producer(),
        *(each for number in range(COUNT) for each in (send(number, content), receipt(number))),
    ]
    return [(0 if each.side == "client" else 1, each.data) for each in commands]


@pytest.mark.parametrize("pieces_of", [in_wrappers, in_payloads])
def test_messages_are_made_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pieces_of: Any) -> None:
    path = capture(tmp_path / "large.pcap", *in_packets(pieces_of()))
    monkeypatch.setattr(scopes, "OPENED_AT_ONCE", 2 * VALUE * 10)
    monkeypatch.setattr(contents, "KEPT", VALUE * 10)
    job = Job(find_inputs([path]), road="columns")
    most, values = 0, []
    for name, batch in captured(job.inputs, job, Summary(), FROM_INPUTS) or ():
        most = max(most, pa.total_allocated_bytes())
        if name == "messages":
            values += [len(value) for value in batch["value"].to_pylist()]
    assert sum(values) == COUNT * 10 * VALUE
    assert most < COUNT * 10 * VALUE // 2


@pytest.mark.parametrize("compressed", [False, True])
def test_a_batch_with_more_messages_than_memory_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compressed: bool
) -> None:
    """Objects do not decode it, so columns must not either, and they read only a part of it."""
    limits, read = Limits(memory=200_000, memory_ratio=0), []
    monkeypatch.setattr(registry, "protocol", lambda name, real=registry.protocol: replace(real(name), limits=limits))

    def counted(*args: Any, real: Any = pulsar.scan_lists, **options: Any) -> Any:
        scanned = real(*args, **options)
        read.append(scanned[0].num_rows)
        return scanned

    monkeypatch.setattr(pulsar, "scan_lists", counted)
    for count in (10, 2000):
        messages = [{"metadata": {"payload_size": 1}, "payload": b"x"}] * count
        size = len(wirekit.encode("pulsar.batch", {"messages": messages}))
        how = {"compression": "ZLIB", "uncompressed_size": size} if compressed else {}
        content = {"content": messages} if compressed else messages
        commands = [*connect(), *producer(), send(1, entry(content, num_messages_in_batch=count, **how)), receipt(1)]
        sides = [(0 if each.side == "client" else 1, each.data) for each in commands]
        path = capture(tmp_path / f"{count}.pcap", *in_packets(sides))
        read.clear()
        assert bool(assert_same(path).get("quarantine")) == (count == 2000)
        assert 0 < max(read) < 400


@pytest.mark.parametrize("kind", ["PRODUCER", "SEND"])
@pytest.mark.parametrize("compressed", [0, 1])
def test_metadata_beyond_the_memory_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, compressed: int
) -> None:
    """Objects do not decode such a frame, so columns must not either."""
    limits = Limits(memory=100_000, memory_ratio=0)
    monkeypatch.setattr(registry, "protocol", lambda name, real=registry.protocol: replace(real(name), limits=limits))
    for count in (1, 4000):
        many = [{"key": "", "value": ""}] * count
        if kind == "PRODUCER":
            opening = c(kind, topic="t", producer_id=1, request_id=10, metadata=many)
            commands = [*connect(), opening, *producer()[1:], send(1), receipt(1)]
        else:
            how = {"compression": "ZLIB", "uncompressed_size": 1} if compressed else {}
            content = entry({"content": b"x"} if compressed else b"x", properties=many, **how)
            commands = [*connect(), *producer(), send(1, content), receipt(1)]
        path = capture(tmp_path / f"{count}.pcap", *in_packets([(int(x.side == "server"), x.data) for x in commands]))
        assert bool(assert_same(path).get("quarantine")) == (count == 4000)


def test_a_frame_beyond_the_memory_limit_is_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Generated code refuses it, and objects explain why; no engine reads it twice."""
    limits, attempts = Limits(memory=100_000, memory_ratio=0), []
    monkeypatch.setattr(registry, "protocol", lambda name, real=registry.protocol: replace(real(name), limits=limits))
    opening = c("PRODUCER", topic="t", producer_id=1, request_id=10, metadata=[{"key": "", "value": ""}] * 4000)

    def counted(name: str, real: Any) -> Any:
        def attempt(*args: Any, **options: Any) -> Any:
            attempts.extend([name] if opening.data in args else [])
            return real(*args, **options)

        return attempt

    for name in ("by_rows", "by_reference"):
        monkeypatch.setattr(engine, name, counted(name, getattr(engine, name)))
    # the generic reader inside generated code, for messages in another form
    monkeypatch.setattr(messages, "parse_message", lambda *args: attempts.append("generic"))
    monkeypatch.setattr(engine, "TIMES_BEFORE_COMPILING", 0)
    commands = [*connect(), opening, *producer()[1:], send(1), receipt(1)]
    path = capture(tmp_path / "large.pcap", *in_packets([(int(x.side == "server"), x.data) for x in commands]))
    job = Job(find_inputs([path]), road="columns")
    tables = {name for name, _ in captured(job.inputs, job, Summary(), FROM_INPUTS) or ()}
    assert "quarantine" in tables
    assert attempts == ["by_rows", "by_reference"]


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_tables_do_not_depend_on_the_parts(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scopes, "OPENED_AT_ONCE", 0)
    monkeypatch.setattr(contents, "KEPT", 0)
    assert_same(path)
