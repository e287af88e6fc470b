"""Every byte of a connection ends in one table or one count, whatever the capture lost."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wirekit
from tests.conftest import FIXTURES
from tests.pipeline.helpers import batches, follow_rows, job_of, stream
from wirekit.capture.files import open_capture, segments
from wirekit.capture.follow import follow
from wirekit.capture.tcp import Segment
from wirekit.conversation import ENDED_INSIDE, Frame
from wirekit.pipeline import rows as pipeline_rows
from wirekit.pipeline.flows import flow_batches
from wirekit.pipeline.ids import connection_id, frame_id
from wirekit.pipeline.rows import Rows
from wirekit.pipeline.summary import LOST
from wirekit.tables.records import Frames, records
from wirekit.values import json_text as json_line

CAPTURES = sorted((FIXTURES / "pcap").glob("*.pcap*"))
SPENT = ("frames", "quarantined", "duplicate", "ignored")


def read(path: Path) -> list[Segment]:
    with open_capture(path) as capture:
        return [each for each in segments(capture) if isinstance(each, Segment)]


def assert_conserved(tables: dict[str, list[dict[str, Any]]]) -> None:
    for row in tables["connections"]:
        for side in ("client", "server"):
            assert row[f"{side}_captured"] == sum(row[f"{side}_{fate}"] for fate in SPENT), row
            of_side = [
                [
                    each
                    for each in tables[table]
                    if (each["connection_id"], each["side"]) == (row["connection_id"], side)
                ]
                for table in ("frames", "quarantine", "gaps")
            ]
            sizes = [sum(each["length"] for each in rows) for rows in of_side]
            assert sizes == [row[f"{side}_{fate}"] for fate in ("frames", "quarantined", "missing")]
            ranges = sorted((each["position"], each["length"]) for rows in of_side for each in rows)
            position = 0
            for offset, length in ranges:
                assert offset == position, f"{row['connection_id']} {side}"
                position += length


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_bytes_of_a_real_capture_are_conserved(path: Path) -> None:
    tables, summary = follow_rows(read(path))
    assert_conserved(tables)
    counted = summary.file("0.pcap")
    cut = [row for row in tables["quarantine"] if row["reason"] == ENDED_INSIDE and row["schema"] is not None]
    frames = len(tables["frames"]) + len(cut)
    assert counted.roles("request") + counted.roles("response") + counted.roles("event") == frames
    assert sum(counted.messages.values()) == len(tables["messages"])
    assert counted.quarantined_bytes == sum(row["length"] for row in tables["quarantine"])


SOME = read(FIXTURES / "pcap" / "pulsar-comp_lz4.pcap")


@given(st.data())
def test_bytes_of_a_capture_with_losses_are_conserved(data: st.DataObject) -> None:
    lost = data.draw(st.sets(st.integers(0, len(SOME) - 1), max_size=len(SOME) // 2))
    again = data.draw(st.lists(st.integers(0, len(SOME) - 1), max_size=5))
    captured = [segment for number, segment in enumerate(SOME) if number not in lost]
    tables, _ = follow_rows(captured + [SOME[number]._replace(offset=10**6 + number) for number in again])
    assert_conserved(tables)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_frames_are_those_of_the_frames_command(path: Path) -> None:
    tables, _ = follow_rows(read(path), values=True)
    expected = [(link, item) for link, item in follow(read(path)) if isinstance(item, Frame)]
    whole = {
        frame_id(connection_id("0.pcap", link.client, link.server, link.ordinal), each.side, each.offset): each
        for link, each in expected
        if each.decoded.error is None and each.wrong is None
    }
    mine = {row["frame_id"]: row for row in tables["frames"]}
    assert {key: (row["schema"], row["length"]) for key, row in mine.items()} == {
        key: (each.schema, len(each.data)) for key, each in whole.items()
    }
    for key, each in whole.items():
        text, value = mine[key]["value"], json_line(wirekit.to_json(each.value))
        if records(each.protocol).messages(each.schema, Frames(each.value)) is None:
            assert text == value
        else:
            assert len(text) < len(value)
            assert not [hex for m in each.messages if (hex := (m.value or b"")[:16].hex()) in text and len(hex) > 8]
    assert len(tables["messages"]) == sum(len(each.messages) for _, each in expected)


def test_a_frame_row_has_the_decoded_fields() -> None:
    request = wirekit.encode("kafka.list_groups.request.v0", {"correlation_id": 7, "client_id": "me", "body": {}})
    answer = wirekit.encode(
        "kafka.list_groups.response.v0", {"correlation_id": 7, "body": {"error_code": 0, "groups": []}}
    )
    tables, _ = follow_rows(stream(request, answer), values=True)
    request_row, answered = tables["frames"]
    assert (request_row["side"], request_row["role"], answered["side"], answered["role"]) == (
        "client",
        "request",
        "server",
        "response",
    )
    assert (answered["api"], answered["version"], answered["correlation_id"]) == ("list_groups", 0, 7)
    assert request_row["call_id"] == answered["call_id"] == request_row["frame_id"] != answered["frame_id"]
    assert request_row["position"] == answered["position"] == 0
    assert (answered["schema"], answered["length"]) == ("kafka.list_groups.response.v0", len(answer))
    assert wirekit.from_json(request_row["schema"], json.loads(request_row["value"])).client_id == "me"
    assert (answered["checks_bad"], answered["checks"], answered["gaps"]) == (0, [], [])


def test_unknown_bytes_are_quarantined() -> None:
    sent = b"\xff" * 5000
    tables, summary = follow_rows(stream(sent))
    assert not tables["frames"]
    pieces = sorted(tables["quarantine"], key=lambda row: row["position"])
    assert b"".join(row["raw"] for row in pieces) == sent
    assert {(row["protocol"], row["schema"], row["part"]) for row in pieces} == {("", None, 0)}
    assert summary.quarantined


def test_a_frame_that_nobody_can_decode_is_quarantined_in_parts() -> None:
    body = bytes(range(250)) * 10_000
    response = (4 + len(body)).to_bytes(4, "big") + (7).to_bytes(4, "big") + body
    tables, summary = follow_rows(stream(b"", response, size=60_000), protocol="kafka")
    parts = sorted(tables["quarantine"], key=lambda row: row["part"])
    assert [row["part"] for row in parts] == [0, 1, 2]
    assert [row["position"] for row in parts] == [0, 1 << 20, 2 << 20]
    assert [len(row["raw"]) for row in parts] == [row["length"] for row in parts]
    assert b"".join(row["raw"] for row in parts) == response
    assert {row["reason"] for row in parts} == {"no request has correlation id 7"}
    assert summary.file("0.pcap").quarantine == {
        (LOST, "pieces"): 1,
        (LOST, "bytes"): len(response),
    }


def test_raw_bytes_can_be_left_out() -> None:
    tables, _ = follow_rows(stream(b"\xff" * 5000), raw=False)
    assert sum(row["length"] for row in tables["quarantine"]) == 5000
    assert {row["raw"] for row in tables["quarantine"]} == {None}


def test_batches_are_bounded_however_the_packets_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_rows, "Rows", functools.partial(Rows, batch_rows=300))
    ping = wirekit.encode("pulsar.frame", {"command": {"type": 18, "ping": {}}})
    packets = stream(ping * 1000, size=1300)
    for size in (500, 9):
        sizes = [batch.num_rows for name, batch in flow_batches(batches(packets, size), job_of()) if name == "frames"]
        assert sizes == [300, 300, 300, 100]


@pytest.mark.parametrize("answered", [False, True])
def test_rows_of_one_frame_are_given_as_batches_fill(answered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row has the topic, so rows may have far more bytes than the frame."""
    monkeypatch.setattr(pipeline_rows, "Rows", functools.partial(Rows, batch_bytes=1 << 20))
    partitions = [{"partition": number} for number in range(1000)]
    topics = [{"topic": "t" * 30_000, "partitions": partitions}]
    question = {"correlation_id": 1, "client_id": "c", "body": {"group_id": "g", "topics": topics}}
    request = wirekit.encode("kafka.offset_fetch.request.v0", question)
    response = wirekit.encode("kafka.offset_fetch.response.v0", {"correlation_id": 1, "body": {"responses": []}})
    before, most, rows = pa.total_allocated_bytes(), 0, 0
    rows_of_tables = flow_batches(batches(stream(request, response if answered else b"")), job_of())
    for name, batch in rows_of_tables:
        most = max(most, pa.total_allocated_bytes() - before)
        rows += batch.num_rows if name == "call_topics" else 0
    assert rows == 1000
    assert most < 8 << 20


def test_flows_of_several_captures_stay_apart() -> None:
    ping = wirekit.encode("pulsar.frame", {"command": {"type": 18, "ping": {}}})
    packets = stream(ping, file=0) + stream(ping + ping, file=1)
    batches_found = [batch for name, batch in flow_batches(batches(packets), job_of(2)) if name == "connections"]
    connections = sorted((row["file"], row["client_frames"]) for batch in batches_found for row in batch.to_pylist())
    assert connections == [("0.pcap", len(ping)), ("1.pcap", 2 * len(ping))]
