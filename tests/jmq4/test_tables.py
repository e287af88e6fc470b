"""The tables of JMQ4, by both roads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numba")

import wirekit
from tests.jmq4.test_dialogue import golden
from tests.road.law import assert_same
from tests.road.test_pairing import capture


def frame(name: str, request_id: int, **payload: Any) -> bytes:
    value = wirekit.decode(golden(name), "joyqueue.frame").value
    value.request_id = request_id
    for field, each in payload.items():
        value.payload[field] = each
    return wirekit.encode("joyqueue.frame", value)


def rows(path: Path, table: str) -> list[dict[str, Any]]:
    assert_same(path)
    return [row for batch in wirekit.read(path, table=table) for row in batch.to_pylist()]


def test_the_client_of_a_call_is_the_app_of_its_request(tmp_path: Path) -> None:
    """Not that of the connection, which may be without the name of a group."""
    path = capture(
        tmp_path / "joyqueue.pcap",
        (0, frame("add_connection_request_min", 1, app="demo")),
        (1, frame("add_connection_response_notification", 1)),
        (0, frame("add_consumer_request", 2, app="demo.group")),
        (1, frame("add_consumer_response", 2)),
        (0, frame("heartbeat_request_v4", 3)),
        (1, frame("boolean_ack_success", 3)),
        port=50088,
    )
    clients = {row["api"]: row["client"] for row in rows(path, "calls")}
    assert clients == {"ADD_CONNECTION": "demo", "ADD_CONSUMER": "demo.group", "HEARTBEAT": "demo"}


def test_the_size_of_a_compressed_message_is_that_after_decompression(tmp_path: Path) -> None:
    plain, packed = golden("produce_message_plain"), golden("produce_message_zip")
    (row,) = rows(capture(tmp_path / "zip.pcap", (0, packed), port=50088), "messages")
    (record,) = wirekit.decode(packed, "joyqueue.frame").value.payload.topics[0].messages
    assert row["wire_bytes"] == record.length - len(record.body) + len(row["value"])
    (row,) = rows(capture(tmp_path / "plain.pcap", (0, plain), port=50088), "messages")
    (record,) = wirekit.decode(plain, "joyqueue.frame").value.payload.topics[0].messages
    assert row["wire_bytes"] == record.length
