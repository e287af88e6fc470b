"""The rules of the Kafka documents for the order of requests and responses, as checks of a conversation.

Sources: ``PAGE`` is the specification page (the guide to the protocol of 0.8 and its successors), with its sections;
``KAFKA`` Kafka 0.10.2, where the page is silent.

A client may fetch metadata over any of its connections: a new response on one of them, to the same host, counts for
all. The order in the capture decides if a client had received a response.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from wirekit.conversation import Frame
from wirekit.protocols.kafka import reading
from wirekit.protocols.kafka.dialogue import ANY_REQUEST, BY_NAME, MESSAGE_SETS
from wirekit.rules import ABSENT, LOST, OLDEST, Event, Rule, RuleSet, Step
from wirekit.schemas.kafka.apis import APIS
from wirekit.wire import this

PAGE = "Kafka protocol specification page"
KAFKA = "Kafka 0.10.2"

NOT_LEADER = 6
EXPELLED = (22, 25)
"""ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID."""
UNSUPPORTED_MECHANISM = 33
"""Other errors come from listeners without SASL, whose connections can still be used (KafkaApis.scala)."""
MEMBERS_ONLY = ("heartbeat", "sync_group", "offset_commit")
CONSUMER = -1
PRODUCE, FETCH, METADATA = "produce", "fetch", "metadata"
SINCE_MAGIC_1 = 2
"""For a Fetch before this version, brokers convert messages of magic 1, and decompress them: the set may then exceed
``max_bytes``. From version 3 on, Fetch returns the first message whole, however large."""
SINCE_0_9 = {
    (api.name, number) for api in APIS for number, each in enumerate(api.versions) if not each.since.startswith("0.10.")
}
"""The APIs and versions of brokers of 0.9. These neither answer another request nor close the connection (0.9.0.1,
observed); kafka-node waits for the answer to its ApiVersions, and goes on."""


class Versions(NamedTuple):
    """The versions of an API that a broker offers."""

    least: int
    most: int

    def __str__(self) -> str:
        return f"{self.least} to {self.most}"


def events(frame: Frame) -> Iterator[Event]:
    """The events of a request or response, with those of partitions, groups and API versions."""
    description = frame.description
    if description.role == "request":
        yield from _request(frame)
    elif description.role == "response":
        yield from _response(frame)
    elif frame.decoded.error is not None:
        yield Event(LOST)


def _request(frame: Frame) -> Iterator[Event]:
    description = frame.description
    body = frame.part("body")
    fields = {
        "request": frame.offset,
        "correlation_id": description.correlation_id,
        "api": description.api,
        "version": description.version,
    }
    yield Event("request", {**fields, "known": description.api in BY_NAME})
    yield Event("answered request" if description.answered else "request with acks 0", fields)
    if description.answered:
        yield Event(
            "awaited request" if (description.api, description.version) in SINCE_0_9 else "request that 0.9 ignores",
            fields,
        )
    for topic, partition, _ in _partitions(frame, "request"):
        yield Event(f"{description.api} partition", {"topic": topic, "partition": partition, "replica": _replica(body)})
    if body is not None and description.api in (*MEMBERS_ONLY, "leave_group", "join_group"):
        yield Event(str(description.api), _membership(body))
        if description.api in MEMBERS_ONLY:
            yield Event("member", _membership(body))
    if frame.decoded.error is not None or (frame.schema == ANY_REQUEST and description.api == PRODUCE):
        yield Event(LOST)  # whether it is answered is not known


def _response(frame: Frame) -> Iterator[Event]:
    request = frame.request
    number = {"correlation_id": frame.description.correlation_id}
    if request is None:
        yield Event("response to nothing", number)
        return
    if (request.description.api, request.description.version) not in SINCE_0_9:
        yield Event("response of 0.10")
    yield Event("response", {"request": request.offset, **number})
    body, request_body = frame.part("body"), request.part("body")
    if body is None or request_body is None:
        return
    api = request.description.api
    error = body.get("error_code")
    if api in (PRODUCE, FETCH):
        yield from _answered_partitions(frame, request)
    elif api == METADATA:
        yield Event("metadata answered")
        yield from _other_topics(body, request_body)
    elif api == "join_group" and error == 0:
        yield Event("joined", {**_membership(body), "group_id": request_body.get("group_id")})
    elif api == "heartbeat" and error in EXPELLED:
        yield Event("expelled", _membership(request_body))
    elif api == "sasl_handshake":
        if error in (0, UNSUPPORTED_MECHANISM):
            yield Event("sasl mechanism accepted" if error == 0 else "sasl mechanism refused")
    elif api == "api_versions" and error == 0:
        yield Event("api versions received")
        for each in body.get("api_versions") or ():
            if each.get("max_version") is not None:
                versions = Versions(each.min_version, each.max_version)
                yield Event("api version", {"api": each.api_key.symbol, "versions": versions})


def _answered_partitions(frame: Frame, request: Frame) -> Iterator[Event]:
    """One event per partition of a Produce or Fetch response: its error, and whether and how much was requested."""
    api, version = request.description.api, request.description.version or 0
    most = {
        (topic, partition): content.get("max_bytes") for topic, partition, content in _partitions(request, "request")
    }
    for topic, partition, content in _partitions(frame, "response"):
        entries = _entries(content)
        size = sum(entry.get("message_size") or 0 for entry in entries)
        fields = {"topic": topic, "partition": partition, "size": size, "most": most.get((topic, partition))}
        unasked = (topic, partition) not in most
        yield Event(f"{api} answered partition", {**fields, "error": content.get("error_code"), "unasked": unasked})
        if content.get("error_code") == NOT_LEADER:
            yield Event("not leader", {"topic": topic, "partition": partition})
        if api == FETCH and version < SINCE_MAGIC_1:
            yield Event("old fetch answered", {**fields, "magic": max(_magics(entries), default=0)})
        elif api == FETCH and version == SINCE_MAGIC_1:
            yield Event("fetch v2 answered", fields)


def _other_topics(body: Any, request_body: Any) -> Iterator[Event]:
    requested = request_body.get("topics")
    for topic in body.get("topic_metadata") or ():
        if requested:
            name = topic.get("topic")
            yield Event(
                "metadata answered topic", {"topic": name, "unasked": name is not None and name not in requested}
            )


def _partitions(frame: Frame, role: str) -> Iterator[tuple[str, int, Any]]:
    """(topic, partition, record) of a Produce or Fetch frame, as far as it was decoded."""
    names = {
        (PRODUCE, "request"): ("topic_data", "data"),
        (FETCH, "request"): ("topics", "partitions"),
    }
    api = frame.description.api or ""
    body = frame.part("body")
    if body is None or api not in MESSAGE_SETS or frame.description.role != role:
        return
    topics, partitions = names.get((api, role), ("responses", "partition_responses"))
    for topic in body.get(topics) or ():
        for partition in topic.get(partitions) or ():
            if partition.get("partition") is not None:
                yield topic.get("topic"), partition.partition, partition


def _entries(content: Any) -> list[Any]:
    """The whole messages of a partition; the sum of their sizes is slightly less than the size of the message set."""
    messages = content.get("record_set")
    return [entry for entry in (messages.get("messages") or ()) if entry.get("message")] if messages is not None else []


def _magics(entries: list[Any]) -> Iterator[int]:
    """The magic of each message, those in wrappers included."""
    for entry in entries:
        yield entry.message.get("magic") or 0
        if (inside := reading.content(entry.message.get("value"))) is not None:
            yield from _magics([each for each in inside.get("messages") or () if each.get("message")])


def _replica(body: Any) -> int:
    """The fetching replica; producers count as consumers."""
    replica = body.get("replica_id") if body is not None else None
    return CONSUMER if replica is None else int(replica)


def _membership(body: Any) -> dict[str, Any]:
    generation = body.get("group_generation_id")
    return {
        "group_id": body.get("group_id"),
        "member_id": body.get("member_id"),
        "generation": body.get("generation_id") if generation is None else generation,
    }


MEMBER = (this.group_id, this.member_id)
LEADER = (this.connection, this.topic, this.partition)

STEPS = (
    Step("response of 0.10", "release", "", "0.10"),
    Step("awaited request", "waiting", this.request, "waiting"),
    Step("request that 0.9 ignores", "waiting", this.request, "waiting", requires=("release", "", "0.10")),
    Step("answered request", "correlation_id", this.correlation_id, "waiting"),
    Step("request with acks 0", "acks_0", this.correlation_id, "sent"),
    Step("answered request", "acks_0", this.correlation_id, ABSENT),
    Step("response", "waiting", this.request, ABSENT, passed=True),
    Step(("response", "response to nothing"), "correlation_id", this.correlation_id, ABSENT),
    Step("not leader", "not_leader", LEADER, "refused"),
    Step("metadata answered", "not_leader", None, ABSENT),
    Step("sasl mechanism refused", "sasl", "", "refused"),
    Step("sasl mechanism accepted", "sasl", "", "accepted"),
    Step("api versions received", "offered", None, ABSENT),
    Step("api version", "offered", this.api, this.versions),
    Step("joined", "generation", MEMBER, this.generation),
    Step("joined", "member", MEMBER, "in the group"),
    Step("leave_group", "member", MEMBER, "has left"),
    Step("expelled", "member", (*MEMBER, this.generation), "expelled"),
    Step("join_group", "member", MEMBER, ABSENT, when=("has left",)),
)

RULES = RuleSet(
    events=events,
    steps=STEPS,
    shared=frozenset({"not_leader"}),
    rules=(
        Rule(
            "response_out_of_order",
            "a broker answers the requests of a connection in their order",
            f"{PAGE}, 网络 (network)",
            "response",
            this.request > this.other,
            other=("waiting", OLDEST),
        ),
        Rule(
            "response_without_request",
            "a response carries the correlation id of an unanswered request",
            f"{PAGE}, 响应 (response)",
            "response to nothing",
            (this.state == ABSENT) & (this.other == ABSENT),
            "correlation_id",
            this.correlation_id,
            other=("acks_0", this.correlation_id),
        ),
        Rule(
            "acks_0_answered",
            "Produce with acks 0 gets no response",
            f"{PAGE}, Produce Request, RequiredAcks",
            "response to nothing",
            ("sent",),
            "acks_0",
            this.correlation_id,
        ),
        Rule(
            "correlation_id_in_use",
            "a request does not repeat the correlation id of an unanswered request",
            f"{PAGE}, 请求 (request), CorrelationId",
            "answered request",
            ("waiting",),
            "correlation_id",
            this.correlation_id,
            severity="warning",
        ),
        *(
            Rule(
                f"{api}_after_not_leader",
                "after NOT_LEADER_FOR_PARTITION a client gets new metadata before it asks for the partition again",
                f"{PAGE}, 分区与引导 (partitioning and bootstrapping)",
                f"{api} partition",
                (this.replica == CONSUMER) & (this.state == "refused"),
                "not_leader",
                LEADER,
                severity="warning",
            )
            for api in (PRODUCE, FETCH)
        ),
        Rule(
            "request_after_refused_handshake",
            "a broker that refused the SASL mechanism takes no further request",
            f"{KAFKA}, SaslServerAuthenticator.java, handleHandshakeRequest",
            "request",
            ("refused",),
            "sasl",
            "",
        ),
        Rule(
            "version_not_offered",
            "a request has a version that the broker's ApiVersions response lists",
            f"{PAGE}, 版本与兼容性 (versions); {KAFKA}, ApiVersionsResponse.java",
            "request",
            ((this.version < this.state[0]) | (this.version > this.state[1])) & (this.api != "api_versions"),
            "offered",
            this.api,
        ),
        Rule(
            "stale_generation",
            "a member names the generation that its last JoinGroup response gave it",
            f"{PAGE}, 概述 (JoinGroup, Heartbeat); {KAFKA}, GroupCoordinator.scala",
            "member",
            (this.generation < this.state) & (this.generation >= 0),
            "generation",
            MEMBER,
        ),
        Rule(
            "heartbeat_after_expulsion",
            "a member whose heartbeat was answered ILLEGAL_GENERATION or UNKNOWN_MEMBER_ID joins again first",
            f"{PAGE}, 概述 (Heartbeat); {KAFKA}, GroupCoordinator.scala, handleHeartbeat",
            "heartbeat",
            ("expelled",),
            "member",
            (*MEMBER, this.generation),
        ),
        Rule(
            "member_after_leaving",
            "a member that left its group sends no more requests for it",
            f"{PAGE}, 概述 (LeaveGroup)",
            "member",
            ("has left",),
            "member",
            MEMBER,
        ),
        Rule(
            "answer_of_other_partition",
            "a response has only partitions that its request named",
            f"{PAGE}, 响应 (response)",
            ("produce answered partition", "fetch answered partition"),
            this.unasked,
        ),
        Rule(
            "answer_of_other_topic",
            "the response to Metadata has only topics that the request named",
            f"{PAGE}, Topic Metadata Request, TopicName",
            "metadata answered topic",
            this.unasked,
        ),
        Rule(
            "fetch_above_max_bytes",
            "a message set is not larger than the max_bytes of its partition, in version 2",
            f"{PAGE}, Fetch Request, MaxBytes",
            "fetch v2 answered",
            this.size > this.most,
        ),
        Rule(
            "old_fetch_above_max_bytes",
            "before version 2, only a set that the broker converted is larger than the max_bytes of its partition",
            f"{PAGE}, Fetch Request, MaxBytes; {KAFKA}, KafkaApis.scala, handleFetchRequest",
            "old fetch answered",
            this.size > this.most,
            severity="warning",
        ),
        Rule(
            "magic_above_version",
            "Fetch before version 2 is answered with messages of magic 0 only",
            f"{PAGE}, Fetch Response",
            "old fetch answered",
            this.magic > 0,
        ),
    ),
)
