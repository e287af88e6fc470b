"""What real clients and brokers said decodes without complaint, and is rebuilt byte for byte."""

from __future__ import annotations

import json

import pytest

import wirekit
from tests.kafka.golden import BROKEN, PDUS, Pdu
from wirekit.schemas.kafka import PROTOCOL

pdus = pytest.mark.parametrize("pdu", PDUS, ids=str)


@pdus
def test_decodes_and_rebuilds(pdu: Pdu) -> None:
    decoded = wirekit.decode(pdu.data, pdu.key)
    assert decoded.error is None
    assert decoded.consumed == len(pdu.data)
    assert decoded.gaps == []
    assert decoded.clean == (str(pdu) not in BROKEN)
    assert wirekit.encode(pdu.key, decoded.value) == pdu.data


@pdus
def test_json_round_trip(pdu: Pdu) -> None:
    value = wirekit.decode(pdu.data, pdu.key).value
    text = json.loads(json.dumps(wirekit.to_json(value)))
    assert wirekit.from_json(pdu.key, text) == value
    assert wirekit.encode(pdu.key, text) == pdu.data


@pdus
def test_frame_of_any_api(pdu: Pdu) -> None:
    """``kafka.request`` and ``kafka.response`` give the same value as the key of the API version."""
    key = f"kafka.{pdu.side}"
    context = {"api": pdu.api, "version": pdu.version} if pdu.side == "response" else {}
    decoded = wirekit.decode(pdu.data, key, context=context)
    value = wirekit.decode(pdu.data, pdu.key).value
    if pdu.key == "kafka.controlled_shutdown.request.v0":
        assert decoded.value.client_id is None
        value = {**dict(value.items()), "client_id": None}
    assert decoded.value == value
    assert wirekit.encode(key, decoded.value, context=context) == pdu.data


def test_broken_crcs_are_reported_and_kept() -> None:
    for pdu in PDUS:
        if str(pdu) not in BROKEN:
            continue
        decoded = wirekit.decode(pdu.data, pdu.key)
        (check,) = decoded.checks
        assert (check.kind, check.status) == ("crc32", "bad")
        assert check.path == "body.topic_data[0].data[0].record_set.messages[0].message.crc"
        decoded.value.body.topic_data[0].data[0].record_set.messages[0].message._extra = None
        assert wirekit.decode(wirekit.encode(pdu.key, decoded.value), pdu.key).clean


def test_only_the_listed_versions_are_absent_from_the_captures() -> None:
    """The tables hold all versions; these were not spoken between the captured clients and brokers."""
    declared = {f"kafka.{name}" for name in PROTOCOL.layouts if ".v" in name and not name.startswith("consumer_")}
    assert declared - {pdu.key for pdu in PDUS} == {
        "kafka.fetch.response.v0.untimed",
        "kafka.fetch.response.v1.untimed",
        "kafka.offset_commit.request.v0.beta",
        "kafka.produce.request.v0.untimed",
        "kafka.produce.request.v1.untimed",
        "kafka.update_metadata.request.v2",
        "kafka.update_metadata.response.v2",
    }
