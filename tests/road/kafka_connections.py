"""Connections of Kafka for the tests of the road, and what columns leave of them to objects."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import wirekit
from tests.capture.second_parser import packets, write
from tests.road.law import indexed
from tests.road.test_pairing import capture
from wirekit.road.assembly import Assembly
from wirekit.road.begun import Followed
from wirekit.road.connections import Connections
from wirekit.road.contents import read_contents


def left_to_objects(path: Path) -> tuple[int, int]:
    """How many connections of a capture are indexed, and how many of these are left to objects."""
    streams, index = indexed(path)
    with read_contents(streams.stream, index) as contents:
        return int((~index.odd).sum()), int((contents.odd & ~index.odd).sum())


def calls_of_begun(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of calls that columns read of each begun connection from now on."""
    calls: list[int] = []
    followed = Assembly.followed

    def counted(assembly: Assembly) -> Followed:
        frames = followed(assembly)
        calls.extend(frames.calls.tolist())
        return frames

    monkeypatch.setattr(Assembly, "followed", counted)
    return calls


def undeclared(api_key: int, version: int, number: int, body: bytes = b"") -> bytes:
    """A Kafka request of an API's version that is not declared."""
    return wirekit.encode(
        "kafka.request",
        {"api_key": api_key, "api_version": version, "correlation_id": number, "client_id": "new", "body": body},
    )


def answer(layout: str, number: int, error_code: int, **body: Any) -> bytes:
    return wirekit.encode(f"kafka.{layout}", {"correlation_id": number, "body": {"error_code": error_code, **body}})


METADATA = undeclared(3, 19, 2, b"\0\1\2"), wirekit.encode("kafka.response", {"correlation_id": 2, "body": b"abcd"})
HANDSHAKE = wirekit.encode(
    "kafka.sasl_handshake.request.v0", {"correlation_id": 3, "client_id": "new", "body": {"mechanism": "PLAIN"}}
)


def handshake(error_code: int) -> bytes:
    return answer("sasl_handshake.response.v0", 3, error_code, enabled_mechanisms=["GSSAPI"])


def list_groups(number: int) -> tuple[tuple[int, bytes], tuple[int, bytes]]:
    """A Kafka request and its response."""
    request = {"correlation_id": number, "client_id": "one", "body": {}}
    question = wirekit.encode("kafka.list_groups.request.v0", request)
    return (0, question), (1, answer("list_groups.response.v0", number, 0, groups=[]))


def open_conversations(connections: Connections) -> Any:
    """The ``CONVERSATION`` rows that are in use."""
    stored = connections._conversations
    return stored._rows[stored._connections >= 0]


def joined(path: Path, *pieces: tuple[int, bytes]) -> Path:
    """A capture of one connection that began when its handshake was over; its packets are seconds apart."""
    packets_of_all = packets(capture(path, *pieces))[2:]
    return write(path, [each._replace(time_us=3_000_000 * number) for number, each in enumerate(packets_of_all)])


PARTITION = {"partition": 0, "error_code": 0, "high_watermark": 0, "record_set": {"messages": []}}


def fetched(*topics: str, number: int = 500, version: int = 0) -> bytes:
    """A response to a fetch."""
    responses = [{"topic": topic, "partition_responses": [PARTITION]} for topic in topics]
    body = {"responses": responses, **({"throttle_time_ms": 0} if version else {})}
    return wirekit.encode(f"kafka.fetch.response.v{version}", {"correlation_id": number, "body": body})


def in_pieces(data: bytes, *ends: int) -> list[tuple[int, bytes]]:
    """Bytes of the server in pieces that end at some places."""
    bounds = [0, *ends, len(data)]
    return [(1, data[begin:end]) for begin, end in pairwise(bounds)]
