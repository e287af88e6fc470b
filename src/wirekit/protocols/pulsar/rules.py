"""The rules of the Pulsar documents for the order of commands, as checks of a conversation.

Sources: ``SPECIFICATION`` is the binary protocol specification (pulsar.apache.org/docs, "Binary protocol"), with its
sections; ``EARLIER`` its edition of protocol version 6, which describes every field; ``PROTO`` PulsarApi.proto with its
comments; ``BROKER`` apache/pulsar, where the documents are silent.

A broker may close a producer or consumer at any moment. Commands that the client sends before it learns of that violate
no rule: the state is unknown then. Lookups may use HTTP or another connection: their rules check only topics that were
looked up on the same connection, and are warnings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wirekit.conversation import OTHER_SIDES, SIDES, Frame
from wirekit.errors import Limit
from wirekit.protocols.pulsar.dialogue import ANSWERS, NO_REQUEST, NUMBERED_APART, UNPAIRED, command_of, ids_of_send
from wirekit.rules import ABSENT, LOST, TIME, UNKNOWN, Event, Rule, RuleSet, Step
from wirekit.schemas.pulsar import MAX_MESSAGE_SIZE
from wirekit.wire import this

SPECIFICATION = "Pulsar binary protocol specification"
EARLIER = "Pulsar binary protocol specification, edition of protocol version 6"
PROTO = "PulsarApi.proto"
BROKER = "apache/pulsar"

SINCE = {
    "PING": 1,
    "PONG": 1,
    "REDELIVER_UNACKNOWLEDGED_MESSAGES": 2,
    "LOOKUP": 7,
    "LOOKUP_RESPONSE": 7,
    "PARTITIONED_METADATA": 7,
    "PARTITIONED_METADATA_RESPONSE": 7,
    "CONSUMER_STATS": 8,
    "CONSUMER_STATS_RESPONSE": 8,
    "REACHED_END_OF_TOPIC": 9,
    "GET_LAST_MESSAGE_ID": 12,
    "GET_LAST_MESSAGE_ID_RESPONSE": 12,
    "ACTIVE_CONSUMER_CHANGE": 12,
    "GET_TOPICS_OF_NAMESPACE": 12,
    "GET_TOPICS_OF_NAMESPACE_RESPONSE": 12,
    "AUTH_CHALLENGE": 14,
    "AUTH_RESPONSE": 14,
    "GET_OR_CREATE_SCHEMA": 15,
    "GET_OR_CREATE_SCHEMA_RESPONSE": 15,
    "ACK_RESPONSE": 17,
    "TC_CLIENT_CONNECT_REQUEST": 19,
    "TC_CLIENT_CONNECT_RESPONSE": 19,
    "TOPIC_MIGRATED": 20,
}
"""The protocol version that brought a command (PulsarApi.proto, ProtocolVersion)."""

ENTRY_METADATA_SINCE = 18
SIZES_AND_CHECKSUM = 14
"""Bytes after total_size that are neither command, metadata nor payload; without a checksum it is 6 less."""

PONG_WITHIN_US = 60_000_000
HANDSHAKE = ("CONNECT", "CONNECTED", "AUTH_CHALLENGE", "AUTH_RESPONSE", "ERROR")
LOOKUPS = ("LOOKUP", "PARTITIONED_METADATA")
OF_CONSUMERS = (
    "ACK",
    "REDELIVER_UNACKNOWLEDGED_MESSAGES",
    "SEEK",
    "UNSUBSCRIBE",
    "CONSUMER_STATS",
    "GET_LAST_MESSAGE_ID",
)


def events(frame: Frame) -> Iterator[Event]:
    """The events of a command: the command, its grants or refusals, and the messages that an ACK names."""
    error = frame.decoded.error
    if isinstance(error, Limit) and error.limit == "frame":
        yield Event("frame too large", {"size": error.actual})
    command = command_of(frame.value)
    if command is None:
        yield Event(LOST)
        return
    api, content = command
    fields = dict(content.items()) if content is not None else {}
    fields["since"] = SINCE.get(api)
    yield from _of_command(frame, api, fields)
    fields = _completed(frame, api, fields)
    yield Event(f"{frame.side} {api}", fields)
    if api == "SEND" and not fields.get("replicated"):
        yield Event(f"{frame.side} SEND with its own number", fields)
    yield from _outcome(frame, api, fields)
    if content is None and error is not None:
        yield Event(LOST)


def _of_command(frame: Frame, api: str, fields: dict[str, Any]) -> Iterator[Event]:
    """The events that every command of a kind causes."""
    yield Event(f"{frame.side} command", fields)
    if api not in HANDSHAKE:
        yield Event(f"{frame.side} {'lookup' if api in LOOKUPS else 'other than lookup'}", fields)
    if frame.side == "client" and api in OF_CONSUMERS:
        yield Event("use of a consumer", fields)
    if frame.side == "server" and api in UNPAIRED["server"]:
        if fields.get("assignedBrokerServiceUrl") is None:
            yield Event(f"{api} without a new broker", fields)
        return
    number = fields.get("request_id")
    if number is None or number == NO_REQUEST:
        return
    if frame.description.role == "request":
        yield Event("request", {"pair": _pair(api, number)})
    elif frame.request is None:
        yield Event("answer to nothing", {"pair": _pair(api, number)})
    else:
        request_api = frame.request.description.api or ""
        usual = (*ANSWERS.get(request_api, (api,)), "ERROR")
        yield Event("answer", {"pair": _pair(request_api, number), "other": api not in usual})


def _pair(api: str, number: int) -> tuple[str, int]:
    """The key that a request and its response share; requests of some kinds are numbered apart."""
    return NUMBERED_APART.get(api, "id"), number


def _completed(frame: Frame, api: str, fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a command with defaults filled in, and with facts of its entry."""
    if api in ("CONNECT", "CONNECTED"):
        fields["protocol_version"] = fields.get("protocol_version") or 0
        fields["max_message_size"] = fields.get("max_message_size") or MAX_MESSAGE_SIZE
    entry = frame.value.get("entry")
    if api in ("SEND", "SEND_RECEIPT", "SEND_ERROR"):
        fields["sent"] = _sent(frame if api == "SEND" else frame.request, fields)
    if api in ("SEND", "MESSAGE") and entry is not None:
        fields.update(_of_entry(frame.value, entry, fields))
    return fields


def _sent(send: Frame | None, fields: dict[str, Any]) -> tuple[Any, ...]:
    """The key of a SEND and its response.

    Args:
        send: the SEND, or None for a response to an unknown one.
        fields: the fields of the SEND or of the response.
    """
    command = command_of(send.value) if send is not None else None
    if send is None or command is None or command[1] is None:
        return fields.get("producer_id"), fields.get("sequence_id")
    return ids_of_send(command[1], send.value.get("entry"))


def _of_entry(value: Any, entry: Any, fields: dict[str, Any]) -> dict[str, Any]:
    metadata = entry.get("metadata")
    announced = 1 if fields.get("num_messages") is None else fields["num_messages"]
    batch = (metadata.num_messages_in_batch or 1) if metadata is not None else announced
    acknowledged = fields.get("ack_set") or []
    unacknowledged = sum((word & NO_REQUEST).bit_count() for word in acknowledged)
    message_id = fields.get("message_id")
    return {
        "payload_size": value.total_size - value.command_size - (entry.get("metadata_size") or 0) - SIZES_AND_CHECKSUM,
        "batch": batch,
        "announced": announced,
        "messages": unacknowledged if acknowledged else batch,
        "single": fields.get("is_chunk") is not True,
        "replicated": metadata is not None and metadata.replicated_from is not None,
        "broker_entry": entry.get("broker_entry_metadata") is not None,
        "ledger": message_id.ledgerId if message_id is not None else None,
        "entry": message_id.entryId if message_id is not None else None,
    }


def _outcome(frame: Frame, api: str, fields: dict[str, Any]) -> Iterator[Event]:
    """The events of a response, with its request's fields; the messages of an individual ACK."""
    if api == "ACK" and fields.get("ack_type") == 0:
        for position in fields.get("message_id") or ():
            place = {"ledger": position.ledgerId, "entry": position.entryId}
            yield Event("acknowledged", {"consumer_id": fields.get("consumer_id"), **place})
    command = command_of(frame.request.value) if frame.request is not None else None
    if command is None or command[1] is None:
        return
    waits = api == "PRODUCER_SUCCESS" and fields.get("producer_ready") is False
    outcome = "refused" if api == "ERROR" else "waits" if waits else "granted"
    yield Event(f"{command[0]} {outcome}", dict(command[1].items()))


def _life(table: str, key: Any, make: str, close: str) -> tuple[Step, ...]:
    """The states of producers and consumers: requested, then open or refused, then closed."""
    pending = ("asked", UNKNOWN)
    return (
        Step(f"client {make}", table, key, "asked"),
        Step(f"{make} granted", table, key, "open", when=pending),
        Step(f"{make} refused", table, key, "refused", when=pending),
        Step(f"server {close}", table, key, UNKNOWN),
    )


PRODUCER = ("producer", this.producer_id)
CONSUMER = ("consumer", this.consumer_id)
SENT = this.sent
DELIVERED = (this.consumer_id, this.ledger, this.entry)

STEPS = (
    Step("client CONNECT", "handshake", "", "begun"),
    Step("server CONNECTED", "handshake", "", "done"),
    Step("client CONNECT", "version", "client", this.protocol_version),
    Step("server CONNECTED", "version", "server", this.protocol_version),
    Step("server CONNECTED", "max_message_size", "", this.max_message_size),
    *_life(*PRODUCER, "PRODUCER", "CLOSE_PRODUCER"),
    Step("client CLOSE_PRODUCER", *PRODUCER, "closed"),
    *_life(*CONSUMER, "SUBSCRIBE", "CLOSE_CONSUMER"),
    Step("client CLOSE_CONSUMER", *CONSUMER, "closing"),
    Step("CLOSE_CONSUMER granted", *CONSUMER, "closed", when=("closing",)),
    Step("UNSUBSCRIBE granted", *CONSUMER, "closed", when=("open", UNKNOWN)),
    Step("client LOOKUP", "looked_up_in_frame", this.topic, this.frame),
    Step("CLOSE_PRODUCER without a new broker", "producer_closed_in_frame", this.producer_id, this.frame),
    Step("CLOSE_CONSUMER without a new broker", "consumer_closed_in_frame", this.consumer_id, this.frame),
    Step("client PRODUCER", "producer_closed_in_frame", this.producer_id, ABSENT),
    Step("client SUBSCRIBE", "consumer_closed_in_frame", this.consumer_id, ABSENT),
    Step("client PRODUCER", "last_sequence_id", this.producer_id, ABSENT),
    Step("client SEND with its own number", "last_sequence_id", this.producer_id, this.sequence_id),
    Step("server SEND_ERROR", "last_sequence_id", this.producer_id, UNKNOWN),
    Step("client SEND", "sends_waiting", SENT, this.state + 1),
    Step(("server SEND_RECEIPT", "server SEND_ERROR"), "sends_waiting", SENT, this.state - 1),
    Step("client SUBSCRIBE", "permits", this.consumer_id, 0),
    Step("client FLOW", "permits", this.consumer_id, this.state + this.messagePermits),
    Step("server MESSAGE", "permits", this.consumer_id, this.state - 1),
    Step("client SUBSCRIBE", "permits_of_messages", this.consumer_id, 0),
    Step("client FLOW", "permits_of_messages", this.consumer_id, this.state + this.messagePermits),
    Step("server MESSAGE", "permits_of_messages", this.consumer_id, this.state - this.messages),
    Step("server MESSAGE", "delivered", DELIVERED, "delivered"),
    Step("request", "request", this.pair, "waiting"),
    Step("request", "answer", this.pair, ABSENT),
    Step("answer", "request", this.pair, ABSENT),
    Step("answer", "answer", this.pair, "given"),
    *(Step(f"{side} PING", "ping", side, this.time, when=(ABSENT, UNKNOWN)) for side in SIDES),
    Step("server PONG", "ping", "client", ABSENT),
    Step("client PONG", "ping", "server", ABSENT),
)

RULES = RuleSet(
    events=events,
    steps=STEPS,
    initial={"sends_waiting": 0, "permits": 0, "permits_of_messages": 0},
    rules=(
        Rule(
            "command_before_connect",
            "a client begins with CONNECT",
            f"{SPECIFICATION}, Connection establishment",
            "client other than lookup",
            (ABSENT,),
            "handshake",
            "",
        ),
        Rule(
            "command_before_connected",
            "no side sends other commands before CONNECTED",
            f"{SPECIFICATION}, Connection establishment",
            ("client other than lookup", "server other than lookup"),
            ("begun",),
            "handshake",
            "",
        ),
        Rule(
            "lookup_before_handshake",
            "a lookup needs a connection whose handshake is done",
            f"{SPECIFICATION}, Topic lookup",
            "client lookup",
            (ABSENT, "begun"),
            "handshake",
            "",
        ),
        Rule(
            "connect_twice",
            "a connection has one CONNECT",
            f"{BROKER}, ServerCnx.handleConnect",
            "client CONNECT",
            ("begun", "done"),
            "handshake",
            "",
        ),
        *(
            Rule(
                "command_above_version",
                "a side gets no command that is newer than the protocol version it announced",
                f"{EARLIER}, Connection establishment, protocol_version; {PROTO}, ProtocolVersion",
                f"{side} command",
                this.since > this.state,
                "version",
                other,
            )
            for side, other in OTHER_SIDES.items()
        ),
        Rule(
            "broker_entry_metadata_unasked",
            "broker entry metadata goes to clients of protocol version 18 or later",
            f"{SPECIFICATION}, Broker entry metadata",
            "server MESSAGE",
            this.broker_entry & (this.state < ENTRY_METADATA_SINCE),
            "version",
            "client",
        ),
        *(
            Rule(
                "ping_unanswered",
                "PING is answered at once; after 60 s without PONG the other side closes",
                f"{SPECIFICATION}, Keep Alive",
                TIME,
                this.time - this.state > PONG_WITHIN_US,
                "ping",
                side,
                once=True,
            )
            for side in SIDES
        ),
        *(
            Rule(
                "pong_without_ping",
                "PONG answers a PING",
                f"{SPECIFICATION}, Keep Alive",
                f"{side} PONG",
                (ABSENT,),
                "ping",
                other,
                severity="warning",
            )
            for side, other in OTHER_SIDES.items()
        ),
        Rule(
            "send_without_producer",
            "SEND needs a producer that was created on this connection",
            f"{SPECIFICATION}, Command Send",
            "client SEND",
            (ABSENT, "refused"),
            *PRODUCER,
        ),
        Rule(
            "send_before_producer_success",
            "a client sends messages after the broker has confirmed the producer",
            f"{SPECIFICATION}, Producer",
            "client SEND",
            ("asked",),
            *PRODUCER,
        ),
        Rule(
            "send_after_close",
            "after CLOSE_PRODUCER the broker takes no more messages of the producer",
            f"{SPECIFICATION}, Command CloseProducer",
            "client SEND",
            ("closed",),
            *PRODUCER,
        ),
        Rule(
            "producer_recreated_without_close",
            "a producer is closed before its id is used again",
            f"{SPECIFICATION}, Producer; Command CloseProducer",
            "client PRODUCER",
            ("asked", "open"),
            *PRODUCER,
        ),
        *(
            Rule(
                "recreated_without_lookup",
                "after the broker closed a producer or consumer, the topic is looked up before it is created again",
                f"{SPECIFICATION}, Command CloseProducer; Topic lookup",
                event,
                this.other < this.state,
                f"{kind}_closed_in_frame",
                number,
                other=("looked_up_in_frame", this.topic),
                severity="warning",
            )
            for kind, event, number in (
                ("producer", "client PRODUCER", this.producer_id),
                ("consumer", "client SUBSCRIBE", this.consumer_id),
            )
        ),
        Rule(
            "close_of_unknown_producer",
            "CLOSE_PRODUCER names a producer of this connection",
            f"{SPECIFICATION}, Command CloseProducer",
            "client CLOSE_PRODUCER",
            (ABSENT,),
            *PRODUCER,
            severity="warning",
        ),
        Rule(
            "sequence_id_goes_back",
            "sequence ids of a producer rise; chunks of a message share one, and replicators keep those of the source",
            f"{EARLIER}, Command Send, sequence_id",
            "client SEND with its own number",
            (this.sequence_id < this.state) | ((this.sequence_id == this.state) & this.single),
            "last_sequence_id",
            this.producer_id,
            severity="warning",
        ),
        Rule(
            "send_too_large",
            "the payload of SEND, compressed and encrypted, fits into the max_message_size of CONNECTED",
            f"{PROTO}, CommandConnected.max_message_size",
            "client SEND",
            this.payload_size > this.state,
            "max_message_size",
            "",
        ),
        Rule(
            "frame_too_large",
            "a frame is not larger than the largest message and 10 kB",
            f"{SPECIFICATION}, Framing; {PROTO}, CommandConnected.max_message_size",
            "frame too large",
            this.size > this.state,
            "max_message_size",
            "",
        ),
        Rule(
            "batch_count_differs",
            "num_messages of SEND is the number of messages in the batch",
            f"{EARLIER}, Command Send, num_messages; Batch messages",
            "client SEND",
            this.announced != this.batch,
        ),
        Rule(
            "receipt_without_send",
            "SEND_RECEIPT and SEND_ERROR answer a SEND once, by producer and sequence id, or its source position",
            f"{SPECIFICATION}, Command SendReceipt; {BROKER}, GeoReplicationProducerImpl",
            ("server SEND_RECEIPT", "server SEND_ERROR"),
            (0,),
            "sends_waiting",
            SENT,
        ),
        Rule(
            "message_without_consumer",
            "MESSAGE goes to a consumer that was subscribed on this connection",
            f"{SPECIFICATION}, Command Message",
            "server MESSAGE",
            (ABSENT, "refused"),
            *CONSUMER,
        ),
        Rule(
            "message_after_close",
            "a broker pushes no more after it confirmed the close; it may write both at once, and clients ignore them",
            f"{SPECIFICATION}, Command CloseConsumer; {BROKER} 3.0.7, observed",
            "server MESSAGE",
            ("closed",),
            *CONSUMER,
            severity="warning",
        ),
        Rule(
            "message_without_permits",
            "a broker pushes no more than FLOW permits; an entry takes at least one permit",
            f"{SPECIFICATION}, Flow control; Command Message",
            "server MESSAGE",
            this.state <= 0,
            "permits",
            this.consumer_id,
        ),
        Rule(
            "batch_beyond_permits",
            "the messages of batches count against the permits too",
            f"{SPECIFICATION}, Flow control; {PROTO}, CommandFlow.messagePermits",
            "server MESSAGE",
            this.state <= 0,
            "permits_of_messages",
            this.consumer_id,
            severity="warning",
        ),
        Rule(
            "flow_without_consumer",
            "FLOW names a consumer that was subscribed on this connection",
            f"{SPECIFICATION}, Flow control",
            "client FLOW",
            (ABSENT, "refused"),
            *CONSUMER,
        ),
        Rule(
            "flow_before_subscribed",
            "FLOW is sent after the broker has confirmed the consumer",
            f"{SPECIFICATION}, Flow control",
            "client FLOW",
            ("asked",),
            *CONSUMER,
            severity="warning",
        ),
        Rule(
            "consumer_not_subscribed",
            "a command about a consumer names one that was subscribed on this connection",
            f"{SPECIFICATION}, Consumer",
            "use of a consumer",
            (ABSENT, "refused"),
            *CONSUMER,
        ),
        Rule(
            "consumer_used_after_close",
            "a client uses no consumer that the broker closed; Java and Go clients do send late ACKs, Go late FLOWs",
            f"{SPECIFICATION}, Consumer; {BROKER} 3.0.7 and 4.2.4, observed",
            ("use of a consumer", "client FLOW"),
            ("closed",),
            *CONSUMER,
            severity="warning",
        ),
        Rule(
            "subscribed_twice",
            "a consumer is closed before its id is used again",
            f"{SPECIFICATION}, Consumer; Command CloseConsumer",
            "client SUBSCRIBE",
            ("asked", "open"),
            *CONSUMER,
        ),
        Rule(
            "ack_of_undelivered",
            "ACK names messages that the broker has delivered to the consumer",
            f"{SPECIFICATION}, Command Ack",
            "acknowledged",
            (ABSENT,),
            "delivered",
            DELIVERED,
            severity="warning",
        ),
        Rule(
            "request_id_in_use",
            "a request does not repeat the request id of an unanswered request",
            f"{EARLIER}, Command Producer, request_id",
            "request",
            ("waiting",),
            "request",
            this.pair,
        ),
        Rule(
            "answer_without_request",
            "a response has the id of an unanswered request",
            f"{EARLIER}, Command Producer, request_id",
            "answer to nothing",
            (this.state == ABSENT) & (this.other != "given"),
            "request",
            this.pair,
            other=("answer", this.pair),
        ),
        Rule(
            "answered_twice",
            "a request is answered once; brokers do send an ERROR after the response to GET_LAST_MESSAGE_ID",
            f"{EARLIER}, Command Producer, request_id; {BROKER} 4.0.7, observed",
            "answer to nothing",
            ("given",),
            "answer",
            this.pair,
            severity="warning",
        ),
        Rule(
            "answer_of_other_type",
            "a request is answered by the command of its type, or by ERROR",
            f"{SPECIFICATION}, Producer; Consumer; Topic lookup; {PROTO}, BaseCommand.Type",
            "answer",
            this.other,
        ),
    ),
)
