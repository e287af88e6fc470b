"""The rules of the JMQ4 document for the order of commands, as checks of a conversation, for both dialects.

Sources: ``DOCUMENT`` is the protocol document, with its sections; ``JOYQUEUE`` the implementation, where the document
is silent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wirekit.conversation import Frame
from wirekit.rules import ABSENT, LOST, Event, Rule, RuleSet, Step
from wirekit.wire import this

DOCUMENT = "JMQ4 protocol document"
JOYQUEUE = "JoyQueue 4.2.8-SNAPSHOT"

BOOLEAN_ACK = -128
HALF = 1 << 31
"""Request ids are 32 bits and may begin again below zero."""

ADDS = {"ADD_PRODUCER": "producer", "ADD_CONSUMER": "consumer"}
REMOVES = {"REMOVE_PRODUCER": "producer", "REMOVE_CONSUMER": "consumer"}
PRODUCES = ("PRODUCE_MESSAGE", "PRODUCE_MESSAGE_PREPARE")
CONSUMES = ("FETCH_TOPIC_MESSAGE", "FETCH_PARTITION_MESSAGE", "COMMIT_ACK")
ENDS = ("PRODUCE_MESSAGE_COMMIT", "PRODUCE_MESSAGE_ROLLBACK")


def events(frame: Frame) -> Iterator[Event]:
    """The events of a command, with those of each topic, partition and transaction."""
    description = frame.description
    if description.api is None:
        yield Event(LOST)
    elif description.role == "request":
        yield from _request(frame, description.api)
    else:
        yield from _answer(frame)


def _request(frame: Frame, api: str) -> Iterator[Event]:
    fields = {"request_id": frame.description.correlation_id, "api": api}
    yield Event("request", fields)
    yield Event("ADD_CONNECTION" if api == "ADD_CONNECTION" else "command other than ADD_CONNECTION", fields)
    yield Event("answered request" if frame.description.answered else "one-way request", fields)
    if api == "REMOVE_CONNECTION":
        yield Event(api)
    payload = frame.part("payload")
    if payload is None:
        return
    app = payload.get("app")
    if api in ADDS:
        yield Event("added", {"what": api, "app": app, "sequence": payload.get("sequence")})
    for topic in _topics(payload):
        yield from _topic(api, {"topic": topic, "app": app})
    if api == "COMMIT_ACK":
        for name, partition in _partitions(payload.get("topics")):
            yield Event("partition acknowledged", {"topic": name, "partition": partition.get("partition"), "app": app})
    if api == "PRODUCE_MESSAGE":
        for topic in payload.get("topics") or ():
            yield Event("use of a transaction", {"tx_id": topic.get("tx_id") or None})
    if api in ENDS:
        yield Event("use of a transaction", {"tx_id": payload.get("tx_id")})
        yield Event("transaction ends", {"tx_id": payload.get("tx_id")})


def _topic(api: str, fields: dict[str, Any]) -> Iterator[Event]:
    if api in ADDS or api in REMOVES:
        yield Event(f"{api} of a topic", fields)
    elif api in PRODUCES:
        yield Event("produce", fields)
    elif api in CONSUMES:
        yield Event("consume", fields)


def _answer(frame: Frame) -> Iterator[Event]:
    request = frame.request
    number = {"request_id": frame.description.correlation_id}
    if request is None:
        yield Event("answer to nothing", number)
        return
    value, request_payload, payload = frame.value, request.part("payload"), frame.part("payload")
    yield Event("answer", {**number, "type": int(value.type), "request_type": int(request.value.type)})
    api = request.description.api
    outcome = "granted" if value.get("status") == 0 else "refused"
    if api == "ADD_CONNECTION":
        yield Event(f"ADD_CONNECTION {outcome}")
    elif api in ADDS and outcome == "refused" and request_payload is not None:
        for topic in _topics(request_payload):
            yield Event(f"{api} refused", {"topic": topic, "app": request_payload.get("app")})
    if payload is not None and request_payload is not None and outcome == "granted":
        yield from _granted(str(api), payload, request_payload)


def _granted(api: str, payload: Any, request_payload: Any) -> Iterator[Event]:
    if api == "PRODUCE_MESSAGE_PREPARE":
        yield Event("transaction", {"tx_id": payload.get("tx_id")})
    elif api == "FETCH_PRODUCE_FEEDBACK":
        for each in payload.get("data") or ():
            yield Event("transaction", {"tx_id": each.get("tx_id")})
    elif api in ENDS and payload.get("code") not in (None, 0):
        yield Event("transaction", {"tx_id": request_payload.get("tx_id")})
    elif api == "FETCH_TOPIC_MESSAGE":
        for topic in payload.get("data") or ():
            for message in topic.get("messages") or ():
                place = {"topic": topic.get("topic"), "partition": message.get("partition")}
                yield Event("fetched", {**place, "app": request_payload.get("app")})
    elif api == "FETCH_PARTITION_MESSAGE":
        for name, partition in _partitions(payload.get("data")):
            if partition.get("messages"):
                place = {"topic": name, "partition": partition.get("partition")}
                yield Event("fetched", {**place, "app": request_payload.get("app")})


def _topics(payload: Any) -> Iterator[str | None]:
    """The names of the topics that a request refers to."""
    for topic in payload.get("topics") or ([payload.get("topic")] if payload.get("topic") else ()):
        yield topic if topic is None or isinstance(topic, str) else topic.get("topic")


def _partitions(topics: Any) -> Iterator[tuple[str | None, Any]]:
    for topic in topics or ():
        for partition in topic.get("partitions") or ():
            yield topic.get("topic"), partition


TOPIC = (this.topic, this.app)
FETCHED = (this.topic, this.partition, this.app)

STEPS = (
    Step("ADD_CONNECTION", "connection", "", "asked"),
    Step("ADD_CONNECTION granted", "connection", "", "open"),
    Step("ADD_CONNECTION refused", "connection", "", "refused"),
    Step("REMOVE_CONNECTION", "connection", "", "removed"),
    Step("request", "last_request_id", "", this.request_id),
    Step("answered request", "request", this.request_id, "waiting"),
    Step("answered request", "one_way", this.request_id, ABSENT),
    Step("one-way request", "one_way", this.request_id, "sent"),
    Step(("answer", "answer to nothing"), "request", this.request_id, ABSENT),
    *(Step(f"{api} of a topic", table, TOPIC, "added") for api, table in ADDS.items()),
    *(Step(f"{api} refused", table, TOPIC, "refused") for api, table in ADDS.items()),
    *(Step(f"{api} of a topic", table, TOPIC, "removed") for api, table in REMOVES.items()),
    Step("added", "sequence", (this.what, this.app), this.sequence),
    Step("transaction", "transaction", this.tx_id, "open"),
    Step("transaction ends", "transaction", this.tx_id, "ended"),
    Step("fetched", "fetched", FETCHED, "fetched"),
)

RULES = RuleSet(
    events=events,
    steps=STEPS,
    rules=(
        Rule(
            "first_command_not_add_connection",
            "the first command of a connection is ADD_CONNECTION",
            f"{DOCUMENT}, 连接流程 (connecting); ADD_CONNECTION",
            "command other than ADD_CONNECTION",
            (ABSENT,),
            "connection",
            once=True,
        ),
        Rule(
            "command_after_refused_connection",
            "after a refused ADD_CONNECTION the connection is not set up",
            f"{DOCUMENT}, 连接流程 (connecting)",
            "command other than ADD_CONNECTION",
            ("refused",),
            "connection",
            severity="warning",
            once=True,
        ),
        Rule(
            "add_connection_twice",
            "a connection is added once",
            f"{DOCUMENT}, ADD_CONNECTION",
            "ADD_CONNECTION",
            ("open",),
            "connection",
            severity="warning",
        ),
        Rule(
            "command_after_remove_connection",
            "REMOVE_CONNECTION says that the connection ends",
            f"{DOCUMENT}, 连接流程 (connecting); REMOVE_CONNECTION",
            "request",
            ("removed",),
            "connection",
        ),
        Rule(
            "request_id_not_rising",
            "request ids rise; JoyQueue's client may number a command, then set up a connection with higher ids",
            f"{DOCUMENT}, 头信息 (header), requestId; {JOYQUEUE}, ClientConnectionListener.java",
            "request",
            (this.request_id <= this.state) & (this.state - this.request_id < HALF),
            "last_request_id",
            severity="warning",
        ),
        Rule(
            "answer_without_request",
            "a response has the id of an unanswered request",
            f"{DOCUMENT}, 头信息 (header), requestId",
            "answer to nothing",
            (this.state == ABSENT) & (this.other == ABSENT),
            "request",
            this.request_id,
            other=("one_way", this.request_id),
        ),
        Rule(
            "one_way_answered",
            "a request whose quality of service asks for no response gets none",
            f"{DOCUMENT}, 头信息 (header), identity; {JOYQUEUE}, DefaultChannelTransport.java:323",
            "answer to nothing",
            ("sent",),
            "one_way",
            this.request_id,
        ),
        Rule(
            "answer_of_other_type",
            "a response has the negative type of its request, or is a BOOLEAN_ACK",
            f"{DOCUMENT}, 命令目录 (commands); {JOYQUEUE}, BooleanAck.java",
            "answer",
            (this.type != -this.request_type) & (this.type != BOOLEAN_ACK),
        ),
        Rule(
            "produce_without_add_producer",
            "a topic is announced by ADD_PRODUCER before messages are produced to it",
            f"{DOCUMENT}, 生产流程 (producing); ADD_PRODUCER",
            "produce",
            (ABSENT, "refused", "removed"),
            "producer",
            TOPIC,
            once=True,
        ),
        Rule(
            "consume_without_add_consumer",
            "a topic is announced by ADD_CONSUMER before it is consumed",
            f"{DOCUMENT}, 消费流程 (consuming); ADD_CONSUMER",
            "consume",
            (ABSENT, "refused", "removed"),
            "consumer",
            TOPIC,
            once=True,
        ),
        *(
            Rule(
                "removed_without_added",
                "a producer or consumer is added before it is removed",
                f"{DOCUMENT}, REMOVE_PRODUCER; REMOVE_CONSUMER",
                f"{api} of a topic",
                (ABSENT,),
                table,
                TOPIC,
                severity="warning",
            )
            for api, table in REMOVES.items()
        ),
        Rule(
            "sequence_not_rising",
            "the sequence of ADD_PRODUCER and ADD_CONSUMER rises",
            f"{DOCUMENT}, ADD_PRODUCER; ADD_CONSUMER, sequence",
            "added",
            this.sequence <= this.state,
            "sequence",
            (this.what, this.app),
            severity="warning",
        ),
        Rule(
            "ack_without_fetch",
            "COMMIT_ACK follows messages that were fetched from the partition",
            f"{DOCUMENT}, 消费流程 (consuming)",
            "partition acknowledged",
            (ABSENT,),
            "fetched",
            FETCHED,
            severity="warning",
        ),
        Rule(
            "transaction_not_prepared",
            "a transaction is begun by PRODUCE_MESSAGE_PREPARE, or found by FETCH_PRODUCE_FEEDBACK, before it is used",
            f"{DOCUMENT}, 事务消息 (transactions)",
            "use of a transaction",
            (ABSENT,),
            "transaction",
            this.tx_id,
            severity="warning",
        ),
        Rule(
            "transaction_over",
            "commit or rollback ends a transaction",
            f"{DOCUMENT}, 事务消息 (transactions)",
            "use of a transaction",
            ("ended",),
            "transaction",
            this.tx_id,
        ),
    ),
)
