"""AMQP 0-9-1 as an example declares it, against what pika writes and reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import wirekit
from examples.amqp import HEADER, PROTOCOL
from tests.examples.vectors import check, ids_of, vectors
from tests.own import declared
from wirekit.errors import Misuse


@pytest.fixture(autouse=True, scope="module")
def _registered() -> Iterator[None]:
    with declared(PROTOCOL):
        yield


@pytest.mark.parametrize("vector", vectors("amqp"), ids=ids_of("amqp"))
def test_frames_of_pika_are_read_and_written(vector: dict[str, Any]) -> None:
    check("amqp", vector)


def frames() -> dict[str, bytes]:
    """Frames of methods by name."""
    frames_by_name = {}
    for vector in vectors("amqp")[1:]:
        data = bytes.fromhex(vector["hex"])
        value = wirekit.decode(data, "amqp.frame").value
        frames_by_name[value.payload.method.symbol if value.type == 1 else value.type.symbol] = data
    return frames_by_name


def test_an_answer_belongs_to_the_method_on_its_channel() -> None:
    frame_by_name = frames()
    conversation = wirekit.Conversation("amqp")
    (tune,) = conversation.receive("server", frame_by_name["connection.tune"])
    requests = list(conversation.receive("client", frame_by_name["channel.open"] + frame_by_name["queue.declare"]))
    assert [frame.description.api for frame in requests] == ["channel.open", "queue.declare"]
    assert (tune.description.role, requests[1].description.correlation_id) == ("request", 1)
    (answer,) = conversation.receive("server", frame_by_name["queue.declare-ok"])
    assert answer.request is requests[1]


def test_only_a_server_tunes_a_connection() -> None:
    dialogue, frame_by_name = PROTOCOL.follow(), frames()
    names = ("connection.tune", "connection.open", "queue.declare-ok")
    senders = [dialogue.sender(wirekit.decode(frame_by_name[name], "amqp.frame")) for name in names]
    assert senders == ["server", "", ""]


def test_a_connection_begins_with_a_header_that_is_no_frame() -> None:
    conversation = wirekit.Conversation("amqp")
    first, second = conversation.receive("client", HEADER + frames()["connection.open"])
    assert first.decoded.schema == "amqp.protocol_header"
    assert second.description.api == "connection.open"


def test_tables_inside_tables_have_no_flat_columns() -> None:
    with pytest.raises(Misuse, match="is another schema"):
        wirekit.columns("amqp.frame", b"")


def test_a_table_is_bounded_in_depth() -> None:
    data = b""
    for _ in range(200):
        data = b"\x01aF" + len(data).to_bytes(4, "big") + data
    assert isinstance(wirekit.decode(len(data).to_bytes(4, "big") + data, "amqp.table").error, wirekit.errors.Limit)
