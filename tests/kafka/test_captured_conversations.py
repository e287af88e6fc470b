"""Connections as they were captured: pairs, tokens, answers without requests, and how long each call took."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from wirekit.capture.files import open_capture, segments
from wirekit.capture.follow import follow
from wirekit.capture.links import Choice
from wirekit.capture.tcp import Segment
from wirekit.conversation import Conversation, Frame, Quarantined

FIXTURES = Path(__file__).parents[2] / "fixtures" / "pcap"
SHARED = Path(__file__).parents[2] / "../shared/captures/kafka"
CAPTURES = [*sorted(FIXTURES.glob("kafka-*.pcapng")), *sorted(SHARED.glob("*/*.pcapng"))]
CLIENTS = FIXTURES / "kafka-0.10.2.2-4-clients.pcapng"


@cache
def conversations(path: Path) -> dict[str, list[Frame | Quarantined]]:
    """What was said on each connection, in order."""
    items: dict[str, list[Frame | Quarantined]] = defaultdict(list)
    with open_capture(str(path)) as capture:
        tcp = (each for each in segments(capture) if isinstance(each, Segment))
        for link, item in follow(tcp, Choice("kafka", {})):
            if isinstance(item, (Frame, Quarantined)):
                items[link.name].append(item)
    return items


def frames(path: Path) -> Iterator[Frame]:
    for items in conversations(path).values():
        yield from (item for item in items if isinstance(item, Frame))


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: "-".join(path.parts[-2:]))
def test_pairs(path: Path) -> None:
    """Each answer is of a request with its id, earlier on its connection; none is answered twice; times go forward."""
    for items in conversations(path).values():
        open_requests: list[Frame] = []
        for frame in items:
            if not isinstance(frame, Frame):
                continue
            if frame.side == "client" and frame.description.role == "request":
                open_requests.append(frame)
            if frame.side == "server" and frame.request is not None:
                assert frame.request in open_requests
                open_requests.remove(frame.request)
                assert frame.description.correlation_id == frame.request.description.correlation_id
                assert frame.description.api == frame.request.description.api
                assert frame.time_us is not None
                assert frame.request.time_us is not None
                assert frame.time_us >= frame.request.time_us
        silent = [request for request in open_requests if request.description.api == "produce"]
        assert all(request.value.body.acks == 0 for request in silent[:-1] if request.reason is None)


@pytest.mark.parametrize("release", ["0.8.2.2", "0.9.0.1", "0.10.2.2"])
def test_stray_responses_have_a_reason(release: str) -> None:
    """Replica fetchers were waiting for an answer when the capture began."""
    strays = [
        frame
        for path in FIXTURES.glob(f"kafka-{release}-*.pcapng")
        for frame in frames(path)
        if frame.side == "server" and frame.request is None and frame.schema == "kafka.response"
    ]
    assert len(strays) == 4
    for stray in strays:
        assert stray.offset == 0
        assert stray.reason is not None
        assert stray.reason.startswith("no request has correlation id")
        assert stray.value.body == stray.data[8:]


def test_api_versions_is_answered_in_v0() -> None:
    """Librdkafka asks in v3, which 0.10.2 does not know."""
    requests = [f for f in frames(CLIENTS) if f.description.api == "api_versions" and f.side == "client"]
    assert {f.description.version for f in requests} == {0, 3}
    answers = [f for f in frames(CLIENTS) if f.description.api == "api_versions" and f.side == "server"]
    refused = [f for f in answers if f.request is not None and f.request.description.version == 3]
    assert refused
    for answer in refused:
        assert answer.schema == "kafka.api_versions.response.v0"
        assert (answer.value.body.error_code.symbol, answer.value.body.api_versions) == ("UNSUPPORTED_VERSION", [])
        assert answer.decoded.clean


def test_sasl_tokens() -> None:
    tokens = 0
    for items in conversations(CLIENTS).values():
        schemas = [item.schema for item in items if isinstance(item, Frame)]
        if "kafka.sasl_handshake.response.v0" not in schemas:
            continue
        at = schemas.index("kafka.sasl_handshake.response.v0") + 1
        if at == len(schemas):  # the mechanism was refused, and the connection closed
            continue
        assert schemas[at] == "kafka.sasl_token"
        first = items[at]
        assert isinstance(first, Frame)
        assert first.side == "client"
        assert first.value.token.split(b"\0")[1:2] == [b"alice"]
        tokens += schemas.count("kafka.sasl_token")
        behind = [schema for schema in schemas[at:] if schema != "kafka.sasl_token"]
        assert "kafka.response" not in behind
        assert "kafka.request" not in behind
    assert tokens >= 2


def test_latency() -> None:
    """From the last byte of the request to the last byte of the answer; a fetch may wait for half a second."""
    times: dict[str, list[int]] = defaultdict(list)
    for frame in frames(CLIENTS):
        if frame.request is not None and frame.time_us is not None and frame.request.time_us is not None:
            times[frame.description.api or ""].append(frame.time_us - frame.request.time_us)
    assert min(map(min, times.values())) >= 0
    assert max(times["fetch"]) >= 400_000
    assert max(times["metadata"]) < 5_000_000
    assert len(times) > 8


def test_closed_after_a_request() -> None:
    """Brokers close the connection on what they do not know: the request has no answer, and nothing else is lost."""
    request = next(f for f in frames(CLIENTS) if f.description.api == "metadata" and f.side == "client")
    key = (77).to_bytes(2, "big")
    conversation = Conversation("kafka")
    conversation.receive("client", request.data)
    (unknown,) = conversation.receive("client", request.data[:4] + key + request.data[6:])
    assert isinstance(unknown, Frame)
    assert unknown.reason == "share_group_describe v1 is not known"
    assert [*conversation.close("client"), *conversation.close("server")] == []


@pytest.mark.skipif(not SHARED.exists(), reason="needs the captures")
def test_closed_after_a_request_captured() -> None:
    """A composed request of key 77 to a broker of 0.10.2.2: it closes the connection without a word."""
    items_by_link = conversations(SHARED / "0.10.2.2" / "4b-probe.pcapng")
    ends = [items[-1] for items in items_by_link.values() if isinstance(items[-1], Frame)]
    closed = [end for end in ends if end.side == "client" and (end.reason or "").endswith("is not known")]
    assert closed
