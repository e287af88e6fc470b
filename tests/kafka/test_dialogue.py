"""A connection: answers are decoded by their requests, and the rest is kept with the reason."""

from __future__ import annotations

from typing import Any

import pytest

import wirekit
from tests.kafka.golden import PDUS, first, message, sized
from wirekit.conversation import NEED_DATA, Conversation, Frame, Quarantined


def request(api: str, version: int, number: int, body: dict[str, Any], client_id: str = "c") -> bytes:
    value = {"correlation_id": number, "client_id": client_id, "body": body}
    return wirekit.encode(f"kafka.{api}.request.v{version}", value)


def response(api: str, version: int, number: int, body: dict[str, Any]) -> bytes:
    return wirekit.encode(f"kafka.{api}.response.v{version}", {"correlation_id": number, "body": body})


def produce(number: int, *entries: dict[str, Any], acks: int = 1) -> bytes:
    data = [{"partition": 3, "record_set": {"messages": list(entries)}}]
    return request("produce", 2, number, {"acks": acks, "timeout": 9, "topic_data": [{"topic": "t", "data": data}]})


def unknown(key: int, version: int, number: int) -> bytes:
    head = key.to_bytes(2, "big") + version.to_bytes(2, "big") + number.to_bytes(4, "big")
    return sized(head + b"\x00\x01c" + b"whatever")


def frames(conversation: Conversation, side: str, data: bytes) -> list[Frame]:
    """The frames in bytes that hold nothing but whole frames."""
    events = conversation.receive(side, data)
    assert all(isinstance(event, Frame) for event in events), events
    return [event for event in events if isinstance(event, Frame)]


def frame(conversation: Conversation, side: str, data: bytes) -> Frame:
    (only_frame,) = frames(conversation, side, data)
    return only_frame


HEARTBEAT = {"group_id": "g", "group_generation_id": 1, "member_id": "m"}
NO_GROUPS = {"error_code": 0, "groups": []}


def test_captured_pairs() -> None:
    """All captured requests and responses, each pair on a connection of its own."""
    answered = {(pdu.release, pdu.line): pdu for pdu in PDUS if pdu.side == "response"}
    for request_pdu in PDUS:
        if request_pdu.side == "response":
            continue
        conversation = Conversation("kafka")
        question = frame(conversation, "client", request_pdu.data)
        assert question.schema == request_pdu.key
        assert question.reason is None
        assert (question.description.api, question.description.version) == (request_pdu.api, request_pdu.version)
        answer = answered.get((request_pdu.release, request_pdu.line))
        if answer is None:
            continue
        assert len(conversation.requests) == 1
        reply = frame(conversation, "server", answer.data)
        assert reply.schema == answer.key
        assert reply.request is question
        assert reply.decoded.clean
        assert conversation.requests == []


def test_bytes_may_come_one_by_one() -> None:
    conversation = Conversation("kafka")
    data = request("list_groups", 0, 5, {})
    for number in data[:-1]:
        assert conversation.receive("client", bytes([number])) == [NEED_DATA]
    (event,) = conversation.receive("client", data[-1:])
    assert isinstance(event, Frame)


class TestPairs:
    def test_by_id_not_by_position(self) -> None:
        """Answers to what was asked before the capture began do not shift the others."""
        conversation = Conversation("kafka")
        frame(conversation, "client", request("heartbeat", 0, 8, HEARTBEAT))
        stray = frame(conversation, "server", response("list_groups", 0, 7, NO_GROUPS))
        assert stray.schema == "kafka.response"
        assert stray.reason == "no request has correlation id 7"
        assert stray.request is None
        answer = frame(conversation, "server", response("heartbeat", 0, 8, {"error_code": 27}))
        assert answer.value.body.error_code.symbol == "REBALANCE_IN_PROGRESS"

    def test_pipelined(self) -> None:
        conversation = Conversation("kafka")
        frames(conversation, "client", request("list_groups", 0, 1, {}) + request("heartbeat", 0, 2, HEARTBEAT))
        answers = response("list_groups", 0, 1, NO_GROUPS) + response("heartbeat", 0, 2, {"error_code": 0})
        responses = frames(conversation, "server", answers)
        assert [(f.description.api, f.description.correlation_id) for f in responses] == [
            ("list_groups", 1),
            ("heartbeat", 2),
        ]

    def test_ids_that_repeat(self) -> None:
        """0.8's SimpleConsumer numbers all its requests 0."""
        conversation = Conversation("kafka")
        requests = (
            request("heartbeat", 0, 0, HEARTBEAT)
            + request("list_groups", 0, 0, {})
            + request("heartbeat", 0, 0, HEARTBEAT)
        )
        questions = frames(conversation, "client", requests)
        answers = (
            response("heartbeat", 0, 0, {"error_code": 0})
            + response("list_groups", 0, 0, NO_GROUPS)
            + response("heartbeat", 0, 0, {"error_code": 0})
        )
        responses = frames(conversation, "server", answers)
        assert [f.description.api for f in responses] == ["heartbeat", "list_groups", "heartbeat"]
        assert [f.request for f in responses] == questions

    def test_ids_that_repeat_when_an_answer_was_lost(self) -> None:
        conversation = Conversation("kafka")
        frames(conversation, "client", request("heartbeat", 0, 0, HEARTBEAT) + request("list_groups", 0, 0, {}))
        answered = frame(conversation, "server", response("list_groups", 0, 0, NO_GROUPS))
        assert answered.description.api == "list_groups"
        assert conversation.requests == []

    def test_answers_in_order_end_the_wait_for_older_ones(self) -> None:
        conversation = Conversation("kafka")
        requests = b"".join(request("list_groups", 0, number, {}) for number in range(5))
        frames(conversation, "client", requests)
        frame(conversation, "server", response("list_groups", 0, 3, NO_GROUPS))
        assert [f.description.correlation_id for f in conversation.requests] == [4]

    def test_produce_without_acks_has_no_answer(self) -> None:
        conversation = Conversation("kafka")
        question = frame(conversation, "client", produce(4, message(b"v"), acks=0))
        assert not question.description.answered
        assert conversation.requests == []

    def test_latency(self) -> None:
        conversation = Conversation("kafka")
        conversation.receive("client", request("list_groups", 0, 1, {}), time_us=100)
        (answer,) = conversation.receive("server", response("list_groups", 0, 1, NO_GROUPS), time_us=350)
        assert isinstance(answer, Frame)
        assert answer.latency_us == 250


class TestVersions:
    @pytest.mark.parametrize("version", [1, 3])
    def test_api_versions_of_an_unknown_version_is_answered_in_v0(self, version: int) -> None:
        conversation = Conversation("kafka")
        question = frame(conversation, "client", unknown(18, version, 1))
        assert question.schema == "kafka.request"
        assert question.reason == f"api_versions v{version} is not known"
        answer = frame(conversation, "server", response("api_versions", 0, 1, {"error_code": 35, "api_versions": []}))
        assert answer.schema == "kafka.api_versions.response.v0"
        assert answer.value.body.error_code.symbol == "UNSUPPORTED_VERSION"
        assert answer.request is question

    @pytest.mark.parametrize(
        ("key", "api", "reason"),
        [(177, "177", "api key 177 is not known"), (22, "init_producer_id", "init_producer_id v0 is not known")],
    )
    def test_unknown_api(self, key: int, api: str, reason: str) -> None:
        conversation = Conversation("kafka")
        question = frame(conversation, "client", unknown(key, 0, 1))
        assert (question.description.api, question.reason) == (api, reason)
        answer = frame(conversation, "server", sized(b"\0\0\0\1whatever"))
        assert answer.request is question
        assert answer.schema == "kafka.response"
        assert answer.reason == f"the request is {api} v0, which is not known"

    def test_unknown_version(self) -> None:
        conversation = Conversation("kafka")
        question = frame(conversation, "client", unknown(1, 9, 1))
        assert (question.description.api, question.description.version) == ("fetch", 9)
        assert question.reason == "fetch v9 is not known"

    def test_brokers_of_0_8_answer_any_version_in_v0(self) -> None:
        conversation = Conversation("kafka")
        body = {
            "responses": [{"topic": "t", "partition_responses": [{"partition": 0, "error_code": 0, "base_offset": 7}]}]
        }
        for number in (1, 2):
            frame(conversation, "client", produce(number, message(b"v")))
            answer = frame(conversation, "server", response("produce", 0, number, body))
            assert answer.schema == "kafka.produce.response.v0"
            assert answer.decoded.clean

    def test_offset_commit_of_0_8_2_beta(self) -> None:
        topics = [{"topic": "t", "partitions": [{"partition": 0, "offset": 5, "timestamp": -1, "metadata": ""}]}]
        value = {"correlation_id": 1, "client_id": "c", "body": {"group_id": "g", "topics": topics}}
        data = wirekit.encode("kafka.offset_commit.request.v0.beta", value)
        conversation = Conversation("kafka")
        question = frame(conversation, "client", data)
        assert question.schema == "kafka.offset_commit.request.v0.beta"
        assert question.decoded.clean
        answer = frame(conversation, "server", response("offset_commit", 0, 1, {"responses": []}))
        assert answer.schema == "kafka.offset_commit.response.v0"


class TestSasl:
    handshake = request("sasl_handshake", 0, 1, {"mechanism": "PLAIN"})
    accepted = response("sasl_handshake", 0, 1, {"error_code": 0, "enabled_mechanisms": ["PLAIN"]})
    refused = response("sasl_handshake", 0, 1, {"error_code": 33, "enabled_mechanisms": ["GSSAPI"]})
    token = sized(b"\0alice\0alice-secret")

    def test_tokens_until_the_next_request(self) -> None:
        conversation = Conversation("kafka")
        frame(conversation, "client", self.handshake)
        frame(conversation, "server", self.accepted)
        sent = frame(conversation, "client", self.token)
        assert (sent.schema, sent.description.api, sent.description.role) == ("kafka.sasl_token", "sasl_token", "event")
        assert sent.value.token == b"\0alice\0alice-secret"
        assert frame(conversation, "server", bytes(4)).schema == "kafka.sasl_token"
        assert frame(conversation, "client", request("list_groups", 0, 2, {})).schema == "kafka.list_groups.request.v0"
        answer = frame(conversation, "server", response("list_groups", 0, 2, NO_GROUPS))
        assert answer.schema == "kafka.list_groups.response.v0"

    def test_a_version_that_is_not_declared(self) -> None:
        """Nobody knows what its answer says of the mechanism."""
        conversation = Conversation("kafka")
        question = frame(conversation, "client", self.handshake[:6] + b"\0\5" + self.handshake[8:])
        assert (question.description.api, question.description.version) == ("sasl_handshake", 5)
        answer = frame(conversation, "server", self.accepted)
        assert (answer.schema, answer.description.api) == ("kafka.response", "sasl_handshake")

    def test_several_rounds(self) -> None:
        conversation = Conversation("kafka")
        frame(conversation, "client", self.handshake)
        frame(conversation, "server", self.accepted)
        for token in (b"n,,n=user,r=nonce", b"c=biws,r=nonce,p=proof"):
            assert frame(conversation, "client", sized(token)).schema == "kafka.sasl_token"
            assert frame(conversation, "server", sized(b"r=nonce")).schema == "kafka.sasl_token"

    def test_one_direction_first(self) -> None:
        conversation = Conversation("kafka")
        requests = self.handshake + self.token + request("list_groups", 0, 2, {})
        answers = self.accepted + bytes(4) + response("list_groups", 0, 2, NO_GROUPS)
        assert [f.description.api for f in frames(conversation, "client", requests)] == [
            "sasl_handshake",
            "sasl_token",
            "list_groups",
        ]
        assert [f.schema for f in frames(conversation, "server", answers)] == [
            "kafka.sasl_handshake.response.v0",
            "kafka.sasl_token",
            "kafka.list_groups.response.v0",
        ]

    def test_refused_handshake(self) -> None:
        conversation = Conversation("kafka")
        frame(conversation, "client", self.handshake)
        frame(conversation, "server", self.refused)
        assert frame(conversation, "client", unknown(177, 0, 2)).reason == "api key 177 is not known"

    def test_connection_that_begins_with_a_token(self) -> None:
        """Brokers of 0.9 know GSSAPI only, without a handshake."""
        conversation = Conversation("kafka")
        gssapi = bytes.fromhex("6082023506092a864886f71201020201006e820224") + bytes(500)
        assert frame(conversation, "client", sized(gssapi)).schema == "kafka.sasl_token"
        assert frame(conversation, "server", sized(b"\x60\x81\x99whatever")).schema == "kafka.sasl_token"
        assert frame(conversation, "client", sized(b"")).schema == "kafka.sasl_token"
        assert frame(conversation, "client", request("metadata", 0, 0, {"topics": []})).reason is None
        assert frame(conversation, "client", unknown(177, 0, 1)).reason == "api key 177 is not known"


class TestJoinedInTheMiddle:
    def test_answer_to_a_fetch_that_nobody_saw(self) -> None:
        """Captures of replica fetchers begin so."""
        stray = first("fetch", "response", 1)
        conversation = Conversation("kafka", started=False)
        answer = frame(conversation, "server", stray.data)
        assert answer.schema == "kafka.response"
        assert answer.reason is not None
        assert answer.value.body == stray.data[8:]

    def test_the_end_of_a_frame_that_began_before_the_capture(self) -> None:
        conversation = Conversation("kafka", started=False)
        data = produce(3, message(b"something"))
        events = conversation.receive("client", data[20:] + request("list_groups", 0, 4, {}))
        assert [type(event) for event in events] == [Quarantined, Frame]
        events = conversation.receive("server", b"rest of an answer" + response("list_groups", 0, 4, NO_GROUPS))
        assert [type(event) for event in events] == [Quarantined, Frame]

    def test_requests_of_another_client_id_are_quarantined(self) -> None:
        """A message may hold a captured request; the connection's own client id is known."""
        conversation = Conversation("kafka")
        frame(conversation, "client", request("list_groups", 0, 4, {}))
        conversation.gap("client", 100)
        foreign = request("list_groups", 0, 5, {}, client_id="x")
        events = conversation.receive("client", b"value" + foreign + request("list_groups", 0, 6, {}))
        assert [type(event) for event in events] == [Quarantined, Frame]
        assert isinstance(events[1], Frame)
        assert events[1].description.correlation_id == 6

    def test_nonsense(self) -> None:
        conversation = Conversation("kafka")
        frame(conversation, "client", request("list_groups", 0, 4, {}))
        assert conversation.receive("client", b"\xff" * 40) == [NEED_DATA]
        (event,) = conversation.close("client")
        assert isinstance(event, Quarantined)


class TestMessages:
    def test_of_a_produce_request(self) -> None:
        inner = [message(b"a", offset=0, magic=1, key="6b"), message(b"b", offset=1, magic=1)]
        conversation = Conversation("kafka")
        question = frame(
            conversation,
            "client",
            produce(1, message(b"plain", offset=0, magic=0), message(inner, offset=1, magic=1, codec="SNAPPY")),
        )
        assert [each.to_json() for each in question.messages] == [
            {
                "protocol": "kafka",
                "topic": "t",
                "partition": 3,
                "offset": None,
                "timestamp": None,
                "timestamp_type": None,
                "key": None,
                "value": b"plain".hex(),
                "attributes": 0,
                "codec": "none",
                "crc": question.value.body.topic_data[0].data[0].record_set.messages[0].message.crc,
                "check": "ok",
                "schema": "kafka.produce.request.v2",
            },
            *(
                {
                    "protocol": "kafka",
                    "topic": "t",
                    "partition": 3,
                    "offset": None,
                    "timestamp": 1_000,
                    "timestamp_type": "CreateTime",
                    "key": key,
                    "value": value.hex(),
                    "attributes": 0,
                    "codec": "snappy",
                    "crc": question.messages[1 + index].crc,
                    "check": "ok",
                    "schema": "kafka.produce.request.v2",
                }
                for index, key, value in ((0, "6b", b"a"), (1, None, b"b"))
            ),
        ]

    def test_of_a_fetch_response(self) -> None:
        conversation = Conversation("kafka")
        topics = [{"topic": "t", "partitions": [{"partition": 0, "fetch_offset": 8, "max_bytes": 999}]}]
        fetch = {"replica_id": -1, "max_wait_time": 1, "min_bytes": 1, "topics": topics}
        frame(conversation, "client", request("fetch", 2, 1, fetch))
        inner = [message(b"a", offset=0, magic=1), message(b"b", offset=1, magic=1)]
        wrapper = message(inner, offset=8, magic=1, codec="LZ4", timestamp=5, timestamp_type="LogAppendTime")
        partition = {"partition": 0, "error_code": 0, "high_watermark": 9, "record_set": {"messages": [wrapper]}}
        body = {"throttle_time_ms": 0, "responses": [{"topic": "t", "partition_responses": [partition]}]}
        answer = frame(conversation, "server", response("fetch", 2, 1, body))
        assert [(m.offset, m.timestamp, m.timestamp_type, m.codec, m.value) for m in answer.messages] == [
            (7, 5, "LogAppendTime", "lz4", b"a"),
            (8, 5, "LogAppendTime", "lz4", b"b"),
        ]

    def test_of_a_wrapper_with_an_older_magic_than_its_messages(self) -> None:
        """kafka-node 5.0.0 writes such wrappers to brokers of 0.9, which give the messages in them absolute offsets."""
        conversation = Conversation("kafka")
        topics = [{"topic": "t", "partitions": [{"partition": 0, "fetch_offset": 7, "max_bytes": 999}]}]
        asked = {"replica_id": -1, "max_wait_time": 1, "min_bytes": 1, "topics": topics}
        frame(conversation, "client", request("fetch", 1, 1, asked))
        inner = [message(b"a", offset=7, magic=1, timestamp=5), message(b"b", offset=8, magic=1, timestamp=6)]
        records = {"messages": [message(inner, offset=8, codec="GZIP")]}
        partition = {"partition": 0, "error_code": 0, "high_watermark": 9, "record_set": records}
        body = {"throttle_time_ms": 0, "responses": [{"topic": "t", "partition_responses": [partition]}]}
        answer = frame(conversation, "server", response("fetch", 1, 1, body))
        assert [(m.offset, m.timestamp, m.timestamp_type, m.check, m.value) for m in answer.messages] == [
            (7, 5, "CreateTime", "ok", b"a"),
            (8, 6, "CreateTime", "ok", b"b"),
        ]

    def test_of_frames_that_have_none(self) -> None:
        conversation = Conversation("kafka")
        assert frame(conversation, "client", request("list_groups", 0, 1, {})).messages == []
        assert frame(conversation, "client", unknown(0, 9, 2)).messages == []

    def test_of_a_damaged_frame_go_as_far_as_it_was_decoded(self) -> None:
        data = bytearray(produce(1, message(b"one"), message(b"two")))
        data[-4] ^= 0x40
        conversation = Conversation("kafka")
        question = frame(conversation, "client", bytes(data))
        assert question.decoded.error is not None
        assert [(m.value, m.check) for m in question.messages] == [(b"one", "ok")]

    @pytest.mark.parametrize("side", ["client", "server"])
    def test_of_a_frame_that_ends_anywhere(self, side: str) -> None:
        whole = first("produce", "request", 1) if side == "client" else first("fetch", "response", 1)
        data = first("fetch", "request", 1).data
        number = int.from_bytes(whole.data[4:8], "big")
        counts = set()
        lengths = range(len(whole.data) - 4)
        for length in sorted({*lengths[:140:7], *lengths[:: len(lengths) // 50]}):
            conversation = Conversation("kafka")
            if side == "server":
                frame(conversation, "client", data[:8] + number.to_bytes(4, "big") + data[12:])
            cut = frame(conversation, side, sized(whole.data[4 : 4 + length]))
            counts.add(len(cut.messages))
        assert len(counts) > 1

    def test_captured(self) -> None:
        """What kafka's own clients produced, all codecs: every CRC is right but those broken on purpose."""
        verdicts = []
        for pdu in PDUS:
            if pdu.api == "produce" and pdu.side == "request":
                question = frame(Conversation("kafka"), "client", pdu.data)
                assert question.messages
                verdicts += [(each.codec, each.check) for each in question.messages]
        assert {codec for codec, _ in verdicts} == {"none", "gzip", "snappy", "lz4"}
        assert [check for _, check in verdicts].count("bad") == 2
