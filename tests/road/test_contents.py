"""Contents of frames by columns: what is declared gives the rows that it gives frame by frame."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("numba")

import wirekit
from tests.capture.second_parser import packets, write
from tests.kafka.golden import message
from tests.kafka.sets import FIRST, SECOND, call
from tests.pulsar.commands import connect, producer, receipt, send
from tests.road.kafka_connections import (
    HANDSHAKE,
    METADATA,
    answer,
    calls_of_begun,
    handshake,
    left_to_objects,
    list_groups,
    undeclared,
)
from tests.road.law import CAPTURES, assert_same, by_columns
from tests.road.test_pairing import capture
from wirekit.capture import follow
from wirekit.compression import compress
from wirekit.conversation import Description, Dialogue
from wirekit.conversation.pairing import Heads, Kind, Pairing
from wirekit.engine import Decoded
from wirekit.registry import Layout, Protocol, register, registry
from wirekit.tables import (
    Asked,
    Elements,
    Except,
    Extract,
    First,
    Fixed,
    Inside,
    Messages,
    Named,
    Names,
    Rows,
    Tables,
    Text,
    Total,
)
from wirekit.wire import Array, Bytes, Length, String, Struct, int16, int32, this, uint8, uint32

LINE = Struct("name" / String(int16), "count" / int32, "sizes" / Array(uint8, int32))
ORDER = Struct(
    "size" / Length(uint32),
    "kind" / uint8,
    "number" / uint8,
    "shop" / uint8,
    "text" / String(int16),
    "lines" / Array(uint8, LINE),
    "note" / Bytes(int16),
)
HEAD = Struct("size" / uint32, "kind" / uint8, "number" / uint8)
NOTE = Struct(
    "version" / uint8, "places" / Array(uint8, Struct("topic" / String(int16), "partitions" / Array(uint8, int32)))
)
ASK, ANSWER, NEWS = 1, 2, 3
ROLES = {ASK: "request", ANSWER: "response", NEWS: "event"}
APIS = {ASK: "ask", ANSWER: "answer", NEWS: "news"}
KINDS = {(kind,): Kind(APIS[kind], "order", ROLES[kind], number="number", pair=("number",)) for kind in APIS}
PAIRING = Pairing(*[Heads("head", ("kind",), KINDS)] * 2)
LINES = "lines[]"
TABLES = Tables(
    rows=(
        Rows("calls", "order", {"client": First(Except("text", ""), Named("shop", "shop", "topic")), "acks": "kind"}),
        Rows(
            "calls",
            "order",
            {
                "error_code": Except("lines[0].count", 0),
                "error": Except("lines[0].count", 0),
                "is_replica": this.kind > 1,
            },
            when=this.kind == ANSWER,
        ),
        Rows(
            "connections", "order", {"client": Text("/", "text", "shop"), "client_version": Extract("text", r"v(\d+)")}
        ),
        Rows(
            "call_topics",
            "order",
            {
                "topic": f"{LINES}.name",
                "partition": f"{LINES}.count",
                "bytes": Total(f"{LINES}.sizes[]", 2),
                "error": Except(f"{LINES}.count", 0),
            },
            LINES,
            when=this.kind != NEWS,
        ),
        Rows("call_topics", "order", {"topic": Named("shop", "shop", "topic")}, when=this.kind == NEWS),
        Rows(
            "group_events",
            "order",
            {
                "event": Fixed("order"),
                "group_id": Asked("text"),
                "topics": Inside("note", "note", "places[0].topic"),
                "assignment": Inside(
                    "note",
                    "note",
                    Elements(
                        "places[].partitions[]", {"topic": "places[].topic", "partition": "places[].partitions[]"}
                    ),
                ),
            },
        ),
        Rows("offsets", "order", {"topic": "text", "log_offset": f"{LINES}.sizes[]"}, f"{LINES}.sizes[]"),
    ),
    names=(Names("shop", "order", "shop", {"topic": Except("text", "")}),),
    messages=(Messages("order", LINES, {"value": f"{LINES}.name", "log_offset": f"{LINES}.count", "topic": "text"}),),
)


class OrderDialogue(Dialogue):
    """Requests and responses by their number."""

    def describe(self, side: str, decoded: Decoded) -> Description:
        if decoded.value is None or decoded.value.get("kind") not in APIS:
            return Description()
        kind, number = decoded.value.kind, decoded.value.get("number")
        return Description(APIS[kind], None, number, ROLES[kind])


@pytest.fixture
def orders() -> Iterator[None]:
    layouts = {
        "order": Layout(ORDER, "an order"),
        "head": Layout(HEAD, "its beginning"),
        "note": Layout(NOTE, "a note"),
    }
    register(
        Protocol(
            "orders",
            "Orders",
            layouts,
            client="order",
            server="order",
            recognised_by=("order",),
            dialogue=lambda: OrderDialogue,
            pairing=f"{__name__}:PAIRING",
            tables=TABLES,
        )
    )
    yield
    registry.unregister("orders")


def order(kind: int, number: int, shop: int, text: str, *lines: tuple[str, int, list[int]], note: Any = None) -> bytes:
    value = {
        "kind": kind,
        "number": number,
        "shop": shop,
        "text": text,
        "lines": [{"name": name, "count": count, "sizes": sizes} for name, count, sizes in lines],
        "note": b"" if note is None else wirekit.encode("orders.note", {"version": 1, "places": note}),
    }
    return wirekit.encode("orders.order", value)


BY_OBJECTS = {"jmq4-odd", "jmq4-produce"}
"""Captures with something that columns leave to objects."""


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_nothing_holds_the_arrays_of_a_window_behind_it(path: Path) -> None:
    """They are large and few, so the collector of circles would come late."""
    left_to_objects(path)
    gc.collect()
    gc.disable()
    try:
        before = pa.total_allocated_bytes()
        left_to_objects(path)
        assert pa.total_allocated_bytes() == before
    finally:
        gc.enable()


def test_a_protocol_of_somebody_else(orders: None, tmp_path: Path) -> None:
    places = [{"topic": "a", "partitions": [1, 2]}, {"topic": "b", "partitions": []}]
    path = capture(
        tmp_path / "orders.pcap",
        (0, order(ASK, 7, 1, "v12", ("tea", 3, [1, 2]), ("tea", 3, [9]), ("milk", 0, []), note=places)),
        (0, order(ASK, 8, 1, "")),
        (1, order(NEWS, 0, 1, "", ("tea", -5, [4]), ("tea", 3, [9]))),
        (1, order(ANSWER, 8, 2, "x") + order(ANSWER, 7, 1, "", ("tea", 3, []), ("sugar", 1, [7]), ("tea", 3, []))),
        (0, order(ASK, 7, 2, "again", ("milk", 0, []), note=[])),
        (0, order(NEWS, 9, 3, "")),
    )
    assert left_to_objects(path) == (1, 0)
    assert_same(path)
    assert {name: sum(rows.values()) for name, rows in by_columns(path, window=1 << 26)[0].items()} == {
        "frames": 7,
        "calls": 5,
        "connections": 1,
        "messages": 9,
        "call_topics": 7,
        "group_events": 7,
        "offsets": 5,
    }


def test_the_direction_of_messages_in_requests_of_both_sides(orders: None, tmp_path: Path) -> None:
    path = capture(
        tmp_path / "orders.pcap",
        (0, order(ASK, 7, 1, "client", ("tea", 3, []))),
        (1, order(ASK, 8, 1, "server", ("milk", 1, []))),
        (0, order(ANSWER, 8, 1, "answer of the client", ("salt", 1, []))),
    )
    assert left_to_objects(path) == (1, 0)
    assert_same(path)
    rows = wirekit.read(path, "messages", ["topic", "direction"]).read_all().to_pylist()
    assert {row["topic"]: row["direction"] for row in rows} == {
        "client": "produced",
        "server": "pushed",
        "answer of the client": "replicated",  # the declaration says so of all answers
    }


def test_text_inside_that_is_no_utf_8_is_for_objects(orders: None, tmp_path: Path) -> None:
    path = capture(tmp_path / "orders.pcap", (0, order(ASK, 7, 1, "v12", note=[{"topic": "a", "partitions": [1]}])))
    assert left_to_objects(path) == (1, 0)
    damaged = order(ASK, 7, 1, "v12", note=[{"topic": "a", "partitions": []}]).replace(b"\0\x01a", b"\0\x01\xff")
    path = capture(tmp_path / "damaged.pcap", (0, damaged))
    assert left_to_objects(path) == (1, 1)
    assert_same(path)


def test_deleted_and_damaged_groups_and_positions_of_kafka(tmp_path: Path) -> None:
    """A null value deletes its key, in a set that another broker fetches, too."""
    keys = {"version": 2, "group": "idle"}, {"version": 1, "group": "idle", "topic": "t", "partition": 3}
    idle, committed = (wirekit.encode("kafka.consumer_offsets.key", key).hex() for key in keys)
    deleting = [message(None, key=idle), message(None, key=committed), message(b"\0\1ab", key=committed)]
    fetch = {"replica_id": 2, "max_wait_time": 1, "min_bytes": 1, "topics": []}
    partition = {"partition": 0, "error_code": 0, "high_watermark": 9, "record_set": {"messages": deleting}}
    answers = {"responses": [{"topic": "__consumer_offsets", "partition_responses": [partition]}]}
    path = capture(
        tmp_path / "offsets.pcap",
        (0, wirekit.encode("kafka.fetch.request.v0", {"correlation_id": 1, "client_id": "c", "body": fetch})),
        (1, wirekit.encode("kafka.fetch.response.v0", {"correlation_id": 1, "body": answers})),
    )
    assert left_to_objects(path) == (1, 0)
    assert_same(path)
    (event,) = wirekit.read(path, "group_events").read_all().to_pylist()
    assert (event["event"], event["group_id"], event["member_id"]) == ("deleted", "idle", None)
    positions = wirekit.read(path, "offsets").read_all().to_pylist()
    assert [(each["deleted"], each["error"] is None) for each in positions] == [(True, True), (False, False)]
    for each in positions:
        assert (each["group_id"], each["partition"], each["log_offset"]) == ("idle", 3, None)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_captures_by_columns(path: Path) -> None:
    indexed, by_objects = left_to_objects(path)
    assert indexed
    assert by_objects == (indexed if path.stem in BY_OBJECTS else 0)


REFUSED = answer("api_versions.response.v0", 1, 35, api_versions=[])


def test_kafka_versions_that_are_not_declared_go_by_columns(tmp_path: Path) -> None:
    """Their frames have a gap behind the header; ApiVersions is refused in v0, a handshake in its own version."""
    path = capture(
        tmp_path / "new.pcap",
        (0, undeclared(18, 3, 1, b"\x08librdkafka\x012")),
        (1, REFUSED),
        (0, METADATA[0]),
        (1, METADATA[1]),
        (0, HANDSHAKE),
        (1, handshake(33)),
        (0, undeclared(3, 20, 4)),
    )
    assert left_to_objects(path) == (1, 0)
    assert_same(path)
    frames = wirekit.read(path, "frames", ["api", "version", "role", "length", "gaps"]).read_all().to_pylist()
    assert [
        (row["api"], row["version"], row["role"][:3], [gap["length"] for gap in row["gaps"]]) for row in frames
    ] == [
        ("api_versions", 3, "req", [13]),
        ("api_versions", 0, "res", []),
        ("metadata", 19, "req", [3]),
        ("metadata", 19, "res", [4]),
        ("sasl_handshake", 0, "req", []),
        ("sasl_handshake", 0, "res", []),
        ("metadata", 20, "req", []),
    ]


@pytest.mark.parametrize(
    "pieces",
    [
        [(0, undeclared(18, 3, 1)), (1, answer("api_versions.response.v0", 1, 0, api_versions=[]))],
        [(0, undeclared(18, 3, 1)), (1, REFUSED[:3] + bytes([REFUSED[3] + 1]) + REFUSED[4:] + b"\0")],
        [(0, HANDSHAKE), (1, handshake(0))],
        [(0, HANDSHAKE), (1, handshake(0)), (0, b"\0\0\0\4user"), (1, b"\0\0\0\0")],
    ],
    ids=["a newer broker", "a refusal with more behind it", "a handshake", "tokens"],
)
def test_kafka_answers_that_are_left_to_objects(pieces: list[tuple[int, bytes]], tmp_path: Path) -> None:
    path = capture(tmp_path / "new.pcap", *pieces)
    indexed, by_objects = left_to_objects(path)
    assert by_objects == indexed
    assert_same(path)


@pytest.mark.parametrize("side", ["client", "server"])
def test_a_wrapper_that_holds_more_than_whole_messages_is_left_to_objects(side: str, tmp_path: Path) -> None:
    wrapper = message([])["message"] | {"value": compress("gzip", FIRST + SECOND[:-1]).hex()}
    wrapper["attributes"]["codec"] = "GZIP"
    data = wirekit.encode("kafka.message_set", {"messages": [{"offset": 0, "message": wrapper}]})
    path = capture(tmp_path / "more.pcap", *((int(who == "server"), each) for who, each in call(side, data)))
    assert left_to_objects(path) == (1, 1)
    assert_same(path)
    frames = wirekit.read(path, "frames", ["checks_bad"]).read_all().to_pylist()
    assert sum(frame["checks_bad"] for frame in frames) == 1


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize("seed", range(3))
def test_messages_before_damage_in_compressed_data_are_messages(side: str, seed: int, tmp_path: Path) -> None:
    chance, sets = Random(seed), list[bytes]()
    codecs = {"GZIP": "gzip", "SNAPPY": "kafka-snappy", "LZ4": "kafka-lz4"}
    for offset in range(0, 200, 10):
        many = [message(chance.randbytes(chance.randint(0, 60)), offset=offset + n, magic=1) for n in range(10)]
        symbol = chance.choice([*codecs])
        content = compress(codecs[symbol], wirekit.encode("kafka.message_set", {"messages": many}))
        place = chance.randrange(len(content))
        flipped = content[:place] + bytes([content[place] ^ 1 << chance.randrange(8)]) + content[place + 1 :]
        damaged = chance.choice([content, content[:place], flipped, content + b"more"])
        wrapper = message(damaged, offset=offset + 9, magic=1, codec=symbol)
        sets.append(wirekit.encode("kafka.message_set", {"messages": [wrapper]}))
    first = call("client", FIRST) if side == "client" else ()  # a connection is recognised by a clean request
    pieces = *first, *call(side, *sets)
    path = capture(tmp_path / "damaged.pcap", *((int(who == "server"), each) for who, each in pieces))
    assert_same(path)
    messages = wirekit.read(path, "messages", ["log_offset", "crc_status"]).read_all().to_pylist()
    unplaced = [each for each in messages if each["crc_status"] == "ok" and each["log_offset"] is None]
    assert 10 < len(unplaced) < 201


@pytest.mark.parametrize("name", ["pulsar-batch", "pulsar-comp_lz4", "pulsar-encryption", "pulsar-nobatch"])
def test_entries_with_a_wrong_checksum_go_by_columns(name: str, tmp_path: Path) -> None:
    changed = packets(next(path for path in CAPTURES if path.stem == name))
    wrong = 0
    for number, each in enumerate(changed):
        place = each.data.find(b"\x0e\x01")  # what stands in front of a checksum
        if place > 0:
            data = each.data[: place + 2] + bytes([each.data[place + 2] ^ 1]) + each.data[place + 3 :]
            changed[number], wrong = each._replace(data=data), wrong + 1
    assert wrong
    path = write(tmp_path / "wrong.pcap", changed)
    assert_same(path, windows=(2000, 1 << 26))
    frames = wirekit.read(path, "frames", ["checks_bad"]).read_all().to_pylist()
    messages = wirekit.read(path, "messages", ["crc_status"]).read_all().to_pylist()
    assert sum(frame["checks_bad"] for frame in frames) > 0
    assert "bad" in {message["crc_status"] for message in messages}
    assert left_to_objects(path)[1] == 0


def test_columns_go_on_behind_the_tokens_of_sasl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = [(0, HANDSHAKE), (1, handshake(0)), (0, b"\0\0\0\4user"), (1, b"\0\0\0\0")]
    calls = [piece for number in range(20) for piece in list_groups(number)]
    path = capture(tmp_path / "sasl.pcap", *tokens, *calls)
    assert_same(path, windows=(1, 300, 1000, 1 << 26))
    read = calls_of_begun(monkeypatch)
    monkeypatch.delattr(follow, "recognise")  # the protocol is known by then
    by_columns(path, window=1 << 26)
    assert read == [19]


def test_a_broker_that_does_not_say_whether_a_producer_is_ready(tmp_path: Path) -> None:
    """The field is optional, and true by default."""
    frames = [*connect(), *producer(), send(0), receipt(0)]
    path = capture(tmp_path / "old.pcap", *((0 if each.side == "client" else 1, each.data) for each in frames))
    assert left_to_objects(path) == (1, 0)
    assert_same(path)
