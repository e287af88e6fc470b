"""Cut and damaged bytes give a value as far as it goes and an error that says where, never anything else."""

from __future__ import annotations

import random

import pytest

import wirekit
from tests.kafka.golden import PDUS, Pdu, first, message, message_set


def sample(api: str, side: str, longer: int) -> Pdu:
    """The shortest captured PDU with more than so many bytes."""
    pdus = [pdu for pdu in PDUS if (pdu.api, pdu.side) == (api, side) and len(pdu.data) > longer]
    return min(pdus, key=lambda pdu: len(pdu.data))


CUT = [
    sample("produce", "request", 400),
    first("produce", "response", 2),
    first("metadata", "response", 2),
    first("join_group", "request", 1),
    first("update_metadata", "request", 3),
    first("controlled_shutdown", "request", 0),
    first("describe_groups", "response", 0),
    min(
        (p for p in PDUS if p.api == "fetch" and p.side == "response" and len(p.data) > 400), key=lambda p: len(p.data)
    ),
]


@pytest.mark.parametrize("pdu", CUT, ids=str)
def test_cut_at_every_length(pdu: Pdu) -> None:
    whole = wirekit.decode(pdu.data, pdu.key).value
    for length in range(len(pdu.data)):
        decoded = wirekit.decode(pdu.data[:length], pdu.key, offset=1000)
        error = decoded.error
        assert isinstance(error, wirekit.Short), length
        assert error.path
        assert error.offset is not None
        assert 1000 <= error.offset <= 1000 + length
        assert error.available < error.needed
        for name, value in decoded.value.items():
            if name not in ("body", "size"):
                assert value == whole[name]


@pytest.mark.parametrize("pdu", CUT, ids=str)
def test_bytes_after_the_frame_are_left_alone(pdu: Pdu) -> None:
    decoded = wirekit.decode(pdu.data + b"next", pdu.key)
    assert decoded.clean
    assert decoded.consumed == len(pdu.data)


def test_value_goes_as_far_as_the_bytes() -> None:
    pdu = first("metadata", "response", 2)
    whole = wirekit.decode(pdu.data, pdu.key).value
    value = wirekit.decode(pdu.data[:-1], pdu.key).value
    assert value.body.brokers == whole.body.brokers
    assert value.body.topic_metadata[:-1] == whole.body.topic_metadata[:-1]
    last = value.body.topic_metadata[-1].partition_metadata[-1]
    assert last.replicas == whole.body.topic_metadata[-1].partition_metadata[-1].replicas
    assert last.isr == whole.body.topic_metadata[-1].partition_metadata[-1].isr[:-1]


@pytest.mark.parametrize("pdu", CUT, ids=str)
def test_any_flipped_byte_gives_a_value_or_one_of_our_errors(pdu: Pdu) -> None:
    """And what decodes without an error is rebuilt as it was."""
    dice = random.Random(7)
    for at in range(len(pdu.data)):
        data = bytearray(pdu.data)
        data[at] ^= 1 << dice.randrange(8)
        decoded = wirekit.decode(bytes(data), pdu.key)
        if decoded.error is None:
            assert wirekit.encode(pdu.key, decoded.value) == bytes(data[: decoded.consumed])
        else:
            assert isinstance(decoded.error, (wirekit.Short, wirekit.Wrong, wirekit.Limit))


def test_count_beyond_the_bytes_is_short_before_anything_is_read() -> None:
    data = bytes.fromhex("0000000f 0003 0000 00000001 0001 63 7fffffff")
    decoded = wirekit.decode(data, "kafka.request")
    assert isinstance(decoded.error, wirekit.Short)
    assert decoded.error.path == "body.topics"


def test_strict_raises_the_first_complaint() -> None:
    data = message_set(message(b"value"))
    with pytest.raises(EOFError):
        wirekit.decode(data[12:-1], "kafka.message", strict=True)
    with pytest.raises(wirekit.Wrong, match="crc"):
        wirekit.decode(data[:-1] + b"!", "kafka.message_set", strict=True)
