"""Layouts that are easily got wrong: headers, nulls, order of fields, releases of their own."""

from __future__ import annotations

from typing import Any

import pytest

import wirekit
from tests.kafka.golden import first, sized

HEADER: dict[str, Any] = {"correlation_id": 1, "client_id": "c"}


def test_controlled_shutdown_v0_has_no_client_id() -> None:
    data = wirekit.encode("kafka.controlled_shutdown.request.v0", {"correlation_id": 2, "body": {"broker_id": 1}})
    assert data == bytes.fromhex("0000000c 0007 0000 00000002 00000001")
    decoded = wirekit.decode(data, "kafka.request")
    assert decoded.clean
    assert decoded.value.client_id is None
    assert decoded.value.body.broker_id == 1


def test_controlled_shutdown_v1_has_one() -> None:
    data = wirekit.encode("kafka.controlled_shutdown.request.v1", {**HEADER, "body": {"broker_id": 1}})
    assert data == bytes.fromhex("0000000f 0007 0001 00000001 0001 63 00000001")
    assert wirekit.decode(data, "kafka.request").value.client_id == "c"


@pytest.mark.parametrize(("client_id", "written"), [(None, "ffff"), ("", "0000")])
def test_client_id_may_be_null(client_id: str | None, written: str) -> None:
    value = {"correlation_id": 1, "client_id": client_id, "body": {}}
    data = wirekit.encode("kafka.list_groups.request.v0", value)
    assert data == bytes.fromhex("0000000a 0010 0000 00000001" + written)
    assert wirekit.decode(data, "kafka.list_groups.request.v0").value.client_id == client_id


@pytest.mark.parametrize(
    ("version", "broker", "written"),
    [
        (0, {"id": 1, "host": "h", "port": 9}, "00000001 0001 68 00000009"),
        (
            1,
            {"id": 1, "end_points": [{"port": 9, "host": "h", "security_protocol_type": 2}]},
            "00000001 00000001 00000009 0001 68 0002",
        ),
        (
            2,
            {"id": 1, "end_points": [{"port": 9, "host": "h", "security_protocol_type": 2}], "rack": None},
            "00000001 00000001 00000009 0001 68 0002 ffff",
        ),
        (
            3,
            {
                "id": 1,
                "end_points": [{"port": 9, "host": "h", "listener_name": "L", "security_protocol_type": 2}],
                "rack": "r",
            },
            "00000001 00000001 00000009 0001 68 0001 4c 0002 0001 72",
        ),
    ],
)
def test_update_metadata_has_the_port_first_from_v1_on(version: int, broker: dict[str, Any], written: str) -> None:
    body = {"controller_id": 1, "controller_epoch": 2, "partition_states": [], "live_brokers": [broker]}
    data = wirekit.encode(f"kafka.update_metadata.request.v{version}", {**HEADER, "body": body})
    assert data.endswith(bytes.fromhex("00000001 00000002 00000000 00000001" + written))
    (decoded,) = wirekit.decode(data, f"kafka.update_metadata.request.v{version}").value.body.live_brokers
    if version:
        assert decoded.end_points[0].security_protocol_type.symbol == "SASL_PLAINTEXT"


class TestOffsetCommit:
    """0.8.2-beta alone has a timestamp in v0; the released v0 has none."""

    def value(self, **more: Any) -> dict[str, Any]:
        partition = {"partition": 0, "offset": 5, "metadata": "", **more}
        return {**HEADER, "body": {"group_id": "g", "topics": [{"topic": "t", "partitions": [partition]}]}}

    @pytest.mark.parametrize("timestamp", [-1, 0, 1_795_222_757_288])
    def test_beta(self, timestamp: int) -> None:
        data = wirekit.encode("kafka.offset_commit.request.v0.beta", self.value(timestamp=timestamp))
        assert wirekit.decode(data, "kafka.offset_commit.request.v0.beta").clean
        assert not wirekit.decode(data, "kafka.offset_commit.request.v0").clean

    def test_release(self) -> None:
        data = wirekit.encode("kafka.offset_commit.request.v0", self.value())
        assert wirekit.decode(data, "kafka.offset_commit.request.v0").clean
        assert not wirekit.decode(data, "kafka.offset_commit.request.v0.beta").clean


@pytest.mark.parametrize(
    ("version", "topics", "written"),
    [(0, [], "00000000"), (1, None, "ffffffff"), (1, [], "00000000"), (2, None, "ffffffff")],
)
def test_all_topics(version: int, topics: list[str] | None, written: str) -> None:
    """Metadata v0 asks for all with an empty array; from v1 on null is all and empty is none."""
    data = wirekit.encode(f"kafka.metadata.request.v{version}", {**HEADER, "body": {"topics": topics}})
    assert data.endswith(bytes.fromhex(written))
    assert wirekit.decode(data, "kafka.request").value.body.topics == topics


def test_null_where_none_is_allowed_is_wrong() -> None:
    decoded = wirekit.decode(sized(bytes.fromhex("0003 0000 00000001 0001 63 ffffffff")), "kafka.request")
    assert isinstance(decoded.error, wirekit.Wrong)
    assert (decoded.error.path, decoded.error.offset) == ("body.topics", 15)
    with pytest.raises(wirekit.Wrong, match=r"body\.topics"):
        wirekit.encode("kafka.metadata.request.v0", {**HEADER, "body": {"topics": None}})


def test_null_record_set_is_tolerated() -> None:
    pdu = sized(bytes.fromhex("00000001 00000001 0001 74 00000001 00000000 0000 0000000000000009 ffffffff"))
    decoded = wirekit.decode(pdu, "kafka.fetch.response.v0")
    assert decoded.clean
    assert decoded.value.body.responses[0].partition_responses[0].record_set is None
    assert wirekit.encode("kafka.fetch.response.v0", decoded.value) == pdu


def test_any_byte_but_zero_is_true() -> None:
    pdu = first("stop_replica", "request", 0)
    data = bytearray(pdu.data)
    at = next(span.start for span in wirekit.decode(pdu.data, pdu.key).spans if span.path == "body.delete_partitions")
    data[at] = 7
    decoded = wirekit.decode(bytes(data), pdu.key)
    assert decoded.value.body.delete_partitions is True
    assert wirekit.encode(pdu.key, decoded.value) == bytes(data)


def test_error_13_is_stale_leader_epoch_when_a_broker_sends_it() -> None:
    body = {"error_code": 0, "partitions": [{"topic": "t", "partition": 0, "error_code": 13}]}
    data = wirekit.encode("kafka.leader_and_isr.response.v0", {"correlation_id": 1, "body": body})
    code = wirekit.decode(data, "kafka.leader_and_isr.response.v0").value.body.partitions[0].error_code
    assert code == 13
    assert "StaleLeaderEpoch" in code.description


def test_error_that_nobody_knows() -> None:
    data = wirekit.encode("kafka.heartbeat.response.v0", {"correlation_id": 1, "body": {"error_code": 99}})
    code = wirekit.decode(data, "kafka.heartbeat.response.v0").value.body.error_code
    assert (code, code.symbol) == (99, None)


def test_error_by_name() -> None:
    value = {"correlation_id": 1, "body": {"error_code": "ILLEGAL_GENERATION"}}
    assert wirekit.encode("kafka.heartbeat.response.v0", value)[-2:] == b"\x00\x16"


@pytest.mark.parametrize(("key", "version"), [(77, 0), (18, 3), (0, 9), (-1, 0), (3, -1)])
def test_unknown_request_is_kept_as_a_gap(key: int, version: int) -> None:
    head = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True)
    data = sized(head + bytes.fromhex("00000001 0001 63") + b"whatever")
    decoded = wirekit.decode(data, "kafka.request")
    assert decoded.error is None
    assert decoded.value.body == b"whatever"
    assert [(gap.offset, gap.length) for gap in decoded.gaps] == [(15, 8)]
    assert wirekit.encode("kafka.request", decoded.value) == data


def test_response_without_context_is_kept_as_a_gap() -> None:
    pdu = first("fetch", "response", 0)
    decoded = wirekit.decode(pdu.data, "kafka.response")
    assert decoded.value.body == pdu.data[8:]
    assert [gap.length for gap in decoded.gaps] == [len(pdu.data) - 8]


def test_request_of_another_version_is_wrong() -> None:
    pdu = first("fetch", "request", 0)
    decoded = wirekit.decode(pdu.data, "kafka.fetch.request.v1")
    assert isinstance(decoded.error, wirekit.Wrong)
    assert decoded.error.path == "api_version"


def test_request_of_another_api_is_wrong() -> None:
    pdu = first("fetch", "request", 0)
    decoded = wirekit.decode(pdu.data, "kafka.metadata.request.v0")
    assert isinstance(decoded.error, wirekit.Wrong)
    assert decoded.error.path == "api_key"


def test_frame_larger_than_a_broker_takes() -> None:
    decoded = wirekit.decode((104_857_601).to_bytes(4, "big") + bytes(100), "kafka.request")
    assert isinstance(decoded.error, wirekit.Limit)
    assert decoded.error.allowed == 104_857_600


def test_bytes_after_the_last_field_are_a_gap() -> None:
    data = sized(bytes.fromhex("00000001 0000") + b"more")
    decoded = wirekit.decode(data, "kafka.heartbeat.response.v0")
    assert [(gap.offset, gap.length) for gap in decoded.gaps] == [(10, 4)]
    assert wirekit.encode("kafka.heartbeat.response.v0", decoded.value) == data


def test_sasl_token() -> None:
    data = sized(b"\0alice\0alice-secret")
    decoded = wirekit.decode(data, "kafka.sasl_token")
    assert decoded.clean
    assert decoded.value.token == b"\0alice\0alice-secret"
    assert wirekit.encode("kafka.sasl_token", {"token": ""}) == bytes(4)
