"""Connections that the capture joins in the middle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numba")

import wirekit
from tests.capture.second_parser import packets, write
from tests.conftest import FIXTURES
from tests.jmq4.test_dialogue import golden
from tests.pulsar.commands import message, receipt, send
from tests.road.kafka_connections import (
    METADATA,
    calls_of_begun,
    fetched,
    in_pieces,
    joined,
    list_groups,
    open_conversations,
)
from tests.road.law import CAPTURES, assert_same, by_columns
from tests.road.test_pairing import capture
from wirekit.conversation import Recognised
from wirekit.road import connections
from wirekit.road.connections import Connections
from wirekit.road.streams import Streams


def test_connections_without_a_beginning_go_by_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = calls_of_begun(monkeypatch)
    by_columns(next(path for path in CAPTURES if path.stem == "kafka-0.10.2.2-2-produce"), window=1 << 26)
    assert sum(calls) > 50


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

    def keep_and_note(self: Connections, streams: Streams, flows: Any) -> None:
        keep(self, streams, flows)
        followers.extend(open_conversations(self)["follower"].tolist())

    monkeypatch.setattr(Connections, "keep", keep_and_note)
    by_columns(path, window=300)
    assert followers[:2] == [None, None]


def test_recognition_waits_for_a_whole_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a connection that was joined in the middle: the pieces in front of it are not looked at one by one."""
    attempts: list[tuple[int, int, tuple[str, ...]]] = []
    real = connections.recognise_joined

    def counted(client: bytes, server: bytes, *, settled: bool, names: tuple[str, ...]) -> Recognised:
        attempts.append((len(client), len(server), names))
        return real(client, server, settled=settled, names=names)

    monkeypatch.setattr(connections, "recognise_joined", counted)
    request, response = (data for _, data in list_groups(0))
    first = [(1, FETCHED[number : number + 7]) for number in range(0, len(FETCHED), 7)]
    path = joined(tmp_path / "joined.pcap", *first, (0, request[:9]), (0, request[9:]), (1, response))
    by_columns(path, window=1 << 26)
    assert attempts == [(len(request), len(FETCHED), ("kafka",))]


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


@pytest.mark.parametrize("chosen", ["", "joyqueue", "jmq4"])
def test_the_usual_port_of_a_protocol_is_the_server_s(chosen: str, tmp_path: Path) -> None:
    """That of JoyQueue is above many ports of clients. A response that comes at once is behind its request."""
    request = wirekit.decode(golden("heartbeat_request_v4"), "joyqueue.frame").value
    answered = wirekit.decode(golden("boolean_ack_success"), "joyqueue.frame").value
    pieces = []
    for number in range(4):
        request.request_id = answered.request_id = number
        pieces += [(side, wirekit.encode("joyqueue.frame", frame)) for side, frame in enumerate((request, answered))]
    path = capture(tmp_path / "joyqueue.pcap", *pieces, port=50088)
    write(path, packets(path)[2:])
    assert_same(path, protocol=chosen)
    tables = by_columns(path, window=1 << 26, protocol=chosen)[0]
    assert all("'answered'" in row and "'client_port': 40000" in row for row in tables["calls"])
    assert sum(tables["calls"].values()) == 4


@pytest.mark.parametrize("chosen", ["", "kafka"])
@pytest.mark.parametrize("lost", [2, 3, 4, 5])
def test_the_client_of_a_chosen_protocol_is_found_by_its_bytes(chosen: str, lost: int, tmp_path: Path) -> None:
    """The port of the server is above that of the client, and no protocol's usual one."""
    pieces = []
    for number in range(9):
        value = {"correlation_id": number, "client_id": "me", "body": {}}
        pieces.append((0, wirekit.encode("kafka.list_groups.request.v0", value)))
        value = {"correlation_id": number, "body": {"error_code": 0, "groups": []}}
        pieces.append((1, wirekit.encode("kafka.list_groups.response.v0", value)))
    path = capture(tmp_path / "kafka.pcap", *pieces, port=50099)
    whole = packets(path)
    write(path, [each._replace(time_us=whole[0].time_us + 10_000 * at) for at, each in enumerate(whole)][lost:])
    assert_same(path, windows=(1, 300, 1 << 26), protocol=chosen)
    tables = by_columns(path, window=1 << 26, protocol=chosen)[0]
    answered = [row for row in tables["calls"] if "'answered'" in row]
    assert len(answered) == 9 - (lost - 1) // 2
    assert all("'client_port': 40000" in row for row in answered)


def test_a_chosen_protocol_that_the_bytes_do_not_show(tmp_path: Path) -> None:
    path = FIXTURES / "pcap" / "pulsar-nobatch.pcap"
    joined = write(tmp_path / "joined.pcap", packets(path)[3:])
    assert_same(joined, windows=(1, 300, 1 << 26), protocol="kafka")
    tables = by_columns(joined, window=1 << 26, protocol="kafka")[0]
    assert not tables.get("calls")
    assert all("'protocol': 'kafka'" in row for row in tables["connections"])


@pytest.mark.parametrize("name", ["commit_ack_response_two_partitions_QUIRK", "produce_message_setText_zip_crc0"])
def test_frames_of_joyqueue_with_a_failed_check_may_be_the_first(name: str, tmp_path: Path) -> None:
    """JoyQueue itself writes such frames."""
    first = int(name.startswith("commit"))
    pieces = [(0, golden("heartbeat_request_v4")), (1, golden("boolean_ack_success"))]
    path = joined(
        tmp_path / "joined.pcap", *([(0, golden("heartbeat_request_v4"))] * first), (first, golden(name)), *pieces
    )
    tables = assert_same(path, windows=(1, 300, 1 << 26))
    assert "quarantine" not in tables


def test_the_first_bytes_of_both_sides_wait_until_a_window_ends(tmp_path: Path) -> None:
    """They come in the order in which their wait ends, here the side first that the capture saw second."""
    pieces = (0, b""), *list_groups(1), (0, b""), *list_groups(2)
    first, request, *later = packets(capture(tmp_path / "flow.pcap", *pieces, port=50000))[2:]
    other = packets(capture(tmp_path / "other.pcap", (0, b""), port=50001))[2:]
    late = [first, *later[:2], request, *other, *later[2:]]
    times = (0, 100, 200, 500, 9_000, 20_000, 20_100)
    path = write(tmp_path / "waits.pcap", [each._replace(time_us=at) for each, at in zip(late, times, strict=True)])
    rows = assert_same(path, windows=range(200, 900, 50))
    assert any("before the first recognised frame" in row for row in rows["quarantine"])


def test_a_connection_with_many_requests_under_way_goes_by_columns_behind_them(
    tmp_path: Path, received: list[bytes]
) -> None:
    under_way = [list_groups(number) for number in range(100)]
    first = [piece for side in range(2) for pair in under_way for piece in pair if piece[0] == side]
    first.insert(100, (1, FETCHED[7:]))
    then = [piece for number in range(50) for piece in list_groups(number)]
    path = joined(tmp_path / "joined.pcap", *first, *then)
    by_columns(path, window=1 << 26)
    assert len(received) == len(first)
    assert_same(path, windows=(1 << 26, 3000))
