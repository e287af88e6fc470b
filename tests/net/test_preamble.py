"""Streams that begin with something else than a frame: what it is is said, and a proxy's header is read and passed."""

from __future__ import annotations

import pytest

import wirekit
from wirekit.conversation import Conversation, Frame, Quarantined, recognise

PING = wirekit.encode("pulsar.frame", {"command": {"type": "PING", "ping": {}}})
FOREIGN = {
    "a TLS handshake record": bytes.fromhex("1603010200010001fc0303") + bytes(40),
    "a TLS alert record": bytes.fromhex("15030300020228"),
    "an HTTP request": b"GET /admin/v2 HTTP/1.1\r\nHost: broker\r\n\r\n",
    "an HTTP response": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "SSH": b"SSH-2.0-OpenSSH_9.6\r\n",
}
HEADERS = {
    "net.proxy_v1": b"PROXY TCP4 192.168.0.1 192.168.0.11 56324 6650\r\n",
    "net.proxy_v2": bytes.fromhex("0d0a0d0a000d0a515549540a2111000f0a0000010a000002303919fa") + bytes.fromhex("040000"),
}


@pytest.mark.parametrize("protocol", ["kafka", "pulsar", "jmq4", "joyqueue"])
@pytest.mark.parametrize(("title", "data"), FOREIGN.items(), ids=FOREIGN)
def test_bytes_of_a_foreign_protocol_are_named(protocol: str, title: str, data: bytes) -> None:
    decoded = next(wirekit.frames(protocol, data))
    assert decoded.error is not None
    assert f"these bytes are {title}" in str(decoded.error)
    assert title in decoded.error.to_json()["message"]


@pytest.mark.parametrize(("title", "data"), FOREIGN.items(), ids=FOREIGN)
def test_a_conversation_names_it_too(title: str, data: bytes) -> None:
    conversation = Conversation("pulsar")
    events = conversation.receive("client", data) + conversation.close()
    (lost,) = [event for event in events if isinstance(event, Quarantined)]
    assert lost.data == data
    assert f"these bytes are {title}" in lost.reason
    recognised = recognise(data, b"")
    assert not recognised.protocol
    assert title in recognised.reason


def test_frames_inside_other_data_are_not_explained() -> None:
    decoded = wirekit.decode(FOREIGN["an HTTP request"], "pulsar.command")
    assert decoded.error is not None
    assert "HTTP" not in str(decoded.error)


@pytest.mark.parametrize(("key", "header"), HEADERS.items(), ids=HEADERS)
def test_a_proxys_header_is_read_and_the_frame_after_it_decodes(key: str, header: bytes) -> None:
    decoded = list(wirekit.frames("pulsar", header + PING))
    assert [(each.schema, each.offset, each.consumed) for each in decoded] == [
        (key, 0, len(header)),
        ("pulsar.frame", len(header), len(PING)),
    ]
    assert all(each.clean for each in decoded)
    assert wirekit.encode(key, decoded[0].value) == header
    assert wirekit.encode(key, wirekit.to_json(decoded[0].value)) == header
    recognised = recognise(header + PING, b"")
    assert recognised.protocol == "pulsar"


@pytest.mark.parametrize(("key", "header"), HEADERS.items(), ids=HEADERS)
def test_byte_by_byte(key: str, header: bytes) -> None:
    conversation = Conversation("pulsar")
    frames = []
    for byte in header + PING:
        events = conversation.receive("client", bytes([byte]))
        frames += [event for event in events if isinstance(event, Frame)]
        assert not [event for event in events if isinstance(event, Quarantined)]
    assert [(frame.schema, frame.offset, len(frame.data)) for frame in frames] == [
        (key, 0, len(header)),
        ("pulsar.frame", len(header), len(PING)),
    ]


@pytest.mark.parametrize("size", range(1, len(HEADERS["net.proxy_v1"])))
def test_a_cut_header_waits_and_then_is_left_over(size: int) -> None:
    conversation = Conversation("pulsar")
    assert conversation.receive("client", HEADERS["net.proxy_v1"][:size]) == [wirekit.NEED_DATA]
    (lost,) = conversation.close()
    assert isinstance(lost, Quarantined)
    assert len(lost.data) == size


def test_a_header_without_an_end_is_no_header() -> None:
    data = b"PROXY " + b"x" * 200
    (lost,) = Conversation("pulsar").receive("client", data[:106])
    assert lost is wirekit.NEED_DATA
    conversation = Conversation("pulsar")
    conversation.receive("client", data)
    (lost,) = conversation.close()
    assert isinstance(lost, Quarantined)
    assert "a PROXY protocol version 1 header" in lost.reason
