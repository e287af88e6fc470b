"""ZooKeeper's client protocol as an example declares it, against what kazoo writes and reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import wirekit
from examples.zookeeper import PROTOCOL
from tests.examples.vectors import check, ids_of, vectors
from tests.own import declared


@pytest.fixture(autouse=True, scope="module")
def _registered() -> Iterator[None]:
    with declared(PROTOCOL):
        yield


@pytest.mark.parametrize("vector", vectors("zookeeper"), ids=ids_of("zookeeper"))
def test_frames_of_kazoo_are_read_and_written(vector: dict[str, Any]) -> None:
    check("zookeeper", vector)


def frames(key: str) -> bytes:
    return b"".join(bytes.fromhex(vector["hex"]) for vector in vectors("zookeeper") if vector["key"].endswith(key))


def test_a_conversation_pairs_by_xid_and_reads_responses_by_their_request() -> None:
    conversation = wirekit.Conversation("zookeeper")
    conversation.receive("client", frames("request"))
    events = list(conversation.receive("server", frames("response")))
    assert [event.description.api for event in events] == [
        "create",
        "getData",
        "getChildren2",
        "multi",
        "multi",
        "notification",
        None,
    ]
    assert events[1].request is not None
    assert events[1].request.value.body.path == "/controller"
    assert events[3].value.body.parts[0].body.path == "/a"
    assert events[4].value.body.parts == []
    assert events[6].reason == "no request has xid 9"


def test_the_protocol_is_recognised_by_its_first_frame() -> None:
    assert wirekit.conversation.recognise(frames("connect_request"), b"").protocol == "zookeeper"


def test_columns_of_requests() -> None:
    batch = wirekit.columns("zookeeper.request", frames("request")[len(frames("connect_request")) :])
    assert batch["body.path"].to_pylist()[:2] == ["/brokers/ids/1", "/controller"]
    assert batch["body.acl.scheme"].to_pylist()[0] == ["world"]
