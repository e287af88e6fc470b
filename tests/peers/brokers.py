"""Answers that real clients get on with: one broker, one topic with one partition, one message in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import wirekit
from wirekit.conversation import Frame
from wirekit.schemas.kafka.admin_apis import API_VERSIONS
from wirekit.schemas.kafka.apis import APIS
from wirekit.strategies import Exchange

TOPIC, KEY, VALUE = "t", b"key", b"value"
UNSUPPORTED_VERSION = 35
LARGEST_MESSAGE = 5 * 1024 * 1024


def kafka_answer(exchange: Exchange, frame: Frame, port: int) -> bytes | None:
    """What a Kafka broker of 0.10.2 says."""
    description = frame.description
    if description.role != "request" or not description.answered or frame.value is None:
        return None
    unknown = description.api == API_VERSIONS.name and description.version != 0
    version = 0 if unknown else description.version
    make = KAFKA.get(description.api or "")
    if make is None or (frame.reason is not None and not unknown):
        return None
    body = make(frame.value.get("body"), version, port)
    if unknown:
        body["error_code"] = UNSUPPORTED_VERSION
    key = f"kafka.{description.api}.response.v{version}"
    data = wirekit.encode(key, {"correlation_id": description.correlation_id, "body": body})
    exchange.hear("server", data)
    return data


def _api_versions(body: Any, version: Any, port: int) -> dict[str, Any]:
    offered = [{"api_key": api.key, "min_version": 0, "max_version": len(api.versions) - 1} for api in APIS]
    return {"error_code": 0, "api_versions": offered}


def _metadata(body: Any, version: Any, port: int) -> dict[str, Any]:
    partition = {"partition_error_code": 0, "partition_id": 0, "leader": 1, "replicas": [1], "isr": [1]}
    topic = {"topic_error_code": 0, "topic": TOPIC, "is_internal": False, "partition_metadata": [partition]}
    broker = {"node_id": 1, "host": "127.0.0.1", "port": port, "rack": None}
    return {
        "brokers": [broker if version else _without(broker, "rack")],
        **({"cluster_id": "c"} if version == 2 else {}),
        **({"controller_id": 1} if version else {}),
        "topic_metadata": [topic if version else _without(topic, "is_internal")],
    }


def _produce(body: Any, version: Any, port: int) -> dict[str, Any]:
    partition = {"partition": 0, "error_code": 0, "base_offset": 0, "log_append_time": -1}
    partition = partition if version == 2 else _without(partition, "log_append_time")
    answer: dict[str, Any] = {"responses": [{"topic": TOPIC, "partition_responses": [partition]}]}
    return answer | ({"throttle_time_ms": 0} if version else {})


def _fetch(body: Any, version: Any, port: int) -> dict[str, Any]:
    offset = body.topics[0].partitions[0].fetch_offset
    magic = 1 if version >= 2 else 0
    message = {
        "magic": magic,
        "attributes": {"codec": 0},
        "timestamp": 1 if magic else None,
        "key": KEY,
        "value": VALUE,
    }
    messages = [{"offset": 0, "message": message}] if offset == 0 else []
    partition = {"partition": 0, "error_code": 0, "high_watermark": 1, "record_set": {"messages": messages}}
    answer: dict[str, Any] = {"responses": [{"topic": TOPIC, "partition_responses": [partition]}]}
    return answer | ({"throttle_time_ms": 0} if version else {})


def _list_offsets(body: Any, version: Any, port: int) -> dict[str, Any]:
    time = body.topics[0].partitions[0].timestamp
    offset = 1 if time == -1 else 0
    answer: dict[str, Any] = {"timestamp": -1, "offset": offset} if version else {"offsets": [offset]}
    return {"responses": [{"topic": TOPIC, "partition_responses": [{"partition": 0, "error_code": 0, **answer}]}]}


def _without(record: dict[str, Any], name: str) -> dict[str, Any]:
    return {each: value for each, value in record.items() if each != name}


KAFKA = {
    "api_versions": _api_versions,
    "metadata": _metadata,
    "produce": _produce,
    "fetch": _fetch,
    "list_offsets": _list_offsets,
}


def pulsar_answer(exchange: Exchange, frame: Frame, port: int) -> bytes | None:
    """What a Pulsar broker says; a message is pushed when a consumer permits one."""
    command = frame.value.get("command") if frame.value is not None else None
    if command is None:
        return None
    data = b"".join(wirekit.encode("pulsar.frame", value) for value in _pulsar(command, port, exchange))
    exchange.hear("server", data)
    return data or None


def _pulsar(command: Any, port: int, exchange: Exchange) -> Iterator[dict[str, Any]]:
    match command.type.symbol:
        case "CONNECT":
            fields = {"server_version": "scripted", "protocol_version": 19, "max_message_size": LARGEST_MESSAGE}
            yield _command("CONNECTED", **fields)
        case "PING":
            yield _command("PONG")
        case "PARTITIONED_METADATA":
            fields = {"request_id": command.partitionMetadata.request_id, "response": 0, "partitions": 0}
            yield _command("PARTITIONED_METADATA_RESPONSE", "partitionMetadataResponse", **fields)
        case "LOOKUP":
            number, url = command.lookupTopic.request_id, f"pulsar://127.0.0.1:{port}"
            fields = {"brokerServiceUrl": url, "response": 1, "request_id": number, "authoritative": True}
            yield _command("LOOKUP_RESPONSE", "lookupTopicResponse", **fields)
        case "PRODUCER":
            fields = {"request_id": command.producer.request_id, "producer_name": "p", "last_sequence_id": -1}
            yield _command("PRODUCER_SUCCESS", **fields, schema_version=b"")
        case "SEND":
            ids = {"producer_id": command.send.producer_id, "sequence_id": command.send.sequence_id}
            yield _command("SEND_RECEIPT", **ids, message_id={"ledgerId": 1, "entryId": 0})
        case "FLOW" if not any(frame.description.api == "MESSAGE" for frame in exchange.frames):
            metadata = {"producer_name": "p", "sequence_id": 0, "publish_time": 1}
            message = _command(
                "MESSAGE", consumer_id=command.flow.consumer_id, message_id={"ledgerId": 1, "entryId": 0}
            )
            yield {**message, "entry": {"metadata": metadata, "payload": VALUE}}
        case "SUBSCRIBE" | "CLOSE_PRODUCER" | "CLOSE_CONSUMER" | "UNSUBSCRIBE" | "SEEK" as name:
            yield _command("SUCCESS", request_id=command[name.lower()].request_id)


def _command(kind: str, field: str = "", **values: Any) -> dict[str, Any]:
    return {"command": {"type": kind, field or kind.lower(): values}}
