"""The declarations say, field by field, what Kafka's own tables say."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

import wirekit
from tests.kafka.golden import EMBEDDED, ERRORS, TABLES
from wirekit.schemas.kafka import PROTOCOL, embedded
from wirekit.schemas.kafka.apis import APIS
from wirekit.schemas.kafka.errors import ERROR_CODES
from wirekit.schemas.kafka.messages import produced_set, record_set
from wirekit.schemas.kafka.types import API_KEYS, LATER_APIS, SECURITY_PROTOCOLS
from wirekit.wire import Array, Bytes, Flag, If, IfMore, Integer, Node, String, Struct, Symbols

TITLES = {
    "Produce": "produce",
    "Fetch": "fetch",
    "ListOffsets": "list_offsets",
    "Metadata": "metadata",
    "LeaderAndIsr": "leader_and_isr",
    "StopReplica": "stop_replica",
    "UpdateMetadata": "update_metadata",
    "ControlledShutdown": "controlled_shutdown",
    "OffsetCommit": "offset_commit",
    "OffsetFetch": "offset_fetch",
    "GroupCoordinator": "group_coordinator",
    "JoinGroup": "join_group",
    "Heartbeat": "heartbeat",
    "LeaveGroup": "leave_group",
    "SyncGroup": "sync_group",
    "DescribeGroups": "describe_groups",
    "ListGroups": "list_groups",
    "SaslHandshake": "sasl_handshake",
    "ApiVersions": "api_versions",
    "CreateTopics": "create_topics",
    "DeleteTopics": "delete_topics",
}


def shown(node: Node, version: int | None = None) -> dict[str, Any]:
    """A node as the tables describe types; what is there in other versions only is left out."""
    if node is record_set or node is produced_set:
        return {"type": "records", "nullable": False}
    if isinstance(node, Struct):
        return {"type": "struct", "fields": list(fields(node, version))}
    if isinstance(node, Array):
        return {"type": "array", "nullable": node.null == -1, "items": shown(node.element, version)}
    if isinstance(node, Bytes):
        assert repr(node.prefix) == ("int16" if isinstance(node, String) else "int32")
        return {"type": "string" if isinstance(node, String) else "bytes", "nullable": node.null == -1}
    if isinstance(node, Flag):
        assert repr(node.inner) == "int8"
        return {"type": "boolean"}
    if isinstance(node, Symbols):
        return shown(node.inner)
    assert isinstance(node, Integer)
    return {"type": repr(node)}


def fields(struct: Struct, version: int | None = None) -> Iterator[dict[str, Any]]:
    for name, node in struct.members:
        if isinstance(node, IfMore):
            continue
        if isinstance(node, If):
            scope = {"version": version, "_": {"version": version}}
            if node.condition(scope):
                yield {"name": name, **shown(node.inner, version)}
        else:
            yield {"name": name, **shown(node, version)}


def completed(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry of the tables; where one does not say that it may be null, it may not."""
    entry = dict(entry)
    if entry["type"] in ("string", "bytes", "array", "records"):
        entry.setdefault("nullable", False)
    if "items" in entry:
        entry["items"] = completed(entry["items"])
    if "fields" in entry:
        entry["fields"] = [completed(field) for field in entry["fields"]]
    return entry


@pytest.mark.parametrize("side", ["request", "response"])
@pytest.mark.parametrize("table", TABLES, ids=lambda table: f"{table['name']}-v{table['version']}")
def test_bodies(table: dict[str, Any], side: str) -> None:
    frame = wirekit.registry[f"kafka.{TITLES[table['name']]}.{side}.v{table['version']}"].node
    assert list(fields(dict(frame.members)["body"])) == [completed(entry) for entry in table[side]]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: f"{table['name']}-v{table['version']}")
def test_headers(table: dict[str, Any]) -> None:
    """ControlledShutdown v0 alone has no client id; a response has a correlation id and nothing else."""
    request = wirekit.registry[f"kafka.{TITLES[table['name']]}.request.v{table['version']}"].node
    with_client_id = [] if table["request_header"] == "v0-noclientid" else ["client_id"]
    assert [name for name, _ in request.members] == [
        "size",
        "api_key",
        "api_version",
        "correlation_id",
        *with_client_id,
        "body",
    ]
    assert dict(request.members)["api_key"].value == table["api_key"]
    assert dict(request.members)["api_version"].value == table["version"]
    response = wirekit.registry[f"kafka.{TITLES[table['name']]}.response.v{table['version']}"].node
    assert [name for name, _ in response.members] == ["size", "correlation_id", "body"]


def test_apis_are_those_of_the_tables_in_order() -> None:
    declared = [(api.key, api.name, number) for api in APIS for number in range(len(api.versions))]
    assert declared == [(table["api_key"], TITLES[table["name"]], table["version"]) for table in TABLES]
    symbols = [(int(symbol), symbol.symbol) for symbol in API_KEYS]
    assert symbols[: len(APIS)] == [(api.key, api.name) for api in APIS]
    for table in TABLES:
        assert API_KEYS(table["api_key"]).description.startswith(table["name"])


def test_later_apis_have_the_names_of_kafka_python() -> None:
    api_key = pytest.importorskip("kafka.protocol.api_key")
    later = {each.value: each.name for each in api_key.ApiKey if each.value >= len(APIS)}
    assert {key: name for key, name in enumerate(LATER_APIS, len(APIS)) if key in later} == later
    assert (API_KEYS(28).symbol, API_KEYS(50).symbol) == ("txn_offset_commit", "describe_user_scram_credentials")


@pytest.mark.parametrize("table", TABLES, ids=lambda table: f"{table['name']}-v{table['version']}")
def test_first_release(table: dict[str, Any]) -> None:
    since = APIS[table["api_key"]].versions[table["version"]].since
    assert table["since"] == since or table["since"] == f"{since}.0"


def test_versions_that_share_a_layout_share_the_declaration() -> None:
    for before, table in itertools.pairwise(TABLES):
        if before["api_key"] != table["api_key"]:
            continue
        old, new = (APIS[entry["api_key"]].versions[entry["version"]] for entry in (before, table))
        assert (old.request is new.request) == (before["request"] == table["request"])
        assert (old.response is new.response) == (before["response"] == table["response"])
        assert new.adds


def test_error_codes() -> None:
    assert [int(code) for code in ERROR_CODES] == [error["code"] for error in ERRORS] == list(range(-1, 45))
    for error in ERRORS:
        code = ERROR_CODES(error["code"])
        assert code.symbol == error["name"]
        assert code.description.startswith((error["message"] or "No error").strip())
        assert ("Retriable." in code.description) == bool(error["retriable"])


def test_error_13_has_two_meanings() -> None:
    assert "StaleLeaderEpoch" in ERROR_CODES(13).description


def test_security_protocols() -> None:
    assert [symbol.symbol for symbol in SECURITY_PROTOCOLS] == ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]


@pytest.mark.parametrize(
    ("name", "node", "version"),
    [
        ("consumer_subscription_v0", embedded.CONSUMER_SUBSCRIPTION, 0),
        ("consumer_assignment_v0", embedded.CONSUMER_ASSIGNMENT, 0),
        ("offsets_key_v0", embedded.KEY, 0),
        ("offsets_key_v1", embedded.KEY, 1),
        ("group_key_v2", embedded.KEY, 2),
        ("offset_value_v0", embedded.OFFSET_VALUE, 0),
        ("offset_value_v1", embedded.OFFSET_VALUE, 1),
        ("group_value_v0", embedded.GROUP_VALUE, 0),
        ("group_value_v1", embedded.GROUP_VALUE, 1),
    ],
    ids=list(EMBEDDED),
)
def test_embedded(name: str, node: Struct, version: int) -> None:
    assert list(fields(node, version)) == [completed(entry) for entry in EMBEDDED[name]]


def test_every_layout_has_a_description_and_a_source() -> None:
    for name, layout in PROTOCOL.layouts.items():
        assert layout.description, name
        assert layout.source, name


def test_layouts_consist_of_the_vocabulary_only() -> None:
    def walk(node: Node) -> None:
        assert type(node).__module__.startswith("wirekit.wire"), node
        for _, part in node.parts():
            walk(part)

    for name in PROTOCOL.layouts:
        walk(wirekit.registry[PROTOCOL.key(name)].node)
