"""Calls, what they give, and the keys between the tables: laws for any capture, and a protocol of one's own."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wirekit
from tests.conftest import FIXTURES
from tests.pipeline.helpers import follow_rows, stream
from wirekit.capture.files import open_capture, segments
from wirekit.capture.tcp import Segment
from wirekit.cli.connections import plain_summary
from wirekit.conversation import Conversation, Description, Dialogue
from wirekit.engine import Decoded
from wirekit.errors import Misuse
from wirekit.registry import Layout, Protocol, register, registry
from wirekit.tables import Asked, Except, Fixed, Messages, Named, Names, Rows, Tables
from wirekit.tables.columns import FROM_INPUTS
from wirekit.tables.records import Frames, Records
from wirekit.values import Symbol, SymbolTable
from wirekit.wire import Array, Bytes, Checked, Length, String, Struct, Symbols, int16, uint32

Tabled = dict[str, list[dict[str, Any]]]
CAPTURES = sorted((FIXTURES / "pcap").glob("*.pcap*"))


def read(path: Path) -> list[Segment]:
    with open_capture(path) as capture:
        return [each for each in segments(capture) if isinstance(each, Segment)]


def assert_keys(tables: Tabled) -> None:
    """What is in one table has its row in the other, and sums agree."""
    calls = {row["call_id"]: row for row in tables["calls"]}
    connections = {row["connection_id"]: row for row in tables["connections"]}
    assert len(calls) == len(tables["calls"])
    assert len(connections) == len(tables["connections"])
    frames = {row["frame_id"]: row for row in tables["frames"]}
    assert len(frames) == len(tables["frames"])
    for table in ("call_topics", "messages", "group_events", "offsets", "frames"):
        assert {row["call_id"] for row in tables[table]} <= calls.keys(), table
    for table in ("calls", "messages", "frames", "quarantine", "gaps"):
        assert {row["connection_id"] for row in tables[table]} <= connections.keys(), table
    for name, connection in connections.items():
        mine = [row for row in tables["calls"] if row["connection_id"] == name]
        assert connection["calls"] == len(mine)
        assert connection["errors"] == sum(row["error"] is not None for row in mine)
    assert Counter(row["call_id"] for row in tables["messages"]) == Counter(
        {key: row["messages"] for key, row in calls.items() if row["messages"]}
    )
    for row in tables["calls"]:
        times = [row["request_time"], row["response_time"]]
        has_request, answered = (time is not None for time in times)
        expected = {"answered": (True, True), "unasked": (False, True), "repeated": (False, True)}
        assert (has_request, answered) == expected.get(row["outcome"], (True, False)), row
        assert (row["latency_us"] is None) == (row["outcome"] not in ("answered", "repeated"))
    for row in tables["frames"]:
        call = calls[row["call_id"]]
        if row["role"] == "response":
            assert call["response_bytes"] == row["length"]
            assert call["response_time"] == row["time"]
        else:
            assert row["frame_id"] == row["call_id"]
            assert (call["request_bytes"], call["request_time"]) == (row["length"], row["time"])


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_keys_of_real_captures(path: Path) -> None:
    assert_keys(follow_rows(read(path))[0])


SOME = read(FIXTURES / "pcap" / "kafka-0.9.0.1-4-clients.pcapng")[:600]


@given(st.data())
def test_keys_of_captures_with_losses(data: st.DataObject) -> None:
    lost = data.draw(st.sets(st.integers(0, len(SOME) - 1), max_size=60))
    assert_keys(follow_rows([each for number, each in enumerate(SOME) if number not in lost])[0])


def only(tables: Tabled, table: str, **wanted: Any) -> dict[str, Any]:
    (row,) = [row for row in tables[table] if all(row[name] == value for name, value in wanted.items())]
    return row


def test_a_newer_kafka_client_names_its_library() -> None:
    path = FIXTURES / "pcap" / "kafka-0.10.2.2-4-clients.pcapng"
    tables, _ = follow_rows(read(path))
    libraries = Counter(
        (row["client"], row["client_software"], row["client_version"])
        for row in tables["connections"]
        if row["client_software"] or row["client"] == "rdkafka"
    )
    assert libraries == {("rdkafka", "librdkafka", "2.0.2"): 12}


@pytest.mark.parametrize(
    ("version", "body", "library"),
    [
        (3, "00 05 73617261 03 7631 00", ("sara", "v1")),
        (5, "00 05 73617261 03 7631 0100ffff 00", ("sara", "v1")),  # v5 adds fields
        (3, "00 05 73617261 00 00", (None, None)),  # a null version
        (3, "00 05 7361", (None, None)),
        (2, "00 05 73617261 03 7631 00", (None, None)),  # versions 1 and 2 name no library
    ],
)
def test_the_library_of_a_kafka_client(version: int, body: str, library: tuple[str | None, str | None]) -> None:
    request = bytes.fromhex(f"0012 {version:04x} 00000001 0002 6d65") + bytes.fromhex(body)
    refusal = wirekit.encode(
        "kafka.api_versions.response.v0", {"correlation_id": 1, "body": {"error_code": 35, "api_versions": []}}
    )
    tables, _ = follow_rows(stream(len(request).to_bytes(4, "big") + request, refusal), protocol="kafka")
    connection = only(tables, "connections")
    assert (connection["client"], connection["client_software"], connection["client_version"]) == ("me", *library)


def test_a_request_and_its_answer_are_one_row_of_a_topic() -> None:
    request = {"acks": 1, "timeout": 9, "topic_data": []}
    for topic in ("a", "b"):
        message = {"offset": 0, "message": {"magic": 1, "timestamp": 5, "value": "6869"}}
        partitions = [{"partition": number, "record_set": {"messages": [message] * 2}} for number in (1, 0)]
        request["topic_data"].append({"topic": topic, "data": partitions})
    answers = [{"partition": number, "error_code": 6 * number, "base_offset": 40 + number} for number in (0, 1)]
    answer = {"responses": [{"topic": topic, "partition_responses": answers} for topic in ("b", "a")]}
    client = wirekit.encode("kafka.produce.request.v2", {"correlation_id": 7, "client_id": "me", "body": request})
    for responses in answer["responses"]:
        responses["partition_responses"] = [{**each, "log_append_time": -1} for each in answers]
    server = wirekit.encode(
        "kafka.produce.response.v2", {"correlation_id": 7, "body": {**answer, "throttle_time_ms": 3}}
    )
    tables, _ = follow_rows(stream(client, server))
    topics = {(row["topic"], row["partition"]): row for row in tables["call_topics"]}
    assert topics.keys() == {("a", 0), ("a", 1), ("b", 0), ("b", 1)}
    size = 2 * (12 + 24)  # two messages: entry head, and crc to value
    for (_, partition), row in topics.items():
        assert row["error"] == (None if partition == 0 else "NOT_LEADER_FOR_PARTITION")
        assert (row["log_offset"], row["messages"], row["bytes"]) == (40 + partition, 2, size)
    call = only(tables, "calls")
    assert (call["client"], call["acks"], call["throttle_ms"], call["topics"], call["topic"]) == ("me", 1, 3, 2, None)
    assert (call["messages"], call["error_code"], call["outcome"], call["latency_us"]) == (8, 6, "answered", 1)
    assert {row["direction"] for row in tables["messages"]} == {"produced"}


@pytest.mark.parametrize(("replica", "direction"), [(-1, "fetched"), (2, "replicated")])
def test_a_follower_replicates_and_a_consumer_fetches(replica: int, direction: str) -> None:
    partitions = [{"partition": 3, "fetch_offset": 17, "max_bytes": 100}]
    body = {
        "replica_id": replica,
        "max_wait_time": 1,
        "min_bytes": 1,
        "topics": [{"topic": "t", "partitions": partitions}],
    }
    message = {"offset": 17, "message": {"magic": 0, "value": "6869"}}
    answer = {"partition": 3, "error_code": 0, "high_watermark": 20, "record_set": {"messages": [message]}}
    client = wirekit.encode("kafka.fetch.request.v0", {"correlation_id": 1, "client_id": "c", "body": body})
    server = wirekit.encode(
        "kafka.fetch.response.v0",
        {"correlation_id": 1, "body": {"responses": [{"topic": "t", "partition_responses": [answer]}]}},
    )
    tables, _ = follow_rows(stream(client, server))
    row = only(tables, "call_topics")
    assert (row["log_offset"], row["high_watermark"], row["messages"]) == (17, 20, 1)
    assert only(tables, "messages")["direction"] == direction
    assert only(tables, "calls")["is_replica"] is (replica >= 0)


def test_time_of_a_call_rises_as_its_topics_do() -> None:
    def spent(topics: int) -> float:
        message = {"offset": 0, "message": {"magic": 0, "value": "6869"}}
        data = [{"partition": 0, "record_set": {"messages": [message]}}]
        body = {
            "acks": 1,
            "timeout": 1,
            "topic_data": [{"topic": f"t{number}", "data": data} for number in range(topics)],
        }
        client = wirekit.encode("kafka.produce.request.v0", {"correlation_id": 1, "client_id": "c", "body": body})
        packets = stream(client, size=60_000)
        begin = time.process_time()
        tables, _ = follow_rows(packets, protocol="kafka")
        assert [row["messages"] for row in tables["call_topics"]] == [1] * topics
        return time.process_time() - begin

    spent(500)
    assert spent(16_000) < 12 * spent(4_000)


# A protocol of one's own

KINDS = SymbolTable("kind", {1: "OPEN", 2: "PUT", 3: "PUT_DONE", 4: "NEWS"})
ERRORS = SymbolTable("error", {0: "NONE", 5: "FULL"})
ITEM = Struct("crc" / Checked(uint32, "crc32c", covers="text"), "key" / String(int16), "text" / Bytes(int16))
FRAME = Struct(
    "size" / Length(int16, frame=True),
    "kind" / Symbols(int16, KINDS, closed=True),
    "number" / int16,
    "error" / Symbols(int16, ERRORS),
    "name" / String(int16),
    "items" / Array(int16, ITEM),
)
SHELF = Named("shelf", "number", "topic")
TABLES = Tables(
    kinds={"frame": "kind"},
    rows=(
        Rows("calls", "frame", {"client": "name"}, kinds=("PUT",)),
        Rows("calls", "frame", {"error": Except("error", 0), "error_code": Except("error", 0)}, kinds=("PUT_DONE",)),
        Rows("call_topics", "frame", {"topic": SHELF}, kinds=("PUT",)),
        Rows("call_topics", "frame", {"topic": Named("shelf", Asked("number"), "topic")}, kinds=("PUT_DONE",)),
        Rows("connections", "frame", {"client_software": "name"}, kinds=("OPEN",)),
    ),
    names=(Names("shelf", "frame", "number", {"topic": "name"}, kinds=("OPEN",)),),
    messages=(
        Messages(
            "frame",
            "items[]",
            {"topic": SHELF, "key": "items[].key", "value": "items[].text", "crc": "items[].crc"},
            kinds=("PUT", "NEWS"),
            payloads=("items",),
        ),
    ),
)


class StoreDialogue(Dialogue):
    """PUT is answered; all else is an event."""

    def describe(self, side: str, decoded: Decoded) -> Description:
        kind = decoded.value.kind.symbol
        role = {"PUT": "request", "PUT_DONE": "response"}.get(kind, "event")
        return Description(kind, None, decoded.value.number, role)


@pytest.fixture
def store() -> Iterator[None]:
    for name, tables in (("store", TABLES), ("bare", "")):
        layouts = {"frame": Layout(FRAME)}
        dialogue = {"dialogue": lambda: StoreDialogue} if name == "store" else {}
        register(Protocol(name, "A store", layouts, "frame", "frame", ("frame",), tables=tables, **dialogue))  # type: ignore[arg-type]
    yield
    for name in ("store", "bare"):
        registry.unregister(name)


def frame(kind: str, number: int, name: str = "", items: list[dict[str, Any]] | None = None, error: int = 0) -> bytes:
    value = {"kind": kind, "number": number, "error": error, "name": name, "items": items or []}
    return wirekit.encode("store.frame", value)


@pytest.mark.usefixtures("store")
def test_a_protocol_of_ones_own_fills_the_tables() -> None:
    items = [{"key": f"k{number}", "text": b"text%d" % number} for number in range(2)]
    damaged = bytearray(frame("PUT", 3, "me", items))
    damaged[-1] ^= 1
    client = frame("OPEN", 3, "shelf three") + frame("PUT", 3, "me", items) + bytes(damaged)
    server = frame("PUT_DONE", 3) + frame("NEWS", 3, "", items[:1])
    tables, _ = follow_rows(stream(client, server), protocol="store", values=True)
    assert_keys(tables)
    puts = [row for row in tables["calls"] if row["api"] == "PUT"]
    assert {(row["client"], row["topic"], row["messages"]) for row in puts} == {("me", "shelf three", 2)}
    assert [row["outcome"] for row in puts] == ["answered", "unanswered"]  # the second one has the first one's number
    assert only(tables, "connections")["client_software"] == "shelf three"
    shown = [(row["key"], row["value"], row["crc_status"], row["direction"]) for row in tables["messages"]]
    assert sorted(shown) == sorted(
        [
            (b"k0", b"text0", "ok", "produced"),
            (b"k1", b"text1", "ok", "produced"),
            (b"k0", b"text0", "ok", "produced"),
            (b"k1", b"text0", "bad", "produced"),
            (b"k0", b"text0", "ok", "pushed"),
        ]
    )
    assert {row["topic"] for row in tables["messages"]} == {"shelf three"}
    assert {row["api"] for row in tables["frames"] if "items" in row["value"]} == {"OPEN", "PUT_DONE"}
    bad = [row for row in tables["frames"] if row["checks_bad"]]
    assert [check["path"] for row in bad for check in row["checks"]] == ["items[1].crc"]


def test_rows_without_an_error_have_that_of_their_call_or_topic() -> None:
    """In the answer to a fetch of feedback, only the response as a whole has an error; in the others, only topics."""
    tables = {
        table: wirekit.read(FIXTURES / "pcap" / "jmq4-consume.pcap", table).read_all().to_pylist()
        for table in ("calls", "call_topics", "offsets")
    }
    calls = {row["call_id"]: row for row in tables["calls"]}

    def errors(table: str, api: str) -> dict[tuple[str, int | None], str | None]:
        rows = (row for row in tables[table] if calls[row["call_id"]]["api"] == api)
        return {(row["topic"], row["partition"]): row["error"] for row in rows}

    assert errors("call_topics", "FETCH_PRODUCE_FEEDBACK") == {("topic1", None): "CN_NO_PERMISSION"}
    failed = {place: error for place, error in errors("call_topics", "COMMIT_ACK").items() if error}
    assert failed == {("t2", 1): "FW_CONSUMER_ACK_FAIL"}
    of_positions = errors("offsets", "COMMIT_ACK")
    assert {place for place, error in of_positions.items() if error} == failed.keys() & of_positions.keys()
    assert {row["error"] for row in tables["calls"] if row["api"] == "COMMIT_ACK"} >= {"FW_CONSUMER_ACK_FAIL"}


@pytest.mark.usefixtures("store")
def test_a_dialogue_that_describes_nothing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StoreDialogue, "describe", lambda self, side, decoded: None)
    with pytest.raises(Misuse, match=r"StoreDialogue\.describe must return a Description, not None"):
        list(Conversation("store").receive("client", frame("OPEN", 1)))


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    ("description", "problem"),
    [
        (Description("OPEN", role="req"), "whose role is one of request, response, event, not 'req'"),
        (Description(Symbol(1, "OPEN")), "whose api is text or None, not <OPEN: 1>"),  # type: ignore[arg-type]
        (Description("OPEN", "1"), "whose version is a number or None, not '1'"),  # type: ignore[arg-type]
        (Description("OPEN", None, "7"), "whose correlation_id is a number or None, not '7'"),  # type: ignore[arg-type]
        (Description("OPEN", None, True), "whose correlation_id is a number or None, not True"),
        (Description("OPEN", pair=[1]), r"whose pair can be a key of a dict, not \[1\]"),  # type: ignore[arg-type]
    ],
)
def test_a_description_that_no_table_holds_is_refused(
    description: Description, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StoreDialogue, "describe", lambda self, side, decoded: description)
    with pytest.raises(Misuse, match=rf"StoreDialogue\.describe must return a Description {problem}"):
        list(Conversation("store").receive("client", frame("OPEN", 1)))


ASK = Struct("size" / Length(int16, frame=True), "kind" / Symbols(int16, KINDS, closed=True), "number" / int16)
REPLY = Struct("size" / Length(int16, frame=True), "number" / int16, "text" / String(int16))
OF_REPLIES = Tables(
    kinds={"ask": "kind", "reply": Asked("kind")},
    messages=(Messages("reply", "", {"topic": Fixed("news"), "value": "text"}, kinds=("NEWS",)),),
)


class AskDialogue(Dialogue):
    """Responses hold the number of their request, not its kind."""

    def describe(self, side: str, decoded: Decoded) -> Description:
        role = "request" if side == "client" else "response"
        return Description(correlation_id=decoded.value.number, role=role)


class PairDialogue(Dialogue):
    """Forgets the reason."""

    def schema(self, side: str, data: bytes) -> Any:
        return self.protocol.stream(side), {}


@pytest.fixture
def replies() -> Iterator[None]:
    layouts = {"ask": Layout(ASK), "reply": Layout(REPLY)}
    for name, dialogue in (("asking", AskDialogue), ("pairing", PairDialogue)):
        make = lambda dialogue=dialogue: dialogue  # noqa: E731
        register(Protocol(name, "Asks", layouts, "ask", "reply", ("ask",), dialogue=make, tables=OF_REPLIES))
    yield
    for name in ("asking", "pairing"):
        registry.unregister(name)


@pytest.mark.usefixtures("replies")
def test_messages_of_responses_by_the_kind_of_their_request() -> None:
    kinds = {1: "NEWS", 2: "PUT", 3: "NEWS"}
    client = b"".join(wirekit.encode("asking.ask", {"kind": kind, "number": number}) for number, kind in kinds.items())
    server = b"".join(wirekit.encode("asking.reply", {"number": number, "text": f"to {number}"}) for number in kinds)
    tables, _ = follow_rows(stream(client, server), protocol="asking")
    assert [(row["topic"], row["value"]) for row in tables["messages"]] == [("news", b"to 1"), ("news", b"to 3")]


@pytest.mark.usefixtures("replies")
def test_a_dialogue_that_returns_another_form_is_named() -> None:
    data = wirekit.encode("pairing.ask", {"kind": "PUT", "number": 1})
    with pytest.raises(
        Misuse, match=r"PairDialogue\.schema returned .*; it must return \(key, context, reason or None\)"
    ):
        wirekit.Conversation("pairing").receive("client", data)


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    ("method", "returned", "text"),
    [
        ("schema", ("store.frame", None, None), r"\('store.frame', None, None\); it must return \(key, context"),
        ("schema", ("store.frame", {}, 5), r"\('store.frame', {}, 5\); it must return \(key, context"),
        ("messages", None, "null; it must return Message objects"),
        ("messages", [1], r"\[1\]; it must return Message objects"),
    ],
)
def test_a_method_of_a_dialogue_that_returns_another_form_is_named(
    method: str, returned: Any, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StoreDialogue, method, lambda self, *arguments: returned)
    with pytest.raises(Misuse, match=rf"StoreDialogue\.{method} returned {text}"):
        Conversation("store").receive("client", frame("OPEN", 1))


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("summary", [None, [1], {"a": object()}])
def test_a_summary_that_json_cannot_hold_is_refused(summary: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StoreDialogue, "summary", lambda self: summary)
    conversation = Conversation("store")
    with pytest.raises(Misuse, match=r"StoreDialogue\.summary must return an object of plain JSON data"):
        plain_summary(conversation.dialogue)


@pytest.mark.usefixtures("store")
def test_messages_that_are_declared_are_those_of_the_library() -> None:
    conversation = wirekit.Conversation("store")
    conversation.receive("client", frame("OPEN", 3, "s"))
    (event,) = conversation.receive("client", frame("PUT", 3, "me", [{"key": "k", "text": b"t"}]))
    (message,) = event.messages  # type: ignore[union-attr]
    assert (message.topic, message.key, message.value, message.check) == ("s", b"k", b"t", "ok")


@pytest.mark.usefixtures("store")
def test_a_protocol_that_is_registered_again_has_its_new_tables() -> None:
    for client in ("name", "items[0].key"):
        tables = Tables((Rows("calls", "frame", {"client": client}),))
        register(Protocol("again", "A store", {"frame": Layout(FRAME)}, "frame", "frame", ("frame",), tables=tables))
        tables_again, _ = follow_rows(stream(frame("PUT", 3, "name", [{"key": "key", "text": b""}])), protocol="again")
        assert only(tables_again, "calls")["client"] == client.rpartition(".")[2]
        registry.unregister("again")


def test_kinds_that_nobody_declared_take_no_memory() -> None:
    evaluator = Records("joyqueue")
    before = len(evaluator._plans)
    for number in range(1000):
        evaluator.rows("joyqueue.frame", Frames({"type": Symbol(1000 + number)}))
    assert len(evaluator._plans) == before + 1


@pytest.mark.usefixtures("store")
def test_a_protocol_that_declares_nothing_has_its_generic_rows() -> None:
    tables, _ = follow_rows(stream(frame("PUT", 3, "me"), b""), protocol="bare")
    assert only(tables, "frames")["schema"] == "bare.frame"
    assert only(tables, "calls", outcome="event")["call_id"] == only(tables, "frames")["frame_id"]
    assert only(tables, "connections")["protocol"] == "bare"
    assert only(tables, "connections")["client_frames"] == only(tables, "frames")["length"]


# Reading without a run


@pytest.mark.parametrize("table", FROM_INPUTS)
def test_read_gives_the_rows_that_a_run_writes(table: str) -> None:
    path = FIXTURES / "pcap" / "kafka-0.9.0.1-2-produce.pcapng"
    batch = wirekit.read(path, table).read_all()
    assert batch.schema == FROM_INPUTS[table].schema
    expected, _ = follow_rows(read(path))
    ids = dict.fromkeys(("file", "connection_id", "call_id", "frame_id"))
    assert [row | ids for row in batch.to_pylist()] == [row | ids for row in expected[table]]


def test_read_takes_columns_and_a_filter() -> None:
    path = FIXTURES / "pcap" / "pulsar-batch.pcap"
    reader = wirekit.read([path], columns=["topics", "api"], filter=pc.field("outcome") == "answered")
    assert reader.schema.names == ["topics", "api"]
    assert [row["api"] for row in reader.read_all().to_pylist()].count("LOOKUP") > 0
    assert wirekit.read(path, filter=pc.field("api") == "nothing").read_all().num_rows == 0


def test_read_streams_file_by_file(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes((FIXTURES / "pcap" / "pulsar-batch.pcap").read_bytes())
    (tmp_path / "b.pcap").write_bytes(b"no capture")
    reader = wirekit.read([path, tmp_path / "b.pcap"], "connections")
    assert reader.read_next_batch().num_rows == 1
    with pytest.warns(RuntimeWarning, match=r"b\.pcap: expected a pcap"), pytest.raises(StopIteration):
        reader.read_next_batch()


def test_other_libraries_take_the_reader() -> None:
    import duckdb

    path = FIXTURES / "pcap" / "pulsar-batch.pcap"
    calls = wirekit.read(path)
    (count,) = duckdb.sql("SELECT count(*) FROM calls WHERE protocol = 'pulsar'").fetchall()[0]
    assert count == len(wirekit.read(path).read_pandas()) == wirekit.read(path).read_all().num_rows > 0
    assert calls is not None
    assert [batch.num_rows for batch in wirekit.read(path, "gaps")] == [0]  # Polars refuses a reader without a batch
    polars = pytest.importorskip("polars")
    assert polars.from_arrow(wirekit.read(path, "gaps")).shape == (0, len(FROM_INPUTS["gaps"].names))
    assert polars.from_arrow(wirekit.read(path, "messages")).shape == (10, len(FROM_INPUTS["messages"].names))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("x", "call"), "no table 'call' can be read; did you mean calls?"),
        (("x", "anything"), "no table 'anything' can be read; choose from packets, calls, "),
        (("x", "inputs"), "no table 'inputs'"),
        (("x", "calls", ["latency"]), "the table calls has no column 'latency'"),
        (("x", "calls", "api"), "read: columns must be a list of names, not 'api'"),
        (("x", "calls", None, "api = 1"), "read: filter must be a pyarrow.compute expression such as field('api') =="),
        (
            ("x", "calls", None, pc.field("apii") == "f"),
            "the filter does not fit the table calls: No match for FieldRef",
        ),
        (
            ("x", "calls", None, pc.field("date") == "f"),
            "the filter does not fit the table calls: Function 'equal' has",
        ),
        (("x", "calls", None, pc.field("request_time") > datetime(2026, 1, 1)), "calls: Cannot compare timestamp with"),
    ],
)
def test_an_unknown_table_or_column_is_misuse(arguments: tuple[Any, ...], text: str) -> None:
    with pytest.raises(Misuse) as caught:
        wirekit.read(*arguments)
    assert text in str(caught.value)
