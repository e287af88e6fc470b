"""Contents of frames by columns: what is declared gives the rows that it gives frame by frame."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("numba")

import wirekit
from tests.capture.second_parser import packets, write
from tests.pulsar.commands import connect, consumer, entry, lookup, message, producer, receipt, s, send
from tests.road.test_law import CAPTURES, assert_same, by_columns
from tests.road.test_pairing import capture
from wirekit.capture.files import open_capture
from wirekit.capture.follow import Choice
from wirekit.capture.tcp import Settings
from wirekit.conversation import Conversation, Description, Dialogue, Event, Recognised
from wirekit.conversation.pairing import Heads, Kind, Pairing
from wirekit.engine import Decoded
from wirekit.registry import Layout, Protocol, register, registry
from wirekit.road import connections
from wirekit.road.assembly import Assembly
from wirekit.road.begun import Followed
from wirekit.road.connections import MOST_CARRIED, Connections
from wirekit.road.contents import read_contents
from wirekit.road.index import index_frames
from wirekit.road.packets import read_packets
from wirekit.road.streams import Streams, put_together
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


def left_to_objects(path: Path) -> tuple[int, int]:
    """How many connections of a capture are indexed, and how many of these are left to objects."""
    with open_capture(path) as opened:
        packets = read_packets(opened)
        assert packets is not None
        streams = put_together(packets, Settings())
        index = index_frames(streams, Choice(), packets.endpoints.text)
    contents = read_contents(streams.stream, index)
    return int((~index.odd).sum()), int((contents.odd & ~index.odd).sum())


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


def test_text_inside_that_is_no_utf_8_is_for_objects(orders: None, tmp_path: Path) -> None:
    path = capture(tmp_path / "orders.pcap", (0, order(ASK, 7, 1, "v12", note=[{"topic": "a", "partitions": [1]}])))
    assert left_to_objects(path) == (1, 0)
    damaged = order(ASK, 7, 1, "v12", note=[{"topic": "a", "partitions": []}]).replace(b"\0\x01a", b"\0\x01\xff")
    path = capture(tmp_path / "damaged.pcap", (0, damaged))
    assert left_to_objects(path) == (1, 1)
    assert_same(path)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_captures_by_columns(path: Path) -> None:
    indexed, left = left_to_objects(path)
    assert indexed
    assert left == (indexed if path.stem in BY_OBJECTS else 0)


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


def test_connections_without_a_beginning_go_by_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = calls_of_begun(monkeypatch)
    by_columns(next(path for path in CAPTURES if path.stem == "kafka-0.10.2.2-2-produce"), window=1 << 26)
    assert sum(calls) > 50


def undeclared(api_key: int, version: int, number: int, body: bytes = b"") -> bytes:
    """A Kafka request of an API's version that is not declared."""
    return wirekit.encode(
        "kafka.request",
        {"api_key": api_key, "api_version": version, "correlation_id": number, "client_id": "new", "body": body},
    )


def answer(layout: str, number: int, error_code: int, **body: Any) -> bytes:
    return wirekit.encode(f"kafka.{layout}", {"correlation_id": number, "body": {"error_code": error_code, **body}})


REFUSED = answer("api_versions.response.v0", 1, 35, api_versions=[])
METADATA = undeclared(3, 19, 2, b"\0\1\2"), wirekit.encode("kafka.response", {"correlation_id": 2, "body": b"abcd"})
HANDSHAKE = wirekit.encode(
    "kafka.sasl_handshake.request.v0", {"correlation_id": 3, "client_id": "new", "body": {"mechanism": "PLAIN"}}
)


def handshake(error_code: int) -> bytes:
    return answer("sasl_handshake.response.v0", 3, error_code, enabled_mechanisms=["GSSAPI"])


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
    indexed, left = left_to_objects(path)
    assert left == indexed
    assert_same(path)


def list_groups(number: int) -> tuple[tuple[int, bytes], tuple[int, bytes]]:
    """A Kafka request and its response."""
    request = {"correlation_id": number, "client_id": "one", "body": {}}
    asked = wirekit.encode("kafka.list_groups.request.v0", request)
    return (0, asked), (1, answer("list_groups.response.v0", number, 0, groups=[]))


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What objects get of the bytes of connections."""
    taken: list[bytes] = []

    def receive(self: Conversation, side: str, data: bytes, **options: Any) -> list[Event]:
        taken.append(data)
        return whole(self, side, data, **options)

    whole = Conversation.receive
    monkeypatch.setattr(Conversation, "receive", receive)
    return taken


def test_connections_that_reach_beyond_a_window_go_by_columns_from_their_beginning(
    tmp_path: Path, received: list[bytes]
) -> None:
    calls = [piece for number in range(20) for piece in list_groups(number)]
    path = capture(tmp_path / "open.pcap", *calls)
    for each in (path, capture(tmp_path / "waiting.pcap", *calls[:-1])):
        assert_same(each, windows=(1, 300, 1000, 1 << 26))
    received.clear()
    by_columns(path, window=1000)
    assert calls[0][1] not in received
    assert len(received) < len(calls) // 4


def test_connections_with_a_request_that_waits_always_go_by_columns(tmp_path: Path, received: list[bytes]) -> None:
    asked, answered = zip(*(list_groups(number) for number in range(24)), strict=True)
    pairs = [piece for pair in zip(asked[1:], answered, strict=False) for piece in pair]
    path = capture(tmp_path / "waiting.pcap", asked[0], *pairs)
    late = capture(
        tmp_path / "late.pcap", asked[0], *pairs[:20], asked[20], answered[20], *answered[10:12], *pairs[40:]
    )
    for each in (path, late):
        assert_same(each, windows=(1, 1000, 2500))
    for window in (1, 300, 2500):  # also where all that comes in a window waits
        received.clear()
        by_columns(path, window=window)
        assert not received


def test_frames_that_windows_cut_go_by_columns(tmp_path: Path, received: list[bytes]) -> None:
    """Objects get the first frame of a side, if its first piece is not all of it, and no other."""
    calls = [list_groups(number) for number in range(12)]
    cut = [(side, piece) for call in calls for side, data in call for piece in (data[:7], data[7:])]
    path = capture(tmp_path / "cut.pcap", *cut)
    assert_same(path, windows=(1, 150, 400))
    for window in (1, 150, 400):
        received.clear()
        by_columns(path, window=window)
        assert b"".join(received) in b"".join(piece for _, piece in cut[:4])


def test_conversations_are_forgotten_when_they_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their connections are not, for ten seconds: bytes that come late are counted."""
    left: list[object] = []
    keep = Connections.keep

    def kept(self: Connections, streams: Streams, flows: Any) -> None:
        keep(self, streams, flows)
        left.extend(self._flows[row].follower for row in self._ending)

    monkeypatch.setattr(Connections, "keep", kept)
    path = next(each for each in CAPTURES if each.stem == "kafka-0.10.2.2-4-clients")
    by_columns(path, window=path.stat().st_size // 20)
    assert left
    assert not any(left)


def open_conversations(connections: Connections) -> Any:
    """The ``CONVERSATION`` rows that are in use."""
    stored = connections._conversations
    return stored._rows[stored._connections >= 0]


@pytest.mark.parametrize("name", ["kafka-0.10.2.2-4-clients", "pulsar-consume"])
@pytest.mark.parametrize("begin", [0, 40])
def test_nothing_of_a_usual_open_connection_is_an_object(
    name: str, begin: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where objects have followed the first frames, what they know is kept as bytes."""
    found = packets(next(each for each in CAPTURES if each.stem == name))
    path = write(tmp_path / "open.pcap", found[begin:])
    rows, followers, objects = [0], set[type](), list[object]()
    keep = Connections.keep

    def kept(self: Connections, streams: Streams, flows: Any) -> None:
        keep(self, streams, flows)
        open_rows = open_conversations(self)
        usual = open_rows[~open_rows["waits"]]  # objects tell the end of the others
        rows.append(len(usual))
        followers.update(map(type, usual["follower"].tolist()))
        objects.extend(each for each in self._flows.values() if each.follower is not None and each.follower.quiet)

    monkeypatch.setattr(Connections, "keep", kept)
    by_columns(path, window=path.stat().st_size // 20)
    assert sum(rows) >= 10
    assert followers <= {bytes, type(None)}
    assert not objects


def test_connections_that_only_the_capture_ends_go_by_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, received: list[bytes]
) -> None:
    """Although the last window has no packets of them, and a request waits."""
    calls = [piece for number in range(12) for piece in list_groups(number)]
    kafka = packets(next(each for each in CAPTURES if each.stem == "kafka-0.10.2.2-4-clients"))
    waiting = packets(capture(tmp_path / "waiting.pcap", *calls[:-1]))
    path = write(tmp_path / "open.pcap", [*waiting, *kafka])
    silent: list[int] = []
    whole = Connections.silent

    def ended(self: Connections) -> Streams:
        streams = whole(self)
        silent.append(streams.odd.size)
        return streams

    monkeypatch.setattr(Connections, "silent", ended)
    assert_same(path, windows=(1000, path.stat().st_size // 20))
    assert any(silent)
    received.clear()
    by_columns(path, window=1000)
    assert calls[-2][1] not in received


def test_many_requests_that_wait_are_left_to_objects(tmp_path: Path, received: list[bytes]) -> None:
    asked, answered = zip(*(list_groups(number) for number in range(MOST_CARRIED + 20)), strict=True)
    path = capture(tmp_path / "many.pcap", asked[0], answered[0], *asked[1:], *answered[1:])
    assert_same(path, windows=(6000, 7000))
    received.clear()
    by_columns(path, window=7000)
    assert asked[1][1] in received


def joined(path: Path, *pieces: tuple[int, bytes]) -> Path:
    """A capture of one connection that began when its handshake was over; its packets are seconds apart."""
    found = packets(capture(path, *pieces))[2:]
    return write(path, [each._replace(time_us=3_000_000 * number) for number, each in enumerate(found)])


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


FETCHED = fetched("t")
INNER = fetched("inside", number=7)
OUTER = fetched(INNER.decode(), "t", number=8)
BEHIND_INNER = OUTER.index(INNER) + len(INNER)
SMALL = fetched(*(f"\0\0\0\x05\0\0\0\x09{letter}" for letter in "abcde"), number=0x01010101)


@pytest.mark.parametrize(
    "first",
    [
        [],
        [(1, FETCHED)],
        in_pieces(FETCHED, *range(5, len(FETCHED), 5)),
        [(1, fetched("t", version=1))],
        [(1, OUTER)],
        in_pieces(OUTER, BEHIND_INNER - 1),
        in_pieces(SMALL, 20, 48),
    ],
    ids=[
        "nothing",
        "a response",
        "in pieces",
        "a later version",
        "in one piece",
        "one inside the last",
        "small ones inside",
    ],
)
def test_connections_that_are_joined_in_the_middle_go_by_columns(
    first: list[tuple[int, bytes]], tmp_path: Path, received: list[bytes]
) -> None:
    """Also behind a response to a request that nobody has seen."""
    path = joined(tmp_path / "joined.pcap", *first, *(piece for number in range(6) for piece in list_groups(number)))
    calls = by_columns(path, window=1 << 26)[0]["calls"]
    assert not received
    assert sum(count for row, count in calls.items() if "unasked" in row) == bool(first)
    assert_same(path, windows=(1, 300, 1 << 26))
    assert_same(path, ports={7000: "kafka"})


@pytest.mark.parametrize(
    "first",
    [
        in_pieces(OUTER, BEHIND_INNER),
        in_pieces(SMALL, len(SMALL) - 1),
        [(1, fetched())],
        [(1, fetched("", "t"))],
        [(1, FETCHED), (1, FETCHED)],
        [(1, FETCHED + FETCHED[:9]), (1, FETCHED[9:])],
        [(1, FETCHED), (0, list_groups(20)[0][1][:9]), (0, list_groups(20)[0][1][9:]), list_groups(20)[1]],
        [(1, list_groups(20)[1][1])],
        [(1, FETCHED[:-1] + b"\1"), list_groups(20)[0]],
    ],
    ids=[
        "another inside it",
        "many small ones inside it",
        "no topic",
        "no name of the first topic",
        "two",
        "two in other pieces",
        "a request in pieces",
        "another response",
        "the start of a message",
    ],
)
def test_unusual_beginnings_of_joined_connections_are_left_to_objects(
    first: list[tuple[int, bytes]], tmp_path: Path, received: list[bytes]
) -> None:
    path = joined(tmp_path / "joined.pcap", *first, *(piece for number in range(6) for piece in list_groups(number)))
    by_columns(path, window=1 << 26)
    assert received
    assert_same(path, windows=(1, 300, 1 << 26))


def test_nothing_is_kept_of_a_response_without_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects continue from the numbers of bytes alone if something unusual comes in a later window."""
    calls = [[piece for number in numbers for piece in list_groups(number)] for numbers in (range(8), range(8, 16))]
    path = joined(tmp_path / "joined.pcap", (1, FETCHED), *calls[0], (1, FETCHED), *calls[1])
    assert_same(path, windows=(300, 800, 1 << 26))
    followers: list[object] = []
    keep = Connections.keep

    def kept(self: Connections, streams: Streams, flows: Any) -> None:
        keep(self, streams, flows)
        followers.extend(open_conversations(self)["follower"].tolist())

    monkeypatch.setattr(Connections, "keep", kept)
    by_columns(path, window=300)
    assert followers[:2] == [None, None]


def test_recognition_waits_for_a_whole_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a connection that was joined in the middle: the pieces in front of it are not looked at one by one."""
    asked: list[tuple[int, int, tuple[str, ...]]] = []
    real = connections.recognise_joined

    def counted(client: bytes, server: bytes, *, settled: bool, names: tuple[str, ...]) -> Recognised:
        asked.append((len(client), len(server), names))
        return real(client, server, settled=settled, names=names)

    monkeypatch.setattr(connections, "recognise_joined", counted)
    request, response = (data for _, data in list_groups(0))
    first = [(1, FETCHED[number : number + 7]) for number in range(0, len(FETCHED), 7)]
    path = joined(tmp_path / "joined.pcap", *first, (0, request[:9]), (0, request[9:]), (1, response))
    by_columns(path, window=1 << 26)
    assert asked == [(len(request), len(FETCHED), ("kafka",))]


@pytest.mark.parametrize(
    "pieces",
    [
        [(0, list_groups(0)[0][1][9:]), *list_groups(1), *list_groups(2)],
        [(0, list_groups(0)[0][1][:9]), (0, list_groups(0)[0][1][9:]), *list_groups(2)],
        [list_groups(0)[0], (1, list_groups(0)[1][1][:7]), (1, list_groups(0)[1][1][7:]), *list_groups(2)],
        [list_groups(0)[0], list_groups(7)[1], *list_groups(2)],
        [(0, METADATA[0]), (1, METADATA[1]), *list_groups(2)],
        [*list_groups(0), (0, METADATA[0]), (1, METADATA[1])],
        [(1, FETCHED[:20]), (1, FETCHED[20:]), *list_groups(0), (1, FETCHED), *list_groups(1)],
        [(0, b"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n" + list_groups(0)[0][1]), *list_groups(0)[1:], *list_groups(1)],
        [list_groups(0)[0], list_groups(1)[0], list_groups(1)[1], list_groups(2)[0]],
        [(0, b"\0\0\0\x60" + list_groups(0)[0][1]), list_groups(0)[1], (0, bytes(96)), *list_groups(1)],
        [(1, FETCHED[number : number + 5]) for number in range(0, len(FETCHED), 5)] + [*list_groups(0)],
        [(0, METADATA[0] + list_groups(0)[0][1]), list_groups(0)[1], *list_groups(1)],
        [(1, each.data) for each in (message(0), receipt(1), message(2))],
        [(1, message(0).data), (1, receipt(1).data), (0, send(2).data), (1, receipt(2).data)],
        [(0, send(1).data), (1, message(0).data), (1, receipt(1).data)],
    ],
    ids=[
        "inside a request",
        "a request in pieces",
        "a response in pieces",
        "another number",
        "not declared",
        "not declared later",
        "answers without request",
        "a header of a proxy",
        "a request that waits",
        "a request inside what may be one",
        "an answer in many pieces",
        "a request behind one that is not declared",
        "the server alone",
        "the server first",
        "the client first",
    ],
)
def test_connections_that_are_joined_anywhere(pieces: list[tuple[int, bytes]], tmp_path: Path) -> None:
    assert_same(joined(tmp_path / "joined.pcap", *pieces), windows=(1, 300, 1 << 26))


READY, READY_AGAIN = (
    s("PRODUCER_SUCCESS", request_id=number, producer_name="p", producer_ready=True) for number in (10, 11)
)
BEGINNING = [*connect(max_message_size=200), producer(topic="orders")[0], READY, *consumer(topic="news")]
SENT = [each for number in range(8) for each in (send(number), receipt(number), message(number))]
LARGE = [send(20, entry(b"x" * 12_000)), receipt(20)]


@pytest.mark.parametrize(
    "frames",
    [
        [*BEGINNING, *SENT],
        [*BEGINNING, *SENT, *producer(2, 11, "more"), send(1, producer=2), receipt(1, producer=2), *SENT],
        [*BEGINNING, *SENT, *producer(1, 11, "other"), *consumer(1, 21, "other"), *SENT],
        [*BEGINNING, *SENT, *LARGE, *SENT],
        [*BEGINNING, *SENT, *connect(max_message_size=20_000), *SENT, *LARGE],
        [*BEGINNING, lookup()[0], *SENT, lookup()[1], *SENT],
        [*BEGINNING, send(50), *SENT, *producer(1, 11, "other"), *SENT, receipt(50)],
        [*BEGINNING, *SENT, producer(1, 11, "other")[0], *SENT, READY_AGAIN, *SENT],
        [*BEGINNING, *SENT, send(0, entry(b"a", uuid="u", num_chunks_from_msg=2, chunk_id=0)), receipt(0), *SENT],
    ],
    ids=[
        "one producer",
        "two",
        "a topic that changes",
        "a frame too large",
        "another agreement",
        "a lookup that waits",
        "a send that waits",
        "a producer that waits",
        "chunks",
    ],
)
def test_names_and_agreements_of_pulsar_go_on_in_the_next_window(frames: list[Any], tmp_path: Path) -> None:
    path = capture(tmp_path / "pulsar.pcap", *((int(each.side == "server"), each.data) for each in frames))
    assert_same(path, windows=(700, 2000))


@pytest.mark.parametrize("name", ["pulsar-batch", "pulsar-comp_lz4", "pulsar-encryption", "pulsar-nobatch"])
def test_entries_with_a_wrong_checksum_go_by_columns(name: str, tmp_path: Path) -> None:
    found = packets(next(path for path in CAPTURES if path.stem == name))
    wrong = 0
    for number, each in enumerate(found):
        place = each.data.find(b"\x0e\x01")  # what stands in front of a checksum
        if place > 0:
            data = each.data[: place + 2] + bytes([each.data[place + 2] ^ 1]) + each.data[place + 3 :]
            found[number], wrong = each._replace(data=data), wrong + 1
    assert wrong
    path = write(tmp_path / "wrong.pcap", found)
    assert_same(path, windows=(2000, 1 << 26))
    frames = wirekit.read(path, "frames", ["checks_bad"]).read_all().to_pylist()
    messages = wirekit.read(path, "messages", ["crc_status"]).read_all().to_pylist()
    assert sum(frame["checks_bad"] for frame in frames) > 0
    assert "bad" in {message["crc_status"] for message in messages}
    assert left_to_objects(path)[1] == 0


def test_connections_of_pulsar_go_by_columns_in_each_window(tmp_path: Path, received: list[bytes]) -> None:
    pieces = [(int(each.side == "server"), each.data) for each in [*BEGINNING, *SENT]]
    path = capture(tmp_path / "pulsar.pcap", *pieces)
    by_columns(path, window=1000)
    assert pieces[0][1] not in received
    assert len(received) < len(pieces) // 3


def test_names_that_no_column_holds_are_left_to_objects(tmp_path: Path) -> None:
    frames = [*BEGINNING, *producer(1 << 63, 11), *SENT, send(1, producer=1 << 63), receipt(1, producer=1 << 63)]
    path = capture(tmp_path / "pulsar.pcap", *((int(each.side == "server"), each.data) for each in frames))
    assert_same(path, windows=(700, 2000))


def test_columns_go_on_behind_the_tokens_of_sasl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = [(0, HANDSHAKE), (1, handshake(0)), (0, b"\0\0\0\4user"), (1, b"\0\0\0\0")]
    calls = [piece for number in range(20) for piece in list_groups(number)]
    path = capture(tmp_path / "sasl.pcap", *tokens, *calls)
    assert_same(path, windows=(1, 300, 1000, 1 << 26))
    read = calls_of_begun(monkeypatch)
    by_columns(path, window=1 << 26)
    assert read == [19]
