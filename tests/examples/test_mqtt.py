"""MQTT 3.1.1 and 5 as an example declares them, against what paho writes and reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import wirekit
from examples.mqtt import PROTOCOL
from tests.examples.vectors import check, ids_of, vectors
from tests.own import declared
from wirekit.errors import Wrong


@pytest.fixture(autouse=True, scope="module")
def _registered() -> Iterator[None]:
    with declared(PROTOCOL):
        yield


@pytest.mark.parametrize("vector", vectors("mqtt"), ids=ids_of("mqtt"))
def test_packets_of_paho_are_read_and_written(vector: dict[str, Any]) -> None:
    check("mqtt", vector)


def packets(level: int, *, server: bool = False) -> list[bytes]:
    """Those of one side and version."""
    frames = [bytes.fromhex(each["hex"]) for each in vectors("mqtt") if each["context"]["level"] == level]
    return [data for data in frames if (data[0] >> 4 in (2, 9, 13) or data[:2] == b"\x40\x09") == server]


def test_a_connection_has_the_version_that_its_first_packet_names() -> None:
    conversation = wirekit.Conversation("mqtt")
    sent = list(conversation.receive("client", b"".join(packets(5))))
    assert [frame.description.api for frame in sent][:3] == ["CONNECT", "PUBLISH", "PUBLISH"]
    assert all(frame.decoded.clean for frame in sent)
    (connack,) = conversation.receive("server", packets(5, server=True)[0])
    assert connack.request is sent[0]
    assert connack.value.body.properties[0].value == "auto"
    (suback,) = conversation.receive("server", bytes.fromhex("90040001") + b"\x00\x01")
    assert suback.request is not None
    assert suback.request.description.api == "SUBSCRIBE"


def test_a_response_belongs_to_a_request_of_the_other_side() -> None:
    conversation = wirekit.Conversation("mqtt")
    conversation.receive("client", packets(4)[0])
    publish = bytes.fromhex("3407000161") + b"\x00\x0ahi"
    (theirs,) = conversation.receive("server", publish)
    (ours,) = conversation.receive("client", publish)
    (received,) = conversation.receive("client", bytes.fromhex("5002000a"))
    assert received.request is theirs
    (received,) = conversation.receive("server", bytes.fromhex("5002000a"))
    assert received.request is ours


def test_columns_of_packets() -> None:
    batch = wirekit.columns("mqtt.packet", b"".join(packets(5)), context={"level": 5})
    assert batch["header.type"].to_pylist()[:3] == [1, 3, 3]
    assert batch["body.topic"].to_pylist()[:3] == [None, "a/b", "a/b"]
    assert batch["remaining_length"].to_pylist()[1] > 127
    assert wirekit.build_columns("mqtt.packet", batch, context={"level": 5}) == b"".join(packets(5))


def test_a_remaining_length_of_five_bytes_is_malformed() -> None:
    decoded = wirekit.decode(bytes.fromhex("30ffffffff01"), "mqtt.packet")
    assert isinstance(decoded.error, Wrong)
    assert (decoded.error.path, decoded.error.offset) == ("remaining_length", 1)
